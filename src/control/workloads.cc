#include "control/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "client/workload_status.h"
#include "codec/topology.h"
#include "control/status_text.h"
#include "model/backoff.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"

namespace berth::control {
namespace {

// Of a status that was refused or is of unknown fate.
constexpr Duration kAgain = Duration::Seconds(10);
// Of the condition QuotaReserved.
constexpr std::string_view kAdmissionRefused = "AdmissionRefused";

model::WorkloadStage StageOf(const api::Workload& workload) {
  return StageOf(translate::WorkloadStatusOf(workload));
}

// Whether it waits for quota, as far as its object says: else there is nothing to be told of that,
// and what others wrote stands.
bool MayBeTold(const api::Workload& workload) {
  const model::WorkloadStatus status = translate::WorkloadStatusOf(workload);
  return StageOf(status) == model::WorkloadStage::kPending && status.active && !status.on_hold &&
         !workload.meta.deletion_time;
}

std::string AdmissionText(const api::Admission& admission) {
  std::string text = R"({"clusterQueue":)" + client::JsonString(admission.cluster_queue);
  text += R"(,"podSetAssignments":[)";
  for (const api::PodSetAssignment& pods : admission.pod_sets) {
    if (&pods != &admission.pod_sets.front()) text += ',';
    text += R"({"name":)" + client::JsonString(pods.name) + R"(,"flavors":{)";
    for (const auto& [resource, flavor] : pods.flavors) {
      if (resource != pods.flavors.front().first) text += ',';
      text += client::JsonString(resource) + ':' + client::JsonString(flavor);
    }
    text += R"(},"resourceUsage":{)";
    for (const api::ResourceAmount& a : pods.usage) {
      if (a.name != pods.usage.front().name) text += ',';
      text += client::JsonString(a.name) + ':' +
              client::JsonString(translate::ResourceAmountText(a.name, a.amount));
    }
    text += fmt::format(R"(}},"count":{})", pods.count.value_or(0));
    if (pods.topology)
      text += R"(,"topologyAssignment":)" + codec::TopologyAssignmentText(*pods.topology);
    if (pods.topology_delayed || pods.topology_came) {
      text += fmt::format(R"(,"delayedTopologyRequest":"{}")",
                          pods.topology_delayed ? "Pending" : "Ready");
    }
    text += '}';
  }
  return text + "]}";
}

std::string_view PlacementOf(const api::Workload& workload) {
  return api::Find(workload.meta.annotations, api::kPlacementAnnotation).value_or("");
}

model::WriteOutcome OutcomeOf(client::Outcome outcome) {
  switch (outcome) {
    case client::Outcome::kDone:
      return model::WriteOutcome::kDone;
    case client::Outcome::kConflict:
      return model::WriteOutcome::kConflict;
    case client::Outcome::kGone:
      return model::WriteOutcome::kGone;
    case client::Outcome::kRefused:
      return model::WriteOutcome::kRefused;
    case client::Outcome::kUnknown:
      break;
  }
  return model::WriteOutcome::kUnknown;
}

// As upstream's of pods that were not ready in time: a minute, doubled each time, an hour at most.
std::string BackoffText(const api::Workload& workload, Instant now) {
  const int64_t count = client::OneMore(workload.requeue_count);
  const Duration wait = BackoffOf(PodsReadyRules{}, count);
  return fmt::format(R"(,"requeueState":{{"count":{},"requeueAt":"{}"}})", count,
                     client::SecondsTime(now + wait));
}

}  // namespace

// Whether something was decided on this version and is to be written.
bool Workloads::IsDecided(const Note& note) {
  return note.reservation.has_value() || note.pass.has_value();
}

Workloads::News Workloads::Observe(api::Workload workload, bool lacks_places) {
  const auto [it, fresh] = notes_.try_emplace(workload.meta.uid);
  Note& note = it->second;
  ChangeIndex(it->first, fresh ? Queues{} : QueuesNamedBy(note.workload), QueuesNamedBy(workload));
  News news = News::kNone;
  const bool changed = note.workload.meta.resource_version != workload.meta.resource_version;
  if (changed) note.writes_failed = 0;
  if (changed && IsDecided(note))
    news = DiffersByPlacement(note, workload) ? News::kPlaced : News::kWithdraws;
  if (!fresh && StageOf(note.workload) != StageOf(workload)) note.refused.reset();
  note.workload = std::move(workload);
  if (news != News::kPlaced) note.lacks_places = lacks_places;
  if (news == News::kWithdraws) {
    note.reservation.reset();
    note.pass.reset();
  }
  if (!MayBeTold(note.workload)) note.waiting = {};
  const model::WorkloadStatus status = translate::WorkloadStatusOf(note.workload);
  if (StageOf(status) != model::WorkloadStage::kReserved && !NeedsSecondPass(status)) {
    note.held_up.clear();
    note.awaits_mates = false;
  }
  Reconsider(it->first, note);
  return news;
}

void Workloads::Reread(std::string_view uid) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  it->second.unresolved = true;
  Reconsider(it->first, it->second);
}

