#include "api/validate_queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/quantity.h"
#include "api/validate_assignment.h"
#include "api/validate_common.h"
#include "api/validate_pod.h"

namespace berth::api::rules {
namespace {

constexpr size_t kFlavorsMax = 256;
constexpr size_t kResourcesMax = 256;
constexpr size_t kPairsMax = 512;
constexpr std::string_view kNegative = "must be greater than or equal to 0";

// An amount as a number or a text; nothing when it is neither or can't be read.
std::optional<Quantity> AmountOf(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return api::QuantityOf(value->get_int64());
  if (!value->is_string()) return std::nullopt;
  const Result<Quantity> amount = ParseQuantity(value->get_string());
  return amount ? std::optional(*amount) : std::nullopt;
}

void AddAmount(FieldErrors& errors, const Path& path, const Quantity& amount, std::string detail) {
  errors.push_back(InvalidField(path.text(), api::ToString(amount), std::move(detail)));
}

// The amount of a member, which must be one that can be read and not negative.
std::optional<Quantity> CheckQuota(FieldErrors& errors, const Path& path, const Json& resource,
                                   std::string_view member) {
  const Json* value = FindMember(resource, member);
  if (value == nullptr) return std::nullopt;
  const std::optional<Quantity> amount = AmountOf(value);
  if (!amount) {
    AddInvalid(errors, path.At(member), *value, "is no quantity that can be counted");
  } else if (amount->sign() < 0) {
    AddAmount(errors, path.At(member), *amount, std::string(kNegative));
  }
  return amount;
}

// What the limits of a queue without a parent are told, and whether lending is within the quota.
struct QuotaRules {
  bool has_parent;
  std::string_view parent;  // "cohort" or "parent".
  bool lends_its_own;
};

void CheckFlavorQuotas(FieldErrors& errors, const Path& path, const Json& flavor,
                       const JsonArray& covered, const QuotaRules& quotas) {
  const JsonArray& resources = ArrayAt(flavor, "resources");
  for (size_t i = 0; i < std::min(resources.size(), covered.size()); ++i) {
    const Path at = path.At("resources", i);
    const std::string_view name = TextAt(resources[i], "name");
    if (name != covered[i].get_string()) {
      AddInvalid(errors, at.At("name"), name, {"must match the name in coveredResources"});
    }
    const std::optional<Quantity> nominal = CheckQuota(errors, at, resources[i], "nominalQuota");
    for (const std::string_view limit : {"borrowingLimit", "lendingLimit"}) {
      const std::optional<Quantity> amount = CheckQuota(errors, at, resources[i], limit);
      if (!amount) continue;
      if (!quotas.has_parent) {
        AddAmount(errors, at.At(limit), *amount,
                  fmt::format("must be nil when {} is empty", quotas.parent));
      }
      const bool lends = limit == "lendingLimit" && quotas.lends_its_own;
      if (lends && nominal && Compare(*amount, *nominal) > 0) {
        AddAmount(errors, at.At(limit), *amount, "must be less than or equal to the nominalQuota");
      }
    }
  }
}

void CheckTotals(FieldErrors& errors, const Path& path, const JsonArray& groups) {
  size_t flavors = 0;
  size_t resources = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    size_t pairs = 0;
    for (const Json& flavor : ArrayAt(groups[i], "flavors")) {
      pairs += ArrayAt(flavor, "resources").size();
    }
    flavors += ArrayAt(groups[i], "flavors").size();
    resources += ArrayAt(groups[i], "coveredResources").size();
    if (pairs > kPairsMax) {
      AddInvalid(errors, path.Item(i), Json(pairs),
                 fmt::format("number of flavor-resource combinations in a resourceGroup must be ≤ "
                             "{}, got {}",
                             kPairsMax, pairs));
    }
  }
  if (flavors > kFlavorsMax) {
    AddInvalid(errors, path, Json(flavors),
               fmt::format("total number of flavors across all resourceGroups must be ≤ {}, got {}",
                           kFlavorsMax, flavors));
  }
  if (resources > kResourcesMax) {
    AddInvalid(errors, path, Json(resources),
               fmt::format("total number of covered resources across all resourceGroups must be ≤ "
                           "{}, got {}",
                           kResourcesMax, resources));
  }
}

void CheckGroups(FieldErrors& errors, const Path& spec, const Json& object,
                 const QuotaRules& quotas) {
  const Path path = spec.At("resourceGroups");
  const JsonArray& groups = ArrayAt(object, "spec.resourceGroups");
  std::set<std::string_view> resources;
  std::set<std::string_view> names;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Path at = path.Item(i);
    const JsonArray& covered = ArrayAt(groups[i], "coveredResources");
    for (size_t j = 0; j < covered.size(); ++j) {
      const std::string_view name = covered[j].get_string();
      const Path here = at.At("coveredResources", j);
      AddInvalid(errors, here, name, CheckQualifiedName(name));
      if (!resources.insert(name).second) errors.push_back(DuplicateField(here.text(), name));
    }
    const JsonArray& flavors = ArrayAt(groups[i], "flavors");
    for (size_t j = 0; j < flavors.size(); ++j) {
      const Path here = at.At("flavors", j);
      CheckFlavorQuotas(errors, here, flavors[j], covered, quotas);
      const std::string_view name = TextAt(flavors[j], "name");
      if (!names.insert(name).second) {
        errors.push_back(DuplicateField(here.At("name").text(), name));
      }
    }
  }
}

