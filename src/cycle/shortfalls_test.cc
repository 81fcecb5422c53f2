// Goal: who is not looked at when quota is given back would have been refused, so that the same is
// decided as if all of the tree were looked at. Method: two engines that differ in that alone, told
// the same random histories; and small worlds, printed.
#include "cycle/shortfalls.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>
#include <string>

#include "cycle/engine.h"
#include "cycle/test_quota.h"

namespace berth::cycle {
namespace {

// All of two queues' quota is theirs together, and who borrows finds nothing.
QuotaWorld TwoQueues(bool naive) {
  QuotaWorld world(Engine::Options{.naive_admissions = naive});
  world.Put(QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 4000}}});
  world.Put(QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 0}}});
  for (const std::string name : {"one", "two"})
    world.Starts({.name = name, .queue = "a", .count = 2});
  return world;
}

TEST(ShortfallsTest, WhoCannotHaveWhatIsGivenBackIsNotLookedAt) {
  QuotaWorld world = TwoQueues(/*naive=*/false);
  world.Put(WorkloadSpec{.name = "large", .queue = "b", .count = 3});
  EXPECT_EQ(world.Cycle(), "default/large lacks 3000; ");
  world.Remove("one");
  EXPECT_EQ(world.Cycle(), "") << "two are left, and it is not told so";
  world.Remove("two");
  EXPECT_EQ(world.Cycle(), "default/large: b spot 3000; ");
  QuotaWorld whole = TwoQueues(/*naive=*/true);
  whole.Put(WorkloadSpec{.name = "large", .queue = "b", .count = 3});
  EXPECT_EQ(whole.Cycle(), "default/large lacks 3000; ");
  whole.Remove("one");
  EXPECT_EQ(whole.Cycle(), "default/large lacks 1000; ");
}

TEST(ShortfallsTest, WhatIsGivenBackGoesToWhoseTurnItIs) {
  QuotaWorld world = TwoQueues(/*naive=*/false);
  world.Put(QueueSpec{.name = "c", .cohort = "all", .flavors = {{"spot", 0}}});
  world.Put(WorkloadSpec{.name = "late", .queue = "b", .count = 2, .created = 2});
  world.Put(WorkloadSpec{.name = "early", .queue = "c", .count = 2, .created = 1});
  EXPECT_EQ(world.Cycle(), "default/late lacks 2000; default/early lacks 2000; ");
  world.Remove("one");
  EXPECT_EQ(world.Cycle(), "default/early: c spot 2000; ");
  world.Remove("two");
  EXPECT_EQ(world.Cycle(), "default/late: b spot 2000; ");
}

TEST(ShortfallsTest, WhoCameToTheQueueMeanwhileMayBeEvicted) {
  for (const bool whole : {false, true}) {
    QuotaWorld world(Engine::Options{.naive_admissions = whole});
    world.Put(QueueSpec{.name = "a", .cohort = "all", .preemption = kEvicts});
    world.Put(QueueSpec{.name = "b", .cohort = "all"});
    world.Starts({.name = "top", .queue = "a", .count = 3, .priority = 9});
    for (const std::string name : {"one", "two"})
      world.Starts({.name = name, .queue = "b", .count = 2});
    world.Put(WorkloadSpec{.name = "waits", .queue = "a", .count = 3, .priority = 5});
    EXPECT_EQ(world.Cycle(), "default/waits lacks 2000; ");
    // Admitted by somebody else.
    model::Vocabulary& v = world.engine.vocabulary();
    const model::ResourceAmount cpu{.resource = model::kCpu, .amount = 1000};
    model::WorkloadUpsert low = world.FactsOf({.name = "low", .queue = "a"});
    low.status.reserved = low.status.admitted = true;
    low.status.reserved_at = world.now;
    low.reserved = {.cluster_queue = v.names.Intern("a"),
                    .charges = {{.flavor = v.names.Intern("spot"),
                                 .count = 1,
                                 .amounts = v.bundles.Intern({&cpu, 1})}}};
    world.engine.Apply(low);
    EXPECT_EQ(world.Cycle(), "");
    world.Remove("one");
    EXPECT_EQ(world.Cycle(),
              "evict default/low for default/waits; default/waits waits for 1 to leave; ");
  }
}

