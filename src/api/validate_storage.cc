#include "api/validate_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "api/object.h"
#include "api/quantity.h"
#include "api/text.h"
#include "api/validate_pod.h"
#include "api/validate_volumes.h"
#include "api/well_known.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 4> kAccessModes = {"ReadOnlyMany", "ReadWriteMany",
                                                          "ReadWriteOnce", "ReadWriteOncePod"};
constexpr std::array<std::string_view, 2> kVolumeModes = {"Block", "Filesystem"};

void CheckClassName(FieldErrors& errors, const Path& path, const Json& spec,
                    std::string_view member) {
  const std::string_view name = TextAt(spec, member);
  if (!name.empty()) AddInvalid(errors, path.At(member), name, CheckDns1123Subdomain(name));
}

void CheckModes(FieldErrors& errors, const Path& path, const Json& spec, std::string_view why) {
  const JsonArray& modes = ArrayAt(spec, "accessModes");
  const Path at = path.At("accessModes");
  if (modes.empty()) AddRequired(errors, at, std::string(why));
  bool alone = false;
  bool shared = false;
  for (const Json& mode : modes) {
    const bool known = std::ranges::find(kAccessModes, TextOf(mode)) != kAccessModes.end();
    if (!known) errors.push_back(NotSupportedField(at.text(), TextOf(mode), kAccessModes));
    (TextOf(mode) == "ReadWriteOncePod" ? alone : shared) |= known;
  }
  if (alone && shared) {
    AddForbidden(errors, at, "may not use ReadWriteOncePod with other access modes");
  }
}

void CheckVolumeMode(FieldErrors& errors, const Path& path, const Json& spec) {
  if (FindMember(spec, "volumeMode") == nullptr) return;
  CheckEnum(errors, path.At("volumeMode"), TextAt(spec, "volumeMode"), kVolumeModes);
}

// Upstream names it so, without the spec.
void CheckModeStays(FieldErrors& errors, const Json& old, const Json& object) {
  const Json& before = OrEmptyObject(FindMember(old, "spec"));
  const Json& after = OrEmptyObject(FindMember(object, "spec"));
  if (TextAt(before, "volumeMode") == TextAt(after, "volumeMode")) return;
  AddInvalid(errors, Path("volumeMode"), TextAt(after, "volumeMode"),
             Messages{std::string(kImmutable)});
}

Quantity AmountOf(const Json& amount) { return ParseQuantity(TextOf(amount)).value_or(Quantity{}); }

void CheckNotNegative(FieldErrors& errors, const Path& path, const Json& amount) {
  if (AmountOf(amount).sign() >= 0) return;
  AddInvalid(errors, path, Json(AmountOf(amount).whole()), "must be a valid resource quantity");
}

void CheckPositive(FieldErrors& errors, const Path& path, const Json& amount) {
  if (AmountOf(amount).sign() > 0) return;
  AddInvalid(errors, path, TextOf(amount), Messages{"must be greater than zero"});
}

// ---- Volumes -----------------------------------------------------------------------------------

// What a volume may be made of.
constexpr std::array<std::string_view, 22> kSources = {"awsElasticBlockStore",
                                                       "azureDisk",
                                                       "azureFile",
                                                       "cephfs",
                                                       "cinder",
                                                       "csi",
                                                       "fc",
                                                       "flexVolume",
                                                       "flocker",
                                                       "gcePersistentDisk",
                                                       "glusterfs",
                                                       "hostPath",
                                                       "iscsi",
                                                       "local",
                                                       "nfs",
                                                       "photonPersistentDisk",
                                                       "portworxVolume",
                                                       "quobyte",
                                                       "rbd",
                                                       "scaleIO",
                                                       "storageos",
                                                       "vsphereVolume"};

