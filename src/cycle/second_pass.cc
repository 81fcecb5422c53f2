#include "cycle/second_pass.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "gang/readiness.h"

namespace berth::cycle {

using model::NameId;
using model::Pass;
using model::PassDecision;
using model::Reservation;
using model::TopologyPlaces;
using model::Workload;
using model::WorkloadId;
using model::WorkloadStage;

namespace {

// Whether the pods of the set have their places, or need none; not where its object says that it
// awaits them.
bool HasPlaces(const model::WorkloadSlots& set, const Reservation& reservation, uint32_t pod_set,
               bool joint) {
  if (const TopologyPlaces* by_topology = FindTopology(reservation, pod_set))
    return !by_topology->shares.empty();
  return set.count == 0 || !joint || !set.ours ||
         std::ranges::find(reservation.slots, pod_set, &model::Slot::pod_set) !=
             reservation.slots.end();
}

bool AwaitsPlaces(const Workload& row, bool joint) {
  return StageOf(row.status) == WorkloadStage::kReserved &&
         LacksPlaces(row.slots, row.reserved, joint);
}

// Of one whose template can't be read it is told where its pods stand, and not what they are.
bool IsRead(const Workload& row) {
  return std::ranges::all_of(row.reserved.topologies, [&](const TopologyPlaces& places) {
    return places.pod_set < row.slots.size();
  });
}

// By its row; `faults` are planted.
bool NeedsPass(const Workload& row, const model::Faults& faults) {
  if (faults.no_pass_once_admitted && StageOf(row.status) == WorkloadStage::kAdmitted) return false;
  return NeedsSecondPass(row.status);
}

// Whether it has quota, and pods of groups that may not start.
bool MayBeLetGo(const Workload& row) {
  const WorkloadStage stage = StageOf(row.status);
  return (stage == WorkloadStage::kReserved || stage == WorkloadStage::kAdmitted) &&
         std::ranges::any_of(row.slots, [](const auto& slots) { return slots.gang.valid(); });
}

// By its row alone. Who is not to run gives up its quota in any case.
bool MayBeDue(const Workload& row, const model::Faults& faults, bool joint) {
  return row.status.active && IsRead(row) &&
         (NeedsPass(row, faults) || AwaitsPlaces(row, joint) ||
          AwaitsAdmission(row.status, row.reserved) || MayBeLetGo(row));
}

bool StandsOn(const Workload& row, NameId node) {
  return std::ranges::any_of(row.reserved.topologies, [&](const TopologyPlaces& places) {
    return std::ranges::find(places.shares, node, [](const model::TopologyShare& share) {
             return share.values.back();
           }) != places.shares.end();
  });
}

// Of one that is not admitted nobody reports them: those that are not there, or not ready.
std::vector<NameId> LostNodes(const model::State& state, const Workload& row) {
  std::vector<NameId> lost;
  if (!AwaitsAdmission(row.status, row.reserved)) return lost;
  for (const model::Slot& slot : row.reserved.slots) {
    const model::NodeId node = state.nodes().Find(slot.node);
    const bool there = node.valid() && state.nodes().present(node) && state.nodes().ready(node);
    if (!there && StandsOn(row, slot.node)) lost.push_back(slot.node);
  }
  std::ranges::sort(lost);
  const auto again = std::ranges::unique(lost);
  lost.erase(again.begin(), again.end());
  return lost;
}

// Those of its nodes that are reported, or lost.
std::vector<NameId> FailedNodes(const model::State& state, const Workload& row) {
  std::vector<NameId> failed;
  for (const NameId node : row.unhealthy) {
    if (StandsOn(row, node) && (failed.empty() || !state.faults().first_failure_alone))
      failed.push_back(node);
  }
  for (const NameId node : LostNodes(state, row)) {
    if (std::ranges::find(failed, node) == failed.end()) failed.push_back(node);
  }
  return failed;
}

// What it has, with as many pods of those sets that lack places as it has quota for, and none of
// the others.
Reservation LackingOf(const Workload& row, bool joint) {
  Reservation lacking = model::WithoutPlaces(row.reserved);
  lacking.counts.assign(row.slots.size(), 0);
  for (uint32_t i = 0; i < row.slots.size(); ++i) {
    if (HasPlaces(row.slots[i], row.reserved, i, joint)) continue;
    lacking.counts[i] = row.slots[i].count;
    for (const model::QuotaCharge& charge : row.reserved.charges) {
      if (charge.pod_set == i) lacking.counts[i] = charge.count;
    }
  }
  return lacking;
}

// What it has, and what was found besides.
Reservation Joined(const Reservation& has, SlotPlacer::Found found) {
  Reservation all = has;
  std::erase_if(all.topologies, [](const TopologyPlaces& places) { return places.shares.empty(); });
  std::ranges::move(found.topologies, std::back_inserter(all.topologies));
  std::ranges::move(found.slots, std::back_inserter(all.slots));
  std::ranges::stable_sort(all.topologies, {}, &TopologyPlaces::pod_set);
  std::ranges::stable_sort(all.slots, {}, &model::Slot::pod_set);
  return all;
}

}  // namespace

bool LacksPlaces(std::span<const model::WorkloadSlots> slots, const Reservation& reservation,
                 bool joint) {
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (!HasPlaces(slots[i], reservation, i, joint)) return true;
  }
  return false;
}

