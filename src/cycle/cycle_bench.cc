#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "cycle/engine.h"
#include "cycle/test_cluster.h"

// The engine alone: decisions a second with all nodes scored, by number of classes and by policy,
// and the cost of an event.
namespace berth::cycle {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

void AddNodes(Engine& engine, int count, int gpus) {
  for (int i = 0; i < count; ++i) {
    TestNode node{.name = "node-" + std::to_string(i),
                  .cpu = 64'000 + 1'000 * (i % 7),
                  .memory = (256 + i % 5) * kGi};
    node.gpus = gpus;
    node.labels = {{"zone", std::to_string(i % 3)}, {"kubernetes.io/hostname", node.name}};
    if (i % 10 == 0) node.taints.push_back({.key = "dedicated"});
    engine.Apply(FactsOf(engine.vocabulary(), node));
  }
}

TestPod PodOf(int i, int classes) {
  const int k = i % classes;
  TestPod pod{.name = "pod-" + std::to_string(i),
              .cpu = 50 + k,
              .memory = (1 + k % 4) * kGi / 8,
              .created = i};
  if (k % 5 == 0) pod.selector = {{"zone", std::to_string(k % 3)}};
  return pod;
}

// Pods arrive in batches; each batch is placed on a cluster that has room; old ones leave, so that
// four batches stand there.
void PlaceBatches(benchmark::State& bench, Engine& engine, int batch, auto pod_of) {
  int next = 0;
  int64_t seconds = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    std::vector<model::PodUpsert> pods;
    for (int i = 0; i < batch; ++i) pods.push_back(FactsOf(engine.vocabulary(), pod_of(next + i)));
    for (int i = 0; i < batch && next >= 4 * batch; ++i)
      engine.Apply(model::PodRemove{.uid = "uid-pod-" + std::to_string(next - 4 * batch + i)});
    next += batch;
    for (const model::PodUpsert& pod : pods) engine.Apply(pod);
    ++seconds;
    bench.ResumeTiming();
    size_t decided = 0;
    while (engine.wake_at() <= Instant::FromSeconds(seconds))
      decided += engine.Cycle(Instant::FromSeconds(seconds)).binds.size();
    CHECK_EQ(decided, static_cast<size_t>(batch));
  }
  bench.SetItemsProcessed(bench.iterations() * batch);
}

void Decisions(benchmark::State& bench, const place::Evaluator& evaluator, int nodes, int classes) {
  Engine engine({.evaluator = evaluator});
  AddNodes(engine, nodes, 0);
  PlaceBatches(bench, engine, 5'000, [&](int i) { return PodOf(i, classes); });
}
BENCHMARK_CAPTURE(Decisions, spread_20_classes, place::Evaluator(), 5'000, 20)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Decisions, spread_200_classes, place::Evaluator(), 5'000, 200)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Decisions, spread_5000_classes, place::Evaluator(), 5'000, 5'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Decisions, best_fit_20_classes, place::Evaluator(model::Policy::kBestFit), 5'000,
                  20)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Decisions, spread_20_classes_100k_nodes, place::Evaluator(), 100'000, 20)
    ->Unit(benchmark::kMillisecond);

// What of a pod hangs on where other pods are, as in the rows of scheduler_perf.
enum class Among : uint8_t {
  kNone,
  kPorts,
  kNodes,  // With a label.
  kAnti,
  kAffinity,
  kPreferredAnti,
  kPreferred,
  kNamespaces,  // Anti-affinity to pods of namespaces with a label.
  kHard,
  kSoft,
  kDefault,
  kInclusion,  // Hard, where taints are honoured.
  kVolumes
};

