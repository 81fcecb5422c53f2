// Goal: checks that a workload is to pass are asked for, admit it once all are Ready, and end its try
// in time or for good. Method: the test plays API server and watch, and looks at each request.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "control/test_rig.h"
#include "control/workloads_fixture.h"

namespace berth::control {
namespace {

// A queue whose checks are missing, or done by nobody, gives no quota, and says so; neither did it
// reserve any that would never be admitted.
TEST_F(WorkloadsTest, NobodyGetsQuotaWhereChecksAreMissingOrDoneByNobody) {
  rig_.Event("clusterqueues", "MODIFIED", CheckedQueueJson(110));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111));
  const env::SendRequest told = TakeStatus("a");
  EXPECT_NE(BodyOf(told).find("ClusterQueue cq is inactive"), std::string_view::npos)
      << BodyOf(told);
  rig_.Answer(told, 200, WorkloadJson("a", 112, MembersOf(told)));
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 112, MembersOf(told)));
  rig_.Event("admissionchecks", "ADDED", CheckJson(113, "False"));
  ExpectNothing("a");
  rig_.Event("admissionchecks", "MODIFIED", CheckJson(114, "True"));
  const std::string reserves(BodyOf(TakeStatus("a")));
  EXPECT_NE(reserves.find("UnsatisfiedAdmissionChecks"), std::string::npos) << reserves;
  // It keeps what it has when the check goes; who comes then gets nothing.
  rig_.Event("admissionchecks", "DELETED", CheckJson(115, "True"));
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 116));
  const env::SendRequest waits = TakeStatus("b");
  EXPECT_NE(BodyOf(waits).find("ClusterQueue cq is inactive"), std::string_view::npos)
      << BodyOf(waits);
}

TEST_F(WorkloadsTest, ChecksArePassedInTwoSteps) {
  rig_.Event("admissionchecks", "ADDED", CheckJson(109, "True"));
  rig_.Event("clusterqueues", "MODIFIED", CheckedQueueJson(110));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111));
  const env::SendRequest reserve = TakeStatus("a");
  EXPECT_NE(BodyOf(reserve).find("UnsatisfiedAdmissionChecks"), std::string_view::npos);
  rig_.Answer(reserve, 200, WorkloadJson("a", 112, MembersOf(reserve)));
  rig_.Settle();
  const env::SendRequest asks = TakeStatus("a");
  EXPECT_EQ(MembersOf(asks), R"("admissionChecks":[{"name":"c","state":"Pending","message":"",)"
                             R"("lastTransitionTime":"2027-01-15T08:00:00Z"}])");
  rig_.Answer(asks, 200, WorkloadJson("a", 113, CheckedStatus("Pending")));
  rig_.Settle();
  ExpectNothing("a");
  EXPECT_EQ(Used(), 3000);
  // Whoever checks it says so, and what its pods get.
  rig_.Event(
      "workloads", "MODIFIED",
      WorkloadJson("a", 114, CheckedStatus("Ready", R"(,"podSetUpdates":[{"name":"main"}])")));
  const env::SendRequest admits = TakeStatus("a");
  EXPECT_NE(MembersOf(admits).find(R"("type":"Admitted","status":"True","reason":"Admitted")"),
            std::string::npos)
      << MembersOf(admits);
  EXPECT_EQ(MembersOf(admits).find("admissionChecks"), std::string::npos);
}

// A count that the server refuses would keep the quota for ever.
TEST_F(WorkloadsTest, TriesAreCountedAsFarAsTheObjectCan) {
  rig_.Event("clusterqueues", "MODIFIED", CheckedQueueJson(110));
  rig_.Event("workloads", "ADDED",
             WorkloadJson("a", 111, CheckedStatus("Retry", R"(,"retryCount":2147483647)")));
  const std::string body = MembersOf(TakeStatus("a"));
  EXPECT_NE(body.find(R"("retryCount":2147483647)"), std::string::npos) << body;
}

