// Goal: a Job with a queue name runs when, and only when, its one Workload is admitted; what it was
// given is taken back exactly, and its quota is given back when nothing of it runs any more; and no
// lost, late or repeated write leaves it between. Method: the actor against a small API server in
// the test, which is the scheduler and the kubelet, too.
#include "controllers/workloads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "controllers/sha1.h"
#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

// ---- Names -----------------------------------------------------------------------------------

// The hashes are those of FIPS 180-4's examples.
TEST(Sha1, IsSha1) {
  EXPECT_EQ(Sha1Hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha1Hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Sha1Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(Sha1Hex(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(WorkloadName, IsKueues) {
  EXPECT_EQ(WorkloadNameOf({.kind = api::KindId::kJob, .name = "j", .uid = "u-j"}), "job-j-0b8c0");
  const std::string name(260, 'a');
  EXPECT_EQ(WorkloadNameOf({.kind = api::KindId::kJob, .name = name, .uid = "u"}),
            "job-" + std::string(243, 'a') + "-ebbe3");
}

// ---- The way of a Job --------------------------------------------------------------------------

TEST_F(Workloads, AJobIsHeldUntilItsWorkloadIsAdmittedAndEndsWithIt) {
  MakeJob();
  Pass(1);
  const std::string uid = Text(kJob, "/metadata/uid");
  const std::string workload = Workload();
  EXPECT_EQ(workload, kWorkloads + "/" +
                          WorkloadNameOf({.kind = api::KindId::kJob, .name = "j", .uid = uid}));
  EXPECT_EQ(Text(workload, "/metadata/labels"), R"({"kueue.x-k8s.io/job-uid":")" + uid + "\"}");
  EXPECT_EQ(Text(workload, "/metadata/ownerReferences"),
            R"([{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":")" + uid +
                R"(","controller":true,"blockOwnerDeletion":true}])");
  EXPECT_EQ(Text(workload, "/spec"),
            R"({"podSets":[{"name":"main","count":2,"template":{"metadata":{"labels":{"app":"j"}},)"
            R"("spec":{"restartPolicy":"Never","containers":[{"name":"c","resources":{"requests":)"
            R"({"cpu":"1"}}}],"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"a",)"
            R"("operator":"Exists"}]}}}],"queueName":"q","priority":0,"active":true})");
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  EXPECT_EQ(Stands(), kHeld);
  ExpectAtRest();

  // Quota alone is not enough.
  Decide({"QuotaReserved=True"},
         R"(,"admission":{"clusterQueue":"cq","podSetAssignments":[{"name":"main"}]})");
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  ExpectAtRest();

  Admit();
  EXPECT_EQ(Stands(), kPlaced);
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  for (const std::string& pod : Paths("/pods/"))
    EXPECT_EQ(Text(pod, "/spec/nodeSelector/pool"), "a");
  EXPECT_EQ(Condition("PodsReady"), "False WaitForStart: Not all pods are ready or succeeded");
  EXPECT_EQ(Text(workload, "/status/conditions/2/observedGeneration"), "1");
  ExpectAtRest();
  ReadyPods();
  EXPECT_EQ(Condition("PodsReady"),
            "True Started: All pods reached readiness and the workload is running");
  ExpectAtRest();
  SetPods(R"("phase":"Succeeded","conditions":null)");
  Pass(5);
  EXPECT_EQ(Condition("Finished"), "True Succeeded: Reached expected number of succeeded pods");
  EXPECT_EQ(Condition("PodsReady"),
            "True Started: All pods reached readiness and the workload is running");
  EXPECT_EQ(
      Events(),
      (std::vector<std::string>{
          "CreatedWorkload: Created Workload d/" + workload.substr(kWorkloads.size() + 1),
          "FinishedWorkload: Workload d/" + workload.substr(kWorkloads.size() + 1) + " is finished",
          "Started: Admitted by ClusterQueue cq"}));
  ExpectAtRest();
}

// As upstream: PodsReady is of now, and its reason tells whether they were ready before.
TEST_F(Workloads, PodsThatGoAndComeAgainAreTold) {
  MakeJob({.spec = R"(,"completions":3)"});
  Pass(1);
  Admit();
  ReadyPods();
  constexpr std::string_view kLost =
      "False WaitForRecovery: At least one pod has failed, waiting for recovery";
  constexpr std::string_view kAgain =
      "True Recovered: All pods reached readiness and the workload is running";
  for (int times = 0; times < 2; ++times) {
    api_.Do(Method::kDelete, Paths("/pods/").front(), R"({"gracePeriodSeconds":0})");
    Pass(1);
    EXPECT_EQ(Condition("PodsReady"), kLost);
    Pass(30);  // Its Job waits before it makes another.
    EXPECT_EQ(Condition("PodsReady"), kLost);
    ReadyPods();
    EXPECT_EQ(Condition("PodsReady"), kAgain);
    ExpectAtRest();
  }
  // Whose work is done is not missed, nor is it before its Job counts it.
  const int64_t writes = Writes("/workloads/");
  Patch(Paths("/pods/").front() + "/status",
        R"({"status":{"phase":"Succeeded","conditions":null}})");
  Pass(5);
  EXPECT_EQ(Condition("PodsReady"), kAgain);
  EXPECT_EQ(Writes("/workloads/"), writes);
  // What was evicted starts anew.
  Evict();
  SetPods(R"("phase":"Failed","conditions":null)");
  Pass(1);
  EXPECT_EQ(Condition("PodsReady"), "False WaitForStart: Not all pods are ready or succeeded");
}

