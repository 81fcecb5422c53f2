// Goal: with joint placement a workload gets quota only together with places for all its pods, its
// pods come to these places whatever else happens. Method: plans of small worlds, printed; random
// histories are in slots_histories_test.cc.
#include "cycle/slots.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/limits.h"
#include "cycle/test_joint.h"

namespace berth::cycle {
namespace {

// Counting anew what was dropped comes to the same.
TEST(ClassPlacesTest, FewClassesAreKeptAndAllAreCountedRightly) {
  JointWorld world;
  model::Vocabulary& v = world.engine.vocabulary();
  for (const char* node : {"n1", "n2", "n3"}) world.Put(TestNode{.name = node, .cpu = 4000});
  const size_t bytes_each = size_t{world.state().nodes().size()} * sizeof(model::Amount);
  const place::Evaluator evaluator;
  ClassPlaces two(2 * bytes_each);
  for (int round = 0; round < 3; ++round) {
    ClassPlaces fresh;
    for (const int64_t cpu : {1000, 2000, 4000, 1000}) {
      const model::ClassId class_id = ClassOf(v, TestPod{.cpu = cpu});
      EXPECT_EQ(two.Of(world.state(), evaluator, class_id),
                fresh.Of(world.state(), evaluator, class_id));
      EXPECT_LE(two.classes_kept(), 2u);
    }
    EXPECT_EQ(fresh.classes_kept(), 3u);
    world.Put(TestPod{.name = "p" + std::to_string(round), .cpu = 1000, .node = "n1"});
  }
  EXPECT_EQ(ClassPlaces(two).classes_kept(), 0u) << "a copy starts cold";
}

TEST(SlotsTest, QuotaComesWithPlacesForAllPods) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 8000}}});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  world.Put(TestNode{.name = "n2", .cpu = 2000});
  world.Put(WorkloadSpec{.name = "a", .count = 3, .created = 1});
  world.Put(WorkloadSpec{.name = "b", .count = 2, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/a: q spot 3000 n1 n1 n2; default/b finds nodes for 1 of 2; ");
  EXPECT_EQ(world.FreeCpu("n1"), 0);
  world.Put(TestPod{.name = "stranger", .cpu = 1500});
  EXPECT_EQ(world.Cycle(), "") << "the places are a's, before its pods are there";
}

// Quota for pods that nobody here can place would be held for nothing.
TEST(SlotsTest, WhoseTemplateCantBeHonouredWaitsWithoutQuotaAndInNobodysWay) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 1000}}, .strict = true});
  world.Put(TestNode{.name = "n1", .cpu = 4000});
  model::WorkloadUpsert ports = world.FactsOf(WorkloadSpec{.name = "ports", .created = 1});
  ports.slots[0].unsupported =
      world.engine.vocabulary().names.Intern("spec.containers.ports.hostPort");
  world.engine.Apply(ports);
  world.Put(WorkloadSpec{.name = "plain", .created = 2});
  EXPECT_EQ(world.Cycle(), "default/plain: q spot 1000 n1; default/ports unsupported; ");
  ports.slots[0].unsupported = {};
  world.Remove("plain");
  world.engine.Apply(ports);
  EXPECT_EQ(world.Cycle(), "default/ports: q spot 1000 n1; ");
}

TEST(SlotsTest, PodsTakeThePlacesOfTheirWorkload) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Put(TestNode{.name = "n2", .cpu = 1000});
  const WorkloadSpec a{.name = "a", .count = 2};
  world.Put(a);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n2; ");
  world.ComesTrue(a);
  world.Put(TestPod{.name = "other", .cpu = 1000, .created = 1});
  world.Put(TestPod{.name = "a-0", .cpu = 1000, .created = 2}, "a");
  world.Put(TestPod{.name = "a-1", .cpu = 1000, .created = 3}, "a");
  EXPECT_EQ(world.Cycle(), "default/a-0 on n1; default/a-1 on n2; ");
  EXPECT_EQ(world.state().slots().free_count(), 0u);
}

// Anybody may say that a Workload is of a job: who comes later takes no pods from places that they
// have, and is looked for places when these go.
TEST(SlotsTest, AnotherWorkloadOfTheJobTakesNoPodsAway) {
  const WorkloadSpec old{.name = "old", .created = 1, .job = "j"};
  const WorkloadSpec young{.name = "young", .created = 2, .job = "j"};
  const TestPod pod{.name = "j-0", .cpu = 1000};
  const auto place_of = [](const JointWorld& world, const std::string& workload) {
    const model::State& state = world.state();
    const auto places = state.slots().PlacesOf(state.FindWorkload("u-" + workload));
    if (places.empty()) return std::string("none");
    const std::string_view node = state.NameOf(places[0].slot.node);
    return fmt::format("{}{}", node, places[0].pod.valid() ? " taken" : "");
  };
  for (const bool old_first : {true, false}) {
    JointWorld world;
    world.Put(QueueSpec{.name = "q"});
    world.Put(TestNode{.name = "n1", .cpu = 1000});
    world.Put(TestNode{.name = "n2", .cpu = 1000});
    world.Starts(old_first ? old : young);
    world.Put(pod, "j");
    world.Starts(old_first ? young : old);
    const std::string first = old_first ? "old" : "young";
    const std::string second = old_first ? "young" : "old";
    EXPECT_EQ(place_of(world, first), "n1 taken");
    EXPECT_EQ(place_of(world, second), "n2");
    EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>{});
    world.Remove(first);
    EXPECT_EQ(place_of(world, second), "n2 taken");
    EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>{});
    world.Remove(second);
    EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>{});
  }
}

