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

// The status that a Workload gets which is evicted and holds quota, once nothing of it runs: it
// gives that back. A merge patch. As controllers::PlanWorkload of a Job that has no pods.
[[nodiscard]] std::string ReleasedStatus(std::string_view workload, Instant now);
// The status with the condition, which is true.
[[nodiscard]] std::string ToldStatus(std::string_view workload, std::string_view condition,
                                     Instant now);
// Whether it is evicted and holds quota yet.
[[nodiscard]] bool HasToLetGo(std::string_view workload);

// The pod that a Job makes next whose Workload that is: one for each of its count once it is
// admitted. Its document; nothing when it has all, or may not run.
[[nodiscard]] std::optional<std::string> PodToMake(const sim::Truth& truth,
                                                   std::string_view workload);
// The keys of the pods that it made.
[[nodiscard]] std::vector<std::string> PodsOfJob(const sim::Truth& truth,
                                                 std::string_view workload);
// Whether it is admitted and yet one of its pods has no node.
[[nodiscard]] bool IsAdmittedInVain(const sim::Truth& truth, std::string_view workload);

}  // namespace berth::explore
