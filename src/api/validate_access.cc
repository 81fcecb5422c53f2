#include "api/validate_access.h"

#include <array>
#include <string_view>

#include "api/object.h"

namespace berth::api::rules {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

void CheckRule(FieldErrors& errors, const Path& path, const Json& rule, bool namespaced) {
  if (ArrayAt(rule, "verbs").empty()) {
    AddRequired(errors, path.At("verbs"), "verbs must contain at least one value");
  }
  const JsonArray& urls = ArrayAt(rule, "nonResourceURLs");
  const JsonArray& groups = ArrayAt(rule, "apiGroups");
  const JsonArray& resources = ArrayAt(rule, "resources");
  if (!urls.empty()) {
    const Path at = path.At("nonResourceURLs");
    if (namespaced) {
      AddInvalid(errors, at, Json(urls), "namespaced rules cannot apply to non-resource URLs");
    }
    if (!groups.empty() || !resources.empty() || !ArrayAt(rule, "resourceNames").empty()) {
      AddInvalid(errors, at, Json(urls),
                 "rules cannot apply to both regular resources and non-resource URLs");
    }
    return;
  }
  if (groups.empty()) {
    AddRequired(errors, path.At("apiGroups"), "resource rules must supply at least one api group");
  }
  if (resources.empty()) {
    AddRequired(errors, path.At("resources"), "resource rules must supply at least one resource");
  }
}

void CheckRules(FieldErrors& errors, const Json& role, bool namespaced) {
  const JsonArray& rules = ArrayAt(role, "rules");
  const Path path("rules");
  for (size_t i = 0; i < rules.size(); ++i) {
    CheckRule(errors, path.Item(i), rules[i], namespaced);
  }
}

void CheckAggregation(FieldErrors& errors, const Json& role) {
  if (FindMember(role, "aggregationRule") == nullptr) return;
  const JsonArray& selectors = ArrayAt(role, "aggregationRule.clusterRoleSelectors");
  const Path rule("aggregationRule");
  if (selectors.empty()) {
    AddRequired(errors, rule.At("clusterRoleSelectors"),
                "at least one clusterRoleSelector required if aggregationRule is non-nil");
  }
  for (size_t i = 0; i < selectors.size(); ++i) {
    CheckLabelSelector(errors, rule.At("clusterRoleSelectors", i), selectors[i]);
  }
}

void CheckSubject(FieldErrors& errors, const Path& path, const Json& subject, bool namespaced) {
  const std::string_view kind = TextAt(subject, "kind");
  const std::string_view name = TextAt(subject, "name");
  const std::string_view group = TextAt(subject, "apiGroup");
  constexpr std::array<std::string_view, 1> kNone = {""};
  constexpr std::array<std::string_view, 1> kGroups = {kGroup};
  constexpr std::array<std::string_view, 3> kKinds = {"ServiceAccount", "User", "Group"};
  if (name.empty()) AddRequired(errors, path.At("name"));
  if (kind == "ServiceAccount") {
    if (!name.empty()) AddInvalid(errors, path.At("name"), name, CheckDns1123Subdomain(name));
    CheckEnum(errors, path.At("apiGroup"), group, kNone);
    if (!namespaced && TextAt(subject, "namespace").empty()) {
      AddRequired(errors, path.At("namespace"));
    }
  } else if (kind == "User" || kind == "Group") {
    CheckEnum(errors, path.At("apiGroup"), group, kGroups);
  } else {
    CheckEnum(errors, path.At("kind"), kind, kKinds);
  }
}

// As upstream's internal type is shown.
Json ShownReference(const Json& reference) {
  return JsonObject{{"APIGroup", TextAt(reference, "apiGroup")},
                    {"Kind", TextAt(reference, "kind")},
                    {"Name", TextAt(reference, "name")}};
}

void CheckBindingParts(FieldErrors& errors, const Json* old, const Json& binding, bool namespaced) {
  CheckMeta(errors, binding, namespaced, CheckPathSegment);
  const Json& reference = OrEmptyObject(FindMember(binding, "roleRef"));
  const Path path("roleRef");
  constexpr std::array<std::string_view, 1> kGroups = {kGroup};
  constexpr std::array<std::string_view, 2> kKinds = {"Role", "ClusterRole"};
  CheckEnum(errors, path.At("apiGroup"), TextAt(reference, "apiGroup"), kGroups);
  CheckEnum(errors, path.At("kind"), TextAt(reference, "kind"),
            std::span(kKinds).subspan(namespaced ? 0 : 1));
  const std::string_view name = TextAt(reference, "name");
  CheckRequired(errors, path.At("name"), name, CheckPathSegment(name));
  const JsonArray& subjects = ArrayAt(binding, "subjects");
  const Path list("subjects");
  for (size_t i = 0; i < subjects.size(); ++i) {
    CheckSubject(errors, list.Item(i), subjects[i], namespaced);
  }
  if (old == nullptr) return;
  CheckMetaUpdate(errors, *old, binding);
  if (SameJson(OrEmptyObject(FindMember(*old, "roleRef")), reference)) return;
  AddInvalid(errors, path, ShownReference(reference), "cannot change roleRef");
}

}  // namespace

void CheckRole(FieldErrors& errors, const Json* old, const Json& object) {
  CheckMeta(errors, object, true, CheckPathSegment);
  CheckRules(errors, object, true);
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
}

void CheckClusterRole(FieldErrors& errors, const Json* old, const Json& object) {
  CheckMeta(errors, object, false, CheckPathSegment);
  CheckRules(errors, object, false);
  CheckAggregation(errors, object);
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
}

void CheckRoleBinding(FieldErrors& errors, const Json* old, const Json& object) {
  CheckBindingParts(errors, old, object, true);
}

void CheckClusterRoleBinding(FieldErrors& errors, const Json* old, const Json& object) {
  CheckBindingParts(errors, old, object, false);
}

}  // namespace berth::api::rules
