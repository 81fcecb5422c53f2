#include "api/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/stream_parser.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "api/base64.h"
#include "api/custom_definition.h"
#include "api/custom_scale.h"
#include "api/embedded.h"
#include "api/object.h"
#include "api/pod_parts.h"
#include "api/validate_access.h"
#include "api/validate_budget.h"
#include "api/validate_common.h"
#include "api/validate_custom.h"
#include "api/validate_definition.h"
#include "api/validate_network.h"
#include "api/validate_pod.h"
#include "api/validate_quota.h"
#include "api/validate_services.h"
#include "api/validate_sets.h"
#include "api/validate_storage.h"
#include "api/validate_webhooks.h"
#include "api/validate_workloads.h"
#include "base/check.h"

namespace berth::api {
namespace {

using rules::AddForbidden;
using rules::AddInvalid;
using rules::AddRequired;
using rules::CheckMeta;
using rules::CheckMetaUpdate;
using rules::Path;

constexpr int64_t kDataBytesMax = 1024 * 1024;
constexpr std::string_view kImmutableWhenSet = "field is immutable when `immutable` is set";

int64_t SizeOf(const Json& value, bool is_base64) {
  if (!value.is_string()) return 0;
  const std::string_view text = value.get_string();
  return is_base64 ? Base64Size(text).value_or(0) : static_cast<int64_t>(text.size());
}

void CheckConfigMap(FieldErrors& errors, const Json& object) {
  const JsonObject& data = ObjectAt(object, "data");
  const JsonObject& binary = ObjectAt(object, "binaryData");
  const Path data_path("data");
  const Path binary_path("binaryData");
  int64_t bytes = 0;
  for (const auto& [key, value] : data) {
    AddInvalid(errors, data_path.Key(key), std::string_view(key), CheckConfigMapKey(key));
    if (binary.contains(key)) {
      AddInvalid(errors, data_path.Key(key), std::string_view(key),
                 {"duplicate of key present in binaryData"});
    }
    bytes += SizeOf(value, false);
  }
  for (const auto& [key, value] : binary) {
    AddInvalid(errors, binary_path.Key(key), std::string_view(key), CheckConfigMapKey(key));
    bytes += SizeOf(value, true);
  }
  // Upstream names no field here, which it prints as "[]".
  if (bytes > kDataBytesMax) errors.push_back(TooLongField("[]", kDataBytesMax));
}

struct SecretRule {
  std::string_view type;
  std::string_view key;
};
constexpr std::array<SecretRule, 5> kSecretKeys = {{
    {"kubernetes.io/dockercfg", ".dockercfg"},
    {"kubernetes.io/dockerconfigjson", ".dockerconfigjson"},
    {"kubernetes.io/ssh-auth", "ssh-privatekey"},
    {"kubernetes.io/tls", "tls.crt"},
    {"kubernetes.io/tls", "tls.key"},
}};

// What Go's decoder has against a text that is to be a JSON object, or "". Of an unexpected
// character it is told what Go says most often.
std::string WhyNoObject(std::string_view text) {
  boost::json::stream_parser parser;
  boost::system::error_code error;
  const size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error && read == text.size()) parser.finish(error);
  if (error && read == text.size()) return "unexpected end of JSON input";
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t next = text.find_first_not_of(kBlanks, read);
  if (error || next != std::string_view::npos) {
    const char odd = error ? text[read] : text[next];
    return fmt::format("invalid character '{}' {}", odd,
                       error ? "looking for beginning of value" : "after top-level value");
  }
  const Json value = parser.release();
  if (value.is_object() || value.is_null()) return "";
  std::string_view kind = "number";
  if (value.is_array()) kind = "array";
  if (value.is_string()) kind = "string";
  if (value.is_bool()) kind = "bool";
  return fmt::format("json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                     kind);
}

void CheckDockerConfig(FieldErrors& errors, const Path& data, const JsonObject& given,
                       std::string_view key) {
  const Json* value = FindMember(given, key);
  if (value == nullptr) return;
  std::string why = WhyNoObject(DecodeBase64(TextOf(*value)).value_or(""));
  if (why.empty()) return;
  AddInvalid(errors, data.Key(key), Json("<secret contents redacted>"), std::move(why));
}

void CheckSecret(FieldErrors& errors, const Json& object) {
  const JsonObject& data = ObjectAt(object, "data");
  const Path path("data");
  int64_t bytes = 0;
  for (const auto& [key, value] : data) {
    AddInvalid(errors, path.Key(key), std::string_view(key), CheckConfigMapKey(key));
    bytes += SizeOf(value, true);
  }
  if (bytes > kDataBytesMax) errors.push_back(TooLongField(path.text(), kDataBytesMax));
  const std::string_view type = TextAt(object, "type");
  for (const SecretRule& rule : kSecretKeys) {
    if (rule.type == type && !data.contains(rule.key)) AddRequired(errors, path.Key(rule.key));
  }
  if (type == "kubernetes.io/dockercfg") CheckDockerConfig(errors, path, data, ".dockercfg");
  if (type == "kubernetes.io/dockerconfigjson")
    CheckDockerConfig(errors, path, data, ".dockerconfigjson");
  if (const Json* key = FindMember(data, "ssh-privatekey");
      type == "kubernetes.io/ssh-auth" && key != nullptr && TextOf(*key).empty()) {
    AddRequired(errors, path.Key("ssh-privatekey"));
  }
  if (type == "kubernetes.io/basic-auth" && !data.contains("username") &&
      !data.contains("password")) {
    AddRequired(errors, path.Key("username"));
    AddRequired(errors, path.Key("password"));
  }
  if (type == "kubernetes.io/service-account-token") {
    const Path meta("metadata");
    const Path annotations = meta.At("annotations");
    constexpr std::string_view kAccount = "kubernetes.io/service-account.name";
    const Json* account = FindMember(ObjectAt(object, "metadata.annotations"), kAccount);
    if (account == nullptr || TextOf(*account).empty()) {
      AddRequired(errors, annotations.Key(kAccount));
    }
  }
}

bool SameMember(const Json& a, const Json& b, std::string_view member) {
  return SameJson(OrEmptyObject(FindMember(a, member)), OrEmptyObject(FindMember(b, member)));
}

// Of a ConfigMap or Secret that is marked immutable.
void CheckFrozen(FieldErrors& errors, const Json& old, const Json& object) {
  if (!FlagAt(old, "immutable")) return;
  if (!FlagAt(object, "immutable")) {
    AddForbidden(errors, Path("immutable"), std::string(kImmutableWhenSet));
  }
  for (const std::string_view member : {"data", "binaryData"}) {
    if (!SameMember(old, object, member)) {
      AddForbidden(errors, Path(member), std::string(kImmutableWhenSet));
    }
  }
}

void CheckNodeAmounts(FieldErrors& errors, const Json& node) {
  const Path status("status");
  for (const std::string_view list : {"capacity", "allocatable"}) {
    const Path path = status.At(list);
    for (const auto& [name, amount] : ObjectAt(node, fmt::format("status.{}", list))) {
      rules::CheckAmount(errors, path.At(name), name, amount);
    }
  }
}

// "MyFeature/mySubFeature".
bool IsFeatureName(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (name.empty() || name[0] < 'A' || name[0] > 'Z' || name.ends_with('/')) return false;
  for (size_t i = 1; i < name.size(); ++i) {
    const bool fits = is_letter(name[i]) || (name[i] >= '0' && name[i] <= '9');
    if (!fits && (name[i] != '/' || name[i - 1] == '/')) return false;
  }
  return true;
}

void CheckNodeFeatures(FieldErrors& errors, const Json& node) {
  const JsonArray& features = ArrayAt(node, "status.declaredFeatures");
  const Path status("status");
  for (size_t i = 0; i < features.size(); ++i) {
    const Path path = status.At("declaredFeatures", i);
    const std::string_view name = TextOf(features[i]);
    const std::string_view before = i == 0 ? "" : TextOf(features[i - 1]);
    if (i > 0 && name == before) errors.push_back(DuplicateField(path.text(), name));
    if (name < before) AddInvalid(errors, path, name, {"list must be sorted alphabetically"});
    if (IsFeatureName(name)) continue;
    AddInvalid(
        errors, path, name,
        {fmt::format("invalid feature name \"{}\": must start with an UpperCamelCase segment, "
                     "with subsequent segments separated by '/' (e.g., MyFeature or "
                     "MyFeature/mySubFeature), and contain only alphanumeric characters and "
                     "slashes",
                     name)});
  }
}

void CheckNodeAddresses(FieldErrors& errors, const Json& node) {
  const JsonArray& addresses = ArrayAt(node, "status.addresses");
  std::set<std::pair<std::string_view, std::string_view>> seen;
  const Path status("status");
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::string_view type = TextAt(addresses[i], "type");
    const std::string_view address = TextAt(addresses[i], "address");
    if (seen.emplace(type, address).second) continue;
    errors.push_back(DuplicateJsonField(status.At("addresses", i).text(),
                                        JsonObject{{"Type", type}, {"Address", address}}));
  }
}

void CheckNodeParts(FieldErrors& errors, const Json& node) {
  const Path meta("metadata");
  rules::CheckTaints(errors, meta.At("taints"), ArrayAt(node, "spec.taints"));
  CheckNodeAmounts(errors, node);
  const JsonArray& ranges = ArrayAt(node, "spec.podCIDRs");
  const Path spec("spec");
  size_t of_six = 0;
  size_t read = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const std::string_view range = TextOf(ranges[i]);
    rules::CheckCidr(errors, spec.At("podCIDRs", i), range);
    const std::optional<rules::CidrRange> parsed = rules::ParseCidr(range);
    if (parsed) ++read;
    if (parsed && parsed->six) ++of_six;
  }
  const bool twice = read == 2 && of_six != 1;
  if (ranges.size() > 2 || twice) {
    AddInvalid(errors, spec.At("podCIDRs"), Json(ranges),
               "may specify no more than one CIDR for each IP family");
  }
  CheckNodeFeatures(errors, node);
}

