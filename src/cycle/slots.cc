#include "cycle/slots.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "cycle/why.h"

namespace berth::cycle {

using model::Amount;
using model::ClassId;
using model::NameId;
using model::NodeId;
using model::PlacesRefusal;
using model::Reservation;
using model::Slot;
using model::TopologyPlaces;
using model::Workload;
using model::WorkloadId;

namespace {

// How many pods of the class one node can hold, whatever it has: those with host ports are in each
// other's way, and of those that ask for nothing there are no more than that. Sums over nodes fit.
Amount MostTogether(const model::State& state, model::BundleId asked) {
  return state.vocabulary().bundles.Ports(asked).empty() ? limits::kPodsMax : 1;
}

model::BundleId AskedBy(const model::State& state, ClassId class_id) {
  return state.vocabulary().bundles.Asked(state.vocabulary().classes.at(class_id).requests);
}

}  // namespace

Amount PlacesOn(const model::State& state, const place::Evaluator& evaluator, ClassId class_id,
                const model::Pin& pin, NodeId n) {
  const model::Viewer all{.owner = {}, .priority = std::numeric_limits<int32_t>::max()};
  // What hangs on pods of other nodes may be otherwise by the time that some are placed.
  if (!evaluator.FilterAlone(state, class_id, n, &all, pin).fits()) return 0;
  const model::BundleId asked = AskedBy(state, class_id);
  Amount places = MostTogether(state, asked);
  for (const model::ResourceAmount& a : state.vocabulary().bundles.View(asked)) {
    if (a.amount > 0)
      places = std::min(places, state.ledger().nodes().free(a.resource, n.value) / a.amount);
  }
  return places;
}

namespace {

// What is free on the node, or will be.
Amount AmountOn(const model::State& state, model::ResourceId r, NodeId n, int64_t below) {
  const model::AccountTable& nodes = state.ledger().nodes();
  if (r.value >= nodes.resources()) return 0;
  if (below == kAllEmpty) return nodes.capacity(r, n.value);
  Amount amount = nodes.free(r, n.value);
  if (below == kNobodyLeaves) return amount;
  amount += nodes.releasing(r, n.value);
  for (model::ClaimId id = nodes.first_claim(n.value); id.valid();) {
    const model::Claim& claim = state.ledger().claim(id);
    id = claim.next_in_account;
    if (claim.state == model::ClaimState::kHeld && claim.priority < below)
      amount += state.vocabulary().bundles.AmountOf(claim.bundle, r);
  }
  return amount;
}

// Whether nobody has the ports there, or will.
bool PortsOn(const model::State& state, std::span<const model::HostPort> ports, NodeId n,
             int64_t below) {
  using enum model::ClaimState;
  if (ports.empty() || below == kAllEmpty) return true;
  const model::AccountTable& nodes = state.ledger().nodes();
  for (model::ClaimId id = nodes.first_claim(n.value); id.valid();) {
    const model::Claim& claim = state.ledger().claim(id);
    id = claim.next_in_account;
    const bool stays = below == kNobodyLeaves || (claim.state == kHeld && claim.priority >= below);
    if (stays &&
        model::CountConflicts(ports, state.vocabulary().bundles.Ports(claim.bundle)) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

Amount PlacesToCome(const model::State& state, const place::Evaluator& evaluator,
                    const place::Preemptor& pod, NodeId n, int64_t below) {
  if (evaluator.FixedRefusalOn(state, pod.class_id, n, pod.pin).kind != model::ReasonKind::kNone)
    return 0;
  const model::BundleId asked = AskedBy(state, pod.class_id);
  if (!PortsOn(state, state.vocabulary().bundles.Ports(asked), n, below)) return 0;
  Amount places = MostTogether(state, asked);
  for (const model::ResourceAmount& a : state.vocabulary().bundles.View(asked)) {
    if (a.amount <= 0) continue;
    const Amount amount = AmountOn(state, a.resource, n, below);
    places = std::min(places, std::max<Amount>(amount, 0) / a.amount);
  }
  return places;
}

// ---- Counting --------------------------------------------------------------------------------

void ClassPlaces::DropOldest(const Key& kept) {
  const auto age = [&](const auto& entry) {
    return std::pair(entry.first == kept, entry.second.asked_at);
  };
  counted_.erase(std::ranges::min_element(counted_, {}, age));
}

Amount ClassPlaces::Of(const model::State& state, const place::Evaluator& evaluator,
                       ClassId class_id, int64_t below) {
  const model::TouchLog& log = state.touches();
  const Key key{class_id, below};
  const auto [at, fresh] = counted_.try_emplace(key);
  Counted& counted = at->second;
  counted.asked_at = ++calls_;
  const size_t bytes_each = size_t{state.nodes().size()} * sizeof(Amount);
  while (counted_.size() > 1 && counted_.size() * bytes_each > bytes_max_) DropOldest(key);
  const auto places = [&](NodeId n) {
    if (!state.nodes().used(n) || !state.nodes().present(n)) return Amount{0};
    return below == kNobodyLeaves
               ? PlacesOn(state, evaluator, class_id, {}, n)
               : PlacesToCome(state, evaluator, {.owner = {}, .class_id = class_id}, n, below);
  };
  const auto count = [&](NodeId n) {
    // So that no sum of them overflows.
    const Amount now = std::min<Amount>(places(n), limits::kPodsMax);
    counted.all += now - std::exchange(counted.by_node[n.value], now);
  };
  const bool whole = fresh || counted.position < log.begin();
  if (counted.by_node.size() < state.nodes().size()) counted.by_node.resize(state.nodes().size());
  if (whole) {
    for (uint32_t row = 0; row < state.nodes().size(); ++row) count(NodeId{row});
  } else {
    for (uint64_t i = counted.position; i < log.end(); ++i) {
      if (log.latest(i)) count(log.at(i).node);
    }
  }
  counted.position = log.end();
  return counted.all;
}

// ---- Placing ---------------------------------------------------------------------------------

namespace {

// By values: how many more than before.
std::vector<TopologyShare> MoreOf(std::span<const TopologyShare> now,
                                  std::span<const TopologyShare> before) {
  std::vector<TopologyShare> more;
  for (TopologyShare share : now) {
    const auto had = std::ranges::find(before, share.values, &TopologyShare::values);
    if (had != before.end()) share.count -= std::min(share.count, had->count);
    if (share.count > 0) more.push_back(std::move(share));
  }
  return more;
}

struct IsFailed {
  std::span<const NameId> failed;
  bool operator()(NameId node) const { return std::ranges::find(failed, node) != failed.end(); }
  bool operator()(const TopologyShare& share) const { return (*this)(share.values.back()); }
};

// As an object tells slots: of a pod set in the order of its domains.
void InOrderOfDomains(SlotPlacer::Found& found) {
  std::ranges::stable_sort(found.slots, {}, [&](const Slot& slot) {
    const auto of = std::ranges::find(found.topologies, slot.pod_set, &TopologyPlaces::pod_set);
    if (of == found.topologies.end()) return std::pair(slot.pod_set, size_t{0});
    const auto at = std::ranges::find_if(
        of->shares, [&](const TopologyShare& share) { return share.values.back() == slot.node; });
    return std::pair(slot.pod_set, static_cast<size_t>(at - of->shares.begin()));
  });
}

}  // namespace

// Pods of the set, fewer than it asks for where that was decided.
uint32_t SlotPlacer::CountOf(WorkloadId workload, const Reservation& reservation,
                             uint32_t pod_set) const {
  return reservation.counts.empty() ? state_.workloads().at(workload).slots[pod_set].count
                                    : reservation.counts[pod_set];
}

// The pods will have the labels and tolerations of the flavors that they get.
ClassId SlotPlacer::ClassFor(const Workload& row, uint32_t pod_set,
                             const Reservation& reservation) {
  model::Vocabulary& vocabulary = state_.vocabulary();
  model::ClassSpec spec = vocabulary.classes.at(row.slots[pod_set].class_id);
  model::SelectorSpec selector;
  if (spec.selector.valid()) selector = vocabulary.selectors.At(spec.selector);
  std::vector<model::Toleration> tolerations;
  if (spec.tolerations.valid()) {
    const auto own = vocabulary.tolerations.View(spec.tolerations);
    tolerations.assign(own.begin(), own.end());
  }
  std::set<NameId> seen;
  for (const model::QuotaCharge& charge : reservation.charges) {
    if (charge.pod_set != pod_set || !seen.insert(charge.flavor).second) continue;
    const model::Flavor* flavor = state_.flavors().Find(charge.flavor);
    if (flavor == nullptr) continue;
    for (const model::Label& label : flavor->labels) {
      selector.all.push_back({.key = label.key,
                              .op = model::SelectorOp::kIn,
                              .field = false,
                              .values = {label.value}});
    }
    if (!flavor->tolerations.valid()) continue;
    const auto more = vocabulary.tolerations.View(flavor->tolerations);
    tolerations.insert(tolerations.end(), more.begin(), more.end());
  }
  if (!selector.all.empty() || selector.has_terms)
    spec.selector = vocabulary.selectors.Intern(selector);
  if (!tolerations.empty()) spec.tolerations = vocabulary.tolerations.Intern(tolerations);
  const ClassId class_id = vocabulary.classes.Intern(spec);
  state_.Materialise(class_id);
  return class_id;
}

PlacesRefusal SlotPlacer::RefusalOf(const Look& look, uint32_t pod_set) const {
  PlacesRefusal refusal{.pod_set = pod_set, .needed = CountOf(look, pod_set)};
  refusal.why = WhyNotClass(state_, evaluator_, look.classes[pod_set], look.viewer).refusal;
  refusal.most = MostOnEmpty(look.classes[pod_set], refusal.needed);
  return refusal;
}

// How many pods of the class would find nodes if nothing stood on any, where that is fewer. O(nodes
// up to the last that is needed).
std::optional<uint32_t> SlotPlacer::MostOnEmpty(ClassId class_id, uint32_t needed) const {
  Amount most = 0;
  for (uint32_t row = 0; row < state_.nodes().size() && most < needed; ++row) {
    const NodeId n{row};
    if (!state_.nodes().used(n) || !state_.nodes().present(n)) continue;
    most += std::min<Amount>(
        PlacesToCome(state_, evaluator_, {.owner = {}, .class_id = class_id}, n, kAllEmpty),
        needed);
  }
  if (most >= needed) return std::nullopt;
  return static_cast<uint32_t>(most);
}

SlotPlacer::Look SlotPlacer::LookAt(WorkloadId workload, const Reservation& reservation,
                                    model::State::SlotTrial& trial) {
  const Workload& row = state_.workloads().at(workload);
  Look look{.workload = workload,
            .reservation = reservation,
            .viewer = {.owner = row.uid, .priority = row.priority},
            .trial = trial,
            .classes = {}};
  for (uint32_t i = 0; i < row.slots.size(); ++i)
    look.classes.push_back(ClassFor(row, i, reservation));
  return look;
}

SlotPlacer::Places SlotPlacer::Place(WorkloadId workload, const Reservation& reservation,
                                     std::span<const WorkloadId> leaving) {
  if (!PlacesAny(workload, reservation)) return Found{};
  if (leaving.empty()) {
    model::State::SlotTrial trial(state_);
    Places places = PlaceIn(trial, workload, reservation);
    if (!places || !AnyPromisedBut(workload)) return places;
    if (StandsBesidePromised(workload, reservation, *places)) return places;
  }
  model::State::SlotTrial trial(state_);
  TakeOut(trial, workload, leaving);
  return PlaceIn(trial, workload, reservation);
}

// Who leaves is gone, with what it is promised, and what others are promised then is theirs.
void SlotPlacer::TakeOut(model::State::SlotTrial& trial, WorkloadId workload,
                         std::span<const WorkloadId> leaving) {
  std::set<WorkloadId> gone(leaving.begin(), leaving.end());
  for (const WorkloadId other : leaving) trial.WithoutPromise(other);
  if (!leaving.empty()) gone.merge(LeavingForOthers(workload, leaving));
  for (const WorkloadId other : gone) trial.Without(other);
  TakePromised(trial, workload, leaving);
}

SlotPlacer::Places SlotPlacer::PlaceIn(model::State::SlotTrial& trial, WorkloadId workload,
                                       const Reservation& reservation) {
  Look look = LookAt(workload, reservation, trial);
  if (Refused refused = PlacePods(look)) return std::unexpected(*std::move(refused));
  return std::move(look.found);
}

SlotPlacer::Refused SlotPlacer::PlacePods(Look& look) {
  // Who may stand in few places goes first.
  if (Refused refused = PlaceByTopology(look)) return refused;
  const Workload& row = state_.workloads().at(look.workload);
  for (uint32_t i = 0; joint_ && i < look.classes.size(); ++i) {
    if (FlavorByTopology(row, look.reservation, i) != nullptr || !row.slots[i].ours) continue;
    Refused refused = look.victims == nullptr ? PlaceAnywhere(look, i) : ReserveAnywhere(look, i);
    if (refused) return refused;
  }
  // As its object will tell them: in the order of domains, else of nodes.
  std::ranges::stable_sort(look.found.slots, {}, &Slot::pod_set);
  std::ranges::sort(look.found.topologies, {}, &TopologyPlaces::pod_set);
  return std::nullopt;
}

bool SlotPlacer::MayEvict(WorkloadId workload) const {
  const auto may_evict = [](const model::WorkloadSlots& set) { return set.ours && set.preempts; };
  return evicts_ && std::ranges::any_of(state_.workloads().at(workload).slots, may_evict);
}

SlotPlacer::Ahead SlotPlacer::PlaceToCome(WorkloadId workload, const Reservation& reservation,
                                          std::span<const WorkloadId> leaving) {
  model::State::SlotTrial trial(state_);
  TakeOut(trial, workload, leaving);
  ToCome to_come;
  Look look = LookAt(workload, reservation, trial);
  look.victims = &to_come.victims;
  if (Refused refused = PlacePods(look)) return std::unexpected(*std::move(refused));
  to_come.found = std::move(look.found);
  return to_come;
}

// In the order in which its object will tell them.
void SlotPlacer::AddSorted(std::vector<Slot> slots, Look& look) const {
  std::ranges::sort(slots, {}, [&](const Slot& slot) {
    return std::pair(state_.NameOf(slot.node), slot.devices.mask);
  });
  look.found.slots.insert(look.found.slots.end(), slots.begin(), slots.end());
}

// What others are promised is left to them, however much less important they are: they are soon
// where they can be evicted.
SlotPlacer::Refused SlotPlacer::ReserveAnywhere(Look& look, uint32_t pod_set) {
  const ClassId class_id = look.classes[pod_set];
  const model::WorkloadSlots& set = state_.workloads().at(look.workload).slots[pod_set];
  const place::Preemptor pod{.owner = {},
                             .class_id = class_id,
                             .priority = set.priority,
                             .preempts = set.preempts,
                             .heeds_all_promises = true};
  std::vector<Slot> slots;
  for (uint32_t count = CountOf(look, pod_set); slots.size() < count;) {
    place::Preemption there = set.preempts
                                  ? place::FindPreemption(state_, evaluator_, pod, scratch_)
                                  : place::FindRoomToCome(state_, evaluator_, pod, scratch_);
    if (!there.node.valid()) {
      PlacesRefusal refusal = RefusalOf(look, pod_set);
      refusal.found = static_cast<uint32_t>(slots.size());
      refusal.why.preemption = std::move(there.refusal);
      return refusal;
    }
    slots.push_back(
        {.pod_set = pod_set, .node = state_.nodes().name(there.node), .devices = there.devices});
    look.victims->insert(look.victims->end(), there.victims.begin(), there.victims.end());
    look.trial.Reserve(look.workload, class_id, slots.back(), there.victims);
  }
  AddSorted(std::move(slots), look);
  return std::nullopt;
}

bool SlotPlacer::StandsAsPromised(WorkloadId workload) {
  const Reservation promised = state_.workloads().at(workload).promised;
  const auto claims = state_.slots().PromisedOf(workload);
  // Nobody looks through it.
  const model::Viewer nobody{.owner = {}, .priority = model::kPriorityOfPromise};
  for (size_t i = 0; i < promised.slots.size(); ++i) {
    if (!claims[i].valid()) return false;
    const Slot& slot = promised.slots[i];
    const ClassId class_id = ClassFor(state_.workloads().at(workload), slot.pod_set, promised);
    const model::AccountId node = state_.ledger().claim(claims[i]).account;
    const place::FixedRefusal fixed =
        evaluator_.FixedRefusalOn(state_, class_id, node.node(), model::Pin{});
    const bool behind_amounts = fixed.behind >= place::Behind::kPortsAndAmounts;
    if (fixed.kind != model::ReasonKind::kNone && !behind_amounts) return false;
    const model::BundleId requests = state_.vocabulary().classes.at(class_id).requests;
    const model::BundleTable& bundles = state_.vocabulary().bundles;
    if (!PortsStand(workload, node.node(), bundles.Ports(requests))) return false;
    for (const model::ResourceAmount& a : bundles.View(requests)) {
      if (a.amount == 0) continue;
      const Amount left = state_.ledger().Future(node, a.resource, nobody, bundles);
      if (left < 0 && left + StoppedOn(node.node(), a.resource) < 0) return false;
    }
  }
  return true;
}

// Whether the claim is of a pod whose workload has let go of its quota: it is being stopped.
bool SlotPlacer::IsStopped(const model::Claim& claim) const {
  const model::PodId pod = state_.pods().FindUid(claim.owner);
  const WorkloadId workload = pod.valid() ? state_.WorkloadOf(pod) : WorkloadId{};
  if (claim.state != model::ClaimState::kHeld || !workload.valid()) return false;
  const Workload& row = state_.workloads().at(workload);
  const bool has_none = ChargedTo(row).charges.empty() && !row.status.finished;
  return has_none && !state_.pods().at(pod).overdue;
}

// What those have there that are being stopped.
Amount SlotPlacer::StoppedOn(NodeId node, model::ResourceId resource) const {
  Amount amount = 0;
  for (model::ClaimId id = state_.ledger().nodes().first_claim(node.value); id.valid();) {
    const model::Claim& claim = state_.ledger().claim(id);
    id = claim.next_in_account;
    if (IsStopped(claim)) amount += state_.vocabulary().bundles.AmountOf(claim.bundle, resource);
  }
  return amount;
}

// Whether the ports that a workload is promised there are, or will be, nobody else's.
bool SlotPlacer::PortsStand(WorkloadId workload, NodeId node,
                            std::span<const model::HostPort> ports) const {
  if (ports.empty()) return true;
  const model::BundleTable& bundles = state_.vocabulary().bundles;
  const model::Viewer viewer{.owner = state_.workloads().at(workload).uid,
                             .priority = model::kPriorityOfPromise};
  uint32_t conflicts = state_.ledger().PortConflicts(model::Ledger::PortView::kFuture, node, ports,
                                                     &viewer, bundles);
  for (model::ClaimId id = state_.ledger().nodes().first_claim(node.value); id.valid();) {
    const model::Claim& claim = state_.ledger().claim(id);
    id = claim.next_in_account;
    if (IsStopped(claim)) conflicts -= model::CountConflicts(ports, bundles.Ports(claim.bundle));
  }
  return conflicts == 0;
}

SlotPlacer::Refused SlotPlacer::PlaceAnywhere(Look& look, uint32_t pod_set) {
  const ClassId class_id = look.classes[pod_set];
  const ClassId scored = evaluator_.ScoredAs(state_, class_id);
  std::vector<Slot> slots;
  for (uint32_t count = CountOf(look, pod_set); slots.size() < count;) {
    ClassCache& cache = caches_.Get(scored, state_.nodes().size());
    cache.CatchUp(state_, evaluator_, scored);
    const NodeId node = cache.Choose(state_, evaluator_, look.viewer).node;
    if (!node.valid()) {
      PlacesRefusal refusal = RefusalOf(look, pod_set);
      refusal.found = static_cast<uint32_t>(slots.size());
      return refusal;
    }
    slots.push_back(
        {.pod_set = pod_set,
         .node = state_.nodes().name(node),
         .devices = evaluator_.ChooseDevices(state_, class_id, node, &look.viewer, /*draw=*/0)});
    look.trial.Place(look.workload, class_id, slots.back());
  }
  AddSorted(std::move(slots), look);
  return std::nullopt;
}

// ---- Beside what is promised -----------------------------------------------------------------

bool SlotPlacer::AnyPromisedBut(WorkloadId workload) const {
  return promised_ != nullptr && promised_->size() > promised_->count(workload);
}

// Who goes for those that are promised places.
std::set<WorkloadId> SlotPlacer::LeavingForOthers(WorkloadId workload,
                                                  std::span<const WorkloadId> but) const {
  std::set<WorkloadId> leaving;
  if (promised_ == nullptr) return leaving;
  for (const auto& [of, places] : *promised_) {
    const std::vector<WorkloadId>& victims = state_.workloads().at(of).victims;
    if (of != workload && std::ranges::find(but, of) == but.end())
      leaving.insert(victims.begin(), victims.end());
  }
  return leaving;
}

// Devices are not told: those who leave may have them yet.
void SlotPlacer::TakePromised(model::State::SlotTrial& trial, WorkloadId workload,
                              std::span<const WorkloadId> but) {
  if (promised_ == nullptr) return;
  for (const auto& [of, places] : *promised_) {
    if (of == workload || std::ranges::find(but, of) != but.end()) continue;
    if (!state_.slots().PromisedOf(of).empty()) {
      trial.TakePromised(of);
      continue;
    }
    const Look look = LookAt(of, places, trial);
    for (Slot slot : places.slots) {
      slot.devices = {};
      const NodeId node = state_.nodes().Find(slot.node);
      if (node.valid() && state_.nodes().present(node))
        trial.Place(of, look.classes[slot.pod_set], slot);
    }
  }
}

// Once those are gone that leave for others.
bool SlotPlacer::StandsBesidePromised(WorkloadId workload, const Reservation& reservation,
                                      const Found& found) {
  model::State::SlotTrial trial(state_);
  for (const WorkloadId other : LeavingForOthers(workload)) trial.Without(other);
  TakePromised(trial, workload);
  const Look look = LookAt(workload, reservation, trial);
  for (const Slot& slot : found.slots) {
    const ClassId class_id = look.classes[slot.pod_set];
    const NodeId node = state_.nodes().Find(slot.node);
    if (!evaluator_.Filter(state_, class_id, node, &look.viewer).fits()) return false;
    trial.Place(workload, class_id, {.pod_set = slot.pod_set, .node = slot.node, .devices = {}});
  }
  return true;
}

SlotPlacer::Places SlotPlacer::PlaceInEmpty(WorkloadId workload, const Reservation& reservation) {
  model::State::SlotTrial trial(state_);
  Look look = LookAt(workload, reservation, trial);
  look.in_empty = true;
  const Refused refused = PlaceByTopology(look);
  for (auto& [name, topology] : topologies_) topology.Forget();
  if (refused) return std::unexpected(*refused);
  return std::move(look.found);
}

// Where shares are of nodes.
void SlotPlacer::NoteInEmpty(Look& look, const FlavorTopology& topology, uint32_t pod_set,
                             std::span<const TopologyShare> shares) const {
  if (!topology.by_node()) return;
  for (const TopologyShare& share : shares) {
    for (uint32_t i = 0; i < share.count; ++i)
      look.found.slots.push_back({.pod_set = pod_set, .node = share.values.back(), .devices = {}});
  }
}

// ---- By topology -----------------------------------------------------------------------------

// The one by whose topology the pod set is placed; null for none. A pod set that asks for no
// amounts goes with the first of its group, else of the others.
const model::Flavor* SlotPlacer::FlavorByTopology(const Workload& row,
                                                  const Reservation& reservation,
                                                  uint32_t pod_set) const {
  const auto first_of = [&](const auto& is_of) -> const model::Flavor* {
    for (const model::QuotaCharge& charge : reservation.charges) {
      if (!is_of(charge.pod_set)) continue;
      const model::Flavor* flavor = state_.flavors().Find(charge.flavor);
      if (flavor != nullptr && flavor->topology.valid() &&
          state_.flavors().FindTopology(flavor->topology) != nullptr) {
        return flavor;
      }
    }
    return nullptr;
  };
  const auto is_own = [&](uint32_t i) { return i == pod_set; };
  const auto is_beside = [&](uint32_t i) {
    const NameId group = row.slots[pod_set].topology.group;
    return group.valid() && row.slots[i].topology.group == group;
  };
  const bool asks = std::ranges::any_of(reservation.charges, is_own, &model::QuotaCharge::pod_set);
  if (asks) return first_of(is_own);
  if (const model::Flavor* flavor = first_of(is_beside)) return flavor;
  return first_of([](uint32_t) { return true; });
}

bool SlotPlacer::PlacesAny(WorkloadId workload, const Reservation& reservation) const {
  return joint_ || !PlacedLater(workload, reservation).empty();
}

FlavorTopology& SlotPlacer::TopologyOf(const model::Flavor& flavor) {
  const auto at = topologies_.find(flavor.name);
  if (at != topologies_.end()) return at->second;
  return topologies_.try_emplace(flavor.name, state_, evaluator_, flavor, Hostnames::kNames)
      .first->second;
}

std::vector<TopologyPlaces> SlotPlacer::PlacedLater(WorkloadId workload,
                                                    const Reservation& reservation) const {
  std::vector<TopologyPlaces> later;
  const Workload& row = state_.workloads().at(workload);
  for (uint32_t i = 0; i < row.slots.size(); ++i) {
    if (CountOf(workload, reservation, i) > 0 && FlavorByTopology(row, reservation, i) != nullptr)
      later.push_back({.pod_set = i, .levels = {}, .shares = {}});
  }
  return later;
}

model::TopologyRefusal SlotPlacer::WhyNoTopologyOf(const Reservation& reservation,
                                                   uint32_t pod_set) const {
  using Kind = model::TopologyRefusal::Kind;
  model::TopologyRefusal why;
  why.kind = Kind::kUntold;
  const bool asks = std::ranges::find(reservation.charges, pod_set, &model::QuotaCharge::pod_set) !=
                    reservation.charges.end();
  for (const model::QuotaCharge& charge : reservation.charges) {
    if (asks && charge.pod_set != pod_set) continue;
    const model::Flavor* flavor = state_.flavors().Find(charge.flavor);
    const Kind kind = flavor == nullptr          ? Kind::kFlavorGone
                      : flavor->topology.valid() ? Kind::kGone
                                                 : Kind::kUntold;
    // The first, but of what may come back if there is any.
    if (why.flavor.valid() && (kind == Kind::kUntold || why.kind != Kind::kUntold)) continue;
    why.kind = kind;
    why.flavor = charge.flavor;
    if (flavor != nullptr) why.topology = flavor->topology;
  }
  return why;
}

std::optional<PlacesRefusal> SlotPlacer::WhyNoTopology(WorkloadId workload,
                                                       const Reservation& lacking) const {
  const Workload& row = state_.workloads().at(workload);
  for (const TopologyPlaces& places : row.reserved.topologies) {
    const uint32_t pod_set = places.pod_set;
    const uint32_t count = CountOf(workload, lacking, pod_set);
    if (!places.shares.empty() || count == 0) continue;
    if (FlavorByTopology(row, lacking, pod_set) != nullptr) continue;
    return PlacesRefusal{
        .pod_set = pod_set, .needed = count, .topology = WhyNoTopologyOf(lacking, pod_set)};
  }
  return std::nullopt;
}

std::optional<PlacesRefusal> SlotPlacer::WhyNoTopologyToReplaceIn(
    WorkloadId workload, std::span<const NameId> failed) const {
  const Workload& row = state_.workloads().at(workload);
  const IsFailed is_failed{failed};
  for (const TopologyPlaces& places : row.reserved.topologies) {
    PlacesRefusal refusal{.pod_set = places.pod_set};
    for (const TopologyShare& share : places.shares)
      refusal.needed += is_failed(share) ? share.count : 0;
    if (refusal.needed == 0 || FlavorByTopology(row, row.reserved, places.pod_set) != nullptr)
      continue;
    refusal.topology = WhyNoTopologyOf(row.reserved, places.pod_set);
    return refusal;
  }
  return std::nullopt;
}

// Pod sets of one group stand together.
SlotPlacer::Refused SlotPlacer::PlaceByTopology(Look& look) {
  const Workload& row = state_.workloads().at(look.workload);
  std::vector<uint32_t> pod_sets;
  std::vector<const model::TopologyWish*> wishes;
  for (uint32_t i = 0; i < row.slots.size(); ++i) {
    if (CountOf(look, i) == 0 || FlavorByTopology(row, look.reservation, i) == nullptr) continue;
    pod_sets.push_back(i);
    wishes.push_back(&row.slots[i].topology);
  }
  for (const std::vector<size_t>& together : TogetherOf(wishes)) {
    std::vector<uint32_t> group;
    for (const size_t at : together) group.push_back(pod_sets[at]);
    if (Refused refused = PlaceTogether(look, group)) return refused;
  }
  return std::nullopt;
}

SlotPlacer::Refused SlotPlacer::PlaceTogether(Look& look, std::span<const uint32_t> pod_sets) {
  const Workload& row = state_.workloads().at(look.workload);
  // A server that validates lets no other groups pass than two of which one has a single pod.
  const auto is_one = [&](uint32_t i) { return CountOf(look, i) == 1; };
  if (pod_sets.size() > 2 || (pod_sets.size() == 2 && std::ranges::none_of(pod_sets, is_one))) {
    for (const uint32_t pod_set : pod_sets) {
      if (Refused refused = PlaceTogether(look, std::span(&pod_set, 1))) return refused;
    }
    return std::nullopt;
  }
  FlavorTopology& topology = TopologyOf(*FlavorByTopology(row, look.reservation, pod_sets.front()));
  std::vector<FlavorTopology::PodSet> sets;
  for (const uint32_t i : pod_sets) {
    sets.push_back(
        {.class_id = look.classes[i], .count = CountOf(look, i), .wish = &row.slots[i].topology});
  }
  if (look.in_empty) topology.Show(FlavorTopology::View::kEmpty);
  FlavorTopology::Places places = topology.Place(sets, look.viewer);
  if (!look.in_empty) topology.Forget();
  if (!places) {
    PlacesRefusal refusal{.pod_set = pod_sets.front()};
    // The larger is what has to fit beside the other.
    for (const uint32_t i : pod_sets) {
      if (CountOf(look, i) <= refusal.needed) continue;
      refusal.pod_set = i;
      refusal.needed = CountOf(look, i);
    }
    refusal.why.class_id = look.classes[refusal.pod_set];
    refusal.topology = std::move(places.error());
    return refusal;
  }
  for (size_t i = 0; i < pod_sets.size(); ++i) {
    if (look.in_empty) {
      NoteInEmpty(look, topology, pod_sets[i], (*places)[i]);
    } else if (Refused refused = PutOnNodes(look, topology, pod_sets[i], (*places)[i])) {
      return refused;
    }
    look.found.topologies.push_back(
        {.pod_set = pod_sets[i], .levels = topology.levels(), .shares = std::move((*places)[i])});
  }
  return std::nullopt;
}

// Each pod on a node of its domain, by name: what domains count of several nodes together may be in
// pieces.
SlotPlacer::Refused SlotPlacer::PutOnNodes(Look& look, FlavorTopology& topology, uint32_t pod_set,
                                           std::span<const TopologyShare> shares) {
  const ClassId class_id = look.classes[pod_set];
  uint32_t found = 0;
  for (const TopologyShare& share : shares) {
    uint32_t left = share.count;
    for (const NodeId node : topology.NodesOf(share)) {
      while (left > 0 && evaluator_.Filter(state_, class_id, node, &look.viewer).fits()) {
        const Slot slot{
            .pod_set = pod_set,
            .node = state_.nodes().name(node),
            .devices = evaluator_.ChooseDevices(state_, class_id, node, &look.viewer, /*draw=*/0)};
        look.trial.Place(look.workload, class_id, slot);
        look.found.slots.push_back(slot);
        --left;
        ++found;
      }
    }
    if (left == 0) continue;
    PlacesRefusal refusal = RefusalOf(look, pod_set);
    refusal.found = found;
    return refusal;
  }
  return std::nullopt;
}

// Of a pod set of which some stand on failed nodes.
FlavorTopology::Places SlotPlacer::ReplaceIn(Look& look, const TopologyPlaces& places,
                                             std::span<const NameId> failed,
                                             FlavorTopology::View view) {
  const Workload& row = state_.workloads().at(look.workload);
  const model::WorkloadSlots& set = row.slots[places.pod_set];
  FlavorTopology& topology = TopologyOf(*FlavorByTopology(row, look.reservation, places.pod_set));
  topology.Forget(view);
  FlavorTopology::Places found = topology.Replace(
      {.class_id = look.classes[places.pod_set], .count = set.count, .wish = &set.topology},
      places.shares, failed, look.viewer);
  topology.Forget();
  return found;
}

SlotPlacer::Places SlotPlacer::Replace(WorkloadId workload, std::span<const NameId> failed) {
  const Workload& row = state_.workloads().at(workload);
  const Reservation& has = row.reserved;
  model::State::SlotTrial trial(state_);
  Look look = LookAt(workload, has, trial);
  const IsFailed is_failed{failed};
  for (const TopologyPlaces& places : has.topologies) {
    if (std::ranges::none_of(places.shares, is_failed)) {
      look.found.topologies.push_back(places);
      continue;
    }
    const uint32_t pod_set = places.pod_set;
    PlacesRefusal refusal{.pod_set = pod_set};
    for (const TopologyShare& share : places.shares)
      refusal.needed += is_failed(share) ? share.count : 0;
    refusal.why.class_id = look.classes[pod_set];
    if (FlavorByTopology(row, has, pod_set) == nullptr) return std::unexpected(std::move(refusal));
    FlavorTopology::Places found = ReplaceIn(look, places, failed, FlavorTopology::View::kNow);
    if (!found) {
      refusal.topology = std::move(found.error());
      return std::unexpected(std::move(refusal));
    }
    const std::vector<TopologyShare> fresh = MoreOf(found->front(), places.shares);
    FlavorTopology& topology = TopologyOf(*FlavorByTopology(row, has, pod_set));
    if (Refused refused = PutOnNodes(look, topology, pod_set, fresh))
      return std::unexpected(*std::move(refused));
    look.found.topologies.push_back(
        {.pod_set = pod_set, .levels = places.levels, .shares = std::move(found->front())});
  }
  for (const Slot& slot : has.slots) {
    if (!is_failed(slot.node)) look.found.slots.push_back(slot);
  }
  InOrderOfDomains(look.found);
  return std::move(look.found);
}

bool SlotPlacer::CouldReplaceLater(WorkloadId workload, std::span<const NameId> failed) {
  const Workload& row = state_.workloads().at(workload);
  const Reservation& has = row.reserved;
  model::State::SlotTrial trial(state_);
  Look look = LookAt(workload, has, trial);
  return std::ranges::all_of(has.topologies, [&](const TopologyPlaces& places) {
    if (std::ranges::none_of(places.shares, IsFailed{failed})) return true;
    return FlavorByTopology(row, has, places.pod_set) != nullptr &&
           ReplaceIn(look, places, failed, FlavorTopology::View::kFuture).has_value();
  });
}

bool SlotPlacer::CouldHold(const PlacesRefusal& refusal) {
  // What those have who would leave is not counted.
  if (refusal.beside_leaving || refusal.may_evict) return true;
  return places_.Of(state_, evaluator_, refusal.why.class_id,
                    refusal.evicts_below.value_or(kNobodyLeaves)) >=
         static_cast<Amount>(refusal.fewest.value_or(refusal.needed));
}

}  // namespace berth::cycle