void CheckCapacity(FieldErrors& errors, const Path& spec, const Json& volume) {
  const JsonObject& capacity = ObjectAt(volume, "spec.capacity");
  const Path path = spec.At("capacity");
  if (capacity.empty()) AddRequired(errors, path);
  if (!capacity.contains("storage") || capacity.size() > 1) {
    constexpr std::array<std::string_view, 1> kStorage = {"storage"};
    FieldError error = NotSupportedField(path.text(), "", kStorage);
    const Json* sent = FindPath(volume, "spec.capacity");
    error.value = sent == nullptr ? "null" : boost::json::serialize(*sent);
    errors.push_back(std::move(error));
  }
  for (const auto& [name, amount] : capacity) {
    CheckNotNegative(errors, path.Key(name), amount);
    CheckPositive(errors, path.Key(name), amount);
  }
}

// ---- Claims ------------------------------------------------------------------------------------

// What a claim is filled from. Whatever fills it is of a group of its own, but for other claims.
void CheckDataSource(FieldErrors& errors, const Path& path, const Json& source) {
  const std::string_view kind = TextAt(source, "kind");
  if (TextAt(source, "name").empty()) AddRequired(errors, path.At("name"));
  if (kind.empty()) AddRequired(errors, path.At("kind"));
  const std::string_view group = TextAt(source, "apiGroup");
  if (!group.empty()) {
    AddInvalid(errors, path.At("apiGroup"), group, CheckDns1123Subdomain(group));
  } else if (kind != "PersistentVolumeClaim") {
    AddInvalid(errors, path, kind,
               Messages{"must be 'PersistentVolumeClaim' when referencing the default apiGroup"});
  }
}

void CheckDataSources(FieldErrors& errors, const Path& path, const Json& spec) {
  const Json* source = FindMember(spec, "dataSource");
  const Json* reference = FindMember(spec, "dataSourceRef");
  if (source != nullptr) CheckDataSource(errors, path.At("dataSource"), *source);
  if (reference == nullptr) return;
  const Path at = path.At("dataSourceRef");
  CheckDataSource(errors, at, *reference);
  const std::string_view space = TextAt(*reference, "namespace");
  if (!space.empty()) AddInvalid(errors, at.At("namespace"), space, CheckDns1123Label(space));
  if (source == nullptr) return;
  const auto differs = [&](std::string_view member) {
    return !SameJson(OrEmptyObject(FindMember(*source, member)),
                     OrEmptyObject(FindMember(*reference, member)));
  };
  if (!space.empty()) {
    AddInvalid(errors, path, Json(JsonObject()),
               "may not be specified when dataSourceRef.namespace is specified");
  } else if (differs("apiGroup") || differs("kind") || differs("name")) {
    AddInvalid(errors, path, Json(JsonObject()), "must match dataSourceRef");
  }
}

}  // namespace

void CheckClaimSpec(FieldErrors& errors, const Path& path, const Json& spec) {
  CheckModes(errors, path, spec, "at least 1 access mode is required");
  if (const Json* selector = FindMember(spec, "selector")) {
    CheckLabelSelector(errors, path.At("selector"), *selector);
  }
  const Path resources = path.At("resources");
  const Json* storage = FindPath(spec, "resources.requests.storage");
  if (storage == nullptr) {
    AddRequired(errors, resources.Key("storage"));
  } else {
    CheckPositive(errors, resources.Key("storage"), *storage);
  }
  CheckClassName(errors, path, spec, "storageClassName");
  CheckVolumeMode(errors, path, spec);
  CheckDataSources(errors, path, spec);
  CheckClassName(errors, path, spec, "volumeAttributesClassName");
}

