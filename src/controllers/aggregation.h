#pragma once

#include "controllers/objects.h"
#include "controllers/write.h"

// ClusterRoles that are the sum of others
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles).
namespace berth::controllers {

// Gives a ClusterRole that aggregates the rules of those that its selectors choose, each rule once,
// in order of the selectors and of the roles' names. Nothing for one that has them, or aggregates
// nothing. Source: k8s.io/kubernetes pkg/controller/clusterroleaggregation.
[[nodiscard]] Plan PlanAggregation(const Objects& objects, Slot slot);

}  // namespace berth::controllers
