#include "control/status_text.h"

#include <fmt/format.h>

#include <utility>

namespace berth::control {

client::Resource KueueResource(std::string plural) {
  return {.group = "kueue.x-k8s.io", .version = "v1beta2", .plural = std::move(plural)};
}

std::string PatchStart(const api::ObjectMeta& meta, std::string_view part) {
  return R"({"metadata":{"uid":)" + client::JsonString(meta.uid) + R"(,"resourceVersion":)" +
         client::JsonString(meta.resource_version) + R"(},)" + client::JsonString(part) + ":{";
}

std::string StatusPatchStart(const api::ObjectMeta& meta) { return PatchStart(meta, "status"); }

std::string ConditionText(const api::Condition& condition) {
  std::string text = R"({"type":)" + client::JsonString(condition.type);
  text += R"(,"status":)" + client::JsonString(condition.status);
  text += R"(,"reason":)" + client::JsonString(condition.reason);
  text += R"(,"message":)" + client::JsonString(condition.message);
  if (condition.observed_generation != 0)
    text += fmt::format(R"(,"observedGeneration":{})", condition.observed_generation);
  return text +
         fmt::format(R"(,"lastTransitionTime":"{}"}})", client::SecondsTime(condition.transition));
}

std::string ConditionsText(const std::vector<api::Condition>& conditions) {
  std::string text;
  for (const api::Condition& condition : conditions)
    text += (text.empty() ? '[' : ',') + ConditionText(condition);
  return text.empty() ? "[]" : text + ']';
}

}  // namespace berth::control
