#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/go_text.h"
#include "api/object.h"
#include "api/patch.h"
#include "api/schema.h"
#include "api/text.h"

// Strategic merge as kubectl's users know it: Kubernetes' documentation of patches and the
// directives it describes. Lists of objects are merged by key through sorted indexes, so the cost
// is n log n in the lists' lengths.
namespace berth::api {
namespace {

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeysDirective = "$retainKeys";
// Of a list's name, with a slash before it.
constexpr std::string_view kDelete = "$deleteFromPrimitiveList";
constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrder = "$setElementOrder";
constexpr std::string_view kOrderPrefix = "$setElementOrder/";

using Storage = boost::json::storage_ptr;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalid, std::move(message));
}

// What upstream takes for a failure of its own.
std::unexpected<Error> Refused(std::string message) {
  return Fail(ErrorCode::kRefused, std::move(message));
}

// A value as Go's %v prints it.
std::string PrintGo(const Json& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_null()) return "<nil>";
  std::vector<std::string> parts;
  if (const JsonArray* array = value.if_array()) {
    for (const Json& item : *array) parts.push_back(PrintGo(item));
    return fmt::format("[{}]", fmt::join(parts, " "));
  }
  if (const JsonObject* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      parts.push_back(fmt::format("{}:{}", std::string_view(key), PrintGo(member)));
    }
    std::ranges::sort(parts);
    return fmt::format("map[{}]", fmt::join(parts, " "));
  }
  return boost::json::serialize(value);
}

bool IsDirective(std::string_view key) {
  return key == kDirective || key == kRetainKeysDirective || key.starts_with(kDeletePrefix) ||
         key.starts_with(kOrderPrefix);
}

// Whether an object says what is to be done with what it is merged with.
bool HasDirective(const JsonObject& object) {
  const Json* directive = object.if_contains(kDirective);
  return directive != nullptr && !directive->is_null();
}

enum class Directives : bool { kKept, kObeyed };

// What a patch's value means where there is nothing to merge it with: nulls go, and where
// directives are obeyed, an object that has one is nothing, whichever it is. So does the genuine
// server, which keeps the others; who conforms the result warns of them as of unknown fields.
std::optional<Json> Plain(const Json& value, Directives directives, const Storage& storage) {
  if (const JsonObject* object = value.if_object()) {
    if (directives == Directives::kObeyed && HasDirective(*object)) return std::nullopt;
    JsonObject kept(storage);
    kept.reserve(object->size());
    for (const auto& [key, member] : *object) {
      if (member.is_null()) continue;
      if (std::optional<Json> plain = Plain(member, directives, storage)) {
        kept.emplace(key, std::move(*plain));
      }
    }
    return kept;
  }
  if (const JsonArray* array = value.if_array()) {
    JsonArray kept(storage);
    kept.reserve(array->size());
    for (const Json& item : *array) {
      if (std::optional<Json> plain = Plain(item, directives, storage)) {
        kept.push_back(std::move(*plain));
      }
    }
    return kept;
  }
  return Json(value, storage);
}

// Whether Plain would change nothing of a value.
bool IsPlain(const Json& value, Directives directives) {
  if (const JsonObject* object = value.if_object()) {
    if (directives == Directives::kObeyed && HasDirective(*object)) return false;
    return std::ranges::all_of(*object, [&](const auto& member) {
      return !member.value().is_null() && IsPlain(member.value(), directives);
    });
  }
  const JsonArray* array = value.if_array();
  if (array == nullptr) return true;
  return std::ranges::all_of(*array, [&](const Json& item) { return IsPlain(item, directives); });
}

// Plain of a value that is done with: most are moved as they stand.
std::optional<Json> TakePlain(Json& value, Directives directives, const Storage& storage) {
  if (!IsPlain(value, directives)) return Plain(value, directives, storage);
  return Json(std::move(value), storage);
}

// Whether a number without a fraction is written with one or with an exponent, and fits an integer.
bool IsWhole(const Json& value) {
  const double* number = value.if_double();
  return number != nullptr && std::trunc(*number) == *number && std::fabs(*number) < 0x1p63;
}

