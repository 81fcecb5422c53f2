#include "translate/priority_classes.h"

#include "translate/facts.h"

namespace berth::translate {

namespace {

constexpr std::string_view kNever = "Never";

}  // namespace

bool PriorityClasses::Put(const api::PriorityClass& of) {
  const Class now{
      .priority = {.value = PriorityOf(of.value), .preempts = of.preemption_policy != kNever},
      .is_default = of.global_default};
  const auto [at, fresh] = classes_.try_emplace(of.meta.name, now);
  if (!fresh && at->second == now) return false;
  at->second = now;
  return true;
}

bool PriorityClasses::Remove(std::string_view name) {
  const auto at = classes_.find(name);
  if (at == classes_.end()) return false;
  classes_.erase(at);
  return true;
}

PriorityClasses::Priority PriorityClasses::Of(const api::PodSpec& spec) const {
  const Class* found = nullptr;
  if (const auto named = classes_.find(spec.priority_class_name); named != classes_.end())
    found = &named->second;
  // Of several the lowest.
  for (const auto& [name, one] : classes_) {
    if (!spec.priority_class_name.empty()) break;
    if (one.is_default && (found == nullptr || one.priority.value < found->priority.value))
      found = &one;
  }
  Priority priority = found == nullptr ? Priority{} : found->priority;
  if (spec.priority != 0) priority.value = PriorityOf(spec.priority);
  if (!spec.preemption_policy.empty()) priority.preempts = spec.preemption_policy != kNever;
  return priority;
}

void PriorityClasses::AddTo(Hasher& hasher) const {
  hasher.Add(classes_.size());
  for (const auto& [name, one] : classes_)
    hasher.Add(name).Add(one.priority.value).Add(one.priority.preempts).Add(one.is_default);
}

}  // namespace berth::translate
