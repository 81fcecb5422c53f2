#pragma once

#include <string>

#include "api/validate_common.h"
#include "api/validate_volumes.h"

// Private to api/: the rules of pods and pod templates.
namespace berth::api::rules {

// A pod's spec. `is_template`: what only holds for pods is left out.
// `pod_name`: of a pod that is new.
void CheckPodSpec(FieldErrors& errors, const Path& path, const Json& spec, bool is_template,
                  std::string_view pod_name = {});
// The part of it that says where the pod goes.
void CheckPodScheduling(FieldErrors& errors, const Path& path, const Json& spec);
// Those of a pod's spec, or of what else has tolerations.
void CheckTolerations(FieldErrors& errors, const Path& owner, const Json& object);
// A node selector: terms that a node must match one of.
void CheckNodeSelector(FieldErrors& errors, const Path& path, const Json& selector);
// A template's labels, annotations and spec.
void CheckTemplate(FieldErrors& errors, const Path& path, const Json& pods);

void CheckPod(FieldErrors& errors, const Json& pod);
void CheckPodUpdate(FieldErrors& errors, const Json& old, const Json& pod);
void CheckPodStatusUpdate(FieldErrors& errors, const Json& old, const Json& pod);

// The members of two specs or containers that differ, for the user to see.
[[nodiscard]] std::string MemberDifferences(const Json& old, const Json& munged);

// A pod's containers, one by one (validate_container.cc).
void CheckContainers(FieldErrors& errors, const Path& spec_path, const Json& spec,
                     const PodVolumes& volumes);
void CheckEphemeralContainers(FieldErrors& errors, const Path& spec_path, const Json& spec,
                              const PodVolumes& volumes);
// What a pod takes beside its containers, of its own or of its RuntimeClass.
void CheckOverhead(FieldErrors& errors, const Path& path, const JsonObject& overhead);
// What of containers is checked of pods only, not of templates.
void CheckImages(FieldErrors& errors, const Path& spec_path, const Json& spec);
void CheckPodResources(FieldErrors& errors, const Path& spec_path, const Json& spec);

}  // namespace berth::api::rules
