#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

// How many pods of each set a workload may start with when it can't have all: Kueue's partial
// admission.
namespace berth::quota {

struct CountRange {
  uint32_t count = 0;
  uint32_t count_min = 0;  // As `count` where none may be missing. REQUIRES: at most that.
};

// The largest counts, by pod set, for which `fits` is true; nothing when there are none, or none
// may be missing. What is missing altogether is shared out in proportion to what each set may miss,
// rounded down, and is the least that fits. REQUIRES: what fits, fits with less, too.
//
// Calls `fits` O(log of all that may be missing) times, with counts in any order.
[[nodiscard]] std::optional<std::vector<uint32_t>> LargestCounts(
    std::span<const CountRange> ranges, const std::function<bool(std::span<const uint32_t>)>& fits);

}  // namespace berth::quota
