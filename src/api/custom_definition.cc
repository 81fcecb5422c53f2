#include "api/custom_definition.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "api/base64.h"
#include "api/formats.h"
#include "api/object.h"
#include "base/check.h"

namespace berth::api {
namespace {

// JSON paths of definitions begin with a dot.
std::string Dotted(std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  return std::string(path);
}

std::string Joined(const JsonArray& texts) {
  std::string joined;
  for (const Json& text : texts) {
    if (!text.is_string()) continue;
    if (!joined.empty()) joined += ' ';
    joined += std::string_view(text.get_string());
  }
  return joined;
}

// v<major>[(alpha|beta)<minor>]: stability, major, minor; nothing for other names.
std::optional<std::tuple<int, int, int>> VersionParts(std::string_view name) {
  if (!name.starts_with('v')) return std::nullopt;
  const char* at = name.data() + 1;
  const char* const end = name.data() + name.size();
  int major = 0;
  const auto [after, error] = std::from_chars(at, end, major);
  if (error != std::errc() || major == 0) return std::nullopt;
  std::string_view rest(after, static_cast<size_t>(end - after));
  if (rest.empty()) return std::tuple(2, major, 0);
  const bool beta = rest.starts_with("beta");
  if (!beta && !rest.starts_with("alpha")) return std::nullopt;
  rest.remove_prefix(beta ? 4 : 5);
  int minor = 0;
  const auto [last, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), minor);
  if (wrong != std::errc() || last != rest.data() + rest.size() || minor == 0) return std::nullopt;
  return std::tuple(beta ? 1 : 0, major, minor);
}

// What discovery tells of the version that is stored, as upstream computes it: who sees it change
// knows that what is stored is to be written anew.
std::string StorageHash(std::string_view group, std::string_view version, std::string_view kind) {
  const std::string name = fmt::format("{}/{}/{}", group, version, kind);
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest = {};
  SHA256(std::bit_cast<const uint8_t*>(name.data()), name.size(), digest.data());
  return EncodeBase64(std::string(digest.begin(), digest.begin() + 8));
}

// The views of `version.columns` are of `version.column_texts`, which must not move any more.
void AddColumns(const Json& columns, CustomVersion& version) {
  std::vector<int32_t> priorities = {0};
  version.column_texts = {"Name", "string", "name"};
  version.cells = {".metadata.name"};
  version.descriptions = {"Name"};
  for (const Json& column : columns.is_array() ? columns.get_array() : JsonArray()) {
    for (const char* member : {"name", "type", "format"})
      version.column_texts.emplace_back(TextAt(column, std::string_view(member)));
    const std::string_view path = TextAt(column, "jsonPath");
    const std::string_view description = TextAt(column, "description");
    version.cells.emplace_back(path);
    version.descriptions.push_back(
        description.empty()
            ? fmt::format("Custom resource definition column (in JSONPath format): {}", path)
            : std::string(description));
    priorities.push_back(static_cast<int32_t>(IntegerAt(column, "priority")));
  }
  if (version.cells.size() == 1) {
    for (const char* text : {"Age", "date", ""}) version.column_texts.emplace_back(text);
    version.cells.emplace_back(".metadata.creationTimestamp");
    version.descriptions.emplace_back("Age");
    priorities.push_back(0);
  }
  for (size_t i = 0; i < version.cells.size(); ++i) {
    version.columns.push_back({.name = version.column_texts[3 * i],
                               .type = version.column_texts[3 * i + 1],
                               .format = version.column_texts[3 * i + 2],
                               .priority = priorities[i]});
  }
}

}  // namespace

std::shared_ptr<const CustomDefinition> CustomDefinition::Parse(const Json& object,
                                                                FieldErrors& errors,
                                                                uint16_t number) {
  // The constructor is private.
  std::shared_ptr<CustomDefinition> definition(new CustomDefinition);
  CustomDefinition& made = *definition;
  made.name_ = TextAt(object, "metadata.name");
  made.number_ = number;
  made.group_ = TextAt(object, "spec.group");
  made.plural_ = TextAt(object, "spec.names.plural");
  made.singular_ = TextAt(object, "spec.names.singular");
  made.kind_ = TextAt(object, "spec.names.kind");
  made.list_kind_ = TextAt(object, "spec.names.listKind");
  made.short_names_ = Joined(ArrayAt(object, "spec.names.shortNames"));
  made.categories_ = Joined(ArrayAt(object, "spec.names.categories"));
  made.namespaced_ = TextAt(object, "spec.scope") == "Namespaced";
  const JsonArray& versions = ArrayAt(object, "spec.versions");
  made.versions_.reserve(versions.size());
  const bool shared = VersionsShare(object, "schema");
  int64_t steps = kCheckStepsMax;
  for (size_t i = 0; i < versions.size(); ++i) {
    // Of a schema that all have, what is wrong is told once.
    FieldErrors again;
    made.ParseVersion({.version = versions[i], .index = i, .shared = shared},
                      shared && i > 0 ? again : errors, steps);
  }
  std::ranges::sort(made.versions_, IsVersionBefore, &CustomVersion::name);
  const auto stored = std::ranges::find(made.versions_, true, &CustomVersion::storage);
  if (stored != made.versions_.end())
    made.storage_hash_ = StorageHash(made.group_, stored->name, made.kind_);
  for (CustomVersion& version : made.versions_) made.MakeKind(version);
  return definition;
}

bool VersionsShare(const Json& definition, std::string_view member) {
  const JsonArray& versions = ArrayAt(definition, "spec.versions");
  return std::ranges::all_of(versions, [&](const Json& version) {
    return SameJson(OrEmptyObject(FindMember(version, member)),
                    OrEmptyObject(FindMember(versions.front(), member)));
  });
}

