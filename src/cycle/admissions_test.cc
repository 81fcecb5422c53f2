// Goal: workloads get quota in the order of their queues, all of it or none, and whoever could have
// it is not left waiting. Method: plans of small worlds, printed; and random histories, after each
// step of which the audit, the watchdog and a count of what is left are asked.
#include "cycle/admissions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/test_quota.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

TEST(AdmissionsTest, TheFirstInOrderGetsWhatIsLeft) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "young", .count = 3, .created = 20});
  world.Put(WorkloadSpec{.name = "old", .count = 2, .created = 10});
  world.Put(WorkloadSpec{.name = "dear", .count = 1, .priority = 5, .created = 30});
  EXPECT_EQ(world.Cycle(),
            "default/dear: q spot 1000; default/old: q spot 2000; default/young lacks 2000; ");
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.engine.wake_at(), Instant::Never());
  world.Remove("old");
  EXPECT_EQ(world.Cycle(), "default/young: q spot 3000; ");
}

TEST(AdmissionsTest, WhoIsLessImportantThanItWasGivesWay) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  WorkloadSpec low = {.name = "low", .count = 4, .priority = 5};
  world.Starts(low);
  world.Put(WorkloadSpec{.name = "waits", .count = 2, .priority = 3});
  EXPECT_EQ(world.Cycle(), "default/waits lacks 2000; ");
  low.priority = 3;
  world.Observe(low);
  EXPECT_EQ(world.Cycle(), "");
  low.priority = 2;
  world.Observe(low);
  EXPECT_TRUE(world.Cycle().starts_with("evict default/low for default/waits; "));
}

// Kueue's rule, whatever comes of it; the priority itself wakes those alone that may evict.
TEST(AdmissionsTest, AnotherWorkloadPriorityClassOfWhoHoldsQuotaWakesItsTree) {
  for (const bool of_class : {true, false}) {
    QuotaWorld world;
    world.Put(QueueSpec{.name = "q"});
    model::WorkloadUpsert holder = world.FactsOf({.name = "holder", .count = 4, .priority = 5});
    if (of_class) holder.priority_class = world.engine.vocabulary().names.Intern("a");
    holder.status.reserved = holder.status.admitted = true;
    holder.reserved = {.cluster_queue = world.engine.vocabulary().names.Intern("q"), .charges = {}};
    holder.reserved.charges = {
        {.pod_set = 0,
         .flavor = world.engine.vocabulary().names.Intern("spot"),
         .count = 4,
         .amounts = world.state().vocabulary().classes.at(holder.slots[0].class_id).requests}};
    world.engine.Apply(holder);
    world.Put(WorkloadSpec{.name = "waits", .count = 2, .priority = 3});
    EXPECT_EQ(world.Cycle(), "default/waits lacks 2000; ");
    const auto wakes = [&] {
      world.engine.Apply(holder);
      const bool due = world.engine.admissions().IsToBeTried(world.state(),
                                                             world.state().FindWorkload("u-waits"));
      EXPECT_EQ(world.Cycle(), "");
      return due;
    };
    EXPECT_FALSE(wakes()) << "nothing is new";
    holder.priority = 1;
    EXPECT_EQ(wakes(), of_class);
    holder.priority = 9;
    EXPECT_EQ(wakes(), of_class);
    if (of_class) holder.priority_class = world.engine.vocabulary().names.Intern("b");
    EXPECT_EQ(wakes(), of_class);
    holder.priority_class = {};
    EXPECT_FALSE(wakes());
  }
}

// A promise is of what its object asked for, as of the generation that was looked at.
TEST(AdmissionsTest, APromiseEndsWithTheGeneration) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  world.Starts({.name = "low", .count = 4});
  model::WorkloadUpsert high = world.FactsOf({.name = "high", .count = 2, .priority = 5});
  high.generation = 1;
  world.engine.Apply(high);
  world.Cycle();
  EXPECT_TRUE(world.RowOf("low").claimant.valid());
  world.engine.Apply(high);
  EXPECT_TRUE(world.RowOf("low").claimant.valid());
  high.generation = 2;
  world.engine.Apply(high);
  EXPECT_EQ(world.RowOf("high").promised, model::Reservation{});
  EXPECT_FALSE(world.RowOf("low").claimant.valid());
  EXPECT_TRUE(world.Cycle().starts_with("evict default/low for default/high; ")) << "decided anew";
}

