#include "explore/job_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/quota.h"
#include "api/well_known.h"
#include "explore/reservations.h"

namespace berth::explore {
namespace {

constexpr std::string_view kDefault = "default/";

bool Says(const std::vector<api::Condition>& conditions, std::string_view type) {
  const api::Condition* condition = api::Find(conditions, type);
  return condition != nullptr && condition->status == "True";
}

bool Holds(const api::Workload& workload) {
  return Says(workload.conditions, "QuotaReserved") && !Says(workload.conditions, "Finished");
}

int64_t HeldCount(const api::Workload& workload) {
  if (!Holds(workload) || !workload.admission || workload.admission->pod_sets.empty()) return 0;
  const api::PodSetAssignment& given = workload.admission->pod_sets.front();
  return given.count.value_or(workload.pod_sets.front().count);
}

// The uid of its Job, or of the one that left it behind, by that label.
std::string_view JobOf(const api::ObjectMeta& meta, std::string_view label) {
  if (meta.owners.empty()) return api::Find(meta.labels, label).value_or("");
  const auto owner = std::ranges::find(meta.owners, true, &api::OwnerReference::controller);
  return owner == meta.owners.end() || owner->kind != "Job" ? std::string_view()
                                                            : std::string_view(owner->uid);
}

std::string_view JobOf(const api::Workload& workload) {
  return JobOf(workload.meta, api::kJobUidLabel);
}

}  // namespace

// ---- What becomes durable --------------------------------------------------------------------

std::vector<std::string> JobChecks::OnCommit(const env::JournalRecord& record, Writer writer) {
  std::vector<std::string> findings;
  const std::string key = record.key.substr(record.key.find('/') + 1);
  if (record.key.starts_with(kJobsPrefix)) {
    const std::string name = key.substr(kDefault.size());
    jobs_.erase(name);
    if (!record.value.empty()) {
      const api::Job job = decoder_.Job(record.value.view()).value();
      const auto& conditions = job.conditions;
      jobs_[name] = {
          .uid = job.meta.uid,
          .queue = std::string(api::Find(job.meta.labels, api::kQueueNameLabel).value_or("")),
          .count = std::min(job.parallelism, job.completions.value_or(job.parallelism)),
          .suspended = job.suspend,
          .over = Says(conditions, "Complete") || Says(conditions, "Failed"),
          .deleting = job.meta.deletion_time.has_value()};
    }
  } else if (record.key.starts_with(sim::kPodsPrefix)) {
    pods_.erase(key);
    if (!record.value.empty()) {
      const api::Pod pod = decoder_.Pod(record.value.view()).value();
      const bool over = pod.phase == "Succeeded" || pod.phase == "Failed";
      pods_[key] = {.job = std::string(JobOf(pod.meta, api::kControllerUidLabel)),
                    .active = !over && !pod.meta.deletion_time,
                    .over = over};
    }
  } else if (record.key.starts_with(kWorkloadsPrefix)) {
    OnWorkload(key, record, writer, findings);
  } else {
    return findings;
  }
  JudgePods(findings);
  return findings;
}

void JobChecks::OnWorkload(const std::string& key, const env::JournalRecord& record, Writer writer,
                           std::vector<std::string>& findings) {
  const auto found = workloads_.find(key);
  const std::optional<api::Workload> before =
      found == workloads_.end() ? std::nullopt : std::optional(found->second);
  workloads_.erase(key);
  std::optional<api::Workload> after;
  if (!record.value.empty()) after = decoder_.Workload(record.value.view()).value();
  if (after) workloads_[key] = *after;
  if (!before) return;
  const std::string_view uid = JobOf(*before);
  const auto owner =
      std::ranges::find_if(jobs_, [&](const auto& entry) { return entry.second.uid == uid; });
  const bool is_deleted = !before->meta.deletion_time && (!after || after->meta.deletion_time);
  if (!key.starts_with(kDefault)) {
    // There is no such Job there, so it may be collected.
    if (writer == Writer::kController)
      findings.push_back(fmt::format("workload {}, of another namespace, is written", key));
    return;
  }
  const bool another_holds = std::ranges::any_of(workloads_, [&](const auto& entry) {
    return entry.first.starts_with(kDefault) && JobOf(entry.second) == uid && Holds(entry.second);
  });
  if (Holds(*before) && !another_holds && GoesOn(uid))
    findings.push_back(fmt::format("workload {} gives its quota up, and pods of it go on", key));
  const bool finishes =
      after && !Says(before->conditions, "Finished") && Says(after->conditions, "Finished");
  if (finishes && owner != jobs_.end() && !owner->second.over)
    findings.push_back(fmt::format("workload {} is finished, and its Job is not over", key));
  if (is_deleted && writer == Writer::kCollector && owner != jobs_.end() && !owner->second.deleting)
    findings.push_back(fmt::format("workload {} is collected, and its Job is there", key));
}

// Whether a pod of it does, here, that may be ending.
bool JobChecks::GoesOn(std::string_view job_uid) const {
  return std::ranges::any_of(pods_, [&](const auto& entry) {
    return entry.second.job == job_uid && !entry.second.over && entry.first.starts_with(kDefault);
  });
}

// Whether the Job's Workload asks for what it is.
bool JobChecks::Matches(const Job& job, const api::Workload& workload) const {
  return job.asks() && workload.queue == job.queue && workload.pod_sets.size() == 1 &&
         workload.pod_sets.front().count == job.count && !Says(workload.conditions, "Finished");
}

// No Job of a queue has more pods than it has quota for.
void JobChecks::JudgePods(std::vector<std::string>& findings) const {
  for (const auto& [name, job] : jobs_) {
    if (job.queue.empty()) continue;
    const int64_t active = std::ranges::count_if(pods_, [&](const auto& entry) {
      return entry.second.job == job.uid && entry.second.active &&
             entry.first.starts_with(kDefault);
    });
    const api::Workload* workload = Of(job);
    const int64_t held = workload == nullptr ? 0 : HeldCount(*workload);
    if (active > held) {
      findings.push_back(
          fmt::format("{} pods of Job {} go on, and it has quota for {}", active, name, held));
    }
  }
}

const api::Workload* JobChecks::Of(const Job& job) const {
  const api::Workload* found = nullptr;
  for (const auto& [key, workload] : workloads_) {
    const bool ours = key.starts_with(kDefault) && JobOf(workload) == job.uid;
    if (ours && (found == nullptr || Holds(workload))) found = &workload;
  }
  return found;
}

std::string JobChecks::WorkloadOf(std::string_view job) const {
  const auto at = jobs_.find(job);
  const api::Workload* own = at == jobs_.end() ? nullptr : Of(at->second);
  if (own != nullptr) return own->meta.name;
  const auto left = std::ranges::find_if(workloads_, [&](const auto& entry) {
    return entry.first.starts_with(fmt::format("{}job-{}-", kDefault, job));
  });
  return left == workloads_.end() ? "" : left->second.meta.name;
}

// ---- At rest ---------------------------------------------------------------------------------

std::vector<std::string> JobChecks::AtRest() const {
  std::vector<std::string> findings;
  for (const auto& [name, job] : jobs_) {
    const api::Workload* workload = Of(job);
    const auto count = std::ranges::count_if(workloads_, [&](const auto& entry) {
      return entry.first.starts_with(kDefault) && JobOf(entry.second) == job.uid;
    });
    if (job.deleting && !GoesOn(job.uid))
      findings.push_back(
          fmt::format("at rest, Job {} is being deleted, and nothing of it goes on", name));
    if (job.over) {
      if (workload != nullptr && !Says(workload->conditions, "Finished"))
        findings.push_back(fmt::format("at rest, Job {} is over, and its Workload is not", name));
      continue;
    }
    if (!job.asks()) continue;
    if (count != 1 || !Matches(job, *workload)) {
      findings.push_back(fmt::format("at rest, Job {} has no Workload that asks for it", name));
      continue;
    }
    const bool runs = Says(workload->conditions, "Admitted") && Holds(*workload) &&
                      !Says(workload->conditions, "Evicted");
    if (runs == job.suspended)
      findings.push_back(fmt::format("at rest, Job {} is {}, and its Workload is {}admitted", name,
                                     job.suspended ? "suspended" : "running", runs ? "" : "not "));
  }
  for (const auto& [key, workload] : workloads_) JudgeLeft(key, workload, findings);
  return findings;
}

// Whether it is to be there still: for a Job, or as what one left behind that was not to take it
// along, which is over once no pod goes on.
void JobChecks::JudgeLeft(const std::string& key, const api::Workload& workload,
                          std::vector<std::string>& findings) const {
  const std::string_view uid = JobOf(workload);
  const bool there =
      std::ranges::any_of(jobs_, [&](const auto& entry) { return entry.second.uid == uid; });
  const bool is_left = workload.meta.owners.empty() && !uid.empty();
  const bool finished = Says(workload.conditions, "Finished");
  if (!key.starts_with(kDefault) || (!there && !is_left && !workload.meta.deletion_time))
    findings.push_back(fmt::format("at rest, workload {} is there for no Job", key));
  if (GoesOn(uid)) return;
  if (!there && is_left && !finished && !workload.meta.deletion_time)
    findings.push_back(fmt::format("at rest, workload {} was left behind, and is not over", key));
  if (workload.meta.deletion_time)
    findings.push_back(
        fmt::format("at rest, workload {} is being deleted, and nothing of it goes on", key));
  const bool kept = std::ranges::find(workload.meta.finalizers, api::kInUseFinalizer) !=
                    workload.meta.finalizers.end();
  if (finished && kept)
    findings.push_back(fmt::format("at rest, workload {} is over, and could not be deleted", key));
}

}  // namespace berth::explore
