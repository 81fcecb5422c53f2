#include "sim/checkers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "codec/decode.h"
#include "codec/scan.h"
#include "model/workload_stage.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"

namespace berth::sim {
namespace {

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

constexpr std::string_view kLeaseKey = "leases.coordination.k8s.io/kube-system/kube-scheduler";
// For which others leave the lease alone; a leader ends before.
constexpr Duration kLeaseDuration = Duration::Seconds(15);
// Calls of the standby begin here.
constexpr uint64_t kStandbyCalls = uint64_t{1} << 40;

std::string MetadataUid(std::string_view object) {
  return codec::StringMember(codec::Member(object, "metadata"), "uid");
}

// Waits, and is to get room on the node that it is nominated to.
bool Names(const Truth::PodFacts& pod) {
  return pod.active() && pod.node_name.empty() && !pod.nominated.empty();
}

}  // namespace

void Checkers::OnCommit(Instant now, const env::JournalRecord& record) {
  ++commits_;
  if (record.key == kLeaseKey) OnLease(now, record);
  const Truth::Change change = truth_.Apply(record);
  NoteWaiting(record);
  if (change.pod_before && change.pod_after && change.pod_before->uid == change.pod_after->uid) {
    CheckPod(now, *change.pod_before, *change.pod_after);
    CheckRun(now, *change.pod_before, *change.pod_after);
  } else if (change.pod_after) {
    CheckReplicas(now, *change.pod_after);
  }
  for (const std::string& finding : budgets_.OnCommit(now, record, change, truth_)) {
    Report(now, finding);
  }
  for (const std::string& finding : gangs_.OnCommit(record, change, truth_)) Report(now, finding);
  if (change.pod_before && change.pod_before->active()) {
    const bool goes = !change.pod_after || change.pod_after->deleting;
    if (goes && evicting_.contains(change.pod_before->uid)) ++evictions_;
  }
  if (change.pod_before) NoteEnded(*change.pod_before, change.pod_after, record.revision);
  if (change.pod_after && !change.pod_after->nominated.empty() && !change.pod_after->preempts) {
    Report(now, fmt::format("pod {} must preempt nobody and is nominated to node {}",
                            change.pod_after->key, change.pod_after->nominated));
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
    if (users_bind_.contains(change.pod_after->key) &&
        !open_bindings_.contains(change.pod_after->uid)) {
      strays_.insert(change.pod_after->uid);
    }
    CheckCapacity(now, change.pod_after->node_name);
    CheckDevices(now, *change.pod_after);
  }
}

void Checkers::CheckPod(Instant now, const Truth::PodFacts& before, const Truth::PodFacts& after) {
  if (!before.node_name.empty() && before.node_name != after.node_name) {
    Report(now, fmt::format("pod {} moved from node {} to '{}': it must have a single home",
                            after.key, before.node_name, after.node_name));
  }
  if (before.terminal() && before.phase != after.phase) {
    Report(now, fmt::format("pod {} went from {} to {}: terminal is final", after.key, before.phase,
                            after.phase));
  }
}

// A pod is admitted once and its containers run once, but for restarts that are counted.
void Checkers::CheckRun(Instant now, const Truth::PodFacts& before, const Truth::PodFacts& after) {
  if (before.start.ns != 0 && before.start != after.start) {
    Report(now, fmt::format("pod {} was admitted a second time", after.key));
  }
  if (!before.address.empty() && before.address != after.address) {
    Report(now, fmt::format("pod {} changed its address from {} to '{}'", after.key, before.address,
                            after.address));
  }
  if (after.restarts < before.restarts) {
    Report(now, fmt::format("pod {} was restarted {} times, and now {}", after.key, before.restarts,
                            after.restarts));
  }
  const bool both = before.running.has_value() && after.running.has_value();
  if (both && before.restarts == after.restarts && *before.running != *after.running) {
    Report(now, fmt::format("pod {} was started a second time without a restart", after.key));
  }
}

// Whoever creates pods for a ReplicaSet knows of those that it created itself, and repeats no
// creation that it has heard is not wanted any more.
void Checkers::CheckReplicas(Instant now, const Truth::PodFacts& created) {
  const auto at = creations_.find(created.key);
  if (at == creations_.end()) return;  // Another's.
  const Creation creation = at->second;
  creations_.erase(at);
  if (creation.stray) {
    stray_pods_.insert(created.uid);
    return;
  }
  const int64_t active = std::ranges::count_if(truth_.pods(), [&](const auto& entry) {
    const Truth::PodFacts& pod = entry.second;
    return pod.owner_uid == created.owner_uid && pod.active() && !stray_pods_.contains(pod.uid);
  });
  if (active <= creation.wanted) return;
  Report(now, fmt::format("pod {} is one too many: its ReplicaSet wanted {}, and {} are active",
                          created.key, creation.wanted, active));
}

void Checkers::CheckCapacity(Instant now, const std::string& node) {
  const auto charged = truth_.usage().find(node);
  if (charged == truth_.usage().end()) return;  // The pod has ended, and no other stands there.
  if (Excess(node, UsageWithoutStrays(node)).empty()) return;
  for (const std::string& what : Excess(node, charged->second)) {
    Report(now, fmt::format("node {} is overcommitted by a binding: {}", node, what));
  }
}

std::vector<std::string> Checkers::Excess(const std::string& node,
                                          const Truth::Usage& usage) const {
  std::vector<std::string> excess;
  const auto facts = truth_.nodes().find(node);
  // The node went while the binding was on its way.
  if (facts == truth_.nodes().end()) return excess;
  const api::ResourceList& allocatable = facts->second.allocatable;
  for (const auto& [resource, taken] : usage.amounts) {
    const int64_t offered = api::Find(allocatable, resource).value_or(0);
    if (taken <= offered) continue;
    excess.push_back(fmt::format("{} of {} {}", taken, offered, resource));
  }
  const int64_t devices =
      api::Find(allocatable, translate::kGpuMilliResource).value_or(0) / kDeviceMilli;
  for (const auto& [device, taken] : usage.devices) {
    if (taken == 0 || (device < devices && taken <= kDeviceMilli)) continue;
    excess.push_back(
        fmt::format("{} milli of its device {}, of {} devices", taken, device, devices));
  }
  return excess;
}

Truth::Usage Checkers::UsageWithoutStrays(const std::string& node) const {
  const auto charged = truth_.usage().find(node);
  if (charged == truth_.usage().end()) return {};
  Truth::Usage usage = charged->second;
  if (strays_.empty()) return usage;
  for (const auto& [key, pod] : truth_.pods()) {
    const bool stray = pod.node_name == node && strays_.contains(pod.uid);
    if (stray && !pod.terminal()) usage.Charge(pod, -1);
  }
  return usage;
}

bool Checkers::crowded(const std::string& node) const {
  const auto charged = truth_.usage().find(node);
  if (charged == truth_.usage().end() || strays_.empty()) return false;
  return !Excess(node, charged->second).empty() && Excess(node, UsageWithoutStrays(node)).empty();
}

void Checkers::CheckDevices(Instant now, const Truth::PodFacts& pod) {
  const int64_t gpu = api::Find(pod.requests, translate::kGpuMilliResource).value_or(0);
  const int64_t given = static_cast<int64_t>(pod.devices.size()) * pod.device_milli;
  if (gpu == given) return;
  Report(now, fmt::format("pod {} asks for {} milli of devices and is bound with {} devices",
                          pod.key, gpu, pod.devices.size()));
}

void Checkers::OnSent(Instant now, Party party, const env::SendRequest& request) {
  if (party == Party::kControllers) OnCreation(request.request);
  if (party == Party::kUsers) {
    if (const auto bound = BoundPod(request.request.target)) users_bind_.insert(*bound);
  }
  if (!IsScheduler(party)) return;
  if (request.to != nullptr) return;  // The extender is asked, and writes nothing.
  if (!identities_.empty()) CheckLease(now, party, request.request);
  if (request.request.method == env::Method::kDelete) return OnEviction(now, request.request);
  if (request.request.method == env::Method::kPatch) return OnPatch(request);
  if (request.request.method == env::Method::kGet) {
    // A GET of a pod is how an unknown fate is read.
    sent_[request.call.value] = {.uid = {}, .turn = ++last_turn_};
    return;
  }
  const std::optional<std::string> key = BoundPod(request.request.target);
  if (!key) return;
  const std::string uid = MetadataUid(request.request.body.view());
  if (uid.empty()) {
    Report(now, fmt::format("binding of pod {} is sent without its uid", *key));
    return;
  }
  if (open_bindings_.contains(uid)) {
    Report(now, fmt::format("binding of pod {} (uid {}) is repeated before the fate of the former "
                            "one was read",
                            *key, uid));
  }
  sent_[request.call.value] = {.uid = uid, .turn = ++last_turn_};
  open_bindings_[uid] = last_turn_;
}

// Keeps what another ended: until the scheduler hears of it, it evicts for it in good faith.
void Checkers::NoteEnded(const Truth::PodFacts& before, const std::optional<Truth::PodFacts>& after,
                         uint64_t revision) {
  if (!Names(before)) return;
  const bool same = after.has_value() && after->uid == before.uid;
  if (same && Names(*after) && after->nominated == before.nominated) return;
  const bool bound = same && !after->node_name.empty() && open_bindings_.contains(before.uid);
  const bool renamed = std::ranges::any_of(nominating_, [&](const auto& entry) {
    return entry.second.uid == before.uid && same && entry.second.node == after->nominated;
  });
  if (bound || renamed) return;
  ended_.push_back({.uid = before.uid,
                    .node = before.nominated,
                    .priority = before.priority,
                    .revision = revision});
}

void Checkers::OnPatch(const env::SendRequest& sent) {
  const std::string_view body = sent.request.body.view();
  const std::string_view status = codec::Member(body, "status");
  if (codec::Member(status, "nominatedNodeName").empty()) return;
  nominating_[sent.call.value] = {.uid = MetadataUid(body),
                                  .node = codec::StringMember(status, "nominatedNodeName")};
}

// Whether a pod of higher priority waits and names the node, in the objects, and the scheduler has
// not begun to write that it no longer does; or another ended that, and it has not heard.
bool Checkers::EvictsFor(const std::string& node, int64_t priority) const {
  const bool excused = std::ranges::any_of(
      ended_, [&](const Ended& ended) { return ended.node == node && ended.priority > priority; });
  return excused || std::ranges::any_of(truth_.pods(), [&](const auto& entry) {
           const Truth::PodFacts& pod = entry.second;
           if (!Names(pod) || pod.nominated != node || pod.priority <= priority) return false;
           return std::ranges::none_of(nominating_, [&](const auto& patch) {
             return patch.second.uid == pod.uid && patch.second.node != node;
           });
         });
}

void Checkers::NoteWaiting(const env::JournalRecord& record) {
  if (!record.key.starts_with(kWorkloadsPrefix)) return;
  if (const auto before = waiting_.find(record.key); before != waiting_.end()) {
    waited_.push_back({.priority = before->second, .revision = record.revision});
    waiting_.erase(before);
  }
  if (record.value.empty()) return;
  const Result<api::Workload> workload = decoder_.Workload(record.value.view());
  if (!workload) return;
  if (IsQueued(translate::WorkloadStatusOf(*workload), Instant::Never()))
    waiting_[record.key] = workload->priority;
}

// A list, or a version that is as new.
void Checkers::OnWorkloadsHeard(std::string_view text) {
  constexpr std::string_view kWorkload = R"("kind":"Workload)";
  if (waited_.empty() || !text.contains(kWorkload)) return;
  const std::string_view object = codec::Member(text, "object");
  const uint64_t heard = VersionIn(object.empty() ? text : object);
  std::erase_if(waited_, [&](const Waited& waited) { return waited.revision <= heard; });
}

