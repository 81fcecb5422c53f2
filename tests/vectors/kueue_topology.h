#pragma once

#include "kueue_model.h"

// The tables of group 3-tas that place pods without a cycle, and of the nodes that they use.
namespace berth::kueue {

void FindTopologyAssignments(const Case& test);
void ReplaceUnhealthyNode(const Case& test);
void UsedNodes(const Case& test);

}  // namespace berth::kueue
