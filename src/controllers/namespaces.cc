#include "controllers/namespaces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace berth::controllers {
namespace {

constexpr std::string_view kFinalizer = "kubernetes";
constexpr Duration kTellAfter = Duration::Seconds(3);
constexpr std::string_view kServiceAccount = "default";
constexpr std::string_view kRootCa = "kube-root-ca.crt";
constexpr std::string_view kRootCaKey = "ca.crt";
constexpr std::string_view kRootCaDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters.";

void Furnish(const Objects& objects, const NamespaceFacts& facts, Plan& plan) {
  const std::string& name = objects.head(facts.slot).name;
  if (objects.Find(api::KindId::kServiceAccount, name, kServiceAccount) == kNoSlot) {
    plan.writes.push_back(
        CreateOf(api::KindId::kServiceAccount, name, std::string(kServiceAccount)));
  }
  if (facts.root_ca.empty()) return;
  const std::string data =
      fmt::format(R"("data":{{"{}":{}}})", kRootCaKey, client::JsonString(facts.root_ca));
  const Slot known = objects.Find(api::KindId::kConfigMap, name, kRootCa);
  if (known == kNoSlot) {
    Write create = CreateOf(api::KindId::kConfigMap, name, std::string(kRootCa));
    create.metadata = fmt::format(R"("annotations":{{"kubernetes.io/description":{}}})",
                                  client::JsonString(kRootCaDescription));
    create.body = data;
    plan.writes.push_back(std::move(create));
    return;
  }
  const api::ConfigMap* map = objects.config_map(known);
  if (map == nullptr || api::Find(map->data, kRootCaKey) == facts.root_ca) return;
  Write patch = PatchOf(objects.head(known));
  patch.body = data;
  plan.writes.push_back(std::move(patch));
}

// A kind whose objects live in namespaces.
struct Resident {
  api::KindId kind = api::KindId::kCustomResource;
  std::string defined;   // As Head's.
  std::string resource;  // "pods.", "jobs.batch"

  [[nodiscard]] Write Ask(Verb verb, const std::string& space) const {
    Write write = CreateOf(kind, space, {});
    write.verb = verb;
    write.defined = defined;
    return write;
  }
  [[nodiscard]] std::vector<Slot> In(const Objects& objects, const std::string& space) const {
    std::vector<Slot> slots = objects.In(kind, space);
    if (kind == api::KindId::kCustomResource)
      std::erase_if(slots, [&](Slot slot) { return objects.head(slot).defined != defined; });
    return slots;
  }
};

Resident ResidentOf(const api::Kind& kind) {
  return {.kind = kind.id, .resource = fmt::format("{}.{}", kind.plural, kind.group)};
}

// Of a definition that serves no version nothing can be asked.
std::vector<Resident> ResidentsOf(const Objects& objects) {
  std::vector<Resident> residents;
  for (const api::Kind& kind : api::Kinds()) {
    if (kind.stored && kind.namespaced && kind.storage == kind.id)
      residents.push_back(ResidentOf(kind));
  }
  for (const auto& [slot, definition] : objects.definitions()) {
    if (!definition.namespaced || definition.native || definition.version.empty()) continue;
    const std::string& name = objects.head(slot).name;
    residents.push_back({.defined = name, .resource = name});
  }
  std::ranges::stable_sort(residents, {}, [](const Resident& resident) {
    return std::tie(resident.kind, resident.defined);
  });
  return residents;
}

// What is left of a namespace, by what upstream tells of it.
struct Remains {
  std::map<std::string, size_t> by_resource;
  std::map<std::string, size_t> by_finalizer;

