#pragma once

#include "kueue_model.h"

// The tables that run whole cycles of admission.
namespace berth::kueue {

void OneCycle(const Case& test);
void ResourcesToReserve(const Case& test);
void LastSchedulingContext(const Case& test);

}  // namespace berth::kueue
