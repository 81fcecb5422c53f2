#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/fields.h"
#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/admission.h"
#include "apiserver/definitions.h"
#include "apiserver/reads.h"
#include "apiserver/webhook_calls.h"
#include "apiserver/writes.h"
#include "base/check.h"
#include "base/limits.h"
#include "codec/json.h"

// Deletion (k8s.io/apiserver registry/generic/registry/store.go and registry/rest/delete.go): an
// object goes at once, or it is marked and waits: a bound pod for its node to stop it, anything for
// its finalizers.
namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

// The options as an Eviction would carry them, whose fields are known. What can't be read must not
// be left out: a precondition might.
Outcome<Json> ConformOptions(const Json& body) {
  constexpr std::string_view kHolder = "deleteOptions";
  Json eviction = JsonObject{{kHolder, body}};
  const auto unknown = api::Conform(KindId::kEviction, eviction);
  if (unknown) return api::MemberObject(eviction.get_object(), kHolder);
  // "Go struct field DeleteOptions.deleteOptions.dryRun", and of all "Eviction.deleteOptions".
  std::string why = unknown.error().message;
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string_view>{".deleteOptions.", "."},
        {"Go struct field Eviction.deleteOptions of", "Go value of"}}) {
    if (const size_t at = why.find(from); at != std::string::npos) why.replace(at, from.size(), to);
  }
  return BadRequest(std::move(why));
}

// What says that it is something else is not taken for options.
Outcome<void> CheckOptionsType(const Json& body) {
  const std::string_view kind = api::TextAt(body, "kind");
  if (kind.empty() || kind == "DeleteOptions") return {};
  const std::string_view version = api::TextAt(body, "apiVersion");
  return BadRequest(NotRegistered(version.empty() ? "meta.k8s.io/v1" : version, kind));
}

// All that a list of dry runs may have is "All".
Outcome<bool> IsDryRun(const JsonArray& stages) {
  constexpr std::array<std::string_view, 1> kSupported = {"All"};
  const bool all = std::ranges::all_of(
      stages, [](const Json& stage) { return stage.is_string() && stage.get_string() == "All"; });
  if (all) return !stages.empty();
  api::FieldErrors errors = {api::NotSupportedField("dryRun", "", kSupported)};
  errors.back().value = codec::PrintJson(Json(stages));
  return InvalidOptions("DeleteOptions", errors);
}

Outcome<DeleteOptions> FromBody(const Json& body) {
  DeleteOptions options;
  if (const Json* grace = api::FindMember(body, "gracePeriodSeconds"))
    options.grace_seconds = grace->get_int64();
  options.uid = api::TextAt(body, "preconditions.uid");
  options.resource_version = api::TextAt(body, "preconditions.resourceVersion");
  options.propagation = api::TextAt(body, "propagationPolicy");
  if (const Json* orphan = api::FindMember(body, "orphanDependents"); orphan != nullptr) {
    if (!options.propagation.empty()) {
      return InvalidOptions(
          "DeleteOptions",
          {api::InvalidField("propagationPolicy", options.propagation,
                             "orphanDependents and deletionPropagation cannot be both set")});
    }
    options.propagation = orphan->is_bool() && orphan->get_bool() ? "Orphan" : "Background";
  }
  return options;
}

