#include "nodes/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "api/quantity.h"
#include "api/requests.h"
#include "base/check.h"
#include "client/request.h"

namespace berth::nodes {
namespace {

// Looked at again after a write that the server refused or that lost a race whose winner is not yet
// seen: the watch nearly always tells sooner.
constexpr Duration kLookAgain = Duration::Seconds(2);
constexpr Duration kRefusedPause = Duration::Seconds(30);

const client::Resource kNodesResource{.plural = "nodes"};
const client::Resource kLeases{.group = "coordination.k8s.io", .plural = "leases"};
constexpr std::string_view kLeaseNamespace = "kube-node-lease";

std::string KeyOf(std::string_view namespace_name, std::string_view name) {
  return client::KnownSet::Key(namespace_name, name);
}

// The bits of a pod network that has an address for every pod, and some for pods that still end.
uint32_t PodNetworkBits(const std::vector<NodeSpec>& nodes) {
  int64_t pods_max = 0;
  for (const NodeSpec& node : nodes) {
    const auto text =
        api::Find(node.allocatable.empty() ? node.capacity : node.allocatable, "pods");
    if (!text.has_value()) continue;
    const Result<api::Quantity> pods = api::ParseQuantity(*text);
    if (pods) pods_max = std::max(pods_max, pods->whole());
  }
  uint32_t bits = 8;
  while (bits < 12 && (int64_t{1} << bits) < pods_max + 3) ++bits;
  while (bits > 8 && (static_cast<uint64_t>(nodes.size()) << bits) > (1u << 24) - kServicesSize)
    --bits;
  return bits;
}

// A share of the interval that belongs to the name, so that thousands of nodes don't write at once.
Duration Spread(std::string_view name, Duration interval) {
  if (interval.ns <= 0) return {};
  return {static_cast<int64_t>(HashOf(name) % static_cast<uint64_t>(interval.ns))};
}

}  // namespace

Nodes::Nodes(Options options)
    : options_(std::move(options)),
      client_(options_.client),
      pods_watch_(client_.Watch({.resource = client::Pods(), .field_selector = "spec.nodeName!="})),
      nodes_watch_(client_.Watch({.resource = kNodesResource})) {
  const uint32_t bits = PodNetworkBits(options_.nodes);
  nodes_.resize(options_.nodes.size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].network = NetworkOf(i, bits);
    const bool fresh = node_index_.emplace(options_.nodes[i].name, i).second;
    CHECK(fresh);
  }
}

bool Nodes::ready() const { return started_; }

bool Nodes::registered() const { return started_ && nodes_known_ == nodes_.size(); }

std::optional<uint32_t> Nodes::FindNode(std::string_view name) const {
  const auto at = node_index_.find(name);
  if (at == node_index_.end()) return std::nullopt;
  return at->second;
}

const NodeCharges& Nodes::charges(std::string_view node) const {
  const std::optional<uint32_t> index = FindNode(node);
  CHECK(index.has_value());
  return nodes_[*index].charges;
}

void Nodes::Step(Instant now, env::Input input, env::Outbox& out) {
  std::vector<client::Event> events;
  client_.Handle(now, input, out, events);
  for (client::Event& event : events) OnEvent(now, event, out);
  if (!ready()) return;
  OnTimers(now, out);
  Pump(now, out);
}

Instant Nodes::wake_at() const {
  Instant at = client_.wake_at();
  if (!ready()) return at;
  if (!timers_.empty()) at = std::min(at, timers_.front().at);
  const bool waiting = !ready_.empty() || !ready_nodes_.empty();
  if (waiting && pod_calls_ < options_.calls_max) at = Instant{};
  return at;
}

void Nodes::OnEvent(Instant now, client::Event& event, env::Outbox& out) {
  if (const auto* object = std::get_if<client::ObjectEvent>(&event)) {
    OnObject(now, *object, out);
  } else if (std::holds_alternative<client::Synced>(event)) {
    if (!started_ && client_.synced()) OnSynced();
  } else if (const auto* done = std::get_if<client::CallDone>(&event)) {
    OnCallDone(now, *done, out);
  } else if (const auto* trouble = std::get_if<client::WatchTrouble>(&event);
             trouble != nullptr && !trouble->repeated) {
    out.emplace_back(
        env::Log{env::LogLevel::kWarning,
                 fmt::format("nodes: watch: {} ({})", trouble->message, trouble->status)});
  } else if (std::holds_alternative<client::ServerAnswers>(event)) {
    out.emplace_back(env::Log{env::LogLevel::kInfo, "nodes: the API server answers again"});
  }
}

