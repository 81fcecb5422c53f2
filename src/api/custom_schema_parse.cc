#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "api/cel_syntax.h"
#include "api/custom_schema.h"
#include "api/embedded.h"
#include "api/object.h"
#include "api/schema.h"

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

// Where a schema stands: what it has to say differs. Below allOf and the like it may not say what
// the structure is; kIntOrString: but for the types of an int-or-string.
enum class Place : uint8_t { kRoot, kField, kItem, kCombined, kIntOrString };

bool IsCombined(Place place) { return place == Place::kCombined || place == Place::kIntOrString; }

// [{"type": "integer"}, {"type": "string"}]
bool IsIntOrString(const JsonArray& any_of) {
  const auto is_only = [](const Json& schema, std::string_view type) {
    return schema.is_object() && schema.get_object().size() == 1 && TextAt(schema, "type") == type;
  };
  return any_of.size() == 2 && is_only(any_of[0], "integer") && is_only(any_of[1], "string");
}

// Whether a member of a schema says anything.
bool Says(const Json& schema, std::string_view member) {
  const Json* value = FindMember(schema, member);
  if (value == nullptr || *value == "" || *value == false) return false;
  return !value->is_array() || !value->get_array().empty();
}

// A pattern of that many characters, repetitions written out, compiles in 0.2 s.
constexpr int64_t kPatternSizeMax = 100'000;

bool Continues(std::string_view pattern, size_t at, std::string_view text) {
  return at < pattern.size() && pattern.substr(at).starts_with(text);
}

// Steps over a class. How many parts it has.
int64_t TakeClass(std::string_view pattern, size_t& at) {
  int64_t parts = 0;
  const size_t first = at + (Continues(pattern, at + 1, "^") ? 2 : 1);
  for (at = first; at < pattern.size() && (pattern[at] != ']' || at == first); ++at) {
    if (pattern[at] == '\\') ++at;
    if (Continues(pattern, at, "[:")) at = std::min(pattern.find(']', at), pattern.size());
    // A range is one.
    parts += Continues(pattern, at + 1, "-") ? -1 : 1;
  }
  return std::max<int64_t>(parts, 1);
}

// What stands in braces as a repetition, {2}, {2,} or {2,5}: the most times; 0: it is none.
int64_t TakeTimes(std::string_view pattern, size_t& at) {
  const size_t end = pattern.find('}', at);
  if (end == pattern.npos) return 0;
  int64_t most = 0;
  int64_t number = 0;
  for (const char c : pattern.substr(at + 1, end - at - 1)) {
    if (c != ',' && (c < '0' || c > '9')) return 0;
    number = c == ',' ? 0 : std::min<int64_t>(number * 10 + (c - '0'), kPatternSizeMax);
    most = std::max(most, number);
  }
  at = end;
  return std::max<int64_t>(most, 1);
}

// About how many characters and classes a pattern has, with its repetitions written out, which a
// short one may have without end. More than kPatternSizeMax are some more.
int64_t PatternSize(std::string_view pattern) {
  struct Group {
    int64_t before = 0;  // Without the last part, which may be repeated yet.
    int64_t last = 0;
  };
  constexpr int64_t kUnicodeClass = 100;
  std::vector<Group> groups(1);
  const auto add = [&](int64_t size) {
    Group& group = groups.back();
    group.before = std::min(group.before + group.last, kPatternSizeMax + 1);
    group.last = size;
  };
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\') {
      const bool unicode = Continues(pattern, at + 1, "p") || Continues(pattern, at + 1, "P");
      const bool braced = Continues(pattern, at + 2, "{");
      add(unicode ? kUnicodeClass : 1);
      at = unicode && braced ? std::min(pattern.find('}', at), pattern.size()) : at + 1;
    } else if (c == '[') {
      add(TakeClass(pattern, at));
    } else if (c == '(') {
      groups.emplace_back();
    } else if (c == ')' && groups.size() > 1) {
      const Group inner = groups.back();
      groups.pop_back();
      add(inner.before + inner.last + 1);
    } else if (const int64_t times = c == '{' ? TakeTimes(pattern, at) : 0; times > 0) {
      groups.back().last = std::min(groups.back().last * times, kPatternSizeMax + 1);
    } else {
      add(1);
    }
  }
  int64_t size = 0;
  for (const Group& group : groups) size += group.before + group.last;
  return size;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool BreaksLine(std::string_view text) {
  return text.find_first_of("\r\n") != std::string_view::npos;
}

