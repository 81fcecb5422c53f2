#include <string>
#include <string_view>
#include <utility>

#include "api/defaults_kinds.h"
#include "api/defaults_pod.h"
#include "api/object.h"
#include "api/text.h"

namespace berth::api {
namespace {

void DefaultRoleBinding(JsonObject& object) {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  SetText(MemberObject(object, "roleRef"), "apiGroup", kGroup);
  ForEachIn(object, "subjects", [&](JsonObject& subject) {
    const std::string_view kind = TextIn(subject, "kind");
    if (kind == "User" || kind == "Group") SetText(subject, "apiGroup", kGroup);
  });
}

// Copies the members of one map that another lacks.
void Complete(JsonObject& item, std::string_view to, std::string_view from) {
  const Json* source = FindMember(std::as_const(item), from);
  if (source == nullptr || !source->is_object()) return;
  // A copy: adding a member moves the others.
  const JsonObject amounts = source->get_object();
  JsonObject& target = MemberObject(item, to);
  for (const auto& [name, amount] : amounts) SetDefault(target, name, amount);
}

// The limit of a container is what it may have at most, its request what it is limited to.
void DefaultLimitRange(JsonObject& spec) {
  ForEachIn(spec, "limits", [](JsonObject& item) {
    for (const std::string_view name : {"max", "min", "default", "defaultRequest"}) {
      Json* amounts = item.if_contains(name);
      if (amounts != nullptr && amounts->is_object()) RoundResources(amounts->get_object());
    }
    if (TextIn(item, "type") != "Container") return;
    MemberObject(item, "default");
    MemberObject(item, "defaultRequest");
    Complete(item, "default", "max");
    Complete(item, "defaultRequest", "default");
    Complete(item, "defaultRequest", "min");
    for (const std::string_view name : {"default", "defaultRequest"}) {
      if (MemberObject(item, name).empty()) RemoveMember(item, name);
    }
  });
}

void DefaultServiceReference(JsonObject& config) {
  Json* service = config.if_contains("service");
  if (service != nullptr && service->is_object()) {
    SetDefault(service->get_object(), "port", 443);
  }
}

void DefaultWebhook(JsonObject& webhook, bool mutates) {
  SetDefault(webhook, "failurePolicy", "Fail");
  SetDefault(webhook, "matchPolicy", "Equivalent");
  MemberObject(webhook, "namespaceSelector");
  MemberObject(webhook, "objectSelector");
  SetDefault(webhook, "timeoutSeconds", 10);
  if (mutates) SetDefault(webhook, "reinvocationPolicy", "Never");
  DefaultServiceReference(MemberObject(webhook, "clientConfig"));
  ForEachIn(webhook, "rules", [](JsonObject& rule) { SetDefault(rule, "scope", "*"); });
}

void DefaultWebhooks(JsonObject& object, bool mutates) {
  ForEachIn(object, "webhooks", [&](JsonObject& webhook) { DefaultWebhook(webhook, mutates); });
}

void DefaultDefinition(JsonObject& object) {
  JsonObject& spec = MemberObject(object, "spec");
  JsonObject& names = MemberObject(spec, "names");
  const std::string kind(TextIn(names, "kind"));
  if (!kind.empty()) SetText(names, "listKind", kind + "List");
  SetText(names, "singular", Lower(kind));
  JsonObject& conversion = MemberObject(spec, "conversion");
  if (conversion.empty()) conversion["strategy"] = "None";
  if (Json* webhook = conversion.if_contains("webhook"); webhook != nullptr) {
    if (webhook->is_object()) {
      DefaultServiceReference(MemberObject(webhook->get_object(), "clientConfig"));
    }
  }
  JsonObject& status = MemberObject(object, "status");
  const Json* stored = FindMember(std::as_const(status), "storedVersions");
  if (stored != nullptr && stored->is_array() && !stored->get_array().empty()) return;
  Json* versions = spec.if_contains("versions");
  const JsonArray* list = versions == nullptr ? nullptr : versions->if_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (!FlagAt((*list)[i], "storage")) continue;
    status["storedVersions"] = JsonArray({Json(TextAt((*list)[i], "name"))});
    return;
  }
}

}  // namespace

void DefaultPolicy(KindId kind, JsonObject& object) {
  switch (kind) {
    case KindId::kRoleBinding:
    case KindId::kClusterRoleBinding:
      DefaultRoleBinding(object);
      return;
    case KindId::kLimitRange:
      DefaultLimitRange(MemberObject(object, "spec"));
      return;
    case KindId::kValidatingWebhookConfiguration:
      DefaultWebhooks(object, false);
      return;
    case KindId::kMutatingWebhookConfiguration:
      DefaultWebhooks(object, true);
      return;
    case KindId::kCustomResourceDefinition:
      DefaultDefinition(object);
      return;
    default:
      return;
  }
}

}  // namespace berth::api