void CheckNodeUpdate(FieldErrors& errors, const Json& old, const Json& node) {
  CheckMetaUpdate(errors, old, node);
  CheckNodeAmounts(errors, node);
  CheckNodeAddresses(errors, node);
  const Path spec("spec");
  const JsonArray& ranges = ArrayAt(old, "spec.podCIDRs");
  const bool changed =
      !ranges.empty() && !SameJson(Json(ranges), Json(ArrayAt(node, "spec.podCIDRs")));
  if (changed) {
    AddForbidden(errors, spec.At("podCIDRs"),
                 "node updates may not change podCIDR except from \"\" to valid");
  }
  const std::string_view provider = TextAt(old, "spec.providerID");
  if (!provider.empty() && provider != TextAt(node, "spec.providerID")) {
    AddForbidden(errors, spec.At("providerID"),
                 "node updates may not change providerID except from \"\" to valid");
  }
  const Path meta("metadata");
  rules::CheckTaints(errors, meta.At("taints"), ArrayAt(node, "spec.taints"));
}

// What nobody takes off would keep the namespace for ever.
void CheckNamespaceFinalizers(FieldErrors& errors, const Json& object) {
  const Path spec("spec");
  const Path path = spec.At("finalizers");
  for (const Json& item : ArrayAt(object, "spec.finalizers")) {
    const std::string_view name = TextOf(item);
    AddInvalid(errors, path, name, CheckQualifiedName(name));
    if (name.find('/') == std::string_view::npos && !rules::IsStandardFinalizer(name)) {
      AddInvalid(errors, path, name,
                 {"name is neither a standard finalizer name nor is it fully qualified"});
    }
  }
}

