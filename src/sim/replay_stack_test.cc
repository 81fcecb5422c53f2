#include "sim/replay_stack.h"

#include <gtest/gtest.h>

#include <string>

#include "model/audit.h"
#include "testing/files.h"

// Goal: the fill protocol decides the same through API server, store, client and scheduler as on
// the engine alone. Method: a small invented trace (tools/make_trace), run both ways under every
// policy; then the objects in the store are recounted.
namespace berth::sim {
namespace {

std::string Read(const std::string& name) {
  return berth::testing::ReadTestFile(std::string(BERTH_TESTDATA) + "/" + name);
}
std::vector<TraceNode> Nodes() {
  return ParseTraceNodes(Read("trace_nodes.csv"), {.file_name = "trace_nodes.csv"}).value().rows;
}
std::vector<TracePod> Pods() {
  return ParseTracePods(Read("trace_pods.csv"), {.file_name = "trace_pods.csv"}).value().rows;
}

// Runs to the end.
template <typename Replay>
Replay RunAll(const ReplayOptions& options, size_t slice = 1000) {
  auto replay = Replay::Make(Nodes(), Pods(), options).value();
  while (true) {
    const Result<bool> more = replay.Step(slice);
    if (!more) ADD_FAILURE() << more.error().message;
    if (!more || !*more) return replay;
  }
}

class StackReplayTest : public ::testing::TestWithParam<model::Policy> {};

TEST_P(StackReplayTest, DecidesAsTheEngineAlone) {
  const ReplayOptions options{.policy = GetParam(), .seed = 42};
  const ReplayReport alone = RunAll<EngineReplay>(options).Report();
  const StackReplay stack = RunAll<StackReplay>(options);
  EXPECT_TRUE(stack.Report() == alone);
  EXPECT_LT(alone.levels.back().placed, alone.levels.back().arrived) << "some must wait";
  EXPECT_EQ(stack.scheduler().engine().counters().missed_wakes, 0u);
  EXPECT_EQ(stack.scheduler().counters().errors, 0u);
  EXPECT_EQ(stack.scheduler().counters().undecodable, 0u);
  EXPECT_TRUE(model::Audit(stack.scheduler().engine().state()).empty());
}

INSTANTIATE_TEST_SUITE_P(Policies, StackReplayTest,
                         ::testing::Values(model::Policy::kSpread, model::Policy::kBestFit,
                                           model::Policy::kFgd, model::Policy::kRandom),
                         [](const auto& test) {
                           std::string name(ToString(test.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(StackReplayEdgeTest, TheSameSeedGivesTheSameBytesHoweverItIsSliced) {
  const auto hash = [](const StackReplay& stack) {
    Hasher hasher;
    stack.server().AddTo(hasher);
    stack.scheduler().AddTo(hasher);
    return hasher.value();
  };
  const ReplayOptions options{.policy = model::Policy::kFgd, .seed = 7};
  EXPECT_EQ(hash(RunAll<StackReplay>(options)), hash(RunAll<StackReplay>(options, 7)));
}

TEST(StackReplayEdgeTest, ASmallTraceWithoutRoomSaysWhy) {
  const std::vector<TraceNode> nodes = {
      {.name = "n", .cpu_milli = 1000, .memory_mib = 1024, .gpus_count = 1, .gpu_model = "M1"}};
  const std::vector<TracePod> pods = {
      {.name = "big", .cpu_milli = 2000, .memory_mib = 1, .gpus_count = 1, .gpu_milli_each = 1000},
      {.name = "other",
       .cpu_milli = 1,
       .memory_mib = 1,
       .gpus_count = 1,
       .gpu_milli_each = 1000,
       .gpu_models = {"M2"}}};
  auto stack = StackReplay::Make(nodes, pods, {.arrived = {.part = 2, .whole = 1}}).value();
  EXPECT_EQ(stack.arrivals(), 2u);
  EXPECT_TRUE(stack.Step(1).value());
  EXPECT_FALSE(stack.Step(5).value());
  EXPECT_EQ(
      stack.Report().levels.back().pending,
      (std::map<std::string, int64_t>{{"Insufficient cpu", 1},
                                      {"node(s) didn't match Pod's node affinity/selector", 1}}));
}

TEST(StackReplayEdgeTest, ARefusedNodeIsTold) {
  const std::vector<TraceNode> nodes = {
      {.name = "Bad_Name", .cpu_milli = 1, .memory_mib = 1, .gpus_count = 1, .gpu_model = "M1"}};
  const auto stack = StackReplay::Make(nodes, Pods(), {});
  ASSERT_FALSE(stack.has_value());
  EXPECT_TRUE(stack.error().message.starts_with("Bad_Name: Node \"Bad_Name\" is invalid"))
      << stack.error().message;
}

TEST(MainReasonTest, IsTheOneOfMostNodes) {
  EXPECT_EQ(MainReason("0/5 nodes are available: 2 Insufficient cpu, 3 Too many pods."),
            "Too many pods");
  EXPECT_EQ(MainReason("0/4 nodes are available: 2 b, 2 a."), "a");
  EXPECT_EQ(MainReason("0/4 nodes are available: pod affinity terms conflict."),
            "pod affinity terms conflict");
  EXPECT_EQ(MainReason("no nodes available to schedule pods"),
            "no nodes available to schedule pods");
  EXPECT_EQ(MainReason(""), "");
  EXPECT_EQ(MainReason("0/4 nodes are available: 12"), "12");
}

}  // namespace
}  // namespace berth::sim
