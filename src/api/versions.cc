#include "api/versions.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/defaults.h"
#include "api/object.h"
#include "api/schema.h"
#include "api/structural.h"
#include "api/topology_columns.h"
#include "base/check.h"
#include "base/limits.h"

namespace berth::api {
namespace {

// ---- Names -------------------------------------------------------------------------------------

// A member that has another name in the older version.
struct Renamed {
  KindId kind;
  JsonPath parent;
  std::string_view old_name, name;
};
constexpr std::array<Renamed, 3> kRenamed = {{
    {KindId::kClusterQueue, "spec", "cohort", "cohortName"},
    {KindId::kLocalQueue, "status", "flavorUsage", "flavorsUsage"},
    {KindId::kWorkload, "status", "accumulatedPastExexcutionTimeSeconds",
     "accumulatedPastExecutionTimeSeconds"},
}};

void Rename(Json& object, JsonPath parent, std::string_view from, std::string_view to) {
  Json* holder = FindPath(object, parent);
  const Json* value = holder == nullptr ? nullptr : FindMember(*holder, from);
  if (value == nullptr) return;
  Json moved = *value;
  JsonObject& members = holder->get_object();
  RemoveMember(members, from);
  members[to] = std::move(moved);
}

// ---- ClusterQueue ------------------------------------------------------------------------------

// The older version may name checks in a list of their own, which then counts alone.
void NewChecks(Json& object) {
  JsonArray rules;
  for (const Json& name : ArrayAt(object, "spec.admissionChecks")) {
    const auto says = [&](const Json& rule) { return SameJson(rule.at("name"), name); };
    if (std::ranges::none_of(rules, says)) rules.push_back(JsonObject{{"name", name}});
  }
  RemovePath(object, "spec.admissionChecks");
  if (!rules.empty()) {
    SetPath(object, "spec.admissionChecksStrategy.admissionChecks", std::move(rules));
  } else if (ArrayAt(object, "spec.admissionChecksStrategy.admissionChecks").empty()) {
    RemovePath(object, "spec.admissionChecksStrategy");
  }
}

void NewFungibility(Json& object) {
  for (const auto& [path, old_word] :
       {std::pair(JsonPath("spec.flavorFungibility.whenCanBorrow"), "Borrow"),
        std::pair(JsonPath("spec.flavorFungibility.whenCanPreempt"), "Preempt")}) {
    if (TextAt(object, path) == old_word) SetPath(object, path, "MayStopSearch");
  }
}

// ---- Workload ----------------------------------------------------------------------------------

struct ClassSource {
  std::string_view source, group, kind;
};
constexpr std::array<ClassSource, 2> kClassSources = {{
    {"kueue.x-k8s.io/workloadpriorityclass", "kueue.x-k8s.io", "WorkloadPriorityClass"},
    {"scheduling.k8s.io/priorityclass", "scheduling.k8s.io", "PriorityClass"},
}};

void NewClass(Json& object) {
  const std::string name(TextAt(object, "spec.priorityClassName"));
  const std::string source(TextAt(object, "spec.priorityClassSource"));
  RemovePath(object, "spec.priorityClassName");
  RemovePath(object, "spec.priorityClassSource");
  const auto* const known = std::ranges::find(kClassSources, source, &ClassSource::source);
  if (known == kClassSources.end() || name.empty()) return;
  SetPath(object, "spec.priorityClassRef",
          JsonObject{{"group", known->group}, {"kind", known->kind}, {"name", name}});
}

void OldClass(Json& object) {
  const std::string name(TextAt(object, "spec.priorityClassRef.name"));
  const std::string_view group = TextAt(object, "spec.priorityClassRef.group");
  const auto* const known = std::ranges::find(kClassSources, group, &ClassSource::group);
  const bool same =
      known != kClassSources.end() && known->kind == TextAt(object, "spec.priorityClassRef.kind");
  RemovePath(object, "spec.priorityClassRef");
  if (!same) return;
  SetPath(object, "spec.priorityClassName", Json(name));
  SetPath(object, "spec.priorityClassSource", Json(known->source));
}

// One value of all, or one of each.
Json ColumnOf(const std::vector<std::string_view>& values) {
  const std::string_view first = values.front();
  const CommonEnds ends = CommonEndsOf(values);
  if (ends.universal) return JsonObject{{"universal", first}};
  JsonObject individual;
  if (ends.prefix > 0) individual["prefix"] = first.substr(0, ends.prefix);
  if (ends.suffix > 0) individual["suffix"] = first.substr(first.size() - ends.suffix);
  JsonArray roots;
  roots.reserve(values.size());
  for (const std::string_view value : values) {
    roots.emplace_back(value.substr(ends.prefix, value.size() - ends.prefix - ends.suffix));
  }
  individual["roots"] = std::move(roots);
  return JsonObject{{"individual", std::move(individual)}};
}

Json CountsOf(std::span<const Json> domains) {
  const int64_t first = IntegerAt(domains.front(), "count");
  JsonArray counts;
  counts.reserve(domains.size());
  for (const Json& domain : domains) counts.emplace_back(IntegerAt(domain, "count"));
  const bool universal =
      std::ranges::all_of(counts, [&](const Json& count) { return count == first; });
  if (universal) return JsonObject{{"universal", first}};
  return JsonObject{{"individual", std::move(counts)}};
}

// Domains one by one become columns of their values, and their counts another.
void NewAssignment(Json& assignment) {
  const std::span<const Json> all = ArrayAt(assignment, "domains");
  const size_t levels = ArrayAt(assignment, "levels").size();
  JsonArray slices;
  for (size_t begin = 0; begin < all.size(); begin += kSliceDomainsMax) {
    const auto domains = all.subspan(begin, std::min(kSliceDomainsMax, all.size() - begin));
    JsonArray columns;
    for (size_t level = 0; level < levels; ++level) {
      std::vector<std::string_view> values;
      values.reserve(domains.size());
      for (const Json& domain : domains) {
        const JsonArray& own = ArrayAt(domain, "values");
        const bool said = level < own.size() && own[level].is_string();
        values.push_back(said ? std::string_view(own[level].get_string()) : std::string_view());
      }
      columns.push_back(ColumnOf(values));
    }
    slices.push_back(JsonObject{{"domainCount", static_cast<int64_t>(domains.size())},
                                {"valuesPerLevel", std::move(columns)},
                                {"podCounts", CountsOf(domains)}});
  }
  JsonObject& members = assignment.get_object();
  RemoveMember(members, "domains");
  members["slices"] = std::move(slices);
}

// What a column says of its domain at `index`; null where it says nothing of it.
Json ValueAt(const Json& column, size_t index) {
  if (const Json* universal = FindMember(column, "universal")) return *universal;
  const JsonArray& roots = ArrayAt(column, "individual.roots");
  if (index >= roots.size() || !roots[index].is_string()) return {};
  std::string value(TextAt(column, "individual.prefix"));
  value += std::string_view(roots[index].get_string());
  value += TextAt(column, "individual.suffix");
  return Json(value);
}

Json CountAt(const Json& counts, size_t index) {
  if (const Json* universal = FindMember(counts, "universal")) return *universal;
  const JsonArray& individual = ArrayAt(counts, "individual");
  return index < individual.size() ? individual[index] : Json();
}

// What the columns of one workload may become: a slice says in few words how many domains it has.
constexpr size_t kToldBytesMax = 8 * static_cast<size_t>(limits::kObjectBytesMax);
constexpr size_t kAroundDomainBytes = 32;
constexpr size_t kAroundValueBytes = 4;

// Of an assignment that would take more than there is room for no domain is told.
void OldAssignment(Json& assignment, size_t& room) {
  JsonArray domains;
  size_t taken = 0;
  for (const Json& slice : ArrayAt(assignment, "slices")) {
    const int64_t count = IntegerAt(slice, "domainCount");
    const Json& counts = OrEmptyObject(FindMember(slice, "podCounts"));
    for (int64_t i = 0; i < count && taken <= room; ++i) {
      const auto index = static_cast<size_t>(i);
      JsonArray values;
      taken += kAroundDomainBytes;
      for (const Json& column : ArrayAt(slice, "valuesPerLevel")) {
        values.push_back(ValueAt(column, index));
        taken += kAroundValueBytes;
        if (values.back().is_string()) taken += values.back().get_string().size();
      }
      domains.push_back(
          JsonObject{{"values", std::move(values)}, {"count", CountAt(counts, index)}});
    }
  }
  if (taken > room) domains.clear();
  room -= std::min(room, taken);
  JsonObject& members = assignment.get_object();
  RemoveMember(members, "slices");
  members["domains"] = std::move(domains);
}

JsonArray* AssignmentsOf(Json& workload) {
  Json* list = FindPath(workload, "status.admission.podSetAssignments");
  return list == nullptr ? nullptr : list->if_array();
}

template <typename F>
void ForAssignments(Json& workload, F&& convert) {
  JsonArray* assignments = AssignmentsOf(workload);
  if (assignments == nullptr) return;
  for (Json& item : *assignments) {
    Json* topology = FindMember(item, "topologyAssignment");
    if (topology != nullptr && topology->is_object()) convert(*topology);
  }
}

// ---- Whole documents ---------------------------------------------------------------------------

void ToNew(KindId kind, Json& object) {
  for (const Renamed& member : kRenamed) {
    if (member.kind == kind) Rename(object, member.parent, member.old_name, member.name);
  }
  if (kind == KindId::kClusterQueue) {
    NewChecks(object);
    NewFungibility(object);
  } else if (kind == KindId::kWorkload) {
    NewClass(object);
    ForAssignments(object, NewAssignment);
  }
}

void ToOld(KindId kind, Json& object) {
  for (const Renamed& member : kRenamed) {
    if (member.kind == kind) Rename(object, member.parent, member.name, member.old_name);
  }
  if (kind == KindId::kWorkload) {
    OldClass(object);
    size_t room = kToldBytesMax;
    ForAssignments(object, [&](Json& assignment) { OldAssignment(assignment, room); });
  }
}

// ---- What the older version has no words for ---------------------------------------------------

struct Unsaid {
  KindId kind;
  JsonPath path;
};
constexpr std::array<Unsaid, 3> kUnsaid = {{
    {KindId::kClusterQueue, "spec.concurrentAdmissionPolicy"},
    {KindId::kWorkload, "spec.preemptionGates"},
    {KindId::kWorkload, "status.preemptionGates"},
}};

Json* FindNamed(Json& object, JsonPath list, std::string_view name) {
  Json* items = FindPath(object, list);
  if (items == nullptr || !items->is_array()) return nullptr;
  auto* const found = std::ranges::find_if(
      items->get_array(), [&](const Json& item) { return TextAt(item, "name") == name; });
  return found == items->get_array().end() ? nullptr : found;
}

void KeepSliceConstraints(const Json& stored, Json& object) {
  constexpr JsonPath kConstraints("topologyRequest.podsetSliceRequiredTopologyConstraints");
  for (const Json& before : ArrayAt(stored, "spec.podSets")) {
    const Json* kept = FindPath(before, kConstraints);
    Json* now = FindNamed(object, "spec.podSets", TextAt(before, "name"));
    if (kept == nullptr || now == nullptr) continue;
    // They say the same thing, of which one may be said.
    const bool asks = FindPath(*now, "topologyRequest") != nullptr;
    const bool other = FindPath(*now, "topologyRequest.podSetSliceRequiredTopology") != nullptr;
    if (asks && !other) SetPath(*now, kConstraints, *kept);
  }
}

// There are many ways to cut an assignment into columns, of which the stored one stays.
void KeepColumns(const Json& stored, Json& object) {
  size_t told_room = kToldBytesMax;
  for (const Json& before : ArrayAt(stored, "status.admission.podSetAssignments")) {
    const Json* kept = FindMember(before, "topologyAssignment");
    Json* now = FindNamed(object, "status.admission.podSetAssignments", TextAt(before, "name"));
    Json* topology = now == nullptr ? nullptr : FindMember(*now, "topologyAssignment");
    if (kept == nullptr || topology == nullptr) continue;
    if (!kept->is_object() || !topology->is_object()) continue;
    Json told = *kept;
    Json written = *topology;
    size_t written_room = told_room;
    OldAssignment(told, told_room);
    OldAssignment(written, written_room);
    if (SameJson(told, written)) *topology = *kept;
  }
}

void KeepUnsaid(KindId kind, const Json& stored, Json& object) {
  for (const Unsaid& unsaid : kUnsaid) {
    const Json* kept = unsaid.kind == kind ? FindPath(stored, unsaid.path) : nullptr;
    if (kept != nullptr) SetPath(object, unsaid.path, *kept);
  }
  if (kind != KindId::kWorkload) return;
  KeepSliceConstraints(stored, object);
  KeepColumns(stored, object);
}

void KeepMemberOf(const Json& stored, std::string_view name, Json& object) {
  JsonObject& members = object.get_object();
  if (const Json* kept = FindMember(stored, name)) {
    members[name] = *kept;
  } else {
    RemoveMember(members, name);
  }
}

bool SameMember(const Json& a, const Json& b, std::string_view name) {
  const Json* left = FindMember(a, name);
  const Json* right = FindMember(b, name);
  if (left == nullptr || right == nullptr) return left == right;
  return SameJson(*left, *right);
}

}  // namespace

void Convert(KindId from, KindId to, Json& object) {
  if (from == to || !object.is_object()) return;
  const Kind& source = KindOf(from);
  const Kind& target = KindOf(to);
  CHECK(source.storage == to || target.storage == from);
  if (!target.custom) {
    ConvertEvent(from, to, object);
    return;
  }
  if (target.is_view()) {
    ToOld(from, object);
  } else {
    ToNew(to, object);
  }
  JsonObject& members = object.get_object();
  members["apiVersion"] = target.api_version();
  const auto type = static_cast<TypeId>(to);
  // What the other form doesn't know goes unsaid: nobody wrote it here.
  const std::vector<std::string> unknown = PruneUnknown(BuiltinSchema(), type, members);
  ApplySchemaDefaults(BuiltinSchema(), type, members);
}

Json ToStored(KindId view, Json object, const Json* stored) {
  const Kind& kind = KindOf(view);
  if (!kind.is_view() || !object.is_object()) return object;
  if (!kind.custom || stored == nullptr) {
    Convert(view, kind.storage, object);
    return object;
  }
  Json told(*stored, object.storage());
  Convert(kind.storage, view, told);
  std::vector<std::string_view> untouched;
  for (const std::string_view part : {"spec", "status"}) {
    if (SameMember(told, object, part)) untouched.push_back(part);
  }
  Convert(view, kind.storage, object);
  KeepUnsaid(kind.storage, *stored, object);
  for (const std::string_view part : untouched) KeepMemberOf(*stored, part, object);
  return object;
}

}  // namespace berth::api
