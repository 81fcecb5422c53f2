#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace berth::model {

// A set of rows that are few of many: to add or take out one is O(1), and they are listed in no
// order, though in one that follows from what was done. 4 bytes for each row up to the last that
// ever was in it. A copyable value.
class RowSet {
 public:
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::span<const uint32_t> rows() const { return rows_; }

  // REQUIRES: it is not in it.
  void Add(uint32_t row) {
    if (row >= position_.size()) position_.resize(row + 1);
    position_[row] = static_cast<uint32_t>(rows_.size());
    rows_.push_back(row);
  }
  // REQUIRES: it is in it.
  void Remove(uint32_t row) {
    CHECK_LT(row, position_.size());
    const uint32_t position = position_[row];
    CHECK_LT(position, rows_.size());
    CHECK_EQ(rows_[position], row);
    rows_[position] = rows_.back();
    position_[rows_[position]] = position;
    rows_.pop_back();
  }

 private:
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> position_;  // By row; of others of no meaning.
};

}  // namespace berth::model