namespace {

// A claim's spec without what may change: the volume and the class, once, and amounts of a claim
// that is bound.
Json FixedSpec(const Json& old, const Json& claim, bool bound) {
  Json spec = OrEmptyObject(FindMember(claim, "spec"));
  if (!spec.is_object()) return spec;
  if (TextAt(old, "spec.volumeName").empty()) RemoveMember(spec.get_object(), "volumeName");
  if (FindPath(old, "spec.storageClassName") == nullptr &&
      FindMember(ObjectAt(old, "metadata.annotations"), kStorageClassAnnotation) == nullptr) {
    RemoveMember(spec.get_object(), "storageClassName");
  }
  if (bound) {
    RemovePath(spec, "resources.requests.storage");
    RemoveMember(spec.get_object(), "volumeAttributesClassName");
  }
  return spec;
}

void CheckClaimUpdate(FieldErrors& errors, const Json& old, const Json& claim) {
  const bool bound = TextAt(claim, "status.phase") == "Bound";
  if (!SameJson(FixedSpec(old, old, bound), FixedSpec(old, claim, bound))) {
    AddForbidden(errors, Path("spec"),
                 "spec is immutable after creation except resources.requests and "
                 "volumeAttributesClassName for bound claims");
  }
  const auto amount = [](const Json& object, JsonPath path) {
    const Json* found = FindPath(object, path);
    return found == nullptr ? Quantity{} : AmountOf(*found);
  };
  constexpr JsonPath kWanted("spec.resources.requests.storage");
  const Quantity size = amount(claim, kWanted);
  if (Compare(size, amount(old, kWanted)) < 0 &&
      Compare(size, amount(old, JsonPath("status.capacity.storage"))) <= 0) {
    const Path spec("spec");
    const Path resources = spec.At("resources");
    const Path requests = resources.At("requests");
    AddForbidden(errors, requests.At("storage"), "field can not be less than status.capacity");
  }
  CheckModeStays(errors, old, claim);
}

// What a claim's resources are called. False: not so.
bool CheckClaimResource(FieldErrors& errors, const Path& path, std::string_view name) {
  const size_t before = errors.size();
  CheckLabelName(errors, path, name);
  if (errors.size() == before && IsNativeResource(name) && name != "storage") {
    constexpr std::array<std::string_view, 1> kStorage = {"storage"};
    errors.push_back(NotSupportedField(path.text(), name, kStorage));
  }
  return errors.size() == before;
}

// ---- Drivers -----------------------------------------------------------------------------------

void CheckNodeDriver(FieldErrors& errors, const Path& path, const Json& driver) {
  constexpr size_t kIdMax = 256;
  CheckDriverName(errors, path.At("name"), TextAt(driver, "name"));
  const std::string_view id = TextAt(driver, "nodeID");
  if (id.empty()) AddRequired(errors, path.At("nodeID"));
  if (id.size() > kIdMax) {
    AddInvalid(errors, path.At("nodeID"), id,
               Messages{fmt::format("must be {} characters or less", kIdMax)});
  }
  constexpr std::array<std::string_view, 1> kCount = {"count"};
  CheckNonnegative(errors, path.At("allocatable"), OrEmptyObject(FindMember(driver, "allocatable")),
                   kCount);
}

void CheckTopologyKeys(FieldErrors& errors, const Path& path, const Json& driver) {
  std::set<std::string_view> keys;
  for (const Json& item : ArrayAt(driver, "topologyKeys")) {
    const std::string_view key = TextOf(item);
    if (key.empty()) AddRequired(errors, path);
    if (!keys.insert(key).second) errors.push_back(DuplicateField(path.text(), key));
    CheckLabelName(errors, path, key);
  }
}

// A driver as upstream's internal type is shown, without its allocatable, which may change.
Json ShownDriver(const Json& driver) {
  const Json* keys = FindMember(driver, "topologyKeys");
  return JsonObject{{"Name", TextAt(driver, "name")},
                    {"NodeID", TextAt(driver, "nodeID")},
                    {"TopologyKeys", keys == nullptr ? Json() : *keys},
                    {"Allocatable", nullptr}};
}

void CheckDriverSpec(FieldErrors& errors, const Path& path, const Json& spec) {
  constexpr std::array<std::string_view, 3> kPolicies = {"File", "None", "ReadWriteOnceWithFSType"};
  if (FindMember(spec, "fsGroupPolicy") != nullptr) {
    CheckEnum(errors, path.At("fsGroupPolicy"), TextAt(spec, "fsGroupPolicy"), kPolicies);
  }
  constexpr int64_t kSecondsMin = 600;
  constexpr int64_t kSecondsMax = int64_t{1} << 32;
  constexpr int64_t kPeriodMin = 10;
  const JsonArray& requests = ArrayAt(spec, "tokenRequests");
  std::set<std::string_view> audiences;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Path at = path.At("tokenRequests", i);
    const std::string_view audience = TextAt(requests[i], "audience");
    if (!audiences.insert(audience).second) {
      errors.push_back(DuplicateField(at.At("audience").text(), audience));
      continue;
    }
    const Json* seconds = FindMember(requests[i], "expirationSeconds");
    if (seconds == nullptr) continue;
    const int64_t value = IntegerAt(requests[i], "expirationSeconds");
    if (value < kSecondsMin) {
      AddInvalid(errors, at.At("expirationSeconds"), *seconds,
                 "may not specify a duration less than 10 minutes");
    } else if (value > kSecondsMax) {
      AddInvalid(errors, at.At("expirationSeconds"), *seconds,
                 "may not specify a duration larger than 2^32 seconds");
    }
  }
  constexpr std::array<std::string_view, 2> kModes = {"Persistent", "Ephemeral"};
  for (const Json& mode : ArrayAt(spec, "volumeLifecycleModes")) {
    CheckEnum(errors, path.At("volumeLifecycleModes"), TextOf(mode), kModes);
  }
  const Json* period = FindMember(spec, "nodeAllocatableUpdatePeriodSeconds");
  if (period != nullptr && IntegerAt(spec, "nodeAllocatableUpdatePeriodSeconds") < kPeriodMin) {
    AddInvalid(errors, path.At("nodeAllocatableUpdatePeriodSeconds"), *period,
               "must be greater than or equal to 10 seconds");
  }
  const Json* in_secrets = FindMember(spec, "serviceAccountTokenInSecrets");
  if (in_secrets != nullptr && requests.empty()) {
    AddInvalid(errors, path.At("serviceAccountTokenInSecrets"), *in_secrets,
               "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
  }
}

// A volume's class of attributes, which only drivers know.
void CheckAttributesClass(FieldErrors& errors, const Path& path, const Json& spec) {
  const Json* name = FindMember(spec, "volumeAttributesClassName");
  if (name == nullptr) return;
  const Path at = path.At("volumeAttributesClassName");
  if (TextOf(*name).empty()) {
    AddRequired(errors, at, "an empty string is disallowed");
  } else {
    AddInvalid(errors, at, TextOf(*name), CheckDns1123Subdomain(TextOf(*name)));
  }
  if (FindMember(spec, "csi") == nullptr) {
    AddRequired(errors, path.At("csi"), "has to be specified when using volumeAttributesClassName");
  }
}

// ---- Attachments and capacities ----------------------------------------------------------------

constexpr std::string_view kInline = "may not be specified in the context of inline volumes";

// The volume of an attachment that names no PersistentVolume: what a driver made, and nothing that
// a claim, a class or the scheduler would ask for.
void CheckInlineVolume(FieldErrors& errors, const Path& path, const Json& spec) {
  if (FindMember(spec, "claimRef") != nullptr) {
    AddForbidden(errors, path.At("claimRef"), std::string(kInline));
  }
  if (!ObjectAt(spec, "capacity").empty()) {
    AddForbidden(errors, path.At("capacity"), std::string(kInline));
  }
  if (FindMember(spec, "csi") == nullptr) {
    AddRequired(errors, path.At("csi"), "has to be specified in the context of inline volumes");
  }
  CheckModes(errors, path, spec, "");
  const std::string_view policy = TextAt(spec, "persistentVolumeReclaimPolicy");
  if (!policy.empty() && policy != "Retain") {
    AddForbidden(errors, path.At("persistentVolumeReclaimPolicy"),
                 "may only be Retain in the context of inline volumes");
  }
  if (FindMember(spec, "nodeAffinity") != nullptr) {
    AddForbidden(errors, path.At("nodeAffinity"), std::string(kInline));
  }
  CheckPersistentSource(errors, path, JsonObject{{"spec", spec}});
  if (!TextAt(spec, "storageClassName").empty()) {
    AddForbidden(errors, path.At("storageClassName"), std::string(kInline));
  }
  if (FindMember(spec, "volumeMode") != nullptr && TextAt(spec, "volumeMode") != "Filesystem") {
    AddForbidden(errors, path.At("volumeMode"),
                 "may not specify volumeMode other than Filesystem in the context of inline "
                 "volumes");
  }
  CheckAttributesClass(errors, path, spec);
}

void CheckAttachmentSource(FieldErrors& errors, const Path& path, const Json& source) {
  constexpr std::string_view kOne =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  const Json* name = FindMember(source, "persistentVolumeName");
  const Json* inline_volume = FindMember(source, "inlineVolumeSpec");
  if (name == nullptr && inline_volume == nullptr) {
    AddRequired(errors, path, std::string(kOne));
  } else if (name != nullptr && inline_volume != nullptr) {
    AddForbidden(errors, path, std::string(kOne));
  } else if (name != nullptr) {
    const Path at = path.At("persistentVolumeName");
    if (TextOf(*name).empty()) {
      AddRequired(errors, at, "must specify non empty persistentVolumeName");
    }
    AddInvalid(errors, at, TextOf(*name), CheckDns1123Subdomain(TextOf(*name)));
  } else {
    CheckInlineVolume(errors, path.At("inlineVolumeSpec"), *inline_volume);
  }
}

// An attachment's spec as upstream's internal type is shown. A volume within is shown as it was
// sent.
Json ShownAttachment(const Json& spec) {
  const auto shown = [&](std::string_view path) {
    const Json* found = FindPath(spec, path);
    return found == nullptr ? Json() : *found;
  };
  return JsonObject{
      {"Attacher", TextAt(spec, "attacher")},
      {"Source", JsonObject{{"PersistentVolumeName", shown("source.persistentVolumeName")},
                            {"InlineVolumeSpec", shown("source.inlineVolumeSpec")}}},
      {"NodeName", TextAt(spec, "nodeName")}};
}

// What a class of runtimes adds to its pods: nothing twice.
void CheckScheduling(FieldErrors& errors, const Path& path, const Json& scheduling) {
  CheckLabels(errors, path.At("nodeSelector"), ObjectAt(scheduling, "nodeSelector"));
  CheckTolerations(errors, path, scheduling);
  const JsonArray& tolerations = ArrayAt(scheduling, "tolerations");
  // How long it tolerates makes no other toleration.
  const auto name = [](const Json& item) {
    return std::array{TextAt(item, "key"), TextAt(item, "operator"), TextAt(item, "value"),
                      TextAt(item, "effect")};
  };
  std::set<std::array<std::string_view, 4>> seen;
  for (size_t i = 0; i < tolerations.size(); ++i) {
    if (seen.insert(name(tolerations[i])).second) continue;
    const auto [key, how, value, effect] = name(tolerations[i]);
    const Json* seconds = FindMember(tolerations[i], "tolerationSeconds");
    const Json shown = JsonObject{{"Key", key},
                                  {"Operator", how},
                                  {"Value", value},
                                  {"Effect", effect},
                                  {"TolerationSeconds", seconds == nullptr ? Json() : *seconds}};
    FieldError error = DuplicateField(path.At("tolerations", i).text(), "");
    error.value = boost::json::serialize(shown);
    errors.push_back(std::move(error));
  }
}

// Where a class has its volumes made: terms, of which none may say the same as another.
void CheckTopologies(FieldErrors& errors, const Json& storage_class) {
  const JsonArray& terms = ArrayAt(storage_class, "allowedTopologies");
  using Term = std::map<std::string_view, std::set<std::string_view>>;
  const Path path("allowedTopologies");
  // An empty one is a duplicate upstream, of what is not there.
  std::set<Term> seen = {Term()};
  for (size_t i = 0; i < terms.size(); ++i) {
    const Path item = path.Item(i);
    const JsonArray& expressions = ArrayAt(terms[i], "matchLabelExpressions");
    Term term;
    for (size_t k = 0; k < expressions.size(); ++k) {
      const Path at = item.At("matchLabelExpressions", k);
      const std::string_view key = TextAt(expressions[k], "key");
      const JsonArray& values = ArrayAt(expressions[k], "values");
      std::set<std::string_view> given;
      if (values.empty()) AddRequired(errors, at.At("values"));
      for (size_t v = 0; v < values.size(); ++v) {
        if (given.insert(TextOf(values[v])).second) continue;
        errors.push_back(DuplicateField(at.At("values", v).text(), TextOf(values[v])));
      }
      CheckLabelName(errors, at.At("key"), key);
      if (term.contains(key)) errors.push_back(DuplicateField(at.At("key").text(), key));
      term[key] = std::move(given);
    }
    if (!seen.insert(std::move(term)).second) {
      errors.push_back(DuplicateField(item.At("matchLabelExpressions").text(), ""));
    }
  }
}

}  // namespace