void CheckWeight(FieldErrors& errors, const Path& spec, const Json& object) {
  const std::optional<Quantity> weight = AmountOf(FindPath(object, "spec.fairSharing.weight"));
  if (!weight) return;
  const Path path = spec.At("fairSharing");
  if (weight->sign() < 0) AddAmount(errors, path, *weight, std::string(kNegative));
  const Quantity nano{.mantissa = 1, .exponent = -9};
  if (weight->sign() > 0 && Compare(*weight, nano) <= 0) {
    AddAmount(errors, path, *weight, "When not 0, weight must be > 10e-9");
  }
}

void CheckClusterQueue(FieldErrors& errors, const Json& object) {
  const Path spec("spec");
  CheckGroups(errors, spec, object,
              {.has_parent = !TextAt(object, "spec.cohortName").empty(),
               .parent = "cohort",
               .lends_its_own = true});
  if (const Json* selector = FindPath(object, "spec.namespaceSelector")) {
    CheckLabelSelector(errors, spec.At("namespaceSelector"), *selector);
  }
  CheckWeight(errors, spec, object);
  const Path groups = spec.At("resourceGroups");
  CheckTotals(errors, groups, ArrayAt(object, "spec.resourceGroups"));
}

void CheckCohort(FieldErrors& errors, const Json& object) {
  const Path spec("spec");
  CheckGroups(errors, spec, object,
              {.has_parent = !TextAt(object, "spec.parentName").empty(),
               .parent = "parent",
               .lends_its_own = false});
  CheckWeight(errors, spec, object);
}

void CheckTolerationKeys(FieldErrors& errors, const Path& path, const JsonArray& tolerations) {
  for (size_t i = 0; i < tolerations.size(); ++i) {
    const std::string_view key = TextAt(tolerations[i], "key");
    const Path at = path.Item(i);
    if (!key.empty()) CheckLabelName(errors, at.At("key"), key);
  }
}

void CheckFlavor(FieldErrors& errors, const Json& object) {
  const Path spec("spec");
  CheckLabels(errors, spec.At("nodeLabels"), ObjectAt(object, "spec.nodeLabels"));
  CheckTaints(errors, spec.At("nodeTaints"), ArrayAt(object, "spec.nodeTaints"));
  CheckTolerationKeys(errors, spec.At("tolerations"), ArrayAt(object, "spec.tolerations"));
}

// ---- Workload ----------------------------------------------------------------------------------

bool IsReserved(const Json& workload) {
  return std::ranges::any_of(ArrayAt(workload, "status.conditions"), [](const Json& condition) {
    return TextAt(condition, "type") == "QuotaReserved" && TextAt(condition, "status") == "True";
  });
}

std::vector<std::string_view> PodSetsOf(const Json& workload) {
  std::vector<std::string_view> names;
  for (const Json& set : ArrayAt(workload, "spec.podSets")) names.push_back(TextAt(set, "name"));
  return names;
}

void CheckAmounts(FieldErrors& errors, const Path& path, const JsonObject& amounts) {
  for (const auto& [resource, value] : amounts) {
    const std::optional<Quantity> amount = AmountOf(&value);
    if (amount && amount->sign() < 0) {
      AddAmount(errors, path.At(resource), *amount, std::string(kNegative));
    }
  }
}

