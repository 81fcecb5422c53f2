#include "api/field_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <map>
#include <set>
#include <utility>

#include "api/field_error.h"
#include "api/kinds.h"
#include "api/object.h"

namespace berth::api {
namespace {

using Nodes = std::vector<FieldSetNode>;

// Where a value stands in a schema.
struct Place {
  enum class At : uint8_t { kType, kField, kItem, kList, kCustom, kDeduced, kNowhere };
  At at = At::kDeduced;
  const Field* field = nullptr;  // Of kField, its items (kItem), or a list in a map (kList).
  TypeId type = kNoType;         // Of kType.
  const CustomSchema* custom = nullptr;  // Of kCustom.
  bool open = false;      // Of kCustom: a schema above lets unknown members be, also down here.
  bool resource = false;  // Of kCustom: an object with apiVersion, kind and metadata.
};

// A list whose items are told apart: by keys, or those of a set by their values.
struct TellsApart {
  const Field* field = nullptr;
  const CustomSchema* custom = nullptr;
};

// What a value is made of.
struct Atom {
  enum class Form : uint8_t { kScalar, kMap, kList };
  Form form = Form::kScalar;
  bool whole = false;
  std::optional<Type> type;        // Of a struct.
  std::optional<TellsApart> list;  // Of a list that is more than a whole.
  Place item = {};                 // Of a map's members and a list's items.
  Place custom = {};               // Of a user's object: where it stands.
};

constexpr Place kDeducedPlace{.at = Place::At::kDeduced};

Atom ScalarAtom() { return {.form = Atom::Form::kScalar, .whole = true, .type = {}}; }

Atom DeducedAtom(const Json* value) {
  if (value != nullptr && value->is_array()) {
    return {
        .form = Atom::Form::kList, .whole = true, .type = {}, .list = {}, .item = kDeducedPlace};
  }
  if (value == nullptr || value->is_object() || value->is_null()) {
    return {.form = Atom::Form::kMap, .type = {}, .list = {}, .item = kDeducedPlace};
  }
  return ScalarAtom();
}

class Walker {
 public:
  explicit Walker(const TypedBy& typed, bool takes_equal_items = false)
      : schema_(typed.schema), decoded_(typed.decoded), takes_equal_items_(takes_equal_items) {}

  static Place Root(const TypedBy& typed) {
    if (typed.custom != nullptr) {
      return {.at = Place::At::kCustom, .custom = typed.custom, .resource = true};
    }
    if (typed.type == kNoType) return kDeducedPlace;
    return {.at = Place::At::kType, .type = typed.type};
  }

  // ---- FieldSetOf ------------------------------------------------------------------------------

  // Whether the path that leads here is in the set.
  bool Collect(Place place, const Json& value, Nodes& out) const {
    const Atom atom = Resolve(place, &value);
    if (atom.whole) return true;
    if (value.is_object()) {
      for (const auto& item : value.get_object()) {
        const Place child = MemberPlace(atom, item.key());
        FieldSetNode node{.element = FieldElement(item.key()), .children = {}};
        node.member = Collect(child, item.value(), node.children);
        const bool empty = item.value().is_null() ||
                           (item.value().is_object() && item.value().get_object().empty());
        if (empty || !IsNamed(atom, item.key())) node.member = true;
        AddNode(out, std::move(node));
      }
    } else if (value.is_array()) {
      for (Items::Item& item : ItemsOf(atom, &value).each) {
        FieldSetNode node{.element = std::move(item.element), .member = true, .children = {}};
        if (item.all.size() == 1) Collect(atom.item, *item.all.front(), node.children);
        AddNode(out, std::move(node));
      }
    }
    SortNodes(out);
    return false;
  }

  // ---- CompareFields ---------------------------------------------------------------------------

  struct Difference {
    Nodes removed, modified, added;                                  // Below the path.
    bool is_removed = false, is_modified = false, is_added = false;  // The path itself.
  };

