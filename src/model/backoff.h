#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace berth::model {

// kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
inline constexpr Duration kBackoffInitial = Duration::Seconds(1);
inline constexpr Duration kBackoffMax = Duration::Seconds(10);

// How long a pod or workload is spared when its eviction is refused, at first and at most. Each end
// may cost a mark and another refusal, which cost nothing else: who is doubtful goes first.
inline constexpr Duration kSparedInitial = Duration::Seconds(10);
inline constexpr Duration kSparedMax = Duration::Minutes(5);

// min(max, initial x 2^(count - 1)); none for 0.
constexpr Duration Doubled(Duration initial, uint32_t count, Duration max) {
  if (count == 0) return Duration{};
  return std::min(max, initial * (int64_t{1} << std::min(count - 1, 16u)));
}
constexpr Duration Backoff(uint32_t count) { return Doubled(kBackoffInitial, count, kBackoffMax); }
constexpr Duration SparedFor(uint32_t count) { return Doubled(kSparedInitial, count, kSparedMax); }

}  // namespace berth::model
