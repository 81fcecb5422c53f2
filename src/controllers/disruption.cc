#include "controllers/disruption.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/request.h"

namespace berth::controllers {
namespace {

using client::AppendJsonString;

constexpr std::string_view kCondition = "DisruptionAllowed";

// What a pod's controller wants, and whose wish it is.
struct Scale {
  std::string_view uid;
  int64_t replicas = 0;
};

bool IsApps(std::string_view api_version) {
  return api_version.starts_with("apps/") || api_version.starts_with("extensions/");
}

// The object that a reference means, if it is there and no other of its name.
Slot Referred(const Objects& objects, api::KindId kind, const std::string& namespace_name,
              const api::OwnerReference& reference, const std::string& name) {
  const Slot slot = objects.Find(kind, namespace_name, name);
  return slot != kNoSlot && objects.head(slot).uid == reference.uid ? slot : kNoSlot;
}

std::optional<Scale> ScaleOfSet(const Objects& objects, Slot slot) {
  const Head& set = objects.head(slot);
  const api::OwnerReference* above = set.controller();
  if (above != nullptr && above->kind == "Deployment" && IsApps(above->api_version)) {
    const Slot deployment =
        Referred(objects, api::KindId::kDeployment, set.namespace_name, *above, above->name);
    if (deployment != kNoSlot) {
      return Scale{objects.head(deployment).uid, objects.deployment(deployment)->replicas};
    }
  }
  return Scale{set.uid, objects.replica_set(slot)->replicas};
}

// What is asked for scales, and what it came to.
struct Asked {
  const Objects& objects;
  const ScaleReads& reads;
  const Instant now;
  Writes missing = {};              // Reads without which nothing can be said.
  Instant ends = Instant::Never();  // When what failed is tried again.
  bool unseen = false;              // Objects of a kind that are all yet to be told.
};

// Of a kind that a user defined.
Result<std::optional<Scale>> ScaleOfDefined(Asked& asked, const std::string& namespace_name,
                                            const api::OwnerReference& controller) {
  const Head* definition = asked.objects.DefinitionOf(controller);
  if (definition == nullptr) {
    return Fail(ErrorCode::kNotFound, fmt::format("no matches for kind \"{}\" in version \"{}\"",
                                                  controller.kind, controller.api_version));
  }
  if (!asked.objects.definition(definition->name)->has_scale) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} does not implement the scale subresource", definition->name));
  }
  const Slot slot = Referred(asked.objects, api::KindId::kCustomResource, namespace_name,
                             controller, definition->name + "/" + controller.name);
  if (slot == kNoSlot) {
    asked.unseen = asked.unseen || !asked.objects.listed(definition->name);
    return std::nullopt;
  }
  const Head& head = asked.objects.head(slot);
  const auto read = asked.reads.find(head.uid);
  if (read == asked.reads.end() || read->second.version != head.resource_version ||
      read->second.ends <= asked.now) {
    asked.missing.push_back({.verb = Verb::kReadScale,
                             .kind = head.kind,
                             .defined = head.defined,
                             .namespace_name = head.namespace_name,
                             .name = head.name,
                             .uid = head.uid,
                             .resource_version = head.resource_version});
    return std::nullopt;
  }
  if (!read->second.replicas.has_value()) {
    asked.ends = std::min(asked.ends, read->second.ends);
    return Fail(ErrorCode::kUnavailable, read->second.failure);
  }
  return Scale{head.uid, *read->second.replicas};
}

// Nothing: the controller isn't there, or isn't known yet. Error: a kind that has no scale, or none
// that is known, or what the server said.
Result<std::optional<Scale>> ScaleOf(Asked& asked, const std::string& namespace_name,
                                     const api::OwnerReference& controller) {
  const Objects& objects = asked.objects;
  const bool set = controller.kind == "ReplicaSet" && IsApps(controller.api_version);
  const api::Kind* kind = set ? &api::KindOf(api::KindId::kReplicaSet)
                              : api::FindKind(controller.api_version, controller.kind);
  if (kind == nullptr || !kind->stored) return ScaleOfDefined(asked, namespace_name, controller);
  if (!kind->has_scale) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} does not implement the scale subresource", kind->group_resource()));
  }
  const Slot slot = Referred(objects, kind->id, namespace_name, controller, controller.name);
  if (slot == kNoSlot) return std::nullopt;
  if (set) return ScaleOfSet(objects, slot);
  if (const api::StatefulSet* stateful = objects.stateful_set(slot))
    return Scale{objects.head(slot).uid, stateful->replicas};
  if (const api::ReplicaSet* replicas = objects.replicas_of(slot))
    return Scale{objects.head(slot).uid, replicas->replicas};
  return Scale{objects.head(slot).uid, objects.deployment(slot)->replicas};
}

struct Counts {
  int64_t expected = 0;
  int64_t desired = 0;
  int64_t healthy = 0;
  bool unmanaged = false;                        // Some pods have no controller to ask.
  std::vector<std::string_view> dropped = {};    // Of disruptedPods, those that count no more.
  std::vector<std::string_view> undeleted = {};  // Uids of those among them that stayed.

