// Goal: a budget's status says how many of its pods can be spared, for every kind of owner and
// wish, and its pods are found whatever changes. Method: plans on objects made by hand, each row of
// a table one situation; the index against a walk over all pods (rapidcheck).
#include "controllers/disruption.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/timestamp.h"
#include "controllers/seen_objects.h"

namespace berth::controllers {
namespace {

const Instant kNow = Instant::FromSeconds(1'000'000'000);

// A set of objects that tells what a budget's plan writes.
class Situation : public SeenObjects {
 public:
  void SeePod(const std::string& name, bool ready, const std::string& owner = "",
              const std::string& metadata = "") {
    See(api::KindId::kPod, name, R"(,"labels":{"a":"b"})" + owner + metadata,
        fmt::format(R"(,"status":{{"phase":"Running","conditions":[{{"type":"Ready",)"
                    R"("status":"{}"}}]}})",
                    ready ? "True" : "False"));
  }
  void SeePods(int ready, int unready, const std::string& owner = "") {
    for (int i = 0; i < ready + unready; ++i) SeePod(fmt::format("p{}", i), i < ready, owner);
  }
  void SeeSet(const std::string& name, int replicas, const std::string& owner = "") {
    See(api::KindId::kReplicaSet, name, owner,
        fmt::format(R"(,"spec":{{"replicas":{}}})", replicas));
  }
  // The counts of the status that a new budget gets, or what else is written.
  std::string Plan(const std::string& spec, const std::string& status = "") {
    const Slot slot = See(
        api::KindId::kPodDisruptionBudget, "budget", R"(,"generation":3)",
        fmt::format(R"(,"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},{}}})", spec) + status);
    plan = PlanBudget(objects, slot, {}, kNow);
    if (plan.writes.empty()) return "nothing";
    EXPECT_EQ(plan.writes.size(), 1U);
    return plan.writes.at(0).body;
  }
  controllers::Plan plan;
};

std::string OwnedBy(const std::string& kind, const std::string& name,
                    const std::string& api_version = "apps/v1") {
  return fmt::format(R"(,"ownerReferences":[{{"apiVersion":"{}","kind":"{}","name":"{}",)"
                     R"("uid":"u-{}","controller":true}}])",
                     api_version, kind, name, name);
}

std::string Counts(int allowed, int healthy, int desired, int expected) {
  return fmt::format(R"("status":{{"observedGeneration":3,"disruptionsAllowed":{},)"
                     R"("currentHealthy":{},"desiredHealthy":{},"expectedPods":{},)"
                     R"("conditions":[{{"type":"DisruptionAllowed","status":"{}",)"
                     R"("observedGeneration":3,"lastTransitionTime":"2001-09-09T01:46:40Z",)"
                     R"("reason":"{}","message":""}}]}})",
                     allowed, healthy, desired, expected, allowed > 0 ? "True" : "False",
                     allowed > 0 ? "SufficientPods" : "InsufficientPods");
}

std::string Failed(const std::string& message) {
  return fmt::format(R"("status":{{"disruptionsAllowed":0,"conditions":[)"
                     R"({{"type":"DisruptionAllowed","status":"False","observedGeneration":0,)"
                     R"("lastTransitionTime":"2001-09-09T01:46:40Z","reason":"SyncFailed",)"
                     R"("message":"{}"}}]}})",
                     message);
}

TEST(BudgetTest, ANumberOfPodsIsKeptWhateverOwnsThem) {
  Situation some;
  some.SeePods(3, 1);
  EXPECT_EQ(some.Plan(R"("minAvailable":2)"), Counts(1, 3, 2, 4));
  EXPECT_EQ(some.Plan(R"("minAvailable":3)"), Counts(0, 3, 3, 4));
  EXPECT_EQ(some.Plan(R"("minAvailable":9)"), Counts(0, 3, 9, 4));
  EXPECT_EQ(some.Plan(R"("minAvailable":0)"), Counts(3, 3, 0, 4));
  EXPECT_EQ(some.Plan(R"("unhealthyPodEvictionPolicy":"AlwaysAllow")"), Counts(0, 3, 0, 0));
  Situation none;
  EXPECT_EQ(none.Plan(R"("minAvailable":0)"), Counts(0, 0, 0, 0));
}

TEST(BudgetTest, SharesAreOfWhatStatefulSetsAndReplicationControllersWant) {
  Situation stateful;
  stateful.See(api::KindId::kStatefulSet, "db", "", R"(,"spec":{"replicas":6})");
  stateful.SeePods(5, 0, OwnedBy("StatefulSet", "db"));
  EXPECT_EQ(stateful.Plan(R"("minAvailable":"50%")"), Counts(2, 5, 3, 6));
  Situation replicated;
  replicated.See(api::KindId::kReplicationController, "old", "", R"(,"spec":{"replicas":4})");
  replicated.SeePods(4, 0, OwnedBy("ReplicationController", "old", "v1"));
  EXPECT_EQ(replicated.Plan(R"("maxUnavailable":"25%")"), Counts(1, 4, 3, 4));
}

TEST(BudgetTest, SharesAreOfWhatTheControllersWant) {
  Situation owned;
  owned.SeeSet("web", 5);
  owned.SeePods(4, 0, OwnedBy("ReplicaSet", "web"));
  EXPECT_EQ(owned.Plan(R"("minAvailable":"50%")"), Counts(1, 4, 3, 5));
  EXPECT_EQ(owned.Plan(R"("maxUnavailable":"30%")"), Counts(1, 4, 3, 5));
  EXPECT_EQ(owned.Plan(R"("maxUnavailable":1)"), Counts(0, 4, 4, 5));
  EXPECT_EQ(owned.Plan(R"("maxUnavailable":"100%")"), Counts(4, 4, 0, 5));
  EXPECT_EQ(owned.Plan(R"("maxUnavailable":7)"), Counts(4, 4, 0, 5));

  // Of two ReplicaSets of one Deployment, the Deployment's wish counts, once.
  Situation rolling;
  rolling.See(api::KindId::kDeployment, "web", "", R"(,"spec":{"replicas":4})");
  rolling.SeeSet("web-1", 3, OwnedBy("Deployment", "web"));
  rolling.SeeSet("web-2", 2, OwnedBy("Deployment", "web"));
  rolling.SeePod("a", true, OwnedBy("ReplicaSet", "web-1"));
  rolling.SeePod("b", true, OwnedBy("ReplicaSet", "web-2"));
  rolling.SeePod("c", true, OwnedBy("ReplicaSet", "web-2"));
  EXPECT_EQ(rolling.Plan(R"("minAvailable":"50%")"), Counts(1, 3, 2, 4));

  // Without that Deployment each ReplicaSet speaks for itself; pods of nobody count for nothing.
  Situation left;
  left.SeeSet("web-1", 3, OwnedBy("Deployment", "web"));
  left.SeeSet("web-2", 2, OwnedBy("Deployment", "web"));
  left.SeePod("a", true, OwnedBy("ReplicaSet", "web-1"));
  left.SeePod("b", true, OwnedBy("ReplicaSet", "web-2"));
  left.SeePod("c", true);
  EXPECT_EQ(left.Plan(R"("minAvailable":"20%")"), Counts(2, 3, 1, 5));
}

TEST(BudgetTest, NothingIsAllowedWhileTheWishIsUnknown) {
  Situation job;
  job.See(api::KindId::kJob, "j", "", "");
  job.SeePods(2, 0, OwnedBy("Job", "j", "batch/v1"));
  EXPECT_EQ(job.Plan(R"("maxUnavailable":1)"),
            Failed("jobs.batch does not implement the scale subresource"));
  EXPECT_EQ(job.Plan(R"("minAvailable":1)"), Counts(1, 2, 1, 2));
  Situation strange;
  strange.SeePods(1, 0, OwnedBy("Web", "w", "example.com/v1"));
  EXPECT_EQ(strange.Plan(R"("minAvailable":"1%")"),
            Failed(R"(no matches for kind \"Web\" in version \"example.com/v1\")"));
  Situation gone;
  gone.SeePods(1, 0, OwnedBy("ReplicaSet", "web"));
  EXPECT_EQ(gone.Plan(R"("minAvailable":"1%")"), Failed(R"(found no controllers for pod \"p0\")"));
  // Said once; a later success takes it back.
  const std::string status =
      R"(,"status":{"conditions":[{"type":"DisruptionAllowed","status":"False",)"
      R"("reason":"SyncFailed","message":"found no controllers for pod \"p0\"",)"
      R"("lastTransitionTime":"2001-09-09T01:46:40Z"}]})";
  EXPECT_EQ(gone.Plan(R"("minAvailable":"1%")", status), "nothing");
  EXPECT_EQ(gone.Plan(R"("minAvailable":1)", status), Counts(0, 1, 1, 1));
}