void CheckVolume(FieldErrors& errors, const Json* old, const Json& object) {
  constexpr std::array<std::string_view, 3> kPolicies = {"Delete", "Recycle", "Retain"};
  CheckMeta(errors, object, false, CheckDns1123Subdomain);
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  const Path path("spec");
  CheckModes(errors, path, spec, "");
  CheckCapacity(errors, path, object);
  const std::string_view policy = TextAt(spec, "persistentVolumeReclaimPolicy");
  if (!policy.empty()) {
    CheckEnum(errors, path.At("persistentVolumeReclaimPolicy"), policy, kPolicies);
  }
  if (const Json* affinity = FindMember(spec, "nodeAffinity")) {
    const Path at = path.At("nodeAffinity");
    if (const Json* required = FindMember(*affinity, "required")) {
      CheckNodeSelector(errors, at.At("required"), *required);
    } else {
      AddRequired(errors, at.At("required"), "must specify required node constraints");
    }
  }
  CheckPersistentSource(errors, path, object);
  const std::string_view where = TextAt(spec, "hostPath.path");
  const bool is_root = !where.empty() && where.find_first_not_of('/') == std::string_view::npos;
  if (policy == "Recycle" && is_root) {
    AddForbidden(errors, path.At("persistentVolumeReclaimPolicy"),
                 "may not be 'recycle' for a hostPath mount of '/'");
  }
  CheckClassName(errors, path, spec, "storageClassName");
  CheckVolumeMode(errors, path, spec);
  CheckAttributesClass(errors, path, spec);
  if (old == nullptr) return;
  const Json& before = OrEmptyObject(FindMember(*old, "spec"));
  const bool same = std::ranges::all_of(kSources, [&](std::string_view name) {
    return SameJson(OrEmptyObject(FindMember(before, name)), OrEmptyObject(FindMember(spec, name)));
  });
  if (!same) {
    AddForbidden(errors, path.At("persistentvolumesource"),
                 "spec.persistentvolumesource is immutable after creation");
  }
  CheckModeStays(errors, *old, object);
}

