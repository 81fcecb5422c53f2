#include "api/cron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "api/duration.h"
#include "api/text.h"

namespace berth::api {
namespace {

constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kDaysSearched = 5 * 366;

struct Field {
  int64_t least = 0;
  int64_t most = 0;
  std::span<const std::string_view> names;  // Of the numbers from `least` on.
};

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
const std::array<Field, 5> kFields = {{{.least = 0, .most = 59, .names = {}},
                                       {.least = 0, .most = 23, .names = {}},
                                       {.least = 1, .most = 31, .names = {}},
                                       {.least = 1, .most = 12, .names = kMonths},
                                       {.least = 0, .most = 6, .names = kDays}}};

struct Descriptor {
  std::string_view name;
  std::string_view fields;
};
constexpr std::array<Descriptor, 7> kDescriptors = {{{"@yearly", "0 0 1 1 *"},
                                                     {"@annually", "0 0 1 1 *"},
                                                     {"@monthly", "0 0 1 * *"},
                                                     {"@weekly", "0 0 * * 0"},
                                                     {"@daily", "0 0 * * *"},
                                                     {"@midnight", "0 0 * * *"},
                                                     {"@hourly", "0 * * * *"}}};

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && IsSpace(text[at])) ++at;
    const size_t start = at;
    while (at < text.size() && !IsSpace(text[at])) ++at;
    if (at > start) words.push_back(text.substr(start, at - start));
  }
  return words;
}

template <typename... Args>
std::unexpected<Error> Wrong(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(ErrorCode::kInvalid, fmt::format(format, std::forward<Args>(args)...));
}

Result<int64_t> NumberOf(std::string_view text) {
  int64_t value = 0;
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    return Wrong("failed to parse int from {}: strconv.Atoi: parsing \"{}\": value out of range",
                 text, text);
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Wrong("failed to parse int from {}: strconv.Atoi: parsing \"{}\": invalid syntax", text,
                 text);
  }
  if (value < 0) return Wrong("negative number ({}) not allowed: {}", value, text);
  return value;
}

Result<int64_t> NumberOrName(std::string_view text, const Field& field) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  const auto at = std::ranges::find(field.names, std::string_view(lower));
  if (at != field.names.end()) return field.least + (at - field.names.begin());
  return NumberOf(text);
}

struct Range {
  uint64_t bits = 0;
  bool star = false;
};

Result<Range> RangeOf(std::string_view text, const Field& field) {
  const std::vector<std::string_view> steps = Split(text, '/');
  const std::vector<std::string_view> ends = Split(steps.front(), '-');
  const bool single = ends.size() == 1;
  int64_t first = field.least;
  int64_t last = field.most;
  Range range{.star = ends.front() == "*" || ends.front() == "?"};
  if (!range.star) {
    const Result<int64_t> low = NumberOrName(ends.front(), field);
    if (!low) return std::unexpected(low.error());
    if (ends.size() > 2) return Wrong("too many hyphens: {}", text);
    const Result<int64_t> high = single ? low : NumberOrName(ends[1], field);
    if (!high) return std::unexpected(high.error());
    first = *low;
    last = *high;
  }
  int64_t step = 1;
  if (steps.size() > 2) return Wrong("too many slashes: {}", text);
  if (steps.size() == 2) {
    const Result<int64_t> number = NumberOf(steps[1]);
    if (!number) return std::unexpected(number.error());
    step = *number;
    // `N/step` is `N-max/step`.
    if (single) last = range.star ? last : field.most;
    if (step > 1) range.star = false;
  }
  if (first < field.least)
    return Wrong("beginning of range ({}) below minimum ({}): {}", first, field.least, text);
  if (last > field.most)
    return Wrong("end of range ({}) above maximum ({}): {}", last, field.most, text);
  if (first > last)
    return Wrong("beginning of range ({}) beyond end of range ({}): {}", first, last, text);
  if (step == 0) return Wrong("step of range should be a positive number: {}", text);
  for (int64_t i = first; i <= last; i += std::min(step, field.most + 1))
    range.bits |= uint64_t{1} << i;
  return range;
}

Result<Range> FieldOf(std::string_view text, const Field& field) {
  Range all;
  for (const std::string_view part : Split(text, ',')) {
    // Go's FieldsFunc, which the parser uses, leaves empty parts out.
    if (part.empty()) continue;
    const Result<Range> range = RangeOf(part, field);
    if (!range) return range;
    all.bits |= range->bits;
    all.star = all.star || range->star;
  }
  return all;
}

bool Has(uint64_t bits, int64_t bit) { return ((bits >> bit) & 1U) != 0; }

}  // namespace

