#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of ResourceQuotas and LimitRanges.
namespace berth::api::rules {

// Of a new object (`old` is null) or a change.
void CheckResourceQuota(FieldErrors& errors, const Json* old, const Json& quota);
void CheckResourceQuotaStatus(FieldErrors& errors, const Json& old, const Json& quota);
void CheckLimitRange(FieldErrors& errors, const Json* old, const Json& range);

}  // namespace berth::api::rules
