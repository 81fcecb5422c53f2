#pragma once

#include "api/json.h"
#include "api/kinds.h"

// Private to api/: the defaults of kinds, by what they are for. Each does nothing for the kinds of
// the others.
namespace berth::api {

// What makes pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, Jobs
// and CronJobs.
void DefaultWorkload(KindId kind, JsonObject& object);
// Services, their endpoints, NetworkPolicies.
void DefaultService(KindId kind, JsonObject& object);
// Volumes, claims, their classes and drivers.
void DefaultStorage(KindId kind, JsonObject& object);
// Bindings of roles, limits, webhooks, definitions of custom kinds.
void DefaultPolicy(KindId kind, JsonObject& object);

// A claim as it stands in a StatefulSet's templates too.
void DefaultClaim(JsonObject& claim);

}  // namespace berth::api
