#include "model/slots.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "model/lifecycle.h"
#include "model/state.h"

namespace berth::model {

// ---- The table -------------------------------------------------------------------------------

SlotTable::OfWorkload& SlotTable::of(WorkloadId workload) {
  if (workload.value >= of_workload_.size()) of_workload_.resize(workload.value + 1);
  return of_workload_[workload.value];
}

SlotTable::OfPod& SlotTable::of(PodId pod) {
  if (pod.value >= of_pod_.size()) of_pod_.resize(pod.value + 1);
  return of_pod_[pod.value];
}

std::span<const SlotTable::Place> SlotTable::PlacesOf(WorkloadId workload) const {
  if (workload.value >= of_workload_.size()) return {};
  return of_workload_[workload.value].places;
}

std::span<const ClaimId> SlotTable::PromisedOf(WorkloadId workload) const {
  if (workload.value >= of_workload_.size()) return {};
  return of_workload_[workload.value].promised;
}

const SlotTable::Place* SlotTable::PlaceOf(PodId pod) const {
  if (pod.value >= of_pod_.size() || !of_pod_[pod.value].place) return nullptr;
  const OfPod& at = of_pod_[pod.value];
  return &of_workload_[at.workload.value].places[*at.place];
}

std::span<const WorkloadId> SlotTable::WorkloadsOf(OwnerId job) const {
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return {};
  return at->second.workloads;
}

std::span<const PodId> SlotTable::SeekersOf(OwnerId job) const {
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return {};
  return at->second.seekers;
}

std::span<const WorkloadId> SlotTable::WorkloadsOf(NameId gang) const {
  const auto at = of_gang_.find(gang);
  if (at == of_gang_.end()) return {};
  return at->second;
}

void SlotTable::SetGangs(WorkloadId workload, std::vector<NameId> gangs) {
  std::vector<NameId>& before = of(workload).gangs;
  if (before == gangs) return;
  for (const NameId gang : before) {
    std::erase(of_gang_[gang], workload);
    if (of_gang_[gang].empty()) of_gang_.erase(gang);
  }
  for (const NameId gang : gangs) of_gang_[gang].push_back(workload);
  before = std::move(gangs);
}

void SlotTable::DropJob(OwnerId job) {
  const auto at = jobs_.find(job);
  if (at->second.workloads.empty() && at->second.seekers.empty()) jobs_.erase(at);
}

void SlotTable::Join(OwnerId job, WorkloadId workload, size_t at) {
  std::vector<WorkloadId>& all = jobs_[job].workloads;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), workload);
}

void SlotTable::Quit(OwnerId job, WorkloadId workload) {
  std::erase(jobs_[job].workloads, workload);
  DropJob(job);
}

void SlotTable::File(PodId pod, OwnerId job) {
  of(pod) = {.job = job, .workload = {}, .place = {}};
  jobs_[job].seekers.push_back(pod);
}

void SlotTable::Unfile(PodId pod) {
  const OwnerId job = std::exchange(of(pod), OfPod{}).job;
  if (!job.valid() || !jobs_.contains(job)) return;
  std::erase(jobs_[job].seekers, pod);
  DropJob(job);
}

void SlotTable::Take(PodId pod, int32_t priority, WorkloadId workload, uint32_t place) {
  OfPod& at = of(pod);
  at.workload = workload;
  at.place = place;
  std::erase(jobs_[at.job].seekers, pod);
  Place& taken = of(workload).places[place];
  taken.pod = pod;
  taken.priority = priority;
}

void SlotTable::AddTo(Hasher& hasher) const {
  hasher.Add(of_workload_.size());
  for (const OfWorkload& workload : of_workload_) {
    hasher.Add(workload.places.size());
    for (const Place& place : workload.places) {
      hasher.Add(place.slot.pod_set).Add(place.slot.node.value).Add(place.slot.devices.mask);
      hasher.Add(place.slot.devices.milli_each).Add(place.pod.value).Add(place.claim.valid());
      hasher.Add(place.priority.has_value()).Add(place.priority.value_or(0));
    }
    hasher.Add(workload.promised.size());
    for (const ClaimId claim : workload.promised) hasher.Add(claim.valid());
  }
}

// ---- What State does with it -----------------------------------------------------------------

namespace {

// Whether the pod runs, or is to.
bool CountsForJob(const Pod& pod) {
  return pod.job.valid() && !pod.terminal && (!pod.terminating || pod.node.valid());
}

// Of a workload on the node, for one pod of the class.
Claim ClaimOn(NodeId node, const Workload& row, const Slot& slot, const ClassSpec& spec) {
  return {.owner = row.uid,
          .pod_set = slot.pod_set,
          .account = AccountId::OfNode(node),
          .bundle = spec.requests,
          .scoring = spec.scoring,
          .devices = slot.devices,
          .priority = row.priority,
          .state = ClaimState::kHeld,
          .why = ClaimWhy::kAdmitted};
}

// What it is promised without its place: what was decided there goes with that.
void TakeSlot(Pod& pod) {
  if (pod.promised == pod.slot) pod.promised = NameId{};
  pod.slot = NameId{};
}

// Whether the pod is promised its node by itself, not only by a place.
bool KeepsPromise(Pod pod) {
  TakeSlot(pod);
  return PromisedNode(pod).valid();
}

}  // namespace