  // One of both may be null: there is none.
  Difference Compare(Place place, const Json* before, const Json* after) const {
    Difference out;
    const Atom atom = Resolve(place, after != nullptr ? after : before);
    const bool both = before != nullptr && after != nullptr;
    const bool changes_form = both && atom.form != Resolve(place, before).form;
    if (atom.whole || changes_form || (IsHollow(before) && IsHollow(after))) {
      out.is_removed = after == nullptr;
      out.is_added = before == nullptr;
      out.is_modified = both && !SameJson(*before, *after);
      // Of what is another thing by now the parts are gone.
      if (changes_form) out.removed = Compare(place, before, nullptr).removed;
      return out;
    }
    out.is_added = before == nullptr;
    out.is_removed = after == nullptr;
    if (atom.form == Atom::Form::kMap) {
      CompareMembers(atom, before, after, out);
    } else {
      CompareItems(atom, before, after, out);
    }
    Sort(out);
    return out;
  }

  // ---- MergeApplied ----------------------------------------------------------------------------

  // Null when nothing is left; JSON null when that is said.
  std::optional<Json> Merge(Place place, const Json* live, const Json* applied) const {
    const Atom atom = Resolve(place, applied != nullptr ? applied : live);
    if (applied == nullptr) return *live;
    const bool changes_form = live != nullptr && atom.form != Resolve(place, live).form;
    if (atom.whole || changes_form || (IsHollow(live) && IsHollow(applied))) return *applied;
    if (atom.form == Atom::Form::kMap) return MergeMembers(atom, live, applied);
    return MergeItems(atom, live, applied);
  }

  // ---- WithoutFields ---------------------------------------------------------------------------

  Json Without(Place place, const Json& value, const Nodes& removed) const {
    const Atom atom = Resolve(place, &value);
    if (atom.form == Atom::Form::kScalar) return value;
    if (atom.whole) return {};
    if (value.is_object()) {
      JsonObject kept;
      for (const auto& item : value.get_object()) {
        const FieldSetNode* node = FindNode(removed, FieldElement(item.key()));
        if (node != nullptr && node->member) continue;
        if (node == nullptr) {
          kept.emplace(item.key(), item.value());
        } else {
          kept.emplace(item.key(),
                       Without(MemberPlace(atom, item.key()), item.value(), node->children));
        }
      }
      if (kept.empty()) return {};
      return kept;
    }
    if (!value.is_array()) return {};
    JsonArray kept;
    const ItemKeys keys = ItemKeysOf(atom);
    for (const Json& item : value.get_array()) {
      const std::optional<PathElement> element = ItemElement(keys, item);
      const FieldSetNode* node = element ? FindNode(removed, *element) : nullptr;
      if (node != nullptr && node->member) continue;
      kept.push_back(node == nullptr ? item : Without(atom.item, item, node->children));
    }
    if (kept.empty()) return {};
    return kept;
  }

  // ---- WithNamedParents ------------------------------------------------------------------------

  Nodes NameParents(Place place, const Nodes& nodes) const {
    Nodes out;
    const Atom atom = Resolve(place, nullptr);
    for (const FieldSetNode& node : nodes) {
      const bool field = node.element.starts_with("f:");
      const std::string_view name = std::string_view(node.element).substr(2);
      const Place child = field ? MemberPlace(atom, name) : atom.item;
      FieldSetNode named{.element = node.element,
                         .member = node.member,
                         .children = NameParents(child, node.children)};
      if (!named.children.empty() && field && IsNamed(atom, name)) named.member = true;
      out.push_back(std::move(named));
    }
    return out;
  }

  // ---- CheckApplied ----------------------------------------------------------------------------

  void Check(Place place, const Json& value, const std::string& path,
             std::vector<std::string>& problems) const {
    const auto say = [&](std::string_view what) {
      problems.push_back(fmt::format("{}: {}", path, what));
    };
    if (place.at == Place::At::kNowhere) {
      say("field not declared in schema");
      return;
    }
    if (value.is_null()) return;
    const Atom meant = Resolve(place, nullptr);
    const Atom atom = Resolve(place, &value);
    if (atom.form != meant.form && !IsOpen(place)) {
      say(Mismatch(place, meant, value));
      return;
    }
    if (atom.form == Atom::Form::kScalar) {
      if (!FitsScalar(place, value)) say(Mismatch(place, meant, value));
      return;
    }
    if (value.is_object()) {
      for (const auto& item : value.get_object()) {
        const size_t before = problems.size();
        Check(MemberPlace(atom, item.key()), item.value(),
              fmt::format("{}.{}", path, std::string_view(item.key())), problems);
        // Upstream looks no further than the first member that it does not know.
        if (problems.size() > before && problems.back().ends_with("field not declared in schema") &&
            MemberPlace(atom, item.key()).at == Place::At::kNowhere) {
          return;
        }
      }
      return;
    }
    CheckItems(atom, value, path, problems);
  }

