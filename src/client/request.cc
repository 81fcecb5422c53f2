#include "client/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/timestamp.h"
#include "base/hash.h"
#include "codec/json.h"
#include "codec/scan.h"

namespace berth::client {

using codec::StringMember;

namespace {

Request Write(env::Method method, std::string target, std::string content_type, std::string body) {
  Request request;
  request.method = method;
  request.target = std::move(target);
  request.content_type = std::move(content_type);
  request.body = Bytes(std::move(body));
  return request;
}

// What most paths, and the documents that are made here beside what they carry, stay below.
constexpr size_t kPathBytes = 128;
constexpr size_t kDocumentBytes = 256;

void AppendEncoded(std::string& out, std::string_view text) {
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) continue;
    out.append(text.substr(from, i - from));
    fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    from = i + 1;
  }
  out.append(text.substr(from));
}

std::string Preconditions(std::string_view uid) {
  if (uid.empty()) return "";
  return fmt::format(R"("preconditions":{{"uid":{}}})", JsonString(uid));
}

std::string DeleteOptions(std::string_view uid, std::optional<int64_t> grace_seconds,
                          std::string_view propagation) {
  std::string out = R"({"apiVersion":"v1","kind":"DeleteOptions")";
  if (const std::string fence = Preconditions(uid); !fence.empty()) out += "," + fence;
  if (grace_seconds) out += fmt::format(R"(,"gracePeriodSeconds":{})", *grace_seconds);
  if (!propagation.empty()) {
    out += R"(,"propagationPolicy":)";
    AppendJsonString(out, propagation);
  }
  return out + "}";
}

// The segments of a target's path, and which of them names the resource.
struct PathParts {
  std::vector<std::string_view> parts;
  size_t at;
};
PathParts SplitPath(std::string_view target) {
  std::vector<std::string_view> parts;
  std::string_view path = target.substr(0, target.find('?'));
  while (!path.empty()) {
    path.remove_prefix(1);  // The slash.
    const size_t end = path.find('/');
    parts.push_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view() : path.substr(end);
  }
  // Behind "api" and the version, or "apis", the group and the version.
  size_t at = !parts.empty() && parts[0] == "apis" ? 3 : 2;
  if (parts.size() > at + 2 && parts[at] == "namespaces") at += 2;
  return {.parts = std::move(parts), .at = at};
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string out;
  AppendEncoded(out, text);
  return out;
}

Resource Pods() { return {.plural = "pods"}; }

std::string PathOf(const Resource& resource, const ObjectPath& path) {
  std::string out;
  out.reserve(kPathBytes);
  out += resource.group.empty() ? "/api/" : "/apis/";
  if (!resource.group.empty()) out.append(resource.group).append(1, '/');
  out += resource.version;
  if (!path.namespace_name.empty()) {
    out += "/namespaces/";
    AppendEncoded(out, path.namespace_name);
  }
  out.append(1, '/').append(resource.plural);
  if (!path.name.empty()) {
    out += '/';
    AppendEncoded(out, path.name);
  }
  if (!path.subresource.empty()) out.append(1, '/').append(path.subresource);
  return out;
}

Access AccessOf(env::Method method, std::string_view target) {
  const auto [parts, at] = SplitPath(target);
  const bool one = parts.size() > at + 1;
  Access access;
  if (parts.size() > at) access.resource = parts[at];
  if (parts.size() > at + 2) access.resource += fmt::format("/{}", parts[at + 2]);
  switch (method) {
    case env::Method::kPost:
      access.verb = "create";
      break;
    case env::Method::kPut:
      access.verb = "update";
      break;
    case env::Method::kPatch:
      access.verb = "patch";
      break;
    case env::Method::kDelete:
      access.verb = one ? "delete" : "deletecollection";
      break;
    default:
      access.verb = one ? "get" : "list";
  }
  return access;
}

std::string FlowOf(const Request& request) {
  const auto [parts, at] = SplitPath(request.target);
  std::string flow = fmt::format("{} ", ToString(request.method));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != at + 1) flow.append(1, '/').append(parts[i]);
  }
  return flow;
}

