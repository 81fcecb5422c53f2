#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/time.h"
#include "config/fields.h"

// Private to config/: members as a document.
namespace berth::config {

// As Go prints a time: 15s, 1m30s, 250ms.
[[nodiscard]] std::string GoText(Duration time);

// Each returns a document; null: nothing to say.
inline api::Json ToJson(bool& value) { return value; }
inline api::Json ToJson(int32_t& value) { return value; }
inline api::Json ToJson(int64_t& value) { return value; }
api::Json ToJson(double& value);
inline api::Json ToJson(std::string& value) {
  return value.empty() ? api::Json(nullptr) : api::Json(value);
}
inline api::Json ToJson(Duration& value) { return api::Json(GoText(value)); }
inline api::Json ToJson(api::Json& value) { return value; }
api::Json ToJson(PluginConfig& value);
template <class T>
api::Json ToJson(std::optional<T>& value);
template <class T>
api::Json ToJson(std::vector<T>& value);
template <class T>
api::Json ToJson(T& value);

template <class T>
api::Json ToJson(std::optional<T>& value) {
  return value ? ToJson(*value) : nullptr;
}

template <class T>
api::Json ToJson(std::vector<T>& value) {
  if (value.empty()) return nullptr;
  api::JsonArray out;
  for (T& item : value) out.push_back(ToJson(item));
  return out;
}

template <class T>
api::Json ToJson(T& value) {
  api::JsonObject out;
  auto visit = [&](std::string_view name, auto& member) {
    api::Json said = ToJson(member);
    if (!said.is_null()) out[name] = std::move(said);
  };
  Fields(visit, value);
  return out;
}

}  // namespace berth::config
