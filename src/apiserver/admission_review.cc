#include "apiserver/admission_review.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "api/base64.h"
#include "api/fields.h"
#include "api/object.h"
#include "apiserver/objects.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonObject;

constexpr std::string_view kGroup = "admission.k8s.io";
constexpr std::string_view kReview = "AdmissionReview";
constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kServerError = 500;
// Beyond that HTTP has none.
constexpr int kStatusMax = 999;
// As upstream's client shows of a body.
constexpr size_t kShownBytes = 2048;
// Each is compared with all others; who reads them reads a few.
constexpr size_t kWarningsMax = 256;
// What a webhook may make a client wait for: an hour.
constexpr int64_t kRetrySecondsMax = 3600;

void AppendText(std::string& out, std::string_view key, std::string_view value) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += key;
  out += "\":";
  codec::AppendJsonString(value, out);
}

void AppendRaw(std::string& out, std::string_view key, std::string_view json) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += key;
  out += "\":";
  out += json.empty() ? "null" : json;
}

void AppendKind(std::string& out, std::string_view key, const api::Kind& kind) {
  out += fmt::format(R"(,"{}":{{"group":"{}","version":"{}","kind":"{}"}})", key, kind.group,
                     kind.version, kind.name);
}

void AppendResource(std::string& out, std::string_view key, const api::Kind& kind) {
  out += fmt::format(R"(,"{}":{{"group":"{}","version":"{}","resource":"{}"}})", key, kind.group,
                     kind.version, kind.plural);
}

void AppendTexts(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (const std::string& text : texts) {
    if (out.back() != '[') out += ',';
    codec::AppendJsonString(text, out);
  }
  out += ']';
}

std::string UserText(const Identity& user) {
  std::string out = "{";
  if (!user.user.empty()) AppendText(out, "username", user.user);
  if (!user.uid.empty()) AppendText(out, "uid", user.uid);
  if (!user.groups.empty()) {
    out += out.back() == '{' ? "\"groups\":" : ",\"groups\":";
    AppendTexts(out, user.groups);
  }
  if (!user.extra.empty()) {
    out += out.back() == '{' ? "\"extra\":{" : ",\"extra\":{";
    for (const auto& [key, values] : user.extra) {
      if (out.back() != '{') out += ',';
      codec::AppendJsonString(key, out);
      out += ':';
      AppendTexts(out, values);
    }
    out += '}';
  }
  return out + "}";
}

Verdict Failure(std::string why) { return {.failure = std::move(why)}; }

Verdict BadAnswer(std::string_view why) {
  return Failure(fmt::format("received invalid webhook response: {}", why));
}

Verdict Uncalled(std::string_view why) {
  return Failure(fmt::format("failed to call webhook: {}", why));
}

Verdict NoVersionOrKind(std::string_view why) {
  return Uncalled(fmt::format("couldn't get version/kind; json parse error: {}", why));
}

// Whether upstream's client shows the body of an answer that is no success.
bool IsText(const env::HttpResponse& response) {
  const std::string_view type = env::FindHeader(response.headers, "content-type").value_or("");
  constexpr std::string_view kText = "text/";
  return type.empty() || std::ranges::equal(type.substr(0, kText.size()), kText, {}, [](char c) {
           return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
         });
}

// What upstream's client says of an answer that is no success.
std::string StatusText(const env::HttpResponse& response) {
  const int status = response.status;
  switch (status) {
    case 400:
      return "the server rejected our request for an unknown reason";
    case 401:
      return "the server has asked for the client to provide credentials";
    case 404:
      return "the server could not find the requested resource";
    case 405:
      return "the server does not allow this method on the requested resource";
    case 413:
      return "Request entity too large";
    case 415:
      return "the body of the request was in an unknown format";
    case 429:
      return "the server has received too many requests and has asked us to try again later";
    case 503:
      return "the server is currently unable to handle the request";
    case 504:
      return "the server was unable to return a response in the time allotted, but may still be "
             "processing the request";
    default:
      break;
  }
  if (status < kServerError)
    return fmt::format(
        "the server responded with the status code {} but did not return more information", status);
  std::string_view shown = IsText(response) ? response.body.view().substr(0, kShownBytes) : "";
  shown = shown.substr(0, codec::ValidUtf8Prefix(shown));
  while (!shown.empty() && (shown.back() == '\n' || shown.back() == ' ')) shown.remove_suffix(1);
  return fmt::format("an error on the server ({}) has prevented the request from succeeding",
                     api::QuoteGo(shown.empty() ? "unknown" : shown));
}

