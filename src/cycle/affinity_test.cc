// Goal: pods are with those that they are to be with, and without those that they are not to be
// with, as InterPodAffinity of kube-scheduler has it, on both sides; and who waits for that is
// looked at when pods stand otherwise. Method: plans of small clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cycle/test_plans.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

using enum model::AffinityKind;

class Affinity : public PlansTest {
 protected:
  ~Affinity() override {
    EXPECT_EQ(model::Audit(engine.state()), Lines{});
    EXPECT_EQ(engine.CheckWakes({}), 0u);
  }
  void Node(const std::string& name, const std::string& zone, int64_t cpu = 1000) {
    NodeOfZone(name, zone, cpu);
  }
  static TestPod Pod(const std::string& name, const std::string& app,
                     std::vector<TestPod::Affinity> affinity = {}) {
    return {.name = name, .labels = {{"app", app}}, .affinity = std::move(affinity)};
  }
  static TestPod::Affinity Term(model::AffinityKind kind, const std::string& app,
                                const std::string& key = "zone") {
    return {.kind = kind, .key = key, .app = app};
  }
};

TEST_F(Affinity, APodGoesWhereTheOneIsThatItIsToBeWith) {
  Node("a1", "a");
  Node("a2", "a");
  Node("b1", "b", 4000);
  Node("no-zone", "", 4000);
  Put(Pod("db", "db"), "a1");
  Put({.name = "full", .cpu = 900}, "a1");
  Put(Pod("web", "web", {Term(kRequired, "db")}));
  EXPECT_EQ(Refusing("web", model::ReasonKind::kPodAffinity), 2);
  EXPECT_EQ(Cycle(), Lines{"web a2"});
}

// Whoever is to be with its own kind may come where none is yet, where the node has the label.
TEST_F(Affinity, TheFirstOfASeriesMayGoAnywhere) {
  Node("no-zone", "", 4000);
  Node("a1", "a", 250);
  Node("b1", "b", 150);
  for (const char* name : {"p1", "p2", "p3"}) Put(Pod(name, "web", {Term(kRequired, "web")}));
  // The first decides for zone a, where two have room; b is of no use to the third.
  EXPECT_EQ(Cycle(), (Lines{"p1 a1", "p2 a1"}));
  EXPECT_EQ(Refusing("p3", model::ReasonKind::kPodAffinity), 2);
  // Who is to be with others, too, is the first only if it is of those.
  Put(Pod("other", "web", {Term(kRequired, "web"), Term(kRequired, "none")}));
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Refusing("other", model::ReasonKind::kPodAffinity), 2);
}

// A pod counts for affinity only if it meets all terms at once.
TEST_F(Affinity, TermsAreMetByOnePodAndNotByTwo) {
  Node("a1", "a");
  Put(Pod("db", "db"), "a1");
  Put(Pod("cache", "cache"), "a1");
  Put(Pod("web", "web", {Term(kRequired, "db"), Term(kRequired, "cache")}));
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Refusing("web", model::ReasonKind::kPodAffinity), 1);
}

TEST_F(Affinity, AReplicaKeepsAwayFromTheOthersOfItsKind) {
  Node("a1", "a");
  Node("a2", "a");
  Node("b1", "b");
  for (const char* name : {"p1", "p2", "p3"}) Put(Pod(name, "web", {Term(kRequiredAnti, "web")}));
  EXPECT_EQ(Cycle().size(), 2u);
  EXPECT_EQ(Refusing("p3", model::ReasonKind::kPodAntiAffinity), 3);
  // A node without the label is of no domain.
  Node("no-zone", "");
  EXPECT_EQ(Cycle(), Lines{"p3 no-zone"});
}

TEST_F(Affinity, WhoIsThereKeepsOthersAway) {
  Node("a1", "a");
  Node("b1", "b", 0);
  Put(Pod("alone", "db", {Term(kRequiredAnti, "web")}), "a1");
  Put(Pod("web", "web"));
  Put(Pod("else", "else"));
  EXPECT_EQ(Cycle(), Lines{"else a1"});
  EXPECT_EQ(Refusing("web", model::ReasonKind::kExistingAntiAffinity), 1);
  Remove("alone");
  EXPECT_EQ(Cycle(), Lines{"web a1"});
}