// Goal: who leaves with its workload is not evicted by itself, too. Method: of a job with two
// workloads both leave, and a pod is being bound to a place of the younger, so that it goes with the
// older.
TEST(SlotsTest, WhoLeavesWithAnotherWorkloadOfTheJobIsEvictedOnce) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Put(TestNode{.name = "n2", .cpu = 1000});
  world.Starts(WorkloadSpec{.name = "old", .created = 1, .job = "j"});
  world.Starts(WorkloadSpec{.name = "young", .created = 2, .job = "j"});
  world.Put(TestPod{.name = "j-0", .cpu = 1000, .created = 3}, "j");
  world.Put(TestPod{.name = "j-1", .cpu = 1000, .created = 4}, "j");
  EXPECT_EQ(world.Cycle(), "default/j-0 on n1; default/j-1 on n2; ");
  world.Put(WorkloadSpec{.name = "vip", .count = 2, .priority = 9, .preempts = true});
  EXPECT_EQ(
      world.Cycle(),
      "evict default/old for default/vip; evict default/young for default/vip; default/vip finds "
      "nodes for 1 of 2, promised; ");
  EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>{});
}

TEST(SlotsTest, NobodyIsEvictedForAWorkloadWhoseProfileEvictsNobody) {
  for (const bool preempts : {true, false}) {
    JointWorld world({.preemption = true,
                      .joint_placement = true,
                      .profiles = {{.scheduler_name = "other", .rules = {.preempts = preempts}}}});
    world.Put(QueueSpec{.name = "q"});
    world.Put(TestNode{.name = "n1", .cpu = 1000});
    world.Put(TestPod{.name = "there", .cpu = 1000, .node = "n1"});
    world.Put(WorkloadSpec{.name = "vip", .priority = 9, .preempts = true, .profile = "other"});
    EXPECT_EQ(world.Cycle(),
              preempts ? "evict pod default/there for default/vip; default/vip finds nodes "
                         "for 0 of 1, promised; "
                       : "default/vip finds nodes for 0 of 1; ");
  }
}

TEST(SlotsTest, APlaceIsKeptForThePodThatReplacesOneThatFailed) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  const WorkloadSpec a{.name = "a"};
  world.Starts(a);
  const TestPod first{.name = "a-0", .cpu = 1000};
  world.Put(first, "a");
  EXPECT_EQ(world.Cycle(), "default/a-0 on n1; ");
  world.Bound(first, "a", "n1");
  world.Put(TestPod{.name = "other", .cpu = 1000, .created = 1});
  EXPECT_EQ(world.Cycle(), "");
  world.Gone("a-0");
  EXPECT_EQ(world.Cycle(), "") << "the place is a's";
  world.Put(TestPod{.name = "a-1", .cpu = 1000, .created = 9}, "a");
  EXPECT_EQ(world.Cycle(), "default/a-1 on n1; ");
}

// Goal: a pod that is deleted leaves its place to its own workload. Method: while it ends another
// workload waits, which would be promised what it leaves; the Job makes the next pod before it is
// gone, or after.
TEST(SlotsTest, APlaceIsKeptForThePodThatReplacesOneThatIsDeleted) {
  for (const bool planted : {false, true}) {
    for (const bool early : {false, true}) {
      JointWorld world(
          {.preemption = true, .joint_placement = true, .faults = {.leave_places = planted}});
      world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
      world.Put(TestNode{.name = "n1", .cpu = 1000});
      const WorkloadSpec a{.name = "a", .created = 2};
      world.Starts(a);
      TestPod first{.name = "a-0", .cpu = 1000};
      world.Put(first, "a");
      EXPECT_EQ(world.Cycle(), "default/a-0 on n1; ");
      first.node = "n1";
      world.Put(first, "a");
      world.Put(WorkloadSpec{.name = "b", .created = 1, .preempts = true});
      EXPECT_EQ(world.Cycle(), "default/b finds nodes for 0 of 1; ");
      first.terminating = true;
      world.Put(first, "a");
      const TestPod next{.name = "a-1", .cpu = 1000, .created = 9};
      if (early) world.Put(next, "a");
      // Who waits in a line already goes before it.
      const bool lost = planted && !early;
      EXPECT_EQ(world.Cycle(), lost ? "default/b finds nodes for 0 of 1, promised; " : "");
      EXPECT_EQ(world.RowOf("b").promised.slots.empty(), !lost);
      world.Gone("a-0");
      if (!early) world.Put(next, "a");
      EXPECT_EQ(world.Cycle(), lost ? "default/b: q spot 1000 n1; " : "default/a-1 on n1; ");
    }
  }
}

// Goal: who could not be held by empty nodes is told so.
TEST(SlotsTest, WhatNoNodesCouldHoldIsCounted) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 90'000}}});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  world.Put(TestNode{.name = "n2", .cpu = 1000});
  world.Put(TestPod{.name = "other", .cpu = 1000, .node = "n2"});
  const auto most = [&](uint32_t count, int64_t cpu) {
    world.Put(WorkloadSpec{.name = "w", .count = count, .cpu = cpu});
    world.Cycle();
    return world.engine.admissions()
        .WhyWaits(world.state().FindWorkload("u-w"))
        ->places.front()
        .most;
  };
  EXPECT_EQ(most(3, 1000), std::nullopt) << "it waits for the other to end";
  EXPECT_EQ(most(4, 1000), 3u);
  EXPECT_EQ(most(1, 5000), 0u);
}

