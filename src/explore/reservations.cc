#include "explore/reservations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "api/groups.h"
#include "api/requests.h"
#include "api/types.h"
#include "codec/decode.h"
#include "codec/scan.h"
#include "sim/group_queues.h"
#include "sim/truth.h"
#include "translate/quota_facts.h"

namespace berth::explore {
namespace {

constexpr std::string_view kLocalQueuesPrefix = "localqueues.kueue.x-k8s.io/";
constexpr std::string_view kFlavorsPrefix = "resourceflavors.kueue.x-k8s.io/";
constexpr std::string_view kReservationStart = R"("type":"QuotaReserved","status":"True")";
constexpr std::string_view kEvictionStart = "Preempted to accommodate a workload (UID: ";

bool IsHeld(const model::WorkloadStatus& status) { return status.reserved && !status.finished; }

// Whom the workload was evicted for.
std::string ClaimantIn(const api::Workload& workload) {
  const api::Condition* evicted = api::Find(workload.conditions, "Evicted");
  if (evicted == nullptr || !evicted->message.starts_with(kEvictionStart)) return {};
  const std::string_view rest = std::string_view(evicted->message).substr(kEvictionStart.size());
  return std::string(rest.substr(0, rest.find(',')));
}

const api::PodSetAssignment* GivenTo(const api::Workload& workload, const std::string& set) {
  if (!workload.admission) return nullptr;
  const auto& sets = workload.admission->pod_sets;
  const auto at = std::ranges::find(sets, set, &api::PodSetAssignment::name);
  return at == sets.end() ? nullptr : &*at;
}

std::vector<AskedSet> SetsOf(const api::Workload& workload) {
  std::vector<AskedSet> sets;
  for (const api::WorkloadPodSet& pods : workload.pod_sets) {
    api::Pod pod;
    pod.spec = pods.spec;
    AskedSet& set =
        sets.emplace_back(AskedSet{.name = pods.name,
                                   .count = pods.count,
                                   .least = 0,
                                   .requests = {},
                                   .selector = pods.spec->node_selector,
                                   .topology = pods.topology,
                                   .group = std::string(api::NamedGroup(pods.annotations))});
    for (const api::ResourceAmount& a : api::PendingRequests(pod)) {
      if (a.amount > 0) set.requests.push_back(a);
    }
    for (const auto& [name, done] : workload.reclaimable) set.count -= name == pods.name ? done : 0;
    set.least = std::min(set.count, pods.min_count.value_or(set.count));
  }
  return sets;
}

// What its admission says, less what its pods that are done had.
Amounts GrantedBy(const api::Workload& workload, const std::vector<AskedSet>& sets) {
  Amounts granted;
  for (const AskedSet& set : sets) {
    const api::PodSetAssignment* given = GivenTo(workload, set.name);
    if (given == nullptr) continue;
    const int64_t count = given->count.value_or(set.count);
    for (const api::ResourceAmount& usage : given->usage) {
      const auto flavor = api::Find(given->flavors, usage.name);
      if (count <= 0 || usage.amount == 0 || !flavor) continue;
      granted[{std::string(*flavor), usage.name}] +=
          usage.amount / count * std::clamp<int64_t>(set.count, 0, count);
    }
  }
  std::erase_if(granted, [](const auto& entry) { return entry.second == 0; });
  return granted;
}

// What is wrong with how much its pods are given: all of their amounts, and of as many pods as are
// enough.
void JudgeGrant(const std::string& key, const api::Workload& workload,
                const std::vector<AskedSet>& sets, std::vector<std::string>& findings) {
  for (const AskedSet& set : sets) {
    const api::PodSetAssignment* given = GivenTo(workload, set.name);
    const int64_t count = given == nullptr ? 0 : given->count.value_or(0);
    if (count < set.least || count > set.count) {
      findings.push_back(fmt::format("workload {} gets quota for {} of {} pods of set {}", key,
                                     count, set.count, set.name));
      continue;
    }
    for (const api::ResourceAmount& each : set.requests) {
      const int64_t usage = given == nullptr ? 0 : api::Find(given->usage, each.name).value_or(0);
      if (usage == each.amount * count) continue;
      findings.push_back(fmt::format("workload {} gets {} for {} pods that ask for {} each", key,
                                     AmountText(each.name, usage), count,
                                     AmountText(each.name, each.amount)));
    }
  }
}

int64_t AmountIn(const Amounts& amounts, const Amounts::key_type& of) {
  const auto at = amounts.find(of);
  return at == amounts.end() ? 0 : at->second;
}

void Add(Amounts& to, const Amounts& more, int64_t sign = 1) {
  for (const auto& [of, amount] : more) to[of] += sign * amount;
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
  // Who was evicted before says so until it gets quota again. Who is gone is not told any more.
  const auto is =
      std::ranges::find_if(workloads_, [&](const auto& entry) { return entry.second.uid == uid; });
  const bool evicts = request.body.view().contains(kEvictionStart) && is != workloads_.end() &&
                      is->second.status.evicted_for == model::EvictedFor::kNothing;
  if (evicts && !Goes(state, uid))
    findings.push_back(fmt::format("{} is evicted, and nobody waits for it", request.target));
  if (request.body.view().contains(kReservationStart) && is != workloads_.end() &&
      !is->second.status.reserved)
    JudgeOrder(is->second, state, findings);
  return findings;
}

// Nobody gets quota of a strict queue before who is more important, as far as the scheduler knows.
void Reservations::JudgeOrder(const Workload& workload, const model::State& state,
                              std::vector<std::string>& findings) const {
  const auto queue = queues_.find(workload.queue);
  if (queue == queues_.end() || !queue->second.strict) return;
  const auto known = [&](const std::string& uid) -> const model::Workload* {
    const model::WorkloadId row = state.FindWorkload(uid);
    return row.valid() ? &state.workloads().at(row) : nullptr;
  };
  const model::Workload* own = known(workload.uid);
  for (const auto& [key, other] : workloads_) {
    if (own == nullptr || other.queue != workload.queue) continue;
    const model::Workload* row = known(other.uid);
    const bool waits = row != nullptr && row->write == model::WriteStage::kNone &&
                       StageOf(row->status) == model::WorkloadStage::kPending &&
                       IsQueued(row->status, Instant::Never());
    if (!waits || row->priority <= own->priority) continue;
    findings.push_back(
        fmt::format("a workload of strict queue {} gets quota, and workload {} comes before it",
                    workload.queue, key));
  }
}

// ---- What becomes durable --------------------------------------------------------------------

std::vector<std::string> Reservations::OnCommit(const env::JournalRecord& record, bool by_scheduler,
                                                const model::State& state) {
  std::vector<std::string> findings;
  if (record.key.starts_with(kWorkloadsPrefix)) {
    OnWorkload(record, by_scheduler, state, findings);
  } else {
    JudgeKept(record, findings);
    OnQueue(record);
  }
  return findings;
}

// The key of a workload that holds quota there; empty: none does.
std::string Reservations::HolderIn(const std::string& queue) const {
  const auto at = std::ranges::find_if(workloads_, [&](const auto& entry) {
    return entry.second.queue == queue && IsHeld(entry.second.status);
  });
  return at == workloads_.end() ? "" : at->first;
}

void Reservations::JudgeKept(const env::JournalRecord& record, std::vector<std::string>& findings) {
  const bool queue = record.key.starts_with(sim::kQueuesPrefix);
  if (!queue && !record.key.starts_with(kFlavorsPrefix)) return;
  const std::string name = record.key.substr(record.key.rfind('/') + 1);
  const std::string_view metadata = codec::Member(record.value.view(), "metadata");
  const bool was_kept = kept_.erase(record.key) > 0;
  if (codec::Member(metadata, "finalizers").contains(api::kInUseFinalizer)) {
    kept_[record.key] = metadata.contains(R"("deletionTimestamp":)");
    return;
  }
  const std::string holder = queue ? HolderIn(name) : "";
  if (was_kept && !holder.empty()) {
    findings.push_back(
        fmt::format("queue {} is kept no more, and workload {} has quota of it", name, holder));
  }
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
      Queue after{.cohort = queue.cohort,
                  .groups = queue.resource_groups,
                  .quota = {},
                  .quota_most = before.quota_most,
                  .strict = queue.strict_fifo,
                  .stopped = queue.stop != api::StopPolicy::kNone};
      for (const api::ResourceGroup& group : queue.resource_groups) {
        for (const api::FlavorQuotas& flavor : group.flavors) {
          for (const api::ResourceQuota& has : flavor.resources)
            after.quota[{flavor.flavor, has.resource}] += has.nominal;
        }
      }
      for (const auto& [of, amount] : after.quota)
        after.quota_most[of] = std::max(after.quota_most[of], amount);
      queues_[name] = after;
      if (after == before) return;
    }
  } else if (record.key.starts_with(kFlavorsPrefix)) {
    flavors_.erase(name);
    if (gone) return;
    const api::ResourceFlavor flavor = decoder_.ResourceFlavor(record.value.view()).value();
    flavors_[name] = {.labels = flavor.node_labels,
                      .tainted = !flavor.node_taints.empty(),
                      .topology = flavor.topology};
    return;
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
  const std::vector<AskedSet> sets = SetsOf(object);
  const Workload after{.uid = object.meta.uid,
                       .queue = object.queue,
                       .priority = object.priority,
                       .sets = sets,
                       .granted = GrantedBy(object, sets),
                       .places = PlacesByNodeOf(object),
                       .status = translate::WorkloadStatusOf(object)};
  workloads_[key] = after;
  if (before != after) promised_.erase(before.uid);
  if (!by_scheduler || before.uid != after.uid) return;
  Judge(key, before, after, state, findings);
  if (!before.status.reserved && after.status.reserved) JudgeGrant(key, object, sets, findings);
  const std::string claimant = ClaimantIn(object);
  const bool evicts = before.status.evicted_for == model::EvictedFor::kNothing &&
                      after.status.evicted_for != model::EvictedFor::kNothing;
  if (!evicts || claimant.empty()) return;
  ++preemptions_;
  for (const auto& [other, workload] : workloads_) {
    // The scheduler knows what time it is.
    if (workload.uid == claimant && IsQueued(workload.status, Instant::Never()))
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
  if (StageOf(before.status) != model::WorkloadStage::kPending || !before.status.active ||
      before.status.on_hold || before.status.held_back)
    findings.push_back(fmt::format("workload {} gets quota, and does not wait for it", key));
  JudgeReservation(key, after, state, findings);
}

void Reservations::JudgeReservation(const std::string& key, const Workload& workload,
                                    const model::State& state,
                                    std::vector<std::string>& findings) const {
  const std::string root = RootOf(workload.queue);
  const Amounts held = ReservedIn(root);
  const Amounts most = QuotaOf(root, &Queue::quota_most);
  for (const auto& [of, granted] : workload.granted) {
    if (AmountIn(held, of) <= AmountIn(most, of)) continue;
    findings.push_back(fmt::format("with workload {} {} of {} of quota are reserved", key,
                                   AmountText(of.second, AmountIn(held, of)),
                                   AmountText(of.second, AmountIn(most, of))));
  }
  // Who was not told yet that it has to go takes nothing from those for whom it goes.
  if (Goes(state, workload.uid)) return;
  Amounts left = QuotaOf(root, &Queue::quota);
  Amounts in_queue;
  for (const auto& [other, each] : workloads_) {
    if (!IsHeld(each.status) || RootOf(each.queue) != root) continue;
    if (each.queue == workload.queue) Add(in_queue, each.granted);
    const bool leaves =
        each.status.evicted_for != model::EvictedFor::kNothing || Goes(state, each.uid);
    if (!leaves) Add(left, each.granted, -1);
  }
  const auto queue = queues_.find(workload.queue);
  const bool borrows = std::ranges::any_of(workload.granted, [&](const auto& entry) {
    return queue == queues_.end() ||
           AmountIn(in_queue, entry.first) > AmountIn(queue->second.quota, entry.first);
  });
  for (const auto& [uid, waits] : promised_) {
    const Workload& other = workloads_.at(waits);
    if (RootOf(other.queue) != root || other.uid == workload.uid) continue;
    // Who is more important, or claims what is its queue's own, may take it.
    const bool may =
        workload.priority > other.priority || (!borrows && workload.queue != other.queue);
    if (may || Finds(other, left, nullptr, false)) continue;
    findings.push_back(
        fmt::format("workload {} gets what others were evicted for, for workload {}", key, waits));
  }
}

// Whether there is what it asks for in its queue.
bool Reservations::Finds(const Workload& workload, const Amounts& left, const Rooms* rooms,
                         bool joint) const {
  const auto queue = queues_.find(workload.queue);
  if (queue == queues_.end()) return false;
  return Fits(workload.sets, {.groups = queue->second.groups,
                              .flavors = flavors_,
                              .left = left,
                              .rooms = rooms,
                              .joint = joint});
}

// ---- At rest ---------------------------------------------------------------------------------

// What workloads have places for is not there, whether their pods are there yet or not.
Rooms Reservations::RoomsBesidePlaces(const sim::Truth& truth) const {
  Rooms rooms = RoomsIn(truth);
  for (const auto& [key, workload] : workloads_) {
    if (!IsHeld(workload.status)) continue;
    PlacesByNode places = workload.places;
    for (const auto& [pod_key, pod] : truth.pods()) {
      if (pod.terminal() || pod.owner_uid != "job-" + key.substr(key.find('/') + 1)) continue;
      const auto set = api::Find(pod.labels, api::kPodSetLabel).value_or("main");
      const auto at = places.find({std::string(set), pod.node_name});
      if (at != places.end() && at->second > 0) --at->second;
    }
    for (const auto& [of, count] : places) {
      const auto room = rooms.find(of.second);
      const auto set = std::ranges::find(workload.sets, of.first, &AskedSet::name);
      if (room == rooms.end() || set == workload.sets.end()) continue;
      for (const api::ResourceAmount& a : set->requests)
        room->second.free[a.name] -= a.amount * count;
      room->second.free["pods"] -= count;
    }
  }
  return rooms;
}

namespace {

// What all of its pods ask for that are to be of the group.
api::ResourceList AskedIn(const std::string& group, const std::vector<AskedSet>& sets) {
  std::map<std::string, int64_t> sum;
  for (const AskedSet& set : sets) {
    if (set.group != group) continue;
    for (const api::ResourceAmount& a : set.requests) sum[a.name] += a.amount * set.count;
  }
  api::ResourceList asked;
  for (const auto& [name, amount] : sum) asked.push_back({.name = name, .amount = amount});
  return asked;
}

// Whether each group that its pods name is there and has enough members, with all of them, for whom
// its queue has room.
bool CouldStart(const sim::Truth& truth, const std::string& key,
                const std::vector<AskedSet>& sets) {
  codec::Decoder decoder;
  const std::string job = "job-" + key.substr(key.find('/') + 1);
  for (const AskedSet& set : sets) {
    if (set.group.empty()) continue;
    const std::string group = "default/" + set.group;
    const auto at = truth.others().find(std::string(sim::kGroupsPrefix) + group);
    if (at == truth.others().end()) return false;
    int64_t members = 0;
    for (const AskedSet& each : sets) members += each.group == set.group ? each.count : 0;
    for (const auto& [pod_key, pod] : truth.pods())
      members += pod.active() && pod.group == group && pod.owner_uid != job ? 1 : 0;
    const Result<api::PodGroup> known = decoder.PodGroup(at->second.view());
    const std::string queue = known->queue.empty() ? "default" : known->queue;
    if (members < known->min_member ||
        !sim::QueueHas(truth, queue, AskedIn(set.group, sets), group)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> Reservations::AtRest(const model::State& state, const sim::Truth& truth,
                                              const Rest& rest) const {
  std::vector<std::string> findings = LeavesAtRest();
  const Rooms rooms = RoomsBesidePlaces(truth);
  for (const auto& [key, workload] : workloads_) {
    const model::WorkloadId id = state.FindWorkload(workload.uid);
    if (!id.valid()) {
      findings.push_back(fmt::format("at rest, the scheduler does not know workload {}", key));
      continue;
    }
    const model::Workload& row = state.workloads().at(id);
    const bool charged = !ChargedTo(row).charges.empty();
    if (row.write != model::WriteStage::kNone || row.status != workload.status ||
        charged != (IsHeld(workload.status) && !workload.granted.empty())) {
      findings.push_back(fmt::format("at rest, the scheduler knows workload {} as it is not", key));
    }
    if (IsHeld(workload.status) && !workload.status.active &&
        StageOf(workload.status) != model::WorkloadStage::kEvicted) {
      findings.push_back(
          fmt::format("at rest, workload {} is not active, and keeps its quota", key));
    }
    if (!MayBeServed(workload, rest.now) || (rest.joint && !CouldStart(truth, key, workload.sets)))
      continue;
    const std::string root = RootOf(workload.queue);
    Amounts left = QuotaOf(root, &Queue::quota);
    Add(left, ReservedIn(root), -1);
    if (Finds(workload, left, &rooms, rest.joint))
      findings.push_back(fmt::format("at rest, workload {} waits for what is left", key));
  }
  return findings;
}

std::vector<std::string> Reservations::Charged(const model::State& state) const {
  std::vector<std::string> findings;
  for (const auto& [key, workload] : workloads_) {
    const model::WorkloadId id = state.FindWorkload(workload.uid);
    if (!id.valid()) continue;
    const model::Workload& row = state.workloads().at(id);
    if (row.write != model::WriteStage::kNone || row.status != workload.status) continue;
    Amounts charged;
    for (model::ClaimId claim = state.ledger().first_of_owner(row.uid); claim.valid();
         claim = state.ledger().claim(claim).next_of_owner) {
      const model::Claim& of = state.ledger().claim(claim);
      if (!of.account.is_tree() || of.state == model::ClaimState::kReserved) continue;
      const std::string flavor(state.NameOf(state.queues().account(of.account.row()).flavor));
      for (const model::ResourceAmount& a : state.vocabulary().bundles.View(of.bundle)) {
        charged[{flavor, std::string(state.vocabulary().resources.Name(a.resource))}] +=
            a.amount * of.count;
      }
    }
    std::erase_if(charged, [](const auto& entry) { return entry.second == 0; });
    const Amounts granted = IsHeld(workload.status) ? workload.granted : Amounts{};
    Amounts all = charged;
    all.insert(granted.begin(), granted.end());
    for (const auto& [of, amount] : all) {
      if (AmountIn(charged, of) == AmountIn(granted, of)) continue;
      findings.push_back(fmt::format("workload {} is charged {} of quota, and has {}", key,
                                     AmountText(of.second, AmountIn(charged, of)),
                                     AmountText(of.second, AmountIn(granted, of))));
    }
  }
  return findings;
}

// Whether it waits for quota alone.
bool Reservations::MayBeServed(const Workload& workload, Instant now) const {
  const auto waits = [&](const Workload& w) {
    return StageOf(w.status) == model::WorkloadStage::kPending && IsQueued(w.status, now);
  };
  const auto queue = queues_.find(workload.queue);
  const auto local = local_queues_.find(workload.queue);
  if (!waits(workload) || queue == queues_.end() || local == local_queues_.end()) return false;
  if (queue->second.stopped || local->second) return false;
  // One that is to go lets nobody in.
  const auto kept = kept_.find(fmt::format("{}/{}", sim::kQueuesPrefix, workload.queue));
  if (kept != kept_.end() && kept->second) return false;
  if (!queue->second.strict) return true;
  return std::ranges::none_of(workloads_, [&](const auto& entry) {
    const Workload& other = entry.second;
    return other.queue == workload.queue && waits(other) &&
           std::tuple(-other.priority, other.status.created, other.uid) <
               std::tuple(-workload.priority, workload.status.created, workload.uid);
  });
}

std::vector<std::string> Reservations::LeavesAtRest() const {
  std::vector<std::string> findings;
  for (const auto& [key, leaves] : kept_) {
    const std::string name = key.substr(key.rfind('/') + 1);
    const bool queue = key.starts_with(sim::kQueuesPrefix);
    const bool named = std::ranges::any_of(queues_, [&](const auto& entry) {
      return std::ranges::any_of(entry.second.quota,
                                 [&](const auto& has) { return has.first.first == name; });
    });
    if (!leaves || (queue ? !HolderIn(name).empty() : named)) continue;
    findings.push_back(fmt::format("at rest, {} {} is being deleted, and nobody uses it",
                                   queue ? "queue" : "flavor", name));
  }
  return findings;
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

Amounts Reservations::QuotaOf(const std::string& root, Amounts Queue::* member) const {
  Amounts sum;
  for (const auto& [name, queue] : queues_) {
    if (RootOf(name) == root) Add(sum, queue.*member);
  }
  return sum;
}

Amounts Reservations::ReservedIn(const std::string& root) const {
  Amounts sum;
  for (const auto& [key, workload] : workloads_) {
    if (IsHeld(workload.status) && RootOf(workload.queue) == root) Add(sum, workload.granted);
  }
  return sum;
}

// The rest are objects, which are hashed as such.
void Reservations::AddTo(Hasher& hasher) const {
  hasher.Add(preemptions_).Add(promised_.size());
  for (const auto& [uid, key] : promised_) hasher.Add(std::string_view(uid));
  for (const auto& [name, queue] : queues_) {
    for (const auto& [of, amount] : queue.quota_most) hasher.Add(amount);
  }
}

}  // namespace berth::explore
