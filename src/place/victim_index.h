#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "model/ids.h"
#include "model/state.h"

namespace berth::place {

// What of a node could be evicted, summed up by priority: enough to tell how little an eviction
// there can cost without a look at its claims. For FindPreemption.
//
// It follows the state by its touch log, so that claims that come and go cost nothing until someone
// asks. It is of who is held, or of who leaves, too: when that changes, all nodes are summed up
// anew. It is no state: copies start fresh. REQUIRES: one state and its successors, and no
// transaction that is open.
class VictimIndex {
 public:
  // The resources that are summed up: those every node has.
  static constexpr uint32_t kResources = model::kFixedResourcesCount;

  static constexpr uint32_t kLatest = 8;

  // The claims of one priority on one node.
  struct Band {
    int32_t priority = 0;
    uint32_t count = 0;
    std::array<model::Amount, kResources> sums{};
    std::array<model::Amount, kResources> most{};  // Of one claim.
    // The latest starts, the latest first; Never: unknown.
    std::array<Instant, kLatest> latest{};
    // No later than this began the earliest of `victims_count` claims, whichever they are.
    [[nodiscard]] Instant LatestEarliest(int64_t victims_count) const {
      const int64_t held = std::min<int64_t>({victims_count, count, kLatest});
      return latest[static_cast<size_t>(held) - 1];
    }
  };

  VictimIndex() = default;
  VictimIndex(const VictimIndex& /*other*/) {}
  VictimIndex& operator=(const VictimIndex& other);
  VictimIndex(VictimIndex&&) = default;
  VictimIndex& operator=(VictimIndex&&) = default;
  ~VictimIndex() = default;

  // O(claims of the nodes that were touched since the last call), which it calls `changed` for.
  void CatchUp(const model::State& state, bool with_who_leaves, const auto& changed) {
    if (with_who_leaves_ != with_who_leaves) *this = VictimIndex();
    with_who_leaves_ = with_who_leaves;
    for (const model::NodeId n : TakeTouched(state)) {
      SumUp(state, n);
      changed(n);
      ++summed_up_count_;
    }
  }
  // How many nodes were summed up, each time anew, since it was made or copied.
  [[nodiscard]] uint64_t summed_up_count() const { return summed_up_count_; }
  // By ascending priority. REQUIRES: CatchUp since the last change.
  [[nodiscard]] std::span<const Band> BandsOf(model::NodeId n) const {
    return nodes_[n.value].bands;
  }
  // Whether a pod leaves any node. REQUIRES: as above.
  [[nodiscard]] bool anyone_leaves() const { return leaving_nodes_ > 0; }

 private:
  void SumUp(const model::State& state, model::NodeId n);
  std::span<const model::NodeId> TakeTouched(const model::State& state);

  struct OfNode {
    std::vector<Band> bands;
    bool anyone_leaves = false;
  };
  std::vector<OfNode> nodes_;
  bool with_who_leaves_ = false;
  uint32_t leaving_nodes_ = 0;  // Nodes that somebody leaves.
  uint64_t position_ = 0;       // In the touch log.
  uint64_t summed_up_count_ = 0;
  std::vector<model::NodeId> touched_;  // Room for TakeTouched.
};

}  // namespace berth::place
