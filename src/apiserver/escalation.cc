#include "apiserver/escalation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "api/field_error.h"
#include "api/object.h"
#include "apiserver/authorizer.h"
#include "apiserver/rbac.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::KindId;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

Attributes Special(std::string_view verb, std::string_view resource, const ResourceRequest& request,
                   std::string_view name) {
  return {.verb = std::string(verb),
          .group = std::string(kGroup),
          .resource = std::string(resource),
          .subresource = {},
          .namespace_name = request.namespace_name,
          .name = std::string(name),
          .path = {}};
}

// What of the rules their giver lacks, as upstream words it; "" when nothing.
std::string Lacking(const ResourceRequest& request, const std::vector<Rule>& rules) {
  const Identity& identity = request.requester->identity;
  const Authorizer::Held held =
      request.requester->authorizer.RulesOf(identity, request.namespace_name);
  std::vector<Rule> missing = NotCovered(held.rules, rules);
  if (missing.empty()) return "";
  std::vector<std::string> groups;
  for (const std::string& group : identity.groups) groups.push_back(api::QuoteGo(group));
  std::string text = fmt::format(
      "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
      api::QuoteGo(identity.user), fmt::join(groups, " "), Describe(std::move(missing)));
  std::vector<std::string> errors;
  for (const std::string& name : held.missing_names) {
    errors.push_back(
        fmt::format("{} {} not found", request.kind->group_resource(), api::QuoteGo(name)));
  }
  if (!errors.empty()) text += fmt::format("; resolution errors: [{}]", AggregateErrors(errors));
  return text;
}

bool Aggregates(const Json* role) {
  return role != nullptr && !api::ArrayAt(*role, "aggregationRule.clusterRoleSelectors").empty();
}

Outcome<void> CheckRole(const ResourceRequest& request, const Json* old, const Json& role) {
  const Subject subject{.kind = *request.kind, .name = api::TextAt(role, "metadata.name")};
  const Attributes escalate = Special("escalate", request.kind->plural, request, request.name);
  if (request.requester->authorizer.Authorize(request.requester->identity, escalate).allowed)
    return {};
  if (const std::string lacking = Lacking(request, ParseRules(role)); !lacking.empty())
    return Forbidden(subject, lacking);
  if (!Aggregates(&role) && !Aggregates(old)) return {};
  const std::vector<Rule> all = {
      {.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}, .names = {}, .urls = {}},
      {.verbs = {"*"}, .groups = {}, .resources = {}, .names = {}, .urls = {"*"}}};
  if (Lacking(request, all).empty()) return {};
  return Forbidden(subject, "must have cluster-admin privileges to use the aggregationRule");
}

Outcome<void> CheckBinding(const ResourceRequest& request, const Json& binding) {
  const Subject subject{.kind = *request.kind, .name = api::TextAt(binding, "metadata.name")};
  const bool of_cluster = api::TextAt(binding, "roleRef.kind") == "ClusterRole";
  const std::string_view name = api::TextAt(binding, "roleRef.name");
  const Authorizer& authorizer = request.requester->authorizer;
  const Attributes bind = Special("bind", of_cluster ? "clusterroles" : "roles", request, name);
  if (authorizer.Authorize(request.requester->identity, bind).allowed) return {};
  const std::vector<Rule>* rules =
      authorizer.FindRole(of_cluster ? "" : request.namespace_name, name);
  // Upstream names the resource that was asked for.
  if (rules == nullptr) return NotFound({.kind = *request.kind, .name = name});
  if (const std::string lacking = Lacking(request, *rules); !lacking.empty())
    return Forbidden(subject, lacking);
  return {};
}

// Whether only what the collector of garbage writes has changed.
bool OnlyForCollector(const Json& old, const Json& object) {
  Json before = old;
  Json after = object;
  constexpr std::array<std::string_view, 3> kFree = {
      "metadata.ownerReferences", "metadata.finalizers", "metadata.managedFields"};
  for (const std::string_view path : kFree) {
    api::RemovePath(before, path);
    api::RemovePath(after, path);
  }
  return api::SameJson(before, after);
}

}  // namespace

Outcome<void> CheckEscalation(const ResourceRequest& request, const Json* old, const Json& object) {
  if (request.requester == nullptr || IsMaster(request.requester->identity)) return {};
  switch (request.kind->id) {
    case KindId::kRole:
    case KindId::kClusterRole:
      if (old != nullptr && OnlyForCollector(*old, object)) return {};
      return CheckRole(request, old, object);
    case KindId::kRoleBinding:
    case KindId::kClusterRoleBinding:
      if (old != nullptr && OnlyForCollector(*old, object)) return {};
      return CheckBinding(request, object);
    default:
      return {};
  }
}

}  // namespace berth::apiserver
