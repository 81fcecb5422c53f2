#include "apiserver/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "api/defaults.h"
#include "api/object.h"
#include "api/quantity.h"
#include "api/quota.h"
#include "api/storage_class.h"
#include "api/well_known.h"
#include "apiserver/limit_ranges.h"
#include "apiserver/mountable_secrets.h"
#include "apiserver/objects.h"
#include "apiserver/queue_admission.h"
#include "apiserver/runtime_classes.h"
#include "apiserver/topology_labels.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

store::ObjectRef Find(const store::Store& store, KindId kind, std::string_view name) {
  return store.FindHead(static_cast<store::Table>(kind), {.namespace_name = "", .name = name});
}

// The class that counts for pods that name none: of several, the one with the lowest value.
store::ObjectRef FindGlobalDefault(const store::Store& store) {
  store::ObjectRef found;
  int64_t value = 0;
  store.WalkHead({.table = static_cast<store::Table>(KindId::kPriorityClass)},
                 [&](const store::ObjectRef& object) {
                   // Nearly no class is the default: most are seen not to be without parsing them.
                   // Without the first quote, because the search is for its first letter.
                   if (object->json.view().find("globalDefault\":true") == std::string_view::npos) {
                     return true;
                   }
                   const Json document = Load(*object);
                   if (!api::FlagAt(document, "globalDefault")) return true;
                   const int64_t candidate = api::IntegerAt(document, "value");
                   if (found == nullptr || candidate < value) {
                     found = object;
                     value = candidate;
                   }
                   return true;
                 });
  return found;
}

Outcome<void> AdmitPriority(const store::Store& store, Subject subject, Json& pod) {
  std::string name(api::TextAt(pod, "spec.priorityClassName"));
  int64_t priority = 0;
  std::string policy = "PreemptLowerPriority";
  store::ObjectRef found;
  if (name.empty()) {
    found = FindGlobalDefault(store);
  } else {
    found = Find(store, KindId::kPriorityClass, name);
    if (found == nullptr) {
      return Forbidden(subject, fmt::format("no PriorityClass with name {} was found", name));
    }
  }
  if (found != nullptr) {
    const Json document = Load(*found);
    name = found->name;
    priority = api::IntegerAt(document, "value");
    if (const std::string_view own = api::TextAt(document, "preemptionPolicy"); !own.empty()) {
      policy = own;
    }
  }
  const Json* sent = api::FindPath(pod, "spec.priority");
  if (sent != nullptr && sent->is_int64() && sent->get_int64() != priority) {
    return Forbidden(
        subject,
        fmt::format("the integer value of priority ({}) must not be provided in pod spec; priority "
                    "admission controller computed {} from the given PriorityClass name",
                    sent->get_int64(), priority));
  }
  const std::string_view sent_policy = api::TextAt(pod, "spec.preemptionPolicy");
  if (!sent_policy.empty() && sent_policy != policy) {
    return Forbidden(
        subject,
        fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod spec; "
                    "priority admission controller computed {} from the given PriorityClass name",
                    sent_policy, policy));
  }
  JsonObject& spec = api::MemberObject(pod.get_object(), "spec");
  if (!name.empty()) spec["priorityClassName"] = name;
  spec["priority"] = priority;
  spec["preemptionPolicy"] = policy;
  return {};
}

Outcome<void> AdmitServiceAccount(const store::Store& store, Subject subject, Json& pod) {
  JsonObject& spec = api::MemberObject(pod.get_object(), "spec");
  std::string name(api::TextAt(pod, "spec.serviceAccountName"));
  // Every namespace gets the account "default", soon after it is made; pods needn't wait for that.
  if (name.empty()) name = "default";
  const std::string_view ns = api::TextAt(pod, "metadata.namespace");
  const auto table = static_cast<store::Table>(KindId::kServiceAccount);
  const store::ObjectRef account = store.FindHead(table, {.namespace_name = ns, .name = name});
  if (account == nullptr && name != "default") {
    return Forbidden(subject, fmt::format("error looking up service account {}/{}: serviceaccount "
                                          "\"{}\" not found",
                                          ns, name, name));
  }
  // Most have none, which is seen without parsing them.
  if (account != nullptr && account->json.view().contains("\"imagePullSecrets\":") &&
      api::ArrayAt(pod, "spec.imagePullSecrets").empty()) {
    const Json secrets = Json(api::ArrayAt(Load(*account), "imagePullSecrets"));
    if (!secrets.get_array().empty()) spec["imagePullSecrets"] = secrets;
  }
  spec["serviceAccountName"] = name;
  spec["serviceAccount"] = name;
  return account == nullptr ? Outcome<void>() : CheckMountable(*account, subject, pod);
}

