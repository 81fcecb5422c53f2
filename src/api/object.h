#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/types.h"
#include "base/check.h"

// Reading and editing documents without ceremony. Readers take what is missing or of another type
// as absent, so that they are safe on anything; checks of types are api/schema.h's and
// api/validate.h's business.
namespace berth::api {

// A dotted path of object keys ("spec.nodeName"), cut into its steps: where it stands in the code,
// when that is compiled. A view of its text. REQUIRES: at most 8 steps, none longer than 254.
class JsonPath {
 public:
  // NOLINTBEGIN(google-explicit-constructor): paths are written as text.
  template <size_t N>
  consteval JsonPath(const char (&text)[N]) : JsonPath(std::string_view(text, N - 1)) {}
  constexpr JsonPath(std::string_view text) : next_(text.data()) {
    size_t start = 0;
    for (int shift = 0; start < text.size(); shift += 8) {
      const size_t dot = text.find('.', start);
      const size_t size = (dot == std::string_view::npos ? text.size() : dot) - start;
      CHECK(shift < 64 && size < 255);
      sizes_ |= static_cast<uint64_t>(size + 1) << shift;
      start += size + 1;
    }
  }
  JsonPath(const std::string& text) : JsonPath(std::string_view(text)) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] constexpr bool empty() const { return sizes_ == 0; }
  // Takes the first step off. REQUIRES: !empty().
  constexpr std::string_view TakeStep() {
    const size_t size = (sizes_ & 0xff) - 1;
    const std::string_view step(next_, size);
    sizes_ >>= 8;
    if (sizes_ != 0) next_ += size + 1;
    return step;
  }

 private:
  const char* next_;
  uint64_t sizes_ = 0;  // A byte a step, the first lowest: one more than the step's size.
};

// The value at a path; null when any step is missing, no object, or the value is JSON null.
[[nodiscard]] const Json* FindPath(const Json& document, JsonPath path);
[[nodiscard]] Json* FindPath(Json& document, JsonPath path);

// One member, or null; JSON null counts as missing.
[[nodiscard]] const Json* FindMember(const Json& object, std::string_view key);
[[nodiscard]] Json* FindMember(Json& object, std::string_view key);
// For keys that hold dots (labels).
[[nodiscard]] const Json* FindMember(const JsonObject& object, std::string_view key);

// The text at a path, or "".
[[nodiscard]] std::string_view TextAt(const Json& document, JsonPath path);
// The same of a value.
[[nodiscard]] std::string_view TextOf(const Json& value);
[[nodiscard]] int64_t IntegerAt(const Json& document, JsonPath path, int64_t otherwise = 0);
[[nodiscard]] bool FlagAt(const Json& document, JsonPath path);
// The array or object at a path; empty ones when it is none.
[[nodiscard]] const JsonArray& ArrayAt(const Json& document, JsonPath path);
[[nodiscard]] const JsonObject& ObjectAt(const Json& document, JsonPath path);
// The value, or an empty object when there is none.
[[nodiscard]] const Json& OrEmptyObject(const Json* value);
// The strings of an array; members of another type are left out.
[[nodiscard]] std::vector<std::string> TextsAt(const Json& document, JsonPath path);
// What the array asks of labels or fields, as matchExpressions do.
[[nodiscard]] std::vector<Requirement> RequirementsAt(const Json& document, JsonPath path);
[[nodiscard]] LabelSelector LabelSelectorOf(const Json& selector);
// The annotation's text, or "".
[[nodiscard]] std::string_view AnnotationOf(const Json& object, std::string_view key);
// The strings of a map such as metadata.labels; members of another type are left out.
[[nodiscard]] StringMap StringMapAt(const Json& document, JsonPath path);

// Sets the value at a path, making the objects on the way (in place of whatever else stands there).
void SetPath(Json& document, JsonPath path, Json value);
// Removes the member at a path; whether there was one.
bool RemovePath(Json& document, JsonPath path);
// The same for dotted paths of any length, as users write them.
[[nodiscard]] const Json* FindDotted(const Json& document, std::string_view path);
void SetDotted(Json& document, std::string_view path, Json value);
// Sets a member if it is missing or null.
void SetDefault(JsonObject& object, std::string_view key, Json value);
// The member, null when it was missing: what operator[] returns, for less.
Json& Member(JsonObject& object, std::string_view key);
// The member as an object, made so when it is none.
JsonObject& MemberObject(JsonObject& object, std::string_view key);
// Removes a member and keeps the order of the others.
bool RemoveMember(JsonObject& object, std::string_view key);

// Makes an integer of a double that is whole: written as 1.0 or 1e3. Beyond 2^53 doubles skip
// integers and stay.
void SettleNumber(Json& value);

// Puts the members of a map in the order of their names.
void SortMembers(JsonObject& map);

// Equal as documents whose objects have no order and whose integers compare by value.
[[nodiscard]] bool SameJson(const Json& a, const Json& b);

}  // namespace berth::api
