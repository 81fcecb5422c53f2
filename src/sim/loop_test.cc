// Goal: the production API server and the production scheduler bind pods together. Method: both
// actors on one thread, a message delivered at once, a journal that never waits; the test is
// kubectl and the kubelets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "apiserver/apiserver.h"
#include "base/check.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "control/scheduler.h"
#include "env/actor.h"

namespace berth::sim {
namespace {

apiserver::ApiServer MakeServer() {
  auto server = apiserver::ApiServer::Make({.seed = 1}, {});
  CHECK(server.has_value());
  return std::move(*server);
}

class Cluster {
 public:
  explicit Cluster(control::SchedulerOptions options = {})
      : server_(MakeServer()), scheduler_(std::move(options)) {}

  // One request of an administrator; runs the cluster until it is answered.
  env::HttpResponse Do(env::Method method, std::string target, std::string body = {},
                       std::string type = "application/json") {
    const env::ExchangeId exchange{next_exchange_++};
    answer_.reset();
    mine_ = exchange;
    env::HttpRequest request{.method = method,
                             .target = std::move(target),
                             .headers = {},
                             .body = Bytes(std::move(body))};
    request.headers.push_back({"content-type", std::move(type)});
    request.headers.push_back({"accept", "application/json"});
    ToServer(
        env::RequestArrived{.exchange = exchange, .peer = admin_, .request = std::move(request)});
    for (int i = 0; i < 10'000 && !answer_; ++i) {
      if (!Once()) break;
    }
    CHECK(answer_.has_value());
    return *answer_;
  }
  void Create(std::string target, std::string body) {
    const env::HttpResponse response = Do(env::Method::kPost, std::move(target), std::move(body));
    EXPECT_EQ(response.status, 201) << response.body.view();
  }
  // A node that its kubelet and the node controller have made ready: without the taint it is
  // created with.
  void CreateNode(std::string_view name, std::string body) {
    Create("/api/v1/nodes", std::move(body));
    const env::HttpResponse response =
        Do(env::Method::kPatch, fmt::format("/api/v1/nodes/{}", name),
           R"({"spec":{"taints":null}})", "application/merge-patch+json");
    EXPECT_EQ(response.status, 200) << response.body.view();
  }
  // Until nothing is left to do now.
  void Settle() {
    for (int i = 0; i < 100'000; ++i) {
      if (!Once()) return;
    }
    ADD_FAILURE() << "the cluster does not come to rest";
  }
  void Pass(Duration duration) {
    const Instant end = now_ + duration;
    while (true) {
      Settle();
      const Instant next = std::min(server_.wake_at(), scheduler_.wake_at());
      if (next > end) break;
      now_ = std::max(now_, next);
    }
    now_ = end;
  }
  api::Pod Pod(std::string_view name) {
    const env::HttpResponse response =
        Do(env::Method::kGet, fmt::format("/api/v1/namespaces/default/pods/{}", name));
    const auto pod = codec::DecodePod(response.body.view());
    CHECK(pod.has_value());
    return *pod;
  }
  // What was on its way to the former one is lost.
  void RestartScheduler() {
    scheduler_ = control::Scheduler({});
    to_scheduler_.clear();
    for (const auto& [exchange, call] : calls_) {
      ToServer(env::ExchangeAbandoned{.exchange = exchange});
    }
    calls_.clear();
  }
  [[nodiscard]] control::Scheduler& scheduler() { return scheduler_; }

 private:
  // One step of whoever has something to do.
  bool Once() {
    if (!to_server_.empty()) {
      env::Input input = std::move(to_server_.front());
      to_server_.pop_front();
      StepServer(std::move(input));
      return true;
    }
    if (!to_scheduler_.empty()) {
      env::Input input = std::move(to_scheduler_.front());
      to_scheduler_.pop_front();
      StepScheduler(std::move(input));
      return true;
    }
    if (server_.wake_at() <= now_) {
      StepServer(env::Tick{});
      return true;
    }
    if (scheduler_.wake_at() <= now_) {
      StepScheduler(env::Tick{});
      return true;
    }
    return false;
  }
  void ToServer(env::Input input) { to_server_.push_back(std::move(input)); }

