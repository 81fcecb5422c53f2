#include "control/status_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/backoff.h"
#include "base/check.h"
#include "model/backoff.h"

namespace berth::control {
namespace {

constexpr std::string_view kPodScheduled = "PodScheduled";
// Who tells of what is no pod.
constexpr std::string_view kItself = "berth";
// A nomination that was refused or lost is written again after this.
constexpr Duration kNominationInterval = Duration::Seconds(1);

}  // namespace

void StatusWriter::Observe(const api::Pod& pod) {
  const auto [it, inserted] = notes_.try_emplace(pod.meta.uid);
  Note& note = it->second;
  if (inserted) {
    note.pod = {.namespace_name = pod.meta.namespace_name,
                .name = pod.meta.name,
                .uid = pod.meta.uid,
                .resource_version = {}};
    note.scheduler_name = pod.spec->scheduler_name;
  }
  note.pod.resource_version = pod.meta.resource_version;
  // A write that was fenced by another version has come true in this one, or never will.
  if (note.unknown != 0 && note.pod.resource_version != note.spent_version) {
    ForgetReads(it->first, note);
  }
  note.status.clear();
  note.reason.clear();
  note.message.clear();
  note.transition = {};
  note.nominated = pod.nominated_node_name;
  note.generation = pod.meta.generation;
  for (const api::PodCondition& condition : pod.conditions) {
    if (condition.type != kPodScheduled) continue;
    note.status = condition.status;
    note.reason = condition.reason;
    note.message = condition.message;
    note.transition = condition.transition;
  }
  Reconsider(it->first, note);
}

void StatusWriter::ForgetReads(const std::string& uid, Note& note) {
  if (note.read != Instant::Never()) reads_.erase({note.read, uid});
  note.read = Instant::Never();
  note.unknown = 0;
  note.reads_failed = 0;
}

void StatusWriter::Forget(std::string_view uid) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  DropDue(it->first, it->second);
  ForgetReads(it->first, it->second);
  TellAt(Instant::Never(), it->second);
  if (it->second.call != 0) calls_[it->second.call].clear();
  notes_.erase(it);
}

bool StatusWriter::NominationDiffers(const Note& note) {
  return note.wanted_nominated && *note.wanted_nominated != note.nominated;
}

bool StatusWriter::NominationSettled(std::string_view uid) const {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return true;
  const Note& note = it->second;
  return note.unknown == 0 && (note.call == 0 || !note.sent_nominated);
}

void StatusWriter::NominationLost(Instant now, std::string_view uid) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  it->second.nomination_not_before = now + kNominationInterval;
  it->second.spent_version.clear();  // A write that changed nothing makes no other.
  Reconsider(it->first, it->second);
}

bool StatusWriter::ConditionDiffers(const Note& note) {
  if (note.wanted_reason.empty()) return false;
  return note.status != "False" || note.reason != note.wanted_reason ||
         note.message != note.wanted_message.view();
}

// Most have no place there.
void StatusWriter::DropDue(const std::string& uid, Note& note) {
  if (note.due != Instant::Never()) due_.erase({note.due, uid});
  note.due = Instant::Never();
}

void StatusWriter::Reconsider(const std::string& uid, Note& note) {
  DropDue(uid, note);
  const bool nomination = NominationDiffers(note);
  if (note.call != 0 || (!nomination && !ConditionDiffers(note))) return;
  if (note.spent_version == note.pod.resource_version) return;
  note.due = nomination ? note.nomination_not_before : note.not_before;
  const bool promises = nomination && !note.wanted_nominated->empty();
  if (!promises) note.due = std::max(note.due, note.refused_until);
  due_.emplace(note.due, uid);
}

void StatusWriter::Want(std::string_view uid, const Waiting& waiting) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  Note& note = it->second;
  if (note.wanted_reason == waiting.reason && note.wanted_message == waiting.message) return;
  note.wanted_reason = waiting.reason;
  note.wanted_message = waiting.message;
  if (std::exchange(note.withdrawn, false)) note.not_before = Instant{};
  const bool is_another = !note.wanted_reason.empty() && note.wanted_reason != note.sent_reason;
  if (is_another && RefusedWait(options_.interval, note.refusals) >= kRefusedWaitMax) {
    note.refusals = 0;
    note.refused_until = Instant{};
  }
  Reconsider(it->first, note);
  const bool stands = !note.wanted_reason.empty() && !ConditionDiffers(note);
  if (stands && options_.tell_again > Duration{} && note.tell_at == Instant::Never())
    TellAt(Instant{}, note);
}

// After so many refusals.
Duration StatusWriter::RefusedWait(Duration first, uint32_t refusals) const {
  return Doubled(first, refusals, std::max(kRefusedWaitMax, options_.interval));
}

