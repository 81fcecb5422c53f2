#pragma once

#include "model/plan.h"
#include "model/reason.h"
#include "model/state.h"
#include "place/evaluate.h"

namespace berth::cycle {

struct WhyNotResult {
  bool would_fit = false;           // Some node fits: `refusal` then counts those that don't.
  model::ReasonMask waits_for = 0;  // The reasons whose lifting could change that.
  model::Refusal refusal;
};

// Evaluates the pod on every node, plainly: no caches. What a user is told, what a blocked line
// waits for, and the watchdog's oracle. O(nodes).
[[nodiscard]] WhyNotResult WhyNot(const model::State& state, const place::Evaluator& evaluator,
                                  model::PodId pod);

}  // namespace berth::cycle
