#include "apiserver/writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "api/applied_defaults.h"
#include "api/custom_definition.h"
#include "api/defaults.h"
#include "api/fields.h"
#include "api/names.h"
#include "api/object.h"
#include "api/quota.h"
#include "api/spec_warnings.h"
#include "api/timestamp.h"
#include "api/validate.h"
#include "api/validate_time_zone.h"
#include "api/versions.h"
#include "apiserver/admission.h"
#include "apiserver/authorizer.h"
#include "apiserver/escalation.h"
#include "apiserver/limit_ranges.h"
#include "apiserver/managed.h"
#include "apiserver/quotas.h"
#include "apiserver/runtime_classes.h"
#include "apiserver/services.h"
#include "apiserver/webhook_calls.h"
#include "base/check.h"
#include "base/limits.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr int kGeneratedNameTries = 8;
// A pod and what is made of it while it is written fit; more comes from the heap.
constexpr size_t kArenaBytes = 64 * 1024;

std::string_view OptionsName(Verb verb) {
  switch (verb) {
    case Verb::kCreate:
      return "CreateOptions";
    case Verb::kUpdate:
      return "UpdateOptions";
    case Verb::kPatch:
      return "PatchOptions";
    default:
      return "DeleteOptions";
  }
}

api::Subresource SubresourceOf(Subpart subpart) {
  switch (subpart) {
    case Subpart::kStatus:
      return api::Subresource::kStatus;
    case Subpart::kEphemeralContainers:
      return api::Subresource::kEphemeralContainers;
    case Subpart::kResize:
      return api::Subresource::kResize;
    default:
      return api::Subresource::kNone;
  }
}

WriteResult Dispatch(WriteContext& context) {
  const ResourceRequest& request = context.request;
  switch (request.verb) {
    case Verb::kCreate:
      if (request.subpart == Subpart::kBinding) return Bind(context);
      if (request.subpart == Subpart::kEviction) return Evict(context);
      return Create(context);
    case Verb::kUpdate:
      if (request.subpart == Subpart::kScale) return UpdateScale(context);
      if (request.subpart == Subpart::kFinalize) return FinalizeNamespace(context);
      return Update(context);
    case Verb::kPatch:
      if (IsApply(request)) return Apply(context);
      if (request.subpart == Subpart::kScale) return PatchScale(context);
      return Patch(context);
    case Verb::kDelete:
      return Delete(context);
    case Verb::kDeleteCollection:
      return DeleteCollection(context);
    default:
      break;
  }
  CHECK(false);
  return MethodNotAllowed();
}

// The namespace of the path, checked against the body's, and what only the server says.
Outcome<void> PrepareMetadata(WriteContext& context, Json& object) {
  const ResourceRequest& request = context.request;
  JsonObject& metadata = api::MemberObject(object.get_object(), "metadata");
  if (Outcome<void> same = CheckNamespace(request, object); !same) return same;
  if (request.kind->namespaced) {
    metadata["namespace"] = request.namespace_name;
  } else {
    api::RemoveMember(metadata, "namespace");
  }
  // What is no version counts as none, as upstream has it.
  context.version_sent |=
      ParseRevision(api::TextAt(object, "metadata.resourceVersion")).value_or(0) != 0;
  for (const std::string_view key : {"resourceVersion", "managedFields"})
    api::RemoveMember(metadata, key);
  // As upstream has it, what an update or an apply makes may be made as one that is being deleted.
  const bool posted = request.verb == Verb::kCreate;
  if (posted || !context.options.dry_run) api::RemoveMember(metadata, "selfLink");
  if (posted) {
    for (const std::string_view key : {"deletionTimestamp", "deletionGracePeriodSeconds"})
      api::RemoveMember(metadata, key);
  }
  metadata["uid"] = NewUid(context.prng);
  metadata["creationTimestamp"] = api::PrintTimestamp(context.now);
  return {};
}

// Owners that are named twice, in the same words, count once.
void DropRepeatedOwners(WriteContext& context, Json& object) {
  const JsonArray& owners = api::ArrayAt(object, "metadata.ownerReferences");
  JsonArray kept;
  std::vector<std::string> repeated;
  // Those of one object are few, however many there are in all.
  std::map<std::array<std::string_view, 4>, std::vector<const Json*>> by_object;
  for (const Json& owner : owners) {
    std::vector<const Json*>& before =
        by_object[{api::TextAt(owner, "uid"), api::TextAt(owner, "name"),
                   api::TextAt(owner, "kind"), api::TextAt(owner, "apiVersion")}];
    if (std::ranges::none_of(before,
                             [&](const Json* other) { return api::SameJson(owner, *other); })) {
      before.push_back(&owner);
      kept.push_back(owner);
    } else if (const std::string uid(api::TextAt(owner, "uid"));
               std::ranges::find(repeated, uid) == repeated.end()) {
      repeated.push_back(uid);
    }
  }
  if (kept.size() == owners.size()) return;
  api::SetPath(object, "metadata.ownerReferences", std::move(kept));
  context.warnings.push_back(
      fmt::format(".metadata.ownerReferences contains duplicate entries; API server dedups owner "
                  "references in 1.20+, and may reject such requests as early as 1.24; please fix "
                  "your requests; duplicate UID(s) observed: {}",
                  fmt::join(repeated, ", ")));
}