  [[nodiscard]] int64_t allowed() const {
    return expected > 0 ? std::max<int64_t>(healthy - desired, 0) : 0;
  }
};

// How many pods the controllers want together. Pods without one count for nothing.
Result<Counts> ExpectedScale(Asked& asked, const std::vector<PodRef>& pods) {
  std::map<std::string_view, int64_t> wanted;
  std::set<std::string_view> met;
  Counts counts;
  for (const PodRef& pod : pods) {
    const api::OwnerReference* controller = pod.head->controller();
    counts.unmanaged = counts.unmanaged || controller == nullptr;
    if (controller == nullptr || !met.insert(controller->uid).second) continue;
    const Result<std::optional<Scale>> scale =
        ScaleOf(asked, pod.head->namespace_name, *controller);
    if (!scale) return std::unexpected(scale.error());
    if (!asked.missing.empty() || asked.unseen) continue;
    if (!scale->has_value()) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("found no controllers for pod \"{}\"", pod.head->name));
    }
    wanted.emplace((*scale)->uid, (*scale)->replicas);
  }
  for (const auto& [uid, replicas] : wanted) counts.expected += replicas;
  return counts;
}

// A share counts up to the next whole pod.
int64_t ShareOf(const api::IntOrPercent& share, int64_t whole) {
  return share.percent ? (share.value * whole + 99) / 100 : share.value;
}

Result<Counts> Expect(Asked& asked, const api::PodDisruptionBudget& budget,
                      const std::vector<PodRef>& pods) {
  if (!budget.max_unavailable && !budget.min_available) return Counts{};
  if (!budget.max_unavailable && !budget.min_available->percent) {
    return Counts{.expected = static_cast<int64_t>(pods.size()),
                  .desired = budget.min_available->value};
  }
  Result<Counts> counts = ExpectedScale(asked, pods);
  if (!counts) return counts;
  const int64_t expected = counts->expected;
  counts->desired =
      budget.max_unavailable
          ? std::max<int64_t>(expected - ShareOf(*budget.max_unavailable, expected), 0)
          : ShareOf(*budget.min_available, expected);
  return counts;
}

// As kube-controller-manager words them.
std::string SelectorText(const std::optional<api::LabelSelector>& selector) {
  if (!selector) return "nil";
  std::string text = "&LabelSelector{MatchLabels:map[string]string{";
  for (const auto& [key, value] : selector->match_labels)
    text += fmt::format("{}: {},", key, value);
  text += "},MatchExpressions:[]LabelSelectorRequirement{";
  for (const api::Requirement& one : selector->match_expressions) {
    text += fmt::format("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},", one.key,
                        one.op, fmt::join(one.values, " "));
  }
  return text + "},}";
}

std::vector<Told> ToldOf(const Head& head, const api::PodDisruptionBudget& budget,
                         const Counts& counts, bool pods) {
  std::vector<Told> told;
  if (!pods) told.push_back({.reason = "NoPods", .message = "No matching pods found"});
  if (counts.unmanaged) {
    told.push_back(
        {.warning = true,
         .reason = "UnmanagedPods",
         .message = fmt::format(
             "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. "
             "As a result, the status of the PDB cannot be calculated correctly, which may result "
             "in undefined behavior. To account for these pods please set \".spec.minAvailable\" "
             "field of the PDB to an integer value.",
             SelectorText(budget.selector))});
  }
  for (const std::string_view uid : counts.undeleted) {
    told.push_back(
        {.warning = true,
         .reason = "NotDeleted",
         .message = fmt::format("Pod was expected by PDB {}/{} to be deleted but it wasn't",
                                head.namespace_name, head.name),
         .about = std::string(uid)});
  }
  return told;
}

std::string ConditionText(const api::Condition* before, const api::Condition& next,
                          int64_t generation, Instant now) {
  const bool same = before != nullptr && before->status == next.status;
  std::string text = fmt::format(
      R"({{"type":"{}","status":"{}","observedGeneration":{},"lastTransitionTime":"{}",)",
      next.type, next.status, generation, client::SecondsTime(same ? before->transition : now));
  text += fmt::format(R"("reason":"{}","message":)", next.reason);
  AppendJsonString(text, next.message);
  return text + "}";
}

Write StatusPatch(const Head& head, std::string status) {
  Write write = StatusOf(head, std::move(status));
  write.strategic = true;  // Conditions of others stay.
  return write;
}

// Nothing may go while it isn't known what is wanted.
void PlanFailure(const Head& head, const api::PodDisruptionBudget& budget,
                 const std::string& message, Instant now, Plan& plan) {
  const api::Condition next{.type = std::string(kCondition),
                            .status = "False",
                            .reason = "SyncFailed",
                            .message = message};
  const api::Condition* before = api::Find(budget.conditions, kCondition);
  const bool told = before != nullptr && before->status == next.status &&
                    before->reason == next.reason && before->message == next.message;
  if (told && budget.disruptions_allowed == 0) return;
  plan.writes.push_back(
      StatusPatch(head, fmt::format(R"({{"disruptionsAllowed":0,"conditions":[{}]}})",
                                    ConditionText(before, next, budget.observed_generation, now))));
  plan.writes.back().told = {
      {.warning = true,
       .reason = "CalculateExpectedPodCountFailed",
       .message = "Failed to calculate the number of expected pods: " + message}};
}

