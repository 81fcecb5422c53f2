// Goal: workloads whose flavor has a topology get quota together with places in it, which their pods
// find again; what fails later is replaced, or given up, once, on what was observed, and nothing of
// one that is over. Method: plans of small worlds, printed; random histories are in a file of their
// own.
#include "cycle/second_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cycle/test_topology.h"

namespace berth::cycle {
namespace {

// ---- Admission -------------------------------------------------------------------------------

class ByTopology : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(JointAndSeparate, ByTopology, ::testing::Bool());

TEST_P(ByTopology, AllPodsStandInADomainOfTheLevelThatIsRequired) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Node("a2", "a");
  world.Node("b1", "b", 2000);
  world.Node("b2", "b");
  world.Put({.name = "w", .count = 3}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 3000 b1 b1 b2; ");
  EXPECT_EQ(world.FreeCpu("b1"), 0) << "its places are in the ledger, in either mode";
  const model::TopologyPlaces& places = world.RowOf("w").decided.topologies.at(0);
  EXPECT_EQ(places.levels, std::vector{world.Name(kHost)});
  EXPECT_EQ(places.shares,
            (std::vector<model::TopologyShare>{{.values = {world.Name("b1")}, .count = 2},
                                               {.values = {world.Name("b2")}, .count = 1}}));
  world.Reserved("w");
  EXPECT_EQ(world.Cycle(), "") << "a fixed point";
}

TEST_P(ByTopology, PodsWithAHostPortStandOnNodesOfTheirOwn) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a", 8000);
  world.Node("b1", "b", 2000);
  world.Node("b2", "b", 2000);
  world.Put({.name = "w", .count = 2, .host_port = 80}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 2000 b1 b2; ");
  world.Reserved("w");
  world.Put({.name = "v", .count = 2, .host_port = 80}, "rack");
  EXPECT_EQ(world.Cycle(), "default/v finds 1 of 2 in rack; ") << "those of rack b are taken";
  world.Node("a2", "a");
  EXPECT_EQ(world.Cycle(), "default/v: q spot 2000 a1 a2; ");
}

TEST_P(ByTopology, ARackHoldsAsManyPodsWithAHostPortAsItHasNodes) {
  TopologyWorld world(GetParam(), {"rack"});
  world.Node("a1", "a", 8000);
  world.Put({.name = "w", .count = 2, .host_port = 80}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w finds 1 of 2 in rack; ");
  world.Node("a2", "a");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 2000 a1 a2; ");
}

// An object may name a domain that never was a node: it is waited for, as one that is gone.
TEST_P(ByTopology, ADomainThatNeverWasANodeIsWaitedFor) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Node("a2", "a");
  world.Starts({.name = "w", .count = 2}, "rack");
  model::Reservation& reserved = world.objects.at("w").reserved;
  reserved.topologies.at(0).shares.at(1).values = {world.Name("zz")};
  reserved.slots.clear();
  world.Fails("w", "a1");
  EXPECT_EQ(world.Pass(), "");
}

// Of one that runs and whose template can't be read any more it is known where its pods stand, and
// not what they are: nobody can place them.
TEST_P(ByTopology, OfWhoseTemplateCantBeReadNothingIsDue) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2"}) world.Node(node, "a");
  world.Starts({.name = "w"}, "rack");
  world.objects.at("w").slots.clear();
  world.Fails("w", "a1");
  EXPECT_EQ(PassOf(world.state(), world.state().FindWorkload("u-w"), GetParam()),
            model::Pass::kNone);
  EXPECT_EQ(world.Cycle(), "");
  world.objects.at("w").slots = world.FactsOf({.name = "w"}).slots;
  world.Tell("w");
  EXPECT_EQ(world.Pass(), "default/w without a1: a2; ");
}

TEST_P(ByTopology, WhoFindsNoDomainWaitsForNodes) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Node("b1", "b");
  world.Put({.name = "w", .count = 2}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w finds 1 of 2 in rack; ");
  world.Node("c1", "c", 2000, /*ready=*/false);
  EXPECT_EQ(world.Cycle(), "") << "not ready";
  world.Node("c1", "c", 2000);
  EXPECT_EQ(world.Cycle(), "default/w: q spot 2000 c1 c1; ");
}

// K062: what a layer leaves over of the slices above it would have quota and no place.
TEST_P(ByTopology, LayersThatDivideNoSliceAreRefused) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a", 8000);
  const auto put = [&](const std::string& name, uint32_t count,
                       const std::vector<std::pair<std::string, uint32_t>>& slices) {
    world.Put({.name = name, .count = count}, "rack");
    for (const auto& [level, size] : slices)
      world.objects.at(name).slots[0].topology.slices.push_back(
          {.level = world.Name(level), .size = size});
    world.Tell(name);
    return world.Cycle();
  };
  EXPECT_EQ(put("x", 4, {{"rack", 4}, {kHost, 3}}),
            "default/x finds 3 of 4 in kubernetes.io/hostname; ");
  EXPECT_EQ(put("y", 4, {{"rack", 4}, {kHost, 2}}), "default/y: q spot 4000 a1 a1 a1 a1; ");
}

