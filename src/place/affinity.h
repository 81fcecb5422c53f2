#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/affinity_index.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/reason.h"
#include "model/state.h"

// InterPodAffinity of kube-scheduler 1.36: pods that are to be with others, or not to be, on both
// sides.
namespace berth::place {

// What pods on a node count for, to one who asks.
struct AffinityShare {
  int32_t wanted = 0;    // They meet all of its required terms of affinity.
  int32_t against = 0;   // How many of its required terms of anti-affinity they meet.
  int32_t refusing = 0;  // How many such terms of theirs it meets.
};

// A class's terms, and those of others that select it, as the filter sees them: none where the
// class's profile does without it. Good until the state changes.
class AffinityQuery {
 public:
  // Who is promised the node and is no less important than the viewer counts there against it, as
  // upstream, and never for it, as that may not come to be; without a viewer nobody does.
  AffinityQuery(const model::State& state, model::ClassId c, const model::Viewer* viewer);

  // Whether there is anything to ask.
  [[nodiscard]] bool any() const { return requires_ || !selected_by_.empty(); }
  // Whether the class has required terms of affinity.
  [[nodiscard]] bool wants() const { return wants_; }

  // Whether the node has all keys that required terms of affinity name.
  [[nodiscard]] bool Labelled(model::NodeId n) const;

  // kNone; kPodAffinity, which nobody's eviction changes; kPodAntiAffinity; kExistingAntiAffinity.
  // O((terms + terms that select the class) x log domains).
  [[nodiscard]] model::Verdict Filter(model::NodeId n) const { return FilterWithout(n, {}); }
  // Adds which of the nodes refuse, promises aside: 1 in their order. O(terms x (nodes + bytes of
  // domains)).
  void FilterAll(std::span<const model::NodeId> nodes, std::span<uint8_t> refused) const;

  // For evictions: what the pod, which is on the node, counts for there, and what the node says
  // when so much is gone from it.
  [[nodiscard]] AffinityShare TakenBy(model::OwnerId pod, model::NodeId n) const;
  [[nodiscard]] model::Verdict FilterWithout(model::NodeId n, const AffinityShare& gone) const;

 private:
  using Pair = model::AffinityIndex::Pair;
  using Term = model::AffinityIndex::Term;
  [[nodiscard]] AffinityShare Promised(model::NodeId n) const;
  [[nodiscard]] bool IsWanted(model::NodeId n, int32_t gone) const;
  [[nodiscard]] bool IsFirst(model::NodeId n, int32_t gone) const;
  [[nodiscard]] int32_t Against(model::NodeId n) const;
  // How many of the class's terms the pod meets there, and how many of its the class.
  [[nodiscard]] int32_t MetBy(model::OwnerId pod, model::NodeId n) const;
  [[nodiscard]] int32_t RefusedBy(model::OwnerId pod, model::NodeId n) const;

  const model::State& state_;
  const model::AffinityIndex& index_;
  const model::PodMatcher& matcher_;
  const model::Viewer* viewer_;
  const model::AffinityIndex::Terms* terms_ = nullptr;
  std::span<const model::PodSelectorId> selected_by_;
  std::vector<const Pair*> refusing_;  // Of others' required terms of anti-affinity.
  bool wants_ = false;
  bool requires_ = false;      // Or is against somebody.
  bool meets_itself_ = false;  // All of its required terms of affinity.
};

// The normalised scores, 0 to 100, of nodes that fit: by what the class prefers, and what pods that
// are there prefer of it, as its profile weighs that. None where nothing is preferred, which adds
// nothing. O(terms x (nodes + bytes of domains)); of nodes that are few beside the domains
// O(terms x nodes x log domains).
void ScoreAffinity(const model::State& state, model::ClassId c,
                   std::span<const model::NodeId> fitting, std::vector<int32_t>& out);

}  // namespace berth::place
