#pragma once

#include <cstdint>

#include "model/ids.h"
#include "model/intern.h"

namespace berth::model {

enum class AffinityKind : uint32_t {
  kRequired,
  kRequiredAnti,
  kPreferred,
  kPreferredAnti,
  // The pods that meet all required terms of affinity at once, which are those that count for each;
  // it has no key, and is there where any term is required.
  kAllRequired,
};

// One term of a pod's affinity to other pods, or against them
// (https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity).
struct AffinityTerm {
  PodSelectorId selector;  // Which pods; invalid: none.
  // Of all but kRequired, which pods count for the pod itself. As upstream, which asks their
  // namespaces for no labels then, that is more: all that the selector of namespaces takes without
  // any.
  PodSelectorId counted;
  NameId key;  // The label of nodes whose values are the domains.
  AffinityKind kind = AffinityKind::kRequired;
  uint32_t weight = 0;  // 1 to 100, of preferred ones.
  auto operator<=>(const AffinityTerm&) const = default;
};
using AffinityTable = InternTable<AffinityTerm, AffinityListId>;  // In the pod's order.

// The selectors that somebody's terms have and that select a pod, ascending.
using PodSelectorListTable = InternTable<PodSelectorId, PodSelectorListId>;

}  // namespace berth::model