std::string Mismatch(const Json& value, std::string_view key, std::string_view type) {
  return fmt::format(
      "json: cannot unmarshal {} into Go struct field AdmissionResponse.response.{} of type {}",
      JsonTypeName(value), key, type);
}

// What of a list or map of texts is none; null for nothing.
const Json* FirstNoText(const Json& texts) {
  const auto other = [](const Json& item) { return !item.is_string() && !item.is_null(); };
  if (const api::JsonArray* items = texts.if_array()) {
    const auto* const found = std::ranges::find_if(*items, other);
    return found == items->end() ? nullptr : found;
  }
  for (const auto& [key, value] : texts.get_object()) {
    if (other(value)) return &value;
  }
  return nullptr;
}

// The same of a status, which is decoded as any object is.
std::string WrongInStatus(const Json& status) {
  Json copy = status;
  const Result<std::vector<std::string>> decoded = api::Conform(api::KindId::kStatus, copy);
  if (decoded) return "";
  // `Go struct field Status.code`, but for where the status is.
  constexpr std::string_view kField = "Go struct field ";
  std::string why = decoded.error().message;
  const size_t field = why.find(kField);
  if (field != std::string::npos)
    why.insert(why.find('.', field + kField.size()) + 1, "response.status.");
  return why;
}

// What does not decode of an answer; empty for nothing.
std::string WrongIn(const Json& response) {
  const auto text = [](const Json& value) { return value.is_string(); };
  const auto flag = [](const Json& value) { return value.is_bool(); };
  const auto object = [](const Json& value) { return value.is_object(); };
  const auto list = [](const Json& value) { return value.is_array(); };
  struct Member {
    std::string_view key;
    bool (*is)(const Json& value);
    std::string_view type;
  };
  const std::array<Member, 7> members = {{{"uid", text, "types.UID"},
                                          {"allowed", flag, "bool"},
                                          {"patch", text, "[]uint8"},
                                          {"patchType", text, "v1.PatchType"},
                                          {"status", object, "v1.Status"},
                                          {"warnings", list, "[]string"},
                                          {"auditAnnotations", object, "map[string]string"}}};
  for (const Member& member : members) {
    const Json* value = api::FindMember(response, member.key);
    if (value != nullptr && !member.is(*value)) return Mismatch(*value, member.key, member.type);
  }
  for (const std::string_view key : {"warnings", "auditAnnotations"}) {
    const Json* texts = api::FindMember(response, key);
    const Json* wrong = texts == nullptr ? nullptr : FirstNoText(*texts);
    if (wrong != nullptr) return Mismatch(*wrong, key, "string");
  }
  const Json* status = api::FindMember(response, "status");
  return status == nullptr ? "" : WrongInStatus(*status);
}

Problem RefusalOf(std::string_view webhook, const Json& status) {
  Problem problem{.code = kBadRequest};
  problem.has_details = false;
  problem.code = static_cast<int>(
      std::clamp<int64_t>(api::IntegerAt(status, "code"), kBadRequest, kStatusMax + 1));
  if (problem.code > kStatusMax) problem.code = kServerError;
  problem.reason = api::TextAt(status, "reason");
  std::string_view why = api::TextAt(status, "message");
  if (why.empty()) why = problem.reason;
  problem.message =
      fmt::format("admission webhook {} denied the request{}{}", api::QuoteGo(webhook),
                  why.empty() ? " " : ": ", why.empty() ? "without explanation" : why);
  const Json* details = api::FindMember(status, "details");
  if (details == nullptr || !details->is_object()) return problem;
  problem.has_details = true;
  problem.name = api::TextAt(*details, "name");
  problem.group = api::TextAt(*details, "group");
  problem.kind = api::TextAt(*details, "kind");
  problem.retry_after_seconds =
      std::clamp<int64_t>(api::IntegerAt(*details, "retryAfterSeconds"), 0, kRetrySecondsMax);
  for (const Json& cause : api::ArrayAt(*details, "causes")) {
    problem.causes.push_back({.reason = std::string(api::TextAt(cause, "reason")),
                              .message = std::string(api::TextAt(cause, "message")),
                              .field = std::string(api::TextAt(cause, "field"))});
  }
  return problem;
}

