#include "api/groups.h"

#include <algorithm>

namespace berth::api {

std::string MadeGroupName(const std::vector<OwnerReference>& owners, std::string_view pod_uid) {
  const auto controller = std::ranges::find(owners, true, &OwnerReference::controller);
  std::string name(kMadeGroupPrefix);
  return name.append(controller == owners.end() ? pod_uid : controller->uid);
}

std::string_view NamedGroup(const StringMap& annotations) {
  for (const std::string_view key : {kGroupAnnotation, kVolcanoGroupAnnotation}) {
    const auto name = Find(annotations, key);
    if (name && !name->empty()) return *name;
  }
  return {};
}

std::string GroupOf(const Pod& pod) {
  const std::string_view named = NamedGroup(pod.meta.annotations);
  if (!named.empty() || pod.spec->scheduler_name != kVolcanoScheduler) return std::string(named);
  return MadeGroupName(pod.meta.owners, pod.meta.uid);
}

std::string_view QueueOf(const PodGroup& group) {
  return group.queue.empty() ? std::string_view("default") : std::string_view(group.queue);
}

int64_t& CountOf(GroupCounts& counts, std::string_view phase) {
  if (phase == "Inqueue") return counts.inqueue;
  if (phase == "Running") return counts.running;
  if (phase == "Unknown") return counts.unknown;
  if (phase == "Completed") return counts.completed;
  return counts.pending;
}

bool IsOpen(const Queue& queue) { return queue.state.empty() || queue.state == "Open"; }

}  // namespace berth::api
