#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::cli {

// The answer of /debug/why (control/debug.h) for people. Errors: an answer that is no 200, with the
// reason it gives, or no JSON.
Result<std::string> WhyText(int status, std::string_view body);

// The same of a PodGroup.
Result<std::string> WhyGroupText(int status, std::string_view body);

// Whether a scheduler answered that it does not know the pod.
bool SaysUnknownPod(int status, std::string_view body);

// What is said of a pod, in JSON, that has finished: schedulers know of those no more. Empty when
// it has not, or is no pod.
std::string FinishedText(std::string_view pod);

// The labels by which a Deployment, ReplicaSet or Job, in JSON, selects its pods, as a query has
// them. Empty when it has none.
std::string SelectorOf(std::string_view owner);

// A line that follows an error of `WhyText`: that `name` is no pod, but a `kind`, and which are its
// pods, of a list in JSON.
std::string OwnerText(std::string_view kind, std::string_view name, std::string_view pods);

}  // namespace berth::cli
