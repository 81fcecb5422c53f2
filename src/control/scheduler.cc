#include "control/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "client/known_set.h"
#include "control/debug.h"
#include "model/audit.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"
#include "translate/text.h"

namespace berth::control {
namespace {

// As kube-apiserver words it, so that neither overwrites the other.
constexpr std::string_view kGatedMessage =
    "Scheduling is blocked due to non-empty scheduling gates";

client::WatchOptions PodsToWatch(const SchedulerOptions& options) {
  client::WatchOptions watch{.resource = client::Pods()};
  if (!options.groups) {
    watch.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
  }
  return watch;
}

void Say(env::Outbox& out, env::LogLevel level, std::string text) {
  out.emplace_back(env::Log{.level = level, .text = std::move(text)});
}

std::string KeyOf(const client::ObjectEvent& event) {
  return client::KnownSet::Key(event.namespace_name, event.name);
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
  pods_ = client_.Watch(PodsToWatch(options_));
  nodes_ = client_.Watch({.resource = {.group = "", .version = "v1", .plural = "nodes"}});
  if (options_.engine.preemption) {
    budgets_ = client_.Watch(
        {.resource = {.group = "policy", .version = "v1", .plural = "poddisruptionbudgets"}});
  }
  if (options_.groups || options_.quota) {
    classes_ = client_.Watch(
        {.resource = {.group = "scheduling.k8s.io", .version = "v1", .plural = "priorityclasses"}});
  }
  if (options_.groups) {
    podgroups_ = client_.Watch({.resource = PodGroups(), .may_be_absent = true});
    queues_ = client_.Watch(
        {.resource = {.group = "scheduling.volcano.sh", .version = "v1beta1", .plural = "queues"},
         .may_be_absent = true});
  }
  if (options_.volumes) volumes_.emplace(client_);
  if (options_.quota) {
    Quota::Options quota = options_.quota_options;
    quota.taking = {.scheduler_names = options_.scheduler_names,
                    .joint = options_.engine.joint_placement};
    quota_.emplace(quota, client_);
  }
}

bool Scheduler::ours(std::string_view scheduler_name) const {
  return std::find(options_.scheduler_names.begin(), options_.scheduler_names.end(),
                   scheduler_name) != options_.scheduler_names.end();
}

// ---- The loop --------------------------------------------------------------------------------

void Scheduler::Step(Instant now, env::Input input, env::Outbox& out) {
  if (const auto* request = std::get_if<env::RequestArrived>(&input)) {
    out.emplace_back(env::Respond{.exchange = request->exchange,
                                  .response = AnswerDebug(*this, request->request)});
    return;
  }
  std::vector<client::Event> events;
  client_.Handle(now, input, out, events);
  Handle(now, events, out);
  if (volumes_) PumpVolumes(now, out);
  if (!std::holds_alternative<env::Tick>(input)) {
    EndEvictions(now);
    status_.SendEvents(now, client_, out);
    return;
  }
  if (may_decide() && engine_.wake_at() <= now) Decide(now, out);
  ReadPods(now, out);
  binder_.Pump(now, client_, out);
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
  // Its members and its class may be read after a group.
  if (client_.synced()) groups_.Pump(now, client_, out);
  // Of a workload whose queues are not read yet nothing is due.
  if (quota_ && client_.synced()) {
    quota_->Pump(now, engine_.state(), client_, out);
    for (const CohortFault& fault : quota_->TakeCohortFaults()) status_.CohortIsAtFault(now, fault);
  }
  // Between cycles that have more to do, what waits is not expected to have been looked at.
  const bool idle = may_decide() && engine_.wake_at() > now;
  if (watchdog_due_ && now >= next_watchdog_ && idle) Watchdog(now, out);
}

Instant Scheduler::wake_at() const {
  Instant at =
      std::min({client_.wake_at(), status_.wake_at(), binder_.wake_at(), evictor_.wake_at()});
  if (volumes_) at = std::min(at, volumes_->wake_at());
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
  return client_.synced() &&
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
  if (event.watch == pods_) {
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
    if (const auto fact = volumes_->FactOf(event, engine_.vocabulary())) ApplyStorage(*fact, out);
    if (volumes_->IsOfNodes(event.watch)) return;
    const std::vector<client::ObjectEvent> users = volumes_->Observe(event);
    PumpVolumes(now, out);
    for (const client::ObjectEvent& pod : users) OnPod(now, pod, out);
    if (!quota_) return;
    for (const model::Delta& fact : quota_->OnVolumes(event, ReadingWith(out)))
      if (engine_.state().HasRoomForFact(fact)) Apply(fact);
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
  Say(out, env::LogLevel::kWarning,
      event.status == 0 ? event.message : fmt::format("{} ({})", event.message, event.status));
}

void Scheduler::On(Instant now, const client::CallDone& event, env::Outbox& out) {
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
  if (groups_.OnCallDone(now, event)) return;
  if (volumes_ && volumes_->OnCallDone(event)) return;
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
    left_alone_.erase(event.uid);
    const auto unread = unread_.find(KeyOf(event));
    if (unread != unread_.end() && unread->second.event.uid == event.uid) unread_.erase(unread);
    status_.Forget(event.uid);
    evictor_.Left(event.uid);
    binder_.Withdraw(event.uid, client_);
    if (volumes_) {
      volumes_->Withdraw(event.uid);
      volumes_->Forget(event);
    }
    return;
  }
  auto pod = decoder_.Pod(event.object.view());
  if (!pod) return KeepUnread(event, pod.error().message, env::LogLevel::kError, out);
  if (pod->spec->scheduler_name.empty())
    pod->spec.Edit().scheduler_name = options_.scheduler_names.front();
  const bool mine = ours(pod->spec->scheduler_name);
  std::string waits_for;
  if (mine && volumes_) {
    const bool placed =
        !pod->node_name.empty() || binder_.busy(event.uid) || volumes_->holds(event.uid);
    waits_for = volumes_->Resolve(event, placed, *pod);
  }
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
  facts->ours = mine && pod->spec->unsupported.empty();
  const bool waits = pod->node_name.empty() && !facts->terminal && !facts->terminating;
  Apply(*facts);
  if (options_.planted_queue_in_flight && waits && binder_.busy(event.uid)) {
    Apply(model::BindOutcome{
        .uid = event.uid, .outcome = model::WriteOutcome::kNotSent, .code = 0, .at = now});
  }
  left_alone_.erase(event.uid);
  if (!waits) {
    status_.Forget(event.uid);
    if (facts->terminating && pod->node_name.empty()) {
      Withdraw(now, event.uid);
    }
    return;
  }
  if (!waits_for.empty()) return WaitForClaims(*pod, waits_for);
  if (!facts->ours) NoteLeftAlone(*pod);
  if (mine) OnWaitingPod(*pod);
}

void Scheduler::ApplyStorage(const model::StorageFact& fact, env::Outbox& out) {
  if (engine_.state().HasRoomFor(fact)) return Apply(fact);
  Say(out, env::LogLevel::kError,
      fmt::format("{} is not used: the scheduler holds {} objects of its kind, as many as it can",
                  engine_.state().NameOf(fact.name), limits::kStorageRowsMax));
}

// Nodes are not looked at before its claims have volumes, or may get them there.
void Scheduler::WaitForClaims(const api::Pod& pod, const std::string& reason) {
  left_alone_[pod.meta.uid] = reason;
  status_.Observe(pod);
  status_.Want(pod.meta.uid,
               {.reason = kUnschedulable,
                .message = Bytes(fmt::format("0/{} nodes are available: {}.",
                                             engine_.state().nodes().present_count(), reason))});
}

void Scheduler::PumpVolumes(Instant now, env::Outbox& out) {
  Volumes::Ended ended = volumes_->Take(now, engine_.state());
  for (Binder::Attempt& attempt : ended.ready) binder_.Bind(now, std::move(attempt), client_, out);
  for (const Binder::Attempt& attempt : ended.given_up) Withdrawn(now, attempt);
}

void Scheduler::Withdraw(Instant now, std::string_view uid) {
  auto attempt = binder_.Withdraw(uid, client_);
  if (!attempt && volumes_) attempt = volumes_->Withdraw(uid);
  if (attempt) Withdrawn(now, *attempt);
}

void Scheduler::Refuse(const client::ObjectEvent& event, const api::Pod& pod,
                       const std::string& message, env::LogLevel level, env::Outbox& out) {
  KeepUnread(event, message, level, out);
  if (!ours(pod.spec->scheduler_name) || !pod.node_name.empty()) return;
  status_.Observe(pod);
  status_.Want(pod.meta.uid, {.reason = kSchedulerError, .message = Bytes(message)});
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
  if (event.change == client::Change::kDeleted) {
    Apply(model::NodeRemove{.name = event.name, .uid = event.uid});
    left_out_.erase(event.name);
    for (const Binder::Attempt& attempt : binder_.WithdrawNode(event.name, client_)) {
      Withdrawn(now, attempt);
    }
    if (!volumes_) return;
    for (const Binder::Attempt& attempt : volumes_->WithdrawNode(event.name))
      Withdrawn(now, attempt);
    return;
  }
  const auto node = decoder_.Node(event.object.view());
  if (!node) {
    ++counters_.undecodable;
    Say(out, env::LogLevel::kError, fmt::format("node {}: {}", event.name, node.error().message));
    return;
  }
  const uint32_t kinds = engine_.vocabulary().resources.size();
  std::vector<std::string> left_out;
  const model::NodeUpsert facts = translate::NodeFacts(*node, engine_.vocabulary(), &left_out);
  if (!engine_.state().HasRoomFor(facts)) return TurnAway(event.name, out);
  Apply(facts);
  NoteLeftOut(event.name, left_out, out);
  if (engine_.vocabulary().resources.size() > kinds) ReadAgain(now, out);
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

// ---- Preempting ------------------------------------------------------------------------------

void Scheduler::Apply(const model::Delta& delta) {
  engine_.Apply(delta);
  evictor_.AskAgain();
  if (quota_) quota_->AskAgain();
  for (const model::GroupId group : engine_.state().changed_groups()) FollowGroup(group);
  if (!options_.engine.preemption) return;
  // A copy: what follows may apply more.
  for (const model::PodId pod : std::vector(engine_.state().changed_pods())) FollowUp(pod);
}

client::ObjectRef Scheduler::RefOf(model::PodId pod) const {
  const model::State& state = engine_.state();
  const std::string_view key = state.KeyOf(state.pods().at(pod).key);
  const size_t slash = key.find('/');
  CHECK_NE(slash, std::string_view::npos);
  return {.namespace_name = std::string(key.substr(0, slash)),
          .name = std::string(key.substr(slash + 1)),
          .uid = std::string(state.UidOf(state.pods().at(pod).uid))};
}

std::string Scheduler::SchedulerOf(model::PodId pod) const {
  const model::State& state = engine_.state();
  const model::NameId profile =
      state.vocabulary().classes.at(state.pods().at(pod).class_id).profile;
  return profile.valid() ? std::string(state.NameOf(profile)) : options_.scheduler_names.front();
}

// What is to be written of promises follows from the pod's row, whatever changed it.
void Scheduler::FollowUp(model::PodId pod) {
  const model::State& state = engine_.state();
  if (!state.pods().used(pod)) return;
  const model::Pod& row = state.pods().at(pod);
  if (row.node.valid()) {
    if (row.terminating) return evictor_.Left(state.UidOf(row.uid));
    if (const model::PodId preemptor = state.pods().FindUid(row.evicted_for); preemptor.valid())
      EvictFor(preemptor);
    if (state.workloads().FindUid(row.evicted_for).valid()) EvictForWorkload(pod);
    if (row.released) EvictForGang(pod);
    return;
  }
  const std::optional<model::NameId> name = state.NominationToWrite(pod);
  std::optional<std::string_view> node;
  if (name) node = name->valid() ? state.NameOf(*name) : std::string_view();
  const std::string_view uid = state.UidOf(row.uid);
  status_.WantNomination(uid, node);
  // A promise that follows a withdrawal of the same node, whose write was not begun or came to
  // nothing: there is nothing to write.
  if (row.promised.valid() && row.promised == row.nominated && status_.NominationSettled(uid))
    return Apply(model::NominationStands{.uid = std::string(uid)});
  EvictFor(pod);
}

// The nomination stands in the object before the first victim is deleted. A victim that is not
// bound yet is deleted when it is.
void Scheduler::EvictFor(model::PodId pod) {
  const model::State& state = engine_.state();
  if (!state.pods().at(pod).ours || state.pods().at(pod).promised.valid()) return;
  for (const model::PodId victim : state.VictimsOf(pod)) {
    if (state.pods().at(victim).terminating || !state.pods().at(victim).node.valid()) continue;
    const model::NodeId node = state.ledger().claim(state.ClaimOf(victim)).account.node();
    evictor_.Evict({.pod = RefOf(victim),
                    .node = std::string(state.NameOf(state.nodes().name(node))),
                    .scheduler_name = SchedulerOf(pod),
                    .preemptor = RefOf(pod),
                    .marked = state.pods().at(victim).disrupted});
  }
}

// What a workload is promised no write tells: who has started anew promises it again, before less
// important pods are served.
void Scheduler::EvictForWorkload(model::PodId pod) {
  const model::State& state = engine_.state();
  const model::Pod& row = state.pods().at(pod);
  const model::Workload& preemptor =
      state.workloads().at(state.workloads().FindUid(row.evicted_for));
  const std::string_view key = state.KeyOf(preemptor.key);
  evictor_.Evict({.pod = RefOf(pod),
                  .node = std::string(state.NameOf(row.node)),
                  .scheduler_name = options_.scheduler_names.front(),
                  .preemptor = {.namespace_name = std::string(key.substr(0, key.find('/'))),
                                .name = std::string(key.substr(key.find('/') + 1)),
                                .uid = std::string(state.UidOf(preemptor.uid))},
                  .for_workload = true,
                  .marked = row.disrupted});
}

// Its gang was not completed in time.
void Scheduler::EvictForGang(model::PodId pod) {
  const model::State& state = engine_.state();
  const model::Pod& row = state.pods().at(pod);
  evictor_.Evict({.pod = RefOf(pod),
                  .node = std::string(state.NameOf(row.node)),
                  .scheduler_name = SchedulerOf(pod),
                  .preemptor = {},
                  .gang = std::string(state.KeyOf(row.group))});
}

bool Scheduler::Wanted(const Evictor::Victim& victim) const {
  const model::State& state = engine_.state();
  const model::PodId pod = state.FindPod(victim.pod.uid);
  if (!pod.valid()) return false;
  const model::Pod& row = state.pods().at(pod);
  if (row.terminating) return false;
  if (!victim.gang.empty()) return row.released;
  if (!row.evicted_for.valid()) return false;
  if (victim.for_workload) return state.UidOf(row.evicted_for) == victim.preemptor.uid;
  const model::PodId preemptor = state.pods().FindUid(row.evicted_for);
  return state.UidOf(row.evicted_for) == victim.preemptor.uid && preemptor.valid() &&
         !state.pods().at(preemptor).promised.valid();
}

void Scheduler::OnNomination(Instant now, const StatusWriter::Result& result, env::Outbox& out) {
  if (!result.nomination) return;
  if (!result.object.empty()) {
    Learn(now, result.object, out);
  } else if (result.refused != 0) {
    OnRefusedNomination(now, result, out);
  }
  FollowUp(engine_.state().FindPod(result.uid));
}

void Scheduler::OnRefusedNomination(Instant now, const StatusWriter::Result& result,
                                    env::Outbox& out) {
  ++counters_.errors;
  WakeWatchdog(now);
  const bool withdraws = result.nomination->empty();
  Say(out, env::LogLevel::kWarning,
      fmt::format("the pod of uid {}: {} was refused ({})", result.uid,
                  withdraws ? "the end of its nomination"
                            : fmt::format("its nomination to node {}", *result.nomination),
                  result.refused));
  // Of another promise than stands now it says nothing.
  if (PromisedTo(result.uid) == *result.nomination)
    Apply(model::PreemptionRefused{.uid = result.uid, .code = result.refused, .at = now});
}

// Empty for nothing, or a pod that is not known.
std::string_view Scheduler::PromisedTo(std::string_view uid) const {
  const model::State& state = engine_.state();
  const model::PodId pod = state.FindPod(uid);
  const model::ClaimId promise = pod.valid() ? state.PromiseOf(pod) : model::ClaimId{};
  if (!promise.valid()) return {};
  return state.NameOf(state.nodes().name(state.ledger().claim(promise).account.node()));
}

// Withdraws those that are not wanted any more and tells of those that came true.
void Scheduler::EndEvictions(Instant now) {
  evictor_.Withdraw([this](const Evictor::Victim& victim) { return Wanted(victim); }, client_);
  for (const Evictor::Victim& victim : evictor_.TakeEvicted()) {
    const StatusWriter::Placed was{
        .pod = victim.pod, .scheduler_name = victim.scheduler_name, .node = victim.node};
    if (victim.gang.empty()) {
      status_.Preempted(now, was, victim.preemptor, victim.for_workload);
    } else {
      status_.Released(now, was, victim.gang);
    }
  }
}

void Scheduler::OnEviction(Instant now, const Evictor::Result& result, env::Outbox& out) {
  const Evictor::Victim& victim = result.victim;
  if (result.end == Evictor::Result::End::kNone || options_.planted_keep_refused) return;
  Say(out, env::LogLevel::kWarning,
      fmt::format(
          "pod {}/{} on node {}: its eviction {} ({})", victim.pod.namespace_name, victim.pod.name,
          victim.node,
          result.end == Evictor::Result::End::kRefused ? "was refused" : "fails again and again",
          result.code));
  ++counters_.errors;
  WakeWatchdog(now);
  Apply(model::EvictionRefused{.uid = victim.pod.uid,
                               .code = result.code,
                               .failed = result.end == Evictor::Result::End::kFailed,
                               .at = now});
}

// ---- Deciding and writing --------------------------------------------------------------------

void Scheduler::Decide(Instant now, env::Outbox& out) {
  ++counters_.cycles;
  const model::Plan plan = engine_.Cycle(now);
  CarryOut(now, plan, out);
}

void Scheduler::CarryOut(Instant now, const model::Plan& plan, env::Outbox& out) {
  const model::State& state = engine_.state();
  const model::BindDecision* before = nullptr;
  for (const model::BindDecision& bind : plan.binds) {
    const model::BindDecision& place =
        options_.planted_anothers_node && before != nullptr ? *before : bind;
    before = &bind;
    // What it said of waiting is over; the API server's binding sets the condition.
    status_.Want(state.UidOf(bind.pod_uid), {.reason = {}, .message = {}});
    status_.WantNomination(state.UidOf(bind.pod_uid), std::nullopt);
    Binder::Attempt attempt{.pod = RefOf(bind.pod),
                            .scheduler_name = SchedulerOf(bind.pod),
                            .node = std::string(state.NameOf(place.node_name)),
                            .devices = bind.devices};
    if (volumes_ && volumes_->NeedsNode(attempt.pod.uid)) {
      volumes_->Hold(now, std::move(attempt), client_, out);
    } else {
      binder_.Bind(now, std::move(attempt), client_, out);
    }
  }
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
  SpareUnsent(now, plan);
}

// A victim whose binding waits to be sent is not evicted: it is not bound. The plan's ids end here.
void Scheduler::SpareUnsent(Instant now, const model::Plan& plan) {
  std::vector<std::string> uids;
  for (const model::PreemptDecision& preemption : plan.preemptions) {
    for (const model::PreemptDecision::Victim& victim : preemption.victims)
      uids.emplace_back(engine_.state().UidOf(victim.uid));
  }
  for (const model::PodId pod : plan.evicted)
    uids.emplace_back(engine_.state().UidOf(engine_.state().pods().at(pod).uid));
  for (const std::string& uid : uids) Withdraw(now, uid);
}

model::BindOutcome Scheduler::OfNamesake(model::BindOutcome outcome,
                                         const client::ObjectRef& pod) const {
  const model::State& state = engine_.state();
  const model::PodId now = state.FindPodByKey(client::KnownSet::Key(pod.namespace_name, pod.name));
  if (now.valid()) outcome.uid = std::string(state.UidOf(state.pods().at(now).uid));
  return outcome;
}

void Scheduler::OnBinding(Instant now, const Binder::Result& result, env::Outbox& out) {
  const Binder::Attempt& attempt = result.attempt;
  if (result.outcome) {
    Apply(options_.planted_outcome_by_name ? OfNamesake(*result.outcome, attempt.pod)
                                           : *result.outcome);
    if (result.outcome->outcome == model::WriteOutcome::kDone) {
      ++counters_.scheduled;
      status_.Forget(attempt.pod.uid);
      status_.Scheduled(
          now,
          {.pod = attempt.pod, .scheduler_name = attempt.scheduler_name, .node = attempt.node});
    }
    if (result.outcome->outcome == model::WriteOutcome::kRefused) {
      ++counters_.errors;
      const std::string text = fmt::format("binding rejected: {}", result.status.message);
      Say(out, env::LogLevel::kWarning,
          fmt::format("pod {}/{} on node {}: {} ({})", attempt.pod.namespace_name, attempt.pod.name,
                      attempt.node, text, result.status.code));
      status_.Want(attempt.pod.uid, {.reason = kSchedulerError, .message = Bytes(text)});
    }
    return FollowUp(engine_.state().FindPod(attempt.pod.uid));
  }
  if (!result.read) return;
  // Not found: the deletion is on its way in the watch, and ends the claim then.
  if (result.object.empty()) return;
  Learn(now, result.object, out);
  // Asked of what was read: a pod that is gone or finished by now is not kept.
  const auto pod = decoder_.Pod(result.object.view());
  const bool came_true = pod && pod->meta.uid == attempt.pod.uid && pod->node_name == attempt.node;
  Apply(model::BindRead{.uid = attempt.pod.uid, .at = now});
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