// A rule as upstream's internal type is shown.
Json ShownRule(const Json& rule) {
  const auto value = [&](std::string_view member) {
    const Json* found = FindMember(rule, member);
    return found == nullptr ? Json() : *found;
  };
  return Json(JsonObject{{"Rule", TextAt(rule, "rule")},
                         {"Message", TextAt(rule, "message")},
                         {"MessageExpression", TextAt(rule, "messageExpression")},
                         {"Reason", value("reason")},
                         {"FieldPath", TextAt(rule, "fieldPath")},
                         {"OptionalOldSelf", value("optionalOldSelf")}});
}

// The next part of a rule's fieldPath: a delimiter, a quoted name with its quotes, or a name.
std::string_view TakePart(std::string_view& path) {
  size_t end = 0;
  if (path.starts_with('\'')) {
    end = 1;
    while (end < path.size() && (path[end] != '\'' || path[end - 1] == '\\')) ++end;
    end = std::min(end + 1, path.size());
  } else {
    end = std::max<size_t>(std::min(path.find_first_of(".[]"), path.size()), 1);
  }
  const std::string_view part = path.substr(0, end);
  path.remove_prefix(part.size());
  return part;
}

// The name between single quotes; nothing: there are none.
std::optional<std::string> Unquoted(std::string_view part) {
  if (part.size() < 2 || !part.starts_with('\'') || !part.ends_with('\'')) return std::nullopt;
  std::string name;
  for (size_t i = 1; i + 1 < part.size(); ++i) {
    if (part[i] == '\\' && i + 2 < part.size()) ++i;
    name += part[i];
  }
  return name;
}

// Whether a rule's fieldPath, as .a.b['c'], leads from a schema to a field that it knows.
bool LeadsToField(const Json& schema, std::string_view path) {
  const Json* at = &schema;
  while (!path.empty()) {
    const std::string_view how = TakePart(path);
    if ((how != "." && how != "[") || path.empty() || at == nullptr) return false;
    const std::string_view part = TakePart(path);
    std::optional<std::string> name(part);
    if (how == "[") name = Unquoted(part);
    if (!name) return false;
    if (const Json* properties = FindMember(*at, "properties")) {
      const auto* found = properties->if_object();
      at = found == nullptr ? nullptr : found->if_contains(*name);
      if (at == nullptr) return false;
    } else if (const Json* additional = FindMember(*at, "additionalProperties")) {
      at = additional->is_object() ? additional : nullptr;
    } else {
      return false;
    }
    if (how == "[" && (path.empty() || TakePart(path) != "]")) return false;
  }
  return true;
}

class Parser {
 public:
  Parser(std::vector<std::string>& unenforced, int64_t& steps)
      : unenforced_(unenforced), steps_(steps) {}

  CustomSchema ParseRoot(const Json& schema, const std::string& path, FieldErrors& errors) {
    const bool nullable = FlagAt(schema, "nullable");
    if (nullable)
      errors.push_back(ForbiddenField(path + ".nullable", "nullable cannot be true at the root"));
    CustomSchema root = Parse(schema, path, Place::kRoot);
    // Upstream looks at the structure of what is a schema at all, and tells in order of the texts.
    if (unsupported_) structural_.clear();
    std::ranges::sort(structural_, {}, [](const FieldError& error) { return ToString(error); });
    const bool fine = !nullable && structural_.empty() && errors_.empty() && expressions_.empty();
    for (FieldErrors* list : {&structural_, &errors_, &expressions_}) {
      std::ranges::move(*list, std::back_inserter(errors));
    }
    if (fine) std::ranges::move(defaults_, std::back_inserter(errors));
    return root;
  }

 private:
  CustomSchema Parse(const Json& schema, const std::string& path, Place place) {
    CustomSchema node;
    if (!schema.is_object()) return node;
    const size_t errors_before = errors_.size();
    if (++depth_ > kDepthMax) {
      errors_.push_back(
          ForbiddenField(path, fmt::format("schemas nest {} deep at most", kDepthMax)));
      --depth_;
      return node;
    }
    ParseType(schema, path, place, node);
    ParseLimits(schema, path, node);
    ParseMembers(schema, path, place, node);
    ParseLists(schema, path, place, node);
    ParseCombined(schema, path, place, node);
    Forbid(schema, path);
    CheckRules(schema, path);
    // What is told of an expression of a broken schema would help nobody.
    if (!IsCombined(place) && errors_.size() == errors_before) CheckExpressions(schema, path);
    if (IsCombined(place)) {
      ForbidStructure(schema, path, place);
    } else {
      CheckResource(schema, path, place);
    }
    ParseDefault(schema, path, place, node);
    --depth_;
    return node;
  }

