#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/deployment.h"

// The status of a Deployment: counts, and the conditions that `kubectl rollout status` reads.
namespace berth::controllers {

inline constexpr std::string_view kProgressing = "Progressing";
inline constexpr std::string_view kTimedOut = "ProgressDeadlineExceeded";

struct StatusFacts {
  const api::Deployment& deployment;
  const Head& head;
  Fenceposts posts;
  std::vector<api::Condition> conditions;  // As they are, with what the plan so far changed.
  std::vector<const api::ReplicaSet*> sets;
  const api::ReplicaSet* fresh = nullptr;  // The template's.
  std::optional<std::string> trouble;
  bool collided = false;
  bool rollout = false;  // Judge the progress; a mere scaling does not.
};

// Whether everything that was asked for runs and nothing else does, by the status as it is written.
[[nodiscard]] bool IsComplete(const api::Deployment& deployment);

// Adds the write of the status, if it changes, and when time alone will change it.
void PlanDeploymentStatus(StatusFacts facts, Instant now, Plan& plan);

}  // namespace berth::controllers
