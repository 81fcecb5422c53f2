#include "api/custom_scale.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "api/go_text.h"
#include "api/object.h"

namespace berth::api {

namespace {

std::string AccessorError(std::string_view path, const Json& value, std::string_view expected) {
  return fmt::format(".{} accessor error: {} is of the type {}, expected {}", path, PrintGo(value),
                     GoTypeOf(value), expected);
}

// What stands at a path: null where nothing does. Null, too, with `error` where something on the
// way is no object.
const Json* Find(const Json& object, std::string_view path, std::string& error) {
  const Json* at = &object;
  size_t end = 0;
  while (true) {
    if (at->is_null()) return nullptr;
    if (!at->is_object()) {
      error = AccessorError(path.substr(0, path.find('.', end)), *at, "map[string]interface{}");
      return nullptr;
    }
    const size_t dot = path.find('.', end);
    at = at->get_object().if_contains(
        path.substr(end, dot == std::string_view::npos ? dot : dot - end));
    if (at == nullptr || dot == std::string_view::npos) return at;
    end = dot + 1;
  }
}

void CheckCount(FieldErrors& errors, std::string_view path, const Json& object) {
  std::string error;
  const Json* value = Find(object, path, error);
  if (value != nullptr && !value->is_int64()) error = AccessorError(path, *value, "int64");
  const int64_t count = value != nullptr && value->is_int64() ? value->get_int64() : 0;
  if (count < 0) error = "should be a non-negative integer";
  if (count > INT32_MAX) error = fmt::format("should be less than or equal to {}", INT32_MAX);
  if (!error.empty())
    errors.push_back(InvalidField(fmt::format(".{}", path), count, std::move(error)));
}

}  // namespace

FieldErrors CheckScaleSpec(const CustomVersion& version, const Json& object) {
  FieldErrors errors;
  if (!version.replicas_path.empty()) CheckCount(errors, version.replicas_path, object);
  return errors;
}

FieldErrors CheckScaleStatus(const CustomVersion& version, const Json& object) {
  FieldErrors errors;
  if (!version.status_replicas_path.empty())
    CheckCount(errors, version.status_replicas_path, object);
  if (version.selector_path.empty()) return errors;
  std::string error;
  const Json* selector = Find(object, version.selector_path, error);
  if (selector != nullptr && !selector->is_string())
    error = AccessorError(version.selector_path, *selector, "string");
  if (!error.empty())
    errors.push_back(InvalidField(fmt::format(".{}", version.selector_path), "", std::move(error)));
  return errors;
}

}  // namespace berth::api