// What its object, or our decision, says of places. None is kept for one that is to go.
std::vector<Slot> State::SlotsWanted(WorkloadId id) const {
  if (!workloads_.used(id)) return {};
  const Workload& row = workloads_.at(id);
  if (row.status.finished || StageOf(row.status) == WorkloadStage::kEvicted) return {};
  std::vector<Slot> wanted = ChargedTo(row).slots;
  if (!row.status.reserved || row.write == WriteStage::kNone) return wanted;
  // Other places are being written: it has both until it is known which. O(places that are new x
  // places).
  std::vector<Slot> own = wanted;
  for (const Slot& slot : row.decided.slots) {
    const auto at = std::ranges::find(own, slot);
    if (at == own.end()) {
      wanted.push_back(slot);
    } else {
      *at = own.back();
      own.pop_back();
    }
  }
  return wanted;
}

Claim State::ClaimOfSlot(WorkloadId id, uint32_t place) const {
  const Workload& row = workloads_.at(id);
  const Slot& slot = slots_.PlacesOf(id)[place].slot;
  const ClassSpec& spec = vocabulary_.classes.at(row.slots[slot.pod_set].class_id);
  Claim claim = ClaimOn(nodes_.Find(slot.node), row, slot, spec);
  claim.index = place;
  if (IsLeaving(id)) {
    claim.claimant = LeavesFor(id);
    claim.state = ClaimState::kReleasing;
    claim.why = ClaimWhy::kEvicting;
  }
  return claim;
}

// ---- What is kept on nodes for one that is promised its quota --------------------------------

// Whether its pods are to leave their nodes.
bool State::IsLeaving(WorkloadId id) const {
  const Workload& row = workloads_.at(id);
  return row.claimant.valid() || StageOf(row.status) == WorkloadStage::kEvicted;
}

// Who is promised what they leave; invalid: nobody.
OwnerId State::LeavesFor(WorkloadId id) const {
  const WorkloadId claimant = workloads_.at(id).claimant;
  if (!claimant.valid() || workloads_.at(claimant).promised.slots.empty()) return {};
  return workloads_.at(claimant).uid;
}

WorkloadId State::WorkloadOf(PodId id) const {
  if (id.value >= slots_.of_pod_.size()) return {};
  const SlotTable::OfPod& of = slots_.of_pod_[id.value];
  if (of.place) return of.workload;
  const std::span<const WorkloadId> all = slots_.WorkloadsOf(of.job);
  return all.empty() ? WorkloadId{} : all.front();
}

OwnerId State::ClaimantOf(PodId id) const {
  const Pod& pod = pods_.at(id);
  if (pod.evicted_for.valid()) return pod.evicted_for;
  const WorkloadId workload = WorkloadOf(id);
  return workload.valid() && !pod.overdue ? LeavesFor(workload) : OwnerId{};
}

bool State::IsToLeave(PodId id) const {
  const Pod& pod = pods_.at(id);
  if (pod.evicted_for.valid() || pod.released) return true;
  const WorkloadId workload = WorkloadOf(id);
  return workload.valid() && !pod.overdue && IsLeaving(workload);
}

// Those of which WorkloadOf says so.
std::vector<PodId> State::PodsOf(WorkloadId id) const {
  std::vector<PodId> pods;
  for (const SlotTable::Place& place : slots_.PlacesOf(id)) {
    if (place.pod.valid()) pods.push_back(place.pod);
  }
  const OwnerId job = workloads_.at(id).job;
  if (!job.valid() || slots_.WorkloadsOf(job).front() != id) return pods;
  const std::span<const PodId> seekers = slots_.SeekersOf(job);
  pods.insert(pods.end(), seekers.begin(), seekers.end());
  return pods;
}

// As what the claim of the pod, which is no promise, stands. Who is being deleted leaves as it is.
void State::SetLeaving(Claim& claim, PodId pod) const {
  claim.claimant = ClaimantOf(pod);
  if (pods_.at(pod).terminating) return;
  const bool leaves = IsToLeave(pod);
  claim.state = leaves ? ClaimState::kReleasing : ClaimState::kHeld;
  claim.why = leaves                       ? ClaimWhy::kEvicting
              : pods_.at(pod).node.valid() ? ClaimWhy::kBound
                                           : ClaimWhy::kAssumed;
}

