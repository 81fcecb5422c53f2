#pragma once

#include <string>
#include <string_view>
#include <type_traits>

// CHECK states what must hold whatever the input is: a failure is a bug of berth, printed with its
// values, and ends the process. It is on in every build. What the world may do wrong is a Result.
#define CHECK(condition)        \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : ::berth::internal::CheckFailed(__FILE__, __LINE__, "CHECK(" #condition ")", ""))
#define CHECK_EQ(a, b) BERTH_CHECK_OP(==, a, b)
#define CHECK_NE(a, b) BERTH_CHECK_OP(!=, a, b)
#define CHECK_LT(a, b) BERTH_CHECK_OP(<, a, b)
#define CHECK_LE(a, b) BERTH_CHECK_OP(<=, a, b)
#define CHECK_GT(a, b) BERTH_CHECK_OP(>, a, b)
#define CHECK_GE(a, b) BERTH_CHECK_OP(>=, a, b)

#define BERTH_CHECK_OP(op, a, b)                                                             \
  do {                                                                                       \
    const auto& berth_check_a = (a);                                                         \
    const auto& berth_check_b = (b);                                                         \
    if (!(berth_check_a op berth_check_b)) [[unlikely]] {                                    \
      ::berth::internal::CheckFailed(__FILE__, __LINE__, "CHECK(" #a " " #op " " #b ")",     \
                                     ::berth::internal::Print(berth_check_a) + " against " + \
                                         ::berth::internal::Print(berth_check_b));           \
    }                                                                                        \
  } while (false)

namespace berth::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* what,
                              const std::string& values);

template <typename T>
std::string Print(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (requires { ToString(value); }) {
    return ToString(value);
  } else if constexpr (std::is_pointer_v<T>) {
    return value == nullptr ? "null" : "a pointer";
  } else {
    return "(a value that does not print)";
  }
}

}  // namespace berth::internal
