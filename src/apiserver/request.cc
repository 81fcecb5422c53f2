#include "apiserver/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/field_error.h"
#include "apiserver/definitions.h"
#include "base/check.h"

namespace berth::apiserver {

namespace {

// /apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/SUBRESOURCE
constexpr size_t kUsualParts = 8;
constexpr std::string_view kAutoscalers = "horizontalpodautoscalers";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decode(std::string_view text, bool plus_is_space) {
  if (!text.contains('%') && !(plus_is_space && text.contains('+'))) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<Subpart> ParseSubpart(const api::Kind& kind, std::string_view name) {
  if (name == "status" && kind.has_status) return Subpart::kStatus;
  if (name == "scale" && kind.has_scale) return Subpart::kScale;
  if (name == "binding" && kind.id == api::KindId::kPod) return Subpart::kBinding;
  if (name == "eviction" && kind.id == api::KindId::kPod) return Subpart::kEviction;
  if (name == "ephemeralcontainers" && kind.id == api::KindId::kPod)
    return Subpart::kEphemeralContainers;
  if (name == "resize" && kind.id == api::KindId::kPod) return Subpart::kResize;
  if (name == "finalize" && kind.id == api::KindId::kNamespace) return Subpart::kFinalize;
  if (name == "token" && kind.id == api::KindId::kServiceAccount) return Subpart::kToken;
  return std::nullopt;
}

// What a kubelet answers of a pod's containers. Nobody could here: nodes are simulated. Who follows
// a log is given the reason as its text, as kubelets do when a log is gone: kubectl 1.36 asks again
// after a failure of any status, without end.
std::optional<Problem> NoContainers(const api::Kind& kind, std::string_view name,
                                    std::string_view target) {
  if (kind.id != api::KindId::kPod) return std::nullopt;
  std::string_view why;
  if (name == "log") why = "there is no output to show";
  if (name == "exec" || name == "attach") why = "there is no process to talk to";
  if (name == "portforward" || name == "proxy") why = "nobody listens on its ports";
  if (why.empty()) return std::nullopt;
  const size_t question = target.find('?');
  const bool follows = name == "log" && question != target.npos &&
                       ParseFlagParameter(Query::Parse(target.substr(question + 1)), "follow");
  return Problem{.code = follows ? 200 : 501,
                 .reason = "NotImplemented",
                 .message = fmt::format("pods on simulated nodes run no containers: {}", why),
                 .text = follows};
}

bool Allows(Subpart subpart, Verb verb) {
  switch (subpart) {
    case Subpart::kNone:
    case Subpart::kContainers:
      return true;
    case Subpart::kStatus:
    case Subpart::kScale:
    case Subpart::kEphemeralContainers:
    case Subpart::kResize:
      return verb == Verb::kGet || verb == Verb::kUpdate || verb == Verb::kPatch;
    case Subpart::kBinding:
    case Subpart::kEviction:
    case Subpart::kToken:
      return verb == Verb::kCreate;
    case Subpart::kFinalize:
      return verb == Verb::kUpdate;
  }
  return false;
}

// What a method means for a collection, one object, or a subresource.
Outcome<Verb> VerbOf(const ResourceRequest& request, env::Method method) {
  const bool named = !request.name.empty();
  if (request.kind->posted && method != env::Method::kPost) return MethodNotAllowed();
  const bool namespaced = request.kind->namespaced;
  switch (method) {
    case env::Method::kGet:
      if (named) return Verb::kGet;
      return ParseFlagParameter(request.query, "watch") ? Verb::kWatch : Verb::kList;
    case env::Method::kPost:
      // Of a user's kind it is created all the same, as what the body says.
      if (named && request.subpart == Subpart::kNone && !request.kind->custom)
        return MethodNotAllowed();
      if (namespaced && request.namespace_name.empty()) return MethodNotAllowed();
      return Verb::kCreate;
    case env::Method::kPut:
    case env::Method::kPatch:
      if (!named && request.kind->custom) return BadRequest("name must be provided");
      if (!named) return MethodNotAllowed();
      return method == env::Method::kPut ? Verb::kUpdate : Verb::kPatch;
    case env::Method::kDelete:
      if (named) return Verb::kDelete;
      if (!request.kind->has_deletecollection) return MethodNotAllowed();
      if (namespaced && request.namespace_name.empty()) return MethodNotAllowed();
      return Verb::kDeleteCollection;
    case env::Method::kHead:
    case env::Method::kOther:
      return MethodNotAllowed();
  }
  return MethodNotAllowed();
}

// Of a user's kind: what a method means there is not done.
std::unexpected<Problem> MethodNotSupported(const api::Kind& kind, std::string_view verb) {
  auto problem = MethodNotAllowed();
  problem.error().kind = kind.plural;
  problem.error().group = kind.group;
  problem.error().message =
      fmt::format("{} is not supported on resources of kind \"{}\"", verb, kind.group_resource());
  return problem;
}

// Whether any kind lives in the group, and in the group's version.
bool KnowsGroup(const Definitions& definitions, std::string_view group, std::string_view version) {
  for (const api::Kind& kind : api::Kinds()) {
    if (kind.is_served() && kind.group == group && (version.empty() || kind.version == version)) {
      return true;
    }
  }
  return definitions.KnowsGroup(group, version);
}

// namespaces/NS/bindings is a second way to the binding of the pod that the body names.
bool IsBindings(std::string_view group, const std::vector<std::string>& rest) {
  return group.empty() && rest.size() == 3 && rest[0] == "namespaces" && rest[2] == "bindings";
}

Outcome<ResourceRequest> ResolveParts(std::string_view group, std::string_view version,
                                      const std::vector<std::string>& rest,
                                      const env::HttpRequest& http,
                                      const Definitions& definitions) {
  ResourceRequest request;
  request.http = &http;
  size_t at = 0;
  // namespaces/NS/<plural>/... ; namespaces/NS[/status|/finalize] is the Namespace itself.
  if (rest.size() >= 3 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize") {
    request.namespace_name = rest[1];
    at = 2;
  }
  request.kind = api::FindResource(group, version, rest[at]);
  if (request.kind == nullptr) request.kind = definitions.FindResource(group, version, rest[at]);
  if (request.kind == nullptr || !request.kind->is_served()) return NoSuchResource();
  if (request.kind->namespaced == request.namespace_name.empty()) {
    // Across all namespaces there are collections only.
    if (!request.kind->namespaced || rest.size() > at + 1) return NoSuchResource();
  }
  // A question is asked of its collection, in a namespace or of none.
  const bool asks_elsewhere = rest.size() > at + 1 || (request.kind->namespaced && at == 0);
  if (request.kind->posted && asks_elsewhere) return NoSuchResource();
  if (rest.size() > at + 1) request.name = rest[at + 1];
  if (rest.size() > at + 2) {
    request.no_containers = NoContainers(*request.kind, rest[at + 2], http.target);
    if (request.no_containers) {
      request.subpart = Subpart::kContainers;
      return request;
    }
    const std::optional<Subpart> subpart = ParseSubpart(*request.kind, rest[at + 2]);
    if (!subpart && request.kind->custom) return NotFound(request.subject());
    if (!subpart || rest.size() > at + 3) return NoSuchResource();
    request.subpart = *subpart;
  }
  return request;
}

}  // namespace

Query Query::Parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view item = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    query.items_.emplace_back(
        Decode(item.substr(0, equals), true),
        equals == std::string_view::npos ? "" : Decode(item.substr(equals + 1), true));
  }
  return query;
}

