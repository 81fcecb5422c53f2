#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "env/http.h"
#include "sim/tamper.h"
#include "sim/truth.h"

// What those write of Workloads who run them, and who checks them, as functions of the objects: the
// small atomic models of controllers/ (workloads, topology). A `workload` is its document.
namespace berth::explore {

// The status that a Workload gets which is evicted and holds quota, once nothing of it runs: it
// gives that back. A merge patch. As controllers::PlanWorkload of a Job that has no pods.
[[nodiscard]] std::string ReleasedStatus(std::string_view workload, Instant now);
// The status of a Workload that waits, once it has quota for all of its pods and is admitted: where
// nobody schedules, who gives quota out is a function of the object. A merge patch. Nothing: it
// does not wait.
[[nodiscard]] std::optional<std::string> AdmittedStatus(std::string_view workload, Instant now);
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
// Nothing when it says so. By controllers::UnhealthyNodesOf.
[[nodiscard]] std::optional<std::string> UnhealthyStatus(const sim::Truth& truth,
                                                         std::string_view workload,
                                                         sim::Tampering planted = {});

// What is wrong with the nodes that it was told of: on one that is there a pod of it goes on
// (K022). `before`: its document until then.
[[nodiscard]] std::vector<std::string> ToldInVain(const sim::Truth& truth, std::string_view before,
                                                  std::string_view after);

// The pod that a Job makes next whose Workload that is: one for each of its count once it is
// admitted, gated where it is placed by topology. Its document; nothing when it has all, or may not
// run. `indexed`: they have completion indexes.
[[nodiscard]] std::optional<std::string> PodToMake(const sim::Truth& truth,
                                                   std::string_view workload, bool indexed = false);
// The keys of the pods that it made.
[[nodiscard]] std::vector<std::string> PodsOfJob(const sim::Truth& truth,
                                                 std::string_view workload);
// Whether it is admitted and yet one of its pods has no node.
[[nodiscard]] bool IsAdmittedInVain(const sim::Truth& truth, std::string_view workload);

// What its Job's controller writes next of its pods that are placed by a topology, each fenced by
// what it was decided on: those that are let in, and those that wait for a place that is none any
// more. By controllers/topology.h.
[[nodiscard]] std::vector<env::HttpRequest> TopologyWrites(const sim::Truth& truth,
                                                           std::string_view workload,
                                                           sim::Tampering planted = {});

// What is wrong with what is written of its pods, when it is decided: one is ended that was not let
// in yet, or stands where it has a place (K028), or is let onto a node that failed (K010).
[[nodiscard]] std::vector<std::string> WrittenInVain(const sim::Truth& truth,
                                                     std::string_view workload,
                                                     const std::vector<env::HttpRequest>& requests);

// Of its pods those that stand on a node where it has no place for them (I6 of the reference).
[[nodiscard]] std::vector<std::string> PodsBesidePlaces(const sim::Truth& truth,
                                                        std::string_view workload);

}  // namespace berth::explore