// A finalizer's name of no domain, which anybody else might choose. Of kinds that aren't decoded;
// all others refuse it.
void WarnOfFinalizers(WriteContext& context, const Json* old, const Json& object) {
  if (!context.request.kind->custom) return;
  const auto texts = [](const Json& document) {
    std::set<std::string_view> found;
    for (const Json& item : api::ArrayAt(document, "metadata.finalizers"))
      found.insert(api::TextOf(item));
    return found;
  };
  const std::set<std::string_view> before =
      old == nullptr ? std::set<std::string_view>() : texts(*old);
  for (const std::string_view name : texts(object)) {
    if (before.contains(name) || name.contains('/')) continue;
    if (name == "orphan" || name == "foregroundDeletion") continue;
    context.warnings.push_back(
        fmt::format("metadata.finalizers: {}: prefer a domain-qualified finalizer name to avoid "
                    "accidental conflicts with other finalizer writers",
                    api::QuoteGo(name)));
  }
}

void WarnOfSpec(WriteContext& context, const Json* old, const Json& object) {
  WarnOfFinalizers(context, old, object);
  for (const std::string& warning : api::SpecWarnings(*context.request.kind, old, object))
    context.warnings.push_back(warning);
}

bool Exists(const WriteContext& context, std::string_view name) {
  return context.store.FindHead(TableOf(*context.request.kind),
                                {.namespace_name = context.request.namespace_name, .name = name}) !=
         nullptr;
}

// Makes the name up when there is only the beginning of one. Upstream tries again when the name is
// taken.
Outcome<std::string> SettleName(WriteContext& context, Json& object) {
  std::string name(api::TextAt(object, "metadata.name"));
  const std::string base(api::TextAt(object, "metadata.generateName"));
  // One is called by a uid that needn't have a name.
  if (name.empty() && base.empty() && context.request.kind->id == KindId::kLimitRange) {
    name = NewUid(context.prng);
    api::MemberObject(object.get_object(), "metadata")["name"] = name;
  }
  if (!name.empty() || base.empty()) return name;
  for (int i = 0; i < kGeneratedNameTries; ++i) {
    name = fmt::format("{}{}", api::GeneratedNameBase(base),
                       api::GeneratedSuffix(context.prng.Next()));
    if (!Exists(context, name)) break;
  }
  api::MemberObject(object.get_object(), "metadata")["name"] = name;
  return name;
}

// What the server draws for an object that is valid. Of `before`, null for a new one, it has that
// already while the spec stays.
Outcome<void> Allocate(WriteContext& context, std::string_view name, const Json* before,
                       Json& object) {
  const api::Kind& kind = *context.request.kind;
  if (kind.id != KindId::kService) return {};
  const auto spec_of = [](const Json& service) -> const Json& {
    return api::OrEmptyObject(api::FindMember(service, "spec"));
  };
  if (before != nullptr && api::SameJson(spec_of(*before), spec_of(object))) return {};
  return AllocateService(context.store, context.prng, {.kind = kind, .name = name}, object);
}

// The last steps of admission: LimitRanges, webhooks, then ResourceQuotas. They count what would be
// stored.
Outcome<void> AdmitAmounts(WriteContext& context, std::string_view name, const Json* before,
                           const Json& object) {
  const api::Kind& kind = *context.request.kind;
  const bool sized = before == nullptr || context.request.subpart == Subpart::kResize;
  if ((kind.id == KindId::kPod && sized) || kind.id == KindId::kPersistentVolumeClaim) {
    Outcome<void> within =
        CheckLimitRanges(context.store, {.kind = kind, .name = name}, before, object);
    if (!within) return within;
  }
  if (context.webhooks != nullptr && before == nullptr) {
    Outcome<void> valid = Validate(context,
                                   {.operation = Operation::kCreate,
                                    .kind = kind,
                                    .name = name,
                                    .managed = context.managed_applied.value_or("")},
                                   object);
    if (!valid) return valid;
  }
  return CheckQuotas(context.store,
                     {.kind = kind,
                      .old = before,
                      .object = object,
                      .namespace_name = context.request.namespace_name,
                      .name = name,
                      .resizes = context.request.subpart == Subpart::kResize},
                     context.quota_counter);
}

