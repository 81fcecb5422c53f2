#pragma once

#include <string_view>
#include <vector>

#include "api/types.h"

// Which Job a pod or a Workload is of: who places pods and who makes Workloads have to agree.
namespace berth::api {

// The uid of the Job that controls the object, or that left it behind, as the labels of one that
// nothing owns tell: of a pod its Job's, of a Workload Kueue's. Empty: it is of none. Anybody may
// name any uid: it counts in the object's namespace alone. O(owners + labels).
[[nodiscard]] std::string_view JobUidOf(const std::vector<OwnerReference>& owners,
                                        const StringMap& labels);

}  // namespace berth::api
