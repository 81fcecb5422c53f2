#include "controllers/replica_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/names.h"
#include "api/selector.h"

namespace berth::controllers {
namespace {

bool Contains(const api::StringMap& labels, const api::StringMap& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& pair) {
    return api::Find(labels, pair.first) == std::string_view(pair.second);
  });
}

// Everything but the owner's reference, which is given up or taken.
std::string OwnersWithout(const Head& pod, std::string_view uid) {
  std::vector<api::OwnerReference> owners = pod.owners;
  std::erase_if(owners, [&](const api::OwnerReference& owner) { return owner.uid == uid; });
  return OwnersText(owners);
}

std::string OwnersWith(const Head& pod, const Head& owner) {
  std::vector<api::OwnerReference> owners = pod.owners;
  std::erase_if(owners, [&](const api::OwnerReference& known) { return known.uid == owner.uid; });
  owners.push_back(ControllerReference(owner));
  return OwnersText(owners);
}

// What a status says.
struct Counts {
  int64_t replicas = 0;
  int64_t labeled = 0;
  int64_t ready = 0;
  int64_t available = 0;
  int64_t terminating = 0;
};

Counts Count(const ReplicaSetFacts& facts, const std::vector<PodRef>& active, Instant now,
             Plan& plan) {
  Counts counts;
  for (const PodRef& pod : active) {
    ++counts.replicas;
    if (Contains(pod.head->labels, facts.set.pod_template.labels)) ++counts.labeled;
    if (!pod.facts->ready) continue;
    ++counts.ready;
    if (IsAvailable(pod, facts.set.min_ready_seconds, now)) ++counts.available;
    plan.WakeAt(AvailableAt(pod, facts.set.min_ready_seconds, now));
  }
  for (const PodRef& pod : facts.owned) {
    if (pod.head->deletion.has_value() && !pod.facts->terminal()) ++counts.terminating;
  }
  return counts;
}

void PlanStatus(const ReplicaSetFacts& facts, const Counts& counts, Instant now, Plan& plan) {
  const api::ReplicaSet& set = facts.set;
  std::vector<api::Condition> conditions = set.conditions;
  bool changed = false;
  const bool failing =
      std::ranges::find(conditions, "ReplicaFailure", &api::Condition::type) != conditions.end();
  if (facts.trouble.has_value()) {
    // What was said first stands: others name other pods, and each write of it would be a change.
    changed = !failing && ReplaceCondition(conditions,
                                           {.type = "ReplicaFailure",
                                            .status = "True",
                                            .reason = facts.trouble->reason,
                                            .message = facts.trouble->message},
                                           now);
  } else {
    changed = RemoveCondition(conditions, "ReplicaFailure");
  }
  // Which a ReplicationController does not tell.
  const bool tells_terminating = facts.head.kind == api::KindId::kReplicaSet;
  if (!changed && set.status_replicas == counts.replicas &&
      set.fully_labeled_replicas == counts.labeled && set.ready_replicas == counts.ready &&
      set.available_replicas == counts.available &&
      (!tells_terminating || set.terminating_replicas == counts.terminating) &&
      set.observed_generation == set.meta.generation) {
    return;
  }
  std::string status = fmt::format(
      R"({{"replicas":{},"fullyLabeledReplicas":{},"readyReplicas":{},)"
      R"("availableReplicas":{},"observedGeneration":{})",
      counts.replicas, counts.labeled, counts.ready, counts.available, set.meta.generation);
  if (tells_terminating) status += fmt::format(R"(,"terminatingReplicas":{})", counts.terminating);
  if (changed) {
    status += R"(,"conditions":)" + (conditions.empty()
                                         ? std::string("null")
                                         : ConditionsText(conditions, ConditionTimes::kTransition));
  }
  plan.writes.push_back(StatusOf(facts.head, status + "}"));
}

void PlanCreations(const ReplicaSetFacts& facts, int64_t count, Plan& plan) {
  const api::OwnerReference owner = ControllerReference(facts.head);
  Write pod = PodOf(facts.set.pod_template, facts.head.namespace_name, owner, {});
  pod.name = api::GeneratedNameBase(facts.head.name + "-");
  pod.generate = true;
  plan.writes.insert(plan.writes.end(), static_cast<size_t>(count), pod);
}

}  // namespace

std::vector<PodRef> ClaimPods(const Claimant& who, const std::vector<PodRef>& owned,
                              const std::vector<PodRef>& orphans, Writes& writes) {
  const Result<api::LabelQuery> query = api::QueryOf(who.selector);
  if (!query) return owned;
  std::vector<PodRef> claimed;
  std::vector<const PodRef*> released;
  for (const PodRef& pod : owned) {
    if (query->Matches(pod.head->labels)) {
      claimed.push_back(pod);
      continue;
    }
    released.push_back(&pod);
  }
  std::ranges::sort(released, {},
                    [](const PodRef* pod) -> const std::string& { return pod->head->name; });
  for (const PodRef* pod : released) {
    Write release = PatchOf(*pod->head);
    if (pod->head->HasFinalizer(who.finalizer))
      release = WithoutFinalizer(*pod->head, who.finalizer);
    if (!release.metadata.empty()) release.metadata += ',';
    release.metadata += R"("ownerReferences":)" + OwnersWithout(*pod->head, who.owner.uid);
    writes.push_back(std::move(release));
  }
  if (who.owner.deletion.has_value() || query->empty()) return claimed;
  for (const PodRef& pod : orphans) {
    if (pod.head->deletion.has_value() || (who.active_only && !pod.active())) continue;
    if (!query->Matches(pod.head->labels)) continue;
    Write adopt = PatchOf(*pod.head);
    adopt.metadata = R"("ownerReferences":)" + OwnersWith(*pod.head, who.owner);
    if (!who.finalizer.empty() && !pod.head->HasFinalizer(who.finalizer)) {
      std::vector<std::string> finalizers = pod.head->finalizers;
      finalizers.emplace_back(who.finalizer);
      adopt.metadata += R"(,"finalizers":)" + ListText(finalizers);
    }
    writes.push_back(std::move(adopt));
    claimed.push_back(pod);
  }
  return claimed;
}

Plan PlanReplicaSet(const ReplicaSetFacts& facts, Instant now) {
  Plan plan;
  std::vector<PodRef> active =
      ClaimPods({.selector = facts.set.selector, .owner = facts.head, .active_only = true},
                facts.owned, facts.orphans, plan.writes);
  std::erase_if(active, [](const PodRef& pod) { return !pod.active(); });
  const Counts counts = Count(facts, active, now, plan);
  bool moving = false;
  if (!facts.head.deletion.has_value()) {
    const int64_t burst = facts.trouble.has_value() ? 1 : kPodsBurst;
    const int64_t missing = facts.set.replicas - static_cast<int64_t>(active.size());
    // What takes one burst tells its end alone; what takes many shows how far it is.
    moving = missing != 0 && std::abs(missing) <= kPodsBurst;
    if (missing > 0) PlanCreations(facts, std::min(missing, burst), plan);
    if (missing < 0) {
      const int64_t surplus = std::min(-missing, kPodsBurst);
      SortForDeletion(active, surplus, facts.count_on_node, now);
      for (int64_t i = 0; i < surplus; ++i) {
        plan.writes.push_back(DeleteOf(*active[static_cast<size_t>(i)].head));
      }
    }
  }
  if (!moving || facts.trouble.has_value()) PlanStatus(facts, counts, now, plan);
  return plan;
}

}  // namespace berth::controllers
