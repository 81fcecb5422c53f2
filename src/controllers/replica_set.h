#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/workloads.h"
#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/pods.h"
#include "controllers/write.h"

// Keeps as many pods of a template as a ReplicaSet or ReplicationController asks for
// (https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/).
namespace berth::controllers {

// The last refusal of a write for an owner, kept until one is accepted.
struct Trouble {
  std::string reason;  // e.g. "FailedCreate".
  std::string message;
};

struct ReplicaSetFacts {
  const api::ReplicaSet& set;
  const Head& head;
  std::vector<PodRef> owned;    // Pods whose controller it is, in any order.
  std::vector<PodRef> orphans;  // Pods of its namespace without a controller.
  CountOnNode count_on_node;    // Of the pods of all ReplicaSets of its Deployment.
  std::optional<Trouble> trouble;
};

// At most so many pods are created or deleted before the result is looked at; one while the server
// refuses them.
inline constexpr int64_t kPodsBurst = 500;

// A function of the facts. Adopts and releases first; then creates or deletes; the status says what
// was found, and is left to the next look when pods were created or deleted, unless there is
// trouble.
[[nodiscard]] Plan PlanReplicaSet(const ReplicaSetFacts& facts, Instant now);

// Whose pods are claimed.
struct Claimant {
  const api::LabelSelector& selector;
  const Head& owner;
  bool active_only = false;         // Pods that are over are left to nobody.
  std::string_view finalizer = {};  // Its pods have it.
};

// Adopts matching orphans and releases pods that no longer match: the writes for it, and the pods
// that belong to the owner after them. An owner that is being deleted adopts nothing.
[[nodiscard]] std::vector<PodRef> ClaimPods(const Claimant& who, const std::vector<PodRef>& owned,
                                            const std::vector<PodRef>& orphans, Writes& writes);

}  // namespace berth::controllers
