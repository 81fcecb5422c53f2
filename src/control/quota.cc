#include "control/quota.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/kinds.h"
#include "codec/topology.h"
#include "control/event_key.h"
#include "control/status_text.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"
#include "translate/workload_facts.h"

namespace berth::control {
namespace {

client::WatchOptions KueueWatch(std::string plural) {
  return {.resource = KueueResource(std::move(plural)), .may_be_absent = true};
}

// Whether it could be read. If not it is told, and stays as it was last.
template <typename T>
bool IsRead(const client::ObjectEvent& event, const Result<T>& object, env::Outbox& out) {
  if (object) return true;
  out.emplace_back(env::Log{.level = env::LogLevel::kError,
                            .text = fmt::format("{}: {}", KeyOf(event), object.error().message)});
  return false;
}

}  // namespace

Result<model::WorkloadUpsert> FactsOf(const api::Workload& workload, const Taking& taking,
                                      const api::Placement* placement,
                                      model::Vocabulary& vocabulary,
                                      const translate::PodRules& rules) {
  auto facts = translate::WorkloadFacts(workload, vocabulary, placement, rules);
  if (!facts) return facts;
  if (taking.keeps_turn && facts->status.evicted_for == model::EvictedFor::kPodsNotReady)
    facts->status.evicted_at = facts->status.created;
  const auto& names = taking.scheduler_names;
  for (size_t i = 0; i < facts->slots.size(); ++i) {
    const api::PodSpec& spec = *workload.pod_sets[i].spec;
    const std::string& name = spec.scheduler_name;
    const bool mine = name.empty() || std::ranges::find(names, name) != names.end();
    facts->slots[i].ours = mine && spec.unsupported.empty();
    // With places alone quota would be held for what never runs. Places of pods that are to come
    // don't count for topology spread and pod affinity yet.
    std::vector<std::string> unsupported = spec.unsupported;
    if (std::ranges::any_of(spec.spread_constraints, &api::TopologySpreadConstraint::hard))
      unsupported.emplace_back("spec.topologySpreadConstraints");
    if (!spec.pod_affinity.required.empty()) unsupported.emplace_back("spec.affinity.podAffinity");
    if (!spec.pod_anti_affinity.required.empty())
      unsupported.emplace_back("spec.affinity.podAntiAffinity");
    if (taking.joint && mine && !unsupported.empty()) {
      facts->slots[i].unsupported =
          vocabulary.names.Intern(fmt::format("{}", fmt::join(unsupported, ", ")));
    }
    if (taking.joint && mine) {
      translate::PutGang(workload, workload.pod_sets[i], vocabulary, facts->slots[i]);
    }
  }
  return facts;
}

api::LabelQuery NamespacesOf(const api::ClusterQueue& queue) {
  if (!queue.namespace_selector) return {.nothing = true};
  return api::QueryOf(*queue.namespace_selector).value_or(api::LabelQuery{.nothing = true});
}

namespace {

// What all workloads hold is within what an amount can tell (base/limits.h).
void AddHeld(const model::Reservation& reserved, const model::Vocabulary& vocabulary,
             HeldAmounts& held) {
  for (const model::QuotaCharge& charge : reserved.charges) {
    for (const model::ResourceAmount& a : vocabulary.bundles.View(charge.amounts))
      held[{charge.flavor, a.resource}] += a.amount * charge.count;
  }
}

// What a status has room for: flavors of a list, and resources of each.
constexpr size_t kUsagesMax = 64;

// Resources by name, as upstream has them.
api::FlavorUsages UsagesOf(const api::ClusterQueue& queue, const HeldAmounts& held,
                           const model::Vocabulary& vocabulary, bool borrows) {
  api::FlavorUsages usages;
  for (const api::ResourceGroup& group : queue.resource_groups) {
    for (const api::FlavorQuotas& quotas : group.flavors) {
      api::FlavorUsage& usage = usages.emplace_back();
      usage.flavor = quotas.flavor;
      const model::NameId flavor = vocabulary.names.Find(quotas.flavor);
      for (const api::ResourceQuota& quota : quotas.resources) {
        const auto resource = vocabulary.resources.Find(quota.resource);
        const auto at = held.find({flavor, resource});
        const int64_t total = at == held.end() ? 0 : at->second;
        const int64_t borrowed = borrows ? std::max(int64_t{0}, total - quota.nominal) : 0;
        usage.resources.push_back(
            {.resource = quota.resource, .total = total, .borrowed = borrowed});
      }
      std::ranges::sort(usage.resources, {}, &api::ResourceUsage::resource);
      usage.resources.resize(std::min(usage.resources.size(), kUsagesMax));
    }
  }
  usages.resize(std::min(usages.size(), kUsagesMax));
  return usages;
}

}  // namespace

QueueUsage UsageOf(const api::ClusterQueue& queue, const HeldQuota& held,
                   const model::Vocabulary& vocabulary) {
  const bool borrows = !queue.cohort.empty();
  return {.reserving = UsagesOf(queue, held.reserving, vocabulary, borrows),
          .admitted = UsagesOf(queue, held.admitted, vocabulary, borrows)};
}

QueueUsage UsageOfLocal(const api::ClusterQueue& queue, const HeldQuota& held,
                        const model::Vocabulary& vocabulary) {
  return {.reserving = UsagesOf(queue, held.reserving, vocabulary, /*borrows=*/false),
          .admitted = UsagesOf(queue, held.admitted, vocabulary, /*borrows=*/false)};
}

CountsOfQueues CountWorkloads(const model::State& state) {
  CountsOfQueues out;
  for (uint32_t i = 0; i < state.workloads().size(); ++i) {
    if (!state.workloads().used(model::WorkloadId{i})) continue;
    const model::Workload& row = state.workloads().at(model::WorkloadId{i});
    if (row.status.finished || !(row.status.reserved || row.status.active)) continue;
    model::NameId queue = row.reserved.cluster_queue;
    const model::LocalQueueId local = state.local_queues().FindKey(row.local_queue);
    if (!row.status.reserved && local.valid()) queue = state.local_queues().at(local).cluster_queue;
    for (WorkloadCounts* counts : {&out.of_queue[queue], &out.of_local[row.local_queue]}) {
      counts->pending += row.status.reserved ? 0 : 1;
      counts->reserving += row.status.reserved ? 1 : 0;
      counts->admitted += row.status.reserved && row.status.admitted ? 1 : 0;
    }
    if (!row.status.reserved) continue;
    for (HeldQuota* held : {&out.held_of_queue[queue], &out.held_of_local[row.local_queue]}) {
      AddHeld(row.reserved, state.vocabulary(), held->reserving);
      if (row.status.admitted) AddHeld(row.reserved, state.vocabulary(), held->admitted);
    }
  }
  return out;
}

Quota::Quota(const Options& options, client::Client& client)
    : queue_status_(options.queue_status),
      keeps_in_use_(options.in_use),
      taking_(options.taking),
      cluster_queues_watch_(client.Watch(KueueWatch("clusterqueues"))),
      cohorts_watch_(client.Watch(KueueWatch("cohorts"))),
      flavors_watch_(client.Watch(KueueWatch("resourceflavors"))),
      topologies_watch_(client.Watch(KueueWatch("topologies"))),
      local_queues_watch_(client.Watch(KueueWatch("localqueues"))),
      namespaces_watch_(client.Watch({.resource = {.plural = "namespaces"}})),
      checks_watch_(client.Watch(KueueWatch("admissionchecks"))),
      workloads_watch_(client.Watch(KueueWatch("workloads"))),
      limit_ranges_watch_(client.Watch({.resource = {.plural = "limitranges"}})),
      runtime_classes_watch_(
          client.Watch({.resource = {.group = "node.k8s.io", .plural = "runtimeclasses"}})),
      workloads_(options.workloads) {}

bool Quota::Watches(client::WatchId watch) const {
  return watch == cluster_queues_watch_ || watch == cohorts_watch_ || watch == flavors_watch_ ||
         watch == topologies_watch_ || watch == local_queues_watch_ || watch == namespaces_watch_ ||
         watch == checks_watch_ || watch == workloads_watch_ || watch == limit_ranges_watch_ ||
         watch == runtime_classes_watch_;
}

std::vector<model::Delta> Quota::On(const client::ObjectEvent& event, const Reading& reading) {
  Facts facts;
  model::Vocabulary& vocabulary = reading.vocabulary;
  env::Outbox& out = reading.out;
  recount_ = true;
  if (event.watch == limit_ranges_watch_) {
    OnLimitRange(event, reading, facts);
  } else if (event.watch == runtime_classes_watch_) {
    OnRuntimeClass(event, reading, facts);
  } else if (event.change == client::Change::kDeleted) {
    OnGone(event, vocabulary, facts);
  } else if (event.watch == cluster_queues_watch_) {
    OnClusterQueue(event, vocabulary, facts, out);
  } else if (event.watch == local_queues_watch_) {
    OnLocalQueue(event, facts, out);
  } else if (event.watch == namespaces_watch_) {
    OnNamespace(event, facts, out);
  } else if (event.watch == workloads_watch_) {
    OnWorkload(event, reading, facts);
  } else {
    OnReference(event, vocabulary, facts, out);
  }
  return facts;
}

// What ClusterQueues refer to.
void Quota::OnReference(const client::ObjectEvent& event, model::Vocabulary& vocabulary,
                        Facts& facts, env::Outbox& out) {
  const std::string_view json = event.object.view();
  if (event.watch == cohorts_watch_) {
    const auto cohort = decoder_.Cohort(json);
    if (!IsRead(event, cohort, out)) return;
    queues_.Observe(*cohort);
    facts.emplace_back(translate::QueueFacts(*cohort, vocabulary));
  } else if (event.watch == flavors_watch_) {
    const auto flavor = decoder_.ResourceFlavor(json);
    if (!IsRead(event, flavor, out)) return;
    queues_.Observe(*flavor);
    in_use_.Observe(*flavor);
    facts.emplace_back(translate::FlavorFacts(*flavor, vocabulary));
  } else if (event.watch == topologies_watch_) {
    const auto topology = decoder_.Topology(json);
    if (!IsRead(event, topology, out)) return;
    queues_.Observe(*topology);
    in_use_.Observe(*topology);
    facts.emplace_back(translate::TopologyFacts(*topology, vocabulary));
  } else {
    const auto check = decoder_.AdmissionCheck(json);
    if (!IsRead(event, check, out)) return;
    queues_.Observe(*check);
    in_use_.Observe(*check);
    for (const api::ClusterQueue& queue : queues_.QueuesAsking(event.name))
      facts.emplace_back(FactsOf(queue, vocabulary));
  }
}

void Quota::OnGone(const client::ObjectEvent& event, model::Vocabulary& vocabulary, Facts& facts) {
  using api::KindId;
  using model::QueueKind;
  const auto forget = [&](KindId kind) {
    queues_.Forget(kind, event.namespace_name, event.name);
    in_use_.Forget(kind, event.name);
  };
  if (event.watch == cluster_queues_watch_) {
    forget(KindId::kClusterQueue);
    selectors_.erase(event.name);
    workloads_.DropClusterQueue(event.name);
    facts.emplace_back(
        model::QueueRemove{.kind = QueueKind::kClusterQueue, .name = event.name, .uid = event.uid});
    LocalQueuesOf(event.name, facts);
  } else if (event.watch == cohorts_watch_) {
    forget(KindId::kCohort);
    facts.emplace_back(
        model::QueueRemove{.kind = QueueKind::kCohort, .name = event.name, .uid = event.uid});
  } else if (event.watch == flavors_watch_) {
    forget(KindId::kResourceFlavor);
    facts.emplace_back(model::FlavorRemove{.name = event.name, .uid = event.uid});
  } else if (event.watch == topologies_watch_) {
    forget(KindId::kTopology);
    facts.emplace_back(model::TopologyRemove{.name = event.name, .uid = event.uid});
  } else if (event.watch == local_queues_watch_) {
    forget(KindId::kLocalQueue);
    local_queues_.erase(KeyOf(event));
    workloads_.DropLocalQueue(KeyOf(event));
    facts.emplace_back(model::LocalQueueRemove{.uid = event.uid});
  } else if (event.watch == checks_watch_) {
    forget(KindId::kAdmissionCheck);
    for (const api::ClusterQueue& queue : queues_.QueuesAsking(event.name))
      facts.emplace_back(FactsOf(queue, vocabulary));
  } else if (event.watch == namespaces_watch_) {
    namespaces_.erase(event.name);
  } else {
    workloads_.Forget(event.uid);
    resolved_.erase(event.uid);
    facts.emplace_back(model::WorkloadRemove{.uid = event.uid});
  }
}

void Quota::OnClusterQueue(const client::ObjectEvent& event, model::Vocabulary& vocabulary,
                           Facts& facts, env::Outbox& out) {
  const auto queue = decoder_.ClusterQueue(event.object.view());
  if (!IsRead(event, queue, out)) return;
  queues_.Observe(*queue);
  in_use_.Observe(*queue);
  facts.emplace_back(FactsOf(*queue, vocabulary));
  workloads_.SetClusterQueue(queue->meta.name, RulesOf(*queue));
  api::LabelQuery& selector = selectors_[queue->meta.name];
  const api::LabelQuery before = std::exchange(selector, NamespacesOf(*queue));
  if (selector != before) LocalQueuesOf(queue->meta.name, facts);
}

void Quota::OnLocalQueue(const client::ObjectEvent& event, Facts& facts, env::Outbox& out) {
  const auto queue = decoder_.LocalQueue(event.object.view());
  if (!IsRead(event, queue, out)) return;
  queues_.Observe(*queue);
  LocalQueue& known = local_queues_[KeyOf(event)];
  known = {.uid = queue->meta.uid,
           .namespace_name = queue->meta.namespace_name,
           .cluster_queue = queue->cluster_queue,
           .stopped = queue->stop != api::StopPolicy::kNone};
  workloads_.SetLocalQueue(KeyOf(event), queue->cluster_queue,
                           queue->stop == api::StopPolicy::kHoldAndDrain);
  facts.emplace_back(FactsOf(KeyOf(event), known));
}

void Quota::OnNamespace(const client::ObjectEvent& event, Facts& facts, env::Outbox& out) {
  const auto head = decoder_.Head(event.object.view());
  if (!IsRead(event, head, out)) return;
  const auto [at, fresh] = namespaces_.try_emplace(event.name);
  if (!fresh && at->second == head->meta.labels) return;
  at->second = head->meta.labels;
  for (const auto& [key, queue] : local_queues_) {
    if (queue.namespace_name == event.name) facts.emplace_back(FactsOf(key, queue));
  }
}

namespace {

bool HasClaims(const api::WorkloadPodSet& pods) {
  return !pods.spec->claims.empty() || !pods.spec->ephemeral_volumes.empty();
}

}  // namespace

Quota::Resolved Quota::ResolveClaims(const api::Workload& workload, const Volumes& volumes) {
  const bool placed = translate::WorkloadStatusOf(workload).reserved;
  Resolved resolved{.pod_sets = workload.pod_sets, .waits = {}};
  for (api::WorkloadPodSet& pods : resolved.pod_sets) {
    resolved.waits.push_back(
        HasClaims(pods) ? volumes.Resolve(workload.meta.namespace_name, placed, pods.spec.Edit())
                        : "");
  }
  return resolved;
}

namespace {

bool Waits(const api::Workload& workload) {
  const model::WorkloadStatus status = translate::WorkloadStatusOf(workload);
  return !status.reserved && !status.finished;
}

}  // namespace

// With joint placement pods go where their volumes are.
Result<model::WorkloadUpsert> Quota::Read(const api::Workload& workload, const Reading& reading) {
  const std::optional<api::Placement> placement = PlacementOf(workload, reading.out);
  const auto facts_of = [&](const api::Workload& as) {
    return control::FactsOf(as, taking_, placement ? &*placement : nullptr, reading.vocabulary,
                            rules_);
  };
  if (reading.volumes == nullptr || !std::ranges::any_of(workload.pod_sets, HasClaims)) {
    resolved_.erase(workload.meta.uid);
    return facts_of(workload);
  }
  Resolved resolved = ResolveClaims(workload, *reading.volumes);
  api::Workload as = workload;
  as.pod_sets = resolved.pod_sets;
  auto facts = facts_of(as);
  for (size_t i = 0; facts && i < facts->slots.size(); ++i) {
    if (!resolved.waits[i].empty() && facts->slots[i].unsupported.valid())
      facts->slots[i].unsupported = reading.vocabulary.names.Intern(resolved.waits[i]);
  }
  resolved_[workload.meta.uid] = std::move(resolved);
  return facts;
}

std::vector<model::Delta> Quota::OnVolumes(const client::ObjectEvent& event,
                                           const Reading& reading) {
  std::vector<const api::Workload*> changed;
  for (const auto& [uid, before] : resolved_) {
    const api::Workload* workload = workloads_.Find(uid);
    if (workload == nullptr) continue;
    const bool concerns =
        std::ranges::any_of(workload->pod_sets, [&](const api::WorkloadPodSet& pods) {
          return reading.volumes->Concerns(event, workload->meta.namespace_name, pods.spec->claims);
        });
    if (concerns && ResolveClaims(*workload, *reading.volumes) != before)
      changed.push_back(workload);
  }
  Facts facts;
  for (const api::Workload* workload : changed) {
    auto read = Read(*workload, reading);
    if (read) facts.emplace_back(*std::move(read));
  }
  return facts;
}

void Quota::OnWorkload(const client::ObjectEvent& event, const Reading& reading, Facts& facts) {
  auto workload = decoder_.Workload(event.object.view());
  if (!IsRead(event, workload, reading.out)) return;
  auto read = Read(*workload, reading);
  const bool lacks = read && (cycle::AwaitsAdmission(read->status, read->slots, read->reserved) ||
                              cycle::LacksPlaces(read->slots, read->reserved, taking_.joint));
  const Workloads::News news = workloads_.Observe(*std::move(workload), lacks);
  // What was decided holds its places already, and those of before.
  if (news == Workloads::News::kPlaced) return;
  const bool withdraws = read && news == Workloads::News::kWithdraws;
  PutFacts(event.uid, std::move(read), facts);
  if (withdraws) {
    facts.emplace_back(model::ReservationOutcome{
        .uid = event.uid, .outcome = model::WriteOutcome::kNotSent, .at = {}});
  }
}

void Quota::PutFacts(std::string_view uid, Result<model::WorkloadUpsert> read, Facts& facts) {
  if (read) {
    facts.emplace_back(*std::move(read));
    return;
  }
  workloads_.Want(uid, {.reason = "Misconfigured", .message = read.error().message});
  facts.emplace_back(model::WorkloadRemove{.uid = std::string(uid)});
}

void Quota::OnLimitRange(const client::ObjectEvent& event, const Reading& reading, Facts& facts) {
  if (event.change == client::Change::kDeleted) {
    if (!rules_.defaults.RemoveRange(event.namespace_name, event.name)) return;
  } else {
    const auto range = decoder_.LimitRange(event.object.view());
    if (!IsRead(event, range, reading.out) || !rules_.defaults.Put(*range)) return;
  }
  Reread(reading, facts, [&](const api::Workload& workload) {
    return workload.meta.namespace_name == event.namespace_name;
  });
}

void Quota::OnRuntimeClass(const client::ObjectEvent& event, const Reading& reading, Facts& facts) {
  if (event.change == client::Change::kDeleted) {
    if (!rules_.defaults.RemoveClass(event.name)) return;
  } else {
    const auto of = decoder_.RuntimeClass(event.object.view());
    if (!IsRead(event, of, reading.out) || !rules_.defaults.Put(*of)) return;
  }
  Reread(reading, facts, [&](const api::Workload& workload) {
    return std::ranges::any_of(workload.pod_sets, [&](const api::WorkloadPodSet& pods) {
      return pods.spec->runtime_class_name == event.name;
    });
  });
}

// Pods of those that hold quota are there, or come as they were when they got it; what they are
// charged stands (K039).
template <typename Concerns>
void Quota::Reread(const Reading& reading, Facts& facts, Concerns concerns) {
  std::vector<const api::Workload*> those;
  workloads_.ForEach([&](const api::Workload& workload) {
    if (Waits(workload) && concerns(workload)) those.push_back(&workload);
  });
  for (const api::Workload* workload : those)
    PutFacts(workload->meta.uid, Read(*workload, reading), facts);
}

std::vector<model::Delta> Quota::OnClass(std::string_view name,
                                         const std::optional<api::PriorityClass>& now,
                                         const Reading& reading) {
  Facts facts;
  const translate::PriorityClasses before = rules_.classes;
  if (!(now ? rules_.classes.Put(*now) : rules_.classes.Remove(name))) return facts;
  workloads_.ForEach([&](const api::Workload& workload) {
    const bool same = std::ranges::all_of(workload.pod_sets, [&](const api::WorkloadPodSet& pods) {
      return before.Of(*pods.spec) == rules_.classes.Of(*pods.spec);
    });
    if (same) return;
    auto read = Read(workload, reading);
    if (read) facts.emplace_back(*std::move(read));
  });
  return facts;
}

// What can't be read is as if it were not there.
std::optional<api::Placement> Quota::PlacementOf(const api::Workload& workload, env::Outbox& out) {
  const auto text = api::Find(workload.meta.annotations, api::kPlacementAnnotation);
  if (!text) return std::nullopt;
  auto placement = decoder_.Placement(*text);
  if (placement) return *std::move(placement);
  out.emplace_back(env::Log{
      .level = env::LogLevel::kError,
      .text =
          fmt::format("workload {}/{}: annotation {}: {}", workload.meta.namespace_name,
                      workload.meta.name, api::kPlacementAnnotation, placement.error().message)});
  return std::nullopt;
}

model::QueueUpsert Quota::FactsOf(const api::ClusterQueue& queue,
                                  model::Vocabulary& vocabulary) const {
  model::QueueUpsert facts = translate::QueueFacts(queue, vocabulary);
  facts.lacks_checks = queues_.LacksChecks(queue);
  for (model::QueueCheck& check : facts.checks)
    check.brings_nodes = queues_.CheckBringsNodes(vocabulary.names.View(check.name));
  return facts;
}

model::LocalQueueUpsert Quota::FactsOf(const std::string& key, const LocalQueue& queue) const {
  model::LocalQueueUpsert facts{.uid = queue.uid, .key = key, .cluster_queue = queue.cluster_queue};
  const auto selector = selectors_.find(queue.cluster_queue);
  const auto labels = namespaces_.find(queue.namespace_name);
  const bool let_in = selector == selectors_.end() ||
                      (labels != namespaces_.end() && selector->second.Matches(labels->second));
  if (!let_in) facts.bar = model::LocalQueueBar::kNamespace;
  if (queue.stopped) facts.bar = model::LocalQueueBar::kStopped;
  return facts;
}

void Quota::LocalQueuesOf(std::string_view cluster_queue, Facts& facts) const {
  for (const auto& [key, queue] : local_queues_) {
    if (queue.cluster_queue == cluster_queue) facts.emplace_back(FactsOf(key, queue));
  }
}

// ---- What is written -------------------------------------------------------------------------

void Quota::Pump(Instant now, const model::State& state, client::Client& client, env::Outbox& out) {
  if (!listed_ && client.synced()) {
    listed_ = true;
    queues_.Listed();
    in_use_.Listed();
  }
  if (HasToCount() && next_count_ <= now) {
    recount_ = false;
    next_count_ = now + Duration::Seconds(1);
    if (queue_status_) Count(state);
    if (in_use_.KeepsQueues()) TellWhoHolds(state);
  }
  if (keeps_in_use_ && listed_ && in_use_.AsksWhoHolds()) TellWhoHolds(state);
  EvictThoseHeldBack(state);
  const auto is_evicted = [&](std::string_view uid) {
    const model::WorkloadId id = state.FindWorkload(uid);
    if (!id.valid()) return false;
    const model::Workload& row = state.workloads().at(id);
    const bool after = state.GoesAfterOthers(row.uid);
    if (after) held_back_.emplace(uid);
    return !after && (row.claimant.valid() || state.faults().evict_for_nobody);
  };
  workloads_.Pump(now, is_evicted, client, out);
  if (queue_status_) queues_.Pump(now, client, out);
  if (keeps_in_use_) in_use_.Pump(now, client, out);
}

bool Quota::HasToCount() const {
  const bool asked = queue_status_ || (keeps_in_use_ && in_use_.KeepsQueues());
  return listed_ && recount_ && asked;
}

// Of all queues anew: counting on would be another truth about workloads.
void Quota::Count(const model::State& state) {
  CountsOfQueues counts = CountWorkloads(state);
  const model::Vocabulary& vocabulary = state.vocabulary();
  for (const auto& [name, selector] : selectors_) {
    const model::NameId id = vocabulary.names.Find(name);
    queues_.WantClusterQueue(
        name, counts.of_queue[id],
        UsageOf(*queues_.FindClusterQueue(name), counts.held_of_queue[id], vocabulary));
  }
  for (const auto& [key, queue] : local_queues_) {
    const model::KeyId id = state.FindKey(key);
    const api::ClusterQueue* of = queues_.FindClusterQueue(queue.cluster_queue);
    queues_.WantLocalQueue(
        queue.namespace_name, key.substr(key.find('/') + 1), counts.of_local[id],
        of == nullptr ? QueueUsage{} : UsageOfLocal(*of, counts.held_of_local[id], vocabulary));
  }
}

// As observed, for those are more than what there is room for; and what is being written.
void Quota::TellWhoHolds(const model::State& state) {
  std::set<std::string, std::less<>> held = workloads_.QueuesHeld();
  for (uint32_t i = 0; i < state.workloads().size(); ++i) {
    if (!state.workloads().used(model::WorkloadId{i})) continue;
    const model::NameId queue = ChargedTo(state.workloads().at(model::WorkloadId{i})).cluster_queue;
    if (queue.valid()) held.emplace(state.NameOf(queue));
  }
  in_use_.SetHeld(held);
}

std::optional<Workloads::Result> Quota::OnCallDone(Instant now, const client::CallDone& done) {
  if (queues_.OnCallDone(now, done) || in_use_.OnCallDone(now, done)) return Workloads::Result{};
  auto result = workloads_.OnCallDone(now, done);
  // What comes to nothing is quota that nobody holds, and no watch tells of it.
  recount_ = recount_ || (result && result->outcome);
  return result;
}

Instant Quota::wake_at() const {
  if (ask_held_back_ && !held_back_.empty()) return Instant{};
  Instant at = workloads_.wake_at();
  if (queue_status_) at = std::min(at, queues_.wake_at());
  if (keeps_in_use_) at = std::min(at, in_use_.wake_at());
  return HasToCount() ? std::min(at, next_count_) : at;
}

void Quota::CarryOut(const model::Plan& plan, const cycle::Engine& engine) {
  const model::State& state = engine.state();
  for (const model::ReserveDecision& decision : plan.reservations) {
    const model::Workload& row = state.workloads().at(decision.workload);
    const auto placement = translate::PlacementOf(row, state.vocabulary());
    workloads_.Reserve(state.UidOf(decision.uid), translate::AdmissionOf(row, state.vocabulary()),
                       placement ? codec::PlacementText(*placement) : "",
                       cycle::IsAdmittedLater(state, decision.workload, taking_.joint));
  }
  for (const model::PassDecision& decision : plan.passes) CarryOut(decision, state);
  for (const model::PassHeldUp& held_up : plan.held_up) {
    const model::Workload& row = state.workloads().at(held_up.workload);
    std::string why;
    if (held_up.refusal) why = translate::PlacesRefusalText(*held_up.refusal, row, state);
    if (held_up.awaits_mates) why = translate::AwaitedText(held_up.awaited, state);
    workloads_.HoldUp(state.UidOf(held_up.uid), std::move(why), held_up.awaits_mates);
  }
  for (const model::EvictDecision& decision : plan.evictions) Evict(decision.workload, state);
  for (const model::WorkloadId id : plan.workloads) {
    const model::Workload& row = state.workloads().at(id);
    const auto refusal = engine.admissions().WhyWaits(id);
    if (!refusal) continue;
    workloads_.Want(state.UidOf(row.uid),
                    translate::WithAdvice(translate::WorkloadRefusalText(*refusal, row, state),
                                          *refusal, state.vocabulary()));
  }
}

void Quota::Evict(model::WorkloadId victim, const model::State& state) {
  const model::Workload& row = state.workloads().at(victim);
  const std::string_view uid = state.UidOf(row.uid);
  if (state.GoesAfterOthers(row.uid)) {
    held_back_.emplace(uid);
    return;
  }
  const std::string_view claimant = state.UidOf(state.workloads().at(row.claimant).uid);
  workloads_.Evict(uid, EvictionOf(row, workloads_.JobOf(claimant), state));
}

void Quota::EvictThoseHeldBack(const model::State& state) {
  ask_held_back_ = false;
  for (const std::string& uid : std::exchange(held_back_, {})) {
    const model::WorkloadId id = state.FindWorkload(uid);
    if (id.valid() && IsToBeEvicted(state.workloads().at(id))) Evict(id, state);
  }
}

void Quota::CarryOut(const model::PassDecision& decision, const model::State& state) {
  const model::Workload& row = state.workloads().at(decision.workload);
  const std::string_view uid = state.UidOf(decision.uid);
  const api::Workload* seen = workloads_.Find(uid);
  if (seen == nullptr) return;
  Workloads::Pass pass{.pass = decision.pass};
  for (const model::NameId node : decision.failed) pass.failed.emplace_back(state.NameOf(node));
  if (decision.evicts()) {
    GivenUp given_up = GivenUpOf(decision, state);
    pass.why = std::move(given_up.message);
    pass.reason = std::move(given_up.reason);
    workloads_.Put(uid, std::move(pass), "");
    return;
  }
  if (seen->admission) pass.admission = *seen->admission;
  translate::PutTopologies(row.decided, row, state.vocabulary(), pass.admission);
  // What awaited places and gets none needs none.
  if (decision.pass == model::Pass::kPlace) {
    for (api::PodSetAssignment& pods : pass.admission.pod_sets) pods.topology_delayed = false;
  }
  const auto placement = translate::PlacementOf(row, state.vocabulary());
  workloads_.Put(uid, std::move(pass), placement ? codec::PlacementText(*placement) : "");
}

void Quota::AddTo(Hasher& hasher) const {
  workloads_.AddTo(hasher);
  queues_.AddTo(hasher);
  in_use_.AddTo(hasher);
  rules_.classes.AddTo(hasher);
  rules_.defaults.AddTo(hasher);
  hasher.Add(held_back_.size()).Add(ask_held_back_ && !held_back_.empty());
  for (const std::string& uid : held_back_) hasher.Add(uid);
  hasher.Add(listed_).Add(recount_).Add(next_count_.ns);
  hasher.Add(resolved_.size());
  for (const auto& [uid, resolved] : resolved_) {
    hasher.Add(uid);
    for (const std::string& waits : resolved.waits) hasher.Add(waits);
    for (const api::WorkloadPodSet& pods : resolved.pod_sets) {
      const auto& terms = pods.spec->required_node_affinity;
      hasher.Add(terms ? terms->size() : 0);
    }
  }
  hasher.Add(local_queues_.size());
  for (const auto& [key, queue] : local_queues_) {
    hasher.Add(key).Add(queue.uid).Add(queue.cluster_queue).Add(queue.stopped);
  }
  hasher.Add(namespaces_.size());
  for (const auto& [name, labels] : namespaces_) {
    hasher.Add(name).Add(labels.size());
    for (const auto& [key, value] : labels) hasher.Add(key).Add(value);
  }
  hasher.Add(selectors_.size());
  for (const auto& [name, selector] : selectors_) hasher.Add(name).Add(api::ToString(selector));
}

}  // namespace berth::control
