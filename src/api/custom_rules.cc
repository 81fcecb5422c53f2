#include "api/custom_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/custom_schema.h"
#include "api/object.h"
#include "api/ratchet.h"
#include "api/validate_common.h"
#include "api/well_known.h"

namespace berth::api {
namespace {

using rules::Path;

bool Has(const Json& object, std::string_view member) {
  return FindMember(object, member) != nullptr;
}
bool SameMember(const Json& a, const Json& b, std::string_view member) {
  const Json* left = FindMember(a, member);
  const Json* right = FindMember(b, member);
  if (left == nullptr || right == nullptr) return left == right;
  return SameJson(*left, *right);
}
size_t CountAt(const Json& object, JsonPath path) { return ArrayAt(object, path).size(); }
const JsonArray& ItemsOf(const Json& list) {
  static const JsonArray kNone;
  return list.is_array() ? list.get_array() : kNone;
}

// A rule of every item, as all() has it: a plain no weighs more than what can't be told.
template <typename F>
Verdict All(const Json& list, F&& check) {
  Verdict result;
  for (const Json& item : ItemsOf(list)) {
    const Verdict verdict = check(item);
    if (!verdict.fine && verdict.missing.empty()) return verdict;
    if (!verdict.fine) result = verdict;
  }
  return result;
}

// member == text, where the member has to be there.
Verdict Equals(const Json& object, std::string_view member, std::string_view text) {
  if (!Has(object, member)) return {.fine = false, .missing = member};
  return {.fine = TextAt(object, member) == text};
}

Verdict IsSame(const Json& self, const Json* before) {
  return {.fine = before == nullptr || SameJson(self, *before)};
}

// ---- Taints and tolerations --------------------------------------------------------------------

Verdict KnowsEffects(const Json& list, const Json* /*before*/) {
  return All(list, [](const Json& item) -> Verdict {
    const std::string_view effect = TextAt(item, "effect");
    return {.fine = !Has(item, "effect") || effect == "NoSchedule" ||
                    effect == "PreferNoSchedule" || effect == "NoExecute"};
  });
}

Verdict ExistsWithoutKey(const Json& list, const Json* /*before*/) {
  return All(list, [](const Json& item) {
    return Has(item, "key") ? Verdict{} : Equals(item, "operator", "Exists");
  });
}

Verdict SecondsOfNoExecute(const Json& list, const Json* /*before*/) {
  return All(list, [](const Json& item) {
    return Has(item, "tolerationSeconds") ? Equals(item, "effect", "NoExecute") : Verdict{};
  });
}

Verdict KnowsOperators(const Json& list, const Json* /*before*/) {
  return All(list, [](const Json& item) -> Verdict {
    const std::string_view op = TextAt(item, "operator");
    return {.fine = !Has(item, "operator") || op == "Equal" || op == "Exists"};
  });
}

Verdict ExistsWithoutValue(const Json& list, const Json* /*before*/) {
  return All(list, [](const Json& item) -> Verdict {
    return {.fine = TextAt(item, "operator") != "Exists" || !Has(item, "value")};
  });
}

// ---- ResourceFlavor, Topology ------------------------------------------------------------------

Verdict LabelsOfTopology(const Json& spec, const Json* /*before*/) {
  if (!Has(spec, "topologyName")) return {};
  if (!Has(spec, "nodeLabels")) return {.fine = false, .missing = "nodeLabels"};
  return {.fine = !ObjectAt(spec, "nodeLabels").empty()};
}

Verdict KeepsTopology(const Json& spec, const Json* before) {
  return {.fine = before == nullptr || !Has(*before, "topologyName") ||
                  SameMember(spec, *before, "topologyName")};
}

bool EndsInHostname(const Json& levels) {
  const JsonArray& items = ItemsOf(levels);
  return !items.empty() && TextAt(items.back(), "nodeLabel") == kHostnameLabel;
}

Verdict KeepsLevels(const Json& levels, const Json* before) {
  return {.fine = before == nullptr || SameJson(levels, *before) ||
                  (EndsInHostname(levels) && EndsInHostname(*before))};
}

Verdict DistinctLevels(const Json& levels, const Json* /*before*/) {
  std::set<std::string_view> seen;
  return All(levels, [&](const Json& level) -> Verdict {
    return {.fine = seen.insert(TextAt(level, "nodeLabel")).second};
  });
}

Verdict HostnameIsLowest(const Json& levels, const Json* /*before*/) {
  return {.fine = EndsInHostname(levels) ||
                  std::ranges::none_of(ItemsOf(levels), [](const Json& level) {
                    return TextAt(level, "nodeLabel") == kHostnameLabel;
                  })};
}

// ---- ClusterQueue, Cohort ----------------------------------------------------------------------

Verdict BorrowsInCohort(const Json& spec, const Json* /*before*/) {
  if (Has(spec, "cohortName") || Has(spec, "cohort")) return {};
  for (const Json& group : ArrayAt(spec, "resourceGroups")) {
    for (const Json& flavor : ArrayAt(group, "flavors")) {
      for (const Json& resource : ArrayAt(flavor, "resources")) {
        if (Has(resource, "borrowingLimit")) return {.fine = false};
      }
    }
  }
  return {};
}

Verdict FlavorsCoverAll(const Json& group, const Json* /*before*/) {
  const size_t covered = CountAt(group, "coveredResources");
  return {.fine = std::ranges::all_of(ArrayAt(group, "flavors"), [&](const Json& flavor) {
            return CountAt(flavor, "resources") == covered;
          })};
}

Verdict BorrowingReclaims(const Json& preemption, const Json* /*before*/) {
  const Json* borrow = FindMember(preemption, "borrowWithinCohort");
  return {.fine = TextAt(preemption, "reclaimWithinCohort") != "Never" || borrow == nullptr ||
                  TextAt(*borrow, "policy") == "Never"};
}

Verdict PrefersOfTwo(const Json& fungibility, const Json* /*before*/) {
  return {.fine = !Has(fungibility, "preference") ||
                  (TextAt(fungibility, "whenCanBorrow") == "TryNextFlavor" &&
                   TextAt(fungibility, "whenCanPreempt") == "TryNextFlavor")};
}

// ---- Workload ----------------------------------------------------------------------------------

bool IsTrue(const Json& workload, std::string_view type) {
  return std::ranges::any_of(ArrayAt(workload, "status.conditions"), [&](const Json& condition) {
    return TextAt(condition, "type") == type && TextAt(condition, "status") == "True";
  });
}
bool IsReserved(const Json* workload) {
  return workload != nullptr && IsTrue(*workload, "QuotaReserved");
}

Verdict AssignsAllPodSets(const Json& self, const Json* /*before*/) {
  return {.fine =
              !IsReserved(&self) || FindPath(self, "status.admission") == nullptr ||
              CountAt(self, "spec.podSets") == CountAt(self, "status.admission.podSetAssignments")};
}

const Json* ClassOf(const Json& workload) { return FindPath(workload, "spec.priorityClassRef"); }

Verdict KeepsClass(const Json& self, const Json* before) {
  return {.fine =
              !IsReserved(before) || (ClassOf(self) == nullptr) == (ClassOf(*before) == nullptr)};
}

bool KeepsOfClass(const Json& self, const Json* before, std::string_view member) {
  if (!IsReserved(before)) return true;
  const Json* now = ClassOf(self);
  const Json* then = ClassOf(*before);
  return now == nullptr || then == nullptr || SameMember(*now, *then, member);
}
Verdict KeepsClassGroup(const Json& self, const Json* before) {
  return {.fine = KeepsOfClass(self, before, "group")};
}
Verdict KeepsClassKind(const Json& self, const Json* before) {
  return {.fine = KeepsOfClass(self, before, "kind")};
}
Verdict KeepsClassName(const Json& self, const Json* before) {
  const bool core = TextAt(self, "spec.priorityClassRef.group") == "scheduling.k8s.io" &&
                    TextAt(self, "spec.priorityClassRef.kind") == "PriorityClass";
  return {.fine = !core || KeepsOfClass(self, before, "name")};
}

// Of v1beta1: what both versions say of a member of the spec is the same.
bool KeepsIfSaid(const Json& self, const Json* before, std::string_view member) {
  const Json* now = FindMember(OrEmptyObject(FindMember(self, "spec")), member);
  const Json* then = FindMember(OrEmptyObject(FindMember(*before, "spec")), member);
  return now == nullptr || then == nullptr || SameJson(*now, *then);
}
Verdict KeepsClassSource(const Json& self, const Json* before) {
  return {.fine = !IsReserved(before) || KeepsIfSaid(self, before, "priorityClassSource")};
}
Verdict KeepsOldClassName(const Json& self, const Json* before) {
  constexpr JsonPath kSource("spec.priorityClassSource");
  const bool said = before != nullptr && FindPath(*before, kSource) != nullptr &&
                    FindPath(self, kSource) != nullptr;
  return {.fine = !IsReserved(before) || !said ||
                  TextAt(self, kSource) == "kueue.x-k8s.io/workloadpriorityclass" ||
                  KeepsIfSaid(self, before, "priorityClassName")};
}

const Json& SpecOf(const Json& workload) { return OrEmptyObject(FindMember(workload, "spec")); }

Verdict KeepsQueue(const Json& self, const Json* before) {
  return {.fine = !IsReserved(before) || !IsReserved(&self) ||
                  SameMember(SpecOf(self), SpecOf(*before), "queueName")};
}

Verdict KeepsTimeLimit(const Json& self, const Json* before) {
  constexpr JsonPath kLimit("spec.maximumExecutionTimeSeconds");
  return {.fine = before == nullptr || !IsTrue(*before, "Admitted") || !IsTrue(self, "Admitted") ||
                  IntegerAt(self, kLimit) == IntegerAt(*before, kLimit)};
}

Verdict PriorityOfClass(const Json& spec, const Json* /*before*/) {
  return {.fine = !Has(spec, "priorityClassRef") || Has(spec, "priority")};
}

Verdict PriorityOfClassName(const Json& spec, const Json* /*before*/) {
  return {.fine = !Has(spec, "priorityClassName") || Has(spec, "priority")};
}

Verdict LeastOfCount(const Json& set, const Json* /*before*/) {
  return {.fine = !Has(set, "minCount") || IntegerAt(set, "minCount") <= IntegerAt(set, "count")};
}

Verdict CoreClassKind(const Json& ref, const Json* /*before*/) {
  return {.fine = TextAt(ref, "group") != "scheduling.k8s.io" ||
                  TextAt(ref, "kind") == "PriorityClass"};
}
Verdict KueueClassKind(const Json& ref, const Json* /*before*/) {
  return {.fine = TextAt(ref, "group") != "kueue.x-k8s.io" ||
                  TextAt(ref, "kind") == "WorkloadPriorityClass"};
}

Verdict KeepsCluster(const Json& status, const Json* before) {
  return {.fine = before == nullptr || !Has(*before, "clusterName") ||
                  !Has(status, "clusterName") || SameMember(status, *before, "clusterName")};
}
Verdict ClusterOrNominees(const Json& status, const Json* /*before*/) {
  return {.fine = !Has(status, "clusterName") || CountAt(status, "nominatedClusterNames") == 0};
}

Verdict ValuesOfLevels(const Json& assignment, const Json* /*before*/) {
  const size_t levels = CountAt(assignment, "levels");
  return {.fine = std::ranges::all_of(ArrayAt(assignment, "slices"), [&](const Json& slice) {
            return CountAt(slice, "valuesPerLevel") == levels;
          })};
}
Verdict CountsOfDomains(const Json& slice, const Json* /*before*/) {
  return {.fine = FindPath(slice, "podCounts.individual") == nullptr ||
                  std::cmp_equal(CountAt(slice, "podCounts.individual"),
                                 IntegerAt(slice, "domainCount"))};
}
Verdict RootsOfDomains(const Json& slice, const Json* /*before*/) {
  const int64_t domains = IntegerAt(slice, "domainCount");
  return {.fine = std::ranges::all_of(ArrayAt(slice, "valuesPerLevel"), [&](const Json& values) {
            return !Has(values, "individual") ||
                   std::cmp_equal(CountAt(values, "individual.roots"), domains);
          })};
}
Verdict OneOfTwo(const Json& values, const Json* /*before*/) {
  return {.fine = Has(values, "universal") != Has(values, "individual")};
}

struct Named {
  std::string_view message;
  Rule rule;
};
constexpr std::array<Named, 35> kRules = {{
    {"at least one nodeLabel is required when topology is set", LabelsOfTopology},
    {"topologyName is immutable when topologyName is set", KeepsTopology},
    {"supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'", KnowsEffects},
    {"operator must be Exists when 'key' is empty, which means 'match all values and all keys'",
     ExistsWithoutKey},
    {"effect must be 'NoExecute' when 'tolerationSeconds' is set", SecondsOfNoExecute},
    {"supported toleration values: 'Equal'(default), 'Exists'", KnowsOperators},
    {"a value must be empty when 'operator' is 'Exists'", ExistsWithoutValue},
    {"field is immutable", IsSame},
    {"levels are mutable only when kubernetes.io/hostname is the lowest level both before and "
     "after the change",
     KeepsLevels},
    {"must be unique", DistinctLevels},
    {"the kubernetes.io/hostname label can only be used at the lowest level of topology",
     HostnameIsLowest},
    {"borrowingLimit must be nil when cohort is empty", BorrowsInCohort},
    {"flavors must have the same number of resources as the coveredResources", FlavorsCoverAll},
    {"reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never", BorrowingReclaims},
    {"preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
     PrefersOfTwo},
    {"podSetAssignments must have the same number of podSets as the spec", AssignsAllPodSets},
    {"priorityClassRef is immutable while workload quota reserved", KeepsClass},
    {"priorityClassRef.group is immutable while workload quota reserved", KeepsClassGroup},
    {"priorityClassRef.kind is immutable while workload quota reserved", KeepsClassKind},
    {"priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota "
     "reserved",
     KeepsClassName},
    {"queueName is immutable while workload quota reserved", KeepsQueue},
    {"maximumExecutionTimeSeconds is immutable while workload quota reserved", KeepsTimeLimit},
    {"priority should not be nil when priorityClassRef is set", PriorityOfClass},
    {"priorityClassSource is immutable while workload quota reserved", KeepsClassSource},
    {"priorityClassName is immutable while workload quota reserved and priorityClassSource is not "
     "equal to kueue.x-k8s.io/workloadpriorityclass",
     KeepsOldClassName},
    {"priority should not be nil when priorityClassName is set", PriorityOfClassName},
    {"minCount should be positive and less or equal to count", LeastOfCount},
    {"only the PriorityClass kind is allowed for the scheduling.k8s.io group", CoreClassKind},
    {"only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group", KueueClassKind},
    {"clusterName is immutable once set", KeepsCluster},
    {"clusterName and nominatedClusterNames are mutually exclusive", ClusterOrNominees},
    {"valuesPerLevel must have the same length as the number of levels in this TopologyAssignment",
     ValuesOfLevels},
    {"podCounts.individual must have length equal to domainCount", CountsOfDomains},
    {"valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this "
     "TopologyAssignmentSlice",
     RootsOfDomains},
    {"exactly one of the fields in [universal individual] must be set", OneOfTwo},
}};

// The nearest value around a rule's that can be told to go on from an old one.
struct Standing {
  const Json& value;
  const Json& old;
  SchemaNode node;
};

class Walker {
 public:
  explicit Walker(const Schema& schema) : schema_(schema) {}