void Workloads::Forget(std::string_view uid) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  due_.erase({it->second.due, it->first});
  ChangeIndex(it->first, QueuesNamedBy(it->second.workload), {});
  notes_.erase(it);
}

QueuesOf Workloads::QueuesOfNote(const Note& note) const {
  const api::Workload& workload = note.workload;
  QueuesOf queues{.lacks_places = note.lacks_places,
                  .held_up = note.held_up,
                  .awaits_mates = note.awaits_mates};
  if (options_.pods_ready) queues.pods_ready = &*options_.pods_ready;
  const auto local = local_queues_.find(workload.meta.namespace_name + '/' + workload.queue);
  std::string_view name;
  if (local != local_queues_.end()) {
    queues.local_queue_drains = local->second.drains;
    name = local->second.cluster_queue;
  }
  if (workload.admission) name = workload.admission->cluster_queue;
  const auto queue = cluster_queues_.find(name);
  if (queue != cluster_queues_.end()) queues.cluster_queue = &queue->second;
  return queues;
}

// Who is to be evicted need not be admitted first.
Upkeep Workloads::UpkeepOfNote(const Note& note) const {
  const Upkeep upkeep = UpkeepOf(note.workload, QueuesOfNote(note));
  const bool of_admission = upkeep.due == Due::kAdmit || upkeep.due == Due::kChecks;
  return of_admission && note.eviction ? Upkeep{} : upkeep;
}

// An empty name is none.
Workloads::Queues Workloads::QueuesNamedBy(const api::Workload& workload) {
  return {.local_queue = workload.meta.namespace_name + '/' + workload.queue,
          .cluster_queue = workload.admission ? workload.admission->cluster_queue : ""};
}

namespace {

// It names another now.
void Move(std::map<std::string, std::set<std::string>, std::less<>>& names_by,
          const std::string& what, const std::string& before, const std::string& now) {
  if (before == now) return;
  if (!before.empty()) {
    const auto at = names_by.find(before);
    at->second.erase(what);
    if (at->second.empty()) names_by.erase(at);
  }
  if (!now.empty()) names_by[now].insert(what);
}

}  // namespace

void Workloads::ChangeIndex(const std::string& uid, const Queues& before, const Queues& now) {
  Move(of_local_queue_, uid, before.local_queue, now.local_queue);
  Move(admitted_to_, uid, before.cluster_queue, now.cluster_queue);
}

void Workloads::ReconsiderAll() {
  for (auto& [uid, note] : notes_) Reconsider(uid, note);
}

void Workloads::ReconsiderOfLocalQueue(const std::string& key) {
  if (options_.asks_everybody) return ReconsiderAll();
  const auto of = of_local_queue_.find(key);
  if (of == of_local_queue_.end()) return;
  for (const std::string& uid : of->second) Reconsider(uid, notes_.find(uid)->second);
}

// Those that it admitted, and those that it may: whatever LocalQueue leads to it.
void Workloads::ReconsiderOfClusterQueue(const std::string& name) {
  if (options_.asks_everybody) return ReconsiderAll();
  if (const auto of = admitted_to_.find(name); of != admitted_to_.end()) {
    for (const std::string& uid : of->second) Reconsider(uid, notes_.find(uid)->second);
  }
  const auto keys = leads_to_.find(name);
  if (keys == leads_to_.end()) return;
  for (const std::string& key : keys->second) ReconsiderOfLocalQueue(key);
}

