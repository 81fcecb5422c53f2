#include "api/validate_volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>
#include <string>

#include "api/object.h"
#include "api/quantity.h"
#include "api/text.h"
#include "api/validate_env.h"
#include "api/validate_pod.h"
#include "api/validate_storage.h"

namespace berth::api::rules {
namespace {

constexpr int64_t kModeMax = 0777;
constexpr int64_t kLunMax = 255;
constexpr size_t kPortalMax = 64;
constexpr size_t kTenantMax = 64;
constexpr std::string_view kOneType = "may not specify more than 1 volume type";

void Refuse(FieldErrors& errors, const Path& path, std::string_view value, std::string_view why) {
  AddInvalid(errors, path, value, Messages{std::string(why)});
}

void CheckMode(FieldErrors& errors, const Path& path, const Json& owner, std::string_view member) {
  const Json* mode = FindMember(owner, member);
  if (mode == nullptr) return;
  const int64_t value = IntegerAt(owner, member);
  if (value >= 0 && value <= kModeMax) return;
  AddInvalid(errors, path.At(member), *mode,
             "must be a number between 0 and 0777 (octal), both inclusive");
}

void CheckRange(FieldErrors& errors, const Path& path, int64_t value, std::string why) {
  if (value < 0 || value > kLunMax) {
    errors.push_back(InvalidField(path.text(), value, std::move(why)));
  }
}

void CheckNeeded(FieldErrors& errors, const Path& path, const Json& source,
                 std::span<const std::string_view> members) {
  for (const std::string_view member : members) {
    if (TextAt(source, member).empty() && ArrayAt(source, member).empty()) {
      AddRequired(errors, path.At(member));
    }
  }
}

// What a source is of: the volume's name, and whether it is a PersistentVolume's.
struct Owner {
  std::string_view name;
  bool persistent = false;
  bool is_template = false;
  const Path& volume;
  std::string_view pod_name = {};  // Of a new pod.
};

void CheckItems(FieldErrors& errors, const Path& path, const Json& source) {
  CheckMode(errors, path, source, "defaultMode");
  const JsonArray& items = ArrayAt(source, "items");
  constexpr std::array<std::string_view, 2> kNeeded = {"key", "path"};
  for (size_t i = 0; i < items.size(); ++i) {
    const Path item = path.At("items", i);
    CheckNeeded(errors, item, items[i], kNeeded);
    CheckLocalPath(errors, item.At("path"), TextAt(items[i], "path"));
    CheckMode(errors, item, items[i], "mode");
  }
}

// ---- Sources with rules of their own -----------------------------------------------------------

void CheckEmptyDir(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  const Result<Quantity> limit = ParseQuantity(TextAt(source, "sizeLimit"));
  if (limit && limit->sign() < 0) {
    AddForbidden(errors, path.At("sizeLimit"), "SizeLimit field must be a valid resource quantity");
  }
}

void CheckHostPath(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  const std::string_view where = TextAt(source, "path");
  if (where.empty()) {
    AddRequired(errors, path.At("path"));
    return;
  }
  CheckNoBacksteps(errors, path.At("path"), where);
  constexpr std::array<std::string_view, 8> kTypes = {
      "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
      "File", "FileOrCreate", "Socket"};
  CheckEnum(errors, path.At("type"), TextAt(source, "type"), kTypes);
}

void CheckLocal(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  CheckNoBacksteps(errors, path.At("path"), TextAt(source, "path"));
}

void CheckGitRepo(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  CheckDescending(errors, path.At("directory"), TextAt(source, "directory"));
}

void CheckPartition(FieldErrors& errors, const Path& path, const Json& source,
                    const Owner& /*of*/) {
  CheckRange(errors, path.At("partition"), IntegerAt(source, "partition"),
             RangeMessage(1, kLunMax));
}

void CheckFiles(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  CheckItems(errors, path, source);
}

void CheckNfs(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  const std::string_view where = TextAt(source, "path");
  if (!where.starts_with('/')) {
    Refuse(errors, path.At("path"), where, "must be an absolute path");
  }
}

bool AreAlphanumeric(std::string_view text, size_t count) {
  return text.size() == count &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0; });
}

