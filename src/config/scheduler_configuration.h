#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/json.h"
#include "base/time.h"
#include "config/feature_gates.h"
#include "config/plugins.h"

// kube-scheduler's configuration as a value: kubescheduler.config.k8s.io/v1
// KubeSchedulerConfiguration of Kubernetes 1.36. Pure functions; safe from any thread.
// Source: k8s.io/kube-scheduler/config/v1 and k8s.io/component-base/config/v1alpha1.
namespace berth::config {

inline constexpr std::string_view kSchedulerVersion = "kubescheduler.config.k8s.io/v1";
inline constexpr std::string_view kSchedulerKind = "KubeSchedulerConfiguration";

// Members stand at upstream's defaults, unless they say otherwise.

struct LeaderElection {
  bool leader_elect = true;
  Duration lease_duration = Duration::Seconds(15);
  Duration renew_deadline = Duration::Seconds(10);
  Duration retry_period = Duration::Seconds(2);
  std::string resource_lock = "leases";
  std::string resource_name = "kube-scheduler";
  std::string resource_namespace = "kube-system";
  bool operator==(const LeaderElection&) const = default;
};

struct ClientConnection {
  std::string kubeconfig = {};
  std::string accept_content_types = {};
  std::string content_type = "application/vnd.kubernetes.protobuf";
  double qps = 50;
  int32_t burst = 100;
  bool operator==(const ClientConnection&) const = default;
};

struct Plugin {
  std::string name = {};
  int32_t weight = 0;  // 0: 1, where it scores.
  bool operator==(const Plugin&) const = default;
};

struct PluginSet {
  std::vector<Plugin> enabled = {};
  std::vector<Plugin> disabled = {};
  bool operator==(const PluginSet&) const = default;
};

struct Plugins {
  std::array<PluginSet, kPointsCount> at = {};  // By Point.
  PluginSet multi_point = {};
  bool operator==(const Plugins&) const = default;
};

struct DefaultPreemptionArgs {
  int32_t min_candidate_nodes_percentage = 10;
  int32_t min_candidate_nodes_absolute = 100;
  bool operator==(const DefaultPreemptionArgs&) const = default;
};

struct InterPodAffinityArgs {
  int32_t hard_pod_affinity_weight = 1;
  bool ignore_preferred_terms_of_existing_pods = false;
  bool operator==(const InterPodAffinityArgs&) const = default;
};

struct NodeAffinityArgs {
  api::Json added_affinity = nullptr;  // A NodeAffinity of core/v1, as it stands in the file.
  bool operator==(const NodeAffinityArgs&) const = default;
};

struct ResourceSpec {
  std::string name = {};
  int64_t weight = 0;  // 0: 1.
  bool operator==(const ResourceSpec&) const = default;
};

struct NodeResourcesBalancedAllocationArgs {
  std::vector<ResourceSpec> resources = {};  // Empty: cpu and memory.
  bool operator==(const NodeResourcesBalancedAllocationArgs&) const = default;
};

struct ShapePoint {
  int32_t utilization = 0;  // Percent.
  int32_t score = 0;        // 0 to 10.
  bool operator==(const ShapePoint&) const = default;
};

struct RequestedToCapacityRatio {
  std::vector<ShapePoint> shape = {};
  bool operator==(const RequestedToCapacityRatio&) const = default;
};

struct ScoringStrategy {
  std::string type = {};  // LeastAllocated, MostAllocated, RequestedToCapacityRatio.
  std::vector<ResourceSpec> resources = {};  // Empty: cpu and memory.
  std::optional<RequestedToCapacityRatio> requested_to_capacity_ratio = {};
  bool operator==(const ScoringStrategy&) const = default;
};

struct NodeResourcesFitArgs {
  std::vector<std::string> ignored_resources = {};
  std::vector<std::string> ignored_resource_groups = {};
  std::optional<ScoringStrategy> scoring_strategy = {};  // Set, once completed.
  bool operator==(const NodeResourcesFitArgs&) const = default;
};

struct SpreadConstraint {
  int32_t max_skew = 0;
  std::string topology_key = {};
  std::string when_unsatisfiable = {};
  api::Json label_selector = nullptr;
  std::optional<int32_t> min_domains = {};
  std::optional<std::string> node_affinity_policy = {};
  std::optional<std::string> node_taints_policy = {};
  std::vector<std::string> match_label_keys = {};
  bool operator==(const SpreadConstraint&) const = default;
};

struct PodTopologySpreadArgs {
  std::vector<SpreadConstraint> default_constraints = {};
  std::string defaulting_type = {};  // Empty: System. List.
  bool operator==(const PodTopologySpreadArgs&) const = default;
};

struct VolumeBindingArgs {
  int64_t bind_timeout_seconds = 600;
  std::optional<std::vector<ShapePoint>> shape = {};  // Only with StorageCapacityScoring.
  bool operator==(const VolumeBindingArgs&) const = default;
};

struct DynamicResourcesArgs {
  std::optional<Duration> filter_timeout = {};   // 10 s, where its gate is on.
  std::optional<Duration> binding_timeout = {};  // 10 min, where its gates are on.
  bool operator==(const DynamicResourcesArgs&) const = default;
};

// None: of a plugin that has no arguments, or that kube-scheduler doesn't bring along.
using PluginArgs =
    std::variant<std::monostate, DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs,
                 NodeAffinityArgs, NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs,
                 PodTopologySpreadArgs, VolumeBindingArgs>;

struct PluginConfig {
  std::string name = {};
  PluginArgs args = {};
  bool operator==(const PluginConfig&) const = default;
};

struct Profile {
  std::optional<std::string> scheduler_name = {};  // Set, once completed.
  std::optional<int32_t> percentage_of_nodes_to_score = {};
  Plugins plugins = {};  // As given: Expand() says what becomes of them.
  // As given, and once completed those of the other plugins at their defaults, by name.
  std::vector<PluginConfig> plugin_config = {};
  bool operator==(const Profile&) const = default;
};

struct ExtenderTls {
  bool insecure = false;
  std::string server_name = {};
  std::string cert_file = {};
  std::string key_file = {};
  std::string ca_file = {};
  std::string cert_data = {};  // Base64, as it stands in the file, as the two below.
  std::string key_data = {};
  std::string ca_data = {};
  bool operator==(const ExtenderTls&) const = default;
};

struct ManagedResource {
  std::string name = {};
  bool ignored_by_scheduler = false;
  bool operator==(const ManagedResource&) const = default;
};

struct Extender {
  std::string url_prefix = {};
  std::string filter_verb = {};
  std::string preempt_verb = {};
  std::string prioritize_verb = {};
  int64_t weight = 0;
  std::string bind_verb = {};
  bool enable_https = false;
  std::optional<ExtenderTls> tls_config = {};
  Duration http_timeout = {};  // 0: 5 s.
  bool node_cache_capable = false;
  std::vector<ManagedResource> managed_resources = {};
  bool ignorable = false;
  bool operator==(const Extender&) const = default;
};

struct SchedulerConfiguration {
  int32_t parallelism = 16;
  LeaderElection leader_election = {};
  ClientConnection client_connection = {};
  bool enable_profiling = true;
  std::optional<bool> enable_contention_profiling = {};  // That of enable_profiling.
  int32_t percentage_of_nodes_to_score = 0;
  int64_t pod_initial_backoff_seconds = 1;
  int64_t pod_max_backoff_seconds = 10;
  std::vector<Profile> profiles = {};  // One at least, once completed.
  std::vector<Extender> extenders = {};
  bool delay_cache_until_active = false;
  bool operator==(const SchedulerConfiguration&) const = default;
};

// What is wrong with a configuration, all at once: each with its line where it has one, its field,
// and what to do.
using Problems = std::vector<std::string>;

// Of a file in YAML or JSON: decoded strictly, completed with the defaults, checked as upstream.
// Cost: linear in the text, which is at most kConfigurationBytesMax.
[[nodiscard]] std::expected<SchedulerConfiguration, Problems> ReadSchedulerConfiguration(
    std::string_view text, const FeatureGates& gates = {});
inline constexpr size_t kConfigurationBytesMax = size_t{1} << 20;

// What holds without a file.
[[nodiscard]] SchedulerConfiguration DefaultSchedulerConfiguration(const FeatureGates& gates = {});

// As YAML, with the default plugins in multiPoint, as kube-scheduler writes it: printed and read
// again it means the same. Arguments of plugins that kube-scheduler doesn't bring along are left
// out. REQUIRES: completed.
[[nodiscard]] std::string PrintSchedulerConfiguration(const SchedulerConfiguration& configuration,
                                                      const FeatureGates& gates = {});

}  // namespace berth::config