TEST(BudgetTest, PodsThatGoOrAreAboutToCountForNothing) {
  const auto at = [](int64_t seconds_ago) {
    return api::PrintTimestamp(kNow - Duration::Seconds(seconds_ago));
  };
  Situation some;
  some.SeePods(5, 0);
  some.SeePod("goes", true, "", R"(,"deletionTimestamp":"2001-09-09T01:46:40Z")");
  const auto status = [&](const std::string& pods) {
    return R"(,"status":{"disruptedPods":{)" + pods + "}}";
  };
  // p0 was evicted just now, p1 so long ago that it stays.
  const std::string lately = fmt::format(R"("p0":"{}","p1":"{}","goes":"{}","unknown":"{}")",
                                         at(30), at(120), at(5), at(5));
  const std::string written = some.Plan(R"("minAvailable":1)", status(lately));
  EXPECT_NE(written.find(R"("disruptionsAllowed":3,"currentHealthy":4,"desiredHealthy":1,)"
                         R"("expectedPods":6,"disruptedPods":{"goes":null,"p1":null,)"
                         R"("unknown":null})"),
            std::string::npos)
      << written;
  EXPECT_EQ(some.plan.wake, kNow + Duration::Seconds(90));
  EXPECT_TRUE(some.plan.writes.at(0).strategic);
  EXPECT_FALSE(some.plan.writes.at(0).resource_version.empty());

  // What is so already is not written; the time of the next look stays.
  const std::string told = fmt::format(
      R"(,"status":{{"observedGeneration":3,"disruptionsAllowed":3,"currentHealthy":4,)"
      R"("desiredHealthy":1,"expectedPods":6,"disruptedPods":{{"p0":"{}"}},"conditions":[)"
      R"({{"type":"DisruptionAllowed","status":"True","reason":"SufficientPods",)"
      R"("lastTransitionTime":"2001-09-09T01:46:40Z"}}]}})",
      at(30));
  EXPECT_EQ(some.Plan(R"("minAvailable":1)", told), "nothing");
  EXPECT_EQ(some.plan.wake, kNow + Duration::Seconds(90));
}

