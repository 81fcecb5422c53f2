#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::cli {

// The answer of /debug/queues (control/debug_queues.h) for people, as a tree; with a name the queue
// or cohort of that name and all below it. Errors: an answer that is no 200, with the reason it
// gives, or no JSON; a name that is not there.
Result<std::string> QueueText(int status, std::string_view body, std::string_view name);

}  // namespace berth::cli
