#pragma once

#include "api/json.h"
#include "api/kinds.h"

// Private to api/: what upstream takes from an object before it validates it, without a word.
namespace berth::api {

// Takes the fields out that upstream serves only behind feature gates that are off, or no more,
// unless `old`, nullptr for a creation, has them. Nothing for users' kinds.
void DropUnserved(const Kind& kind, const Json* old, Json& object);

// What a claim is filled from has two names, of which the older takes claims and snapshots only:
// whichever stands makes the other. `old` is nullptr for a creation.
void SettleDataSources(const Json* old, Json& claim);

}  // namespace berth::api
