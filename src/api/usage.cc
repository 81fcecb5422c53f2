#include "api/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "api/defaults.h"
#include "api/object.h"

namespace berth::api {
namespace {

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kLimits = "limits.";
constexpr std::string_view kHugePages = "hugepages-";
constexpr std::string_view kCount = "count/";
constexpr std::string_view kOfClass = ".storageclass.storage.k8s.io/";
constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kStorage = "requests.storage";
constexpr std::array<std::string_view, 3> kComputed = {"cpu", "memory", "ephemeral-storage"};
constexpr std::array<std::string_view, 10> kOfPods = {"pods",
                                                      "cpu",
                                                      "memory",
                                                      "ephemeral-storage",
                                                      "requests.cpu",
                                                      "requests.memory",
                                                      "requests.ephemeral-storage",
                                                      "limits.cpu",
                                                      "limits.memory",
                                                      "limits.ephemeral-storage"};
constexpr std::array<std::string_view, 3> kOfServices = {"services", "services.nodeports",
                                                         "services.loadbalancers"};
// Those that a pod's containers must name.
constexpr std::array<std::string_view, 6> kNamed = {"cpu",    "limits.cpu",   "limits.memory",
                                                    "memory", "requests.cpu", "requests.memory"};

bool Contains(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// Of vendors: not Kubernetes' own.
bool IsExtended(std::string_view resource) {
  return resource.contains('/') && !resource.contains("kubernetes.io/");
}

// The older names of some counts.
std::string_view AliasOf(KindId kind) {
  switch (kind) {
    case KindId::kConfigMap:
    case KindId::kResourceQuota:
    case KindId::kReplicationController:
    case KindId::kSecret:
      return KindOf(kind).plural;
    default:
      return "";
  }
}

void Most(Amounts& most, const Amounts& other) {
  for (const auto& [name, amount] : other) {
    const auto [at, added] = most.emplace(name, amount);
    if (!added && Compare(amount, at->second) > 0) at->second = amount;
  }
}

Amounts ListOf(const Json& holder, std::string_view list) {
  return AmountsOf(ObjectAt(OrEmptyObject(FindPath(holder, "resources")), list));
}

bool IsPodLevel(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.starts_with(kHugePages);
}

// What requests and limits take, under the names that quotas have for it.
Amounts ComputeUsage(const Amounts& requests, const Amounts& limits) {
  Amounts usage = {{"pods", QuantityOf(1)}};
  for (const auto& [name, amount] : requests) {
    if (Contains(kComputed, name) || name.starts_with(kHugePages)) usage[name] = amount;
    if (Contains(kComputed, name) || name.starts_with(kHugePages) || IsExtended(name))
      usage[fmt::format("{}{}", kRequests, name)] = amount;
  }
  for (const auto& [name, amount] : limits) {
    if (Contains(kComputed, name)) usage[fmt::format("{}{}", kLimits, name)] = amount;
  }
  return usage;
}

void AddPod(const Json& pod, Amounts& usage) {
  // A pod that is over takes nothing but its place in the store.
  const std::string_view phase = TextAt(pod, "status.phase");
  if (phase == "Succeeded" || phase == "Failed") return;
  const Amounts overhead = AmountsOf(ObjectAt(pod, "spec.overhead"));
  Amounts requests = ContainerAmounts(pod, "requests");
  AddAmounts(requests, overhead);
  Amounts limits = ContainerAmounts(pod, "limits");
  for (const auto& [name, amount] : overhead) {
    const auto limit = limits.find(name);
    if (limit != limits.end() && limit->second.sign() != 0) AddAmounts(limits, {{name, amount}});
  }
  AddAmounts(usage, ComputeUsage(requests, limits));
}

void AddService(const Json& service, Amounts& usage) {
  const JsonArray& ports = ArrayAt(service, "spec.ports");
  auto node_ports = static_cast<int64_t>(ports.size());
  const std::string_view type = TextAt(service, "spec.type");
  const bool balanced = type == "LoadBalancer";
  const Json* allocate = FindPath(service, "spec.allocateLoadBalancerNodePorts");
  if (balanced && allocate != nullptr && *allocate == false) {
    node_ports = std::ranges::count_if(
        ports, [](const Json& port) { return IntegerAt(port, "nodePort") != 0; });
  } else if (!balanced && type != "NodePort") {
    node_ports = 0;
  }
  usage["services"] = QuantityOf(1);
  usage["services.nodeports"] = QuantityOf(node_ports);
  usage["services.loadbalancers"] = QuantityOf(balanced ? 1 : 0);
}

// The larger of what is asked and what a resize has allocated, in whole bytes.
std::optional<Quantity> StorageOf(const Json& claim) {
  const Amounts asked = AmountsOf(ObjectAt(claim, "spec.resources.requests"));
  const auto found = asked.find("storage");
  if (found == asked.end()) return std::nullopt;
  Quantity storage = found->second;
  const Amounts allocated = AmountsOf(ObjectAt(claim, "status.allocatedResources"));
  const auto larger = allocated.find("storage");
  if (larger != allocated.end() && Compare(larger->second, storage) > 0) storage = larger->second;
  if (storage.is_whole()) return storage;
  Quantity rounded = QuantityOf(storage.whole());
  rounded.format = storage.format;
  return rounded;
}

void AddClaim(const Json& claim, Amounts& usage) {
  const Json* annotated = FindMember(ObjectAt(claim, "metadata.annotations"),
                                     "volume.beta.kubernetes.io/storage-class");
  const std::string_view storage_class = annotated != nullptr && annotated->is_string()
                                             ? std::string_view(annotated->get_string())
                                             : TextAt(claim, "spec.storageClassName");
  const auto add = [&](std::string_view name, const Quantity& amount) {
    usage.insert_or_assign(std::string(name), amount);
    if (!storage_class.empty())
      usage.insert_or_assign(fmt::format("{}{}{}", storage_class, kOfClass, name), amount);
  };
  add(kClaims, QuantityOf(1));
  if (const std::optional<Quantity> storage = StorageOf(claim)) add(kStorage, *storage);
}

bool Reaches(const Json& term) {
  return !ArrayAt(term, "namespaces").empty() || FindMember(term, "namespaceSelector") != nullptr;
}

bool ReachesOtherNamespaces(const Json& pod) {
  for (const std::string_view side : {"podAffinity", "podAntiAffinity"}) {
    const Json* affinity = FindMember(ObjectAt(pod, "spec.affinity"), side);
    if (affinity == nullptr) continue;
    for (const Json& term : ArrayAt(*affinity, "requiredDuringSchedulingIgnoredDuringExecution")) {
      if (Reaches(term)) return true;
    }
    for (const Json& item : ArrayAt(*affinity, "preferredDuringSchedulingIgnoredDuringExecution")) {
      if (Reaches(OrEmptyObject(FindMember(item, "podAffinityTerm")))) return true;
    }
  }
  return false;
}

// A selector's expression against the names that the object has: one that it takes is enough.
bool Selects(const Json& requirement, const std::vector<std::string_view>& names) {
  const std::string_view op = TextAt(requirement, "operator");
  if (op == "Exists") return !names.empty();
  if (op == "DoesNotExist") return names.empty();
  const JsonArray& values = ArrayAt(requirement, "values");
  const auto listed = [&](std::string_view name) {
    return std::ranges::any_of(values, [&](const Json& value) {
      return value.is_string() && std::string_view(value.get_string()) == name;
    });
  };
  if (op == "In") return std::ranges::any_of(names, listed);
  return names.empty() || !std::ranges::all_of(names, listed);
}

bool PodInScope(const Json& requirement, const Json& pod) {
  const std::string_view scope = TextAt(requirement, "scopeName");
  if (scope == "Terminating") return HasDeadline(pod);
  if (scope == "NotTerminating") return !HasDeadline(pod);
  if (scope == "BestEffort") return QosClassOf(pod) == "BestEffort";
  if (scope == "NotBestEffort") return QosClassOf(pod) != "BestEffort";
  if (scope == "CrossNamespacePodAffinity") return ReachesOtherNamespaces(pod);
  if (scope != "PriorityClass") return false;
  const std::string_view name = TextAt(pod, "spec.priorityClassName");
  return Selects(requirement, name.empty() ? std::vector<std::string_view>() : std::vector{name});
}

bool ClaimInScope(const Json& requirement, const Json& claim) {
  if (TextAt(requirement, "scopeName") != "VolumeAttributesClass") return false;
  std::vector<std::string_view> names;
  for (const std::string_view name :
       {TextAt(claim, "spec.volumeAttributesClassName"),
        TextAt(claim, "status.currentVolumeAttributesClassName"),
        TextAt(claim, "status.modifyVolumeStatus.targetVolumeAttributesClassName")}) {
    if (!name.empty()) names.push_back(name);
  }
  return Selects(requirement, names);
}

}  // namespace

Amounts AmountsOf(const JsonObject& list) {
  Amounts amounts;
  for (const auto& [name, value] : list) {
    if (!value.is_string()) continue;
    if (Result<Quantity> amount = ParseQuantity(value.get_string()))
      amounts.emplace(std::string(name), *amount);
  }
  return amounts;
}

JsonObject PrintAmounts(const Amounts& amounts) {
  JsonObject list;
  for (const auto& [name, amount] : amounts) list[name] = ToString(amount);
  return list;
}

void AddAmounts(Amounts& sum, const Amounts& added) {
  for (const auto& [name, amount] : added) {
    const auto [at, is_new] = sum.emplace(name, amount);
    if (!is_new) at->second = Add(at->second, amount).value_or(at->second);
  }
}

void SubtractAmounts(Amounts& sum, const Amounts& taken) {
  Amounts negative = taken;
  for (auto& [name, amount] : negative) amount.mantissa = -amount.mantissa;
  AddAmounts(sum, negative);
}

void DropZeros(Amounts& amounts) {
  std::erase_if(amounts, [](const auto& item) { return item.second.sign() == 0; });
}

bool SameAmounts(const Amounts& a, const Amounts& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && Compare(one.second, other.second) == 0;
  });
}