// K025, K103, K106 of docs/REGRESSIONS.md.
TEST_F(WorkloadsTest, ACheckThatAsksForAnotherTryEvicts) {
  rig_.Event("clusterqueues", "MODIFIED", CheckedQueueJson(110));
  rig_.Event("workloads", "ADDED",
             WorkloadJson("a", 111, CheckedStatus("Retry", R"(,"requeueAfterSeconds":60)")));
  const env::SendRequest evicts = TakeStatus("a");
  const std::string body = MembersOf(evicts);
  EXPECT_NE(body.find(R"("type":"Evicted","status":"True","reason":"AdmissionCheck")"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("admissionChecks":[{"name":"c","state":"Pending","message":)"
                      R"("Reset to Pending after eviction. Previously: Retry")"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("retryCount":1)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("requeueState":{"requeueAt":"2027-01-15T08:01:00Z"})"), std::string::npos)
      << body;
  // Its job gave the quota back; it is tried again once its time has come.
  const std::string waits =
      R"("requeueState":{"requeueAt":"2027-01-15T08:01:00Z"},"conditions":[)"
      R"({"type":"Evicted","status":"True","reason":"AdmissionCheck"},)"
      R"({"type":"Requeued","status":"False","reason":"AdmissionCheck"},)"
      R"({"type":"QuotaReserved","status":"False","reason":"PendingEvaluation"}])";
  rig_.Answer(evicts, 200, WorkloadJson("a", 112, waits));
  rig_.Settle();
  ExpectNothing("a");
  EXPECT_EQ(Used(), 0);
  rig_.Pass(Duration::Seconds(61));
  const std::string again = MembersOf(TakeStatus("a"));
  EXPECT_NE(again.find(R"("type":"Requeued","status":"True","reason":"BackoffFinished")"),
            std::string::npos)
      << again;
  EXPECT_NE(again.find(R"("requeueState":{"requeueAt":null})"), std::string::npos) << again;
}

// A time that was told before is never moved forward, and how often it was held back stays.
TEST_F(WorkloadsTest, TheLaterOfTwoTimesToTryAgainStands) {
  rig_.Event("clusterqueues", "MODIFIED", CheckedQueueJson(110));
  const std::string retry = CheckedStatus("Retry", R"(,"requeueAfterSeconds":60)");
  const auto with = [&](std::string_view at) {
    return fmt::format(R"("requeueState":{{"count":2,"requeueAt":"{}"}},{})", at, retry);
  };
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111, with("2027-01-15T09:00:00Z")));
  EXPECT_NE(
      MembersOf(TakeStatus("a")).find(R"("requeueState":{"requeueAt":"2027-01-15T09:00:00Z"})"),
      std::string::npos);
  rig_.Event("workloads", "ADDED", WorkloadJson("b", 112, with("2027-01-15T08:00:30Z")));
  EXPECT_NE(
      MembersOf(TakeStatus("b")).find(R"("requeueState":{"requeueAt":"2027-01-15T08:01:00Z"})"),
      std::string::npos);
}

// Whoever waits for a condition asks of which generation it is.
TEST_F(WorkloadsTest, ConditionsTellOfWhichGenerationTheyAre) {
  std::string json = WorkloadJson("a", 111);
  json.insert(json.find(R"("resourceVersion")"), R"("generation":3,)");
  rig_.Event("workloads", "ADDED", json);
  const std::string body = MembersOf(TakeStatus("a"));
  EXPECT_NE(body.find(R"("type":"QuotaReserved")"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("observedGeneration":3)"), std::string::npos) << body;
}

// K108 of docs/REGRESSIONS.md.
TEST_F(WorkloadsTest, ARejectedWorkloadIsDeactivatedAndComesBackAnew) {
  rig_.Event("clusterqueues", "MODIFIED", CheckedQueueJson(110));
  const std::string rejected = CheckedStatus("Rejected");
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 111, rejected));
  const env::SendRequest marks = TakeStatus("a");
  EXPECT_NE(MembersOf(marks).find(
                R"("type":"DeactivationTarget","status":"True","reason":"AdmissionCheck",)"
                R"("message":"Admission check(s): c, were rejected")"),
            std::string::npos)
      << MembersOf(marks);
  std::string marked = rejected;
  marked.insert(
      marked.find(R"("conditions":[)") + 14,
      R"({"type":"DeactivationTarget","status":"True","reason":"AdmissionCheck","message":"m"},)");
  rig_.Answer(marks, 200, WorkloadJson("a", 112, marked));
  rig_.Settle();
  const env::SendRequest deactivates = rig_.TakeOf("/workloads/a");
  EXPECT_EQ(BodyOf(deactivates),
            R"({"metadata":{"uid":"u-a","resourceVersion":"112"},"spec":{"active":false}})");
  const auto inactive = [](std::string workload) {
    return workload.insert(workload.find(R"("queueName")"), R"("active":false,)");
  };
  rig_.Answer(deactivates, 200, inactive(WorkloadJson("a", 113, marked)));
  rig_.Settle();
  const env::SendRequest evicts = TakeStatus("a");
  const std::string body = MembersOf(evicts);
  EXPECT_NE(body.find(R"("reason":"DeactivatedDueToAdmissionCheck","message":)"
                      R"("The workload is deactivated due to m")"),
            std::string::npos)
      << body;
  EXPECT_EQ(body.find("DeactivationTarget"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("requeueState":null)"), std::string::npos) << body;
  const std::string gone =
      R"("conditions":[{"type":"Requeued","status":"False","reason":"DeactivatedDueToAdmissionCheck"},)"
      R"({"type":"QuotaReserved","status":"False","reason":"PendingEvaluation"}])";
  rig_.Answer(evicts, 200, inactive(WorkloadJson("a", 114, gone)));
  rig_.Settle();
  ExpectNothing("a");
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 115, gone));
  EXPECT_NE(MembersOf(TakeStatus("a"))
                .find(R"("type":"Requeued","status":"True","reason":"Reactivated")"),
            std::string::npos);
}

// Goal: who may be admitted for so long is deactivated then, and not before. Method: a workload with
// a limit, of which it used a part before; it is made active again after its end.
TEST_F(WorkloadsTest, WhoWasAdmittedForAsLongAsItMayIsDeactivated) {
  const auto limited = [](std::string json, std::string_view more = "") {
    return json.insert(json.find(R"("queueName")"),
                       fmt::format(R"("maximumExecutionTimeSeconds":90,{})", more));
  };
  // Admitted just now, as the rig's clock has it.
  const std::string admitted = ReservedStatus() + R"(,"accumulatedPastExecutionTimeSeconds":30)";
  rig_.Event("workloads", "ADDED", limited(WorkloadJson("a", 111, admitted)));
  ExpectNothing("a");
  rig_.Pass(Duration::Seconds(59));
  ExpectNothing("a");
  rig_.Pass(Duration::Seconds(2));
  const env::SendRequest marks = TakeStatus("a");
  EXPECT_NE(
      MembersOf(marks).find(
          R"("type":"DeactivationTarget","status":"True","reason":)"
          R"("MaximumExecutionTimeExceeded","message":"exceeding the maximum execution time")"),
      std::string::npos)
      << MembersOf(marks);
  std::string marked = admitted;
  marked.insert(marked.find(R"("conditions":[)") + 14,
                R"({"type":"DeactivationTarget","status":"True","reason":)"
                R"("MaximumExecutionTimeExceeded","message":"m"},)");
  rig_.Answer(marks, 200, limited(WorkloadJson("a", 112, marked)));
  rig_.Settle();
  const env::SendRequest deactivates = rig_.TakeOf("/workloads/a");
  EXPECT_TRUE(BodyOf(deactivates).ends_with(R"("spec":{"active":false}})"));
  rig_.Answer(deactivates, 200, limited(WorkloadJson("a", 113, marked), R"("active":false,)"));
  rig_.Settle();
  EXPECT_NE(MembersOf(TakeStatus("a"))
                .find(R"("reason":"DeactivatedDueToMaximumExecutionTimeExceeded","message":)"
                      R"("The workload is deactivated due to m")"),
            std::string::npos);
  // Who let go says how long it ran; by whom its quota was given back doesn't matter.
  std::string gone = admitted;
  const std::string_view reserved = R"("status":"True","reason":"QuotaReserved")";
  gone.replace(gone.find(reserved), reserved.size(), R"("status":"False","reason":"OnHold")");
  rig_.Event("workloads", "ADDED", limited(WorkloadJson("b", 114, gone)));
  const std::string ended = MembersOf(TakeStatus("b"));
  EXPECT_NE(ended.find(R"("accumulatedPastExecutionTimeSeconds":91)"), std::string::npos) << ended;
}

// Goal: why one that waits gets nothing is told, whatever it waited for before. Method: its user
// deactivates it while it waits, and makes it active again; nothing is written twice.
TEST_F(WorkloadsTest, OneThatWaitsIsToldThatItIsDeactivated) {
  const auto inactive = [](std::string workload) {
    return workload.insert(workload.find(R"("queueName")"), R"("active":false,)");
  };
  const auto waits = [](const std::string& reason) {
    return fmt::format(
        R"("conditions":[{{"type":"QuotaReserved","status":"False","reason":"{}","message":"m"}}])",
        reason);
  };
  rig_.Event("workloads", "ADDED", inactive(WorkloadJson("a", 111, waits("WaitingForQuota"))));
  const env::SendRequest tells = TakeStatus("a");
  const std::string body = MembersOf(tells);
  EXPECT_NE(body.find(R"("type":"QuotaReserved","status":"False","reason":"Suspended","message":)"
                      R"("The workload is deactivated by its spec.active: set that to true to )"
                      R"(have it tried")"),
            std::string::npos)
      << body;
  EXPECT_EQ(body.find("Evicted"), std::string::npos) << body;
  EXPECT_EQ(body.find("Requeued"), std::string::npos) << body;
  rig_.Answer(tells, 200, inactive(WorkloadJson("a", 112, body)));
  rig_.Settle();
  ExpectNothing("a");
  // Who holds it says why.
  rig_.Event("workloads", "ADDED", inactive(WorkloadJson("b", 113, waits("OnHold"))));
  ExpectNothing("b");
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 114, body));
  EXPECT_NE(MembersOf(TakeStatus("a")).find(R"("type":"QuotaReserved","status":"True")"),
            std::string::npos);
}

