#pragma once

#include <algorithm>
#include <vector>

namespace berth::model {

// Puts the item in its place, unless it is there. O(items).
template <typename T>
void InsertAscending(std::vector<T>& ascending, const T& item) {
  const auto at = std::ranges::lower_bound(ascending, item);
  if (at == ascending.end() || *at != item) ascending.insert(at, item);
}

}  // namespace berth::model