TEST_F(Affinity, WhoWaitsIsLookedAtWhenTheLastOneWithTermsLeavesAnotherNode) {
  Node("a1", "a");
  Node("a2", "a", 0);
  Put(Pod("alone", "db", {Term(kRequiredAnti, "web")}), "a2");
  Put(Pod("web", "web"));
  EXPECT_EQ(Cycle(), Lines{});
  Remove("alone");
  EXPECT_EQ(Cycle(), Lines{"web a1"});
}

// Pods that wait are of another class as soon as somebody's terms select them.
TEST_F(Affinity, WhoWaitsIsKeptAwayByWhoComesLater) {
  Node("a1", "a", 100);
  Put({.name = "full"}, "a1");
  Put(Pod("web", "web"));
  EXPECT_EQ(Cycle(), Lines{});
  Node("a2", "a");
  Put(Pod("alone", "db", {Term(kRequiredAnti, "web")}), "a2");
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Refusing("web", model::ReasonKind::kExistingAntiAffinity), 1);
}

TEST_F(Affinity, WhoWaitsIsLookedAtWhenOneThatItIsToBeWithComes) {
  Node("a1", "a");
  Node("a2", "a", 0);
  Put(Pod("web", "web", {Term(kRequired, "db")}));
  EXPECT_EQ(Cycle(), Lines{});
  Put(Pod("db", "db"), "a2");
  EXPECT_EQ(Cycle(), Lines{"web a1"});
}

TEST_F(Affinity, WhoWaitsIsLookedAtWhenOneOfAnotherNodeOfTheDomainLeaves) {
  Node("a1", "a");
  Node("a2", "a", 0);
  Put(Pod("there", "web"), "a2");
  Put(Pod("web", "web", {Term(kRequiredAnti, "web")}));
  EXPECT_EQ(Cycle(), Lines{});
  Remove("there");
  EXPECT_EQ(Cycle(), Lines{"web a1"});
}

TEST_F(Affinity, WhoWaitsIsLookedAtWhenLabelsOfPodsOrNodesChange) {
  Node("a1", "a");
  Node("a2", "a", 0);
  Put(Pod("there", "other"), "a2");
  Put(Pod("web", "web", {Term(kRequired, "db")}));
  EXPECT_EQ(Cycle(), Lines{});
  Put(Pod("there", "db"), "a2");
  EXPECT_EQ(Cycle(), Lines{"web a1"});
  Put(Pod("away", "web", {Term(kRequiredAnti, "db")}));
  EXPECT_EQ(Cycle(), Lines{});
  Node("a2", "c", 0);
  EXPECT_EQ(Cycle(), Lines{"away a1"});
}

// As upstream: until it is gone.
TEST_F(Affinity, WhoIsBeingDeletedCounts) {
  Node("a1", "a");
  TestPod leaves = Pod("leaves", "web");
  leaves.terminating = true;
  Put(leaves, "a1");
  Put(Pod("web", "web", {Term(kRequiredAnti, "web")}));
  EXPECT_EQ(Cycle(), Lines{});
  Remove("leaves");
  EXPECT_EQ(Cycle(), Lines{"web a1"});
}

TEST_F(Affinity, ANominatedPodKeepsAwayAndIsNoCompany) {
  Node("a1", "a");
  Node("b1", "b");
  TestPod nominated = Pod("nominated", "db");
  nominated.nominated = "a1";
  nominated.priority = 10;
  nominated.foreign = true;
  Put(nominated);
  Put(Pod("with", "web", {Term(kRequired, "db")}));
  Put(Pod("without", "web", {Term(kRequiredAnti, "db")}));
  EXPECT_EQ(Cycle(), Lines{"without b1"});
  EXPECT_EQ(Refusing("with", model::ReasonKind::kPodAffinity), 2);
}

