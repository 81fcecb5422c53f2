#include "explore/workload_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "api/groups.h"
#include "api/quota.h"
#include "api/types.h"
#include "api/well_known.h"
#include "base/check.h"
#include "client/request.h"
#include "codec/decode.h"
#include "codec/scan.h"
#include "control/status_text.h"
#include "controllers/objects.h"
#include "controllers/topology.h"
#include "controllers/write.h"
#include "explore/fitting.h"
#include "explore/requests.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"

namespace berth::explore {
namespace {

constexpr std::string_view kFlavorsPrefix = "resourceflavors.kueue.x-k8s.io/";
constexpr std::string_view kIndexAnnotation = "batch.kubernetes.io/job-completion-index";

api::Workload WorkloadIn(std::string_view document) {
  Result<api::Workload> workload = codec::Decoder().Workload(document);
  CHECK(workload.has_value());
  return std::move(*workload);
}

void Put(std::vector<api::Condition>& conditions, api::Condition condition) {
  const auto at = std::ranges::find(conditions, condition.type, &api::Condition::type);
  (at == conditions.end() ? conditions.emplace_back() : *at) = std::move(condition);
}

model::WorkloadStage StageIn(const api::Workload& workload) {
  return StageOf(translate::WorkloadStatusOf(workload));
}

const api::PodSetAssignment* GivenTo(const api::Workload& workload, std::string_view set) {
  if (!workload.admission) return nullptr;
  const auto& sets = workload.admission->pod_sets;
  const auto at = std::ranges::find(sets, set, &api::PodSetAssignment::name);
  return at == sets.end() ? nullptr : &*at;
}

// By which the pods of the set are placed; null: by none.
const api::TopologyAssignment* TopologyOf(const api::Workload& workload, std::string_view set) {
  const api::PodSetAssignment* given = GivenTo(workload, set);
  return given == nullptr || !given->topology ? nullptr : &*given->topology;
}

std::vector<std::string> PodsOf(const sim::Truth& truth, const api::Workload& workload) {
  std::vector<std::string> keys;
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.owner_uid == "job-" + workload.meta.name) keys.push_back(key);
  }
  return keys;
}

std::string_view SetOf(const sim::Truth::PodFacts& pod, const api::Workload& workload) {
  return api::Find(pod.labels, api::kPodSetLabel).value_or(workload.pod_sets.front().name);
}

// What the Job's controller knows of its pods and of nodes, which is all of them.
class JobView {
 public:
  JobView(const sim::Truth& truth, const api::Workload& workload, sim::Tampering planted)
      : workload_(workload), planted_(planted) {
    for (const auto& [name, node] : truth.nodes())
      CHECK(objects_.Observe(api::KindId::kNode, node.document.view()).has_value());
    const std::vector<std::string> keys = PodsOf(truth, workload);
    for (const std::string& key : keys) {
      const std::string_view pod = truth.pods().at(key).document.view();
      CHECK(objects_.Observe(api::KindId::kPod, pod).has_value());
    }
    for (const std::string& key : keys) {
      const sim::Truth::PodFacts& pod = truth.pods().at(key);
      pods_.emplace_back(SetOf(pod, workload), objects_.pod_ref(objects_.Find(pod.uid)));
    }
    const bool blamed = planted == sim::Tampering::kSilentNodeBlamed;
    const std::vector<controllers::PodRef> seen =
        blamed ? std::vector<controllers::PodRef>{} : PodsIn({});
    // It sees all that there is, so reading says of none that it is there.
    controllers::ReadSince read;
    for (const std::string& node :
         controllers::UnhealthyNodesOf(workload, objects_, seen, read).unheard)
      read.nodes.emplace(node, false);
    unhealthy_ = controllers::UnhealthyNodesOf(workload, objects_, seen, read).nodes;
    for (const controllers::PodRef& pod : PodsIn({})) {
      const std::string& node = pod.facts->node;
      const bool ends = pod.head->deletion.has_value() && controllers::HasPlaceOn(workload, node);
      if (ends && planted == sim::Tampering::kEndingPodBlamesNode &&
          std::ranges::find(unhealthy_, node) == unhealthy_.end())
        unhealthy_.push_back(node);
    }
    std::ranges::sort(unhealthy_);
  }
  JobView(const JobView&) = delete;
  JobView& operator=(const JobView&) = delete;

