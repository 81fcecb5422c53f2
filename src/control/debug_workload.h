#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "model/state.h"

namespace berth::control {

class Scheduler;

// Why a Workload waits for quota, or what it has, for GET /debug/why?workload=NAMESPACE/NAME:
//   {"workload","uid","stage","localQueue","clusterQueue","priority","since","position",
//    "waitingCount","reason","message",
//    "lacks":[{"podSet","flavor","resource","more","level","levelKind","has","used","left",
//              "holders":[{"workload","amount","priority","leaves","promised"}],"holdersCount"}],
//    "nodeHolders","nodeHoldersCount" (control/debug_places.h),
//    "leaving":[{"workload","priority","told"}],
//    "holds":[{"podSet","flavor","flavorMissing","count","amounts":{RESOURCE:AMOUNT}}],
//    "places","placesCount","podsWaiting","placesLost" (control/debug_workload_pods.h),
//    "evictedFor","sparedUntil","evicted":{"reason","message","at","for"},"waitsFor","notBefore",
//    "jobGone","deletedAt","finalizers":[NAME],"podsLeft","clusterQueueMissing",
//    "finished":{"reason","message"},"notAdmitted":{"reason","message"},"reclaimable",
//    "readyBefore","refused":{"what","code","message","again"},
//    "checks":[{"name","state","message"}]}
// with the members that apply. `stage` is one of model::ToString(WorkloadStage), "reserving" while
// its reservation is under way, or "deleting" from `deletedAt` on. `jobGone`: it was left by a Job
// that was orphaned; `podsLeft`: of its Job, of either, those that are not over. `level` is the
// queue or cohort whose quota refuses, the lowest of those; `holders` are those that use most of
// it, or were promised it, at most kHoldersShown. `leaving` are evicted for it. `evicted` is why it
// was evicted last, until it gets quota again; `for` whom, where that one is still there.
// `sparedUntil`: the server refused that it is evicted, which is not tried before.
// `refused` is the last write of it that the server refused, and when it is tried again.
// `readyBefore` is when it is evicted if not all of its pods are ready. `checks` are those that it
// is to pass and that are not Ready, in the order of its status. `reclaimable` is how many of its
// pods have nothing to do any more. Nothing when the scheduler knows no such workload.
// O(workloads x their charges), of one that goes and the pods, of one that waits for nodes and
// their claims.
[[nodiscard]] std::optional<api::JsonObject> WhyWorkloadJson(const Scheduler& scheduler,
                                                             std::string_view key);

// Those that wait for quota and whose pods name the group of that key. O(workloads).
[[nodiscard]] std::vector<model::WorkloadId> WaitingOfGroup(const model::State& state,
                                                            std::string_view group);

// Why a Workload that waits stands in no line: "waitsFor" and "notBefore", as above. Empty: only
// the scheduler's own doing keeps it from being tried.
[[nodiscard]] api::JsonObject DelayJson(const Scheduler& scheduler, const model::Workload& row);

inline constexpr size_t kHoldersShown = 5;

}  // namespace berth::control