TEST_F(Workloads, AJobThatFailsFinishesItsWorkload) {
  MakeJob({.spec = R"(,"completions":2,"suspend":true,"backoffLimit":0)"});
  Pass(1);
  Admit();
  SetPods(R"("phase":"Failed")");
  Pass(5);
  EXPECT_EQ(Condition("Finished"), "True Failed: Job has reached the specified backoff limit");
  ExpectAtRest();
}

// Nothing is written of a Workload that is finished but that it may go, nor does its Job run again.
TEST_F(Workloads, FinishedIsFinal) {
  MakeJob();
  Pass(1);
  Decide({"Finished=True"});
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), "none");
  const std::string version = Text(Workload(), "/metadata/resourceVersion");
  for (const std::string change :
       {R"({"spec":{"parallelism":1}})", R"({"spec":{"suspend":false}})",
        R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"r"}}})"}) {
    Patch(kJob, change);
    Pass(1);
    EXPECT_EQ(Text(kJob, "/spec/suspend"), "true") << change;
  }
  EXPECT_EQ(Text(Workload(), "/metadata/resourceVersion"), version);
  Decide({"Finished=True", "Admitted=True", "QuotaReserved=True", "Evicted=True"});
  const std::string after = Text(Workload(), "/metadata/resourceVersion");
  ExpectAtRest();
  EXPECT_EQ(Text(Workload(), "/metadata/resourceVersion"), after);
}

// Where no webhook suspends it; and whoever lets it run before it is admitted.
TEST_F(Workloads, AJobThatRunsWithoutAdmissionIsSuspended) {
  MakeJob({.spec = R"(,"completions":2)"});
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Writes("POST " + kPods), 0);
  const std::string uid = Text(Workload(), "/metadata/uid");
  Patch(kJob, R"({"spec":{"suspend":false}})");
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Writes("POST " + kPods), 0);
  EXPECT_EQ(Text(Workload(), "/metadata/uid"), uid);
  ExpectAtRest();
}

// Goal: no pod is made for a Workload that was evicted, and the missing ones once it is not any more.
// Method: the write that suspends the Job is lost, one of its pods goes, and the eviction is taken
// back; nothing changes of the Job.
TEST_F(Workloads, PodsAreMadeForAsLongAsTheWorkloadIsAdmitted) {
  MakeJob();
  Pass(1);
  Admit();
  EXPECT_EQ(Writes("POST " + kPods), 2);
  api_.fault = [&](const env::HttpRequest& request) {
    const bool its = request.method == Method::kPatch && request.target == kJob;
    return its ? FakeApi::Fault::kRefuse : FakeApi::Fault::kNone;
  };
  Evict();
  api_.Do(Method::kDelete, Paths("/pods/").front());
  Pass(1);
  EXPECT_EQ(Writes("POST " + kPods), 2);
  Decide({"QuotaReserved=True", "Admitted=True", "Evicted=False"});
  api_.fault = nullptr;
  Pass(15);
  EXPECT_EQ(Stands(), kPlaced);
  EXPECT_EQ(Writes("POST " + kPods), 3);
}

TEST_F(Workloads, AJobWhoseQuotaWasTakenWithoutAWordIsSuspended) {
  MakeFlavor("any", "");
  MakeJob();
  Pass(1);
  Admit("any");
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  Decide({"Admitted=True"}, R"(,"admission":null)");
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  ExpectAtRest();
}

// What it asks for is asked for when nothing of it runs any more.
TEST_F(Workloads, AJobThatRanBeforeItHadAQueueAsksWhenItsPodsAreGone) {
  MakeJob({.labels = "", .spec = R"(,"completions":2)"});
  Pass(1);
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  for (const std::string& pod : Paths("/pods/"))
    Patch(pod, R"({"metadata":{"finalizers":["x/y"]}})");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}}})");
  Pass(1);
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  for (const std::string& pod : Paths("/pods/")) Patch(pod, R"({"metadata":{"finalizers":null}})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/queueName"), "q");
}

// A server that doesn't know Workloads has no use for them; it may come to know them.
TEST_F(Workloads, WhereNobodyKnowsWorkloadsAJobIsLeftAlone) {
  FakeApi api;
  std::swap(api, api_);
  controllers_ = Controllers(Options{});
  api_.absent = {kKueue};
  Make("/api/v1/namespaces", R"({"metadata":{"name":"d"},"spec":{"finalizers":["kubernetes"]}})");
  MakeJob({.spec = R"(,"completions":2)"});
  Pass(1);
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  api_.absent.clear();
  Pass(40);
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_NE(Workload(), "");
}

// ---- Eviction --------------------------------------------------------------------------------

