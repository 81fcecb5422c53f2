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
  world.Queue("r", 9000);
  model::Vocabulary& v = world.engine.vocabulary();
  model::QueueUpsert checked{.name = "r", .uid = "u-r"};
  const std::vector<model::NameId> flavors = {v.names.Intern("spot")};
  const std::vector<model::ResourceId> resources = {model::kCpu};
  const std::vector<model::ResourceGroup> groups = {{.resources = resources, .flavors = flavors}};
  checked.groups = v.resource_groups.Intern(groups);
  checked.quotas = {{.flavor = flavors[0], .resource = model::kCpu, .quota = {.nominal = 9000}}};
  checked.checks = {{.name = v.names.Intern("c"), .flavors = {}}};
  world.engine.Apply(checked);
  world.Put(Of("a", "q", 1));
  world.Put(Of("b", "r", 2));
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n1; default/b: r spot 2000; ");
  world.ComesTrue(Of("a", "q", 1));
  model::WorkloadUpsert b = world.FactsOf(Of("b", "r", 2));
  b.status.reserved = true;
  b.reserved = world.RowOf("b").decided;
  b.checks = {v.names.Intern("c")};
  world.engine.Apply(b);
  EXPECT_EQ(world.Cycle(), "default/b: n1 n1; ");
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-b", .outcome = model::WriteOutcome::kRefused, .at = world.now});
  EXPECT_EQ(world.Cycle(), "default/a gives up; ");
  EXPECT_EQ(world.Cycle(), "");
  world.IsTold(Of("a", "q", 1));
  EXPECT_EQ(world.Cycle(), "");
  world.now = world.now + Duration::Seconds(10);
  EXPECT_EQ(world.Cycle(), "default/b gives up; ");
}

}  // namespace
}  // namespace berth::cycle
