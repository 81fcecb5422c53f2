#pragma once

#include <string>
#include <string_view>

#include "api/types.h"
#include "sim/truth.h"

// What Volcano's queues have for members of their groups, by plain counts over the objects.
namespace berth::sim {

// Whether no member of a group of that queue may start: it, or one above it, is closed or missing.
[[nodiscard]] bool QueueIsBarred(const Truth& truth, std::string_view queue);
// Whether the queue, and each above it, has so much beside what members on nodes have and what is
// kept for groups that are Inqueue. Of `but_for` ("namespace/name") nothing counts that is kept.
[[nodiscard]] bool QueueHas(const Truth& truth, std::string_view queue,
                            const api::ResourceList& amounts, std::string_view but_for);
// Of a queue, or one above it, whose members on nodes have more than its capability; empty: none.
[[nodiscard]] std::string OverfullQueue(const Truth& truth, std::string_view queue);

}  // namespace berth::sim
