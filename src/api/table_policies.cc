#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "api/object.h"
#include "api/table_forms.h"

// The tables of quotas, roles and what extends the server.
namespace berth::api {
namespace {

constexpr std::array kResourceQuotaColumns = {kName, TextColumn("Request"), TextColumn("Limit"),
                                              kAge};
constexpr std::array kBindingColumns = {kName,
                                        TextColumn("Role"),
                                        kAge,
                                        TextColumn("Users", 1),
                                        TextColumn("Groups", 1),
                                        TextColumn("ServiceAccounts", 1)};
constexpr std::array kRuntimeClassColumns = {kName, TextColumn("Handler"), kAge};
constexpr std::array kWebhookColumns = {kName, NumberColumn("Webhooks"), kAge};

JsonArray ResourceQuotaCells(const Json& object, Instant now) {
  StringMap hard = StringMapAt(object, "status.hard");
  std::ranges::sort(hard);
  const JsonObject& used = ObjectAt(object, "status.used");
  std::string requests;
  std::string limits;
  for (const auto& [resource, amount] : hard) {
    std::string& text = resource.starts_with("limits.") ? limits : requests;
    const Json* spent = FindMember(used, resource);
    const bool known = spent != nullptr && spent->is_string();
    text += fmt::format("{}{}: {}/{}", text.empty() ? "" : ", ", resource,
                        known ? std::string_view(spent->get_string()) : "0", amount);
  }
  return {NameCell(object), Json(requests), Json(limits), Json(AgeOf(object, now))};
}

JsonArray RoleBindingCells(const Json& object, Instant now) {
  std::array<std::string, 3> subjects;
  const auto add = [](std::string& text, std::string_view name) {
    if (!text.empty()) text += ", ";
    text += name;
  };
  for (const Json& subject : ArrayAt(object, "subjects")) {
    const std::string_view kind = TextAt(subject, "kind");
    const std::string_view name = TextAt(subject, "name");
    if (kind == "User") add(subjects[0], name);
    if (kind == "Group") add(subjects[1], name);
    if (kind == "ServiceAccount") {
      add(subjects[2], fmt::format("{}/{}", TextAt(subject, "namespace"), name));
    }
  }
  return {
      NameCell(object),
      Json(fmt::format("{}/{}", TextAt(object, "roleRef.kind"), TextAt(object, "roleRef.name"))),
      Json(AgeOf(object, now)),
      Json(subjects[0]),
      Json(subjects[1]),
      Json(subjects[2])};
}

JsonArray RuntimeClassCells(const Json& object, Instant now) {
  return {NameCell(object), Json(TextAt(object, "handler")), Json(AgeOf(object, now))};
}

JsonArray WebhookCells(const Json& object, Instant now) {
  return {NameCell(object), Json(static_cast<int64_t>(ArrayAt(object, "webhooks").size())),
          Json(AgeOf(object, now))};
}

constexpr std::array<TableForm, 6> kForms = {{
    {KindId::kResourceQuota, kResourceQuotaColumns, &ResourceQuotaCells},
    {KindId::kRoleBinding, kBindingColumns, &RoleBindingCells},
    {KindId::kClusterRoleBinding, kBindingColumns, &RoleBindingCells},
    {KindId::kRuntimeClass, kRuntimeClassColumns, &RuntimeClassCells},
    {KindId::kValidatingWebhookConfiguration, kWebhookColumns, &WebhookCells},
    {KindId::kMutatingWebhookConfiguration, kWebhookColumns, &WebhookCells},
}};

}  // namespace

std::span<const TableForm> PolicyForms() { return kForms; }

}  // namespace berth::api
