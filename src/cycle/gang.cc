#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cycle/engine.h"
#include "cycle/slots.h"
#include "cycle/wake.h"
#include "cycle/why.h"

// Groups: when their members wait for places together, and how they get them
// (docs/design/0010-gangs.md).
namespace berth::cycle {

using model::ClaimId;
using model::GroupId;
using model::MemberKind;
using model::NodeId;
using model::Plan;
using model::PodId;
using model::ReasonKind;

namespace {

// How long a gang that never ran may hold nodes for fewer members than it needs: error backoffs
// end at ten seconds, and a controller makes up for a member that went.
constexpr Duration kPartlyMax = Duration::Seconds(60);

model::Amount PlacesToCome(const model::State& state, const place::Evaluator& evaluator,
                           const gang::Alike& pod, NodeId n, int64_t below) {
  const place::Preemptor member{.owner = {}, .class_id = pod.class_id, .pin = pod.pin};
  return cycle::PlacesToCome(state, evaluator, member, n, below);
}

}  // namespace

gang::EmptyPlaces Engine::empty_places() const {
  return [this](const gang::Alike& pod, NodeId n) {
    return PlacesToCome(state_, options_.evaluator, pod, n, kAllEmpty);
  };
}

bool Engine::StandsAlone(PodId pod) const {
  if (!state_.pods().at(pod).group.valid()) return true;
  const GroupId g = state_.GroupOf(pod);
  return g.valid() && g.value < group_modes_.size() && group_modes_[g.value] == GroupMode::kLoose;
}

// It waits, and gets a node with the others only.
bool Engine::WaitsInGang(PodId pod) const {
  return state_.pods().used(pod) && !StandsAlone(pod) &&
         StageOf(state_.pods().at(pod)) == model::PodStage::kPending;
}

// Where a group stands is a function of its row and members; called whenever either changed.
void Engine::SyncGroup(GroupId g) {
  groups_for_quota_.erase(g);
  admissions_.NoteGroup(state_, g);
  second_pass_.NoteGroup(state_, g);
  if (g.value >= group_modes_.size()) group_modes_.resize(state_.groups().size());
  if (!state_.groups().used(g)) {
    group_modes_[g.value] = GroupMode::kNone;
    partly_.erase(g);
    to_let_in_.erase(g);
    return groups_.Remove(g);
  }
  const gang::Need need = gang::NeedOf(state_, g);
  const GroupMode mode = !gang::IsLetIn(state_, g) ? GroupMode::kBarred
                         : need.needed == 0        ? GroupMode::kLoose
                         : gang::Lacks(need)       ? GroupMode::kShort
                                                   : GroupMode::kWaits;
  const GroupMode before = std::exchange(group_modes_[g.value], mode);
  if (!gang::IsPartly(state_, g)) {
    partly_.erase(g);
  } else if (!partly_.contains(g) && !gang::RanBefore(state_, g)) {
    partly_.try_emplace(g);
  }
  if ((before == GroupMode::kLoose) != (mode == GroupMode::kLoose)) SyncMembers(g);
  const bool stands = mode == GroupMode::kWaits || mode == GroupMode::kLoose;
  if ((before == GroupMode::kWaits || mode == GroupMode::kBarred) && !stands)
    groups_to_judge_.push_back(g);
  to_let_in_.erase(g);
  // Whose bindings were refused is tried again with the others: when their error backoffs are over.
  if (mode == GroupMode::kWaits && AwaitsVerdictOfAny(g)) return groups_.Remove(g);
  if (mode == GroupMode::kWaits && gang::WaitingMembers(state_, g).size() >= need.needed) {
    // Its queue may be another, or hold less than it was promised.
    if (groups_.is_blocked(g) && gang::PromisedOf(state_, g) > 0) groups_to_judge_.push_back(g);
    return groups_.Put(state_, g, gang::PriorityOf(state_, g));
  }
  groups_.Remove(g);
  if (mode == GroupMode::kBarred && state_.BarOf(g) == model::GroupBar::kNone) {
    quota_untold_ = true;
    to_let_in_[g] = std::nullopt;
  } else if (mode != GroupMode::kLoose) {
    groups_to_tell_.push_back(g);
  }
}

void Engine::SyncMembers(GroupId g) {
  const model::GroupTable& groups = state_.groups();
  groups.ForMembers(groups.at(g).key, [&](PodId pod) { Sync(pod); });
}

void Engine::SyncGroupOf(PodId pod) {
  if (const GroupId g = state_.GroupOf(pod); g.valid()) SyncGroup(g);
}

// Its members that are that to it, in the order of pods.
std::vector<PodId> Engine::MembersOf(GroupId g, MemberKind kind) const {
  const model::GroupTable& groups = state_.groups();
  std::vector<PodId> members;
  groups.ForMembers(groups.at(g).key, [&](PodId pod) {
    if (groups.KindOf(pod) == kind) members.push_back(pod);
  });
  std::ranges::sort(members,
                    [&](PodId a, PodId b) { return WaitingLines::PodBefore(state_, a, b); });
  return members;
}

// Who waits and may be tried, in the order of pods.
std::vector<PodId> Engine::MembersToPlace(GroupId g) const {
  std::vector<PodId> members = MembersOf(g, MemberKind::kWaiting);
  std::erase_if(members, [&](PodId pod) { return state_.pods().at(pod).not_before != Instant{}; });
  return members;
}

// Its place among those there are: `anywhere`, or where it was promised one.
bool Engine::PlaceOne(PodId pod, bool anywhere, Trial& trial) {
  if (!FitsQuota(pod, trial)) return false;
  Choice choice = ChooseAsPromised(pod);
  if (choice.node.valid() && MustAskAbout(pod, choice.node)) choice = {};
  if (!choice.node.valid() && anywhere) choice = Choose(pod);
  if (!choice.node.valid()) return false;
  const model::Viewer viewer = ViewerOf(pod);
  const model::DeviceSlots devices = options_.evaluator.ChooseDevices(
      state_, state_.pods().at(pod).class_id, choice.node, &viewer, choice.draw);
  GiveVolumes(pod, choice.node);
  trial.claims.Place({.pod = pod, .node = choice.node, .devices = devices});
  trial.placed.push_back({.pod = pod, .choice = choice, .devices = devices});
  return true;
}

// Its place among those to come: `anywhere`, or what it is promised. Who may not evict waits for
// what leaves anyway.
bool Engine::ReserveOne(PodId pod, bool anywhere, Trial& trial) {
  if (!FitsQuota(pod, trial)) return false;
  if (state_.PromiseOf(pod).valid()) {
    trial.kept.push_back(pod);
    return true;
  }
  if (!anywhere) return false;
  const bool evicts = MayEvict(pod);
  place::Preemption found =
      evicts ? place::FindPreemption(state_, options_.evaluator, pod, preemption_scratch_)
             : place::FindRoomToCome(state_, options_.evaluator, place::PreemptorOf(state_, pod),
                                     preemption_scratch_);
  if (!found.node.valid()) {
    // Of evictions nothing is told where nobody evicts.
    trial.futile = Preempts(pod) ? std::move(found.refusal) : model::PreemptionRefusal{};
    if (!evicts && Preempts(pod)) trial.futile.bar = model::PreemptionBar::kPolicy;
    return false;
  }
  GiveVolumes(pod, found.node);
  trial.claims.Reserve({.pod = pod, .node = found.node, .devices = found.devices}, found.victims);
  trial.reserved.push_back({.pod = pod, .found = std::move(found)});
  return true;
}

// Finds places for `count` of the members, those of a role if one is given, and takes them out of
// the list. Why one found none, when there are too few.
std::optional<model::Refusal> Engine::PlaceSome(std::vector<PodId>& members, model::NameId role,
                                                uint32_t count, Trial& trial) {
  std::optional<model::Refusal> why;
  std::vector<gang::Alike> refused;
  for (size_t i = 0; i < members.size() && count > 0;) {
    const PodId pod = members[i];
    const model::Pod& row = state_.pods().at(pod);
    ++i;
    if (role.valid() && row.role != role) continue;
    const bool anywhere = std::ranges::find(refused, gang::AlikeOf(row)) == refused.end();
    if (trial.to_come ? ReserveOne(pod, anywhere, trial) : PlaceOne(pod, anywhere, trial)) {
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(--i));
      --count;
      continue;
    }
    if (anywhere) refused.push_back(gang::AlikeOf(row));
    if (!why && trial.lacks) {
      why = gang::RefusalOf(state_, state_.GroupOf(pod), *trial.lacks);
    } else if (!why && !trial.to_come) {
      why = WhyNot(state_, options_.evaluator, pod).refusal;
    }
  }
  if (count == 0) return std::nullopt;
  return why ? std::move(why) : model::Refusal{};
}

