#include "cli/workload_text.h"

#include <gtest/gtest.h>

#include <string>

// Goal: why a workload waits for quota is told in full, and in the order in which it matters.
// Method: answers of a scheduler, and what becomes of them.
namespace berth::cli {
namespace {

TEST(WorkloadText, WhoWaitsIsToldWhichLevelRefusesAndWhoHoldsIt) {
  const Result<std::string> text = WhyWorkloadText(
      200, R"({"workload":"team/b","stage":"pending","active":true,"localQueue":"lq",
      "clusterQueue":"cq","priority":3,"since":"2026-01-01T00:00:00Z","position":2,"waitingCount":7,
      "reason":"WaitingForQuota","message":"couldn't assign flavors","lacks":[{"podSet":"main",
      "flavor":"spot","resource":"cpu","more":"2","level":"all","levelKind":"Cohort","has":"9",
      "used":"8","left":"1","holdersCount":3,"holders":[
        {"workload":"team/a","amount":"5","priority":1,"leaves":true},
        {"workload":"other/x","amount":"2","priority":9,"leaves":false}]}],
      "leaving":[{"workload":"team/a","priority":1,"told":true},
                 {"workload":"team/c","priority":0,"told":false}]})");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text,
            "workload team/b: pending, number 2 of 7 that wait in ClusterQueue cq through "
            "LocalQueue lq, priority 3, since 2026-01-01T00:00:00Z\n"
            "  couldn't assign flavors\n"
            "  2 cpu of flavor spot more is needed: Cohort all has 9, of which 8 are used\n"
            "    5 by workload team/a, priority 1, which leaves\n"
            "    2 by workload other/x, priority 9\n"
            "    ... by 3 workloads altogether\n"
            "  workload team/a, priority 1, leaves for it\n"
            "  workload team/c, priority 0, is to leave for it\n");
}

TEST(WorkloadText, WhoHasQuotaIsToldWhatItHas) {
  const Result<std::string> text = WhyWorkloadText(
      200, R"({"workload":"team/a","stage":"quotaReserved","active":false,"localQueue":"lq",
      "clusterQueue":"cq","priority":0,"since":"2026-01-01T00:00:00Z","evictedFor":"team/b",
      "sparedUntil":"2026-01-01T00:00:10Z",
      "holds":[{"podSet":"main","flavor":"spot","count":3,"amounts":{"cpu":"3","memory":"6Gi"}}]})");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text,
            "workload team/a: quotaReserved in ClusterQueue cq through LocalQueue lq, priority 0, "
            "since 2026-01-01T00:00:00Z\n"
            "  its spec.active is false: it wants no quota\n"
            "  3 pods of main have 3 cpu, 6Gi memory of flavor spot\n"
            "  it is evicted for workload team/b\n"
            "  its eviction was refused by the server: others are evicted instead where that "
            "helps, and it is tried again at 2026-01-01T00:00:10Z\n"
            "  it is not admitted yet: see status.admissionChecks, which are not all Ready\n");
}

TEST(WorkloadText, WhatTheServerRefusedIsTold) {
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"t/a","stage":"pending","active":true,
      "priority":0,"since":"s","localQueue":"lq","clusterQueue":"cq",
      "refused":{"what":"its admission","code":403,"message":"no","again":"then"}})"),
            "workload t/a: pending in ClusterQueue cq through LocalQueue lq, priority 0, since s\n"
            "  its admission was refused by the API server (403): no; tried again at then\n");
}

TEST(WorkloadText, WhatIsWrongWithItsQueueIsTold) {
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"t/a","stage":"admitted","active":true,
      "priority":0,"since":"s","localQueue":"lq","clusterQueue":"cq","notes":["one","two"]})"),
            "workload t/a: admitted in ClusterQueue cq through LocalQueue lq, priority 0, since s\n"
            "  one\n"
            "  two\n");
}

TEST(WorkloadText, WhatItsObjectsSayOfItsEndIsTold) {
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"t/a","stage":"admitted","active":true,
      "priority":0,"since":"s","localQueue":"lq","clusterQueue":"cq","clusterQueueMissing":true,
      "reclaimable":2})"),
            "workload t/a: admitted in ClusterQueue cq through LocalQueue lq, priority 0, since s\n"
            "  ClusterQueue cq, of which it was admitted, doesn't exist: its quota counts nowhere; "
            "create the queue, or set spec.active of the workload to false and to true again\n"
            "  2 of its pods have nothing to do any more, and their quota is free\n");
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"t/a","stage":"finished","priority":0,"since":"s",
      "finished":{"reason":"Said","message":"by hand"}})"),
            "workload t/a: finished, priority 0, since s\n"
            "  it is finished: Said: by hand\n"
            "  its Job is held while it is there: delete the workload to have another made\n");
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"t/a","stage":"finished","priority":0,"since":"s",
      "jobGone":true,"podsLeft":0,"finished":{"reason":"OwnerNotFound","message":"m"}})"),
            "workload t/a: finished, priority 0, since s\n"
            "  its Job is gone\n"
            "  it is finished: OwnerNotFound: m\n");
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"t/a","stage":"quotaReserved","priority":0,
      "since":"s","notAdmitted":{"reason":"Pending","message":"topology racks is missing"}})"),
            "workload t/a: quotaReserved, priority 0, since s\n"
            "  it is not admitted yet: Pending: topology racks is missing\n");
}

