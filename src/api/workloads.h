#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types.h"
#include "base/bytes.h"
#include "base/time.h"

// Typed, read-only views of the workload kinds and of what the controllers need beside them. As in
// api/types.h they lose what they don't know and are never written back. Absent numbers stand at
// Kubernetes' defaults, so a view of an object that was never defaulted reads the same. Decoded by
// codec/decode.h.
namespace berth::api {

// What every object has, whatever its kind.
struct ObjectHead {
  std::string api_version;
  std::string kind;
  ObjectMeta meta;
  bool operator==(const ObjectHead&) const = default;
};

// A condition of anything but a pod or node.
struct Condition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  Instant updated;     // lastUpdateTime or lastProbeTime.
  Instant transition;  // lastTransitionTime.
  int64_t observed_generation = 0;
  bool operator==(const Condition&) const = default;
};

// The condition of a type, or nullptr.
[[nodiscard]] const Condition* Find(const std::vector<Condition>& conditions,
                                    std::string_view type);
// Whether there is one, and its status is True.
[[nodiscard]] bool IsTrue(const std::vector<Condition>& conditions, std::string_view type);

// A pod template, kept as the texts that pods are made of.
struct PodTemplate {
  StringMap labels;
  StringMap annotations;
  std::vector<std::string> finalizers;
  Bytes spec;  // JSON text of template.spec.
  // The whole template with sorted keys, without nulls, empty lists and maps of metadata, and
  // without the label pod-template-hash: two templates mean the same pods iff these are equal.
  Bytes canonical;
  std::string restart_policy;  // template.spec.restartPolicy.
  bool operator==(const PodTemplate&) const = default;
};

struct IntOrPercent {
  int64_t value = 0;
  bool percent = false;
  bool operator==(const IntOrPercent&) const = default;
};

struct ReplicaSet {
  ObjectMeta meta;
  int64_t replicas = 1;
  int64_t min_ready_seconds = 0;
  LabelSelector selector;
  PodTemplate pod_template;

  int64_t status_replicas = 0;
  int64_t fully_labeled_replicas = 0;
  int64_t ready_replicas = 0;
  int64_t available_replicas = 0;
  int64_t terminating_replicas = 0;
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  bool operator==(const ReplicaSet&) const = default;
};

// Its selector is a plain map, which stands in selector.match_labels.
struct ReplicationController : ReplicaSet {};

struct ControllerRevision {
  ObjectMeta meta;
  int64_t revision = 0;
  PodTemplate pod_template;  // data.spec.template
  bool operator==(const ControllerRevision&) const = default;
};

// One of volumeClaimTemplates.
struct ClaimTemplate {
  std::string name;
  StringMap labels;
  StringMap annotations;
  Bytes spec;  // JSON text.
  bool operator==(const ClaimTemplate&) const = default;
};

struct StatefulSet {
  ObjectMeta meta;
  int64_t replicas = 1;
  int64_t min_ready_seconds = 0;
  int64_t first_ordinal = 0;  // ordinals.start
  std::string service_name;
  LabelSelector selector;
  PodTemplate pod_template;
  std::vector<ClaimTemplate> claim_templates;
  bool parallel = false;                   // podManagementPolicy
  bool on_delete = false;                  // updateStrategy.type; otherwise RollingUpdate.
  std::optional<int64_t> partition;        // Nothing: updateStrategy.rollingUpdate isn't there.
  bool delete_claims_with_set = false;     // ...RetentionPolicy.whenDeleted: Delete
  bool delete_claims_when_scaled = false;  // ...RetentionPolicy.whenScaled: Delete
  int64_t revision_history_limit = 10;

  int64_t status_replicas = 0;
  int64_t ready_replicas = 0;
  int64_t available_replicas = 0;
  int64_t current_replicas = 0;
  int64_t updated_replicas = 0;
  int64_t observed_generation = 0;
  int64_t collision_count = 0;
  std::string current_revision;
  std::string update_revision;
  bool operator==(const StatefulSet&) const = default;
};

struct DaemonSet {
  ObjectMeta meta;
  int64_t min_ready_seconds = 0;
  LabelSelector selector;
  PodTemplate pod_template;
  bool on_delete = false;  // updateStrategy.type; otherwise RollingUpdate.
  IntOrPercent max_unavailable{.value = 1};
  IntOrPercent max_surge{.value = 0};
  int64_t revision_history_limit = 10;

  int64_t current_scheduled = 0;
  int64_t desired_scheduled = 0;
  int64_t misscheduled = 0;
  int64_t ready = 0;
  int64_t updated_scheduled = 0;
  int64_t available = 0;
  int64_t unavailable = 0;
  int64_t observed_generation = 0;
  int64_t collision_count = 0;
  bool operator==(const DaemonSet&) const = default;
};

enum class Concurrency : uint8_t { kAllow, kForbid, kReplace };

struct ActiveJob {
  std::string name;
  std::string uid;
  bool operator==(const ActiveJob&) const = default;
};

