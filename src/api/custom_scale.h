#pragma once

#include "api/custom_definition.h"
#include "api/field_error.h"
#include "api/json.h"

namespace berth::api {

// What the scale subresource of a user's kind shows must be what it can show, wherever the
// definition says that it is: counts that are integers from 0 to 2^31-1, and a selector's text.
// What isn't there is fine, and so is all of a version without that subresource. In upstream's
// words (apiextensions-apiserver pkg/registry/customresource/validator.go). Cost: O(the paths).
[[nodiscard]] FieldErrors CheckScaleSpec(const CustomVersion& version, const Json& object);
[[nodiscard]] FieldErrors CheckScaleStatus(const CustomVersion& version, const Json& object);

}  // namespace berth::api
