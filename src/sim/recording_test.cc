// Goal: what a scheduler was told is all that decides: a fresh one that is told the same does the
// same, byte for byte, and one that is told or made otherwise is found out
// (docs/design/0029-recording.md). Method: worlds of the simulator with all faults, in which every
// life of every scheduler is recorded; each is replayed as it is, and with one thing changed.
#include "env/recording.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/prng.h"
#include "client/request.h"
#include "control/scheduler.h"
#include "env/replay.h"
#include "nodes/node_spec.h"
#include "sim/faults.h"
#include "sim/run.h"
#include "sim/world.h"

namespace berth::sim {
namespace {

using ::testing::HasSubstr;

struct Replayed {
  uint64_t steps = 0;
  uint64_t bindings = 0;
  uint64_t failed_calls = 0;
  uint64_t volume_writes = 0;
  uint64_t evictions = 0;
  std::optional<env::Difference> difference;
  std::string error;
};

Replayed ReplayLife(const RecordedLife& life) {
  Replayed out;
  auto reader = env::RecordingReader::Open(life.file);
  EXPECT_TRUE(reader.has_value());
  control::Scheduler scheduler(life.options);
  env::Replay replay(scheduler, *reader);
  while (!out.difference) {
    const auto step = replay.Next();
    if (!step) out.error = step.error().message;
    if (!step || *step == nullptr) break;
    const auto* response = std::get_if<env::Response>(&(*step)->input);
    out.failed_calls += std::holds_alternative<env::CallFailed>((*step)->input) ||
                        (response != nullptr && response->response.status >= 400);
    for (const env::Output& output : replay.Step()) {
      const auto* send = std::get_if<env::SendRequest>(&output);
      if (send == nullptr || send->request.method == env::Method::kGet) continue;
      const std::string_view target = send->request.target;
      out.bindings += target.ends_with("/binding");
      out.volume_writes += target.find("/persistentvolume") != std::string_view::npos;
      out.evictions +=
          target.ends_with("/eviction") || send->request.method == env::Method::kDelete;
    }
    out.difference = replay.difference();
  }
  out.steps = replay.steps();
  return out;
}

// The load under faults, until enough was written.
World Driven(const WorldOptions& options, uint64_t commits) {
  World world(options);
  const Instant end = world.now() + Duration::Minutes(40);
  while (world.now() < end) {
    if (world.users().finished()) {
      if (world.checkers().commits() >= commits) break;
      world.RepeatLoad();
    }
    world.Step(end);
  }
  return world;
}

World Recorded(WorldOptions options, uint64_t commits = 400) {
  options.record = true;
  return Driven(options, commits);
}

// All that `berth run --quota` reads, and two profiles of which one doesn't preempt and packs.
void AsInProduction(control::SchedulerOptions& options) {
  options.volumes = true;
  options.namespaces = true;
  options.spread_defaults = true;
  options.quota = true;
  model::ProfileOptions packs{.scheduler_name = "berth"};
  packs.rules.strategy = model::FitStrategy::kMostAllocated;
  packs.fit = {{.name = "cpu", .weight = 1}, {.name = "memory", .weight = 3}};
  packs.rules.preempts = false;
  options.engine.profiles = {packs};
}

void ExpectAllEqual(const World& world, const std::string& what) {
  uint64_t bindings = 0;
  uint64_t failed = 0;
  for (const RecordedLife& life : world.recordings()) {
    const Replayed replayed = ReplayLife(life);
    EXPECT_EQ(replayed.error, "") << what;
    ASSERT_FALSE(replayed.difference.has_value()) << what << ": " << ToString(*replayed.difference);
    bindings += replayed.bindings;
    failed += replayed.failed_calls;
  }
  // Else nothing was shown.
  EXPECT_GT(bindings, 20u) << what;
  EXPECT_GT(failed, 0u) << what;
}

TEST(RecordingSim, EveryLifeOfASchedulerIsDoneAgainToTheSameBytes) {
  size_t lives = 0;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    const World world = Recorded(OptionsOf({.seed = seed}));
    lives += world.recordings().size();
    ExpectAllEqual(world, fmt::format("seed {}", seed));
  }
  EXPECT_GT(lives, 3u);  // Some were killed.
}

TEST(RecordingSim, SoIsEveryReplicasThatLeadsAndStandsBy) {
  const World world = Recorded(OptionsOf({.seed = 1, .replicas = true}));
  EXPECT_GT(world.terms(), 1u);
  ExpectAllEqual(world, "replicas");
}

TEST(RecordingSim, SoIsOneThatDoesAllThatIsDoneInProduction) {
  WorldOptions options = OptionsOf({.seed = 4});
  options.adjust = AsInProduction;
  ExpectAllEqual(Recorded(options), "as in production");
}

// ---- Volumes, preemption, profiles ------------------------------------------------------------

class Writer {
 public:
  void Make(client::Resource resource, std::string name, std::string body) {
    const bool of_namespace =
        resource.plural == "pods" || resource.plural == "persistentvolumeclaims";
    operations_.push_back({.at = Instant{at_.ns},
                           .resource = std::move(resource),
                           .namespace_name = of_namespace ? "default" : "",
                           .name = std::move(name),
                           .body = std::move(body)});
    at_ = at_ + Duration::Milliseconds(20);
  }
  void Wait(Duration time) { at_ = at_ + time; }
  std::vector<Operation> operations_;