bool HasWhole(const Json& value) {
  if (const JsonArray* array = value.if_array()) return std::ranges::any_of(*array, HasWhole);
  const JsonObject* object = value.if_object();
  if (object == nullptr) return IsWhole(value);
  return std::ranges::any_of(*object, [](const auto& member) { return HasWhole(member.value()); });
}

void MakeIntegers(Json& value) {
  if (IsWhole(value)) value = static_cast<int64_t>(value.get_double());
  if (JsonArray* array = value.if_array()) {
    for (Json& item : *array) MakeIntegers(item);
  }
  if (JsonObject* object = value.if_object()) {
    for (auto& member : *object) MakeIntegers(member.value());
  }
}

// What tells the items of a list apart: the merge key's value, or the item itself, as text.
using Keys = std::vector<std::string>;
struct Item {
  std::string_view key;  // A view of one of the Keys, which live longer.
  Json value;
};
using Items = std::vector<Item>;

// Where keys stand first; views of keys that live longer. Few are looked through, more are indexed.
class Order {
 public:
  explicit Order(const Keys& keys) {
    few_.reserve(std::min(keys.size(), kFewMax));
    for (size_t i = 0; i < keys.size(); ++i) Add(keys[i], i);
  }

  void Add(std::string_view key, size_t place) {
    if (few_.size() < kFewMax) {
      few_.emplace_back(key, place);
      return;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    many_.emplace(key, place);
  }
  [[nodiscard]] std::optional<size_t> Find(std::string_view key) const {
    if (!many_.empty()) {
      const auto at = many_.find(key);
      return at == many_.end() ? std::nullopt : std::optional(at->second);
    }
    for (const auto& [name, place] : few_) {
      if (SameText(name, key)) return place;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool contains(std::string_view key) const { return Find(key).has_value(); }

 private:
  static constexpr size_t kFewMax = 16;
  std::vector<std::pair<std::string_view, size_t>> few_;
  std::map<std::string_view, size_t> many_;
};

// Most keys are strings, which need no escapes to differ from all else.
std::string TextOfKey(const Json& key) {
  const boost::json::string* text = key.if_string();
  if (text == nullptr) return boost::json::serialize(key);
  std::string result;
  result.reserve(text->size() + 1);
  result += '"';
  result += *text;
  return result;
}

// Puts what the patch names in the patch's order and the rest in the list's own, and interleaves
// the two: an item that the patch does not name stands before one that it names where the list had
// them so.
JsonArray Arrange(Items merged, const Keys& patch_order, const Keys& list_order,
                  const Storage& storage) {
  const Order in_patch(patch_order);
  const Order in_list(list_order);
  Items named;
  Items others;
  named.reserve(merged.size());
  for (Item& item : merged) {
    (in_patch.contains(item.key) ? named : others).push_back(std::move(item));
  }
  const auto sort = [](Items& items, const Order& order) {
    const auto place = [&](const Item& item) { return order.Find(item.key).value_or(SIZE_MAX); };
    if (!std::ranges::is_sorted(items, {}, place)) std::ranges::stable_sort(items, {}, place);
  };
  sort(named, in_patch);
  sort(others, in_list);
  JsonArray result(storage);
  result.reserve(named.size() + others.size());
  size_t next_named = 0;
  for (Item& other : others) {
    const auto goes_first = [&](const Item& item) {
      const std::optional<size_t> left = in_list.Find(other.key);
      const std::optional<size_t> right = in_list.Find(item.key);
      return left && right && *left < *right;
    };
    while (next_named < named.size() && !goes_first(named[next_named])) {
      result.push_back(std::move(named[next_named++].value));
    }
    result.push_back(std::move(other.value));
  }
  while (next_named < named.size()) result.push_back(std::move(named[next_named++].value));
  return result;
}

// The key of an item of a list of objects; of any item where there is no merge key.
Result<std::string> KeyOf(const Json& item, std::string_view merge_key) {
  if (merge_key.empty()) return TextOfKey(item);
  const JsonObject* object = item.if_object();
  const Json* key = object == nullptr ? nullptr : object->if_contains(merge_key);
  if (key == nullptr) {
    return Refused(
        fmt::format("map: {} does not contain declared merge key: {}", PrintGo(item), merge_key));
  }
  return TextOfKey(*key);
}

Result<Keys> KeysOf(const JsonArray& array, std::string_view merge_key) {
  Keys keys;
  keys.reserve(array.size());
  for (const Json& item : array) {
    Result<std::string> key = KeyOf(item, merge_key);
    if (!key) return std::unexpected(key.error());
    keys.push_back(std::move(*key));
  }
  return keys;
}

// Takes the items out of their list.
Items ToItems(JsonArray& array, const Keys& keys) {
  Items items;
  items.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) items.push_back({keys[i], std::move(array[i])});
  return items;
}

// The kind of a value as Go tells decoded ones apart.
boost::json::kind KindInGo(const Json& value) {
  return value.is_uint64() ? boost::json::kind::double_ : value.kind();
}

// A directive that there is not. What is no text Go's %s shows with its type.
std::unexpected<Error> NoDirective(const Json& directive, const Json& patch) {
  std::string shown = PrintGo(directive);
  if (directive.is_null()) shown = "%!s(<nil>)";
  if (!directive.is_string() && directive.is_primitive() && !directive.is_null())
    shown = fmt::format("%!s({}={})", GoTypeOf(directive), shown);
  return Refused(fmt::format("unknown patch type: {} in map: {}", shown, PrintGo(patch)));
}

// Lists merge only when all their items are of one kind.
Status CheckItems(const JsonArray& list, const JsonArray& patch) {
  std::optional<boost::json::kind> kind;
  for (const JsonArray* array : {&list, &patch}) {
    for (const Json& item : *array) {
      if (!kind && item.is_array()) return Invalid("lists of lists are not supported");
      if (kind && *kind != KindInGo(item)) {
        return Refused(fmt::format("list element types are not identical: [{} {}]",
                                   PrintGo(Json(list)), PrintGo(Json(patch))));
      }
      kind = KindInGo(item);
    }
  }
  return {};
}

// A field of an object that may have no schema (a map's values).
const Field* FieldOf(const std::optional<Type>& type, std::string_view key) {
  return type ? FindField(*type, key) : nullptr;
}
std::optional<Type> TypeOfField(const Field* field) {
  if (field == nullptr || field->type == kNoType) return std::nullopt;
  if (field->shape == Shape::kMap || field->shape == Shape::kMapOfLists) return std::nullopt;
  return TypeAt(field->type);
}

class Merger {
 public:
  // `original` becomes the merged object. What of the patch needn't be kept moves into it.
  Status MergeObject(JsonObject& original, JsonObject& patch, const std::optional<Type>& type) {
    if (const Json* directive = patch.if_contains(kDirective)) {
      return ApplyDirective(original, patch, *directive);
    }
    if (const Json* keys = patch.if_contains(kRetainKeysDirective)) {
      if (Status status = RetainKeys(original, patch, *keys); !status) return status;
    }
    std::set<std::string, std::less<>> ordered;
    for (const auto& [key, value] : patch) {
      if (key == kOrder || key == kDelete) {
        return Invalid(fmt::format("{} names no list: {}/<field>", std::string_view(key),
                                   std::string_view(key)));
      }
      if (!std::string_view(key).starts_with(kOrderPrefix)) continue;
      const std::string field(std::string_view(key).substr(kOrderPrefix.size()));
      if (Status status = MergeOrdered(original, patch, field, value, type); !status) {
        return status;
      }
      ordered.insert(field);
    }
    for (auto& [key, value] : patch) {
      const std::string_view name = key;
      if (name == kRetainKeysDirective || name.starts_with(kOrderPrefix)) continue;
      if (ordered.contains(name)) continue;
      const bool deletes = name.starts_with(kDeletePrefix);
      const std::string_view field = deletes ? name.substr(kDeletePrefix.size()) : name;
      if (Status status = MergeMember(original, field, value, type, deletes); !status) {
        return status;
      }
    }
    return {};
  }

 private:
  // Go's RawExtension is a struct without the fields that it holds, which upstream asks of any that
  // is to be merged.
  static Status CheckExtension(const Field* schema, const Json& value, const Json& patch) {
    if (schema == nullptr || schema->value != Value::kRaw || !schema->has(kAtomic)) return {};
    for (const auto& [key, change] : patch.get_object()) {
      const Json* had = value.get_object().if_contains(key);
      if (had == nullptr || !had->is_structured() || had->kind() != change.kind()) continue;
      return Refused(
          fmt::format("unable to find api field in struct RawExtension for the json field \"{}\"",
                      std::string_view(key)));
    }
    return {};
  }

  static Status ApplyDirective(JsonObject& original, const JsonObject& patch,
                               const Json& directive) {
    if (directive == "delete") {
      original.clear();
      return {};
    }
    if (directive != "replace") return NoDirective(directive, Json(patch));
    original = patch;
    original.erase(kDirective);
    return {};
  }

  static Status RetainKeys(JsonObject& original, const JsonObject& patch, const Json& keys) {
    const JsonArray* list = keys.if_array();
    std::set<std::string, std::less<>> retained;
    bool well_formed = list != nullptr;
    for (size_t i = 0; well_formed && i < list->size(); ++i) {
      well_formed = (*list)[i].is_string();
      if (well_formed) retained.emplace((*list)[i].get_string());
    }
    for (const auto& [key, value] : patch) {
      if (value.is_null() || IsDirective(key)) continue;
      well_formed = well_formed && retained.contains(std::string_view(key));
    }
    if (!well_formed) return Invalid("invalid patch format of retainKeys");
    for (auto at = original.begin(); at != original.end();) {
      at = retained.contains(std::string_view(at->key())) ? std::next(at)
                                                          : original.stable_erase(at);
    }
    return {};
  }

  Status MergeMember(JsonObject& original, std::string_view field, Json& value,
                     const std::optional<Type>& type, bool deletes) {
    if (value.is_null()) {
      RemoveMember(original, field);
      return {};
    }
    Json* member = original.if_contains(field);
    const Field* schema = FieldOf(type, field);
    const bool replaces = schema != nullptr && schema->has(kPatchReplace);
    if (member != nullptr && member->is_object() && value.is_object() && !replaces) {
      if (Status status = CheckExtension(schema, *member, value); !status) return status;
      return MergeObject(member->get_object(), value.get_object(), TypeOfField(schema));
    }
    if (member != nullptr && member->is_array() && value.is_array()) {
      const bool merges = deletes || (schema != nullptr && schema->has(kPatchMerge));
      if (!merges) {
        *member = std::move(value);
        return {};
      }
      Result<JsonArray> merged =
          MergeList(std::move(member->get_array()), value.get_array(), schema, deletes);
      if (!merged) return std::unexpected(merged.error());
      *member = std::move(*merged);
      return {};
    }
    if (deletes) return {};
    std::optional<Json> plain = TakePlain(value, Directives::kObeyed, original.storage());
    if (!plain) {
      RemoveMember(original, field);
    } else if (member != nullptr) {
      *member = std::move(*plain);
    } else {
      original.emplace(field, std::move(*plain));
    }
    return {};
  }

  // The list is taken over, and its items with it.
  Result<JsonArray> MergeList(JsonArray list, JsonArray& patch, const Field* schema, bool deletes) {
    if (list.empty() && patch.empty()) return list;
    if (Status status = CheckItems(list, patch); !status) return std::unexpected(status.error());
    const bool objects = list.empty() ? patch[0].is_object() : list[0].is_object();
    if (!objects) return MergeScalars(std::move(list), patch, deletes);
    const std::string_view merge_key = schema == nullptr ? "" : schema->merge_key;
    if (merge_key.empty()) {
      return Invalid(fmt::format("cannot merge lists without merge key for {}",
                                 schema == nullptr ? "a list" : schema->name));
    }
    std::vector<Json*> changes;
    if (Status status = ApplyItemDirectives(list, patch, merge_key, changes); !status) {
      return std::unexpected(status.error());
    }
    const Result<Keys> before = KeysOf(list, merge_key);
    if (!before) return std::unexpected(before.error());
    const Storage storage = list.storage();
    Keys named;
    Items merged = ToItems(list, *before);
    merged.reserve(list.size() + changes.size());
    Order places(*before);
    named.reserve(changes.size());  // `places` and `merged` have views of them.
    for (Json* change : changes) {
      Result<std::string> key = KeyOf(*change, merge_key);
      if (!key) return std::unexpected(key.error());
      named.push_back(std::move(*key));
      const std::optional<size_t> place = places.Find(named.back());
      if (!place) {
        places.Add(named.back(), merged.size());
        merged.push_back({named.back(), *TakePlain(*change, Directives::kKept, storage)});
        continue;
      }
      Status status =
          MergeObject(merged[*place].value.get_object(), change->get_object(), TypeOfField(schema));
      if (!status) return std::unexpected(status.error());
    }
    return Arrange(std::move(merged), named, *before, storage);
  }

  static Result<JsonArray> MergeScalars(JsonArray list, const JsonArray& patch, bool deletes) {
    const Keys before = *KeysOf(list, "");
    const Keys named = *KeysOf(patch, "");
    const Storage storage = list.storage();
    if (deletes) {
      const Order in_patch(named);
      JsonArray kept(storage);
      for (size_t i = 0; i < list.size(); ++i) {
        if (!in_patch.contains(before[i])) kept.push_back(std::move(list[i]));
      }
      return kept;
    }
    Items merged;
    std::set<std::string_view> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      if (seen.insert(before[i]).second) merged.push_back({before[i], std::move(list[i])});
    }
    for (size_t i = 0; i < patch.size(); ++i) {
      if (seen.insert(named[i]).second) merged.push_back({named[i], Json(patch[i], storage)});
    }
    return Arrange(std::move(merged), named, before, storage);
  }

  // Takes the items with a directive out of a patch list and applies them to the list.
  static Status ApplyItemDirectives(JsonArray& list, JsonArray& patch, std::string_view merge_key,
                                    std::vector<Json*>& changes) {
    bool replaces = false;
    std::set<std::string> deleted;
    for (Json& item : patch) {
      const Json* directive = item.get_object().if_contains(kDirective);
      if (directive == nullptr) {
        changes.push_back(&item);
      } else if (*directive == "delete") {
        Result<std::string> key = KeyOf(item, merge_key);
        if (!key) return std::unexpected(key.error());
        deleted.insert(std::move(*key));
      } else if (*directive == "replace") {
        replaces = true;
      } else if (*directive == "merge") {
        return Refused("merging lists cannot yet be specified in the patch");
      } else {
        return NoDirective(*directive, item);
      }
    }
    if (replaces) {
      list.clear();
      for (const Json* change : changes) list.push_back(*change);
      changes.clear();
      return {};
    }
    if (deleted.empty()) return {};
    JsonArray kept(list.storage());
    for (Json& item : list) {
      const Json* key = item.get_object().if_contains(merge_key);
      if (key == nullptr || !deleted.contains(TextOfKey(*key))) kept.push_back(std::move(item));
    }
    list = std::move(kept);
    return {};
  }

  // $setElementOrder/<field>: merges the field and puts it in the stated order.
  Status MergeOrdered(JsonObject& original, const JsonObject& patch, const std::string& field,
                      const Json& order, const std::optional<Type>& type) {
    const JsonArray* stated = order.if_array();
    const Field* schema = FieldOf(type, field);
    const Json* own = original.if_contains(field);
    const Json* changed = patch.if_contains(field);
    if (Status status = CheckOrder(field, order, schema, changed != nullptr); !status)
      return status;
    if (changed != nullptr && !changed->is_array()) {
      return Invalid(fmt::format("{} has an order and is no list: {}", field, PrintGo(*changed)));
    }
    const Storage storage = original.storage();
    const JsonArray before(own != nullptr && own->is_array() ? own->get_array() : JsonArray(),
                           storage);
    const bool has_own = own != nullptr && own->is_array();
    const bool has_changes = changed != nullptr;
    if (!has_own && !has_changes) return {};
    const bool merges = schema != nullptr && schema->has(kPatchMerge);
    JsonArray merged(before, storage);
    if (has_own && has_changes) {
      if (merges) {
        // A copy, for the patch's own order is looked at below.
        JsonArray changes(changed->get_array(), storage);
        Result<JsonArray> result = MergeList(merged, changes, schema, false);
        if (!result) return std::unexpected(result.error());
        merged = std::move(*result);
      } else {
        merged = changed->get_array();
      }
    } else if (has_changes) {
      merged = Plain(*changed, Directives::kObeyed, storage)->get_array();
    }
    // $deleteFromPrimitiveList comes first where both stand.
    const Json* deletions = patch.if_contains(std::string(kDeletePrefix) + field);
    if (deletions != nullptr && deletions->is_array()) {
      Status status = CheckItems(merged, deletions->get_array());
      if (!status) return status;
      merged = *MergeScalars(merged, deletions->get_array(), true);
    }
    const std::string_view merge_key = schema == nullptr ? "" : schema->merge_key;
    const Result<Keys> keys = KeysOf(merged, merge_key);
    const Result<Keys> wanted = KeysOf(*stated, merge_key);
    const Result<Keys> list = KeysOf(before, merge_key);
    for (const Result<Keys>* part : {&keys, &wanted, &list}) {
      if (!*part) return std::unexpected(part->error());
    }
    if (has_changes) {
      Status status = CheckStated(changed->get_array(), *stated, *wanted, merge_key);
      if (!status) return status;
    }
    original[field] = Arrange(ToItems(merged, *keys), *wanted, *list, storage);
    return {};
  }

  // An order is a list, of a field that is one, of what tells the field's items apart.
  static Status CheckOrder(std::string_view field, const Json& order, const Field* schema,
                           bool changes) {
    if (schema == nullptr || schema->shape != Shape::kList) {
      return Invalid(fmt::format("unable to find a list {} to order", field));
    }
    if (!order.is_array()) {
      return Refused(
          fmt::format("expected a []interface {{}}, but received a {}", GoTypeOf(order)));
    }
    const bool objects = schema->value == Value::kObject;
    if (objects && schema->merge_key.empty()) {
      return Invalid(fmt::format("nothing tells the items of {} apart to order them", field));
    }
    const JsonArray& items = order.get_array();
    for (size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is_array() && items[i].is_object() == objects) continue;
      if (!objects) {
        return Invalid(fmt::format("the order of {} is of other items than the list: {}", field,
                                   PrintGo(items[i])));
      }
      return changes
                 ? Refused(fmt::format("expected a map[string]interface {{}}, but received a {}",
                                       GoTypeOf(items[i])))
                 : Refused(fmt::format("value for key {} is not a map", i));
    }
    return {};
  }

