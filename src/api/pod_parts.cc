#include "api/pod_parts.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "api/defaults.h"
#include "api/object.h"
#include "api/validate_pod.h"
#include "base/check.h"

namespace berth::api::rules {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::array<std::string_view, 2> kLists = {"containers", "initContainers"};
constexpr std::array<std::string_view, 2> kAmounts = {"requests", "limits"};
constexpr std::array<std::string_view, 2> kResizable = {"cpu", "memory"};
// Upstream names no field, which it prints so.
constexpr std::string_view kWholePod = "[]";
constexpr std::string_view kOnlyCpuAndMemory = "only cpu and memory resources are mutable";

void Keep(const Json& from, Json& object, std::string_view path) {
  if (const Json* value = FindPath(from, path)) {
    SetPath(object, path, *value);
  } else {
    RemovePath(object, path);
  }
}

bool SameMember(const Json& a, const Json& b, std::string_view member) {
  const Json* left = FindMember(a, member);
  const Json* right = FindMember(b, member);
  if (left == nullptr || right == nullptr) return left == right;
  return SameJson(*left, *right);
}

bool HaveSameNames(const JsonArray& a, const JsonArray& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (TextAt(a[i], "name") != TextAt(b[i], "name")) return false;
  }
  return true;
}

// The old containers with the resources of the new ones.
Json Resized(const JsonArray& before, const JsonArray& after) {
  JsonArray result(before, before.storage());
  for (size_t i = 0; i < result.size(); ++i) {
    for (const std::string_view member : {"resources", "resizePolicy"}) {
      Keep(after[i], result[i], member);
    }
  }
  return result;
}

void KeepAllButResources(const Json& old, Json& spec) {
  for (const std::string_view list : kLists) {
    if (ArrayAt(spec, list).size() != ArrayAt(old, list).size()) return;
  }
  Json kept(old, spec.storage());
  Keep(spec, kept, "resources");
  for (const std::string_view list : kLists) {
    const JsonArray& before = ArrayAt(old, list);
    const JsonArray& after = ArrayAt(spec, list);
    if (before.empty()) continue;
    kept.get_object()[list] = HaveSameNames(before, after) ? Resized(before, after) : Json(after);
  }
  spec = std::move(kept);
}

// Requests or limits with the cpu and memory of `old`; an empty list as if it were not there.
void RestoreAmounts(const Json& old, Json& resources, std::string_view list) {
  JsonObject amounts = ObjectAt(resources, list);
  const JsonObject& before = ObjectAt(old, list);
  for (const std::string_view name : kResizable) {
    RemoveMember(amounts, name);
    if (const Json* amount = FindMember(before, name)) amounts[name] = *amount;
  }
  if (amounts.empty()) {
    RemoveMember(resources.get_object(), list);
  } else {
    resources.get_object()[list] = std::move(amounts);
  }
}

void DropEmpty(JsonObject& owner, std::string_view member) {
  const Json* value = FindMember(std::as_const(owner), member);
  if (value == nullptr) return;
  const bool empty = (value->is_object() && value->get_object().empty()) ||
                     (value->is_array() && value->get_array().empty());
  if (empty) RemoveMember(owner, member);
}

// A container, or a pod's spec, whose resources are compared: without empty lists.
Json Settled(const Json& owner) {
  Json settled = owner;
  JsonObject& members = settled.get_object();
  if (Json* resources = FindMember(settled, "resources");
      resources != nullptr && resources->is_object()) {
    for (const std::string_view list : kAmounts) DropEmpty(resources->get_object(), list);
  }
  DropEmpty(members, "resources");
  DropEmpty(members, "resizePolicy");
  return settled;
}

// Whether nothing but amounts of cpu and memory differs.
bool OnlyResizes(const Json& old, const Json& container) {
  Json munged = container;
  Json resources = OrEmptyObject(FindMember(container, "resources"));
  const Json& before = OrEmptyObject(FindMember(old, "resources"));
  for (const std::string_view list : kAmounts) RestoreAmounts(before, resources, list);
  // Upstream forgets the claims here, so that who has some can't be resized.
  RemoveMember(resources.get_object(), "claims");
  munged.get_object()["resources"] = std::move(resources);
  return SameJson(Settled(old), Settled(munged));
}

bool AnyRemoved(const Json& old, const Json& now, std::string_view list) {
  const JsonObject& after = ObjectAt(now, list);
  for (const auto& [name, amount] : ObjectAt(old, list)) {
    if (!after.contains(name)) return true;
  }
  return false;
}