// The lowest level has none below it that could be named.
TEST_P(ByTopology, SlicesWithinThoseOfTheLowestLevelAreRefused) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a", 8000);
  world.Put({.name = "w", .count = 4}, "rack");
  world.objects.at("w").slots[0].topology.slices = {{.level = world.Name(kHost), .size = 4},
                                                    {.level = world.Name("rack"), .size = 2}};
  world.Tell("w");
  world.Cycle();
  const auto why = world.engine.admissions().WhyWaits(world.state().FindWorkload("u-w"));
  ASSERT_TRUE(why.has_value());
  const auto& refusal = why->places.at(0).topology;
  EXPECT_EQ(refusal->kind, model::TopologyRefusal::Kind::kSliceAbove);
  EXPECT_EQ(refusal->level, world.Name("rack"));
  EXPECT_EQ(refusal->within, world.Name(kHost));
}

// K009: each decision is charged before the next is made.
TEST_P(ByTopology, TwoOfOneCycleDontTakeTheSameRoom) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Node("b1", "b");
  world.Put({.name = "v", .created = 1}, "rack");
  world.Put({.name = "w", .created = 2}, "rack");
  world.Put({.name = "x", .created = 3}, "rack");
  EXPECT_EQ(world.Cycle(),
            "default/v: q spot 1000 a1; default/w: q spot 1000 b1; "
            "default/x finds 0 of 1 in rack; ");
}

TEST_P(ByTopology, AQueueOfTopologiesAlonePlacesThoseWhoDontAsk) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Node("b1", "b");
  world.Put({.name = "w", .count = 2}, "");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 2000 a1 b1; ");
}

TEST_P(ByTopology, OfWiderDomainsTheNodesAreClaimedToo) {
  TopologyWorld world(GetParam(), {"rack"});
  world.Node("a1", "a");
  world.Node("a2", "a");
  world.Put({.name = "w", .count = 2}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 2000 a1 a2; ");
  EXPECT_EQ(world.RowOf("w").decided.topologies.at(0).shares,
            (std::vector<model::TopologyShare>{{.values = {world.Name("a")}, .count = 2}}));
  world.Put({.name = "x", .cpu = 500}, "rack");
  EXPECT_EQ(world.Cycle(), "default/x finds 0 of 1 in rack; ");
}

// What a domain of several nodes has in sum may be in pieces.
TEST_P(ByTopology, RoomInPiecesIsNone) {
  TopologyWorld world(GetParam(), {"rack"});
  world.Node("a1", "a", 500);
  world.Node("a2", "a", 500);
  world.Put({.name = "w"}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w finds nodes for 0 of 1; ");
}

// Quota is left, and the domain is taken: who may be evicted leaves it, as few as will do.
TEST_P(ByTopology, OthersLeaveTheirPlacesToWhoIsMoreImportant) {
  TopologyWorld world(GetParam());
  world.PutQueue(8000, kEvicts);
  world.Node("a1", "a");
  world.Node("b1", "b");
  const WorkloadSpec low{.name = "low", .created = 1};
  world.Starts(low, kHost);
  world.Starts({.name = "mid", .priority = 1, .created = 2}, kHost);
  world.Put({.name = "high", .priority = 2, .created = 3}, kHost);
  EXPECT_EQ(world.Cycle(), "evict default/low for default/high; default/high finds 0 of 1 in " +
                               std::string(kHost) + "; ");
  EXPECT_EQ(world.Cycle(), "") << "a fixed point, until it has left";
  // Its place is not for whoever comes first.
  world.Put({.name = "other", .created = 4}, kHost);
  EXPECT_EQ(world.Cycle(), "default/other finds 0 of 1 in " + std::string(kHost) + "; ");
  world.Remove("low");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 1000 a1; ");
}

// No eviction makes a node larger, and none is for what priority protects.
TEST_P(ByTopology, NobodyIsEvictedForPlacesThatWouldNotDo) {
  TopologyWorld world(GetParam());
  world.PutQueue(8000, kEvicts);
  world.Node("a1", "a");
  world.Starts({.name = "low", .created = 1}, kHost);
  world.Put({.name = "wide", .cpu = 2000, .priority = 2, .created = 2}, kHost);
  world.Put({.name = "equal", .created = 3}, kHost);
  world.engine.Cycle(world.now);
  const auto why = [&](const std::string& name) {
    return world.engine.admissions().WhyWaits(world.state().FindWorkload("u-" + name))->unfit;
  };
  EXPECT_EQ(why("wide"), model::Unfit::kNoPlaces);
  EXPECT_EQ(why("equal"), model::Unfit::kWaiting) << "it could stand there if others left";
  EXPECT_FALSE(world.RowOf("low").claimant.valid());
}

// What two leave for two others is not counted twice.
TEST_P(ByTopology, PlacesThatOthersLeaveArePromisedOnce) {
  TopologyWorld world(GetParam());
  world.PutQueue(8000, kEvicts);
  world.Node("a1", "a");
  world.Node("b1", "b");
  world.Starts({.name = "low1", .created = 1}, kHost);
  world.Starts({.name = "low2", .created = 2}, kHost);
  world.Put({.name = "v", .priority = 2, .created = 3}, kHost);
  world.Put({.name = "w", .priority = 2, .created = 4}, kHost);
  world.engine.Cycle(world.now);
  EXPECT_TRUE(world.RowOf("low1").claimant.valid());
  EXPECT_TRUE(world.RowOf("low2").claimant.valid());
  EXPECT_NE(world.RowOf("low1").claimant, world.RowOf("low2").claimant);
}

// Of who may start with fewer pods as many get places as there are.
TEST_P(ByTopology, FewerPodsGetThePlacesThatThereAre) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a", 2000);
  model::WorkloadUpsert facts = world.FactsOf({.name = "w", .count = 5});
  facts.slots[0].missing_max = 4;
  facts.slots[0].topology.asked = true;
  facts.slots[0].topology.required = world.Name("rack");
  world.engine.Apply(facts);
  EXPECT_EQ(world.Cycle(), "default/w: q spot 2000 a1 a1; ");
}

TEST(ByTopologyTest, PodsTakeThePlacesOfTheNodesThatTheySelect) {
  TopologyWorld world;
  world.Node("a1", "a");
  world.Node("a2", "a");
  world.Starts({.name = "w", .count = 2}, "rack");
  world.Pod("w", "w-0", "a2");
  EXPECT_EQ(world.Cycle(), "default/w-0 on a2; ");
  EXPECT_EQ(world.state().slots().free_count(), 1u);
  world.Pod("w", "w-1", "a1");
  EXPECT_EQ(world.Cycle(), "default/w-1 on a1; ");
}

// K010: a pod that is let in while its node is away takes its place when that comes, or is labelled
// as the pod asks, and not at the next change of the pod.
TEST(ByTopologyTest, APodTakesItsPlaceWhenItsNodeComes) {
  for (const bool relabelled : {false, true}) {
    TopologyWorld world;
    world.Node("a1", "a");
    world.Starts({.name = "w"}, "rack");
    if (relabelled) {
      world.engine.Apply(FactsOf(world.engine.vocabulary(), TestNode{.name = "a1", .cpu = 1000}));
    } else {
      world.NodeGone("a1");
    }
    world.Pod("w", "w-0", "a1");
    EXPECT_EQ(world.Cycle(), "");
    world.Node("a1", "a");
    EXPECT_EQ(world.Cycle(), "default/w-0 on a1; ") << relabelled;
    EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>());
  }
}

