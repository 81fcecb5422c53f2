#include "controllers/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "controllers/job.h"

namespace berth::controllers {
namespace {

Write WithOwners(const Head& head, const std::vector<api::OwnerReference>& owners) {
  Write patch = PatchOf(head);
  patch.metadata = R"("ownerReferences":)" + (owners.empty() ? "null" : OwnersText(owners));
  return patch;
}

template <typename Drop>
Write WithoutOwners(const Head& head, Drop drop) {
  std::vector<api::OwnerReference> owners = head.owners;
  std::erase_if(owners, drop);
  return WithOwners(head, owners);
}

// Its owners don't wait for it any more.
Write Unblocking(const Head& head) {
  std::vector<api::OwnerReference> owners = head.owners;
  for (api::OwnerReference& owner : owners) owner.block_owner_deletion = false;
  return WithOwners(head, owners);
}

bool WaitsForDependents(const Head& head) {
  return head.deletion.has_value() && head.HasFinalizer(kForegroundFinalizer);
}

// Where an owner would be found, by what the reference says of it.
struct OwnerKind {
  api::KindId kind = api::KindId::kCustomResource;
  std::string defined;
  bool namespaced = false;
};

// Nothing of a kind that is not served, or not wholly seen yet.
std::optional<OwnerKind> KindOfOwner(const Objects& objects, const api::OwnerReference& owner) {
  if (const api::Kind* kind = api::FindKind(owner.api_version, owner.kind)) {
    if (!kind->stored) return std::nullopt;
    return OwnerKind{.kind = kind->id, .namespaced = kind->namespaced};
  }
  const Head* definition = objects.DefinitionOf(owner);
  if (definition == nullptr || !objects.listed(definition->name)) return std::nullopt;
  return OwnerKind{.defined = definition->name,
                   .namespaced = objects.definition(definition->name)->namespaced};
}

// The object that has the reference's uid, whatever else the reference says of it.
const Head* WithUidOf(const Objects& objects, const api::OwnerReference& owner) {
  const Slot slot = objects.Find(owner.uid);
  return slot == kNoSlot ? nullptr : &objects.head(slot);
}

// Whether the object is called and is of the kind that the reference says.
bool IsNamed(const Head& found, const api::OwnerReference& owner, const OwnerKind& kind) {
  if (found.name != owner.name) return false;
  if (!found.defined.empty() || !kind.defined.empty()) return found.defined == kind.defined;
  return api::KindOf(found.kind).storage == api::KindOf(kind.kind).storage;
}

// Of an owner that can't be found nothing can be said.
enum class Standing : uint8_t { kSolid, kWaiting, kDangling, kUnknown, kUnfindable };

Standing StandingOf(const Objects& objects, const Head& head, const api::OwnerReference& owner,
                    const Absences& absent) {
  if (absent.contains(AbsenceKey(head.namespace_name, owner))) return Standing::kDangling;
  const std::optional<OwnerKind> kind = KindOfOwner(objects, owner);
  if (!kind.has_value()) return Standing::kUnfindable;
  const Head* found = WithUidOf(objects, owner);
  const bool owns = found != nullptr && MayOwn(*found, head);
  if (owns && IsNamed(*found, owner, *kind))
    return WaitsForDependents(*found) ? Standing::kWaiting : Standing::kSolid;
  if (kind->namespaced && head.namespace_name.empty()) return Standing::kUnfindable;
  // A uid is one object's, whose kind and name never change: nothing else can have it.
  return owns ? Standing::kDangling : Standing::kUnknown;
}

// Of an owner that was found in another namespace.
void TellOfOtherNamespaces(const Objects& objects, const Head& head, Plan& plan) {
  for (const api::OwnerReference& owner : head.owners) {
    const Head* found = WithUidOf(objects, owner);
    if (found == nullptr || MayOwn(*found, head)) continue;
    plan.told.push_back(
        {.warning = true,
         .reason = "OwnerRefInvalidNamespace",
         .message = fmt::format("ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist "
                                "in namespace \"{}\"",
                                owner.api_version, owner.kind, head.namespace_name, owner.name,
                                owner.uid, head.namespace_name)});
  }
}

Write ReadOwner(const Objects& objects, const Head& head, const api::OwnerReference& owner) {
  OwnerKind kind = *KindOfOwner(objects, owner);
  return {.verb = Verb::kRead,
          .kind = kind.kind,
          .defined = std::move(kind.defined),
          .namespace_name = kind.namespaced ? head.namespace_name : std::string(),
          .name = owner.name,
          .uid = owner.uid};
}

// An object that is to go: what its dependents still have to do with it.
void PlanDeleted(const Objects& objects, const Head& head, Plan& plan) {
  auto dependents = objects.DependentsOf(head);
  const auto refers = [&](const api::OwnerReference& owner) { return owner.uid == head.uid; };
  if (head.HasFinalizer(kOrphanFinalizer)) {
    for (const Slot slot : dependents) {
      plan.writes.push_back(WithoutOwners(objects.head(slot), refers));
    }
    if (dependents.empty()) plan.writes.push_back(WithoutFinalizer(head, kOrphanFinalizer));
    return;
  }
  // A Workload for no Job is nobody's to let end.
  const bool nobodys = head.kind == api::KindId::kWorkload && head.owners.empty() &&
                       JobUidOf(head).empty() && head.HasFinalizer(api::kInUseFinalizer);
  if (nobodys) plan.writes.push_back(WithoutFinalizer(head, api::kInUseFinalizer));
  if (!head.HasFinalizer(kForegroundFinalizer) || nobodys) return;
  const bool blocked = std::ranges::any_of(dependents, [&](Slot slot) {
    return std::ranges::any_of(objects.head(slot).owners, [&](const api::OwnerReference& owner) {
      return refers(owner) && owner.block_owner_deletion;
    });
  });
  if (!blocked) plan.writes.push_back(WithoutFinalizer(head, kForegroundFinalizer));
}

std::string_view PolicyOf(const Head& head) {
  if (head.HasFinalizer(kOrphanFinalizer)) return "Orphan";
  return head.HasFinalizer(kForegroundFinalizer) ? "Foreground" : "Background";
}

// A pod that kept itself for a Job that is gone: nobody will count it any more.
void PlanTracked(const Objects& objects, const Head& head, const Absences& absent, Plan& plan) {
  if (!head.HasFinalizer(kTrackingFinalizer)) return;
  const api::OwnerReference* controller = head.controller();
  const bool job = controller != nullptr && controller->kind == "Job";
  if (job && StandingOf(objects, head, *controller, absent) != Standing::kDangling) return;
  plan.writes.push_back(WithoutTracking(head));
}

}  // namespace

std::string AbsenceKey(std::string_view namespace_name, const api::OwnerReference& owner) {
  return fmt::format("{}/{}/{}/{}/{}", owner.uid, namespace_name, owner.api_version, owner.kind,
                     owner.name);
}

void NoteAbsence(const Objects& objects, const Head& dependent, const Write& read,
                 Absences& absent) {
  for (const api::OwnerReference& owner : dependent.owners) {
    if (owner.uid != read.uid || owner.name != read.name) continue;
    const std::optional<OwnerKind> kind = KindOfOwner(objects, owner);
    if (kind.has_value() && kind->kind == read.kind && kind->defined == read.defined)
      absent.insert(AbsenceKey(dependent.namespace_name, owner));
  }
}

Plan PlanCollection(const Objects& objects, Slot slot, const Absences& absent) {
  Plan plan;
  const Head& head = objects.head(slot);
  std::vector<Standing> standings;
  for (const api::OwnerReference& owner : head.owners) {
    standings.push_back(StandingOf(objects, head, owner, absent));
    if (standings.back() == Standing::kUnknown)
      plan.writes.push_back(ReadOwner(objects, head, owner));
  }
  if (!plan.writes.empty()) {
    TellOfOtherNamespaces(objects, head, plan);
    return plan;
  }
  PlanTracked(objects, head, absent, plan);
  if (head.deletion.has_value()) {
    if (plan.writes.empty()) PlanDeleted(objects, head, plan);
    return plan;
  }
  if (head.owners.empty() || !plan.writes.empty()) return plan;
  const auto any = [&](Standing standing) {
    return std::ranges::find(standings, standing) != standings.end();
  };
  if (any(Standing::kUnfindable)) return plan;
  if (any(Standing::kSolid)) {
    if (!any(Standing::kDangling) && !any(Standing::kWaiting)) return plan;
    plan.writes.push_back(WithoutOwners(head, [&](const api::OwnerReference& owner) {
      return StandingOf(objects, head, owner, absent) != Standing::kSolid;
    }));
    return plan;
  }
  auto dependents = objects.DependentsOf(head);
  const bool foreground = any(Standing::kWaiting) && !dependents.empty();
  // It is between two that wait for dependents: in a circle all would wait for each other.
  const bool blocks = std::ranges::any_of(head.owners, &api::OwnerReference::block_owner_deletion);
  const auto waits = [&](Slot dependent) { return WaitsForDependents(objects.head(dependent)); };
  if (foreground && blocks && std::ranges::any_of(dependents, waits)) {
    plan.writes.push_back(Unblocking(head));
    return plan;
  }
  plan.writes.push_back(DeleteSeen(head, foreground ? "Foreground" : PolicyOf(head)));
  return plan;
}

}  // namespace berth::controllers
