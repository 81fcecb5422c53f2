// Goal: each controller's plan is right for every state it may find, reachable or not. Method: pure
// functions on facts made by hand; properties over random ones (rapidcheck), with naive twins for
// the data structures.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "controllers/collector.h"
#include "controllers/deployment.h"
#include "controllers/deployment_status.h"
#include "controllers/indexes.h"
#include "controllers/job.h"
#include "controllers/node_lifecycle.h"
#include "controllers/objects.h"
#include "controllers/pods.h"
#include "controllers/replica_set.h"

namespace berth::controllers {
namespace {

const Instant kNow = Instant::FromSeconds(1'000'000'000);

std::string Lines(const Plan& plan) {
  std::string text;
  for (const Write& write : plan.writes) text += ToString(write) + "\n";
  return text;
}

Head HeadNamed(api::KindId kind, const std::string& name) {
  return {.kind = kind,
          .namespace_name = "d",
          .name = name,
          .uid = "uid-" + name,
          .resource_version = "7",
          .creation = kNow};
}

// ---- Data structures -------------------------------------------------------------------------

RC_GTEST_PROP(IndexSet, IsASetOfIndexes, ()) {
  IndexSet set;
  std::set<int64_t> twin;
  for (const int index : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 40))) {
    set.Add(index);
    twin.insert(index);
  }
  RC_ASSERT(set.size() == static_cast<int64_t>(twin.size()));
  for (int64_t i = 0; i < 41; ++i) RC_ASSERT(set.Contains(i) == twin.contains(i));
  RC_ASSERT(IndexSet::Parse(set.ToString(), 40) == set);
  IndexSet other;
  other.Add(3);
  std::vector<int64_t> missing;
  for (int64_t i = 0; i < 40 && missing.size() < 5; ++i) {
    if (!twin.contains(i) && i != 3) missing.push_back(i);
  }
  RC_ASSERT(set.FirstMissing(other, 5, 40) == missing);
}

TEST(IndexSet, WritesAndReadsAsKubernetesDoes) {
  IndexSet set;
  for (const int64_t index : {7, 0, 2, 1, 4, 5}) set.Add(index);
  EXPECT_EQ(set.ToString(), "0-2,4,5,7");
  EXPECT_EQ(IndexSet::Parse("0-2,4,5,7", 8).ToString(), "0-2,4,5,7");
  EXPECT_EQ(IndexSet::Parse("0-2,4,5,7", 5).ToString(), "0-2,4");
  for (const char* bad : {"x", "-1", "3-1", ",", "1,1"}) {
    EXPECT_LE(IndexSet::Parse(bad, 10).size(), 1) << bad;
  }
}

struct TwinPod {
  std::string uid;
  std::string owner;
  std::string node;
  std::string label;
  std::string group;
  int64_t version = 0;
};

std::set<std::string> Names(const Objects& objects, const std::set<Slot>& slots) {
  std::set<std::string> names;
  for (const Slot slot : slots) names.insert(objects.head(slot).uid);
  return names;
}

// The indexes say what a walk over all objects says, whatever comes in whatever order.
RC_GTEST_PROP(Objects, IndexesAgreeWithAWalk, ()) {
  Objects objects;
  std::map<std::string, TwinPod> twin;  // By name.
  const auto steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const std::string name = "p" + std::to_string(*rc::gen::inRange(0, 5));
    if (*rc::gen::inRange(0, 4) == 0) {
      const auto at = twin.find(name);
      if (at == twin.end()) continue;
      RC_ASSERT(objects.Remove(at->second.uid).removed);
      RC_ASSERT(!objects.Remove(at->second.uid).removed);
      twin.erase(at);
      continue;
    }
    TwinPod pod{.uid = name + "-" + std::to_string(*rc::gen::inRange(0, 3)),
                .owner = *rc::gen::element<std::string>("", "o1", "o2"),
                .node = *rc::gen::element<std::string>("", "n1", "n2"),
                .label = *rc::gen::element<std::string>("a", "b"),
                .group = *rc::gen::element<std::string>("", "g1", "g2"),
                .version = *rc::gen::inRange(1, 1000)};
    const std::string owners =
        pod.owner.empty() ? ""
                          : fmt::format(R"(,"ownerReferences":[{{"apiVersion":"v1","kind":"X",
                "name":"x","uid":"{}","controller":true}}])",
                                        pod.owner);
    const std::string node = pod.node.empty() ? "" : R"("nodeName":")" + pod.node + "\"";
    const auto difference = objects.Observe(
        api::KindId::kPod,
        fmt::format(R"({{"metadata":{{"name":"{}","namespace":"d","uid":"{}","resourceVersion":"{}",
            "labels":{{"l":"{}"}},"annotations":{{"scheduling.k8s.io/group-name":"{}"}}{}}},"spec":{{{}}}}})",
                    name, pod.uid, pod.version, pod.label, pod.group, owners, node));
    RC_ASSERT(difference.has_value());
    const auto known = twin.find(name);
    // Of one life only what is newer counts.
    const bool stale =
        known != twin.end() && known->second.uid == pod.uid && known->second.version >= pod.version;
    RC_ASSERT((difference->slot == kNoSlot) == stale);
    if (!stale) twin[name] = pod;
  }
  RC_ASSERT(objects.size() == twin.size());
  for (const std::string owner : {"o1", "o2"}) {
    std::set<std::string> expected;
    for (const auto& [name, pod] : twin) {
      if (pod.owner == owner) expected.insert(pod.uid);
    }
    RC_ASSERT(Names(objects, objects.DependentsOf(owner)) == expected);
  }
  for (const std::string node : {"n1", "n2"}) {
    std::set<std::string> expected;
    for (const auto& [name, pod] : twin) {
      if (pod.node == node) expected.insert(pod.uid);
    }
    RC_ASSERT(Names(objects, objects.PodsOn(node)) == expected);
  }
  for (const std::string group : {"g1", "g2"}) {
    std::set<std::string> expected;
    for (const auto& [name, pod] : twin) {
      if (pod.group == group) expected.insert(pod.uid);
    }
    RC_ASSERT(Names(objects, objects.MembersOf("d", group)) == expected);
  }
  std::set<std::string> orphans;
  for (const auto& [name, pod] : twin) {
    if (pod.owner.empty() && pod.label == "a") orphans.insert(pod.uid);
  }
  const auto found = objects.OrphanPods("d", {.match_labels = {{"l", "a"}}});
  RC_ASSERT(Names(objects, {found.begin(), found.end()}) == orphans);
  RC_ASSERT(objects.In(api::KindId::kPod, "d").size() == twin.size());
}

