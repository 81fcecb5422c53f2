#include <benchmark/benchmark.h>
#include <malloc.h>

#include <string>

#include "model/audit.h"
#include "model/state.h"

// How fast facts come in, and what a fork costs.
namespace berth::model {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

NodeUpsert NodeFacts(State& state, int i) {
  Vocabulary& v = state.vocabulary();
  NodeUpsert facts{.name = "node-" + std::to_string(i),
                   .uid = "0b5c7a9e-1111-4222-8333-" + std::to_string(100000 + i)};
  facts.allocatable = {
      {kCpu, 64'000}, {kMemory, 256 * kGi}, {kEphemeralStorage, 500 * kGi}, {kPods, 110}};
  for (int k = 0; k < 12; ++k) {
    facts.labels.push_back({v.names.Intern("example.com/label-" + std::to_string(k)),
                            v.names.Intern(std::to_string(i % (k + 1)))});
  }
  facts.labels.push_back({v.names.Intern("kubernetes.io/hostname"), v.names.Intern(facts.name)});
  return facts;
}

PodUpsert PodFacts(ClassId class_id, int i, const std::string& node) {
  return {.uid = "7d6f2c1a-2222-4333-8444-" + std::to_string(10'000'000 + i),
          .key = "team-" + std::to_string(i % 20) + "/workload-" + std::to_string(i / 100) + "-" +
                 std::to_string(i),
          .class_id = class_id,
          .node = node,
          .creation = Instant::FromSeconds(i)};
}

std::vector<ClassId> Classes(State& state, int count) {
  std::vector<ClassId> classes;
  for (int i = 0; i < count; ++i) {
    const BundleId b = state.vocabulary().bundles.Intern(
        std::vector<ResourceAmount>{{kCpu, 100 + i}, {kMemory, kGi / 4}, {kPods, 1}});
    classes.push_back(state.vocabulary().classes.Intern(ClassSpec{.requests = b, .scoring = b}));
  }
  return classes;
}

State FullCluster(int nodes_count, int pods_count) {
  State state;
  for (int i = 0; i < nodes_count; ++i) state.Apply(NodeFacts(state, i));
  const auto classes = Classes(state, 20);
  for (int i = 0; i < pods_count; ++i) {
    state.Apply(PodFacts(classes[static_cast<size_t>(i) % classes.size()], i,
                         "node-" + std::to_string(i % nodes_count)));
  }
  return state;
}

void Fork(benchmark::State& bench) {
  const State state = FullCluster(5'000, 50'000);
  for (auto _ : bench) {
    State fork = state;
    benchmark::DoNotOptimize(&fork);
  }
}
BENCHMARK(Fork)->Unit(benchmark::kMillisecond);

void Hash(benchmark::State& bench) {
  const State state = FullCluster(5'000, 50'000);
  for (auto _ : bench) {
    Hasher hasher;
    state.AddTo(hasher);
    benchmark::DoNotOptimize(hasher.value());
  }
}
BENCHMARK(Hash)->Unit(benchmark::kMillisecond);

void AuditAll(benchmark::State& bench) {
  const State state = FullCluster(5'000, 50'000);
  for (auto _ : bench) benchmark::DoNotOptimize(Audit(state));
}
BENCHMARK(AuditAll)->Unit(benchmark::kMillisecond);

void PodComesAndGoes(benchmark::State& bench) {
  State state = FullCluster(5'000, 50'000);
  const ClassId c{0};
  int i = 100'000;
  for (auto _ : bench) {
    const PodUpsert pod = PodFacts(c, i, "node-" + std::to_string(i % 5'000));
    state.Apply(pod);
    state.Apply(PodRemove{.uid = pod.uid});
    state.TrimTouches(20'000);
    ++i;
  }
  bench.SetItemsProcessed(bench.iterations());
}
BENCHMARK(PodComesAndGoes);

void NodeHeartbeat(benchmark::State& bench) {
  State state = FullCluster(5'000, 50'000);
  std::vector<NodeUpsert> facts;
  for (int i = 0; i < 5'000; ++i) facts.push_back(NodeFacts(state, i));
  size_t i = 0;
  for (auto _ : bench) state.Apply(facts[i++ % facts.size()]);
  bench.SetItemsProcessed(bench.iterations());
}
BENCHMARK(NodeHeartbeat);

// A restart that lists as many nominated pods as nodes, and the pods first: a nomination's cost must
// not grow with their number.
void NominationsBeforeTheirNodes(benchmark::State& bench) {
  const int count = static_cast<int>(bench.range(0));
  for (auto _ : bench) {
    State state;
    const ClassId c = Classes(state, 1).front();
    for (int i = 0; i < count; ++i) {
      PodUpsert pod = PodFacts(c, i, "");
      pod.nominated = "node-" + std::to_string(count - 1 - i);
      state.Apply(pod);
    }
    for (int i = 0; i < count; ++i) state.Apply(NodeFacts(state, i));
    benchmark::DoNotOptimize(&state);
  }
  bench.SetItemsProcessed(bench.iterations() * count);
}
BENCHMARK(NominationsBeforeTheirNodes)->Arg(500)->Arg(2000)->Unit(benchmark::kMillisecond);

// A decision that evicts all that stands on an overcommitted node.
void EvictAllOnANodeThatLacks(benchmark::State& bench) {
  const auto count = static_cast<uint32_t>(bench.range(0));
  BundleTable bundles;
  TouchLog touches;
  Ledger ledger;
  ledger.Resize(kFixedResourcesCount, 1, 0);
  Claim claim{.account = AccountId::OfNode(NodeId{0}),
              .bundle = bundles.Intern(std::vector<ResourceAmount>{{kCpu, 100}, {kPods, 1}})};
  const auto change_all = [&](ClaimState state, Cause cause) {
    Transaction t(ledger, touches, bundles, Unfelt::kNothing);
    claim.state = state;
    for (uint32_t i = 0; i < count; ++i) {
      claim.owner = OwnerId{i};
      claim.priority = static_cast<int32_t>(i % 50);
      const ClaimId known = ledger.first_of_owner(claim.owner);
      known.valid() ? t.Change(known, claim) : static_cast<void>(t.Add(claim));
    }
    t.Commit(cause);
    touches.Trim(0);
  };
  for (auto _ : bench) {
    change_all(ClaimState::kHeld, Cause::kObserved);
    change_all(ClaimState::kReleasing, Cause::kDecided);
  }
  bench.SetItemsProcessed(bench.iterations() * count);
}
BENCHMARK(EvictAllOnANodeThatLacks)->Arg(500)->Arg(2000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::model

int main(int argc, char** argv) {
  // As the program does: forks come and go, so their memory stays mapped.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
