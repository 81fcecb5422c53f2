#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of Deployments, ReplicaSets and Jobs, and what others take of them.
namespace berth::api::rules {

// A number >= 0, or a percentage up to 100%.
void CheckCountOrShare(FieldErrors& errors, const Path& path, const Json& value);
// A number >= 0, or a percentage.
void CheckCountOrPercent(FieldErrors& errors, const Path& path, const Json& value);
// A percentage is at most 100%.
void CheckShare(FieldErrors& errors, const Path& path, const Json& value);
// Nothing that is a number or percentage counts as zero, too.
[[nodiscard]] bool IsZeroCount(const Json& value);
// Pods of the template are restarted always, and have no deadline. `kind` in messages.
void CheckAlwaysRestarted(FieldErrors& errors, const Path& pods_path, const Json& pods,
                          std::string_view kind);
// Labels of the template that the selector doesn't select.
void AddMismatch(FieldErrors& errors, const Path& pods_path, const Json& pods);
// A domain, a slash and a path: "acme.io/foo".
void CheckDomainPath(FieldErrors& errors, const Path& path, std::string_view text);
// The spec of a Job but its selector: that of a CronJob's is made by the server.
void CheckJobTemplateSpec(FieldErrors& errors, const Path& path, const Json& spec);
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
