#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"

// Quota alone: a cycle that decides the heads of 1,000 ClusterQueues in one cohort, and what the
// arrival or end of one workload costs beside few and beside many that wait.
namespace berth::cycle {
namespace {

constexpr int kQueues = 1'000;
constexpr int64_t kQueueCpus = 20;
constexpr int kEquals = 4;  // That hold all of it, of 5 each.

// What becomes of the heads. Everybody may reclaim, and evict less important ones of its own queue.
enum class Heads : uint8_t {
  kFit,
  kRefused,  // All quota is held by their equals.
  kPreempt,  // Likewise by less important ones, 20 in each queue.
  kReclaim,  // Every second queue holds what is its neighbour's, too; of the others a head each.
};

class Tree {
 public:
  // `shapes`: so many different requests in each queue. `lines`: in so many queues they wait; all
  // but with Heads::kReclaim.
  Tree(Heads heads, int waiting, int shapes, int lines = kQueues)
      : engine_({.attempts_per_cycle_max = kQueues}), lines_(lines) {
    model::Vocabulary& v = engine_.vocabulary();
    const model::NameId flavor = v.names.Intern("default");
    engine_.Apply(model::FlavorUpsert{.name = "default", .uid = "u-default"});
    const std::vector<model::ResourceId> resources = {model::kCpu};
    const std::vector<model::NameId> flavors = {flavor};
    const std::vector<model::ResourceGroup> groups = {{.resources = resources, .flavors = flavors}};
    for (int q = 0; q < kQueues; ++q) {
      model::QueueUpsert facts{.name = fmt::format("q-{}", q),
                               .uid = fmt::format("u-q-{}", q),
                               .parent = "cohort",
                               .groups = v.resource_groups.Intern(groups)};
      facts.preemption = {.within_queue = model::EvictionPolicy::kLowerPriority,
                          .reclaim = model::EvictionPolicy::kAny};
      facts.quotas = {{.flavor = flavor,
                       .resource = model::kCpu,
                       .quota = {.nominal = kQueueCpus * 1'000, .borrowing_limit = 100'000}}};
      engine_.Apply(facts);
      engine_.Apply(model::LocalQueueUpsert{.uid = fmt::format("u-lq-{}", q),
                                            .key = fmt::format("default/q-{}", q),
                                            .cluster_queue = fmt::format("q-{}", q)});
      if (heads != Heads::kFit) Fill(heads, q);
    }
    const bool every_second = heads == Heads::kReclaim;
    for (int i = 0; i < waiting; ++i) {
      const int q = every_second ? i % (kQueues / 2) * 2 + 1 : i % lines;
      Put({.queue = q,
           .cpus = (heads == Heads::kFit ? 1 : 5) + i / lines % shapes,
           .priority = heads == Heads::kRefused ? 0 : 100});
    }
  }

  // A cycle; how many heads were decided.
  size_t Cycle() {
    const model::Plan plan = engine_.Cycle(now_);
    admitted_ += plan.reservations.size();
    return plan.reservations.size() + plan.workloads.size();
  }
  // Until nothing is to be done.
  void Settle() {
    while (engine_.wake_at() <= now_) Cycle();
  }

  // What was done since the last time that this was asked.
  struct Work {
    uint64_t heads = 0;     // That were decided.
    uint64_t admitted = 0;  // That got quota.
  };
  Work TakeWork() {
    const uint64_t heads = engine_.admissions().heads_decided();
    return {.heads = heads - std::exchange(heads_seen_, heads),
            .admitted = std::exchange(admitted_, 0)};
  }

  // Where others wait.
  void Arrives() { Put({.queue = next_ % lines_, .cpus = 5, .priority = 0}); }
  // One that holds quota is finished, of each queue in turn, and whoever gets its quota holds it.
  // REQUIRES: Heads::kRefused, and no more than there are queues.
  void Ends() {
    engine_.Apply(model::WorkloadRemove{.uid = fmt::format("u-{}", kEquals * ended_++)});
    while (engine_.wake_at() <= now_) {
      for (const model::ReserveDecision& decision : engine_.Cycle(now_).reservations)
        Admit(decision.workload);
    }
  }

