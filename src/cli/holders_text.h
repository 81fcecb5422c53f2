#pragma once

#include <string>
#include <string_view>

#include "api/json.h"

namespace berth::cli {

// Who has what somebody waits for (control/debug_places.h), a line each; empty for nobody. `name`:
// of the object's member.
std::string HoldersText(const api::JsonObject& object, std::string_view name);

// The same of nodes, with what they are. `whose`: "its pods".
std::string NodeHoldersText(const api::JsonObject& object, std::string_view whose);

// "1 cpu, 2Gi memory", of the member `amounts`.
std::string AmountsOf(const api::JsonObject& object);

}  // namespace berth::cli
