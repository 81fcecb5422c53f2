#include "api/validate_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "api/object.h"
#include "api/validate_pod.h"
#include "api/validate_workloads.h"

namespace berth::api::rules {
namespace {

void CheckHead(FieldErrors& errors, const Json* old, const Json& object, NameCheck name) {
  if (old != nullptr) return CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, name);
}

void CheckCount(FieldErrors& errors, const Path& path, const Json& object,
                std::string_view member) {
  const std::array<std::string_view, 1> members = {member};
  CheckNonnegative(errors, path, object, members);
}

// Counts that may not be more than `status.replicas`.
void CheckAtMostReplicas(FieldErrors& errors, const Path& path, const Json& status,
                         std::span<const std::string_view> members, std::string_view ready) {
  const int64_t replicas = IntegerAt(status, "replicas");
  for (const std::string_view member : members) {
    const int64_t value = IntegerAt(status, member);
    if (value > replicas) {
      errors.push_back(
          InvalidField(path.At(member).text(), value, "cannot be greater than status.replicas"));
    }
  }
  const int64_t available = IntegerAt(status, "availableReplicas");
  if (available > IntegerAt(status, "readyReplicas")) {
    errors.push_back(InvalidField(path.At("availableReplicas").text(), available,
                                  fmt::format("cannot be greater than {}", ready)));
  }
}

}  // namespace

void CheckReplicationController(FieldErrors& errors, const Json* old, const Json& object) {
  CheckHead(errors, old, object, CheckDns1123Subdomain);
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  CheckCount(errors, path, spec, "minReadySeconds");
  const JsonObject& selector = ObjectAt(spec, "selector");
  if (selector.empty()) AddRequired(errors, path.At("selector"));
  CheckCount(errors, path, spec, "replicas");
  const Path pods_path = path.At("template");
  const Json* pods = FindMember(spec, "template");
  if (pods == nullptr) return AddRequired(errors, pods_path);
  const JsonObject& labels = ObjectAt(*pods, "metadata.labels");
  const bool selects = std::ranges::all_of(selector, [&](const auto& entry) {
    const Json* label = FindMember(labels, entry.key());
    return label != nullptr && *label == entry.value();
  });
  if (!selects) AddMismatch(errors, pods_path, *pods);
  CheckTemplate(errors, pods_path, *pods);
  CheckAlwaysRestarted(errors, pods_path, *pods, "ReplicationController");
}

void CheckReplicationControllerStatus(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  const Path path("status");
  const Json& status = OrEmptyObject(FindMember(object, "status"));
  constexpr std::array<std::string_view, 5> kCounts = {"replicas", "fullyLabeledReplicas",
                                                       "readyReplicas", "availableReplicas",
                                                       "observedGeneration"};
  constexpr std::array<std::string_view, 3> kBounded = {"fullyLabeledReplicas", "readyReplicas",
                                                        "availableReplicas"};
  CheckNonnegative(errors, path, status, kCounts);
  CheckAtMostReplicas(errors, path, status, kBounded, "readyReplicas");
}

}  // namespace berth::api::rules