// ---- Nodes that fail -------------------------------------------------------------------------

// K010, K013: its place is not claimed a second time while another is written beside it.
TEST(ByTopologyTest, WhoWaitsForANodeThatIsGoneKeepsItsPlace) {
  TopologyWorld world;
  for (const char* node : {"a1", "a2"}) world.Node(node, "a");
  world.Starts({.name = "w"}, "rack");
  world.Pod("w", "w-0", "a1");
  EXPECT_EQ(world.state().slots().free_count(), 0u);
  world.NodeGone("a1");
  world.Fails("w", "a1");
  EXPECT_EQ(world.Cycle(), "default/w without a1: a2; ");
  EXPECT_EQ(world.state().slots().free_count(), 1u) << "the one on a2";
  EXPECT_EQ(world.FreeCpu("a2"), 0);
  EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>());
  // The node comes back instead.
  world.objects.at("w").unhealthy.clear();
  world.Tell("w");
  world.Node("a1", "a");
  EXPECT_EQ(world.Cycle(), "default/w-0 on a1; ");
  EXPECT_EQ(world.FreeCpu("a2"), 1000);
}

TEST_P(ByTopology, PodsOfAFailedNodeGetAnotherAndTheOthersStay) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2", "a3"}) world.Node(node, "a");
  world.Node("a0", "a-1");  // K023: a rack whose name begins alike.
  world.Starts({.name = "w", .count = 2}, "rack");
  world.NodeGone("a1");
  EXPECT_EQ(world.Cycle(), "") << "nobody said that it failed yet";
  world.Fails("w", "a1");
  EXPECT_EQ(world.Pass(), "default/w without a1: a2 a3; ");
  EXPECT_EQ(world.Pass(), "") << "once";
  EXPECT_EQ(world.FreeCpu("a3"), 0);
}

