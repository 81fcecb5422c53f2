#include "controllers/node_lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace berth::controllers {
namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::string_view kNoSchedule = "NoSchedule";
constexpr std::string_view kNoExecute = "NoExecute";

struct Pressure {
  std::string_view condition;
  std::string_view taint;
};
constexpr std::array<Pressure, 4> kPressures{{
    {"MemoryPressure", "node.kubernetes.io/memory-pressure"},
    {"DiskPressure", "node.kubernetes.io/disk-pressure"},
    {"PIDPressure", "node.kubernetes.io/pid-pressure"},
    {"NetworkUnavailable", "node.kubernetes.io/network-unavailable"},
}};
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";

const api::NodeCondition* ConditionOf(const api::Node& node, std::string_view type) {
  const auto at = std::ranges::find(node.conditions, type, &api::NodeCondition::type);
  return at == node.conditions.end() ? nullptr : &*at;
}

std::string_view StatusOf(const api::Node& node, std::string_view type) {
  const api::NodeCondition* condition = ConditionOf(node, type);
  return condition == nullptr ? std::string_view() : std::string_view(condition->status);
}

// The taints that are the node controller's: what they should be.
std::vector<api::Taint> OwnTaints(const api::Node& node, bool all_silent) {
  std::vector<api::Taint> taints;
  const auto add = [&](std::string_view key, std::string_view effect) {
    taints.push_back({.key = std::string(key), .effect = std::string(effect)});
  };
  const std::string_view ready = StatusOf(node, "Ready");
  if (ready != "True") {
    const std::string_view key = ready == "Unknown" ? kUnreachable : kNotReady;
    add(key, kNoSchedule);
    // A node that never spoke is new, not lost.
    if (!ready.empty() && !all_silent) add(key, kNoExecute);
  }
  for (const Pressure& pressure : kPressures) {
    if (StatusOf(node, pressure.condition) == "True") add(pressure.taint, kNoSchedule);
  }
  if (node.unschedulable) add(kUnschedulable, kNoSchedule);
  return taints;
}

bool IsOwn(const api::Taint& taint) {
  if (taint.key == kNotReady || taint.key == kUnreachable) {
    return taint.effect == kNoSchedule || taint.effect == kNoExecute;
  }
  if (taint.effect != kNoSchedule) return false;
  return taint.key == kUnschedulable ||
         std::ranges::any_of(kPressures, [&](const Pressure& p) { return p.taint == taint.key; });
}

bool SameTaint(const api::Taint& a, const api::Taint& b) {
  return a.key == b.key && a.effect == b.effect;
}

void PlanTaints(const Objects& objects, const NodeFacts& facts, Instant now, Plan& plan) {
  const api::Node& node = *objects.node(facts.slot);
  const std::vector<api::Taint> wanted = OwnTaints(node, facts.all_silent);
  std::vector<api::Taint> taints;
  bool changed = false;
  for (const api::Taint& taint : node.taints) {
    const bool keep = !IsOwn(taint) || std::ranges::any_of(wanted, [&](const api::Taint& own) {
      return SameTaint(own, taint);
    });
    if (keep) taints.push_back(taint);
    changed = changed || !keep;
  }
  for (const api::Taint& own : wanted) {
    if (std::ranges::any_of(taints, [&](const auto& taint) { return SameTaint(own, taint); })) {
      continue;
    }
    taints.push_back(own);
    taints.back().added = now;
    changed = true;
  }
  if (!changed) return;
  std::string text = "[";
  for (const api::Taint& taint : taints) {
    text += fmt::format(R"({{"key":{},"effect":{})", client::JsonString(taint.key),
                        client::JsonString(taint.effect));
    if (!taint.value.empty()) text += R"(,"value":)" + client::JsonString(taint.value);
    if (taint.added.has_value()) {
      text += fmt::format(R"(,"timeAdded":"{}")", client::SecondsTime(*taint.added));
    }
    text += "},";
  }
  if (text.back() == ',') text.pop_back();
  Write patch = PatchOf(objects.head(facts.slot));
  patch.body = R"("spec":{"taints":)" + (taints.empty() ? std::string("null") : text + "]") + "}";
  plan.writes.push_back(std::move(patch));
}