TEST(WorkloadText, WhoWasEvictedIsToldWhyAndForWhom) {
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"team/a","stage":"pending","priority":0,
      "since":"s","evicted":{"reason":"Preempted","message":"m","at":"t","for":"team/b"}})"),
            "workload team/a: pending, priority 0, since s\n"
            "  it was evicted for workload team/b at t: Preempted: m\n");
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"team/a","stage":"evicted","priority":0,
      "since":"s","evicted":{"reason":"ClusterQueueStopped","message":"m"},"holds":[{"podSet":"p",
      "flavor":"f","flavorMissing":true,"count":1,"amounts":{"cpu":"1"}}]})"),
            "workload team/a: evicted, priority 0, since s\n"
            "  it was evicted: ClusterQueueStopped: m\n"
            "  1 pods of p have 1 cpu of flavor f, a ResourceFlavor that doesn't exist any more\n");
}

TEST(WorkloadText, WhoseEndIsDueIsToldForWhatItWaits) {
  const auto text = [](const std::string& members) {
    return *WhyWorkloadText(
        200, R"({"workload":"ns/w","localQueue":"lq","clusterQueue":"cq","priority":0,)"
             R"("since":"2026-11-01T00:00:00Z",)" +
                 members + "}");
  };
  const std::string in =
      " in ClusterQueue cq through LocalQueue lq, priority 0, since "
      "2026-11-01T00:00:00Z\n";
  EXPECT_EQ(text(R"("stage":"deleting","active":false,"deletedAt":"2026-11-02T00:00:00Z",)"
                 R"("finalizers":["x/y","kueue.x-k8s.io/resource-in-use"],"podsLeft":2)"),
            "workload ns/w: deleting" + in +
                "  it is being deleted since 2026-11-02T00:00:00Z\n"
                "  it waits for who takes x/y off its finalizers\n"
                "  it waits for its Job to be suspended with the template that it came with, or to "
                "end, and for its pods, of which 2 are left: berth controllers see to it\n");
  EXPECT_EQ(text(R"("stage":"admitted","active":true,"jobGone":true,"podsLeft":1)"),
            "workload ns/w: admitted" + in +
                "  its Job is gone: what it has is given back when none of the Job's pods runs; 1 "
                "is left\n");
  EXPECT_EQ(text(R"("stage":"finished","active":true,"jobGone":true,"podsLeft":0)"),
            "workload ns/w: finished" + in + "  its Job is gone\n");
}

TEST(WorkloadText, WhoHasItsNodesIsNamed) {
  EXPECT_EQ(
      *WhyWorkloadText(200, R"({"workload":"team/a","stage":"pending","priority":0,"since":"s",
      "message":"m","nodeHolders":[{"workload":"team/b","amounts":{"cpu":"3","memory":"1Gi"},
      "nodes":2,"priority":5,"leaves":true},{"pod":"team/p","amounts":{"cpu":"1"},"nodes":1,
      "priority":0,"promised":true}],"nodeHoldersCount":7})"),
      "workload team/a: pending, priority 0, since s\n"
      "  m\n"
      "  nodes that lack room for its pods:\n"
      "    3 cpu, 1Gi memory on 2 node(s) by workload team/b, priority 5, which leaves\n"
      "    1 cpu on 1 node(s) promised to pod team/p, priority 0\n"
      "    ... by 7 altogether\n");
  EXPECT_EQ(
      *WhyWorkloadText(200, R"({"workload":"team/a","stage":"pending","priority":0,"since":"s",
      "lacks":[{"more":"1","resource":"cpu","flavor":"f","level":"q","levelKind":"ClusterQueue",
      "has":"9","used":"8","holders":[{"amount":"8","workload":"team/b","priority":1,
      "promised":true}],"holdersCount":1}]})"),
      "workload team/a: pending, priority 0, since s\n"
      "  1 cpu of flavor f more is needed: ClusterQueue q has 9, of which 8 are used\n"
      "    8 promised to workload team/b, priority 1\n");
}

