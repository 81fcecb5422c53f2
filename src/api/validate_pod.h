#pragma once

#include <string>

#include "api/validate_common.h"

// Private to api/: the rules of pods and pod templates.
namespace berth::api::rules {

// A pod's spec. `is_template`: what only holds for pods is left out.
void CheckPodSpec(FieldErrors& errors, const Path& path, const Json& spec, bool is_template);
// The part of it that says where the pod goes.
void CheckPodScheduling(FieldErrors& errors, const Path& path, const Json& spec);
// A template's labels, annotations and spec.
void CheckTemplate(FieldErrors& errors, const Path& path, const Json& pods);

void CheckPod(FieldErrors& errors, const Json& pod);
void CheckPodUpdate(FieldErrors& errors, const Json& old, const Json& pod);
void CheckPodStatusUpdate(FieldErrors& errors, const Json& old, const Json& pod);

// The members of two specs or containers that differ, for the user to see.
[[nodiscard]] std::string MemberDifferences(const Json& old, const Json& munged);

// A pod's containers, one by one (validate_container.cc).
struct PodNames {
  const Json& spec;
  bool is_template = false;
};
void CheckContainers(FieldErrors& errors, const Path& spec_path, const PodNames& pod);
void CheckEphemeralContainers(FieldErrors& errors, const Path& spec_path, const Json& spec);
void CheckPodResources(FieldErrors& errors, const Path& spec_path, const Json& spec);

}  // namespace berth::api::rules