void Workloads::SetClusterQueue(const std::string& name, QueueRules rules) {
  const auto [at, fresh] = cluster_queues_.try_emplace(name);
  if (!fresh && at->second == rules) return;
  at->second = std::move(rules);
  ReconsiderOfClusterQueue(name);
}

void Workloads::DropClusterQueue(const std::string& name) {
  if (cluster_queues_.erase(name) > 0) ReconsiderOfClusterQueue(name);
}

void Workloads::SetLocalQueue(const std::string& key, std::string cluster_queue, bool drains) {
  LocalQueue queue{.cluster_queue = std::move(cluster_queue), .drains = drains};
  const auto [at, fresh] = local_queues_.try_emplace(key);
  if (!fresh && at->second == queue) return;
  Move(leads_to_, key, at->second.cluster_queue, queue.cluster_queue);
  at->second = std::move(queue);
  ReconsiderOfLocalQueue(key);
}

void Workloads::DropLocalQueue(const std::string& key) {
  const auto at = local_queues_.find(key);
  if (at == local_queues_.end()) return;
  Move(leads_to_, key, at->second.cluster_queue, "");
  local_queues_.erase(at);
  ReconsiderOfLocalQueue(key);
}

void Workloads::Reserve(std::string_view uid, api::Admission admission, std::string placement,
                        bool lacks_places) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  it->second.reservation = std::move(admission);
  it->second.placement = std::move(placement);
  it->second.reservation_lacks = lacks_places;
  it->second.waiting = {};
  Reconsider(it->first, it->second);
}

void Workloads::Put(std::string_view uid, Pass pass, std::string placement) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  it->second.pass = std::move(pass);
  it->second.placement = std::move(placement);
  it->second.held_up.clear();
  it->second.awaits_mates = false;
  Reconsider(it->first, it->second);
}

void Workloads::HoldUp(std::string_view uid, std::string why, bool awaits_mates) {
  const auto it = notes_.find(uid);
  if (it == notes_.end() || it->second.held_up == why) return;
  it->second.held_up = std::move(why);
  it->second.awaits_mates = awaits_mates;
  Reconsider(it->first, it->second);
}

std::string_view Workloads::WhyHeldUp(std::string_view uid) const {
  const auto it = notes_.find(uid);
  return it == notes_.end() ? std::string_view() : it->second.held_up;
}

const Workloads::Refusal* Workloads::WhyRefused(std::string_view uid) const {
  const auto it = notes_.find(uid);
  return it == notes_.end() || !it->second.refused ? nullptr : &*it->second.refused;
}

const api::Workload* Workloads::Find(std::string_view uid) const {
  const auto it = notes_.find(uid);
  return it == notes_.end() ? nullptr : &it->second.workload;
}

std::set<std::string, std::less<>> Workloads::QueuesHeld() const {
  std::set<std::string, std::less<>> names;
  for (const auto& [uid, note] : notes_) {
    const model::WorkloadStatus status = translate::WorkloadStatusOf(note.workload);
    if (status.reserved && !status.finished && note.workload.admission)
      names.insert(note.workload.admission->cluster_queue);
  }
  return names;
}

void Workloads::Want(std::string_view uid, translate::WaitText waiting) {
  const auto it = notes_.find(uid);
  if (it == notes_.end() || it->second.waiting == waiting || !MayBeTold(it->second.workload))
    return;
  it->second.waiting = std::move(waiting);
  it->second.refused.reset();
  Reconsider(it->first, it->second);
}

void Workloads::Evict(std::string_view uid, EvictionText eviction) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  it->second.eviction = std::move(eviction);
  Reconsider(it->first, it->second);
}

// Whether what is due of it in any case is written before what was decided, which that withdraws:
// all but that it is admitted, which it may be by what was decided.
bool Workloads::GoesBefore(const Upkeep& upkeep, const Note& note) {
  if (note.reservation) return false;
  if (note.pass) return upkeep.due != Due::kNothing && upkeep.due != Due::kAdmit;
  return upkeep.due != Due::kNothing;
}