// Has webhooks change a new object, which they see without what the server gives it.
Outcome<void> MutateNew(WriteContext& context, std::string_view name, Json& object) {
  const api::Kind& kind = *context.request.kind;
  JsonObject& metadata = api::MemberObject(object.get_object(), "metadata");
  const std::string uid(api::TextAt(object, "metadata.uid"));
  const std::string created(api::TextAt(object, "metadata.creationTimestamp"));
  std::string managed = context.managed_applied.value_or("");
  for (const std::string_view key : {"uid", "creationTimestamp"}) api::RemoveMember(metadata, key);
  const MutateSteps steps{
      .admit = [&](Json& changed) { return AdmitCreate(context.store, kind, changed); },
      .settle =
          [&](Json& changed) {
            DropRepeatedOwners(context, changed);
            api::ApplyDefaults(kind, changed);
            api::AddHeld(kind, changed);
            return CheckNamespace(context.request, changed);
          },
      .managed = &managed};
  const Reviewed reviewed{
      .operation = Operation::kCreate, .kind = kind, .name = name, .managed = managed};
  if (Outcome<void> fine = Mutate(context, reviewed, object, steps); !fine) return fine;
  context.managed_applied = std::move(managed);
  // That it is being deleted webhooks may say, as upstream.
  const JsonObject changed = api::ObjectAt(object, "metadata");
  Outcome<void> prepared = PrepareMetadata(context, object);
  for (const std::string_view key : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (const Json* said = api::FindMember(changed, key))
      api::Member(api::MemberObject(object.get_object(), "metadata"), key) = *said;
  }
  api::SetPath(object, "metadata.uid", Text(uid));
  api::SetPath(object, "metadata.creationTimestamp", Text(created));
  return prepared;
}

// Where pods have the name of an object, whose dots make trouble there.
std::string_view NameUse(KindId kind) {
  switch (kind) {
    case KindId::kPod:
      return "the Pod's hostname";
    case KindId::kDeployment:
    case KindId::kReplicaSet:
    case KindId::kReplicationController:
    case KindId::kJob:
    case KindId::kCronJob:
      return "Pod names and hostnames";
    default:
      return "";
  }
}

// Of kinds that Kueue would hold for quota, and that nobody holds here.
std::string QueueWarning(const api::Kind& kind, const Json& object) {
  if (kind.id != KindId::kPod && kind.id != KindId::kDeployment && kind.id != KindId::kReplicaSet &&
      kind.id != KindId::kStatefulSet) {
    return "";
  }
  const JsonObject& labels = api::ObjectAt(object, "metadata.labels");
  if (!labels.contains(api::kQueueNameLabel) ||
      !api::ArrayAt(object, "metadata.ownerReferences").empty()) {
    return "";
  }
  return fmt::format(
      "metadata.labels: {} counts for Jobs only: this {} gets its nodes without quota",
      api::kQueueNameLabel, kind.name);
}

// What is told of a new object that is valid, whether it is stored or not.
void WarnOfNew(WriteContext& context, const Json& object) {
  const api::Kind& kind = *context.request.kind;
  if (api::TextAt(object, "metadata.name").contains('.')) {
    if (const std::string_view where = NameUse(kind.id); !where.empty()) {
      context.warnings.push_back(fmt::format(
          "metadata.name: this is used in {}, which can result in surprising behavior; a DNS label "
          "is recommended: [must not contain dots]",
          where));
    }
  }
  WarnOfSpec(context, nullptr, object);
  if (const std::string warning = QueueWarning(kind, object); !warning.empty()) {
    context.warnings.push_back(warning);
  }
  if (kind.id == KindId::kCustomResourceDefinition) {
    std::ranges::move(api::DefinitionWarnings(object), std::back_inserter(context.warnings));
  }
}