void CheckNamespaceStatus(FieldErrors& errors, const Json& object) {
  const std::string_view phase = TextAt(object, "status.phase");
  const bool deleted = FindPath(object, "metadata.deletionTimestamp") != nullptr;
  const Path status("status");
  if (!deleted && phase != "Active") {
    AddInvalid(errors, status.At("Phase"), phase,
               {"may only be 'Active' if `deletionTimestamp` is empty"});
  }
  if (deleted && phase != "Terminating") {
    AddInvalid(errors, status.At("Phase"), phase,
               {"may only be 'Terminating' if `deletionTimestamp` is not empty"});
  }
}

constexpr int64_t kUserPriorityMax = 1'000'000'000;

// What keeps a class from being one of the system's own; empty if it is one.
std::string WhyNoSystemClass(const Json& object) {
  const std::string_view name = TextAt(object, "metadata.name");
  int64_t value = 0;
  if (name == "system-cluster-critical") value = 2 * kUserPriorityMax;
  if (name == "system-node-critical") value = 2 * kUserPriorityMax + 1000;
  if (value == 0) return fmt::format("{} is not a known system priority class", name);
  if (IntegerAt(object, "value") != value) {
    return fmt::format("value of {} PriorityClass must be {}", name, value);
  }
  if (FlagAt(object, "globalDefault")) {
    return fmt::format("globalDefault of {} PriorityClass must be false", name);
  }
  return "";
}

void CheckPriorityClass(FieldErrors& errors, const Json& object) {
  CheckMeta(errors, object, false, CheckDns1123Subdomain);
  const std::string_view name = TextAt(object, "metadata.name");
  const int64_t value = IntegerAt(object, "value");
  if (name.starts_with("system-")) {
    if (const std::string why = WhyNoSystemClass(object); !why.empty()) {
      const Path meta("metadata");
      AddForbidden(errors, meta.At("name"),
                   fmt::format("priority class names with 'system-' prefix are reserved for system "
                               "use only. error: {}",
                               why));
    }
  } else if (value > kUserPriorityMax) {
    AddForbidden(
        errors, Path("value"),
        fmt::format("maximum allowed value of a user defined priority is {}", kUserPriorityMax));
  }
  constexpr std::array<std::string_view, 2> kPolicies = {"PreemptLowerPriority", "Never"};
  if (FindMember(object, "preemptionPolicy") != nullptr) {
    rules::CheckRequiredEnum(errors, Path("preemptionPolicy"), TextAt(object, "preemptionPolicy"),
                             kPolicies);
  }
}

