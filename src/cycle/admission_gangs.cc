// Of cycle/admissions.h: who waits since its pods are of a group that could not start with them.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cycle/admissions.h"
#include "cycle/second_pass.h"

namespace berth::cycle {

using model::NameId;
using model::QueueBar;
using model::QueueId;
using model::WorkloadId;
using model::WorkloadRefusal;

namespace {

// But for how much is missing, which every end of a member changes.
bool SaysTheSame(std::optional<model::Refusal> a, std::optional<model::Refusal> b) {
  for (std::optional<model::Refusal>* refusal : {&a, &b}) {
    if (*refusal && gang::IsForQuota(**refusal)) (*refusal)->reasons.front().deficit = 0;
  }
  return a == b;
}

// One of a group of its whose last write was refused, and that is not tried before long; invalid:
// none.
model::KeyId RefusedMateOf(const model::State& state, WorkloadId workload) {
  model::KeyId refused;
  for (const model::WorkloadSlots& set : state.workloads().at(workload).slots) {
    if (!set.gang.valid()) continue;
    for (const WorkloadId id : state.slots().WorkloadsOf(set.gang)) {
      const model::Workload& mate = state.workloads().at(id);
      const bool waits = mate.errors > 0 && mate.write == model::WriteStage::kNone &&
                         StageOf(mate.status) == model::WorkloadStage::kPending;
      if (id == workload || !waits) continue;
      if (!refused.valid() || state.KeyOf(mate.key) < state.KeyOf(refused)) refused = mate.key;
    }
  }
  return refused;
}

// Why one of the groups could not start with all that is reserved now.
template <typename Nominations>
std::optional<gang::Unready> WhyAnyUnready(const model::State& state, const Nominations& all) {
  for (const auto& one : all) {
    if (auto unready = gang::WhyUnready(state, one.workload)) return unready;
  }
  return std::nullopt;
}

}  // namespace

// Such as it may not start without.
bool Admissions::NamesGroups(const model::State& state, WorkloadId workload) {
  return !state.faults().unready_gets_quota &&
         std::ranges::any_of(state.workloads().at(workload).slots,
                             [](const model::WorkloadSlots& slots) { return slots.gang.valid(); });
}

std::vector<NameId> Admissions::GangsOf(const model::State& state, WorkloadId workload) {
  std::vector<NameId> gangs;
  if (!state.workloads().used(workload) || !NamesGroups(state, workload)) return gangs;
  for (const model::WorkloadSlots& slots : state.workloads().at(workload).slots) {
    if (slots.gang.valid() && std::ranges::find(gangs, slots.gang) == gangs.end())
      gangs.push_back(slots.gang);
  }
  return gangs;
}

std::optional<gang::Unready> Admissions::WhyUnready(const model::State& state,
                                                    WorkloadId workload) const {
  if (!NamesGroups(state, workload)) return std::nullopt;
  std::optional<gang::Unready> alone = gang::WhyUnready(state, workload);
  if (!alone) return alone;
  const std::vector<WorkloadId> mates = MatesOf(state, workload);
  return mates.empty() ? alone : gang::WhyUnready(state, workload, mates);
}

bool Admissions::NeedsMates(const model::State& state, WorkloadId workload) {
  if (!NamesGroups(state, workload) || !state.workloads().at(workload).job.valid()) return false;
  const std::optional<gang::Unready> alone = gang::WhyUnready(state, workload);
  return alone && alone->why && !alone->why->reasons.empty() &&
         alone->why->reasons.front().kind == model::ReasonKind::kGangIncomplete;
}

// And whose pods name a group of one of those, and so on.
std::vector<WorkloadId> Admissions::MatesOf(const model::State& state, WorkloadId workload) const {
  std::vector<NameId> gangs = GangsOf(state, workload);
  std::set<WorkloadId> found = {workload};
  for (size_t i = 0; i < gangs.size(); ++i) {
    const auto of = of_gang_.find(gangs[i]);
    if (of == of_gang_.end()) continue;
    for (const WorkloadId mate : of->second) {
      if (!WaitsInGang(state, mate) || !state.workloads().at(mate).job.valid()) continue;
      if (!found.insert(mate).second) continue;
      for (const NameId gang : GangsOf(state, mate)) {
        if (std::ranges::find(gangs, gang) == gangs.end()) gangs.push_back(gang);
      }
    }
  }
  found.erase(workload);
  std::vector<WorkloadId> mates(found.begin(), found.end());
  std::ranges::sort(mates, [&](WorkloadId a, WorkloadId b) {
    const auto key = [&](WorkloadId id) {
      const model::Workload& row = state.workloads().at(id);
      return std::tuple(-int64_t{row.priority}, model::QueuedAt(row.status, true),
                        state.UidOf(row.uid));
    };
    return key(a) < key(b);
  });
  return mates;
}

// It waits, or holds quota, since now, or does no more: others could start with it, or can't.
void Admissions::NoteMates(WorkloadId workload) {
  const Entry& entry = entries_[workload.value];
  // It is told of a mate that the server refuses.
  const bool apart = entry.mode == Mode::kApart && entry.refusal->bar == QueueBar::kGang;
  for (const NameId gang : entry.gangs) {
    const auto of = of_gang_.find(gang);
    const bool others = of != of_gang_.end() && of->second.size() > of->second.count(workload);
    if (others || apart) mates_moved_.insert(gang);
  }
}

void Admissions::FollowMates(const model::State& state) {
  for (const NameId gang : std::exchange(mates_moved_, {})) {
    const auto of = of_gang_.find(gang);
    if (of != of_gang_.end() && !NoteGang(state, of->second)) of_gang_.erase(of);
  }
}

// Others of its groups that get quota and places with it, in their order, until these could start:
// tried on a copy, for all of them get it, or none. Who gets nothing is passed over. Where one took
// what several could have had, the other end of the order begins.
Admissions::Mates Admissions::FindMates(const model::State& of, SlotPlacer& placer,
                                        const Kept& kept, const Nomination& n) const {
  const auto attempt = [&](std::span<const WorkloadId> waiting) {
    Mates mates;
    model::State state = of;
    ClassCaches caches(/*bytes_max=*/0);
    ClassPlaces counted;
    place::PreemptionScratch scratch;
    SlotPlacer tried = placer.For(state, caches, counted, scratch);
    tried.Heed(promised_places_);
    Held held(*this, state);
    const auto take = [&](const Nomination& one) {
      model::Reservation reservation = ReservationOfNomination(state, one);
      reservation.slots = one.places.slots;
      reservation.topologies = one.places.topologies;
      if (!state.HasRoomFor(reservation)) return false;
      state.Reserve(one.workload, std::move(reservation));
      mates.all.push_back(one);
      mates.why = WhyAnyUnready(state, mates.all);
      return true;
    };
    take(n);
    for (const WorkloadId mate : waiting) {
      if (mates.all.empty() || !mates.why) break;
      const bool stands = entries_[mate.value].mode == Mode::kInLine;
      Nomination next = stands ? Nominate(state, mate, held) : Nomination{.workload = mate};
      const bool gets = next.verdict == Nomination::Verdict::kFits &&
                        StillFits(state, next, kept) &&
                        FindPlaces(state, tried, {kept, held, {}}, next) &&
                        next.verdict == Nomination::Verdict::kFits && take(next);
      if (!gets && !mates.lacking.valid()) mates.lacking = mate;
    }
    return mates;
  };
  std::vector<WorkloadId> waiting = MatesOf(of, n.workload);
  Mates mates = attempt(waiting);
  if (!mates.why || mates.all.size() < 2) return mates;
  std::ranges::reverse(waiting);
  Mates others = attempt(waiting);
  return others.why ? std::move(mates) : std::move(others);
}

// Whom it fails for although each is looked at as if it were alone. Nothing is copied for that.
Admissions::Mates Admissions::FindAble(model::State& state, Held& held, WorkloadId workload) const {
  Mates mates;
  std::vector<WorkloadId> able;
  for (const WorkloadId mate : MatesOf(state, workload)) {
    const bool stands = entries_[mate.value].mode == Mode::kInLine;
    if (stands && Nominate(state, mate, held).verdict == Nomination::Verdict::kFits) {
      able.push_back(mate);
    } else if (!mates.lacking.valid()) {
      mates.lacking = mate;
    }
  }
  mates.why = gang::WhyUnready(state, workload, able);
  return mates;
}

void Admissions::ServeWithMates(Round& round, const Nomination& n) {
  Mates mates = FindAble(round.state, round.held, n.workload);
  if (!mates.why) mates = FindMates(round.state, round.placer, round.kept, n);
  if (mates.why || mates.all.empty()) {
    WorkloadRefusal refusal{.bar = mates.why ? QueueBar::kGang : QueueBar::kFull};
    if (mates.lacking.valid()) refusal.behind = round.state.workloads().at(mates.lacking).key;
    if (mates.why) refusal.gang = mates.why->why;
    return Refuse(round.state, n.workload, std::move(refusal), Shortfall{}, round.plan);
  }
  PutOffPlaces(round, mates.all);
  for (const Nomination& one : mates.all) {
    const QueueId root = RootOf(round.state, one.workload);
    const bool served = ServeOne(round.state, one, round.plan);
    CHECK(served);
    round.served.insert(root);
    if (!one.places.slots.empty()) round.got.push_back(one.workload);
  }
}

// Those of them that would be admitted with their quota, and whose groups could not start with
// those that are, get quota alone: some of their mates have checks to pass. A second pass has
// places for all of them then.
void Admissions::PutOffPlaces(Round& round, std::span<Nomination> all) const {
  model::State& state = round.state;
  if (state.faults().admitted_without_mates) return;
  std::map<WorkloadId, model::Reservation> admitted;
  for (const Nomination& n : all) {
    if (n.verdict != Nomination::Verdict::kFits || !NamesGroups(state, n.workload)) continue;
    model::Reservation reservation = ReservationOfNomination(state, n);
    if (state.PlacesComeLater(reservation) || !state.PassedChecks(n.workload, reservation))
      continue;
    if (gang::NoneStarted(state, state.workloads().at(n.workload)))
      admitted.emplace(n.workload, std::move(reservation));
  }
  const auto is_admitted = [&](WorkloadId id) {
    const model::Workload& mate = state.workloads().at(id);
    if (admitted.contains(id)) return true;
    if (!gang::HoldsQuota(mate) || !mate.job.valid()) return false;
    if (mate.status.reserved) return mate.status.admitted;
    return state.PassedChecks(id, mate.decided) && !LacksPlaces(mate.slots, mate.decided, true);
  };
  std::set<WorkloadId> start;
  for (const auto& [id, reservation] : admitted) {
    if (!start.contains(id)) start.merge(gang::StartableWith(state, id, is_admitted));
  }
  for (Nomination& n : all) {
    const auto at = admitted.find(n.workload);
    if (at == admitted.end() || start.contains(n.workload)) continue;
    n.places = {.slots = {}, .topologies = round.placer.PlacedLater(n.workload, at->second)};
  }
}

// Whether who lacks nothing but room in the queues of its groups stands in line for its quota all
// the same: others may be evicted for it, whose pods have that room, or those behind it are not to
// pass it.
bool Admissions::MayAskForRoom(const model::State& state, NameId line,
                               const gang::Unready& unready) {
  if (!unready.why || !gang::IsForQuota(*unready.why)) return false;
  const model::Queue* queue = RowOf(state, line);
  return queue != nullptr && (queue->strict_fifo || MayEvictAny(*queue));
}

// Whether it stood elsewhere than its groups have it stand, or is to be looked at.
bool Admissions::FollowGangs(const model::State& state, WorkloadId workload) {
  if (IsAsItsGangs(state, workload)) {
    std::vector<gang::Shortage>& lacks = entries_[workload.value].lacks;
    if (!lacks.empty()) lacks = gang::ShortagesOf(state, workload);
    return false;
  }
  StandAnew(state, workload);
  return true;
}

// What it was told stands until it is looked at.
void Admissions::StandAnew(const model::State& state, WorkloadId workload) {
  std::optional<model::WorkloadRefusal> told;
  if (entries_[workload.value].mode == Mode::kInLine) told = entries_[workload.value].refusal;
  Leave(workload);
  entries_[workload.value] = Entry{};
  Enter(state, workload);
  Entry& entry = entries_[workload.value];
  if (entry.mode == Mode::kInLine && !entry.refusal) entry.refusal = std::move(told);
  if (entry.mode == Mode::kApart && entry.refusal->bar == QueueBar::kGang && entry.refusal->gang)
    entry.refusal->behind = RefusedMateOf(state, workload);
}

bool Admissions::AwaitsRoom(const model::State& state, WorkloadId workload) {
  return IsPromised(state, workload) && NamesGroups(state, workload) &&
         !gang::HasRoomNow(state, workload);
}

void Admissions::NoteGroup(const model::State& state, model::GroupId group) {
  if (of_gang_.empty()) return;
  if (!state.groups().used(group)) {
    for (auto at = of_gang_.begin(); at != of_gang_.end();)
      at = NoteGang(state, at->second) ? std::next(at) : of_gang_.erase(at);
    return;
  }
  const std::string_view key = state.KeyOf(state.groups().at(group).key);
  const auto at = of_gang_.find(state.vocabulary().names.Find(key));
  if (at != of_gang_.end() && !NoteGang(state, at->second)) of_gang_.erase(at);
}

void Admissions::NoteGroupQuota(const model::State& state) {
  const bool others = std::exchange(keeping_seen_, state.keeping_moves()) != state.keeping_moves();
  const std::set<WorkloadId> waiting = short_;
  for (const WorkloadId workload : waiting) {
    const Entry& entry = entries_[workload.value];
    if (others && entry.mode == Mode::kInLine && !entry.lacks.empty()) {
      StandAnew(state, workload);
    } else {
      FollowGangs(state, workload);
    }
  }
  for (const WorkloadId workload : together_) WakeShape(workload);
}

std::vector<WorkloadId> Admissions::MissedByGroups(const model::State& state) const {
  std::vector<WorkloadId> missed;
  for (const WorkloadId workload : short_) {
    const bool is_due = entries_[workload.value].mode == Mode::kApart
                            ? StandsInLine(state, workload, WhyUnready(state, workload))
                            : !IsAsItsGangs(state, workload);
    if (is_due) missed.push_back(workload);
  }
  return missed;
}

// What is left to the queues of groups is asked of who comes next: whether it was not the last.
bool Admissions::SetApart(const model::State& state, const std::vector<WorkloadId>& heads) {
  bool any = false;
  if (of_gang_.empty()) return any;
  for (const WorkloadId workload : heads) {
    if (WaitsInGang(state, workload) && FollowGangs(state, workload)) any = true;
  }
  return any;
}

// Those of them that don't wait any more are dropped; whether any are left.
bool Admissions::NoteGang(const model::State& state, std::set<WorkloadId>& of) {
  std::erase_if(of, [&](WorkloadId workload) { return !WaitsInGang(state, workload); });
  for (const WorkloadId workload : of) {
    // Fewer of them may be enough now.
    if (!FollowGangs(state, workload) && together_.contains(workload)) WakeShape(workload);
  }
  return !of.empty();
}

bool Admissions::WaitsInGang(const model::State& state, WorkloadId workload) const {
  if (!state.workloads().used(workload)) return false;
  const Entry& entry = entries_[workload.value];
  return (entry.mode == Mode::kInLine ||
          (entry.mode == Mode::kApart && entry.refusal->bar == QueueBar::kGang)) &&
         NamesGroups(state, workload);
}

// Whether its groups have it stand in line.
bool Admissions::StandsInLine(const model::State& state, WorkloadId workload,
                              const std::optional<gang::Unready>& unready) {
  const auto local = state.local_queues().FindKey(state.workloads().at(workload).local_queue);
  return !unready || (local.valid() &&
                      MayAskForRoom(state, state.local_queues().at(local).cluster_queue, *unready));
}

// Whether it stands where its groups have it stand, and was told what they lack.
bool Admissions::IsAsItsGangs(const model::State& state, WorkloadId workload) const {
  const Entry& entry = entries_[workload.value];
  const std::optional<gang::Unready> unready = WhyUnready(state, workload);
  if (entry.mode == Mode::kInLine && entry.asked != gang::AskedBy(state, workload)) return false;
  const bool together = NeedsMates(state, workload);
  if (entry.mode == Mode::kInLine && entry.together != together) return false;
  if (!unready) {
    return entry.mode == Mode::kInLine && entry.lacks.empty() &&
           entry.awaits_room == AwaitsRoom(state, workload);
  }
  const bool asks = StandsInLine(state, workload, unready);
  if (entry.mode == Mode::kInLine) {
    return asks && !entry.lacks.empty() &&
           gang::IsNoneLess(entry.lacks, gang::ShortagesOf(state, workload));
  }
  const bool of_mate = !unready->why || entry.refusal->behind == RefusedMateOf(state, workload);
  return !asks && of_mate && SaysTheSame(entry.refusal->gang, unready->why);
}

}  // namespace berth::cycle
