#pragma once

#include "api/field_error.h"
#include "api/json.h"

// Private to api/: the rules of CustomResourceDefinitions, in upstream's words
// (k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation).
namespace berth::api::rules {

// `old` is null for a new one.
void CheckDefinition(FieldErrors& errors, const Json* old, const Json& object);
void CheckDefinitionStatus(FieldErrors& errors, const Json& object);

}  // namespace berth::api::rules
