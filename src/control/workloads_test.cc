// Goal: a Workload's status says what quota it has, or why it has none, written once on the version
// that was decided on. Method: the test plays API server and watch, and looks at each request.
#include "control/workloads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "api/patch.h"
#include "codec/json.h"
#include "control/debug.h"
#include "control/quota.h"
#include "control/test_rig.h"
#include "control/workloads_fixture.h"
#include "model/audit.h"

namespace berth::control {
namespace {

class JointWorkloadsTest : public WorkloadsTest {
 protected:
  JointWorkloadsTest() : WorkloadsTest(Joint()) {}
  static SchedulerOptions Joint() {
    SchedulerOptions options = Giving();
    options.engine.joint_placement = true;
    options.engine.second_pass_delay = {};
    return options;
  }
  static std::string Annotated(std::string json) {
    return json.insert(json.find(R"("name":)"),
                       fmt::format(R"("annotations":{{"berth.dev/placement":{}}},)",
                                   client::JsonString(kPlacement)));
  }
  [[nodiscard]] uint32_t FreeSlots() const {
    return rig_.scheduler.engine().state().slots().free_count();
  }
  static constexpr std::string_view kPlacement =
      R"({"clusterQueue":"cq","podSets":[{"name":"main","topologyAssignment":{"levels":["kubernetes.io/hostname"],)"
      R"("slices":[{"domainCount":1,"valuesPerLevel":[{"universal":"n1"}],"podCounts":{"universal":3}}]}}]})";
};

// Places are in the object before its quota is, which goes on the version that came of them.
TEST_F(JointWorkloadsTest, PlacesAreWrittenBeforeTheQuota) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  const env::SendRequest places = rig_.TakeOf("/workloads/a");
  EXPECT_EQ(places.request.method, env::Method::kPatch);
  EXPECT_FALSE(places.request.target.contains("/status"));
  EXPECT_EQ(BodyOf(places), fmt::format(R"({{"metadata":{{"uid":"u-a","resourceVersion":"110",)"
                                        R"("annotations":{{"berth.dev/placement":{}}}}}}})",
                                        client::JsonString(kPlacement)));
  EXPECT_EQ(FreeSlots(), 3u);
  // The watch may be first, and so may a read that is older.
  rig_.Event("workloads", "MODIFIED", Annotated(WorkloadJson("a", 111)));
  ExpectNothing("a");
  rig_.Answer(places, 200, Annotated(WorkloadJson("a", 111)));
  rig_.Settle();
  const env::SendRequest quota = TakeStatus("a");
  EXPECT_NE(BodyOf(quota).find(R"("resourceVersion":"111"},"status":{"admission":)"),
            std::string_view::npos)
      << BodyOf(quota);
  rig_.Answer(quota, 200, Annotated(WorkloadJson("a", 112, ReservedStatus())));
  rig_.Settle();
  ExpectNothing("a");
  EXPECT_EQ(Used(), 3000);
  EXPECT_EQ(FreeSlots(), 3u);
}

// Goal: who can't be given its quota, since a webhook refuses that, is told so wherever one looks.
TEST_F(JointWorkloadsTest, ARefusedAdmissionIsTold) {
  constexpr std::string_view kNo =
      R"({"kind":"Status","code":403,"reason":"Forbidden","message":"webhook \"w\" says no"})";
  constexpr std::string_view kSaid =
      R"(its admission was refused by the API server (403): webhook \"w\" says no)";
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  rig_.Answer(rig_.TakeOf("/workloads/a"), 403, std::string(kNo));
  rig_.Settle();
  const env::SendRequest told = TakeStatus("a");
  EXPECT_TRUE(BodyOf(told).contains(fmt::format(
      R"({{"type":"QuotaReserved","status":"False","reason":"AdmissionRefused","message":"{}")",
      kSaid)))
      << BodyOf(told);
  rig_.Answer(told, 200, WorkloadJson("a", 111, MembersOf(told)));
  rig_.Settle();
  ExpectNothing("a");
  const std::string why = rig_.Get("/debug/why?workload=ns/a");
  EXPECT_TRUE(why.contains(R"("refused":{"what":"its admission","code":403,"message":"webhook )"))
      << why;
  EXPECT_TRUE(why.contains(R"("again":"2027-01-15T08:00:01Z")")) << why;
  EXPECT_FALSE(why.contains("notBefore")) << why;
  const std::string queues = rig_.Get("/debug/queues");
  EXPECT_TRUE(queues.contains(R"("waitingCount":1)")) << queues;
  EXPECT_TRUE(queues.contains(kSaid)) << queues;
  // Tried again, it is told anew only where that is news; and no more once it is given.
  rig_.Pass(Duration::Seconds(2));
  rig_.Answer(rig_.TakeOf("/workloads/a"), 403, std::string(kNo));
  rig_.Pass(Duration::Seconds(4));
  const env::SendRequest places = rig_.TakeOf("/workloads/a");
  EXPECT_FALSE(places.request.target.contains("/status"));
  rig_.Answer(places, 200, Annotated(WorkloadJson("a", 112, MembersOf(told))));
  rig_.Settle();
  rig_.Answer(TakeStatus("a"), 200, Annotated(WorkloadJson("a", 113, ReservedStatus())));
  rig_.Settle();
  EXPECT_FALSE(rig_.Get("/debug/why?workload=ns/a").contains("refused"));
}

// What was decided on is another: it is decided anew, on the version that says so.
TEST_F(JointWorkloadsTest, AChangeBetweenTheTwoWritesWithdrawsBoth) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  const env::SendRequest places = rig_.TakeOf("/workloads/a");
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 111, "", 2));
  EXPECT_EQ(Used(), 2000);
  rig_.Answer(places, 409, "{}");
  rig_.Settle();
  EXPECT_EQ(FreeSlots(), 2u);
}

// After a restart the places are those that the object tells.
TEST_F(JointWorkloadsTest, PlacesAreFoundAgain) {
  rig_.Event("workloads", "ADDED", Annotated(WorkloadJson("a", 110, ReservedStatus())));
  EXPECT_EQ(FreeSlots(), 3u);
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 111, ReservedStatus()));
  EXPECT_EQ(FreeSlots(), 3u) << "without any it has none";
  rig_.Event("workloads", "DELETED", Annotated(WorkloadJson("a", 112, ReservedStatus())));
  EXPECT_EQ(FreeSlots(), 0u);
}

