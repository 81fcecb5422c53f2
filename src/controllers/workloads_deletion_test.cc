// Goal: a Workload that is deleted under its Job goes once the Job has what it came with and nothing
// of it runs, and no earlier, whoever deletes what, in whichever order, and whatever is lost; one
// whose Job is gone holds quota as long as pods of it run, and no longer. Method: as in
// workloads_test.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kInUse = R"(["kueue.x-k8s.io/resource-in-use"])";

class WorkloadDeletion : public Workloads {
 protected:
  // A Job that got a flavor and fewer pods than it asked for, and runs.
  void StartInPart() {
    MakeJob({.annotations = R"("kueue.x-k8s.io/job-min-parallelism":"1")",
             .parallelism = 3,
             .spec = R"(,"completions":3,"suspend":true)"});
    Pass(1);
    uid_ = Text(Workload(), "/metadata/uid");
    Admit();
    EXPECT_EQ(Stands(), kPlaced);
    EXPECT_EQ(Paths("/pods/").size(), 2u);
  }
  void DeleteWorkload() { api_.Do(Method::kDelete, Workload()); }
  void DeleteJob(const std::string& policy) {
    api_.Do(Method::kDelete, kJob, fmt::format(R"({{"propagationPolicy":"{}"}})", policy));
  }
  void KeepPods(bool keep) {
    for (const std::string& pod : Paths("/pods/"))
      Patch(pod,
            fmt::format(R"({{"metadata":{{"finalizers":{}}}}})", keep ? R"(["x/y"])" : "null"));
    Pass(1);
  }
  bool IsGoing() { return Text(Workload(), "/metadata/deletionTimestamp") != "none"; }

  std::string uid_;
  const std::string asked_ = R"(suspended 3 {"disk":"ssd"} [{"key":"a","operator":"Exists"}])";
};

TEST_F(WorkloadDeletion, TheJobGetsBackWhatItCameWithAndAsksAnew) {
  StartInPart();
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), kInUse);
  KeepPods(true);
  DeleteWorkload();
  Pass(1);
  // Its pods are going, and are not gone.
  EXPECT_TRUE(IsGoing());
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  EXPECT_EQ(Condition("QuotaReserved"), "True Said: so");
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), kInUse);
  ExpectAtRest();
  KeepPods(false);
  Pass(1);
  EXPECT_EQ(Stands(), asked_);
  EXPECT_NE(Text(Workload(), "/metadata/uid"), uid_);
  EXPECT_FALSE(IsGoing());
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/count"), "3");
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/nodeSelector"), R"({"disk":"ssd"})");
  const std::string name = Workload().substr(kWorkloads.size() + 1);
  const std::vector<std::string> events = Events();
  EXPECT_TRUE(std::ranges::find(events, "Stopped: Workload d/" + name + " is being deleted") !=
              events.end());
  ExpectAtRest();
  Admit();
  EXPECT_EQ(Stands(), kPlaced);
  EXPECT_EQ(Paths("/pods/").size(), 2u);
}

// K111, for deletions: whichever write is lost, repeated or refused, and wherever berth is started
// anew, the template comes back and there is one new Workload.
TEST_F(WorkloadDeletion, InterruptedAnywhereItLeavesTheJobAsItsUserWroteIt) {
  for (const auto fault : {FakeApi::Fault::kNone, FakeApi::Fault::kRefuse,
                           FakeApi::Fault::kLoseAnswer, FakeApi::Fault::kLoseRequest}) {
    for (int nth = 0; nth < 9; ++nth) {
      StartInPart();
      int count = 0;
      bool crash = false;
      api_.fault = [&](const env::HttpRequest& request) {
        const bool its = request.target.find("/jobs/j") != std::string::npos ||
                         request.target.find("/workloads") != std::string::npos;
        if (!its || count++ != nth) return FakeApi::Fault::kNone;
        // One that is restarted never learns what became of what it sent.
        crash = fault == FakeApi::Fault::kNone;
        return crash ? FakeApi::Fault::kLoseAnswer : fault;
      };
      DeleteWorkload();
      for (int i = 0; i < 50 && !crash; ++i) api_.Pass(controllers_, Duration::Milliseconds(10));
      if (crash) controllers_ = Controllers(Options{.seed = 2});
      Pass(60);
      api_.fault = nullptr;
      EXPECT_EQ(Stands(), asked_) << nth;
      EXPECT_NE(Text(Workload(), "/metadata/uid"), uid_) << nth;
      EXPECT_FALSE(IsGoing()) << nth;
      EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/nodeSelector"), R"({"disk":"ssd"})")
          << nth;
      ExpectAtRest();
      DeleteJob("Background");
      Pass(5);
      EXPECT_EQ(Paths("/workloads/").size(), 0u) << nth;
    }
  }
}

