// Goal: who runs a Workload, who checks it and who watches its nodes act on what the objects say.
// Method: the objects by hand, and what is written next.
#include "explore/workload_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "codec/scan.h"

namespace berth::explore {
namespace {

constexpr Instant kNow = Instant::FromSeconds(1'767'225'600);

std::string Workload(std::string_view conditions, std::string_view more = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"w","namespace":"default","uid":"u"}},"spec":{{"queueName":"q","podSets":[{{"name":"main","count":3,"template":{{"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}}}}]}},"status":{{"conditions":[{}]{}}}}})",
      conditions, more);
}

constexpr std::string_view kAdmitted =
    R"({"type":"QuotaReserved","status":"True"},{"type":"Admitted","status":"True"})";
// One of its pods on n1, one on n2.
constexpr std::string_view kPlaces =
    R"(,"admission":{"clusterQueue":"q","podSetAssignments":[{"name":"main","count":2,"topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[{"domainCount":2,"valuesPerLevel":[{"individual":{"prefix":"n","roots":["1","2"]}}],"podCounts":{"universal":1}}]}}]})";

class WorkloadModelsTest : public ::testing::Test {
 protected:
  void Node(const std::string& name, std::string_view ready) {
    Apply(
        "nodes//" + name,
        fmt::format(
            R"({{"metadata":{{"name":"{0}","uid":"{0}"}},"status":{{"conditions":[{{"type":"Ready","status":"{1}"}}]}}}})",
            name, ready));
  }
  void Pod(const std::string& name, std::string_view spec) {
    Apply(
        "pods/default/" + name,
        fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}","ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"w","uid":"job-w","controller":true}}]}},"spec":{{{1}}}}})",
            name, spec));
  }
  void Gone(const std::string& key) { Apply(key, ""); }
  void Apply(const std::string& key, const std::string& value) {
    truth_.Apply({.key = key, .revision = ++revision_, .value = Bytes(value)});
  }
  std::string Unhealthy(std::string_view told = "") {
    return UnhealthyStatus(truth_, Workload(kAdmitted, std::string(kPlaces) + std::string(told)))
        .value_or("");
  }

  std::string Writes(std::string_view workload, sim::Tampering planted = {}) {
    std::string text;
    for (const env::HttpRequest& request : TopologyWrites(truth_, workload, planted)) {
      const bool ends = request.method == env::Method::kDelete;
      text += request.target.substr(request.target.rfind('/') + 1) + " ";
      text += ends ? "ended"
                   : codec::Member(codec::Member(request.body.view(), "spec"), "nodeSelector");
      text += ";";
    }
    return text;
  }

  sim::Truth truth_;
  uint64_t revision_ = 0;
};

TEST_F(WorkloadModelsTest, NodesThatAreGoneOrSilentAndLeftAreTold) {
  Node("n1", "True");
  Node("n2", "True");
  EXPECT_EQ(Unhealthy(), "");
  Node("n2", "False");
  EXPECT_EQ(Unhealthy(), R"({"status":{"unhealthyNodes":[{"name":"n2"}]}})");
  Pod("w-0", R"("nodeName":"n2")");
  EXPECT_EQ(Unhealthy(), "") << "a pod of it goes on there";
  Gone("nodes//n2");
  EXPECT_EQ(Unhealthy(), R"({"status":{"unhealthyNodes":[{"name":"n2"}]}})");
  EXPECT_EQ(Unhealthy(R"(,"unhealthyNodes":[{"name":"n2"}])"), "") << "it says so";
  Node("n2", "True");
  EXPECT_EQ(Unhealthy(R"(,"unhealthyNodes":[{"name":"n2"}])"),
            R"({"status":{"unhealthyNodes":null}})");
  Gone("nodes//n2");
  EXPECT_EQ(UnhealthyStatus(truth_, Workload(R"({"type":"Finished","status":"True"})", kPlaces)),
            std::nullopt);
}

TEST_F(WorkloadModelsTest, PodsAreLetIntoPlacesThatAreFreeAndWell) {
  Node("n1", "True");
  Node("n2", "True");
  const std::string workload = Workload(kAdmitted, kPlaces);
  constexpr std::string_view kGated = R"("schedulingGates":[{"name":"kueue.x-k8s.io/topology"}])";
  const auto pod = PodToMake(truth_, workload);
  ASSERT_TRUE(pod.has_value());
  EXPECT_NE(pod->find(kGated), std::string::npos) << *pod;
  EXPECT_EQ(Writes(workload), "") << "there is none";
  Pod("w-0", kGated);
  Pod("w-1", R"("nodeSelector":{"kubernetes.io/hostname":"n1"})");
  EXPECT_EQ(Writes(workload), R"(w-0 {"kubernetes.io/hostname":"n2"};)");
  Gone("nodes//n2");
  EXPECT_EQ(Writes(workload), "") << "its node is gone";
  Node("n2", "True");
  Pod("w-2", R"("nodeSelector":{"kubernetes.io/hostname":"n2"})");
  EXPECT_EQ(Writes(workload), "") << "each place has a pod";
  Pod("w-2", R"("nodeSelector":{"kubernetes.io/hostname":"n3"})");
  EXPECT_EQ(Writes(workload), R"(w-2 ended;w-0 {"kubernetes.io/hostname":"n2"};)");
}