TEST_F(WorkloadsTest, QuotaIsReservedAndAdmittedInOneWrite) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  const env::SendRequest write = TakeStatus("a");
  EXPECT_EQ(write.request.method, env::Method::kPatch);
  EXPECT_EQ(
      BodyOf(write),
      R"({"metadata":{"uid":"u-a","resourceVersion":"110"},"status":{"admission":{"clusterQueue":"cq","podSetAssignments":[)"
      R"({"name":"main","flavors":{"cpu":"spot","memory":"spot"},"resourceUsage":{"cpu":"3","memory":"600Mi"},"count":3}]},)"
      R"("conditions":[{"type":"QuotaReserved","status":"True","reason":"QuotaReserved","message":"Quota reserved in ClusterQueue cq",)"
      R"("lastTransitionTime":"2027-01-15T08:00:00Z"},{"type":"Admitted","status":"True","reason":"Admitted",)"
      R"("message":"The workload is admitted","lastTransitionTime":"2027-01-15T08:00:00Z"}]}})");
  EXPECT_EQ(Used(), 3000);
  rig_.Answer(write, 200, WorkloadJson("a", 111, ReservedStatus()));
  rig_.Settle();
  ExpectNothing("a");
  EXPECT_EQ(Used(), 3000);
  // An event of before the answer tells nothing new.
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 111, ReservedStatus()));
  ExpectNothing("a");
  rig_.Event("workloads", "DELETED", WorkloadJson("a", 112, ReservedStatus()));
  EXPECT_EQ(Used(), 0);
}

TEST_F(WorkloadsTest, WhyOneWaitsIsTold) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, ReservedStatus(8), 8));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 111));
  const env::SendRequest write = TakeStatus("b");
  EXPECT_EQ(
      BodyOf(write),
      R"({"metadata":{"uid":"u-b","resourceVersion":"111"},"status":{"conditions":[{"type":"QuotaReserved","status":"False",)"
      R"("reason":"WaitingForQuota","message":"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor spot, 2 more needed",)"
      R"("lastTransitionTime":"2027-01-15T08:00:00Z"},{"type":"Admitted","status":"False","reason":"NoReservation",)"
      R"("message":"The workload has no reservation","lastTransitionTime":"2027-01-15T08:00:00Z"}]}})");
  // It is told on what the answer says, and is not told the same again.
  rig_.Answer(
      write, 200,
      WorkloadJson(
          "b", 112,
          R"("conditions":[{"type":"QuotaReserved","status":"False","reason":"WaitingForQuota",)"
          R"("message":"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor spot, 2 more needed"}])"));
  rig_.Settle();
  rig_.Pass(Duration::Seconds(60));
  ExpectNothing("b");
  rig_.Event("workloads", "DELETED", WorkloadJson("a", 113, ReservedStatus(8), 8));
  const env::SendRequest reserved = TakeStatus("b");
  EXPECT_NE(BodyOf(reserved).find(R"("resourceVersion":"112"},"status":{"admission":)"),
            std::string_view::npos)
      << BodyOf(reserved);
}

// Amounts change all the time; that it waits for something else is told soon.
TEST_F(WorkloadsTest, AnotherReasonIsToldSooner) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, ReservedStatus(8), 8));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 111));
  const std::string told =
      R"("conditions":[{"type":"QuotaReserved","status":"False","reason":"WaitingForQuota"}])";
  rig_.Answer(TakeStatus("b"), 200, WorkloadJson("b", 112, told));
  rig_.Settle();
  ExpectNothing("b");  // In other words: not yet.
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(113, R"(,"stopPolicy":"Hold")"));
  ExpectNothing("b");
  rig_.Pass(Duration::Seconds(1));
  const env::SendRequest stopped = TakeStatus("b");
  EXPECT_NE(BodyOf(stopped).find("ClusterQueue cq is stopped"), std::string_view::npos);
  const std::string again =
      R"("conditions":[{"type":"QuotaReserved","status":"False","reason":"Inactive"}])";
  rig_.Answer(stopped, 200, WorkloadJson("b", 114, again));
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(115));
  rig_.Pass(Duration::Seconds(5));
  ExpectNothing("b");  // It goes back and forth.
  rig_.Pass(Duration::Seconds(6));
  EXPECT_NE(BodyOf(TakeStatus("b")).find("WaitingForQuota"), std::string_view::npos);
}

// A reservation waits for the answer to what was told, and goes on the version that it says.
TEST_F(WorkloadsTest, OneWriteAtATime) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, ReservedStatus(8), 8));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 111));
  const env::SendRequest told = TakeStatus("b");
  rig_.Event("workloads", "DELETED", WorkloadJson("a", 112, ReservedStatus(8), 8));
  ExpectNothing("b");
  EXPECT_EQ(Used(), 3000);
  rig_.Answer(told, 200, WorkloadJson("b", 113));
  rig_.Settle();
  EXPECT_NE(BodyOf(TakeStatus("b")).find(R"("resourceVersion":"113"},"status":{"admission":)"),
            std::string_view::npos);
}

// Whether it came true is read, and never written again before.
TEST_F(WorkloadsTest, AReservationOfUnknownFateIsRead) {
  struct Row {
    int status;
    bool came_true;
  };
  int version = 110;
  for (const Row row : {Row{500, true}, Row{500, false}, Row{409, true}, Row{409, false}}) {
    SCOPED_TRACE(fmt::format("{} {}", row.status, row.came_true));
    rig_.Event("workloads", "ADDED", WorkloadJson("a", ++version));
    rig_.Answer(TakeStatus("a"), row.status, "{}");
    rig_.Settle();
    EXPECT_EQ(Used(), 3000);
    const env::SendRequest read = rig_.TakeOf("/workloads/a");
    EXPECT_EQ(read.request.method, env::Method::kGet);
    ExpectNothing("a");
    rig_.Answer(read, 500, "{}");
    rig_.Settle();
    ExpectNothing("a");
    rig_.Pass(Duration::Seconds(2));
    rig_.Answer(rig_.TakeOf("/workloads/a"), 200,
                WorkloadJson("a", ++version, row.came_true ? ReservedStatus() : ""));
    rig_.Settle();
    EXPECT_EQ(Used(), 3000);
    const env::SendRequest again = TakeStatus("a");
    EXPECT_EQ(again.call.value != 0, !row.came_true);
    if (!row.came_true) {
      EXPECT_NE(BodyOf(again).find(fmt::format(R"("resourceVersion":"{}")", version)),
                std::string_view::npos);
      rig_.Answer(again, 200, WorkloadJson("a", ++version, ReservedStatus()));
    }
    rig_.Event("workloads", "DELETED", WorkloadJson("a", ++version));
    EXPECT_EQ(Used(), 0);
  }
}

