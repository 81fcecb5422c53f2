#include "translate/quota_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "api/groups.h"
#include "api/quantity.h"
#include "api/requests.h"
#include "base/check.h"
#include "base/limits.h"
#include "translate/text.h"

namespace berth::translate {
namespace {

using model::FlavorReasonKind;

// Amounts are cut where they are read: what a pod asks for, at kAmountMax, and quotas at kQuotaMax.
// No other amount is that, or a multiple of it.
bool IsCut(model::Amount amount) {
  return amount >= limits::kQuotaMax || (amount > 0 && amount % limits::kAmountMax == 0);
}

std::string AmountText(model::ResourceId r, model::Amount amount,
                       const model::Vocabulary& vocabulary) {
  return fmt::format("{}{}", IsCut(amount) ? "at least " : "",
                     ResourceAmountText(vocabulary.resources.Name(r), amount));
}

std::string_view EffectText(model::TaintEffect effect) {
  switch (effect) {
    case model::TaintEffect::kNoSchedule:
      return "NoSchedule";
    case model::TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case model::TaintEffect::kNoExecute:
      break;
  }
  return "NoExecute";
}

// "namespace/name" without the namespace.
std::string_view NameIn(std::string_view key) { return key.substr(key.find('/') + 1); }

bool IsDeleting(std::string_view cluster_queue, const model::State& state) {
  const model::QueueId q = state.queues().Find(model::QueueKind::kClusterQueue,
                                               state.vocabulary().names.Find(cluster_queue));
  return q.valid() && state.queues().at(q).deleting;
}

std::string UnsupportedText(const model::Workload& row, const model::State& state) {
  for (const model::WorkloadSlots& slots : row.slots) {
    if (!slots.unsupported.valid()) continue;
    // A field; else what keeps its pods from having nodes, in words.
    if (!state.NameOf(slots.unsupported).starts_with("spec.")) {
      return fmt::format(
          "pods of pod set {} can't be given nodes, and quota is given with nodes "
          "only: {}",
          state.NameOf(slots.name), state.NameOf(slots.unsupported));
    }
    return fmt::format(
        "{} of pod set {} can't be honoured by this scheduler yet, and quota is given "
        "with nodes only: leave it out of the template, or name in "
        "spec.schedulerName one that can",
        state.NameOf(slots.unsupported), state.NameOf(slots.name));
  }
  return {};
}

// Whether the group is the one that is made for pods of its Job.
bool IsMadeFor(const model::Workload& row, std::string_view group, const model::State& state) {
  if (!row.job.valid()) return false;
  std::string_view job = state.UidOf(row.job);  // Of that namespace.
  job.remove_prefix(std::min(job.size(), job.find('/') + 1));
  return group.ends_with(std::string(api::kMadeGroupPrefix).append(job));
}

// The groups that its pods name, and why they could not start.
std::string UnreadyText(const model::Workload& row, const model::WorkloadRefusal& refusal,
                        const model::State& state) {
  if (refusal.gang) {
    if (!refusal.behind.valid())
      return "its pods could not start: " + FailedSchedulingText(*refusal.gang, state);
    return fmt::format(
        "its pods could not start by themselves: it is to be admitted together with workload {}, "
        "whose pods are of the same PodGroup and which can't be now",
        state.KeyOf(refusal.behind));
  }
  for (const model::WorkloadSlots& slots : row.slots) {
    if (!slots.gang.valid()) continue;
    const std::string_view key = state.NameOf(slots.gang);
    if (state.groups().FindKey(state.FindKey(key)).valid()) continue;
    if (IsMadeFor(row, key, state)) {
      return fmt::format(
          "its pods could not start: PodGroup {}, which berth controllers make for pods of its Job "
          "that name none, does not exist yet",
          key);
    }
    return fmt::format(
        "its pods could not start: PodGroup {} does not exist, which pod set {} names: create it, "
        "or leave its annotation out of the template",
        key, state.NameOf(slots.name));
  }
  return {};
}

std::string TooManyText(const model::Workload& row) {
  uint64_t pods = 0;
  for (const model::WorkloadSlots& slots : row.slots) pods += slots.count;
  const bool places = pods <= limits::kSlotsMax;
  return fmt::format(
      "spec.podSets: {} pods are more than a scheduler holds{}, which are {}: ask for fewer", pods,
      places ? " places for" : "", places ? limits::kFreeSlotsMax : limits::kSlotsMax);
}

// Why no flavors are looked at, of the queues that the workload comes through.
WaitText BarText(const model::WorkloadRefusal& refusal, const model::Workload& row,
                 std::string_view cluster_queue, const model::State& state) {
  const std::string_view local_queue = NameIn(state.KeyOf(row.local_queue));
  switch (refusal.bar) {
    case model::QueueBar::kNone:
      break;
    case model::QueueBar::kNoLocalQueue:
      if (local_queue.empty())
        return {"Misconfigured", "spec.queueName is empty: name a LocalQueue"};
      return {
          "Misconfigured",
          fmt::format("LocalQueue {} doesn't exist in the namespace: create it, or name another",
                      local_queue)};
    case model::QueueBar::kLocalQueueStopped:
      return {"Suspended",
              fmt::format("LocalQueue {} is stopped by its spec.stopPolicy", local_queue)};
    case model::QueueBar::kNamespace:
      return {"Misconfigured", "workload namespace doesn't match ClusterQueue selector"};
    case model::QueueBar::kNoClusterQueue:
      if (cluster_queue.empty()) {
        return {"Misconfigured",
                fmt::format("LocalQueue {} names no ClusterQueue: set its spec.clusterQueue",
                            local_queue)};
      }
      return {"Misconfigured", fmt::format("ClusterQueue {} doesn't exist, which LocalQueue {} "
                                           "names: create it, or use another LocalQueue",
                                           cluster_queue, local_queue)};
    case model::QueueBar::kClusterQueueStopped:
      if (IsDeleting(cluster_queue, state)) {
        return {"Suspended",
                fmt::format("ClusterQueue {} is being deleted, which waits for the workloads that "
                            "hold its quota: name another LocalQueue, or make it again then",
                            cluster_queue)};
      }
      return {"Suspended",
              fmt::format("ClusterQueue {} is stopped by its spec.stopPolicy", cluster_queue)};
    case model::QueueBar::kCohortCycle:
      return {
          "Suspended",
          fmt::format("ClusterQueue {} is inactive: cohorts above it name each other as parents "
                      "in a cycle",
                      cluster_queue)};
    case model::QueueBar::kInactive:
      return {"Suspended",
              fmt::format("ClusterQueue {} is inactive: its condition Active says what it names "
                          "that is missing or not active",
                          cluster_queue)};
    case model::QueueBar::kBehind:
      return {"WaitingForQuota",
              fmt::format("waits behind Workload {}, which StrictFIFO ClusterQueue {} serves first "
                          "and which waits itself",
                          state.KeyOf(refusal.behind), cluster_queue)};
    case model::QueueBar::kFull:
      return {"WaitingForQuota", "the scheduler holds as many admitted pods as it can"};
    case model::QueueBar::kUnsupported:
      return {"Misconfigured", UnsupportedText(row, state)};
    case model::QueueBar::kTooMany:
      return {"Misconfigured", TooManyText(row)};
    case model::QueueBar::kGang:
      return {std::string(kWaitingForGang), UnreadyText(row, refusal, state)};
  }
  return {};
}

// Whose nodes are those with some labels: users look for these in the pods' selectors in vain.
std::string FlavorLabelsText(const model::FlavorReason& reason, const model::State& state) {
  const model::Flavor* flavor = state.flavors().Find(reason.flavor);
  if (flavor == nullptr || flavor->labels.empty()) return "";
  std::vector<std::string> labels;
  for (const model::Label& label : flavor->labels)
    labels.push_back(fmt::format("{}={}", state.NameOf(label.key), state.NameOf(label.value)));
  std::ranges::sort(labels);
  return fmt::format(" ResourceFlavor {} is of nodes with {}.", state.NameOf(reason.flavor),
                     fmt::join(labels, ","));
}

// It gets its quota, and places, once others are gone.
WaitText PromisedText(const model::WorkloadRefusal& refusal, std::string text) {
  if (refusal.shared) {
    text =
        "Workload has overlapping preemption targets with another workload, but will fit after "
        "these preemptions complete";
  } else {
    text += fmt::format(". Pending the preemption of {} workload(s)", refusal.victims_count);
  }
  return {"WaitingForPreemptedWorkloads", std::move(text)};
}

// There is quota, and there are no nodes.
WaitText PlacesText(const model::WorkloadRefusal& refusal, const model::Workload& workload,
                    const model::State& state) {
  const model::PlacesRefusal& first = refusal.places.front();
  std::string text = first.topology
                         ? PlacesRefusalText(first, workload, state)
                         : "there is quota, but " + PlacesRefusalText(first, workload, state);
  if (refusal.places.size() > 1)
    text += fmt::format(" Nor do the nodes of {} other flavor(s) hold them.",
                        refusal.places.size() - 1);
  // Refusals by topology are in Kueue's words alone.
  constexpr size_t kFlavorsShown = 3;
  const size_t shown = first.topology ? 0 : std::min(refusal.reasons.size(), kFlavorsShown);
  for (size_t i = 0; i < shown; ++i) {
    if (refusal.reasons[i].kind == FlavorReasonKind::kNoNodes)
      text += FlavorLabelsText(refusal.reasons[i], state);
  }
  if (!first.topology) {
    if (first.evicted > 0)
      text += fmt::format(" {} pod(s) of lower priority are evicted for it.", first.evicted);
    if (refusal.promised && refusal.victims_count > 0)
      text += fmt::format(" {} workload(s) are preempted for it.", refusal.victims_count);
    if (refusal.promised) {
      text += workload.promised.slots.empty()
                  ? " Its quota is kept for it meanwhile."
                  : " Its quota is kept for it meanwhile, and so are the nodes that others leave.";
    }
    return {"WaitingForNodes", std::move(text)};
  }
  if (refusal.promised && refusal.victims_count > 0) return PromisedText(refusal, std::move(text));
  if (!refusal.promised) return {std::string(ToString(refusal.unfit)), std::move(text)};
  return {std::string(kNoPlaceInTopology), text + " Its quota is kept for it meanwhile."};
}

}  // namespace

std::string AwaitedText(model::KeyId awaited, const model::State& state) {
  const std::string_view start =
      "its pods could not start by themselves: it is to be admitted together with ";
  if (!awaited.valid()) return fmt::format("{}others, whose pods are of the same PodGroup", start);
  return fmt::format(
      "{}workload {}, whose pods are of the same PodGroup, and which has admission checks to pass, "
      "or awaits its quota, or places for its pods",
      start, state.KeyOf(awaited));
}

std::string PlacesRefusalText(const model::PlacesRefusal& refusal, const model::Workload& workload,
                              const model::State& state) {
  const std::string_view pod_set = state.NameOf(workload.slots[refusal.pod_set].name);
  const std::string_view beside =
      refusal.beside_leaving ? " even if others were preempted" : std::string_view();
  if (refusal.topology) {
    return fmt::format("couldn't assign flavors to pod set {}{}: {}", pod_set, beside,
                       TopologyRefusalText(*refusal.topology, state.vocabulary()));
  }
  return fmt::format(
      "only {} of {} pods of pod set {} find nodes{}: {}{}", refusal.found, refusal.needed, pod_set,
      beside, FailedSchedulingText(refusal.why, state),
      refusal.most ? fmt::format(" Even empty nodes would hold {} of them.", *refusal.most) : "");
}

std::string ResourceAmountText(std::string_view resource, int64_t amount) {
  auto quantity =
      api::ParseQuantity(fmt::format("{}{}", amount, resource == api::kCpuName ? "m" : ""));
  CHECK(quantity.has_value());
  if (resource == api::kMemoryName || resource == "ephemeral-storage" ||
      resource.starts_with("hugepages-")) {
    quantity->format = api::QuantityFormat::kBinarySi;
  }
  return api::ToString(*quantity);
}

WaitText WorkloadRefusalText(const model::WorkloadRefusal& refusal, const model::Workload& workload,
                             const model::State& state) {
  if (refusal.bar != model::QueueBar::kNone) {
    const model::LocalQueueId local = state.local_queues().FindKey(workload.local_queue);
    const std::string_view cluster_queue =
        local.valid() ? state.NameOf(state.local_queues().at(local).cluster_queue) : "";
    return BarText(refusal, workload, cluster_queue, state);
  }
  if (!refusal.places.empty()) return PlacesText(refusal, workload, state);
  std::vector<std::string> reasons;
  for (const model::FlavorReason& reason : refusal.reasons)
    reasons.push_back(FlavorReasonText(reason, state.vocabulary()));
  std::ranges::sort(reasons);
  const std::string_view pod_set = refusal.pod_set < workload.slots.size()
                                       ? state.NameOf(workload.slots[refusal.pod_set].name)
                                       : "";
  if (refusal.fault != model::TopologyFault::kNone) {
    reasons = {TopologyFaultText(refusal.fault, refusal.fault_flavors, state.vocabulary())};
  }
  WaitText text{
      std::string(refusal.fault == model::TopologyFault::kNone ? ToString(refusal.unfit)
                                                               : kNoPlaceInTopology),
      fmt::format("couldn't assign flavors to pod set {}: {}", pod_set, fmt::join(reasons, ", "))};
  if (refusal.promised) return PromisedText(refusal, std::move(text.message));
  if (refusal.spared_count > 0) {
    text.message += fmt::format(
        ". The server refused to evict {} workload(s) for it, as Workload {}: that is tried again "
        "less and less often; find out who refuses it, or evict it by hand",
        refusal.spared_count, state.KeyOf(refusal.spared));
  }
  return text;
}

std::string_view ToString(model::VictimReason reason) {
  switch (reason) {
    case model::VictimReason::kInQueue:
      return "InClusterQueue";
    case model::VictimReason::kReclaimed:
      return "InCohortReclamation";
    case model::VictimReason::kReclaimedByBorrowing:
      return "InCohortReclaimWhileBorrowing";
    case model::VictimReason::kOnNodes:
      break;
  }
  return "OnNodes";
}

std::string PreemptionText(const PreemptionWords& words) {
  const auto known = [](std::string_view text) { return text.empty() ? "UNKNOWN" : text; };
  std::string_view why;
  if (words.reason) {
    switch (*words.reason) {
      case model::VictimReason::kInQueue:
        why = "prioritization in the ClusterQueue";
        break;
      case model::VictimReason::kReclaimed:
        why = "reclamation within the cohort";
        break;
      case model::VictimReason::kReclaimedByBorrowing:
        why = "reclamation within the cohort while borrowing";
        break;
      case model::VictimReason::kOnNodes:
        why = "prioritization on the nodes";
        break;
    }
  }
  return fmt::format(
      "Preempted to accommodate a workload (UID: {}, JobUID: {}) due to {}; preemptor path: {}; "
      "preemptee path: {}",
      known(words.uid), known(words.job_uid), known(why), known(words.preemptor_path),
      known(words.preemptee_path));
}

std::string QueuePath(model::QueueId queue, const model::State& state) {
  std::string path;
  for (model::QueueId q = queue; q.valid(); q = state.queues().at(q).parent)
    path = fmt::format("/{}{}", state.NameOf(state.queues().at(q).name), path);
  return path;
}

std::string FlavorReasonText(const model::FlavorReason& reason,
                             const model::Vocabulary& vocabulary) {
  const auto name = [&](model::NameId id) {
    return id.valid() ? vocabulary.names.View(id) : std::string_view();
  };
  const std::string_view flavor = name(reason.flavor);
  const auto resource = [&] { return vocabulary.resources.Name(reason.resource); };
  const auto amount = [&](model::Amount of) { return AmountText(reason.resource, of, vocabulary); };
  switch (reason.kind) {
    case FlavorReasonKind::kNotCovered:
      return fmt::format("resource {} unavailable in ClusterQueue", resource());
    case FlavorReasonKind::kGone:
      return fmt::format("flavor {} not found", flavor);
    case FlavorReasonKind::kNotAllowed:
      return fmt::format(
          "skipping flavor {} due to WorkloadAllowedResourceFlavorAnnotation annotation", flavor);
    case FlavorReasonKind::kNoTopology:
      return fmt::format("Flavor \"{}\" does not support TopologyAwareScheduling", flavor);
    case FlavorReasonKind::kTopologyGone:
      return fmt::format("Flavor \"{}\" information missing in TAS cache", flavor);
    case FlavorReasonKind::kNoLevel:
      return fmt::format("Flavor \"{}\" does not contain the requested level", flavor);
    case FlavorReasonKind::kTopologyOnly:
      return fmt::format("Flavor \"{}\" supports only TopologyAwareScheduling", flavor);
    case FlavorReasonKind::kTaint:
      return fmt::format("untolerated taint {{{} {} {} <nil>}} in flavor {}",
                         name(reason.taint.key), name(reason.taint.value),
                         EffectText(reason.taint.effect), flavor);
    case FlavorReasonKind::kAffinity:
      return fmt::format("flavor {} doesn't match node affinity", flavor);
    case FlavorReasonKind::kNoNodes:
      return fmt::format("the nodes of flavor {} can't hold all pods now", flavor);
    case FlavorReasonKind::kHeldOther:
      return fmt::format("could not assign {} flavor since the original workload is assigned: {}",
                         flavor, name(reason.held));
    case FlavorReasonKind::kExceedsMost:
      return fmt::format(
          "insufficient quota for {} in flavor {}, previously considered podsets requests ({}) + "
          "current podset request ({}) > maximum capacity ({})",
          resource(), flavor, amount(reason.assumed), amount(reason.amount), amount(reason.most));
    case FlavorReasonKind::kShort:
      break;
  }
  return fmt::format("insufficient unused quota for {} in flavor {}, {} more needed", resource(),
                     flavor, amount(reason.amount));
}

std::string_view ToString(model::Unfit unfit) {
  switch (unfit) {
    case model::Unfit::kNone:
      break;
    case model::Unfit::kNoPlaces:
      return kNoPlaceInTopology;
    case model::Unfit::kWaiting:
      return "WaitingForQuota";
    case model::Unfit::kExceeds:
      return "ExceedsMaxQuota";
    case model::Unfit::kNoMatch:
      return "NoMatchingFlavor";
  }
  return "";
}

std::string TopologyFaultText(model::TopologyFault fault, std::span<const model::NameId> flavors,
                              const model::Vocabulary& vocabulary) {
  switch (fault) {
    case model::TopologyFault::kNone:
      return "";
    case model::TopologyFault::kNoInformation:
      return "workload requires Topology, but there is no TAS cache information";
    case model::TopologyFault::kNoFlavor:
      return "no TAS flavor assigned";
    case model::TopologyFault::kSeveralFlavors:
      break;
  }
  std::vector<std::string_view> names;
  for (const model::NameId flavor : flavors) names.push_back(vocabulary.names.View(flavor));
  std::ranges::sort(names);
  return fmt::format("more than one TAS flavor assigned: {}", fmt::join(names, ", "));
}

namespace {

std::string TaintText(const model::Taint& taint, const model::Vocabulary& vocabulary) {
  std::string text(vocabulary.names.View(taint.key));
  if (taint.value.valid() && !vocabulary.names.View(taint.value).empty())
    text.append("=").append(vocabulary.names.View(taint.value));
  return text.append(":").append(EffectText(taint.effect));
}

// ". Total nodes: 4; excluded: nodeSelector: 2, resource "cpu": 1"; empty when none is.
std::string LeftOutText(const model::NodesLeftOut& left_out, const model::Vocabulary& vocabulary) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view why, uint32_t nodes) {
    if (nodes > 0) parts.push_back(fmt::format("{}: {}", why, nodes));
  };
  add("nodeSelector", left_out.by_selector);
  add("topologyDomain", left_out.by_domain);
  add("other", left_out.by_others);
  for (const auto& by : left_out.by_resource)
    add(fmt::format("resource \"{}\"", vocabulary.resources.Name(by.resource)), by.nodes);
  for (const auto& by : left_out.by_taint)
    add(fmt::format("taint \"{}\"", TaintText(by.taint, vocabulary)), by.nodes);
  if (parts.empty()) return "";
  std::ranges::sort(parts);
  return fmt::format(". Total nodes: {}; excluded: {}", left_out.all, fmt::join(parts, ", "));
}

