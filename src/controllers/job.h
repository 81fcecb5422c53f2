#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/workloads.h"
#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/pods.h"
#include "controllers/replica_set.h"
#include "controllers/write.h"

// Runs pods to completion (https://kubernetes.io/docs/concepts/workloads/controllers/job/).
//
//   running --enough succeeded--> SuccessCriteriaMet --all pods ended and counted--> Complete
//      |  ^
//      |  +--resume-- Suspended
//      +--too many failed, deadline--> FailureTarget --all pods ended and counted--> Failed
//
// Each pod is counted exactly once: it keeps the finalizer job-tracking until its uid stands in
// status.uncountedTerminatedPods, and its uid moves into the count when the finalizer is gone.
namespace berth::controllers {

inline constexpr std::string_view kTrackingFinalizer = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kCompletionIndexKey = "batch.kubernetes.io/job-completion-index";

struct JobFacts {
  const api::Job& job;
  const Head& head;
  std::vector<PodRef> owned;  // Sorted by name: a status names some of them at a time.
  std::vector<PodRef> orphans;
  std::optional<Trouble> trouble;
  bool held = false;  // It has a queue that did not let it run: no pod is made.
};

// A Job's failures since its last success, each of which doubles how long its next pod waits.
struct FailureRecord {
  int64_t failures = 0;
  Instant last;         // When the last of them ended.
  int64_t counted = 0;  // Failures of the Job in all when this was written down.
  bool operator==(const FailureRecord&) const = default;
};

// A function of the facts and of what is remembered, which it brings up to date: pods that failed
// may be gone while the next one waits. Of nothing remembered it goes by the pods that are there.
[[nodiscard]] Plan PlanJob(const JobFacts& facts, Instant now,
                           std::optional<FailureRecord>& remembered);
[[nodiscard]] Plan PlanJob(const JobFacts& facts, Instant now);

// Lets a pod go that no Job counts any more.
[[nodiscard]] Write WithoutTracking(const Head& pod);

}  // namespace berth::controllers