// A webhook that is away answers so for minutes.
TEST_F(WorkloadsTest, AWriteThatFailsAgainAndAgainIsTriedLessAndLess) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  int writes = 0;
  for (int second = 0; second < 60; ++second) {
    for (env::SendRequest write = TakeStatus("a"); write.call.value != 0 && writes < 100;
         write = TakeStatus("a")) {
      ++writes;
      rig_.Answer(write, 500, "{}");
      rig_.Settle();
      rig_.Answer(rig_.TakeOf("/workloads/a"), 200, WorkloadJson("a", 110));
      rig_.Settle();
    }
    rig_.Pass(Duration::Seconds(1));
  }
  EXPECT_GE(writes, 5);
  EXPECT_LE(writes, 12);
  // Once it goes well again nothing is late.
  rig_.Pass(Duration::Seconds(10));
  rig_.Answer(TakeStatus("a"), 200, WorkloadJson("a", 111, ReservedStatus()));
  rig_.Settle();
  EXPECT_EQ(Used(), 3000);
}

TEST_F(WorkloadsTest, ARefusedReservationIsTriedAgainLater) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  rig_.Answer(TakeStatus("a"), 403, "{}");
  rig_.Settle();
  EXPECT_EQ(Used(), 0);
  // Meanwhile it is told.
  const env::SendRequest told = TakeStatus("a");
  EXPECT_TRUE(BodyOf(told).contains("AdmissionRefused"));
  rig_.Answer(told, 200, WorkloadJson("a", 111, MembersOf(told)));
  rig_.Settle();
  ExpectNothing("a");
  rig_.Pass(Duration::Seconds(1));
  EXPECT_TRUE(BodyOf(TakeStatus("a")).contains(R"("admission")"));
  EXPECT_EQ(Used(), 3000);
}

// Whoever wrote meanwhile is not overwritten, and what it wrote counts
// (https://github.com/kubernetes-sigs/kueue/issues/5561).
TEST_F(WorkloadsTest, WhatWasDecidedOnAnOlderVersionIsNotWritten) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  const env::SendRequest write = TakeStatus("a");
  const std::string finished = WorkloadJson(
      "a", 111, R"("conditions":[{"type":"Finished","status":"True","reason":"Succeeded"}])");
  rig_.Event("workloads", "MODIFIED", finished);
  EXPECT_EQ(Used(), 0);
  rig_.Answer(write, 409, "{}");
  rig_.Settle();
  rig_.Answer(rig_.TakeOf("/workloads/a"), 200, finished);
  rig_.Settle();
  rig_.Pass(Duration::Minutes(5));
  ExpectNothing("a");
}

// Conditions that others wrote stay, and what was told of an eviction is over.
TEST_F(WorkloadsTest, OtherConditionsStay) {
  rig_.Event(
      "workloads", "ADDED",
      WorkloadJson(
          "a", 110,
          R"("conditions":[{"type":"PodsReady","status":"False","reason":"WaitForStart","message":"m","observedGeneration":4,"lastTransitionTime":"2026-01-02T00:00:00Z"},)"
          R"({"type":"Evicted","status":"True","reason":"Preempted","message":"for another"}])"));
  const std::string body(BodyOf(TakeStatus("a")));
  EXPECT_NE(
      body.find(
          R"({"type":"PodsReady","status":"False","reason":"WaitForStart","message":"m","observedGeneration":4,"lastTransitionTime":"2026-01-02T00:00:00Z"})"),
      std::string::npos)
      << body;
  EXPECT_NE(
      body.find(
          R"({"type":"Evicted","status":"False","reason":"QuotaReserved","message":"Previously: for another")"),
      std::string::npos)
      << body;
}

TEST_F(WorkloadsTest, WhoMustPassChecksIsNotAdmittedYet) {
  rig_.Event("admissionchecks", "ADDED", CheckJson(109, "True"));
  rig_.Event("clusterqueues", "MODIFIED",
             QueueJson(110, R"(,"admissionChecksStrategy":{"admissionChecks":[{"name":"c"}]})"));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111));
  const std::string body(BodyOf(TakeStatus("a")));
  EXPECT_NE(body.find("QuotaReserved"), std::string::npos);
  EXPECT_NE(
      body.find(R"("type":"Admitted","status":"False","reason":"UnsatisfiedAdmissionChecks")"),
      std::string::npos)
      << body;
}

TEST_F(WorkloadsTest, WhoMayUseTheQueueIsAskedOfTheNamespace) {
  rig_.Event(
      "clusterqueues", "MODIFIED",
      fmt::format(
          R"({{"metadata":{{"name":"cq","uid":"u-cq","resourceVersion":"110"}},"spec":{{"namespaceSelector":{{"matchLabels":{{"team":"a"}}}},)"
          R"("resourceGroups":[{{"coveredResources":["cpu","memory"],"flavors":[{{"name":"spot","resources":[)"
          R"({{"name":"cpu","nominalQuota":9}},{{"name":"memory","nominalQuota":"36Gi"}}]}}]}}]}}}})"));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111));
  const env::SendRequest told = TakeStatus("a");
  EXPECT_NE(BodyOf(told).find("namespace doesn't match ClusterQueue selector"),
            std::string_view::npos)
      << BodyOf(told);
  rig_.Answer(told, 200, WorkloadJson("a", 112));
  rig_.Settle();
  rig_.Event("namespaces", "MODIFIED", NamespaceJson(113, R"("team":"a")"));
  EXPECT_NE(BodyOf(TakeStatus("a")).find(R"("admission")"), std::string_view::npos);
}

TEST_F(WorkloadsTest, AStoppedClusterQueueAdmitsNothing) {
  int version = 120;
  for (const std::string_view how : {"spec", "deletion"}) {
    SCOPED_TRACE(how);
    std::string queue = QueueJson(110, R"(,"stopPolicy":"Hold")");
    if (how == "deletion") {
      queue = QueueJson(112);
      queue.insert(queue.find(R"("uid")"), R"("deletionTimestamp":"2026-01-02T00:00:00Z",)");
    }
    rig_.Event("clusterqueues", "MODIFIED", queue);
    rig_.Event("workloads", "ADDED", WorkloadJson("a", ++version));
    const std::string why = how == "deletion" ? "being deleted" : "stopped";
    EXPECT_NE(BodyOf(TakeStatus("a")).find("ClusterQueue cq is " + why), std::string_view::npos);
    EXPECT_EQ(Used(), 0);
    rig_.Event("workloads", "DELETED", WorkloadJson("a", ++version));
  }
}

