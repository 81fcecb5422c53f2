#include "api/ratchet.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <ranges>
#include <string_view>
#include <utility>

#include "api/object.h"

namespace berth::api {
namespace {

// A comparison of two values takes a fraction of what it takes to check one by its schema.
constexpr size_t kValuesPerStep = 4;

// The keys of an item of a map; nothing where one is missing or no scalar.
std::optional<std::string> KeyText(const std::vector<std::string_view>& names, const Json& item,
                                   int64_t& steps) {
  std::string text;
  for (const std::string_view name : names) {
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

  bool Same(const SchemaNode& schema, const Json& value, const Json& old) {
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

  bool SameObject(const SchemaNode& schema, const JsonObject& object, const JsonObject& old) {
    if (object.size() != old.size()) return false;
    return std::ranges::all_of(object, [&](const auto& member) {
      const std::optional<SchemaNode> known = schema.Member(member.key());
      const Json* before = old.if_contains(member.key());
      return known && before != nullptr && Same(*known, member.value(), *before);
    });
  }

  bool SameList(const SchemaNode& schema, const JsonArray& items, const Json& old) {
    const JsonArray& before = old.get_array();
    if (items.size() != before.size()) return false;
    const std::optional<SchemaNode> keyed = schema.KeyedItem();
    if (!keyed) {
      return std::ranges::equal(
          items, before, [&](const Json& one, const Json& other) { return SameWhole(one, other); });
    }
    const OldItems old_items(schema, &old, steps_);
    return std::ranges::all_of(items, [&](const Json& item) {
      const Json* was = old_items.Of(item, steps_);
      return was != nullptr && Same(*keyed, item, *was);
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

std::optional<SchemaNode> SchemaNode::Member(std::string_view name) const {
  if (custom_ != nullptr) {
    const CustomSchema* const member = MemberOf(*custom_, name);
    return member == nullptr ? std::nullopt : std::optional(SchemaNode(*member));
  }
  if (shape_ == Shape::kMap) return SchemaNode(*schema_, *field_, Shape::kOne);
  if (shape_ == Shape::kMapOfLists) return SchemaNode(*schema_, *field_, Shape::kList);
  if (shape_ != Shape::kOne || field_->value != Value::kObject) return std::nullopt;
  const Field* const member = FindField(schema_->at(field_->type), name);
  return member == nullptr ? std::nullopt : std::optional(SchemaNode(*schema_, *member));
}

std::optional<SchemaNode> SchemaNode::KeyedItem() const {
  if (custom_ != nullptr) {
    if (custom_->list_type != CustomSchema::ListType::kMap || custom_->items.empty())
      return std::nullopt;
    return SchemaNode(custom_->items.front());
  }
  if (shape_ != Shape::kList || !field_->has(kListMap)) return std::nullopt;
  return SchemaNode(*schema_, *field_, Shape::kOne);
}

std::vector<std::string_view> SchemaNode::ItemKeys() const {
  if (custom_ != nullptr) return {custom_->list_keys.begin(), custom_->list_keys.end()};
  std::vector<std::string_view> names;
  for (const auto name : std::views::split(field_->list_keys, ' ')) names.emplace_back(name);
  return names;
}

OldItems::OldItems(const SchemaNode& list, const Json* old, int64_t& steps) {
  const JsonArray* items = old == nullptr ? nullptr : old->if_array();
  if (items == nullptr || !list.KeyedItem()) return;
  keys_ = list.ItemKeys();
  for (const Json& item : *items) {
    if (steps <= 0) return;
    // Of two with the same keys, the first.
    if (std::optional<std::string> text = KeyText(keys_, item, steps))
      items_.try_emplace(std::move(*text), &item);
  }
}

const Json* OldItems::Of(const Json& item, int64_t& steps) const {
  if (items_.empty()) return nullptr;
  const std::optional<std::string> text = KeyText(keys_, item, steps);
  const auto at = text ? items_.find(*text) : items_.end();
  return at == items_.end() ? nullptr : at->second;
}

const Json* OldMember(const CustomSchema& schema, const Json* old, std::string_view name) {
  if (old == nullptr || MemberOf(schema, name) == nullptr) return nullptr;
  return FindMember(*old, name);
}

bool IsUnchanged(const SchemaNode& schema, const Json& value, const Json& old, int64_t& steps) {
  return Comparison(steps).Same(schema, value, old);
}

}  // namespace berth::api
