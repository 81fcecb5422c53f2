#include "control/object_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "client/identity.h"
#include "client/known_set.h"
#include "codec/decode.h"
#include "codec/scan.h"
#include "control/say.h"
#include "control/scheduler.h"
#include "env/log_keys.h"
#include "translate/facts.h"

namespace berth::control {
namespace {

constexpr int kPageLimit = 500;

const client::Resource kNodes{.version = "v1", .plural = "nodes"};

// What the scheduler knows that a node has to give, as NodeSeen has it.
std::vector<std::pair<std::string, int64_t>> KnownOf(const model::State& state,
                                                     model::NodeId node) {
  const model::AccountTable& table = state.ledger().nodes();
  std::vector<std::pair<std::string, int64_t>> out;
  for (uint32_t r = 0; r < table.resources(); ++r) {
    const int64_t capacity = table.capacity(model::ResourceId{r}, node.value);
    if (capacity != 0)
      out.emplace_back(state.vocabulary().resources.Name(model::ResourceId{r}), capacity);
  }
  std::ranges::sort(out);
  return out;
}

std::string TextOf(const std::vector<std::pair<std::string, int64_t>>& amounts) {
  std::string text;
  for (const auto& [name, amount] : amounts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, amount);
  return text;
}

}  // namespace

void ObjectComparison::Begin(Instant now, client::Client& client, env::Outbox& out) {
  if (under_way()) return;
  found_.clear();
  second_ = false;
  Ask(now, client, out);
}

// The next page; without a version in the question the server answers with the newest.
void ObjectComparison::Ask(Instant now, client::Client& client, env::Outbox& out) {
  at_ = Instant::Never();
  client::Request request = client::Get(of_nodes_ ? kNodes : client::Pods(), {});
  request.target += fmt::format("?limit={}", kPageLimit);
  if (!next_.empty()) request.target += fmt::format("&continue={}", client::PercentEncode(next_));
  request.priority = client::Priority::kLow;
  call_ = client.Call(now, std::move(request), out).value;
}

void ObjectComparison::Read(std::string_view item) {
  const auto identity = client::ReadIdentity(item);
  if (!identity) return;
  if (!of_nodes_) {
    const std::string phase = codec::StringMember(codec::Member(item, "status"), "phase");
    pods_.insert_or_assign(
        identity->uid,
        PodSeen{
            .key = client::KnownSet::Key(identity->namespace_name, identity->name),
            .node = codec::StringMember(codec::Member(item, "spec"), "nodeName"),
            .nominated = codec::StringMember(codec::Member(item, "status"), "nominatedNodeName"),
            .terminal = phase == "Succeeded" || phase == "Failed"});
    return;
  }
  codec::Decoder decoder;
  const auto node = decoder.Node(item);
  if (!node) {  // The scheduler can't use it either, and has said so.
    unread_.insert(identity->name);
    return;
  }
  model::Vocabulary vocabulary;
  const model::NodeUpsert facts = translate::NodeFacts(*node, vocabulary);
  NodeSeen seen{.uid = facts.uid, .unschedulable = facts.unschedulable, .allocatable = {}};
  for (const model::ResourceAmount& amount : facts.allocatable) {
    if (amount.amount != 0)
      seen.allocatable.emplace_back(vocabulary.resources.Name(amount.resource), amount.amount);
  }
  std::ranges::sort(seen.allocatable);
  nodes_.insert_or_assign(facts.name, std::move(seen));
}

bool ObjectComparison::OnCallDone(Instant now, const client::CallDone& done,
                                  const Scheduler& scheduler, env::Outbox& out) {
  if (call_ == 0 || done.call.value != call_) return false;
  call_ = 0;
  if (done.outcome != client::Outcome::kDone) {
    Fail(client::WhyOf(done), out);
    return true;
  }
  const std::string_view body = done.response.body.view();
  codec::ArrayScanner items(codec::Member(body, "items"));
  while (items.Next()) Read(items.value());
  if (items.failed()) {
    Fail("the list can't be read", out);
    return true;
  }
  next_ = codec::StringMember(codec::Member(body, "metadata"), "continue");
  if (next_.empty() && of_nodes_) {
    Finish(now, scheduler, out);
    return true;
  }
  if (next_.empty()) of_nodes_ = true;
  at_ = now;
  return true;
}

void ObjectComparison::Fail(std::string_view why, env::Outbox& out) {
  Say(out, env::LogLevel::kWarning,
      fmt::format("comparison with the objects: it ends without a result: {}", why));
  *this = ObjectComparison();
}

void ObjectComparison::Finish(Instant now, const Scheduler& scheduler, env::Outbox& out) {
  std::set<std::string> differences = Differences(scheduler);
  const size_t pods = pods_.size();
  const size_t nodes = nodes_.size();
  pods_.clear();
  nodes_.clear();
  unread_.clear();
  of_nodes_ = false;
  if (!second_ && !differences.empty()) {
    found_ = std::move(differences);
    second_ = true;
    at_ = now + kPause;
    return;
  }
  std::vector<std::string> stand;
  std::ranges::set_intersection(found_, differences, std::back_inserter(stand));
  for (size_t i = 0; i < std::min(stand.size(), kToldMax); ++i)
    Say(out, env::LogLevel::kError, fmt::format("comparison with the objects: {}", stand[i]));
  Say(out, stand.empty() ? env::LogLevel::kInfo : env::LogLevel::kError,
      env::WithKeys("comparison with the objects: ends",
                    {{"pods", fmt::format("{}", pods)},
                     {"nodes", fmt::format("{}", nodes)},
                     {"differences", fmt::format("{}", stand.size())}}));
  found_.clear();
  second_ = false;
}

std::set<std::string> ObjectComparison::Differences(const Scheduler& scheduler) const {
  std::set<std::string> differences;
  ComparePods(scheduler, differences);
  CompareNodes(scheduler, differences);
  return differences;
}

void ObjectComparison::ComparePods(const Scheduler& scheduler,
                                   std::set<std::string>& differences) const {
  const model::State& state = scheduler.engine().state();
  const auto name = [&](model::NameId id) {
    return id.valid() ? state.NameOf(id) : std::string_view();
  };
  for (const auto& [uid, seen] : pods_) {
    if (seen.terminal) continue;  // Those may be left out.
    const model::PodId id = state.FindPod(uid);
    if (!id.valid()) {
      // What can't be read is told of in the log and by `berth why`.
      if (scheduler.unread(seen.key) == nullptr)
        differences.insert(fmt::format("pod {} ({}) is not known", seen.key, uid));
      continue;
    }
    const model::Pod& pod = state.pods().at(id);
    if (pod.terminal)
      differences.insert(fmt::format("pod {} ({}) is known as ended", seen.key, uid));
    if (name(pod.node) != seen.node) {
      differences.insert(fmt::format("pod {} ({}) is on node \"{}\", and known on \"{}\"", seen.key,
                                     uid, seen.node, name(pod.node)));
    }
    if (name(pod.nominated) != seen.nominated) {
      differences.insert(
          fmt::format("pod {} ({}) is nominated to \"{}\", and known to be to \"{}\"", seen.key,
                      uid, seen.nominated, name(pod.nominated)));
    }
  }
  for (uint32_t row = 0; row < state.pods().size(); ++row) {
    const model::PodId id{row};
    if (!state.pods().used(id) || state.pods().at(id).terminal) continue;
    const model::Pod& pod = state.pods().at(id);
    const std::string_view uid = state.UidOf(pod.uid);
    const auto seen = pods_.find(uid);
    if (seen == pods_.end())
      differences.insert(fmt::format("pod {} ({}) is known, and gone", state.KeyOf(pod.key), uid));
    else if (seen->second.terminal)
      differences.insert(fmt::format("pod {} ({}) has ended, and is not known to have",
                                     state.KeyOf(pod.key), uid));
  }
}

void ObjectComparison::CompareNodes(const Scheduler& scheduler,
                                    std::set<std::string>& differences) const {
  const model::State& state = scheduler.engine().state();
  for (const auto& [node_name, seen] : nodes_) {
    // Of these it is known that they are not counted as they are.
    if (scheduler.left_out().contains(node_name)) continue;
    const model::NodeId node = state.FindNode(node_name);
    if (!node.valid() || !state.nodes().present(node)) {
      differences.insert(fmt::format("node {} is not known", node_name));
      continue;
    }
    const std::string_view uid = state.UidOf(state.nodes().uid(node));
    if (uid != seen.uid)
      differences.insert(fmt::format("node {} is {}, and known as {}", node_name, seen.uid, uid));
    if (state.nodes().unschedulable(node) != seen.unschedulable)
      differences.insert(fmt::format("node {}: spec.unschedulable is {}, and known as {}",
                                     node_name, seen.unschedulable, !seen.unschedulable));
    if (const auto known = KnownOf(state, node); known != seen.allocatable) {
      differences.insert(fmt::format("node {} has {}, and is known to have {}", node_name,
                                     TextOf(seen.allocatable), TextOf(known)));
    }
  }
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    const model::NodeId node{row};
    if (!state.nodes().used(node) || !state.nodes().present(node)) continue;
    const std::string_view node_name = state.NameOf(state.nodes().name(node));
    if (!nodes_.contains(node_name) && !unread_.contains(node_name))
      differences.insert(fmt::format("node {} is known, and gone", node_name));
  }
}

void ObjectComparison::Pump(Instant now, client::Client& client, env::Outbox& out) {
  if (at_ <= now) Ask(now, client, out);
}

void ObjectComparison::AddTo(Hasher& hasher) const {
  hasher.AddCall(call_).Add(of_nodes_).Add(second_).Add(next_).Add(at_.ns);
  hasher.Add(found_.size());
  for (const std::string& text : found_) hasher.Add(text);
  hasher.Add(pods_.size());
  for (const auto& [uid, pod] : pods_)
    hasher.Add(uid).Add(pod.key).Add(pod.node).Add(pod.nominated).Add(pod.terminal);
  hasher.Add(unread_.size());
  for (const std::string& name : unread_) hasher.Add(name);
  hasher.Add(nodes_.size());
  for (const auto& [name, node] : nodes_)
    hasher.Add(name).Add(node.uid).Add(node.unschedulable).Add(node.allocatable.size());
}

}  // namespace berth::control