 private:
  static PathElement FieldElement(std::string_view name) {
    PathElement element;
    element.reserve(name.size() + 2);
    element += "f:";
    element += name;
    return element;
  }

  // Nothing, null, or empty.
  static bool IsHollow(const Json* value) {
    if (value == nullptr || value->is_null()) return true;
    if (value->is_object()) return value->get_object().empty();
    return value->is_array() && value->get_array().empty();
  }

  static bool IsOpen(Place place) {
    return place.at == Place::At::kDeduced ||
           (place.field != nullptr && place.field->value == Value::kRaw) ||
           (place.custom != nullptr && place.custom->type == CustomSchema::Type::kAny);
  }

  [[nodiscard]] Atom StructAtom(TypeId id, bool whole, bool granular) const {
    const Type type = schema_.at(id);
    return {.form = Atom::Form::kMap, .whole = whole || (type.atomic && !granular), .type = type};
  }

  [[nodiscard]] Atom ItemAtom(const Field& field, const Json* value) const {
    if (field.value == Value::kObject) {
      const bool one = field.shape == Shape::kOne;
      return StructAtom(field.type, one && field.has(kAtomic), one && field.has(kGranular));
    }
    if (field.value != Value::kRaw) return ScalarAtom();
    Atom atom = DeducedAtom(value);
    if (field.has(kAtomic)) atom.whole = true;
    return atom;
  }

  static Atom ListAtom(const Field& field) {
    const bool told_apart = field.has(kListMap) || field.has(kListSet);
    return {.form = Atom::Form::kList,
            .whole = !told_apart,
            .type = {},
            .list = told_apart ? std::optional(TellsApart{.field = &field}) : std::nullopt,
            .item = {.at = Place::At::kItem, .field = &field}};
  }

  static Atom CustomListAtom(Place place) {
    const CustomSchema& schema = *place.custom;
    const bool told_apart = schema.list_type != CustomSchema::ListType::kAsWhole;
    Atom atom{.form = Atom::Form::kList, .whole = !told_apart, .type = {}, .list = {}};
    if (told_apart) atom.list = {.custom = &schema};
    if (!schema.items.empty()) atom.item = Below(place, schema.items.front());
    return atom;
  }

  static Atom CustomAtom(Place place, const Json* value) {
    using Type = CustomSchema::Type;
    Type type = place.custom->type;
    if (type == Type::kAny && (value == nullptr || value->is_object())) type = Type::kObject;
    if (type == Type::kAny && value->is_array()) type = Type::kArray;
    if (type == Type::kArray) return CustomListAtom(place);
    if (type != Type::kObject) return ScalarAtom();
    return {.form = Atom::Form::kMap,
            .whole = place.custom->map_as_whole,
            .type = {},
            .list = {},
            .custom = place};
  }

  static Place Below(Place place, const CustomSchema& schema) {
    return {.at = Place::At::kCustom,
            .custom = &schema,
            .open = place.open || place.custom->preserves_unknown,
            .resource = schema.embeds_resource};
  }

  // What a user's resource has of itself, as all resources have it.
  [[nodiscard]] const Field* OwnField(Place place, std::string_view name) const {
    if (!place.resource) return nullptr;
    if (name != "apiVersion" && name != "kind" && name != "metadata") return nullptr;
    return FindField(schema_.at(static_cast<TypeId>(KindId::kConfigMap)), name);
  }

  [[nodiscard]] Place CustomMember(Place place, std::string_view name) const {
    const CustomSchema& schema = *place.custom;
    if (const Field* own = OwnField(place, name)) return {.at = Place::At::kField, .field = own};
    if (const CustomSchema* property = schema.Property(name)) return Below(place, *property);
    if (!schema.additional.empty()) return Below(place, schema.additional.front());
    const bool any = schema.additional_any || schema.preserves_unknown || place.open ||
                     (schema.properties.empty() && !place.resource);
    return any ? kDeducedPlace : Place{.at = Place::At::kNowhere};
  }

  // What `value` is there, or is meant to be when it is null.
  [[nodiscard]] Atom Resolve(Place place, const Json* value) const {
    Atom atom = Meant(place, value);
    if (value == nullptr || value->is_null()) return atom;
    // A value of another form than is meant is looked at as it is.
    const bool fits = atom.form == Atom::Form::kMap    ? value->is_object()
                      : atom.form == Atom::Form::kList ? value->is_array()
                                                       : !value->is_structured();
    if (fits) return atom;
    atom = DeducedAtom(value);
    atom.whole = true;
    return atom;
  }

