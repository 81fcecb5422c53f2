// Goal: who got nothing of a flavor that its look ended at comes to those behind it. Method: plans
// of small worlds, printed, in which a cycle looks once at each head. (K050)
#include "cycle/flavor_scans.h"

#include <gtest/gtest.h>

#include <string>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/test_quota.h"

namespace berth::cycle {
namespace {

Engine::Options OneRound() {
  Engine::Options options;
  options.attempts_per_cycle_max = 1;
  return options;
}

// Two that want the same: the one that would borrow it is outrun.
class OutrunTest : public ::testing::Test {
 protected:
  OutrunTest() {
    world_.Put(QueueSpec{.name = "r", .cohort = "c", .flavors = {{"b", 4000}}});
    Give(0, 4000);
    world_.Put(wants_);
    world_.Put(WorkloadSpec{.name = "x", .queue = "r", .count = 3});
  }
  void Give(int64_t first, int64_t last) {
    world_.Put(
        QueueSpec{.name = "q", .cohort = "c", .flavors = {{"a", first}, {"b", 0}, {"c", last}}});
  }

  QuotaWorld world_{OneRound()};
  WorkloadSpec wants_ = {.name = "w", .count = 3};
};

TEST_F(OutrunTest, TheNextLookGoesOnBehindWhereItWasOutrun) {
  EXPECT_EQ(world_.Cycle(), "default/x: r b 3000; ");
  Give(4000, 4000);
  EXPECT_EQ(world_.Cycle(), "default/w: q c 3000; ");
}

TEST_F(OutrunTest, ANewVersionThatAsksForTheSameGoesOnToo) {
  world_.Cycle();
  wants_.created = 5;
  world_.Put(wants_);
  Give(4000, 4000);
  EXPECT_EQ(world_.Cycle(), "default/w: q c 3000; ");
}

TEST_F(OutrunTest, OneThatAsksForSomethingElseBeginsAnew) {
  world_.Cycle();
  wants_.count = 4;
  world_.Put(wants_);
  Give(4000, 4000);
  EXPECT_EQ(world_.Cycle(), "default/w: q a 4000; ");
}

TEST_F(OutrunTest, AnotherOfThatUidsRowBeginsAnew) {
  world_.Cycle();
  world_.Remove("w");
  world_.Cycle();
  world_.Put(wants_);
  Give(4000, 4000);
  EXPECT_EQ(world_.Cycle(), "default/w: q a 3000; ");
}

TEST_F(OutrunTest, WhoFindsNothingBehindItBeginsAnew) {
  world_.Cycle();
  Give(4000, 1000);
  EXPECT_EQ(world_.Cycle(), "default/w: q a 3000; ");
}

// Pods of the first set would take what those of the second can have alone.
TEST(FlavorScansTest, AllFlavorsAreTriedBeforeItIsRefused) {
  QuotaWorld world;
  model::Vocabulary& v = world.engine.vocabulary();
  for (const char* zone : {"a", "b"}) {
    world.engine.Apply(model::FlavorUpsert{
        .name = zone,
        .uid = zone,
        .labels = {{.key = v.names.Intern("zone"), .value = v.names.Intern(zone)}}});
  }
  world.Put(QueueSpec{.name = "q", .flavors = {{"a", 4000}, {"b", 4000}}});
  model::WorkloadUpsert facts = world.FactsOf(WorkloadSpec{.name = "w", .count = 3});
  facts.slots.push_back({.name = v.names.Intern("narrow"),
                         .class_id = ClassOf(v, TestPod{.cpu = 1000, .selector = {{"zone", "a"}}}),
                         .count = 2});
  world.engine.Apply(facts);
  EXPECT_EQ(world.Cycle(), "default/w: q b 3000 a 2000; ");
}

}  // namespace
}  // namespace berth::cycle
