#include "model/nodes.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace berth::model {

NodeId NodeTable::FindOrAddRow(NameId name) {
  if (const NodeId found = Find(name); found.valid()) return found;
  NodeId row{size()};
  if (free_rows_.empty()) {
    name_.push_back(name);
    uid_.emplace_back();
    present_.push_back(0);
    unschedulable_.push_back(0);
    ready_.push_back(0);
    labels_.emplace_back();
    taints_.emplace_back();
    features_.emplace_back();
    gpu_model_.emplace_back();
    devices_count_.push_back(0);
    rank_.push_back(0);
  } else {
    row = free_rows_.back();
    free_rows_.pop_back();
    name_[row.value] = name;
  }
  if (name.value >= row_of_name_.size()) row_of_name_.resize(name.value + 1);
  row_of_name_[name.value] = row;
  ranks_stale_ = true;
  return row;
}

void NodeTable::FreeRow(NodeId n) {
  CHECK(used(n));
  CHECK(!present(n));
  row_of_name_[name_[n.value].value] = NodeId{};
  name_[n.value] = NameId{};
  free_rows_.push_back(n);
}

void NodeTable::SortNames(const StringTable<NameId>& names) {
  if (!ranks_stale_) return;
  ranks_stale_ = false;
  ++order_epoch_;
  struct Entry {
    uint64_t salted;
    std::string_view name;
    uint32_t row;
  };
  std::vector<Entry> order;
  order.reserve(size());
  for (uint32_t row = 0; row < size(); ++row) {
    if (!name_[row].valid()) continue;
    const std::string_view name = names.View(name_[row]);
    const uint64_t salted = salt_.has_value() ? Hasher().Add(*salt_).Add(name).value() : 0;
    order.push_back({.salted = salted, .name = name, .row = row});
  }
  std::ranges::sort(order, [](const Entry& a, const Entry& b) {
    return std::tie(a.salted, a.name) < std::tie(b.salted, b.name);
  });
  for (uint32_t rank = 0; rank < order.size(); ++rank) rank_[order[rank].row] = rank;
}

void NodeTable::AddTo(Hasher& hasher) const {
  hasher.Add(size()).Add(present_count_);
  for (uint32_t row = 0; row < size(); ++row) {
    hasher.Add(name_[row].value);
    if (!name_[row].valid()) continue;
    hasher.Add(uid_[row].value).Add(present_[row]).Add(unschedulable_[row]).Add(labels_[row].value);
    hasher.Add(ready_[row]);
    hasher.Add(taints_[row].value).Add(features_[row].value).Add(gpu_model_[row].value);
    hasher.Add(devices_count_[row]);
  }
  hasher.Add(free_rows_.size());
  for (const NodeId row : free_rows_) hasher.Add(row.value);
  // Ranks follow from names and salt once they are sorted; until then they are those of before.
  hasher.Add(salt_.has_value()).Add(salt_.value_or(0)).Add(ranks_stale_).Add(order_epoch_);
  if (!ranks_stale_) return;
  for (const uint32_t rank : rank_) hasher.Add(rank);
}

}  // namespace berth::model
