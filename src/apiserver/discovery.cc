#include "apiserver/discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "api/custom_definition.h"
#include "api/kinds.h"
#include "apiserver/definitions.h"
#include "apiserver/render.h"
#include "base/hash.h"
#include "codec/openapi.h"

namespace berth::apiserver {

namespace {

constexpr std::string_view kAggregatedType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// What is kept of documents that are made of the kinds.
constexpr size_t kDocumentsBytesMax = 64 * 1024 * 1024;

struct Subresource {
  std::string_view name;
  std::string_view verbs;     // As JSON.
  const api::Kind* response;  // What it speaks.
};

constexpr std::string_view kChange = R"(["get","patch","update"])";
constexpr std::string_view kCreate = R"(["create"])";

// In order of name.
std::vector<Subresource> SubresourcesOf(const api::Kind& kind) {
  std::vector<Subresource> result;
  if (kind.id == api::KindId::kPod) {
    result.push_back({"binding", kCreate, &api::KindOf(api::KindId::kBinding)});
    result.push_back({"ephemeralcontainers", kChange, &kind});
    result.push_back({"eviction", kCreate, &api::KindOf(api::KindId::kEviction)});
  }
  if (kind.id == api::KindId::kServiceAccount)
    result.push_back({"token", kCreate, &api::KindOf(api::KindId::kTokenRequest)});
  if (kind.id == api::KindId::kNamespace) result.push_back({"finalize", R"(["update"])", &kind});
  if (kind.id == api::KindId::kPod) result.push_back({"resize", kChange, &kind});
  if (kind.has_scale) result.push_back({"scale", kChange, &api::KindOf(api::KindId::kScale)});
  if (kind.has_status) result.push_back({"status", kChange, &kind});
  return result;
}

std::string_view VerbsOf(const api::Kind& kind) {
  if (kind.posted) return kCreate;
  if (kind.custom) {
    return R"(["delete","deletecollection","get","list","patch","create","update","watch"])";
  }
  return kind.has_deletecollection
             ? R"(["create","delete","deletecollection","get","list","patch","update","watch"])"
             : R"(["create","delete","get","list","patch","update","watch"])";
}

// Names between blanks, as they stand between the quotes of a list.
std::string Quoted(std::string_view blanked) {
  std::string names(blanked);
  for (size_t at = 0; (at = names.find(' ', at)) != std::string::npos; at += 3) {
    names.replace(at, 1, "\",\"");
  }
  return names;
}

std::string NamesOf(const api::Kind& kind) {
  std::string out;
  if (!kind.short_names.empty())
    out += fmt::format(",\"shortNames\":[\"{}\"]", Quoted(kind.short_names));
  if (!kind.category.empty()) {
    out += fmt::format(",\"categories\":[\"{}\"]", Quoted(kind.category));
  }
  return out;
}

// All kinds that are served, of the table and of users.
using ServedKinds = std::span<const api::Kind* const>;

// The served kinds of a version of a group, in order of their plurals.
struct ServedVersion {
  std::string_view version;
  std::vector<const api::Kind*> kinds;
};

// A group and its versions, the preferred one first.
struct ServedGroup {
  std::string_view name;
  std::vector<ServedVersion> versions;
};

// Where Kubernetes has its own groups: before those of users, in this order. Clients that look for
// a kind by its name alone take the first that they find.
size_t RankOf(std::string_view group) {
  constexpr auto kOwn = std::to_array<std::string_view>(
      {"", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "batch",
       "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
       "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
       "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io"});
  return static_cast<size_t>(std::ranges::find(kOwn, group) - kOwn.begin());
}

// The groups in upstream's order: its own, that without a name first, then the others by name.
std::vector<ServedGroup> GroupsOf(ServedKinds all) {
  std::map<std::string_view, std::map<std::string_view, std::vector<const api::Kind*>>> found;
  for (const api::Kind* kind : all) {
    if (kind->is_served()) found[kind->group][kind->version].push_back(kind);
  }
  std::vector<ServedGroup> groups;
  for (auto& [name, versions] : found) {
    ServedGroup& group = groups.emplace_back(ServedGroup{.name = name, .versions = {}});
    for (auto& [version, kinds] : versions) {
      std::ranges::sort(kinds, {}, &api::Kind::plural);
      group.versions.push_back({.version = version, .kinds = std::move(kinds)});
    }
    std::ranges::stable_sort(group.versions, api::IsVersionBefore, &ServedVersion::version);
  }
  std::ranges::stable_sort(groups, {}, [](const ServedGroup& group) { return RankOf(group.name); });
  return groups;
}

const ServedGroup* FindGroup(std::span<const ServedGroup> groups, std::string_view name) {
  const auto at = std::ranges::find(groups, name, &ServedGroup::name);
  return at == groups.end() ? nullptr : &*at;
}

std::string ResourceListJson(std::string_view group, const ServedVersion& version) {
  std::string items;
  const auto add = [&](std::string_view item) {
    if (!items.empty()) items += ',';
    items += item;
  };
  if (group.empty()) {
    add(R"({"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]})");
  }
  for (const api::Kind* kind : version.kinds) {
    add(fmt::format(
        R"({{"name":"{}","singularName":"{}","namespaced":{},"kind":"{}","verbs":{}{}{}}})",
        kind->plural, kind->singular, kind->namespaced, kind->name, VerbsOf(*kind), NamesOf(*kind),
        kind->posted ? "" : fmt::format(R"(,"storageVersionHash":"{}")", kind->storage_hash)));
    for (const Subresource& part : SubresourcesOf(*kind)) {
      const bool foreign = part.response->group != group;
      add(fmt::format(
          R"({{"name":"{}/{}","singularName":"","namespaced":{},{}"kind":"{}","verbs":{}}})",
          kind->plural, part.name, kind->namespaced,
          foreign ? fmt::format(R"("group":"{}","version":"{}",)", part.response->group,
                                part.response->version)
                  : "",
          part.response->name, part.verbs));
    }
  }
  return fmt::format(R"({{"kind":"APIResourceList"{},"groupVersion":"{}","resources":[{}]}})",
                     group.empty() ? "" : R"(,"apiVersion":"v1")",
                     version.kinds.front()->api_version(), items);
}

