// Goal: each setting of a profile makes another decision for its pods, and none for others. Method:
// two nodes that differ in what the setting is about, a pod of each profile, and where it went.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

class ByProfiles : public ::testing::Test {
 protected:
  // One profile "other" beside the default one.
  void Use(model::ProfileOptions options, bool preemption = false) {
    options.scheduler_name = "other";
    engine = Engine({.preemption = preemption, .profiles = {std::move(options)}});
  }
  void Node(const TestNode& node) { engine.Apply(FactsOf(engine.vocabulary(), node)); }
  void Pod(const TestPod& pod) { engine.Apply(FactsOf(engine.vocabulary(), pod)); }
  // Where two pods that differ in their profiles alone go: that of the default one first.
  std::string Places(TestPod pod) {
    const Engine before = engine;
    std::string out;
    for (const std::string profile : {"", "other"}) {
      engine = before;
      pod.name = "p";
      pod.profile = profile;
      Pod(pod);
      const model::Plan plan = engine.Cycle(Instant::FromSeconds(1000));
      EXPECT_EQ(model::Audit(engine.state()), std::vector<std::string>());
      out += out.empty() ? "" : " ";
      out +=
          plan.binds.empty()
              ? "-"
              : std::string(engine.state().NameOf(engine.state().nodes().name(plan.binds[0].node)));
    }
    engine = before;
    return out;
  }

  Engine engine;
};

TEST_F(ByProfiles, MostAllocatedPacks) {
  Use({.rules = {.strategy = model::FitStrategy::kMostAllocated}});
  Node({.name = "empty"});
  Node({.name = "used"});
  Pod({.name = "there", .cpu = 2000, .memory = int64_t{8} << 30, .node = "used"});
  EXPECT_EQ(Places({.cpu = 1000, .memory = int64_t{4} << 30}), "empty used");
}

TEST_F(ByProfiles, WeightsDecideBetweenScores) {
  Use({.rules = {.weights = {.affinity = 0}}});
  Node({.name = "empty"});
  Node({.name = "wanted", .labels = {{"disk", "ssd"}}});
  Pod({.name = "there", .cpu = 2000, .memory = int64_t{8} << 30, .node = "wanted"});
  EXPECT_EQ(Places({.cpu = 1000, .prefers = {{.key = "disk", .value = "ssd"}}}), "wanted empty");
}

TEST_F(ByProfiles, TaintsDoNotKeepAway) {
  model::ProfileOptions options;
  options.rules.Disable(model::OptionalFilter::kTaintToleration);
  Use(options);
  Node({.name = "tainted", .taints = {{.key = "team"}}});
  EXPECT_EQ(Places({}), "- tainted");
}

TEST_F(ByProfiles, WhoDoesNotAskForRoomOvercommits) {
  Use({});
  Node({.name = "n", .cpu = 1000});
  Pod({.name = "there", .cpu = 900, .node = "n"});
  EXPECT_EQ(Places({.cpu = 500}), "- -");
  EXPECT_EQ(Places({.cpu = 500, .careless = true}), "n n");
  // What it takes is gone for others, and comes back.
  Pod({.name = "q", .cpu = 5000, .careless = true});
  EXPECT_EQ(engine.Cycle(Instant::FromSeconds(1000)).binds.size(), 1u);
  EXPECT_EQ(Places({.cpu = 100}), "- -");
  engine.Apply(model::PodRemove{.uid = "uid-q"});
  EXPECT_EQ(Places({.cpu = 100}), "n n");
}

TEST_F(ByProfiles, OthersAntiAffinityDoesNotKeepAway) {
  model::ProfileOptions options;
  options.rules.Disable(model::OptionalFilter::kInterPodAffinity);
  Use(options);
  Node({.name = "n", .labels = {{"zone", "a"}}});
  Pod({.name = "there",
       .node = "n",
       .affinity = {{.kind = model::AffinityKind::kRequiredAnti, .key = "zone", .app = "web"}}});
  EXPECT_EQ(Places({.labels = {{"app", "web"}}}), "- n");
}

// A pod that is there requires company of such a kind: what that is worth is the asker's to say.
TEST_F(ByProfiles, OthersRequiredAffinityIsWeighed) {
  Use({.rules = {.hard_affinity_weight = 0}});
  Node({.name = "empty", .labels = {{"zone", "a"}}});
  Node({.name = "used", .labels = {{"zone", "b"}}});
  Pod({.name = "there",
       .cpu = 2000,
       .node = "used",
       .labels = {{"app", "web"}},
       .affinity = {{.key = "zone", .app = "web"}}});
  EXPECT_EQ(Places({.cpu = 1000, .labels = {{"app", "web"}}}), "used empty");
}