// Those of its pods that have nodes leave them, or stay, as the workload does.
void State::PutPods(Transaction& t, WorkloadId id) {
  if (!workloads_.used(id)) return;
  for (const PodId pod : PodsOf(id)) {
    const ClaimId charged = ClaimOf(pod);
    if (!charged.valid() || ledger_.claim(charged).state == ClaimState::kReserved) continue;
    const Pod& row = pods_.at(pod);
    if (row.evicted_for.valid()) continue;
    EndOverdue(pod);
    Claim claim = ledger_.claim(charged);
    SetLeaving(claim, pod);
    if (SameClaim(ledger_.claim(charged), claim)) continue;
    // Who stays may be evicted by others.
    const bool stayed =
        ledger_.claim(charged).state == ClaimState::kReleasing && claim.state == ClaimState::kHeld;
    if (stayed) touches_.Add(claim.account.node(), kTouchEvictable);
    t.Change(charged, claim);
    Share(t, pod);
  }
}

// Who waits for a place of a workload that leaves is not let in any more: the place leaves with it.
void State::Unseat(WorkloadId id) {
  for (const PodId pod : PodsOf(id)) {
    Pod& row = pods_.mutable_at(pod);
    if (!row.slot.valid()) continue;
    const SlotTable::OfPod of = slots_.of(pod);
    TakeSlot(row);
    if (of.place) {
      slots_.of(of.workload).places[*of.place].pod = PodId{};
      slots_.File(pod, of.job);
    }
    SettleClaims(pod);
    changed_pods_.push_back(pod);
  }
}

// Nobody looks through it: what it waits for is decided with its quota, which no pod revokes.
Claim State::PromisedClaim(WorkloadId id, const Slot& slot) const {
  const Workload& row = workloads_.at(id);
  const ClassSpec& spec = vocabulary_.classes.at(row.slots[slot.pod_set].class_id);
  const NodeId node = nodes_.Find(slot.node);
  Claim claim = ClaimOn(node, row, slot, spec);
  claim.priority = kPriorityOfPromise;
  claim.account_uid = nodes_.uid(node);
  claim.state = ClaimState::kReserved;
  claim.why = ClaimWhy::kPipelined;
  return claim;
}

// As its row says. A promise begins and ends as a whole.
void State::PutPromised(Transaction& t, WorkloadId id) {
  std::span<const Slot> wanted;
  if (workloads_.used(id) && ChargedTo(workloads_.at(id)).charges.empty())
    wanted = workloads_.at(id).promised.slots;
  std::vector<ClaimId>& claims = slots_.of(id).promised;
  if (claims.size() == wanted.size()) return;
  for (const ClaimId claim : claims) {
    if (!claim.valid()) continue;
    SpareVictims(t, ledger_.claim(claim));
    t.End(claim);
    --slots_.free_count_;
  }
  claims.clear();
  for (const Slot& slot : wanted) {
    const NodeId node = nodes_.Find(slot.node);
    const bool there = node.valid() && nodes_.present(node);
    claims.push_back(there ? t.Add(PromisedClaim(id, slot)) : ClaimId{});
    if (there) ++slots_.free_count_;
  }
  NoteToCome(id);
}

// The pods are to leave their nodes for a pod or a workload.
void State::PutEvicted(Transaction& t, OwnerId claimant, std::span<const PodId> pods) {
  for (const PodId pod : pods) {
    const ClaimId charged = ClaimOf(pod);
    CHECK(charged.valid() && !pods_.at(pod).terminating);
    Claim releasing = ledger_.claim(charged);
    CHECK(releasing.state == ClaimState::kHeld);
    releasing.state = ClaimState::kReleasing;
    releasing.why = ClaimWhy::kEvicting;
    releasing.claimant = claimant;
    t.Change(charged, releasing);
    Share(t, pod);
  }
}

void State::NoteEvicted(OwnerId claimant, std::span<const PodId> pods) {
  for (const PodId pod : pods) {
    pods_.mutable_at(pod).evicted_for = claimant;
    const NodeId node = ledger_.claim(ClaimOf(pod)).account.node();
    // Whose binding is under way gets its own promise here not back when that fails.
    if (!pods_.at(pod).node.valid()) VoidPromise(pod, nodes_.name(node));
    budgets_.Charge(pod, pods_.at(pod).labels);
  }
}

// Those that victims have are begun anew once it is settled for whom they leave.
void State::EndPromisedPlaces(WorkloadId id, Cause cause) {
  if (workloads_.at(id).promised.slots.empty()) return;
  workloads_.mutable_at(id).promised.slots.clear();
  Transaction t = Begin();
  PutPromised(t, id);
  Commit(t, cause);
}