// A new node takes no pods until something says that it is ready.
void TaintNotReady(Json& node) {
  constexpr std::string_view kKey = "node.kubernetes.io/not-ready";
  JsonObject& spec = api::MemberObject(node.get_object(), "spec");
  Json& taints = spec["taints"];
  if (!taints.is_array()) taints = JsonArray();
  for (const Json& taint : taints.get_array()) {
    if (api::TextAt(taint, "key") == kKey && api::TextAt(taint, "effect") == "NoSchedule") return;
  }
  taints.get_array().push_back(JsonObject{{"effect", "NoSchedule"}, {"key", kKey}});
}

// A Job of a LocalQueue is held until it is admitted there.
void HoldQueued(Json& job) {
  const Json* queue = api::FindMember(api::ObjectAt(job, "metadata.labels"), api::kQueueNameLabel);
  if (queue == nullptr || !queue->is_string() || queue->get_string().empty()) return;
  api::MemberObject(job.get_object(), "spec")["suspend"] = true;
}

void AddFinalizer(Json& object, std::string_view finalizer) {
  api::JsonArray finalizers = api::ArrayAt(object, "metadata.finalizers");
  const Json added(finalizer);
  if (std::ranges::find(finalizers, added) != finalizers.end()) return;
  finalizers.push_back(added);
  api::SetPath(object, "metadata.finalizers", std::move(finalizers));
}

// The class of that kind for who names none: of several the newest, then by name. Null for none.
store::ObjectRef FindDefaultClass(const store::Store& store, KindId kind,
                                  bool (*is_default)(const Json&)) {
  store::ObjectRef found;
  std::string created;
  store.WalkHead({.table = static_cast<store::Table>(kind)}, [&](const store::ObjectRef& object) {
    // Few classes are, and most are seen not to be without parsing them.
    if (object->json.view().find("is-default-class") == std::string_view::npos) return true;
    const Json document = Load(*object);
    if (!is_default(document)) return true;
    std::string since(api::TextAt(document, "metadata.creationTimestamp"));
    if (found == nullptr || since > created) {
      found = object;
      created = std::move(since);
    }
    return true;
  });
  return found;
}

// DefaultIngressClass. The annotation is how classes were named before.
void AdmitIngress(const store::Store& store, Json& ingress) {
  constexpr std::string_view kNamed = "kubernetes.io/ingress.class";
  if (api::FindPath(ingress, "spec.ingressClassName") != nullptr) return;
  if (api::FindMember(api::ObjectAt(ingress, "metadata.annotations"), kNamed) != nullptr) return;
  const auto is_default = [](const Json& ingress_class) {
    constexpr std::string_view kDefault = "ingressclass.kubernetes.io/is-default-class";
    const Json* said =
        api::FindMember(api::ObjectAt(ingress_class, "metadata.annotations"), kDefault);
    return said != nullptr && *said == "true";
  };
  const store::ObjectRef found = FindDefaultClass(store, KindId::kIngressClass, is_default);
  if (found != nullptr) api::SetPath(ingress, "spec.ingressClassName", Json(found->name));
}

// DefaultStorageClass.
void AdmitClaim(const store::Store& store, Json& claim) {
  AddFinalizer(claim, api::kClaimProtectionFinalizer);
  if (api::StorageClassNameOf(claim)) return;
  const store::ObjectRef found = FindDefaultClass(
      store, KindId::kStorageClass,
      [](const Json& storage_class) { return api::IsDefaultStorageClass(storage_class); });
  if (found != nullptr) api::SetPath(claim, "spec.storageClassName", Json(found->name));
}

// PersistentVolumeClaimResize.
Outcome<void> AdmitClaimSize(const store::Store& store, Subject subject, const Json& old,
                             const Json& claim) {
  const auto size_of = [](const Json& object) {
    const Json* amount = api::FindPath(object, "spec.resources.requests.storage");
    return amount == nullptr ? api::Quantity{}
                             : api::ParseQuantity(api::TextOf(*amount)).value_or(api::Quantity{});
  };
  if (api::Compare(size_of(claim), size_of(old)) <= 0) return {};
  if (api::TextAt(old, "status.phase") != "Bound")
    return Forbidden(subject, "Only bound persistent volume claims can be expanded");
  const store::ObjectRef found =
      Find(store, KindId::kStorageClass, api::StorageClassNameOf(claim).value_or(""));
  if (found != nullptr && api::FlagAt(Load(*found), "allowVolumeExpansion")) return {};
  return Forbidden(subject,
                   "only dynamically provisioned pvc can be resized and the storageclass that "
                   "provisions the pvc must support resize");
}

