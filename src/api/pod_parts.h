#pragma once

#include "api/defaults.h"
#include "api/validate_common.h"

// Private to api/: what of a pod has a path of its own. `/ephemeralcontainers` adds containers for
// debugging, `/resize` changes cpu and memory of containers, or of the pod, in place. Whatever else
// such a request says does not count.
namespace berth::api::rules {

// Takes all but that part from `old`. Containers that were added, removed or renamed stay for
// CheckResize to refuse. REQUIRES: `part` is one of the two.
void KeepAllButPart(const Json& old, Json& pod, Subresource part);

void CheckEphemeralUpdate(FieldErrors& errors, const Json& old, const Json& pod);
void CheckResize(FieldErrors& errors, const Json& old, const Json& pod);

}  // namespace berth::api::rules
