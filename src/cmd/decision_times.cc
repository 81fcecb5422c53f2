#include "cmd/decision_times.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "control/metrics_writer.h"

namespace berth::cmd {
namespace {

constexpr int64_t kFirstNs = control::SchedulingMetrics::kAttemptFirstNs;
constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

void DecisionTimes::Note(Duration step, uint64_t decisions) {
  if (decisions == 0) return;
  const int64_t each = step.ns / static_cast<int64_t>(decisions);
  const MutexLock lock(mutex_);
  each_.Add(each, kFirstNs, decisions);
}

std::string DecisionTimes::MetricsText() const {
  constexpr const char* kName = "scheduler_scheduling_algorithm_duration_seconds";
  control::MetricsWriter metrics;
  metrics.Family(kName, "histogram",
                 "How long a decision takes: its part of the step it is made in.");
  const MutexLock lock(mutex_);
  metrics.Buckets(kName, "", each_, {kFirstNs, kSecond});
  return metrics.Take();
}

TimedScheduler::TimedScheduler(std::unique_ptr<control::OperatedScheduler> scheduler, Clock clock,
                               DecisionTimes& times)
    : scheduler_(std::move(scheduler)), clock_(std::move(clock)), times_(times) {}

void TimedScheduler::Step(Instant now, env::Input input, env::Outbox& out) {
  const uint64_t before = Decisions();
  const Instant begun = clock_();
  scheduler_->Step(now, std::move(input), out);
  const uint64_t after = Decisions();
  CHECK_GE(after, before);
  times_.Note(clock_() - begun, after - before);
}

std::unique_ptr<env::Actor> Timed(std::unique_ptr<control::OperatedScheduler> scheduler,
                                  DecisionTimes& times) {
  const auto clock = [] {
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    return Instant{now.count()};
  };
  return std::make_unique<TimedScheduler>(std::move(scheduler), clock, times);
}

uint64_t TimedScheduler::Decisions() const {
  const control::Scheduler& scheduler = scheduler_->scheduler();
  return scheduler.engine().counters().decisions + scheduler.metrics().refused();
}

}  // namespace berth::cmd
