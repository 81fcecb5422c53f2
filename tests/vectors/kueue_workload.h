#pragma once

#include "kueue_model.h"

// The tables that ask what a Workload's object says, and in which order workloads stand.
namespace berth::kueue {

void BackoffExpired(const Case& test);
void EntryOrdering(const Case& test);
void FirstPopped(const Case& test);
void IsOnHold(const Case& test);
void LostReservation(const Case& test);
void NeedsSecondPass(const Case& test);
void OneCondition(const Case& test);
void PriorityClassOfHolder(const Case& test);
void QuotaReservation(const Case& test);
void QueueOrderTimestamp(const Case& test);
void ReclaimedPods(const Case& test);
void RequeueState(const Case& test);
void SecondPassDue(const Case& test);

}  // namespace berth::kueue
