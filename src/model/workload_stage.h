#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/time.h"

// The lifecycle of a workload as its object tells it: a total function of what is observed, so a
// relist that skips steps can't hurt. What is due is computed here at the moment of use, and
// nowhere remembered (https://github.com/kubernetes-sigs/kueue/issues/5561).
//
//              ┌────────────────── the job let go ─────────────────┐
//              v                                                   │
//           Pending ──> Reserved ──> Admitted ──> Evicted ─────────┘
//                          └──────────────────────> ^
//
//  Any of them jumps to any other when that is observed; to Finished, too. Nothing leaves Finished:
//  terminal is final.
namespace berth::model {

enum class EvictedFor : uint8_t {
  kNothing,  // It is not evicted.
  kOther,
  kPodsNotReady,  // They took too long.
  kCheck,         // An admission check asked for another try.
};

// What a Workload's object says of itself.
struct WorkloadStatus {
  Instant created;
  bool active = true;  // Its owner, or an administrator, wants it to run.
  bool finished = false;
  bool reserved = false;  // It has quota: QuotaReserved is True.
  Instant reserved_at;    // Since when; read while reserved.
  bool admitted = false;
  bool on_hold = false;  // QuotaReserved is False because its owner wants none of it.
  EvictedFor evicted_for = EvictedFor::kNothing;
  Instant evicted_at;
  bool held_back = false;          // Requeued is False: something has to happen first.
  Instant requeue_at;              // Zero: at once.
  bool checks_ready = false;       // It has admission checks, and all are ready.
  bool awaits_topology = false;    // Some of its pods are placed once they are.
  bool on_unhealthy_node = false;  // Some of its pods are placed on a node that is reported so.
  bool operator==(const WorkloadStatus&) const = default;
};

enum class WorkloadStage : uint8_t {
  kPending,
  kReserved,  // Has quota; checks, or a placement, are missing.
  kAdmitted,
  kEvicted,  // Told to go, and has its quota still.
  kFinished,
};
inline constexpr size_t kWorkloadStagesCount = 5;

[[nodiscard]] constexpr WorkloadStage StageOf(const WorkloadStatus& status) {
  if (status.finished) return WorkloadStage::kFinished;
  if (!status.reserved) return WorkloadStage::kPending;
  if (status.evicted_for != EvictedFor::kNothing) return WorkloadStage::kEvicted;
  return status.admitted ? WorkloadStage::kAdmitted : WorkloadStage::kReserved;
}

// Since when it was told to go; zero: it was not.
[[nodiscard]] constexpr Instant EvictedSince(const WorkloadStatus& status) {
  return StageOf(status) == WorkloadStage::kEvicted ? status.evicted_at : Instant{};
}

[[nodiscard]] constexpr bool MayJump(WorkloadStage from, WorkloadStage to) {
  return from != WorkloadStage::kFinished || to == WorkloadStage::kFinished;
}

// Whether it has quota and some of its pods are to be placed now, or elsewhere. That its checks
// became ready counts only until it is admitted: the placement comes with that.
[[nodiscard]] constexpr bool NeedsSecondPass(const WorkloadStatus& status) {
  switch (StageOf(status)) {
    case WorkloadStage::kReserved:
      return status.on_unhealthy_node || (status.checks_ready && status.awaits_topology);
    case WorkloadStage::kAdmitted:
      return status.on_unhealthy_node;
    case WorkloadStage::kPending:
    case WorkloadStage::kEvicted:
    case WorkloadStage::kFinished:
      break;
  }
  return false;
}

// Whether it may be tried, as far as its last eviction goes.
[[nodiscard]] constexpr bool BackoffIsOver(const WorkloadStatus& status, Instant now) {
  return !status.held_back && status.requeue_at <= now;
}

// Whether it stands in its queue's line to be tried.
[[nodiscard]] constexpr bool IsQueued(const WorkloadStatus& status, Instant now) {
  return StageOf(status) == WorkloadStage::kPending && status.active && !status.on_hold &&
         BackoffIsOver(status, now);
}

// Since when it waits, which is its age in the order of its queue. Evictions that are its own doing
// put it behind others; those whose pods were not ready in time only if `by_eviction`.
[[nodiscard]] constexpr Instant QueuedAt(const WorkloadStatus& status, bool by_eviction) {
  const bool counts = status.evicted_for == EvictedFor::kCheck ||
                      (status.evicted_for == EvictedFor::kPodsNotReady && by_eviction);
  return counts ? status.evicted_at : status.created;
}

[[nodiscard]] constexpr std::string_view ToString(WorkloadStage stage) {
  constexpr std::array<std::string_view, kWorkloadStagesCount> kNames = {
      "pending", "quotaReserved", "admitted", "evicted", "finished"};
  return kNames[static_cast<size_t>(stage)];
}

}  // namespace berth::model
