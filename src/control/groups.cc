#include "control/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "control/status_text.h"
#include "translate/facts.h"
#include "translate/quota_text.h"

namespace berth::control {
namespace {

constexpr std::string_view kUnschedulableType = "Unschedulable";
constexpr std::string_view kScheduledType = "Scheduled";
constexpr std::string_view kReadyReason = "tasks in gang are ready to be scheduled";

bool IsOurs(const api::PodGroupCondition& condition) {
  return condition.condition.type == kUnschedulableType ||
         condition.condition.type == kScheduledType;
}

// Volcano's scheduler gives such a group the default priority, and tells nobody.
std::string NoteOfClass(const api::PodGroup& group) {
  return fmt::format(
      "PriorityClass {} doesn't exist, which spec.priorityClassName names: create it, or name "
      "another; until then the group has the priority of its most important pod that waits",
      group.priority_class);
}

// No more can be kept; with less than all its members it starts nowhere all the same.
std::string NoteOfBound(std::string_view resource, std::string_view asked) {
  return fmt::format(
      "spec.minResources.{}: {} is more than is kept for a PodGroup: it is let in where its queue "
      "has {}, and each of its pods gets a node only as its queue has what that requests; divide "
      "the group where that may be taken by others meanwhile",
      resource, asked, translate::ResourceAmountText(resource, limits::kAmountMax));
}

// The one condition that is to be true; an empty type: conditions stay as they are. `note` is told
// with either.
api::Condition ConditionOf(const Groups::Wanted& wanted, std::string_view note) {
  if (!wanted.reason.empty()) {
    return {.type = std::string(kUnschedulableType),
            .status = "True",
            .reason = wanted.reason,
            .message = fmt::format("{}{}{}", wanted.message, note.empty() ? "" : " ", note)};
  }
  if (!wanted.scheduled) return {};
  return {.type = std::string(kScheduledType),
          .status = "True",
          .reason = std::string(kReadyReason),
          .message = std::string(note)};
}

bool SaysTheSame(const api::Condition& a, const api::Condition& b) {
  return a.type == b.type && a.status == b.status && a.reason == b.reason && a.message == b.message;
}

bool ConditionDiffers(const api::PodGroup& group, const api::Condition& condition) {
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
std::string ConditionsText(const api::PodGroup& group, const api::Condition& condition,
                           Instant now) {
  std::string text = "[";
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

bool Groups::LacksClass(const api::PodGroup& group) const {
  return !group.priority_class.empty() && !classes_.contains(group.priority_class);
}

std::string Groups::NoteOn(std::string_view uid) const {
  const Subject* subject = pump_.Find(uid);
  return subject != nullptr ? subject->note() : "";
}

std::string Groups::Subject::note() const {
  std::string text = class_missing ? NoteOfClass(group) : "";
  for (const auto& [resource, asked] : translate::BeyondBounds(group)) {
    if (!text.empty()) text += "; ";
    text += NoteOfBound(resource, asked);
  }
  return text;
}

model::GroupUpsert Groups::Observe(api::PodGroup group, model::Vocabulary& vocabulary) {
  model::GroupUpsert facts = FactsOf(group, vocabulary);
  Subject& subject = pump_.At(facts.uid);
  subject.class_missing = LacksClass(group);
  subject.group = std::move(group);
  pump_.Reconsider(facts.uid);
  return facts;
}

void Groups::Forget(std::string_view uid) { pump_.Forget(uid); }

std::vector<model::GroupUpsert> Groups::ObserveClass(std::string_view name,
                                                     std::optional<int32_t> value,
                                                     model::Vocabulary& vocabulary) {
  if (value) {
    classes_.insert_or_assign(std::string(name), *value);
  } else if (const auto known = classes_.find(name); known != classes_.end()) {
    classes_.erase(known);
  }
  std::vector<model::GroupUpsert> facts;
  pump_.ForEach([&](const std::string& uid, Subject& subject) {
    if (subject.group.priority_class != name) return;
    facts.push_back(FactsOf(subject.group, vocabulary));
    subject.class_missing = LacksClass(subject.group);
    pump_.Reconsider(uid);
  });
  return facts;
}

void Groups::Want(std::string_view uid, Wanted wanted) {
  Subject* subject = pump_.Find(uid);
  if (subject == nullptr || subject->wanted == wanted) return;
  subject->wanted = std::move(wanted);
  pump_.Reconsider(uid);
}

api::Condition Groups::Subject::condition() const { return ConditionOf(*wanted, note()); }

StatusNeed Groups::Subject::need() const {
  if (!wanted) return StatusNeed::kNone;
  if (PhaseDiffers(group, *wanted)) return StatusNeed::kNow;
  return CountsDiffer(group, *wanted) || ConditionDiffers(group, condition()) ? StatusNeed::kSoon
                                                                              : StatusNeed::kNone;
}

client::Request Groups::Subject::WriteOf(Instant now) const {
  std::string body = StatusPatchStart(group.meta);
  body += fmt::format(R"("phase":"{}","running":{},"succeeded":{},"failed":{})",
                      model::ToString(wanted->phase), wanted->running, wanted->succeeded,
                      wanted->failed);
  if (const api::Condition wants = condition(); ConditionDiffers(group, wants))
    body += R"(,"conditions":)" + ConditionsText(group, wants, now);
  body += "}}";
  return client::Patch(PodGroups(),
                       {.namespace_name = group.meta.namespace_name, .name = group.meta.name},
                       client::PatchType::kMerge, std::move(body));
}

void Groups::Subject::AddTo(Hasher& hasher) const {
  hasher.AddVersion(group.meta.resource_version).Add(group.phase);
  hasher.Add(group.running).Add(group.succeeded).Add(group.failed);
  for (const api::PodGroupCondition& c : group.conditions) {
    hasher.Add(c.condition.type).Add(c.condition.status).Add(c.condition.reason);
    hasher.Add(c.condition.message).Add(c.condition.transition.ns);
  }
  hasher.Add(class_missing).Add(wanted.has_value());
  if (!wanted) return;
  hasher.Add(wanted->phase).Add(wanted->running).Add(wanted->succeeded).Add(wanted->failed);
  hasher.Add(wanted->reason).Add(wanted->message).Add(wanted->scheduled);
}

void Groups::AddTo(Hasher& hasher) const {
  pump_.AddTo(hasher);
  hasher.Add(classes_.size());
  for (const auto& [name, value] : classes_) hasher.Add(name).Add(value);
}

}  // namespace berth::control
