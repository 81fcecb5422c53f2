#include "quota/reach.h"

#include <algorithm>

namespace berth::quota {

using model::Amount;
using model::QuotaView;
using model::ResourceId;

Amount UsedFromNowOn(const model::QuotaTree& tree, ResourceId r, uint32_t row) {
  return std::max(tree.used(QuotaView::kPhysical, r, row), tree.used(QuotaView::kFuture, r, row));
}

Amount LeftFromNowOn(const model::QuotaTree& tree, ResourceId r, uint32_t row) {
  return std::min(tree.LeftFor(QuotaView::kPhysical, r, row).amount,
                  tree.LeftFor(QuotaView::kFuture, r, row).amount);
}

Amount KeptFor(const model::QuotaTree& tree, ResourceId r, uint32_t row, Amount amount,
               bool borrows) {
  const model::Quota& quota = tree.quota(r, row);
  const Amount used = UsedFromNowOn(tree, r, row);
  if (!borrows) return std::min(amount, quota.nominal - used);
  if (quota.borrowing_limit == model::kUnlimited) return amount;
  return std::min(amount, quota.nominal + quota.borrowing_limit - used);
}

Reach ReachOf(const model::State& state, uint32_t account, ResourceId r, Amount amount) {
  const model::QuotaTree& tree = state.ledger().quota();
  Amount rest = amount;  // What climbs up to the row.
  uint32_t row = account;
  while (true) {
    const Amount used = UsedFromNowOn(tree, r, row);
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
