// What a bound pod costs the kubelets: its event, the status, the answer and the event of that.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <deque>
#include <string>

#include "base/check.h"
#include "client/settle.h"
#include "nodes/nodes.h"

namespace berth::nodes {
namespace {

constexpr int64_t kNodes = 1000;
constexpr int64_t kStepsMax = int64_t{1} << 40;  // More than any run takes.

// Answers as the API server does, with texts made beforehand as far as possible.
class Echo {
 public:
  Echo() : nodes_(KubeletsOptions()) { Run(); }

  void Bind(int64_t pod) { Tell("pods", PodText(pod, ++version_)); }
  void Run() {
    const auto take = [this](const env::Output& output) {
      if (const auto* send = std::get_if<env::SendRequest>(&output)) Answer(*send);
    };
    CHECK(client::Settle(nodes_, now_, inputs_, take, kStepsMax));
  }
  [[nodiscard]] const Nodes& nodes() const { return nodes_; }

 private:
  static Options KubeletsOptions() {
    Options options;
    options.nodes = MakeNodes({}, kNodes);
    options.leases = false;
    return options;
  }
  static std::string PodText(int64_t pod, int64_t version) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{0}","namespace":"default",)"
        R"("uid":"6ba7b810-9dad-11d1-80b4-{0:012}","resourceVersion":"{1}","generation":1,)"
        R"("creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"bench","team":"a"}}}},)"
        R"("spec":{{"nodeName":"node-{2:04}","schedulerName":"default-scheduler","priority":0,)"
        R"("restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",)"
        R"("containers":[{{"name":"c","image":"registry.k8s.io/pause:3.10","resources":)"
        R"({{"requests":{{"cpu":"100m","memory":"500Mi"}}}}}}],"tolerations":[)"
        R"({{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},)"
        R"({{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},)"
        R"("status":{{"phase":"Pending","conditions":[{{"type":"PodScheduled","status":"True",)"
        R"("lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}}})",
        pod, version, pod % kNodes);
  }
  void Tell(const std::string& plural, const std::string& object) {
    inputs_.emplace_back(
        env::StreamData{plural == "pods" ? pods_stream_ : nodes_stream_,
                        Bytes(R"({"type":"MODIFIED","object":)" + object + "}\n")});
  }
  void Reply(env::CallId call, int status, std::string body) {
    inputs_.emplace_back(
        env::Response{call, {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  void Answer(const env::SendRequest& send) {
    const std::string& target = send.request.target;
    if (send.stream) {
      (target.find("/pods") != std::string::npos ? pods_stream_ : nodes_stream_) = send.call;
      return Reply(send.call, 200, "");
    }
    if (send.request.method == env::Method::kGet) {
      return Reply(send.call, 200, R"({"metadata":{"resourceVersion":"1"},"items":[]})");
    }
    if (send.request.method == env::Method::kPost) {
      // A node as it was registered, with identity.
      std::string body(send.request.body.view());
      const size_t at = body.find(R"("metadata":{)") + 12;
      body.insert(at, fmt::format(R"("uid":"node-{0}","resourceVersion":"{0}",)", ++version_));
      return Reply(send.call, 201, body);
    }
    const size_t from = target.find("/pod-") + 5;
    const int64_t pod = std::stoll(target.substr(from));
    std::string text = PodText(pod, ++version_);
    // The status that was written, whole: what the kubelet reads back must be what it wrote.
    const std::string_view body = send.request.body.view();
    constexpr std::string_view kStatus = R"("status":{)";
    const size_t status = body.find(kStatus);
    if (status == std::string_view::npos) return Reply(send.call, 200, text);
    text.erase(text.find(kStatus));
    text.append(body.substr(status));
    Reply(send.call, 200, text);
    Tell("pods", text);
  }

  Instant now_ = Instant::FromSeconds(1'800'000'000);
  Nodes nodes_;
  std::deque<env::Input> inputs_;
  env::CallId pods_stream_;
  env::CallId nodes_stream_;
  int64_t version_ = 1;
};

void PodsToRunning(benchmark::State& state) {
  const int64_t pods = state.range(0);
  for (auto _ : state) {
    state.PauseTiming();
    Echo echo;
    state.ResumeTiming();
    for (int64_t pod = 0; pod < pods; ++pod) {
      echo.Bind(pod);
      if (pod % 100 == 99) echo.Run();
    }
    echo.Run();
    if (echo.nodes().counts().running != pods) state.SkipWithError("not all pods run");
  }
  state.SetItemsProcessed(state.iterations() * pods);
}
BENCHMARK(PodsToRunning)->Arg(10'000)->Arg(50'000)->Unit(benchmark::kMillisecond);

void ForkOf50000Pods(benchmark::State& state) {
  Echo echo;
  for (int64_t pod = 0; pod < 50'000; ++pod) echo.Bind(pod);
  echo.Run();
  for (auto _ : state) {
    Nodes fork = echo.nodes();
    benchmark::DoNotOptimize(fork);
  }
}
BENCHMARK(ForkOf50000Pods)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::nodes

BENCHMARK_MAIN();