bool AwaitsAdmission(const model::WorkloadStatus& status, const Reservation& reservation) {
  return StageOf(status) == WorkloadStage::kReserved &&
         std::ranges::any_of(reservation.topologies,
                             [](const TopologyPlaces& places) { return !places.shares.empty(); });
}

Pass PassOf(const model::State& state, WorkloadId workload, bool joint) {
  const Workload& row = state.workloads().at(workload);
  if (!row.status.active || !IsRead(row)) return Pass::kNone;
  const model::Faults& faults = state.faults();
  if (MayBeLetGo(row) && !faults.unready_keeps_quota && !faults.unready_gets_quota &&
      gang::NoneStarted(state, row) && gang::WhyUnready(state, workload)) {
    return Pass::kLetGo;
  }
  const bool is_placed = AwaitsAdmission(row.status, row.reserved);
  if ((is_placed || AwaitsPlaces(row, joint)) && state.PassedChecks(workload))
    return LostNodes(state, row).empty() ? Pass::kPlace : Pass::kReplace;
  return NeedsPass(row, faults) && row.status.on_unhealthy_node ? Pass::kReplace : Pass::kNone;
}

// ---- Whom to ask about -----------------------------------------------------------------------

void SecondPass::Forget(WorkloadId workload) {
  to_ask_.erase(workload);
  waits_.erase(workload);
  to_start_.erase(workload);
  if (const auto gangs = gangs_of_.find(workload); gangs != gangs_of_.end()) {
    for (const NameId gang : gangs->second) {
      const auto of = of_gang_.find(gang);
      of->second.erase(workload);
      if (of->second.empty()) of_gang_.erase(of);
    }
    gangs_of_.erase(gangs);
  }
  const auto at = queue_of_.find(workload);
  if (at == queue_of_.end()) return;
  const auto queue = of_queue_.find(at->second);
  queue->second.erase(workload);
  if (queue->second.empty()) of_queue_.erase(queue);
  queue_of_.erase(at);
}

void SecondPass::Sync(const model::State& state, WorkloadId workload) {
  // Others may have been to start with it.
  if (gangs_of_.contains(workload)) NoteQuota();
  Forget(workload);
  Plant(state, workload);
  const bool may_be_due = state.workloads().used(workload) &&
                          (MayBeDue(state.workloads().at(workload), state.faults(), joint_) ||
                           planted_.contains(workload));
  if (!may_be_due) {
    seen_.erase(workload);
    return;
  }
  Index(state.workloads().at(workload), workload);
  to_ask_.insert(workload);
}