  [[nodiscard]] const std::vector<std::string>& unhealthy() const { return unhealthy_; }

  // What is written of pods of the set that a topology places.
  [[nodiscard]] controllers::Writes WritesFor(const std::string& set) const {
    const api::TopologyAssignment* topology = TopologyOf(workload_, set);
    if (topology == nullptr) return {};
    std::vector<controllers::PodRef> pods = PodsIn(set);
    controllers::Writes writes = controllers::EndStranded(*topology, pods);
    if (planted_ == sim::Tampering::kReplacementsEnded && !unhealthy_.empty()) {
      for (const controllers::PodRef& pod : pods) {
        if (pod.active() && pod.facts->node.empty())
          writes.push_back(controllers::DeleteSeen(*pod.head, {}));
      }
    }
    if (planted_ == sim::Tampering::kLatePodsKept) {
      std::erase_if(writes, [&](const controllers::Write& write) {
        return !objects_.pod(objects_.Find(write.uid))->node.empty();
      });
    }
    std::vector<controllers::PodFacts> facts;
    if (planted_ == sim::Tampering::kRanksTrusted) AsIfByRank(*topology, pods, facts);
    const bool blind = planted_ == sim::Tampering::kFailedNodesUsed;
    std::ranges::move(
        controllers::LetIntoTopology(*topology, blind ? std::vector<std::string>{} : unhealthy_,
                                     std::move(pods)),
        std::back_inserter(writes));
    return writes;
  }

 private:
  // Of all sets for an empty one.
  [[nodiscard]] std::vector<controllers::PodRef> PodsIn(std::string_view set) const {
    std::vector<controllers::PodRef> pods;
    for (const auto& [of, pod] : pods_) {
      if (set.empty() || of == set) pods.push_back(pod);
    }
    return pods;
  }
  // Planted: whoever has a rank is taken to stand at its place.
  static void AsIfByRank(const api::TopologyAssignment& topology,
                         std::vector<controllers::PodRef>& pods,
                         std::vector<controllers::PodFacts>& facts) {
    std::vector<const api::TopologyDomain*> places;
    for (const api::TopologyDomain& domain : topology.domains)
      places.insert(places.end(), static_cast<size_t>(domain.count), &domain);
    facts.reserve(pods.size());
    for (controllers::PodRef& pod : pods) {
      const auto rank = static_cast<size_t>(pod.facts->completion_index.value_or(0));
      controllers::PodFacts& seen = facts.emplace_back(*pod.facts);
      if (rank < places.size() && seen.spec->scheduling_gates.empty()) {
        for (size_t i = 0; i < topology.levels.size(); ++i) {
          controllers::Put(seen.spec.Edit().node_selector, topology.levels[i],
                           places[rank]->values[i]);
        }
      }
      pod.facts = &seen;
    }
  }

  const api::Workload& workload_;
  const sim::Tampering planted_;
  controllers::Objects objects_;
  std::vector<std::pair<std::string, controllers::PodRef>> pods_;  // By set.
  std::vector<std::string> unhealthy_;
};

env::HttpRequest RequestOf(const controllers::Write& write) {
  const client::Request request =
      controllers::RequestOf(write, write.name, controllers::ResourceOf(write.kind));
  return Request(request.method, request.target, std::string(request.body.view()),
                 request.content_type);
}

// What its pods select, and the labels of the flavors that they got.
std::map<std::string, std::string> SelectorOf(const sim::Truth& truth,
                                              const api::Workload& workload,
                                              const api::WorkloadPodSet& set) {
  std::map<std::string, std::string> selector(set.spec->node_selector.begin(),
                                              set.spec->node_selector.end());
  const api::PodSetAssignment* given = GivenTo(workload, set.name);
  if (given == nullptr) return selector;
  for (const auto& [resource, flavor] : given->flavors) {
    const auto document = truth.others().find(fmt::format("{}/{}", kFlavorsPrefix, flavor));
    if (document == truth.others().end()) continue;
    const auto facts = codec::Decoder().ResourceFlavor(document->second.view());
    CHECK(facts.has_value());
    selector.insert(facts->node_labels.begin(), facts->node_labels.end());
  }
  return selector;
}

