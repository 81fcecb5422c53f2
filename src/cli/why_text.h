#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::cli {

// The answer of /debug/why (control/debug.h) for people. Errors: an answer that is no 200, with the
// reason it gives, or no JSON.
Result<std::string> WhyText(int status, std::string_view body);

// Whether a scheduler answered that it does not know the pod.
bool SaysUnknownPod(int status, std::string_view body);

// What is said of a pod, in JSON, that has finished: schedulers know of those no more. Empty when
// it has not, or is no pod.
std::string FinishedText(std::string_view pod);

}  // namespace berth::cli