// The patch of an answer that mutates; a failure when it can't be one.
Verdict ReadPatch(const Asked& asked, const Json& response, Verdict verdict) {
  const Json* type = api::FindMember(response, "patchType");
  const std::string_view text = api::TextAt(response, "patch");
  if (asked.version == "v1") {
    if (!text.empty() && type == nullptr)
      return BadAnswer("webhook returned response.patch but not response.patchType");
    if (text.empty() && type != nullptr)
      return BadAnswer("webhook returned response.patchType but not response.patch");
    if (type != nullptr && api::TextOf(*type).empty())
      return BadAnswer(R"(webhook returned invalid response.patchType of "")");
  }
  if (text.empty()) return verdict;
  const std::optional<std::string> patch = api::DecodeBase64(text);
  if (!patch) {
    return Uncalled(
        fmt::format("illegal base64 data at input byte {}", api::Base64ErrorOffset(text)));
  }
  if (!verdict.allowed) return verdict;
  const Result<Json> parsed = codec::ParseJson(*patch);
  if (parsed && parsed->is_null()) return verdict;  // No operations.
  if (!parsed || !parsed->is_array()) {
    return Failure(fmt::format(
        "received undecodable patch in webhook response: {}",
        parsed ? "json: cannot unmarshal into a list of operations" : parsed.error().message));
  }
  if (!parsed->get_array().empty() && type != nullptr && api::TextOf(*type) != "JSONPatch")
    return Failure(fmt::format("unsupported patch type {}", api::QuoteGo(api::TextOf(*type))));
  if (!parsed->get_array().empty()) verdict.patch = *patch;
  return verdict;
}

// Whether the answer is of the kind and version that was asked for, as far as it names them; else
// why not.
Verdict CheckReview(const Asked& asked, const Json& answer) {
  for (const std::string_view member : {"apiVersion", "kind"}) {
    const Json* value = api::FindMember(answer, member);
    if (value == nullptr || value->is_null() || value->is_string()) continue;
    return NoVersionOrKind(
        fmt::format("json: cannot unmarshal {} into Go struct field .{} of type string",
                    JsonTypeName(*value), member));
  }
  const std::string_view said = api::TextAt(answer, "apiVersion");
  if (std::ranges::count(said, '/') > 1)
    return Uncalled(fmt::format("unexpected GroupVersion string: {}", said));
  const std::string_view named = api::TextAt(answer, "kind");
  const std::string own = fmt::format("{}/{}", kGroup, asked.version);
  const std::string_view version = said.empty() ? own : said;
  const std::string_view kind = named.empty() ? kReview : named;
  const std::string_view number = version.substr(version.find('/') + 1);
  const bool known = kind == kReview && (number == "v1" || number == "v1beta1") &&
                     version == fmt::format("{}/{}", kGroup, number);
  if (!known) {
    return Uncalled(fmt::format(
        R"(no kind "{}" is registered for version "{}" in scheme "pkg/runtime/scheme.go:111")",
        kind, version));
  }
  if (number == asked.version) return {};
  return Uncalled(fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", number, kReview,
                              asked.version, kReview));
}

}  // namespace

std::string ReviewText(const ReviewSubject& subject) {
  std::string out = "{";
  out.reserve(subject.object.size() + subject.old_object.size() + 1024);
  // The first has no comma before it.
  AppendRaw(
      out, "kind",
      fmt::format(R"({{"group":"{}","version":"{}","kind":"{}"}})", subject.matched_kind.group,
                  subject.matched_kind.version, subject.matched_kind.name));
  AppendResource(out, "resource", subject.matched_resource);
  if (!subject.subresource.empty()) AppendText(out, "subResource", subject.subresource);
  AppendKind(out, "requestKind", subject.kind);
  AppendResource(out, "requestResource", subject.resource);
  if (!subject.subresource.empty()) AppendText(out, "requestSubResource", subject.subresource);
  if (!subject.name.empty()) AppendText(out, "name", subject.name);
  if (!subject.namespace_name.empty()) AppendText(out, "namespace", subject.namespace_name);
  AppendText(out, "operation", subject.operation);
  AppendRaw(out, "userInfo", UserText(subject.user));
  AppendRaw(out, "object", subject.object);
  AppendRaw(out, "oldObject", subject.old_object);
  AppendRaw(out, "dryRun", subject.dry_run ? "true" : "false");
  AppendRaw(out, "options", subject.options);
  return out + "}";
}