void CheckSecretUpdate(FieldErrors& errors, const Json& old, const Json& secret) {
  CheckMetaUpdate(errors, old, secret);
  rules::CheckImmutable(errors, Path(""), old, secret, "type");
  CheckFrozen(errors, old, secret);
  CheckSecret(errors, secret);
}

void CheckPriorityClassUpdate(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  if (IntegerAt(old, "value") != IntegerAt(object, "value")) {
    AddForbidden(errors, Path("value"), "may not be changed in an update.");
  }
  const std::string_view policy = TextAt(object, "preemptionPolicy");
  if (policy != TextAt(old, "preemptionPolicy")) {
    AddInvalid(errors, Path("preemptionPolicy"), policy, {"field is immutable"});
  }
}

void CheckLeaseSpec(FieldErrors& errors, const Json& lease) {
  const Path path("spec");
  if (const Json* duration = FindPath(lease, "spec.leaseDurationSeconds")) {
    if (IntegerAt(lease, "spec.leaseDurationSeconds") <= 0) {
      AddInvalid(errors, path.At("leaseDurationSeconds"), *duration, "must be greater than 0");
    }
  }
  if (IntegerAt(lease, "spec.leaseTransitions") < 0) {
    AddInvalid(errors, path.At("leaseTransitions"), Json(IntegerAt(lease, "spec.leaseTransitions")),
               "must be greater than or equal to 0");
  }
}

// What the groups' events call the same things. Problems have the core group's names, but for the
// reporter.
struct EventNames {
  JsonPath involved_namespace, controller, message, first, last, count, component, host;
  std::string_view reporter;
};
constexpr EventNames kCoreNames = {.involved_namespace = "involvedObject.namespace",
                                   .controller = "reportingComponent",
                                   .message = "message",
                                   .first = "firstTimestamp",
                                   .last = "lastTimestamp",
                                   .count = "count",
                                   .component = "source.component",
                                   .host = "source.host",
                                   .reporter = "reportingComponent"};
constexpr EventNames kEventsNames = {.involved_namespace = "regarding.namespace",
                                     .controller = "reportingController",
                                     .message = "note",
                                     .first = "deprecatedFirstTimestamp",
                                     .last = "deprecatedLastTimestamp",
                                     .count = "deprecatedCount",
                                     .component = "deprecatedSource.component",
                                     .host = "deprecatedSource.host",
                                     .reporter = "reportingController"};

// The rules that both groups' events share.
void CheckEventParts(FieldErrors& errors, const Json& event, const EventNames& names) {
  const std::string_view space = TextAt(event, "metadata.namespace");
  const std::string_view involved = TextAt(event, names.involved_namespace);
  const Path object("involvedObject");
  const auto mismatch = [&] {
    AddInvalid(errors, object.At("namespace"), involved, {"does not match event.namespace"});
  };
  if (TextAt(event, "eventTime").empty()) {
    const bool cluster_wide = involved.empty() && (space.empty() || space == "default");
    if (!cluster_wide && involved != space) mismatch();
    AddInvalid(errors, Path("namespace"), space, CheckDns1123Subdomain(space));
    return;
  }
  if (involved.empty() && space != "default" && space != "kube-system") mismatch();
  const std::string_view controller = TextAt(event, names.controller);
  if (controller.empty()) AddRequired(errors, Path(names.reporter));
  rules::CheckLabelName(errors, Path(names.reporter), controller);
  struct Limit {
    std::string_view member;
    JsonPath path;
    size_t max;
    bool required;
  };
  const std::array<Limit, 4> limits = {{{"reportingInstance", "reportingInstance", 128, true},
                                        {"action", "action", 128, true},
                                        {"reason", "reason", 128, true},
                                        {"message", names.message, 1024, false}}};
  for (const Limit& limit : limits) {
    const std::string_view text = TextAt(event, limit.path);
    if (limit.required && text.empty()) AddRequired(errors, Path(limit.member));
    if (text.size() > limit.max) {
      AddInvalid(errors, Path(limit.member), Json(""),
                 fmt::format("can have at most {} characters", limit.max));
    }
  }
  AddInvalid(errors, Path("namespace"), space, CheckDns1123Subdomain(space));
}

void CheckEventSeries(FieldErrors& errors, const Json& event) {
  if (FindMember(event, "series") == nullptr) return;
  if (IntegerAt(event, "series.count") < 2) {
    AddInvalid(errors, Path("series.count"), Json(""), "should be at least 2");
  }
  if (TextAt(event, "series.lastObservedTime").empty()) {
    AddRequired(errors, Path("series.lastObservedTime"));
  }
}

