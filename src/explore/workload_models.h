#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "sim/truth.h"

// What those write of Workloads who run them, and who checks them, as functions of the objects: the
// small atomic models of controllers/ (workloads, topology). A `workload` is its document.
namespace berth::explore {

// The status that a Workload gets which is evicted and holds quota, once nothing of it runs: it
// gives that back. A merge patch. As controllers::PlanWorkload of a Job that has no pods.
[[nodiscard]] std::string ReleasedStatus(std::string_view workload, Instant now);
// The status with the condition, which is true where it says nothing else. A merge patch. Nothing:
// it says that there is no quota, and there is.
[[nodiscard]] std::optional<std::string> ToldStatus(std::string_view workload,
                                                    std::string_view condition, Instant now);
// Whether it is evicted and holds quota yet.
[[nodiscard]] bool HasToLetGo(std::string_view workload);

// The status with another state of one of its checks, as who does the check says it: `check` is
// {"name","state"}. Nothing: it has no such check.
[[nodiscard]] std::optional<std::string> AnsweredStatus(std::string_view workload,
                                                        std::string_view check, Instant now);

// The status.unhealthyNodes that it is to have, as a merge patch: of the nodes on which it has
// places those that are gone, and those that are not ready while none of its pods goes on there.
// Nothing when it says so. As controllers::UnhealthyNodesOf.
[[nodiscard]] std::optional<std::string> UnhealthyStatus(const sim::Truth& truth,
                                                         std::string_view workload);

// The pod that a Job makes next whose Workload that is: one for each of its count once it is
// admitted, gated where it is placed by topology. Its document; nothing when it has all, or may not
// run.
[[nodiscard]] std::optional<std::string> PodToMake(const sim::Truth& truth,
                                                   std::string_view workload);
// The keys of the pods that it made.
[[nodiscard]] std::vector<std::string> PodsOfJob(const sim::Truth& truth,
                                                 std::string_view workload);
// Whether it is admitted and yet one of its pods has no node.
[[nodiscard]] bool IsAdmittedInVain(const sim::Truth& truth, std::string_view workload);

// The next of its pods that is let into its topology.
struct LetIn {
  std::string key;   // Of the pod.
  std::string body;  // A merge patch: it gets the labels of its place, and loses its gate.
};
// Nothing: none is gated, or no place is left that is none of a node that is unhealthy. As
// controllers::LetIntoTopology of pods without an index.
[[nodiscard]] std::optional<LetIn> PodToLetIn(const sim::Truth& truth, std::string_view workload);

}  // namespace berth::explore
