#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/kinds.h"
#include "apiserver/problem.h"
#include "env/http.h"

namespace berth::apiserver {

class Authorizer;
class Definitions;

// Who asks.
struct Identity {
  std::string user;
  std::vector<std::string> groups;
  std::string uid = {};
  std::map<std::string, std::vector<std::string>> extra = {};
  bool operator==(const Identity&) const = default;
};

// Who asks, and what decides what that one may do. Both outlive the request's handling.
struct Requester {
  const Identity& identity;
  const Authorizer& authorizer;
};

// The query of a target, decoded, in order.
class Query {
 public:
  // Accepts anything: what can't be percent-decoded stays as it is.
  static Query Parse(std::string_view text);

  // The first value of a parameter, or nothing.
  [[nodiscard]] std::optional<std::string_view> Find(std::string_view name) const;
  // All of them, in their order.
  [[nodiscard]] std::vector<std::string_view> All(std::string_view name) const;
  [[nodiscard]] std::string_view Text(std::string_view name) const {
    return Find(name).value_or("");
  }

 private:
  std::vector<std::pair<std::string, std::string>> items_;
};

enum class Verb : uint8_t {
  kGet,
  kList,
  kWatch,
  kCreate,
  kUpdate,
  kPatch,
  kDelete,
  kDeleteCollection,
};

enum class Subpart : uint8_t {
  kNone,
  kStatus,
  kScale,
  kBinding,
  kEviction,
  kFinalize,
  kToken,
  kEphemeralContainers,
  kResize,
  kContainers,  // Log, exec and the like of a pod.
};

// A request for a resource, taken apart.
struct ResourceRequest {
  Verb verb = Verb::kGet;
  const api::Kind* kind = nullptr;  // The kind of the path, not of the subresource.
  std::string namespace_name;       // Empty for cluster-scoped kinds and across all namespaces.
  std::string name;                 // Empty for collections.
  Subpart subpart = Subpart::kNone;
  Query query;
  const env::HttpRequest* http = nullptr;  // Outlives the request's handling.
  const Requester* requester = nullptr;    // Null: the server itself, which may do all.
  // Of kContainers: what is answered of a pod that exists.
  std::optional<Problem> no_containers;

  [[nodiscard]] Subject subject() const { return {*kind, name}; }
  [[nodiscard]] std::string_view header(std::string_view name_in_lower_case) const {
    return env::FindHeader(http->headers, name_in_lower_case).value_or("");
  }
};

// What can't be decoded stays as it is.
[[nodiscard]] std::string PercentDecode(std::string_view text);

// The path of a target split at slashes, percent-decoded, and its query's text.
struct Target {
  std::string path;
  std::vector<std::string> parts;
  std::string_view query;
};
[[nodiscard]] Target ParseTarget(std::string_view target);
// Whether each percent sign of the path begins an escape. Of the query's they needn't.
[[nodiscard]] bool IsWellEscaped(std::string_view target);

// What a method does to an object, as RBAC calls it: "create" for a POST; empty for a method that
// is none of theirs.
[[nodiscard]] std::string_view MethodWord(env::Method method);

// Finds the resource that a path under /api or /apis names, and the verb. Problems: 404 for what
// isn't served, 405 for methods that the resource lacks.
[[nodiscard]] Outcome<ResourceRequest> ParseResource(Target target, const env::HttpRequest& http,
                                                     const Definitions& definitions);

// A resourceVersion; nothing for text that is no number.
[[nodiscard]] std::optional<uint64_t> ParseRevision(std::string_view text);

// A 64-bit integer of a query as Go's strconv reads it; upstream's words otherwise.
[[nodiscard]] Outcome<std::optional<int64_t>> ParseIntegerParameter(const Query& query,
                                                                    std::string_view name);
// Upstream takes everything but "false" and "0" for true.
[[nodiscard]] bool ParseFlagParameter(const Query& query, std::string_view name);

}  // namespace berth::apiserver
