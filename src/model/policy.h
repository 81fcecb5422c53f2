#pragma once

#include <cstdint>

namespace berth::model {

// How nodes that fit are ranked. kSpread is what a cluster runs; the others are for replays of
// traces.
enum class Policy : uint8_t {
  kSpread,  // LeastAllocated, BalancedAllocation, preferred affinity, PreferNoSchedule: Kubernetes'
            // defaults.
  kBestFit,  // The node with least left.
  kFgd,      // Fragmentation gradient descent, ties by best fit.
  kRandom,   // Uniform among the nodes that fit, from the run's seed.
};

}  // namespace berth::model
