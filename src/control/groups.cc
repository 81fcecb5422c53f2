#include "control/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "translate/facts.h"

namespace berth::control {
namespace {

constexpr std::string_view kUnschedulableType = "Unschedulable";
constexpr std::string_view kScheduledType = "Scheduled";
constexpr std::string_view kReadyReason = "tasks in gang are ready to be scheduled";
// Of a write that was refused, is of unknown fate, or was in conflict with no version that came.
constexpr Duration kAgain = Duration::Seconds(10);

bool IsOurs(const api::PodGroupCondition& condition) {
  return condition.condition.type == kUnschedulableType ||
         condition.condition.type == kScheduledType;
}

// The one condition that is to be true; an empty type: conditions stay as they are.
api::Condition ConditionOf(const Groups::Wanted& wanted) {
  if (!wanted.reason.empty()) {
    return {.type = std::string(kUnschedulableType),
            .status = "True",
            .reason = wanted.reason,
            .message = wanted.message};
  }
  if (!wanted.scheduled) return {};
  return {
      .type = std::string(kScheduledType), .status = "True", .reason = std::string(kReadyReason)};
}

bool SaysTheSame(const api::Condition& a, const api::Condition& b) {
  return a.type == b.type && a.status == b.status && a.reason == b.reason && a.message == b.message;
}

bool ConditionDiffers(const api::PodGroup& group, const Groups::Wanted& wanted) {
  const api::Condition condition = ConditionOf(wanted);
  if (condition.type.empty()) return false;
  const auto ours = std::ranges::count_if(group.conditions, IsOurs);
  const auto said = std::ranges::find_if(
      group.conditions, [&](const auto& c) { return SaysTheSame(c.condition, condition); });
  return ours != 1 || said == group.conditions.end();
}

bool CountsDiffer(const api::PodGroup& group, const Groups::Wanted& wanted) {
  return group.running != wanted.running || group.succeeded != wanted.succeeded ||
         group.failed != wanted.failed;
}

bool PhaseDiffers(const api::PodGroup& group, const Groups::Wanted& wanted) {
  return group.phase != model::ToString(wanted.phase);
}

std::string ConditionText(const api::PodGroupCondition& condition) {
  std::string text = R"({"type":)";
  client::AppendJsonString(text, condition.condition.type);
  text += R"(,"status":)";
  client::AppendJsonString(text, condition.condition.status);
  text += R"(,"reason":)";
  client::AppendJsonString(text, condition.condition.reason);
  text += R"(,"message":)";
  client::AppendJsonString(text, condition.condition.message);
  text += R"(,"transitionID":)";
  client::AppendJsonString(text, condition.transition_id);
  if (condition.condition.transition != Instant{}) {
    text += fmt::format(R"(,"lastTransitionTime":"{}")",
                        client::SecondsTime(condition.condition.transition));
  }
  return text + '}';
}

// All conditions, since a merge patch replaces the list: those of others as they were.
std::string ConditionsText(const api::PodGroup& group, const Groups::Wanted& wanted, Instant now) {
  std::string text = "[";
  const api::Condition condition = ConditionOf(wanted);
  api::PodGroupCondition ours{.transition_id = group.meta.resource_version, .condition = condition};
  ours.condition.transition = now;
  for (const api::PodGroupCondition& before : group.conditions) {
    if (!IsOurs(before)) text += ConditionText(before) + ',';
    // What stays true keeps the time at which it became so.
    if (before.condition.type == condition.type && before.condition.status == condition.status) {
      ours.transition_id = before.transition_id;
      ours.condition.transition = before.condition.transition;
    }
  }
  return text + ConditionText(ours) + ']';
}

}  // namespace

client::Resource PodGroups() {
  return {.group = "scheduling.volcano.sh", .version = "v1beta1", .plural = "podgroups"};
}

model::GroupUpsert Groups::FactsOf(const api::PodGroup& group,
                                   model::Vocabulary& vocabulary) const {
  std::optional<int32_t> priority;
  if (const auto known = classes_.find(group.priority_class); known != classes_.end())
    priority = known->second;
  return translate::GroupFacts(group, priority, vocabulary);
}

model::GroupUpsert Groups::Observe(api::PodGroup group, model::Vocabulary& vocabulary) {
  model::GroupUpsert facts = FactsOf(group, vocabulary);
  const auto it = notes_.try_emplace(group.meta.uid).first;
  it->second.group = std::move(group);
  Reconsider(it->first, it->second);
  return facts;
}

void Groups::Forget(std::string_view uid) {
  const auto it = notes_.find(uid);
  if (it == notes_.end()) return;
  due_.erase({it->second.due, it->first});
  notes_.erase(it);
}

std::vector<model::GroupUpsert> Groups::ObserveClass(std::string_view name,
                                                     std::optional<int32_t> value,
                                                     model::Vocabulary& vocabulary) {
  if (value) {
    classes_.insert_or_assign(std::string(name), *value);
  } else if (const auto known = classes_.find(name); known != classes_.end()) {
    classes_.erase(known);
  }
  std::vector<model::GroupUpsert> facts;
  for (const auto& [uid, note] : notes_) {
    if (note.group.priority_class == name) facts.push_back(FactsOf(note.group, vocabulary));
  }
  return facts;
}

void Groups::Want(std::string_view uid, Wanted wanted) {
  const auto it = notes_.find(uid);
  if (it == notes_.end() || it->second.wanted == wanted) return;
  it->second.wanted = std::move(wanted);
  Reconsider(it->first, it->second);
}

void Groups::Reconsider(const std::string& uid, Note& note) {
  due_.erase({note.due, uid});
  note.due = Instant::Never();
  const bool spent = note.spent_version == note.group.meta.resource_version;
  if (!note.wanted || note.call != 0 || (spent && note.spent_until == Instant::Never())) return;
  const bool phase = PhaseDiffers(note.group, *note.wanted);
  if (!phase && !CountsDiffer(note.group, *note.wanted) &&
      !ConditionDiffers(note.group, *note.wanted)) {
    return;
  }
  note.due = phase ? note.phase_not_before : note.not_before;
  if (spent) note.due = std::max(note.due, note.spent_until);
  due_.emplace(note.due, uid);
}

void Groups::Send(Instant now, const std::string& uid, Note& note, client::Client& client,
                  env::Outbox& out) {
  const api::ObjectMeta& meta = note.group.meta;
  std::string body = R"({"metadata":{"uid":)" + client::JsonString(meta.uid);
  body += R"(,"resourceVersion":)" + client::JsonString(meta.resource_version);
  body += fmt::format(R"(}},"status":{{"phase":"{}","running":{},"succeeded":{},"failed":{})",
                      model::ToString(note.wanted->phase), note.wanted->running,
                      note.wanted->succeeded, note.wanted->failed);
  if (ConditionDiffers(note.group, *note.wanted))
    body += R"(,"conditions":)" + ConditionsText(note.group, *note.wanted, now);
  body += "}}";
  const env::CallId call = client.Call(
      now,
      client::Patch(PodGroups(), {.namespace_name = meta.namespace_name, .name = meta.name},
                    client::PatchType::kMerge, std::move(body)),
      out);
  note.call = call.value;
  note.sent_version = meta.resource_version;
  note.not_before = now + options_.interval;
  calls_.emplace(call.value, uid);
  ++counters_.writes;
}

void Groups::Pump(Instant now, client::Client& client, env::Outbox& out) {
  while (calls_.size() < options_.calls_max && !due_.empty() && due_.begin()->first <= now) {
    const std::string uid = due_.begin()->second;
    Note& note = notes_.find(uid)->second;
    due_.erase(due_.begin());
    note.due = Instant::Never();
    Send(now, uid, note, client, out);
  }
}

bool Groups::OnCallDone(Instant now, const client::CallDone& done) {
  const auto call = calls_.find(done.call.value);
  if (call == calls_.end()) return false;
  const auto it = notes_.find(call->second);
  calls_.erase(call);
  if (it == notes_.end() || it->second.call != done.call.value) return true;
  Note& note = it->second;
  note.call = 0;
  switch (done.outcome) {
    case client::Outcome::kDone:
    case client::Outcome::kGone:
      note.spent_version = note.sent_version;
      note.spent_until = Instant::Never();
      break;
    case client::Outcome::kConflict:
      ++counters_.conflicts;
      note.spent_version = note.sent_version;
      note.spent_until = now + kAgain;
      break;
    case client::Outcome::kRefused:
    case client::Outcome::kUnknown:
      ++counters_.failures;
      note.not_before = note.phase_not_before = now + kAgain;
      break;
  }
  Reconsider(it->first, note);
  return true;
}

Instant Groups::wake_at() const {
  if (due_.empty() || calls_.size() >= options_.calls_max) return Instant::Never();
  return due_.begin()->first;
}

// due_ follows from the notes.
void Groups::AddTo(Hasher& hasher) const {
  hasher.Add(notes_.size());
  for (const auto& [uid, note] : notes_) {
    hasher.Add(uid).AddVersion(note.group.meta.resource_version).Add(note.group.phase);
    hasher.Add(note.group.running).Add(note.group.succeeded).Add(note.group.failed);
    for (const api::PodGroupCondition& c : note.group.conditions) {
      hasher.Add(c.condition.type).Add(c.condition.status).Add(c.condition.reason);
      hasher.Add(c.condition.message).Add(c.condition.transition.ns);
    }
    hasher.Add(note.wanted.has_value());
    if (note.wanted) {
      hasher.Add(note.wanted->phase).Add(note.wanted->running).Add(note.wanted->succeeded);
      hasher.Add(note.wanted->failed).Add(note.wanted->reason).Add(note.wanted->message);
      hasher.Add(note.wanted->scheduled);
    }
    hasher.AddCall(note.call).AddVersion(note.spent_version).AddVersion(note.sent_version);
    hasher.Add(note.spent_until.ns);
    hasher.Add(note.not_before.ns).Add(note.phase_not_before.ns).Add(note.due.ns);
  }
  hasher.Add(classes_.size());
  for (const auto& [name, value] : classes_) hasher.Add(name).Add(value);
  hasher.Add(calls_.size());
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(std::string_view(entry.second));
  });
}

}  // namespace berth::control
