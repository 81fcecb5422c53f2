#include <algorithm>
#include <optional>

#include "base/check.h"
#include "model/backoff.h"
#include "model/state.h"

// What a preemption decides: a reserved claim of who preempts, and claims of its victims that are
// releasing for it (ARCHITECTURE.md, "The ledger"). Promise and evictions begin and end together.
namespace berth::model {

ClaimId State::PromiseOf(PodId pod) const {
  const ClaimId id = ClaimOf(pod);
  if (!id.valid() || ledger_.claim(id).state != ClaimState::kReserved) return ClaimId{};
  return id;
}

NodeId State::PromisedNodeOf(PodId pod) const {
  const ClaimId promise = PromiseOf(pod);
  return promise.valid() ? ledger_.claim(promise).account.node() : NodeId{};
}

std::vector<PodId> State::VictimsOf(PodId pod) const {
  std::vector<PodId> victims;
  const ClaimId promise = PromiseOf(pod);
  if (!promise.valid()) return victims;
  const Claim& promised = ledger_.claim(promise);
  for (ClaimId id = ledger_.nodes().first_claim(promised.account.row()); id.valid();
       id = ledger_.claim(id).next_in_account) {
    if (ledger_.claim(id).claimant != promised.owner) continue;
    const PodId victim = pods_.FindUid(ledger_.claim(id).owner);
    if (victim.valid()) victims.push_back(victim);
  }
  return victims;
}

std::optional<NameId> State::NominationToWrite(PodId id) const {
  const Pod& pod = pods_.at(id);
  if (pod.write != WriteStage::kNone) return std::nullopt;
  if (pod.promised.valid()) return pod.promised;
  if (faults_.keep_void_nominations) return std::nullopt;
  if (pod.ours && pod.void_node.valid() && pod.nominated == pod.void_node) return NameId{};
  return std::nullopt;
}

// Adds the promise, or changes the one there is on its account, and what it evicts.
void State::Reserve(Transaction& t, const Claim& promise, ClaimId existing,
                    std::span<const PodId> victims) {
  for (const PodId victim : victims) {
    const ClaimId charged = ClaimOf(victim);
    CHECK(charged.valid());
    CHECK(ledger_.claim(charged).account == promise.account);
    CHECK(ledger_.claim(charged).priority < promise.priority);
  }
  PutEvicted(t, promise.owner, victims);
  if (existing.valid()) {
    t.Change(existing, promise);
  } else if (!faults_.promise_when_observed) {
    t.Add(promise);
  }
  ShareOfOwner(t, promise.owner);
  TakeOver(t, promise);
}

Claim State::PromiseFor(const Placement& placement) const {
  const Pod& pod = pods_.at(placement.pod);
  CHECK(!pod.node.valid() && pod.write == WriteStage::kNone);
  CHECK(nodes_.present(placement.node));
  return {.owner = OwnerOf(placement.pod),
          .account = AccountId::OfNode(placement.node),
          .bundle = pod.charge,
          .scoring = pod.charge_scoring,
          .devices = placement.devices,
          .priority = pod.priority,
          .account_uid = nodes_.uid(placement.node),
          .state = ClaimState::kReserved,
          .why = ClaimWhy::kNominated};
}

bool State::CanPromise(PodId id, NodeId node, DeviceSlots devices, std::span<const PodId> victims) {
  const Claim promise = PromiseFor({.pod = id, .node = node, .devices = devices});
  const ClaimId before = PromiseOf(id);
  const bool stays = before.valid() && ledger_.claim(before).account == promise.account;
  Transaction t = Begin();
  Reserve(t, promise, stays ? before : ClaimId{}, victims);
  SettleRests(t);
  return t.NetCharge() <= 0;
}

bool State::Promise(PodId id, NodeId node, DeviceSlots devices, std::span<const PodId> victims) {
  const Claim promise = PromiseFor({.pod = id, .node = node, .devices = devices});
  if (const ClaimId before = PromiseOf(id);
      before.valid() && ledger_.claim(before).account != promise.account) {
    // What it has ends only for what it gets. Whom the first would have evicted stays, which may
    // take from others what they counted on: so it ends as what is taken back does.
    if (!CanPromise(id, node, devices, victims)) return false;
    EndNodeClaim(id, Cause::kRevoked);
  }
  Transaction t = Begin();
  Reserve(t, promise, PromiseOf(id), victims);
  SettleRests(t);
  if (t.NetCharge() > 0) return false;
  Commit(t, Cause::kDecided);
  NoteReserved(id, node);
  return true;
}

// Its promise stands, and so does what it evicts.
void State::NoteReserved(PodId id, NodeId node) {
  Pod& pod = pods_.mutable_at(id);
  const NameId name = nodes_.name(node);
  NoteEvicted(OwnerOf(id), VictimsOf(id));
  homeless_.Remove(id);
  NotePromised(id, name);
  pod.lost = {};
  pod.attempts = 0;
  pod.backoff_until = Instant{};
}

void State::NotePromised(PodId id, NameId node) {
  Pod& pod = pods_.mutable_at(id);
  // Where a promise was taken back or moved since the object was seen, the write of that may be on
  // its way.
  const bool named = pod.nominated == node && !pod.void_node.valid() && !pod.promised.valid();
  pod.promised = named ? NameId{} : node;
  if (pod.slot != node) pod.slot = NameId{};
  if (pod.void_node == node) pod.void_node = NameId{};
}

void State::ApplyRefused(const PreemptionRefused& facts) {
  GiveUp(FindPod(facts.uid), facts.code, facts.at,
         facts.code == 0 ? ReasonKind::kPromiseWriteLost : ReasonKind::kPromiseWriteRefused);
}

void State::ApplyRefused(const EvictionRefused& facts) {
  if (const WorkloadId victim = FindWorkload(facts.uid); victim.valid()) {
    const WorkloadId claimant = workloads_.at(victim).claimant;
    // It leaves all the same.
    if (!claimant.valid() || StageOf(workloads_.at(victim).status) == WorkloadStage::kEvicted)
      return;
    Workload& row = workloads_.mutable_at(victim);
    row.spared_until = facts.at + SparedFor(++row.spared_count);
    doubtful_.insert(row.uid);
    changed_workloads_.push_back(victim);
    EndQuotaPromise(claimant, Cause::kWriteRefused);
    changed_workloads_.push_back(claimant);
    return;
  }
  const PodId id = FindPod(facts.uid);
  if (!id.valid() || pods_.at(id).terminating) return;  // It leaves all the same.
  Pod& pod = pods_.mutable_at(id);
  const OwnerId preemptor = pod.evicted_for;
  pod.spared_until = facts.at + SparedFor(++pod.spared_count);
  doubtful_.insert(pod.uid);
  changed_pods_.push_back(id);
  Keep(id);
  // Who is to be beside it may evict others there now.
  TouchNodeOf(id, kTouchEvictable);
  if (const WorkloadId workload = workloads_.FindUid(preemptor); workload.valid()) {
    EndQuotaPromise(workload, Cause::kWriteRefused);
    changed_workloads_.push_back(workload);
  }
  GiveUp(pods_.FindUid(preemptor), facts.code, facts.at,
         facts.failed ? ReasonKind::kPromiseEvictionFails : ReasonKind::kPromiseEvictionRefused);
}

// For whom one leaves that was not seen to go yet: a pod, all of a gang, a workload; or the gang
// that gives it back.
struct State::Leaving {
  OwnerId one;
  KeyId gang;
  bool given_back = false;
  bool operator==(const Leaving&) const = default;
};

std::optional<State::Leaving> State::ToBeToldToLeaveFor(OwnerId uid) const {
  if (const WorkloadId id = workloads_.FindUid(uid); id.valid()) {
    const Workload& row = workloads_.at(id);
    if (!IsToBeEvicted(row)) return std::nullopt;
    return Leaving{.one = workloads_.at(row.claimant).uid};
  }
  const PodId id = pods_.FindUid(uid);
  if (!id.valid()) return std::nullopt;
  const Pod& row = pods_.at(id);
  if (row.terminating || !row.node.valid()) return std::nullopt;
  if (row.released) return Leaving{.gang = row.group, .given_back = true};
  if (!row.evicted_for.valid()) return std::nullopt;
  const PodId preemptor = pods_.FindUid(row.evicted_for);
  if (preemptor.valid() && pods_.at(preemptor).group.valid())
    return Leaving{.gang = pods_.at(preemptor).group};
  return Leaving{.one = row.evicted_for};
}

uint32_t State::RefusalsOf(OwnerId uid) const {
  if (const WorkloadId id = workloads_.FindUid(uid); id.valid())
    return workloads_.at(id).spared_count;
  const PodId id = pods_.FindUid(uid);
  return id.valid() ? pods_.at(id).spared_count : 0;
}

bool State::GoesAfterOthers(OwnerId uid) const {
  if (doubtful_.empty()) return false;
  const std::optional<Leaving> mine = ToBeToldToLeaveFor(uid);
  if (!mine) return false;
  const uint32_t count = RefusalsOf(uid);
  return std::ranges::any_of(doubtful_, [&](OwnerId other) {
    const uint32_t refusals = RefusalsOf(other);
    const bool first = refusals > count || (refusals == count && other < uid);
    return first && ToBeToldToLeaveFor(other) == mine;
  });
}

void State::EndSparing(PodId id) {
  pods_.mutable_at(id).spared_until = Instant{};
  TouchNodeOf(id, kTouchEvictable);
}

void State::EndSparing(WorkloadId id) {
  workloads_.mutable_at(id).spared_until = Instant{};
  changed_workloads_.push_back(id);
  changed_holders_.push_back(id);
  ChangeQueue(queues_.Find(QueueKind::kClusterQueue, ChargedTo(workloads_.at(id)).cluster_queue));
}

void State::TouchNodeOf(PodId id, TouchKinds kinds) {
  if (const ClaimId claim = ClaimOf(id); claim.valid())
    touches_.Add(ledger_.claim(claim).account.node(), kinds);
}

// What the promise needs written does not get done.
void State::GiveUp(PodId holder, int32_t code, Instant at, ReasonKind why) {
  if (!holder.valid() || !PromiseOf(holder).valid()) return;
  Pod& pod = pods_.mutable_at(holder);
  pod.refused_code = code;
  NoteError(pod, at);
  Revoke(holder, Cause::kWriteRefused, why);
  changed_pods_.push_back(holder);
}

void State::ApplyStands(const NominationStands& facts) {
  const PodId id = FindPod(facts.uid);
  if (!id.valid()) return;
  Pod& pod = pods_.mutable_at(id);
  if (!pod.promised.valid() || pod.promised != pod.nominated) return;
  pod.promised = NameId{};
  changed_pods_.push_back(id);
}

Instant State::LeavesBy(PodId id) const {
  const Pod& pod = pods_.at(id);
  if (pod.terminating) return pod.deletion_deadline;
  const WorkloadId workload = WorkloadOf(id);
  if (!workload.valid()) return {};
  return EvictedSince(workloads_.at(workload).status);
}

void State::NoteOverdue(PodId id) {
  Pod& pod = pods_.mutable_at(id);
  CHECK(pod.terminating || LeavesBy(id) != Instant{});
  if (faults_.wait_for_overdue) return;
  if (pod.overdue || pod.terminal || !pod.node.valid()) return;
  // Who is evicted by itself as well leaves for that.
  if (!pod.terminating && (pod.released || pod.evicted_for.valid())) return;
  pod.overdue = true;
  pod.released = false;
  EndEviction(id);
  SettleClaims(id);
  NoteSlot(id);
  // Others may evict it now.
  if (!pod.terminating) TouchNodeOf(id, kTouchEvictable);
}

// Who stays with its workload, or leaves with it by a decision that is yet to be written.
void State::EndOverdue(PodId id) {
  Pod& pod = pods_.mutable_at(id);
  if (pod.overdue && !pod.terminating && LeavesBy(id) == Instant{}) pod.overdue = false;
}

// Whether it is evicted for somebody, and what its budgets are charged for that, end together: but
// for who goes anyway, which their status is yet to count.
void State::EndEviction(PodId id) {
  Pod& pod = pods_.mutable_at(id);
  pod.evicted_for = OwnerId{};
  if (!pod.terminating && !pod.terminal) budgets_.Uncharge(id);
}

void State::VoidPromise(PodId id, NameId node) {
  Pod& pod = pods_.mutable_at(id);
  if (PromisedNode(pod) != node) return;
  pod.promised = pod.slot = NameId{};
  pod.void_node = node;
}

void State::NoteLost(PodId holder, ReasonKind why, NameId node) {
  pods_.mutable_at(holder).lost = {.why = why, .node = node};
  ++promises_lost_[static_cast<size_t>(why)];
}

void State::Revoke(PodId id, Cause cause, ReasonKind why, PodId heir) {
  const NodeId promised = PromisedNodeOf(id);
  if (!promised.valid()) return;
  if (heir.valid()) HandOver(VictimsOf(id), heir);
  Pod& pod = pods_.mutable_at(id);
  pod.void_node = nodes_.name(promised);
  pod.promised = pod.slot = NameId{};
  NoteLost(id, why, pod.void_node);
  EndNodeClaim(id, cause);
  SettleClaims(id);  // What its object names besides is promised to it again.
}

bool State::VoidAbsentNomination(PodId id) {
  Pod& pod = pods_.mutable_at(id);
  const NameId name = PromisedNode(pod);
  if (!pod.ours || !name.valid() || pod.nominated != name || PromiseOf(id).valid()) return false;
  homeless_.Remove(id);
  pod.promised = pod.slot = NameId{};
  pod.void_node = name;
  return true;
}

// A promise that moves to another node is another promise.
void State::ChangeClaim(Transaction& t, ClaimId id, const Claim& to) {
  const Claim before = ledger_.claim(id);
  if (to.state != ClaimState::kReserved || to.account != before.account) SpareVictims(t, before);
  t.Change(id, to);
  ShareOfOwner(t, to.owner);
}

void State::EndClaim(Transaction& t, ClaimId id) {
  const Claim ended = ledger_.claim(id);
  SpareVictims(t, ended);
  t.End(id);
  ShareOfOwner(t, ended.owner);
}

// Who leaves the node for a pod of lower priority leaves it for this one: the more important
// promise must not fail when the other ends.
void State::TakeOver(Transaction& t, const Claim& promise) {
  for (ClaimId id = ledger_.nodes().first_claim(promise.account.row()); id.valid();) {
    const ClaimId next = ledger_.claim(id).next_in_account;
    Claim claim = ledger_.claim(id);
    const PodId other = claim.claimant.valid() ? pods_.FindUid(claim.claimant) : PodId{};
    if (other.valid() && pods_.at(other).priority < promise.priority) {
      claim.claimant = promise.owner;
      t.Change(id, claim);
    }
    id = next;
  }
}

void State::HandOver(std::span<const PodId> victims, PodId heir) {
  Transaction t = Begin();
  for (const PodId victim : victims) {
    Claim claim = ledger_.claim(ClaimOf(victim));
    claim.claimant = OwnerOf(heir);
    t.Change(ClaimOf(victim), claim);
    pods_.mutable_at(victim).evicted_for = claim.claimant;
    changed_pods_.push_back(victim);
  }
  Commit(t, Cause::kRevoked);
}

// With a promise end the evictions for it: who is not being deleted yet stays.
void State::SpareVictims(Transaction& t, const Claim& promise) {
  if (promise.state != ClaimState::kReserved || promise.account.is_tree()) return;
  const OwnerId owner = promise.owner;
  for (ClaimId id = ledger_.nodes().first_claim(promise.account.row()); id.valid();) {
    const ClaimId next = ledger_.claim(id).next_in_account;
    const PodId victim = pods_.FindUid(ledger_.claim(id).owner);
    if (ledger_.claim(id).claimant == owner && victim.valid()) {
      EndEviction(victim);
      Claim kept = ledger_.claim(id);
      SetLeaving(kept, victim);
      t.Change(id, kept);
      Share(t, victim);
      changed_pods_.push_back(victim);
    }
    id = next;
  }
}

}  // namespace berth::model