std::optional<model::Refusal> Engine::PlaceGang(GroupId g, const gang::Need& need, Trial& trial) {
  std::vector<PodId> members = MembersToPlace(g);
  // What one of them is promised is no room for the others.
  std::ranges::stable_partition(members, [&](PodId pod) { return state_.PromiseOf(pod).valid(); });
  uint32_t rest = need.needed;
  for (const gang::RoleNeed& role : need.roles) {
    if (auto why = PlaceSome(members, role.role, role.needed, trial)) return why;
    rest -= role.needed;
  }
  return PlaceSome(members, {}, rest, trial);
}

// Who goes first of a group and a line of pods.
bool Engine::GroupIsNext(GroupId g, LineId id) const {
  if (!g.valid() || !id.valid()) return g.valid();
  const Line& line = lines_.line(id);
  const bool line_backs_off = line.mode == Line::Mode::kBackingOff;
  if (groups_.backs_off(g) != line_backs_off) return line_backs_off;
  return groups_.Before(state_, g, line.head);
}

// All that are needed get their places in one commit, or none does, and why: what could never be
// goes before what others have now.
std::optional<model::Refusal> Engine::TryGang(GroupId g, Plan& plan) {
  const gang::Need need = gang::NeedOf(state_, g);
  std::optional<model::Refusal> why;
  uint32_t found = 0;
  {
    Trial trial{.claims = model::State::Trial(state_)};
    why = PlaceGang(g, need, trial);
    found = static_cast<uint32_t>(trial.placed.size());
    if (!why || (options_.faults.keep_half_gangs && found > 0)) {
      trial.claims.Keep();
      for (const Placed& placed : trial.placed)
        Record(placed.pod, placed.choice, placed.devices, plan);
      return std::nullopt;
    }
  }
  if (const auto never = state_.NeverFor(g, gang::LeastOf(state_, g, need)))
    why = gang::RefusalOf(state_, g, *never);
  why->gang = model::GangRefusal{.group = state_.groups().at(g).key,
                                 .needed = need.needed,
                                 .found = found,
                                 .released = gang::ReleasedOf(state_, g),
                                 .queue = state_.groups().at(g).queue};
  return why;
}

