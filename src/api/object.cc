#include "api/object.h"

#include <algorithm>
#include <utility>

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

std::pair<std::string_view, std::string_view> SplitPath(std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// Boost's own search of a small object compares by calls of memcmp out of line; nearly all keys
// differ in length or first character.
constexpr size_t kScannedMembersMax = 18;

const Json* Search(const JsonObject& object, std::string_view key) {
  if (object.size() > kScannedMembersMax || key.empty()) return object.if_contains(key);
  for (const auto& member : object) {
    const std::string_view name = member.key();
    if (name.size() == key.size() && name[0] == key[0] && name == key) return &member.value();
  }
  return nullptr;
}

// The member that the path begins with, which is then taken off the path.
const Json* TakeStep(const JsonObject& object, std::string_view& path) {
  if (object.size() > kScannedMembersMax) {
    const auto [step, rest] = SplitPath(path);
    path = rest;
    return object.if_contains(step);
  }
  // Looking for a member that the path begins with is cheaper than cutting the path first.
  for (const auto& member : object) {
    const std::string_view name = member.key();
    if (name.empty() || name[0] != path[0] || name.size() > path.size()) continue;
    if (name.size() < path.size() && path[name.size()] != '.') continue;
    if (!path.starts_with(name) || name.contains('.')) continue;
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    return &member.value();
  }
  return nullptr;
}

}  // namespace

const Json* FindMember(const JsonObject& object, std::string_view key) {
  const Json* value = Search(object, key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const Json* FindMember(const Json& object, std::string_view key) {
  const JsonObject* members = object.if_object();
  return members == nullptr ? nullptr : FindMember(*members, key);
}

Json* FindMember(Json& object, std::string_view key) {
  return const_cast<Json*>(FindMember(std::as_const(object), key));
}

const Json* FindPath(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (at != nullptr && !path.empty()) {
    const JsonObject* members = at->if_object();
    at = members == nullptr ? nullptr : TakeStep(*members, path);
    if (at != nullptr && at->is_null()) return nullptr;
  }
  return at;
}

Json* FindPath(Json& document, std::string_view path) {
  return const_cast<Json*>(FindPath(std::as_const(document), path));
}

std::string_view TextAt(const Json& document, std::string_view path) {
  const Json* value = FindPath(document, path);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_string();
}

int64_t IntegerAt(const Json& document, std::string_view path, int64_t otherwise) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_int64() ? value->get_int64() : otherwise;
}

bool FlagAt(const Json& document, std::string_view path) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const JsonArray& ArrayAt(const Json& document, std::string_view path) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_array() ? value->get_array() : NoArray();
}

const JsonObject& ObjectAt(const Json& document, std::string_view path) {
  const Json* value = FindPath(document, path);
  return value != nullptr && value->is_object() ? value->get_object() : NoObject();
}

const Json& OrEmptyObject(const Json* value) {
  static const Json kNone = JsonObject();
  return value == nullptr ? kNone : *value;
}

StringMap StringMapAt(const Json& document, std::string_view path) {
  StringMap map;
  for (const auto& [key, value] : ObjectAt(document, path)) {
    if (value.is_string()) map.emplace_back(key, std::string(value.get_string()));
  }
  std::ranges::sort(map);
  return map;
}

JsonObject& MemberObject(JsonObject& object, std::string_view key) {
  Json& member = object[key];
  if (!member.is_object()) member.emplace_object();
  return member.get_object();
}

void SetPath(Json& document, std::string_view path, Json value) {
  if (!document.is_object()) document.emplace_object();
  JsonObject* object = &document.get_object();
  while (true) {
    const auto [step, rest] = SplitPath(path);
    if (rest.empty()) {
      (*object)[step] = std::move(value);
      return;
    }
    object = &MemberObject(*object, step);
    path = rest;
  }
}

bool RemoveMember(JsonObject& object, std::string_view key) {
  const auto at = object.find(key);
  if (at == object.end()) return false;
  object.stable_erase(at);
  return true;
}

bool RemovePath(Json& document, std::string_view path) {
  const size_t dot = path.rfind('.');
  Json* parent =
      dot == std::string_view::npos ? &document : FindPath(document, path.substr(0, dot));
  if (parent == nullptr || !parent->is_object()) return false;
  return RemoveMember(parent->get_object(),
                      dot == std::string_view::npos ? path : path.substr(dot + 1));
}

void SetDefault(JsonObject& object, std::string_view key, Json value) {
  Json& member = object[key];
  if (member.is_null()) member = std::move(value);
}

// The rules of Boost.JSON's own equality: members by key, numbers by value. Documents that have
// their members in one order, as conformed ones do, are compared without looking for any.
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
