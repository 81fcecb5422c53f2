#include "controllers/namespaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace berth::controllers {
namespace {

constexpr std::string_view kFinalizer = "kubernetes";
constexpr std::string_view kServiceAccount = "default";
constexpr std::string_view kRootCa = "kube-root-ca.crt";
constexpr std::string_view kRootCaKey = "ca.crt";

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

// Asks a kind's objects to go. True when none is left in sight.
bool Empty(const Objects& objects, const NamespaceFacts& facts, const api::Kind& kind, Plan& plan) {
  const std::string& name = objects.head(facts.slot).name;
  const std::vector<Slot> slots = objects.In(kind.id, name);
  const bool untold = std::ranges::any_of(
      slots, [&](Slot slot) { return !objects.head(slot).deletion.has_value(); });
  if (untold || facts.occupied.contains(kind.id)) {
    Write write = CreateOf(kind.id, name, {});
    write.verb = Verb::kDeleteCollection;
    plan.writes.push_back(std::move(write));
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
  if (!Empty(objects, facts, api::KindOf(api::KindId::kPod), plan)) return;
  bool empty = true;
  for (const api::Kind& kind : api::Kinds()) {
    if (!kind.stored || !kind.namespaced || kind.storage != kind.id) continue;
    if (!Empty(objects, facts, kind, plan)) empty = false;
  }
  if (!empty) return;
  for (const api::Kind& kind : api::Kinds()) {
    if (!kind.stored || !kind.namespaced || kind.storage != kind.id) continue;
    if (facts.empty.contains(kind.id)) continue;
    Write write = CreateOf(kind.id, head.name, {});
    write.verb = Verb::kAnyLeft;
    plan.writes.push_back(std::move(write));
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