std::string_view ToString(Outcome outcome) {
  constexpr std::array<std::string_view, 5> kNames = {"Done", "Conflict", "Gone", "Refused",
                                                      "Unknown"};
  return kNames[static_cast<size_t>(outcome)];
}

Outcome OutcomeOf(int http_status) {
  if (http_status >= 200 && http_status < 300) return Outcome::kDone;
  if (http_status == 409) return Outcome::kConflict;
  if (http_status == 404 || http_status == 410) return Outcome::kGone;
  if (http_status >= 300 && http_status < 500) return Outcome::kRefused;
  return Outcome::kUnknown;
}

std::string TextOf(env::CallFailure failure, std::string_view why) {
  constexpr std::array<std::string_view, 3> kTexts = {"no connection to the server",
                                                      "the connection broke", "no answer in time"};
  const std::string_view text = kTexts.at(static_cast<size_t>(failure));
  return why.empty() ? std::string(text) : fmt::format("{}: {}", text, why);
}

ApiStatus StatusOf(const env::HttpResponse& response) {
  ApiStatus status{.code = response.status, .reason = {}, .message = {}};
  const std::string_view body = response.body.view();
  if (StringMember(body, "kind") != "Status") return status;
  status.reason = StringMember(body, "reason");
  status.message = StringMember(body, "message");
  return status;
}

Request Get(const Resource& resource, const ObjectPath& path) {
  return Write(env::Method::kGet, PathOf(resource, path), "", "");
}

Request Bind(const ObjectRef& pod, std::string_view node,
             const std::vector<std::pair<std::string, std::string>>& annotations) {
  std::string body;
  body.reserve(kDocumentBytes);
  body += R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":)";
  AppendJsonString(body, pod.name);
  body += R"(,"namespace":)";
  AppendJsonString(body, pod.namespace_name);
  body += R"(,"uid":)";
  AppendJsonString(body, pod.uid);
  if (!annotations.empty()) {
    body += R"(,"annotations":{)";
    for (size_t i = 0; i < annotations.size(); ++i) {
      if (i > 0) body += ",";
      AppendJsonString(body, annotations[i].first);
      body += ":";
      AppendJsonString(body, annotations[i].second);
    }
    body += "}";
  }
  body += R"(},"target":{"apiVersion":"v1","kind":"Node","name":)";
  AppendJsonString(body, node);
  body += "}}";
  Request request = Write(
      env::Method::kPost,
      PathOf(Pods(),
             {.namespace_name = pod.namespace_name, .name = pod.name, .subresource = "binding"}),
      "application/json", std::move(body));
  request.priority = Priority::kHigh;
  return request;
}

Request Delete(const Resource& resource, const ObjectRef& object,
               std::optional<int64_t> grace_seconds, std::string_view propagation) {
  return Write(
      env::Method::kDelete,
      PathOf(resource,
             {.namespace_name = object.namespace_name, .name = object.name, .subresource = {}}),
      "application/json", DeleteOptions(object.uid, grace_seconds, propagation));
}

Request Evict(const ObjectRef& pod, std::optional<int64_t> grace_seconds) {
  std::string body = R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":)";
  AppendJsonString(body, pod.namespace_name);
  body += R"(,"name":)";
  AppendJsonString(body, pod.name);
  body += R"(},"deleteOptions":)" + DeleteOptions(pod.uid, grace_seconds, {}) + "}";
  Request request = Write(
      env::Method::kPost,
      PathOf(Pods(),
             {.namespace_name = pod.namespace_name, .name = pod.name, .subresource = "eviction"}),
      "application/json", std::move(body));
  request.retry_throttled = false;
  return request;
}

Request Create(const Resource& resource, std::string_view namespace_name, std::string document) {
  return Write(env::Method::kPost,
               PathOf(resource, {.namespace_name = namespace_name, .name = {}, .subresource = {}}),
               "application/json", std::move(document));
}

