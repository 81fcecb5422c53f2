#pragma once

#include "api/validate_common.h"

// Private to api/: what a pod and its containers may do on their node, and the names they know.
namespace berth::api::rules {

void CheckPodSecurity(FieldErrors& errors, const Path& spec_path, const Json& spec);
// `host_users`: the pod's users are the node's.
void CheckContainerSecurity(FieldErrors& errors, const Path& container, const Json& body,
                            bool host_users);
// Whether the users of a pod are the node's.
[[nodiscard]] bool HasHostUsers(const Json& spec);
// What doesn't go with users of its own.
void CheckOwnUsers(FieldErrors& errors, const Path& spec_path, const Json& spec);

void CheckDns(FieldErrors& errors, const Path& spec_path, const Json& spec);
void CheckHostAliases(FieldErrors& errors, const Path& spec_path, const Json& spec);
void CheckHostnameOverride(FieldErrors& errors, const Path& spec_path, const Json& spec);
void CheckSystem(FieldErrors& errors, const Path& spec_path, const Json& spec);

}  // namespace berth::api::rules