  void StepServer(env::Input input) {
    env::Outbox out;
    server_.Step(now_, std::move(input), out);
    for (env::Output& output : out) std::visit([&](auto& value) { OfServer(value); }, output);
  }
  void OfServer(env::AppendJournal& append) {
    ToServer(env::JournalAppended{.sequence = append.sequence});
  }
  void OfServer(env::Respond& respond) {
    if (respond.exchange == mine_) {
      answer_ = respond.response;
      return;
    }
    const auto call = calls_.find(respond.exchange);
    if (call == calls_.end()) return;
    to_scheduler_.emplace_back(env::Response{.call = call->second, .response = respond.response});
  }
  void OfServer(env::Frame& frame) {
    ToServer(env::StreamDrained{.exchange = frame.exchange, .bytes = frame.data.size()});
    const auto call = calls_.find(frame.exchange);
    if (call == calls_.end()) return;
    to_scheduler_.emplace_back(env::StreamData{.call = call->second, .data = frame.data});
  }
  void OfServer(env::EndStream& end) {
    const auto call = calls_.find(end.exchange);
    if (call != calls_.end()) to_scheduler_.emplace_back(env::StreamEnded{.call = call->second});
  }
  template <typename T>
  void OfServer(T&) {}

  void StepScheduler(env::Input input) {
    env::Outbox out;
    scheduler_.Step(now_, std::move(input), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) {
        const env::ExchangeId exchange{next_exchange_++};
        calls_[exchange] = send->call;
        ToServer(env::RequestArrived{
            .exchange = exchange, .peer = admin_, .request = std::move(send->request)});
      }
      if (const auto* cancel = std::get_if<env::CancelCall>(&output)) {
        for (const auto& [exchange, call] : calls_) {
          if (call == cancel->call) ToServer(env::ExchangeAbandoned{.exchange = exchange});
        }
        std::erase_if(calls_, [&](const auto& entry) { return entry.second == cancel->call; });
      }
    }
  }

  Instant now_ = Instant::FromSeconds(1'800'000'000);
  env::Peer admin_{.user = "admin", .groups = {"system:masters"}};
  apiserver::ApiServer server_;
  control::Scheduler scheduler_;
  std::deque<env::Input> to_server_;
  std::deque<env::Input> to_scheduler_;
  std::map<env::ExchangeId, env::CallId> calls_;
  uint64_t next_exchange_ = 1;
  env::ExchangeId mine_;
  std::optional<env::HttpResponse> answer_;
};

constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";

std::string NodeJson(std::string_view name, std::string_view cpu, std::string_view extra = "") {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}"}},"status":{{"capacity":{{"cpu":"{}","memory":"8Gi","pods":"110"{}}},)"
      R"("allocatable":{{"cpu":"{}","memory":"8Gi","pods":"110"{}}},"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
      name, cpu, extra, cpu, extra);
}