// How many of the pod set run or are to: who is done needs no place any more.
uint32_t State::PodsLeft(WorkloadId id, uint32_t pod_set) const {
  const Workload& row = workloads_.at(id);
  uint32_t left = row.slots[pod_set].count;
  for (const QuotaCharge& charge : ChargedTo(row).charges) {
    if (charge.pod_set == pod_set) left = charge.count;
  }
  return left;
}

// Rows of the ledger can't be added within a transaction.
void State::MakeRowsOfSlots(WorkloadId id) {
  for (const Slot& slot : SlotsWanted(id)) {
    const NodeId node = RowOfNode(slot.node);
    if (!nodes_.present(node)) slots_.left_.push_back(node);
  }
}

void State::DropLeftGhosts() {
  for (const NodeId node : std::exchange(slots_.left_, {})) DropGhost(node);
}

// Its pods are found by it.
void State::SetJob(WorkloadId id, const std::string& uid) {
  Workload& row = workloads_.mutable_at(id);
  const OwnerId job = uid.empty() ? OwnerId{} : uids_.Acquire(uid);
  const OwnerId before = std::exchange(row.job, job);
  if (before.valid()) slots_.Quit(before, id);
  if (job.valid()) {
    const auto goes_before = [&](WorkloadId other) { return IsOlder(other, id); };
    const std::span<const WorkloadId> all = slots_.WorkloadsOf(job);
    slots_.Join(job, id, static_cast<size_t>(std::ranges::count_if(all, goes_before)));
  }
  if (job != before) {
    for (const OwnerId of : {before, job}) {
      for (const PodId pod : slots_.SeekersOf(of)) NoteQueued(pod);
    }
  }
  if (before.valid()) uids_.Release(before);
}

bool State::IsOlder(WorkloadId a, WorkloadId b) const {
  const auto key = [&](WorkloadId id) {
    const Workload& row = workloads_.at(id);
    return std::pair(row.status.created, UidOf(row.uid));
  };
  return key(a) < key(b);
}

// What it notes of pods changes others.
void State::NoteSlots() {
  for (size_t i = 0; i < changed_pods_.size(); ++i) NoteSlot(changed_pods_[i]);
}

// Its places that are for pods to come: those that no pod took, as far as pods are left.
std::vector<uint32_t> State::PlacesToCome(WorkloadId id) const {
  const std::span<const SlotTable::Place> places = slots_.PlacesOf(id);
  // Those that are being written are none less when some of its pods are done.
  const size_t own =
      workloads_.used(id) ? std::min(ChargedTo(workloads_.at(id)).slots.size(), places.size()) : 0;
  std::map<uint32_t, uint32_t> left;
  for (uint32_t i = 0; i < own; ++i) {
    const auto [at, fresh] = left.try_emplace(places[i].slot.pod_set);
    if (fresh) at->second = PodsLeft(id, at->first);
    if (places[i].pod.valid() && at->second > 0) --at->second;
  }
  std::vector<uint32_t> to_come;
  for (uint32_t i = 0; i < places.size(); ++i) {
    if (places[i].pod.valid()) continue;
    if (i < own) {
      uint32_t& more = left[places[i].slot.pod_set];
      if (more == 0) continue;
      --more;
    }
    to_come.push_back(i);
  }
  return to_come;
}

// The claims on nodes become those that follow from the row and from who took which place.
void State::PutSlots(Transaction& t, WorkloadId id) {
  std::vector<Slot> wanted = SlotsWanted(id);
  if (wanted.empty() && slots_.PlacesOf(id).empty()) return NoteToCome(id);
  // What the row does not say any more has no amounts.
  if (workloads_.used(id)) {
    std::erase_if(wanted,
                  [&](const Slot& slot) { return slot.pod_set >= workloads_.at(id).slots.size(); });
  }
  SlotTable::OfWorkload& of = slots_.of(id);
  if (!std::ranges::equal(of.places, wanted, {}, &SlotTable::Place::slot)) Replace(t, id, wanted);
  const std::vector<uint32_t> to_come = PlacesToCome(id);
  std::vector<uint32_t> begins;
  for (uint32_t i = 0, next = 0; i < of.places.size(); ++i) {
    const bool comes = next < to_come.size() && to_come[next] == i;
    if (comes) ++next;
    if (comes || LeavesPlace(of.places[i].pod)) {
      begins.push_back(i);
    } else {
      EndSlot(t, id, i);
    }
  }
  // Of those whose room others may have it is asked beside the others.
  std::ranges::stable_partition(begins, [&](uint32_t i) { return !of.places[i].priority; });
  for (const uint32_t i : begins) BeginSlot(t, id, i);
  NoteToCome(id);
}

void State::SettleSlots(WorkloadId id) {
  MakeRowsOfSlots(id);
  Transaction t = Begin();
  PutSlots(t, id);
  Commit(t, Cause::kObserved);
  DropLeftGhosts();
}

