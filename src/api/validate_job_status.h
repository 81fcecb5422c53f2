#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of a Job's status.
namespace berth::api::rules {

// The status of a Job that replaces `old`. What an older server let in stays, where only other
// parts change.
void CheckJobStatus(FieldErrors& errors, const Json& old, const Json& job);

}  // namespace berth::api::rules
