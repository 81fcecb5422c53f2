#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of Services.
namespace berth::api::rules {

// `old` is null for a new one.
void CheckService(FieldErrors& errors, const Json* old, const Json& service);

void CheckServiceStatus(FieldErrors& errors, const Json& old, const Json& service);

}  // namespace berth::api::rules