// Goal: who has quota goes before who waits for some. Method: a more important pod has the node of
// one that is admitted, and goes, while a workload waits that is older.
TEST(SlotsTest, WhoIsAdmittedGoesBeforeWhoWaitsForQuota) {
  for (const bool planted : {false, true}) {
    JointWorld world(
        {.preemption = true, .joint_placement = true, .faults = {.queued_wait_by_age = planted}});
    world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
    world.Put(TestNode{.name = "n1", .cpu = 1000});
    const WorkloadSpec a{.name = "a", .created = 2};
    world.Starts(a);
    TestPod first{.name = "a-0", .cpu = 1000, .created = 3, .node = "n1"};
    world.Put(first, "a");
    world.Put(WorkloadSpec{.name = "b", .created = 1});
    world.Cycle();
    TestPod urgent{.name = "urgent", .cpu = 1000, .priority = 9, .created = 4};
    world.Put(urgent);
    world.Cycle();
    first.terminating = true;
    world.Put(first, "a");
    world.Put(TestPod{.name = "a-1", .cpu = 1000, .created = 5}, "a");
    world.Cycle();
    world.Gone("a-0");
    EXPECT_EQ(world.Cycle(), "default/urgent on n1; ");
    urgent.node = "n1";
    world.Put(urgent);
    EXPECT_EQ(world.Cycle(), "");
    world.Gone("urgent");
    EXPECT_EQ(world.Cycle(), planted ? "default/b: q spot 1000 n1; " : "default/a-1 on n1; ");
  }
}

// Goal: who evicts a pod of a workload gets its room, and nobody else goes for it. Method: the Job
// makes another pod before the evicted one is gone, and another after that.
TEST(SlotsTest, APlaceWhosePodWasEvictedForAnotherIsTheOthers) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  const WorkloadSpec a{.name = "a", .count = 2, .priority = 100};  // Of its queue, not of pods.
  world.Starts(a);
  world.Bound({.name = "a-0", .cpu = 1000, .created = 1}, "a", "n1");
  TestPod victim{.name = "a-1", .cpu = 1000, .created = 2, .node = "n1"};
  world.Put(victim, "a");
  world.Put(TestPod{.name = "urgent", .cpu = 1000, .priority = 10, .created = 3});
  EXPECT_EQ(world.Cycle(), "");
  const model::PodId urgent = world.state().FindPod("uid-urgent");
  EXPECT_TRUE(world.state().pods().at(urgent).promised.valid());
  victim.terminating = true;
  world.Put(victim, "a");
  world.Put(TestPod{.name = "a-2", .cpu = 1000, .created = 4}, "a");
  EXPECT_EQ(world.Cycle(), "");
  world.Gone("a-1");
  EXPECT_EQ(world.Cycle(), "default/urgent on n1; ");
  world.Bound({.name = "urgent", .cpu = 1000, .priority = 10, .created = 3}, "", "n1");
  // News of the workload takes the place from nobody.
  world.ComesTrue(a);
  world.Put(TestPod{.name = "more", .cpu = 1000, .created = 5}, "a");
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.FreeCpu("n1"), 0);
  world.Gone("urgent");
  EXPECT_EQ(world.Cycle(), "default/a-2 on n1; ") << "as any pod that waits";
}

// Whose workload lost the place and who stands there all the same has it again, and it stays the
// workload's when that pod is gone.
TEST(SlotsTest, APlaceThatWasLostIsHadAgainByWhoStandsThere) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Starts({.name = "a"});
  TestPod pod{.name = "a-0", .cpu = 1000, .created = 1, .node = "n1"};
  world.Put(pod, "a");
  // Others took the room when it was gone.
  world.Put(TestPod{.name = "urgent", .cpu = 1000, .priority = 10, .created = 2, .node = "n1"});
  world.Gone("a-0");
  world.Gone("urgent");
  EXPECT_EQ(world.FreeCpu("n1"), 1000);
  world.Put(TestPod{.name = "a-1", .cpu = 1000, .created = 3}, "a");
  EXPECT_EQ(world.Cycle(), "default/a-1 on n1; ");
  world.Bound({.name = "a-1", .cpu = 1000, .created = 3}, "a", "n1");
  world.Gone("a-1");
  EXPECT_EQ(world.FreeCpu("n1"), 0);
  world.Put(TestPod{.name = "other", .cpu = 1000, .priority = 5, .created = 4});
  EXPECT_EQ(world.Cycle(), "") << "it is kept for the next";
}

// Goal: nobody waits without end for pods of an evicted workload that nobody stops: its Job was
// orphaned, or the server refuses to have it stopped. Method: a more important pod waits for what
// they are to leave; after a minute it evicts one, and a workload the other.
TEST(SlotsTest, PodsOfAnEvictedWorkloadThatNobodyStopsAreAsAnyOthers) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 3000}}});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  const WorkloadSpec a{.name = "a", .count = 2};
  world.Starts(a);
  world.Bound({.name = "a-0", .cpu = 1000, .created = 1}, "a", "n1");
  world.Bound({.name = "a-1", .cpu = 1000, .created = 2}, "a", "n1");
  world.IsTold(a);
  world.Put(TestPod{.name = "urgent", .cpu = 1000, .priority = 10, .created = 3});
  EXPECT_EQ(world.Cycle(), "");
  const auto is_evicted = [&](const std::string& pod) {
    return world.state().pods().at(world.state().FindPod(pod)).evicted_for.valid();
  };
  EXPECT_FALSE(is_evicted("uid-a-1")) << "it leaves by itself";
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.engine.wake_at(), world.now + limits::kOverdueAfter);
  world.now = world.now + limits::kOverdueAfter;
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_TRUE(is_evicted("uid-a-1"));
  world.Put(WorkloadSpec{.name = "b", .priority = 10, .created = 4, .preempts = true});
  EXPECT_EQ(world.Cycle(),
            "evict pod default/a-0 for default/b; default/b finds nodes for 0 of 1, promised; ");
}