// iqn.2001-04.com.example:storage
bool IsIqn(std::string_view name) {
  const auto digits = [&](size_t from, size_t count) {
    return name.size() > from + count &&
           std::ranges::all_of(name.substr(from, count),
                               [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (!name.starts_with("iqn.") || !digits(4, 4) || name[8] != '-' || !digits(9, 2) ||
      name[11] != '.') {
    return false;
  }
  const std::string_view rest = name.substr(12);
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == rest.size()) return false;
  const bool authority = std::ranges::all_of(rest.substr(0, colon), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.';
  });
  return authority &&
         rest.substr(colon + 1).find_first_of(",;*&$| \t\n\r\f\v") == std::string_view::npos;
}

void CheckInitiator(FieldErrors& errors, const Path& path, std::string_view name, bool persistent) {
  bool good = false;
  if (name.starts_with("iqn")) {
    good = IsIqn(name);
  } else if (name.starts_with("eui")) {
    good = name.size() > 4 && AreAlphanumeric(name.substr(4), 16);
  } else if (name.starts_with("naa")) {
    good = name.size() > 4 && AreAlphanumeric(name.substr(4), 32);
  } else {
    Refuse(errors, path, name,
           persistent ? "must be valid format"
                      : "must be valid format starting with iqn, eui, or naa");
    return;
  }
  if (!good) Refuse(errors, path, name, "must be valid format");
}

void CheckIscsi(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  const std::string_view portal = TextAt(source, "targetPortal");
  const std::string_view iqn = TextAt(source, "iqn");
  const Json* initiator = FindMember(source, "initiatorName");
  const bool long_name = initiator != nullptr && of.name.size() + 1 + portal.size() > kPortalMax;
  constexpr std::string_view kLong =
      "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
      "iscsi.initiatorName is specified.";
  if (portal.empty()) AddRequired(errors, path.At("targetPortal"));
  if (of.persistent && long_name) Refuse(errors, path.At("targetportal"), portal, kLong);
  if (iqn.empty()) {
    AddRequired(errors, path.At("iqn"));
  } else {
    CheckInitiator(errors, path.At("iqn"), iqn, of.persistent);
  }
  CheckRange(errors, path.At("lun"), IntegerAt(source, "lun"), RangeMessage(0, kLunMax));
  const Json* secret = FindMember(source, "secretRef");
  if ((FlagAt(source, "chapAuthDiscovery") || FlagAt(source, "chapAuthSession")) &&
      secret == nullptr) {
    AddRequired(errors, path.At("secretRef"));
  }
  if (of.persistent && secret != nullptr && TextAt(*secret, "name").empty()) {
    const Path at = path.At("secretRef");
    AddRequired(errors, at.At("name"));
  }
  if (initiator != nullptr) {
    CheckInitiator(errors, path.At("initiatorname"), TextOf(*initiator), of.persistent);
  }
  if (!of.persistent && long_name) Refuse(errors, of.volume.At("name"), of.name, kLong);
}

void CheckGlusterfs(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  const Json* space = FindMember(source, "endpointsNamespace");
  if (!of.persistent || space == nullptr) return;
  const std::string_view name = TextOf(*space);
  const Path at = path.At("endpointsNamespace");
  if (name.empty()) {
    Refuse(errors, at, name, "if the endpointnamespace is set, it must be a valid namespace name");
  } else {
    AddInvalid(errors, at, name, CheckDns1123Label(name));
  }
}

void CheckFlocker(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  const std::string_view name = TextAt(source, "datasetName");
  const std::string_view uuid = TextAt(source, "datasetUUID");
  if (name.empty() && uuid.empty()) {
    AddRequired(errors, path, "one of datasetName and datasetUUID is required");
  }
  if (!name.empty() && !uuid.empty()) {
    Refuse(errors, path, "resource",
           "datasetName and datasetUUID can not be specified simultaneously");
  }
  if (name.contains('/')) Refuse(errors, path.At("datasetName"), name, "must not contain '/'");
}

// A secretRef, whose namespace pods don't say.
void CheckSecretRef(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  const Json* secret = FindMember(source, "secretRef");
  if (secret == nullptr) return;
  const Path at = path.At("secretRef");
  if (TextAt(*secret, "name").empty()) AddRequired(errors, at.At("name"));
  if (of.persistent && TextAt(*secret, "namespace").empty()) {
    AddRequired(errors, at.At("namespace"));
  }
}

bool IsHostAndPort(std::string_view pair) {
  const size_t colon = pair.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = pair.substr(0, colon);
  if (host.starts_with('[')) return host.ends_with(']');
  return host.find_first_of(":[]") == std::string_view::npos;
}

void CheckQuobyte(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  constexpr std::string_view kPairs =
      "must be a host:port pair or multiple pairs separated by commas";
  const std::string_view registry = TextAt(source, "registry");
  if (registry.empty()) {
    AddRequired(errors, path.At("registry"), std::string(kPairs));
  } else if (TextAt(source, "tenant").size() > kTenantMax) {
    AddRequired(errors, path.At("tenant"),
                "must be a UUID and may not exceed a length of 64 characters");
  } else {
    for (size_t begin = 0; begin <= registry.size();) {
      const size_t end = std::min(registry.find(',', begin), registry.size());
      if (!IsHostAndPort(registry.substr(begin, end - begin))) {
        Refuse(errors, path.At("registry"), registry, kPairs);
      }
      begin = end + 1;
    }
  }
  if (TextAt(source, "volume").empty()) AddRequired(errors, path.At("volume"));
}

void CheckDownward(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  CheckMode(errors, path, source, "defaultMode");
  for (const Json& file : ArrayAt(source, "items")) CheckDownwardFile(errors, path, file);
}

void CheckFc(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  const JsonArray& targets = ArrayAt(source, "targetWWNs");
  const JsonArray& ids = ArrayAt(source, "wwids");
  if (targets.empty() && ids.empty()) {
    AddRequired(errors, path.At("targetWWNs"),
                "must specify either targetWWNs or wwids, but not both");
  }
  if (!targets.empty() && !ids.empty()) {
    AddInvalid(errors, path.At("targetWWNs"), Json(targets),
               "targetWWNs and wwids can not be specified simultaneously");
  }
  if (targets.empty()) return;
  if (FindMember(source, "lun") == nullptr) {
    AddRequired(errors, path.At("lun"), "lun is required if targetWWNs is specified");
  } else {
    CheckRange(errors, path.At("lun"), IntegerAt(source, "lun"), RangeMessage(0, kLunMax));
  }
}

void CheckFlex(FieldErrors& errors, const Path& path, const Json& source, const Owner& /*of*/) {
  const Path options = path.At("options");
  for (const auto& [key, value] : ObjectAt(source, "options")) {
    const std::string_view name(key);
    const std::string space = "." + Lower(name.substr(0, name.find('/')));
    if (space.ends_with(".kubernetes.io") || space.ends_with(".k8s.io")) {
      Refuse(errors, options.Key(name), name, "kubernetes.io and k8s.io namespaces are reserved");
    }
  }
}

void CheckAzureFile(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  const Json* space = FindMember(source, "secretNamespace");
  if (of.persistent && space != nullptr && TextOf(*space).empty()) {
    AddRequired(errors, path.At("secretNamespace"));
  }
}

void CheckAzureDisk(FieldErrors& errors, const Path& path, const Json& source,
                    const Owner& /*of*/) {
  constexpr std::array<std::string_view, 3> kCaching = {"None", "ReadOnly", "ReadWrite"};
  constexpr std::array<std::string_view, 3> kKinds = {"Dedicated", "Managed", "Shared"};
  constexpr std::array<std::string_view, 1> kManaged = {
      "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
      "{disk-id}"};
  constexpr std::array<std::string_view, 1> kBlob = {
      "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"};
  if (FindMember(source, "cachingMode") != nullptr) {
    CheckEnum(errors, path.At("cachingMode"), TextAt(source, "cachingMode"), kCaching);
  }
  if (FindMember(source, "kind") == nullptr) return;
  const std::string_view kind = TextAt(source, "kind");
  const std::string_view uri = TextAt(source, "diskURI");
  CheckEnum(errors, path.At("kind"), kind, kKinds);
  const bool managed = kind == "Managed";
  if (uri.starts_with(managed ? "/subscriptions/" : "https://")) return;
  errors.push_back(NotSupportedField(path.At("diskURI").text(), uri, managed ? kManaged : kBlob));
}

void CheckStorageOs(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  for (const std::string_view member : {"volumeName", "volumeNamespace"}) {
    const std::string_view name = TextAt(source, member);
    if (!name.empty()) AddInvalid(errors, path.At(member), name, CheckDns1123Label(name));
  }
  CheckSecretRef(errors, path, source, of);
}

void CheckDriverSecret(FieldErrors& errors, const Path& path, const Json& secret) {
  const std::string_view name = TextAt(secret, "name");
  const std::string_view space = TextAt(secret, "namespace");
  CheckRequired(errors, path.At("name"), name, CheckDns1123Subdomain(name));
  CheckRequired(errors, path.At("namespace"), space, CheckDns1123Label(space));
}

void CheckCsi(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  CheckDriverName(errors, path.At("driver"), TextAt(source, "driver"));
  if (of.persistent) {
    if (TextAt(source, "volumeHandle").empty()) AddRequired(errors, path.At("volumeHandle"));
    for (const std::string_view member : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                                          "nodePublishSecretRef", "nodeExpandSecretRef"}) {
      const Json* secret = FindMember(source, member);
      if (secret != nullptr) CheckDriverSecret(errors, path.At(member), *secret);
    }
    return;
  }
  const Json* secret = FindMember(source, "nodePublishSecretRef");
  if (secret == nullptr) return;
  const std::string_view name = TextAt(*secret, "name");
  const Path at = path.At("nodePublishSecretRef");
  if (name.empty()) {
    AddRequired(errors, at.At("name"));
  } else {
    // Upstream names it so.
    AddInvalid(errors, path.At("name"), name, CheckDns1123Subdomain(name));
  }
}

