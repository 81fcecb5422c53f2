// Goal: the production controllers and kubelets against the production API server and scheduler:
// what users see of Deployments, Jobs, namespaces and nodes. Method: all actors on one thread, a
// message delivered at once, a journal that never waits; the test is kubectl.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/apiserver.h"
#include "base/check.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "control/scheduler.h"
#include "controllers/controllers.h"
#include "env/actor.h"
#include "nodes/nodes.h"

namespace berth::sim {
namespace {

using env::Method;

// As `berth up` has it.
control::SchedulerOptions WithVolcano() {
  control::SchedulerOptions options;
  options.groups = true;
  options.scheduler_names.emplace_back("volcano");
  return options;
}

class Cluster {
 public:
  explicit Cluster(nodes::Options nodes)
      : server_(*apiserver::ApiServer::Make({.seed = 1}, {})),
        scheduler_(WithVolcano()),
        controllers_(controllers::Options{.root_ca = "PEM"}),
        nodes_(std::move(nodes)),
        parties_{{{&scheduler_, {}, {}}, {&controllers_, {}, {}}, {&nodes_, {}, {}}}} {}
  Cluster(const Cluster&) = delete;

  env::HttpResponse Do(Method method, std::string target, std::string body = {},
                       std::string type = "application/merge-patch+json") {
    const env::ExchangeId exchange{next_exchange_++};
    answer_.reset();
    mine_ = exchange;
    if (method == Method::kPost || method == Method::kDelete) type = "application/json";
    env::HttpRequest request{
        .method = method, .target = std::move(target), .body = Bytes(std::move(body))};
    request.headers = {{"content-type", std::move(type)}, {"accept", "application/json"}};
    to_server_.push_back(env::RequestArrived{exchange, admin_, std::move(request)});
    while (!answer_ && Once()) {
    }
    CHECK(answer_.has_value());
    return *answer_;
  }
  void Create(std::string target, std::string body) {
    const env::HttpResponse response = Do(Method::kPost, std::move(target), std::move(body));
    EXPECT_EQ(response.status, 201) << response.body.view();
  }
  void Patch(std::string target, std::string body) {
    const env::HttpResponse response = Do(Method::kPatch, std::move(target), std::move(body));
    EXPECT_EQ(response.status, 200) << response.body.view();
  }
  void Pass(int64_t seconds) {
    const Instant end = now_ + Duration::Seconds(seconds);
    while (true) {
      for (int i = 0; Once(); ++i) CHECK(i < 10'000'000);
      Instant next = server_.wake_at();
      for (const Party& party : parties_) next = std::min(next, party.actor->wake_at());
      if (next > end) break;
      now_ = std::max(now_, next);
    }
    now_ = end;
  }
  // A process that starts anew: what was on its way to or from the former one is lost.
  template <typename T>
  void Restart(T& actor, T fresh) {
    for (Party& party : parties_) {
      if (party.actor != &actor) continue;
      for (const auto& [exchange, call] : party.calls) {
        to_server_.push_back(env::ExchangeAbandoned{exchange});
      }
      party.calls.clear();
      party.inputs.clear();
    }
    actor = std::move(fresh);
  }

