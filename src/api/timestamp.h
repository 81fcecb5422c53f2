#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

// The times of Kubernetes objects: metav1.Time (whole seconds) and metav1.MicroTime, RFC 3339 in
// UTC. Pure functions.
namespace berth::api {

// RFC 3339 with any zone offset and fraction, years 1 to 9999 as far as an Instant reaches (1678 to
// 2261, clamped). Errors are worded as Go's time.Parse words them.
[[nodiscard]] Result<Instant> ParseTimestamp(std::string_view text);

// The same of a MicroTime, which has six digits behind its seconds.
[[nodiscard]] Result<Instant> ParseMicroTime(std::string_view text);

// "2026-01-02T03:04:05Z", cut to seconds.
[[nodiscard]] std::string PrintTimestamp(Instant time);
// "2026-01-02T03:04:05.000000Z", cut to microseconds.
[[nodiscard]] std::string PrintMicroTime(Instant time);

// How kubectl's columns print an age: "5s", "2m13s", "3h5m", "2d4h", "40d", "2y35d". Negative
// beyond a second: "<invalid>".
[[nodiscard]] std::string HumanDuration(Duration age);

}  // namespace berth::api
