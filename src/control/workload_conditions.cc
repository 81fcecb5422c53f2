#include "control/workload_conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace berth::control {
namespace {

constexpr std::string_view kQuotaReserved = "QuotaReserved";
constexpr std::string_view kAdmitted = "Admitted";

// What it was told of an eviction is over.
void EndConditions(std::vector<api::Condition>& conditions, const Said& said) {
  for (const std::string_view type : {"Evicted", "Preempted"}) {
    const api::Condition* before = api::Find(conditions, type);
    if (before == nullptr || before->status != "True") continue;
    Put(conditions,
        {.type = std::string(type),
         .status = "False",
         .reason = std::string(kQuotaReserved),
         .message = "Previously: " + before->message},
        said);
  }
}

}  // namespace

void Put(std::vector<api::Condition>& conditions, api::Condition condition, const Said& said) {
  condition.transition = said.now;
  condition.observed_generation = said.generation;
  const auto at = std::ranges::find(conditions, condition.type, &api::Condition::type);
  if (at == conditions.end()) {
    conditions.push_back(std::move(condition));
    return;
  }
  if (at->status == condition.status) condition.transition = at->transition;
  *at = std::move(condition);
}

std::vector<api::Condition> ConditionsOfReserved(const api::Workload& workload,
                                                 const api::Admission& admission, bool admitted,
                                                 Instant now) {
  const Said said = {.now = now, .generation = workload.meta.generation};
  std::vector<api::Condition> conditions = workload.conditions;
  EndConditions(conditions, said);
  Put(conditions,
      {.type = std::string(kQuotaReserved),
       .status = "True",
       .reason = "QuotaReserved",
       .message = fmt::format("Quota reserved in ClusterQueue {}", admission.cluster_queue)},
      said);
  if (admitted) {
    Put(conditions,
        {.type = std::string(kAdmitted),
         .status = "True",
         .reason = "Admitted",
         .message = "The workload is admitted"},
        said);
  } else {
    Put(conditions,
        {.type = std::string(kAdmitted),
         .status = "False",
         .reason = "UnsatisfiedAdmissionChecks",
         .message = "The workload has not all checks ready"},
        said);
  }
  return conditions;
}

std::vector<api::Condition> ConditionsOfWaiting(const api::Workload& workload,
                                                const translate::WaitText& why, Instant now) {
  const Said said = {.now = now, .generation = workload.meta.generation};
  std::vector<api::Condition> conditions = workload.conditions;
  Put(conditions,
      {.type = std::string(kQuotaReserved),
       .status = "False",
       .reason = why.reason,
       .message = why.message},
      said);
  Put(conditions,
      {.type = std::string(kAdmitted),
       .status = "False",
       .reason = "NoReservation",
       .message = "The workload has no reservation"},
      said);
  return conditions;
}

EvictionText EvictionOf(const model::Workload& row, std::string_view job_uid,
                        const model::State& state) {
  const model::Workload& claimant = state.workloads().at(row.claimant);
  const auto path = [&](const model::Reservation& reservation) {
    return translate::QueuePath(
        state.queues().Find(model::QueueKind::kClusterQueue, reservation.cluster_queue), state);
  };
  const std::string preemptor = path(claimant.promised);
  const std::string preemptee = path(ChargedTo(row));
  return {.reason = std::string(translate::ToString(row.evicted_because)),
          .message = translate::PreemptionText({.uid = state.UidOf(claimant.uid),
                                                .job_uid = job_uid,
                                                .reason = row.evicted_because,
                                                .preemptor_path = preemptor,
                                                .preemptee_path = preemptee})};
}

std::vector<api::Condition> ConditionsOfEvicted(const api::Workload& workload,
                                                const EvictionText& why, Instant now) {
  const Said said = {.now = now, .generation = workload.meta.generation};
  std::vector<api::Condition> conditions = workload.conditions;
  Put(conditions,
      {.type = "Evicted", .status = "True", .reason = "Preempted", .message = why.message}, said);
  Put(conditions,
      {.type = "Preempted", .status = "True", .reason = why.reason, .message = why.message}, said);
  return conditions;
}

std::vector<api::Condition> ConditionsOfAdmitted(const api::Workload& workload, Instant now) {
  std::vector<api::Condition> conditions = workload.conditions;
  Put(conditions,
      {.type = std::string(kAdmitted),
       .status = "True",
       .reason = "Admitted",
       .message = "The workload is admitted"},
      {.now = now, .generation = workload.meta.generation});
  return conditions;
}

GivenUp GivenUpOf(const model::PassDecision& decision, const model::State& state) {
  if (decision.pass == model::Pass::kReplace) {
    std::vector<std::string_view> failed;
    for (const model::NameId node : decision.failed) failed.push_back(state.NameOf(node));
    return {.reason = std::string(kNodeFailures),
            .message = fmt::format(
                "Workload was evicted as there was no replacement for unhealthy node(s): {}",
                fmt::join(failed, ", "))};
  }
  const model::Workload& row = state.workloads().at(decision.workload);
  if (decision.pass == model::Pass::kLetGo) {
    translate::WaitText why = translate::WorkloadRefusalText(
        {.bar = model::QueueBar::kGang, .gang = decision.gang}, row, state);
    return {.reason = std::move(why.reason), .message = std::move(why.message)};
  }
  return {
      .reason = std::string(decision.refusal->topology ? translate::kNoPlaceInTopology : kNoPlace),
      .message = translate::PlacesRefusalText(*decision.refusal, row, state)};
}

std::vector<api::Condition> ConditionsOfGivenUp(const api::Workload& workload, std::string reason,
                                                std::string message, Instant now) {
  std::vector<api::Condition> conditions = workload.conditions;
  Put(conditions,
      {.type = "Evicted",
       .status = "True",
       .reason = std::move(reason),
       .message = std::move(message)},
      {.now = now, .generation = workload.meta.generation});
  return conditions;
}

bool SaysReason(const api::Workload& workload, std::string_view reason) {
  const api::Condition* said = api::Find(workload.conditions, kQuotaReserved);
  return said != nullptr && said->status == "False" && said->reason == reason;
}

bool SaysSo(const api::Workload& workload, const translate::WaitText& why) {
  return SaysReason(workload, why.reason) &&
         api::Find(workload.conditions, kQuotaReserved)->message == why.message;
}

}  // namespace berth::control
