#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "model/plan.h"
#include "model/reason.h"
#include "model/state.h"
#include "place/evaluate.h"

namespace berth::cycle {

struct WhyNotResult {
  // Some node fits, or evictions help there: `refusal` then counts those that don't fit.
  bool would_fit = false;
  model::ReasonMask waits_for = 0;  // The reasons whose lifting could change that.
  model::Refusal refusal;
};

// Evaluates the pod on every node, plainly: no caches, and no preemption. What a user is told, what
// a blocked line waits for, and the watchdog's oracle. O(nodes).
[[nodiscard]] WhyNotResult WhyNot(const model::State& state, const place::Evaluator& evaluator,
                                  model::PodId pod);

// The same of a pod of that class that would ask as the viewer.
[[nodiscard]] WhyNotResult WhyNotClass(const model::State& state, const place::Evaluator& evaluator,
                                       model::ClassId class_id, const model::Viewer& viewer,
                                       const model::Pin& pin = {});

// Who is on the way out of a node.
struct Leaver {
  model::KeyId pod;
  bool for_it = false;  // Who asks is who its room is promised to.
  bool deleting = false;
  bool overdue = false;  // It is still there although it was to be gone (Pod::overdue).
  Instant until;         // When its grace is over; zero: unknown, or it has none.
};
// In the order of names. O(claims of the node).
[[nodiscard]] std::vector<Leaver> WhoLeaves(const model::State& state, model::NodeId node,
                                            model::OwnerId asker);

// The promises that keep a pod out of nodes: those that would have room for it but for them, now
// or once all that leaves them has left.
struct HeldBy {
  struct Promise {
    model::NameId node;
    model::KeyId pod;  // Whose it is.
    // When the grace of all who leave the node for it is over; zero: nobody does, or it is unknown.
    Instant until;
  };
  static constexpr size_t kPromisesMax = 10;
  uint32_t nodes_count = 0;
  std::vector<Promise> promises;  // The first in the order of nodes and pods.
};
// REQUIRES: it fits nowhere now. O(nodes + claims of the nodes where promises stand).
[[nodiscard]] HeldBy WhatHolds(const model::State& state, const place::Evaluator& evaluator,
                               model::PodId pod);

// All that pods of a priority could evict, whether it helps them or not.
struct MayEvict {
  uint32_t nodes_count = 0;  // That hold it.
  std::map<int32_t, uint32_t> pods_by_priority;
  std::vector<model::ResourceAmount> amounts;  // Of what the pod asks for.
};
// O(nodes + claims).
[[nodiscard]] MayEvict WhatMayBeEvicted(const model::State& state, model::PodId preemptor);

}  // namespace berth::cycle