  api::Json Get(const std::string& target) {
    const env::HttpResponse response = Do(Method::kGet, target);
    if (response.status != 200) return nullptr;
    return *codec::ParseJson(response.body.view());
  }
  std::string Text(const std::string& target, const std::string& pointer) {
    const api::Json object = Get(target);
    if (object.is_null()) return "gone";
    boost::system::error_code error;
    const api::Json* value = object.find_pointer(pointer, error);
    if (value == nullptr) return "none";
    return value->is_string() ? std::string(value->as_string()) : codec::PrintJson(*value);
  }
  std::string Condition(const std::string& target, const std::string& type) {
    const api::Json object = Get(target);
    boost::system::error_code error;
    const api::Json* list =
        object.is_null() ? nullptr : object.find_pointer("/status/conditions", error);
    if (list == nullptr) return "none";
    for (const api::Json& condition : list->as_array()) {
      if (condition.at("type") == api::Json(type)) {
        return std::string(condition.at("status").as_string());
      }
    }
    return "none";
  }
  // "Running: 3, Succeeded: 1" of the pods of a namespace; "ready" counts apart.
  std::string Pods(const std::string& selector = "") {
    const api::Json list = Get("/api/v1/namespaces/default/pods" + selector);
    std::map<std::string, int> counts;
    for (const api::Json& item : list.at("items").as_array()) {
      const bool deleted = item.at("metadata").as_object().contains("deletionTimestamp");
      ++counts[deleted ? "Terminating" : std::string(item.at("status").at("phase").as_string())];
    }
    std::string text;
    for (const auto& [phase, count] : counts) text += fmt::format("{}: {} ", phase, count);
    return text;
  }

  [[nodiscard]] nodes::Nodes& nodes() { return nodes_; }
  [[nodiscard]] controllers::Controllers& controllers() { return controllers_; }
  [[nodiscard]] const std::vector<std::string>& refusals() const { return refusals_; }
  [[nodiscard]] int64_t writes() const { return writes_; }

 private:
  struct Party {
    env::Actor* actor = nullptr;
    std::deque<env::Input> inputs;
    std::map<env::ExchangeId, env::CallId> calls;
  };

  bool Once() {
    if (!to_server_.empty()) {
      env::Input input = std::move(to_server_.front());
      to_server_.pop_front();
      StepServer(std::move(input));
      return true;
    }
    for (Party& party : parties_) {
      if (party.inputs.empty()) continue;
      env::Input input = std::move(party.inputs.front());
      party.inputs.pop_front();
      StepParty(party, std::move(input));
      return true;
    }
    if (server_.wake_at() <= now_) {
      StepServer(env::Tick{});
      return true;
    }
    for (Party& party : parties_) {
      if (party.actor->wake_at() > now_) continue;
      StepParty(party, env::Tick{});
      return true;
    }
    return false;
  }

  void StepServer(env::Input input) {
    env::Outbox out;
    server_.Step(now_, std::move(input), out);
    for (env::Output& output : out) {
      if (const auto* append = std::get_if<env::AppendJournal>(&output)) {
        to_server_.push_back(env::JournalAppended{append->sequence});
      } else if (auto* respond = std::get_if<env::Respond>(&output)) {
        Answer(*respond);
      } else if (auto* frame = std::get_if<env::Frame>(&output)) {
        to_server_.push_back(env::StreamDrained{frame->exchange, frame->data.size()});
        Deliver(frame->exchange,
                [&](env::CallId call) { return env::StreamData{call, frame->data}; });
      } else if (const auto* end = std::get_if<env::EndStream>(&output)) {
        Deliver(end->exchange, [](env::CallId call) { return env::StreamEnded{call}; });
      }
    }
  }
  void Answer(env::Respond& respond) {
    if (respond.exchange == mine_) {
      answer_ = respond.response;
      return;
    }
    const auto target = targets_.find(respond.exchange);
    // Conflicts and absences are part of the game; anything else refused is a defect.
    const int status = respond.response.status;
    if (status >= 400 && status != 409 && status != 404 && status != 410) {
      refusals_.push_back(
          fmt::format("{} {} {}", target->second, status, respond.response.body.view()));
    }
    targets_.erase(target);
    Deliver(respond.exchange,
            [&](env::CallId call) { return env::Response{call, respond.response}; });
  }
  template <typename Make>
  void Deliver(env::ExchangeId exchange, Make make) {
    for (Party& party : parties_) {
      const auto call = party.calls.find(exchange);
      if (call != party.calls.end()) party.inputs.push_back(make(call->second));
    }
  }

