#include "api/validate_definition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/custom_definition.h"
#include "api/names.h"
#include "api/object.h"
#include "api/url.h"
#include "api/validate_common.h"
#include "api/validate_webhooks.h"

namespace berth::api::rules {
namespace {

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

void CheckLabel1035(FieldErrors& errors, const std::string& field, std::string_view value,
                    std::string_view before = "") {
  for (const std::string& message : CheckDns1035Label(value))
    errors.push_back(InvalidField(field, value, fmt::format("{}{}", before, message)));
}

void CheckNames(FieldErrors& errors, const Json& object) {
  constexpr std::string_view kMixed = "may have mixed case, but should otherwise match: ";
  for (const std::string_view member : {"plural", "singular"}) {
    const std::string_view name = TextAt(object, fmt::format("spec.names.{}", member));
    const std::string field = fmt::format("spec.names.{}", member);
    if (name.empty()) {
      if (member == "plural") errors.push_back(RequiredField(field, ""));
      continue;
    }
    CheckLabel1035(errors, field, name);
  }
  for (const std::string_view member : {"kind", "listKind"}) {
    const std::string_view name = TextAt(object, fmt::format("spec.names.{}", member));
    const std::string field = fmt::format("spec.names.{}", member);
    if (name.empty()) {
      errors.push_back(RequiredField(field, ""));
    } else {
      const size_t before = errors.size();
      CheckLabel1035(errors, field, LowerCase(name), kMixed);
      if (errors.size() > before) errors.back() = InvalidField(field, name, errors.back().detail);
    }
  }
  for (const std::string_view member : {"shortNames", "categories"}) {
    const JsonArray& names = ArrayAt(object, fmt::format("spec.names.{}", member));
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].is_string())
        CheckLabel1035(errors, fmt::format("spec.names.{}[{}]", member, i), names[i].get_string());
    }
  }
  const std::string_view list = TextAt(object, "spec.names.listKind");
  if (!list.empty() && list == TextAt(object, "spec.names.kind")) {
    errors.push_back(
        InvalidField("spec.names.listKind", list, "kind and listKind may not be the same"));
  }
}

