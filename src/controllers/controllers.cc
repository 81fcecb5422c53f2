#include "controllers/controllers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/well_known.h"
#include "base/check.h"
#include "controllers/topology.h"
#include "controllers/workload_priority.h"

// The actor's shell: what it watches, and which keys a change enqueues. Plans are in plans.cc,
// calls and their outcomes in calls.cc.
namespace berth::controllers {
namespace {

constexpr Duration kEndedPodsEvery = Duration::Seconds(20);
constexpr std::string_view kLeaseNamespace = "kube-node-lease";

// All kinds that may own or be owned, or that a controller reads. Events belong to nobody.
bool IsWatched(const api::Kind& kind) {
  return kind.stored && kind.storage == kind.id && kind.id != api::KindId::kEvent;
}

}  // namespace

Controllers::Controllers(Options options)
    : options_(std::move(options)), client_(options_.client), prng_(options_.seed) {
  for (const api::Kind& kind : api::Kinds()) {
    if (!IsWatched(kind)) continue;
    const client::WatchId watch =
        client_.Watch({.resource = ResourceOf(kind.id), .may_be_absent = kind.custom});
    watches_.emplace(watch, Watched{.kind = kind.id});
    if (kind.id == api::KindId::kWorkload) workloads_watch_ = watch;
  }
}

void Controllers::Step(Instant now, env::Input input, env::Outbox& out) {
  const bool tick = std::holds_alternative<env::Tick>(input);
  std::vector<client::Event> events;
  client_.Handle(now, input, out, events);
  for (const client::Event& event : events) OnEvent(now, event, out);
  if (!definitions_changed_.empty()) FollowDefinitions(now, out);
  // Planned when nothing else waits to be heard: one plan then answers many changes.
  if (tick && started_) Work(now, out);
  recorder_.Send(now, client_, out);
}

Instant Controllers::wake_at() const {
  Instant at = client_.wake_at();
  const bool room = static_cast<int64_t>(calls_.size()) < options_.calls_max;
  if (started_ && room && !queue_.empty()) at = std::min(at, queue_.begin()->first);
  return at;
}

void Controllers::OnEvent(Instant now, const client::Event& event, env::Outbox& out) {
  if (const auto* object = std::get_if<client::ObjectEvent>(&event)) {
    OnObject(now, *object, out);
  } else if (const auto* synced = std::get_if<client::Synced>(&event)) {
    const Watched& what = watches_.at(synced->watch);
    if (!what.defined.empty()) OnDefinedListed(now, what.defined, client_.watch(synced->watch));
    if (!started_ && AllListed()) OnSynced(now);
    // The server may have come to know Workloads.
    if (synced->watch == workloads_watch_) EnqueueAllWorkloads(now);
  } else if (const auto* done = std::get_if<client::CallDone>(&event)) {
    OnCallDone(now, *done, out);
  } else if (const auto* trouble = std::get_if<client::WatchTrouble>(&event);
             trouble != nullptr && !trouble->repeated) {
    out.emplace_back(
        env::Log{env::LogLevel::kWarning,
                 fmt::format("controllers: watch: {} ({})", trouble->message, trouble->status)});
  } else if (std::holds_alternative<client::ServerAnswers>(event)) {
    out.emplace_back(env::Log{env::LogLevel::kInfo, "controllers: the API server answers again"});
  }
}

void Controllers::OnObject(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
  const Watched& what = watches_.at(event.watch);
  if (event.change == client::Change::kDeleted) {
    tombstones_.erase(event.uid);
    // Of a version that is served no more the server says nothing.
    if (!what.defined.empty() && !client_.absent(event.watch)) NoteGone(event.uid);
    return Forget(now, event.uid);
  }
  if (!tombstones_.empty() && tombstones_.contains(event.uid)) return;
  Observe(now, what, event.object.view(), out);
}

// Users' kinds may never be: nobody waits for their first lists.
bool Controllers::AllListed() const {
  return std::ranges::all_of(watches_, [&](const auto& entry) {
    return !entry.second.defined.empty() || client_.synced(entry.first);
  });
}

void Controllers::OnSynced(Instant now) {
  started_ = true;
  last_any_sign_ = now;
  for (auto& [name, row] : nodes_) row.last_sign = now;
  Enqueue(now + kEndedPodsEvery, {Part::kEndedPods, {}});
}

// ---- What a change enqueues -------------------------------------------------------------------

void Controllers::Observe(Instant now, const Watched& what, std::string_view json,
                          env::Outbox& out) {
  const Result<Difference> difference = objects_.Observe(what.kind, json, what.defined);
  if (!difference) {
    const std::string_view kind =
        what.defined.empty() ? api::KindOf(what.kind).name : std::string_view(what.defined);
    out.emplace_back(env::Log{env::LogLevel::kError, fmt::format("controllers: {}: {}", kind,
                                                                 difference.error().message)});
    return;
  }
  OnDifference(now, *difference);
}

void Controllers::Forget(Instant now, std::string_view uid) {
  OnDifference(now, objects_.Remove(uid));
}

void Controllers::Enqueue(Instant at, Key key) {
  const auto row = rows_.find(key);
  if (row != rows_.end()) {
    if (row->second.in_flight > 0) Withdraw(key, row->second);
    if (row->second.in_flight > 0) {
      row->second.again = true;
      return;
    }
    at = std::max(at, row->second.not_before);
  }
  const auto [entry, fresh] = due_.emplace(key, at);
  if (!fresh) {
    if (entry->second <= at) return;
    queue_.erase({entry->second, key});
    entry->second = at;
  }
  queue_.emplace(at, std::move(key));
}

void Controllers::OnDifference(Instant now, const Difference& difference) {
  if (difference.slot == kNoSlot) return;
  const bool known_before = !difference.before.uid.empty();
  if (difference.removed) {
    EnqueueByKind(now, difference.before, difference);
    EnqueueForCollector(now, difference.before, difference);
    return;
  }
  const Head& head = objects_.head(difference.slot);
  EnqueueByKind(now, head, difference);
  EnqueueForCollector(now, head, difference);
  if (!known_before) return;
  // An owner that lost it, or the one whose name it took.
  EnqueueController(now, difference.before);
  if (difference.before.uid != head.uid)
    EnqueueForCollector(now, difference.before, {.removed = true});
}

namespace {

// Of a kind that makes others: the part that plans for it.
std::optional<Part> OwnerPartOf(api::KindId kind) {
  switch (kind) {
    case api::KindId::kDeployment:
      return Part::kDeployment;
    case api::KindId::kReplicaSet:
      return Part::kReplicaSet;
    case api::KindId::kReplicationController:
      return Part::kReplicationController;
    case api::KindId::kStatefulSet:
      return Part::kStatefulSet;
    case api::KindId::kDaemonSet:
      return Part::kDaemonSet;
    case api::KindId::kCronJob:
      return Part::kCronJob;
    case api::KindId::kJob:
      return Part::kJob;
    default:
      return std::nullopt;
  }
}

}  // namespace

void Controllers::EnqueueController(Instant now, const Head& head) {
  const api::OwnerReference* controller = head.controller();
  if (controller == nullptr) return;
  const Slot owner = objects_.Find(controller->uid);
  if (owner == kNoSlot) return;
  const std::optional<Part> part = OwnerPartOf(objects_.head(owner).kind);
  if (!part) return;
  Enqueue(now, {*part, controller->uid});
  if (*part != Part::kReplicaSet) return;
  // Recreate waits for the last pod of the old templates.
  const api::OwnerReference* above = objects_.head(owner).controller();
  const Slot deployment = above == nullptr ? kNoSlot : objects_.Find(above->uid);
  const api::Deployment* view = deployment == kNoSlot ? nullptr : objects_.deployment(deployment);
  if (view != nullptr && view->recreate) Enqueue(now, {Part::kDeployment, above->uid});
}

// Owners of the namespace that may want an object without a controller.
void Controllers::EnqueueAdopters(Instant now, const Head& head, api::KindId kind, Part part) {
  for (const Slot slot : objects_.In(kind, head.namespace_name)) {
    const api::LabelQuery* selector = objects_.selector(slot);
    if (selector != nullptr && !selector->empty() && selector->Matches(head.labels)) {
      Enqueue(now, {part, objects_.head(slot).uid});
    }
  }
}

void Controllers::EnqueueForRevision(Instant now, const Head& head, const Difference& difference) {
  EnqueueController(now, head);
  if (difference.removed || head.controller() != nullptr) return;
  EnqueueAdopters(now, head, api::KindId::kStatefulSet, Part::kStatefulSet);
  EnqueueAdopters(now, head, api::KindId::kDaemonSet, Part::kDaemonSet);
}

// The StatefulSet whose claim it is by its name, `<template>-<set>-<ordinal>`, of which each part
// but the last may have a '-'.
void Controllers::EnqueueForClaim(Instant now, const Head& head) {
  const std::string_view name = std::string_view(head.name).substr(0, head.name.rfind('-'));
  for (size_t at = name.find('-'); at != std::string_view::npos; at = name.find('-', at + 1)) {
    const Slot slot =
        objects_.Find(api::KindId::kStatefulSet, head.namespace_name, name.substr(at + 1));
    if (slot != kNoSlot) Enqueue(now, {Part::kStatefulSet, objects_.head(slot).uid});
  }
}

void Controllers::EnqueueDaemonSets(Instant now) {
  for (const Slot slot : objects_.All(api::KindId::kDaemonSet)) {
    Enqueue(now, {Part::kDaemonSet, objects_.head(slot).uid});
  }
}

bool Controllers::OwnsPods(const Head& head) const {
  return std::ranges::any_of(objects_.DependentsOf(head),
                             [&](Slot slot) { return objects_.pod(slot) != nullptr; });
}

void Controllers::EnqueueBudgets(Instant now, const Head& head, const Difference& difference) {
  if (!objects_.has_budgets()) return;
  const bool pod = head.kind == api::KindId::kPod;
  if (head.kind == api::KindId::kCustomResource) {
    // Of its scale nothing is seen but that something changed.
    if (!OwnsPods(head)) return;
  } else if (!pod && !difference.created && !difference.removed && !difference.scaled &&
             difference.before.owners == head.owners) {
    return;
  }
  std::vector<std::string_view> selecting;
  for (const Slot slot : objects_.In(api::KindId::kPodDisruptionBudget, head.namespace_name)) {
    const api::LabelQuery& selector = *objects_.selector(slot);
    const bool selects = pod && selector.Matches(head.labels);
    if (selects) selecting.push_back(objects_.head(slot).name);
    if (!pod || selects || selector.Matches(difference.before.labels)) {
      Enqueue(now, {Part::kBudget, objects_.head(slot).uid});
    }
  }
  if (selecting.size() > 1) TellOfBudgets(now, head, selecting);
}

// Upstream goes on with one of them alone; here all are kept, and the first is named.
void Controllers::TellOfBudgets(Instant now, const Head& pod,
                                const std::vector<std::string_view>& budgets) {
  Tell(now, {Part::kBudget, pod.uid},
       Told{.warning = true,
            .reason = "MultiplePodDisruptionBudgets",
            .message =
                fmt::format("Pod \"{}\"/\"{}\" matches multiple PodDisruptionBudgets.  "
                            "Chose \"{}\" arbitrarily.",
                            pod.namespace_name, pod.name, *std::ranges::min_element(budgets))});
}

// The groups that a change may concern: that of a pod, before and after; an object of such a name;
// that of an owner, if there is one.
void Controllers::EnqueueGroups(Instant now, const Head& head, const Difference& difference) {
  if (!difference.created && !difference.removed && !difference.regrouped) return;
  const auto enqueue = [&](std::string_view group) {
    if (!group.starts_with(api::kMadeGroupPrefix)) return;
    group.remove_prefix(api::kMadeGroupPrefix.size());
    Enqueue(now, {Part::kPodGroup, GroupId(head.namespace_name, group)});
  };
  switch (head.kind) {
    case api::KindId::kPod:
      enqueue(difference.group_before);
      if (!difference.removed) enqueue(objects_.pod(difference.slot)->group);
      break;
    case api::KindId::kPodGroup:
      enqueue(head.name);
      break;
    case api::KindId::kReplicaSet:
    case api::KindId::kJob: {
      const std::string name = std::string(api::kMadeGroupPrefix) + head.uid;
      if (!objects_.MembersOf(head.namespace_name, name).empty() ||
          objects_.Find(api::KindId::kPodGroup, head.namespace_name, name) != kNoSlot ||
          (!difference.removed && IsGroupedAhead(objects_, difference.slot))) {
        enqueue(name);
      }
      break;
    }
    default:
      break;
  }
}

void Controllers::EnqueueGroupQueues(Instant now, const Difference& difference) {
  std::set<std::string_view> names;
  if (!difference.queue_before.empty()) names.insert(difference.queue_before);
  if (!difference.removed) names.insert(QueueOf(*objects_.group(difference.slot)));
  for (const std::string_view name : names) {
    const Slot queue = objects_.Find(api::KindId::kQueue, {}, name);
    if (queue != kNoSlot) Enqueue(now, {Part::kGroupQueue, objects_.head(queue).uid});
  }
}

void Controllers::EnqueueRefusedGroups(Instant now) {
  const auto first = rows_.lower_bound({Part::kPodGroup, {}});
  for (auto row = first; row != rows_.end() && row->first.part == Part::kPodGroup; ++row) {
    if (row->second.failures > 0) Enqueue(now, row->first);
  }
}

void Controllers::EnqueueService(Instant at, std::string_view namespace_name,
                                 std::string_view name) {
  const std::string id = ServiceId(namespace_name, name);
  Enqueue(at, {Part::kService, id});
  Enqueue(at, {Part::kMirror, id});
}

void Controllers::EnqueueServicesOf(Instant now, const Head& pod, const Head* before) {
  for (const Slot slot : objects_.In(api::KindId::kService, pod.namespace_name)) {
    const api::LabelQuery& selector = *objects_.selector(slot);
    if (selector.Matches(pod.labels) || (before != nullptr && selector.Matches(before->labels)))
      Enqueue(now + kServiceBatch,
              {Part::kService, ServiceId(pod.namespace_name, objects_.head(slot).name)});
  }
}

void Controllers::EnqueueServices(Instant now, const Head& head, const Difference& difference) {
  switch (head.kind) {
    case api::KindId::kPod:
      if (!objects_.has_services() || (!difference.removed && !difference.republished)) return;
      return EnqueueServicesOf(now, head, difference.removed ? nullptr : &difference.before);
    case api::KindId::kNode:
      if (!objects_.has_services() ||
          (!difference.created && !difference.removed && !difference.refitted)) {
        return;
      }
      for (const Slot pod : objects_.PodsOn(head.name))
        EnqueueServicesOf(now, objects_.head(pod), nullptr);
      return;
    case api::KindId::kService:
      if (difference.removed)
        Enqueue(now, {Part::kLeftEndpoints, ServiceId(head.namespace_name, head.name)});
      [[fallthrough]];
    case api::KindId::kEndpoints:
      return EnqueueService(now, head.namespace_name, head.name);
    case api::KindId::kEndpointSlice:
      for (const Head* slice : {&head, &difference.before}) {
        const std::string_view service = ServiceNameOf(*slice);
        if (!service.empty()) EnqueueService(now, head.namespace_name, service);
      }
      return;
    default:
      return;
  }
}

void Controllers::EnqueueUnboundClaims(Instant now) {
  for (const Slot slot : objects_.All(api::KindId::kPersistentVolumeClaim)) {
    const ClaimFacts& claim = *objects_.claim(slot);
    if (!claim.bind_completed || claim.phase == "Lost")
      Enqueue(now, {Part::kClaim, objects_.head(slot).uid});
  }
}

// Whose ephemeral volume the claim stood for, or in the way of.
void Controllers::EnqueueEphemeral(Instant now, const Head& claim) {
  for (const Slot slot : objects_.In(api::KindId::kPod, claim.namespace_name)) {
    const PodFacts& pod = *objects_.pod(slot);
    if (!pod.ephemeral.empty() && std::ranges::find(pod.claims, claim.name) != pod.claims.end())
      Enqueue(now, {Part::kEphemeralClaims, objects_.head(slot).uid});
  }
}

void Controllers::EnqueueVolumes(Instant now, const Head& head, const Difference& difference) {
  switch (head.kind) {
    case api::KindId::kPersistentVolumeClaim:
      if (!difference.removed) Enqueue(now, {Part::kClaim, head.uid});
      if (difference.removed) EnqueueEphemeral(now, head);
      for (const Slot slot : objects_.VolumesOf(head))
        Enqueue(now, {Part::kVolume, objects_.head(slot).uid});
      return;
    case api::KindId::kPersistentVolume: {
      Enqueue(now, {Part::kVolume, head.uid});
      const auto enqueue = [&](const std::optional<ClaimTarget>& target) {
        if (!target.has_value()) return;
        const Slot claim = objects_.Find(api::KindId::kPersistentVolumeClaim,
                                         target->namespace_name, target->name);
        if (claim != kNoSlot) Enqueue(now, {Part::kClaim, objects_.head(claim).uid});
      };
      enqueue(difference.claim_before);
      if (difference.removed) return;
      const VolumeFacts& volume = *objects_.volume(difference.slot);
      enqueue(volume.claim);
      if (!volume.claim.has_value()) EnqueueUnboundClaims(now);
      return;
    }
    case api::KindId::kStorageClass:
      return EnqueueUnboundClaims(now);
    default:
      return;
  }
}

void Controllers::EnqueueWorkload(Instant now, std::string_view job_uid) {
  const Slot slot = objects_.Find(job_uid);
  const bool waits = slot == kNoSlot ? !objects_.WorkloadsFor(job_uid).empty()
                                     : !QueueNameOf(objects_.head(slot)).empty();
  if (waits) Enqueue(now, {Part::kWorkload, std::string(job_uid)});
}

void Controllers::EnqueueAllWorkloads(Instant now) {
  for (const Slot slot : objects_.All(api::KindId::kJob)) {
    EnqueueWorkload(now, objects_.head(slot).uid);
  }
}

// If it is of that WorkloadPriorityClass; empty: of any.
void Controllers::EnqueueOfClass(Instant now, Slot workload, std::string_view name) {
  if (workload == kNoSlot) return;
  const api::Workload& of = *objects_.workload(workload);
  const bool named = name.empty() ? !of.priority_class.empty() : of.priority_class == name;
  if (named && of.priority_class_group == kOwnClassGroup)
    Enqueue(now, {Part::kWorkloadPriority, of.meta.uid});
}

void Controllers::EnqueueWorkloadsOn(Instant now, std::string_view node) {
  for (const Slot slot : objects_.All(api::KindId::kWorkload)) {
    const api::OwnerReference* controller = objects_.head(slot).controller();
    if (controller != nullptr && HasPlaceOn(*objects_.workload(slot), node))
      EnqueueWorkload(now, controller->uid);
  }
}

void Controllers::EnqueueWorkloads(Instant now, const Head& head) {
  const api::OwnerReference* controller = head.controller();
  switch (head.kind) {
    case api::KindId::kJob:
      // One that left its queue may have left a Workload.
      return Enqueue(now, {Part::kWorkload, head.uid});
    case api::KindId::kWorkload:
      if (IsMadeByHand(head)) return EnqueueOfClass(now, objects_.Find(head.uid), {});
      return Enqueue(now, {Part::kWorkload, std::string(JobUidOf(head))});
    case api::KindId::kPod:
      if (controller != nullptr) return EnqueueWorkload(now, controller->uid);
      if (const auto job = api::Find(head.labels, api::kControllerUidLabel))
        EnqueueWorkload(now, *job);
      return;
    case api::KindId::kWorkloadPriorityClass:
      for (const Slot slot : objects_.All(api::KindId::kWorkload)) {
        if (IsMadeByHand(objects_.head(slot))) EnqueueOfClass(now, slot, head.name);
      }
      return EnqueueAllWorkloads(now);
    case api::KindId::kResourceFlavor:
    case api::KindId::kPriorityClass:
      return EnqueueAllWorkloads(now);
    default:
      return;
  }
}

void Controllers::EnqueueForPod(Instant now, const Head& head, const Difference& difference) {
  EnqueueController(now, head);
  // Whose pod is gone may go; which it named is not known any more.
  if (difference.removed) {
    if (const auto node = nodes_.find(difference.node_before); node != nodes_.end()) {
      PendingEvictions& pending = node->second.pending;
      if (const auto at = pending.find(head.uid); at != pending.end()) {
        if (options_.events && at->second > now)
          TellOf(now, head, kTaintController, CancelledEviction(head));
        pending.erase(at);
      }
    }
    for (const Slot slot : objects_.In(api::KindId::kPersistentVolumeClaim, head.namespace_name)) {
      const Head& claim = objects_.head(slot);
      if (claim.deletion.has_value()) Enqueue(now, {Part::kProtection, claim.uid});
    }
  }
  if (!difference.removed) {
    const PodRef pod = objects_.pod_ref(difference.slot);
    if (!pod.facts->ephemeral.empty()) Enqueue(now, {Part::kEphemeralClaims, head.uid});
    const Instant disrupted = pod.facts->disrupted_since;
    if (disrupted != Instant::Never() && pod.active()) {
      Enqueue(std::max(now, disrupted + kDisruptionTimeout), {Part::kDisruptedPod, head.uid});
    }
  }
  if (!difference.removed && head.controller() == nullptr &&
      (difference.created || difference.before.labels != head.labels ||
       difference.before.owners != head.owners)) {
    EnqueueAdopters(now, head, api::KindId::kReplicaSet, Part::kReplicaSet);
    EnqueueAdopters(now, head, api::KindId::kReplicationController, Part::kReplicationController);
    EnqueueAdopters(now, head, api::KindId::kStatefulSet, Part::kStatefulSet);
    EnqueueAdopters(now, head, api::KindId::kDaemonSet, Part::kDaemonSet);
    EnqueueAdopters(now, head, api::KindId::kJob, Part::kJob);
  }
  if (difference.removed || !options_.node_lifecycle) return;
  const std::string& name = objects_.pod(difference.slot)->node;
  if (name.empty()) return;
  const Slot slot = objects_.Find(api::KindId::kNode, {}, name);
  const auto known = nodes_.find(name);
  if (slot == kNoSlot) {
    if (known == nodes_.end()) nodes_[name].missing_since = now;
    return Enqueue(now, {Part::kNode, name});
  }
  // On a healthy node a pod is none of its business.
  const bool tainted =
      std::ranges::any_of(objects_.node(slot)->taints,
                          [](const api::Taint& taint) { return taint.effect == "NoExecute"; });
  if (tainted) Enqueue(now, {Part::kNode, name});
}

void Controllers::EnqueueAggregates(Instant now) {
  for (const Slot slot : objects_.All(api::KindId::kClusterRole)) {
    if (objects_.role(slot)->aggregates)
      Enqueue(now, {Part::kClusterRole, objects_.head(slot).uid});
  }
}

void Controllers::EnqueueByKind(Instant now, const Head& head, const Difference& difference) {
  if (const std::optional<Part> part = OwnerPartOf(head.kind)) Enqueue(now, {*part, head.uid});
  bool fits_otherwise = false;
  switch (head.kind) {
    case api::KindId::kPod:
      EnqueueForPod(now, head, difference);
      break;
    case api::KindId::kReplicaSet:
      EnqueueController(now, head);
      if (!difference.removed && head.controller() == nullptr) {
        EnqueueAdopters(now, head, api::KindId::kDeployment, Part::kDeployment);
      }
      break;
    case api::KindId::kControllerRevision:
      EnqueueForRevision(now, head, difference);
      break;
    case api::KindId::kPersistentVolumeClaim:
      // Who made one knows; who misses one is not alone.
      if (difference.removed) EnqueueForClaim(now, head);
      [[fallthrough]];
    case api::KindId::kPersistentVolume:
      if (head.deletion.has_value()) Enqueue(now, {Part::kProtection, head.uid});
      break;
    case api::KindId::kJob:
      EnqueueController(now, head);
      break;
    case api::KindId::kPodDisruptionBudget:
      Enqueue(now, {Part::kBudget, head.uid});
      break;
    case api::KindId::kPodGroup:
      EnqueueGroupQueues(now, difference);
      break;
    case api::KindId::kQueue:
      Enqueue(now, {Part::kGroupQueue, head.uid});
      EnqueueRefusedGroups(now);
      break;
    case api::KindId::kNamespace:
      Enqueue(now, {Part::kNamespace, head.uid});
      break;
    case api::KindId::kClusterRole:
      EnqueueAggregates(now);
      break;
    case api::KindId::kCustomResourceDefinition:
      definitions_changed_.insert(head.name);
      // What is known of objects is of the definition before.
      if (difference.created || difference.removed) definitions_ended_.insert(head.name);
      break;
    case api::KindId::kNode:
      NoteNode(now, head);
      fits_otherwise = difference.created || difference.removed || difference.refitted;
      if (fits_otherwise) EnqueueDaemonSets(now);
      if (fits_otherwise || difference.turned) EnqueueWorkloadsOn(now, head.name);
      break;
    case api::KindId::kLease:
      if (head.namespace_name == kLeaseNamespace && !difference.removed) NoteLease(now, head);
      break;
    default:
      break;
  }
  if (head.kind == api::KindId::kPod || head.kind == api::KindId::kReplicaSet ||
      head.kind == api::KindId::kDeployment || head.kind == api::KindId::kStatefulSet ||
      head.kind == api::KindId::kReplicationController ||
      head.kind == api::KindId::kCustomResource) {
    EnqueueBudgets(now, head, difference);
  }
  EnqueueGroups(now, head, difference);
  EnqueueWorkloads(now, head);
  EnqueueServices(now, head, difference);
  EnqueueVolumes(now, head, difference);
  EnqueueNamespace(now, head, difference);
}

// A namespace waits for its last object and tells whose finalizers hold them, and gives back what
// every namespace has.
void Controllers::EnqueueNamespace(Instant now, const Head& head, const Difference& difference) {
  const bool furniture =
      head.kind == api::KindId::kServiceAccount || head.kind == api::KindId::kConfigMap;
  const bool counts =
      difference.removed || difference.created || difference.before.finalizers != head.finalizers;
  if (head.namespace_name.empty() || (!counts && !furniture)) return;
  const Slot space = objects_.Find(api::KindId::kNamespace, {}, head.namespace_name);
  if (space == kNoSlot) return;
  const Head& space_head = objects_.head(space);
  if (furniture || space_head.deletion.has_value()) {
    Enqueue(now, {Part::kNamespace, space_head.uid});
  }
}

// The collector looks at an object when its references or its deletion changed, at dependents when
// their owner went or is to go, and at owners that wait for their dependents.
void Controllers::EnqueueForCollector(Instant now, const Head& head, const Difference& difference) {
  const auto enqueue_dependents = [&] {
    for (const Slot slot : objects_.DependentsOf(head.uid)) {
      Enqueue(now, {Part::kCollector, objects_.head(slot).uid});
    }
  };
  if (difference.removed) {
    enqueue_dependents();
  } else {
    const Head& before = difference.before;
    const bool changed = difference.created || before.owners != head.owners ||
                         before.deletion != head.deletion || before.finalizers != head.finalizers;
    if (!changed) return;
    const bool matters =
        !head.owners.empty() || head.deletion.has_value() || head.HasFinalizer(kTrackingFinalizer);
    if (matters) Enqueue(now, {Part::kCollector, head.uid});
    if (head.deletion.has_value() && head.HasFinalizer(kForegroundFinalizer)) enqueue_dependents();
  }
  const auto enqueue_waiting = [&](const Head& dependent) {
    for (const api::OwnerReference& owner : dependent.owners) {
      const Slot slot = objects_.Find(owner.uid);
      if (slot != kNoSlot && objects_.head(slot).deletion.has_value()) {
        Enqueue(now, {Part::kCollector, owner.uid});
      }
    }
  };
  enqueue_waiting(head);
  enqueue_waiting(difference.before);
}

// ---- Signs of life ---------------------------------------------------------------------------

void Controllers::NoteNode(Instant now, const Head& head) {
  if (!options_.node_lifecycle) return;
  NodeRow& row = nodes_[head.name];
  const Slot slot = objects_.Find(head.uid);
  if (slot == kNoSlot) {
    TellOfNode(now, head, "RemovingNode",
               fmt::format("Removing Node {} from Controller", head.name));
    // Its pods are collected when it stays away.
    row = NodeRow{.missing_since = now, .pending = std::move(row.pending)};
    return Enqueue(now, {Part::kNode, head.name});
  }
  if (row.missing_since.ns != 0) row = NodeRow{.pending = std::move(row.pending)};
  if (std::exchange(row.registered, head.uid) != head.uid) {
    TellOfNode(now, head, "RegisteredNode",
               fmt::format("Registered Node {} in Controller", head.name));
  }
  const api::Node& node = *objects_.node(slot);
  Instant heartbeat = row.heartbeat;
  for (const api::NodeCondition& condition : node.conditions) {
    if (condition.type == "Ready") heartbeat = condition.heartbeat;
  }
  if (row.last_sign.ns == 0 || heartbeat != row.heartbeat) {
    row.last_sign = now;
    last_any_sign_ = now;
  }
  row.heartbeat = heartbeat;
  std::map<std::string, Instant> seen;
  for (const api::Taint& taint : node.taints) {
    if (taint.effect != "NoExecute") continue;
    const auto known = row.taints_seen.find(taint.key);
    seen.emplace(taint.key, known == row.taints_seen.end() ? now : known->second);
  }
  row.taints_seen = std::move(seen);
  Enqueue(now, {Part::kNode, head.name});
}

void Controllers::TellOfNode(Instant now, const Head& node, std::string_view reason,
                             std::string_view event) {
  if (!options_.events) return;
  TellOf(now, node, "node-controller",
         {.reason = std::string(reason),
          .message = fmt::format("Node {} event: {}", node.name, event)});
}

void Controllers::NoteLease(Instant now, const Head& head) {
  if (!options_.node_lifecycle) return;
  const api::Lease* lease = objects_.lease(objects_.Find(head.uid));
  const auto row = nodes_.find(head.name);
  if (lease == nullptr || row == nodes_.end() || lease->renew_time == row->second.renewed) return;
  row->second.renewed = lease->renew_time;
  row->second.last_sign = now;
  last_any_sign_ = now;
}

// ---- Hash ------------------------------------------------------------------------------------

void Controllers::AddTo(Hasher& hasher, const Key& key, const Row& row) {
  hasher.Add(key.part).Add(key.id).Add(row.in_flight).Add(row.again).Add(row.not_before.ns);
  hasher.Add(row.planned)
      .AddVersion(row.gone_at)
      .AddVersion(row.owner_read)
      .AddVersion(row.read.version);
  hasher.Add(row.read.workload).Add(row.read.nodes.size());
  for (const auto& [node, there] : row.read.nodes) hasher.Add(node).Add(there);
  hasher.Add(row.scales.size());
  for (const auto& [uid, scale] : row.scales)
    hasher.Add(uid).AddVersion(scale.version).Add(scale.replicas.value_or(-1)).Add(scale.ends.ns);
  const FailureRecord seen = row.failures_seen.value_or(FailureRecord{.counted = -1});
  hasher.Add(seen.failures).Add(seen.last.ns).Add(seen.counted);
  const TriggerTimes triggers = row.triggers.value_or(TriggerTimes{});
  hasher.Add(row.triggers.has_value()).Add(triggers.service.ns).Add(triggers.pods.size());
  for (const auto& [pod, time] : triggers.pods) hasher.Add(pod).Add(time.ns);
  hasher.Add(row.failed).Add(row.failures).Add(row.trouble.has_value());
  if (row.trouble.has_value()) hasher.Add(row.trouble->reason).Add(row.trouble->message);
  for (const EmptyKinds* kinds : {&row.empty, &row.occupied}) {
    hasher.Add(kinds->size());
    for (const std::string& kind : *kinds) hasher.Add(kind);
  }
}

void Controllers::AddTo(Hasher& hasher, const NodeRow& row) {
  hasher.Add(row.last_sign.ns).Add(row.renewed.ns).Add(row.heartbeat.ns);
  hasher.Add(row.missing_since.ns).Add(row.missing_read).Add(row.registered);
  hasher.Add(row.taints_seen.size());
  for (const auto& [key, seen] : row.taints_seen) hasher.Add(key).Add(seen.ns);
  hasher.Add(row.pending.size());
  for (const auto& [pod, due] : row.pending) hasher.Add(pod).Add(due.ns);
}

// `due_` is `queue_` by key; `writes_` is only shown.
void Controllers::AddTo(Hasher& hasher) const {
  client_.AddTo(hasher);
  recorder_.AddTo(hasher);
  objects_.AddTo(hasher);
  hasher.Add(prng_.fingerprint()).Add(started_).Add(last_any_sign_.ns);
  hasher.Add(rows_.size());
  for (const auto& [key, row] : rows_) AddTo(hasher, key, row);
  hasher.Add(queue_.size());
  for (const auto& [at, key] : queue_) hasher.Add(at.ns).Add(key.part).Add(key.id);
  hasher.Add(calls_.size());
  for (const auto& [id, call] : calls_) {
    hasher.Add(id).Add(call.key.part).Add(call.key.id).Add(call.name).Add(call.reading);
    hasher.Add(call.withdrawn).Add(call.failure);
    controllers::AddTo(hasher, call.write);
  }
  hasher.Add(followed_.size());
  for (const auto& [defined, followed] : followed_)
    hasher.Add(defined).Add(followed.uid).Add(followed.resource.version);
  hasher.Add(nodes_.size());
  for (const auto& [name, row] : nodes_) {
    hasher.Add(name);
    AddTo(hasher, row);
  }
  hasher.Add(absent_.size());
  for (const std::string& absence : absent_) hasher.Add(absence);
  hasher.Add(tombstones_.size());
  for (const std::string& uid : tombstones_) hasher.Add(uid);
}

}  // namespace berth::controllers