std::string GroupMembers(const ServedGroup& group) {
  std::vector<std::string> versions;
  for (const ServedVersion& version : group.versions) {
    versions.push_back(fmt::format(R"({{"groupVersion":"{}/{}","version":"{}"}})", group.name,
                                   version.version, version.version));
  }
  return fmt::format(R"("name":"{}","versions":[{}],"preferredVersion":{})", group.name,
                     fmt::join(versions, ","), versions.front());
}

std::string GroupListJson(std::span<const ServedGroup> groups) {
  std::string items;
  for (const ServedGroup& group : groups) {
    if (group.name.empty()) continue;
    items += fmt::format("{}{{{}}}", items.empty() ? "" : ",", GroupMembers(group));
  }
  return fmt::format(R"({{"kind":"APIGroupList","apiVersion":"v1","groups":[{}]}})", items);
}

std::string GroupJson(const ServedGroup& group) {
  return fmt::format(R"({{"kind":"APIGroup","apiVersion":"v1",{}}})", GroupMembers(group));
}

constexpr std::string_view kCoreVersions =
    R"({"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]})";

std::string ResponseKind(const api::Kind& kind, std::string_view group) {
  // The version is only said of foreign kinds.
  return fmt::format(R"({{"group":"{}","version":"{}","kind":"{}"}})",
                     kind.group == group ? "" : kind.group, kind.group == group ? "" : kind.version,
                     kind.name);
}

