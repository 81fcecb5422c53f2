#include "api/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "api/field_error.h"

namespace berth::api {
namespace {

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

}  // namespace

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

std::string GoDurationProblem(std::string_view text) {
  const std::string shown = QuoteGo(text);
  std::string invalid = fmt::format("time: invalid duration {}", shown);
  std::string_view rest = text;
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return "";
  if (rest.empty()) return invalid;
  int64_t total = 0;
  while (!rest.empty()) {
    std::string_view term = rest;
    const std::string_view whole = TakeWhile(rest, IsDigit);
    std::string_view fraction;
    if (rest.starts_with('.')) {
      rest.remove_prefix(1);
      fraction = TakeWhile(rest, IsDigit);
    }
    if (whole.empty() && fraction.empty()) return invalid;
    const std::string_view unit = TakeWhile(rest, IsUnit);
    if (unit.empty()) return fmt::format("time: missing unit in duration {}", shown);
    if (UnitOf(unit) == 0)
      return fmt::format("time: unknown unit {} in duration {}", QuoteGo(unit), shown);
    const std::optional<int64_t> nanoseconds = TakeTerm(term);
    if (!nanoseconds || __builtin_add_overflow(total, *nanoseconds, &total)) return invalid;
  }
  return "";
}

}  // namespace berth::api
