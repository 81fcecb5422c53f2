#include "controllers/protection.h"

#include <algorithm>

#include "api/well_known.h"

namespace berth::controllers {
namespace {

// Kubelets know of pods that have a node.
bool IsMounted(const Objects& objects, const Head& claim) {
  return std::ranges::any_of(objects.In(api::KindId::kPod, claim.namespace_name), [&](Slot slot) {
    const PodFacts& pod = *objects.pod(slot);
    return !pod.node.empty() && std::ranges::find(pod.claims, claim.name) != pod.claims.end();
  });
}

}  // namespace

Plan PlanProtection(const Objects& objects, Slot slot) {
  const Head& head = objects.head(slot);
  const bool claim = head.kind == api::KindId::kPersistentVolumeClaim;
  const std::string_view finalizer =
      claim ? api::kClaimProtectionFinalizer : api::kVolumeProtectionFinalizer;
  Plan plan;
  if (!head.deletion.has_value() || !head.HasFinalizer(finalizer)) return plan;
  if (claim ? IsMounted(objects, head) : objects.volume(slot)->phase == "Bound") return plan;
  plan.writes.push_back(WithoutFinalizer(head, finalizer));
  return plan;
}

}  // namespace berth::controllers