// K079: quota is given back when the last pod is gone, not when it begins to go; in one write
// with what it follows from.
TEST_F(Workloads, AnEvictedJobLetsGoOfItsQuotaWhenNothingOfItRuns) {
  MakeJob();
  Pass(1);
  Admit();
  ReadyPods();
  for (const std::string& pod : Paths("/pods/"))
    Patch(pod, R"({"metadata":{"finalizers":["x/y"]}})");
  Pass(1);
  Evict();
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  EXPECT_EQ(Condition("QuotaReserved"), "True Preempted: so");
  ExpectAtRest();
  const int64_t before = Writes(Workload() + "/status");
  for (const std::string& pod : Paths("/pods/")) {
    EXPECT_EQ(Condition("QuotaReserved"), "True Preempted: so");
    Patch(pod, R"({"metadata":{"finalizers":null}})");
    Pass(1);
  }
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Writes(Workload() + "/status") - before, 1);
  EXPECT_EQ(Text(Workload(), "/status/admission"), "none");
  EXPECT_EQ(Condition("QuotaReserved"), "False PendingEvaluation: so");
  EXPECT_EQ(Condition("Admitted"), "False NoReservation: The workload has no reservation");
  EXPECT_EQ(Condition("Requeued"), "True Preempted: so");
  EXPECT_EQ(Condition("PodsReady"), "False WaitForStart: Not all pods are ready or succeeded");
  EXPECT_EQ(Condition("Evicted"), "True Preempted: so");
  ExpectAtRest();

  // Elsewhere, later.
  MakeFlavor("g", R"("pool":"b")");
  Admit("g");
  EXPECT_EQ(Stands(), R"(runs 2 {"disk":"ssd","pool":"b"} [{"key":"a","operator":"Exists"}])");
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  ExpectAtRest();
}

TEST_F(Workloads, WhatEvictedSaysWhetherItIsTriedAgainAtOnce) {
  struct Row {
    std::string reason;
    std::string requeued;
  };
  MakeJob();
  Pass(1);
  for (const Row& row :
       {Row{"Preempted", "True"}, Row{"NodeFailures", "True"}, Row{"PodsReadyTimeout", "False"},
        Row{"AdmissionCheck", "False"}, Row{"Deactivated", "False"}}) {
    Admit();
    EXPECT_EQ(Stands(), kPlaced);
    Evict(row.reason);
    Pass(1);
    EXPECT_EQ(Condition("Requeued"), fmt::format("{} {}: so", row.requeued, row.reason));
    EXPECT_EQ(Text(Workload(), "/status/admission"), "none") << row.reason;
  }
}

// Whoever runs its pods: what the Job's status counts and the pods that are seen hold its quota, both.
TEST_F(Workloads, AJobThatOthersRunHoldsItsQuotaWhileAnyOfItIsThere) {
  MakeJob({.spec = R"(,"completions":2,"suspend":true,"managedBy":"x.io/y")"});
  Patch(kJob + "/status", R"({"status":{"startTime":"2026-01-01T00:00:00Z"}})");
  Pass(1);
  Admit();
  EXPECT_EQ(Stands(), kHeld) << "its template can't change yet";
  Patch(kJob + "/status", R"({"status":{"startTime":null}})");
  Pass(1);
  EXPECT_EQ(Stands(), kPlaced);
  Make(kPods, R"({"metadata":{"name":"a","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job",)"
              R"("name":"j","controller":true,"uid":")" +
                  Text(kJob, "/metadata/uid") + R"("}]},"spec":{}})");
  Patch(kJob + "/status", R"({"status":{"active":1,"startTime":"2026-01-01T00:00:00Z"}})");
  Evict();
  const auto expect_held = [&] {
    Pass(1);
    EXPECT_EQ(Condition("QuotaReserved"), "True Preempted: so");
  };
  expect_held();
  Patch(kJob + "/status", R"({"status":{"active":0}})");
  expect_held();
  Patch(kJob + "/status", R"({"status":{"startTime":null}})");
  expect_held();
  Patch(kPods + "/a/status", R"({"status":{"phase":"Failed"}})");
  Patch(kJob + "/status", R"({"status":{"terminating":1}})");
  expect_held();
  Patch(kPods + "/a/status", R"({"status":{"phase":"Running"}})");
  Patch(kJob + "/status", R"({"status":{"terminating":0}})");
  expect_held();
  Patch(kPods + "/a/status", R"({"status":{"phase":"Failed"}})");
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Condition("QuotaReserved"), "False PendingEvaluation: so");
  ExpectAtRest();
}

// It has quota and never ran.
TEST_F(Workloads, AnEvictedWorkloadOfAJobThatNeverRanLetsGo) {
  MakeJob();
  Pass(1);
  Decide({"QuotaReserved=True", "Evicted=True"},
         R"(,"admission":{"clusterQueue":"cq","podSetAssignments":[{"name":"main"}]})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/status/admission"), "none");
  EXPECT_EQ(Condition("Admitted"), "none");
  EXPECT_EQ(Condition("PodsReady"), "none");
  EXPECT_EQ(Stands(), kHeld);
  ExpectAtRest();
}

// K111: whichever write of an eviction fails, the Job is whole again in the end.
TEST_F(Workloads, AnEvictionThatIsInterruptedAnywhereLeavesTheJobAsItWas) {
  for (const auto fault :
       {FakeApi::Fault::kRefuse, FakeApi::Fault::kLoseAnswer, FakeApi::Fault::kLoseRequest}) {
    for (int nth = 0; nth < 8; ++nth) {
      MakeJob();
      Pass(1);
      Admit();
      EXPECT_EQ(Stands(), kPlaced);
      int count = 0;
      api_.fault = [&](const env::HttpRequest& request) {
        return IsOfJob(request) && count++ == nth ? fault : FakeApi::Fault::kNone;
      };
      Evict();
      Pass(60);
      api_.fault = nullptr;
      EXPECT_EQ(Stands(), kHeld) << nth;
      EXPECT_EQ(Condition("QuotaReserved"), "False PendingEvaluation: so") << nth;
      ExpectAtRest();
      api_.Do(Method::kDelete, kJob);
      Pass(5);
      EXPECT_EQ(Paths("/workloads/").size(), 0u);
    }
  }
}