TestPod PodAmong(int i, Among among) {
  using enum model::AffinityKind;
  constexpr const char* kHost = "kubernetes.io/hostname";
  TestPod pod{.name = "pod-" + std::to_string(i), .cpu = 50, .created = i};
  pod.labels = {{"app", "web"}};
  switch (among) {
    case Among::kNone:
      break;
    case Among::kPorts:
      pod.host_port = 80;
      break;
    case Among::kAnti:
      pod.affinity = {{.kind = kRequiredAnti, .key = kHost, .app = "web"}};
      break;
    case Among::kAffinity:
      pod.affinity = {{.kind = kRequired, .key = "zone", .app = "web"}};
      break;
    case Among::kPreferredAnti:
      pod.affinity = {{.kind = kPreferredAnti, .key = kHost, .app = "web"}};
      break;
    case Among::kPreferred:
      pod.affinity = {{.kind = kPreferred, .key = kHost, .app = "web"}};
      break;
    case Among::kNamespaces:
      pod.affinity = {{.kind = kRequiredAnti, .key = kHost, .app = "web", .team = "red"}};
      break;
    case Among::kNodes:
      pod.selector = {{"zone", "1"}};
      break;
    case Among::kHard:
    case Among::kSoft:
      pod.spread = {{.key = "zone", .app = "web", .hard = among == Among::kHard}};
      break;
    case Among::kDefault:
      pod.spread = {{.key = "zone", .app = "web", .max_skew = 3, .hard = false, .by_default = true},
                    {.key = kHost, .app = "web", .max_skew = 5, .hard = false, .by_default = true}};
      break;
    case Among::kInclusion:
      pod.spread = {{.key = kHost, .app = "web", .honors_taints = true}};
      break;
    case Among::kVolumes:
      pod.claims = {pod.name};
      break;
  }
  return pod;
}

// A claim that has its volume, made by a driver which attaches 39 to a node.
void AddVolume(Engine& engine, const std::string& name) {
  model::Vocabulary& v = engine.vocabulary();
  const model::NameId claim = v.names.Intern("default/" + name);
  const model::NameId volume = v.names.Intern("pv-" + name);
  engine.Apply(model::StorageFact{.name = claim,
                                  .row = model::VolumeClaim{.volume = volume, .bound = true}});
  engine.Apply(model::StorageFact{
      .name = volume,
      .row = model::Volume{.driver = v.names.Intern("driver"), .handle = name, .claim = claim}});
}

// As Decisions, of pods that are placed by each other, or by their volumes.
void DecisionsAmong(benchmark::State& bench, Among among) {
  const auto nodes = static_cast<int>(bench.range(0));
  Engine engine;
  AddNodes(engine, nodes, 0);
  const bool volumes = among == Among::kVolumes;
  engine.Apply(model::NamespaceUpsert{.name = "default", .labels = {{"team", "red"}}});
  model::Vocabulary& v = engine.vocabulary();
  const model::AttachLimits limits{.drivers = {{.driver = v.names.Intern("driver"), .count = 39}}};
  for (int i = 0; volumes && i < nodes; ++i)
    engine.Apply(
        model::StorageFact{.name = v.names.Intern("node-" + std::to_string(i)), .row = limits});
  PlaceBatches(bench, engine, 1'000, [&](int i) {
    const TestPod pod = PodAmong(i, among);
    if (volumes) AddVolume(engine, pod.name);
    return pod;
  });
}
void OnNodes(benchmark::internal::Benchmark* bench) {
  bench->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(DecisionsAmong, none, Among::kNone)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, ports, Among::kPorts)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, anti_affinity, Among::kAnti)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, affinity, Among::kAffinity)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, preferred_anti_affinity, Among::kPreferredAnti)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, preferred_affinity, Among::kPreferred)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, ns_anti_affinity, Among::kNamespaces)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, node_affinity, Among::kNodes)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, spread_hard, Among::kHard)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, spread_soft, Among::kSoft)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, spread_default, Among::kDefault)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, spread_inclusion, Among::kInclusion)->Apply(OnNodes);
BENCHMARK_CAPTURE(DecisionsAmong, volumes, Among::kVolumes)->Apply(OnNodes);

