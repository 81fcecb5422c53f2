#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "controllers/controllers.h"
#include "controllers/workload_priority.h"

// Gathers the facts that each key's plan is a function of.
namespace berth::controllers {
namespace {

constexpr Duration kEndedPodsEvery = Duration::Seconds(20);
// Groups of a queue come and go by thousands.
constexpr Duration kCountsEvery = Duration::Seconds(1);
// Of one plan at once.
constexpr size_t kWritesMax = 1000;
static_assert(kWritesMax > kPodsBurst, "a burst of pods and a status fit into one plan");
// Of Services, each of which walks its pods, in one step: between steps others are heard, and who
// is to stop. One over 3,000 pods takes some 30 ms.
constexpr int kServicesAtOnceMax = 16;

// How many active pods of all ReplicaSets of one Deployment are on each node.
CountOnNode CountsOf(std::map<std::string, int64_t, std::less<>> counts) {
  return [counts = std::move(counts)](std::string_view node) {
    const auto at = counts.find(node);
    return at == counts.end() ? int64_t{0} : at->second;
  };
}

}  // namespace

void Controllers::Work(Instant now, env::Outbox& out) {
  int services = 0;
  while (!queue_.empty() && queue_.begin()->first <= now && services < kServicesAtOnceMax &&
         static_cast<int64_t>(calls_.size()) < options_.calls_max) {
    const Key key = queue_.begin()->second;
    queue_.erase(queue_.begin());
    due_.erase(key);
    if (key.part == Part::kService) ++services;
    Reconcile(now, key, out);
  }
}

void Controllers::Reconcile(Instant now, const Key& key, env::Outbox& out) {
  const auto known = rows_.find(key);
  if (known != rows_.end() && known->second.in_flight > 0) {
    known->second.again = true;
    return;
  }
  Plan plan = PlanFor(key, now);
  const bool of_objects = std::ranges::any_of(plan.writes, [](const Write& write) {
    return write.verb == Verb::kCreate || write.verb == Verb::kDelete;
  });
  const bool by_trouble = key.part != Part::kService && key.part != Part::kNode;
  if (known != rows_.end() && known->second.trouble.has_value() && !of_objects && by_trouble) {
    // What was refused is not wanted any more.
    known->second.trouble.reset();
    plan = PlanFor(key, now);
  }
  for (Told& told : plan.told) Tell(now, key, std::move(told));
  if (plan.wake != Instant::Never()) Enqueue(std::max(plan.wake, now), key);
  if (plan.writes.empty()) {
    const bool of_name = key.part == Part::kNode || key.part == Part::kService;
    const bool gone = !of_name && objects_.Find(key.id) == kNoSlot;
    if (known != rows_.end() && (gone || known->second.idle())) rows_.erase(known);
    return;
  }
  Row& row = rows_[key];
  const bool counts = key.part == Part::kGroupQueue;
  row.not_before = std::max(row.not_before,
                            now + (counts ? kCountsEvery : std::max(options_.spacing, plan.rest)));
  row.planned = ReasonOf(key);
  row.failed = false;
  // The rest is planned anew from what these lead to.
  if (plan.writes.size() > kWritesMax) plan.writes.resize(kWritesMax);
  for (Write& write : plan.writes) Send(now, key, std::move(write), out);
}

Plan Controllers::PlanFor(const Key& key, Instant now) {
  if (key.part == Part::kNode) return PlanForNode(key.id, now);
  if (key.part == Part::kEndedPods) return PlanEndedPods(now);
  const auto known = rows_.find(key);
  const Row empty;
  const Row& row = known == rows_.end() ? empty : known->second;
  if (key.part == Part::kPodGroup) return PlanPodGroup(objects_, key.id, row.owner_read);
  if (key.part == Part::kWorkload) return PlanForWorkload(key.id, row.read, now);
  if (key.part == Part::kService) return PlanForService(key.id, row);
  if (key.part == Part::kLeftEndpoints) return PlanLeftEndpoints(objects_, key.id);
  if (key.part == Part::kMirror) return PlanMirror(objects_, key.id);
  const Slot slot = objects_.Find(key.id);
  if (slot == kNoSlot) return {};
  switch (key.part) {
    case Part::kNamespace:
      return PlanNamespace(objects_, {.slot = slot,
                                      .empty = row.empty,
                                      .occupied = row.occupied,
                                      .root_ca = options_.root_ca,
                                      .now = now});
    case Part::kDeployment:
      return PlanForDeployment(slot, row, now);
    case Part::kReplicaSet:
    case Part::kReplicationController:
      return PlanForReplicaSet(slot, row, now);
    case Part::kStatefulSet:
      return PlanForStatefulSet(slot, row, now);
    case Part::kDaemonSet:
      return PlanForDaemonSet(slot, row, now);
    case Part::kCronJob:
      return PlanForCronJob(slot, row, now);
    case Part::kJob:
      return PlanForJob(slot, row, now);
    case Part::kCollector:
      return PlanCollection(objects_, slot, absent_);
    case Part::kBudget:
      return PlanBudget(objects_, slot, row.scales, now);
    case Part::kDisruptedPod:
      return PlanDisruptedPod(objects_, slot, now);
    case Part::kProtection:
      return PlanProtection(objects_, slot);
    case Part::kGroupQueue:
      return PlanGroupQueue(objects_, slot);
    case Part::kClusterRole:
      return PlanAggregation(objects_, slot);
    case Part::kClaim:
      return PlanClaim(objects_, slot, row.gone_at);
    case Part::kVolume:
      return PlanVolume(objects_, slot, row.gone_at);
    case Part::kEphemeralClaims:
      return PlanEphemeralClaims(objects_, slot);
    case Part::kWorkloadPriority:
      return PlanWorkloadPriority(objects_, slot);
    case Part::kNode:
    case Part::kEndedPods:
    case Part::kPodGroup:
    case Part::kWorkload:
    case Part::kService:
    case Part::kLeftEndpoints:
    case Part::kMirror:
      break;
  }
  CHECK(false);
}

std::vector<PodRef> Controllers::PodsOf(const Head& owner) const {
  std::vector<PodRef> pods;
  for (const Slot slot : objects_.DependentsOf(owner.uid)) {
    const PodRef pod = objects_.pod_ref(slot);
    if (pod.facts != nullptr && Controls(owner, *pod.head)) pods.push_back(pod);
  }
  return pods;
}

namespace {

void SortByName(std::vector<PodRef>& pods) {
  std::ranges::sort(pods, {},
                    [](const PodRef& pod) -> const std::string& { return pod.head->name; });
}

std::vector<PodRef> OrphansFor(const Objects& objects, const Head& owner,
                               const api::LabelSelector& selector) {
  std::vector<PodRef> orphans;
  for (const Slot slot : objects.OrphanPods(owner.namespace_name, selector)) {
    orphans.push_back(objects.pod_ref(slot));
  }
  SortByName(orphans);
  return orphans;
}

}  // namespace

Plan Controllers::PlanForService(const std::string& id, const Row& row) {
  std::optional<TriggerTimes> seen = row.triggers;
  Plan plan = PlanService(objects_, id, seen);
  if (seen != row.triggers) rows_[{Part::kService, id}].triggers = std::move(seen);
  return plan;
}

Plan Controllers::PlanForReplicaSet(Slot slot, const Row& row, Instant now) {
  const Head& head = objects_.head(slot);
  const api::ReplicaSet& set = *objects_.replicas_of(slot);
  ReplicaSetFacts facts{.set = set,
                        .head = head,
                        .owned = PodsOf(head),
                        .orphans = OrphansFor(objects_, head, set.selector),
                        .trouble = row.trouble};
  std::map<std::string, int64_t, std::less<>> counts;
  const auto active = std::ranges::count_if(facts.owned, &PodRef::active);
  if (active > set.replicas) {
    const auto count = [&](const std::vector<PodRef>& pods) {
      for (const PodRef& pod : pods) {
        if (pod.active() && !pod.facts->node.empty()) ++counts[pod.facts->node];
      }
    };
    count(facts.owned);
    const api::OwnerReference* deployment = head.controller();
    if (deployment != nullptr) {
      for (const Slot sibling : objects_.DependentsOf(deployment->uid)) {
        const bool is_set =
            objects_.replica_set(sibling) != nullptr && MayOwn(head, objects_.head(sibling));
        if (sibling != slot && is_set) {
          count(PodsOf(objects_.head(sibling)));
        }
      }
    }
  }
  facts.count_on_node = CountsOf(std::move(counts));
  return PlanReplicaSet(facts, now);
}

OwnedSet Controllers::OwnedSetAt(Slot slot) const {
  return {.head = &objects_.head(slot), .set = objects_.replica_set(slot)};
}

bool Controllers::NameTaken(const api::Deployment& deployment, const Head& head) const {
  const Slot slot = objects_.Find(api::KindId::kReplicaSet, head.namespace_name,
                                  head.name + "-" + PodTemplateHash(deployment));
  if (slot == kNoSlot) return false;
  const api::OwnerReference* controller = objects_.head(slot).controller();
  const bool own = controller != nullptr && controller->uid == head.uid;
  return !own ||
         objects_.replica_set(slot)->pod_template.canonical != deployment.pod_template.canonical;
}

Plan Controllers::PlanForDeployment(Slot slot, const Row& row, Instant now) {
  const Head& head = objects_.head(slot);
  const api::Deployment& deployment = *objects_.deployment(slot);
  DeploymentFacts facts{.deployment = deployment, .head = head};
  if (row.trouble.has_value()) facts.trouble = row.trouble->message;
  facts.name_taken = NameTaken(deployment, head);
  for (const Slot set : objects_.DependentsOf(head.uid)) {
    if (objects_.replica_set(set) == nullptr || !Controls(head, objects_.head(set))) continue;
    facts.owned.push_back(OwnedSetAt(set));
    if (!deployment.recreate) continue;
    for (const PodRef& pod : PodsOf(objects_.head(set))) {
      if (!pod.facts->terminal()) ++facts.owned.back().pods_not_over;
    }
  }
  for (const Slot set : objects_.In(api::KindId::kReplicaSet, head.namespace_name)) {
    if (objects_.head(set).controller() == nullptr) facts.orphans.push_back(OwnedSetAt(set));
  }
  return PlanDeployment(facts, now);
}

RevisionFacts Controllers::RevisionsOf(const Head& head, const api::PodTemplate& pod_template,
                                       int64_t collisions) const {
  RevisionFacts facts;
  const auto ref = [&](Slot slot) {
    return RevisionRef{.head = &objects_.head(slot), .revision = objects_.revision(slot)};
  };
  for (const Slot slot : objects_.DependentsOf(head.uid)) {
    if (objects_.revision(slot) != nullptr && Controls(head, objects_.head(slot)))
      facts.owned.push_back(ref(slot));
  }
  for (const Slot slot : objects_.OrphanRevisions(head.namespace_name))
    facts.orphans.push_back(ref(slot));
  const Slot named = objects_.Find(api::KindId::kControllerRevision, head.namespace_name,
                                   RevisionName(head, pod_template, collisions));
  facts.name_taken = named != kNoSlot &&
                     (!Controls(head, objects_.head(named)) ||
                      objects_.revision(named)->pod_template.canonical != pod_template.canonical);
  return facts;
}

Plan Controllers::PlanForStatefulSet(Slot slot, const Row& row, Instant now) {
  const Head& head = objects_.head(slot);
  const api::StatefulSet& set = *objects_.stateful_set(slot);
  return PlanStatefulSet(
      {.set = set,
       .head = head,
       .owned = PodsOf(head),
       .orphans = OrphansFor(objects_, head, set.selector),
       .revisions = RevisionsOf(head, set.pod_template, set.collision_count),
       .taken =
           [&](std::string_view name) {
             const Slot pod = objects_.Find(api::KindId::kPod, head.namespace_name, name);
             const api::OwnerReference* controller =
                 pod == kNoSlot ? nullptr : objects_.head(pod).controller();
             return pod != kNoSlot && (controller == nullptr || controller->uid != head.uid);
           },
       .claim = [&](std::string_view name) -> const Head* {
         const Slot claim =
             objects_.Find(api::KindId::kPersistentVolumeClaim, head.namespace_name, name);
         return claim == kNoSlot ? nullptr : &objects_.head(claim);
       },
       .trouble = row.trouble},
      now);
}

Plan Controllers::PlanForDaemonSet(Slot slot, const Row& row, Instant now) {
  const Head& head = objects_.head(slot);
  const api::DaemonSet& set = *objects_.daemon_set(slot);
  DaemonSetFacts facts{.set = set,
                       .head = head,
                       .spec = *objects_.template_spec(slot),
                       .nodes = {},
                       .owned = PodsOf(head),
                       .orphans = OrphansFor(objects_, head, set.selector),
                       .revisions = RevisionsOf(head, set.pod_template, set.collision_count),
                       .trouble = row.trouble};
  for (const Slot node : objects_.All(api::KindId::kNode)) {
    if (!objects_.head(node).deletion.has_value()) facts.nodes.push_back(objects_.node(node));
  }
  return PlanDaemonSet(facts, now);
}

Plan Controllers::PlanForCronJob(Slot slot, const Row& row, Instant now) {
  const Head& head = objects_.head(slot);
  const api::CronJob& cron = *objects_.cron_job(slot);
  CronJobFacts facts{
      .cron = cron,
      .head = head,
      .zones = options_.zones,
      .jobs = {},
      .absent = [&](const Write& read) { return absent_.contains(JobAbsence(read)); },
      .trouble = row.trouble};
  for (const api::ActiveJob& active : cron.active) {
    const Slot job = objects_.Find(active.uid);
    if (job != kNoSlot && objects_.job(job) != nullptr && !Controls(head, objects_.head(job)))
      facts.others.push_back({.head = &objects_.head(job), .job = objects_.job(job)});
  }
  for (const Slot job : objects_.DependentsOf(head.uid)) {
    if (objects_.job(job) != nullptr && Controls(head, objects_.head(job)))
      facts.jobs.push_back({.head = &objects_.head(job), .job = objects_.job(job)});
  }
  std::ranges::sort(facts.jobs, {},
                    [](const JobRef& job) -> const std::string& { return job.head->name; });
  const std::string next = JobNameOf(cron, options_.zones, now);
  facts.name_taken =
      !next.empty() && objects_.Find(api::KindId::kJob, head.namespace_name, next) != kNoSlot;
  return PlanCronJob(facts, now);
}

Plan Controllers::PlanForJob(Slot slot, const Row& row, Instant now) {
  const Head& head = objects_.head(slot);
  const api::Job& job = *objects_.job(slot);
  std::vector<PodRef> owned = PodsOf(head);
  SortByName(owned);
  std::optional<FailureRecord> failures = row.failures_seen;
  Plan plan = PlanJob({.job = job,
                       .head = head,
                       .owned = std::move(owned),
                       .orphans = OrphansFor(objects_, head, job.selector),
                       .trouble = row.trouble,
                       .held = !client_.absent(workloads_watch_) && !MayRun(objects_, slot)},
                      now, failures);
  if (failures != row.failures_seen) rows_[{Part::kJob, head.uid}].failures_seen = failures;
  return plan;
}

Plan Controllers::PlanForWorkload(const std::string& job_uid, const ReadSince& read, Instant now) {
  // Nobody admits what it has no Workload for.
  if (client_.absent(workloads_watch_)) return {};
  const Slot job = objects_.Find(job_uid);
  const auto row = rows_.find(Key{Part::kJob, job_uid});
  const bool busy = row != rows_.end() && row->second.in_flight > 0;
  if (job == kNoSlot) return PlanLeftWorkloads(objects_, job_uid, absent_, busy, now);
  if (objects_.job(job) == nullptr) return {};
  return PlanWorkload(objects_, job, busy, read, now);
}

Plan Controllers::PlanForNode(const std::string& name, Instant now) {
  const auto at = nodes_.find(name);
  const Slot slot = objects_.Find(api::KindId::kNode, {}, name);
  if (at == nodes_.end()) return {};
  NodeRow& row = at->second;
  if (slot == kNoSlot && objects_.PodsOn(name).empty()) {
    nodes_.erase(at);
    return {};
  }
  return PlanNode(objects_,
                  {.name = name,
                   .slot = slot,
                   .last_sign = row.last_sign,
                   .missing_since = row.missing_since,
                   .missing_read = row.missing_read,
                   .all_silent = last_any_sign_ + options_.lifecycle.grace <= now,
                   .taints_seen = row.taints_seen},
                  options_.lifecycle, now, row.pending);
}

// Ended pods stay for users to look at, but not without bound.
Plan Controllers::PlanEndedPods(Instant now) {
  Plan plan{.wake = now + kEndedPodsEvery};
  // An owner without dependents is nobody's business any more.
  std::erase_if(absent_, [&](const std::string& key) {
    return objects_.DependentsOf(std::string_view(key).substr(0, key.find('/'))).empty();
  });
  std::vector<std::tuple<Instant, std::string_view, Slot>> ended;
  for (const Slot slot : objects_.All(api::KindId::kPod)) {
    const PodRef pod = objects_.pod_ref(slot);
    if (pod.facts->terminal() && !pod.head->deletion.has_value()) {
      ended.emplace_back(pod.head->creation, pod.head->uid, slot);
    }
  }
  const auto surplus = static_cast<int64_t>(ended.size()) - options_.ended_pods_max;
  if (surplus <= 0) return plan;
  std::ranges::sort(ended);
  for (int64_t i = 0; i < std::min(surplus, kPodsBurst); ++i) {
    plan.writes.push_back(DeleteOf(objects_.head(std::get<2>(ended[static_cast<size_t>(i)]))));
  }
  return plan;
}

}  // namespace berth::controllers