void Engine::ServeGroup(GroupId g, Instant now, Plan& plan) {
  plan.groups.push_back(g);
  groups_for_quota_.erase(g);
  if (AskMembers(g, /*all=*/false, now, plan)) return groups_.Remove(g);
  std::optional<model::Refusal> why;
  std::vector<PodId> taken_back;
  while (true) {
    why = TryGang(g, plan);
    if (!why) {
      state_.SetFutile(g, false);
      return SyncGroup(g);
    }
    if (AskMembers(g, /*all=*/true, now, plan)) {
      groups_.Remove(g);
      return DecideAgain(taken_back, plan);
    }
    const std::vector<PodId> stood_in_its_way = ReserveGang(g, *why, plan);
    if (stood_in_its_way.empty()) break;
    taken_back.insert(taken_back.end(), stood_in_its_way.begin(), stood_in_its_way.end());
  }
  if (!why->gang->promised) DecideAgain(taken_back, plan);
  state_.NoteAttempt(g, now);
  if (!why->gang->promised) why->gang->most = gang::MostOf(state_, g, empty_places());
  const bool never = RefusedForever(*why);
  state_.SetFutile(g, never || gang::IsFutile(state_, g, empty_places()));
  TellMembers(g, *why, plan);
  NoteForQuota(g, *why);
  groups_.Block(g, *std::move(why));
  SetRechecks(g, now);
}

