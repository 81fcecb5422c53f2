#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "api/json.h"
#include "codec/json.h"

// How members of the vectors are read: what is absent is empty.
namespace berth {

inline const api::JsonArray& ArrayAt(const api::JsonObject& object, std::string_view key) {
  static const api::JsonArray kEmpty;
  const api::Json* found = object.if_contains(key);
  return found != nullptr && found->is_array() ? found->as_array() : kEmpty;
}

inline const api::JsonObject& ObjectAt(const api::JsonObject& object, std::string_view key) {
  static const api::JsonObject kEmpty;
  const api::Json* found = object.if_contains(key);
  return found != nullptr && found->is_object() ? found->as_object() : kEmpty;
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
