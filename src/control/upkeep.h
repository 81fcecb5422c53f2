#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/quota.h"
#include "base/time.h"

// What is due of a Workload whatever the scheduler decides: admission checks, the end of an
// admission by whoever stopped a queue, deactivated the workload or rejected it, and its return.
// All of it follows from the objects at the moment of use; nothing is remembered
// (docs/design/0011-quota.md). Conditions have Kueue's reasons and words. Pure functions;
// O(checks x flavors + conditions).
namespace berth::control {

// What a ClusterQueue asks of the workloads that hold its quota.
struct QueueRules {
  std::vector<api::RequiredCheck> checks;
  std::vector<std::string> flavors;  // Of its quota.
  bool drains = false;               // stopPolicy HoldAndDrain.
  bool operator==(const QueueRules&) const = default;
};
[[nodiscard]] QueueRules RulesOf(const api::ClusterQueue& queue);

// Which checks a workload is to pass with that admission, in the queue's order; without one, those
// that are for all flavors of the queue.
[[nodiscard]] std::vector<std::string> ChecksFor(const QueueRules& rules,
                                                 const api::Admission* admission);

// Whether nothing more is to be checked of a workload that gets the admission: it has all checks
// that it is to pass, and says of all that it has that they are Ready.
[[nodiscard]] bool ChecksAreReady(const api::Workload& workload, const api::Admission& admission,
                                  const QueueRules& rules);

// When a workload may be tried again, as those of its checks say that ask for it; the latest.
[[nodiscard]] std::optional<Instant> RetryAt(std::span<const api::CheckState> checks);

// status.requeueState: until when a workload is not tried, and how often it was held back.
struct RequeueState {
  std::optional<Instant> requeue_at;
  int64_t count = 0;
};
// What it becomes when the workload is not to be tried before that. It never becomes sooner.
[[nodiscard]] RequeueState RequeueAfter(const api::Workload& workload, Instant at, bool counts);

// For how long pods of an admitted workload may not be ready: waitForPodsReady of Kueue's
// configuration, with its defaults.
struct PodsReadyRules {
  Duration timeout = Duration::Minutes(30);           // Since it was admitted;
  Duration recovery_timeout = Duration::Minutes(30);  // Since the first that was ready is lost.
  // Whether one that was evicted for that stands in its queue behind those that came meanwhile.
  bool requeues_by_eviction = true;
  // Before it is tried again: the base, doubled each time, the most at most.
  Duration backoff_base = Duration::Seconds(60);
  Duration backoff_most = Duration::Seconds(3600);
  std::optional<int64_t> backoffs_max;  // Then it is deactivated; nothing: never.
  bool operator==(const PodsReadyRules&) const = default;
};
// The wait before the try after so many evictions, which is above 0.
[[nodiscard]] Duration BackoffOf(const PodsReadyRules& rules, int64_t evictions);

// The queues of a workload.
struct QueuesOf {
  const QueueRules* cluster_queue = nullptr;  // Of its admission, else that it waits in.
  bool local_queue_drains = false;
  // It is admitted by who decides of its places: they are missing, or are to be found there still.
  bool lacks_places = false;
  // Why nobody decides where its pods go that await that; empty: that is not told.
  std::string_view held_up = {};
  bool awaits_mates = false;                   // Likewise: others are to be admitted with it.
  const PodsReadyRules* pods_ready = nullptr;  // Null: its pods need not be.
};

enum class Due : uint8_t {
  kNothing,
  kReject,      // A check rejected it: it is marked to be deactivated.
  kDeactivate,  // It is: spec.active becomes false.
  kEvict,       // It holds quota, and is to give it back.
  kChecks,      // Its list of checks becomes that of its admission.
  kAdmit,    // It may run now, or may not any more. Not where it lacks places: those come with it.
  kReset,    // It holds nothing and wants none: what was said of its last try is over.
  kRequeue,  // What kept it from being tried is over.
  kExpire,   // It was admitted for as long as it may be: as kReject.
  // Its pods are not ready in time: it is evicted, and tried again later; or, where it was so often
  // enough, as kReject.
  kNotReady,
};
struct Upkeep {
  Due due = Due::kNothing;
  Instant at;  // Not before that.
};
[[nodiscard]] Upkeep UpkeepOf(const api::Workload& workload, const QueuesOf& queues);
// When it was admitted for as long as it may be (spec.maximumExecutionTimeSeconds), and kExpire is
// due; nothing: it may be for ever, or isn't.
[[nodiscard]] std::optional<Instant> ExpiresAt(const api::Workload& workload);
// When all of its pods are to be ready, and kNotReady is due if they aren't; nothing: they are, or
// need not be. A workload of which nobody tells has none that are (K065 of Kueue's cases).
[[nodiscard]] std::optional<Instant> ReadyBefore(const api::Workload& workload,
                                                 const PodsReadyRules& rules);
// Which of the two is due next, and when; kNothing: neither.
[[nodiscard]] Upkeep TimeLimitOf(const api::Workload& workload, const QueuesOf& queues);
// What it comes to: the members of a merge patch of its status; of kDeactivate, of its spec.
// REQUIRES: that is due; of kNotReady, `queues.pods_ready`.
[[nodiscard]] std::string UpkeepBody(Due due, const api::Workload& workload, const QueuesOf& queues,
                                     Instant now);

}  // namespace berth::control
