#pragma once

#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "cycle/class_cache.h"
#include "cycle/topology.h"
#include "model/plan.h"
#include "model/state.h"
#include "place/evaluate.h"
#include "place/preempt.h"

namespace berth::cycle {

// How many more pods of the class and pin the node could hold, whatever anybody was promised there.
[[nodiscard]] model::Amount PlacesOn(const model::State& state, const place::Evaluator& evaluator,
                                     model::ClassId class_id, const model::Pin& pin,
                                     model::NodeId n);

// What is asked for in a count of places: nothing leaves; or all leaves that is leaving, and all
// that holds its room with less than this priority.
inline constexpr int64_t kNobodyLeaves = std::numeric_limits<int64_t>::max();
// Or nothing stands anywhere.
inline constexpr int64_t kAllEmpty = kNobodyLeaves - 1;
// How many more the node will hold then. O(claims on the node).
[[nodiscard]] model::Amount PlacesToCome(const model::State& state,
                                         const place::Evaluator& evaluator,
                                         const place::Preemptor& pod, model::NodeId n,
                                         int64_t below);

// The same summed up over all nodes: no more can be placed. Kept from the touch log, a touched node
// one evaluation; derived data. 8 bytes a node, class and priority; least recently asked for are
// dropped, and counted anew in O(nodes). Copying copies none.
class ClassPlaces {
 public:
  static constexpr size_t kBytesMax = size_t{32} << 20;
  explicit ClassPlaces(size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}
  ClassPlaces(const ClassPlaces& other) : bytes_max_(other.bytes_max_) {}
  ClassPlaces& operator=(const ClassPlaces& other) {
    return this == &other ? *this : *this = ClassPlaces(other);
  }
  ClassPlaces(ClassPlaces&&) = default;
  ClassPlaces& operator=(ClassPlaces&&) = default;

  // `below`: who leaves.
  [[nodiscard]] model::Amount Of(const model::State& state, const place::Evaluator& evaluator,
                                 model::ClassId class_id, int64_t below = kNobodyLeaves);
  [[nodiscard]] size_t classes_kept() const { return counted_.size(); }

 private:
  struct Counted {
    std::vector<model::Amount> by_node;
    model::Amount all = 0;
    uint64_t position = 0;  // In the touch log.
    uint64_t asked_at = 0;  // The call.
  };
  using Key = std::pair<model::ClassId, int64_t>;
  void DropOldest(const Key& kept);

  size_t bytes_max_;
  uint64_t calls_ = 0;
  std::map<Key, Counted> counted_;
};

// Finds nodes for the pods that a workload would have (docs/design/0012-joint-placement.md): each
// the one that such a pod would get, beside those before it. Greedy: of equal pods as many as can
// be placed at all are placed. Pods whose flavor has a topology go where that has them stand
// (docs/design/0013-topology.md), whether others are placed here or not.
//
// A value of one cycle: the state and the caches outlive it, and what nodes say of themselves does
// not change meanwhile.
class SlotPlacer {
 public:
  struct Options {
    bool joint = false;   // Pods without a topology are placed, too.
    bool evicts = false;  // Others may be evicted for these, as pods may evict.
  };
  SlotPlacer(model::State& state, const place::Evaluator& evaluator, ClassCaches& caches,
             ClassPlaces& places, place::PreemptionScratch& scratch, Options options)
      : state_(state),
        evaluator_(evaluator),
        caches_(caches),
        places_(places),
        scratch_(scratch),
        joint_(options.joint),
        evicts_(options.joint && options.evicts) {}

  // Another that decides alike, for a copy of the state.
  [[nodiscard]] SlotPlacer For(model::State& copy, ClassCaches& caches, ClassPlaces& places,
                               place::PreemptionScratch& scratch) const {
    return {copy, evaluator_, caches, places, scratch, {.joint = joint_, .evicts = evicts_}};
  }

