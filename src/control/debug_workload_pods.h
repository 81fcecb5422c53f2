#pragma once

#include "api/json.h"
#include "model/ids.h"

namespace berth::control {

class Scheduler;

// Adds where the pods of a workload are, and what those without a node wait for:
//   "places":[{"node","pods","leaving","kept"}],"placesCount"
// by node, at most kPlacesShown: so many pods, of which so many leave, and so many places that are
// kept for pods to come;
//   "podsWaiting":{"count","pods":[KEY],"message","promised","leaving",
//                "nodeHolders","nodeHoldersCount"}
// of its pods that have no node, at most kHoldersShown, and why the first waits and who has that
// (control/debug_places.h); `promised` is the node that it is to get, once so many
// that are `leaving` have left;
//   "placesLost": others have so many of its places, whose pods are not there again.
// O(its pods + one look at the nodes for the first that waits).
void AddPodsOf(const Scheduler& scheduler, model::WorkloadId workload, api::JsonObject& object);

inline constexpr size_t kPlacesShown = 10;

}  // namespace berth::control
