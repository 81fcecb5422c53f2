#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of ReplicationControllers. `old` is nullptr for a creation.
namespace berth::api::rules {

void CheckReplicationController(FieldErrors& errors, const Json* old, const Json& object);

void CheckReplicationControllerStatus(FieldErrors& errors, const Json& old, const Json& object);

}  // namespace berth::api::rules