  void Refuse(std::string path, std::string why) {
    structural_.push_back(ForbiddenField(std::move(path), std::move(why)));
  }

  void ParseType(const Json& schema, const std::string& path, Place place, CustomSchema& node) {
    constexpr std::array<std::string_view, 6> kTypes = {"object",  "array",  "string",
                                                        "integer", "number", "boolean"};
    constexpr std::array<std::string_view, 6> kSorted = {"array",  "boolean", "integer",
                                                         "number", "object",  "string"};
    const std::string_view type = TextAt(schema, "type");
    const auto* at = std::ranges::find(kTypes, type);
    if (at != kTypes.end()) node.type = static_cast<CustomSchema::Type>(at - kTypes.begin() + 1);
    node.format = TextAt(schema, "format");
    node.nullable = FlagAt(schema, "nullable");
    node.int_or_string = FlagAt(schema, "x-kubernetes-int-or-string");
    node.preserves_unknown = FlagAt(schema, "x-kubernetes-preserve-unknown-fields");
    node.embeds_resource = FlagAt(schema, "x-kubernetes-embedded-resource");
    node.map_as_whole = TextAt(schema, "x-kubernetes-map-type") == "atomic";
    if (!type.empty() && at == kTypes.end()) {
      errors_.push_back(NotSupportedField(path + ".type", type, kSorted));
      return;
    }
    if (IsCombined(place)) return;
    if (node.embeds_resource && type != "object") {
      constexpr const char* kWhy = "must be object if x-kubernetes-embedded-resource is true";
      structural_.push_back(type.empty() ? RequiredField(path + ".type", kWhy)
                                         : InvalidField(path + ".type", type, kWhy));
    } else if (type.empty() && place == Place::kRoot) {
      structural_.push_back(RequiredField(path + ".type", "must not be empty at the root"));
    } else if (type.empty() && !node.int_or_string && !node.preserves_unknown) {
      structural_.push_back(RequiredField(
          path + ".type", place == Place::kItem ? "must not be empty for specified array items"
                                                : "must not be empty for specified object fields"));
    }
    if (place == Place::kRoot && !type.empty() && type != "object") {
      structural_.push_back(InvalidField(path + ".type", type, "must be object at the root"));
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
    std::set<std::string> scalars;
    for (const Json& value : ArrayAt(schema, "enum")) {
      node.supported.push_back(value);
      if (!value.is_structured()) scalars.insert(ScalarText(value));
    }
    if (!scalars.empty())
      node.supported_scalars = std::make_shared<const std::set<std::string>>(std::move(scalars));
    node.pattern = TextAt(schema, "pattern");
    if (node.pattern.empty()) return;
    std::shared_ptr<const re2::RE2>& known = matchers_[node.pattern];
    if (known == nullptr) {
      const int64_t size = PatternSize(node.pattern);
      if (size <= kPatternSizeMax) steps_ -= size * kStepsOfInstruction;
      if (size > kPatternSizeMax || steps_ <= 0) {
        structural_.push_back(InvalidField(
            path + ".pattern", node.pattern,
            fmt::format("is too large: it repeats to some {} characters, of {} at most{}", size,
                        kPatternSizeMax,
                        steps_ <= 0 ? ", and so do all patterns and defaults together" : "")));
        return;
      }
      known = std::make_shared<re2::RE2>(node.pattern, re2::RE2::Quiet);
    }
    if (known->ok()) {
      node.matcher = known;
    } else {
      structural_.push_back(InvalidField(
          path + ".pattern", node.pattern,
          fmt::format("must be a valid regular expression, but isn't: {}", known->error())));
    }
  }

  void ParseMembers(const Json& schema, const std::string& path, Place place, CustomSchema& node) {
    const Place below = IsCombined(place) ? Place::kCombined : Place::kField;
    node.required = Texts(schema, "required");
    std::vector<std::pair<std::string, const Json*>> members;
    for (const auto& [name, member] : ObjectAt(schema, "properties"))
      members.emplace_back(name, &member);
    std::ranges::sort(members, {}, &std::pair<std::string, const Json*>::first);
    const bool embeds = FlagAt(schema, "x-kubernetes-embedded-resource");
    for (const auto& [name, member] : members) {
      node.names.push_back(name);
      const bool within = in_metadata_ || (embeds && name == "metadata");
      const bool before = std::exchange(in_metadata_, within);
      node.properties.push_back(
          Parse(*member, fmt::format("{}.properties[{}]", path, name), below));
      in_metadata_ = before;
      node.has_defaults |= node.properties.back().has_defaults;
    }
    const Json* additional = FindMember(schema, "additionalProperties");
    if (additional == nullptr) return;
    const std::string at = path + ".additionalProperties";
    if (place == Place::kRoot) Refuse(at, "must not be used at the root");
    if (!members.empty() && *additional != true) {
      errors_.push_back(
          ForbiddenField(at, "additionalProperties and properties are mutual exclusive"));
    } else if (additional->is_bool()) {
      node.additional_any = additional->get_bool();
    } else {
      node.additional.push_back(Parse(*additional, at, below));
      node.has_defaults |= node.additional.back().has_defaults;
    }
  }

  void ParseLists(const Json& schema, const std::string& path, Place place, CustomSchema& node) {
    if (const Json* items = FindMember(schema, "items"); items != nullptr) {
      if (items->is_array()) {
        errors_.push_back(
            ForbiddenField(path + ".items", "items must be a schema object and not an array"));
        unsupported_ = true;
        return;
      }
      // Items are told apart in two versions of an object by their keys alone.
      const bool loses = uncorrelated_.empty() && TextAt(schema, "x-kubernetes-list-type") != "map";
      if (loses) uncorrelated_ = path;
      node.items.push_back(
          Parse(*items, path + ".items", IsCombined(place) ? Place::kCombined : Place::kItem));
      if (loses) uncorrelated_.clear();
      node.has_defaults |= node.items.back().has_defaults;
    } else if (node.type == CustomSchema::Type::kArray && !IsCombined(place)) {
      structural_.push_back(RequiredField(path + ".items", "must be specified"));
    }
    const std::string_view type = TextAt(schema, "x-kubernetes-list-type");
    node.list_keys = Texts(schema, "x-kubernetes-list-map-keys");
    if (type == "set") node.list_type = CustomSchema::ListType::kSet;
    if (type == "map") node.list_type = CustomSchema::ListType::kMap;
    CheckMapType(schema, path);
    CheckListType(schema, path);
    if (type == "map") CheckMapList(schema, path, node);
    const Json* items = FindMember(schema, "items");
    if ((type == "set" || type == "map") && items != nullptr) {
      if (FlagAt(*items, "nullable")) {
        errors_.push_back(ForbiddenField(
            path + ".items.nullable",
            fmt::format("cannot be nullable when x-kubernetes-list-type is {}", type)));
      }
      if (type == "map") CheckKeys(*items, path, node);
    }
  }

  void CheckMapType(const Json& schema, const std::string& path) {
    if (FindMember(schema, "x-kubernetes-map-type") == nullptr) return;
    constexpr std::array<std::string_view, 2> kTypes = {"atomic", "granular"};
    const std::string_view type = TextAt(schema, "type");
    const std::string_view map = TextAt(schema, "x-kubernetes-map-type");
    constexpr const char* kWhy = "must be object if x-kubernetes-map-type is specified";
    if (type != "object") {
      errors_.push_back(type.empty() ? RequiredField(path + ".type", kWhy)
                                     : InvalidField(path + ".type", type, kWhy));
    }
    if (std::ranges::find(kTypes, map) == kTypes.end())
      errors_.push_back(NotSupportedField(path + ".x-kubernetes-map-type", map, kTypes));
  }

  void CheckListType(const Json& schema, const std::string& path) {
    const Json* given = FindMember(schema, "x-kubernetes-list-type");
    const bool keyed = !ArrayAt(schema, "x-kubernetes-list-map-keys").empty();
    const std::string at = path + ".x-kubernetes-list-type";
    constexpr const char* kMap = "must be map if x-kubernetes-list-map-keys is non-empty";
    if (given == nullptr) {
      if (keyed) errors_.push_back(RequiredField(at, kMap));
      return;
    }
    constexpr std::array<std::string_view, 3> kTypes = {"atomic", "set", "map"};
    constexpr const char* kArray = "must be array if x-kubernetes-list-type is specified";
    const std::string_view list = TextOf(*given);
    const std::string_view type = TextAt(schema, "type");
    if (type != "array") {
      errors_.push_back(type.empty() ? RequiredField(path + ".type", kArray)
                                     : InvalidField(path + ".type", type, kArray));
    } else if (list == "set") {
      CheckSetItems(OrEmptyObject(FindMember(schema, "items")), path + ".items");
    }
    if (std::ranges::find(kTypes, list) == kTypes.end())
      errors_.push_back(NotSupportedField(at, list, kTypes));
    if (keyed && list != "map") errors_.push_back(InvalidField(at, list, kMap));
  }

  // What stands in a set is compared as a whole.
  void CheckSetItems(const Json& items, const std::string& path) {
    constexpr const char* kWhy = "must be atomic as item of a list with x-kubernetes-list-type=set";
    const std::string_view type = TextAt(items, "type");
    const Json* list = FindMember(items, "x-kubernetes-list-type");
    if (type == "array" && list != nullptr && *list != "atomic")
      errors_.push_back(InvalidField(path + ".x-kubernetes-list-type", TextOf(*list), kWhy));
    if (type == "object" && TextAt(items, "x-kubernetes-map-type") != "atomic") {
      // Upstream shows the type of the list here.
      errors_.push_back(InvalidJsonField(path + ".x-kubernetes-map-type",
                                         list == nullptr ? Json() : *list, kWhy));
    }
  }

  void CheckMapList(const Json& schema, const std::string& path, const CustomSchema& node) {
    const std::string keys_path = path + ".x-kubernetes-list-map-keys";
    const JsonArray& keys = ArrayAt(schema, "x-kubernetes-list-map-keys");
    if (node.list_keys.empty()) {
      errors_.push_back(
          RequiredField(keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    const Json* items = FindMember(schema, "items");
    if (items == nullptr) {
      errors_.push_back(
          RequiredField(path + ".items", "must have a schema if x-kubernetes-list-type is map"));
      return;
    }
    const std::string_view type = TextAt(*items, "type");
    if (type != "object") {
      errors_.push_back(
          InvalidField(path + ".items.type", type,
                       "must be object if parent array's x-kubernetes-list-type is map"));
    }
    if (type != "object") return;
    std::vector<std::string_view> seen;
    bool twice = false;
    const JsonObject& properties = ObjectAt(*items, "properties");
    for (const std::string& key : node.list_keys) {
      const Json* property = FindMember(properties, key);
      const std::string_view of = property == nullptr ? "" : TextAt(*property, "type");
      if (property == nullptr) {
        errors_.push_back(InvalidJsonField(keys_path, Json(keys),
                                           "entries must all be names of item properties"));
      } else if (of == "array" || of == "object") {
        errors_.push_back(
            InvalidField(fmt::format("{}.items.properties[{}].type", path, key), type,
                         "must be a scalar type if parent array's x-kubernetes-list-type is map"));
      }
      twice |= std::ranges::find(seen, key) != seen.end();
      seen.push_back(key);
    }
    if (twice) {
      errors_.push_back(
          InvalidJsonField(keys_path, Json(keys), "must not contain duplicate entries"));
    }
  }

  // The keys of an item are always there.
  void CheckKeys(const Json& items, const std::string& path, const CustomSchema& node) {
    const std::vector<std::string> required = Texts(items, "required");
    for (const std::string& key : node.list_keys) {
      const Json* property = FindMember(ObjectAt(items, "properties"), key);
      if (property == nullptr) continue;
      const std::string at = fmt::format("{}.items.properties[{}]", path, key);
      if (std::ranges::find(required, key) == required.end() &&
          FindMember(*property, "default") == nullptr) {
        errors_.push_back(RequiredField(at + ".default",
                                        "this property is in x-kubernetes-list-map-keys, so it "
                                        "must have a default or be a required property"));
      }
      if (FlagAt(*property, "nullable")) {
        errors_.push_back(ForbiddenField(
            at + ".nullable",
            "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"));
      }
    }
  }

  void ParseCombined(const Json& schema, const std::string& path, Place place, CustomSchema& node) {
    const bool outer = !IsCombined(place) || place == Place::kIntOrString;
    for (const auto& [name, parts] :
         {std::pair{"allOf", &node.all_of}, {"anyOf", &node.any_of}, {"oneOf", &node.one_of}}) {
      const JsonArray& list = ArrayAt(schema, std::string_view(name));
      const bool types = outer && parts == &node.any_of && IsIntOrString(list);
      for (size_t i = 0; i < list.size(); ++i) {
        Place below = types ? Place::kIntOrString : Place::kCombined;
        // The first of allOf may hold the types as well.
        if (!IsCombined(place) && parts == &node.all_of && i == 0) {
          const JsonArray& first = ArrayAt(list[i], "anyOf");
          if (IsIntOrString(first) && !Says(list[i], "type")) below = Place::kIntOrString;
        }
        parts->push_back(Parse(list[i], fmt::format("{}.{}[{}]", path, name, i), below));
      }
    }
    if (const Json* none = FindMember(schema, "not"))
      node.none_of.push_back(Parse(*none, path + ".not", Place::kCombined));
  }

  // What a schema below allOf and the like leaves to the structure.
  void ForbidStructure(const Json& schema, const std::string& path, Place place) {
    constexpr std::string_view kEmpty = "must be empty to be structural";
    constexpr std::string_view kUndefined = "must be undefined to be structural";
    constexpr std::string_view kFalse = "must be false to be structural";
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kMembers = {
        {{"type", kEmpty},
         {"title", kEmpty},
         {"description", kEmpty},
         {"nullable", kFalse},
         {"x-kubernetes-preserve-unknown-fields", kFalse},
         {"x-kubernetes-embedded-resource", kFalse},
         {"x-kubernetes-int-or-string", kFalse},
         {"x-kubernetes-list-map-keys", kEmpty},
         {"x-kubernetes-list-type", kUndefined},
         {"x-kubernetes-map-type", kUndefined},
         {"x-kubernetes-validations", kEmpty}}};
    for (const auto& [member, why] : kMembers) {
      if (member == "type" && place == Place::kIntOrString) continue;
      if (Says(schema, member)) Refuse(fmt::format("{}.{}", path, member), std::string(why));
    }
    if (FindMember(schema, "additionalProperties") != nullptr)
      Refuse(path + ".additionalProperties", std::string(kUndefined));
    if (schema.get_object().if_contains("default") != nullptr)
      Refuse(path + ".default", std::string(kUndefined));
    if (FindMember(ObjectAt(schema, "properties"), "metadata") != nullptr)
      Refuse(path + ".properties[metadata]", "must not be specified in a nested context");
  }

  // An object that is one of Kubernetes, at the root or inside.
  void CheckResource(const Json& schema, const std::string& path, Place place) {
    const bool embeds = FlagAt(schema, "x-kubernetes-embedded-resource");
    const bool preserves = FlagAt(schema, "x-kubernetes-preserve-unknown-fields");
    if (FlagAt(schema, "x-kubernetes-int-or-string")) {
      for (const std::string_view other :
           {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"}) {
        if (!FlagAt(schema, other)) continue;
        structural_.push_back(InvalidJsonField(fmt::format("{}.{}", path, other), Json(true),
                                               "must be false if x-kubernetes-int-or-string is "
                                               "true"));
      }
    }
    const JsonObject& properties = ObjectAt(schema, "properties");
    if (embeds && FindMember(schema, "additionalProperties") != nullptr) {
      Refuse(path + ".additionalProperties",
             "must not be used if x-kubernetes-embedded-resource is set");
    }
    if (embeds && !preserves && properties.empty()) {
      structural_.push_back(RequiredField(path + ".properties",
                                          "must not be empty if x-kubernetes-embedded-resource is "
                                          "true without x-kubernetes-preserve-unknown-fields"));
    }
    if (!embeds && place != Place::kRoot) return;
    for (const auto& [member, type] :
         {std::pair{"apiVersion", "string"}, std::pair{"kind", "string"},
          std::pair{"metadata", "object"}}) {
      const Json* property = FindMember(properties, member);
      if (property == nullptr) continue;
      if (place == Place::kRoot && std::string_view(type) == "string")
        ForbidDefault(*property, fmt::format("{}.properties[{}]", path, member), member);
      if (TextAt(*property, "type") == type) continue;
      structural_.push_back(InvalidField(fmt::format("{}.properties[{}].type", path, member),
                                         TextAt(*property, "type"),
                                         fmt::format("must be {}", type)));
    }
    const Json* metadata = FindMember(properties, "metadata");
    if (place == Place::kRoot && metadata != nullptr)
      CheckMetadata(*metadata, path + ".properties[metadata]");
  }

  void ForbidDefault(const Json& schema, const std::string& path, std::string_view of) {
    if (FindMember(schema, "default") == nullptr) return;
    errors_.push_back(
        ForbiddenField(path + ".default", fmt::format("must not be set in top-level {}", of)));
  }

  // Of the metadata of an object only its name may be told more of.
  void CheckMetadata(const Json& schema, const std::string& path) {
    if (!schema.is_object()) return;
    bool other = false;
    for (const auto& [member, value] : schema.get_object())
      other |= member != "type" && member != "default" && member != "properties";
    for (const auto& [name, value] : ObjectAt(schema, "properties")) {
      other |= name != "name" && name != "generateName";
      ForbidDefault(value, fmt::format("{}.properties[{}]", path, name), "metadata");
    }
    ForbidDefault(schema, path, "metadata");
    if (other) {
      Refuse(path,
             "must not specify anything other than name and generateName, but metadata is "
             "implicitly specified");
    }
  }

  void CheckRules(const Json& schema, const std::string& path) {
    constexpr std::array<std::string_view, 4> kReasons = {
        "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"};
    const JsonArray& rules = ArrayAt(schema, "x-kubernetes-validations");
    for (size_t i = 0; i < rules.size(); ++i) {
      const std::string at = fmt::format("{}.x-kubernetes-validations[{}]", path, i);
      if (unenforced_.size() < kUnenforcedMax) unenforced_.push_back(at);
      CheckMessage(rules[i], at);
      const std::string_view expression = TextAt(rules[i], "messageExpression");
      if (!expression.empty() && Trimmed(expression).empty()) {
        errors_.push_back(RequiredField(at + ".messageExpression",
                                        "messageExpression must be non-empty if specified"));
      }
      const std::string_view reason = TextAt(rules[i], "reason");
      if (FindMember(rules[i], "reason") != nullptr &&
          std::ranges::find(kReasons, reason) == kReasons.end())
        errors_.push_back(NotSupportedField(at + ".reason", reason, kReasons));
      CheckFieldPath(schema, TextAt(rules[i], "fieldPath"), at + ".fieldPath");
    }
  }

  void CheckMessage(const Json& rule, const std::string& at) {
    const std::string_view text = Trimmed(TextAt(rule, "rule"));
    const std::string_view message = TextAt(rule, "message");
    const std::string_view said = Trimmed(message);
    if (text.empty()) {
      errors_.push_back(RequiredField(at + ".rule", "rule is not specified"));
    } else if (!message.empty() && said.empty()) {
      errors_.push_back(InvalidField(at + ".message", message, "must be non-empty if specified"));
    } else if (BreaksLine(said)) {
      errors_.push_back(InvalidField(at + ".message", message, "must not contain line breaks"));
    } else if (BreaksLine(text) && said.empty()) {
      errors_.push_back(
          RequiredField(at + ".message", "message must be specified if rule contains line breaks"));
    }
  }

  void CheckFieldPath(const Json& schema, std::string_view field, const std::string& at) {
    if (field.empty()) return;
    const auto refuse = [&](const char* why) { errors_.push_back(InvalidField(at, field, why)); };
    if (Trimmed(field).empty()) refuse("must be non-empty if specified");
    if (BreaksLine(field)) refuse("must not contain line breaks");
    if (!LeadsToField(schema, field)) refuse("must be a valid path");
  }

  // The expressions of rules, whose schema is fine otherwise.
  void CheckExpressions(const Json& schema, const std::string& path) {
    const JsonArray& rules = ArrayAt(schema, "x-kubernetes-validations");
    for (size_t i = 0; i < rules.size(); ++i) {
      const std::string at = fmt::format("{}.x-kubernetes-validations[{}]", path, i);
      const std::string_view text = TextAt(rules[i], "rule");
      const CelSyntax rule = ParseCel(text);
      if (!rule.problem.empty()) {
        expressions_.push_back(InvalidJsonField(at + ".rule", ShownRule(rules[i]),
                                                "compilation failed: " + rule.problem));
      }
      if (const std::string_view message = TextAt(rules[i], "messageExpression");
          !message.empty()) {
        if (const CelSyntax said = ParseCel(message); !said.problem.empty()) {
          expressions_.push_back(
              InvalidJsonField(at + ".messageExpression", ShownRule(rules[i]),
                               "messageExpression compilation failed: " + said.problem));
        }
      }
      const Json* optional = FindMember(rules[i], "optionalOldSelf");
      if (rule.problem.empty() && rule.names_old_self) {
        if (uncorrelated_.empty()) continue;
        expressions_.push_back(InvalidField(
            at + ".rule", text,
            fmt::format(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {}",
                uncorrelated_)));
      } else if (optional != nullptr) {
        expressions_.push_back(InvalidJsonField(at + ".optionalOldSelf", *optional,
                                                "may not be set if oldSelf is not used in rule"));
      }
    }
  }

  // What a structural schema may not say.
  void Forbid(const Json& schema, const std::string& path) {
    for (const std::string_view name :
         {"$ref", "definitions", "dependencies", "id", "additionalItems", "patternProperties"}) {
      if (FindMember(schema, name) == nullptr) continue;
      errors_.push_back(ForbiddenField(fmt::format("{}.{}", path, name),
                                       fmt::format("{} is not supported", name)));
      unsupported_ = true;
    }
    if (FlagAt(schema, "uniqueItems")) {
      errors_.push_back(ForbiddenField(
          path + ".uniqueItems",
          "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"));
    }
    const Json* preserves = FindMember(schema, "x-kubernetes-preserve-unknown-fields");
    if (preserves != nullptr && *preserves == false) {
      errors_.push_back(InvalidJsonField(path + ".x-kubernetes-preserve-unknown-fields", *preserves,
                                         "must be true or undefined"));
    }
  }

  void ParseDefault(const Json& schema, const std::string& path, Place place, CustomSchema& node) {
    const Json* value = schema.get_object().if_contains("default");
    if (value == nullptr) return;
    if (IsCombined(place)) return;
    // It is checked as the one member of an object would be.
    CustomSchema holder{.type = CustomSchema::Type::kObject};
    holder.names = {"default"};
    holder.properties = {node};
    // What the root stands for is an object of its own, as what is embedded.
    holder.properties.front().embeds_resource |= place == Place::kRoot;
    JsonObject object{{"default", *value}};
    // What metadata has no schema tells.
    const bool unknown = !in_metadata_ && !PruneCustom(holder, object).empty();
    if (in_metadata_ && path.ends_with(".properties[metadata]")) DropUnknownMetadata(object);
    if (unknown) {
      defaults_.push_back(
          InvalidJsonField(path + ".default", *value, "must not have unknown fields"));
    }
    const Json holding = object;
    for (FieldError& error : CheckEmbedded(holder, holding)) AddOfDefault(path, std::move(error));
    for (FieldError& error : CheckCustomSchema(holder, object, steps_))
      AddOfDefault(path, std::move(error));
    node.default_value = object["default"];
    node.has_defaults = true;
  }

  // An error of a default, told of where that stands. Upstream's has no name.
  void AddOfDefault(const std::string& path, FieldError error) {
    constexpr std::string_view kName = "default";
    if (error.field.starts_with(kName)) {
      if (error.field.substr(kName.size()).starts_with('[')) error.field.insert(kName.size(), ".");
      error.field = fmt::format("{}.{}", path, error.field);
    }
    for (const std::string_view before : {"", "\""}) {
      if (!error.detail.starts_with(fmt::format("{}{}", before, kName))) continue;
      const size_t end = before.size() + kName.size();
      const bool dot = end < error.detail.size() && error.detail[end] == '.';
      error.detail.erase(before.size(), kName.size() + (dot ? 1 : 0));
    }
    defaults_.push_back(std::move(error));
  }

  // Of a default of the metadata of an object within an object.
  static void DropUnknownMetadata(JsonObject& holder) {
    Json& metadata = holder["default"];
    if (!metadata.is_object()) return;
    const Type type = TypeAt(FindField(TypeOf(KindId::kPod), "metadata")->type);
    std::vector<std::string> unknown;
    for (const auto& [name, value] : metadata.get_object()) {
      if (FindField(type, name) == nullptr) unknown.emplace_back(name);
    }
    for (const std::string& name : unknown) RemoveMember(metadata.get_object(), name);
  }

  // To compile one takes the time of so many steps, measured.
  static constexpr int64_t kStepsOfInstruction = 30;

  std::vector<std::string>& unenforced_;
  int64_t& steps_;
  std::map<std::string, std::shared_ptr<const re2::RE2>> matchers_;  // By their patterns.
  FieldErrors errors_;
  FieldErrors structural_;
  FieldErrors expressions_;
  std::string uncorrelated_;  // The first list above whose items can't be told apart.
  FieldErrors defaults_;
  bool unsupported_ = false;  // Something of JSON schemas that these are without.
  bool in_metadata_ = false;  // Within that of an object that is embedded.
  int depth_ = 0;
};

}  // namespace

ParsedSchema ParseCustomSchema(const Json& schema, std::string_view path, FieldErrors& errors,
                               int64_t& steps) {
  ParsedSchema parsed;
  Parser parser(parsed.unenforced, steps);
  parsed.root = parser.ParseRoot(schema, std::string(path), errors);
  return parsed;
}

}  // namespace berth::api