void CheckGroup(FieldErrors& errors, const Json& object) {
  const std::string_view group = TextAt(object, "spec.group");
  const std::string wanted = fmt::format("{}.{}", TextAt(object, "spec.names.plural"), group);
  const std::string_view name = TextAt(object, "metadata.name");
  if (name != wanted) {
    errors.push_back(
        InvalidField("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
  }
  if (group.empty()) {
    errors.push_back(RequiredField("spec.group", ""));
  } else if (const Messages wrong = CheckDns1123Subdomain(group); !wrong.empty()) {
    AddInvalid(errors, Path("spec.group"), group, wrong);
  } else if (!group.contains('.')) {
    errors.push_back(InvalidField("spec.group", group, "should be a domain with at least one dot"));
  }
}

// ---- What a version has ------------------------------------------------------------------------

bool IsPath(FieldErrors& errors, const std::string& field, std::string_view text) {
  if (text.starts_with('.')) return true;
  errors.push_back(InvalidField(field, text, "must be a simple json path starting with ."));
  return false;
}

void CheckScale(FieldErrors& errors, const std::string& path, const Json& version) {
  const Json* scale = FindPath(version, "subresources.scale");
  if (scale == nullptr) return;
  for (const auto& [member, root] :
       {std::pair<std::string_view, std::string_view>{"specReplicasPath", ".spec."},
        {"statusReplicasPath", ".status."}}) {
    const std::string_view at = TextAt(*scale, member);
    const std::string field = fmt::format("{}.scale.{}", path, member);
    if (at.empty()) {
      errors.push_back(RequiredField(field, ""));
    } else if (IsPath(errors, field, at) && !at.starts_with(root)) {
      errors.push_back(InvalidField(
          field, at,
          fmt::format("should be a json path under {}", root.substr(0, root.size() - 1))));
    }
  }
  const std::string_view selector = TextAt(*scale, "labelSelectorPath");
  const std::string field = path + ".scale.labelSelectorPath";
  if (!selector.empty() && IsPath(errors, field, selector) && !selector.starts_with(".spec.") &&
      !selector.starts_with(".status.")) {
    errors.push_back(
        InvalidField(field, selector, "should be a json path under either .spec or .status"));
  }
}

void CheckColumns(FieldErrors& errors, const std::string& path, const Json& version) {
  constexpr std::array<std::string_view, 5> kTypes = {"boolean", "date", "integer", "number",
                                                      "string"};
  constexpr std::array<std::string_view, 8> kFormats = {"byte",  "date",  "date-time", "double",
                                                        "float", "int32", "int64",     "password"};
  const std::string types = fmt::format("must be one of {}", fmt::join(kTypes, ","));
  const JsonArray& columns = ArrayAt(version, "additionalPrinterColumns");
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const std::string_view type = TextAt(columns[i], "type");
    const std::string_view format = TextAt(columns[i], "format");
    const std::string_view where = TextAt(columns[i], "jsonPath");
    if (TextAt(columns[i], "name").empty()) errors.push_back(RequiredField(at + ".name", ""));
    if (type.empty()) {
      errors.push_back(RequiredField(at + ".type", types));
    } else if (std::ranges::find(kTypes, type) == kTypes.end()) {
      errors.push_back(InvalidField(at + ".type", type, types));
    }
    if (!format.empty() && std::ranges::find(kFormats, format) == kFormats.end()) {
      errors.push_back(InvalidField(at + ".format", format,
                                    fmt::format("must be one of {}", fmt::join(kFormats, ","))));
    }
    if (where.empty()) {
      errors.push_back(RequiredField(at + ".JSONPath", ""));
    } else {
      IsPath(errors, at + ".JSONPath", where);
    }
  }
}

// Why a path is none of a field that may be selected by, or "".
std::string WhyNotSelectable(const Json& schema, std::string_view path) {
  if (!path.starts_with('.')) {
    return fmt::format("is an invalid path: expected [ or . but got: {}",
                       path.substr(0, path.find_first_of(".[")));
  }
  if (path.contains('[')) return "is an invalid path: array notation is not allowed";
  const Json* at = &schema;
  for (std::string_view rest = path.substr(1); at != nullptr && !rest.empty();) {
    const size_t end = std::min(rest.find('.'), rest.size());
    at = FindMember(ObjectAt(*at, "properties"), rest.substr(0, end));
    rest = end == rest.size() ? std::string_view() : rest.substr(end + 1);
  }
  if (at == nullptr) return "is an invalid path: does not refer to a valid field";
  if (path.starts_with(".metadata.")) return "must not point to fields in metadata";
  constexpr std::array<std::string_view, 3> kTypes = {"string", "boolean", "integer"};
  if (std::ranges::find(kTypes, TextAt(*at, "type")) != kTypes.end()) return "";
  return "must point to a field of type string, boolean or integer. Enum string fields and "
         "strings with formats are allowed.";
}

void CheckSelectable(FieldErrors& errors, const std::string& path, const Json& version) {
  constexpr int64_t kFieldsMax = 8;
  const JsonArray& fields = ArrayAt(version, "selectableFields");
  const Json& schema = OrEmptyObject(FindPath(version, "schema.openAPIV3Schema"));
  std::set<std::string_view> seen;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string at = fmt::format("{}[{}].jsonPath", path, i);
    const std::string_view where = TextAt(fields[i], "jsonPath");
    if (where.empty()) {
      errors.push_back(RequiredField(at, ""));
      continue;
    }
    std::string why = WhyNotSelectable(schema, where);
    const bool found = !why.starts_with("is an invalid path");
    if (!why.empty()) errors.push_back(InvalidField(at, where, std::move(why)));
    if (found && !seen.insert(where).second) errors.push_back(DuplicateField(at, where));
  }
  if (std::ssize(seen) > kFieldsMax)
    errors.push_back(TooManyField(path, std::ssize(seen), kFieldsMax));
}

void CheckDeprecation(FieldErrors& errors, const std::string& path, const Json& version) {
  constexpr size_t kWarningMax = 256;
  const Json* warning = FindMember(version, "deprecationWarning");
  if (warning == nullptr) return;
  const std::string field = path + ".deprecationWarning";
  const std::string_view text = TextOf(*warning);
  const auto refuse = [&](std::string why) {
    errors.push_back(InvalidField(field, text, std::move(why)));
  };
  if (!FlagAt(version, "deprecated")) return refuse("can only be set for deprecated versions");
  if (text.size() > kWarningMax) refuse("must be <= 256 characters long");
  if (text.empty()) refuse("must not be an empty string");
  const auto odd =
      std::ranges::find_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (odd != text.end()) {
    refuse(
        fmt::format("must only contain printable UTF-8 characters; non-printable character "
                    "found at index {}",
                    odd - text.begin()));
  }
}

// Versions as upstream's internal type is shown, without what all of them share.
Json ShownVersions(const Json& definition) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kMembers = {
      {{"Schema", "schema"},
       {"Subresources", "subresources"},
       {"AdditionalPrinterColumns", "additionalPrinterColumns"},
       {"SelectableFields", "selectableFields"}}};
  JsonArray shown;
  for (const Json& version : ArrayAt(definition, "spec.versions")) {
    const Json* warning = FindMember(version, "deprecationWarning");
    shown.push_back(JsonObject{{"Name", TextAt(version, "name")},
                               {"Served", FlagAt(version, "served")},
                               {"Storage", FlagAt(version, "storage")},
                               {"Deprecated", FlagAt(version, "deprecated")},
                               {"DeprecationWarning", warning == nullptr ? Json() : *warning}});
  }
  for (const auto& [name, member] : kMembers) {
    const bool shared = VersionsShare(definition, member);
    for (size_t i = 0; i < shown.size(); ++i) {
      const Json* value = FindMember(ArrayAt(definition, "spec.versions")[i], member);
      shown[i].get_object()[name] = value == nullptr || shared ? Json() : *value;
    }
  }
  return shown;
}