// Options come in the body, or, when there is none, in the query.
Outcome<DeleteOptions> ParseDeleteOptions(WriteContext& context) {
  const ResourceRequest& request = context.request;
  DeleteOptions options;
  if (!request.http->body.empty()) {
    Outcome<RawBody> body = ParseBody(request, "DeleteOptions", context.memory);
    if (!body) {
      // Upstream words this one without the kind that it expected.
      const size_t start = body.error().message.find("couldn't get");
      if (start == std::string::npos) return std::unexpected(std::move(body.error()));
      std::string why = body.error().message.substr(start);
      if (const size_t end = why.rfind(" ("); end != std::string::npos) why.resize(end);
      return BadRequest(std::move(why));
    }
    if (Outcome<void> typed = CheckOptionsType(body->value); !typed)
      return std::unexpected(std::move(typed.error()));
    const Outcome<Json> told = ConformOptions(body->value);
    if (!told) return std::unexpected(told.error());
    Outcome<DeleteOptions> parsed = FromBody(*told);
    if (!parsed) return parsed;
    options = std::move(*parsed);
    Outcome<bool> dry_run = IsDryRun(api::ArrayAt(*told, "dryRun"));
    if (!dry_run) return std::unexpected(std::move(dry_run.error()));
    context.options.dry_run |= *dry_run;
  } else {
    const Outcome<std::optional<int64_t>> grace =
        ParseIntegerParameter(request.query, "gracePeriodSeconds");
    if (!grace) return std::unexpected(grace.error());
    options.grace_seconds = *grace;
    options.uid = request.query.Text("uid");
    options.resource_version = request.query.Text("resourceVersion");
    options.propagation = request.query.Text("propagationPolicy");
    if (options.propagation.empty() && request.query.Find("orphanDependents")) {
      options.propagation =
          ParseFlagParameter(request.query, "orphanDependents") ? "Orphan" : "Background";
    }
  }
  constexpr std::array<std::string_view, 4> kSupported = {"Foreground", "Background", "Orphan",
                                                          "nil"};
  const std::string_view propagation = options.propagation;
  if (!propagation.empty() && std::ranges::find(kSupported.begin(), kSupported.end() - 1,
                                                propagation) == kSupported.end() - 1) {
    return InvalidOptions("DeleteOptions",
                          {api::NotSupportedField("propagationPolicy", propagation, kSupported)});
  }
  return options;
}

bool Contains(const JsonArray& list, std::string_view text) {
  return std::ranges::any_of(list, [&](const Json& item) {
    return item.is_string() && std::string_view(item.get_string()) == text;
  });
}

// Sets or removes the garbage collector's own finalizers by the propagation policy; a policy of
// before stays when none is given.
void SetPropagationFinalizers(KindId kind, std::string_view propagation, Json& object) {
  const JsonArray& present = api::ArrayAt(object, "metadata.finalizers");
  bool orphan = propagation == "Orphan";
  bool foreground = propagation == "Foreground";
  if (propagation.empty()) {
    orphan = Contains(present, kOrphan);
    foreground = !orphan && Contains(present, kForeground);
    // batch/v1 and core/v1 keep what clients of 2016 relied on.
    if (!orphan && !foreground) {
      orphan = kind == KindId::kJob || kind == KindId::kReplicationController;
    }
  }
  // Nothing is owned by events: upstream doesn't listen.
  if (kind == KindId::kEvent || kind == KindId::kEventsEvent) orphan = foreground = false;
  JsonArray finalizers;
  for (const Json& item : present) {
    const std::string_view text = api::TextOf(item);
    if (text != kOrphan && text != kForeground) finalizers.push_back(item);
  }
  if (orphan) finalizers.emplace_back(kOrphan);
  if (foreground) finalizers.emplace_back(kForeground);
  if (finalizers.empty()) {
    api::RemovePath(object, "metadata.finalizers");
  } else {
    api::SetPath(object, "metadata.finalizers", std::move(finalizers));
  }
}

// A hundred years: until then an Instant can tell.
constexpr int64_t kGraceSecondsMax = int64_t{100} * 365 * 86'400;

// How long a pod's node may take to stop it.
int64_t GraceOfPod(const Json& pod, const DeleteOptions& options) {
  int64_t grace =
      options.grace_seconds.value_or(api::IntegerAt(pod, "spec.terminationGracePeriodSeconds"));
  if (api::TextAt(pod, "spec.nodeName").empty()) grace = 0;
  const std::string_view phase = api::TextAt(pod, "status.phase");
  if (phase == "Succeeded" || phase == "Failed") grace = 0;
  return grace < 0 ? 1 : std::min(grace, kGraceSecondsMax);
}

void BumpGeneration(Json& object) {
  const int64_t generation = api::IntegerAt(object, "metadata.generation");
  if (generation > 0) api::SetPath(object, "metadata.generation", generation + 1);
}

