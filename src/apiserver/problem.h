#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "api/kinds.h"
#include "env/http.h"

namespace berth::apiserver {

struct Cause {
  std::string reason;
  std::string message;
  std::string field;
};

// What clients see instead of what they asked for, nearly always a failure: a Status of
// apimachinery's meta/v1, in upstream's words (k8s.io/apimachinery api/errors).
struct Problem {
  int code = 500;
  std::string reason;
  std::string message;
  bool has_details = true;
  std::string name;
  std::string group;
  std::string kind;  // The resource ("pods"), or the kind where upstream gives that.
  std::vector<Cause> causes;
  int64_t retry_after_seconds = 0;
  std::string continue_token;
  // What else there is to tell who asked, in Warning headers.
  std::vector<std::string> warnings;
  // The message alone: "404 page not found" of paths that are no API, what a followed log says.
  bool text = false;
};

template <typename T>
using Outcome = std::expected<T, Problem>;

// Names an object in a problem: the resource of `kind` and the object's name.
struct Subject {
  const api::Kind& kind;
  std::string_view name;
};

std::unexpected<Problem> NotFound(Subject subject);
std::unexpected<Problem> AlreadyExists(Subject subject);
// `Operation cannot be fulfilled on pods "a": <why>`.
std::unexpected<Problem> Conflict(Subject subject, std::string_view why);
// The conflict of a stale resourceVersion.
std::unexpected<Problem> Stale(Subject subject);
// `pods "a" is forbidden: <why>`.
std::unexpected<Problem> Forbidden(Subject subject, std::string_view why);
std::unexpected<Problem> Invalid(Subject subject, const api::FieldErrors& errors);
// The same for options of a request: `ListOptions.meta.k8s.io "" is invalid: ...`.
std::unexpected<Problem> InvalidOptions(std::string_view options, const api::FieldErrors& errors);
std::unexpected<Problem> BadRequest(std::string message);
// Why a resourceVersion in a query is none.
[[nodiscard]] std::string NoRevision(std::string_view text);
// A resourceVersion that is no number. Upstream says so of lists, and 500 of whatever else names
// one, as if it were the server's fault.
std::unexpected<Problem> BadVersion(std::string_view version);
// An error that upstream doesn't classify: 500 without a reason.
std::unexpected<Problem> Unclassified(std::string message);
// `Internal error occurred: <why>`.
std::unexpected<Problem> InternalError(std::string_view why);
// 504: it took longer than a request may.
std::unexpected<Problem> TookTooLong();
std::unexpected<Problem> MethodNotAllowed();
// An API path that names no resource.
std::unexpected<Problem> NoSuchResource();
// A path that is no API path.
std::unexpected<Problem> NoSuchPage();
std::unexpected<Problem> Unauthorized();
// What is no HTTP request to upstream: text, as Go's server answers.
std::unexpected<Problem> MalformedRequest();
// kubectl autoscale posts without asking what is served. It may show the warning alone.
std::unexpected<Problem> NoAutoscalers();
std::unexpected<Problem> NotAcceptable(std::string message);
std::unexpected<Problem> UnsupportedMediaType(std::string_view accepted);
std::unexpected<Problem> TooLarge(std::string_view what);
std::unexpected<Problem> Expired(std::string message);
// A revision from the future.
std::unexpected<Problem> VersionTooLarge(uint64_t wanted, uint64_t current);
std::unexpected<Problem> TooManyRequests(std::string message, int64_t retry_after_seconds);

// There is no room for what a write would store.
std::unexpected<Problem> NoRoom(std::string message);

// The Status object, without a line break.
[[nodiscard]] std::string StatusJson(const Problem& problem);
[[nodiscard]] env::HttpResponse ToResponse(const Problem& problem);
[[nodiscard]] env::Header WarningHeader(std::string_view warning);
// The headers of warnings, each told once and in sum no more than upstream tells: many or long ones
// are cut, and the last left out.
void AddWarningHeaders(std::span<const std::string> warnings, std::vector<env::Header>& headers);
// A Status of success; `details` may be empty or an object with a leading comma:
// `,"details":{...}`.
[[nodiscard]] std::string SuccessJson(std::string_view details, int code);

}  // namespace berth::apiserver