void Nodes::OnObject(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
  const bool gone = event.change == client::Change::kDeleted;
  if (event.watch == nodes_watch_) {
    if (!gone) return ObserveNode(now, event.object.view());
    const std::optional<uint32_t> index = FindNode(event.name);
    if (index.has_value() && nodes_[*index].uid == event.uid) ForgetNode(*index);
    return;
  }
  if (!gone) return ObservePod(now, event.object.view(), out);
  const auto at = pod_index_.find(KeyOf(event.namespace_name, event.name));
  if (at != pod_index_.end() && pods_[at->second].uid == event.uid) RemovePod(at->second);
}

// Takes up what an earlier life of these kubelets left: what it admitted is charged by now, the
// rest is looked at in order of age.
void Nodes::OnSynced() {
  started_ = true;
  for (uint32_t i = 0; i < nodes_.size(); ++i) EnqueueNode(i);
  std::vector<std::tuple<Instant, std::string_view, uint32_t>> order;
  for (uint32_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i].uid.empty() || pods_[i].object.empty()) continue;
    Instant created{};
    const Result<api::ObjectHead> head = decoder_.Head(pods_[i].object.view());
    if (head) created = head->meta.creation_time;
    order.emplace_back(created, pods_[i].uid, i);
  }
  std::ranges::sort(order);
  for (const auto& [created, uid, index] : order) Enqueue(index);
}

uint64_t Nodes::Call(Instant now, client::Request request, CallRow row, env::Outbox& out) {
  const env::CallId id = client_.Call(now, std::move(request), out);
  calls_.emplace(id.value, std::move(row));
  return id.value;
}

void Nodes::OnCallDone(Instant now, const client::CallDone& done, env::Outbox& out) {
  const auto at = calls_.find(done.call.value);
  if (at == calls_.end()) return;
  const CallRow call = std::move(at->second);
  calls_.erase(at);
  switch (call.kind) {
    case CallKind::kPodStatus:
    case CallKind::kPodDelete:
    case CallKind::kPodRead:
      --pod_calls_;
      return OnPodCall(now, call, done, out);
    case CallKind::kNodeCreate:
    case CallKind::kNodeStatus:
    case CallKind::kNodeRead:
      --pod_calls_;
      return OnNodeCall(now, call, done, out);
    case CallKind::kLeaseCreate:
    case CallKind::kLeaseRenew:
    case CallKind::kLeaseRead:
      return OnLeaseCall(now, call, done, out);
  }
}

void Nodes::SetTimer(Timer timer) {
  if (timer.at == Instant::Never()) return;
  timers_.push_back(timer);
  std::ranges::push_heap(timers_, std::greater<>());
}

void Nodes::OnTimers(Instant now, env::Outbox& out) {
  while (!timers_.empty() && timers_.front().at <= now) {
    const Timer timer = timers_.front();
    std::ranges::pop_heap(timers_, std::greater<>());
    timers_.pop_back();
    switch (timer.kind) {
      case TimerKind::kPod:
        if (!pods_[timer.index].uid.empty() && pods_[timer.index].wake == timer.at) {
          pods_[timer.index].wake = Instant::Never();
          Enqueue(timer.index);
        }
        break;
      case TimerKind::kNode:
        EnqueueNode(timer.index);
        break;
      case TimerKind::kLease:
        if (nodes_[timer.index].lease_due == timer.at) RenewLease(now, timer.index, out);
        break;
    }
  }
}

// ---- Pods ------------------------------------------------------------------------------------

void Nodes::ObservePod(Instant now, std::string_view json, env::Outbox& out) {
  const Result<api::Pod> pod = decoder_.Pod(json);
  if (!pod) {
    out.emplace_back(env::Log{env::LogLevel::kError, "nodes: pod: " + pod.error().message});
    return;
  }
  const std::optional<uint32_t> node = FindNode(pod->node_name);
  if (!node.has_value()) return;
  const auto at = pod_index_.find(KeyOf(pod->meta.namespace_name, pod->meta.name));
  if (at != pod_index_.end()) {
    const PodRow& known = pods_[at->second];
    const client::Version version = client::Version::Parse(pod->meta.resource_version);
    if (known.uid != pod->meta.uid) {
      RemovePod(at->second);
    } else if (version.OlderThan(known.version) || version == known.version) {
      return;
    }
  }
  const uint32_t index = UpsertPod(now, *pod, *node);
  PodRow& row = pods_[index];
  row.object = Bytes(std::string(json));
  if (!started_) return;
  // Nothing waits before it: no need to read the document a second time.
  if (ready_.empty() && row.call == 0 && pod_calls_ < options_.calls_max) {
    return Act(now, index, *pod, out);
  }
  Enqueue(index);
}