// ---- Reserving -------------------------------------------------------------------------------

bool Engine::Preempts(PodId pod) const {
  return options_.preemption && state_.RulesOf(state_.pods().at(pod).class_id).preempts;
}

bool Engine::MayEvict(PodId pod) const { return Preempts(pod) && state_.pods().at(pod).preempts; }

// Places for all that it needs, once all is gone that leaves or has to, as if nothing were promised
// to those pods: found if no decision of this plan and no other promise to a less important pod
// stands in the way.
Engine::Ahead Engine::LookAhead(GroupId g, std::span<const PodId> outranked, model::Refusal& why,
                                const Plan& plan) {
  Trial trial{.claims = model::State::Trial(state_), .to_come = true};
  for (const PodId other : outranked) trial.claims.WithoutPromise(other);
  if (PlaceGang(g, gang::NeedOf(state_, g), trial)) {
    // None was refused for nodes where all lacked quota.
    const bool told =
        trial.futile.bar != model::PreemptionBar::kNone || trial.futile.nodes_count > 0;
    if (options_.preemption && told) why.preemption = std::move(trial.futile);
    return {};
  }
  if (!trial.claims.Fits()) return {.outranks = LeastHolder(trial)};
  if (!CanAllBeKept(trial)) return {};
  std::vector<PodId> victims;
  for (const Reserved& reserved : trial.reserved)
    victims.insert(victims.end(), reserved.found.victims.begin(), reserved.found.victims.end());
  if (!options_.faults.bind_victims && BindsAny(victims, plan)) return {.unbinds = victims};
  return {.found = true, .reserved = std::move(trial.reserved), .kept = std::move(trial.kept)};
}

// Whether nobody more important took room that a less important member counts on, which heeds a
// promise to another that the first need not heed: it would lose it again.
bool Engine::CanAllBeKept(const Trial& trial) const {
  const auto priority = [&](const Reserved& one) { return state_.pods().at(one.pod).priority; };
  if (std::ranges::adjacent_find(trial.reserved, std::not_equal_to(), priority) ==
      trial.reserved.end())
    return true;
  return std::ranges::all_of(trial.reserved,
                             [&](const Reserved& one) { return CanBeKept(one.pod); });
}

// Whether a node of which a promise is in the way goes only to members that its holder is not less
// important than, because who was to have it goes elsewhere without that promise. They may not have
// it, and the holder would take it from them again.
bool Engine::TakesFromMoreImportant(std::span<const Reserved> reserved,
                                    std::span<const PodId> outranked) const {
  return std::ranges::any_of(outranked, [&](PodId other) {
    bool taken = false;
    for (const Reserved& one : reserved) {
      if (one.found.node != state_.PromisedNodeOf(other)) continue;
      if (state_.pods().at(one.pod).priority > state_.pods().at(other).priority) return false;
      taken = true;
    }
    return taken;
  });
}

// What was found becomes the gang's own.
bool Engine::KeepAhead(GroupId g, const Ahead& ahead, std::span<const PodId> outranked,
                       model::Refusal& why, Plan& plan) {
  std::vector<NodeId> nodes;
  for (const Reserved& one : ahead.reserved) nodes.push_back(one.found.node);
  const auto keep = [&] {
    model::State::Trial claims(state_);
    for (const Reserved& one : ahead.reserved) {
      claims.Reserve({.pod = one.pod, .node = one.found.node, .devices = one.found.devices},
                     one.found.victims);
    }
    const bool fits = claims.Fits();
    if (fits) claims.Keep();
    return fits;
  };
  if (!Outrank(outranked, nodes, keep, plan)) return false;
  EndSpare(g, ahead, plan);
  for (const Reserved& one : ahead.reserved) NotePreemption(one.pod, one.found, plan);
  why.preemption = WhoLeavesFor(g);
  why.gang->promised = true;
  return true;
}