  void StepParty(Party& party, env::Input input) {
    env::Outbox out;
    party.actor->Step(now_, std::move(input), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) {
        const env::ExchangeId exchange{next_exchange_++};
        party.calls[exchange] = send->call;
        targets_[exchange] = fmt::format("{} {} {}", env::ToString(send->request.method),
                                         send->request.target, send->request.body.view());
        if (send->request.method != Method::kGet) ++writes_;
        to_server_.push_back(env::RequestArrived{exchange, admin_, std::move(send->request)});
      } else if (const auto* cancel = std::get_if<env::CancelCall>(&output)) {
        std::erase_if(party.calls, [&](const auto& entry) {
          if (entry.second != cancel->call) return false;
          to_server_.push_back(env::ExchangeAbandoned{entry.first});
          return true;
        });
      }
    }
  }

  Instant now_ = Instant::FromSeconds(1'800'000'000);
  env::Peer admin_{.user = "admin", .groups = {"system:masters"}};
  apiserver::ApiServer server_;
  control::Scheduler scheduler_;
  controllers::Controllers controllers_;
  nodes::Nodes nodes_;
  std::array<Party, 3> parties_;
  std::deque<env::Input> to_server_;
  std::map<env::ExchangeId, std::string> targets_;
  std::vector<std::string> refusals_;
  int64_t writes_ = 0;
  uint64_t next_exchange_ = 1;
  env::ExchangeId mine_;
  std::optional<env::HttpResponse> answer_;
};

nodes::Options FourNodes() {
  nodes::Options options;
  options.nodes =
      nodes::MakeNodes({.capacity = {{"cpu", "8"}, {"memory", "16Gi"}, {"pods", "20"}}}, 4);
  return options;
}

class WorkloadsTest : public ::testing::Test {
 protected:
  WorkloadsTest() { cluster_.Pass(2); }
  ~WorkloadsTest() override {
    EXPECT_TRUE(cluster_.refusals().empty()) << cluster_.refusals().front();
  }
  void MakeDeployment(int replicas, const std::string& scheduler = "default-scheduler") {
    cluster_.Create(
        kDeployments,
        fmt::format(
            R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web"}},"spec":{{"replicas":{},
        "selector":{{"matchLabels":{{"app":"web"}}}},"template":{{"metadata":{{"labels":{{"app":"web"}}}},
        "spec":{{"schedulerName":"{}","containers":[{{"name":"c","image":"one","resources":{{"requests":{{"cpu":"500m"}}}}}}]}}}}}}}})",
            replicas, scheduler));
  }
  void MakeJob(const std::string& spec, const std::string& annotations,
               const std::string& labels = "") {
    cluster_.Create(
        kJobs,
        fmt::format(
            R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"j","labels":{{{}}}}},"spec":{{{}
        "template":{{"metadata":{{"annotations":{{{}}}}},"spec":{{"restartPolicy":"Never",
        "containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}}}}}})",
            labels, spec, annotations));
  }

  const std::string kDeployments = "/apis/apps/v1/namespaces/default/deployments";
  const std::string kJobs = "/apis/batch/v1/namespaces/default/jobs";
  const std::string kWeb = kDeployments + "/web";
  const std::string kGroups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
  Cluster cluster_{FourNodes()};
};

TEST_F(WorkloadsTest, NodesAreReadyAndNamespacesFurnished) {
  EXPECT_TRUE(cluster_.nodes().registered());
  for (const char* name : {"node-0000", "node-0003"}) {
    const std::string node = std::string("/api/v1/nodes/") + name;
    EXPECT_EQ(cluster_.Condition(node, "Ready"), "True");
    EXPECT_EQ(cluster_.Text(node, "/spec/taints"), "none");
    EXPECT_EQ(cluster_.Text(node, "/status/nodeInfo/kubeletVersion"), "v1.36.3");
  }
  EXPECT_EQ(cluster_.Text("/api/v1/namespaces/default/configmaps/kube-root-ca.crt", "/data/ca.crt"),
            "PEM");
  EXPECT_NE(cluster_.Text("/api/v1/namespaces/default/serviceaccounts/default", "/metadata/uid"),
            "gone");
  const int64_t before = cluster_.writes();
  cluster_.Pass(100);
  // Nothing but leases: ten a node.
  EXPECT_LE(cluster_.writes() - before, 4 * 11);
  EXPECT_GE(cluster_.writes() - before, 4 * 9);
}

TEST_F(WorkloadsTest, ADeploymentRunsRollsAndEnds) {
  MakeDeployment(10);
  const int64_t before = cluster_.writes();
  cluster_.Pass(5);
  EXPECT_EQ(cluster_.Pods(), "Running: 10 ");
  EXPECT_EQ(cluster_.Text(kWeb, "/status/availableReplicas"), "10");
  EXPECT_EQ(cluster_.Condition(kWeb, "Available"), "True");
  EXPECT_EQ(cluster_.Condition(kWeb, "Progressing"), "True");
  // A pod costs four writes: it is made, bound, told of and run; the rest is statuses of owners.
  EXPECT_LE(cluster_.writes() - before, 10 * 4 + 30);

  cluster_.Patch(kWeb,
                 R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}})");
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Pods(), "Running: 10 ");
  EXPECT_EQ(cluster_.Text(kWeb, "/status/updatedReplicas"), "10");
  EXPECT_EQ(cluster_.Text(kWeb, "/status/replicas"), "10");

  cluster_.Patch(kWeb, R"({"spec":{"replicas":3}})");
  cluster_.Pass(10);
  EXPECT_EQ(cluster_.Pods(), "Running: 3 ");

  EXPECT_EQ(cluster_.Do(Method::kDelete, kWeb).status, 200);
  cluster_.Pass(10);
  EXPECT_EQ(cluster_.Pods(), "");
  EXPECT_EQ(
      cluster_.Get("/apis/apps/v1/namespaces/default/replicasets").at("items").as_array().size(),
      0u);
}

