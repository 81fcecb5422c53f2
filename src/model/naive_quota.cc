#include "model/naive_quota.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace berth::model {

NaiveQuota::NaiveQuota(std::vector<Row> rows) : rows_(std::move(rows)), children_(rows_.size()) {
  for (uint32_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].parent != QuotaTree::kNoRow) children_[rows_[row].parent].push_back(row);
  }
}

WideAmount NaiveQuota::SetAside(uint32_t row) const {
  WideAmount sum = 0;
  for (const uint32_t child : children_[row]) sum += SetAside(child) + Local(child);
  return sum;
}

Amount NaiveQuota::Subtree(uint32_t row) const {
  WideAmount sum = rows_[row].quota.nominal;
  if (rows_[row].whole) sum -= SetAside(row);
  for (const uint32_t child : children_[row]) {
    if (!rows_[row].whole) sum += Subtree(child) - Local(child);
  }
  return static_cast<Amount>(std::clamp<WideAmount>(sum, -limits::kQuotaMax, limits::kQuotaMax));
}

Amount NaiveQuota::Local(uint32_t row) const {
  const Amount limit = rows_[row].quota.lending_limit;
  return limit == kUnlimited ? 0 : std::max(Amount{0}, Subtree(row) - limit);
}

Amount NaiveQuota::Used(QuotaView view, uint32_t row) const {
  Amount sum = rows_[row].claims[static_cast<size_t>(view)];
  for (const uint32_t child : children_[row]) {
    sum += std::max(Amount{0}, Used(view, child) - Local(child));
  }
  return sum;
}

Amount NaiveQuota::LeftFor(QuotaView view, uint32_t row) const {
  const Row& n = rows_[row];
  if (n.parent == QuotaTree::kNoRow) return Subtree(row) - Used(view, row);
  const Amount local = Local(row);
  Amount above = LeftFor(view, n.parent);
  if (n.quota.borrowing_limit != kUnlimited) {
    const Amount stored = Subtree(row) - local;
    const Amount used_of_it = std::max(Amount{0}, Used(view, row) - local);
    above = std::min(above, stored - used_of_it + n.quota.borrowing_limit);
  }
  return std::max(Amount{0}, local - Used(view, row)) + above;
}

Amount NaiveQuota::Potential(uint32_t row) const {
  const Row& n = rows_[row];
  if (n.parent == QuotaTree::kNoRow) return Subtree(row);
  const Amount above = Local(row) + Potential(n.parent);
  if (n.quota.borrowing_limit == kUnlimited) return above;
  return std::min(above, Subtree(row) + n.quota.borrowing_limit);
}

}  // namespace berth::model
