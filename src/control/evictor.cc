#include "control/evictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/backoff.h"

namespace berth::control {
namespace {

// On their way at once.
constexpr size_t kCallsMax = 64;
// The server did not look at it: no budget forbids a DELETE.
constexpr int kTooManyRequests = 429;

// The condition of a pod that is about to be deleted for another, as kube-scheduler sets it
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions), or
// for its gang.
std::string Mark(Instant now, const Evictor::Victim& victim) {
  std::string status = R"({"conditions":[{"type":"DisruptionTarget","status":"True","reason":)";
  if (victim.gang.empty()) {
    status += R"("PreemptionByScheduler","message":)";
    client::AppendJsonString(
        status, fmt::format("{}: preempting to accommodate a higher priority {}",
                            victim.scheduler_name, victim.for_workload ? "workload" : "pod"));
  } else {
    status += R"("GangReleased","message":)";
    client::AppendJsonString(status, fmt::format("{}: PodGroup {} was not completed in time",
                                                 victim.scheduler_name, victim.gang));
  }
  status +=
      R"(,"lastProbeTime":null,"lastTransitionTime":")" + client::SecondsTime(now) + R"("}]})";
  return status;
}

}  // namespace

void Evictor::Schedule(const std::string& uid, Entry& entry, Instant at) {
  due_.erase({entry.due, uid});
  entry.due = at;
  if (at != Instant::Never()) due_.emplace(at, uid);
}

void Evictor::Evict(const Victim& victim) {
  const auto [it, inserted] = entries_.try_emplace(victim.pod.uid);
  Entry& entry = it->second;
  entry.victim = victim;
  const bool again = planted_again_ && entry.stage == Stage::kDone;
  if (waiting_.erase(it->first) > 0) Schedule(it->first, entry, Instant{});
  if (!inserted && !again) return;
  entry.stage = victim.marked ? Stage::kDelete : Stage::kMark;
  Schedule(it->first, entry, Instant{});
}

void Evictor::Left(std::string_view uid) {
  const auto it = entries_.find(uid);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  Schedule(it->first, entry, Instant::Never());
  entry.left = true;
  if (entry.call != 0) return;
  if (entry.stage == Stage::kDelete && entry.may_be_done) NoteEvicted(entry);
  Drop(it);
}

void Evictor::AskAgain() {
  for (const std::string& uid : std::exchange(waiting_, {}))
    Schedule(uid, entries_.find(uid)->second, Instant{});
}

void Evictor::Drop(Entries::iterator it) {
  waiting_.erase(it->first);
  entries_.erase(it);
}

void Evictor::NoteEvicted(const Entry& entry) {
  ++counters_.evicted;
  evicted_.push_back(entry.victim);
}

void Evictor::Pump(Instant now, const Asks& asks, client::Client& client, env::Outbox& out) {
  while (calls_.size() < kCallsMax && !due_.empty() && due_.begin()->first <= now) {
    const std::string uid = due_.begin()->second;
    const auto it = entries_.find(uid);
    Schedule(uid, it->second, Instant::Never());
    if (!asks.wanted(it->second.victim)) {
      ++counters_.spared;
      Drop(it);
    } else if (asks.goes_after(it->second.victim)) {
      waiting_.insert(uid);
    } else {
      Send(now, uid, it->second, client, out);
    }
  }
}

void Evictor::Withdraw(const std::function<bool(const Victim&)>& wanted, client::Client& client) {
  if (client.calls_queued() == 0) return;
  std::erase_if(calls_, [&](const auto& open) {
    const auto it = entries_.find(open.second);
    Entry& entry = it->second;
    if (wanted(entry.victim) || !client.CancelQueued({open.first})) return false;
    if (entry.left && entry.stage == Stage::kDelete && entry.may_be_done) NoteEvicted(entry);
    if (!entry.left) ++counters_.spared;
    Drop(it);
    return true;
  });
}

