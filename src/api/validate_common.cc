#include "api/validate_common.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "api/object.h"
#include "api/quantity.h"
#include "api/selector.h"
#include "api/text.h"

namespace berth::api::rules {
bool IsStandardFinalizer(std::string_view name) {
  return name == "kubernetes" || name == "orphan" || name == "foregroundDeletion";
}

namespace {

constexpr int64_t kAnnotationsBytesMax = 256 * 1024;

std::string JoinText(const Messages& messages, std::string_view separator) {
  return fmt::format("{}", fmt::join(messages, separator));
}

void CheckOwner(FieldErrors& errors, const Path& path, const Json& owner) {
  const auto must_stand = [&](std::string_view member, std::string_view message) {
    const std::string_view value = TextAt(owner, member);
    if (value.empty()) AddInvalid(errors, path.At(member), value, {std::string(message)});
  };
  must_stand("apiVersion", "version must not be empty");
  must_stand("kind", "must not be empty");
  must_stand("name", "must not be empty");
  must_stand("uid", "must not be empty");
  if (TextAt(owner, "apiVersion") == "v1" && TextAt(owner, "kind") == "Event") {
    AddInvalid(errors, path, owner, "/v1, Kind=Event is disallowed from being an owner");
  }
}

void CheckOwners(FieldErrors& errors, const Path& meta, const Json& object) {
  const Path path = meta.At("ownerReferences");
  // Each tells all owners: of many a few say as much.
  constexpr int kToldMax = 8;
  int told = 0;
  std::string controller;
  const JsonArray& owners = ArrayAt(object, "metadata.ownerReferences");
  for (const Json& owner : owners) {
    CheckOwner(errors, path, owner);
    if (!FlagAt(owner, "controller") || told == kToldMax) continue;
    std::string name = fmt::format("{}/{}", TextAt(owner, "kind"), TextAt(owner, "name"));
    if (controller.empty()) {
      controller = std::move(name);
      continue;
    }
    ++told;
    AddInvalid(errors, path, Json(owners),
               fmt::format("Only one reference can have Controller set to true. Found \"true\" in "
                           "references for {} and {}",
                           controller, name));
  }
}

void CheckNewFinalizers(FieldErrors& errors, const Path& meta, const Json& object) {
  const Path path = meta.At("finalizers");
  const JsonArray& finalizers = ArrayAt(object, "metadata.finalizers");
  std::set<std::string_view> seen;
  for (const Json& item : finalizers) {
    const std::string_view name = TextOf(item);
    AddInvalid(errors, path, name, CheckQualifiedName(name));
    seen.insert(name);
  }
  if (seen.contains("orphan") && seen.contains("foregroundDeletion")) {
    AddInvalid(errors, path, Json(finalizers),
               "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

void CheckFinalizerWords(FieldErrors& errors, const Json& object) {
  const Path meta("metadata");
  const JsonArray& finalizers = ArrayAt(object, "metadata.finalizers");
  for (size_t i = 0; i < finalizers.size(); ++i) {
    const std::string_view name = TextOf(finalizers[i]);
    if (name.find('/') != std::string_view::npos || IsStandardFinalizer(name)) continue;
    AddInvalid(errors, meta.At("finalizers", i), name,
               {"name is neither a standard finalizer name nor is it fully qualified"});
  }
}

void CheckNoNewFinalizers(FieldErrors& errors, const Path& meta, const Json& old,
                          const Json& object) {
  if (FindPath(old, "metadata.deletionTimestamp") == nullptr) return;
  std::vector<std::string> added;
  const JsonArray& before = ArrayAt(old, "metadata.finalizers");
  for (const Json& item : ArrayAt(object, "metadata.finalizers")) {
    if (!item.is_string() || std::ranges::find(before, item) != before.end()) continue;
    added.push_back(QuoteGo(item.get_string()));
  }
  if (added.empty()) return;
  std::ranges::sort(added);
  AddForbidden(errors, meta.At("finalizers"),
               fmt::format("no new finalizers can be added if the object is being deleted, found "
                           "new finalizers []string{{{}}}",
                           fmt::join(added, ", ")));
}

bool Same(const Json* a, const Json* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return SameJson(*a, *b);
}

}  // namespace

std::string Path::text() const {
  std::string text = parent_ == nullptr ? "" : parent_->text();
  if (is_key_) return fmt::format("{}[{}]", text, name_);
  if (!name_.empty()) {
    if (!text.empty()) text += '.';
    text += name_;
  }
  if (index_ >= 0) text += fmt::format("[{}]", index_);
  return text;
}

void AddInvalid(FieldErrors& errors, const Path& path, std::string_view value,
                const Messages& messages) {
  for (const std::string& message : messages) {
    errors.push_back(InvalidField(path.text(), value, message));
  }
}
void CheckRequired(FieldErrors& errors, const Path& path, std::string_view value,
                   const Messages& messages) {
  if (value.empty()) return AddRequired(errors, path);
  AddInvalid(errors, path, value, messages);
}
void AddInvalid(FieldErrors& errors, const Path& path, const Json& value, std::string detail) {
  errors.push_back(InvalidJsonField(path.text(), value, std::move(detail)));
}
void AddRequired(FieldErrors& errors, const Path& path, std::string detail) {
  errors.push_back(RequiredField(path.text(), std::move(detail)));
}
void AddForbidden(FieldErrors& errors, const Path& path, std::string detail) {
  errors.push_back(ForbiddenField(path.text(), std::move(detail)));
}

void CheckEnum(FieldErrors& errors, const Path& path, std::string_view value,
               std::span<const std::string_view> supported) {
  if (std::ranges::find(supported, value) != supported.end()) return;
  errors.push_back(NotSupportedField(path.text(), value, supported));
}

void CheckRequiredEnum(FieldErrors& errors, const Path& path, std::string_view value,
                       std::span<const std::string_view> supported) {
  if (value.empty()) {
    AddRequired(errors, path);
  } else {
    CheckEnum(errors, path, value, supported);
  }
}

void CheckNonnegative(FieldErrors& errors, const Path& path, const Json& object,
                      std::span<const std::string_view> members) {
  for (const std::string_view member : members) {
    const int64_t value = IntegerAt(object, member);
    if (value >= 0) continue;
    const Path at = path.At(member);
    errors.push_back(InvalidField(at.text(), value, "must be greater than or equal to 0"));
  }
}

void CheckImmutable(FieldErrors& errors, const Path& path, const Json& old, const Json& object,
                    std::string_view member) {
  const Json* value = FindMember(object, member);
  if (Same(FindMember(old, member), value)) return;
  AddInvalid(errors, path.At(member), value == nullptr ? Json() : *value, std::string(kImmutable));
}

void CheckLabelName(FieldErrors& errors, const Path& path, std::string_view name) {
  if (!IsQualifiedName(name)) AddInvalid(errors, path, name, CheckQualifiedName(name));
}

void CheckLabels(FieldErrors& errors, const Path& path, const JsonObject& labels) {
  for (const auto& [key, value] : labels) {
    CheckLabelName(errors, path, key);
    const std::string_view text = TextOf(value);
    if (!IsLabelValue(text)) AddInvalid(errors, path, text, CheckLabelValue(text));
  }
}

void CheckAnnotations(FieldErrors& errors, const Path& path, const JsonObject& annotations) {
  int64_t bytes = 0;
  for (const auto& [key, value] : annotations) {
    const std::string_view name = key;
    const std::string lower = Lower(name);
    if (!IsQualifiedName(lower)) AddInvalid(errors, path, name, CheckQualifiedName(lower));
    bytes += static_cast<int64_t>(name.size());
    if (value.is_string()) bytes += static_cast<int64_t>(value.get_string().size());
  }
  if (bytes > kAnnotationsBytesMax) {
    errors.push_back(TooLongField(path.text(), kAnnotationsBytesMax));
  }
}

void CheckLabelExpression(FieldErrors& errors, const Path& path, const Json& expression) {
  const std::string_view op = TextAt(expression, "operator");
  const JsonArray& values = ArrayAt(expression, "values");
  const Path values_path = path.At("values");
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      AddRequired(errors, values_path, "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      AddForbidden(errors, values_path,
                   "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else {
    AddInvalid(errors, path.At("operator"), op, {"not a valid selector operator"});
  }
  CheckLabelName(errors, path.At("key"), TextAt(expression, "key"));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string_view text = TextOf(values[i]);
    AddInvalid(errors, path.At("values", i), text, CheckLabelValue(text));
  }
}

void CheckLabelSelector(FieldErrors& errors, const Path& path, const Json& selector) {
  CheckLabels(errors, path.At("matchLabels"), ObjectAt(selector, "matchLabels"));
  const JsonArray& expressions = ArrayAt(selector, "matchExpressions");
  for (size_t i = 0; i < expressions.size(); ++i) {
    CheckLabelExpression(errors, path.At("matchExpressions", i), expressions[i]);
  }
}

bool Selects(const Json* selector, const JsonObject& labels) {
  if (selector == nullptr) return false;
  StringMap map;
  for (const auto& [key, value] : labels) {
    if (value.is_string()) map.emplace_back(key, std::string(value.get_string()));
  }
  std::ranges::sort(map);
  const Result<LabelQuery> query = QueryOf(LabelSelectorOf(*selector));
  return query && query->Matches(map);
}

void CheckMeta(FieldErrors& errors, const Json& object, bool namespaced, NameCheck check) {
  CheckCustomMeta(errors, object, namespaced, check);
  CheckFinalizerWords(errors, object);
}

void CheckCustomMeta(FieldErrors& errors, const Json& object, bool namespaced, NameCheck check) {
  const Path meta("metadata");
  const std::string_view generate = TextAt(object, "metadata.generateName");
  if (!generate.empty()) {
    // A trailing hyphen is what the generated part will follow.
    std::string base(generate);
    if (base.ends_with('-')) base.back() = 'a';
    AddInvalid(errors, meta.At("generateName"), generate, check(base));
  }
  const std::string_view name = TextAt(object, "metadata.name");
  if (name.empty()) {
    AddRequired(errors, meta.At("name"), "name or generateName is required");
  } else {
    AddInvalid(errors, meta.At("name"), name, check(name));
  }
  const std::string_view space = TextAt(object, "metadata.namespace");
  if (namespaced && space.empty()) {
    AddRequired(errors, meta.At("namespace"));
  } else if (namespaced) {
    AddInvalid(errors, meta.At("namespace"), space, CheckDns1123Label(space));
  } else if (!space.empty()) {
    AddForbidden(errors, meta.At("namespace"), "not allowed on this type");
  }
  constexpr std::array<std::string_view, 1> kGeneration = {"generation"};
  CheckNonnegative(errors, meta, OrEmptyObject(FindMember(object, "metadata")), kGeneration);
  CheckLabels(errors, meta.At("labels"), ObjectAt(object, "metadata.labels"));
  CheckAnnotations(errors, meta.At("annotations"), ObjectAt(object, "metadata.annotations"));
  CheckOwners(errors, meta, object);
  CheckNewFinalizers(errors, meta, object);
}

void CheckMetaUpdate(FieldErrors& errors, const Json& old, const Json& object) {
  CheckCustomMetaUpdate(errors, old, object);
  CheckFinalizerWords(errors, object);
}

void CheckCustomMetaUpdate(FieldErrors& errors, const Json& old, const Json& object) {
  const Path meta("metadata");
  CheckNoNewFinalizers(errors, meta, old, object);
  if (TextAt(object, "metadata.resourceVersion").empty()) {
    AddInvalid(errors, meta.At("resourceVersion"), Json(""), "must be specified for an update");
  }
  const Json* before = FindMember(old, "metadata");
  const Json* after = FindMember(object, "metadata");
  for (const std::string_view member : {"name", "namespace", "uid", "creationTimestamp",
                                        "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    CheckImmutable(errors, meta, OrEmptyObject(before), OrEmptyObject(after), member);
  }
  CheckLabels(errors, meta.At("labels"), ObjectAt(object, "metadata.labels"));
  CheckAnnotations(errors, meta.At("annotations"), ObjectAt(object, "metadata.annotations"));
  CheckOwners(errors, meta, object);
}

void CheckPort(FieldErrors& errors, const Path& path, int64_t port) {
  if (port < 1 || port > 65535)
    errors.push_back(InvalidField(path.text(), port, RangeMessage(1, 65535)));
}

void CheckPortOrName(FieldErrors& errors, const Path& path, const Json* port) {
  if (port != nullptr && port->is_string()) {
    AddInvalid(errors, path, port->get_string(), CheckPortName(port->get_string()));
    return;
  }
  CheckPort(errors, path, port != nullptr && port->is_int64() ? port->get_int64() : 0);
}

IpFamily FamilyOf(std::string_view ip) {
  const std::string text(ip);
  in6_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) == 1) return IpFamily::kV4;
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return IpFamily::kNone;
  return IN6_IS_ADDR_V4MAPPED(&address) ? IpFamily::kMapped : IpFamily::kV6;
}

namespace {

// Octets without leading zeros, which Go once read as well.
std::string WithoutZeros(std::string_view ip) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string text;
  for (size_t i = 0; i < ip.size(); ++i) {
    const bool begins = text.empty() || !is_digit(text.back());
    if (begins && ip[i] == '0' && i + 1 < ip.size() && is_digit(ip[i + 1])) continue;
    text += ip[i];
  }
  return text;
}

}  // namespace

std::optional<CidrRange> ParseCidr(std::string_view range) {
  const size_t slash = range.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view ip = range.substr(0, slash);
  if (FamilyOf(ip) == IpFamily::kNone) return std::nullopt;
  int bits = -1;
  const char* const end = range.data() + range.size();
  const auto [rest, error] = std::from_chars(range.data() + slash + 1, end, bits);
  const int most = ip.contains(':') ? 128 : 32;
  if (error != std::errc() || rest != end || bits < 0 || bits > most) return std::nullopt;
  CidrRange parsed{.six = most == 128, .bits = bits};
  inet_pton(parsed.six ? AF_INET6 : AF_INET, std::string(ip).c_str(), parsed.bytes.data());
  return parsed;
}

bool CidrRange::HasBitsBehind() const {
  for (int i = bits; i < 8 * static_cast<int>(bytes.size()); ++i) {
    if ((bytes.at(static_cast<size_t>(i / 8)) >> (7 - i % 8) & 1) != 0) return true;
  }
  return false;
}

bool CidrRange::ContainsStrictly(const CidrRange& other) const {
  if (six != other.six || bits >= other.bits) return false;
  for (int i = 0; i < bits; ++i) {
    const auto at = static_cast<size_t>(i / 8);
    if (((bytes.at(at) ^ other.bytes.at(at)) >> (7 - i % 8) & 1) != 0) return false;
  }
  return true;
}

void CheckIp(FieldErrors& errors, const Path& path, std::string_view ip) {
  const IpFamily family = FamilyOf(ip);
  if (family == IpFamily::kMapped) {
    AddInvalid(errors, path, ip, Messages{"must not be an IPv4-mapped IPv6 address"});
  } else if (family == IpFamily::kNone) {
    AddInvalid(errors, path, ip,
               Messages{FamilyOf(WithoutZeros(ip)) == IpFamily::kV4
                            ? "must not have leading 0s"
                            : "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"});
  }
}

void CheckCidr(FieldErrors& errors, const Path& path, std::string_view range) {
  const std::optional<CidrRange> parsed = ParseCidr(range);
  if (!parsed) {
    AddInvalid(errors, path, range,
               Messages{ParseCidr(WithoutZeros(range))
                            ? "must not have leading 0s in IP or prefix length"
                            : "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"});
    return;
  }
  if (FamilyOf(range.substr(0, range.find('/'))) == IpFamily::kMapped) {
    AddInvalid(errors, path, range, Messages{"must not have an IPv4-mapped IPv6 address"});
  } else if (parsed->HasBitsBehind()) {
    AddInvalid(errors, path, range, Messages{"must not have bits set beyond the prefix length"});
  }
}

void CheckTaints(FieldErrors& errors, const Path& path, const JsonArray& taints) {
  constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule",
                                                        "NoExecute"};
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (size_t i = 0; i < taints.size(); ++i) {
    const Path at = path.Item(i);
    const std::string_view key = TextAt(taints[i], "key");
    const std::string_view value = TextAt(taints[i], "value");
    const std::string_view effect = TextAt(taints[i], "effect");
    CheckLabelName(errors, at.At("key"), key);
    if (!IsLabelValue(value)) {
      AddInvalid(errors, at.At("value"), value, {JoinText(CheckLabelValue(value), ";")});
    }
    CheckRequiredEnum(errors, at.At("effect"), effect, kEffects);
    if (!seen.emplace(key, effect).second) {
      // As upstream's internal type is shown.
      const Json* added = FindMember(taints[i], "timeAdded");
      const Json shown = JsonObject{{"Key", key},
                                    {"Value", value},
                                    {"Effect", effect},
                                    {"TimeAdded", added == nullptr ? Json() : *added}};
      FieldError error = DuplicateJsonField(at.text(), shown);
      error.detail = "taints must be unique by key and effect pair";
      errors.push_back(std::move(error));
    }
  }
}