// Its pod comes to it when there is room again, or with the next failure.
TEST_P(ByTopology, APlaceThatWasGivenUpIsNotClaimedWithThoseThatReplaceOthers) {
  for (const bool comes : {false, true}) {
    TopologyWorld world(GetParam());
    for (const char* node : {"a1", "a2", "a3"}) world.Node(node, "a");
    world.Starts({.name = "w", .count = 2}, "rack");
    world.Pod("w", "w-0", "a1", /*bound=*/true);
    world.Node("a1", "a", 500);
    world.engine.Apply(model::PodRemove{.uid = "uid-w-0"});
    if (comes) world.Pod("w", "w-1", "a1");
    EXPECT_EQ(world.Pass(), "");
    EXPECT_EQ(world.FreeCpu("a1"), 500) << "its place was given up";
    world.Fails("w", "a2");
    EXPECT_EQ(world.Pass(), "default/w without a2: a1 a3; ");
    EXPECT_EQ(world.FreeCpu("a1"), 500);
    EXPECT_EQ(world.FreeCpu("a3"), 0);
    world.Node("a1", "a");
    EXPECT_EQ(world.Cycle(), comes ? "default/w-1 on a1; " : "");
  }
}

TEST_P(ByTopology, WhatIsBeingWrittenIsClaimedBesideWhatThereIs) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2"}) world.Node(node, "a");
  world.Starts({.name = "w"}, "rack");
  world.Fails("w", "a1");
  EXPECT_EQ(world.Cycle(), "default/w without a1: a2; ");
  EXPECT_EQ(world.FreeCpu("a1"), 0);
  EXPECT_EQ(world.FreeCpu("a2"), 0);
  EXPECT_EQ(world.Cycle(), "") << "while its write is under way it is not decided again";
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-w", .outcome = model::WriteOutcome::kConflict, .at = world.now});
  EXPECT_EQ(world.Cycle(), "") << "nor before it is known what became of it";
  world.engine.Apply(model::ReservationRead{.uid = "u-w"});
  EXPECT_EQ(world.Cycle(), "default/w without a1: a2; ");
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-w", .outcome = model::WriteOutcome::kRefused, .at = world.now});
  EXPECT_EQ(world.FreeCpu("a2"), 1000);
  EXPECT_EQ(world.Cycle(), "");
  world.now = world.now + Duration::Seconds(20);
  EXPECT_EQ(world.Cycle(), "default/w without a1: a2; ") << "after the error backoff";
}

// K006, K017, R5: a version that comes in between is what counts.
TEST_P(ByTopology, ANodeThatIsWellAgainIsLeftAlone) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2"}) world.Node(node, "a");
  world.Starts({.name = "w"}, "rack");
  world.Fails("w", "a1");
  EXPECT_EQ(world.Cycle(), "default/w without a1: a2; ");
  world.objects.at("w").unhealthy.clear();
  world.Tell("w");
  EXPECT_EQ(world.FreeCpu("a2"), 1000) << "what was decided is withdrawn";
  EXPECT_EQ(world.Cycle(), "");
}

// K012, K014: where there is no replacement it is evicted, and holds all it has until then.
TEST_P(ByTopology, WithoutAReplacementItIsEvicted) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Node("b1", "b");
  world.Starts({.name = "w", .count = 1}, "rack");
  world.Starts({.name = "x", .count = 1, .created = 1}, "rack");
  world.NodeGone("a1");
  world.Fails("w", "a1");
  EXPECT_EQ(world.Cycle(), "default/w gives up for a1; ");
  EXPECT_EQ(StageOf(world.RowOf("w").status), model::WorkloadStage::kAdmitted);
  EXPECT_EQ(world.state().ledger().slots_charged(), 2) << "its quota is its own";
  EXPECT_EQ(world.Cycle(), "") << "while that is written";
}

// K016: of several nodes that failed none hides another.
TEST_P(ByTopology, AllThatFailedAreReplacedTogether) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2", "a3", "a4"}) world.Node(node, "a");
  world.Starts({.name = "w", .count = 2}, "rack");
  world.Fails("w", "a1");
  world.Fails("w", "a2");
  EXPECT_EQ(world.Pass(), "default/w without a1 without a2: a3 a4; ");
  EXPECT_TRUE(world.objects.at("w").unhealthy.empty());
}

// K062: all pods have places, those that make no whole slice beside each other; they need the room
// of one.
TEST_P(ByTopology, WhatMakesNoWholeSliceHasPlacesToo) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2"}) world.Node(node, "a");
  for (const char* node : {"b1", "b2"}) world.Node(node, "b");
  world.PutSliced({.name = "w", .count = 3}, "rack", 2);
  EXPECT_EQ(world.Cycle(), "default/w: q spot 3000 a1 a2 b1; ");
  world.Reserved("w");
  world.PutSliced({.name = "x", .count = 1, .created = 1}, "rack", 2);
  EXPECT_EQ(world.Cycle(), "default/x finds 0 of 1 in rack; ");
  world.Node("b3", "b");
  EXPECT_EQ(world.Cycle(), "default/x: q spot 1000 b2; ");
}

// K024: pods go where their slice misses them; where two do they have no one place.
TEST_P(ByTopology, SlicesStayWhole) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2", "a3"}) world.Node(node, "a");
  for (const char* node : {"b1", "b2"}) world.Node(node, "b");
  world.PutSliced({.name = "w", .count = 4}, "rack", 2);
  EXPECT_EQ(world.Cycle(), "default/w: q spot 4000 a1 a2 b1 b2; ");
  world.Reserved("w");
  world.Node("a4", "a");
  world.Fails("w", "a1");
  EXPECT_EQ(world.Pass(), "default/w without a1: a2 a3 b1 b2; ");
  world.Fails("w", "a2");
  world.Fails("w", "b1");
  EXPECT_EQ(world.Cycle(), "default/w gives up for a2 for b1; ");
}

