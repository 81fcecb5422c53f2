// Of the scheduler, what passes between it and extenders (docs/design/0028-extenders.md).
#include <fmt/format.h>

#include <string>
#include <utility>

#include "control/extender_messages.h"
#include "control/say.h"
#include "control/scheduler.h"

namespace berth::control {

// `waits`: for a place that we are to find.
void Scheduler::NoteAsking(const client::ObjectEvent& event, bool waits, api::Pod& pod,
                           model::PodUpsert& facts, env::Outbox& out) {
  const uint32_t interested = waits ? extenders_->InterestedIn(*pod.spec) : 0;
  if (interested == 0) {
    extenders_->ForgetPod(event.uid, out);
    if (!pod.node_name.empty() && !facts.terminal)
      extenders_->ObservePlaced(event.uid, event.object);
    return;
  }
  extenders_->ObservePod(event.uid, event.object, interested);
  if (!extenders_->AreAsked(interested)) return;
  facts.asks = true;
  facts.asks_about_victims = extenders_->AreAskedAboutVictims(interested);
  facts.looks = LooksOf(event.object.view());
}

// The plan's ids are good.
void Scheduler::AskExtenders(const model::Plan& plan, env::Outbox& out) {
  const model::State& state = engine_.state();
  for (const model::ExternalQuery& query : plan.queries) {
    Extenders::Query asked{.uid = std::string(state.UidOf(query.pod_uid)), .number = query.query};
    asked.nodes.reserve(query.nodes.size());
    for (const model::NodeId node : query.nodes)
      asked.nodes.emplace_back(state.NameOf(state.nodes().name(node)));
    asked.about_victims = !query.victims.empty();
    for (const model::NodeVictims& one : query.victims) {
      ShownVictims shown{.node = std::string(state.NameOf(one.node)),
                         .pdb_violations = one.pdb_violations};
      for (const model::OwnerId victim : one.pods) shown.uids.emplace_back(state.UidOf(victim));
      asked.victims.push_back(std::move(shown));
    }
    extenders_->Ask(std::move(asked), out);
  }
}

void Scheduler::TakeFromExtenders(Instant now, env::Outbox& out) {
  for (const Extenders::Verdict& verdict : extenders_->TakeVerdicts()) OnVerdict(now, verdict, out);
  for (const Extenders::Bound& bound : extenders_->TakeBound()) OnExtendersBinding(now, bound, out);
}

void Scheduler::OnVerdict(Instant now, const Extenders::Verdict& verdict, env::Outbox& out) {
  WakeWatchdog(now);
  const model::State& state = engine_.state();
  const model::PodId pod = state.FindPod(verdict.uid);
  const model::VerdictTable::Row* asked =
      pod.valid() ? state.verdicts().Find(state.pods().at(pod).uid) : nullptr;
  // About another question than stands now.
  if (asked == nullptr || !state.verdicts().IsAsked(state.pods().at(pod).uid)) return;
  if ((verdict.about_victims ? asked->victims_query : asked->query) != verdict.query) return;
  if (!verdict.failure.empty()) {
    ++counters_.errors;
    metrics_.Refused(SchedulerOf(pod));
    status_.Want(verdict.uid, {.reason = kSchedulerError, .message = Bytes(verdict.failure)});
    Say(out, env::LogLevel::kDebug,
        fmt::format("pod {}: {}", state.KeyOf(state.pods().at(pod).key), verdict.failure));
  }
  Apply(extenders_->FactOf(verdict, now, engine_.vocabulary()));
}

// Sends the binding where it goes.
void Scheduler::BindNow(Instant now, Binder::Attempt attempt, env::Outbox& out) {
  metrics_.BindSent(now, attempt.pod.uid, attempt.scheduler_name);
  if (extenders_ && attempt.devices.none()) {
    if (const auto call = extenders_->Bind(now, attempt, client_.writes_leave_until(), out)) {
      attempt.by_extender = true;
      return binder_.Expect(*call, std::move(attempt));
    }
  }
  binder_.Bind(now, std::move(attempt), client_, out);
}

void Scheduler::OnExtendersBinding(Instant now, const Extenders::Bound& bound, env::Outbox& out) {
  WakeWatchdog(now);
  // The API server takes one binding of a pod, whichever comes first. Whose lease is over writes
  // nothing more: the pod is read instead.
  if (bound.ignorable && may_write()) {
    Binder::Attempt attempt = binder_.TakeBack(bound.done.call);
    attempt.by_extender = false;
    return binder_.Bind(now, std::move(attempt), client_, out);
  }
  const auto result = binder_.OnCallDone(now, bound.done, client_, out);
  if (!result) return;
  if (!bound.message.empty() && result->outcome &&
      result->outcome->outcome == model::WriteOutcome::kUnknown) {
    ToldRefused(result->attempt, bound.message, 0, out);
  }
  OnBinding(now, *result, out);
}

}  // namespace berth::control
