#include "api/spec_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "api/base64.h"
#include "api/object.h"
#include "api/quantity.h"
#include "api/run_plan.h"
#include "api/well_known.h"

namespace berth::api {
namespace {

// What it is about, and what is said.
struct Note {
  std::string_view key;
  std::string_view text;
};

constexpr std::array<Note, 5> kOldLabels = {{
    {"beta.kubernetes.io/arch", R"(deprecated since v1.14; use "kubernetes.io/arch" instead)"},
    {"beta.kubernetes.io/os", R"(deprecated since v1.14; use "kubernetes.io/os" instead)"},
    {"failure-domain.beta.kubernetes.io/region",
     R"(deprecated since v1.17; use "topology.kubernetes.io/region" instead)"},
    {"failure-domain.beta.kubernetes.io/zone",
     R"(deprecated since v1.17; use "topology.kubernetes.io/zone" instead)"},
    {"beta.kubernetes.io/instance-type",
     R"(deprecated since v1.17; use "node.kubernetes.io/instance-type" instead)"},
}};

constexpr std::array<Note, 9> kOldVolumes = {{
    {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
    {"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
    {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
    {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
    {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
    {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
    {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
    {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
    {"rbd", "deprecated in v1.28, non-functional in v1.31+"},
}};

// More than upstream's bound of all texts together lets through.
constexpr size_t kWarningsMax = 256;
// With so many of one number and protocol each further one is compared.
constexpr size_t kPortsComparedMax = 64;
constexpr size_t kFilesComparedMax = 256;  // Likewise, of one volume.
constexpr std::string_view kOldSeccomp =
    R"(non-functional in v1.27+; use the "seccompProfile" field instead)";
constexpr std::string_view kOldAppArmor =
    R"(deprecated since v1.30; use the "appArmorProfile" field instead)";
constexpr std::string_view kMatchesNothing = "a null labelSelector results in matching no pod";

template <size_t kCount>
std::string_view TextOfNote(const std::array<Note, kCount>& notes, std::string_view key) {
  const auto found = std::ranges::find(notes, key, &Note::key);
  return found == notes.end() ? std::string_view() : found->text;
}

std::string_view ShownVolume(std::string_view source) {
  return source == "storageos" ? "storageOS" : source;
}

class Warner {
 public:
  [[nodiscard]] std::vector<std::string> Take() { return std::move(warnings_); }

  // Of pods that `where` holds: "" for a pod itself, else the path of their template and a dot.
  void OfPods(const std::string& where, const Json& pods);
  // Of a claim whose spec is at `path`.
  void OfClaim(const std::string& path, const Json& spec);
  void OfClassAnnotation(const Json& object);
  void OfStoredClaim(const Json& claim);
  void OfVolume(const Json& volume);
  void OfSecret(const Json& secret);
  void OfService(const Json& service);
  void OfIngress(const Json& ingress);
  void OfStorageClass(const Json& storage_class);
  void OfDriver(const Json* old, const Json& driver);
  void OfJob(const Json& job);
  void OfNode(const Json& node);

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    if (warnings_.size() < kWarningsMax)
      warnings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  void Fraction(const std::string& path, const Json& amounts, std::string_view resource);
  void OfTerm(const std::string& path, const Json& term);
  void OfAffinity(const std::string& spec, const Json& pods);
  void OfPodAffinity(const std::string& path, const Json& affinity);
  void OfSpread(const std::string& spec, const Json& pods);
  void OfVolumes(const std::string& spec, const Json& pods);
  void OfFiles(const Json& volume);
  void OfNames(const std::string& spec, const Json& pods);
  void OfContainers(const std::string& where, const Json& pods);
  void OfContainer(const std::string& path, const Json& container);
  void OfPorts(const std::string& spec, const Json& pods);
  void OfPortNames(const std::string& spec, const Json& pods);

  std::vector<std::string> warnings_;
};

constexpr std::array<std::string_view, 3> kContainerLists = {"initContainers", "containers",
                                                             "ephemeralContainers"};

void Warner::Fraction(const std::string& path, const Json& amounts, std::string_view resource) {
  const Json* amount = FindMember(amounts, resource);
  if (amount == nullptr) return;
  const Result<Quantity> read = ParseQuantity(TextOf(*amount));
  if (!read || read->is_whole()) return;
  Add("{}[{}]: fractional byte value \"{}\" is invalid, must be an integer", path, resource,
      ToString(*read));
}

void Warner::OfTerm(const std::string& path, const Json& term) {
  const JsonArray& expressions = ArrayAt(term, "matchExpressions");
  for (size_t i = 0; i < expressions.size(); ++i) {
    const std::string_view key = TextAt(expressions[i], "key");
    const std::string_view text = TextOfNote(kOldLabels, key);
    if (!text.empty()) Add("{}.matchExpressions[{}].key: {} is {}", path, i, key, text);
  }
}

void Warner::OfAffinity(const std::string& spec, const Json& pods) {
  const std::string path = spec + ".affinity.nodeAffinity.";
  const JsonArray& terms =
      ArrayAt(pods,
              "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
              "nodeSelectorTerms");
  for (size_t i = 0; i < terms.size(); ++i) {
    OfTerm(fmt::format("{}requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{}]",
                       path, i),
           terms[i]);
  }
  const JsonArray& preferred =
      ArrayAt(pods, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < preferred.size(); ++i) {
    OfTerm(fmt::format("{}preferredDuringSchedulingIgnoredDuringExecution[{}].preference", path, i),
           OrEmptyObject(FindMember(preferred[i], "preference")));
  }
}

void Warner::OfPodAffinity(const std::string& path, const Json& affinity) {
  const JsonArray& required = ArrayAt(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < required.size(); ++i) {
    if (FindMember(required[i], "labelSelector") != nullptr) continue;
    Add("{}.requiredDuringSchedulingIgnoredDuringExecution[{}].labelSelector: {}", path, i,
        kMatchesNothing);
  }
  const JsonArray& preferred = ArrayAt(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < preferred.size(); ++i) {
    if (FindPath(preferred[i], "podAffinityTerm.labelSelector") != nullptr) continue;
    Add("{}.preferredDuringSchedulingIgnoredDuringExecution[{}].podAffinityTerm.labelSelector: {}",
        path, i, kMatchesNothing);
  }
}

void Warner::OfSpread(const std::string& spec, const Json& pods) {
  const JsonArray& constraints = ArrayAt(pods, "spec.topologySpreadConstraints");
  for (size_t i = 0; i < constraints.size(); ++i) {
    const std::string path = fmt::format("{}.topologySpreadConstraints[{}]", spec, i);
    const std::string_view key = TextAt(constraints[i], "topologyKey");
    const std::string_view text = TextOfNote(kOldLabels, key);
    if (!text.empty()) Add("{}.topologyKey: {} is {}", path, key, text);
    if (FindMember(constraints[i], "labelSelector") == nullptr)
      Add("{}.labelSelector: {}", path, kMatchesNothing);
  }
}

void Warner::OfClaim(const std::string& path, const Json& spec) {
  const Json& resources = OrEmptyObject(FindMember(spec, "resources"));
  for (const std::string_view list : {"requests", "limits"}) {
    Fraction(fmt::format("{}.resources.{}", path, list), OrEmptyObject(FindMember(resources, list)),
             "storage");
  }
}

void Warner::OfVolumes(const std::string& spec, const Json& pods) {
  const JsonArray& volumes = ArrayAt(pods, "spec.volumes");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const std::string path = fmt::format("{}.volumes[{}]", spec, i);
    for (const Note& old : kOldVolumes) {
      if (FindMember(volumes[i], old.key) == nullptr) continue;
      Add("{}.{}: {}", path, ShownVolume(old.key), old.text);
    }
    if (const Json* claim = FindPath(volumes[i], "ephemeral.volumeClaimTemplate.spec"))
      OfClaim(path + ".ephemeral.volumeClaimTemplate.spec", *claim);
  }
}

// Files of a volume, of which one would take the place of another.
class Files {
 public:
  struct File {
    std::string path;
    std::string source;  // Of a projected volume.

    [[nodiscard]] std::string Text() const {
      return source.empty() ? fmt::format("\"{}\"", path)
                            : fmt::format("\"{}\" ({})", path, source);
    }
    bool operator==(const File&) const = default;
  };

  // Those of the volume already that are in the way.
  std::vector<std::string> Add(std::string_view path, std::string_view source) {
    while (path.ends_with('/')) path.remove_suffix(1);
    File file{.path = std::string(path), .source = std::string(source)};
    std::vector<std::string> overlaps;
    const std::string below = file.path + "/";
    for (const File& other : files_) {
      if (path.empty() || other.path.empty()) continue;
      const std::string other_below = other.path + "/";
      if (!other_below.starts_with(below) && !below.starts_with(other_below)) continue;
      overlaps.push_back(fmt::format("{} with {}", file.Text(), other.Text()));
    }
    if (files_.size() < kFilesComparedMax) files_.push_back(std::move(file));
    return overlaps;
  }

 private:
  std::vector<File> files_;
};

void Warner::OfFiles(const Json& volume) {
  const std::string_view name = TextAt(volume, "name");
  Files files;
  const auto add = [&](std::string_view path, std::string_view source, std::string_view what) {
    for (const std::string& overlap : files.Add(path, source))
      Add("volume \"{}\" ({}): overlapping paths: {}", name, what, overlap);
  };
  const auto add_items = [&](const Json& owner, std::string_view source, std::string_view what) {
    for (const Json& item : ArrayAt(owner, "items")) add(TextAt(item, "path"), source, what);
  };
  if (const Json* map = FindMember(volume, "configMap"))
    add_items(*map, "", fmt::format("ConfigMap \"{}\"", TextAt(*map, "name")));
  if (const Json* secret = FindMember(volume, "secret"))
    add_items(*secret, "", fmt::format("Secret \"{}\"", TextAt(*secret, "secretName")));
  if (const Json* downward = FindMember(volume, "downwardAPI"))
    add_items(*downward, "", "DownwardAPI");
  for (const Json& source : ArrayAt(volume, "projected.sources")) {
    if (source.is_object() && source.get_object().empty()) {
      Add("volume \"{}\" (Projected) has no sources provided", name);
    } else if (const Json* map = FindMember(source, "configMap")) {
      add_items(*map, fmt::format("ConfigMap \"{}\"", TextAt(*map, "name")), "Projected");
    } else if (const Json* secret = FindMember(source, "secret")) {
      add_items(*secret, fmt::format("Secret \"{}\"", TextAt(*secret, "name")), "Projected");
    } else if (const Json* downward = FindMember(source, "downwardAPI")) {
      add_items(*downward, "DownwardAPI", "Projected");
    } else if (const Json* token = FindMember(source, "serviceAccountToken")) {
      add(TextAt(*token, "path"), "ServiceAccountToken", "Projected");
    }
  }
}

void Warner::OfNames(const std::string& spec, const Json& pods) {
  const JsonArray& aliases = ArrayAt(pods, "spec.hostAliases");
  std::set<std::string_view> addresses;
  for (size_t i = 0; i < aliases.size(); ++i) {
    const std::string_view address = TextAt(aliases[i], "ip");
    if (!addresses.insert(address).second)
      Add("{}.hostAliases[{}].ip: duplicate ip \"{}\"", spec, i, address);
  }
  const JsonArray& secrets = ArrayAt(pods, "spec.imagePullSecrets");
  std::set<std::string_view> names;
  for (size_t i = 0; i < secrets.size(); ++i) {
    const std::string_view name = TextAt(secrets[i], "name");
    if (!names.insert(name).second)
      Add("{}.imagePullSecrets[{}].name: duplicate name \"{}\"", spec, i, name);
  }
  for (size_t i = 0; i < secrets.size(); ++i) {
    if (TextAt(secrets[i], "name").empty())
      Add("{}.imagePullSecrets[{}].name: invalid empty name \"\"", spec, i);
  }
}

void Warner::OfContainer(const std::string& path, const Json& container) {
  for (const std::string_view resource : {"memory", "ephemeral-storage"}) {
    for (const std::string_view list : {"limits", "requests"}) {
      const Json& resources = OrEmptyObject(FindMember(container, "resources"));
      Fraction(fmt::format("{}.resources.{}", path, list),
               OrEmptyObject(FindMember(resources, list)), resource);
    }
  }
  const JsonArray& variables = ArrayAt(container, "env");
  std::set<std::string_view> names;
  for (size_t i = 0; i < variables.size(); ++i) {
    const std::string_view name = TextAt(variables[i], "name");
    if (names.insert(name).second) continue;
    // One that is made of the one before is meant so.
    const std::string before = fmt::format("$({})", name);
    const std::string_view value = TextAt(variables[i], "value");
    const bool made_of = value != before && value.contains(before);
    if (made_of && FindMember(variables[i], "valueFrom") == nullptr) continue;
    Add("{}.env[{}]: hides previous definition of \"{}\", which may be dropped when using apply",
        path, i, name);
  }
}

void Warner::OfContainers(const std::string& where, const Json& pods) {
  const JsonObject& annotations = ObjectAt(pods, "metadata.annotations");
  for (const std::string_view list : kContainerLists) {
    const JsonArray& containers = ArrayAt(OrEmptyObject(FindMember(pods, "spec")), list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::string seccomp = fmt::format("container.seccomp.security.alpha.kubernetes.io/{}",
                                              TextAt(containers[i], "name"));
      if (FindMember(annotations, seccomp) != nullptr)
        Add("{}metadata.annotations[{}]: {}", where, seccomp, kOldSeccomp);
      OfContainer(fmt::format("{}spec.{}[{}]", where, list, i), containers[i]);
    }
  }
}

// Ports of all containers stand for the pod's address: two may be one.
void Warner::OfPorts(const std::string& spec, const Json& pods) {
  struct Port {
    std::string path;
    const Json* port;
  };
  const auto number = [](const Port& of) { return IntegerAt(*of.port, "hostPort"); };
  const auto address = [](const Port& of) { return TextAt(*of.port, "hostIP"); };
  // By port and protocol: no others are compared.
  std::map<std::pair<int64_t, std::string_view>, std::vector<Port>> ports_before;
  for (const std::string_view list : kContainerLists) {
    const JsonArray& containers = ArrayAt(OrEmptyObject(FindMember(pods, "spec")), list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const JsonArray& ports = ArrayAt(containers[i], "ports");
      for (size_t k = 0; k < ports.size(); ++k) {
        Port one{.path = fmt::format("{}.{}[{}].ports[{}]", spec, list, i, k), .port = &ports[k]};
        if (!address(one).empty() && number(one) == 0) {
          Add("{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} "
              "HostIP:{}}}",
              one.path, TextAt(ports[k], "name"), IntegerAt(ports[k], "containerPort"),
              TextAt(ports[k], "protocol"), address(one));
        }
        std::vector<Port>& before =
            ports_before[{IntegerAt(ports[k], "containerPort"), TextAt(ports[k], "protocol")}];
        for (const Port& other : before) {
          if (warnings_.size() >= kWarningsMax) return;
          std::string_view how;
          if (number(one) == number(other) && address(one) == address(other)) {
            how = "duplicate";
          } else if (number(one) == 0 || number(other) == 0) {
            how = "overlapping";
          } else if (number(one) == number(other) &&
                     address(one).empty() != address(other).empty()) {
            how = "dangerously ambiguous";
          }
          if (!how.empty()) Add("{}: {} port definition with {}", one.path, how, other.path);
        }
        if (before.size() < kPortsComparedMax) before.push_back(std::move(one));
      }
    }
  }
}

// Services and probes that name a port get the first one.
void Warner::OfPortNames(const std::string& spec, const Json& pods) {
  std::map<std::string_view, std::string> named;
  for (const std::string_view list : kContainerLists) {
    const JsonArray& containers = ArrayAt(OrEmptyObject(FindMember(pods, "spec")), list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const JsonArray& ports = ArrayAt(containers[i], "ports");
      for (size_t k = 0; k < ports.size(); ++k) {
        const std::string_view name = TextAt(ports[k], "name");
        if (name.empty()) continue;
        std::string path = fmt::format("{}.{}[{}].ports[{}]", spec, list, i, k);
        const auto [first, is_new] = named.try_emplace(name, path);
        if (is_new) continue;
        Add("{}: duplicate port name \"{}\" with {}, services and probes that select ports by name "
            "will use {}",
            path, name, first->second, first->second);
      }
    }
  }
}

void Warner::OfPods(const std::string& where, const Json& pods) {
  const std::string spec = where + "spec";
  const JsonObject& annotations = ObjectAt(pods, "metadata.annotations");
  for (const auto& annotation : annotations) {
    if (annotation.key().starts_with("container.apparmor.security.beta.kubernetes.io/"))
      Add("{}metadata.annotations[{}]: {}", where, std::string_view(annotation.key()),
          kOldAppArmor);
  }
  for (const std::string& warning : AnnotationWarnings(StringMapAt(pods, "metadata.annotations")))
    Add("{}{}", where, warning);
  for (const auto& label : ObjectAt(pods, "spec.nodeSelector")) {
    const std::string_view text = TextOfNote(kOldLabels, label.key());
    if (!text.empty()) Add("{}.nodeSelector[{}]: {}", spec, std::string_view(label.key()), text);
  }
  OfAffinity(spec, pods);
  OfSpread(spec, pods);
  if (FindMember(annotations, "scheduler.alpha.kubernetes.io/critical-pod") != nullptr)
    Add("{}metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in "
        "v1.16+; use the \"priorityClassName\" field instead",
        where);
  OfVolumes(spec, pods);
  for (const Json& volume : ArrayAt(pods, "spec.volumes")) OfFiles(volume);
  OfNames(spec, pods);
  for (const std::string_view resource : {"memory", "ephemeral-storage"})
    Fraction(spec + ".overhead", OrEmptyObject(FindPath(pods, "spec.overhead")), resource);
  if (FindMember(annotations, "seccomp.security.alpha.kubernetes.io/pod") != nullptr)
    Add("{}metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: {}", where, kOldSeccomp);
  OfContainers(where, pods);
  OfPorts(spec, pods);
  OfPortNames(spec, pods);
  if (IntegerAt(pods, "spec.terminationGracePeriodSeconds") < 0)
    Add("{}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be "
        "treated as 1",
        spec);
  OfPodAffinity(spec + ".affinity.podAffinity",
                OrEmptyObject(FindPath(pods, "spec.affinity.podAffinity")));
  OfPodAffinity(spec + ".affinity.podAntiAffinity",
                OrEmptyObject(FindPath(pods, "spec.affinity.podAntiAffinity")));
}

void Warner::OfClassAnnotation(const Json& object) {
  const JsonObject& annotations = ObjectAt(object, "metadata.annotations");
  if (FindMember(annotations, kStorageClassAnnotation) == nullptr) return;
  Add("metadata.annotations[{}]: deprecated since v1.8; use \"storageClassName\" attribute instead",
      kStorageClassAnnotation);
}

void Warner::OfStoredClaim(const Json& claim) {
  OfClassAnnotation(claim);
  OfClaim("spec", OrEmptyObject(FindMember(claim, "spec")));
}

void Warner::OfVolume(const Json& volume) {
  OfClassAnnotation(volume);
  if (TextAt(volume, "spec.persistentVolumeReclaimPolicy") == "Recycle") {
    Add("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, "
        "the recommended approach is to use dynamic provisioning.");
  }
  const JsonArray& terms = ArrayAt(volume, "spec.nodeAffinity.required.nodeSelectorTerms");
  for (size_t i = 0; i < terms.size(); ++i)
    OfTerm(fmt::format("spec.nodeAffinity.required.nodeSelectorTerms[{}]", i), terms[i]);
  const Json& spec = OrEmptyObject(FindMember(volume, "spec"));
  for (const std::string_view source :
       {"cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"}) {
    if (FindMember(spec, source) == nullptr) continue;
    Add("spec.{}: {}", ShownVolume(source), TextOfNote(kOldVolumes, source));
  }
}

// A certificate that can't be used. What is in it is not looked at.
void Warner::OfSecret(const Json& secret) {
  if (TextAt(secret, "type") != "kubernetes.io/tls") return;
  const Json* certificate = FindMember(ObjectAt(secret, "data"), "tls.crt");
  const std::string text =
      certificate == nullptr ? "" : DecodeBase64(TextOf(*certificate)).value_or("");
  if (!text.contains("-----BEGIN ")) Add("tls: failed to find any PEM data in certificate input");
}

void Warner::OfService(const Json& service) {
  if (FindMember(ObjectAt(service, "metadata.annotations"),
                 "service.kubernetes.io/topology-aware-hints") != nullptr) {
    Add("annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
        "service.kubernetes.io/topology-mode instead");
  }
  const bool addresses = !ArrayAt(service, "spec.externalIPs").empty();
  if (TextAt(service, "spec.clusterIP") == "None") {
    if (!TextAt(service, "spec.loadBalancerIP").empty())
      Add("spec.loadBalancerIP is ignored for headless services");
    if (addresses) Add("spec.externalIPs is ignored for headless services");
    if (TextAt(service, "spec.sessionAffinity") == "ClientIP")
      Add("spec.SessionAffinity is ignored for headless services");
  }
  const bool named = TextAt(service, "spec.type") == "ExternalName";
  if (addresses && !named && TextAt(service, "spec.clusterIP") != "None")
    Add("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  if (named && addresses) Add("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  if (!named && !TextAt(service, "spec.externalName").empty())
    Add("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  if (TextAt(service, "spec.trafficDistribution") == "PreferClose")
    Add("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
}

void Warner::OfIngress(const Json& ingress) {
  if (FindMember(ObjectAt(ingress, "metadata.annotations"), "kubernetes.io/ingress.class") ==
      nullptr) {
    return;
  }
  Add("annotation \"kubernetes.io/ingress.class\" is deprecated, please use "
      "'spec.ingressClassName' instead");
}

void Warner::OfDriver(const Json* old, const Json& driver) {
  const JsonArray& requests = ArrayAt(driver, "spec.tokenRequests");
  if (requests.empty() || FindPath(driver, "spec.serviceAccountTokenInSecrets") != nullptr) return;
  if (old != nullptr && SameJson(Json(requests), Json(ArrayAt(*old, "spec.tokenRequests")))) return;
  Add("spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
      "prevent possible logging of tokens in volume attributes");
}

void Warner::OfStorageClass(const Json& storage_class) {
  const JsonArray& topologies = ArrayAt(storage_class, "allowedTopologies");
  for (size_t i = 0; i < topologies.size(); ++i) {
    const JsonArray& expressions = ArrayAt(topologies[i], "matchLabelExpressions");
    for (size_t k = 0; k < expressions.size(); ++k) {
      const std::string_view text = TextOfNote(kOldLabels, TextAt(expressions[k], "key"));
      if (!text.empty()) Add("allowedTopologies[{}].matchLabelExpressions[{}].key: {}", i, k, text);
    }
  }
}

void Warner::OfJob(const Json& job) {
  constexpr int64_t kCompletionsMany = 100'000;
  constexpr int64_t kParallelismHigh = 10'000;
  if (TextAt(job, "spec.completionMode") != "Indexed" ||
      IntegerAt(job, "spec.completions") <= kCompletionsMany ||
      IntegerAt(job, "spec.parallelism") <= kParallelismHigh) {
    return;
  }
  Add("spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism "
      "higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number "
      "of indexes fail");
}

void Warner::OfNode(const Json& node) {
  if (!TextAt(node, "spec.externalID").empty())
    Add("spec.externalID: this field is deprecated, and is unused by Kubernetes");
}

// Whether a change is one that is looked at.
bool Counts(const Json* old, const Json& object) {
  return old == nullptr ||
         IntegerAt(*old, "metadata.generation") != IntegerAt(object, "metadata.generation");
}

void WarnOfTemplate(Warner& warner, const std::string& path, const Json* pods) {
  if (pods != nullptr) warner.OfPods(path + ".", *pods);
}

// Upstream names the field so where a set changes.
void WarnOfSet(Warner& warner, const Json& set, bool is_new) {
  WarnOfTemplate(warner, "spec.template", FindPath(set, "spec.template"));
  const JsonArray& claims = ArrayAt(set, "spec.volumeClaimTemplates");
  for (size_t i = 0; i < claims.size(); ++i) {
    warner.OfClaim(fmt::format("spec.volumeClaimTemplates[{}]{}", i, is_new ? "" : ".Spec"),
                   OrEmptyObject(FindMember(claims[i], "spec")));
  }
}

void WarnOfWorkload(Warner& warner, KindId kind, const Json* old, const Json& object) {
  switch (kind) {
    case KindId::kPod:
      if (old == nullptr) warner.OfPods("", object);
      return;
    case KindId::kDeployment:
    case KindId::kReplicaSet:
    case KindId::kDaemonSet:
      if (Counts(old, object))
        WarnOfTemplate(warner, "spec.template", FindPath(object, "spec.template"));
      return;
    case KindId::kReplicationController:
      // Upstream looks at the template that it had, by mistake.
      if (Counts(old, object))
        WarnOfTemplate(warner, "spec.template",
                       FindPath(old == nullptr ? object : *old, "spec.template"));
      return;
    case KindId::kStatefulSet:
      if (Counts(old, object)) WarnOfSet(warner, object, old == nullptr);
      return;
    case KindId::kJob:
      if (!Counts(old, object)) return;
      warner.OfJob(object);
      return WarnOfTemplate(warner, "spec.template", FindPath(object, "spec.template"));
    case KindId::kCronJob:
      if (Counts(old, object))
        WarnOfTemplate(warner, "spec.jobTemplate.spec.template",
                       FindPath(object, "spec.jobTemplate.spec.template"));
      return;
    case KindId::kPodTemplate:
      return WarnOfTemplate(warner, "template", FindPath(object, "template"));
    default:
      return;
  }
}

}  // namespace

std::vector<std::string> SpecWarnings(const Kind& kind, const Json* old, const Json& object) {
  Warner warner;
  switch (kind.storage) {
    case KindId::kPersistentVolumeClaim:
      warner.OfStoredClaim(object);
      break;
    case KindId::kPersistentVolume:
      warner.OfVolume(object);
      break;
    case KindId::kSecret:
      warner.OfSecret(object);
      break;
    case KindId::kService:
      warner.OfService(object);
      break;
    case KindId::kIngress:
      if (old == nullptr) warner.OfIngress(object);
      break;
    case KindId::kStorageClass:
      warner.OfStorageClass(object);
      break;
    case KindId::kCsiDriver:
      warner.OfDriver(old, object);
      break;
    case KindId::kNode:
      warner.OfNode(object);
      break;
    default:
      WarnOfWorkload(warner, kind.storage, old, object);
      break;
  }
  return warner.Take();
}

}  // namespace berth::api