TEST_F(WorkloadsTest, StrictFifoIsKept) {
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(110, R"(,"queueingStrategy":"StrictFIFO")"));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111, ReservedStatus(8), 8));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 112));
  rig_.Event("workloads", "ADDED", WorkloadJson("c", 113, "", 1));
  EXPECT_NE(BodyOf(TakeStatus("c")).find("waits behind Workload ns/b"), std::string_view::npos);
}

// Pods get what they limit as requests when they are made (K056 of docs/REGRESSIONS.md).
TEST_F(WorkloadsTest, WhatIsLimitedIsCharged) {
  std::string workload = WorkloadJson("a", 110);
  workload.replace(workload.find("requests"), 8, "limits");
  rig_.Event("workloads", "ADDED", workload);
  EXPECT_EQ(Used(), 3000);
}

// K061: what a LocalQueue is told of its workloads is counted from them, whether its ClusterQueue is
// there or not.
TEST_F(WorkloadsTest, CountsOfALocalQueueOutliveItsClusterQueue) {
  const auto counts = [&] {
    const model::State& state = rig_.scheduler.engine().state();
    CountsOfQueues all = CountWorkloads(state);
    return all.of_local[state.FindKey("ns/lq")];
  };
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, ReservedStatus()));
  EXPECT_EQ(counts().reserving, 1);
  rig_.Event("clusterqueues", "DELETED", QueueJson(111));
  EXPECT_EQ(counts().reserving, 1) << "its pods run on";
  rig_.Event("workloads", "DELETED", WorkloadJson("a", 112, ReservedStatus()));
  EXPECT_EQ(counts().reserving, 0);
}

// K061, too: a status tells how much of each flavor's resource is in use, as Kueue does; once a
// second at most, and nothing while nothing changes.
TEST_F(WorkloadsTest, AStatusTellsTheQuotaInUse) {
  const auto usage = [](std::string_view cpu, std::string_view memory, std::string_view borrowed) {
    const auto one = [&](std::string_view name, std::string_view total, std::string_view more) {
      return fmt::format(R"({{"name":"{}","total":"{}"{}}})", name, total,
                         borrowed.empty() ? "" : fmt::format(R"(,"borrowed":"{}")", more));
    };
    return fmt::format(R"([{{"name":"spot","resources":[{},{}]}}])", one("cpu", cpu, borrowed),
                       one("memory", memory, "0"));
  };
  std::string of_queue = "{}";  // As written, and merged.
  std::string of_local = "{}";
  const auto answer = [&](const std::string& kind, std::string json, std::string& status) {
    const env::SendRequest write = rig_.TakeOf(kind == "localqueues" ? "/lq/status" : "/cq/status");
    if (write.call.value == 0) return false;
    const auto patch = codec::ParseJson("{" + MembersOf(write) + "}").value();
    status = codec::PrintJson(api::ApplyMergePatch(codec::ParseJson(status).value(), patch));
    json.pop_back();
    json += R"(,"status":)" + status + "}";
    rig_.Answer(write, 200, json);
    rig_.Event(kind, "MODIFIED", json);
    return true;
  };
  const auto pass = [&](const std::string& queue, int version) {
    int writes = 0;
    for (int i = 0; i < 2; ++i) {
      while (answer("clusterqueues", QueueJson(version + writes, queue), of_queue) ||
             answer("localqueues", LocalQueueJson(version + writes), of_local)) {
        ++writes;
      }
      rig_.Pass(Duration::Seconds(1));
    }
    return writes;
  };
  EXPECT_EQ(pass("", 110), 4) << "each its condition, then the rest";
  EXPECT_TRUE(of_queue.contains(R"("flavorsReservation":)" + usage("0", "0", "0"))) << of_queue;
  std::string status = ReservedStatus();
  status.replace(status.find(R"("Admitted","status":"True")"), 26,
                 R"("Admitted","status":"False")");
  const std::string queue = R"(,"cohortName":"all")";
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 120, status));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 121, ReservedStatus(8), 8));
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(122, queue));
  pass(queue, 130);
  EXPECT_TRUE(of_queue.contains(R"("flavorsReservation":)" + usage("11", "2200Mi", "2")))
      << of_queue;
  EXPECT_TRUE(of_queue.contains(R"("flavorsUsage":)" + usage("8", "1600Mi", "0"))) << of_queue;
  EXPECT_TRUE(of_local.contains(R"("flavorsReservation":)" + usage("11", "2200Mi", "")))
      << of_local;
  EXPECT_TRUE(of_local.contains(R"("flavorsUsage":)" + usage("8", "1600Mi", ""))) << of_local;
  EXPECT_EQ(pass(queue, 140), 0);
}

// A LocalQueue that is not read yet is not one that goes on after it was stopped.
TEST(WorkloadsAtStartTest, NothingIsWrittenBeforeEverythingIsListed) {
  SchedulerOptions options;
  options.quota = true;
  Rig rig(options);
  rig.Tick();
  const env::SendRequest local_queues = rig.TakeOf("/localqueues");
  const env::SendRequest workloads = rig.TakeOf("/workloads");
  while (!rig.inbox.empty()) {
    const env::SendRequest request = rig.Take();
    if (!request.stream) rig.Answer(request, 200, ListJson({}));
    rig.Settle();
  }
  rig.Answer(workloads, 200,
             ListJson({WorkloadJson("a", 110,
                                    R"("conditions":[{"type":"Requeued","status":"False",)"
                                    R"("reason":"LocalQueueStopped","message":"m"}])")}));
  rig.Settle();
  const auto takes = [&] { return std::string(BodyOf(rig.TakeOf("/workloads/a"))); };
  EXPECT_EQ(takes(), "");
  rig.Answer(local_queues, 200, ListJson({LocalQueueJson(104, R"(,"stopPolicy":"HoldAndDrain")")}));
  rig.Settle();
  EXPECT_EQ(takes().find("LocalQueueRestarted"), std::string::npos);
}

