#include "cli/answer.h"

#include <fmt/format.h>

#include <utility>

#include "codec/json.h"

namespace berth::cli {

Result<api::JsonObject> ObjectAnswered(int status, std::string_view body) {
  Result<api::Json> document = codec::ParseJson(body);
  if (document && document->is_object()) return std::move(document->get_object());
  return Fail(ErrorCode::kInvalid,
              fmt::format("the answer (HTTP {}) is not what a scheduler of berth gives{}", status,
                          kNoScheduler));
}

std::string Text(const api::JsonObject& object, std::string_view key) {
  const api::Json* value = object.if_contains(key);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(value->get_string()) : codec::PrintJson(*value);
}

const api::JsonObject* Part(const api::JsonObject& object, std::string_view key) {
  const api::Json* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? &value->get_object() : nullptr;
}

std::vector<const api::JsonObject*> ObjectsIn(const api::JsonObject& object, std::string_view key) {
  std::vector<const api::JsonObject*> objects;
  const api::Json* list = object.if_contains(key);
  if (list == nullptr || !list->is_array()) return objects;
  for (const api::Json& one : list->get_array()) {
    if (one.is_object()) objects.push_back(&one.get_object());
  }
  return objects;
}

}  // namespace berth::cli
