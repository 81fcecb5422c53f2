#include "model/verdicts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::model {

const VerdictTable::Row* VerdictTable::Find(OwnerId pod) const {
  const auto row = rows_.find(pod);
  return row == rows_.end() ? nullptr : &row->second;
}

bool VerdictTable::IsAsked(OwnerId pod) const {
  const Row* row = Find(pod);
  return row != nullptr && !row->answered;
}

const NodeVerdict* VerdictTable::Of(OwnerId pod, NameId node) const {
  const Row* row = Find(pod);
  if (row == nullptr || !row->answered) return nullptr;
  const auto found = std::ranges::lower_bound(row->nodes, node, {}, &NodeVerdict::node);
  return found != row->nodes.end() && found->node == node ? &*found : nullptr;
}

uint64_t VerdictTable::Ask(OwnerId pod, std::vector<NameId> nodes) {
  CHECK(pod.valid());
  Erase(pod);
  std::ranges::sort(nodes);
  CHECK(std::ranges::adjacent_find(nodes) == nodes.end());
  Row row{.query = ++queries_};
  row.nodes.reserve(nodes.size());
  for (const NameId node : nodes) row.nodes.push_back({.node = node, .unresolvable = true});
  rows_.emplace(pod, std::move(row));
  ++asked_count_;
  return queries_;
}

bool VerdictTable::Answer(OwnerId pod, uint64_t query, Instant at,
                          const std::vector<NodeVerdict>& said) {
  const auto found = rows_.find(pod);
  if (found == rows_.end() || found->second.answered || found->second.query != query) return false;
  Row& row = found->second;
  for (const NodeVerdict& one : said) {
    const auto node = std::ranges::lower_bound(row.nodes, one.node, {}, &NodeVerdict::node);
    if (node != row.nodes.end() && node->node == one.node) *node = one;
  }
  row.answered = true;
  row.at = at;
  CHECK_GT(asked_count_, 0u);
  --asked_count_;
  return true;
}

void VerdictTable::Erase(OwnerId pod) {
  const auto row = rows_.find(pod);
  if (row == rows_.end()) return;
  if (!row->second.answered) --asked_count_;
  rows_.erase(row);
}

void VerdictTable::AddTo(Hasher& hasher) const {
  hasher.Add(rows_.size());
  for (const auto& [pod, row] : rows_) {
    hasher.Add(pod.value).AddHistory(row.query).Add(row.answered).Add(row.at.ns);
    hasher.Add(row.nodes.size());
    for (const NodeVerdict& node : row.nodes) {
      hasher.Add(node.node.value).Add(node.permitted).Add(node.unresolvable);
      hasher.Add(node.why.value).Add(node.score);
    }
  }
  hasher.AddHistory(queries_);
}

}  // namespace berth::model
