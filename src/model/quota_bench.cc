#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "model/naive_quota.h"
#include "model/state.h"

// What a charge to a queue costs, four levels deep, however many queues there are; beside the
// recurrence computed anew.
namespace berth::model {
namespace {

constexpr Amount kGi = Amount{1} << 30;

// A root, ten cohorts under it, ten under each of these, and queues under all of them in turn. Half
// of the queues keep a part of their quota for themselves. All use more than they have, so that
// every charge climbs to the root.
struct Tree {
  explicit Tree(int queues) {
    flavor = state.vocabulary().names.Intern("default");
    Put(QueueKind::kCohort, "root", "", 1'000'000'000);
    for (int i = 0; i < 10; ++i) Put(QueueKind::kCohort, "c" + std::to_string(i), "root", 0);
    for (int i = 0; i < 100; ++i)
      Put(QueueKind::kCohort, "d" + std::to_string(i), "c" + std::to_string(i % 10), 0);
    for (int i = 0; i < queues; ++i) {
      const std::string name = "q" + std::to_string(i);
      Put(QueueKind::kClusterQueue, name, "d" + std::to_string(i % 100), 10'000,
          i % 2 == 0 ? 5'000 : kUnlimited);
      const QueueId q = state.FindQueue(QueueKind::kClusterQueue, name);
      accounts.push_back(state.queues().AccountOf(q, flavor));
    }
    bundle = state.vocabulary().bundles.Intern(
        std::vector<ResourceAmount>{{kCpu, 1'000}, {kMemory, 4 * kGi}, {kPods, 1}});
    for (uint32_t i = 0; i < accounts.size(); ++i) {
      Transaction t = state.Begin();
      t.Add(ClaimOf(i, i));
      t.Commit(Cause::kObserved);
    }
  }
  void Put(QueueKind kind, const std::string& name, const std::string& parent, Amount cpu,
           Amount lending_limit = kUnlimited) {
    QueueUpsert facts{.kind = kind, .name = name, .uid = "u-" + name, .parent = parent};
    for (const ResourceId r : {kCpu, kMemory, kPods}) {
      const Amount factor = r == kMemory ? kGi / 1'000 : 1;
      const Amount kept = lending_limit == kUnlimited ? kUnlimited : lending_limit * factor;
      facts.quotas.push_back({flavor, r, {.nominal = cpu * factor, .lending_limit = kept}});
    }
    state.Apply(facts);
  }
  [[nodiscard]] Claim ClaimOf(uint32_t owner, uint32_t queue) const {
    return {.owner = OwnerId{owner},
            .count = 20,
            .account = AccountId::OfTree(accounts[queue]),
            .bundle = bundle,
            .why = ClaimWhy::kAdmitted};
  }

  State state;
  NameId flavor;
  std::vector<uint32_t> accounts;
  BundleId bundle;
};

// One admission and its end, as two decisions with three resources each.
void AdmitAndEnd(benchmark::State& bench) {
  Tree tree(static_cast<int>(bench.range(0)));
  const auto queues = static_cast<uint32_t>(tree.accounts.size());
  uint32_t i = 0;
  for (auto _ : bench) {
    Transaction t = tree.state.Begin();
    const ClaimId id = t.Add(tree.ClaimOf(queues, i++ * 7 % queues));
    t.Commit(Cause::kDecided);
    Transaction end = tree.state.Begin();
    end.End(id);
    end.Commit(Cause::kOwnerFinished);
  }
  bench.SetItemsProcessed(bench.iterations() * 2);
}
BENCHMARK(AdmitAndEnd)->Arg(10)->Arg(1'000)->Arg(5'000);

// What is left to each queue, of three resources.
void LeftOfEach(benchmark::State& bench) {
  const Tree tree(static_cast<int>(bench.range(0)));
  const Viewer viewer{.owner = OwnerId{1'000'000}};
  for (auto _ : bench) {
    for (const uint32_t account : tree.accounts) {
      for (const ResourceId r : {kCpu, kMemory, kPods}) {
        benchmark::DoNotOptimize(tree.state.ledger().Now(AccountId::OfTree(account), r, viewer,
                                                         tree.state.vocabulary().bundles));
      }
    }
  }
  bench.SetItemsProcessed(bench.iterations() * bench.range(0));
}
BENCHMARK(LeftOfEach)->Arg(1'000)->Unit(benchmark::kMicrosecond);

// The oracle: one resource of all queues, anew.
void NaiveLeftOfEach(benchmark::State& bench) {
  const Tree tree(static_cast<int>(bench.range(0)));
  const QuotaTree& quota = tree.state.ledger().quota();
  std::vector<NaiveQuota::Row> rows;
  for (uint32_t row = 0; row < quota.size(); ++row)
    rows.push_back({.parent = quota.parent(row), .quota = quota.quota(kCpu, row)});
  for (auto _ : bench) {
    const NaiveQuota naive(rows);
    for (const uint32_t account : tree.accounts)
      benchmark::DoNotOptimize(naive.LeftFor(QuotaView::kNow, account));
  }
  bench.SetItemsProcessed(bench.iterations() * bench.range(0));
}
BENCHMARK(NaiveLeftOfEach)->Arg(1'000)->Unit(benchmark::kMicrosecond);

// A queue's quota is changed, and changed back.
void ChangeQuota(benchmark::State& bench) {
  Tree tree(static_cast<int>(bench.range(0)));
  const auto queues = static_cast<int>(tree.accounts.size());
  int i = 0;
  for (auto _ : bench) {
    const int queue = i++ * 7 % queues;
    for (const Amount cpu : {9'000, 10'000}) {
      tree.Put(QueueKind::kClusterQueue, "q" + std::to_string(queue),
               "d" + std::to_string(queue % 100), cpu, queue % 2 == 0 ? 5'000 : kUnlimited);
    }
  }
  bench.SetItemsProcessed(bench.iterations() * 2);
}
BENCHMARK(ChangeQuota)->Arg(1'000)->Arg(5'000);

void ForkOfATreeOfQueues(benchmark::State& bench) {
  const Tree tree(static_cast<int>(bench.range(0)));
  for (auto _ : bench) {
    State fork = tree.state;
    benchmark::DoNotOptimize(&fork);
  }
}
BENCHMARK(ForkOfATreeOfQueues)->Arg(1'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth::model

BENCHMARK_MAIN();