  // The patch's items must stand in the stated order.
  static Status CheckStated(const JsonArray& changed, const JsonArray& stated, const Keys& wanted,
                            std::string_view merge_key) {
    const Order order(wanted);
    size_t next = 0;
    for (const Json& item : changed) {
      const JsonObject* object = item.if_object();
      if (object != nullptr && object->contains(kDirective)) continue;
      const Json* key =
          object == nullptr || merge_key.empty() ? &item : object->if_contains(merge_key);
      if (key == nullptr) continue;
      const std::optional<size_t> at = order.Find(TextOfKey(*key));
      if (!at || *at < next) {
        return Refused(fmt::format("The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
                                   PrintGo(Json(changed)), "$setElementOrder",
                                   PrintGo(Json(stated))));
      }
      next = *at + 1;
    }
    return {};
  }
};

}  // namespace

Result<Json> ApplyStrategicPatch(KindId kind, const Json& document, Json patch) {
  Json result(document, document.storage());
  if (patch.is_null()) return result;
  if (!patch.is_object()) return Invalid("a strategic merge patch must be an object");
  if (!result.is_object()) result.emplace_object();
  if (HasWhole(patch)) MakeIntegers(patch);
  Status status = Merger().MergeObject(result.get_object(), patch.get_object(), TypeOf(kind));
  if (!status) return std::unexpected(status.error());
  return result;
}

}  // namespace berth::api