  // A value that a rule may be about: what it replaces, or null, and the nearest that replaces
  // something; null where none does, and for the object itself, whose metadata are never the same.
  struct Change {
    const Json& value;
    const Json* before;
    const Standing* standing;
  };

  void Object(const Type& type, const Change& change, const Path* parent) {
    for (const Field& field : type.fields) {
      const Json* value = FindMember(change.value, field.name);
      if (value == nullptr) continue;
      const Path path = parent == nullptr ? Path(field.name) : parent->At(field.name);
      const Json* before =
          change.before == nullptr ? nullptr : FindMember(*change.before, field.name);
      const SchemaNode node(schema_, field);
      WithStanding({*value, before, change.standing}, node,
                   [&](const Change& member) { Value(node, field, member, path); });
    }
  }

  void Ask(std::string_view messages, const Change& change, const Path* path) {
    while (!messages.empty()) {
      const std::string_view message = messages.substr(0, messages.find('\n'));
      messages.remove_prefix(std::min(message.size() + 1, messages.size()));
      const Rule rule = FindRule(message);
      const Verdict verdict = rule == nullptr ? Verdict{} : rule(change.value, change.before);
      if (!verdict.fine) Add(verdict, change, path, message);
    }
  }

  [[nodiscard]] FieldErrors TakeErrors() { return std::move(errors_); }
  [[nodiscard]] std::vector<std::string> TakeWarnings() { return std::move(warnings_); }