// The labels of old say what those of today do.
void PlanLabels(const Head& head, Plan& plan) {
  std::string wanted;
  for (const std::string_view label : {"kubernetes.io/os", "kubernetes.io/arch"}) {
    const auto value = api::Find(head.labels, label);
    const std::string old = "beta." + std::string(label);
    if (!value.has_value() || api::Find(head.labels, old) == value) continue;
    wanted +=
        fmt::format(R"({}"{}":{})", wanted.empty() ? "" : ",", old, client::JsonString(*value));
  }
  if (wanted.empty()) return;
  Write patch = PatchOf(head);
  patch.metadata = R"("labels":{)" + wanted + "}";
  plan.writes.push_back(std::move(patch));
}

// True when the node is silent and the write of it is planned.
bool PlanSilence(const Objects& objects, const NodeFacts& facts, const LifecycleTiming& timing,
                 Instant now, Plan& plan) {
  const api::Node& node = *objects.node(facts.slot);
  if (StatusOf(node, "Ready") == "Unknown") return false;
  const Instant lost = facts.last_sign + timing.grace;
  if (lost > now) {
    plan.WakeAt(lost);
    return false;
  }
  std::vector<api::Condition> conditions;
  for (const std::string_view type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
    const bool never = StatusOf(node, type).empty();
    conditions.push_back({.type = std::string(type),
                          .status = "Unknown",
                          .reason = never ? "NodeStatusNeverUpdated" : "NodeStatusUnknown",
                          .message = never ? "Kubelet never posted node status."
                                           : "Kubelet stopped posting node status.",
                          .transition = now});
  }
  plan.writes.push_back(ConditionsPatch(objects.head(facts.slot), conditions));
  if (StatusOf(node, "Ready") == "True") {
    plan.writes.back().told = {
        {.reason = "NodeNotReady",
         .message = fmt::format("Node {} status is now: NodeNotReady", facts.name),
         .about = objects.head(facts.slot).uid}};
  }
  return true;
}

// Nobody can tell whether pods of such a node still serve. Of those that became ready since it was
// given up its kubelet can: each is marked once, or the two would contradict each other without
// end.
void PlanUnready(const Objects& objects, const NodeFacts& facts, Instant now, Plan& plan) {
  const api::NodeCondition* ready = ConditionOf(*objects.node(facts.slot), "Ready");
  if (ready == nullptr || ready->status == "True" || ready->status.empty()) return;
  for (const Slot slot : objects.PodsOn(facts.name)) {
    const PodRef pod = objects.pod_ref(slot);
    if (!pod.facts->ready || pod.facts->terminal()) continue;
    if (ready->transition.ns != 0 && pod.facts->ready_since > ready->transition) continue;
    Write mark = StatusOf(
        *pod.head,
        fmt::format(
            R"({{"conditions":[{{"type":"Ready","status":"False","lastTransitionTime":"{}"}}]}})",
            client::SecondsTime(now)));
    mark.strategic = true;
    mark.told = {{.warning = true,
                  .reason = "NodeNotReady",
                  .message = "Node is not ready",
                  .about = pod.head->uid}};
    plan.writes.push_back(std::move(mark));
  }
}

Write Disrupt(const Head& pod, std::string_view reason, std::string message, Instant now,
              std::string_view more) {
  return ConditionsPatch(pod,
                         {{.type = "DisruptionTarget",
                           .status = "True",
                           .reason = std::string(reason),
                           .message = std::move(message),
                           .transition = now}},
                         more);
}

void PlanEvictions(const Objects& objects, const NodeFacts& facts, Instant now,
                   PendingEvictions& pending, Plan& plan) {
  const api::Node& node = *objects.node(facts.slot);
  const bool tainted =
      std::ranges::any_of(node.taints, [](const auto& t) { return t.effect == kNoExecute; });
  if ((tainted && facts.all_silent) || (!tainted && pending.empty())) return;
  for (const Slot slot : objects.PodsOn(facts.name)) {
    const PodRef pod = objects.pod_ref(slot);
    if (pod.head->deletion.has_value()) continue;
    const Instant due = EvictionTime(*pod.facts, node, facts.taints_seen);
    const auto planned = pending.find(pod.head->uid);
    // What is now due at once was not what it waited for.
    const bool waits = due > now && due != Instant::Never();
    if (planned != pending.end() && !waits && planned->second > now)
      plan.told.push_back(CancelledEviction(*pod.head));
    if (planned != pending.end() && !waits) pending.erase(planned);
    if (waits) pending[pod.head->uid] = due;
    if (due > now) {
      plan.WakeAt(due);
      continue;
    }
    const bool marked = pod.facts->disrupted;
    Write end = marked || pod.facts->terminal()
                    ? DeleteOf(*pod.head)
                    : Disrupt(*pod.head, "DeletionByTaintManager",
                              "Taint manager: deleting due to NoExecute taint", now, {});
    if (!marked) {
      end.told.push_back({.reason = "TaintManagerEviction",
                          .message = fmt::format("Marking for deletion Pod {}/{}",
                                                 pod.head->namespace_name, pod.head->name),
                          .about = pod.head->uid});
    }
    plan.writes.push_back(std::move(end));
  }
}