void PlanCounts(const Head& head, const api::PodDisruptionBudget& budget, const Counts& counts,
                Instant now, Plan& plan) {
  const int64_t allowed = counts.allowed();
  const api::Condition next{.type = std::string(kCondition),
                            .status = allowed > 0 ? "True" : "False",
                            .reason = allowed > 0 ? "SufficientPods" : "InsufficientPods"};
  const api::Condition* before = api::Find(budget.conditions, kCondition);
  const bool told =
      before != nullptr && before->status == next.status && before->reason == next.reason;
  if (told && counts.dropped.empty() && budget.current_healthy == counts.healthy &&
      budget.desired_healthy == counts.desired && budget.expected_pods == counts.expected &&
      budget.disruptions_allowed == allowed &&
      budget.observed_generation == budget.meta.generation) {
    return;
  }
  std::string pods;
  for (const std::string_view name : counts.dropped) {
    if (!pods.empty()) pods += ',';
    AppendJsonString(pods, name);
    pods += ":null";
  }
  if (!pods.empty()) pods = R"("disruptedPods":{)" + pods + "},";
  plan.writes.push_back(StatusPatch(
      head,
      fmt::format(R"({{"observedGeneration":{},"disruptionsAllowed":{},"currentHealthy":{},)"
                  R"("desiredHealthy":{},"expectedPods":{},{}"conditions":[{}]}})",
                  budget.meta.generation, allowed, counts.healthy, counts.desired, counts.expected,
                  pods, ConditionText(before, next, budget.meta.generation, now))));
}

std::vector<PodRef> PodsOf(const Objects& objects, Slot slot) {
  std::vector<PodRef> pods;
  for (const Slot pod : objects.SelectedBy(slot)) pods.push_back(objects.pod_ref(pod));
  std::ranges::sort(pods, {},
                    [](const PodRef& pod) -> const std::string& { return pod.head->name; });
  return pods;
}

}  // namespace

Plan PlanBudget(const Objects& objects, Slot slot, const ScaleReads& reads, Instant now) {
  Plan plan;
  const Head& head = objects.head(slot);
  const api::PodDisruptionBudget& budget = *objects.budget(slot);
  const std::vector<PodRef> pods = PodsOf(objects, slot);
  Asked asked{.objects = objects, .reads = reads, .now = now};
  Result<Counts> counts = Expect(asked, budget, pods);
  plan.WakeAt(asked.ends);
  if (counts && (!asked.missing.empty() || asked.unseen)) {
    plan.writes = std::move(asked.missing);
    return plan;
  }
  if (!counts) {
    PlanFailure(head, budget, counts.error().message, now, plan);
    return plan;
  }
  // Both lists are sorted by name. An entry stays while its pod does, and is not on its way.
  auto next = pods.begin();
  for (const api::DisruptedPod& entry : budget.disrupted_pods) {
    while (next != pods.end() && next->head->name < entry.name) {
      counts->healthy += next->facts->ready && !next->head->deletion.has_value() ? 1 : 0;
      ++next;
    }
    const bool stays =
        next != pods.end() && next->head->name == entry.name && !next->head->deletion.has_value();
    if (stays && now < entry.time + kDisruptionTimeout) {
      plan.WakeAt(entry.time + kDisruptionTimeout);
      ++next;
    } else {
      if (stays) counts->undeleted.push_back(next->head->uid);
      counts->dropped.push_back(entry.name);
    }
  }
  for (; next != pods.end(); ++next) {
    counts->healthy += next->facts->ready && !next->head->deletion.has_value() ? 1 : 0;
  }
  PlanCounts(head, budget, *counts, now, plan);
  if (!plan.writes.empty()) plan.writes.back().told = ToldOf(head, budget, *counts, !pods.empty());
  return plan;
}

Plan PlanDisruptedPod(const Objects& objects, Slot slot, Instant now) {
  Plan plan;
  const PodRef pod = objects.pod_ref(slot);
  if (pod.facts == nullptr || !pod.active() || pod.facts->disrupted_since == Instant::Never()) {
    return plan;
  }
  const Instant due = pod.facts->disrupted_since + kDisruptionTimeout;
  if (now < due) {
    plan.WakeAt(due);
    return plan;
  }
  plan.writes.push_back(StatusPatch(
      *pod.head, fmt::format(R"({{"conditions":[{{"type":"DisruptionTarget","status":"False",)"
                             R"("lastTransitionTime":"{}","reason":null,"message":null}}]}})",
                             client::SecondsTime(now))));
  return plan;
}

}  // namespace berth::controllers
