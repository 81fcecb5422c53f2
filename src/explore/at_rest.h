#pragma once

#include <string>
#include <vector>

#include "control/scheduler.h"
#include "sim/truth.h"

namespace berth::explore {

// What is wrong when nothing is left to happen, in sentences: the scheduler waits for an answer; a
// pod of it waits that would fit, or, where it preempts, would with evictions; a pod is nominated
// to a node that is not kept for it. Plain counts over the objects, not the engine's.
[[nodiscard]] std::vector<std::string> FindingsAtRest(const sim::Truth& truth,
                                                      const control::Scheduler& scheduler,
                                                      bool preempts);

}  // namespace berth::explore