std::string AggregatedVersion(std::string_view group, const ServedVersion& version) {
  std::string items;
  if (group.empty()) {
    items =
        R"({"resource":"bindings","responseKind":{"group":"","version":"","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]})";
  }
  for (const api::Kind* kind : version.kinds) {
    std::string parts;
    for (const Subresource& part : SubresourcesOf(*kind)) {
      parts += fmt::format(R"({}{{"subresource":"{}","responseKind":{},"verbs":{}}})",
                           parts.empty() ? "" : ",", part.name, ResponseKind(*part.response, group),
                           part.verbs);
    }
    items += fmt::format(
        R"({}{{"resource":"{}","responseKind":{},"scope":"{}","singularResource":"{}","verbs":{}{}{}}})",
        items.empty() ? "" : ",", kind->plural, ResponseKind(*kind, group),
        kind->namespaced ? "Namespaced" : "Cluster", kind->singular, VerbsOf(*kind), NamesOf(*kind),
        parts.empty() ? "" : fmt::format(R"(,"subresources":[{}])", parts));
  }
  return fmt::format(R"({{"version":"{}","resources":[{}],"freshness":"Current"}})",
                     version.version, items);
}

std::string AggregatedGroup(const ServedGroup& group) {
  std::vector<std::string> versions;
  for (const ServedVersion& version : group.versions)
    versions.push_back(AggregatedVersion(group.name, version));
  return fmt::format(R"({{"metadata":{{{}}},"versions":[{}]}})",
                     group.name.empty() ? "" : fmt::format(R"("name":"{}")", group.name),
                     fmt::join(versions, ","));
}

std::string AggregatedJson(std::string_view items) {
  return fmt::format(
      R"({{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{{}},"items":[{}]}})",
      items);
}

// Of the group without a name, or of those that have one.
std::string AggregatedGroups(std::span<const ServedGroup> groups, bool named) {
  std::string items;
  for (const ServedGroup& group : groups) {
    if (group.name.empty() == named) continue;
    items += fmt::format("{}{}", items.empty() ? "" : ",", AggregatedGroup(group));
  }
  return AggregatedJson(items);
}

constexpr std::string_view kVersion = R"({
  "major": "1",
  "minor": "36",
  "emulationMajor": "1",
  "emulationMinor": "36",
  "minCompatibilityMajor": "1",
  "minCompatibilityMinor": "35",
  "gitVersion": "v1.36.3+berth",
  "gitCommit": "",
  "gitTreeState": "",
  "buildDate": "1970-01-01T00:00:00Z",
  "goVersion": "",
  "compiler": "",
  "platform": "linux/amd64"
}
)";

env::HttpResponse JsonAnswer(std::string text, std::string_view type = "application/json") {
  return {.status = 200,
          .headers = {{"content-type", std::string(type)}},
          .body = Bytes(std::move(text))};
}

// The checks that are asked for by name, of upstream's those that mean something here: the store is
// what is called etcd. A server that answers passes them all.
constexpr std::array<std::string_view, 3> kLive = {"ping", "log", "etcd"};
constexpr std::array<std::string_view, 5> kReady = {"ping", "log", "etcd", "informer-sync",
                                                    "shutdown"};

std::string CheckText(std::string_view what, std::span<const std::string_view> checks,
                      std::vector<std::string_view> excluded) {
  std::string text;
  for (const std::string_view name : checks) {
    const bool left_out = std::erase(excluded, name) > 0;
    text += fmt::format("[+]{} {}ok\n", name, left_out ? "excluded: " : "");
  }
  if (!excluded.empty()) {
    std::ranges::sort(excluded);
    excluded.erase(std::ranges::unique(excluded).begin(), excluded.end());
    text += fmt::format("warn: some health checks cannot be excluded: no matches for \"{}\"\n",
                        fmt::join(excluded, "\",\""));
  }
  return text + fmt::format("{} check passed\n", what);
}

