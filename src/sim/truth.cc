#include "sim/truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "api/groups.h"
#include "api/requests.h"
#include "base/check.h"
#include "codec/scan.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"

namespace berth::sim {
namespace {

// "0,3" -> {0, 3}.
std::vector<uint32_t> Numbers(std::string_view text) {
  std::vector<uint32_t> numbers;
  while (!text.empty()) {
    const std::string_view digits = text.substr(0, text.find(','));
    uint32_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    numbers.push_back(number);
    text.remove_prefix(std::min(digits.size() + 1, text.size()));
  }
  return numbers;
}

// Each document of the kind, by the key that follows the prefix.
template <typename Visit>
void ForEachOf(const Truth& truth, std::string_view prefix, Visit visit) {
  for (auto at = truth.others().lower_bound(std::string(prefix));
       at != truth.others().end() && at->first.starts_with(prefix); ++at) {
    visit(at->second.view());
  }
}

void AddGroups(const Truth& truth, codec::Decoder& decoder, model::State& state) {
  std::map<std::string, int32_t, std::less<>> classes;
  ForEachOf(truth, kClassesPrefix, [&](std::string_view document) {
    const Result<api::PriorityClass> read = decoder.PriorityClass(document);
    CHECK(read.has_value());
    classes[read->meta.name] = static_cast<int32_t>(read->value);
  });
  ForEachOf(truth, kGroupQueuesPrefix, [&](std::string_view document) {
    state.Apply(translate::QueueFacts(decoder.Queue(document).value(), state.vocabulary()));
  });
  ForEachOf(truth, kGroupsPrefix, [&](std::string_view document) {
    const Result<api::PodGroup> group = decoder.PodGroup(document);
    CHECK(group.has_value());
    std::optional<int32_t> priority;
    if (const auto at = classes.find(group->priority_class); at != classes.end())
      priority = at->second;
    state.Apply(translate::GroupFacts(*group, priority, state.vocabulary()));
  });
}

void AddQueues(const Truth& truth, codec::Decoder& decoder, model::State& state) {
  ForEachOf(truth, kCohortsPrefix, [&](std::string_view document) {
    state.Apply(translate::QueueFacts(decoder.Cohort(document).value(), state.vocabulary()));
  });
  std::set<std::string> done;  // Checks that somebody does.
  std::map<std::string, bool, std::less<>> brings_nodes;
  ForEachOf(truth, kChecksPrefix, [&](std::string_view document) {
    const api::AdmissionCheck check = decoder.AdmissionCheck(document).value();
    brings_nodes[check.meta.name] = control::BringsNodes(check.controller);
    const api::Condition* active = api::Find(check.conditions, "Active");
    if (active != nullptr && active->status == "True") done.insert(check.meta.name);
  });
  ForEachOf(truth, kQueuesPrefix, [&](std::string_view document) {
    const api::ClusterQueue queue = decoder.ClusterQueue(document).value();
    model::QueueUpsert facts = translate::QueueFacts(queue, state.vocabulary());
    facts.lacks_checks = !std::ranges::all_of(
        queue.checks, [&](const api::RequiredCheck& check) { return done.contains(check.name); });
    for (model::QueueCheck& check : facts.checks) {
      const auto known = brings_nodes.find(state.vocabulary().names.View(check.name));
      check.brings_nodes = known == brings_nodes.end() || known->second;
    }
    state.Apply(facts);
  });
}

void AddFlavors(const Truth& truth, codec::Decoder& decoder, model::State& state) {
  ForEachOf(truth, kFlavorsPrefix, [&](std::string_view document) {
    state.Apply(
        translate::FlavorFacts(decoder.ResourceFlavor(document).value(), state.vocabulary()));
  });
  ForEachOf(truth, kTopologiesPrefix, [&](std::string_view document) {
    state.Apply(translate::TopologyFacts(decoder.Topology(document).value(), state.vocabulary()));
  });
}

void AddLocalQueues(const Truth& truth, codec::Decoder& decoder, model::State& state) {
  std::map<std::string, api::LabelQuery, std::less<>> let_in;
  ForEachOf(truth, kQueuesPrefix, [&](std::string_view document) {
    const api::ClusterQueue queue = decoder.ClusterQueue(document).value();
    let_in.emplace(queue.meta.name, control::NamespacesOf(queue));
  });
  std::map<std::string, api::StringMap, std::less<>> labels_of;
  ForEachOf(truth, kNamespacesPrefix, [&](std::string_view document) {
    const api::ObjectHead head = decoder.Head(document).value();
    labels_of.emplace(head.meta.name, head.meta.labels);
  });
  ForEachOf(truth, kLocalQueuesPrefix, [&](std::string_view document) {
    const api::LocalQueue queue = decoder.LocalQueue(document).value();
    model::LocalQueueUpsert facts{.uid = queue.meta.uid,
                                  .key = queue.meta.namespace_name + '/' + queue.meta.name,
                                  .cluster_queue = queue.cluster_queue};
    const auto selector = let_in.find(queue.cluster_queue);
    const auto labels = labels_of.find(queue.meta.namespace_name);
    if (selector != let_in.end() &&
        (labels == labels_of.end() || !selector->second.Matches(labels->second))) {
      facts.bar = model::LocalQueueBar::kNamespace;
    }
    if (queue.stop != api::StopPolicy::kNone) facts.bar = model::LocalQueueBar::kStopped;
    state.Apply(facts);
  });
}

// What can't be read is not known.
void AddWorkloads(const Truth& truth, const control::Taking& taking, codec::Decoder& decoder,
                  model::State& state) {
  translate::PodRules rules;
  ForEachOf(truth, kClassesPrefix, [&](std::string_view document) {
    rules.classes.Put(decoder.PriorityClass(document).value());
  });
  ForEachOf(truth, kWorkloadsPrefix, [&](std::string_view document) {
    const api::Workload workload = decoder.Workload(document).value();
    std::optional<api::Placement> placement;
    if (const auto text = api::Find(workload.meta.annotations, api::kPlacementAnnotation)) {
      if (auto read = decoder.Placement(*text)) placement = *std::move(read);
    }
    const auto facts = control::FactsOf(workload, taking, placement ? &*placement : nullptr,
                                        state.vocabulary(), rules);
    if (facts) state.Apply(*facts);
  });
}

}  // namespace

Truth::Change Truth::Apply(const env::JournalRecord& record) {
  if (record.key.starts_with(kPodsPrefix)) return ApplyPod(record);
  if (record.key.starts_with(kBudgetsPrefix)) budgets_revision_ = record.revision;
  if (record.key.starts_with(kGroupsPrefix)) groups_revision_ = record.revision;
  if (record.key.starts_with(kClassesPrefix)) classes_revision_ = record.revision;
  if (record.key.starts_with(kGroupQueuesPrefix)) queues_revision_ = record.revision;
  if (record.key.starts_with(kNodesPrefix)) {
    ApplyNode(record);
  } else if (record.value.empty()) {
    others_.erase(record.key);
  } else {
    others_[record.key] = record.value;
  }
  return {};
}

Truth::Change Truth::ApplyPod(const env::JournalRecord& record) {
  Change change;
  const std::string key = record.key.substr(kPodsPrefix.size());
  const auto before = pods_.find(key);
  if (before != pods_.end()) {
    change.pod_before = before->second;
    Charge(before->second, -1);
    pods_.erase(before);
  }
  if (!record.value.empty()) {
    const Result<api::Pod> pod = decoder_.Pod(record.value.view());
    CHECK(pod.has_value());
    change.pod_after = FactsOf(key, *pod);
    change.pod_after->document = record.value;
    Charge(*change.pod_after, 1);
    pods_[key] = *change.pod_after;
  }
  pods_revision_ = record.revision;
  if ((change.pod_before && !change.pod_before->terminal()) ||
      (change.pod_after && !change.pod_after->terminal())) {
    live_pods_revision_ = record.revision;
  }
  return change;
}

void Truth::ApplyNode(const env::JournalRecord& record) {
  nodes_revision_ = record.revision;
  // Cluster-scoped keys have an empty namespace: "nodes//name".
  const std::string key = record.key.substr(record.key.rfind('/') + 1);
  if (record.value.empty()) {
    nodes_.erase(key);
    return;
  }
  const Result<api::Node> node = decoder_.Node(record.value.view());
  CHECK(node.has_value());
  nodes_[key] = {.uid = node->meta.uid, .allocatable = node->allocatable, .document = record.value};
}

Truth::PodFacts Truth::FactsOf(const std::string& key, const api::Pod& pod) {
  PodFacts facts{.key = key,
                 .uid = pod.meta.uid,
                 .node_name = pod.node_name,
                 .phase = pod.phase,
                 .scheduler_name = pod.spec->scheduler_name,
                 .nominated = pod.nominated_node_name,
                 .labels = pod.meta.labels,
                 .group = {},
                 .priority = pod.spec->priority,
                 .preempts = pod.spec->preemption_policy != "Never",
                 .gated = !pod.spec->scheduling_gates.empty(),
                 .deleting = pod.meta.deletion_time.has_value(),
                 .ready = false,
                 .owner_uid = {},
                 .owner_kind = {},
                 .start = pod.start_time,
                 .address = pod.pod_ip,
                 .running = {},
                 .requests = api::BoundRequests(pod),
                 .devices = {},
                 .document = {}};
  const std::string group = api::GroupOf(pod);
  if (!group.empty()) facts.group = fmt::format("{}/{}", pod.meta.namespace_name, group);
  for (const api::PodCondition& condition : pod.conditions) {
    if (condition.type == "Ready") facts.ready = condition.status == "True";
  }
  if (!pod.container_statuses.empty()) {
    const api::ContainerStatus& first = pod.container_statuses.front();
    facts.restarts = first.restart_count;
    if (first.state == api::ContainerState::kRunning) facts.running = first.started;
  }
  for (const api::OwnerReference& owner : pod.meta.owners) {
    if (!owner.controller) continue;
    facts.owner_uid = owner.uid;
    facts.owner_kind = owner.kind;
  }
  const int64_t gpu = api::Find(facts.requests, translate::kGpuMilliResource).value_or(0);
  if (gpu > 0) {
    facts.devices =
        Numbers(api::Find(pod.meta.annotations, translate::kGpuIndexAnnotation).value_or(""));
    facts.device_milli = std::min<int64_t>(gpu, kDeviceMilli);
  }
  return facts;
}

void Truth::Usage::Charge(const PodFacts& pod, int64_t sign) {
  amounts["pods"] += sign;
  for (const api::ResourceAmount& request : pod.requests) {
    if (request.name != "pods") amounts[request.name] += sign * request.amount;
  }
  for (const uint32_t device : pod.devices) devices[device] += sign * pod.device_milli;
}

void Truth::Charge(const PodFacts& pod, int64_t sign) {
  if (pod.node_name.empty() || pod.terminal()) return;
  usage_[pod.node_name].Charge(pod, sign);
}

uint64_t VersionIn(std::string_view object) {
  const std::string text =
      codec::StringMember(codec::Member(object, "metadata"), "resourceVersion");
  uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

model::State StateOf(const Truth& truth, const Reading& reading) {
  const std::vector<std::string>& scheduler_names = reading.taking.scheduler_names;
  model::State state;
  codec::Decoder decoder;
  for (const auto& [name, facts] : truth.nodes()) {
    const Result<api::Node> node = decoder.Node(facts.document.view());
    CHECK(node.has_value());
    state.Apply(translate::NodeFacts(*node, state.vocabulary()));
  }
  for (const auto& [key, facts] : truth.pods()) {
    if (facts.terminal() && !reading.groups) continue;
    const Result<api::Pod> pod = decoder.Pod(facts.document.view());
    CHECK(pod.has_value());
    Result<model::PodUpsert> upsert = translate::PodFacts(*pod, state.vocabulary());
    CHECK(upsert.has_value());
    const std::string& asked =
        pod->spec->scheduler_name.empty() ? scheduler_names.front() : pod->spec->scheduler_name;
    upsert->ours = pod->spec->unsupported.empty() &&
                   std::ranges::find(scheduler_names, asked) != scheduler_names.end();
    state.Apply(*upsert);
  }
  ForEachOf(truth, kBudgetsPrefix, [&](std::string_view document) {
    const Result<api::PodDisruptionBudget> budget = decoder.PodDisruptionBudget(document);
    CHECK(budget.has_value());
    state.Apply(translate::BudgetFacts(*budget));
  });
  if (reading.groups) AddGroups(truth, decoder, state);
  if (!reading.quota) return state;
  AddFlavors(truth, decoder, state);
  AddQueues(truth, decoder, state);
  AddLocalQueues(truth, decoder, state);
  AddWorkloads(truth, reading.taking, decoder, state);
  return state;
}

}  // namespace berth::sim
