#include "explore/workload_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "api/types.h"
#include "api/well_known.h"
#include "codec/scan.h"
#include "explore/fitting.h"
#include "explore/reservations.h"
#include "model/workload_stage.h"

namespace berth::explore {
namespace {

constexpr std::string_view kLocalQueuesPrefix = "localqueues.kueue.x-k8s.io/";

bool IsWorkload(std::string_view object) {
  return codec::StringMember(object, "kind") == "Workload";
}

// ---- What an object says ---------------------------------------------------------------------
// Read here once more, and not as the scheduler reads it: a defect of its reading is to show.

bool Says(const api::Workload& workload, std::string_view type) {
  const api::Condition* condition = api::Find(workload.conditions, type);
  return condition != nullptr && condition->status == "True";
}

bool Holds(const api::Workload& workload) {
  return Says(workload, "QuotaReserved") && !Says(workload, "Finished");
}

bool HasToGo(const api::Workload& workload) { return Holds(workload) && Says(workload, "Evicted"); }

bool HasCheck(const api::Workload& workload, std::string_view state) {
  return std::ranges::find(workload.checks, state, &api::CheckState::state) !=
         workload.checks.end();
}

bool PassedAll(const api::Workload& workload) {
  return std::ranges::all_of(workload.checks,
                             [](const api::CheckState& check) { return check.state == "Ready"; });
}

// Whether places on nodes of some of its pods are put off until it passed its checks.
bool AwaitsPlaces(const api::Workload& workload) {
  return workload.admission && std::ranges::any_of(workload.admission->pod_sets, [](const auto& p) {
           return p.topology_delayed && !p.topology;
         });
}

bool StandsOnFailed(const api::Workload& workload) {
  if (!workload.admission) return false;
  for (const api::PodSetAssignment& pods : workload.admission->pod_sets) {
    if (!pods.topology) continue;
    for (const api::TopologyDomain& domain : pods.topology->domains) {
      if (std::ranges::find(workload.unhealthy_nodes, domain.values.back()) !=
          workload.unhealthy_nodes.end())
        return true;
    }
  }
  return false;
}

// Whether a second pass is due of it: it has quota and is to keep it, and stands on a node that
// failed, or passed all checks and has places to get before it is admitted.
bool PassIsDue(const api::Workload& workload) {
  if (!Holds(workload) || HasToGo(workload)) return false;
  const bool places = !workload.checks.empty() && PassedAll(workload) && AwaitsPlaces(workload);
  return StandsOnFailed(workload) || (places && !Says(workload, "Admitted"));
}

bool Has(const std::vector<std::string>& list, const std::string& what) {
  return std::ranges::find(list, what) != list.end();
}

bool HasPlaces(const api::Workload& workload) {
  return workload.admission && std::ranges::any_of(workload.admission->pod_sets, [](const auto& p) {
           return p.topology.has_value();
         });
}

// What the scheduler did to the places of a workload that had quota.
void JudgeMove(const std::string& key, const api::Workload& before, const api::Workload& after,
               std::vector<std::string>& findings) {
  const PlacesByNode from = PlacesByNodeOf(before);
  const PlacesByNode to = PlacesByNodeOf(after);
  if (from != to && before.meta.deletion_time)
    findings.push_back(fmt::format("workload {} gets other places, and is being deleted", key));
  if (from != to && !PassIsDue(before))
    findings.push_back(fmt::format("workload {} gets other places, and nothing is due of it", key));
  if (from != to && HasPlaces(before)) {
    for (const auto& [of, count] : from) {
      const auto& [set, node] = of;
      const auto at = to.find(of);
      if (Has(before.unhealthy_nodes, node) || (at != to.end() && at->second >= count)) continue;
      findings.push_back(
          fmt::format("pods of workload {} are moved from node {}, which is well", key, node));
    }
  }
  // All whose nodes are told to have failed are moved together.
  for (const auto& [of, count] : to) {
    if (from != to && Has(before.unhealthy_nodes, of.second) && from.contains(of)) {
      findings.push_back(
          fmt::format("pods of workload {} are left on node {}, which failed", key, of.second));
    }
  }
}

// Which of its nodes are told to have failed: none that it gets places on, and none less unless it
// gives them up.
void JudgeFailures(const std::string& key, const api::Workload& before, const api::Workload& after,
                   std::vector<std::string>& findings) {
  const bool had = Says(before, "QuotaReserved");
  const bool evicted = HasToGo(after);
  const PlacesByNode from = PlacesByNodeOf(before);
  // What was told of the places of an earlier admission ends with the next.
  const std::vector<std::string>& failed = had ? before.unhealthy_nodes : after.unhealthy_nodes;
  for (const auto& [of, count] : PlacesByNodeOf(after)) {
    const auto& [set, node] = of;
    if (!Has(failed, node)) continue;
    const auto at = from.find(of);
    if (!had || at == from.end() || at->second < count) {
      findings.push_back(
          fmt::format("workload {} gets places on node {}, which failed", key, node));
    }
    if (had && !evicted && !Has(after.unhealthy_nodes, node)) {
      findings.push_back(
          fmt::format("that node {} failed is forgotten, and workload {} stands there", node, key));
    }
  }
}

// The pods of the set have quota and no place, and none is to come.
bool LacksPlaces(const api::Workload& workload, const api::WorkloadPodSet& set) {
  if (!Says(workload, "QuotaReserved") || !set.topology) return false;
  if (!workload.admission) return true;
  const auto& given = workload.admission->pod_sets;
  const auto at = std::ranges::find(given, set.name, &api::PodSetAssignment::name);
  if (at == given.end()) return true;
  return at->count.value_or(set.count) > 0 && !at->topology && !at->topology_delayed;
}

// Who asks for places in a topology has them with its quota, or gets them once it passed its
// checks; what it has it keeps.
void JudgeLack(const std::string& key, const api::Workload& before, const api::Workload& after,
               std::vector<std::string>& findings) {
  for (const api::WorkloadPodSet& set : after.pod_sets) {
    const bool lacked = Says(before, "QuotaReserved") && LacksPlaces(before, set);
    if (!lacked && LacksPlaces(after, set))
      findings.push_back(fmt::format("workload {} has quota, and no places for its pods", key));
  }
}

// What the places of a set are by node, against what it asks for: all its pods have one, those of
// a level that is required stand in one domain of it, and slices are whole, but for the last.
void JudgeShape(const std::string& key, const api::WorkloadPodSet& set,
                const api::PodSetAssignment& given, const NodeLabels& labels,
                std::vector<std::string>& findings) {
  int64_t all = 0;
  std::map<std::string, int64_t> domains;
  std::map<std::string, int64_t> slices;
  const auto value = [&](const std::string& node, const std::string& level) {
    const auto of = labels.find(node);
    if (level.empty() || of == labels.end()) return std::string();
    return std::string(api::Find(of->second, level).value_or(""));
  };
  api::TopologySlice slice;
  if (set.topology && !set.topology->slices.empty()) slice = set.topology->slices.front();
  for (const api::TopologyDomain& domain : given.topology->domains) {
    all += domain.count;
    domains[value(domain.values.back(), set.topology ? set.topology->required : "")] +=
        domain.count;
    slices[value(domain.values.back(), slice.level)] += domain.count;
  }
  const int64_t count = given.count.value_or(set.count);
  if (all != count)
    findings.push_back(fmt::format("workload {} gets {} places for {} pods", key, all, count));
  if (domains.size() > 1) {
    findings.push_back(
        fmt::format("workload {} gets places in {} domains of one", key, domains.size()));
  }
  const auto broken = std::ranges::count_if(
      slices, [&](const auto& entry) { return entry.second % slice.size != 0; });
  if (broken > (count % slice.size == 0 ? 0 : 1))
    findings.push_back(fmt::format("slices of workload {} are in pieces", key));
}

}  // namespace

// ---- What the scheduler heard ----------------------------------------------------------------

// An answer may be older than what was heard since, so may be that it is gone.
void WorkloadChecks::Hear(std::string_view object, bool gone) {
  const api::Workload workload = decoder_.Workload(object).value();
  Heard& heard = heard_[workload.meta.namespace_name + "/" + workload.meta.name];
  const uint64_t version = sim::VersionIn(object);
  if (version < heard.version || (heard.gone && workload.meta.uid == heard.uid)) return;
  heard = {.uid = workload.meta.uid,
           .version = version,
           .finished = Says(workload, "Finished"),
           .gone = gone};
}

void WorkloadChecks::OnHeard(const env::Input& input) {
  if (const auto* response = std::get_if<env::Response>(&input)) {
    const std::string_view body = response->response.body.view();
    if (response->response.status >= 300) return;
    if (body.contains(R"("kind":"WorkloadList")")) {
      codec::ArrayScanner items(codec::Member(body, "items"));
      while (items.Next()) Hear(items.value(), false);
    } else if (IsWorkload(body)) {
      Hear(body, false);
    }
  } else if (const auto* data = std::get_if<env::StreamData>(&input)) {
    const std::string type = codec::StringMember(data->data.view(), "type");
    const std::string_view object = codec::Member(data->data.view(), "object");
    if (type != "BOOKMARK" && type != "ERROR" && IsWorkload(object))
      Hear(object, type == "DELETED");
  }
}

// ---- What it sends ---------------------------------------------------------------------------

std::vector<std::string> WorkloadChecks::OnSent(const env::HttpRequest& request) const {
  if (request.method == env::Method::kGet || !request.target.contains("/workloads/")) return {};
  const std::string uid =
      codec::StringMember(codec::Member(request.body.view(), "metadata"), "uid");
  const auto heard = std::ranges::find_if(
      heard_, [&](const auto& entry) { return entry.second.uid == uid && !entry.second.gone; });
  if (heard == heard_.end())
    return {fmt::format("{} is written, and it is not known to be there", request.target)};
  std::vector<std::string> findings;
  if (heard->second.finished)
    findings.push_back(
        fmt::format("{} is written, and it is known to be finished", request.target));
  if (sim::VersionIn(request.body.view()) != heard->second.version) {
    findings.push_back(
        fmt::format("{} is written on another version than was heard of last", request.target));
  }
  return findings;
}

// ---- What becomes durable --------------------------------------------------------------------

std::vector<std::string> WorkloadChecks::OnCommit(const env::JournalRecord& record,
                                                  bool by_scheduler) {
  std::vector<std::string> findings;
  if (record.key.starts_with(sim::kNodesPrefix) && !record.value.empty()) {
    const api::Node node = decoder_.Node(record.value.view()).value();
    labels_[node.meta.name] = node.meta.labels;
  }
  if (!record.key.starts_with(kWorkloadsPrefix)) return findings;
  const std::string key = record.key.substr(kWorkloadsPrefix.size());
  const auto found = workloads_.find(key);
  const api::Workload before = found == workloads_.end() ? api::Workload{} : found->second;
  if (record.value.empty()) {
    workloads_.erase(key);
    return findings;
  }
  const api::Workload after = decoder_.Workload(record.value.view()).value();
  workloads_[key] = after;
  if (!by_scheduler || before.meta.uid != after.meta.uid) return findings;
  const bool had = Says(before, "QuotaReserved");
  const bool has = Says(after, "QuotaReserved");
  if (before.meta.deletion_time && !had && has)
    findings.push_back(fmt::format("workload {} gets quota, and is being deleted", key));
  const api::Condition* evicted = api::Find(after.conditions, "Evicted");
  const bool evicts = !HasToGo(before) && HasToGo(after);
  if (evicts && evicted->reason == "NodeFailures") ++displaced_;
  if (evicts && evicted->reason == "NodeFailures" && !PassIsDue(before)) {
    findings.push_back(
        fmt::format("workload {} is evicted for nodes, and nothing is due of it", key));
  }
  if (had && has) JudgeMove(key, before, after, findings);
  if (has) JudgeFailures(key, before, after, findings);
  if (has) JudgeShapes(key, before, after, findings);
  if (!Says(before, "Admitted") && Says(after, "Admitted")) {
    if (!PassedAll(after))
      findings.push_back(fmt::format("workload {} is admitted, and a check is not ready", key));
    if (AwaitsPlaces(after))
      findings.push_back(fmt::format("workload {} is admitted, and its places are to come", key));
  }
  return findings;
}

// Of places on nodes that it gets.
void WorkloadChecks::JudgeShapes(const std::string& key, const api::Workload& before,
                                 const api::Workload& after,
                                 std::vector<std::string>& findings) const {
  JudgeLack(key, before, after, findings);
  if (PlacesByNodeOf(before) == PlacesByNodeOf(after) || !after.admission) return;
  for (const api::WorkloadPodSet& set : after.pod_sets) {
    const auto given =
        std::ranges::find(after.admission->pod_sets, set.name, &api::PodSetAssignment::name);
    const bool by_node = given != after.admission->pod_sets.end() && given->topology &&
                         given->topology->levels.back() == api::kHostnameLabel;
    if (by_node) JudgeShape(key, set, *given, labels_, findings);
  }
}

// ---- At rest ---------------------------------------------------------------------------------

namespace {

const Bytes* Document(const sim::Truth& truth, const std::string& key) {
  const auto at = truth.others().find(key);
  return at == truth.others().end() ? nullptr : &at->second;
}

// Whether its queues are there, and the stop of both.
struct QueuesAbove {
  bool there = false;
  std::vector<api::RequiredCheck> checks;
  api::StopPolicy cluster_queue = api::StopPolicy::kNone;
  api::StopPolicy local_queue = api::StopPolicy::kNone;
  [[nodiscard]] bool drain() const {
    return cluster_queue == api::StopPolicy::kHoldAndDrain ||
           local_queue == api::StopPolicy::kHoldAndDrain;
  }
};
QueuesAbove QueuesOf(const sim::Truth& truth, const api::Workload& workload) {
  codec::Decoder decoder;
  QueuesAbove above;
  std::string name;
  if (const Bytes* local =
          Document(truth, fmt::format("{}{}/{}", kLocalQueuesPrefix, workload.meta.namespace_name,
                                      workload.queue))) {
    const api::LocalQueue queue = decoder.LocalQueue(local->view()).value();
    above.local_queue = queue.stop;
    above.there = true;
    name = queue.cluster_queue;
  }
  if (workload.admission) name = workload.admission->cluster_queue;
  const Bytes* document = Document(truth, fmt::format("{}/{}", sim::kQueuesPrefix, name));
  above.there = above.there && document != nullptr;
  if (document == nullptr) return above;
  const api::ClusterQueue queue = decoder.ClusterQueue(document->view()).value();
  above.cluster_queue = queue.stop;
  above.checks = queue.checks;
  return above;
}

// The check that its queue asks for, with the flavors that it got, and that is not among its own.
// Empty: none.
std::string LackedCheck(const sim::Truth& truth, const api::Workload& workload) {
  if (!Holds(workload) || HasToGo(workload) || !workload.admission) return {};
  const auto has_any = [&](const std::vector<std::string>& flavors) {
    return std::ranges::any_of(workload.admission->pod_sets, [&](const auto& given) {
      return std::ranges::any_of(given.flavors,
                                 [&](const auto& entry) { return Has(flavors, entry.second); });
    });
  };
  for (const api::RequiredCheck& check : QueuesOf(truth, workload).checks) {
    const bool asked = check.flavors.empty() || has_any(check.flavors);
    if (asked && std::ranges::find(workload.checks, check.name, &api::CheckState::name) ==
                     workload.checks.end())
      return check.name;
  }
  return {};
}

// What nobody did about a workload that is to run and has quota. Empty: nothing was to be done.
std::string_view LeftUndoneOfHolder(const api::Workload& workload, const QueuesAbove& queues) {
  if (HasToGo(workload)) return {};
  if (HasCheck(workload, "Retry")) return "is to try a check again, and is not evicted";
  if (queues.there && queues.drain()) return "is in a queue that is drained, and is not evicted";
  // Whoever is to be admitted with it may have checks to pass for ever.
  const api::Condition* admitted = api::Find(workload.conditions, "Admitted");
  const bool awaits_mates = admitted != nullptr && admitted->reason == "WaitingForGang";
  const bool may_run = PassedAll(workload) && !AwaitsPlaces(workload) && !awaits_mates;
  if (queues.there && may_run && !Says(workload, "Admitted"))
    return "has passed what it is to pass, and is not admitted";
  return {};
}

// What nobody did about a workload that is to run.
std::string_view LeftUndone(const sim::Truth& truth, const api::Workload& workload, Instant now) {
  if (HasCheck(workload, "Rejected") || Says(workload, "DeactivationTarget"))
    return "is to be deactivated, and is not";
  const QueuesAbove queues = QueuesOf(truth, workload);
  if (Holds(workload)) return LeftUndoneOfHolder(workload, queues);
  const api::Condition* again = api::Find(workload.conditions, "Requeued");
  const bool is_back = again == nullptr || again->status != "False";
  if (is_back || workload.requeue_at.value_or(Instant{}) > now) return {};
  // It comes back once that queue is open, too; and who holds it back for its pods lets it come.
  const bool waits =
      again->reason == "PodsReplaced" ||
      (again->reason == "ClusterQueueStopped" &&
       (!queues.there || queues.cluster_queue != api::StopPolicy::kNone)) ||
      (again->reason == "LocalQueueStopped" && queues.local_queue != api::StopPolicy::kNone);
  return waits ? "" : "is held back, and nothing is to happen first";
}

}  // namespace

std::vector<std::string> WorkloadChecks::AtRest(const sim::Truth& truth, Instant now) const {
  std::vector<std::string> findings;
  std::map<std::pair<std::string, std::string>, int64_t> used;  // By node and resource.
  for (const auto& [key, workload] : workloads_) {
    const bool goes_on =
        workload.active && !workload.meta.deletion_time && !Says(workload, "Finished");
    if (goes_on && PassIsDue(workload))
      findings.push_back(fmt::format("at rest, a second pass is due of workload {}", key));
    const std::string_view undone = goes_on ? LeftUndone(truth, workload, now) : "";
    if (!undone.empty()) findings.push_back(fmt::format("at rest, workload {} {}", key, undone));
    if (const std::string check = goes_on ? LackedCheck(truth, workload) : ""; !check.empty())
      findings.push_back(
          fmt::format("at rest, workload {} has quota and lacks check {}", key, check));
    if (!Holds(workload)) continue;
    for (const auto& [of, count] : PlacesByNodeOf(workload)) {
      const auto set = std::ranges::find(workload.pod_sets, of.first, &api::WorkloadPodSet::name);
      used[{of.second, "pods"}] += count;
      for (const api::ResourceAmount& a : set->spec->containers.front().requests)
        used[{of.second, a.name}] += a.amount * count;
    }
  }
  for (const auto& [of, amount] : used) {
    const auto node = truth.nodes().find(of.first);
    if (node == truth.nodes().end()) continue;
    const int64_t has = api::Find(node->second.allocatable, of.second).value_or(0);
    if (amount > has) {
      findings.push_back(fmt::format("at rest, workloads have places for {} on node {} of {}",
                                     AmountText(of.second, amount), of.first,
                                     AmountText(of.second, has)));
    }
  }
  return findings;
}

// The workloads are objects, which are hashed as such; so are nodes that are there.
void WorkloadChecks::AddTo(Hasher& hasher) const {
  hasher.Add(labels_.size());
  for (const auto& [node, labels] : labels_) {
    hasher.Add(std::string_view(node)).Add(labels.size());
    for (const auto& [key, value] : labels)
      hasher.Add(std::string_view(key)).Add(std::string_view(value));
  }
  hasher.Add(heard_.size());
  for (const auto& [key, heard] : heard_) {
    hasher.Add(std::string_view(key)).Add(std::string_view(heard.uid)).AddVersion(heard.version);
    hasher.Add(heard.finished).Add(heard.gone);
  }
}

// ---- Where they stand ------------------------------------------------------------------------

std::vector<std::string> StandingWrong(const model::State& state,
                                       std::span<const std::vector<model::WorkloadId>> lines) {
  std::vector<std::string> findings;
  std::set<model::WorkloadId> seen;
  for (const std::vector<model::WorkloadId>& line : lines) {
    for (const model::WorkloadId id : line) {
      if (!state.workloads().used(id)) {
        findings.emplace_back("a workload that is gone stands in a line");
        continue;
      }
      const model::Workload& row = state.workloads().at(id);
      const std::string key(state.KeyOf(row.key));
      if (!seen.insert(id).second)
        findings.push_back(fmt::format("workload {} stands in line twice", key));
      if (!ChargedTo(row).charges.empty() || row.write != model::WriteStage::kNone)
        findings.push_back(fmt::format("workload {} stands in line, and has quota", key));
      if (StageOf(row.status) != model::WorkloadStage::kPending || !row.status.active ||
          row.status.on_hold || row.status.held_back)
        findings.push_back(fmt::format("workload {} stands in line, and does not wait", key));
    }
  }
  return findings;
}

std::vector<std::string> StandingWrong(const cycle::Engine& engine) {
  const model::State& state = engine.state();
  std::set<model::NameId> names;
  for (uint32_t i = 0; i < state.local_queues().size(); ++i) {
    if (state.local_queues().used(model::LocalQueueId{i}))
      names.insert(state.local_queues().at(model::LocalQueueId{i}).cluster_queue);
  }
  std::vector<std::vector<model::WorkloadId>> lines;
  for (const model::NameId name : names) lines.push_back(engine.admissions().LineOf(name));
  return StandingWrong(state, lines);
}

}  // namespace berth::explore
