#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "api/defaults_kinds.h"
#include "api/defaults_pod.h"
#include "api/object.h"

namespace berth::api {
namespace {

std::string_view TextIn(const JsonObject& object, std::string_view key) {
  const Json* text = FindMember(object, key);
  return text != nullptr && text->is_string() ? std::string_view(text->get_string()) : "";
}

void DefaultRoleBinding(JsonObject& object) {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  JsonObject& role = MemberObject(object, "roleRef");
  if (TextIn(role, "apiGroup").empty()) role["apiGroup"] = kGroup;
  Json* subjects = object.if_contains("subjects");
  JsonArray* list = subjects == nullptr ? nullptr : subjects->if_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (!(*list)[i].is_object()) continue;
    JsonObject& subject = (*list)[i].get_object();
    const std::string_view kind = TextIn(subject, "kind");
    const bool of_group = kind == "User" || kind == "Group";
    if (of_group && TextIn(subject, "apiGroup").empty()) subject["apiGroup"] = kGroup;
  }
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
  Json* limits = spec.if_contains("limits");
  JsonArray* list = limits == nullptr ? nullptr : limits->if_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (!(*list)[i].is_object()) continue;
    JsonObject& item = (*list)[i].get_object();
    for (const std::string_view name : {"max", "min", "default", "defaultRequest"}) {
      Json* amounts = item.if_contains(name);
      if (amounts != nullptr && amounts->is_object()) RoundResources(amounts->get_object());
    }
    if (TextIn(item, "type") != "Container") continue;
    MemberObject(item, "default");
    MemberObject(item, "defaultRequest");
    Complete(item, "default", "max");
    Complete(item, "defaultRequest", "default");
    Complete(item, "defaultRequest", "min");
    for (const std::string_view name : {"default", "defaultRequest"}) {
      if (MemberObject(item, name).empty()) RemoveMember(item, name);
    }
  }
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
  Json* rules = webhook.if_contains("rules");
  JsonArray* list = rules == nullptr ? nullptr : rules->if_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if ((*list)[i].is_object()) SetDefault((*list)[i].get_object(), "scope", "*");
  }
}

void DefaultWebhooks(JsonObject& object, bool mutates) {
  Json* webhooks = object.if_contains("webhooks");
  JsonArray* list = webhooks == nullptr ? nullptr : webhooks->if_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if ((*list)[i].is_object()) DefaultWebhook((*list)[i].get_object(), mutates);
  }
}

void DefaultDefinition(JsonObject& object) {
  JsonObject& spec = MemberObject(object, "spec");
  JsonObject& names = MemberObject(spec, "names");
  std::string kind(TextIn(names, "kind"));
  if (!kind.empty() && TextIn(names, "listKind").empty()) names["listKind"] = kind + "List";
  std::ranges::transform(kind, kind.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (TextIn(names, "singular").empty()) names["singular"] = kind;
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
