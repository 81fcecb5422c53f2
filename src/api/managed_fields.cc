#include "api/managed_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/system/error_code.hpp>
#include <map>
#include <tuple>

#include "api/custom_definition.h"
#include "api/field_error.h"
#include "api/object.h"
#include "api/timestamp.h"
#include "base/check.h"

namespace berth::api {
namespace {

constexpr std::string_view kOldUpdates = "ancient-changes";
constexpr std::string_view kBeforeFirstApply = "before-first-apply";
constexpr std::string_view kKubectl = "kubectl";

// Nobody manages what an object is.
constexpr std::array<std::string_view, 12> kNobodys = {
    "apiVersion",
    "kind",
    "metadata",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.name",
    "metadata.namespace",
    "metadata.resourceVersion",
};

constexpr std::array<std::string_view, 7> kEntryOrder = {
    "manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"};

void RemoveNobodys(FieldSet& set) {
  for (const std::string_view path : kNobodys) RemovePath(set, path);
}

// What tells entries apart: an applier is the same in each version.
auto IdentityOf(const ManagedEntry& entry) {
  return std::make_tuple(std::string_view(entry.manager), entry.applied,
                         entry.applied ? std::string_view() : std::string_view(entry.api_version),
                         std::string_view(entry.subresource));
}

ManagedEntry EntryOf(const FieldWriter& writer, bool applied) {
  return {.manager = writer.manager.empty() ? "unknown" : writer.manager,
          .applied = applied,
          .api_version = writer.api_version,
          .subresource = writer.subresource,
          .time = {},
          .fields = {}};
}

ManagedEntry* FindEntry(ManagedFields& managed, const ManagedEntry& like) {
  for (ManagedEntry& entry : managed) {
    if (IdentityOf(entry) == IdentityOf(like)) return &entry;
  }
  return nullptr;
}

void Filter(const TrackedType& type, FieldSet& set) {
  for (const std::string_view path : type.resets) RemoveTree(set, path);
}

FieldChanges Changes(const TrackedType& type, const Json& before, const Json& after) {
  FieldChanges changes = CompareFields(type.typed, before, after);
  for (FieldSet* set : {&changes.removed, &changes.modified, &changes.added}) Filter(type, *set);
  return changes;
}

void DropEmpty(ManagedFields& managed) {
  std::erase_if(managed, [](const ManagedEntry& entry) { return entry.fields.empty(); });
}

int64_t SecondsOf(const ManagedEntry& entry) {
  const Result<Instant> time = ParseTimestamp(entry.time);
  return time ? time->ns / 1'000'000'000 : 0;
}

void Sort(ManagedFields& managed) {
  std::ranges::sort(managed, [](const ManagedEntry& a, const ManagedEntry& b) {
    const auto key = [](const ManagedEntry& entry) {
      return std::make_tuple(!entry.applied, SecondsOf(entry), std::string_view(entry.manager),
                             std::string_view(entry.api_version),
                             std::string_view(entry.subresource));
    };
    return key(a) < key(b);
  });
}

// The oldest updates of each version become one.
void CapUpdates(ManagedFields& managed) {
  std::vector<size_t> updates;
  for (size_t i = 0; i < managed.size(); ++i) {
    if (!managed[i].applied) updates.push_back(i);
  }
  if (updates.size() <= kUpdateManagersMax) return;
  std::ranges::sort(updates, [&](size_t a, size_t b) {
    return std::make_tuple(SecondsOf(managed[a]), IdentityOf(managed[a])) <
           std::make_tuple(SecondsOf(managed[b]), IdentityOf(managed[b]));
  });
  size_t count = updates.size();
  std::map<std::string, size_t> first;  // Of each version: where those before went, or will go.
  std::map<std::string, size_t> buckets;
  for (const size_t i : updates) {
    const ManagedEntry& entry = managed[i];
    if (entry.manager == kOldUpdates && entry.subresource.empty()) {
      buckets.emplace(entry.api_version, i);
    }
  }
  for (const size_t i : updates) {
    if (count <= kUpdateManagersMax) break;
    const auto [at, is_first] = first.emplace(managed[i].api_version, i);
    if (is_first) continue;
    const size_t bucket_index = buckets.emplace(managed[i].api_version, at->second).first->second;
    if (bucket_index == i) continue;
    ManagedEntry& bucket = managed[bucket_index];
    bucket.manager = kOldUpdates;
    bucket.subresource.clear();
    bucket.fields = Union(bucket.fields, managed[i].fields);
    bucket.time = managed[i].time;
    managed[i].fields = {};
    --count;
  }
  DropEmpty(managed);
}

// To who writes a scale, all are managers of a scale.
std::string ManagerText(const ManagedEntry& entry, std::string_view subresource) {
  std::string text;
  AppendQuoted(entry.manager, text);
  if (!entry.subresource.empty()) {
    text += " with subresource ";
    AppendQuoted(entry.subresource, text);
  }
  if (!entry.applied) {
    text += fmt::format(" using {}", subresource == "scale" ? "autoscaling/v1" : entry.api_version);
  }
  return text;
}

// Takes what a write changed from all others. Conflicts are what it would take.
std::vector<FieldConflict> TakeFromOthers(const FieldChanges& changes, const ManagedEntry* own,
                                          bool force, ManagedFields& managed) {
  if (managed.empty()) return {};
  const FieldSet written = Union(changes.modified, changes.added);
  std::vector<FieldConflict> conflicts;
  CHECK(own != nullptr || force);
  if (!force) {
    std::vector<const ManagedEntry*> others;
    for (const ManagedEntry& entry : managed) {
      if (IdentityOf(entry) != IdentityOf(*own)) others.push_back(&entry);
    }
    std::ranges::sort(others, {}, [](const ManagedEntry* entry) { return IdentityOf(*entry); });
    for (const ManagedEntry* entry : others) {
      ForEachPath(Intersection(entry->fields, written), [&](const std::vector<PathElement>& path) {
        conflicts.push_back({.manager = ManagerText(*entry, own->subresource), .path = path});
      });
    }
    if (!conflicts.empty()) return conflicts;
  }
  for (ManagedEntry& entry : managed) {
    if (own != nullptr && IdentityOf(entry) == IdentityOf(*own)) continue;
    const FieldSet taken = Intersection(entry.fields, written);
    if (!taken.empty()) entry.fields = Difference(entry.fields, taken);
    if (!changes.removed.empty()) entry.fields = Difference(entry.fields, changes.removed);
  }
  return {};
}

// Of what the applier gave up, what nobody else manages goes.
Json Prune(const TrackedType& type, Json merged, const FieldSet& last,
           const ManagedFields& managed) {
  if (last.empty()) return merged;
  const TypedBy& typed = type.typed;
  const FieldSet given = WithNamedParents(typed, last);
  const FieldSet all = WithNamedParents(typed, FieldSetOf(typed, merged));
  Json pruned = WithoutFields(typed, merged, given);
  FieldSet kept = WithNamedParents(typed, FieldSetOf(typed, pruned));
  FieldSet owned;
  for (const ManagedEntry& entry : managed) owned = Union(owned, entry.fields);
  kept = Union(kept, WithNamedParents(typed, owned));
  pruned = WithoutFields(typed, merged, Difference(all, kept));
  // Of what went along with it, what was never the applier's comes back.
  const FieldSet left = WithNamedParents(typed, FieldSetOf(typed, pruned));
  return WithoutFields(typed, merged, Intersection(Difference(all, left), given));
}

// What may be taken from others: what kubectl applied itself before it applied on the server.
std::optional<FieldSet> LastAppliedFields(const TrackedType& type, const Json& live,
                                          std::string_view api_version) {
  const Json* annotation =
      FindMember(ObjectAt(live, "metadata.annotations"), kLastAppliedAnnotation);
  if (annotation == nullptr || !annotation->is_string()) return std::nullopt;
  boost::system::error_code error;
  const Json last = boost::json::parse(annotation->get_string(), error);
  if (error || !last.is_object() || TextAt(last, "apiVersion") != api_version) return std::nullopt;
  const FieldChanges changes = CompareFields(type.typed, last, live);
  FieldSet fields = FieldSetOf(type.typed, last);
  for (const FieldSet* set : {&changes.modified, &changes.added, &changes.removed}) {
    fields = Difference(fields, *set);
  }
  return fields;
}

// As Go prints maps: members by name.
Json Sorted(const Json& value) {
  if (value.is_array()) {
    JsonArray items;
    for (const Json& item : value.get_array()) items.push_back(Sorted(item));
    return items;
  }
  if (!value.is_object()) return value;
  JsonObject members;
  for (const auto& item : value.get_object()) members.emplace(item.key(), Sorted(item.value()));
  SortMembers(members);
  return members;
}

// kubectl keeps what it applied in an annotation, which follows where there is one.
void UpdateLastApplied(const Json& applied, Json& object) {
  const Json* had = FindMember(ObjectAt(object, "metadata.annotations"), kLastAppliedAnnotation);
  if (had == nullptr || !had->is_string() || had->get_string().empty()) return;
  Json said = applied;
  if (Json* annotations = FindPath(said, "metadata.annotations");
      annotations != nullptr && annotations->is_object()) {
    RemoveMember(annotations->get_object(), kLastAppliedAnnotation);
    if (annotations->get_object().empty()) RemovePath(said, "metadata.annotations");
  }
  JsonObject& annotations =
      MemberObject(MemberObject(object.get_object(), "metadata"), "annotations");
  annotations[kLastAppliedAnnotation] = boost::json::serialize(Sorted(said)) + "\n";
}

void AddMember(std::string_view name, std::string_view value, std::string& out) {
  if (out.back() != '{') out += ',';
  AppendQuoted(name, out);
  out += ':';
  AppendQuoted(value, out);
}

Applied ApplyOnce(const TrackedType& type, const FieldWriter& writer, ManagedFields managed,
                  const Json& live, const Json& applied) {
  ManagedEntry own = EntryOf(writer, true);
  own.fields = FieldSetOf(type.typed, applied);
  Filter(type, own.fields);
  FieldSet last;
  if (ManagedEntry* before = FindEntry(managed, own)) {
    last = std::move(before->fields);
    own.time = before->time;
    *before = own;
  } else {
    managed.push_back(own);
  }
  Applied result;
  Json object = Prune(type, MergeApplied(type.typed, live, applied), last, managed);
  const FieldChanges changes = Changes(type, live, object);
  result.conflicts = TakeFromOthers(changes, &own, writer.force, managed);
  if (!result.conflicts.empty()) return result;
  ManagedEntry& entry = *FindEntry(managed, own);
  RemoveNobodys(entry.fields);
  result.changed = !SameJson(live, object);
  if (result.changed) entry.time = writer.time;
  DropEmpty(managed);
  Sort(managed);
  result.object = std::move(object);
  result.managed = std::move(managed);
  return result;
}

}  // namespace

Result<ManagedFields> ParseManagedFields(const Json& array) {
  const auto no = [](std::string text) { return Fail(ErrorCode::kInvalid, std::move(text)); };
  ManagedFields managed;
  if (!array.is_array()) return no("managedFields must be an array");
  const JsonArray& entries = array.get_array();
  for (size_t i = 0; i < entries.size(); ++i) {
    const Json& json = entries[i];
    const std::string_view operation = TextAt(json, "operation");
    if (operation != "Apply" && operation != "Update")
      return no("operation must be `Apply` or `Update`");
    if (TextAt(json, "apiVersion").empty()) return no("apiVersion must not be empty");
    const std::string_view type = TextAt(json, "fieldsType");
    if (type.empty()) return no(fmt::format("missing fieldsType in managed fields entry {}", i));
    if (type != "FieldsV1") {
      return no(fmt::format("invalid fieldsType {} in managed fields entry {}", QuoteGo(type), i));
    }
    ManagedEntry entry{.manager = std::string(TextAt(json, "manager")),
                       .applied = operation == "Apply",
                       .api_version = std::string(TextAt(json, "apiVersion")),
                       .subresource = std::string(TextAt(json, "subresource")),
                       .time = std::string(TextAt(json, "time")),
                       .fields = {}};
    const Json* fields = FindMember(json, "fieldsV1");
    if (fields != nullptr && !fields->is_null() && !FieldSetFrom(*fields, entry.fields))
      return no(fmt::format("error decoding the set of managed fields entry {}", i));
    if (ManagedEntry* same = FindEntry(managed, entry)) {
      *same = std::move(entry);
    } else {
      managed.push_back(std::move(entry));
    }
  }
  return managed;
}

std::string PrintManagedFields(const ManagedFields& managed) {
  if (managed.empty()) return "";
  std::string out = "[";
  for (const ManagedEntry& entry : managed) {
    if (out.back() != '[') out += ',';
    out += '{';
    if (!entry.manager.empty()) AddMember("manager", entry.manager, out);
    AddMember("operation", entry.applied ? "Apply" : "Update", out);
    AddMember("apiVersion", entry.api_version, out);
    if (!entry.time.empty()) AddMember("time", entry.time, out);
    AddMember("fieldsType", "FieldsV1", out);
    out += ",\"fieldsV1\":";
    AppendFieldsV1(entry.fields, out);
    if (!entry.subresource.empty()) AddMember("subresource", entry.subresource, out);
    out += '}';
  }
  out += ']';
  return out;
}

std::string PrintManagedFields(const JsonArray& entries) {
  if (entries.empty()) return "";
  JsonArray ordered;
  for (const Json& entry : entries) {
    JsonObject members;
    for (const std::string_view name : kEntryOrder) {
      if (const Json* member = FindMember(entry, name)) members.emplace(name, *member);
    }
    ordered.emplace_back(std::move(members));
  }
  return boost::json::serialize(ordered);
}

bool ResetsManagedFields(const Json& array) {
  if (!array.is_array()) return false;
  const JsonArray& entries = array.get_array();
  if (entries.empty()) return true;
  return entries.size() == 1 && entries[0].is_object() && entries[0].get_object().empty();
}

TrackedType TrackedTypeOf(const Kind& kind, std::string_view subresource) {
  TrackedType type{
      .typed = {.schema = BuiltinSchema(),
                .type = kind.defined != nullptr ? kNoType : static_cast<TypeId>(kind.id),
                .decoded = !kind.custom,
                .custom = kind.defined != nullptr ? &kind.defined->schema : nullptr},
      .resets = {}};
  if (subresource == "status") {
    type.resets = {"spec"};
    if (kind.custom || kind.id == KindId::kVolumeAttachment) type.resets = {"metadata", "spec"};
    if (kind.id == KindId::kDeployment) type.resets = {"spec", "metadata.labels"};
    if (kind.id == KindId::kPod) {
      type.resets = {"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"};
    }
  } else if (subresource == "ephemeralcontainers" || subresource == "resize") {
    // Upstream keeps nothing out here, not even what such a write doesn't change.
    type.resets = {};
  } else if (kind.has_status) {
    type.resets = {"status"};
  }
  return type;
}

ManagedFields TrackUpdate(const TrackedType& type, const FieldWriter& writer, ManagedFields managed,
                          const Json& before, const Json& after) {
  FieldChanges changes = Changes(type, before, after);
  if (changes.none()) return managed;
  TakeFromOthers(changes, nullptr, true, managed);
  ManagedEntry own = EntryOf(writer, false);
  own.fields =
      changes.modified.empty() ? std::move(changes.added) : Union(changes.modified, changes.added);
  RemoveNobodys(own.fields);
  if (!own.fields.empty()) {
    own.time = writer.time;
    if (ManagedEntry* had = FindEntry(managed, own)) {
      had->fields = Union(had->fields, own.fields);
      had->time = own.time;
    } else {
      managed.push_back(std::move(own));
    }
  }
  DropEmpty(managed);
  CapUpdates(managed);
  Sort(managed);
  return managed;
}

Applied TrackApply(const TrackedType& type, const FieldWriter& writer, ManagedFields managed,
                   const Json& live, const Json& applied) {
  if (managed.empty() && !writer.managed_before && !live.is_null() &&
      !TextAt(live, "metadata.uid").empty()) {
    FieldWriter earlier = writer;
    earlier.manager = kBeforeFirstApply;
    managed = TrackUpdate(type, earlier, {}, Json(), live);
  }
  Applied result = ApplyOnce(type, writer, managed, live, applied);
  if (writer.manager != kKubectl) return result;
  if (!result.conflicts.empty()) {
    const std::optional<FieldSet> allowed = LastAppliedFields(type, live, writer.api_version);
    if (!allowed) return result;
    std::erase_if(result.conflicts,
                  [&](const FieldConflict& conflict) { return HasPath(*allowed, conflict.path); });
    if (!result.conflicts.empty()) return result;
    FieldWriter forced = writer;
    forced.force = true;
    result = ApplyOnce(type, forced, std::move(managed), live, applied);
  }
  UpdateLastApplied(applied, result.object);
  return result;
}

bool SameButTimes(const ManagedFields& a, const ManagedFields& b) {
  return std::ranges::equal(a, b, [](const ManagedEntry& x, const ManagedEntry& y) {
    return x.manager == y.manager && x.applied == y.applied && x.api_version == y.api_version &&
           x.subresource == y.subresource && x.fields == y.fields;
  });
}

}  // namespace berth::api
