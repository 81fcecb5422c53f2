#include "model/quota_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

#include "base/limits.h"
#include "model/naive_quota.h"

namespace berth::model {
namespace {

constexpr uint32_t kRows = 9;
constexpr uint32_t kWholeFrom = 5;  // The rows from here on are whole.
constexpr uint32_t kNoRow = QuotaTree::kNoRow;
const ResourceId kResources[] = {ResourceId{0}, ResourceId{1}};
const QuotaView kViews[] = {QuotaView::kPhysical, QuotaView::kFuture, QuotaView::kNow};

// A tree beside the plain facts, from which everything is computed anew.
struct Twin {
  Twin() : rows(std::size(kResources), std::vector<NaiveQuota::Row>(kRows)) {
    tree.Resize(std::size(kResources), kRows);
    for (uint32_t row = 0; row < kRows; ++row) {
      tree.SetWhole(row, row >= kWholeFrom);
      for (auto& of : rows) {
        of[row].whole = row >= kWholeFrom;
        of[row].defined = false;
      }
    }
  }

  [[nodiscard]] bool Below(uint32_t row, uint32_t top) const {
    for (; row != kNoRow; row = rows[0][row].parent) {
      if (row == top) return true;
    }
    return false;
  }

  void Change() {
    const uint32_t row = *rc::gen::inRange(0u, kRows);
    const ResourceId r{*rc::gen::inRange(0u, 2u)};
    NaiveQuota::Row& fact = rows[r.value][row];
    switch (*rc::gen::inRange(0, 6)) {
      case 0: {
        const auto limit = [] { return *rc::gen::element(kUnlimited, Amount{0}, Amount{7}); };
        fact.defined = true;
        fact.quota = {.nominal = *rc::gen::inRange(0, 20),
                      .borrowing_limit = limit(),
                      .lending_limit = limit()};
        return tree.SetQuota(r, row, fact.quota);
      }
      case 1:
        fact.quota = {};
        fact.defined = false;
        return tree.ClearQuota(r, row);
      case 2: {
        const uint32_t parent = *rc::gen::inRange(0u, kRows + 1);
        if (parent < kRows && Below(parent, row)) return;
        if (parent < kRows && (parent < kWholeFrom) != (row < kWholeFrom)) return;
        for (auto& of : rows) of[row].parent = parent < kRows ? parent : kNoRow;
        return tree.Link(row, rows[0][row].parent);
      }
      default:
        break;
    }
    ViewAmounts change{};
    for (size_t view = 0; view < kQuotaViewsCount; ++view) {
      change[view] = std::max<Amount>(*rc::gen::inRange(-10, 12), -fact.claims[view]);
      fact.claims[view] += change[view];
    }
    tree.Charge(r, row, change);
  }

  void Compare() const {
    for (const ResourceId r : kResources) {
      const NaiveQuota naive(rows[r.value]);
      for (uint32_t row = 0; row < kRows; ++row) {
        RC_ASSERT(tree.subtree(r, row) == naive.Subtree(row));
        RC_ASSERT(tree.local(r, row) == naive.Local(row));
        RC_ASSERT(tree.Potential(r, row) == naive.Potential(row));
        for (const QuotaView view : kViews) {
          RC_ASSERT(tree.used(view, r, row) == naive.Used(view, row));
          const QuotaTree::Left left = tree.LeftFor(view, r, row);
          RC_ASSERT(left.amount == naive.LeftFor(view, row));
          RC_ASSERT((left.amount == kUnlimited ? left.row == kNoRow : Below(row, left.row)));
        }
      }
    }
  }

  // The lowest row whose own term of what is left is the least.
  [[nodiscard]] uint32_t Tightest(QuotaView view, ResourceId r, uint32_t row) const {
    std::vector<NaiveQuota::Row> facts = rows[r.value];
    std::pair<Amount, uint32_t> least{kUnlimited, kNoRow};
    for (uint32_t n = row; n != kNoRow; n = facts[n].parent) {
      // Nobody limits but this one, which has what it has without those above it.
      std::vector<NaiveQuota::Row> alone = facts;
      for (uint32_t m = row; m != kNoRow; m = facts[m].parent) {
        if (m != n) alone[m].quota.borrowing_limit = kUnlimited;
      }
      uint32_t top = n;
      while (facts[top].parent != kNoRow) top = facts[top].parent;
      if (n != top && facts[n].quota.borrowing_limit == kUnlimited) continue;
      if (n != top) alone[top].quota.nominal += 1'000'000;
      const Amount term = NaiveQuota(alone).LeftFor(view, row);
      if (term < least.first) least = {term, n};
    }
    return least.second;
  }

