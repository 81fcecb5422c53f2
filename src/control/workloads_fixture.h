#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/test_rig.h"
#include "model/audit.h"

// For tests of Workloads: a scheduler that gives out the quota of one ClusterQueue, `cq`, through
// one LocalQueue, `lq`.
namespace berth::control {

inline constexpr std::string_view kMeta = R"("creationTimestamp":"2026-01-01T00:00:00Z")";

inline std::string QueueJson(int version, const std::string& spec = "", int cpu = 9) {
  return fmt::format(
      R"({{"metadata":{{"name":"cq","uid":"u-cq","resourceVersion":"{}",{}}},"spec":{{"namespaceSelector":{{}}{},)"
      R"("resourceGroups":[{{"coveredResources":["cpu","memory"],"flavors":[{{"name":"spot","resources":[)"
      R"({{"name":"cpu","nominalQuota":{}}},{{"name":"memory","nominalQuota":"36Gi"}}]}}]}}]}}}})",
      version, kMeta, spec, cpu);
}

inline std::string LocalQueueJson(int version, const std::string& spec = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"lq","namespace":"ns","uid":"u-lq","resourceVersion":"{}",{}}},)"
      R"("spec":{{"clusterQueue":"cq"{}}}}})",
      version, kMeta, spec);
}

inline std::string NamespaceJson(int version, const std::string& labels = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"ns","uid":"u-ns","resourceVersion":"{}","labels":{{{}}},{}}}}})",
      version, labels, kMeta);
}

inline std::string FlavorJson(int version) {
  return fmt::format(R"({{"metadata":{{"name":"spot","uid":"u-spot","resourceVersion":"{}",{}}}}})",
                     version, kMeta);
}

inline std::string CheckJson(int version, const std::string& active) {
  return fmt::format(
      R"({{"metadata":{{"name":"c","uid":"u-c","resourceVersion":"{}",{}}},"spec":{{"controllerName":"kueue.x-k8s.io/provisioning-request"}},)"
      R"("status":{{"conditions":[{{"type":"Active","status":"{}","reason":"R","message":"m"}}]}}}})",
      version, kMeta, active);
}

inline std::string WorkloadJson(const std::string& name, int version,
                                const std::string& status = "", int count = 3) {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"u-{0}","resourceVersion":"{1}",{2}}},)"
      R"("spec":{{"queueName":"lq","podSets":[{{"name":"main","count":{4},"template":{{"spec":{{"containers":[)"
      R"({{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1","memory":"200Mi"}}}}}}]}}}}}}]}},)"
      R"("status":{{{3}}}}})",
      name, version, kMeta, status, count);
}

// What the server says of a reservation.
inline std::string ReservedStatus(int count = 3) {
  return fmt::format(
      R"("admission":{{"clusterQueue":"cq","podSetAssignments":[{{"name":"main","flavors":{{"cpu":"spot","memory":"spot"}},)"
      R"("resourceUsage":{{"cpu":"{0}","memory":"{1}Mi"}},"count":{0}}}]}},)"
      R"("conditions":[{{"type":"QuotaReserved","status":"True","reason":"QuotaReserved","message":"Quota reserved in ClusterQueue cq",)"
      R"("lastTransitionTime":"2027-01-15T08:00:00Z"}},)"
      R"({{"type":"Admitted","status":"True","reason":"Admitted","message":"The workload is admitted",)"
      R"("lastTransitionTime":"2027-01-15T08:00:00Z"}}])",
      count, count * 200);
}

inline std::string_view BodyOf(const env::SendRequest& request) {
  return request.request.body.view();
}

// The object as it is after a patch of its status whose members are as an object tells them.
inline std::string MembersOf(const env::SendRequest& write) {
  const std::string_view body = BodyOf(write);
  const size_t at = body.find(R"("status":{)") + 10;
  return std::string(body.substr(at, body.size() - at - 2));
}

inline std::string CheckedQueueJson(int version, const std::string& more = "") {
  return QueueJson(version,
                   R"(,"admissionChecksStrategy":{"admissionChecks":[{"name":"c"}]})" + more);
}

// A workload that is reserved, and its check as given.
inline std::string CheckedStatus(const std::string& state, const std::string& more = "") {
  std::string status = ReservedStatus();
  const std::string_view admitted = R"("Admitted","status":"True","reason":"Admitted")";
  status.replace(status.find(admitted), admitted.size(),
                 R"("Admitted","status":"False","reason":"UnsatisfiedAdmissionChecks")");
  return status +
         fmt::format(
             R"(,"admissionChecks":[{{"name":"c","state":"{}","message":"","lastTransitionTime":"2027-01-15T08:00:00Z"{}}}])",
             state, more);
}

class WorkloadsTest : public ::testing::Test {
 protected:
  WorkloadsTest() : WorkloadsTest(Giving()) {}
  explicit WorkloadsTest(SchedulerOptions options) : rig_(std::move(options)) {
    rig_.Start({}, {NodeJson("n1", 11, 9'000)});
    rig_.Event("namespaces", "ADDED", NamespaceJson(101));
    rig_.Event("resourceflavors", "ADDED", FlavorJson(102));
    rig_.Event("clusterqueues", "ADDED", QueueJson(103));
    rig_.Event("localqueues", "ADDED", LocalQueueJson(104));
  }
  static SchedulerOptions Giving() {
    SchedulerOptions options;
    options.quota = true;
    return options;
  }
  // "used" cpu of the queue, in thousandths.
  [[nodiscard]] int64_t Used() const {
    const model::State& state = rig_.scheduler.engine().state();
    const std::vector<std::string> found = model::Audit(state);
    EXPECT_TRUE(found.empty()) << found.front();
    const model::QueueId q = state.FindQueue(model::QueueKind::kClusterQueue, "cq");
    const uint32_t account = state.queues().AccountOf(q, state.vocabulary().names.Find("spot"));
    return state.ledger().quota().used(model::QuotaView::kNow, model::kCpu, account);
  }
  env::SendRequest TakeStatus(const std::string& name) {
    return rig_.TakeOf("/workloads/" + name + "/status");
  }
  void ExpectNothing(const std::string& name) {
    const env::SendRequest sent = rig_.TakeOf("/workloads/" + name);
    EXPECT_EQ(sent.call.value, 0u) << sent.request.target << ' ' << BodyOf(sent);
  }

  Rig rig_;
};

}  // namespace berth::control