// Two of three are done, and it was given quota for one when it was tried again.
TEST_F(WorkloadsTest, WhatIsDoneIsTakenOffOnce) {
  rig_.Event("workloads", "ADDED",
             WorkloadJson("a", 110, R"("reclaimablePods":[{"name":"main","count":2}])"));
  EXPECT_EQ(Used(), 1000);
  rig_.Answer(
      TakeStatus("a"), 200,
      WorkloadJson("a", 111,
                   R"("reclaimablePods":[{"name":"main","count":2}],)" + ReservedStatus(1)));
  rig_.Settle();
  EXPECT_EQ(Used(), 1000);
}

TEST_F(WorkloadsTest, OneWithoutPodSetsIsToldSo) {
  rig_.Event(
      "workloads", "ADDED",
      fmt::format(
          R"({{"metadata":{{"name":"a","namespace":"ns","uid":"u-a","resourceVersion":"110",{}}},)"
          R"("spec":{{"queueName":"lq"}}}})",
          kMeta));
  const env::SendRequest told = TakeStatus("a");
  EXPECT_NE(BodyOf(told).find(R"("reason":"Misconfigured","message":"spec.podSets: it has none")"),
            std::string_view::npos)
      << BodyOf(told);
}

// What its owner or somebody else says since is not written over.
TEST_F(WorkloadsTest, OnlyWhoWaitsIsToldWhy) {
  const std::vector<std::string> since = {
      R"("conditions":[{"type":"QuotaReserved","status":"False","reason":"OnHold","message":"m"}])",
      R"("conditions":[{"type":"Finished","status":"True","reason":"Succeeded"}])",
      ReservedStatus(1),
  };
  int version = 200;
  rig_.Event("workloads", "ADDED", WorkloadJson("all", ++version, ReservedStatus(8), 8));
  for (const std::string& status : since) {
    SCOPED_TRACE(status);
    rig_.Event("workloads", "ADDED", WorkloadJson("b", ++version));
    rig_.Answer(TakeStatus("b"), 200, WorkloadJson("b", ++version));
    rig_.Settle();
    rig_.Event("workloads", "MODIFIED", WorkloadJson("b", ++version, status));
    rig_.Pass(Duration::Minutes(2));
    ExpectNothing("b");
    rig_.Event("workloads", "DELETED", WorkloadJson("b", ++version));
  }
}

// A reservation that was not sent yet is not for the version that came since
// (https://github.com/kubernetes-sigs/kueue/issues/5561).
TEST_F(WorkloadsTest, AnUnsentReservationIsForNoOtherVersion) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, ReservedStatus(8), 8));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 111));
  const env::SendRequest told = TakeStatus("b");
  rig_.Event("workloads", "DELETED", WorkloadJson("a", 112, ReservedStatus(8), 8));
  EXPECT_EQ(Used(), 3000) << "b gets it";
  const std::string finished = WorkloadJson(
      "b", 113, R"("conditions":[{"type":"Finished","status":"True","reason":"Succeeded"}])");
  rig_.Event("workloads", "MODIFIED", finished);
  EXPECT_EQ(Used(), 0);
  rig_.Answer(told, 409, "{}");
  rig_.Settle();
  rig_.Answer(rig_.TakeOf("/workloads/b"), 200, finished);
  rig_.Settle();
  rig_.Pass(Duration::Minutes(2));
  ExpectNothing("b");
}

// It came true and was given back before its answer; what is decided since is another attempt.
TEST_F(WorkloadsTest, AnAnswerIsOfItsOwnAttempt) {
  int version = 110;
  for (const int status : {200, 500, 409}) {
    SCOPED_TRACE(status);
    const int at = version += 10;
    rig_.Event("workloads", "ADDED", WorkloadJson("a", at));
    const env::SendRequest first = TakeStatus("a");
    rig_.Event("workloads", "MODIFIED", WorkloadJson("a", at + 1, ReservedStatus()));
    rig_.Event("workloads", "MODIFIED", WorkloadJson("a", at + 2));
    EXPECT_EQ(Used(), 3000);
    rig_.Answer(first, status, status == 200 ? WorkloadJson("a", at + 1, ReservedStatus()) : "{}");
    rig_.Settle();
    if (status != 200) rig_.Answer(rig_.TakeOf("/workloads/a"), 200, WorkloadJson("a", at + 2));
    rig_.Settle();
    EXPECT_EQ(Used(), 3000);
    const env::SendRequest second = TakeStatus("a");
    EXPECT_NE(BodyOf(second).find(fmt::format(R"("resourceVersion":"{}")", at + 2)),
              std::string_view::npos);
    rig_.Answer(second, 403, "{}");
    rig_.Settle();
    EXPECT_EQ(Used(), 0);
    rig_.Event("workloads", "DELETED", WorkloadJson("a", at + 3));
  }
}

// ---- Evictions -------------------------------------------------------------------------------

std::string WithPriority(std::string workload, int priority) {
  const std::string_view at = R"("queueName":"lq")";
  return workload.replace(workload.find(at), at.size(),
                          fmt::format(R"({},"priority":{})", at, priority));
}

// What the server says of one that was reserved and is evicted.
std::string EvictedStatus(int count) {
  std::string status = ReservedStatus(count);
  status.pop_back();
  return status + R"(,{"type":"Evicted","status":"True","reason":"Preempted","message":"m"}])";
}

class EvictionsTest : public WorkloadsTest {
 protected:
  EvictionsTest() {
    rig_.Event("clusterqueues", "MODIFIED",
               QueueJson(105, R"(,"preemption":{"withinClusterQueue":"LowerPriority"})"));
    rig_.Event("workloads", "ADDED", WorkloadJson("low", 110, ReservedStatus(8), 8));
  }
  static std::string High(int version, const std::string& status = "") {
    return WithPriority(WorkloadJson("high", version, status), 5);
  }
};

