#include "apiserver/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/text.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

Problem About(Subject subject, int code, std::string reason, std::string message) {
  return {.code = code,
          .reason = std::move(reason),
          .message = std::move(message),
          .name = std::string(subject.name),
          .group = std::string(subject.kind.group),
          .kind = std::string(subject.kind.plural)};
}

Problem Plain(int code, std::string reason, std::string message, bool has_details) {
  return {.code = code,
          .reason = std::move(reason),
          .message = std::move(message),
          .has_details = has_details};
}

void AddCauses(Problem& problem, const api::FieldErrors& errors) {
  for (const api::FieldError& error : api::ListedOf(errors)) {
    problem.causes.push_back({.reason = std::string(api::CauseOf(error.type)),
                              .message = api::BodyOf(error),
                              .field = error.field});
  }
}

// Upstream's bounds: warnings are told whole while they are within the first, else each is cut to
// the second until they are.
constexpr int64_t kWarningCharactersMax = 4096;
constexpr int64_t kLongWarningCharactersMax = 256;

std::string_view FirstCharacters(std::string_view text, int64_t count) {
  size_t end = 0;
  for (int64_t begun = 0; end < text.size(); ++end) {
    begun += api::CharactersOf(text.substr(end, 1));
    if (begun > count) break;
  }
  return text.substr(0, end);
}

// Whether a text has characters that no header may.
bool HasControls(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    // The second set of them, from U+0080 on, is two bytes of UTF-8 each.
    if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next < 0xa0)) return true;
  }
  return codec::ValidUtf8Prefix(text) != text.size();
}

// Appends `"key":"text"` with a comma before it unless it opens the object.
void AppendMember(std::string& out, std::string_view key, std::string_view text) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += key;
  out += "\":";
  codec::AppendJsonString(text, out);
}

void AppendDetails(const Problem& problem, std::string& out) {
  out += ",\"details\":{";
  if (!problem.name.empty()) AppendMember(out, "name", problem.name);
  if (!problem.group.empty()) AppendMember(out, "group", problem.group);
  if (!problem.kind.empty()) AppendMember(out, "kind", problem.kind);
  if (!problem.causes.empty()) {
    if (out.back() != '{') out += ',';
    out += "\"causes\":[";
    for (const Cause& cause : problem.causes) {
      if (out.back() != '[') out += ',';
      out += '{';
      if (!cause.reason.empty()) AppendMember(out, "reason", cause.reason);
      if (!cause.message.empty()) AppendMember(out, "message", cause.message);
      if (!cause.field.empty()) AppendMember(out, "field", cause.field);
      out += '}';
    }
    out += ']';
  }
  if (problem.retry_after_seconds > 0) {
    if (out.back() != '{') out += ',';
    out += fmt::format("\"retryAfterSeconds\":{}", problem.retry_after_seconds);
  }
  out += '}';
}

}  // namespace

std::unexpected<Problem> NotFound(Subject subject) {
  return std::unexpected(
      About(subject, 404, "NotFound",
            fmt::format("{} \"{}\" not found", subject.kind.group_resource(), subject.name)));
}

std::unexpected<Problem> AlreadyExists(Subject subject) {
  return std::unexpected(
      About(subject, 409, "AlreadyExists",
            fmt::format("{} \"{}\" already exists", subject.kind.group_resource(), subject.name)));
}

std::unexpected<Problem> Conflict(Subject subject, std::string_view why) {
  return std::unexpected(About(subject, 409, "Conflict",
                               fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                                           subject.kind.group_resource(), subject.name, why)));
}

