#include "model/plan.h"

#include <fmt/format.h>

#include "model/state.h"

namespace berth::model {
namespace {

std::string Print(const Reason& reason, const State& state) {
  const char* star = reason.unresolvable ? "!" : "";
  const auto nodes = reason.nodes_count;
  switch (reason.kind) {
    case ReasonKind::kAffinityConflict:
      return fmt::format("{} affinity conflict{}", nodes, star);
    case ReasonKind::kNotNamed:
      return fmt::format("{} not named{}", nodes, star);
    case ReasonKind::kUnschedulable:
      return fmt::format("{} unschedulable{}", nodes, star);
    case ReasonKind::kNodeName:
      return fmt::format("{} other name{}", nodes, star);
    case ReasonKind::kTaint:
      return fmt::format("{} taint {}={}{}", nodes, state.NameOf(reason.detail),
                         reason.detail_value.valid() ? state.NameOf(reason.detail_value) : "",
                         star);
    case ReasonKind::kAffinity:
      return fmt::format("{} affinity{}", nodes, star);
    case ReasonKind::kInsufficient:
      return fmt::format("{} insufficient {} (at least {} short){}", nodes,
                         state.vocabulary().resources.Name(reason.resource), reason.deficit, star);
    case ReasonKind::kFeatures:
      return fmt::format("{} features{}", nodes, star);
    case ReasonKind::kGpuModel:
      return fmt::format("{} gpu model{}", nodes, star);
    case ReasonKind::kDevices:
      return fmt::format("{} devices{}", nodes, star);
    case ReasonKind::kNodeMissing:
      return fmt::format("node {} is missing", state.NameOf(reason.detail));
    default:
      return fmt::format("reason {}", static_cast<int>(reason.kind));
  }
}

}  // namespace

void Plan::AddTo(Hasher& hasher) const {
  for (const BindDecision& b : binds) {
    hasher.Add(b.pod.value).Add(b.pod_uid.value).Add(b.node.value).Add(b.node_uid.value);
    hasher.Add(b.devices.mask).Add(b.devices.milli_each).Add(b.score).Add(b.feasible_count);
  }
  for (const PreemptDecision& p : preemptions) {
    hasher.Add(p.pod.value).Add(p.pod_uid.value).Add(p.node.value).Add(p.pdb_violations);
    hasher.Add(p.victims.size());
    for (const PreemptDecision::Victim& v : p.victims) hasher.Add(v.pod.value).Add(v.uid.value);
  }
  for (const PodId pod : nominations) hasher.Add(pod.value);
  for (const PodRefused& r : refused) hasher.Add(r.pod.value).Add(r.pod_uid.value).Add(r.refusal);
  for (const Refusal& r : refusals) {
    hasher.Add(r.class_id.value).Add(r.pinned_to.value).Add(r.nodes_count);
    for (const Reason& reason : r.reasons) {
      hasher.Add(reason.kind)
          .Add(reason.unresolvable)
          .Add(reason.resource.value)
          .Add(reason.detail.value);
      hasher.Add(reason.nodes_count).Add(reason.deficit);
    }
  }
  hasher.Add(more).Add(wake_at.ns);
}

std::string Print(const Plan& plan, const State& state) {
  std::string text;
  for (const BindDecision& b : plan.binds) {
    text +=
        fmt::format("bind {} -> {}  score {} of {} nodes", state.KeyOf(state.pods().at(b.pod).key),
                    state.NameOf(b.node_name), b.score, b.feasible_count);
    if (!b.devices.none())
      text += fmt::format("  devices {:#x} x {}", b.devices.mask, b.devices.milli_each);
    text += '\n';
  }
  for (const PreemptDecision& p : plan.preemptions) {
    text += fmt::format("promise {} -> {}", state.KeyOf(state.pods().at(p.pod).key),
                        state.NameOf(p.node_name));
    if (!p.victims.empty()) text += "  evicts";
    for (const PreemptDecision::Victim& v : p.victims)
      text += fmt::format(" {}", state.KeyOf(state.pods().at(v.pod).key));
    if (p.pdb_violations > 0) text += fmt::format(", {} beyond budgets", p.pdb_violations);
    text += '\n';
  }
  for (const PodId pod : plan.nominations) {
    const auto name = state.NominationToWrite(pod);
    if (name && !name->valid())
      text += fmt::format("revoke {}\n", state.KeyOf(state.pods().at(pod).key));
  }
  for (const PodRefused& r : plan.refused) {
    const Refusal& refusal = plan.refusals[r.refusal];
    text +=
        fmt::format("wait {}  0/{}", state.KeyOf(state.pods().at(r.pod).key), refusal.nodes_count);
    for (const Reason& reason : refusal.reasons) text += ", " + Print(reason, state);
    text += '\n';
  }
  if (plan.more) text += "more\n";
  if (plan.wake_at != Instant::Never())
    text += fmt::format("wake at {} ms\n", plan.wake_at.ns / 1'000'000);
  return text;
}

}  // namespace berth::model
