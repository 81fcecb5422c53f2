#include "model/quota_tree.h"

#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace berth::model {
namespace {

using limits::kQuotaMax;

Amount Above(Amount used, Amount local) { return std::max(Amount{0}, used - local); }

}  // namespace

QuotaTree::Left QuotaTree::LeftFor(QuotaView view, ResourceId r, uint32_t row, Amount own) const {
  Left left{.amount = kUnlimited, .row = kNoRow};
  const auto limit = [&left](Amount amount, uint32_t by) {
    if (amount < left.amount) left = {.amount = amount, .row = by};
  };
  Amount locals = 0;  // What is left of what is local, up to here.
  for (uint32_t n = row;; n = parents_[n]) {
    const Cell& cell = at(r, n);
    const Amount local = LocalOf(cell);
    const Amount all = cell.used[static_cast<size_t>(view)];
    const Amount used = all - own;
    own = Above(all, local) - Above(used, local);
    if (parents_[n] == kNoRow) {
      if (Bounded(cell, n)) limit(locals + cell.subtree - used, n);
      return left;
    }
    locals = std::min(locals + Above(local, used), kQuotaMax);
    if (cell.quota.borrowing_limit == kUnlimited) continue;
    limit(locals + cell.subtree - local - Above(used, local) + cell.quota.borrowing_limit, n);
  }
}

QuotaTree::Left QuotaTree::MostFor(ResourceId r, uint32_t row) const {
  Left most{.amount = kUnlimited, .row = kNoRow};
  const auto limit = [&most](Amount amount, uint32_t by) {
    if (amount < most.amount) most = {.amount = amount, .row = by};
  };
  Amount locals = 0;
  for (uint32_t n = row;; n = parents_[n]) {
    const Cell& cell = at(r, n);
    if (parents_[n] == kNoRow) {
      if (Bounded(cell, n)) limit(std::min(locals + cell.subtree, kQuotaMax), n);
      return most;
    }
    if (cell.quota.borrowing_limit != kUnlimited)
      limit(locals + cell.subtree + cell.quota.borrowing_limit, n);
    locals = std::min(locals + LocalOf(cell), kQuotaMax);
  }
}

void QuotaTree::Resize(uint32_t resources_count, uint32_t rows_count) {
  CHECK_GE(rows_count, size());
  CHECK_LE(rows_count, limits::kQuotaAccountsMax);
  if (resources_count > resources_) {
    std::vector<Cell> wider(size_t{size()} * resources_count);
    for (uint32_t row = 0; row < size(); ++row) {
      std::copy_n(cells_.begin() + std::ptrdiff_t{row} * resources_, resources_,
                  wider.begin() + std::ptrdiff_t{row} * resources_count);
    }
    cells_ = std::move(wider);
    resources_ = resources_count;
  }
  cells_.resize(size_t{rows_count} * resources_);
  parents_.resize(rows_count, kNoRow);
  whole_.resize(rows_count);
}

void QuotaTree::Derive(Cell& cell) {
  const WideAmount sum = cell.quota.nominal + cell.lent;
  cell.subtree = static_cast<Amount>(std::clamp<WideAmount>(sum, -kQuotaMax, kQuotaMax));
}

QuotaTree::Passed QuotaTree::PassedBy(ResourceId r, uint32_t row) const {
  Passed passed;
  if (parents_[row] == kNoRow) return passed;
  const Cell& cell = at(r, row);
  const Amount local = LocalOf(cell);
  passed.lent = (whole(row) ? cell.lent : cell.subtree) - local;
  for (size_t view = 0; view < kQuotaViewsCount; ++view) {
    passed.used[view] = Above(cell.used[view], local);
  }
  passed.over = IsOver(cell);
  return passed;
}