// Not on a version that a write of ours has replaced.
Instant Workloads::DueOf(const Note& note) const {
  if (note.call != 0) return Instant::Never();
  if (note.unresolved) return note.read_not_before;
  if (note.spent_version == note.workload.meta.resource_version) return Instant::Never();
  const Instant soon = DueBeforeItsEnd(note);
  const Instant end = TimeLimitOf(note.workload, QueuesOfNote(note)).at;
  return std::max(std::min(soon, std::max(end, note.upkeep_not_before)), note.write_not_before);
}

Instant Workloads::DueBeforeItsEnd(const Note& note) const {
  const Upkeep upkeep = UpkeepOfNote(note);
  if (!GoesBefore(upkeep, note) && IsDecided(note)) return Instant{};
  if (upkeep.due != Due::kNothing) return std::max(upkeep.at, note.upkeep_not_before);
  if (note.eviction) {
    const model::WorkloadStage stage = StageOf(note.workload);
    if (stage == model::WorkloadStage::kReserved || stage == model::WorkloadStage::kAdmitted)
      return note.evict_not_before;
  }
  if (note.waiting.reason.empty() || SaysSo(note.workload, note.waiting)) return Instant::Never();
  return SaysReason(note.workload, note.waiting.reason) ? note.wait_not_before
                                                        : note.reason_not_before;
}

void Workloads::Reconsider(const std::string& uid, Note& note) {
  due_.erase({note.due, uid});
  note.due = DueOf(note);
  if (note.due != Instant::Never()) due_.emplace(note.due, uid);
}

// Whether all that is new is the placement that was written for the reservation: what that was
// decided on is as it was.
bool Workloads::DiffersByPlacement(const Note& note, const api::Workload& now) {
  if (!IsToBePlaced(note) || PlacementOf(now) != note.placement) return false;
  api::Workload before = note.workload;
  before.meta = now.meta;
  return before == now && note.workload.meta.labels == now.meta.labels &&
         note.workload.meta.owners == now.meta.owners &&
         note.workload.meta.deletion_time == now.meta.deletion_time;
}

bool Workloads::IsToBePlaced(const Note& note) {
  if (note.pass && !note.pass->why.empty()) return false;
  return IsDecided(note) && PlacementOf(note.workload) != note.placement;
}

// One patch: the places, and of the nodes that failed those that it is about; or the eviction.
std::string Workloads::PassBody(Instant now, const api::Workload& w, const Pass& pass) {
  if (!pass.why.empty()) {
    std::string body = R"("conditions":)" +
                       ConditionsText(ConditionsOfGivenUp(w, pass.reason, pass.why, now)) +
                       client::ResetOfEvicted(w, now);
    // Its nodes may be there at once, when it is placed anew; else it is tried less and less often.
    if (pass.pass == model::Pass::kPlace) body += BackoffText(w, now);
    return body;
  }
  std::string body = R"("admission":)" + AdmissionText(pass.admission);
  if (pass.pass == model::Pass::kPlace)
    return body + R"(,"conditions":)" + ConditionsText(ConditionsOfAdmitted(w, now));
  std::string left;
  for (const std::string& node : w.unhealthy_nodes) {
    if (std::ranges::find(pass.failed, node) == pass.failed.end())
      left += R"({"name":)" + client::JsonString(node) + "},";
  }
  if (!left.empty()) left.pop_back();
  return body + R"(,"unhealthyNodes":)" + (left.empty() ? "null" : "[" + left + "]");
}

