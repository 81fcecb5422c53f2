#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cycle/slots.h"
#include "model/state.h"
#include "quota/flavors.h"
#include "quota/preempt.h"

namespace berth::cycle {

// What a workload gets with those flavors: one charge of a pod set and flavor. `counts`: as of a
// Reservation.
[[nodiscard]] model::Reservation ReservationOf(model::State& state, model::NameId cluster_queue,
                                               const model::Workload& workload,
                                               const quota::FlavorAssignment& flavors,
                                               const std::vector<uint32_t>& counts);

// The victims' rows.
[[nodiscard]] std::vector<model::WorkloadId> RowsOf(const model::State& state,
                                                    std::span<const quota::Victim> victims);

// Asks for the places of one workload while its flavors are looked for, and those who would have to
// leave: a placer's answers to questions of quota/. Its pods get places when it is admitted, not
// now, where it has checks to pass: then it lacks none.
//
// A value of one look; all outlive it.
class WantedPlaces {
 public:
  WantedPlaces(model::State& state, SlotPlacer& placer, model::WorkloadId workload,
               model::NameId cluster_queue)
      : state_(state), placer_(placer), workload_(workload), cluster_queue_(cluster_queue) {}

  // Of so many pods by pod set from now on; empty: of all.
  void SetCounts(std::span<const uint32_t> counts) { counts_.assign(counts.begin(), counts.end()); }
  // quota::MisplacedOf.
  [[nodiscard]] std::optional<quota::Misplaced> Misplaced(const quota::FlavorAssignment& flavors,
                                                          quota::Room room);
  // Whether they are all there once the victims are gone, and those that leave for others.
  [[nodiscard]] bool AreThereWithout(const quota::FlavorAssignment& flavors,
                                     std::span<const quota::Victim> victims);

 private:
  [[nodiscard]] model::Reservation For(const quota::FlavorAssignment& flavors);

  model::State& state_;
  SlotPlacer& placer_;
  model::WorkloadId workload_;
  model::NameId cluster_queue_;
  std::vector<uint32_t> counts_;
};

}  // namespace berth::cycle
