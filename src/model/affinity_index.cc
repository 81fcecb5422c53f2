#include "model/affinity_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/ascending.h"

namespace berth::model {
namespace {

// What a pod that has the term counts for.
AffinityIndex::Counts Holding(const AffinityIndex::Term& term, int32_t by) {
  switch (term.kind) {
    case AffinityKind::kRequired:
      return {.wanting = by};
    case AffinityKind::kRequiredAnti:
      return {.against = by};
    case AffinityKind::kPreferred:
      return {.weight = int64_t{by} * term.weight};
    case AffinityKind::kPreferredAnti:
      return {.weight = -int64_t{by} * term.weight};
    case AffinityKind::kAllRequired:
      break;
  }
  return {};
}

void AddCounts(AffinityIndex::Counts& to, const AffinityIndex::Counts& by) {
  to.selected += by.selected;
  to.against += by.against;
  to.wanting += by.wanting;
  to.weight += by.weight;
  CHECK_GE(to.selected, 0);
  CHECK_GE(to.against, 0);
  CHECK_GE(to.wanting, 0);
}

}  // namespace

AffinityIndex::Counts AffinityIndex::On(const Pair& pair, NodeId n) const {
  if (pair.at.empty()) return {};
  const uint32_t domain = DomainOf(pair, n);
  if (domain == kNone) return {};
  const auto at = std::ranges::lower_bound(pair.at, domain, {}, &InDomain::domain);
  return at == pair.at.end() || at->domain != domain ? Counts{} : at->counts;
}

void AffinityIndex::SetTerms(OwnerId pod, AffinityListId terms) {
  if (pod.value >= terms_of_.size()) {
    if (!terms.valid()) return;
    terms_of_.resize(pod.value + 1);
  }
  terms_of_[pod.value] = terms;
}

bool AffinityIndex::Add(uint32_t pair_id, NodeId n, const Counts& by) {
  Pair& pair = pairs_[pair_id];
  const uint32_t domain = DomainOf(pair, n);
  if (domain == kNone) return false;
  AddCounts(pair.total, by);
  auto at = std::ranges::lower_bound(pair.at, domain, {}, &InDomain::domain);
  if (at == pair.at.end() || at->domain != domain)
    at = pair.at.insert(at, {.domain = domain, .counts = {}});
  AddCounts(at->counts, by);
  if (at->counts == Counts{}) pair.at.erase(at);
  return true;
}

void AffinityIndex::Count(const PodMatcher& matcher, OwnerId pod, NodeId n, int32_t by) {
  if (terms_.empty()) return;
  bool counted = false;
  for (const uint32_t row : matcher.RowsOf(pod)) {
    for (const uint32_t pair : PairsOfRow(row)) counted |= Add(pair, n, {.selected = by});
  }
  if (const AffinityListId own = TermsOf(pod); own.valid()) {
    for (const Term& term : terms_.at(own).terms)
      counted |= term.pair != kNone && Add(term.pair, n, Holding(term, by));
  }
  if (counted) recounted_.Add(n, 0);
}

void AffinityIndex::CountNew(std::span<const uint32_t> pairs, const PodMatcher& matcher,
                             OwnerId pod, NodeId n) {
  bool counted = false;
  for (const uint32_t pair : pairs)
    counted |= matcher.Selects(pairs_[pair].row, pod) && Add(pair, n, {.selected = +1});
  if (counted) recounted_.Add(n, 0);
}

bool AffinityIndex::Moved(AffinityListId own, std::span<const PodSelectorId> matched,
                          const PodMatcher& matcher) const {
  if (all_moved_) return true;
  const auto moved = [](const std::vector<uint32_t>& rows, uint32_t row) {
    return std::ranges::binary_search(rows, row);
  };
  if (const auto at = terms_.find(own); at != terms_.end()) {
    if (at->second.all != kNone && moved(moved_selected_, at->second.all)) return true;
    for (const Term& term : at->second.terms) {
      if (term.kind == AffinityKind::kRequiredAnti && term.counted != kNone &&
          moved(moved_selected_, pairs_[term.counted].row))
        return true;
    }
  }
  return !moved_against_.empty() && std::ranges::any_of(matched, [&](PodSelectorId id) {
    return moved(moved_against_, matcher.RowOf(id));
  });
}

void AffinityIndex::TakeMoved() {
  moved_selected_.clear();
  moved_against_.clear();
  all_moved_ = false;
}

void AffinityIndex::NoteMoved(const PodMatcher& matcher, OwnerId pod) {
  if (terms_.empty()) return;
  for (const uint32_t row : matcher.RowsOf(pod)) {
    if (!PairsOfRow(row).empty()) InsertAscending(moved_selected_, row);
  }
  const AffinityListId own = TermsOf(pod);
  if (!own.valid()) return;
  for (const Term& term : terms_.at(own).terms) {
    if (term.kind == AffinityKind::kRequiredAnti && term.pair != kNone)
      InsertAscending(moved_against_, pairs_[term.pair].row);
  }
}

uint32_t AffinityIndex::PairOf(uint32_t row, NameId key_name, New& fresh) {
  const auto [key_at, key_fresh] = key_of_.emplace(key_name, static_cast<uint32_t>(keys_.size()));
  if (key_fresh) keys_.emplace_back().name = key_name;
  const uint32_t key = key_at->second;
  const auto [at, pair_fresh] =
      pair_of_.emplace(std::pair(row, key), static_cast<uint32_t>(pairs_.size()));
  if (pair_fresh) pairs_.emplace_back().row = row;
  Pair& pair = pairs_[at->second];
  pair.key = key;
  if (pair.uses++ > 0) return at->second;
  if (keys_[key].uses++ == 0) fresh.keys.push_back(key);
  if (row >= pairs_of_row_.size()) pairs_of_row_.resize(row + 1);
  if (pairs_of_row_[row].empty()) fresh.rows.push_back(row);
  pairs_of_row_[row].push_back(at->second);
  fresh.pairs.push_back(at->second);
  return at->second;
}

AffinityIndex::New AffinityIndex::Acquire(AffinityListId id, std::span<const AffinityTerm> terms,
                                          const std::function<uint32_t(PodSelectorId)>& acquire) {
  New fresh;
  Terms& all = terms_[id];
  if (all.pods++ > 0) return fresh;
  for (const AffinityTerm& term : terms) {
    const uint32_t row = term.selector.valid() ? acquire(term.selector) : kNone;
    if (term.kind == AffinityKind::kAllRequired) {
      all.all = row;
      continue;
    }
    all.terms.push_back({.kind = term.kind,
                         .weight = static_cast<int32_t>(term.weight),
                         .pair = row == kNone ? kNone : PairOf(row, term.key, fresh),
                         .counted = kNone,
                         .key = term.key});
    if (term.counted.valid())
      all.terms.back().counted = PairOf(acquire(term.counted), term.key, fresh);
  }
  if (all.all == kNone) return fresh;
  std::vector<NameId> keys;
  for (const Term& term : all.terms) {
    if (term.kind == AffinityKind::kRequired) keys.push_back(term.key);
  }
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  for (const NameId key : keys) all.all_pairs.push_back(PairOf(all.all, key, fresh));
  return fresh;
}

void AffinityIndex::ReleasePair(uint32_t id) {
  Pair& pair = pairs_[id];
  CHECK_GT(pair.uses, 0u);
  if (--pair.uses > 0) return;
  // Of a domain that has many nodes a key has few: no reader goes by how many pods are in those.
  constexpr uint32_t kNodesLogged = 64;
  const Key& of = keys_[pair.key];
  for (const InDomain& at : pair.at) {
    if (const NodeId n = OnlyNodeOf(pair, at.domain); n.valid()) {
      recounted_.Add(n, 0);
    } else if (of.nodes[at.domain].count <= kNodesLogged) {
      for (uint32_t row = 0; row < of.of_node.size(); ++row) {
        if (of.of_node[row] == at.domain) recounted_.Add(NodeId{row}, 0);
      }
    }
  }
  pair.at = {};
  pair.total = {};
  std::erase(pairs_of_row_[pair.row], id);
  Key& key = keys_[pair.key];
  if (--key.uses > 0) return;
  key.of_node = {};
  key.by_value.clear();
  key.nodes = {};
  key.shared_count = 0;
}

void AffinityIndex::Release(AffinityListId id, PodMatcher& matcher) {
  const auto at = terms_.find(id);
  CHECK(at != terms_.end());
  if (--at->second.pods > 0) return;
  for (const Term& term : at->second.terms) {
    for (const uint32_t pair : {term.pair, term.counted}) {
      if (pair == kNone) continue;
      const uint32_t row = pairs_[pair].row;
      ReleasePair(pair);
      matcher.Release(row);
    }
  }
  for (const uint32_t pair : at->second.all_pairs) ReleasePair(pair);
  if (at->second.all != kNone) matcher.Release(at->second.all);
  terms_.erase(at);
}

void AffinityIndex::Put(uint32_t key_id, NodeId n, NameId value) {
  Key& key = keys_[key_id];
  if (n.value >= key.of_node.size()) {
    if (!value.valid()) return;
    key.of_node.resize(n.value + 1, kNone);
  }
  uint32_t domain = kNone;
  if (value.valid()) {
    const auto [at, fresh] = key.by_value.emplace(value, static_cast<uint32_t>(key.nodes.size()));
    if (fresh) key.nodes.emplace_back();
    domain = at->second;
  }
  const uint32_t before = std::exchange(key.of_node[n.value], domain);
  for (const auto& [of, by] : {std::pair(before, -1), std::pair(domain, +1)}) {
    if (of == kNone) continue;
    NodesOf& nodes = key.nodes[of];
    key.shared_count -= nodes.count > 1 ? 1 : 0;
    nodes.count += static_cast<uint32_t>(by);
    nodes.all ^= n.value;
    key.shared_count += nodes.count > 1 ? 1 : 0;
  }
}

std::vector<uint32_t> AffinityIndex::KeysInUse() const {
  std::vector<uint32_t> keys;
  for (uint32_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].uses > 0) keys.push_back(i);
  }
  return keys;
}

// All else follows from claims, nodes and pods.
void AffinityIndex::AddTo(Hasher& hasher) const {
  hasher.Add(all_moved_).Add(moved_selected_.size()).Add(moved_against_.size());
  for (const uint32_t row : moved_selected_) hasher.Add(row);
  for (const uint32_t row : moved_against_) hasher.Add(row);
}

}  // namespace berth::model
