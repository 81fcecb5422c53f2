#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/types.h"
#include "api/workloads.h"

// The typed views of PodGroup and Queue (scheduling.volcano.sh/v1beta1), as api/types.h, and which
// group a pod is in.
namespace berth::api {

// What pods name in spec.schedulerName to be placed as members of a PodGroup.
inline constexpr std::string_view kVolcanoScheduler = "volcano";

// On a pod: the PodGroup of its namespace that it is a member of, under the name that Kubernetes'
// first batch schedulers used, and under Volcano's own.
inline constexpr std::string_view kGroupAnnotation = "scheduling.k8s.io/group-name";
inline constexpr std::string_view kVolcanoGroupAnnotation = "scheduling.volcano.sh/group-name";

// Groups that are made for pods are called this and a uid: that of the pods' controller, or of the
// pod itself where it has none. Nothing else of the pod is in the name.
inline constexpr std::string_view kMadeGroupPrefix = "podgroup-";
[[nodiscard]] std::string MadeGroupName(const std::vector<OwnerReference>& owners,
                                        std::string_view pod_uid);
// The group that a pod's annotations name; empty: none.
[[nodiscard]] std::string_view NamedGroup(const StringMap& annotations);
// The group that a pod is a member of: the one that it names, else, of Volcano's scheduler, the one
// that is made for it, whether it is there yet or not. Empty: none.
[[nodiscard]] std::string GroupOf(const Pod& pod);

struct PodGroupCondition {
  std::string transition_id;
  Condition condition;
  bool operator==(const PodGroupCondition&) const = default;
};

struct PodGroup {
  ObjectMeta meta;
  int64_t min_member = 0;
  std::vector<std::pair<std::string, int64_t>> min_task_member;  // In the document's order.
  std::string queue;
  std::string priority_class;
  StringMap min_resources;  // Quantities, as they were given.
  std::string phase;
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  std::vector<PodGroupCondition> conditions;
  bool operator==(const PodGroup&) const = default;
};

// That it names, or "default". Valid as long as the group.
[[nodiscard]] std::string_view QueueOf(const PodGroup& group);

// PodGroups by their phase.
struct GroupCounts {
  int64_t pending = 0;
  int64_t inqueue = 0;
  int64_t running = 0;
  int64_t unknown = 0;
  int64_t completed = 0;
  bool operator==(const GroupCounts&) const = default;
};
// That of a phase as it is written; one that was never written is pending.
[[nodiscard]] int64_t& CountOf(GroupCounts& counts, std::string_view phase);

// Amounts are in the units of ResourceAmount, clamped to limits::kQuotaMax.
struct Queue {
  ObjectMeta meta;
  int64_t weight = 1;
  std::string parent;       // Empty: the root.
  ResourceList capability;  // The most that its groups may have; of others as much as there is.
  ResourceList deserved;    // What they may have whatever others want.
  ResourceList guarantee;   // What nobody else may have.
  std::string state;        // Open, Closed, Closing, Unknown; empty: nobody said.
  GroupCounts groups;
  bool operator==(const Queue&) const = default;
};
// Whether its groups may start: one that nobody looked at yet is open.
[[nodiscard]] bool IsOpen(const Queue& queue);

}  // namespace berth::api