std::string VersionPath(bool shared, std::string_view member, size_t index) {
  if (!shared) return fmt::format("spec.versions[{}].{}", index, member);
  return fmt::format("spec.{}", member == "schema" ? "validation" : member);
}

void CustomDefinition::ParseVersion(const Given& given, FieldErrors& errors, int64_t& steps) {
  const Json& version = given.version;
  CustomVersion& made = versions_.emplace_back();
  made.name = TextAt(version, "name");
  made.served = FlagAt(version, "served");
  made.storage = FlagAt(version, "storage");
  made.deprecated = FlagAt(version, "deprecated");
  made.deprecation = TextAt(version, "deprecationWarning");
  if (const Json* schema = FindPath(version, "schema.openAPIV3Schema")) {
    const std::string at = VersionPath(given.shared, "schema", given.index) + ".openAPIV3Schema";
    ParsedSchema parsed = ParseCustomSchema(*schema, at, errors, steps);
    made.schema = std::move(parsed.root);
    for (std::string& rule : parsed.unenforced) {
      // Our own words name what was sent.
      const size_t rest = rule.find(".openAPIV3Schema");
      made.unenforced.push_back(fmt::format("spec.versions[{}].schema{}", given.index,
                                            std::string_view(rule).substr(rest)));
    }
    made.openapi = *schema;
  }
  if (FindPath(version, "subresources.scale") != nullptr) {
    made.replicas_path = Dotted(TextAt(version, "subresources.scale.specReplicasPath"));
    made.status_replicas_path = Dotted(TextAt(version, "subresources.scale.statusReplicasPath"));
    made.selector_path = Dotted(TextAt(version, "subresources.scale.labelSelectorPath"));
  }
  made.kind.has_status = FindPath(version, "subresources.status") != nullptr;
  const Json* columns = FindMember(version, "additionalPrinterColumns");
  AddColumns(columns == nullptr ? Json() : *columns, made);
  for (const Json& field : ArrayAt(version, "selectableFields")) {
    std::string path = Dotted(TextAt(field, "jsonPath"));
    if (std::ranges::find(made.selectable, path) == made.selectable.end())
      made.selectable.push_back(std::move(path));
  }
}

void CustomDefinition::MakeKind(CustomVersion& version) {
  version.definition = this;
  version.kind = {.id = KindId::kCustomResource,
                  .group = group_,
                  .version = version.name,
                  .name = kind_,
                  .plural = plural_,
                  .singular = singular_,
                  .short_names = short_names_,
                  .category = categories_,
                  .storage_hash = storage_hash_,
                  .namespaced = namespaced_,
                  .stored = true,
                  .has_status = version.kind.has_status,
                  .has_scale = !version.replicas_path.empty(),
                  .custom = true,
                  .storage = KindId::kCustomResource,
                  .defined = &version};
}

const CustomVersion& CustomDefinition::storage() const {
  const auto at = std::ranges::find(versions_, true, &CustomVersion::storage);
  CHECK(at != versions_.end());
  return *at;
}

const CustomVersion* CustomDefinition::Version(std::string_view name) const {
  const auto at = std::ranges::find(versions_, name, &CustomVersion::name);
  return at == versions_.end() ? nullptr : &*at;
}

bool IsVersionBefore(std::string_view a, std::string_view b) {
  const auto left = VersionParts(a);
  const auto right = VersionParts(b);
  if (left && right) return *left > *right;
  if (left || right) return left.has_value();
  return a < b;
}

const Kind* NativeKindOf(const Json& definition) {
  const std::string_view group = TextAt(definition, "spec.group");
  const std::string_view plural = TextAt(definition, "spec.names.plural");
  for (const Kind& kind : Kinds()) {
    if (kind.stored && kind.group == group && kind.plural == plural) return &kind;
  }
  return nullptr;
}

namespace {

void FindUnknownFormats(const Json& schema, std::set<std::string>& found) {
  if (!schema.is_object()) return;
  const std::string_view format = TextAt(schema, "format");
  if (!format.empty() && !IsKnownFormat(TextAt(schema, "type"), format)) found.emplace(format);
  for (const auto& [name, property] : ObjectAt(schema, "properties"))
    FindUnknownFormats(property, found);
  for (const std::string_view member : {"items", "additionalProperties", "not"}) {
    if (const Json* part = FindMember(schema, member)) FindUnknownFormats(*part, found);
  }
  for (const std::string_view list : {"allOf", "anyOf", "oneOf"}) {
    for (const Json& part : ArrayAt(schema, list)) FindUnknownFormats(part, found);
  }
}

}  // namespace

std::vector<std::string> DefinitionWarnings(const Json& definition) {
  if (const Kind* native = NativeKindOf(definition)) {
    return {
        fmt::format("{} is served by berth itself, by its own schema: this definition is "
                    "stored and changes nothing",
                    native->group_resource())};
  }
  FieldErrors errors;
  std::vector<std::string> warnings;
  std::set<std::string> formats;
  for (const Json& version : ArrayAt(definition, "spec.versions"))
    FindUnknownFormats(OrEmptyObject(FindPath(version, "schema.openAPIV3Schema")), formats);
  for (const std::string& format : formats)
    warnings.push_back(fmt::format("unrecognized format \"{}\"", format));
  for (const CustomVersion& version : CustomDefinition::Parse(definition, errors)->versions()) {
    for (const std::string& rule : version.unenforced)
      warnings.push_back(fmt::format("{}: rules in CEL are not enforced here", rule));
  }
  return warnings;
}

}  // namespace berth::api