// Of the patch that is due, up to the end of its part.
std::string Workloads::BodyOf(Instant now, Note& note, const Upkeep& upkeep,
                              const QueuesOf& queues) {
  const api::Workload& w = note.workload;
  const std::string start = StatusPatchStart(w.meta);
  if (upkeep.due != Due::kNothing && (GoesBefore(upkeep, note) || !IsDecided(note))) {
    note.kind = Call::kUpkeep;
    ++counters_.upkeep;
    return (upkeep.due == Due::kDeactivate ? PatchStart(w.meta, "spec") : start) +
           UpkeepBody(upkeep.due, w, queues, now);
  }
  if (IsToBePlaced(note)) {
    note.kind = Call::kPlace;
    ++counters_.placements;
    return fmt::format(R"({{"metadata":{{"uid":{},"resourceVersion":{},"annotations":{{{}:{}}})",
                       client::JsonString(w.meta.uid), client::JsonString(w.meta.resource_version),
                       client::JsonString(api::kPlacementAnnotation),
                       note.placement.empty() ? "null" : client::JsonString(note.placement));
  }
  if (note.reservation) {
    note.kind = Call::kReserve;
    ++counters_.reservations;
    const api::Admission admission = *std::exchange(note.reservation, std::nullopt);
    const auto rules = cluster_queues_.find(admission.cluster_queue);
    const bool admitted = !note.reservation_lacks && (rules == cluster_queues_.end() ||
                                                      ChecksAreReady(w, admission, rules->second));
    return start + R"("admission":)" + AdmissionText(admission) + R"(,"conditions":)" +
           ConditionsText(ConditionsOfReserved(w, admission, admitted, now)) +
           // Told of places that it had before.
           (w.unhealthy_nodes.empty() ? "" : R"(,"unhealthyNodes":null)");
  }
  if (note.pass) {
    note.kind = Call::kPass;
    ++counters_.passes;
    return start + PassBody(now, w, *std::exchange(note.pass, std::nullopt));
  }
  if (note.eviction) {
    note.kind = Call::kEvict;
    ++counters_.evictions;
    return start + R"("conditions":)" +
           ConditionsText(ConditionsOfEvicted(w, *note.eviction, now)) +
           client::ResetOfEvicted(w, now);
  }
  note.kind = Call::kWait;
  // Once: who is told now this and now that is told as seldom as any.
  const bool is_early = now < note.wait_not_before;
  note.wait_not_before = now + options_.interval;
  note.reason_not_before = now + (is_early ? options_.interval : options_.reason_interval);
  ++counters_.waits;
  return start + R"("conditions":)" + ConditionsText(ConditionsOfWaiting(w, note.waiting, now));
}

void Workloads::Send(Instant now, const std::string& uid, Note& note, client::Client& client,
                     env::Outbox& out) {
  const api::Workload& w = note.workload;
  client::ObjectPath path{.namespace_name = w.meta.namespace_name, .name = w.meta.name};
  client::Request request;
  if (note.unresolved) {
    note.kind = Call::kRead;
    request = client::Get(KueueResource("workloads"), path);
  } else {
    const QueuesOf queues = QueuesOfNote(note);
    Upkeep upkeep = UpkeepOfNote(note);
    const Upkeep end = TimeLimitOf(w, queues);
    if (upkeep.due == Due::kNothing && end.at <= now) upkeep.due = end.due;
    const bool of_status = IsDecided(note) && !GoesBefore(upkeep, note)
                               ? !IsToBePlaced(note)
                               : upkeep.due != Due::kDeactivate;
    if (of_status) path.subresource = "status";
    request = client::Patch(KueueResource("workloads"), path, client::PatchType::kMerge,
                            BodyOf(now, note, upkeep, queues) + "}}");
    note.sent_version = w.meta.resource_version;
  }
  note.call = client.Call(now, std::move(request), out).value;
  calls_.emplace(note.call, uid);
}

void Workloads::Pump(Instant now, const IsEvicted& is_evicted, client::Client& client,
                     env::Outbox& out) {
  while (calls_.size() < options_.calls_max && !due_.empty() && due_.begin()->first <= now) {
    const std::string uid = due_.begin()->second;
    Note& note = notes_.find(uid)->second;
    if (note.eviction && !is_evicted(uid)) {
      note.eviction.reset();
      Reconsider(uid, note);
      continue;
    }
    due_.erase(due_.begin());
    note.due = Instant::Never();
    Send(now, uid, note, client, out);
  }
}

void Workloads::OnDecided(Note& note, client::Outcome outcome, Result& result) {
  // Not of the one before, which came true and was taken back meanwhile.
  if (!IsDecided(note)) result.outcome = OutcomeOf(outcome);
  note.unresolved = outcome == client::Outcome::kConflict || outcome == client::Outcome::kUnknown;
  if (outcome == client::Outcome::kDone) note.spent_version = note.sent_version;
  if (outcome == client::Outcome::kConflict) ++counters_.conflicts;
  if (outcome == client::Outcome::kUnknown || outcome == client::Outcome::kRefused)
    ++counters_.failures;
}