// What the gang waits for becomes its own, all of it or nothing. Those pods that this plan bound in
// its way and that were taken back: where there are any, there may be room now.
std::vector<PodId> Engine::ReserveGang(GroupId g, model::Refusal& why, Plan& plan) {
  std::vector<PodId> outranked;
  while (true) {
    const Ahead ahead = LookAhead(g, outranked, why, plan);
    if (!ahead.unbinds.empty()) return TakeBackBinds(ahead.unbinds, plan);
    if (ahead.found) {
      if (TakesFromMoreImportant(ahead.reserved, outranked)) return {};
      if (KeepAhead(g, ahead, std::exchange(outranked, {}), why, plan)) return {};
    } else if (ahead.outranks.valid()) {
      outranked.push_back(ahead.outranks);
    } else if (KeepsPlaces(g) || !EndPlaces(g, plan)) {
      // What some are promised may be where the others have to go. Two gangs must not wait for each
      // other with half of what they need.
      return {};
    } else {
      outranked.clear();
    }
  }
}

// Those that were taken back for a gang that found no places all the same: else it would be so
// again in each cycle.
void Engine::DecideAgain(std::span<const PodId> pods, Plan& plan) {
  for (const PodId pod : pods) {
    if (const GroupId g = state_.GroupOf(pod); g.valid() && groups_.contains(g)) {
      if (!TryGang(g, plan)) SyncGroup(g);
      continue;
    }
    if (!lines_.contains(pod) || state_.ShortFor(pod)) continue;
    const Choice choice = state_.PromiseOf(pod).valid() ? ChooseAsPromised(pod) : Choose(pod);
    if (choice.node.valid() && !MustAskAbout(pod, choice.node)) Decide(pod, choice, plan);
  }
}

// On the nodes that the trial takes, who else is promised the least important room.
PodId Engine::LeastHolder(const Trial& trial) const {
  std::vector<PodId> members = trial.kept;
  for (const Reserved& reserved : trial.reserved) members.push_back(reserved.pod);
  for (const Reserved& reserved : trial.reserved) {
    const PodId least = LeastHolder(reserved.found.node, reserved.pod, members);
    if (least.valid()) return least;
  }
  return {};
}

// What is left of it while its members wait for others to leave.
std::optional<model::PreemptionRefusal> Engine::WhoLeavesFor(GroupId g) const {
  bool any = false;
  bool began = false;
  for (const PodId pod : MembersOf(g, MemberKind::kWaiting)) {
    for (const PodId victim : state_.VictimsOf(pod)) {
      any = true;
      began = began || state_.pods().at(victim).terminating;
    }
  }
  if (!any) return std::nullopt;
  return model::PreemptionRefusal{.bar = began ? model::PreemptionBar::kVictimsTerminating
                                               : model::PreemptionBar::kVictimsToLeave};
}

// Whether there were any.
bool Engine::EndPlaces(GroupId g, Plan& plan) {
  bool any = false;
  for (const PodId pod : MembersOf(g, MemberKind::kWaiting)) {
    // Its workload has the others' places, too.
    if (state_.pods().at(pod).slot.valid()) continue;
    // With a promise of ours ended, what its object names is promised to it again.
    for (; state_.PromiseOf(pod).valid(); any = true)
      RevokePromise(pod, model::ReasonKind::kPromiseToGroup, plan);
  }
  return any;
}