 private:
  struct Spec {
    int queue = 0;
    int64_t cpus = 1;
    int32_t priority = 0;
    bool holds = false;
  };
  void Put(const Spec& w) {
    model::Vocabulary& v = engine_.vocabulary();
    const int i = next_++;
    model::WorkloadUpsert facts{.uid = fmt::format("u-{}", i),
                                .key = fmt::format("default/w-{}", i),
                                .local_queue = fmt::format("default/q-{}", w.queue),
                                .priority = w.priority};
    facts.status.created = Instant::FromSeconds(i);
    facts.slots = {{.name = v.names.Intern("main"),
                    .class_id = ClassOf(v, TestPod{.cpu = w.cpus * 1'000}),
                    .count = 1}};
    if (w.holds) {
      const model::ResourceAmount amount{.resource = model::kCpu, .amount = w.cpus * 1'000};
      facts.status.reserved = facts.status.admitted = true;
      facts.status.reserved_at = Instant::FromSeconds(i);
      facts.reserved = {.cluster_queue = v.names.Intern(fmt::format("q-{}", w.queue)),
                        .charges = {{.flavor = v.names.Intern("default"),
                                     .count = 1,
                                     .amounts = v.bundles.Intern({&amount, 1})}}};
    }
    engine_.Apply(facts);
  }
  void Fill(Heads heads, int q) {
    if (heads == Heads::kReclaim && q % 2 != 0) return;
    const bool one = heads == Heads::kRefused;
    const int count = one ? kEquals : heads == Heads::kPreempt ? 20 : 40;
    for (int i = 0; i < count; ++i) Put({.queue = q, .cpus = one ? 5 : 1, .holds = true});
  }
  void Admit(model::WorkloadId id) {
    ++admitted_;
    const model::Workload& row = engine_.state().workloads().at(id);
    model::WorkloadUpsert facts{.uid = std::string(engine_.state().UidOf(row.uid)),
                                .key = std::string(engine_.state().KeyOf(row.key)),
                                .local_queue = std::string(engine_.state().KeyOf(row.local_queue)),
                                .priority = row.priority,
                                .status = row.status,
                                .slots = row.slots,
                                .reserved = row.decided};
    facts.status.reserved = facts.status.admitted = true;
    facts.status.reserved_at = now_;
    engine_.Apply(facts);
  }

  Engine engine_;
  const int lines_;
  const Instant now_ = Instant::FromSeconds(1'000'000);
  int next_ = 0;
  int ended_ = 0;
  uint64_t heads_seen_ = 0;
  uint64_t admitted_ = 0;
};

// 50,000 wait. One round: of each queue the head.
void DecidesHeads(benchmark::State& bench, Heads heads) {
  const Tree loaded(heads, 50'000, 4);
  size_t decided = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    {
      Tree tree = loaded;
      bench.ResumeTiming();
      decided += tree.Cycle();
      bench.PauseTiming();
    }
    bench.ResumeTiming();
  }
  const size_t expected = heads == Heads::kReclaim ? kQueues / 2 : kQueues;
  CHECK_GE(decided, expected * static_cast<size_t>(bench.iterations()));
  bench.SetItemsProcessed(static_cast<int64_t>(decided));
}
BENCHMARK_CAPTURE(DecidesHeads, fit, Heads::kFit)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(DecidesHeads, refused, Heads::kRefused)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(DecidesHeads, preempt, Heads::kPreempt)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(DecidesHeads, reclaim, Heads::kReclaim)->Unit(benchmark::kMillisecond);

// One workload comes, or one that holds quota ends, and all that follows from it, where all quota
// is held and so many wait, of so many shapes in each queue. Beside it the same where 1,000 wait of
// each shape, in turns, so that what else the machine does falls on both: once in half of the queues,
// two in a line, so that whoever gets quota has one behind it which is looked at then, as beside
// many; and once in all of them, where nobody is.
// `times`: that it is done in each turn, for the clock counts microseconds. The label says what one
// change comes to in each.
template <typename Change>
void OneChange(benchmark::State& bench, int times, Change change) {
  const auto waiting = static_cast<int>(bench.range(0));
  const auto shapes = static_cast<int>(bench.range(1));
  const int few = 1'000 * shapes;
  Tree many(Heads::kRefused, waiting, shapes);
  Tree in_pairs(Heads::kRefused, few, shapes, kQueues / 2);
  Tree alone(Heads::kRefused, few, shapes);
  for (Tree* tree : {&many, &in_pairs, &alone}) {
    tree->Settle();
    tree->TakeWork();
  }
  const auto time_of = [&](Tree& tree) {
    const std::clock_t before = std::clock();
    for (int i = 0; i < times; ++i) change(tree);
    return std::max<std::clock_t>(std::clock() - before, 1);
  };
  std::vector<int64_t> percents;
  std::vector<int64_t> alone_percents;
  for (auto _ : bench) {
    const std::clock_t beside_few = time_of(in_pairs);
    const std::clock_t beside_many = time_of(many);
    const std::clock_t beside_alone = time_of(alone);
    bench.SetIterationTime(static_cast<int32_t>(beside_many) / 1e6 / times);
    percents.push_back(beside_many * 100 / beside_few);
    alone_percents.push_back(beside_many * 100 / beside_alone);
  }
  const auto median = [](std::vector<int64_t>& all) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::ranges::nth_element(all, at);
    return static_cast<int32_t>(*at);
  };
  bench.counters["percent_of_beside_1000"] = median(percents);
  bench.counters["percent_of_one_a_line"] = median(alone_percents);
  const auto work_of = [&](Tree& tree) {
    const Tree::Work work = tree.TakeWork();
    return fmt::format("{} heads and {} admitted in {} changes", work.heads, work.admitted,
                       bench.iterations() * times);
  };
  bench.SetLabel(fmt::format("{}; beside {}: {}, one a line: {};", work_of(many), few,
                             work_of(in_pairs), work_of(alone)));
}
void OneArrives(benchmark::State& bench) {
  OneChange(bench, 100, [](Tree& tree) {
    tree.Arrives();
    tree.Settle();
  });
}
void OneEnds(benchmark::State& bench) {
  OneChange(bench, 1, [](Tree& tree) { tree.Ends(); });
}
BENCHMARK(OneArrives)
    ->Args({1'000, 1})
    ->Args({50'000, 1})
    ->Iterations(50)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(OneEnds)
    ->Args({1'000, 1})
    ->Args({50'000, 1})
    ->Args({50'000, 3})
    ->Iterations(50)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth::cycle

BENCHMARK_MAIN();
