#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/object_table.h"
#include "model/pods.h"
#include "model/slots.h"
#include "model/workload_stage.h"

// Workloads: what is to run, and the quota that it needs before it may
// (docs/design/0011-quota.md).
namespace berth::model {

// Why nothing of a LocalQueue is admitted, whatever quota there is.
enum class LocalQueueBar : uint8_t {
  kNone,
  kStopped,    // By its own stopPolicy.
  kNamespace,  // The ClusterQueue's namespaceSelector leaves its namespace out.
};

// Kueue's LocalQueue as it is: through which the workloads of a namespace come to a ClusterQueue.
struct LocalQueueUpsert {
  std::string uid;
  std::string key;            // "namespace/name"; workloads name it so.
  std::string cluster_queue;  // Whether it is there or not.
  LocalQueueBar bar = LocalQueueBar::kNone;
};

// The object of that uid is gone.
struct LocalQueueRemove {
  std::string uid;
};

struct LocalQueue {
  OwnerId uid;  // Invalid in a free row.
  KeyId key;
  NameId cluster_queue;
  LocalQueueBar bar = LocalQueueBar::kNone;

  void AddTo(Hasher& hasher) const;
};
using LocalQueueTable = ObjectTable<LocalQueue, LocalQueueId>;

// So many pods, one after the other, stand together in a domain of that level.
struct SliceWish {
  NameId level;
  uint32_t size = 1;
  auto operator<=>(const SliceWish&) const = default;
};

// Where the pods are to stand in relation to each other, by a topology of their nodes.
struct TopologyWish {
  bool asked = false;  // Else by a topology only where their queue has no other flavors.
  NameId required;     // A level: one domain of it holds them all.
  NameId preferred;    // Likewise, if there is such a domain.
  bool unconstrained = false;
  NameId group;                   // Pod sets of one group stand together; invalid: none.
  std::vector<SliceWish> slices;  // Each within the one before.
  auto operator<=>(const TopologyWish&) const = default;
  void AddTo(Hasher& hasher) const;
};

// Pods of a workload that are alike.
struct WorkloadSlots {
  NameId name;  // Of the pod set.
  ClassId class_id;
  uint32_t count = 0;
  uint32_t done = 0;         // So many more there were, that are done.
  uint32_t missing_max = 0;  // So many of `count` it may start without.
  TopologyWish topology = {};
  bool ours = true;         // We are to place them.
  int32_t priority = 0;     // Of the pods, once they are there.
  bool preempts = false;    // Whether they may evict pods of less.
  NameId unsupported = {};  // What they ask for that nobody here can honour, in words; or invalid.
  // The key of the group that they name, which they may not start without; invalid: none, or they
  // get no places with their quota. And their role in it.
  NameId gang = {};
  NameId role = {};
  bool operator==(const WorkloadSlots&) const = default;
};

// What a pod set is charged of one flavor.
struct QuotaCharge {
  uint32_t pod_set = 0;
  NameId flavor;
  uint32_t count = 0;  // Pods; above 0.
  BundleId amounts;    // Of each.
  auto operator<=>(const QuotaCharge&) const = default;
};

// What a workload has, or gets, of the quota of a ClusterQueue.
struct Reservation {
  NameId cluster_queue;  // Invalid: nothing.
  std::vector<QuotaCharge> charges;
  std::vector<uint32_t> counts = {};  // Of pods by pod set; empty: of what was decided all, else
                                      // not told.
  // Where the pods go: one for each, in the order of pod sets. Empty: wherever they find room. Of a
  // promise, what is kept on nodes for it.
  std::vector<Slot> slots = {};
  // By a topology; of those pod sets that are placed by one, in their order. Not of a promise.
  std::vector<TopologyPlaces> topologies = {};
  bool operator==(const Reservation&) const = default;
};
// The same without where its pods go.
[[nodiscard]] Reservation WithoutPlaces(Reservation reservation);
// Null: the pod set is not placed by a topology.
[[nodiscard]] const TopologyPlaces* FindTopology(const Reservation& reservation, uint32_t pod_set);

// Why a workload has to give way to another.
enum class VictimReason : uint8_t {
  kInQueue,               // That is more important, in its own queue.
  kReclaimed,             // Its queue, or one above it, uses what the other's has.
  kReclaimedByBorrowing,  // Likewise, though the other's uses more than it has, too.
  kOnNodes,               // Pods of it stand where the other's are to stand.
};

// A Workload's object as it is.
struct WorkloadUpsert {
  std::string uid;
  std::string key;          // "namespace/name"
  std::string local_queue;  // Its key, as above.
  std::string job;          // The uid of the Job that it is of; empty: none.
  int64_t generation = 0;   // Of its spec.
  int32_t priority = 0;
  NameId priority_class = {};  // The WorkloadPriorityClass that it is from; invalid: from none.
  WorkloadStatus status = {};
  std::vector<WorkloadSlots> slots = {};  // By pod set.
  Reservation reserved = {};              // status.admission; read while status.reserved.
  std::vector<NameId> unhealthy = {};     // status.unhealthyNodes.
  std::vector<NameId> checks = {};        // Its admission checks that are Ready.
  bool checks_pending = false;            // It has others.
};

// The object of that uid is gone.
struct WorkloadRemove {
  std::string uid;
};

// One workload, as observed and as decided.
struct Workload {
  // Observed.
  OwnerId uid;  // Invalid in a free row.
  KeyId key;
  KeyId local_queue;
  OwnerId job;  // Invalid: of none.
  int64_t generation = 0;
  int32_t priority = 0;
  NameId priority_class;
  WorkloadStatus status;
  std::vector<WorkloadSlots> slots;
  Reservation reserved;
  std::vector<NameId> unhealthy;
  std::vector<NameId> checks;
  bool checks_pending = false;

  // Decided.
  // While `write` is under way: what it is to get; of one that has quota, with what places, or
  // nothing where it is to give up what it has.
  Reservation decided;
  WriteStage write = WriteStage::kNone;
  uint32_t errors = 0;  // Writes in a row that failed.
  Instant not_before;   // Error backoff: not tried again until then.
  // What it is to get once others are gone, and those of them that are evicted for that; and what
  // was decided for it, so that nobody else gets that should the write come to nothing.
  Reservation promised;
  std::vector<WorkloadId> victims;  // Each names it as its claimant.
  // For whom it is evicted, and why; invalid: for none of those that are known.
  WorkloadId claimant;
  VictimReason evicted_because = VictimReason::kInQueue;
  // While its eviction is not tried, since it was refused so often in a row; zero: it may be.
  Instant spared_until;
  uint32_t spared_count = 0;

  bool operator==(const Workload&) const = default;
  void AddTo(Hasher& hasher) const;
};

// What it is charged: what its object says it has, or what was decided and may come true. Nothing
// once it is finished.
[[nodiscard]] const Reservation& ChargedTo(const Workload& workload);
// From when on it may be tried, nothing being charged: IsQueued() and the error backoff of our own
// writes. Never() if more than time is missing.
[[nodiscard]] Instant WaitsFrom(const Workload& workload);
// Whether the WorkloadPriorityClass that it is from is another than before, or gives it another
// priority. What nobody else's class gives is its own to say.
[[nodiscard]] bool IsOfOtherPriorityClass(const Workload& before, const Workload& now);
// Whether its object is to be told that it is evicted, and was not yet.
[[nodiscard]] bool IsToBeEvicted(const Workload& workload);

using WorkloadTable = ObjectTable<Workload, WorkloadId>;

}  // namespace berth::model
