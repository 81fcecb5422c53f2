#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "controllers/objects.h"

// What workload controllers ask of sets of pods.
namespace berth::controllers {

// A pod with a place of its own that ended is not replaced sooner than so long after its creation:
// one that its node refuses would otherwise be made anew without rest.
inline constexpr Duration kEndedStays = Duration::Seconds(10);

// Whether the object is a pod, and not over.
[[nodiscard]] bool IsLivePod(const Objects& objects, Slot slot);

// Whether such a pod of the Job of that uid is there, known or not: one that it owns, or owned, as
// its label says. Cost: O(pods of the Job).
[[nodiscard]] bool HasLivePods(const Objects& objects, std::string_view namespace_name,
                               std::string_view job_uid);

// Whether an active pod counts as available: ready for at least `min_ready_seconds`.
[[nodiscard]] bool IsAvailable(const PodRef& pod, int64_t min_ready_seconds, Instant now);
// When a ready pod becomes available; Never() if it is not ready or is available already.
[[nodiscard]] Instant AvailableAt(const PodRef& pod, int64_t min_ready_seconds, Instant now);

// How many pods of the same purpose share a pod's node.
using CountOnNode = std::function<int64_t(std::string_view node)>;

// Puts the `count` active pods to the front who should go first when some must, in their order:
// unassigned, pending, not ready, of lower deletion cost, on a node with more of their kind, ready
// for less time, restarted more, younger. Times count by their magnitude, so that equals are spread
// (KEP-2185); then by uid. The order of the others is not specified.
// Cost: N + count log count. REQUIRES: 0 <= count <= N.
void SortForDeletion(std::vector<PodRef>& pods, int64_t count, const CountOnNode& count_on_node,
                     Instant now);

}  // namespace berth::controllers
