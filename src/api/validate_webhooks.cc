#include "api/validate_webhooks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/object.h"
#include "api/url.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 2> kFailurePolicies = {"Fail", "Ignore"};
constexpr std::array<std::string_view, 2> kMatchPolicies = {"Equivalent", "Exact"};
constexpr std::array<std::string_view, 2> kReinvocations = {"IfNeeded", "Never"};
constexpr std::array<std::string_view, 3> kScopes = {"*", "Cluster", "Namespaced"};
constexpr std::array<std::string_view, 5> kOperations = {"*", "CONNECT", "CREATE", "DELETE",
                                                         "UPDATE"};
// Those of the first two do nothing beside the answer.
constexpr std::array<std::string_view, 4> kSideEffects = {"None", "NoneOnDryRun", "Some",
                                                          "Unknown"};
constexpr std::span kNoSideEffects = std::span(kSideEffects).first<2>();
constexpr std::array<std::string_view, 2> kReviewVersions = {"v1", "v1beta1"};

// What of a new configuration isn't held against a change, because the old one has it already.
struct Leave {
  bool side_effects = false;
  bool versions = false;
  bool names = false;
  bool selectors = false;
};

bool HasKnownVersion(const Json& webhook) {
  const std::vector<std::string> versions = TextsAt(webhook, "admissionReviewVersions");
  return versions.empty() || std::ranges::any_of(versions, [](const std::string& version) {
           return std::ranges::find(kReviewVersions, version) != kReviewVersions.end();
         });
}

bool HasBadSelector(const Json& webhook) {
  FieldErrors errors;
  for (const std::string_view member : {"namespaceSelector", "objectSelector"}) {
    const Json* selector = FindMember(webhook, member);
    if (selector != nullptr) CheckLabelSelector(errors, Path(member), *selector);
  }
  return !errors.empty();
}

Leave LeaveOf(const Json* old) {
  Leave leave;
  if (old == nullptr) return leave;
  std::set<std::string_view> names;
  for (const Json& webhook : ArrayAt(*old, "webhooks")) {
    const std::string_view effects = TextAt(webhook, "sideEffects");
    leave.side_effects |= std::ranges::find(kNoSideEffects, effects) == kNoSideEffects.end();
    leave.versions |= !HasKnownVersion(webhook);
    leave.selectors |= HasBadSelector(webhook);
    leave.names |= !names.insert(TextAt(webhook, "name")).second;
  }
  return leave;
}

void Refuse(FieldErrors& errors, const Path& path, std::string_view value, std::string why) {
  AddInvalid(errors, path, value, Messages{std::move(why)});
}

void CheckName(FieldErrors& errors, const Path& path, std::string_view name) {
  if (name.empty()) return AddRequired(errors, path);
  if (const Messages why = CheckDns1123Subdomain(name); !why.empty())
    return Refuse(errors, path, name, fmt::format("{}", fmt::join(why, ",")));
  if (std::ranges::count(name, '.') < 2) {
    Refuse(errors, path, name, "should be a domain with at least three segments separated by dots");
  }
}

// ---- Rules -------------------------------------------------------------------------------------

bool HasWildcard(const std::vector<std::string>& texts) {
  return std::ranges::find(texts, "*") != texts.end();
}

void CheckList(FieldErrors& errors, const Path& path, const Json& rule, std::string_view member,
               std::string_view called) {
  const std::vector<std::string> texts = TextsAt(rule, member);
  if (texts.empty()) AddRequired(errors, path);
  if (texts.size() > 1 && HasWildcard(texts)) {
    AddInvalid(errors, path, *FindMember(rule, member),
               fmt::format("if '*' is present, must not specify other {}", called));
  }
}

void CheckResources(FieldErrors& errors, const Path& path, const Json& rule) {
  const std::vector<std::string> resources = TextsAt(rule, "resources");
  if (resources.empty()) AddRequired(errors, path);
  std::set<std::string_view> all_parts_of;  // x/*
  std::set<std::string_view> part_of_all;   // */x
  bool whole = false;
  for (size_t i = 0; i < resources.size(); ++i) {
    const std::string_view text = resources[i];
    if (text.empty()) {
      AddRequired(errors, path.Item(i));
      continue;
    }
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      whole = text != "*";
      continue;
    }
    const std::string_view resource = text.substr(0, slash);
    const std::string_view part = text.substr(slash + 1);
    if (all_parts_of.contains(resource)) {
      Refuse(errors, path.Item(i), text,
             fmt::format("if '{}/*' is present, must not specify {}", resource, text));
    }
    if (part_of_all.contains(part)) {
      Refuse(errors, path.Item(i), text,
             fmt::format("if '*/{}' is present, must not specify {}", part, text));
    }
    if (part == "*") all_parts_of.insert(resource);
    if (resource == "*") part_of_all.insert(part);
  }
  if (resources.size() > 1 && std::ranges::find(resources, "*/*") != resources.end()) {
    AddInvalid(errors, path, *FindMember(rule, "resources"),
               "if '*/*' is present, must not specify other resources");
  }
  if (HasWildcard(resources) && whole) {
    AddInvalid(errors, path, *FindMember(rule, "resources"),
               "if '*' is present, must not specify other resources without subresources");
  }
}