// Whether a more important workload waits, which may evict as its pods would, or did as far as the
// scheduler knows.
bool Checkers::EvictsForWorkload(int64_t priority) const {
  return std::ranges::any_of(waiting_,
                             [&](const auto& entry) { return entry.second > priority; }) ||
         std::ranges::any_of(waited_,
                             [&](const Waited& waited) { return waited.priority > priority; });
}

// The scheduler deletes for preemptions (I-NOM-2: the nomination is durable before), of workloads
// too, and for gangs that it could not complete.
void Checkers::OnEviction(Instant now, const env::HttpRequest& request) {
  const std::string uid =
      codec::StringMember(codec::Member(request.body.view(), "preconditions"), "uid");
  if (uid.empty()) return Report(now, fmt::format("{} is evicted without its uid", request.target));
  evicting_.insert(uid);
  for (const auto& [key, victim] : truth_.pods()) {
    if (victim.uid != uid || EvictsFor(victim.node_name, victim.priority) ||
        EvictsForWorkload(victim.priority) || gangs_.MayBeReleased(victim)) {
      continue;
    }
    Report(now, fmt::format("pod {} (uid {}) is evicted while no pod of higher priority waits that "
                            "is nominated to its node {}",
                            key, uid, victim.node_name));
  }
}

// What watches of pods and lists of them tell.
void Checkers::OnPodsHeard(std::string_view text) {
  constexpr std::string_view kPod = R"("kind":"Pod")";
  constexpr std::string_view kList = R"("kind":"PodList")";
  if (ended_.empty() || (!text.contains(kPod) && !text.contains(kList))) return;
  const std::string_view object = codec::Member(text, "object");
  const uint64_t heard = VersionIn(object.empty() ? text : object);
  std::erase_if(ended_, [&](const Ended& ended) { return ended.revision <= heard; });
}

