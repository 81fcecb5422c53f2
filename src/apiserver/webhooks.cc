#include "apiserver/webhooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "api/base64.h"
#include "api/custom_definition.h"
#include "api/object.h"
#include "api/url.h"
#include "apiserver/objects.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::KindId;

constexpr auto kMutating = static_cast<store::Table>(KindId::kMutatingWebhookConfiguration);
constexpr auto kValidating = static_cast<store::Table>(KindId::kValidatingWebhookConfiguration);

constexpr int64_t kHttpsPort = 443;
constexpr int64_t kTimeoutSeconds = 10;  // Upstream's default.

Webhook::Rule RuleOf(const Json& rule) {
  Webhook::Rule result{.groups = api::TextsAt(rule, "apiGroups"),
                       .versions = api::TextsAt(rule, "apiVersions"),
                       .operations = api::TextsAt(rule, "operations"),
                       .resources = {},
                       .scope = std::string(api::TextAt(rule, "scope"))};
  for (const std::string& text : api::TextsAt(rule, "resources")) {
    const size_t slash = std::min(text.find('/'), text.size());
    const std::string part = slash == text.size() ? "" : text.substr(slash + 1);
    result.resources.emplace_back(text.substr(0, slash), part);
  }
  return result;
}

// A path as a client of upstream's sends it: of characters that a request's line may have.
std::string CleanPath(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  std::string clean = path.starts_with('/') ? "" : "/";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f) {
      clean += c;
    } else {
      clean += fmt::format("%{:02X}", byte);
    }
  }
  return clean;
}

void SettleTarget(const Json& config, Webhook& webhook) {
  if (const std::optional<std::string> pem = api::DecodeBase64(api::TextAt(config, "caBundle")))
    webhook.authority_pem = *pem;
  if (const Json* service = api::FindMember(config, "service")) {
    webhook.service_namespace = api::TextAt(*service, "namespace");
    webhook.service_name = api::TextAt(*service, "name");
    webhook.port = static_cast<uint16_t>(api::IntegerAt(*service, "port", kHttpsPort));
    webhook.host = fmt::format("{}.{}.svc", webhook.service_name, webhook.service_namespace);
    webhook.authority = fmt::format("{}:{}", webhook.host, webhook.port);
    webhook.path = CleanPath(api::TextAt(*service, "path"));
    return;
  }
  const api::Url url = api::ParseUrl(api::TextAt(config, "url"));
  const api::HostPort host = api::SplitHost(url.host);
  webhook.host = host.host;
  webhook.port = static_cast<uint16_t>(host.port == 0 ? kHttpsPort : host.port);
  webhook.authority = url.host;
  webhook.path = CleanPath(url.path);
}

// The newest of the versions that it takes first.
std::string ReviewVersionOf(const Json& webhook) {
  for (const std::string& version : api::TextsAt(webhook, "admissionReviewVersions")) {
    if (version == "v1" || version == "v1beta1") return version;
  }
  return "v1";
}

void SettleSelector(const Json& webhook, std::string_view member, api::LabelQuery& query,
                    bool& readable) {
  const Json* selector = api::FindMember(webhook, member);
  if (selector == nullptr) return;
  Result<api::LabelQuery> read = api::QueryOf(api::LabelSelectorOf(*selector));
  readable &= read.has_value();
  if (read) query = std::move(*read);
}

Webhook WebhookOf(const Json& document, bool mutates) {
  Webhook webhook;
  webhook.name = api::TextAt(document, "name");
  webhook.mutates = mutates;
  for (const Json& rule : api::ArrayAt(document, "rules")) webhook.rules.push_back(RuleOf(rule));
  webhook.equivalent = api::TextAt(document, "matchPolicy") != "Exact";
  webhook.ignores_failures = api::TextAt(document, "failurePolicy") == "Ignore";
  webhook.reinvoked = mutates && api::TextAt(document, "reinvocationPolicy") == "IfNeeded";
  webhook.has_conditions = !api::ArrayAt(document, "matchConditions").empty();
  const std::string_view effects = api::TextAt(document, "sideEffects");
  webhook.fit_for_dry_run = effects == "None" || effects == "NoneOnDryRun";
  SettleSelector(document, "namespaceSelector", webhook.namespaces, webhook.selects);
  SettleSelector(document, "objectSelector", webhook.objects, webhook.selects);
  webhook.timeout = Duration::Seconds(
      std::clamp<int64_t>(api::IntegerAt(document, "timeoutSeconds", kTimeoutSeconds), 1, 30));
  webhook.review_version = ReviewVersionOf(document);
  if (const Json* config = api::FindMember(document, "clientConfig"))
    SettleTarget(*config, webhook);
  return webhook;
}

std::vector<WebhookRef> WebhooksOf(const store::Store& store, store::Table table) {
  std::vector<WebhookRef> webhooks;
  store.Walk({.table = table}, [&](const store::ObjectRef& object) {
    const Json document = Load(*object);
    int index = 0;
    for (const Json& item : api::ArrayAt(document, "webhooks")) {
      Webhook webhook = WebhookOf(item, table == kMutating);
      webhook.key = fmt::format("{}/{}/{}", object->name, index++, object->revision);
      webhooks.push_back(std::make_shared<const Webhook>(std::move(webhook)));
    }
    return true;
  });
  return webhooks;
}

