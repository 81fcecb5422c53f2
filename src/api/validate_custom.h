#pragma once

#include <string>
#include <vector>

#include "api/field_error.h"
#include "api/json.h"
#include "api/kinds.h"

// Private to api/: the rules of custom kinds.
namespace berth::api::rules {

// All but metadata: the schema, then what its definition's rules say, then those of webhooks.
// `old` is null for a new object; what of its schema's and its rules' faults it has already is let
// through, with a warning of those of the rules.
void CheckCustom(FieldErrors& errors, KindId kind, const Json* old, const Json& object,
                 std::vector<std::string>& warnings);

}  // namespace berth::api::rules
