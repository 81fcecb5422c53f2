#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of roles and their bindings, of a namespace and of the cluster. `old`
// is nullptr for a creation.
namespace berth::api::rules {

void CheckRole(FieldErrors& errors, const Json* old, const Json& object);
void CheckClusterRole(FieldErrors& errors, const Json* old, const Json& object);
void CheckRoleBinding(FieldErrors& errors, const Json* old, const Json& object);
void CheckClusterRoleBinding(FieldErrors& errors, const Json* old, const Json& object);

}  // namespace berth::api::rules
