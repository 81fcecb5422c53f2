#pragma once

#include "api/field_error.h"
#include "api/json.h"
#include "api/validate_common.h"

// Private to api/: the ResourceClaims that a pod names, which are checked and otherwise not acted
// on. Upstream's rules: pkg/apis/core/validation.
namespace berth::api::rules {

// spec.resourceClaims.
void CheckPodClaims(FieldErrors& errors, const Path& spec_path, const Json& spec);
// Those that a container's, or the pod's own, resources name, against the pod's.
void CheckUsedClaims(FieldErrors& errors, const Path& resources_path, const Json& resources,
                     const Json& spec);

}  // namespace berth::api::rules
