#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::cli {

// The answer of /debug/why (control/debug.h) for people. Errors: an answer that is no 200, with the
// reason it gives, or no JSON.
Result<std::string> WhyText(int status, std::string_view body);

// For one part of a URL's query: all but unreserved characters (RFC 3986 section 2.3) become %XX.
std::string PercentEncode(std::string_view text);

}  // namespace berth::cli