 private:
  // Calls visit(change) with what the value itself replaces as its standing, if anything.
  template <typename F>
  static void WithStanding(const Change& change, const SchemaNode& node, const F& visit) {
    if (change.before == nullptr) return visit(change);
    const Standing own{change.value, *change.before, node};
    visit({change.value, change.before, &own});
  }

  void Value(const SchemaNode& node, const Field& field, const Change& change, const Path& path) {
    const Constraints& constraints = schema_.constraints(field);
    Ask(constraints.validations, change, &path);
    const auto item = [&](const SchemaNode& schema, const Change& part, const Path& at) {
      WithStanding(part, schema, [&](const Change& known) { Item(field, known, at); });
    };
    if (field.shape == Shape::kList && change.value.is_array()) {
      const OldItems old_items(node, change.before, steps_);
      const JsonArray& items = change.value.get_array();
      for (size_t i = 0; i < items.size(); ++i) {
        const Json* before = old_items.Of(items[i], steps_);
        item(node.KeyedItem().value_or(node), {items[i], before, change.standing}, path.Item(i));
      }
    } else if (field.shape == Shape::kMap && change.value.is_object()) {
      for (const auto& [key, value] : change.value.get_object()) {
        const Json* before = change.before == nullptr ? nullptr : FindMember(*change.before, key);
        item(*node.Member(key), {value, before, change.standing}, path.At(key));
      }
    } else if (field.shape == Shape::kOne && field.value == berth::api::Value::kObject) {
      const Type type = schema_.at(field.type);
      Object(type, change, &path);
    }
  }