 private:
  Duration at_;
};

const client::Resource kClaims{.plural = "persistentvolumeclaims"};
const client::Resource kVolumes{.plural = "persistentvolumes"};
const client::Resource kStorageClasses{.group = "storage.k8s.io", .plural = "storageclasses"};
const client::Resource kPriorities{.group = "scheduling.k8s.io", .plural = "priorityclasses"};

constexpr int kClaimsCount = 6;

std::string PodBody(const std::string& name, int cpu, const std::string& more) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"}},"spec":{{{}"containers":[{{"name":"c",)"
      R"("image":"i","resources":{{"requests":{{"cpu":"{}"}}}}}}]}}}})",
      name, more, cpu);
}

// Local volumes of three nodes, pods that use them, others that fill the nodes, and some that evict
// those; pods of the second profile among them.
Play PlayWithVolumes() {
  Play play;
  for (int i = 0; i < 3; ++i) {
    nodes::NodeSpec node;
    node.name = fmt::format("n{}", i);
    node.capacity = {{"cpu", "8"}, {"memory", "16Gi"}, {"pods", "110"}};
    play.nodes.push_back(std::move(node));
  }
  Writer writer;
  writer.Wait(Duration::Seconds(5));
  writer.Make(
      kPriorities, "high",
      R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":1000})");
  writer.Make(
      kStorageClasses, "local",
      R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"local"},)"
      R"("provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  for (int i = 0; i < kClaimsCount; ++i) {
    writer.Make(
        kVolumes, fmt::format("v{}", i),
        fmt::format(
            R"({{"apiVersion":"v1","kind":"PersistentVolume","metadata":{{"name":"v{}"}},"spec":{{)"
            R"("capacity":{{"storage":"1Gi"}},"accessModes":["ReadWriteOnce"],"storageClassName":"local",)"
            R"("local":{{"path":"/d"}},"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":)"
            R"([{{"key":"kubernetes.io/hostname","operator":"In","values":["n{}"]}}]}}]}}}}}}}})",
            i, i % 3));
    writer.Make(
        kClaims, fmt::format("c{}", i),
        fmt::format(
            R"({{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{{"name":"c{}"}},"spec":{{)"
            R"("accessModes":["ReadWriteOnce"],"storageClassName":"local","resources":{{"requests":)"
            R"({{"storage":"1Gi"}}}}}}}})",
            i));
  }
  for (int i = 0; i < 12; ++i)
    writer.Make(
        client::Pods(), fmt::format("low{}", i),
        PodBody(fmt::format("low{}", i), 1, i % 2 == 0 ? R"("schedulerName":"berth",)" : ""));
  for (int i = 0; i < kClaimsCount; ++i) {
    const std::string name = fmt::format("data{}", i);
    writer.Make(
        client::Pods(), name,
        PodBody(name, 1,
                fmt::format(
                    R"("volumes":[{{"name":"d","persistentVolumeClaim":{{"claimName":"c{}"}}}}],)",
                    i)));
  }
  writer.Wait(Duration::Seconds(20));
  for (int i = 0; i < 6; ++i) {
    const std::string name = fmt::format("high{}", i);
    writer.Make(client::Pods(), name, PodBody(name, 3, R"("priorityClassName":"high",)"));
  }
  play.users.push_back(std::move(writer.operations_));
  return play;
}

