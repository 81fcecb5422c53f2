#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace berth {

namespace internal {
constexpr int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}
constexpr int64_t SaturatingSubtract(int64_t a, int64_t b) {
  int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}
constexpr int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? std::numeric_limits<int64_t>::max()
                            : std::numeric_limits<int64_t>::min();
}
}  // namespace internal

// A span of time in nanoseconds. Arithmetic saturates: "for ever" stays for ever.
struct Duration {
  int64_t ns = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  static constexpr Duration Nanoseconds(int64_t n) { return {n}; }
  static constexpr Duration Microseconds(int64_t n) {
    return {internal::SaturatingMultiply(n, 1'000)};
  }
  static constexpr Duration Milliseconds(int64_t n) {
    return {internal::SaturatingMultiply(n, 1'000'000)};
  }
  static constexpr Duration Seconds(int64_t n) {
    return {internal::SaturatingMultiply(n, 1'000'000'000)};
  }
  static constexpr Duration Minutes(int64_t n) {
    return {internal::SaturatingMultiply(n, 60'000'000'000)};
  }
  static constexpr Duration Max() { return {std::numeric_limits<int64_t>::max()}; }
  [[nodiscard]] constexpr int64_t milliseconds() const { return ns / 1'000'000; }
  [[nodiscard]] constexpr int64_t seconds() const { return ns / 1'000'000'000; }
};

constexpr Duration operator+(Duration a, Duration b) {
  return {internal::SaturatingAdd(a.ns, b.ns)};
}
constexpr Duration operator-(Duration a, Duration b) {
  return {internal::SaturatingSubtract(a.ns, b.ns)};
}
constexpr Duration operator*(Duration a, int64_t factor) {
  return {internal::SaturatingMultiply(a.ns, factor)};
}

// A point in time: nanoseconds since the Unix epoch. Comes in through the clock port as an
// argument, never from a clock of the callee's own.
struct Instant {
  int64_t ns = 0;

  constexpr auto operator<=>(const Instant&) const = default;
  static constexpr Instant Never() { return {std::numeric_limits<int64_t>::max()}; }
  static constexpr Instant FromSeconds(int64_t seconds) {
    return {internal::SaturatingMultiply(seconds, 1'000'000'000)};
  }
  // Whole seconds since the epoch, rounded down; the resolution of metav1.Time.
  [[nodiscard]] constexpr int64_t seconds() const {
    return ns / 1'000'000'000 - (ns % 1'000'000'000 < 0 ? 1 : 0);
  }
};

constexpr Instant operator+(Instant a, Duration b) { return {internal::SaturatingAdd(a.ns, b.ns)}; }
constexpr Instant operator-(Instant a, Duration b) {
  return {internal::SaturatingSubtract(a.ns, b.ns)};
}
constexpr Duration operator-(Instant a, Instant b) {
  return {internal::SaturatingSubtract(a.ns, b.ns)};
}

}  // namespace berth