  void Item(const Field& field, const Change& change, const Path& path) {
    Ask(schema_.constraints(field).item_validations, change, &path);
    if (field.value == berth::api::Value::kObject) {
      const Type type = schema_.at(field.type);
      Object(type, change, &path);
    }
  }

  // Upstream shows scalars; of others nothing, or their type where the rule itself came to grief.
  void Add(const Verdict& verdict, const Change& change, const Path* path,
           std::string_view message) {
    const Json& self = change.value;
    FieldError error{FieldErrorType::kInvalid, path == nullptr ? "<nil>" : path->text(), "",
                     std::string(message)};
    if (!verdict.missing.empty()) {
      error.value = self.is_array() ? "\"array\"" : "\"object\"";
      error.detail = fmt::format("no such key: {} evaluating rule: {}", verdict.missing, message);
    } else if (!self.is_object() && !self.is_array()) {
      error.value = boost::json::serialize(self);
    }
    // A rule that came to grief is no answer about the value.
    const Standing* const at = verdict.missing.empty() ? change.standing : nullptr;
    if (at != nullptr && IsUnchanged(at->node, at->value, at->old, steps_)) {
      warnings_.push_back(ToString(error));
    } else {
      errors_.push_back(std::move(error));
    }
  }

  const Schema& schema_;
  int64_t steps_ = kCheckStepsMax;  // Of comparisons.
  FieldErrors errors_;
  std::vector<std::string> warnings_;
};

}  // namespace

Rule FindRule(std::string_view message) {
  const auto* const found = std::ranges::find(kRules, message, &Named::message);
  return found == kRules.end() ? nullptr : found->rule;
}

bool HasRules(const Schema& schema, TypeId type) {
  std::set<TypeId> seen = {type};
  std::vector<TypeId> pending = {type};
  if (!schema.at(type).validations.empty()) return true;
  while (!pending.empty()) {
    const Type at = schema.at(pending.back());
    pending.pop_back();
    for (const Field& field : at.fields) {
      const Constraints& constraints = schema.constraints(field);
      if (!constraints.validations.empty() || !constraints.item_validations.empty()) return true;
      if (field.type != kNoType && seen.insert(field.type).second) pending.push_back(field.type);
    }
  }
  return false;
}

FieldErrors CheckRules(const Schema& schema, TypeId type, const Json& document, const Json* old,
                       std::vector<std::string>& warnings) {
  Walker walker(schema);
  const Type root = schema.at(type);
  walker.Ask(root.validations, {document, old, nullptr}, nullptr);
  walker.Object(root, {document, old, nullptr}, nullptr);
  std::ranges::move(walker.TakeWarnings(), std::back_inserter(warnings));
  return walker.TakeErrors();
}

}  // namespace berth::api