// Pods that are on their way when the eviction comes hold its quota as well.
TEST_F(Workloads, PodsThatAreBeingMadeHoldQuota) {
  MakeFlavor("any", "");
  MakeJob({.pod = ""});
  Pass(1);
  api_.fault = [&](const env::HttpRequest& request) {
    const bool its = request.method == Method::kPost && request.target == kPods;
    return its ? FakeApi::Fault::kSilence : FakeApi::Fault::kNone;
  };
  Admit("any");
  Evict();
  EXPECT_EQ(Stands(), "suspended 2 none none");
  EXPECT_EQ(Condition("QuotaReserved"), "True Preempted: so");
  api_.fault = nullptr;
  api_.HoldWatches(false);
  Pass(1);
  EXPECT_EQ(Condition("QuotaReserved"), "False PendingEvaluation: so");
  EXPECT_EQ(Paths("/pods/").size(), 0u);
}

// The watch tells of what a write did before its answer comes, if that comes at all.
TEST_F(Workloads, AnAnswerThatComesLateHoldsNothingUp) {
  bool done = false;
  api_.fault = [&](const env::HttpRequest& request) {
    if (request.target != kJob + "/status" || done) return FakeApi::Fault::kNone;
    done = true;
    Patch(request.target, std::string(request.body.view()));
    return FakeApi::Fault::kSilence;
  };
  MakeJob();
  Pass(1);
  EXPECT_TRUE(done);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  api_.HoldWatches(false);
  Pass(1);
  EXPECT_NE(Workload(), "");
  ExpectAtRest();
}

TEST_F(Workloads, AWorkloadThatIsNotSentYetIsDroppedWithItsJob) {
  api_.fault = [&](const env::HttpRequest& request) {
    const bool its = request.method == Method::kPost && request.target == kWorkloads;
    return its ? FakeApi::Fault::kThrottle : FakeApi::Fault::kNone;
  };
  MakeJob();
  Pass(1);
  api_.Do(Method::kDelete, kJob);
  Pass(1);
  api_.fault = nullptr;
  Pass(40);
  EXPECT_EQ(Writes("POST " + kWorkloads), 0);
}

// ---- Shapes ----------------------------------------------------------------------------------

TEST_F(Workloads, AWorkloadWithoutQuotaFollowsItsJob) {
  MakeJob();
  Pass(1);
  const std::string uid = Text(Workload(), "/metadata/uid");
  struct Row {
    std::string change;
    std::string at;
    std::string says;
  };
  for (const Row& row : {
           Row{R"({"spec":{"parallelism":1}})", "/podSets/0/count", "1"},
           Row{R"({"spec":{"parallelism":5}})", "/podSets/0/count", "2"},
           Row{R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"r"}}})", "/queueName", "r"},
           Row{R"({"spec":{"template":{"spec":{"nodeSelector":{"disk":"hdd"}}}}})",
               "/podSets/0/template/spec/nodeSelector", R"({"disk":"hdd"})"},
           Row{R"({"metadata":{"annotations":{"kueue.x-k8s.io/job-min-parallelism":"1"}}})",
               "/podSets/0/minCount", "1"},
           // As many as there are, and no number.
           Row{R"({"metadata":{"annotations":{"kueue.x-k8s.io/job-min-parallelism":"2"}}})",
               "/podSets/0/minCount", "none"},
           Row{R"({"metadata":{"annotations":{"kueue.x-k8s.io/job-min-parallelism":"1x"}}})",
               "/podSets/0/minCount", "none"},
       }) {
    Patch(kJob, row.change);
    Pass(1);
    EXPECT_EQ(Text(Workload(), "/spec" + row.at), row.says) << row.change;
    EXPECT_EQ(Text(Workload(), "/metadata/uid"), uid);
    ExpectAtRest();
  }
  // One that leaves its queue leaves no Workload, and is its user's again.
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}})");
  Pass(1);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  Patch(kJob, R"({"spec":{"suspend":false}})");
  Pass(1);
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  ExpectAtRest();
}

TEST_F(Workloads, AJobThatLeavesItsQueueHoldsItsQuotaWhileItsPodsAreThere) {
  MakeJob();
  Pass(1);
  Admit();
  for (const std::string& pod : Paths("/pods/"))
    Patch(pod, R"({"metadata":{"finalizers":["x/y"]}})");
  Evict();
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}})");
  Pass(1);
  EXPECT_EQ(Condition("QuotaReserved"), "True Preempted: so");
  for (const std::string& pod : Paths("/pods/")) Patch(pod, R"({"metadata":{"finalizers":null}})");
  Pass(1);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  ExpectAtRest();
}