void State::Replace(Transaction& t, WorkloadId id, std::span<const Slot> wanted) {
  SlotTable::OfWorkload& of = slots_.of(id);
  std::vector<SlotTable::Place> waited_for;  // Where the node is gone, and no claim tells of it.
  std::vector<SlotTable::Place> given_up;    // Others may have their room.
  for (uint32_t i = 0; i < of.places.size(); ++i) {
    const PodId pod = of.places[i].pod;
    const bool held = of.places[i].claim.valid() || (pod.valid() && ClaimOf(pod).valid());
    EndSlot(t, id, i);
    if (pod.valid()) slots_.File(pod, slots_.of(pod).job);
    if (held) continue;
    const NodeId node = nodes_.Find(of.places[i].slot.node);
    const bool is_there = node.valid() && nodes_.present(node);
    (pod.valid() && !is_there ? waited_for : given_up).push_back(of.places[i]);
  }
  of.places.clear();
  of.free.clear();
  for (const Slot& slot : wanted) of.places.push_back({.slot = slot});
  // Those that have nodes have taken theirs.
  if (of.places.empty()) return;
  for (const PodId pod : SeekersInOrder(workloads_.at(id).job)) {
    const ClaimId claim = ClaimOf(pod);
    if (!claim.valid()) continue;
    const std::optional<uint32_t> place =
        FindPlace(id, pod, [&](const SlotTable::Place& p) { return !p.pod.valid(); });
    if (place) slots_.Take(pod, pods_.at(pod).priority, id, *place);
  }
  const auto that_stays = [&](const SlotTable::Place& before) {
    return std::ranges::find_if(of.places, [&](const SlotTable::Place& p) {
      return p.slot == before.slot && !p.pod.valid() && !p.priority;
    });
  };
  // Who has one that stays, on a node that is gone, keeps it: it is not to be claimed once more.
  for (const SlotTable::Place& before : waited_for) {
    const auto place = that_stays(before);
    if (place == of.places.end()) continue;
    slots_.Take(before.pod, pods_.at(before.pod).priority, id,
                static_cast<uint32_t>(place - of.places.begin()));
  }
  for (const SlotTable::Place& before : given_up) {
    if (const auto place = that_stays(before); place != of.places.end())
      place->priority = before.priority;
  }
}

// Whether the node has its room once what leaves is gone, besides that of pods more important than
// one of this priority: they may have evicted it. A node that is not there always has.
bool State::WillHold(const Claim& claim, int32_t priority) const {
  const NodeId node = claim.account.node();
  if (!nodes_.present(node)) return true;
  const int32_t more = priority == std::numeric_limits<int32_t>::max() ? priority : priority + 1;
  const Viewer viewer{.owner = claim.owner, .priority = more};
  const BundleTable& bundles = vocabulary_.bundles;
  for (const auto& [resource, amount] : bundles.View(claim.bundle)) {
    if (ledger_.Future(claim.account, resource, viewer, bundles) < amount) return false;
  }
  for (uint32_t d = 0; d < kDevicesMax; ++d) {
    if (((claim.devices.mask >> d) & 1) != 0 &&
        ledger_.DeviceNow(node, d, viewer) + ledger_.nodes().device_releasing(node.value, d) <
            claim.devices.milli_each) {
      return false;
    }
  }
  return ledger_.PortConflicts(Ledger::PortView::kFuture, node, bundles.Ports(claim.bundle),
                               &viewer, bundles) == 0;
}

// Whether the pod, if it is one, leaves its node by itself, or for who deleted it: its place is its
// workload's from now on, or others would be promised what it leaves.
bool State::LeavesPlace(PodId id) const {
  if (!id.valid() || faults_.leave_places) return false;
  const Pod& pod = pods_.at(id);
  return pod.terminating && !pod.terminal && !pod.overdue && pod.node.valid() && !IsToLeave(id);
}

// Whoever changes them changes the ledger, too.
void State::BeginSlot(Transaction& t, WorkloadId id, uint32_t place) {
  SlotTable::OfWorkload& of = slots_.of(id);
  ClaimId& claim = of.places[place].claim;
  const Claim wanted = ClaimOfSlot(id, place);
  if (claim.valid()) {
    if (!SameClaim(ledger_.claim(claim), wanted)) t.Change(claim, wanted);
    if (!of.places[place].pod.valid()) of.free.insert(place);
    return;
  }
  // Nobody comes to a place of who leaves.
  if (IsLeaving(id)) return;
  // Only objects tell of more than is decided.
  if (slots_.free_count_ >= limits::kFreeSlotsMax || faults_.forget_slots) return;
  if (of.places[place].priority && !WillHold(wanted, *of.places[place].priority)) return;
  claim = t.Add(wanted);
  if (!of.places[place].pod.valid()) of.free.insert(place);
  ++slots_.free_count_;
}