// A pod that is being deleted already: only a shorter grace period changes anything. False: nothing
// changes.
bool ShortenGrace(const DeleteOptions& options, Json& pod) {
  const Json* given = api::FindPath(pod, "metadata.deletionGracePeriodSeconds");
  if (given == nullptr || !options.grace_seconds) return false;
  const int64_t grace = *options.grace_seconds < 0 ? 1 : *options.grace_seconds;
  const int64_t before = api::IntegerAt(pod, "metadata.deletionGracePeriodSeconds");
  if (grace >= before) return false;
  const Result<Instant> due = api::ParseTimestamp(api::TextAt(pod, "metadata.deletionTimestamp"));
  CHECK(due.has_value());
  Mark(pod, *due + Duration::Seconds(grace - before), grace);
  return true;
}

Written Put(WriteContext& context, const store::ObjectRef& target, Json object) {
  // What changes nothing is no write.
  if (api::SameJson(Load(*target, context.memory), object)) {
    return {.json = target->json};
  }
  return {.json = CommitPut(context, StorageOf(*context.request.kind), std::move(object))};
}

// A namespace empties itself first: it stays until the finalizers of its spec are gone too.
Written DeleteNamespace(WriteContext& context, const store::ObjectRef& target,
                        const DeleteOptions& options, Json object) {
  if (!IsMarked(object)) {
    api::SetPath(object, "metadata.deletionTimestamp", Text(api::PrintTimestamp(context.now)));
    SetPropagationFinalizers(KindId::kNamespace, options.propagation, object);
  }
  api::SetPath(object, "status.phase", "Terminating");
  const bool held = !api::ArrayAt(object, "spec.finalizers").empty() ||
                    !api::ArrayAt(object, "metadata.finalizers").empty();
  if (held) return Put(context, target, std::move(object));
  Bytes json = CommitDelete(context, api::KindOf(KindId::kNamespace), std::move(object));
  return {.json = std::move(json), .gone = true};
}

Written DeletePod(WriteContext& context, const store::ObjectRef& target,
                  const DeleteOptions& options, Json pod) {
  int64_t grace = 0;
  if (IsMarked(pod)) {
    const bool shortened = ShortenGrace(options, pod);
    grace = api::IntegerAt(pod, "metadata.deletionGracePeriodSeconds");
    const bool held = !api::ArrayAt(pod, "metadata.finalizers").empty();
    if (!shortened && (grace > 0 || held)) {
      return Written{.json = target->json};
    }
  } else {
    grace = GraceOfPod(pod, options);
    Mark(pod, context.now + Duration::Seconds(grace), grace);
    BumpGeneration(pod);
  }
  SetPropagationFinalizers(KindId::kPod, options.propagation, pod);
  if (grace > 0 || !api::ArrayAt(pod, "metadata.finalizers").empty()) {
    return Put(context, target, std::move(pod));
  }
  // Upstream writes the mark first, and deletes then; here one event tells both.
  Bytes json = CommitDelete(context, api::KindOf(KindId::kPod), std::move(pod));
  return {.json = std::move(json), .gone = true};
}

Written DeleteOther(WriteContext& context, const store::ObjectRef& target,
                    const DeleteOptions& options, Json object) {
  const api::Kind& storage = StorageOf(*context.request.kind);
  SetPropagationFinalizers(storage.id, options.propagation, object);
  if (api::ArrayAt(object, "metadata.finalizers").empty()) {
    // Watchers hear of the end with what they last saw.
    Bytes json = CommitDelete(context, storage, Load(*target, context.memory));
    return {.json = std::move(json), .gone = true};
  }
  if (!IsMarked(object)) {
    Mark(object, context.now, 0);
    BumpGeneration(object);
  }
  return Put(context, target, std::move(object));
}