void CheckEventsEvent(FieldErrors& errors, const Json& event) {
  const EventNames& names = kEventsNames;
  CheckEventParts(errors, event, names);
  CheckMeta(errors, event, true, CheckDns1123Subdomain);
  CheckEventSeries(errors, event);
  if (TextAt(event, "eventTime").empty()) AddRequired(errors, Path("eventTime"));
  const std::string_view type = TextAt(event, "type");
  if (type != "Normal" && type != "Warning") {
    AddInvalid(errors, Path("type"), Json(""), fmt::format("has invalid value: {}", type));
  }
  const std::array<std::pair<std::string_view, JsonPath>, 3> deprecated = {
      {{"firstTimestamp", names.first}, {"lastTimestamp", names.last}, {"count", names.count}}};
  for (const auto& [member, path] : deprecated) {
    const Json* value = FindPath(event, path);
    if (value == nullptr || (value->is_int64() && value->get_int64() == 0)) continue;
    AddInvalid(errors, Path(member), Json(""), "needs to be unset");
  }
  if (!TextAt(event, names.component).empty() || !TextAt(event, names.host).empty()) {
    AddInvalid(errors, Path("source"), Json(""), "needs to be unset");
  }
}

// What an event keeps, as problems name it and where events.k8s.io has it.
struct EventPart {
  std::string_view name, member;
  // Of an object the fields that problems print, with their names in Go.
  std::span<const std::pair<std::string_view, std::string_view>> fields;
  bool is_time = false;
};

Json EventPartAt(const Json& event, const EventPart& part) {
  const Json* value = FindMember(event, part.member);
  if (!part.fields.empty()) {
    if (value == nullptr && part.name == "related") return nullptr;
    JsonObject shown;
    for (const auto& [field, go_name] : part.fields)
      shown.emplace(go_name, value == nullptr ? std::string_view() : TextAt(*value, field));
    return shown;
  }
  if (value != nullptr) return *value;
  if (part.is_time) return nullptr;
  return part.name == "count" ? Json(0) : Json("");
}

void CheckEventsEventUpdate(FieldErrors& errors, const Json& old, const Json& event) {
  using Fields = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Fields, 7> kReference = {{{"kind", "Kind"},
                                                 {"namespace", "Namespace"},
                                                 {"name", "Name"},
                                                 {"uid", "UID"},
                                                 {"apiVersion", "APIVersion"},
                                                 {"resourceVersion", "ResourceVersion"},
                                                 {"fieldPath", "FieldPath"}}};
  constexpr std::array<Fields, 2> kSource = {{{"component", "Component"}, {"host", "Host"}}};
  const auto parts = std::to_array<EventPart>({
      {.name = "involvedObject", .member = "regarding", .fields = kReference},
      {.name = "reason", .member = "reason", .fields = {}},
      {.name = "message", .member = "note", .fields = {}},
      {.name = "source", .member = "deprecatedSource", .fields = kSource},
      {.name = "firstTimestamp",
       .member = "deprecatedFirstTimestamp",
       .fields = {},
       .is_time = true},
      {.name = "lastTimestamp", .member = "deprecatedLastTimestamp", .fields = {}, .is_time = true},
      {.name = "count", .member = "deprecatedCount", .fields = {}},
      {.name = "reason", .member = "reason", .fields = {}},
      {.name = "type", .member = "type", .fields = {}},
      {.name = "eventTime", .member = "eventTime", .fields = {}, .is_time = true},
      {.name = "action", .member = "action", .fields = {}},
      {.name = "related", .member = "related", .fields = kReference},
      {.name = "reportingController", .member = "reportingController", .fields = {}},
      {.name = "reportingInstance", .member = "reportingInstance", .fields = {}},
  });
  CheckEventParts(errors, event, kEventsNames);
  CheckMetaUpdate(errors, old, event);
  const auto series_of = [](const Json& of) {
    const Json* series = FindMember(of, "series");
    return series == nullptr ? Json() : *series;
  };
  if (!SameJson(series_of(old), series_of(event))) CheckEventSeries(errors, event);
  for (const EventPart& part : parts) {
    const Json value = EventPartAt(event, part);
    if (SameJson(EventPartAt(old, part), value)) continue;
    AddInvalid(errors, Path(part.name), value, std::string(rules::kImmutable));
  }
}

void CheckBinding(FieldErrors& errors, const Json& binding) {
  const Path target("target");
  const std::string_view kind = TextAt(binding, "target.kind");
  if (!kind.empty() && kind != "Node") {
    constexpr std::array<std::string_view, 2> kKinds = {"Node", "<empty>"};
    errors.push_back(NotSupportedField(target.At("kind").text(), kind, kKinds));
  }
  if (TextAt(binding, "target.name").empty()) AddRequired(errors, target.At("name"));
}

void CheckScale(FieldErrors& errors, const Json& scale) {
  constexpr std::array<std::string_view, 1> kReplicas = {"replicas"};
  rules::CheckNonnegative(errors, Path("spec"), OrEmptyObject(FindMember(scale, "spec")),
                          kReplicas);
}