// Without it nothing was decided yet.
void Workloads::OnPlaced(Note& note, client::Outcome outcome, Result& result) {
  if (outcome == client::Outcome::kDone) {
    note.spent_version = note.sent_version;
    return;
  }
  if (!IsDecided(note)) return;
  note.reservation.reset();
  note.pass.reset();
  note.unresolved = outcome == client::Outcome::kConflict || outcome == client::Outcome::kUnknown;
  // Nothing came of it that holds quota: whatever the object says now, it is decided anew.
  result.outcome = outcome == client::Outcome::kUnknown || outcome == client::Outcome::kConflict
                       ? model::WriteOutcome::kConflict
                       : OutcomeOf(outcome);
  if (outcome == client::Outcome::kConflict) ++counters_.conflicts;
  if (outcome == client::Outcome::kUnknown || outcome == client::Outcome::kRefused)
    ++counters_.failures;
}

void Workloads::OnRead(Instant now, Note& note, client::Outcome outcome, Result& result) {
  result.read = outcome == client::Outcome::kDone || outcome == client::Outcome::kGone;
  note.unresolved = !result.read;
  note.reads_failed = result.read ? 0 : note.reads_failed + 1;
  note.read_not_before = now + model::Backoff(note.reads_failed);
}

void Workloads::OnTold(Instant now, Note& note, Call kind, client::Outcome outcome,
                       Result& result) {
  switch (outcome) {
    case client::Outcome::kDone:
    case client::Outcome::kGone:
      note.spent_version = note.sent_version;
      return;
    case client::Outcome::kConflict:
      ++counters_.conflicts;
      note.unresolved = true;
      break;
    case client::Outcome::kUnknown:
      ++counters_.failures;
      note.unresolved = true;
      // As good as refused: others may have to go.
      result.stays = kind == Call::kEvict && note.writes_failed % kFailuresMax == 0;
      break;
    case client::Outcome::kRefused:
      ++counters_.failures;
      result.stays = kind == Call::kEvict;
      (kind == Call::kEvict    ? note.evict_not_before
       : kind == Call::kUpkeep ? note.upkeep_not_before
                               : note.wait_not_before) = now + kAgain;
      if (kind == Call::kWait) note.reason_not_before = note.wait_not_before;
      break;
  }
}

// A server that fails time and again is left alone for a while; once is what happens.
void Workloads::NoteFailures(Instant now, Note& note, client::Outcome outcome) {
  note.writes_failed = outcome == client::Outcome::kUnknown ? note.writes_failed + 1 : 0;
  note.write_not_before =
      note.writes_failed <= 1 ? Instant{} : now + model::Backoff(note.writes_failed - 1);
}

// Of one that waits for quota and can't be given it, that is why it waits: nothing else tells.
void Workloads::OnRefused(Instant now, Note& note, Call kind, const env::HttpResponse& response) {
  const client::ApiStatus status = client::StatusOf(response);
  const bool decided = kind == Call::kPlace || kind == Call::kReserve || kind == Call::kPass;
  const bool waits = decided && MayBeTold(note.workload);
  const std::string_view what = waits                  ? "its admission"
                                : decided              ? "the change of its places"
                                : kind == Call::kEvict ? "its eviction"
                                : kind == Call::kWait  ? "the condition that says why it waits"
                                                       : "a change of its status";
  // Of who waits for that the other says more.
  if (kind != Call::kWait || !note.refused) {
    note.refused = {.what = what,
                    .code = status.code,
                    .message = status.message,
                    .again = decided ? Instant::Never() : now + kAgain};
  }
  if (!waits) return;
  note.waiting = {
      .reason = std::string(kAdmissionRefused),
      .message = fmt::format("its admission was refused by the API server ({}): {}", status.code,
                             status.message.empty() ? "without a message" : status.message)};
}

