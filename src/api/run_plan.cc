#include "api/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "api/duration.h"
#include "api/well_known.h"

namespace berth::api {
namespace {

constexpr int64_t kExitCodeMax = 255;

Result<Duration> DurationOf(const StringMap& annotations, std::string_view key) {
  const auto text = Find(annotations, key);
  if (!text.has_value()) return Duration{};
  Result<Duration> duration = ParseDuration(*text);
  if (!duration) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("annotation {}: {}", key, duration.error().message));
  }
  return duration;
}

// Numbers between commas. How many devices a node has is not known here.
bool IsDeviceList(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view number = text.substr(begin, end - begin);
    if (number.empty() || number.size() > 2 || !std::ranges::all_of(number, is_digit)) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

int64_t RunPlan::exit_code(int64_t restarts) const {
  if (exit_codes.empty()) return 0;
  const auto last = static_cast<int64_t>(exit_codes.size()) - 1;
  return exit_codes[static_cast<size_t>(std::clamp<int64_t>(restarts, 0, last))];
}

Result<RunPlan> RunPlanOf(const StringMap& annotations) {
  RunPlan plan;
  if (Find(annotations, kRunForAnnotation).has_value()) {
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
  const auto codes = Find(annotations, kExitCodeAnnotation);
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

std::vector<std::string> AnnotationWarnings(const StringMap& annotations) {
  constexpr std::string_view kPrefix = "berth.dev/";
  constexpr std::array<std::string_view, 5> kPlans = {kRunForAnnotation, kExitCodeAnnotation,
                                                      kStartAfterAnnotation, kReadyAfterAnnotation,
                                                      kStopAfterAnnotation};
  std::vector<std::string> warnings;
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(kPrefix)) continue;
    if (std::ranges::find(kPlans, key) != kPlans.end()) {
      // One at a time: each is told of.
      const Result<RunPlan> plan = RunPlanOf({{key, value}});
      if (!plan)
        warnings.push_back(fmt::format("metadata.annotations[{}]: the pod will fail: {}", key,
                                       plan.error().message));
    } else if (key == kGpuIndexAnnotation) {
      if (!IsDeviceList(value)) {
        warnings.push_back(fmt::format(
            "metadata.annotations[{}]: \"{}\" is no list of devices, as 0,3: it is ignored", key,
            value));
      }
    } else {
      warnings.push_back(
          fmt::format("metadata.annotations[{}]: berth knows no such annotation of pods", key));
    }
  }
  return warnings;
}

}  // namespace berth::api