TEST(RecordingSim, SoIsOneThatBindsVolumesAndEvicts) {
  uint64_t volumes = 0;
  uint64_t evictions = 0;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    Prng prng(seed);
    WorldOptions options{.seed = seed, .faults = FaultPlan::Draw(prng), .record = true};
    for (const Fault fault : {Fault::kServerCrashed, Fault::kNodeLost})
      options.faults.chance[static_cast<size_t>(fault)] = Ratio{};
    options.play = PlayWithVolumes();
    options.adjust = AsInProduction;
    World world(options);
    const Instant end = world.now() + Duration::Minutes(4);
    while (world.Step(end)) {
    }
    for (const RecordedLife& life : world.recordings()) {
      const Replayed replayed = ReplayLife(life);
      ASSERT_EQ(replayed.difference, std::nullopt) << ToString(*replayed.difference);
      volumes += replayed.volume_writes;
      evictions += replayed.evictions;
    }
  }
  EXPECT_GT(volumes, 0u);
  EXPECT_GT(evictions, 0u);
}

TEST(RecordingSim, AWorldThatIsRecordedIsTheSameWorld) {
  const WorldOptions options = OptionsOf({.seed = 5});
  EXPECT_EQ(Driven(options, 100).Hash(), Recorded(options, 100).Hash());
}

// ---- One thing changed ------------------------------------------------------------------------

// The longest life of a world.
RecordedLife ALife() {
  const World world = Recorded(OptionsOf({.seed = 1}), 200);
  const auto longest = std::ranges::max_element(
      world.recordings(), {}, [](const RecordedLife& life) { return life.file.size(); });
  EXPECT_EQ(ReplayLife(*longest).difference, std::nullopt);
  return *longest;
}

// The same steps, each as `change` has it; false: it is left out. Outputs stay as recorded.
std::string Changed(const RecordedLife& life, const std::function<bool(env::StepRead&)>& change) {
  auto reader = env::RecordingReader::Open(life.file);
  std::string file = env::RecordingStart("");
  for (;;) {
    auto item = reader->Next();
    EXPECT_TRUE(item.has_value());
    if (!item || !*item) return file;
    auto& step = std::get<env::StepRead>(**item);
    if (!change(step)) continue;
    std::string items;
    env::AppendRead(step, items);
    file += env::SealBlock(items, env::BlockMethod::kStored);
  }
}

struct Change {
  const char* what;
  std::function<bool(env::StepRead&)> change;
};

