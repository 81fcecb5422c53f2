#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/field_error.h"
#include "api/quota.h"

// What the annotations of a pod template say of where its pods are to stand
// (https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/). Pure functions; no text that
// users send crashes them.
namespace berth::api {

// The annotations of the template of a Job that they are told of.
inline constexpr std::string_view kTemplateAnnotations = "spec.template.metadata.annotations";

// Nothing: they ask for no topology. Of annotations that CheckTopologyAnnotations refuses some of
// what they say.
[[nodiscard]] std::optional<TopologyRequest> TopologyRequestOf(const StringMap& annotations);

// What Kueue's webhook refuses: annotations that contradict each other, or can't be read. `count`:
// of the pods of the template.
[[nodiscard]] FieldErrors CheckTopologyAnnotations(const StringMap& annotations, int64_t count);

}  // namespace berth::api
