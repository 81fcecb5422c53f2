#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <set>
#include <string>

#include "api/object.h"
#include "api/validate_pod.h"

namespace berth::api::rules {
namespace {

constexpr std::string_view kUpdatable =
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)";
constexpr std::string_view kRequiredTerms = "requiredDuringSchedulingIgnoredDuringExecution";

bool SameMember(const Json& a, const Json& b, std::string_view path) {
  const Json* left = FindPath(a, path);
  const Json* right = FindPath(b, path);
  if (left == nullptr || right == nullptr) return left == right;
  return SameJson(*left, *right);
}

// Whether the containers still are as many; a changed number ends the check of an update.
bool CheckSameContainers(FieldErrors& errors, const Path& spec_path, const Json& old,
                         const Json& spec, std::string_view list) {
  if (ArrayAt(old, list).size() == ArrayAt(spec, list).size()) return true;
  AddForbidden(errors, spec_path.At(list), "pod updates may not add or remove containers");
  return false;
}

// Whether the check may go on.
bool CheckDeadline(FieldErrors& errors, const Path& spec_path, const Json& old, const Json& spec) {
  const Json* after = FindMember(spec, "activeDeadlineSeconds");
  const Json* before = FindMember(old, "activeDeadlineSeconds");
  const Path path = spec_path.At("activeDeadlineSeconds");
  if (after == nullptr) {
    if (before != nullptr) {
      AddInvalid(errors, path, Json(), "must not update from a positive integer to nil value");
    }
    return true;
  }
  const int64_t value = IntegerAt(spec, "activeDeadlineSeconds");
  if (value < 0 || value > INT32_MAX) {
    AddInvalid(errors, path, *after, RangeMessage(0, INT32_MAX));
    return false;
  }
  if (before != nullptr && IntegerAt(old, "activeDeadlineSeconds") < value) {
    AddInvalid(errors, path, *after, "must be less than or equal to previous value");
    return false;
  }
  return true;
}

// A toleration without its seconds, as text that doesn't depend on the order of its members.
std::string Identity(const Json& toleration) {
  std::set<std::string> members;
  if (const JsonObject* object = toleration.if_object()) {
    for (const auto& [key, value] : *object) {
      if (key == "tolerationSeconds" || value.is_null()) continue;
      members.insert(fmt::format("{}:{}", std::string_view(key), boost::json::serialize(value)));
    }
  }
  return fmt::format("{}", fmt::join(members, ","));
}

void CheckTolerationsKept(FieldErrors& errors, const Path& spec_path, const Json& old,
                          const Json& spec) {
  std::set<std::string> kept;
  for (const Json& toleration : ArrayAt(spec, "tolerations")) {
    kept.insert(Identity(toleration));
  }
  for (const Json& toleration : ArrayAt(old, "tolerations")) {
    if (kept.contains(Identity(toleration))) continue;
    AddForbidden(errors, spec_path.At("tolerations"),
                 "existing toleration can not be modified except its tolerationSeconds");
    return;
  }
}

void CheckGatesOnlyDeleted(FieldErrors& errors, const Path& spec_path, const Json& old,
                           const Json& spec) {
  std::set<std::string_view> before;
  for (const Json& gate : ArrayAt(old, "schedulingGates")) before.insert(TextAt(gate, "name"));
  const JsonArray& gates = ArrayAt(spec, "schedulingGates");
  for (size_t i = 0; i < gates.size(); ++i) {
    const std::string_view name = TextAt(gates[i], "name");
    if (before.contains(name)) continue;
    const Path path = spec_path.At("schedulingGates", i);
    AddForbidden(errors, path.At("name"),
                 fmt::format("only deletion is allowed, but found new scheduling gate '{}'", name));
  }
}

// Whether every item of `before` stands in `after`, in the same place.
bool OnlyAdds(const JsonArray& before, const JsonArray& after) {
  if (before.size() > after.size()) return false;
  for (size_t i = 0; i < before.size(); ++i) {
    if (!SameJson(before[i], after[i])) return false;
  }
  return true;
}

// A gated pod may be told more closely where to run.
void CheckGatedNarrowing(FieldErrors& errors, const Path& spec_path, const Json& old,
                         Json& munged) {
  const Json spec = munged;
  for (const auto& [key, value] : ObjectAt(old, "nodeSelector")) {
    const Json* now = FindMember(ObjectAt(spec, "nodeSelector"), key);
    if (now != nullptr && SameJson(*now, value)) continue;
    AddInvalid(errors, spec_path.At("nodeSelector"), Json(ObjectAt(spec, "nodeSelector")),
               "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    break;
  }
  RemovePath(munged, "nodeSelector");
  if (const Json* selector = FindMember(old, "nodeSelector")) {
    SetPath(munged, "nodeSelector", *selector);
  }
  const std::string terms_path =
      fmt::format("affinity.nodeAffinity.{}.nodeSelectorTerms", kRequiredTerms);
  const JsonArray& before = ArrayAt(old, terms_path);
  const JsonArray& after = ArrayAt(spec, terms_path);
  const Path path = spec_path.At("affinity");
  const Path node = path.At("nodeAffinity");
  const Path required = node.At(kRequiredTerms);
  if (!before.empty() && before.size() != after.size()) {
    AddInvalid(errors, required.At("nodeSelectorTerms"), Json(after),
               "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
  } else {
    for (size_t i = 0; i < before.size(); ++i) {
      const bool adds =
          OnlyAdds(ArrayAt(before[i], "matchExpressions"), ArrayAt(after[i], "matchExpressions")) &&
          OnlyAdds(ArrayAt(before[i], "matchFields"), ArrayAt(after[i], "matchFields"));
      if (adds) continue;
      AddInvalid(errors, required.At("nodeSelectorTerms", i), after[i],
                 "only additions are allowed (no mutations or deletions)");
    }
  }
  RemovePath(munged, "affinity.nodeAffinity");
  if (const Json* affinity = FindPath(old, "affinity.nodeAffinity")) {
    SetPath(munged, "affinity.nodeAffinity", *affinity);
  }
  if (ObjectAt(munged, "affinity").empty() && FindMember(old, "affinity") == nullptr) {
    RemovePath(munged, "affinity");
  }
}

void RestoreImages(const Json& old, Json& munged, std::string_view list) {
  Json* containers = FindMember(munged, list);
  if (containers == nullptr || !containers->is_array()) return;
  const JsonArray& before = ArrayAt(old, list);
  for (size_t i = 0; i < before.size() && i < containers->get_array().size(); ++i) {
    Json& container = containers->get_array()[i];
    if (container.is_object()) container.get_object()["image"] = TextAt(before[i], "image");
  }
}

void Restore(const Json& old, Json& munged, std::string_view member) {
  RemovePath(munged, member);
  if (const Json* value = FindMember(old, member)) SetPath(munged, member, *value);
}

}  // namespace

std::string MemberDifferences(const Json& old, const Json& munged) {
  std::string text;
  std::set<std::string_view> members;
  for (const Json* spec : {&old, &munged}) {
    if (const JsonObject* object = spec->if_object()) {
      for (const auto& [key, value] : *object) members.insert(key);
    }
  }
  const auto show = [](const Json* value) {
    return value == nullptr ? std::string("null") : boost::json::serialize(*value);
  };
  for (const std::string_view member : members) {
    if (SameMember(old, munged, member)) continue;
    text += fmt::format("- \"{}\": {}\n+ \"{}\": {}\n", member, show(FindMember(old, member)),
                        member, show(FindMember(munged, member)));
  }
  return text;
}

namespace {

void CheckOnlyUpdatable(FieldErrors& errors, const Path& spec_path, const Json& old,
                        const Json& spec) {
  Json munged = spec;
  RestoreImages(old, munged, "containers");
  RestoreImages(old, munged, "initContainers");
  Restore(old, munged, "activeDeadlineSeconds");
  Restore(old, munged, "schedulingGates");
  Restore(old, munged, "tolerations");
  if (IntegerAt(old, "terminationGracePeriodSeconds") < 0 &&
      IntegerAt(munged, "terminationGracePeriodSeconds") == 1) {
    Restore(old, munged, "terminationGracePeriodSeconds");
  }
  if (!ArrayAt(old, "schedulingGates").empty()) {
    CheckGatedNarrowing(errors, spec_path, old, munged);
  }
  if (SameJson(munged, old)) return;
  AddForbidden(errors, spec_path,
               fmt::format("pod updates may not change fields other than {}\n{}", kUpdatable,
                           MemberDifferences(old, munged)));
}

// A container that has ended runs again only where the pod's restart policy says so.
void CheckTransitions(FieldErrors& errors, const Path& status_path, const Json& old,
                      const Json& pod, std::string_view list) {
  const std::string_view policy = TextAt(pod, "spec.restartPolicy");
  if (policy == "Always") return;
  const JsonArray& before = ArrayAt(old, fmt::format("status.{}", list));
  const JsonArray& after = ArrayAt(pod, fmt::format("status.{}", list));
  for (size_t i = 0; i < before.size(); ++i) {
    const Json* ended = FindPath(before[i], "state.terminated");
    if (ended == nullptr) continue;
    if (policy == "OnFailure" && IntegerAt(*ended, "exitCode") != 0) continue;
    for (const Json& status : after) {
      if (TextAt(status, "name") != TextAt(before[i], "name")) continue;
      if (FindPath(status, "state.terminated") != nullptr) continue;
      const Path path = status_path.At(list, i);
      AddForbidden(errors, path.At("state"), "may not be transitioned to non-terminated state");
    }
  }
}

}  // namespace

void CheckPodUpdate(FieldErrors& errors, const Json& old_pod, const Json& pod) {
  CheckMetaUpdate(errors, old_pod, pod);
  const Path path("spec");
  const Json& old = OrEmptyObject(FindMember(old_pod, "spec"));
  const Json& spec = OrEmptyObject(FindMember(pod, "spec"));
  // The rest was checked when it came in, and may only have changed in what is checked below. A
  // binding is not asked whether its node's name is one.
  if (SameJson(old, spec)) {
    const std::string_view node = TextAt(spec, "nodeName");
    if (!node.empty()) AddInvalid(errors, path.At("nodeName"), node, CheckDns1123Subdomain(node));
    return;
  }
  CheckPodSpec(errors, path, spec, false);
  if (!CheckSameContainers(errors, path, old, spec, "containers")) return;
  if (!CheckSameContainers(errors, path, old, spec, "initContainers")) return;
  if (!CheckDeadline(errors, path, old, spec)) return;
  CheckTolerationsKept(errors, path, old, spec);
  CheckGatesOnlyDeleted(errors, path, old, spec);
  CheckOnlyUpdatable(errors, path, old, spec);
}

namespace {

// Addresses of a pod or of its host: at most one of each family. What was there before may stay.
void CheckIps(FieldErrors& errors, const Path& path, const Json& old, const Json& pod,
              std::string_view list) {
  const JsonArray& before = ArrayAt(OrEmptyObject(FindMember(old, "status")), list);
  const JsonArray& ips = ArrayAt(OrEmptyObject(FindMember(pod, "status")), list);
  if (std::ranges::equal(before, ips, &SameJson)) return;
  std::array<int, 4> count{};
  for (size_t i = 0; i < ips.size(); ++i) {
    const std::string_view ip = TextAt(ips[i], "ip");
    const IpFamily family = FamilyOf(ip);
    ++count[static_cast<size_t>(family)];
    if (family == IpFamily::kNone) {
      AddInvalid(errors, path.At(list, i), ip,
                 {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"});
    } else if (family == IpFamily::kMapped) {
      AddInvalid(errors, path.At(list, i), ip, {"must not be an IPv4-mapped IPv6 address"});
    }
  }
  if (std::ranges::all_of(count, [](int each) { return each <= 1; })) return;
  JsonArray shown;
  for (const Json& ip : ips) shown.push_back(JsonObject{{"IP", TextAt(ip, "ip")}});
  AddInvalid(errors, path.At(list), shown, "may specify no more than one IP for each IP family");
}

}  // namespace

void CheckPodStatusUpdate(FieldErrors& errors, const Json& old, const Json& pod) {
  CheckMetaUpdate(errors, old, pod);
  const Path path("status");
  const JsonArray& conditions = ArrayAt(pod, "status.conditions");
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path at = path.At("conditions", i);
    CheckLabelName(errors, at.At("Type"), TextAt(conditions[i], "type"));
  }
  const std::string_view nominated = TextAt(pod, "status.nominatedNodeName");
  if (!nominated.empty() && nominated != TextAt(old, "status.nominatedNodeName")) {
    const Path at = path.At("nominatedNodeName");
    AddInvalid(errors, at, nominated, CheckDns1123Subdomain(nominated));
    if (!TextAt(old, "spec.nodeName").empty()) {
      AddForbidden(errors, at, "may not be set on pods that are already bound to a node");
    }
  }
  const std::string_view qos = TextAt(pod, "status.qosClass");
  if (qos != TextAt(old, "status.qosClass")) {
    AddInvalid(errors, path.At("qosClass"), qos, {"field is immutable"});
  }
  CheckIps(errors, path, old, pod, "podIPs");
  CheckIps(errors, path, old, pod, "hostIPs");
  const JsonArray& hosts = ArrayAt(pod, "status.hostIPs");
  if (!hosts.empty() && TextAt(hosts[0], "ip") != TextAt(pod, "status.hostIP")) {
    const Path host = path.At("hostIPs", 0);
    AddInvalid(errors, host.At("ip"), TextAt(hosts[0], "ip"), {"must be equal to `hostIP`"});
  }
  CheckTransitions(errors, path, old, pod, "containerStatuses");
  CheckTransitions(errors, path, old, pod, "initContainerStatuses");
}

}  // namespace berth::api::rules
