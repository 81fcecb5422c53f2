#pragma once

#include <string_view>

#include "controllers/objects.h"
#include "controllers/write.h"

namespace berth::controllers {

// Of WorkloadPriorityClasses, as Workloads name them.
inline constexpr std::string_view kOwnClassGroup = "kueue.x-k8s.io";

// Whether somebody made it by hand: no Job says what it says.
[[nodiscard]] bool IsMadeByHand(const Head& workload);

// Its priority is what its WorkloadPriorityClass says, from when that is there, and whenever its
// value changes; one that is over stays as it was. Workloads of Jobs: controllers/workloads.h. What
// is of a PriorityClass, or of none, is its user's to say.
// REQUIRES: the slot holds a Workload. O(log objects).
[[nodiscard]] Plan PlanWorkloadPriority(const Objects& objects, Slot workload);

}  // namespace berth::controllers