// Goal: they are of their workload again once that stays after all.
TEST(SlotsTest, WhoWasNotStoppedStaysWithItsWorkload) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 3000}}});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  const WorkloadSpec a{.name = "a"};
  world.Starts(a);
  world.Bound({.name = "a-0", .cpu = 1000, .created = 1}, "a", "n1");
  world.IsTold(a);
  const auto row = [&]() -> const model::Pod& {
    return world.state().pods().at(world.state().FindPod("uid-a-0"));
  };
  EXPECT_EQ(world.Cycle(), "");
  world.now = world.now + limits::kOverdueAfter;
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_TRUE(row().overdue);
  world.Remove("a");
  EXPECT_FALSE(row().overdue);
  // Who is being deleted has its own time.
  world.Put(a);
  world.Starts(a);
  world.IsTold(a);
  EXPECT_EQ(world.Cycle(), "");
  world.now = world.now + limits::kOverdueAfter;
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_TRUE(row().overdue);
  world.Put(TestPod{.name = "a-0",
                    .cpu = 1000,
                    .created = 1,
                    .node = "n1",
                    .terminating = true,
                    .deadline = world.now.seconds() + 30},
            "a");
  EXPECT_FALSE(row().overdue);
  EXPECT_EQ(world.Cycle(), "");
}

// Goal: who may start with fewer pods gets as many as find nodes, and waits only while fewer do than
// are enough. Method: others stand on nodes, and go.
TEST(SlotsTest, AsManyPodsAsFindNodesStart) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 99'000}}});
  world.Put(TestNode{.name = "n1", .cpu = 4000});
  world.Put(TestPod{.name = "other", .cpu = 3000, .node = "n1"});
  const auto put = [&](const std::string& name, uint32_t fewest) {
    model::WorkloadUpsert facts = world.FactsOf(WorkloadSpec{.name = name, .count = 12});
    facts.slots[0].missing_max = 12 - fewest;
    world.engine.Apply(facts);
  };
  put("a", 2);
  EXPECT_EQ(world.Cycle(), "default/a finds nodes for 1 of 12; ");
  world.Put(TestNode{.name = "n2", .cpu = 2000});
  EXPECT_EQ(world.Cycle(), "default/a: q spot 3000 n1 n2 n2; ");
}

TEST(SlotsTest, WhoIsEvictedOrGoneHasNoPlaces) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  const WorkloadSpec a{.name = "a"};
  world.Starts(a);
  world.Put(TestPod{.name = "other", .cpu = 1000});
  EXPECT_EQ(world.Cycle(), "");
  world.IsTold(a);
  EXPECT_EQ(world.Cycle(), "default/other on n1; ");
}

TEST(SlotsTest, ARestartFindsThePlaces) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  world.Put(TestNode{.name = "n2", .cpu = 2000});
  // Pods before the workload, as watches may come.
  world.Bound({.name = "a-0", .cpu = 1000}, "a", "n2");
  world.Put(TestPod{.name = "a-1", .cpu = 1000}, "a");
  model::WorkloadUpsert facts = world.QuotaWorld::FactsOf({.name = "a", .count = 3});
  model::Vocabulary& v = world.engine.vocabulary();
  facts.status.reserved = facts.status.admitted = true;
  facts.reserved = {.cluster_queue = v.names.Intern("q")};
  for (const char* node : {"n1", "n2", "n1"})
    facts.reserved.slots.push_back({.pod_set = 0, .node = v.names.Intern(node), .devices = {}});
  world.engine.Apply(facts);
  EXPECT_EQ(world.FreeCpu("n1"), 1000) << "a-1 is promised the other";
  EXPECT_EQ(world.FreeCpu("n2"), 1000);
  EXPECT_EQ(world.Cycle(), "default/a-1 on n1; ");
}