// Kinds whose deletion answers with what was deleted.
bool ShowsDeleted(KindId kind) {
  switch (kind) {
    case KindId::kPod:
    case KindId::kServiceAccount:
    case KindId::kService:
    case KindId::kPodTemplate:
    case KindId::kResourceQuota:
    case KindId::kPersistentVolume:
    case KindId::kPersistentVolumeClaim:
    case KindId::kStorageClass:
    case KindId::kCsiDriver:
    case KindId::kCsiNode:
    case KindId::kVolumeAttachment:
      return true;
    default:
      return false;
  }
}

// The answer to the deletion of one object: what is left of it, or that it is gone.
WriteResult RespondDeleted(WriteContext& context, const store::StoredObject& target,
                           const Written& written) {
  const api::Kind& kind = *context.request.kind;
  if (!written.gone || ShowsDeleted(kind.id)) {
    return Respond(context, 200, written.json);
  }
  std::string details = R"(,"details":{"name":)";
  codec::AppendJsonString(target.name, details);
  if (!kind.group.empty()) details += fmt::format(R"(,"group":"{}")", kind.group);
  details += fmt::format(R"(,"kind":"{}","uid":"{}"}})", kind.plural, target.uid);
  return Answer(200, context.shape.syntax, SuccessJson(details, 200));
}

}  // namespace

bool IsMarked(const Json& object) {
  return !api::TextAt(object, "metadata.deletionTimestamp").empty();
}

void Mark(Json& object, Instant when, int64_t grace) {
  api::SetPath(object, "metadata.deletionTimestamp", Text(api::PrintTimestamp(when)));
  api::SetPath(object, "metadata.deletionGracePeriodSeconds", grace);
}

Outcome<void> CheckDeletion(const WriteContext& context, const store::StoredObject& target,
                            const DeleteOptions& options) {
  const api::Kind& kind = *context.request.kind;
  const auto conflict = [&](const std::string& why) {
    // Of events of their group upstream tells as of the others.
    const api::Kind& told = kind.id == KindId::kEventsEvent ? api::KindOf(KindId::kEvent) : kind;
    auto problem = Conflict({.kind = told, .name = target.name}, why);
    // This conflict names the kind, not the resource.
    problem.error().message = fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                                          told.group_kind(), target.name, why);
    problem.error().kind = kind.name;
    return problem;
  };
  // Upstream deletes namespaces by a way of their own.
  const auto conflict_of_namespace = [&](const char* what, const std::string& wanted,
                                         const std::string& found) {
    return Conflict({.kind = kind, .name = target.name},
                    fmt::format("Precondition failed: {} in precondition: {}, {} in object meta: "
                                "{}",
                                what, wanted, what, found));
  };
  const bool is_namespace = kind.id == KindId::kNamespace;
  if (!options.uid.empty() && options.uid != target.uid) {
    if (is_namespace) return conflict_of_namespace("UID", options.uid, target.uid);
    return conflict(
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The "
                    "object might have been deleted and then recreated",
                    options.uid, target.uid));
  }
  const std::string version = std::to_string(target.revision);
  if (!options.resource_version.empty() && options.resource_version != version) {
    if (is_namespace)
      return conflict_of_namespace("ResourceVersion", options.resource_version, version);
    return conflict(fmt::format(
        "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record "
        "({}). The object might have been modified",
        options.resource_version, version));
  }
  return {};
}

Outcome<Written> DeleteObject(WriteContext& context, const store::ObjectRef& target,
                              const DeleteOptions& options) {
  if (Outcome<void> holds = CheckDeletion(context, *target, options); !holds) {
    return std::unexpected(std::move(holds.error()));
  }
  Json object = Load(*target, context.memory);
  switch (context.request.kind->id) {
    case KindId::kNamespace:
      return DeleteNamespace(context, target, options, std::move(object));
    case KindId::kPod:
      return DeletePod(context, target, options, std::move(object));
    case KindId::kCustomResourceDefinition:
      if (!IsMarked(object)) {
        BeginEnd(context.now, object);
        return Put(context, target, std::move(object));
      }
      return DeleteOther(context, target, options, std::move(object));
    default:
      return DeleteOther(context, target, options, std::move(object));
  }
}

