#include "cycle/wanted_places.h"

#include <map>
#include <utility>

namespace berth::cycle {

using model::NameId;
using model::WorkloadId;

model::Reservation ReservationOf(model::State& state, NameId cluster_queue,
                                 const model::Workload& workload,
                                 const quota::FlavorAssignment& flavors,
                                 const std::vector<uint32_t>& counts) {
  model::Reservation reservation{.cluster_queue = cluster_queue, .charges = {}, .counts = counts};
  for (uint32_t i = 0; i < flavors.pod_sets.size(); ++i) {
    const uint32_t count = counts.empty() ? workload.slots[i].count : counts[i];
    std::map<NameId, std::vector<model::ResourceAmount>> amounts;  // Of a pod.
    for (const quota::FlavorChoice& choice : flavors.pod_sets[i].choices) {
      if (choice.amount == 0) continue;
      amounts[choice.flavor].push_back(
          {.resource = choice.resource, .amount = choice.amount / count});
    }
    for (const auto& [flavor, list] : amounts) {
      reservation.charges.push_back({.pod_set = i,
                                     .flavor = flavor,
                                     .count = count,
                                     .amounts = state.vocabulary().bundles.Intern(list)});
    }
  }
  return reservation;
}

std::vector<WorkloadId> RowsOf(const model::State& state, std::span<const quota::Victim> victims) {
  std::vector<WorkloadId> rows;
  for (const quota::Victim& victim : victims)
    rows.push_back(state.workloads().FindUid(victim.workload.owner));
  return rows;
}

model::Reservation WantedPlaces::For(const quota::FlavorAssignment& flavors) {
  return ReservationOf(state_, cluster_queue_, state_.workloads().at(workload_), flavors, counts_);
}

std::optional<quota::Misplaced> WantedPlaces::Misplaced(const quota::FlavorAssignment& flavors,
                                                        quota::Room room) {
  const model::Reservation reservation = For(flavors);
  if (state_.PlacesComeLater(reservation)) return std::nullopt;
  SlotPlacer::Places places = room == quota::Room::kEmpty
                                  ? placer_.PlaceInEmpty(workload_, reservation)
                                  : placer_.Place(workload_, reservation);
  if (places) return std::nullopt;
  const uint32_t pod_set = places.error().pod_set;
  const std::vector<NameId>& by = flavors.pod_sets[pod_set].topology_flavors;
  // Nobody is evicted for the nodes of others.
  if (by.empty()) return std::nullopt;
  return quota::Misplaced{.pod_set = pod_set, .flavor = by.front()};
}

bool WantedPlaces::AreThereWithout(const quota::FlavorAssignment& flavors,
                                   std::span<const quota::Victim> victims) {
  const model::Reservation reservation = For(flavors);
  if (state_.PlacesComeLater(reservation)) return true;
  return placer_.Place(workload_, reservation, RowsOf(state_, victims)).has_value();
}

}  // namespace berth::cycle
