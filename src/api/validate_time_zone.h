#pragma once

#include "api/field_error.h"
#include "api/json.h"
#include "api/time_zone.h"

namespace berth::api {

// What ValidateCreate and ValidateUpdate can't know of a CronJob: that its time zone is none of
// these. Stands at its place among their errors, unless they say already what is wrong with it.
// `old` is what is replaced, or null: a zone that stays is not looked at.
void CheckTimeZone(const TimeZones& zones, const Json* old, const Json& object,
                   FieldErrors& errors);

}  // namespace berth::api
