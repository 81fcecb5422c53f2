#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/result.h"

// What validation says against one field, in Kubernetes' words (k8s.io/apimachinery field.Error).
namespace berth::api {

enum class FieldErrorType : uint8_t {
  kNotFound,
  kRequired,
  kDuplicate,
  kInvalid,
  kNotSupported,
  kForbidden,
  kTooLong,
  kTooMany,
  kTypeInvalid,
  kInternal,
};

// The cause type of a Status, e.g. "FieldValueInvalid".
[[nodiscard]] std::string_view CauseOf(FieldErrorType type);

struct FieldError {
  FieldErrorType type = FieldErrorType::kInvalid;
  std::string field;  // e.g. `spec.containers[0].name`, `metadata.labels`.
  std::string
      value;  // As printed: strings quoted, everything else JSON. Empty where the type shows none.
  std::string detail;
  bool operator==(const FieldError&) const = default;
};
using FieldErrors = std::vector<FieldError>;

// How many errors an answer lists, and of how many bytes in sum: upstream lists all, however many.
inline constexpr size_t kFieldErrorsListedMax = 1000;
inline constexpr size_t kFieldErrorsBytesMax = 512 * 1024;
// The first of them, as many as an answer lists: one at least.
[[nodiscard]] std::span<const FieldError> ListedOf(std::span<const FieldError> errors);
[[nodiscard]] size_t BytesOf(const FieldError& error);

// A Status cause's message: `Invalid value: "x": must be ...`.
[[nodiscard]] std::string BodyOf(const FieldError& error);
// `spec.x: Invalid value: "x": must be ...`.
[[nodiscard]] std::string ToString(const FieldError& error);
// The message of a Status with reason Invalid: `Pod "a" is invalid: spec.x: ...`; several errors
// stand in brackets, equal ones once; of those that are not listed it says how many there are at
// least. `group_kind` is `Pod` or `Deployment.apps`.
[[nodiscard]] std::string InvalidMessage(std::string_view group_kind, std::string_view name,
                                         std::span<const FieldError> errors);

// Go's %q of a string.
[[nodiscard]] std::string QuoteGo(std::string_view text);

// Go's %v of a document: map[a:1 b:[x y]].
[[nodiscard]] std::string PrintGo(const Json& value);

FieldError NotFoundField(std::string field, std::string_view value);
FieldError RequiredField(std::string field, std::string detail);
FieldError DuplicateField(std::string field, std::string_view value);
FieldError DuplicateJsonField(std::string field, const Json& value);
FieldError InvalidField(std::string field, std::string_view value, std::string detail);
FieldError InvalidField(std::string field, int64_t value, std::string detail);
FieldError InvalidJsonField(std::string field, const Json& value, std::string detail);
// Of a text that upstream holds by a pointer, and shows as JSON.
FieldError InvalidPointedField(std::string field, std::string_view value, std::string detail);
FieldError NotSupportedField(std::string field, std::string_view value,
                             std::span<const std::string_view> supported);
FieldError ForbiddenField(std::string field, std::string detail);
FieldError TooLongField(std::string field, int64_t bytes_max);
FieldError TooManyField(std::string field, int64_t count, int64_t count_max);

}  // namespace berth::api
