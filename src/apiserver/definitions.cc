#include "apiserver/definitions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "api/field_error.h"
#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/objects.h"
#include "apiserver/writes.h"
#include "base/check.h"

namespace berth::apiserver {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr auto kTable = static_cast<store::Table>(KindId::kCustomResourceDefinition);
constexpr std::string_view kCleanup = "customresourcecleanup.apiextensions.k8s.io";

struct Condition {
  std::string_view type, status, reason;
  std::string message;
};

void Set(Json& object, const Condition& condition, Instant now) {
  Json* status = api::FindPath(object, "status");
  if (status == nullptr) {
    api::SetPath(object, "status", JsonObject());
    status = api::FindPath(object, "status");
  }
  Json& list = api::Member(status->get_object(), "conditions");
  if (!list.is_array()) list.emplace_array();
  JsonArray& conditions = list.get_array();
  auto at = std::ranges::find_if(
      conditions, [&](const Json& other) { return api::TextAt(other, "type") == condition.type; });
  const bool is_new = at == conditions.end();
  if (is_new) {
    conditions.push_back(JsonObject());
    at = conditions.end() - 1;
  }
  const bool changes = api::TextAt(*at, "status") != condition.status;
  std::string since(api::TextAt(*at, "lastTransitionTime"));
  if (is_new || changes) since = api::PrintTimestamp(now);
  *at = JsonObject{{"lastTransitionTime", since},
                   {"message", condition.message},
                   {"reason", condition.reason},
                   {"status", condition.status},
                   {"type", condition.type}};
}

bool Holds(const Json& object, std::string_view type) {
  return std::ranges::any_of(api::ArrayAt(object, "status.conditions"), [&](const Json& one) {
    return api::TextAt(one, "type") == type && api::TextAt(one, "status") == "True";
  });
}

bool HasFinalizer(const Json& object, std::string_view finalizer) {
  return std::ranges::any_of(api::ArrayAt(object, "metadata.finalizers"), [&](const Json& one) {
    return one.is_string() && std::string_view(one.get_string()) == finalizer;
  });
}

void DropFinalizer(Json& object, std::string_view finalizer) {
  JsonArray left;
  for (const Json& one : api::ArrayAt(object, "metadata.finalizers")) {
    if (!one.is_string() || std::string_view(one.get_string()) != finalizer) left.push_back(one);
  }
  if (left.empty()) {
    api::RemovePath(object, "metadata.finalizers");
  } else {
    api::SetPath(object, "metadata.finalizers", std::move(left));
  }
}

// The names that are accepted in a group: resources and kinds.
struct TakenNames {
  std::vector<std::string> resources, kinds;
};

void AddNames(const Json& names, TakenNames& taken) {
  for (const std::string_view member : {"plural", "singular"}) {
    const std::string_view name = api::TextAt(names, member);
    if (!name.empty()) taken.resources.emplace_back(name);
  }
  for (const Json& name : api::ArrayAt(names, "shortNames")) {
    if (name.is_string()) taken.resources.emplace_back(name.get_string());
  }
  for (const std::string_view member : {"kind", "listKind"}) {
    const std::string_view name = api::TextAt(names, member);
    if (!name.empty()) taken.kinds.emplace_back(name);
  }
}

bool IsTaken(const std::vector<std::string>& taken, std::string_view name) {
  return std::ranges::find(taken, name) != taken.end();
}

// The short names that are asked for, where others have some of them: which.
std::vector<std::string> TakenShortNames(const TakenNames& taken, const Json& wanted,
                                         const Json& accepted) {
  const std::vector<std::string> own = api::TextsAt(accepted, "shortNames");
  std::vector<std::string> conflicts;
  for (const std::string& name : api::TextsAt(wanted, "shortNames")) {
    if (!IsTaken(own, name) && IsTaken(taken.resources, name))
      conflicts.push_back(fmt::format("\"{}\" is already in use", name));
  }
  return conflicts;
}

void CopyMember(const Json& from, std::string_view member, Json& to) {
  if (const Json* value = api::FindMember(from, member)) {
    api::Member(to.get_object(), member) = *value;
  } else {
    api::RemoveMember(to.get_object(), member);
  }
}

// Accepts of the names that are wanted those that nobody has, each by itself, and says which one
// was not, the last: `accepted` is what there was.
Condition AcceptNames(const TakenNames& taken, const Json& wanted, Json& accepted) {
  Condition names{.type = "NamesAccepted",
                  .status = "True",
                  .reason = "NoConflicts",
                  .message = "no conflicts found"};
  const auto refuse = [&](std::string_view reason, std::string message) {
    names.status = "False";
    names.reason = reason;
    names.message = std::move(message);
  };
  const auto accept = [&](std::string_view member, const std::vector<std::string>& used,
                          std::string_view reason) {
    const std::string_view name = api::TextAt(wanted, member);
    if (name != api::TextAt(accepted, member) && IsTaken(used, name)) {
      refuse(reason, fmt::format("\"{}\" is already in use", name));
    } else {
      CopyMember(wanted, member, accepted);
    }
  };
  accept("plural", taken.resources, "PluralConflict");
  accept("singular", taken.resources, "SingularConflict");
  if (api::TextsAt(wanted, "shortNames") != api::TextsAt(accepted, "shortNames")) {
    const std::vector<std::string> conflicts = TakenShortNames(taken, wanted, accepted);
    if (conflicts.empty()) {
      CopyMember(wanted, "shortNames", accepted);
    } else {
      const std::string list = fmt::format("{}", fmt::join(conflicts, ", "));
      refuse("ShortNamesConflict", conflicts.size() == 1 ? list : fmt::format("[{}]", list));
    }
  }
  accept("kind", taken.kinds, "KindConflict");
  accept("listKind", taken.kinds, "ListKindConflict");
  CopyMember(wanted, "categories", accepted);
  return names;
}

using Outline = std::shared_ptr<const Json>;

// What it is to have in its status.
void Establish(Instant now, const std::vector<Outline>& all, Json& object) {
  TakenNames others;
  for (const Outline& outline : all) {
    const Json& other = *outline;
    const bool same = api::TextAt(other, "metadata.uid") == api::TextAt(object, "metadata.uid");
    if (same || api::TextAt(other, "spec.group") != api::TextAt(object, "spec.group")) continue;
    if (const Json* names = api::FindPath(other, "status.acceptedNames")) AddNames(*names, others);
  }
  const Json* names = api::FindPath(std::as_const(object), "spec.names");
  if (names == nullptr) return;
  const Json wanted = *names;
  const Json* given = api::FindPath(std::as_const(object), "status.acceptedNames");
  Json accepted = given != nullptr && given->is_object() ? *given : Json(JsonObject());
  // Upstream comes back to what it wrote; the names that were accepted count as taken then.
  Condition condition = AcceptNames(others, wanted, accepted);
  TakenNames taken = others;
  AddNames(accepted, taken);
  condition = AcceptNames(taken, wanted, accepted);
  Set(object, condition, now);
  api::SetPath(object, "status.acceptedNames", std::move(accepted));
  if (Holds(object, "Established")) return;
  const bool fine = condition.status == "True";
  Set(object,
      {.type = "Established",
       .status = condition.status,
       .reason = fine ? "InitialNamesAccepted" : "NotAccepted",
       .message = fine ? "the initial names have been accepted" : "not all names are accepted"},
      now);
}

// Says what of a schema that is stored can't be enforced, which an older version let in.
void SayProblems(Instant now, const std::string& problems, Json& object) {
  constexpr std::string_view kType = "NonStructuralSchema";
  if (!problems.empty()) {
    Set(object, {.type = kType, .status = "True", .reason = "Violations", .message = problems},
        now);
    return;
  }
  JsonArray left;
  for (const Json& one : api::ArrayAt(std::as_const(object), "status.conditions")) {
    if (api::TextAt(one, "type") != kType) left.push_back(one);
  }
  if (!left.empty()) api::SetPath(object, "status.conditions", std::move(left));
}

// The status of a definition's outline, which alone is reviewed, in the whole of it.
Json WithStatusOf(const Json& outline, Json whole) {
  if (const Json* status = api::FindPath(outline, "status")) api::SetPath(whole, "status", *status);
  return whole;
}

// Writes a definition anew.
void Put(store::Store& store, Json object) {
  store.Put(
      PrintStored(api::KindOf(KindId::kCustomResourceDefinition), object, store.next_revision()));
}

// Ends the objects of a table as a deletion in the background would.
// How many are left, that finalizers hold.
size_t EndObjects(Instant now, store::Store& store, store::Table table) {
  std::vector<store::ObjectRef> objects;
  store.WalkHead({.table = table}, [&](const store::ObjectRef& object) {
    objects.push_back(object);
    return true;
  });
  size_t left = 0;
  for (const store::ObjectRef& object : objects) {
    Json document = Load(*object);
    if (api::ArrayAt(document, "metadata.finalizers").empty()) {
      DeleteAsItStands(store, object);
      continue;
    }
    ++left;
    if (IsMarked(document)) continue;
    Mark(document, now, 0);
    store::StoredObject next = *object;
    next.revision = store.next_revision();
    Printed printed = PrintAgain(document, next.revision);
    next.json = Bytes(std::move(printed.text));
    next.spec = printed.spec;
    next.managed = printed.managed;
    store.Put(std::move(next));
  }
  return left;
}

// A definition that is being deleted goes after its objects.
void End(Instant now, store::Store& store, const store::ObjectRef& stored, Json object) {
  const bool cleans = HasFinalizer(object, kCleanup);
  const std::optional<store::Table> table = store.TableNamed(stored->name);
  const bool native = api::NativeKindOf(object) != nullptr;
  const size_t left = native || !table || !cleans ? 0 : EndObjects(now, store, *table);
  Condition condition{.type = "Terminating",
                      .status = "True",
                      .reason = "InstanceDeletionInProgress",
                      .message = "CustomResource deletion is in progress"};
  if (!Holds(object, "Established")) {
    condition = {.type = "Terminating",
                 .status = "False",
                 .reason = "NeverEstablished",
                 .message = "resource was never established"};
  } else if (left == 0) {
    condition = {.type = "Terminating",
                 .status = "False",
                 .reason = "InstanceDeletionCompleted",
                 .message = "removed all instances"};
  }
  if (cleans) Set(object, condition, now);
  if (left == 0) DropFinalizer(object, kCleanup);
  if (left == 0 && api::ArrayAt(object, "metadata.finalizers").empty()) {
    DeleteAsItStands(store, stored);
  } else if (!api::SameJson(Load(*stored), object)) {
    Put(store, std::move(object));
  }
}

}  // namespace