void CheckNoneRemoved(FieldErrors& errors, const Path& path, const Json& old, const Json& owner) {
  const Json& before = OrEmptyObject(FindMember(old, "resources"));
  const Json& after = OrEmptyObject(FindMember(owner, "resources"));
  const Path resources = path.At("resources");
  if (AnyRemoved(before, after, "requests")) {
    AddForbidden(errors, resources.At("requests"), "resource requests cannot be removed");
  }
  if (AnyRemoved(before, after, "limits")) {
    AddForbidden(errors, resources.At("limits"), "resource limits cannot be removed");
  }
}

bool HasPodLevel(const Json& spec) {
  return !ObjectAt(spec, "resources.requests").empty() ||
         !ObjectAt(spec, "resources.limits").empty();
}

void CheckPodLevelResize(FieldErrors& errors, const Path& path, const Json& old, const Json& spec) {
  const Json* before = FindMember(old, "resources");
  const Json* after = FindMember(spec, "resources");
  const Path resources_path = path.At("resources");
  if (before != nullptr && after == nullptr) {
    AddForbidden(errors, resources_path, "pod-level resources cannot be removed");
    return;
  }
  if (before != nullptr && AnyRemoved(*before, *after, "requests")) {
    AddForbidden(errors, resources_path.At("requests"),
                 "pod-level resource requests cannot be removed");
  }
  if (before != nullptr && AnyRemoved(*before, *after, "limits")) {
    AddForbidden(errors, resources_path.At("limits"),
                 "pod-level resource limits cannot be removed");
  }
  Json munged = *after;
  for (const std::string_view list : kAmounts) {
    RestoreAmounts(OrEmptyObject(before), munged, list);
  }
  const Json left = Settled(JsonObject{{"resources", std::move(munged)}});
  const Json had = Settled(JsonObject{{"resources", OrEmptyObject(before)}});
  if (!SameJson(left, had)) {
    AddForbidden(errors, path, "only cpu and memory resources are mutable at pod-level");
  }
}

// Whether the containers still are the same ones, in the same order.
bool CheckOrder(FieldErrors& errors, const Path& spec_path, const Json& old, const Json& spec) {
  bool same = true;
  for (const std::string_view list : kLists) {
    const JsonArray& before = ArrayAt(old, list);
    const JsonArray& after = ArrayAt(spec, list);
    if (before.size() != after.size()) {
      AddForbidden(errors, spec_path.At(list),
                   fmt::format("{} may not be added or removed on resize", list));
      same = false;
      continue;
    }
    for (size_t i = 0; i < before.size(); ++i) {
      if (TextAt(before[i], "name") == TextAt(after[i], "name")) continue;
      const Path path = spec_path.At(list, i);
      AddForbidden(errors, path.At("name"),
                   fmt::format("{} may not be renamed or reordered on resize", list));
      same = false;
    }
  }
  return same;
}

void CheckStarterResize(FieldErrors& errors, const Path& path, const Json& old,
                        const Json& container) {
  if (!OnlyResizes(old, container)) {
    AddForbidden(errors, path,
                 "only cpu and memory resources for init or sidecar containers are mutable");
  }
  if (TextAt(container, "restartPolicy") == "Always" || SameJson(old, container)) return;
  for (const Json& policy : ArrayAt(container, "resizePolicy")) {
    if (TextAt(policy, "restartPolicy") != "RestartContainer") continue;
    AddForbidden(errors, path,
                 "non-sidecar init containers with a resize policy of RestartContainer cannot be "
                 "resized");
  }
}

// What runs tells whether its node can do it: such a node says what is in use.
bool NodeCanResize(const Json& pod) {
  for (const Json& status : ArrayAt(pod, "status.containerStatuses")) {
    if (FindPath(status, "state.running") == nullptr) continue;
    return FindMember(status, "resources") != nullptr;
  }
  return true;
}

// Whether pods of this kind have no such part at all, which then is all there is to say.
bool IsOutOfReach(FieldErrors& errors, const Json& old, std::string_view what) {
  if (FindMember(ObjectAt(old, "metadata.annotations"), kMirror) == nullptr) return false;
  errors.clear();
  AddForbidden(errors, Path(kWholePod), fmt::format("static pods {}", what));
  return true;
}

}  // namespace

