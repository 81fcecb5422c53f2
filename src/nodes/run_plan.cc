#include "nodes/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace berth::nodes {
namespace {

constexpr int64_t kExitCodeMax = 255;

// The nanoseconds of a unit, or 0.
int64_t UnitOf(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "\xc2\xb5s") return 1'000;
  if (unit == "ms") return 1'000'000;
  if (unit == "s") return 1'000'000'000;
  if (unit == "m") return 60'000'000'000;
  if (unit == "h") return 3'600'000'000'000;
  return 0;
}

std::string_view TakeWhile(std::string_view& text, bool (*keep)(char)) {
  const auto end = std::ranges::find_if_not(text, keep);
  const std::string_view taken = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(taken.size());
  return taken;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUnit(char c) { return !IsDigit(c) && c != '.'; }

// One "12.5s" of a duration; nothing when it is malformed or too large.
std::optional<int64_t> TakeTerm(std::string_view& text) {
  const std::string_view whole = TakeWhile(text, IsDigit);
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = TakeWhile(text, IsDigit);
  }
  const int64_t unit = UnitOf(TakeWhile(text, IsUnit));
  if (unit == 0 || (whole.empty() && fraction.empty())) return std::nullopt;
  int64_t count = 0;
  if (!whole.empty() &&
      std::from_chars(whole.data(), whole.data() + whole.size(), count).ec != std::errc()) {
    return std::nullopt;
  }
  int64_t total = 0;
  if (__builtin_mul_overflow(count, unit, &total)) return std::nullopt;
  int64_t part = unit;
  for (const char digit : fraction) {
    part /= 10;
    if (__builtin_add_overflow(total, part * (digit - '0'), &total)) return std::nullopt;
  }
  return total;
}

Result<Duration> DurationOf(const api::StringMap& annotations, std::string_view key) {
  const auto text = api::Find(annotations, key);
  if (!text.has_value()) return Duration{};
  Result<Duration> duration = ParseDuration(*text);
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

Result<Duration> ParseDuration(std::string_view text) {
  if (text == "0") return Duration{};
  std::string_view rest = text;
  int64_t total = 0;
  while (!rest.empty()) {
    const std::optional<int64_t> term = TakeTerm(rest);
    if (!term.has_value() || __builtin_add_overflow(total, *term, &total)) {
      total = -1;
      break;
    }
  }
  if (text.empty() || total < 0) {
    return Fail(ErrorCode::kInvalid, fmt::format("invalid duration \"{}\"", text));
  }
  return Duration{total};
}

Result<RunPlan> RunPlanOf(const api::StringMap& annotations) {
  RunPlan plan;
  if (api::Find(annotations, kRunForAnnotation).has_value()) {
    const Result<Duration> run_for = DurationOf(annotations, kRunForAnnotation);
    if (!run_for) return std::unexpected(run_for.error());
    plan.run_for = *run_for;
  }
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