// ---- ReplicaSets -----------------------------------------------------------------------------

struct Pods {
  std::vector<Head> heads;
  std::vector<PodFacts> facts;
  [[nodiscard]] std::vector<PodRef> refs() const {
    std::vector<PodRef> refs;
    for (size_t i = 0; i < heads.size(); ++i) refs.push_back({&heads[i], &facts[i]});
    return refs;
  }
};

RC_GTEST_PROP(ReplicaSet, CreatesOrDeletesTheDifference, ()) {
  const Head head = HeadNamed(api::KindId::kReplicaSet, "rs");
  api::ReplicaSet set;
  set.replicas = *rc::gen::inRange(0, 8);
  set.selector.match_labels = {{"l", "a"}};
  Pods pods;
  int64_t active = 0;
  const int count = *rc::gen::inRange(0, 10);
  for (int i = 0; i < count; ++i) {
    Head pod = HeadNamed(api::KindId::kPod, "p" + std::to_string(i));
    pod.labels = {{"l", "a"}};
    PodFacts facts{.phase = *rc::gen::element(PodPhase::kPending, PodPhase::kRunning,
                                              PodPhase::kSucceeded, PodPhase::kFailed),
                   .ready = *rc::gen::arbitrary<bool>(),
                   .ready_since = kNow};
    if (*rc::gen::arbitrary<bool>()) pod.deletion = kNow;
    if (!pod.deletion && !facts.terminal()) ++active;
    pods.heads.push_back(pod);
    pods.facts.push_back(facts);
  }
  const ReplicaSetFacts facts{
      .set = set, .head = head, .owned = pods.refs(), .count_on_node = [](std::string_view) {
        return int64_t{0};
      }};
  const Plan plan = PlanReplicaSet(facts, kNow);
  int64_t difference = 0;
  std::set<std::string> deleted;
  for (const Write& write : plan.writes) {
    if (write.verb == Verb::kCreate) ++difference;
    if (write.verb == Verb::kDelete) {
      --difference;
      RC_ASSERT(deleted.insert(write.uid).second);
    }
  }
  RC_ASSERT(difference == set.replicas - active);
}

TEST(ReplicaSet, TheLeastUsefulPodGoesFirst) {
  struct Case {
    const char* name;
    PodFacts facts;
    int64_t age_seconds = 1000;
  };
  const Instant old = kNow - Duration::Seconds(1000);
  const std::vector<Case> cases = {
      {"unassigned", {.phase = PodPhase::kPending}},
      {"pending", {.node = "n", .phase = PodPhase::kPending}},
      {"unready", {.node = "n", .phase = PodPhase::kRunning}},
      {"cheap",
       {.node = "n",
        .phase = PodPhase::kRunning,
        .ready = true,
        .ready_since = old,
        .deletion_cost = -1}},
      {"crowded",
       {.node = "crowd", .phase = PodPhase::kRunning, .ready = true, .ready_since = old}},
      {"just-ready",
       {.node = "n", .phase = PodPhase::kRunning, .ready = true, .ready_since = kNow}},
      {"restarted",
       {.node = "n",
        .phase = PodPhase::kRunning,
        .ready = true,
        .ready_since = old,
        .restarts = 2}},
      {"young", {.node = "n", .phase = PodPhase::kRunning, .ready = true, .ready_since = old}, 100},
      {"a", {.node = "n", .phase = PodPhase::kRunning, .ready = true, .ready_since = old}},
      {"b", {.node = "n", .phase = PodPhase::kRunning, .ready = true, .ready_since = old}},
  };
  Pods pods;
  for (auto at = cases.rbegin(); at != cases.rend(); ++at) {
    pods.heads.push_back(HeadNamed(api::KindId::kPod, at->name));
    pods.heads.back().creation = kNow - Duration::Seconds(at->age_seconds);
    pods.facts.push_back(at->facts);
  }
  for (size_t count = 0; count <= cases.size(); ++count) {
    std::vector<PodRef> refs = pods.refs();
    SortForDeletion(
        refs, static_cast<int64_t>(count),
        [](std::string_view node) { return node == "crowd" ? 3 : 1; }, kNow);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(refs[i].head->name, cases[i].name) << i;
  }
}

