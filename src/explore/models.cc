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

namespace berth::explore {

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