Result<CronSchedule> CronSchedule::Parse(std::string_view text) {
  CronSchedule schedule;
  if (text.empty()) return Wrong("empty spec string");
  for (const std::string_view prefix : {"TZ=", "CRON_TZ="}) {
    if (!text.starts_with(prefix)) continue;
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return Wrong("provided bad location {}", text);
    schedule.zone_ = text.substr(prefix.size(), space - prefix.size());
    text.remove_prefix(space);
    while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  }
  constexpr std::string_view kEvery = "@every ";
  if (text.starts_with(kEvery)) {
    const Result<Duration> every = ParseDuration(text.substr(kEvery.size()));
    if (!every) {
      return Wrong("failed to parse duration {}: time: invalid duration \"{}\"", text,
                   text.substr(kEvery.size()));
    }
    // In whole seconds, and at least one.
    schedule.every_ = Duration::Seconds(std::max<int64_t>(1, every->seconds()));
    return schedule;
  }
  if (text.starts_with('@')) {
    const auto at = std::ranges::find(kDescriptors, text, &Descriptor::name);
    if (at == kDescriptors.end()) return Wrong("unrecognized descriptor: {}", text);
    text = at->fields;
  }
  const std::vector<std::string_view> words = WordsOf(text);
  if (words.size() != kFields.size()) {
    return Wrong("expected exactly 5 fields, found {}: [{}]", words.size(), fmt::join(words, " "));
  }
  std::array<Range, 5> ranges;
  for (size_t i = 0; i < words.size(); ++i) {
    Result<Range> range = FieldOf(words[i], kFields.at(i));
    if (!range) return std::unexpected(range.error());
    ranges.at(i) = *range;
  }
  schedule.minutes_ = ranges[0].bits;
  schedule.hours_ = ranges[1].bits;
  schedule.days_ = ranges[2].bits;
  schedule.months_ = ranges[3].bits;
  schedule.weekdays_ = ranges[4].bits;
  schedule.any_day_ = ranges[2].star;
  schedule.any_weekday_ = ranges[4].star;
  return schedule;
}