  struct Found {
    std::vector<model::Slot> slots = {};
    std::vector<model::TopologyPlaces> topologies = {};
  };
  using Places = std::expected<Found, model::PlacesRefusal>;
  // Places that workloads will have once others are gone. By workload; not quota, but where.
  using Promised = std::map<model::WorkloadId, model::Reservation>;
  // From now on nobody else gets them. They are looked up whenever somebody is placed.
  void Heed(const Promised& promised) { promised_ = &promised; }
  // Of all pods of the reservation that we are to place. Nothing is claimed. `leaving`: workloads
  // whose pods and places count as gone; if there are any, so do those for whom others leave. With
  // none, such places that are there now, and still are beside what is promised once all of those
  // are gone. O(pods x log nodes), and O(nodes x log nodes) for a topology; O(nodes) for a refusal;
  // and what is promised.
  [[nodiscard]] Places Place(model::WorkloadId workload, const model::Reservation& reservation,
                             std::span<const model::WorkloadId> leaving = {});
  // Places that the pods will have once others are gone, and the pods that have to be evicted for
  // that, besides all that leaves. Those by topology are places that are there.
  struct ToCome {
    Found found = {};
    std::vector<model::PodId> victims = {};
  };
  using Ahead = std::expected<ToCome, model::PlacesRefusal>;
  [[nodiscard]] Ahead PlaceToCome(model::WorkloadId workload, const model::Reservation& reservation,
                                  std::span<const model::WorkloadId> leaving);
  // Whether any of its pods may evict others. If none may it waits for what there is.
  [[nodiscard]] bool MayEvict(model::WorkloadId workload) const;
  // Whether what it is promised on nodes can still come true, once all that leaves is gone.
  [[nodiscard]] bool StandsAsPromised(model::WorkloadId workload);
  // Of those pods that a topology places, if no workload stood there. The slots are told where its
  // lowest level is the node.
  [[nodiscard]] Places PlaceInEmpty(model::WorkloadId workload,
                                    const model::Reservation& reservation);
  // Places for those pods that stand on `failed` nodes by a topology; the others stay. What the
  // workload has is in the ledger.
  [[nodiscard]] Places Replace(model::WorkloadId workload, std::span<const model::NameId> failed);
  // Which pod sets get their places later, when the workload is admitted: those by topology that
  // have pods.
  [[nodiscard]] std::vector<model::TopologyPlaces> PlacedLater(
      model::WorkloadId workload, const model::Reservation& reservation) const;
  // Of pods that await places by a topology: why there is none to place them by. `lacking`: as of
  // Place().
  [[nodiscard]] std::optional<model::PlacesRefusal> WhyNoTopology(
      model::WorkloadId workload, const model::Reservation& lacking) const;
  // The same of what Replace is to place anew.
  [[nodiscard]] std::optional<model::PlacesRefusal> WhyNoTopologyToReplaceIn(
      model::WorkloadId workload, std::span<const model::NameId> failed) const;
  // Whether there will be places for those of Replace once all that leaves is gone, besides what is
  // promised to others.
  [[nodiscard]] bool CouldReplaceLater(model::WorkloadId workload,
                                       std::span<const model::NameId> failed);
  // Whether any of its pods are placed here.
  [[nodiscard]] bool PlacesAny(model::WorkloadId workload,
                               const model::Reservation& reservation) const;
  // Whether what refused it may have come to an end: no if it would be refused all the same.
  [[nodiscard]] bool CouldHold(const model::PlacesRefusal& refusal);