// Whether a pod's node is at it already, and nothing changes.
bool IsPending(const store::StoredObject& pod, const DeleteOptions& options) {
  // Most are seen not to be without parsing them.
  if (!pod.json.view().contains("deletionGracePeriodSeconds")) return false;
  const Json object = Load(pod);
  const Json* given = api::FindPath(object, "metadata.deletionGracePeriodSeconds");
  if (!IsMarked(object) || given == nullptr || !given->is_int64()) return false;
  return !options.grace_seconds || *options.grace_seconds >= given->get_int64();
}

// What webhooks say of a deletion. One that is on its way was put to them before.
Outcome<void> ReviewEnd(WriteContext& context, const store::StoredObject& target,
                        const DeleteOptions& options) {
  if (context.webhooks == nullptr) return {};
  if (Outcome<void> holds = CheckDeletion(context, target, options); !holds) return holds;
  const bool pod = context.request.kind->id == KindId::kPod;
  if (pod && IsPending(target, options)) return {};
  return ReviewDeletion(context, target, options);
}

WriteResult Delete(WriteContext& context) {
  Outcome<DeleteOptions> options = ParseDeleteOptions(context);
  if (!options) return std::unexpected(std::move(options.error()));
  if (Outcome<void> admitted = AdmitDelete(context.store, context.request.subject()); !admitted) {
    return std::unexpected(std::move(admitted.error()));
  }
  if (context.request.kind->id == KindId::kJob && options->propagation.empty()) {
    context.warnings.emplace_back(
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background "
        "to remove them or set propagationPolicy=Orphan to suppress this warning");
  }
  const Outcome<store::ObjectRef> target = FindTarget(context);
  if (!target) return std::unexpected(target.error());
  if (Outcome<void> fine = ReviewEnd(context, **target, *options); !fine)
    return std::unexpected(std::move(fine.error()));
  const Outcome<Written> written = DeleteObject(context, *target, *options);
  if (!written) return std::unexpected(written.error());
  return RespondDeleted(context, **target, *written);
}

// What one try of a collection's deletion comes to, some 5 ms.
constexpr size_t kPartBytesMax = size_t{2} * 1024 * 1024;
constexpr size_t kPartCountMax = 256;

// Where the part ends that begins with the next target: what webhooks are asked about at once, and
// is deleted in one try.
size_t PartEnd(const WriteContext& context) {
  const CollectionProgress& progress = *context.progress;
  const size_t count_max =
      context.webhooks == nullptr ? kPartCountMax : static_cast<size_t>(limits::kReviewsAtOnceMax);
  size_t end = progress.next;
  for (size_t bytes = 0;
       end < progress.targets.size() && end - progress.next < count_max && bytes < kPartBytesMax;
       ++end) {
    bytes += progress.targets[end]->json.size();
  }
  return end;
}

// Deletes what webhooks have agreed to, up to the first that they haven't.
Outcome<void> DeletePart(WriteContext& context, size_t end, const DeleteOptions& options) {
  CollectionProgress& progress = *context.progress;
  struct Listed {
    store::ObjectRef object;  // As it is now; null: somebody else has deleted it.
    Outcome<void> review;
  };
  std::vector<Listed> part;
  for (size_t i = progress.next; i < end; ++i) {
    const store::StoredObject& listed = *progress.targets[i];
    store::ObjectRef object = context.store.FindHead(
        listed.table, {.namespace_name = listed.namespace_name, .name = listed.name});
    Outcome<void> review =
        object == nullptr ? Outcome<void>() : ReviewEnd(context, *object, options);
    part.push_back({.object = std::move(object), .review = std::move(review)});
  }
  if (context.webhooks != nullptr && !context.webhooks->wanted().empty()) return Waits();
  for (const Listed& target : part) {
    if (target.object != nullptr) {
      if (Outcome<void> admitted = AdmitDelete(
              context.store, {.kind = *context.request.kind, .name = target.object->name});
          !admitted) {
        return admitted;
      }
      if (!target.review) return target.review;
      const Outcome<Written> written = DeleteObject(context, target.object, options);
      if (!written) return std::unexpected(written.error());
    }
    ++progress.next;
  }
  return {};
}