void CheckClaim(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  CheckClaimSpec(errors, Path("spec"), OrEmptyObject(FindMember(object, "spec")));
  if (old != nullptr) CheckClaimUpdate(errors, *old, object);
}

void CheckClaimStatus(FieldErrors& errors, const Json& object) {
  constexpr std::array<std::string_view, 5> kResizes = {
      "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
      "NodeResizeInfeasible", "NodeResizePending"};
  const Path status("status");
  const Path capacity = status.At("capacity");
  for (const auto& [name, amount] : ObjectAt(object, "status.capacity"))
    CheckNotNegative(errors, capacity.Key(name), amount);
  const Path resizes = status.At("allocatedResourceStatuses");
  for (const auto& [name, resize] : ObjectAt(object, "status.allocatedResourceStatuses")) {
    CheckClaimResource(errors, resizes, name);
    // Upstream shows whose status it is, not the status.
    if (std::ranges::find(kResizes, TextOf(resize)) == kResizes.end())
      errors.push_back(NotSupportedField(resizes.text(), name, kResizes));
  }
  const Path allocated = status.At("allocatedResources");
  for (const auto& [name, amount] : ObjectAt(object, "status.allocatedResources")) {
    if (CheckClaimResource(errors, allocated, name))
      CheckNotNegative(errors, allocated.Key(name), amount);
  }
}

