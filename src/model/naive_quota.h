#pragma once

#include <cstdint>
#include <vector>

#include "model/quota_tree.h"

namespace berth::model {

// What QuotaTree keeps up, computed anew from what queues were given and what is charged to each,
// as Kueue defines it: the oracle of the audit and of tests. Of one resource. A call costs O(rows
// below, and of each above).
class NaiveQuota {
 public:
  struct Row {
    uint32_t parent = QuotaTree::kNoRow;
    bool whole = false;
    Quota quota;
    ViewAmounts claims = {};  // Of the row itself.
  };
  explicit NaiveQuota(std::vector<Row> rows);

  // What is kept local by all below the row.
  [[nodiscard]] WideAmount SetAside(uint32_t row) const;
  [[nodiscard]] Amount Subtree(uint32_t row) const;
  [[nodiscard]] Amount Local(uint32_t row) const;
  [[nodiscard]] Amount Used(QuotaView view, uint32_t row) const;
  [[nodiscard]] Amount LeftFor(QuotaView view, uint32_t row) const;
  [[nodiscard]] Amount Potential(uint32_t row) const;

 private:
  std::vector<Row> rows_;
  std::vector<std::vector<uint32_t>> children_;
};

}  // namespace berth::model