  [[nodiscard]] Atom Meant(Place place, const Json* value) const {
    switch (place.at) {
      case Place::At::kType:
        return StructAtom(place.type, false, false);
      case Place::At::kItem:
        return ItemAtom(*place.field, value);
      case Place::At::kList:
        return {.form = Atom::Form::kList,
                .whole = true,
                .type = {},
                .item = {.at = Place::At::kItem, .field = place.field}};
      case Place::At::kField:
        break;
      case Place::At::kCustom:
        return CustomAtom(place, value);
      case Place::At::kDeduced:
      case Place::At::kNowhere:
        return DeducedAtom(value);
    }
    switch (place.field->shape) {
      case Shape::kOne:
        return ItemAtom(*place.field, value);
      case Shape::kList:
        return ListAtom(*place.field);
      case Shape::kMap:
      case Shape::kMapOfLists:
        break;
    }
    const bool lists = place.field->shape == Shape::kMapOfLists;
    return {.form = Atom::Form::kMap,
            .whole = place.field->has(kAtomic),
            .type = {},
            .item = {.at = lists ? Place::At::kList : Place::At::kItem, .field = place.field}};
  }

  [[nodiscard]] bool IsNamed(const Atom& atom, std::string_view name) const {
    if (atom.custom.custom != nullptr) {
      return OwnField(atom.custom, name) != nullptr ||
             atom.custom.custom->Property(name) != nullptr;
    }
    return atom.type && FindField(*atom.type, name) != nullptr;
  }

  [[nodiscard]] Place MemberPlace(const Atom& atom, std::string_view name) const {
    if (atom.custom.custom != nullptr) return CustomMember(atom.custom, name);
    if (!atom.type) return atom.item;
    const Field* field = FindField(*atom.type, name);
    if (field == nullptr) return {.at = Place::At::kNowhere};
    return {.at = Place::At::kField, .field = field};
  }

  // ---- Items -----------------------------------------------------------------------------------

  static bool IsSet(const TellsApart& list) {
    if (list.custom != nullptr) return list.custom->list_type == CustomSchema::ListType::kSet;
    return list.field->has(kListSet);
  }

  static std::vector<std::string_view> KeysOf(const TellsApart& list) {
    if (list.custom != nullptr)
      return {list.custom->list_keys.begin(), list.custom->list_keys.end()};
    std::vector<std::string_view> keys;
    std::string_view names = list.field->list_keys;
    while (!names.empty()) {
      const size_t blank = names.find(' ');
      keys.push_back(names.substr(0, blank));
      names = blank == std::string_view::npos ? "" : names.substr(blank + 1);
    }
    return keys;
  }

  // The default of a key, or nothing.
  [[nodiscard]] std::optional<Json> KeyDefault(const TellsApart& list, std::string_view key) const {
    if (list.custom != nullptr) {
      if (list.custom->items.empty()) return std::nullopt;
      const CustomSchema* property = list.custom->items.front().Property(key);
      return property == nullptr ? std::nullopt : property->default_value;
    }
    if (list.field->type == kNoType) return std::nullopt;
    const Type type = schema_.at(list.field->type);
    const Field* field = FindField(type, key);
    if (field == nullptr) return std::nullopt;
    if (!field->default_json.empty()) return boost::json::parse(field->default_json);
    // A zero that Go always writes is a default too; the metadata of all kinds is Go's.
    const bool of_go = decoded_ || type.go_name() == "OwnerReference";
    if (!of_go || !field->has(kAlways)) return std::nullopt;
    if (field->value == Value::kString) return Json("");
    if (field->value == Value::kInt32 || field->value == Value::kInt64) return Json(0);
    return std::nullopt;
  }

  // How the items of a list are told apart; made once for all of them.
  struct ItemKeys {
    struct Key {
      std::string_view name;
      std::string otherwise;  // Of an item without it, as the element says it; empty for none.
    };
    bool told_apart = false;
    bool is_set = false;
    std::vector<Key> keys;  // By name.
  };

