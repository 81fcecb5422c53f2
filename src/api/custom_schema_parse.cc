#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "api/custom_schema.h"
#include "api/object.h"

// Reading a definition's schema (k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation
// and pkg/apiserver/schema): what is not structural is refused.
namespace berth::api {
namespace {

// Deeper than any real schema, and far from the stack's end.
constexpr int kDepthMax = 128;
constexpr size_t kUnenforcedMax = 20;

std::optional<int64_t> Count(const Json& schema, std::string_view member) {
  const Json* value = FindMember(schema, member);
  return value != nullptr && value->is_int64() ? std::optional(value->get_int64()) : std::nullopt;
}

std::optional<double> Number(const Json& schema, std::string_view member) {
  const Json* value = FindMember(schema, member);
  return value != nullptr && value->is_number() ? std::optional(value->to_number<double>())
                                                : std::nullopt;
}

std::vector<std::string> Texts(const Json& schema, std::string_view member) {
  std::vector<std::string> texts;
  for (const Json& item : ArrayAt(schema, member)) {
    if (item.is_string()) texts.emplace_back(item.get_string());
  }
  return texts;
}

// Where a schema stands: what it has to say differs.
enum class Place : uint8_t { kRoot, kField, kItem, kCombined };

class Parser {
 public:
  Parser(FieldErrors& errors, std::vector<std::string>& unenforced)
      : errors_(errors), unenforced_(unenforced) {}

  CustomSchema Parse(const Json& schema, const std::string& path, Place place) {
    CustomSchema node;
    if (!schema.is_object()) return node;
    if (++depth_ > kDepthMax) {
      errors_.push_back(
          ForbiddenField(path, fmt::format("schemas nest {} deep at most", kDepthMax)));
      --depth_;
      return node;
    }
    ParseType(schema, path, place, node);
    ParseLimits(schema, path, node);
    ParseMembers(schema, path, node);
    ParseLists(schema, path, node);
    for (const auto& [name, parts] :
         {std::pair{"allOf", &node.all_of}, {"anyOf", &node.any_of}, {"oneOf", &node.one_of}}) {
      const JsonArray& list = ArrayAt(schema, std::string_view(name));
      for (size_t i = 0; i < list.size(); ++i)
        parts->push_back(Parse(list[i], fmt::format("{}.{}[{}]", path, name, i), Place::kCombined));
    }
    if (const Json* none = FindMember(schema, "not"))
      node.none_of.push_back(Parse(*none, path + ".not", Place::kCombined));
    Forbid(schema, path);
    ParseDefault(schema, path, place, node);
    --depth_;
    return node;
  }

 private:
  void ParseType(const Json& schema, const std::string& path, Place place, CustomSchema& node) {
    constexpr std::array<std::string_view, 6> kTypes = {"object",  "array",  "string",
                                                        "integer", "number", "boolean"};
    const std::string_view type = TextAt(schema, "type");
    const auto* at = std::ranges::find(kTypes, type);
    if (at != kTypes.end()) node.type = static_cast<CustomSchema::Type>(at - kTypes.begin() + 1);
    node.format = TextAt(schema, "format");
    node.nullable = FlagAt(schema, "nullable");
    node.int_or_string = FlagAt(schema, "x-kubernetes-int-or-string");
    node.preserves_unknown = FlagAt(schema, "x-kubernetes-preserve-unknown-fields");
    node.embeds_resource = FlagAt(schema, "x-kubernetes-embedded-resource");
    node.map_as_whole = TextAt(schema, "x-kubernetes-map-type") == "atomic";
    if (place == Place::kCombined) return;
    if (!type.empty() && at == kTypes.end()) {
      errors_.push_back(NotSupportedField(path + ".type", type, kTypes));
      return;
    }
    if (place == Place::kRoot && !type.empty() && type != "object") {
      errors_.push_back(InvalidField(path + ".type", type, "must be object at the root"));
    } else if (type.empty() && place == Place::kRoot) {
      errors_.push_back(RequiredField(path + ".type", "must not be empty at the root"));
    } else if (type.empty() && !node.int_or_string && !node.preserves_unknown) {
      errors_.push_back(RequiredField(
          path + ".type", place == Place::kItem ? "must not be empty for specified array items"
                                                : "must not be empty for specified object fields"));
    }
  }

  void ParseLimits(const Json& schema, const std::string& path, CustomSchema& node) {
    node.minimum = Number(schema, "minimum");
    node.maximum = Number(schema, "maximum");
    node.multiple_of = Number(schema, "multipleOf");
    node.exclusive_minimum = FlagAt(schema, "exclusiveMinimum");
    node.exclusive_maximum = FlagAt(schema, "exclusiveMaximum");
    node.length_min = Count(schema, "minLength");
    node.length_max = Count(schema, "maxLength");
    const bool list = node.type == CustomSchema::Type::kArray;
    node.count_min = Count(schema, list ? "minItems" : "minProperties");
    node.count_max = Count(schema, list ? "maxItems" : "maxProperties");
    for (const Json& value : ArrayAt(schema, "enum")) node.supported.push_back(value);
    node.pattern = TextAt(schema, "pattern");
    if (node.pattern.empty()) return;
    auto matcher = std::make_shared<re2::RE2>(node.pattern, re2::RE2::Quiet);
    if (matcher->ok()) {
      node.matcher = std::move(matcher);
    } else {
      errors_.push_back(InvalidField(
          path + ".pattern", node.pattern,
          fmt::format("must be a valid regular expression, but isn't: {}", matcher->error())));
    }
  }

