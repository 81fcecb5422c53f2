#pragma once

#include <span>

#include "api/json.h"
#include "cycle/engine.h"
#include "model/plan.h"

// Who has what others wait for, for /debug/why.
namespace berth::control {

// Adds to the object, where nodes lack what the workload's pods request:
//   "nodeHolders":[{"workload", "podgroup" or "pod","amounts":{RESOURCE:AMOUNT},"nodes","priority",
//                   "promised","leaves"}],"nodeHoldersCount"
// those that have most of that on nodes where its pods could stand, at most kHoldersShown: pods by
// their workload or group, workloads with the places of pods that are yet to come. `priority` is
// the highest; `promised`: it is kept for them; `leaves`: all of it. O(nodes + claims of those
// nodes).
void AddNodeHolders(const cycle::Engine& engine, model::WorkloadId workload,
                    const model::PlacesRefusal& refusal, api::JsonObject& object);
// The same of a pod that waits, or of the members of a group of which `asker` was refused.
void AddNodeHolders(const cycle::Engine& engine, model::PodId asker, const model::Refusal& refusal,
                    api::JsonObject& object);

// Adds, where the queue of a group lacks quota that others could leave it:
//   "queueHolders" and "queueHoldersCount", likewise without "nodes": who has most of it in the
//   queue that is told, and below. O(queues + claims of those).
void AddQueueHolders(const cycle::Engine& engine, const model::Refusal& refusal,
                     api::JsonObject& object);

// Whether the queue is `top`, or below it.
[[nodiscard]] bool IsBelow(const model::State& state, model::QueueId queue, model::QueueId top);

}  // namespace berth::control