// So many gangs of so many equal members on 5,000 nodes that have room: one attempt a cycle, so that
// the slowest gang is seen, the first of all among them.
void Gangs(benchmark::State& bench) {
  const int64_t groups = bench.range(0);
  const int64_t members = bench.range(1);
  Engine engine({.attempts_per_cycle_max = 1});
  AddNodes(engine, 5'000, 0);
  int64_t seconds = 0;
  std::clock_t slowest = 0;
  std::clock_t spent = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    ++seconds;
    const std::string wave = "gang-" + std::to_string(seconds) + "-";
    std::vector<std::string> uids;
    for (int64_t g = 0; g < groups; ++g) {
      const std::string name = wave + std::to_string(g);
      for (int64_t m = 0; m < members; ++m) {
        const TestPod pod{.name = name + "-" + std::to_string(m), .cpu = 1'000, .group = name};
        engine.Apply(FactsOf(engine.vocabulary(), pod));
        uids.push_back("uid-" + pod.name);
      }
      engine.Apply(FactsOf(engine.vocabulary(),
                           TestGroup{.name = name, .min_member = static_cast<int32_t>(members)}));
    }
    size_t decided = 0;
    bench.ResumeTiming();
    while (engine.wake_at() <= Instant::FromSeconds(seconds)) {
      const std::clock_t before = std::clock();
      decided += engine.Cycle(Instant::FromSeconds(seconds)).binds.size();
      slowest = std::max(slowest, std::clock() - before);
      spent += std::clock() - before;
    }
    bench.PauseTiming();
    CHECK_EQ(decided, static_cast<size_t>(groups * members));
    for (const std::string& uid : uids) engine.Apply(model::PodRemove{.uid = uid});
    for (int64_t g = 0; g < groups; ++g)
      engine.Apply(model::GroupRemove{.uid = "uid-" + wave + std::to_string(g)});
    bench.ResumeTiming();
  }
  const auto micros = [](std::clock_t ticks) {
    return static_cast<int32_t>(ticks * 1'000'000 / CLOCKS_PER_SEC);
  };
  bench.counters["us_a_gang"] = micros(spent / (seconds * groups));
  bench.counters["us_slowest"] = micros(slowest);
}
BENCHMARK(Gangs)->Args({3'000, 3})->Args({10, 5'000})->Iterations(3)->Unit(benchmark::kMillisecond);

// A gang of ten on a cluster that is full of 4,000 jobs of lower priority: with all of them gone,
// there would be places for nine. The cycle that says so, on an engine that nobody asked before.
void GangThatCantFit(benchmark::State& bench) {
  constexpr int kNodes = 400;
  constexpr int kJobsPerNode = 10;
  constexpr int kLargeNodes = 9;
  Engine loaded({.preemption = true});
  for (int i = 0; i < kNodes; ++i) {
    const int64_t cpu = i < kLargeNodes ? 11'000 : 10'000;
    loaded.Apply(
        FactsOf(loaded.vocabulary(),
                TestNode{.name = "node-" + std::to_string(i), .cpu = cpu, .memory = 256 * kGi}));
  }
  for (int i = 0; i < kNodes * kJobsPerNode; ++i) {
    TestPod pod{.name = "job-" + std::to_string(i), .cpu = 1'000, .memory = kGi};
    pod.node = "node-" + std::to_string(i % kNodes);
    loaded.Apply(FactsOf(loaded.vocabulary(), pod));
  }
  std::clock_t slowest = 0;
  std::clock_t spent = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    {
      Engine engine = loaded;
      engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "gang", .min_member = 10}));
      for (int m = 0; m < 10; ++m) {
        TestPod pod{.name = "m-" + std::to_string(m), .cpu = 10'500, .group = "gang"};
        pod.priority = 100;
        engine.Apply(FactsOf(engine.vocabulary(), pod));
      }
      bench.ResumeTiming();
      const std::clock_t before = std::clock();
      const model::Plan plan = engine.Cycle(Instant::FromSeconds(1));
      slowest = std::max(slowest, std::clock() - before);
      spent += std::clock() - before;
      bench.PauseTiming();
      CHECK_EQ(plan.refused.size(), size_t{10});
      CHECK(plan.preemptions.empty());
      CHECK(plan.refusals.front().preemption.has_value());
    }
    bench.ResumeTiming();
  }
  const auto micros = [](std::clock_t ticks) {
    return static_cast<int32_t>(ticks * 1'000'000 / CLOCKS_PER_SEC);
  };
  bench.counters["us_a_verdict"] = micros(spent / static_cast<std::clock_t>(bench.iterations()));
  bench.counters["us_slowest"] = micros(slowest);
}
BENCHMARK(GangThatCantFit)->Iterations(20)->Unit(benchmark::kMillisecond);

