#include "cycle/node_likeness.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "model/affinity_index.h"
#include "model/spread_index.h"
#include "place/spread.h"

namespace berth::cycle {

using model::AffinityIndex;
using model::NameId;
using model::NodeId;
using model::SpreadIndex;

namespace {

std::span<const model::SpreadConstraint> ConstraintsOf(const model::State& state,
                                                       const model::ClassSpec& spec) {
  if (!spec.spread.valid()) return {};
  return state.vocabulary().spreads.View(spec.spread);
}

// Of the class's constraints, where it has any.
const std::vector<SpreadIndex::Domains>& DomainsOf(const model::State& state,
                                                   model::ClassId class_id) {
  return state.ledger().spreads().Of(state.vocabulary().classes.plain(class_id));
}

// Whether the node lacks no key that the constraint asks for (SpreadIndex). If it isn't counted all
// the same, for its taints or by the pod's node affinity, it is told of pods in a domain that other
// nodes make. One that lacks a key is refused or ignored whoever stands there.
bool HasKeysOf(const model::State& state, std::span<const model::SpreadConstraint> constraints,
               size_t i, NodeId n) {
  const model::SpreadConstraint& c = constraints[i];
  return std::ranges::all_of(constraints, [&](const model::SpreadConstraint& other) {
    const bool asks = c.by_default != 0 ? other.key == c.key : other.hard == c.hard;
    return !asks || state.LabelOf(n, other.key).valid();
  });
}

// What the class's terms count, and others' terms about it.
void ForEachPair(const model::State& state, const model::ClassSpec& spec, auto take) {
  const AffinityIndex& index = state.ledger().affinities();
  if (const AffinityIndex::Terms* own = spec.affinity.valid() ? index.Find(spec.affinity) : nullptr;
      own != nullptr) {
    for (const AffinityIndex::Term& term : own->terms) {
      if (term.counted != AffinityIndex::kNone) take(index.pair(term.counted));
    }
    for (const uint32_t pair : own->all_pairs) take(index.pair(pair));
  }
  if (!spec.selected_by.valid()) return;
  const model::PodMatcher& matcher = state.ledger().matcher();
  for (const model::PodSelectorId id :
       state.vocabulary().pod_selector_lists.View(spec.selected_by)) {
    for (const uint32_t pair : index.PairsOfRow(matcher.RowOf(id))) take(index.pair(pair));
  }
}

}  // namespace

std::vector<NameId> NodeLikeness::KeysNow(const model::State& state) const {
  const model::ClassSpec& spec = state.vocabulary().classes.at(class_id_);
  std::vector<NameId> keys;
  for (const model::SpreadConstraint& c : ConstraintsOf(state, spec)) keys.push_back(c.key);
  if (spec.affinity.valid()) {
    for (const model::AffinityTerm& term : state.vocabulary().affinities.View(spec.affinity)) {
      if (term.kind != model::AffinityKind::kAllRequired) keys.push_back(term.key);
    }
  }
  const AffinityIndex& index = state.ledger().affinities();
  ForEachPair(state, spec, [&](const AffinityIndex::Pair& p) { keys.push_back(index.KeyOf(p)); });
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

bool NodeLikeness::HasMany(const model::State& state, NameId key) const {
  std::set<NameId> values;
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    if (values.insert(state.LabelOf(NodeId{row}, key)).second && values.size() > limits_.values_max)
      return true;
  }
  return false;
}

bool NodeLikeness::IsMany(NameId key) const {
  const auto at = std::ranges::lower_bound(keys_, key, {}, &Key::name);
  return at != keys_.end() && at->name == key && at->many;
}

void NodeLikeness::Begin(const model::State& state, model::ClassId class_id) {
  std::vector<Key> before = std::exchange(keys_, {});
  if (class_id_ != class_id) before.clear();
  class_id_ = class_id;
  kinds_.clear();
  // By scores of hostnames each node counts for itself, also beside others of its name.
  const NameId hostname = state.vocabulary().names.Find(place::kHostname);
  std::vector<NameId> keys = KeysNow(state);
  for (const Key& key : before) keys.push_back(key.name);
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  for (const NameId key : keys)
    keys_.push_back({.name = key, .many = key == hostname || HasMany(state, key)});
  // Of other keys of many values it is not known how many of these the nodes have that fit.
  works_ = std::ranges::none_of(ConstraintsOf(state, state.vocabulary().classes.at(class_id_)),
                                [&](const model::SpreadConstraint& c) {
                                  return c.hard == 0 && c.key != hostname && IsMany(c.key);
                                });
}

bool NodeLikeness::IsCurrent(const model::State& state) const {
  return std::ranges::includes(keys_, KeysNow(state), {}, &Key::name);
}

uint32_t NodeLikeness::KindOf(const model::State& state, NodeId n) {
  kind_.clear();
  for (const Key& key : keys_) {
    const NameId value = state.LabelOf(n, key.name);
    kind_.push_back(key.many ? uint32_t{value.valid()} : value.value);
  }
  const std::span<const model::SpreadConstraint> constraints =
      ConstraintsOf(state, state.vocabulary().classes.at(class_id_));
  if (!constraints.empty()) {
    const std::vector<SpreadIndex::Domains>& domains = DomainsOf(state, class_id_);
    for (size_t i = 0; i < constraints.size(); ++i) {
      if (IsMany(constraints[i].key) && domains[i].OfNode(n) == SpreadIndex::kNone &&
          HasKeysOf(state, constraints, i, n))
        return kAlone;
    }
  }
  const auto at = kinds_.find(kind_);
  if (at != kinds_.end()) return at->second;
  const auto kind = static_cast<uint32_t>(kinds_.size());
  kinds_.emplace(kind_, kind);
  if (kinds_.size() > limits_.kinds_max) works_ = false;
  return kind;
}

bool NodeLikeness::FindApart(const model::State& state, size_t most,
                             std::vector<NodeId>& out) const {
  const model::ClassSpec& spec = state.vocabulary().classes.at(class_id_);
  const AffinityIndex& index = state.ledger().affinities();
  // Who keeps away from its own kind has one pair for both sides.
  std::vector<const AffinityIndex::Pair*> pairs;
  ForEachPair(state, spec, [&](const AffinityIndex::Pair& pair) {
    if (!pair.at.empty() && IsMany(index.KeyOf(pair)) &&
        std::ranges::find(pairs, &pair) == pairs.end())
      pairs.push_back(&pair);
  });
  for (const AffinityIndex::Pair* pair : pairs) {
    if (out.size() + pair->at.size() > most) return false;
    out.reserve(out.size() + pair->at.size());
    for (const AffinityIndex::InDomain& at : pair->at) {
      const NodeId n = index.OnlyNodeOf(*pair, at.domain);
      if (!n.valid()) return false;
      out.push_back(n);
    }
  }
  const std::span<const model::SpreadConstraint> constraints = ConstraintsOf(state, spec);
  for (size_t i = 0; i < constraints.size(); ++i) {
    if (!IsMany(constraints[i].key)) continue;
    const SpreadIndex::Domains& domains = DomainsOf(state, class_id_)[i];
    const std::span<const uint32_t> with_pods = state.ledger().spreads().NodesWithPods(domains);
    if (out.size() + with_pods.size() > most) return false;
    for (const uint32_t row : with_pods) {
      const uint32_t domain = domains.OfNode(NodeId{row});
      if (domain == SpreadIndex::kNone) continue;  // Alone, or without the key.
      if (domains.nodes_count(domain) != 1) return false;
      out.push_back(NodeId{row});
    }
  }
  return true;
}

}  // namespace berth::cycle
