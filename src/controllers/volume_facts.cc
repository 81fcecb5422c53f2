#include "controllers/volume_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/object.h"
#include "api/quantity.h"
#include "api/storage_class.h"
#include "api/well_known.h"
#include "codec/json.h"
#include "controllers/write.h"

namespace berth::controllers {
namespace {

using api::FindPath;
using api::Json;
using api::TextAt;
using api::TextsAt;

int64_t BytesAt(const Json& object, api::JsonPath path) {
  return api::ParseScaled(TextAt(object, path), 0).value_or(0);
}

std::string Printed(const Json* value) {
  return value == nullptr ? std::string() : codec::PrintJson(*value);
}

std::optional<std::string> ClassNameOf(const Json& object) {
  const std::optional<std::string_view> name = api::StorageClassNameOf(object);
  return name ? std::optional(std::string(*name)) : std::nullopt;
}

std::optional<api::LabelQuery> SelectorOf(const Json& claim) {
  const Json* selector = FindPath(claim, "spec.selector");
  if (selector == nullptr) return std::nullopt;
  Result<api::LabelQuery> query = api::QueryOf(api::LabelSelectorOf(*selector));
  return query ? std::move(*query) : api::LabelQuery{.nothing = true};
}

}  // namespace

std::string BoundStatusOf(const VolumeFacts& volume) {
  return R"({"accessModes":)" + ListText(volume.modes) + R"(,"capacity":)" +
         (volume.capacity_text.empty() ? "{}" : volume.capacity_text) + R"(,"phase":"Bound"})";
}

VolumeFacts ReadVolume(const Json& volume) {
  VolumeFacts facts{
      .phase = std::string(TextAt(volume, "status.phase")),
      .capacity = BytesAt(volume, "spec.capacity.storage"),
      .capacity_text = Printed(FindPath(volume, "spec.capacity")),
      .modes = TextsAt(volume, "spec.accessModes"),
      .volume_mode = std::string(TextAt(volume, "spec.volumeMode")),
      .class_name = ClassNameOf(volume).value_or(""),
      .policy = std::string(TextAt(volume, "spec.persistentVolumeReclaimPolicy")),
      .bound_by_controller = api::AnnotationOf(volume, api::kBoundByController) == "yes",
      .provisioner = std::string(api::AnnotationOf(volume, api::kProvisionedBy))};
  for (const Json& term : api::ArrayAt(volume, "spec.nodeAffinity.required.nodeSelectorTerms")) {
    facts.places.push_back({.match_expressions = api::RequirementsAt(term, "matchExpressions"),
                            .match_fields = api::RequirementsAt(term, "matchFields")});
  }
  if (const Json* claim = FindPath(volume, "spec.claimRef"); claim != nullptr) {
    facts.claim = ClaimTarget{.namespace_name = std::string(TextAt(*claim, "namespace")),
                              .name = std::string(TextAt(*claim, "name")),
                              .uid = std::string(TextAt(*claim, "uid"))};
  }
  return facts;
}

ClaimFacts ReadClaim(const Json& claim) {
  ClaimFacts facts{.phase = std::string(TextAt(claim, "status.phase")),
                   .volume = std::string(TextAt(claim, "spec.volumeName")),
                   .class_name = ClassNameOf(claim),
                   .modes = TextsAt(claim, "spec.accessModes"),
                   .volume_mode = std::string(TextAt(claim, "spec.volumeMode")),
                   .request = BytesAt(claim, "spec.resources.requests.storage"),
                   .request_text = std::string(TextAt(claim, "spec.resources.requests.storage")),
                   .selector = SelectorOf(claim),
                   .bind_completed = api::AnnotationOf(claim, api::kBindCompleted) == "yes",
                   .provisioner = std::string(api::AnnotationOf(claim, api::kStorageProvisioner)),
                   .selected_node = std::string(api::AnnotationOf(claim, api::kSelectedNode))};
  if (facts.phase == "Bound") {
    facts.status_text = BoundStatusOf({.phase = {},
                                       .capacity_text = Printed(FindPath(claim, "status.capacity")),
                                       .modes = TextsAt(claim, "status.accessModes")});
  }
  return facts;
}

std::vector<EphemeralClaim> ReadEphemeralClaims(const Json& pod) {
  std::vector<EphemeralClaim> claims;
  for (const Json& volume : api::ArrayAt(pod, "spec.volumes")) {
    const Json* wanted = FindPath(volume, "ephemeral.volumeClaimTemplate");
    if (wanted == nullptr) continue;
    EphemeralClaim& claim = claims.emplace_back(EphemeralClaim{
        .volume = std::string(TextAt(volume, "name")), .spec = Printed(FindPath(*wanted, "spec"))});
    for (const std::string_view member : {"labels", "annotations"}) {
      const api::JsonObject& map = api::ObjectAt(*wanted, fmt::format("metadata.{}", member));
      if (map.empty()) continue;
      if (!claim.metadata.empty()) claim.metadata += ",";
      claim.metadata += fmt::format(R"("{}":{})", member, codec::PrintJson(map));
    }
  }
  return claims;
}

StorageClassFacts ReadStorageClass(const Json& storage_class) {
  return {.provisioner = std::string(TextAt(storage_class, "provisioner")),
          .waits = api::WaitsForFirstConsumer(storage_class),
          .is_default = api::IsDefaultStorageClass(storage_class),
          .policy = std::string(TextAt(storage_class, "reclaimPolicy")),
          .mount_options = Printed(FindPath(storage_class, "mountOptions"))};
}

}  // namespace berth::controllers
