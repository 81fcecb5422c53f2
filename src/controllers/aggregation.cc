#include "controllers/aggregation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace berth::controllers {

Plan PlanAggregation(const Objects& objects, Slot slot) {
  const RoleFacts& role = *objects.role(slot);
  Plan plan;
  if (!role.aggregates) return plan;
  std::vector<std::string> rules;
  for (const api::LabelSelector& selector : role.selectors) {
    const Result<api::LabelQuery> query = api::QueryOf(selector);
    // The server lets no such selector in.
    if (!query) return plan;
    // In order of names.
    for (const Slot other : objects.All(api::KindId::kClusterRole)) {
      if (other == slot || !query->Matches(objects.head(other).labels)) continue;
      for (const std::string& rule : objects.role(other)->rules) {
        if (std::ranges::find(rules, rule) == rules.end()) rules.push_back(rule);
      }
    }
  }
  if (rules == role.rules) return plan;
  Write patch = PatchOf(objects.head(slot));
  patch.body = fmt::format(R"("rules":[{}])", fmt::join(rules, ","));
  plan.writes.push_back(std::move(patch));
  return plan;
}

}  // namespace berth::controllers