// What a Job's template says while it holds no quota is its user's.
TEST_F(WorkloadDeletion, OneThatWaitsGoesAtOnceAndLeavesTheJobAlone) {
  MakeJob();
  Pass(1);
  const std::string uid = Text(Workload(), "/metadata/uid");
  Patch(kJob, R"({"spec":{"template":{"spec":{"nodeSelector":{"disk":"hdd"}}}}})");
  DeleteWorkload();
  Pass(1);
  EXPECT_NE(Text(Workload(), "/metadata/uid"), uid);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/nodeSelector"), R"({"disk":"hdd"})");
  EXPECT_EQ(Text(kJob, "/spec/template/spec/nodeSelector"), R"({"disk":"hdd"})");
  ExpectAtRest();
}

// Those that an earlier version made, and those that somebody took it from, get the finalizer before
// their Job gets anything.
TEST_F(WorkloadDeletion, AnOlderWorkloadIsProtectedBeforeItsJobStarts) {
  MakeJob();
  Pass(1);
  std::vector<std::string> writes;
  for (const bool runs : {false, true}) {
    Patch(Workload(), R"({"metadata":{"finalizers":null}})");
    api_.fault = [&](const env::HttpRequest& request) {
      if (request.target == kJob || request.target == Workload()) writes.push_back(request.target);
      return FakeApi::Fault::kNone;
    };
    runs ? Pass(1) : Admit();
    EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), kInUse);
    ASSERT_FALSE(writes.empty());
    EXPECT_EQ(writes.front(), Workload());
    api_.fault = nullptr;
    writes.clear();
  }
  EXPECT_EQ(Stands(), kPlaced);
  // Another's stays.
  Patch(Workload(), R"({"metadata":{"finalizers":["x/y"]}})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"),
            R"(["x/y","kueue.x-k8s.io/resource-in-use"])");
  ExpectAtRest();
}

TEST_F(WorkloadDeletion, OfAJobThatIsDoneItNeedsNobodysLeave) {
  MakeJob();
  Pass(1);
  Admit();
  SetPods(R"("phase":"Succeeded")");
  Pass(5);
  EXPECT_EQ(Condition("Finished"), "True Succeeded: Reached expected number of succeeded pods");
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), "none");
  ExpectAtRest();
  DeleteWorkload();
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
}

// It is told of before the end of its Job is: nothing waits for anything.
TEST_F(WorkloadDeletion, OfAJobThatEndsMeanwhileItGoes) {
  MakeJob();
  Pass(1);
  Admit();
  KeepPods(true);
  DeleteWorkload();
  Patch(kJob + "/status",
        R"({"status":{"conditions":[{"type":"Complete","status":"True","message":"m"}]}})");
  KeepPods(false);
  Pass(2);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  ExpectAtRest();
}

// K041: however its Job is deleted, and whether it was itself before, nothing hangs; and its quota is
// held until no pod runs any more.
TEST_F(WorkloadDeletion, ItGoesWithItsJobWhenNoPodRunsAnyMore) {
  for (const std::string policy : {"Background", "Foreground", "Orphan"}) {
    for (const bool itself : {false, true}) {
      StartInPart();
      KeepPods(true);
      if (itself) DeleteWorkload();
      DeleteJob(policy);
      Pass(2);
      if (policy == "Orphan") {
        for (const std::string& pod : Paths("/pods/")) api_.Do(Method::kDelete, pod);
        Pass(1);
      }
      EXPECT_EQ(Paths("/pods/").size(), 2u) << policy;
      EXPECT_EQ(IsGoing(), policy != "Orphan" || itself) << policy;
      EXPECT_EQ(Condition("QuotaReserved"), "True Said: so") << policy;
      ExpectAtRest();
      KeepPods(false);
      Pass(2);
      EXPECT_EQ(Text(kJob, "/metadata/name"), "gone") << policy;
      if (policy == "Orphan" && !itself) {
        EXPECT_EQ(Condition("Finished"),
                  "True OwnerNotFound: The workload's owner no longer exists");
        EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), "none");
        ExpectAtRest();
        DeleteWorkload();
      }
      EXPECT_EQ(Paths("/workloads/").size(), 0u) << policy << itself;
      ExpectAtRest();
    }
  }
}

