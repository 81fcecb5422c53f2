#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/quota.h"
#include "api/workloads.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// Pods that are placed by topology
// (https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/): what a Job's annotations ask
// for, and how its pods come to their places. They are created gated, and each is let go with the
// labels of its domain as node selector:
//
//   pod: gated ──{nodeSelector, no gate: one patch fenced by uid and version}──> its domain's
namespace berth::controllers {

inline constexpr std::string_view kTopologyGate = "kueue.x-k8s.io/topology";

// The member "topologyRequest" of a pod set, with a comma before; empty for nothing.
[[nodiscard]] std::string TopologyRequestText(const std::optional<api::TopologyRequest>& request);

// Whether pods of the Workload, which is admitted, stand or are to stand on the node. The nodes of
// one that is not are looked at when it is.
[[nodiscard]] bool HasPlaceOn(const api::Workload& workload, std::string_view node);

// What was read since a version of the Workload was seen. Watches of kinds are not heard in the
// order of writes: who placed the Workload knew nodes, and who let pods go a version of the
// Workload, that we have yet to hear of. So that something is not seen says nothing before it was
// read, and such a read says nothing of a later version: names are given again.
struct ReadSince {
  std::string version;                // Of the Workload.
  bool workload = false;              // It was read itself.
  std::map<std::string, bool> nodes;  // By name: whether it is there.
};

struct UnhealthyNodes {
  std::vector<std::string> nodes;
  std::vector<std::string> unheard;  // To be read: whether they are there is not known.
};
// Of the nodes on which the Workload has places those that are gone, and those on which none of the
// pods goes on and that are not ready, or have a taint that a pod which waits does not tolerate, as
// one that is cordoned (K019): status.unhealthyNodes, sorted. A node that is not seen is
// gone if it was read, or if it is told that it is. One of which its kubelet is silent while pods
// run there is left alone, for they can't be told to be gone
// (https://github.com/kubernetes-sigs/kueue/pull/13043). `pods`: all of the Job, in any order;
// `read`: since this version.
[[nodiscard]] UnhealthyNodes UnhealthyNodesOf(const api::Workload& workload, const Objects& objects,
                                              const std::vector<PodRef>& pods,
                                              const ReadSince& read);
[[nodiscard]] std::string UnhealthyNodesText(const std::vector<std::string>& nodes);

// A function of the pods and of where the Workload says that they stand: those that are gated get
// the places that no pod has. A pod with an index, where no other has the same and none stands
// elsewhere, gets the place of its rank, that neighbours by rank be neighbours in the tree; else
// they get places in the order of indexes and names. None goes to a node that is unhealthy
// (https://github.com/kubernetes-sigs/kueue/issues/14099). `pods`: all of the Job, in any order.
//
// O(domains + pods x log pods).
[[nodiscard]] Writes LetIntoTopology(const api::TopologyAssignment& assignment,
                                     const std::vector<std::string>& unhealthy,
                                     std::vector<PodRef> pods);

// Pods that were let go, and whose domain is none of the assignment any more: its node failed, and
// is replaced. They could wait there for ever; or, where that node was well again when they came,
// run there while the place that was found instead is kept for nobody
// (https://github.com/kubernetes-sigs/kueue/issues/11858). So each is deleted, by uid and version,
// and the Job makes another. REQUIRES: the assignment is that of a Workload that was read since the
// pods were seen, if any is stranded: an older one knows nothing of where they were let go.
[[nodiscard]] Writes EndStranded(const api::TopologyAssignment& assignment,
                                 const std::vector<PodRef>& pods);

}  // namespace berth::controllers
