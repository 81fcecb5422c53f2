#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/field_error.h"
#include "api/json.h"
#include "api/validate_common.h"

// Private to api/: what validation by a schema says, in apiextensions' words.
namespace berth::api::rules {

// "integer", "object", ...: what a value is.
[[nodiscard]] std::string_view FoundType(const Json& value);

// `<path> in body must be of type <wanted>: "<found>"`.
void AddType(FieldErrors& errors, const Path& path, const Json& value, std::string_view wanted);
// `<path> in body <said>`, of a value that has another type, or that is wrong otherwise.
void AddInvalidType(FieldErrors& errors, const Path& path, std::string value,
                    std::string_view said);
void AddSaid(FieldErrors& errors, const Path& path, std::string value, std::string_view said);
// Upstream names no field for these, which it prints so.
void AddNoField(FieldErrors& errors, std::string detail);

}  // namespace berth::api::rules
