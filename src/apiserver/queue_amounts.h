#pragma once

#include "api/field_error.h"
#include "api/json.h"
#include "store/store.h"

// What Volcano's Queues say of resources against those above and below them, as Volcano's webhook
// asks it. Reads the store's head.
namespace berth::apiserver {

// What is wrong with a Queue that is new, or says other resources than `old` or has another parent.
// No queue's capability is above that of the nearest queue above it that has one, nor below one of
// those under it; and what the children of a queue are guaranteed, or deserve, is together no more
// than what it is, of a resource that it doesn't name nothing. The root is asked nothing, and its
// children are not held to it. O(queues x those above and below).
[[nodiscard]] api::FieldErrors QueueAmountErrors(const store::Store& store, const api::Json* old,
                                                 const api::Json& queue);

}  // namespace berth::apiserver
