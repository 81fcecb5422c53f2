#include "explore/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "api/selector.h"
#include "api/types.h"
#include "api/workloads.h"
#include "base/check.h"
#include "client/request.h"
#include "codec/decode.h"
#include "codec/scan.h"
#include "control/status_text.h"
#include "translate/quota_facts.h"

namespace berth::explore {
namespace {

api::Workload WorkloadIn(std::string_view document) {
  Result<api::Workload> workload = codec::Decoder().Workload(document);
  CHECK(workload.has_value());
  return std::move(*workload);
}

void Put(std::vector<api::Condition>& conditions, api::Condition condition) {
  const auto at = std::ranges::find(conditions, condition.type, &api::Condition::type);
  (at == conditions.end() ? conditions.emplace_back() : *at) = std::move(condition);
}

std::string StatusOf(const std::vector<api::Condition>& conditions, std::string_view more) {
  std::string text;
  for (const api::Condition& condition : conditions)
    text += (text.empty() ? "" : ",") + control::ConditionText(condition);
  return fmt::format(R"({{"status":{{"conditions":[{}]{}}}}})", text, more);
}

}  // namespace

std::optional<std::string> BudgetStatus(const sim::Truth& truth, const std::vector<Owner>& owners,
                                        std::string_view budget) {
  const Result<api::PodDisruptionBudget> decoded = codec::Decoder().PodDisruptionBudget(budget);
  CHECK(decoded.has_value());
  const api::PodDisruptionBudget& is = *decoded;
  const Result<api::LabelQuery> query = api::QueryOf(*is.selector);
  CHECK(query.has_value());
  int64_t pods = 0;
  int64_t healthy = 0;
  std::set<std::string> controllers;
  std::set<std::string> evicted;  // Those that are still there, and not on their way.
  for (const auto& [key, pod] : truth.pods()) {
    if (!query->Matches(pod.labels)) continue;
    ++pods;
    if (!pod.owner_uid.empty()) controllers.insert(pod.owner_uid);
    const std::string name = key.substr(key.find('/') + 1);
    if (pod.deleting) continue;
    if (std::ranges::find(is.disrupted_pods, name, &api::DisruptedPod::name) !=
        is.disrupted_pods.end()) {
      evicted.insert(name);
    } else if (pod.ready) {
      ++healthy;
    }
  }
  int64_t wanted = 0;
  for (const Owner& owner : owners) {
    if (controllers.contains("owner-" + owner.name)) wanted += owner.replicas;
  }
  const int64_t expected = is.min_available ? pods : wanted;
  const int64_t desired = is.min_available
                              ? is.min_available->value
                              : std::max<int64_t>(wanted - is.max_unavailable->value, 0);
  const int64_t allowed = expected > 0 ? std::max<int64_t>(healthy - desired, 0) : 0;
  if (is.observed_generation == is.meta.generation && is.disruptions_allowed == allowed &&
      is.current_healthy == healthy && is.desired_healthy == desired &&
      is.expected_pods == expected && is.disrupted_pods.size() == evicted.size()) {
    return std::nullopt;
  }
  std::string dropped;
  for (const api::DisruptedPod& entry : is.disrupted_pods) {
    if (evicted.contains(entry.name)) continue;
    dropped += fmt::format("{}\"{}\":null", dropped.empty() ? "" : ",", entry.name);
  }
  return fmt::format(
      R"({{"status":{{"observedGeneration":{},"disruptionsAllowed":{},"currentHealthy":{},"desiredHealthy":{},"expectedPods":{},"disruptedPods":{{{}}}}}}})",
      is.meta.generation, allowed, healthy, desired, expected, dropped);
}

bool HasToLetGo(std::string_view workload) {
  return StageOf(translate::WorkloadStatusOf(WorkloadIn(workload))) ==
         model::WorkloadStage::kEvicted;
}

std::vector<std::string> PodsOfJob(const sim::Truth& truth, std::string_view workload) {
  const std::string job = "job-" + WorkloadIn(workload).meta.name;
  std::vector<std::string> keys;
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.owner_uid == job) keys.push_back(key);
  }
  return keys;
}

std::optional<std::string> PodToMake(const sim::Truth& truth, std::string_view document) {
  const api::Workload workload = WorkloadIn(document);
  const model::WorkloadStatus status = translate::WorkloadStatusOf(workload);
  if (StageOf(status) != model::WorkloadStage::kAdmitted) return std::nullopt;
  const api::WorkloadPodSet& pods = workload.pod_sets.front();
  for (int64_t i = 0; i < pods.count; ++i) {
    const std::string name = fmt::format("{}-{}", workload.meta.name, i);
    if (truth.pods().contains("default/" + name)) continue;
    const auto cpu = api::Find(pods.spec->containers.front().requests, "cpu");
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{1}","uid":"job-{1}","controller":true}}]}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"{2}m"}}}}}}]}}}})",
        name, workload.meta.name, cpu.value_or(0));
  }
  return std::nullopt;
}

bool IsAdmittedInVain(const sim::Truth& truth, std::string_view document) {
  if (StageOf(translate::WorkloadStatusOf(WorkloadIn(document))) !=
      model::WorkloadStage::kAdmitted) {
    return false;
  }
  return std::ranges::any_of(PodsOfJob(truth, document), [&](const std::string& key) {
    return truth.pods().at(key).node_name.empty();
  });
}

std::string ReleasedStatus(std::string_view workload, Instant now) {
  std::vector<api::Condition> conditions = WorkloadIn(workload).conditions;
  const auto set = [&](std::string_view type, bool is, std::string_view reason) {
    Put(conditions, {.type = std::string(type),
                     .status = is ? "True" : "False",
                     .reason = std::string(reason),
                     .message = "It has let go",
                     .transition = now});
  };
  const std::string why = api::Find(conditions, "Evicted")->reason;
  set("Requeued", true, why);
  set("QuotaReserved", false, "PendingEvaluation");
  if (api::Find(conditions, "Admitted") != nullptr) set("Admitted", false, "NoReservation");
  return StatusOf(conditions, R"(,"admission":null)");
}

std::string ToldStatus(std::string_view workload, std::string_view condition, Instant now) {
  std::vector<api::Condition> conditions = WorkloadIn(workload).conditions;
  Put(conditions, {.type = codec::StringMember(condition, "type"),
                   .status = "True",
                   .reason = codec::StringMember(condition, "reason"),
                   .message = codec::StringMember(condition, "message"),
                   .transition = now});
  return StatusOf(conditions, {});
}

std::string StartedStatus(const sim::Truth& truth, const sim::Truth::PodFacts& pod, Instant now) {
  sim::Truth::Usage usage;
  usage.Charge(pod, 1);
  for (const auto& [key, other] : truth.pods()) {
    if (other.node_name == pod.node_name && other.phase == "Running") usage.Charge(other, 1);
  }
  const api::ResourceList& allocatable = truth.nodes().at(pod.node_name).allocatable;
  const auto lacking = std::ranges::find_if(usage.amounts, [&](const auto& entry) {
    return entry.second > api::Find(allocatable, entry.first).value_or(0);
  });
  if (lacking != usage.amounts.end()) {
    return fmt::format(R"({{"status":{{"phase":"Failed","reason":"OutOf{}"}}}})", lacking->first);
  }
  const std::string time = client::SecondsTime(now);
  return fmt::format(
      R"({{"status":{{"phase":"Running","startTime":"{0}","conditions":[{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"{0}"}}]}}}})",
      time);
}

}  // namespace berth::explore