// The claim of an ephemeral volume is called by the pod and the volume.
void CheckClaimName(FieldErrors& errors, const Owner& of) {
  if (of.pod_name.empty() || of.name.empty()) return;
  const std::string name = fmt::format("{}-{}", of.pod_name, of.name);
  for (const std::string& why : CheckDns1123Subdomain(name)) {
    AddInvalid(errors, of.volume.At("name"), of.name,
               Messages{fmt::format("PVC name \"{}\": {}", name, why)});
  }
}

void CheckEphemeral(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  const Json* claim = FindMember(source, "volumeClaimTemplate");
  const Path at = path.At("volumeClaimTemplate");
  if (claim == nullptr) {
    AddRequired(errors, at);
    CheckClaimName(errors, of);
    return;
  }
  const Path meta = at.At("metadata");
  const JsonObject& metadata = ObjectAt(*claim, "metadata");
  CheckAnnotations(errors, meta.At("annotations"), ObjectAt(*claim, "metadata.annotations"));
  CheckLabels(errors, meta.At("labels"), ObjectAt(*claim, "metadata.labels"));
  for (const std::string_view member :
       {"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
        "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers"}) {
    const Json* value = FindMember(metadata, member);
    if (value == nullptr || *value == "") continue;
    AddForbidden(errors, meta.At(member), "cannot be set");
  }
  const Json& spec = OrEmptyObject(FindMember(*claim, "spec"));
  CheckClaimSpec(errors, at.At("spec"), spec);
  CheckClaimName(errors, of);
}

