#include "explore/reservations.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "api/requests.h"
#include "api/types.h"
#include "codec/scan.h"
#include "sim/truth.h"
#include "translate/quota_facts.h"

namespace berth::explore {
namespace {

constexpr std::string_view kLocalQueuesPrefix = "localqueues.kueue.x-k8s.io/";
constexpr std::string_view kEvictionStart = "Preempted to accommodate a workload (UID: ";

bool IsHeld(const model::WorkloadStatus& status) { return status.reserved && !status.finished; }

// Whom the workload was evicted for.
std::string ClaimantIn(const api::Workload& workload) {
  const api::Condition* evicted = api::Find(workload.conditions, "Evicted");
  if (evicted == nullptr || !evicted->message.starts_with(kEvictionStart)) return {};
  const std::string_view rest = std::string_view(evicted->message).substr(kEvictionStart.size());
  return std::string(rest.substr(0, rest.find(',')));
}

// Whether the scheduler knows that it has to go, which its object need not say yet.
bool Goes(const model::State& state, const std::string& uid) {
  const model::WorkloadId row = state.FindWorkload(uid);
  return row.valid() && state.workloads().at(row).claimant.valid();
}

}  // namespace

// ---- What the scheduler sends ----------------------------------------------------------------

std::vector<std::string> Reservations::OnSent(const env::HttpRequest& request,
                                              const model::State& state) const {
  std::vector<std::string> findings;
  if (request.method == env::Method::kGet || !request.target.contains("/workloads/"))
    return findings;
  const std::string_view metadata = codec::Member(request.body.view(), "metadata");
  const std::string uid = codec::StringMember(metadata, "uid");
  if (uid.empty() || codec::StringMember(metadata, "resourceVersion").empty()) {
    findings.push_back(
        fmt::format("{} is written without the version that it was decided on", request.target));
  }
  // Who was evicted before says so until it gets quota again.
  const bool evicts = request.body.view().contains(kEvictionStart) &&
                      std::ranges::none_of(workloads_, [&](const auto& entry) {
                        return entry.second.uid == uid &&
                               entry.second.status.evicted_for != model::EvictedFor::kNothing;
                      });
  if (evicts && !Goes(state, uid))
    findings.push_back(fmt::format("{} is evicted, and nobody waits for it", request.target));
  return findings;
}

// ---- What becomes durable --------------------------------------------------------------------

std::vector<std::string> Reservations::OnCommit(const env::JournalRecord& record, bool by_scheduler,
                                                const model::State& state) {
  std::vector<std::string> findings;
  if (record.key.starts_with(kWorkloadsPrefix)) {
    OnWorkload(record, by_scheduler, state, findings);
  } else {
    OnQueue(record);
  }
  return findings;
}

void Reservations::OnQueue(const env::JournalRecord& record) {
  const std::string name = record.key.substr(record.key.rfind('/') + 1);
  const bool gone = record.value.empty();
  if (record.key.starts_with(sim::kCohortsPrefix)) {
    parents_.erase(name);
    if (!gone) parents_[name] = decoder_.Cohort(record.value.view()).value().parent;
  } else if (record.key.starts_with(kLocalQueuesPrefix)) {
    local_queues_.erase(name);
    if (gone) return;
    const api::LocalQueue queue = decoder_.LocalQueue(record.value.view()).value();
    local_queues_[name] = queue.stop != api::StopPolicy::kNone;
  } else if (record.key.starts_with(sim::kQueuesPrefix)) {
    const Queue before = queues_[name];
    queues_.erase(name);
    if (!gone) {
      const api::ClusterQueue queue = decoder_.ClusterQueue(record.value.view()).value();
      const api::FlavorQuotas& quotas = queue.resource_groups.front().flavors.front();
      const int64_t cpu = quotas.resources.front().nominal;
      queues_[name] = {.cohort = queue.cohort,
                       .cpu = cpu,
                       .cpu_most = std::max(cpu, before.cpu_most),
                       .strict = queue.strict_fifo,
                       .stopped = queue.stop != api::StopPolicy::kNone};
      if (queues_[name] == before) return;
    }
  } else {
    return;
  }
  // What was promised may be decided anew.
  promised_.clear();
}

void Reservations::OnWorkload(const env::JournalRecord& record, bool by_scheduler,
                              const model::State& state, std::vector<std::string>& findings) {
  const std::string key = record.key.substr(kWorkloadsPrefix.size());
  const auto found = workloads_.find(key);
  const Workload before = found == workloads_.end() ? Workload{} : found->second;
  if (record.value.empty()) {
    workloads_.erase(key);
    promised_.erase(before.uid);
    return;
  }
  const api::Workload object = decoder_.Workload(record.value.view()).value();
  Workload after{.uid = object.meta.uid,
                 .queue = object.queue,
                 .priority = object.priority,
                 .cpu = 0,
                 .status = translate::WorkloadStatusOf(object)};
  for (const api::WorkloadPodSet& pods : object.pod_sets) {
    api::Pod pod;
    pod.spec = pods.spec;
    after.cpu += pods.count * api::Find(api::PendingRequests(pod), "cpu").value_or(0);
  }
  workloads_[key] = after;
  if (before != after) promised_.erase(before.uid);
  if (!by_scheduler || before.uid != after.uid) return;
  Judge(key, before, after, state, findings);
  const std::string claimant = ClaimantIn(object);
  const bool evicts = before.status.evicted_for == model::EvictedFor::kNothing &&
                      after.status.evicted_for != model::EvictedFor::kNothing;
  if (!evicts || claimant.empty()) return;
  ++preemptions_;
  for (const auto& [other, workload] : workloads_) {
    if (workload.uid == claimant && IsQueued(workload.status, Instant{}))
      promised_[claimant] = other;
  }
}

void Reservations::Judge(const std::string& key, const Workload& before, const Workload& after,
                         const model::State& state, std::vector<std::string>& findings) const {
  if (before.status.finished)
    findings.push_back(fmt::format("workload {} is written, and is finished", key));
  if (before.status.reserved && !after.status.reserved)
    findings.push_back(fmt::format("workload {} loses its quota to a write of the scheduler", key));
  const bool was_evicted = StageOf(before.status) == model::WorkloadStage::kEvicted;
  if (was_evicted && after.status.evicted_for == model::EvictedFor::kNothing)
    findings.push_back(fmt::format("workload {} is evicted no more, and was not let go", key));
  if (before.status.reserved || !after.status.reserved) return;
  if (StageOf(before.status) != model::WorkloadStage::kPending || !before.status.active)
    findings.push_back(fmt::format("workload {} gets quota, and does not wait for it", key));
  JudgeReservation(key, after, state, findings);
}

void Reservations::JudgeReservation(const std::string& key, const Workload& workload,
                                    const model::State& state,
                                    std::vector<std::string>& findings) const {
  const std::string root = RootOf(workload.queue);
  const int64_t held = ReservedIn(root);
  const int64_t most = QuotaOf(root, &Queue::cpu_most);
  if (held > most) {
    findings.push_back(
        fmt::format("with workload {} {}m of {}m of quota are reserved", key, held, most));
  }
  // Who was not told yet that it has to go takes nothing from those for whom it goes.
  if (Goes(state, workload.uid)) return;
  int64_t staying = 0;
  int64_t in_queue = 0;
  for (const auto& [other, each] : workloads_) {
    if (!IsHeld(each.status) || RootOf(each.queue) != root) continue;
    if (each.queue == workload.queue) in_queue += each.cpu;
    const bool leaves =
        each.status.evicted_for != model::EvictedFor::kNothing || Goes(state, each.uid);
    if (!leaves) staying += each.cpu;
  }
  const auto queue = queues_.find(workload.queue);
  const bool borrows = queue == queues_.end() || in_queue > queue->second.cpu;
  for (const auto& [uid, waits] : promised_) {
    const Workload& other = workloads_.at(waits);
    if (RootOf(other.queue) != root || other.uid == workload.uid) continue;
    // Who is more important, or claims what is its queue's own, may take it.
    const bool may =
        workload.priority > other.priority || (!borrows && workload.queue != other.queue);
    if (may || staying + other.cpu <= QuotaOf(root, &Queue::cpu)) continue;
    findings.push_back(
        fmt::format("workload {} gets what others were evicted for, for workload {}", key, waits));
  }
}

// ---- At rest ---------------------------------------------------------------------------------

std::vector<std::string> Reservations::AtRest(const model::State& state, bool joint) const {
  std::vector<std::string> findings;
  for (const auto& [key, workload] : workloads_) {
    const model::WorkloadId id = state.FindWorkload(workload.uid);
    if (!id.valid()) {
      findings.push_back(fmt::format("at rest, the scheduler does not know workload {}", key));
      continue;
    }
    const model::Workload& row = state.workloads().at(id);
    const bool charged = !ChargedTo(row).charges.empty();
    if (row.write != model::WriteStage::kNone || row.status != workload.status ||
        charged != (IsHeld(workload.status) && workload.cpu > 0)) {
      findings.push_back(fmt::format("at rest, the scheduler knows workload {} as it is not", key));
    }
    if (IsHeld(workload.status) && !workload.status.active &&
        StageOf(workload.status) != model::WorkloadStage::kEvicted) {
      findings.push_back(
          fmt::format("at rest, workload {} is not active, and keeps its quota", key));
    }
    // Who waits for nodes is looked at by who counts missed wake-ups.
    if (joint || !MayBeServed(workload)) continue;
    const std::string root = RootOf(workload.queue);
    const int64_t left = QuotaOf(root, &Queue::cpu) - ReservedIn(root);
    if (workload.cpu <= std::max<int64_t>(left, 0)) {
      findings.push_back(
          fmt::format("at rest, workload {} waits for {}m of quota, and {}m are left", key,
                      workload.cpu, left));
    }
  }
  return findings;
}

// Whether it waits for quota alone.
bool Reservations::MayBeServed(const Workload& workload) const {
  const auto waits = [&](const Workload& w) {
    return StageOf(w.status) == model::WorkloadStage::kPending && IsQueued(w.status, Instant{});
  };
  const auto queue = queues_.find(workload.queue);
  const auto local = local_queues_.find(workload.queue);
  if (!waits(workload) || queue == queues_.end() || local == local_queues_.end()) return false;
  if (queue->second.stopped || local->second) return false;
  if (!queue->second.strict) return true;
  return std::ranges::none_of(workloads_, [&](const auto& entry) {
    const Workload& other = entry.second;
    return other.queue == workload.queue && waits(other) &&
           std::tuple(-other.priority, other.status.created, other.uid) <
               std::tuple(-workload.priority, workload.status.created, workload.uid);
  });
}

std::string Reservations::RootOf(const std::string& queue) const {
  const auto at = queues_.find(queue);
  if (at == queues_.end() || at->second.cohort.empty()) return "queue " + queue;
  std::string cohort = at->second.cohort;
  for (auto parent = parents_.find(cohort); parent != parents_.end() && !parent->second.empty();
       parent = parents_.find(cohort)) {
    cohort = parent->second;
  }
  return cohort;
}

int64_t Reservations::QuotaOf(const std::string& root, int64_t Queue::* member) const {
  int64_t sum = 0;
  for (const auto& [name, queue] : queues_) {
    if (RootOf(name) == root) sum += queue.*member;
  }
  return sum;
}

int64_t Reservations::ReservedIn(const std::string& root) const {
  int64_t sum = 0;
  for (const auto& [key, workload] : workloads_) {
    if (IsHeld(workload.status) && RootOf(workload.queue) == root) sum += workload.cpu;
  }
  return sum;
}

// The rest are objects, which are hashed as such.
void Reservations::AddTo(Hasher& hasher) const {
  hasher.Add(preemptions_).Add(promised_.size());
  for (const auto& [uid, key] : promised_) hasher.Add(std::string_view(uid));
  for (const auto& [name, queue] : queues_) hasher.Add(queue.cpu_most);
}

}  // namespace berth::explore
