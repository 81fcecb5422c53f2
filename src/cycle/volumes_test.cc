// Goal: pods go to nodes that can have their volumes, as kube-scheduler's volume plugins have it,
// and who waits for volumes is looked at when they, or what they hang on, are otherwise. Method:
// plans of small clusters; the naive look finds no missed wake-up, and the audit no other count.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cycle/test_plans.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

using model::NameId;

class Volumes : public PlansTest {
 protected:
  ~Volumes() override {
    EXPECT_EQ(model::Audit(engine.state()), Lines{});
    EXPECT_EQ(engine.CountMissedWakes(), 0u);
    EXPECT_EQ(engine.counters().missed_wakes, 0u);
  }
  NameId Name(const std::string& text) { return engine.vocabulary().names.Intern(text); }
  void Node(const std::string& name, int64_t cpu = 1000) {
    engine.Apply(FactsOf(engine.vocabulary(),
                         TestNode{.name = name, .cpu = cpu, .labels = {{"host", name}}}));
  }
  void Fact(const std::string& name, model::StorageRow row) {
    engine.Apply(model::StorageFact{.name = Name(name), .row = std::move(row)});
  }
  void Gone(const std::string& name, model::StorageRow row) {
    engine.Apply(model::StorageFact{.name = Name(name), .gone = true, .row = std::move(row)});
  }
  // A claim that has its volume, which is anywhere, or at a host.
  void BoundClaim(const std::string& name, const std::string& host = "",
                  model::AccessModes modes = model::kReadWriteOnce) {
    Fact("default/" + name,
         model::VolumeClaim{
             .uid = "u-" + name, .volume = Name("pv-" + name), .modes = modes, .bound = true});
    Fact("pv-" + name, model::Volume{.driver = Name("disk"),
                                     .handle = "handle-" + name,
                                     .places = Host(host),
                                     .claim = Name("default/" + name)});
  }
  model::SelectorId Host(const std::string& host) {
    if (host.empty()) return {};
    return engine.vocabulary().selectors.Intern(
        {.all = {{.key = Name("host"), .values = {Name(host)}}}});
  }
  // A claim that gets a volume where its pod goes.
  void WaitingClaim(const std::string& name, int64_t request = 10) {
    Fact("default/" + name, model::VolumeClaim{.uid = "u-" + name,
                                               .storage_class = Name("late"),
                                               .request = request,
                                               .modes = model::kReadWriteOnce});
  }
  void LateClass(bool provisions, const std::string& host = "") {
    Fact("late", model::StorageClass{.provisioner = Name("disk"),
                                     .provisions = provisions,
                                     .waits = true,
                                     .places = Host(host)});
  }
  void FreeVolume(const std::string& name, const std::string& host, int64_t capacity = 10) {
    Fact(name, model::Volume{.places = Host(host),
                             .storage_class = Name("late"),
                             .capacity = capacity,
                             .modes = model::kReadWriteOnce,
                             .available = true});
  }
  // As it is told once a decision was carried out.
  void Taken(const std::string& volume, const std::string& claim, const std::string& host = "n1") {
    Fact(volume, model::Volume{.places = Host(host),
                               .claim = Name("default/" + claim),
                               .storage_class = Name("late"),
                               .capacity = 10,
                               .modes = model::kReadWriteOnce,
                               .available = true});
  }
  void Limit(const std::string& node, int64_t count) {
    Fact(node, model::AttachLimits{.drivers = {{.driver = Name("disk"), .count = count}}});
  }
  // Whom the last cycle evicts.
  Lines Evicted() {
    Lines names;
    for (const model::PreemptDecision& decision : plan.preemptions) {
      for (const auto& victim : decision.victims)
        names.push_back(
            std::string(engine.state().KeyOf(engine.state().pods().at(victim.pod).key).substr(8)));
    }
    return names;
  }
  // By what nodes refuse the pod.
  using Kinds = std::vector<model::ReasonKind>;
  Kinds Why(const std::string& pod) {
    Kinds kinds;
    for (const model::Reason& reason : Reasons(pod)) kinds.push_back(reason.kind);
    return kinds;
  }
};

