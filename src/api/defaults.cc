#include "api/defaults.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base64.h"
#include "api/custom_definition.h"
#include "api/defaults_kinds.h"
#include "api/defaults_pod.h"
#include "api/object.h"
#include "api/pod_parts.h"
#include "api/quantity.h"
#include "api/schema.h"
#include "api/structural.h"
#include "api/text.h"
#include "api/unserved.h"

namespace berth::api {
namespace {

JsonObject& SpecOf(Json& object) { return MemberObject(object.get_object(), "spec"); }

// One address, or range, is the first of the list: whichever stands makes the other.
void PairWithList(Json& object, std::string_view one_path, std::string_view list_path,
                  std::string_view member) {
  const std::string one(TextAt(object, one_path));
  const JsonArray& list = ArrayAt(object, list_path);
  const auto text_of = [&](const Json& item) {
    if (!member.empty()) return std::string(TextAt(item, member));
    return item.is_string() ? std::string(item.get_string()) : std::string();
  };
  const std::string first = list.empty() ? std::string() : text_of(list[0]);
  if (one == first) return;
  if (one.empty()) {
    SetPath(object, one_path, Json(first));
    return;
  }
  Json item(one);
  if (!member.empty()) item = JsonObject({{member, one}});
  JsonArray made;
  made.push_back(std::move(item));
  SetPath(object, list_path, std::move(made));
}

void DefaultPodStatus(Json& object) {
  if (FindMember(std::as_const(object), "status") == nullptr) return;
  PairWithList(object, "status.podIP", "status.podIPs", "ip");
}

void DefaultNode(Json& object) {
  PairWithList(object, "spec.podCIDR", "spec.podCIDRs", "");
  Json* capacity = FindPath(object, "status.capacity");
  Json* allocatable = FindPath(object, "status.allocatable");
  if (allocatable == nullptr && capacity != nullptr) {
    Json copy = *capacity;
    SetPath(object, "status.allocatable", std::move(copy));
  }
  for (const std::string_view list : {"status.capacity", "status.allocatable"}) {
    Json* amounts = FindPath(object, list);
    if (amounts != nullptr && amounts->is_object()) RoundResources(amounts->get_object());
  }
}

void DefaultNamespace(Json& object) {
  const std::string name(TextAt(object, "metadata.name"));
  if (!name.empty()) {
    JsonObject& meta = MemberObject(object.get_object(), "metadata");
    MemberObject(meta, "labels")["kubernetes.io/metadata.name"] = name;
  }
  if (TextAt(object, "status.phase").empty()) SetPath(object, "status.phase", "Active");
}

std::optional<Quantity> AmountIn(const Json& container, std::string_view list,
                                 std::string_view name) {
  const Json* resources = FindPath(container, "resources");
  const Json* amounts = resources == nullptr ? nullptr : FindMember(*resources, list);
  const Json* amount = amounts == nullptr ? nullptr : FindMember(*amounts, name);
  if (amount == nullptr || !amount->is_string()) return std::nullopt;
  const Result<Quantity> quantity = ParseQuantity(amount->get_string());
  if (!quantity || quantity->sign() <= 0) return std::nullopt;
  return *quantity;
}

struct QosSum {
  bool any = false;
  bool guaranteed = true;

