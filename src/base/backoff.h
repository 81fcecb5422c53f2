#pragma once

#include <cstdint>

#include "base/time.h"

namespace berth {

// How long to wait after `count` failures in a row: min(max, initial x 2^(count - 1)); none for 0.
// REQUIRES: initial <= max.
constexpr Duration Doubled(Duration initial, uint32_t count, Duration max) {
  if (count == 0) return Duration{};
  const uint32_t doublings = count - 1;
  if (doublings >= 63 || initial.ns > (max.ns >> doublings)) return max;
  return initial * (int64_t{1} << doublings);
}

}  // namespace berth