  [[nodiscard]] ItemKeys ItemKeysOf(const Atom& atom) const {
    ItemKeys out{.told_apart = atom.list.has_value(), .keys = {}};
    if (!out.told_apart) return out;
    out.is_set = IsSet(*atom.list);
    if (out.is_set) return out;
    for (const std::string_view name : KeysOf(*atom.list)) {
      std::string otherwise;
      if (const std::optional<Json> value = KeyDefault(*atom.list, name)) {
        AppendScalar(*value, otherwise);
      }
      out.keys.push_back({.name = name, .otherwise = std::move(otherwise)});
    }
    std::ranges::sort(out.keys, {}, &ItemKeys::Key::name);
    return out;
  }

  // Nothing for an item that has no keys, or is none of a set.
  static std::optional<PathElement> ItemElement(const ItemKeys& list, const Json& item) {
    if (!list.told_apart) return std::nullopt;
    PathElement element;
    if (list.is_set) {
      if (item.is_structured() || item.is_null()) return std::nullopt;
      element = "v:";
      AppendScalar(item, element);
      return element;
    }
    if (!item.is_object()) return std::nullopt;
    element = "k:{";
    for (const ItemKeys::Key& key : list.keys) {
      const Json* value = item.get_object().if_contains(key.name);
      if (value == nullptr && key.otherwise.empty()) continue;
      if (element.back() != '{') element += ',';
      AppendQuoted(key.name, element);
      element += ':';
      if (value != nullptr) {
        AppendScalar(*value, element);
      } else {
        element += key.otherwise;
      }
    }
    if (element.back() == '{') return std::nullopt;
    element += '}';
    return element;
  }

  // The items of a list that are told apart. Those of one element are one thing.
  struct Items {
    struct Item {
      PathElement element;
      std::vector<const Json*> all;  // Never empty.
    };
    std::vector<Item> each;     // In the order of the first of each.
    std::vector<size_t> order;  // Of each item of the list: which of `each` it is.
    std::map<std::string_view, size_t> places;

    [[nodiscard]] const Item* Find(std::string_view element) const {
      const auto at = places.find(element);
      return at == places.end() ? nullptr : &each[at->second];
    }
  };

  // `list` may be null.
  [[nodiscard]] Items ItemsOf(const Atom& atom, const Json* list) const {
    Items items;
    if (list == nullptr || !list->is_array()) return items;
    const JsonArray& array = list->get_array();
    items.each.reserve(array.size());  // The places are found by texts that must not move.
    items.order.reserve(array.size());
    const ItemKeys keys = ItemKeysOf(atom);
    for (const Json& item : array) {
      std::optional<PathElement> element = ItemElement(keys, item);
      if (!element) continue;
      const auto found = items.places.find(*element);
      if (found != items.places.end()) {
        items.each[found->second].all.push_back(&item);
        items.order.push_back(found->second);
        continue;
      }
      items.order.push_back(items.each.size());
      items.each.push_back({.element = *std::move(element), .all = {&item}});
      items.places.emplace(items.each.back().element, items.each.size() - 1);
    }
    return items;
  }

  // ---- Compare ---------------------------------------------------------------------------------

  static void AttachTo(Nodes& siblings, std::string_view element, bool member, Nodes children) {
    if (!member && children.empty()) return;
    AddNode(siblings,
            {.element = PathElement(element), .member = member, .children = std::move(children)});
  }

  // Children come in the order of the documents.
  static void Sort(Difference& out) {
    SortNodes(out.removed);
    SortNodes(out.modified);
    SortNodes(out.added);
  }

  static void Attach(std::string_view element, Difference child, Difference& out) {
    AttachTo(out.removed, element, child.is_removed, std::move(child.removed));
    AttachTo(out.modified, element, child.is_modified, std::move(child.modified));
    AttachTo(out.added, element, child.is_added, std::move(child.added));
  }

  // A struct's member, with those that Go always writes. `parent` may be null.
  const Json* MemberOf(const Field* field, const Json* parent, std::string_view name) const {
    if (parent == nullptr || !parent->is_object()) return nullptr;
    const Json* value = parent->get_object().if_contains(name);
    if (value != nullptr || !decoded_ || field == nullptr) return value;
    return ZeroOf(*field);
  }