TEST(SlotsTest, AFlavorWhoseNodesAreFullIsAsOneWithoutQuota) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"red", 4000}, {"blue", 4000}}});
  world.Label("red", "red");
  world.Label("blue", "blue");
  world.Put(TestNode{.name = "r", .cpu = 1000, .labels = {{"pool", "red"}}});
  world.Put(TestNode{.name = "b", .cpu = 4000, .labels = {{"pool", "blue"}}});
  world.Put(WorkloadSpec{.name = "a", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/a: q blue 2000 b b; ");
  world.Put(WorkloadSpec{.name = "c", .count = 3, .created = 1});
  EXPECT_EQ(world.Cycle(), "default/c finds nodes for 1 of 3; ");
  world.Put(TestNode{.name = "r2", .cpu = 2000, .labels = {{"pool", "red"}}});
  EXPECT_EQ(world.Cycle(), "default/c: q red 3000 r r2 r2; ");
}

// Who could have stood on nodes of its first flavor comes to the next behind others, as one who
// could have had its quota.
TEST(SlotsTest, WhoseNodesOthersTookInTheRoundGetsTheNextFlavorInAnother) {
  JointWorld world(Engine::Options{.attempts_per_cycle_max = 1, .joint_placement = true});
  world.Put(QueueSpec{.name = "p", .cohort = "all", .flavors = {{"red", 4000}}});
  world.Put(QueueSpec{.name = "q", .cohort = "all", .flavors = {{"red", 4000}, {"blue", 4000}}});
  world.Label("red", "red");
  world.Label("blue", "blue");
  world.Put(TestNode{.name = "r", .cpu = 2000, .labels = {{"pool", "red"}}});
  world.Put(TestNode{.name = "b", .cpu = 2000, .labels = {{"pool", "blue"}}});
  world.Put(WorkloadSpec{.name = "first", .queue = "p", .count = 2, .created = 1});
  world.Put(WorkloadSpec{.name = "second", .count = 2, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "default/first: p red 2000 r r; default/second finds nodes for 0 of 2; ");
  EXPECT_EQ(world.engine.wake_at(), Instant{}) << "it is looked at again at once";
  EXPECT_EQ(world.Cycle(), "default/second: q blue 2000 b b; ");
  // Nobody took what there never was.
  world.Put(WorkloadSpec{.name = "third", .queue = "p", .count = 1, .created = 3});
  world.Put(WorkloadSpec{.name = "large", .count = 1, .created = 4});
  EXPECT_EQ(world.Cycle(),
            "default/third finds nodes for 0 of 1; default/large finds nodes for 0 of 1; ");
}

// What is of another resource's flavor, of which there is no other, goes with either.
TEST(SlotsTest, TheNextFlavorOfOneResourceIsTakenWithTheOnlyOneOfAnother) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"red", 4000}, {"blue", 4000}, {"ram", 0}}});
  world.Label("red", "red");
  world.Label("blue", "blue");
  model::Vocabulary& v = world.engine.vocabulary();
  model::QueueUpsert facts{.name = "q", .uid = "u-q"};
  const std::vector<model::NameId> colors = {v.names.Intern("red"), v.names.Intern("blue")};
  const std::vector<model::NameId> ram = {v.names.Intern("ram")};
  for (const model::NameId color : colors)
    facts.quotas.push_back({.flavor = color, .resource = model::kCpu, .quota = {.nominal = 4000}});
  facts.quotas.push_back(
      {.flavor = ram[0], .resource = model::kMemory, .quota = {.nominal = 1 << 30}});
  const std::vector<model::ResourceId> cpu = {model::kCpu};
  const std::vector<model::ResourceId> memory = {model::kMemory};
  const std::vector<model::ResourceGroup> groups = {{.resources = cpu, .flavors = colors},
                                                    {.resources = memory, .flavors = ram}};
  facts.groups = v.resource_groups.Intern(groups);
  world.engine.Apply(facts);
  world.Put(TestNode{.name = "r", .cpu = 1000, .labels = {{"pool", "red"}}});
  world.Put(TestNode{.name = "b", .cpu = 4000, .labels = {{"pool", "blue"}}});
  model::WorkloadUpsert w = world.FactsOf(WorkloadSpec{.name = "a", .count = 2});
  w.slots[0].class_id = ClassOf(v, TestPod{.cpu = 1000, .memory = 1 << 20});
  world.engine.Apply(w);
  world.Cycle();
  std::vector<std::string> nodes;
  for (const model::Slot& slot : world.RowOf("a").decided.slots)
    nodes.emplace_back(world.state().NameOf(slot.node));
  EXPECT_EQ(nodes, (std::vector<std::string>{"b", "b"}));
}