// The row passed `before`, and now passes `after`: so do those above it.
void QuotaTree::PassOn(ResourceId r, uint32_t row, const Passed& before, const Passed& after) {
  Passed was = before;
  Passed is = after;
  for (uint32_t n = parents_[row]; n != kNoRow && was != is; n = parents_[n]) {
    const bool is_root = parents_[n] == kNoRow;
    const Passed by_n = is_root ? Passed{} : PassedBy(r, n);
    Cell& cell = at(r, n);
    if (was.lent != is.lent) {
      cell.lent += is.lent - was.lent;
      Derive(cell);
    }
    for (size_t view = 0; view < kQuotaViewsCount; ++view) {
      cell.used[view] += is.used[view] - was.used[view];
      CHECK_GE(cell.used[view], 0);
    }
    if (was.over && !is.over) --cell.children_over;
    if (!was.over && is.over) ++cell.children_over;
    if (is_root) break;
    was = by_n;
    is = PassedBy(r, n);
  }
}

void QuotaTree::SetWhole(uint32_t row, bool whole) {
  CHECK_EQ(parents_[row], kNoRow);
  for (uint32_t i = 0; i < resources_; ++i) CHECK(at(ResourceId{i}, row).lent == 0);
  whole_[row] = whole ? 1 : 0;
}

void QuotaTree::SetQuota(ResourceId r, uint32_t row, const Quota& quota) {
  const auto clamped = [](Amount amount) { return std::clamp(amount, Amount{0}, kQuotaMax); };
  const auto limited = [&](Amount limit) { return limit == kUnlimited ? limit : clamped(limit); };
  PutQuota(r, row,
           {.nominal = clamped(quota.nominal),
            .borrowing_limit = limited(quota.borrowing_limit),
            .lending_limit = limited(quota.lending_limit)},
           /*defined=*/true);
}

void QuotaTree::ClearQuota(ResourceId r, uint32_t row) {
  PutQuota(r, row, Quota{}, /*defined=*/false);
}

void QuotaTree::PutQuota(ResourceId r, uint32_t row, const Quota& quota, bool defined) {
  CHECK_LT(r.value, resources_);
  const Passed before = PassedBy(r, row);
  Cell& cell = at(r, row);
  cell.quota = quota;
  cell.defined = defined ? 1 : 0;
  Derive(cell);
  PassOn(r, row, before, PassedBy(r, row));
}

void QuotaTree::Link(uint32_t row, uint32_t parent) {
  if (parents_[row] == parent) return;
  CHECK(parent == kNoRow || whole(parent) == whole(row));
  for (uint32_t i = 0; i < resources_; ++i)
    PassOn(ResourceId{i}, row, PassedBy(ResourceId{i}, row), {});
  for (uint32_t n = parent; n != kNoRow; n = parents_[n]) CHECK_NE(n, row);
  parents_[row] = parent;
  for (uint32_t i = 0; i < resources_; ++i)
    PassOn(ResourceId{i}, row, {}, PassedBy(ResourceId{i}, row));
}

void QuotaTree::Charge(ResourceId r, uint32_t row, const ViewAmounts& amounts) {
  const Passed before = PassedBy(r, row);
  Cell& cell = at(r, row);
  for (size_t view = 0; view < kQuotaViewsCount; ++view) {
    cell.used[view] += amounts[view];
    CHECK_GE(cell.used[view], 0);
  }
  PassOn(r, row, before, PassedBy(r, row));
}

void QuotaTree::AddTo(Hasher& hasher) const {
  hasher.Add(resources_).Add(parents_.size());
  for (uint32_t row = 0; row < size(); ++row) hasher.Add(parents_[row]).Add(whole_[row]);
  for (const Cell& cell : cells_) {
    hasher.Add(cell.quota.nominal).Add(cell.quota.borrowing_limit).Add(cell.quota.lending_limit);
    hasher.Add(cell.defined).Add(cell.subtree);
    for (const Amount used : cell.used) hasher.Add(used);
    // The sum follows from the quotas.
  }
}

}  // namespace berth::model