  QuotaTree tree;
  std::vector<std::vector<NaiveQuota::Row>> rows;  // By resource.
};

// Goal: subtree, local, used, left and potential are what Kueue's recurrence gives, in all views,
// after any history of quotas, links and charges. Method: model-based; the twin is the recurrence
// over the facts.
RC_GTEST_PROP(QuotaTreeTest, AgreesWithTheRecurrenceThroughAnyHistory, ()) {
  Twin twin;
  for (int i = *rc::gen::inRange(1, 60); i > 0; --i) {
    twin.Change();
    twin.Compare();
  }
}

// Goal: what is the asker's own is as if it were not charged. Method: the recurrence without it.
RC_GTEST_PROP(QuotaTreeTest, CountsWhatIsTheAskersOwnAsNotUsed, ()) {
  Twin twin;
  for (int i = *rc::gen::inRange(20, 60); i > 0; --i) twin.Change();
  for (const ResourceId r : kResources) {
    for (uint32_t row = 0; row < kRows; ++row) {
      for (const QuotaView view : kViews) {
        std::vector<NaiveQuota::Row> rows = twin.rows[r.value];
        Amount& claims = rows[row].claims[static_cast<size_t>(view)];
        const Amount own = *rc::gen::inRange(Amount{0}, claims + 1);
        claims -= own;
        RC_ASSERT(twin.tree.LeftFor(view, r, row, own).amount ==
                  NaiveQuota(rows).LeftFor(view, row));
      }
    }
  }
}

// Goal: whoever is refused is told by whom. Method: each level's limit alone; the recurrence tells
// the least.
RC_GTEST_PROP(QuotaTreeTest, NamesTheLowestRowThatLimits, ()) {
  Twin twin;
  for (int i = *rc::gen::inRange(20, 60); i > 0; --i) twin.Change();
  for (uint32_t row = 0; row < kRows; ++row) {
    const QuotaTree::Left left = twin.tree.LeftFor(QuotaView::kNow, kResources[0], row);
    RC_ASSERT(left.row == twin.Tightest(QuotaView::kNow, kResources[0], row));
  }
}

// Goal: quotas that nobody can mean overflow nothing, and can be taken back. Method: sums of the
// largest quotas in a chain with everything kept local, up and down again. K072.
TEST(QuotaTreeTest, SumsOfTheLargestQuotasAreClampedAndComeBack) {
  QuotaTree tree;
  const ResourceId r{0};
  tree.Resize(1, 48);
  for (uint32_t row = 1; row < 48; ++row) tree.Link(row, row - 1);
  for (uint32_t row = 0; row < 48; ++row)
    tree.SetQuota(r, row, {.nominal = kUnlimited, .lending_limit = row % 2 == 0 ? 0 : kUnlimited});
  EXPECT_EQ(tree.subtree(r, 0), limits::kQuotaMax);
  EXPECT_EQ(tree.LeftFor(QuotaView::kNow, r, 47).amount, limits::kQuotaMax * 2);
  EXPECT_EQ(tree.Potential(r, 47), limits::kQuotaMax);
  const Amount all = limits::kAmountMax * limits::kSlotsMax;
  tree.Charge(r, 0, {0, 0, all});
  EXPECT_EQ(tree.LeftFor(QuotaView::kNow, r, 0).amount, limits::kQuotaMax - all);
  tree.Charge(r, 0, {0, 0, -all});
  tree.Charge(r, 47, {0, 0, all});
  EXPECT_LT(tree.LeftFor(QuotaView::kNow, r, 47).amount, limits::kQuotaMax);
  tree.Charge(r, 47, {0, 0, -all});
  for (uint32_t row = 1; row < 48; ++row) tree.ClearQuota(r, row);
  tree.SetQuota(r, 0, {.nominal = 5});
  EXPECT_EQ(tree.subtree(r, 0), 5);
  EXPECT_EQ(tree.LeftFor(QuotaView::kNow, r, 47).amount, 5);
}

// Goal: what a Volcano queue is guaranteed, deserves and is capable of is a quota. Method: two
// queues under one of 10 that deserves 8 of the root's 20 and is guaranteed 3.
TEST(QuotaTreeTest, HasGuaranteesOfQueuesWhoseQuotaIsOfTheWhole) {
  QuotaTree tree;
  const ResourceId r{0};
  tree.Resize(1, 4);
  for (uint32_t row = 0; row < 4; ++row) tree.SetWhole(row, true);
  const auto put = [&](uint32_t row, uint32_t parent, Amount guarantee, Amount deserved,
                       Amount capability) {
    tree.Link(row, parent);
    tree.SetQuota(r, row,
                  {.nominal = deserved,
                   .borrowing_limit = capability - deserved,
                   .lending_limit = deserved - guarantee});
  };
  const auto left = [&](uint32_t row) { return tree.LeftFor(QuotaView::kNow, r, row).amount; };
  tree.SetQuota(r, 0, {.nominal = 20});
  put(1, 0, 3, 8, 10);
  put(2, 1, 2, 5, 10);
  put(3, 0, 4, 4, 20);
  EXPECT_EQ(left(2), 10);
  EXPECT_EQ(left(3), 17);  // All but what is guaranteed to others.
  tree.Charge(r, 3, {0, 0, 17});
  EXPECT_EQ(left(3), 0);
  EXPECT_EQ(left(2), 3);  // Its own 2, and 1 of its parent's.
  EXPECT_EQ(left(1), 1);  // Not what is its child's.
  tree.Charge(r, 3, {0, 0, -17});
  tree.Charge(r, 1, {0, 0, 8});
  EXPECT_EQ(left(2), 2);  // The parent is capable of 10.
}

}  // namespace
}  // namespace berth::model