TEST(AdmissionsTest, WhoHasMorePodsThanASchedulerHoldsStandsInNobodysWay) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .strict = true});
  world.Put(WorkloadSpec{.name = "many", .count = limits::kSlotsMax + 1, .created = 1});
  world.Put(WorkloadSpec{.name = "most", .count = limits::kSlotsMax, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/many too many; default/most wants 200000000 of 4000; ");
}

TEST(AdmissionsTest, WhoFindsNoQuotaLetsOthersPass) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "large", .count = 5, .created = 1});
  world.Put(WorkloadSpec{.name = "small", .count = 1, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/small: q spot 1000; default/large wants 5000 of 4000; ");
}

TEST(AdmissionsTest, NobodyPassesInAStrictQueue) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .strict = true});
  world.Put(WorkloadSpec{.name = "running", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/running: q spot 2000; ");
  world.Put(WorkloadSpec{.name = "first", .count = 3, .created = 1});
  world.Put(WorkloadSpec{.name = "second", .count = 1, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/first lacks 1000; default/second behind default/first; ");
  world.Put(WorkloadSpec{.name = "third", .count = 1, .created = 3});
  EXPECT_EQ(world.Cycle(), "default/third behind default/first; ");
  world.Put(WorkloadSpec{.name = "dear", .count = 1, .priority = 1, .created = 4});
  EXPECT_EQ(world.Cycle(), "default/dear: q spot 1000; ");
  world.Remove("first");
  EXPECT_EQ(world.Cycle(), "default/second: q spot 1000; default/third lacks 1000; ");
}

TEST(AdmissionsTest, HowMuchIsMissingIsToldAsOfNow) {
  const auto lends = [](const char* name, uint32_t count) {
    return WorkloadSpec{.name = name, .queue = "b", .count = count};
  };
  QuotaWorld world;
  world.Put(QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 0}}});
  world.Put(QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 10000}}});
  for (const auto& w : {lends("x", 6), lends("y", 2), lends("z", 2)}) world.Starts(w);
  world.Put(WorkloadSpec{.name = "waits", .queue = "a", .count = 10});
  EXPECT_EQ(world.Cycle(), "default/waits lacks 10000; ");
  const uint64_t heads = world.engine.admissions().heads_decided();
  const auto lacks = [&] {
    const model::WorkloadId id = world.state().FindWorkload("u-waits");
    const auto why = world.engine.admissions().WhyWaitsNow(world.state(), id);
    return fmt::format("{} beside {}", why->reasons.at(0).amount, why->reasons.at(0).most);
  };
  EXPECT_EQ(lacks(), "10000 beside 0");
  world.Remove("y");
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.engine.admissions().heads_decided(), heads) << "it was looked at: nothing is old";
  EXPECT_EQ(lacks(), "8000 beside 2000");
  world.Put(lends("small", 1));
  EXPECT_EQ(world.Cycle(), "default/small: b spot 1000; ");
  EXPECT_EQ(lacks(), "9000 beside 1000") << "others took of it since";
}

TEST(AdmissionsTest, QueuesOfACohortAreServedTogether) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 2000}}});
  world.Put(QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 2000}}});
  world.Put(WorkloadSpec{.name = "borrows", .queue = "a", .count = 3, .priority = 9, .created = 1});
  world.Put(WorkloadSpec{.name = "owns", .queue = "b", .count = 2, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/owns: b spot 2000; default/borrows lacks 1000; ")
      << "who borrows nothing comes before who is more important";
  world.ComesTrue({.name = "owns", .queue = "b", .count = 2, .created = 2});
  EXPECT_EQ(world.Cycle(), "");
  world.Remove("owns");
  EXPECT_EQ(world.Cycle(), "default/borrows: a spot 3000; ") << "freed in another queue";
}

TEST(AdmissionsTest, TheSecondFlavorIsTakenWhenTheFirstIsUsedUp) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"reserved", 1000}, {"spot", 3000}}});
  world.Put(WorkloadSpec{.name = "a", .created = 1});
  world.Put(WorkloadSpec{.name = "b", .created = 2});
  EXPECT_EQ(world.Cycle(), "default/a: q reserved 1000; default/b: q spot 1000; ");
}

TEST(AdmissionsTest, WhatBarsAWorkloadIsToldOnce) {
  QuotaWorld world;
  world.Put(WorkloadSpec{.name = "w"});
  EXPECT_EQ(world.Cycle(), "default/w has no local queue; ");
  world.engine.Apply(model::LocalQueueUpsert{.uid = "u-1",
                                             .key = "default/q",
                                             .cluster_queue = "q",
                                             .bar = model::LocalQueueBar::kStopped});
  EXPECT_EQ(world.Cycle(), "default/w local queue stopped; ");
  world.engine.Apply(model::LocalQueueUpsert{.uid = "u-1",
                                             .key = "default/q",
                                             .cluster_queue = "q",
                                             .bar = model::LocalQueueBar::kNamespace});
  EXPECT_EQ(world.Cycle(), "default/w namespace; ");
  world.engine.Apply(
      model::LocalQueueUpsert{.uid = "u-1", .key = "default/q", .cluster_queue = "q"});
  EXPECT_EQ(world.Cycle(), "default/w has no cluster queue; ");
  world.Put(QueueSpec{.name = "q", .stopped = true});
  EXPECT_EQ(world.Cycle(), "default/w cluster queue stopped; ");
  world.Put(QueueSpec{.name = "q", .cohort = "c"});
  model::QueueUpsert cycle{.kind = model::QueueKind::kCohort, .name = "c", .uid = "u-c"};
  cycle.parent = "c";
  world.engine.Apply(cycle);
  EXPECT_EQ(world.Cycle(), "default/w cycle; ");
  EXPECT_EQ(world.Cycle(), "");
  world.engine.Apply(model::FlavorRemove{.name = "spot"});
  cycle.parent = "";
  world.engine.Apply(cycle);
  EXPECT_EQ(world.Cycle(), "default/w inactive; ") << "its flavor is not there";
  world.engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-again"});
  world.Put(QueueSpec{.name = "q", .cohort = "c", .lacks_checks = true});
  EXPECT_EQ(world.Cycle(), "") << "it was told so";
  world.Put(QueueSpec{.name = "q", .cohort = "c"});
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
}

