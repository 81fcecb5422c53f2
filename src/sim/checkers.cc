#include "sim/checkers.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "codec/decode.h"

namespace berth::sim {
namespace {

constexpr std::string_view kPodsPrefix = "pods/";
constexpr std::string_view kNodesPrefix = "nodes/";

bool Terminal(const std::string& phase) { return phase == "Succeeded" || phase == "Failed"; }

// "/api/v1/namespaces/NS/pods/NAME/binding" -> "NS/NAME".
std::optional<std::string> BoundPod(std::string_view target) {
  constexpr std::string_view kHead = "/api/v1/namespaces/";
  constexpr std::string_view kTail = "/binding";
  target = target.substr(0, target.find('?'));
  if (!target.starts_with(kHead) || !target.ends_with(kTail)) return std::nullopt;
  target.remove_prefix(kHead.size());
  target.remove_suffix(kTail.size());
  const size_t middle = target.find("/pods/");
  if (middle == std::string_view::npos) return std::nullopt;
  return std::string(target.substr(0, middle)) + "/" + std::string(target.substr(middle + 6));
}

// The value of the first member `"name":"..."` in a compact document.
std::string_view Member(std::string_view json, std::string_view name) {
  const std::string pattern = fmt::format("\"{}\":\"", name);
  const size_t at = json.find(pattern);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + pattern.size());
  return json.substr(0, json.find('"'));
}

}  // namespace

Truth::Change Truth::Apply(const env::JournalRecord& record) {
  Change change;
  if (record.key.starts_with(kPodsPrefix)) {
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
      Charge(*change.pod_after, 1);
      pods_[key] = *change.pod_after;
    }
    return change;
  }
  if (record.key.starts_with(kNodesPrefix)) {
    // Cluster-scoped keys have an empty namespace: "nodes//name".
    const std::string key = record.key.substr(record.key.rfind('/') + 1);
    if (record.value.empty()) {
      nodes_.erase(key);
      return change;
    }
    const Result<api::Node> node = decoder_.Node(record.value.view());
    CHECK(node.has_value());
    nodes_[key] = {.uid = node->meta.uid,
                   .cpu_milli = api::Find(node->allocatable, "cpu").value_or(0),
                   .memory = api::Find(node->allocatable, "memory").value_or(0),
                   .pods = api::Find(node->allocatable, "pods").value_or(0),
                   .unschedulable = node->unschedulable,
                   .tainted = !node->taints.empty()};
    return change;
  }
  if (record.value.empty()) {
    others_.erase(record.key);
  } else {
    others_[record.key] = record.value;
  }
  return change;
}

Truth::PodFacts Truth::FactsOf(const std::string& key, const api::Pod& pod) {
  PodFacts facts{.key = key,
                 .uid = pod.meta.uid,
                 .node_name = pod.node_name,
                 .phase = pod.phase,
                 .scheduler_name = pod.scheduler_name,
                 .gated = !pod.scheduling_gates.empty(),
                 .deleting = pod.meta.deletion_time.has_value(),
                 .ready = false};
  for (const api::PodCondition& condition : pod.conditions) {
    if (condition.type == "Ready") facts.ready = condition.status == "True";
  }
  for (const api::OwnerReference& owner : pod.meta.owners) {
    if (!owner.controller) continue;
    facts.owner_uid = owner.uid;
    facts.owner_kind = owner.kind;
  }
  for (const api::Container& container : pod.containers) {
    facts.cpu_milli += api::Find(container.requests, "cpu").value_or(0);
    facts.memory += api::Find(container.requests, "memory").value_or(0);
  }
  return facts;
}

void Truth::Charge(const PodFacts& pod, int64_t sign) {
  if (pod.node_name.empty() || Terminal(pod.phase)) return;
  Usage& usage = usage_[pod.node_name];
  usage.cpu_milli += sign * pod.cpu_milli;
  usage.memory += sign * pod.memory;
  usage.pods += sign;
}

