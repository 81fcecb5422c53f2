#include "nodes/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "api/duration.h"

namespace berth::nodes {
namespace {

constexpr int64_t kExitCodeMax = 255;

Result<Duration> DurationOf(const api::StringMap& annotations, std::string_view key) {
  const auto text = api::Find(annotations, key);
  if (!text.has_value()) return Duration{};
  Result<Duration> duration = api::ParseDuration(*text);
  if (!duration) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("annotation {}: {}", key, duration.error().message));
  }
  return duration;
}

}  // namespace

int64_t RunPlan::exit_code(int64_t restarts) const {
  if (exit_codes.empty()) return 0;
  const auto last = static_cast<int64_t>(exit_codes.size()) - 1;
  return exit_codes[static_cast<size_t>(std::clamp<int64_t>(restarts, 0, last))];
}

Result<RunPlan> RunPlanOf(const api::StringMap& annotations) {
  RunPlan plan;
  if (api::Find(annotations, kRunForAnnotation).has_value()) {
    const Result<Duration> run_for = DurationOf(annotations, kRunForAnnotation);
    if (!run_for) return std::unexpected(run_for.error());
    plan.run_for = *run_for;
  }
  const Result<Duration> start_after = DurationOf(annotations, kStartAfterAnnotation);
  if (!start_after) return std::unexpected(start_after.error());
  plan.start_after = *start_after;
  const Result<Duration> ready_after = DurationOf(annotations, kReadyAfterAnnotation);
  if (!ready_after) return std::unexpected(ready_after.error());
  plan.ready_after = *ready_after;
  const Result<Duration> stop_after = DurationOf(annotations, kStopAfterAnnotation);
  if (!stop_after) return std::unexpected(stop_after.error());
  plan.stop_after = *stop_after;
  const auto codes = api::Find(annotations, kExitCodeAnnotation);
  for (std::string_view rest = codes.value_or(""); codes.has_value();) {
    const size_t comma = rest.find(',');
    const std::string_view text = rest.substr(0, comma);
    int64_t code = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
    if (error != std::errc() || end != text.data() + text.size() || code < 0 ||
        code > kExitCodeMax) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("annotation {}: \"{}\" is no exit code between 0 and {}",
                              kExitCodeAnnotation, text, kExitCodeMax));
    }
    plan.exit_codes.push_back(code);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return plan;
}

}  // namespace berth::nodes
