#pragma once

#include "api/field_error.h"
#include "api/json.h"
#include "api/kinds.h"

// Private to api/: what Volcano's and Kueue's webhooks say of their kinds, beside the definitions.
namespace berth::api::rules {

// REQUIRES: an object that its definition finds no fault with. `old` is null for a new one.
void CheckQueues(FieldErrors& errors, KindId kind, const Json* old, const Json& object);

// What of a document of Kueue's older version could not be stored: its definition lets more pass
// than the version that is stored has words for.
void CheckOldVersion(FieldErrors& errors, KindId kind, const Json& object);

}  // namespace berth::api::rules
