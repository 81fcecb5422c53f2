#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace berth {

// A dense index into one table, typed by it. Ids are given in arrival order and reused by some
// tables, so no decision may depend on their order (STYLE 20).
template <typename Tag>
struct Id {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  uint32_t value = kNone;

  [[nodiscard]] constexpr bool valid() const { return value != kNone; }
  constexpr auto operator<=>(const Id&) const = default;
};

template <typename Tag>
std::string ToString(Id<Tag> id) {
  return id.valid() ? std::to_string(id.value) : "none";
}

}  // namespace berth

template <typename Tag>
struct std::hash<berth::Id<Tag>> {
  size_t operator()(berth::Id<Tag> id) const noexcept { return id.value * 0x9E3779B97F4A7C15ull; }
};
