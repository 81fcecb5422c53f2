#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <vector>

#include "base/prng.h"
#include "model/state.h"
#include "place/evaluate.h"

// One class on 5,000 nodes of six sizes, half used, with labels and taints on some: all filters and
// both resource scores.
namespace berth::place {
namespace {

constexpr uint32_t kNodes = 5000;

struct Cluster {
  model::State state;
  model::ClassId plain;   // cpu and memory.
  model::ClassId choosy;  // With a selector, preferences and tolerations.
  model::ClassId gpu_share;
};

model::ClassId Intern(model::State& state, std::vector<model::ResourceAmount> amounts,
                      model::ClassSpec spec = {}) {
  amounts.push_back({model::kPods, 1});
  spec.requests = state.vocabulary().bundles.Intern(amounts);
  spec.scoring = spec.requests;
  return state.vocabulary().classes.Intern(spec);
}

Cluster Make() {
  Cluster c;
  Prng prng(1);
  model::Vocabulary& v = c.state.vocabulary();
  const model::NameId zone = v.names.Intern("zone");
  const model::NameId zones[] = {v.names.Intern("a"), v.names.Intern("b"), v.names.Intern("c")};
  const model::NameId dedicated = v.names.Intern("dedicated");
  const model::NameId none = v.names.Intern("");
  for (uint32_t i = 0; i < kNodes; ++i) {
    const int64_t size = prng.Between(1, 6);
    model::NodeUpsert node{.name = fmt::format("n{:05}", i), .uid = fmt::format("u{}", i)};
    node.allocatable = {{model::kCpu, size * 16'000},
                        {model::kMemory, size << 36},
                        {model::kEphemeralStorage, int64_t{1} << 40},
                        {model::kPods, 110},
                        {model::kGpuMilli, (i % 4 == 0) ? 8000 : 0}};
    node.labels = {{.key = zone, .value = zones[i % 3]}};
    if (i % 5 == 0) {
      node.taints = {
          {.key = dedicated, .value = none, .effect = model::TaintEffect::kPreferNoSchedule}};
    }
    c.state.Apply(node);
    const int64_t used = prng.Between(0, size * 12);
    const model::ClassId load =
        Intern(c.state, {{model::kCpu, used * 1000}, {model::kMemory, used << 31}});
    c.state.Apply(model::PodUpsert{.uid = fmt::format("p{}", i),
                                   .key = fmt::format("d/p{}", i),
                                   .class_id = load,
                                   .node = node.name});
  }
  c.plain = Intern(c.state, {{model::kCpu, 1500}, {model::kMemory, int64_t{3} << 30}});
  const model::SelectorSpec in_a = {.all = {{.key = zone, .values = {zones[0], zones[1]}}}};
  const model::SelectorSpec in_b = {
      .has_terms = true, .terms = {{.requirements = {{.key = zone, .values = {zones[1]}}}}}};
  const model::Preference preferences[] = {{.term = v.selectors.Intern(in_b), .weight = 10}};
  const model::Toleration tolerations[] = {{.key = dedicated, .op = model::TolerationOp::kExists}};
  c.choosy = Intern(c.state, {{model::kCpu, 1500}, {model::kMemory, int64_t{3} << 30}},
                    {.selector = v.selectors.Intern(in_a),
                     .preferences = v.preferences.Intern(preferences),
                     .tolerations = v.tolerations.Intern(tolerations)});
  c.gpu_share = Intern(c.state, {{model::kCpu, 1500}, {model::kGpuMilli, 300}},
                       {.gpu = {.share_milli = 300}});
  for (const model::ClassId id : {c.plain, c.choosy, c.gpu_share}) {
    c.state.Apply(model::PodUpsert{.uid = fmt::format("w{}", id.value),
                                   .key = fmt::format("d/w{}", id.value),
                                   .class_id = id});
  }
  return c;
}

void EvaluateAll(benchmark::State& bench, model::ClassId Cluster::* which) {
  const Cluster cluster = Make();
  const Evaluator evaluator;
  Evaluation out;
  for (auto _ : bench) {
    evaluator.EvaluateAll(cluster.state, cluster.*which, out);
    benchmark::DoNotOptimize(out.scores.data());
  }
  bench.SetItemsProcessed(bench.iterations() * kNodes);
}
BENCHMARK_CAPTURE(EvaluateAll, plain, &Cluster::plain)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(EvaluateAll, choosy, &Cluster::choosy)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(EvaluateAll, gpu_share, &Cluster::gpu_share)->Unit(benchmark::kMicrosecond);

// The oracle in the same run: node by node.
void FilterAndScoreOneByOne(benchmark::State& bench) {
  const Cluster cluster = Make();
  const Evaluator evaluator;
  for (auto _ : bench) {
    int64_t sum = 0;
    for (uint32_t row = 0; row < kNodes; ++row) {
      const model::NodeId n{row};
      if (!evaluator.Filter(cluster.state, cluster.plain, n, nullptr).fits()) continue;
      sum += evaluator.Score(cluster.state, cluster.plain, n).local;
    }
    benchmark::DoNotOptimize(sum);
  }
  bench.SetItemsProcessed(bench.iterations() * kNodes);
}
BENCHMARK(FilterAndScoreOneByOne)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth::place

BENCHMARK_MAIN();
