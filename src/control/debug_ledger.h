#pragma once

#include <optional>
#include <string_view>

#include "api/json.h"

namespace berth::control {

class Scheduler;

// What /debug/ledger answers: who holds what of which node and queue.
//
//   {"nodes":[NODE],"claims":COUNT}
// NODE: {"node","present","claims","resources":{RESOURCE:{"capacity","held","releasing","free"}}}
// In the order of names. O(nodes x resources).
[[nodiscard]] api::JsonObject LedgerJson(const Scheduler& scheduler);

// NODE with {"claimList":[CLAIM],"leftOut"}; nothing: the node is not known. O(its claims).
//   CLAIM: {"uid","pod" or "workload","state":"held"/"reserved"/"releasing","for","devices",
//           "count", RESOURCE: AMOUNT}
// `for`: whom what is releasing is promised to; `count`: of a claim on a queue, the pods that it is
// of, with the amounts of each.
[[nodiscard]] std::optional<api::JsonObject> LedgerOfNode(const Scheduler& scheduler,
                                                          std::string_view name);
// {"queue","accounts":[{"flavor","claimList":[CLAIM]}]}, of a ClusterQueue. O(its claims).
[[nodiscard]] std::optional<api::JsonObject> LedgerOfQueue(const Scheduler& scheduler,
                                                           std::string_view name);
// {"workload","uid","claimList":[CLAIM with "node", or "queue" and "flavor"]}, of NAMESPACE/NAME:
// its quota, and the places that none of its pods took yet. O(its claims).
[[nodiscard]] std::optional<api::JsonObject> LedgerOfWorkload(const Scheduler& scheduler,
                                                              std::string_view key);

}  // namespace berth::control