struct CronJob {
  ObjectMeta meta;
  std::string schedule;
  std::optional<std::string> time_zone;
  std::optional<int64_t> starting_deadline_seconds;
  Concurrency concurrency = Concurrency::kAllow;
  bool suspend = false;
  std::optional<int64_t> successful_history_limit = 3;
  std::optional<int64_t> failed_history_limit = 1;
  // Of jobTemplate.
  StringMap job_labels;
  StringMap job_annotations;
  Bytes job_spec;  // JSON text.

  std::vector<ActiveJob> active;
  std::optional<Instant> last_schedule;
  std::optional<Instant> last_success;
  bool operator==(const CronJob&) const = default;
};

struct Deployment {
  ObjectMeta meta;
  int64_t replicas = 1;
  int64_t min_ready_seconds = 0;
  LabelSelector selector;
  PodTemplate pod_template;
  bool recreate = false;  // strategy.type; otherwise RollingUpdate.
  IntOrPercent max_surge{.value = 25, .percent = true};
  IntOrPercent max_unavailable{.value = 25, .percent = true};
  std::optional<int64_t> revision_history_limit = 10;      // Nothing: keep all.
  std::optional<int64_t> progress_deadline_seconds = 600;  // Nothing: no deadline.
  bool paused = false;

  int64_t status_replicas = 0;
  int64_t updated_replicas = 0;
  int64_t ready_replicas = 0;
  int64_t available_replicas = 0;
  int64_t unavailable_replicas = 0;
  int64_t terminating_replicas = 0;
  int64_t observed_generation = 0;
  int64_t collision_count = 0;
  std::vector<Condition> conditions;
  bool operator==(const Deployment&) const = default;
};

enum class FailureAction : uint8_t { kCount, kFailJob, kFailIndex, kIgnore };

// A rule of a podFailurePolicy: on exit codes or on conditions.
struct FailureRule {
  FailureAction action = FailureAction::kCount;
  bool on_exit_codes = false;
  std::string container;  // Empty: any.
  bool not_in = false;    // operator
  std::vector<int64_t> exit_codes;
  StringMap conditions;  // Status by type.
  bool operator==(const FailureRule&) const = default;
};

// A rule of a successPolicy.
struct SuccessRule {
  std::optional<std::string> indexes;
  std::optional<int64_t> count;
  bool operator==(const SuccessRule&) const = default;
};

struct Job {
  ObjectMeta meta;
  int64_t parallelism = 1;
  std::optional<int64_t> completions;
  int64_t backoff_limit = 6;
  bool suspend = false;
  bool indexed = false;  // completionMode.
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<int64_t> active_deadline_seconds;
  bool replace_failed_only = false;  // podReplacementPolicy: Failed.
  std::string managed_by;
  LabelSelector selector;
  PodTemplate pod_template;
  std::vector<FailureRule> failure_rules;
  std::optional<std::vector<SuccessRule>> success_rules;
  std::optional<int64_t> backoff_limit_per_index;
  std::optional<int64_t> max_failed_indexes;

  int64_t active = 0;
  int64_t ready = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t terminating = 0;
  std::optional<Instant> start_time;
  std::optional<Instant> completion_time;
  std::string completed_indexes;
  std::string failed_indexes;
  std::vector<std::string> uncounted_succeeded;  // uids
  std::vector<std::string> uncounted_failed;
  std::vector<Condition> conditions;
  bool operator==(const Job&) const = default;
};

// A pod that the eviction subresource counted against its budget, and when.
struct DisruptedPod {
  std::string name;
  Instant time;
  bool operator==(const DisruptedPod&) const = default;
};

struct PodDisruptionBudget {
  ObjectMeta meta;
  std::optional<LabelSelector> selector;  // Nothing: no pod. An empty one: all of the namespace.
  std::optional<IntOrPercent> min_available;  // At most one of these two.
  std::optional<IntOrPercent> max_unavailable;
  bool always_allow_unhealthy = false;  // unhealthyPodEvictionPolicy: AlwaysAllow.

  int64_t observed_generation = 0;
  int64_t disruptions_allowed = 0;
  int64_t current_healthy = 0;
  int64_t desired_healthy = 0;
  int64_t expected_pods = 0;
  std::vector<DisruptedPod> disrupted_pods;  // Sorted by name, names unique.
  std::vector<Condition> conditions;
  bool operator==(const PodDisruptionBudget&) const = default;
};

struct Namespace {
  ObjectMeta meta;
  std::vector<std::string> spec_finalizers;
  std::string phase;
  std::vector<Condition> conditions;
  bool operator==(const Namespace&) const = default;
};

struct Lease {
  ObjectMeta meta;
  std::string holder;
  int64_t duration_seconds = 0;
  Instant renew_time;
  bool operator==(const Lease&) const = default;
};

struct ConfigMap {
  ObjectMeta meta;
  StringMap data;
  bool operator==(const ConfigMap&) const = default;
};

struct ServiceAccount {
  ObjectMeta meta;
  std::vector<std::string> image_pull_secrets;
  bool operator==(const ServiceAccount&) const = default;
};

struct PriorityClass {
  ObjectMeta meta;
  int64_t value = 0;
  bool global_default = false;
  std::string preemption_policy;
  bool operator==(const PriorityClass&) const = default;
};

}  // namespace berth::api