Outcome<void> AdmitPriorityClass(const store::Store& store, Subject subject, const Json& object) {
  if (!api::FlagAt(object, "globalDefault")) return {};
  const store::ObjectRef other = FindGlobalDefault(store);
  if (other == nullptr || other->name == subject.name) return {};
  return Forbidden(
      subject,
      fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                  other->name));
}

}  // namespace

Outcome<void> AdmitNamespace(const store::Store& store, Subject subject,
                             std::string_view namespace_name) {
  const store::ObjectRef found = Find(store, KindId::kNamespace, namespace_name);
  if (found == nullptr) {
    return NotFound({.kind = api::KindOf(KindId::kNamespace), .name = namespace_name});
  }
  if (found->fields.empty() || found->fields.front() != "Terminating") return {};
  auto problem = Forbidden(
      subject,
      fmt::format("unable to create new content in namespace {} because it is being terminated",
                  namespace_name));
  problem.error().causes.push_back(
      {.reason = "NamespaceTerminating",
       .message = fmt::format("namespace {} is being terminated", namespace_name),
       .field = "metadata.namespace"});
  return problem;
}

Outcome<void> AdmitCreate(const store::Store& store, const api::Kind& kind, Json& object) {
  const std::string name(api::TextAt(object, "metadata.name"));
  const Subject subject{.kind = kind, .name = name};
  switch (kind.id) {
    case KindId::kPod: {
      ApplyLimitRanges(store, object);
      if (Outcome<void> account = AdmitServiceAccount(store, subject, object); !account) {
        return account;
      }
      api::AddDefaultTolerations(object);
      if (Outcome<void> priority = AdmitPriority(store, subject, object); !priority)
        return priority;
      AddTopologyLabels(store, api::TextAt(object, "spec.nodeName"), object);
      return AdmitRuntimeClass(store, subject, object);
    }
    case KindId::kNode:
      TaintNotReady(object);
      return {};
    case KindId::kJob:
      HoldQueued(object);
      return {};
    case KindId::kPersistentVolume:
      AddFinalizer(object, api::kVolumeProtectionFinalizer);
      return {};
    case KindId::kPersistentVolumeClaim:
      AdmitClaim(store, object);
      return {};
    case KindId::kIngress:
      AdmitIngress(store, object);
      return {};
    default:
      return {};
  }
}

Outcome<void> AdmitValid(const store::Store& store, const api::Kind& kind, const Json* old,
                         const Json& object) {
  const Subject subject{.kind = kind, .name = api::TextAt(object, "metadata.name")};
  if (kind.id == KindId::kQueue) return AdmitQueue(store, subject, old, object);
  if (kind.id == KindId::kPodGroup && old == nullptr) return AdmitPodGroup(store, subject, object);
  if (kind.id == KindId::kPersistentVolumeClaim && old != nullptr)
    return AdmitClaimSize(store, subject, *old, object);
  if (kind.id != KindId::kPriorityClass) return {};
  return AdmitPriorityClass(store, subject, object);
}

Outcome<void> AdmitDelete(const store::Store& store, Subject subject) {
  constexpr std::array<std::string_view, 3> kNamespaces = {"default", "kube-system", "kube-public"};
  constexpr std::array<std::string_view, 2> kClasses = {"system-cluster-critical",
                                                        "system-node-critical"};
  if (subject.kind.id == KindId::kNamespace) {
    for (const std::string_view name : kNamespaces) {
      if (subject.name == name) return Forbidden(subject, "this namespace may not be deleted");
    }
  }
  if (subject.kind.id == KindId::kQueue) return AdmitQueueDeletion(store, subject);
  if (subject.kind.id == KindId::kPriorityClass) {
    for (const std::string_view name : kClasses) {
      if (subject.name == name) {
        return Forbidden(subject, "this is a system priority class and cannot be deleted");
      }
    }
  }
  return {};
}

}  // namespace berth::apiserver
