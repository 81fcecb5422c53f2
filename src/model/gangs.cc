#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "model/backoff.h"
#include "model/state.h"

// Groups, who is a member of which, and members that are placed together
// (docs/design/0010-gangs.md).
namespace berth::model {

bool State::HasRoomFor(const GroupUpsert& facts) const {
  // One of its name goes when it comes.
  return groups_.live() < limits::kGroupsMax || FindGroup(facts.uid).valid() ||
         groups_.FindKey(keys_.Find(facts.key)).valid();
}

void State::ApplyGroup(const GroupUpsert& facts) {
  CHECK(HasRoomFor(facts));
  FitLedger();
  PinRoot();
  const NameId queue = vocabulary_.names.Intern(facts.queue);
  bool moved = false;
  GroupId id = FindGroup(facts.uid);
  if (!id.valid()) {
    const GroupId other = groups_.FindKey(keys_.Find(facts.key));
    // A replay of one that is long gone.
    if (other.valid() && facts.creation < groups_.at(other).creation) return;
    // As with pods, before the other goes.
    id = groups_.Add(uids_.Acquire(facts.uid), keys_.Acquire(facts.key));
    groups_.SetQueue(id, queue);
    moved = true;
    if (other.valid()) DropGroup(other);
    ChangeMembers(groups_.at(id).key);
  }
  Group& group = groups_.mutable_at(id);
  const bool kept = IsKeptFor(group);
  const BundleId asked = group.min_resources;
  group.min_of_roles = facts.min_of_roles;
  std::ranges::sort(group.min_of_roles);
  group.min_member = facts.min_member;
  group.priority = facts.priority;
  group.creation = facts.creation;
  const GroupPhase before = std::exchange(group.phase, facts.phase);
  group.attempts = 0;
  group.min_resources = facts.min_resources;
  // One that waits may not know yet that it was let in, nor one that was completed and waits again.
  if (group.phase != GroupPhase::kPending &&
      (group.phase != GroupPhase::kCompleted || before != GroupPhase::kCompleted)) {
    group.let_in = false;
  }
  if (kept && (!IsKeptFor(group) || group.min_resources != asked)) NoteKeeping();
  moved = groups_.SetQueue(id, queue) != queue || moved;
  const KeyId key = group.key;
  changed_groups_.push_back(id);
  if (moved) {
    SettleShares(key);
    // Who waits for quota asks another queue now, also where nothing was charged to either.
    ledger_.NoteQuotaMoved();
  }
  Unsettle(id);
}

void State::RemoveGroup(const GroupRemove& facts) {
  const GroupId id = FindGroup(facts.uid);
  if (!id.valid()) return;
  const KeyId key = groups_.at(id).key;
  if (faults_.clean_groups_by_name && groups_.CountsOf(key) != MemberCounts{})
    ended_groups_.push_back(key);
  DropGroup(id);
}

// The planted bug.
void State::CleanByName(KeyId group) {
  if (groups_.CountsOf(group) != MemberCounts{} || std::erase(ended_groups_, group) == 0) return;
  if (const GroupId id = groups_.FindKey(group); id.valid()) DropGroup(id);
}

void State::DropGroup(GroupId id) {
  const Group row = groups_.at(id);
  Transaction t = Begin();
  while (ledger_.first_of_owner(row.uid).valid()) t.End(ledger_.first_of_owner(row.uid));
  t.Commit(Cause::kOwnerDeleted);
  std::erase(unsettled_, id);
  std::erase(to_come_, id);
  groups_.SetQueue(id, NameId{});
  groups_.Remove(id);
  changed_groups_.push_back(id);
  SettleShares(row.key);
  ChangeMembers(row.key);
  // Nobody is left for whom they would have to go.
  groups_.ForMembers(row.key, [&](PodId pod) { Keep(pod); });
  uids_.Release(row.uid);
  keys_.Release(row.key);
}

// Whether they wait by themselves depends on their group.
void State::ChangeMembers(KeyId group) {
  groups_.ForMembers(group, [&](PodId pod) { changed_pods_.push_back(pod); });
}

void State::NoteMember(PodId id) {
  const Pod& pod = pods_.at(id);
  const KeyId before = groups_.GroupOf(id);
  if (!groups_.Note(id, pod.group, MemberKindOf(pod))) return;
  for (const KeyId key : {before, pod.group}) {
    const GroupId group = groups_.FindKey(key);
    if (!group.valid()) continue;
    groups_.mutable_at(group).attempts = 0;
    changed_groups_.push_back(group);
    Unsettle(group);
  }
}

void State::Release(PodId id) {
  Pod& pod = pods_.mutable_at(id);
  CHECK(pod.node.valid() && !pod.terminating && !pod.terminal);
  pod.released = true;
  SettleClaims(id);
  NoteMember(id);
}

// Takes back that it is to be deleted for its gang.
void State::Keep(PodId id) {
  if (!std::exchange(pods_.mutable_at(id).released, false)) return;
  SettleClaims(id);
  NoteMember(id);
}

void State::NoteMembers() {
  // What it notes of changed pods changes none.
  for (const PodId pod : changed_pods_) {
    if (pods_.used(pod)) NoteMember(pod);
  }
}

void State::NoteAttempt(GroupId id, Instant now) {
  Group& group = groups_.mutable_at(id);
  group.backoff_until = now + Backoff(++group.attempts, backoff_);
}

// ---- Trials ----------------------------------------------------------------------------------

void State::Trial::Place(const Placement& placement) {
  const ClaimId promise = state_.PromiseOf(placement.pod);
  placed_.push_back({.placement = placement,
                     .before = promise.valid() ? state_.ledger_.claim(promise) : Claim{}});
  state_.AssumeIn(transaction_, placement);
  state_.touches_.Add(placement.node, kTouchTried);
}

void State::Trial::Reserve(const Placement& placement, std::span<const PodId> victims) {
  CHECK(!state_.ClaimOf(placement.pod).valid());
  state_.Reserve(transaction_, state_.PromiseFor(placement), ClaimId{}, victims);
  reserved_.push_back(placement);
  for (const PodId victim : victims) budgets_.Charge(victim, state_.pods_.at(victim).labels);
  state_.touches_.Add(placement.node, kTouchTried);
}

void State::Trial::WithoutPromise(PodId pod, PodId heir) {
  const ClaimId promise = state_.PromiseOf(pod);
  CHECK(promise.valid());
  CHECK_EQ(transaction_.checkpoint().operations, size_t{0});
  const Claim ended = state_.ledger_.claim(promise);
  for (const PodId victim : state_.VictimsOf(pod)) {
    if (state_.pods_.at(victim).terminating || heir.valid()) continue;
    // It may leave for its group or its workload all the same.
    const OwnerId evicted_for = std::exchange(state_.pods_.mutable_at(victim).evicted_for, {});
    Claim kept = state_.ledger_.claim(state_.ClaimOf(victim));
    state_.SetLeaving(kept, victim);
    taken_back_.Change(state_.ClaimOf(victim), kept);
    state_.Share(taken_back_, victim);
    state_.pods_.mutable_at(victim).evicted_for = evicted_for;
    budgets_.Uncharge(victim);
  }
  taken_back_.End(promise);
  state_.ShareOfOwner(taken_back_, ended.owner);
  state_.SettleRests(taken_back_);
  without_.push_back(ended.account.node());
  state_.touches_.Add(without_.back(), kTouchTried);
}

bool State::Trial::Fits() {
  state_.SettleRests(transaction_);
  return transaction_.NetCharge() <= 0;
}

void State::Trial::Keep() {
  CHECK(without_.empty());
  budgets_.End();
  state_.Commit(transaction_, Cause::kDecided);
  for (const auto& [placement, before] : std::exchange(placed_, {})) {
    NodeId left;
    if (before.owner.valid()) {
      left = before.account.node();
      state_.SpareVictims(transaction_, before);
      state_.Commit(transaction_, Cause::kRevoked);
    }
    state_.NoteAssumed(placement, left);
    state_.NotePromised(placement.pod, state_.nodes_.name(placement.node));
  }
  for (const Placement& placement : std::exchange(reserved_, {})) {
    state_.NoteReserved(placement.pod, placement.node);
    state_.ledger_.mutable_volume_uses().TakeBack(state_.OwnerOf(placement.pod));
  }
}

// What was derived from the nodes meanwhile is derived anew.
State::Trial::~Trial() {
  transaction_.RollbackTo(Transaction::Checkpoint{});
  taken_back_.RollbackTo(Transaction::Checkpoint{});
  const auto undo = [&](const Placement& placement) {
    state_.ledger_.mutable_volume_uses().TakeBack(state_.OwnerOf(placement.pod));
    state_.touches_.Add(placement.node, kTouchTried);
  };
  for (const Placed& placed : placed_) undo(placed.placement);
  for (const Placement& placement : reserved_) undo(placement);
  for (const NodeId node : without_) state_.touches_.Add(node, kTouchTried);
}

}  // namespace berth::model
