#include "kueue.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/quantity.h"
#include "api/quota.h"
#include "api/timestamp.h"
#include "base/hash.h"
#include "base/time.h"
#include "codec/json.h"
#include "kueue_cycle.h"
#include "kueue_flavors.h"
#include "kueue_model.h"
#include "kueue_topology.h"
#include "kueue_workload.h"
#include "model/state.h"
#include "quota/preempt.h"
#include "reading.h"
#include "translate/quota_text.h"

// Goal: berth's tree of queues has the amounts that Kueue's has. Method: the objects of a case
// become facts of the model, usage becomes claims of its ledger, and what a queue has, uses and has
// left is compared. Tables of what is not built are counted with what they lack.
namespace berth::kueue {
namespace {

constexpr int kFailuresShownMax = 20;

// A case's input with what it refers to in place.
Json Resolved(const Json& json, const JsonObject& definitions) {
  if (json.is_array()) {
    JsonArray out;
    for (const Json& item : json.as_array()) out.push_back(Resolved(item, definitions));
    return out;
  }
  if (!json.is_object()) return json;
  if (const Json* ref = json.as_object().if_contains("$ref"))
    return definitions.at(ref->as_string());
  JsonObject out;
  for (const auto& member : json.as_object())
    out[member.key()] = Resolved(member.value(), definitions);
  return out;
}

int64_t Subtree(const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
  return tree.subtree(r, row);
}
int64_t Used(const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
  return tree.used(QuotaView::kNow, r, row);
}
int64_t Potential(const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
  return tree.Potential(r, row);
}
int64_t Left(const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
  return std::max(int64_t{0}, tree.LeftFor(QuotaView::kNow, r, row).amount);
}

// ---- Tables ------------------------------------------------------------------------------------

void Available(const Case& test) {
  Cluster c;
  c.PutAll(ArrayAt(test.input, "clusterQueues"), ArrayAt(test.input, "cohorts"));
  const JsonObject& available = ObjectAt(test.want, "available");
  const JsonObject& potential = ObjectAt(test.want, "potentiallyAvailable");
  const auto check = [&](bool charged) {
    for (const auto& queue : potential) {
      const auto of = [&](const Cluster::Ask& ask) {
        return c.Of(QueueKind::kClusterQueue, queue.key(), /*own_only=*/true, ask);
      };
      const Amounts most = AmountsIn(queue.value().as_object());
      Expect(fmt::format("{} could have", std::string_view(queue.key())), of(Potential), most);
      Expect(fmt::format("{} has left", std::string_view(queue.key())), of(Left),
             charged ? AmountsIn(ObjectAt(available, queue.key())) : most);
    }
  };
  check(false);
  for (const auto& queue : ObjectAt(test.input, "usage"))
    c.Charge(queue.key(), queue.key(), AmountsIn(queue.value().as_object()));
  check(true);
  for (const auto& queue : ObjectAt(test.input, "usage")) c.Discharge(queue.key());
  check(false);
}

void CohortLendable(const Case& test) {
  Cluster c;
  c.PutAll(ArrayAt(test.input, "clusterQueues"), {});
  const Amounts lendable =
      c.Of(QueueKind::kCohort, StringAt(test.input, "cohort"), /*own_only=*/false, Potential);
  Amounts summed;
  for (const auto& [flavor, resources] : lendable) {
    for (const auto& [resource, amount] : resources) summed["all"][resource] += amount;
  }
  Expect("lendable", summed, AmountsIn({{"all", test.want.at("lendable")}}));
}

void IsBorrowingOn(const Case& test) {
  Cluster c;
  c.PutAll(ArrayAt(test.input, "clusterQueues"), {});
  c.Charge("w", "cq", AmountsIn(ObjectAt(test.input, "usageOfClusterQueueCq")));
  const Amounts borrowed =
      c.Of(QueueKind::kClusterQueue, "cq", /*own_only=*/true,
           [](const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
             return tree.borrowed(QuotaView::kNow, r, row);
           });
  bool on_requested = false;
  for (const auto& [flavor, resources] : AmountsIn(ObjectAt(test.input, "requested"))) {
    for (const auto& [resource, amount] : resources) {
      const auto found = borrowed.find(flavor);
      on_requested = on_requested || (found != borrowed.end() && found->second.contains(resource));
    }
  }
  ExpectSame("borrowing", !borrowed.empty(), test.want.at("borrowing").as_bool());
  ExpectSame("borrowing on requested", on_requested,
             test.want.at("borrowingOnRequested").as_bool());
}

// What a workload that has quota is charged.
Amounts ChargeOf(const JsonObject& admission) {
  Amounts out;
  for (const Json& pod_set : ArrayAt(admission, "podSetAssignments")) {
    for (const auto& used : ObjectAt(pod_set.as_object(), "resourceUsage")) {
      const std::string flavor =
          StringAt(ObjectAt(pod_set.as_object(), "flavors"), std::string_view(used.key()));
      out[flavor][std::string(used.key())] += AmountOf(used.key(), used.value());
    }
  }
  return out;
}

bool HasCondition(const JsonObject& workload, std::string_view type) {
  return std::ranges::any_of(ArrayAt(ObjectAt(workload, "status"), "conditions"),
                             [&](const Json& condition) {
                               return StringAt(condition.as_object(), "type") == type &&
                                      StringAt(condition.as_object(), "status") == "True";
                             });
}

std::string KeyOf(const JsonObject& workload) {
  const JsonObject& meta = workload.at("metadata").as_object();
  return StringAt(meta, "namespace") + "/" + StringAt(meta, "name");
}

void ChargeWorkload(Cluster& c, const JsonObject& workload) {
  if (!HasCondition(workload, "QuotaReserved")) return;
  const JsonObject& admission = ObjectAt(ObjectAt(workload, "status"), "admission");
  c.Charge(KeyOf(workload), StringAt(admission, "clusterQueue"), ChargeOf(admission));
}

void Snapshot(const Case& test) {
  Cluster c;
  c.PutAll(ArrayAt(test.fixtures, "clusterQueues"), ArrayAt(test.fixtures, "cohorts"));
  std::map<std::string, JsonObject> workloads;
  for (const Json& workload : ArrayAt(test.fixtures, "workloads")) {
    workloads[KeyOf(workload.as_object())] = workload.as_object();
    ChargeWorkload(c, workload.as_object());
  }
  const auto check = [&](const JsonObject& snapshot) {
    for (const auto& [kind, list] : {std::pair(QueueKind::kClusterQueue, "clusterQueues"),
                                     std::pair(QueueKind::kCohort, "cohorts")}) {
      for (const auto& queue : ObjectAt(snapshot, list)) {
        const std::string_view name = queue.key();
        const JsonObject& want = queue.value().as_object();
        Expect(fmt::format("subtree of {}", name), c.Of(kind, name, false, Subtree),
               AmountsIn(ObjectAt(want, "subtreeQuota")));
        Expect(fmt::format("usage of {}", name), c.Of(kind, name, false, Used),
               AmountsIn(ObjectAt(want, "usage")));
      }
    }
  };
  check(ObjectAt(test.fixtures, "initialSnapshot"));
  for (const Json& key : ArrayAt(test.input, "removeWorkloads"))
    c.Discharge(std::string(key.as_string()));
  for (const Json& key : ArrayAt(test.input, "addWorkloads"))
    ChargeWorkload(c, workloads.at(std::string(key.as_string())));
  check(ObjectAt(test.want, "snapshot"));
}

void ReadCohort(const Cluster& c, std::string_view name, const JsonObject& want) {
  JsonObject nominal;
  for (const auto& flavor : ObjectAt(want, "quotas")) {
    JsonObject resources;
    for (const auto& resource : flavor.value().as_object())
      resources[resource.key()] = resource.value().as_object().at("nominal");
    nominal[flavor.key()] = resources;
  }
  const auto own = [](const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
    return tree.quota(r, row).nominal;
  };
  Expect("quota", c.Of(QueueKind::kCohort, name, true, own), AmountsIn(nominal));
  Expect("subtree", c.Of(QueueKind::kCohort, name, false, Subtree),
         AmountsIn(ObjectAt(want, "subtreeQuota")));
  Expect("usage", c.Of(QueueKind::kCohort, name, false, Used), AmountsIn(ObjectAt(want, "usage")));
}

// A step that upstream answers with an error leaves the queue inactive.
void Script(const Case& test) {
  Cluster c;
  for (const Json& json : test.steps) {
    const JsonObject& step = json.as_object();
    const std::string op = StringAt(step, "op");
    const JsonObject& want = ObjectAt(step, "want");
    if (op == "deleteCohort") {
      c.Delete(QueueKind::kCohort, StringAt(step, "key"));
    } else if (op == "readCohort") {
      ReadCohort(c, StringAt(step, "key"), want);
    } else if (op == "addOrUpdateCohort" || op == "addClusterQueue" || op == "updateClusterQueue") {
      const QueueKind kind =
          op == "addOrUpdateCohort" ? QueueKind::kCohort : QueueKind::kClusterQueue;
      c.Put(kind, ObjectAt(step, "object"));
      ExpectSame(op + " fails", !c.Active(kind, ObjectAt(step, "object")),
                 want.at("error").as_bool());
    } else if (op != "resyncGaugeMetrics") {  // Which is to end, and has no like here.
      throw std::runtime_error("unknown step " + op);
    }
    c.CheckAudit();
  }
}

// In the form of a ClusterQueue's status: by flavor and resource the total, and what is borrowed.
void CheckUsage(const Cluster& c, const std::string& name, const JsonArray& want) {
  Amounts totals;
  Amounts borrowed;
  for (const Json& json : want) {
    const JsonObject& flavor = json.as_object();
    for (const Json& resource : ArrayAt(flavor, "resources")) {
      const std::string of = StringAt(resource.as_object(), "name");
      const auto put = [&](Amounts& to, std::string_view key) {
        const int64_t amount = AmountOf(of, resource.as_object().at(key));
        if (amount != 0) to[StringAt(flavor, "name")][of] = amount;
      };
      put(totals, "total");
      put(borrowed, "borrowed");
    }
  }
  Expect("total", c.Of(QueueKind::kClusterQueue, name, true, Used), totals);
  const auto ask = [](const model::QuotaTree& tree, model::ResourceId r, uint32_t row) {
    // Without a cohort there is nobody to borrow from.
    return tree.parent(row) == model::QuotaTree::kNoRow ? 0
                                                        : tree.borrowed(QuotaView::kNow, r, row);
  };
  Expect("borrowed", c.Of(QueueKind::kClusterQueue, name, true, ask), borrowed);
}

void ClusterQueueUsage(const Case& test) {
  const JsonObject& queue = ObjectAt(test.input, "clusterQueue");
  const std::string name = StringAt(queue.at("metadata").as_object(), "name");
  Cluster reserved;
  Cluster admitted;
  int64_t reserving_count = 0;
  int64_t admitted_count = 0;
  for (Cluster* c : {&reserved, &admitted}) c->Put(QueueKind::kClusterQueue, queue);
  for (const Json& json : ArrayAt(test.input, "workloads")) {
    const JsonObject& workload = json.as_object();
    reserving_count += HasCondition(workload, "QuotaReserved") ? 1 : 0;
    ChargeWorkload(reserved, workload);
    if (!HasCondition(workload, "Admitted")) continue;
    ++admitted_count;
    ChargeWorkload(admitted, workload);
  }
  CheckUsage(reserved, name, ArrayAt(test.want, "reservedResources"));
  CheckUsage(admitted, name, ArrayAt(test.want, "usedResources"));
  ExpectSame("reserving", reserving_count, test.want.at("reservingWorkloads").as_int64());
  ExpectSame("admitted", admitted_count, test.want.at("admittedWorkloads").as_int64());
}

// ---- Preemption --------------------------------------------------------------------------------

// The priority with its boost, where the gate is on.
int32_t PriorityOf(const JsonObject& workload, const Case& test) {
  const Json* own = ObjectAt(workload, "spec").if_contains("priority");
  int64_t priority = own == nullptr ? 0 : own->as_int64();
  const Json* gate = test.gates.if_contains("PriorityBoost");
  if (gate != nullptr && gate->as_bool()) {
    const std::string boost = StringAt(ObjectAt(ObjectAt(workload, "metadata"), "annotations"),
                                       "kueue.x-k8s.io/priority-boost");
    int32_t amount = 0;  // What is no number is none.
    const auto end = boost.data() + boost.size();
    if (std::from_chars(boost.data(), end, amount).ptr == end) priority += amount;
  }
  return static_cast<int32_t>(priority);
}

Instant TimeOf(const std::string& text, Instant otherwise) {
  return text.empty() ? otherwise : api::ParseTimestamp(text).value();
}

Instant CreationOf(const JsonObject& workload) {
  return TimeOf(StringAt(ObjectAt(workload, "metadata"), "creationTimestamp"), Instant{});
}

// `uid` and `test` outlive it.
quota::Admitted AdmittedIn(const JsonObject& workload, const Case& test, std::string_view uid) {
  quota::Admitted out{.uid = uid,
                      .priority = PriorityOf(workload, test),
                      .reserved_at = TimeOf(test.now, Instant{}),
                      .queued_at = CreationOf(workload),
                      .evicted = HasCondition(workload, "Evicted")};
  for (const Json& condition : ArrayAt(ObjectAt(workload, "status"), "conditions")) {
    if (StringAt(condition.as_object(), "type") == "QuotaReserved" &&
        StringAt(condition.as_object(), "status") == "True") {
      out.reserved_at =
          TimeOf(StringAt(condition.as_object(), "lastTransitionTime"), out.reserved_at);
    }
  }
  return out;
}

void SatisfiesPreemptionPolicy(const Case& test) {
  const JsonObject& preemptor = ObjectAt(test.input, "preemptorWorkload");
  const quota::Preemptor who{.priority = PriorityOf(preemptor, test),
                             .queued_at = CreationOf(preemptor)};
  const quota::Admitted whom = AdmittedIn(ObjectAt(test.input, "candidateWorkload"), test, "");
  const model::EvictionPolicy policy =
      QueueWith("preemption", {{"withinClusterQueue", test.input.at("policy")}})
          .preemption.within_queue;
  ExpectSame("may evict", quota::MayEvict(policy, who, whom), test.want.at("result").as_bool());
}

void CandidatesOrdering(const Case& test) {
  if (test.options.at("admissionFairSharing").as_bool())
    throw NotBuilt("fair sharing of admission");
  std::map<std::string, model::QueueId> queues;
  const auto queue_of = [&](const std::string& name) {
    const auto next = static_cast<uint32_t>(queues.size());
    return queues.try_emplace(name, model::QueueId{next}).first->second;
  };
  std::vector<std::pair<quota::Admitted, std::string>> candidates;
  std::vector<std::string> uids;
  const JsonArray& list = ArrayAt(test.input, "candidates");
  uids.reserve(list.size());
  for (const Json& json : list) {
    const JsonObject& workload = ObjectAt(json.as_object(), "workload");
    const JsonObject& meta = ObjectAt(workload, "metadata");
    uids.push_back(StringAt(meta, "uid"));
    candidates.emplace_back(AdmittedIn(workload, test, uids.back()), StringAt(meta, "name"));
    candidates.back().first.queue = queue_of(StringAt(json.as_object(), "clusterQueue"));
  }
  const model::QueueId preemptors = queue_of(StringAt(test.fixtures, "preemptorClusterQueue"));
  std::ranges::sort(candidates, [&](const auto& a, const auto& b) {
    return quota::GoesBefore(a.first, b.first, preemptors);
  });
  std::string got;
  for (const auto& [candidate, name] : candidates) got += name + " ";
  std::string want;
  for (const Json& name : ArrayAt(test.want, "candidates"))
    want += std::string(name.as_string()) + " ";
  if (got != want) throw Mismatch(fmt::format("want {}, got {}", want, got));
}

// What each pod of a set asks for, of one resource.
int64_t RequestOf(const JsonObject& pod_set, std::string_view resource) {
  if (resource == "pods") return 1;
  int64_t sum = 0;
  const JsonObject& spec = ObjectAt(ObjectAt(pod_set, "template"), "spec");
  for (const Json& container : ArrayAt(spec, "containers")) {
    const JsonObject& requests = ObjectAt(ObjectAt(container.as_object(), "resources"), "requests");
    if (const Json* found = requests.if_contains(resource)) sum += AmountOf(resource, *found);
  }
  return sum;
}

std::vector<quota::Demand> DemandsOf(Cluster& c, const JsonObject& input, model::QueueId queue) {
  std::map<std::pair<uint32_t, uint32_t>, quota::Demand> demands;
  const JsonArray& pod_sets =
      ArrayAt(ObjectAt(ObjectAt(input, "incomingWorkload"), "spec"), "podSets");
  for (const Json& json : ArrayAt(ObjectAt(input, "incomingAssignment"), "podSets")) {
    const JsonObject& assigned = json.as_object();
    const auto named = std::ranges::find_if(pod_sets, [&](const Json& pod_set) {
      return StringAt(pod_set.as_object(), "name") == StringAt(assigned, "name");
    });
    if (named == pod_sets.end()) throw std::runtime_error("an assignment of no pod set");
    for (const auto& [resource, flavor] : ObjectAt(assigned, "flavors")) {
      const model::NameId name =
          c.state().vocabulary().names.Intern(StringAt(flavor.as_object(), "flavor"));
      const model::ResourceId r = c.Resource(resource);
      const uint32_t account = c.state().AccountFor(queue, name).row();
      quota::Demand& demand = demands[{account, r.value}];
      demand.account = account;
      demand.resource = r;
      demand.amount += RequestOf(named->as_object(), resource) * assigned.at("count").as_int64();
      demand.lacks = demand.lacks || StringAt(flavor.as_object(), "mode") == "Preempt";
    }
  }
  std::vector<quota::Demand> out;
  for (const auto& [key, demand] : demands) out.push_back(demand);
  return out;
}

// Workload -> reason, of those that carry it.
std::map<std::string, std::string> PreemptedIn(const JsonArray& workloads) {
  std::map<std::string, std::string> out;
  for (const Json& json : workloads) {
    for (const Json& condition : ArrayAt(ObjectAt(json.as_object(), "status"), "conditions")) {
      if (StringAt(condition.as_object(), "type") == "Preempted" &&
          StringAt(condition.as_object(), "status") == "True") {
        out[KeyOf(json.as_object())] = StringAt(condition.as_object(), "reason");
      }
    }
  }
  return out;
}

// Who is evicted and why; what is written to tell of it is not compared.
void Preemption(const Case& test) {
  if (test.options.at("fairSharing").as_bool()) throw NotBuilt("fair sharing");
  Cluster c;
  c.PutAll(ArrayAt(test.input, "clusterQueues"), ArrayAt(test.input, "cohorts"));
  const JsonArray& workloads = ArrayAt(test.input, "workloads");
  std::vector<std::string> uids;
  uids.reserve(workloads.size());
  std::map<model::QueueId, std::vector<quota::Admitted>> admitted;
  std::map<model::OwnerId, std::string> keys;
  for (const Json& json : workloads) {
    const JsonObject& workload = json.as_object();
    if (!HasCondition(workload, "QuotaReserved")) continue;
    ChargeWorkload(c, workload);
    uids.push_back(StringAt(ObjectAt(workload, "metadata"), "uid"));
    quota::Admitted a = AdmittedIn(workload, test, uids.back());
    a.owner = c.OwnerOf(KeyOf(workload));
    a.queue = c.state().FindQueue(
        QueueKind::kClusterQueue,
        StringAt(ObjectAt(ObjectAt(workload, "status"), "admission"), "clusterQueue"));
    admitted[a.queue].push_back(a);
    keys[a.owner] = KeyOf(workload);
  }
  const JsonObject& incoming = ObjectAt(test.input, "incomingWorkload");
  const model::QueueId queue =
      c.state().FindQueue(QueueKind::kClusterQueue, StringAt(test.input, "incomingClusterQueue"));
  const std::vector<quota::Demand> demands = DemandsOf(c, test.input, queue);
  const uint64_t before = HashOfLedger(c);
  model::Transaction t = c.state().Begin();
  const std::vector<quota::Victim> victims =
      quota::FindVictims(
          c.state(), t,
          {.queue = queue,
           .priority = PriorityOf(incoming, test),
           .queued_at = CreationOf(incoming),
           .demands = demands},
          [&](model::QueueId q) { return std::span<const quota::Admitted>(admitted[q]); })
          .value_or(std::vector<quota::Victim>{});
  ExpectSame("the ledger after", before == HashOfLedger(c), true);
  ExpectSame("victims", static_cast<int64_t>(victims.size()),
             test.want.at("preemptedCount").as_int64());
  std::map<std::string, std::string> got = PreemptedIn(workloads);
  for (const quota::Victim& victim : victims) {
    if (!victim.workload.evicted)
      got[keys.at(victim.workload.owner)] = translate::ToString(victim.reason);
  }
  const std::map<std::string, std::string> want = PreemptedIn(ArrayAt(test.want, "workloads"));
  if (got == want) return;
  std::string text = "victims\n  want";
  for (const auto& [key, reason] : want) text += fmt::format(" {} {}", key, reason);
  text += "\n  got ";
  for (const auto& [key, reason] : got) text += fmt::format(" {} {}", key, reason);
  throw Mismatch(text);
}

void PreemptionMessage(const Case& test) {
  std::optional<model::VictimReason> reason;
  const std::string name = StringAt(test.input, "reason");
  for (const auto r : {model::VictimReason::kInQueue, model::VictimReason::kReclaimed,
                       model::VictimReason::kReclaimedByBorrowing}) {
    if (translate::ToString(r) == name) reason = r;
  }
  if (!name.empty() && !reason) throw NotBuilt("fair sharing");
  const JsonObject& metadata = ObjectAt(ObjectAt(test.input, "preemptor"), "metadata");
  const std::string uid = StringAt(metadata, "uid");
  const std::string job = StringAt(ObjectAt(metadata, "labels"), std::string(api::kJobUidLabel));
  const std::string preemptor = StringAt(test.input, "preemptorPath");
  const std::string preemptee = StringAt(test.input, "preempteePath");
  const std::string text = translate::PreemptionText({.uid = uid,
                                                      .job_uid = job,
                                                      .reason = reason,
                                                      .preemptor_path = preemptor,
                                                      .preemptee_path = preemptee});
  if (text != StringAt(test.want, "result")) throw Mismatch(text);
}

using Table = void (*)(const Case&);

const std::map<std::string_view, Table>& Tables() {
  static const std::map<std::string_view, Table> kTables = {
      {"TestAdmissionChecksForWorkload", AdmissionChecks},
      {"TestAssignFlavors", AssignFlavors},
      {"TestAssignFlavorsWithAllowedFlavors", AllowedFlavors},
      {"TestAssignFlavors_LeaderWorkerSetTASFlavor", TopologyFlavors},
      {"TestAssignmentClusterQueueState", PendingFlavors},
      {"TestAvailable", Available},
      {"TestBackoffWaitingTimeExpired", BackoffExpired},
      {"TestCandidatesOrdering", CandidatesOrdering},
      {"TestClusterQueueUsage", ClusterQueueUsage},
      {"TestCohortCycles", Script},
      {"TestCohortLendable", CohortLendable},
      {"TestDeleteCohortUpdatesAncestorSubtreeQuota", Script},
      {"TestDeletedFlavors", AssignFlavors},
      {"TestEntryOrdering", EntryOrdering},
      {"TestFilterChecksForAdmission", AdmissionChecks},
      {"TestFindTopologyAssignments", FindTopologyAssignments},
      {"TestFindTopologyAssignmentsMultiLayerReplacement", ReplaceUnhealthyNode},
      {"TestFromQuotaReservedOrAdmittedToPending", LostReservation},
      {"TestGetMaxRetryTime", RetryTime},
      {"TestGetQueueOrderTimestamp", QueueOrderTimestamp},
      {"TestHierarchical", ChosenFlavors},
      {"TestHierarchicalPreemptions", Preemption},
      {"TestIsBorrowingOn", IsBorrowingOn},
      {"TestIsNoFitDueToCapacityAndLimits", NoFitReason},
      {"TestIsOnHold", IsOnHold},
      {"TestIsPreferred", IsPreferred},
      {"TestLastAssignmentOutdated", LastAssignmentOutdated},
      {"TestLastSchedulingContext", LastSchedulingContext},
      {"TestNeedsSecondPass", NeedsSecondPass},
      {"TestPreemption", Preemption},
      {"TestPreemptionMessage", PreemptionMessage},
      {"TestReclaimBeforePriorityPreemption", ChosenFlavors},
      {"TestSatisfiesPreemptionPolicy", SatisfiesPreemptionPolicy},
      {"TestResourcesToReserve", ResourcesToReserve},
      {"TestSchedule", OneCycle},
      {"TestScheduleConcurrentAdmission", OneCycle},
      {"TestScheduleForFairSharing", OneCycle},
      {"TestScheduleRecomputePreemptionTargets", OneCycle},
      {"TestSnapshotAddRemoveWorkload", Snapshot},
      {"TestSnapshotAddRemoveWorkloadWithLendingLimit", Snapshot},
      {"TestStrictFIFO", FirstPopped},
      {"TestSyncAdmittedCondition", AdmittedCondition},
  };
  return kTables;
}

// What tables of a group lack that are not built.
std::string_view Lacking(std::string_view group) {
  static const std::map<std::string_view, std::string_view> kLacking = {
      {"1-cycle", "fair sharing, an order without priorities, requeueing, concurrent admission"},
      {"2-preemption", "fair sharing"},
      {"3-tas", "placement by alpha gates, cycles with topologies"},
      {"4-flavors", "placement in topologies"},
      {"5-afs", "fair sharing of admission"},
      {"6-cache", "workloads, readiness of queues, fair shares"},
      {"7-queue", "lines of workloads"},
      {"8-workload", "workloads"},
  };
  const auto found = kLacking.find(group);
  return found == kLacking.end() ? "this group" : found->second;
}

struct Tally {
  int64_t passed = 0;
  int64_t failed = 0;
  int64_t not_built = 0;
};

void RunCase(const std::string& suite, const JsonObject& file, const Json& json, Tally& tally,
             int& shown) {
  const JsonObject& definitions = ObjectAt(file, "definitions");
  const JsonObject& test = json.as_object();
  try {
    const Case resolved{.fixtures = Resolved(ObjectAt(file, "fixtures"), definitions).as_object(),
                        .input = Resolved(ObjectAt(test, "input"), definitions).as_object(),
                        .steps = Resolved(ArrayAt(test, "steps"), definitions).as_array(),
                        .want = Resolved(ObjectAt(test, "want"), definitions).as_object(),
                        .options = ObjectAt(test, "options"),
                        .gates = ObjectAt(test, "featureGates"),
                        .now = StringAt(test, "now")};
    Tables().at(suite)(resolved);
    ++tally.passed;
  } catch (const NotBuilt& e) {
    ++tally.not_built;
  } catch (const std::exception& e) {  // A mismatch, or a member that is not as the format says.
    ++tally.failed;
    if (++shown <= kFailuresShownMax)
      fmt::print("{}: {}: {}\n", suite, StringAt(test, "name"), e.what());
  }
}

}  // namespace
}  // namespace berth::kueue