// What each version says beside its schema; of what all share, once.
void CheckVersionParts(FieldErrors& errors, const Json& object) {
  const JsonArray& versions = ArrayAt(object, "spec.versions");
  struct Part {
    std::string_view member;
    void (*check)(FieldErrors& errors, const std::string& path, const Json& version);
    bool shared = false;
  };
  std::array<Part, 3> parts = {{{"subresources", &CheckScale},
                                {"additionalPrinterColumns", &CheckColumns},
                                {"selectableFields", &CheckSelectable}}};
  for (Part& part : parts) part.shared = VersionsShare(object, part.member);
  for (size_t i = 0; i < versions.size(); ++i) {
    CheckDeprecation(errors, fmt::format("spec.versions[{}]", i), versions[i]);
    for (const Part& part : parts) {
      if (i == 0 || !part.shared)
        part.check(errors, VersionPath(part.shared, part.member, i), versions[i]);
    }
  }
}

void CheckConversion(FieldErrors& errors, const Json& object) {
  constexpr std::array<std::string_view, 2> kStrategies = {"None", "Webhook"};
  constexpr std::array<std::string_view, 2> kReviews = {"v1", "v1beta1"};
  const Json* conversion = FindPath(object, "spec.conversion");
  if (conversion == nullptr) return;
  const Path spec("spec");
  const Path path = spec.At("conversion");
  const std::string_view strategy = TextAt(*conversion, "strategy");
  CheckRequiredEnum(errors, path.At("strategy"), strategy, kStrategies);
  if (strategy != "Webhook") return;
  const Path client_path = path.At("webhookClientConfig");
  const Json* client = FindPath(*conversion, "webhook.clientConfig");
  if (client == nullptr) {
    AddRequired(errors, client_path, "required when strategy is set to Webhook");
  } else {
    CheckWebhookClient(errors, client_path, *client);
  }
  const JsonArray& reviews = ArrayAt(*conversion, "webhook.conversionReviewVersions");
  if (reviews.empty()) {
    AddRequired(errors, path.At("conversionReviewVersions"));
    return;
  }
  const bool known = std::ranges::any_of(reviews, [&](const Json& review) {
    return std::ranges::find(kReviews, TextOf(review)) != kReviews.end();
  });
  if (!known) {
    AddInvalid(errors, path.At("conversionReviewVersions"), Json(reviews),
               "must include at least one of v1, v1beta1");
  }
}

// Groups of Kubernetes are for what was agreed on there.
void CheckApproval(FieldErrors& errors, const Json* old, const Json& object) {
  constexpr std::string_view kAnnotation = "api-approved.kubernetes.io";
  constexpr std::string_view kSee = "see https://github.com/kubernetes/enhancements/pull/1111";
  const std::string_view group = TextAt(object, "spec.group");
  const bool theirs = group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" ||
                      group.ends_with(".kubernetes.io");
  if (!theirs) return;
  enum class State : uint8_t { kMissing, kFine, kWrong };
  const auto state_of = [&](const Json& definition) {
    const Json* note = FindMember(ObjectAt(definition, "metadata.annotations"), kAnnotation);
    if (note == nullptr || TextOf(*note).empty()) return State::kMissing;
    const std::string_view text = TextOf(*note);
    if (text.starts_with("unapproved")) return State::kFine;
    const Url url = ParseUrl(text);
    const bool reaches = !UrlProblem(text) && !url.host.empty() && !url.scheme.empty();
    return reaches ? State::kFine : State::kWrong;
  };
  const State state = state_of(object);
  if (state == State::kFine || (old != nullptr && state_of(*old) == state)) return;
  const std::string field = fmt::format("metadata.annotations[{}]", kAnnotation);
  if (state == State::kMissing) {
    errors.push_back(RequiredField(
        field, fmt::format("protected groups must have approval annotation \"{}\", {}", kAnnotation,
                           kSee)));
  } else {
    errors.push_back(InvalidField(
        field, TextOf(*FindMember(ObjectAt(object, "metadata.annotations"), kAnnotation)),
        fmt::format("protected groups must have approval annotation \"{}\" with either a URL or a "
                    "reason starting with \"unapproved\", {}",
                    kAnnotation, kSee)));
  }
}

