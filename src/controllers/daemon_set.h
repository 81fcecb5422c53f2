#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/workloads.h"
#include "base/shared.h"
#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/pods.h"
#include "controllers/replica_set.h"
#include "controllers/revisions.h"
#include "controllers/write.h"

// Keeps one pod on each node that its template fits
// (https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/). A pod is bound to its
// node by node affinity to the node's name; the scheduler does the rest.
namespace berth::controllers {

struct DaemonSetFacts {
  const api::DaemonSet& set;
  const Head& head;
  const api::PodSpec& spec;             // What the template's pods ask for.
  std::vector<const api::Node*> nodes;  // Sorted by name.
  std::vector<PodRef> owned;            // In any order.
  std::vector<PodRef> orphans;          // Pods of its namespace without a controller.
  RevisionFacts revisions;
  std::optional<Trouble> trouble;
};

// A function of the facts.
[[nodiscard]] Plan PlanDaemonSet(const DaemonSetFacts& facts, Instant now);

// The node that a DaemonSet's pod is on or meant for; empty: none.
[[nodiscard]] std::string_view TargetOf(const PodRef& pod);

}  // namespace berth::controllers
