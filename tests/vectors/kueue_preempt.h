#pragma once

#include "kueue_model.h"

// The tables of group 2-preemption: who gives way to whom for quota.
namespace berth::kueue {

void CandidatesOrdering(const Case& test);
void Preemption(const Case& test);
void PreemptionMessage(const Case& test);
void SatisfiesPreemptionPolicy(const Case& test);

}  // namespace berth::kueue
