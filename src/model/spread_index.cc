#include "model/spread_index.h"

#include <algorithm>

#include "base/check.h"

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

std::span<const uint32_t> SpreadIndex::SelectorsOf(OwnerId pod) const {
  if (pod.value >= labels_of_.size() || !labels_of_[pod.value].valid()) return {};
  const PodLabelsId labels = labels_of_[pod.value];
  return labels.value < matches_.size() ? std::span(matches_[labels.value].selectors)
                                        : std::span<const uint32_t>();
}

int32_t SpreadIndex::PodsOn(const Domains& domains, NodeId n) const {
  if (domains.selector_ == kNone) return 0;
  const std::vector<int32_t>& on_node = selectors_[domains.selector_].on_node;
  return n.value < on_node.size() ? on_node[n.value] : 0;
}

bool SpreadIndex::Selects(const Domains& domains, OwnerId pod) const {
  return domains.selector_ != kNone &&
         std::ranges::binary_search(SelectorsOf(pod), domains.selector_);
}

bool SpreadIndex::Moved(ClassId class_id) const {
  const auto at = classes_.find(class_id);
  return at != classes_.end() && std::ranges::any_of(at->second, [&](const Domains& domains) {
           return std::ranges::binary_search(moved_, domains.selector_);
         });
}

void SpreadIndex::NoteMoved(OwnerId pod) {
  if (classes_.empty()) return;
  for (const uint32_t selector : SelectorsOf(pod)) {
    const auto at = std::ranges::lower_bound(moved_, selector);
    if (at == moved_.end() || *at != selector) moved_.insert(at, selector);
  }
}

void SpreadIndex::Add(uint32_t selector, NodeId n, int32_t by) {
  Selector& row = selectors_[selector];
  // As upstream, which counts nobody by an empty one.
  if (row.uses.empty() || row.selector.requirements.empty()) return;
  if (n.value >= row.on_node.size()) row.on_node.resize(n.value + 1);
  row.on_node[n.value] += by;
  CHECK_GE(row.on_node[n.value], 0);
  for (const auto& [class_id, constraint] : row.uses)
    classes_.at(class_id)[constraint].Count(n, by);
}

void SpreadIndex::Count(OwnerId pod, NodeId n, int32_t by) {
  if (classes_.empty()) return;
  for (const uint32_t selector : SelectorsOf(pod)) Add(selector, n, by);
}

void SpreadIndex::CountNew(std::span<const uint32_t> selectors, OwnerId pod, NodeId n) {
  const std::span<const uint32_t> own = SelectorsOf(pod);
  for (const uint32_t selector : selectors) {
    if (std::ranges::binary_search(own, selector)) Add(selector, n, +1);
  }
}

void SpreadIndex::Match(PodLabelsId labels, std::string_view text) {
  Matches& matches = matches_[labels.value];
  matches.known = true;
  matches.selectors.clear();
  const auto candidates = by_namespace_.find(NamespaceOfPodLabels(text));
  if (candidates == by_namespace_.end()) return;
  for (const uint32_t selector : candidates->second) {
    if (selectors_[selector].selector.Selects(text)) matches.selectors.push_back(selector);
  }
}

void SpreadIndex::SetLabels(OwnerId pod, PodLabelsId labels, std::string_view text) {
  if (pod.value >= labels_of_.size()) labels_of_.resize(pod.value + 1);
  labels_of_[pod.value] = labels;
  if (classes_.empty() || !labels.valid()) return;
  if (labels.value >= matches_.size()) matches_.resize(labels.value + 1);
  if (!matches_[labels.value].known) Match(labels, text);
}

void SpreadIndex::ForgetLabels(PodLabelsId labels) {
  if (labels.value < matches_.size()) matches_[labels.value] = {};
}

std::vector<uint32_t> SpreadIndex::Track(ClassId class_id,
                                         std::span<const SpreadConstraint> constraints,
                                         const StringTable<PodSelectorId>& selectors,
                                         const StringTable<PodLabelsId>& labels) {
  CHECK(!tracks(class_id));
  const size_t known = selectors_.size();
  std::vector<uint32_t> added;
  std::vector<Domains>& all = classes_[class_id];
  all.resize(constraints.size());
  for (uint32_t i = 0; i < constraints.size(); ++i) {
    if (!constraints[i].selector.valid()) continue;
    const auto [at, fresh] =
        row_of_.emplace(constraints[i].selector, static_cast<uint32_t>(selectors_.size()));
    if (fresh) {
      selectors_.push_back({.selector = ParsePodSelector(selectors.View(constraints[i].selector)),
                            .on_node = {},
                            .uses = {}});
      by_namespace_[selectors_.back().selector.namespace_name].push_back(at->second);
    }
    all[i].selector_ = at->second;
    auto& uses = selectors_[at->second].uses;
    if (uses.empty()) added.push_back(at->second);
    uses.emplace_back(class_id, i);
  }
  // Without a selector that is new, those are asked that came while no class was tracked.
  const bool all_anew = selectors_.size() > known;
  matches_.resize(std::max<size_t>(matches_.size(), labels.size()));
  for (uint32_t i = 0; i < labels.size(); ++i) {
    if (labels.contains(PodLabelsId{i}) && (all_anew || !matches_[i].known))
      Match(PodLabelsId{i}, labels.View(PodLabelsId{i}));
  }
  return added;
}

void SpreadIndex::Untrack(ClassId class_id) {
  for (const Domains& domains : classes_.at(class_id)) {
    if (domains.selector_ == kNone) continue;
    Selector& row = selectors_[domains.selector_];
    std::erase_if(row.uses, [&](const auto& use) { return use.first == class_id; });
    if (row.uses.empty()) row.on_node = {};
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