void CheckRule(FieldErrors& errors, const Path& path, const Json& rule) {
  const Path operations = path.At("operations");
  CheckList(errors, operations, rule, "operations", "operations");
  const std::vector<std::string> named = TextsAt(rule, "operations");
  for (size_t i = 0; i < named.size(); ++i) {
    CheckEnum(errors, operations.Item(i), named[i], kOperations);
  }
  CheckList(errors, path.At("apiGroups"), rule, "apiGroups", "API groups");
  const Path versions = path.At("apiVersions");
  CheckList(errors, versions, rule, "apiVersions", "API versions");
  const std::vector<std::string> texts = TextsAt(rule, "apiVersions");
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) AddRequired(errors, versions.Item(i));
  }
  CheckResources(errors, path.At("resources"), rule);
  if (FindMember(rule, "scope") != nullptr)
    CheckEnum(errors, path.At("scope"), TextAt(rule, "scope"), kScopes);
}

// ---- Where to ----------------------------------------------------------------------------------

void CheckUrl(FieldErrors& errors, const Path& path, std::string_view text) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  if (const auto problem = UrlProblem(text)) {
    return AddRequired(
        errors, path,
        fmt::format("url must be a valid URL: parse {}: {}{}", QuoteGo(text), *problem, kForm));
  }
  const Url url = ParseUrl(text);
  if (url.scheme != "https") {
    Refuse(errors, path, url.scheme,
           fmt::format("'https' is the only allowed URL scheme{}", kForm));
  }
  if (url.host.empty()) {
    Refuse(errors, path, url.host, fmt::format("host must be provided{}", kForm));
  }
  if (url.has_user) Refuse(errors, path, url.user, "user information is not permitted in the URL");
  if (!url.fragment.empty())
    Refuse(errors, path, url.fragment, "fragments are not permitted in the URL");
  if (!url.query.empty())
    Refuse(errors, path, url.query, "query parameters are not permitted in the URL");
}

void CheckServicePath(FieldErrors& errors, const Path& path, std::string_view text) {
  if (text.empty() || text == "/") return;
  if (text == "//") return Refuse(errors, path, text, "segment[0] may not be empty");
  if (!text.starts_with('/')) Refuse(errors, path, text, "must start with a '/'");
  std::string_view rest = text.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  for (int i = 0;; ++i) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view segment = rest.substr(0, slash);
    if (segment.empty()) {
      Refuse(errors, path, text, fmt::format("segment[{}] may not be empty", i));
    } else {
      for (const std::string& why : CheckDns1123Subdomain(segment))
        Refuse(errors, path, text, fmt::format("segment[{}]: {}", i, why));
    }
    if (slash == rest.size()) return;
    rest = rest.substr(slash + 1);
  }
}

}  // namespace