const api::Kind* Definitions::FindResource(std::string_view group, std::string_view version,
                                           std::string_view plural) const {
  for (const Entry& entry : entries_) {
    const api::CustomVersion* found = entry.definition->Version(version);
    if (found == nullptr || !found->served) continue;
    if (found->kind.group == group && found->kind.plural == plural) return &found->kind;
  }
  return nullptr;
}

bool Definitions::KnowsGroup(std::string_view group, std::string_view version) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    if (entry.definition->group() != group) return false;
    const api::CustomVersion* found = entry.definition->Version(version);
    return version.empty() || (found != nullptr && found->served);
  });
}

std::vector<const api::Kind*> Definitions::AllKinds() const {
  std::vector<const api::Kind*> kinds;
  for (const api::Kind& kind : api::Kinds()) kinds.push_back(&kind);
  for (const Entry& entry : entries_) {
    for (const api::CustomVersion& version : entry.definition->versions()) {
      if (version.served) kinds.push_back(&version.kind);
    }
  }
  return kinds;
}

bool Definitions::IsEnding(const api::Kind& kind) const {
  CHECK(kind.defined != nullptr);
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.ending && entry.definition.get() == kind.defined->definition;
  });
}

bool Definitions::HoldsEnd(store::Table table) const {
  return std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.ending && entry.table == table; });
}

