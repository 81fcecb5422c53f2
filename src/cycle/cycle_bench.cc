#include <benchmark/benchmark.h>

#include <string>
#include <utility>

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
// the cluster stays half full.
void Decisions(benchmark::State& bench, const place::Evaluator& evaluator, int nodes, int classes) {
  Engine engine({.evaluator = evaluator});
  AddNodes(engine, nodes, 0);
  constexpr int kBatch = 5'000;
  int next = 0;
  int64_t seconds = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    std::vector<model::PodUpsert> pods;
    for (int i = 0; i < kBatch; ++i)
      pods.push_back(FactsOf(engine.vocabulary(), PodOf(next + i, classes)));
    for (int i = 0; i < kBatch && next >= 4 * kBatch; ++i) {
      engine.Apply(model::PodRemove{.uid = "uid-pod-" + std::to_string(next - 4 * kBatch + i)});
    }
    next += kBatch;
    for (const model::PodUpsert& pod : pods) engine.Apply(pod);
    ++seconds;
    bench.ResumeTiming();
    size_t decided = 0;
    while (engine.wake_at() <= Instant::FromSeconds(seconds))
      decided += engine.Cycle(Instant::FromSeconds(seconds)).binds.size();
    CHECK_EQ(decided, size_t{kBatch});
  }
  bench.SetItemsProcessed(bench.iterations() * kBatch);
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

// Decisions beside 10,000 pods of the highest priority that no eviction helps, of so many classes;
// of none: without them. As many pods leave as come, so that each decision goes with a node that
// may have room again.
void BesideUnschedulable(benchmark::State& bench) {
  const auto waiting_classes = static_cast<int>(bench.range(0));
  Engine engine({.preemption = true});
  AddNodes(engine, 5'000, 0);
  for (int i = 0; waiting_classes > 0 && i < 10'000; ++i) {
    TestPod pod{.name = "w-" + std::to_string(i), .priority = 1'000'000};
    pod.cpu = 80'000 + i % waiting_classes;
    engine.Apply(FactsOf(engine.vocabulary(), pod));
  }
  constexpr int kBatch = 1'000;
  constexpr int kStanding = 10'000;
  int64_t now_ms = 1'000;
  int next = 0;
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      engine.Apply(FactsOf(engine.vocabulary(), PodOf(next++, 20)));
    }
  };
  const auto decide = [&] {
    now_ms += 100;
    const Instant now{now_ms * 1'000'000};
    size_t decided = 0;
    while (engine.wake_at() <= now) decided += engine.Cycle(now).binds.size();
    return decided;
  };
  add(kStanding);
  decide();
  for (auto _ : bench) {
    for (int i = 0; i < kBatch; ++i) {
      engine.Apply(model::PodRemove{.uid = "uid-pod-" + std::to_string(next - kStanding + i)});
    }
    add(kBatch);
    CHECK_EQ(decide(), size_t{kBatch});
  }
  bench.SetItemsProcessed(bench.iterations() * kBatch);
}
BENCHMARK(BesideUnschedulable)->Arg(0)->Arg(1)->Arg(20)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::cycle

BENCHMARK_MAIN();