TEST_F(ByProfiles, OthersPreferencesAreIgnoredByWhoPrefersNobody) {
  Use({.rules = {.ignores_others_preferences = true}});
  Node({.name = "empty", .labels = {{"zone", "a"}}});
  Node({.name = "used", .labels = {{"zone", "b"}}});
  Pod({.name = "there",
       .cpu = 2000,
       .node = "used",
       .affinity = {
           {.kind = model::AffinityKind::kPreferred, .key = "zone", .app = "web", .weight = 100}}});
  EXPECT_EQ(Places({.cpu = 1000, .labels = {{"app", "web"}}}), "used empty");
  // One who prefers somebody, whoever that is, is scored by all.
  EXPECT_EQ(Places({.cpu = 1000,
                    .labels = {{"app", "web"}},
                    .affinity = {{.kind = model::AffinityKind::kPreferred,
                                  .key = "zone",
                                  .app = "nobody"}}}),
            "used used");
}

TEST_F(ByProfiles, PodsOfAProfileEvictNobody) {
  Use({.rules = {.preempts = false}}, true);
  Node({.name = "n", .cpu = 1000});
  Pod({.name = "there", .cpu = 900, .node = "n", .profile = "other"});
  for (const std::string profile : {"", "other"}) {
    Engine fork = engine;
    fork.Apply(FactsOf(fork.vocabulary(),
                       TestPod{.name = "p", .cpu = 500, .priority = 5, .profile = profile}));
    const model::Plan plan = fork.Cycle(Instant::FromSeconds(1000));
    EXPECT_EQ(plan.preemptions.size(), profile.empty() ? 1u : 0u);
    const model::PodId pod = fork.state().FindPod("uid-p");
    EXPECT_EQ(fork.Explain(pod).may_evict.has_value(), profile.empty());
    if (profile.empty()) continue;
    ASSERT_EQ(plan.refused.size(), 1u);
    EXPECT_FALSE(plan.refusals[plan.refused[0].refusal].preemption.has_value());
  }
}

// Nodes whose pods a constraint doesn't count are of domains all the same: what such a node has
// itself counts for its hostname, and what others of its zone have that do.
TEST_F(ByProfiles, NodesWithoutTheAffinityThatCountsArePartOfDomains) {
  model::ProfileOptions options{.rules = {.weights = {.taints = 0,
                                                      .affinity = 0,
                                                      .fit = 0,
                                                      .balanced = 0,
                                                      .pod_affinity = 0,
                                                      .images = 0}}};
  options.rules.Disable(model::OptionalFilter::kNodeAffinity);
  Use(options);
  constexpr const char* kHost = "kubernetes.io/hostname";
  Node({.name = "n1", .labels = {{"pool", "a"}, {"zone", "z1"}, {kHost, "n1"}}});
  Node({.name = "n2", .labels = {{"pool", "b"}, {"zone", "z2"}, {kHost, "n2"}}});
  const std::vector<std::pair<std::string, std::string>> web = {{"app", "web"}};
  Pod({.name = "there-1", .node = "n1", .labels = web});
  Pod({.name = "there-2", .node = "n1", .labels = web});
  TestPod pod{.selector = {{"pool", "a"}},
              .labels = web,
              .spread = {{.key = "zone", .app = "web", .hard = false}}};
  EXPECT_EQ(Places(pod), "n1 n2");
  pod.spread.front().key = kHost;
  EXPECT_EQ(Places(pod), "n1 n2");
  for (const char* name : {"there-3", "there-4", "there-5"})
    Pod({.name = name, .node = "n2", .labels = web});
  EXPECT_EQ(Places(pod), "n1 n1");
  // Of zone z2 nothing counts, whatever is there.
  pod.spread.front().key = "zone";
  EXPECT_EQ(Places(pod), "n1 n2");
}

// What is asked, a device, is free once the victim leaves; that the room it is charged besides is
// not is no reason to be promised nothing.
TEST_F(ByProfiles, WhoDoesNotAskForRoomEvictsForWhatItAsks) {
  Use({}, true);
  Node({.name = "n", .cpu = 1000, .gpus = 1});
  TestPod there{.name = "there", .cpu = 200, .node = "n"};
  there.gpu_milli = 1000;
  Pod(there);
  TestPod pod{.name = "p", .cpu = 5000, .priority = 5, .profile = "other", .careless = true};
  pod.gpu_milli = 1000;
  Pod(pod);
  const model::Plan plan = engine.Cycle(Instant::FromSeconds(1000));
  ASSERT_EQ(plan.preemptions.size(), 1u);
  EXPECT_EQ(engine.CountMissedWakes(), 0u);
  EXPECT_EQ(model::Audit(engine.state()), std::vector<std::string>());
  engine.Apply(model::PodRemove{.uid = "uid-there"});
  EXPECT_EQ(engine.Cycle(Instant::FromSeconds(1001)).binds.size(), 1u);
}