void SecondPass::Index(const Workload& row, WorkloadId workload) {
  queue_of_[workload] = row.reserved.cluster_queue;
  of_queue_[row.reserved.cluster_queue].insert(workload);
  if (!MayBeLetGo(row)) return;
  for (const model::WorkloadSlots& slots : row.slots) {
    if (!slots.gang.valid()) continue;
    of_gang_[slots.gang].insert(workload);
    gangs_of_[workload].insert(slots.gang);
  }
}

// Of one that is gone the name is not known any more.
void SecondPass::NoteGroup(const model::State& state, model::GroupId group) {
  NoteQuota();
  if (!state.groups().used(group)) {
    for (const auto& [workload, gangs] : gangs_of_) to_ask_.insert(workload);
    return;
  }
  const std::string_view key = state.KeyOf(state.groups().at(group).key);
  const auto at = of_gang_.find(state.vocabulary().names.Find(key));
  if (at != of_gang_.end()) to_ask_.insert(at->second.begin(), at->second.end());
}

// The mark is set once a node failed, and taken off when the object does not name it any more; what
// is replayed is kept until it was decided.
void SecondPass::Plant(const model::State& state, WorkloadId workload) {
  const model::Faults& faults = state.faults();
  if (!faults.second_pass_by_mark && !faults.second_pass_replayed) return;
  const bool there = state.workloads().used(workload);
  const bool named = there && !state.workloads().at(workload).unhealthy.empty();
  if (!there || (faults.second_pass_by_mark && !named)) planted_.erase(workload);
  if (!there) return;
  const Pass pass = PassOf(state, workload, joint_);
  if (pass == Pass::kReplace || (faults.second_pass_replayed && pass != Pass::kNone))
    planted_[workload] = pass;
}

Pass SecondPass::PassNow(const model::State& state, WorkloadId workload) const {
  const auto planted = planted_.find(workload);
  const bool holds = state.workloads().at(workload).status.reserved;
  if (planted != planted_.end() && holds) return planted->second;
  return PassOf(state, workload, joint_);
}

void SecondPass::NoteQueue(const model::QueueName& queue) {
  if (queue.kind != model::QueueKind::kClusterQueue) return;
  const auto at = of_queue_.find(queue.name);
  if (at != of_queue_.end()) to_ask_.insert(at->second.begin(), at->second.end());
}

Instant SecondPass::wake_at() const {
  if (!to_ask_.empty() || (nodes_lifted_ && !waits_.empty()) || groups_moved_ || members_moved_)
    return Instant{};
  return later_.empty() ? Instant::Never() : later_.begin()->first;
}

// Ids decide nothing.
std::vector<WorkloadId> SecondPass::InOrder(const model::State& state) {
  std::vector<WorkloadId> workloads(to_ask_.begin(), to_ask_.end());
  to_ask_.clear();
  std::erase_if(workloads, [&](WorkloadId id) { return !queue_of_.contains(id); });
  std::ranges::sort(workloads, [&](WorkloadId a, WorkloadId b) {
    const auto key = [&](WorkloadId id) {
      const Workload& row = state.workloads().at(id);
      return std::tuple(-int64_t{row.priority}, row.status.reserved_at, state.UidOf(row.uid));
    };
    return key(a) < key(b);
  });
  return workloads;
}

// ---- Deciding --------------------------------------------------------------------------------

