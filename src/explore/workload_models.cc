#include "explore/workload_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/quota.h"
#include "api/types.h"
#include "base/check.h"
#include "client/request.h"
#include "codec/decode.h"
#include "codec/scan.h"
#include "control/status_text.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"

namespace berth::explore {
namespace {

constexpr std::string_view kHostLabel = "kubernetes.io/hostname";
constexpr std::string_view kFlavorsPrefix = "resourceflavors.kueue.x-k8s.io/";
constexpr std::string_view kTopologyGate = "kueue.x-k8s.io/topology";

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

bool IsReady(const sim::Truth::NodeFacts& node) {
  return node.document.view().contains(R"("type":"Ready","status":"True")") ||
         node.document.view().contains(R"("status":"True","type":"Ready")");
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

std::set<std::string> UnhealthyOf(const sim::Truth& truth, const api::Workload& workload) {
  std::set<std::string> unhealthy;
  const std::vector<std::string> pods = PodsOf(truth, workload);
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    const api::TopologyAssignment* topology = TopologyOf(workload, set.name);
    if (topology == nullptr || topology->levels.back() != kHostLabel) continue;
    for (const api::TopologyDomain& domain : topology->domains) {
      const std::string& name = domain.values.back();
      const auto node = truth.nodes().find(name);
      const bool goes_on = std::ranges::any_of(pods, [&](const std::string& key) {
        const sim::Truth::PodFacts& pod = truth.pods().at(key);
        return pod.active() && pod.node_name == name;
      });
      const bool healthy = node != truth.nodes().end() && (IsReady(node->second) || goes_on);
      if (!healthy) unhealthy.insert(name);
    }
  }
  return unhealthy;
}

bool StandsIn(const api::Pod& pod, const std::vector<std::string>& levels,
              const api::TopologyDomain& domain) {
  for (size_t i = 0; i < levels.size(); ++i) {
    if (api::Find(pod.spec->node_selector, levels[i]) != std::string_view(domain.values[i]))
      return false;
  }
  return true;
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

// A pod of the set, gated where a topology places it.
std::string PodOf(const sim::Truth& truth, const api::Workload& workload,
                  const api::WorkloadPodSet& set, std::string_view name) {
  const std::string gate =
      TopologyOf(workload, set.name) == nullptr
          ? ""
          : fmt::format(R"("schedulingGates":[{{"name":"{}"}}],)", kTopologyGate);
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
      R"({{"metadata":{{"name":"{0}","labels":{{"{5}":"{6}"}},"ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{1}","uid":"job-{1}","controller":true}}]}},"spec":{{{3}{4}"containers":[{{"name":"c","image":"i","resources":{{"requests":{{{2}}}}}}}]}}}})",
      name, workload.meta.name, requests, gate, selector, api::kPodSetLabel, set.name);
}

std::string StatusOf(const std::vector<api::Condition>& conditions, std::string_view more) {
  std::string text;
  for (const api::Condition& condition : conditions)
    text += (text.empty() ? "" : ",") + control::ConditionText(condition);
  return fmt::format(R"({{"status":{{"conditions":[{}]{}}}}})", text, more);
}

std::optional<LetIn> PodOfSetToLetIn(const sim::Truth& truth, const api::Workload& workload,
                                     const std::string& set) {
  const api::TopologyAssignment* topology = TopologyOf(workload, set);
  if (topology == nullptr) return std::nullopt;
  std::vector<const api::TopologyDomain*> places;  // That no pod has.
  for (const api::TopologyDomain& domain : topology->domains)
    places.insert(places.end(), static_cast<size_t>(domain.count), &domain);
  const sim::Truth::PodFacts* gated = nullptr;
  for (const std::string& key : PodsOf(truth, workload)) {
    const sim::Truth::PodFacts& pod = truth.pods().at(key);
    if (pod.terminal() || SetOf(pod, workload) != set) continue;
    if (pod.gated) {
      if (gated == nullptr && !pod.deleting) gated = &pod;
      continue;
    }
    const Result<api::Pod> decoded = codec::Decoder().Pod(pod.document.view());
    CHECK(decoded.has_value());
    const auto taken = std::ranges::find_if(places, [&](const api::TopologyDomain* domain) {
      return StandsIn(*decoded, topology->levels, *domain);
    });
    if (taken != places.end()) places.erase(taken);
  }
  const std::set<std::string> unhealthy = UnhealthyOf(truth, workload);
  std::erase_if(places, [&](const api::TopologyDomain* domain) {
    return unhealthy.contains(domain->values.back());
  });
  if (gated == nullptr || places.empty()) return std::nullopt;
  std::string selector;
  for (size_t i = 0; i < topology->levels.size(); ++i) {
    selector += fmt::format(R"({}"{}":"{}")", selector.empty() ? "" : ",", topology->levels[i],
                            places.front()->values[i]);
  }
  return LetIn{.key = gated->key,
               .body = fmt::format(R"({{"spec":{{"nodeSelector":{{{}}},"schedulingGates":null}}}})",
                                   selector)};
}

}  // namespace

bool HasToLetGo(std::string_view workload) {
  return StageIn(WorkloadIn(workload)) == model::WorkloadStage::kEvicted;
}

std::vector<std::string> PodsOfJob(const sim::Truth& truth, std::string_view workload) {
  return PodsOf(truth, WorkloadIn(workload));
}

std::optional<std::string> PodToMake(const sim::Truth& truth, std::string_view document) {
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
      if (!truth.pods().contains("default/" + name)) return PodOf(truth, workload, pods, name);
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
  set("Requeued", why == "Preempted" || why == "NodeFailures", why);
  set("QuotaReserved", false, "PendingEvaluation");
  if (api::Find(conditions, "Admitted") != nullptr) set("Admitted", false, "NoReservation");
  return StatusOf(conditions, R"(,"admission":null)");
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

std::optional<std::string> UnhealthyStatus(const sim::Truth& truth, std::string_view document) {
  const api::Workload workload = WorkloadIn(document);
  const model::WorkloadStage stage = StageIn(workload);
  // Only of who runs, as its Job's controller does.
  if (stage != model::WorkloadStage::kAdmitted) return std::nullopt;
  const std::set<std::string> unhealthy = UnhealthyOf(truth, workload);
  if (std::set(workload.unhealthy_nodes.begin(), workload.unhealthy_nodes.end()) == unhealthy)
    return std::nullopt;
  std::string names;
  for (const std::string& node : unhealthy)
    names += fmt::format(R"({}{{"name":"{}"}})", names.empty() ? "" : ",", node);
  return fmt::format(R"({{"status":{{"unhealthyNodes":{}}}}})",
                     names.empty() ? "null" : "[" + names + "]");
}

std::optional<LetIn> PodToLetIn(const sim::Truth& truth, std::string_view document) {
  const api::Workload workload = WorkloadIn(document);
  if (StageIn(workload) != model::WorkloadStage::kAdmitted) return std::nullopt;
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    if (auto let_in = PodOfSetToLetIn(truth, workload, set.name)) return let_in;
  }
  return std::nullopt;
}

}  // namespace berth::explore
