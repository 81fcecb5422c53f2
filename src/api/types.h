#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared.h"
#include "base/time.h"

// Typed, read-only views of the fields that berth acts on. They lose what they
// don't know, so they are never written back: writers patch documents. Lists keep the document's
// order; maps are sorted by key. Decoded by codec/decode.h.
namespace berth::api {

using StringMap = std::vector<std::pair<std::string, std::string>>;  // Sorted by key, keys unique.

[[nodiscard]] std::optional<std::string_view> Find(const StringMap& map, std::string_view key);

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool block_owner_deletion = false;
  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
  std::string name;
  std::string namespace_name;
  std::string uid;
  std::string resource_version;
  std::string generate_name;
  int64_t generation = 0;
  Instant creation_time;
  std::optional<Instant> deletion_time;
  std::optional<int64_t> deletion_grace_seconds;
  StringMap labels;
  StringMap annotations;
  std::vector<OwnerReference> owners;
  std::vector<std::string> finalizers;
  bool operator==(const ObjectMeta&) const = default;
};

// A resource amount in the unit berth counts it in: milli for cpu, whole units (bytes, items) for
// everything else, both rounded up as Kubernetes rounds requests and clamped to limits::kAmountMax.
// Negative amounts never decode.
struct ResourceAmount {
  std::string name;
  int64_t amount = 0;
  bool operator==(const ResourceAmount&) const = default;
};
using ResourceList = std::vector<ResourceAmount>;  // Sorted by name, names unique.

[[nodiscard]] std::optional<int64_t> Find(const ResourceList& list, std::string_view name);

struct ContainerPort {
  std::string name;
  int64_t port = 0;  // containerPort
  int64_t host_port = 0;
  std::string host_ip;
  std::string protocol;  // Empty means TCP.
  bool operator==(const ContainerPort&) const = default;
};

struct Container {
  std::string name;
  std::string image;
  ResourceList requests;
  ResourceList limits;
  bool restart_always = false;  // An init container that is a sidecar.
  std::vector<ContainerPort> ports;
  bool restarts_all = false;  // One of restartPolicyRules has the action RestartAllContainers.
  bool operator==(const Container&) const = default;
};

enum class ContainerState : uint8_t { kNone, kWaiting, kRunning, kTerminated };

// What the kubelet says of one container.
struct ContainerStatus {
  std::string name;
  ContainerState state = ContainerState::kNone;
  std::string reason;     // Of the state.
  Instant started;        // Running or terminated.
  Instant finished;       // Terminated; when it waits, of lastState.terminated.
  int64_t exit_code = 0;  // As `finished`.
  int64_t restart_count = 0;
  bool ready = false;
  std::optional<ResourceList> allocated;  // status.containerStatuses[].allocatedResources
  std::optional<ResourceList> actual;     // status.containerStatuses[].resources.requests
  bool operator==(const ContainerStatus&) const = default;
};

struct Toleration {
  std::string key;
  std::string op;  // "" and "Equal", "Exists", "Lt", "Gt".
  std::string value;
  std::string effect;
  std::optional<int64_t> seconds;
  bool operator==(const Toleration&) const = default;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  std::optional<Instant> added;
  bool operator==(const Taint&) const = default;
};

// One requirement of a label selector or a node selector term.
struct Requirement {
  std::string key;
  std::string op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt.
  std::vector<std::string> values;
  bool operator==(const Requirement&) const = default;
};

struct LabelSelector {
  StringMap match_labels;
  std::vector<Requirement> match_expressions;
  bool operator==(const LabelSelector&) const = default;
};

struct TopologySpreadConstraint {
  int64_t max_skew = 0;
  std::string topology_key;
  std::string when_unsatisfiable;
  std::optional<LabelSelector> label_selector;
  std::vector<std::string> match_label_keys;
  std::optional<int64_t> min_domains;
  std::string node_affinity_policy;  // Empty: Honor.
  std::string node_taints_policy;    // Empty: Ignore.

  [[nodiscard]] bool hard() const { return when_unsatisfiable == "DoNotSchedule"; }
  bool operator==(const TopologySpreadConstraint&) const = default;
};

struct PodAffinityTerm {
  std::optional<LabelSelector> label_selector;  // None selects no pod.
  std::vector<std::string> namespaces;          // With none and no selector of them: the pod's own.
  std::optional<LabelSelector> namespace_selector;
  std::string topology_key;
  bool operator==(const PodAffinityTerm&) const = default;
};

struct PreferredPodAffinityTerm {
  int64_t weight = 0;
  PodAffinityTerm term;
  bool operator==(const PreferredPodAffinityTerm&) const = default;
};