  // What Go writes of a member that nobody gave, or null.
  static const Json* ZeroOf(const Field& field) {
    static const Json kNothing;
    static const Json kEmpty = JsonObject();
    static const Json kText = "";
    static const Json kNumber = 0;
    static const Json kFalse = false;
    if (field.has(kNull)) return &kNothing;
    if (!field.has(kAlways) || field.shape != Shape::kOne) return nullptr;
    switch (field.value) {
      case Value::kObject:
        return &kEmpty;
      case Value::kString:
        return &kText;
      case Value::kInt32:
      case Value::kInt64:
        return &kNumber;
      case Value::kBool:
        return &kFalse;
      default:
        return nullptr;
    }
  }

  void CompareMember(Place place, std::string_view name, const Json* before, const Json* after,
                     Difference& out) const {
    const Json* old = MemberOf(place.field, before, name);
    const Json* now = MemberOf(place.field, after, name);
    if (old == now) return;
    Attach(FieldElement(name), Compare(place, old, now), out);
  }

  void CompareMembers(const Atom& atom, const Json* before, const Json* after,
                      Difference& out) const {
    if (atom.type && decoded_) {
      for (const Field& field : atom.type->fields) {
        CompareMember({.at = Place::At::kField, .field = &field}, field.name, before, after, out);
      }
      return;
    }
    if (after != nullptr && after->is_object()) {
      for (const auto& item : after->get_object()) {
        CompareMember(MemberPlace(atom, item.key()), item.key(), before, after, out);
      }
    }
    if (before == nullptr || !before->is_object()) return;
    for (const auto& item : before->get_object()) {
      const bool seen = after != nullptr && after->is_object() &&
                        after->get_object().if_contains(item.key()) != nullptr;
      if (!seen) CompareMember(MemberPlace(atom, item.key()), item.key(), before, after, out);
    }
  }

  static bool SameLists(const std::vector<const Json*>& a, const std::vector<const Json*>& b) {
    return std::ranges::equal(
        a, b, [](const Json* left, const Json* right) { return SameJson(*left, *right); });
  }

  void CompareItems(const Atom& atom, const Json* before, const Json* after,
                    Difference& out) const {
    const Items old = ItemsOf(atom, before);
    const Items now = ItemsOf(atom, after);
    static const std::vector<const Json*> kNone;
    const auto of = [](const Items::Item* item) -> const std::vector<const Json*>& {
      return item == nullptr ? kNone : item->all;
    };
    const auto visit = [&](const PathElement& element) {
      const std::vector<const Json*>& was = of(old.Find(element));
      const std::vector<const Json*>& is = of(now.Find(element));
      const auto one = [](const std::vector<const Json*>& items) {
        return items.empty() ? nullptr : items.front();
      };
      if (was.size() <= 1 && is.size() <= 1) {
        Attach(element, Compare(atom.item, one(was), one(is)), out);
        return;
      }
      // Several alike are one thing, which changes as a whole.
      Difference whole;
      if (was.size() > 1 && is.size() > 1) {
        whole.is_modified = !SameLists(was, is);
      } else if (was.size() > 1) {
        if (!is.empty()) whole = Compare(atom.item, nullptr, is.front());
        whole.is_removed = true;
      } else {
        if (!was.empty()) whole = Compare(atom.item, was.front(), nullptr);
        whole.is_added = true;
      }
      Attach(element, std::move(whole), out);
    };
    for (const Items::Item& item : old.each) visit(item.element);
    for (const Items::Item& item : now.each) {
      if (old.Find(item.element) == nullptr) visit(item.element);
    }
  }

  // ---- Merge -----------------------------------------------------------------------------------

  [[nodiscard]] std::optional<Json> MergeMembers(const Atom& atom, const Json* live,
                                                 const Json* applied) const {
    JsonObject merged;
    const JsonObject* had = live == nullptr ? nullptr : live->if_object();
    const JsonObject* says = applied->if_object();
    const auto merge = [&](std::string_view name) {
      std::optional<Json> value =
          Merge(MemberPlace(atom, name), had == nullptr ? nullptr : had->if_contains(name),
                says == nullptr ? nullptr : says->if_contains(name));
      if (value) merged.emplace(name, std::move(*value));
    };
    if (had != nullptr) {
      for (const auto& item : *had) merge(item.key());
    }
    if (says != nullptr) {
      for (const auto& item : *says) {
        if (had == nullptr || had->if_contains(item.key()) == nullptr) merge(item.key());
      }
    }
    if (merged.empty()) return std::nullopt;
    return Json(std::move(merged));
  }

