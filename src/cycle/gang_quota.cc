#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cycle/engine.h"

// Groups and the quota of their queues: who is let in, whose members may be placed, and who waits
// for what others use (docs/design/0010-gangs.md).
namespace berth::cycle {

using model::GroupBar;
using model::GroupId;
using model::MemberKind;
using model::Plan;
using model::PodId;
using QuotaShort = model::State::QuotaShort;

namespace {

// Whether they tell a user the same, but for how much is missing: each end of a member would
// else be a write for everyone who waits.
bool SaysTheSame(const std::optional<QuotaShort>& a, const std::optional<QuotaShort>& b) {
  if (!a || !b) return false;
  return a->resource == b->resource && a->queue == b->queue && a->never == b->never;
}

}  // namespace

bool Engine::FitsQuota(PodId pod, Trial& trial) const {
  trial.lacks = state_.ShortFor(pod, trial.to_come);
  return !trial.lacks;
}

// A member that is placed by itself; whether it has to.
bool Engine::WaitForQuota(PodId pod) {
  if (!state_.pods().at(pod).group.valid() || !state_.ShortFor(pod)) return false;
  quota_waiting_[pod] = std::nullopt;
  quota_untold_ = true;
  return true;
}

void Engine::NoteForQuota(GroupId g, const model::Refusal& refusal) {
  if (gang::IsForQuota(refusal)) groups_for_quota_.insert(g);
}

void Engine::TakeQuota(Plan& plan) {
  if (quota_due()) {
    LetGroupsIn(plan);
    WakeMembersForQuota();
    WakeGroupsForQuota();
    admissions_.NoteGroupQuota(state_);
  }
  quota_seen_ = state_.ledger().quota_moves();
}

void Engine::SortGroups(std::vector<GroupId>& groups) const {
  std::ranges::sort(groups, [&](GroupId a, GroupId b) {
    const model::Group& x = state_.groups().at(a);
    const model::Group& y = state_.groups().at(b);
    if (const int32_t i = gang::PriorityOf(state_, a), j = gang::PriorityOf(state_, b); i != j)
      return i > j;
    if (x.creation != y.creation) return x.creation < y.creation;
    return state_.UidOf(x.uid) < state_.UidOf(y.uid);
  });
}

std::vector<GroupId> Engine::GroupsWaitingIn(model::NameId queue) const {
  std::vector<GroupId> groups;
  for (uint32_t i = 0; i < state_.groups().size(); ++i) {
    if (state_.groups().used(GroupId{i}) && state_.groups().at(GroupId{i}).queue == queue &&
        WhyGroupWaits(GroupId{i})) {
      groups.emplace_back(i);
    }
  }
  SortGroups(groups);
  return groups;
}

// A group for which there is too little keeps nobody else out.
void Engine::LetGroupsIn(Plan& plan) {
  std::vector<GroupId> groups;
  for (const auto& [group, told] : to_let_in_) groups.push_back(group);
  SortGroups(groups);
  for (const GroupId g : groups) {
    if (state_.ShortFor(g)) continue;
    state_.LetIn(g);
    SyncGroup(g);
    plan.groups.push_back(g);
  }
}

// Its queue could never have what its members ask for at once.
bool Engine::RefusedForever(const model::Refusal& refusal) {
  return gang::IsForQuota(refusal) && refusal.reasons.front().unresolvable;
}

// A group that is blocked for quota of which no member would get any yet, or never all of them.
bool Engine::LacksQuota(GroupId g) const {
  const model::Refusal& refusal = groups_.refusal(g);
  if (!gang::IsForQuota(refusal)) return false;
  const auto least = [&] { return gang::LeastOf(state_, g, gang::NeedOf(state_, g)); };
  if (RefusedForever(refusal) && state_.NeverFor(g, least())) return true;
  const std::vector<PodId> members = gang::WaitingMembers(state_, g);
  return std::ranges::all_of(
      members, [&](PodId pod) { return state_.ShortFor(pod, /*to_come=*/true).has_value(); });
}

// Members stand in line as far as the quota goes, in the order of pods: each counts as if it was
// placed already, but for who joins a line that is known to fit nowhere. Those whom that keeps back
// are looked at again once it is known who took some.
void Engine::WakeMembersForQuota() {
  std::vector<PodId> pods;
  for (const auto& [pod, told] : quota_waiting_) {
    if (!state_.ShortFor(pod)) pods.push_back(pod);
  }
  std::ranges::sort(pods, [&](PodId a, PodId b) { return WaitingLines::PodBefore(state_, a, b); });
  quota_held_back_ = false;
  model::Transaction look = state_.Begin();
  for (const PodId pod : pods) {
    if (state_.ShortFor(pod)) {
      quota_held_back_ = true;
      continue;
    }
    Sync(pod);
    const bool blocked =
        lines_.contains(pod) && lines_.line(lines_.line_of(pod)).mode == Line::Mode::kBlocked;
    if (!blocked) state_.ChargeAsPlaced(look, pod);
  }
  look.RollbackTo(model::Transaction::Checkpoint{});
}

void Engine::WakeGroupsForQuota() {
  for (const GroupId g : groups_for_quota_) {
    if (!groups_.is_blocked(g) || LacksQuota(g) || options_.faults.forget_quota_waiters) continue;
    groups_.Wake(state_, g, gang::PriorityOf(state_, g));
    ++counters_.wakes;
  }
}

// Who waits for quota is told what there is too little of.
void Engine::TellShort(Plan& plan) {
  if (!std::exchange(quota_untold_, false)) return;
  for (auto& [group, told] : to_let_in_) {
    const std::optional<QuotaShort> lacks = state_.ShortFor(group);
    if (!lacks || SaysTheSame(told, lacks)) continue;
    told = lacks;
    plan.groups.push_back(group);
    TellMembers(group, gang::RefusalOf(state_, group, *lacks), plan);
  }
  for (auto& [pod, told] : quota_waiting_) {
    const std::optional<QuotaShort> lacks = state_.ShortFor(pod);
    if (!lacks || SaysTheSame(told, lacks)) continue;
    told = lacks;
    plan.refusals.push_back(gang::RefusalOf(state_, state_.GroupOf(pod), *lacks));
    TellRefused(pod, plan);
  }
}

std::vector<GroupId> Engine::MissedEntries() const {
  std::vector<GroupId> missed;
  for (const auto& [group, told] : to_let_in_) {
    if (!state_.ShortFor(group)) missed.push_back(group);
  }
  return missed;
}

std::vector<PodId> Engine::MissedQuota() const {
  std::vector<PodId> missed;
  for (const auto& [pod, told] : quota_waiting_) {
    if (!state_.ShortFor(pod)) missed.push_back(pod);
  }
  return missed;
}

}  // namespace berth::cycle