// What a shape lacks, but for how much.
std::string Gist(const std::optional<model::WorkloadRefusal>& refusal) {
  if (!refusal) return "no reason";
  std::string text = fmt::format("bar {} promised {} victims {}", static_cast<int>(refusal->bar),
                                 refusal->promised, refusal->victims_count);
  if (refusal->bar == model::QueueBar::kBehind)
    text += fmt::format(" behind {}", refusal->behind.value);
  for (const model::FlavorReason& reason : refusal->reasons)
    text += fmt::format(" {} of {}", static_cast<int>(reason.kind), reason.flavor.value);
  return text;
}

// Two engines that are told the same. One of them looks at all of a tree whenever quota of it is
// given back, and tells all of a strict queue each time whom they are behind.
class Twins {
 public:
  Twins() {
    ForEach([](QuotaWorld& world) {
      model::QueueUpsert low{.kind = model::QueueKind::kCohort, .name = "low", .uid = "u-low"};
      low.parent = "all";
      world.engine.Apply(low);
    });
  }
  void Put(const QueueSpec& queue) {
    story_ += fmt::format("{} in {} cpu {} flavors {} strict {} evicts {} {} {}\n", queue.name,
                          queue.cohort, queue.flavors.front().second, queue.flavors.size(),
                          queue.strict, static_cast<int>(queue.preemption.within_queue),
                          static_cast<int>(queue.preemption.reclaim), queue.preemption.borrows);
    ForEach([&](QuotaWorld& world) { world.Put(queue); });
  }
  void Put(const WorkloadSpec& w) {
    story_ += fmt::format("{} of {} count {} priority {} created {}\n", w.name, w.queue, w.count,
                          w.priority, w.created);
    ForEach([&](QuotaWorld& world) { world.Put(w); });
    specs_[w.name] = w;
  }
  void Remove(const std::string& name) {
    story_ += name + " goes\n";
    ForEach([&](QuotaWorld& world) { world.Remove(name); });
    specs_.erase(name);
  }
  // What is under way comes true; who is to be evicted is told so, or lets go.
  void EndWrites() {
    story_ += "writes end\n";
    for (const auto& [name, spec] : specs_) {
      const model::Workload row = worlds_[0].RowOf(name);
      if (row.write != model::WriteStage::kNone) {
        ForEach([&](QuotaWorld& world) { world.ComesTrue(spec); });
      } else if (IsToBeEvicted(row)) {
        ForEach([&](QuotaWorld& world) { world.IsTold(spec); });
      } else if (StageOf(row.status) == model::WorkloadStage::kEvicted) {
        ForEach([&](QuotaWorld& world) { world.Put(spec); });
      }
    }
  }
  void Pass() {
    ForEach([&](QuotaWorld& world) { world.now = world.now + Duration::Seconds(1); });
  }
  [[nodiscard]] const std::string& story() const { return story_; }
  [[nodiscard]] bool has(const std::string& name) const { return specs_.contains(name); }
  // What both decide until nothing is to be done; and whether one misses somebody.
  std::array<std::string, 2> Decide() {
    std::array<std::string, 2> texts;
    story_ += "decide\n";
    for (size_t i = 0; i < 2; ++i) {
      for (int cycle = 0; cycle < 40 && worlds_[i].engine.wake_at() <= worlds_[i].now; ++cycle)
        texts[i] += DecisionsOf(worlds_[i]);
      for (const auto& [name, spec] : specs_) {
        const model::WorkloadId id = worlds_[i].state().FindWorkload("u-" + name);
        const model::WorkloadId claimant = worlds_[i].state().workloads().at(id).claimant;
        texts[i] += fmt::format("{}: {}", name, Gist(worlds_[i].engine.admissions().WhyWaits(id)));
        if (claimant.valid()) texts[i] += fmt::format(", leaves for {}", claimant.value);
        texts[i] += "\n";
      }
      if (worlds_[i].engine.CountMissedWakes() > 0) texts[i] += "missed wakes";
    }
    return texts;
  }

