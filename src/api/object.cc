#include "api/object.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "api/text.h"

namespace berth::api {
namespace {

// Immutable empties for readers of what is missing. Functions' statics: made on first use, constant
// after.
const JsonArray& NoArray() {
  static const JsonArray kNone;
  return kNone;
}
const JsonObject& NoObject() {
  static const JsonObject kNone;
  return kNone;
}

// Boost's own search of a small object compares by calls of memcmp out of line.
constexpr size_t kScannedMembersMax = 18;

const Json* Search(const JsonObject& object, std::string_view key) {
  if (object.size() > kScannedMembersMax) return object.if_contains(key);
  for (const auto& member : object) {
    if (SameText(member.key(), key)) return &member.value();
  }
  return nullptr;
}

Json* Search(JsonObject& object, std::string_view key) {
  return const_cast<Json*>(Search(std::as_const(object), key));
}

}  // namespace

const Json* FindMember(const JsonObject& object, std::string_view key) {
  const Json* value = Search(object, key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Json& Member(JsonObject& object, std::string_view key) {
  Json* present = Search(object, key);
  return present != nullptr ? *present : object.emplace(key, nullptr).first->value();
}

const Json* FindMember(const Json& object, std::string_view key) {
  const JsonObject* members = object.if_object();
  return members == nullptr ? nullptr : FindMember(*members, key);
}

Json* FindMember(Json& object, std::string_view key) {
  return const_cast<Json*>(FindMember(std::as_const(object), key));
}

const Json* FindPath(const Json& document, JsonPath path) {
  const Json* at = &document;
  while (at != nullptr && !path.empty()) at = FindMember(*at, path.TakeStep());
  return at;
}

Json* FindPath(Json& document, JsonPath path) {
  return const_cast<Json*>(FindPath(std::as_const(document), path));
}

std::string_view TextOf(const Json& value) {
  return value.is_string() ? std::string_view(value.get_string()) : std::string_view();
}

std::string_view TextAt(const Json& document, JsonPath path) {
  const Json* value = FindPath(document, path);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_string();
}

int64_t IntegerAt(const Json& document, JsonPath path, int64_t otherwise) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_int64() ? value->get_int64() : otherwise;
}

bool FlagAt(const Json& document, JsonPath path) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const JsonArray& ArrayAt(const Json& document, JsonPath path) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_array() ? value->get_array() : NoArray();
}

const JsonObject& ObjectAt(const Json& document, JsonPath path) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_object() ? value->get_object() : NoObject();
}

const Json& OrEmptyObject(const Json* value) {
  static const Json kNone = JsonObject();
  return value == nullptr ? kNone : *value;
}

std::vector<std::string> TextsAt(const Json& document, JsonPath path) {
  std::vector<std::string> texts;
  for (const Json& text : ArrayAt(document, path)) {
    if (text.is_string()) texts.emplace_back(text.get_string());
  }
  return texts;
}

std::vector<Requirement> RequirementsAt(const Json& document, JsonPath path) {
  std::vector<Requirement> list;
  for (const Json& item : ArrayAt(document, path)) {
    list.push_back({.key = std::string(TextAt(item, "key")),
                    .op = std::string(TextAt(item, "operator")),
                    .values = TextsAt(item, "values")});
  }
  return list;
}

LabelSelector LabelSelectorOf(const Json& selector) {
  return {.match_labels = StringMapAt(selector, "matchLabels"),
          .match_expressions = RequirementsAt(selector, "matchExpressions")};
}

std::string_view AnnotationOf(const Json& object, std::string_view key) {
  const Json* value = FindMember(ObjectAt(object, "metadata.annotations"), key);
  return value == nullptr ? std::string_view() : TextOf(*value);
}

StringMap StringMapAt(const Json& document, JsonPath path) {
  StringMap map;
  for (const auto& [key, value] : ObjectAt(document, path)) {
    if (value.is_string()) map.emplace_back(key, std::string(value.get_string()));
  }
  // As conformed documents have them.
  if (!std::ranges::is_sorted(map)) std::ranges::sort(map);
  return map;
}

JsonObject& MemberObject(JsonObject& object, std::string_view key) {
  Json& member = Member(object, key);
  if (!member.is_object()) member.emplace_object();
  return member.get_object();
}

void SetPath(Json& document, JsonPath path, Json value) {
  if (!document.is_object()) document.emplace_object();
  JsonObject* object = &document.get_object();
  while (true) {
    const std::string_view step = path.TakeStep();
    if (path.empty()) {
      Member(*object, step) = std::move(value);
      return;
    }
    object = &MemberObject(*object, step);
  }
}

bool RemoveMember(JsonObject& object, std::string_view key) {
  if (Search(object, key) == nullptr) return false;
  object.stable_erase(object.find(key));
  return true;
}

const Json* FindDotted(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (at != nullptr && !path.empty()) {
    const size_t dot = path.find('.');
    at = FindMember(*at, path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

void SetDotted(Json& document, std::string_view path, Json value) {
  Json* at = &document;
  while (true) {
    if (!at->is_object()) at->emplace_object();
    const size_t dot = path.find('.');
    at = &Member(at->get_object(), path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  *at = std::move(value);
}

bool RemovePath(Json& document, JsonPath path) {
  Json* parent = &document;
  while (true) {
    JsonObject* object = parent->if_object();
    if (object == nullptr) return false;
    const std::string_view step = path.TakeStep();
    if (path.empty()) return RemoveMember(*object, step);
    parent = FindMember(*parent, step);
    if (parent == nullptr) return false;
  }
}

void SetDefault(JsonObject& object, std::string_view key, Json value) {
  Json& member = object[key];
  if (member.is_null()) member = std::move(value);
}

// The rules of Boost.JSON's own equality: members by key, numbers by value. Documents that have
// their members in one order, as conformed ones do, are compared without looking for any.
void SettleNumber(Json& value) {
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  if (!value.is_double()) return;
  const double number = value.get_double();
  if (std::floor(number) != number || std::fabs(number) > kExactMax) return;
  value = static_cast<int64_t>(number);
}

void SortMembers(JsonObject& map) {
  if (std::ranges::is_sorted(map, {},
                             [](const auto& member) -> std::string_view { return member.key(); })) {
    return;
  }
  std::vector<std::pair<std::string, Json>> members;
  for (auto& [key, value] : map) members.emplace_back(key, std::move(value));
  std::ranges::sort(members, {}, &std::pair<std::string, Json>::first);
  map.clear();
  for (auto& [key, value] : members) map.emplace(key, std::move(value));
}

bool SameJson(const Json& a, const Json& b) {
  if (const JsonObject* object = a.if_object()) {
    const JsonObject* other = b.if_object();
    if (other == nullptr || object->size() != other->size()) return false;
    auto twin = other->begin();
    for (const auto& [key, value] : *object) {
      const Json* opposite = twin->key() == key ? &twin->value() : other->if_contains(key);
      if (opposite == nullptr || !SameJson(value, *opposite)) return false;
      ++twin;
    }
    return true;
  }
  if (const JsonArray* array = a.if_array()) {
    const JsonArray* other = b.if_array();
    return other != nullptr && std::ranges::equal(*array, *other, &SameJson);
  }
  return a == b;
}

}  // namespace berth::api
