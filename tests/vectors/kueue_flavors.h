#pragma once

#include "kueue_model.h"

// The tables of group 4-flavors, and what else is of the assignment of flavors.
namespace berth::kueue {

void AssignFlavors(const Case& test);
void AllowedFlavors(const Case& test);
void ChosenFlavors(const Case& test);
void IsPreferred(const Case& test);
void LastAssignmentOutdated(const Case& test);
void NoFitReason(const Case& test);
void PendingFlavors(const Case& test);
void TopologyFlavors(const Case& test);

}  // namespace berth::kueue