// A Workload with quota can't change: the Job stops, and asks anew for what it wants now.
TEST_F(Workloads, AWorkloadWithQuotaIsMadeAnewForAJobOfAnotherShape) {
  MakeJob();
  Pass(1);
  Admit();
  const std::string uid = Text(Workload(), "/metadata/uid");
  for (const std::string& pod : Paths("/pods/"))
    Patch(pod, R"({"metadata":{"finalizers":["x/y"]}})");
  Pass(1);
  Patch(kJob, R"({"spec":{"parallelism":1}})");
  Pass(1);
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  EXPECT_EQ(Text(Workload(), "/metadata/uid"), uid) << "its quota went before its pods";
  for (const std::string& pod : Paths("/pods/")) Patch(pod, R"({"metadata":{"finalizers":null}})");
  Pass(1);
  EXPECT_NE(Text(Workload(), "/metadata/uid"), uid);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/count"), "1");
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/nodeSelector"), R"({"disk":"ssd"})");
  EXPECT_EQ(Stands(), R"(suspended 1 {"disk":"ssd"} [{"key":"a","operator":"Exists"}])");
  ExpectAtRest();
}

TEST_F(Workloads, AJobMadeAgainUnderItsNameHasAWorkloadOfItsOwn) {
  MakeJob();
  Pass(1);
  Admit();
  const std::string first = Workload();
  api_.HoldWatches(true);
  api_.Do(Method::kDelete, kJob);
  MakeJob({.parallelism = 1});
  api_.HoldWatches(false);
  Pass(5);
  EXPECT_NE(Workload(), first);
  EXPECT_EQ(Text(Workload(), "/metadata/labels/kueue.x-k8s.io~1job-uid"),
            Text(kJob, "/metadata/uid"));
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/count"), "1");
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  ExpectAtRest();
}

// The collector takes a Job's Workload first, and none is made in its place.
TEST_F(Workloads, AJobThatIsGoingGetsNoWorkload) {
  MakeJob();
  Pass(1);
  api_.Do(Method::kDelete, kJob, R"({"propagationPolicy":"Foreground"})");
  Pass(5);
  EXPECT_EQ(Text(kJob, "/metadata/name"), "gone");
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  EXPECT_EQ(Writes("POST " + kWorkloads), 1);
}

// A Workload under its name that isn't its own is not touched.
TEST_F(Workloads, AnObjectThatHasItsNameIsWaitedFor) {
  MakeJob({.labels = ""});
  const std::string path =
      kWorkloads + "/" +
      WorkloadNameOf({.kind = api::KindId::kJob, .name = "j", .uid = Text(kJob, "/metadata/uid")});
  Make(kWorkloads, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"podSets":[]}}}})",
                               path.substr(kWorkloads.size() + 1)));
  const std::string uid = Text(path, "/metadata/uid");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}}})");
  Pass(70);
  EXPECT_EQ(Text(path, "/metadata/uid"), uid);
  EXPECT_EQ(Writes("/workloads"), 1);
  api_.Do(Method::kDelete, path);
  Pass(31);
  EXPECT_EQ(Text(path, "/spec/queueName"), "q");
}

// One that it merely owns is somebody else's.
TEST_F(Workloads, OfSeveralWorkloadsOneIsLeft) {
  MakeJob();
  Pass(1);
  const std::string own = Workload();
  for (const bool controls : {true, false}) {
    api::Json copy = *api_.Find(own);
    api::Json owners = copy.at("metadata").at("ownerReferences");
    owners.as_array().at(0).as_object()["controller"] = controls;
    copy.as_object()["metadata"] = {{"name", controls ? "a" : "b"}, {"ownerReferences", owners}};
    Make(kWorkloads, codec::PrintJson(copy));
    Pass(1);
  }
  Patch(kJob, R"({"metadata":{"annotations":{"x":"y"}}})");
  Pass(1);
  EXPECT_EQ(Paths("/workloads/"), (std::vector<std::string>{kWorkloads + "/b", own}));
  ExpectAtRest();
}

TEST_F(Workloads, AWorkloadThatSomebodyTookAwayComesBackForAJobThatIsHeld) {
  MakeJob();
  Pass(1);
  for (const bool admitted : {false, true}) {
    if (admitted) Admit();
    const std::string uid = Text(Workload(), "/metadata/uid");
    api_.Do(Method::kDelete, Workload());
    Pass(1);
    EXPECT_NE(Text(Workload(), "/metadata/uid"), uid);
    EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
    EXPECT_EQ(Paths("/pods/").size(), 0u);
    ExpectAtRest();
  }
}

// One that waits for others before it goes gives the Job its template back.
TEST_F(Workloads, AWorkloadThatIsGoingHoldsItsJob) {
  MakeJob();
  Pass(1);
  Admit();
  Patch(Workload(), R"({"metadata":{"finalizers":["x/y"]}})");
  const std::string uid = Text(Workload(), "/metadata/uid");
  api_.Do(Method::kDelete, Workload());
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  ExpectAtRest();
  Patch(Workload(), R"({"metadata":{"finalizers":null}})");
  Pass(1);
  EXPECT_NE(Text(Workload(), "/metadata/uid"), uid);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/nodeSelector"), R"({"disk":"ssd"})");
}

// ---- Start -----------------------------------------------------------------------------------

TEST_F(Workloads, PodsThatAskForOtherNodesThanTheirFlavorHasFailToStart) {
  MakeFlavor("g", R"("disk":"hdd")");
  MakeJob();
  Pass(1);
  Admit("g");
  EXPECT_EQ(
      Condition("Finished"),
      "True FailedToStart: ResourceFlavor g is of nodes with disk=hdd, its pods ask for disk=ssd");
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  ExpectAtRest();
}

