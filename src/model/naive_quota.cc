#include "model/naive_quota.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace berth::model {

NaiveQuota::NaiveQuota(std::vector<Row> rows)
    : rows_(std::move(rows)), children_(rows_.size()), known_(rows_.size()) {
  std::vector<std::vector<uint32_t>> by_depth;
  for (uint32_t row = 0; row < rows_.size(); ++row) {
    const uint32_t parent = rows_[row].parent;
    if (parent != QuotaTree::kNoRow) children_[parent].push_back(row);
    size_t depth = 0;
    for (uint32_t n = parent; n != QuotaTree::kNoRow; n = rows_[n].parent) {
      CHECK_LT(++depth, rows_.size());
    }
    if (depth >= by_depth.size()) by_depth.resize(depth + 1);
    by_depth[depth].push_back(row);
  }
  for (const auto& level : by_depth | std::views::reverse) {
    for (const uint32_t row : level) Compute(row);
  }
}

// What is below is known.
void NaiveQuota::Compute(uint32_t row) {
  Known& known = known_[row];
  const bool whole = rows_[row].whole;
  WideAmount sum = rows_[row].quota.nominal;
  known.used = rows_[row].claims;
  for (const uint32_t child : children_[row]) {
    const Amount local = Local(child);
    known.set_aside += known_[child].set_aside + local;
    if (!whole) sum += Subtree(child) - local;
    for (size_t view = 0; view < kQuotaViewsCount; ++view) {
      known.used[view] += std::max(Amount{0}, known_[child].used[view] - local);
    }
  }
  if (whole) sum -= known.set_aside;
  known.subtree =
      static_cast<Amount>(std::clamp<WideAmount>(sum, -limits::kQuotaMax, limits::kQuotaMax));
}

Amount NaiveQuota::Local(uint32_t row) const {
  const Amount limit = rows_[row].quota.lending_limit;
  return limit == kUnlimited ? 0 : std::max(Amount{0}, Subtree(row) - limit);
}

Amount NaiveQuota::LeftFor(QuotaView view, uint32_t row) const {
  const Row& n = rows_[row];
  if (n.parent == QuotaTree::kNoRow)
    return n.whole && !n.defined ? kUnlimited : Subtree(row) - Used(view, row);
  const Amount local = Local(row);
  Amount above = LeftFor(view, n.parent);
  if (n.quota.borrowing_limit != kUnlimited) {
    const Amount stored = Subtree(row) - local;
    const Amount used_of_it = std::max(Amount{0}, Used(view, row) - local);
    above = std::min(above, stored - used_of_it + n.quota.borrowing_limit);
  }
  if (above == kUnlimited) return above;
  return std::max(Amount{0}, local - Used(view, row)) + above;
}

Amount NaiveQuota::Potential(uint32_t row) const {
  const Row& n = rows_[row];
  if (n.parent == QuotaTree::kNoRow) return n.whole && !n.defined ? kUnlimited : Subtree(row);
  Amount above = Potential(n.parent);
  if (above != kUnlimited) above += Local(row);
  if (n.quota.borrowing_limit == kUnlimited) return above;
  return std::min(above, Subtree(row) + n.quota.borrowing_limit);
}

}  // namespace berth::model