bool IsHugePages(std::string_view resource) { return resource.starts_with("hugepages-"); }

bool IsNativeResource(std::string_view resource) {
  return resource.find('/') == std::string_view::npos ||
         resource.find("kubernetes.io/") != std::string_view::npos;
}

bool IsExtendedResource(std::string_view resource) {
  if (IsNativeResource(resource) || resource.starts_with("requests.")) return false;
  return IsQualifiedName("requests." + std::string(resource));
}

void CheckAmount(FieldErrors& errors, const Path& path, std::string_view resource,
                 const Json& amount) {
  if (!amount.is_string()) return;
  const Result<Quantity> quantity = ParseQuantity(amount.get_string());
  if (!quantity) {
    AddInvalid(errors, path, amount, quantity.error().message);
    return;
  }
  if (quantity->sign() < 0) AddInvalid(errors, path, amount, "must be greater than or equal to 0");
  constexpr std::array<std::string_view, 9> kCounted = {"pods",
                                                        "resourcequotas",
                                                        "services",
                                                        "secrets",
                                                        "configmaps",
                                                        "persistentvolumeclaims",
                                                        "replicationcontrollers",
                                                        "services.nodeports",
                                                        "services.loadbalancers"};
  const bool counted =
      std::ranges::find(kCounted, resource) != kCounted.end() || IsExtendedResource(resource);
  if (counted && !quantity->is_whole()) AddInvalid(errors, path, amount, "must be an integer");
}

}  // namespace berth::api::rules
