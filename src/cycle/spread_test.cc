// Goal: pods spread over domains as PodTopologySpread of kube-scheduler has it, and who waits for
// that is looked at when pods stand otherwise, on other nodes, too. Method: plans of small clusters.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cycle/test_plans.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

class Spread : public PlansTest {
 protected:
  ~Spread() override {
    EXPECT_EQ(model::Audit(engine.state()), Lines{});
    EXPECT_EQ(engine.counters().missed_wakes, missed);
  }
  void Node(const std::string& name, const std::string& zone, int64_t cpu = 1000) {
    NodeOfZone(name, zone, cpu);
  }
  static TestPod Web(const std::string& name, uint32_t max_skew = 1) {
    return {.name = name,
            .labels = {{"app", "web"}},
            .spread = {{.key = "zone", .app = "web", .max_skew = max_skew}}};
  }
  // One in zone a, and b, which is empty, has no room: another waits.
  void WaitBeside(const TestPod& there) {
    Node("a1", "a");
    Node("b1", "b", 0);
    Put(there, "a1");
    Put(Web("waits"));
    EXPECT_EQ(Cycle(), Lines{});
  }

  uint64_t missed = 0;
};

TEST_F(Spread, PodsGoWhereFewestAreAndWaitWhereTheSkewWouldBeTooLarge) {
  Node("a1", "a");
  Node("b1", "b", 100);
  Node("no-zone", "");
  for (const char* name : {"p1", "p2", "p3", "p4"}) Put(Web(name));
  // b1 holds one: a second in zone a is one more than there, a third is one too many.
  const Lines binds = Cycle();
  EXPECT_EQ(binds.size(), 3u);
  EXPECT_EQ(Refusing("p4", model::ReasonKind::kSpread), 1);
  EXPECT_EQ(Refusing("p4", model::ReasonKind::kInsufficient), 1);
  EXPECT_EQ(Refusing("p4", model::ReasonKind::kSpreadLabel), 1);
}

