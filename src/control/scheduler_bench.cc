// The scheduler's whole path, without an API server: pods from watch bytes to binding requests, and
// back by outcome and watch event. Items are pods; a pod is decoded twice (waiting, bound),
// decided, bound, and told of by an event. The same recorded (docs/design/0029-recording.md): what
// that costs the scheduler's thread, and what it costs the thread that writes.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "control/scheduler.h"
#include "env/recorded_actor.h"
#include "env/recording.h"

namespace berth::control {
namespace {

std::string PodJson(int index, int version, std::string_view node) {
  return fmt::format(
             R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"pod-{0}","generateName":"pod-","namespace":"default",)"
             R"("uid":"00000000-0000-0000-0000-{0:012}","resourceVersion":"{1}","creationTimestamp":"2026-01-01T00:00:00Z",)"
             R"("labels":{{"app":"web","pod-template-hash":"5d9c7b"}},"annotations":{{"note":")",
             index, version) +
         std::string(1'200, 'x') +
         fmt::format(
             R"("}}}},"spec":{{"schedulerName":"default-scheduler","priority":0,"restartPolicy":"Always",{}"containers":[{{"name":"c",)"
             R"("image":"registry/app:1","resources":{{"requests":{{"cpu":"{}m","memory":"{}Mi"}}}}}}],"tolerations":[)"
             R"({{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},)"
             R"("status":{{"phase":"Pending"}}}})",
             node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", node), 100 + index % 20,
             128 + index % 20);
}

std::string NodeJson(int index) {
  return fmt::format(
      R"({{"kind":"Node","metadata":{{"name":"node-{0}","uid":"n-{0}","resourceVersion":"1"}},"spec":{{}},"status":{{)"
      R"("allocatable":{{"cpu":"32","memory":"256Gi","pods":"110"}}}}}})",
      index);
}

std::string_view NodeOf(std::string_view binding) {
  constexpr std::string_view kBefore = R"("kind":"Node","name":")";
  const std::string_view rest = binding.substr(binding.find(kBefore) + kBefore.size());
  return rest.substr(0, rest.find('"'));
}

// Takes what is recorded and writes nothing.
class Sink final : public env::StepSink {
 public:
  [[nodiscard]] State state() const override { return State::kOpen; }
  void Take(env::RecordedStep step) override { steps.push_back(std::move(step)); }
  void BeginAnew(std::string /*header*/) override {}
  [[nodiscard]] std::string MetricsText() const override { return ""; }

  std::vector<env::RecordedStep> steps;
};

// Steps a scheduler and plays an API server that accepts everything at once.
class Loop {
 public:
  // `sink`: null, or what gets its steps.
  explicit Loop(int nodes, Sink* sink = nullptr)
      : scheduler_(std::make_unique<Scheduler>(SchedulerOptions{})) {
    if (sink != nullptr) {
      scheduler_ = std::make_unique<env::RecordedActor>(std::move(scheduler_), *sink,
                                                        env::RecordedActor::Restarts{});
    }
    Tick();
    std::string items;
    for (int i = 0; i < nodes; ++i) items += (i > 0 ? "," : "") + NodeJson(i);
    for (int round = 0; round < 4; ++round) {
      std::vector<env::Output> out = std::exchange(out_, {});
      for (env::Output& output : out) {
        const auto* send = std::get_if<env::SendRequest>(&output);
        if (send == nullptr) continue;
        const bool pods = send->request.target.find("/pods") != std::string::npos;
        if (send->stream && pods) stream_ = send->call;
        Answer(*send, 200,
               send->stream ? ""
                            : R"({"metadata":{"resourceVersion":"1"},"items":[)" +
                                  (pods ? "" : items) + "]}");
      }
    }
  }
  void Answer(const env::SendRequest& send, int status, std::string body) {
    scheduler_->Step(
        now_,
        env::Response{
            .call = send.call,
            .response = {.status = status, .headers = {}, .body = Bytes(std::move(body))}},
        out_);
  }
  void Tick() { scheduler_->Step(now_, env::Tick{}, out_); }

  // Creates pods [first, first + count) and runs until all are bound and observed; returns how many
  // were bound.
  int Run(int first, int count) {
    std::string data;
    for (int i = first; i < first + count; ++i) {
      data += R"({"type":"ADDED","object":)" + PodJson(i, ++version_, "") + "}\n";
    }
    scheduler_->Step(now_, env::StreamData{.call = stream_, .data = Bytes(std::move(data))}, out_);
    int bound = 0;
    while (scheduler_->wake_at() <= now_ || !out_.empty()) {
      if (scheduler_->wake_at() <= now_) Tick();
      bound += Serve();
    }
    return bound;
  }

 private:
  int Serve() {
    int bound = 0;
    std::string data;
    std::vector<env::Output> out = std::exchange(out_, {});
    for (const env::Output& output : out) {
      const auto* send = std::get_if<env::SendRequest>(&output);
      if (send == nullptr) continue;
      Answer(*send, 201, "");
      constexpr std::string_view kPrefix = "/api/v1/namespaces/default/pods/pod-";
      if (!send->request.target.starts_with(kPrefix) || !send->request.target.ends_with("/binding"))
        continue;
      const int index = std::stoi(send->request.target.substr(kPrefix.size()));
      data += R"({"type":"MODIFIED","object":)" +
              PodJson(index, ++version_, NodeOf(send->request.body.view())) + "}\n";
      ++bound;
    }
    if (!data.empty()) {
      scheduler_->Step(now_, env::StreamData{.call = stream_, .data = Bytes(std::move(data))},
                       out_);
    }
    return bound;
  }

  Instant now_ = Instant::FromSeconds(1'800'000'000);
  std::unique_ptr<env::Actor> scheduler_;
  env::Outbox out_;
  env::CallId stream_;
  int version_ = 1;
};

void WatchToBinding(benchmark::State& state) {
  Loop loop(static_cast<int>(state.range(0)));
  int next = 0;
  for (auto _ : state) {
    const int bound = loop.Run(next, 1'000);
    CHECK_EQ(bound, 1'000);
    next += 1'000;
  }
  state.SetItemsProcessed(next);
}
BENCHMARK(WatchToBinding)->Arg(1'000)->Arg(5'000)->Iterations(40)->Unit(benchmark::kMillisecond);

void WatchToBindingRecorded(benchmark::State& state) {
  Sink sink;
  Loop loop(static_cast<int>(state.range(0)), &sink);
  int next = 0;
  for (auto _ : state) {
    const int bound = loop.Run(next, 1'000);
    CHECK_EQ(bound, 1'000);
    next += 1'000;
    state.PauseTiming();  // The other thread's.
    sink.steps.clear();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(next);
}
BENCHMARK(WatchToBindingRecorded)
    ->Arg(1'000)
    ->Arg(5'000)
    ->Iterations(40)
    ->Unit(benchmark::kMillisecond);

// Items are pods, bytes those that are written: encoding and deflating on the recorder's thread.
void WriteRecording(benchmark::State& state) {
  Sink sink;
  Loop loop(1'000, &sink);
  sink.steps.clear();
  CHECK_EQ(loop.Run(0, 1'000), 1'000);
  size_t bytes = 0;
  for (auto _ : state) {
    std::string items;
    for (const env::RecordedStep& step : sink.steps) {
      env::AppendStep(step, items);
      if (items.size() < size_t{256} << 10) continue;
      bytes += env::SealBlock(items, env::BlockMethod::kDeflated).size();
      items.clear();
    }
    bytes += env::SealBlock(items, env::BlockMethod::kDeflated).size();
  }
  state.SetItemsProcessed(state.iterations() * 1'000);
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(WriteRecording)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::control

BENCHMARK_MAIN();
