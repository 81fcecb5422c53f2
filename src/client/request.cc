#include "client/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "client/scan.h"

namespace berth::client {
namespace {

// The length of the UTF-8 sequence at the start of `text`, or 0 when there is none that is valid.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  size_t length = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

// Stands in a JSON string as it is.
bool IsPlain(char c) {
  const unsigned char byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
}

Request Write(env::Method method, std::string target, std::string content_type, std::string body) {
  Request request;
  request.method = method;
  request.target = std::move(target);
  request.content_type = std::move(content_type);
  request.body = Bytes(std::move(body));
  return request;
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

struct Civil {
  int64_t year;
  int64_t month;
  int64_t day;
};

// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": civil_from_days.
Civil CivilFromDays(int64_t days) {
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t day_of_era = days - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  const int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {.year = year_of_era + era * 400 + (month <= 2 ? 1 : 0),
          .month = month,
          .day = day_of_year - (153 * shifted + 2) / 5 + 1};
}

std::string Until(Instant instant) {
  const int64_t seconds = instant.seconds();
  const int64_t days = seconds >= 0 ? seconds / 86'400 : -((-seconds + 86'399) / 86'400);
  const int64_t rest = seconds - days * 86'400;
  const Civil civil = CivilFromDays(days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", civil.year, civil.month, civil.day,
                     rest / 3'600, rest / 60 % 60, rest % 60);
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string PathOf(const Resource& resource, const ObjectPath& path) {
  std::string out = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  out += resource.version;
  if (!path.namespace_name.empty()) out += "/namespaces/" + PercentEncode(path.namespace_name);
  out += "/" + resource.plural;
  if (!path.name.empty()) out += "/" + PercentEncode(path.name);
  if (!path.subresource.empty()) out.append("/").append(path.subresource);
  return out;
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
  std::string body = R"({"apiVersion":"v1","kind":"Binding","metadata":{"namespace":)";
  AppendJsonString(body, pod.namespace_name);
  body += R"(,"name":)";
  AppendJsonString(body, pod.name);
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
      PathOf({.group = "", .version = "v1", .plural = "pods"},
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
      PathOf({.group = "", .version = "v1", .plural = "pods"},
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
  std::string body = R"({"metadata":{"uid":)";
  AppendJsonString(body, object.uid);
  body += R"(,"resourceVersion":)";
  AppendJsonString(body, object.resource_version);
  body += R"(},"status":)";
  body.append(status).append("}");
  return Patch(
      resource,
      {.namespace_name = object.namespace_name, .name = object.name, .subresource = "status"},
      PatchType::kStrategicMerge, std::move(body));
}

Request CreateEvent(const EventFacts& facts) {
  // Events of cluster-scoped objects stand in "default", as client-go puts them.
  const std::string namespace_name =
      facts.regarding.namespace_name.empty() ? "default" : facts.regarding.namespace_name;
  const uint64_t suffix =
      Hasher().Add(facts.regarding.uid).Add(facts.time.ns).Add(facts.serial).value();
  std::string body = R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"namespace":)";
  AppendJsonString(body, namespace_name);
  body += R"(,"name":)";
  AppendJsonString(body, fmt::format("{}.{:016x}", facts.regarding.name, suffix));
  body += R"(},"eventTime":)";
  AppendJsonString(body, MicroTime(facts.time));
  const auto member = [&](std::string_view key, std::string_view value) {
    body.append(",\"").append(key).append("\":");
    AppendJsonString(body, value);
  };
  member("reportingController", facts.controller);
  member("reportingInstance", facts.instance);
  member("action", facts.action);
  member("reason", facts.reason);
  member("type", facts.type);
  member("note", CutUtf8(facts.note, kEventNoteBytesMax));
  body += R"(,"regarding":{"apiVersion":)";
  AppendJsonString(body, facts.api_version);
  member("kind", facts.kind);
  if (!facts.regarding.namespace_name.empty()) member("namespace", facts.regarding.namespace_name);
  member("name", facts.regarding.name);
  member("uid", facts.regarding.uid);
  if (!facts.regarding.resource_version.empty()) {
    member("resourceVersion", facts.regarding.resource_version);
  }
  body += "}}";
  Request request = Create({.group = "events.k8s.io", .version = "v1", .plural = "events"},
                           namespace_name, std::move(body));
  request.priority = Priority::kLow;
  return request;
}

void AppendJsonString(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const unsigned char c = static_cast<unsigned char>(text.front());
    const size_t length = Utf8Length(text);
    if (length > 1) {
      out.append(text.substr(0, length));
    } else if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  out.push_back('"');
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

std::string MicroTime(Instant instant) {
  const int64_t micros = (instant.ns - instant.seconds() * 1'000'000'000) / 1'000;
  return fmt::format("{}.{:06}Z", Until(instant), micros);
}

std::string SecondsTime(Instant instant) { return Until(instant) + "Z"; }

}  // namespace berth::client