  void Count(const Objects& objects, const Resident& kind, const std::string& space) {
    for (const Slot slot : kind.In(objects, space)) {
      ++by_resource[kind.resource];
      for (const std::string& finalizer : objects.head(slot).finalizers) ++by_finalizer[finalizer];
    }
  }
};

std::string Listed(const std::map<std::string, size_t>& counts, std::string_view verb) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(fmt::format("{} {} {} resource instances", name, verb, count));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The conditions of a namespace that waits for what is left in it. The first three are of failures
// that don't happen here: what is served is known, and deletions are tried until they are done.
std::vector<api::Condition> ConditionsOf(const Remains& remains) {
  std::vector<api::Condition> conditions = {
      {.type = "NamespaceDeletionDiscoveryFailure",
       .status = "False",
       .reason = "ResourcesDiscovered",
       .message = "All resources successfully discovered"},
      {.type = "NamespaceDeletionGroupVersionParsingFailure",
       .status = "False",
       .reason = "ParsedGroupVersions",
       .message = "All legacy kube types successfully parsed"},
      {.type = "NamespaceDeletionContentFailure",
       .status = "False",
       .reason = "ContentDeleted",
       .message = "All content successfully deleted, may be waiting on finalization"},
      {.type = "NamespaceContentRemaining",
       .status = "False",
       .reason = "ContentRemoved",
       .message = "All content successfully removed"},
      {.type = "NamespaceFinalizersRemaining",
       .status = "False",
       .reason = "ContentHasNoFinalizers",
       .message = "All content-preserving finalizers finished"}};
  if (!remains.by_resource.empty()) {
    conditions[3].status = "True";
    conditions[3].reason = "SomeResourcesRemain";
    conditions[3].message =
        fmt::format("Some resources are remaining: {}", Listed(remains.by_resource, "has"));
  }
  if (!remains.by_finalizer.empty()) {
    conditions[4].status = "True";
    conditions[4].reason = "SomeFinalizersRemain";
    conditions[4].message =
        fmt::format("Some content in the namespace has finalizers remaining: {}",
                    Listed(remains.by_finalizer, "in"));
  }
  return conditions;
}

// Says what is waited for, unless the namespace says so already. Most namespaces are gone before
// that helps anybody, and the next step would have to wait for the write.
void TellRemains(const Objects& objects, const NamespaceFacts& facts, const Remains& remains,
                 Plan& plan) {
  const Instant due = *objects.head(facts.slot).deletion + kTellAfter;
  if (facts.now < due) return plan.WakeAt(due);
  std::vector<api::Condition> conditions = objects.namespace_of(facts.slot)->conditions;
  bool changed = false;
  for (api::Condition& condition : ConditionsOf(remains))
    changed = SetCondition(conditions, std::move(condition), facts.now) || changed;
  if (!changed) return;
  plan.writes.push_back(
      StatusOf(objects.head(facts.slot),
               fmt::format(R"({{"conditions":{}}})",
                           ConditionsText(conditions, ConditionTimes::kTransition))));
}

// Asks a kind's objects to go. True when none is left in sight.
bool Empty(const Objects& objects, const NamespaceFacts& facts, const Resident& kind, Plan& plan) {
  const std::string& name = objects.head(facts.slot).name;
  const std::vector<Slot> slots = kind.In(objects, name);
  const bool untold = std::ranges::any_of(
      slots, [&](Slot slot) { return !objects.head(slot).deletion.has_value(); });
  if (untold || facts.occupied.contains(kind.resource)) {
    plan.writes.push_back(kind.Ask(Verb::kDeleteCollection, name));
    return false;
  }
  return slots.empty();
}

Write FinalizeOf(const Head& head, std::vector<std::string> finalizers) {
  std::erase(finalizers, kFinalizer);
  Write write = PatchOf(head);
  write.verb = Verb::kFinalize;
  write.body = fmt::format(
      R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{0}","uid":"{1}",)"
      R"("resourceVersion":"{2}","labels":{3},"finalizers":{4}}},"spec":{{"finalizers":{5}}}}})",
      head.name, head.uid, head.resource_version, MapText(head.labels), ListText(head.finalizers),
      ListText(finalizers));
  return write;
}

void Terminate(const Objects& objects, const NamespaceFacts& facts, Plan& plan) {
  const Head& head = objects.head(facts.slot);
  const api::Namespace& space = *objects.namespace_of(facts.slot);
  if (std::ranges::find(space.spec_finalizers, kFinalizer) == space.spec_finalizers.end()) return;
  // Pods go first: what they use must outlive them.
  Remains remains;
  const Resident pods = ResidentOf(api::KindOf(api::KindId::kPod));
  if (!Empty(objects, facts, pods, plan)) {
    remains.Count(objects, pods, head.name);
    if (plan.writes.empty()) TellRemains(objects, facts, remains, plan);
    return;
  }
  bool empty = true;
  const std::vector<Resident> residents = ResidentsOf(objects);
  for (const Resident& kind : residents) {
    if (Empty(objects, facts, kind, plan)) continue;
    empty = false;
    remains.Count(objects, kind, head.name);
  }
  if (!empty) {
    if (plan.writes.empty()) TellRemains(objects, facts, remains, plan);
    return;
  }
  for (const Resident& kind : residents) {
    if (!facts.empty.contains(kind.resource))
      plan.writes.push_back(kind.Ask(Verb::kAnyLeft, head.name));
  }
  if (plan.writes.empty()) plan.writes.push_back(FinalizeOf(head, space.spec_finalizers));
}

}  // namespace

Plan PlanNamespace(const Objects& objects, const NamespaceFacts& facts) {
  Plan plan;
  const Head& head = objects.head(facts.slot);
  if (head.deletion.has_value()) {
    Terminate(objects, facts, plan);
  } else if (objects.namespace_of(facts.slot)->phase != "Terminating") {
    Furnish(objects, facts, plan);
  }
  return plan;
}

}  // namespace berth::controllers
