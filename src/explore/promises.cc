#include "explore/promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <variant>
#include <vector>

#include "api/types.h"
#include "explore/words.h"

namespace berth::explore {
namespace {

constexpr std::string_view kNominated = "nominatedNodeName";

const sim::Truth::PodFacts* FindUid(const sim::Truth& truth, std::string_view uid) {
  const auto at = std::ranges::find_if(truth.pods(),
                                       [&](const auto& entry) { return entry.second.uid == uid; });
  return at == truth.pods().end() ? nullptr : &at->second;
}

// What an object or a list says of the pod, from its uid on.
std::string_view ItemIn(std::string_view json, std::string_view uid) {
  const size_t at = json.find(fmt::format("\"uid\":\"{}\"", uid));
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at);
  return json.substr(0, json.find("\"metadata\":{"));
}

// Waits to be bound.
bool Waits(const sim::Truth::PodFacts& pod) { return pod.active() && pod.node_name.empty(); }

// Whether the one has no place there beside the other, which may have it.
bool TakesRoom(const sim::Truth& truth, const sim::Truth::PodFacts& binds, const std::string& node,
               const sim::Truth::PodFacts& promised) {
  const auto at = truth.nodes().find(node);
  if (at == truth.nodes().end() || !Waits(promised) || promised.priority < binds.priority) {
    return false;
  }
  sim::Truth::Usage usage;
  usage.Charge(binds, 1);
  usage.Charge(promised, 1);
  return std::ranges::any_of(usage.amounts, [&](const auto& entry) {
    return entry.second > api::Find(at->second.allocatable, entry.first).value_or(0);
  });
}

}  // namespace

void Promises::OnSent(const env::SendRequest& sent) {
  const env::HttpRequest& request = sent.request;
  const std::string_view target =
      std::string_view(request.target).substr(0, request.target.find('?'));
  const std::string_view body = request.body.view();
  const std::string uid = MemberIn(body, "uid");
  if (request.method == env::Method::kDelete || body.contains("DisruptionTarget") ||
      body.contains(kNominated)) {
    preempting_.insert(sent.call.value);
  }
  if (request.method == env::Method::kPost && target.ends_with("/binding")) {
    const std::string node = MemberIn(body, "name", "\"target\":{");
    // There it stays promised until it is bound: the binding may fail.
    if (Promise& promise = promises_[uid]; promise.node != node) promise.over = true;
    bindings_.push_back({.uid = uid, .node = node});
  } else if (request.method == env::Method::kPatch && body.contains(kNominated)) {
    const std::string node = MemberIn(body, kNominated);
    Promise& promise = promises_[uid];
    if (node.empty()) withdrawn_.push_back({.uid = uid, .node = promise.node});
    promise = {.node = node, .heard = false, .over = node.empty()};
  }
}

void Promises::OnHeard(const sim::Truth& truth, const env::Input& input) {
  if (const auto* response = std::get_if<env::Response>(&input)) {
    const bool preempting = preempting_.erase(response->call.value) > 0;
    if (response->response.status >= 300) {
      if (preempting) promises_.clear();
      return;
    }
    const std::string_view body = response->response.body.view();
    // What follows a list on the watch is newer; what follows another answer may be older.
    const bool newest = body.contains(R"("kind":"PodList")");
    for (const auto& [key, pod] : truth.pods()) {
      const bool told = Waits(pod) && !pod.nominated.empty() &&
                        MemberIn(ItemIn(body, pod.uid), kNominated) == pod.nominated;
      if (told) promises_.try_emplace(pod.uid, Promise{.node = pod.nominated, .heard = newest});
    }
  } else if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
    if (preempting_.erase(failed->call.value) > 0) promises_.clear();
  } else if (const auto* data = std::get_if<env::StreamData>(&input)) {
    const std::string_view frame = data->data.view();
    if (!frame.contains(R"("kind":"Node")")) return OnPodHeard(truth, frame);
    const std::string node = NameIn(frame);
    std::erase_if(promises_, [&](const auto& entry) { return entry.second.node == node; });
  }
}

void Promises::OnPodHeard(const sim::Truth& truth, std::string_view frame) {
  const auto pod = truth.pods().find("default/" + NameIn(frame));
  if (pod == truth.pods().end() || !frame.contains(pod->second.uid)) return;
  const std::string& uid = pod->second.uid;
  const std::string node = MemberIn(frame, kNominated);
  const auto at = promises_.find(uid);
  if (at == promises_.end()) {
    if (!node.empty()) promises_[uid] = {.node = node, .heard = true, .over = false};
    return;
  }
  Promise& promise = at->second;
  if (node == promise.node) {
    promise.heard = true;
  } else if (promise.heard) {
    promise = {.node = node, .heard = true, .over = node.empty()};
  }
}

void Promises::OnRestart() {
  promises_.clear();
  preempting_.clear();
  bindings_.clear();
  withdrawn_.clear();
}

