#include "api/structural.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "api/custom_schema.h"
#include "api/object.h"
#include "api/patterns.h"
#include "api/ratchet.h"
#include "api/schema_errors.h"
#include "api/text.h"
#include "api/timestamp.h"
#include "api/unknown_fields.h"
#include "api/validate_common.h"

namespace berth::api {
namespace {

using rules::AddInvalidType;
using rules::AddNoField;
using rules::AddSaid;
using rules::AddType;
using rules::FoundType;
using rules::Path;

bool IsMetadata(const Field& field) { return field.name == "metadata"; }

// Puts members in the order of the type's fields and drops those that are none.
void OrderMembers(const Type& type, JsonObject& object) {
  std::vector<std::pair<const Field*, Json*>> members;
  members.reserve(object.size());
  const Field* field = nullptr;
  for (auto& [key, value] : object) {
    field = FindField(type, key, field);
    if (field != nullptr) members.emplace_back(field, &value);
  }
  std::ranges::sort(members);
  JsonObject ordered(object.storage());
  ordered.reserve(members.size());
  for (const auto& [known, value] : members) ordered.emplace(known->name, std::move(*value));
  object = std::move(ordered);
}

bool MeansInteger(Value value) {
  return value == Value::kInt32 || value == Value::kInt64 || value == Value::kQuantity ||
         value == Value::kIntOrString;
}

class Pruner {
 public:
  explicit Pruner(const Schema& schema) : schema_(schema) {}

  void Object(const Type& type, JsonObject& object, bool root) {
    bool tidy = true;
    const Field* last = nullptr;
    for (auto& [key, value] : object) {
      const Field* field = FindField(type, key, last);
      if (field == nullptr) {
        unknown_.Add(key);
        tidy = false;
        continue;
      }
      tidy = tidy && last < field;
      last = field;
      if (root && IsMetadata(*field)) continue;
      const size_t size = unknown_.Descend(field->name);
      Member(*field, value);
      unknown_.Return(size);
    }
    if (!tidy) OrderMembers(type, object);
  }

  [[nodiscard]] std::vector<std::string> TakeProblems() { return unknown_.Take(); }

 private:
  void Member(const Field& field, Json& value) {
    switch (field.shape) {
      case Shape::kOne:
        Item(field, value);
        return;
      case Shape::kList:
        List(field, value);
        return;
      case Shape::kMap:
      case Shape::kMapOfLists:
        if (!value.is_object()) return;
        for (auto& [key, item] : value.get_object()) {
          const size_t size = unknown_.Descend(key);
          if (field.shape == Shape::kMap) {
            Item(field, item);
          } else {
            List(field, item);
          }
          unknown_.Return(size);
        }
        SortMembers(value.get_object());
        return;
    }
  }

  void List(const Field& field, Json& value) {
    if (!value.is_array()) return;
    JsonArray& items = value.get_array();
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t size = unknown_.Descend(i);
      Item(field, items[i]);
      unknown_.Return(size);
    }
  }

  void Item(const Field& field, Json& value) {
    if (field.value == Value::kObject && value.is_object()) {
      Object(schema_.at(field.type), value.get_object(), false);
    } else if (MeansInteger(field.value)) {
      SettleNumber(value);
    }
  }

  const Schema& schema_;
  UnknownFields unknown_;
};

class Defaulter {
 public:
  explicit Defaulter(const Schema& schema) : schema_(schema) {}

  void Object(const Type& type, JsonObject& object, bool root) {
    bool tidy = true;
    for (const Field& field : type.fields) {
      if (root && IsMetadata(field)) continue;
      Json* value = object.if_contains(field.name);
      if (value == nullptr || value->is_null()) {
        if (field.default_json.empty()) {
          if (value != nullptr) RemoveMember(object, field.name);
          continue;
        }
        tidy = tidy && value != nullptr;
        value = &api::Member(object, field.name);
        *value = boost::json::parse(field.default_json, object.storage());
      }
      Member(field, *value);
    }
    if (!tidy) OrderMembers(type, object);
  }