void CheckPodSets(FieldErrors& errors, const Json& workload) {
  const Path spec("spec");
  const JsonArray& sets = ArrayAt(workload, "spec.podSets");
  int64_t partial = 0;
  for (size_t i = 0; i < sets.size(); ++i) {
    const Path set = spec.At("podSets", i);
    const Path pods = set.At("template");
    const Path pod = pods.At("spec");
    for (const std::string_view list : {"initContainers", "containers"}) {
      const JsonArray& containers = ArrayAt(sets[i], fmt::format("template.spec.{}", list));
      for (size_t j = 0; j < containers.size(); ++j) {
        const Path container = pod.At(list, j);
        const Path resources = container.At("resources");
        const Path requests = resources.At("requests");
        CheckAmounts(errors, requests, ObjectAt(containers[j], "resources.requests"));
        CheckAmounts(errors, resources.At("limits"), ObjectAt(containers[j], "resources.limits"));
        if (!ObjectAt(containers[j], "resources.requests").contains("pods")) continue;
        AddInvalid(errors, requests.Key("pods"), std::string_view("pods"),
                   {"the key is reserved for internal kueue use"});
      }
    }
    CheckAmounts(errors, pod.At("overhead"), ObjectAt(sets[i], "template.spec.overhead"));
    if (FindMember(sets[i], "minCount") != nullptr) ++partial;
  }
  if (partial > 1) {
    AddInvalid(errors, spec.At("podSets"), Json(partial), "at most one podSet can use minCount");
  }
}

// A size of slices and their level make sense together only.
void CheckSlices(FieldErrors& errors, const Path& path, const Json& set) {
  const Json* request = FindMember(set, "topologyRequest");
  if (request == nullptr) return;
  const bool has_level = FindMember(*request, "podSetSliceRequiredTopology") != nullptr;
  const bool has_size = FindMember(*request, "podSetSliceSize") != nullptr;
  if (has_level == has_size) return;
  const Path topology = path.At("topologyRequest");
  const Path size = topology.At("podSetSliceSize");
  if (has_size) {
    AddForbidden(errors, size, "may not be set without podSetSliceRequiredTopology");
  } else {
    AddRequired(errors, size, "must be set beside podSetSliceRequiredTopology");
  }
}

// What a template says of where its pods go, and the labels by which others find them. Upstream
// asks of labels and annotations only; pods that break the rest could never be made.
void CheckScheduling(FieldErrors& errors, const Path& path, const Json& set) {
  const Path pods = path.At("template");
  const Path metadata = pods.At("metadata");
  CheckLabels(errors, metadata.At("labels"), ObjectAt(set, "template.metadata.labels"));
  CheckAnnotations(errors, metadata.At("annotations"),
                   ObjectAt(set, "template.metadata.annotations"));
  if (const Json* spec = FindPath(set, "template.spec"))
    CheckPodScheduling(errors, pods.At("spec"), *spec);
}

// What was stored before may stay.
void CheckNewPodSets(FieldErrors& errors, const Json* old, const Json& workload) {
  const Path spec("spec");
  const JsonArray& sets = ArrayAt(workload, "spec.podSets");
  if (old != nullptr && SameJson(Json(sets), Json(ArrayAt(*old, "spec.podSets")))) return;
  for (size_t i = 0; i < sets.size(); ++i) {
    const Path path = spec.At("podSets", i);
    CheckScheduling(errors, path, sets[i]);
    CheckSlices(errors, path, sets[i]);
  }
}

// Each check(path of the assignment, assignment).
template <typename Check>
void ForAssignments(const Json& workload, Check check) {
  const Path status("status");
  const Path admission = status.At("admission");
  const JsonArray& assignments = ArrayAt(workload, "status.admission.podSetAssignments");
  for (size_t i = 0; i < assignments.size(); ++i)
    check(admission.At("podSetAssignments", i), assignments[i]);
}

// No queue is used by less than nothing.
void CheckUsage(FieldErrors& errors, const Json& workload) {
  ForAssignments(workload, [&](const Path& at, const Json& assignment) {
    const Path usage = at.At("resourceUsage");
    for (const auto& [resource, value] : ObjectAt(assignment, "resourceUsage")) {
      const std::optional<Quantity> amount = AmountOf(&value);
      if (amount && amount->sign() < 0)
        AddAmount(errors, usage.Key(resource), *amount, std::string(kNegative));
    }
  });
}