// What was deleted, as it was.
env::HttpResponse RespondCollection(WriteContext& context) {
  CollectionProgress& progress = *context.progress;
  ListRenderer list(context.shape, context.now);
  for (const store::ObjectRef& target : progress.targets) list.Add(target->json);
  list.Start(progress.metadata);
  if (list.Continue()) return std::move(list).Finish();
  progress.answer = std::move(list);
  return {};
}

// What a list of that query has, in parts: the next are looked at, and webhooks asked about them,
// when the ones before are gone, and others had their turn.
WriteResult DeleteCollection(WriteContext& context) {
  CHECK(context.progress != nullptr);
  CollectionProgress& progress = *context.progress;
  Listing listing;
  if (!progress.begun) {
    Outcome<Listing> found = FindListed(context.store, context.request, View::kHead);
    if (!found) return std::unexpected(std::move(found.error()));
    listing = std::move(*found);
  }
  const Outcome<DeleteOptions> options = ParseDeleteOptions(context);
  if (!options) return std::unexpected(options.error());
  if (!std::exchange(progress.begun, true)) {
    progress.targets = std::move(listing.objects);
    progress.metadata = std::move(listing.metadata);
  }
  while (progress.next < progress.targets.size()) {
    if (Outcome<void> fine = DeletePart(context, PartEnd(context), *options); !fine)
      return std::unexpected(std::move(fine.error()));
    progress.paused = !progress.unpaused && progress.next < progress.targets.size();
    if (progress.paused) return Waits();
  }
  return RespondCollection(context);
}

// What webhooks say of a namespace's finalizers.
Outcome<void> ReviewFinalizers(WriteContext& context, const store::StoredObject& stored,
                               Json& object) {
  if (context.webhooks == nullptr) return {};
  const Json old = LoadUnmanaged(*context.request.kind, stored, context.memory);
  const Reviewed reviewed{.operation = Operation::kUpdate,
                          .kind = *context.request.kind,
                          .name = context.request.name,
                          .old = &old,
                          .old_managed = ManagedText(stored)};
  const MutateSteps steps{.settle = [](Json& /*changed*/) { return Outcome<void>(); }};
  if (Outcome<void> fine = Mutate(context, reviewed, object, steps); !fine) return fine;
  return Validate(context, reviewed, object);
}

WriteResult FinalizeNamespace(WriteContext& context) {
  Outcome<Body> body = DecodeBody(context.request, *context.request.kind,
                                  context.options.validation, context.memory);
  if (!body) return std::unexpected(std::move(body.error()));
  context.warnings = std::move(body->warnings);
  const Outcome<store::ObjectRef> old = FindTarget(context);
  if (!old) return std::unexpected(old.error());
  if (api::TextAt(body->object, "metadata.name") != context.request.name) {
    return BadRequest(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                    api::TextAt(body->object, "metadata.name"), context.request.name));
  }
  const std::string_view version = api::TextAt(body->object, "metadata.resourceVersion");
  if (!version.empty() && version != std::to_string((*old)->revision)) {
    return Stale(context.request.subject());
  }
  Json object = Load(**old, context.memory);
  if (Outcome<void> fine = ReviewFinalizers(context, **old, body->object); !fine)
    return std::unexpected(std::move(fine.error()));
  const JsonArray& finalizers = api::ArrayAt(body->object, "spec.finalizers");
  if (finalizers.empty()) {
    api::RemovePath(object, "spec.finalizers");
  } else {
    api::SetPath(object, "spec.finalizers", finalizers);
  }
  const bool finished =
      IsMarked(object) && finalizers.empty() && api::ArrayAt(object, "metadata.finalizers").empty();
  Written written;
  if (finished) {
    written.json = Bytes(PrintCanonical(*context.request.kind, object, (*old)->revision).text);
    CommitDelete(context, *context.request.kind, std::move(object));
  } else {
    written = Put(context, *old, std::move(object));
  }
  return Respond(context, 200, written.json);
}

}  // namespace berth::apiserver
