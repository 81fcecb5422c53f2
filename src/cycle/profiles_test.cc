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

class ByProfiles : public testing::Test {
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

}  // namespace
}  // namespace berth::cycle