void StatusWriter::WantNomination(std::string_view uid, std::optional<std::string_view> node) {
  const auto it = notes_.find(uid);
  if (it == notes_.end() || it->second.wanted_nominated == node) return;
  it->second.wanted_nominated = node;
  it->second.withdrawn = it->second.withdrawn || (node && node->empty());
  Reconsider(it->first, it->second);
}

void StatusWriter::TellAt(Instant at, Note& note) {
  if (note.tell_at != Instant::Never()) tell_again_.erase({note.tell_at, note.pod.uid});
  note.tell_at = at;
  if (at != Instant::Never()) tell_again_.emplace(at, note.pod.uid);
}

void StatusWriter::TellAgain(Instant now) {
  while (!tell_again_.empty() && tell_again_.begin()->first <= now) {
    Note& note = notes_.find(tell_again_.begin()->second)->second;
    const bool told = note.tell_at != Instant{};
    TellAt(Instant::Never(), note);
    if (note.wanted_reason.empty() || note.wanted_reason == kSchedulingGated) continue;
    if (!told) {
      TellAt(now + options_.tell_again, note);
    } else {
      note.told_message = {};
      TellEvent(now, note);
    }
  }
}

void StatusWriter::TellEvent(Instant now, Note& note) {
  // Upstream says nothing of gated pods but their condition.
  if (note.wanted_reason == kSchedulingGated || note.told_message == note.wanted_message) return;
  note.told_message = note.wanted_message;
  if (options_.tell_again > Duration{}) TellAt(now + options_.tell_again, note);
  client::EventFacts event = EventOf(now, note.pod, note.scheduler_name);
  event.type = "Warning";
  event.reason = "FailedScheduling";
  event.action = "Scheduling";
  event.note = note.wanted_message.view();
  Queue(std::move(event));
}

client::EventFacts StatusWriter::EventOf(Instant now, const client::ObjectRef& object,
                                         std::string_view controller) {
  return {.regarding = object,
          .type = "Normal",
          .controller = std::string(controller),
          .instance = fmt::format("{}-{}", controller, options_.instance),
          .time = now,
          .serial = ++serial_};
}

void StatusWriter::Scheduled(Instant now, const Placed& placed) {
  client::EventFacts event = EventOf(now, placed.pod, placed.scheduler_name);
  event.reason = "Scheduled";
  event.action = "Binding";
  event.note = fmt::format("Successfully assigned {}/{} to {}", placed.pod.namespace_name,
                           placed.pod.name, placed.node);
  Queue(std::move(event));
}

void StatusWriter::Preempted(Instant now, const Placed& victim, const client::ObjectRef& preemptor,
                             bool by_workload) {
  client::EventFacts event = EventOf(now, victim.pod, victim.scheduler_name);
  event.reason = "Preempted";
  event.action = "Preempting";
  event.note = fmt::format("Preempted by {} {} on node {}", by_workload ? "workload" : "pod",
                           preemptor.uid, victim.node);
  // A reference is of the kind of what the event is about.
  if (!by_workload) event.related = preemptor;
  Queue(std::move(event));
}

void StatusWriter::Released(Instant now, const Placed& member, std::string_view gang) {
  client::EventFacts event = EventOf(now, member.pod, member.scheduler_name);
  event.reason = "GangReleased";
  event.action = "Releasing";
  event.note = fmt::format("Released from node {}: PodGroup {} was not completed in time",
                           member.node, gang);
  Queue(std::move(event));
}

void StatusWriter::CohortIsAtFault(Instant now, const CohortFault& fault) {
  client::EventFacts event = EventOf(now, {.name = fault.name, .uid = fault.uid}, kItself);
  event.kind = "Cohort";
  event.api_version = "kueue.x-k8s.io/v1beta2";
  event.type = "Warning";
  event.reason = "CohortCycle";
  event.action = "CheckCohort";
  event.note = fault.message;
  Queue(std::move(event));
}

void StatusWriter::BecameLeader(Instant now, const client::ObjectRef& lease,
                                std::string_view identity) {
  if (!options_.tell_leader) return;
  client::EventFacts event = EventOf(now, lease, kItself);
  event.kind = "Lease";
  event.api_version = "coordination.k8s.io/v1";
  event.reason = "LeaderElection";
  event.action = "LeaderElection";
  event.note = fmt::format("{} became leader", identity);
  Queue(std::move(event));
}

void StatusWriter::Queue(client::EventFacts facts) {
  if (events_.size() >= options_.events_max) {
    ++counters_.events_dropped;
    return;
  }
  events_.push_back(std::move(facts));
}

