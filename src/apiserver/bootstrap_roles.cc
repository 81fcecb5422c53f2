#include "apiserver/bootstrap_roles.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "api/object.h"
#include "base/check.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr std::string_view kTable =
#include "apiserver/bootstrap_roles.inc"
    ;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

// What is before the separator; the rest stays.
std::string_view Take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view first = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return first;
}

JsonArray Listed(std::string_view texts) {
  JsonArray list;
  while (!texts.empty()) {
    const std::string_view text = Take(texts, ',');
    list.push_back(Json(text == "-" ? "" : text));
  }
  return list;
}

JsonObject Metadata(std::string_view namespace_name, std::string_view name) {
  JsonObject metadata = {
      {"name", name},
      {"labels", JsonObject{{"kubernetes.io/bootstrapping", "rbac-defaults"}}},
      {"annotations", JsonObject{{"rbac.authorization.kubernetes.io/autoupdate", "true"}}}};
  if (namespace_name != "-") metadata["namespace"] = namespace_name;
  return metadata;
}

// The label by which a role becomes part of another.
std::string PartOf(std::string_view role) {
  return fmt::format("{}/aggregate-to-{}", kGroup, role);
}

BootstrapObject Role(std::string_view line) {
  const std::string_view space = Take(line, ' ');
  Json role = JsonObject{{"metadata", Metadata(space, Take(line, ' '))}};
  while (!line.empty()) {
    std::string_view word = Take(line, ' ');
    const std::string_view key = Take(word, '=');
    if (key == "to") {
      api::MemberObject(role.get_object()["metadata"].get_object(), "labels")[PartOf(word)] =
          "true";
    } else {
      const JsonObject selector = {{"matchLabels", JsonObject{{PartOf(word), "true"}}}};
      role.get_object()["aggregationRule"] =
          JsonObject{{"clusterRoleSelectors", JsonArray({selector})}};
    }
  }
  return {.kind = space == "-" ? KindId::kClusterRole : KindId::kRole, .object = std::move(role)};
}

BootstrapObject Binding(std::string_view line) {
  const std::string_view space = Take(line, ' ');
  JsonObject binding = {{"metadata", Metadata(space, Take(line, ' '))}};
  const std::string_view role_kind = Take(line, '/');
  binding["roleRef"] = JsonObject{{"apiGroup", kGroup}, {"kind", role_kind}, {"name", line}};
  return {.kind = space == "-" ? KindId::kClusterRoleBinding : KindId::kRoleBinding,
          .object = Json(std::move(binding))};
}

JsonObject Rule(std::string_view line) {
  JsonObject rule = {{"verbs", Listed(Take(line, ' '))}};
  const JsonArray second = Listed(Take(line, ' '));
  if (line.empty()) {
    rule["nonResourceURLs"] = second;
    return rule;
  }
  rule["apiGroups"] = second;
  rule["resources"] = Listed(Take(line, ' '));
  if (!line.empty()) rule["resourceNames"] = Listed(line);
  return rule;
}

JsonObject SubjectOf(std::string_view line) {
  const std::string_view kind = Take(line, '/');
  if (kind != "ServiceAccount") return {{"kind", kind}, {"apiGroup", kGroup}, {"name", line}};
  const std::string_view space = Take(line, '/');
  return {{"kind", kind}, {"name", line}, {"namespace", space}};
}

}  // namespace

std::vector<BootstrapObject> BootstrapRoles() {
  std::vector<BootstrapObject> objects;
  std::string_view table = kTable;
  while (!table.empty()) {
    std::string_view line = Take(table, '\n');
    if (line.empty()) continue;
    if (!line.starts_with("  ")) {
      const std::string_view what = Take(line, ' ');
      CHECK(what == "role" || what == "binding");
      objects.push_back(what == "role" ? Role(line) : Binding(line));
      continue;
    }
    CHECK(!objects.empty());
    line.remove_prefix(2);
    const KindId kind = objects.back().kind;
    const bool role = kind == KindId::kRole || kind == KindId::kClusterRole;
    Json& list = objects.back().object.get_object()[role ? "rules" : "subjects"];
    if (!list.is_array()) list = JsonArray();
    list.get_array().push_back(Json(role ? Rule(line) : SubjectOf(line)));
  }
  return objects;
}

}  // namespace berth::apiserver
