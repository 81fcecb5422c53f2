#include "api/unserved.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "api/object.h"

namespace berth::api {
namespace {

// A path of members; `*` is each item of a list.
struct Unserved {
  std::string_view path;
  // An object that only had this goes, too.
  bool with_parent = false;
};

struct UnservedOfKind {
  KindId kind;
  Unserved field;
};

constexpr auto kPodFields = std::to_array<Unserved>({
    {.path = "schedulingGroup"},
    {.path = "containers.*.lifecycle.stopSignal", .with_parent = true},
    {.path = "initContainers.*.lifecycle.stopSignal", .with_parent = true},
    {.path = "ephemeralContainers.*.lifecycle.stopSignal", .with_parent = true},
    {.path = "volumes.*.projected.sources.*.clusterTrustBundle"},
    {.path = "volumes.*.projected.sources.*.podCertificate"},
});

constexpr auto kKindFields = std::to_array<UnservedOfKind>({
    {KindId::kStatefulSet, {.path = "spec.updateStrategy.rollingUpdate.maxUnavailable"}},
    {KindId::kLease, {.path = "spec.strategy"}},
    {KindId::kLease, {.path = "spec.preferredHolder"}},
    {KindId::kCsiDriver, {.path = "spec.preventPodSchedulingIfMissing"}},
    {KindId::kNode, {.path = "spec.configSource"}},
    {KindId::kNode, {.path = "status.config"}},
    {KindId::kEndpointSlice, {.path = "endpoints.*.deprecatedTopology"}},
});

std::pair<std::string_view, std::string_view> Split(std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

bool Has(const Json& node, std::string_view path) {
  const auto [head, rest] = Split(path);
  if (head == "*") {
    return node.is_array() &&
           std::ranges::any_of(node.get_array(), [&](const Json& item) { return Has(item, rest); });
  }
  const Json* member = FindMember(node, head);
  return member != nullptr && (rest.empty() || Has(*member, rest));
}

// Returns whether `node` is to go with what was taken from it.
bool Take(Json& node, std::string_view path, bool with_parent) {
  const auto [head, rest] = Split(path);
  if (head == "*") {
    if (!node.is_array()) return false;
    for (Json& item : node.get_array()) Take(item, rest, with_parent);
    return false;
  }
  Json* member = FindMember(node, head);
  if (member == nullptr) return false;
  if (!rest.empty() && !Take(*member, rest, with_parent)) return false;
  RemoveMember(node.get_object(), head);
  return rest.empty() && with_parent && node.get_object().empty();
}

void Drop(const Unserved& field, const Json* old, Json& object) {
  if (!Has(object, field.path) || (old != nullptr && Has(*old, field.path))) return;
  Take(object, field.path, field.with_parent);
}

// Where a kind has the spec of pods; empty where it has none.
std::string_view PodSpecOf(KindId kind) {
  switch (kind) {
    case KindId::kPod:
      return "spec";
    case KindId::kDeployment:
    case KindId::kReplicaSet:
    case KindId::kStatefulSet:
    case KindId::kDaemonSet:
    case KindId::kReplicationController:
    case KindId::kJob:
      return "spec.template.spec";
    case KindId::kCronJob:
      return "spec.jobTemplate.spec.template.spec";
    case KindId::kPodTemplate:
      return "template.spec";
    default:
      return "";
  }
}

// Secrets are of the account's namespace, and only their names are read.
void KeepNamesOfSecrets(Json& account) {
  Json* secrets = FindMember(account, "secrets");
  if (secrets == nullptr || !secrets->is_array()) return;
  for (Json& secret : secrets->get_array()) {
    const Json* name = FindMember(std::as_const(secret), "name");
    JsonObject kept(secret.storage());
    if (name != nullptr) kept["name"] = *name;
    secret = std::move(kept);
  }
}

// What the older name takes: of the groups that it was made for.
bool IsClaimOrSnapshot(const Json& source) {
  const std::string_view group = TextAt(source, "apiGroup");
  const std::string_view kind = TextAt(source, "kind");
  return (group.empty() && kind == "PersistentVolumeClaim") ||
         (group == "snapshot.storage.k8s.io" && kind == "VolumeSnapshot");
}

}  // namespace

void DropUnserved(const Kind& kind, const Json* old, Json& object) {
  if (kind.custom) return;
  for (const UnservedOfKind& row : kKindFields) {
    if (row.kind == kind.id) Drop(row.field, old, object);
  }
  if (kind.id == KindId::kServiceAccount) KeepNamesOfSecrets(object);
  const std::string_view where = PodSpecOf(kind.id);
  Json* spec = where.empty() ? nullptr : FindPath(object, where);
  if (spec == nullptr) return;
  const Json* before = old == nullptr ? nullptr : FindPath(*old, where);
  for (const Unserved& field : kPodFields) Drop(field, before, *spec);
}

void SettleDataSources(const Json* old, Json& claim) {
  Json* spec = FindMember(claim, "spec");
  if (spec == nullptr || !spec->is_object()) return;
  JsonObject& members = spec->get_object();
  const Json& had =
      old == nullptr ? OrEmptyObject(nullptr) : OrEmptyObject(FindMember(*old, "spec"));
  // Of other namespaces: behind a gate.
  if (FindPath(*spec, "dataSourceRef.namespace") != nullptr &&
      FindMember(had, "dataSourceRef") == nullptr) {
    RemoveMember(members, "dataSourceRef");
  }
  const Json* source = FindMember(std::as_const(members), "dataSource");
  const Json* reference = FindMember(std::as_const(members), "dataSourceRef");
  if (source != nullptr && reference == nullptr && !IsClaimOrSnapshot(*source) &&
      FindMember(had, "dataSource") == nullptr) {
    RemoveMember(members, "dataSource");
    return;
  }
  if (source != nullptr && reference == nullptr) {
    Json copy = *source;
    members["dataSourceRef"] = std::move(copy);
  } else if (source == nullptr && reference != nullptr && TextAt(*reference, "namespace").empty()) {
    Json copy = *reference;
    if (copy.is_object()) RemoveMember(copy.get_object(), "namespace");
    members["dataSource"] = std::move(copy);
  }
}

}  // namespace berth::api