void StatusWriter::Send(Instant now, const std::string& uid, Note& note, client::Client& client,
                        env::Outbox& out) {
  std::string status = "{";
  if (ConditionDiffers(note)) {
    TellEvent(now, note);
    // A condition that stays False keeps the time at which it became so (C19).
    const bool was_false = note.status == "False" && note.transition != Instant{};
    status += R"("conditions":[{"type":"PodScheduled","status":"False",)";
    if (note.generation > 0) status += fmt::format(R"("observedGeneration":{},)", note.generation);
    status += R"("reason":)";
    client::AppendJsonString(status, note.wanted_reason);
    status += R"(,"message":)";
    client::AppendJsonString(status, note.wanted_message.view());
    status += R"(,"lastProbeTime":null,"lastTransitionTime":")" +
              client::SecondsTime(was_false ? note.transition : now) + R"("}])";
    note.not_before = now + options_.interval;
    note.sent_reason = note.wanted_reason;
  }
  note.sent_nominated = std::nullopt;
  if (NominationDiffers(note)) {
    note.sent_nominated = note.wanted_nominated;
    if (status.size() > 1) status += ',';
    status += R"("nominatedNodeName":)";
    if (note.wanted_nominated->empty()) {
      status += "null";
    } else {
      client::AppendJsonString(status, *note.wanted_nominated);
    }
  }
  status += '}';
  const env::CallId call =
      client.Call(now, client::PatchStatus(client::Pods(), note.pod, status), out);
  note.call = call.value;
  note.sent_version = note.pod.resource_version;
  calls_.emplace(call.value, uid);
}

void StatusWriter::Pump(Instant now, client::Client& client, env::Outbox& out) {
  while (calls_.size() < options_.calls_max && !due_.empty() && due_.begin()->first <= now) {
    const std::string uid = due_.begin()->second;
    Note& note = notes_.find(uid)->second;
    due_.erase(due_.begin());
    note.due = Instant::Never();
    Send(now, uid, note, client, out);
  }
  TellAgain(now);
  SendEvents(now, client, out);
}

void StatusWriter::SendEvents(Instant now, client::Client& client, env::Outbox& out) {
  while (event_calls_.size() < options_.calls_max && !events_.empty()) {
    const env::CallId call = client.Call(now, client::CreateEvent(events_.front()), out);
    events_.pop_front();
    event_calls_.insert(call.value);
  }
}

std::optional<StatusWriter::Result> StatusWriter::OnCallDone(Instant now,
                                                             const client::CallDone& done) {
  if (event_calls_.erase(done.call.value) > 0) {
    // An event is worth one attempt: repeating one of unknown fate could tell it twice.
    ++(done.outcome == client::Outcome::kDone ? counters_.events : counters_.failures);
    return Result{};
  }
  const auto call = calls_.find(done.call.value);
  if (call == calls_.end()) return std::nullopt;
  const std::string uid = std::move(call->second);
  calls_.erase(call);
  if (done.outcome == client::Outcome::kDone) ++counters_.conditions;
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return Result{};
  Note& note = it->second;
  note.call = 0;
  note.conflicted = done.outcome == client::Outcome::kConflict;
  Result result{.uid = uid, .nomination = note.sent_nominated};
  switch (done.outcome) {
    case client::Outcome::kDone:
    case client::Outcome::kGone:
      // Nothing more is to be said of this version: the next one will be observed, or the pod's
      // end.
      note.spent_version = note.sent_version;
      note.refusals = 0;
      note.refused_until = Instant{};
      if (note.sent_nominated && done.outcome == client::Outcome::kDone)
        result.object = done.response.body;
      break;
    case client::Outcome::kConflict:
      ++counters_.conflicts;
      note.not_before = now;
      // None newer may come, and what is wanted next can't wait for it: the pod is read.
      if (note.pod.resource_version == note.sent_version) {
        ReadLater(now, it->first, note, done.call);
      }
      note.spent_version = note.sent_version;
      break;
    case client::Outcome::kRefused:
      ++counters_.failures;
      if (note.sent_nominated) {
        result.refused = done.response.status;
        note.nomination_not_before = now + kNominationInterval;
      }
      // What was never sent the server has not refused.
      if (done.response.status == 0) break;
      note.refused_until =
          now + RefusedWait(note.sent_nominated ? kNominationInterval : options_.interval,
                            ++note.refusals);
      break;
    case client::Outcome::kUnknown:
      ++counters_.failures;
      // A newer version that was observed meanwhile tells.
      if (note.pod.resource_version != note.sent_version) break;
      note.spent_version = note.sent_version;
      ReadLater(now, it->first, note, done.call);
      break;
  }
  if (note.refusals == 0) note.sent_reason = {};
  Reconsider(it->first, note);
  return result;
}

void StatusWriter::ReadLater(Instant now, const std::string& uid, Note& note, env::CallId write) {
  note.unknown = write.value;
  note.read = now;
  reads_.emplace(note.read, uid);
}