// R5: one that fails while the first is being replaced is not forgotten.
TEST_P(ByTopology, ASecondFailureIsDecidedOnItsOwnVersion) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2", "a3", "a4"}) world.Node(node, "a");
  world.Starts({.name = "w", .count = 2}, "rack");
  world.Fails("w", "a1");
  EXPECT_EQ(world.Cycle(), "default/w without a1: a2 a3; ");
  world.Fails("w", "a2");
  EXPECT_EQ(world.Pass(), "default/w without a1 without a2: a3 a4; ");
}

// K001 (https://github.com/kubernetes-sigs/kueue/issues/5561): Finished and Evicted come by another
// request than what made the pass due; the nodes are still named.
TEST_P(ByTopology, NothingIsDueOfWhatIsOver) {
  for (const bool evicted : {false, true}) {
    TopologyWorld world(GetParam());
    for (const char* node : {"a1", "a2"}) world.Node(node, "a");
    world.Starts({.name = "w"}, "rack");
    world.objects.at("w").status.finished = !evicted;
    if (evicted) world.objects.at("w").status.evicted_for = model::EvictedFor::kOther;
    world.Fails("w", "a1");
    EXPECT_EQ(world.Cycle(), "");
    EXPECT_EQ(world.FreeCpu("a2"), 1000);
  }
}

// With the defect planted, as a mark or as a captured workload, it is decided again.
TEST(SecondPassTest, WhatIsDueBecauseItWasIsFound) {
  model::Faults mark;
  mark.second_pass_by_mark = true;
  model::Faults replayed;
  replayed.second_pass_replayed = true;
  for (const model::Faults& faults : {mark, replayed}) {
    TopologyWorld world(true, {"rack", kHost}, faults);
    for (const char* node : {"a1", "a2"}) world.Node(node, "a");
    world.Starts({.name = "w"}, "rack");
    world.Fails("w", "a1");
    world.objects.at("w").status.finished = true;
    world.Tell("w");
    EXPECT_EQ(world.Cycle(), "default/w without a1: a2; ");
  }
}

// The same while it was decided and its write is under way.
TEST_P(ByTopology, WhatWasDecidedEndsWithTheWorkload) {
  for (const bool removed : {false, true}) {
    TopologyWorld world(GetParam());
    for (const char* node : {"a1", "a2"}) world.Node(node, "a");
    world.Starts({.name = "w"}, "rack");
    world.Fails("w", "a1");
    EXPECT_EQ(world.Cycle(), "default/w without a1: a2; ");
    if (removed) {
      world.Remove("w");  // K002, K003, R4
    } else {
      world.objects.at("w").status.finished = true;
      world.Tell("w");
    }
    EXPECT_EQ(world.FreeCpu("a2"), 1000);
    EXPECT_EQ(world.Cycle(), "");
    world.engine.Apply(model::ReservationOutcome{
        .uid = "u-w", .outcome = model::WriteOutcome::kConflict, .at = world.now});
    EXPECT_EQ(world.Cycle(), "");
  }
}

// R4: no LocalQueue is asked for.
TEST_P(ByTopology, ThatItsQueueIsGoneChangesNothing) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2"}) world.Node(node, "a");
  world.Starts({.name = "w"}, "rack");
  world.engine.Apply(model::LocalQueueRemove{.uid = "u-lq-q"});
  world.Fails("w", "a1");
  EXPECT_EQ(world.Pass(), "default/w without a1: a2; ");
}

// K015: who leaves already leaves a node for it.
TEST_P(ByTopology, WhatWillBeFreeIsWaitedFor) {
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Starts({.name = "w"}, "rack");
  world.Node("a2", "a");
  model::PodUpsert other = FactsOf(
      world.engine.vocabulary(),
      TestPod{.name = "other", .cpu = 1000, .node = "a2", .terminating = true, .deadline = 2000});
  world.engine.Apply(other);
  world.Fails("w", "a1");
  EXPECT_EQ(world.Cycle(), "");
  world.engine.Apply(model::PodRemove{.uid = "uid-other"});
  EXPECT_EQ(world.Pass(), "default/w without a1: a2; ");
}

// A node that is silent, and is not reported yet, is not counted on, nor is it the workload's end.
TEST_P(ByTopology, WhatIsAboutToBeReportedIsWaitedFor) {
  TopologyWorld world(GetParam());
  for (const char* node : {"a1", "a2", "a3", "a4"}) world.Node(node, "a");
  world.Starts({.name = "w", .count = 2}, "rack");
  world.NodeGone("a1");
  world.Node("a2", "a", 1000, /*ready=*/false);
  world.Fails("w", "a1");
  EXPECT_EQ(world.Cycle(), "");
  world.Fails("w", "a2");
  EXPECT_EQ(world.Pass(), "default/w without a1 without a2: a3 a4; ");
}

