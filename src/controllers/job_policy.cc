#include "controllers/job_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::controllers {
namespace {

using ExitCode = std::pair<std::string, int64_t>;

const ExitCode* MatchExit(const api::FailureRule& rule, const PodRef& pod) {
  const auto at = std::ranges::find_if(pod.facts->exit_codes, [&](const ExitCode& exit) {
    if (exit.second == 0 || (!rule.container.empty() && rule.container != exit.first)) return false;
    const bool listed = std::ranges::find(rule.exit_codes, exit.second) != rule.exit_codes.end();
    return listed != rule.not_in;
  });
  return at == pod.facts->exit_codes.end() ? nullptr : &*at;
}

std::string_view MatchCondition(const api::FailureRule& rule, const PodRef& pod) {
  for (const auto& [type, status] : pod.facts->conditions) {
    if (std::ranges::find(rule.conditions, std::pair(type, status)) != rule.conditions.end())
      return type;
  }
  return {};
}

}  // namespace

FailureVerdict JudgeFailure(const std::vector<api::FailureRule>& rules, const PodRef& pod) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const api::FailureRule& rule = rules[i];
    FailureVerdict verdict{.action = rule.action, .matched = true, .why = {}};
    const std::string name = pod.head->namespace_name + "/" + pod.head->name;
    if (rule.on_exit_codes) {
      const ExitCode* exit = MatchExit(rule, pod);
      if (exit == nullptr) continue;
      verdict.why = fmt::format(
          "Container {} for pod {} failed with exit code {} matching FailJob rule at index {}",
          exit->first, name, exit->second, i);
      return verdict;
    }
    const std::string_view condition = MatchCondition(rule, pod);
    if (condition.empty()) continue;
    verdict.why = fmt::format("Pod {} has condition {} matching FailJob rule at index {}", name,
                              condition, i);
    return verdict;
  }
  return {};
}

std::optional<std::string> SuccessMet(const std::vector<api::SuccessRule>& rules,
                                      const IndexSet& succeeded, int64_t completions) {
  if (succeeded.size() == 0) return std::nullopt;
  for (size_t i = 0; i < rules.size(); ++i) {
    const api::SuccessRule& rule = rules[i];
    int64_t reached = succeeded.size();
    bool all = false;
    if (rule.indexes) {
      const IndexSet wanted = IndexSet::Parse(*rule.indexes, completions);
      if (wanted.size() == 0) continue;
      reached = wanted.CountIn(succeeded);
      all = reached == wanted.size();
    }
    if (all || (rule.count && reached >= *rule.count))
      return fmt::format("Matched rules at index {}", i);
  }
  return std::nullopt;
}

}  // namespace berth::controllers