 private:
  void Member(const Field& field, Json& value) {
    switch (field.shape) {
      case Shape::kOne:
        Item(field, value);
        return;
      case Shape::kList:
        List(field, value);
        return;
      case Shape::kMap:
      case Shape::kMapOfLists:
        Map(field, value);
        return;
    }
  }

  void Map(const Field& field, Json& value) {
    if (!value.is_object()) return;
    JsonObject& map = value.get_object();
    std::vector<std::string> nulls;
    for (auto& [key, item] : map) {
      if (item.is_null()) {
        nulls.emplace_back(key);
      } else if (field.shape == Shape::kMap) {
        Item(field, item);
      } else {
        List(field, item);
      }
    }
    for (const std::string& key : nulls) RemoveMember(map, key);
  }

  void List(const Field& field, Json& value) {
    if (!value.is_array()) return;
    for (Json& item : value.get_array()) Item(field, item);
  }

  void Item(const Field& field, Json& value) {
    if (field.value == Value::kObject && value.is_object()) {
      Object(schema_.at(field.type), value.get_object(), false);
    }
  }

  const Schema& schema_;
};

std::string_view WantedType(Value value) {
  switch (value) {
    case Value::kString:
    case Value::kBytes:
    case Value::kTime:
    case Value::kMicroTime:
      return "string";
    case Value::kBool:
      return "boolean";
    case Value::kInt32:
    case Value::kInt64:
      return "integer";
    case Value::kNumber:
      return "number";
    case Value::kQuantity:
    case Value::kIntOrString:
      return "integer,string";
    case Value::kRaw:
      return "";
    case Value::kObject:
      return "object";
  }
  return "";
}

bool HasType(const Json& value, Value wanted) {
  if (wanted == Value::kRaw) return true;
  if (wanted == Value::kNumber) return value.is_number();
  return WantedType(wanted).contains(FoundType(value));
}

// The members of an item that tell it from others.
JsonObject KeysOf(const Field& field, const Json& item) {
  JsonObject keys;
  std::string_view rest = field.list_keys;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (const Json* value = FindMember(item, name)) keys.emplace(name, *value);
  }
  return keys;
}

class Checker {
 public:
  explicit Checker(const Schema& schema) : schema_(schema) {}

  // `old` is what the object replaces, or null; so it is below.
  void Object(const Type& type, const JsonObject& object, const Json* old, const Path* parent) {
    const auto path_of = [&](const Field& field) {
      return parent == nullptr ? Path(field.name) : parent->At(field.name);
    };
    for (const Field& field : type.fields) {
      if (field.has(kMandatory) && !object.contains(field.name)) {
        rules::AddRequired(errors_, path_of(field));
      }
    }
    for (const Field& field : type.fields) {
      if (parent == nullptr && IsMetadata(field)) continue;
      const Json* value = object.if_contains(field.name);
      if (value != nullptr)
        Member(field, *value, old == nullptr ? nullptr : FindMember(*old, field.name),
               path_of(field));
    }
  }

  [[nodiscard]] bool has_duplicates() const { return !duplicates_.empty(); }
  void ForgetDuplicates() { duplicates_.clear(); }

  [[nodiscard]] FieldErrors TakeErrors() {
    std::ranges::move(duplicates_, std::back_inserter(errors_));
    return std::move(errors_);
  }

 private:
  [[nodiscard]] bool IsLetThrough(const SchemaNode& node, const Json& value, const Json* old) {
    return old != nullptr && IsUnchanged(node, value, *old, steps_);
  }

  void Member(const Field& field, const Json& value, const Json* old, const Path& path) {
    if (IsLetThrough({schema_, field}, value, old)) return;
    switch (field.shape) {
      case Shape::kOne:
        Item(field, value, old, path);
        return;
      case Shape::kList:
        List({schema_, field}, field, {value, old}, path);
        return;
      case Shape::kMap:
      case Shape::kMapOfLists:
        Map(field, {value, old}, path);
        return;
    }
  }

