#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/result.h"
#include "base/time.h"

// What a simulated container does, told by its pod's annotations.
namespace berth::api {

// How long each run of a container takes, e.g. "90s" or "1h30m"; without it, until it is stopped.
inline constexpr std::string_view kRunForAnnotation = "berth.dev/run-for";
// The exit codes of the first run, the second and so on, e.g. "1,0"; the last one stands for all
// later runs. 0 without it.
inline constexpr std::string_view kExitCodeAnnotation = "berth.dev/exit-code";
// How long it takes from the pod's binding to the start of its containers, as when images are
// pulled; at once without it.
inline constexpr std::string_view kStartAfterAnnotation = "berth.dev/start-after";
// How long after its start a container becomes ready; at once without it.
inline constexpr std::string_view kReadyAfterAnnotation = "berth.dev/ready-after";
// How long its containers take to stop when the pod is deleted; the grace period ends them anyway.
inline constexpr std::string_view kStopAfterAnnotation = "berth.dev/stop-after";

struct RunPlan {
  std::optional<Duration> run_for;
  Duration start_after;
  Duration ready_after;
  Duration stop_after;
  std::vector<int64_t> exit_codes;

  // Of the run with so many restarts before it.
  [[nodiscard]] int64_t exit_code(int64_t restarts) const;
};

// Errors name the annotation and its value.
[[nodiscard]] Result<RunPlan> RunPlanOf(const StringMap& annotations);

// What is wrong with the annotations of a pod that are berth's: one that can't be read, or none
// that berth knows. Each names the annotation, by its path below `metadata`.
[[nodiscard]] std::vector<std::string> AnnotationWarnings(const StringMap& annotations);

}  // namespace berth::api
