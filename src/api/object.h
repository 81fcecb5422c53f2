#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json.h"
#include "api/types.h"

// Reading and editing documents without ceremony. Readers take what is missing or of another type
// as absent, so that they are safe on anything; checks of types are api/schema.h's and
// api/validate.h's business.
namespace berth::api {

// The value at a dotted path of object keys ("spec.nodeName"); null when any step is missing, no
// object, or the value is JSON null.
[[nodiscard]] const Json* FindPath(const Json& document, std::string_view path);
[[nodiscard]] Json* FindPath(Json& document, std::string_view path);

// One member, or null; JSON null counts as missing.
[[nodiscard]] const Json* FindMember(const Json& object, std::string_view key);
[[nodiscard]] Json* FindMember(Json& object, std::string_view key);
// For keys that hold dots (labels).
[[nodiscard]] const Json* FindMember(const JsonObject& object, std::string_view key);

// The text at a path, or "".
[[nodiscard]] std::string_view TextAt(const Json& document, std::string_view path);
[[nodiscard]] int64_t IntegerAt(const Json& document, std::string_view path, int64_t otherwise = 0);
[[nodiscard]] bool FlagAt(const Json& document, std::string_view path);
// The array or object at a path; empty ones when it is none.
[[nodiscard]] const JsonArray& ArrayAt(const Json& document, std::string_view path);
[[nodiscard]] const JsonObject& ObjectAt(const Json& document, std::string_view path);
// The value, or an empty object when there is none.
[[nodiscard]] const Json& OrEmptyObject(const Json* value);
// The strings of a map such as metadata.labels; members of another type are left out.
[[nodiscard]] StringMap StringMapAt(const Json& document, std::string_view path);

// Sets the value at a path, making the objects on the way (in place of whatever else stands there).
void SetPath(Json& document, std::string_view path, Json value);
// Removes the member at a path; whether there was one.
bool RemovePath(Json& document, std::string_view path);
// Sets a member if it is missing or null.
void SetDefault(JsonObject& object, std::string_view key, Json value);
// The member as an object, made so when it is none.
JsonObject& MemberObject(JsonObject& object, std::string_view key);
// Removes a member and keeps the order of the others.
bool RemoveMember(JsonObject& object, std::string_view key);

// Equal as documents whose objects have no order and whose integers compare by value.
[[nodiscard]] bool SameJson(const Json& a, const Json& b);

}  // namespace berth::api
