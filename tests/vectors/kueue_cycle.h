#pragma once

#include "kueue_model.h"

// The tables that run whole cycles of admission.
namespace berth::kueue {

void AdmissionChecks(const Case& test);
void AdmittedCondition(const Case& test);
void OneCycle(const Case& test);
void RetryTime(const Case& test);
void ResourcesToReserve(const Case& test);
void LastSchedulingContext(const Case& test);
void TopologyCycle(const Case& test);

}  // namespace berth::kueue