// P07: the pods of each ReplicaSet have a group, which goes with the last of them.
TEST_F(WorkloadsTest, PodsOfVolcanosSchedulerRunInGroups) {
  MakeDeployment(4, "volcano");
  cluster_.Pass(10);
  EXPECT_EQ(cluster_.Pods(), "Running: 4 ");
  EXPECT_EQ(cluster_.Text(kGroups, "/items/0/status/phase"), "Running");
  EXPECT_EQ(cluster_.Text(kGroups, "/items/0/status/running"), "4");
  const std::string first = cluster_.Text(kGroups, "/items/0/metadata/uid");
  cluster_.Patch(
      kWeb,
      R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two","resources":{"requests":{"cpu":"1"}}}]}}}})");
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Pods(), "Running: 4 ");
  EXPECT_EQ(cluster_.Text(kGroups, "/items/1"), "none");
  EXPECT_EQ(cluster_.Text(kGroups, "/items/0/spec/minResources/cpu"), "1");
  EXPECT_NE(cluster_.Text(kGroups, "/items/0/metadata/uid"), first);
  const int64_t before = cluster_.writes();
  cluster_.Pass(100);
  EXPECT_LE(cluster_.writes() - before, 4 * 11);
  cluster_.Patch(kWeb, R"({"spec":{"replicas":0}})");
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Text(kGroups, "/items"), "[]");
}

TEST_F(WorkloadsTest, AJobRunsWaitsForRoomAndIsCounted) {
  MakeJob(R"("completions":100,"parallelism":60,)", R"("berth.dev/run-for":"10s")");
  cluster_.Pass(5);
  // 32 cpus, one a pod.
  EXPECT_EQ(cluster_.Pods(), "Pending: 28 Running: 32 ");
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Pods(), "Succeeded: 100 ");
  EXPECT_EQ(cluster_.Text(kJobs + "/j", "/status/succeeded"), "100");
  EXPECT_EQ(cluster_.Condition(kJobs + "/j", "Complete"), "True");
  EXPECT_EQ(cluster_.nodes().counts().running, 0);
  EXPECT_EQ(cluster_.nodes().counts().refused, 0);
  EXPECT_EQ(cluster_.Do(Method::kDelete, kJobs + "/j?propagationPolicy=Background").status, 200);
  cluster_.Pass(10);
  EXPECT_EQ(cluster_.Pods(), "");
}