std::string ReviewBody(std::string_view version, std::string_view uid, std::string_view text) {
  std::string out =
      fmt::format(R"({{"kind":"AdmissionReview","apiVersion":"{}/{}","request":{{"uid":"{}",)",
                  kGroup, version, uid);
  out += text.substr(1);
  return out + "}";
}

size_t Verdict::bytes() const {
  size_t sum = failure.size() + refusal.message.size() + patch.size();
  for (const std::string& warning : warnings) sum += warning.size();
  for (const Cause& cause : refusal.causes) sum += cause.message.size();
  return sum;
}

void Verdict::AddTo(Hasher& hasher) const {
  hasher.Add(failure).Add(allowed).Add(patch).Add(warnings.size());
  for (const std::string& warning : warnings) hasher.Add(warning);
  hasher.Add(StatusJson(refusal));
}

Verdict ReadAnswer(const Asked& asked, const env::HttpResponse& response) {
  // Redirects too are no answer: who is asked is who the configuration names.
  if (response.status < kOk || response.status >= 300) return Uncalled(StatusText(response));
  const Result<Json> parsed = codec::ParseJson(response.body.view());
  if (!parsed) return NoVersionOrKind(parsed.error().message);
  if (!parsed->is_object()) {
    return NoVersionOrKind(fmt::format(
        "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string "
        "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        JsonTypeName(*parsed)));
  }
  if (Verdict other = CheckReview(asked, *parsed); other.failed()) return other;
  const Json* answer = api::FindMember(*parsed, "response");
  if (answer == nullptr) return BadAnswer("webhook response was absent");
  if (!answer->is_object()) {
    return Uncalled(
        "json: cannot unmarshal into Go struct field AdmissionReview.response of type "
        "v1.AdmissionResponse");
  }
  if (const std::string wrong = WrongIn(*answer); !wrong.empty()) return Uncalled(wrong);
  if (asked.version == "v1" && api::TextAt(*answer, "uid") != asked.uid) {
    return BadAnswer(fmt::format("expected response.uid={}, got {}", api::QuoteGo(asked.uid),
                                 api::QuoteGo(api::TextAt(*answer, "uid"))));
  }
  // What names neither passes for what was asked for, where nobody ever looked: the older version.
  const std::string_view version = api::TextAt(*parsed, "apiVersion");
  const std::string_view kind = api::TextAt(*parsed, "kind");
  if (asked.version == "v1" && (kind != kReview || version != fmt::format("{}/v1", kGroup))) {
    return BadAnswer(
        fmt::format("expected webhook response of {}/v1, Kind=AdmissionReview, got {}, Kind={}",
                    kGroup, version.empty() ? "/" : version, kind));
  }
  Verdict verdict{.allowed = api::FlagAt(*answer, "allowed")};
  verdict.warnings = api::TextsAt(*answer, "warnings");
  if (verdict.warnings.size() > kWarningsMax) verdict.warnings.resize(kWarningsMax);
  if (!verdict.allowed)
    verdict.refusal =
        RefusalOf(asked.webhook, api::OrEmptyObject(api::FindMember(*answer, "status")));
  if (asked.mutates) return ReadPatch(asked, *answer, std::move(verdict));
  for (const std::string_view member : {"patch", "patchType"}) {
    const Json* value = api::FindMember(*answer, member);
    if (asked.version != "v1" || value == nullptr || (member == "patch" && *value == "")) continue;
    return BadAnswer(fmt::format("validating webhook may not return response.{}", member));
  }
  return verdict;
}

Verdict LostCall(std::string_view url, std::string_view why) {
  return Uncalled(fmt::format("Post {}: {}", api::QuoteGo(url), why));
}

}  // namespace berth::apiserver
