#include "translate/volume_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/owners.h"
#include "api/quantity.h"
#include "api/selector.h"
#include "api/storage_class.h"
#include "api/well_known.h"
#include "translate/bounds.h"
#include "translate/facts.h"

namespace berth::translate {
namespace {

using api::Json;
using api::TextAt;
using model::NameId;

constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kVolumes = "persistentvolumes";
constexpr std::string_view kClasses = "storageclasses";
constexpr std::string_view kDrivers = "csidrivers";
constexpr std::string_view kNodes = "csinodes";
constexpr std::string_view kCapacities = "csistoragecapacities";
constexpr std::string_view kAttachments = "volumeattachments";

// Labels of volumes that say of which zone or region they are
// (https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone), and
// what stands between several zones.
constexpr std::array<std::string_view, 4> kZoneLabels = {
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
constexpr std::string_view kZoneDelimiter = "__";

constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

NameId NameOrNone(std::string_view text, model::Vocabulary& vocabulary) {
  return text.empty() ? NameId{} : vocabulary.names.Intern(text);
}

std::optional<model::Amount> BytesAt(const Json& object, api::JsonPath path) {
  const std::string_view text = TextAt(object, path);
  if (text.empty()) return std::nullopt;
  const Result<int64_t> bytes = api::ParseScaled(text, 0);
  return bytes ? std::optional(*bytes) : std::nullopt;
}

model::AccessModes ModesOf(const Json& object) {
  model::AccessModes modes = 0;
  for (const std::string& mode : api::TextsAt(object, "spec.accessModes")) {
    modes |= mode == "ReadWriteOnce"      ? model::kReadWriteOnce
             : mode == "ReadOnlyMany"     ? model::kReadOnlyMany
             : mode == "ReadWriteMany"    ? model::kReadWriteMany
             : mode == "ReadWriteOncePod" ? model::kReadWriteOncePod
                                          : model::kOtherMode;
  }
  return modes;
}

model::SelectorOp OpOf(api::SelectorOperator op) {
  switch (op) {
    case api::SelectorOperator::kNotIn:
    case api::SelectorOperator::kNotEquals:
      return model::SelectorOp::kNotIn;
    case api::SelectorOperator::kExists:
      return model::SelectorOp::kExists;
    case api::SelectorOperator::kDoesNotExist:
      return model::SelectorOp::kDoesNotExist;
    default:
      return model::SelectorOp::kIn;
  }
}

model::VolumeClaim ClaimOf(const Json& object, model::Vocabulary& vocabulary) {
  const Json* controller = api::ControllerOf(object);
  model::VolumeClaim out{
      .uid = std::string(TextAt(object, "metadata.uid")),
      .controller = controller == nullptr ? "" : std::string(TextAt(*controller, "uid")),
      .volume = NameOrNone(TextAt(object, "spec.volumeName"), vocabulary),
      .storage_class = NameOrNone(api::StorageClassNameOf(object).value_or(""), vocabulary),
      .selected_node = NameOrNone(api::AnnotationOf(object, api::kSelectedNode), vocabulary),
      .attributes_class = NameOrNone(TextAt(object, "spec.volumeAttributesClassName"), vocabulary),
      .request = BytesAt(object, "spec.resources.requests.storage"),
      .modes = ModesOf(object),
      .block = TextAt(object, "spec.volumeMode") == "Block",
      .bound = !api::AnnotationOf(object, api::kBindCompleted).empty() &&
               !TextAt(object, "spec.volumeName").empty(),
      .lost = TextAt(object, "status.phase") == "Lost",
      .deleted = !TextAt(object, "metadata.deletionTimestamp").empty(),
      .selector = {},
  };
  const Json* selector = api::FindPath(object, "spec.selector");
  if (selector == nullptr || !selector->is_object()) return out;
  const api::LabelSelector asked = api::LabelSelectorOf(*selector);
  const Result<api::LabelQuery> query = api::QueryOf(asked);
  out.selects_nothing = !query || query->nothing || IsBeyond(asked);
  if (out.selects_nothing) return out;
  out.selector.emplace();
  for (const api::LabelRequirement& r : query->requirements)
    out.selector->push_back({.key = r.key, .op = OpOf(r.op), .values = r.values});
  return out;
}

// Nothing where one of the zones has no name, as upstream.
std::optional<std::vector<NameId>> ZonesOf(std::string_view text, model::Vocabulary& vocabulary) {
  std::vector<NameId> zones;
  while (true) {
    const size_t end = text.find(kZoneDelimiter);
    std::string_view zone = text.substr(0, end);
    while (!zone.empty() && zone.front() == ' ') zone.remove_prefix(1);
    while (!zone.empty() && zone.back() == ' ') zone.remove_suffix(1);
    if (zone.empty()) return std::nullopt;
    zones.push_back(vocabulary.names.Intern(zone));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + kZoneDelimiter.size());
  }
  std::ranges::sort(zones);
  return zones;
}

// Upstream asks with a node that has labels and no name: none is of a name.
model::SelectorId PlacesOf(const Json& object, model::Vocabulary& vocabulary) {
  if (api::FindPath(object, "spec.nodeAffinity.required") == nullptr) return {};
  model::SelectorSpec spec{.has_terms = true};
  for (const Json& term : api::ArrayAt(object, "spec.nodeAffinity.required.nodeSelectorTerms")) {
    const api::NodeSelectorTerm asked{
        .match_expressions = api::RequirementsAt(term, "matchExpressions"),
        .match_fields = api::RequirementsAt(term, "matchFields")};
    model::SelectorTerm& out = spec.terms.emplace_back(SelectorTermOf(asked, vocabulary));
    out.never = out.never || std::ranges::any_of(asked.match_fields, [](const auto& field) {
                  return field.op == "In";
                });
  }
  return vocabulary.selectors.Intern(spec);
}

model::Volume VolumeOf(const Json& object, model::Vocabulary& vocabulary) {
  const api::StringMap labels = api::StringMapAt(object, "metadata.labels");
  const Json* claim = api::FindPath(object, "spec.claimRef");
  model::Volume out{
      .driver = NameOrNone(TextAt(object, "spec.csi.driver"), vocabulary),
      .handle = std::string(TextAt(object, "spec.csi.volumeHandle")),
      .places = PlacesOf(object, vocabulary),
      .zones = {},
      .labels = model::PodLabelsText("", labels),
      .claim_uid = std::string(TextAt(object, "spec.claimRef.uid")),
      .storage_class = NameOrNone(api::StorageClassNameOf(object).value_or(""), vocabulary),
      .attributes_class = NameOrNone(TextAt(object, "spec.volumeAttributesClassName"), vocabulary),
      .capacity = BytesAt(object, "spec.capacity.storage").value_or(0),
      .modes = ModesOf(object),
      .block = TextAt(object, "spec.volumeMode") == "Block",
      .available = TextAt(object, "status.phase") == "Available",
      .deleted = !TextAt(object, "metadata.deletionTimestamp").empty(),
  };
  if (claim != nullptr) {
    out.claim = vocabulary.names.Intern(
        fmt::format("{}/{}", TextAt(*claim, "namespace"), TextAt(*claim, "name")));
  }
  for (const std::string_view key : kZoneLabels) {
    const auto value = api::Find(labels, key);
    if (!value) continue;
    if (auto zones = ZonesOf(*value, vocabulary))
      out.zones.push_back({.key = vocabulary.names.Intern(key), .values = *std::move(zones)});
  }
  return out;
}

model::StorageClass ClassOf(const Json& object, model::Vocabulary& vocabulary) {
  const std::string_view provisioner = TextAt(object, "provisioner");
  model::StorageClass out{.provisioner = NameOrNone(provisioner, vocabulary),
                          .provisions = !provisioner.empty() && provisioner != kNoProvisioner,
                          .waits = api::WaitsForFirstConsumer(object)};
  const api::JsonArray& topologies = api::ArrayAt(object, "allowedTopologies");
  if (topologies.empty()) return out;
  model::SelectorSpec spec{.has_terms = true};
  for (const Json& topology : topologies) {
    api::NodeSelectorTerm term;
    for (const Json& item : api::ArrayAt(topology, "matchLabelExpressions")) {
      term.match_expressions.push_back({.key = std::string(TextAt(item, "key")),
                                        .op = "In",
                                        .values = api::TextsAt(item, "values")});
    }
    spec.terms.push_back(SelectorTermOf(term, vocabulary));
  }
  out.places = vocabulary.selectors.Intern(spec);
  return out;
}

model::AttachLimits LimitsOf(const Json& object, model::Vocabulary& vocabulary) {
  model::AttachLimits out;
  for (const Json& driver : api::ArrayAt(object, "spec.drivers")) {
    const Json* count = api::FindPath(driver, "allocatable.count");
    if (count == nullptr) continue;
    out.drivers.push_back({.driver = vocabulary.names.Intern(TextAt(driver, "name")),
                           .count = api::IntegerAt(driver, "allocatable.count")});
  }
  return out;
}

model::SelectorId NodesOf(const Json& selector, model::Vocabulary& vocabulary) {
  const Result<api::LabelQuery> query = api::QueryOf(api::LabelSelectorOf(selector));
  if (!query || query->nothing) return {};
  model::SelectorSpec spec;
  for (const api::LabelRequirement& r : query->requirements) {
    model::Requirement& out = spec.all.emplace_back();
    out.key = vocabulary.names.Intern(r.key);
    out.op = OpOf(r.op);
    for (const std::string& value : r.values) out.values.push_back(vocabulary.names.Intern(value));
    std::ranges::sort(out.values);
  }
  return vocabulary.selectors.Intern(spec);
}

model::StorageCapacity CapacityOf(const Json& object, model::Vocabulary& vocabulary) {
  const Json* topology = api::FindPath(object, "nodeTopology");
  std::optional<model::Amount> most = BytesAt(object, "maximumVolumeSize");
  if (!most) most = BytesAt(object, "capacity");
  return {.storage_class = NameOrNone(TextAt(object, "storageClassName"), vocabulary),
          .nodes = topology == nullptr ? model::SelectorId{} : NodesOf(*topology, vocabulary),
          .most = most};
}

model::Attachment AttachmentOf(const Json& object, model::Vocabulary& vocabulary) {
  return {.node = NameOrNone(TextAt(object, "spec.nodeName"), vocabulary),
          .driver = NameOrNone(TextAt(object, "spec.attacher"), vocabulary),
          .volume = NameOrNone(TextAt(object, "spec.source.persistentVolumeName"), vocabulary)};
}

std::optional<model::StorageRow> EmptyRow(std::string_view plural) {
  if (plural == kClaims) return model::VolumeClaim{};
  if (plural == kVolumes) return model::Volume{};
  if (plural == kClasses) return model::StorageClass{};
  if (plural == kDrivers) return model::StorageDriver{};
  if (plural == kNodes) return model::AttachLimits{};
  if (plural == kCapacities) return model::StorageCapacity{};
  if (plural == kAttachments) return model::Attachment{};
  return std::nullopt;
}

}  // namespace

std::optional<model::StorageFact> StorageFactOf(std::string_view plural, const Json& object,
                                                model::Vocabulary& vocabulary) {
  std::optional<model::StorageRow> row = EmptyRow(plural);
  if (!row) return std::nullopt;
  if (plural == kClaims) row = ClaimOf(object, vocabulary);
  if (plural == kVolumes) row = VolumeOf(object, vocabulary);
  if (plural == kClasses) row = ClassOf(object, vocabulary);
  if (plural == kDrivers)
    row = model::StorageDriver{.tells_capacity = api::FlagAt(object, "spec.storageCapacity")};
  if (plural == kNodes) row = LimitsOf(object, vocabulary);
  if (plural == kCapacities) row = CapacityOf(object, vocabulary);
  if (plural == kAttachments) row = AttachmentOf(object, vocabulary);
  const std::string_view name = TextAt(object, "metadata.name");
  const std::string_view in = TextAt(object, "metadata.namespace");
  const NameId id =
      vocabulary.names.Intern(in.empty() ? std::string(name) : fmt::format("{}/{}", in, name));
  return model::StorageFact{.name = id, .row = *std::move(row)};
}

std::optional<model::StorageFact> StorageGone(std::string_view plural, std::string_view key,
                                              model::Vocabulary& vocabulary) {
  std::optional<model::StorageRow> row = EmptyRow(plural);
  if (!row) return std::nullopt;
  return model::StorageFact{
      .name = vocabulary.names.Intern(key), .gone = true, .row = *std::move(row)};
}

}  // namespace berth::translate