TEST(SlotsTest, WhoFindsNoNodesLetsOthersPass) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 8000}}});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  world.Put(WorkloadSpec{.name = "large", .count = 1, .cpu = 3000, .created = 1});
  world.Put(WorkloadSpec{.name = "small", .count = 1, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/small: q spot 1000 n1; default/large finds nodes for 0 of 1; ");
  world.Put(TestNode{.name = "n2", .cpu = 3000});
  EXPECT_EQ(world.Cycle(), "default/large: q spot 3000 n2; ");
}

TEST(SlotsTest, NobodyIsEvictedForWhatCouldNotRunThen) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  const WorkloadSpec low{.name = "low", .count = 2, .created = 1};
  world.Starts(low);
  world.Put(WorkloadSpec{.name = "wide", .cpu = 2000, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/wide; default/wide waits for 1 to leave; ");
  JointWorld other;
  other.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  other.Put(TestNode{.name = "n1", .cpu = 1000});
  other.Put(TestNode{.name = "n2", .cpu = 1000});
  other.Starts(low);
  other.Put(WorkloadSpec{.name = "wide", .cpu = 2000, .priority = 5, .created = 2});
  EXPECT_EQ(other.Cycle(), "default/wide finds nodes for 0 of 1; ") << "no node is so large";
}

// K079.
TEST(SlotsTest, WhatIsLeftByTheEvictedIsForWhoTheyLeftFor) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 1000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  const WorkloadSpec low{.name = "low", .created = 1};
  world.Starts(low);
  const TestPod pod{.name = "low-0", .cpu = 1000};
  world.Bound(pod, "low", "n1");
  world.Put(WorkloadSpec{.name = "high", .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
  world.IsTold(low);
  EXPECT_EQ(world.Cycle(), "");
  world.Put(low);  // It has let go of its quota, but its pod is still there.
  EXPECT_EQ(world.Cycle(),
            "default/high finds nodes for 0 of 1, promised; default/low lacks 1000; ");
  world.Gone("low-0");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 1000 n1; ");
}

// What evictions free is for whom they free it: pods, too, are kept from it.
TEST(SlotsTest, NodesThatTheEvictedLeaveAreKeptFromPods) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 1000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  const WorkloadSpec low{.name = "low", .created = 1};
  world.Starts(low);
  TestPod pod{.name = "low-0", .cpu = 1000};
  world.Bound(pod, "low", "n1");
  world.Put(WorkloadSpec{.name = "high", .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
  world.Put(TestPod{.name = "stranger", .cpu = 1000, .priority = 9, .created = 3});
  world.IsTold(low);
  pod.terminating = true;
  pod.node = "n1";
  world.Put(pod, "low");
  EXPECT_EQ(world.Cycle(), "");
  world.Gone("low-0");
  world.Put(low);
  EXPECT_EQ(world.Cycle(), "default/high: q spot 1000 n1; default/low lacks 1000; ");
}

TEST(SlotsTest, AWorkloadEvictsAsItsPodsWould) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Put(TestNode{.name = "n2", .cpu = 1000});
  TestPod low{.name = "low", .cpu = 1000, .created = 1, .node = "n1"};
  world.Put(low);
  world.Put(TestPod{.name = "equal", .cpu = 1000, .priority = 5, .created = 1, .node = "n2"});
  const WorkloadSpec wide{
      .name = "wide", .count = 2, .priority = 5, .created = 2, .preempts = true};
  world.Put(wide);
  EXPECT_EQ(world.Cycle(), "default/wide finds nodes for 0 of 2; ") << "all of it or none";
  world.Put(WorkloadSpec{.name = "mild", .created = 3, .preempts = true});
  EXPECT_EQ(world.Cycle(), "default/mild finds nodes for 0 of 1; ");
  world.Remove("wide");
  world.Put(WorkloadSpec{.name = "high", .priority = 5, .created = 4, .preempts = true});
  EXPECT_EQ(world.Cycle(),
            "evict pod default/low for default/high; default/high finds nodes for 0 of 1, "
            "promised; ");
  // Neither a pod that is made for the one that leaves nor a more important one gets its room.
  world.Put(TestPod{.name = "again", .cpu = 1000, .created = 5});
  world.Put(TestPod{.name = "urgent", .cpu = 1000, .priority = 4, .created = 6});
  EXPECT_EQ(world.Cycle(), "");
  low.terminating = true;
  world.Put(low);
  EXPECT_EQ(world.Cycle(), "");
  world.Gone("low");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 1000 n1; ");
}

// Goal: who finds no nodes for what others are promised there evicts those once they are there.
// Method: a gang is promised what another leaves, and is placed after workloads were looked at.
TEST(SlotsTest, WhoWasPromisedANodeIsEvictedOnceItIsThere) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
  world.Put(TestNode{.name = "n1", .cpu = 2000});
  world.Put(TestPod{.name = "stays", .cpu = 1000, .node = "n1"});
  world.Put(TestPod{.name = "leaves", .cpu = 1000, .node = "n1", .terminating = true});
  world.engine.Apply(FactsOf(world.engine.vocabulary(), TestGroup{.name = "g", .min_member = 1}));
  const TestPod low{.name = "low", .cpu = 1000, .created = 2, .nominated = "n1", .group = "g"};
  world.Put(low);
  world.Put(WorkloadSpec{.name = "high", .cpu = 2000, .priority = 5, .preempts = true});
  EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
  world.Gone("leaves");
  EXPECT_EQ(world.Cycle(), "default/low on n1; default/high finds nodes for 0 of 1; ");
  EXPECT_EQ(world.engine.CountMissedWakes(), 0u);
  EXPECT_EQ(world.Cycle(),
            "evict pod default/low for default/high; evict pod default/stays for default/high; "
            "default/high finds nodes for 0 of 1, promised; ");
}

// Goal: a workload that takes nodes leaves none admitted whose pods have no place: of another one
// all goes, with its quota, or nothing. Method: as above; the victim waits anew, and is not evicted
// for one of its own class of workloads that is not more important.
TEST(SlotsTest, OfAWorkloadAllIsEvictedOrNothing) {
  const auto begin = [](JointWorld& world, int32_t priority) {
    world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
    world.Put(TestNode{.name = "n1", .cpu = 1000});
    world.Put(TestNode{.name = "n2", .cpu = 1000});
    const WorkloadSpec low{.name = "low", .count = 2, .priority = priority};
    world.Starts(low);
    for (const std::string node : {"1", "2"})
      world.Bound({.name = "low-" + node, .cpu = 1000}, "low", "n" + node);
    return low;
  };
  const WorkloadSpec high{.name = "high", .priority = 5, .created = 4, .preempts = true};
  {
    JointWorld world(/*preemption=*/true);
    const WorkloadSpec low = begin(world, 0);
    world.Put(high);
    EXPECT_EQ(world.Cycle(),
              "evict default/low for default/high; default/high finds nodes for 0 of 1, "
              "promised; ");
    EXPECT_EQ(world.Cycle(), "");
    world.IsTold(low);
    for (const std::string node : {"1", "2"}) world.Gone("low-" + node);
    world.Put(low);
    EXPECT_EQ(world.Cycle(), "default/high: q spot 1000 n1; default/low finds nodes for 1 of 2; ");
  }
  {
    JointWorld world(/*preemption=*/true);
    begin(world, 5);
    world.Put(high);
    EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
  }
}

// Nodes are of all trees: who becomes less important, or may be asked again, is found from others.
TEST(SlotsTest, WhoYieldsIsEvictedFromItsNodesForWhoWaitsInAnotherTree) {
  JointWorld world(/*preemption=*/true);
  for (const char* queue : {"q", "other"})
    world.Put(QueueSpec{.name = queue, .flavors = {{"spot", 9000}}});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  WorkloadSpec low{.name = "low", .priority = 5};
  world.Starts(low);
  world.Bound({.name = "low-1", .cpu = 1000}, "low", "n1");
  world.Put(WorkloadSpec{
      .name = "high", .queue = "other", .priority = 5, .created = 4, .preempts = true});
  EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
  low.priority = 0;
  model::WorkloadUpsert object = world.FactsOf(low);
  object.status = world.RowOf("low").status;
  object.reserved = world.RowOf("low").reserved;
  world.engine.Apply(object);
  const std::string evicts =
      "evict default/low for default/high; default/high finds nodes for 0 of 1, promised; ";
  EXPECT_EQ(world.Cycle(), evicts);
  world.engine.Apply(model::EvictionRefused{.uid = "u-low", .code = 403, .at = world.now});
  EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
  world.now = world.now + Duration::Seconds(10);
  EXPECT_EQ(world.Cycle(), evicts);
}

// Goal: evictions for one workload, or one gang, don't spend what a budget allows twice. Method: two
// of three that may go are under a budget which allows one.
TEST(SlotsTest, EvictionsForOneSpendABudgetOnce) {
  for (const bool gang : {false, true}) {
    JointWorld world(/*preemption=*/true);
    world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
    for (const std::string name : {"1", "2", "3"}) {
      world.Put(TestNode{.name = "n" + name, .cpu = 1000});
      TestPod pod{.name = "low-" + name, .cpu = 1000, .node = "n" + name};
      model::PodUpsert facts = cycle::FactsOf(world.engine.vocabulary(), pod);
      const std::pair<std::string, std::string> label[] = {{"app", name == "3" ? "web" : "db"}};
      facts.labels = model::PodLabelsText("default", label);
      world.engine.Apply(facts);
    }
    world.engine.Apply(model::BudgetUpsert{
        .key = "default/b", .selector = {{.key = "app", .values = {"db"}}}, .allowed = 1});
    if (gang) {
      world.engine.Apply(model::GroupUpsert{
          .uid = "g", .key = "default/g", .min_member = 2, .phase = model::GroupPhase::kInqueue});
      for (const std::string name : {"a", "b"})
        world.Put(TestPod{.name = name, .cpu = 1000, .priority = 5, .group = "g"});
    } else {
      world.Put(WorkloadSpec{.name = "high", .count = 2, .priority = 5, .preempts = true});
    }
    world.Cycle();
    int evicted = 0;
    for (const std::string name : {"1", "2", "3"}) {
      const model::PodId pod = world.state().FindPod("uid-low-" + name);
      evicted += world.state().pods().at(pod).evicted_for.valid() && name != "3" ? 1 : 0;
    }
    EXPECT_EQ(evicted, 1) << (gang ? "gang" : "workload");
  }
}

// As after a crash, when what was decided before is written late.
TEST(SlotsTest, OfPlacesThatANodeDoesNotHoldOneIsGivenUp) {
  for (const bool preemption : {false, true}) {
    JointWorld world(preemption);
    world.Put(QueueSpec{.name = "q"});
    world.Put(TestNode{.name = "n1", .cpu = 1000});
    for (const std::string name : {"a", "b"}) {
      model::WorkloadUpsert facts = world.FactsOf(WorkloadSpec{.name = name});
      facts.status.reserved = facts.status.admitted = true;
      facts.reserved = {
          .cluster_queue = world.engine.vocabulary().names.Intern("q"),
          .charges = {},
          .slots = {
              {.pod_set = 0, .node = world.engine.vocabulary().names.Intern("n1"), .devices = {}}}};
      world.engine.Apply(facts);
      world.Put(TestPod{.name = name + "-0", .cpu = 1000, .created = name == "a" ? 1 : 2}, name);
    }
    const std::string first = world.Cycle();
    const std::string plans = first + world.Cycle();
    EXPECT_TRUE(plans.contains("on n1")) << plans;
    EXPECT_FALSE(plans.contains("missed")) << plans;
  }
}

// One order: of pods and workloads the more important goes first, of equals the older.
TEST(SlotsTest, PodsAndWorkloadsAreServedInOneOrder) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestPod{.name = "urgent", .cpu = 1000, .priority = 9, .created = 5});
  world.Put(TestPod{.name = "late", .cpu = 1000, .priority = 5, .created = 3});
  world.Put(TestPod{.name = "early", .cpu = 1000, .priority = 5, .created = 1});
  world.Put(WorkloadSpec{.name = "high", .count = 2, .priority = 5, .created = 2});
  world.Put(TestPod{.name = "low", .cpu = 1000, .created = 1});
  world.Put(TestNode{.name = "n1", .cpu = 4000});
  EXPECT_EQ(world.Cycle(),
            "default/high: q spot 2000 n1 n1; default/urgent on n1; default/early on n1; ");
}

