#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "model/state.h"
#include "place/preempt.h"

// The choice of victims on 5,000 full nodes of 39 pods each, of three priorities.
namespace berth::place {
namespace {

constexpr uint32_t kNodes = 5000;
constexpr uint32_t kPodsPerNode = 39;  // With the preemptors, as many pods as the model takes.
constexpr uint32_t kPreemptors = 1000;

// Uniform: pods of one size, and preemptors of four. Mixed: of five sizes. Protected: uniform, and
// budgets that allow nothing cover all.
enum Shape : int { kUniform, kMixed, kProtected };

struct Cluster {
  explicit Cluster(Shape shape) {
    Prng prng(1);
    for (uint32_t n = 0; n < kNodes; ++n) {
      state.Apply(model::NodeUpsert{.name = fmt::format("n{:05}", n),
                                    .uid = fmt::format("u{}", n),
                                    .allocatable = {{model::kCpu, kPodsPerNode * 1000},
                                                    {model::kMemory, int64_t{256} << 30},
                                                    {model::kPods, 110}}});
    }
    if (shape == kProtected) {
      state.Apply(
          model::BudgetUpsert{.key = "d/all", .selector = {{.key = "app", .values = {"web"}}}});
    }
    for (uint32_t i = 0; i < kNodes * kPodsPerNode; ++i) Bind(i, shape, prng);
    for (uint32_t i = 0; i < kPreemptors; ++i) {
      const std::string name = fmt::format("w{}", i);
      state.Apply(model::PodUpsert{
          .uid = name, .key = "d/" + name, .class_id = ClassOf(4000), .priority = 100});
      preemptors.push_back(state.FindPod(name));
    }
    state.SortNames();
  }

  model::ClassId ClassOf(model::Amount cpu) {
    const model::ResourceAmount amounts[] = {
        {model::kCpu, cpu}, {model::kMemory, int64_t{1} << 30}, {model::kPods, 1}};
    const model::BundleId bundle = state.vocabulary().bundles.Intern(amounts);
    return state.vocabulary().classes.Intern({.requests = bundle, .scoring = bundle});
  }

  void Bind(uint32_t i, Shape shape, Prng& prng) {
    const std::pair<std::string, std::string> labels[] = {{"app", "web"}};
    const model::Amount cpu = shape == kMixed ? prng.Between(3, 7) * 200 : 1000;
    state.Apply(model::PodUpsert{.uid = fmt::format("p{}", i),
                                 .key = fmt::format("d/p{}", i),
                                 .class_id = ClassOf(cpu),
                                 .node = fmt::format("n{:05}", i % kNodes),
                                 .labels = model::PodLabelsText("d", labels),
                                 .start = Instant::FromSeconds(prng.Between(1, 1'000'000)),
                                 .priority = static_cast<int32_t>(prng.Between(0, 2)) * 10});
  }

  model::State state;
  std::vector<model::PodId> preemptors;
};

// What was known before: nothing; the claims were summed up ahead; all that an earlier question
// found. 100 nodes changed since.
enum Before : int { kNothing, kSummedUp, kAsked };

void OnePreemptor(benchmark::State& bench, Shape shape, Before before) {
  Cluster cluster(shape);
  const Evaluator evaluator;
  PreemptionScratch scratch;
  uint32_t round = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    if (before != kAsked) scratch = PreemptionScratch();
    if (before == kSummedUp) CatchUpPreemption(cluster.state, evaluator, scratch);
    for (uint32_t i = 0; i < 100; ++i) {
      cluster.state.Apply(
          model::NodeUpsert{.name = fmt::format("n{:05}", i * 50),
                            .uid = fmt::format("u{}", i * 50),
                            .allocatable = {{model::kCpu, kPodsPerNode * 1000},
                                            {model::kMemory, (int64_t{256} << 30) + round % 2},
                                            {model::kPods, 110}}});
    }
    ++round;
    bench.ResumeTiming();
    const Preemption found =
        FindPreemption(cluster.state, evaluator, cluster.preemptors[0], scratch);
    CHECK(found.node.valid());
    benchmark::DoNotOptimize(found.victims.data());
  }
}
BENCHMARK_CAPTURE(OnePreemptor, uniform_first, kUniform, kNothing)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OnePreemptor, uniform_summed_up, kUniform, kSummedUp)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OnePreemptor, uniform_next, kUniform, kAsked)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OnePreemptor, mixed_first, kMixed, kNothing)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OnePreemptor, mixed_summed_up, kMixed, kSummedUp)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OnePreemptor, mixed_next, kMixed, kAsked)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OnePreemptor, protected_next, kProtected, kAsked)->Unit(benchmark::kMillisecond);

// 1,000 preemptors, one after another, each decided in the state.
void Burst(benchmark::State& bench, Shape shape) {
  const Cluster cluster(shape);
  const Evaluator evaluator;
  size_t victims_count = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    model::State state = cluster.state;
    PreemptionScratch scratch;
    victims_count = 0;
    bench.ResumeTiming();
    for (const model::PodId pod : cluster.preemptors) {
      const Preemption found = FindPreemption(state, evaluator, pod, scratch);
      CHECK(state.Promise(pod, found.node, found.devices, found.victims));
      victims_count += found.victims.size();
    }
  }
  bench.counters["victims"] = static_cast<double>(victims_count);
  bench.SetItemsProcessed(bench.iterations() * kPreemptors);
}
BENCHMARK_CAPTURE(Burst, uniform, kUniform)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Burst, mixed, kMixed)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::place

BENCHMARK_MAIN();
