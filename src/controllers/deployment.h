#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/workloads.h"
#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// Rolls pods from one template to the next by scaling ReplicaSets
// (https://kubernetes.io/docs/concepts/workloads/controllers/deployment/).
//
//   no ReplicaSet of the template --create--> progressing --all updated and available--> complete
//                                                 |  ^
//                                    deadline     v  | progress
//                                            timed out
namespace berth::controllers {

struct OwnedSet {
  const Head* head = nullptr;
  const api::ReplicaSet* set = nullptr;
  int64_t pods_not_over = 0;  // Its pods that are neither Succeeded nor Failed.
};

struct DeploymentFacts {
  const api::Deployment& deployment;
  const Head& head;
  std::vector<OwnedSet> owned;         // ReplicaSets whose controller it is.
  std::vector<OwnedSet> orphans;       // ReplicaSets of its namespace without a controller.
  std::optional<std::string> trouble;  // Message of the server, when it refuses a new ReplicaSet.
  // The name that a new ReplicaSet would have is another's.
  bool name_taken = false;
};

// A function of the facts. Every write to a ReplicaSet is fenced by the version that is seen.
[[nodiscard]] Plan PlanDeployment(const DeploymentFacts& facts, Instant now);

// The name of the ReplicaSet for the Deployment's template.
[[nodiscard]] std::string PodTemplateHash(const api::Deployment& deployment);

// maxSurge and maxUnavailable in pods; of both zero, one may be unavailable.
struct Fenceposts {
  int64_t surge = 0;
  int64_t unavailable = 0;
};
[[nodiscard]] Fenceposts FencepostsOf(const api::Deployment& deployment);

inline constexpr std::string_view kPodTemplateHash = "pod-template-hash";
inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistory = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesiredReplicas = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxReplicas = "deployment.kubernetes.io/max-replicas";

}  // namespace berth::controllers