// Admission, defaults and rules; what comes out may be stored, in the request's kind.
Outcome<void> AdmitAndValidateCreate(WriteContext& context, Json& object) {
  const api::Kind& kind = *context.request.kind;
  if (Outcome<void> metadata = PrepareMetadata(context, object); !metadata) return metadata;
  if (IsApply(context.request)) {
    api::ApplyDefaultsToApplied(kind, object);
  } else {
    api::ApplyDefaults(kind, object);
  }
  api::AddHeld(kind, object);
  context.managed_applied = ManagedAfter(context, nullptr, Json(), object);
  const std::string sent_name(api::TextAt(object, "metadata.name"));
  if (context.kind_ends) {
    return Forbidden({.kind = kind, .name = sent_name},
                     "create not allowed while custom resource definition is terminating");
  }
  if (kind.namespaced) {
    Outcome<void> admitted = AdmitNamespace(context.store, {.kind = kind, .name = sent_name},
                                            context.request.namespace_name);
    if (!admitted) return admitted;
  }
  if (Outcome<void> admitted = AdmitCreate(context.store, kind, object); !admitted) {
    return admitted;
  }
  if (context.empty_overhead && api::FindPath(std::as_const(object), "spec.overhead") == nullptr)
    return RefuseOverhead({.kind = kind, .name = sent_name});
  if (context.webhooks != nullptr) {
    if (Outcome<void> changed = MutateNew(context, sent_name, object); !changed) return changed;
  }
  if (Outcome<void> held = CheckEscalation(context.request, nullptr, object); !held) return held;
  const Outcome<std::string> name = SettleName(context, object);
  if (!name) return std::unexpected(name.error());
  api::PrepareForCreate(kind, object);
  if (kind.id == KindId::kPersistentVolume) {
    JsonObject& status = api::MemberObject(object.get_object(), "status");
    status["lastPhaseTransitionTime"] = api::PrintTimestamp(context.now);
  }
  api::FieldErrors errors = api::ValidateCreate(kind, object);
  if (kind.id == KindId::kCronJob && context.zones != nullptr)
    api::CheckTimeZone(*context.zones, nullptr, object, errors);
  CheckManagers(context, context.managed_applied.value_or(""), errors);
  if (!errors.empty()) return Invalid({.kind = kind, .name = *name}, errors);
  WarnOfNew(context, object);
  if (Outcome<void> admitted = AdmitValid(context.store, kind, nullptr, object); !admitted) {
    return admitted;
  }
  if (Outcome<void> room = AdmitAmounts(context, *name, nullptr, object); !room) return room;
  // Of what an update or an apply makes upstream's storage never hears it.
  if (context.version_sent && !context.options.dry_run && context.request.verb == Verb::kCreate)
    return Unclassified("resourceVersion should not be set on objects to be created");
  if (Exists(context, *name)) return AlreadyExists({.kind = kind, .name = *name});
  return Allocate(context, *name, nullptr, object);
}

Printed PrintNext(const WriteContext& context, const api::Kind& storage, Json& object,
                  Aside aside = {}, Twin* twin = nullptr) {
  const uint64_t revision = context.options.dry_run ? 0 : context.store.next_revision();
  return PrintCanonical(storage, object, revision, aside, twin);
}

// Returns the text, which is shared.
Bytes PutNext(WriteContext& context, const api::Kind& storage, const Json& object,
              Printed printed) {
  Bytes json(std::move(printed.text));
  if (context.options.dry_run) return json;
  store::StoredObject next = MakeStored(storage, object, json, context.store.next_revision());
  next.spec = printed.spec;
  next.managed = printed.managed;
  PutCharged(context.store, std::move(next), context.quota_counter);
  return json;
}

// CommitPut of an object as large as a client makes it. What counts is what would be stored.
Outcome<Bytes> CommitSized(WriteContext& context, const api::Kind& storage, Json& object,
                           Aside aside = {}, Twin* twin = nullptr) {
  Printed printed = PrintNext(context, storage, object, aside, twin);
  if (printed.text.size() > static_cast<size_t>(limits::kObjectBytesMax)) {
    return TooLarge(fmt::format("limit is {}", limits::kObjectBytesMax));
  }
  return PutNext(context, storage, object, std::move(printed));
}

// ---- Update ------------------------------------------------------------------------------------

// Whether a kind may be written without saying which version is meant.
bool AllowsUnconditionalUpdate(const api::Kind& kind) {
  constexpr std::array kNone = {KindId::kLease,
                                KindId::kPodDisruptionBudget,
                                KindId::kRuntimeClass,
                                KindId::kCsiDriver,
                                KindId::kCsiNode,
                                KindId::kCsiStorageCapacity,
                                KindId::kVolumeAttachment,
                                KindId::kCustomResourceDefinition,
                                KindId::kMutatingWebhookConfiguration,
                                KindId::kValidatingWebhookConfiguration};
  return std::ranges::find(kNone, kind.id) == kNone.end() && !kind.custom;
}
// Whether a PUT of what does not exist makes it.
bool AllowsCreateOnUpdate(KindId kind) {
  constexpr std::array kSome = {KindId::kEndpoints,
                                KindId::kEvent,
                                KindId::kEventsEvent,
                                KindId::kService,
                                KindId::kLease,
                                KindId::kLimitRange,
                                KindId::kRole,
                                KindId::kRoleBinding,
                                KindId::kClusterRole,
                                KindId::kRuntimeClass,
                                KindId::kClusterRoleBinding};
  return std::ranges::find(kSome, kind) != kSome.end();
}

// Zero stands for none.
bool NamesNoVersion(const Json& object) {
  const std::string_view version = api::TextAt(object, "metadata.resourceVersion");
  return version.empty() || ParseRevision(version) == 0;
}

// What a writer says of an object that is another one, or none.
std::unexpected<Problem> OtherUid(const WriteContext& context, std::string_view said,
                                  std::string_view uid) {
  return Conflict(
      context.request.subject(),
      fmt::format("StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, "
                  "AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object "
                  "meta: {}",
                  StorageKey(context, context.request.name), said, uid));
}

Outcome<void> CheckUid(const WriteContext& context, const store::StoredObject& old,
                       const Json& object) {
  const std::string_view uid = api::TextAt(object, "metadata.uid");
  if (!uid.empty() && uid != old.uid) return OtherUid(context, uid, old.uid);
  return {};
}