TEST_F(Volumes, APodWaitsForItsClaimThenForItsVolumeAndGoesWhereThatIs) {
  Node("n1");
  Node("n2");
  Put({.name = "p", .claims = {"c"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p"), Kinds{model::ReasonKind::kClaimMissing});
  Fact("default/c", model::VolumeClaim{.uid = "u-c"});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p"), Kinds{model::ReasonKind::kClaimUnbound});
  Fact("default/c", model::VolumeClaim{.uid = "u-c", .volume = Name("pv-c"), .bound = true});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p"), Kinds{model::ReasonKind::kVolumeMissing});
  BoundClaim("c", "n2");
  EXPECT_EQ(Cycle(), Lines{"p n2"});
}

// Goal: C22: a pod whose claim waits for a volume is tried when that comes, whichever of its lives
// the claim's event meets. Method: a pod of one node and its claim, as of a DaemonSet whose pod is
// made again and again; the claim is bound before the pod comes, while it waits, or between two.
TEST_F(Volumes, APodThatIsMadeAgainAndAgainFindsItsClaimBound) {
  for (const std::string when : {"before", "while", "between"}) {
    engine = Engine({.preemption = true});
    Node("n1");
    Node("n2");
    Fact("default/c", model::VolumeClaim{.uid = "u-c"});
    const auto come = [&](const std::string& uid) {
      Put({.name = "p", .uid = uid, .pin = "n2", .claims = {"c"}});
    };
    if (when == "before") BoundClaim("c");
    come("first");
    if (when != "before") {
      EXPECT_EQ(Cycle(), Lines{});
      EXPECT_EQ(plan.refusals.size(), 1u);
    }
    if (when == "while") BoundClaim("c");
    if (when == "between") {
      engine.Apply(model::PodRemove{.uid = "first"});
      EXPECT_EQ(Cycle(), Lines{});
      BoundClaim("c");
      come("second");
    }
    EXPECT_EQ(Cycle(), Lines{"p n2"}) << when;
  }
}

// No eviction helps who is barred by a claim, and none is tried.
TEST_F(Volumes, NobodyIsEvictedForAPodWhoseClaimIsMissing) {
  Node("n1", 100);
  Put({.name = "victim"}, "n1");
  Put({.name = "p", .priority = 10, .claims = {"c"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Evicted(), Lines{});
  ASSERT_EQ(plan.refusals.size(), 1u);
  EXPECT_FALSE(plan.refusals[0].preemption.has_value());
}

TEST_F(Volumes, ANodeTakesAsManyVolumesAsItsDriverAttaches) {
  Node("n1");
  Limit("n1", 2);
  for (const char* claim : {"a", "b", "c"}) BoundClaim(claim);
  Put({.name = "p1", .claims = {"a"}});
  Put({.name = "p2", .claims = {"b"}});
  Put({.name = "p3", .claims = {"b"}});  // One volume, attached once.
  EXPECT_EQ(Cycle().size(), 3u);
  Put({.name = "p4", .claims = {"c"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p4"), Kinds{model::ReasonKind::kVolumeLimit});
  Remove("p2");  // The volume is in use still.
  EXPECT_EQ(Cycle(), Lines{});
  Remove("p3");
  EXPECT_EQ(Cycle(), Lines{"p4 n1"});
}

TEST_F(Volumes, WhoWaitsForALimitIsLookedAtWhenTheNodeSaysAnotherOrWhatIsAttachedGoes) {
  Node("n1");
  Limit("n1", 1);
  BoundClaim("a");
  BoundClaim("b");
  BoundClaim("other");
  Fact("va",
       model::Attachment{.node = Name("n1"), .driver = Name("disk"), .volume = Name("pv-other")});
  Put({.name = "p1", .claims = {"a"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p1"), Kinds{model::ReasonKind::kVolumeLimit});
  Gone("va", model::Attachment{});
  EXPECT_EQ(Cycle(), Lines{"p1 n1"});
  Put({.name = "p2", .claims = {"b"}});
  EXPECT_EQ(Cycle(), Lines{});
  Limit("n1", 2);
  EXPECT_EQ(Cycle(), Lines{"p2 n1"});
}

// A pod that is made again finds its volume attached still; upstream counts it twice.
TEST_F(Volumes, WhatIsAttachedAndThePodsOwnCountsOnceButForUpstream) {
  const auto come = [&] {
    Node("n1");
    Limit("n1", 1);
    BoundClaim("a");
    Fact("va",
         model::Attachment{.node = Name("n1"), .driver = Name("disk"), .volume = Name("pv-a")});
    Put({.name = "p", .claims = {"a"}});
    return Cycle();
  };
  EXPECT_EQ(come(), Lines{"p n1"});
  engine = Engine({.preemption = true, .compat = true});
  EXPECT_EQ(come(), Lines{});
}

// Upstream asks for whom a claim is nominated only where one is in use.
TEST_F(Volumes, ANominatedPodsClaimIsItsOwnButForUpstream) {
  const auto come = [&] {
    Node("n1");
    BoundClaim("a", "", model::kReadWriteOncePod);
    Put({.name = "nominated", .priority = 10, .nominated = "n1", .foreign = true, .claims = {"a"}});
    Put({.name = "p", .claims = {"a"}});
    return Cycle();
  };
  EXPECT_EQ(come(), Lines{});
  engine = Engine({.compat = true});
  EXPECT_EQ(come(), Lines{"p n1"});
}

TEST_F(Volumes, ADiskIsOnePodsOfANode) {
  Node("n1");
  Put({.name = "p1", .disks = {"d"}});
  Put({.name = "p2", .disks = {"d"}});
  EXPECT_EQ(Cycle().size(), 1u);
  EXPECT_EQ(Why("p2"), Kinds{model::ReasonKind::kDiskConflict});
  Remove("p1");
  EXPECT_EQ(Cycle(), Lines{"p2 n1"});
}

// On another node, too: the claim is one pod's of the cluster.
TEST_F(Volumes, AClaimOfOnePodIsFreeWhenThatPodLeavesAnyNode) {
  Node("n1", 200);
  Node("n2");
  BoundClaim("c", "", model::kReadWriteOncePod);
  Put({.name = "there", .cpu = 200, .claims = {"c"}}, "n1");
  Put({.name = "p", .claims = {"c"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p"), (Kinds{model::ReasonKind::kInsufficient, model::ReasonKind::kClaimInUse}));
  Remove("there");
  EXPECT_EQ(Cycle(), Lines{"p n2"});
}

TEST_F(Volumes, WhoIsMoreImportantEvictsForAClaimOfOnePodADiskOrALimit) {
  Node("n1");
  Node("n2");
  BoundClaim("c", "", model::kReadWriteOncePod);
  Put({.name = "there", .claims = {"c"}}, "n1");
  Put({.name = "p", .priority = 10, .claims = {"c"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Evicted(), Lines{"there"});
  Remove("there");
  EXPECT_EQ(Cycle(), Lines{"p n1"});

  Put({.name = "disk-1", .disks = {"d"}}, "n1");
  Put({.name = "disk-2", .disks = {"d"}}, "n2");
  Put({.name = "q", .priority = 10, .disks = {"d"}});
  EXPECT_EQ(Cycle(), Lines{});
  ASSERT_EQ(Evicted().size(), 1u);
  Remove(Evicted()[0]);
  EXPECT_EQ(Cycle().size(), 1u);
}

// By others, or before it was one pod's. To evict one of them helps nobody, again and again.
// Upstream's search finds one, also where berth is to do as that.
TEST_F(Volumes, AClaimOfOnePodThatTwoHaveFreesNobodysEviction) {
  for (const bool compat : {false, true}) {
    engine = Engine({.preemption = true, .compat = compat});
    Node("n1");
    Node("n2");
    BoundClaim("c", "", model::kReadWriteOncePod);
    Put({.name = "one", .claims = {"c"}}, "n1");
    Put({.name = "two", .claims = {"c"}}, "n2");
    Put({.name = "p", .priority = 10, .claims = {"c"}});
    EXPECT_EQ(Cycle(), Lines{});
    EXPECT_TRUE(plan.preemptions.empty());
    Remove("one");
    EXPECT_EQ(Cycle(), Lines{});
    EXPECT_EQ(plan.preemptions.size(), 1u);
    Remove("two");
    EXPECT_EQ(Cycle().size(), 1u);
  }
}

// Two of one volume: only when both leave there is room for another.
TEST_F(Volumes, VictimsShareAVolume) {
  Node("n1");
  Limit("n1", 1);
  BoundClaim("a");
  BoundClaim("b");
  Put({.name = "v1", .claims = {"a"}}, "n1");
  Put({.name = "v2", .claims = {"a"}}, "n1");
  Put({.name = "v3"}, "n1");
  Put({.name = "p", .priority = 10, .claims = {"b"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Evicted(), (Lines{"v1", "v2"}));
  Remove("v1");
  Remove("v2");
  EXPECT_EQ(Cycle(), Lines{"p n1"});
}

TEST_F(Volumes, ClaimsThatWaitGetVolumesThatWereMadeBeforeEachItsOwn) {
  Node("n1");
  Node("n2");
  LateClass(/*provisions=*/false);
  WaitingClaim("a");
  WaitingClaim("b", 20);
  FreeVolume("v1", "n1", 20);
  FreeVolume("v2", "n2", 20);
  Put({.name = "p", .claims = {"b", "a"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p"), Kinds{model::ReasonKind::kNoVolume});
  FreeVolume("v3", "n2", 10);
  EXPECT_EQ(Cycle(), Lines{"p n2"});
}

TEST_F(Volumes, WhoIsDecidedOnInOneCycleGetsAVolumeOfItsOwn) {
  Node("n1");
  LateClass(/*provisions=*/false);
  for (const char* claim : {"a", "b", "c"}) WaitingClaim(claim);
  FreeVolume("v1", "n1");
  FreeVolume("v2", "n1");
  Put({.name = "p1", .claims = {"a"}});
  Put({.name = "p2", .claims = {"b"}});
  Put({.name = "p3", .claims = {"c"}});
  EXPECT_EQ(Cycle(), (Lines{"p1 n1", "p2 n1"}));
  Taken("v1", "a");
  Taken("v2", "b");
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p3"), Kinds{model::ReasonKind::kNoVolume});
}

// Goal: E05: who has a node, and what it asks of others there, stands with its volumes in one
// transaction: whom it refuses is refused while they are being bound, in that cycle and after it,
// however late the binding. Method: two that may not be on one host, a volume for each on both.
TEST_F(Volumes, WhoWaitsForItsVolumesIsThereForOthers) {
  for (const bool in_one_cycle : {true, false}) {
    engine = Engine({.preemption = true});
    Node("n1");
    LateClass(/*provisions=*/false);
    for (const std::string name : {"a", "b"}) {
      WaitingClaim(name);
      FreeVolume("v" + name, "n1");
    }
    const TestPod::Affinity apart{
        .kind = model::AffinityKind::kRequiredAnti, .key = "host", .app = "x"};
    const auto come = [&](const std::string& name, int64_t created) {
      Put({.name = name,
           .created = created,
           .labels = {{"app", "x"}},
           .affinity = {apart},
           .claims = {name}});
    };
    come("a", 1);
    if (!in_one_cycle) {
      EXPECT_EQ(Cycle(), Lines{"a n1"});
    }
    come("b", 2);
    EXPECT_EQ(Cycle(), in_one_cycle ? Lines{"a n1"} : Lines{});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(Cycle(), Lines{});
    EXPECT_EQ(Why("b").size(), 1u);
    Remove("a");
    EXPECT_EQ(Cycle(), Lines{"b n1"});
  }
}

// What was given in a decision that nobody carried out is free again.
TEST_F(Volumes, AVolumeThatWasGivenAndNotTakenIsFree) {
  Node("n1");
  LateClass(/*provisions=*/false);
  WaitingClaim("a");
  WaitingClaim("b");
  FreeVolume("v1", "n1");
  Put({.name = "p1", .claims = {"a"}});
  Put({.name = "p2", .claims = {"b"}});
  EXPECT_EQ(Cycle(), Lines{"p1 n1"});
  EXPECT_TRUE(plan.more);
  Remove("p1");
  EXPECT_EQ(Cycle(), Lines{"p2 n1"});
}

TEST_F(Volumes, AGangThatLacksAVolumeIsNotPlacedInPart) {
  Node("n1");
  Node("n2");
  LateClass(/*provisions=*/false);
  WaitingClaim("a");
  WaitingClaim("b");
  FreeVolume("v1", "n1");
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  Put({.name = "p1", .group = "g", .claims = {"a"}});
  Put({.name = "p2", .group = "g", .claims = {"b"}});
  EXPECT_EQ(Cycle(), Lines{});
  FreeVolume("v2", "n2");
  EXPECT_EQ(Cycle(), (Lines{"p1 n1", "p2 n2"}));
}

TEST_F(Volumes, WhoShareAClaimInOneCycleGoWhereItsVolumeIsOrIsMade) {
  Node("n1", 100);
  Node("n2", 200);
  LateClass(/*provisions=*/false);
  WaitingClaim("a");
  FreeVolume("v1", "n2", 10);
  FreeVolume("v2", "n1", 20);
  Put({.name = "p1", .claims = {"a"}});
  Put({.name = "p2", .claims = {"a"}});
  EXPECT_EQ(Cycle(), (Lines{"p1 n2", "p2 n2"}));
  Node("n3", 100);
  LateClass(/*provisions=*/true);
  Gone("v1", model::Volume{});
  Gone("v2", model::Volume{});
  WaitingClaim("b");
  Put({.name = "q1", .claims = {"b"}});
  Put({.name = "q2", .claims = {"b"}});
  // The second finds no room where the volume is made.
  EXPECT_EQ(Cycle().size(), 1u);
}

TEST_F(Volumes, VolumesAreMadeWhereTheClassAllowsAndStorageIsLeft) {
  Node("n1");
  Node("n2");
  LateClass(/*provisions=*/true, "n2");
  WaitingClaim("a", 20);
  Fact("disk", model::StorageDriver{.tells_capacity = true});
  Put({.name = "p", .claims = {"a"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p"), (Kinds{model::ReasonKind::kNoVolume, model::ReasonKind::kNoStorage}));
  const auto capacity = [&](int64_t most) {
    return model::StorageCapacity{.storage_class = Name("late"), .nodes = Host("n2"), .most = most};
  };
  Fact("ns/capacity", capacity(10));
  EXPECT_EQ(Cycle(), Lines{});
  Fact("ns/capacity", capacity(20));
  EXPECT_EQ(Cycle(), Lines{"p n2"});
}

TEST_F(Volumes, AVolumeThatNamesTheClaimGoesBeforeAllOthers) {
  Node("n1");
  Node("n2");
  LateClass(/*provisions=*/false);
  WaitingClaim("a");
  FreeVolume("free", "n1");
  Fact("meant", model::Volume{.places = Host("n2"),
                              .claim = Name("default/a"),
                              .storage_class = Name("late"),
                              .capacity = 10});
  Put({.name = "p", .claims = {"a"}});
  EXPECT_EQ(Cycle(), Lines{"p n2"});
}

// A node that gets the label, or a pod that is tried beside others, as any.
TEST_F(Volumes, WhoWaitsForAPlaceIsLookedAtWhenANodeHasTheLabel) {
  Node("n1");
  BoundClaim("c", "n2");
  Put({.name = "p", .claims = {"c"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Why("p"), Kinds{model::ReasonKind::kVolumeNode});
  engine.Apply(FactsOf(engine.vocabulary(), TestNode{.name = "n1", .labels = {{"host", "n2"}}}));
  EXPECT_EQ(Cycle(), Lines{"p n1"});
}

// Whether a fact says something else than before.
TEST_F(Volumes, AFactThatSaysTheSameWakesNobody) {
  Node("n1");
  Limit("n1", 0);
  BoundClaim("c");
  Put({.name = "p", .claims = {"c"}});
  EXPECT_EQ(Cycle(), Lines{});
  const uint64_t wakes = engine.counters().wakes;
  BoundClaim("c");
  Limit("n1", 0);
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(engine.counters().wakes, wakes);
}

TEST_F(Volumes, WhoIsPromisedANodeKeepsItsVolumesFromOthersOfItsPriority) {
  Node("n1", 200);
  Limit("n1", 1);
  BoundClaim("a");
  BoundClaim("b");
  Put({.name = "victim", .cpu = 200, .priority = -1}, "n1");
  Put({.name = "p", .cpu = 100, .claims = {"a"}});
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(Evicted(), Lines{"victim"});
  Put({.name = "q", .cpu = 100, .claims = {"b"}});
  EXPECT_EQ(Cycle(), Lines{});
  Remove("victim");
  EXPECT_EQ(Cycle(), Lines{"p n1"});
  EXPECT_EQ(Why("q"), Kinds{model::ReasonKind::kVolumeLimit});
}

// Goal: a gang for which there are too few volumes waits for them: it is not tried again and again
// for those that it gave back, and keeps no node from others. Method: two claims, and one volume;
// then a second.
TEST_F(Volumes, AGangWaitsForTheVolumesOfAllItsMembers) {
  Node("n1");
  LateClass(/*provisions=*/false);
  FreeVolume("v1", "");
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  for (const char* name : {"a", "b"}) {
    WaitingClaim(name);
    Put({.name = name, .group = "g", .claims = {name}});
  }
  EXPECT_EQ(Cycle(), Lines{});
  EXPECT_EQ(plan.nominations.size(), 0u);
  EXPECT_FALSE(plan.more);
  FreeVolume("v2", "");
  EXPECT_EQ(Cycle(), (Lines{"a n1", "b n1"}));
}

// Goal: who was refused for a volume that is taken back within the cycle is not forgotten. Method:
// "low" is given it, and then taken back for "high", who needs its room.
TEST_F(Volumes, AVolumeThatIsTakenBackIsOthers) {
  Node("n1", 500);
  Node("n2");
  LateClass(/*provisions=*/false);
  FreeVolume("v", "");
  WaitingClaim("low");
  WaitingClaim("other");
  Put({.name = "low", .cpu = 500, .nominated = "n1", .claims = {"low"}});
  Put({.name = "other", .claims = {"other"}});
  Put({.name = "high", .cpu = 500, .priority = 5, .pin = "n1"});
  EXPECT_EQ(Cycle(), Lines{"high n1"});
  EXPECT_EQ(Cycle(), Lines{"low n2"});
}

}  // namespace
}  // namespace berth::cycle
