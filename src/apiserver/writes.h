#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/time_zone.h"
#include "apiserver/objects.h"
#include "apiserver/problem.h"
#include "apiserver/quotas.h"
#include "apiserver/render.h"
#include "apiserver/request.h"
#include "base/prng.h"
#include "base/time.h"
#include "store/store.h"

// The write verbs. Each admits, validates and commits against the store's head in one go; nothing
// is half done when a problem comes back. The caller answers once the head is durable.
namespace berth::apiserver {

struct CollectionProgress;
class WebhookCalls;

struct WriteContext {
  Instant now;
  store::Store& store;
  Prng& prng;  // For uids and generated names.
  const ResourceRequest& request;
  WriteOptions options;
  Shape shape;
  api::JsonMemory memory;  // For documents, which end with the request.
  std::vector<std::string> warnings;
  // What the request says of metadata.managedFields, if anything.
  std::optional<api::Json> managed_sent = {};
  // Whether the new object that was sent has a resourceVersion.
  bool version_sent = false;
  // Whether the pod that was sent has an overhead of nothing.
  bool empty_overhead = false;
  // What an apply has found that they will be.
  std::optional<std::string> managed_applied = {};
  QuotaCounter quota_counter = QuotaCounter::kServer;
  WebhookCalls* webhooks = nullptr;        // Null: none concerns the request.
  CollectionProgress* progress = nullptr;  // As WriteTools have it.
  // Those that CronJobs may name; null: any.
  const api::TimeZones* zones = nullptr;
  bool kind_ends = false;  // As WriteTools have it.
};

// What a write is done with.
struct WriteTools {
  Instant now;
  store::Store& store;
  Prng& prng;
  QuotaCounter quota_counter = QuotaCounter::kServer;
  WebhookCalls* webhooks = nullptr;
  CollectionProgress* progress = nullptr;  // Where a collection is to be deleted, what was of it.
  const api::TimeZones* zones = nullptr;
  bool kind_ends = false;  // Its definition is being deleted: nothing more is created.
};

// Parses the options, does the write and renders its answer, with its warnings. While webhooks have
// calls that are wanted, and where a collection's deletion pauses, nothing was done, but parts of
// that, and what is returned means nothing.
[[nodiscard]] Outcome<env::HttpResponse> HandleWrite(const WriteTools& tools,
                                                     const ResourceRequest& request);

// What a question is answered in, of which nothing is kept: a review, or a request of a token.
// Problems: its options or the form that is asked for.
[[nodiscard]] Outcome<WriteContext> QuestionContext(const WriteTools& tools,
                                                    const ResourceRequest& request);

// A random (version 4) UUID.
[[nodiscard]] std::string NewUid(Prng& prng);

// Creates an object that the server itself needs, by the same path. False: what there is forbids
// it.
[[nodiscard]] bool TryCreateOwn(Instant now, store::Store& store, Prng& prng, api::KindId kind,
                                api::Json object);
// The same. REQUIRES: it may be made.
void CreateOwn(Instant now, store::Store& store, Prng& prng, api::KindId kind, api::Json object);

// ---- The verbs, for HandleWrite and each other -------------------------------------------------

using WriteResult = Outcome<env::HttpResponse>;

WriteResult Create(WriteContext& context);
WriteResult Update(WriteContext& context);
WriteResult Patch(WriteContext& context);
WriteResult Apply(WriteContext& context);
WriteResult Delete(WriteContext& context);
WriteResult DeleteCollection(WriteContext& context);
WriteResult Bind(WriteContext& context);
WriteResult Evict(WriteContext& context);
WriteResult UpdateScale(WriteContext& context);
WriteResult PatchScale(WriteContext& context);
WriteResult FinalizeNamespace(WriteContext& context);

// The Scale of an object. REQUIRES: the kind has one.
[[nodiscard]] api::Json ScaleOf(const api::Kind& kind, const api::Json& document);
[[nodiscard]] std::string ScaleJson(const api::Kind& kind, const store::StoredObject& object);
// The same, read by itself: an object of a user's kind may be without the number that it shows.
Outcome<std::string> ShownScale(const api::Kind& kind, const store::StoredObject& object);

// ---- Shared steps ------------------------------------------------------------------------------

// What a write left behind: the text to answer with.
struct Written {
  Bytes json;
  bool gone = false;  // The write ended the object.
};

// Answers with what a write left behind, in the request's shape.
[[nodiscard]] env::HttpResponse Respond(const WriteContext& context, int status, const Bytes& json);

// The newest version of the request's object, or 404.
[[nodiscard]] Outcome<store::ObjectRef> FindTarget(const WriteContext& context);

// Replaces `old` with `object`: metadata that the server owns is kept, the kind's rules applied,
// the result validated and committed, or the object ended when its last finalizer went while it was
// being deleted. `object` is conformed, in the request's kind.
// `before` is `old` in the request's kind, without its managedFields. `spec`, unless empty, is the
// text of the old spec, which stays; both documents have what stands for it (objects.h).
Outcome<Written> Replace(WriteContext& context, const store::ObjectRef& old,
                         const api::Json& before, api::Json object, std::string_view spec = {});

// Where upstream keeps the object: its storage errors name the key.
[[nodiscard]] std::string StorageKey(const WriteContext& context, std::string_view name);

// Commits a document of the storage kind as the newest version. With dry_run it is only printed.
// `aside` is printed for the members it has.
Bytes CommitPut(WriteContext& context, const api::Kind& storage, api::Json object,
                Aside aside = {});

// Whether a patch is of a type that its kind takes; 415 otherwise.
Outcome<void> CheckPatchType(const ResourceRequest& request);
// Creates what the request's path names, of a document of its kind that was conformed. Answers 201.
WriteResult CreateFrom(WriteContext& context, api::Json object);
// What a patch may not touch, said before the rest is looked at: `before` is the object, `patched`
// what came of it. What it took away comes back.
Outcome<void> CheckIdentity(const WriteContext& context, const store::StoredObject& old,
                            const api::Json& before, api::Json& patched);
// Where a kind says how many it wants: the dotted path of a scale's replicas.
[[nodiscard]] std::string_view ReplicasPath(const api::Kind& kind);
// Whether a document's resourceVersion is a number, or not there.
Outcome<void> CheckVersionText(const api::Json& object);
// The document's name and namespace, against the path's.
Outcome<void> CheckNameAndNamespace(const WriteContext& context, const api::Json& object);
// Ends an object; `last` is its final state in the storage kind.
Bytes CommitDelete(WriteContext& context, const api::Kind& storage, api::Json last);
// Ends an object that nobody asks, whose finalizers don't count.
void DeleteAsItStands(store::Store& store, const store::ObjectRef& target);

// A condition of a pod that becomes true.
struct TrueCondition {
  std::string_view type;
  std::string_view reason = {};
  std::string_view message = {};
};
// Sets it; its transition is now unless it was true before.
void SetCondition(api::Json& pod, const TrueCondition& what, Instant now);

// Whether an object is being deleted, and the mark that says so: when it is due, and how many
// seconds it was given.
[[nodiscard]] bool IsMarked(const api::Json& object);
void Mark(api::Json& object, Instant when, int64_t grace);

struct DeleteOptions {
  std::optional<int64_t> grace_seconds;
  std::string uid;  // Preconditions.
  std::string resource_version;
  std::string propagation;  // Background, Foreground, Orphan, or empty for the kind's own way.
};
// What the options want of the object, against what it is.
[[nodiscard]] Outcome<void> CheckDeletion(const WriteContext& context,
                                          const store::StoredObject& target,
                                          const DeleteOptions& options);
// Deletes one object as upstream does: at once, gracefully, or when its finalizers are gone.
Outcome<Written> DeleteObject(WriteContext& context, const store::ObjectRef& target,
                              const DeleteOptions& options);

}  // namespace berth::apiserver