TEST(ReplicaSet, ASetOfManyBurstsShowsHowFarItIs) {
  Pods pods;
  for (const char* name : {"a", "b"}) {
    pods.heads.push_back(HeadNamed(api::KindId::kPod, name));
    pods.facts.push_back({.phase = PodPhase::kRunning, .ready = true, .ready_since = kNow});
  }
  const Head head = HeadNamed(api::KindId::kReplicaSet, "rs");
  const auto told = [&](int64_t replicas) {
    api::ReplicaSet set;
    set.replicas = replicas;
    const ReplicaSetFacts facts{.set = set, .head = head, .owned = pods.refs()};
    return Lines(PlanReplicaSet(facts, kNow)).find(R"("readyReplicas":2)") != std::string::npos;
  };
  EXPECT_TRUE(told(2));
  EXPECT_FALSE(told(kPodsBurst + 2)) << "the last burst's end is told with it";
  EXPECT_TRUE(told(kPodsBurst + 3));
}

TEST(ReplicaSet, AvailabilityWaitsForMinReadySeconds) {
  Pods pods;
  pods.heads.push_back(HeadNamed(api::KindId::kPod, "p"));
  pods.facts.push_back({.phase = PodPhase::kRunning, .ready = true, .ready_since = kNow});
  api::ReplicaSet set;
  set.min_ready_seconds = 10;
  const Head head = HeadNamed(api::KindId::kReplicaSet, "rs");
  const ReplicaSetFacts facts{.set = set, .head = head, .owned = pods.refs()};
  const Plan early = PlanReplicaSet(facts, kNow + Duration::Seconds(9));
  EXPECT_EQ(early.wake, kNow + Duration::Seconds(10));
  EXPECT_NE(Lines(early).find(R"("availableReplicas":0)"), std::string::npos);
  const Plan late = PlanReplicaSet(facts, kNow + Duration::Seconds(10));
  EXPECT_EQ(late.wake, Instant::Never());
  EXPECT_NE(Lines(late).find(R"("availableReplicas":1)"), std::string::npos);
}

// ---- Deployments -----------------------------------------------------------------------------

TEST(Deployment, FencepostsRoundForTheRollout) {
  const auto resolve = [](int64_t replicas, api::IntOrPercent surge,
                          api::IntOrPercent unavailable) {
    api::Deployment deployment;
    deployment.replicas = replicas;
    deployment.max_surge = surge;
    deployment.max_unavailable = unavailable;
    const Fenceposts posts = FencepostsOf(deployment);
    return fmt::format("+{} -{}", posts.surge, posts.unavailable);
  };
  EXPECT_EQ(resolve(10, {25, true}, {25, true}), "+3 -2");
  EXPECT_EQ(resolve(1, {25, true}, {25, true}), "+1 -0");
  EXPECT_EQ(resolve(3, {0, false}, {10, true}), "+0 -1");
  EXPECT_EQ(resolve(2, {1, false}, {5, false}), "+1 -2");
  EXPECT_EQ(resolve(0, {1, false}, {1, false}), "+0 -0");
}

// A cluster that follows the plans: ReplicaSets as numbers.
struct Rollout {
  api::Deployment deployment;
  Head head = HeadNamed(api::KindId::kDeployment, "web");
  std::vector<Head> heads;
  std::vector<api::ReplicaSet> sets;
  int made = 0;

  [[nodiscard]] Plan Look() const {
    DeploymentFacts facts{.deployment = deployment, .head = head};
    for (size_t i = 0; i < sets.size(); ++i) {
      facts.owned.push_back({.head = &heads[i], .set = &sets[i]});
    }
    return PlanDeployment(facts, kNow);
  }
  static int64_t NumberAfter(const std::string& text, const std::string& key, int64_t otherwise) {
    const size_t at = text.find(key);
    return at == std::string::npos ? otherwise : std::stoll(text.substr(at + key.size()));
  }
  void Apply(const Write& write) {
    if (write.kind == api::KindId::kDeployment) {
      // Any other write would be a new generation: the user's word, not a controller's.
      EXPECT_EQ(write.verb, Verb::kPatchStatus) << ToString(write);
      return;
    }
    if (write.verb == Verb::kCreate) {
      api::ReplicaSet set;
      set.meta.name = write.name;
      set.pod_template = deployment.pod_template;
      set.replicas = NumberAfter(write.body, "\"replicas\":", 0);
      sets.push_back(set);
      heads.push_back(HeadNamed(api::KindId::kReplicaSet, write.name + std::to_string(++made)));
      heads.back().creation = kNow + Duration::Seconds(made);
      heads.back().labels = {{"app", "web"}};
    }
    for (size_t i = 0; i < heads.size(); ++i) {
      const bool meant =
          write.verb == Verb::kCreate ? i + 1 == heads.size() : heads[i].uid == write.uid;
      if (!meant) continue;
      sets[i].replicas = NumberAfter(write.body, "\"replicas\":", sets[i].replicas);
      const std::string& metadata = write.metadata;
      for (const std::string_view key : {kDesiredReplicas, kMaxReplicas, kRevision}) {
        const int64_t value = NumberAfter(metadata, fmt::format("\"{}\":\"", key), -1);
        if (value >= 0) Put(sets[i].meta.annotations, key, std::to_string(value));
      }
    }
  }
  [[nodiscard]] int64_t Asked() const {
    int64_t total = 0;
    for (const auto& set : sets) total += set.replicas;
    return total;
  }
  [[nodiscard]] int64_t Available() const {
    int64_t total = 0;
    for (const auto& set : sets) total += set.available_replicas;
    return total;
  }
};

