#pragma once

#include <algorithm>
#include <functional>
#include <ranges>

// Private to config/.
namespace berth::config {

// std::ranges::contains, which g++ 12 lacks.
template <class Range, class Value, class Projection = std::identity>
[[nodiscard]] bool Contains(const Range& range, const Value& value, Projection projection = {}) {
  return std::ranges::find(range, value, projection) != std::ranges::end(range);
}

}  // namespace berth::config