std::string FillText(const model::TopologyRefusal& refusal, std::string_view topology,
                     const model::Vocabulary& vocabulary) {
  using Kind = model::TopologyRefusal::Kind;
  if (refusal.kind == Kind::kFewLayers) {
    std::string text = fmt::format("topology \"{}\" doesn't allow to fit", topology);
    for (const model::TopologyFill& fill : refusal.fills) {
      text += fmt::format("; {}/{} slice(s) fit on level {}", fill.fits, fill.wanted,
                          vocabulary.names.View(fill.level));
    }
    return text;
  }
  const model::TopologyFill& fill = refusal.fills.front();
  const std::string_view unit = refusal.kind == Kind::kFewPods ? "pod" : "slice";
  if (fill.fits == 0) {
    return fmt::format("topology \"{}\" doesn't allow to fit any of {} {}(s)", topology,
                       fill.wanted, unit);
  }
  return fmt::format("topology \"{}\" allows to fit only {} out of {} {}(s)", topology, fill.fits,
                     fill.wanted, unit);
}

}  // namespace

std::string TopologyRefusalText(const model::TopologyRefusal& refusal,
                                const model::Vocabulary& vocabulary) {
  using Kind = model::TopologyRefusal::Kind;
  const auto name = [&](model::NameId id) {
    return id.valid() ? vocabulary.names.View(id) : std::string_view();
  };
  switch (refusal.kind) {
    case Kind::kNoLevel:
      return fmt::format("no requested topology level: {}", name(refusal.level));
    case Kind::kNoSliceLevel:
      return fmt::format("no requested topology level for slices: {}", name(refusal.level));
    case Kind::kSliceAbove:
      return fmt::format("podset slice topology {} is above the podset topology {}",
                         name(refusal.level), name(refusal.within));
    case Kind::kUneven: {
      const model::TopologyFill& fill = refusal.fills.front();
      return fmt::format(
          "{} pod(s) can't be divided into slices of {} on level {}: change how many they are, or "
          "the size of slices",
          fill.wanted, fill.fits, name(fill.level));
    }
    case Kind::kNoDomains:
      return fmt::format("no topology domains at level: {}", name(refusal.level));
    case Kind::kStale:
      return fmt::format(
          "topology \"{}\" has no domain {} any more, in which some of the pods stand",
          name(refusal.topology), name(refusal.level));
    case Kind::kGone:
      return fmt::format("topology \"{}\", which ResourceFlavor {} names, doesn't exist: create it",
                         name(refusal.topology), name(refusal.flavor));
    case Kind::kFlavorGone:
      return fmt::format("ResourceFlavor {} doesn't exist: create it", name(refusal.flavor));
    case Kind::kUntold:
      return fmt::format("ResourceFlavor {} names no topology any more", name(refusal.flavor));
    case Kind::kFewPods:
    case Kind::kFewSlices:
    case Kind::kFewLayers:
      break;
  }
  return FillText(refusal, name(refusal.topology), vocabulary) +
         LeftOutText(refusal.left_out, vocabulary);
}