  void ParseMembers(const Json& schema, const std::string& path, CustomSchema& node) {
    node.required = Texts(schema, "required");
    std::vector<std::pair<std::string, const Json*>> members;
    for (const auto& [name, member] : ObjectAt(schema, "properties"))
      members.emplace_back(name, &member);
    std::ranges::sort(members, {}, &std::pair<std::string, const Json*>::first);
    for (const auto& [name, member] : members) {
      node.names.push_back(name);
      node.properties.push_back(
          Parse(*member, fmt::format("{}.properties[{}]", path, name), Place::kField));
      node.has_defaults |= node.properties.back().has_defaults;
    }
    const Json* additional = FindMember(schema, "additionalProperties");
    if (additional == nullptr) return;
    const std::string at = path + ".additionalProperties";
    if (!members.empty()) {
      errors_.push_back(
          ForbiddenField(at, "additionalProperties and properties are mutual exclusive"));
    } else if (additional->is_bool()) {
      node.additional_any = additional->get_bool();
    } else {
      node.additional.push_back(Parse(*additional, at, Place::kField));
      node.has_defaults |= node.additional.back().has_defaults;
    }
  }

  void ParseLists(const Json& schema, const std::string& path, CustomSchema& node) {
    if (const Json* items = FindMember(schema, "items"); items != nullptr) {
      if (items->is_array()) {
        errors_.push_back(
            ForbiddenField(path + ".items", "items must be a schema object and not an array"));
        return;
      }
      node.items.push_back(Parse(*items, path + ".items", Place::kItem));
      node.has_defaults |= node.items.back().has_defaults;
    } else if (node.type == CustomSchema::Type::kArray && !node.preserves_unknown) {
      errors_.push_back(RequiredField(path + ".items", "must be specified"));
    }
    const std::string_view type = TextAt(schema, "x-kubernetes-list-type");
    node.list_keys = Texts(schema, "x-kubernetes-list-map-keys");
    if (type == "set") node.list_type = CustomSchema::ListType::kSet;
    if (type == "map") node.list_type = CustomSchema::ListType::kMap;
    if (type == "map" && node.list_keys.empty()) {
      errors_.push_back(RequiredField(path + ".x-kubernetes-list-map-keys",
                                      "must not be empty if x-kubernetes-list-type is map"));
    }
  }

  // What a structural schema may not say.
  void Forbid(const Json& schema, const std::string& path) {
    for (const std::string_view name :
         {"$ref", "definitions", "dependencies", "id", "additionalItems", "patternProperties"}) {
      if (FindMember(schema, name) != nullptr)
        errors_.push_back(ForbiddenField(fmt::format("{}.{}", path, name),
                                         fmt::format("{} is not supported", name)));
    }
    if (FlagAt(schema, "uniqueItems")) {
      errors_.push_back(ForbiddenField(
          path + ".uniqueItems",
          "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"));
    }
    const size_t rules = ArrayAt(schema, "x-kubernetes-validations").size();
    for (size_t i = 0; i < rules && unenforced_.size() < kUnenforcedMax; ++i)
      unenforced_.push_back(fmt::format("{}.x-kubernetes-validations[{}]", path, i));
  }

  void ParseDefault(const Json& schema, const std::string& path, Place place, CustomSchema& node) {
    const Json* value = schema.get_object().if_contains("default");
    if (value == nullptr) return;
    if (place == Place::kCombined) {
      errors_.push_back(ForbiddenField(path + ".default", "must be undefined to be structural"));
      return;
    }
    // It is checked as the one member of an object would be.
    CustomSchema holder{.type = CustomSchema::Type::kObject};
    holder.names = {"default"};
    holder.properties = {node};
    JsonObject object{{"default", *value}};
    const std::vector<std::string> unknown = PruneCustom(holder, object);
    for (const std::string& problem : unknown)
      errors_.push_back(InvalidJsonField(path + ".default", *value, problem));
    for (FieldError& error : CheckCustomSchema(holder, object)) {
      if (error.field.starts_with("default")) error.field = fmt::format("{}.{}", path, error.field);
      errors_.push_back(std::move(error));
    }
    node.default_value = object["default"];
    node.has_defaults = true;
  }

  FieldErrors& errors_;
  std::vector<std::string>& unenforced_;
  int depth_ = 0;
};

}  // namespace

ParsedSchema ParseCustomSchema(const Json& schema, std::string_view path, FieldErrors& errors) {
  ParsedSchema parsed;
  Parser parser(errors, parsed.unenforced);
  parsed.root = parser.Parse(schema, std::string(path), Place::kRoot);
  return parsed;
}

}  // namespace berth::api
