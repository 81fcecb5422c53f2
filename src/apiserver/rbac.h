#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"

// Rules of roles (https://kubernetes.io/docs/reference/access-authn-authz/rbac/). Pure functions;
// source: k8s.io/kubernetes pkg/apis/rbac/v1 evaluation_helpers and k8s.io/component-helpers
// auth/rbac/validation.
namespace berth::apiserver {

// What somebody wants to do: with a resource, or with a path that is none.
struct Attributes {
  std::string verb;
  bool of_resource = true;
  std::string group;
  std::string resource;
  std::string subresource;
  std::string namespace_name;
  std::string name;
  std::string path;  // Of what is no resource.
};

// A PolicyRule.
struct Rule {
  std::vector<std::string> verbs;
  std::vector<std::string> groups;
  std::vector<std::string> resources;
  std::vector<std::string> names;  // Empty: all.
  std::vector<std::string> urls;
  auto operator<=>(const Rule&) const = default;
};

// Of a role's document. What is no list of texts counts as empty.
[[nodiscard]] std::vector<Rule> ParseRules(const api::Json& role);

[[nodiscard]] bool Allows(const Rule& rule, const Attributes& wanted);

// What `wanted` has that no rule of `held` covers, taken apart into single verbs, resources and
// names.
[[nodiscard]] std::vector<Rule> NotCovered(std::span<const Rule* const> held,
                                           std::span<const Rule> wanted);
// Those told in upstream's words, one a line: verbs of a resource together.
[[nodiscard]] std::string Describe(std::vector<Rule> rules);

}  // namespace berth::apiserver