// It needs no more than was found.
void Engine::EndSpare(GroupId g, const Ahead& ahead, Plan& plan) {
  for (const PodId pod : MembersOf(g, MemberKind::kWaiting)) {
    const bool used =
        std::ranges::find(ahead.kept, pod) != ahead.kept.end() ||
        std::ranges::find(ahead.reserved, pod, &Reserved::pod) != ahead.reserved.end();
    if (state_.PromiseOf(pod).valid() && !used && !state_.pods().at(pod).slot.valid())
      RevokePromise(pod, model::ReasonKind::kPromiseToGroup, plan);
  }
}

// Who holds nodes, or may, keeps the places of the others for its time.
bool Engine::KeepsPlaces(GroupId g) const {
  const model::MemberCounts counts = state_.groups().CountsOf(state_.groups().at(g).key);
  return partly_.contains(g) || counts[MemberKind::kDecided] > 0;
}

// The pod, a member, is promised a place, or was: its gang may have only a part now.
void Engine::NotePromiseIn(PodId pod) {
  if (state_.pods().at(pod).lost.why == ReasonKind::kNone && !state_.PromiseOf(pod).valid()) return;
  if (const GroupId g = state_.GroupOf(pod); g.valid()) groups_to_judge_.push_back(g);
}

// What its members are promised is more than its queue can hold: it would never start, and nobody
// else would have that.
bool Engine::IsOverPromised(GroupId g) const {
  return std::ranges::any_of(MembersOf(g, MemberKind::kWaiting), [&](PodId pod) {
    return state_.PromiseOf(pod).valid() && state_.ShortFor(pod, /*to_come=*/true).has_value();
  });
}

// A gang that waits is promised all that it needs or nothing. Who is to be tried decides anew.
// Where a queue can't hold all that is promised the last give it back.
void Engine::JudgeGangs(Plan& plan) {
  std::vector<GroupId> groups = std::exchange(groups_to_judge_, {});
  std::erase_if(groups, [&](GroupId g) { return !state_.groups().used(g); });
  SortGroups(groups);
  const auto repeated = std::ranges::unique(groups);
  groups.erase(repeated.begin(), repeated.end());
  if (options_.faults.drop_gang_promises) {
    for (const GroupId g : groups_.blocked()) EndPlaces(g, plan);
  }
  for (const GroupId g : std::views::reverse(groups)) {
    if (group_modes_[g.value] == GroupMode::kLoose) continue;
    const bool blocked = groups_.is_blocked(g);
    const bool over = IsOverPromised(g);
    if ((groups_.contains(g) || AwaitsVerdictOfAny(g)) && !blocked && !over) continue;
    const bool barred = group_modes_[g.value] == GroupMode::kBarred;
    if (KeepsPlaces(g)) continue;
    const bool has_all = gang::PromisedOf(state_, g) >= gang::NeedOf(state_, g).needed;
    if (!barred && has_all && !over) continue;
    EndPlaces(g, plan);
    if (blocked) groups_.Wake(state_, g, gang::PriorityOf(state_, g));
  }
}

// ---- Partial failure -------------------------------------------------------------------------

// When it gives back what it holds. What becomes of bindings on their way is waited for.
Instant Engine::DeadlineOf(GroupId g, Instant since) const {
  const model::MemberCounts counts = state_.groups().CountsOf(state_.groups().at(g).key);
  if (counts[MemberKind::kDecided] > 0) return Instant::Never();
  return since == Instant{} ? since : since + kPartlyMax;
}

void Engine::ReleasePartly(Instant now, Plan& plan) {
  std::vector<GroupId> due;
  for (auto& [g, since] : partly_) {
    if (since == Instant{}) since = now;
    if (DeadlineOf(g, since) <= now) due.push_back(g);
  }
  for (const GroupId g : due) {
    if (gang::RanBefore(state_, g)) {
      partly_.erase(g);
    } else {
      ReleaseGang(g, now, plan);
    }
  }
}

