#include "controllers/workload_priority.h"

#include <fmt/format.h>

#include "api/quota.h"
#include "base/check.h"

namespace berth::controllers {

bool IsMadeByHand(const Head& workload) {
  return workload.kind == api::KindId::kWorkload && JobUidOf(workload).empty();
}

Plan PlanWorkloadPriority(const Objects& objects, Slot slot) {
  const Head& head = objects.head(slot);
  const api::Workload* workload = objects.workload(slot);
  CHECK(workload != nullptr);
  const bool of_class =
      !workload->priority_class.empty() && workload->priority_class_group == kOwnClassGroup;
  if (!of_class || !IsMadeByHand(head) || head.deletion.has_value() ||
      IsTrue(workload->conditions, "Finished")) {
    return {};
  }
  const Slot known =
      objects.Find(api::KindId::kWorkloadPriorityClass, {}, workload->priority_class);
  if (known == kNoSlot) return {};
  const int64_t value = objects.workload_class(known)->value;
  if (workload->priority == value) return {};
  Write write = PatchOf(head);
  write.body = fmt::format(R"("spec":{{"priority":{}}})", value);
  Plan plan;
  plan.writes.push_back(std::move(write));
  return plan;
}

}  // namespace berth::controllers