void SecondPass::Serve(model::State& state, Instant now, SlotPlacer& placer, model::Plan& plan) {
  while (!later_.empty() && later_.begin()->first <= now) {
    to_ask_.insert(later_.begin()->second);
    later_.erase(later_.begin());
  }
  if (std::exchange(nodes_lifted_, false)) to_ask_.merge(std::exchange(waits_, {}));
  if (std::exchange(groups_moved_, false)) to_ask_.insert(to_start_.begin(), to_start_.end());
  if (std::exchange(members_moved_, false)) AskWithoutGroups(state);
  for (const WorkloadId id : InOrder(state)) {
    waits_.erase(id);
    const Pass pass = PassNow(state, id);
    const Workload& row = state.workloads().at(id);
    to_start_.erase(id);
    if (gangs_of_.contains(id) && gang::NoneStarted(state, row)) to_start_.insert(id);
    // Whoever it is evicted for, or what is under way, comes first; both end with a change of its
    // row or queue.
    if (pass == Pass::kNone || row.write != model::WriteStage::kNone || row.claimant.valid()) {
      seen_.erase(id);
      continue;
    }
    seen_.try_emplace(id, now);
    if (const Instant from = DueFrom(row, id); from > now) {
      later_.emplace(from, id);
      continue;
    }
    if (state.faults().second_pass_replayed) planted_.erase(id);
    Decide(state, id, pass, placer, plan);
  }
}

void SecondPass::AskWithoutGroups(const model::State& state) {
  const auto is_missing = [&](NameId gang) {
    return !state.groups().FindKey(state.FindKey(state.NameOf(gang))).valid();
  };
  for (const auto& [workload, gangs] : gangs_of_) {
    if (std::ranges::any_of(gangs, is_missing)) to_ask_.insert(workload);
  }
}

// When it may be decided: who has all its places waits for nothing. REQUIRES: it was seen that
// something is due.
Instant SecondPass::DueFrom(const Workload& row, WorkloadId id) const {
  const bool is_placed =
      AwaitsAdmission(row.status, row.reserved) && !LacksPlaces(row.slots, row.reserved, joint_);
  return std::max(row.not_before, seen_.at(id) + (is_placed ? Duration{} : delay_));
}

void SecondPass::Decide(model::State& state, WorkloadId id, Pass pass, SlotPlacer& placer,
                        model::Plan& plan) {
  const Workload& row = state.workloads().at(id);
  PassDecision decision{.workload = id, .uid = row.uid, .pass = pass};
  if (pass == Pass::kLetGo) return LetGo(state, std::move(decision), plan);
  Reservation lacking;
  if (pass == Pass::kReplace) {
    decision.failed = FailedNodes(state, row);
    decision.refusal = placer.WhyNoTopologyToReplaceIn(id, decision.failed);
  } else {
    lacking = LackingOf(row, joint_);
    decision.refusal = placer.WhyNoTopology(id, lacking);
  }
  if (decision.refusal) return LacksTopology(state, std::move(decision), plan);
  SlotPlacer::Places places =
      pass == Pass::kReplace ? placer.Replace(id, decision.failed) : placer.Place(id, lacking);
  if (!places) {
    decision.refusal = std::move(places.error());
    if (pass == Pass::kReplace && !state.faults().pass_fails_fast &&
        placer.CouldReplaceLater(id, decision.failed)) {
      return WaitForNodes(decision, plan);
    }
    return GiveUp(state, std::move(decision), plan);
  }
  Reservation reservation = row.reserved;
  if (pass == Pass::kReplace) {
    reservation.slots = std::move(places->slots);
    reservation.topologies = std::move(places->topologies);
  } else {
    reservation = Joined(row.reserved, *std::move(places));
  }
  if (!state.HasRoomFor(reservation, row.reserved)) return WaitForNodes(decision, plan);
  state.Place(id, std::move(reservation));
  plan.passes.push_back(std::move(decision));
}

// What it was told to wait for is there, and nodes are not.
void SecondPass::WaitForNodes(const PassDecision& decision, model::Plan& plan) {
  waits_.insert(decision.workload);
  plan.held_up.push_back({.workload = decision.workload, .uid = decision.uid});
}