TEST_F(WorkloadsTest, AJobThatFailsEndsSo) {
  MakeJob(R"("backoffLimit":1,)", R"("berth.dev/run-for":"1s","berth.dev/exit-code":"3")");
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Condition(kJobs + "/j", "Failed"), "True");
  EXPECT_EQ(cluster_.Text(kJobs + "/j", "/status/failed"), "2");
  EXPECT_EQ(cluster_.Pods(), "Failed: 2 ");
}

TEST_F(WorkloadsTest, SuspendingAJobFreesItsNodes) {
  MakeJob(R"("completions":8,"parallelism":8,"suspend":false,)", R"("berth.dev/run-for":"20s")");
  cluster_.Pass(5);
  EXPECT_EQ(cluster_.Pods(), "Running: 8 ");
  cluster_.Patch(kJobs + "/j", R"({"spec":{"suspend":true}})");
  cluster_.Pass(5);
  EXPECT_EQ(cluster_.Pods(), "");
  cluster_.Patch(kJobs + "/j", R"({"spec":{"suspend":false}})");
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Text(kJobs + "/j", "/status/succeeded"), "8");
  EXPECT_EQ(cluster_.Text(kJobs + "/j", "/status/failed"), "none");
}

// The test is who admits. A write that the server's rules of templates, pod sets and statuses refuse
// fails the test.
TEST_F(WorkloadsTest, AJobInAQueueRunsWhileItsWorkloadIsAdmitted) {
  const std::string kueue = "/apis/kueue.x-k8s.io/v1beta2";
  const std::string workloads = kueue + "/namespaces/default/workloads";
  const auto make_flavor = [&](const std::string& name, const std::string& os) {
    cluster_.Create(
        kueue + "/resourceflavors",
        fmt::format(R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor",)"
                    R"("metadata":{{"name":"{}"}},"spec":{{"nodeLabels":{{)"
                    R"("kubernetes.io/os":"{}"}},"tolerations":[{{"key":"{}",)"
                    R"("operator":"Exists"}}]}}}})",
                    name, os, name));
  };
  make_flavor("f", "linux");
  make_flavor("g", "none");
  MakeJob(R"("completions":6,"parallelism":4,)", R"("berth.dev/run-for":"20s")",
          R"("kueue.x-k8s.io/queue-name":"q")");
  cluster_.Pass(5);
  const auto workload = [&] {
    const api::Json list = cluster_.Get(workloads);
    const api::JsonArray& items = list.at("items").as_array();
    EXPECT_EQ(items.size(), 1u);
    return workloads + "/" + std::string(items.at(0).at("metadata").at("name").as_string());
  };
  const auto set = [&](const std::string& conditions, const std::string& more) {
    std::string text;
    for (const char letter : conditions) {
      const std::string type = letter == 'Q'   ? "QuotaReserved"
                               : letter == 'A' ? "Admitted"
                                               : "Evicted";
      text += fmt::format(R"({}{{"type":"{}","status":"True","reason":"Preempted","message":"m",)"
                          R"("lastTransitionTime":"2026-01-01T00:00:00Z"}})",
                          text.empty() ? "" : ",", type);
    }
    cluster_.Patch(workload() + "/status",
                   fmt::format(R"({{"status":{{"conditions":[{}]{}}}}})", text, more));
    cluster_.Pass(5);
  };
  const auto admit = [&](const std::string& flavor) {
    set("QA",
        fmt::format(R"(,"admission":{{"clusterQueue":"cq","podSetAssignments":[{{"name":"main",)"
                    R"("flavors":{{"cpu":"{}"}},"resourceUsage":{{"cpu":"4"}},"count":4}}]}})",
                    flavor));
  };
  EXPECT_EQ(cluster_.Pods(), "");
  EXPECT_EQ(cluster_.Text(workload(), "/spec/podSets/0/count"), "4");
  admit("g");
  EXPECT_EQ(cluster_.Pods(), "Pending: 4 ");
  set("QAE", "");
  EXPECT_EQ(cluster_.Pods(), "");
  EXPECT_EQ(cluster_.Text(kJobs + "/j", "/spec/template/spec/nodeSelector"), "none");
  EXPECT_EQ(cluster_.Text(kJobs + "/j", "/spec/template/spec/tolerations"), "none");
  EXPECT_EQ(cluster_.Condition(workload(), "QuotaReserved"), "False");
  EXPECT_EQ(cluster_.Text(workload(), "/status/admission"), "none");
  admit("f");
  EXPECT_EQ(cluster_.Pods(), "Running: 4 ");
  EXPECT_EQ(cluster_.Condition(workload(), "PodsReady"), "True");
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Pods(), "Succeeded: 6 ");
  EXPECT_EQ(cluster_.Condition(workload(), "Finished"), "True");
  EXPECT_EQ(cluster_.Text(workload(), "/status/reclaimablePods"), R"([{"count":2,"name":"main"}])");
  const std::string version = cluster_.Text(workload(), "/metadata/resourceVersion");
  cluster_.Pass(100);
  EXPECT_EQ(cluster_.Text(workload(), "/metadata/resourceVersion"), version);
  EXPECT_EQ(cluster_.Do(Method::kDelete, kJobs + "/j?propagationPolicy=Background").status, 200);
  cluster_.Pass(10);
  EXPECT_EQ(cluster_.Get(workloads).at("items").as_array().size(), 0u);
}

