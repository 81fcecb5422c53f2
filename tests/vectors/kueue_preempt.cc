#include "kueue_preempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "api/timestamp.h"
#include "base/time.h"
#include "quota/over_index.h"
#include "quota/preempt.h"
#include "reading.h"
#include "translate/quota_text.h"

// Goal: those give way for quota whom Kueue evicts, in its order, and are told why in its words.
// Method: whoever holds quota is charged in the ledger; victims are looked for there.
namespace berth::kueue {
namespace {

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

quota::Admitted AdmittedIn(const JsonObject& workload, const Case& test, std::string_view uid) {
  quota::Admitted out{.uid = std::string(uid),
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

}  // namespace

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
    throw NotApplicable("fair sharing of admission");
  std::map<std::string, model::QueueId> queues;
  const auto queue_of = [&](const std::string& name) {
    const auto next = static_cast<uint32_t>(queues.size());
    return queues.try_emplace(name, model::QueueId{next}).first->second;
  };
  std::vector<std::pair<quota::Admitted, std::string>> candidates;
  const JsonArray& list = ArrayAt(test.input, "candidates");
  for (const Json& json : list) {
    const JsonObject& workload = ObjectAt(json.as_object(), "workload");
    const JsonObject& meta = ObjectAt(workload, "metadata");
    candidates.emplace_back(AdmittedIn(workload, test, StringAt(meta, "uid")),
                            StringAt(meta, "name"));
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

// Who is evicted and why; what is written to tell of it is not compared.
void Preemption(const Case& test) {
  if (test.options.at("fairSharing").as_bool()) throw NotApplicable("fair sharing");
  Cluster c;
  c.PutAll(ArrayAt(test.input, "clusterQueues"), ArrayAt(test.input, "cohorts"));
  const JsonArray& workloads = ArrayAt(test.input, "workloads");
  std::map<model::QueueId, quota::Holders> admitted;
  bool leaves = false;  // Some of them; held all the same, as upstream has it.
  std::map<model::OwnerId, std::string> keys;
  for (const Json& json : workloads) {
    const JsonObject& workload = json.as_object();
    if (!HasCondition(workload, "QuotaReserved")) continue;
    ChargeWorkload(c, workload);
    quota::Admitted a = AdmittedIn(workload, test, StringAt(ObjectAt(workload, "metadata"), "uid"));
    // Most cases name none.
    if (a.uid.empty()) a.uid = KeyOf(workload);
    a.owner = c.OwnerOf(KeyOf(workload));
    a.queue = c.state().FindQueue(
        QueueKind::kClusterQueue,
        StringAt(ObjectAt(ObjectAt(workload, "status"), "admission"), "clusterQueue"));
    leaves = leaves || a.evicted;
    if (!admitted[a.queue].insert(a).second) throw Mismatch("a uid twice");
    keys[a.owner] = KeyOf(workload);
  }
  const JsonObject& incoming = ObjectAt(test.input, "incomingWorkload");
  const model::QueueId queue =
      c.state().FindQueue(QueueKind::kClusterQueue, StringAt(test.input, "incomingClusterQueue"));
  const std::vector<quota::Demand> demands = DemandsOf(c, test.input, queue);
  const uint64_t before = HashOfLedger(c);
  const quota::HoldersOf holders = [&](model::QueueId q) -> const quota::Holders& {
    return admitted[q];
  };
  quota::OverIndex index(c.state(), holders);
  model::Transaction t = c.state().Begin();
  const std::vector<quota::Victim> victims =
      quota::FindVictims(c.state(), t,
                         {.queue = queue,
                          .priority = PriorityOf(incoming, test),
                          .queued_at = CreationOf(incoming),
                          .demands = demands},
                         holders, leaves ? nullptr : &index)
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
  if (!name.empty() && !reason) throw NotApplicable("fair sharing");
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

}  // namespace berth::kueue