// Other nodes than those of a topology would not be what it was given quota for. It waits for what
// may come back, as an object does that is made anew.
void SecondPass::LacksTopology(model::State& state, PassDecision decision, model::Plan& plan) {
  if (decision.refusal->topology->kind == model::TopologyRefusal::Kind::kUntold)
    return GiveUp(state, std::move(decision), plan);
  waits_.insert(decision.workload);
  plan.held_up.push_back(
      {.workload = decision.workload, .uid = decision.uid, .refusal = std::move(decision.refusal)});
}

void SecondPass::LetGo(model::State& state, PassDecision decision, model::Plan& plan) {
  if (auto unready = gang::WhyUnready(state, decision.workload))
    decision.gang = std::move(unready->why);
  state.GiveUp(decision.workload);
  plan.passes.push_back(std::move(decision));
}

// Of a domain that is not there, where a node of it is silent or gone, more will be told: it is
// reported, or comes back.
void SecondPass::GiveUp(model::State& state, PassDecision decision, model::Plan& plan) {
  const auto& why = decision.refusal->topology;
  if (why && why->kind == model::TopologyRefusal::Kind::kStale) {
    const model::NodeId node = state.nodes().Find(why->level);
    if (!node.valid() || !state.nodes().present(node) || !state.nodes().ready(node)) {
      return WaitForNodes(decision, plan);
    }
  }
  state.GiveUp(decision.workload);
  plan.passes.push_back(std::move(decision));
}

std::vector<WorkloadId> SecondPass::Missed(const model::State& state,
                                           const place::Evaluator& evaluator) const {
  std::vector<WorkloadId> missed;
  std::optional<model::State> copy;  // That is as the state is; a decision changes it.
  for (uint32_t i = 0; i < state.workloads().size(); ++i) {
    const WorkloadId id{i};
    if (!state.workloads().used(id) || PassOf(state, id, joint_) == Pass::kNone) continue;
    const Workload& row = state.workloads().at(id);
    if (row.write != model::WriteStage::kNone || row.claimant.valid()) continue;
    if (to_ask_.contains(id) || (groups_moved_ && to_start_.contains(id)) || members_moved_)
      continue;
    if (seen_.contains(id) && later_.contains({DueFrom(row, id), id})) continue;
    if (waits_.contains(id)) {
      if (nodes_lifted_) continue;
      if (!copy) copy = state;
      if (!WouldDecide(*copy, evaluator, id)) continue;
      copy.reset();
    }
    missed.push_back(id);
  }
  return missed;
}

// Whether more than waiting comes of a look at it now, which is then in the state.
bool SecondPass::WouldDecide(model::State& state, const place::Evaluator& evaluator,
                             WorkloadId workload) const {
  ClassCaches caches(/*bytes_max=*/0);
  ClassPlaces counted;
  place::PreemptionScratch scratch;
  SlotPlacer placer(state, evaluator, caches, counted, scratch, {.joint = joint_});
  SecondPass trial(joint_, Duration{});
  model::Plan plan;
  trial.Decide(state, workload, PassNow(state, workload), placer, plan);
  return !plan.passes.empty();
}

// The queues follow from the rows.
void SecondPass::AddTo(Hasher& hasher) const {
  hasher.Add(nodes_lifted_ && !waits_.empty()).Add(groups_moved_).Add(members_moved_);
  for (const auto* ids : {&to_ask_, &waits_, &to_start_}) {
    hasher.Add(ids->size());
    for (const WorkloadId id : *ids) hasher.Add(id.value);
  }
  hasher.Add(planted_.size());
  for (const auto& [id, pass] : planted_) hasher.Add(id.value).Add(pass);
  // Without a delay it says nothing that decides.
  if (delay_ > Duration{}) {
    hasher.Add(seen_.size());
    for (const auto& [id, at] : seen_) hasher.Add(id.value).Add(at.ns);
  }
  hasher.Add(later_.size());
  for (const auto& [at, id] : later_) hasher.Add(at.ns).Add(id.value);
}

}  // namespace berth::cycle