std::string JoinAmounts(const Amounts& amounts) {
  std::vector<std::string> parts;
  parts.reserve(amounts.size());
  for (const auto& [name, amount] : amounts)
    parts.push_back(fmt::format("{}={}", name, ToString(amount)));
  return fmt::format("{}", fmt::join(parts, ","));
}

Amounts ContainerAmounts(const Json& pod, std::string_view list) {
  Amounts sum;
  for (const Json& container : ArrayAt(pod, "spec.containers"))
    AddAmounts(sum, ListOf(container, list));
  Amounts sidecars;
  Amounts most;
  for (const Json& container : ArrayAt(pod, "spec.initContainers")) {
    Amounts own = ListOf(container, list);
    if (TextAt(container, "restartPolicy") == "Always") {
      AddAmounts(sum, own);
      AddAmounts(sidecars, own);
      Most(most, sidecars);
    } else {
      AddAmounts(own, sidecars);
      Most(most, own);
    }
  }
  Most(sum, most);
  for (auto& [name, amount] : ListOf(OrEmptyObject(FindMember(pod, "spec")), list)) {
    if (IsPodLevel(name)) sum.insert_or_assign(name, amount);
  }
  return sum;
}

std::string CountName(std::string_view group_resource) {
  return fmt::format("{}{}", kCount, group_resource);
}

