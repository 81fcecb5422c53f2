#include "translate/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "api/groups.h"
#include "base/limits.h"
#include "translate/quota_text.h"

namespace berth::translate {
namespace {

using model::NameId;
using model::ReasonKind;

struct Words {
  ReasonKind kind;
  std::string_view name;
  std::string_view plugin;
  std::string_view text;
};

constexpr Words kWords[] = {
    {ReasonKind::kNone, "None", "", ""},
    {ReasonKind::kAffinityConflict, "AffinityConflict", "NodeAffinity",
     "pod affinity terms conflict"},
    {ReasonKind::kNotNamed, "NotNamed", "NodeAffinity",
     "node(s) didn't satisfy plugin(s) [NodeAffinity]"},
    {ReasonKind::kUnschedulable, "Unschedulable", "NodeUnschedulable",
     "node(s) were unschedulable"},
    {ReasonKind::kNodeName, "NodeName", "NodeName", "node(s) didn't match the requested node name"},
    {ReasonKind::kTaint, "Taint", "TaintToleration", "node(s) had untolerated taint(s)"},
    {ReasonKind::kAddedAffinity, "AddedAffinity", "NodeAffinity",
     "node(s) didn't match scheduler-enforced node affinity"},
    {ReasonKind::kAffinity, "Affinity", "NodeAffinity",
     "node(s) didn't match Pod's node affinity/selector"},
    {ReasonKind::kPorts, "Ports", "NodePorts",
     "node(s) didn't have free ports for the requested pod ports"},
    {ReasonKind::kInsufficient, "Insufficient", "NodeResourcesFit", ""},
    {ReasonKind::kClaimMissing, "ClaimMissing", "VolumeRestrictions", ""},
    {ReasonKind::kClaimAwaited, "ClaimAwaited", "VolumeBinding", ""},
    {ReasonKind::kClaimLost, "ClaimLost", "VolumeBinding", ""},
    {ReasonKind::kClaimDeleted, "ClaimDeleted", "VolumeBinding", ""},
    {ReasonKind::kClaimForeign, "ClaimForeign", "VolumeBinding", ""},
    {ReasonKind::kClaimUnbound, "ClaimUnbound", "VolumeBinding",
     "pod has unbound immediate PersistentVolumeClaims"},
    {ReasonKind::kVolumeMissing, "VolumeMissing", "VolumeZone", ""},
    {ReasonKind::kDiskConflict, "DiskConflict", "VolumeRestrictions",
     "node(s) had no available disk"},
    {ReasonKind::kClaimInUse, "ClaimInUse", "VolumeRestrictions",
     "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
     "in-use by another pod"},
    {ReasonKind::kVolumeLimit, "VolumeLimit", "NodeVolumeLimits",
     "node(s) exceed max volume count"},
    {ReasonKind::kVolumeNode, "VolumeNode", "VolumeBinding",
     "node(s) didn't match PersistentVolume's node affinity"},
    {ReasonKind::kNoVolume, "NoVolume", "VolumeBinding",
     "node(s) didn't find available persistent volumes to bind"},
    {ReasonKind::kNoStorage, "NoStorage", "VolumeBinding",
     "node(s) did not have enough free storage"},
    {ReasonKind::kVolumeGone, "VolumeGone", "VolumeBinding",
     "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
    {ReasonKind::kVolumeZone, "VolumeZone", "VolumeZone", "node(s) had no available volume zone"},
    {ReasonKind::kSpread, "Spread", "PodTopologySpread",
     "node(s) didn't match pod topology spread constraints"},
    {ReasonKind::kSpreadLabel, "SpreadLabel", "PodTopologySpread",
     "node(s) didn't match pod topology spread constraints (missing required label)"},
    {ReasonKind::kPodAffinity, "PodAffinity", "InterPodAffinity",
     "node(s) didn't match pod affinity rules"},
    {ReasonKind::kPodAntiAffinity, "PodAntiAffinity", "InterPodAffinity",
     "node(s) didn't match pod anti-affinity rules"},
    {ReasonKind::kExistingAntiAffinity, "ExistingAntiAffinity", "InterPodAffinity",
     "node(s) didn't satisfy existing pods anti-affinity rules"},
    {ReasonKind::kFeatures, "Features", "NodeDeclaredFeatures",
     "node(s) didn't match Pod's required features"},
    {ReasonKind::kGpuModel, "GpuModel", "", "node(s) didn't match Pod's GPU model"},
    {ReasonKind::kDevices, "Devices", "", "node(s) didn't have enough free GPU devices"},
    {ReasonKind::kNodeMissing, "NodeMissing", "", "node(s) named by the pod didn't exist"},
    {ReasonKind::kGated, "Gated", "SchedulingGates", "waiting for scheduling gates"},
    {ReasonKind::kBackoff, "Backoff", "", "waiting to try again"},
    {ReasonKind::kWriteInFlight, "WriteInFlight", "", "the binding is being written"},
    {ReasonKind::kWriteUnresolved, "WriteUnresolved", "",
     "it is not known whether the binding was written"},
    {ReasonKind::kWriteRefused, "WriteRefused", "", "the API server refused the binding"},
    {ReasonKind::kHeldBy, "HeldBy", "", "held by others"},
    {ReasonKind::kVictimsTerminating, "VictimsTerminating", "", "waiting for victims to end"},
    {ReasonKind::kQuotaShort, "QuotaShort", "", "insufficient quota"},
    {ReasonKind::kGangIncomplete, "GangIncomplete", "", "waiting for the rest of its group"},
    {ReasonKind::kGroupMissing, "GroupMissing", "", "the group that it names does not exist"},
    {ReasonKind::kExternalVerdict, "ExternalVerdict", "", "node(s) were refused by an extender"},
    {ReasonKind::kPromiseNodeGone, "PromiseNodeGone", "", "the node is gone"},
    {ReasonKind::kPromiseNodeRefuses, "PromiseNodeRefuses", "", "the node refuses it now"},
    {ReasonKind::kPromiseVictimStays, "PromiseVictimStays", "",
     "a pod that was to leave is still there after its grace period"},
    {ReasonKind::kPromiseOutranked, "PromiseOutranked", "",
     "the room was promised to a more important pod"},
    {ReasonKind::kPromiseRoomTaken, "PromiseRoomTaken", "",
     "others took the room, or the node shrank"},
    {ReasonKind::kPromiseWriteRefused, "PromiseWriteRefused", "",
     "the API server refused its nomination"},
    {ReasonKind::kPromiseWriteLost, "PromiseWriteLost", "",
     "the API server took its nomination, and the pod does not have it"},
    {ReasonKind::kPromiseEvictionRefused, "PromiseEvictionRefused", "",
     "the API server refused to evict a pod there"},
    {ReasonKind::kPromiseEvictionFails, "PromiseEvictionFails", "",
     "the API server fails again and again to evict a pod there"},
    {ReasonKind::kPromiseToGroup, "PromiseToGroup", "", "its group is placed as a whole"},
};
static_assert(std::size(kWords) == model::kReasonKindsCount);
static_assert([] {
  for (size_t i = 0; i < std::size(kWords); ++i) {
    if (static_cast<size_t>(kWords[i].kind) != i) return false;
  }
  return true;
}());

bool IsBar(ReasonKind kind) { return (MaskOf(kind) & model::kBarredByVolumes) != 0; }

const Words& WordsOf(ReasonKind kind) { return kWords[static_cast<size_t>(kind)]; }

// pods, cpu, memory, ephemeral storage, then the others by name.
std::tuple<uint32_t, std::string_view> OrderOf(const model::State& state, model::ResourceId r) {
  if (r == model::kPods) return {0, ""};
  if (r.value < model::kPods.value) return {r.value + 1, ""};
  return {model::kFixedResourcesCount + 1, state.vocabulary().resources.Name(r)};
}

// `counts`: texts that are no reason's.
std::string NodesText(uint32_t nodes_count, std::span<const model::Reason> reasons,
                      std::map<std::string, int64_t> counts, const model::State& state) {
  for (const model::Reason& reason : reasons) {
    if (reason.nodes_count > 0) counts[ReasonText(reason, state)] += reason.nodes_count;
  }
  std::vector<std::string> lines;
  for (const auto& [text, count] : counts) {
    if (count > 0) lines.push_back(fmt::format("{} {}", count, text));
  }
  std::ranges::sort(lines);
  return fmt::format("0/{} nodes are available: {}.", nodes_count, fmt::join(lines, ", "));
}

// Why a group's queue lets nobody start, and what to change.
std::string BarText(const model::GangRefusal& gang, const model::State& state) {
  const std::string_view queue = state.NameOf(gang.queue);
  std::string_view why;
  switch (gang.bar) {
    case model::GroupBar::kNone:
      break;
    case model::GroupBar::kQueueMissing:
      why = "does not exist: create it, or name another in spec.queue";
      break;
    case model::GroupBar::kQueueClosed:
      why = "is closed, or one above it: open it, or name another in spec.queue";
      break;
    case model::GroupBar::kParentMissing:
      why = "has a queue above it that does not exist: create that, or name another in spec.parent";
      break;
    case model::GroupBar::kQueueCycle:
      why = "has queues above it that name each other as parents: change a spec.parent";
      break;
  }
  return fmt::format("PodGroup {} waits: queue {} {}", state.KeyOf(gang.group), queue, why);
}

// Upstream's words, with how much is missing, and where.
std::string ShortText(const model::Reason& reason, std::string_view group,
                      const model::State& state) {
  const std::string_view resource = state.vocabulary().resources.Name(reason.resource);
  return fmt::format(
      "queue resource quota insufficient: insufficient {}: PodGroup {} needs {} more "
      "than queue {} has left{}",
      resource, group, ResourceAmountText(resource, reason.deficit), state.NameOf(reason.detail),
      reason.unresolvable ? ", and more than it could ever have: raise its "
                            "spec.capability, or ask for less"
                          : "");
}

// Members that don't wait for a node, or, where none is known, who else there may be.
std::string ApartText(uint32_t apart) {
  if (apart == 0) return " of those whose spec.schedulerName is served here";
  return fmt::format(
      ": {} of its pods {} gated, another scheduler's, or ask{} for what this one can't honour",
      apart, apart == 1 ? "is" : "are", apart == 1 ? "s" : "");
}

// "namespace/podgroup-uid"
bool IsMadeName(std::string_view group) {
  return group.substr(group.find('/') + 1).starts_with(api::kMadeGroupPrefix);
}

// What the members of a group wait for, without what nodes say.
std::string GangText(const model::Refusal& refusal, const model::State& state) {
  const model::GangRefusal& gang = *refusal.gang;
  const std::string_view group = state.KeyOf(gang.group);
  if (gang.bar != model::GroupBar::kNone) return BarText(gang, state);
  if (gang.failing > 0) {
    return fmt::format(
        "PodGroup {} lacks {} of the places that it needs at once: what was decided of {} of its "
        "members was refused or failed, and is tried again",
        group, gang.needed, gang.failing);
  }
  switch (refusal.reasons.empty() ? ReasonKind::kNone : refusal.reasons.front().kind) {
    case ReasonKind::kGroupMissing:
      if (IsMadeName(group)) {
        return fmt::format(
            "PodGroup {}, which berth controllers make for pods that name none, does not exist "
            "yet: "
            "an Event of the pods' controller, or of the pod, says if it can't be made",
            group);
      }
      return fmt::format("PodGroup {} does not exist: create it, or let the pods name another",
                         group);
    case ReasonKind::kGangIncomplete: {
      const model::NameId role = refusal.reasons.front().detail;
      const std::string_view change =
          gang.needed > limits::kPodsMax
              ? "; so many pods there can never be: lower its spec.minMember"
          : role.valid() ? "; make more of them, or lower its spec.minTaskMember"
                         : "; make more, or lower its spec.minMember";
      const uint32_t apart = state.groups().CountsOf(gang.group)[model::MemberKind::kApart];
      std::string whose;
      if (gang.found == 0 && role.valid() && apart == 0) {
        whose = ": pods are of the role that their annotation volcano.sh/task-spec names";
      } else if (gang.found == 0) {
        whose = ApartText(apart);
      }
      return fmt::format("PodGroup {} lacks members{}: it needs {} more, and {} wait{}{}{}", group,
                         role.valid() ? fmt::format(" of role {}", state.NameOf(role)) : "",
                         gang.needed, gang.found, whose, change,
                         gang.released > 0
                             ? fmt::format("; {} gave back their nodes, since it was not completed "
                                           "in time",
                                           gang.released)
                             : "");
    }
    case ReasonKind::kQuotaShort:
      return ShortText(refusal.reasons.front(), group, state);
    default:
      return fmt::format(
          "PodGroup {} needs {} places at once, and {} were found{}{}", group, gang.needed,
          gang.found, gang.promised ? "; all are reserved for it until others are gone" : "",
          gang.most ? fmt::format("; even empty nodes would hold {}, so lower its minMember, have "
                                  "its pods request less, or add nodes",
                                  *gang.most)
                    : "");
  }
}

}  // namespace

namespace {

// Why a pod's volumes bar it from all nodes, in upstream's words.
std::string ClaimText(const model::Reason& reason, const model::State& state) {
  const auto name_of = [&](NameId id) {
    return id.valid() ? state.NameOf(id) : std::string_view();
  };
  const std::string_view key = name_of(reason.detail);
  const std::string_view name = key.substr(key.find('/') + 1);
  const std::string_view other = name_of(reason.detail_value);
  switch (reason.kind) {
    case ReasonKind::kClaimMissing:
      return fmt::format("persistentvolumeclaim \"{}\" not found", name);
    case ReasonKind::kClaimAwaited:
      return fmt::format(
          "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
          name);
    case ReasonKind::kClaimLost:
      return fmt::format(
          "persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", name,
          other);
    case ReasonKind::kClaimDeleted:
      return fmt::format("persistentvolumeclaim \"{}\" is being deleted", name);
    case ReasonKind::kClaimForeign: {
      // The claim is called by the pod and its volume.
      std::string_view pod = key;
      pod.remove_suffix(std::min(pod.size(), other.size() + 1));
      return fmt::format("PVC {} was not created for pod {} (pod is not owner)", key, pod);
    }
    case ReasonKind::kVolumeMissing:
      return fmt::format("persistentvolume \"{}\" not found", key);
    default:
      return std::string(WordsOf(reason.kind).text);
  }
}

}  // namespace

std::string_view ToString(ReasonKind kind) { return WordsOf(kind).name; }

std::string_view PluginOf(ReasonKind kind) { return WordsOf(kind).plugin; }

std::string ReasonText(const model::Reason& reason, const model::State& state) {
  if (IsBar(reason.kind)) return ClaimText(reason, state);
  if (reason.kind == ReasonKind::kExternalVerdict && reason.detail.valid())
    return std::string(state.NameOf(reason.detail));
  if (reason.kind != ReasonKind::kInsufficient) return std::string(WordsOf(reason.kind).text);
  if (reason.resource == model::kPods) return "Too many pods";
  return fmt::format("Insufficient {}", state.vocabulary().resources.Name(reason.resource));
}

std::vector<std::string> VerdictTexts(const model::State& state, model::ClassId c,
                                      const model::Verdict& verdict) {
  std::vector<std::string> texts;
  if (verdict.kind != ReasonKind::kInsufficient) {
    for (model::ReasonMask kinds = MaskOf(verdict); kinds != 0; kinds &= kinds - 1) {
      const auto kind = static_cast<ReasonKind>(std::countr_zero(kinds));
      texts.push_back(
          ReasonText({.kind = kind, .detail = verdict.name, .detail_value = verdict.other}, state));
    }
    return texts;
  }
  const model::BundleTable& bundles = state.vocabulary().bundles;
  const auto amounts = bundles.View(bundles.Asked(state.vocabulary().classes.at(c).requests));
  std::vector<model::ResourceId> lacking;
  for (uint64_t rest = verdict.lacking; rest != 0; rest &= rest - 1) {
    lacking.push_back(amounts[static_cast<size_t>(std::countr_zero(rest))].resource);
  }
  std::ranges::sort(lacking, {}, [&](model::ResourceId r) { return OrderOf(state, r); });
  for (const model::ResourceId r : lacking) {
    texts.push_back(ReasonText({.kind = verdict.kind, .resource = r}, state));
  }
  return texts;
}

std::string FailedSchedulingText(const model::Refusal& refusal, const model::State& state) {
  if (refusal.gang) {
    model::Refusal of_nodes = refusal;
    of_nodes.gang.reset();
    const bool incomplete = !refusal.class_id.valid() || refusal.gang->needed == 0;
    return GangText(refusal, state) +
           (incomplete ? "." : ": " + FailedSchedulingText(of_nodes, state));
  }
  if (refusal.nodes_count == 0) return "no nodes available to schedule pods";
  for (const model::Reason& reason : refusal.reasons) {
    if (reason.kind == ReasonKind::kAffinityConflict || IsBar(reason.kind)) {
      return fmt::format("0/{} nodes are available: {}.", refusal.nodes_count,
                         ReasonText(reason, state));
    }
  }
  std::string text = NodesText(refusal.nodes_count, refusal.reasons, {}, state);
  // That evictions will help is no reason for anything, and upstream tells nothing of it then.
  std::vector<std::string> then;
  const model::ProfileRules& rules = state.RulesOf(refusal.class_id);
  const bool evicts =
      refusal.preemption && refusal.preemption->bar != model::PreemptionBar::kVictimsToLeave;
  if (rules.deallocates && (evicts || !rules.preempts))
    then.emplace_back("no new claims to deallocate");
  if (evicts) then.push_back(PreemptionText(*refusal.preemption, state));
  return then.empty() ? text : fmt::format("{} {}", text, fmt::join(then, ", "));
}

std::string PreemptionText(const model::PreemptionRefusal& refusal, const model::State& state) {
  const std::string begin = "preemption: ";
  if (refusal.bar == model::PreemptionBar::kPolicy)
    return begin + "not eligible due to preemptionPolicy=Never.";
  if (refusal.bar == model::PreemptionBar::kVictimsTerminating)
    return begin + "not eligible due to a terminating pod on the nominated node.";
  if (refusal.bar == model::PreemptionBar::kExtenders)
    return begin + "no candidate node for preemption";
  return begin + NodesText(refusal.nodes_count, refusal.reasons,
                           {{"Preemption is not helpful for scheduling", refusal.not_helpful},
                            {"No preemption victims found for incoming pod", refusal.no_victims}},
                           state);
}

std::string LostPromiseText(const model::LostPromise& lost, const model::State& state) {
  return fmt::format("Its promise of node {} was taken back: {}.", state.NameOf(lost.node),
                     WordsOf(lost.why).text);
}

}  // namespace berth::translate