// K063 of docs/REGRESSIONS.md.
TEST(AdmissionsTest, WhoAsksForNothingIsServedWhereTooMuchIsUsed) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "a", .count = 4});
  EXPECT_EQ(world.Cycle(), "default/a: q spot 4000; ");
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 1000}}});
  world.Put(WorkloadSpec{.name = "none", .count = 0, .created = 1});
  world.Put(WorkloadSpec{.name = "b", .count = 1, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/none: q; default/b lacks 1000; ");
}

TEST(AdmissionsTest, WhatACohortHeldBackIsToBeHadWhenItGoes) {
  QuotaWorld world;
  const auto cohort = [&](const std::string& name, const std::string& parent) {
    model::QueueUpsert facts{.kind = model::QueueKind::kCohort, .name = name, .uid = "u-" + name};
    facts.parent = parent;
    world.engine.Apply(facts);
  };
  cohort("root", "");
  cohort("mid", "root");
  world.Put(QueueSpec{.name = "c", .cohort = "mid", .flavors = {{"spot", 2000}}});
  world.Put(QueueSpec{.name = "d", .cohort = "root", .flavors = {{"spot", 2000}}});
  world.Put(WorkloadSpec{.name = "borrows", .queue = "d", .count = 4});
  EXPECT_EQ(world.Cycle(), "default/borrows: d spot 4000; ");
  world.Put(WorkloadSpec{.name = "owns", .queue = "c", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/owns lacks 2000; ");
  world.engine.Apply(
      model::QueueRemove{.kind = model::QueueKind::kCohort, .name = "mid", .uid = "u-mid"});
  EXPECT_EQ(world.Cycle(), "default/owns: c spot 2000; ");
  world.engine.Apply(model::QueueRemove{.name = "d", .uid = "u-d"});
  world.Put(WorkloadSpec{.name = "late", .queue = "d"});
  EXPECT_EQ(world.Cycle(), "default/late has no cluster queue; ");
}

TEST(AdmissionsTest, ABackoffIsWaitedFor) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "w", .requeue_at = 1010});
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.engine.wake_at(), Instant::FromSeconds(1010));
  world.now = Instant::FromSeconds(1010);
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
}

TEST(AdmissionsTest, ARefusedWriteIsTriedAgainLater) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "w", .count = 4, .created = 1});
  world.Put(WorkloadSpec{.name = "next", .count = 4, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/w: q spot 4000; default/next lacks 4000; ");
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-w", .outcome = model::WriteOutcome::kRefused, .at = world.now});
  EXPECT_EQ(world.Cycle(), "default/next: q spot 4000; ") << "what was taken back is to be had";
  EXPECT_EQ(world.engine.wake_at(), world.now + Duration::Seconds(1));
  world.now = world.now + Duration::Seconds(1);
  EXPECT_EQ(world.Cycle(), "default/w lacks 4000; ");
}

// ---- Evictions -------------------------------------------------------------------------------

const WorkloadSpec kLow{.name = "low", .count = 3};
const WorkloadSpec kHigh{.name = "high", .count = 3, .priority = 5, .created = 1};

// Upstream gives quota that evictions free to whoever comes first (K081, K083 of
// docs/REGRESSIONS.md).
TEST(AdmissionsTest, WhatTheEvictedLeaveIsForWhomTheyLeave) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .cohort = "all", .preemption = kEvicts});
  world.Put(QueueSpec{.name = "rivals", .cohort = "all", .flavors = {{"spot", 0}}});
  world.Starts(kLow);
  world.Put(kHigh);
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
  world.Put(WorkloadSpec{.name = "thief", .queue = "rivals", .count = 2, .priority = 9});
  EXPECT_EQ(world.Cycle(), "default/thief lacks 1000; ");
  world.IsTold(kLow);
  EXPECT_EQ(world.Cycle(), "") << "it goes, and has its quota still";
  world.Put(kLow);
  EXPECT_EQ(world.Cycle(), "default/high: q spot 3000; default/low lacks 2000; ");
}

TEST(AdmissionsTest, WhatLeavesIsNotCountedTwice) {
  QuotaWorld world;
  world.Put(
      QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(
      QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Starts({.name = "low", .queue = "a", .count = 2});
  world.Starts({.name = "bystander", .queue = "b", .count = 1});
  world.Put(WorkloadSpec{.name = "high", .queue = "a", .count = 2, .priority = 5});
  world.Cycle();
  world.Put(WorkloadSpec{.name = "owns", .queue = "b", .count = 1, .priority = 5});
  EXPECT_EQ(world.Cycle(), "default/owns: b spot 1000; ")
      << "there is room before and after, and nobody else has to go";
}

// Finding 4 of the reference: between the eviction and the write another one could come first.
TEST(AdmissionsTest, WhatWasDecidedIsPromisedUntilItIsWritten) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .cohort = "all", .flavors = {{"spot", 0}}});
  world.Put(QueueSpec{.name = "rivals", .cohort = "all"});
  world.Put(kHigh);
  EXPECT_EQ(world.Cycle(), "default/high: q spot 3000; ");
  world.Put(WorkloadSpec{.name = "thief", .queue = "rivals", .count = 3, .priority = 9});
  EXPECT_EQ(world.Cycle(), "default/thief lacks 2000; ") << "and would come first";
  const auto ends = [&](model::WriteOutcome outcome) {
    world.engine.Apply(
        model::ReservationOutcome{.uid = "u-high", .outcome = outcome, .at = world.now});
  };
  world.Put(kHigh);  // A version that says nothing new.
  for (const auto bar : {model::LocalQueueBar::kStopped, model::LocalQueueBar::kNone}) {
    world.engine.Apply(model::LocalQueueUpsert{
        .uid = "u-lq-q", .key = "default/q", .cluster_queue = "q", .bar = bar});
    EXPECT_EQ(world.Cycle(), "");
  }
  ends(model::WriteOutcome::kNotSent);
  EXPECT_EQ(world.Cycle(), "default/high: q spot 3000; ");
  ends(model::WriteOutcome::kConflict);
  EXPECT_EQ(world.Cycle(), "");
  world.engine.Apply(model::ReservationRead{.uid = "u-high"});
  EXPECT_EQ(world.Cycle(), "default/high: q spot 3000; ");
  WorkloadSpec larger = kHigh;
  larger.count = 4;
  world.Put(larger);
  ends(model::WriteOutcome::kNotSent);
  EXPECT_EQ(world.Cycle(), "default/thief: rivals spot 3000; default/high lacks 3000; ");
}

