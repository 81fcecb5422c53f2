#include "api/validate_job_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>
#include <vector>

#include "api/object.h"
#include "api/text.h"

namespace berth::api::rules {
namespace {

constexpr int64_t kManyCompletions = 100'000;
constexpr int64_t kFailedIndexesMax = 100'000;
constexpr int64_t kLimitForMany = 10'000;
constexpr size_t kRulesMax = 20;
constexpr size_t kPatternsMax = 20;
constexpr size_t kExitCodesMax = 255;
constexpr size_t kIndexesTextMax = 65'536;
constexpr std::array<std::string_view, 4> kActions = {"Count", "FailIndex", "FailJob", "Ignore"};
constexpr std::array<std::string_view, 2> kOperators = {"In", "NotIn"};
constexpr std::array<std::string_view, 3> kStatuses = {"False", "True", "Unknown"};

void AddNumber(FieldErrors& errors, const Path& path, int64_t value, std::string detail) {
  errors.push_back(InvalidField(path.text(), value, std::move(detail)));
}

// Whose value is not shown.
void AddBad(FieldErrors& errors, const Path& path, std::string detail) {
  FieldError error = InvalidField(path.text(), "", std::move(detail));
  error.value.clear();
  errors.push_back(std::move(error));
}

// As CheckEnum, where a missing value is told with the valid ones.
void CheckNamed(FieldErrors& errors, const Path& path, std::string_view value,
                std::span<const std::string_view> supported) {
  if (!value.empty()) return CheckEnum(errors, path, value, supported);
  std::string list;
  for (const std::string_view one : supported) {
    if (!list.empty()) list += ' ';
    list += QuoteGo(one);
  }
  AddRequired(errors, path, fmt::format("valid values: [{}]", list));
}

void CheckExitCodes(FieldErrors& errors, const Path& path, const Json& codes,
                    const std::set<std::string_view>& containers) {
  CheckNamed(errors, path.At("operator"), TextAt(codes, "operator"), kOperators);
  if (FindMember(codes, "containerName") != nullptr) {
    const std::string_view name = TextAt(codes, "containerName");
    if (!containers.contains(name)) {
      AddInvalid(errors, path.At("containerName"), name,
                 {"must be one of the container or initContainer names in the pod template"});
    }
  }
  const Path values_path = path.At("values");
  const JsonArray& values = ArrayAt(codes, "values");
  if (values.empty()) {
    const Json* given = FindMember(codes, "values");
    AddInvalid(errors, values_path, given == nullptr ? Json() : *given,
               "at least one value is required");
  } else if (values.size() > kExitCodesMax) {
    errors.push_back(TooManyField(values_path.text(), static_cast<int64_t>(values.size()),
                                  static_cast<int64_t>(kExitCodesMax)));
  }
  bool ordered = true;
  std::set<int64_t> seen;
  int64_t before = INT64_MIN;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_int64()) continue;
    const int64_t value = values[i].get_int64();
    if (value == 0 && TextAt(codes, "operator") == "In")
      AddNumber(errors, values_path.Item(i), value, "must not be 0 for the In operator");
    if (!seen.insert(value).second)
      errors.push_back(DuplicateJsonField(values_path.Item(i).text(), values[i]));
    ordered = ordered && before <= value;
    before = value;
  }
  if (!ordered) AddInvalid(errors, values_path, Json(values), "must be ordered");
}

void CheckConditions(FieldErrors& errors, const Path& path, const JsonArray& patterns) {
  if (patterns.size() > kPatternsMax) {
    errors.push_back(TooManyField(path.text(), static_cast<int64_t>(patterns.size()),
                                  static_cast<int64_t>(kPatternsMax)));
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    const Path pattern = path.Item(i);
    const std::string_view type = TextAt(patterns[i], "type");
    AddInvalid(errors, pattern.At("type"), type, CheckQualifiedName(type));
    CheckNamed(errors, pattern.At("status"), TextAt(patterns[i], "status"), kStatuses);
  }
}