void KeepAllButPart(const Json& old, Json& pod, Subresource part) {
  CHECK(part == Subresource::kEphemeralContainers || part == Subresource::kResize);
  Json& spec = pod.get_object()["spec"];
  const Json& before = OrEmptyObject(FindMember(old, "spec"));
  if (part == Subresource::kResize) {
    KeepAllButResources(before, spec);
  } else {
    Json kept(before, spec.storage());
    Keep(spec, kept, "ephemeralContainers");
    spec = std::move(kept);
  }
  for (const std::string_view path : {"status", "metadata.labels", "metadata.annotations",
                                      "metadata.finalizers", "metadata.ownerReferences"}) {
    Keep(old, pod, path);
  }
}

void CheckEphemeralUpdate(FieldErrors& errors, const Json& old, const Json& pod) {
  CheckMetaUpdate(errors, old, pod);
  const Path spec("spec");
  CheckPodSpec(errors, spec, OrEmptyObject(FindMember(pod, "spec")), false);
  if (IsOutOfReach(errors, old, "do not support ephemeral containers")) return;
  const Path path = spec.At("ephemeralContainers");
  const JsonArray& after = ArrayAt(pod, "spec.ephemeralContainers");
  for (const Json& container : ArrayAt(old, "spec.ephemeralContainers")) {
    const std::string_view name = TextAt(container, "name");
    const Json* now = nullptr;
    for (const Json& each : after) {
      if (TextAt(each, "name") == name) now = &each;
    }
    if (now == nullptr) {
      AddForbidden(errors, path,
                   fmt::format("existing ephemeral containers \"{}\" may not be removed\n", name));
    } else if (!SameJson(container, *now)) {
      AddForbidden(errors, path,
                   fmt::format("existing ephemeral containers \"{}\" may not be changed\n{}", name,
                               MemberDifferences(container, *now)));
    }
  }
}

void CheckResize(FieldErrors& errors, const Json& old_pod, const Json& pod) {
  const Path path("spec");
  const Json& old = OrEmptyObject(FindMember(old_pod, "spec"));
  const Json& spec = OrEmptyObject(FindMember(pod, "spec"));
  CheckMetaUpdate(errors, old_pod, pod);
  CheckPodSpec(errors, path, spec, false);
  if (IsOutOfReach(errors, old_pod, "cannot be resized")) return;
  if (TextAt(old, "os.name") == "windows") {
    errors.clear();
    AddForbidden(errors, Path(kWholePod), "windows pods cannot be resized");
    return;
  }
  const std::string_view qos = TextAt(old_pod, "status.qosClass");
  if ((qos.empty() ? QosClassOf(old_pod) : qos) != QosClassOf(pod)) {
    AddInvalid(errors, path, TextAt(pod, "status.qosClass"),
               {"Pod QOS Class may not change as a result of resizing"});
  }
  if (!NodeCanResize(old_pod)) {
    AddForbidden(errors, path, "Pod running on node without support for resize");
  }
  if (HasPodLevel(old) || HasPodLevel(spec)) CheckPodLevelResize(errors, path, old, spec);
  if (!CheckOrder(errors, path, old, spec)) return;
  const JsonArray& starters = ArrayAt(spec, "initContainers");
  const JsonArray& old_starters = ArrayAt(old, "initContainers");
  const JsonArray& containers = ArrayAt(spec, "containers");
  const JsonArray& old_containers = ArrayAt(old, "containers");
  for (size_t i = 0; i < starters.size(); ++i) {
    CheckNoneRemoved(errors, path.At("initContainers", i), old_starters[i], starters[i]);
  }
  for (size_t i = 0; i < containers.size(); ++i) {
    CheckNoneRemoved(errors, path.At("containers", i), old_containers[i], containers[i]);
  }
  for (size_t i = 0; i < containers.size(); ++i) {
    if (!OnlyResizes(old_containers[i], containers[i])) {
      AddForbidden(errors, path, std::string(kOnlyCpuAndMemory));
    }
  }
  for (size_t i = 0; i < starters.size(); ++i) {
    CheckStarterResize(errors, path.At("initContainers", i), old_starters[i], starters[i]);
  }
  const bool same_level =
      HasPodLevel(old) || HasPodLevel(spec) || SameMember(old, spec, "resources");
  if (errors.empty() && !same_level) AddForbidden(errors, path, std::string(kOnlyCpuAndMemory));
}

}  // namespace berth::api::rules
