#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "api/json.h"
#include "codec/json.h"

// How members of the vectors are read: what is absent is empty.
namespace berth {

// Throw where it is there and no list, or no object.
inline const api::JsonArray& ArrayAt(const api::JsonObject& object, std::string_view key) {
  static const api::JsonArray kEmpty;
  const api::Json* found = object.if_contains(key);
  if (found == nullptr || found->is_null()) return kEmpty;
  if (!found->is_array()) throw std::runtime_error(std::string(key) + " is no list");
  return found->as_array();
}

inline const api::JsonObject& ObjectAt(const api::JsonObject& object, std::string_view key) {
  static const api::JsonObject kEmpty;
  const api::Json* found = object.if_contains(key);
  if (found == nullptr || found->is_null()) return kEmpty;
  if (!found->is_object()) throw std::runtime_error(std::string(key) + " is no object");
  return found->as_object();
}

inline std::string StringAt(const api::JsonObject& object, std::string_view key) {
  const api::Json* found = object.if_contains(key);
  return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

// Nothing when the file can't be read, or holds no object.
inline std::optional<api::JsonObject> ReadObject(const std::filesystem::path& path) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto json = codec::ParseJson(text);
  if (!json || !json->is_object()) return std::nullopt;
  return json->as_object();
}

}  // namespace berth