void CheckImage(FieldErrors& errors, const Path& path, const Json& source, const Owner& of) {
  if (!of.is_template && TextAt(source, "reference").empty()) {
    AddRequired(errors, path.At("reference"));
  }
  constexpr std::array<std::string_view, 3> kPolicies = {"Always", "IfNotPresent", "Never"};
  CheckRequiredEnum(errors, path.At("pullPolicy"), TextAt(source, "pullPolicy"), kPolicies);
}

// The files of a projected volume, which its sources share.
class Projection {
 public:
  Projection(FieldErrors& errors, const Path& path) : errors_(errors), path_(path) {}

  void Check(const Path& at, const Json& source) {
    int count = 0;
    for (const std::string_view member : {"secret", "configMap"}) {
      const Json* named = FindMember(source, member);
      if (named == nullptr) continue;
      ++count;
      const Path part = at.At(member);
      const std::string_view name = TextAt(*named, "name");
      if (name.empty()) AddRequired(errors_, part.At("name"));
      CheckItems(errors_, part, *named);
      for (const Json& item : ArrayAt(*named, "items")) Take(TextAt(item, "path"), name);
    }
    if (const Json* downward = FindMember(source, "downwardAPI")) {
      ++count;
      const Path part = at.At("downwardAPI");
      for (const Json& file : ArrayAt(*downward, "items")) {
        CheckDownwardFile(errors_, part, file);
        Take(TextAt(file, "path"), TextAt(file, "path"));
      }
    }
    if (const Json* token = FindMember(source, "serviceAccountToken")) {
      ++count;
      CheckToken(at.At("serviceAccountToken"), *token);
    }
    if (count > 1) {
      AddForbidden(errors_, at, "may not specify more than 1 volume type per source");
    }
  }

