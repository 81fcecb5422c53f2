#include "client/workload_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "client/request.h"

namespace berth::client {
namespace {

constexpr std::string_view kPending = "Pending";
constexpr std::string_view kRetry = "Retry";

std::string CheckText(const api::CheckState& check) {
  std::string text = fmt::format(R"({{"name":{},"state":{},"message":{},"lastTransitionTime":"{}")",
                                 JsonString(check.name), JsonString(check.state),
                                 JsonString(check.message), SecondsTime(check.transition));
  if (check.requeue_after)
    text += fmt::format(R"(,"requeueAfterSeconds":{})", *check.requeue_after);
  if (check.retries > 0) text += fmt::format(R"(,"retryCount":{})", check.retries);
  if (!check.updates.empty()) text += R"(,"podSetUpdates":)" + check.updates;
  return text + '}';
}

}  // namespace

int64_t OneMore(int64_t count) {
  return std::clamp<int64_t>(count, 0, std::numeric_limits<int32_t>::max() - 1) + 1;
}

std::string ChecksText(std::span<const api::CheckState> checks) {
  std::vector<std::string> texts;
  for (const api::CheckState& check : checks) texts.push_back(CheckText(check));
  return fmt::format(R"("admissionChecks":[{}])", fmt::join(texts, ","));
}

std::string ResetOfEvicted(const api::Workload& workload, Instant now) {
  std::string text = workload.unhealthy_nodes.empty() ? "" : R"(,"unhealthyNodes":null)";
  if (workload.checks.empty()) return text;
  std::vector<api::CheckState> checks = workload.checks;
  for (api::CheckState& check : checks) {
    if (check.state == kPending) continue;
    check = {.name = check.name,
             .state = std::string(kPending),
             .message = "Reset to Pending after eviction. Previously: " + check.state,
             .transition = now,
             .retries = check.state == kRetry ? OneMore(check.retries) : check.retries};
  }
  return text + "," + ChecksText(checks);
}

std::string ExecutionText(const api::Workload& workload, Instant now) {
  const api::Condition* admitted = api::Find(workload.conditions, "Admitted");
  if (!workload.max_execution || admitted == nullptr || admitted->status != "True") return "";
  const api::Condition* evicted = api::Find(workload.conditions, "Evicted");
  const bool exceeded = evicted != nullptr && evicted->status == "True" &&
                        evicted->reason == fmt::format("DeactivatedDueTo{}", kExecutionExceeded);
  if (exceeded) return R"(,"accumulatedPastExecutionTimeSeconds":null)";
  const int64_t seconds = (now - admitted->transition).ns / Duration::Seconds(1).ns;
  return fmt::format(R"(,"accumulatedPastExecutionTimeSeconds":{})",
                     std::clamp<int64_t>(workload.past_execution + seconds, 0,
                                         std::numeric_limits<int32_t>::max()));
}

}  // namespace berth::client