void CheckDeleteOptions(FieldErrors& errors, const Json& options) {
  if (FindMember(options, "propagationPolicy") == nullptr) return;
  const std::string_view policy = TextAt(options, "propagationPolicy");
  const Path path("propagationPolicy");
  if (FindMember(options, "orphanDependents") != nullptr) {
    AddInvalid(errors, path, policy,
               {"orphanDependents and deletionPropagation cannot be both set"});
  }
  constexpr std::array<std::string_view, 4> kPolicies = {"Foreground", "Background", "Orphan",
                                                         "nil"};
  if (policy == "nil") {
    errors.push_back(NotSupportedField(path.text(), policy, kPolicies));
  } else {
    rules::CheckEnum(errors, path, policy, kPolicies);
  }
}

void CheckByDefinition(FieldErrors& errors, const Kind& kind, const Json& object) {
  std::vector<std::string> none;
  if (kind.defined == nullptr) return rules::CheckCustom(errors, kind.id, nullptr, object, none);
  if (!object.is_object()) return;
  const CustomSchema& schema = kind.defined->schema;
  std::ranges::move(CheckCustomSchema(schema, object.get_object()), std::back_inserter(errors));
  std::ranges::move(CheckScaleSpec(*kind.defined, object), std::back_inserter(errors));
  std::ranges::move(CheckScaleStatus(*kind.defined, object), std::back_inserter(errors));
  std::ranges::move(CheckEmbedded(schema, object), std::back_inserter(errors));
}

void CheckUpdateByDefinition(FieldErrors& errors, const Kind& kind, const Json& old,
                             const Json& object, Subresource subresource) {
  if (!object.is_object()) return;
  const CustomSchema& schema = kind.defined->schema;
  const JsonObject& document = object.get_object();
  if (subresource == Subresource::kStatus) {
    std::ranges::move(CheckCustomStatus(schema, document, old), std::back_inserter(errors));
    std::ranges::move(CheckScaleStatus(*kind.defined, object), std::back_inserter(errors));
    return;
  }
  std::ranges::move(CheckCustomUpdate(schema, document, old), std::back_inserter(errors));
  std::ranges::move(CheckScaleSpec(*kind.defined, object), std::back_inserter(errors));
  std::ranges::move(CheckScaleStatus(*kind.defined, object), std::back_inserter(errors));
  std::ranges::move(CheckEmbedded(schema, object), std::back_inserter(errors));
}

void CheckPodTemplate(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  rules::CheckTemplate(errors, Path("template"), OrEmptyObject(FindMember(object, "template")));
}

// Kinds with few rules of their own, or none.
void CheckOther(FieldErrors& errors, KindId kind, const Json& object) {
  if (!KindOf(kind).stored) return;
  const bool space = kind == KindId::kNamespace;
  CheckMeta(errors, object, KindOf(kind).namespaced,
            space ? &CheckDns1123Label : &CheckDns1123Subdomain);
  if (space) CheckNamespaceFinalizers(errors, object);
}

using BothCheck = void (*)(FieldErrors& errors, const Json* old, const Json& object);

struct BothRow {
  KindId kind;
  BothCheck check;
};
// Kinds whose rules are one function, for creations (without `old`) and changes.
constexpr auto kBothChecks = std::to_array<BothRow>({
    {KindId::kCustomResourceDefinition, rules::CheckDefinition},
    {KindId::kReplicationController, rules::CheckReplicationController},
    {KindId::kResourceQuota, rules::CheckResourceQuota},
    {KindId::kLimitRange, rules::CheckLimitRange},
    {KindId::kStatefulSet, rules::CheckStatefulSet},
    {KindId::kDaemonSet, rules::CheckDaemonSet},
    {KindId::kControllerRevision, rules::CheckControllerRevision},
    {KindId::kCronJob, rules::CheckCronJob},
    {KindId::kPodTemplate, CheckPodTemplate},
    {KindId::kRole, rules::CheckRole},
    {KindId::kClusterRole, rules::CheckClusterRole},
    {KindId::kRoleBinding, rules::CheckRoleBinding},
    {KindId::kClusterRoleBinding, rules::CheckClusterRoleBinding},
    {KindId::kEndpoints, rules::CheckEndpoints},
    {KindId::kEndpointSlice, rules::CheckEndpointSlice},
    {KindId::kNetworkPolicy, rules::CheckNetworkPolicy},
    {KindId::kIngress, rules::CheckIngress},
    {KindId::kIngressClass, rules::CheckIngressClass},
    {KindId::kPersistentVolume, rules::CheckVolume},
    {KindId::kPersistentVolumeClaim, rules::CheckClaim},
    {KindId::kStorageClass, rules::CheckStorageClass},
    {KindId::kCsiNode, rules::CheckCsiNode},
    {KindId::kCsiDriver, rules::CheckCsiDriver},
    {KindId::kVolumeAttachment, rules::CheckAttachment},
    {KindId::kCsiStorageCapacity, rules::CheckStorageCapacity},
    {KindId::kRuntimeClass, rules::CheckRuntimeClass},
    {KindId::kValidatingWebhookConfiguration, rules::CheckValidatingWebhooks},
    {KindId::kMutatingWebhookConfiguration, rules::CheckMutatingWebhooks},
});

