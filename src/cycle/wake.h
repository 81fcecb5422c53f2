#pragma once

#include "model/faults.h"
#include "model/reason.h"
#include "model/touch.h"

namespace berth::cycle {

// What hangs on pods of other nodes: lifted where these move (Engine::WakeForMoved).
inline constexpr model::ReasonMask kOfOtherPods =
    model::MaskOf(model::ReasonKind::kSpread) | model::MaskOf(model::ReasonKind::kPodAffinity) |
    model::MaskOf(model::ReasonKind::kPodAntiAffinity) |
    model::MaskOf(model::ReasonKind::kExistingAntiAffinity);

// Which reasons a touch of a node can lift: the index from events to those who wait.
//
// A blocked line keeps the set M of the reasons that refused it somewhere. For every node, M names
// one of the filters that refuse there: so when the last refusing filter of a node gives way, the
// touch that did it lifts a reason in M, and the line is evaluated on that node. What is then found
// refusing is added to M. A node that was added is looked at by all.
[[nodiscard]] constexpr model::ReasonMask LiftedBy(model::TouchKinds kinds,
                                                   const model::Faults& faults) {
  using model::MaskOf;
  using model::ReasonKind;
  model::ReasonMask mask = 0;
  if ((kinds & model::kTouchFreed) != 0 && !faults.wake_index_misses_freed) {
    mask |= MaskOf(ReasonKind::kPorts) | MaskOf(ReasonKind::kInsufficient) |
            MaskOf(ReasonKind::kDevices) | model::kRefusedByVolumesInUse;
  }
  // Those, if they may be evicted, and what others refuse who may.
  if ((kinds & model::kTouchEvictable) != 0) {
    mask |= MaskOf(ReasonKind::kPorts) | MaskOf(ReasonKind::kInsufficient) |
            MaskOf(ReasonKind::kDevices) | model::kRefusedByVolumesInUse | kOfOtherPods;
  }
  if ((kinds & model::kTouchVolumes) != 0) mask |= MaskOf(ReasonKind::kVolumeLimit);
  if ((kinds & model::kTouchLabels) != 0)
    mask |= MaskOf(ReasonKind::kAddedAffinity) | MaskOf(ReasonKind::kAffinity) |
            MaskOf(ReasonKind::kSpreadLabel) | MaskOf(ReasonKind::kPodAffinity) |
            model::kRefusedByStorage;
  if ((kinds & model::kTouchTaints) != 0) mask |= MaskOf(ReasonKind::kTaint);
  if ((kinds & model::kTouchUnschedulable) != 0) mask |= MaskOf(ReasonKind::kUnschedulable);
  if ((kinds & model::kTouchFeatures) != 0) mask |= MaskOf(ReasonKind::kFeatures);
  if ((kinds & model::kTouchDevices) != 0)
    mask |= MaskOf(ReasonKind::kGpuModel) | MaskOf(ReasonKind::kDevices);
  return mask;
}

// Of a node's touches those that can lift anything; not 0 where one came or LiftedBy says so.
[[nodiscard]] constexpr model::TouchKinds Lifting(model::TouchKinds kinds,
                                                  const model::Faults& faults) {
  if ((kinds & model::kTouchAdded) != 0) return model::kTouchAdded;
  model::TouchKinds lifting = 0;
  for (uint32_t bit = 0; bit < model::kTouchKindsCount; ++bit) {
    const auto kind = static_cast<model::TouchKinds>(kinds & (1u << bit));
    if (kind != 0 && LiftedBy(kind, faults) != 0)
      lifting = static_cast<model::TouchKinds>(lifting | kind);
  }
  return lifting;
}

}  // namespace berth::cycle