// Pods of a node that does not exist: nobody else ends them.
void PlanOrphans(const Objects& objects, const NodeFacts& facts, const LifecycleTiming& timing,
                 Instant now, Plan& plan) {
  const std::set<Slot>& pods = objects.PodsOn(facts.name);
  if (pods.empty()) return;
  const Instant due = facts.missing_since + timing.quarantine;
  if (due > now) return plan.WakeAt(due);
  if (!facts.missing_read) {
    plan.writes.push_back(
        {.verb = Verb::kRead, .kind = api::KindId::kNode, .name = std::string(facts.name)});
    return;
  }
  for (const Slot slot : pods) {
    const PodRef pod = objects.pod_ref(slot);
    if (!pod.facts->terminal()) {
      plan.writes.push_back(Disrupt(*pod.head, "DeletionByPodGC", "PodGC: node no longer exists",
                                    now, R"(,"phase":"Failed")"));
      continue;
    }
    Write end = DeleteOf(*pod.head);
    end.grace_seconds = 0;
    // What a finalizer keeps has had its final deletion.
    if (!pod.head->deletion.has_value() || pod.head->finalizers.empty()) {
      plan.writes.push_back(std::move(end));
    }
  }
}

bool Tolerates(const api::Toleration& toleration, const api::Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (toleration.key.empty()) return toleration.op == "Exists";
  if (toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return (toleration.op.empty() || toleration.op == "Equal") && toleration.value == taint.value;
}

}  // namespace

Instant EvictionTime(const PodFacts& pod, const api::Node& node,
                     const std::map<std::string, Instant>& taints_seen) {
  Instant due = Instant::Never();
  for (const api::Taint& taint : node.taints) {
    if (taint.effect != kNoExecute) continue;
    const auto seen = taints_seen.find(taint.key);
    const Instant since =
        taint.added.value_or(seen == taints_seen.end() ? Instant{} : seen->second);
    bool tolerated = false;
    Instant until = Instant::Never();
    for (const api::Toleration& toleration : pod.spec->tolerations) {
      if (!Tolerates(toleration, taint)) continue;
      tolerated = true;
      if (!toleration.seconds.has_value()) continue;
      until = std::min(until, since + Duration::Seconds(std::max<int64_t>(0, *toleration.seconds)));
    }
    due = std::min(due, tolerated ? until : since);
  }
  return due;
}

Told CancelledEviction(const Head& pod) {
  return {.reason = "TaintManagerEviction",
          .message = fmt::format("Cancelling deletion of Pod {}/{}", pod.namespace_name, pod.name),
          .about = pod.uid};
}

Plan PlanNode(const Objects& objects, const NodeFacts& facts, const LifecycleTiming& timing,
              Instant now, PendingEvictions& pending) {
  Plan plan;
  if (facts.slot == kNoSlot) {
    PlanOrphans(objects, facts, timing, now, plan);
    return plan;
  }
  if (PlanSilence(objects, facts, timing, now, plan)) return plan;
  // Whether the others speak again is not this node's news.
  if (facts.all_silent) plan.WakeAt(now + Duration::Seconds(5));
  PlanTaints(objects, facts, now, plan);
  if (plan.writes.empty()) PlanLabels(objects.head(facts.slot), plan);
  if (!plan.writes.empty()) return plan;
  PlanUnready(objects, facts, now, plan);
  if (!plan.writes.empty()) return plan;
  PlanEvictions(objects, facts, now, pending, plan);
  return plan;
}

}  // namespace berth::controllers