TEST_F(Workloads, AFlavorThatIsNotThereIsWaitedFor) {
  MakeJob();
  Pass(1);
  Admit("late");
  EXPECT_EQ(Stands(), kHeld);
  ExpectAtRest();
  MakeFlavor("late", R"("disk":"ssd")", R"({"key":"a","operator":"Exists"})");
  Pass(1);
  EXPECT_EQ(Stands(), R"(runs 2 {"disk":"ssd"} [{"key":"a","operator":"Exists"}])");
}

TEST_F(Workloads, AFlavorOfAllNodesChangesNothingOfTheTemplate) {
  MakeFlavor("any", "");
  MakeJob({.pod = ""});
  Pass(1);
  Admit("any");
  EXPECT_EQ(Stands(), "runs 2 none none");
  Evict();
  Pass(1);
  EXPECT_EQ(Stands(), "suspended 2 none none");
  // What was not there before goes altogether.
  Admit();
  EXPECT_EQ(Stands(),
            R"(runs 2 {"pool":"a"} [{"key":"t","operator":"Exists","effect":"NoSchedule"}])");
  Evict();
  Pass(1);
  EXPECT_EQ(Stands(), "suspended 2 none none");
  ExpectAtRest();
}

// ---- Priority --------------------------------------------------------------------------------
// K113: a class whose value changes changes what names it, with quota or without.
TEST_F(Workloads, ItsPriorityIsThatOfItsClass) {
  const std::string classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
  const std::string own = kKueue + "/workloadpriorityclasses";
  MakeJob({.labels = kQueued + R"(,"kueue.x-k8s.io/priority-class":"urgent")",
           .pod = R"(,"priorityClassName":"high")"});
  Pass(1);
  EXPECT_EQ(Paths("/workloads/").size(), 0u) << "its class isn't there";
  EXPECT_EQ(Events(), std::vector<std::string>{
                          "FailedCreate: Error creating: WorkloadPriorityClass urgent doesn't "
                          "exist, which its label kueue.x-k8s.io/priority-class names: create it, "
                          "or name another"});
  Make(own, R"({"metadata":{"name":"urgent"},"value":7})");
  Pass(1);
  const auto says = [&] {
    return Text(Workload(), "/spec/priorityClassRef/kind") + " " +
           Text(Workload(), "/spec/priorityClassRef/name") + " " +
           Text(Workload(), "/spec/priority");
  };
  EXPECT_EQ(says(), "WorkloadPriorityClass urgent 7");
  Patch(own + "/urgent", R"({"value":8})");
  Pass(1);
  EXPECT_EQ(says(), "WorkloadPriorityClass urgent 8");
  // The pods' own.
  Make(classes, R"({"metadata":{"name":"high"},"value":100})");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":null}}})");
  Pass(1);
  EXPECT_EQ(says(), "PriorityClass high 100");
  // With quota the class stays, and its value follows.
  Admit();
  Patch(classes + "/high", R"({"value":101})");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"urgent"}}})");
  Pass(1);
  EXPECT_EQ(says(), "PriorityClass high 100");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":null}}})");
  Pass(1);
  EXPECT_EQ(says(), "PriorityClass high 101");
  ExpectAtRest();
}

// Classes of the two kinds may have one name.
TEST_F(Workloads, TheClassIsThatOfItsKind) {
  Make("/apis/scheduling.k8s.io/v1/priorityclasses", R"({"metadata":{"name":"high"},"value":100})");
  Make(kKueue + "/workloadpriorityclasses", R"({"metadata":{"name":"high"},"value":7})");
  MakeJob({.labels = kQueued + R"(,"kueue.x-k8s.io/priority-class":"high")",
           .pod = R"(,"priorityClassName":"high")"});
  Pass(1);
  const auto says = [&] {
    return Text(Workload(), "/spec/priorityClassRef/kind") + " " +
           Text(Workload(), "/spec/priority");
  };
  EXPECT_EQ(says(), "WorkloadPriorityClass 7");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":null}}})");
  Pass(1);
  EXPECT_EQ(says(), "PriorityClass 100");
  // With quota the class stays, and with it whose value counts.
  Admit();
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"high"}}})");
  Pass(1);
  EXPECT_EQ(says(), "PriorityClass 100");
  ExpectAtRest();
}

TEST_F(Workloads, WithoutAClassItIsTheDefaultOnes) {
  const std::string classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
  MakeJob();
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/priority"), "0");
  Make(classes, R"({"metadata":{"name":"usual"},"value":5,"globalDefault":true})");
  Make(classes, R"({"metadata":{"name":"lower"},"value":4,"globalDefault":true})");
  Make(classes, R"({"metadata":{"name":"least"},"value":3})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/priority"), "4");
  EXPECT_EQ(Text(Workload(), "/spec/priorityClassRef"),
            R"({"group":"scheduling.k8s.io","kind":"PriorityClass","name":"lower"})");
  api_.Do(Method::kDelete, classes + "/lower");
  api_.Do(Method::kDelete, classes + "/usual");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/priority"), "0");
  EXPECT_EQ(Text(Workload(), "/spec/priorityClassRef"), "none");
  ExpectAtRest();
}

// As Kueue has it: who waits long may be preferred by hand, where no class says how important it is.
TEST_F(Workloads, APriorityThatIsSetByHandStays) {
  MakeJob();
  Pass(1);
  Patch(Workload(), R"({"spec":{"priority":7}})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/priority"), "7");
  Patch(kJob, R"({"spec":{"parallelism":1}})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/count"), "1");
  EXPECT_EQ(Text(Workload(), "/spec/priority"), "7");
  ExpectAtRest();
}

