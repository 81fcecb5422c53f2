#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/time.h"
#include "control/operated_scheduler.h"
#include "control/scheduling_metrics.h"
#include "env/actor.h"

namespace berth::cmd {

// How long decisions took, as /metrics tells it: kube-scheduler's
// scheduler_scheduling_algorithm_duration_seconds, with its bounds. berth decides on many pods in
// one step; each counts with its part of the step. No actor can know that: it has no clock of its
// own. Any thread may call.
class DecisionTimes {
 public:
  void Note(Duration step, uint64_t decisions);
  [[nodiscard]] std::string MetricsText() const;

 private:
  mutable Mutex mutex_;
  control::Histogram<15> each_ GUARDED_BY(mutex_);  // In ns.
};

// A scheduler, which it is to the outside, whose steps are timed.
class TimedScheduler final : public env::Actor {
 public:
  using Clock = std::function<Instant()>;  // Of which differences count alone.

  // `times` outlives it.
  TimedScheduler(std::unique_ptr<control::OperatedScheduler> scheduler, Clock clock,
                 DecisionTimes& times);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override { return scheduler_->wake_at(); }
  void AddTo(Hasher& hasher) const override { scheduler_->AddTo(hasher); }

 private:
  // Pods that were placed, or told that no node will have them.
  [[nodiscard]] uint64_t Decisions() const;

  std::unique_ptr<control::OperatedScheduler> scheduler_;
  const Clock clock_;
  DecisionTimes& times_;
};

// By the machine's steady clock.
[[nodiscard]] std::unique_ptr<env::Actor> Timed(
    std::unique_ptr<control::OperatedScheduler> scheduler, DecisionTimes& times);

}  // namespace berth::cmd
