#include "kueue_quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "control/queues.h"
#include "control/quota.h"
#include "reading.h"
#include "translate/workload_facts.h"

// Goal: berth's tree of queues has the amounts that Kueue's has. Method: the objects of a case
// become facts of the model, usage becomes claims of its ledger, and what a queue has, uses and has
// left is compared.
namespace berth::kueue {
namespace {

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

// In the form of a queue's status: by flavor and resource the total, or what is borrowed.
Amounts TotalsIn(const JsonArray& flavors, std::string_view key) {
  Amounts out;
  for (const Json& json : flavors) {
    const JsonObject& flavor = json.as_object();
    for (const Json& resource : ArrayAt(flavor, "resources")) {
      // A LocalQueue does not tell what is borrowed.
      if (!resource.as_object().contains(key)) continue;
      const std::string of = StringAt(resource.as_object(), "name");
      const int64_t amount = AmountOf(of, resource.as_object().at(key));
      if (amount != 0) out[StringAt(flavor, "name")][of] = amount;
    }
  }
  return out;
}

void CheckUsages(const api::FlavorUsages& got, const JsonArray& want) {
  Amounts totals;
  Amounts borrowed;
  for (const api::FlavorUsage& usage : got) {
    for (const api::ResourceUsage& of : usage.resources) {
      if (of.total != 0) totals[usage.flavor][of.resource] = of.total;
      if (of.borrowed != 0) borrowed[usage.flavor][of.resource] = of.borrowed;
    }
  }
  Expect("total", totals, TotalsIn(want, "total"));
  Expect("borrowed", borrowed, TotalsIn(want, "borrowed"));
}

// The facts of a workload, applied.
model::WorkloadUpsert Take(Cluster& c, const JsonObject& workload) {
  auto facts =
      translate::WorkloadFacts(ViewOf(&codec::Decoder::Workload, workload), c.state().vocabulary());
  if (!facts) throw Mismatch(facts.error().message);
  c.state().Apply(*facts);
  return *std::move(facts);
}

}  // namespace

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

void ClusterQueueUsage(const Case& test) {
  const JsonObject& object = ObjectAt(test.input, "clusterQueue");
  Cluster c;
  c.Put(QueueKind::kClusterQueue, object);
  for (const Json& workload : ArrayAt(test.input, "workloads")) Take(c, workload.as_object());
  c.CheckAudit();
  control::CountsOfQueues counts = control::CountWorkloads(c.state());
  const auto queue = ViewOf(&codec::Decoder::ClusterQueue, object);
  const model::NameId name = c.Name(queue.meta.name);
  const control::QueueUsage usage =
      control::UsageOf(queue, counts.held_of_queue[name], c.state().vocabulary());
  CheckUsages(usage.reserving, ArrayAt(test.want, "reservedResources"));
  CheckUsages(usage.admitted, ArrayAt(test.want, "usedResources"));
  ExpectSame("reserving", counts.of_queue[name].reserving,
             test.want.at("reservingWorkloads").as_int64());
  ExpectSame("admitted", counts.of_queue[name].admitted,
             test.want.at("admittedWorkloads").as_int64());
}

// What those hold that came through the LocalQueue.
void LocalQueueUsage(const Case& test) {
  Cluster c;
  const JsonObject& object = ObjectAt(test.input, "clusterQueue");
  if (!object.empty()) c.Put(QueueKind::kClusterQueue, object);
  std::set<std::string> refused;
  for (const Json& json : ArrayAt(test.input, "workloads")) {
    const model::WorkloadUpsert facts = Take(c, json.as_object());
    const model::Workload& row = c.state().workloads().at(c.state().FindWorkload(facts.uid));
    // Quota of a queue that is not there is charged, and told of no LocalQueue.
    if (object.empty() || ChargedTo(row).charges.empty())
      refused.insert(StringAt(ObjectAt(json.as_object(), "metadata"), "name"));
  }
  c.CheckAudit();
  control::QueueUsage usage;
  if (!object.empty()) {
    control::CountsOfQueues counts = control::CountWorkloads(c.state());
    const model::KeyId key = c.state().FindKey(KeyOf(ObjectAt(test.fixtures, "localQueue")));
    usage = control::UsageOfLocal(ViewOf(&codec::Decoder::ClusterQueue, object),
                                  counts.held_of_local[key], c.state().vocabulary());
  }
  CheckUsages(usage.reserving, ArrayAt(test.want, "reservedResources"));
  std::set<std::string> wanted;
  for (const Json& name : ArrayAt(test.want, "notAddedWorkloads")) wanted.emplace(name.as_string());
  ExpectSame("without quota", refused == wanted, true);
}

// The words are berth's own: they say what to change, too.
void QueueReadiness(const Case& test) {
  control::QueueReferences references;
  for (const Json& json : ArrayAt(test.input, "resourceFlavors")) {
    const auto flavor = ViewOf(&codec::Decoder::ResourceFlavor, json.as_object());
    references.topology_of[flavor.meta.name] = flavor.topology;
  }
  for (const Json& json : ArrayAt(test.input, "admissionChecks")) {
    const auto check = ViewOf(&codec::Decoder::AdmissionCheck, json.as_object());
    const api::Condition* active = api::Find(check.conditions, "Active");
    references.checks[check.meta.name] = {.controller = check.controller,
                                          .told = active != nullptr,
                                          .active = active != nullptr && active->status == "True"};
  }
  control::Readiness got = {
      .active = false, .reason = "NotFound", .message = "ClusterQueue not found"};
  for (const Json& json : ArrayAt(test.input, "clusterQueues")) {
    api::ClusterQueue queue = ViewOf(&codec::Decoder::ClusterQueue, json.as_object());
    if (queue.meta.name != StringAt(test.input, "clusterQueueName")) continue;
    if (test.options.at("terminateClusterQueue").as_bool()) queue.meta.deletion_time = Instant{};
    got = ReadinessOf(queue, references);
  }
  const std::string text = fmt::format("{} {}", got.active ? "True" : "False", got.reason);
  const std::string want =
      fmt::format("{} {}", StringAt(test.want, "status"), StringAt(test.want, "reason"));
  if (text != want) throw Mismatch(fmt::format("want {}, got {}: {}", want, text, got.message));
}

}  // namespace berth::kueue
