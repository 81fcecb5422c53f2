#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace berth::api {

// Reads a duration as Go writes it: "1h2m3.5s", "250ms", "0". Not negative, at most 290 years.
[[nodiscard]] Result<Duration> ParseDuration(std::string_view text);

// What Go has against a text as a duration, which may have a sign, in its words:
// `time: missing unit in duration "5"`. Empty: nothing.
[[nodiscard]] std::string GoDurationProblem(std::string_view text);

}  // namespace berth::api