// K108 of docs/REGRESSIONS.md: its user makes it active again between the two writes that end its
// try. The mark is of generation 3.
TEST_F(WorkloadsTest, WhoIsActiveAgainBeforeItIsEvictedIsNotDeactivatedAgain) {
  rig_.Event("clusterqueues", "MODIFIED", CheckedQueueJson(110));
  constexpr std::string_view kMark =
      R"({"type":"DeactivationTarget","status":"True","reason":"AdmissionCheck","message":"m",)"
      R"("observedGeneration":3})";
  const auto of_generation = [](std::string json, int generation) {
    return json.insert(json.find(R"("resourceVersion")"),
                       fmt::format(R"("generation":{},)", generation));
  };
  std::string holds = CheckedStatus("Rejected");
  holds.insert(holds.find(R"("conditions":[)") + 14, std::string(kMark) + ",");
  const std::string_view deactivates = R"("spec":{"active":false}})";
  int version = 110;
  // As it was marked, or with another change of somebody's.
  for (const int generation : {3, 4}) {
    rig_.Event("workloads", "ADDED",
               of_generation(WorkloadJson("a", ++version, holds), generation));
    EXPECT_TRUE(BodyOf(rig_.TakeOf("/workloads/a")).ends_with(deactivates)) << generation;
    rig_.Event("workloads", "DELETED", WorkloadJson("a", ++version));
  }
  // Of a mark that doesn't tell its generation nothing is known.
  std::string untold = holds;
  untold.erase(untold.find(R"(,"observedGeneration":3)"), 23);
  rig_.Event("workloads", "ADDED", of_generation(WorkloadJson("a", ++version, untold), 5));
  EXPECT_TRUE(BodyOf(rig_.TakeOf("/workloads/a")).ends_with(deactivates));
  rig_.Event("workloads", "DELETED", WorkloadJson("a", ++version));
  rig_.Event("workloads", "ADDED", of_generation(WorkloadJson("a", ++version, holds), 5));
  const env::SendRequest evicts = TakeStatus("a");
  const std::string body = MembersOf(evicts);
  EXPECT_NE(
      body.find(R"("type":"Evicted","status":"True","reason":"DeactivatedDueToAdmissionCheck")"),
      std::string::npos)
      << body;
  EXPECT_EQ(body.find("DeactivationTarget"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("name":"c","state":"Pending")"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("requeueState":null)"), std::string::npos) << body;
  const std::string gone =
      R"("conditions":[{"type":"Requeued","status":"False","reason":"DeactivatedDueToAdmissionCheck"},)"
      R"({"type":"QuotaReserved","status":"False","reason":"PendingEvaluation"}])";
  rig_.Answer(evicts, 200, of_generation(WorkloadJson("a", ++version, gone), 5));
  rig_.Settle();
  EXPECT_NE(MembersOf(TakeStatus("a"))
                .find(R"("type":"Requeued","status":"True","reason":"Reactivated")"),
            std::string::npos);
  rig_.Event("workloads", "DELETED", WorkloadJson("a", ++version));
  // One that holds nothing any more.
  const std::string pending = fmt::format(
      R"("conditions":[{}],"admissionChecks":[{{"name":"c","state":"Rejected"}}])", kMark);
  rig_.Event("workloads", "ADDED", of_generation(WorkloadJson("b", ++version, pending), 5));
  const std::string reset = MembersOf(TakeStatus("b"));
  EXPECT_EQ(reset.find("DeactivationTarget"), std::string::npos) << reset;
  EXPECT_EQ(reset.find(R"("type":"Evicted")"), std::string::npos) << reset;
  EXPECT_NE(reset.find(R"("name":"c","state":"Pending")"), std::string::npos) << reset;
}

}  // namespace
}  // namespace berth::control
