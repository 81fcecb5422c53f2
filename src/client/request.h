#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "env/actor.h"
#include "env/http.h"

// Requests to the Kubernetes API as values: pure functions that build them, and what their answers
// mean. Every intent (a write that the core wants) is built here with its fence in it: uid
// preconditions for Bind, Evict and Delete, uid and resourceVersion for patches.
namespace berth::client {

// A collection of the API: group "" is the core group.
struct Resource {
  std::string group = {};
  std::string version = "v1";
  std::string plural = {};
  bool operator==(const Resource&) const = default;
};
[[nodiscard]] Resource Pods();

// The path of a collection (empty name), an object or its subresource, percent-encoded. An empty
// namespace means all namespaces, or a cluster-scoped resource.
struct ObjectPath {
  std::string_view namespace_name = {};
  std::string_view name = {};
  std::string_view subresource = {};
};
[[nodiscard]] std::string PathOf(const Resource& resource, const ObjectPath& path);

// Percent-encodes all but RFC 3986's unreserved characters.
[[nodiscard]] std::string PercentEncode(std::string_view text);

// Which calls go first when more wait than may be in flight. A lower class never takes the last
// places of the window.
enum class Priority : uint8_t { kHigh, kNormal, kLow };
inline constexpr size_t kPriorities = 3;

struct Request {
  env::Method method = env::Method::kGet;
  std::string target = {};
  std::string content_type = {};  // Of the body; empty without one.
  Bytes body = {};
  Priority priority = Priority::kNormal;
  // How long one attempt may take, and how long a call may wait and be retried in all, from Call()
  // on.
  Duration timeout = Duration::Seconds(30);
  Duration patience = Duration::Seconds(60);
  // Whether 429 means "come back later" (throttling). An eviction's 429 is an answer instead: a
  // budget forbids it.
  bool retry_throttled = true;
  // Once it had to wait it leaves with a Tick only, so that its owner, who has taken in all that
  // was heard before, can cancel it first.
  bool waits_for_tick = false;
  bool operator==(const Request&) const = default;
};

// What a request does to what, as rules of roles have it: "create" "pods/binding". REQUIRES: a
// target as PathOf makes it, with or without a query.
struct Access {
  std::string_view verb;
  std::string resource;
};
[[nodiscard]] Access AccessOf(env::Method method, std::string_view target);

// What a request may hang together with: those of its method to its resource, or subresource, in
// its namespace, as an admission webhook there sees them. REQUIRES: as AccessOf.
[[nodiscard]] std::string FlowOf(const Request& request);

// What became of a call, as its owner must treat it (ARCHITECTURE.md, "Writes and their outcomes").
enum class Outcome : uint8_t {
  kDone,      // 2xx.
  kConflict,  // 409: the world moved on, another uid or version, or it exists already.
  kGone,      // 404 or 410: what it was about no longer exists.
  kRefused,   // Any other 4xx, or never sent: it is known that nothing happened.
  kUnknown,   // No answer, or 5xx to a write: it may have happened. Resolved by reading, never by
              // repeating.
};
[[nodiscard]] std::string_view ToString(Outcome outcome);
[[nodiscard]] Outcome OutcomeOf(int http_status);

// What an attempt without an answer met, for people: "no connection to the server: dial tcp ...".
[[nodiscard]] std::string TextOf(env::CallFailure failure, std::string_view why);

// The parts of a metav1.Status that callers act on. Anything that is no Status gives the code
// alone.
struct ApiStatus {
  int code = 0;
  std::string reason = {};
  std::string message = {};
  bool operator==(const ApiStatus&) const = default;
};
[[nodiscard]] ApiStatus StatusOf(const env::HttpResponse& response);

// ---- Reads -----------------------------------------------------------------------------------
[[nodiscard]] Request Get(const Resource& resource, const ObjectPath& path);

// ---- Writes ----------------------------------------------------------------------------------
// Identity of the object that a write is about, as it was decided on.
struct ObjectRef {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  std::string resource_version = {};  // Used by patches only.
  bool operator==(const ObjectRef&) const = default;
};

// POST pods/NAME/binding, fenced by the pod's uid; the annotations reach the pod with the binding.
[[nodiscard]] Request Bind(const ObjectRef& pod, std::string_view node,
                           const std::vector<std::pair<std::string, std::string>>& annotations);

// DELETE, fenced by the uid. No grace means the object's own default.
[[nodiscard]] Request Delete(const Resource& resource, const ObjectRef& object,
                             std::optional<int64_t> grace_seconds = std::nullopt,
                             std::string_view propagation = {});

// POST pods/NAME/eviction, fenced by the uid; answers 429 when a disruption budget forbids it.
[[nodiscard]] Request Evict(const ObjectRef& pod,
                            std::optional<int64_t> grace_seconds = std::nullopt);

// POST of a whole document to its collection.
[[nodiscard]] Request Create(const Resource& resource, std::string_view namespace_name,
                             std::string document);

// PUT of a whole document, which carries its own fence in its metadata.
[[nodiscard]] Request Update(const Resource& resource, const ObjectPath& path,
                             std::string document);

enum class PatchType : uint8_t { kMerge, kStrategicMerge, kJson };

// PATCH with any body. REQUIRES: the body carries the fence, if one is wanted.
[[nodiscard]] Request Patch(const Resource& resource, const ObjectPath& path, PatchType type,
                            std::string body);

// PATCH of NAME/status by strategic merge, fenced by uid and, if there is one, resourceVersion.
// `status` is the JSON text of the status member.
[[nodiscard]] Request PatchStatus(const Resource& resource, const ObjectRef& object,
                                  std::string_view status);

// The facts of an events.k8s.io/v1 Event.
struct EventFacts {
  ObjectRef regarding = {};
  std::optional<ObjectRef> related = {};  // Of the same kind.
  std::string kind = "Pod";
  std::string api_version = "v1";
  std::string type = "Normal";  // Or "Warning".
  std::string reason = {};
  std::string action = {};
  std::string note = {};  // Cut to 1,024 bytes, as upstream cuts it.
  std::string controller = {};
  std::string instance = {};
  Instant time = {};
  uint64_t serial = 0;  // Makes the event's name unique among those of one object and instant.
};
[[nodiscard]] Request CreateEvent(const EventFacts& facts);

// What an event of an object is called: by the object's name, of which it has as much as the name
// of an object may be long. REQUIRES: the object's name is one that Kubernetes takes.
[[nodiscard]] std::string EventName(std::string_view object, uint64_t suffix);

inline constexpr size_t kEventNoteBytesMax = 1024;

// ---- JSON text -------------------------------------------------------------------------------
// Appends a JSON string literal. Bytes that are no UTF-8 come out as U+FFFD, so that the document
// stays valid.
void AppendJsonString(std::string& out, std::string_view text);
[[nodiscard]] std::string JsonString(std::string_view text);

// The first at most `bytes_max` bytes without cutting a UTF-8 sequence.
[[nodiscard]] std::string_view CutUtf8(std::string_view text, size_t bytes_max);

// RFC 3339 in UTC with microseconds (metav1.MicroTime) and with seconds (metav1.Time).
[[nodiscard]] std::string MicroTime(Instant instant);
[[nodiscard]] std::string SecondsTime(Instant instant);

}  // namespace berth::client
