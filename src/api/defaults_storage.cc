#include <string_view>
#include <utility>

#include "api/defaults_kinds.h"
#include "api/defaults_pod.h"
#include "api/object.h"

namespace berth::api {
namespace {

void DefaultPhase(JsonObject& object) {
  JsonObject& status = MemberObject(object, "status");
  const Json* phase = FindMember(std::as_const(status), "phase");
  if (phase == nullptr || *phase == "") status["phase"] = "Pending";
}

void RoundMember(JsonObject& object, std::string_view list) {
  Json* amounts = object.if_contains(list);
  if (amounts != nullptr && amounts->is_object()) RoundResources(amounts->get_object());
}

void DefaultVolume(JsonObject& object) {
  DefaultPhase(object);
  JsonObject& spec = MemberObject(object, "spec");
  const Json* policy = FindMember(std::as_const(spec), "persistentVolumeReclaimPolicy");
  if (policy == nullptr || *policy == "") spec["persistentVolumeReclaimPolicy"] = "Retain";
  SetDefault(spec, "volumeMode", "Filesystem");
  RoundMember(spec, "capacity");
  DefaultSources(spec);
}

void DefaultDriver(JsonObject& spec) {
  SetDefault(spec, "attachRequired", true);
  SetDefault(spec, "podInfoOnMount", false);
  SetDefault(spec, "storageCapacity", false);
  SetDefault(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
  const Json* modes = FindMember(std::as_const(spec), "volumeLifecycleModes");
  if (modes == nullptr || (modes->is_array() && modes->get_array().empty())) {
    spec["volumeLifecycleModes"] = JsonArray({Json("Persistent")});
  }
  SetDefault(spec, "requiresRepublish", false);
  SetDefault(spec, "seLinuxMount", false);
}

}  // namespace

void DefaultClaim(JsonObject& claim) {
  DefaultPhase(claim);
  JsonObject& spec = MemberObject(claim, "spec");
  SetDefault(spec, "volumeMode", "Filesystem");
  JsonObject& resources = MemberObject(spec, "resources");
  RoundMember(resources, "requests");
  RoundMember(resources, "limits");
}

void DefaultStorage(KindId kind, JsonObject& object) {
  switch (kind) {
    case KindId::kPersistentVolume:
      DefaultVolume(object);
      return;
    case KindId::kPersistentVolumeClaim:
      DefaultClaim(object);
      return;
    case KindId::kStorageClass:
      SetDefault(object, "reclaimPolicy", "Delete");
      SetDefault(object, "volumeBindingMode", "Immediate");
      return;
    case KindId::kCsiDriver:
      DefaultDriver(MemberObject(object, "spec"));
      return;
    default:
      return;
  }
}

}  // namespace berth::api
