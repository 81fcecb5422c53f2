#pragma once

#include "api/json.h"
#include "api/kinds.h"

namespace berth::api {

// ApplyDefaults (api/defaults.h) of what was applied to an object, or made one. Of users' kinds
// upstream drops no null there, so that the schema says what it has against one that stands for no
// default.
void ApplyDefaultsToApplied(const Kind& kind, Json& object);

}  // namespace berth::api