// Of spec.affinity.podAffinity or podAntiAffinity.
struct PodAffinity {
  std::vector<PodAffinityTerm> required;
  std::vector<PreferredPodAffinityTerm> preferred;
  [[nodiscard]] bool empty() const { return required.empty() && preferred.empty(); }
  bool operator==(const PodAffinity&) const = default;
};

struct NodeSelectorTerm {
  std::vector<Requirement> match_expressions;
  std::vector<Requirement> match_fields;
  bool operator==(const NodeSelectorTerm&) const = default;
};

struct PreferredTerm {
  int64_t weight = 0;
  NodeSelectorTerm term;
  bool operator==(const PreferredTerm&) const = default;
};

// One of spec.volumes that decides where the pod can run.
struct PodVolume {
  std::string name;
  // "persistentVolumeClaim", "ephemeral", "gcePersistentDisk", "awsElasticBlockStore", "iscsi",
  // "rbd".
  std::string source;
  // claimName, pdName, volumeID or iqn; of rbd the pool and the image.
  std::string id;
  std::vector<std::string> monitors;  // Of rbd.
  bool read_only = false;
  bool operator==(const PodVolume&) const = default;
};

struct PodCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  Instant transition;
  bool operator==(const PodCondition&) const = default;
};

// What a pod asks for. Its node is none of it: pods of one workload then have equal specs, and
// share one.
struct PodSpec {
  std::string scheduler_name;
  std::string priority_class_name;
  std::string runtime_class_name;
  int64_t priority = 0;
  std::string preemption_policy;
  std::vector<std::string> scheduling_gates;
  std::vector<Container> containers;
  std::vector<Container> init_containers;
  std::optional<ResourceList> pod_requests;  // spec.resources.requests: pod-level resources.
  ResourceList pod_limits;                   // spec.resources.limits.
  ResourceList overhead;
  StringMap node_selector;
  std::optional<std::vector<NodeSelectorTerm>> required_node_affinity;
  std::vector<PreferredTerm> preferred_node_affinity;
  PodAffinity pod_affinity;
  PodAffinity pod_anti_affinity;
  std::vector<Toleration> tolerations;
  std::vector<TopologySpreadConstraint> spread_constraints;  // spec.topologySpreadConstraints
  std::string restart_policy;
  std::optional<int64_t> termination_grace_seconds;
  std::optional<int64_t> active_deadline_seconds;
  bool host_network = false;
  std::optional<bool> host_users;
  std::string hostname;
  std::string subdomain;
  // Volumes of PersistentVolumeClaims: the claims' names; of ephemeral volumes, whose claims are
  // called by the pod and the volume, the latter's.
  std::vector<std::string> claims;
  std::vector<std::string> ephemeral_volumes;
  std::vector<std::string> image_volumes;  // References of volumes that are images.
  std::vector<PodVolume> volumes;          // Those and disks, in order.
  // What berth can't place yet and must say so about instead of ignoring: the spec's paths, e.g.
  // "spec.volumes.gcePersistentDisk".
  std::vector<std::string> unsupported;
  bool operator==(const PodSpec&) const = default;
};

struct Pod {
  ObjectMeta meta;
  Shared<PodSpec> spec;
  std::string node_name;  // spec.nodeName

  // status
  std::string phase;
  std::string status_reason;  // status.reason, e.g. "Evicted".
  std::string pod_ip;
  std::vector<std::string> other_pod_ips;  // Of status.podIPs.
  std::string nominated_node_name;
  std::vector<PodCondition> conditions;
  std::vector<ContainerStatus> container_statuses;
  std::vector<ContainerStatus> init_container_statuses;
  std::optional<ResourceList> pod_allocated;  // status.allocatedResources
  std::optional<ResourceList> pod_actual;     // status.resources.requests
  std::string resize;  // Reason of the condition PodResizePending, e.g. "Infeasible".
  Instant start_time;

  bool operator==(const Pod&) const = default;
};

struct NodeCondition {
  std::string type;
  std::string status;
  std::string reason;
  Instant heartbeat;
  Instant transition;
  bool operator==(const NodeCondition&) const = default;
};

// Of status.images.
struct NodeImage {
  std::vector<std::string> names;
  int64_t size = 0;  // Bytes.
  bool operator==(const NodeImage&) const = default;
};

struct Node {
  ObjectMeta meta;
  bool unschedulable = false;
  std::string pod_cidr;
  std::vector<Taint> taints;
  ResourceList capacity;
  ResourceList allocatable;
  std::vector<NodeCondition> conditions;
  std::vector<std::string> declared_features;
  std::vector<NodeImage> images;
  bool operator==(const Node&) const = default;
};

}  // namespace berth::api