void Checkers::OnCreation(const env::HttpRequest& request) {
  if (request.method != env::Method::kPost || !request.target.ends_with("/pods")) return;
  const Result<api::Pod> pod = codec::DecodePod(request.body.view());
  CHECK(pod.has_value());
  for (const api::OwnerReference& owner : pod->meta.owners) {
    if (!owner.controller || owner.kind != "ReplicaSet") continue;
    const auto known = wanted_.find(owner.uid);
    creations_[pod->meta.namespace_name + "/" + pod->meta.name] = {
        .wanted = known == wanted_.end() ? 0 : known->second};
  }
}

void Checkers::OnControllersStep(const controllers::Objects& objects) {
  wanted_.clear();
  for (const controllers::Slot slot : objects.All(api::KindId::kReplicaSet)) {
    wanted_[objects.head(slot).uid] = objects.replica_set(slot)->replicas;
  }
}

void Checkers::OnControllersRestarted() {
  wanted_.clear();
  for (auto& [key, creation] : creations_) creation.stray = true;
}

void Checkers::OnDelivered(Party party, const env::Input& input) {
  if (!IsScheduler(party)) return;
  if (const auto* failed = std::get_if<env::CallFailed>(&input)) OnFailed(*failed);
  // What the other replica hears says nothing of what the leader knows.
  const bool leads = identities_.empty() || party == leader_;
  if (const auto* data = std::get_if<env::StreamData>(&input); data != nullptr && leads) {
    OnPodsHeard(data->data.view());
    OnWorkloadsHeard(data->data.view());
  }
  const auto* response = std::get_if<env::Response>(&input);
  if (response == nullptr) return;
  nominating_.erase(response->call.value);
  if (leads) OnWorkloadsHeard(response->response.body.view());
  if (leads && response->response.body.view().contains(R"("kind":"PodList")")) {
    OnPodsHeard(response->response.body.view());
  }
  const auto at = sent_.find(response->call.value);
  if (at == sent_.end()) return;
  const Sent sent = std::move(at->second);
  sent_.erase(at);
  // 5xx to a write leaves its fate open, so that must be read too. A pod that was read and is gone
  // never returns, whichever it was.
  if (response->response.status >= 500 || (sent.uid.empty() && response->response.status == 404)) {
    return;
  }
  if (!sent.uid.empty()) {
    open_bindings_.erase(sent.uid);
    return;
  }
  const Result<api::ObjectHead> read = codec::DecodeHead(response->response.body.view());
  if (!read) return;
  const auto open = open_bindings_.find(read->meta.uid);
  if (open != open_bindings_.end() && open->second < sent.turn) open_bindings_.erase(open);
}

