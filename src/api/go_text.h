#pragma once

#include <string>
#include <string_view>

#include "api/json.h"

namespace berth::api {

// Go's %v of a number that is not kept as an integer: no more digits than tell it apart, with an
// exponent where that is below -4 or above 5. REQUIRES: finite.
[[nodiscard]] std::string PrintGoNumber(double number);

// A document as Go's encoder of JSON has it, which escapes what HTML could take for its own.
// Members are in the order in which they stand.
[[nodiscard]] std::string PrintGoJson(const Json& value);

// What Go calls the type of a decoded value.
[[nodiscard]] std::string_view GoTypeOf(const Json& value);

}  // namespace berth::api