  // Upstream's order: the applied one, in which those that only `live` has keep their neighbours.
  [[nodiscard]] std::optional<Json> MergeItems(const Atom& atom, const Json* live,
                                               const Json* applied) const {
    const Items had = ItemsOf(atom, live);
    const Items says = ItemsOf(atom, applied);
    // Of each item of `live`, in its order, which of `says` it is.
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> said;
    said.reserve(had.order.size());
    for (const size_t item : had.order) {
      const auto at = says.places.find(had.each[item].element);
      said.push_back(at == says.places.end() ? kNone : at->second);
    }
    std::vector<size_t> shared;  // Those of `says`, in its order, that `live` has.
    std::vector<const Items::Item*> was(says.each.size());
    for (size_t i = 0; i < says.each.size(); ++i) was[i] = had.Find(says.each[i].element);
    for (const size_t item : says.order) {
      if (was[item] != nullptr) shared.push_back(item);
    }
    JsonArray out;
    const auto single = [](const Items::Item* item) -> const Json* {
      return item == nullptr || item->all.size() > 1 ? nullptr : item->all.front();
    };
    std::vector<size_t> seen(had.each.size());  // Which of several alike comes next.
    std::vector<bool> merged(says.each.size());
    const auto take = [&](size_t item) {
      merged[item] = true;
      std::optional<Json> value = Merge(atom.item, single(was[item]), single(&says.each[item]));
      if (value) out.push_back(std::move(*value));
    };
    size_t next_shared = 0;
    size_t i = 0;
    size_t j = 0;
    while (i < said.size() || j < says.order.size()) {
      if (i < said.size() && j < says.order.size()) {
        if (said[i] == says.order[j]) {
          take(said[i]);
          ++i;
          ++j;
          ++next_shared;
          continue;
        }
        if (said[i] != kNone && next_shared < shared.size() && shared[next_shared] != said[i]) {
          ++i;
          continue;
        }
      }
      if (i < said.size()) {
        if (said[i] == kNone) {
          const size_t item = had.order[i];
          out.push_back(*had.each[item].all[seen[item]++]);
          ++i;
          continue;
        }
        if (merged[said[i]]) ++i;
      }
      if (j < says.order.size()) {
        const size_t item = says.order[j];
        take(item);
        if (next_shared < shared.size() && shared[next_shared] == item) ++next_shared;
        ++j;
      }
    }
    if (out.empty()) return std::nullopt;
    return Json(std::move(out));
  }

  // ---- Check -----------------------------------------------------------------------------------

  // What a scalar is meant to be; kRaw for any.
  static Value ScalarOf(Place place) {
    using Type = CustomSchema::Type;
    if (place.custom == nullptr) return place.field == nullptr ? Value::kRaw : place.field->value;
    const std::string& format = place.custom->format;
    switch (place.custom->type) {
      case Type::kString:
        return format.empty() || format == "byte" ? Value::kString : Value::kRaw;
      case Type::kInteger:
      case Type::kNumber:
        return Value::kNumber;
      case Type::kBoolean:
        return Value::kBool;
      default:
        return Value::kRaw;
    }
  }

  static bool FitsScalar(Place place, const Json& value) {
    if (IsOpen(place)) return true;
    switch (ScalarOf(place)) {
      case Value::kString:
      case Value::kBytes:
        return value.is_string();
      case Value::kBool:
        return value.is_bool();
      case Value::kInt32:
      case Value::kInt64:
      case Value::kNumber:
        return value.is_number();
      default:
        return !value.is_structured();
    }
  }

  static std::string_view GoType(const Json& value) {
    if (value.is_string()) return "string";
    if (value.is_bool()) return "bool";
    if (value.is_array()) return "[]interface {}";
    if (value.is_object()) return "map[string]interface {}";
    return value.is_double() ? "float64" : "int64";
  }

  static std::string GoSyntax(const Json& value) {
    if (value.is_array()) {
      std::string out = "[]interface {}{";
      for (const Json& item : value.get_array()) {
        if (out.back() != '{') out += ", ";
        out += GoSyntax(item);
      }
      return out + "}";
    }
    if (value.is_object()) {
      std::map<std::string, std::string> members;
      for (const auto& item : value.get_object()) members[item.key()] = GoSyntax(item.value());
      std::string out = "map[string]interface {}{";
      for (const auto& [name, text] : members) {
        if (out.back() != '{') out += ", ";
        AppendQuoted(name, out);
        out += fmt::format(":{}", text);
      }
      return out + "}";
    }
    std::string out;
    AppendScalar(value, out);
    return out;
  }