// ---- Checks ----------------------------------------------------------------------------------

TEST_P(ByTopology, WithChecksToPassThePlacesComeWithTheAdmission) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Node("a1", "a");
  world.Put({.name = "w"}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ") << "quota alone";
  world.Reserved("w", /*admitted=*/false);
  world.objects.at("w").checks_pending = true;
  world.Tell("w");
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.FreeCpu("a1"), 1000);
  // S5: once between "all Ready" and Admitted.
  world.ChecksPass("w");
  EXPECT_EQ(world.Pass(), "default/w: a1; ");
  EXPECT_EQ(world.Pass(), "");
  EXPECT_EQ(world.FreeCpu("a1"), 0);
}

// Nothing that it is to pass changes the nodes that there are.
TEST_P(ByTopology, WithChecksThatBringNoNodesThePlacesComeWithTheQuota) {
  TopologyWorld world(GetParam());
  world.AskFor("c", /*brings_nodes=*/false);
  world.Node("a1", "a");
  world.Put({.name = "w"}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000 a1; ");
  world.Reserved("w", /*admitted=*/false);
  world.objects.at("w").checks_pending = true;
  world.Tell("w");
  EXPECT_EQ(world.FreeCpu("a1"), 0) << "its place is kept until it is admitted";
  world.Put({.name = "x"}, "rack");
  EXPECT_EQ(world.Cycle(), "default/x finds 0 of 1 in rack; ");
  world.ChecksPass("w");
  EXPECT_EQ(world.Pass(), "default/w: a1; ") << "it has them";
  EXPECT_EQ(world.Pass(), "");
  // From now on one of them does.
  world.AskFor("c");
  world.Node("b1", "b");
  EXPECT_EQ(world.Cycle(), "default/x: q spot 1000; ");
}

// Nobody watches its nodes until it is admitted: who admits it finds them there, or others.
TEST_P(ByTopology, WhoseNodesWentWhileItWasCheckedGetsOthersBeforeItIsAdmitted) {
  for (const bool others : {true, false}) {
    TopologyWorld world(GetParam());
    world.AskFor("c", /*brings_nodes=*/false);
    world.Node("a1", "a");
    world.Put({.name = "w"}, "rack");
    EXPECT_EQ(world.Cycle(), "default/w: q spot 1000 a1; ");
    world.Reserved("w", /*admitted=*/false);
    world.objects.at("w").checks_pending = true;
    world.Tell("w");
    world.NodeGone("a1");
    if (others) world.Node("a2", "a");
    EXPECT_EQ(world.Pass(), "") << "it may come again";
    world.ChecksPass("w");
    EXPECT_EQ(world.Pass(), others ? "default/w without a1: a2; " : "default/w gives up for a1; ");
    EXPECT_FALSE(world.RowOf("w").status.admitted);
    EXPECT_EQ(world.Pass(), others ? "default/w: a2; " : "");
    EXPECT_EQ(world.RowOf("w").status.admitted, others);
  }
}

// A PriorityClass that changes is no news of the object that is being written.
TEST(SecondPassTest, ANewPriorityOfItsPodsLeavesWhatIsUnderWay) {
  TopologyWorld world(/*joint=*/true);
  world.PutQueue(8000);
  for (const char* node : {"a1", "a2"}) world.Node(node, "a");
  world.Starts({.name = "w"}, "rack");
  world.Fails("w", "a1");
  EXPECT_EQ(world.engine.Cycle(world.now).passes.size(), 1U);
  EXPECT_EQ(world.FreeCpu("a2"), 0);
  world.objects.at("w").slots[0].priority += 5;
  world.objects.at("w").slots[0].preempts = !world.objects.at("w").slots[0].preempts;
  world.Tell("w");
  EXPECT_EQ(world.FreeCpu("a2"), 0) << "its new place is kept while it is written";
}

// What fails within that time is replaced in one decision.
TEST(SecondPassTest, WhatIsDueWaitsForWhatComesWithIt) {
  TopologyWorld delayed(/*joint=*/true, {"rack", kHost}, {}, Duration::Seconds(1));
  delayed.PutQueue(8000);
  for (const char* node : {"a1", "a2"}) delayed.Node(node, "a");
  delayed.Starts({.name = "w", .count = 2}, "rack");
  for (const char* node : {"b1", "b2"}) delayed.Node(node, "b");
  delayed.Fails("w", "a1");
  EXPECT_EQ(delayed.Cycle(), "");
  EXPECT_EQ(delayed.engine.wake_at(), delayed.now + Duration::Seconds(1));
  delayed.now = delayed.now + Duration::Milliseconds(999);
  delayed.Fails("w", "a2");
  EXPECT_EQ(delayed.Cycle(), "");
  delayed.now = delayed.now + Duration::Milliseconds(1);
  EXPECT_EQ(delayed.Pass(), "default/w without a1 without a2: b1 b2; ");
  // The next one waits as long.
  delayed.Fails("w", "b1");
  EXPECT_EQ(delayed.Pass(), "");
  delayed.objects.at("w").unhealthy.clear();
  delayed.Tell("w");
  delayed.now = delayed.now + Duration::Seconds(1);
  EXPECT_EQ(delayed.Pass(), "") << "it is well again";
  EXPECT_EQ(delayed.engine.wake_at(), Instant::Never());
}

TEST_P(ByTopology, WhoFindsNoPlaceThenIsEvicted) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Put({.name = "w"}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
  world.objects.at("w").checks = {world.Name("c")};
  world.objects.at("w").status.checks_ready = true;
  world.Reserved("w", /*admitted=*/false);
  EXPECT_EQ(world.Pass(), "default/w gives up; ");
  EXPECT_EQ(StageOf(world.RowOf("w").status), model::WorkloadStage::kEvicted);
}

TEST_P(ByTopology, ACheckThatAsksForAnotherTryWins) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Node("a1", "a");
  world.Put({.name = "w"}, "rack");
  world.Cycle();
  world.objects.at("w").checks = {world.Name("c")};
  world.objects.at("w").status.checks_ready = true;
  world.Reserved("w", /*admitted=*/false);
  EXPECT_EQ(world.Cycle(), "default/w: a1; ");
  world.objects.at("w").checks = {};
  world.objects.at("w").checks_pending = true;
  world.objects.at("w").status.checks_ready = false;
  world.Tell("w");
  EXPECT_EQ(world.FreeCpu("a1"), 1000) << "withdrawn";
  EXPECT_EQ(world.Cycle(), "");
}

