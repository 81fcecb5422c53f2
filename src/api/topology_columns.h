#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// Columns of a topologyAssignment (kueue.x-k8s.io/v1beta2): the values that its domains have of one
// level, with what they begin and end with in common written once. Pure functions.
namespace berth::api {

// What the kind's schema lets one slice of columns have.
inline constexpr size_t kSliceDomainsMax = 100'000;

// Of the values of a column.
struct CommonEnds {
  bool universal = false;  // All are the same; the rest says nothing then.
  size_t prefix = 0;       // Bytes that all begin with,
  size_t suffix = 0;       // and that all end with. They cut no character, and none counts twice.
};

// REQUIRES: there are values. O(length of all values).
[[nodiscard]] CommonEnds CommonEndsOf(std::span<const std::string_view> values);

}  // namespace berth::api