void State::EndSlot(Transaction& t, WorkloadId id, uint32_t place) {
  SlotTable::OfWorkload& of = slots_.of(id);
  ClaimId& claim = of.places[place].claim;
  if (!claim.valid()) return;
  slots_.left_.push_back(ledger_.claim(claim).account.node());
  t.End(std::exchange(claim, ClaimId{}));
  of.free.erase(place);
  --slots_.free_count_;
}

// Ids of pods decide nothing.
std::vector<PodId> State::SeekersInOrder(OwnerId job) const {
  const auto seekers = slots_.SeekersOf(job);
  std::vector<PodId> pods(seekers.begin(), seekers.end());
  std::ranges::sort(pods, {}, [&](PodId pod) { return UidOf(pods_.at(pod).uid); });
  return pods;
}

// Whether its labels are such that the pod selects the node.
bool State::MaySelect(PodId pod, NodeId node) const {
  const ClassSpec& spec = vocabulary_.classes.at(pods_.at(pod).class_id);
  const SelectorTable& selectors = vocabulary_.selectors;
  if (!spec.selector.valid()) return true;
  if (selectors.materialised(spec.selector)) return selectors.Test(spec.selector, node);
  return selectors.Matches(spec.selector, labels_.View(nodes_.labels(node)), nodes_.name(node),
                           vocabulary_.names);
}

// The place of the workload that the pod is to take: where it stands, if it stands somewhere, else
// the last; the first of a node that is there for who waits. Where a topology says which pod goes
// where, only one that it may go to, or stands in.
template <typename MayTake>
std::optional<uint32_t> State::FindPlace(WorkloadId id, PodId pod, MayTake may_take) const {
  const std::span<const SlotTable::Place> places = slots_.PlacesOf(id);
  const std::vector<WorkloadSlots>& sets = workloads_.at(id).slots;
  const NameId set = pods_.at(pod).pod_set;
  const ClaimId claim = ClaimOf(pod);
  const NameId stands = claim.valid() ? nodes_.name(ledger_.claim(claim).account.node()) : NameId{};
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < places.size(); ++i) {
    const Slot& slot = places[i].slot;
    if (!may_take(places[i]) || (sets.size() > 1 && sets[slot.pod_set].name != set)) continue;
    const bool by_topology = FindTopology(ChargedTo(workloads_.at(id)), slot.pod_set) != nullptr;
    const NodeId node = nodes_.Find(slot.node);
    const bool goes = nodes_.present(node) && (!by_topology || MaySelect(pod, node));
    if (stands.valid() ? slot.node == stands : goes) return i;
    if (!by_topology) found = i;
  }
  return found;
}

// A pod came, went, or may take a place that it could not before.
void State::NoteSlot(PodId id) {
  const OwnerId job = pods_.used(id) && CountsForJob(pods_.at(id)) ? pods_.at(id).job : OwnerId{};
  const SlotTable::OfPod before = slots_.of(id);
  if (before.job != job) {
    slots_.Unfile(id);
    if (job.valid()) slots_.File(id, job);
    if (before.place) GiveBack(before.workload, *before.place);
  }
  if (job.valid() && !slots_.PlaceOf(id)) TakePlace(id);
  const SlotTable::Place* place = slots_.PlaceOf(id);
  if (place != nullptr && place->claim.valid() != LeavesPlace(id)) {
    SettleSlots(slots_.of(id).workload);
  }
  // Whether it leaves is its workload's to say.
  if (pods_.used(id) && before.job != job) SettleClaims(id);
  if (pods_.used(id)) NoteQueued(id);
}

// Those without a place are the oldest workload's, which may be another now.
void State::SettleSeekers(OwnerId job) {
  const std::span<const PodId> seekers = slots_.SeekersOf(job);
  for (const PodId pod : std::vector(seekers.begin(), seekers.end())) SettleClaims(pod);
}

bool State::IsQueued(PodId id) const {
  const Pod& pod = pods_.at(id);
  return CountsForJob(pod) && !slots_.WorkloadsOf(pod.job).empty() && !faults_.queued_wait_by_age;
}

// Objects alone tell it, so that nothing that is decided changes who goes before whom.
void State::NoteQueued(PodId id) {
  const bool queued = IsQueued(id);
  if (pods_.at(id).queued == queued) return;
  pods_.mutable_at(id).queued = queued;
  changed_pods_.push_back(id);
}