BothCheck BothCheckOf(KindId kind) {
  const auto* const row = std::ranges::find(kBothChecks, kind, &BothRow::kind);
  return row == kBothChecks.end() ? nullptr : row->check;
}

FieldErrors Checked(BothCheck check, const Json* old, const Json& object) {
  FieldErrors errors;
  check(errors, old, object);
  return errors;
}

}  // namespace

FieldErrors ValidateMetadataUpdate(const Json& old, const Json& object) {
  FieldErrors errors;
  rules::CheckCustomMetaUpdate(errors, old, object);
  return errors;
}

FieldErrors ValidateCreate(const Kind& kind, const Json& object) {
  if (!kind.custom) return ValidateCreate(kind.id, object);
  FieldErrors errors;
  rules::CheckCustomMeta(errors, object, kind.namespaced);
  CheckByDefinition(errors, kind, object);
  return errors;
}

FieldErrors ValidateUpdate(const Kind& kind, const Json& old, const Json& object,
                           Subresource subresource, std::vector<std::string>* warnings) {
  if (!kind.custom) return ValidateUpdate(kind.id, old, object, subresource);
  FieldErrors errors;
  rules::CheckCustomMetaUpdate(errors, old, object);
  std::vector<std::string> found;
  if (kind.defined == nullptr) {
    rules::CheckCustom(errors, kind.id, &old, object, found);
  } else {
    CheckUpdateByDefinition(errors, kind, old, object, subresource);
  }
  if (warnings != nullptr) std::ranges::move(found, std::back_inserter(*warnings));
  return errors;
}

FieldErrors ValidateCreate(KindId kind, const Json& object) {
  if (KindOf(kind).custom) return ValidateCreate(KindOf(kind), object);
  if (const BothCheck check = BothCheckOf(kind)) return Checked(check, nullptr, object);
  FieldErrors errors;
  switch (kind) {
    case KindId::kPod:
      rules::CheckPod(errors, object);
      break;
    case KindId::kDeployment:
      rules::CheckDeployment(errors, object);
      break;
    case KindId::kReplicaSet:
      rules::CheckReplicaSet(errors, object);
      break;
    case KindId::kJob:
      rules::CheckJob(errors, object);
      break;
    case KindId::kPodDisruptionBudget:
      rules::CheckCustomMeta(errors, object, true, CheckPathSegment);
      rules::CheckBudget(errors, object);
      break;
    case KindId::kNode:
      CheckMeta(errors, object, false, CheckDns1123Subdomain);
      CheckNodeParts(errors, object);
      break;
    case KindId::kConfigMap:
      CheckMeta(errors, object, true, CheckDns1123Subdomain);
      CheckConfigMap(errors, object);
      break;
    case KindId::kSecret:
      CheckMeta(errors, object, true, CheckDns1123Subdomain);
      CheckSecret(errors, object);
      break;
    case KindId::kPriorityClass:
      CheckPriorityClass(errors, object);
      break;
    case KindId::kLease:
      CheckMeta(errors, object, true, CheckDns1123Subdomain);
      CheckLeaseSpec(errors, object);
      break;
    case KindId::kEvent:
      CheckEventParts(errors, object, kCoreNames);
      // Upstream looks at what every object has once the rest is right.
      if (errors.empty()) rules::CheckCustomMeta(errors, object, true, CheckPathSegment);
      break;
    case KindId::kEventsEvent:
      CheckEventsEvent(errors, object);
      break;
    case KindId::kService:
      CheckMeta(errors, object, true, CheckDns1123Label);
      rules::CheckService(errors, nullptr, object);
      break;
    case KindId::kBinding:
      CheckBinding(errors, object);
      break;
    case KindId::kScale:
      CheckScale(errors, object);
      break;
    case KindId::kDeleteOptions:
      CheckDeleteOptions(errors, object);
      break;
    case KindId::kPodTemplateSpec:
      rules::CheckTemplate(errors, Path("template"), object);
      break;
    default:
      CheckOther(errors, kind, object);
      break;
  }
  return errors;
}

