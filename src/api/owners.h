#pragma once

#include "api/json.h"

namespace berth::api {

// The owner reference of an object's controller; nullptr: it has none. O(owners).
[[nodiscard]] const Json* ControllerOf(const Json& object);

}  // namespace berth::api