void CheckAdmission(FieldErrors& errors, const Json& workload) {
  const Path status("status");
  if (ObjectAt(workload, "status.admission").empty()) {
    AddRequired(errors, status.At("admission"), "the condition QuotaReserved is True");
    return;
  }
  const std::vector<std::string_view> sets = PodSetsOf(workload);
  ForAssignments(workload, [&](const Path& at, const Json& assignment) {
    const std::string_view name = TextAt(assignment, "name");
    if (std::ranges::find(sets, name) == sets.end()) {
      errors.push_back(NotFoundField(at.At("name").text(), name));
    }
    const int64_t count = IntegerAt(assignment, "count");
    if (count <= 0) return;
    const Path usage = at.At("resourceUsage");
    for (const auto& [resource, value] : ObjectAt(assignment, "resourceUsage")) {
      const std::optional<Quantity> amount = AmountOf(&value);
      if (!amount) continue;
      const bool cpu = std::string_view(resource) == "cpu";
      if ((cpu ? amount->milli() : amount->whole()) % count == 0) continue;
      AddAmount(errors, usage.Key(resource), *amount,
                fmt::format("is not a multiple of {}", count));
    }
  });
}

// The pod set of that name; nothing: there is none.
const Json* FindPodSet(const Json& workload, std::string_view name) {
  for (const Json& set : ArrayAt(workload, "spec.podSets")) {
    if (TextAt(set, "name") == name) return &set;
  }
  return nullptr;
}

const Json* TopologyOf(const Json& workload, std::string_view pod_set) {
  for (const Json& given : ArrayAt(workload, "status.admission.podSetAssignments")) {
    if (TextAt(given, "name") == pod_set) return FindMember(given, "topologyAssignment");
  }
  return nullptr;
}

// Of what is written now; what was stored before may stay.
void CheckTopologies(FieldErrors& errors, const Json* old, const Json& workload) {
  ForAssignments(workload, [&](const Path& at, const Json& given) {
    const Json* topology = FindMember(given, "topologyAssignment");
    const std::string_view name = TextAt(given, "name");
    const Json* set = FindPodSet(workload, name);
    if (topology == nullptr || set == nullptr) return;
    const Json* before = old == nullptr ? nullptr : TopologyOf(*old, name);
    if (before != nullptr && SameJson(*before, *topology)) return;
    PodsToPlace pods{.count = IntegerAt(given, "count", IntegerAt(*set, "count"))};
    for (const Json& item : ArrayAt(workload, "status.reclaimablePods")) {
      if (TextAt(item, "name") == name) pods.reclaimable = IntegerAt(item, "count");
    }
    CheckTopologyAssignment(errors, at.At("topologyAssignment"), *topology, pods);
  });
}

void CheckReclaimable(FieldErrors& errors, const Json& workload) {
  const Path status("status");
  const Path path = status.At("reclaimablePods");
  const std::vector<std::string_view> sets = PodSetsOf(workload);
  for (const Json& item : ArrayAt(workload, "status.reclaimablePods")) {
    const std::string_view name = TextAt(item, "name");
    const Path at = path.Key(name);
    const auto found = std::ranges::find(sets, name);
    if (found == sets.end()) {
      errors.push_back(NotSupportedField(at.At("name").text(), name, sets));
      continue;
    }
    const size_t index = static_cast<size_t>(found - sets.begin());
    const int64_t count = IntegerAt(ArrayAt(workload, "spec.podSets")[index], "count");
    const int64_t given = IntegerAt(item, "count");
    if (given > count) {
      AddInvalid(errors, at.At("count"), Json(given),
                 fmt::format("should be less or equal to {}", count));
    }
  }
}

void CheckPodSetUpdates(FieldErrors& errors, const Json& workload) {
  const Path status("status");
  const std::vector<std::string_view> sets = PodSetsOf(workload);
  const JsonArray& checks = ArrayAt(workload, "status.admissionChecks");
  for (size_t i = 0; i < checks.size(); ++i) {
    const Path check = status.At("admissionChecks", i);
    const JsonArray& updates = ArrayAt(checks[i], "podSetUpdates");
    for (size_t j = 0; j < updates.size(); ++j) {
      const Path at = check.At("podSetUpdates", j);
      const std::string_view name = TextAt(updates[j], "name");
      if (std::ranges::find(sets, name) == sets.end()) {
        errors.push_back(NotSupportedField(at.At("name").text(), name, sets));
      }
      CheckTolerationKeys(errors, at.At("tolerations"), ArrayAt(updates[j], "tolerations"));
      CheckAnnotations(errors, at.At("annotations"), ObjectAt(updates[j], "annotations"));
      CheckLabels(errors, at.At("nodeSelector"), ObjectAt(updates[j], "nodeSelector"));
      CheckLabels(errors, at.At("labels"), ObjectAt(updates[j], "labels"));
    }
  }
}