uint32_t Nodes::UpsertPod(Instant now, const api::Pod& pod, uint32_t node) {
  const std::string key = KeyOf(pod.meta.namespace_name, pod.meta.name);
  uint32_t index = 0;
  const auto at = pod_index_.find(key);
  if (at != pod_index_.end()) {
    index = at->second;
  } else {
    if (free_pods_.empty()) {
      free_pods_.push_back(static_cast<uint32_t>(pods_.size()));
      pods_.emplace_back();
    }
    index = free_pods_.back();
    free_pods_.pop_back();
    pods_[index] = PodRow{};
    pods_[index].namespace_name = pod.meta.namespace_name;
    pods_[index].name = pod.meta.name;
    pods_[index].uid = pod.meta.uid;
    pods_[index].node = node;
    pods_[index].seen = now;
    pod_index_.emplace(key, index);
    nodes_[node].pods.insert(index);
    ++counts_.pods;
  }
  PodRow& row = pods_[index];
  row.version = client::Version::Parse(pod.meta.resource_version);
  if (IsTerminal(pod)) {
    Release(row);
  } else if (WasAdmitted(pod) && !row.charged) {
    Charge(row, pod);
  }
  return index;
}

void Nodes::RemovePod(uint32_t index) {
  PodRow& row = pods_[index];
  Release(row);
  nodes_[row.node].pods.erase(index);
  pod_index_.erase(KeyOf(row.namespace_name, row.name));
  // A call under way finds another uid when it ends.
  row = PodRow{};
  free_pods_.push_back(index);
  --counts_.pods;
}

void Nodes::Charge(PodRow& row, const api::Pod& pod) {
  NodeRow& node = nodes_[row.node];
  row.requests = api::BoundRequests(pod);
  row.charged = true;
  node.charges.Charge(row.requests);
  ++counts_.running;
  if (pod.spec->host_network) return;
  const uint32_t size = 1u << node.network.pods_bits;
  NodeNetwork own{};
  // An address that an earlier life gave is kept, unless another pod has it.
  if (!pod.pod_ip.empty() && ParseCidr(pod.pod_ip + "/30", own) && own.pods >= node.network.pods &&
      own.pods - node.network.pods < size) {
    const uint32_t offset = own.pods - node.network.pods;
    if (node.charges.TakeAddress(offset)) row.address = offset;
    return;
  }
  row.address = node.charges.AllocateAddress(size);
}

void Nodes::Release(PodRow& row) {
  if (!row.charged) return;
  NodeRow& node = nodes_[row.node];
  node.charges.Release(row.requests);
  if (row.address != 0) node.charges.FreeAddress(row.address);
  row.charged = false;
  row.address = 0;
  row.requests = {};
  --counts_.running;
}

void Nodes::Enqueue(uint32_t index) {
  if (pods_[index].queued) return;
  pods_[index].queued = true;
  ready_.push_back(index);
}

void Nodes::EnqueueNode(uint32_t index) {
  if (nodes_[index].queued) return;
  nodes_[index].queued = true;
  ready_nodes_.push_back(index);
}

// The pods of a node that came or came back, those first that it saw first.
void Nodes::EnqueuePodsOf(uint32_t index) {
  std::vector<std::tuple<Instant, std::string_view, uint32_t>> order;
  for (const uint32_t pod : nodes_[index].pods) {
    order.emplace_back(pods_[pod].seen, pods_[pod].uid, pod);
  }
  std::ranges::sort(order);
  for (const auto& [seen, uid, pod] : order) Enqueue(pod);
}

