#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "model/backoff.h"
#include "model/state.h"

// Workloads, the LocalQueues that they come through, and what they are charged of the queue tree
// (docs/design/0011-quota.md).
namespace berth::model {

// ---- LocalQueues -----------------------------------------------------------------------------

bool State::HasRoomFor(const LocalQueueUpsert& facts) const {
  return local_queues_.live() < limits::kLocalQueuesMax ||
         local_queues_.FindUid(uids_.Find(facts.uid)).valid() ||
         local_queues_.FindKey(keys_.Find(facts.key)).valid();
}

void State::ApplyLocalQueue(const LocalQueueUpsert& facts) {
  CHECK(HasRoomFor(facts));
  LocalQueueId id = local_queues_.FindUid(uids_.Find(facts.uid));
  if (!id.valid()) {
    const LocalQueueId other = local_queues_.FindKey(keys_.Find(facts.key));
    id = local_queues_.Add(uids_.Acquire(facts.uid), keys_.Acquire(facts.key));
    if (other.valid()) DropLocalQueue(other);
  }
  LocalQueue& row = local_queues_.mutable_at(id);
  const NameId queue = vocabulary_.names.Intern(facts.cluster_queue);
  const bool same = row.cluster_queue == queue && row.bar == facts.bar;
  row.cluster_queue = queue;
  row.bar = facts.bar;
  if (!same) ChangeWorkloadsOf(row.key);
}

void State::RemoveLocalQueue(const LocalQueueRemove& facts) {
  const LocalQueueId id = local_queues_.FindUid(uids_.Find(facts.uid));
  if (!id.valid()) return;
  const KeyId key = local_queues_.at(id).key;
  ChangeWorkloadsOf(key);
  DropLocalQueue(id);
}

void State::DropLocalQueue(LocalQueueId id) {
  const LocalQueue row = local_queues_.at(id);
  local_queues_.Remove(id);
  uids_.Release(row.uid);
  keys_.Release(row.key);
}

// O(workloads), when a LocalQueue comes, goes, or leads elsewhere.
void State::ChangeWorkloadsOf(KeyId local_queue) {
  for (uint32_t i = 0; i < workloads_.size(); ++i) {
    const WorkloadId id{i};
    if (workloads_.used(id) && workloads_.at(id).local_queue == local_queue)
      changed_workloads_.push_back(id);
  }
}

// ---- Workloads -------------------------------------------------------------------------------

bool State::HasRoomFor(const WorkloadUpsert& facts) const {
  // One of its name goes when it comes.
  WorkloadId known = FindWorkload(facts.uid);
  if (!known.valid()) known = workloads_.FindKey(keys_.Find(facts.key));
  if (!known.valid() && workloads_.live() >= limits::kWorkloadsMax) return false;
  if (facts.status.finished || !facts.status.reserved) return true;
  return HasRoomFor(facts.reserved,
                    known.valid() ? ChargedTo(workloads_.at(known)) : Reservation{});
}

bool State::HasRoomFor(const Reservation& reservation, const Reservation& before) const {
  if (slots_.free_count() + reservation.slots.size() > limits::kFreeSlotsMax &&
      reservation.slots.size() > before.slots.size()) {
    return false;
  }
  if (reservation.charges.empty() || reservation == before) return true;
  int64_t slots = ledger_.slots_charged();
  for (const QuotaCharge& charge : before.charges) slots -= charge.count;
  QueueUpsert facts{.kind = QueueKind::kClusterQueue};
  for (const QuotaCharge& charge : reservation.charges) {
    slots += charge.count;
    facts.quotas.push_back({.flavor = charge.flavor, .resource = {}, .quota = {}});
  }
  if (slots > limits::kSlotsMax) return false;
  const QueueId q = queues_.Find(QueueKind::kClusterQueue, reservation.cluster_queue);
  return queues_.HasRoomFor(facts, q, q.valid() ? queues_.at(q).parent : QueueId{});
}

namespace {

bool NamesGroup(const Workload& row) {
  return std::ranges::any_of(row.slots, [](const WorkloadSlots& set) { return set.gang.valid(); });
}

// The same, but for what PriorityClasses say of its pods, which is no news of the object.
bool DiffersAtMostInClasses(const Workload& row, Workload before) {
  if (row.slots.size() != before.slots.size()) return false;
  for (size_t i = 0; i < row.slots.size(); ++i) {
    before.slots[i].priority = row.slots[i].priority;
    before.slots[i].preempts = row.slots[i].preempts;
  }
  return row == before;
}

}  // namespace

void State::ApplyWorkload(const WorkloadUpsert& facts) {
  CHECK(HasRoomFor(facts));
  WorkloadId id = FindWorkload(facts.uid);
  if (!id.valid()) {
    const WorkloadId other = workloads_.FindKey(keys_.Find(facts.key));
    // A replay of one that is long gone.
    if (other.valid() && facts.status.created < workloads_.at(other).status.created) return;
    id = workloads_.Add(uids_.Acquire(facts.uid), keys_.Acquire(facts.key));
    if (other.valid()) DropWorkload(other, Cause::kOwnerReplaced);
  }
  const Workload before = workloads_.at(id);
  Workload& row = workloads_.mutable_at(id);
  const KeyId queue_before = std::exchange(row.local_queue, keys_.Acquire(facts.local_queue));
  if (queue_before.valid()) keys_.Release(queue_before);
  row.generation = facts.generation;
  row.priority = facts.priority;
  row.priority_class = facts.priority_class;
  row.status = facts.status;
  SetJob(id, facts.job);
  row.slots = facts.slots;
  for (WorkloadSlots& set : row.slots)
    set.preempts = set.preempts && RulesOf(set.class_id).preempts;
  row.reserved = facts.reserved;
  if (faults_.charge_all_pods) {
    for (QuotaCharge& charge : row.reserved.charges) charge.count = row.slots[charge.pod_set].count;
  }
  row.unhealthy = facts.unhealthy;
  row.checks = facts.checks;
  row.checks_pending = facts.checks_pending;
  const bool finished = row.status.finished;
  // What is under way of one that has quota was decided on what it was: any news replaces it.
  const bool has = row.status.reserved || before.status.reserved;
  const bool replaced = finished || (has && !DiffersAtMostInClasses(row, before));
  if (replaced) {
    row.write = WriteStage::kNone;
    row.decided = {};
  }
  // What was refused was another object.
  if (replaced || row.generation != before.generation || row.local_queue != before.local_queue ||
      row.priority != before.priority) {
    row.errors = 0;
    row.not_before = {};
  }
  // A promise was made to one that waited as it did then, and asked for what it did.
  std::vector<WorkloadId> spared;
  if (row.status != before.status || row.slots != before.slots || row.priority != before.priority ||
      row.generation != before.generation) {
    spared = TakePromise(id);
  }
  if (const WorkloadStage stage = StageOf(row.status);
      stage != WorkloadStage::kReserved && stage != WorkloadStage::kAdmitted) {
    row.spared_until = {};
    row.spared_count = 0;
    doubtful_.erase(row.uid);
  }
  SettleReservations(std::span(&id, 1), finished ? Cause::kOwnerFinished : Cause::kObserved);
  if (IsLeaving(id)) Unseat(id);
  Spare(spared);
  const Workload& after = workloads_.at(id);
  // By when its pods are to be gone is another time now.
  if (EvictedSince(before.status) != EvictedSince(after.status)) {
    const std::vector<PodId> pods = PodsOf(id);
    changed_pods_.insert(changed_pods_.end(), pods.begin(), pods.end());
  }
  if (after != before) changed_workloads_.push_back(id);
  const bool holds = !ChargedTo(before).charges.empty() && !ChargedTo(after).charges.empty();
  if (holds && IsOfOtherPriorityClass(before, after))
    ChangeQueue(queues_.Find(QueueKind::kClusterQueue, ChargedTo(after).cluster_queue));
}

void State::RemoveWorkload(const WorkloadRemove& facts) {
  if (const WorkloadId id = FindWorkload(facts.uid); id.valid())
    DropWorkload(id, Cause::kOwnerDeleted);
}

void State::DropWorkload(WorkloadId id, Cause cause) {
  const std::vector<WorkloadId> spared = TakePromise(id);
  ForgetClaimant(id);
  const Workload row = workloads_.at(id);
  std::vector<uint32_t> left;
  Transaction t = Begin();
  PutReservation(t, row.uid, {}, left);
  Replace(t, id, {});
  PutPromised(t, id);
  NoteToCome(id);
  // From now on it is none of those that are to start pods of its groups.
  if (!slots_.of(id).gangs.empty()) NoteKeeping();
  slots_.SetGangs(id, {});
  Commit(t, cause);
  NoteLeft(left);
  DropLeftGhosts();
  const bool others = row.job.valid() && slots_.WorkloadsOf(row.job).size() > 1;
  if (row.job.valid()) uids_.Acquire(UidOf(row.job));
  SetJob(id, {});
  workloads_.Remove(id);
  doubtful_.erase(row.uid);
  if (row.job.valid()) {
    SettleSeekers(row.job);
    uids_.Release(row.job);
  }
  // What another has for pods of the job is theirs.
  if (others) {
    const auto all = slots_.WorkloadsOf(row.job);
    for (const WorkloadId other : std::vector(all.begin(), all.end())) GiveSlots(other);
  }
  Spare(spared);
  uids_.Release(row.uid);
  keys_.Release(row.key);
  keys_.Release(row.local_queue);
  changed_workloads_.push_back(id);
  changed_holders_.push_back(id);
}

// ---- What they are charged -------------------------------------------------------------------

// They follow from its row.
std::vector<Claim> State::ClaimsOf(WorkloadId id) {
  const Workload& row = workloads_.at(id);
  const Reservation& charged = ChargedTo(row);
  const bool promised = charged.charges.empty() && !row.promised.charges.empty();
  const Reservation& reservation = promised ? row.promised : charged;
  Claim claim{.owner = row.uid,
              .priority = row.priority,
              .state = ClaimState::kHeld,
              .why = ClaimWhy::kAdmitted};
  if (promised) {
    claim.state = ClaimState::kReserved;
    claim.why = ClaimWhy::kPipelined;
  } else if (row.claimant.valid() || StageOf(row.status) == WorkloadStage::kEvicted) {
    claim.state = ClaimState::kReleasing;
    claim.why = ClaimWhy::kEvicting;
    if (row.claimant.valid()) claim.claimant = workloads_.at(row.claimant).uid;
  }
  std::vector<Claim> claims;
  claims.reserve(reservation.charges.size());
  for (const QuotaCharge& charge : reservation.charges) {
    const QueueId q = queues_.FindOrAdd(QueueKind::kClusterQueue, reservation.cluster_queue);
    claim.pod_set = charge.pod_set;
    claim.count = charge.count;
    claim.account = AccountFor(q, charge.flavor);
    claim.bundle = charge.amounts;
    claims.push_back(claim);
  }
  return claims;
}

// Their claims on the tree become those that follow from their rows, all in one transaction.
void State::SettleReservations(std::span<const WorkloadId> workloads, Cause cause, OwnerId claimant,
                               std::span<const PodId> evicted) {
  std::vector<std::pair<OwnerId, std::vector<Claim>>> wanted;
  wanted.reserve(workloads.size());
  for (const WorkloadId id : workloads) {
    // Who holds nothing any more has left.
    if (ChargedTo(workloads_.at(id)).charges.empty()) ForgetClaimant(id);
    wanted.emplace_back(workloads_.at(id).uid, ClaimsOf(id));
    MakeRowsOfSlots(id);
  }
  std::vector<uint32_t> left;
  left.reserve(workloads.size());
  const auto keeps_for_gangs = [&](WorkloadId id) {
    return !slots_.of(id).gangs.empty() && HasQuota(id);
  };
  std::vector<uint8_t> kept;
  kept.reserve(workloads.size());
  for (const WorkloadId id : workloads) kept.push_back(keeps_for_gangs(id) ? 1 : 0);
  Transaction t = Begin();
  for (const auto& [owner, claims] : wanted) PutReservation(t, owner, claims, left);
  PutEvicted(t, claimant, evicted);
  for (const WorkloadId id : workloads) {
    PutSlots(t, id);
    if (IsLeaving(id)) PutPods(t, id);
    PutPromised(t, id);
  }
  Commit(t, cause);
  for (size_t i = 0; i < workloads.size(); ++i) {
    if (keeps_for_gangs(workloads[i]) != (kept[i] != 0)) NoteKeeping();
  }
  StayIfSpared(workloads);
  changed_holders_.insert(changed_holders_.end(), workloads.begin(), workloads.end());
  NoteLeft(left);
  DropLeftGhosts();
  for (const WorkloadId id : workloads) {
    const OwnerId job = workloads_.at(id).job;
    if (job.valid() && slots_.WorkloadsOf(job).size() > 1) SettleSeekers(job);
    GiveSlots(id);
  }
}

// Pods of those that don't leave any more. Others may have counted on their room: their promises
// are looked at again.
void State::StayIfSpared(std::span<const WorkloadId> workloads) {
  Transaction t = Begin();
  for (const WorkloadId id : workloads) {
    if (!IsLeaving(id)) PutPods(t, id);
  }
  Commit(t, Cause::kRevoked);
}

// The owner's claims on the tree become these. `left`: the accounts of those that are no more, or
// are such that others may have what they take.
void State::PutReservation(Transaction& t, OwnerId owner, std::span<const Claim> claims,
                           std::vector<uint32_t>& left) {
  const auto is_wanted = [&](const Claim& existing) {
    return std::ranges::any_of(claims,
                               [&](const Claim& claim) { return SameClaim(existing, claim); });
  };
  size_t existing_count = 0;
  bool all_wanted = true;
  for (ClaimId id = ledger_.first_of_owner(owner); id.valid();
       id = ledger_.claim(id).next_of_owner) {
    if (!ledger_.claim(id).account.is_tree()) continue;
    ++existing_count;
    all_wanted = all_wanted && is_wanted(ledger_.claim(id));
  }
  if (existing_count == claims.size() && all_wanted) return;
  for (ClaimId id = ledger_.first_of_owner(owner), next; id.valid(); id = next) {
    const Claim& claim = ledger_.claim(id);
    next = claim.next_of_owner;
    if (!claim.account.is_tree()) continue;
    // What is there now, and what will be, are asked for each by itself.
    const bool stays = std::ranges::any_of(claims, [&](const Claim& c) {
      const bool no_less = c.state == ClaimState::kHeld || c.state == claim.state;
      return no_less && c.account == claim.account && c.bundle == claim.bundle &&
             c.count == claim.count;
    });
    if (!stays) left.push_back(claim.account.row());
    t.End(id);
  }
  for (const Claim& claim : claims) t.Add(claim);
}

// Whose quota is given back is noted.
void State::NoteLeft(std::span<const uint32_t> accounts) {
  for (const uint32_t account : accounts)
    relieved_queues_.push_back(queues_.NameOf(queues_.account(account).queue));
  for (const uint32_t account : accounts) queues_.DropUnused(account, ledger_);
}

void State::Reserve(WorkloadId id, Reservation reservation) {
  CHECK(HasRoomFor(reservation));
  CHECK(reservation.cluster_queue.valid());
  // What a write that came to nothing was charged is promised.
  const bool resent =
      faults_.charge_resent_again && workloads_.at(id).promised == WithoutPlaces(reservation);
  // It fits without those who are told to leave and did not begin. Others may have counted on their
  // room: their promises are looked at again.
  EndPromisedPlaces(id, Cause::kRevoked);
  const std::vector<WorkloadId> spared = TakePromise(id);
  Workload& row = workloads_.mutable_at(id);
  CHECK(StageOf(row.status) == WorkloadStage::kPending);
  CHECK(row.write == WriteStage::kNone);
  row.promised = WithoutPlaces(reservation);
  row.decided = std::move(reservation);
  row.write = WriteStage::kInFlight;
  SettleReservations(std::span(&id, 1), Cause::kDecided);
  if (resent) ChargeAgain(id);
  Spare(spared);
}

// Beside what it is charged already.
void State::ChargeAgain(WorkloadId id) {
  const std::vector<Claim> claims = ClaimsOf(id);
  Transaction t = Begin();
  for (const Claim& claim : claims) t.Add(claim);
  t.Commit(Cause::kObserved);
}

void State::Place(WorkloadId id, Reservation reservation) {
  std::vector<Placing> one;
  one.push_back({.workload = id, .reservation = std::move(reservation)});
  PlaceAll(std::move(one));
}

void State::PlaceAll(std::vector<Placing> placings) {
  std::vector<WorkloadId> placed;
  placed.reserve(placings.size());
  for (Placing& placing : placings) {
    CHECK(HasRoomFor(placing.reservation, workloads_.at(placing.workload).reserved));
    Workload& row = workloads_.mutable_at(placing.workload);
    CHECK(row.status.reserved);
    CHECK(row.write == WriteStage::kNone);
    CHECK(placing.reservation.charges == row.reserved.charges);
    row.decided = std::move(placing.reservation);
    row.write = WriteStage::kInFlight;
    placed.push_back(placing.workload);
  }
  SettleReservations(placed, Cause::kDecided);
}

void State::GiveUp(WorkloadId id) {
  Workload& row = workloads_.mutable_at(id);
  CHECK(row.status.reserved);
  CHECK(row.write == WriteStage::kNone);
  row.write = WriteStage::kInFlight;
}

namespace {

// Whether the check is for who gets these flavors.
bool IsFor(const QueueCheck& check, const Reservation& reservation) {
  return check.flavors.empty() ||
         std::ranges::any_of(reservation.charges, [&](const QuotaCharge& charge) {
           return std::ranges::find(check.flavors, charge.flavor) != check.flavors.end();
         });
}

}  // namespace

bool State::PlacesComeLater(const Reservation& reservation) const {
  const QueueId q = queues_.Find(QueueKind::kClusterQueue, reservation.cluster_queue);
  if (!q.valid()) return false;
  const bool by_topology = std::ranges::all_of(reservation.charges, [&](const QuotaCharge& charge) {
    const Flavor* flavor = flavors_.Find(charge.flavor);
    return flavor != nullptr && flavor->topology.valid();
  });
  return std::ranges::any_of(queues_.at(q).checks, [&](const QueueCheck& check) {
    return (check.brings_nodes || !by_topology) && IsFor(check, reservation);
  });
}

bool State::PassedChecks(WorkloadId id) const {
  return PassedChecks(id, workloads_.at(id).reserved);
}

bool State::PassedChecks(WorkloadId id, const Reservation& reservation) const {
  const Workload& row = workloads_.at(id);
  if (row.checks_pending) return false;
  const QueueId q = queues_.Find(QueueKind::kClusterQueue, reservation.cluster_queue);
  // What is not known asks for what is not known.
  if (!q.valid() || !queues_.at(q).uid.valid()) return false;
  return std::ranges::all_of(queues_.at(q).checks, [&](const QueueCheck& check) {
    return !IsFor(check, reservation) ||
           std::ranges::find(row.checks, check.name) != row.checks.end();
  });
}

// ---- Promises --------------------------------------------------------------------------------

std::vector<PodId> State::PromiseQuota(WorkloadId id, Reservation reservation,
                                       std::span<const QuotaVictim> victims,
                                       std::vector<PodId> pods) {
  CHECK(HasRoomFor(reservation));
  Workload& row = workloads_.mutable_at(id);
  CHECK(StageOf(row.status) == WorkloadStage::kPending);
  CHECK(row.write == WriteStage::kNone && row.promised == Reservation{});
  row.promised = std::move(reservation);
  row.victims.reserve(victims.size());
  std::vector<WorkloadId> settled = {id};
  settled.reserve(victims.size() + 1);
  for (const auto& [victim, reason] : victims) {
    Workload& leaves = workloads_.mutable_at(victim);
    CHECK(!leaves.claimant.valid() && !ChargedTo(leaves).charges.empty());
    leaves.claimant = id;
    leaves.evicted_because = reason;
    workloads_.mutable_at(id).victims.push_back(victim);
    settled.push_back(victim);
    Unseat(victim);
  }
  // One that is being bound to a place of a workload goes with the oldest of its job (Unseat).
  std::erase_if(pods, [&](PodId pod) { return IsToLeave(pod); });
  const OwnerId claimant = workloads_.at(id).uid;
  NoteEvicted(claimant, pods);
  SettleReservations(settled, Cause::kDecided, claimant, pods);
  return pods;
}

void State::EndQuotaPromise(WorkloadId id, Cause cause) {
  if (workloads_.at(id).promised == Reservation{}) return;
  const std::vector<WorkloadId> spared = TakePromise(id);
  SettleReservations(std::span(&id, 1), cause);
  Spare(spared);
}

// Who leaves for nobody now stays, unless it was told to go. Others may have counted on it.
void State::Spare(std::span<const WorkloadId> victims) {
  if (victims.empty()) return;
  SettleReservations(victims, Cause::kRevoked);
  for (const WorkloadId victim : victims) {
    ChangeQueue(
        queues_.Find(QueueKind::kClusterQueue, ChargedTo(workloads_.at(victim)).cluster_queue));
  }
}

// What it may use, and of which flavors, was decided on other facts; invalid: any. O(workloads).
void State::EndPromisesIn(NameId cluster_queue) {
  for (uint32_t i = 0; i < workloads_.size(); ++i) {
    if (!workloads_.used(WorkloadId{i})) continue;
    const Reservation& promised = workloads_.at(WorkloadId{i}).promised;
    if (promised == Reservation{}) continue;
    if (cluster_queue.valid() && promised.cluster_queue != cluster_queue) continue;
    EndQuotaPromise(WorkloadId{i}, Cause::kRevoked);
  }
}

// What the row says of it; the victims, who leave for nobody now, are to be spared.
std::vector<WorkloadId> State::TakePromise(WorkloadId id) {
  if (workloads_.at(id).promised == Reservation{}) return {};
  Workload& row = workloads_.mutable_at(id);
  row.promised = {};
  std::vector<WorkloadId> victims = std::exchange(row.victims, {});
  for (const WorkloadId victim : victims) workloads_.mutable_at(victim).claimant = {};
  return victims;
}

// Of those that are promised something on the node, which goes.
void State::EndPromisesOn(NodeId node) {
  std::vector<WorkloadId> holders;
  for (ClaimId id = ledger_.nodes().first_reserved(node.value); id.valid();
       id = ledger_.claim(id).next_in_account) {
    const WorkloadId holder = workloads_.FindUid(ledger_.claim(id).owner);
    if (holder.valid()) holders.push_back(holder);
  }
  for (const WorkloadId holder : holders) {
    EndQuotaPromise(holder, Cause::kNodeReplaced);
    changed_workloads_.push_back(holder);
  }
}

void State::ForgetClaimant(WorkloadId victim) {
  if (!workloads_.at(victim).claimant.valid()) return;
  const WorkloadId claimant = std::exchange(workloads_.mutable_at(victim).claimant, {});
  std::erase(workloads_.mutable_at(claimant).victims, victim);
}

void State::ApplyOutcome(const ReservationOutcome& facts) {
  const WorkloadId id = FindWorkload(facts.uid);
  if (!id.valid() || workloads_.at(id).write != WriteStage::kInFlight) return;
  changed_workloads_.push_back(id);
  Workload& row = workloads_.mutable_at(id);
  switch (facts.outcome) {
    case WriteOutcome::kDone:  // And yet the object has none: somebody will say.
    case WriteOutcome::kConflict:
    case WriteOutcome::kUnknown:
      row.write = WriteStage::kUnresolved;
      return;
    case WriteOutcome::kRefused:
      // Each try of one of several of a group costs the others an eviction.
      ++row.errors;
      row.not_before = facts.at + (NamesGroup(row) ? SparedFor(row.errors) : Backoff(row.errors));
      row.promised = {};
      return TakeBack(id, Cause::kWriteRefused);
    case WriteOutcome::kGone:
      row.promised = {};
      TakeBack(id, Cause::kWriteGone);
      row.write = WriteStage::kGone;
      return;
    case WriteOutcome::kNotSent:
      return TakeBack(id, Cause::kRevoked);
  }
}

void State::ApplyRead(const ReservationRead& facts) {
  const WorkloadId id = FindWorkload(facts.uid);
  if (!id.valid()) return;
  const WriteStage write = workloads_.at(id).write;
  if (write != WriteStage::kUnresolved && write != WriteStage::kGone) return;
  if (faults_.keep_lost_quota) return;
  changed_workloads_.push_back(id);
  TakeBack(id, Cause::kReadUnbound);
}

// It is promised what it was charged, if it was not promised otherwise since.
void State::TakeBack(WorkloadId id, Cause cause) {
  Workload& row = workloads_.mutable_at(id);
  row.write = WriteStage::kNone;
  row.decided = {};
  SettleReservations(std::span(&id, 1), cause);
}

}  // namespace berth::model