// As of pods: who is not there any more, or can't come true, evicts nobody.
TEST(SlotsTest, WhoIsEvictedForAWorkloadStaysWhenItsPromiseEnds) {
  const auto begin = [](JointWorld& world) {
    world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
    world.Put(TestNode{.name = "n1", .cpu = 1000});
    world.Put(TestPod{.name = "low", .cpu = 1000, .created = 1, .node = "n1"});
    world.Put(WorkloadSpec{.name = "high", .priority = 5, .created = 4, .preempts = true});
    EXPECT_EQ(world.Cycle(),
              "evict pod default/low for default/high; default/high finds nodes for 0 of 1, "
              "promised; ");
  };
  const auto stays = [](const JointWorld& world) {
    const model::PodId low = world.state().FindPod("uid-low");
    return !world.state().pods().at(low).evicted_for.valid();
  };
  {
    JointWorld world(/*preemption=*/true);
    begin(world);
    world.Remove("high");
    EXPECT_TRUE(stays(world));
    EXPECT_EQ(world.Cycle(), "");
  }
  {
    JointWorld world(/*preemption=*/true);
    begin(world);
    world.Put(TestNode{.name = "n1", .cpu = 1000, .unschedulable = true});
    EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
    EXPECT_TRUE(stays(world)) << "its node is cordoned";
  }
  {
    JointWorld world(/*preemption=*/true);
    begin(world);
    world.engine.Apply(model::EvictionRefused{.uid = "uid-low", .code = 429, .at = world.now});
    EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
    EXPECT_TRUE(stays(world)) << "nobody may evict it for now";
    world.now = world.now + Duration::Seconds(3600);
    EXPECT_EQ(world.Cycle(),
              "evict pod default/low for default/high; default/high finds nodes for 0 of 1, "
              "promised; ");
  }
  {
    JointWorld world(/*preemption=*/true);
    begin(world);
    world.engine.Apply(model::NodeRemove{.name = "n1", .uid = {}});
    EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
    EXPECT_EQ(world.state().slots().free_count(), 0u);
  }
}