Amounts UsageOf(const Kind& kind, const Json& object) {
  Amounts usage = {{CountName(kind.group_resource()), QuantityOf(1)}};
  if (kind.id == KindId::kPod) AddPod(object, usage);
  if (kind.id == KindId::kService) AddService(object, usage);
  if (kind.id == KindId::kPersistentVolumeClaim) AddClaim(object, usage);
  if (const std::string_view alias = AliasOf(kind.id); !alias.empty())
    usage.emplace(alias, QuantityOf(1));
  return usage;
}

bool TakesOf(const Kind& kind, std::string_view resource) {
  if (resource.starts_with(kCount)) return resource.substr(kCount.size()) == kind.group_resource();
  switch (kind.id) {
    case KindId::kPod: {
      const bool requested = resource.starts_with(kRequests);
      const std::string_view name = requested ? resource.substr(kRequests.size()) : resource;
      return Contains(kOfPods, resource) || name.starts_with(kHugePages) ||
             (requested && IsExtended(name));
    }
    case KindId::kService:
      return Contains(kOfServices, resource);
    case KindId::kPersistentVolumeClaim: {
      const size_t at = resource.find(kOfClass);
      if (at != std::string_view::npos) resource.remove_prefix(at + kOfClass.size());
      return resource == kClaims || resource == kStorage;
    }
    default:
      return !resource.empty() && resource == AliasOf(kind.id);
  }
}

bool HasUsageOfItsOwn(KindId kind) {
  return kind == KindId::kPod || kind == KindId::kService || kind == KindId::kPersistentVolumeClaim;
}

bool InScope(const Json& quota, KindId kind, const Json& object) {
  const auto takes_in = [&](const Json& requirement) {
    if (kind == KindId::kPod) return PodInScope(requirement, object);
    return kind == KindId::kPersistentVolumeClaim && ClaimInScope(requirement, object);
  };
  for (const Json& scope : ArrayAt(quota, "spec.scopes")) {
    if (!takes_in(JsonObject{{"scopeName", scope}, {"operator", "Exists"}})) return false;
  }
  return std::ranges::all_of(ArrayAt(quota, "spec.scopeSelector.matchExpressions"), takes_in);
}

bool HasDeadline(const Json& pod) {
  const Json* deadline = FindPath(pod, "spec.activeDeadlineSeconds");
  return deadline != nullptr && deadline->is_int64() && deadline->get_int64() >= 0;
}

std::string WhyUncounted(const Json& pod, const JsonObject& hard) {
  // Who names resources of the whole pod needn't name those of its containers.
  for (const std::string_view list : {"requests", "limits"}) {
    for (const auto& [name, amount] : ListOf(OrEmptyObject(FindMember(pod, "spec")), list)) {
      if (IsPodLevel(name)) return "";
    }
  }
  std::map<std::string_view, std::set<std::string_view>> missing;
  for (const std::string_view list : {"spec.containers", "spec.initContainers"}) {
    for (const Json& container : ArrayAt(pod, list)) {
      const Amounts named =
          ComputeUsage(ListOf(container, "requests"), ListOf(container, "limits"));
      for (const std::string_view resource : kNamed) {
        if (hard.contains(resource) && !named.contains(resource))
          missing[resource].insert(TextAt(container, "name"));
      }
    }
  }
  if (missing.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [resource, containers] : missing)
    parts.push_back(fmt::format("{} for: {}", resource, fmt::join(containers, ",")));
  return fmt::format("must specify {}", fmt::join(parts, "; "));
}

}  // namespace berth::api
