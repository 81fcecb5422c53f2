#pragma once

#include <string_view>

#include "base/time.h"
#include "controllers/collector.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// Workloads whose Job is gone. Deleted in the background or foreground, a Job takes its Workload
// along; deleted with --cascade=orphan it leaves both it and its pods behind:
//
//   admitted ──> its pods run on, it holds their quota ──> Finished, OwnerNotFound
//   deleted, by whomever ──> its pods run on, it holds their quota ──> gone
namespace berth::controllers {

// What is known once a read of a Workload's Job found none.
[[nodiscard]] std::string JobAbsence(const Write& read);

// A function of the Workloads for that Job (Objects::WorkloadsFor), its pods, and of what is known
// to be gone. That the Job isn't seen says nothing (https://github.com/kubernetes-sigs/kueue/
// issues/11010): it is read first. Quota is held while any of its pods is not over, unlike upstream
// (https://github.com/kubernetes-sigs/kueue/issues/1789), which gives it away under them. One that
// nothing owns, and that isn't called as the Job's is, was made by others and left alone, but for
// its end. `busy`: writes of the Job's controller are under way, so pods may be coming.
// REQUIRES: the Job is not seen. Cost: O(pods of the Job).
[[nodiscard]] Plan PlanLeftWorkloads(const Objects& objects, std::string_view job_uid,
                                     const Absences& absent, bool busy, Instant now);

}  // namespace berth::controllers
