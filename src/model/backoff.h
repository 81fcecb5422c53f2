#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace berth::model {

// kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
inline constexpr Duration kBackoffInitial = Duration::Seconds(1);
inline constexpr Duration kBackoffMax = Duration::Seconds(10);

// min(max, initial x 2^(count - 1)); none for 0.
constexpr Duration Backoff(uint32_t count) {
  if (count == 0) return Duration{};
  return std::min(kBackoffMax, kBackoffInitial * (int64_t{1} << std::min(count - 1, 16u)));
}

}  // namespace berth::model
