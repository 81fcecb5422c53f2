#pragma once

#include <cstdint>

#include "api/validate_common.h"

// Private to api/: where a Workload's status says that its pods stand.
namespace berth::api::rules {

// How many pods of a set are to have places: those that it was given quota for, of which some may
// need nothing any more.
struct PodsToPlace {
  int64_t count = 0;
  int64_t reclaimable = 0;
};

// A topologyAssignment (kueue.x-k8s.io/v1beta2): no domain is told twice, and together they hold
// the pods. Upstream asks for neither; who reads an assignment of fewer pods lets the others in
// nowhere, and says so to nobody. O(domains x levels x log domains).
// REQUIRES: it is as the schema and its rules have it, so columns are as long as there are domains.
void CheckTopologyAssignment(FieldErrors& errors, const Path& path, const Json& assignment,
                             const PodsToPlace& pods);

}  // namespace berth::api::rules
