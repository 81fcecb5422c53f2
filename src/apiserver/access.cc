#include "apiserver/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/field_error.h"
#include "api/object.h"
#include "apiserver/discovery.h"
#include "apiserver/objects.h"
#include "apiserver/render.h"
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

bool IsNobody(const Identity& identity) {
  return identity.user == "system:anonymous" ||
         std::ranges::find(identity.groups, "system:unauthenticated") != identity.groups.end();
}

// Why the identity may not do what the review asks for, or "".
std::string WhyNot(const Identity& identity, const Json& review) {
  if (api::TextAt(review, "spec.resourceAttributes.verb") == "impersonate")
    return "nobody acts as somebody else";
  if (!IsNobody(identity)) return "";
  const bool read = api::TextAt(review, "spec.nonResourceAttributes.verb") == "get";
  if (read && Discovery::IsPublic(api::TextAt(review, "spec.nonResourceAttributes.path")))
    return "";
  return "who is not known may read public paths only";
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

JsonObject AccessStatus(const Identity& identity, const Json& review) {
  const std::string why = WhyNot(identity, review);
  JsonObject status = {{"allowed", why.empty()}};
  if (!why.empty()) status["reason"] = why;
  return status;
}

JsonObject RulesStatus(const Identity& identity) {
  const JsonArray all = {"*"};
  JsonArray resources;
  JsonArray paths;
  if (IsNobody(identity)) {
    paths.push_back(
        JsonObject{{"verbs", JsonArray({"get"})},
                   {"nonResourceURLs", JsonArray({"/healthz", "/livez", "/readyz", "/version"})}});
  } else {
    resources.push_back(JsonObject{{"verbs", all}, {"apiGroups", all}, {"resources", all}});
    paths.push_back(JsonObject{{"verbs", all}, {"nonResourceURLs", all}});
  }
  return {{"resourceRules", resources}, {"nonResourceRules", paths}, {"incomplete", false}};
}

}  // namespace

Outcome<env::HttpResponse> ReviewAccess(const ResourceRequest& request, const Identity& identity) {
  const api::Kind& kind = *request.kind;
  const Outcome<WriteOptions> options = ParseWriteOptions(request.query, "CreateOptions");
  if (!options) return std::unexpected(options.error());
  const Outcome<Shape> shape = Negotiate(request, AnswerKind::kOne);
  if (!shape) return std::unexpected(shape.error());
  if (shape->form != Form::kObject) {
    return NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml");
  }
  Outcome<Body> body = DecodeBody(request, kind, options->validation, {});
  if (!body) return std::unexpected(std::move(body.error()));
  Json& review = body->object;
  JsonObject& members = review.get_object();
  JsonObject& metadata = api::MemberObject(members, "metadata");
  if (kind.id == KindId::kSelfSubjectRulesReview) {
    if (api::TextAt(review, "spec.namespace").empty()) return BadRequest("no namespace on request");
    metadata.clear();
    members["spec"] = JsonObject();
    members["status"] = RulesStatus(identity);
  } else {
    if (kind.namespaced) {
      if (Outcome<void> same = CheckNamespace(request, review); !same)
        return std::unexpected(std::move(same.error()));
      metadata["namespace"] = request.namespace_name;
    }
    const FieldErrors errors = Validate(kind.id, review);
    if (!errors.empty()) return InvalidReview(kind, errors);
    const bool own = kind.id == KindId::kSelfSubjectAccessReview;
    members["status"] = AccessStatus(own ? identity : SubjectOf(review), review);
  }
  std::string text = PrintCanonical(kind, review, 0).text;
  return Answer(201, shape->syntax, std::move(text));
}

}  // namespace berth::apiserver