 private:
  // Who gets quota. What is promised may be decided anew in the same cycle, or in the next; who is
  // told what, in which order, is another thing.
  static std::string DecisionsOf(QuotaWorld& world) {
    const model::Plan plan = world.engine.Cycle(world.now);
    const auto name = [&](model::WorkloadId w) {
      return world.state().KeyOf(world.state().workloads().at(w).key);
    };
    std::string text;
    for (const model::ReserveDecision& r : plan.reservations)
      text += fmt::format("{} gets, ", name(r.workload));
    return text;
  }
  template <typename Do>
  void ForEach(Do act) {
    for (QuotaWorld& world : worlds_) act(world);
  }

  std::array<QuotaWorld, 2> worlds_ = {
      QuotaWorld(Engine::Options{.attempts_per_cycle_max = 10'000}),
      QuotaWorld(Engine::Options{.attempts_per_cycle_max = 10'000, .naive_admissions = true})};
  std::map<std::string, WorkloadSpec> specs_;
  std::string story_;
};

QueueSpec AnyQueue(int i) {
  using model::EvictionPolicy;
  QueueSpec queue{.name = fmt::format("q{}", i)};
  queue.cohort = *rc::gen::inRange(0, 8) == 0 ? "low" : "all";
  queue.flavors = {{"spot", *rc::gen::inRange(0, 5) * 1000}};
  if (*rc::gen::inRange(0, 6) == 0) queue.flavors.emplace_back("late", 2000);
  queue.strict = *rc::gen::inRange(0, 4) == 0;
  queue.preemption.within_queue =
      *rc::gen::element(EvictionPolicy::kNever, EvictionPolicy::kNever,
                        EvictionPolicy::kLowerPriority, EvictionPolicy::kLowerOrNewerEqualPriority);
  queue.preemption.reclaim =
      *rc::gen::element(EvictionPolicy::kNever, EvictionPolicy::kNever,
                        EvictionPolicy::kLowerPriority, EvictionPolicy::kAny);
  queue.preemption.borrows = *rc::gen::inRange(0, 4) == 0;
  return queue;
}

RC_GTEST_PROP(ShortfallsProperty, WhoIsNotLookedAtWouldBeRefused, ()) {
  for (int histories = 0; histories < 10; ++histories) {
    Twins twins;
    constexpr int kQueues = 5;
    for (int i = 0; i < kQueues; ++i) twins.Put(AnyQueue(i));
    const int steps = *rc::gen::inRange(1, 80);
    for (int step = 0; step < steps; ++step) {
      const std::string name = fmt::format("w{}", *rc::gen::inRange(0, 16));
      const int what = *rc::gen::inRange(0, 10);
      if (what == 0 && *rc::gen::inRange(0, 4) == 0) {
        twins.Put(AnyQueue(*rc::gen::inRange(0, kQueues)));
      } else if (what < 5 && !twins.has(name)) {
        twins.Put(WorkloadSpec{.name = name,
                               .queue = fmt::format("q{}", *rc::gen::inRange(0, kQueues)),
                               .count = static_cast<uint32_t>(*rc::gen::inRange(1, 6)),
                               .priority = *rc::gen::inRange(0, 3),
                               .created = *rc::gen::inRange(0, 5)});
      } else if (what < 8) {
        if (twins.has(name)) twins.Remove(name);
      } else {
        twins.EndWrites();
      }
      twins.Pass();
      if (*rc::gen::inRange(0, 3) == 0) continue;  // Several changes before a cycle.
      const auto [one, other] = twins.Decide();
      if (one != other) RC_LOG() << twins.story() << "\n" << one << "\n--- all woken:\n" << other;
      RC_ASSERT(one == other);
    }
  }
}

}  // namespace
}  // namespace berth::cycle