// Whether it took one.
bool State::TakePlace(PodId id) {
  const ClaimId claim = ClaimOf(id);
  const bool stands = claim.valid();
  if (!stands && StageOf(pods_.at(id)) != PodStage::kPending) return false;
  const NameId on = stands ? nodes_.name(ledger_.claim(claim).account.node()) : NameId{};
  WorkloadId workload;
  std::optional<uint32_t> place;
  for (const WorkloadId of : slots_.WorkloadsOf(pods_.at(id).job)) {
    // What leaves is nobody's to take.
    if (IsLeaving(of)) continue;
    workload = of;
    place = FindPlace(of, id,
                      [](const SlotTable::Place& p) { return p.claim.valid() && !p.pod.valid(); });
    if (stands && (!place || slots_.PlacesOf(of)[*place].slot.node != on)) {
      // One that was lost to others is had again by who stands there all the same.
      const auto lost = FindPlace(of, id, [&](const SlotTable::Place& p) {
        return !p.pod.valid() && !p.claim.valid() && p.slot.node == on;
      });
      if (lost) place = lost;
    }
    if (place) break;
  }
  if (!place) return false;
  const NameId node = slots_.PlacesOf(workload)[*place].slot.node;
  Transaction t = Begin();
  EndSlot(t, workload, *place);
  NoteToCome(workload);
  Commit(t, Cause::kAdopted);
  slots_.Take(id, pods_.at(id).priority, workload, *place);
  changed_pods_.push_back(id);
  if (!stands) pods_.mutable_at(id).slot = node;
  SettleClaims(id);
  DropLeftGhosts();
  return true;
}

// Who had the place is gone: another pod of the job takes it, or it is kept for one that comes.
void State::GiveBack(WorkloadId workload, uint32_t place) {
  SlotTable::OfWorkload& of = slots_.of(workload);
  of.places[place].pod = PodId{};
  SettleSlots(workload);
  GiveSlots(workload);
}

// Who waits goes before who stands elsewhere.
void State::GiveSlots(WorkloadId workload) {
  if (!workloads_.used(workload) || slots_.of(workload).free.empty()) return;
  for (const bool standing : {false, true}) {
    for (const PodId pod : SeekersInOrder(workloads_.at(workload).job)) {
      if (ClaimOf(pod).valid() == standing) TakePlace(pod);
    }
  }
}

// Whose pods may select the node now take the places that they have there.
void State::GiveSlotsOn(NodeId node) {
  std::set<WorkloadId> workloads;
  for (ClaimId id = ledger_.nodes().first_claim(node.value); id.valid();
       id = ledger_.claim(id).next_in_account) {
    const WorkloadId workload = workloads_.FindUid(ledger_.claim(id).owner);
    if (workload.valid()) workloads.insert(workload);
  }
  for (const WorkloadId workload : workloads) GiveSlots(workload);
}

// ---- Trials ----------------------------------------------------------------------------------

void State::SlotTrial::Place(WorkloadId workload, ClassId class_id, const Slot& slot) {
  const NodeId node = state_.nodes_.Find(slot.node);
  transaction_.Add(
      ClaimOn(node, state_.workloads_.at(workload), slot, state_.vocabulary_.classes.at(class_id)));
  Touch(node);
}

void State::SlotTrial::Reserve(WorkloadId workload, ClassId class_id, const Slot& slot,
                               std::span<const PodId> victims) {
  const NodeId node = state_.nodes_.Find(slot.node);
  const Workload& row = state_.workloads_.at(workload);
  Claim claim = ClaimOn(node, row, slot, state_.vocabulary_.classes.at(class_id));
  claim.priority = kPriorityOfPromise;
  claim.state = ClaimState::kReserved;
  claim.why = ClaimWhy::kPipelined;
  for (const PodId victim : victims) {
    const ClaimId charged = state_.ClaimOf(victim);
    Claim releasing = state_.ledger_.claim(charged);
    releasing.state = ClaimState::kReleasing;
    transaction_.Change(charged, releasing);
  }
  transaction_.Add(claim);
  for (const PodId victim : victims) budgets_.Charge(victim, state_.pods_.at(victim).labels);
  Touch(node);
}

void State::SlotTrial::Touch(NodeId node) {
  touched_.push_back(node);
  state_.touches_.Add(node, kTouchTried);
}

void State::SlotTrial::Change(ClaimId claim, const Claim& to) {
  transaction_.Change(claim, to);
  Touch(to.account.node());
}

void State::SlotTrial::End(ClaimId claim) {
  const NodeId node = state_.ledger_.claim(claim).account.node();
  transaction_.End(claim);
  Touch(node);
}

void State::SlotTrial::TakePromised(WorkloadId workload) {
  for (const ClaimId promised : state_.slots_.PromisedOf(workload)) {
    if (!promised.valid()) continue;
    Claim held = state_.ledger_.claim(promised);
    held.state = ClaimState::kHeld;
    held.devices = {};
    Change(promised, held);
  }
}