// /healthz, /livez, /readyz, and each of their checks: /livez/ping.
std::optional<Outcome<env::HttpResponse>> Health(const Target& target) {
  if (target.parts.empty()) return std::nullopt;
  const std::string& what = target.parts[0];
  if (what != "healthz" && what != "livez" && what != "readyz") return std::nullopt;
  const std::span<const std::string_view> checks =
      what == "readyz" ? std::span<const std::string_view>(kReady) : kLive;
  const std::string_view rest = std::string_view(target.path).substr(1 + what.size());
  env::HttpResponse response{.status = 200,
                             .headers = {{"content-type", "text/plain; charset=utf-8"}},
                             .body = Bytes(std::string("ok"))};
  if (!rest.empty()) {
    if (std::ranges::find(checks, rest.substr(1)) == checks.end()) return NoSuchPage();
    return response;
  }
  response.headers.push_back({"x-content-type-options", "nosniff"});
  const Query query = Query::Parse(target.query);
  if (query.Find("verbose")) response.body = Bytes(CheckText(what, checks, query.All("exclude")));
  return response;
}

bool Accepts(const env::HttpRequest& http, std::string_view as) {
  return env::FindHeader(http.headers, "accept").value_or("").find(as) != std::string_view::npos;
}

// 304 when the client has this text already.
env::HttpResponse WithEtag(const env::HttpRequest& http, env::HttpResponse response,
                           std::string_view etag) {
  const std::string quoted = fmt::format("\"{}\"", etag);
  response.headers.push_back({"etag", quoted});
  response.headers.push_back({"vary", "Accept"});
  response.headers.push_back({"cache-control", "public"});
  if (env::FindHeader(http.headers, "if-none-match").value_or("") == quoted) {
    response.status = 304;
    response.body = Bytes();
    std::erase_if(response.headers,
                  [](const env::Header& header) { return header.name == "content-type"; });
  }
  return response;
}

std::string RootPaths(std::span<const ServedGroup> groups) {
  std::vector<std::string> paths = {"/api",        "/api/v1",     "/apis",    "/healthz",
                                    "/livez",      "/readyz",     "/version", "/openapi/v2",
                                    "/openapi/v3", "/openapi/v3/"};
  for (const ServedGroup& group : groups) {
    if (group.name.empty()) continue;
    paths.push_back(fmt::format("/apis/{}", group.name));
    for (const ServedVersion& version : group.versions)
      paths.push_back(fmt::format("/apis/{}/{}", group.name, version.version));
  }
  std::ranges::sort(paths);
  std::string items;
  for (const std::string& path : paths) {
    items += fmt::format("{}\n    \"{}\"", items.empty() ? "" : ",", path);
  }
  return fmt::format("{{\n  \"paths\": [{}\n  ]\n}}\n", items);
}

}  // namespace

bool Discovery::IsPublic(std::string_view path) {
  constexpr std::array<std::string_view, 5> kPublic = {"/healthz", "/livez", "/readyz", "/version",
                                                       "/version/"};
  return std::ranges::find(kPublic, path) != kPublic.end();
}

const Discovery::Document& Discovery::Cached(std::string_view path,
                                             const std::function<std::string()>& make) {
  for (const Document& document : documents_) {
    if (document.path == path) return document;
  }
  return Keep(path, make());
}

const Discovery::Document& Discovery::Keep(std::string_view path, std::string text) {
  // A user's group may have any number of versions, each with a document.
  size_t bytes = text.size();
  for (const Document& document : documents_) bytes += document.text.size();
  if (bytes > kDocumentsBytesMax) documents_.clear();
  std::string etag = fmt::format("{:016X}", HashOf(text));
  return documents_.emplace_back(
      Document{.path = std::string(path), .text = std::move(text), .etag = std::move(etag)});
}

