#include "controllers/group_queues.h"

#include <fmt/format.h>

namespace berth::controllers {

std::string_view QueueStateOf(std::string_view said, bool has_groups) {
  if (said.empty() || said == "Open") return "Open";
  if (said == "Closed" || said == "Closing") return has_groups ? "Closing" : "Closed";
  return "Unknown";
}

Plan PlanGroupQueue(const Objects& objects, Slot slot) {
  Plan plan;
  const api::Queue* queue = objects.group_queue(slot);
  if (queue == nullptr) return plan;
  const api::GroupCounts counts = objects.GroupsIn(objects.head(slot).name);
  const std::string_view state = QueueStateOf(queue->state, counts != api::GroupCounts{});
  if (state == queue->state && counts == queue->groups) return plan;
  plan.writes.push_back(StatusOf(
      objects.head(slot),
      fmt::format(
          R"({{"state":"{}","pending":{},"inqueue":{},"running":{},"unknown":{},"completed":{}}})",
          state, counts.pending, counts.inqueue, counts.running, counts.unknown,
          counts.completed)));
  return plan;
}

}  // namespace berth::controllers
