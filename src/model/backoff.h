#pragma once

#include <cstdint>

#include "base/backoff.h"
#include "base/time.h"

namespace berth::model {

// How long whoever fails is spared, at first and at most: kube-scheduler's podInitialBackoffSeconds
// and podMaxBackoffSeconds. REQUIRES: 0 < initial <= max.
struct BackoffLimits {
  Duration initial = Duration::Seconds(1);
  Duration max = Duration::Seconds(10);
};

// How long a pod or workload is spared when its eviction is refused, at first and at most. Each end
// may cost a mark and another refusal, which cost nothing else: who is doubtful goes first.
inline constexpr Duration kSparedInitial = Duration::Seconds(10);
inline constexpr Duration kSparedMax = Duration::Minutes(5);

constexpr Duration Backoff(uint32_t count, const BackoffLimits& limits = {}) {
  return Doubled(limits.initial, count, limits.max);
}
constexpr Duration SparedFor(uint32_t count) { return Doubled(kSparedInitial, count, kSparedMax); }

}  // namespace berth::model