void Checkers::OnCommit(Instant now, const env::JournalRecord& record) {
  ++commits_;
  const Truth::Change change = truth_.Apply(record);
  if (change.pod_before && change.pod_after && change.pod_before->uid == change.pod_after->uid) {
    CheckPod(now, *change.pod_before, *change.pod_after);
  }
  if (!change.pod_after || change.pod_after->node_name.empty()) return;
  if (!change.pod_before || change.pod_before->node_name.empty() ||
      change.pod_before->uid != change.pod_after->uid) {
    ++bindings_;
    if (!bound_uids_.insert(change.pod_after->uid).second) {
      Report(now,
             fmt::format("pod {} (uid {}) is bound a second time, now to {}", change.pod_after->key,
                         change.pod_after->uid, change.pod_after->node_name));
    }
    CheckCapacity(now, change.pod_after->node_name);
  }
}

void Checkers::CheckPod(Instant now, const Truth::PodFacts& before, const Truth::PodFacts& after) {
  if (!before.node_name.empty() && before.node_name != after.node_name) {
    Report(now, fmt::format("pod {} moved from node {} to '{}': it must have a single home",
                            after.key, before.node_name, after.node_name));
  }
  if (Terminal(before.phase) && before.phase != after.phase) {
    Report(now, fmt::format("pod {} went from {} to {}: terminal is final", after.key, before.phase,
                            after.phase));
  }
}

void Checkers::CheckCapacity(Instant now, const std::string& node) {
  const auto facts = truth_.nodes().find(node);
  if (facts == truth_.nodes().end()) return;  // The node went while the binding was on its way.
  const Truth::Usage& usage = truth_.usage().at(node);
  if (usage.cpu_milli > facts->second.cpu_milli || usage.memory > facts->second.memory ||
      usage.pods > facts->second.pods) {
    Report(now, fmt::format("node {} is overcommitted by a binding: cpu {}m of {}m, memory {} of "
                            "{}, pods {} of {}",
                            node, usage.cpu_milli, facts->second.cpu_milli, usage.memory,
                            facts->second.memory, usage.pods, facts->second.pods));
  }
}

void Checkers::OnSent(Instant now, Party party, const env::SendRequest& request) {
  if (party != Party::kScheduler) return;
  if (request.request.method == env::Method::kGet) {
    // A GET of a pod is how an unknown fate is read.
    uid_by_call_[request.call.value] = "";
    return;
  }
  const std::optional<std::string> key = BoundPod(request.request.target);
  if (!key) return;
  const std::string uid(Member(request.request.body.view(), "uid"));
  if (uid.empty()) {
    Report(now, fmt::format("binding of pod {} is sent without its uid", *key));
    return;
  }
  if (open_bindings_.contains(uid)) {
    Report(now, fmt::format("binding of pod {} (uid {}) is repeated before the fate of the former "
                            "one was read",
                            *key, uid));
  }
  open_bindings_[uid] = request.call.value;
  uid_by_call_[request.call.value] = uid;
}

void Checkers::OnDelivered(Instant now, Party party, const env::Input& input) {
  static_cast<void>(now);
  if (party != Party::kScheduler) return;
  if (const auto* failed = std::get_if<env::CallFailed>(&input)) OnFailed(*failed);
  if (const auto* response = std::get_if<env::Response>(&input)) {
    const auto at = uid_by_call_.find(response->call.value);
    if (at == uid_by_call_.end()) return;
    // 5xx to a write leaves its fate open, so that must be read too.
    const bool settled = response->response.status < 500;
    if (!at->second.empty()) {
      if (settled) open_bindings_.erase(at->second);
    } else if (response->response.status == 404) {
      // The pod that was read is gone; which one it was does not matter, its uid never returns.
    } else {
      const std::string uid(Member(response->response.body.view(), "uid"));
      if (settled) open_bindings_.erase(uid);
    }
    uid_by_call_.erase(at);
  }
}

// What was never sent is known not to have happened.
void Checkers::OnFailed(const env::CallFailed& failed) {
  if (failed.failure != env::CallFailure::kNotSent) return;
  const auto at = uid_by_call_.find(failed.call.value);
  if (at == uid_by_call_.end()) return;
  open_bindings_.erase(at->second);
  uid_by_call_.erase(at);
}

void Checkers::OnSchedulerRestarted() {
  // A new scheduler lists before it decides: that is reading.
  open_bindings_.clear();
  uid_by_call_.clear();
}

void Checkers::Report(Instant now, const std::string& what) {
  violations_.push_back(fmt::format("{:.6f} s: {}", static_cast<double>(now.ns) / 1e9, what));
}

}  // namespace berth::sim
