#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/types.h"
#include "api/workloads.h"
#include "base/shared.h"
#include "base/time.h"

// The typed views of Kueue's kinds (kueue.x-k8s.io/v1beta2), as api/types.h: what berth acts on of
// them and nothing else. Absent fields stand at Kueue's defaults. Amounts of quota are in the units
// of ResourceAmount and clamped to limits::kQuotaMax.
namespace berth::api {

// On a Job: the LocalQueue of its namespace that it gets its quota from. It is held until then.
inline constexpr std::string_view kQueueNameLabel = "kueue.x-k8s.io/queue-name";
// Of which pod set of its workload a pod is.
inline constexpr std::string_view kPodSetLabel = "kueue.x-k8s.io/podset";
// On a Workload: the uid of the job that it is for.
inline constexpr std::string_view kJobUidLabel = "kueue.x-k8s.io/job-uid";
// Keeps what is deleted until nobody uses it: a queue, flavor, topology or check
// (control/in_use.h); a Workload, until nothing of its job runs and the job has got back what it
// came with.
inline constexpr std::string_view kInUseFinalizer = "kueue.x-k8s.io/resource-in-use";
// On a job: the WorkloadPriorityClass of its Workload.
inline constexpr std::string_view kWorkloadPriorityLabel = "kueue.x-k8s.io/priority-class";

struct ResourceFlavor {
  ObjectMeta meta;
  StringMap node_labels;
  std::vector<Taint> node_taints;
  std::vector<Toleration> tolerations;
  std::string topology;
  bool operator==(const ResourceFlavor&) const = default;
};

// What a queue or cohort has of one resource of one flavor.
struct ResourceQuota {
  std::string resource;
  int64_t nominal = 0;
  std::optional<int64_t> borrowing_limit;  // Nothing: none.
  std::optional<int64_t> lending_limit;
  bool operator==(const ResourceQuota&) const = default;
};

struct FlavorQuotas {
  std::string flavor;
  std::vector<ResourceQuota> resources;  // In the document's order.
  bool operator==(const FlavorQuotas&) const = default;
};

struct ResourceGroup {
  std::vector<std::string> covered;  // In the document's order, as the flavors.
  std::vector<FlavorQuotas> flavors;
  bool operator==(const ResourceGroup&) const = default;
};

// What of a flavor's quota is in use, as the status of a queue tells it.
struct ResourceUsage {
  std::string resource;
  int64_t total = 0;     // Amounts of quota.
  int64_t borrowed = 0;  // Of that; a LocalQueue does not tell.
  bool operator==(const ResourceUsage&) const = default;
};
struct FlavorUsage {
  std::string flavor;
  std::vector<ResourceUsage> resources;
  bool operator==(const FlavorUsage&) const = default;
};
using FlavorUsages = std::vector<FlavorUsage>;  // In the document's order.

// Whether a queue admits: None, Hold (no more), HoldAndDrain (nor what it admitted).
enum class StopPolicy : uint8_t { kNone, kHold, kHoldAndDrain };

struct ClusterQueuePreemption {
  std::string within_cluster_queue = "Never";
  std::string reclaim_within_cohort = "Never";
  std::string borrow_within_cohort = "Never";
  std::optional<int64_t> borrow_priority_threshold;
  bool operator==(const ClusterQueuePreemption&) const = default;
};

// A check that workloads pass before they are admitted; if flavors are named, those that get one of
// them only.
struct RequiredCheck {
  std::string name;
  std::vector<std::string> flavors;
  bool operator==(const RequiredCheck&) const = default;
};

struct ClusterQueue {
  ObjectMeta meta;
  std::string cohort;  // Empty: none.
  std::vector<ResourceGroup> resource_groups;
  bool strict_fifo = false;
  std::optional<LabelSelector> namespace_selector;  // Nothing: no namespace.
  std::string when_can_borrow = "MayStopSearch";
  std::string when_can_preempt = "TryNextFlavor";
  std::string fungibility_preference;
  ClusterQueuePreemption preemption;
  std::vector<RequiredCheck> checks;
  StopPolicy stop = StopPolicy::kNone;

  std::vector<Condition> conditions;
  int64_t pending = 0;
  int64_t reserving = 0;
  int64_t admitted = 0;
  FlavorUsages flavors_reserved;
  FlavorUsages flavors_used;
  bool operator==(const ClusterQueue&) const = default;
};

struct Cohort {
  ObjectMeta meta;
  std::string parent;  // Empty: none.
  std::vector<ResourceGroup> resource_groups;
  bool operator==(const Cohort&) const = default;
};

struct LocalQueue {
  ObjectMeta meta;
  std::string cluster_queue;
  StopPolicy stop = StopPolicy::kNone;

  std::vector<Condition> conditions;
  int64_t pending = 0;
  int64_t reserving = 0;
  int64_t admitted = 0;
  FlavorUsages flavors_reserved;
  FlavorUsages flavors_used;
  bool operator==(const LocalQueue&) const = default;
};

struct AdmissionCheck {
  ObjectMeta meta;
  std::string controller;

