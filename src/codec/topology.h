#pragma once

#include <string>

#include "api/quota.h"

namespace berth::codec {

// The JSON of a topologyAssignment (kueue.x-k8s.io/v1beta2): columns of values, one a level, each a
// value that all domains have, or one of each with what they begin and end with in common written
// once; so an object holds as many domains as a scheduler has pods. Decoder::TopologyAssignment
// reads it back. REQUIRES: each domain has a value of each level. O(length of all values).
[[nodiscard]] std::string TopologyAssignmentText(const api::TopologyAssignment& assignment);

// The JSON of a placement; Decoder::Placement reads it back. Likewise.
[[nodiscard]] std::string PlacementText(const api::Placement& placement);

}  // namespace berth::codec