TEST_F(WorkloadsTest, ALostNodesPodsAreReplacedElsewhere) {
  MakeDeployment(8);
  cluster_.Pass(5);
  EXPECT_TRUE(cluster_.nodes().SetOnline("node-0001", false));
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Condition("/api/v1/nodes/node-0001", "Ready"), "Unknown");
  cluster_.Pass(400);
  EXPECT_EQ(cluster_.Text(kWeb, "/status/availableReplicas"), "8");
  const api::Json list = cluster_.Get("/api/v1/namespaces/default/pods");
  for (const api::Json& pod : list.at("items").as_array()) {
    if (pod.at("metadata").as_object().contains("deletionTimestamp")) continue;
    EXPECT_NE(pod.at("spec").at("nodeName"), api::Json("node-0001"));
  }
  // Its kubelet comes back and ends what it was told to end.
  EXPECT_TRUE(cluster_.nodes().SetOnline("node-0001", true));
  cluster_.Pass(40);
  EXPECT_EQ(cluster_.Condition("/api/v1/nodes/node-0001", "Ready"), "True");
  EXPECT_EQ(cluster_.Pods(), "Running: 8 ");
}

TEST_F(WorkloadsTest, ANamespaceIsEmptiedAndGoes) {
  cluster_.Create("/api/v1/namespaces",
                  R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}})");
  cluster_.Create(
      "/apis/batch/v1/namespaces/x/jobs",
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"parallelism":3,
      "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})");
  cluster_.Pass(5);
  EXPECT_EQ(cluster_.Do(Method::kDelete, "/api/v1/namespaces/x").status, 200);
  cluster_.Pass(20);
  EXPECT_TRUE(cluster_.Get("/api/v1/namespaces/x").is_null());
  EXPECT_EQ(cluster_.Get("/api/v1/pods?fieldSelector=metadata.namespace%3Dx")
                .at("items")
                .as_array()
                .size(),
            0u);
}

