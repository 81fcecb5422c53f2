#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/workloads.h"
#include "controllers/indexes.h"
#include "controllers/objects.h"

// What a Job's policies make of a failed pod, and of indexes that succeeded. Pure functions.
namespace berth::controllers {

struct FailureVerdict {
  api::FailureAction action = api::FailureAction::kCount;
  bool matched = false;  // By one of the rules.
  std::string why;       // Of kFailJob: the message of the condition.

  // Towards backoffLimit and backoffLimitPerIndex.
  [[nodiscard]] bool counts() const { return action != api::FailureAction::kIgnore; }
};

// The first rule that matches decides. REQUIRES: the pod failed, or is taken for failed.
[[nodiscard]] FailureVerdict JudgeFailure(const std::vector<api::FailureRule>& rules,
                                          const PodRef& pod);

// The message of the condition when a rule is met.
[[nodiscard]] std::optional<std::string> SuccessMet(const std::vector<api::SuccessRule>& rules,
                                                    const IndexSet& succeeded, int64_t completions);

}  // namespace berth::controllers
