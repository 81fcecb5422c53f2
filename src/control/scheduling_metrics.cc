#include "control/scheduling_metrics.h"

#include <algorithm>

namespace berth::control {

SchedulingMetrics::OfProfile& SchedulingMetrics::Of(std::string_view profile) {
  const auto at = profiles_.find(profile);
  return at != profiles_.end() ? at->second : profiles_[std::string(profile)];
}

void SchedulingMetrics::Waits(Instant now, std::string_view uid) {
  if (waiting_.contains(uid)) return;
  waiting_[std::string(uid)] = {.since = now, .decided = {}};
  ++came_;
}

void SchedulingMetrics::Decided(Instant now, std::string_view uid) {
  const auto at = waiting_.find(uid);
  if (at == waiting_.end()) return;
  at->second.decided = now;
  at->second.reasons = 0;
  ++at->second.attempts;
}

void SchedulingMetrics::FoundNoNode(std::string_view uid, std::string_view profile,
                                    model::ReasonMask reasons) {
  ++Of(profile).unschedulable;
  ++refused_;
  const auto at = waiting_.find(uid);
  if (at == waiting_.end()) return;
  ++at->second.attempts;
  at->second.reasons = reasons;
  at->second.profile = profile;
}

SchedulingMetrics::Refusals SchedulingMetrics::CountRefused() const {
  Refusals counts;
  for (const auto& [uid, entry] : waiting_) {
    if (entry.reasons != 0) ++counts[{entry.profile, entry.reasons}];
  }
  return counts;
}

void SchedulingMetrics::BindSent(Instant now, std::string_view uid, std::string_view profile) {
  const auto at = waiting_.find(uid);
  if (at == waiting_.end()) return;
  at->second.sent = now;
  Of(profile).pre_bind.Add((now - at->second.decided).ns, kExtensionPointFirstNs);
}

void SchedulingMetrics::BindFailed(Instant now, std::string_view uid, std::string_view profile) {
  const auto at = waiting_.find(uid);
  if (at == waiting_.end()) return;
  Of(profile).bind_failed.Add((now - at->second.sent).ns, kExtensionPointFirstNs);
  at->second.sent = Instant::Never();
}

void SchedulingMetrics::Bound(Instant now, std::string_view uid, std::string_view profile) {
  OfProfile& of = Of(profile);
  ++of.scheduled;
  const auto at = waiting_.find(uid);
  if (at == waiting_.end()) return;
  const Entry entry = at->second;
  waiting_.erase(at);
  of.durations.Add((now - entry.decided).ns, kAttemptFirstNs);
  if (entry.sent != Instant::Never()) of.bind.Add((now - entry.sent).ns, kExtensionPointFirstNs);
  attempts_.Add(entry.attempts, 1);
  sli_[std::min(entry.attempts, kAttemptsMost)].Add((now - entry.since).ns, kSliFirstNs);
}

void SchedulingMetrics::Forget(std::string_view uid) {
  const auto at = waiting_.find(uid);
  if (at != waiting_.end()) waiting_.erase(at);
}

}  // namespace berth::control