// Events go with a status alone, so that what stays amiss is not told again.
TEST(BudgetTest, WhatIsAmissIsToldWithTheStatus) {
  const auto told = [](Situation& some, const std::string& spec, const std::string& status = "") {
    std::string text;
    if (some.Plan(spec, status) == "nothing") return text;
    for (const Told& one : some.plan.writes.at(0).told) {
      text += fmt::format("{} {}{}: {}\n", one.warning ? "Warning" : "Normal", one.reason,
                          one.about.empty() ? "" : " of " + one.about, one.message);
    }
    return text;
  };
  Situation none;
  EXPECT_EQ(told(none, R"("minAvailable":1)"), "Normal NoPods: No matching pods found\n");
  EXPECT_EQ(told(none, R"("minAvailable":1)",
                 R"(,"status":{"observedGeneration":3,"desiredHealthy":1,"conditions":[)"
                 R"({"type":"DisruptionAllowed","status":"False","reason":"InsufficientPods"}]})"),
            "");
  Situation bare;
  bare.SeePods(2, 0);
  EXPECT_EQ(told(bare, R"("minAvailable":1)"), "");
  EXPECT_EQ(
      told(bare, R"("maxUnavailable":1)"),
      "Warning UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: "
      "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]"
      "LabelSelectorRequirement{},}) were found to be unmanaged. As a result, the status of the "
      "PDB cannot be calculated correctly, which may result in undefined behavior. To account for "
      "these pods please set \".spec.minAvailable\" field of the PDB to an integer value.\n");
  Situation strange;
  strange.SeePods(1, 0, OwnedBy("ReplicaSet", "web"));
  EXPECT_EQ(told(strange, R"("minAvailable":"1%")"),
            "Warning CalculateExpectedPodCountFailed: Failed to calculate the number of expected "
            "pods: found no controllers for pod \"p0\"\n");
  EXPECT_EQ(
      told(bare, R"("minAvailable":1)",
           fmt::format(R"(,"status":{{"disruptedPods":{{"p0":"{0}","p1":"{1}","x":"{0}"}}}})",
                       api::PrintTimestamp(kNow - kDisruptionTimeout), api::PrintTimestamp(kNow))),
      "Warning NotDeleted of u-p0: Pod was expected by PDB d/budget to be deleted but it "
      "wasn't\n");
}