TEST_F(WorkloadsTest, RestartedProcessesGoOn) {
  MakeDeployment(6);
  MakeJob(R"("completions":20,"parallelism":5,)", R"("berth.dev/run-for":"3s")");
  for (int i = 0; i < 6; ++i) {
    cluster_.Pass(3);
    cluster_.Restart(cluster_.nodes(), nodes::Nodes(FourNodes()));
    cluster_.Pass(1);
    cluster_.Restart(cluster_.controllers(),
                     controllers::Controllers({.seed = 7, .root_ca = "PEM"}));
  }
  cluster_.Pass(60);
  EXPECT_EQ(cluster_.Text(kJobs + "/j", "/status/succeeded"), "20");
  EXPECT_EQ(cluster_.Text(kWeb, "/status/availableReplicas"), "6");
  EXPECT_EQ(cluster_.Pods("?labelSelector=app%3Dweb"), "Running: 6 ");
  EXPECT_EQ(cluster_.nodes().counts().running, 6);
}

// ---- Kinds that users define ------------------------------------------------------------------

class OwnersTest : public WorkloadsTest {
 protected:
  OwnersTest() { Define("v1", "v1"); }

  // Serves some of "v1" and "v2" and stores one.
  void Define(std::string_view served, std::string_view stored, std::string_view version = "") {
    std::string versions;
    for (const std::string_view name : {"v1", "v2"}) {
      versions += fmt::format(
          R"({}{{"name":"{}","served":{},"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}})",
          versions.empty() ? "" : ",", name, served.find(name) != std::string_view::npos,
          name == stored);
    }
    const std::string body = fmt::format(
        R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{{"name":"apps.x.io"{}}},"spec":{{"group":"x.io","scope":"Namespaced",
        "names":{{"plural":"apps","singular":"app","kind":"App"}},"versions":[{}]}}}})",
        version, versions);
    if (version.empty()) {
      cluster_.Create(kDefinitions, body);
    } else {
      cluster_.Patch(kDefinition, body);
    }
    cluster_.Pass(1);
  }
  std::string Owners(const std::string& name, const std::string& version = "v1") {
    return fmt::format(
        R"("ownerReferences":[{{"apiVersion":"x.io/{}","kind":"App","name":"{}","uid":"{}",
        "blockOwnerDeletion":true}}])",
        version, name, cluster_.Text(kApps + "/" + name, "/metadata/uid"));
  }
  void MakeApp(const std::string& name, const std::string& more = "") {
    cluster_.Create(
        kApps,
        fmt::format(R"({{"apiVersion":"x.io/v1","kind":"App","metadata":{{"name":"{}"{}}}}})", name,
                    more.empty() ? "" : "," + more));
  }
  void MakeMap(const std::string& name, const std::string& more) {
    cluster_.Create(
        kMaps,
        fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}",{}}}}})",
                    name, more));
  }
  bool Is(const std::string& path) { return !cluster_.Get(path).is_null(); }

  const std::string kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const std::string kDefinition = kDefinitions + "/apps.x.io";
  const std::string kApps = "/apis/x.io/v1/namespaces/default/apps";
  const std::string kMaps = "/api/v1/namespaces/default/configmaps";
};

TEST_F(OwnersTest, WhatAUsersObjectOwnsGoesWithIt) {
  MakeApp("a");
  MakeMap("m", Owners("a"));
  MakeApp("b", Owners("a"));
  MakeMap("n", Owners("b"));
  cluster_.Pass(5);
  EXPECT_TRUE(Is(kMaps + "/m") && Is(kMaps + "/n") && Is(kApps + "/b"));
  cluster_.Do(Method::kDelete, kApps + "/a");
  cluster_.Pass(5);
  EXPECT_FALSE(Is(kMaps + "/m") || Is(kMaps + "/n") || Is(kApps + "/b"));
}

TEST_F(OwnersTest, ForegroundAndOrphanAreOfUsersObjectsToo) {
  MakeApp("a");
  MakeMap("m", Owners("a") + R"(,"finalizers":["x.io/hold"])");
  MakeApp("b", Owners("a"));
  cluster_.Do(Method::kDelete, kApps + "/a", R"({"propagationPolicy":"Foreground"})");
  cluster_.Pass(5);
  EXPECT_TRUE(Is(kApps + "/a") && Is(kMaps + "/m"));
  EXPECT_FALSE(Is(kApps + "/b"));
  cluster_.Patch(kMaps + "/m", R"({"metadata":{"finalizers":null}})");
  cluster_.Pass(5);
  EXPECT_FALSE(Is(kApps + "/a") || Is(kMaps + "/m"));

  MakeApp("a");
  MakeMap("m", Owners("a"));
  cluster_.Do(Method::kDelete, kApps + "/a", R"({"propagationPolicy":"Orphan"})");
  cluster_.Pass(5);
  EXPECT_FALSE(Is(kApps + "/a"));
  EXPECT_EQ(cluster_.Text(kMaps + "/m", "/metadata/ownerReferences"), "none");
}

