#include "control/resource_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/metrics_writer.h"
#include "control/scheduler.h"

namespace berth::control {
namespace {

constexpr std::string_view kRequest = "kube_pod_resource_request";

std::string_view UnitOf(std::string_view resource) {
  if (resource == "cpu") return "cores";
  if (resource == "memory" || resource == "storage" || resource == "ephemeral-storage" ||
      resource.starts_with("hugepages-")) {
    return "bytes";
  }
  return resource.starts_with("attachable-volumes-") ? "integer" : "";
}

// The class of a pod has what its spec asks for; what its status says is in its charge.
void TellPod(const model::State& state, const model::Pod& pod, MetricsWriter& metrics) {
  const model::Vocabulary& vocabulary = state.vocabulary();
  const model::ClassSpec& asks = vocabulary.classes.at(pod.class_id);
  const std::string_view key = state.KeyOf(pod.key);
  const size_t slash = key.find('/');
  const std::string scheduler =
      asks.profile.valid() ? MetricsWriter::Escaped(state.NameOf(asks.profile)) : "";
  for (const model::ResourceAmount& amount : vocabulary.bundles.View(asks.requests)) {
    if (amount.resource == model::kPods) continue;  // Its own place, which it does not ask for.
    const std::string_view resource = vocabulary.resources.Name(amount.resource);
    metrics.Decimal(
        fmt::format(R"({}{{namespace="{}",node="{}",pod="{}",priority="{}",resource="{}",)"
                    R"(scheduler="{}",unit="{}"}})",
                    kRequest, key.substr(0, slash), pod.node.valid() ? state.NameOf(pod.node) : "",
                    key.substr(slash + 1), pod.priority, resource, scheduler, UnitOf(resource)),
        amount.amount, amount.resource == model::kCpu ? 1'000 : 1);
  }
}

}  // namespace

std::string ResourceMetricsText(const Scheduler& scheduler) {
  const LeaderElection* election = scheduler.election();
  if (election != nullptr && !election->leads()) return "";
  const model::State& state = scheduler.engine().state();
  std::vector<std::pair<std::string_view, model::PodId>> keys;
  keys.reserve(state.pods().live());
  for (uint32_t row = 0; row < state.pods().size(); ++row) {
    const model::PodId pod{row};
    if (!state.pods().used(pod) || state.pods().at(pod).terminal) continue;
    keys.emplace_back(state.KeyOf(state.pods().at(pod).key), pod);
  }
  std::ranges::sort(keys);
  MetricsWriter metrics;
  metrics.Family(kRequest, "gauge",
                 "What a pod asks for, by resource: its containers, sidecars and init containers "
                 "or the pod as a whole, with its overhead.");
  for (const auto& [key, pod] : keys) TellPod(state, state.pods().at(pod), metrics);
  return metrics.Take();
}

}  // namespace berth::control
