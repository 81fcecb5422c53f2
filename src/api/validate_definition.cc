#include "api/validate_definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/custom_definition.h"
#include "api/names.h"
#include "api/object.h"
#include "api/validate_common.h"

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
      CheckLabel1035(errors, field, LowerCase(name), kMixed);
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
  if (group.empty()) {
    errors.push_back(RequiredField("spec.group", ""));
  } else if (const Messages wrong = CheckDns1123Subdomain(group); !wrong.empty()) {
    AddInvalid(errors, Path("spec.group"), group, wrong);
  } else if (!group.contains('.')) {
    errors.push_back(InvalidField("spec.group", group, "should be a domain with at least one dot"));
  }
  const std::string wanted = fmt::format("{}.{}", TextAt(object, "spec.names.plural"), group);
  const std::string_view name = TextAt(object, "metadata.name");
  if (name != wanted) {
    errors.push_back(
        InvalidField("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
  }
}

void CheckScale(FieldErrors& errors, const std::string& path, const Json& version) {
  const Json* scale = FindPath(version, "subresources.scale");
  if (scale == nullptr) return;
  for (const auto& [member, root] :
       {std::pair<std::string_view, std::string_view>{"specReplicasPath", ".spec."},
        {"statusReplicasPath", ".status."}}) {
    const std::string_view at = TextAt(*scale, member);
    const std::string field = fmt::format("{}.subresources.scale.{}", path, member);
    if (at.empty()) {
      errors.push_back(RequiredField(field, ""));
    } else if (!at.starts_with(root)) {
      errors.push_back(InvalidField(
          field, at,
          fmt::format("should be a json path under {}", root.substr(0, root.size() - 1))));
    }
  }
}

void CheckVersions(FieldErrors& errors, const Json& object) {
  const JsonArray& versions = ArrayAt(object, "spec.versions");
  std::vector<std::string_view> names;
  int storage = 0;
  int served = 0;
  bool twice = false;
  for (size_t i = 0; i < versions.size(); ++i) {
    const std::string path = fmt::format("spec.versions[{}]", i);
    const std::string_view name = TextAt(versions[i], "name");
    CheckLabel1035(errors, path + ".name", name);
    twice |= std::ranges::find(names, name) != names.end();
    names.push_back(name);
    storage += FlagAt(versions[i], "storage") ? 1 : 0;
    served += FlagAt(versions[i], "served") ? 1 : 0;
    if (FindPath(versions[i], "schema.openAPIV3Schema") == nullptr) {
      errors.push_back(RequiredField(path + ".schema.openAPIV3Schema", "schemas are required"));
    }
    CheckScale(errors, path, versions[i]);
  }
  const Json list = versions;
  if (twice) {
    errors.push_back(InvalidJsonField("spec.versions", list, "must contain unique version names"));
  }
  if (storage != 1) {
    errors.push_back(InvalidJsonField("spec.versions", list,
                                      "must have exactly one version marked as storage version"));
  }
  const std::string_view strategy = TextAt(object, "spec.conversion.strategy");
  if (strategy == "Webhook" && served > 1) {
    errors.push_back(ForbiddenField(
        "spec.conversion.strategy",
        "webhooks that convert are not called here: serve one version, or use None"));
  }
}

void CheckStoredVersions(FieldErrors& errors, const Json& object) {
  const JsonArray& stored = ArrayAt(object, "status.storedVersions");
  for (size_t i = 0; i < stored.size(); ++i) {
    const std::string_view name = TextOf(stored[i]);
    const bool known = std::ranges::any_of(ArrayAt(object, "spec.versions"), [&](const Json& one) {
      return TextAt(one, "name") == name;
    });
    if (known) continue;
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
  if (NativeKindOf(object) == nullptr) CheckVersions(errors, object);
  if (old != nullptr) {
    for (const char* const member :
         {"spec.group", "spec.scope", "spec.names.plural", "spec.names.kind"}) {
      const std::string_view now = TextAt(object, std::string_view(member));
      if (now != TextAt(*old, std::string_view(member)))
        errors.push_back(InvalidField(member, now, "field is immutable"));
    }
    CheckStoredVersions(errors, object);
  }
  // A definition of a native kind is not gone by.
  if (!errors.empty() || NativeKindOf(object) != nullptr) return;
  const std::shared_ptr<const CustomDefinition> parsed = CustomDefinition::Parse(object, errors);
}

void CheckDefinitionStatus(FieldErrors& errors, const Json& object) {
  CheckStoredVersions(errors, object);
}

}  // namespace berth::api::rules