Request Update(const Resource& resource, const ObjectPath& path, std::string document) {
  return Write(env::Method::kPut, PathOf(resource, path), "application/json", std::move(document));
}

Request Patch(const Resource& resource, const ObjectPath& path, PatchType type, std::string body) {
  constexpr std::array<std::string_view, 3> kTypes = {"application/merge-patch+json",
                                                      "application/strategic-merge-patch+json",
                                                      "application/json-patch+json"};
  return Write(env::Method::kPatch, PathOf(resource, path),
               std::string(kTypes[static_cast<size_t>(type)]), std::move(body));
}

Request PatchStatus(const Resource& resource, const ObjectRef& object, std::string_view status) {
  std::string body;
  body.reserve(kDocumentBytes + status.size());
  body += R"({"metadata":{"uid":)";
  AppendJsonString(body, object.uid);
  if (!object.resource_version.empty()) {
    body += R"(,"resourceVersion":)";
    AppendJsonString(body, object.resource_version);
  }
  body += R"(},"status":)";
  body.append(status).append("}");
  return Patch(
      resource,
      {.namespace_name = object.namespace_name, .name = object.name, .subresource = "status"},
      PatchType::kStrategicMerge, std::move(body));
}

std::string EventName(std::string_view object, uint64_t suffix) {
  constexpr size_t kNameBytesMax = 253;  // Of a DNS subdomain.
  constexpr size_t kSuffixBytes = 1 + 16;
  object = object.substr(0, kNameBytesMax - kSuffixBytes);
  // No label of it may be empty, or end in a hyphen.
  while (object.ends_with('.') || object.ends_with('-')) object.remove_suffix(1);
  return fmt::format("{}.{:016x}", object, suffix);
}

Request CreateEvent(const EventFacts& facts) {
  // Events of cluster-scoped objects stand in "default", as client-go puts them.
  const std::string namespace_name =
      facts.regarding.namespace_name.empty() ? "default" : facts.regarding.namespace_name;
  const uint64_t suffix =
      Hasher().Add(facts.regarding.uid).Add(facts.time.ns).Add(facts.serial).value();
  // Members in the order in which berth's own server keeps them, which saves it the sorting.
  std::string body;
  body.reserve(3 * kDocumentBytes + facts.note.size());
  body += R"({"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":)";
  AppendJsonString(body, EventName(facts.regarding.name, suffix));
  body += R"(,"namespace":)";
  AppendJsonString(body, namespace_name);
  body += '}';
  const auto member = [&](std::string_view key, std::string_view value) {
    body.append(",\"").append(key).append("\":");
    AppendJsonString(body, value);
  };
  member("action", facts.action);
  member("eventTime", MicroTime(facts.time));
  member("note", CutUtf8(facts.note, kEventNoteBytesMax));
  member("reason", facts.reason);
  const auto reference = [&](std::string_view key, const ObjectRef& object) {
    body.append(",\"").append(key).append(R"(":{"apiVersion":)");
    AppendJsonString(body, facts.api_version);
    member("kind", facts.kind);
    member("name", object.name);
    if (!object.namespace_name.empty()) member("namespace", object.namespace_name);
    if (!object.resource_version.empty()) member("resourceVersion", object.resource_version);
    member("uid", object.uid);
    body += '}';
  };
  reference("regarding", facts.regarding);
  if (facts.related) reference("related", *facts.related);
  member("reportingController", facts.controller);
  member("reportingInstance", facts.instance);
  member("type", facts.type);
  body += '}';
  Request request = Create({.group = "events.k8s.io", .version = "v1", .plural = "events"},
                           namespace_name, std::move(body));
  request.priority = Priority::kLow;
  return request;
}

void AppendJsonString(std::string& out, std::string_view text) {
  codec::AppendJsonString(text, out);
}

std::string JsonString(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  AppendJsonString(out, text);
  return out;
}

std::string_view CutUtf8(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string MicroTime(Instant instant) { return api::PrintMicroTime(instant); }

std::string SecondsTime(Instant instant) { return api::PrintTimestamp(instant); }

}  // namespace berth::client