  void Count(const Json& holder) {
    for (const std::string_view name : {"cpu", "memory"}) {
      const std::optional<Quantity> request = AmountIn(holder, "requests", name);
      const std::optional<Quantity> limit = AmountIn(holder, "limits", name);
      any = any || request || limit;
      const bool equal = limit && (!request || Compare(*request, *limit) == 0);
      guaranteed = guaranteed && equal;
    }
  }
};

// The zero of a field that is always written; nothing for those that are left out.
std::optional<Json> ZeroOf(const Field& field) {
  if (field.shape != Shape::kOne || !field.has(kAlways)) return std::nullopt;
  switch (field.value) {
    case Value::kBool:
      return Json(false);
    case Value::kInt32:
    case Value::kInt64:
      return Json(0);
    case Value::kString:
      return Json("");
    case Value::kObject:
      return Json(JsonObject());
    default:
      return std::nullopt;
  }
}

// Resets what only the server may say; a status belongs to controllers.
void ResetStatus(KindId kind, Json& object) {
  JsonObject& status = MemberObject(object.get_object(), "status");
  status.clear();
  const Type type = TypeOf(kind);
  const Field* field = FindField(type, "status");
  if (field == nullptr || field->type == kNoType) return;
  for (const Field& part : TypeAt(field->type).fields) {
    if (std::optional<Json> zero = ZeroOf(part)) status[part.name] = std::move(*zero);
  }
}

// The count of a DaemonSet's templates, in an annotation that older clients read.
constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

void SetTemplateGeneration(Json& object, int64_t generation) {
  JsonObject& meta = MemberObject(object.get_object(), "metadata");
  JsonObject& annotations = MemberObject(meta, "annotations");
  annotations[kTemplateGeneration] = std::to_string(generation);
  SortMembers(annotations);
}

void SetGeneration(Json& object, int64_t generation) {
  MemberObject(object.get_object(), "metadata")["generation"] = generation;
}

void GenerateSelector(Json& job) {
  if (FlagAt(job, "spec.manualSelector")) return;
  // Upstream's job and template share one map of labels when the job had none of its own.
  const bool shared = SameJson(Json(ObjectAt(job, "metadata.labels")),
                               Json(ObjectAt(job, "spec.template.metadata.labels")));
  const Json name(TextAt(job, "metadata.name"));
  const Json uid(TextAt(job, "metadata.uid"));
  JsonObject& spec = SpecOf(job);
  JsonObject& meta = MemberObject(MemberObject(spec, "template"), "metadata");
  JsonObject& labels = MemberObject(meta, "labels");
  SetDefault(labels, "job-name", name);
  SetDefault(labels, "batch.kubernetes.io/job-name", name);
  SetDefault(labels, "controller-uid", uid);
  SetDefault(labels, "batch.kubernetes.io/controller-uid", uid);
  SortMembers(labels);
  JsonObject& match = MemberObject(MemberObject(spec, "selector"), "matchLabels");
  SetDefault(match, "batch.kubernetes.io/controller-uid", uid);
  if (shared) MemberObject(job.get_object(), "metadata")["labels"] = JsonObject(labels);
}

void PrepareNamespace(Json& object) {
  ResetStatus(KindId::kNamespace, object);
  DefaultNamespace(object);
  Json& finalizers = SpecOf(object)["finalizers"];
  if (!finalizers.is_array()) finalizers.emplace_array();
  JsonArray& list = finalizers.get_array();
  if (std::ranges::find(list, Json("kubernetes")) == list.end()) list.emplace_back("kubernetes");
}

void PreparePod(Json& object) {
  MergeLabelKeys(object);
  SetGeneration(object, 1);
  ResetStatus(KindId::kPod, object);
  JsonObject& status = object.get_object()["status"].get_object();
  status["phase"] = "Pending";
  status["qosClass"] = QosClassOf(object);
  if (!ArrayAt(object, "spec.schedulingGates").empty()) {
    JsonObject gated = {{"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "SchedulingGated"},
                        {"message", "Scheduling is blocked due to non-empty scheduling gates"}};
    if (const Json* created = FindPath(std::as_const(object), "metadata.creationTimestamp")) {
      gated["lastTransitionTime"] = Json(*created);
    }
    status["conditions"] = JsonArray({gated});
  }
}

// Copies a member of the old object over the new one's, or removes it when the old has none.
void KeepMember(const Json& old, Json& object, std::string_view path) {
  const Json* value = FindPath(old, path);
  if (value == nullptr) {
    RemovePath(object, path);
    return;
  }
  SetPath(object, path, *value);
}

bool SamePath(const Json& a, const Json& b, std::string_view path) {
  const Json* left = FindPath(a, path);
  const Json* right = FindPath(b, path);
  if (left == nullptr || right == nullptr) return left == right;
  return SameJson(*left, *right);
}

// What rest.BeforeUpdate keeps of the old metadata, whoever asks.
void KeepMetadata(const Json& old, Json& object) {
  KeepMember(old, object, "metadata.generation");
  for (const std::string_view path : {"metadata.uid", "metadata.creationTimestamp"}) {
    if (FindPath(object, path) == nullptr) KeepMember(old, object, path);
  }
  KeepMember(old, object, "metadata.selfLink");
  if (FindPath(old, "metadata.deletionTimestamp") != nullptr) {
    KeepMember(old, object, "metadata.deletionTimestamp");
    if (FindPath(object, "metadata.deletionGracePeriodSeconds") == nullptr) {
      KeepMember(old, object, "metadata.deletionGracePeriodSeconds");
    }
  } else {
    RemovePath(object, "metadata.deletionTimestamp");
    RemovePath(object, "metadata.deletionGracePeriodSeconds");
  }
}

// The request says the status and nothing else, not even metadata.
void PrepareCustomStatus(const Json& old, Json& object) {
  Json next(old, object.storage());
  KeepMember(object, next, "status");
  object = std::move(next);
}

// Anything but metadata counts, and the status where it has a path of its own.
bool ChangesGeneration(const Kind& kind, const Json& old, const Json& object) {
  JsonObject before = old.get_object();
  JsonObject after = object.get_object();
  for (JsonObject* members : {&before, &after}) {
    RemoveMember(*members, "metadata");
    if (kind.has_status) RemoveMember(*members, "status");
  }
  return !SameJson(Json(std::move(before)), Json(std::move(after)));
}

void PrepareStatusUpdate(const Kind& type, const Json& old, Json& object) {
  const KindId kind = type.id;
  if (type.custom) {
    PrepareCustomStatus(old, object);
    return;
  }
  KeepMember(old, object, "spec");
  constexpr JsonPath kTransition("status.lastPhaseTransitionTime");
  if (kind == KindId::kPersistentVolume &&
      FindPath(std::as_const(object), kTransition) == nullptr) {
    KeepMember(old, object, "status.lastPhaseTransitionTime");
  }
  if (kind == KindId::kDeployment) KeepMember(old, object, "metadata.labels");
  if (kind == KindId::kVolumeAttachment) {
    for (const std::string_view path : {"metadata.labels", "metadata.annotations",
                                        "metadata.finalizers", "metadata.ownerReferences"}) {
      KeepMember(old, object, path);
    }
  }
  if (kind != KindId::kPod) return;
  KeepMember(old, object, "metadata.ownerReferences");
  if (TextAt(object, "status.qosClass").empty()) KeepMember(old, object, "status.qosClass");
  if (IntegerAt(object, "status.observedGeneration") == 0 &&
      FindPath(old, "status.observedGeneration") != nullptr) {
    KeepMember(old, object, "status.observedGeneration");
  }
}

// Kinds whose generation counts the changes of their spec.
bool HasGeneration(KindId kind) {
  constexpr std::array kSome = {
      KindId::kPod,          KindId::kDeployment,  KindId::kReplicaSet,
      KindId::kJob,          KindId::kCronJob,     KindId::kPodDisruptionBudget,
      KindId::kDaemonSet,    KindId::kIngress,     KindId::kReplicationController,
      KindId::kIngressClass, KindId::kStatefulSet, KindId::kCustomResourceDefinition,
      KindId::kNetworkPolicy};
  return std::ranges::find(kSome, kind) != kSome.end();
}

// Kinds without a spec, of which anything but metadata counts.
bool CountsAnything(const Kind& type) {
  const KindId kind = type.id;
  return type.custom || kind == KindId::kValidatingWebhookConfiguration ||
         kind == KindId::kMutatingWebhookConfiguration || kind == KindId::kEndpointSlice ||
         kind == KindId::kPodTemplate;
}

// The version that objects are stored in from now on is one of those that were.
void NoteStoredVersion(Json& definition) {
  std::string_view storage;
  for (const Json& version : ArrayAt(definition, "spec.versions")) {
    if (FlagAt(version, "storage")) storage = TextAt(version, "name");
  }
  JsonArray stored = ArrayAt(definition, "status.storedVersions");
  const bool known = std::ranges::any_of(
      stored, [&](const Json& name) { return name.is_string() && name.get_string() == storage; });
  if (known || storage.empty()) return;
  stored.emplace_back(storage);
  SetPath(definition, "status.storedVersions", std::move(stored));
}

// It goes up with the template, whatever the request says.
void KeepTemplateGeneration(const Json& old, Json& object) {
  int64_t generation = 0;
  if (const Json* text = FindMember(ObjectAt(old, "metadata.annotations"), kTemplateGeneration)) {
    const std::string_view digits =
        text->is_string() ? std::string_view(text->get_string()) : std::string_view();
    std::from_chars(digits.data(), digits.data() + digits.size(), generation);
  }
  if (!SamePath(old, object, "spec.template")) ++generation;
  SetTemplateGeneration(object, generation);
}

void Move(JsonObject& object, std::string_view from, std::string_view to) {
  const auto at = std::ranges::find_if(
      object, [&](const auto& member) { return SameText(member.key(), from); });
  if (at == object.end()) return;
  Json value = std::move(at->value());
  object.stable_erase(at);
  object.insert_or_assign(to, std::move(value));
}

struct Renamed {
  std::string_view core, events;
};
constexpr std::array<Renamed, 8> kEventMembers = {{
    {"involvedObject", "regarding"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"reportingInstance", "reportingInstance"},
}};

// Whether a toleration covers a NoExecute taint of this key.
bool Tolerates(const Json& toleration, std::string_view key) {
  const std::string_view own = TextAt(toleration, "key");
  const std::string_view effect = TextAt(toleration, "effect");
  return (own.empty() || own == key) && (effect.empty() || effect == "NoExecute");
}

// What a Secret says as text is data like the other.
void FoldTexts(JsonObject& secret) {
  const Json* given = FindMember(std::as_const(secret), "stringData");
  if (given == nullptr || !given->is_object()) return;
  // A copy: adding "data" moves the members.
  const JsonObject texts = given->get_object();
  JsonObject& data = MemberObject(secret, "data");
  for (const auto& [key, value] : texts) {
    if (value.is_string()) data[key] = EncodeBase64(value.get_string());
  }
  RemoveMember(secret, "stringData");
}

}  // namespace

std::string_view TextIn(const JsonObject& object, std::string_view key) {
  const Json* text = FindMember(object, key);
  return text != nullptr && text->is_string() ? std::string_view(text->get_string()) : "";
}

void SetText(JsonObject& object, std::string_view key, std::string_view text) {
  if (TextIn(object, key).empty()) object[key] = text;
}

void ApplyDefaults(KindId kind, Json& object) { ApplyDefaults(KindOf(kind), object); }

void ApplyDefaults(const Kind& type, Json& object) {
  if (!object.is_object()) return;
  const KindId kind = type.id;
  if (type.defined != nullptr) {
    ApplyCustomDefaults(type.defined->schema, object.get_object());
    return;
  }
  if (type.custom) {
    ApplySchemaDefaults(BuiltinSchema(), static_cast<TypeId>(kind), object.get_object());
    return;
  }
  switch (kind) {
    case KindId::kPod:
      DefaultPodSpec(SpecOf(object), true);
      DefaultPodStatus(object);
      return;
    case KindId::kPodTemplateSpec:
      DefaultPodSpec(SpecOf(object), false);
      return;
    case KindId::kNode:
      DefaultNode(object);
      return;
    case KindId::kNamespace:
      DefaultNamespace(object);
      return;
    case KindId::kSecret:
      FoldTexts(object.get_object());
      if (TextAt(object, "type").empty()) object.get_object()["type"] = "Opaque";
      return;
    case KindId::kPriorityClass:
      SetDefault(object.get_object(), "preemptionPolicy", "PreemptLowerPriority");
      return;
    default:
      DefaultWorkload(kind, object.get_object());
      DefaultService(kind, object.get_object());
      DefaultStorage(kind, object.get_object());
      DefaultPolicy(kind, object.get_object());
      return;
  }
}

void AddHeld(const Kind& kind, Json& object) {
  if (kind.id == KindId::kDaemonSet &&
      FindMember(ObjectAt(object, "metadata.annotations"), kTemplateGeneration) == nullptr) {
    SetTemplateGeneration(object, 0);
  }
}

void ApplyDefaultsWithoutSpec(const Kind& kind, Json& object) {
  if (!object.is_object()) return;
  if (kind.id == KindId::kPod) {
    DefaultPodStatus(object);
  } else {
    ApplyDefaults(kind, object);
  }
}

void AddDefaultTolerations(Json& pod) {
  constexpr int64_t kSeconds = 300;
  JsonObject& spec = MemberObject(pod.get_object(), "spec");
  Json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations.emplace_array();
  JsonArray& list = tolerations.get_array();
  const size_t given = list.size();
  for (const std::string_view key :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    bool tolerated = false;
    for (size_t i = 0; i < given; ++i) tolerated = tolerated || Tolerates(list[i], key);
    if (tolerated) continue;
    // Members in the order that Conform leaves them in.
    list.push_back(JsonObject({{"effect", "NoExecute"},
                               {"key", key},
                               {"operator", "Exists"},
                               {"tolerationSeconds", kSeconds}},
                              list.storage()));
  }
}

void PrepareForCreate(KindId kind, Json& object) { PrepareForCreate(KindOf(kind), object); }

void PrepareForCreate(const Kind& type, Json& object) {
  if (!object.is_object()) return;
  const KindId kind = type.id;
  DropUnserved(type, nullptr, object);
  if (type.custom) {
    if (type.has_status) RemoveMember(object.get_object(), "status");
    SetGeneration(object, 1);
    return;
  }
  switch (kind) {
    case KindId::kNamespace:
      PrepareNamespace(object);
      return;
    case KindId::kPod:
      PreparePod(object);
      return;
    case KindId::kPriorityClass:
      SetGeneration(object, 1);
      return;
    case KindId::kJob:
      GenerateSelector(object);
      break;
    case KindId::kDaemonSet:
      SetTemplateGeneration(object, 1);
      break;
    case KindId::kPersistentVolumeClaim:
      SettleDataSources(nullptr, object);
      [[fallthrough]];
    case KindId::kPersistentVolume:
      object.get_object()["status"] = JsonObject{{"phase", "Pending"}};
      return;
    case KindId::kCustomResourceDefinition: {
      // What the versions' storage says stays: it is a default, not a claim of who asks.
      Json stored = JsonArray();
      if (const Json* found = FindPath(std::as_const(object), "status.storedVersions")) {
        stored = *found;
      }
      // Names and conditions come when it is looked at.
      object.get_object()["status"] =
          JsonObject{{"conditions", nullptr},
                     {"acceptedNames", JsonObject{{"plural", ""}, {"kind", ""}}},
                     {"storedVersions", std::move(stored)}};
      SetGeneration(object, 1);
      return;
    }
    default:
      break;
  }
  if (type.has_status && kind != KindId::kNode) ResetStatus(kind, object);
  if (HasGeneration(kind) || CountsAnything(type)) SetGeneration(object, 1);
}

void PrepareForUpdate(KindId kind, const Json& old, Json& object, Subresource subresource) {
  PrepareForUpdate(KindOf(kind), old, object, subresource);
}

void PrepareForUpdate(const Kind& type, const Json& old, Json& object, Subresource subresource) {
  if (!object.is_object() || !old.is_object()) return;
  const KindId kind = type.id;
  KeepMetadata(old, object);
  // Of a status only nodes have such fields, and a pod's spec may be left out of one.
  if (subresource != Subresource::kStatus || kind == KindId::kNode) {
    DropUnserved(type, &old, object);
  }
  if (subresource == Subresource::kStatus) {
    PrepareStatusUpdate(type, old, object);
    return;
  }
  if (subresource == Subresource::kResize || subresource == Subresource::kEphemeralContainers)
    rules::KeepAllButPart(old, object, subresource);
  if (type.has_status) KeepMember(old, object, "status");
  // Where traffic came in goes with the balancer.
  if (kind == KindId::kService && TextAt(object, "spec.type") != "LoadBalancer" &&
      !ArrayAt(object, "status.loadBalancer.ingress").empty()) {
    SetPath(object, "status.loadBalancer", JsonObject());
  }
  if (kind == KindId::kPod && subresource == Subresource::kNone) {
    AddDefaultTolerations(object);
    // Admission worked them out when the pod was made.
    for (const JsonPath path : {JsonPath("spec.priority"), JsonPath("spec.preemptionPolicy")}) {
      const Json* kept = FindPath(old, path);
      if (kept != nullptr && FindPath(object, path) == nullptr) SetPath(object, path, *kept);
    }
  }
  if (kind == KindId::kNamespace && subresource == Subresource::kNone) {
    KeepMember(old, object, "spec.finalizers");
  }
  if (kind == KindId::kCustomResourceDefinition) NoteStoredVersion(object);
  if (kind == KindId::kPersistentVolumeClaim) SettleDataSources(&old, object);
  if (kind == KindId::kCsiDriver && !SamePath(old, object, "spec")) {
    SetGeneration(object, IntegerAt(old, "metadata.generation") + 1);
  }
  if (CountsAnything(type)) {
    const bool labelled =
        kind == KindId::kEndpointSlice && !SamePath(old, object, "metadata.labels");
    if (labelled || ChangesGeneration(type, old, object)) {
      SetGeneration(object, IntegerAt(old, "metadata.generation") + 1);
    }
    return;
  }
  if (kind == KindId::kDaemonSet) KeepTemplateGeneration(old, object);
  const bool annotated =
      kind == KindId::kDeployment && !SamePath(old, object, "metadata.annotations");
  if (HasGeneration(kind) && (annotated || !SamePath(old, object, "spec"))) {
    SetGeneration(object, IntegerAt(old, "metadata.generation") + 1);
  }
}

std::string_view QosClassOf(const Json& pod) {
  QosSum sum;
  const JsonObject& level = ObjectAt(pod, "spec.resources");
  if (!level.empty()) {
    sum.Count(*FindPath(pod, "spec"));
  } else {
    for (const std::string_view list : {"spec.containers", "spec.initContainers"}) {
      for (const Json& container : ArrayAt(pod, list)) sum.Count(container);
    }
  }
  if (!sum.any) return "BestEffort";
  return sum.guaranteed ? "Guaranteed" : "Burstable";
}

std::string_view EventMember(KindId to, std::string_view name) {
  for (const Renamed& member : kEventMembers) {
    if (to == KindId::kEvent && SameText(member.events, name)) return member.core;
    if (to == KindId::kEventsEvent && SameText(member.core, name)) return member.events;
  }
  return name;
}

void ConvertEvent(KindId from, KindId to, Json& event) {
  if (from == to || !event.is_object()) return;
  const bool to_core = to == KindId::kEvent;
  JsonObject& members = event.get_object();
  for (const Renamed& name : kEventMembers) {
    Move(members, to_core ? name.events : name.core, to_core ? name.core : name.events);
  }
  // Core events always say who reports, those of the group only where there is anything to say.
  for (const std::string_view name : {"reportingComponent", "reportingInstance"}) {
    const std::string_view called = EventMember(to, name);
    if (to_core) {
      members.emplace(called, "");  // Unless it is there.
    } else if (const Json* said = FindMember(members, called);
               said != nullptr && TextAt(event, called).empty()) {
      RemoveMember(members, called);
    }
  }
  members["apiVersion"] = KindOf(to).api_version();
}

}  // namespace berth::api
