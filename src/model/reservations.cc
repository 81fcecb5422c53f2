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
  row.priority = facts.priority;
  row.status = facts.status;
  row.slots = facts.slots;
  row.reserved = facts.reserved;
  if (row.status.finished || row.status.reserved) {
    row.write = WriteStage::kNone;
    row.decided = {};
    row.errors = 0;
    row.not_before = {};
  }
  SettleReservation(id, row.status.finished ? Cause::kOwnerFinished : Cause::kObserved);
  if (row != before) changed_workloads_.push_back(id);
}

void State::RemoveWorkload(const WorkloadRemove& facts) {
  if (const WorkloadId id = FindWorkload(facts.uid); id.valid())
    DropWorkload(id, Cause::kOwnerDeleted);
}

void State::DropWorkload(WorkloadId id, Cause cause) {
  const Workload row = workloads_.at(id);
  PutReservation(row.uid, {}, cause);
  workloads_.Remove(id);
  uids_.Release(row.uid);
  keys_.Release(row.key);
  keys_.Release(row.local_queue);
  changed_workloads_.push_back(id);
}

// ---- What they are charged -------------------------------------------------------------------

void State::SettleReservation(WorkloadId id, Cause cause) {
  const Workload& row = workloads_.at(id);
  const Reservation charged = ChargedTo(row);
  const bool releasing = StageOf(row.status) == WorkloadStage::kEvicted;
  std::vector<Claim> claims;
  for (const QuotaCharge& charge : charged.charges) {
    const QueueId q = queues_.FindOrAdd(QueueKind::kClusterQueue, charged.cluster_queue);
    claims.push_back({.owner = row.uid,
                      .pod_set = charge.pod_set,
                      .count = charge.count,
                      .account = AccountFor(q, charge.flavor),
                      .bundle = charge.amounts,
                      .priority = row.priority,
                      .state = releasing ? ClaimState::kReleasing : ClaimState::kHeld,
                      .why = releasing ? ClaimWhy::kEvicting : ClaimWhy::kAdmitted});
  }
  PutReservation(row.uid, std::move(claims), cause);
}

// The owner's claims on the tree become these. Whose quota is given back is noted.
void State::PutReservation(OwnerId owner, std::vector<Claim> claims, Cause cause) {
  std::vector<ClaimId> existing;
  for (ClaimId id = ledger_.first_of_owner(owner); id.valid();
       id = ledger_.claim(id).next_of_owner) {
    if (ledger_.claim(id).account.is_tree()) existing.push_back(id);
  }
  const auto is_wanted = [&](ClaimId id) {
    return std::ranges::any_of(
        claims, [&](const Claim& claim) { return SameClaim(ledger_.claim(id), claim); });
  };
  if (existing.size() == claims.size() && std::ranges::all_of(existing, is_wanted)) return;
  std::vector<uint32_t> left;
  Transaction t = Begin();
  for (const ClaimId id : existing) {
    left.push_back(ledger_.claim(id).account.row());
    t.End(id);
  }
  for (const Claim& claim : claims) t.Add(claim);
  t.Commit(cause);
  for (const uint32_t account : left) ChangeQueue(queues_.account(account).queue);
  for (const uint32_t account : left) queues_.DropUnused(account, ledger_);
}

void State::Reserve(WorkloadId id, Reservation reservation) {
  CHECK(HasRoomFor(reservation));
  Workload& row = workloads_.mutable_at(id);
  CHECK(StageOf(row.status) == WorkloadStage::kPending);
  CHECK(row.write == WriteStage::kNone);
  row.decided = std::move(reservation);
  row.write = WriteStage::kInFlight;
  SettleReservation(id, Cause::kDecided);
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
      row.not_before = facts.at + Backoff(++row.errors);
      return TakeBack(id, Cause::kWriteRefused);
    case WriteOutcome::kGone:
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
  changed_workloads_.push_back(id);
  TakeBack(id, Cause::kReadUnbound);
}

void State::TakeBack(WorkloadId id, Cause cause) {
  Workload& row = workloads_.mutable_at(id);
  row.write = WriteStage::kNone;
  row.decided = {};
  SettleReservation(id, cause);
}

}  // namespace berth::model
