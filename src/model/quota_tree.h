#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"

namespace berth::model {

// What one queue has of one resource of one flavor; within limits::kQuotaMax.
struct Quota {
  Amount nominal = 0;
  Amount borrowing_limit = kUnlimited;  // Beyond what its subtree has.
  Amount lending_limit = kUnlimited;    // Of what its subtree has; the rest is its own alone.
  bool operator==(const Quota&) const = default;
};

// Whose claims are counted. What queues use is not linear in them: each view is its own index.
enum class QuotaView : uint8_t {
  kPhysical,  // Held and releasing.
  kFuture,    // Held and reserved: once everything releasing is gone.
  kNow,       // All.
};
inline constexpr uint32_t kQuotaViewsCount = 3;
using ViewAmounts = std::array<Amount, kQuotaViewsCount>;

// The amounts of the tree of queues: per row, which is one queue's account of one flavor, and
// resource, what the subtree has and uses (docs/design/0009-queue-tree.md):
//
//   subtree(n) = nominal(n) + sum over children (subtree - local)
//   local(n)   = max(0, subtree - lending limit), or 0 without one: what nobody else may use
//   used(n)    = claims on n + sum over children max(0, used - local)
//   left(n)    = subtree - used                                                  of a root
//              = max(0, local - used)
//                + min(left(parent), subtree - local - max(0, used - local) + borrowing limit)
//
// as in Kueue. The nominal quota of a row that is `whole` has its children's in it, as what a
// Volcano queue deserves: subtree(n) = nominal(n) - sum over all below it local. A root of that
// kind which has no quota of a resource limits nobody's use of it.
//
// Used and subtree are kept up, sums are exact, and what is read of them is clamped to
// limits::kQuotaMax. Links are a forest: who links keeps cycles out. A change of an amount or a
// link is O(levels), a link times resources. Single-threaded.
class QuotaTree {
 public:
  static constexpr uint32_t kNoRow = 0xffffffff;
  // What is left, and the lowest row on the way up whose limit leaves no more.
  struct Left {
    Amount amount = 0;
    uint32_t row = kNoRow;
    bool operator==(const Left&) const = default;
  };

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(parents_.size()); }
  [[nodiscard]] uint32_t resources() const { return resources_; }
  [[nodiscard]] uint32_t parent(uint32_t row) const { return parents_[row]; }
  [[nodiscard]] bool whole(uint32_t row) const { return whole_[row] != 0; }
  // Whether the row has a quota of the resource; one that has none is as one of 0.
  [[nodiscard]] bool defined(ResourceId r, uint32_t row) const { return at(r, row).defined != 0; }
  [[nodiscard]] const Quota& quota(ResourceId r, uint32_t row) const { return at(r, row).quota; }
  [[nodiscard]] Amount subtree(ResourceId r, uint32_t row) const { return at(r, row).subtree; }
  [[nodiscard]] Amount local(ResourceId r, uint32_t row) const { return LocalOf(at(r, row)); }
  [[nodiscard]] Amount used(QuotaView view, ResourceId r, uint32_t row) const {
    return at(r, row).used[static_cast<size_t>(view)];
  }
  // Of what is used, what the subtree does not have.
  [[nodiscard]] Amount borrowed(QuotaView view, ResourceId r, uint32_t row) const {
    return std::max(Amount{0}, used(view, r, row) - subtree(r, row));
  }

  // Whether it uses more than its subtree has, now or once everything releasing is gone; and how
  // many of its children do.
  [[nodiscard]] bool over(ResourceId r, uint32_t row) const { return IsOver(at(r, row)); }
  [[nodiscard]] uint32_t children_over(ResourceId r, uint32_t row) const {
    return at(r, row).children_over;
  }

  // What the row may use besides; negative when it uses more than it may. `own`, at most what is
  // charged to the row itself, is counted as not used;
  // kUnlimited, of no row, where no limit is met. O(levels).
  [[nodiscard]] Left LeftFor(QuotaView view, ResourceId r, uint32_t row, Amount own = 0) const;
  // What it could use if nobody used anything; kUnlimited likewise. O(levels).
  [[nodiscard]] Amount Potential(ResourceId r, uint32_t row) const {
    return MostFor(r, row).amount;
  }
  // And the lowest row that lets it have no more.
  [[nodiscard]] Left MostFor(ResourceId r, uint32_t row) const;

  // Makes room. New rows are roots without quota.
  void Resize(uint32_t resources_count, uint32_t rows_count);
  // REQUIRES: the row has no children and no parent.
  void SetWhole(uint32_t row, bool whole);
  void SetQuota(ResourceId r, uint32_t row, const Quota& quota);
  void ClearQuota(ResourceId r, uint32_t row);
  // kNoRow: makes it a root. REQUIRES: the parent is not below the row, and whole as it is.
  void Link(uint32_t row, uint32_t parent);
  // Charges the row itself, and what it passes on above it; negative amounts take back.
  void Charge(ResourceId r, uint32_t row, const ViewAmounts& amounts);

  void AddTo(Hasher& hasher) const;

 private:
  struct Cell {
    Quota quota;
    Amount subtree = 0;
    ViewAmounts used = {};
    uint32_t defined = 0;        // A bool without padding.
    uint32_t children_over = 0;  // Follows from the others.
    WideAmount lent = 0;         // What those below add to the nominal quota; unclamped.
  };
  // What a row adds to its parent.
  struct Passed {
    WideAmount lent = 0;
    ViewAmounts used = {};
    bool over = false;
    bool operator==(const Passed&) const = default;
  };

  [[nodiscard]] const Cell& at(ResourceId r, uint32_t row) const {
    return cells_[size_t{row} * resources_ + r.value];
  }
  [[nodiscard]] Cell& at(ResourceId r, uint32_t row) {
    return cells_[size_t{row} * resources_ + r.value];
  }
  [[nodiscard]] static Amount LocalOf(const Cell& cell) {
    if (cell.quota.lending_limit == kUnlimited) return 0;
    return std::max(Amount{0}, cell.subtree - cell.quota.lending_limit);
  }
  [[nodiscard]] static bool IsOver(const Cell& cell) {
    return std::max(cell.used[static_cast<size_t>(QuotaView::kPhysical)],
                    cell.used[static_cast<size_t>(QuotaView::kFuture)]) > cell.subtree;
  }
  // Of a root: whether what there is of the resource is told.
  [[nodiscard]] bool Bounded(const Cell& cell, uint32_t row) const {
    return !whole(row) || cell.defined != 0;
  }
  [[nodiscard]] Passed PassedBy(ResourceId r, uint32_t row) const;
  void PutQuota(ResourceId r, uint32_t row, const Quota& quota, bool defined);
  void PassOn(ResourceId r, uint32_t row, const Passed& before, const Passed& after);
  static void Derive(Cell& cell);

  uint32_t resources_ = 0;
  std::vector<Cell> cells_;  // By row, then resource.
  std::vector<uint32_t> parents_;
  std::vector<uint8_t> whole_;
};

}  // namespace berth::model
