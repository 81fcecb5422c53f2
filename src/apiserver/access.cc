#include "apiserver/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/field_error.h"
#include "api/names.h"
#include "api/object.h"
#include "api/selector.h"
#include "api/timestamp.h"
#include "apiserver/objects.h"
#include "apiserver/render.h"
#include "apiserver/webhook_calls.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

using api::FieldErrors;
using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr std::string_view kResource = "spec.resourceAttributes";
constexpr std::string_view kPath = "spec.nonResourceAttributes";

void RefuseAll(FieldErrors& errors, const std::string& path, std::string_view value,
               const api::Messages& why) {
  for (const std::string& message : why) {
    errors.push_back(api::InvalidField(path, value, message));
  }
}

// One of the terms that narrow a question to some objects. Operators that nobody knows are let in.
void CheckRequirement(FieldErrors& errors, const std::string& path, const Json& requirement,
                      bool of_labels) {
  const std::string_view key = api::TextAt(requirement, "key");
  const std::string_view how = api::TextAt(requirement, "operator");
  const JsonArray& values = api::ArrayAt(requirement, "values");
  if (!of_labels && key.empty()) {
    errors.push_back(api::RequiredField(path + ".key", "must be specified"));
  }
  if ((how == "In" || how == "NotIn") && values.empty()) {
    errors.push_back(api::RequiredField(path + ".values",
                                        "must be specified when `operator` is 'In' or 'NotIn'"));
  }
  if ((how == "Exists" || how == "DoesNotExist") && !values.empty()) {
    errors.push_back(api::ForbiddenField(
        path + ".values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  }
  if (!of_labels) return;
  RefuseAll(errors, path + ".key", key, api::CheckQualifiedName(key));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string_view value =
        values[i].is_string() ? std::string_view(values[i].get_string()) : std::string_view();
    RefuseAll(errors, fmt::format("{}.values[{}]", path, i), value, api::CheckLabelValue(value));
  }
}

void CheckSelectors(FieldErrors& errors, const Json& attributes) {
  for (const std::string_view member : {"fieldSelector", "labelSelector"}) {
    const Json* selector = api::FindMember(attributes, member);
    if (selector == nullptr) continue;
    const std::string path = fmt::format("{}.{}", kResource, member);
    const std::string_view raw = api::TextAt(*selector, "rawSelector");
    const JsonArray& requirements = api::ArrayAt(*selector, "requirements");
    if (!raw.empty() && !requirements.empty()) {
      errors.push_back(api::InvalidField(path + ".rawSelector", raw,
                                         "may not specified at the same time as requirements"));
    }
    if (raw.empty() && requirements.empty()) {
      errors.push_back(api::RequiredField(
          path + ".requirements",
          fmt::format("when {} is specified, requirements or rawSelector is required", path)));
    }
    for (size_t i = 0; i < requirements.size(); ++i) {
      CheckRequirement(errors, fmt::format("{}.requirements[{}]", path, i), requirements[i],
                       member == "labelSelector");
    }
  }
}

FieldErrors Validate(KindId kind, const Json& review) {
  FieldErrors errors;
  const Json* resource = api::FindPath(review, kResource);
  const Json* path = api::FindPath(review, kPath);
  // Upstream shows its own struct.
  const Json shown = path == nullptr ? Json()
                                     : Json(JsonObject{{"Path", api::TextAt(*path, "path")},
                                                       {"Verb", api::TextAt(*path, "verb")}});
  if (resource != nullptr && path != nullptr) {
    errors.push_back(api::InvalidJsonField(
        std::string(kPath), shown, "cannot be specified in combination with resourceAttributes"));
  }
  if (resource == nullptr && path == nullptr) {
    errors.push_back(api::InvalidJsonField(
        std::string(kResource), shown,
        "exactly one of nonResourceAttributes or resourceAttributes must be specified"));
  }
  const bool own = kind == KindId::kSelfSubjectAccessReview;
  if (!own && api::TextAt(review, "spec.user").empty() &&
      api::ArrayAt(review, "spec.groups").empty()) {
    errors.push_back(
        api::InvalidField("spec.user", "", "at least one of user or group must be specified"));
  }
  if (resource != nullptr) CheckSelectors(errors, *resource);
  const bool local = kind == KindId::kLocalSubjectAccessReview;
  JsonObject metadata = api::ObjectAt(review, "metadata");
  for (const std::string_view key : {"managedFields", "creationTimestamp"})
    api::RemoveMember(metadata, key);
  if (local) api::RemoveMember(metadata, "namespace");
  if (!metadata.empty()) {
    errors.push_back(
        api::InvalidJsonField("metadata", Json(api::ObjectAt(review, "metadata")),
                              local ? "must be empty except for namespace" : "must be empty"));
  }
  if (!local) return errors;
  const std::string_view space = api::TextAt(review, "spec.resourceAttributes.namespace");
  if (resource != nullptr && space != api::TextAt(review, "metadata.namespace")) {
    errors.push_back(api::InvalidField("spec.resourceAttributes.namespace", space,
                                       "must match metadata.namespace"));
  }
  if (path != nullptr) {
    errors.push_back(
        api::InvalidJsonField(std::string(kPath), shown, "disallowed on this kind of request"));
  }
  return errors;
}

// Upstream has forgotten by then what kind it was sent.
std::unexpected<Problem> InvalidReview(const api::Kind& kind, const FieldErrors& errors) {
  std::unexpected<Problem> problem = Invalid({.kind = kind, .name = ""}, errors);
  problem.error().kind = "";
  problem.error().message = api::InvalidMessage(fmt::format(".{}", kind.group), "", errors);
  return problem;
}

// Whom a review is about.
Identity SubjectOf(const Json& review) {
  Identity identity{.user = std::string(api::TextAt(review, "spec.user")), .groups = {}};
  for (const Json& group : api::ArrayAt(review, "spec.groups")) {
    if (group.is_string()) identity.groups.emplace_back(group.get_string());
  }
  return identity;
}

// What a review asks whether it is allowed.
Attributes AttributesOfReview(const Json& review) {
  const auto text = [&](std::string_view path) { return std::string(api::TextAt(review, path)); };
  if (api::FindPath(review, kResource) == nullptr) {
    return {.verb = text("spec.nonResourceAttributes.verb"),
            .of_resource = false,
            .group = {},
            .resource = {},
            .subresource = {},
            .namespace_name = {},
            .name = {},
            .path = text("spec.nonResourceAttributes.path")};
  }
  return {.verb = text("spec.resourceAttributes.verb"),
          .group = text("spec.resourceAttributes.group"),
          .resource = text("spec.resourceAttributes.resource"),
          .subresource = text("spec.resourceAttributes.subresource"),
          .namespace_name = text("spec.resourceAttributes.namespace"),
          .name = text("spec.resourceAttributes.name"),
          .path = {}};
}

enum class Reading : uint8_t { kWhole, kPart, kNone };

// How much of a selector of a review can be read.
Reading ReadSelector(const Json& selector, bool of_labels) {
  if (const std::string_view raw = api::TextAt(selector, "rawSelector"); !raw.empty()) {
    const bool fine =
        of_labels ? api::ParseLabelQuery(raw).has_value() : api::ParseFieldQuery(raw).has_value();
    return fine ? Reading::kWhole : Reading::kNone;
  }
  const JsonArray& requirements = api::ArrayAt(selector, "requirements");
  const auto is_read = [&](const Json& requirement) {
    const std::string_view how = api::TextAt(requirement, "operator");
    if (how == "In" || how == "NotIn")
      return of_labels || api::ArrayAt(requirement, "values").size() == 1;
    return of_labels && (how == "Exists" || how == "DoesNotExist");
  };
  const auto read = std::ranges::count_if(requirements, is_read);
  if (read == std::ssize(requirements)) return Reading::kWhole;
  return read > 0 ? Reading::kPart : Reading::kNone;
}

// What of a review was left out of account.
std::string EvaluationError(const Json& review) {
  std::string problems;
  for (const std::string_view member : {"fieldSelector", "labelSelector"}) {
    const std::string path = fmt::format("{}.{}", kResource, member);
    const Json* selector = api::FindPath(review, path);
    if (selector == nullptr) continue;
    const Reading reading = ReadSelector(*selector, member == "labelSelector");
    if (reading == Reading::kWhole) continue;
    problems += fmt::format("{}{} {}ignored due to parse error", problems.empty() ? "" : "; ", path,
                            reading == Reading::kPart ? "partially " : "");
  }
  return problems;
}

JsonObject AccessStatus(const Authorizer& authorizer, const Identity& identity,
                        const Json& review) {
  const Authorizer::Decision decision = authorizer.Authorize(identity, AttributesOfReview(review));
  JsonObject status = {{"allowed", decision.allowed}};
  if (!decision.reason.empty()) status["reason"] = decision.reason;
  if (const std::string problems = EvaluationError(review); !problems.empty())
    status["evaluationError"] = problems;
  return status;
}

JsonArray ListOf(const std::vector<std::string>& texts) {
  JsonArray list;
  for (const std::string& text : texts) list.push_back(Text(text));
  return list;
}

JsonObject RulesStatus(const Requester& requester, std::string_view namespace_name) {
  const Authorizer::Held held = requester.authorizer.RulesOf(requester.identity, namespace_name);
  JsonArray resources;
  JsonArray paths;
  for (const Rule* rule : held.rules) {
    if (!rule->resources.empty()) {
      JsonObject told = {{"verbs", ListOf(rule->verbs)},
                         {"apiGroups", ListOf(rule->groups)},
                         {"resources", ListOf(rule->resources)}};
      if (!rule->names.empty()) told["resourceNames"] = ListOf(rule->names);
      resources.push_back(std::move(told));
    }
    if (!rule->urls.empty()) {
      paths.push_back(
          JsonObject{{"verbs", ListOf(rule->verbs)}, {"nonResourceURLs", ListOf(rule->urls)}});
    }
  }
  JsonObject status = {
      {"resourceRules", resources}, {"nonResourceRules", paths}, {"incomplete", false}};
  if (!held.missing.empty()) status["evaluationError"] = held.missing;
  return status;
}

JsonObject UserInfo(const Identity& identity) {
  JsonObject user = {{"username", identity.user}};
  if (!identity.uid.empty()) user["uid"] = identity.uid;
  if (!identity.groups.empty()) user["groups"] = ListOf(identity.groups);
  JsonObject extra;
  for (const auto& [key, values] : identity.extra) extra[key] = ListOf(values);
  if (!extra.empty()) user["extra"] = std::move(extra);
  return user;
}

JsonObject TokenStatus(const Json& review, const VerifyToken& verify) {
  const auto verified = verify({.token = api::TextAt(review, "spec.token"),
                                .audiences = api::TextsAt(review, "spec.audiences")});
  if (!verified) {
    constexpr std::string_view kUnknown = "invalid bearer token";
    const std::string& why = verified.error();
    return {
        {"user", JsonObject()},
        {"error", why.empty() ? std::string(kUnknown) : fmt::format("[{}, {}]", kUnknown, why)}};
  }
  return {{"authenticated", true},
          {"user", UserInfo(verified->identity)},
          {"audiences", ListOf(verified->audiences)}};
}

// Whether a review can be answered, apart from what webhooks think of it.
Outcome<void> Check(const ResourceRequest& request, Json& review) {
  const api::Kind& kind = *request.kind;
  switch (kind.id) {
    case KindId::kSelfSubjectReview:
      return {};
    case KindId::kTokenReview:
      if (api::TextAt(review, "spec.token").empty())
        return BadRequest("token is required for TokenReview in authentication");
      return {};
    case KindId::kSelfSubjectRulesReview:
      if (api::TextAt(review, "spec.namespace").empty())
        return BadRequest("no namespace on request");
      return {};
    default:
      break;
  }
  const FieldErrors errors = Validate(kind.id, review);
  if (!errors.empty()) return InvalidReview(kind, errors);
  return {};
}

// Fills in what a review asks for. REQUIRES: Check.
void Fill(const WriteContext& context, const VerifyToken& verify, Json& review) {
  const api::Kind& kind = *context.request.kind;
  const Requester& requester = *context.request.requester;
  JsonObject& members = review.get_object();
  JsonObject& metadata = api::MemberObject(members, "metadata");
  switch (kind.id) {
    case KindId::kSelfSubjectReview:
      metadata.clear();
      metadata["creationTimestamp"] = api::PrintTimestamp(context.now);
      members["status"] = JsonObject{{"userInfo", UserInfo(requester.identity)}};
      return;
    case KindId::kTokenReview:
      members["status"] = TokenStatus(review, verify);
      return;
    case KindId::kSelfSubjectRulesReview: {
      const std::string space(api::TextAt(review, "spec.namespace"));
      metadata.clear();
      members["spec"] = JsonObject();
      members["status"] = RulesStatus(requester, space);
      return;
    }
    default:
      break;
  }
  const bool own = kind.id == KindId::kSelfSubjectAccessReview;
  members["status"] =
      AccessStatus(requester.authorizer, own ? requester.identity : SubjectOf(review), review);
}

Outcome<void> AnswerReview(WriteContext& context, const VerifyToken& verify, Json& review) {
  const ResourceRequest& request = context.request;
  const api::Kind& kind = *request.kind;
  if (kind.namespaced) {
    if (Outcome<void> same = CheckNamespace(request, review); !same) return same;
    api::MemberObject(review.get_object(), "metadata")["namespace"] = request.namespace_name;
  }
  const std::string name(api::TextAt(review, "metadata.name"));
  if (Outcome<void> fine = MutatePart(context, kind, name, review); !fine) return fine;
  if (Outcome<void> fine = Check(request, review); !fine) return fine;
  if (Outcome<void> fine = ValidatePart(context, kind, name, review); !fine) return fine;
  Fill(context, verify, review);
  return {};
}

}  // namespace

Outcome<env::HttpResponse> Review(const WriteTools& tools, const ResourceRequest& request,
                                  const VerifyToken& verify) {
  const api::Kind& kind = *request.kind;
  Outcome<WriteContext> context = QuestionContext(tools, request);
  if (!context) return std::unexpected(std::move(context.error()));
  if (context->shape.form != Form::kObject) {
    return NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml");
  }
  Outcome<Body> body = DecodeBody(request, kind, context->options.validation, {});
  if (!body) return std::unexpected(std::move(body.error()));
  context->warnings = std::move(body->warnings);
  Json& review = body->object;
  if (Outcome<void> answered = AnswerReview(*context, verify, review); !answered) {
    answered.error().warnings = std::move(context->warnings);
    return std::unexpected(std::move(answered.error()));
  }
  env::HttpResponse response =
      Answer(201, context->shape.syntax, PrintCanonical(kind, review, 0).text);
  AddWarningHeaders(context->warnings, response.headers);
  return response;
}

}  // namespace berth::apiserver
