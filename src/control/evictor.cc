#include "control/evictor.h"

#include <fmt/format.h>

#include "base/check.h"
#include "model/backoff.h"

namespace berth::control {
namespace {

// On their way at once.
constexpr size_t kCallsMax = 64;

// The condition of a pod that is about to be deleted for another, as kube-scheduler sets it
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions).
std::string Mark(Instant now, const Evictor::Victim& victim) {
  std::string status =
      R"({"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler","message":)";
  client::AppendJsonString(
      status,
      fmt::format("{}: preempting to accommodate a higher priority pod", victim.scheduler_name));
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
  const bool again = planted_again_ && entry.stage == Stage::kDone;
  if (!inserted && !again && entry.victim.preemptor == victim.preemptor) return;
  if (entry.call != 0) calls_[entry.call].clear();
  Schedule(it->first, entry, Instant::Never());
  entry = Entry{.victim = victim};
  Schedule(it->first, entry, Instant{});
}

void Evictor::Forget(std::string_view uid) {
  const auto it = entries_.find(uid);
  if (it == entries_.end()) return;
  if (it->second.call != 0) calls_[it->second.call].clear();
  Schedule(it->first, it->second, Instant::Never());
  entries_.erase(it);
}

void Evictor::Pump(Instant now, const std::function<bool(const Victim&)>& wanted,
                   client::Client& client, env::Outbox& out) {
  while (calls_.size() < kCallsMax && !due_.empty() && due_.begin()->first <= now) {
    const std::string uid = due_.begin()->second;
    Entry& entry = entries_.find(uid)->second;
    if (!wanted(entry.victim)) {
      ++counters_.spared;
      Forget(uid);
      continue;
    }
    Schedule(uid, entry, Instant::Never());
    Send(now, uid, entry, client, out);
  }
}

void Evictor::Send(Instant now, const std::string& uid, Entry& entry, client::Client& client,
                   env::Outbox& out) {
  client::Request request =
      entry.stage == Stage::kMark
          ? client::PatchStatus(client::Pods(), entry.victim.pod, Mark(now, entry.victim))
          : client::Delete(client::Pods(), entry.victim.pod);
  request.priority = client::Priority::kHigh;
  entry.call = client.Call(now, std::move(request), out).value;
  calls_.emplace(entry.call, uid);
}

std::optional<Evictor::Result> Evictor::OnCallDone(Instant now, const client::CallDone& done) {
  const auto call = calls_.find(done.call.value);
  if (call == calls_.end()) return std::nullopt;
  const std::string uid = std::move(call->second);
  calls_.erase(call);
  const auto it = entries_.find(uid);
  if (it == entries_.end()) return Result{};
  Entry& entry = it->second;
  entry.call = 0;
  Result result{.victim = entry.victim};
  switch (done.outcome) {
    case client::Outcome::kDone:
      entry.failures = 0;
      result.evicted = entry.stage == Stage::kDelete;
      if (result.evicted) ++counters_.evicted;
      entry.stage = result.evicted ? Stage::kDone : Stage::kDelete;
      if (!result.evicted) Schedule(uid, entry, now);
      break;
    case client::Outcome::kGone:
      entry.stage = Stage::kDone;  // The watch tells.
      break;
    case client::Outcome::kRefused:
      ++counters_.refused;
      result.refused = done.response.status;
      Forget(uid);
      break;
    case client::Outcome::kConflict:
      // Another has its name, which the watch will tell; or it changed while it was written.
    case client::Outcome::kUnknown:
      ++counters_.unknown;
      Schedule(uid, entry, now + model::Backoff(++entry.failures));
      break;
  }
  return result;
}

Instant Evictor::wake_at() const {
  return due_.empty() || calls_.size() >= kCallsMax ? Instant::Never() : due_.begin()->first;
}

// due_ follows from the entries.
void Evictor::AddTo(Hasher& hasher) const {
  hasher.Add(planted_again_).Add(entries_.size());
  for (const auto& [uid, entry] : entries_) {
    const Victim& victim = entry.victim;
    hasher.Add(uid).Add(victim.pod.namespace_name).Add(victim.pod.name).Add(victim.node);
    hasher.Add(victim.scheduler_name).Add(victim.preemptor);
    hasher.Add(entry.stage).AddCall(entry.call).Add(entry.failures).Add(entry.due.ns);
  }
  hasher.Add(calls_.size());
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(std::string_view(entry.second));
  });
}

}  // namespace berth::control