void Evictor::Send(Instant now, const std::string& uid, Entry& entry, client::Client& client,
                   env::Outbox& out) {
  const bool mark = entry.stage == Stage::kMark;
  if (mark && entry.marked_at == Instant{}) entry.marked_at = now;
  client::Request request = mark ? client::PatchStatus(client::Pods(), entry.victim.pod,
                                                       Mark(entry.marked_at, entry.victim))
                                 : client::Delete(client::Pods(), entry.victim.pod);
  request.priority = client::Priority::kHigh;
  request.patience = Duration{};
  request.waits_for_tick = true;
  entry.call = client.Call(now, std::move(request), out).value;
  calls_.emplace(entry.call, uid);
}

std::optional<Evictor::Result> Evictor::OnCallDone(Instant now, const client::CallDone& done) {
  const auto call = calls_.find(done.call.value);
  if (call == calls_.end()) return std::nullopt;
  const std::string uid = std::move(call->second);
  calls_.erase(call);
  return OnAnswer(now, uid, done);
}

Evictor::Result Evictor::OnAnswer(Instant now, const std::string& uid,
                                  const client::CallDone& done) {
  const auto it = entries_.find(uid);
  CHECK(it != entries_.end());  // Kept while its call is open.
  Entry& entry = it->second;
  entry.call = 0;
  const bool deletes = entry.stage == Stage::kDelete;
  const bool unknown = done.outcome == client::Outcome::kUnknown;
  const bool not_sent =
      done.failure == env::CallFailure::kNotSent || done.response.status == kTooManyRequests;
  entry.may_be_done = entry.may_be_done || (deletes && unknown);
  Result result{.victim = entry.victim, .code = done.response.status};
  if (entry.left || done.outcome == client::Outcome::kGone) {
    if (deletes && (entry.may_be_done || done.outcome == client::Outcome::kDone))
      NoteEvicted(entry);
    entry.stage = Stage::kDone;  // The watch tells.
    if (entry.left) Drop(it);
  } else if (done.outcome == client::Outcome::kDone) {
    entry.failures = 0;
    entry.stage = deletes ? Stage::kDone : Stage::kDelete;
    if (deletes) {
      NoteEvicted(entry);
    } else {
      Schedule(uid, entry, now);
    }
  } else if (not_sent) {
    ++counters_.not_sent;
    Schedule(uid, entry, now + model::Backoff(1));
  } else if (done.outcome == client::Outcome::kRefused) {
    ++counters_.refused;
    result.end = Result::End::kRefused;
    Drop(it);
  } else {
    // In conflict: another has its name, which the watch will tell; or it changed while it was
    // written.
    ++counters_.unknown;
    if (++entry.failures < kFailuresMax) {
      Schedule(uid, entry, now + model::Backoff(entry.failures));
      return result;
    }
    ++counters_.given_up;
    result.end = Result::End::kFailed;
    Drop(it);
  }
  return result;
}

Instant Evictor::wake_at() const {
  return due_.empty() || calls_.size() >= kCallsMax ? Instant::Never() : due_.begin()->first;
}

// due_ follows from the entries.
void Evictor::AddTo(Hasher& hasher) const {
  CHECK(evicted_.empty());
  hasher.Add(planted_again_).Add(entries_.size());
  for (const auto& [uid, entry] : entries_) {
    const Victim& victim = entry.victim;
    hasher.Add(uid).Add(victim.pod.namespace_name).Add(victim.pod.name).Add(victim.node);
    hasher.Add(victim.scheduler_name).Add(victim.preemptor.uid).Add(victim.gang);
    hasher.Add(victim.marked).Add(waiting_.contains(uid));
    hasher.Add(entry.may_be_done).Add(entry.left).Add(entry.marked_at.ns);
    hasher.Add(entry.stage).AddCall(entry.call).Add(entry.failures).Add(entry.due.ns);
  }
  hasher.Add(calls_.size());
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(std::string_view(entry.second));
  });
}

}  // namespace berth::control
