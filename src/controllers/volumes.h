#pragma once

#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// Which PersistentVolume a claim gets
// (https://kubernetes.io/docs/concepts/storage/persistent-volumes/), and the volumes of the
// simulated provisioner.
//
//   claim  Pending ──volume found or made──> volume.claimRef ──> claim.volumeName, bind-completed
//            ^                                                        │
//            └── Lost: the volume is gone, or somebody else's <── Bound
//   volume Available ──claimRef with a uid──> Bound ──claim gone──> Released ──Delete──> gone
//                                                                      └──nobody can──> Failed
//
// Each arrow is a write of its own, fenced by what was seen: whoever comes second is refused, and
// looks again. What is not there is read before anything follows from that (`gone_at`): the
// object's version for which the server said so.
namespace berth::controllers {

// Binds a claim, asks for a volume or makes one, and keeps its status. Cost: O(volumes without a
// claim).
[[nodiscard]] Plan PlanClaim(const Objects& objects, Slot slot, const std::string& gone_at);

// Makes the claims of a pod's ephemeral volumes; they go with it. One of that name that is not the
// pod's is left alone, and the pod is told.
[[nodiscard]] Plan PlanEphemeralClaims(const Objects& objects, Slot pod);

// The phase of a volume, and what becomes of it when its claim is gone.
[[nodiscard]] Plan PlanVolume(const Objects& objects, Slot slot, const std::string& gone_at);

}  // namespace berth::controllers
