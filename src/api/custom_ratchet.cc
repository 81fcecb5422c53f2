#include "api/custom_ratchet.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "api/object.h"

namespace berth::api {
namespace {

// A comparison of two values takes a fraction of what it takes to check one by its schema.
constexpr size_t kValuesPerStep = 4;

// The keys of an item of a map; nothing where one is missing or no scalar.
std::optional<std::string> KeyText(const CustomSchema& schema, const Json& item, int64_t& steps) {
  std::string text;
  for (const std::string& name : schema.list_keys) {
    const Json* key = FindMember(item, name);
    if (key == nullptr || key->is_structured() || key->is_null()) return std::nullopt;
    text += boost::json::serialize(*key) + ',';
  }
  steps -= 1 + static_cast<int64_t>(text.size() / 16);
  return text;
}

const CustomSchema* MemberOf(const CustomSchema& schema, std::string_view name) {
  if (const CustomSchema* property = schema.Property(name)) return property;
  return schema.additional.empty() ? nullptr : &schema.additional.front();
}

class Comparison {
 public:
  explicit Comparison(int64_t& steps) : steps_(steps) {}

  bool Same(const CustomSchema& schema, const Json& value, const Json& old) {
    if (!Take()) return false;
    if (const JsonObject* object = value.if_object())
      return old.is_object() && SameObject(schema, *object, old.get_object());
    if (const JsonArray* items = value.if_array())
      return old.is_array() && SameList(schema, *items, old);
    return value == old;
  }

 private:
  bool Take() {
    if (++values_ % kValuesPerStep == 0) --steps_;
    return steps_ > 0;
  }

  bool SameObject(const CustomSchema& schema, const JsonObject& object, const JsonObject& old) {
    if (object.size() != old.size()) return false;
    return std::ranges::all_of(object, [&](const auto& member) {
      const CustomSchema* known = MemberOf(schema, member.key());
      const Json* before = old.if_contains(member.key());
      return known != nullptr && before != nullptr && Same(*known, member.value(), *before);
    });
  }

  bool SameList(const CustomSchema& schema, const JsonArray& items, const Json& old) {
    const JsonArray& before = old.get_array();
    if (items.size() != before.size()) return false;
    if (schema.list_type != CustomSchema::ListType::kMap || schema.items.empty()) {
      return std::ranges::equal(
          items, before, [&](const Json& one, const Json& other) { return SameWhole(one, other); });
    }
    const OldItems old_items(schema, &old, steps_);
    return std::ranges::all_of(items, [&](const Json& item) {
      const Json* was = old_items.Of(item, steps_);
      return was != nullptr && Same(schema.items.front(), item, *was);
    });
  }

  // Whatever a schema says of it.
  bool SameWhole(const Json& value, const Json& old) {
    if (!Take()) return false;
    if (const JsonObject* object = value.if_object()) {
      const JsonObject* other = old.if_object();
      if (other == nullptr || object->size() != other->size()) return false;
      return std::ranges::all_of(*object, [&](const auto& member) {
        const Json* before = other->if_contains(member.key());
        return before != nullptr && SameWhole(member.value(), *before);
      });
    }
    if (const JsonArray* array = value.if_array()) {
      const JsonArray* other = old.if_array();
      return other != nullptr &&
             std::ranges::equal(*array, *other, [&](const Json& one, const Json& opposite) {
               return SameWhole(one, opposite);
             });
    }
    return value == old;
  }

  int64_t& steps_;
  size_t values_ = 0;
};

}  // namespace

OldItems::OldItems(const CustomSchema& schema, const Json* old, int64_t& steps) : schema_(schema) {
  if (schema.list_type != CustomSchema::ListType::kMap) return;
  const JsonArray* items = old == nullptr ? nullptr : old->if_array();
  if (items == nullptr) return;
  for (const Json& item : *items) {
    if (steps <= 0) return;
    // Of two with the same keys, the first.
    if (std::optional<std::string> text = KeyText(schema, item, steps))
      items_.try_emplace(std::move(*text), &item);
  }
}

const Json* OldItems::Of(const Json& item, int64_t& steps) const {
  if (items_.empty()) return nullptr;
  const std::optional<std::string> text = KeyText(schema_, item, steps);
  const auto at = text ? items_.find(*text) : items_.end();
  return at == items_.end() ? nullptr : at->second;
}

const Json* OldMember(const CustomSchema& schema, const Json* old, std::string_view name) {
  if (old == nullptr || MemberOf(schema, name) == nullptr) return nullptr;
  return FindMember(*old, name);
}

bool IsUnchanged(const CustomSchema& schema, const Json& value, const Json& old, int64_t& steps) {
  return Comparison(steps).Same(schema, value, old);
}

}  // namespace berth::api
