#include "control/upkeep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/backoff.h"
#include "base/check.h"
#include "client/request.h"
#include "client/workload_status.h"
#include "control/status_text.h"
#include "control/workload_conditions.h"
#include "model/workload_stage.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"

namespace berth::control {
namespace {

using client::ChecksText;
using client::OneMore;
using client::ResetOfEvicted;

constexpr std::string_view kPending = "Pending";
constexpr std::string_view kReady = "Ready";
constexpr std::string_view kRetry = "Retry";
constexpr std::string_view kRejected = "Rejected";
constexpr std::string_view kPodsReadyTimeout = "PodsReadyTimeout";
// Of the condition Admitted.
constexpr std::string_view kDelayed = "PendingDelayedTopologyRequests";

bool Has(std::span<const std::string> list, std::string_view what) {
  return std::ranges::find(list, what) != list.end();
}

bool IsTrue(const api::Workload& workload, std::string_view type) {
  return api::IsTrue(workload.conditions, type);
}

std::vector<std::string> NamesIn(const api::Workload& workload, std::string_view state) {
  std::vector<std::string> names;
  for (const api::CheckState& check : workload.checks) {
    if (check.state == state) names.push_back(check.name);
  }
  return names;
}

bool HasTheChecks(const api::Workload& workload, const QueueRules& rules) {
  const std::vector<std::string> needed = ChecksFor(rules, &*workload.admission);
  return needed.size() == workload.checks.size() &&
         std::ranges::all_of(workload.checks,
                             [&](const api::CheckState& check) { return Has(needed, check.name); });
}

// Whether its user made it active again after it was deactivated for what it was marked for. The
// mark tells of which generation it was: deactivating makes the next one, and taking that back
// another. One change by somebody else may have come between, so that alone says nothing.
bool IsReactivated(const api::Workload& workload) {
  const api::Condition* target = api::Find(workload.conditions, "DeactivationTarget");
  return workload.active && target != nullptr && target->status == "True" &&
         target->observed_generation > 0 &&
         workload.meta.generation >= target->observed_generation + 2;
}

// Why one that holds quota gives it back.
struct Reason {
  std::string reason;
  std::string message;
};
std::optional<Reason> WhyEvicted(const api::Workload& workload, const QueuesOf& queues) {
  // Of who is active again that try is over all the same, and the next begins anew.
  if (!workload.active || IsReactivated(workload)) {
    Reason why = {"Deactivated", "The workload is deactivated"};
    const api::Condition* target = api::Find(workload.conditions, "DeactivationTarget");
    if (target != nullptr && target->status == "True") {
      why.reason += "DueTo" + target->reason;
      why.message += " due to " + target->message;
    }
    return why;
  }
  if (queues.cluster_queue != nullptr && queues.cluster_queue->drains)
    return Reason{"ClusterQueueStopped", "The ClusterQueue is stopped"};
  if (queues.local_queue_drains) return Reason{"LocalQueueStopped", "The LocalQueue is stopped"};
  if (!NamesIn(workload, kRetry).empty())
    return Reason{"AdmissionCheck", "At least one admission check is false"};
  return std::nullopt;
}

// Of one that is not tried: what ended that, and in which words.
std::optional<Reason> WhyAgain(const api::Workload& workload, const QueuesOf& queues) {
  const api::Condition* again = api::Find(workload.conditions, "Requeued");
  if (again == nullptr || again->status != "False" || !workload.active) return std::nullopt;
  if (again->reason.starts_with("Deactivated"))
    return Reason{"Reactivated", "The workload was reactivated"};
  if (again->reason == "AdmissionCheck" || again->reason == kPodsReadyTimeout ||
      again->reason == translate::kNoPlaceInTopology || again->reason == kNoPlace ||
      again->reason == translate::kWaitingForGang) {
    return Reason{"BackoffFinished", "The workload backoff was finished"};
  }
  const bool queue_goes_on = queues.cluster_queue != nullptr && !queues.cluster_queue->drains;
  if (again->reason == "ClusterQueueStopped" && queue_goes_on)
    return Reason{"ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped"};
  if (again->reason == "LocalQueueStopped" && !queues.local_queue_drains)
    return Reason{"LocalQueueRestarted", "The LocalQueue was restarted after being stopped"};
  return std::nullopt;
}

// Why one without quota gets none: its user, or an administrator, wants it not to run.
translate::WaitText DeactivatedText() {
  return {"Suspended",
          "The workload is deactivated by its spec.active: set that to true to have it tried"};
}

// Whether it says that it is deactivated. One that lost its quota by that says so already, and who
// holds it says why themselves.
bool SaysDeactivated(const api::Workload& workload) {
  const auto by_that = [&](std::string_view type, std::string_view status) {
    const api::Condition* said = api::Find(workload.conditions, type);
    return said != nullptr && said->status == status && said->reason.starts_with("Deactivated");
  };
  return by_that("Evicted", "True") || by_that("Requeued", "False") ||
         translate::WorkloadStatusOf(workload).on_hold || SaysSo(workload, DeactivatedText());
}

// Of the last time that it was active.
bool SaysMore(const api::Workload& workload) {
  return workload.requeue_at || IsTrue(workload, "DeactivationTarget") ||
         !NamesIn(workload, kRetry).empty() || !NamesIn(workload, kRejected).empty();
}

// The condition Admitted, as it is to be.
api::Condition AdmittedOf(const api::Workload& workload, const QueuesOf& queues) {
  const model::WorkloadStatus status = translate::WorkloadStatusOf(workload);
  api::Condition admitted{.type = "Admitted", .status = "False"};
  if (!status.reserved) {
    admitted.reason = "NoReservation";
    admitted.message = "The workload has no reservation";
  } else if (std::ranges::any_of(workload.checks, [](const api::CheckState& check) {
               return check.state != kReady;
             })) {
    admitted.reason = "UnsatisfiedAdmissionChecks";
    admitted.message = "The workload has not all checks ready";
  } else if (queues.awaits_mates && !status.admitted) {
    admitted.reason = translate::kWaitingForGang;
    admitted.message = queues.held_up;
  } else if (status.awaits_topology) {
    admitted.reason = kDelayed;
    admitted.message = "There are pending delayed topology requests";
    if (!queues.held_up.empty()) admitted.message.append(": ").append(queues.held_up);
  } else {
    admitted.status = "True";
    admitted.reason = "Admitted";
    admitted.message = "The workload is admitted";
  }
  return admitted;
}

Upkeep UpkeepOfHolder(const api::Workload& workload, const QueuesOf& queues, bool admitted) {
  if (WhyEvicted(workload, queues)) return {.due = Due::kEvict};
  if (!workload.admission || queues.cluster_queue == nullptr) return {};
  // Checks that the queue asks for later are not for who runs already.
  if (!admitted && !HasTheChecks(workload, *queues.cluster_queue)) return {.due = Due::kChecks};
  const api::Condition wanted = AdmittedOf(workload, queues);
  const api::Condition* said = api::Find(workload.conditions, "Admitted");
  const bool tells_more = (wanted.reason == kDelayed && !queues.held_up.empty()) ||
                          wanted.reason == translate::kWaitingForGang;
  const bool says_so = said != nullptr && said->status == wanted.status &&
                       (said->status == "True" || said->reason == wanted.reason) &&
                       (!tells_more || said->message == wanted.message);
  // With its places, by who decides of them.
  if (wanted.status == "True" && queues.lacks_places) return {};
  return {.due = says_so ? Due::kNothing : Due::kAdmit};
}

}  // namespace

QueueRules RulesOf(const api::ClusterQueue& queue) {
  QueueRules rules{.checks = queue.checks, .drains = queue.stop == api::StopPolicy::kHoldAndDrain};
  for (const api::ResourceGroup& group : queue.resource_groups) {
    for (const api::FlavorQuotas& flavor : group.flavors) rules.flavors.push_back(flavor.flavor);
  }
  return rules;
}

std::vector<std::string> ChecksFor(const QueueRules& rules, const api::Admission* admission) {
  std::vector<std::string> names;
  for (const api::RequiredCheck& check : rules.checks) {
    const auto is_for = [&](const std::string& flavor) { return Has(check.flavors, flavor); };
    const bool asked =
        check.flavors.empty() ||
        (admission == nullptr
             ? std::ranges::all_of(rules.flavors, is_for)
             : std::ranges::any_of(admission->pod_sets, [&](const api::PodSetAssignment& pods) {
                 return std::ranges::any_of(pods.flavors,
                                            [&](const auto& of) { return is_for(of.second); });
               }));
    if (asked) names.push_back(check.name);
  }
  return names;
}

bool ChecksAreReady(const api::Workload& workload, const api::Admission& admission,
                    const QueueRules& rules) {
  const auto is_ready = [](const api::CheckState& check) { return check.state == kReady; };
  return std::ranges::all_of(workload.checks, is_ready) &&
         std::ranges::all_of(ChecksFor(rules, &admission), [&](const std::string& name) {
           return std::ranges::find(workload.checks, name, &api::CheckState::name) !=
                  workload.checks.end();
         });
}

std::optional<Instant> RetryAt(std::span<const api::CheckState> checks) {
  std::optional<Instant> at;
  for (const api::CheckState& check : checks) {
    if (check.state != kRetry || !check.requeue_after || check.transition == Instant{}) continue;
    const Instant then = check.transition + Duration::Seconds(*check.requeue_after);
    if (!at || *at < then) at = then;
  }
  return at;
}

RequeueState RequeueAfter(const api::Workload& workload, Instant at, bool counts) {
  RequeueState state = {.requeue_at = workload.requeue_at, .count = workload.requeue_count};
  if (!state.requeue_at || *state.requeue_at < at) state.requeue_at = at;
  if (counts) state.count = OneMore(state.count);
  return state;
}

Upkeep UpkeepOf(const api::Workload& workload, const QueuesOf& queues) {
  const model::WorkloadStage stage = StageOf(translate::WorkloadStatusOf(workload));
  if (stage == model::WorkloadStage::kFinished || workload.meta.deletion_time) return {};
  if (IsReactivated(workload)) {
    const bool holds = stage != model::WorkloadStage::kPending;
    return {.due = holds ? Due::kEvict : Due::kReset};
  }
  if (workload.active && IsTrue(workload, "DeactivationTarget")) return {.due = Due::kDeactivate};
  if (workload.active && !NamesIn(workload, kRejected).empty()) return {.due = Due::kReject};
  if (stage == model::WorkloadStage::kReserved || stage == model::WorkloadStage::kAdmitted)
    return UpkeepOfHolder(workload, queues, stage == model::WorkloadStage::kAdmitted);
  if (stage != model::WorkloadStage::kPending) return {};
  if (IsTrue(workload, "Admitted")) return {.due = Due::kAdmit};
  if (!workload.active) {
    const bool rests = SaysDeactivated(workload) && !SaysMore(workload);
    return {.due = rests ? Due::kNothing : Due::kReset};
  }
  if (WhyAgain(workload, queues))
    return {.due = Due::kRequeue, .at = workload.requeue_at.value_or(Instant{})};
  return {};
}

namespace {

// It runs, and nothing ends that yet.
bool IsRunning(const api::Workload& workload) {
  return StageOf(translate::WorkloadStatusOf(workload)) == model::WorkloadStage::kAdmitted &&
         workload.active && !workload.meta.deletion_time && !IsTrue(workload, "DeactivationTarget");
}

}  // namespace

std::optional<Instant> ExpiresAt(const api::Workload& workload) {
  if (!workload.max_execution || !IsRunning(workload)) return std::nullopt;
  const Instant since = api::Find(workload.conditions, "Admitted")->transition;
  if (since == Instant{}) return std::nullopt;
  const int64_t left = std::max<int64_t>(0, *workload.max_execution - workload.past_execution);
  return since + Duration::Seconds(std::min<int64_t>(left, std::numeric_limits<int32_t>::max()));
}

std::optional<Instant> ReadyBefore(const api::Workload& workload, const PodsReadyRules& rules) {
  if (!IsRunning(workload)) return std::nullopt;
  const api::Condition* ready = api::Find(workload.conditions, "PodsReady");
  if (ready != nullptr && ready->status == "True") return std::nullopt;
  const Instant admitted = api::Find(workload.conditions, "Admitted")->transition;
  if (admitted == Instant{}) return std::nullopt;
  const bool were_ready = ready != nullptr && ready->reason == "WaitForRecovery";
  return were_ready ? std::max(admitted, ready->transition) + rules.recovery_timeout
                    : admitted + rules.timeout;
}

Upkeep TimeLimitOf(const api::Workload& workload, const QueuesOf& queues) {
  Upkeep next = {.due = Due::kNothing, .at = Instant::Never()};
  if (const auto end = ExpiresAt(workload)) next = {.due = Due::kExpire, .at = *end};
  if (queues.pods_ready == nullptr) return next;
  const auto ready = ReadyBefore(workload, *queues.pods_ready);
  return ready && *ready < next.at ? Upkeep{.due = Due::kNotReady, .at = *ready} : next;
}

Duration BackoffOf(const PodsReadyRules& rules, int64_t evictions) {
  CHECK_GT(evictions, 0);
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  return Doubled(rules.backoff_base, static_cast<uint32_t>(std::min(evictions, kMost)),
                 rules.backoff_most);
}

namespace {

// The members of kNotReady.
std::string NotReadyBody(const api::Workload& workload, const PodsReadyRules& rules, Instant now) {
  const Said said = {.now = now, .generation = workload.meta.generation};
  std::vector<api::Condition> conditions = workload.conditions;
  const int64_t count = OneMore(workload.requeue_count);
  if (rules.backoffs_max && count > *rules.backoffs_max) {
    Put(conditions,
        {.type = "DeactivationTarget",
         .status = "True",
         .reason = "RequeuingLimitExceeded",
         .message = "exceeding the maximum number of re-queuing retries"},
        said);
    return R"("conditions":)" + ConditionsText(conditions);
  }
  Put(conditions,
      {.type = "Evicted",
       .status = "True",
       .reason = std::string(kPodsReadyTimeout),
       .message = fmt::format("Exceeded the PodsReady timeout {}/{}", workload.meta.namespace_name,
                              workload.meta.name)},
      said);
  const RequeueState state = RequeueAfter(workload, now + BackoffOf(rules, count), /*counts=*/true);
  return R"("conditions":)" + ConditionsText(conditions) + ResetOfEvicted(workload, now) +
         fmt::format(R"(,"requeueState":{{"count":{},"requeueAt":"{}"}})", state.count,
                     client::SecondsTime(*state.requeue_at));
}

// With those that it does not tell of yet.
std::string ChecksBody(const api::Workload& workload, const QueuesOf& queues, Instant now) {
  std::vector<api::CheckState> checks;
  for (const std::string& name : ChecksFor(*queues.cluster_queue, &*workload.admission)) {
    const auto known = std::ranges::find(workload.checks, name, &api::CheckState::name);
    checks.push_back(
        known != workload.checks.end()
            ? *known
            : api::CheckState{.name = name, .state = std::string(kPending), .transition = now});
  }
  return ChecksText(checks);
}

}  // namespace

std::string UpkeepBody(Due due, const api::Workload& workload, const QueuesOf& queues,
                       Instant now) {
  const Said said = {.now = now, .generation = workload.meta.generation};
  std::vector<api::Condition> conditions = workload.conditions;
  std::string more;
  switch (due) {
    case Due::kNothing:
      return "";
    case Due::kDeactivate:
      return R"("active":false)";
    case Due::kReject:
      Put(conditions,
          {.type = "DeactivationTarget",
           .status = "True",
           .reason = "AdmissionCheck",
           .message = fmt::format("Admission check(s): {}, were rejected",
                                  fmt::join(NamesIn(workload, kRejected), ","))},
          said);
      break;
    case Due::kEvict:
    case Due::kReset: {
      if (due == Due::kEvict) {
        const Reason why = *WhyEvicted(workload, queues);
        Put(conditions,
            {.type = "Evicted", .status = "True", .reason = why.reason, .message = why.message},
            said);
      }
      if (due == Due::kReset && !workload.active && !SaysDeactivated(workload))
        conditions = ConditionsOfWaiting(workload, DeactivatedText(), now);
      std::erase_if(conditions,
                    [](const api::Condition& c) { return c.type == "DeactivationTarget"; });
      more = ResetOfEvicted(workload, now);
      if (!workload.active || IsReactivated(workload)) {
        more += R"(,"requeueState":null)";
      } else if (const auto at = RetryAt(workload.checks)) {
        const RequeueState state = RequeueAfter(workload, *at, /*counts=*/false);
        more += fmt::format(R"(,"requeueState":{{"requeueAt":"{}"}})",
                            client::SecondsTime(*state.requeue_at));
      }
      break;
    }
    case Due::kChecks:
      return ChecksBody(workload, queues, now);
    case Due::kNotReady:
      return NotReadyBody(workload, *queues.pods_ready, now);
    case Due::kExpire:
      Put(conditions,
          {.type = "DeactivationTarget",
           .status = "True",
           .reason = std::string(client::kExecutionExceeded),
           .message = "exceeding the maximum execution time"},
          said);
      break;
    case Due::kAdmit: {
      const api::Condition admitted = AdmittedOf(workload, queues);
      if (admitted.status == "False") more = client::ExecutionText(workload, now);
      Put(conditions, admitted, said);
      break;
    }
    case Due::kRequeue: {
      const Reason why = *WhyAgain(workload, queues);
      Put(conditions,
          {.type = "Requeued", .status = "True", .reason = why.reason, .message = why.message},
          said);
      if (workload.requeue_at) more = R"(,"requeueState":{"requeueAt":null})";
      break;
    }
  }
  return R"("conditions":)" + ConditionsText(conditions) + more;
}

}  // namespace berth::control