  // A value and what it was, or null.
  struct Change {
    const Json& value;
    const Json* old;
  };

  void Map(const Field& field, const Change& change, const Path& path) {
    if (!change.value.is_object()) {
      AddType(errors_, path, change.value, "object");
      return;
    }
    const JsonObject& map = change.value.get_object();
    CheckCountMax(field, path, map.size());
    for (const auto& [key, item] : map) {
      const std::optional<SchemaNode> node = SchemaNode(schema_, field).Member(key);
      const Json* old = change.old == nullptr ? nullptr : FindMember(*change.old, key);
      if (IsLetThrough(*node, item, old)) continue;
      if (field.shape == Shape::kMap) {
        Item(field, item, old, path.At(key));
      } else {
        List(*node, field, {item, old}, path.At(key));
      }
    }
  }

  void List(const SchemaNode& node, const Field& field, const Change& change, const Path& path) {
    if (!change.value.is_array()) {
      AddType(errors_, path, change.value, "array");
      return;
    }
    const JsonArray& items = change.value.get_array();
    const OldItems old_items(node, change.old, steps_);
    for (size_t i = 0; i < items.size(); ++i) {
      const Json* old = old_items.Of(items[i], steps_);
      if (old == nullptr || !IsLetThrough(*node.KeyedItem(), items[i], old))
        Item(field, items[i], old, path.Item(i));
    }
    const int64_t count_min = schema_.constraints(field).count_min;
    if (std::cmp_less(items.size(), count_min)) {
      errors_.push_back(InvalidField(
          path.text(), static_cast<int64_t>(items.size()),
          fmt::format("{} in body should have at least {} items", path.text(), count_min)));
    }
    CheckCountMax(field, path, items.size());
    if (field.has(kListMap | kListSet)) CheckUnique(field, items, path);
  }

  void CheckCountMax(const Field& field, const Path& path, size_t count) {
    const int64_t count_max = schema_.constraints(field).count_max;
    if (std::cmp_greater(count, count_max)) {
      errors_.push_back(TooManyField(path.text(), static_cast<int64_t>(count), count_max));
    }
  }

  void CheckUnique(const Field& field, const JsonArray& items, const Path& path) {
    std::set<std::string> seen;
    for (size_t i = 0; i < items.size(); ++i) {
      const Json key = field.has(kListMap) ? Json(KeysOf(field, items[i])) : items[i];
      if (seen.insert(boost::json::serialize(key)).second) continue;
      duplicates_.push_back(DuplicateJsonField(path.Item(i).text(), key));
    }
  }

  void Item(const Field& field, const Json& value, const Json* old, const Path& path) {
    const Constraints& constraints = schema_.constraints(field);
    if (!HasType(value, field.value)) {
      AddWrongType(field.value, value, path);
    } else if (field.value == Value::kObject) {
      const Type type = schema_.at(field.type);
      Object(type, value.get_object(), old, &path);
    } else if (value.is_string()) {
      CheckText(field.value, constraints, value.get_string(), path);
    } else if (value.is_int64()) {
      CheckInteger(field.value, constraints, value.get_int64(), path);
    }
    if (!constraints.supported.empty()) CheckSupported(constraints, value, path);
  }

  // The first of its troubles.
  void CheckText(Value kind, const Constraints& constraints, std::string_view text,
                 const Path& path) {
    const int64_t length =
        constraints.length_max == kNoMaximum && constraints.length_min == kNoMinimum
            ? 0
            : CharactersOf(text);
    if (kind == Value::kTime || kind == Value::kMicroTime) {
      if (!ParseMicroTime(text) && !ParseTimestamp(text)) {
        AddInvalidType(errors_, path, QuoteGo(text),
                       fmt::format("must be of type date-time: {}", QuoteGo(text)));
      }
    } else if (length > constraints.length_max) {
      errors_.push_back(TooLongField(path.text(), constraints.length_max));
    } else if (length < constraints.length_min) {
      AddSaid(errors_, path, QuoteGo(text),
              fmt::format("should be at least {} chars long", constraints.length_min));
    } else {
      const std::string_view pattern =
          kind == Value::kQuantity ? kQuantityPattern : constraints.pattern;
      if (pattern.empty()) return;
      const Matcher matches = FindMatcher(pattern);
      if (matches == nullptr || matches(text)) return;
      AddSaid(errors_, path, QuoteGo(text), fmt::format("should match '{}'", pattern));
    }
  }

