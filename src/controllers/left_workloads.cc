#include "controllers/left_workloads.h"

#include <algorithm>
#include <string>

#include "api/quota.h"
#include "base/check.h"
#include "controllers/pods.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kFinished = "Finished";

// The name of the Job; empty: the Workload isn't called as one that was made for it.
std::string JobNameOf(const Head& workload, std::string_view job_uid) {
  const api::OwnerReference* controller = workload.controller();
  if (controller != nullptr) return controller->name;
  constexpr std::string_view kPrefix = "job-";
  const size_t hash = workload.name.rfind('-');
  if (!workload.name.starts_with(kPrefix) || hash < kPrefix.size()) return {};
  Head job{.kind = api::KindId::kJob,
           .name = workload.name.substr(kPrefix.size(), hash - kPrefix.size()),
           .uid = std::string(job_uid)};
  return WorkloadNameOf(job) == workload.name ? job.name : std::string();
}

Write Finish(const Head& head, const api::Workload& workload, Instant now) {
  std::vector<api::Condition> conditions = workload.conditions;
  SetCondition(conditions,
               {.type = std::string(kFinished),
                .status = "True",
                .reason = "OwnerNotFound",
                .message = "The workload's owner no longer exists",
                .observed_generation = workload.meta.generation},
               now);
  return StatusOf(
      head, R"({"conditions":)" + ConditionsText(conditions, ConditionTimes::kTransition) + "}");
}

}  // namespace

std::string JobAbsence(const Write& read) {
  return AbsenceKey(read.namespace_name,
                    {.api_version = std::string(api::KindOf(read.kind).api_version()),
                     .kind = std::string(api::KindOf(read.kind).name),
                     .name = read.name,
                     .uid = read.uid});
}

Plan PlanLeftWorkloads(const Objects& objects, std::string_view job_uid, const Absences& absent,
                       bool busy, Instant now) {
  CHECK(objects.Find(job_uid) == kNoSlot);
  Plan plan;
  for (const Slot slot : objects.WorkloadsFor(job_uid)) {
    const Head& head = objects.head(slot);
    const std::string name = JobNameOf(head, job_uid);
    if (name.empty() && !head.deletion.has_value()) continue;
    Write read{.verb = Verb::kRead,
               .kind = api::KindId::kJob,
               .namespace_name = head.namespace_name,
               .name = name,
               .uid = std::string(job_uid)};
    if (!name.empty() && !absent.contains(JobAbsence(read))) {
      plan.writes.push_back(std::move(read));
      continue;
    }
    const api::Workload& workload = *objects.workload(slot);
    const bool over = IsTrue(workload.conditions, kFinished);
    if (!over && (busy || HasLivePods(objects, head.namespace_name, job_uid))) continue;
    if (!over && !head.deletion.has_value()) {
      // What names its Job is deleted by the collector.
      if (head.owners.empty()) plan.writes.push_back(Finish(head, workload, now));
    } else if (head.HasFinalizer(api::kInUseFinalizer)) {
      plan.writes.push_back(WithoutFinalizer(head, api::kInUseFinalizer));
    }
  }
  return plan;
}

}  // namespace berth::controllers
