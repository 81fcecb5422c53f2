#pragma once

#include <string>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/object_comparison.h"
#include "control/scheduler.h"
#include "env/actor.h"

namespace berth::control {

// The exchange by which the process asks for a dump (control/dump.h) and a comparison with the
// objects (control/object_comparison.h), which go to the log. No transport gives this number; it is
// not answered.
inline constexpr env::ExchangeId kDumpExchange{kStopExchange.value - 1};

// A scheduler as a process runs it, with what its operators ask for beside its work and what needs
// to know nothing of that: a dump into the log, and GET /configz in kube-scheduler's form,
// {"componentconfig": KubeSchedulerConfiguration}. All else is the scheduler's.
class OperatedScheduler final : public env::Actor {
 public:
  // `configz`: what is shown there, as JSON.
  OperatedScheduler(SchedulerOptions options, std::string configz);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;
  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }

 private:
  // Whether it was asked for something of this class, and has it.
  bool Answer(Instant now, const env::RequestArrived& arrived, env::Outbox& out);

  const std::string configz_;  // Immutable after construction.
  Scheduler scheduler_;
  client::Client client_;  // Of the comparison.
  ObjectComparison comparison_;
};

}  // namespace berth::control