// All of it is given back: who is bound is to be deleted, and nothing is promised to the others.
void Engine::ReleaseGang(GroupId g, Instant now, Plan& plan) {
  EndPlaces(g, plan);
  for (const PodId pod : MembersOf(g, MemberKind::kBound)) {
    const model::Pod& row = state_.pods().at(pod);
    if (!MayBeEvicted(row) || row.evicted_for.valid()) continue;
    state_.Release(pod);
    plan.released.push_back(pod);
  }
  plan.groups.push_back(g);
  state_.NoteAttempt(g, now);
  SyncGroup(g);
  // Whose eviction was refused stays for now.
  if (const auto left = partly_.find(g); left != partly_.end()) left->second = now;
}

void Engine::TellMembers(GroupId g, const model::Refusal& refusal, Plan& plan) {
  plan.refusals.push_back(refusal);
  for (const PodId pod : MembersToPlace(g)) TellRefused(pod, plan);
}

// Members of groups that are not there, or lack members.
void Engine::TellIncomplete(Plan& plan) {
  std::vector<GroupId> groups = std::exchange(groups_to_tell_, {});
  std::ranges::sort(groups);
  const auto repeated = std::ranges::unique(groups);
  groups.erase(repeated.begin(), repeated.end());
  for (const GroupId g : groups) {
    if (!state_.groups().used(g)) continue;
    // Those that are tried are told what comes of it.
    if (group_modes_[g.value] == GroupMode::kLoose || groups_.contains(g)) continue;
    plan.groups.push_back(g);
    if (const auto why = WhyGroupWaits(g)) TellMembers(g, *why, plan);
  }
  for (const PodId pod : std::exchange(orphans_, {})) {
    if (!state_.pods().used(pod) || !IsOrphan(pod)) continue;
    // What it was promised was its group's.
    if (state_.PromiseOf(pod).valid()) RevokePromise(pod, ReasonKind::kPromiseToGroup, plan);
    plan.refusals.push_back(RefusalOfOrphan(pod));
    TellRefused(pod, plan);
  }
}

bool Engine::IsOrphan(PodId pod) const {
  const model::Pod& row = state_.pods().at(pod);
  return StageOf(row) == model::PodStage::kPending && row.group.valid() &&
         !state_.GroupOf(pod).valid();
}

model::Refusal Engine::RefusalOfOrphan(PodId pod) const {
  const model::Pod& row = state_.pods().at(pod);
  return {.class_id = row.class_id,
          .reasons = {{.kind = model::ReasonKind::kGroupMissing}},
          .gang = model::GangRefusal{.group = row.group}};
}

model::Refusal Engine::RefusalOfShort(GroupId g) const {
  const gang::RoleNeed lacks = gang::Lacks(gang::NeedOf(state_, g)).value_or(gang::RoleNeed{});
  return {.reasons = {{.kind = model::ReasonKind::kGangIncomplete, .detail = lacks.role}},
          .gang = model::GangRefusal{.group = state_.groups().at(g).key,
                                     .needed = lacks.needed,
                                     .found = lacks.waiting,
                                     .released = gang::ReleasedOf(state_, g)}};
}

// Of a gang that waits for members whose bindings are tried again. That they are on their way again
// is no other answer: so the same is told until they are bound, or refused a place.
std::optional<model::Refusal> Engine::RefusalOfFailing(GroupId g) const {
  const gang::Failing failing = gang::FailingOf(state_, g);
  if (failing.all() == 0) return std::nullopt;
  const model::Group& row = state_.groups().at(g);
  const model::GroupPhase phase = PhaseOf(row, state_.groups().CountsOf(row.key));
  if (phase == model::GroupPhase::kRunning || phase == model::GroupPhase::kCompleted)
    return std::nullopt;
  return model::Refusal{
      .gang = model::GangRefusal{.group = row.key,
                                 .needed = gang::NeedOf(state_, g).needed + failing.decided,
                                 .failing = failing.all()}};
}