// The uid and resourceVersion that the writer believes in.
Outcome<void> CheckPreconditions(const WriteContext& context, const store::StoredObject& old,
                                 const Json& object) {
  if (Outcome<void> same = CheckUid(context, old, object); !same) return same;
  if (NamesNoVersion(object)) return {};
  const std::string_view version = api::TextAt(object, "metadata.resourceVersion");
  if (Outcome<void> fine = CheckVersionText(object); !fine) return fine;
  if (version != std::to_string(old.revision)) return Stale(context.request.subject());
  return {};
}

// Takes over what a request can't change.
void KeepServerMetadata(const Json& old, Json& object) {
  JsonObject& metadata = api::MemberObject(object.get_object(), "metadata");
  for (const std::string_view key : {"managedFields", "selfLink"}) {
    api::RemoveMember(metadata, key);
  }
  const JsonObject& kept = api::ObjectAt(old, "metadata");
  for (const std::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    const Json* value = api::FindMember(kept, key);
    const Json* own = api::FindMember(metadata, key);
    if (value == nullptr) {
      api::RemoveMember(metadata, key);
    } else if (own == nullptr || *own != *value) {
      metadata[key] = *value;
    }
  }
}

// An object that is being deleted ends when nothing holds it any more.
bool IsFinished(KindId storage, const Json& object) {
  if (!IsMarked(object)) return false;
  if (!api::ArrayAt(object, "metadata.finalizers").empty()) return false;
  if (storage == KindId::kNamespace) return api::ArrayAt(object, "spec.finalizers").empty();
  return api::IntegerAt(object, "metadata.deletionGracePeriodSeconds") == 0;
}

// Whether an update is written though it changes nothing: a new claim is stored upstream without
// the phase that is shown of it, and its first update puts it there. Of what is too old to be known
// to be new it isn't.
bool IsFirstOfClaim(const WriteContext& context, const store::StoredObject& old) {
  if (context.request.kind->id != KindId::kPersistentVolumeClaim) return false;
  const store::Store& store = context.store;
  if (old.revision <= store.compacted_revision()) return false;
  if (old.revision <= store.durable_revision())
    return store.EventAt(old.revision).previous == nullptr;
  const store::ObjectRef durable =
      store.Find(TableOf(*context.request.kind),
                 {.namespace_name = context.request.namespace_name, .name = context.request.name});
  return durable == nullptr || durable->uid != old.uid;
}

bool SameButGeneration(const Json& stored, Json object) {
  constexpr api::JsonPath kGeneration("metadata.generation");
  if (const Json* kept = api::FindPath(stored, kGeneration)) {
    api::SetPath(object, kGeneration, *kept);
  }
  return api::SameJson(stored, object);
}

}  // namespace

std::string NewUid(Prng& prng) {
  const uint64_t high = (prng.Next() & ~uint64_t{0xf000}) | 0x4000;
  const uint64_t low = (prng.Next() >> 2) | (uint64_t{1} << 63);
  std::string text;
  text.reserve(36);
  for (int digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) text += '-';
    text += "0123456789abcdef"[((digit < 16 ? high : low) >> (60 - digit % 16 * 4)) & 0xf];
  }
  return text;
}

std::string StorageKey(const WriteContext& context, std::string_view name) {
  const ResourceRequest& request = context.request;
  const api::Kind& kind = *request.kind;
  // Kinds that upstream keeps under another name than their resource's.
  constexpr std::array<std::pair<KindId, std::string_view>, 5> kFolders = {
      {{KindId::kNode, "minions"},
       {KindId::kReplicationController, "controllers"},
       {KindId::kService, "services/specs"},
       {KindId::kEndpoints, "services/endpoints"},
       {KindId::kIngress, "ingress"}}};
  const auto* const other =
      std::ranges::find(kFolders, kind.id, &std::pair<KindId, std::string_view>::first);
  std::string folder(other == kFolders.end() ? kind.plural : other->second);
  if (kind.custom) folder = fmt::format("{}/{}", kind.group, kind.plural);
  // What a dry run only pretends to store has no root.
  const std::string_view root = context.options.dry_run ? "" : "/registry";
  if (!kind.namespaced) return fmt::format("{}/{}/{}", root, folder, name);
  return fmt::format("{}/{}/{}/{}", root, folder, request.namespace_name, name);
}

void DeleteAsItStands(store::Store& store, const store::ObjectRef& target) {
  store::StoredObject last = *target;
  last.revision = store.next_revision();
  last.json = Bytes(WithRevision(target->json.view(), last.revision));
  DeleteCharged(store, std::move(last));
}

Outcome<store::ObjectRef> FindTarget(const WriteContext& context) {
  const ResourceRequest& request = context.request;
  store::ObjectRef found = context.store.FindHead(
      TableOf(*request.kind), {.namespace_name = request.namespace_name, .name = request.name});
  if (found == nullptr) return NotFound(request.subject());
  return found;
}