 private:
  void Take(std::string_view file, std::string_view shown) {
    if (!file.empty() && !files_.insert(file).second) {
      Refuse(errors_, path_, shown, "conflicting duplicate paths");
    }
  }

  void CheckToken(const Path& at, const Json& token) {
    constexpr int64_t kSecondsMin = 600;
    constexpr int64_t kSecondsMax = int64_t{1} << 32;
    const int64_t seconds = IntegerAt(token, "expirationSeconds");
    const Path expiration = at.At("expirationSeconds");
    if (seconds < kSecondsMin) {
      errors_.push_back(InvalidField(expiration.text(), seconds,
                                     "may not specify a duration less than 10 minutes"));
    }
    if (seconds > kSecondsMax) {
      errors_.push_back(InvalidField(expiration.text(), seconds,
                                     "may not specify a duration larger than 2^32 seconds"));
    }
    const std::string_view file = TextAt(token, "path");
    if (file.empty()) {
      AddRequired(errors_, path_.At("path"));
    } else {
      CheckLocalPath(errors_, path_.At("path"), file);
    }
  }

  FieldErrors& errors_;
  const Path& path_;
  std::set<std::string_view> files_;
};

void CheckProjected(FieldErrors& errors, const Path& path, const Json& source,
                    const Owner& /*of*/) {
  CheckMode(errors, path, source, "defaultMode");
  const JsonArray& sources = ArrayAt(source, "sources");
  Projection projection(errors, path);
  for (size_t i = 0; i < sources.size(); ++i) projection.Check(path.At("sources", i), sources[i]);
}

// ---- The table ---------------------------------------------------------------------------------

using SourceCheck = void (*)(FieldErrors& errors, const Path& path, const Json& source,
                             const Owner& of);

struct Source {
  std::string_view name;
  std::array<std::string_view, 3> needed = {};  // Members, in order; "" for none.
  SourceCheck check = nullptr;
  std::string_view called = {};       // In errors of its members, where upstream names it so.
  std::string_view called_also = {};  // Likewise, when it is one too many.
};

