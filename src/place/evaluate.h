#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/pods.h"
#include "model/policy.h"
#include "model/profile.h"
#include "model/reason.h"
#include "model/state.h"
#include "place/fragments.h"

namespace berth::place {

// What the two raw scores are normalised by: their largest values over the nodes that fit.
struct Extremes {
  int32_t taints_max = 0;
  int32_t affinity_max = 0;
  bool operator==(const Extremes&) const = default;
};

// One class on every node row, in columns. Rows that are free or ghosts have kNodeMissing.
struct Evaluation {
  std::vector<model::ReasonKind> kinds;  // kNone: it fits.
  std::vector<model::NodeScore> scores;  // Read only where it fits.
  // Of the rows that fit, as EvaluateAll found them: how many, the largest raw scores, and which
  // has the highest local score, ties by NodeTable::rank.
  uint32_t fitting_count = 0;
  Extremes extremes;
  uint32_t best = 0;  // Of no meaning when none fits.
};

// What an eviction may change, of what is asked before a refusal that none does: a verdict names
// that only where this does not refuse.
enum class Behind : uint8_t {
  kNothing,
  kPorts,
  kPortsAndAmounts,
  kPortsAmountsAndSpread,
  kPortsAmountsAndPods,  // Spread and affinity to pods.
};

// What refuses a class on a node whatever is evicted there.
struct FixedRefusal {
  // kNone: ports, amounts and devices in use at most.
  model::ReasonKind kind = model::ReasonKind::kNone;
  Behind behind = Behind::kNothing;
  uint64_t lacking = 0;  // Of the kinds from kVolumeNode on, as in a Verdict.
  // False: an extender's that says that evictions could help; in truth none does.
  bool unresolvable = true;
  bool operator==(const FixedRefusal&) const = default;
};

// What the scores of kSpread that are not normalised are made of, for explanations; Score has their
// sum, weighted by the class's profile.
struct SpreadParts {
  int64_t images = 0;
  int64_t fit = 0;  // NodeResourcesFit, by the profile's strategy.
  int64_t balanced = 0;
  bool balanced_counts = false;  // Not for a pod that asks for nothing of what is balanced.
};

// What the scores of a class by images hang on beside what each node tells of itself: while it is
// equal, none of them is another.
struct ImagesSeen {
  uint64_t stamp = 0;        // The latest of its images (model::ImageTable).
  uint32_t nodes_count = 0;  // All nodes; 0 for a class whose scores don't go by images.
  bool operator==(const ImagesSeen&) const = default;
};

// Filters and scores of one class on one node: a pure function of the state, in which the class's
// profile is (State::ProfileOf). A value; holds no caches.
//
// Free amounts are what the viewer may take now (Ledger::Now); without a viewer, physical free,
// reservations aside: what is kept per class, where nodes with reservations are asked again with
// the pod at hand.
class Evaluator {
 public:
  // kFgd needs the fragments of the typical load; with an empty table every node fragments alike
  // and best fit decides.
  Evaluator() : Evaluator(model::Policy::kSpread) {}
  explicit Evaluator(model::Policy policy, FragmentTable fragments = {});

  [[nodiscard]] model::Policy policy() const { return policy_; }

  // The first filter that refuses, in upstream's order: terms that conflict, volumes that bar all
  // nodes, terms that leave the node out (PreFilter), NodeUnschedulable, NodeName, TaintToleration,
  // NodeAffinity, NodePorts, NodeResourcesFit with every amount that lacks, VolumeRestrictions,
  // NodeVolumeLimits, VolumeBinding with all its reasons, VolumeZone, PodTopologySpread,
  // InterPodAffinity, NodeDeclaredFeatures; then GPU model, devices; then what extenders said of
  // the pod that the pin names (Pin::asker), where they were asked.
  //
  // O(amounts + taints x tolerations) and a few lookups: under 100 ns for a usual class.
  [[nodiscard]] model::Verdict Filter(const model::State& state, model::ClassId c, model::NodeId n,
                                      const model::Viewer* viewer,
                                      const model::Pin& pin = {}) const;
  // The same without what hangs on pods of other nodes, as PodTopologySpread and InterPodAffinity
  // do.
  [[nodiscard]] model::Verdict FilterAlone(const model::State& state, model::ClassId c,
                                           model::NodeId n, const model::Viewer* viewer,
                                           const model::Pin& pin = {}) const;

  // Of every row, the first filter that refuses and that no eviction changes: all but ports,
  // amounts, volumes in use, spread, affinity to pods and devices in use, and amounts and devices
  // where the empty node has too little, or spread and affinity where it has no label.
  void FixedRefusals(const model::State& state, model::ClassId c, const model::Pin& pin,
                     std::vector<FixedRefusal>& out) const;
  [[nodiscard]] FixedRefusal FixedRefusalOn(const model::State& state, model::ClassId c,
                                            model::NodeId n, const model::Pin& pin) const;

  // kSpread: `local` is the weighted sum of ImageLocality, NodeResourcesFit and BalancedAllocation,
  // and the raw scores count preferred terms and PreferNoSchedule taints. kBestFit and kFgd:
  // `local` alone, the policy's own. kRandom: all 0. Scores count physical use: reservations don't.
  // REQUIRES: Filter fits.
  [[nodiscard]] model::NodeScore Score(const model::State& state, model::ClassId c,
                                       model::NodeId n) const;

  [[nodiscard]] SpreadParts Parts(const model::State& state, model::ClassId c,
                                  model::NodeId n) const;

  // All of Score that a change of other nodes changes. O(images of the class).
  [[nodiscard]] ImagesSeen SeenImages(const model::State& state, model::ClassId c) const;
  // The class that is scored as this one on every node, as the images are now: without its images
  // where these are on no node, or on too few to count. O(images of the class).
  [[nodiscard]] model::ClassId ScoredAs(const model::State& state, model::ClassId c) const;

  // FilterAlone without a viewer, and Score, of every row, and the best of them: equal to
  // calling them one by one, and faster. 5,000 nodes with both resource scores take under 100 us
  // on one 3 GHz core (place/evaluate_bench.cc). No allocation once `out` has grown.
  void EvaluateAll(const model::State& state, model::ClassId c, Evaluation& out) const;

  // The devices that a pod of the class gets on a node it fits: the lowest idle ones for whole
  // devices; for a share the fullest that has room (with kFgd the one that fragments least), ties
  // to the lowest; with kRandom any that has room, by `draw`. None for a class without GPU demand.
  [[nodiscard]] model::DeviceSlots ChooseDevices(const model::State& state, model::ClassId c,
                                                 model::NodeId n, const model::Viewer* viewer,
                                                 uint64_t draw = 0) const;

  // local + weights, which are of the class's profile, x normalised raw scores. Higher wins; ties
  // end in NodeTable::rank.
  [[nodiscard]] int64_t Total(const model::ScoreWeights& weights, const model::NodeScore& score,
                              const Extremes& extremes) const;

  // Beside Total: what each of the nodes that fit has by the pods of other nodes (kSpread:
  // PodTopologySpread and InterPodAffinity, weighted). Nothing is added for any where `out` is
  // empty.
  // `alike`: how many nodes that fit each stands for, which are given the same; empty: itself.
  void ScoreByOthers(const model::State& state, model::ClassId c,
                     std::span<const model::NodeId> fitting, std::span<const uint32_t> alike,
                     std::vector<int64_t>& out) const;

  void AddTo(Hasher& hasher) const;

 private:
  model::Policy policy_;
  FragmentTable fragments_;
};

}  // namespace berth::place
