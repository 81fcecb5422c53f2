#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "model/ids.h"

namespace berth::model {

// Rows of objects by uid; one of the same key and another uid is another row. A Row has a `uid`,
// invalid in a free row, a `key`, and AddTo(). O(1) by uid, key and row.
template <typename Row, typename IdT>
class ObjectTable {
 public:
  // Free rows too.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }
  [[nodiscard]] uint32_t live() const {
    return static_cast<uint32_t>(rows_.size() - free_rows_.size());
  }
  [[nodiscard]] bool used(IdT id) const {
    return id.value < rows_.size() && rows_[id.value].uid.valid();
  }
  [[nodiscard]] const Row& at(IdT id) const { return rows_[id.value]; }
  [[nodiscard]] IdT FindUid(OwnerId uid) const {
    return uid.value < row_of_uid_.size() ? row_of_uid_[uid.value] : IdT{};
  }
  [[nodiscard]] IdT FindKey(KeyId key) const {
    return key.value < row_of_key_.size() ? row_of_key_[key.value] : IdT{};
  }

  // For State and the engine.
  [[nodiscard]] Row& mutable_at(IdT id) { return rows_[id.value]; }
  IdT Add(OwnerId uid, KeyId key) {
    CHECK(!FindUid(uid).valid());
    IdT id{static_cast<uint32_t>(rows_.size())};
    if (free_rows_.empty()) {
      rows_.emplace_back();
    } else {
      id = free_rows_.back();
      free_rows_.pop_back();
    }
    rows_[id.value].uid = uid;
    rows_[id.value].key = key;
    if (uid.value >= row_of_uid_.size()) row_of_uid_.resize(uid.value + 1);
    if (key.value >= row_of_key_.size()) row_of_key_.resize(key.value + 1);
    row_of_uid_[uid.value] = id;
    row_of_key_[key.value] = id;
    return id;
  }
  void Remove(IdT id) {
    CHECK(used(id));
    Row& row = rows_[id.value];
    row_of_uid_[row.uid.value] = IdT{};
    if (row_of_key_[row.key.value] == id) row_of_key_[row.key.value] = IdT{};
    row = Row{};
    free_rows_.push_back(id);
  }

  void AddTo(Hasher& hasher) const {
    hasher.Add(rows_.size());
    for (const Row& row : rows_) row.AddTo(hasher);
    hasher.Add(free_rows_.size());
    for (const IdT id : free_rows_) hasher.Add(id.value);
  }

 private:
  std::vector<Row> rows_;
  std::vector<IdT> free_rows_;
  std::vector<IdT> row_of_uid_;
  std::vector<IdT> row_of_key_;
};

}  // namespace berth::model
