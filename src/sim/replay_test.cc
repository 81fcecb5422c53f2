#include "sim/replay.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "codec/decode.h"
#include "codec/json.h"
#include "testing/files.h"

// Goal: the fill protocol arrives, decides and reports as it says. Method: a small invented trace
// (tools/make_trace), run under every policy; amounts are recounted from the engine's state.
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

ReplayReport Replay(model::Policy policy, uint64_t seed, size_t slice = 1000) {
  auto replay = EngineReplay::Make(Nodes(), Pods(), {.policy = policy, .seed = seed}).value();
  while (replay.Step(slice)) {
  }
  return replay.Report();
}

TEST(FillOrderTest, EveryPodArrivesOnceBeforeAnyIsDrawnAgain) {
  const auto nodes = Nodes();
  const auto pods = Pods();
  const auto arrivals =
      FillOrder(nodes, pods, {.seed = 42, .arrived = {.part = 3, .whole = 1}}).value();
  ASSERT_GT(arrivals.size(), pods.size());
  std::set<uint32_t> first;
  std::set<std::string> names;
  int64_t demand = 0;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i].repeat == 0, i < pods.size());
    if (i < pods.size()) first.insert(arrivals[i].pod);
    names.insert(NameOf(pods[arrivals[i].pod], arrivals[i].repeat));
    if (i + 1 < arrivals.size()) demand += pods[arrivals[i].pod].gpu_milli();
  }
  EXPECT_EQ(first.size(), pods.size());
  EXPECT_EQ(names.size(), arrivals.size());
  int64_t capacity = 0;
  for (const TraceNode& node : nodes) capacity += node.gpus_count * 1000;
  EXPECT_LT(demand, 3 * capacity);
  EXPECT_GE(demand + pods[arrivals.back().pod].gpu_milli(), 3 * capacity);
}

TEST(FillOrderTest, TheOrderIsTheSeedsAndNotTheFiles) {
  const auto nodes = Nodes();
  auto pods = Pods();
  const auto names = [&](uint64_t seed) {
    std::vector<std::string> out;
    const auto arrivals = FillOrder(nodes, pods, {.seed = seed}).value();
    for (const Arrival& a : arrivals) {
      out.push_back(NameOf(pods[a.pod], a.repeat));
    }
    return out;
  };
  const auto before = names(42);
  EXPECT_NE(before, names(43));
  std::ranges::reverse(pods);
  EXPECT_EQ(before, names(42));
}

TEST(FillOrderTest, RefusesWhatCantBeFilled) {
  const std::vector<TraceNode> plain = {{.name = "n", .cpu_milli = 1000}};
  const std::vector<TracePod> cpu_only = {{.name = "p", .cpu_milli = 1}};
  EXPECT_EQ(FillOrder(plain, Pods(), {}).error().message, "the nodes have no GPUs to fill");
  EXPECT_EQ(FillOrder(Nodes(), cpu_only, {}).error().message, "no pod asks for GPUs");
  EXPECT_EQ(FillOrder(Nodes(), {}, {}).error().message, "no pod asks for GPUs");
  const std::vector<TracePod> tiny = {{.name = "p", .gpus_count = 1, .gpu_milli_each = 1}};
  EXPECT_EQ(FillOrder(Nodes(), tiny, {}).error().code, ErrorCode::kTooLarge);
}

TEST(ReplayObjectsTest, DocumentsSayWhatTheTypedObjectsSay) {
  for (const TracePod& pod : Pods()) {
    const auto decoded = codec::DecodePod(codec::PrintJson(PodDocument(pod, 2)));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(*decoded, PodOf(pod, 2)) << pod.name;
  }
  for (const TraceNode& node : Nodes()) {
    const auto decoded = codec::DecodeNode(codec::PrintJson(NodeDocument(node)));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(*decoded, NodeOf(node)) << node.name;
  }
}

class ReplayTest : public ::testing::TestWithParam<model::Policy> {};

TEST_P(ReplayTest, ReportsWhatTheStateHolds) {
  auto replay = EngineReplay::Make(Nodes(), Pods(), {.policy = GetParam(), .seed = 7}).value();
  while (replay.Step(1)) {
  }
  const ReplayReport report = replay.Report();
  const model::State& state = replay.engine().state();
  const model::AccountTable& accounts = state.ledger().nodes();
  int64_t gpu = 0;
  int64_t cpu = 0;
  int64_t memory = 0;
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    gpu += accounts.held(model::kGpuMilli, row);
    cpu += accounts.held(model::kCpu, row);
    memory += accounts.held(model::kMemory, row);
    int64_t devices_free = 0;
    for (const int32_t milli : accounts.devices_free(row)) {
      EXPECT_GE(milli, 0);
      devices_free += milli;
    }
    EXPECT_EQ(devices_free, accounts.free(model::kGpuMilli, row)) << "every milli is on a device";
    EXPECT_GE(accounts.free(model::kCpu, row), 0);
  }
  const Level& end = report.levels.back();
  EXPECT_EQ(end.gpu_milli.allocated, gpu);
  EXPECT_EQ(end.cpu_milli.allocated, cpu);
  EXPECT_EQ(end.memory_bytes.allocated, memory);
  EXPECT_LE(end.gpu_milli.allocated, end.gpu_milli.capacity);
  int64_t pending = 0;
  for (const auto& [reason, count] : end.pending) pending += count;
  EXPECT_EQ(end.arrived, end.placed + pending);
  EXPECT_EQ(end.arrived, report.decisions);
  ASSERT_EQ(report.levels.size(), 4u);
  EXPECT_EQ(report.levels[0].arrived_percent, 90);
  EXPECT_EQ(report.levels[3].arrived_percent, 130);
  for (size_t i = 1; i < report.levels.size(); ++i) {
    EXPECT_GE(report.levels[i].gpu_milli.allocated, report.levels[i - 1].gpu_milli.allocated);
  }
}

TEST_P(ReplayTest, TheSameSeedDecidesAlikeHoweverItIsSliced) {
  const ReplayReport once = Replay(GetParam(), 42);
  EXPECT_EQ(once.decision_hash, Replay(GetParam(), 42, 7).decision_hash);
  EXPECT_NE(once.decision_hash, Replay(GetParam(), 43).decision_hash);
}

INSTANTIATE_TEST_SUITE_P(Policies, ReplayTest,
                         ::testing::Values(model::Policy::kSpread, model::Policy::kBestFit,
                                           model::Policy::kFgd, model::Policy::kRandom),
                         [](const auto& test) {
                           std::string name(ToString(test.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(ReplayReportTest, PrintsAmountsAtEachLevel) {
  const api::Json json = ToJson(Replay(model::Policy::kBestFit, 42));
  EXPECT_EQ(json.at("policy").as_string(), "best-fit");
  EXPECT_EQ(json.at("decision_hash").as_string().size(), 16u);
  const api::JsonArray& levels = json.at("levels").as_array();
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(levels[3].at("gpu_allocated_milli"), json.at("gpu_allocated_milli"));
  EXPECT_GT(levels[0].at("gpu_allocated_milli").as_int64(), 0);
  EXPECT_TRUE(levels[3].at("pending").is_object());
}

TEST(ReplayPolicyTest, NamesAreReadAndPrinted) {
  for (const char* name : {"spread", "best-fit", "fgd", "random"}) {
    EXPECT_EQ(ToString(ParsePolicy(name).value()), name);
  }
  EXPECT_EQ(ParsePolicy("worst").error().message,
            "unknown policy worst: want spread, best-fit, fgd or random");
}

}  // namespace
}  // namespace berth::sim
