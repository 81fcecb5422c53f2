#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "explore/scenario.h"
#include "sim/truth.h"

// What controllers and kubelets of a scenario write, as functions of the objects: the small atomic
// models of controllers/ and nodes/.
namespace berth::explore {

// The status that a budget is to have, as a merge patch: healthy are pods that are ready, stay, and
// were not evicted a moment ago. Nothing when it has it. As controllers::PlanBudget, but for its
// conditions and its timeouts. `owners` are those that are there: maxUnavailable is of the pods
// that they want. `budget` is its document.
[[nodiscard]] std::optional<std::string> BudgetStatus(const sim::Truth& truth,
                                                      const std::vector<Owner>& owners,
                                                      std::string_view budget);

// The status that a pod gets from the kubelet of its node: it runs and is ready, or it has failed,
// because it does not fit beside those that run there (OutOfcpu). A strategic merge patch.
[[nodiscard]] std::string StartedStatus(const sim::Truth& truth, const sim::Truth::PodFacts& pod,
                                        Instant now);

}  // namespace berth::explore