// However slowly pods come and go, a rolling update never asks for more than maxSurge over nor
// takes available pods below maxUnavailable under what is wanted, and it ends.
RC_GTEST_PROP(Deployment, ARolloutKeepsItsFencepostsAndEnds, ()) {
  Rollout rollout;
  rollout.deployment.replicas = *rc::gen::inRange(1, 12);
  rollout.deployment.selector.match_labels = {{"app", "web"}};
  rollout.deployment.max_surge = {*rc::gen::inRange(0, 60), *rc::gen::arbitrary<bool>()};
  rollout.deployment.max_unavailable = {*rc::gen::inRange(0, 60), *rc::gen::arbitrary<bool>()};
  const Fenceposts posts = FencepostsOf(rollout.deployment);
  const auto template_named = [](int number) {
    api::PodTemplate pod_template;
    pod_template.canonical = Bytes("template " + std::to_string(number));
    pod_template.labels = {{"app", "web"}};
    return pod_template;
  };
  const auto settle = [&](bool random) {
    for (size_t i = 0; i < rollout.sets.size(); ++i) {
      api::ReplicaSet& set = rollout.sets[i];
      const int64_t floor = std::min(set.available_replicas, set.replicas);
      set.available_replicas =
          random ? *rc::gen::inRange<int64_t>(floor, set.replicas + 1) : set.replicas;
      set.status_replicas = set.replicas;
    }
  };
  rollout.deployment.pod_template = template_named(0);
  for (int i = 0; i < 10; ++i) {
    for (const Write& write : rollout.Look().writes) rollout.Apply(write);
    settle(false);
  }
  RC_ASSERT(rollout.Available() == rollout.deployment.replicas);
  const int templates = *rc::gen::inRange(1, 4);
  for (int number = 1; number <= templates; ++number) {
    rollout.deployment.pod_template = template_named(number % 3);
    const int steps = number == templates ? 200 : *rc::gen::inRange(1, 6);
    for (int i = 0; i < steps; ++i) {
      const Plan plan = rollout.Look();
      for (const Write& write : plan.writes) rollout.Apply(write);
      RC_ASSERT(rollout.Asked() <= rollout.deployment.replicas + posts.surge);
      int64_t kept = 0;  // What is available and stays asked for.
      for (const auto& set : rollout.sets) kept += std::min(set.available_replicas, set.replicas);
      RC_ASSERT(kept >= rollout.deployment.replicas - posts.unavailable);
      settle(i < 150);
    }
  }
  for (const auto& set : rollout.sets) {
    const bool fresh = set.pod_template.canonical == rollout.deployment.pod_template.canonical;
    RC_ASSERT(set.replicas == (fresh ? rollout.deployment.replicas : 0));
  }
}

// Scaling in the middle of a rollout keeps the mixture and comes to the right sum.
RC_GTEST_PROP(Deployment, ScalingIsProportional, ()) {
  Rollout rollout;
  rollout.deployment.selector.match_labels = {{"app", "web"}};
  rollout.deployment.max_surge = {*rc::gen::inRange(1, 4), false};
  rollout.deployment.max_unavailable = {0, false};
  const int64_t before = *rc::gen::inRange(2, 20);
  rollout.deployment.replicas = before;
  const int64_t old = *rc::gen::inRange<int64_t>(1, before);
  for (int i = 0; i < 2; ++i) {
    api::ReplicaSet set;
    set.meta.name = "s" + std::to_string(i);
    set.replicas = i == 0 ? old : before + FencepostsOf(rollout.deployment).surge - old;
    set.meta.annotations = {{std::string(kDesiredReplicas), std::to_string(before)},
                            {std::string(kMaxReplicas),
                             std::to_string(before + FencepostsOf(rollout.deployment).surge)}};
    set.pod_template.canonical = Bytes("template " + std::to_string(i));
    rollout.sets.push_back(set);
    rollout.heads.push_back(HeadNamed(api::KindId::kReplicaSet, set.meta.name));
    rollout.heads.back().labels = {{"app", "web"}};
  }
  rollout.deployment.pod_template.canonical = Bytes("template 1");
  rollout.deployment.replicas = *rc::gen::inRange(1, 40);
  if (rollout.deployment.replicas == before) ++rollout.deployment.replicas;
  for (const Write& write : rollout.Look().writes) rollout.Apply(write);
  RC_ASSERT(rollout.Asked() ==
            rollout.deployment.replicas + FencepostsOf(rollout.deployment).surge);
  for (const auto& set : rollout.sets) RC_ASSERT(set.replicas >= 0);
}

// Two ReplicaSets may ask for more than an int32: upstream's sum is one, and negative counts as none.
TEST(Deployment, WhatIsUnavailableIsCountedIn32Bits) {
  api::Deployment deployment;
  deployment.replicas = 2147483647;
  deployment.status_replicas = 1;
  std::vector<api::ReplicaSet> sets(2);
  for (api::ReplicaSet& set : sets) set.replicas = 2147483647;
  const Head head = HeadNamed(api::KindId::kDeployment, "web");
  Plan plan;
  PlanDeploymentStatus({.deployment = deployment,
                        .head = head,
                        .posts = {},
                        .conditions = {},
                        .sets = {&sets[0], &sets[1]},
                        .trouble = {}},
                       kNow, plan);
  ASSERT_EQ(plan.writes.size(), 1u);
  EXPECT_NE(plan.writes[0].body.find(R"("unavailableReplicas":0)"), std::string::npos)
      << plan.writes[0].body;
}