TEST_P(ByTopology, ACheckThatIsAskedForNoMoreIsNotWaitedFor) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Node("a1", "a");
  world.Put({.name = "w"}, "rack");
  world.Cycle();
  world.Reserved("w", /*admitted=*/false);
  EXPECT_EQ(world.Cycle(), "");
  world.AskFor("");
  EXPECT_EQ(world.Pass(), "default/w: a1; ");
}

// It holds quota, its checks are passed, and its pods are yet to be placed.
void Checked(TopologyWorld& world, const std::string& name) {
  world.objects.at(name).checks = {world.Name("c")};
  world.objects.at(name).status.checks_ready = true;
  world.Reserved(name, /*admitted=*/false);
}

// What is to say where they stand is gone: whatever nodes there are, nothing says that they do.
TEST_P(ByTopology, WhoAwaitsATopologyThatIsGoneWaitsForIt) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Node("a1", "a");
  world.Put({.name = "w"}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
  world.engine.Apply(model::TopologyRemove{.name = "t", .uid = "u-t"});
  Checked(world, "w");
  const model::Plan plan = world.engine.Cycle(world.now);
  EXPECT_EQ(plan.passes.size(), 0u);
  ASSERT_EQ(plan.held_up.size(), 1u);
  EXPECT_EQ(plan.held_up[0].refusal->topology->kind, model::TopologyRefusal::Kind::kGone);
  EXPECT_EQ(plan.held_up[0].refusal->topology->topology, world.Name("t"));
  EXPECT_EQ(world.Cycle(), "") << "a fixed point";
  EXPECT_EQ(world.FreeCpu("a1"), 1000);
  world.engine.Apply(model::FlavorRemove{.name = "spot", .uid = "u-spot"});
  const model::Plan without = world.engine.Cycle(world.now);
  ASSERT_EQ(without.held_up.size(), 1u);
  EXPECT_EQ(without.held_up[0].refusal->topology->kind, model::TopologyRefusal::Kind::kFlavorGone);
  world.engine.Apply(model::TopologyUpsert{
      .name = "t", .uid = "u-t2", .levels = {world.Name(kHost)}, .by_node = true});
  EXPECT_EQ(world.Cycle(), "") << "its flavor is gone still";
  world.engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-spot2", .topology = "t"});
  world.objects.at("w").slots[0].topology.required = world.Name(kHost);
  world.Tell("w");
  EXPECT_EQ(world.Pass(), "default/w: a1; ");
  EXPECT_EQ(world.Pass(), "");
}

