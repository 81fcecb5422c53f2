// Of the scheduler, what begins and ends its lead (docs/design/0024-leader-election.md).
#include <fmt/format.h>

#include <utility>

#include "control/say.h"
#include "control/scheduler.h"

namespace berth::control {
void Scheduler::Elect(Instant now, const env::Input& input, env::Outbox& out) {
  const bool led = election_->leads();
  const uint64_t term = election_->terms();
  election_->Handle(now, input, out);
  if (led && (!election_->leads() || election_->terms() > term)) {
    TakeBack(now, out);
    const size_t under_way =
        client_.writes_in_flight() + (extenders_ ? extenders_->bindings_count() : 0);
    ++counters_.leases_lost;
    counters_.under_way_at_loss += under_way;
    Say(out, env::LogLevel::kWarning,
        fmt::format("back to standby: {} writes are under way, and no more will leave", under_way));
  }
  // Checked where writes leave, too: this thread may be stopped between a decision and that.
  if (election_->leads() && !options_.planted_no_deadline)
    client_.LetWritesLeaveUntil(election_->leads_until());
  if (!election_->leads() || election_->terms() == term || stopping_) return;
  if (options_.planted_no_barrier) {
    client_.AllowWrites();
    return;
  }
  barrier_.Begin(now, client_, out);
  const LeaderElectionOptions& lease = election_->options();
  status_.BecameLeader(now,
                       {.namespace_name = lease.namespace_name,
                        .name = lease.name,
                        .uid = election_->lease_uid(),
                        .resource_version = {}},
                       lease.identity);
}

// Nothing that was decided leaves any more. What becomes of what has left is heard still.
void Scheduler::TakeBack(Instant now, env::Outbox& out) {
  barrier_.Abort();
  client_.StopWrites();
  if (extenders_) {
    for (const model::ExternalVerdict& fact : extenders_->WithdrawAll(now, out)) Apply(fact);
  }
  if (!volumes_) return;
  for (const Binder::Attempt& attempt : volumes_->WithdrawAll()) Withdrawn(now, attempt);
  ApplyAssumed(out);
}

void Scheduler::PassBarrier(Instant now, env::Outbox& out) {
  barrier_.Pump(now, client_, out);
  if (barrier_.stands()) return;
  client_.AllowWrites();
  Say(out, env::LogLevel::kInfo, "what the last leader did is known: decisions begin");
}

void Scheduler::Stop(Instant now, env::Outbox& out) {
  stopping_ = true;
  TakeBack(now, out);
  FinishStop(now, out);
}

// The next leader finds all of this one's writes done.
void Scheduler::FinishStop(Instant now, env::Outbox& out) {
  if (stopped_ || client_.writes_in_flight() > 0) return;
  if (extenders_ && extenders_->bindings_count() > 0) return;
  if (election_) {
    election_->Release(now, out);
    if (!election_->over()) return;
  }
  stopped_ = true;
  out.emplace_back(env::Respond{.exchange = kStopExchange,
                                .response = {.status = 200, .headers = {}, .body = {}}});
}

}  // namespace berth::control
