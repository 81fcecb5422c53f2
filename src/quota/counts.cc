#include "quota/counts.h"

#include "base/check.h"
#include "model/ids.h"

namespace berth::quota {

std::optional<std::vector<uint32_t>> LargestCounts(
    std::span<const CountRange> ranges,
    const std::function<bool(std::span<const uint32_t>)>& fits) {
  uint64_t missing_max = 0;
  for (const CountRange& range : ranges) {
    CHECK_LE(range.count_min, range.count);
    missing_max += range.count - range.count_min;
  }
  if (missing_max == 0) return std::nullopt;
  const auto counts = [&](uint64_t missing) {
    std::vector<uint32_t> out;
    for (const CountRange& range : ranges) {
      // Both factors are sums of few counts of 32 bits.
      const auto share = static_cast<model::WideAmount>(range.count - range.count_min) * missing;
      out.push_back(range.count - static_cast<uint32_t>(share / missing_max));
    }
    return out;
  };
  uint64_t low = 0;  // Fewer missing don't fit.
  uint64_t high = missing_max + 1;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (fits(counts(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low > missing_max) return std::nullopt;
  return counts(low);
}

}  // namespace berth::quota