void StatusWriter::OnRead(Instant now, const Read& read, client::Outcome outcome) {
  reading_.erase(read.write);
  const bool told = outcome == client::Outcome::kDone || outcome == client::Outcome::kGone;
  if (!told) ++counters_.reads_failed;
  const auto it = notes_.find(read.pod.uid);
  if (it == notes_.end() || it->second.unknown != read.write) return;
  Note& note = it->second;
  if (told) {
    ForgetReads(it->first, note);
    // Of a pod that is gone the watch tells the end. Else nothing was done: it is written again.
    if (outcome == client::Outcome::kDone) {
      note.spent_version.clear();
      if (note.conflicted) note.not_before = now + options_.interval;
      if (note.sent_nominated) note.nomination_not_before = now + kNominationInterval;
    }
    return Reconsider(it->first, note);
  }
  note.read = now + model::Backoff(++note.reads_failed);
  reads_.emplace(note.read, it->first);
}

std::vector<StatusWriter::Read> StatusWriter::TakeReads(Instant now) {
  std::vector<Read> due;
  while (reading_.size() < options_.calls_max && !reads_.empty() && reads_.begin()->first <= now) {
    Note& note = notes_.find(reads_.begin()->second)->second;
    reads_.erase(reads_.begin());
    note.read = Instant::Never();
    reading_.insert(note.unknown);
    due.push_back({.pod = note.pod, .write = note.unknown});
  }
  return due;
}

Instant StatusWriter::wake_at() const {
  Instant at = Instant::Never();
  if (!due_.empty() && calls_.size() < options_.calls_max) at = due_.begin()->first;
  if (!tell_again_.empty()) at = std::min(at, tell_again_.begin()->first);
  if (!events_.empty() && event_calls_.size() < options_.calls_max) at = Instant{0};
  if (!reads_.empty() && reading_.size() < options_.calls_max) {
    at = std::min(at, reads_.begin()->first);
  }
  return at;
}

std::optional<Waiting> StatusWriter::waiting(std::string_view uid) const {
  const auto it = notes_.find(uid);
  if (it == notes_.end() || it->second.wanted_reason.empty()) return std::nullopt;
  return Waiting{.reason = it->second.wanted_reason, .message = it->second.wanted_message};
}

// due_, reads_ and tell_again_ follow from the notes.
void StatusWriter::AddTo(Hasher& hasher) const {
  const auto add = [&](const client::ObjectRef& pod) {
    hasher.Add(pod.namespace_name).Add(pod.name).Add(pod.uid).AddVersion(pod.resource_version);
  };
  hasher.Add(notes_.size());
  if (HashNames* names = hasher.names()) {
    for (const auto& [uid, note] : notes_) {
      if (note.unknown != 0) names->NameCall(note.unknown, HashOf(uid));
    }
  }
  for (const auto& [uid, note] : notes_) {
    hasher.Add(uid).Add(note.scheduler_name);
    add(note.pod);
    hasher.Add(note.status).Add(note.reason).Add(note.message).Add(note.transition.ns);
    hasher.Add(note.nominated).Add(note.wanted_nominated.has_value());
    hasher.Add(note.wanted_nominated.value_or("")).Add(note.sent_nominated.has_value());
    hasher.Add(note.sent_nominated.value_or(""));
    hasher.Add(note.nomination_not_before.ns).Add(note.refusals).Add(note.refused_until.ns);
    hasher.Add(note.sent_reason).Add(note.generation).Add(note.tell_at.ns);
    hasher.Add(note.wanted_reason).Add(note.wanted_message.view()).Add(note.told_message.view());
    hasher.AddCall(note.call).AddVersion(note.sent_version).AddVersion(note.spent_version);
    hasher.Add(note.withdrawn).Add(note.conflicted).Add(note.not_before.ns).Add(note.due.ns);
    hasher.AddCall(note.unknown).Add(note.reads_failed).Add(note.read.ns);
  }
  hasher.Add(calls_.size());
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(std::string_view(entry.second));
  });
  hasher.Add(event_calls_.size());
  hasher.AddEach(event_calls_, [](Hasher& one, uint64_t call) { one.AddCall(call); });
  hasher.Add(events_.size());
  for (const client::EventFacts& facts : events_) {
    add(facts.regarding);
    hasher.Add(facts.related.has_value());
    if (facts.related) add(*facts.related);
    hasher.Add(facts.kind).Add(facts.api_version).Add(facts.type).Add(facts.reason);
    hasher.Add(facts.action).Add(facts.note).Add(facts.controller).Add(facts.instance);
    hasher.Add(facts.time.ns).AddHistory(facts.serial);
  }
  hasher.Add(reading_.size());
  hasher.AddEach(reading_, [](Hasher& one, uint64_t write) { one.AddCall(write); });
  hasher.AddHistory(serial_);
}

}  // namespace berth::control
