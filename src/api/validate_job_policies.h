#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of a Job's policies and limits by index.
namespace berth::api::rules {

// maxFailedIndexes and what goes with many completions. Of Indexed Jobs.
void CheckIndexLimits(FieldErrors& errors, const Path& path, const Json& spec);
// podFailurePolicy and successPolicy.
void CheckJobPolicies(FieldErrors& errors, const Path& path, const Json& spec);

}  // namespace berth::api::rules