TEST(WorkloadText, WhereItsPodsAreIsTold) {
  EXPECT_EQ(
      *WhyWorkloadText(200, R"({"workload":"team/a","stage":"admitted","priority":0,"since":"s",
      "places":[{"node":"n1","pods":2,"leaving":1},{"node":"n2","pods":1,"kept":3},
      {"node":"n3","kept":1}],"placesCount":5,"podsWaiting":{"count":1,"pods":["team/p"],
      "promised":"n9","leaving":1,"message":"0/1 nodes","nodeHolders":[{"pod":"team/v","amounts":{"cpu":"7"},
      "nodes":1,"priority":9}],"nodeHoldersCount":1},"placesLost":2})"),
      "workload team/a: admitted, priority 0, since s\n"
      "  on 5 node(s): n1 2 pods, of which 1 leave(s), n2 1 pod and 3 kept for pods to come, n3 1 "
      "kept for pods to come, and 2 more\n"
      "  1 of its pods wait(s) for a node: team/p\n"
      "    promised n9, once who is there has left\n"
      "    0/1 nodes\n"
      "  nodes that lack room for them:\n"
      "    7 cpu on 1 node(s) by pod team/v, priority 9\n"
      "  2 of its places others have, and the pods that had them are not there again yet\n");
}

TEST(WorkloadText, NobodyIsSaidToLeaveWhereNobodyIs) {
  EXPECT_EQ(
      *WhyWorkloadText(200, R"({"workload":"team/a","stage":"admitted","priority":0,"since":"s",
      "podsWaiting":{"count":1,"pods":["team/p"],"promised":"n9","leaving":0}})"),
      "workload team/a: admitted, priority 0, since s\n"
      "  1 of its pods wait(s) for a node: team/p\n"
      "    promised n9, where its room is kept for it\n");
}

TEST(WorkloadText, ChecksAreNamed) {
  EXPECT_EQ(
      *WhyWorkloadText(200, R"({"workload":"t/a","stage":"quotaReserved","priority":0,"since":"s",
      "notAdmitted":{"reason":"UnsatisfiedAdmissionChecks","message":"not all"},
      "checks":[{"name":"budget","state":"Pending","message":"asks finance"},
                {"name":"audit","state":"Rejected","message":""}]})"),
      "workload t/a: quotaReserved, priority 0, since s\n"
      "  it is not admitted yet: UnsatisfiedAdmissionChecks: not all\n"
      "  admission check budget is Pending: asks finance\n"
      "  admission check audit is Rejected\n");
}

TEST(WorkloadText, WhoIsNotTriedYetIsToldForWhatItWaits) {
  EXPECT_EQ(
      *WhyWorkloadText(200, R"({"workload":"team/a","stage":"pending","priority":0,"since":"s",
      "waitsFor":"its condition Requeued","notBefore":"2026-01-01T00:00:00Z"})"),
      "workload team/a: pending, priority 0, since s\n"
      "  it is not tried before 2026-01-01T00:00:00Z; it waits for its condition Requeued\n");
  EXPECT_EQ(*WhyWorkloadText(200, R"({"workload":"team/a","stage":"pending","priority":0,
      "since":"s","waitsFor":"its condition Requeued"})"),
            "workload team/a: pending, priority 0, since s\n"
            "  it is not tried: it waits for its condition Requeued\n");
}

TEST(WorkloadText, WhoWasTurnedAwayIsToldWhatItsConditionSays) {
  EXPECT_EQ(RefusedWorkloadText(R"({"metadata":{"namespace":"team","name":"a"},"status":{
      "conditions":[{"type":"QuotaReserved","status":"False","reason":"Misconfigured",
      "message":"too many pods"}]}})"),
            "workload team/a: Misconfigured, not known to the scheduler\n  too many pods\n");
  EXPECT_EQ(RefusedWorkloadText(R"({"metadata":{"name":"a"},"status":{}})"), "");
  EXPECT_EQ(RefusedWorkloadText("x"), "");
}

TEST(WorkloadText, ErrorsAreTold) {
  EXPECT_EQ(WhyWorkloadText(404, R"({"message":"workload \"a/b\" is not known"})").error().message,
            "workload \"a/b\" is not known (HTTP 404)");
  EXPECT_FALSE(WhyWorkloadText(200, "[]").has_value());
  EXPECT_FALSE(WhyWorkloadText(200, "x").has_value());
}

TEST(WorkloadText, NamesAndUidsAreRead) {
  EXPECT_EQ(UidOf(R"({"metadata":{"uid":"u"}})"), "u");
  EXPECT_EQ(UidOf("[]"), "");
  EXPECT_EQ(FirstNameOf(R"({"items":[{"metadata":{"name":"n"}},{}]})"), "n");
  EXPECT_EQ(FirstNameOf(R"({"items":[]})"), "");
}

}  // namespace
}  // namespace berth::cli
