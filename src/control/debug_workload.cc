#include "control/debug_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "client/request.h"
#include "control/debug_places.h"
#include "control/debug_workload_pods.h"
#include "control/scheduler.h"
#include "model/workload_stage.h"
#include "translate/quota_text.h"

namespace berth::control {
namespace {

using api::JsonArray;
using api::JsonObject;
using model::QueueId;
using model::QuotaView;
using model::Workload;
using model::WorkloadId;

std::string AmountText(const model::State& state, model::ResourceId r, model::Amount amount) {
  return translate::ResourceAmountText(state.vocabulary().resources.Name(r), amount);
}

// Of the flavor and resource, all that the reservation charges.
model::Amount ChargeOf(const model::State& state, const model::Reservation& reservation,
                       model::NameId flavor, model::ResourceId r) {
  model::Amount sum = 0;
  for (const model::QuotaCharge& charge : reservation.charges) {
    if (charge.flavor == flavor)
      sum += charge.count * state.vocabulary().bundles.AmountOf(charge.amounts, r);
  }
  return sum;
}

bool Leaves(const Workload& row) {
  return row.claimant.valid() || StageOf(row.status) == model::WorkloadStage::kEvicted;
}

// Who uses most of what the level has, or was promised it: all but who asks.
void AddHolders(const model::State& state, WorkloadId asker, QueueId level,
                const model::FlavorReason& lack, JsonObject& object) {
  const model::NameId flavor = lack.flavor;
  const model::ResourceId r = lack.resource;
  struct Holder {
    WorkloadId workload;
    model::Amount amount = 0;
    bool promised = false;
  };
  std::vector<Holder> holders;
  for (uint32_t i = 0; i < state.workloads().size(); ++i) {
    const WorkloadId id{i};
    if (!state.workloads().used(id) || id == asker) continue;
    const Workload& row = state.workloads().at(id);
    const bool promised = ChargedTo(row).charges.empty();
    const model::Reservation& has = promised ? row.promised : ChargedTo(row);
    const model::Amount amount = ChargeOf(state, has, flavor, r);
    if (amount == 0) continue;
    const QueueId queue = state.queues().Find(model::QueueKind::kClusterQueue, has.cluster_queue);
    if (queue.valid() && IsBelow(state, queue, level)) holders.push_back({id, amount, promised});
  }
  std::ranges::sort(holders, [&](const Holder& a, const Holder& b) {
    const auto order = [&](const Holder& h) {
      return std::pair(-h.amount, state.KeyOf(state.workloads().at(h.workload).key));
    };
    return order(a) < order(b);
  });
  JsonArray shown;
  for (const Holder& holder : std::span(holders).first(std::min(holders.size(), kHoldersShown))) {
    const Workload& row = state.workloads().at(holder.workload);
    JsonObject one = {{"workload", state.KeyOf(row.key)},
                      {"amount", AmountText(state, r, holder.amount)},
                      {"priority", row.priority},
                      {"leaves", Leaves(row)}};
    if (holder.promised) one["promised"] = true;
    shown.emplace_back(std::move(one));
  }
  object["holders"] = std::move(shown);
  object["holdersCount"] = holders.size();
}

// Whether there is room by now for what the workload was promised of that: who left it is gone, and
// what was refused before is as good as given.
bool IsThere(const model::State& state, WorkloadId asker, QueueId queue,
             const model::FlavorReason& reason) {
  const model::Amount promised =
      ChargeOf(state, state.workloads().at(asker).promised, reason.flavor, reason.resource);
  const uint32_t account = state.queues().AccountOf(queue, reason.flavor);
  if (promised == 0 || account == model::Queue::kNoAccount) return false;
  const auto left = state.ledger().quota().LeftFor(QuotaView::kPhysical, reason.resource, account);
  return left.amount >= promised;
}

JsonObject LackJson(const model::State& state, WorkloadId asker, QueueId queue,
                    const model::FlavorReason& reason) {
  JsonObject object;
  object["flavor"] = state.NameOf(reason.flavor);
  object["resource"] = state.vocabulary().resources.Name(reason.resource);
  object["more"] = AmountText(state, reason.resource, reason.amount);
  const uint32_t account = state.queues().AccountOf(queue, reason.flavor);
  if (account == model::Queue::kNoAccount) return object;
  const model::QuotaTree& tree = state.ledger().quota();
  // What is left now, or once all that leave are gone and all that is promised is taken.
  const auto now = tree.LeftFor(QuotaView::kPhysical, reason.resource, account);
  const auto then = tree.LeftFor(QuotaView::kFuture, reason.resource, account);
  const model::QuotaTree::Left& left = now.amount <= then.amount ? now : then;
  const QueueId level = state.queues().account(left.row).queue;
  const model::Queue& row = state.queues().at(level);
  object["level"] = state.NameOf(row.name);
  object["levelKind"] = row.kind == model::QueueKind::kCohort ? "Cohort" : "ClusterQueue";
  object["has"] = AmountText(state, reason.resource, tree.subtree(reason.resource, left.row));
  object["used"] = AmountText(state, reason.resource,
                              tree.used(QuotaView::kPhysical, reason.resource, left.row));
  object["left"] = AmountText(state, reason.resource, std::max(model::Amount{0}, left.amount));
  AddHolders(state, asker, level, reason, object);
  return object;
}

void AddWait(const cycle::Engine& engine, WorkloadId id, JsonObject& object) {
  const model::State& state = engine.state();
  const Workload& row = state.workloads().at(id);
  const model::LocalQueueId local = state.local_queues().FindKey(row.local_queue);
  if (!local.valid()) return;
  const model::NameId name = state.local_queues().at(local).cluster_queue;
  object["clusterQueue"] = state.NameOf(name);
  const std::vector<WorkloadId> line = engine.admissions().LineOf(name);
  const auto at = std::ranges::find(line, id);
  if (at != line.end()) {
    object["position"] = at - line.begin() + 1;
    object["waitingCount"] = line.size();
  }
  const auto refusal = engine.admissions().WhyWaitsNow(state, id);
  const QueueId queue = state.queues().Find(model::QueueKind::kClusterQueue, name);
  if (!refusal || !queue.valid()) return;
  JsonArray lacks;
  for (const model::FlavorReason& reason : refusal->reasons) {
    if (reason.kind != model::FlavorReasonKind::kShort) continue;
    if (IsThere(state, id, queue, reason)) continue;
    JsonObject lack = LackJson(state, id, queue, reason);
    if (refusal->pod_set < row.slots.size())
      lack["podSet"] = state.NameOf(row.slots[refusal->pod_set].name);
    lacks.emplace_back(std::move(lack));
  }
  if (!lacks.empty()) object["lacks"] = std::move(lacks);
  if (!refusal->places.empty()) AddNodeHolders(engine, id, refusal->places.front(), object);
}

const api::Workload* ObjectOf(const Scheduler& scheduler, const Workload& row) {
  if (scheduler.quota() == nullptr) return nullptr;
  return scheduler.quota()->FindWorkload(scheduler.engine().state().UidOf(row.uid));
}

// Kueue's message of an eviction by others names the uid of who evicts.
std::string_view PreemptorIn(std::string_view message) {
  constexpr std::string_view kBefore = "(UID: ";
  const size_t at = message.find(kBefore);
  if (at == std::string_view::npos) return {};
  message.remove_prefix(at + kBefore.size());
  return message.substr(0, message.find_first_of(",)"));
}

// Why it was evicted, and for whom.
void AddPastEviction(const Scheduler& scheduler, const Workload& row, JsonObject& object) {
  const api::Workload* workload = ObjectOf(scheduler, row);
  if (workload == nullptr || row.status.finished) return;
  const api::Condition* evicted = api::Find(workload->conditions, "Evicted");
  if (evicted == nullptr || evicted->status != "True") return;
  JsonObject why = {{"reason", evicted->reason}, {"message", evicted->message}};
  if (evicted->transition != Instant{}) why["at"] = client::SecondsTime(evicted->transition);
  const std::string_view uid = PreemptorIn(evicted->message);
  const model::State& state = scheduler.engine().state();
  const WorkloadId preemptor = uid.empty() ? WorkloadId{} : state.FindWorkload(uid);
  if (preemptor.valid()) why["for"] = state.KeyOf(state.workloads().at(preemptor).key);
  object["evicted"] = std::move(why);
}

// Of one that is being deleted, or whose Job is gone: what its end waits for.
void AddEnd(const Scheduler& scheduler, const Workload& row, JsonObject& object) {
  const api::Workload* workload = ObjectOf(scheduler, row);
  if (workload == nullptr) return;
  const api::ObjectMeta& meta = workload->meta;
  const bool left = meta.owners.empty() && api::Find(meta.labels, api::kJobUidLabel);
  if (left) object["jobGone"] = true;
  if (meta.deletion_time) {
    object["stage"] = "deleting";
    object["deletedAt"] = client::SecondsTime(*meta.deletion_time);
    JsonArray finalizers;
    for (const std::string& finalizer : meta.finalizers) finalizers.emplace_back(finalizer);
    object["finalizers"] = std::move(finalizers);
  }
  if (!left && !meta.deletion_time) return;
  const model::State& state = scheduler.engine().state();
  uint64_t pods = 0;
  for (uint32_t i = 0; row.job.valid() && i < state.pods().size(); ++i) {
    if (!state.pods().used(model::PodId{i})) continue;
    const model::Pod& pod = state.pods().at(model::PodId{i});
    if (pod.job == row.job && !pod.terminal) ++pods;
  }
  object["podsLeft"] = pods;
}

void AddHolds(const model::State& state, const Workload& row, JsonObject& object) {
  const model::Reservation& charged = ChargedTo(row);
  if (!charged.cluster_queue.valid()) return;
  object["clusterQueue"] = state.NameOf(charged.cluster_queue);
  if (!state.queues().Find(model::QueueKind::kClusterQueue, charged.cluster_queue).valid())
    object["clusterQueueMissing"] = true;
  JsonArray holds;
  for (const model::QuotaCharge& charge : charged.charges) {
    JsonObject amounts;
    for (const model::ResourceAmount& a : state.vocabulary().bundles.View(charge.amounts))
      amounts[state.vocabulary().resources.Name(a.resource)] =
          AmountText(state, a.resource, a.amount * charge.count);
    JsonObject one = {{"flavor", state.NameOf(charge.flavor)}, {"count", charge.count}};
    if (state.flavors().Find(charge.flavor) == nullptr) one["flavorMissing"] = true;
    if (charge.pod_set < row.slots.size())
      one["podSet"] = state.NameOf(row.slots[charge.pod_set].name);
    one["amounts"] = std::move(amounts);
    holds.emplace_back(std::move(one));
  }
  object["holds"] = std::move(holds);
}

// Of one that waits: who waits for the same group.
void AddOthersOfGroups(const model::State& state, const Workload& row, JsonArray& notes) {
  for (const model::WorkloadSlots& set : row.slots) {
    if (!set.gang.valid()) continue;
    const std::string_view group = state.NameOf(set.gang);
    for (const WorkloadId other : WaitingOfGroup(state, group)) {
      const Workload& waits = state.workloads().at(other);
      if (waits.uid == row.uid) continue;
      notes.emplace_back(
          fmt::format("workload {} waits for PodGroup {}, too: where the group could start with "
                      "neither alone they are admitted together, or not at all",
                      state.KeyOf(waits.key), group));
    }
    break;
  }
}

// What is wrong with what it has quota of or waits for, and what to change.
void AddNotes(const Scheduler& scheduler, const Workload& row, JsonObject& object) {
  const Quota* quota = scheduler.quota();
  if (quota == nullptr || row.status.finished) return;
  JsonArray notes;
  if (const api::Json* name = object.if_contains("clusterQueue")) {
    const std::string_view queue(name->get_string());
    const std::optional<Readiness> readiness = quota->queues().ReadinessNow(queue);
    if (readiness && !readiness->active) {
      notes.emplace_back(fmt::format("ClusterQueue {} is not active: {}: {}", queue,
                                     readiness->reason, readiness->message));
    }
  }
  if (StageOf(row.status) == model::WorkloadStage::kEvicted && !row.job.valid()) {
    notes.emplace_back(
        "it is evicted, and holds its quota until somebody takes that from it: no Job owns it "
        "whose pods could be seen to be gone; delete it, or set its condition QuotaReserved to "
        "False and remove status.admission");
  }
  const model::State& state = scheduler.engine().state();
  const api::Json* reason = object.if_contains("reason");
  if (reason != nullptr && std::string_view(reason->get_string()) == translate::kWaitingForGang)
    AddOthersOfGroups(state, row, notes);
  std::set<std::string_view> flavors;
  std::set<std::string_view> topologies;
  for (const model::QuotaCharge& charge : ChargedTo(row).charges) {
    flavors.insert(state.NameOf(charge.flavor));
    const model::Flavor* flavor = state.flavors().Find(charge.flavor);
    if (flavor != nullptr && flavor->topology.valid())
      topologies.insert(state.NameOf(flavor->topology));
  }
  const auto leaves = [&](api::KindId kind, std::string_view name, std::string_view by) {
    if (!quota->in_use().IsBeingDeleted(kind, name)) return;
    notes.emplace_back(
        fmt::format("{0} {1} is being deleted, and goes once no {2} names it: "
                    "create it anew after that, or name another",
                    api::KindOf(kind).name, name, by));
  };
  for (const std::string_view name : flavors)
    leaves(api::KindId::kResourceFlavor, name, "ClusterQueue");
  for (const std::string_view name : topologies)
    leaves(api::KindId::kTopology, name, "ResourceFlavor");
  if (const std::string_view why = quota->WhyHeldUp(state.UidOf(row.uid)); !why.empty())
    notes.emplace_back(fmt::format("it waits for places of its pods: {}", why));
  if (!notes.empty()) object["notes"] = std::move(notes);
}

// What its conditions say of how far it is, and of its end.
void AddProgress(const Scheduler& scheduler, const Workload& row, JsonObject& object) {
  const api::Workload* workload = ObjectOf(scheduler, row);
  if (workload == nullptr) return;
  const auto tell = [&](std::string_view type, std::string_view status, std::string_view member) {
    const api::Condition* condition = api::Find(workload->conditions, type);
    if (condition == nullptr || condition->status != status) return;
    object[member] = JsonObject{{"reason", condition->reason}, {"message", condition->message}};
  };
  const model::WorkloadStage stage = StageOf(row.status);
  if (stage == model::WorkloadStage::kFinished) tell("Finished", "True", "finished");
  if (stage == model::WorkloadStage::kReserved) {
    tell("Admitted", "False", "notAdmitted");
    JsonArray checks;
    for (const api::CheckState& check : workload->checks) {
      if (check.state == "Ready") continue;
      checks.push_back(
          JsonObject{{"name", check.name}, {"state", check.state}, {"message", check.message}});
    }
    if (!checks.empty()) object["checks"] = std::move(checks);
  }
  if (stage != model::WorkloadStage::kAdmitted) return;
  int64_t spare = 0;
  for (const auto& [pod_set, count] : workload->reclaimable) spare += count;
  if (spare > 0) object["reclaimable"] = spare;
  if (const auto before = scheduler.quota()->PodsReadyBefore(*workload))
    object["readyBefore"] = client::SecondsTime(*before);
}

// What the server did not let be written of it.
void AddRefused(const Scheduler& scheduler, const Workload& row, JsonObject& object) {
  if (scheduler.quota() == nullptr) return;
  const Workloads::Refusal* refused =
      scheduler.quota()->WhyRefused(scheduler.engine().state().UidOf(row.uid));
  if (refused == nullptr) return;
  JsonObject json = {
      {"what", refused->what}, {"code", refused->code}, {"message", refused->message}};
  const Instant again = refused->again == Instant::Never() ? row.not_before : refused->again;
  if (again != Instant{}) json["again"] = client::SecondsTime(again);
  if (object.contains("notBefore") && object["notBefore"] == json["again"])
    object.erase("notBefore");
  object["refused"] = std::move(json);
}

}  // namespace

std::vector<WorkloadId> WaitingOfGroup(const model::State& state, std::string_view group) {
  std::vector<WorkloadId> waiting;
  const model::NameId gang = state.vocabulary().names.Find(group);
  for (uint32_t i = 0; gang.valid() && i < state.workloads().size(); ++i) {
    if (!state.workloads().used(WorkloadId{i})) continue;
    const Workload& row = state.workloads().at(WorkloadId{i});
    const auto names_it = [&](const model::WorkloadSlots& set) { return set.gang == gang; };
    if (StageOf(row.status) == model::WorkloadStage::kPending &&
        std::ranges::any_of(row.slots, names_it)) {
      waiting.emplace_back(i);
    }
  }
  return waiting;
}

JsonObject DelayJson(const Scheduler& scheduler, const Workload& row) {
  JsonObject object;
  const model::WorkloadStatus& status = row.status;
  if (status.on_hold)
    object["waitsFor"] = "a reason other than OnHold in its condition QuotaReserved";
  if (status.held_back) {
    std::string text = "its condition Requeued, which is False";
    const api::Workload* workload = ObjectOf(scheduler, row);
    const api::Condition* requeued =
        workload == nullptr ? nullptr : api::Find(workload->conditions, "Requeued");
    if (requeued != nullptr) text += fmt::format(", {}: {}", requeued->reason, requeued->message);
    object["waitsFor"] = text;
  }
  if (const Instant from = std::max(status.requeue_at, row.not_before); from != Instant{})
    object["notBefore"] = client::SecondsTime(from);
  return object;
}

std::optional<JsonObject> WhyWorkloadJson(const Scheduler& scheduler, std::string_view key) {
  const cycle::Engine& engine = scheduler.engine();
  const model::State& state = engine.state();
  const WorkloadId id = state.workloads().FindKey(state.FindKey(key));
  if (!id.valid()) return std::nullopt;
  const Workload& row = state.workloads().at(id);
  const model::WorkloadStage stage = StageOf(row.status);
  const bool reserving =
      stage == model::WorkloadStage::kPending && row.write != model::WriteStage::kNone;
  JsonObject object;
  object["workload"] = key;
  object["uid"] = state.UidOf(row.uid);
  object["stage"] = reserving ? "reserving" : ToString(stage);
  const api::Workload* workload = ObjectOf(scheduler, row);
  object["active"] = workload == nullptr || workload->active;
  const std::string_view local = state.KeyOf(row.local_queue);
  object["localQueue"] = local.substr(local.find('/') + 1);
  object["priority"] = row.priority;
  object["since"] = client::SecondsTime(model::QueuedAt(row.status, true));
  if (stage == model::WorkloadStage::kPending && !reserving) AddWait(engine, id, object);
  const bool waits = stage == model::WorkloadStage::kPending && !reserving && row.status.active;
  if (waits && !object.contains("position")) {
    for (auto& [member, value] : DelayJson(scheduler, row)) object[member] = std::move(value);
  }
  AddHolds(state, row, object);
  if (!row.status.finished && (reserving || stage != model::WorkloadStage::kPending))
    AddPodsOf(scheduler, id, object);
  AddEnd(scheduler, row, object);
  if (const auto refusal = engine.admissions().WhyWaitsNow(state, id)) {
    const translate::WaitText text = translate::WithAdvice(
        translate::WorkloadRefusalText(*refusal, row, state), *refusal, state.vocabulary());
    object["reason"] = text.reason;
    object["message"] = text.message;
  }
  JsonArray leaving;
  for (const WorkloadId victim : row.victims) {
    const Workload& leaves = state.workloads().at(victim);
    leaving.push_back(JsonObject{{"workload", state.KeyOf(leaves.key)},
                                 {"priority", leaves.priority},
                                 {"told", !IsToBeEvicted(leaves)}});
  }
  if (!leaving.empty()) object["leaving"] = std::move(leaving);
  AddPastEviction(scheduler, row, object);
  AddProgress(scheduler, row, object);
  AddRefused(scheduler, row, object);
  AddNotes(scheduler, row, object);
  if (row.claimant.valid())
    object["evictedFor"] = state.KeyOf(state.workloads().at(row.claimant).key);
  if (row.spared_until != Instant{}) object["sparedUntil"] = client::SecondsTime(row.spared_until);
  return object;
}

}  // namespace berth::control
