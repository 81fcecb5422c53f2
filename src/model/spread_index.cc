#include "model/spread_index.h"

#include <algorithm>

#include "base/check.h"
#include "model/ascending.h"

namespace berth::model {

// ---- One constraint ----------------------------------------------------------------------------

uint32_t SpreadIndex::Domains::Find(NameId value) const {
  const auto at = by_value_.find(value);
  return at == by_value_.end() || rows_[at->second].nodes == 0 ? kNone : at->second;
}

int32_t SpreadIndex::Domains::Least(uint32_t domains_min, uint32_t domain, int32_t count) const {
  if (live_count_ < domains_min) return 0;
  if (domain == kNone) return by_count_.empty() ? count : by_count_.begin()->first;
  auto least = by_count_.begin();
  // Its own count is none of the others'.
  if (least->first == rows_[domain].count && least->second == 1) ++least;
  return least == by_count_.end() ? count : std::min(count, least->first);
}

void SpreadIndex::Domains::Change(Row& row, uint32_t nodes, int32_t count) {
  if (row.nodes > 0) {
    const auto at = by_count_.find(row.count);
    CHECK(at != by_count_.end());
    if (--at->second == 0) by_count_.erase(at);
    --live_count_;
  }
  shared_count_ -= row.nodes > 1 ? 1 : 0;
  shared_count_ += nodes > 1 ? 1 : 0;
  row = {.nodes = nodes, .count = count};
  if (nodes == 0) {
    CHECK_EQ(count, 0);
    return;
  }
  ++by_count_[count];
  ++live_count_;
}

void SpreadIndex::Domains::Put(NodeId n, NameId value, int32_t pods_there) {
  if (n.value >= of_node_.size()) of_node_.resize(n.value + 1, kNone);
  uint32_t wanted = kNone;
  if (value.valid()) {
    const auto [at, fresh] = by_value_.emplace(value, static_cast<uint32_t>(rows_.size()));
    if (fresh) rows_.emplace_back();
    wanted = at->second;
  }
  const uint32_t before = of_node_[n.value];
  if (before == wanted) return;
  of_node_[n.value] = wanted;
  if (before != kNone)
    Change(rows_[before], rows_[before].nodes - 1, rows_[before].count - pods_there);
  if (wanted != kNone)
    Change(rows_[wanted], rows_[wanted].nodes + 1, rows_[wanted].count + pods_there);
}

void SpreadIndex::Domains::Count(NodeId n, int32_t by) {
  const uint32_t domain = OfNode(n);
  if (domain != kNone) Change(rows_[domain], rows_[domain].nodes, rows_[domain].count + by);
}

// ---- All of them -------------------------------------------------------------------------------

int32_t SpreadIndex::PodsOn(const Domains& domains, NodeId n) const {
  if (domains.selector_ == kNone) return 0;
  const std::vector<int32_t>& on_node = selectors_[domains.selector_].on_node;
  return n.value < on_node.size() ? on_node[n.value] : 0;
}

std::span<const uint32_t> SpreadIndex::NodesWithPods(const Domains& domains) const {
  if (domains.selector_ == kNone) return {};
  return selectors_[domains.selector_].with_pods.rows();
}

bool SpreadIndex::Moved(ClassId class_id) const {
  const auto at = classes_.find(class_id);
  return at != classes_.end() && std::ranges::any_of(at->second, [&](const Domains& domains) {
           return std::ranges::binary_search(moved_, domains.selector_);
         });
}

void SpreadIndex::NoteMoved(const PodMatcher& matcher, OwnerId pod) {
  if (classes_.empty()) return;
  for (const uint32_t row : matcher.RowsOf(pod)) InsertAscending(moved_, row);
}

bool SpreadIndex::Add(const PodMatcher& matcher, uint32_t row, NodeId n, int32_t by) {
  // As upstream, which counts nobody by an empty one.
  if (row >= selectors_.size() || selectors_[row].uses.empty() || matcher.takes_all(row))
    return false;
  Selector& selector = selectors_[row];
  if (n.value >= selector.on_node.size()) selector.on_node.resize(n.value + 1);
  int32_t& there = selector.on_node[n.value];
  if (there == 0) selector.with_pods.Add(n.value);
  there += by;
  CHECK_GE(there, 0);
  if (there == 0) selector.with_pods.Remove(n.value);
  for (const auto& [class_id, constraint] : selector.uses)
    classes_.at(class_id)[constraint].Count(n, by);
  return true;
}

void SpreadIndex::Count(const PodMatcher& matcher, OwnerId pod, NodeId n, int32_t by) {
  if (classes_.empty()) return;
  bool counted = false;
  for (const uint32_t row : matcher.RowsOf(pod)) counted |= Add(matcher, row, n, by);
  if (counted) recounted_.Add(n, 0);
}

void SpreadIndex::CountNew(std::span<const uint32_t> rows, const PodMatcher& matcher, OwnerId pod,
                           NodeId n) {
  bool counted = false;
  for (const uint32_t row : rows) counted |= matcher.Selects(row, pod) && Add(matcher, row, n, +1);
  if (counted) recounted_.Add(n, 0);
}

std::vector<uint32_t> SpreadIndex::Track(ClassId class_id,
                                         std::span<const SpreadConstraint> constraints,
                                         const std::function<uint32_t(PodSelectorId)>& acquire) {
  CHECK(!tracks(class_id));
  std::vector<uint32_t> added;
  std::vector<Domains>& all = classes_[class_id];
  all.resize(constraints.size());
  for (uint32_t i = 0; i < constraints.size(); ++i) {
    if (!constraints[i].selector.valid()) continue;
    const uint32_t row = acquire(constraints[i].selector);
    if (row >= selectors_.size()) selectors_.resize(row + 1);
    all[i].selector_ = row;
    auto& uses = selectors_[row].uses;
    if (uses.empty()) added.push_back(row);
    uses.emplace_back(class_id, i);
  }
  return added;
}

void SpreadIndex::Untrack(ClassId class_id, PodMatcher& matcher) {
  for (const Domains& domains : classes_.at(class_id)) {
    if (domains.selector_ == kNone) continue;
    Selector& row = selectors_[domains.selector_];
    // Once for each constraint of the class that has it.
    const auto own =
        std::ranges::find(row.uses, class_id, [](const auto& use) { return use.first; });
    CHECK(own != row.uses.end());
    row.uses.erase(own);
    if (row.uses.empty()) {
      for (const uint32_t node : row.with_pods.rows()) recounted_.Add(NodeId{node}, 0);
      row = {};
    }
    matcher.Release(domains.selector_);
  }
  classes_.erase(class_id);
  if (classes_.empty()) moved_.clear();
}

void SpreadIndex::Put(ClassId class_id, size_t constraint, NodeId n, NameId value) {
  Domains& domains = classes_.at(class_id)[constraint];
  domains.Put(n, value, PodsOn(domains, n));
}

std::vector<ClassId> SpreadIndex::Tracked() const {
  std::vector<ClassId> tracked;
  tracked.reserve(classes_.size());
  for (const auto& [class_id, constraints] : classes_) tracked.push_back(class_id);
  return tracked;
}

// All else follows from claims, nodes and pods.
void SpreadIndex::AddTo(Hasher& hasher) const {
  hasher.Add(moved_.size());
  for (const uint32_t selector : moved_) hasher.Add(selector);
}

}  // namespace berth::model
