#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// How many pods each PodDisruptionBudget can spare
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/).
namespace berth::controllers {

// A pod that was evicted and is still there is not missed after so long; neither is a pod whose
// condition DisruptionTarget no deletion followed.
inline constexpr Duration kDisruptionTimeout = Duration::Minutes(2);

inline constexpr Duration kScaleRetry = Duration::Minutes(1);

// What the scale subresource of an object said.
struct ScaleRead {
  std::string version;              // Of the object, when it was asked.
  std::optional<int64_t> replicas;  // Nothing: what the server said instead is `failure`.
  std::string failure = {};
  Instant ends = Instant::Never();  // When it is to be asked again.
};
// By the uid of the object.
using ScaleReads = std::map<std::string, ScaleRead, std::less<>>;

// The budget's status, where it isn't as it should be: healthy are pods that are ready, stay, and
// are not among those evicted lately; wanted is minAvailable, or what maxUnavailable leaves of the
// pods that their controllers want. Where those can't be told, nothing is allowed and the condition
// says why. Due again when the next evicted pod is not missed any more. Cost: pods of the budget.
//
// Of an owner of a kind that a user defined nothing but its metadata is seen: where `reads` has no
// scale of it as it is, the plan is to read that. What failed is asked again after kScaleRetry.
//
// With a status goes an Event of what is amiss: NoPods, UnmanagedPods and
// CalculateExpectedPodCountFailed of the budget, NotDeleted of a pod that was evicted in vain.
[[nodiscard]] Plan PlanBudget(const Objects& objects, Slot slot, const ScaleReads& reads,
                              Instant now);

// Takes back a DisruptionTarget that no deletion followed, kubelets' own excepted.
[[nodiscard]] Plan PlanDisruptedPod(const Objects& objects, Slot slot, Instant now);

}  // namespace berth::controllers