// K090 of docs/REGRESSIONS.md: others were admitted while the first one's victims left.
TEST(AdmissionsTest, NobodyPassesInAStrictQueueWhileVictimsLeave) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .strict = true, .preemption = kEvicts});
  world.Starts(kLow);
  world.Put(kHigh);
  world.Put(WorkloadSpec{.name = "small", .count = 1, .priority = 1});
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; "
            "default/small behind default/high; ");
  world.Remove("low");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 3000; default/small: q spot 1000; ");
}

TEST(AdmissionsTest, WhoIsBarredInAStrictQueueIsPromisedNothing) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .strict = true, .preemption = kEvicts});
  world.Starts(kLow);
  world.Put(kHigh);
  world.Cycle();
  world.Put(WorkloadSpec{.name = "top", .count = 5, .priority = 9});
  EXPECT_EQ(world.Cycle(), "default/top wants 5000 of 4000; default/high behind default/top; ");
  EXPECT_FALSE(world.RowOf("low").claimant.valid());
}

TEST(AdmissionsTest, NobodyLeavesForTwo) {
  QuotaWorld world;
  for (const std::string name : {"a", "b"}) {
    world.Put(QueueSpec{
        .name = name, .cohort = "all", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  }
  world.Put(QueueSpec{.name = "c", .cohort = "all", .flavors = {{"spot", 0}}});
  world.Starts({.name = "c1", .queue = "c", .count = 2});
  world.Starts({.name = "c2", .queue = "c", .count = 2});
  world.Put(WorkloadSpec{.name = "x", .queue = "a", .count = 2});
  world.Put(WorkloadSpec{.name = "y", .queue = "b", .count = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/c1 for default/x; evict default/c2 for default/y; "
            "default/x waits for 1 to leave; default/y waits for 1 to leave; ");
}

TEST(AdmissionsTest, WhatIsBorrowedMayBeReclaimedByWhoFoundNothingBefore) {
  QuotaWorld world;
  model::QueuePreemption lower = kEvicts;
  lower.reclaim = model::EvictionPolicy::kLowerPriority;
  world.Put(
      QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 4000}}, .preemption = lower});
  world.Put(QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 5000}}});
  world.Put(QueueSpec{.name = "c", .cohort = "all", .flavors = {{"spot", 0}}});
  world.Starts({.name = "dear", .queue = "c", .count = 3, .priority = 9});
  world.Starts({.name = "within", .queue = "b", .count = 5});
  world.Put(WorkloadSpec{.name = "owns", .queue = "a", .count = 4, .priority = 5});
  EXPECT_EQ(world.Cycle(), "default/owns lacks 3000; ") << "nobody may be evicted for it";
  world.Put(WorkloadSpec{.name = "beyond", .queue = "b", .count = 1, .priority = 9});
  EXPECT_EQ(world.Cycle(), "default/beyond: b spot 1000; ");
  EXPECT_EQ(world.Cycle(),
            "evict default/within for default/owns; default/owns waits for 1 to leave; ");
}

TEST(AdmissionsTest, AQueueReclaimsWhatOthersBorrow) {
  QuotaWorld world;
  world.Put(
      QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 2000}}});
  const WorkloadSpec old{.name = "old", .queue = "b", .count = 2, .created = 1};
  const WorkloadSpec young{.name = "young", .queue = "b", .count = 1, .priority = 9, .created = 2};
  world.Starts(old);
  world.now = world.now + Duration::Seconds(1);
  world.Starts(young);
  world.Put(WorkloadSpec{.name = "owns", .queue = "a", .count = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/old for default/owns; default/owns waits for 1 to leave; ")
      << "whose priority is the lower; the other may stay then";
  EXPECT_EQ(world.RowOf("old").evicted_because, model::VictimReason::kReclaimed);
}

TEST(AdmissionsTest, WhoWasNotToldStaysWhenThePreemptorGoes) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  world.Starts(kLow);
  world.Put(kHigh);
  world.Cycle();
  EXPECT_TRUE(IsToBeEvicted(world.RowOf("low")));
  world.Remove("high");
  EXPECT_FALSE(IsToBeEvicted(world.RowOf("low")));
  EXPECT_EQ(world.Cycle(), "");
  world.Put(WorkloadSpec{.name = "small", .count = 1});
  EXPECT_EQ(world.Cycle(), "default/small: q spot 1000; ");
}

TEST(AdmissionsTest, NobodyGoesForWhomEnoughIsLeftMeanwhile) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  const WorkloadSpec other{.name = "other", .count = 1, .priority = 4};
  world.Starts(kLow);
  world.Starts(other);
  world.Put(WorkloadSpec{.name = "high", .count = 1, .priority = 5});
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
  world.Remove("other");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 1000; ");
  EXPECT_FALSE(world.RowOf("low").claimant.valid());
}

TEST(AdmissionsTest, TwoEvictTwiceAsMuch) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  for (int i = 0; i < 4; ++i) {
    world.now = world.now + Duration::Seconds(1);
    world.Starts({.name = fmt::format("low-{}", i), .created = i});
  }
  world.Put(WorkloadSpec{.name = "x", .count = 2, .priority = 5, .created = 1});
  world.Put(WorkloadSpec{.name = "y", .count = 1, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/low-3 for default/x; evict default/low-2 for default/x; "
            "evict default/low-1 for default/y; "
            "default/x waits for 2 to leave; default/y waits for 1 to leave; ");
  world.Remove("low-1");
  EXPECT_EQ(world.Cycle(), "default/y: q spot 1000; ")
      << "what the first is promised comes true yet";
  world.Remove("low-3");
  EXPECT_EQ(world.Cycle(), "") << "what it waits for was told when it was promised that";
  world.Remove("low-2");
  EXPECT_EQ(world.Cycle(), "default/x: q spot 2000; ");
}