// What was never sent is known not to have happened; of anything else that ended without an answer
// nothing is learnt.
void Checkers::OnFailed(const env::CallFailed& failed) {
  nominating_.erase(failed.call.value);
  const auto at = sent_.find(failed.call.value);
  if (at == sent_.end()) return;
  if (failed.failure == env::CallFailure::kNotSent) open_bindings_.erase(at->second.uid);
  sent_.erase(at);
}

void Checkers::NoteStrays() {
  for (const auto& [uid, turn] : open_bindings_) {
    if (!bound_uids_.contains(uid)) strays_.insert(uid);
  }
  open_bindings_.clear();
}

void Checkers::ForgetCalls(Party party) {
  const auto of_party = [&](uint64_t call) {
    return identities_.empty() || (call >= kStandbyCalls) == (party == Party::kStandby);
  };
  std::erase_if(nominating_, [&](const auto& entry) { return of_party(entry.first); });
  std::erase_if(sent_, [&](const auto& entry) { return of_party(entry.first); });
}

void Checkers::OnSchedulerRestarted(Party party) {
  // A new scheduler lists before it decides: that is reading.
  if (identities_.empty() || party == leader_) NoteStrays();
  ForgetCalls(party);
  stages_.erase(party);
}

// ---- Of two replicas -------------------------------------------------------------------------

void Checkers::OnReplicaStarted(Party party, std::string identity) {
  identities_[party] = std::move(identity);
}

void Checkers::OnLease(Instant now, const env::JournalRecord& record) {
  const std::string holder =
      codec::StringMember(codec::Member(record.value.view(), "spec"), "holderIdentity");
  renewed_at_ = now;
  if (holder == holder_) return;
  holder_ = holder;
  pods_at_lease_ = truth_.pods_revision();
  nodes_at_lease_ = truth_.nodes_revision();
}

