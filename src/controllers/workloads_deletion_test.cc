// Goal: a Workload goes only when its Job has back what it came with and nothing of it runs, however
// either of them is deleted. Method: the actor against a small API server, with lost writes and
// restarts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

// What the template was is known from the Workload alone: it stays until the Job has that back and
// nothing of it runs.
TEST_F(Workloads, AWorkloadThatIsDeletedUnderItsJobGivesTheJobBackWhatItCameWith) {
  MakeJob({.annotations = R"("kueue.x-k8s.io/job-min-parallelism":"2")",
           .parallelism = 4,
           .spec = R"(,"completions":8,"suspend":true)"});
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), R"(["kueue.x-k8s.io/resource-in-use"])");
  Admit("f", 3);
  const std::string uid = Text(Workload(), "/metadata/uid");
  EXPECT_EQ(Text(kJob, "/spec/template/spec/nodeSelector"), R"({"disk":"ssd","pool":"a"})");
  EXPECT_EQ(Paths("/pods/").size(), 3u);
  api_.HoldWatches(true, "pods");
  api_.Do(Method::kDelete, Workload());
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/metadata/uid"), uid) << "its pods are not seen to be gone";
  api_.HoldWatches(false);
  Pass(2);
  EXPECT_NE(Text(Workload(), "/metadata/uid"), uid);
  EXPECT_EQ(Stands(), R"(suspended 4 {"disk":"ssd"} [{"key":"a","operator":"Exists"}])");
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/count"), "4");
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/nodeSelector"), R"({"disk":"ssd"})");
  ExpectAtRest();
  Admit("f", 3);
  EXPECT_EQ(Paths("/pods/").size(), 3u);
}

// Those that an older version made, or somebody took the finalizer from, get it before the Job's
// template changes.
TEST_F(Workloads, AWorkloadWithoutTheFinalizerGetsItBeforeItsJobStarts) {
  MakeJob();
  Pass(1);
  api_.HoldWatches(true, "workloads");
  Patch(Workload(), R"({"metadata":{"finalizers":["x/y"]}})");
  Decide({"QuotaReserved=True", "Admitted=True"},
         R"(,"admission":{"clusterQueue":"cq","podSetAssignments":[{"name":"main",)"
         R"("flavors":{"cpu":"f"},"resourceUsage":{"cpu":"2"},"count":2}]})");
  api_.fault = [&](const env::HttpRequest& request) {
    if (request.target == kJob && request.method == Method::kPatch) {
      EXPECT_EQ(Text(Workload(), "/metadata/finalizers"),
                R"(["x/y","kueue.x-k8s.io/resource-in-use"])");
    }
    return FakeApi::Fault::kNone;
  };
  api_.HoldWatches(false);
  Pass(1);
  EXPECT_EQ(Stands(), kPlaced);
  ExpectAtRest();
}

TEST_F(Workloads, AFinishedWorkloadIsHeldByNothing) {
  MakeJob();
  Pass(1);
  Admit();
  SetPods(R"("phase":"Succeeded")");
  Pass(1);
  EXPECT_EQ(Condition("Finished").substr(0, 4), "True");
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), "none");
  ExpectAtRest();
}

// A deletion that is interrupted anywhere, also by a restart, ends where it was to.
TEST_F(Workloads, ADeletionThatIsInterruptedAnywhereLeavesTheJobAsItWas) {
  for (int lost = 0; lost < 8; ++lost) {
    for (const auto fault : {FakeApi::Fault::kLoseAnswer, FakeApi::Fault::kLoseRequest}) {
      MakeJob();
      Pass(1);
      Admit();
      EXPECT_EQ(Stands(), kPlaced);
      const std::string uid = Text(Workload(), "/metadata/uid");
      int writes = 0;
      api_.fault = [&](const env::HttpRequest& request) {
        ExpectAllowed(request);
        if (request.method == Method::kGet) return FakeApi::Fault::kNone;
        return writes++ == lost ? fault : FakeApi::Fault::kNone;
      };
      api_.Do(Method::kDelete, Workload());
      Pass(0);
      controllers_ = Controllers(Options{});
      Pass(20);
      api_.fault = nullptr;
      EXPECT_NE(Text(Workload(), "/metadata/uid"), uid);
      EXPECT_EQ(Stands(), kHeld) << lost;
      api_.Do(Method::kDelete, kJob);
      Pass(20);
      EXPECT_EQ(Paths("/workloads/").size(), 0u) << lost;
    }
  }
}

// Deleted with its Job it is held for as long as pods of it run, and by nothing else.
TEST_F(Workloads, AWorkloadWhoseJobIsGoneGoesWithTheLastPod) {
  for (const std::string policy : {"Background", "Foreground", "Orphan"}) {
    MakeJob();
    Pass(1);
    Admit();
    ReadyPods();
    ASSERT_EQ(Paths("/pods/").size(), 2u);
    for (const std::string& pod : Paths("/pods/"))
      Patch(pod, R"({"metadata":{"finalizers":["x/y"]}})");
    api_.Do(Method::kDelete, kJob,
            fmt::format(R"({{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"{}"}})",
                        policy));
    Pass(60);
    ASSERT_EQ(Paths("/workloads/").size(), 1u) << policy;
    EXPECT_NE(Text(Workload(), "/metadata/deletionTimestamp"), "none") << policy;
    EXPECT_EQ(Paths("/pods/").size(), 2u);
    for (const std::string& pod : Paths("/pods/")) {
      if (policy == "Orphan") {
        Patch(pod + "/status", R"({"status":{"phase":"Succeeded"}})");
      }
      Patch(pod, R"({"metadata":{"finalizers":null}})");
    }
    Pass(60);
    EXPECT_EQ(Paths("/workloads/").size(), 0u) << policy;
    EXPECT_EQ(Paths("/jobs/").size(), 0u) << policy;
    for (const std::string& pod : Paths("/pods/")) api_.Do(Method::kDelete, pod);
    Pass(1);
  }
}

}  // namespace
}  // namespace berth::controllers
