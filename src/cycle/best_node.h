#pragma once

#include <algorithm>
#include <cstdint>

#include "model/ids.h"
#include "model/pods.h"
#include "model/state.h"
#include "place/evaluate.h"

namespace berth::cycle {

// The best of the nodes it was offered: the highest total, ties by the smaller NodeTable::rank,
// which is only read on a tie.
struct BestNode {
  model::NodeId node;  // Invalid: none was.
  int64_t total = 0;
  void Offer(const model::State& state, model::NodeId n, int64_t its_total) {
    if (node.valid()) {
      if (its_total < total) return;
      if (its_total == total && state.nodes().rank(n) > state.nodes().rank(node)) return;
    }
    node = n;
    total = its_total;
  }
};

inline void Widen(place::Extremes& extremes, const model::NodeScore& score) {
  extremes.taints_max = std::max(extremes.taints_max, score.taints_raw);
  extremes.affinity_max = std::max(extremes.affinity_max, score.affinity_raw);
}

}  // namespace berth::cycle