void CheckWebhookClient(FieldErrors& errors, const Path& path, const Json& client) {
  const Json* url = FindMember(client, "url");
  const Json* service = FindMember(client, "service");
  if ((url == nullptr) == (service == nullptr))
    return AddRequired(errors, path, "exactly one of url or service is required");
  if (url != nullptr) return CheckUrl(errors, path.At("url"), TextOf(*url));
  const Path at = path.At("service");
  if (TextAt(*service, "name").empty())
    AddRequired(errors, at.At("name"), "service name is required");
  if (TextAt(*service, "namespace").empty())
    AddRequired(errors, at.At("namespace"), "service namespace is required");
  const int64_t port = IntegerAt(*service, "port");
  const bool given = FindMember(*service, "port") != nullptr;
  if (given && (port < 1 || port > 65'535)) {
    errors.push_back(
        InvalidField(at.At("port").text(), port, "port is not valid: " + RangeMessage(1, 65'535)));
  }
  CheckServicePath(errors, at.At("path"), TextAt(*service, "path"));
}

namespace {

// ---- A webhook ---------------------------------------------------------------------------------

void CheckReviewVersions(FieldErrors& errors, const Path& path, const Json& webhook,
                         const Leave& leave) {
  const std::vector<std::string> versions = TextsAt(webhook, "admissionReviewVersions");
  if (versions.empty())
    return AddRequired(errors, path,
                       fmt::format("must specify one of {}", fmt::join(kReviewVersions, ", ")));
  std::set<std::string_view> seen;
  for (size_t i = 0; i < versions.size(); ++i) {
    const Path item = path.Item(i);
    if (!seen.insert(versions[i]).second) {
      Refuse(errors, item, versions[i], "duplicate version");
      continue;
    }
    AddInvalid(errors, item, versions[i], CheckDns1035Label(versions[i]));
  }
  if (leave.versions || HasKnownVersion(webhook)) return;
  AddInvalid(errors, path, *FindMember(webhook, "admissionReviewVersions"),
             fmt::format("must include at least one of {}", fmt::join(kReviewVersions, ", ")));
}

void CheckSideEffects(FieldErrors& errors, const Path& path, const Json& webhook, bool any) {
  const std::span<const std::string_view> allowed =
      any ? std::span<const std::string_view>(kSideEffects) : kNoSideEffects;
  if (FindMember(webhook, "sideEffects") == nullptr) {
    return AddRequired(errors, path,
                       fmt::format("must specify one of {}", fmt::join(allowed, ", ")));
  }
  CheckEnum(errors, path, TextAt(webhook, "sideEffects"), allowed);
}

// Expressions that nobody here evaluates. What an older version stored stays as it is.
void CheckConditions(FieldErrors& errors, const Path& path, const Json* old, const Json& webhook) {
  const JsonArray& conditions = ArrayAt(webhook, "matchConditions");
  if (conditions.empty()) return;
  if (old != nullptr && SameJson(Json(ArrayAt(*old, "matchConditions")), Json(conditions))) return;
  AddForbidden(errors, path,
               "expressions (CEL) are not evaluated here: use rules and selectors instead");
}

void CheckPolicies(FieldErrors& errors, const Path& path, const Json& webhook, bool mutates) {
  const auto check = [&](std::string_view member, std::span<const std::string_view> allowed) {
    if (FindMember(webhook, member) != nullptr)
      CheckEnum(errors, path.At(member), TextOf(*FindMember(webhook, member)), allowed);
  };
  check("failurePolicy", kFailurePolicies);
  check("matchPolicy", kMatchPolicies);
  if (mutates) check("reinvocationPolicy", kReinvocations);
}

void CheckWebhook(FieldErrors& errors, const Path& path, const Json& webhook, const Leave& leave,
                  bool mutates) {
  CheckName(errors, path.At("name"), TextAt(webhook, "name"));
  const JsonArray& rules = ArrayAt(webhook, "rules");
  for (size_t i = 0; i < rules.size(); ++i) CheckRule(errors, path.At("rules", i), rules[i]);
  CheckPolicies(errors, path, webhook, mutates);
  CheckSideEffects(errors, path.At("sideEffects"), webhook, leave.side_effects);
  const Json* timeout = FindMember(webhook, "timeoutSeconds");
  const int64_t seconds = IntegerAt(webhook, "timeoutSeconds");
  if (timeout != nullptr && (seconds < 1 || seconds > 30)) {
    errors.push_back(InvalidField(path.At("timeoutSeconds").text(), seconds,
                                  "the timeout value must be between 1 and 30 seconds"));
  }
  for (const std::string_view member : {"namespaceSelector", "objectSelector"}) {
    const Json* selector = FindMember(webhook, member);
    if (selector != nullptr && !leave.selectors)
      CheckLabelSelector(errors, path.At(member), *selector);
  }
  CheckWebhookClient(errors, path.At("clientConfig"),
                     OrEmptyObject(FindMember(webhook, "clientConfig")));
}

void CheckWebhooks(FieldErrors& errors, const Json* old, const Json& object, bool mutates) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, false, CheckDns1123Subdomain);
  const Leave leave = LeaveOf(old);
  static const JsonArray kNone;
  const JsonArray& before = old == nullptr ? kNone : ArrayAt(*old, "webhooks");
  const JsonArray& webhooks = ArrayAt(object, "webhooks");
  std::set<std::string_view> names;
  const Path list("webhooks");
  for (size_t i = 0; i < webhooks.size(); ++i) {
    const Path path = list.Item(i);
    CheckWebhook(errors, path, webhooks[i], leave, mutates);
    const bool same_place = before.size() == webhooks.size();
    CheckConditions(errors, path.At("matchConditions"), same_place ? &before[i] : nullptr,
                    webhooks[i]);
    CheckReviewVersions(errors, path.At("admissionReviewVersions"), webhooks[i], leave);
    const std::string_view name = TextAt(webhooks[i], "name");
    if (!leave.names && !name.empty() && !names.insert(name).second)
      errors.push_back(DuplicateField(path.At("name").text(), name));
  }
}

}  // namespace

void CheckValidatingWebhooks(FieldErrors& errors, const Json* old, const Json& object) {
  CheckWebhooks(errors, old, object, false);
}

void CheckMutatingWebhooks(FieldErrors& errors, const Json* old, const Json& object) {
  CheckWebhooks(errors, old, object, true);
}

}  // namespace berth::api::rules
