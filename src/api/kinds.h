#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/selector.h"
#include "api/types.h"
#include "base/result.h"

// The kinds that berth serves and speaks: one constant table. Read-only; safe from any thread.
namespace berth::api {

// Dense and stable within a build: an index into Kinds().
enum class KindId : uint8_t {
  // Stored.
  kNamespace,
  kNode,
  kPod,
  kConfigMap,
  kSecret,
  kServiceAccount,
  kEvent,        // core v1
  kEventsEvent,  // events.k8s.io/v1: another view of kEvent, stored as that.
  kLease,
  kPriorityClass,
  kDeployment,
  kReplicaSet,
  kJob,
  kPodDisruptionBudget,
  kReplicationController,  // core v1
  kService,
  kEndpoints,
  kPersistentVolume,
  kPersistentVolumeClaim,
  kLimitRange,
  kResourceQuota,
  kPodTemplate,
  kStatefulSet,  // apps/v1
  kDaemonSet,
  kControllerRevision,
  kCronJob,        // batch/v1
  kEndpointSlice,  // discovery.k8s.io/v1
  kStorageClass,   // storage.k8s.io/v1
  kCsiNode,
  kCsiDriver,
  kCsiStorageCapacity,
  kVolumeAttachment,
  kRole,  // rbac.authorization.k8s.io/v1
  kRoleBinding,
  kClusterRole,
  kClusterRoleBinding,
  kRuntimeClass,  // node.k8s.io/v1
  kIngress,       // networking.k8s.io/v1
  kIngressClass,
  kNetworkPolicy,
  kValidatingWebhookConfiguration,  // admissionregistration.k8s.io/v1
  kMutatingWebhookConfiguration,
  kCustomResourceDefinition,  // apiextensions.k8s.io/v1
  // Stored, of the kinds that elsewhere are CustomResourceDefinitions.
  kPodGroup,  // scheduling.volcano.sh/v1beta1
  kQueue,
  kResourceFlavor,  // kueue.x-k8s.io/v1beta2
  kClusterQueue,
  kCohort,
  kLocalQueue,
  kWorkload,
  kAdmissionCheck,
  kTopology,
  kWorkloadPriorityClass,
  kOldResourceFlavor,  // kueue.x-k8s.io/v1beta1: other views of the same, stored as those.
  kOldClusterQueue,
  kOldCohort,
  kOldLocalQueue,
  kOldWorkload,
  kOldAdmissionCheck,
  kOldTopology,
  kOldWorkloadPriorityClass,
  // Only spoken, in requests and answers.
  kBinding,
  kEviction,
  kScale,
  kTokenReview,  // authentication.k8s.io/v1
  kTokenRequest,
  kSelfSubjectReview,
  kSubjectAccessReview,  // authorization.k8s.io/v1
  kLocalSubjectAccessReview,
  kSelfSubjectAccessReview,
  kSelfSubjectRulesReview,
  kStatus,
  kDeleteOptions,
  kPodTemplateSpec,  // Not a kind of requests: the piece of a spec that has defaults and rules of
                     // its own.
  kCustomResource,   // Of a CustomResourceDefinition: not in the table, see Kind::defined.
};
inline constexpr size_t kKindsCount = static_cast<size_t>(KindId::kPodTemplateSpec) + 1;

struct CustomVersion;

struct Kind {
  KindId id;
  std::string_view group;  // Empty for core.
  std::string_view version;
  std::string_view name;    // "Pod".
  std::string_view plural;  // "pods"; empty for what is no resource.
  std::string_view singular;
  std::string_view short_names;  // "po", separated by blanks, or empty.
  std::string_view category;     // "all", "api-extensions", or empty.
  std::string_view
      storage_hash;  // The aggregated discovery's storageVersionHash, as upstream computes it.
  bool namespaced = false;
  bool stored = false;  // Served with every verb; the others are subresources or pieces,
  bool posted = false;  // or questions: created only, answered and not kept.
  bool has_status = false;
  bool has_scale = false;
  bool has_deletecollection = true;
  // Treated as an object of a CustomResourceDefinition: never decoded, checked by its schema.
  bool custom = false;
  KindId storage;  // Where objects are kept: itself, but for those that are views of others.
  // Of kCustomResource, else null: what a user's definition says of it (api/custom_definition.h).
  const CustomVersion* defined = nullptr;

  // Whether its objects are another kind's, told otherwise (api/versions.h).
  [[nodiscard]] constexpr bool is_view() const { return storage != id; }
  // Whether the version is one that its group has given up.
  [[nodiscard]] constexpr bool is_old() const { return custom && is_view(); }

  // Whether it is a resource of its own.
  [[nodiscard]] constexpr bool is_served() const { return stored || posted; }

  // "v1" or "apps/v1".
  [[nodiscard]] std::string api_version() const;
  // "PodList".
  [[nodiscard]] std::string list_name() const;
  // "Pod" or "Deployment.apps", as Kubernetes names kinds in error messages.
  [[nodiscard]] std::string group_kind() const;
  // "pods" or "deployments.apps".
  [[nodiscard]] std::string group_resource() const;
  // "/api/v1" or "/apis/apps/v1".
  [[nodiscard]] std::string base_path() const;
};

// In order of KindId.
[[nodiscard]] std::span<const Kind> Kinds();
[[nodiscard]] const Kind& KindOf(KindId id);
// By resource ("pods") or by kind ("Pod"); null when there is none. Cost: linear in the table.
[[nodiscard]] const Kind* FindResource(std::string_view group, std::string_view version,
                                       std::string_view plural);
[[nodiscard]] const Kind* FindKind(std::string_view api_version, std::string_view kind);

// Checks that `kind` supports each field of the query, with upstream's error texts, and renames
// fields that have another name in the stored object (spec.host, events.k8s.io's regarding.*).
[[nodiscard]] Status ResolveFieldQuery(const Kind& kind, FieldQuery& query);
[[nodiscard]] Status ResolveFieldQuery(KindId kind, FieldQuery& query);

// Names of the kind's selectable fields beside metadata.name and metadata.namespace, in a fixed
// order, and their values in a stored object. Missing fields are empty strings, booleans "true" and
// "false". REQUIRES, of a KindId: a storage kind.
[[nodiscard]] std::vector<std::string_view> SelectableNames(const Kind& kind);
[[nodiscard]] std::vector<std::string_view> SelectableNames(KindId kind);
[[nodiscard]] std::vector<std::string> SelectableTexts(const Kind& kind, const Json& object);
[[nodiscard]] std::vector<std::string> SelectableTexts(KindId kind, const Json& object);

// A spec with nothing but its selectable fields, as they are among `texts`, which SelectableTexts
// gave: a document with it has the same texts.
[[nodiscard]] JsonObject SelectableSpec(KindId kind, std::span<const std::string> texts,
                                        JsonMemory memory = {});

// The selectable fields of a stored object, sorted, for FieldQuery::Matches. Missing fields are
// empty strings, booleans "true" and "false". REQUIRES: a storage kind.
[[nodiscard]] StringMap SelectableValues(KindId kind, const Json& object);

}  // namespace berth::api