// Who is promised its room loses it with its quota: whom it would have evicted stays then, and is no
// room for who takes the quota.
TEST(SlotsTest, WhoTakesPromisedQuotaEvictsForItselfWhomTheOtherWouldHave) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 4000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 8000});
  world.Put(TestPod{.name = "low", .cpu = 8000, .created = 1, .node = "n1"});
  world.Put(WorkloadSpec{.name = "w", .cpu = 4000, .priority = 5, .created = 2, .preempts = true});
  EXPECT_EQ(world.Cycle(),
            "evict pod default/low for default/w; default/w finds nodes for 0 of 1, promised; ");
  world.Put(
      WorkloadSpec{.name = "high", .cpu = 4000, .priority = 9, .created = 3, .preempts = true});
  EXPECT_EQ(
      world.Cycle(),
      "evict pod default/low for default/high; default/high finds nodes for 0 of 1, promised; "
      "default/w lacks 4000; ");
  world.Gone("low");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 4000 n1; ");
}

// The place of a pod that waits, which leaves with its workload, is that one's again when it stays
// after all.
TEST(SlotsTest, WhoTakesPromisedQuotaGetsNoPlacesOfWhoStaysThen) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 12000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 8000});
  world.Starts(WorkloadSpec{.name = "low", .cpu = 4000, .created = 1});
  world.Put(TestPod{.name = "low-0", .cpu = 4000, .created = 1, .group = "g"}, "low");
  world.Put(TestNode{.name = "n2", .cpu = 4000});
  world.Put(WorkloadSpec{.name = "mid", .count = 3, .cpu = 4000, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(), "evict default/low for default/mid; default/mid waits for 1 to leave; ");
  world.Put(WorkloadSpec{.name = "high", .cpu = 8000, .priority = 9, .created = 3});
  EXPECT_EQ(world.Cycle(), "default/high finds nodes for 0 of 1; ");
  EXPECT_NE(world.RowOf("mid").promised, model::Reservation{});
}

// Who leaves for it, and was not told, stays when it gets quota of its own: its room is asked for
// anew.
TEST(SlotsTest, WhoGetsMoreQuotaEvictsForNodesWhomItEvictedForQuota) {
  JointWorld world(/*preemption=*/true);
  const QueueSpec queue{.name = "q", .flavors = {{"spot", 4000}}, .preemption = kEvicts};
  world.Put(queue);
  world.Put(TestNode{.name = "n1", .cpu = 4000});
  world.Starts(WorkloadSpec{.name = "low", .cpu = 4000, .created = 1});
  world.Bound(TestPod{.name = "low-0", .cpu = 4000, .created = 1}, "low", "n1");
  world.Put(
      WorkloadSpec{.name = "mid", .cpu = 4000, .priority = 5, .created = 2, .preempts = true});
  EXPECT_EQ(world.Cycle(), "evict default/low for default/mid; default/mid waits for 1 to leave; ");
  QueueSpec more = queue;
  more.flavors = {{"spot", 8000}};
  world.Put(more);
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/mid; default/mid finds nodes for 0 of 1, promised; ");
}

// A reservation whose write came to nothing is promised its quota: not for nodes that are gone.
TEST(SlotsTest, QuotaOfAWriteThatCameToNothingIsNotKeptWithoutNodes) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestNode{.name = "n1", .cpu = 4000});
  world.Put(TestNode{.name = "n2", .cpu = 1000});
  world.Put(WorkloadSpec{.name = "large", .cpu = 4000, .priority = 5});
  EXPECT_EQ(world.Cycle(), "default/large: q spot 4000 n1; ");
  world.Put(TestNode{.name = "n1", .cpu = 4000, .unschedulable = true});
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-large", .outcome = model::WriteOutcome::kNotSent, .at = world.now});
  world.Put(WorkloadSpec{.name = "small", .created = 3});
  EXPECT_EQ(world.Cycle(), "default/small: q spot 1000 n2; default/large finds nodes for 0 of 1; ");
}

TEST(SlotsTest, NobodyIsEvictedWhoIsNotBoundYet) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q"});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Put(TestPod{.name = "p", .cpu = 1000, .priority = 3, .created = 1});
  model::WorkloadUpsert facts =
      world.FactsOf(WorkloadSpec{.name = "w", .priority = 1, .created = 2, .preempts = true});
  facts.slots[0].priority = 9;  // Of its pods.
  world.engine.Apply(facts);
  EXPECT_EQ(world.Cycle(), "default/w finds nodes for 0 of 1, promised; ");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000 n1; ");
}

// Goal: nobody takes the place that a workload was admitted with, of whatever priority its pod is.
// Method: "job-0" waits for its error backoff; "p" needs what "holder" is promised.
TEST(SlotsTest, ThePlaceOfAnAdmittedPodIsNotTakenByWhoPreempts) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Put(TestPod{.name = "victim", .cpu = 500, .priority = -3, .node = "n1"});
  const WorkloadSpec job{.name = "job", .count = 1, .cpu = 500};
  world.Put(job);
  world.Cycle();
  world.ComesTrue(job);
  world.Put(TestPod{.name = "job-0", .cpu = 500}, "job");
  world.Cycle();
  world.engine.Apply(model::BindOutcome{
      .uid = "uid-job-0", .outcome = model::WriteOutcome::kRefused, .code = 500, .at = world.now});
  world.Put(TestPod{.name = "holder", .cpu = 500, .priority = 1});
  world.engine.Cycle(world.now);
  const auto promised = [&](const char* uid) {
    return world.state().PromiseOf(world.state().FindPod(uid)).valid();
  };
  EXPECT_TRUE(promised("uid-holder"));
  world.Put(TestPod{.name = "p", .cpu = 500, .priority = 5});
  world.engine.Cycle(world.now);
  EXPECT_TRUE(promised("uid-job-0"));
  EXPECT_FALSE(promised("uid-holder"));
  EXPECT_TRUE(promised("uid-p"));
}

}  // namespace
}  // namespace berth::cycle