TEST_F(EvictionsTest, TheVictimAndWhoWaitsForItAreTold) {
  rig_.Event("workloads", "ADDED", High(111));
  const env::SendRequest evicts = TakeStatus("low");
  const std::string message =
      "Preempted to accommodate a workload (UID: u-high, JobUID: UNKNOWN) due to prioritization in "
      "the ClusterQueue; preemptor path: /cq; preemptee path: /cq";
  EXPECT_EQ(
      BodyOf(evicts),
      R"({"metadata":{"uid":"u-low","resourceVersion":"110"},"status":{"conditions":[{"type":"QuotaReserved","status":"True",)"
      R"("reason":"QuotaReserved","message":"Quota reserved in ClusterQueue cq","lastTransitionTime":"2027-01-15T08:00:00Z"},)"
      R"({"type":"Admitted","status":"True","reason":"Admitted","message":"The workload is admitted","lastTransitionTime":"2027-01-15T08:00:00Z"},)"
      R"({"type":"Evicted","status":"True","reason":"Preempted","message":")" +
          message +
          R"(","lastTransitionTime":"2027-01-15T08:00:00Z"},{"type":"Preempted","status":"True","reason":"InClusterQueue","message":")" +
          message + R"(","lastTransitionTime":"2027-01-15T08:00:00Z"}]}})");
  const std::string waits =
      R"x("reason":"WaitingForPreemptedWorkloads","message":"couldn't assign flavors to pod set main: )x"
      R"x(insufficient unused quota for cpu in flavor spot, 2 more needed. Pending the preemption of 1 workload(s)")x";
  EXPECT_NE(BodyOf(TakeStatus("high")).find(waits), std::string_view::npos);
  EXPECT_EQ(Used(), 11000) << "what it leaves is promised";
  rig_.Answer(evicts, 200, WorkloadJson("low", 112, EvictedStatus(8), 8));
  rig_.Settle();
  rig_.Event("workloads", "MODIFIED", WorkloadJson("low", 112, EvictedStatus(8), 8));
  rig_.Pass(Duration::Minutes(1));
  ExpectNothing("low");
  rig_.Event("workloads", "MODIFIED", WorkloadJson("low", 113, "", 8));
  EXPECT_EQ(Used(), 3000);
}

// Nobody is evicted for whom nobody waits any more, however often it was tried (K089 of
// docs/REGRESSIONS.md: an eviction that fails is tried again).
TEST_F(EvictionsTest, WhetherItIsWantedIsAskedBeforeEachSending) {
  int version = 120;
  for (const int status : {409, 500, 403}) {
    for (const bool wanted : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", status, wanted));
      rig_.Event("workloads", "ADDED", High(++version));
      rig_.Answer(TakeStatus("low"), status, "{}");
      rig_.Settle();
      if (!wanted) rig_.Event("workloads", "DELETED", High(++version));
      if (status != 403) {
        const env::SendRequest read = rig_.TakeOf("/workloads/low");
        EXPECT_EQ(read.request.method, env::Method::kGet);
        rig_.Answer(read, 200, WorkloadJson("low", ++version, ReservedStatus(8), 8));
        rig_.Settle();
      } else {
        ExpectNothing("low");
        rig_.Pass(Duration::Seconds(10));
      }
      const env::SendRequest again = TakeStatus("low");
      EXPECT_EQ(again.call.value != 0, wanted);
      if (wanted) {
        rig_.Event("workloads", "DELETED", High(++version));
        rig_.Answer(again, 409, "{}");
        rig_.Settle();
        rig_.Answer(rig_.TakeOf("/workloads/low"), 200,
                    WorkloadJson("low", ++version, ReservedStatus(8), 8));
        rig_.Settle();
      }
      rig_.Pass(Duration::Minutes(1));
      ExpectNothing("low");
      EXPECT_EQ(Used(), 8000);
    }
  }
}

// A version that was not seen when it was decided does not save it, nor does it run on unseen.
TEST_F(EvictionsTest, ItIsWrittenOnTheVersionThatIsKnown) {
  rig_.Event("workloads", "ADDED", High(111));
  const env::SendRequest first = TakeStatus("low");
  rig_.Event("workloads", "MODIFIED", WorkloadJson("low", 112, ReservedStatus(8), 8));
  ExpectNothing("low");
  rig_.Answer(first, 409, "{}");
  rig_.Settle();
  rig_.Answer(rig_.TakeOf("/workloads/low"), 200, WorkloadJson("low", 112, ReservedStatus(8), 8));
  rig_.Settle();
  EXPECT_NE(BodyOf(TakeStatus("low")).find(R"("resourceVersion":"112")"), std::string_view::npos);
}

// A relist showed what came after the reservation before its answer did.
TEST_F(WorkloadsTest, ADoneReservationThatIsNotThereIsRead) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  const env::SendRequest write = TakeStatus("a");
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 112));
  rig_.Answer(write, 200, WorkloadJson("a", 111, ReservedStatus()));
  rig_.Settle();
  rig_.Answer(rig_.TakeOf("/workloads/a"), 200, WorkloadJson("a", 112));
  rig_.Settle();
  EXPECT_NE(BodyOf(TakeStatus("a")).find(R"("resourceVersion":"112"},"status":{"admission":)"),
            std::string_view::npos);
  EXPECT_EQ(Used(), 3000);
}

TEST_F(WorkloadsTest, AStoppedLocalQueueIsToldOf) {
  rig_.Event("localqueues", "MODIFIED", LocalQueueJson(110, R"(,"stopPolicy":"Hold")"));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111));
  EXPECT_NE(BodyOf(TakeStatus("a")).find("LocalQueue lq is stopped"), std::string_view::npos);
  rig_.Event("localqueues", "DELETED", LocalQueueJson(112));
  EXPECT_EQ(Used(), 0);
}

// What it has quota of is gone or going: whoever asks why is told so.
TEST_F(WorkloadsTest, WhyTellsWhatIsWrongWithItsQueue) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111, ReservedStatus()));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 112, "", 30));
  const auto why = [&](const std::string& name) {
    return rig_.Get("/debug/why?workload=ns/" + name);
  };
  EXPECT_EQ(why("a").find("notes"), std::string::npos) << why("a");
  const auto deleted = [](std::string json) {
    return json.insert(json.find(R"("resourceVersion")"),
                       R"("deletionTimestamp":"2027-01-15T08:00:00Z",)");
  };
  rig_.Event("resourceflavors", "MODIFIED", deleted(FlavorJson(113)));
  EXPECT_NE(
      why("a").find("ResourceFlavor spot is being deleted, and goes once no ClusterQueue names "
                    "it: create it anew after that, or name another"),
      std::string::npos)
      << why("a");
  rig_.Event("resourceflavors", "DELETED", deleted(FlavorJson(114)));
  for (const char* name : {"a", "b"}) {
    EXPECT_NE(why(name).find("ClusterQueue cq is not active: FlavorNotFound: ResourceFlavors that "
                             "don't exist: spot; create them"),
              std::string::npos)
        << why(name);
  }
  rig_.Event("clusterqueues", "MODIFIED", deleted(QueueJson(115)));
  for (const char* name : {"a", "b"}) {
    EXPECT_NE(
        why(name).find("ClusterQueue cq is not active: Terminating: The ClusterQueue is being "
                       "deleted; nothing more is admitted"),
        std::string::npos)
        << why(name);
  }
  const std::string queues = rig_.Get("/debug/queues");
  EXPECT_NE(queues.find(R"("active":false,"inactive":{"reason":"Terminating",)"), std::string::npos)
      << queues;
  EXPECT_NE(queues.find(R"("stopped":false,"deleting":true)"), std::string::npos) << queues;
}