// One pod leaves and one of many that wait takes its place.
void FreedPlace(benchmark::State& bench) {
  const auto waiting_classes = static_cast<int>(bench.range(0));
  Engine engine;
  AddNodes(engine, 5'000, 0);
  for (int i = 0; i < 5'000; ++i) {
    TestPod pod{
        .name = "big-" + std::to_string(i), .cpu = 64'000, .node = "node-" + std::to_string(i)};
    engine.Apply(FactsOf(engine.vocabulary(), pod));
  }
  for (int i = 0; i < waiting_classes; ++i) {
    engine.Apply(
        FactsOf(engine.vocabulary(),
                TestPod{.name = "w-" + std::to_string(i), .cpu = 65'000 + i % 1'000, .memory = i}));
  }
  int64_t now_ms = 1'000;
  while (engine.wake_at() <= Instant{now_ms * 1'000'000}) engine.Cycle(Instant{now_ms * 1'000'000});
  int i = 0;
  for (auto _ : bench) {
    TestPod pod{.name = "big-" + std::to_string(i % 5'000),
                .cpu = 64'000,
                .node = "node-" + std::to_string(i % 5'000)};
    engine.Apply(model::PodRemove{.uid = "uid-" + pod.name});
    now_ms += 1;
    const Instant now{now_ms * 1'000'000};
    while (engine.wake_at() <= now) benchmark::DoNotOptimize(engine.Cycle(now));
    bench.PauseTiming();
    engine.Apply(FactsOf(engine.vocabulary(), pod));
    ++i;
    bench.ResumeTiming();
  }
  bench.SetItemsProcessed(bench.iterations());
}
BENCHMARK(FreedPlace)->Arg(1)->Arg(100)->Arg(5'000)->Unit(benchmark::kMicrosecond);

// 10,000 pods that stand, of 20 classes; in each batch as many leave as come, so that each decision
// goes with a node that may have room again.
class Turnover {
 public:
  static constexpr int kBatch = 1'000;

  // Beside them wait pods of the highest priority, of so many classes, that no eviction helps:
  // they ask for more than a node has, or, `occupied`, for what their equals hold on each.
  Turnover(int waiting_pods, int waiting_classes, bool occupied) : engine_({.preemption = true}) {
    AddNodes(engine_, 5'000, 0);
    for (int i = 0; i < 5'000; ++i) {
      TestPod pod{.name = "s-" + std::to_string(i), .priority = kHighest};
      pod.cpu = 40'000;
      pod.node = "node-" + std::to_string(i);
      engine_.Apply(FactsOf(engine_.vocabulary(), pod));
    }
    for (int i = 0; i < waiting_pods; ++i) {
      TestPod pod{.name = "w-" + std::to_string(i), .priority = kHighest};
      pod.cpu = (occupied ? 35'000 : 80'000) + i % waiting_classes;
      engine_.Apply(FactsOf(engine_.vocabulary(), pod));
    }
    Add(kStanding);
    Decide();
  }

  // CPU time of a batch, in microseconds.
  int32_t Batch() {
    const std::clock_t before = std::clock();
    for (int i = 0; i < kBatch; ++i) {
      engine_.Apply(model::PodRemove{.uid = "uid-pod-" + std::to_string(next_ - kStanding + i)});
    }
    Add(kBatch);
    CHECK_EQ(Decide(), size_t{kBatch});
    return static_cast<int32_t>((std::clock() - before) * 1'000'000 / CLOCKS_PER_SEC);
  }

 private:
  static constexpr int kStanding = 10'000;
  static constexpr int32_t kHighest = 1'000'000;

  void Add(int count) {
    for (int i = 0; i < count; ++i)
      engine_.Apply(FactsOf(engine_.vocabulary(), PodOf(next_++, 20)));
  }
  // Time goes on as fast as 200,000 decisions a second take it.
  size_t Decide() {
    now_ms_ += 5;
    const Instant now{now_ms_ * 1'000'000};
    size_t decided = 0;
    while (engine_.wake_at() <= now) decided += engine_.Cycle(now).binds.size();
    return decided;
  }

  Engine engine_;
  int64_t now_ms_ = 1'000;
  int next_ = 0;
};

// What decisions cost beside 10,000 unschedulable pods of so many classes (0: beside none): batches
// with and without them take turns on two clusters, so that what else the machine does falls on
// both.
void BesideUnschedulable(benchmark::State& bench, bool occupied) {
  Turnover alone(0, 1, occupied);
  const auto classes = static_cast<int>(bench.range(0));
  Turnover beside(classes == 0 ? 0 : 10'000, classes, occupied);
  std::vector<int32_t> slower;  // Parts of 10,000.
  for (auto _ : bench) {
    const int32_t without = alone.Batch();
    const int32_t with = beside.Batch();
    bench.SetIterationTime(with / 1e6);
    slower.push_back((with - without) * 10'000 / without);
  }
  const auto median = slower.begin() + static_cast<std::ptrdiff_t>(slower.size() / 2);
  std::ranges::nth_element(slower, median);
  bench.counters["slower_percent"] = *median / 100.0;
  bench.SetItemsProcessed(bench.iterations() * Turnover::kBatch);
}
void NumbersOfClasses(benchmark::internal::Benchmark* bench) {
  for (const int64_t classes : {0, 1, 20, 10'000}) bench->Arg(classes);
  bench->UseManualTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(BesideUnschedulable, too_large, false)->Apply(NumbersOfClasses);
BENCHMARK_CAPTURE(BesideUnschedulable, occupied, true)->Apply(NumbersOfClasses);

// A pod takes the room of others on 5,000 full nodes of 39 pods each, of three priorities: the cycle
// in which it does. First: nobody did since the engine began. Next: another pod did before.
void TakesRoom(benchmark::State& bench, bool first) {
  constexpr int kNodes = 5'000;
  constexpr int kPodsPerNode = 39;  // 40 would leave none of the pods that the model takes.
  Engine loaded({.preemption = true});
  Prng prng(1);
  for (int i = 0; i < kNodes; ++i) {
    loaded.Apply(FactsOf(loaded.vocabulary(), TestNode{.name = "node-" + std::to_string(i),
                                                       .cpu = kPodsPerNode * 1'000,
                                                       .memory = 256 * kGi}));
  }
  for (int i = 0; i < kNodes * kPodsPerNode; ++i) {
    TestPod pod{.name = "p-" + std::to_string(i), .cpu = 1'000, .memory = kGi};
    pod.priority = static_cast<int32_t>(prng.Between(0, 2)) * 10;
    pod.node = "node-" + std::to_string(i % kNodes);
    model::PodUpsert facts = FactsOf(loaded.vocabulary(), pod);
    facts.start = Instant::FromSeconds(prng.Between(1, 1'000'000));
    loaded.Apply(facts);
  }
  const auto cycle_with = [](Engine& engine, TestPod pod, int64_t second) {
    pod.memory = kGi;
    pod.priority = 100;
    engine.Apply(FactsOf(engine.vocabulary(), pod));
    return engine.Cycle(Instant::FromSeconds(second)).preemptions.size();
  };
  for (auto _ : bench) {
    bench.PauseTiming();
    {
      Engine engine = loaded;
      // One that fits, so that the copy shares no memory any more.
      CHECK_EQ(cycle_with(engine, {.name = "fits", .cpu = 0}, 2'000'000), size_t{0});
      if (!first) CHECK_EQ(cycle_with(engine, {.name = "b", .cpu = 4'000}, 2'000'001), size_t{1});
      bench.ResumeTiming();
      CHECK_EQ(cycle_with(engine, {.name = "asks", .cpu = 4'000}, 2'000'002), size_t{1});
      bench.PauseTiming();
    }
    bench.ResumeTiming();
  }
  bench.SetItemsProcessed(bench.iterations());
}
BENCHMARK_CAPTURE(TakesRoom, first, true)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TakesRoom, next, false)->Iterations(20)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::cycle

BENCHMARK_MAIN();