TEST_F(WorkloadModelsTest, ANodeIsToldOfInVainWherePodsGoOn) {
  const std::string before = Workload(kAdmitted, kPlaces);
  const std::string after =
      Workload(kAdmitted, std::string(kPlaces) + R"(,"unhealthyNodes":[{"name":"n2"}])");
  Node("n1", "True");
  Node("n2", "False");
  EXPECT_TRUE(ToldInVain(truth_, before, after).empty());
  Pod("w-1", R"("nodeName":"n2")");
  EXPECT_EQ(ToldInVain(truth_, before, after),
            std::vector<std::string>{
                "workload w is told that node n2 failed, and pod default/w-1 goes on there"});
  EXPECT_TRUE(ToldInVain(truth_, after, after).empty()) << "that was told before";
  Gone("nodes//n2");
  EXPECT_TRUE(ToldInVain(truth_, before, after).empty()) << "it is gone";
}

TEST_F(WorkloadModelsTest, PodsStandWhereTheirWorkloadHasPlaces) {
  const std::string workload = Workload(kAdmitted, kPlaces);
  Pod("w-0", R"("nodeName":"n1")");
  Pod("w-1", R"("nodeName":"n2")");
  EXPECT_TRUE(PodsBesidePlaces(truth_, workload).empty());
  Pod("w-1", R"("nodeName":"n1")");
  EXPECT_EQ(
      PodsBesidePlaces(truth_, workload),
      std::vector<std::string>{
          "at rest, pod default/w-1 stands on node n1, where workload w has no place for it"});
  EXPECT_TRUE(PodsBesidePlaces(truth_, Workload("", kPlaces)).empty()) << "it is not admitted";
}

TEST_F(WorkloadModelsTest, PodsAreEndedAndLetInForAReason) {
  const std::string workload =
      Workload(kAdmitted, std::string(kPlaces) + R"(,"unhealthyNodes":[{"name":"n2"}])");
  const auto judge = [&](env::Method method, std::string_view node) {
    const std::vector<env::HttpRequest> requests = {
        {.method = method,
         .target = "/api/v1/namespaces/default/pods/w-0",
         .headers = {},
         .body = Bytes(fmt::format(
             R"({{"spec":{{"nodeSelector":{{"kubernetes.io/hostname":"{}"}}}}}})", node))}};
    return fmt::format("{}", fmt::join(WrittenInVain(truth_, workload, requests), "; "));
  };
  Node("n1", "True");
  Node("n2", "False");
  Pod("w-0", R"("schedulingGates":[{"name":"kueue.x-k8s.io/topology"}])");
  EXPECT_EQ(judge(env::Method::kDelete, ""),
            "pod default/w-0 of workload w is ended, and was let in nowhere");
  EXPECT_EQ(judge(env::Method::kPatch, "n1"), "");
  EXPECT_EQ(judge(env::Method::kPatch, "n2"),
            "pod default/w-0 of workload w is let onto node n2, which failed");
  EXPECT_EQ(judge(env::Method::kPatch, "n3"),
            "pod default/w-0 of workload w is let onto node n3, which failed")
      << "it is gone";
  Node("n2", "True");
  EXPECT_EQ(judge(env::Method::kPatch, "n2"), "") << "it is well again";
  Pod("w-0", R"("nodeSelector":{"kubernetes.io/hostname":"n1"})");
  EXPECT_EQ(judge(env::Method::kDelete, ""),
            "pod default/w-0 of workload w is ended, and stands where it is to");
  Pod("w-0", R"("nodeSelector":{"kubernetes.io/hostname":"n3"})");
  EXPECT_EQ(judge(env::Method::kDelete, ""), "");
}

TEST_F(WorkloadModelsTest, WhoHasQuotaIsNotPutOnHold) {
  constexpr std::string_view kHold =
      R"({"type":"QuotaReserved","status":"False","reason":"OnHold","message":"m"})";
  EXPECT_EQ(ToldStatus(Workload(kAdmitted), kHold, kNow), std::nullopt);
  const auto told = ToldStatus(Workload(""), kHold, kNow);
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->contains(R"("type":"QuotaReserved","status":"False")")) << *told;
}

TEST_F(WorkloadModelsTest, ACheckIsAnsweredBesideTheOthers) {
  const std::string workload = Workload(
      kAdmitted,
      R"(,"admissionChecks":[{"name":"a","state":"Ready","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"},{"name":"b","state":"Pending","message":"","lastTransitionTime":"2025-01-01T00:00:00Z"}])");
  EXPECT_EQ(AnsweredStatus(workload, R"({"name":"c","state":"Ready"})", kNow), std::nullopt);
  EXPECT_EQ(
      AnsweredStatus(workload, R"({"name":"b","state":"Retry"})", kNow),
      R"({"status":{"admissionChecks":[{"name":"a","state":"Ready","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z","retryCount":0},{"name":"b","state":"Retry","message":"","lastTransitionTime":"2026-01-01T00:00:00Z","retryCount":0}]}})");
}

TEST_F(WorkloadModelsTest, WhoIsEvictedForOtherReasonsWaitsForTheirEnd) {
  const auto again = [](std::string_view reason, std::string_view status) {
    const std::string released = ReleasedStatus(
        Workload(fmt::format(R"({},{{"type":"Evicted","status":"True","reason":"{}"}})", kAdmitted,
                             reason)),
        kNow);
    return released.contains(fmt::format(R"("type":"Requeued","status":"{}")", status));
  };
  EXPECT_TRUE(again("Preempted", "True"));
  EXPECT_TRUE(again("NodeFailures", "True"));
  EXPECT_TRUE(again("AdmissionCheck", "False"));
}

}  // namespace
}  // namespace berth::explore
