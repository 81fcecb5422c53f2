#pragma once

#include <expected>
#include <string>
#include <utility>

namespace berth {

// What kind of thing the world did wrong; decides an HTTP code or an exit status.
enum class ErrorCode {
  kInvalid,        // The input is not what it must be: malformed, out of range, unknown.
  kNotFound,       // The thing named does not exist.
  kAlreadyExists,  // The thing to be made exists.
  kConflict,       // The world moved on: a stale version, another uid.
  kRefused,        // Understood and not allowed.
  kTooLarge,       // A limit of base/limits.h is passed.
  kUnavailable,    // Can't be done now; may be later.
  kUnknown,        // It is not known whether it was done.
  kDamaged,        // Stored data is not what was written.
};

// A failure that the caller must handle. The message is lower case, without a full stop, and names
// the object, the field and the numbers.
struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;

  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error{.code = code, .message = std::move(message)});
}

}  // namespace berth
