#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "client/fake_api.h"
#include "controllers/controllers.h"

// For tests of Workloads of Jobs: the actor against a small API server, and what the scheduler and
// the kubelets write there.
namespace berth::controllers {

using client::FakeApi;
using env::Method;

inline const std::string kPods = "/api/v1/namespaces/d/pods";
inline const std::string kJobs = "/apis/batch/v1/namespaces/d/jobs";
inline const std::string kJob = kJobs + "/j";
inline const std::string kKueue = "/apis/kueue.x-k8s.io/v1beta2";
inline const std::string kWorkloads = kKueue + "/namespaces/d/workloads";
inline const std::string kQueued = R"("kueue.x-k8s.io/queue-name":"q")";

struct JobOptions {
  std::string labels = kQueued;
  std::string annotations;
  int parallelism = 2;
  std::string spec = R"(,"completions":2,"suspend":true)";
  std::string pod =
      R"(,"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"a","operator":"Exists"}])";
  std::string pod_annotations = {};
};

class Workloads : public ::testing::Test {
 protected:
  Workloads() {
    Make("/api/v1/namespaces", R"({"metadata":{"name":"d"},"spec":{"finalizers":["kubernetes"]}})");
    MakeFlavor("f", R"("pool":"a")", R"({"key":"t","operator":"Exists","effect":"NoSchedule"})");
    api_.fault = [&](const env::HttpRequest& request) {
      ExpectAllowed(request);
      return FakeApi::Fault::kNone;
    };
    Pass(1);
  }
  // A template changes only of a Job that does not run, nor did, as its status has it.
  void ExpectAllowed(const env::HttpRequest& request) {
    if (request.target != kJob || request.method != Method::kPatch) return;
    if (request.body.view().find(R"("template")") == std::string_view::npos) return;
    EXPECT_EQ(Text(kJob, "/spec/suspend"), "true") << request.body.view();
    EXPECT_EQ(Text(kJob, "/status/startTime"), "none") << request.body.view();
  }
  // Of the Job or a Workload that is there.
  static bool IsOfJob(const env::HttpRequest& request) {
    return request.target.find("/jobs/j") != std::string::npos ||
           request.target.find("/workloads/") != std::string::npos;
  }
  void Make(const std::string& collection, const std::string& body) {
    const auto response = api_.Do(Method::kPost, collection, body);
    EXPECT_EQ(response.status, 201) << response.body.view();
  }
  // A ready one, of the flavor and of those that pods ask for themselves.
  void MakeNode(const std::string& name) {
    Make("/api/v1/nodes", R"({"metadata":{"name":")" + name +
                              R"(","labels":{"disk":"ssd","pool":"a"}},"status":{"conditions":[)"
                              R"({"type":"Ready","status":"True"}]}})");
  }
  void MakeFlavor(const std::string& name, const std::string& labels,
                  const std::string& tolerations = "") {
    Make(kKueue + "/resourceflavors",
         fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"nodeLabels":{{{}}},)"
                     R"("tolerations":[{}]}}}})",
                     name, labels, tolerations));
  }
  void MakeJob(const JobOptions& options = {}) {
    Make(kJobs,
         fmt::format(
             R"({{"metadata":{{"name":"j","labels":{{{}}},"annotations":{{{}}}}},)"
             R"("spec":{{"parallelism":{}{},"selector":{{"matchLabels":{{"app":"j"}}}},)"
             R"("template":{{"metadata":{{"labels":{{"app":"j","controller-uid":"x"}},)"
             R"("annotations":{{{}}}}},"spec":{{)"
             R"("restartPolicy":"Never","containers":[{{"name":"c","resources":{{"requests":)"
             R"({{"cpu":"1"}}}}}}]{}}}}}}}}})",
             options.labels, options.annotations, options.parallelism, options.spec,
             options.pod_annotations, options.pod));
    // As the API server labels the template of a Job whose selector it generates.
    Patch(kJobs + "/j", fmt::format(R"({{"spec":{{"template":{{"metadata":{{"labels":{{)"
                                    R"("batch.kubernetes.io/controller-uid":"{}"}}}}}}}}}})",
                                    Text(kJobs + "/j", "/metadata/uid")));
  }
  void Patch(const std::string& path, const std::string& body) {
    const auto response = api_.Do(Method::kPatch, path, body);
    EXPECT_EQ(response.status, 200) << response.body.view();
  }
  void Pass(int64_t seconds) { api_.Pass(controllers_, Duration::Seconds(seconds)); }
  std::string Text(const std::string& path, const std::string& pointer) {
    const api::Json* object = api_.Find(path);
    if (object == nullptr) return "gone";
    boost::system::error_code error;
    const api::Json* value = object->find_pointer(pointer, error);
    if (value == nullptr) return "none";
    return value->is_string() ? std::string(value->as_string()) : codec::PrintJson(*value);
  }
  std::vector<std::string> Paths(const std::string& part) { return api_.Paths(part); }
  // The only one.
  std::string Workload() {
    const std::vector<std::string> paths = Paths("/workloads/");
    EXPECT_EQ(paths.size(), 1u);
    return paths.empty() ? "" : paths.front();
  }
  // "True Reason: message"
  std::string Condition(const std::string& type) {
    const api::Json* object = api_.Find(Workload());
    boost::system::error_code error;
    const api::Json* list =
        object == nullptr ? nullptr : object->find_pointer("/status/conditions", error);
    if (list == nullptr) return "none";
    for (const api::Json& condition : list->as_array()) {
      if (condition.at("type") != api::Json(type)) continue;
      return fmt::format("{} {}: {}", std::string(condition.at("status").as_string()),
                         std::string(condition.at("reason").as_string()),
                         std::string(condition.at("message").as_string()));
    }
    return "none";
  }
  // What the scheduler writes. `conditions`: "Type=True".
  void Decide(const std::vector<std::string>& conditions, const std::string& more = "",
              const std::string& reason = "Said") {
    std::string text;
    for (const std::string& condition : conditions) {
      const size_t equals = condition.find('=');
      text += fmt::format(R"({{"type":"{}","status":"{}","reason":"{}","message":"so",)"
                          R"("lastTransitionTime":"2026-01-01T00:00:00Z"}},)",
                          condition.substr(0, equals), condition.substr(equals + 1), reason);
    }
    if (!text.empty()) text.pop_back();
    Patch(Workload() + "/status",
          fmt::format(R"({{"status":{{"conditions":[{}]{}}}}})", text, more));
  }
  // `more`: of what the pod set got.
  void Admit(const std::string& flavor = "f", int count = 2, const std::string& more = "") {
    Decide(
        {"QuotaReserved=True", "Admitted=True"},
        fmt::format(R"(,"admission":{{"clusterQueue":"cq","podSetAssignments":[{{"name":"main",)"
                    R"("flavors":{{"cpu":"{}"}},"resourceUsage":{{"cpu":"{}"}},"count":{}{}}}]}})",
                    flavor, count, count, more));
    Pass(1);
  }
  void Evict(const std::string& reason = "Preempted") {
    Decide({"QuotaReserved=True", "Admitted=True", "PodsReady=True", "Evicted=True"}, "", reason);
    Pass(1);
  }
  void SetPods(const std::string& status) {
    for (const std::string& pod : Paths("/pods/"))
      Patch(pod + "/status", R"({"status":{)" + status + "}}");
    Pass(1);
  }
  void ReadyPods() {
    SetPods(R"("phase":"Running","conditions":[{"type":"Ready","status":"True"}])");
  }
  // How the Job stands: "suspended" or "runs", parallelism, node selector and tolerations.
  std::string Stands() {
    return fmt::format("{} {} {} {}", Text(kJob, "/spec/suspend") == "true" ? "suspended" : "runs",
                       Text(kJob, "/spec/parallelism"),
                       Text(kJob, "/spec/template/spec/nodeSelector"),
                       Text(kJob, "/spec/template/spec/tolerations"));
  }
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    for (const std::string& path : Paths("/namespaces/d/events/")) {
      if (Text(path, "/source/component") == "workload-controller")
        events.push_back(Text(path, "/reason") + ": " + Text(path, "/message"));
    }
    std::ranges::sort(events);
    return events;
  }
  int64_t Writes(const std::string& part) {
    return std::ranges::count_if(
        api_.log, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  void ExpectAtRest() {
    const size_t before = api_.log.size();
    Pass(40);
    EXPECT_EQ(api_.log.size(), before) << api_.log.back();
  }

  FakeApi api_;
  Controllers controllers_{Options{}};
};

inline const std::string kHeld = R"(suspended 2 {"disk":"ssd"} [{"key":"a","operator":"Exists"}])";
inline const std::string kPlaced =
    R"(runs 2 {"disk":"ssd","pool":"a"} [{"key":"a","operator":"Exists"},)"
    R"({"key":"t","operator":"Exists","effect":"NoSchedule"}])";

}  // namespace berth::controllers