// ---- What to change --------------------------------------------------------------------------

namespace {

// `never`: without other workloads there would be none either.
std::string TopologyAdvice(const model::TopologyRefusal& refusal, bool never,
                           const model::Vocabulary& vocabulary) {
  using Kind = model::TopologyRefusal::Kind;
  const std::string_view level =
      refusal.level.valid() ? vocabulary.names.View(refusal.level) : std::string_view();
  switch (refusal.kind) {
    case Kind::kNoLevel:
    case Kind::kNoSliceLevel:
      return "ask for a level that the Topology of the queue's flavor has, or add this one to it";
    case Kind::kSliceAbove:
      return "ask for slices of the level of the pods, or of a narrower one";
    case Kind::kNoDomains:
      return fmt::format(
          "give nodes the nodeLabels of the flavor and labels of all levels of its Topology down "
          "to "
          "{}, or ask for another level",
          level);
    case Kind::kStale:
      return fmt::format(
          "bring back a node of {}, or have all pods placed anew: set spec.active of the workload "
          "to false and to true again",
          level);
    case Kind::kUntold:
      return "set spec.topologyName of the ResourceFlavor";
    case Kind::kFewPods:
    case Kind::kFewSlices:
    case Kind::kFewLayers:
      return never ? "not even without other workloads is there room for all of its pods: request "
                     "less for each, ask for a wider level, for a preferred one instead of a "
                     "required, for smaller slices or fewer pods, or add nodes"
                   : "it waits for room; it needs less at once with a wider level, with a "
                     "preferred one for a required, or with smaller slices or fewer pods";
    case Kind::kUneven:
    case Kind::kGone:
    case Kind::kFlavorGone:
      break;
  }
  return "";
}

std::string FaultAdvice(model::TopologyFault fault) {
  if (fault == model::TopologyFault::kSeveralFlavors) {
    return "put the resources that the pod set requests into one group of spec.resourceGroups of "
           "the ClusterQueue, so that they come from one flavor";
  }
  return "have the pods request a resource of which the ClusterQueue has a ResourceFlavor with "
         "spec.topologyName, or take the topologyRequest, if there is one, out of the pod set";
}

std::string FlavorAdvice(const model::FlavorReason& reason, const model::Vocabulary& vocabulary) {
  const auto flavor = [&] { return vocabulary.names.View(reason.flavor); };
  switch (reason.kind) {
    case FlavorReasonKind::kNotCovered:
      return fmt::format(
          "add {} to a group of spec.resourceGroups of the ClusterQueue, or don't request it",
          vocabulary.resources.Name(reason.resource));
    case FlavorReasonKind::kNoTopology:
      return fmt::format(
          "set spec.topologyName of ResourceFlavor {}, or take the topologyRequest "
          "out of the pod set",
          flavor());
    case FlavorReasonKind::kNoLevel:
      return fmt::format("ask for a level that the Topology of ResourceFlavor {} has", flavor());
    case FlavorReasonKind::kTopologyOnly:
      return "ask for a topology, unconstrained where any place will do";
    case FlavorReasonKind::kTaint:
      return "tolerate the taint, or use a queue of other flavors";
    case FlavorReasonKind::kAffinity:
      return fmt::format(
          "ask for nodes with the labels of ResourceFlavor {}, or use a queue of "
          "other flavors",
          flavor());
    case FlavorReasonKind::kExceedsMost:
      return "request less, or give the queue or its cohort more";
    default:
      return "";
  }
}

}  // namespace