TEST(BudgetTest, ADisruptionThatNobodyFollowedIsTakenBack) {
  Objects objects;
  const auto plan = [&](std::string_view condition, std::string_view more = "") {
    static int version = 0;
    EXPECT_TRUE(objects
                    .Observe(api::KindId::kPod,
                             fmt::format(R"({{"metadata":{{"name":"p","namespace":"d","uid":"u",)"
                                         R"("resourceVersion":"{}"{}}},"status":{{"conditions":[)"
                                         R"({{"type":"DisruptionTarget","status":"True",{},)"
                                         R"("lastTransitionTime":"2001-09-09T01:46:40Z"}}]}}}})",
                                         ++version, more, condition))
                    .has_value());
    return PlanDisruptedPod(objects, objects.Find("u"), kNow + kDisruptionTimeout);
  };
  const Plan due = plan(R"("reason":"PreemptionByScheduler")");
  ASSERT_EQ(due.writes.size(), 1U);
  EXPECT_EQ(due.writes[0].body,
            R"("status":{"conditions":[{"type":"DisruptionTarget","status":"False",)"
            R"("lastTransitionTime":"2001-09-09T01:48:40Z","reason":null,"message":null}]})");
  const Plan early = PlanDisruptedPod(objects, objects.Find("u"), kNow);
  EXPECT_TRUE(early.writes.empty());
  EXPECT_EQ(early.wake, kNow + kDisruptionTimeout);
  EXPECT_TRUE(plan(R"("reason":"TerminationByKubelet")").writes.empty());
  EXPECT_TRUE(
      plan(R"("reason":"x")", R"(,"deletionTimestamp":"2001-09-09T01:46:40Z")").writes.empty());
}

// The index says what a walk says, whatever comes in whatever order.
RC_GTEST_PROP(Budgets, FindTheirPods, ()) {
  std::map<std::string, std::string> pods;  // Label by name.
  std::map<std::string, std::string> budgets;
  Objects objects;
  int version = 0;
  const auto see = [&](api::KindId kind, const std::string& name, const std::string& labels,
                       const std::string& rest) {
    RC_ASSERT(objects
                  .Observe(kind, fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"d",)"
                                             R"("uid":"{0}","resourceVersion":"{1}","labels":{2}}})"
                                             R"({3}}})",
                                             name, ++version, labels, rest))
                  .has_value());
  };
  const auto steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    const bool pod = *rc::gen::arbitrary<bool>();
    auto& known = pod ? pods : budgets;
    const std::string name = (pod ? "p" : "b") + std::to_string(*rc::gen::inRange(0, 4));
    if (*rc::gen::inRange(0, 4) == 0) {
      known.erase(name);
      objects.Remove(name);
      continue;
    }
    // "" selects all, "-" nothing.
    const std::string label = *rc::gen::element<std::string>("x", "y", "", "-");
    known[name] = label;
    const std::string labels = label.empty() ? "{}" : "{\"l\":\"" + label + "\"}";
    if (pod) {
      see(api::KindId::kPod, name, labels, "");
    } else {
      // Its own labels change as well, which moves it in other indexes.
      const std::string selector =
          label == "-" ? "{}" : "{\"selector\":{\"matchLabels\":" + labels + "}}";
      see(api::KindId::kPodDisruptionBudget, name, *rc::gen::element<std::string>("{}", labels),
          ",\"spec\":" + selector);
    }
  }
  for (const auto& [budget, wanted] : budgets) {
    std::set<std::string> expected;
    for (const auto& [pod, label] : pods) {
      if (wanted != "-" && (wanted.empty() || wanted == label)) expected.insert(pod);
    }
    std::set<std::string> found;
    for (const Slot slot : objects.SelectedBy(objects.Find(budget))) {
      found.insert(objects.head(slot).name);
    }
    RC_ASSERT(found == expected);
  }
}

}  // namespace
}  // namespace berth::controllers