// While quota is reserved no pod is taken back that was given up, nor its set left out.
void CheckReclaimableUpdate(FieldErrors& errors, const Json& old, const Json& workload) {
  const Path status("status");
  const Path path = status.At("reclaimablePods");
  std::map<std::string_view, int64_t> given;
  for (const Json& item : ArrayAt(workload, "status.reclaimablePods")) {
    given[TextAt(item, "name")] = IntegerAt(item, "count");
  }
  for (const Json& item : ArrayAt(old, "status.reclaimablePods")) {
    const std::string_view name = TextAt(item, "name");
    const int64_t before = IntegerAt(item, "count");
    const auto found = given.find(name);
    const Path at = path.Key(name);
    if (found == given.end()) {
      AddRequired(errors, at, "cannot be removed");
    } else if (found->second < before) {
      AddInvalid(errors, at.At("count"), Json(found->second),
                 fmt::format("cannot be less then {}", before));
    }
  }
}

// An admission without what a second pass may change of it.
Json AdmissionCore(const Json& admission) {
  Json core = admission;
  Json* assignments = FindMember(core, "podSetAssignments");
  if (assignments == nullptr || !assignments->is_array()) return core;
  for (Json& assignment : assignments->get_array()) {
    RemoveMember(assignment.get_object(), "topologyAssignment");
    RemoveMember(assignment.get_object(), "delayedTopologyRequest");
  }
  return core;
}

void CheckWorkloadUpdate(FieldErrors& errors, const Json& old, const Json& workload) {
  const Path spec("spec");
  const Path status("status");
  const JsonArray& sets = ArrayAt(workload, "spec.podSets");
  if (IsReserved(old) && !SameJson(Json(sets), Json(ArrayAt(old, "spec.podSets")))) {
    AddInvalid(errors, spec.At("podSets"), Json(sets), std::string(kImmutable));
  }
  if (IsReserved(old) && IsReserved(workload)) CheckReclaimableUpdate(errors, old, workload);
  const Json* admission = FindPath(workload, "status.admission");
  const Json* before = FindPath(old, "status.admission");
  if (admission != nullptr && before != nullptr &&
      !SameJson(AdmissionCore(*admission), AdmissionCore(*before))) {
    AddInvalid(errors, status.At("admission"), *admission, std::string(kImmutable));
  }
  const JsonArray& checks = ArrayAt(workload, "status.admissionChecks");
  const JsonArray& checks_before = ArrayAt(old, "status.admissionChecks");
  for (size_t i = 0; i < checks_before.size(); ++i) {
    const Json& was = checks_before[i];
    const auto* const is = std::ranges::find_if(
        checks, [&](const Json& check) { return TextAt(check, "name") == TextAt(was, "name"); });
    if (is == checks.end() || TextAt(was, "state") != "Ready" || TextAt(*is, "state") != "Ready") {
      continue;
    }
    const JsonArray& updates = ArrayAt(*is, "podSetUpdates");
    if (SameJson(Json(updates), Json(ArrayAt(was, "podSetUpdates")))) continue;
    const Path at = status.At("admissionChecks", i);
    AddInvalid(errors, at.At("podSetUpdates"), Json(updates), std::string(kImmutable));
  }
}

void CheckWorkload(FieldErrors& errors, const Json* old, const Json& object) {
  CheckPodSets(errors, object);
  CheckNewPodSets(errors, old, object);
  CheckUsage(errors, object);
  CheckTopologies(errors, old, object);
  if (IsReserved(object)) CheckAdmission(errors, object);
  CheckReclaimable(errors, object);
  CheckPodSetUpdates(errors, object);
  if (old != nullptr) CheckWorkloadUpdate(errors, *old, object);
}

// ---- Volcano -----------------------------------------------------------------------------------