Outcome<void> CheckNameAndNamespace(const WriteContext& context, const Json& object) {
  const ResourceRequest& request = context.request;
  if (Outcome<void> same = CheckNamespace(request, object); !same) return same;
  const std::string_view name = api::TextAt(object, "metadata.name");
  if (name.empty()) {
    return BadRequest(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        request.name));
  }
  if (name != request.name) {
    return BadRequest(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, request.name));
  }
  return {};
}

Outcome<void> CheckVersionText(const Json& object) {
  const std::string_view version = api::TextAt(object, "metadata.resourceVersion");
  if (version.empty() || ParseRevision(version)) return {};
  return Unclassified(
      fmt::format("strconv.ParseUint: parsing {}: invalid syntax", api::QuoteGo(version)));
}

env::HttpResponse Respond(const WriteContext& context, int status, const Bytes& json) {
  return AnswerStored(status, context.shape, json, context.now);
}

Bytes CommitPut(WriteContext& context, const api::Kind& storage, Json object, Aside aside) {
  return PutNext(context, storage, object, PrintNext(context, storage, object, aside));
}

Bytes CommitDelete(WriteContext& context, const api::Kind& storage, Json last) {
  if (context.options.dry_run) return Bytes(PrintCanonical(storage, last, 0).text);
  const uint64_t revision = context.store.next_revision();
  Bytes json(PrintCanonical(storage, last, revision).text);
  DeleteCharged(context.store, MakeStored(storage, last, json, revision), context.quota_counter);
  return json;
}

WriteResult HandleWrite(const WriteTools& tools, const ResourceRequest& request) {
  if (request.verb == Verb::kPatch) {
    if (Outcome<void> known = CheckPatchType(request); !known) {
      return std::unexpected(std::move(known.error()));
    }
  }
  const Outcome<WriteOptions> options = ParseWriteOptions(request.query, OptionsName(request.verb));
  if (!options) return std::unexpected(options.error());
  const Outcome<Shape> shape = Negotiate(
      request, request.verb == Verb::kDeleteCollection ? AnswerKind::kList : AnswerKind::kOne);
  if (!shape) return std::unexpected(shape.error());
  std::array<unsigned char, kArenaBytes> buffer;
  api::JsonArena arena(buffer.data(), buffer.size());
  WriteContext context{.now = tools.now,
                       .store = tools.store,
                       .prng = tools.prng,
                       .request = request,
                       .options = *options,
                       .shape = *shape,
                       .memory = api::JsonMemory(&arena),
                       .warnings = {},
                       .quota_counter = tools.quota_counter,
                       .webhooks = tools.webhooks,
                       .progress = tools.progress,
                       .zones = tools.zones,
                       .kind_ends = tools.kind_ends};
  WriteResult result = Dispatch(context);
  if (!result) {
    result.error().warnings = std::move(context.warnings);
    return result;
  }
  AddWarningHeaders(context.warnings, result->headers);
  return result;
}

Outcome<WriteContext> QuestionContext(const WriteTools& tools, const ResourceRequest& request) {
  const Outcome<WriteOptions> options = ParseWriteOptions(request.query, "CreateOptions");
  if (!options) return std::unexpected(options.error());
  const Outcome<Shape> shape = Negotiate(request, AnswerKind::kOne);
  if (!shape) return std::unexpected(shape.error());
  return WriteContext{.now = tools.now,
                      .store = tools.store,
                      .prng = tools.prng,
                      .request = request,
                      .options = *options,
                      .shape = *shape,
                      .memory = {},
                      .warnings = {},
                      .webhooks = tools.webhooks};
}

WriteResult Create(WriteContext& context) {
  const api::Kind& kind = *context.request.kind;
  Outcome<Body> body =
      DecodeBody(context.request, kind, context.options.validation, context.memory);
  if (!body) return std::unexpected(std::move(body.error()));
  context.warnings = std::move(body->warnings);
  context.managed_sent = std::move(body->managed);
  context.empty_overhead = body->empty_overhead;
  DropRepeatedOwners(context, body->object);
  return CreateFrom(context, std::move(body->object));
}

// Who may change what is not there must be allowed to create it, too.
Outcome<void> CheckMayCreate(const ResourceRequest& request) {
  if (request.verb == Verb::kCreate || request.requester == nullptr) return {};
  const Attributes create{.verb = "create",
                          .group = std::string(request.kind->group),
                          .resource = std::string(request.kind->plural),
                          .subresource = {},
                          .namespace_name = request.namespace_name,
                          .name = request.name,
                          .path = {}};
  return request.requester->authorizer.Check(request.requester->identity, create);
}