TEST(RecordingSim, AnInputThatIsChangedIsFoundAndNamed) {
  const RecordedLife life = ALife();
  uint64_t changed = 0;  // The step.
  const auto first = [&](const env::StepRead& step, bool is) {
    if (changed != 0 || !is) return false;
    changed = step.number;
    return true;
  };
  std::string binding;  // "call N POST ...", of the first one.
  const auto is_binding_answer = [&](const env::StepRead& step) {
    for (const std::string& output : step.outputs) {
      if (binding.empty() && output.find("/binding within") != std::string::npos) binding = output;
    }
    const auto* response = std::get_if<env::Response>(&step.input);
    return response != nullptr && response->response.status == 201 &&
           binding.starts_with(fmt::format("call {} ", response->call.value));
  };
  const Change changes[] = {
      {"an answer is another",
       [&](env::StepRead& step) {
         if (first(step, is_binding_answer(step)))
           std::get<env::Response>(step.input).response.status = 409;
         return true;
       }},
      {"an answer is left out",
       [&](env::StepRead& step) { return !first(step, is_binding_answer(step)); }},
      // Of each pod that waits: of one alone nothing may come.
      {"a watch tells other uids",
       [&](env::StepRead& step) {
         auto* data = std::get_if<env::StreamData>(&step.input);
         const size_t at =
             data != nullptr ? data->data.view().find("\"phase\":\"Pending\"") : std::string::npos;
         if (at == std::string::npos) return true;
         if (changed == 0) changed = step.number;
         std::string text(data->data.view());
         text.replace(at, 17, "\"phase\":\"Running\"");
         text.replace(text.find("\"uid\":\"") + 7, 4, "zzzz");
         data->data = Bytes(std::move(text));
         return true;
       }},
  };
  for (const auto& [what, change] : changes) {
    changed = 0;
    binding.clear();
    const Replayed replayed = ReplayLife({.options = life.options, .file = Changed(life, change)});
    ASSERT_NE(changed, 0u) << what;
    ASSERT_TRUE(replayed.difference.has_value()) << what;
    EXPECT_GE(replayed.difference->number, changed) << what;
    EXPECT_THAT(ToString(*replayed.difference), HasSubstr("recorded: ")) << what;
    EXPECT_THAT(ToString(*replayed.difference), HasSubstr("replayed: ")) << what;
  }
}

TEST(RecordingSim, AnOutputThatIsAnotherIsNamedWithBothTexts) {
  const RecordedLife life = ALife();
  uint64_t changed = 0;
  const std::string file = Changed(life, [&](env::StepRead& step) {
    for (std::string& output : step.outputs) {
      const size_t at = output.find("/binding");
      if (changed != 0 || at == std::string::npos) continue;
      changed = step.number;
      output += " not as it was";
    }
    return true;
  });
  const Replayed replayed = ReplayLife({.options = life.options, .file = file});
  ASSERT_TRUE(replayed.difference.has_value());
  EXPECT_EQ(replayed.difference->number, changed);
  EXPECT_EQ(*replayed.difference->recorded, *replayed.difference->replayed + " not as it was");
}

TEST(RecordingSim, ATimeThatIsAnotherIsFoundAndOneThatGoesBackRefused) {
  const RecordedLife life = ALife();
  const std::string later = Changed(life, [](env::StepRead& step) {
    step.now = step.now + Duration::Minutes(step.number > 50 ? 60 : 0);
    return true;
  });
  EXPECT_TRUE(ReplayLife({.options = life.options, .file = later}).difference.has_value());
  const std::string back = Changed(life, [](env::StepRead& step) {
    if (step.number == 3) step.now = Instant{0};
    return true;
  });
  EXPECT_EQ(ReplayLife({.options = life.options, .file = back}).error,
            "the time of input 3 goes back");
}

// What a scheduler is made of counts as what it is told: the seed, and what it does by intent.
TEST(RecordingSim, AnotherSeedAndAnotherSchedulerAreFound) {
  const RecordedLife life = ALife();
  RecordedLife seed = life;
  ++seed.options.client.seed;
  EXPECT_TRUE(ReplayLife(seed).difference.has_value());
  RecordedLife bug = life;
  bug.options.planted_anothers_node = true;
  EXPECT_TRUE(ReplayLife(bug).difference.has_value());
  RecordedLife calm = life;
  calm.options.engine.preemption = false;
  EXPECT_TRUE(ReplayLife(calm).difference.has_value());
}

}  // namespace
}  // namespace berth::sim