// ---- Collector, nodes ------------------------------------------------------------------------

Slot See(Objects& objects, api::KindId kind, const std::string& name, const std::string& more,
         const std::string& rest = "") {
  const auto difference = objects.Observe(
      kind, fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"{2}","uid":"uid-{0}",
      "resourceVersion":"1"{1}}}{3}}})",
                        name, more, api::KindOf(kind).namespaced ? "d" : "", rest));
  EXPECT_TRUE(difference.has_value());
  return difference->slot;
}

// No server gives a uid twice; who does is told of, and the first stays.
TEST(SeenObjects, AUidIsOfOneKind) {
  Objects objects;
  See(objects, api::KindId::kNamespace, "n", "");
  const auto other = objects.Observe(
      api::KindId::kJob,
      R"({"metadata":{"name":"j","namespace":"d","uid":"uid-n","resourceVersion":"2"}})");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().message, "Job d/j has the uid of Namespace /n, uid-n");
  EXPECT_NE(objects.Find(api::KindId::kNamespace, "", "n"), kNoSlot);
}

// A Secret.
api::OwnerReference OwnerNamed(std::string name, std::string uid) {
  return {.api_version = "v1", .kind = "Secret", .name = std::move(name), .uid = std::move(uid)};
}

TEST(Collector, AnOwnerThatIsNotSeenIsReadFirst) {
  Objects objects;
  const Slot slot =
      See(objects, api::KindId::kConfigMap, "c",
          R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"o","uid":"u"}])");
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {})), "read Secret d/o u\n");
  // Absent elsewhere is not absent here.
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {AbsenceKey("e", OwnerNamed("o", "u"))})),
            "read Secret d/o u\n");
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {AbsenceKey("d", OwnerNamed("o", "u"))})),
            "delete ConfigMap d/c uid-c@1 Background\n");
}

TEST(Collector, AnOwnerOfAnotherNamespaceIsNone) {
  Objects objects;
  const auto owner = objects.Observe(
      api::KindId::kSecret,
      R"({"metadata":{"name":"o","namespace":"e","uid":"u","resourceVersion":"1"}})");
  ASSERT_TRUE(owner.has_value());
  const Slot slot =
      See(objects, api::KindId::kConfigMap, "c",
          R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"o","uid":"u"}])");
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {})), "read Secret d/o u\n");
}

TEST(Collector, AnOwnerOfAnotherNamespaceIsToldOf) {
  Objects objects;
  ASSERT_TRUE(objects.Observe(
      api::KindId::kSecret,
      R"({"metadata":{"name":"o","namespace":"e","uid":"u","resourceVersion":"1"}})"));
  const Slot slot =
      See(objects, api::KindId::kConfigMap, "c",
          R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"o","uid":"u"}])");
  const Plan plan = PlanCollection(objects, slot, {});
  ASSERT_EQ(plan.told.size(), 1u);
  EXPECT_TRUE(plan.told[0].warning);
  EXPECT_EQ(plan.told[0].reason, "OwnerRefInvalidNamespace");
  EXPECT_EQ(plan.told[0].message,
            "ownerRef [v1/Secret, namespace: d, name: o, uid: u] does not exist in namespace "
            "\"d\"");
}

// A reference is to what it names: a uid that another object has makes it no owner.
TEST(Collector, AnObjectOfAnotherKindOrNameIsNoOwner) {
  Objects objects;
  See(objects, api::KindId::kSecret, "o", "");
  const auto owned = [&](const std::string& name, const std::string& owner) {
    const Slot slot =
        See(objects, api::KindId::kConfigMap, name,
            fmt::format(R"(,"ownerReferences":[{{"apiVersion":{},"uid":"uid-o"}}])", owner));
    return Lines(PlanCollection(objects, slot, {}));
  };
  EXPECT_EQ(owned("a", R"("v1","kind":"Secret","name":"o")"), "");
  EXPECT_EQ(owned("b", R"("v1","kind":"Secret","name":"other")"),
            "delete ConfigMap d/b uid-b@1 Background\n");
  EXPECT_EQ(owned("c", R"("v1","kind":"ConfigMap","name":"o")"),
            "delete ConfigMap d/c uid-c@1 Background\n");
  EXPECT_EQ(owned("d", R"("apps/v1","kind":"Deployment","name":"o")"),
            "delete ConfigMap d/d uid-d@1 Background\n");
  // Nobody knows what that is, and so not that it is gone.
  EXPECT_EQ(owned("e", R"("nobody.io/v1","kind":"Secret","name":"other")"), "");
}

