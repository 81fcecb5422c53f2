#include "api/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/custom_definition.h"
#include "api/field_error.h"
#include "api/object.h"
#include "api/text.h"
#include "base/check.h"

namespace berth::api {
namespace {

struct Names {
  std::string_view name, plural, singular, short_names, storage_hash;
};

constexpr Kind StoredKind(KindId id, std::string_view group, Names names) {
  return {.id = id,
          .group = group,
          .version = "v1",
          .name = names.name,
          .plural = names.plural,
          .singular = names.singular,
          .short_names = names.short_names,
          .category = "",
          .storage_hash = names.storage_hash,
          .namespaced = true,
          .stored = true,
          .storage = id};
}

constexpr Kind SpokenKind(KindId id, std::string_view group, std::string_view name,
                          std::string_view plural) {
  return {.id = id,
          .group = group,
          .version = "v1",
          .name = name,
          .plural = plural,
          .singular = "",
          .short_names = "",
          .category = "",
          .storage_hash = "",
          .namespaced = true,
          .storage = id};
}

constexpr Kind Posted(Kind kind, std::string_view singular) {
  kind.singular = singular;
  kind.posted = true;
  return kind;
}

constexpr Kind AccessReview(KindId id, std::string_view name, std::string_view plural,
                            std::string_view singular) {
  return Posted(SpokenKind(id, "authorization.k8s.io", name, plural), singular);
}

constexpr Kind ClusterWide(Kind kind) {
  kind.namespaced = false;
  return kind;
}
constexpr Kind WithStatus(Kind kind) {
  kind.has_status = true;
  return kind;
}
constexpr Kind WithScale(Kind kind) {
  kind.has_scale = true;
  return kind;
}
constexpr Kind InAll(Kind kind) {
  kind.category = "all";
  return kind;
}
constexpr Kind InExtensions(Kind kind) {
  kind.category = "api-extensions";
  return kind;
}
constexpr Kind WithoutDeleteCollection(Kind kind) {
  kind.has_deletecollection = false;
  return kind;
}
constexpr Kind StoredAs(Kind kind, KindId storage) {
  kind.storage = storage;
  return kind;
}

constexpr Kind Custom(KindId id, std::string_view group, std::string_view version, Names names) {
  Kind kind = StoredKind(id, group, names);
  kind.version = version;
  kind.custom = true;
  return kind;
}
constexpr Kind VolcanoKind(KindId id, Names names) {
  return Custom(id, "scheduling.volcano.sh", "v1beta1", names);
}
constexpr Kind KueueKind(KindId id, Names names) {
  return Custom(id, "kueue.x-k8s.io", "v1beta2", names);
}

constexpr std::array<Kind, 8> kKueueKinds = {
    ClusterWide(
        KueueKind(KindId::kResourceFlavor, {"ResourceFlavor", "resourceflavors", "resourceflavor",
                                            "flavor flavors rf", "/gMEIW72yhc="})),
    WithStatus(
        ClusterWide(KueueKind(KindId::kClusterQueue, {"ClusterQueue", "clusterqueues",
                                                      "clusterqueue", "cq", "GFhi+vdS/Hs="}))),
    WithStatus(ClusterWide(
        KueueKind(KindId::kCohort, {"Cohort", "cohorts", "cohort", "co", "psvXT4sk0cU="}))),
    WithStatus(KueueKind(KindId::kLocalQueue, {"LocalQueue", "localqueues", "localqueue",
                                               "queue queues lq", "7joaLQOe/UE="})),
    WithStatus(KueueKind(KindId::kWorkload, {"Workload", "workloads", "workload",
                                             "kwl kueueworkload kueueworkloads", "LoA7GA7oSOM="})),
    WithStatus(
        ClusterWide(KueueKind(KindId::kAdmissionCheck, {"AdmissionCheck", "admissionchecks",
                                                        "admissioncheck", "ac", "nDNWsR6h/qo="}))),
    ClusterWide(KueueKind(KindId::kTopology,
                          {"Topology", "topologies", "topology", "topo", "7W9Kaeu9AC0="})),
    ClusterWide(KueueKind(KindId::kWorkloadPriorityClass,
                          {"WorkloadPriorityClass", "workloadpriorityclasses",
                           "workloadpriorityclass", "wpc", "4tu8CfV0JoI="})),
};
// Kueue's version before: it has the same kinds, with the same names.
constexpr Kind OldVersion(KindId id, Kind kind) {
  kind.id = id;
  kind.version = "v1beta1";
  return kind;
}

constexpr std::string_view kEvents = "events.k8s.io";
constexpr std::string_view kAuthentication = "authentication.k8s.io";

constexpr std::array<Kind, kKindsCount> kKinds = {
    WithoutDeleteCollection(WithStatus(ClusterWide(StoredKind(
        KindId::kNamespace, "", {"Namespace", "namespaces", "namespace", "ns", "Q3oi5N2YM8M="})))),
    WithStatus(ClusterWide(
        StoredKind(KindId::kNode, "", {"Node", "nodes", "node", "no", "XwShjMxG9Fs="}))),
    InAll(WithStatus(StoredKind(KindId::kPod, "", {"Pod", "pods", "pod", "po", "xPOwRZ+Yhw8="}))),
    StoredKind(KindId::kConfigMap, "",
               {"ConfigMap", "configmaps", "configmap", "cm", "qFsyl6wFWjQ="}),
    StoredKind(KindId::kSecret, "", {"Secret", "secrets", "secret", "", "S6u1pOWzb84="}),
    StoredKind(KindId::kServiceAccount, "",
               {"ServiceAccount", "serviceaccounts", "serviceaccount", "sa", "pbx9ZvyFpBE="}),
    StoredKind(KindId::kEvent, "", {"Event", "events", "event", "ev", "r2yiGXH7wu8="}),
    StoredAs(StoredKind(KindId::kEventsEvent, kEvents,
                        {"Event", "events", "event", "ev", "r2yiGXH7wu8="}),
             KindId::kEvent),
    StoredKind(KindId::kLease, "coordination.k8s.io",
               {"Lease", "leases", "lease", "", "gqkMMb/YqFM="}),
    ClusterWide(
        StoredKind(KindId::kPriorityClass, "scheduling.k8s.io",
                   {"PriorityClass", "priorityclasses", "priorityclass", "pc", "1QwjyaZjj3Y="})),
    InAll(WithScale(WithStatus(
        StoredKind(KindId::kDeployment, "apps",
                   {"Deployment", "deployments", "deployment", "deploy", "8aSe+NMegvE="})))),
    InAll(WithScale(
        WithStatus(StoredKind(KindId::kReplicaSet, "apps",
                              {"ReplicaSet", "replicasets", "replicaset", "rs", "P1RzHs8/mWQ="})))),
    InAll(
        WithStatus(StoredKind(KindId::kJob, "batch", {"Job", "jobs", "job", "", "mudhfqk/qZY="}))),
    WithStatus(StoredKind(KindId::kPodDisruptionBudget, "policy",
                          {"PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget",
                           "pdb", "EVWiDmWqyJw="})),
    InAll(WithScale(WithStatus(StoredKind(KindId::kReplicationController, "",
                                          {"ReplicationController", "replicationcontrollers",
                                           "replicationcontroller", "rc", "Jond2If31h0="})))),
    InAll(WithStatus(StoredKind(KindId::kService, "",
                                {"Service", "services", "service", "svc", "0/CO1lhkEBI="}))),
    StoredKind(KindId::kEndpoints, "",
               {"Endpoints", "endpoints", "endpoints", "ep", "fWeeMqaN/OA="}),
    WithStatus(ClusterWide(StoredKind(
        KindId::kPersistentVolume, "",
        {"PersistentVolume", "persistentvolumes", "persistentvolume", "pv", "HN/zwEC+JgM="}))),
    WithStatus(StoredKind(KindId::kPersistentVolumeClaim, "",
                          {"PersistentVolumeClaim", "persistentvolumeclaims",
                           "persistentvolumeclaim", "pvc", "QWTyNDq0dC4="})),
    StoredKind(KindId::kLimitRange, "",
               {"LimitRange", "limitranges", "limitrange", "limits", "EBKMFVe6cwo="}),
    WithStatus(
        StoredKind(KindId::kResourceQuota, "",
                   {"ResourceQuota", "resourcequotas", "resourcequota", "quota", "8uhSgffRX6w="})),
    StoredKind(KindId::kPodTemplate, "",
               {"PodTemplate", "podtemplates", "podtemplate", "", "LIXB2x4IFpk="}),
    InAll(WithScale(WithStatus(
        StoredKind(KindId::kStatefulSet, "apps",
                   {"StatefulSet", "statefulsets", "statefulset", "sts", "H+vl74LkKdo="})))),
    InAll(WithStatus(StoredKind(KindId::kDaemonSet, "apps",
                                {"DaemonSet", "daemonsets", "daemonset", "ds", "dd7pWHUlMKQ="}))),
    StoredKind(
        KindId::kControllerRevision, "apps",
        {"ControllerRevision", "controllerrevisions", "controllerrevision", "", "85nkx63pcBU="}),
    InAll(WithStatus(StoredKind(KindId::kCronJob, "batch",
                                {"CronJob", "cronjobs", "cronjob", "cj", "sd5LIXh4Fjs="}))),
    StoredKind(KindId::kEndpointSlice, "discovery.k8s.io",
               {"EndpointSlice", "endpointslices", "endpointslice", "", "qgS0xkrxYAI="}),
    ClusterWide(
        StoredKind(KindId::kStorageClass, "storage.k8s.io",
                   {"StorageClass", "storageclasses", "storageclass", "sc", "K+m6uJwbjGY="})),
    ClusterWide(StoredKind(KindId::kCsiNode, "storage.k8s.io",
                           {"CSINode", "csinodes", "csinode", "", "Pe62DkZtjuo="})),
    ClusterWide(StoredKind(KindId::kCsiDriver, "storage.k8s.io",
                           {"CSIDriver", "csidrivers", "csidriver", "", "hL6j/rwBV5w="})),
    StoredKind(
        KindId::kCsiStorageCapacity, "storage.k8s.io",
        {"CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity", "", "xeVl+2Ly1kE="}),
    WithStatus(ClusterWide(StoredKind(
        KindId::kVolumeAttachment, "storage.k8s.io",
        {"VolumeAttachment", "volumeattachments", "volumeattachment", "", "tJx/ezt6UDU="}))),
    StoredKind(KindId::kRole, "rbac.authorization.k8s.io",
               {"Role", "roles", "role", "", "7FuwZcIIItM="}),
    StoredKind(KindId::kRoleBinding, "rbac.authorization.k8s.io",
               {"RoleBinding", "rolebindings", "rolebinding", "", "eGsCzGH6b1g="}),
    ClusterWide(StoredKind(KindId::kClusterRole, "rbac.authorization.k8s.io",
                           {"ClusterRole", "clusterroles", "clusterrole", "", "bYE5ZWDrJ44="})),
    ClusterWide(StoredKind(
        KindId::kClusterRoleBinding, "rbac.authorization.k8s.io",
        {"ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", "", "48tpQ8gZHFc="})),
    ClusterWide(StoredKind(KindId::kRuntimeClass, "node.k8s.io",
                           {"RuntimeClass", "runtimeclasses", "runtimeclass", "", "WQTu1GL3T2Q="})),
    WithStatus(StoredKind(KindId::kIngress, "networking.k8s.io",
                          {"Ingress", "ingresses", "ingress", "ing", "39NQlfNR+bo="})),
    ClusterWide(StoredKind(KindId::kIngressClass, "networking.k8s.io",
                           {"IngressClass", "ingressclasses", "ingressclass", "", "l/iqIbDgFyQ="})),
    StoredKind(KindId::kNetworkPolicy, "networking.k8s.io",
               {"NetworkPolicy", "networkpolicies", "networkpolicy", "netpol", "YpfwF18m1G8="}),
    InExtensions(ClusterWide(
        StoredKind(KindId::kValidatingWebhookConfiguration, "admissionregistration.k8s.io",
                   {"ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
                    "validatingwebhookconfiguration", "", "B0wHjQmsGNk="}))),
    InExtensions(ClusterWide(
        StoredKind(KindId::kMutatingWebhookConfiguration, "admissionregistration.k8s.io",
                   {"MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
                    "mutatingwebhookconfiguration", "", "Sqi0GUgDaX0="}))),
    InExtensions(WithStatus(
        ClusterWide(StoredKind(KindId::kCustomResourceDefinition, "apiextensions.k8s.io",
                               {"CustomResourceDefinition", "customresourcedefinitions",
                                "customresourcedefinition", "crd crds", "jfWCUB31mvA="})))),
    VolcanoKind(KindId::kPodGroup,
                {"PodGroup", "podgroups", "podgroup", "pg podgroup-v1beta1", "yufRBZAGAC0="}),
    WithStatus(ClusterWide(VolcanoKind(
        KindId::kQueue, {"Queue", "queues", "queue", "q queue-v1beta1", "Xss8xwFDxtc="}))),
    kKueueKinds[0],
    kKueueKinds[1],
    kKueueKinds[2],
    kKueueKinds[3],
    kKueueKinds[4],
    kKueueKinds[5],
    kKueueKinds[6],
    kKueueKinds[7],
    OldVersion(KindId::kOldResourceFlavor, kKueueKinds[0]),
    OldVersion(KindId::kOldClusterQueue, kKueueKinds[1]),
    OldVersion(KindId::kOldCohort, kKueueKinds[2]),
    OldVersion(KindId::kOldLocalQueue, kKueueKinds[3]),
    OldVersion(KindId::kOldWorkload, kKueueKinds[4]),
    OldVersion(KindId::kOldAdmissionCheck, kKueueKinds[5]),
    OldVersion(KindId::kOldTopology, kKueueKinds[6]),
    OldVersion(KindId::kOldWorkloadPriorityClass, kKueueKinds[7]),
    SpokenKind(KindId::kBinding, "", "Binding", "bindings"),
    SpokenKind(KindId::kEviction, "policy", "Eviction", ""),
    SpokenKind(KindId::kScale, "autoscaling", "Scale", ""),
    ClusterWide(
        Posted(SpokenKind(KindId::kTokenReview, kAuthentication, "TokenReview", "tokenreviews"),
               "tokenreview")),
    SpokenKind(KindId::kTokenRequest, kAuthentication, "TokenRequest", ""),
    ClusterWide(Posted(SpokenKind(KindId::kSelfSubjectReview, kAuthentication, "SelfSubjectReview",
                                  "selfsubjectreviews"),
                       "selfsubjectreview")),
    ClusterWide(AccessReview(KindId::kSubjectAccessReview, "SubjectAccessReview",
                             "subjectaccessreviews", "subjectaccessreview")),
    AccessReview(KindId::kLocalSubjectAccessReview, "LocalSubjectAccessReview",
                 "localsubjectaccessreviews", "localsubjectaccessreview"),
    ClusterWide(AccessReview(KindId::kSelfSubjectAccessReview, "SelfSubjectAccessReview",
                             "selfsubjectaccessreviews", "selfsubjectaccessreview")),
    ClusterWide(AccessReview(KindId::kSelfSubjectRulesReview, "SelfSubjectRulesReview",
                             "selfsubjectrulesreviews", "selfsubjectrulesreview")),
    SpokenKind(KindId::kStatus, "", "Status", ""),
    SpokenKind(KindId::kDeleteOptions, "", "DeleteOptions", ""),
    SpokenKind(KindId::kPodTemplateSpec, "", "PodTemplateSpec", ""),
};

constexpr bool InOrder() {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (static_cast<size_t>(kKinds.at(i).id) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "a kind's id is its place in the table");

// A selectable field: its name in selectors and its dotted path in the stored object.
struct Selectable {
  std::string_view label;
  JsonPath path;
};

constexpr std::array<Selectable, 10> kPodFields = {{
    {"spec.nodeName", "spec.nodeName"},
    {"spec.restartPolicy", "spec.restartPolicy"},
    {"spec.schedulerName", "spec.schedulerName"},
    {"spec.serviceAccountName", "spec.serviceAccountName"},
    {"spec.hostNetwork", "spec.hostNetwork"},
    {"status.phase", "status.phase"},
    {"status.podIP", "status.podIP"},
    {"status.podIPs", ""},
    {"status.nominatedNodeName", "status.nominatedNodeName"},
    {"spec.host", ""},
}};
constexpr std::array<Selectable, 11> kEventFields = {{
    {"involvedObject.kind", "involvedObject.kind"},
    {"involvedObject.namespace", "involvedObject.namespace"},
    {"involvedObject.name", "involvedObject.name"},
    {"involvedObject.uid", "involvedObject.uid"},
    {"involvedObject.apiVersion", "involvedObject.apiVersion"},
    {"involvedObject.resourceVersion", "involvedObject.resourceVersion"},
    {"involvedObject.fieldPath", "involvedObject.fieldPath"},
    {"reason", "reason"},
    {"reportingComponent", "reportingComponent"},
    {"source", "source.component"},
    {"type", "type"},
}};
constexpr std::array<Selectable, 1> kNodeFields = {{{"spec.unschedulable", "spec.unschedulable"}}};
constexpr std::array<Selectable, 1> kNamespaceFields = {{{"status.phase", "status.phase"}}};
constexpr std::array<Selectable, 1> kSecretFields = {{{"type", "type"}}};
constexpr std::array<Selectable, 1> kWorkloadFields = {
    {{"status.admission.clusterQueue", "status.admission.clusterQueue"}}};
constexpr std::array<Selectable, 1> kJobFields = {{{"status.successful", "status.succeeded"}}};

constexpr std::array<Selectable, 1> kControllerFields = {{{"status.replicas", "status.replicas"}}};
constexpr std::array<Selectable, 2> kServiceFields = {
    {{"spec.clusterIP", "spec.clusterIP"}, {"spec.type", "spec.type"}}};

std::span<const Selectable> SelectableOf(KindId kind) {
  switch (kind) {
    case KindId::kPod:
      return kPodFields;
    case KindId::kEvent:
    case KindId::kEventsEvent:
      return kEventFields;
    case KindId::kNode:
      return kNodeFields;
    case KindId::kNamespace:
      return kNamespaceFields;
    case KindId::kSecret:
      return kSecretFields;
    case KindId::kJob:
      return kJobFields;
    case KindId::kWorkload:
      return kWorkloadFields;
    case KindId::kService:
      return kServiceFields;
    case KindId::kReplicationController:
      return kControllerFields;
    default:
      return {};
  }
}

// Upstream has three ways to refuse an unknown field, depending on the kind.
std::string UnsupportedField(KindId kind, std::string_view field) {
  if (kind == KindId::kJob) {
    return fmt::format("field label {} not supported for Job", QuoteGo(field));
  }
  if (!SelectableOf(kind).empty() || KindOf(kind).custom) {
    return fmt::format("field label not supported: {}", field);
  }
  return fmt::format(
      "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
      QuoteGo(field));
}

// The stored name of an events.k8s.io field, or the name itself.
std::string StoredEventField(std::string_view field) {
  if (field.starts_with("regarding.")) return "involvedObject." + std::string(field.substr(10));
  if (field == "reportingController") return "reportingComponent";
  // Core names are no names of this group.
  if (field.starts_with("involvedObject.") || field == "reportingComponent" || field == "source") {
    return "";
  }
  return std::string(field);
}

bool IsFlag(const Selectable& field) {
  return field.label == "spec.unschedulable" || field.label == "spec.hostNetwork";
}

std::string TextOf(const Json* value) {
  if (value == nullptr) return "";
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_bool()) return value->get_bool() ? "true" : "false";
  if (value->is_int64()) return std::to_string(value->get_int64());
  return "";
}

}  // namespace

std::string Kind::api_version() const {
  if (group.empty()) return std::string(version);
  std::string text(group);
  text += '/';
  text += version;
  return text;
}
std::string Kind::list_name() const {
  if (defined != nullptr) return std::string(defined->definition->list_kind());
  return std::string(name) + "List";
}
std::string Kind::group_kind() const {
  return group.empty() ? std::string(name) : fmt::format("{}.{}", name, group);
}
std::string Kind::group_resource() const {
  return group.empty() ? std::string(plural) : fmt::format("{}.{}", plural, group);
}
std::string Kind::base_path() const {
  return group.empty() ? fmt::format("/api/{}", version)
                       : fmt::format("/apis/{}/{}", group, version);
}

std::span<const Kind> Kinds() { return kKinds; }

const Kind& KindOf(KindId id) { return kKinds.at(static_cast<size_t>(id)); }

const Kind* FindResource(std::string_view group, std::string_view version,
                         std::string_view plural) {
  if (plural.empty()) return nullptr;
  const auto* found = std::ranges::find_if(kKinds, [&](const Kind& kind) {
    return kind.plural == plural && kind.group == group && kind.version == version;
  });
  return found == kKinds.end() ? nullptr : found;
}

const Kind* FindKind(std::string_view api_version, std::string_view name) {
  const size_t slash = api_version.find('/');
  const bool core = slash == std::string_view::npos;
  const std::string_view group = core ? "" : api_version.substr(0, slash);
  const std::string_view version = core ? api_version : api_version.substr(slash + 1);
  const auto* found = std::ranges::find_if(kKinds, [&](const Kind& kind) {
    return kind.name == name && kind.group == group && kind.version == version &&
           kind.id != KindId::kPodTemplateSpec;
  });
  return found == kKinds.end() ? nullptr : found;
}

Status ResolveFieldQuery(KindId kind, FieldQuery& query) {
  for (FieldRequirement& item : query.requirements) {
    if (item.field == "metadata.name") continue;
    if (item.field == "metadata.namespace" &&
        (KindOf(kind).namespaced || SelectableOf(kind).empty())) {
      continue;
    }
    std::string stored = kind == KindId::kEventsEvent ? StoredEventField(item.field) : item.field;
    const std::span<const Selectable> fields = SelectableOf(kind);
    if (std::ranges::find(fields, stored, &Selectable::label) == fields.end()) {
      return Fail(ErrorCode::kInvalid, UnsupportedField(kind, item.field));
    }
    if (kind == KindId::kPod && stored == "spec.host") stored = "spec.nodeName";
    item.field = std::move(stored);
  }
  return {};
}

Status ResolveFieldQuery(const Kind& kind, FieldQuery& query) {
  if (kind.defined == nullptr) return ResolveFieldQuery(kind.id, query);
  for (const FieldRequirement& item : query.requirements) {
    if (item.field == "metadata.name" || item.field == "metadata.namespace") continue;
    const std::vector<std::string>& fields = kind.defined->selectable;
    if (std::ranges::find(fields, item.field) == fields.end())
      return Fail(ErrorCode::kInvalid, fmt::format("field label not supported: {}", item.field));
  }
  return {};
}

std::vector<std::string_view> SelectableNames(const Kind& kind) {
  if (kind.defined == nullptr) return SelectableNames(kind.storage);
  const std::vector<std::string>& fields = kind.defined->selectable;
  return {fields.begin(), fields.end()};
}

std::vector<std::string> SelectableTexts(const Kind& kind, const Json& object) {
  if (kind.defined == nullptr) return SelectableTexts(kind.storage, object);
  std::vector<std::string> texts;
  for (const std::string& path : kind.defined->selectable)
    texts.push_back(TextOf(FindDotted(object, path)));
  return texts;
}

std::vector<std::string_view> SelectableNames(KindId kind) {
  CHECK(KindOf(kind).storage == kind);
  std::vector<std::string_view> names;
  for (const Selectable& field : SelectableOf(kind)) {
    if (!field.path.empty()) names.push_back(field.label);
  }
  return names;
}

std::vector<std::string> SelectableTexts(KindId kind, const Json& object) {
  CHECK(KindOf(kind).storage == kind);
  const std::span<const Selectable> fields = SelectableOf(kind);
  std::vector<std::string> texts;
  texts.reserve(fields.size());
  // Fields of one parent follow each other.
  std::string_view last;
  const Json* parent = nullptr;
  for (const Selectable& field : fields) {
    if (field.path.empty()) continue;
    JsonPath path = field.path;
    const std::string_view step = path.TakeStep();
    if (!SameText(step, last)) parent = FindMember(object, step);
    last = step;
    std::string text = TextOf(parent == nullptr ? nullptr : FindPath(*parent, path));
    if (text.empty() && field.label == "source") {
      text = TextOf(FindPath(object, "reportingComponent"));
    }
    if (text.empty() && IsFlag(field)) text = "false";
    if (text.empty() && field.label == "status.successful") text = "0";
    texts.push_back(std::move(text));
  }
  return texts;
}

JsonObject SelectableSpec(KindId kind, std::span<const std::string> texts, JsonMemory memory) {
  constexpr std::string_view kSpec = "spec.";
  JsonObject spec(std::move(memory));
  spec.reserve(texts.size());
  size_t at = 0;
  for (const Selectable& field : SelectableOf(kind)) {
    if (field.path.empty()) continue;
    CHECK_LT(at, texts.size());
    const std::string& text = texts[at++];
    if (!field.label.starts_with(kSpec) || text.empty()) continue;
    const std::string_view name = field.label.substr(kSpec.size());
    if (IsFlag(field)) {
      spec.emplace(name, text == "true");
    } else {
      spec.emplace(name, text);
    }
  }
  return spec;
}

StringMap SelectableValues(KindId kind, const Json& object) {
  StringMap values;
  values.emplace_back("metadata.name", TextOf(FindPath(object, "metadata.name")));
  values.emplace_back("metadata.namespace", TextOf(FindPath(object, "metadata.namespace")));
  const std::vector<std::string_view> names = SelectableNames(kind);
  std::vector<std::string> texts = SelectableTexts(kind, object);
  for (size_t i = 0; i < names.size(); ++i) values.emplace_back(names[i], std::move(texts[i]));
  std::ranges::sort(values);
  return values;
}

}  // namespace berth::api