std::optional<std::string> Promises::OnStep(const sim::Truth& truth) {
  for (const Said& withdrawn : withdrawn_) {
    const sim::Truth::PodFacts* loser = FindUid(truth, withdrawn.uid);
    const bool lost = std::ranges::any_of(promises_, [&](const auto& entry) {
      const sim::Truth::PodFacts* winner = FindUid(truth, entry.first);
      return !entry.second.over && entry.second.node == withdrawn.node && loser != nullptr &&
             winner != nullptr && Waits(*winner) && winner->priority > loser->priority;
    });
    if (lost) ++explained_;
  }
  withdrawn_.clear();
  std::optional<std::string> wrong;
  for (const Said& binding : bindings_) {
    const sim::Truth::PodFacts* binds = FindUid(truth, binding.uid);
    if (binds == nullptr) continue;
    for (const auto& [uid, promise] : promises_) {
      const sim::Truth::PodFacts* promised = FindUid(truth, uid);
      if (promise.over || promise.node != binding.node || promised == nullptr) continue;
      if (promised == binds || !TakesRoom(truth, *binds, binding.node, *promised)) continue;
      wrong = fmt::format("pod {} is to be bound to node {}, whose room is promised to pod {}",
                          binds->key, binding.node, promised->key);
    }
  }
  bindings_.clear();
  return wrong;
}

void Promises::OnNodeLost(const sim::Truth& truth, std::string_view node) {
  for (const auto& [key, pod] : truth.pods()) {
    if (Waits(pod) && pod.nominated == node) ++explained_;
  }
}

void Promises::OnPod(std::string_view document) {
  const std::string node = MemberIn(document, "nominatedNodeName");
  if (!node.empty()) nominated_.insert(node);
}

std::optional<std::string> Promises::OnEviction(const sim::Truth& truth, const Deletion& deletion,
                                                uint32_t most) {
  const std::string_view target = deletion.target.substr(0, deletion.target.find('?'));
  const std::string name(target.substr(target.rfind('/') + 1));
  const std::string uid = MemberIn(deletion.body, "uid");
  if (uid.empty()) return fmt::format("pod {} is evicted without its uid", name);
  const auto at = truth.pods().find("default/" + name);
  // Gone, or another of its name: the fence holds.
  if (at == truth.pods().end() || at->second.uid != uid) return std::nullopt;
  const sim::Truth::PodFacts& victim = at->second;
  evicted_.insert(uid);
  if (!deletion.orphan && heard_.contains(uid))
    return fmt::format("pod {} (uid {}) is evicted a second time", name, uid);
  if (deletion.heard) heard_.insert(uid);
  if (!nominated_.contains(victim.node_name)) {
    return fmt::format("pod {} is evicted before any pod was nominated to its node {}", name,
                       victim.node_name);
  }
  if (const uint32_t enough = most * (1 + explained_); evicted_.size() > enough) {
    return fmt::format("pod {} is evicted: {}, where {} must be enough", name,
                       Counted(evicted_.size(), "eviction"), enough);
  }
  return std::nullopt;
}

// preempting_ follows from the calls on their way; who no longer waits is promised nothing.
void Promises::AddTo(Hasher& hasher, const sim::Truth& truth) const {
  for (const std::set<std::string>* each : {&nominated_, &evicted_, &heard_}) {
    hasher.Add(each->size());
    for (const std::string& text : *each) hasher.Add(std::string_view(text));
  }
  hasher.Add(explained_);
  for (const auto& [uid, promise] : promises_) {
    const sim::Truth::PodFacts* pod = FindUid(truth, uid);
    if (pod == nullptr || !Waits(*pod)) continue;
    hasher.Add(uid).Add(promise.node).Add(promise.heard).Add(promise.over);
  }
}

std::string OverPromised(const model::State& state) {
  const model::NodeTable& nodes = state.nodes();
  const model::BundleTable& bundles = state.vocabulary().bundles;
  const model::Viewer everything{.owner = {}, .priority = std::numeric_limits<int32_t>::min()};
  for (uint32_t row = 0; row < nodes.size(); ++row) {
    const model::NodeId node{row};
    if (!nodes.used(node) || !nodes.present(node)) continue;
    // What others nominate is a fact, whether it fits or not.
    std::vector<model::BundleId> foreign;
    bool ours = false;
    for (model::ClaimId id = state.ledger().nodes().first_reserved(row); id.valid();
         id = state.ledger().claim(id).next_in_account) {
      const model::PodId holder = state.pods().FindUid(state.ledger().claim(id).owner);
      if (holder.valid() && state.pods().at(holder).ours) {
        ours = true;
      } else {
        foreign.push_back(state.ledger().claim(id).bundle);
      }
    }
    if (!ours) continue;  // Nodes shrink, and others bind.
    for (const model::ResourceId resource : {model::kCpu, model::kMemory, model::kPods}) {
      model::Amount left =
          state.ledger().Future(model::AccountId::OfNode(node), resource, everything, bundles);
      for (const model::BundleId bundle : foreign) left += bundles.AmountOf(bundle, resource);
      if (left >= 0) continue;
      return fmt::format("node {} is promised to more than fit: {} of {} too much",
                         state.NameOf(nodes.name(node)), -left,
                         state.vocabulary().resources.Name(resource));
    }
  }
  return {};
}

}  // namespace berth::explore
