#include "cycle/second_pass.h"

#include <algorithm>
#include <iterator>
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

bool NamesGroup(std::span<const model::WorkloadSlots> slots) {
  return std::ranges::any_of(slots, [](const auto& set) { return set.gang.valid(); });
}

// Whether it has quota, and pods of groups that may not start.
bool MayBeLetGo(const Workload& row) {
  const WorkloadStage stage = StageOf(row.status);
  return (stage == WorkloadStage::kReserved || stage == WorkloadStage::kAdmitted) &&
         NamesGroup(row.slots);
}

// By its row alone. Who is not to run gives up its quota in any case.
bool MayBeDue(const Workload& row, const model::Faults& faults, bool joint) {
  return row.status.active && IsRead(row) &&
         (NeedsPass(row, faults) || AwaitsPlaces(row, joint) ||
          AwaitsAdmission(row.status, row.slots, row.reserved) || MayBeLetGo(row));
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
  if (!AwaitsAdmission(row.status, row.slots, row.reserved)) return lost;
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

// Of a domain that is not there, where a node of it is silent or gone, more will be told: it is
// reported, or comes back.
bool MayComeBack(const model::State& state, const PassDecision& decision) {
  const auto& why = decision.refusal->topology;
  if (!why || why->kind != model::TopologyRefusal::Kind::kStale) return false;
  const model::NodeId node = state.nodes().Find(why->level);
  return !node.valid() || !state.nodes().present(node) || !state.nodes().ready(node);
}

}  // namespace

bool LacksPlaces(std::span<const model::WorkloadSlots> slots, const Reservation& reservation,
                 bool joint) {
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (!HasPlaces(slots[i], reservation, i, joint)) return true;
  }
  return false;
}

bool AwaitsAdmission(const model::WorkloadStatus& status,
                     std::span<const model::WorkloadSlots> slots, const Reservation& reservation) {
  const auto has_shares = [](const TopologyPlaces& places) { return !places.shares.empty(); };
  return StageOf(status) == WorkloadStage::kReserved &&
         (std::ranges::any_of(reservation.topologies, has_shares) || NamesGroup(slots));
}

// ---- Mates -----------------------------------------------------------------------------------

namespace {

// What is due of one that passed its checks and is not admitted, whoever its mates are: it is
// admitted with kPlace.
Pass PassToAdmit(const model::State& state, WorkloadId workload, bool joint) {
  const Workload& row = state.workloads().at(workload);
  const bool waits =
      AwaitsAdmission(row.status, row.slots, row.reserved) || AwaitsPlaces(row, joint);
  if (!waits || !state.PassedChecks(workload)) return Pass::kNone;
  return LostNodes(state, row).empty() ? Pass::kPlace : Pass::kReplace;
}

// Whether others decide when it is admitted.
bool IsOfGroup(const model::State& state, WorkloadId workload) {
  const Workload& row = state.workloads().at(workload);
  return MayBeLetGo(row) && !row.status.admitted && gang::NoneStarted(state, row) &&
         !state.faults().admitted_without_mates;
}

// With whom it is to be admitted, or could be now that they are: nobody of `without`. Without
// itself: it is to wait.
std::set<WorkloadId> MatesOf(const model::State& state, WorkloadId workload, bool joint,
                             const std::set<WorkloadId>& without = {}) {
  return gang::StartableWith(state, workload, [&](WorkloadId id) {
    const Workload& mate = state.workloads().at(id);
    if (without.contains(id) || !gang::HoldsQuota(mate) || !mate.job.valid() || !IsRead(mate))
      return false;
    const bool gives_up = mate.write != model::WriteStage::kNone && mate.decided.charges.empty();
    return !gives_up && (StageOf(mate.status) == WorkloadStage::kAdmitted ||
                         PassToAdmit(state, id, joint) == Pass::kPlace);
  });
}

bool AwaitsMates(const model::State& state, WorkloadId workload, bool joint) {
  return PassToAdmit(state, workload, joint) == Pass::kPlace && IsOfGroup(state, workload) &&
         !MatesOf(state, workload, joint).contains(workload);
}

// More important ones first. Ids decide nothing.
void SortByImportance(const model::State& state, std::vector<WorkloadId>& workloads) {
  std::ranges::sort(workloads, {}, [&](WorkloadId id) {
    const Workload& row = state.workloads().at(id);
    return std::tuple(-int64_t{row.priority}, row.status.reserved_at, state.UidOf(row.uid));
  });
}

}  // namespace

