// Goal: of Jobs of one PodGroup one that needs no admission check keeps its quota and says whom it
// waits for, until the checks of the others are passed; then all of them are admitted, with places.
// Method: the test plays API server and watch, and looks at each request.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "control/test_rig.h"
#include "model/audit.h"

namespace berth::control {
namespace {

constexpr std::string_view kMeta = R"("creationTimestamp":"2026-01-01T00:00:00Z")";

std::string ObjectJson(const std::string& name, const std::string& rest,
                       const std::string& space = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"{3}","uid":"u-{0}","resourceVersion":"101",{1}}}{2}}})",
      name, kMeta, rest, space);
}

// Of one pod of a cpu, which is of the group g.
std::string WorkloadJson(const std::string& name, const std::string& queue, int version,
                         const std::string& status = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"u-{0}","resourceVersion":"{2}",{3},)"
      R"("ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{0}","uid":"j-{0}","controller":true}}]}},)"
      R"("spec":{{"queueName":"{1}","podSets":[{{"name":"main","count":1,)"
      R"("template":{{"metadata":{{"annotations":{{"scheduling.k8s.io/group-name":"g"}}}},)"
      R"("spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}}}}]}},)"
      R"("status":{{{4}}}}})",
      name, queue, version, kMeta, status);
}

std::string QuotaOf(const std::string& cluster_queue, std::string_view check = "") {
  const std::string checks =
      check.empty()
          ? ""
          : fmt::format(R"(,"admissionChecks":[{{"name":"c","state":"{}","message":""}}])", check);
  return fmt::format(
      R"("admission":{{"clusterQueue":"{}","podSetAssignments":[{{"name":"main","flavors":{{"cpu":"spot"}},)"
      R"("resourceUsage":{{"cpu":"1"}},"count":1}}]}}{})",
      cluster_queue, checks);
}

constexpr std::string_view kHasQuota =
    R"("conditions":[{"type":"QuotaReserved","status":"True","reason":"QuotaReserved","message":"",)"
    R"("lastTransitionTime":"2027-01-15T08:00:00Z"})";