void BeginEnd(Instant now, Json& object) {
  api::SetPath(object, "metadata.deletionTimestamp", Text(api::PrintTimestamp(now)));
  if (!HasFinalizer(object, kCleanup)) {
    JsonArray finalizers = api::ArrayAt(object, "metadata.finalizers");
    finalizers.emplace_back(kCleanup);
    api::SetPath(object, "metadata.finalizers", std::move(finalizers));
  }
  Set(object,
      {.type = "Terminating",
       .status = "True",
       .reason = "InstanceDeletionPending",
       .message = "CustomResourceDefinition marked for deletion; CustomResource deletion will "
                  "begin soon"},
      now);
}

void Definitions::Review(Instant now, store::Store& store) {
  std::vector<store::ObjectRef> stored;
  store.WalkHead({.table = kTable}, [&](const store::ObjectRef& object) {
    stored.push_back(object);
    return true;
  });
  // Who has names keeps them; the others get theirs in the order in which they came.
  std::ranges::sort(stored, {}, [](const store::ObjectRef& object) { return object->revision; });
  std::vector<Outline> all;
  for (const store::ObjectRef& object : stored) all.push_back(KnownOf(object).outline);
  for (size_t i = 0; i < all.size(); ++i) {
    if (IsMarked(*all[i])) {
      End(now, store, stored[i], Load(*stored[i]));
      continue;
    }
    // Who has the names that it wants keeps them, whatever others want.
    Known& known = KnownOf(stored[i]);
    if (known.settled && Holds(*all[i], "NamesAccepted")) continue;
    Json object = *all[i];
    Establish(now, all, object);
    SayProblems(now, known.problems, object);
    known.settled = api::SameJson(*all[i], object);
    if (known.settled) continue;
    Put(store, WithStatusOf(object, Load(*stored[i])));
    all[i] = std::make_shared<const Json>(std::move(object));
  }
}

