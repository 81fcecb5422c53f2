#pragma once

#include "api/field_error.h"
#include "api/json.h"
#include "api/kinds.h"

// Private to api/: the rules of custom kinds.
namespace berth::api::rules {

// All but metadata: the schema, then what its definition's rules say, then those of webhooks.
// `old` is null for a new object.
void CheckCustom(FieldErrors& errors, KindId kind, const Json* old, const Json& object);

}  // namespace berth::api::rules