struct PodNames {
  std::string name;
  int64_t index = -1;  // None.
};
// A pod of the set, gated where a topology places it.
std::string PodOf(const sim::Truth& truth, const api::Workload& workload,
                  const api::WorkloadPodSet& set, const PodNames& names) {
  api::StringMap annotations;
  if (names.index >= 0) annotations.emplace_back(kIndexAnnotation, std::to_string(names.index));
  if (const std::string_view group = api::NamedGroup(set.annotations); !group.empty())
    annotations.emplace_back(api::kGroupAnnotation, group);
  std::string text;
  for (const auto& [key, value] : annotations)
    text += fmt::format(R"({}"{}":"{}")", text.empty() ? "" : ",", key, value);
  if (!text.empty()) text = fmt::format(R"("annotations":{{{}}},)", text);
  const std::string gate =
      TopologyOf(workload, set.name) == nullptr
          ? ""
          : fmt::format(R"("schedulingGates":[{{"name":"{}"}}],)", controllers::kTopologyGate);
  std::string selector;
  for (const auto& [key, value] : SelectorOf(truth, workload, set))
    selector += fmt::format(R"({}"{}":"{}")", selector.empty() ? "" : ",", key, value);
  if (!selector.empty()) selector = fmt::format(R"("nodeSelector":{{{}}},)", selector);
  std::string requests;
  for (const api::ResourceAmount& a : set.spec->containers.front().requests) {
    requests += fmt::format(R"({}"{}":"{}")", requests.empty() ? "" : ",", a.name,
                            translate::ResourceAmountText(a.name, a.amount));
  }
  return fmt::format(
      R"({{"metadata":{{"name":"{0}",{7}"labels":{{"{5}":"{6}"}},"ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{1}","uid":"job-{1}","controller":true}}]}},"spec":{{{3}{4}"containers":[{{"name":"c","image":"i","resources":{{"requests":{{{2}}}}}}}]}}}})",
      names.name, workload.meta.name, requests, gate, selector, api::kPodSetLabel, set.name, text);
}

std::string StatusOf(const std::vector<api::Condition>& conditions, std::string_view more) {
  std::string text;
  for (const api::Condition& condition : conditions)
    text += (text.empty() ? "" : ",") + control::ConditionText(condition);
  return fmt::format(R"({{"status":{{"conditions":[{}]{}}}}})", text, more);
}

}  // namespace

bool HasToLetGo(std::string_view workload) {
  return StageIn(WorkloadIn(workload)) == model::WorkloadStage::kEvicted;
}

std::vector<std::string> PodsOfJob(const sim::Truth& truth, std::string_view workload) {
  return PodsOf(truth, WorkloadIn(workload));
}

std::optional<std::string> PodToMake(const sim::Truth& truth, std::string_view document,
                                     bool indexed) {
  const api::Workload workload = WorkloadIn(document);
  if (StageIn(workload) != model::WorkloadStage::kAdmitted) return std::nullopt;
  for (const api::WorkloadPodSet& pods : workload.pod_sets) {
    const api::PodSetAssignment* given = GivenTo(workload, pods.name);
    const int64_t count = given == nullptr ? pods.count : given->count.value_or(pods.count);
    const bool first = &pods == &workload.pod_sets.front();
    const std::string stem =
        workload.meta.name + (first ? std::string() : fmt::format("-{}", pods.name));
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = fmt::format("{}-{}", stem, i);
      if (!truth.pods().contains("default/" + name))
        return PodOf(truth, workload, pods, {.name = name, .index = indexed ? i : -1});
    }
  }
  return std::nullopt;
}

bool IsAdmittedInVain(const sim::Truth& truth, std::string_view document) {
  if (StageIn(WorkloadIn(document)) != model::WorkloadStage::kAdmitted) return false;
  return std::ranges::any_of(PodsOfJob(truth, document), [&](const std::string& key) {
    return truth.pods().at(key).node_name.empty();
  });
}

