#include "control/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "client/known_set.h"
#include "control/debug.h"
#include "control/event_key.h"
#include "control/say.h"
#include "model/audit.h"
#include "place/volumes.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"
#include "translate/text.h"

namespace berth::control {
namespace {

// As kube-apiserver words it, so that neither overwrites the other.
constexpr std::string_view kGatedMessage =
    "Scheduling is blocked due to non-empty scheduling gates";

// Where the watchdog has more to look at than one step should take.
constexpr Duration kWatchdogGoesOn = Duration::Seconds(1);

client::WatchOptions PodsToWatch(const SchedulerOptions& options) {
  client::WatchOptions watch{.resource = client::Pods()};
  if (!options.groups) {
    watch.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
  }
  return watch;
}

// "a, b and c".
std::string Join(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

// The reason of a group's condition, beside Volcano's.
std::string_view WordOf(model::GroupBar bar) {
  switch (bar) {
    case model::GroupBar::kNone:
      break;
    case model::GroupBar::kQueueMissing:
      return "QueueNotFound";
    case model::GroupBar::kQueueClosed:
      return "QueueClosed";
    case model::GroupBar::kParentMissing:
      return "ParentQueueNotFound";
    case model::GroupBar::kQueueCycle:
      return "QueueCycle";
  }
  return "";
}

bool Waits(const api::Pod& pod) {
  return pod.node_name.empty() && pod.phase != "Succeeded" && pod.phase != "Failed" &&
         !pod.meta.deletion_time;
}

// As kube-scheduler words it.
std::string BindingText(const client::ApiStatus& status) {
  return fmt::format(R"(running Bind plugin "DefaultBinder": {})", status.message);
}

std::string NotHonoured(const api::Pod& pod) {
  return fmt::format("{} can't be honoured by this scheduler yet", Join(pod.spec->unsupported));
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options)
    : options_(std::move(options)),
      client_(options_.client),
      engine_(options_.engine),
      binder_(options_.planted_repeat_binding,
              options_.planted_queue_in_flight || options_.planted_outcome_by_name),
      evictor_(options_.planted_evict_again),
      status_(options_.status) {
  CHECK(!options_.scheduler_names.empty());
  translator_ = translate::PodTranslator(options_.pod_profiles);
  pods_ = client_.Watch(PodsToWatch(options_));
  nodes_ = client_.Watch({.resource = {.group = "", .version = "v1", .plural = "nodes"}});
  if (options_.engine.preemption) {
    budgets_ = client_.Watch(
        {.resource = {.group = "policy", .version = "v1", .plural = "poddisruptionbudgets"}});
  }
  if (options_.groups || options_.quota) {
    classes_ = client_.Watch(
        {.resource = {.group = "scheduling.k8s.io", .version = "v1", .plural = "priorityclasses"},
         .may_be_absent = !options_.quota,  // A queued Job's priority is by them alone.
         .if_forbidden = "the priorityClassName of PodGroups counts for nothing"});
  }
  if (options_.groups) {
    podgroups_ = client_.Watch({.resource = PodGroups(),
                                .may_be_absent = true,
                                .if_forbidden = "pods that name a PodGroup are not placed"});
    queues_ = client_.Watch(
        {.resource = {.group = "scheduling.volcano.sh", .version = "v1beta1", .plural = "queues"},
         .may_be_absent = true,
         .if_forbidden = "PodGroups of another Queue than default are not placed"});
  }
  if (options_.volumes) volumes_.emplace(client_, options_.bind_within);
  if (options_.spread_defaults) spread_defaults_.emplace(client_);
  if (!options_.extenders.empty()) extenders_.emplace(options_.extenders);
  if (options_.quota) {
    Quota::Options quota = options_.quota_options;
    quota.taking = {.scheduler_names = options_.scheduler_names,
                    .joint = options_.engine.joint_placement};
    quota_.emplace(quota, client_);
  }
  if (options_.namespaces) {
    namespaces_ = quota_ ? quota_->namespaces_watch()
                         : client_.Watch({.resource = {.version = "v1", .plural = "namespaces"}});
  }
  if (!options_.leader_election) return;
  election_.emplace(*options_.leader_election);
  client_.StopWrites();
}

bool Scheduler::ours(std::string_view scheduler_name) const {
  return std::find(options_.scheduler_names.begin(), options_.scheduler_names.end(),
                   scheduler_name) != options_.scheduler_names.end();
}

// ---- The loop --------------------------------------------------------------------------------

void Scheduler::Step(Instant now, env::Input input, env::Outbox& out) {
  // First of all: after a pause the lease may be over.
  if (election_) Elect(now, input, out);
  if (const auto* request = std::get_if<env::RequestArrived>(&input)) {
    if (request->exchange == kStopExchange) return Stop(now, out);
    out.emplace_back(env::Respond{.exchange = request->exchange,
                                  .response = AnswerDebug(*this, request->request)});
    return;
  }
  std::vector<client::Event> events;
  client_.Handle(now, input, out, events);
  Handle(now, events, out);
  // A replica that has not read all yet would only keep others from leading.
  if (election_ && client_.synced()) election_->Stand();
  if (barrier_.stands()) PassBarrier(now, out);
  if (extenders_) {
    extenders_->Handle(now, input, out);
    TakeFromExtenders(now, out);
  }
  if (volumes_) PumpVolumes(now, out);
  if (stopping_) FinishStop(now, out);
  if (!std::holds_alternative<env::Tick>(input)) {
    EndEvictions(now);
    if (may_write()) status_.SendEvents(now, client_, out);
    return;
  }
  if (may_decide() && engine_.wake_at() <= now) Decide(now, out);
  if (may_write()) ReadPods(now, out);
  binder_.Pump(now, client_, out);
  if (may_write()) {
    PumpWrites(now, out);
  } else {
    EndEvictions(now);
  }
  // Between cycles that have more to do, what waits is not expected to have been looked at.
  const bool idle = may_decide() && engine_.wake_at() > now;
  if (watchdog_due_ && now >= next_watchdog_ && idle) Watchdog(now, out);
}

// What follows from decisions and objects, and is due.
void Scheduler::PumpWrites(Instant now, env::Outbox& out) {
  evictor_.Pump(now,
                {.wanted = [this](const Evictor::Victim& victim) { return Wanted(victim); },
                 .goes_after =
                     [this](const Evictor::Victim& victim) {
                       const model::State& state = engine_.state();
                       return state.GoesAfterOthers(state.OwnerOf(state.FindPod(victim.pod.uid)));
                     }},
                client_, out);
  EndEvictions(now);
  status_.Pump(now, client_, out);
  if (!client_.synced()) return;
  // Its members and its class may be read after a group.
  groups_.Pump(now, client_, out);
  // Of a workload whose queues are not read yet nothing is due.
  if (!quota_) return;
  quota_->Pump(now, engine_.state(), client_, out);
  for (const CohortFault& fault : quota_->TakeCohortFaults()) status_.CohortIsAtFault(now, fault);
}

Instant Scheduler::wake_at() const {
  Instant at = std::min(client_.wake_at(), binder_.wake_at());
  if (volumes_) at = std::min(at, volumes_->wake_at());
  if (extenders_ && extenders_->has_results()) at = Instant{};
  if (election_) at = std::min({at, election_->wake_at(), barrier_.wake_at()});
  if (!may_write()) return at;
  at = std::min({at, status_.wake_at(), evictor_.wake_at()});
  if (client_.synced()) at = std::min(at, groups_.wake_at());
  if (quota_ && client_.synced()) at = std::min(at, quota_->wake_at());
  if (!may_decide()) return at;
  if (quota_ && !quota_->listed()) return Instant{};
  at = std::min(at, engine_.wake_at());
  return watchdog_due_ ? std::min(at, next_watchdog_) : at;
}

void Scheduler::Handle(Instant now, std::vector<client::Event>& events, env::Outbox& out) {
  for (const client::Event& event : events) {
    std::visit([&](const auto& value) { On(now, value, out); }, event);
  }
}

bool Scheduler::may_decide() const {
  return may_write() && client_.synced() &&
         client_.calls_queued(client::Priority::kHigh) < options_.bindings_queued_max;
}

// Something happened that may let a pod that waits be placed.
void Scheduler::WakeWatchdog(Instant now) {
  if (watchdog_due_) return;
  watchdog_due_ = true;
  next_watchdog_ = now + options_.watchdog_interval;
}

void Scheduler::On(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
  WakeWatchdog(now);
  if (options_.namespaces && event.watch == namespaces_) {
    OnNamespace(event, out);
    if (quota_) OnQuota(event, out);
  } else if (event.watch == pods_) {
    OnPod(now, event, out);
  } else if (event.watch == nodes_) {
    OnNode(now, event, out);
  } else if (options_.groups && event.watch == podgroups_) {
    OnGroup(event, out);
  } else if ((options_.groups || options_.quota) && event.watch == classes_) {
    OnClass(event, out);
  } else if (options_.groups && event.watch == queues_) {
    OnQueue(event, out);
  } else if (volumes_ && volumes_->Watches(event.watch)) {
    OnStorage(now, event, out);
  } else if (spread_defaults_ && spread_defaults_->Watches(event.watch)) {
    for (const client::ObjectEvent& pod : spread_defaults_->Observe(event, decoder_))
      OnPod(now, pod, out);
  } else if (quota_ && quota_->Watches(event.watch)) {
    OnQuota(event, out);
  } else {
    OnBudget(event, out);
  }
}

void Scheduler::On(Instant now, const client::Synced& event, env::Outbox& out) {
  (void)now;
  if (!event.first) return;
  Say(out, env::LogLevel::kDebug,
      fmt::format("listed {}: {}", client_.watch(event.watch).options().resource.plural,
                  client_.watch(event.watch).known().size()));
}

void Scheduler::On(Instant now, const client::WatchTrouble& event, env::Outbox& out) {
  (void)now;
  if (event.repeated) return;
  Say(out, env::LogLevel::kWarning,
      event.status == 0 ? event.message : fmt::format("{} ({})", event.message, event.status));
}

void Scheduler::On(Instant now, const client::ServerAnswers& event, env::Outbox& out) {
  (void)now;
  (void)event;
  Say(out, env::LogLevel::kInfo, "the API server answers again");
}

void Scheduler::On(Instant now, const client::CallDone& event, env::Outbox& out) {
  if (auto refused = refused_writes_.Note(now, event))
    Say(out, env::LogLevel::kError, *std::move(refused));
  if (const auto result = status_.OnCallDone(now, event)) return OnNomination(now, *result, out);
  if (const auto result = evictor_.OnCallDone(now, event)) return OnEviction(now, *result, out);
  if (const auto read = reads_.find(event.call.value); read != reads_.end()) {
    const StatusWriter::Read what = std::move(read->second);
    reads_.erase(read);
    if (event.outcome == client::Outcome::kDone) Learn(now, event.response.body, out);
    status_.OnRead(now, what, event.outcome);
    FollowUp(engine_.state().FindPod(what.pod.uid));
    return;
  }
  if (barrier_.OnCallDone(now, event, client_, out) || groups_.OnCallDone(now, event)) return;
  if (volumes_) {
    if (const auto watch = volumes_->WatchOf(event.call))
      return OnVolumeWrite(now, *watch, event, out);
  }
  if (quota_) {
    if (const auto result = quota_->OnCallDone(now, event)) return OnReservation(now, *result, out);
  }
  if (const auto result = binder_.OnCallDone(now, event, client_, out)) {
    WakeWatchdog(now);
    OnBinding(now, *result, out);
  }
}

// ---- Observing -------------------------------------------------------------------------------

void Scheduler::OnPod(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
  if (event.change == client::Change::kDeleted) {
    Apply(model::PodRemove{.uid = event.uid});
    metrics_.Forget(event.uid);
    left_alone_.erase(event.uid);
    const auto unread = unread_.find(KeyOf(event));
    if (unread != unread_.end() && unread->second.event.uid == event.uid) unread_.erase(unread);
    status_.Forget(event.uid);
    evictor_.Left(event.uid);
    binder_.Withdraw(event.uid, client_);
    if (volumes_) {
      volumes_->Withdraw(event.uid);
      ApplyAssumed(out);
    }
    if (spread_defaults_) spread_defaults_->Forget(event);
    if (extenders_) extenders_->ForgetPod(event.uid, out);
    return;
  }
  auto pod = decoder_.Pod(event.object.view());
  if (!pod) return RefuseInPart(event, pod.error().message, out);
  if (pod->spec->scheduler_name.empty())
    pod->spec.Edit().scheduler_name = options_.scheduler_names.front();
  const bool mine = ours(pod->spec->scheduler_name);
  if (mine && volumes_) Volumes::Honour(pod->spec.Edit());
  std::vector<std::string> left_out;
  auto facts = translator_.Facts(*pod, engine_.vocabulary(), &left_out);
  if (!facts) return Refuse(event, *pod, facts.error().message, env::LogLevel::kInfo, out);
  if (!engine_.state().HasRoomFor(*facts)) {
    turned_away_ = true;
    return Refuse(event, *pod,
                  fmt::format("the scheduler holds {} pods, as many as it can",
                              engine_.state().pods().live()),
                  env::LogLevel::kError, out);
  }
  if (left_out.empty()) {
    if (!unread_.empty()) unread_.erase(KeyOf(event));
  } else {
    KeepUnread(
        event,
        fmt::format("its requests of {} are left out: too many kinds of resource", Join(left_out)),
        env::LogLevel::kError, out);
  }
  const bool waits = Waits(*pod);
  if (extenders_) NoteAsking(event, waits && mine, *pod, *facts, out);
  facts->ours = mine && pod->spec->unsupported.empty();
  SpreadByDefault(event, *pod, waits && mine, *facts);
  Apply(*facts);
  if (options_.planted_queue_in_flight && waits && binder_.busy(event.uid)) {
    Apply(model::BindOutcome{
        .uid = event.uid, .outcome = model::WriteOutcome::kNotSent, .code = 0, .at = now});
  }
  left_alone_.erase(event.uid);
  if (!waits) {
    status_.Forget(event.uid);
    if (!binder_.busy(event.uid)) metrics_.Forget(event.uid);
    if (pod->node_name.empty()) {
      Withdraw(now, event.uid, out);
    } else if (volumes_) {
      volumes_->Withdraw(event.uid);  // Others were quicker.
      ApplyAssumed(out);
    }
    return;
  }
  if (!facts->ours) NoteLeftAlone(*pod);
  if (facts->ours && pod->spec->scheduling_gates.empty() && !binder_.busy(event.uid) &&
      IsPending(event.uid)) {
    metrics_.Waits(now, event.uid);
  }
  if (mine) OnWaitingPod(*pod);
}

void Scheduler::ApplyStorage(const model::StorageFact& fact, env::Outbox& out) {
  if (engine_.state().HasRoomFor(fact)) return Apply(fact);
  Say(out, env::LogLevel::kError,
      fmt::format("{} is not used: the scheduler holds {} objects of its kind, as many as it can",
                  engine_.state().NameOf(fact.name), limits::kStorageRowsMax));
}

bool Scheduler::IsPending(std::string_view uid) const {
  const model::PodId pod = engine_.state().FindPod(uid);
  return pod.valid() && model::StageOf(engine_.state().pods().at(pod)) == model::PodStage::kPending;
}

void Scheduler::OnStorage(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
  const std::optional<api::Json> object = Volumes::Read(event);
  if (const auto fact = volumes_->FactOf(event, object, engine_.vocabulary()))
    ApplyStorage(*fact, out);
  if (volumes_->IsOfEngine(event.watch)) return;
  volumes_->Observe(event, object);
  PumpVolumes(now, out);
  if (!quota_) return;
  for (const model::Delta& fact : quota_->OnVolumes(event, ReadingWith(out)))
    if (engine_.state().HasRoomForFact(fact)) Apply(fact);
}

// What it wrote is known before anything else is decided.
void Scheduler::OnVolumeWrite(Instant now, client::WatchId watch, const client::CallDone& done,
                              env::Outbox& out) {
  if (done.outcome == client::Outcome::kDone) {
    std::vector<client::Event> events;
    client_.Learn(now, watch, done.response.body.view(), events);
    Handle(now, events, out);
  }
  volumes_->OnCallDone(done);
  PumpVolumes(now, out);
}

void Scheduler::PumpVolumes(Instant now, env::Outbox& out) {
  Volumes::Ended ended = volumes_->Take(now, engine_.state());
  for (Binder::Attempt& attempt : ended.ready) BindNow(now, std::move(attempt), out);
  for (const auto& [attempt, code, message] : ended.refused) {
    Apply(model::BindOutcome{
        .uid = attempt.pod.uid, .outcome = model::WriteOutcome::kRefused, .code = code, .at = now});
    ToldRefused(attempt, fmt::format(R"(running PreBind plugin "VolumeBinding": {})", message),
                code, out);
    FollowUp(engine_.state().FindPod(attempt.pod.uid));
  }
  ApplyAssumed(out);
}

void Scheduler::ApplyAssumed(env::Outbox& out) {
  for (const model::StorageFact& fact : volumes_->TakeFacts()) ApplyStorage(fact, out);
}

void Scheduler::Withdraw(Instant now, std::string_view uid, env::Outbox& out) {
  auto attempt = binder_.Withdraw(uid, client_);
  if (!attempt && volumes_) {
    attempt = volumes_->Withdraw(uid);
    ApplyAssumed(out);
  }
  if (attempt) Withdrawn(now, *attempt);
}

void Scheduler::Refuse(const client::ObjectEvent& event, const api::Pod& pod,
                       const std::string& message, env::LogLevel level, env::Outbox& out) {
  KeepUnread(event, message, level, out);
  if (!Waits(pod)) return status_.Forget(event.uid);
  if (!ours(pod.spec->scheduler_name)) return;
  status_.Observe(pod);
  status_.Want(pod.meta.uid, {.reason = kSchedulerError, .message = Bytes(message)});
}

// Whose it is may be readable all the same. What the message quotes can be of any length.
void Scheduler::RefuseInPart(const client::ObjectEvent& event, std::string_view message,
                             env::Outbox& out) {
  const std::string told(client::CutUtf8(message, client::kEventNoteBytesMax));
  const api::Pod part = decoder_.PodInPart(event.object.view());
  if (part.meta.uid != event.uid) return KeepUnread(event, told, env::LogLevel::kError, out);
  Refuse(event, part, told, env::LogLevel::kError, out);
}

// It is told of once, and read again when it changes or nodes name more resources.
void Scheduler::KeepUnread(const client::ObjectEvent& event, std::string message,
                           env::LogLevel level, env::Outbox& out) {
  const std::string key = KeyOf(event);
  const auto known = unread_.find(key);
  if (known == unread_.end() || known->second.message != message) {
    ++counters_.undecodable;
    Say(out, level, fmt::format("pod {}: {}", key, message));
  }
  if (known == unread_.end() && unread_.size() >= limits::kUnreadPodsMax) return;
  unread_[key] = {.event = event, .message = std::move(message)};
}

void Scheduler::ReadAgain(Instant now, env::Outbox& out) {
  for (const auto& [key, pod] : std::map(unread_)) OnPod(now, pod.event, out);
}

const UnreadPod* Scheduler::unread(std::string_view key) const {
  const auto found = unread_.find(key);
  return found == unread_.end() ? nullptr : &found->second;
}

const std::string* Scheduler::left_alone(std::string_view uid) const {
  const auto found = left_alone_.find(uid);
  return found == left_alone_.end() ? nullptr : &found->second;
}

void Scheduler::NoteLeftAlone(const api::Pod& pod) {
  left_alone_[pod.meta.uid] =
      ours(pod.spec->scheduler_name)
          ? NotHonoured(pod)
          : fmt::format("it is left to the scheduler that its spec.schedulerName names, \"{}\"",
                        pod.spec->scheduler_name);
}

void Scheduler::OnWaitingPod(const api::Pod& pod) {
  status_.Observe(pod);
  if (!pod.spec->unsupported.empty()) {
    status_.Want(pod.meta.uid, {.reason = kSchedulerError, .message = Bytes(NotHonoured(pod))});
    return;
  }
  if (!pod.spec->scheduling_gates.empty()) {
    status_.Want(pod.meta.uid,
                 {.reason = kSchedulingGated, .message = Bytes(std::string(kGatedMessage))});
  }
}

void Scheduler::OnNode(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
  if (volumes_) volumes_->NoteNodes();
  if (event.change == client::Change::kDeleted) return RemoveNode(now, event, out);
  const auto node = decoder_.Node(event.object.view());
  if (!node) {
    ++counters_.undecodable;
    Say(out, env::LogLevel::kError,
        fmt::format("node {} is not used: {}", event.name, node.error().message));
    // What it was before is no reason to use it: it may be cordoned, or smaller.
    return RemoveNode(now, event, out);
  }
  const uint32_t kinds = engine_.vocabulary().resources.size();
  std::vector<std::string> left_out;
  const model::NodeUpsert facts = translate::NodeFacts(*node, engine_.vocabulary(), &left_out);
  if (!engine_.state().HasRoomFor(facts)) return TurnAway(event.name, out);
  if (extenders_) extenders_->ObserveNode(event.name, event.object);
  Apply(facts);
  NoteLeftOut(event.name, left_out, out);
  if (engine_.vocabulary().resources.size() > kinds) ReadAgain(now, out);
}

// Its pods stay charged to its name.
void Scheduler::RemoveNode(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
  Apply(model::NodeRemove{.name = event.name, .uid = event.uid});
  if (extenders_) extenders_->ForgetNode(event.name);
  left_out_.erase(event.name);
  if (extenders_) extenders_->GiveUpBindingsTo(event.name);
  for (const Binder::Attempt& attempt : binder_.WithdrawNode(event.name, client_)) {
    Withdrawn(now, attempt);
  }
  if (!volumes_) return;
  for (const Binder::Attempt& attempt : volumes_->WithdrawNode(event.name)) Withdrawn(now, attempt);
  ApplyAssumed(out);
}

void Scheduler::OnBudget(const client::ObjectEvent& event, env::Outbox& out) {
  if (event.change == client::Change::kDeleted)
    return Apply(model::BudgetRemove{.key = KeyOf(event), .uid = event.uid});
  const auto budget = decoder_.PodDisruptionBudget(event.object.view());
  if (budget) return Apply(translate::BudgetFacts(*budget));
  ++counters_.undecodable;
  Say(out, env::LogLevel::kError,
      fmt::format("poddisruptionbudget {}: {}", KeyOf(event), budget.error().message));
}

void Scheduler::OnGroup(const client::ObjectEvent& event, env::Outbox& out) {
  if (event.change == client::Change::kDeleted) {
    groups_.Forget(event.uid);
    return Apply(model::GroupRemove{.uid = event.uid});
  }
  auto group = decoder_.PodGroup(event.object.view());
  if (!group) {
    ++counters_.undecodable;
    return Say(out, env::LogLevel::kError,
               fmt::format("podgroup {}: {}", KeyOf(event), group.error().message));
  }
  const model::GroupUpsert facts = groups_.Observe(*std::move(group), engine_.vocabulary());
  if (engine_.state().HasRoomFor(facts)) return Apply(facts);
  Say(out, env::LogLevel::kError,
      fmt::format("podgroup {} is not used: the scheduler holds {} of them, as many as it can",
                  KeyOf(event), engine_.state().groups().live()));
}

void Scheduler::SpreadByDefault(const client::ObjectEvent& event, const api::Pod& pod, bool waits,
                                model::PodUpsert& facts) {
  if (!spread_defaults_) return;
  if (!waits || !pod.spec->spread_constraints.empty()) return spread_defaults_->Forget(event);
  if (const auto selector = spread_defaults_->SelectorFor(event, pod))
    translate::SpreadByDefault(pod, *selector, engine_.vocabulary(), facts,
                               translator_.RulesOf(pod));
}

// Pod affinity asks for their labels.
void Scheduler::OnNamespace(const client::ObjectEvent& event, env::Outbox& out) {
  if (event.change == client::Change::kDeleted)
    return Apply(model::NamespaceRemove{.name = event.name});
  auto read = decoder_.Namespace(event.object.view());
  if (!read) {
    ++counters_.undecodable;
    return Say(out, env::LogLevel::kError,
               fmt::format("namespace {}: {}", event.name, read.error().message));
  }
  Apply(model::NamespaceUpsert{.name = event.name, .labels = read->meta.labels});
}

void Scheduler::OnClass(const client::ObjectEvent& event, env::Outbox& out) {
  std::optional<api::PriorityClass> now;
  if (event.change != client::Change::kDeleted) {
    auto read = decoder_.PriorityClass(event.object.view());
    if (!read) {
      ++counters_.undecodable;
      return Say(out, env::LogLevel::kError,
                 fmt::format("priorityclass {}: {}", event.name, read.error().message));
    }
    now = *std::move(read);
  }
  if (quota_) {
    for (const model::Delta& fact : quota_->OnClass(event.name, now, ReadingWith(out))) {
      if (engine_.state().HasRoomForFact(fact)) Apply(fact);
    }
  }
  if (!options_.groups) return;
  std::optional<int32_t> value;
  if (now) value = translate::PriorityOf(now->value);
  for (const model::GroupUpsert& facts :
       groups_.ObserveClass(event.name, value, engine_.vocabulary())) {
    if (engine_.state().HasRoomFor(facts)) Apply(facts);
  }
}

void Scheduler::OnQueue(const client::ObjectEvent& event, env::Outbox& out) {
  if (event.change == client::Change::kDeleted)
    return Apply(
        model::QueueRemove{.kind = model::QueueKind::kQueue, .name = event.name, .uid = event.uid});
  const auto queue = decoder_.Queue(event.object.view());
  if (!queue) {
    ++counters_.undecodable;
    return Say(out, env::LogLevel::kError,
               fmt::format("queue {}: {}", event.name, queue.error().message));
  }
  const model::QueueUpsert facts = translate::QueueFacts(*queue, engine_.vocabulary());
  if (engine_.state().HasRoomFor(facts)) return Apply(facts);
  Say(out, env::LogLevel::kError,
      fmt::format("queue {} is not used: the scheduler holds as many queues as it can",
                  event.name));
}

void Scheduler::OnQuota(const client::ObjectEvent& event, env::Outbox& out) {
  const model::State& state = engine_.state();
  for (const model::Delta& fact : quota_->On(event, ReadingWith(out))) {
    if (state.HasRoomForFact(fact)) {
      Apply(fact);
      continue;
    }
    Say(out, env::LogLevel::kError,
        fmt::format("{} {} is not used: the scheduler holds as many as it can",
                    client_.watch(event.watch).options().resource.plural, KeyOf(event)));
  }
}

void Scheduler::OnReservation(Instant now, const Workloads::Result& result, env::Outbox& out) {
  if (!result.object.view().empty()) {
    std::vector<client::Event> events;
    client_.Learn(now, quota_->workloads_watch(), result.object.view(), events);
    Handle(now, events, out);
  }
  if (!result.refusal.empty()) {
    ++counters_.errors;
    Say(out, env::LogLevel::kError,
        fmt::format("quota for workload {} was refused: {}", result.uid, result.refusal));
  }
  if (result.outcome) {
    Apply(model::ReservationOutcome{.uid = result.uid, .outcome = *result.outcome, .at = now});
    const model::WorkloadId id = engine_.state().FindWorkload(result.uid);
    if (*result.outcome == model::WriteOutcome::kDone && id.valid() &&
        engine_.state().workloads().at(id).write == model::WriteStage::kUnresolved) {
      quota_->Reread(result.uid);
    }
  }
  if (result.read) Apply(model::ReservationRead{.uid = result.uid});
  if (!result.stays) return;
  ++counters_.errors;
  Say(out, env::LogLevel::kWarning,
      fmt::format("the eviction of workload {} was refused", result.uid));
  Apply(model::EvictionRefused{.uid = result.uid, .at = now});
}

// What a group's status is to say follows from its members and why they wait.
void Scheduler::FollowGroup(model::GroupId group) {
  const model::State& state = engine_.state();
  if (!state.groups().used(group)) return;
  const model::Group& row = state.groups().at(group);
  const model::MemberCounts counts = state.groups().CountsOf(row.key);
  using enum model::MemberKind;
  Groups::Wanted wanted{.phase = model::PhaseOf(row, counts),
                        .running = counts[kBound] + counts[kLeaving],
                        .succeeded = counts[kSucceeded],
                        .failed = counts[kFailed]};
  if (const std::optional<model::Refusal> refusal = engine_.WhyGroupWaits(group)) {
    const model::ReasonKind kind =
        refusal->reasons.empty() ? model::ReasonKind::kNone : refusal->reasons.front().kind;
    wanted.reason = refusal->gang->bar != model::GroupBar::kNone
                        ? std::string(WordOf(refusal->gang->bar))
                    : kind != model::ReasonKind::kGangIncomplete ? "NotEnoughResources"
                    : refusal->reasons.front().detail.valid()    ? "NotEnoughPodsOfTask"
                                                                 : "NotEnoughTasks";
    wanted.message = translate::FailedSchedulingText(*refusal, state);
  } else {
    wanted.scheduled =
        counts.ready() > 0 && counts.ready() >= static_cast<uint32_t>(row.min_member);
  }
  groups_.Want(state.UidOf(row.uid), std::move(wanted));
}

// It is not used. A kubelet writes its node every few minutes: then it is looked at again.
void Scheduler::TurnAway(const std::string& node, env::Outbox& out) {
  std::string& told = left_out_[node];
  if (!told.empty()) return;
  told = "node";
  Say(out, env::LogLevel::kError,
      fmt::format("node {} is not used: the scheduler holds {} nodes, as many as it can", node,
                  engine_.state().nodes().present_count()));
}

void Scheduler::NoteLeftOut(const std::string& node, const std::vector<std::string>& left_out,
                            env::Outbox& out) {
  if (left_out.empty()) {
    left_out_.erase(node);
    return;
  }
  std::string names = Join(left_out);
  std::string& told = left_out_[node];
  if (told == names) return;
  Say(out, env::LogLevel::kError,
      fmt::format("node {}: its {} are left out: more than {} kinds of resource", node, names,
                  limits::kResourceKindsMax));
  told = std::move(names);
}

void Scheduler::Withdrawn(Instant now, const Binder::Attempt& attempt) {
  // The decision is taken back and made anew.
  Apply(model::BindOutcome{
      .uid = attempt.pod.uid, .outcome = model::WriteOutcome::kNotSent, .code = 0, .at = now});
}

// A finished pod that the watch has told to have left its selection would never be taken back.
void Scheduler::Learn(Instant now, const Bytes& object, env::Outbox& out) {
  if (const auto pod = decoder_.Pod(object.view()); pod && !options_.groups) {
    const bool finished = pod->phase == "Succeeded" || pod->phase == "Failed";
    const client::KnownSet& known = client_.watch(pods_).known();
    const std::string key = client::KnownSet::Key(pod->meta.namespace_name, pod->meta.name);
    if (finished && !known.Contains(key, pod->meta.uid)) return;
  }
  std::vector<client::Event> events;
  client_.Learn(now, pods_, object.view(), events);
  Handle(now, events, out);
}

void Scheduler::Apply(const model::Delta& delta) {
  engine_.Apply(delta);
  evictor_.AskAgain();
  if (quota_) quota_->AskAgain();
  for (const model::GroupId group : engine_.state().changed_groups()) FollowGroup(group);
  if (!options_.engine.preemption) return;
  // A copy: what follows may apply more.
  for (const model::PodId pod : std::vector(engine_.state().changed_pods())) FollowUp(pod);
}

// ---- Deciding and writing --------------------------------------------------------------------

void Scheduler::Decide(Instant now, env::Outbox& out) {
  ++counters_.cycles;
  const model::Plan plan = engine_.Cycle(now);
  CarryOut(now, plan, out);
  // Some questions nobody has to be asked.
  if (extenders_) TakeFromExtenders(now, out);
}

// False: what its claims would get there went to a pod of the same plan. It is decided anew.
bool Scheduler::Send(Instant now, const model::BindDecision& bind, Binder::Attempt attempt,
                     env::Outbox& out) {
  if (volumes_) {
    const auto given = place::VolumesGivenOn(engine_.state(), bind.pod, bind.node);
    if (!given) return false;
    if (!given->empty()) {
      volumes_->Hold(std::move(attempt), *given, engine_.state(),
                     {.now = now, .client = client_, .out = out});
      ApplyAssumed(out);
      return true;
    }
  }
  BindNow(now, std::move(attempt), out);
  return true;
}

void Scheduler::CarryOut(Instant now, const model::Plan& plan, env::Outbox& out) {
  const model::State& state = engine_.state();
  const model::BindDecision* before = nullptr;
  std::vector<Binder::Attempt> withdrawn;
  for (const model::BindDecision& bind : plan.binds) {
    const model::BindDecision& place =
        options_.planted_anothers_node && before != nullptr ? *before : bind;
    before = &bind;
    // What it said of waiting is over; the API server's binding sets the condition.
    status_.Want(state.UidOf(bind.pod_uid), {.reason = {}, .message = {}});
    status_.WantNomination(state.UidOf(bind.pod_uid), std::nullopt);
    metrics_.Decided(now, state.UidOf(bind.pod_uid));
    Binder::Attempt attempt{.pod = RefOf(bind.pod),
                            .scheduler_name = SchedulerOf(bind.pod),
                            .node = std::string(state.NameOf(place.node_name)),
                            .devices = bind.devices};
    if (!Send(now, bind, attempt, out)) withdrawn.push_back(std::move(attempt));
  }
  if (extenders_) AskExtenders(plan, out);
  for (const Binder::Attempt& attempt : withdrawn) Withdrawn(now, attempt);
  std::vector<Bytes> messages;
  messages.reserve(plan.refusals.size());
  for (const model::Refusal& refusal : plan.refusals) {
    messages.emplace_back(translate::FailedSchedulingText(refusal, state));
  }
  for (const model::PodId pod : plan.nominations) FollowUp(pod);
  for (const model::PodId pod : plan.released) FollowUp(pod);
  for (const model::PodId pod : plan.evicted) FollowUp(pod);
  counters_.unschedulable += plan.refused.size();
  for (const model::PodRefused& refused : plan.refused) {
    model::ReasonMask reasons = 0;
    for (const model::Reason& reason : plan.refusals[refused.refusal].reasons)
      reasons |= model::MaskOf(reason.kind);
    metrics_.FoundNoNode(state.UidOf(refused.pod_uid), SchedulerOf(refused.pod), reasons);
    Bytes message = messages[refused.refusal];
    if (const model::LostPromise& lost = state.pods().at(refused.pod).lost;
        lost.why != model::ReasonKind::kNone) {
      message =
          Bytes(fmt::format("{} {}", message.view(), translate::LostPromiseText(lost, state)));
    }
    status_.Want(state.UidOf(refused.pod_uid), {.reason = kUnschedulable, .message = message});
  }
  for (const model::GroupId group : plan.groups) FollowGroup(group);
  if (quota_) quota_->CarryOut(plan, engine_);
  SpareUnsent(now, plan, out);
}

// A victim whose binding waits to be sent is not evicted: it is not bound. The plan's ids end here.
void Scheduler::SpareUnsent(Instant now, const model::Plan& plan, env::Outbox& out) {
  std::vector<std::string> uids;
  for (const model::PreemptDecision& preemption : plan.preemptions) {
    for (const model::PreemptDecision::Victim& victim : preemption.victims)
      uids.emplace_back(engine_.state().UidOf(victim.uid));
  }
  for (const model::PodId pod : plan.evicted)
    uids.emplace_back(engine_.state().UidOf(engine_.state().pods().at(pod).uid));
  for (const std::string& uid : uids) Withdraw(now, uid, out);
}

model::BindOutcome Scheduler::OfNamesake(model::BindOutcome outcome,
                                         const client::ObjectRef& pod) const {
  const model::State& state = engine_.state();
  const model::PodId now = state.FindPodByKey(client::KnownSet::Key(pod.namespace_name, pod.name));
  if (now.valid()) outcome.uid = std::string(state.UidOf(state.pods().at(now).uid));
  return outcome;
}

void Scheduler::ToldRefused(const Binder::Attempt& attempt, const std::string& text, int code,
                            env::Outbox& out) {
  ++counters_.errors;
  metrics_.Refused(attempt.scheduler_name);
  // Of a missing right, and of what the server fails to do or to answer (0), it is said once for
  // all (RefusedWrites), and of an extender's trouble.
  constexpr int kForbidden = 403;
  constexpr int kServerError = 500;
  const bool told_once =
      code == 0 || code == kForbidden || code >= kServerError || attempt.by_extender;
  Say(out, told_once ? env::LogLevel::kDebug : env::LogLevel::kWarning,
      fmt::format("pod {}/{} on node {}: {} ({})", attempt.pod.namespace_name, attempt.pod.name,
                  attempt.node, text, code));
  const std::string told(client::CutUtf8(text, client::kEventNoteBytesMax));
  status_.Want(attempt.pod.uid, {.reason = kSchedulerError, .message = Bytes(told)});
}

void Scheduler::OnBinding(Instant now, const Binder::Result& result, env::Outbox& out) {
  const Binder::Attempt& attempt = result.attempt;
  if (result.outcome) {
    Apply(options_.planted_outcome_by_name ? OfNamesake(*result.outcome, attempt.pod)
                                           : *result.outcome);
    if (result.outcome->outcome == model::WriteOutcome::kDone) {
      ++counters_.scheduled;
      metrics_.Bound(now, attempt.pod.uid, attempt.scheduler_name);
      status_.Forget(attempt.pod.uid);
      status_.Scheduled(
          now,
          {.pod = attempt.pod, .scheduler_name = attempt.scheduler_name, .node = attempt.node});
    }
    const bool failed = result.outcome->outcome != model::WriteOutcome::kDone &&
                        result.outcome->outcome != model::WriteOutcome::kNotSent;
    if (failed) metrics_.BindFailed(now, attempt.pod.uid, attempt.scheduler_name);
    if (result.outcome->outcome == model::WriteOutcome::kRefused) {
      const std::string text =
          attempt.by_extender ? result.status.message : BindingText(result.status);
      ToldRefused(attempt, text, result.status.code, out);
    }
    return FollowUp(engine_.state().FindPod(attempt.pod.uid));
  }
  if (!result.read) return;
  // Not found: the deletion is on its way in the watch, and ends the claim then.
  if (result.object.empty()) return;
  // Asked of what was read: a pod that is gone or finished by now is not kept.
  const auto pod = decoder_.Pod(result.object.view());
  const bool came_true = pod && pod->meta.uid == attempt.pod.uid && pod->node_name == attempt.node;
  // Before it is learned, by which it no longer waits.
  if (came_true) metrics_.Bound(now, attempt.pod.uid, attempt.scheduler_name);
  Learn(now, result.object, out);
  Apply(model::BindRead{.uid = attempt.pod.uid, .at = now});
  // An extender's trouble was told as it came.
  if (pod && pod->meta.uid == attempt.pod.uid && Waits(*pod) && !attempt.by_extender)
    ToldRefused(attempt, BindingText(result.status), result.status.code, out);
  if (!came_true) return;
  ++counters_.scheduled;
  status_.Scheduled(
      now, {.pod = attempt.pod, .scheduler_name = attempt.scheduler_name, .node = attempt.node});
}

void Scheduler::ReadPods(Instant now, env::Outbox& out) {
  for (StatusWriter::Read& read : status_.TakeReads(now)) {
    const env::CallId call = client_.Call(
        now,
        client::Get(client::Pods(),
                    {.namespace_name = read.pod.namespace_name, .name = read.pod.name}),
        out);
    reads_.emplace(call.value, std::move(read));
  }
}

void Scheduler::Watchdog(Instant now, env::Outbox& out) {
  watchdog_due_ = false;
  const uint64_t drops = status_.counters().events_dropped;
  if (drops > drops_told_) {
    Say(out, env::LogLevel::kWarning,
        fmt::format("{} events were dropped: they come faster than the API server takes them",
                    drops - drops_told_));
    drops_told_ = drops;
  }
  if (turned_away_ && engine_.state().has_room_for_pods()) {
    turned_away_ = false;
    ReadAgain(now, out);
  }
  engine_.CheckWakes(now);
  if (engine_.checks_remain()) {
    watchdog_due_ = true;
    next_watchdog_ = now + kWatchdogGoesOn;
  }
  // What attempts and refreshes found since the last time, too.
  const uint64_t missed = engine_.counters().missed_wakes;
  if (missed > missed_wakes_told_) {
    Say(out, env::LogLevel::kError,
        fmt::format("watchdog: {} waiting lines could be placed and were not woken; they are now",
                    missed - missed_wakes_told_));
    missed_wakes_told_ = missed;
  }
  if (now < next_audit_) return;
  next_audit_ = now + options_.audit_interval;
  Audit(out);
}

void Scheduler::Audit(env::Outbox& out) {
  const std::vector<std::string> findings = model::Audit(engine_.state());
  counters_.audit_findings += findings.size();
  constexpr size_t kToldMax = 10;
  for (size_t i = 0; i < std::min(findings.size(), kToldMax); ++i) {
    Say(out, env::LogLevel::kError, "audit of the ledger: " + findings[i]);
  }
}

void Scheduler::AddTo(Hasher& hasher) const {
  client_.AddTo(hasher);
  engine_.AddTo(hasher);
  binder_.AddTo(hasher);
  evictor_.AddTo(hasher);
  status_.AddTo(hasher);
  groups_.AddTo(hasher);
  if (quota_) quota_->AddTo(hasher);
  if (volumes_) volumes_->AddTo(hasher);
  if (spread_defaults_) spread_defaults_->AddTo(hasher);
  if (extenders_) extenders_->AddTo(hasher);
  if (election_) {
    election_->AddTo(hasher);
    barrier_.AddTo(hasher);
  }
  hasher.Add(stopping_).Add(stopped_);
  hasher.Add(reads_.size());
  hasher.AddEach(reads_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(entry.second.pod.uid).AddCall(entry.second.write);
  });
  hasher.Add(unread_.size());
  for (const auto& [key, pod] : unread_) {
    hasher.Add(key).Add(pod.event.uid).AddDocument(pod.event.object.view()).Add(pod.message);
  }
  hasher.Add(left_alone_.size());
  for (const auto& [uid, why] : left_alone_) hasher.Add(uid).Add(why);
  hasher.Add(left_out_.size());
  for (const auto& [node, names] : left_out_) hasher.Add(node).Add(names);
  hasher.Add(turned_away_).Add(next_watchdog_.ns).Add(watchdog_due_).Add(next_audit_.ns);
  hasher.Add(drops_told_).Add(missed_wakes_told_);
}

}  // namespace berth::control
