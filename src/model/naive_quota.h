#pragma once

#include <cstdint>
#include <vector>

#include "model/quota_tree.h"

namespace berth::model {

// What QuotaTree keeps up, computed anew from what queues were given and what is charged to each,
// as Kueue defines it: the oracle of the audit and of tests. Of one resource. O(rows x levels) to
// make.
class NaiveQuota {
 public:
  struct Row {
    uint32_t parent = QuotaTree::kNoRow;
    bool whole = false;
    bool defined = true;  // It has a quota.
    Quota quota;
    ViewAmounts claims = {};  // Of the row itself.
  };
  // REQUIRES: parents form no cycle.
  explicit NaiveQuota(std::vector<Row> rows);

  [[nodiscard]] Amount Subtree(uint32_t row) const { return known_[row].subtree; }
  [[nodiscard]] Amount Local(uint32_t row) const;
  [[nodiscard]] Amount Used(QuotaView view, uint32_t row) const {
    return known_[row].used[static_cast<size_t>(view)];
  }
  [[nodiscard]] Amount LeftFor(QuotaView view, uint32_t row) const;
  [[nodiscard]] Amount Potential(uint32_t row) const;

 private:
  struct Known {
    WideAmount set_aside = 0;  // What is kept local by all below.
    Amount subtree = 0;
    ViewAmounts used = {};
  };
  void Compute(uint32_t row);

  std::vector<Row> rows_;
  std::vector<std::vector<uint32_t>> children_;
  std::vector<Known> known_;
};

}  // namespace berth::model
