#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "api/object.h"
#include "api/storage_class.h"
#include "api/table_forms.h"

// The tables of volumes and what provides them.
namespace berth::api {
namespace {

constexpr std::array kVolumeColumns = {kName,
                                       TextColumn("Capacity"),
                                       TextColumn("Access Modes"),
                                       TextColumn("Reclaim Policy"),
                                       TextColumn("Status"),
                                       TextColumn("Claim"),
                                       TextColumn("StorageClass"),
                                       TextColumn("VolumeAttributesClass"),
                                       TextColumn("Reason"),
                                       kAge,
                                       TextColumn("VolumeMode", 1)};
constexpr std::array kClaimColumns = {kName,
                                      TextColumn("Status"),
                                      TextColumn("Volume"),
                                      TextColumn("Capacity"),
                                      TextColumn("Access Modes"),
                                      TextColumn("StorageClass"),
                                      TextColumn("VolumeAttributesClass"),
                                      kAge,
                                      TextColumn("VolumeMode", 1)};
constexpr std::array kStorageClassColumns = {kName,
                                             TextColumn("Provisioner"),
                                             TextColumn("ReclaimPolicy"),
                                             TextColumn("VolumeBindingMode"),
                                             TextColumn("AllowVolumeExpansion"),
                                             kAge};
constexpr std::array kCsiNodeColumns = {kName, NumberColumn("Drivers"), kAge};
constexpr std::array kCsiDriverColumns = {kName,
                                          FlagColumn("AttachRequired"),
                                          FlagColumn("PodInfoOnMount"),
                                          FlagColumn("StorageCapacity"),
                                          TextColumn("TokenRequests"),
                                          FlagColumn("RequiresRepublish"),
                                          TextColumn("Modes"),
                                          kAge};
constexpr std::array kAttachmentColumns = {kName,
                                           Column{"Attacher", "string", "name", 0},
                                           TextColumn("PV"),
                                           TextColumn("Node"),
                                           FlagColumn("Attached"),
                                           kAge};

std::string AccessModes(const JsonArray& modes) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShort = {
      {{"ReadWriteOnce", "RWO"},
       {"ReadOnlyMany", "ROX"},
       {"ReadWriteMany", "RWX"},
       {"ReadWriteOncePod", "RWOP"}}};
  std::string text;
  for (const auto& [mode, name] : kShort) {
    if (std::ranges::find(modes, Json(mode)) == modes.end()) continue;
    if (!text.empty()) text += ',';
    text += name;
  }
  return text;
}

std::string_view ClassOf(const Json& object) { return StorageClassNameOf(object).value_or(""); }

std::string_view Phase(const Json& object) {
  if (FindPath(object, "metadata.deletionTimestamp") != nullptr) return "Terminating";
  return TextAt(object, "status.phase");
}

Json OrUnset(std::string_view text) { return Json(OrNone(text, "<unset>")); }

JsonArray VolumeCells(const Json& object, Instant now) {
  std::string claim;
  if (FindPath(object, "spec.claimRef") != nullptr) {
    claim += TextAt(object, "spec.claimRef.namespace");
    claim += '/';
    claim += TextAt(object, "spec.claimRef.name");
  }
  return {NameCell(object),
          Json(OrNone(TextAt(object, "spec.capacity.storage"), "0")),
          Json(AccessModes(ArrayAt(object, "spec.accessModes"))),
          Json(TextAt(object, "spec.persistentVolumeReclaimPolicy")),
          Json(Phase(object)),
          Json(claim),
          Json(ClassOf(object)),
          OrUnset(TextAt(object, "spec.volumeAttributesClassName")),
          Json(TextAt(object, "status.reason")),
          Json(AgeOf(object, now)),
          OrUnset(TextAt(object, "spec.volumeMode"))};
}

JsonArray ClaimCells(const Json& object, Instant now) {
  const std::string_view volume = TextAt(object, "spec.volumeName");
  const bool bound = !volume.empty();
  return {NameCell(object),
          Json(Phase(object)),
          Json(volume),
          Json(bound ? OrNone(TextAt(object, "status.capacity.storage"), "0") : std::string()),
          Json(bound ? AccessModes(ArrayAt(object, "status.accessModes")) : std::string()),
          Json(ClassOf(object)),
          OrUnset(TextAt(object, "spec.volumeAttributesClassName")),
          Json(AgeOf(object, now)),
          OrUnset(TextAt(object, "spec.volumeMode"))};
}

JsonArray StorageClassCells(const Json& object, Instant now) {
  const bool expands = FlagAt(object, "allowVolumeExpansion");
  return {ClassNameCell(object, "storageclass.kubernetes.io/is-default-class"),
          Json(TextAt(object, "provisioner")),
          Json(TextAt(object, "reclaimPolicy")),
          Json(TextAt(object, "volumeBindingMode")),
          Json(expands),
          Json(AgeOf(object, now))};
}

JsonArray CsiNodeCells(const Json& object, Instant now) {
  return {NameCell(object), Json(static_cast<int64_t>(ArrayAt(object, "spec.drivers").size())),
          Json(AgeOf(object, now))};
}

JsonArray CsiDriverCells(const Json& object, Instant now) {
  std::string audiences;
  for (const Json& request : ArrayAt(object, "spec.tokenRequests")) {
    if (!audiences.empty()) audiences += ',';
    audiences += TextAt(request, "audience");
  }
  const bool has_requests = FindPath(object, "spec.tokenRequests") != nullptr;
  const Json* attach = FindPath(object, "spec.attachRequired");
  return {NameCell(object),
          attach == nullptr ? Json(true) : *attach,
          Json(FlagAt(object, "spec.podInfoOnMount")),
          Json(FlagAt(object, "spec.storageCapacity")),
          Json(has_requests ? audiences : std::string("<unset>")),
          Json(FlagAt(object, "spec.requiresRepublish")),
          Json(OrNone(Joined(ArrayAt(object, "spec.volumeLifecycleModes")))),
          Json(AgeOf(object, now))};
}

JsonArray AttachmentCells(const Json& object, Instant now) {
  return {NameCell(object),
          Json(TextAt(object, "spec.attacher")),
          Json(TextAt(object, "spec.source.persistentVolumeName")),
          Json(TextAt(object, "spec.nodeName")),
          Json(FlagAt(object, "status.attached")),
          Json(AgeOf(object, now))};
}

constexpr std::array<TableForm, 6> kForms = {{
    {KindId::kPersistentVolume, kVolumeColumns, &VolumeCells},
    {KindId::kPersistentVolumeClaim, kClaimColumns, &ClaimCells},
    {KindId::kStorageClass, kStorageClassColumns, &StorageClassCells},
    {KindId::kCsiNode, kCsiNodeColumns, &CsiNodeCells},
    {KindId::kCsiDriver, kCsiDriverColumns, &CsiDriverCells},
    {KindId::kVolumeAttachment, kAttachmentColumns, &AttachmentCells},
}};

}  // namespace

std::span<const TableForm> StorageForms() { return kForms; }

}  // namespace berth::api