TEST(AdmissionsTest, WhatIsPromisedEndsWithWhatItWasPromisedFor) {
  const auto after = [](const std::function<void(QuotaWorld&)>& change) {
    QuotaWorld world;
    world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
    world.Starts(kLow);
    world.Put(kHigh);
    world.Cycle();
    change(world);
    std::string text = world.Cycle();
    text += world.RowOf("low").claimant.valid() ? "low leaves" : "low stays";
    return text;
  };
  EXPECT_EQ(after([](QuotaWorld& world) {
              WorkloadSpec lower = kHigh;
              lower.priority = 0;
              world.Put(lower);
            }),
            "default/high lacks 2000; low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              WorkloadSpec smaller = kHigh;
              smaller.count = 1;
              world.Put(smaller);
            }),
            "default/high: q spot 1000; low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              model::WorkloadUpsert facts = world.FactsOf(kHigh);
              facts.status.active = false;
              world.engine.Apply(facts);
            }),
            "low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              world.Put(QueueSpec{.name = "q", .stopped = true, .preemption = kEvicts});
            }),
            "default/high cluster queue stopped; low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              world.engine.Apply(model::LocalQueueRemove{.uid = "u-lq-q"});
            }),
            "default/high has no local queue; low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
            }),
            "default/high wants 3000 of 2000; low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              WorkloadSpec larger = kHigh;
              larger.count = 4;
              world.Put(larger);
            }),
            "evict default/low for default/high; default/high waits for 1 to leave; low leaves");
  EXPECT_EQ(
      after([](QuotaWorld& world) { world.engine.Apply(model::FlavorRemove{.name = "spot"}); }),
      "default/high inactive; low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              world.Put(QueueSpec{.name = "other", .flavors = {{"spot", 1000}}});
              world.engine.Apply(model::LocalQueueUpsert{
                  .uid = "u-lq-q", .key = "default/q", .cluster_queue = "other"});
            }),
            "default/high wants 3000 of 1000; low stays");
  EXPECT_EQ(after([](QuotaWorld& world) {
              world.engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-spot"});
            }),
            "low leaves");
  EXPECT_EQ(after([](QuotaWorld& world) { world.Put(QueueSpec{.name = "q"}); }),
            "default/high lacks 2000; low stays");
}

TEST(AdmissionsTest, APromiseEndsWhenTheRoomForItIsGone) {
  QuotaWorld world;
  model::QueuePreemption borrows = kEvicts;
  borrows.borrows = true;
  world.Put(
      QueueSpec{.name = "q", .cohort = "all", .flavors = {{"spot", 1000}}, .preemption = borrows});
  world.Put(QueueSpec{.name = "lends", .cohort = "all", .flavors = {{"spot", 3000}}});
  world.Starts(kLow);
  world.IsTold(kLow);
  world.Put(kHigh);
  EXPECT_EQ(world.Cycle(), "default/high waits for 1 to leave; ");
  world.Put(QueueSpec{.name = "lends", .cohort = "all", .flavors = {{"spot", 1000}}});
  EXPECT_EQ(world.Cycle(), "default/high wants 3000 of 2000; ");
  EXPECT_EQ(world.RowOf("high").promised, model::Reservation{});
}

TEST(AdmissionsTest, WhatALessImportantOneIsPromisedIsRevoked) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  world.Starts(kLow);
  world.Put(WorkloadSpec{.name = "mid", .count = 2, .priority = 3});
  EXPECT_EQ(world.Cycle(), "evict default/low for default/mid; default/mid waits for 1 to leave; ");
  world.Put(kHigh);
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 2 to leave; "
            "default/mid lacks 1000; ");
}

TEST(AdmissionsTest, WhoseReservationIsUnderWayCameLast) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  world.Starts({.name = "old", .count = 2, .created = 2});
  world.Put(WorkloadSpec{.name = "new", .count = 2, .created = 1});
  EXPECT_EQ(world.Cycle(), "default/new: q spot 2000; ");
  world.Put(WorkloadSpec{.name = "high", .count = 1, .priority = 5});
  EXPECT_EQ(world.Cycle(),
            "evict default/new for default/high; default/high waits for 1 to leave; ");
  EXPECT_FALSE(IsToBeEvicted(world.RowOf("new"))) << "it holds nothing yet that it could be told";
  world.ComesTrue({.name = "new", .count = 2, .created = 1});
  EXPECT_TRUE(IsToBeEvicted(world.RowOf("new")));
}

TEST(AdmissionsTest, WhoWasLoweredMayBeEvicted) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  WorkloadSpec first{.name = "first", .count = 3, .priority = 5};
  world.Starts(first);
  world.Put(WorkloadSpec{.name = "next", .count = 3, .priority = 4});
  EXPECT_EQ(world.Cycle(), "default/next lacks 2000; ");
  model::WorkloadUpsert facts = world.FactsOf(first);
  facts.priority = 1;
  facts.status = world.RowOf("first").status;
  facts.reserved = world.RowOf("first").reserved;
  world.engine.Apply(facts);
  EXPECT_EQ(world.Cycle(),
            "evict default/first for default/next; default/next waits for 1 to leave; ");
}