void Nodes::Pump(Instant now, env::Outbox& out) {
  while (!ready_nodes_.empty() && pod_calls_ < options_.calls_max) {
    const uint32_t index = ready_nodes_.front();
    ready_nodes_.pop_front();
    nodes_[index].queued = false;
    EvaluateNode(now, index, out);
  }
  while (!ready_.empty() && pod_calls_ < options_.calls_max) {
    const uint32_t index = ready_.front();
    ready_.pop_front();
    if (!pods_[index].queued) continue;  // The row was freed meanwhile.
    pods_[index].queued = false;
    Evaluate(now, index, out);
  }
}

void Nodes::Evaluate(Instant now, uint32_t index, env::Outbox& out) {
  PodRow& row = pods_[index];
  if (row.uid.empty() || row.object.empty() || row.call != 0) return;
  const Result<api::Pod> pod = decoder_.Pod(row.object.view());
  CHECK(pod.has_value());  // It was read when it was observed.
  Act(now, index, *pod, out);
}

// What is due, after the node's own admission.
PodStep Nodes::DecideRow(Instant now, PodRow& row, const api::Pod& pod) {
  if (options_.planted_revive && pod.phase == "Succeeded") {
    return {.action = PodAction::kStatus, .status = R"({"phase":"Running"})"};
  }
  NodeRow& node = nodes_[row.node];
  const std::string& name = options_.nodes[row.node].name;
  const std::string host_ip = Ipv4(node.network.host);
  std::string pod_ip = pod.pod_ip;
  const auto own_address = [&] {
    if (!pod_ip.empty() || !row.charged) return;
    pod_ip = row.address == 0 ? host_ip : Ipv4(node.network.pods + row.address);
  };
  own_address();
  PodOnNode on_node{
      .node = name, .host_ip = host_ip, .pod_ip = pod_ip, .seen = row.seen, .started = row.started};
  if (pod.meta.deletion_time.has_value()) on_node.stop_sleep = PreStopSleep(row.object.view());
  if (options_.planted_start_again && pod.phase == "Running" && row.started.ns == 0) {
    api::Pod forgotten = pod;
    forgotten.container_statuses.clear();
    return Decide(forgotten, on_node, options_.timing, now);
  }
  PodStep step = Decide(pod, on_node, options_.timing, now);
  if (step.action != PodAction::kAdmit) return step;
  const std::optional<Misfit> misfit = node.charges.Check(api::BoundRequests(pod));
  if (misfit.has_value()) {
    ++counts_.refused;
    return {.action = PodAction::kStatus,
            .status = RefusedStatus(pod, on_node, misfit->reason, misfit->message, now)};
  }
  Charge(row, pod);
  own_address();
  on_node.pod_ip = pod_ip;
  return Decide(pod, on_node, options_.timing, now);
}

void Nodes::Act(Instant now, uint32_t index, const api::Pod& pod, env::Outbox& out) {
  PodRow& row = pods_[index];
  const NodeRow& node = nodes_[row.node];
  if (!node.online || node.uid.empty()) return;  // Looked at when the node is there.
  PodStep step = DecideRow(now, row, pod);
  const client::ObjectRef ref{.namespace_name = row.namespace_name,
                              .name = row.name,
                              .uid = row.uid,
                              .resource_version = pod.meta.resource_version};
  switch (step.action) {
    case PodAction::kNothing:
      SetPodTimer(index, step.wake);
      if (step.wake == Instant::Never()) row.object = {};
      return;
    case PodAction::kStatus:
      row.call = Call(now, client::PatchStatus(client::Pods(), ref, step.status),
                      {CallKind::kPodStatus, index, row.uid}, out);
      if (step.started.ns != 0) row.started = step.started;
      break;
    case PodAction::kDelete:
      row.call = Call(now, client::Delete(client::Pods(), ref, 0),
                      {CallKind::kPodDelete, index, row.uid}, out);
      break;
    case PodAction::kAdmit:
      CHECK(false);
  }
  row.decided = row.version;
  ++pod_calls_;
}

void Nodes::SetPodTimer(uint32_t index, Instant at) {
  pods_[index].wake = at;
  if (at != Instant::Never()) SetTimer({at, TimerKind::kPod, index});
}

// What an answer shows, which the watch then need not tell again.
void Nodes::Learn(Instant now, const Bytes& pod, env::Outbox& out) {
  std::vector<client::Event> events;
  client_.Learn(now, pods_watch_, pod.view(), events);
  for (client::Event& event : events) OnEvent(now, event, out);
}

