#pragma once

#include "api/validate_common.h"

// Private to api/: a container's variables, and what it is told of its pod.
namespace berth::api::rules {

// env and envFrom of a container.
void CheckVariables(FieldErrors& errors, const Path& container, const Json& body);
// A file of a downwardAPI volume; `path` is the volume's, as upstream names it.
void CheckDownwardFile(FieldErrors& errors, const Path& path, const Json& file);
// The volumes that variables are read from.
void CheckVariableVolumes(FieldErrors& errors, const Path& spec_path, const Json& spec);

}  // namespace berth::api::rules