// ---- Faults ----------------------------------------------------------------------------------

// Lost answers, lost requests, late watches and restarts: one Workload, and it says what is true.
TEST_F(Workloads, LostWritesAndRestartsMakeOneWorkload) {
  for (const auto fault : {FakeApi::Fault::kLoseAnswer, FakeApi::Fault::kLoseRequest}) {
    int count = 0;
    api_.fault = [&](const env::HttpRequest&) {
      return ++count % 3 == 0 ? fault : FakeApi::Fault::kNone;
    };
    MakeJob();
    const auto shake = [&] {
      for (int i = 0; i < 10; ++i) {
        api_.HoldWatches(i % 2 == 0);
        Pass(2);
      }
      Pass(60);
      controllers_ = Controllers(Options{});
      Pass(60);
    };
    shake();
    EXPECT_EQ(Stands(), kHeld);
    Admit();
    shake();
    EXPECT_EQ(Stands(), kPlaced);
    EXPECT_EQ(Paths("/pods/").size(), 2u);
    Evict();
    shake();
    EXPECT_EQ(Stands(), kHeld);
    EXPECT_EQ(Text(Workload(), "/status/admission"), "none");
    Admit();
    shake();
    SetPods(R"("phase":"Succeeded")");
    shake();
    EXPECT_TRUE(Condition("Finished").starts_with("True Succeeded"));
    api_.fault = nullptr;
    ExpectAtRest();
    api_.Do(Method::kDelete, kJob);
    Pass(90);
    EXPECT_EQ(Paths("/workloads/").size(), 0u);
  }
}

// What is written is true of the version that it was decided on.
TEST_F(Workloads, AnAdmissionThatComesWhileQuotaIsGivenBackIsNotTakenAway) {
  MakeJob();
  Pass(1);
  Admit();
  const std::string workload = Workload();
  bool done = false;
  api_.fault = [&](const env::HttpRequest& request) {
    const bool release = request.target == workload + "/status" &&
                         request.body.view().find(R"("admission":null)") != std::string_view::npos;
    if (release && !done) {
      done = true;
      Decide({"QuotaReserved=True", "Admitted=True", "Evicted=False"});
    }
    return FakeApi::Fault::kNone;
  };
  Evict();
  Pass(5);
  EXPECT_TRUE(done);
  EXPECT_EQ(Condition("QuotaReserved"), "True Said: so");
  EXPECT_EQ(Stands(), kPlaced);
}

TEST_F(Workloads, AWorkloadThatIsRefusedIsToldOf) {
  api_.fault = [&](const env::HttpRequest& request) {
    const bool its = request.method == Method::kPost && request.target == kWorkloads;
    return its ? FakeApi::Fault::kRefuse : FakeApi::Fault::kNone;
  };
  MakeJob();
  Pass(5);
  EXPECT_EQ(Events(), std::vector<std::string>{"FailedCreate: Error creating: Forbidden"});
  api_.fault = nullptr;
  Pass(10);
  EXPECT_EQ(Text(Workload(), "/spec/queueName"), "q");
}

// On a server without a webhook that refuses them: its user is told, and what is mended starts.
TEST_F(Workloads, ContradictingAnnotationsAreToldAtTheJob) {
  MakeJob({.pod_annotations = R"("kueue.x-k8s.io/podset-required-topology":"rack",)"
                              R"("kueue.x-k8s.io/podset-preferred-topology":"host")"});
  Pass(1);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  const std::vector<std::string> told = {
      "FailedCreate: Error creating: the Job can't be placed as its annotations say; "
      "spec.template.metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]: Forbidden: "
      "may not be set beside kueue.x-k8s.io/podset-required-topology: remove one of them"};
  EXPECT_EQ(Events(), told);
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  ExpectAtRest();
  const std::string preferred =
      R"({"spec":{"template":{"metadata":{"annotations":{"kueue.x-k8s.io/podset-preferred-topology":)";
  Patch(kJob, preferred + "null}}}}}");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/topologyRequest/required"), "rack");
  // A Workload of what the Job wanted before would get it quota for that.
  Patch(kJob, preferred + R"("host"}}}}})");
  Pass(1);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  EXPECT_EQ(Text(kJob,
                 "/spec/template/metadata/annotations/"
                 "kueue.x-k8s.io~1podset-preferred-topology"),
            "host");
  ExpectAtRest();
}

