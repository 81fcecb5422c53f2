#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/ledger.h"

// Where the pods of admitted workloads are to go, and which of them came
// (docs/design/0012-joint-placement.md).
namespace berth::model {

// Of what is promised to workloads on nodes: no pod is more important, but for one that has a place
// of a workload already.
inline constexpr int32_t kPriorityOfPromise = std::numeric_limits<int32_t>::max() - 1;

// The place that a workload has for one of its pods.
struct Slot {
  uint32_t pod_set = 0;
  NameId node;  // There or not.
  DeviceSlots devices;
  bool operator==(const Slot&) const = default;
};

// Pods of a set that stand, or are to stand, in a domain of a topology's lowest level.
struct TopologyShare {
  std::vector<NameId> values;  // Of the levels.
  uint32_t count = 0;
  bool operator==(const TopologyShare&) const = default;
};

// Where the pods of a set stand by a topology.
struct TopologyPlaces {
  uint32_t pod_set = 0;
  std::vector<NameId> levels;         // Labels of nodes, the widest first; those that are told.
  std::vector<TopologyShare> shares;  // Empty: they get their places when it is admitted.
  bool operator==(const TopologyPlaces&) const = default;
};

// The slots of workloads, and the pods of the jobs that they are of. A slot that no pod took is
// a claim of the workload on its node; one that was taken is none, for the pod has its own, unless
// that leaves.
//
// Which pod took which slot is noted here; all else follows from rows. State keeps it. O(log slots)
// per pod, but O(slots that are free) for one that was placed before it took one.
class SlotTable {
 public:
  struct Place {
    Slot slot;
    PodId pod;      // Who took it; invalid: nobody.
    ClaimId claim;  // Of the workload on its node; invalid: it was taken, is not needed any more,
                    // or others got its room when the pod that had it was gone. It begins when
                    // that pod begins to leave.
    std::optional<int32_t> priority = {};  // Of the pod that took it last.
  };

  // In the order of the placement. Valid until the next change.
  [[nodiscard]] std::span<const Place> PlacesOf(WorkloadId workload) const;
  // The place that the pod took; null for none. Likewise.
  [[nodiscard]] const Place* PlaceOf(PodId pod) const;
  // The workloads that say they are of the job: one, unless somebody makes more. The oldest first,
  // of equals that of the lowest uid: in this order its pods look for places. Valid until the next
  // change.
  [[nodiscard]] std::span<const WorkloadId> WorkloadsOf(OwnerId job) const;
  // What is kept on nodes for a workload that is promised its quota: of each slot of the promise,
  // invalid where its node is not there. Likewise.
  [[nodiscard]] std::span<const ClaimId> PromisedOf(WorkloadId workload) const;
  // Claims of workloads on nodes.
  [[nodiscard]] uint32_t free_count() const { return free_count_; }
  // Pods that count for the job and took no slot. Valid until the next change.
  [[nodiscard]] std::span<const PodId> SeekersOf(OwnerId job) const;
  // Workloads whose pods name the group of that key. In an order that decides nothing. Valid until
  // the next change.
  [[nodiscard]] std::span<const WorkloadId> WorkloadsOf(NameId gang) const;

  void AddTo(Hasher& hasher) const;

 private:
  friend class State;

  struct OfWorkload {
    std::vector<Place> places;  // By pod set.
    std::set<uint32_t> free;    // Those with a claim that nobody has.
    std::vector<ClaimId> promised;
    std::vector<NameId> gangs;  // In order: which its pods name.
  };
  struct OfPod {
    OwnerId job;  // That it counts for; invalid: none.
    WorkloadId workload;
    std::optional<uint32_t> place;
  };
  struct OfJob {
    std::vector<WorkloadId> workloads;  // The oldest first.
    std::vector<PodId> seekers;         // In no order that decides anything.
  };
  [[nodiscard]] OfWorkload& of(WorkloadId workload);
  [[nodiscard]] OfPod& of(PodId pod);
  // The pod counts for that job from now on, and has no place. Where it was before is done.
  void File(PodId pod, OwnerId job);
  void Unfile(PodId pod);
  void Take(PodId pod, int32_t priority, WorkloadId workload, uint32_t place);
  // `at`: how many of the job's workloads go before it.
  void Join(OwnerId job, WorkloadId workload, size_t at);
  void Quit(OwnerId job, WorkloadId workload);
  void DropJob(OwnerId job);
  // Which gangs its pods name from now on; in order.
  void SetGangs(WorkloadId workload, std::vector<NameId> gangs);

  std::vector<OfWorkload> of_workload_;
  std::vector<OfPod> of_pod_;
  std::map<OwnerId, OfJob> jobs_;
  std::map<NameId, std::vector<WorkloadId>> of_gang_;
  uint32_t free_count_ = 0;
  std::vector<NodeId> left_;  // Rows that may be needed no more; empty between changes.
};

}  // namespace berth::model