// As upstream, whose mapper of kinds has no answer for such a reference: what has the uid, and what
// became of it, says nothing.
TEST(Collector, AReferenceOfAKindOrVersionThatIsNotServedLeavesAllAsItIs) {
  Objects objects;
  See(objects, api::KindId::kSecret, "o", "");
  See(objects, api::KindId::kSecret, "leaving",
      R"(,"deletionTimestamp":"2001-09-09T01:46:40Z","finalizers":["foregroundDeletion"])");
  int count = 0;
  const auto owned = [&](const std::string& owners, const Absences& absent) {
    const Slot slot = See(objects, api::KindId::kConfigMap, fmt::format("c{}", ++count),
                          fmt::format(R"(,"ownerReferences":[{}])", owners));
    return Lines(PlanCollection(objects, slot, absent));
  };
  const Absences gone = {AbsenceKey("d", OwnerNamed("gone", "uid-gone"))};
  for (const std::string_view kind :
       {R"("apiVersion":"v7","kind":"Secret")", R"("apiVersion":"nobody.io/v1","kind":"Secret")",
        R"("apiVersion":"v1","kind":"Nothing")", R"("apiVersion":"policy/v1","kind":"Eviction")",
        R"("apiVersion":"authentication.k8s.io/v1","kind":"TokenReview")"}) {
    const auto named = [&](std::string_view name) {
      return fmt::format(R"({{{},"name":"{}","uid":"uid-{}"}})", kind, name, name);
    };
    const std::string other = R"({"apiVersion":"v1","kind":"Secret","name":"x","uid":"uid-x"})";
    const Absences both = {AbsenceKey("d", OwnerNamed("gone", "uid-gone")),
                           AbsenceKey("d", OwnerNamed("x", "uid-x"))};
    EXPECT_EQ(owned(named("o") + "," + other, both), "") << kind;
    EXPECT_EQ(owned(named("leaving"), gone), "") << kind;
    EXPECT_EQ(owned(named("gone"), gone), "") << kind;
    EXPECT_EQ(owned(named("never"), gone), "") << kind;
  }
  EXPECT_EQ(owned(R"({"apiVersion":"v1","kind":"Secret","name":"gone","uid":"uid-gone"})", gone),
            "delete ConfigMap d/c21 uid-c21@1 Background\n");
}

// A definition of apps.x.io, established, with these versions; the last is the one that is stored.
void Define(Objects& objects, const std::string& scope, std::vector<std::string> versions) {
  std::string list;
  for (const std::string& version : versions) {
    list += fmt::format(R"({}{{"name":"{}","served":true,"storage":{}}})", list.empty() ? "" : ",",
                        version, version == versions.back());
  }
  See(objects, api::KindId::kCustomResourceDefinition, "apps.x.io", "",
      fmt::format(R"(,"spec":{{"group":"x.io","scope":"{}","names":{{"plural":"apps","kind":"App"}},
      "versions":[{}]}},"status":{{"acceptedNames":{{"plural":"apps","kind":"App"}},
      "conditions":[{{"type":"Established","status":"True"}}]}})",
                  scope, list));
}

TEST(Collector, AnOwnerOfAUsersKindIsReadOnceAllOfItsKindAreSeen) {
  Objects objects;
  const Slot slot = See(objects, api::KindId::kConfigMap, "c", R"(,"ownerReferences":[
      {"apiVersion":"x.io/v1","kind":"App","name":"o","uid":"u"}])");
  const Slot odd = See(objects, api::KindId::kConfigMap, "odd", R"(,"ownerReferences":[
      {"apiVersion":"x.io/v7","kind":"App","name":"o","uid":"u"}])");
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {})), "");
  Define(objects, "Namespaced", {"v1", "v2"});
  EXPECT_EQ(objects.definition("apps.x.io")->version, "v2");
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {})), "");
  objects.NoteListed("apps.x.io", true);
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {})), "read apps.x.io d/o u\n");
  EXPECT_EQ(Lines(PlanCollection(objects, odd, {})), "");
  EXPECT_EQ(
      Lines(PlanCollection(
          objects, slot,
          {AbsenceKey("d", {.api_version = "x.io/v1", .kind = "App", .name = "o", .uid = "u"})})),
      "delete ConfigMap d/c uid-c@1 Background\n");
  ASSERT_TRUE(objects.Observe(
      api::KindId::kCustomResource,
      R"({"metadata":{"name":"o","namespace":"d","uid":"u","resourceVersion":"2"}})", "apps.x.io"));
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {})), "");
}

TEST(Collector, ObjectsOfUsersKindsAreToldApart) {
  Objects objects;
  const auto see = [&](const std::string& uid, const std::string& defined) {
    return objects.Observe(
        api::KindId::kCustomResource,
        fmt::format(R"({{"metadata":{{"name":"o","namespace":"d","uid":"{}","resourceVersion":"2",
        "deletionTimestamp":"2001-09-09T01:46:40Z","finalizers":["foregroundDeletion"]}}}})",
                    uid),
        defined);
  };
  ASSERT_TRUE(see("u", "apps.x.io"));
  ASSERT_TRUE(see("v", "apps.y.io"));
  EXPECT_NE(objects.Find("u"), kNoSlot);
  EXPECT_EQ(objects.AllDefined("apps.y.io"), std::vector<Slot>{objects.Find("v")});
  EXPECT_FALSE(see("v", "apps.x.io").has_value());
  EXPECT_EQ(Lines(PlanCollection(objects, objects.Find("v"), {})),
            "patch apps.y.io d/o v@2 metadata{\"finalizers\":null}\n");
}