std::string ReleasedStatus(std::string_view workload, Instant now) {
  std::vector<api::Condition> conditions = WorkloadIn(workload).conditions;
  const auto set = [&](std::string_view type, bool is, std::string_view reason) {
    Put(conditions, {.type = std::string(type),
                     .status = is ? "True" : "False",
                     .reason = std::string(reason),
                     .message = "It has let go",
                     .transition = now});
  };
  const std::string why = api::Find(conditions, "Evicted")->reason;
  set("Requeued", why == "Preempted" || why == "NodeFailures" || why == "WaitingForGang", why);
  set("QuotaReserved", false, "PendingEvaluation");
  if (api::Find(conditions, "Admitted") != nullptr) set("Admitted", false, "NoReservation");
  return StatusOf(conditions, R"(,"admission":null)");
}

std::optional<std::string> AdmittedStatus(std::string_view document, Instant now) {
  const api::Workload workload = WorkloadIn(document);
  const model::WorkloadStatus status = translate::WorkloadStatusOf(workload);
  const bool waits = StageOf(status) == model::WorkloadStage::kPending && !status.held_back &&
                     workload.active && !workload.meta.deletion_time;
  if (!waits || workload.pod_sets.empty()) return std::nullopt;
  std::vector<api::Condition> conditions = workload.conditions;
  for (const std::string_view type : {"QuotaReserved", "Admitted"}) {
    Put(conditions, {.type = std::string(type),
                     .status = "True",
                     .reason = std::string(type),
                     .message = "It has quota",
                     .transition = now});
  }
  std::erase_if(conditions, [](const api::Condition& condition) {
    return condition.type == "Evicted" || condition.type == "Requeued";
  });
  const api::WorkloadPodSet& pods = workload.pod_sets.front();
  return StatusOf(
      conditions,
      fmt::format(
          R"(,"admission":{{"clusterQueue":"q","podSetAssignments":[{{"name":"{}","count":{}}}]}})",
          pods.name, pods.count));
}

std::optional<std::string> ToldStatus(std::string_view document, std::string_view condition,
                                      Instant now) {
  const api::Workload workload = WorkloadIn(document);
  const std::string status = codec::StringMember(condition, "status");
  // Who runs gives quota back otherwise.
  const bool on_hold = codec::StringMember(condition, "type") == "QuotaReserved";
  if (on_hold && translate::WorkloadStatusOf(workload).reserved) return std::nullopt;
  std::vector<api::Condition> conditions = workload.conditions;
  Put(conditions, {.type = codec::StringMember(condition, "type"),
                   .status = status.empty() ? "True" : status,
                   .reason = codec::StringMember(condition, "reason"),
                   .message = codec::StringMember(condition, "message"),
                   .transition = now});
  return StatusOf(conditions, {});
}

std::optional<std::string> AnsweredStatus(std::string_view document, std::string_view check,
                                          Instant now) {
  const api::Workload workload = WorkloadIn(document);
  const std::string name = codec::StringMember(check, "name");
  if (std::ranges::find(workload.checks, name, &api::CheckState::name) == workload.checks.end())
    return std::nullopt;
  std::string checks;
  for (const api::CheckState& each : workload.checks) {
    const bool is = each.name == name;
    checks += fmt::format(
        R"({}{{"name":"{}","state":"{}","message":"{}","lastTransitionTime":"{}","retryCount":{}}})",
        checks.empty() ? "" : ",", each.name, is ? codec::StringMember(check, "state") : each.state,
        is ? "" : each.message, client::SecondsTime(is ? now : each.transition), each.retries);
  }
  return fmt::format(R"({{"status":{{"admissionChecks":[{}]}}}})", checks);
}

std::optional<std::string> UnhealthyStatus(const sim::Truth& truth, std::string_view document,
                                           sim::Tampering planted) {
  const api::Workload workload = WorkloadIn(document);
  const model::WorkloadStage stage = StageIn(workload);
  // Only of who runs, as its Job's controller does.
  if (stage != model::WorkloadStage::kAdmitted) return std::nullopt;
  const JobView view(truth, workload, planted);
  std::vector<std::string> told = workload.unhealthy_nodes;
  std::ranges::sort(told);
  if (told == view.unhealthy()) return std::nullopt;
  return fmt::format(R"({{"status":{{"unhealthyNodes":{}}}}})",
                     controllers::UnhealthyNodesText(view.unhealthy()));
}

std::vector<env::HttpRequest> TopologyWrites(const sim::Truth& truth, std::string_view document,
                                             sim::Tampering planted) {
  const api::Workload workload = WorkloadIn(document);
  if (StageIn(workload) != model::WorkloadStage::kAdmitted) return {};
  const JobView view(truth, workload, planted);
  std::vector<env::HttpRequest> requests;
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    for (const controllers::Write& write : view.WritesFor(set.name))
      requests.push_back(RequestOf(write));
  }
  return requests;
}

