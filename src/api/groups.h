#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/types.h"
#include "api/workloads.h"

// The typed view of PodGroup (scheduling.volcano.sh/v1beta1), as api/types.h.
namespace berth::api {

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
  std::string phase;
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  std::vector<PodGroupCondition> conditions;
  bool operator==(const PodGroup&) const = default;
};

}  // namespace berth::api
