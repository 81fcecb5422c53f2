// Goal: pods of a Job that is placed by a topology stand where its Workload has places, and what
// berth puts into a template is taken out of it again. Method: as in workloads_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

// Goal: the gate of topologies is nobody's wish. Method: the Workload of a Job that runs by a
// topology is taken away, so that nobody knows any more what its template was.
TEST_F(Workloads, AJobByTopologyRunsAgainWhenItsWorkloadWasTakenAway) {
  const std::string places =
      R"(,"topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[{"domainCount":1,)"
      R"("valuesPerLevel":[{"universal":"n1"}],"podCounts":{"universal":2}}]})";
  const std::string gates = R"([{"name":"kueue.x-k8s.io/topology"}])";
  MakeNode("n1");
  MakeJob();
  Pass(1);
  Admit("f", 2, places);
  EXPECT_EQ(Text(kJob, "/spec/template/spec/schedulingGates"), gates);
  api_.Do(Method::kDelete, Workload());
  Pass(2);
  EXPECT_EQ(Text(kJob, "/spec/template/spec/schedulingGates"), "none");
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/schedulingGates"), "none");
  ExpectAtRest();
  Admit("f", 2, places);
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "false");
  EXPECT_EQ(Text(kJob, "/spec/template/spec/schedulingGates"), gates);
}

// What it was started with is nobody's wish: it is taken out of the Job before its Workload follows
// that. Method: its reservation is taken away while it runs, and each write that follows fails.
TEST_F(Workloads, AJobWhoseReservationWasTakenHasWhatItCameWith) {
  for (int nth = -1; nth < 6; ++nth) {
    MakeJob();
    Pass(1);
    Admit();
    EXPECT_EQ(Stands(), kPlaced);
    int count = 0;
    api_.fault = [&](const env::HttpRequest& request) {
      return request.method == Method::kPatch && IsOfJob(request) && count++ == nth
                 ? FakeApi::Fault::kLoseAnswer
                 : FakeApi::Fault::kNone;
    };
    Patch(Workload() + "/status", R"({"status":{"conditions":[],"admission":null}})");
    Pass(60);
    api_.fault = nullptr;
    EXPECT_EQ(Stands(), kHeld) << nth;
    EXPECT_EQ(Text(kJob, "/metadata/annotations"), "{}") << nth;
    EXPECT_EQ(Text(Workload(), "/spec/podSets/0/template/spec/nodeSelector"), R"({"disk":"ssd"})");
    ExpectAtRest();
    Admit();
    EXPECT_EQ(Stands(), kPlaced) << nth;
    api_.Do(Method::kDelete, kJob);
    Pass(5);
  }
}

// Goal: a gate that the user put there is no second one. Method: a Job with the gate of topologies
// is admitted to places, and loses its reservation.
TEST_F(Workloads, ATopologyGateOfTheUsersIsNoHindrance) {
  const std::string gates = R"([{"name":"kueue.x-k8s.io/topology"}])";
  MakeNode("n1");
  MakeJob();
  Pass(1);
  Patch(kJob, R"({"spec":{"template":{"spec":{"schedulingGates":)" + gates + "}}}}");
  Pass(1);
  Admit("f", 2,
        R"(,"topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[{"domainCount":1,)"
        R"("valuesPerLevel":[{"universal":"n1"}],"podCounts":{"universal":2}}]})");
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "false");
  EXPECT_EQ(Text(kJob, "/spec/template/spec/schedulingGates"), gates);
}

// Goal: no pod stays gated in silence. Method: somebody takes the places out of the status of one
// that runs.
TEST_F(Workloads, OneThatLostItsPlacesIsPlacedAnew) {
  MakeNode("n1");
  MakeJob();
  Pass(1);
  const std::string places =
      R"(,"topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[{"domainCount":1,)"
      R"("valuesPerLevel":[{"universal":"n1"}],"podCounts":{"universal":2}}]})";
  Admit("f", 2, places);
  const std::string checks = "/status/admissionChecks/0/state";
  Patch(Workload() + "/status",
        R"({"status":{"admissionChecks":[{"name":"c","state":"Ready","message":"fine",)"
        R"("lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(Text(Workload(), checks), "Ready");
  Admit("f", 2);
  Pass(2);
  EXPECT_EQ(Text(Workload(), checks), "Pending") << "its answer was for other places";
  const std::string why =
      "its pods are placed by a topology, and its status.admission has no topologyAssignment any "
      "more: it is placed anew";
  EXPECT_EQ(Condition("Evicted"), "True NodeFailures: " + why);
  EXPECT_EQ(Condition("Requeued"), "True NodeFailures: " + why);
  EXPECT_EQ(Condition("QuotaReserved"), "False PendingEvaluation: " + why);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Text(kJob, "/spec/template/spec/schedulingGates"), "none");
  ExpectAtRest();
}

// Goal: as above. Method: whoever admits it gives one of its two pods no place.
TEST_F(Workloads, OneThatHasFewerPlacesThanPodsIsPlacedAnew) {
  MakeNode("n1");
  MakeJob();
  Pass(1);
  Admit("f", 2,
        R"(,"topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[{"domainCount":1,)"
        R"("valuesPerLevel":[{"universal":"n1"}],"podCounts":{"universal":1}}]})");
  Pass(2);
  EXPECT_EQ(Condition("Evicted"),
            "True NodeFailures: its pods are placed by a topology, and its status.admission has a "
            "topologyAssignment of 1 pods and not of 2: it is placed anew");
  EXPECT_EQ(Stands(), kHeld);
  ExpectAtRest();
}

// Its pods are created gated, and each is let go to its place; evicted it has its template back.
TEST_F(Workloads, PodsAreLetGoToThePlacesOfTheTopology) {
  for (const char* node : {"n1", "n2"}) MakeNode(node);
  MakeJob({.pod_annotations = R"("kueue.x-k8s.io/podset-required-topology":"rack")"});
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/topologyRequest"),
            R"({"required":"rack","podIndexLabel":"batch.kubernetes.io/job-completion-index"})");
  Admit("f", 2,
        R"(,"topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[{"domainCount":2,)"
        R"("valuesPerLevel":[{"individual":{"prefix":"n","roots":["1","2"]}}],)"
        R"("podCounts":{"universal":1}}]})");
  Pass(2);
  EXPECT_EQ(Text(kJob, "/spec/template/spec/schedulingGates"),
            R"([{"name":"kueue.x-k8s.io/topology"}])");
  std::vector<std::string> nodes;
  for (const std::string& pod : Paths("/pods/")) {
    EXPECT_EQ(Text(pod, "/spec/schedulingGates"), "none");
    nodes.push_back(Text(pod, "/spec/nodeSelector/kubernetes.io~1hostname"));
    EXPECT_EQ(Text(pod, "/spec/nodeSelector/pool"), "a");
  }
  std::ranges::sort(nodes);
  EXPECT_EQ(nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(Text(Workload(), "/status/unhealthyNodes"), "none");
  api_.Do(Method::kDelete, "/api/v1/nodes/n2", "");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/status/unhealthyNodes"), R"([{"name":"n2"}])");
  Evict();
  Pass(3);
  EXPECT_EQ(Text(kJob, "/spec/template/spec/schedulingGates"), "none");
  EXPECT_EQ(Stands(), kHeld);
}

}  // namespace
}  // namespace berth::controllers