 private:
  // One look at a workload's pods.
  struct Look {
    model::WorkloadId workload;
    const model::Reservation& reservation;
    model::Viewer viewer;
    model::State::SlotTrial& trial;
    std::vector<model::ClassId> classes;  // By pod set.
    Found found = {};
    bool in_empty = false;                         // PlaceInEmpty.
    std::vector<model::PodId>* victims = nullptr;  // PlaceToCome.
  };
  using Refused = std::optional<model::PlacesRefusal>;
  [[nodiscard]] Places PlaceIn(model::State::SlotTrial& trial, model::WorkloadId workload,
                               const model::Reservation& reservation);
  void TakeOut(model::State::SlotTrial& trial, model::WorkloadId workload,
               std::span<const model::WorkloadId> leaving);
  [[nodiscard]] bool AnyPromisedBut(model::WorkloadId workload) const;
  [[nodiscard]] std::set<model::WorkloadId> LeavingForOthers(
      model::WorkloadId workload, std::span<const model::WorkloadId> but = {}) const;
  void TakePromised(model::State::SlotTrial& trial, model::WorkloadId workload,
                    std::span<const model::WorkloadId> but = {});
  [[nodiscard]] bool StandsBesidePromised(model::WorkloadId workload,
                                          const model::Reservation& reservation,
                                          const Found& found);
  void NoteInEmpty(Look& look, const FlavorTopology& topology, uint32_t pod_set,
                   std::span<const TopologyShare> shares) const;
  [[nodiscard]] Look LookAt(model::WorkloadId workload, const model::Reservation& reservation,
                            model::State::SlotTrial& trial);
  [[nodiscard]] model::ClassId ClassFor(const model::Workload& row, uint32_t pod_set,
                                        const model::Reservation& reservation);
  [[nodiscard]] const model::Flavor* FlavorByTopology(const model::Workload& row,
                                                      const model::Reservation& reservation,
                                                      uint32_t pod_set) const;
  [[nodiscard]] FlavorTopology& TopologyOf(const model::Flavor& flavor);
  [[nodiscard]] Refused PlaceByTopology(Look& look);
  [[nodiscard]] Refused PlaceTogether(Look& look, std::span<const uint32_t> pod_sets);
  [[nodiscard]] Refused PutOnNodes(Look& look, FlavorTopology& topology, uint32_t pod_set,
                                   std::span<const TopologyShare> shares);
  [[nodiscard]] FlavorTopology::Places ReplaceIn(Look& look, const model::TopologyPlaces& places,
                                                 std::span<const model::NameId> failed,
                                                 FlavorTopology::View view);
  [[nodiscard]] Refused PlaceAnywhere(Look& look, uint32_t pod_set);
  [[nodiscard]] bool IsStopped(const model::Claim& claim) const;
  [[nodiscard]] model::Amount StoppedOn(model::NodeId node, model::ResourceId resource) const;
  [[nodiscard]] bool PortsStand(model::WorkloadId workload, model::NodeId node,
                                std::span<const model::HostPort> ports) const;
  void AddSorted(std::vector<model::Slot> slots, Look& look) const;
  [[nodiscard]] Refused ReserveAnywhere(Look& look, uint32_t pod_set);
  [[nodiscard]] Refused PlacePods(Look& look);
  [[nodiscard]] uint32_t CountOf(model::WorkloadId workload, const model::Reservation& reservation,
                                 uint32_t pod_set) const;
  [[nodiscard]] uint32_t CountOf(const Look& look, uint32_t pod_set) const {
    return CountOf(look.workload, look.reservation, pod_set);
  }
  [[nodiscard]] model::PlacesRefusal RefusalOf(const Look& look, uint32_t pod_set) const;
  [[nodiscard]] std::optional<uint32_t> MostOnEmpty(model::ClassId class_id, uint32_t needed) const;
  // Of a pod set with quota of no flavor that has a topology.
  [[nodiscard]] model::TopologyRefusal WhyNoTopologyOf(const model::Reservation& reservation,
                                                       uint32_t pod_set) const;

  model::State& state_;
  const place::Evaluator& evaluator_;
  ClassCaches& caches_;
  ClassPlaces& places_;
  place::PreemptionScratch& scratch_;
  bool joint_;
  bool evicts_;
  const Promised* promised_ = nullptr;                  // Null: nothing is.
  std::map<model::NameId, FlavorTopology> topologies_;  // By flavor; of this cycle's nodes.
};

}  // namespace berth::cycle
