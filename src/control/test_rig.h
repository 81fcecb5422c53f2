#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/scheduler.h"

// A scheduler with a scripted API server: the test answers each request by hand and reads what the
// scheduler sends.
namespace berth::control {

struct PodSpec {
  std::string name = "p";
  std::string uid = "u-p";
  int version = 10;
  std::string node = {};
  int64_t cpu_milli = 500;
  std::string scheduler = "default-scheduler";
  std::string extra_meta = {};
  std::string extra_spec = {};
  std::string extra_status = {};
  int32_t priority = 0;
};

inline std::string PodJson(const PodSpec& pod) {
  return fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","namespace":"ns","uid":"{}","resourceVersion":"{}",)"
      R"("creationTimestamp":"2026-01-01T00:00:00Z"{}}},"spec":{{"schedulerName":"{}","priority":{}{}{},"containers":[{{"name":"c","image":"i",)"
      R"("resources":{{"requests":{{"cpu":"{}m"}}}}}}]}},"status":{{"phase":"Pending"{}}}}})",
      pod.name, pod.uid, pod.version, pod.extra_meta, pod.scheduler, pod.priority,
      pod.node.empty() ? "" : fmt::format(R"(,"nodeName":"{}")", pod.node), pod.extra_spec,
      pod.cpu_milli, pod.extra_status);
}

inline std::string NodeJson(std::string_view name, int version, int64_t cpu_milli = 1'000) {
  return fmt::format(
      R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"{1}"}},"spec":{{}},)"
      R"("status":{{"allocatable":{{"cpu":"{2}m","memory":"64Gi","pods":"110"}},)"
      R"("capacity":{{"cpu":"{2}m","memory":"64Gi","pods":"110"}}}}}})",
      name, version, cpu_milli);
}

inline std::string ListJson(const std::vector<std::string>& items, std::string_view next = "") {
  std::string body =
      fmt::format(R"({{"metadata":{{"resourceVersion":"100","continue":"{}"}},"items":[)", next);
  for (size_t i = 0; i < items.size(); ++i) body += (i > 0 ? "," : "") + items[i];
  return body + "]}";
}

class Rig {
 public:
  explicit Rig(SchedulerOptions options = {}) : scheduler(std::move(options)) {}

  // Lists what there is and opens the watches.
  void Start(const std::vector<std::string>& pods, const std::vector<std::string>& nodes) {
    Tick();
    ASSERT_EQ(inbox.size(),
              2u + (scheduler.preempts() ? 1 : 0) + (scheduler.places_groups() ? 2 : 0) +
                  (scheduler.reads_volumes() ? 7 : 0) + (scheduler.spreads_by_default() ? 4 : 0) +
                  (scheduler.reads_namespaces() && !scheduler.gives_quota() ? 1 : 0) +
                  (scheduler.gives_quota() ? 10 : 0) +
                  (scheduler.places_groups() || scheduler.gives_quota() ? 1 : 0));
    while (!inbox.empty()) {
      const env::SendRequest request = Take();
      const std::string kind = KindOf(request.request.target);
      if (request.stream) {
        streams[kind] = request.call;
        Answer(request, 200, "");
      } else {
        Answer(request, 200,
               kind == "pods"    ? ListJson(pods)
               : kind == "nodes" ? ListJson(nodes)
                                 : ListJson({}));
      }
    }
    Settle();
  }
  // What a list or watch is of, as Event() names it.
  static std::string KindOf(std::string_view target) {
    const std::string_view path = target.substr(0, target.find('?'));
    const std::string plural(path.substr(path.rfind('/') + 1));
    if (plural == "podgroups") return "groups";
    if (plural == "priorityclasses") return "classes";
    return plural == "poddisruptionbudgets" ? "budgets" : plural;
  }
  void Step(env::Input input) {
    env::Outbox out;
    scheduler.Step(now, std::move(input), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) inbox.push_back(std::move(*send));
      if (auto* log = std::get_if<env::Log>(&output)) logs.push_back(log->text);
      if (auto* respond = std::get_if<env::Respond>(&output)) response = respond->response;
    }
  }
  void Tick() { Step(env::Tick{}); }
  // Ticks as an executor does while it is wanted now.
  void Settle() {
    for (int i = 0; i < 100 && scheduler.wake_at() <= now; ++i) Tick();
    EXPECT_GT(scheduler.wake_at(), now);
  }
  void Pass(Duration duration) {
    const Instant end = now + duration;
    while (scheduler.wake_at() <= end) {
      now = std::max(now, scheduler.wake_at());
      Settle();
    }
    now = end;
  }
  void Answer(const env::SendRequest& request, int status, std::string body) {
    Step(env::Response{
        .call = request.call,
        .response = {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  void Event(const std::string& kind, std::string_view type, const std::string& object) {
    Step(env::StreamData{
        .call = streams[kind],
        .data = Bytes(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object))});
    Settle();
  }
  env::SendRequest Take() {
    env::SendRequest request = std::move(inbox.front());
    inbox.pop_front();
    return request;
  }
  // The first waiting request whose target contains the text, taken out; a call of 0 when there is
  // none.
  env::SendRequest TakeOf(std::string_view text) {
    for (auto it = inbox.begin(); it != inbox.end(); ++it) {
      if (it->request.target.find(text) == std::string::npos) continue;
      env::SendRequest request = std::move(*it);
      inbox.erase(it);
      return request;
    }
    return {};
  }
  env::SendRequest TakeBinding() { return TakeOf("/binding"); }
  std::string Get(std::string target) {
    Step(env::RequestArrived{
        .exchange = {1},
        .peer = {},
        .request = {
            .method = env::Method::kGet, .target = std::move(target), .headers = {}, .body = {}}});
    return std::string(response.body.view());
  }
  [[nodiscard]] model::PodStage StageOf(std::string_view uid) const {
    const model::State& state = scheduler.engine().state();
    return model::StageOf(state.pods().at(state.FindPod(uid)));
  }
  [[nodiscard]] int64_t Held(std::string_view node) const {
    const model::State& state = scheduler.engine().state();
    return state.ledger().nodes().held(model::kCpu, state.FindNode(node).value);
  }

  Instant now = Instant::FromSeconds(1'800'000'000);
  Scheduler scheduler;
  std::deque<env::SendRequest> inbox;
  std::map<std::string, env::CallId> streams;
  std::vector<std::string> logs;
  env::HttpResponse response;
};

inline std::string TargetOf(const env::SendRequest& request) {
  const std::string_view body = request.request.body.view();
  const size_t at = body.find(R"("kind":"Node","name":")");
  if (at == std::string_view::npos) return "";
  const std::string_view rest = body.substr(at + 22);
  return std::string(rest.substr(0, rest.find('"')));
}

}  // namespace berth::control