// An owner that lives in a namespace can't be found for an object that lives in none; nothing is
// done about the other owners either.
TEST(Collector, WhatCannotBeFoundKeepsAnObjectAsItIs) {
  Objects objects;
  const Slot slot = See(objects, api::KindId::kClusterRole, "c", R"(,"ownerReferences":[
      {"apiVersion":"v1","kind":"Secret","name":"o","uid":"u"},
      {"apiVersion":"v1","kind":"Node","name":"n","uid":"gone"}])");
  EXPECT_EQ(
      Lines(PlanCollection(
          objects, slot,
          {AbsenceKey("", {.api_version = "v1", .kind = "Node", .name = "n", .uid = "gone"})})),
      "");
  const Slot both = See(objects, api::KindId::kConfigMap, "both", R"(,"ownerReferences":[
      {"apiVersion":"nobody.io/v1","kind":"Nothing","name":"o","uid":"u"},
      {"apiVersion":"v1","kind":"Secret","name":"n","uid":"gone"}])");
  EXPECT_EQ(Lines(PlanCollection(objects, both, {AbsenceKey("d", OwnerNamed("n", "gone"))})), "");
}

TEST(Collector, OneSolidOwnerKeepsAnObject) {
  Objects objects;
  See(objects, api::KindId::kSecret, "o", "");
  const Slot slot = See(objects, api::KindId::kConfigMap, "c", R"(,"ownerReferences":[
      {"apiVersion":"v1","kind":"Secret","name":"o","uid":"uid-o"},
      {"apiVersion":"v1","kind":"Secret","name":"x","uid":"gone"}])");
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {AbsenceKey("d", OwnerNamed("x", "gone"))})),
            "patch ConfigMap d/c uid-c@1 metadata{\"ownerReferences\":[{\"apiVersion\":\"v1\","
            "\"kind\":\"Secret\",\"name\":\"o\",\"uid\":\"uid-o\"}]}\n");
}

TEST(Collector, AForegroundOwnerWaitsForThoseThatBlockIt) {
  Objects objects;
  const Slot owner =
      See(objects, api::KindId::kSecret, "o",
          R"(,"deletionTimestamp":"2001-09-09T01:46:40Z","finalizers":["foregroundDeletion"])");
  EXPECT_EQ(Lines(PlanCollection(objects, owner, {})),
            "patch Secret d/o uid-o@1 metadata{\"finalizers\":null}\n");
  const std::string reference =
      R"({"apiVersion":"v1","kind":"Secret","name":"o","uid":"uid-o","blockOwnerDeletion":true})";
  const Slot slot =
      See(objects, api::KindId::kConfigMap, "c", R"(,"ownerReferences":[)" + reference + "]");
  EXPECT_EQ(Lines(PlanCollection(objects, owner, {})), "");
  EXPECT_EQ(Lines(PlanCollection(objects, slot, {})), "delete ConfigMap d/c uid-c@1 Background\n");
}

TEST(NodeLifecycle, ANodeThatIsMissedIsReadBeforeItsPodsGo) {
  Objects objects;
  See(objects, api::KindId::kPod, "p", "",
      R"(,"spec":{"nodeName":"n"},"status":{"phase":"Running"})");
  const std::map<std::string, Instant> none;
  NodeFacts facts{.name = "n", .missing_since = kNow, .taints_seen = none};
  const LifecycleTiming timing;
  PendingEvictions pending;
  EXPECT_EQ(PlanNode(objects, facts, timing, kNow, pending).wake, kNow + timing.quarantine);
  const Instant later = kNow + timing.quarantine;
  EXPECT_EQ(Lines(PlanNode(objects, facts, timing, later, pending)), "read Node n\n");
  facts.missing_read = true;
  EXPECT_EQ(Lines(PlanNode(objects, facts, timing, later, pending)).substr(0, 35),
            "patch-status Pod d/p uid-p@1 \"statu");
}

TEST(NodeLifecycle, TolerationsSayWhenAPodLeaves) {
  api::Node node;
  node.taints = {{.key = "k", .value = "v", .effect = "NoExecute", .added = kNow},
                 {.key = "soft", .effect = "NoSchedule"}};
  const auto leaves = [&](std::vector<api::Toleration> tolerations) {
    PodFacts pod;
    pod.spec.Edit().tolerations = std::move(tolerations);
    const Instant at = EvictionTime(pod, node, {});
    return at == Instant::Never() ? std::string("never") : std::to_string((at - kNow).seconds());
  };
  EXPECT_EQ(leaves({}), "0");
  EXPECT_EQ(leaves({{.key = "k", .op = "Exists"}}), "never");
  EXPECT_EQ(leaves({{.key = "k", .op = "Equal", .value = "v", .effect = "NoExecute"}}), "never");
  EXPECT_EQ(leaves({{.key = "k", .op = "Equal", .value = "w"}}), "0");
  EXPECT_EQ(leaves({{.key = "k", .op = "Exists", .effect = "NoSchedule"}}), "0");
  EXPECT_EQ(leaves({{.op = "Exists", .seconds = 300}}), "300");
  EXPECT_EQ(leaves({{.op = "Exists"}, {.key = "k", .op = "Exists", .seconds = 30}}), "30");
  EXPECT_EQ(leaves({{.key = "k", .op = "Exists", .seconds = -5}}), "0");
  EXPECT_EQ(leaves({{.key = "k", .op = "Exists", .seconds = 1'000'000'000'000'000'000}}), "never");
}

// ---- Jobs ------------------------------------------------------------------------------------

