#pragma once

#include "api/json.h"
#include "cycle/engine.h"
#include "model/plan.h"

// Who has the nodes that a workload waits for.
namespace berth::control {

// Adds to the object, where the workload finds no places because nodes lack what its pods request:
//   "nodeHolders":[{"workload" or "pod","amounts":{RESOURCE:AMOUNT},"nodes","priority",
//                   "promised","leaves"}],"nodeHoldersCount"
// those that have most of that on nodes where its pods could stand, at most kHoldersShown: pods by
// their workload, workloads with the places of pods that are yet to come. `promised`: it is kept
// for them. O(nodes + claims of those nodes).
void AddNodeHolders(const cycle::Engine& engine, model::WorkloadId workload,
                    const model::PlacesRefusal& refusal, api::JsonObject& object);

}  // namespace berth::control
