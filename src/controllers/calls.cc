#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/groups.h"
#include "api/names.h"
#include "api/object.h"
#include "base/backoff.h"
#include "base/check.h"
#include "codec/json.h"
#include "controllers/controllers.h"
#include "controllers/refusal.h"

// Carries plans out, and turns what became of each write into facts.
namespace berth::controllers {
namespace {

// How long a key rests when a call for it was not done: client-go's DefaultControllerRateLimiter,
// per item.
constexpr Duration kRetryFirst = Duration::Milliseconds(5);
constexpr Duration kRetryMax = Duration::Seconds(1000);
// What changes meanwhile may be what was in the way: upstream then tries at once.
constexpr Duration kRetryAtChangeMax = Duration::Seconds(1);

bool IsWriteOfObject(Verb verb) {
  return verb == Verb::kCreate || verb == Verb::kPatch || verb == Verb::kPatchStatus ||
         verb == Verb::kDelete || verb == Verb::kFinalize;
}

// Whether a list of at most one object holds one; a malformed answer counts as one.
bool HoldsItems(std::string_view body) {
  const Result<api::Json> list = codec::ParseJson(body);
  if (!list || !list->is_object()) return true;
  const api::Json* items = list->as_object().if_contains("items");
  return items == nullptr || (items->is_array() && !items->as_array().empty());
}

std::string FailureText(const env::HttpResponse& response) {
  client::ApiStatus status = client::StatusOf(response);
  return status.message.empty() ? fmt::format("HTTP {}", response.status)
                                : std::move(status.message);
}

// Whether the object, as it was read after the write, is as it was before.
bool IsUndone(const Write& write, const api::ObjectMeta& now) {
  if (now.uid != write.uid) return false;
  if (write.verb == Verb::kDelete) return !now.deletion_time.has_value();
  return write.verb != Verb::kCreate && now.resource_version == write.resource_version;
}

std::string_view TroubleOf(Verb verb) {
  return verb == Verb::kCreate ? "FailedCreate" : "FailedDelete";
}

// Who tells of a key's owner; empty: nobody does.
std::string_view ComponentOf(Part part) {
  switch (part) {
    case Part::kDeployment:
      return "deployment-controller";
    case Part::kReplicaSet:
      return "replicaset-controller";
    case Part::kReplicationController:
      return "replication-controller";
    case Part::kStatefulSet:
      return "statefulset-controller";
    case Part::kDaemonSet:
      return "daemonset-controller";
    case Part::kCronJob:
      return "cronjob-controller";
    case Part::kJob:
      return "job-controller";
    case Part::kBudget:
      return "controllermanager";
    case Part::kPodGroup:
      return "podgroup-controller";
    case Part::kWorkload:
      return "workload-controller";
    case Part::kClaim:
    case Part::kVolume:
      return "persistentvolume-controller";
    case Part::kEphemeralClaims:
      return "ephemeral_volume";
    default:
      return {};
  }
}

// Whether the part plans what an object makes that has a generation.
bool IsOfOwner(Part part) {
  switch (part) {
    case Part::kDeployment:
    case Part::kReplicaSet:
    case Part::kReplicationController:
    case Part::kStatefulSet:
    case Part::kDaemonSet:
    case Part::kCronJob:
    case Part::kJob:
    case Part::kWorkload:
      return true;
    default:
      return false;
  }
}

// The Events of a write for an owner that was done.
std::vector<Told> ToldOf(const Write& write, Part part, const std::string& name) {
  if (!write.told.empty()) return write.told;
  if (write.kind != api::KindId::kPod || ComponentOf(part).empty()) return {};
  if (write.verb == Verb::kCreate)
    return {{.reason = "SuccessfulCreate", .message = "Created pod: " + name}};
  if (write.verb == Verb::kDelete)
    return {{.reason = "SuccessfulDelete", .message = "Deleted pod: " + name}};
  return {};
}

bool IsPatch(Verb verb) { return verb == Verb::kPatch || verb == Verb::kPatchStatus; }

// The Event of a change of a Job or its Workload that was refused: told of the Workload where it
// was to be changed.
Told FailedPatchOf(const Write& write, std::string_view message) {
  const std::string done = write.told.empty() ? "" : write.told.front().reason;
  Told told{.warning = true, .reason = "FailedUpdate", .message = {}};
  std::string_view what = write.verb == Verb::kPatchStatus ? "updating its status" : "updating it";
  if (done == "Started") {
    told.reason = "FailedStart";
    what = "starting";
  } else if (done == "Stopped") {
    told.reason = "FailedStop";
    what = "stopping";
  }
  told.message = fmt::format("Error {}: {}", what, message);
  if (write.kind == api::KindId::kWorkload) told.about = write.uid;
  return told;
}

// The Event of a write for an owner that was refused.
std::optional<Told> FailureOf(const Write& write, Part part, const std::string& name,
                              std::string_view message) {
  if (IsPatch(write.verb)) {
    const bool told = (part == Part::kJob && write.kind == api::KindId::kJob) ||
                      (part == Part::kWorkload && write.kind != api::KindId::kPod);
    return told ? std::optional(FailedPatchOf(write, message)) : std::nullopt;
  }
  const bool creating = write.verb == Verb::kCreate;
  if (write.kind == api::KindId::kReplicaSet && part == Part::kDeployment && creating) {
    return Told{
        .warning = true,
        .reason = "ReplicaSetCreateError",
        .message = fmt::format("Failed to create new replica set \"{}\": {}", name, message)};
  }
  if (part == Part::kStatefulSet && write.kind == api::KindId::kPod) {
    return Told{.warning = true,
                .reason = std::string(TroubleOf(write.verb)),
                .message = fmt::format("{} Pod {} in StatefulSet {} failed error: {}",
                                       creating ? "Create" : "Delete", name,
                                       name.substr(0, name.rfind('-')), message)};
  }
  if (part == Part::kCronJob && creating) {
    return Told{.warning = true,
                .reason = "FailedCreate",
                .message = fmt::format("Error creating job: {}", message)};
  }
  // Of a group that is made for pods their controller is told, or the pod that has none.
  if (part == Part::kPodGroup && creating && name.starts_with(api::kMadeGroupPrefix)) {
    return Told{.warning = true,
                .reason = "FailedCreate",
                .message = fmt::format(
                    "Error creating PodGroup {}, without which its pods wait: {}", name, message),
                .about = name.substr(api::kMadeGroupPrefix.size())};
  }
  const bool owned = write.kind == api::KindId::kPod || write.kind == api::KindId::kWorkload;
  if (!owned || ComponentOf(part).empty()) return std::nullopt;
  return Told{.warning = true,
              .reason = std::string(TroubleOf(write.verb)),
              .message = fmt::format("Error {}: {}", creating ? "creating" : "deleting", message)};
}

}  // namespace

void Controllers::Tell(Instant now, const Key& key, std::optional<Told> told) {
  if (!told.has_value() || !options_.events) return;
  const Slot about = objects_.Find(told->about.empty() ? key.id : told->about);
  if (about != kNoSlot) {
    // Of the pods that they delete these two say nothing when it fails, as upstream's.
    std::string_view component = ComponentOf(key.part);
    if (key.part == Part::kCollector) component = "garbage-collector-controller";
    if (key.part == Part::kNode) {
      component = told->reason == "TaintManagerEviction" ? kTaintController : "node-controller";
    }
    TellOf(now, objects_.head(about), component, std::move(*told));
  }
}

void Controllers::TellOf(Instant now, const Head& object, std::string_view component, Told told) {
  // Of what nobody knows the kind of any more nothing can be told.
  if (const std::optional<KindNames> names = objects_.KindNamesOf(object))
    recorder_.Tell(now, object, *names, component, std::move(told));
}

void Controllers::Send(Instant now, const Key& key, Write write, env::Outbox& out) {
  const DefinitionFacts* definition =
      write.defined.empty() ? nullptr : objects_.definition(write.defined);
  // What goes with its definition needs no write.
  if (!write.defined.empty() && definition == nullptr) return;
  std::string name = write.name;
  if (write.generate) name += api::GeneratedSuffix(prng_.Next());
  client::Resource resource =
      definition == nullptr ? ResourceOf(write.kind) : definition->resource();
  client::Request request = RequestOf(write, name, resource);
  // Pods are why all of this is done; what is collected can wait.
  if (key.part == Part::kCollector || key.part == Part::kEndedPods) {
    request.priority = client::Priority::kLow;
  }
  if (key.part == Part::kNode) request.priority = client::Priority::kHigh;
  // The document is not needed any more: what is remembered is whom it was about.
  write.body = {};
  write.metadata = {};
  const env::CallId id = client_.Call(now, std::move(request), out);
  calls_.emplace(id.value, CallRow{.key = key,
                                   .write = std::move(write),
                                   .name = std::move(name),
                                   .resource = std::move(resource)});
  ++rows_[key].in_flight;
  ++writes_;
}

void Controllers::Settle(Instant now, const Key& key) {
  Row& row = rows_[key];
  if (--row.in_flight > 0) return;
  row.failures = row.failed ? row.failures + 1 : 0;
  const Duration pause = Doubled(kRetryFirst, row.failures, kRetryMax);
  const Duration at_change = std::min(pause, kRetryAtChangeMax);
  row.not_before = std::max(row.not_before, now + at_change);
  Enqueue(now + (std::exchange(row.again, false) ? at_change : pause), key);
  // It waits while pods may be coming.
  if (key.part == Part::kJob) EnqueueWorkload(now, key.id);
}

int64_t Controllers::ReasonOf(const Key& key) const {
  const bool group = key.part == Part::kPodGroup;
  if (!group && !IsOfOwner(key.part)) return 0;
  const std::string_view id = key.id;
  const Slot slot = objects_.Find(group ? id.substr(id.find('/') + 1) : id);
  if (slot == kNoSlot || objects_.head(slot).deletion.has_value()) return -1;
  if (const api::Deployment* deployment = objects_.deployment(slot))
    return deployment->meta.generation;
  if (const api::Job* job = objects_.job(slot)) return job->meta.generation;
  if (const api::StatefulSet* set = objects_.stateful_set(slot)) return set->meta.generation;
  if (const api::DaemonSet* set = objects_.daemon_set(slot)) return set->meta.generation;
  if (const api::CronJob* cron = objects_.cron_job(slot)) return cron->meta.generation;
  const api::ReplicaSet* set = objects_.replicas_of(slot);
  return set == nullptr ? 0 : set->meta.generation;
}

void Controllers::Withdraw(const Key& key, Row& row) {
  const int64_t reason = ReasonOf(key);
  if (row.planned == reason) return;
  row.planned = reason;
  for (auto at = calls_.begin(); at != calls_.end();) {
    const env::CallId id{at->first};
    CallRow& call = at->second;
    const bool its = call.key == key && !call.reading;
    if (its && client_.CancelQueued(id)) {
      at = calls_.erase(at);
      --row.in_flight;
      continue;
    }
    if (its) {
      client_.DontRepeat(id);
      call.withdrawn = true;
    }
    ++at;
  }
}

// "pods.", "jobs.batch"
std::string Controllers::ResourceTextOf(const CallRow& call) {
  return fmt::format("{}.{}", call.resource.plural, call.resource.group);
}

// Whether a 404 is of the object: a kind that a definition makes, or a version of it, may be served
// no more.
bool Controllers::SaysGone(const CallRow& call, const client::CallDone& done) {
  if (call.write.defined.empty() && !api::KindOf(call.write.kind).custom) return true;
  return client::StatusOf(done.response).message.find(fmt::format("\"{}\" not found", call.name)) !=
         std::string::npos;
}

void Controllers::OnCallDone(Instant now, const client::CallDone& done, env::Outbox& out) {
  if (recorder_.OnCallDone(done)) return;
  const auto at = calls_.find(done.call.value);
  if (at == calls_.end()) return;
  CallRow call = std::move(at->second);
  calls_.erase(at);
  if (call.reading || call.write.verb == Verb::kRead) {
    OnRead(now, call, done, out);
    return;
  }
  if (call.write.verb == Verb::kReadScale) return OnScaleRead(now, call, done);
  switch (done.outcome) {
    case client::Outcome::kDone:
      OnDone(now, call, done, out);
      break;
    case client::Outcome::kGone:
      // What a write with a uid in it was about is gone. Of a creation it is the namespace.
      if (call.write.verb == Verb::kAnyLeft && call.write.defined.empty() &&
          api::KindOf(call.write.kind).custom) {
        // The server doesn't know the kind.
        rows_[call.key].empty.insert(ResourceTextOf(call));
      } else if (!call.write.uid.empty() && SaysGone(call, done)) {
        Buried(now, call.write.uid);
      } else {
        OnRefused(now, call, done, out);
      }
      break;
    case client::Outcome::kRefused:
      if (!call.withdrawn) OnRefused(now, call, done, out);
      break;
    case client::Outcome::kConflict:
    case client::Outcome::kUnknown:
      rows_[call.key].failed = true;
      if (!IsWriteOfObject(call.write.verb)) break;
      if (done.response.status >= 500) call.failure = FailureText(done.response);
      return ReadBack(now, std::move(call), out);
  }
  Settle(now, call.key);
}

void Controllers::ReadBack(Instant now, CallRow call, env::Outbox& out) {
  call.reading = true;
  Write read = call.write;
  read.verb = Verb::kRead;
  const env::CallId id = client_.Call(now, RequestOf(read, call.name, call.resource), out);
  calls_.emplace(id.value, std::move(call));
}

void Controllers::Buried(Instant now, const std::string& uid) {
  const Slot slot = objects_.Find(uid);
  if (slot == kNoSlot) return;
  if (!objects_.head(slot).defined.empty()) NoteGone(uid);
  tombstones_.insert(uid);
  Forget(now, uid);
}

void Controllers::Absorb(Instant now, const Write& write, std::string_view body, env::Outbox& out) {
  const auto watch = std::ranges::find_if(watches_, [&](const auto& entry) {
    return entry.second.kind == write.kind && entry.second.defined == write.defined;
  });
  if (watch == watches_.end()) {
    // Of a definition that is gone nothing is kept. Else it is an Event that owns something.
    if (write.defined.empty()) Observe(now, {.kind = write.kind}, body, out);
    return;
  }
  std::vector<client::Event> events;
  client_.Learn(now, watch->first, body, events);
  for (const client::Event& event : events) OnEvent(now, event, out);
}

void Controllers::OnDone(Instant now, const CallRow& call, const client::CallDone& done,
                         env::Outbox& out) {
  Row& row = rows_[call.key];
  for (Told& told : ToldOf(call.write, call.key.part, call.name))
    Tell(now, call.key, std::move(told));
  switch (call.write.verb) {
    case Verb::kAnyLeft:
      return OnAnyLeft(call, done);
    case Verb::kDeleteCollection:
      row.occupied.erase(ResourceTextOf(call));
      return;
    case Verb::kDelete: {
      if (!row.failed) row.trouble.reset();
      const Result<api::ObjectHead> head = codec::DecodeHead(done.response.body.view());
      // A Status instead of the object: it was the final deletion.
      if (!head || head->meta.uid != call.write.uid) return Buried(now, call.write.uid);
      // The object as it was when it went says nothing of whether it still is.
      if (!head->meta.deletion_time.has_value()) return;
      break;
    }
    case Verb::kCreate:
      if (!row.failed) row.trouble.reset();
      if (options_.planted_forget_created) return;
      break;
    default:
      break;
  }
  Absorb(now, call.write, done.response.body.view(), out);
}

void Controllers::OnAnyLeft(const CallRow& call, const client::CallDone& done) {
  Row& row = rows_[call.key];
  if (HoldsItems(done.response.body.view())) {
    row.occupied.insert(ResourceTextOf(call));
  } else {
    row.empty.insert(ResourceTextOf(call));
  }
}

void Controllers::OnScaleRead(Instant now, const CallRow& call, const client::CallDone& done) {
  const Write& read = call.write;
  if (done.outcome == client::Outcome::kGone && SaysGone(call, done)) {
    Buried(now, read.uid);
    return Settle(now, call.key);
  }
  Row& row = rows_[call.key];
  std::erase_if(row.scales,
                [&](const auto& entry) { return objects_.Find(entry.first) == kNoSlot; });
  ScaleRead result{.version = read.resource_version, .replicas = {}};
  const Result<api::Json> scale = codec::ParseJson(done.response.body.view());
  if (done.outcome == client::Outcome::kDone && scale) {
    result.replicas = api::IntegerAt(*scale, "spec.replicas");
  } else if (done.response.status != 0 && done.response.status != 429) {
    result.failure = FailureText(done.response);
    result.ends = now + kScaleRetry;
  } else {
    // Not having been able to ask is no answer.
    row.failed = true;
    return Settle(now, call.key);
  }
  row.scales[read.uid] = std::move(result);
  Settle(now, call.key);
}

void Controllers::NoteRead(const CallRow& call, bool there) {
  if (call.reading || call.key.part != Part::kWorkload || call.write.kind == api::KindId::kJob)
    return;
  ReadSince& read = rows_[call.key].read;
  if (read.version != call.write.resource_version) read = {.version = call.write.resource_version};
  if (call.write.kind == api::KindId::kNode) {
    read.nodes[call.write.name] = there;
  } else {
    read.workload = true;
  }
}

// What a claim or a volume asked for is seen now if it is there.
void Controllers::NoteAbsent(const CallRow& call) {
  const bool of_volumes = call.key.part == Part::kClaim || call.key.part == Part::kVolume;
  if (of_volumes && !call.reading) rows_[call.key].gone_at = call.write.resource_version;
}

// The server said that what the call is about does not exist under its name.
void Controllers::KnownGone(Instant now, const CallRow& call) {
  if (call.key.part == Part::kNode && call.write.kind == api::KindId::kNode) {
    const auto row = nodes_.find(call.key.id);
    if (row != nodes_.end() && row->second.missing_since.ns != 0) row->second.missing_read = true;
  }
  if (call.write.uid.empty()) return;
  const bool of_jobs = call.key.part == Part::kWorkload || call.key.part == Part::kCronJob;
  if (of_jobs && call.write.kind == api::KindId::kJob && !call.reading)
    absent_.insert(JobAbsence(call.write));
  const Slot dependent = objects_.Find(call.key.id);
  if (call.key.part == Part::kCollector && dependent != kNoSlot && call.key.id != call.write.uid)
    NoteAbsence(objects_, objects_.head(dependent), call.write, absent_);
  // Another namespace than its own may have been asked for it: a dependent there names it.
  const Slot known = objects_.Find(call.write.uid);
  if (known != kNoSlot && objects_.head(known).namespace_name == call.write.namespace_name)
    Buried(now, call.write.uid);
}

// A read, or what became of a write: the live object is seen, or is gone.
void Controllers::OnRead(Instant now, const CallRow& call, const client::CallDone& done,
                         env::Outbox& out) {
  const std::string& uid = call.write.uid;
  switch (done.outcome) {
    case client::Outcome::kDone: {
      const std::string_view body = done.response.body.view();
      const Result<api::ObjectHead> head = codec::DecodeHead(body);
      if (head && !uid.empty() && head->meta.uid != uid) KnownGone(now, call);
      if (call.reading && !call.failure.empty() && head && IsUndone(call.write, head->meta))
        Refuse(now, call, call.failure, out);
      Absorb(now, call.write, body, out);
      NoteRead(call, true);
      if (!call.reading && call.key.part == Part::kPodGroup)
        rows_[call.key].owner_read = call.write.resource_version;
      NoteAbsent(call);
      break;
    }
    case client::Outcome::kGone:
      if (!SaysGone(call, done)) {
        OnRefused(now, call, done, out);
        break;
      }
      NoteRead(call, false);
      NoteAbsent(call);
      KnownGone(now, call);
      // So it was not made.
      if (call.reading && call.write.verb == Verb::kCreate && !call.failure.empty())
        Refuse(now, call, call.failure, out);
      break;
    case client::Outcome::kConflict:
    case client::Outcome::kUnknown:
      // Not knowing is no answer.
      return ReadBack(now, call, out);
    case client::Outcome::kRefused:
      // Nor is not having been able to ask.
      if (done.response.status == 0 || done.response.status == 429) return ReadBack(now, call, out);
      OnRefused(now, call, done, out);
      break;
  }
  Settle(now, call.key);
}

void Controllers::OnRefused(Instant now, const CallRow& call, const client::CallDone& done,
                            env::Outbox& out) {
  out.emplace_back(
      env::Log{env::LogLevel::kWarning, "controllers: " + RefusalLine(call.write, done.response)});
  Refuse(now, call, FailureText(done.response), out);
}

void Controllers::Refuse(Instant now, const CallRow& call, const std::string& message,
                         env::Outbox& out) {
  Row& row = rows_[call.key];
  row.failed = true;
  if (call.reading) {
    out.emplace_back(env::Log{
        env::LogLevel::kWarning,
        fmt::format("controllers: {}: it failed and was not done", TargetLine(call.write))});
  }
  const bool of_objects = call.write.verb == Verb::kCreate || call.write.verb == Verb::kDelete;
  if (of_objects) {
    row.trouble = Trouble{.reason = std::string(TroubleOf(call.write.verb)), .message = message};
  }
  if (of_objects || IsPatch(call.write.verb))
    Tell(now, call.key, FailureOf(call.write, call.key.part, call.name, message));
}

}  // namespace berth::controllers