  static std::string Mismatch(Place place, const Atom& meant, const Json& value) {
    if (meant.form != Atom::Form::kScalar) {
      return fmt::format("expected {}, got &{{{}}}",
                         meant.form == Atom::Form::kMap ? "map" : "list", PrintGo(value));
    }
    switch (ScalarOf(place)) {
      case Value::kString:
      case Value::kBytes:
        return fmt::format("expected string, got &value.valueUnstructured{{Value:{}}}",
                           GoSyntax(value));
      case Value::kBool:
        return fmt::format("expected boolean, got &{{{}}}", PrintGo(value));
      case Value::kInt32:
      case Value::kInt64:
      case Value::kNumber:
        return fmt::format("expected numeric (int or float), got {}", GoType(value));
      default:
        return fmt::format("expected any scalar, got &{{{}}}", PrintGo(value));
    }
  }

  [[nodiscard]] static std::string NoElement(const Atom& atom, const Json& item) {
    if (IsSet(*atom.list)) {
      if (item.is_object()) return "associative list without keys has an element that's a map type";
      if (item.is_array()) return "not supported: associative list with lists as elements";
      return "associative list without keys has an element that's an explicit null";
    }
    if (item.is_null()) return "associative list with keys may not have a null element";
    if (!item.is_object()) return "associative list with keys may not have non-map elements";
    std::string keys;
    for (const std::string_view name : KeysOf(*atom.list)) {
      if (!keys.empty()) keys += ' ';
      AppendQuoted(name, keys);
    }
    return fmt::format(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't "
        "have default values for any key fields)",
        keys);
  }

  void CheckItems(const Atom& atom, const Json& value, const std::string& path,
                  std::vector<std::string>& problems) const {
    std::set<PathElement> seen;
    const JsonArray& items = value.get_array();
    const ItemKeys keys = ItemKeysOf(atom);
    for (size_t i = 0; i < items.size(); ++i) {
      std::string step = fmt::format("[{}]", i);
      if (atom.list) {
        const std::optional<PathElement> element = ItemElement(keys, items[i]);
        if (!element) {
          problems.push_back(fmt::format("{}: element {}: {}", path, i, NoElement(atom, items[i])));
          return;
        }
        step = PathElementText(*element);
        if (!takes_equal_items_ && !seen.insert(*element).second) {
          problems.push_back(fmt::format("{}: duplicate entries for key {}", path, step));
        }
      }
      Check(atom.item, items[i], path + step, problems);
    }
  }

  const Schema& schema_;
  bool decoded_;
  bool takes_equal_items_;
};

}  // namespace

FieldSet FieldSetOf(const TypedBy& typed, const Json& document) {
  FieldSet set;
  Walker(typed).Collect(Walker::Root(typed), document, set.nodes);
  return set;
}

FieldChanges CompareFields(const TypedBy& typed, const Json& before, const Json& after) {
  static const Json kNothing = JsonObject();
  Walker::Difference difference =
      Walker(typed).Compare(Walker::Root(typed), before.is_null() ? &kNothing : &before, &after);
  return {.removed = {std::move(difference.removed)},
          .modified = {std::move(difference.modified)},
          .added = {std::move(difference.added)}};
}

Json MergeApplied(const TypedBy& typed, const Json& live, const Json& applied) {
  return Walker(typed).Merge(Walker::Root(typed), &live, &applied).value_or(Json());
}

Json WithoutFields(const TypedBy& typed, const Json& document, const FieldSet& set) {
  return Walker(typed).Without(Walker::Root(typed), document, set.nodes);
}

FieldSet WithNamedParents(const TypedBy& typed, const FieldSet& set) {
  return {Walker(typed).NameParents(Walker::Root(typed), set.nodes)};
}

std::vector<std::string> CheckApplied(const TypedBy& typed, const Json& applied) {
  std::vector<std::string> problems;
  Walker(typed).Check(Walker::Root(typed), applied, "", problems);
  // Upstream has them in no order.
  std::ranges::sort(problems);
  return problems;
}

bool IsTyped(const TypedBy& typed, const Json& document) {
  std::vector<std::string> problems;
  Walker(typed, true).Check(Walker::Root(typed), document, "", problems);
  return problems.empty();
}

}  // namespace berth::api