std::optional<Outcome<env::HttpResponse>> Discovery::Answer(const Target& target,
                                                            const env::HttpRequest& http,
                                                            const Definitions& definitions) {
  const std::vector<std::string>& parts = target.parts;
  const std::string_view first = parts.empty() ? std::string_view() : std::string_view(parts[0]);
  if (first == "api" && parts.size() > 2) return std::nullopt;
  if (first == "apis" && parts.size() > 3) return std::nullopt;
  if (auto health = Health(target)) return health;
  if (http.method != env::Method::kGet) return MethodNotAllowed();
  const std::vector<const api::Kind*> all = definitions.AllKinds();
  if (first == "version" && parts.size() == 1) return JsonAnswer(std::string(kVersion));
  if (first == "openapi") return OpenApi(target, http, all);
  if (!parts.empty() && first != "api" && first != "apis") return NoSuchPage();
  const std::vector<ServedGroup> groups = GroupsOf(all);
  if (parts.empty()) return JsonAnswer(RootPaths(groups));
  if (parts.size() == 1 && Accepts(http, "as=APIGroupDiscoveryList")) {
    if (!Accepts(http, "v=v2;") && !Accepts(http, "v=v2,") && !http.headers.empty() &&
        !Accepts(http, "application/json,") && !Accepts(http, ",application/json")) {
      return NotAcceptable(
          "only the following media types are accepted: application/json, application/yaml");
    }
    const bool named = first == "apis";
    const Document& document =
        Cached(named ? "groups" : "core", [&] { return AggregatedGroups(groups, named); });
    return WithEtag(http, JsonAnswer(document.text + "\n", kAggregatedType), document.etag);
  }
  if (first == "api") {
    if (parts.size() == 1) return JsonAnswer(std::string(kCoreVersions) + "\n");
  } else if (parts.size() == 1) {
    return JsonAnswer(GroupListJson(groups) + "\n");
  }
  const ServedGroup* group = FindGroup(groups, first == "api" ? std::string_view() : parts[1]);
  if (group == nullptr) return NoSuchPage();
  if (first == "apis" && parts.size() == 2) return JsonAnswer(GroupJson(*group) + "\n");
  const auto version =
      std::ranges::find(group->versions, std::string_view(parts.back()), &ServedVersion::version);
  if (version == group->versions.end()) return NoSuchResource();
  return JsonAnswer(ResourceListJson(group->name, *version) + "\n");
}

// kubectl wants protobuf and nothing else, by a name that is no media type (it has a @); the answer
// has one that is, for kubectl parses that.
Outcome<env::HttpResponse> Discovery::OpenApiV2(const env::HttpRequest& http,
                                                std::span<const api::Kind* const> all) {
  constexpr std::string_view kAsked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  constexpr std::string_view kProtobuf =
      "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
  const std::string_view accept = env::FindHeader(http.headers, "accept").value_or("");
  if (accept.find(kAsked) != std::string_view::npos ||
      accept.find(kProtobuf) != std::string_view::npos) {
    const Document& document =
        Cached("openapi/v2.pb", [&] { return codec::OpenApiV2Protobuf(all); });
    return WithEtag(http, JsonAnswer(document.text, kProtobuf), document.etag);
  }
  if (!accept.empty() && accept.find("application/json") == std::string_view::npos &&
      accept.find("*/*") == std::string_view::npos) {
    return NotAcceptable(fmt::format(
        "only the following media types are accepted: application/json, {}", kProtobuf));
  }
  const Document& document = Cached("openapi/v2", [&] { return codec::OpenApiV2(all); });
  return WithEtag(http, JsonAnswer(document.text), document.etag);
}

Outcome<env::HttpResponse> Discovery::OpenApi(const Target& target, const env::HttpRequest& http,
                                              ServedKinds all) {
  if (target.parts.size() == 2 && target.parts[1] == "v2") return OpenApiV2(http, all);
  if (target.parts.size() < 2 || target.parts[1] != "v3") return NoSuchPage();
  if (target.parts.size() == 2) {
    const Document& index = Cached("openapi", [&] { return codec::OpenApiIndex(all); });
    return WithEtag(http, JsonAnswer(index.text), index.etag);
  }
  const std::string path = target.path.substr(std::string_view("/openapi/v3/").size());
  for (const Document& document : documents_) {
    if (document.path == path) return WithEtag(http, JsonAnswer(document.text), document.etag);
  }
  std::optional<std::string> text = codec::OpenApiDocument(all, path);
  if (!text) return env::HttpResponse{.status = 404, .headers = {}, .body = {}};
  const Document& document = Keep(path, std::move(*text));
  return WithEtag(http, JsonAnswer(document.text), document.etag);
}

}  // namespace berth::apiserver
