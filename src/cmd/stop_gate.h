#pragma once

#include <chrono>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "env/port.h"

namespace berth::cmd {

// Stands between a scheduler and the network, and hears when it has stopped: the answer to
// control::kStopExchange. All else goes on to the network, if there is one. Any thread may call.
class StopGate final : public env::OutputSink {
 public:
  // Longer than a write takes to an API server that is there.
  static constexpr Duration kPatience = Duration::Seconds(10);

  // Before the executor starts.
  void PassTo(env::OutputSink& network) { network_ = &network; }
  void Take(std::vector<env::Output> batch) override;
  // Asks the scheduler to stop, again where its inbox is full, and waits until it has. False: it
  // did not in that time.
  bool AskToStop(env::InputSink& scheduler, Duration patience = kPatience);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // Until it has stopped (true), is to be asked again, or it is `end`.
  bool WaitForAnswer(SteadyTime end);

  env::OutputSink* network_ = nullptr;
  Mutex mutex_;
  CondVar wake_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  bool refused_ GUARDED_BY(mutex_) = false;  // Since it was asked last.
};

// Asks the scheduler to tell in the log what it knows, and to compare it with the objects.
void AskToDump(env::InputSink& scheduler);

}  // namespace berth::cmd