// What one member takes without asking for it is not what another was let in for. The process ended
// for it.
TEST_F(ByProfiles, AGangOfWhoAsksAndWhoDoesNotIsPlaced) {
  Use({});
  Node({.name = "n", .cpu = 1000});
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  Pod({.name = "asks", .cpu = 600, .created = 1, .group = "g", .host_port = 80});
  Pod({.name = "takes",
       .cpu = 600,
       .created = 2,
       .group = "g",
       .host_port = 80,
       .profile = "other",
       .careless = true});
  EXPECT_EQ(engine.Cycle(Instant::FromSeconds(1000)).binds.size(), 2u);
  EXPECT_EQ(model::Audit(engine.state()), std::vector<std::string>());
}

// As many as nobody could count find a place on each node.
TEST_F(ByProfiles, AGangThatAsksForNoRoomIsLookedAtWhenItsNodesAreFree) {
  Use({});
  for (const char* node : {"n1", "n2"}) Node({.name = node, .unschedulable = true});
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  for (const char* name : {"p1", "p2"})
    Pod({.name = name, .group = "g", .profile = "other", .careless = true});
  EXPECT_EQ(engine.Cycle(Instant::FromSeconds(1000)).binds.size(), 0u);
  for (const char* node : {"n1", "n2"}) Node({.name = node});
  EXPECT_EQ(engine.Cycle(Instant::FromSeconds(2000)).binds.size(), 2u);
  EXPECT_EQ(engine.CountMissedWakes(), 0u);
}

TEST_F(ByProfiles, AGangOfAProfileThatEvictsNobodyIsToldNothingOfEvictions) {
  Use({.rules = {.preempts = false}}, true);
  Node({.name = "n", .cpu = 1000});
  Pod({.name = "there", .cpu = 900, .node = "n"});
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  for (const char* name : {"p1", "p2"})
    Pod({.name = name, .cpu = 500, .priority = 5, .group = "g", .profile = "other"});
  const model::Plan plan = engine.Cycle(Instant::FromSeconds(1000));
  EXPECT_TRUE(plan.preemptions.empty());
  ASSERT_FALSE(plan.refusals.empty());
  for (const model::Refusal& refusal : plan.refusals) EXPECT_FALSE(refusal.preemption.has_value());
}

TEST_F(ByProfiles, VolumesThatAreAttachedAndDisksInUseDoNotKeepAway) {
  const auto place = [&](model::OptionalFilter filter, const TestPod& there, const TestPod& pod) {
    model::ProfileOptions options;
    options.rules.Disable(filter);
    Use(options);
    Node({.name = "n"});
    model::Vocabulary& v = engine.vocabulary();
    engine.Apply(model::StorageFact{
        .name = v.names.Intern("n"),
        .row = model::AttachLimits{.drivers = {{.driver = v.names.Intern("d"), .count = 1}}}});
    for (const std::string claim : {"c1", "c2"}) {
      const model::NameId volume = v.names.Intern("v-" + claim);
      engine.Apply(model::StorageFact{.name = v.names.Intern("default/" + claim),
                                      .row = model::VolumeClaim{.volume = volume, .bound = true}});
      engine.Apply(
          model::StorageFact{.name = volume,
                             .row = model::Volume{.driver = v.names.Intern("d"),
                                                  .handle = claim,
                                                  .claim = v.names.Intern("default/" + claim)}});
    }
    Pod(there);
    return Places(pod);
  };
  EXPECT_EQ(place(model::OptionalFilter::kNodeVolumeLimits,
                  {.name = "there", .node = "n", .claims = {"c1"}}, {.claims = {"c2"}}),
            "- n");
  EXPECT_EQ(place(model::OptionalFilter::kVolumeRestrictions,
                  {.name = "there", .node = "n", .disks = {"d1"}}, {.disks = {"d1"}}),
            "- n");
}