TEST(AdmissionsTest, WhatOthersWereToLeaveIsCountedOnNoMore) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  world.Starts({.name = "large", .count = 4});
  world.Put(WorkloadSpec{.name = "x", .count = 2, .priority = 5, .created = 1});
  world.Put(WorkloadSpec{.name = "y", .count = 2, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/large for default/x; default/x waits for 1 to leave; "
            "default/y waits for who leaves for others; ");
  world.Remove("x");
  EXPECT_EQ(world.Cycle(), "evict default/large for default/y; default/y waits for 1 to leave; ");

  QuotaWorld other;
  other.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  other.Starts({.name = "large", .count = 3});
  other.Starts({.name = "small", .count = 1, .priority = 5});
  other.Put(WorkloadSpec{.name = "x", .count = 1, .priority = 5, .created = 1});
  other.Put(WorkloadSpec{.name = "y", .count = 1, .priority = 5, .created = 2});
  EXPECT_EQ(other.Cycle(),
            "evict default/large for default/x; default/x waits for 1 to leave; "
            "default/y waits for who leaves for others; ");
  other.Remove("small");
  EXPECT_EQ(other.Cycle(),
            "default/x: q spot 1000; evict default/large for default/y; "
            "default/y waits for 1 to leave; ");
}

// Kueue's partial admission: all, then all once others are gone, then fewer.
TEST(AdmissionsTest, WhoMayStartWithFewerPodsDoes) {
  const auto asks = [](QuotaWorld& world, uint32_t missing_max, int32_t priority = 0) {
    model::WorkloadUpsert facts =
        world.FactsOf({.name = "w", .count = 6, .priority = priority, .created = 9});
    facts.slots[0].missing_max = missing_max;
    world.engine.Apply(facts);
    return world.Cycle();
  };
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  EXPECT_EQ(asks(world, 1), "default/w wants 6000 of 4000; ");
  EXPECT_EQ(asks(world, 2), "default/w: q spot 4000; ");
  EXPECT_EQ(world.RowOf("w").decided.counts, std::vector<uint32_t>{4});

  QuotaWorld used;
  used.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  used.Starts({.name = "low", .count = 3, .priority = 1});
  EXPECT_EQ(asks(used, 5), "default/w: q spot 1000; ") << "nobody is to go";

  QuotaWorld evicting;
  evicting.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  evicting.Starts({.name = "low", .count = 3, .priority = 1});
  EXPECT_EQ(asks(evicting, 5, 2),
            "evict default/low for default/w; default/w waits for 1 to leave; ");
  EXPECT_EQ(evicting.RowOf("w").promised.counts, std::vector<uint32_t>{4});
}

// One head of each queue.
QuotaWorld OneRound() {
  QuotaWorld world;
  world.engine = Engine({.attempts_per_cycle_max = 1});
  return world;
}

TEST(AdmissionsTest, TwoOfATreeEvictInOneRoundEachItsOwn) {
  QuotaWorld world = OneRound();
  for (const std::string name : {"a", "b"}) {
    world.Put(QueueSpec{.name = name, .cohort = "c", .preemption = kEvicts});
    world.Starts({.name = "low-" + name, .queue = name, .count = 4});
    world.Put(WorkloadSpec{.name = "high-" + name, .queue = name, .count = 4, .priority = 1});
  }
  EXPECT_EQ(world.Cycle(),
            "evict default/low-a for default/high-a; evict default/low-b for default/high-b; "
            "default/high-a waits for 1 to leave; default/high-b waits for 1 to leave; ");
}

// Others of its tree that are served after it in the same round leave it what is its own, unless it
// may always take that back.
TEST(AdmissionsTest, WhoMayEvictNobodyKeepsWhatIsItsOwnInARound) {
  const auto served = [](model::EvictionPolicy reclaim) {
    QuotaWorld world = OneRound();
    world.Put(QueueSpec{.name = "a",
                        .cohort = "c",
                        .flavors = {{"spot", 3000}},
                        .preemption = {.reclaim = reclaim}});
    world.Put(QueueSpec{.name = "b", .cohort = "c", .flavors = {{"spot", 0}}});
    world.Starts({.name = "runs", .queue = "a", .count = 2});
    world.Put(WorkloadSpec{.name = "own", .queue = "a", .count = 2, .priority = 1});
    world.Put(WorkloadSpec{.name = "borrower", .queue = "b", .count = 1});
    return world.Cycle();
  };
  EXPECT_EQ(served(model::EvictionPolicy::kAny),
            "default/borrower: b spot 1000; default/own lacks 1000; ");
  EXPECT_EQ(served(model::EvictionPolicy::kNever), "default/own lacks 1000; ");
}

// Whoever is evicted by others is waited for as if by us.
TEST(AdmissionsTest, WhoLeavesAlreadyIsEnough) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .preemption = kEvicts});
  world.Starts(kLow);
  world.IsTold(kLow);
  world.Put(kHigh);
  EXPECT_EQ(world.Cycle(), "default/high waits for 1 to leave; ");
  world.Put(WorkloadSpec{.name = "late", .count = 2, .created = 5});
  EXPECT_EQ(world.Cycle(), "default/late lacks 1000; ");
  world.Remove("low");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 3000; ");
}

TEST(AdmissionsTest, WhoLeavesAnotherQueueAlreadyIsEnough) {
  QuotaWorld world;
  world.Put(
      QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 2000}}});
  const WorkloadSpec borrows{.name = "borrows", .queue = "b", .count = 3};
  world.Starts(borrows);
  world.Starts({.name = "stays", .queue = "b", .count = 1});
  world.IsTold(borrows);
  world.Put(WorkloadSpec{.name = "owns", .queue = "a", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/owns waits for 1 to leave; ");
}

// Of equal priority, nobody is evicted for it. Who took what was left meanwhile could be, beside
// the one that leaves: it is looked at when that one is gone, and no sooner.
TEST(AdmissionsTest, WhoCouldEvictBesideWhoLeavesIsLookedAtOnceThatIsGone) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 3000}}, .preemption = kEvicts});
  const WorkloadSpec leaves{.name = "leaves", .count = 2, .priority = 1};
  world.Starts(leaves);
  world.IsTold(leaves);
  world.Put(WorkloadSpec{.name = "equal", .count = 3, .priority = 1});
  EXPECT_EQ(world.Cycle(), "default/equal lacks 2000; ");
  const WorkloadSpec low{.name = "low", .count = 1};
  world.Put(low);
  EXPECT_EQ(world.Cycle(), "default/low: q spot 1000; ");
  EXPECT_EQ(world.engine.CountMissedWakes(), 0u);
  world.Starts(low);
  world.Remove("leaves");
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/equal; default/equal waits for 1 to leave; ");
  world.Remove("low");
  EXPECT_EQ(world.Cycle(), "default/equal: q spot 3000; ");
}

