#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/policy.h"
#include "model/reason.h"
#include "model/state.h"

namespace berth::place {

// One class on every node row, in columns. Rows that are free or ghosts have kNodeMissing.
struct Evaluation {
  std::vector<model::ReasonKind> kinds;  // kNone: it fits.
  std::vector<model::NodeScore> scores;  // Read only where it fits.
};

// What the two raw scores are normalised by: their largest values over the nodes that fit.
struct Extremes {
  int32_t taints_max = 0;
  int32_t affinity_max = 0;
  bool operator==(const Extremes&) const = default;
};

// A task that is typical of the load, for FGD: how often it comes, in parts of the sum of all
// weights.
struct TypicalTask {
  model::Amount cpu_milli = 0;
  model::Amount memory = 0;
  model::GpuDemand gpu;
  model::NameListId models;
  uint32_t weight = 0;
  bool operator==(const TypicalTask&) const = default;
};

// Filters and scores of one class on one node: a pure function of the state. A value; holds no
// caches.
//
// Free amounts are what the viewer may take now (Ledger::Now); without a viewer, physical free,
// reservations aside: what is kept per class, where nodes with reservations are asked again with
// the pod at hand.
class Evaluator {
 public:
  explicit Evaluator(model::Policy policy = model::Policy::kSpread,
                     std::vector<TypicalTask> typical = {});

  [[nodiscard]] model::Policy policy() const { return policy_; }

  // O(amounts of the request) and a few lookups: under 100 ns.
  [[nodiscard]] model::Verdict Filter(const model::State& state, model::ClassId c, model::NodeId n,
                                      const model::Viewer* viewer) const;
  // REQUIRES: Filter fits.
  [[nodiscard]] model::NodeScore Score(const model::State& state, model::ClassId c,
                                       model::NodeId n) const;

  // Filter without a viewer, and Score, of every row: equal to calling them one by one, and faster.
  void EvaluateAll(const model::State& state, model::ClassId c, Evaluation& out) const;

  // The devices that a pod of the class gets on a node it fits. None for a class without GPU
  // demand.
  [[nodiscard]] model::DeviceSlots ChooseDevices(const model::State& state, model::ClassId c,
                                                 model::NodeId n,
                                                 const model::Viewer* viewer) const;

  // local + weights x normalised raw scores. Higher wins; ties end in NodeTable::rank.
  [[nodiscard]] int64_t Total(const model::NodeScore& score, const Extremes& extremes) const;

  void AddTo(Hasher& hasher) const;

 private:
  model::Policy policy_;
  std::vector<TypicalTask> typical_;
};

}  // namespace berth::place
