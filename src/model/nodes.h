#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"

namespace berth::model {

// Nodes as columns (STYLE 16). Amounts live in the ledger, in the row of the same number
// (Ledger::nodes()).
//
// A row stands for a node's *name*, because pods refer to nodes by name (D09): it exists while a
// node object of that name does, or while claims are bound to the name. uid() says which object it
// is now; a ghost (not present) has none and fits nothing. Rows are reused. Columns are public to
// read, and change only through State.
class NodeTable {
 public:
  // With a salt, ties between nodes end in hash(salt, name), then name; without, in the name.
  explicit NodeTable(std::optional<uint64_t> salt = std::nullopt) : salt_(salt) {}

  // Rows, ghosts and free ones too.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(name_.size()); }
  [[nodiscard]] uint32_t present_count() const { return present_count_; }

  [[nodiscard]] bool used(NodeId n) const { return n.value < size() && name_[n.value].valid(); }
  [[nodiscard]] bool present(NodeId n) const { return present_[n.value] != 0; }
  [[nodiscard]] NameId name(NodeId n) const { return name_[n.value]; }
  [[nodiscard]] OwnerId uid(NodeId n) const { return uid_[n.value]; }  // Invalid for a ghost.
  [[nodiscard]] bool unschedulable(NodeId n) const { return unschedulable_[n.value] != 0; }
  [[nodiscard]] bool ready(NodeId n) const { return ready_[n.value] != 0; }
  [[nodiscard]] LabelListId labels(NodeId n) const { return labels_[n.value]; }
  [[nodiscard]] TaintListId taints(NodeId n) const { return taints_[n.value]; }
  [[nodiscard]] NameListId features(NodeId n) const { return features_[n.value]; }
  [[nodiscard]] NameId gpu_model(NodeId n) const { return gpu_model_[n.value]; }
  [[nodiscard]] uint32_t devices_count(NodeId n) const { return devices_count_[n.value]; }

  [[nodiscard]] std::span<const uint8_t> present_column() const { return present_; }
  [[nodiscard]] std::span<const uint8_t> unschedulable_column() const { return unschedulable_; }
  [[nodiscard]] std::span<const TaintListId> taints_column() const { return taints_; }

  // The row of a name; invalid when there is none.
  [[nodiscard]] NodeId Find(NameId name) const {
    return name.value < row_of_name_.size() ? row_of_name_[name.value] : NodeId{};
  }

  // The place of each row in the total order that ends ties; smaller wins. Current after SortNames.
  [[nodiscard]] uint32_t rank(NodeId n) const { return rank_[n.value]; }
  [[nodiscard]] std::span<const uint32_t> rank_column() const { return rank_; }
  // O(nodes x log nodes) when names came or went since the last call, else O(1). Ranks of rows that
  // stay keep their order.
  void SortNames(const StringTable<NameId>& names);
  // Changes whenever ranks do.
  [[nodiscard]] uint64_t order_epoch() const { return order_epoch_; }

  void AddTo(Hasher& hasher) const;

 private:
  friend class State;
  NodeId FindOrAddRow(NameId name);
  void FreeRow(NodeId n);

  std::vector<NameId> name_;  // Invalid in a free row.
  std::vector<OwnerId> uid_;
  std::vector<uint8_t> present_;
  std::vector<uint8_t> unschedulable_;
  std::vector<uint8_t> ready_;
  std::vector<LabelListId> labels_;
  std::vector<TaintListId> taints_;
  std::vector<NameListId> features_;
  std::vector<NameId> gpu_model_;
  std::vector<uint8_t> devices_count_;
  std::vector<uint32_t> rank_;
  std::vector<NodeId> row_of_name_;
  std::vector<NodeId> free_rows_;
  uint32_t present_count_ = 0;
  uint64_t order_epoch_ = 0;
  bool ranks_stale_ = false;
  std::optional<uint64_t> salt_;
};

}  // namespace berth::model
