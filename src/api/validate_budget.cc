#include "api/validate_budget.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "api/object.h"
#include "api/validate_workloads.h"

namespace berth::api::rules {
namespace {

Json OrNull(const Json& object, std::string_view member) {
  const Json* value = FindMember(object, member);
  return value == nullptr ? Json() : *value;
}

// The spec as upstream prints its own type.
Json Shown(const Json& spec) {
  return JsonObject{{"MinAvailable", OrNull(spec, "minAvailable")},
                    {"Selector", OrNull(spec, "selector")},
                    {"MaxUnavailable", OrNull(spec, "maxUnavailable")},
                    {"UnhealthyPodEvictionPolicy", OrNull(spec, "unhealthyPodEvictionPolicy")}};
}

// A letter, then letters, digits and `_,:`, of which the last is no `,` or `:`.
bool IsConditionReason(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_word = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  if (text.empty() || !is_letter(text.front()) || !is_word(text.back())) return false;
  return std::ranges::all_of(text, [&](char c) { return is_word(c) || c == ',' || c == ':'; });
}

void CheckConditionReason(FieldErrors& errors, const Path& path, std::string_view reason) {
  constexpr size_t kReasonMax = 1024;
  if (reason.empty()) {
    AddRequired(errors, path);
    return;
  }
  if (!IsConditionReason(reason)) {
    AddInvalid(errors, path, reason,
               {"a condition reason must start with alphabetic character, optionally followed by a "
                "string of alphanumeric characters or '_,:', and must end with an alphanumeric "
                "character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or "
                "'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
                "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"});
  }
  if (reason.size() > kReasonMax) errors.push_back(TooLongField(path.text(), kReasonMax));
}

// A metav1.Condition.
void CheckCondition(FieldErrors& errors, const Path& path, const Json& condition) {
  constexpr std::array<std::string_view, 3> kStatuses = {"False", "True", "Unknown"};
  constexpr size_t kMessageMax = 32 * 1024;
  CheckLabelName(errors, path.At("type"), TextAt(condition, "type"));
  CheckEnum(errors, path.At("status"), TextAt(condition, "status"), kStatuses);
  if (IntegerAt(condition, "observedGeneration") < 0) {
    errors.push_back(InvalidField(path.At("observedGeneration").text(),
                                  IntegerAt(condition, "observedGeneration"),
                                  "must be greater than or equal to zero"));
  }
  if (TextAt(condition, "lastTransitionTime").empty()) {
    AddRequired(errors, path.At("lastTransitionTime"));
  }
  CheckConditionReason(errors, path.At("reason"), TextAt(condition, "reason"));
  if (TextAt(condition, "message").size() > kMessageMax) {
    errors.push_back(TooLongField(path.At("message").text(), kMessageMax));
  }
}

}  // namespace

void CheckBudget(FieldErrors& errors, const Json& object) {
  constexpr std::array<std::string_view, 2> kPolicies = {"AlwaysAllow", "IfHealthyBudget"};
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  const Json* least = FindMember(spec, "minAvailable");
  const Json* most = FindMember(spec, "maxUnavailable");
  if (least != nullptr && most != nullptr) {
    AddInvalid(errors, path, Shown(spec), "minAvailable and maxUnavailable cannot be both set");
  }
  if (least != nullptr) CheckCountOrShare(errors, path.At("minAvailable"), *least);
  if (most != nullptr) CheckCountOrShare(errors, path.At("maxUnavailable"), *most);
  if (const Json* selector = FindMember(spec, "selector")) {
    CheckLabelSelector(errors, path.At("selector"), *selector);
  }
  if (FindMember(spec, "unhealthyPodEvictionPolicy") != nullptr) {
    CheckEnum(errors, path.At("unhealthyPodEvictionPolicy"),
              TextAt(spec, "unhealthyPodEvictionPolicy"), kPolicies);
  }
}

void CheckBudgetStatus(FieldErrors& errors, const Json& object) {
  const Path path("status");
  const Json& status = OrEmptyObject(FindMember(object, "status"));
  const JsonArray& conditions = ArrayAt(status, "conditions");
  std::vector<std::string_view> seen;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path item = path.At("conditions", i);
    const std::string_view type = TextAt(conditions[i], "type");
    if (std::ranges::find(seen, type) != seen.end()) {
      errors.push_back(DuplicateField(item.At("type").text(), type));
    }
    seen.push_back(type);
    CheckCondition(errors, item, conditions[i]);
  }
  constexpr std::array<std::string_view, 4> kCounts = {"disruptionsAllowed", "currentHealthy",
                                                       "desiredHealthy", "expectedPods"};
  CheckNonnegative(errors, path, status, kCounts);
}

}  // namespace berth::api::rules
