#pragma once

#include <cstdint>

#include "model/ids.h"
#include "model/intern.h"

namespace berth::model {

// One of a pod's topologySpreadConstraints
// (https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/).
struct SpreadConstraint {
  PodSelectorId selector;  // Which pods count; invalid: none.
  NameId key;              // The label of nodes whose values are the domains.
  uint32_t max_skew = 1;
  uint32_t min_domains = 1;
  uint32_t hard = 0;             // DoNotSchedule; else it is for scores.
  uint32_t honors_affinity = 1;  // Domains are of nodes that the pod selects,
  uint32_t honors_taints = 0;    // and whose taints it tolerates.
  uint32_t selects_itself = 0;   // The selector matches the pod.
  // Kubernetes' own, of pods that say none: a node that lacks another constraint's key counts, too.
  uint32_t by_default = 0;
  auto operator<=>(const SpreadConstraint&) const = default;
};
using SpreadTable = InternTable<SpreadConstraint, SpreadListId>;  // In the pod's order.

// A pod has at most this many.
inline constexpr uint32_t kSpreadConstraintsMax = 16;

}  // namespace berth::model