std::optional<model::Refusal> Engine::WhyGroupWaits(GroupId g) const {
  if (!state_.groups().used(g) || g.value >= group_modes_.size()) return std::nullopt;
  if (groups_.is_blocked(g)) return groups_.refusal(g);
  if (group_modes_[g.value] == GroupMode::kShort) return RefusalOfShort(g);
  if (group_modes_[g.value] != GroupMode::kBarred) return RefusalOfFailing(g);
  // Who started goes on in a queue that lets nobody in.
  const model::MemberCounts counts = state_.groups().CountsOf(state_.groups().at(g).key);
  if (counts[MemberKind::kWaiting] == 0 && counts.ready() > 0) return std::nullopt;
  return gang::RefusalOfBarred(state_, g);
}

// ---- Waking ----------------------------------------------------------------------------------

// Whether the nodes could hold as many of its members as it needs, each kind of them by itself, at
// once or, where it is promised nothing, when others leave: no if they could not be placed. For
// equal members, which it says, yes only if they could be.
bool Engine::CouldHold(GroupId g, Places& known, bool& equal) const {
  const auto kinds = gang::KindsOf(state_, gang::WaitingMembers(state_, g));
  equal = kinds.size() <= 1;
  const auto needed = static_cast<model::Amount>(gang::NeedOf(state_, g).needed);
  const bool reserved = gang::PromisedOf(state_, g) >= gang::NeedOf(state_, g).needed;
  model::Amount could = 0;
  for (const auto& [key, count] : kinds) {
    const bool evicts = options_.preemption && state_.RulesOf(key.class_id).preempts;
    const int64_t below = reserved ? kNobodyLeaves
                          : evicts ? key.priority
                                   : std::numeric_limits<int64_t>::min();
    const auto [at, fresh] =
        known.try_emplace({key.class_id.value, key.pin.kind, key.pin.node.value,
                           key.pin.volumes.value, key.pin.asker.value, below});
    for (uint32_t row = 0; fresh && row < state_.nodes().size(); ++row) {
      const NodeId n{row};
      if (state_.nodes().used(n) && state_.nodes().present(n))
        at->second += below == kNobodyLeaves
                          ? PlacesOn(state_, options_.evaluator, key.class_id, key.pin, n)
                          : PlacesToCome(state_, options_.evaluator, key, n, below);
    }
    could += std::min(count, at->second);
  }
  return could >= needed;
}

// `kinds`: of the touches since the last time.
void Engine::WakeGroups(model::TouchKinds kinds) {
  if (kinds == 0 || groups_.blocked().empty()) return;
  const bool lifts = (kinds & model::kTouchAdded) != 0 || LiftedBy(kinds, options_.faults) != 0;
  Places known;
  const std::vector<GroupId> blocked(groups_.blocked().begin(), groups_.blocked().end());
  for (const GroupId g : blocked) {
    bool equal = true;
    if (LacksQuota(g) || !CouldHold(g, known, equal)) continue;
    // Unequal ones are placed one after the other, in an order that scores decide.
    if ((!lifts && equal) || options_.faults.forget_woken_gangs) continue;
    groups_.Wake(state_, g, gang::PriorityOf(state_, g));
    ++counters_.wakes;
  }
}

// Whether it can be placed, or be promised what it is not.
bool Engine::CouldDo(GroupId g) {
  const gang::Need need = gang::NeedOf(state_, g);
  {
    Trial trial{.claims = model::State::Trial(state_)};
    if (!PlaceGang(g, need, trial)) return true;
  }
  if (gang::PromisedOf(state_, g) >= need.needed) return false;
  Trial ahead{.claims = model::State::Trial(state_), .to_come = true};
  return !PlaceGang(g, need, ahead) && ahead.claims.Fits();
}

// What was tried is undone, but nodes are touched: so all are tried on one copy. As when they are
// woken, those are left out whose queue has nothing for any member.
std::vector<GroupId> Engine::MissedGroups() const {
  std::vector<GroupId> missed;
  Places known;
  std::optional<Engine> copy;
  for (const GroupId g : groups_.blocked()) {
    bool equal = true;
    if (LacksQuota(g) || !CouldHold(g, known, equal) || !equal) continue;
    if (!copy) copy.emplace(*this);
    if (copy->CouldDo(g)) missed.push_back(g);
  }
  return missed;
}

}  // namespace berth::cycle
