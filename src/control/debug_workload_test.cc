// Goal: /debug/why tells of a workload who has the nodes that it waits for, and of one that goes what
// its end waits for. Method: objects as a server has them, and the answer's members.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "control/debug.h"
#include "control/test_rig.h"
#include "control/workloads_fixture.h"

namespace berth::control {
namespace {

class WhyWorkloadTest : public WorkloadsTest {
 protected:
  WhyWorkloadTest() : WorkloadsTest(Joint()) {}
  static SchedulerOptions Joint() {
    SchedulerOptions options = Giving();
    options.engine.joint_placement = true;
    options.engine.second_pass_delay = {};
    return options;
  }
  std::string Why(const std::string& name) { return rig_.Get("/debug/why?workload=ns/" + name); }
  void ExpectTold(const std::string& name, std::string_view member) {
    const std::string told = Why(name);
    EXPECT_NE(told.find(member), std::string::npos) << told;
  }
};

TEST_F(WhyWorkloadTest, WhoHasItsNodesIsNamed) {
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(110, "", 90));
  // Of 9 cpu a pod of nobody's takes 1, and a workload is about to have 6.
  rig_.Event(
      "pods", "ADDED",
      PodJson(
          {.name = "alone", .uid = "u-alone", .version = 111, .node = "n1", .cpu_milli = 1'000}));
  rig_.Event("workloads", "ADDED", WorkloadJson("first", 112, "", 6));
  rig_.Event("workloads", "ADDED", WorkloadJson("second", 113));
  ExpectTold("second", R"("reason":"WaitingForNodes")");
  ExpectTold("second", R"("nodeHolders":[{"workload":"ns/first","amounts":{"cpu":"6"},"nodes":1,)"
                       R"("priority":0},{"pod":"ns/alone","amounts":{"cpu":"1"},"nodes":1,)"
                       R"("priority":0}],"nodeHoldersCount":2)");
  // It has them itself.
  EXPECT_EQ(Why("first").find("nodeHolders"), std::string::npos);
}

TEST_F(WhyWorkloadTest, ChecksThatAreMissingAreNamed) {
  std::string status = CheckedStatus("Pending");
  status.replace(status.find(R"("message":"","lastT)"), 12, R"("message":"asks finance")");
  rig_.Event("workloads", "ADDED", WorkloadJson("w", 111, status));
  ExpectTold("w", R"("checks":[{"name":"c","state":"Pending","message":"asks finance"}])");
}

TEST_F(WhyWorkloadTest, WhoseGatesHoldItIsTold) {
  constexpr std::string_view kOwner =
      R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u-job",)"
      R"("controller":true}])";
  std::string workload = WorkloadJson("w", 111, ReservedStatus());
  workload.insert(workload.find(R"("name":)"), fmt::format("{},", kOwner));
  rig_.Event("workloads", "ADDED", workload);
  rig_.Event("pods", "ADDED",
             PodJson({.name = "a",
                      .uid = "u-a",
                      .version = 120,
                      .extra_meta = fmt::format(",{}", kOwner),
                      .extra_spec = R"(,"schedulingGates":[{"name":"example.com/g"}])"}));
  ExpectTold("w", R"("podsWaiting":{"count":1,"pods":["ns/a"],"message":"Scheduling is blocked)");
}

// Where the pods of one that is admitted are, and what those without a node wait for.
TEST_F(WhyWorkloadTest, WhereItsPodsAreIsTold) {
  constexpr std::string_view kOwner =
      R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u-job",)"
      R"("controller":true}])";
  const auto pod = [&](const std::string& name, const std::string& node, int64_t cpu = 1'000,
                       int32_t priority = 0, bool of_job = true) {
    return PodJson({.name = name,
                    .uid = "u-" + name,
                    .version = 120,
                    .node = node,
                    .cpu_milli = cpu,
                    .extra_meta = of_job ? fmt::format(",{}", kOwner) : "",
                    .priority = priority});
  };
  const std::string placement = client::JsonString(
      R"({"clusterQueue":"cq","podSets":[{"name":"main","topologyAssignment":{"levels":[)"
      R"("kubernetes.io/hostname"],"slices":[{"domainCount":1,"valuesPerLevel":[{"universal":)"
      R"("n1"}],"podCounts":{"universal":3}}]}}]})");
  std::string workload = WorkloadJson("w", 111, ReservedStatus());
  workload.insert(
      workload.find(R"("name":)"),
      fmt::format(R"({},"annotations":{{"berth.dev/placement":{}}},)", kOwner, placement));
  rig_.Event("workloads", "ADDED", workload);
  ExpectTold("w", R"("places":[{"node":"n1","kept":3}],"placesCount":1)");
  rig_.Event("pods", "ADDED", pod("a", "n1"));
  rig_.Event("pods", "ADDED", pod("b", "n1"));
  ExpectTold("w", R"("places":[{"node":"n1","pods":2,"kept":1}],"placesCount":1)");
  EXPECT_EQ(Why("w").find("podsWaiting"), std::string::npos);
  EXPECT_EQ(Why("w").find("placesLost"), std::string::npos);
  // A more important pod gets the room of one that it evicted.
  rig_.Event("pods", "ADDED", pod("vip", "n1", 7'000, 9, /*of_job=*/false));
  rig_.Event("pods", "DELETED", pod("b", "n1"));
  ExpectTold("w", R"("placesLost":1)");
  rig_.Event("pods", "ADDED", pod("b2", ""));
  rig_.Event("pods", "ADDED", pod("c", ""));
  ExpectTold("w", R"("podsWaiting":{"count":1,"pods":["ns/c"],"message":"0/1 nodes are available: )"
                  R"(1 Insufficient cpu.)");
  ExpectTold("w",
             R"("nodeHolders":[{"pod":"ns/vip","amounts":{"cpu":"7"},"nodes":1,"priority":9})");
  EXPECT_EQ(Why("w").find("placesLost"), std::string::npos);
}

// Whom the queue does not take stands in no line of it, and is among those that wait for it.
TEST_F(WhyWorkloadTest, WhoWaitsInNoLineIsListed) {
  rig_.Event("namespaces", "MODIFIED", NamespaceJson(110, R"("team":"a")"));
  std::string queue = QueueJson(111);
  constexpr std::string_view kAny = R"("namespaceSelector":{})";
  queue.replace(queue.find(kAny), kAny.size(),
                R"("namespaceSelector":{"matchLabels":{"team":"b"}})");
  rig_.Event("clusterqueues", "MODIFIED", queue);
  rig_.Event("workloads", "ADDED", WorkloadJson("w", 112));
  const std::string told = rig_.Get("/debug/queues");
  EXPECT_NE(told.find(R"("waitingCount":1,"waiting":[{"workload":"ns/w","priority":0,)"),
            std::string::npos)
      << told;
  EXPECT_NE(told.find("namespace doesn't match ClusterQueue selector"), std::string::npos) << told;
}

// Its quota comes back when the Job's pods are gone: of one without a Job nobody knows that.
TEST_F(WhyWorkloadTest, WhoIsEvictedAndHasNoJobIsToldWhatHoldsItsQuota) {
  const std::string evicted = ReservedStatus().insert(
      ReservedStatus().rfind(']'),
      R"(,{"type":"Evicted","status":"True","reason":"ByHand","message":"m",)"
      R"("lastTransitionTime":"2027-01-15T08:00:00Z"})");
  rig_.Event("workloads", "ADDED", WorkloadJson("w", 112, evicted));
  ExpectTold("w", "no Job owns it");
  std::string owned = WorkloadJson("o", 113, evicted);
  owned.insert(owned.find(R"("name":)"),
               R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j",)"
               R"("uid":"u-job","controller":true}],)");
  rig_.Event("workloads", "ADDED", owned);
  EXPECT_EQ(Why("o").find("no Job owns it"), std::string::npos) << Why("o");
}

// One whose Job was orphaned: it has no owner any more, and its label tells whose it was.
TEST_F(WhyWorkloadTest, WhatItsEndWaitsForIsTold) {
  const auto with = [](std::string json, std::string_view meta) {
    return json.insert(json.find(R"("name":)"), std::string(meta) + ",");
  };
  constexpr std::string_view kLeft = R"("labels":{"kueue.x-k8s.io/job-uid":"u-job"})";
  rig_.Event("workloads", "ADDED", with(WorkloadJson("a", 111, ReservedStatus()), kLeft));
  ExpectTold("a", R"("jobGone":true,"podsLeft":0)");
  EXPECT_EQ(Why("a").find("deletedAt"), std::string::npos);
  rig_.Event("workloads", "ADDED",
             with(WorkloadJson("b", 112, ReservedStatus()),
                  R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j",)"
                  R"("uid":"u-job","controller":true}],"deletionTimestamp":"2027-01-15T08:00:00Z",)"
                  R"("finalizers":["kueue.x-k8s.io/resource-in-use","x/y"])"));
  ExpectTold("b", R"("stage":"deleting")");
  ExpectTold("b", R"("deletedAt":"2027-01-15T08:00:00Z","finalizers":)"
                  R"(["kueue.x-k8s.io/resource-in-use","x/y"],"podsLeft":0)");
  EXPECT_EQ(Why("b").find("jobGone"), std::string::npos);
  // Its Job's pods that are not over keep it.
  for (const std::string_view phase : {"Running", "Succeeded"}) {
    const std::string name = fmt::format("p-{}", phase);
    std::string pod = PodJson(
        {.name = name,
         .uid = name,
         .version = 113,
         .node = "n1",
         .extra_meta = R"(,"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j",)"
                       R"("uid":"u-job","controller":true}])"});
    pod.replace(pod.find("Pending"), 7, phase);
    rig_.Event("pods", "ADDED", pod);
  }
  ExpectTold("b", R"("podsLeft":1)");
  ExpectTold("a", R"("podsLeft":1)");
}

}  // namespace
}  // namespace berth::control