// In upstream's order, in which the first one counts.
constexpr auto kPodSources = std::to_array<Source>({
    {.name = "emptyDir", .check = &CheckEmptyDir},
    {.name = "hostPath", .check = &CheckHostPath},
    {.name = "gitRepo", .needed = {"repository"}, .check = &CheckGitRepo},
    {.name = "gcePersistentDisk",
     .needed = {"pdName"},
     .check = &CheckPartition,
     .called = "persistentDisk"},
    {.name = "awsElasticBlockStore", .needed = {"volumeID"}, .check = &CheckPartition},
    {.name = "secret", .needed = {"secretName"}, .check = &CheckFiles},
    {.name = "nfs", .needed = {"server", "path"}, .check = &CheckNfs},
    {.name = "iscsi", .check = &CheckIscsi},
    {.name = "glusterfs", .needed = {"endpoints", "path"}, .check = &CheckGlusterfs},
    {.name = "flocker", .check = &CheckFlocker},
    {.name = "persistentVolumeClaim", .needed = {"claimName"}},
    {.name = "rbd", .needed = {"monitors", "image"}},
    {.name = "cinder", .needed = {"volumeID"}, .check = &CheckSecretRef},
    {.name = "cephfs", .needed = {"monitors"}, .called_also = "cephFS"},
    {.name = "quobyte", .check = &CheckQuobyte},
    {.name = "downwardAPI", .check = &CheckDownward, .called_also = "downwarAPI"},
    {.name = "fc", .check = &CheckFc},
    {.name = "flexVolume", .needed = {"driver"}, .check = &CheckFlex},
    {.name = "configMap", .needed = {"name"}, .check = &CheckFiles},
    {.name = "azureFile", .needed = {"secretName", "shareName"}, .check = &CheckAzureFile},
    {.name = "vsphereVolume", .needed = {"volumePath"}},
    {.name = "photonPersistentDisk", .needed = {"pdID"}},
    {.name = "portworxVolume", .needed = {"volumeID"}},
    {.name = "azureDisk", .needed = {"diskName", "diskURI"}, .check = &CheckAzureDisk},
    {.name = "storageos", .needed = {"volumeName"}, .check = &CheckStorageOs},
    {.name = "projected", .check = &CheckProjected},
    {.name = "scaleIO", .needed = {"gateway", "system", "volumeName"}},
    {.name = "csi", .check = &CheckCsi},
    {.name = "ephemeral", .check = &CheckEphemeral},
    {.name = "image", .check = &CheckImage},
});

constexpr Source kLocal = {.name = "local", .needed = {"path"}, .check = &CheckLocal};

// The rows of kPodSources that PersistentVolumes have too, in their order.
constexpr std::array<std::string_view, 22> kPersistentSources = {"hostPath",
                                                                 "gcePersistentDisk",
                                                                 "awsElasticBlockStore",
                                                                 "glusterfs",
                                                                 "flocker",
                                                                 "nfs",
                                                                 "rbd",
                                                                 "quobyte",
                                                                 "cephfs",
                                                                 "iscsi",
                                                                 "cinder",
                                                                 "fc",
                                                                 "flexVolume",
                                                                 "azureFile",
                                                                 "vsphereVolume",
                                                                 "photonPersistentDisk",
                                                                 "portworxVolume",
                                                                 "azureDisk",
                                                                 "scaleIO",
                                                                 "local",
                                                                 "storageos",
                                                                 "csi"};

// One source of an owner's. `count`: how many it has so far.
void CheckSource(FieldErrors& errors, const Source& source, const Json& owner, const Owner& of,
                 int& count) {
  const Json* body = FindMember(owner, source.name);
  if (body == nullptr) return;
  // A FlexVolume is counted, but never one too many for a PersistentVolume.
  const bool counts = !(of.persistent && source.name == "flexVolume");
  if (count > 0 && counts) {
    AddForbidden(errors,
                 of.volume.At(source.called_also.empty() ? source.name : source.called_also),
                 std::string(kOneType));
    return;
  }
  ++count;
  const Path path = of.volume.At(source.called.empty() ? source.name : source.called);
  const auto end = std::ranges::find(source.needed, std::string_view());
  CheckNeeded(errors, path, *body, {source.needed.begin(), end});
  if (source.check != nullptr) source.check(errors, path, *body, of);
}

// ---- Mounts ------------------------------------------------------------------------------------

