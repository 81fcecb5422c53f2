#pragma once

#include "api/json.h"
#include "apiserver/problem.h"
#include "store/store.h"

// What Volcano's webhooks ask of other objects: the tree of Queues, and the Queue of a PodGroup.
// Reads the store's head.
namespace berth::apiserver {

// Of a new PodGroup: its queue is there, takes new work, and has no children. The queue "default"
// needn't be there.
[[nodiscard]] Outcome<void> AdmitPodGroup(const store::Store& store, Subject subject,
                                          const api::Json& group);

// Of a Queue that is new, or gets another parent than in `old`: the parent is there, not below it,
// not too deep, and has no pods of its own when this is its first child. What it says of resources
// goes with those above and below it (queue_amounts.h). "default" and "root" are not closed.
[[nodiscard]] Outcome<void> AdmitQueue(const store::Store& store, Subject subject,
                                       const api::Json* old, const api::Json& queue);

// Not the queues "default" and "root", and none that has pods or children.
[[nodiscard]] Outcome<void> AdmitQueueDeletion(const store::Store& store, Subject subject);

}  // namespace berth::apiserver
