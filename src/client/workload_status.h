#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/quota.h"
#include "base/time.h"

// Members of merge patches of a Workload's status that not only one of its writers says. Pure
// functions; O(checks).
namespace berth::client {

// A counter of an object, which has 32 bits there: the last it can tell stays, and none is below 0.
[[nodiscard]] int64_t OneMore(int64_t count);

// `"admissionChecks":[...]`.
[[nodiscard]] std::string ChecksText(std::span<const api::CheckState> checks);

// Of who is evicted, besides its conditions, each with a comma before it: its checks begin anew, so
// that no answer of before counts for other places (K106 of Kueue's cases), and of nodes that
// failed nothing is to be done any more. Empty: there is neither.
[[nodiscard]] std::string ResetOfEvicted(const api::Workload& workload, Instant now);

// Of who is admitted no more, with a comma before it: how long it was altogether. Where it has no
// limit for that nothing is told: empty. One whose limit was reached begins anew.
inline constexpr std::string_view kExecutionExceeded = "MaximumExecutionTimeExceeded";
[[nodiscard]] std::string ExecutionText(const api::Workload& workload, Instant now);

}  // namespace berth::client
