#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::cli {

// The answer of /debug/why (control/debug.h) for people. Errors: an answer that is no 200, with the
// reason it gives, or no JSON.
Result<std::string> WhyText(int status, std::string_view body);

}  // namespace berth::cli
