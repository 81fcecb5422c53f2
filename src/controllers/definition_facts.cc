#include "controllers/definition_facts.h"

#include <algorithm>

#include "api/custom_definition.h"
#include "api/object.h"

namespace berth::controllers {
namespace {

bool IsEstablished(const api::Json& object) {
  return std::ranges::any_of(api::ArrayAt(object, "status.conditions"),
                             [](const api::Json& condition) {
                               return api::TextAt(condition, "type") == "Established" &&
                                      api::TextAt(condition, "status") == "True";
                             });
}

}  // namespace

bool DefinitionFacts::Means(std::string_view api_version, std::string_view kind_name) const {
  const bool in_group = api_version.size() > group.size() && api_version.starts_with(group) &&
                        api_version[group.size()] == '/';
  return in_group && kind_name == kind &&
         std::ranges::find(served, api_version.substr(group.size() + 1)) != served.end();
}

DefinitionFacts ReadDefinition(const api::Json& object) {
  DefinitionFacts facts{.group = std::string(api::TextAt(object, "spec.group")),
                        .kind = std::string(api::TextAt(object, "status.acceptedNames.kind")),
                        .plural = std::string(api::TextAt(object, "status.acceptedNames.plural")),
                        .namespaced = api::TextAt(object, "spec.scope") == "Namespaced",
                        .native = api::NativeKindOf(object) != nullptr};
  if (!IsEstablished(object)) return facts;
  for (const api::Json& version : api::ArrayAt(object, "spec.versions")) {
    if (!api::FlagAt(version, "served")) continue;
    facts.served.emplace_back(api::TextAt(version, "name"));
    if (!facts.version.empty() && !api::FlagAt(version, "storage")) continue;
    facts.version = facts.served.back();
    facts.has_scale = api::FindPath(version, "subresources.scale") != nullptr;
  }
  return facts;
}

}  // namespace berth::controllers
