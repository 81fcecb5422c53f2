#include "explore/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace berth::explore {
namespace {

std::vector<std::string_view> Segments(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) segments.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return segments;
}

}  // namespace

std::string MemberIn(std::string_view json, std::string_view name, std::string_view from) {
  const size_t start = from.empty() ? 0 : json.find(from);
  if (start == std::string_view::npos) return {};
  const std::string pattern = fmt::format("\"{}\":\"", name);
  const size_t at = json.find(pattern, start);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + pattern.size());
  return std::string(json.substr(0, json.find('"')));
}

std::string NameIn(std::string_view json) { return MemberIn(json, "name", "\"metadata\":{"); }

std::string_view QueryValue(std::string_view target, std::string_view key) {
  size_t at = target.find('?');
  while (at != std::string_view::npos) {
    target.remove_prefix(at + 1);
    if (target.starts_with(key) && target.substr(key.size()).starts_with('=')) {
      return target.substr(key.size() + 1, target.find('&') - key.size() - 1);
    }
    at = target.find('&');
  }
  return {};
}

std::string Counted(uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string Words(const env::HttpRequest& request) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  const std::vector<std::string_view> segments = Segments(path);
  if (segments.empty()) return "request";
  const auto kind = std::ranges::find_if(segments, [](std::string_view segment) {
    return segment == "pods" || segment == "nodes" || segment == "events" ||
           segment == "poddisruptionbudgets" || segment == "podgroups" ||
           segment == "priorityclasses" || segment == "workloads" || segment == "clusterqueues" ||
           segment == "localqueues" || segment == "cohorts" || segment == "resourceflavors" ||
           segment == "topologies" || segment == "admissionchecks";
  });
  if (kind == segments.end()) return fmt::format("{} of {}", ToString(request.method), path);
  const std::string_view one = kind->substr(0, kind->size() - 1);
  const std::string_view body = request.body.view();
  if (*kind == "events") {
    return fmt::format("event {} of pod {}", MemberIn(body, "reason"),
                       MemberIn(body, "name", "\"regarding\":{"));
  }
  if (kind + 1 == segments.end()) {
    const bool watch = request.target.contains("watch=true");
    return fmt::format("{} of {}", watch ? "watch" : "list", *kind);
  }
  const std::string_view name = kind[1];
  const std::string_view sub = kind + 2 == segments.end() ? std::string_view() : kind[2];
  if (sub == "binding") {
    return fmt::format("binding of pod {} to node {}", name,
                       MemberIn(body, "name", "\"target\":{"));
  }
  if (sub == "eviction") return fmt::format("eviction of pod {}", name);
  switch (request.method) {
    case env::Method::kGet:
      return fmt::format("read of {} {}", one, name);
    case env::Method::kDelete:
      return fmt::format("deletion of {} {}", one, name);
    default:
      return fmt::format("patch of {} {}'s {}", one, name, sub.empty() ? "object" : sub);
  }
}

std::string Words(const env::Input& input) {
  if (const auto* response = std::get_if<env::Response>(&input)) {
    return fmt::format("answer {}", response->response.status);
  }
  if (std::holds_alternative<env::CallFailed>(input)) return "nothing more";
  if (const auto* data = std::get_if<env::StreamData>(&input)) {
    const std::string_view frame = data->data.view();
    return fmt::format("that {} is {}", NameIn(frame), MemberIn(frame, "type"));
  }
  if (std::holds_alternative<env::StreamEnded>(input)) return "that it has ended";
  return "something";
}

}  // namespace berth::explore
