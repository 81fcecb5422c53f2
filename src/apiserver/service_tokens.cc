#include "apiserver/service_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "api/base64.h"
#include "api/field_error.h"
#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/impersonation.h"
#include "apiserver/objects.h"
#include "apiserver/render.h"
#include "apiserver/webhook_calls.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr int64_t kSecondsDefault = 3600;
constexpr int64_t kSecondsMin = 600;
constexpr int64_t kSecondsMax = int64_t{1} << 32;
// What kubelets ask for. Such tokens of pods end in a year, for clients that don't read them again,
// and say when they should have ended.
constexpr int64_t kSecondsOfKubelets = 3607;
constexpr int64_t kSecondsExtended = 365 * 24 * 3600;
// Clocks of others may differ so much.
constexpr int64_t kLeewaySeconds = 60;
constexpr std::string_view kExtraPrefix = "authentication.kubernetes.io/";

// ---- base64url (RFC 4648 section 5), without padding --------------------------------------------

std::string EncodeUrl(std::string_view bytes) {
  std::string text = api::EncodeBase64(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> DecodeUrl(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xff);
  }
  // What is left over is no byte, and nothing but zeros: a token has one text.
  if (count >= 6 || (bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

// ---- Tokens -------------------------------------------------------------------------------------

// A token taken apart (RFC 7519), not verified.
struct Parsed {
  std::string_view text;  // What is signed.
  std::string signature;
  Json header;
  Json claims;
};

std::optional<Json> ParsePart(std::string_view part) {
  const std::optional<std::string> text = DecodeUrl(part);
  if (!text) return std::nullopt;
  Result<Json> json = codec::ParseJson(*text);
  if (!json || !json->is_object()) return std::nullopt;
  return std::move(*json);
}

std::optional<Parsed> Parse(std::string_view token) {
  const size_t first = token.find('.');
  const size_t last = token.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  std::optional<Json> header = ParsePart(token.substr(0, first));
  std::optional<Json> claims = ParsePart(token.substr(first + 1, last - first - 1));
  std::optional<std::string> signature = DecodeUrl(token.substr(last + 1));
  if (!header || !claims || !signature) return std::nullopt;
  return Parsed{.text = token.substr(0, last),
                .signature = std::move(*signature),
                .header = std::move(*header),
                .claims = std::move(*claims)};
}

JsonObject ReferenceTo(std::string_view name, std::string_view uid) {
  JsonObject reference = {{"name", name}};
  if (!uid.empty()) reference["uid"] = uid;
  return reference;
}

std::string QuotedList(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(api::QuoteGo(text));
  return fmt::format("[{}]", fmt::join(quoted, " "));
}

store::ObjectRef Find(const store::Store& store, KindId kind, std::string_view namespace_name,
                      std::string_view name) {
  return store.Find(static_cast<store::Table>(kind),
                    {.namespace_name = namespace_name, .name = name});
}

// Whether an object has been asked to go, longer ago than clocks may differ.
bool IsLeaving(const store::StoredObject& object, Instant now) {
  const Json document = Load(object);
  const Result<Instant> when =
      api::ParseTimestamp(api::TextAt(document, "metadata.deletionTimestamp"));
  return when && when->seconds() < now.seconds() - kLeewaySeconds;
}

std::unexpected<std::string> Refused(std::string why) { return std::unexpected(std::move(why)); }

std::expected<void, std::string> CheckTimes(const Json& claims, Instant now) {
  const int64_t seconds = now.seconds();
  if (api::IntegerAt(claims, "nbf") > seconds + kLeewaySeconds)
    return Refused("service account token is not valid yet");
  if (api::IntegerAt(claims, "exp") < seconds - kLeewaySeconds)
    return Refused("service account token has expired");
  if (api::IntegerAt(claims, "iat") > seconds + kLeewaySeconds)
    return Refused("service account token is issued in the future");
  return {};
}

// An object that a token is bound to.
struct Bound {
  KindId kind;
  std::string_view member;  // Of the claim kubernetes.io.
};

// The object is there, with the uid that the token names.
std::expected<void, std::string> CheckBound(Instant now, const store::Store& store,
                                            const Json& claim, const Bound& bound) {
  const Json* reference = api::FindMember(claim, bound.member);
  if (reference == nullptr) return {};
  const bool namespaced = api::KindOf(bound.kind).namespaced;
  const std::string_view space = namespaced ? api::TextAt(claim, "namespace") : "";
  const store::ObjectRef object = Find(store, bound.kind, space, api::TextAt(*reference, "name"));
  if (object == nullptr) return Refused("service account token has been invalidated");
  const std::string_view uid = api::TextAt(*reference, "uid");
  if (object->uid != uid) {
    return Refused(fmt::format("{0} UID ({1}) does not match service account {0} ref claim ({2})",
                               bound.member, object->uid, uid));
  }
  if (IsLeaving(*object, now)) return Refused("service account token has been invalidated");
  return {};
}

std::expected<void, std::string> CheckAccount(Instant now, const store::Store& store,
                                              const Json& claim) {
  const std::string_view space = api::TextAt(claim, "namespace");
  const std::string_view name = api::TextAt(claim, "serviceaccount.name");
  const std::string_view uid = api::TextAt(claim, "serviceaccount.uid");
  const store::ObjectRef account = Find(store, KindId::kServiceAccount, space, name);
  if (account == nullptr) return Refused(fmt::format("serviceaccounts \"{}\" not found", name));
  if (account->uid != uid) {
    return Refused(
        fmt::format("service account UID ({}) does not match claim ({})", account->uid, uid));
  }
  if (IsLeaving(*account, now))
    return Refused(fmt::format("service account {}/{} has been deleted", space, name));
  return {};
}

Identity IdentityOf(const Json& claims, const Json& claim) {
  const std::string_view space = api::TextAt(claim, "namespace");
  Identity identity{.user = AccountUser(space, api::TextAt(claim, "serviceaccount.name")),
                    .groups = AccountGroups(space),
                    .uid = std::string(api::TextAt(claim, "serviceaccount.uid"))};
  const auto add = [&](std::string_view key, std::string value) {
    if (!value.empty())
      identity.extra[fmt::format("{}{}", kExtraPrefix, key)].push_back(std::move(value));
  };
  const auto text = [&](std::string_view path) { return std::string(api::TextAt(claim, path)); };
  add("pod-name", text("pod.name"));
  add("pod-uid", text("pod.uid"));
  add("node-name", text("node.name"));
  add("node-uid", text("node.uid"));
  if (const std::string_view id = api::TextAt(claims, "jti"); !id.empty())
    add("credential-id", fmt::format("JTI={}", id));
  return identity;
}

// ---- TokenRequest -------------------------------------------------------------------------------

Subject RequestSubject(std::string_view name) {
  return {.kind = api::KindOf(KindId::kTokenRequest), .name = name};
}

// Upstream names the kind where others name the resource.
std::unexpected<Problem> UidConflict(std::string_view resource, std::string_view name,
                                     std::string_view group, std::string why) {
  Problem problem{.code = 409,
                  .reason = "Conflict",
                  .message = fmt::format("Operation cannot be fulfilled on {}{}{} \"{}\": {}",
                                         resource, group.empty() ? "" : ".", group, name, why),
                  .name = std::string(name),
                  .group = std::string(group),
                  .kind = std::string(resource)};
  return std::unexpected(std::move(problem));
}

Outcome<void> CheckRequestMetadata(const ResourceRequest& request, const Json& body,
                                   const store::StoredObject& account) {
  const std::string_view uid = api::TextAt(body, "metadata.uid");
  if (uid.empty() || uid == account.uid) return {};
  return UidConflict(
      "TokenRequest", request.name, "authentication.k8s.io",
      fmt::format("the UID in the token request ({}) does not match the UID of the service account "
                  "({})",
                  uid, account.uid));
}

Outcome<void> CheckRequestNames(const ResourceRequest& request, const Json& body) {
  const auto check = [&](std::string_view key, std::string_view expected) -> Outcome<void> {
    const std::string path = fmt::format("metadata.{}", key);
    const std::string_view sent = api::TextAt(body, path);
    if (sent.empty() || sent == expected) return {};
    return Invalid(
        RequestSubject(request.name),
        {api::InvalidField(path, sent,
                           fmt::format("must match the service account {} if specified", key))});
  };
  if (Outcome<void> same = check("name", request.name); !same) return same;
  return check("namespace", request.namespace_name);
}

Outcome<void> CheckSeconds(int64_t seconds) {
  api::FieldErrors errors;
  if (seconds < kSecondsMin) {
    errors.push_back(api::InvalidField("spec.expirationSeconds", seconds,
                                       "may not specify a duration less than 10 minutes"));
  }
  if (seconds > kSecondsMax) {
    errors.push_back(api::InvalidField("spec.expirationSeconds", seconds,
                                       "may not specify a duration larger than 2^32 seconds"));
  }
  if (errors.empty()) return {};
  return Invalid(RequestSubject(""), errors);
}

// The claim's members of what a token is to be bound to.
Outcome<JsonObject> BindTo(const store::Store& store, const ResourceRequest& request,
                           const Json& reference) {
  const std::string_view version = api::TextAt(reference, "apiVersion");
  const std::string_view name = api::TextAt(reference, "name");
  const std::string_view kind_name = api::TextAt(reference, "kind");
  const bool core = !version.contains('/');
  std::optional<KindId> kind;
  if (core && kind_name == "Pod") kind = KindId::kPod;
  if (core && kind_name == "Node") kind = KindId::kNode;
  if (core && kind_name == "Secret") kind = KindId::kSecret;
  if (!kind) {
    const std::string shown = core ? fmt::format("/{}", version) : std::string(version);
    return BadRequest(
        fmt::format("cannot bind token to object of type {}, Kind={}", shown, kind_name));
  }
  const std::string_view space =
      *kind == KindId::kNode ? std::string_view() : std::string_view(request.namespace_name);
  const store::ObjectRef object = Find(store, *kind, space, name);
  if (object == nullptr) return NotFound({.kind = api::KindOf(*kind), .name = name});
  JsonObject members;
  if (*kind == KindId::kPod) {
    const Json pod = Load(*object);
    if (api::TextAt(pod, "spec.serviceAccountName") != request.name) {
      return BadRequest(fmt::format(
          "cannot bind token for serviceaccount {} to pod running with different serviceaccount "
          "name.",
          api::QuoteGo(request.name)));
    }
    if (const std::string_view node = api::TextAt(pod, "spec.nodeName"); !node.empty()) {
      const store::ObjectRef known = Find(store, KindId::kNode, "", node);
      members["node"] = ReferenceTo(node, known == nullptr ? "" : known->uid);
    }
  }
  if (const std::string_view uid = api::TextAt(reference, "uid");
      !uid.empty() && uid != object->uid) {
    return UidConflict(
        kind_name, name, "",
        fmt::format("the UID in the bound object reference ({}) does not match the UID in record. "
                    "The object might have been deleted and then recreated",
                    uid));
  }
  const std::string_view member = *kind == KindId::kPod    ? "pod"
                                  : *kind == KindId::kNode ? "node"
                                                           : "secret";
  members[member] = ReferenceTo(object->name, object->uid);
  return members;
}

struct TokenWish {
  const store::StoredObject& account;
  std::vector<std::string> audiences;
  int64_t seconds = 0;
  JsonObject bound;
  std::string id;
};

// In the order of Go's encoder: by name.
JsonObject ClaimsOf(const TokenWish& wish, Instant now) {
  const int64_t issued = now.seconds();
  const bool own = wish.audiences == std::vector<std::string>{std::string(ServiceTokens::kIssuer)};
  const bool extended = own && wish.bound.contains("pod") && wish.seconds == kSecondsOfKubelets;
  JsonObject claim = {{"namespace", wish.account.namespace_name}};
  for (const std::string_view member : {"node", "pod", "secret"}) {
    if (const Json* bound = wish.bound.if_contains(member)) claim[member] = *bound;
  }
  claim["serviceaccount"] = ReferenceTo(wish.account.name, wish.account.uid);
  if (extended) claim["warnafter"] = issued + wish.seconds;
  JsonArray audiences;
  for (const std::string& audience : wish.audiences) audiences.push_back(Json(Text(audience)));
  return {{"aud", audiences}, {"exp", issued + (extended ? kSecondsExtended : wish.seconds)},
          {"iat", issued},    {"iss", ServiceTokens::kIssuer},
          {"jti", wish.id},   {"kubernetes.io", claim},
          {"nbf", issued},    {"sub", AccountUser(wish.account.namespace_name, wish.account.name)}};
}

// The signed text, or "" when the key can't sign.
std::string Sign(const TokenKey& key, const JsonObject& claims) {
  const JsonObject header = {{"alg", "RS256"}, {"kid", EncodeUrl(key.public_half().id)}};
  const std::string text = fmt::format("{}.{}", EncodeUrl(codec::PrintJson(Json(header))),
                                       EncodeUrl(codec::PrintJson(Json(claims))));
  const std::string signature = key.sign(text);
  if (signature.empty()) return "";
  return fmt::format("{}.{}", text, EncodeUrl(signature));
}

// Whether a client takes a document of that type: named as it is, or as anything.
bool Accepts(const env::HttpRequest& http, std::string_view type) {
  std::string_view accept = env::FindHeader(http.headers, "accept").value_or("");
  if (accept.empty()) return true;
  while (!accept.empty()) {
    const size_t comma = std::min(accept.find(','), accept.size());
    std::string_view each = accept.substr(0, comma);
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    each = each.substr(0, each.find(';'));
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (each == "*/*" || each == type) return true;
  }
  return false;
}

}  // namespace

Outcome<void> ServiceTokens::Give(WriteContext& context, Json& asked) const {
  const ResourceRequest& request = context.request;
  const api::Kind& kind = api::KindOf(KindId::kTokenRequest);
  const auto settle = [](Json& changed) {
    api::SetPath(changed, "spec.expirationSeconds",
                 api::IntegerAt(changed, "spec.expirationSeconds", kSecondsDefault));
  };
  settle(asked);
  if (Outcome<void> fine = MutatePart(context, kind, request.name, asked, settle); !fine)
    return fine;
  if (Outcome<void> named = CheckRequestNames(request, asked); !named) return named;
  const store::ObjectRef account =
      Find(context.store, KindId::kServiceAccount, request.namespace_name, request.name);
  if (account == nullptr) return NotFound(request.subject());
  if (Outcome<void> same = CheckRequestMetadata(request, asked, *account); !same) return same;

  TokenWish wish{.account = *account, .audiences = {}, .bound = {}, .id = {}};
  wish.audiences = api::TextsAt(asked, "spec.audiences");
  if (wish.audiences.empty()) wish.audiences = {std::string(kIssuer)};
  wish.seconds = api::IntegerAt(asked, "spec.expirationSeconds", kSecondsDefault);
  JsonObject& metadata = api::MemberObject(asked.get_object(), "metadata");
  metadata["name"] = account->name;
  metadata["namespace"] = account->namespace_name;
  metadata["uid"] = account->uid;
  metadata["creationTimestamp"] = api::PrintTimestamp(context.now);
  JsonArray audiences;
  for (const std::string& audience : wish.audiences) audiences.push_back(Json(Text(audience)));
  api::SetPath(asked, "spec.audiences", std::move(audiences));
  asked.get_object()["status"] = JsonObject{{"token", ""}, {"expirationTimestamp", nullptr}};
  if (Outcome<void> fine = CheckSeconds(wish.seconds); !fine) return fine;
  if (Outcome<void> fine = ValidatePart(context, kind, request.name, asked); !fine) return fine;
  if (const Json* reference = api::FindPath(asked, "spec.boundObjectRef")) {
    Outcome<JsonObject> bound = BindTo(context.store, request, *reference);
    if (!bound) return std::unexpected(std::move(bound.error()));
    wish.bound = std::move(*bound);
  }
  wish.id = NewUid(context.prng);
  const std::string token = Sign(*key_, ClaimsOf(wish, context.now));
  if (token.empty()) return Unclassified("failed to generate token");
  const Instant end = context.now + Duration::Seconds(wish.seconds);
  asked.get_object()["status"] =
      JsonObject{{"token", token}, {"expirationTimestamp", api::PrintTimestamp(end)}};
  return {};
}

Outcome<env::HttpResponse> ServiceTokens::Create(const WriteTools& tools,
                                                 const ResourceRequest& request) const {
  if (key_ == nullptr) return NoSuchResource();
  const api::Kind& kind = api::KindOf(KindId::kTokenRequest);
  Outcome<WriteContext> context = QuestionContext(tools, request);
  if (!context) return std::unexpected(std::move(context.error()));
  Outcome<Body> body = DecodeBody(request, kind, context->options.validation, {});
  if (!body) return std::unexpected(std::move(body.error()));
  context->warnings = std::move(body->warnings);
  if (Outcome<void> given = Give(*context, body->object); !given) {
    given.error().warnings = std::move(context->warnings);
    return std::unexpected(std::move(given.error()));
  }
  env::HttpResponse response =
      apiserver::Answer(201, context->shape.syntax, PrintCanonical(kind, body->object, 0).text);
  AddWarningHeaders(context->warnings, response.headers);
  return response;
}

std::expected<ServiceTokens::Verified, std::string> ServiceTokens::Verify(
    Instant now, const store::Store& store, const Asked& asked) const {
  if (key_ == nullptr) return Refused("");
  const std::optional<Parsed> token = Parse(asked.token);
  if (!token || api::TextAt(token->claims, "iss") != kIssuer) return Refused("");
  const std::string_view id = api::TextAt(token->header, "kid");
  if (!id.empty() && id != EncodeUrl(key_->public_half().id))
    return Refused("invalid signature, no keys found");
  // By this one algorithm, whatever the token says; and it has to say it.
  if (api::TextAt(token->header, "alg") != "RS256" ||
      !key_->verify(token->text, token->signature)) {
    return Refused("go-jose/go-jose: error in cryptographic primitive");
  }
  const std::vector<std::string> own = {std::string(kIssuer)};
  const std::vector<std::string>& wanted = asked.audiences.empty() ? own : asked.audiences;
  const std::vector<std::string> audiences = api::TextsAt(token->claims, "aud");
  Verified verified;
  for (const std::string& audience : audiences) {
    if (std::ranges::find(wanted, audience) != wanted.end()) verified.audiences.push_back(audience);
  }
  if (verified.audiences.empty()) {
    return Refused(fmt::format("token audiences {} is invalid for the target audiences {}",
                               QuotedList(audiences), QuotedList(wanted)));
  }
  if (const auto fine = CheckTimes(token->claims, now); !fine) return Refused(fine.error());
  const Json* claim = api::FindMember(token->claims, "kubernetes.io");
  if (claim == nullptr) return Refused("service account token has been invalidated");
  if (const auto fine = CheckAccount(now, store, *claim); !fine) return Refused(fine.error());
  const bool of_pod = api::FindMember(*claim, "pod") != nullptr;
  for (const Bound& bound : {Bound{.kind = KindId::kSecret, .member = "secret"},
                             Bound{.kind = KindId::kPod, .member = "pod"},
                             Bound{.kind = KindId::kNode, .member = "node"}}) {
    // A pod's node is told of, no more.
    if (of_pod && bound.kind == KindId::kNode) continue;
    if (const auto fine = CheckBound(now, store, *claim, bound); !fine)
      return Refused(fine.error());
  }
  verified.identity = IdentityOf(token->claims, *claim);
  return verified;
}

std::optional<Outcome<env::HttpResponse>> ServiceTokens::Answer(
    const Target& target, const env::HttpRequest& http) const {
  const bool configuration = target.path == "/.well-known/openid-configuration";
  if (key_ == nullptr || (!configuration && target.path != "/openid/v1/jwks")) return std::nullopt;
  if (http.method != env::Method::kGet) return MethodNotAllowed();
  const std::string_view type = configuration ? "application/json" : "application/jwk-set+json";
  if (!Accepts(http, type)) {
    auto problem =
        NotAcceptable(fmt::format("406: Not Acceptable\n\nAvailable representations: {}", type));
    problem.error().has_details = true;
    return problem;
  }
  std::string text;
  if (configuration) {
    text = codec::PrintJson(
        Json(JsonObject{{"issuer", kIssuer},
                        {"jwks_uri", fmt::format("https://{}/openid/v1/jwks", host_)},
                        {"response_types_supported", JsonArray({"id_token"})},
                        {"subject_types_supported", JsonArray({"public"})},
                        {"id_token_signing_alg_values_supported", JsonArray({"RS256"})}}));
  } else {
    const TokenKey::Public key = key_->public_half();
    const JsonObject web_key = {{"use", "sig"},
                                {"kty", "RSA"},
                                {"kid", EncodeUrl(key.id)},
                                {"alg", "RS256"},
                                {"n", EncodeUrl(key.modulus)},
                                {"e", EncodeUrl(key.exponent)}};
    text = codec::PrintJson(Json(JsonObject{{"keys", JsonArray({web_key})}}));
  }
  return env::HttpResponse{
      .status = 200,
      .headers = {{"content-type", std::string(type)}, {"cache-control", "public, max-age=3600"}},
      .body = Bytes(std::move(text))};
}

}  // namespace berth::apiserver
