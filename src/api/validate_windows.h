#pragma once

#include "api/field_error.h"
#include "api/json.h"
#include "api/validate_common.h"

// Private to api/: what pods for Windows may say, and others may not. Upstream's rules:
// pkg/apis/core/validation.
namespace berth::api::rules {

// securityContext.windowsOptions of a pod or container.
void CheckWindowsOptions(FieldErrors& errors, const Path& security_path, const Json& security);
// Containers that are processes of the node.
void CheckHostProcesses(FieldErrors& errors, const Path& spec_path, const Json& spec);
// A pod that says that it is for Windows.
void CheckWindowsPod(FieldErrors& errors, const Path& spec_path, const Json& spec);

}  // namespace berth::api::rules