std::optional<std::string_view> Query::Find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Query::All(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : items_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

std::string PercentDecode(std::string_view text) { return Decode(text, false); }

Target ParseTarget(std::string_view target) {
  Target result;
  const size_t question = target.find('?');
  if (question != std::string_view::npos) result.query = target.substr(question + 1);
  result.path = Decode(target.substr(0, question), false);
  // An escaped slash is one, as upstream.
  std::string_view path = result.path;
  if (path.starts_with('/')) path.remove_prefix(1);
  result.parts.reserve(kUsualParts);
  while (!path.empty()) {
    const size_t end = path.find('/');
    result.parts.emplace_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
  }
  return result;
}

bool IsWellEscaped(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  for (size_t at = path.find('%'); at != path.npos; at = path.find('%', at + 1)) {
    if (at + 2 >= path.size() || HexDigit(path[at + 1]) < 0 || HexDigit(path[at + 2]) < 0)
      return false;
  }
  return true;
}

std::string_view MethodWord(env::Method method) {
  switch (method) {
    case env::Method::kGet:
      return "get";
    case env::Method::kPost:
      return "create";
    case env::Method::kPut:
      return "update";
    case env::Method::kPatch:
      return "patch";
    case env::Method::kDelete:
      return "delete";
    case env::Method::kHead:
    case env::Method::kOther:
      break;
  }
  return "";
}

Outcome<ResourceRequest> ParseResource(Target target, const env::HttpRequest& http,
                                       const Definitions& definitions) {
  std::vector<std::string>& rest = target.parts;
  CHECK(!rest.empty());
  const bool core = rest[0] == "api";
  const size_t head = core ? 2 : 3;
  if (rest.size() < head) return NoSuchPage();
  const std::string group = core ? std::string() : std::move(rest[1]);
  const std::string version = std::move(rest[head - 1]);
  if (group == "autoscaling" && std::ranges::find(rest, kAutoscalers) != rest.end())
    return NoAutoscalers();
  if (!KnowsGroup(definitions, group, "")) return NoSuchPage();
  if (!KnowsGroup(definitions, group, version)) return NoSuchResource();
  rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(head));
  // The old form of a watch: /api/v1/watch/...
  const bool old_watch = rest.size() > 1 && rest[0] == "watch";
  if (old_watch) rest.erase(rest.begin());
  if (rest.empty()) return NoSuchResource();
  for (const std::string& part : rest) {
    if (part.empty()) return NoSuchResource();
  }
  const bool bindings = IsBindings(group, rest);
  if (bindings) rest[2] = "pods";
  Outcome<ResourceRequest> request = ResolveParts(group, version, rest, http, definitions);
  if (!request) return request;
  request->query = Query::Parse(target.query);
  if (bindings) request->subpart = Subpart::kBinding;
  const auto not_allowed = [&]() -> std::unexpected<Problem> {
    if (!request->kind->custom) return MethodNotAllowed();
    return MethodNotSupported(*request->kind, MethodWord(http.method));
  };
  const Outcome<Verb> verb = VerbOf(*request, http.method);
  if (!verb && verb.error().code == 405) return not_allowed();
  if (!verb) return std::unexpected(verb.error());
  // Whoever may watch may do that alone by such a path.
  if (old_watch && http.method != env::Method::kGet) return MethodNotAllowed();
  request->verb = old_watch ? Verb::kWatch : *verb;
  if (!Allows(request->subpart, request->verb)) return not_allowed();
  return request;
}

std::optional<uint64_t> ParseRevision(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Outcome<std::optional<int64_t>> ParseIntegerParameter(const Query& query, std::string_view name) {
  const std::optional<std::string_view> text = query.Find(name);
  if (!text || text->empty()) return std::optional<int64_t>();
  std::string_view digits = *text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range && end == digits.data() + digits.size()) {
    return BadRequest(
        fmt::format("strconv.ParseInt: parsing {}: value out of range", api::QuoteGo(*text)));
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return BadRequest(
        fmt::format("strconv.ParseInt: parsing {}: invalid syntax", api::QuoteGo(*text)));
  }
  return std::optional(value);
}

bool ParseFlagParameter(const Query& query, std::string_view name) {
  const std::optional<std::string_view> text = query.Find(name);
  return text && *text != "false" && *text != "0";
}

}  // namespace berth::apiserver
