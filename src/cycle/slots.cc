#include "cycle/slots.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "cycle/why.h"

namespace berth::cycle {

using model::Amount;
using model::ClassId;
using model::NodeId;
using model::PlacesRefusal;
using model::Reservation;
using model::Slot;
using model::Workload;
using model::WorkloadId;

Amount PlacesOn(const model::State& state, const place::Evaluator& evaluator, ClassId class_id,
                const model::Pin& pin, NodeId n) {
  const model::Viewer all{.owner = {}, .priority = std::numeric_limits<int32_t>::max()};
  if (!evaluator.Filter(state, class_id, n, &all, pin).fits()) return 0;
  Amount places = std::numeric_limits<Amount>::max();
  const model::BundleId requests = state.vocabulary().classes.at(class_id).requests;
  for (const model::ResourceAmount& a : state.vocabulary().bundles.View(requests)) {
    if (a.amount > 0)
      places = std::min(places, state.ledger().nodes().free(a.resource, n.value) / a.amount);
  }
  return places;
}

// ---- Counting --------------------------------------------------------------------------------

Amount ClassPlaces::Of(const model::State& state, const place::Evaluator& evaluator,
                       ClassId class_id) {
  const model::TouchLog& log = state.touches();
  const auto [at, fresh] = counted_.try_emplace(class_id);
  Counted& counted = at->second;
  const auto count = [&](NodeId n) {
    const bool there = state.nodes().used(n) && state.nodes().present(n);
    // So that no sum of them overflows.
    const Amount now =
        there ? std::min<Amount>(PlacesOn(state, evaluator, class_id, {}, n), limits::kPodsMax) : 0;
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
  std::set<model::NameId> seen;
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

PlacesRefusal SlotPlacer::RefusalOf(WorkloadId workload, uint32_t pod_set, ClassId class_id) const {
  const Workload& row = state_.workloads().at(workload);
  const model::Viewer viewer{.owner = row.uid, .priority = row.priority};
  PlacesRefusal refusal{.pod_set = pod_set};
  refusal.why = WhyNotClass(state_, evaluator_, class_id, viewer).refusal;
  return refusal;
}

SlotPlacer::Places SlotPlacer::Place(WorkloadId workload, const Reservation& reservation,
                                     std::span<const WorkloadId> leaving) {
  const Workload& row = state_.workloads().at(workload);
  const model::Viewer viewer{.owner = row.uid, .priority = row.priority};
  std::vector<ClassId> classes;
  for (uint32_t i = 0; i < row.slots.size(); ++i) classes.push_back(ClassFor(row, i, reservation));
  std::vector<Slot> slots;
  model::State::SlotTrial trial(state_);
  for (const WorkloadId other : leaving) trial.Without(other);
  for (uint32_t i = 0; i < row.slots.size(); ++i) {
    if (!row.slots[i].ours) continue;
    const uint32_t count = reservation.counts.empty() ? row.slots[i].count : reservation.counts[i];
    for (uint32_t found = 0; found < count; ++found) {
      ClassCache& cache = caches_.Get(classes[i], state_.nodes().size());
      cache.CatchUp(state_, evaluator_, classes[i]);
      const NodeId node = cache.Choose(state_, evaluator_, viewer).node;
      if (!node.valid()) {
        PlacesRefusal refusal = RefusalOf(workload, i, classes[i]);
        refusal.needed = count;
        refusal.found = found;
        return std::unexpected(std::move(refusal));
      }
      const Slot slot{
          .pod_set = i,
          .node = state_.nodes().name(node),
          .devices = evaluator_.ChooseDevices(state_, classes[i], node, &viewer, /*draw=*/0)};
      trial.Place(workload, classes[i], slot);
      slots.push_back(slot);
    }
  }
  // As its object will tell them.
  std::ranges::sort(slots, {}, [&](const Slot& slot) {
    return std::tuple(slot.pod_set, state_.NameOf(slot.node), slot.devices.mask);
  });
  return slots;
}

bool SlotPlacer::CouldHold(const PlacesRefusal& refusal) {
  // What those have who would leave is not counted.
  if (refusal.beside_leaving) return true;
  return places_.Of(state_, evaluator_, refusal.why.class_id) >=
         static_cast<Amount>(refusal.needed);
}

}  // namespace berth::cycle