  void CheckInteger(Value kind, const Constraints& constraints, int64_t number, const Path& path) {
    const bool narrow = kind == Value::kInt32;
    if (narrow && !std::in_range<int32_t>(number)) {
      AddNoField(errors_,
                 fmt::format("Checked value must be of type integer with format int32 in {}",
                             path.text()));
    }
    if (number > constraints.maximum) {
      AddSaid(errors_, path, std::to_string(number),
              fmt::format("should be less than or equal to {}", constraints.maximum));
    }
    if (number < constraints.minimum) {
      AddSaid(errors_, path, std::to_string(number),
              fmt::format("should be greater than or equal to {}", constraints.minimum));
    }
  }

  void CheckSupported(const Constraints& constraints, const Json& value, const Path& path) {
    std::vector<std::string_view> words;
    for (const auto word : std::views::split(constraints.supported, ' ')) words.emplace_back(word);
    if (value.is_string() && std::ranges::find(words, value.get_string()) != words.end()) return;
    FieldError error = NotSupportedField(path.text(), "", words);
    error.value = boost::json::serialize(value);
    errors_.push_back(std::move(error));
  }

  void AddWrongType(Value wanted, const Json& value, const Path& path) {
    AddType(errors_, path, value, WantedType(wanted));
    const bool either = wanted == Value::kQuantity || wanted == Value::kIntOrString;
    if (either) {
      // An integer and a string are two schemas, of which the first is shown.
      AddNoField(errors_,
                 fmt::format("\"{}\" must validate at least one schema (anyOf)", path.text()));
      AddType(errors_, path, value, "integer");
    }
    const bool integer = either || wanted == Value::kInt32 || wanted == Value::kInt64;
    if (integer && value.is_number()) {
      AddNoField(errors_,
                 fmt::format("Checked value must be of type integer {} in {}",
                             wanted == Value::kInt32 ? "with format int32" : "(default format)",
                             path.text()));
    }
  }

  const Schema& schema_;
  int64_t steps_ = kCheckStepsMax;  // Of comparisons.
  FieldErrors errors_;
  FieldErrors duplicates_;
};

}  // namespace

std::vector<std::string> PruneUnknown(const Schema& schema, TypeId type, JsonObject& document) {
  Pruner pruner(schema);
  pruner.Object(schema.at(type), document, true);
  return pruner.TakeProblems();
}

void ApplySchemaDefaults(const Schema& schema, TypeId type, JsonObject& document) {
  Defaulter(schema).Object(schema.at(type), document, true);
}

FieldErrors CheckSchema(const Schema& schema, TypeId type, const JsonObject& document) {
  Checker checker(schema);
  checker.Object(schema.at(type), document, nullptr, nullptr);
  return checker.TakeErrors();
}

FieldErrors CheckSchemaUpdate(const Schema& schema, TypeId type, const JsonObject& document,
                              const Json& old) {
  // What is right needs no old value; most is.
  if (FieldErrors errors = CheckSchema(schema, type, document); errors.empty() || !old.is_object())
    return errors;
  Checker checker(schema);
  checker.Object(schema.at(type), document, &old, nullptr);
  // Of items that are equal it says nothing where the old document has such, be they others.
  if (checker.has_duplicates()) {
    Checker before(schema);
    before.Object(schema.at(type), old.get_object(), nullptr, nullptr);
    if (before.has_duplicates()) checker.ForgetDuplicates();
  }
  return checker.TakeErrors();
}

}  // namespace berth::api