// Goal: the API server refuses the end of a Job that never began. Method: all pods are counted,
// the write that says when it began was lost.
TEST(Job, EndsWithAStartThoughThatWriteWasLost) {
  api::Job job;
  job.meta.name = "j";
  job.completions = 1;
  job.parallelism = 1;
  job.succeeded = 1;
  const std::string lines =
      Lines(PlanJob({.job = job, .head = HeadNamed(api::KindId::kJob, "j")}, kNow));
  EXPECT_NE(lines.find("\"Complete\""), std::string::npos) << lines;
  EXPECT_EQ(lines.find("\"startTime\":null"), std::string::npos) << lines;
}

// A number of seconds that no clock reaches is a deadline that never comes.
TEST(Job, HasADeadlineThatNeverComes) {
  api::Job job;
  job.meta.name = "j";
  job.completions = 1;
  job.parallelism = 1;
  job.start_time = kNow;
  job.active_deadline_seconds = 1'000'000'000'000'000'000;
  const std::string lines =
      Lines(PlanJob({.job = job, .head = HeadNamed(api::KindId::kJob, "j")}, kNow));
  EXPECT_EQ(lines.find("DeadlineExceeded"), std::string::npos) << lines;
}

// The uids in the last list of that name in the text of a patch.
std::vector<std::string> UidsIn(const std::string& text, const std::string& key) {
  std::vector<std::string> found;
  const size_t from = text.rfind("\"" + key + "\":[");
  for (size_t at = text.find('[', from) + 1; text[at] == '"' || text[at] == ',';) {
    if (text[at] == ',') ++at;
    const size_t end = text.find('"', at + 1);
    found.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return found;
}

// A cluster that follows a Job's plans, in any order and with any delay: each pod that ended is
// counted exactly once.
RC_GTEST_PROP(Job, CountsEachPodOnce, ()) {
  const Head head = HeadNamed(api::KindId::kJob, "j");
  api::Job job;
  job.meta.name = "j";
  job.completions = *rc::gen::inRange(1, 8);
  job.parallelism = *rc::gen::inRange(1, 5);
  job.backoff_limit = 1000;
  std::map<std::string, std::pair<Head, PodFacts>> pods;
  int made = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  Instant now = kNow;
  std::string trail;  // The last plan, to show why a Job did not end.
  const auto end_pod = [&](std::pair<Head, PodFacts>& pod, bool success) {
    pod.second.phase = success ? PodPhase::kSucceeded : PodPhase::kFailed;
    pod.second.finished = now;
    (success ? succeeded : failed) += 1;
  };
  for (int step = 0; step < 300 && api::Find(job.conditions, "Complete") == nullptr; ++step) {
    now = now + Duration::Minutes(11);
    for (auto& [uid, pod] : pods) {
      const bool runs = pod.second.phase == PodPhase::kPending;
      // Zero, what every range shrinks to, is what goes well.
      if (runs && *rc::gen::inRange(0, 3) != 2) end_pod(pod, *rc::gen::inRange(0, 4) != 3);
      if (!runs && *rc::gen::inRange(0, 4) == 3) pod.first.deletion = now;
    }
    std::erase_if(pods, [](const auto& entry) {
      return entry.second.first.deletion.has_value() && entry.second.first.finalizers.empty();
    });
    JobFacts facts{.job = job, .head = head};
    for (const auto& [uid, pod] : pods) facts.owned.push_back({&pod.first, &pod.second});
    const Plan plan = PlanJob(facts, now);
    trail = fmt::format("step {}, {} pods:\n{}", step, pods.size(), Lines(plan));
    for (const Write& write : plan.writes) {
      if (*rc::gen::inRange(0, 4) == 3) continue;  // Lost.
      if (write.verb == Verb::kCreate) {
        Head pod = HeadNamed(api::KindId::kPod, "p" + std::to_string(++made));
        pod.finalizers = {std::string(kTrackingFinalizer)};
        pods[pod.uid] = {pod, {}};
      } else if (write.verb == Verb::kPatch && pods.contains(write.uid)) {
        pods[write.uid].first.finalizers.clear();
      } else if (write.verb == Verb::kPatchStatus) {
        job.succeeded = Rollout::NumberAfter(write.body, "\"succeeded\":", 0);
        job.failed = Rollout::NumberAfter(write.body, "\"failed\":", 0);
        job.uncounted_succeeded = UidsIn(write.body, "succeeded");
        job.uncounted_failed = UidsIn(write.body, "failed");
        // The API server refuses the end of a Job that never began.
        const bool began = write.body.find("\"startTime\":null") == std::string::npos;
        RC_ASSERT(began || write.body.find("\"Complete\"") == std::string::npos);
        if (began) job.start_time = kNow;
        for (const std::string type : {"SuccessCriteriaMet", "Complete"}) {
          if (write.body.find("\"" + type + "\"") == std::string::npos) continue;
          if (api::Find(job.conditions, type) != nullptr) continue;
          job.conditions.push_back({.type = type, .status = "True"});
        }
      }
    }
    RC_ASSERT(job.succeeded + static_cast<int64_t>(job.uncounted_succeeded.size()) <= succeeded);
  }
  if (api::Find(job.conditions, "Complete") == nullptr) RC_FAIL(trail);
  RC_ASSERT(job.succeeded == succeeded);
  RC_ASSERT(job.failed == failed);
  RC_ASSERT(succeeded == *job.completions);
}

}  // namespace
}  // namespace berth::controllers
