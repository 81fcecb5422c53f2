#include "controllers/role_facts.h"

#include <utility>

#include "api/json.h"
#include "api/object.h"
#include "codec/json.h"

namespace berth::controllers {

using api::Json;

Result<RoleFacts> ReadRole(std::string_view json) {
  const Result<Json> role = codec::ParseJson(json);
  if (!role) return std::unexpected(role.error());
  RoleFacts facts;
  facts.aggregates = api::FindMember(*role, "aggregationRule") != nullptr;
  for (const Json& selector : api::ArrayAt(*role, "aggregationRule.clusterRoleSelectors"))
    facts.selectors.push_back(api::LabelSelectorOf(selector));
  for (const Json& rule : api::ArrayAt(*role, "rules"))
    facts.rules.push_back(codec::PrintJson(rule));
  return facts;
}

}  // namespace berth::controllers