void CheckMountModes(FieldErrors& errors, const Path& list, const Json& mount, const Json& body) {
  constexpr std::array<std::string_view, 3> kModes = {"Bidirectional", "HostToContainer", "None"};
  const std::string_view mode = TextAt(mount, "mountPropagation");
  if (FindMember(mount, "mountPropagation") != nullptr) {
    CheckEnum(errors, list.At("mountPropagation"), mode, kModes);
    if (mode == "Bidirectional" && !FlagAt(body, "securityContext.privileged")) {
      AddForbidden(errors, list.At("mountPropagation"),
                   "Bidirectional mount propagation is available only to privileged containers");
    }
  }
  if (FindMember(mount, "recursiveReadOnly") == nullptr) return;
  constexpr std::array<std::string_view, 3> kRecursive = {"Disabled", "Enabled", "IfPossible"};
  const std::string_view recursive = TextAt(mount, "recursiveReadOnly");
  const Path path = list.At("recursiveReadOnly");
  CheckEnum(errors, path, recursive, kRecursive);
  if (recursive != "Enabled" && recursive != "IfPossible") return;
  if (!FlagAt(mount, "readOnly")) {
    AddForbidden(errors, path, "may only be specified when readOnly is true");
  }
  if (!mode.empty() && mode != "None") {
    AddForbidden(errors, path,
                 "may only be specified when mountPropagation is None or not specified");
  }
}

// Whether one of a list has the text for the member.
bool Any(const JsonArray& list, std::string_view member, std::string_view text) {
  return std::ranges::any_of(list, [&](const Json& item) { return TextAt(item, member) == text; });
}

void CheckDevices(FieldErrors& errors, const Path& container, const Json& body,
                  const PodVolumes& volumes) {
  const JsonArray& devices = ArrayAt(body, "volumeDevices");
  const JsonArray& mounts = ArrayAt(body, "volumeMounts");
  std::set<std::string_view> names;
  std::set<std::string_view> paths;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Path path = container.At("volumeDevices", i);
    const std::string_view name = TextAt(devices[i], "name");
    const std::string_view where = TextAt(devices[i], "devicePath");
    const auto volume = volumes.find(name);
    if (name.empty()) AddRequired(errors, path.At("name"));
    if (names.contains(name)) Refuse(errors, path.At("name"), name, "must be unique");
    if (volume == volumes.end()) {
      errors.push_back(NotFoundField(path.At("name").text(), name));
    } else if (!volume->second) {
      Refuse(
          errors, path.At("name"), name,
          "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    }
    if (where.empty()) AddRequired(errors, path.At("devicePath"));
    if (paths.contains(where)) Refuse(errors, path.At("devicePath"), where, "must be unique");
    FieldErrors steps;
    CheckNoBacksteps(steps, path, where);
    if (!steps.empty()) {
      Refuse(errors, path.At("devicePath"), where, "can not contain backsteps ('..')");
    } else {
      paths.insert(where);
    }
    if (Any(mounts, "name", name)) {
      Refuse(errors, path.At("name"), name, "must not already exist in volumeMounts");
    }
    if (Any(mounts, "mountPath", where)) {
      Refuse(errors, path.At("devicePath"), where,
             "must not already exist as a path in volumeMounts");
    }
    if (!name.empty()) names.insert(name);
  }
}

}  // namespace

