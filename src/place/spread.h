#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/ids.h"
#include "model/ledger.h"
#include "model/reason.h"
#include "model/spread.h"
#include "model/spread_index.h"
#include "model/state.h"

// PodTopologySpread of kube-scheduler 1.36: where pods of a domain are few, more may come.
namespace berth::place {

// By scores of this key each node counts for itself, also beside others of its name.
inline constexpr std::string_view kHostname = "kubernetes.io/hostname";

// A class's constraints as the filter sees them. Good until the state changes.
class SpreadQuery {
 public:
  // Who is promised the node and is no less important than the viewer counts there, as upstream;
  // without a viewer nobody does.
  SpreadQuery(const model::State& state, model::ClassId c, const model::Viewer* viewer);

  // Whether there is anything to ask.
  [[nodiscard]] bool hard() const { return hard_; }

  // Whether the node has all keys that hard constraints name.
  [[nodiscard]] bool Labelled(model::NodeId n) const;

  // kNone, kSpread, or kSpreadLabel, which nobody's eviction changes. O(constraints x log domains).
  [[nodiscard]] model::Verdict Filter(model::NodeId n) const;
  // Adds which of the nodes refuse, promises aside: 1 in their order. O(constraints x nodes).
  void FilterAll(std::span<const model::NodeId> nodes, std::span<uint8_t> refused) const;

  // For evictions: which of the hard constraints the pod, which is on the node, is less to when it
  // is gone (bit i: the i-th), and what the node says when so many are gone from it. As upstream,
  // who is evicted is taken from what an empty selector counts, too, though it never counted.
  [[nodiscard]] uint32_t TakenBy(model::OwnerId pod, model::NodeId n) const;
  [[nodiscard]] model::Verdict FilterWithout(model::NodeId n, std::span<const int32_t> gone) const;

 private:
  [[nodiscard]] int32_t Promised(const model::SpreadIndex::Domains& domains, model::NodeId n) const;

  const model::State& state_;
  const model::SpreadIndex& index_;
  const model::Viewer* viewer_;
  std::span<const model::SpreadConstraint> constraints_;
  const std::vector<model::SpreadIndex::Domains>* domains_ = nullptr;
  std::array<int32_t, model::kSpreadConstraintsMax> least_{};  // By constraint.
  bool hard_ = false;
};

// The normalised scores, 0 to 100, of nodes that fit: by the constraints that are not hard. None of
// a class that has no such one, which adds nothing. `alike`: how many nodes that fit each stands
// for, which are of its domains (of a hostname: of some); empty: itself. O(nodes x constraints x
// log domains).
void ScoreSpread(const model::State& state, model::ClassId c,
                 std::span<const model::NodeId> fitting, std::span<const uint32_t> alike,
                 std::vector<int32_t>& out);

}  // namespace berth::place