// ---- What is due whatever is decided -----------------------------------------------------------

// The status of a Cohort has no conditions.
TEST_F(WorkloadsTest, CohortsInACycleAreToldByEvents) {
  const auto cohort = [](const std::string& name, int version, const std::string& parent) {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"{1}",{2}}},"spec":{{"parentName":"{3}"}}}})",
        name, version, kMeta, parent);
  };
  rig_.Event("cohorts", "ADDED", cohort("x", 111, "y"));
  rig_.Event("cohorts", "ADDED", cohort("y", 112, "x"));
  for (const std::string name : {"x", "y"}) {
    const env::SendRequest event = rig_.TakeOf("/namespaces/default/events");
    const std::string body(BodyOf(event));
    EXPECT_NE(
        body.find(R"("note":"Cohorts that are below themselves: x, y; change spec.parentName of )"
                  R"(one of them. Until then nobody gets quota of these, or of what is below.",)"
                  R"("reason":"CohortCycle")"),
        std::string::npos)
        << body;
    EXPECT_NE(body.find(fmt::format(R"("kind":"Cohort","name":"{0}","uid":"u-{0})", name)),
              std::string::npos)
        << body;
  }
  EXPECT_EQ(rig_.TakeOf("/events").call.value, 0U);
  // And in the tree, as who is below them.
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(113, R"(,"cohortName":"x")"));
  const std::string queues = rig_.Get("/debug/queues");
  size_t told = 0;
  for (size_t at = 0;
       (at = queues.find(R"("inactive":{"reason":"CohortCycle")", at)) != queues.npos; ++at) {
    ++told;
  }
  EXPECT_EQ(told, 3u) << queues;
}

TEST_F(WorkloadsTest, AQueueThatDrainsEvictsWhomItAdmitted) {
  const auto drains = [&](int version, const char* kind) {
    const std::string policy = R"(,"stopPolicy":"HoldAndDrain")";
    if (std::string_view(kind) == "clusterqueues") {
      rig_.Event(kind, "MODIFIED", QueueJson(version, policy));
    } else {
      rig_.Event(kind, "MODIFIED", LocalQueueJson(version, policy));
    }
  };
  int version = 200;
  for (const char* kind : {"clusterqueues", "localqueues"}) {
    SCOPED_TRACE(kind);
    const std::string reason =
        std::string_view(kind) == "clusterqueues" ? "ClusterQueue" : "LocalQueue";
    rig_.Event("workloads", "ADDED", WorkloadJson("a", ++version, ReservedStatus()));
    ExpectNothing("a");
    drains(++version, kind);
    const env::SendRequest evicts = TakeStatus("a");
    EXPECT_NE(
        MembersOf(evicts).find(fmt::format(
            R"("type":"Evicted","status":"True","reason":"{0}Stopped","message":"The {0} is stopped")",
            reason)),
        std::string::npos)
        << MembersOf(evicts);
    rig_.Answer(
        evicts, 200,
        WorkloadJson(
            "a", ++version,
            fmt::format(
                R"("conditions":[{{"type":"Requeued","status":"False","reason":"{}Stopped"}}])",
                reason)));
    rig_.Settle();
    ExpectNothing("a");
    rig_.Event("clusterqueues", "MODIFIED", QueueJson(++version));
    rig_.Event("localqueues", "MODIFIED", LocalQueueJson(++version));
    const env::SendRequest again = TakeStatus("a");
    EXPECT_NE(MembersOf(again).find(fmt::format(
                  R"("type":"Requeued","status":"True","reason":"{}Restarted")", reason)),
              std::string::npos)
        << MembersOf(again);
    rig_.Event("workloads", "DELETED", WorkloadJson("a", ++version));
  }
}

// What `berth queue` shows: the tree, amounts, and who waits in the order in which it is looked at.
TEST_F(WorkloadsTest, TheTreeOfQueuesIsTold) {
  const auto queues = [&] {
    const env::HttpResponse answer =
        AnswerDebug(rig_.scheduler, {.target = "/debug/queues", .headers = {}, .body = {}});
    EXPECT_EQ(answer.status, 200);
    return std::string(answer.body.view());
  };
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(110, R"(,"cohortName":"all")"));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111, ReservedStatus(8), 8));
  rig_.Event("workloads", "ADDED", WorkloadJson("late", 112));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 113));
  const std::string text = queues();
  EXPECT_NE(text.find(R"({"kind":"Cohort","name":"all","exists":false,"active":true,"quotas":[)"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          R"("name":"cq","parent":"all","exists":true,"active":true,"quotas":[{"flavor":"spot","resource":"cpu","nominal":"9","has":"9","used":"8","left":"1"})"),
      std::string::npos)
      << text;
  const size_t first = text.find(R"("workload":"ns/b","priority":0)");
  const size_t second = text.find(R"("workload":"ns/late","priority":0)");
  EXPECT_LT(first, second) << text;
  EXPECT_NE(second, std::string::npos);
  EXPECT_NE(text.find(R"("waitingCount":2)"), std::string::npos);
  EXPECT_NE(text.find("2 more needed"), std::string::npos);
}

