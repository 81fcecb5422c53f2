#include "cmd/stop_gate.h"

#include <chrono>
#include <utility>
#include <variant>

#include "control/scheduler.h"

namespace berth::cmd {

void StopGate::Take(std::vector<env::Output> batch) {
  std::vector<env::Output> network;
  for (env::Output& output : batch) {
    const auto* respond = std::get_if<env::Respond>(&output);
    if (respond == nullptr || respond->exchange != control::kStopExchange) {
      network.push_back(std::move(output));
      continue;
    }
    const MutexLock lock(mutex_);
    stopped_ = true;
    wake_.NotifyAll();
  }
  if (network_ != nullptr && !network.empty()) network_->Take(std::move(network));
}

bool StopGate::AskToStop(env::InputSink& scheduler, Duration patience) {
  std::vector<env::Input> stop;
  stop.emplace_back(env::RequestArrived{
      .exchange = control::kStopExchange,
      .peer = {},
      .request = {.method = env::Method::kPost, .target = "/stop", .headers = {}, .body = {}}});
  scheduler.Post(std::move(stop));
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience.ns);
  const MutexLock lock(mutex_);
  while (!stopped_) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) return false;
    wake_.WaitFor(mutex_, left);
  }
  return true;
}

}  // namespace berth::cmd