WriteResult CreateFrom(WriteContext& context, Json object) {
  const api::Kind& kind = *context.request.kind;
  if (Outcome<void> allowed = CheckMayCreate(context.request); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  if (Outcome<void> fine = AdmitAndValidateCreate(context, object); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  api::ForgetEmptyLists(kind, object);
  Json stored = ToStorage(kind, std::move(object), nullptr);
  // An event that is asked for in the request's kind needn't be read again to be answered.
  const bool plain = context.shape.form == Form::kObject && context.shape.syntax == Syntax::kJson;
  const bool twofold = kind.id == KindId::kEventsEvent && plain;
  Twin answer{.kind = kind.id};
  const Outcome<Bytes> json =
      CommitSized(context, StorageOf(kind), stored,
                  {.managed = context.managed_applied.value_or("")}, twofold ? &answer : nullptr);
  if (!json) return std::unexpected(json.error());
  if (!twofold) return Respond(context, 201, *json);
  return Answer(201, Syntax::kJson, std::move(answer.text));
}

bool TryCreateOwn(Instant now, store::Store& store, Prng& prng, KindId kind, Json object) {
  const env::HttpRequest http;
  ResourceRequest request;
  request.verb = Verb::kCreate;
  request.kind = &api::KindOf(kind);
  request.namespace_name = api::TextAt(object, "metadata.namespace");
  request.http = &http;
  WriteContext context{.now = now,
                       .store = store,
                       .prng = prng,
                       .request = request,
                       .options = {},
                       .shape = {},
                       .memory = {},
                       .warnings = {},
                       .managed_applied = ""};
  if (!AdmitAndValidateCreate(context, object)) return false;
  CommitPut(context, api::KindOf(kind), std::move(object));
  return true;
}

void CreateOwn(Instant now, store::Store& store, Prng& prng, KindId kind, Json object) {
  CHECK(TryCreateOwn(now, store, prng, kind, std::move(object)));
}

// What webhooks are told of a change beside the object.
struct Change {
  const Json& before;
  const store::StoredObject& stored;
  std::string& managed;  // Those that the object will have.
};

// Runs `review(reviewed, object)` on the object as webhooks see it: of a scale that.
template <typename Review>
Outcome<void> ReviewChange(WriteContext& context, const Change& change, Json& object,
                           const Review& review) {
  const api::Kind& kind = *context.request.kind;
  if (context.request.subpart != Subpart::kScale) {
    return review(Reviewed{.operation = Operation::kUpdate,
                           .kind = kind,
                           .name = context.request.name,
                           .old = &change.before,
                           .old_managed = ManagedText(change.stored),
                           .managed = change.managed},
                  object);
  }
  const Json old_scale = ScaleOf(kind, change.before);
  Json scale = ScaleOf(kind, object);
  Outcome<void> fine = review(Reviewed{.operation = Operation::kUpdate,
                                       .kind = api::KindOf(KindId::kScale),
                                       .name = context.request.name,
                                       .old = &old_scale},
                              scale);
  if (fine) api::SetDotted(object, ReplicasPath(kind), api::IntegerAt(scale, "spec.replicas"));
  return fine;
}

Outcome<void> MutateChange(WriteContext& context, const Change& change, Json& object) {
  const auto settle = [&](Json& changed) -> Outcome<void> {
    if (context.request.subpart == Subpart::kScale) return {};
    DropRepeatedOwners(context, changed);
    api::ApplyDefaults(*context.request.kind, changed);
    KeepServerMetadata(change.before, changed);
    return {};
  };
  return ReviewChange(context, change, object, [&](const Reviewed& reviewed, Json& shown) {
    const bool whole = context.request.subpart != Subpart::kScale;
    return Mutate(context, reviewed, shown,
                  {.settle = settle, .managed = whole ? &change.managed : nullptr});
  });
}

Outcome<void> ValidateChange(WriteContext& context, const Change& change, Json& object) {
  return ReviewChange(context, change, object, [&](const Reviewed& reviewed, Json& shown) {
    return Validate(context, reviewed, shown);
  });
}

Outcome<Written> Replace(WriteContext& context, const store::ObjectRef& old, const Json& before,
                         Json object, std::string_view spec) {
  const api::Kind& kind = *context.request.kind;
  const api::Subresource subresource = SubresourceOf(context.request.subpart);
  if (Outcome<void> fresh = CheckPreconditions(context, *old, object); !fresh) {
    return std::unexpected(std::move(fresh.error()));
  }
  KeepServerMetadata(before, object);
  if (subresource == api::Subresource::kNone) api::AddHeld(kind, object);
  std::string managed = ManagedAfter(context, old.get(), before, object);
  if (context.webhooks != nullptr) {
    Outcome<void> changed =
        MutateChange(context, {.before = before, .stored = *old, .managed = managed}, object);
    if (!changed) return std::unexpected(std::move(changed.error()));
  }
  if (Outcome<void> held = CheckEscalation(context.request, &before, object); !held) {
    return std::unexpected(std::move(held.error()));
  }
  if (subresource == api::Subresource::kResize && !IsMarked(before)) {
    ApplyLimitRanges(context.store, object);
  }
  api::PrepareForUpdate(kind, before, object, subresource);
  if (kind.id == KindId::kService && subresource == api::Subresource::kNone)
    KeepAllocated(before, object);
  api::FieldErrors errors = api::ValidateMetadataUpdate(before, object);
  std::ranges::move(api::ValidateUpdate(kind, before, object, subresource, &context.warnings),
                    std::back_inserter(errors));
  if (kind.id == KindId::kCronJob && context.zones != nullptr)
    api::CheckTimeZone(*context.zones, &before, object, errors);
  CheckManagers(context, managed, errors);
  if (!errors.empty()) return Invalid(context.request.subject(), errors);
  if (subresource == api::Subresource::kNone) WarnOfSpec(context, &before, object);
  if (Outcome<void> admitted = AdmitValid(context.store, kind, &before, object); !admitted) {
    return std::unexpected(std::move(admitted.error()));
  }
  if (context.webhooks != nullptr) {
    Outcome<void> valid =
        ValidateChange(context, {.before = before, .stored = *old, .managed = managed}, object);
    if (!valid) return std::unexpected(std::move(valid.error()));
  }
  if (subresource == api::Subresource::kNone || subresource == api::Subresource::kResize) {
    Outcome<void> room = AdmitAmounts(context, context.request.name, &before, object);
    if (!room) return std::unexpected(std::move(room.error()));
    Outcome<void> given = Allocate(context, context.request.name, &before, object);
    if (!given) return std::unexpected(std::move(given.error()));
  }
  api::ForgetEmptyLists(kind, object);
  const auto same_managed = [&] { return SameManaged(ManagedText(*old), managed); };
  if (api::SameJson(before, object) && same_managed() && !IsFirstOfClaim(context, *old))
    return Written{.json = old->json};
  const Json stored =
      kind.is_view() ? LoadUnmanaged(StorageOf(kind), *old, context.memory) : Json();
  object = ToStorage(kind, std::move(object), &stored);
  // What an older version changes of what is not stored is no change.
  if (kind.is_view() && SameButGeneration(stored, object) && same_managed()) {
    return Written{.json = old->json};
  }
  const Aside aside{.spec = spec, .managed = managed};
  if (IsFinished(kind.storage, object)) {
    // Watchers hear of the end only, with what they last saw.
    Bytes answer(PrintCanonical(StorageOf(kind), object, old->revision, aside).text);
    if (!context.options.dry_run)
      CommitDelete(context, StorageOf(kind), Load(*old, context.memory));
    return Written{.json = std::move(answer), .gone = true};
  }
  Outcome<Bytes> json = CommitSized(context, StorageOf(kind), object, aside);
  if (!json) return std::unexpected(std::move(json.error()));
  return Written{.json = std::move(*json)};
}

WriteResult Update(WriteContext& context) {
  const api::Kind& kind = *context.request.kind;
  Outcome<Body> body =
      DecodeBody(context.request, kind, context.options.validation, context.memory);
  if (!body) return std::unexpected(std::move(body.error()));
  context.warnings = std::move(body->warnings);
  context.managed_sent = std::move(body->managed);
  Json object = std::move(body->object);
  DropRepeatedOwners(context, object);
  if (Outcome<void> named = CheckNameAndNamespace(context, object); !named) {
    return std::unexpected(std::move(named.error()));
  }
  const Outcome<store::ObjectRef> old = FindTarget(context);
  if (!old) {
    const std::string_view uid = api::TextAt(object, "metadata.uid");
    if (AllowsCreateOnUpdate(kind.id) && !uid.empty()) return OtherUid(context, uid, "");
    if (AllowsCreateOnUpdate(kind.id) && context.request.subpart == Subpart::kNone) {
      // Which version it is of doesn't count, as upstream.
      if (Outcome<void> fine = CheckVersionText(object); !fine)
        return std::unexpected(std::move(fine.error()));
      return CreateFrom(context, std::move(object));
    }
    return std::unexpected(old.error());
  }
  if (Outcome<void> same = CheckUid(context, **old, object); !same) {
    return std::unexpected(std::move(same.error()));
  }
  if (!AllowsUnconditionalUpdate(kind) && NamesNoVersion(object)) {
    const api::FieldErrors errors = {api::InvalidField("metadata.resourceVersion", int64_t{0},
                                                       "must be specified for an update")};
    auto problem = Invalid(context.request.subject(), errors);
    // Upstream names the resource here, not the kind.
    problem.error().kind = kind.plural;
    problem.error().message =
        api::InvalidMessage(kind.group_resource(), context.request.name, errors);
    return problem;
  }
  api::ApplyDefaults(kind, object);
  const Outcome<Written> written =
      Replace(context, *old, LoadUnmanaged(kind, **old, context.memory), std::move(object));
  if (!written) return std::unexpected(written.error());
  return Respond(context, 200, written->json);
}

}  // namespace berth::apiserver
