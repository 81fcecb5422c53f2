#pragma once

#include "kueue_model.h"

// The tables of group 8-workload that ask how much a Workload asks for, or holds.
namespace berth::kueue {

void AdjustedResources(const Case& test);
void AsksForTopology(const Case& test);
void CountsOfPodSets(const Case& test);
void EqualReclaimable(const Case& test);
void LimitedReclaimable(const Case& test);
void PriorityInfo(const Case& test);
void RebuiltRequests(const Case& test);
void ResourceUsage(const Case& test);
void SchedulingShape(const Case& test);
void TotalRequests(const Case& test);
void ValidLimitRange(const Case& test);
void ValidResources(const Case& test);

}  // namespace berth::kueue