void Checkers::OnLeads(Instant now, Party party, uint64_t pods_version, uint64_t nodes_version) {
  // The barrier is reading, as a new scheduler's lists are.
  if (party != leader_) NoteStrays();
  leader_ = party;
  if (pods_version >= pods_at_lease_ && nodes_version >= nodes_at_lease_) return;
  Report(now, fmt::format("{} begins to lead with pods of version {} and nodes of {}, and those of "
                          "{} and {} were there before it got the lease",
                          ToString(party), pods_version, nodes_version, pods_at_lease_,
                          nodes_at_lease_));
}

// Invariant 8: no write of who is not the leader.
void Checkers::CheckLease(Instant now, Party party, const env::HttpRequest& request) {
  const bool of_lease = request.target.find("/leases") != std::string::npos;
  if (of_lease || request.method == env::Method::kGet) return;
  const std::string& identity = identities_.at(party);
  if (holder_ == identity && now < renewed_at_ + kLeaseDuration) return;
  Report(now, fmt::format("{} writes {} {} and does not hold the lease: {} does", identity,
                          ToString(request.method), request.target,
                          holder_.empty() ? "nobody" : holder_));
}

void Checkers::OnSchedulerStep(Instant now, const model::State& state, Party party) {
  const model::PodTable& pods = state.pods();
  Stages& stages = stages_[party];
  stages.resize(pods.size());
  for (uint32_t row = 0; row < pods.size(); ++row) {
    const model::PodId id{row};
    auto& [uid, stage] = stages[row];
    if (!pods.used(id)) {
      uid = 0;
      continue;
    }
    // Rows and ids are given again, within a step too.
    const uint64_t uid_now = HashOf(state.UidOf(pods.at(id).uid));
    const model::PodStage stage_now = model::StageOf(pods.at(id));
    if (uid == uid_now && !model::MayJump(stage, stage_now)) {
      Report(now, fmt::format("pod {} jumped from stage {} to {}", state.KeyOf(pods.at(id).key),
                              model::ToString(stage), model::ToString(stage_now)));
    }
    uid = uid_now;
    stage = stage_now;
  }
}

void Checkers::Report(Instant now, const std::string& what) {
  violations_.push_back(fmt::format("{:.6f} s: {}", static_cast<double>(now.ns) / 1e9, what));
}

// The objects of truth_ are left out: they are the journal's live records, which it hashes. stages_
// and wanted_ follow from the states of the scheduler and of the controllers; evicting_ is for
// counting alone, and budgets_ for judging what is not the scheduler's.
void Checkers::AddTo(Hasher& hasher) const {
  hasher.AddHistory(commits_).AddHistory(bindings_).AddHistory(evictions_).Add(violations_.size());
  for (const std::string& violation : violations_) hasher.Add(violation);
  hasher.AddPosition(truth_.live_pods_revision(), "pods");
  hasher.AddPosition(truth_.nodes_revision(), "nodes");
  gangs_.AddTo(hasher);
  hasher.Add(bound_uids_.size());
  for (const std::string& uid : bound_uids_) hasher.Add(uid);
  hasher.AddEach(nominating_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(std::string_view(entry.second.uid));
    one.Add(std::string_view(entry.second.node));
  });
  hasher.AddEach(ended_, [](Hasher& one, const Ended& ended) {
    one.Add(std::string_view(ended.uid)).Add(std::string_view(ended.node)).Add(ended.priority);
    one.AddVersion(ended.revision);
  });
  // What was heard decides which these are.
  hasher.AddHistory(waited_.size());
  hasher.Add(open_bindings_.size());
  for (const auto& [uid, turn] : open_bindings_) hasher.Add(uid).AddHistory(turn);
  hasher.Add(creations_.size());
  for (const auto& [key, creation] : creations_) {
    hasher.Add(key).Add(creation.wanted).Add(creation.stray);
  }
  for (const std::set<std::string>* strays : {&strays_, &stray_pods_, &users_bind_}) {
    hasher.Add(strays->size());
    for (const std::string& uid : *strays) hasher.Add(uid);
  }
  for (const auto& [party, identity] : identities_) hasher.Add(party).Add(identity);
  if (!identities_.empty()) {
    hasher.Add(leader_).Add(holder_).Add(renewed_at_.ns);
    hasher.Add(pods_at_lease_).Add(nodes_at_lease_);
  }
  hasher.AddHistory(last_turn_).Add(sent_.size());
  hasher.AddEach(sent_, [&](Hasher& one, const auto& entry) {
    const auto& [call, sent] = entry;
    one.AddCall(call).Add(std::string_view(sent.uid)).AddHistory(sent.turn);
    if (!one.merges()) return;
    // Of turns only their order counts.
    for (const auto& [uid, turn] : open_bindings_) one.Add(turn < sent.turn);
  });
}

}  // namespace berth::sim