bool IsAdmittedLater(const model::State& state, WorkloadId workload, bool joint) {
  const Workload& row = state.workloads().at(workload);
  return LacksPlaces(row.slots, row.decided, joint) ||
         (NamesGroup(row.slots) && !state.PassedChecks(workload, row.decided));
}

Pass PassOf(const model::State& state, WorkloadId workload, bool joint) {
  const Workload& row = state.workloads().at(workload);
  if (!row.status.active || !IsRead(row)) return Pass::kNone;
  const model::Faults& faults = state.faults();
  if (MayBeLetGo(row) && !faults.unready_keeps_quota && !faults.unready_gets_quota &&
      gang::NoneStarted(state, row) && gang::WhyUnready(state, workload)) {
    return Pass::kLetGo;
  }
  const Pass pass = PassToAdmit(state, workload, joint);
  if (pass != Pass::kNone && !AwaitsMates(state, workload, joint)) return pass;
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
  // Others may have been to start with it, or are now.
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
  if (gangs_of_.contains(workload)) NoteQuota();
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
  if (at == of_queue_.end()) return;
  to_ask_.insert(at->second.begin(), at->second.end());
  // Others wait for those that are to pass the checks that it asks for.
  if (std::ranges::any_of(at->second, [&](WorkloadId id) { return gangs_of_.contains(id); }))
    NoteQuota();
}

Instant SecondPass::wake_at() const {
  const bool lifted = nodes_lifted_ && (!waits_.empty() || !to_start_.empty());
  if (!to_ask_.empty() || lifted || groups_moved_ || members_moved_) return Instant{};
  return later_.empty() ? Instant::Never() : later_.begin()->first;
}

std::vector<WorkloadId> SecondPass::InOrder(const model::State& state) {
  std::vector<WorkloadId> workloads(to_ask_.begin(), to_ask_.end());
  to_ask_.clear();
  std::erase_if(workloads, [&](WorkloadId id) { return !queue_of_.contains(id); });
  SortByImportance(state, workloads);
  return workloads;
}

// ---- Deciding --------------------------------------------------------------------------------

void SecondPass::Serve(model::State& state, Instant now, SlotPlacer& placer, model::Plan& plan) {
  while (!later_.empty() && later_.begin()->first <= now) {
    to_ask_.insert(later_.begin()->second);
    later_.erase(later_.begin());
  }
  // A mate whose nodes are back is ready.
  if (nodes_lifted_) NoteQuota();
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
      TellAwaited(state, id, plan);
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
  const bool is_placed = AwaitsAdmission(row.status, row.slots, row.reserved) &&
                         !LacksPlaces(row.slots, row.reserved, joint_);
  return std::max(row.not_before, seen_.at(id) + (is_placed ? Duration{} : delay_));
}

void SecondPass::Decide(model::State& state, WorkloadId id, Pass pass, SlotPlacer& placer,
                        model::Plan& plan) {
  if (pass == Pass::kLetGo) {
    LetGo(state, {.workload = id, .uid = state.workloads().at(id).uid, .pass = pass}, plan);
    // Others were asked before it, and may not start without it.
    return NoteQuota();
  }
  if (pass == Pass::kPlace && IsOfGroup(state, id)) return PlaceWithMates(state, id, placer, plan);
  CarryOut(state, {LookAt(state, id, pass, placer, joint_)}, plan);
}