// Upstream asks a nominated pod's terms only where pods that are there have some about the one that
// comes, or it has some of its own, and so lets it take a place that another was promised.
TEST_F(Affinity, ANominatedPodsTermsKeepOthersAwayButForUpstream) {
  const auto come = [&] {
    Node("a1", "a");
    Node("b1", "b", 0);
    TestPod nominated = Pod("nominated", "db", {Term(kRequiredAnti, "web")});
    nominated.nominated = "a1";
    nominated.priority = 10;
    nominated.foreign = true;
    Put(nominated);
    Put(Pod("web", "web"));
    return Cycle();
  };
  EXPECT_EQ(come(), Lines{});
  EXPECT_EQ(Refusing("web", model::ReasonKind::kExistingAntiAffinity), 1);
  engine = Engine({.compat = true});
  EXPECT_EQ(come(), Lines{"web a1"});
}

TEST_F(Affinity, NamespacesAreSelectedByTheirLabels) {
  Node("a1", "a");
  TestPod::Affinity term = Term(kRequiredAnti, "web");
  term.team = "red";
  Put(Pod("there", "web"), "a1");
  Put(Pod("first", "web", {term}));
  EXPECT_EQ(Cycle(), Lines{"first a1"});
  engine.Apply(model::NamespaceUpsert{.name = "default", .labels = {{"team", "red"}}});
  Put(Pod("second", "web", {term}));
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Refusing("second", model::ReasonKind::kPodAntiAffinity), 1);
  engine.Apply(model::NamespaceUpsert{.name = "default", .labels = {{"team", "blue"}}});
  EXPECT_EQ(Cycle(), Lines{"second a1"});
}

// A pod that waits was told of terms that are gone meanwhile, and come again.
TEST_F(Affinity, NamespacesThatChangedWhileNobodyAskedAreSeen) {
  Node("a1", "a", 100);
  TestPod::Affinity term = Term(kRequiredAnti, "web");
  term.team = "red";
  engine.Apply(model::NamespaceUpsert{.name = "default", .labels = {{"team", "red"}}});
  Put(Pod("there", "db", {term}), "a1");
  Put(Pod("web", "web"));
  EXPECT_EQ(Cycle(), Lines{});
  Remove("there");
  engine.Apply(model::NamespaceUpsert{.name = "default", .labels = {{"team", "blue"}}});
  TestPod again = Pod("again", "db", {term});
  again.cpu = 0;
  Put(again, "a1");
  EXPECT_EQ(Cycle(), Lines{"web a1"});
}

TEST_F(Affinity, WishesOfBothSidesAddUp) {
  Node("a1", "a", 4000);
  Node("b1", "b");
  Put(Pod("db", "db"), "b1");
  Put(Pod("near", "web", {Term(kPreferred, "db")}));
  EXPECT_EQ(Cycle(), Lines{"near b1"});
  Put(Pod("away", "cache", {Term(kPreferredAnti, "batch")}), "a1");
  Put(Pod("batch", "batch"));
  EXPECT_EQ(Cycle(), Lines{"batch b1"});
  // Who requires it of others is glad of it, too.
  Put(Pod("wants", "x", {Term(kRequired, "db"), Term(kPreferredAnti, "nobody")}));
  EXPECT_EQ(Cycle(), Lines{"wants b1"});
  Put({.name = "fills", .cpu = 500}, "b1");
  Put(Pod("db2", "db"));
  EXPECT_EQ(Cycle(), Lines{"db2 b1"});
}

// A19: what victims count for is taken away and put back alike.
TEST_F(Affinity, AMoreImportantPodEvictsWhomItIsNotToBeWith) {
  Node("a1", "a");
  Put(Pod("low", "web"), "a1");
  Put(Pod("apart", "else"), "a1");
  TestPod high = Pod("high", "db", {Term(kRequiredAnti, "web")});
  high.priority = 10;
  Put(high);
  EXPECT_EQ(Cycle(), Lines{});
  ASSERT_EQ(plan.preemptions.size(), 1u);
  ASSERT_EQ(plan.preemptions[0].victims.size(), 1u);
  EXPECT_EQ(engine.state().UidOf(plan.preemptions[0].victims[0].uid), "uid-low");
  Remove("low");
  EXPECT_EQ(Cycle(), Lines{"high a1"});
}

