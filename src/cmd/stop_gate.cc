#include "cmd/stop_gate.h"

#include <chrono>
#include <utility>
#include <variant>

#include "control/operated_scheduler.h"

namespace berth::cmd {
namespace {

void Post(env::InputSink& scheduler, env::ExchangeId exchange, const char* target) {
  std::vector<env::Input> batch;
  batch.emplace_back(env::RequestArrived{
      .exchange = exchange,
      .peer = {},
      .request = {.method = env::Method::kPost, .target = target, .headers = {}, .body = {}}});
  scheduler.Post(std::move(batch));
}

}  // namespace

void AskToDump(env::InputSink& scheduler) { Post(scheduler, control::kDumpExchange, "/dump"); }

void StopGate::Take(std::vector<env::Output> batch) {
  std::vector<env::Output> network;
  for (env::Output& output : batch) {
    const auto* respond = std::get_if<env::Respond>(&output);
    if (respond == nullptr || respond->exchange != control::kStopExchange) {
      network.push_back(std::move(output));
      continue;
    }
    constexpr int kOk = 200;  // Else the executor answers, whose inbox is full.
    const MutexLock lock(mutex_);
    (respond->response.status == kOk ? stopped_ : refused_) = true;
    wake_.NotifyAll();
  }
  if (network_ != nullptr && !network.empty()) network_->Take(std::move(network));
}

bool StopGate::WaitForAnswer(SteadyTime end) {
  // Long enough for an inbox to be worked off.
  constexpr std::chrono::milliseconds kPause(100);
  const MutexLock lock(mutex_);
  while (!stopped_ && !refused_) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) return false;
    wake_.WaitFor(mutex_, left);
  }
  refused_ = false;
  if (!stopped_) wake_.WaitFor(mutex_, kPause);
  return stopped_;
}

bool StopGate::AskToStop(env::InputSink& scheduler, Duration patience) {
  const SteadyTime end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience.ns);
  do {
    // Its refusal comes back on this thread: no lock is held.
    Post(scheduler, control::kStopExchange, "/stop");
    if (WaitForAnswer(end)) return true;
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace berth::cmd