// Where a mate waits, or is about to give up its quota, it is tried without that one.
void SecondPass::PlaceWithMates(model::State& state, WorkloadId id, SlotPlacer& placer,
                                model::Plan& plan) {
  std::set<WorkloadId> waiting;
  while (true) {
    const std::vector<WorkloadId> mates = MatesToPlace(state, id, waiting);
    if (mates.empty()) {
      waits_.insert(id);
      return TellAwaited(state, id, plan);
    }
    const auto leaves = std::ranges::find_if(mates, [&](WorkloadId mate) {
      return mate != id && PassOf(state, mate, joint_) == Pass::kLetGo;
    });
    if (leaves != mates.end()) {
      waiting.insert(*leaves);
      continue;
    }
    std::vector<Outcome> outcomes = LookAtAll(state, mates, placer);
    if (outcomes.back().kind == Outcome::Kind::kPlaces)
      return CarryOut(state, std::move(outcomes), plan);
    const WorkloadId lacking = outcomes.back().decision.workload;
    const bool gives_up = outcomes.back().kind == Outcome::Kind::kGivesUp;
    outcomes.erase(outcomes.begin(), std::prev(outcomes.end()));
    CarryOut(state, std::move(outcomes), plan);
    // Who can start without it is asked next.
    if (gives_up) {
      std::ranges::copy_if(mates, std::inserter(to_ask_, to_ask_.end()),
                           [&](WorkloadId mate) { return mate != lacking; });
    }
    if (gives_up || lacking == id) return;
    waiting.insert(lacking);
  }
}

// Those of its mates that are to get places, in their order, itself among them; none: it can't be
// admitted without those.
std::vector<WorkloadId> SecondPass::MatesToPlace(const model::State& state, WorkloadId workload,
                                                 const std::set<WorkloadId>& without) const {
  const std::set<WorkloadId> mates = MatesOf(state, workload, joint_, without);
  if (!mates.contains(workload)) return {};
  std::vector<WorkloadId> to_place;
  std::ranges::copy_if(mates, std::back_inserter(to_place), [&](WorkloadId id) {
    const Workload& row = state.workloads().at(id);
    return row.write == model::WriteStage::kNone && PassToAdmit(state, id, joint_) == Pass::kPlace;
  });
  SortByImportance(state, to_place);
  return to_place;
}

// Each beside those before it, on a copy, until one gets none, or finds no room in the queue of its
// group, where none is kept for who has no places: the last.
std::vector<SecondPass::Outcome> SecondPass::LookAtAll(model::State& state,
                                                       std::span<const WorkloadId> mates,
                                                       SlotPlacer& placer) const {
  if (mates.size() == 1) return {LookAt(state, mates.front(), Pass::kPlace, placer, joint_)};
  model::State copy = state;
  ClassCaches caches(/*bytes_max=*/0);
  ClassPlaces counted;
  place::PreemptionScratch scratch;
  SlotPlacer tried = placer.For(copy, caches, counted, scratch);
  std::vector<Outcome> outcomes;
  for (const WorkloadId id : mates) {
    outcomes.push_back(LookAt(copy, id, Pass::kPlace, tried, joint_));
    if (outcomes.back().kind != Outcome::Kind::kPlaces) break;
    copy.Place(id, outcomes.back().reservation);
    auto unready = gang::WhyUnready(copy, id);
    if (!unready) continue;
    outcomes.back().kind = Outcome::Kind::kGivesUp;
    outcomes.back().decision.pass = Pass::kLetGo;
    outcomes.back().decision.gang = std::move(unready->why);
    break;
  }
  return outcomes;
}