TEST(AdmissionsTest, ACopyDecidesTheSame) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  for (int i = 0; i < 6; ++i) world.Put(WorkloadSpec{.name = fmt::format("w{}", i), .created = i});
  Engine copy(world.engine);
  const model::Plan plan = copy.Cycle(world.now);
  EXPECT_EQ(model::Print(plan, copy.state()),
            model::Print(world.engine.Cycle(world.now), world.state()));
  EXPECT_EQ(plan.reservations.size(), 4u);
}

// Histories of queues in two cohorts and of their workloads.
class History {
 public:
  void Step() {
    switch (*rc::gen::inRange(0, 11)) {
      case 9:
      case 10:
        return Leave();
      case 0:
        return PutQueue();
      case 8:
        return RemoveQueue();
      case 1:
      case 2:
      case 3:
        return PutWorkload();
      case 4:
      case 5:
        return RemoveWorkload();
      case 6:
        return EndWrites(*rc::gen::inRange(0, 4));
      default:
        world_.now = world_.now + Duration::Seconds(*rc::gen::inRange(0, 20));
    }
  }
  void Check() {
    for (int i = 0; i < 20 && world_.engine.wake_at() <= world_.now; ++i) Log("  ", world_.Cycle());
    RC_LOG() << story_;
    story_.clear();
    RC_ASSERT(world_.engine.wake_at() > world_.now);
    RC_ASSERT(model::Audit(world_.state()).empty());
    RC_ASSERT(world_.engine.CountMissedWakes() == 0u);
    CheckNobodyCouldStart();
    CheckPromises();
    CheckOrder();
  }

