#include "explore/promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <variant>
#include <vector>

#include "api/types.h"
#include "codec/scan.h"
#include "explore/words.h"

namespace berth::explore {
namespace {

constexpr std::string_view kNominated = "nominatedNodeName";
constexpr std::string_view kLists[] = {R"("kind":"PodList")", R"("kind":"NodeList")",
                                       R"("kind":"PodGroupList")", R"("kind":"QueueList")"};

// Waits to be bound.
bool Waits(const sim::Truth::PodFacts& pod) { return pod.active() && pod.node_name.empty(); }

std::string KeyOf(std::string_view object) {
  const std::string_view metadata = codec::Member(object, "metadata");
  return fmt::format("{}/{}", codec::StringMember(metadata, "namespace"),
                     codec::StringMember(metadata, "name"));
}

env::JournalRecord Record(std::string_view prefix, std::string_view object, bool gone) {
  return {.key = std::string(prefix) + KeyOf(object),
          .revision = sim::VersionIn(object),
          .value = gone ? Bytes() : Bytes(std::string(object))};
}

}  // namespace

void Promises::OnSent(const env::SendRequest& sent) {
  const env::HttpRequest& request = sent.request;
  const std::string_view target =
      std::string_view(request.target).substr(0, request.target.find('?'));
  const std::string_view body = request.body.view();
  const std::string uid = MemberIn(body, "uid");
  if (body.contains(kNominated)) {
    preempting_[sent.call.value] = {.uid = uid, .node = {}};
  } else if (request.method == env::Method::kDelete || body.contains("DisruptionTarget")) {
    const sim::Truth::PodFacts* victim = FindHeard(uid);
    preempting_[sent.call.value] = {.uid = {}, .node = victim == nullptr ? "" : victim->node_name};
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

void Promises::OnFailed(uint64_t call) {
  const auto at = preempting_.find(call);
  if (at == preempting_.end()) return;
  const Preempting failed = at->second;
  preempting_.erase(at);
  std::erase_if(promises_, [&](const auto& entry) {
    return failed.uid.empty() ? entry.second.node == failed.node : entry.first == failed.uid;
  });
}

void Promises::OnHeard(const env::Input& input) {
  if (const auto* response = std::get_if<env::Response>(&input)) {
    const std::string_view body = response->response.body.view();
    if (response->response.status >= 300) return OnFailed(response->call.value);
    preempting_.erase(response->call.value);
    if (std::ranges::any_of(kLists, [&](std::string_view kind) { return body.contains(kind); })) {
      HearList(body);
    } else if (body.contains(R"("kind":"Pod")")) {
      HearAnswer(body);
    }
  } else if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
    OnFailed(failed->call.value);
  } else if (const auto* data = std::get_if<env::StreamData>(&input)) {
    HearEvent(data->data.view());
  }
}

// What follows a list on the watch is newer.
void Promises::HearList(std::string_view list) {
  const bool of_pods = list.contains(kLists[0]);
  const bool of_nodes = list.contains(kLists[1]);
  const bool of_groups = list.contains(kLists[2]);
  codec::ArrayScanner items(codec::Member(list, "items"));
  while (items.Next()) {
    if (of_pods) {
      HearPod(items.value(), false);
    } else {
      heard_.Apply(Record(of_nodes    ? sim::kNodesPrefix
                          : of_groups ? sim::kGroupsPrefix
                                      : sim::kGroupQueuesPrefix,
                          items.value(), false));
    }
  }
}

// What follows an answer may be older than it, and so may the answer be.
void Promises::HearAnswer(std::string_view object) {
  const auto known = heard_.pods().find(KeyOf(object));
  if (known == heard_.pods().end() ||
      sim::VersionIn(known->second.document.view()) >= sim::VersionIn(object)) {
    return;
  }
  const sim::Truth::Change change = heard_.Apply(Record(sim::kPodsPrefix, object, false));
  const sim::Truth::PodFacts& pod = *change.pod_after;
  if (Waits(pod) && !pod.nominated.empty()) {
    promises_.try_emplace(pod.uid, Promise{.node = pod.nominated, .heard = false, .over = false});
  }
}

void Promises::HearEvent(std::string_view event) {
  const std::string_view object = codec::Member(event, "object");
  const std::string kind = codec::StringMember(object, "kind");
  const std::string type = codec::StringMember(event, "type");
  if (type == "BOOKMARK" || type == "ERROR") return;
  if (kind == "Pod") {
    const auto known = heard_.pods().find(KeyOf(object));
    const bool older = known != heard_.pods().end() &&
                       sim::VersionIn(known->second.document.view()) > sim::VersionIn(object);
    if (!older) HearPod(object, type == "DELETED");
  } else if (kind == "Node") {
    heard_.Apply(Record(sim::kNodesPrefix, object, type == "DELETED"));
    const std::string node = NameIn(object);
    std::erase_if(promises_, [&](const auto& entry) { return entry.second.node == node; });
  } else if (kind == "PodGroup") {
    heard_.Apply(Record(sim::kGroupsPrefix, object, type == "DELETED"));
  } else if (kind == "Queue") {
    heard_.Apply(Record(sim::kGroupQueuesPrefix, object, type == "DELETED"));
  }
}

void Promises::HearPod(std::string_view object, bool gone) {
  const sim::Truth::Change change = heard_.Apply(Record(sim::kPodsPrefix, object, gone));
  if (change.pod_before && (gone || change.pod_before->uid != change.pod_after->uid)) {
    promises_.erase(change.pod_before->uid);
  }
  if (gone) return;
  const std::string& uid = change.pod_after->uid;
  const std::string& node = change.pod_after->nominated;
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
  heard_ = {};
  promises_.clear();
  preempting_.clear();
  bindings_.clear();
  withdrawn_.clear();
}

const sim::Truth::PodFacts* Promises::FindHeard(std::string_view uid) const {
  const auto at = std::ranges::find_if(heard_.pods(),
                                       [&](const auto& entry) { return entry.second.uid == uid; });
  return at == heard_.pods().end() ? nullptr : &at->second;
}

// What those take that stand there, are not on their way, and are of at least that priority: others
// may be victims.
sim::Truth::Usage Promises::StaysOn(const std::string& node, int64_t priority) const {
  sim::Truth::Usage usage;
  for (const auto& [key, pod] : heard_.pods()) {
    if (pod.node_name == node && pod.active() && pod.priority >= priority) usage.Charge(pod, 1);
  }
  return usage;
}

bool Promises::Fits(const sim::Truth::Usage& usage, const std::string& node) const {
  const auto at = heard_.nodes().find(node);
  return at != heard_.nodes().end() && std::ranges::all_of(usage.amounts, [&](const auto& entry) {
           return entry.second <= api::Find(at->second.allocatable, entry.first).value_or(0);
         });
}

// Whether the one, which has a place there, has none beside the other.
bool Promises::TakesRoom(const sim::Truth::PodFacts& binds, const std::string& node,
                         const sim::Truth::PodFacts& promised) const {
  if (!Waits(promised) || promised.priority < binds.priority) return false;
  constexpr int64_t kEverybody = std::numeric_limits<int64_t>::min();
  for (const int64_t priority : {kEverybody, promised.priority}) {
    sim::Truth::Usage usage = StaysOn(node, priority);
    usage.Charge(promised, 1);
    if (!Fits(usage, node)) continue;  // Victims are yet to be named, or it can't come true.
    usage.Charge(binds, 1);
    return !Fits(usage, node);
  }
  return false;
}

const sim::Truth::PodFacts* Promises::RobbedBy(const sim::Truth::PodFacts& binds,
                                               const std::string& node) const {
  sim::Truth::Usage all = StaysOn(node, std::numeric_limits<int64_t>::min());
  const sim::Truth::PodFacts* last = nullptr;
  for (const auto& [uid, promise] : promises_) {
    const sim::Truth::PodFacts* promised = FindHeard(uid);
    if (promise.over || promise.node != node || promised == nullptr || promised == &binds) continue;
    if (TakesRoom(binds, node, *promised)) return promised;
    if (!Waits(*promised) || promised->priority < binds.priority) continue;
    all.Charge(*promised, 1);
    last = promised;
  }
  if (last == nullptr || !Fits(all, node)) return nullptr;
  all.Charge(binds, 1);
  return Fits(all, node) ? nullptr : last;
}

std::optional<std::string> Promises::OnStep() {
  for (const Said& withdrawn : withdrawn_) {
    const sim::Truth::PodFacts* loser = FindHeard(withdrawn.uid);
    const bool lost = std::ranges::any_of(promises_, [&](const auto& entry) {
      const sim::Truth::PodFacts* winner = FindHeard(entry.first);
      return !entry.second.over && entry.second.node == withdrawn.node && loser != nullptr &&
             winner != nullptr && Waits(*winner) && winner->priority > loser->priority;
    });
    if (lost) ++explained_;
  }
  withdrawn_.clear();
  std::optional<std::string> wrong;
  for (const Said& binding : bindings_) {
    const sim::Truth::PodFacts* binds = FindHeard(binding.uid);
    const sim::Truth::PodFacts* robbed =
        binds == nullptr ? nullptr : RobbedBy(*binds, binding.node);
    if (robbed == nullptr) continue;
    wrong = fmt::format("pod {} is to be bound to node {}, whose room is promised to pod {}",
                        binds->key, binding.node, robbed->key);
  }
  bindings_.clear();
  return wrong;
}

void Promises::OnNodeLost(const sim::Truth& truth, std::string_view node) {
  for (const auto& [key, pod] : truth.pods()) {
    if (Waits(pod) && pod.nominated == node) ++explained_;
  }
}

std::optional<std::string> Promises::OnEviction(const sim::Truth& truth, const Deletion& deletion,
                                                uint32_t most) {
  const std::string_view target = deletion.target.substr(0, deletion.target.find('?'));
  const std::string name(target.substr(target.rfind('/') + 1));
  const std::string uid = MemberIn(deletion.body, "uid");
  const auto at = truth.pods().find("default/" + name);
  // Gone, or another of its name: the fence holds.
  if (at == truth.pods().end() || at->second.uid != uid) return std::nullopt;
  evicted_.insert(uid);
  if (!deletion.orphan && evictions_heard_.contains(uid))
    return fmt::format("pod {} (uid {}) is evicted a second time", name, uid);
  if (deletion.heard) evictions_heard_.insert(uid);
  if (const uint32_t enough = most * (1 + explained_); evicted_.size() > enough) {
    return fmt::format("pod {} is evicted: {}, where {} must be enough", name,
                       Counted(evicted_.size(), "eviction"), enough);
  }
  return std::nullopt;
}

// heard_ follows from what the scheduler keeps and preempting_ from the calls on their way; who no
// longer waits is promised nothing.
void Promises::AddTo(Hasher& hasher) const {
  for (const std::set<std::string>* each : {&evicted_, &evictions_heard_}) {
    hasher.Add(each->size());
    for (const std::string& text : *each) hasher.Add(std::string_view(text));
  }
  hasher.Add(explained_);
  for (const auto& [uid, promise] : promises_) {
    const sim::Truth::PodFacts* pod = FindHeard(uid);
    if (pod == nullptr || !Waits(*pod)) continue;
    hasher.Add(uid).Add(promise.node).Add(promise.heard).Add(promise.over);
  }
}

// Whose workload gave its quota back: it is gone, and the watch of pods is to tell that.
bool IsLeftBehind(const model::State& state, const model::Claim& claim) {
  const model::PodId pod = state.pods().FindUid(claim.owner);
  if (!pod.valid() || claim.state != model::ClaimState::kHeld) return false;
  const model::WorkloadId workload = state.WorkloadOf(pod);
  return workload.valid() && ChargedTo(state.workloads().at(workload)).charges.empty();
}

std::string OverPromised(const model::State& state) {
  const model::NodeTable& nodes = state.nodes();
  const model::BundleTable& bundles = state.vocabulary().bundles;
  const model::Viewer everything{.owner = {}, .priority = std::numeric_limits<int32_t>::min()};
  for (uint32_t row = 0; row < nodes.size(); ++row) {
    const model::NodeId node{row};
    if (!nodes.used(node) || !nodes.present(node)) continue;
    // What others nominate is a fact, whether it fits or not.
    std::vector<model::BundleId> beside;
    bool ours = false;
    for (model::ClaimId id = state.ledger().nodes().first_reserved(row); id.valid();
         id = state.ledger().claim(id).next_in_account) {
      const model::PodId holder = state.pods().FindUid(state.ledger().claim(id).owner);
      if (state.workloads().FindUid(state.ledger().claim(id).owner).valid() ||
          (holder.valid() && state.pods().at(holder).ours)) {
        ours = true;
      } else {
        beside.push_back(state.ledger().claim(id).bundle);
      }
    }
    if (!ours) continue;  // Nodes shrink, and others bind.
    for (model::ClaimId id = state.ledger().nodes().first_claim(row); id.valid();
         id = state.ledger().claim(id).next_in_account) {
      if (IsLeftBehind(state, state.ledger().claim(id)))
        beside.push_back(state.ledger().claim(id).bundle);
    }
    for (const model::ResourceId resource : {model::kCpu, model::kMemory, model::kPods}) {
      model::Amount left =
          state.ledger().Future(model::AccountId::OfNode(node), resource, everything, bundles);
      for (const model::BundleId bundle : beside) left += bundles.AmountOf(bundle, resource);
      if (left >= 0) continue;
      return fmt::format("node {} is promised to more than fit: {} of {} too much",
                         state.NameOf(nodes.name(node)), -left,
                         state.vocabulary().resources.Name(resource));
    }
  }
  return {};
}

}  // namespace berth::explore
