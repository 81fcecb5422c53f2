#pragma once

#include "kueue_model.h"

// The tables of group 7-queue: who waits where, who is to be tried, and what wakes whom.
namespace berth::kueue {

void AddedWorkload(const Case& test);
void ChangedVersion(const Case& test);
void ClusterQueueSteps(const Case& test);
void FlushedTrees(const Case& test);
void Heads(const Case& test);
void InadmissibleShapes(const Case& test);
void LineScript(const Case& test);
void ManagerScript(const Case& test);
void PendingInOrder(const Case& test);
void PendingOfLocalQueue(const Case& test);
void PushedTwice(const Case& test);
void RequeuedByReason(const Case& test);
void RequeuedByManager(const Case& test);
void RequeuedOutcome(const Case& test);
void ScanOfNewVersion(const Case& test);
void ShapeOfReason(const Case& test);
void UpdatedWorkload(const Case& test);

}  // namespace berth::kueue