void CheckStorageClass(FieldErrors& errors, const Json* old, const Json& object) {
  constexpr std::array<std::string_view, 2> kPolicies = {"Delete", "Retain"};
  constexpr std::array<std::string_view, 2> kBindings = {"Immediate", "WaitForFirstConsumer"};
  constexpr size_t kParametersMax = 512;
  constexpr size_t kParameterBytesMax = size_t{256} * 1024;
  CheckMeta(errors, object, false, CheckDns1123Subdomain);
  const std::string_view provisioner = TextAt(object, "provisioner");
  if (provisioner.empty()) {
    AddRequired(errors, Path("provisioner"));
  } else {
    const Messages why = CheckQualifiedName(Lower(provisioner));
    AddInvalid(errors, Path("provisioner"), Lower(provisioner), why);
  }
  const JsonObject& parameters = ObjectAt(object, "parameters");
  if (parameters.size() > kParametersMax) {
    errors.push_back(TooLongField("parameters", kParametersMax));
  } else if (parameters.contains("")) {
    AddInvalid(errors, Path("parameters"), Json(""), "field can not be empty.");
  }
  size_t bytes = 0;
  for (const auto& [key, value] : parameters) bytes += key.size() + TextOf(value).size();
  if (bytes > kParameterBytesMax && parameters.size() <= kParametersMax) {
    errors.push_back(TooLongField("parameters", kParameterBytesMax));
  }
  const std::string_view policy = TextAt(object, "reclaimPolicy");
  if (!policy.empty()) CheckEnum(errors, Path("reclaimPolicy"), policy, kPolicies);
  CheckEnum(errors, Path("volumeBindingMode"), TextAt(object, "volumeBindingMode"), kBindings);
  CheckTopologies(errors, object);
  if (old == nullptr) return;
  CheckMetaUpdate(errors, *old, object);
  for (const std::string_view member :
       {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
    CheckImmutable(errors, Path(""), *old, object, member);
  }
}

void CheckCsiNode(FieldErrors& errors, const Json* old, const Json& object) {
  CheckMeta(errors, object, false, CheckDns1123Subdomain);
  const JsonArray& drivers = ArrayAt(object, "spec.drivers");
  const Path spec("spec");
  std::set<std::string_view> names;
  for (size_t i = 0; i < drivers.size(); ++i) {
    const Path path = spec.At("drivers", i);
    CheckNodeDriver(errors, path, drivers[i]);
    const std::string_view name = TextAt(drivers[i], "name");
    if (!names.insert(name).second) {
      errors.push_back(DuplicateField(path.At("name").text(), name));
    }
    CheckTopologyKeys(errors, path, drivers[i]);
  }
  if (old == nullptr) return;
  for (const Json& before : ArrayAt(*old, "spec.drivers")) {
    for (const Json& driver : drivers) {
      if (TextAt(before, "name") != TextAt(driver, "name")) continue;
      const Json shown = ShownDriver(driver);
      if (SameJson(ShownDriver(before), shown)) continue;
      AddInvalid(errors, spec.At("drivers"), shown, std::string(kImmutable));
    }
  }
}

void CheckCsiDriver(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) {
    CheckMetaUpdate(errors, *old, object);
  } else {
    CheckMeta(errors, object, false, CheckDns1123Subdomain);
  }
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  const Path path("spec");
  CheckDriverSpec(errors, path, spec);
  if (old == nullptr) return;
  const Json& before = OrEmptyObject(FindMember(*old, "spec"));
  if (FlagAt(before, "attachRequired") != FlagAt(spec, "attachRequired")) {
    // Upstream names the field so.
    AddInvalid(errors, path.At("attachedRequired"), Json(FlagAt(spec, "attachRequired")),
               std::string(kImmutable));
  }
  CheckImmutable(errors, path, before, spec, "volumeLifecycleModes");
}