std::string Definitions::ProblemsOf(const store::StoredObject& stored, const Json& object) const {
  const auto entry = std::ranges::find(entries_, stored.uid, &Entry::uid);
  // What was written since was checked.
  const bool same =
      entry != entries_.end() && entry->generation == api::IntegerAt(object, "metadata.generation");
  return same ? entry->problems : "";
}

Definitions::Known& Definitions::KnownOf(const store::ObjectRef& stored) {
  Known& known = known_[stored->revision];
  // The revision of a write that was taken back is given again.
  if (known.stored == stored) return known;
  Json object = Load(*stored);
  for (const std::string_view path : {"spec.versions", "spec.conversion", "metadata.annotations",
                                      "metadata.labels", "metadata.managedFields"}) {
    api::RemovePath(object, path);
  }
  known = {
      .stored = stored, .outline = std::make_shared<const Json>(std::move(object)), .problems = {}};
  known.problems = ProblemsOf(*stored, *known.outline);
  return known;
}

void Definitions::ForgetKnown(const store::Store& store,
                              const std::vector<store::ObjectRef>& durable) {
  std::set<uint64_t> current;
  for (const store::ObjectRef& stored : durable) current.insert(stored->revision);
  store.WalkHead({.table = kTable}, [&](const store::ObjectRef& object) {
    current.insert(object->revision);
    return true;
  });
  std::erase_if(known_, [&](const auto& one) { return !current.contains(one.first); });
}

std::vector<store::Table> Definitions::Refresh(store::Store& store) {
  // Tables that are added end a walk.
  std::vector<store::ObjectRef> definitions;
  store.Walk({.table = kTable}, [&](const store::ObjectRef& stored) {
    definitions.push_back(stored);
    return true;
  });
  std::map<std::string_view, const Entry*> known_entries;
  for (const Entry& entry : entries_) known_entries.emplace(entry.uid, &entry);
  std::set<std::string, std::less<>> kept;
  std::vector<Entry> next;
  for (const store::ObjectRef& stored : definitions) {
    Known& seen = KnownOf(stored);
    const Json& object = *seen.outline;
    if (!Holds(object, "Established") || api::NativeKindOf(object) != nullptr) continue;
    Entry entry{.uid = stored->uid,
                .generation = api::IntegerAt(object, "metadata.generation"),
                .ending = IsMarked(object)};
    const auto same = known_entries.find(entry.uid);
    // Its deletion counts as a generation, and changes no schema.
    if (same != known_entries.end() &&
        (same->second->generation == entry.generation || entry.ending)) {
      entry.definition = same->second->definition;
      entry.table = same->second->table;
      entry.problems = same->second->problems;
      kept.insert(entry.uid);
    } else {
      const std::optional<store::Table> known = store.TableNamed(stored->name);
      entry.table = known ? *known : store.AddTable(stored->name);
      api::FieldErrors errors;
      entry.definition = api::CustomDefinition::Parse(Load(*stored), errors, entry.table);
      for (const api::FieldError& error : api::ListedOf(errors)) {
        if (!entry.problems.empty()) entry.problems += ", ";
        entry.problems += api::ToString(error);
      }
    }
    seen.settled = seen.settled && seen.problems == entry.problems;
    seen.problems = entry.problems;
    next.push_back(std::move(entry));
  }
  std::vector<store::Table> changed;
  for (const Entry& old : entries_) {
    if (!kept.contains(old.uid)) changed.push_back(old.table);
  }
  entries_ = std::move(next);
  ForgetKnown(store, definitions);
  return changed;
}

std::vector<std::string> DefinedTables(const env::JournalContent& content) {
  const std::string prefix = api::KindOf(KindId::kCustomResourceDefinition).group_resource() + "//";
  std::vector<std::string> names;
  for (const env::JournalRecord& record : content.records) {
    if (!record.key.starts_with(prefix)) continue;
    std::string name = record.key.substr(prefix.size());
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace berth::apiserver
