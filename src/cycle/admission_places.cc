// Of cycle/admissions.h: places on nodes for those who find quota.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "cycle/admissions.h"
#include "cycle/wanted_places.h"
#include "quota/reach.h"

namespace berth::cycle {

using model::NameId;
using model::QueueId;
using model::QueueKind;
using model::WorkloadId;
using model::WorkloadRefusal;

namespace {

// Whether what the queue has of the flavor could come of another that is not barred.
bool HasOtherFlavor(const model::State& state, NameId cluster_queue, NameId flavor,
                    std::span<const NameId> barred) {
  const QueueId queue = state.queues().Find(QueueKind::kClusterQueue, cluster_queue);
  if (!queue.valid()) return false;
  const model::ResourceGroupsId groups = state.queues().at(queue).groups;
  const auto& table = state.vocabulary().resource_groups;
  for (uint32_t i = 0; i < table.count(groups); ++i) {
    const model::ResourceGroup group = table.at(groups, i);
    if (std::ranges::find(group.flavors, flavor) == group.flavors.end()) continue;
    return std::ranges::any_of(group.flavors, [&](NameId other) {
      return other != flavor && std::ranges::find(barred, other) == barred.end();
    });
  }
  return false;
}

}  // namespace

bool Admissions::IsPromised(const model::State& state, WorkloadId workload) {
  return state.workloads().at(workload).promised != model::Reservation{};
}

// Places for all its pods, now or once others are gone; fewer pods where that is allowed. If there
// are none, `n.refusal` says why.
bool Admissions::FindPlaces(model::State& state, SlotPlacer& placer, Beside beside,
                            Nomination& n) const {
  std::vector<Nomination> asked;  // By whose flavors nodes were looked for.
  const model::WorkloadRefusal told = n.refusal;
  const bool found = n.verdict == Nomination::Verdict::kFits
                         ? FindPlacesNow(state, placer, beside, n, asked)
                         : HelpsPlaces(state, placer, n);
  if (found || n.outrun) return found;
  asked.push_back(n);
  asked.back().refusal = told;
  return FindPlacesOtherwise(state, placer, beside, n) ||
         FindPlacesToCome(state, placer, asked, n) || FindFewerPlaces(state, placer, asked, n);
}

// On nodes of the flavors that it gets, or of others of which there is quota, too. `asked`: gets
// what was tried before the last.
bool Admissions::FindPlacesNow(model::State& state, SlotPlacer& placer, Beside beside,
                               Nomination& n, std::vector<Nomination>& asked) const {
  Without without(state.workloads().at(n.workload).slots.size());
  std::vector<model::PlacesRefusal> tried;
  std::vector<model::FlavorReason> reasons;
  const bool promised = IsPromised(state, n.workload);
  while (true) {
    const model::Reservation reservation = ReservationOfNomination(state, n);
    if (state.PlacesComeLater(reservation)) {
      n.places.topologies = placer.PlacedLater(n.workload, reservation);
      return true;
    }
    SlotPlacer::Places places = placer.Place(n.workload, reservation);
    if (places) {
      n.places = *std::move(places);
      return true;
    }
    const uint32_t pod_set = places.error().pod_set;
    tried.push_back(std::move(places.error()));
    bool others = false;
    for (const model::QuotaCharge& charge : reservation.charges) {
      if (charge.pod_set != pod_set) continue;
      const model::FlavorReason reason{.kind = model::FlavorReasonKind::kNoNodes,
                                       .flavor = charge.flavor};
      if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
      // One that nothing could stand in for keeps what is of other resources from no nodes; what
      // was promised is left when there is nothing else.
      std::vector<NameId>& barred = without[pod_set];
      if (!promised && !HasOtherFlavor(state, reservation.cluster_queue, charge.flavor, barred))
        continue;
      barred.push_back(charge.flavor);
      others = true;
    }
    n.refusal = WorkloadRefusal{.unfit = model::Unfit::kWaiting,
                                .pod_set = tried.front().pod_set,
                                .reasons = reasons,
                                .places = tried};
    // What was promised was decided: its flavors stay. But where nobody leaves for it, as when its
    // write came to nothing, its quota would be kept for nodes that may never come.
    const model::Workload& row = state.workloads().at(n.workload);
    n.refusal.promised = promised && (!row.promised.slots.empty() || !row.victims.empty());
    if (n.as_promised || !others) return false;
    // What it found others took: it comes to the flavors behind when it is its turn again.
    n.outrun = !promised && asked.empty() && !beside.served.empty() &&
               placer.Place(n.workload, reservation, beside.served).has_value();
    if (n.outrun) return false;
    Nomination next = Nominate(state, n.workload, beside.held, without);
    if (next.verdict != Nomination::Verdict::kFits || !StillFits(state, next, beside.kept))
      return false;
    asked.push_back(std::exchange(n, std::move(next)));
    if (!n.as_promised) continue;
    // It is told of what it was promised alone.
    for (std::vector<NameId>& barred : without) barred.clear();
    tried.clear();
    reasons.clear();
  }
}

// Who finds no nodes may take the room of others, as its pods could: for all of them, or none. What
// it gets is promised to it, with its quota.
bool Admissions::FindPlacesToCome(model::State& state, SlotPlacer& placer,
                                  std::span<const Nomination> asked, Nomination& n) const {
  if (n.refusal.places.empty() || n.refusal.places.front().topology) return false;
  if (!placer.MayEvict(n.workload) || entries_[n.workload.value].together) return false;
  if (!state.workloads().at(n.workload).promised.slots.empty()) {
    // It waits for that, as it was told.
    const std::optional<WorkloadRefusal>& told = entries_[n.workload.value].refusal;
    if (told && told->promised && !told->places.empty()) n.refusal = *told;
    n.refusal.promised = true;
    return false;
  }
  for (const Nomination& each : asked) {
    std::optional<model::PreemptionRefusal> why;
    std::optional<Nomination> ahead = LookAhead(state, placer, each, why);
    if (!ahead) {
      if (&each == &asked.front()) n.refusal.places.front().why.preemption = std::move(why);
      continue;
    }
    WorkloadRefusal refusal = std::move(n.refusal);
    n = *std::move(ahead);
    n.verdict = Nomination::Verdict::kPreempts;
    n.refusal = std::move(refusal);
    n.refusal.promised = true;
    n.refusal.victims_count = static_cast<uint32_t>(n.victims.size());
    n.refusal.places.front().evicted = static_cast<uint32_t>(n.pods.size());
    return true;
  }
  const std::vector<model::WorkloadSlots>& slots = state.workloads().at(n.workload).slots;
  for (model::PlacesRefusal& refusal : n.refusal.places) {
    const model::WorkloadSlots& set = slots[refusal.pod_set];
    // Nobody is of less.
    refusal.evicts_below = set.preempts ? set.priority : std::numeric_limits<int64_t>::min();
  }
  return false;
}

// As many of its pods as find nodes, where it may start with those.
bool Admissions::FindFewerPlaces(model::State& state, SlotPlacer& placer,
                                 std::span<const Nomination> asked, Nomination& n) const {
  if (n.refusal.places.empty() || n.refusal.places.front().topology) return false;
  if (IsPromised(state, n.workload)) return false;
  for (const Nomination& each : asked) {
    Nomination fewer = each;
    const std::vector<quota::CountRange> ranges =
        RangesOf(state, state.workloads().at(n.workload), each.counts);
    // What all together are charged is shared out among them.
    const auto put = [&](std::span<const uint32_t> of) {
      fewer.counts.assign(of.begin(), of.end());
      for (size_t i = 0; i < of.size(); ++i) {
        std::vector<quota::FlavorChoice>& choices = fewer.flavors.pod_sets[i].choices;
        for (size_t k = 0; k < choices.size(); ++k) {
          const model::Amount all = each.flavors.pod_sets[i].choices[k].amount;
          choices[k].amount = all == 0 ? 0 : all / ranges[i].count * of[i];
        }
      }
    };
    const auto counts = quota::LargestCounts(ranges, [&](std::span<const uint32_t> of) {
      put(of);
      SlotPlacer::Places places = placer.Place(n.workload, ReservationOfNomination(state, fewer));
      if (!places) return false;
      fewer.places = *std::move(places);
      return true;
    });
    if (!counts) continue;
    // The last for whom there were places were the most.
    put(*counts);
    n = std::move(fewer);
    return true;
  }
  const std::vector<quota::CountRange> all = RangesOf(state, state.workloads().at(n.workload), {});
  for (model::PlacesRefusal& refusal : n.refusal.places) {
    const quota::CountRange& range = all[refusal.pod_set];
    if (range.count_min < range.count) refusal.fewest = range.count_min;
  }
  return false;
}

// Of a workload whose pods would leave all goes, with its quota: what is left of it would be
// admitted, and have no place. What it was promised ends then, so all is looked for anew without
// it.
std::optional<Admissions::Nomination> Admissions::LookAhead(
    model::State& state, SlotPlacer& placer, const Nomination& asked,
    std::optional<model::PreemptionRefusal>& why) const {
  Nomination next = asked;
  while (true) {
    SlotPlacer::Ahead ahead = placer.PlaceToCome(
        asked.workload, ReservationOfNomination(state, asked), RowsOf(state, next.victims));
    if (!ahead) {
      why = std::move(ahead.error().why.preemption);
      return std::nullopt;
    }
    const size_t before = next.victims.size();
    next.pods.clear();
    if (!TakeVictims(state, ahead->victims, next)) return std::nullopt;
    if (next.victims.size() > before) continue;
    next.places = std::move(ahead->found);
    return next;
  }
}

// Whether all of them may go: two workloads don't evict each other, so one is evicted for a more
// important one alone, whatever their pods are.
bool Admissions::TakeVictims(const model::State& state, std::span<const model::PodId> pods,
                             Nomination& n) const {
  const int32_t priority = state.workloads().at(n.workload).priority;
  const std::vector<WorkloadId> left = RowsOf(state, n.victims);
  std::set<WorkloadId> leaving(left.begin(), left.end());
  for (const model::PodId pod : pods) {
    const WorkloadId id = state.WorkloadOf(pod);
    // Who does not go with the workload, or did not, goes by itself.
    if (!id.valid() || state.pods().at(pod).overdue ||
        ChargedTo(state.workloads().at(id)).charges.empty() ||
        std::ranges::find(left, id) != left.end()) {
      n.pods.push_back(pod);
      continue;
    }
    const model::Workload& leaves = state.workloads().at(id);
    if (leaves.priority >= priority || leaves.spared_until != Instant{}) return false;
    if (leaving.insert(id).second) {
      n.victims.push_back(
          {.workload = HoldingOf(state, id).as, .reason = model::VictimReason::kOnNodes});
    }
  }
  return true;
}

// Whether there are places once those are gone that would have to leave for its quota: nobody is
// evicted for what can't run then.
bool Admissions::HelpsPlaces(model::State& state, SlotPlacer& placer, Nomination& n) const {
  const model::Reservation reservation = ReservationOfNomination(state, n);
  if (state.PlacesComeLater(reservation)) return true;
  SlotPlacer::Places places = placer.Place(n.workload, reservation, RowsOf(state, n.victims));
  if (places) {
    n.places = *std::move(places);
    return true;
  }
  n.refusal.promised = false;
  n.refusal.victims_count = 0;
  n.refusal.shared = false;
  n.refusal.places = {std::move(places.error())};
  n.refusal.places.front().beside_leaving = true;
  return false;
}

// Who finds none in a topology is as who finds no quota: others leave for it, or fewer of its pods
// get what there is. What is asked for is what the flavors are that it would get first.
bool Admissions::FindPlacesOtherwise(model::State& state, SlotPlacer& placer, Beside beside,
                                     Nomination& n) const {
  using Verdict = Nomination::Verdict;
  if (n.refusal.places.empty() || !n.refusal.places.front().topology) return false;
  const model::Queue* queue = RowOf(state, entries_[n.workload.value].line);
  n.refusal.places.front().may_evict = queue != nullptr && MayEvictAny(*queue);
  if (IsPromised(state, n.workload)) {
    // Those who leave for it may be there still.
    const std::optional<WorkloadRefusal>& told = entries_[n.workload.value].refusal;
    if (n.as_promised && told && !state.workloads().at(n.workload).victims.empty()) {
      n.refusal.victims_count = told->victims_count;
      n.refusal.shared = told->shared;
    }
    return false;
  }
  Nomination next = Nominate(state, n.workload, beside.held, {}, &placer);
  const bool gets = next.verdict == Verdict::kPreempts ||
                    (next.verdict == Verdict::kFits && StillFits(state, next, beside.kept));
  if (!gets) {
    if (next.flavors.mode == quota::FlavorMode::kNone) n.refusal.unfit = next.flavors.unfit;
    return false;
  }
  SlotPlacer::Places places =
      placer.Place(n.workload, ReservationOfNomination(state, next), RowsOf(state, next.victims));
  if (!places) return false;
  next.places = *std::move(places);
  // Of quota that is short the reasons tell.
  if (next.verdict == Verdict::kPreempts && next.refusal.reasons.empty()) {
    n.refusal.promised = true;
    n.refusal.victims_count = next.refusal.victims_count;
    n.refusal.shared = next.refusal.shared;
    next.refusal = std::move(n.refusal);
  }
  n = std::move(next);
  return true;
}

void Admissions::RefusePlaceless(Round& round, const Nomination& n) {
  if (IsOutrun(round, n.workload)) outrun_.push_back(n.workload);
  if (!n.refusal.promised) round.state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
  Refuse(round.state, n.workload, n.refusal, Shortfall{}, round.plan);
  KeepPlacesFor(round.state, round.placer, n);
}

// Whether it would find places if nobody kept any in this round.
bool Admissions::IsOutrun(Round& round, WorkloadId workload) {
  if (keeps_places_.empty()) return false;
  std::vector<SlotPlacer::Promised::node_type> kept;
  for (const WorkloadId other : keeps_places_) kept.push_back(promised_places_.extract(other));
  Nomination n = Nominate(round.state, workload, round.held);
  const bool nominated =
      n.verdict == Nomination::Verdict::kFits || n.verdict == Nomination::Verdict::kPreempts;
  const bool finds =
      nominated && FindPlaces(round.state, round.placer, {round.kept, round.held, {}}, n);
  for (SlotPlacer::Promised::node_type& other : kept) promised_places_.insert(std::move(other));
  return finds;
}

// Nobody may be evicted for it: others that are served after it in this round leave it what is its
// queue's own.
void Admissions::KeepFor(const model::State& state, const Nomination& nomination,
                         Kept& kept) const {
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[nomination.workload.value].line);
  if (nomination.flavors.mode != quota::FlavorMode::kNoVictims || !queue.valid()) return;
  const model::Queue& row = state.queues().at(queue);
  if (!row.parent.valid() || row.preemption.reclaim == model::EvictionPolicy::kAny) return;
  for (quota::Demand demand : nomination.flavors.demands) {
    demand.amount = quota::KeptFor(state.ledger().quota(), demand.resource, demand.account,
                                   demand.amount, nomination.flavors.borrow > 0);
    if (demand.amount > 0) kept[state.queues().RootOf(queue)].push_back(demand);
  }
}