std::unexpected<Problem> Stale(Subject subject) {
  return Conflict(subject,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

std::unexpected<Problem> Forbidden(Subject subject, std::string_view why) {
  const std::string resource = subject.kind.group_resource();
  return std::unexpected(
      About(subject, 403, "Forbidden",
            subject.name.empty()
                ? fmt::format("{} is forbidden: {}", resource, why)
                : fmt::format("{} \"{}\" is forbidden: {}", resource, subject.name, why)));
}

std::unexpected<Problem> Invalid(Subject subject, const api::FieldErrors& errors) {
  // Both groups' Events are one kind to upstream's validation.
  const api::Kind& kind =
      subject.kind.defined != nullptr
          ? subject.kind
          : api::KindOf(subject.kind.stored ? subject.kind.storage : subject.kind.id);
  Problem problem = About({.kind = kind, .name = subject.name}, 422, "Invalid",
                          api::InvalidMessage(kind.group_kind(), subject.name, errors));
  problem.kind = kind.name;
  AddCauses(problem, errors);
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> InvalidOptions(std::string_view options, const api::FieldErrors& errors) {
  Problem problem =
      Plain(422, "Invalid", api::InvalidMessage(fmt::format("{}.meta.k8s.io", options), "", errors),
            true);
  problem.group = "meta.k8s.io";
  problem.kind = options;
  AddCauses(problem, errors);
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> BadRequest(std::string message) {
  return std::unexpected(Plain(400, "BadRequest", std::move(message), false));
}

std::string NoRevision(std::string_view text) {
  return fmt::format(
      "resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: invalid syntax",
      api::QuoteGo(text));
}

std::unexpected<Problem> BadVersion(std::string_view version) {
  return BadRequest("invalid resource version: " + NoRevision(version));
}

std::unexpected<Problem> Unclassified(std::string message) {
  return std::unexpected(Plain(500, "", std::move(message), false));
}

std::unexpected<Problem> InternalError(std::string_view why) {
  Problem problem =
      Plain(500, "InternalError", fmt::format("Internal error occurred: {}", why), true);
  problem.causes.push_back({.reason = "", .message = std::string(why), .field = ""});
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> TookTooLong() {
  return std::unexpected(Plain(504, "Timeout",
                               "Timeout: request did not complete within requested timeout - "
                               "context deadline exceeded",
                               true));
}

std::unexpected<Problem> MethodNotAllowed() {
  return std::unexpected(Plain(405, "MethodNotAllowed",
                               "the server does not allow this method on the requested resource",
                               true));
}

std::unexpected<Problem> NoSuchResource() {
  return std::unexpected(
      Plain(404, "NotFound", "the server could not find the requested resource", true));
}

std::unexpected<Problem> NoSuchPage() {
  Problem problem = Plain(404, "NotFound", "404 page not found", false);
  problem.text = true;
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> Unauthorized() {
  return std::unexpected(Plain(401, "Unauthorized", "Unauthorized", false));
}

std::unexpected<Problem> MalformedRequest() {
  Problem problem = Plain(400, "BadRequest", "400 Bad Request", false);
  problem.text = true;
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> NoAutoscalers() {
  constexpr std::string_view kWhy =
      "horizontalpodautoscalers are not served: nothing here scales workloads by itself, "
      "kubectl scale does";
  Problem problem = Plain(404, "NotFound", std::string(kWhy), true);
  problem.warnings.emplace_back(kWhy);
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> NotAcceptable(std::string message) {
  return std::unexpected(Plain(406, "NotAcceptable", std::move(message), false));
}

std::unexpected<Problem> UnsupportedMediaType(std::string_view accepted) {
  return std::unexpected(
      Plain(415, "UnsupportedMediaType",
            fmt::format("the body of the request was in an unknown format - accepted media types "
                        "include: {}",
                        accepted),
            false));
}

std::unexpected<Problem> TooLarge(std::string_view what) {
  return std::unexpected(Plain(413, "RequestEntityTooLarge",
                               fmt::format("Request entity too large: {}", what), false));
}

std::unexpected<Problem> Expired(std::string message) {
  return std::unexpected(Plain(410, "Expired", std::move(message), false));
}

std::unexpected<Problem> VersionTooLarge(uint64_t wanted, uint64_t current) {
  Problem problem = Plain(
      504, "Timeout",
      fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current), true);
  problem.causes.push_back(
      {.reason = "ResourceVersionTooLarge", .message = "Too large resource version", .field = ""});
  problem.retry_after_seconds = 1;
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> TooManyRequests(std::string message, int64_t retry_after_seconds) {
  Problem problem = Plain(429, "TooManyRequests", std::move(message), true);
  problem.retry_after_seconds = retry_after_seconds;
  return std::unexpected(std::move(problem));
}

std::unexpected<Problem> NoRoom(std::string message) {
  return std::unexpected(Plain(507, "InsufficientStorage", std::move(message), true));
}

std::string StatusJson(const Problem& problem) {
  std::string out = R"({"kind":"Status","apiVersion":"v1","metadata":{)";
  if (!problem.continue_token.empty()) AppendMember(out, "continue", problem.continue_token);
  out += R"(},"status":"Failure")";
  if (!problem.message.empty()) AppendMember(out, "message", problem.message);
  if (!problem.reason.empty()) AppendMember(out, "reason", problem.reason);
  if (problem.has_details) AppendDetails(problem, out);
  out += fmt::format(",\"code\":{}}}", problem.code);
  return out;
}

env::HttpResponse ToResponse(const Problem& problem) {
  env::HttpResponse response{.status = problem.code, .headers = {}, .body = {}};
  if (problem.text) {
    response.headers = {{"content-type", "text/plain; charset=utf-8"},
                        {"x-content-type-options", "nosniff"}};
    response.body = Bytes(problem.message + "\n");
    return response;
  }
  response.headers = {{"content-type", "application/json"}};
  if (problem.retry_after_seconds > 0) {
    response.headers.push_back({"retry-after", std::to_string(problem.retry_after_seconds)});
  }
  AddWarningHeaders(problem.warnings, response.headers);
  response.body = Bytes(StatusJson(problem) + "\n");
  return response;
}

env::Header WarningHeader(std::string_view warning) {
  std::string value = "299 - \"";
  for (const char c : warning) {
    if (c == '"' || c == '\\') value += '\\';
    value += c;
  }
  return {"warning", value + '"'};
}

void AddWarningHeaders(std::span<const std::string> warnings, std::vector<env::Header>& headers) {
  std::vector<std::string_view> told;
  std::set<std::string_view> seen;
  int64_t all = 0;
  for (const std::string& warning : warnings) {
    if (warning.empty() || HasControls(warning) || !seen.insert(warning).second) continue;
    told.push_back(warning);
    all += api::CharactersOf(warning);
  }
  int64_t written = 0;
  for (std::string_view text : told) {
    if (written >= kWarningCharactersMax) return;
    if (all > kWarningCharactersMax) text = FirstCharacters(text, kLongWarningCharactersMax);
    written += api::CharactersOf(text);
    headers.push_back(WarningHeader(text));
  }
}

std::string SuccessJson(std::string_view details, int code) {
  std::string out = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success")";
  out += details;
  // Creating subresources carry the code; deletions don't.
  if (code != 200) (out += ",\"code\":") += std::to_string(code);
  out += '}';
  return out;
}

}  // namespace berth::apiserver
