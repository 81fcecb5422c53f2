#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "cycle/class_cache.h"
#include "model/plan.h"
#include "model/state.h"
#include "place/evaluate.h"

namespace berth::cycle {

// How many more pods of the class and pin the node could hold, whatever anybody was promised there.
[[nodiscard]] model::Amount PlacesOn(const model::State& state, const place::Evaluator& evaluator,
                                     model::ClassId class_id, const model::Pin& pin,
                                     model::NodeId n);

// The same summed up over all nodes: no more can be placed. Kept from the touch log, a touched node
// one evaluation; derived data.
class ClassPlaces {
 public:
  [[nodiscard]] model::Amount Of(const model::State& state, const place::Evaluator& evaluator,
                                 model::ClassId class_id);

 private:
  struct Counted {
    std::vector<model::Amount> by_node;
    model::Amount all = 0;
    uint64_t position = 0;  // In the touch log.
  };
  std::map<model::ClassId, Counted> counted_;
};

// Finds nodes for the pods that a workload would have (docs/design/0012-joint-placement.md): each
// the one that such a pod would get, beside those before it. Greedy: of equal pods as many as can
// be placed at all are placed.
//
// A value of one cycle: the state and the caches outlive it.
class SlotPlacer {
 public:
  SlotPlacer(model::State& state, const place::Evaluator& evaluator, ClassCaches& caches,
             ClassPlaces& places)
      : state_(state), evaluator_(evaluator), caches_(caches), places_(places) {}

  using Places = std::expected<std::vector<model::Slot>, model::PlacesRefusal>;
  // Of all pods of the reservation that we are to place. Nothing is claimed. `leaving`: workloads
  // whose pods and places count as gone. O(pods x log nodes), and O(nodes) for a refusal.
  [[nodiscard]] Places Place(model::WorkloadId workload, const model::Reservation& reservation,
                             std::span<const model::WorkloadId> leaving = {});
  // Whether what refused it may have come to an end: no if it would be refused all the same.
  [[nodiscard]] bool CouldHold(const model::PlacesRefusal& refusal);

 private:
  [[nodiscard]] model::ClassId ClassFor(const model::Workload& row, uint32_t pod_set,
                                        const model::Reservation& reservation);
  [[nodiscard]] model::PlacesRefusal RefusalOf(model::WorkloadId workload, uint32_t pod_set,
                                               model::ClassId class_id) const;

  model::State& state_;
  const place::Evaluator& evaluator_;
  ClassCaches& caches_;
  ClassPlaces& places_;
};

}  // namespace berth::cycle