TEST_F(OwnersTest, WithADefinitionGoWhatItsObjectsOwn) {
  MakeApp("a");
  MakeMap("m", Owners("a"));
  cluster_.Pass(2);
  cluster_.Do(Method::kDelete, kDefinition);
  cluster_.Pass(5);
  EXPECT_FALSE(Is(kDefinition) || Is(kMaps + "/m"));
  // It comes back empty, and is followed again.
  Define("v1", "v1");
  MakeApp("a");
  MakeMap("m", Owners("a"));
  cluster_.Do(Method::kDelete, kApps + "/a");
  cluster_.Pass(5);
  EXPECT_FALSE(Is(kMaps + "/m"));
}

// A version that is served no more says nothing of the objects; another is read by.
TEST_F(OwnersTest, AVersionThatGoesTakesNothingAlong) {
  MakeApp("a");
  MakeMap("m", Owners("a"));
  cluster_.Pass(2);
  const auto change = [&](std::string_view served, std::string_view stored) {
    Define(served, stored,
           fmt::format(R"(,"resourceVersion":"{}")",
                       cluster_.Text(kDefinition, "/metadata/resourceVersion")));
    cluster_.Pass(40);
    EXPECT_TRUE(Is(kMaps + "/m"));
  };
  change("v1 v2", "v1");
  change("v2", "v1");
  change("", "v1");
  change("v1 v2", "v2");
  cluster_.Do(Method::kDelete, kApps + "/a");
  cluster_.Pass(5);
  EXPECT_FALSE(Is(kMaps + "/m"));
}

TEST_F(OwnersTest, ANamespaceThatEndsTakesUsersObjectsAlong) {
  cluster_.Create("/api/v1/namespaces",
                  R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}})");
  const std::string space = "/api/v1/namespaces/n";
  const std::string inside = "/apis/x.io/v1/namespaces/n/apps";
  for (const std::string name : {"free", "held"}) {
    cluster_.Create(inside,
                    fmt::format(R"({{"apiVersion":"x.io/v1","kind":"App","metadata":{{"name":"{}",
                    "finalizers":[{}]}}}})",
                                name, name == "held" ? R"("x.io/hold")" : ""));
  }
  MakeApp("elsewhere");
  cluster_.Do(Method::kDelete, space);
  cluster_.Pass(20);
  EXPECT_FALSE(Is(inside + "/free"));
  EXPECT_TRUE(Is(inside + "/held") && Is(space) && Is(kApps + "/elsewhere"));
  EXPECT_NE(cluster_.Text(space, "/status/conditions").find("apps.x.io has 1 resource instances"),
            std::string::npos)
      << cluster_.Text(space, "/status/conditions");
  cluster_.Patch(inside + "/held", R"({"metadata":{"finalizers":null}})");
  cluster_.Pass(20);
  EXPECT_FALSE(Is(space));
}

// What was deleted while nobody looked is read for.
TEST_F(OwnersTest, ARestartedControllerCollectsWhatIsLeft) {
  MakeApp("a");
  MakeMap("m", Owners("a"));
  cluster_.Pass(2);
  cluster_.Restart(cluster_.controllers(), controllers::Controllers({.root_ca = "PEM"}));
  cluster_.Do(Method::kDelete, kApps + "/a");
  cluster_.Pass(40);
  EXPECT_FALSE(Is(kMaps + "/m"));
}

}  // namespace
}  // namespace berth::sim
