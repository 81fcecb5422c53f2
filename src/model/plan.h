#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/flavor_reason.h"
#include "model/groups.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/reason.h"
#include "model/topology_refusal.h"
#include "model/verdicts.h"

namespace berth::model {

class State;

// Bind the pod to the node. The fence is the pod's uid; the claim is already in the ledger.
struct BindDecision {
  PodId pod;
  OwnerId pod_uid;
  NodeId node;
  NameId node_name;
  OwnerId node_uid;
  DeviceSlots devices;
  int64_t score = 0;            // Total, as it was compared.
  uint32_t feasible_count = 0;  // Nodes that fitted; its volumes aside, but among asked extenders.
  bool operator==(const BindDecision&) const = default;
};

// Promise the node to the pod, and evict the victims for it. The claims are already in the ledger.
struct PreemptDecision {
  struct Victim {
    PodId pod;
    OwnerId uid;
    bool operator==(const Victim&) const = default;
  };
  PodId pod;
  OwnerId pod_uid;
  NodeId node;
  NameId node_name;
  std::vector<Victim> victims;  // Most important first. None: enough is leaving already.
  uint32_t pdb_violations = 0;
  bool operator==(const PreemptDecision&) const = default;
};

// Ask extenders whether the pod may go to the nodes, and to which best. What they say returns as an
// ExternalVerdict of the pod's uid and the query.
struct ExternalQuery {
  PodId pod;
  OwnerId pod_uid;
  uint64_t query = 0;
  std::vector<NodeId> nodes = {};  // That it fits, in the order of NodeTable::rank.
  // Or: where it would fit without these. Then `nodes` is empty.
  std::vector<NodeVictims> victims = {};
  bool operator==(const ExternalQuery&) const = default;
};

// Why a pod was not asked whose room it may take.
enum class PreemptionBar : uint8_t {
  kNone,                // It was.
  kPolicy,              // Its preemptionPolicy is Never.
  kVictimsToLeave,      // Pods are to leave the node that it is promised; none is deleted yet.
  kVictimsTerminating,  // They leave.
  kExtenders,           // They permit no node's.
};

// Why no eviction makes room for a pod: of all nodes, how many for which reason.
struct PreemptionRefusal {
  PreemptionBar bar = PreemptionBar::kNone;
  uint32_t nodes_count = 0;     // Present ones.
  uint32_t not_helpful = 0;     // No eviction changes that they refuse.
  uint32_t no_victims = 0;      // They hold nothing of lower priority.
  std::vector<Reason> reasons;  // Why others refuse even without all of it; as in a Refusal.
  bool operator==(const PreemptionRefusal&) const = default;
};

// What a group waits for.
struct GangRefusal {
  KeyId group;
  uint32_t needed = 0;    // Places at once. 0: it is not there.
  uint32_t found = 0;     // Of these; without a class: members that wait.
  uint32_t released = 0;  // Members that give back their nodes, and are not gone yet.
  bool promised = false;  // All that it needs is reserved for it, until others are gone.
  // Members for whom the last write was refused or failed, and that are tried again: what it lacks
  // are their places.
  uint32_t failing = 0;
  // Of equal members, so many would fit if nothing stood on any node. Nothing: nobody counted.
  std::optional<uint32_t> most = {};
  GroupBar bar = GroupBar::kNone;  // It waits for its queue, whatever room there is.
  NameId queue = {};               // Likewise.
  bool operator==(const GangRefusal&) const = default;
};

// Why a class (with its pin) has no node: one per attempt, shared by the pods it refuses.
struct Refusal {
  ClassId class_id;
  NameId pinned_to;             // Invalid: not pinned.
  uint32_t nodes_count = 0;     // Nodes looked at.
  std::vector<Reason> reasons;  // In a fixed order: kind, resource, detail.
  // Why no eviction helps the most important of the pods it refuses. Nothing: nobody asked, for
  // nobody is evicted here, or no node would do.
  std::optional<PreemptionRefusal> preemption;
  // It is of the members of a group: of the first that found no place beside the others. The class
  // is invalid when the group lacks members.
  std::optional<GangRefusal> gang;
  bool operator==(const Refusal&) const = default;
  void AddTo(Hasher& hasher) const;
};

struct PodRefused {
  PodId pod;
  OwnerId pod_uid;
  uint32_t refusal = 0;  // Index in Plan::refusals.
  bool operator==(const PodRefused&) const = default;
};

// What keeps a workload waiting before any quota is looked at.
enum class QueueBar : uint8_t {
  kNone,
  kNoLocalQueue,       // There is none of the name that it gives.
  kLocalQueueStopped,  // LocalQueueBar.
  kNamespace,          // LocalQueueBar.
  kNoClusterQueue,     // There is none of the name that its LocalQueue gives.
  kClusterQueueStopped,
  kCohortCycle,  // Above its ClusterQueue.
  kInactive,     // Something that its ClusterQueue names is not there, or not active.
  kBehind,       // Who stands before it in a StrictFIFO queue finds no quota.
  kFull,         // The scheduler holds as many claims as it can.
  kUnsupported,  // Its pods are to get places with its quota, and nobody here can place them.
  kTooMany,      // It has more pods than a scheduler holds.
  kGang,         // Its pods are of a group that could not start with them.
};

// Why pods that a workload would have find no nodes, though there is quota for them.
struct PlacesRefusal {
  uint32_t pod_set = 0;
  uint32_t needed = 0;
  uint32_t found = 0;
  std::optional<uint32_t> fewest = {};  // As few would do. Nothing: all that are needed.
  bool beside_leaving = false;  // Even if those were gone that would have to leave for its quota.
  bool may_evict = false;       // Others may have to leave for its places.
  // Pods of lower priority than this may be evicted for it, and no such eviction would do. Nothing:
  // none may be, or it is promised its places.
  std::optional<int64_t> evicts_below = {};
  uint32_t evicted = 0;  // Pods that are to leave nodes for it: their room is its own then.
  // So many would find nodes if nothing stood on any. Nothing: all of them, or nobody counted.
  std::optional<uint32_t> most = {};
  Refusal why;                                   // Of the first that found none, beside the others.
  std::optional<TopologyRefusal> topology = {};  // Where they are placed by one: why they are not.
  bool operator==(const PlacesRefusal&) const = default;
};

// Why a workload has no quota: one thing at a time.
struct WorkloadRefusal {
  QueueBar bar = QueueBar::kNone;
  // kBehind: the first of the queue. kGang: who of those that are to start with it gets nothing; or
  // invalid. Good as long as that waits.
  KeyId behind;
  std::optional<Refusal> gang = {};  // kGang: why. Nothing: the group is not there.
  // Without a bar: of the first pod set that gets no flavors.
  Unfit unfit = Unfit::kNone;
  uint32_t pod_set = 0;
  std::vector<FlavorReason> reasons = {};
  TopologyFault fault = TopologyFault::kNone;  // There is quota, but none to be placed by topology.
  std::vector<NameId> fault_flavors = {};      // That have topologies.
  // There is quota, but of the flavors of nodes that can't hold its pods: of all that were tried.
  std::vector<PlacesRefusal> places = {};
  bool promised = false;       // It gets its quota once those are gone that leave for it.
  uint32_t victims_count = 0;  // Who was found to have to leave when it was promised.
  bool shared = false;         // All of them left for others already then.
  // Who would have to leave, and is spared since the server refused that it is evicted: the first,
  // and of how many. Good as long as that holds quota.
  KeyId spared = {};
  uint32_t spared_count = 0;
  bool operator==(const WorkloadRefusal&) const = default;
  void AddTo(Hasher& hasher) const;
};

// The workload gets what State::workloads() says was decided.
struct ReserveDecision {
  WorkloadId workload;
  OwnerId uid;
  bool operator==(const ReserveDecision&) const = default;
};

// The workload is evicted, for what State::workloads() says.
struct EvictDecision {
  WorkloadId workload;
  OwnerId uid;
  bool operator==(const EvictDecision&) const = default;
};

// What else is due of a workload that has quota. Which one it is follows from what was observed, at
// the moment of use (cycle/second_pass.h).
enum class Pass : uint8_t {
  kNone,
  kPlace,    // Its checks are passed: its pods get places, and it is admitted.
  kReplace,  // Pods whose nodes failed get others.
  kLetGo,    // The group of its pods could not start with them any more, and has not.
};

// The workload gets the places that State::workloads() says were decided; or is evicted, for there
// are none, or it could not start there.
struct PassDecision {
  WorkloadId workload;
  OwnerId uid;
  Pass pass = Pass::kNone;
  std::vector<NameId> failed = {};            // kReplace: the nodes that this is about.
  std::optional<PlacesRefusal> refusal = {};  // It is evicted: why it gets no places.
  std::optional<Refusal> gang = {};  // kLetGo: why its group can't start. Nothing: it is not there.
  [[nodiscard]] bool evicts() const { return refusal || pass == Pass::kLetGo; }
  bool operator==(const PassDecision&) const = default;
};

// Nothing is decided of a workload of which something is due, for what its pods are to be placed by
// is not there, or others are to be admitted with it.
struct PassHeldUp {
  WorkloadId workload;
  OwnerId uid;
  std::optional<PlacesRefusal> refusal = {};
  bool awaits_mates = false;  // Neither: not any more.
  KeyId awaited = {};         // Likewise: for whom it waits; invalid: for none that has quota.
  bool operator==(const PassHeldUp&) const = default;
};

// What one cycle decided, as data. Ids are good until the next Apply.
struct Plan {
  std::vector<BindDecision> binds;           // In the order decided.
  std::vector<PreemptDecision> preemptions;  // Likewise.
  std::vector<ExternalQuery> queries;        // Likewise.
  // Whose promise began or ended: State::NominationToWrite says what is to be written of it.
  std::vector<PodId> nominations;
  // Whose members were placed, or told why they wait.
  std::vector<GroupId> groups;
  // Members that give back their nodes: their gang can't be completed.
  std::vector<PodId> released;
  std::vector<Refusal> refusals;
  std::vector<PodRefused> refused;
  std::vector<ReserveDecision> reservations;  // In the order decided.
  std::vector<EvictDecision> evictions;       // Of workloads; likewise.
  std::vector<PodId> evicted;                 // For workloads that are to get their room; likewise.
  std::vector<PassDecision> passes;           // Likewise.
  std::vector<PassHeldUp> held_up;            // Likewise; told each time that it was asked.
  // Who waits for quota, for another reason than before.
  std::vector<WorkloadId> workloads;
  bool more = false;                   // The bound per cycle was met: call again at once.
  Instant wake_at = Instant::Never();  // When a timer of a reason is due next.

  [[nodiscard]] bool empty() const {
    return binds.empty() && refused.empty() && preemptions.empty() && nominations.empty() &&
           released.empty() && reservations.empty() && evictions.empty() && evicted.empty() &&
           passes.empty() && workloads.empty() && queries.empty();
  }
  void AddTo(Hasher& hasher) const;
};

// One line per decision and refusal, with names: what golden tests compare.
[[nodiscard]] std::string Print(const Plan& plan, const State& state);
[[nodiscard]] std::string Print(const Reason& reason, const State& state);

}  // namespace berth::model
