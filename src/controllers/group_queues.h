#pragma once

#include <string_view>

#include "api/groups.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// What the status of a Queue of scheduling.volcano.sh says: how many PodGroups of each phase are in
// it, and whether it is open. Whoever closes one writes Closed; while it has PodGroups it is
// Closing (https://volcano.sh/en/docs/queue/#state). A queue below a closed one keeps its own state: that
// nobody starts there follows from the parents alone.
namespace berth::controllers {

// What the state is to be, by what it says.
[[nodiscard]] std::string_view QueueStateOf(std::string_view said, bool has_groups);

// Cost: O(1), however many groups there are.
[[nodiscard]] Plan PlanGroupQueue(const Objects& objects, Slot slot);

}  // namespace berth::controllers