// Both of them deleted, the pods that the Job leaves behind are none of its own before it is gone.
TEST_F(WorkloadDeletion, WhileTheJobLeavesItsPodsTheyHoldQuota) {
  StartInPart();
  DeleteWorkload();
  DeleteJob("Orphan");
  // Its pods are let go, and the Workload is not yet.
  api_.fault = [&](const env::HttpRequest& request) {
    const bool lets_go = request.body.view().find("ownerReferences") != std::string_view::npos;
    return lets_go && request.target == Workload() ? FakeApi::Fault::kRefuse
                                                   : FakeApi::Fault::kNone;
  };
  Pass(2);
  for (const std::string& pod : Paths("/pods/"))
    EXPECT_EQ(Text(pod, "/metadata/ownerReferences"), "none");
  EXPECT_NE(Text(kJob, "/metadata/name"), "gone");
  EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), kInUse);
  api_.fault = nullptr;
  Pass(200);
  EXPECT_EQ(Text(kJob, "/metadata/name"), "gone");
  EXPECT_EQ(Condition("QuotaReserved"), "True Said: so");
  SetPods(R"("phase":"Succeeded")");
  Pass(2);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  ExpectAtRest();
}

// Upstream 1789, 12820: pods that were left behind run on, and what they use is not another's.
TEST_F(WorkloadDeletion, AnOrphanHoldsQuotaWhileItsPodsRun) {
  StartInPart();
  ReadyPods();
  DeleteJob("Orphan");
  Pass(2);
  EXPECT_EQ(Text(kJob, "/metadata/name"), "gone");
  EXPECT_EQ(Text(Workload(), "/metadata/ownerReferences"), "none");
  EXPECT_EQ(Paths("/pods/").size(), 2u);
  EXPECT_EQ(Condition("Finished"), "none");
  ExpectAtRest();
  // A Job of the same name is another.
  MakeJob({.parallelism = 1});
  Pass(1);
  EXPECT_EQ(Paths("/workloads/").size(), 2u);
  api_.Do(Method::kDelete, kJob);
  Pass(2);
  EXPECT_EQ(Condition("Finished"), "none");
  controllers_ = Controllers(Options{.seed = 2});
  SetPods(R"("phase":"Succeeded")");
  Pass(2);
  EXPECT_EQ(Condition("Finished"), "True OwnerNotFound: The workload's owner no longer exists");
  ExpectAtRest();
}

// K040: that a Job isn't seen yet says nothing.
TEST_F(WorkloadDeletion, AJobThatIsSeenLateIsNotGone) {
  api_.HoldWatches(true, "jobs");
  MakeJob();
  const std::string uid = Text(kJob, "/metadata/uid");
  Make(kWorkloads,
       fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"kueue.x-k8s.io/job-uid":"{}"}}}},)"
                   R"("spec":{{"podSets":[]}}}})",
                   WorkloadNameOf({.kind = api::KindId::kJob, .name = "j", .uid = uid}), uid));
  Pass(1);
  EXPECT_EQ(Condition("Finished"), "none");
  api_.HoldWatches(false);
  Pass(1);
  EXPECT_EQ(Condition("Finished"), "none");
}

// Those that users made are theirs; what their end waits for is nobody's to wait for.
TEST_F(WorkloadDeletion, OneThatIsForNoJobIsItsUsers) {
  for (const std::string labels : {"", R"("kueue.x-k8s.io/job-uid":"x")"}) {
    Make(kWorkloads,
         fmt::format(R"({{"metadata":{{"name":"mine","labels":{{{}}}}},"spec":{{}}}})", labels));
    Pass(1);
    EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), "none");
    EXPECT_EQ(Condition("Finished"), "none");
    Patch(Workload(), fmt::format(R"({{"metadata":{{"finalizers":{}}}}})", kInUse));
    Pass(1);
    EXPECT_EQ(Text(Workload(), "/metadata/finalizers"), kInUse);
    DeleteWorkload();
    Pass(1);
    EXPECT_EQ(Paths("/workloads/").size(), 0u) << labels;
    ExpectAtRest();
  }
}

// A namespace empties itself, whatever of it goes first.
TEST_F(WorkloadDeletion, ANamespaceThatGoesTakesAllOfItAlong) {
  StartInPart();
  Patch("/api/v1/namespaces/d", R"({"kind":"Namespace"})");
  // Nothing is made there any more.
  api_.fault = [&](const env::HttpRequest& request) {
    return request.method == Method::kPost ? FakeApi::Fault::kRefuse : FakeApi::Fault::kNone;
  };
  api_.Do(Method::kDelete, "/api/v1/namespaces/d");
  Pass(60);
  EXPECT_EQ(Paths("/workloads/").size(), 0u);
  EXPECT_EQ(Paths("/jobs/").size(), 0u);
  EXPECT_EQ(Text("/api/v1/namespaces/d", "/metadata/name"), "gone");
}