// Who was evicted waits, too, though nobody tries it: when its queue was drained; and a flavor that
// is gone is told.
TEST_F(WorkloadsTest, WhoIsNotTriedIsToldInTheTreeOfQueues) {
  const auto get = [&](const std::string& target) {
    const env::HttpResponse answer = AnswerDebug(rig_.scheduler, {.target = target});
    EXPECT_EQ(answer.status, 200);
    return std::string(answer.body.view());
  };
  const auto evicted = [](const std::string& reason, const std::string& message) {
    return fmt::format(
        R"("conditions":[{{"type":"Evicted","status":"True","reason":"{0}","message":"{1}",)"
        R"("lastTransitionTime":"2027-01-15T07:00:00Z"}},)"
        R"({{"type":"Requeued","status":"False","reason":"{0}","message":"{1}"}}])",
        reason, message);
  };
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(110, R"(,"stopPolicy":"HoldAndDrain")"));
  rig_.Event("workloads", "ADDED",
             WorkloadJson("a", 111, evicted("ClusterQueueStopped", "The ClusterQueue is stopped")));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 112));
  const std::string text = get("/debug/queues");
  EXPECT_NE(text.find(R"("waitingCount":2,"waiting":[{"workload":"ns/b",)"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"workload":"ns/a","priority":0,"since":"2026-01-01T00:00:00Z",)"
                      R"("waitsFor":"its condition Requeued, which is False, ClusterQueueStopped: )"
                      R"(The ClusterQueue is stopped"})"),
            std::string::npos)
      << text;
  const std::string why = get("/debug/why?workload=ns/a");
  EXPECT_NE(why.find(R"("waitsFor":"its condition Requeued, which is False, ClusterQueueStopped)"),
            std::string::npos)
      << why;
  EXPECT_NE(why.find(R"("evicted":{"reason":"ClusterQueueStopped",)"
                     R"("message":"The ClusterQueue is stopped","at":"2027-01-15T07:00:00Z"})"),
            std::string::npos)
      << why;
  rig_.Event("workloads", "MODIFIED",
             WorkloadJson("a", 113,
                          evicted("Preempted",
                                  "Preempted to accommodate a workload (UID: u-b, "
                                  "JobUID: UNKNOWN) due to so")));
  EXPECT_NE(get("/debug/why?workload=ns/a").find(R"("for":"ns/b"})"), std::string::npos);
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(114));
  rig_.Event("workloads", "ADDED", WorkloadJson("c", 115, ReservedStatus()));
  EXPECT_EQ(get("/debug/queues").find("flavorMissing"), std::string::npos);
  rig_.Event("resourceflavors", "DELETED", FlavorJson(116));
  const std::string inactive = get("/debug/queues");
  EXPECT_NE(inactive.find(R"("flavor":"spot","flavorMissing":true)"), std::string::npos);
  EXPECT_NE(inactive.find(R"("name":"cq","exists":true,"active":false)"), std::string::npos)
      << inactive;
  EXPECT_NE(
      get("/debug/why?workload=ns/c").find(R"("flavor":"spot","count":3,"flavorMissing":true)"),
      std::string::npos);
}

// Which level refuses, who holds what it waits for, and what is leaving.
TEST_F(EvictionsTest, WhyTellsOfWorkloads) {
  const auto why = [&](const std::string& name) {
    const env::HttpResponse answer =
        AnswerDebug(rig_.scheduler, {.target = "/debug/why?workload=ns/" + name});
    EXPECT_EQ(answer.status, name == "none" ? 404 : 200);
    return std::string(answer.body.view());
  };
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 111));
  const std::string waits = why("b");
  EXPECT_NE(waits.find(R"("stage":"pending","active":true,"localQueue":"lq","priority":0,)"),
            std::string::npos)
      << waits;
  EXPECT_NE(waits.find(R"("position":1,"waitingCount":1)"), std::string::npos) << waits;
  EXPECT_NE(
      waits.find(
          R"("lacks":[{"flavor":"spot","resource":"cpu","more":"2","level":"cq","levelKind":"ClusterQueue","has":"9","used":"8","left":"1",)"
          R"("holders":[{"workload":"ns/low","amount":"8","priority":0,"leaves":false}],"holdersCount":1,"podSet":"main"}])"),
      std::string::npos)
      << waits;
  rig_.Event("workloads", "ADDED", High(112));
  EXPECT_NE(why("high").find(R"("leaving":[{"workload":"ns/low","priority":0,"told":false}])"),
            std::string::npos)
      << why("high");
  const std::string behind = why("b");
  EXPECT_NE(behind.find(R"({"workload":"ns/high","amount":"3","priority":5,"leaves":false,)"
                        R"("promised":true})"),
            std::string::npos)
      << behind;
  const std::string holds = why("low");
  EXPECT_NE(holds.find(R"("evictedFor":"ns/high")"), std::string::npos) << holds;
  EXPECT_NE(
      holds.find(
          R"("holds":[{"flavor":"spot","count":8,"podSet":"main","amounts":{"cpu":"8","memory":"1600Mi"}}])"),
      std::string::npos)
      << holds;
  EXPECT_NE(why("none").find("is not known to the scheduler"), std::string::npos);
}

// One that is being deleted is on its way out: nobody evicts it.
TEST_F(EvictionsTest, WhoIsBeingDeletedLeaves) {
  std::string low = WorkloadJson("low", 112, ReservedStatus(8), 8);
  low.insert(low.find(R"("uid")"), R"("deletionTimestamp":"2027-01-15T08:00:00Z",)");
  rig_.Event("workloads", "MODIFIED", low);
  rig_.Event("workloads", "ADDED", High(113));
  ExpectNothing("low");
  EXPECT_EQ(Used(), 11000) << "what it leaves is promised";
}

// Whose claims stand on a queue, and all of a workload, with whom what leaves is for.
TEST_F(EvictionsTest, TheLedgerTellsOfQuota) {
  const auto ledger = [&](const std::string& of, int status = 200) {
    const env::HttpResponse answer = AnswerDebug(rig_.scheduler, {.target = "/debug/ledger?" + of});
    EXPECT_EQ(answer.status, status);
    return std::string(answer.body.view());
  };
  rig_.Event("workloads", "ADDED", High(111));
  const std::string queue = ledger("queue=cq");
  EXPECT_NE(queue.find(R"("accounts":[{"flavor":"spot","claimList":[)"), std::string::npos)
      << queue;
  EXPECT_NE(
      queue.find(R"("workload":"ns/low","state":"releasing","for":"ns/high","count":8,"cpu":1000)"),
      std::string::npos)
      << queue;
  EXPECT_NE(queue.find(R"("workload":"ns/high","state":"reserved")"), std::string::npos) << queue;
  const std::string low = ledger("workload=ns/low");
  EXPECT_NE(low.find(R"("queue":"cq","flavor":"spot")"), std::string::npos) << low;
  EXPECT_EQ(low.find("ns/high\",\"state"), std::string::npos) << low;
  ledger("queue=none", 404);
  ledger("workload=ns/none", 404);
}

}  // namespace
}  // namespace berth::control