bool Contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::ranges::any_of(texts,
                             [&](const std::string& each) { return each == "*" || each == text; });
}

bool MatchesRule(const Webhook::Rule& rule, const api::Kind& kind, const Hooked& hooked) {
  const bool of_namespace = kind.id == KindId::kNamespace;
  const bool namespaced = !of_namespace && !hooked.namespace_name.empty();
  if (rule.scope == "Namespaced" && !namespaced) return false;
  if (rule.scope == "Cluster" && namespaced) return false;
  if (!Contains(rule.operations, ToString(hooked.operation)) || !Contains(rule.groups, kind.group))
    return false;
  if (!Contains(rule.versions, kind.version)) return false;
  return std::ranges::any_of(rule.resources, [&](const auto& resource) {
    return (resource.first == "*" || resource.first == kind.plural) &&
           (resource.second == "*" || resource.second == hooked.subresource);
  });
}

const api::Kind* MatchEquivalent(const Webhook::Rule& rule, const Hooked& hooked) {
  const api::Kind& kind = hooked.kind;
  if (kind.defined != nullptr) {
    for (const api::CustomVersion& version : kind.defined->definition->versions()) {
      if (&version.kind != &kind && version.served && MatchesRule(rule, version.kind, hooked))
        return &version.kind;
    }
    return nullptr;
  }
  for (const api::Kind& other : api::Kinds()) {
    if (!other.stored || other.storage != kind.storage || other.id == kind.id) continue;
    if (MatchesRule(rule, other, hooked)) return &other;
  }
  return nullptr;
}

}  // namespace

std::string_view ToString(Operation operation) {
  switch (operation) {
    case Operation::kCreate:
      return "CREATE";
    case Operation::kUpdate:
      return "UPDATE";
    case Operation::kDelete:
      return "DELETE";
  }
  return "";
}

std::string_view SubresourceName(Subpart subpart) {
  switch (subpart) {
    case Subpart::kStatus:
      return "status";
    case Subpart::kScale:
      return "scale";
    case Subpart::kBinding:
      return "binding";
    case Subpart::kEviction:
      return "eviction";
    case Subpart::kFinalize:
      return "finalize";
    case Subpart::kEphemeralContainers:
      return "ephemeralcontainers";
    case Subpart::kResize:
      return "resize";
    case Subpart::kToken:
      return "token";
    default:
      return "";
  }
}

bool IsExempt(const api::Kind& kind) {
  return kind.id == KindId::kValidatingWebhookConfiguration ||
         kind.id == KindId::kMutatingWebhookConfiguration;
}

const api::Kind* MatchRules(const Webhook& webhook, const Hooked& hooked) {
  for (const Webhook::Rule& rule : webhook.rules) {
    if (MatchesRule(rule, hooked.kind, hooked)) return &hooked.kind;
  }
  if (!webhook.equivalent) return nullptr;
  // Earlier rules count first.
  for (const Webhook::Rule& rule : webhook.rules) {
    if (const api::Kind* kind = MatchEquivalent(rule, hooked)) return kind;
  }
  return nullptr;
}

void Webhooks::Recover(const store::Store& store) {
  mutating_ = WebhooksOf(store, kMutating);
  validating_ = WebhooksOf(store, kValidating);
}

void Webhooks::Observe(store::RevisionRange visible, const store::Store& store) {
  // More at once than the log holds.
  bool concerns = visible.first <= store.compacted_revision();
  for (uint64_t revision = visible.first; revision <= visible.last && !concerns; ++revision) {
    const store::Table table = store.EventAt(revision).object->table;
    concerns = table == kMutating || table == kValidating;
  }
  if (concerns) Recover(store);
}

bool Webhooks::Concern(const ResourceRequest& request) const {
  if (mutating_.empty() && validating_.empty()) return false;
  if (IsExempt(*request.kind)) return false;
  Hooked hooked{.kind = *request.kind,
                .subresource = SubresourceName(request.subpart),
                .namespace_name = request.kind->id == KindId::kNamespace
                                      ? std::string_view(request.name)
                                      : std::string_view(request.namespace_name)};
  const auto any = [&](Operation operation) {
    hooked.operation = operation;
    const auto matches = [&](const WebhookRef& webhook) {
      return MatchRules(*webhook, hooked) != nullptr;
    };
    return std::ranges::any_of(mutating_, matches) || std::ranges::any_of(validating_, matches);
  };
  switch (request.verb) {
    case Verb::kCreate:
      return any(Operation::kCreate);
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      return any(Operation::kDelete);
    case Verb::kUpdate:
    case Verb::kPatch:
      // What isn't there may be made.
      return any(Operation::kUpdate) || any(Operation::kCreate);
    default:
      return false;
  }
}

}  // namespace berth::apiserver
