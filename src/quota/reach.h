#pragma once

#include <cstdint>

#include "model/ids.h"
#include "model/quota_tree.h"
#include "model/state.h"

namespace berth::quota {

// From how far up quota has to come.
struct Reach {
  uint32_t height = 0;      // Of the lowest subtree that has enough unused; 0: the queue itself.
  bool below_root = false;  // There is more above that subtree.
};

// What is used at most from now on: while those that leave are there yet, or once they are gone and
// who was promised something has got it.
[[nodiscard]] model::Amount UsedFromNowOn(const model::QuotaTree& tree, model::ResourceId r,
                                          uint32_t row);
// What may be charged now without taking what others are promised; negative when more is used than
// there is. What leaves counts once, though its room is promised to another. O(levels).
[[nodiscard]] model::Amount LeftFromNowOn(const model::QuotaTree& tree, model::ResourceId r,
                                          uint32_t row);

// What others are kept from, of an amount that a workload demands of the account, while workloads
// are served beside it, when nobody may be evicted for it: what its queue has of its own, or may
// borrow where it `borrows`. Not above 0: nothing. Whoever may always reclaim needs none of that.
// Kueue: resourcesToReserve.
[[nodiscard]] model::Amount KeptFor(const model::QuotaTree& tree, model::ResourceId r, uint32_t row,
                                    model::Amount amount, bool borrows);

// For the amount on the account besides what is used from now on. Where not even the root has
// enough, the root. O(levels).
[[nodiscard]] Reach ReachOf(const model::State& state, uint32_t account, model::ResourceId r,
                            model::Amount amount);

}  // namespace berth::quota
