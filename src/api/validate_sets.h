#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of ReplicationControllers, StatefulSets, DaemonSets, their
// ControllerRevisions, and CronJobs. `old` is nullptr for a creation.
namespace berth::api::rules {

void CheckReplicationController(FieldErrors& errors, const Json* old, const Json& object);
void CheckStatefulSet(FieldErrors& errors, const Json* old, const Json& object);
void CheckDaemonSet(FieldErrors& errors, const Json* old, const Json& object);
void CheckControllerRevision(FieldErrors& errors, const Json* old, const Json& object);
void CheckCronJob(FieldErrors& errors, const Json* old, const Json& object);

void CheckReplicationControllerStatus(FieldErrors& errors, const Json& old, const Json& object);
void CheckStatefulSetStatus(FieldErrors& errors, const Json& old, const Json& object);
void CheckDaemonSetStatus(FieldErrors& errors, const Json& old, const Json& object);

}  // namespace berth::api::rules