// Its pods can't be told where to run. A flavor that is only seen later than its workload is no
// reason to tell.
TEST_F(Workloads, AFlavorThatIsGoneIsToldAtTheJobThatCannotStart) {
  MakeJob();
  Pass(1);
  api_.Do(Method::kDelete, kKueue + "/resourceflavors/f");
  Decide({"QuotaReserved=True"},
         R"(,"admission":{"clusterQueue":"cq","podSetAssignments":[{"name":"main","flavors":)"
         R"({"cpu":"f"},"resourceUsage":{"cpu":"2"},"count":2}]})");
  const std::string now = client::SecondsTime(api_.now);
  Patch(Workload() + "/status",
        fmt::format(R"({{"status":{{"conditions":[{{"type":"QuotaReserved","status":"True",)"
                    R"("reason":"r","message":"m","lastTransitionTime":"{0}"}},)"
                    R"({{"type":"Admitted","status":"True","reason":"r","message":"m",)"
                    R"("lastTransitionTime":"{0}"}}]}}}})",
                    now));
  Pass(2);
  const auto told = [&] {
    const std::vector<std::string> events = Events();
    return std::ranges::count_if(
        events, [](const std::string& event) { return event.starts_with("FailedStart: "); });
  };
  EXPECT_EQ(told(), 0);
  Pass(10);
  EXPECT_EQ(
      std::ranges::count(Events(),
                         "FailedStart: Error starting: ResourceFlavor f doesn't exist, of which "
                         "Workload d/" +
                             Workload().substr(Workload().rfind('/') + 1) +
                             " has its quota: create it, or set spec.active of the Workload to "
                             "false and to true again for another"),
      1)
      << ::testing::PrintToString(Events());
  EXPECT_EQ(Stands(), kHeld);
  ExpectAtRest();
  MakeFlavor("f", R"("pool":"a")", R"({"key":"t","operator":"Exists","effect":"NoSchedule"})");
  Pass(1);
  EXPECT_EQ(Stands(), kPlaced);
  EXPECT_EQ(told(), 1);
}

// K076: who may write in one namespace names a Job of another.
TEST_F(Workloads, AWorkloadOfAnotherNamespaceIsNotTheJobs) {
  Make("/api/v1/namespaces", R"({"metadata":{"name":"e"},"spec":{"finalizers":["kubernetes"]}})");
  MakeJob();
  Pass(3);
  const std::string own = api_.Paths("/namespaces/d/workloads/").at(0);
  const std::string foreign = kKueue + "/namespaces/e/workloads/foreign";
  Make(kKueue + "/namespaces/e/workloads",
       fmt::format(R"({{"metadata":{{"name":"foreign","finalizers":["example.com/stays"],
         "ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"{}",
         "controller":true}}]}},"spec":{{"queueName":"q","podSets":[]}}}})",
                   Text(kJob, "/metadata/uid")));
  Pass(3);
  api_.Do(Method::kDelete, own, "");
  Pass(10);
  EXPECT_EQ(api_.Paths("/namespaces/d/workloads/").size(), 1u) << "another is made for the Job";
  EXPECT_EQ(Text(foreign, "/status/conditions"), "none");
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  Make("/api/v1/namespaces/e/pods",
       fmt::format(R"({{"metadata":{{"name":"foreign","finalizers":["example.com/stays"],
         "ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"{}",
         "controller":true}}]}},"spec":{{"containers":[{{"name":"c"}}]}}}})",
                   Text(kJob, "/metadata/uid")));
  api_.Do(Method::kDelete, api_.Paths("/namespaces/d/workloads/").at(0), "");
  Pass(10);
  EXPECT_EQ(Text(api_.Paths("/namespaces/d/workloads/").at(0), "/metadata/deletionTimestamp"),
            "none")
      << "nor does a pod there hold what goes with the last one";
  api_.Do(Method::kDelete, kJob, "");
  Pass(10);
  EXPECT_EQ(api_.Paths("/namespaces/d/workloads/").size(), 0u);
}

TEST_F(Workloads, AMinimumThatIsNoneIsToldToBeIgnored) {
  MakeJob({.annotations = R"("kueue.x-k8s.io/job-min-parallelism":"2")"});
  Pass(1);
  const std::string ignored =
      "Ignored: The annotation kueue.x-k8s.io/job-min-parallelism is ignored, and the Job starts "
      "with all of its pods or none: \"2\" is no number from 1 to 1";
  EXPECT_EQ(std::ranges::count(Events(), ignored), 1);
  Patch(kJob, R"({"metadata":{"annotations":{"kueue.x-k8s.io/job-min-parallelism":"1"}}})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/minCount"), "1");
  ExpectAtRest();
}

// ---- Topology ----------------------------------------------------------------------------------

// What a check wants of pods stands in the template of the Job that runs, and is no wish of its
// user's.
TEST_F(Workloads, ACheckMayAskForATopology) {
  for (const std::string key :
       {"required-topology", "preferred-topology", "unconstrained-topology"}) {
    const std::string annotation = "kueue.x-k8s.io/podset-" + key;
    MakeJob();
    Pass(1);
    Decide(
        {"QuotaReserved=True", "Admitted=True"},
        fmt::format(
            R"(,"admissionChecks":[{{"name":"c","state":"Ready","message":"","podSetUpdates":[)"
            R"({{"name":"main","annotations":{{"{}":"true"}}}}]}}],"admission":)"
            R"({{"clusterQueue":"cq","podSetAssignments":[{{"name":"main","flavors":{{"cpu":"f"}},)"
            R"("resourceUsage":{{"cpu":"2"}},"count":2}}]}})",
            annotation));
    Pass(1);
    EXPECT_EQ(Stands(), kPlaced);
    EXPECT_EQ(Text(kJob, "/spec/template/metadata/annotations"),
              R"({")" + annotation + R"(":"true"})");
    ReadyPods();
    ExpectAtRest();
    EXPECT_EQ(Stands(), kPlaced);
    // While it does not run it is its user's.
    Evict();
    Pass(2);
    EXPECT_EQ(Stands(), kHeld);
    EXPECT_EQ(Text(Workload(), "/spec/podSets/0/topologyRequest"), "none");
    ExpectAtRest();
    api_.Do(Method::kDelete, kJob);
    Pass(5);
  }
}

}  // namespace
}  // namespace berth::controllers