// guarantee <= deserved <= capability, of each resource that the larger names; whoever guarantees
// has to deserve.
void CheckVolcanoQueue(FieldErrors& errors, const Json& object) {
  const Path spec("spec");
  const Path deserved_path = spec.At("deserved");
  const Path guarantee_path = spec.At("guarantee");
  const JsonObject& capability = ObjectAt(object, "spec.capability");
  const JsonObject& deserved = ObjectAt(object, "spec.deserved");
  const JsonObject& guarantee = ObjectAt(object, "spec.guarantee.resource");
  CheckAmounts(errors, spec.At("capability"), capability);
  CheckAmounts(errors, deserved_path, deserved);
  CheckAmounts(errors, guarantee_path.At("resource"), guarantee);
  for (const auto& [resource, value] : guarantee) {
    const std::string_view name = resource;
    const std::optional<Quantity> least = AmountOf(&value);
    const std::optional<Quantity> share = AmountOf(FindMember(deserved, name));
    if (!least) continue;
    if (!share) {
      AddInvalid(errors, deserved_path.At(name), std::string_view("<nil>"),
                 {fmt::format("deserved[{0}] must be >= guarantee[{0}]={1}", name,
                              api::ToString(*least))});
    } else if (Compare(*share, *least) < 0) {
      AddAmount(errors, deserved_path.At(name), *share,
                fmt::format("deserved[{0}]={1} must be >= guarantee[{0}]={2}", name,
                            api::ToString(*share), api::ToString(*least)));
    }
  }
  for (const auto& [resource, value] : deserved) {
    const std::string_view name = resource;
    const std::optional<Quantity> share = AmountOf(&value);
    const std::optional<Quantity> most = AmountOf(FindMember(capability, name));
    if (!share || !most || Compare(*share, *most) <= 0) continue;
    AddAmount(errors, deserved_path.At(name), *share,
              fmt::format("deserved[{0}]={1} must be <= capability[{0}]={2}", name,
                          api::ToString(*share), api::ToString(*most)));
  }
}

void CheckTier(FieldErrors& errors, const Path& path, const Json& holder) {
  const Json* topology = FindMember(holder, "networkTopology");
  if (topology == nullptr || FindMember(*topology, "highestTierAllowed") == nullptr ||
      TextAt(*topology, "highestTierName").empty()) {
    return;
  }
  AddForbidden(errors, path.At("networkTopology"),
               "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology "
               "simultaneously.");
}

void CheckPodGroup(FieldErrors& errors, const Json& object) {
  const Json* spec = FindMember(object, "spec");
  if (spec == nullptr) return;
  const Path path("spec");
  CheckTier(errors, path, *spec);
  const JsonArray& policies = ArrayAt(*spec, "subGroupPolicy");
  for (size_t i = 0; i < policies.size(); ++i) {
    CheckTier(errors, path.At("subGroupPolicy", i), policies[i]);
  }
}

}  // namespace

void CheckQueues(FieldErrors& errors, KindId kind, const Json* old, const Json& object) {
  switch (kind) {
    case KindId::kClusterQueue:
      CheckClusterQueue(errors, object);
      return;
    case KindId::kCohort:
      CheckCohort(errors, object);
      return;
    case KindId::kResourceFlavor:
      CheckFlavor(errors, object);
      return;
    case KindId::kWorkload:
      CheckWorkload(errors, old, object);
      return;
    case KindId::kQueue:
      CheckVolcanoQueue(errors, object);
      return;
    case KindId::kPodGroup:
      // Upstream asks this of new ones only.
      if (old == nullptr) CheckPodGroup(errors, object);
      return;
    default:
      return;
  }
}

void CheckOldVersion(FieldErrors& errors, KindId kind, const Json& object) {
  if (kind != KindId::kOldWorkload) return;
  ForAssignments(object, [&](const Path& assignment, const Json& given) {
    const Path topology = assignment.At("topologyAssignment");
    const size_t levels = ArrayAt(given, "topologyAssignment.levels").size();
    const JsonArray& domains = ArrayAt(given, "topologyAssignment.domains");
    for (size_t j = 0; j < domains.size(); ++j) {
      const JsonArray& values = ArrayAt(domains[j], "values");
      if (values.size() == levels) continue;
      const Path at = topology.At("domains", j);
      AddInvalid(errors, at.At("values"), Json(values),
                 fmt::format("must have one value of each of the {} levels", levels));
    }
  });
}

}  // namespace berth::api::rules
