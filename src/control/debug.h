#pragma once

#include <string_view>

#include "env/http.h"

namespace berth::control {

class Scheduler;

// The content type of /metrics, and of nothing else.
inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4";
// Of /metrics/resources: who adds to /metrics by its type (cmd/debug_router.h) leaves it alone.
inline constexpr std::string_view kResourceMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// Answers GET /debug/why?pod=NAMESPACE/NAME, ?podgroup=NAMESPACE/NAME or ?workload=NAMESPACE/NAME
// (debug_workload.h), /debug/ledger, also of a ?node=NAME, ?queue=NAME or ?workload=NAMESPACE/NAME
// (debug_ledger.h), /debug/queues (debug_queues.h), /metrics, /metrics/resources
// (resource_metrics.h), /healthz, /livez and /readyz from the scheduler's state. Errors are
// metav1.Status documents.
//
// /debug/why:
//   {"pod","uid","stage","attempts","message","node","devices","score","feasibleNodes",
//    "nodeMissing","decidedHere","waitingAlike","wouldFit","notBefore","refusedCode",
//    "reasons":[{"kind","text","nodes","resource","deficit","unresolvable","unblock"}],
//    "preemption":{"bar"} or {"nodes","notHelpful","noVictims","reasons":[as above]},
//    "promise":{"node","reserves":{RESOURCE:AMOUNT},"text","devices",
//               "leaving":[{"pod","forIt","state","until"}]},
//    "lostPromise":{"node","kind","text"},
//    "heldBy":{"nodes","promises":[{"node","pod","until"}]},
//    "eviction":{"for","state","until"},"sparedUntil",
//    "mayEvict":{"nodes","pods":[{"priority","count"}],"amounts":{RESOURCE:AMOUNT},"text"},
//    "nodeHolders","nodeHoldersCount","queueHolders","queueHoldersCount" (debug_places.h)}
// of a podgroup:
//   {"podgroup","uid","phase","minMember","attempts","members":{KIND:COUNT},"wouldFit","message",
//    "note": a class that is missing, "workloads": whose pods are to come and that wait,
//    "needed","found","reasons","preemption","heldBy","mayEvict",
//    "nodeHolders","queueHolders" and their counts: as above,
//    "pods":[{"pod","state","node" or "promise","eviction"}]}
// with the members that apply; `stage` is one of model::ToString(PodStage), `state` "to be
// evicted", "leaving" or "overdue". Evaluated for the answer: O(nodes + claims).
[[nodiscard]] env::HttpResponse AnswerDebug(const Scheduler& scheduler,
                                            const env::HttpRequest& request);

}  // namespace berth::control
