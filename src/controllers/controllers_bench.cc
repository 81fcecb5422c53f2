// What a pod of a ReplicaSet costs the controllers: its creation, three events of watches, its share
// of the owner's statuses and Events.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <deque>
#include <map>
#include <set>
#include <string>

#include "base/check.h"
#include "client/settle.h"
#include "controllers/controllers.h"

namespace berth::controllers {
namespace {

constexpr int64_t kStepsMax = int64_t{1} << 40;  // More than any run takes.

// Answers as the API server, the scheduler and the kubelets do.
class Echo {
 public:
  Echo(int64_t sets, int64_t replicas)
      : sets_(sets), replicas_(replicas), controllers_(Options{}) {}

  void Run() {
    const auto take = [this](const env::Output& output) {
      if (const auto* send = std::get_if<env::SendRequest>(&output)) Answer(*send);
    };
    while (true) {
      CHECK(client::Settle(controllers_, now_, inputs_, take, kStepsMax));
      if (controllers_.wake_at() > now_ + Duration::Seconds(1)) return;
      now_ = controllers_.wake_at();
    }
  }
  [[nodiscard]] const Controllers& controllers() const { return controllers_; }
  [[nodiscard]] int64_t pods() const { return pods_; }

 private:
  [[nodiscard]] std::string SetText(int64_t set, std::string_view status, int64_t version) const {
    return fmt::format(
        R"({{"metadata":{{"name":"set-{0}","namespace":"default","uid":"set-{0}","generation":1,)"
        R"("resourceVersion":"{1}","labels":{{"app":"a{0}"}}}},"spec":{{"replicas":{2},)"
        R"("selector":{{"matchLabels":{{"app":"a{0}"}}}},"template":{{"metadata":{{"labels":)"
        R"({{"app":"a{0}","team":"b"}}}},"spec":{{"restartPolicy":"Always","containers":[{{"name":"c",)"
        R"("image":"registry.k8s.io/pause:3.10","resources":{{"requests":{{"cpu":"100m","memory":"500Mi"}}}}}}]}}}}}},)"
        R"("status":{3}}})",
        set, version, replicas_, status);
  }
  void Reply(env::CallId call, int status, std::string body) {
    inputs_.emplace_back(
        env::Response{call, {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  void Tell(const std::string& plural, std::string_view type, const std::string& object) {
    inputs_.emplace_back(env::StreamData{
        streams_[plural], Bytes(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object))});
  }
  static std::string PluralOf(const std::string& target) {
    const std::string path = target.substr(0, target.find('?'));
    return path.substr(path.rfind('/') + 1);
  }
  void Answer(const env::SendRequest& send) {
    const std::string& target = send.request.target;
    const std::string plural = PluralOf(target);
    if (send.stream) {
      streams_[plural] = send.call;
      return Reply(send.call, 200, "");
    }
    if (send.request.method == env::Method::kGet) {
      std::string items;
      for (int64_t set = 0; plural == "replicasets" && set < sets_; ++set) {
        items += (set > 0 ? "," : "") + SetText(set, R"({"replicas":0})", ++version_);
      }
      return Reply(send.call, 200,
                   R"({"metadata":{"resourceVersion":"1"},"items":[)" + items + "]}");
    }
    std::string body(send.request.body.view());
    if (target.find("/events") != std::string::npos) return Reply(send.call, 201, std::move(body));
    if (send.request.method == env::Method::kPost) return MakePod(send.call, std::move(body));
    const int64_t set = std::stoll(target.substr(target.find("/set-") + 5));
    const size_t at = body.find(R"("status":)") + 9;
    const std::string text = SetText(set, body.substr(at, body.size() - at - 1), ++version_);
    Reply(send.call, 200, text);
    Tell("replicasets", "MODIFIED", text);
  }
  void MakePod(env::CallId call, std::string body) {
    const size_t at = body.find(R"("metadata":{)") + 12;
    const size_t name = body.find(R"("name":")", at) + 8;
    // Of thousands of random names two may be the same.
    if (!names_.insert(body.substr(name, body.find('"', name) - name)).second) {
      return Reply(call, 409, R"({"kind":"Status","reason":"AlreadyExists","code":409})");
    }
    const int64_t pod = ++pods_;
    body.pop_back();
    const auto version = [&](std::string_view node, std::string_view status) {
      std::string text = body;
      const size_t spec = text.find(R"("spec":{)") + 8;
      text.insert(spec, node);
      text.insert(at,
                  fmt::format(R"("uid":"6ba7b810-9dad-11d1-80b4-{:012}","resourceVersion":"{}",)"
                              R"("creationTimestamp":"2026-01-01T00:00:00Z",)",
                              pod, ++version_));
      return text + fmt::format(R"(,"status":{}}})", status);
    };
    const std::string made = version("", R"({"phase":"Pending"})");
    Reply(call, 201, made);
    Tell("pods", "ADDED", made);
    const std::string node = fmt::format(R"("nodeName":"node-{:04}",)", pod % 1000);
    Tell("pods", "MODIFIED", version(node, R"({"phase":"Pending"})"));
    Tell("pods", "MODIFIED",
         version(
             node,
             R"({"phase":"Running","startTime":"2026-01-01T00:00:00Z","conditions":[)"
             R"({"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]})"));
  }

  const int64_t sets_;
  const int64_t replicas_;
  Instant now_ = Instant::FromSeconds(1'800'000'000);
  Controllers controllers_;
  std::deque<env::Input> inputs_;
  std::map<std::string, env::CallId> streams_;
  std::set<std::string> names_;
  int64_t pods_ = 0;
  int64_t version_ = 1;
};

void PodsOfReplicaSets(benchmark::State& state) {
  const int64_t sets = state.range(0);
  const int64_t replicas = state.range(1);
  int64_t writes = 0;
  for (auto _ : state) {
    Echo echo(sets, replicas);
    echo.Run();
    if (echo.pods() != sets * replicas) state.SkipWithError("not all pods were made");
    writes = echo.controllers().writes();
  }
  state.SetItemsProcessed(state.iterations() * sets * replicas);
  state.counters["writes_per_pod"] =
      static_cast<double>(writes) / static_cast<double>(sets * replicas);
}
BENCHMARK(PodsOfReplicaSets)
    ->Args({100, 100})
    ->Args({1, 5'000})
    ->Args({500, 100})
    ->Unit(benchmark::kMillisecond);

void ForkOf50000Pods(benchmark::State& state) {
  Echo echo(500, 100);
  echo.Run();
  for (auto _ : state) {
    Controllers fork = echo.controllers();
    benchmark::DoNotOptimize(fork);
  }
}
BENCHMARK(ForkOf50000Pods)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::controllers

BENCHMARK_MAIN();
