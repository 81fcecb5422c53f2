#include "api/workloads.h"

namespace berth::api {

bool IsTrue(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* condition = Find(conditions, type);
  return condition != nullptr && condition->status == "True";
}

const Condition* Find(const std::vector<Condition>& conditions, std::string_view type) {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

}  // namespace berth::api