class MatesTest : public ::testing::Test {
 protected:
  MatesTest() : rig_(Options()) {
    rig_.Start({}, {NodeJson("n1", 11, 4'000)});
    rig_.Event("namespaces", "ADDED", ObjectJson("ns", ""));
    rig_.Event("resourceflavors", "ADDED", ObjectJson("spot", R"(,"spec":{})"));
    rig_.Event(
        "admissionchecks", "ADDED",
        ObjectJson(
            "c",
            R"(,"spec":{"controllerName":"x"},"status":{"conditions":[{"type":"Active","status":"True",)"
            R"("reason":"Active","message":"","lastTransitionTime":"2027-01-15T08:00:00Z"}]})"));
    for (const std::string name : {"free", "asks"}) {
      const std::string checks =
          name == "asks" ? R"(,"admissionChecksStrategy":{"admissionChecks":[{"name":"c"}]})" : "";
      rig_.Event("clusterqueues", "ADDED",
                 ObjectJson(name, fmt::format(R"(,"spec":{{"namespaceSelector":{{}}{},)"
                                              R"("resourceGroups":[{{"coveredResources":["cpu"],)"
                                              R"("flavors":[{{"name":"spot","resources":[)"
                                              R"({{"name":"cpu","nominalQuota":9}}]}}]}}]}})",
                                              checks)));
      rig_.Event("localqueues", "ADDED",
                 ObjectJson(name, fmt::format(R"(,"spec":{{"clusterQueue":"{}"}})", name), "ns"));
    }
    rig_.Event("groups", "ADDED",
               ObjectJson("g", R"(,"spec":{"minMember":2},"status":{"phase":"Pending"})", "ns"));
  }
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.quota = true;
    options.groups = true;
    options.engine.joint_placement = true;
    options.engine.second_pass_delay = {};
    return options;
  }
  void Put(const std::string& json, std::string_view type = "MODIFIED") {
    rig_.Event("workloads", type, json);
  }
  std::string Take(const std::string& workload) {
    return std::string(rig_.TakeOf("/workloads/" + workload).request.body.view());
  }
  // Answers what is written of conditions, as often as something is; the last of it. `rest`: what
  // else its status says.
  std::string Answered(const std::string& workload, const std::string& queue,
                       const std::string& rest) {
    std::string last;
    for (int i = 0; i < 9; ++i) {
      const env::SendRequest request = rig_.TakeOf("/workloads/" + workload);
      if (request.call.value == 0) return last;
      last = std::string(request.request.body.view());
      const size_t begin = last.find(R"("conditions":[)");
      const std::string conditions = last.substr(begin, last.find(']', begin) + 1 - begin);
      rig_.Answer(request, 200,
                  WorkloadJson(workload, queue, ++version_,
                               rest.empty() ? conditions : fmt::format("{},{}", rest, conditions)));
      rig_.Settle();
    }
    ADD_FAILURE() << "it is written to for ever: " << last;
    return last;
  }
  // Both get quota at once; b is to pass its check yet. What a says then.
  std::string GetQuota() {
    Put(WorkloadJson("a", "free", ++version_), "ADDED");
    Answered("a", "free", "");
    Put(WorkloadJson("b", "asks", ++version_), "ADDED");
    const env::SendRequest reserves = rig_.TakeOf("/workloads/a");
    const std::string body(reserves.request.body.view());
    ExpectHas(body, R"("type":"QuotaReserved","status":"True")");
    EXPECT_EQ(body.find(R"("type":"Admitted","status":"True")"), std::string::npos) << body;
    rig_.Answer(
        reserves, 200,
        WorkloadJson("a", "free", ++version_, fmt::format("{},{}]", QuotaOf("free"), kHasQuota)));
    rig_.Settle();
    Answered("b", "asks", QuotaOf("asks", "Pending"));
    return Answered("a", "free", QuotaOf("free"));
  }
  static void ExpectHas(const std::string& body, std::string_view text) {
    EXPECT_NE(body.find(text), std::string::npos) << text << "\n" << body;
  }

  Rig rig_;
  int version_ = 200;
};

TEST_F(MatesTest, NobodyIsAdmittedBeforeTheChecksOfTheOthersArePassed) {
  ExpectHas(GetQuota(),
            R"("type":"Admitted","status":"False","reason":"WaitingForGang","message":)"
            R"("its pods could not start by themselves: it is to be admitted together with )"
            R"(workload ns/b, whose pods are of the same PodGroup, and which has admission checks )"
            R"(to pass, or awaits its quota, or places for its pods")");
  ExpectHas(rig_.Get("/debug/why?workload=ns/a"), "together with workload ns/b");
  EXPECT_EQ(rig_.Held("n1"), 0);
  Put(WorkloadJson("b", "asks", ++version_,
                   fmt::format("{},{}]", QuotaOf("asks", "Ready"), kHasQuota)));
  for (const std::string name : {"a", "b"}) ExpectHas(Take(name), "berth.dev/placement");
  EXPECT_EQ(rig_.Held("n1"), 2'000);
  EXPECT_TRUE(model::Audit(rig_.scheduler.engine().state()).empty());
}

// It is told which group it can't start with, as any that has to wait for its gang.
TEST_F(MatesTest, WhoseMateAsksForAnotherTryGivesItsQuotaBack) {
  GetQuota();
  constexpr std::string_view kEvicted =
      R"({"type":"Evicted","status":"True","reason":"AdmissionCheck","message":"",)"
      R"("lastTransitionTime":"2027-01-15T08:00:01Z"})";
  Put(WorkloadJson("b", "asks", ++version_,
                   fmt::format("{},{},{}]", QuotaOf("asks", "Retry"), kHasQuota, kEvicted)));
  const std::string gives_back = Take("a");
  ExpectHas(gives_back, R"("type":"Evicted","status":"True","reason":"WaitingForGang")");
  ExpectHas(gives_back, "ns/g");
}

}  // namespace
}  // namespace berth::control
