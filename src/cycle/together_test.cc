// Goal: workloads whose pods are of one group, which could start with none of them alone, get quota
// and places at once or not at all, and are told whom they wait for; whatever kept them waiting has
// them looked at again. Method: two or three Jobs of a group, and one thing after the other that is
// there for some of them only; audit and missed wake-ups after each cycle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cycle/test_team.h"

namespace berth::cycle {
namespace {

class TogetherWorld : public TeamWorld {
 public:
  explicit TogetherWorld(int32_t minimum = 4)
      : TeamWorld(
            Engine::Options{.preemption = true, .joint_placement = true, .second_pass_delay = {}}) {
    Put(TestNode{.name = "n1", .cpu = 9000});
    Team(9000);
    PutGroup("g", minimum);
  }
  using TeamWorld::Put;
  void Queue(const std::string& name, int64_t cpu, bool strict = false) {
    Put(QueueSpec{.name = name, .flavors = {{"spot", cpu}}, .strict = strict});
  }
  // Whose workloads are to pass the check c.
  void AskingQueue(const std::string& name, int64_t cpu, bool asks = true) {
    Queue(name, cpu);
    model::Vocabulary& v = engine.vocabulary();
    model::QueueUpsert facts{.name = name, .uid = "u-" + name};
    const std::vector<model::NameId> flavors = {v.names.Intern("spot")};
    const std::vector<model::ResourceId> resources = {model::kCpu};
    const std::vector<model::ResourceGroup> groups = {{.resources = resources, .flavors = flavors}};
    facts.groups = v.resource_groups.Intern(groups);
    facts.quotas = {{.flavor = flavors[0], .resource = model::kCpu, .quota = {.nominal = cpu}}};
    if (asks) facts.checks = {{.name = v.names.Intern("c"), .flavors = {}}};
    engine.Apply(facts);
  }
  // Its object says that it has its quota, and whether it passed the check.
  void HasQuota(const WorkloadSpec& w, bool passed = false) {
    model::WorkloadUpsert facts = FactsOf(w);
    const model::Workload& row = RowOf(w.name);
    facts.status.reserved = true;
    facts.status.reserved_at = Instant::FromSeconds(1000 + w.created);
    facts.reserved = row.status.reserved ? row.reserved : row.decided;
    if (passed) facts.checks = {engine.vocabulary().names.Intern("c")};
    facts.status.checks_ready = passed;
    engine.Apply(facts);
  }
  // Whom those are told to wait for that have quota, in a cycle that decides nothing.
  std::string Awaits() {
    const model::Plan plan = engine.Cycle(now);
    EXPECT_TRUE(plan.empty());
    std::string text;
    for (const model::PassHeldUp& held_up : plan.held_up) {
      EXPECT_TRUE(held_up.awaits_mates);
      text +=
          fmt::format("{} awaits {}; ", state().KeyOf(state().workloads().at(held_up.workload).key),
                      held_up.awaited.valid() ? state().KeyOf(held_up.awaited) : "others");
    }
    EXPECT_EQ(engine.CountMissedWakes(), 0u);
    return text;
  }
};

WorkloadSpec Of(const std::string& name, const std::string& queue, int64_t created) {
  return {.name = name, .queue = queue, .count = 2, .created = created, .gang = "g"};
}

TEST(TogetherTest, ThoseOfOneGroupAreAdmittedAtOnce) {
  TogetherWorld world;
  world.Queue("q", 9000);
  world.Put(Of("a", "q", 1));
  EXPECT_EQ(world.Cycle(), "default/a is 2 of a group that needs 4; ");
  world.Put(Of("b", "q", 2));
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n1; default/b: q spot 2000 n1 n1; ");
  world.ComesTrue(Of("a", "q", 1));
  EXPECT_EQ(world.Cycle(), "") << "the other's is under way";
  world.ComesTrue(Of("b", "q", 2));
  EXPECT_EQ(world.Cycle(), "");
  for (const std::string pod : {"a-0", "a-1"})
    world.Put(TestPod{.name = pod, .cpu = 1000, .group = "g"}, "a");
  EXPECT_EQ(world.Cycle(), "");
  for (const std::string pod : {"b-0", "b-1"})
    world.Put(TestPod{.name = pod, .cpu = 1000, .group = "g"}, "b");
  EXPECT_EQ(world.Cycle(),
            "default/a-0 on n1; default/a-1 on n1; default/b-0 on n1; default/b-1 on n1; ");
}

TEST(TogetherTest, OfSeveralQueuesWhoeverLacksQuotaKeepsTheOtherWaiting) {
  for (const std::string lacks : {"a", "b"}) {
    TogetherWorld world;
    world.Queue("q", lacks == "a" ? 1000 : 2000);
    world.Queue("r", lacks == "b" ? 1000 : 2000);
    world.Put(Of("a", "q", 1));
    world.Put(Of("b", "r", 2));
    const std::string other = lacks == "a" ? "b" : "a";
    EXPECT_EQ(world.Cycle(),
              fmt::format("default/{} wants 2000 of 1000; default/{} is 2 of a group that "
                          "needs 4 without default/{}; ",
                          lacks, other, lacks));
    EXPECT_EQ(world.Cycle(), "");
    world.Queue(lacks == "a" ? "q" : "r", 2000);
    EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n1; default/b: r spot 2000 n1 n1; ");
  }
}

// What is there for one of them, and not for both: quota, nodes, the room of their group's queue.
TEST(TogetherTest, WhatIsThereForOneOfThemGoesToOthers) {
  const std::string waits =
      "default/a is 2 of a group that needs 4 without default/b; "
      "default/b is 2 of a group that needs 4 without default/a; ";
  const std::string both = "default/a: q spot 2000 n1 n1; default/b: q spot 2000 n1 n1; ";
  for (const std::string of : {"quota", "nodes", "room"}) {
    TogetherWorld world;
    const auto give = [&](int64_t cpu) {
      if (of == "quota") world.Queue("q", cpu);
      if (of == "nodes") world.Put(TestNode{.name = "n1", .cpu = cpu});
      if (of == "room") world.Team(cpu);
    };
    world.Queue("q", 5000);
    give(3000);
    world.Put(Of("a", "q", 1));
    world.Put(Of("b", "q", 2));
    EXPECT_EQ(world.Cycle(), waits) << of;
    EXPECT_EQ(world.Cycle(), "") << of;
    // Nothing is kept for who can't start.
    world.Put(WorkloadSpec{.name = "small", .created = 3});
    EXPECT_EQ(world.Cycle(), "default/small: q spot 1000 n1; ") << of;
    world.Remove("small");
    world.Cycle();
    give(4000);
    EXPECT_EQ(world.Cycle(), both) << of;
  }
}

TEST(TogetherTest, AsManyAreAdmittedAsTheirGroupNeeds) {
  TogetherWorld world;
  world.Queue("q", 4000);
  world.Queue("r", 2000);
  world.Queue("none", 0);
  world.Put(Of("a", "q", 1));
  world.Put(Of("b", "none", 2));
  world.Put(Of("c", "r", 3));
  world.Put(Of("d", "q", 4));
  EXPECT_EQ(world.Cycle(),
            "default/a: q spot 2000 n1 n1; default/c: r spot 2000 n1 n1; "
            "default/d: q spot 2000 n1 n1; default/b wants 2000 of 0; ");
}

TEST(TogetherTest, OfAGroupThatComesToNeedFewerAsManyAreAdmitted) {
  TogetherWorld world(/*minimum=*/6);
  world.Queue("q", 4000);
  for (const std::string name : {"a", "b", "c"}) world.Put(Of(name, "q", name[0]));
  world.Cycle();
  EXPECT_EQ(world.Cycle(), "");
  world.PutGroup("g", 4);
  EXPECT_EQ(world.Cycle(),
            "default/a: q spot 2000 n1 n1; default/b: q spot 2000 n1 n1; default/c lacks 2000; ");
}

// One that is large, and first or last, would take what several have who are enough.
TEST(TogetherTest, OneThatTakesTooMuchIsLeftOut) {
  for (const int64_t large_created : {1, 9}) {
    TogetherWorld world(/*minimum=*/3);
    world.Queue("q", 4000);
    const auto put = [&](const std::string& name, int64_t cpu, int64_t created) {
      world.Put({.name = name, .count = 1, .cpu = cpu, .created = created, .gang = "g"});
    };
    put("large", 3000, large_created);
    for (int64_t i = 2; i < 5; ++i) put("w" + std::to_string(i), 1000, i);
    const std::string got = world.Cycle();
    for (const std::string name : {"w2", "w3", "w4"})
      EXPECT_TRUE(got.contains("default/" + name + ": q spot 1000 n1; ")) << got;
    EXPECT_FALSE(got.contains("default/large: ")) << got;
    world.Cycle();
    EXPECT_EQ(world.Cycle(), "") << "a fixed point";
  }
}

// The rest of a gang is not to be evicted for, and whoever waits in a strict queue is passed by none
// but those that its gang takes along.
TEST(TogetherTest, AGangStandsWhereItsFirstDoes) {
  TogetherWorld world;
  world.Queue("q", 4000, /*strict=*/true);
  world.Put(Of("a", "q", 1));
  world.Put(WorkloadSpec{.name = "between", .queue = "q", .count = 3, .created = 2});
  world.Put(Of("b", "q", 3));
  EXPECT_EQ(world.Cycle(),
            "default/a: q spot 2000 n1 n1; default/b: q spot 2000 n1 n1; "
            "default/between lacks 3000; ");
}

// Of whom is left the gang can't start: it gives up what it has, or waits as any that is alone.
TEST(TogetherTest, WhoIsLeftAloneGivesItsQuotaBack) {
  TogetherWorld world;
  world.Queue("q", 9000);
  world.Put(Of("a", "q", 1));
  world.Put(Of("b", "q", 2));
  world.Cycle();
  world.ComesTrue(Of("a", "q", 1));
  world.ComesTrue(Of("b", "q", 2));
  EXPECT_EQ(world.Cycle(), "");
  world.Remove("b");
  EXPECT_EQ(world.Cycle(), "default/a gives up; ");
}

TEST(TogetherTest, WhoseMateGoesWaitsInNobodysWay) {
  TogetherWorld world;
  world.Queue("q", 3000, /*strict=*/true);
  world.Put(Of("a", "q", 1));
  world.Put(Of("b", "q", 2));
  world.Put(WorkloadSpec{.name = "small", .created = 3});
  EXPECT_EQ(world.Cycle(),
            "default/a is 2 of a group that needs 4 without default/b; "
            "default/b behind default/a; default/small behind default/a; ");
  world.Remove("b");
  EXPECT_EQ(world.Cycle(),
            "default/small: q spot 1000 n1; default/a is 2 of a group that needs 4; ");
}

// ---- Refused writes --------------------------------------------------------------------------

// Whose quota the server refuses to write is not counted on by others until it is tried again:
// longer and longer, or when its object is another.
TEST(TogetherTest, WhoseWriteIsRefusedIsNoMateForAWhile) {
  for (const bool edited : {false, true}) {
    TogetherWorld world;
    world.Queue("q", 9000);
    world.Put(Of("a", "q", 1));
    world.Put(Of("b", "q", 2));
    const std::string both = "default/a: q spot 2000 n1 n1; default/b: q spot 2000 n1 n1; ";
    EXPECT_EQ(world.Cycle(), both);
    const auto refuse = [&] {
      world.engine.Apply(model::ReservationOutcome{
          .uid = "u-b", .outcome = model::WriteOutcome::kRefused, .at = world.now});
    };
    refuse();
    world.ComesTrue(Of("a", "q", 1));
    EXPECT_EQ(world.Cycle(), "default/a gives up; ");
    world.Put(Of("a", "q", 1));
    EXPECT_EQ(world.Cycle(), "default/a is 2 of a group that needs 4 without default/b; ");
    EXPECT_EQ(world.Cycle(), "") << "a fixed point";
    EXPECT_EQ(world.engine.wake_at(), world.now + Duration::Seconds(10));
    if (edited) {
      model::WorkloadUpsert facts = world.FactsOf(Of("b", "q", 2));
      facts.generation = 2;
      world.engine.Apply(facts);
    } else {
      world.now = world.now + Duration::Seconds(10);
    }
    EXPECT_EQ(world.Cycle(), both);
    world.ComesTrue(Of("a", "q", 1));
    EXPECT_EQ(world.Cycle(), "") << "the other is tried again, and counted on";
    refuse();
    EXPECT_EQ(world.Cycle(), "default/a gives up; ");
    world.Put(Of("a", "q", 1));
    world.Cycle();
    EXPECT_EQ(world.engine.wake_at(), world.now + Duration::Seconds(edited ? 10 : 20));
  }
}

// Nor who holds quota, and whose places it refuses to write.
TEST(TogetherTest, WhosePlacesAreRefusedIsCountedOnByNobody) {
  TogetherWorld world;
  world.Queue("q", 9000);
  world.AskingQueue("r", 9000);
  world.Put(Of("a", "q", 1));
  world.Put(Of("b", "r", 2));
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000; default/b: r spot 2000; ");
  world.HasQuota(Of("a", "q", 1));
  world.HasQuota(Of("b", "r", 2), /*passed=*/true);
  EXPECT_EQ(world.Cycle(), "default/a: n1 n1; default/b: n1 n1; ");
  world.ComesTrue(Of("a", "q", 1));
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-b", .outcome = model::WriteOutcome::kRefused, .at = world.now});
  EXPECT_EQ(world.Cycle(), "default/a gives up; ");
  EXPECT_EQ(world.Cycle(), "");
  world.IsTold(Of("a", "q", 1));
  EXPECT_EQ(world.Cycle(), "");
  world.now = world.now + Duration::Seconds(10);
  EXPECT_EQ(world.Cycle(), "default/b gives up; ");
}

// ---- Checks ----------------------------------------------------------------------------------

// Two of a group: a, of a queue that asks for nothing, and b, which is to pass a check.
class CheckedMates : public TogetherWorld {
 public:
  explicit CheckedMates(int32_t minimum = 4) : TogetherWorld(minimum) {
    Queue("q", 9000);
    AskingQueue("r", 9000);
    Put(a);
    Put(b);
  }
  // Both have quota, and one of them a check to pass.
  void HaveQuota() {
    EXPECT_EQ(Cycle(), "default/a: q spot 2000; default/b: r spot 2000; ") << "no places yet";
    HasQuota(a);
    HasQuota(b);
    EXPECT_EQ(Awaits(), "default/a awaits default/b; ");
    EXPECT_EQ(Awaits(), "") << "a fixed point";
  }
  using TogetherWorld::Put;
  const WorkloadSpec a = Of("a", "q", 1);
  const WorkloadSpec b = Of("b", "r", 2);
};

TEST(TogetherTest, NobodyIsAdmittedBeforeItsMatesPassedTheirChecks) {
  CheckedMates world;
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000; default/b: r spot 2000; ");
  world.HasQuota(world.a);
  EXPECT_EQ(world.Awaits(), "default/a awaits default/b; ") << "the other's quota is under way";
  world.HasQuota(world.b);
  EXPECT_EQ(world.Awaits(), "default/a awaits default/b; ");
  world.HasQuota(world.b, /*passed=*/true);
  EXPECT_EQ(world.Cycle(), "default/a: n1 n1; default/b: n1 n1; ") << "in one cycle";
  EXPECT_EQ(world.Cycle(), "");
  world.ComesTrue(world.a);
  world.ComesTrue(world.b);
  EXPECT_EQ(world.Cycle(), "");
}

TEST(TogetherTest, WhoPassedItsCheckWaitsForQuotaOfOthersThatIsUnderWay) {
  CheckedMates world;
  world.Cycle();
  world.HasQuota(world.b, /*passed=*/true);
  EXPECT_EQ(world.Awaits(), "default/b awaits default/a; ");
  world.HasQuota(world.a);
  EXPECT_EQ(world.Cycle(), "default/a: n1 n1; default/b: n1 n1; ");
}

TEST(TogetherTest, MatesThatAreEnoughWaitForNoOther) {
  CheckedMates world(/*minimum=*/2);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n1; default/b: r spot 2000; ");
  world.ComesTrue(world.a);
  world.HasQuota(world.b);
  EXPECT_EQ(world.Cycle(), "");
  world.HasQuota(world.b, /*passed=*/true);
  EXPECT_EQ(world.Cycle(), "default/b: n1 n1; ");
}

// Those that wait for a check are joined by one that makes up for it.
TEST(TogetherTest, AnotherMakesUpForWhoWaitsForItsCheck) {
  CheckedMates world;
  world.HaveQuota();
  const WorkloadSpec c = Of("c", "q", 3);
  world.Put(c);
  EXPECT_EQ(world.Cycle(), "default/c: q spot 2000; ") << "a has no places yet";
  world.HasQuota(c);
  EXPECT_EQ(world.Cycle(), "default/a: n1 n1; default/c: n1 n1; ");
  world.ComesTrue(world.a);
  world.ComesTrue(c);
  EXPECT_EQ(world.Cycle(), "");
  world.HasQuota(world.b, /*passed=*/true);
  EXPECT_EQ(world.Cycle(), "default/b: n1 n1; ");
}

TEST(TogetherTest, WhatTheQueueOfAMateAsksForNoMoreIsNotAwaited) {
  CheckedMates world;
  world.HaveQuota();
  world.AskingQueue("r", 9000, /*asks=*/false);
  EXPECT_EQ(world.Cycle(), "default/a: n1 n1; default/b: n1 n1; ");
}

TEST(TogetherTest, WhoFindsNoNodesWithItsMatesGivesUpAndTheyWithIt) {
  CheckedMates world;
  world.HaveQuota();
  world.Put(TestNode{.name = "n1", .cpu = 3000});
  world.HasQuota(world.b, /*passed=*/true);
  EXPECT_EQ(world.Cycle(), "default/b gives up; ") << "nothing is placed of the other";
  EXPECT_EQ(world.FreeCpu("n1"), 3000);
  EXPECT_EQ(world.Cycle(), "default/a gives up; ") << "before that is written";
  EXPECT_EQ(world.Cycle(), "");
}

// Of room in the queue of their group none is kept for who has no places yet.
TEST(TogetherTest, WhoFindsNoRoomInTheQueueOfItsGroupGivesUpAndTheOthersWithIt) {
  CheckedMates world;
  world.HaveQuota();
  world.Team(3000);
  EXPECT_EQ(world.Cycle(), "") << "each of them has room";
  world.HasQuota(world.b, /*passed=*/true);
  EXPECT_EQ(world.Cycle(), "default/b gives up; ");
  EXPECT_EQ(world.FreeCpu("n1"), 9000);
  world.IsTold(world.b);
  EXPECT_EQ(world.Cycle(), "default/a gives up; ");
}

// It was asked before the other, and is again since that one gives up: not when that is written.
TEST(TogetherTest, WhoseLessImportantMateHasNoRoomGivesUpNext) {
  CheckedMates world;
  WorkloadSpec large = world.b;
  large.cpu = 2000;
  world.Put(large);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000; default/b: r spot 4000; ");
  world.HasQuota(world.a);
  world.HasQuota(large);
  EXPECT_EQ(world.Awaits(), "default/a awaits default/b; ");
  world.Team(3000);
  EXPECT_EQ(world.Cycle(), "default/b gives up; ");
  EXPECT_EQ(world.Cycle(), "default/a gives up; ");
  EXPECT_EQ(world.Cycle(), "");
}

// So is who has a check to pass, where one of those finds no nodes that are placed without it.
TEST(TogetherTest, WhoHasChecksToPassGivesUpWithThoseThatFindNoNodes) {
  CheckedMates world;
  const WorkloadSpec c{
      .name = "c", .queue = "r", .count = 1, .priority = 1, .created = 3, .gang = "g"};
  world.Put(c);
  EXPECT_EQ(world.Cycle(),
            "default/c: r spot 1000; default/a: q spot 2000; default/b: r spot 2000; ");
  for (const WorkloadSpec& w : {world.a, world.b, c}) world.HasQuota(w);
  EXPECT_EQ(world.Awaits(), "default/a awaits default/c; ");
  world.Put(TestNode{.name = "n1", .cpu = 3000});
  world.HasQuota(world.b, /*passed=*/true);
  EXPECT_EQ(world.Cycle(), "default/b gives up; ");
  EXPECT_EQ(world.Cycle(), "default/c gives up; default/a gives up; ");
  EXPECT_EQ(world.Cycle(), "");
}

// It asked for another try, was rejected or evicted; its object is gone.
TEST(TogetherTest, WhoseMateLosesItsQuotaGivesItBackUnadmitted) {
  for (const bool gone : {false, true}) {
    CheckedMates world;
    world.HaveQuota();
    if (gone) {
      world.Remove("b");
    } else {
      world.IsTold(world.b);
    }
    EXPECT_EQ(world.Cycle(), "default/a gives up; ");
  }
}

TEST(TogetherTest, WhoseMateIsDeactivatedGivesItsQuotaBack) {
  CheckedMates world;
  world.HaveQuota();
  model::WorkloadUpsert inactive = world.FactsOf(world.b);
  inactive.status.active = false;
  inactive.status.reserved = true;
  inactive.reserved = world.RowOf("b").reserved;
  world.engine.Apply(inactive);
  EXPECT_EQ(world.Cycle(), "default/a gives up; ");
}

// A bug that is planted: so these see it.
TEST(TogetherTest, ItIsSeenWhereSomebodyIsAdmittedWithoutItsMates) {
  CheckedMates world;
  world.engine = Engine({.preemption = true,
                         .joint_placement = true,
                         .second_pass_delay = {},
                         .faults = {.admitted_without_mates = true}});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(9000);
  world.PutGroup("g", 4);
  world.Queue("q", 9000);
  world.AskingQueue("r", 9000);
  world.Put(world.a);
  world.Put(world.b);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n1; default/b: r spot 2000; ");
}

}  // namespace
}  // namespace berth::cycle
