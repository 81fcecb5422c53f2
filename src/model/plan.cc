#include "model/plan.h"

#include <fmt/format.h>

#include "model/state.h"

namespace berth::model {

namespace {

// Of the pod's volumes; empty: it is of something else.
std::string PrintOfVolumes(const Reason& reason, const State& state) {
  const char* star = reason.unresolvable ? "!" : "";
  const auto nodes = reason.nodes_count;
  switch (reason.kind) {
    case ReasonKind::kClaimMissing:
      return fmt::format("{} no claim {}{}", nodes, state.NameOf(reason.detail), star);
    case ReasonKind::kClaimAwaited:
      return fmt::format("{} no claim {} yet{}", nodes, state.NameOf(reason.detail), star);
    case ReasonKind::kClaimLost:
      return fmt::format("{} claim {} lost{}", nodes, state.NameOf(reason.detail), star);
    case ReasonKind::kClaimDeleted:
      return fmt::format("{} claim {} deleted{}", nodes, state.NameOf(reason.detail), star);
    case ReasonKind::kClaimForeign:
      return fmt::format("{} claim {} of another{}", nodes, state.NameOf(reason.detail), star);
    case ReasonKind::kClaimUnbound:
      return fmt::format("{} claim {} unbound{}", nodes, state.NameOf(reason.detail), star);
    case ReasonKind::kVolumeMissing:
      return fmt::format("{} no volume {}{}", nodes, state.NameOf(reason.detail), star);
    case ReasonKind::kDiskConflict:
      return fmt::format("{} disk conflict{}", nodes, star);
    case ReasonKind::kClaimInUse:
      return fmt::format("{} claim in use{}", nodes, star);
    case ReasonKind::kVolumeLimit:
      return fmt::format("{} volume limit{}", nodes, star);
    case ReasonKind::kVolumeNode:
      return fmt::format("{} volume elsewhere{}", nodes, star);
    case ReasonKind::kNoVolume:
      return fmt::format("{} no volume to bind{}", nodes, star);
    case ReasonKind::kNoStorage:
      return fmt::format("{} no storage{}", nodes, star);
    case ReasonKind::kVolumeGone:
      return fmt::format("{} volume gone{}", nodes, star);
    case ReasonKind::kVolumeZone:
      return fmt::format("{} volume zone{}", nodes, star);
    default:
      return {};
  }
}

// Of kinds that nothing more is said of.
std::string_view WordOf(ReasonKind kind) {
  switch (kind) {
    case ReasonKind::kAffinityConflict:
      return "affinity conflict";
    case ReasonKind::kNotNamed:
      return "not named";
    case ReasonKind::kUnschedulable:
      return "unschedulable";
    case ReasonKind::kNodeName:
      return "other name";
    case ReasonKind::kAddedAffinity:
      return "added affinity";
    case ReasonKind::kAffinity:
      return "affinity";
    case ReasonKind::kPorts:
      return "ports";
    case ReasonKind::kSpread:
      return "spread";
    case ReasonKind::kPodAffinity:
      return "pod-affinity";
    case ReasonKind::kPodAntiAffinity:
      return "pod-anti-affinity";
    case ReasonKind::kExistingAntiAffinity:
      return "existing-anti-affinity";
    case ReasonKind::kSpreadLabel:
      return "no topology label";
    case ReasonKind::kFeatures:
      return "features";
    case ReasonKind::kGpuModel:
      return "gpu model";
    case ReasonKind::kDevices:
      return "devices";
    default:
      return {};
  }
}

}  // namespace

std::string Print(const Reason& reason, const State& state) {
  const char* star = reason.unresolvable ? "!" : "";
  const auto nodes = reason.nodes_count;
  if (const std::string_view word = WordOf(reason.kind); !word.empty())
    return fmt::format("{} {}{}", nodes, word, star);
  switch (reason.kind) {
    case ReasonKind::kTaint:
      return fmt::format("{} taint {}={}{}", nodes, state.NameOf(reason.detail),
                         reason.detail_value.valid() ? state.NameOf(reason.detail_value) : "",
                         star);
    case ReasonKind::kInsufficient:
      return fmt::format("{} insufficient {} (at least {} short){}", nodes,
                         state.vocabulary().resources.Name(reason.resource), reason.deficit, star);
    case ReasonKind::kExternalVerdict:
      return fmt::format("{} refused by an extender ({}){}", nodes,
                         reason.detail.valid() ? state.NameOf(reason.detail) : "", star);
    case ReasonKind::kNodeMissing:
      return fmt::format("node {} is missing", state.NameOf(reason.detail));
    case ReasonKind::kGangIncomplete:
      return reason.detail.valid() ? fmt::format("members missing: {}", state.NameOf(reason.detail))
                                   : "members missing";
    case ReasonKind::kGroupMissing:
      return "no such group";
    case ReasonKind::kPromiseToGroup:
      return "group placed whole";
    case ReasonKind::kPromiseNodeGone:
      return "node gone";
    case ReasonKind::kPromiseNodeRefuses:
      return "node refuses";
    case ReasonKind::kPromiseVictimStays:
      return "victim stays";
    case ReasonKind::kPromiseOutranked:
      return "outranked";
    case ReasonKind::kPromiseRoomTaken:
      return "room taken";
    case ReasonKind::kPromiseWriteRefused:
      return "write refused";
    case ReasonKind::kPromiseWriteLost:
      return "write lost";
    case ReasonKind::kPromiseEvictionRefused:
      return "eviction refused";
    case ReasonKind::kPromiseEvictionFails:
      return "eviction fails";
    default:
      if (std::string text = PrintOfVolumes(reason, state); !text.empty()) return text;
      return fmt::format("reason {}", static_cast<int>(reason.kind));
  }
}

namespace {

std::string Print(const PreemptionRefusal& refusal, const State& state) {
  if (refusal.bar == PreemptionBar::kPolicy) return "; preempts nobody";
  if (refusal.bar == PreemptionBar::kVictimsToLeave) return "; victims are to leave";
  if (refusal.bar == PreemptionBar::kVictimsTerminating) return "; victims leave";
  if (refusal.bar == PreemptionBar::kExtenders) return "; no victims that extenders permit";
  std::string text = fmt::format("; evictions 0/{}", refusal.nodes_count);
  if (refusal.not_helpful > 0) text += fmt::format(", {} not helpful", refusal.not_helpful);
  if (refusal.no_victims > 0) text += fmt::format(", {} no victims", refusal.no_victims);
  for (const Reason& reason : refusal.reasons) text += ", " + Print(reason, state);
  return text;
}

// "reserve default/a in queue: main 3 x cpu=1000/spot"
std::string PrintReservation(const ReserveDecision& decision, const State& state) {
  const Workload& row = state.workloads().at(decision.workload);
  std::string text = fmt::format("reserve {} in {}:", state.KeyOf(row.key),
                                 state.NameOf(row.decided.cluster_queue));
  for (const QuotaCharge& charge : row.decided.charges) {
    text += fmt::format(" {} {} x", state.NameOf(row.slots[charge.pod_set].name), charge.count);
    for (const ResourceAmount& a : state.vocabulary().bundles.View(charge.amounts)) {
      text += fmt::format(" {}={}/{}", state.vocabulary().resources.Name(a.resource), a.amount,
                          state.NameOf(charge.flavor));
    }
  }
  return text + '\n';
}

// "places default/a: main n1 n2", or "gives up default/a: n1 failed".
std::string PrintPass(const PassDecision& decision, const State& state) {
  const Workload& row = state.workloads().at(decision.workload);
  std::string text =
      fmt::format("{} {}:", decision.evicts() ? "give up" : "place", state.KeyOf(row.key));
  for (const NameId node : decision.failed) text += fmt::format(" without {}", state.NameOf(node));
  for (const Slot& slot : row.decided.slots)
    text +=
        fmt::format(" {} {}", state.NameOf(row.slots[slot.pod_set].name), state.NameOf(slot.node));
  return text + '\n';
}

void AddReasons(Hasher& hasher, const std::vector<Reason>& reasons) {
  hasher.Add(reasons.size());
  for (const Reason& r : reasons) {
    hasher.Add(r.kind).Add(r.unresolvable).Add(r.nodes_count).Add(r.resource.value);
    hasher.Add(r.deficit).Add(r.detail.value).Add(r.detail_value.value);
    hasher.Add(r.until.ns).Add(r.code);
  }
}

void AddRefusal(Hasher& hasher, const TopologyRefusal& refusal) {
  hasher.Add(refusal.kind).Add(refusal.topology.value).Add(refusal.level.value);
  hasher.Add(refusal.within.value).Add(refusal.flavor.value).Add(refusal.fills.size());
  for (const TopologyFill& fill : refusal.fills)
    hasher.Add(fill.level.value).Add(fill.fits).Add(fill.wanted);
  const NodesLeftOut& left_out = refusal.left_out;
  hasher.Add(left_out.all).Add(left_out.by_selector).Add(left_out.by_domain);
  hasher.Add(left_out.by_others).Add(left_out.by_taint.size());
  for (const NodesLeftOut::ByTaint& by : left_out.by_taint)
    hasher.Add(by.taint.key.value).Add(by.taint.value.value).Add(by.nodes);
  hasher.Add(left_out.by_resource.size());
  for (const NodesLeftOut::ByResource& by : left_out.by_resource)
    hasher.Add(by.resource.value).Add(by.nodes);
}

}  // namespace

void Refusal::AddTo(Hasher& hasher) const {
  hasher.Add(class_id.value).Add(pinned_to.value).Add(nodes_count);
  AddReasons(hasher, reasons);
  hasher.Add(gang.has_value());
  if (gang) {
    hasher.Add(gang->group.value).Add(gang->needed).Add(gang->found).Add(gang->released);
    hasher.Add(gang->most.has_value()).Add(gang->most.value_or(0)).Add(gang->bar);
    hasher.Add(gang->queue.value).Add(gang->failing);
  }
  hasher.Add(preemption.has_value());
  if (!preemption) return;
  hasher.Add(preemption->bar).Add(preemption->nodes_count).Add(preemption->not_helpful);
  hasher.Add(preemption->no_victims);
  AddReasons(hasher, preemption->reasons);
}

void WorkloadRefusal::AddTo(Hasher& hasher) const {
  hasher.Add(bar).Add(behind.value).Add(unfit).Add(pod_set).Add(reasons.size());
  for (const FlavorReason& r : reasons) {
    hasher.Add(r.kind).Add(r.flavor.value).Add(r.resource.value).Add(r.held.value);
    hasher.Add(r.taint.key.value).Add(r.taint.value.value).Add(r.taint.effect);
    hasher.Add(r.amount).Add(r.assumed).Add(r.most);
  }
  hasher.Add(promised).Add(victims_count).Add(shared).Add(spared.value).Add(spared_count);
  hasher.Add(places.size());
  for (const PlacesRefusal& p : places) {
    hasher.Add(p.pod_set).Add(p.needed).Add(p.found).Add(p.beside_leaving).Add(p.may_evict);
    hasher.Add(p.most.has_value()).Add(p.most.value_or(0));
    hasher.Add(p.evicts_below.has_value()).Add(p.evicts_below.value_or(0)).Add(p.evicted);
    p.why.AddTo(hasher);
    hasher.Add(p.topology.has_value());
    if (p.topology) AddRefusal(hasher, *p.topology);
  }
  hasher.Add(gang.has_value());
  if (gang) gang->AddTo(hasher);
  hasher.Add(fault).Add(fault_flavors.size());
  for (const NameId flavor : fault_flavors) hasher.Add(flavor.value);
}

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
  for (const ExternalQuery& q : queries) {
    hasher.Add(q.pod.value).Add(q.pod_uid.value).Add(q.query).Add(q.nodes.size());
    for (const NodeId node : q.nodes) hasher.Add(node.value);
    hasher.Add(q.victims.size());
    for (const NodeVictims& one : q.victims) one.AddTo(hasher);
  }
  for (const PodId pod : nominations) hasher.Add(pod.value);
  for (const GroupId group : groups) hasher.Add(group.value);
  for (const PodId pod : released) hasher.Add(pod.value);
  for (const PodRefused& r : refused) hasher.Add(r.pod.value).Add(r.pod_uid.value).Add(r.refusal);
  for (const Refusal& r : refusals) r.AddTo(hasher);
  for (const ReserveDecision& r : reservations) hasher.Add(r.workload.value).Add(r.uid.value);
  for (const EvictDecision& e : evictions) hasher.Add(e.workload.value).Add(e.uid.value);
  for (const PodId pod : evicted) hasher.Add(pod.value);
  for (const PassDecision& p : passes) {
    hasher.Add(p.workload.value).Add(p.uid.value).Add(p.pass).Add(p.refusal.has_value());
    for (const NameId node : p.failed) hasher.Add(node.value);
    if (p.gang) p.gang->AddTo(hasher);
  }
  for (const PassHeldUp& p : held_up)
    hasher.Add(p.workload.value).Add(p.uid.value).Add(p.awaits_mates).Add(p.awaited.value);
  for (const WorkloadId workload : workloads) hasher.Add(workload.value);
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
  for (const ExternalQuery& q : plan.queries) {
    text += fmt::format("ask {}:", state.KeyOf(state.pods().at(q.pod).key));
    for (const NodeId node : q.nodes)
      text += fmt::format(" {}", state.NameOf(state.nodes().name(node)));
    for (const NodeVictims& one : q.victims)
      text += fmt::format(" {} without {}", state.NameOf(one.node), one.pods.size());
    text += '\n';
  }
  for (const PodId pod : plan.nominations) {
    const auto name = state.NominationToWrite(pod);
    if (!name || name->valid()) continue;
    const Pod& row = state.pods().at(pod);
    text += fmt::format("revoke {}: {}\n", state.KeyOf(row.key),
                        Print(Reason{.kind = row.lost.why}, state));
  }
  for (const PodId pod : plan.released)
    text += fmt::format("release {}\n", state.KeyOf(state.pods().at(pod).key));
  for (const PodRefused& r : plan.refused) {
    const Refusal& refusal = plan.refusals[r.refusal];
    text += fmt::format("wait {}", state.KeyOf(state.pods().at(r.pod).key));
    if (refusal.gang) {
      text += fmt::format("  group {} {}/{}", state.KeyOf(refusal.gang->group), refusal.gang->found,
                          refusal.gang->needed);
      if (refusal.gang->promised) text += ", promised";
      if (refusal.gang->failing > 0) text += fmt::format(", {} failing", refusal.gang->failing);
      if (refusal.gang->released > 0) text += fmt::format(", {} released", refusal.gang->released);
    }
    text += fmt::format("  0/{}", refusal.nodes_count);
    for (const Reason& reason : refusal.reasons) text += ", " + Print(reason, state);
    if (refusal.preemption) text += Print(*refusal.preemption, state);
    text += '\n';
  }
  for (const ReserveDecision& r : plan.reservations) text += PrintReservation(r, state);
  for (const EvictDecision& e : plan.evictions) {
    const Workload& row = state.workloads().at(e.workload);
    text += fmt::format("evict {} for {}\n", state.KeyOf(row.key),
                        state.KeyOf(state.workloads().at(row.claimant).key));
  }
  for (const PodId pod : plan.evicted) {
    const Pod& row = state.pods().at(pod);
    const WorkloadId claimant = state.workloads().FindUid(row.evicted_for);
    text += fmt::format("evict {} for {}\n", state.KeyOf(row.key),
                        state.KeyOf(state.workloads().at(claimant).key));
  }
  for (const PassDecision& p : plan.passes) text += PrintPass(p, state);
  for (const WorkloadId workload : plan.workloads)
    text += fmt::format("wait {}\n", state.KeyOf(state.workloads().at(workload).key));
  if (plan.more) text += "more\n";
  if (plan.wake_at != Instant::Never())
    text += fmt::format("wake at {} ms\n", plan.wake_at.ns / 1'000'000);
  return text;
}

}  // namespace berth::model