void CheckFailureRule(FieldErrors& errors, const Path& path, const Json& rule, const Json& spec,
                      const std::set<std::string_view>& containers) {
  const std::string_view action = TextAt(rule, "action");
  if (action != "FailIndex") {
    CheckNamed(errors, path.At("action"), action, kActions);
  } else if (FindMember(spec, "backoffLimitPerIndex") == nullptr) {
    AddInvalid(errors, path.At("action"), action, {"requires the backoffLimitPerIndex to be set"});
  }
  const Json* codes = FindMember(rule, "onExitCodes");
  const JsonArray& conditions = ArrayAt(rule, "onPodConditions");
  if (codes != nullptr) CheckExitCodes(errors, path.At("onExitCodes"), *codes, containers);
  CheckConditions(errors, path.At("onPodConditions"), conditions);
  if (codes != nullptr && !conditions.empty()) {
    AddBad(errors, path, "specifying both OnExitCodes and OnPodConditions is not supported");
  }
  if (codes == nullptr && conditions.empty())
    AddBad(errors, path, "specifying one of OnExitCodes and OnPodConditions is required");
}

void CheckFailurePolicy(FieldErrors& errors, const Path& path, const Json& policy,
                        const Json& spec) {
  const Path rules_path = path.At("rules");
  const JsonArray& rules = ArrayAt(policy, "rules");
  if (rules.size() > kRulesMax) {
    errors.push_back(TooManyField(rules_path.text(), static_cast<int64_t>(rules.size()),
                                  static_cast<int64_t>(kRulesMax)));
  }
  std::set<std::string_view> containers;
  for (const std::string_view list : {"template.spec.containers", "template.spec.initContainers"}) {
    for (const Json& container : ArrayAt(spec, list)) containers.insert(TextAt(container, "name"));
  }
  for (size_t i = 0; i < rules.size(); ++i)
    CheckFailureRule(errors, rules_path.Item(i), rules[i], spec, containers);
}

// ---- successPolicy ---------------------------------------------------------------------------

struct Indexes {
  int64_t count = 0;
  std::string problem;
};