// Pods go first, and what a namespace waits for stands in its conditions; once.
TEST_F(WorkloadDeletion, ANamespaceThatWaitsSaysForWhat) {
  Make(kPods, R"({"metadata":{"name":"p","finalizers":["x.io/a"]},"spec":{}})");
  const std::string maps = "/api/v1/namespaces/d/configmaps";
  Make(maps, R"({"metadata":{"name":"m","finalizers":["x.io/a","x.io/b"]}})");
  Patch("/api/v1/namespaces/d", R"({"kind":"Namespace"})");
  Pass(1);
  api_.Do(Method::kDelete, "/api/v1/namespaces/d");
  Pass(5);
  const auto told = [&](int index) {
    const std::string at = fmt::format("/status/conditions/{}", index);
    const auto text = [&](const char* member) { return Text("/api/v1/namespaces/d", at + member); };
    return fmt::format("{}={} {}: {}", text("/type"), text("/status"), text("/reason"),
                       text("/message"));
  };
  EXPECT_EQ(told(0),
            "NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered: All resources "
            "successfully discovered");
  EXPECT_EQ(told(1),
            "NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions: All legacy "
            "kube types successfully parsed");
  EXPECT_EQ(told(2),
            "NamespaceDeletionContentFailure=False ContentDeleted: All content successfully "
            "deleted, may be waiting on finalization");
  EXPECT_EQ(told(3),
            "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: "
            "pods. has 1 resource instances");
  EXPECT_EQ(told(4),
            "NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace "
            "has finalizers remaining: x.io/a in 1 resource instances");
  EXPECT_EQ(Text(maps + "/m", "/metadata/deletionTimestamp"), "none");
  ExpectAtRest();
  Patch(kPods + "/p", R"({"metadata":{"finalizers":null}})");
  Pass(5);
  EXPECT_EQ(told(3),
            "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: "
            "configmaps. has 1 resource instances");
  EXPECT_EQ(told(4),
            "NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace "
            "has finalizers remaining: x.io/a in 1 resource instances, x.io/b in 1 resource "
            "instances");
  ExpectAtRest();
  // Who takes his finalizer away is not waited for any more.
  Patch(maps + "/m", R"({"metadata":{"finalizers":["x.io/b"]}})");
  Pass(5);
  EXPECT_EQ(told(4),
            "NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace "
            "has finalizers remaining: x.io/b in 1 resource instances");
  ExpectAtRest();
  Patch(maps + "/m", R"({"metadata":{"finalizers":null}})");
  Pass(40);
  EXPECT_EQ(Text("/api/v1/namespaces/d", "/metadata/name"), "gone");
}

// What others made for it goes at once; what it runs by stays.
TEST_F(WorkloadDeletion, ASecondWorkloadOfAJobGoesThoughItIsProtected) {
  StartInPart();
  const std::string own = Workload();
  api::Json copy = *api_.Find(own);
  copy.as_object()["metadata"] = {
      {"name", "a"},
      {"ownerReferences", api::Json(copy.at("metadata").at("ownerReferences"))},
      {"finalizers", {"kueue.x-k8s.io/resource-in-use"}}};
  Make(kWorkloads, codec::PrintJson(copy));
  Pass(1);
  EXPECT_EQ(Workload(), own);
  EXPECT_EQ(Stands(), kPlaced);
  ExpectAtRest();
}

// Taken out of its queue while it is held, it has what it came with.
TEST_F(WorkloadDeletion, AJobThatLeavesItsQueueHasWhatItCameWith) {
  for (const bool itself : {false, true}) {
    StartInPart();
    if (itself) DeleteWorkload();
    Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}})");
    Pass(1);
    // It runs on: nobody of its own stops it any more.
    EXPECT_EQ(Paths("/workloads/").size(), 1u);
    Patch(kJob, R"({"spec":{"suspend":true}})");
    Pass(2);
    EXPECT_EQ(Stands(), asked_);
    EXPECT_EQ(Paths("/workloads/").size(), 0u);
    ExpectAtRest();
    api_.Do(Method::kDelete, kJob);
    Pass(2);
  }
}

}  // namespace
}  // namespace berth::controllers