void CheckAttachment(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, false, CheckDns1123Subdomain);
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  const Path path("spec");
  CheckDriverName(errors, path.At("attacher"), TextAt(spec, "attacher"));
  CheckAttachmentSource(errors, path.At("source"), OrEmptyObject(FindMember(spec, "source")));
  const std::string_view node = TextAt(spec, "nodeName");
  AddInvalid(errors, path.At("nodeName"), node, CheckDns1123Subdomain(node));
  CheckAttachmentStatus(errors, object);
  if (old == nullptr || SameJson(OrEmptyObject(FindMember(*old, "spec")), spec)) return;
  AddInvalid(errors, path, ShownAttachment(spec), std::string(kImmutable));
}

void CheckAttachmentStatus(FieldErrors& errors, const Json& object) {
  constexpr size_t kBytesMax = size_t{256} * 1024;
  const Json& status = OrEmptyObject(FindMember(object, "status"));
  const Path path("status");
  size_t bytes = 0;
  for (const auto& [key, value] : ObjectAt(status, "attachmentMetadata")) {
    bytes += key.size() + TextOf(value).size();
  }
  if (bytes > kBytesMax) {
    errors.push_back(TooLongField(path.At("attachmentMetadata").text(), kBytesMax));
  }
  for (const std::string_view member : {"attachError", "detachError"}) {
    const Json* error = FindMember(status, member);
    if (error == nullptr) continue;
    const Path at = path.At(member);
    if (TextAt(*error, "message").size() > kBytesMax) {
      errors.push_back(TooLongField(at.At("message").text(), kBytesMax));
    }
    const int64_t code = IntegerAt(*error, "errorCode");
    if (code < 0) {
      AddInvalid(errors, at.At("errorCode"), Json(code),
                 "must be between 0 and 2147483647, inclusive");
    }
  }
}

