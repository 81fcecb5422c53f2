#include "api/validate_quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>

#include "api/object.h"
#include "api/quantity.h"
#include "api/usage.h"

namespace berth::api::rules {
namespace {

// Resources that a quota may name without a domain.
constexpr std::array<std::string_view, 19> kOfQuotas = {"cpu",
                                                        "memory",
                                                        "ephemeral-storage",
                                                        "requests.cpu",
                                                        "requests.memory",
                                                        "requests.storage",
                                                        "requests.ephemeral-storage",
                                                        "limits.cpu",
                                                        "limits.memory",
                                                        "limits.ephemeral-storage",
                                                        "pods",
                                                        "resourcequotas",
                                                        "services",
                                                        "replicationcontrollers",
                                                        "secrets",
                                                        "persistentvolumeclaims",
                                                        "configmaps",
                                                        "services.nodeports",
                                                        "services.loadbalancers"};
constexpr std::array<std::string_view, 7> kScopes = {
    "Terminating",          "NotTerminating", "BestEffort",
    "NotBestEffort",        "PriorityClass",  "CrossNamespacePodAffinity",
    "VolumeAttributesClass"};

bool Contains(const auto& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool IsOfQuotas(std::string_view name) {
  return Contains(kOfQuotas, name) || IsHugePages(name) || name.starts_with("requests.hugepages-");
}

// False when the name is no name at all.
bool CheckResourceName(FieldErrors& errors, const Path& path, std::string_view name) {
  const Messages messages = CheckQualifiedName(name);
  AddInvalid(errors, path, name, messages);
  if (!messages.empty()) return false;
  if (!name.contains('/') && !IsOfQuotas(name) && name != "storage") {
    AddInvalid(errors, path, name, {"must be a standard resource type or fully qualified"});
  }
  return true;
}

void CheckQuotaAmounts(FieldErrors& errors, const Path& path, const JsonObject& amounts) {
  for (const auto& [key, amount] : amounts) {
    const std::string_view name = key;
    const Path at = path.Key(name);
    CheckResourceName(errors, at, name);
    if (!name.contains('/') && !IsOfQuotas(name))
      AddInvalid(errors, at, name, {"must be a standard resource for quota"});
    CheckAmount(errors, at, name, amount);
  }
}

// Whether a scope can be of a quota on a resource that is Kubernetes' own.
bool ScopeFits(std::string_view scope, std::string_view resource) {
  constexpr std::array<std::string_view, 7> kOfPods = {
      "pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"};
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass")
    return resource == "persistentvolumeclaims" || resource == "requests.storage";
  return !Contains(kScopes, scope) || Contains(kOfPods, resource);
}

// Says it once per resource that no quota of the scope can count, as upstream does.
void CheckScopeFits(FieldErrors& errors, const Path& path, std::string_view scope,
                    const JsonObject& hard, const Json& value) {
  for (const auto& [name, amount] : hard) {
    if (IsOfQuotas(name) && !ScopeFits(scope, name))
      AddInvalid(errors, path, value, "unsupported scope applied to resource");
  }
}

void CheckConflicts(FieldErrors& errors, const Path& path, const std::set<std::string_view>& scopes,
                    const Json& value) {
  const bool effort = scopes.contains("BestEffort") && scopes.contains("NotBestEffort");
  const bool ending = scopes.contains("Terminating") && scopes.contains("NotTerminating");
  if (effort) AddInvalid(errors, path, value, "conflicting scopes");
  if (ending) AddInvalid(errors, path, value, "conflicting scopes");
}

void CheckScopes(FieldErrors& errors, const Path& spec, const Json& quota) {
  const JsonArray& scopes = ArrayAt(quota, "spec.scopes");
  const Path path = spec.At("scopes");
  std::set<std::string_view> met;
  const Json value(scopes);
  for (const Json& item : scopes) {
    const std::string_view scope = TextOf(item);
    if (!Contains(kScopes, scope)) AddInvalid(errors, path, value, "unsupported scope");
    CheckScopeFits(errors, path, scope, ObjectAt(quota, "spec.hard"), value);
    met.insert(scope);
  }
  CheckConflicts(errors, path, met, value);
}

void CheckOperator(FieldErrors& errors, const Path& path, const Json& requirement) {
  const std::string_view scope = TextAt(requirement, "scopeName");
  const std::string_view op = TextAt(requirement, "operator");
  const JsonArray& values = ArrayAt(requirement, "values");
  const bool plain =
      Contains(kScopes, scope) && scope != "PriorityClass" && scope != "VolumeAttributesClass";
  if (plain && op != "Exists") {
    AddInvalid(errors, path.At("operator"), op,
               {"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"});
  }
  if (op == "In" || op == "NotIn") {
    if (values.empty())
      AddRequired(errors, path.At("values"),
                  "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                  "selector");
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty())
      AddInvalid(errors, path.At("values"), Json(values),
                 "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                 "selector");
  } else {
    AddInvalid(errors, path.At("operator"), op, {"not a valid selector operator"});
  }
}

void CheckScopeSelector(FieldErrors& errors, const Path& spec, const Json& quota) {
  const Json* selector = FindPath(quota, "spec.scopeSelector");
  if (selector == nullptr) return;
  const Path at = spec.At("scopeSelector");
  const Path path = at.At("matchExpressions");
  std::set<std::string_view> met;
  for (const Json& requirement : ArrayAt(*selector, "matchExpressions")) {
    const std::string_view scope = TextAt(requirement, "scopeName");
    if (!Contains(kScopes, scope))
      AddInvalid(errors, path.At("scopeName"), scope, {"unsupported scope"});
    CheckScopeFits(errors, path, scope, ObjectAt(quota, "spec.hard"), *selector);
    CheckOperator(errors, path, requirement);
    met.insert(scope);
  }
  const Json* scopes = FindPath(quota, "spec.scopes");
  CheckConflicts(errors, path, met, scopes == nullptr ? Json() : *scopes);
}

void CheckSpec(FieldErrors& errors, const Json& quota) {
  const Path spec("spec");
  CheckQuotaAmounts(errors, spec.At("hard"), ObjectAt(quota, "spec.hard"));
  CheckScopes(errors, spec, quota);
  CheckScopeSelector(errors, spec, quota);
}

void CheckStatus(FieldErrors& errors, const Json& quota) {
  const Path status("status");
  CheckQuotaAmounts(errors, status.At("hard"), ObjectAt(quota, "status.hard"));
  CheckQuotaAmounts(errors, status.At("used"), ObjectAt(quota, "status.used"));
}

std::set<std::string_view> ScopesOf(const Json& quota) {
  std::set<std::string_view> scopes;
  for (const Json& item : ArrayAt(quota, "spec.scopes")) {
    if (item.is_string()) scopes.insert(std::string_view(item.get_string()));
  }
  return scopes;
}

// ---- LimitRanges -------------------------------------------------------------------------------

// The lists of one item of a LimitRange.
struct Limits {
  Amounts min;
  Amounts max;
  Amounts defaults;
  Amounts requests;
  Amounts ratios;
};

const Quantity* Find(const Amounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? nullptr : &found->second;
}

void CheckLimitName(FieldErrors& errors, const Path& path, std::string_view type,
                    std::string_view name) {
  if (!CheckResourceName(errors, path, name) || (type != "Pod" && type != "Container")) return;
  const bool own = name == "cpu" || name == "memory" || name == "ephemeral-storage";
  if (!name.contains('/')) {
    if (!own && !IsHugePages(name))
      AddInvalid(errors, path, name, {"must be a standard resource for containers"});
  } else if (!IsNativeResource(name) && !IsExtendedResource(name)) {
    AddInvalid(errors, path, name, {"doesn't follow extended resource name standard"});
  }
}

Amounts ReadList(FieldErrors& errors, const Path& item, std::string_view list, const Json& limit) {
  const JsonObject& amounts = ObjectAt(limit, list);
  const Path path = item.At(list);
  for (const auto& [name, amount] : amounts)
    CheckLimitName(errors, path.Key(name), TextAt(limit, "type"), name);
  return AmountsOf(amounts);
}

// Says of `blamed` that `low` is greater than `high`, where it is.
struct Order {
  std::string_view blamed;  // Its list.
  const Quantity* value;    // What is shown of it.
  const Quantity* low;
  std::string_view low_name;
  const Quantity* high;
  std::string_view high_name;
};
void CheckOrder(FieldErrors& errors, const Path& item, std::string_view name, const Order& order) {
  if (order.low == nullptr || order.high == nullptr || Compare(*order.low, *order.high) <= 0)
    return;
  const Path list = item.At(order.blamed);
  AddInvalid(errors, list.Key(name), Json(ToString(*order.value)),
             fmt::format("{} value {} is greater than {} value {}", order.low_name,
                         ToString(*order.low), order.high_name, ToString(*order.high)));
}

void CheckRatio(FieldErrors& errors, const Path& item, std::string_view name,
                const Limits& limits) {
  const Quantity* ratio = Find(limits.ratios, name);
  if (ratio == nullptr) return;
  const Path list = item.At("maxLimitRequestRatio");
  const Json shown(ToString(*ratio));
  if (Compare(*ratio, QuantityOf(1)) < 0) {
    AddInvalid(errors, list.Key(name), shown,
               fmt::format("ratio {} is less than 1", ToString(*ratio)));
  }
  const Quantity* min = Find(limits.min, name);
  const Quantity* max = Find(limits.max, name);
  if (min == nullptr || max == nullptr) return;
  constexpr int64_t kMilliMax = std::numeric_limits<int64_t>::max() / 1000;
  const bool small =
      ratio->whole() < kMilliMax && min->whole() < kMilliMax && max->whole() < kMilliMax;
  const int32_t scale = small ? -3 : 0;
  const double value =
      small ? static_cast<double>(ratio->milli()) / 1000 : static_cast<double>(ratio->whole());
  const double most =
      static_cast<double>(max->scaled(scale)) / static_cast<double>(min->scaled(scale));
  if (value > most) {
    AddInvalid(errors, list.Key(name), shown,
               fmt::format("ratio {} is greater than max/min = {:f}", ToString(*ratio), most));
  }
}

void CheckResource(FieldErrors& errors, const Path& item, std::string_view name,
                   const Limits& limits) {
  const Quantity* min = Find(limits.min, name);
  const Quantity* max = Find(limits.max, name);
  const Quantity* limit = Find(limits.defaults, name);
  const Quantity* request = Find(limits.requests, name);
  const std::array<Order, 6> orders = {
      {{"min", min, min, "min", max, "max"},
       {"defaultRequest", request, min, "min", request, "default request"},
       {"defaultRequest", request, request, "default request", max, "max"},
       {"defaultRequest", request, request, "default request", limit, "default limit"},
       {"default", min, min, "min", limit, "default"},
       {"default", max, limit, "default", max, "max"}}};
  for (const Order& order : orders) CheckOrder(errors, item, name, order);
  CheckRatio(errors, item, name, limits);
  // What can't be overcommitted is requested as it is limited.
  const bool overcommits = IsNativeResource(name) && !IsHugePages(name);
  if (overcommits || limit == nullptr || request == nullptr || Compare(*limit, *request) == 0)
    return;
  const Path list = item.At("defaultRequest");
  AddInvalid(errors, list.Key(name), Json(ToString(*request)),
             fmt::format("default value {} must equal to defaultRequest value {} in {}",
                         ToString(*limit), ToString(*request), name));
}

void CheckLimitType(FieldErrors& errors, const Path& path, std::string_view type) {
  const Messages messages = CheckQualifiedName(type);
  AddInvalid(errors, path, type, messages);
  const bool standard = type == "Pod" || type == "Container" || type == "PersistentVolumeClaim";
  if (messages.empty() && !type.contains('/') && !standard)
    AddInvalid(errors, path, type, {"must be a standard limit type or fully qualified"});
}

void CheckItem(FieldErrors& errors, const Path& item, const Json& limit) {
  const std::string_view type = TextAt(limit, "type");
  Limits limits;
  limits.max = ReadList(errors, item, "max", limit);
  limits.min = ReadList(errors, item, "min", limit);
  if (type == "Pod") {
    for (const std::string_view list : {"default", "defaultRequest"}) {
      if (!ObjectAt(limit, list).empty())
        AddForbidden(errors, item.At(list), "may not be specified when `type` is 'Pod'");
    }
  } else {
    limits.defaults = ReadList(errors, item, "default", limit);
    limits.requests = ReadList(errors, item, "defaultRequest", limit);
  }
  if (type == "PersistentVolumeClaim" && !limits.min.contains("storage") &&
      !limits.max.contains("storage")) {
    AddRequired(errors, item.At("limits"),
                "either minimum or maximum storage value is required, but neither was provided");
  }
  limits.ratios = ReadList(errors, item, "maxLimitRequestRatio", limit);
  std::set<std::string, std::less<>> names;
  for (const Amounts* list :
       {&limits.min, &limits.max, &limits.defaults, &limits.requests, &limits.ratios}) {
    for (const auto& [name, amount] : *list) names.insert(name);
  }
  for (const std::string& name : names) CheckResource(errors, item, name, limits);
}

}  // namespace

void CheckResourceQuota(FieldErrors& errors, const Json* old, const Json& quota) {
  if (old == nullptr) {
    CheckMeta(errors, quota, true, CheckDns1123Subdomain);
    CheckSpec(errors, quota);
    CheckStatus(errors, quota);
    return;
  }
  CheckMetaUpdate(errors, *old, quota);
  CheckSpec(errors, quota);
  if (ScopesOf(*old) == ScopesOf(quota)) return;
  const Path spec("spec");
  const Json* scopes = FindPath(quota, "spec.scopes");
  AddInvalid(errors, spec.At("scopes"), scopes == nullptr ? Json() : *scopes,
             std::string(kImmutable));
}

void CheckResourceQuotaStatus(FieldErrors& errors, const Json& old, const Json& quota) {
  CheckMetaUpdate(errors, old, quota);
  CheckStatus(errors, quota);
}

// A change is looked at as if it were new, as upstream does.
void CheckLimitRange(FieldErrors& errors, const Json* old, const Json& range) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, range);
  if (old == nullptr) CheckMeta(errors, range, true, CheckDns1123Subdomain);
  const JsonArray& limits = ArrayAt(range, "spec.limits");
  const Path spec("spec");
  std::set<std::string_view> types;
  for (size_t i = 0; i < limits.size(); ++i) {
    const Path item = spec.At("limits", i);
    const std::string_view type = TextAt(limits[i], "type");
    CheckLimitType(errors, item.At("type"), type);
    if (!types.insert(type).second) errors.push_back(DuplicateField(item.At("type").text(), type));
    CheckItem(errors, item, limits[i]);
  }
}

}  // namespace berth::api::rules