// As of quota (KeepFor): others that are served after it in this round leave it the places that it
// would have if nobody stood in its topology.
void Admissions::KeepPlacesFor(model::State& state, SlotPlacer& placer, const Nomination& n) {
  if (n.refusal.unfit != model::Unfit::kWaiting || n.refusal.promised) return;
  const model::PlacesRefusal& first = n.refusal.places.front();
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[n.workload.value].line);
  if (!first.topology || !first.may_evict || !queue.valid()) return;
  const model::Queue& row = state.queues().at(queue);
  if (!row.parent.valid() || row.preemption.reclaim == model::EvictionPolicy::kAny) return;
  model::Reservation reservation = ReservationOfNomination(state, n);
  SlotPlacer::Places places = placer.PlaceInEmpty(n.workload, reservation);
  if (!places || places->slots.empty()) return;
  reservation.slots = std::move(places->slots);
  promised_places_.insert_or_assign(n.workload, std::move(reservation));
  keeps_places_.push_back(n.workload);
}

// Who found none beside them may find some now.
void Admissions::EndKeptPlaces() {
  for (const WorkloadId workload : std::exchange(keeps_places_, {}))
    promised_places_.erase(workload);
  for (const WorkloadId workload : std::exchange(outrun_, {})) {
    if (!lines_.contains(workload)) continue;
    const WorkloadLines::Shape* outrun = &lines_.shape_of(workload);
    const std::vector<NameId> woken =
        lines_.WakePlaceless([&](const WorkloadLines::Shape& shape) { return &shape == outrun; });
    active_.insert(woken.begin(), woken.end());
  }
}

// Of who is promised something else than what its places are of, or nothing.
void Admissions::DropPlaces(const model::State& state, WorkloadId workload) {
  const auto at = promised_places_.find(workload);
  if (at == promised_places_.end()) return;
  if (state.workloads().used(workload) &&
      WithoutPlaces(state.workloads().at(workload).promised) == WithoutPlaces(at->second)) {
    return;
  }
  promised_places_.erase(at);
  nodes_lifted_ = true;
}

}  // namespace berth::cycle