void State::SlotTrial::WithoutPromise(WorkloadId workload) {
  const auto stay = [&](ClaimId id) {
    if (!id.valid() || state_.ledger_.claim(id).state != ClaimState::kReleasing) return;
    Claim kept = state_.ledger_.claim(id);
    kept.state = ClaimState::kHeld;
    kept.claimant = {};
    Change(id, kept);
  };
  const auto pod_stays = [&](PodId pod) {
    if (pod.valid() && !state_.pods_.at(pod).terminating) stay(state_.ClaimOf(pod));
  };
  const Workload& row = state_.workloads_.at(workload);
  for (const ClaimId promised : state_.slots_.PromisedOf(workload)) {
    if (!promised.valid()) continue;
    const NodeId node = state_.ledger_.claim(promised).account.node();
    for (ClaimId id = state_.ledger_.nodes().first_claim(node.value); id.valid();) {
      const ClaimId next = state_.ledger_.claim(id).next_in_account;
      if (state_.ledger_.claim(id).claimant == row.uid)
        pod_stays(state_.pods_.FindUid(state_.ledger_.claim(id).owner));
      id = next;
    }
    End(promised);
  }
  for (const WorkloadId victim : row.victims) {
    if (StageOf(state_.workloads_.at(victim).status) == WorkloadStage::kEvicted) continue;
    for (const SlotTable::Place& place : state_.slots_.PlacesOf(victim)) stay(place.claim);
    for (const PodId pod : state_.PodsOf(victim)) pod_stays(pod);
    TakePlacesAgain(victim);
  }
}

// Those of pods that wait ended when it was to leave (State::Unseat).
void State::SlotTrial::TakePlacesAgain(WorkloadId workload) {
  const Workload& row = state_.workloads_.at(workload);
  for (const uint32_t i : state_.PlacesToCome(workload)) {
    const SlotTable::Place& place = state_.slots_.PlacesOf(workload)[i];
    const NodeId node = state_.nodes_.Find(place.slot.node);
    if (place.claim.valid() || !node.valid()) continue;
    const ClassId class_id = row.slots[place.slot.pod_set].class_id;
    const Claim claim = ClaimOn(node, row, place.slot, state_.vocabulary_.classes.at(class_id));
    if (place.priority && !state_.WillHold(claim, *place.priority)) continue;
    transaction_.Add(claim);
    Touch(node);
  }
}

// As when it is evicted (PutSlots, PutPods, Unseat).
void State::LeaveIn(Transaction& t, WorkloadId id) {
  const auto leave = [&](ClaimId claim) {
    if (!claim.valid() || ledger_.claim(claim).state == ClaimState::kReleasing) return;
    Claim leaving = ledger_.claim(claim);
    leaving.state = ClaimState::kReleasing;
    t.Change(claim, leaving);
  };
  for (const SlotTable::Place& place : slots_.PlacesOf(id)) leave(place.claim);
  for (const ClaimId promised : slots_.PromisedOf(id)) leave(promised);
  for (const PodId pod : PodsOf(id)) {
    const ClaimId claim = ClaimOf(pod);
    if (!claim.valid()) continue;
    const bool promised = ledger_.claim(claim).state == ClaimState::kReserved;
    if (promised && KeepsPromise(pods_.at(pod))) continue;
    leave(claim);
    Share(t, pod);
  }
  for (const WorkloadSlots& set : workloads_.at(id).slots) {
    if (!set.gang.valid()) continue;
    const GroupId group = groups_.FindKey(keys_.Find(NameOf(set.gang)));
    if (group.valid()) Unsettle(group);
  }
}

void State::SlotTrial::Without(WorkloadId workload) {
  for (const SlotTable::Place& place : state_.slots_.PlacesOf(workload)) {
    if (place.claim.valid()) End(place.claim);
  }
  for (const PodId pod : state_.PodsOf(workload)) {
    const ClaimId claim = state_.ClaimOf(pod);
    const Pod& row = state_.pods_.at(pod);
    // Nobody can count on the room of one that did not go in time; what it is promised by itself
    // stays.
    if (!claim.valid() || row.overdue) continue;
    const bool reserved = state_.ledger_.claim(claim).state == ClaimState::kReserved;
    // Who is bound by now, which nobody saw yet, is unseated and goes with the oldest workload of
    // its job.
    const bool stays =
        !reserved && row.slot.valid() &&
        state_.slots_.WorkloadsOf(state_.workloads_.at(workload).job).front() != workload;
    if (!stays && (!reserved || !KeepsPromise(row))) End(claim);
  }
}

// What was derived from the nodes meanwhile is derived anew.
State::SlotTrial::~SlotTrial() {
  transaction_.RollbackTo(Transaction::Checkpoint{});
  for (const NodeId node : touched_) state_.touches_.Add(node, kTouchTried);
}

}  // namespace berth::model