bool Nodes::Shows(const Bytes& pod, std::string_view uid) {
  const Result<api::ObjectHead> head = decoder_.Head(pod.view());
  return head.has_value() && head->meta.uid == uid;
}

void Nodes::OnPodCall(Instant now, const CallRow& call, const client::CallDone& done,
                      env::Outbox& out) {
  PodRow& row = pods_[call.index];
  if (row.uid != call.uid || row.call != done.call.value) return;
  row.call = 0;
  switch (done.outcome) {
    case client::Outcome::kDone:
      if (call.kind == CallKind::kPodDelete) {
        // The watch tells the end; what a finalizer keeps is looked at when it changes.
        if (row.version != row.decided) Enqueue(call.index);
        return;
      }
      if (call.kind == CallKind::kPodRead && !Shows(done.response.body, call.uid)) {
        // The watch tells of the successor, after those whose room it takes.
        return SetPodTimer(call.index, now + kLookAgain);
      }
      Learn(now, done.response.body, out);
      if (pods_[call.index].uid == call.uid) Enqueue(call.index);
      return;
    case client::Outcome::kConflict:
    case client::Outcome::kGone:
      // What overtook the write may be seen by now.
      row.started = {};
      if (row.version != row.decided) return Enqueue(call.index);
      return SetPodTimer(call.index, now + kLookAgain);
    case client::Outcome::kUnknown: {
      const client::ObjectPath path{.namespace_name = row.namespace_name, .name = row.name};
      row.call = Call(now, client::Get(client::Pods(), path),
                      {CallKind::kPodRead, call.index, row.uid}, out);
      row.decided = row.version;
      ++pod_calls_;
      return;
    }
    case client::Outcome::kRefused:
      row.started = {};
      out.emplace_back(env::Log{env::LogLevel::kWarning,
                                fmt::format("nodes: pod {}/{}: {}", row.namespace_name, row.name,
                                            client::StatusOf(done.response).message)});
      SetPodTimer(call.index, now + kRefusedPause);
  }
}

// ---- Nodes -----------------------------------------------------------------------------------

void Nodes::ObserveNode(Instant now, std::string_view json) {
  const Result<api::Node> node = decoder_.Node(json);
  if (!node) return;
  const std::optional<uint32_t> index = FindNode(node->meta.name);
  if (!index.has_value()) return;
  NodeRow& row = nodes_[*index];
  const client::Version version = client::Version::Parse(node->meta.resource_version);
  if (row.uid != node->meta.uid) {
    if (row.uid.empty()) ++nodes_known_;
    row.uid = node->meta.uid;
    row.lease_uid.clear();
    row.lease_due = now + Spread(node->meta.name, options_.lease_every);
    if (options_.leases) SetTimer({row.lease_due, TimerKind::kLease, *index});
    if (options_.status_every.ns > 0) {
      row.status_due = now + options_.status_every + Spread(node->meta.name, options_.status_every);
    } else {
      row.status_due = Instant::Never();
    }
    row.introduced = true;
    // What an earlier life dealt out stands; anything else leaves the network as it was.
    NodeNetwork dealt = row.network;
    if (ParseCidr(node->pod_cidr, dealt)) row.network = dealt;
    if (started_) EnqueuePodsOf(*index);
  } else if (version.OlderThan(row.version)) {
    return;
  }
  row.version = version;
  row.resource_version = node->meta.resource_version;
  row.conditions = node->conditions;
  row.allocatable_change = AllocatableChange(options_.nodes[*index], *node);
  row.charges.SetAllocatable(node->allocatable);
  if (started_) EnqueueNode(*index);
}

void Nodes::ForgetNode(uint32_t index) {
  NodeRow& row = nodes_[index];
  if (!row.uid.empty()) --nodes_known_;
  row.uid.clear();
  row.lease_uid.clear();
  row.conditions.clear();
  row.allocatable_change.clear();
  row.lease_due = Instant::Never();
}