bool ReadNumber(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Indexes ReadIndexes(std::string_view text, int64_t completions) {
  Indexes indexes;
  if (text.empty()) return indexes;
  int64_t previous = -1;
  for (const std::string_view interval : Split(text, ',')) {
    const std::vector<std::string_view> limits = Split(interval, '-');
    if (limits.size() > 2) {
      return {.problem = fmt::format("the fragment {} violates the requirement that an index "
                                     "interval can have at most two parts separated by '-'",
                                     QuoteGo(interval))};
    }
    int64_t first = 0;
    if (!ReadNumber(limits.front(), first)) {
      return {.problem = fmt::format("cannot convert string to integer for index: {}",
                                     QuoteGo(limits.front()))};
    }
    if (first >= completions)
      return {.problem = fmt::format("too large index: {}", QuoteGo(limits.front()))};
    int64_t last = first;
    if (limits.size() == 2) {
      if (!ReadNumber(limits[1], last)) {
        return {.problem = fmt::format("cannot convert string to integer for index: {}",
                                       QuoteGo(limits[1]))};
      }
      if (last >= completions)
        return {.problem = fmt::format("too large index: {}", QuoteGo(limits[1]))};
      if (first >= last) {
        return {.problem =
                    fmt::format("non-increasing order, previous: {}, current: {}", first, last)};
      }
    }
    if (previous >= first) {
      return {.problem =
                  fmt::format("non-increasing order, previous: {}, current: {}", previous, first)};
    }
    indexes.count += last - first + 1;
    previous = last;
  }
  return indexes;
}

void CheckSuccessRule(FieldErrors& errors, const Path& path, const Json& rule,
                      int64_t completions) {
  const bool by_indexes = FindMember(rule, "succeededIndexes") != nullptr;
  const bool by_count = FindMember(rule, "succeededCount") != nullptr;
  if (!by_indexes && !by_count) {
    AddRequired(errors, path,
                "at least one of succeededCount or succeededIndexes must be specified");
  }
  Indexes indexes;
  if (by_indexes) {
    const Path at = path.At("succeededIndexes");
    const std::string_view text = TextAt(rule, "succeededIndexes");
    if (text.size() > kIndexesTextMax)
      errors.push_back(TooLongField(at.text(), static_cast<int64_t>(kIndexesTextMax)));
    indexes = ReadIndexes(text, completions);
    if (!indexes.problem.empty())
      AddInvalid(errors, at, text, {"error parsing succeededIndexes: " + indexes.problem});
  }
  if (!by_count) return;
  const Path at = path.At("succeededCount");
  const int64_t count = IntegerAt(rule, "succeededCount");
  constexpr std::array<std::string_view, 1> kCount = {"succeededCount"};
  CheckNonnegative(errors, path, rule, kCount);
  if (count > completions) {
    AddNumber(errors, at, count,
              fmt::format("must be less than or equal to {} (the number of specified completions)",
                          completions));
  }
  if (by_indexes && count > indexes.count) {
    AddNumber(errors, at, count,
              fmt::format("must be less than or equal to {} (the number of indexes in the "
                          "specified succeededIndexes field)",
                          indexes.count));
  }
}

void CheckSuccessPolicy(FieldErrors& errors, const Path& path, const Json& policy,
                        const Json& spec) {
  const Path rules_path = path.At("rules");
  const JsonArray& rules = ArrayAt(policy, "rules");
  if (rules.empty()) {
    AddRequired(errors, rules_path,
                "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kRulesMax) {
    errors.push_back(TooManyField(rules_path.text(), static_cast<int64_t>(rules.size()),
                                  static_cast<int64_t>(kRulesMax)));
  }
  for (size_t i = 0; i < rules.size(); ++i)
    CheckSuccessRule(errors, rules_path.Item(i), rules[i], IntegerAt(spec, "completions"));
}

// As upstream shows it: in the names of its own structs.
Json ShownPolicy(const Json& policy) {
  JsonArray rules;
  for (const Json& rule : ArrayAt(policy, "rules")) {
    JsonObject& shown = rules.emplace_back(JsonObject()).get_object();
    const Json* indexes = FindMember(rule, "succeededIndexes");
    const Json* count = FindMember(rule, "succeededCount");
    shown["SucceededIndexes"] = indexes == nullptr ? Json() : *indexes;
    shown["SucceededCount"] = count == nullptr ? Json() : *count;
  }
  return JsonObject{{"Rules", std::move(rules)}};
}

}  // namespace

void CheckIndexLimits(FieldErrors& errors, const Path& path, const Json& spec) {
  const bool has_completions = FindMember(spec, "completions") != nullptr;
  const bool has_failed = FindMember(spec, "maxFailedIndexes") != nullptr;
  const int64_t completions = IntegerAt(spec, "completions");
  const int64_t failed = IntegerAt(spec, "maxFailedIndexes");
  const Path failed_path = path.At("maxFailedIndexes");
  if (has_completions && has_failed && failed > completions)
    AddNumber(errors, failed_path, failed, "must be less than or equal to completions");
  if (failed > kFailedIndexesMax) {
    AddNumber(errors, failed_path, failed,
              fmt::format("must be less than or equal to {}", kFailedIndexesMax));
  }
  if (completions <= kManyCompletions || FindMember(spec, "backoffLimitPerIndex") == nullptr)
    return;
  if (!has_failed) {
    AddRequired(errors, failed_path,
                fmt::format("must be specified when completions is above {}", kManyCompletions));
  }
  const auto limit = [&](std::string_view member) {
    const int64_t value = IntegerAt(spec, member);
    if (value <= kLimitForMany) return;
    AddNumber(errors, path.At(member), value,
              fmt::format("must be less than or equal to {} when completions are above {} and "
                          "used with backoff limit per index",
                          kLimitForMany, kManyCompletions));
  };
  limit("parallelism");
  limit("maxFailedIndexes");
}

void CheckJobPolicies(FieldErrors& errors, const Path& path, const Json& spec) {
  if (const Json* policy = FindMember(spec, "podFailurePolicy"))
    CheckFailurePolicy(errors, path.At("podFailurePolicy"), *policy, spec);
  const Json* policy = FindMember(spec, "successPolicy");
  if (policy == nullptr) return;
  if (TextAt(spec, "completionMode") != "Indexed") {
    AddInvalid(errors, path.At("successPolicy"), ShownPolicy(*policy),
               "requires indexed completion mode");
  } else if (FindMember(spec, "completions") != nullptr) {
    CheckSuccessPolicy(errors, path.At("successPolicy"), *policy, spec);
  }
}

}  // namespace berth::api::rules