 private:
  // The story of a history that fails.
  void Log(std::string_view what, std::string_view happens) {
    story_ += fmt::format("{}{}\n", what, happens);
  }
  void PutQueue() {
    const int i = *rc::gen::inRange(0, 3);
    QueueSpec queue{.name = fmt::format("q{}", i)};
    queue.cohort = *rc::gen::element<std::string>("", "x", "x");
    queue.flavors = {{"spot", *rc::gen::inRange(0, 5) * 1000}};
    queue.strict = *rc::gen::arbitrary<bool>();
    queue.stopped = *rc::gen::inRange(0, 5) == 0;
    using model::EvictionPolicy;
    queue.preemption.within_queue =
        *rc::gen::element(EvictionPolicy::kNever, EvictionPolicy::kLowerPriority,
                          EvictionPolicy::kLowerOrNewerEqualPriority);
    queue.preemption.reclaim = *rc::gen::element(
        EvictionPolicy::kNever, EvictionPolicy::kLowerPriority, EvictionPolicy::kAny);
    queue.preemption.borrows = *rc::gen::arbitrary<bool>();
    Log(queue.name,
        fmt::format(" in {}, cpu {}, strict {}, stopped {}, evicts {} {} {}", queue.cohort,
                    queue.flavors.front().second, queue.strict, queue.stopped,
                    static_cast<int>(queue.preemption.within_queue),
                    static_cast<int>(queue.preemption.reclaim), queue.preemption.borrows));
    world_.Put(queue);
    queues_[queue.name] = queue;
  }
  void RemoveQueue() {
    const std::string name = fmt::format("q{}", *rc::gen::inRange(0, 3));
    Log(name, " goes");
    if (queues_.erase(name) > 0) world_.engine.Apply(model::QueueRemove{.name = name});
  }
  void PutWorkload() {
    WorkloadSpec w{.name = fmt::format("w{}", *rc::gen::inRange(0, 12))};
    if (specs_.contains(w.name)) return;
    w.queue = fmt::format("q{}", *rc::gen::inRange(0, 3));
    w.count = static_cast<uint32_t>(*rc::gen::inRange(0, 4));
    w.priority = *rc::gen::inRange(0, 2);
    w.created = *rc::gen::inRange(0, 5);
    w.requeue_at = *rc::gen::inRange(0, 4) == 0 ? 1010 : 0;
    Log(w.name, fmt::format(" of {}, count {}, priority {}, created {}, from {}", w.queue, w.count,
                            w.priority, w.created, w.requeue_at));
    world_.Put(w);
    specs_[w.name] = w;
  }
  void RemoveWorkload() {
    const std::string name = fmt::format("w{}", *rc::gen::inRange(0, 12));
    Log(name, " goes");
    world_.Remove(name);
    specs_.erase(name);
  }
  // Who is evicted is told so, and who was told gives its quota back.
  void Leave() {
    for (const auto& [name, spec] : specs_) {
      const model::Workload& row = RowOf(name);
      if (IsToBeEvicted(row) && *rc::gen::arbitrary<bool>()) {
        Log(name, " is told");
        world_.IsTold(spec);
      } else if (StageOf(row.status) == model::WorkloadStage::kEvicted) {
        Log(name, " lets go");
        world_.Put(spec);
      }
    }
  }
  // Those that are under way come true, or not.
  void EndWrites(int how) {
    Log("writes end", fmt::format(" {}", how));
    for (const auto& [name, spec] : specs_) {
      const model::WorkloadId id = world_.state().FindWorkload("u-" + name);
      if (world_.state().workloads().at(id).write == model::WriteStage::kNone) continue;
      if (how == 0) {
        world_.ComesTrue(spec);
        continue;
      }
      constexpr model::WriteOutcome kHow[] = {model::WriteOutcome::kRefused,
                                              model::WriteOutcome::kNotSent,
                                              model::WriteOutcome::kConflict};
      world_.engine.Apply(model::ReservationOutcome{
          .uid = "u-" + name, .outcome = kHow[how - 1], .at = world_.now});
      if (how == 3) world_.engine.Apply(model::ReservationRead{.uid = "u-" + name});
    }
  }
  [[nodiscard]] const model::Workload& RowOf(const std::string& name) const {
    return world_.RowOf(name);
  }
  // By hand: what nobody but the workload has of a queue and its cohort, whose quota has no limits
  // but its sum: now, and once who was promised something has it and who leaves is gone.
  struct Unused {
    int64_t now = 0;
    int64_t then = 0;
  };
  [[nodiscard]] Unused UnusedBut(const std::string& queue, const std::string& but) const {
    const QueueSpec& of = queues_.at(queue);
    int64_t left = 0;
    for (const auto& [name, q] : queues_) {
      if (name == queue || (!of.cohort.empty() && q.cohort == of.cohort))
        left += q.flavors.front().second;
    }
    int64_t now = 0;
    int64_t then = 0;
    for (const auto& [name, spec] : specs_) {
      const auto home = queues_.find(spec.queue);
      const model::Workload& row = RowOf(name);
      if (home == queues_.end() || name == but) continue;
      if (spec.queue != queue && (of.cohort.empty() || home->second.cohort != of.cohort)) continue;
      const bool charged = !ChargedTo(row).charges.empty();
      const bool leaves =
          row.claimant.valid() || StageOf(row.status) == model::WorkloadStage::kEvicted;
      if (charged) now += spec.count * spec.cpu;
      if (charged ? !leaves : !row.promised.charges.empty()) then += spec.count * spec.cpu;
    }
    return {.now = left - now, .then = left - then};
  }
  [[nodiscard]] bool MayBeTried(const std::string& name) const {
    const auto queue = queues_.find(specs_.at(name).queue);
    return queue != queues_.end() && !queue->second.stopped && WaitsFrom(RowOf(name)) <= world_.now;
  }
  [[nodiscard]] bool IsFirst(const std::string& name) const {
    const WorkloadSpec& spec = specs_.at(name);
    return std::ranges::none_of(specs_, [&](const auto& other) {
      const WorkloadSpec& o = other.second;
      if (o.queue != spec.queue || !MayBeTried(o.name)) return false;
      return std::tuple(-o.priority, o.created, o.name) <
             std::tuple(-spec.priority, spec.created, spec.name);
    });
  }
  // Whoever is promised something waits for somebody who leaves, and gets it then.
  void CheckPromises() {
    for (const auto& [name, spec] : specs_) {
      const model::Workload& waits = RowOf(name);
      if (waits.promised == model::Reservation{} || waits.write != model::WriteStage::kNone)
        continue;
      RC_ASSERT(std::ranges::any_of(specs_, [&](const auto& other) {
        const model::Workload& row = RowOf(other.first);
        return row.claimant.valid() || StageOf(row.status) == model::WorkloadStage::kEvicted;
      }));
      RC_ASSERT(UnusedBut(spec.queue, "").then >= 0);
    }
  }
  void CheckNobodyCouldStart() {
    for (const auto& [name, spec] : specs_) {
      if (!MayBeTried(name)) continue;
      if (queues_.at(spec.queue).strict && !IsFirst(name)) continue;
      RC_ASSERT(spec.count > 0);
      const auto [now, then] = UnusedBut(spec.queue, name);
      RC_ASSERT(std::min(now, then) < static_cast<int64_t>(spec.count) * spec.cpu);
    }
  }
  // Whoever waits in a line that is tried knows why.
  void CheckOrder() {
    for (const auto& [name, spec] : specs_) {
      if (WaitsFrom(RowOf(name)) > world_.now) continue;
      RC_ASSERT(world_.engine.admissions()
                    .WhyWaits(world_.state().FindWorkload("u-" + name))
                    .has_value());
    }
  }

  QuotaWorld world_;
  std::string story_;
  std::map<std::string, QueueSpec> queues_;
  std::map<std::string, WorkloadSpec> specs_;
};

RC_GTEST_PROP(AdmissionsProperty, WhoCouldHaveQuotaDoesNotWait, ()) {
  for (int histories = 0; histories < 20; ++histories) {
    History history;
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      history.Step();
      history.Check();
    }
  }
}

// Goal: what others are kept from is charged for a look however large it is, as bytes are. Method:
// one waits for what another queue borrowed, of an odd amount, and the next of that queue would fit.
TEST(AdmissionsTest, WhatIsKeptMayBeAnyAmount) {
  QuotaWorld world;
  const model::QueuePreemption within{.within_queue = model::EvictionPolicy::kLowerPriority};
  world.Put(QueueSpec{
      .name = "q", .cohort = "all", .flavors = {{"spot", 99'999'999}}, .preemption = within});
  world.Put(QueueSpec{.name = "r", .cohort = "all", .flavors = {{"spot", 1000}}});
  world.Starts({.name = "borrows", .queue = "r", .cpu = 55'555'555});
  world.Put(WorkloadSpec{.name = "waits", .cpu = 99'999'999, .created = 1});
  world.Put(WorkloadSpec{.name = "next", .queue = "r", .cpu = 1001, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/next: r spot 1001; default/waits lacks 55554555; ");
}

}  // namespace
}  // namespace berth::cycle