TEST_F(Affinity, AMoreImportantPodEvictsWhoIsNotToBeWithIt) {
  Node("a1", "a");
  Put(Pod("low", "web", {Term(kRequiredAnti, "db")}), "a1");
  TestPod high = Pod("high", "db");
  high.priority = 10;
  Put(high);
  EXPECT_EQ(Cycle(), Lines{});
  ASSERT_EQ(plan.preemptions.size(), 1u);
  EXPECT_EQ(engine.state().UidOf(plan.preemptions[0].victims[0].uid), "uid-low");
}

// A19: what it is to be with has to be there without those that may be evicted, as upstream.
TEST_F(Affinity, EvictionsHelpOnlyWhereTheOneStaysThatItIsToBeWith) {
  Node("a1", "a", 300);
  Node("b1", "b", 300);
  Node("c1", "c", 300);
  TestPod db = Pod("db", "db");
  Put(db, "c1");
  Put({.name = "fills", .cpu = 200, .priority = 5}, "c1");
  db.name = "important";
  db.priority = 10;
  Put(db, "a1");
  Put({.name = "other", .cpu = 200, .priority = 5}, "a1");
  Put({.name = "third", .cpu = 300}, "b1");
  TestPod high = Pod("high", "web", {Term(kRequired, "db")});
  high.cpu = 200;
  high.priority = 10;
  Put(high);
  EXPECT_EQ(Cycle(), Lines{});
  ASSERT_EQ(plan.preemptions.size(), 1u);
  ASSERT_EQ(plan.preemptions[0].victims.size(), 1u);
  EXPECT_EQ(engine.state().UidOf(plan.preemptions[0].victims[0].uid), "uid-other");
}

TEST_F(Affinity, AGangKeepsApartWithinOneDecision) {
  Node("a1", "a");
  Node("b1", "b");
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  for (const char* name : {"p1", "p2"}) {
    TestPod pod = Pod(name, "web", {Term(kRequiredAnti, "web")});
    pod.group = "g";
    Put(pod);
  }
  Lines nodes;
  for (const std::string& bind : Cycle()) nodes.push_back(bind.substr(3));
  std::ranges::sort(nodes);
  EXPECT_EQ(nodes, (Lines{"a1", "b1"}));
}

TEST_F(Affinity, TheWatchdogFindsAnEngineThatIsDeafToIt) {
  engine = Engine({.faults = {.deaf_to_spread = true}});
  Node("a1", "a");
  Node("a2", "a", 100);
  Put(Pod("there", "web"), "a2");
  Put({.name = "full", .cpu = 100}, "a2");
  Put(Pod("waits", "web", {Term(kRequiredAnti, "web")}));
  EXPECT_TRUE(engine.Cycle({}).binds.empty());
  Remove("there");
  EXPECT_TRUE(engine.Cycle({}).binds.empty());
  EXPECT_EQ(engine.CheckWakes({}), 1u);
  EXPECT_EQ(Cycle(), Lines{"waits a1"});
}

// Goal: what is counted for terms goes with the last pod that has them, and is right when one comes
// again.
TEST_F(Affinity, WhatNobodyAsksForIsNotCounted) {
  Node("a1", "a");
  Put(Pod("waits", "web", {Term(kRequiredAnti, "web")}), "a1");
  EXPECT_FALSE(engine.state().ledger().affinities().empty());
  Remove("waits");
  EXPECT_TRUE(engine.state().ledger().affinities().empty());
  Put(Pod("there", "web"), "a1");
  Put(Pod("again", "x", {Term(kRequiredAnti, "web")}));
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Refusing("again", model::ReasonKind::kPodAntiAffinity), 1);
}

}  // namespace
}  // namespace berth::cycle
