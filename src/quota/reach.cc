#include "quota/reach.h"

#include <algorithm>

namespace berth::quota {

using model::QuotaView;

model::Amount UsedFromNowOn(const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
  return std::max(tree.used(QuotaView::kPhysical, r, row), tree.used(QuotaView::kFuture, r, row));
}

model::Amount LeftFromNowOn(const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
  return std::min(tree.LeftFor(QuotaView::kPhysical, r, row).amount,
                  tree.LeftFor(QuotaView::kFuture, r, row).amount);
}

Reach ReachOf(const model::State& state, uint32_t account, model::ResourceId r,
              model::Amount amount) {
  const model::QuotaTree& tree = state.ledger().quota();
  model::Amount rest = amount;  // What climbs up to the row.
  uint32_t row = account;
  while (true) {
    const model::Amount used = UsedFromNowOn(tree, r, row);
    const uint32_t above = tree.parent(row);
    const bool root = above == model::QuotaTree::kNoRow;
    if (root || used + rest <= tree.subtree(r, row)) {
      return {.height = state.queues().at(state.queues().account(row).queue).height,
              .below_root = !root};
    }
    rest -= std::max(model::Amount{0}, tree.local(r, row) - used);
    row = above;
  }
}

}  // namespace berth::quota
