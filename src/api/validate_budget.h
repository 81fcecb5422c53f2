#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of PodDisruptionBudgets.
namespace berth::api::rules {

// All but metadata.
void CheckBudget(FieldErrors& errors, const Json& object);
void CheckBudgetStatus(FieldErrors& errors, const Json& object);

}  // namespace berth::api::rules
