#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "model/ids.h"

namespace berth::model {

// Why something waits. A reason is a subscription: what can lift it wakes what
// waits for it.
enum class ReasonKind : uint8_t {
  kNone,
  // Of a node, for a class. In the order in which filters run.
  kAffinityConflict,  // No node name satisfies the class's terms: every node refuses.
  kNotNamed,          // The class's terms name nodes, and this one is not among them.
  kUnschedulable,
  kNodeName,
  kTaint,
  kAddedAffinity,  // What the profile requires of nodes.
  kAffinity,
  kPorts,         // Of its host ports one is taken.
  kInsufficient,  // Amounts, the pod count among them.
  // Of the pod's volumes, whatever the node: every node refuses.
  kClaimMissing,   // A claim that it names isn't there.
  kClaimAwaited,   // Nor one that is to be made for it.
  kClaimLost,      // The claim's volume is gone.
  kClaimDeleted,   // The claim is being deleted.
  kClaimForeign,   // The claim that is to be the pod's own is another's.
  kClaimUnbound,   // A claim has no volume, and gets one without a pod.
  kVolumeMissing,  // The claim's volume isn't there.
  // Of its volumes on the node.
  kDiskConflict,     // A pod there has the disk.
  kClaimInUse,       // Another pod has the claim, which is one pod's.
  kVolumeLimit,      // Too many are attached.
  kVolumeNode,       // The claim's volume can't be used there. These four stand together: Verdict.
  kNoVolume,         // Nor is one to be had for a claim.
  kNoStorage,        // Nor is there storage for one.
  kVolumeGone,       // The claim's volume isn't there.
  kVolumeZone,       // The volume is of another zone.
  kSpread,           // Its domain has too many pods already for a topology spread constraint.
  kSpreadLabel,      // It has no label that says of which domain it is.
  kPodAffinity,      // Its domain lacks a pod that one is to be with.
  kPodAntiAffinity,  // It has one that it is not to be with.
  kExistingAntiAffinity,  // It has one that is not to be with this one.
  kFeatures,
  kGpuModel,
  kDevices,  // No device, or not enough, has the milli free.
  // Of a pod or group.
  kNodeMissing,  // The node it is pinned to does not exist.
  kGated,
  kBackoff,
  kWriteInFlight,
  kWriteUnresolved,
  kWriteRefused,
  kHeldBy,
  kVictimsTerminating,
  kQuotaShort,
  kGangIncomplete,
  kGroupMissing,     // The group that it names is not there.
  kExternalVerdict,  // An extender refused the node.
  // Of a promise: why it was taken back.
  kPromiseNodeGone,
  kPromiseNodeRefuses,      // Tainted, cordoned, relabelled: no eviction helps there any more.
  kPromiseVictimStays,      // Who was to leave is there after its grace.
  kPromiseOutranked,        // The room was promised to someone more important.
  kPromiseRoomTaken,        // It went to others: a binding of somebody else, a node that shrank.
  kPromiseWriteRefused,     // The API server refused the nomination.
  kPromiseWriteLost,        // It took the nomination, and the object doesn't have it.
  kPromiseEvictionRefused,  // It refused an eviction.
  kPromiseEvictionFails,    // An eviction does not get done: errors and conflicts alone.
  kPromiseToGroup,          // Its group is placed as a whole.
};
inline constexpr uint32_t kReasonKindsCount = 55;
static_assert(kReasonKindsCount <= 64);  // Bits of a ReasonMask.
using ReasonMask = uint64_t;
constexpr ReasonMask MaskOf(ReasonKind kind) {
  return ReasonMask{1} << static_cast<uint32_t>(kind);
}

// What filters say of one class on one node.
struct Verdict {
  ReasonKind kind = ReasonKind::kNone;  // The first filter that refused; kNone: it fits.
  bool unresolvable = false;            // No eviction would help.
  // With kInsufficient, bit i: the i-th amount of the class's requests does not fit. With the kinds
  // from kVolumeNode on, bit i: the i-th of them holds.
  uint64_t lacking = 0;
  uint32_t detail = 0;  // With kTaint: the index in the node's taints.
  // Of the kinds that volumes bar a pod by: the name of the claim or volume. kExternalVerdict: the
  // extender's words; invalid: it said none.
  NameId name;
  NameId other;  // kClaimLost: of its volume. kClaimForeign: what the pod calls the volume.
  [[nodiscard]] bool fits() const { return kind == ReasonKind::kNone; }
  bool operator==(const Verdict&) const = default;
};

// The pod's volumes bar it from every node, before any node is asked.
inline constexpr ReasonMask kBarredByVolumes =
    MaskOf(ReasonKind::kClaimMissing) | MaskOf(ReasonKind::kClaimAwaited) |
    MaskOf(ReasonKind::kClaimLost) | MaskOf(ReasonKind::kClaimDeleted) |
    MaskOf(ReasonKind::kClaimForeign) | MaskOf(ReasonKind::kClaimUnbound) |
    MaskOf(ReasonKind::kVolumeMissing);
// A node refuses the pod's volumes: as long as those of others are there, or whoever leaves.
inline constexpr ReasonMask kRefusedByVolumesInUse = MaskOf(ReasonKind::kDiskConflict) |
                                                     MaskOf(ReasonKind::kClaimInUse) |
                                                     MaskOf(ReasonKind::kVolumeLimit);
inline constexpr ReasonMask kRefusedByStorage =
    MaskOf(ReasonKind::kVolumeNode) | MaskOf(ReasonKind::kNoVolume) |
    MaskOf(ReasonKind::kNoStorage) | MaskOf(ReasonKind::kVolumeGone) |
    MaskOf(ReasonKind::kVolumeZone);
inline constexpr ReasonMask kOfVolumes =
    kBarredByVolumes | kRefusedByVolumesInUse | kRefusedByStorage;
// All kinds that the verdict gives for the node.
[[nodiscard]] constexpr ReasonMask MaskOf(const Verdict& verdict) {
  if (verdict.kind < ReasonKind::kVolumeNode || verdict.kind > ReasonKind::kVolumeGone)
    return MaskOf(verdict.kind);
  return verdict.lacking << static_cast<uint32_t>(ReasonKind::kVolumeNode);
}

// A bundle has at most this many amounts, so that Verdict::lacking can name each.
inline constexpr uint32_t kBundleAmountsMax = 64;

// What scores say of one class on one node that fits. The total is local + the weights times the
// two raw scores normalised over all nodes that fit.
struct NodeScore {
  int64_t local = 0;         // Weighted sum of what depends on this node only; higher is better.
  int32_t taints_raw = 0;    // PreferNoSchedule taints that are not tolerated.
  int32_t affinity_raw = 0;  // Sum of the weights of matched preferred terms.
  bool operator==(const NodeScore&) const = default;
};

// One reason with its extent: one line of an explanation.
struct Reason {
  ReasonKind kind = ReasonKind::kNone;
  bool unresolvable = false;
  ResourceId resource;      // kInsufficient, kQuotaShort.
  NameId detail;            // kTaint: its key. kNodeMissing: the name. Verdict::name.
  NameId detail_value;      // kTaint: its value. Verdict::other.
  int64_t nodes_count = 0;  // How many nodes refuse for it.
  Amount deficit = 0;       // kInsufficient: the least that is missing on any of them.
  Instant until;            // kBackoff.
  int32_t code = 0;         // kWriteRefused.
  bool operator==(const Reason&) const = default;
};

}  // namespace berth::model