  std::vector<Condition> conditions;
  bool operator==(const AdmissionCheck&) const = default;
};

struct Topology {
  ObjectMeta meta;
  std::vector<std::string> levels;  // Labels of nodes, the widest first.
  bool operator==(const Topology&) const = default;
};

struct WorkloadPriorityClass {
  ObjectMeta meta;
  int64_t value = 0;
  bool operator==(const WorkloadPriorityClass&) const = default;
};

// So many pods, one after the other, stand together in a domain of that level.
struct TopologySlice {
  std::string level;
  int64_t size = 1;
  bool operator==(const TopologySlice&) const = default;
};

// Where pods of a set are to stand in relation to each other.
struct TopologyRequest {
  std::string required;   // The level of which one domain has to hold them all.
  std::string preferred;  // Likewise, if there is such a domain.
  bool unconstrained = false;
  std::string pod_index_label;  // Of pods: their rank.
  std::string sub_group_index_label;
  std::optional<int64_t> sub_group_count;
  std::string group;  // Of pod sets that stand together.
  // Of podSetSliceRequiredTopology, or podsetSliceRequiredTopologyConstraints; the widest first.
  std::vector<TopologySlice> slices;
  bool operator==(const TopologyRequest&) const = default;
};

// Pods of a workload that are alike.
struct WorkloadPodSet {
  std::string name = "main";
  StringMap labels;  // Of its template, as is the rest.
  StringMap annotations;
  Shared<PodSpec> spec;
  int64_t count = 1;
  std::optional<int64_t> min_count;
  std::optional<TopologyRequest> topology;
  bool operator==(const WorkloadPodSet&) const = default;
};

// A place of a topology, and how many pods stand there.
struct TopologyDomain {
  std::vector<std::string> values;  // One a level of the assignment.
  int64_t count = 1;
  bool operator==(const TopologyDomain&) const = default;
};

// Where the pods of a set stand.
struct TopologyAssignment {
  std::vector<std::string> levels;  // Labels of nodes, the widest first.
  std::vector<TopologyDomain> domains;
  bool operator==(const TopologyAssignment&) const = default;
};

// What a pod set was given.
struct PodSetAssignment {
  std::string name = "main";
  StringMap flavors;   // By resource.
  ResourceList usage;  // Of all its pods; amounts of quota.
  std::optional<int64_t> count;
  std::optional<TopologyAssignment> topology;
  bool topology_delayed = false;  // delayedTopologyRequest is Pending;
  bool topology_came = false;     // Ready.
  bool operator==(const PodSetAssignment&) const = default;
};

struct Admission {
  std::string cluster_queue;
  std::vector<PodSetAssignment> pod_sets;
  bool operator==(const Admission&) const = default;
};

// Where the pods of a set are to go, though no topology is asked for.
struct PodSetPlacement {
  std::string name = "main";
  TopologyAssignment topology;  // Of one level: the names of nodes.
  // Of each pod, in the order of domains, "" for none; empty: they hold none.
  std::vector<std::string> devices;
  bool operator==(const PodSetPlacement&) const = default;
};

// What the annotation berth.dev/placement says, of the admission by that queue.
inline constexpr std::string_view kPlacementAnnotation = "berth.dev/placement";
struct Placement {
  std::string cluster_queue;
  std::vector<PodSetPlacement> pod_sets;
  bool operator==(const Placement&) const = default;
};

// What a check wants of the pods of a set, beside what their template says.
struct PodSetUpdate {
  std::string name = "main";
  StringMap labels;
  StringMap annotations;
  StringMap node_selector;
  std::vector<Toleration> tolerations;
  bool operator==(const PodSetUpdate&) const = default;
};

struct CheckState {
  std::string name;
  std::string state;  // Pending, Ready, Retry, Rejected.
  std::string message;
  Instant transition;
  std::optional<int64_t> requeue_after;  // Seconds.
  int64_t retries = 0;
  std::string updates;  // podSetUpdates, JSON; empty: none.
  bool operator==(const CheckState&) const = default;
};

struct Workload {
  ObjectMeta meta;
  std::vector<WorkloadPodSet> pod_sets;
  std::string queue;                 // LocalQueue of its namespace.
  std::string priority_class;        // A name;
  std::string priority_class_group;  // of which of the kinds of classes.
  int64_t priority = 0;
  bool active = true;
  std::optional<int64_t> max_execution;  // Seconds that it may be admitted.

  std::vector<Condition> conditions;
  int64_t past_execution = 0;  // Seconds that it was, before this time.
  std::optional<Admission> admission;
  std::optional<Instant> requeue_at;  // status.requeueState
  int64_t requeue_count = 0;
  std::vector<std::pair<std::string, int64_t>> reclaimable;  // By pod set, in the document's order.
  std::vector<CheckState> checks;
  std::vector<std::string> unhealthy_nodes;
  bool operator==(const Workload&) const = default;
};

}  // namespace berth::api
