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
      if (term.counted != AffinityIndex::kNone) take(term.counted);
    }
    std::ranges::for_each(own->all_pairs, take);
  }
  if (!spec.selected_by.valid()) return;
  const model::PodMatcher& matcher = state.ledger().matcher();
  for (const model::PodSelectorId id :
       state.vocabulary().pod_selector_lists.View(spec.selected_by)) {
    std::ranges::for_each(index.PairsOfRow(matcher.RowOf(id)), take);
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
  ForEachPair(state, spec, [&](uint32_t pair) { keys.push_back(index.KeyOf(index.pair(pair))); });
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

// By id: the order in which an index has them changes.
std::vector<uint32_t> NodeLikeness::PairsNow(const model::State& state) const {
  const AffinityIndex& index = state.ledger().affinities();
  std::vector<uint32_t> pairs;
  ForEachPair(state, state.vocabulary().classes.at(class_id_), [&](uint32_t pair) {
    if (IsMany(index.KeyOf(index.pair(pair)))) pairs.push_back(pair);
  });
  std::ranges::sort(pairs);
  pairs.erase(std::ranges::unique(pairs).begin(), pairs.end());
  return pairs;
}

// Whether nodes may be told of pods on others by a key of many values.
bool NodeLikeness::IsShared(const model::State& state) const {
  const AffinityIndex& affinities = state.ledger().affinities();
  if (std::ranges::any_of(pairs_, [&](uint32_t id) {
        const AffinityIndex::Pair& pair = affinities.pair(id);
        return !pair.at.empty() && affinities.HasShared(pair);
      }))
    return true;
  const std::span<const model::SpreadConstraint> constraints =
      ConstraintsOf(state, state.vocabulary().classes.at(class_id_));
  for (size_t i = 0; i < constraints.size(); ++i) {
    if (!IsMany(constraints[i].key)) continue;
    const SpreadIndex::Domains& domains = DomainsOf(state, class_id_)[i];
    if (domains.has_shared() && !state.ledger().spreads().NodesWithPods(domains).empty())
      return true;
  }
  return false;
}

void NodeLikeness::Begin(const model::State& state, model::ClassId class_id) {
  std::vector<Key> before = std::exchange(keys_, {});
  if (class_id_ != class_id) before.clear();
  class_id_ = class_id;
  kinds_.clear();
  kinds_max_ = size_t{limits_.kinds_max} + state.nodes().size() / 4;
  spreads_position_ = state.ledger().spreads().recounted().end();
  affinities_position_ = state.ledger().affinities().recounted().end();
  // By scores of hostnames each node counts for itself, also beside others of its name.
  const NameId hostname = state.vocabulary().names.Find(place::kHostname);
  std::vector<NameId> keys = KeysNow(state);
  for (const Key& key : before) keys.push_back(key.name);
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  for (const NameId key : keys)
    keys_.push_back({.name = key, .many = key == hostname || HasMany(state, key)});
  pairs_ = PairsNow(state);
  shared_ = IsShared(state);
  // Of other keys of many values it is not known how many of these the nodes have that fit.
  works_ = std::ranges::none_of(ConstraintsOf(state, state.vocabulary().classes.at(class_id_)),
                                [&](const model::SpreadConstraint& c) {
                                  return c.hard == 0 && c.key != hostname && IsMany(c.key);
                                });
}

void NodeLikeness::Settle() {
  if (kinds_.size() > kinds_max_) works_ = false;
  if (!works_) kinds_.clear();
}

bool NodeLikeness::CatchUp(const model::State& state, std::vector<NodeId>& changed) {
  if (!std::ranges::includes(keys_, KeysNow(state), {}, &Key::name)) return false;
  // Of kinds that came one by one many have no nodes any more.
  if (kinds_.size() > 2 * kinds_max_) return false;
  if (!works_) return true;
  const std::vector<uint32_t> before = std::exchange(pairs_, PairsNow(state));
  const bool was_shared = std::exchange(shared_, IsShared(state));
  if (shared_) return true;
  // Meanwhile nodes were told of pods that came to others.
  if (was_shared) return false;
  // It may have been counted for others all the while, and nothing new was logged.
  const AffinityIndex& affinities = state.ledger().affinities();
  for (const uint32_t id : pairs_) {
    if (std::ranges::binary_search(before, id)) continue;
    const AffinityIndex::Pair& pair = affinities.pair(id);
    for (const AffinityIndex::InDomain& at : pair.at)
      changed.push_back(affinities.OnlyNodeOf(pair, at.domain));
  }
  const auto take = [&](const model::TouchLog& log, uint64_t& position) {
    if (position < log.begin()) return false;
    for (; position < log.end(); ++position) {
      if (log.latest(position)) changed.push_back(log.at(position).node);
    }
    return true;
  };
  return take(state.ledger().spreads().recounted(), spreads_position_) &&
         take(state.ledger().affinities().recounted(), affinities_position_);
}

// What constraints by keys of many values know of the node. False: it is like no other.
bool NodeLikeness::AddConstraints(const model::State& state, NodeId n) {
  const std::span<const model::SpreadConstraint> constraints =
      ConstraintsOf(state, state.vocabulary().classes.at(class_id_));
  if (constraints.empty()) return true;
  const std::vector<SpreadIndex::Domains>& all = DomainsOf(state, class_id_);
  for (size_t i = 0; i < constraints.size(); ++i) {
    if (!IsMany(constraints[i].key)) continue;
    if (all[i].OfNode(n) != SpreadIndex::kNone) {
      kind_.push_back(state.ledger().spreads().PodsOn(all[i], n));
    } else if (HasKeysOf(state, constraints, i, n)) {
      return false;
    } else {
      kind_.push_back(-1);
    }
  }
  return true;
}

uint32_t NodeLikeness::KindOf(const model::State& state, NodeId n) {
  kind_.clear();
  for (const Key& key : keys_) {
    const NameId value = state.LabelOf(n, key.name);
    kind_.push_back(key.many ? int64_t{value.valid()} : int64_t{value.value});
  }
  if (AddConstraints(state, n)) {
    const AffinityIndex& index = state.ledger().affinities();
    for (const uint32_t pair : pairs_) {
      const AffinityIndex::Counts counts = index.On(index.pair(pair), n);
      if (counts == AffinityIndex::Counts{}) continue;
      kind_.insert(kind_.end(),
                   {pair, counts.selected, counts.against, counts.wanting, counts.weight});
    }
  } else {
    kind_ = {-1, n.value};
  }
  const auto at = kinds_.find(kind_);
  if (at != kinds_.end()) return at->second;
  const auto kind = static_cast<uint32_t>(kinds_.size());
  kinds_.emplace(kind_, kind);
  if (kinds_.size() > 2 * kinds_max_) works_ = false;
  return kind;
}

}  // namespace berth::cycle