void Nodes::EvaluateNode(Instant now, uint32_t index, env::Outbox& out) {
  NodeRow& row = nodes_[index];
  const NodeSpec& spec = options_.nodes[index];
  if (!row.online || row.call != 0 || now < row.retry) return;
  if (row.uid.empty()) {
    // A node that somebody deleted stays away until its kubelet starts anew.
    if (row.introduced && !options_.registers_again) return;
    row.call = Call(now,
                    client::Create(kNodesResource, {},
                                   NodeDocument(spec, row.network, options_.kubelet_version, now)),
                    {CallKind::kNodeCreate, index, {}}, out);
    ++pod_calls_;
    return;
  }
  const auto ready = std::ranges::find(row.conditions, "Ready", &api::NodeCondition::type);
  const bool is_ready = ready != row.conditions.end() && ready->status == "True";
  const bool is_told = is_ready && row.allocatable_change.empty();
  if (is_told && now < row.status_due) return SetTimer({row.status_due, TimerKind::kNode, index});
  if (options_.status_every.ns > 0) row.status_due = now + options_.status_every;
  const client::ObjectRef ref{
      .name = spec.name, .uid = row.uid, .resource_version = row.resource_version};
  client::Request request = client::PatchStatus(
      kNodesResource, ref, ReadyStatus(row.conditions, row.allocatable_change, now));
  request.priority = is_told ? client::Priority::kLow : client::Priority::kHigh;
  row.call = Call(now, std::move(request), {CallKind::kNodeStatus, index, row.uid}, out);
  ++pod_calls_;
}

void Nodes::OnNodeCall(Instant now, const CallRow& call, const client::CallDone& done,
                       env::Outbox& out) {
  NodeRow& row = nodes_[call.index];
  row.call = 0;
  if (done.outcome == client::Outcome::kDone) {
    ObserveNode(now, done.response.body.view());
    return EnqueueNode(call.index);
  }
  const bool read =
      call.kind != CallKind::kNodeRead &&
      (done.outcome == client::Outcome::kUnknown ||
       (call.kind == CallKind::kNodeCreate && done.outcome == client::Outcome::kConflict));
  if (read) {
    const std::string& name = options_.nodes[call.index].name;
    row.call = Call(now, client::Get(kNodesResource, {.name = name}),
                    {CallKind::kNodeRead, call.index, call.uid}, out);
    ++pod_calls_;
    return;
  }
  if (done.outcome == client::Outcome::kRefused) {
    out.emplace_back(env::Log{env::LogLevel::kWarning,
                              fmt::format("nodes: node {}: {}", options_.nodes[call.index].name,
                                          client::StatusOf(done.response).message)});
  }
  row.retry = now + kLookAgain;
  SetTimer({row.retry, TimerKind::kNode, call.index});
}

void Nodes::RenewLease(Instant now, uint32_t index, env::Outbox& out) {
  NodeRow& row = nodes_[index];
  if (row.uid.empty()) return;
  row.lease_due = std::max(row.lease_due + options_.lease_every, now);
  SetTimer({row.lease_due, TimerKind::kLease, index});
  if (!row.online || row.lease_call != 0) return;
  const std::string& name = options_.nodes[index].name;
  const std::string renewed = client::MicroTime(now);
  const client::ObjectPath path{.namespace_name = kLeaseNamespace, .name = name};
  client::Request request;
  CallKind kind = CallKind::kLeaseRenew;
  if (row.lease_uid.empty()) {
    kind = CallKind::kLeaseCreate;
    request = client::Create(
        kLeases, kLeaseNamespace,
        fmt::format(R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{)"
                    R"("name":"{0}","namespace":"{1}","ownerReferences":[{{"apiVersion":"v1",)"
                    R"("kind":"Node","name":"{0}","uid":"{2}"}}]}},"spec":{{)"
                    R"("holderIdentity":"{0}","leaseDurationSeconds":{3},"renewTime":"{4}"}}}})",
                    name, kLeaseNamespace, row.uid, options_.lease_seconds, renewed));
  } else {
    request =
        client::Patch(kLeases, path, client::PatchType::kMerge,
                      fmt::format(R"({{"metadata":{{"uid":"{}"}},"spec":{{"holderIdentity":"{}",)"
                                  R"("leaseDurationSeconds":{},"renewTime":"{}"}}}})",
                                  row.lease_uid, name, options_.lease_seconds, renewed));
  }
  // Before everything else: a lease that comes late takes the node's pods with it.
  request.priority = client::Priority::kHigh;
  // The one that is due next would wait for a longer one.
  request.timeout = std::min(request.timeout, options_.lease_every);
  row.lease_call = Call(now, std::move(request), {kind, index, row.uid}, out);
}