void CheckStorageCapacity(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  if (const Json* topology = FindMember(object, "nodeTopology")) {
    CheckLabelSelector(errors, Path("nodeTopology"), *topology);
  }
  const std::string_view name = TextAt(object, "storageClassName");
  AddInvalid(errors, Path("storageClassName"), name, CheckDns1123Subdomain(name));
  // Upstream has no such rule for maximumVolumeSize.
  const Json* capacity = FindMember(object, "capacity");
  if (capacity != nullptr && AmountOf(*capacity).sign() < 0) {
    AddInvalid(errors, Path("capacity"), *capacity, "must be greater than or equal to 0");
  }
  if (old == nullptr) return;
  for (const std::string_view member : {"nodeTopology", "storageClassName"}) {
    CheckImmutable(errors, Path(""), *old, object, member);
  }
}

void CheckRuntimeClass(FieldErrors& errors, const Json* old, const Json& object) {
  const std::string_view handler = TextAt(object, "handler");
  CheckCustomMeta(errors, object, false);
  CheckRequired(errors, Path("handler"), handler, CheckDns1123Label(handler));
  CheckOverhead(errors, Path("overhead"), ObjectAt(object, "overhead.podFixed"));
  if (const Json* scheduling = FindMember(object, "scheduling")) {
    CheckScheduling(errors, Path("scheduling"), *scheduling);
  }
  if (old == nullptr) return;
  CheckCustomMetaUpdate(errors, *old, object);
  if (handler != TextAt(*old, "handler")) {
    AddInvalid(errors, Path("handler"), handler, Messages{std::string(kImmutable)});
  }
}

}  // namespace berth::api::rules
