#pragma once

#include <string>
#include <string_view>

#include "api/json.h"
#include "base/result.h"

namespace berth::cli {

// The answer of /debug/why about a Workload (control/debug_workload.h) for people. Errors: an
// answer that is no 200, with the reason it gives, or no JSON.
Result<std::string> WhyWorkloadText(int status, std::string_view body);

// Why one that waits is not tried, as /debug tells of it; empty: that is not so.
std::string DelayText(const api::JsonObject& object);

// Of a Workload in JSON that the scheduler does not know: what it said when it turned it away;
// empty where it said nothing.
std::string RefusedWorkloadText(std::string_view workload);

// metadata.uid of an object in JSON; empty when it has none.
std::string UidOf(std::string_view object);
// The name of the first object of a list in JSON; empty when there is none.
std::string FirstNameOf(std::string_view list);

}  // namespace berth::cli