namespace {

FieldErrors ValidateStatus(KindId kind, const Json& old, const Json& object) {
  FieldErrors errors;
  switch (kind) {
    case KindId::kPod:
      rules::CheckPodStatusUpdate(errors, old, object);
      break;
    case KindId::kDeployment:
    case KindId::kReplicaSet:
      rules::CheckReplicasStatus(errors, old, object);
      break;
    case KindId::kJob:
      rules::CheckJobStatusUpdate(errors, old, object);
      break;
    case KindId::kReplicationController:
      rules::CheckReplicationControllerStatus(errors, old, object);
      break;
    case KindId::kStatefulSet:
      rules::CheckStatefulSetStatus(errors, old, object);
      break;
    case KindId::kDaemonSet:
      rules::CheckDaemonSetStatus(errors, old, object);
      break;
    case KindId::kPodDisruptionBudget:
      CheckMetaUpdate(errors, old, object);
      rules::CheckBudgetStatus(errors, object);
      break;
    case KindId::kResourceQuota:
      rules::CheckResourceQuotaStatus(errors, old, object);
      break;
    case KindId::kNode:
      CheckNodeUpdate(errors, old, object);
      CheckNodeFeatures(errors, object);
      break;
    case KindId::kNamespace:
      CheckMetaUpdate(errors, old, object);
      CheckNamespaceStatus(errors, object);
      break;
    case KindId::kService:
      CheckMetaUpdate(errors, old, object);
      rules::CheckServiceStatus(errors, old, object);
      break;
    case KindId::kIngress:
      CheckMetaUpdate(errors, old, object);
      rules::CheckIngressStatus(errors, old, object);
      break;
    case KindId::kPersistentVolumeClaim:
      CheckMetaUpdate(errors, old, object);
      rules::CheckClaimStatus(errors, object);
      break;
    case KindId::kVolumeAttachment:
      CheckMetaUpdate(errors, old, object);
      rules::CheckAttachmentStatus(errors, object);
      break;
    case KindId::kCustomResourceDefinition:
      rules::CheckCustomMetaUpdate(errors, old, object);
      rules::CheckDefinitionStatus(errors, object);
      break;
    default:
      CheckMetaUpdate(errors, old, object);
      break;
  }
  return errors;
}

FieldErrors ValidatePart(const Json& old, const Json& pod, Subresource part) {
  FieldErrors errors;
  if (part == Subresource::kResize) {
    rules::CheckResize(errors, old, pod);
  } else {
    rules::CheckEphemeralUpdate(errors, old, pod);
  }
  return errors;
}

}  // namespace

FieldErrors ValidateUpdate(KindId kind, const Json& old, const Json& object,
                           Subresource subresource) {
  if (KindOf(kind).custom) return ValidateUpdate(KindOf(kind), old, object, subresource);
  if (subresource == Subresource::kStatus) return ValidateStatus(kind, old, object);
  if (subresource == Subresource::kResize || subresource == Subresource::kEphemeralContainers) {
    CHECK(kind == KindId::kPod);
    return ValidatePart(old, object, subresource);
  }
  if (const BothCheck check = BothCheckOf(kind)) return Checked(check, &old, object);
  FieldErrors errors;
  switch (kind) {
    case KindId::kPod:
      rules::CheckPodUpdate(errors, old, object);
      break;
    case KindId::kDeployment:
      rules::CheckDeploymentUpdate(errors, old, object);
      break;
    case KindId::kReplicaSet:
      rules::CheckReplicaSetUpdate(errors, old, object);
      break;
    case KindId::kJob:
      rules::CheckJobUpdate(errors, old, object);
      break;
    case KindId::kNode:
      // Upstream asks for both, so that what is wrong with a taint is a cause twice.
      CheckMeta(errors, object, false, CheckDns1123Subdomain);
      CheckNodeParts(errors, object);
      CheckNodeUpdate(errors, old, object);
      break;
    case KindId::kConfigMap:
      CheckMetaUpdate(errors, old, object);
      CheckFrozen(errors, old, object);
      CheckConfigMap(errors, object);
      break;
    case KindId::kSecret:
      CheckSecretUpdate(errors, old, object);
      break;
    case KindId::kPriorityClass:
      CheckPriorityClassUpdate(errors, old, object);
      break;
    case KindId::kLease:
      CheckMetaUpdate(errors, old, object);
      CheckLeaseSpec(errors, object);
      break;
    case KindId::kEvent:
      CheckMetaUpdate(errors, old, object);
      CheckEventParts(errors, object, kCoreNames);
      break;
    case KindId::kEventsEvent:
      CheckEventsEventUpdate(errors, old, object);
      break;
    case KindId::kPodDisruptionBudget:
      rules::CheckCustomMetaUpdate(errors, old, object);
      rules::CheckBudget(errors, object);
      break;
    case KindId::kScale:
      CheckScale(errors, object);
      break;
    case KindId::kServiceAccount:
      CheckMetaUpdate(errors, old, object);
      CheckMeta(errors, object, true, CheckDns1123Subdomain);
      break;
    case KindId::kService:
      CheckMetaUpdate(errors, old, object);
      rules::CheckService(errors, &old, object);
      break;
    default:
      CheckMetaUpdate(errors, old, object);
      break;
  }
  return errors;
}

}  // namespace berth::api
