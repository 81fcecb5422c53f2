// The server's own CPU per write, with a journal that answers at once and four watches on the kind:
// what bounds pods per second.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>

#include "apiserver/server_fixture.h"

namespace berth::apiserver {
namespace {

using env::Method;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kUser = "kubectl/1";

std::string PodJson(int64_t i) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-)" + std::to_string(i) +
         R"(","labels":{"app":"web","team":"a"}},"spec":{"containers":[{"name":"c","image":"registry/app:1",)"
         R"("command":["/bin/app","--flag"],"env":[{"name":"A","value":"1"}],)"
         R"("resources":{"requests":{"cpu":"100m","memory":"500Mi"}}}]}})";
}

// Four live watches, as the scheduler, the controllers and the nodes have them.
void Watch(ServerFixture& server) {
  server.set_keeping(false);
  for (int i = 0; i < 4; ++i) {
    server.Send(Method::kGet, "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=0");
  }
  server.Settle();
}

env::HttpResponse Create(ServerFixture& server, int64_t i, const char* agent = "berth-nodes/1") {
  return server.Call(Method::kPost, kPods, PodJson(i),
                     {{"content-type", "application/json"}, {"user-agent", agent}});
}

void CreatePod(benchmark::State& state) {
  ServerFixture server;
  Watch(server);
  int64_t i = 0;
  for (auto _ : state) CHECK_EQ(Create(server, i++).status, 201);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(CreatePod)->Unit(benchmark::kMicrosecond)->Iterations(20000);

// With its fields' manager.
void CreateTrackedPod(benchmark::State& state) {
  ServerFixture server;
  Watch(server);
  int64_t i = 0;
  for (auto _ : state) CHECK_EQ(Create(server, i++, kUser).status, 201);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(CreateTrackedPod)->Unit(benchmark::kMicrosecond)->Iterations(20000);

std::string BindingJson(int64_t i) {
  return R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"pod-)" + std::to_string(i) +
         R"("},"target":{"kind":"Node","name":"node-)" + std::to_string(i % 1000) + R"("}})";
}

void BindPods(benchmark::State& state, const char* creator) {
  ServerFixture server;
  Watch(server);
  for (int64_t i = 0; i < 20000; ++i) Create(server, i, creator);
  int64_t i = 0;
  for (auto _ : state) {
    const auto response =
        server.Call(Method::kPost, std::string(kPods) + "/pod-" + std::to_string(i) + "/binding",
                    BindingJson(i), {{"user-agent", "berth-scheduler"}});
    CHECK_EQ(response.status, 201);
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
void BindPod(benchmark::State& state) { BindPods(state, "berth-nodes"); }
BENCHMARK(BindPod)->Unit(benchmark::kMicrosecond)->Iterations(20000);
void BindTrackedPod(benchmark::State& state) { BindPods(state, kUser); }
BENCHMARK(BindTrackedPod)->Unit(benchmark::kMicrosecond)->Iterations(20000);

constexpr const char* kRunning =
    R"({"status":{"phase":"Running","podIP":"10.1.2.3","startTime":"2026-01-01T00:00:00Z",)"
    R"("conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},)"
    R"({"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},)"
    R"({"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],)"
    R"("containerStatuses":[{"name":"c","image":"registry/app:1","imageID":"x","ready":true,)"
    R"("restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}})";

void PatchStatuses(benchmark::State& state, const char* creator, const char* writer) {
  ServerFixture server;
  Watch(server);
  for (int64_t i = 0; i < 20000; ++i) Create(server, i, creator);
  int64_t i = 0;
  for (auto _ : state) {
    const auto response = server.Call(
        Method::kPatch, std::string(kPods) + "/pod-" + std::to_string(i) + "/status", kRunning,
        {{"content-type", "application/strategic-merge-patch+json"}, {"user-agent", writer}});
    CHECK_EQ(response.status, 200);
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
void PatchStatus(benchmark::State& state) { PatchStatuses(state, "berth-nodes", "berth-nodes"); }
BENCHMARK(PatchStatus)->Unit(benchmark::kMicrosecond)->Iterations(20000);
void PatchStatusOfTrackedPod(benchmark::State& state) {
  PatchStatuses(state, kUser, "berth-nodes");
}
BENCHMARK(PatchStatusOfTrackedPod)->Unit(benchmark::kMicrosecond)->Iterations(20000);
void PatchTrackedStatus(benchmark::State& state) { PatchStatuses(state, kUser, "kubelet"); }
BENCHMARK(PatchTrackedStatus)->Unit(benchmark::kMicrosecond)->Iterations(20000);

void CreateEvent(benchmark::State& state) {
  ServerFixture server;
  Watch(server);
  int64_t i = 0;
  for (auto _ : state) {
    const std::string name = "pod-" + std::to_string(i++);
    std::string event = R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":")";
    event += name;
    event +=
        R"(.17","namespace":"default"},"eventTime":"2026-01-01T00:00:00.000001Z",)"
        R"("reportingController":"default-scheduler","reportingInstance":"berth-1",)"
        R"("action":"Binding","reason":"Scheduled","type":"Normal","note":"Successfully assigned",)"
        R"("regarding":{"kind":"Pod","namespace":"default","name":")";
    event += name;
    event += R"(","apiVersion":"v1"}})";
    const auto response = server.Call(
        Method::kPost, "/apis/events.k8s.io/v1/namespaces/default/events", std::move(event));
    CHECK_EQ(response.status, 201);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(CreateEvent)->Unit(benchmark::kMicrosecond)->Iterations(20000);

void ForkOfFullServer(benchmark::State& state) {
  ServerFixture server;
  for (int64_t i = 0; i < 50000; ++i) Create(server, i);
  for (auto _ : state) {
    ApiServer fork = server.server();
    benchmark::DoNotOptimize(fork);
  }
}
BENCHMARK(ForkOfFullServer)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::apiserver

BENCHMARK_MAIN();