void CheckNoBacksteps(FieldErrors& errors, const Path& path, std::string_view where) {
  for (std::string_view rest = where; !rest.empty();) {
    const size_t end = rest.find('/');
    if (rest.substr(0, end) == "..") {
      Refuse(errors, path, where, "must not contain '..'");
      return;
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
}

void CheckDescending(FieldErrors& errors, const Path& path, std::string_view where) {
  if (where.starts_with('/')) Refuse(errors, path, where, "must be a relative path");
  CheckNoBacksteps(errors, path, where);
}

void CheckLocalPath(FieldErrors& errors, const Path& path, std::string_view where) {
  CheckDescending(errors, path, where);
  if (where.starts_with("..") && where != ".." && !where.starts_with("../")) {
    Refuse(errors, path, where, "must not start with '..'");
  }
}

void CheckDriverName(FieldErrors& errors, const Path& path, std::string_view name) {
  constexpr int64_t kNameMax = 63;
  if (name.empty()) {
    AddRequired(errors, path);
    return;
  }
  if (std::ssize(name) > kNameMax) errors.push_back(TooLongField(path.text(), kNameMax));
  AddInvalid(errors, path, name, CheckDns1123Subdomain(Lower(name)));
}

PodVolumes CheckPodVolumes(FieldErrors& errors, const Path& spec_path, const Json& spec,
                           bool is_template, std::string_view pod_name) {
  const JsonArray& volumes = ArrayAt(spec, "volumes");
  PodVolumes good;
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Path path = spec_path.At("volumes", i);
    const size_t before = errors.size();
    const std::string_view name = TextAt(volumes[i], "name");
    const Owner of{.name = name, .is_template = is_template, .volume = path, .pod_name = pod_name};
    int count = 0;
    for (const Source& source : kPodSources) CheckSource(errors, source, volumes[i], of, count);
    if (count == 0) AddRequired(errors, path, "must specify a volume type");
    CheckRequired(errors, path.At("name"), name, CheckDns1123Label(name));
    if (good.contains(name)) errors.push_back(DuplicateField(path.At("name").text(), name));
    if (errors.size() > before) continue;
    good.emplace(name, FindMember(volumes[i], "persistentVolumeClaim") != nullptr ||
                           FindMember(volumes[i], "ephemeral") != nullptr);
  }
  return good;
}

void CheckMounts(FieldErrors& errors, const Path& container, const Json& body,
                 const PodVolumes& volumes) {
  const JsonArray& mounts = ArrayAt(body, "volumeMounts");
  const JsonArray& devices = ArrayAt(body, "volumeDevices");
  // Upstream names the list, not the mount, where a mode or a path below the volume is wrong.
  const Path list = container.At("volumeMounts");
  std::set<std::string_view> paths;
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Path path = container.At("volumeMounts", i);
    const std::string_view name = TextAt(mounts[i], "name");
    const std::string_view where = TextAt(mounts[i], "mountPath");
    if (name.empty()) AddRequired(errors, path.At("name"));
    if (!volumes.contains(name)) errors.push_back(NotFoundField(path.At("name").text(), name));
    if (where.empty()) AddRequired(errors, path.At("mountPath"));
    if (!paths.insert(where).second) Refuse(errors, path.At("mountPath"), where, "must be unique");
    if (Any(devices, "name", name)) {
      Refuse(errors, path.At("name"), name, "must not already exist in volumeDevices");
    }
    if (Any(devices, "devicePath", where)) {
      Refuse(errors, path.At("mountPath"), where,
             "must not already exist as a path in volumeDevices");
    }
    const std::string_view below = TextAt(mounts[i], "subPath");
    const std::string_view expression = TextAt(mounts[i], "subPathExpr");
    if (!below.empty()) CheckDescending(errors, list.At("subPath"), below);
    if (!expression.empty()) {
      if (!below.empty()) {
        Refuse(errors, path.At("subPathExpr"), expression,
               "subPathExpr and subPath are mutually exclusive");
      }
      CheckDescending(errors, list.At("subPathExpr"), expression);
    }
    CheckMountModes(errors, list, mounts[i], body);
  }
  CheckDevices(errors, container, body, volumes);
}

void CheckPersistentSource(FieldErrors& errors, const Path& spec_path, const Json& volume) {
  const Json& spec = OrEmptyObject(FindMember(volume, "spec"));
  const Owner of{.name = TextAt(volume, "metadata.name"), .persistent = true, .volume = spec_path};
  int count = 0;
  for (const std::string_view name : kPersistentSources) {
    const auto* const row = std::ranges::find(kPodSources, name, &Source::name);
    const int before = count;
    CheckSource(errors, row == kPodSources.end() ? kLocal : *row, spec, of, count);
    if (name == "local" && count > before && FindMember(spec, "nodeAffinity") == nullptr) {
      AddRequired(errors, spec_path.At("nodeAffinity"), "Local volume requires node affinity");
    }
  }
  if (count == 0) AddRequired(errors, spec_path, "must specify a volume type");
}

}  // namespace berth::api::rules