namespace {

// Whatever was told of it before.
bool IsWell(const sim::Truth& truth, const std::string& node) {
  const auto at = truth.nodes().find(node);
  return at != truth.nodes().end() &&
         controllers::IsReady(codec::Decoder().Node(at->second.document.view()).value());
}

}  // namespace

std::vector<std::string> WrittenInVain(const sim::Truth& truth, std::string_view document,
                                       const std::vector<env::HttpRequest>& requests) {
  const api::Workload workload = WorkloadIn(document);
  std::vector<std::string> findings;
  for (const std::string& key : PodsOf(truth, workload)) {
    const sim::Truth::PodFacts& pod = truth.pods().at(key);
    const std::string target = "/pods/" + key.substr(key.find('/') + 1);
    const auto request = std::ranges::find_if(
        requests, [&](const env::HttpRequest& each) { return each.target.ends_with(target); });
    const api::TopologyAssignment* topology = TopologyOf(workload, SetOf(pod, workload));
    if (request == requests.end() || topology == nullptr) continue;
    const std::string_view spec = codec::Member(pod.document.view(), "spec");
    const bool gated = codec::Member(spec, "schedulingGates").contains(controllers::kTopologyGate);
    if (request->method == env::Method::kDelete) {
      const std::string node =
          codec::StringMember(codec::Member(spec, "nodeSelector"), api::kHostnameLabel);
      const bool has_place = std::ranges::any_of(
          topology->domains, [&](const auto& domain) { return domain.values.back() == node; });
      if (gated || has_place) {
        findings.push_back(fmt::format("pod {} of workload {} is ended, and {}", key,
                                       workload.meta.name,
                                       gated ? "was let in nowhere" : "stands where it is to"));
      }
      continue;
    }
    const std::string_view given =
        codec::Member(codec::Member(request->body.view(), "spec"), "nodeSelector");
    const std::string node = codec::StringMember(given, api::kHostnameLabel);
    if (node.empty() || IsWell(truth, node)) continue;
    findings.push_back(fmt::format("pod {} of workload {} is let onto node {}, which failed", key,
                                   workload.meta.name, node));
  }
  return findings;
}

std::vector<std::string> ToldInVain(const sim::Truth& truth, std::string_view before,
                                    std::string_view after) {
  const std::vector<std::string> told = WorkloadIn(before).unhealthy_nodes;
  const api::Workload workload = WorkloadIn(after);
  std::vector<std::string> findings;
  for (const std::string& node : workload.unhealthy_nodes) {
    if (std::ranges::find(told, node) != told.end() || !truth.nodes().contains(node)) continue;
    for (const std::string& key : PodsOf(truth, workload)) {
      const sim::Truth::PodFacts& pod = truth.pods().at(key);
      if (!pod.active() || pod.node_name != node) continue;
      findings.push_back(
          fmt::format("workload {} is told that node {} failed, and pod {} goes on "
                      "there",
                      workload.meta.name, node, key));
    }
  }
  return findings;
}

std::vector<std::string> PodsBesidePlaces(const sim::Truth& truth, std::string_view document) {
  const api::Workload workload = WorkloadIn(document);
  std::vector<std::string> findings;
  if (StageIn(workload) != model::WorkloadStage::kAdmitted) return findings;
  PlacesByNode places = PlacesByNodeOf(workload);
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    const api::TopologyAssignment* topology = TopologyOf(workload, set.name);
    if (topology == nullptr || topology->levels.back() != api::kHostnameLabel) continue;
    for (const std::string& key : PodsOf(truth, workload)) {
      const sim::Truth::PodFacts& pod = truth.pods().at(key);
      if (pod.terminal() || pod.node_name.empty() || SetOf(pod, workload) != set.name) continue;
      if (--places[{set.name, pod.node_name}] >= 0) continue;
      findings.push_back(
          fmt::format("at rest, pod {} stands on node {}, where workload {} has no "
                      "place for it",
                      key, pod.node_name, workload.meta.name));
    }
  }
  return findings;
}

}  // namespace berth::explore