std::optional<Workloads::Result> Workloads::OnCallDone(Instant now, const client::CallDone& done) {
  const auto call = calls_.find(done.call.value);
  if (call == calls_.end()) return std::nullopt;
  Result result{.uid = call->second};
  calls_.erase(call);
  if (done.outcome == client::Outcome::kDone) result.object = done.response.body;
  const auto it = notes_.find(result.uid);
  if (it == notes_.end() || it->second.call != done.call.value) return result;
  Note& note = it->second;
  note.call = 0;
  const Call kind = std::exchange(note.kind, Call::kNone);
  if (kind != Call::kRead) NoteFailures(now, note, done.outcome);
  if (kind != Call::kRead && done.outcome == client::Outcome::kRefused)
    OnRefused(now, note, kind, done.response);
  if (done.outcome == client::Outcome::kDone && kind != Call::kPlace && kind != Call::kRead &&
      kind != Call::kWait) {
    note.refused.reset();
  }
  switch (kind) {
    case Call::kPlace:
      OnPlaced(note, done.outcome, result);
      if (done.outcome == client::Outcome::kRefused)
        result.refusal = client::StatusOf(done.response).message;
      break;
    case Call::kReserve:
    case Call::kPass:
      OnDecided(note, done.outcome, result);
      if (done.outcome == client::Outcome::kRefused)
        result.refusal = client::StatusOf(done.response).message;
      break;
    case Call::kRead:
      OnRead(now, note, done.outcome, result);
      break;
    case Call::kWait:
    case Call::kEvict:
    case Call::kUpkeep:
    case Call::kNone:
      OnTold(now, note, kind, done.outcome, result);
      break;
  }
  Reconsider(it->first, note);
  return result;
}

Instant Workloads::wake_at() const {
  if (due_.empty() || calls_.size() >= options_.calls_max) return Instant::Never();
  return due_.begin()->first;
}

std::string_view Workloads::JobOf(std::string_view uid) const {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return {};
  return api::Find(it->second.workload.meta.labels, api::kJobUidLabel).value_or("");
}

// due_ follows from the notes.
void Workloads::AddTo(Hasher& hasher) const {
  hasher.Add(notes_.size());
  for (const auto& [uid, note] : notes_) {
    hasher.Add(uid).AddVersion(note.workload.meta.resource_version);
    for (const api::Condition& c : note.workload.conditions) {
      hasher.Add(c.type).Add(c.status).Add(c.reason).Add(c.message).Add(c.transition.ns);
    }
    hasher.Add(note.reservation.has_value());
    if (note.reservation) hasher.Add(AdmissionText(*note.reservation)).Add(note.placement);
    hasher.Add(note.lacks_places).Add(note.reservation_lacks).Add(note.pass.has_value());
    if (note.pass) {
      hasher.Add(note.pass->pass).Add(AdmissionText(note.pass->admission)).Add(note.placement);
      hasher.Add(note.pass->failed.size()).Add(note.pass->why);
    }
    hasher.Add(note.waiting.reason).Add(note.waiting.message).Add(note.kind).Add(note.held_up);
    hasher.Add(note.awaits_mates);
    hasher.Add(note.eviction.has_value()).Add(note.evict_not_before.ns);
    if (note.eviction) hasher.Add(note.eviction->reason).Add(note.eviction->message);
    hasher.Add(note.refused.has_value());
    if (note.refused) {
      hasher.Add(note.refused->what).Add(note.refused->code).Add(note.refused->message);
      hasher.Add(note.refused->again.ns);
    }
    hasher.AddCall(note.call).AddVersion(note.sent_version).AddVersion(note.spent_version);
    hasher.Add(note.unresolved).Add(note.reads_failed).Add(note.read_not_before.ns);
    hasher.Add(note.writes_failed).Add(note.write_not_before.ns);
    hasher.Add(note.wait_not_before.ns).Add(note.reason_not_before.ns);
    hasher.Add(note.upkeep_not_before.ns).Add(note.due.ns);
    hasher.Add(note.workload.active).Add(note.workload.checks.size());
    for (const api::CheckState& check : note.workload.checks)
      hasher.Add(check.name).Add(check.state).Add(check.transition.ns);
  }
  hasher.Add(cluster_queues_.size());
  for (const auto& [name, rules] : cluster_queues_)
    hasher.Add(name).Add(rules.checks.size()).Add(rules.flavors.size()).Add(rules.drains);
  hasher.Add(local_queues_.size());
  for (const auto& [key, queue] : local_queues_)
    hasher.Add(key).Add(queue.cluster_queue).Add(queue.drains);
  hasher.Add(calls_.size());
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(std::string_view(entry.second));
  });
}

}  // namespace berth::control