TEST_F(ByProfiles, ClaimsWithoutVolumesDoNotKeepAway) {
  using model::OptionalFilter;
  // Of a class of which nothing is made: with VolumeBinding nobody gets a node.
  const auto place = [&](std::initializer_list<OptionalFilter> off, bool waits_for_pod) {
    model::ProfileOptions options;
    for (const OptionalFilter filter : off) options.rules.Disable(filter);
    Use(options);
    Node({.name = "n"});
    model::Vocabulary& v = engine.vocabulary();
    const model::NameId name = v.names.Intern("c");
    engine.Apply(model::StorageFact{
        .name = name, .row = model::StorageClass{.provisions = false, .waits = waits_for_pod}});
    engine.Apply(model::StorageFact{.name = v.names.Intern("default/there"),
                                    .row = model::VolumeClaim{.storage_class = name}});
    return Places({.claims = {"there"}}) + ", missing: " + Places({.claims = {"missing"}});
  };
  constexpr OptionalFilter kBinding = OptionalFilter::kVolumeBinding;
  constexpr OptionalFilter kRestrictions = OptionalFilter::kVolumeRestrictions;
  constexpr OptionalFilter kLimits = OptionalFilter::kNodeVolumeLimits;
  constexpr OptionalFilter kZone = OptionalFilter::kVolumeZone;
  EXPECT_EQ(place({kRestrictions, kLimits, kZone}, true), "- -, missing: - -");
  EXPECT_EQ(place({kBinding}, true), "- n, missing: - -");
  // VolumeZone lets no claim pass that should have a volume and has none.
  EXPECT_EQ(place({kBinding}, false), "- -, missing: - -");
  EXPECT_EQ(place({kBinding, kZone}, false), "- n, missing: - -");
  // One of the others is enough to miss a claim.
  EXPECT_EQ(place({kBinding, kRestrictions, kZone}, false), "- n, missing: - -");
  EXPECT_EQ(place({kBinding, kRestrictions, kLimits}, true), "- n, missing: - -");
  EXPECT_EQ(place({kBinding, kLimits, kZone}, true), "- n, missing: - -");
  EXPECT_EQ(place({kBinding, kRestrictions, kLimits, kZone}, false), "- n, missing: - n");
}

// Goal: NodeVolumeLimits and VolumeBinding ask for the claims of ephemeral volumes, and whose they
// are; the others don't.
TEST_F(ByProfiles, ClaimsOfEphemeralVolumesAreThePodsOwn) {
  using model::OptionalFilter;
  for (const bool limits : {true, false}) {
    model::ProfileOptions options;
    options.rules.Disable(OptionalFilter::kVolumeBinding);
    if (!limits) options.rules.Disable(OptionalFilter::kNodeVolumeLimits);
    Use(options);
    Node({.name = "n"});
    const TestPod pod{.own_claims = {"scratch"}};
    EXPECT_EQ(Places(pod), limits ? "- -" : "- n");
    model::Vocabulary& v = engine.vocabulary();
    const model::NameId late = v.names.Intern("late");
    engine.Apply(model::StorageFact{
        .name = late, .row = model::StorageClass{.provisions = false, .waits = true}});
    model::VolumeClaim claim{.controller = "uid-other", .storage_class = late};
    engine.Apply(model::StorageFact{.name = v.names.Intern("default/p-scratch"), .row = claim});
    EXPECT_EQ(Places(pod), limits ? "- -" : "- n");
    claim.controller = "uid-p";
    engine.Apply(model::StorageFact{.name = v.names.Intern("default/p-scratch"), .row = claim});
    EXPECT_EQ(Places(pod), "- n");
  }
}

// Goal: whom VolumeZone refuses for a claim is looked at again when that changes.
TEST_F(ByProfiles, WhoWaitsForAClaimIsWokenWithoutVolumeBinding) {
  model::ProfileOptions options;
  options.rules.Disable(model::OptionalFilter::kVolumeBinding);
  Use(options);
  Node({.name = "n"});
  model::Vocabulary& v = engine.vocabulary();
  const model::NameId name = v.names.Intern("default/c");
  engine.Apply(model::StorageFact{.name = name, .row = model::VolumeClaim{}});
  Pod({.name = "p", .claims = {"c"}, .profile = "other"});
  EXPECT_TRUE(engine.Cycle(Instant::FromSeconds(1000)).binds.empty());
  engine.Apply(
      model::StorageFact{.name = name, .row = model::VolumeClaim{.volume = v.names.Intern("v")}});
  EXPECT_TRUE(engine.Cycle(Instant::FromSeconds(1001)).binds.empty());
  engine.Apply(model::StorageFact{.name = v.names.Intern("v"), .row = model::Volume{}});
  EXPECT_EQ(engine.CountMissedWakes(), 0u);
  EXPECT_EQ(engine.Cycle(Instant::FromSeconds(1002)).binds.size(), 1u);
}

}  // namespace
}  // namespace berth::cycle
