#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of Deployments, ReplicaSets and Jobs.
namespace berth::api::rules {

// A number >= 0, or a percentage up to 100%.
void CheckCountOrShare(FieldErrors& errors, const Path& path, const Json& value);
void CheckDeployment(FieldErrors& errors, const Json& object);
void CheckDeploymentUpdate(FieldErrors& errors, const Json& old, const Json& object);
void CheckReplicaSet(FieldErrors& errors, const Json& object);
void CheckReplicaSetUpdate(FieldErrors& errors, const Json& old, const Json& object);
// The status of either.
void CheckReplicasStatus(FieldErrors& errors, const Json& old, const Json& object);
void CheckJob(FieldErrors& errors, const Json& object);
void CheckJobUpdate(FieldErrors& errors, const Json& old, const Json& object);
void CheckJobStatusUpdate(FieldErrors& errors, const Json& old, const Json& object);

}  // namespace berth::api::rules