TEST_F(Spread, WhoWaitsIsLookedAtWhenAPodOfAnotherNodeOfTheDomainLeaves) {
  Node("a1", "a");
  Node("a2", "a", 100);
  Node("b1", "b", 0);
  Put(Web("there"), "a2");
  Put(Web("waits"));
  EXPECT_EQ(Cycle(), Lines{});
  // What leaves a2 lifts the refusal of a1 as well, which is the better one.
  engine.Apply(model::PodRemove{.uid = "uid-there"});
  EXPECT_EQ(engine.wake_at(), Instant{});
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

TEST_F(Spread, WhoWaitsIsLookedAtWhenTheLeastDomainGetsAPod) {
  Node("a1", "a");
  Node("b1", "b", 100);
  Put({.name = "blocks", .cpu = 100}, "b1");
  Put(Web("there"), "a1");
  Put(Web("waits"));
  EXPECT_EQ(Cycle(), Lines{});
  // One that another scheduler put there, though it is full.
  Put(Web("foreign"), "b1");
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

TEST_F(Spread, ADomainThatGoesIsNotTheLeastAnyMore) {
  WaitBeside(Web("there"));
  engine.Apply(model::NodeRemove{.name = "b1"});
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

TEST_F(Spread, WhoWaitsIsLookedAtWhenLabelsOfPodsChange) {
  TestPod there = Web("there");
  WaitBeside(there);
  there.labels = {{"app", "other"}};
  Put(there, "a1");
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

// E11: who is being deleted doesn't count, as upstream.
TEST_F(Spread, WhoIsBeingDeletedDoesNotCount) {
  TestPod there = Web("there");
  WaitBeside(there);
  there.terminating = true;
  there.deadline = 1000;
  Put(there, "a1");
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

// E10: one that is nominated to a node that does not count changes no domain.
TEST_F(Spread, ANominatedPodCountsWhereItIsNominated) {
  Node("a1", "a");
  Node("b1", "b");
  Node("no-zone", "", 100);
  TestPod nominated = Web("nominated");
  nominated.priority = 1;
  nominated.cpu = 5000;
  nominated.nominated = "a1";
  Put(nominated);
  TestPod elsewhere = Web("elsewhere");
  elsewhere.priority = 1;
  elsewhere.cpu = 5000;
  elsewhere.nominated = "no-zone";
  Put(elsewhere);
  Put(Web("waits"));
  Cycle();
  EXPECT_EQ(Refusing("waits", model::ReasonKind::kSpreadLabel), 1);
}

TEST_F(Spread, FewerDomainsThanAreAskedForCountAsEmpty) {
  Node("a1", "a");
  Node("b1", "b");
  for (const char* name : {"p1", "p2", "p3"}) {
    TestPod pod = Web(name);
    pod.spread[0].min_domains = 3;
    Put(pod);
  }
  EXPECT_EQ(Cycle().size(), 2u);
  Node("c1", "c");
  EXPECT_EQ(Cycle(), Lines{"p3 c1"});
}

TEST_F(Spread, NodesWhoseTaintsAreNotToleratedMayCount) {
  Node("a1", "a");
  engine.Apply(
      FactsOf(engine.vocabulary(),
              TestNode{.name = "b1", .labels = {{"zone", "b"}}, .taints = {{.key = "k"}}}));
  TestPod pod = Web("counts-b");
  Put(Web("there"), "a1");
  Put(pod);
  EXPECT_EQ(Cycle(), Lines{});
  pod = Web("ignores-b");
  pod.spread[0].honors_taints = true;
  Put(pod);
  EXPECT_EQ(Cycle(), Lines{"ignores-b a1"});
}

// As Kubernetes' suite has it ("PodTopologySpread Preemption"): what one more important may have by
// an eviction in the domain that has too many.
TEST_F(Spread, AMoreImportantPodEvictsWhoMakesTheSkewTooLarge) {
  Node("a1", "a");
  Node("b1", "b", 100);
  Put({.name = "blocks", .cpu = 100, .priority = 10}, "b1");
  TestPod low = Web("low");
  Put(low, "a1");
  Put({.name = "apart", .cpu = 100}, "a1");
  TestPod high = Web("high");
  high.priority = 10;
  Put(high);
  EXPECT_EQ(Cycle(), Lines{});
  ASSERT_EQ(plan.preemptions.size(), 1u);
  ASSERT_EQ(plan.preemptions[0].victims.size(), 1u);
  EXPECT_EQ(engine.state().UidOf(plan.preemptions[0].victims[0].uid), "uid-low");
  engine.Apply(model::PodRemove{.uid = "uid-low"});
  EXPECT_EQ(Cycle(), Lines{"high a1"});
}

// Goal: what is counted for a class goes with the last pod that has it, and is right when one comes
// again.
TEST_F(Spread, WhatNobodyAsksForIsNotCounted) {
  Node("a1", "a");
  Node("b1", "b", 0);
  Put(Web("waits"));
  EXPECT_FALSE(engine.state().ledger().spreads().empty());
  engine.Apply(model::PodRemove{.uid = "uid-waits"});
  EXPECT_TRUE(engine.state().ledger().spreads().empty());
  TestPod there = Web("there");
  there.spread.clear();
  Put(there, "a1");
  Put(Web("again"));
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Refusing("again", model::ReasonKind::kSpread), 1);
}

TEST_F(Spread, AWishDecidesAmongThoseThatFit) {
  Node("a1", "a", 4000);
  Node("b1", "b");
  const auto wish = [](const std::string& name) {
    TestPod pod = Web(name);
    pod.spread[0].hard = false;
    return pod;
  };
  Put(wish("there"), "a1");
  Put(wish("comes"));
  EXPECT_EQ(Cycle(), Lines{"comes b1"});
}

TEST_F(Spread, AGangSpreadsWithinOneDecision) {
  Node("a1", "a");
  Node("b1", "b");
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 3}));
  for (const char* name : {"p1", "p2", "p3"}) {
    TestPod pod = Web(name);
    pod.group = "g";
    Put(pod);
  }
  Lines nodes;
  for (const std::string& bind : Cycle()) nodes.push_back(bind.substr(3, 1));
  std::ranges::sort(nodes);
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_NE(nodes.front(), nodes.back());
}

// Nothing is freed by what lifts it.
TEST_F(Spread, AGangThatWaitsIsLookedAtWhenTheLeastDomainGetsAPod) {
  Node("a1", "a");
  Node("b1", "b", 0);
  Put(Web("there"), "a1");
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 1}));
  TestPod waits = Web("waits");
  waits.group = "g";
  Put(waits);
  EXPECT_EQ(Cycle(), Lines{});
  Put(Web("foreign"), "b1");
  EXPECT_EQ(engine.wake_at(), Instant{});
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

// Who holds a promise is tried there again when that is what kept it from the node.
TEST_F(Spread, AHolderIsTriedAgainWhenTheLeastDomainGetsAPod) {
  Node("a1", "a");
  Node("b1", "b", 0);
  Put(Web("there"), "a1");
  TestPod promised = Web("promised");
  promised.nominated = "a1";
  Put(promised);
  EXPECT_EQ(Cycle(), Lines{});
  Put(Web("foreign"), "b1");
  EXPECT_EQ(Cycle(), Lines{"promised a1"});
}

TEST_F(Spread, TheWatchdogFindsAnEngineThatIsDeafToIt) {
  engine = Engine({.faults = {.deaf_to_spread = true}});
  Node("a1", "a");
  Node("a2", "a", 100);
  Node("b1", "b", 0);
  Put(Web("there"), "a2");
  Put({.name = "full", .cpu = 100}, "a2");
  Put(Web("waits"));
  EXPECT_TRUE(engine.Cycle({}).binds.empty());
  engine.Apply(model::PodRemove{.uid = "uid-there"});
  EXPECT_TRUE(engine.Cycle({}).binds.empty());
  EXPECT_EQ(engine.CheckWakes({}), 1u);
  missed = engine.counters().missed_wakes;
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

}  // namespace
}  // namespace berth::cycle