std::string AdviceText(const model::WorkloadRefusal& refusal, const model::Vocabulary& vocabulary) {
  if (refusal.bar == model::QueueBar::kNamespace) {
    return "label the namespace as spec.namespaceSelector of the ClusterQueue asks, or set that: "
           "{} "
           "is all namespaces";
  }
  if (refusal.bar != model::QueueBar::kNone || refusal.promised) return "";
  if (!refusal.places.empty()) {
    const auto& topology = refusal.places.front().topology;
    if (topology) {
      const bool never = refusal.unfit == model::Unfit::kNoPlaces;
      return TopologyAdvice(*topology, never, vocabulary);
    }
    return refusal.places.front().most
               ? "request less for each pod, ask for fewer pods, or add nodes that hold them"
               : "";
  }
  if (refusal.fault != model::TopologyFault::kNone) return FaultAdvice(refusal.fault);
  if (refusal.unfit == model::Unfit::kWaiting) return "";
  // Of several flavors any will do: the first by name is enough.
  std::vector<std::pair<std::string_view, std::string>> advice;
  for (const model::FlavorReason& reason : refusal.reasons) {
    std::string of_flavor = FlavorAdvice(reason, vocabulary);
    if (of_flavor.empty()) continue;
    advice.emplace_back(
        reason.flavor.valid() ? vocabulary.names.View(reason.flavor) : std::string_view(),
        std::move(of_flavor));
  }
  return advice.empty() ? "" : std::ranges::min(advice).second;
}

WaitText WithAdvice(WaitText why, const model::WorkloadRefusal& refusal,
                    const model::Vocabulary& vocabulary) {
  const std::string advice = AdviceText(refusal, vocabulary);
  if (advice.empty()) return why;
  if (!why.message.ends_with('.')) why.message += '.';
  why.message += " What to change: " + advice;
  return why;
}

}  // namespace berth::translate