void CheckVersions(FieldErrors& errors, const Json& object) {
  const JsonArray& versions = ArrayAt(object, "spec.versions");
  std::set<std::string_view> names;
  int storage = 0;
  int served = 0;
  bool twice = false;
  for (size_t i = 0; i < versions.size(); ++i) {
    const std::string path = fmt::format("spec.versions[{}]", i);
    const std::string_view name = TextAt(versions[i], "name");
    if (FindPath(versions[i], "schema.openAPIV3Schema") == nullptr)
      errors.push_back(RequiredField(path + ".schema.openAPIV3Schema", ""));
    CheckLabel1035(errors, path + ".name", name);
    twice |= !names.insert(name).second;
    storage += FlagAt(versions[i], "storage") ? 1 : 0;
    served += FlagAt(versions[i], "served") ? 1 : 0;
  }
  const Json list = twice || storage != 1 ? ShownVersions(object) : Json();
  if (twice) {
    errors.push_back(InvalidJsonField("spec.versions", list, "must contain unique version names"));
  }
  if (storage != 1) {
    errors.push_back(InvalidJsonField("spec.versions", list,
                                      "must have exactly one version marked as storage version"));
  }
  // Upstream holds the first one's name twice.
  if (!versions.empty()) CheckLabel1035(errors, "spec.version", TextAt(versions.front(), "name"));
  const std::string_view strategy = TextAt(object, "spec.conversion.strategy");
  if (strategy == "Webhook" && served > 1) {
    errors.push_back(ForbiddenField(
        "spec.conversion.strategy",
        "webhooks that convert are not called here: serve one version, or use None"));
  }
}

void CheckStoredVersions(FieldErrors& errors, const Json& object) {
  const JsonArray& stored = ArrayAt(object, "status.storedVersions");
  if (stored.empty()) {
    errors.push_back(
        InvalidJsonField("status.storedVersions", Json(), "must have at least one stored version"));
    return;
  }
  std::set<std::string_view> names;
  for (const Json& version : ArrayAt(object, "spec.versions")) {
    const std::string_view name = TextAt(version, "name");
    names.insert(name);
    const bool known =
        std::ranges::any_of(stored, [&](const Json& each) { return TextOf(each) == name; });
    if (known || !FlagAt(version, "storage")) continue;
    errors.push_back(InvalidJsonField("status.storedVersions", Json(stored),
                                      fmt::format("must have the storage version {}", name)));
  }
  for (size_t i = 0; i < stored.size(); ++i) {
    const std::string_view name = TextOf(stored[i]);
    if (names.contains(name)) continue;
    errors.push_back(InvalidField(
        fmt::format("status.storedVersions[{}]", i), name,
        fmt::format("missing from spec.versions; {} was previously a storage version, and must "
                    "remain in spec.versions until a storage migration ensures no data remains "
                    "persisted in {} and removes {} from status.storedVersions",
                    name, name, name)));
  }
}

}  // namespace

void CheckDefinition(FieldErrors& errors, const Json* old, const Json& object) {
  if (old == nullptr) {
    CheckCustomMeta(errors, object, false);
  } else {
    CheckCustomMetaUpdate(errors, *old, object);
  }
  CheckGroup(errors, object);
  constexpr std::array<std::string_view, 2> kScopes = {"Cluster", "Namespaced"};
  CheckRequiredEnum(errors, Path("spec.scope"), TextAt(object, "spec.scope"), kScopes);
  CheckNames(errors, object);
  if (NativeKindOf(object) == nullptr) {
    CheckVersions(errors, object);
    CheckVersionParts(errors, object);
    CheckConversion(errors, object);
  }
  CheckApproval(errors, old, object);
  if (FlagAt(object, "spec.preserveUnknownFields")) {
    errors.push_back(InvalidJsonField("spec.preserveUnknownFields", Json(true),
                                      "cannot set to true, set "
                                      "x-kubernetes-preserve-unknown-fields to true in "
                                      "spec.versions[*].schema instead"));
  }
  if (old != nullptr) {
    for (const char* const member :
         {"spec.group", "spec.scope", "spec.names.plural", "spec.names.kind"}) {
      const std::string_view now = TextAt(object, std::string_view(member));
      if (now != TextAt(*old, std::string_view(member)))
        errors.push_back(InvalidField(member, now, "field is immutable"));
    }
  }
  CheckStoredVersions(errors, object);
  // A definition of a native kind is not gone by.
  if (!errors.empty() || NativeKindOf(object) != nullptr) return;
  const std::shared_ptr<const CustomDefinition> parsed = CustomDefinition::Parse(object, errors);
}

void CheckDefinitionStatus(FieldErrors& errors, const Json& object) {
  CheckStoredVersions(errors, object);
}

}  // namespace berth::api::rules
