#include "model/verdicts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::model {

namespace {

bool Awaits(const VerdictTable::Row& row) {
  return !row.answered || (row.victims_query != 0 && !row.victims_answered);
}

}  // namespace

const VerdictTable::Row* VerdictTable::Find(OwnerId pod) const {
  const auto row = rows_.find(pod);
  return row == rows_.end() ? nullptr : &row->second;
}

bool VerdictTable::IsAsked(OwnerId pod) const {
  const Row* row = Find(pod);
  return row != nullptr && Awaits(*row);
}

const NodeVerdict* VerdictTable::Of(OwnerId pod, NameId node) const {
  const Row* row = Find(pod);
  if (row == nullptr || !row->answered) return nullptr;
  const auto found = std::ranges::lower_bound(row->nodes, node, {}, &NodeVerdict::node);
  return found != row->nodes.end() && found->node == node ? &*found : nullptr;
}

const std::vector<NodeVictims>* VerdictTable::VictimsFor(OwnerId pod) const {
  const Row* row = Find(pod);
  return row != nullptr && row->victims_answered ? &row->victims : nullptr;
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

uint64_t VerdictTable::AskAboutVictims(OwnerId pod, const std::vector<NodeVictims>& proposed) {
  CHECK(pod.valid());
  CHECK(!IsAsked(pod));
  std::vector<NodeVictims> asked;
  asked.reserve(proposed.size());
  for (const NodeVictims& one : proposed) asked.push_back({.node = one.node, .pods = {}});
  std::ranges::sort(asked, {}, &NodeVictims::node);
  CHECK(std::ranges::adjacent_find(asked, {}, &NodeVictims::node) == asked.end());
  const auto [at, made] = rows_.try_emplace(pod);
  Row& row = at->second;
  row.victims_query = ++queries_;
  // Of one that fits nowhere nothing was asked before.
  if (made) row.query = queries_;
  row.answered = true;
  row.victims_answered = false;
  row.victims = std::move(asked);
  with_victims_.erase(pod);
  ++asked_count_;
  return queries_;
}

bool VerdictTable::AnswerAboutVictims(OwnerId pod, uint64_t query, Instant at,
                                      std::vector<NodeVictims> said) {
  const auto found = rows_.find(pod);
  if (found == rows_.end()) return false;
  Row& row = found->second;
  if (row.victims_query == 0 || row.victims_answered || row.victims_query != query) return false;
  std::erase_if(said, [&](const NodeVictims& one) {
    return one.pods.empty() ||
           !std::ranges::binary_search(row.victims, one.node, {}, &NodeVictims::node);
  });
  std::ranges::sort(said, {}, &NodeVictims::node);
  row.victims = std::move(said);
  row.victims_answered = true;
  row.at = at;
  with_victims_.insert(pod);
  CHECK_GT(asked_count_, 0u);
  --asked_count_;
  return true;
}

void VerdictTable::ForgetVictim(OwnerId pod) {
  for (const OwnerId preemptor : with_victims_) {
    std::erase_if(rows_.at(preemptor).victims, [&](const NodeVictims& one) {
      return std::ranges::find(one.pods, pod) != one.pods.end();
    });
  }
}

void VerdictTable::Erase(OwnerId pod) {
  const auto row = rows_.find(pod);
  if (row == rows_.end()) return;
  with_victims_.erase(pod);
  if (Awaits(row->second)) --asked_count_;
  rows_.erase(row);
}

void NodeVictims::AddTo(Hasher& hasher) const {
  hasher.Add(node.value).Add(pdb_violations).Add(pods.size());
  for (const OwnerId pod : pods) hasher.Add(pod.value);
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
    hasher.AddHistory(row.victims_query).Add(row.victims_answered).Add(row.victims.size());
    for (const NodeVictims& one : row.victims) one.AddTo(hasher);
  }
  hasher.AddHistory(queries_);
}

}  // namespace berth::model
