#pragma once

#include <cstdint>

#include "model/ids.h"
#include "model/state.h"

namespace berth::quota {

// From how far up quota has to come.
struct Reach {
  uint32_t height = 0;      // Of the lowest subtree that has enough unused; 0: the queue itself.
  bool below_root = false;  // There is more above that subtree.
};

// For the amount on the account besides what is used (QuotaView::kNow). Where not even the root has
// enough, the root. O(levels).
[[nodiscard]] Reach ReachOf(const model::State& state, uint32_t account, model::ResourceId r,
                            model::Amount amount);

}  // namespace berth::quota