void Nodes::OnLeaseCall(Instant now, const CallRow& call, const client::CallDone& done,
                        env::Outbox& out) {
  NodeRow& row = nodes_[call.index];
  row.lease_call = 0;
  if (row.uid != call.uid) return;
  const std::string& name = options_.nodes[call.index].name;
  if (done.outcome == client::Outcome::kDone) {
    const Result<api::ObjectHead> head = decoder_.Head(done.response.body.view());
    if (!head || head->meta.name != name) return;
    row.lease_uid = head->meta.uid;
    if (call.kind != CallKind::kLeaseRead) return;
    row.lease_due = now;
    return SetTimer({now, TimerKind::kLease, call.index});
  }
  // Made by an earlier life, replaced or gone: learn who it is, or make it with the next renewal.
  row.lease_uid.clear();
  if (done.outcome != client::Outcome::kConflict) return;
  const client::ObjectPath path{.namespace_name = kLeaseNamespace, .name = name};
  row.lease_call =
      Call(now, client::Get(kLeases, path), {CallKind::kLeaseRead, call.index, row.uid}, out);
}

bool Nodes::SetOnline(std::string_view node, bool online) {
  const std::optional<uint32_t> index = FindNode(node);
  if (!index.has_value()) return false;
  NodeRow& row = nodes_[*index];
  if (row.online == online) return true;
  row.online = online;
  if (!online) return true;
  row.introduced = !row.uid.empty();
  row.retry = {};
  EnqueueNode(*index);
  EnqueuePodsOf(*index);
  return true;
}

// ---- Hash ------------------------------------------------------------------------------------

// `version` follows from `resource_version`, `pods` from the pods' rows, `queued` from
// `ready_nodes_`.
void Nodes::AddTo(Hasher& hasher, const NodeRow& row) {
  row.charges.AddTo(hasher);
  hasher.Add(row.network.host).Add(row.network.pods).Add(row.network.pods_bits);
  hasher.Add(row.uid).Add(row.resource_version).Add(row.online).Add(row.introduced);
  hasher.Add(row.allocatable_change)
      .Add(row.lease_uid)
      .Add(row.call)
      .Add(row.lease_call)
      .Add(row.lease_due.ns);
  hasher.Add(row.status_due.ns).Add(row.retry.ns).Add(row.conditions.size());
  for (const api::NodeCondition& condition : row.conditions) {
    hasher.Add(condition.type).Add(condition.status).Add(condition.reason);
    hasher.Add(condition.heartbeat.ns).Add(condition.transition.ns);
  }
}

void Nodes::AddTo(Hasher& hasher, const PodRow& row) {
  hasher.Add(row.namespace_name).Add(row.name).Add(row.uid).Add(row.object.view());
  hasher.Add(row.version.value).Add(row.version.numeric);
  hasher.Add(row.decided.value).Add(row.decided.numeric);
  hasher.Add(row.node).Add(row.address).Add(row.charged).Add(row.queued).Add(row.call);
  hasher.Add(row.seen.ns).Add(row.started.ns).Add(row.wake.ns).Add(row.requests.size());
  for (const api::ResourceAmount& request : row.requests) {
    hasher.Add(request.name).Add(request.amount);
  }
}

// `pod_index_` and `nodes_known_` follow from the rows; `counts_` are only shown.
void Nodes::AddTo(Hasher& hasher) const {
  client_.AddTo(hasher);
  hasher.Add(nodes_.size());
  for (const NodeRow& row : nodes_) AddTo(hasher, row);
  hasher.Add(pods_.size());
  for (const PodRow& row : pods_) AddTo(hasher, row);
  hasher.Add(free_pods_.size());
  for (const uint32_t index : free_pods_) hasher.Add(index);
  for (const auto* ready : {&ready_, &ready_nodes_}) {
    hasher.Add(ready->size());
    for (const uint32_t index : *ready) hasher.Add(index);
  }
  // How the heap lies in memory does not count: timers are taken in their own order.
  uint64_t timers = 0;
  for (const Timer& timer : timers_) {
    timers += Hasher().Add(timer.at.ns).Add(timer.kind).Add(timer.index).value();
  }
  hasher.Add(timers_.size()).Add(timers).Add(calls_.size());
  for (const auto& [id, call] : calls_) hasher.Add(id).Add(call.kind).Add(call.index).Add(call.uid);
  hasher.Add(pod_calls_).Add(started_);
}

}  // namespace berth::nodes