std::string PodJson(std::string_view name, std::string_view requests, std::string_view spec = "") {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"default"}},"spec":{{{}"containers":[{{"name":"c",)"
      R"("image":"i","resources":{{"requests":{{{}}},"limits":{{{}}}}}}}]}}}})",
      name, spec, requests, requests);
}

const api::PodCondition* Scheduled(const api::Pod& pod) {
  for (const api::PodCondition& condition : pod.conditions) {
    if (condition.type == "PodScheduled") return &condition;
  }
  return nullptr;
}

TEST(Loop, PodsAreBoundAndUsersAreTold) {
  Cluster cluster;
  cluster.Settle();
  cluster.CreateNode("n1", NodeJson("n1", "2"));
  cluster.CreateNode("n2", NodeJson("n2", "2"));
  cluster.Create(std::string(kPods), PodJson("a", R"("cpu":"1500m")"));
  cluster.Create(std::string(kPods), PodJson("b", R"("cpu":"1500m")"));
  cluster.Create(std::string(kPods), PodJson("c", R"("cpu":"1500m")"));
  cluster.Pass(Duration::Seconds(30));
  const api::Pod a = cluster.Pod("a");
  const api::Pod b = cluster.Pod("b");
  const api::Pod c = cluster.Pod("c");
  EXPECT_FALSE(a.node_name.empty());
  EXPECT_FALSE(b.node_name.empty());
  EXPECT_NE(a.node_name, b.node_name);
  ASSERT_NE(Scheduled(a), nullptr);
  EXPECT_EQ(Scheduled(a)->status, "True");
  EXPECT_TRUE(c.node_name.empty());
  ASSERT_NE(Scheduled(c), nullptr);
  EXPECT_EQ(Scheduled(c)->status, "False");
  EXPECT_EQ(Scheduled(c)->reason, "Unschedulable");
  EXPECT_EQ(Scheduled(c)->message, "0/2 nodes are available: 2 Insufficient cpu.");
  const env::HttpResponse events =
      cluster.Do(env::Method::kGet, "/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_NE(events.body.view().find("Successfully assigned default/a to " + a.node_name),
            std::string_view::npos);
  EXPECT_NE(events.body.view().find("FailedScheduling"), std::string_view::npos);

  // Room is made: the pod that waits gets it.
  cluster.Do(env::Method::kDelete, std::string(kPods) + "/a?gracePeriodSeconds=0");
  cluster.Pass(Duration::Seconds(30));
  EXPECT_EQ(cluster.Pod("c").node_name, a.node_name);
  EXPECT_EQ(cluster.scheduler().engine().counters().missed_wakes, 0u);
  EXPECT_EQ(cluster.scheduler().counters().undecodable, 0u);
}

TEST(Loop, SharesOfGpusGetTheirDevices) {
  Cluster cluster;
  cluster.CreateNode("g1", NodeJson("g1", "64", R"(,"berth.dev/gpu-milli":"2000")"));
  for (const std::string_view name : {"a", "b", "c"}) {
    cluster.Create(std::string(kPods), PodJson(name, R"("berth.dev/gpu-milli":"600")"));
  }
  cluster.Pass(Duration::Seconds(30));
  // Two shares of 600 never share a device; who is left over is the uid's matter.
  std::multiset<std::string> devices;
  for (const std::string_view name : {"a", "b", "c"}) {
    const api::Pod pod = cluster.Pod(name);
    devices.emplace(api::Find(pod.meta.annotations, "berth.dev/gpu-index").value_or("none"));
  }
  EXPECT_EQ(devices, (std::multiset<std::string>{"0", "1", "none"}));
}

// Terminal pods leave the list-watch of pods, and their claims end.
TEST(Loop, APodThatFinishesMakesRoom) {
  Cluster cluster;
  cluster.CreateNode("n1", NodeJson("n1", "1"));
  cluster.Create(std::string(kPods), PodJson("a", R"("cpu":"1")"));
  cluster.Pass(Duration::Seconds(5));
  cluster.Create(std::string(kPods), PodJson("b", R"("cpu":"1")"));
  cluster.Pass(Duration::Seconds(5));
  ASSERT_EQ(cluster.Pod("a").node_name, "n1");
  ASSERT_EQ(cluster.Pod("b").node_name, "");
  const env::HttpResponse response =
      cluster.Do(env::Method::kPatch, std::string(kPods) + "/a/status",
                 R"({"status":{"phase":"Succeeded"}})", "application/merge-patch+json");
  ASSERT_EQ(response.status, 200) << response.body.view();
  cluster.Pass(Duration::Seconds(15));
  EXPECT_EQ(cluster.Pod("b").node_name, "n1");
}

// A scheduler that starts anew finds what the former one did, from the API alone, and goes on.
TEST(Loop, ARestartedSchedulerGoesOn) {
  Cluster cluster;
  cluster.CreateNode("n1", NodeJson("n1", "2"));
  cluster.Create(std::string(kPods), PodJson("a", R"("cpu":"1")"));
  cluster.Pass(Duration::Seconds(5));
  cluster.RestartScheduler();
  cluster.Create(std::string(kPods), PodJson("b", R"("cpu":"1")"));
  cluster.Create(std::string(kPods), PodJson("c", R"("cpu":"1")"));
  cluster.Pass(Duration::Seconds(15));
  const int placed =
      (cluster.Pod("b").node_name.empty() ? 0 : 1) + (cluster.Pod("c").node_name.empty() ? 0 : 1);
  EXPECT_EQ(placed, 1);
}

TEST(Loop, GatedPodsWaitForTheirGates) {
  Cluster cluster;
  cluster.CreateNode("n1", NodeJson("n1", "2"));
  cluster.Create(std::string(kPods),
                 PodJson("a", R"("cpu":"1")", R"("schedulingGates":[{"name":"example.com/g"}],)"));
  cluster.Pass(Duration::Seconds(30));
  ASSERT_NE(Scheduled(cluster.Pod("a")), nullptr);
  EXPECT_EQ(Scheduled(cluster.Pod("a"))->reason, "SchedulingGated");
  EXPECT_EQ(cluster
                .Do(env::Method::kPatch, std::string(kPods) + "/a",
                    R"({"spec":{"schedulingGates":null}})", "application/merge-patch+json")
                .status,
            200);
  cluster.Pass(Duration::Seconds(30));
  EXPECT_EQ(cluster.Pod("a").node_name, "n1");
}

}  // namespace
}  // namespace berth::sim