// The state is as before.
SecondPass::Outcome SecondPass::LookAt(model::State& state, WorkloadId id, Pass pass,
                                       SlotPlacer& placer, bool joint) {
  using Kind = Outcome::Kind;
  const Workload& row = state.workloads().at(id);
  Outcome outcome{.decision = {.workload = id, .uid = row.uid, .pass = pass}};
  PassDecision& decision = outcome.decision;
  Reservation lacking;
  if (pass == Pass::kReplace) {
    decision.failed = FailedNodes(state, row);
    decision.refusal = placer.WhyNoTopologyToReplaceIn(id, decision.failed);
  } else {
    lacking = LackingOf(row, joint);
    decision.refusal = placer.WhyNoTopology(id, lacking);
  }
  if (decision.refusal) {
    // Other nodes than those of a topology would not be what it was given quota for. It waits for
    // what may come back, as an object does that is made anew.
    const bool untold = decision.refusal->topology->kind == model::TopologyRefusal::Kind::kUntold;
    outcome.kind = untold ? Kind::kGivesUp : Kind::kWaits;
    if (!untold) outcome.refusal = std::exchange(decision.refusal, std::nullopt);
    return outcome;
  }
  SlotPlacer::Places places =
      pass == Pass::kReplace ? placer.Replace(id, decision.failed) : placer.Place(id, lacking);
  if (!places) {
    decision.refusal = std::move(places.error());
    const bool later = pass == Pass::kReplace && !state.faults().pass_fails_fast &&
                       placer.CouldReplaceLater(id, decision.failed);
    outcome.kind = later || MayComeBack(state, decision) ? Kind::kWaits : Kind::kGivesUp;
    return outcome;
  }
  outcome.reservation = row.reserved;
  if (pass == Pass::kReplace) {
    outcome.reservation.slots = std::move(places->slots);
    outcome.reservation.topologies = std::move(places->topologies);
  } else {
    outcome.reservation = Joined(row.reserved, *std::move(places));
  }
  if (!state.HasRoomFor(outcome.reservation, row.reserved)) outcome.kind = Kind::kWaits;
  return outcome;
}

// All that get places do in one transaction.
void SecondPass::CarryOut(model::State& state, std::vector<Outcome> outcomes, model::Plan& plan) {
  std::vector<model::State::Placing> placings;
  for (Outcome& outcome : outcomes) {
    const WorkloadId id = outcome.decision.workload;
    waits_.erase(id);
    if (outcome.kind == Outcome::Kind::kWaits) {
      // What it was told to wait for is there, and nodes are not; or it is told.
      waits_.insert(id);
      plan.held_up.push_back(
          {.workload = id, .uid = outcome.decision.uid, .refusal = std::move(outcome.refusal)});
      continue;
    }
    if (outcome.kind == Outcome::Kind::kPlaces) {
      placings.push_back({.workload = id, .reservation = std::move(outcome.reservation)});
    } else {
      state.GiveUp(id);
      if (gangs_of_.contains(id)) NoteQuota();
    }
    plan.passes.push_back(std::move(outcome.decision));
  }
  if (!placings.empty()) state.PlaceAll(std::move(placings));
}

// Of one that could be admitted but for its mates: for whom it waits, the most important that has
// quota and is not ready.
void SecondPass::TellAwaited(const model::State& state, WorkloadId workload,
                             model::Plan& plan) const {
  const Workload& row = state.workloads().at(workload);
  if (row.write != model::WriteStage::kNone || row.claimant.valid()) return;
  if (PassToAdmit(state, workload, joint_) != Pass::kPlace || !IsOfGroup(state, workload)) return;
  std::vector<WorkloadId> awaited;
  const auto is_awaited = [&](WorkloadId id) {
    const Workload& mate = state.workloads().at(id);
    return id != workload && gang::HoldsQuota(mate) && !mate.status.admitted &&
           (waits_.contains(id) || !state.PassedChecks(id));
  };
  for (const model::WorkloadSlots& set : row.slots) {
    if (!set.gang.valid()) continue;
    std::ranges::copy_if(state.slots().WorkloadsOf(set.gang), std::back_inserter(awaited),
                         is_awaited);
  }
  SortByImportance(state, awaited);
  model::PassHeldUp held_up{.workload = workload, .uid = row.uid, .awaits_mates = true};
  if (!awaited.empty()) held_up.awaited = state.workloads().at(awaited.front()).key;
  plan.held_up.push_back(std::move(held_up));
}

void SecondPass::LetGo(model::State& state, PassDecision decision, model::Plan& plan) {
  if (auto unready = gang::WhyUnready(state, decision.workload))
    decision.gang = std::move(unready->why);
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
    const bool group_moved = (groups_moved_ || nodes_lifted_) && to_start_.contains(id);
    if (to_ask_.contains(id) || group_moved || members_moved_) continue;
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
  hasher.Add(nodes_lifted_ && (!waits_.empty() || !to_start_.empty()));
  hasher.Add(groups_moved_).Add(members_moved_);
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