namespace berth {

using api::Json;
using api::JsonObject;

bool HoldsKueueVectors(const std::filesystem::path& folder) {
  const auto index = ReadObject(folder / "index.json");
  return index && StringAt(*index, "project") == "kubernetes-sigs/kueue";
}

int RunKueueVectors(const std::filesystem::path& folder) {
  const auto index = ReadObject(folder / "index.json");
  if (!index) return 2;
  std::map<std::string, int64_t> not_built;
  kueue::Tally all;
  int shown = 0;
  for (const Json& json : ArrayAt(*index, "suites")) {
    const JsonObject& suite = json.as_object();
    const std::string name = StringAt(suite, "suite");
    if (!kueue::Tables().contains(name)) {
      not_built[StringAt(suite, "group")] += suite.at("cases").as_int64();
      continue;
    }
    const auto file = ReadObject(folder / StringAt(suite, "file"));
    if (!file) {
      fmt::print(stderr, "{} can't be read\n", StringAt(suite, "file"));
      return 2;
    }
    kueue::Tally tally;
    for (const Json& test : ArrayAt(*file, "cases"))
      kueue::RunCase(name, *file, test, tally, shown);
    // A table that is cut must not pass for the whole one.
    if (tally.passed + tally.failed + tally.not_built != suite.at("cases").as_int64())
      ++tally.failed;
    fmt::print("  {:<50} {:>4} passed, {:>4} failed{}\n", name, tally.passed, tally.failed,
               tally.not_built == 0 ? "" : fmt::format(", {:>4} not built yet", tally.not_built));
    not_built[StringAt(suite, "group")] += tally.not_built;
    all.passed += tally.passed;
    all.failed += tally.failed;
  }
  int64_t skipped = 0;
  for (const auto& [group, count] : not_built) {
    if (count == 0) continue;
    fmt::print("{}: {} cases not built yet, lacking {}\n", group, count, kueue::Lacking(group));
    skipped += count;
  }
  fmt::print("{} passed, {} failed, {} not built yet\n", all.passed, all.failed, skipped);
  return all.failed == 0 && all.passed > 0 ? 0 : 1;
}

}  // namespace berth