// Upstream's queue is inactive meanwhile, and a second pass of an inactive queue evicts nobody.
TEST_P(ByTopology, WhoseNodeFailsWhileItsTopologyIsGoneRunsOn) {
  for (const bool of_flavor : {false, true}) {
    TopologyWorld world(GetParam());
    world.Node("a1", "a");
    world.Node("a2", "a");
    world.Starts({.name = "w"}, "rack");
    if (of_flavor) {
      world.engine.Apply(model::FlavorRemove{.name = "spot", .uid = "u-spot"});
    } else {
      world.engine.Apply(model::TopologyRemove{.name = "t", .uid = "u-t"});
    }
    world.NodeGone("a1");
    world.Fails("w", "a1");
    const model::Plan plan = world.engine.Cycle(world.now);
    EXPECT_EQ(plan.passes.size(), 0u);
    ASSERT_EQ(plan.held_up.size(), 1u);
    using Kind = model::TopologyRefusal::Kind;
    EXPECT_EQ(plan.held_up[0].refusal->topology->kind, of_flavor ? Kind::kFlavorGone : Kind::kGone);
    EXPECT_EQ(plan.held_up[0].refusal->needed, 1u);
    EXPECT_EQ(world.Pass(), "") << "a fixed point";
    EXPECT_EQ(world.engine.CountMissedWakes(), 0u);
    if (of_flavor) {
      world.engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-spot2", .topology = "t"});
    } else {
      world.engine.Apply(model::TopologyUpsert{
          .name = "t", .uid = "u-t2", .levels = {world.Name("rack"), world.Name(kHost)}});
    }
    EXPECT_EQ(world.Pass(), "default/w without a1: a2; ");
    EXPECT_EQ(world.Pass(), "");
  }
  // One that names no topology any more is no place for its pods.
  TopologyWorld world(GetParam());
  world.Node("a1", "a");
  world.Node("a2", "a");
  world.Starts({.name = "w"}, "rack");
  world.engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-spot"});
  world.Fails("w", "a1");
  EXPECT_EQ(world.Pass(), "default/w gives up for a1; ");
}

// Its flavor has another sort of nodes now: what it asks for can't be said of them.
TEST_P(ByTopology, WhoseFlavorHasNoTopologyAnyMoreIsEvicted) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Node("a1", "a");
  world.Put({.name = "w"}, "rack");
  world.Cycle();
  world.engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-spot2"});
  Checked(world, "w");
  EXPECT_EQ(world.Pass(), "default/w gives up; ");
  EXPECT_EQ(world.Pass(), "");
}

TEST_P(ByTopology, PodSetsWithoutPodsAwaitNoPlaces) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Node("a1", "a");
  world.Put({.name = "w"}, "rack");
  model::WorkloadUpsert& object = world.objects.at("w");
  object.slots.push_back(object.slots[0]);
  object.slots[1].name = world.Name("others");
  object.slots[1].count = 0;
  world.Tell("w");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
  ASSERT_EQ(world.RowOf("w").decided.topologies.size(), 1u);
  EXPECT_EQ(world.RowOf("w").decided.topologies[0].pod_set, 0u);
}

// All of them are done before it was admitted.
TEST_P(ByTopology, WhoNeedsNoPlacesAnyMoreIsAdmittedWithout) {
  TopologyWorld world(GetParam());
  world.AskFor("c");
  world.Put({.name = "w"}, "rack");
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
  Checked(world, "w");
  world.objects.at("w").slots[0].count = 0;
  world.objects.at("w").reserved.charges.clear();
  world.Tell("w");
  EXPECT_EQ(world.Pass(), "default/w:; ");
  EXPECT_TRUE(world.RowOf("w").reserved.topologies.empty());
  EXPECT_EQ(world.Pass(), "");
}

// The same of places that no topology tells.
// Whatever a check does: places that are lost while it lasts would be missed only by the pods.
TEST(SecondPassTest, JointPlacesComeWithTheAdmission) {
  for (const bool brings_nodes : {true, false}) {
    SCOPED_TRACE(brings_nodes);
    QuotaWorld world(Engine::Options{.joint_placement = true, .second_pass_delay = {}});
    world.Put(QueueSpec{.name = "q"});
    model::QueueUpsert facts{.name = "q", .uid = "u-q"};
    model::Vocabulary& v = world.engine.vocabulary();
    const std::vector<model::NameId> flavors = {v.names.Intern("spot")};
    facts.quotas = {{.flavor = flavors[0], .resource = model::kCpu, .quota = {.nominal = 4000}}};
    const std::vector<model::ResourceId> resources = {model::kCpu};
    const std::vector<model::ResourceGroup> groups = {{.resources = resources, .flavors = flavors}};
    facts.groups = v.resource_groups.Intern(groups);
    facts.checks = {{.name = v.names.Intern("c"), .flavors = {}, .brings_nodes = brings_nodes}};
    world.engine.Apply(facts);
    world.engine.Apply(FactsOf(v, TestNode{.name = "n1", .cpu = 2000}));
    const WorkloadSpec w{.name = "w", .count = 2};
    world.Put(w);
    EXPECT_EQ(world.Cycle(), "default/w: q spot 2000; ");
    model::WorkloadUpsert object = world.FactsOf(w);
    object.status.reserved = true;
    object.reserved = world.RowOf("w").decided;
    object.checks = {v.names.Intern("c")};
    world.engine.Apply(object);
    EXPECT_EQ(world.Cycle(), "default/w: n1 n1; ");
    EXPECT_EQ(world.Cycle(), "");
    object.reserved = world.RowOf("w").decided;
    object.status.admitted = true;
    world.engine.Apply(object);
    EXPECT_EQ(world.Cycle(), "");
    EXPECT_EQ(world.state().slots().free_count(), 2u);
  }
}

}  // namespace
}  // namespace berth::cycle
