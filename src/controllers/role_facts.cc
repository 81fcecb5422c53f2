#include "controllers/role_facts.h"

#include <utility>

#include "api/json.h"
#include "api/object.h"
#include "codec/json.h"

namespace berth::controllers {
namespace {

using api::Json;

api::LabelSelector SelectorOf(const Json& selector) {
  api::LabelSelector result{.match_labels = api::StringMapAt(selector, "matchLabels"),
                            .match_expressions = {}};
  for (const Json& expression : api::ArrayAt(selector, "matchExpressions")) {
    api::Requirement& requirement = result.match_expressions.emplace_back();
    requirement.key = api::TextAt(expression, "key");
    requirement.op = api::TextAt(expression, "operator");
    for (const Json& value : api::ArrayAt(expression, "values"))
      requirement.values.emplace_back(api::TextOf(value));
  }
  return result;
}

}  // namespace

Result<RoleFacts> ReadRole(std::string_view json) {
  const Result<Json> role = codec::ParseJson(json);
  if (!role) return std::unexpected(role.error());
  RoleFacts facts;
  facts.aggregates = api::FindMember(*role, "aggregationRule") != nullptr;
  for (const Json& selector : api::ArrayAt(*role, "aggregationRule.clusterRoleSelectors"))
    facts.selectors.push_back(SelectorOf(selector));
  for (const Json& rule : api::ArrayAt(*role, "rules"))
    facts.rules.push_back(codec::PrintJson(rule));
  return facts;
}

}  // namespace berth::controllers