bool CronSchedule::MatchesDay(int64_t day) const {
  const std::chrono::sys_days at{std::chrono::days(day)};
  const std::chrono::year_month_day date(at);
  if (!Has(months_, static_cast<unsigned>(date.month()))) return false;
  const bool by_day = Has(days_, static_cast<unsigned>(date.day()));
  const bool by_weekday = Has(weekdays_, std::chrono::weekday(at).c_encoding());
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

Instant CronSchedule::Next(Instant after) const {
  if (every_.ns > 0) return Instant::FromSeconds(after.seconds()) + every_;
  // In minutes, the first that may be it.
  const int64_t start = (after.seconds() - (after.seconds() % 60 + 60) % 60) / 60 + 1;
  constexpr int64_t kDayMinutes = kDaySeconds / 60;
  const int64_t first_day = start / kDayMinutes;
  for (int64_t day = first_day; day < first_day + kDaysSearched; ++day) {
    if (!MatchesDay(day)) continue;
    for (int64_t minute = day == first_day ? start % kDayMinutes : 0; minute < kDayMinutes;) {
      if (!Has(hours_, minute / 60)) {
        minute = (minute / 60 + 1) * 60;
        continue;
      }
      if (Has(minutes_, minute % 60))
        return Instant::FromSeconds((day * kDayMinutes + minute) * 60);
      ++minute;
    }
  }
  return Instant::Never();
}

std::optional<Instant> CronSchedule::Last(Instant after, Instant until) const {
  if (until <= after) return std::nullopt;
  if (every_.ns > 0) {
    const int64_t start = after.seconds();
    const int64_t times = (until.seconds() - start) / every_.seconds();
    if (times <= 0) return std::nullopt;
    return Instant::FromSeconds(start + times * every_.seconds());
  }
  constexpr int64_t kDayMinutes = kDaySeconds / 60;
  const int64_t end = until.seconds() / 60;
  const int64_t last_day = end / kDayMinutes;
  for (int64_t day = last_day; day > last_day - kDaysSearched; --day) {
    if (Instant::FromSeconds((day + 1) * kDaySeconds) <= after) return std::nullopt;
    if (!MatchesDay(day)) continue;
    for (int64_t minute = day == last_day ? end % kDayMinutes : kDayMinutes - 1; minute >= 0;
         --minute) {
      if (!Has(hours_, minute / 60) || !Has(minutes_, minute % 60)) continue;
      const Instant found = Instant::FromSeconds((day * kDayMinutes + minute) * 60);
      if (found <= after) return std::nullopt;
      return found;
    }
  }
  return std::nullopt;
}

namespace {

// A time that is moved as clocks of a zone show it: what Go's time.Time does for the parser that
// Kubernetes uses, whose walk Next() is.
class Clock {
 public:
  Clock(const TimeZone& zone, int64_t unix_seconds) : zone_(zone) { Set(unix_seconds); }

  void Set(int64_t unix_seconds) {
    unix_ = unix_seconds;
    local_ = unix_ + zone_.OffsetAt(unix_);
    day_ = std::chrono::floor<std::chrono::days>(
        std::chrono::sys_seconds(std::chrono::seconds(local_)));
    date_ = day_;
  }
  void Add(int64_t seconds) { Set(unix_ + seconds); }
  // As clocks show it: that day, at so many seconds after its midnight.
  void SetLocal(std::chrono::sys_days day, int64_t seconds) {
    Set(zone_.UnixAt(day.time_since_epoch().count() * kDaySeconds + seconds));
  }
  void SetFirstOfMonth(std::chrono::months later) {
    const std::chrono::year_month month = date_.year() / date_.month() + later;
    SetLocal(std::chrono::sys_days(month / 1), of_day());
  }
  void ToStartOfMonth() { SetLocal(std::chrono::sys_days(date_.year() / date_.month() / 1), 0); }
  void ToStartOfDay() { SetLocal(day_, 0); }
  void ToStartOfHour() { SetLocal(day_, hour() * 3'600); }
  void ToStartOfMinute() { Set(unix_ - (unix_ % 60 + 60) % 60); }
  void NextDay() {
    SetLocal(day_ + std::chrono::days(1), of_day());
    // Where there is no midnight.
    if (hour() != 0) Add((hour() > 12 ? 24 - hour() : -hour()) * 3'600);
  }

  [[nodiscard]] int64_t unix_seconds() const { return unix_; }
  [[nodiscard]] int64_t day_number() const { return day_.time_since_epoch().count(); }
  [[nodiscard]] int64_t year() const { return static_cast<int>(date_.year()); }
  [[nodiscard]] int64_t month() const { return static_cast<unsigned>(date_.month()); }
  [[nodiscard]] int64_t day() const { return static_cast<unsigned>(date_.day()); }
  [[nodiscard]] int64_t of_day() const { return local_ - day_number() * kDaySeconds; }
  [[nodiscard]] int64_t hour() const { return of_day() / 3'600; }
  [[nodiscard]] int64_t minute() const { return of_day() / 60 % 60; }
  [[nodiscard]] int64_t second() const { return of_day() % 60; }

 private:
  const TimeZone& zone_;
  int64_t unix_ = 0;
  int64_t local_ = 0;
  std::chrono::sys_days day_;
  std::chrono::year_month_day date_;
};

// Steps of one walk; five years of days are fewer. What clocks of a zone leave out may be a whole
// day, beyond which no walk comes.
constexpr int kStepsMax = 10'000;

}  // namespace

// The first time that an unfinished field moves the clock, the finer ones begin at their least.
Instant CronSchedule::Next(Instant after, const TimeZone& zone) const {
  if (every_.ns > 0 || zone.is_utc()) return Next(after);
  Clock clock(zone, after.seconds() + 1);
  const int64_t year_last = clock.year() + 5;
  bool moved = false;
  const auto begin = [&](auto to_start) {
    if (!std::exchange(moved, true)) (clock.*to_start)();
  };
  for (int steps = 0; clock.year() <= year_last && steps < kStepsMax; ++steps) {
    if (!Has(months_, clock.month())) {
      begin(&Clock::ToStartOfMonth);
      clock.SetFirstOfMonth(std::chrono::months(1));
    } else if (!MatchesDay(clock.day_number())) {
      begin(&Clock::ToStartOfDay);
      clock.NextDay();
    } else if (!Has(hours_, clock.hour())) {
      begin(&Clock::ToStartOfHour);
      clock.Add(3'600);
    } else if (!Has(minutes_, clock.minute())) {
      begin(&Clock::ToStartOfMinute);
      clock.Add(60);
    } else if (clock.second() != 0) {
      moved = true;
      clock.Add(60 - clock.second());
    } else {
      return Instant::FromSeconds(clock.unix_seconds());
    }
  }
  return Instant::Never();
}

// Looks back twice as far until there is one, then forth from it.
std::optional<Instant> CronSchedule::Last(Instant after, Instant until,
                                          const TimeZone& zone) const {
  if (every_.ns > 0 || zone.is_utc()) return Last(after, until);
  for (Duration back = Duration::Minutes(60);; back = back * 2) {
    const bool all = until - after <= back;
    const Instant from = all ? after : until - back;
    std::optional<Instant> last;
    for (Instant at = Next(from, zone); at <= until; at = Next(at, zone)) last = at;
    if (last || all) return last;
  }
}

}  // namespace berth::api
