#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "api/workloads.h"
#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/pods.h"
#include "controllers/replica_set.h"
#include "controllers/revisions.h"
#include "controllers/write.h"

// Keeps pods that have names of their own, web-0 to web-(n-1), and claims of their own for storage
// (https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/).
//
//   web-0 absent --create--> pending --> available: web-1's turn (OrderedReady) ... all are there:
//   the highest that is of another revision, down to the partition, is deleted and made anew.
namespace berth::controllers {

inline constexpr std::string_view kRevisionHashLabel = "controller-revision-hash";
inline constexpr std::string_view kPodNameLabel = "statefulset.kubernetes.io/pod-name";
inline constexpr std::string_view kPodIndexLabel = "apps.kubernetes.io/pod-index";

struct StatefulSetFacts {
  const api::StatefulSet& set;
  const Head& head;
  std::vector<PodRef> owned;    // In any order.
  std::vector<PodRef> orphans;  // Pods of its namespace without a controller.
  RevisionFacts revisions;
  // Whether a pod of its namespace that isn't its own is called so.
  std::function<bool(std::string_view name)> taken;
  // The PersistentVolumeClaim of its namespace that is called so, or nullptr.
  std::function<const Head*(std::string_view name)> claim;
  std::optional<Trouble> trouble;
};

// A function of the facts. A pod's claims are made before it, or with it; what a pod waits for its
// claims is the scheduler's business. While it takes one pod after another, one that never comes up
// holds the next ones, as it does upstream.
[[nodiscard]] Plan PlanStatefulSet(const StatefulSetFacts& facts, Instant now);

// N of a pod called `<set>-N`; nothing: its name is another.
[[nodiscard]] std::optional<int64_t> OrdinalOf(std::string_view set, std::string_view pod);

}  // namespace berth::controllers
