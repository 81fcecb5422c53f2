#pragma once

#include "kueue_model.h"

// The tables of group 6-cache: what queues and cohorts have, use and have left.
namespace berth::kueue {

void Available(const Case& test);
void ClusterQueueUsage(const Case& test);
void CohortLendable(const Case& test);
void IsBorrowingOn(const Case& test);
void LocalQueueUsage(const Case& test);
void QueueReadiness(const Case& test);
void Script(const Case& test);
void Snapshot(const Case& test);

}  // namespace berth::kueue
