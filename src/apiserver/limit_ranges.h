#pragma once

#include "api/json.h"
#include "apiserver/problem.h"
#include "store/store.h"

// LimitRanges, as upstream's admission plugin LimitRanger acts on them
// (https://kubernetes.io/docs/concepts/policy/limit-range/). Cost where a namespace has none: one
// lookup.
namespace berth::apiserver {

// Gives the containers of a new pod the requests and limits that they lack and the namespace has
// defaults for, and says in an annotation which.
void ApplyLimitRanges(const store::Store& store, api::Json& pod);

// Whether a pod or claim is within the limits; 403 in upstream's words otherwise. `old` is null
// when it is new; what is being deleted may be anything.
[[nodiscard]] Outcome<void> CheckLimitRanges(const store::Store& store, Subject subject,
                                             const api::Json* old, const api::Json& object);

}  // namespace berth::apiserver
