#include "explore/at_rest.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "api/types.h"
#include "sim/gang_checks.h"
#include "sim/run.h"

namespace berth::explore {
namespace {

// Whether the scheduler keeps the node that the pod is nominated to for it.
bool HoldsPromise(const model::State& state, const sim::Truth::PodFacts& pod) {
  const model::PodId id = state.FindPod(pod.uid);
  const model::NodeId promised = id.valid() ? state.PromisedNodeOf(id) : model::NodeId{};
  return promised.valid() && promised == state.FindNode(pod.nominated);
}

// Whether the pod would fit the node without those of lower priority who are not being deleted yet,
// counted over the objects: what others of at least its priority are nominated to is theirs.
bool EvictionsHelp(const sim::Truth& truth, const sim::Truth::PodFacts& pod,
                   const std::string& node) {
  const sim::Truth::NodeFacts& facts = truth.nodes().at(node);
  // A node with a taint or a cordon takes none of the pods of scenarios.
  const std::string_view document = facts.document.view();
  if (document.contains("\"unschedulable\":true") || document.contains("\"taints\":["))
    return false;
  sim::Truth::Usage usage;
  usage.Charge(pod, 1);
  for (const auto& [key, other] : truth.pods()) {
    if (other.terminal() || other.uid == pod.uid) continue;
    const bool stays =
        other.node_name == node && (other.deleting || other.priority >= pod.priority);
    const bool promised = other.node_name.empty() && other.active() && other.nominated == node &&
                          other.priority >= pod.priority;
    if (stays || promised) usage.Charge(other, 1);
  }
  return std::ranges::all_of(usage.amounts, [&](const auto& entry) {
    return entry.second <= api::Find(facts.allocatable, entry.first).value_or(0);
  });
}

}  // namespace

std::vector<std::string> FindingsAtRest(const sim::Truth& truth,
                                        const control::Scheduler& scheduler, bool preempts) {
  std::vector<std::string> findings = sim::UnplacedThatFit(truth);
  if (scheduler.binder().size() > 0 || scheduler.client().calls_in_flight() > 0) {
    findings.emplace_back("at rest, the scheduler still waits for an answer");
  }
  const std::vector<std::string> names = control::SchedulerOptions().scheduler_names;
  for (const auto& [key, pod] : truth.pods()) {
    const bool ours = std::ranges::find(names, pod.scheduler_name) != names.end();
    if (!ours || !pod.node_name.empty() || !pod.active() || pod.gated) continue;
    if (!pod.nominated.empty() && !HoldsPromise(scheduler.engine().state(), pod)) {
      findings.push_back(fmt::format("at rest, pod {} is nominated to node {} and not promised it",
                                     key, pod.nominated));
    }
    // Nobody is evicted for members that are placed together.
    const bool alone = sim::StandsAlone(truth, pod);
    for (const auto& [name, node] : truth.nodes()) {
      if (!preempts || !alone || !pod.preempts || !EvictionsHelp(truth, pod, name)) continue;
      findings.push_back(fmt::format(
          "at rest, pod {} would fit node {} with evictions, and nobody is evicted", key, name));
    }
  }
  return findings;
}

}  // namespace berth::explore
