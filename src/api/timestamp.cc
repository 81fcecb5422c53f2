#include "api/timestamp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "api/field_error.h"

namespace berth::api {
namespace {

constexpr std::string_view kLayout = "2006-01-02T15:04:05Z07:00";
constexpr std::string_view kMicroLayout = "2006-01-02T15:04:05.000000Z07:00";
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDaySeconds = 86'400;

// Days since 1970-01-01 of a date of the proleptic Gregorian calendar, and back (H. Hinnant,
// "chrono-compatible low-level date algorithms").
int64_t DaysFromDate(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

struct Date {
  int64_t year;
  int64_t month;
  int64_t day;
};

Date DateFromDays(int64_t days) {
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t day_of_era = days - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  const int64_t month = shifted + (shifted < 10 ? 3 : -9);
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month,
          day_of_year - (153 * shifted + 2) / 5 + 1};
}

bool IsLeap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int64_t DaysIn(int64_t year, int64_t month) {
  if (month == 2) return IsLeap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view layout)
      : layout_(layout), whole_(text), rest_(text) {}

  Result<Instant> Run() {
    const int64_t year = Number(4, "2006");
    Literal('-');
    const int64_t month = Number(2, "01");
    Range(month, 1, 12, "month");
    Literal('-');
    const int64_t day = Number(2, "02");
    Literal('T');
    const int64_t hour = Number(2, "15");
    Range(hour, 0, 23, "hour");
    Literal(':');
    const int64_t minute = Number(2, "04");
    Range(minute, 0, 59, "minute");
    Literal(':');
    const int64_t second = Number(2, "05");
    Range(second, 0, 59, "second");
    const int64_t fraction = layout_ == kMicroLayout ? Micros() : Fraction();
    const int64_t offset = Offset();
    if (!failed_ && !rest_.empty()) {
      Fail(fmt::format(": extra text: {}", QuoteGo(rest_)));
    }
    if (!failed_) Range(day, 1, DaysIn(year, month), "day");
    if (failed_) return ::berth::Fail(ErrorCode::kInvalid, message_);
    const int64_t seconds =
        DaysFromDate(year, month, day) * kDaySeconds + hour * 3600 + minute * 60 + second - offset;
    int64_t ns = 0;
    if (__builtin_mul_overflow(seconds, kSecondNs, &ns) ||
        __builtin_add_overflow(ns, fraction, &ns)) {
      ns = seconds > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
    }
    return Instant{ns};
  }

 private:
  void Fail(const std::string& why) {
    if (failed_) return;
    failed_ = true;
    message_ = fmt::format("parsing time {}{}", QuoteGo(whole_), why);
  }

  void FailAt(std::string_view element) {
    if (failed_) return;
    failed_ = true;
    message_ = fmt::format("parsing time {} as \"{}\": cannot parse {} as \"{}\"", QuoteGo(whole_),
                           layout_, QuoteGo(rest_), element);
  }

  int64_t Number(size_t digits, std::string_view element) {
    if (failed_) return 0;
    int64_t number = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (i >= rest_.size() || rest_[i] < '0' || rest_[i] > '9') {
        FailAt(element);
        return 0;
      }
      number = number * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return number;
  }

  void Literal(char c) {
    if (failed_) return;
    if (rest_.empty() || rest_[0] != c) {
      FailAt(std::string_view(&c, 1));
      return;
    }
    rest_.remove_prefix(1);
  }

  void Range(int64_t value, int64_t low, int64_t high, std::string_view what) {
    if (value < low || value > high) Fail(fmt::format(": {} out of range", what));
  }

  // Nanoseconds, of six digits and no less. More are no fraction but what can't stand there.
  int64_t Micros() {
    constexpr size_t kDigits = 6;
    const bool stands =
        rest_.size() > kDigits && (rest_[0] == '.' || rest_[0] == ',') &&
        std::ranges::all_of(rest_.substr(1, kDigits), [](char c) { return c >= '0' && c <= '9'; });
    if (!stands) {
      FailAt(".000000");
      return 0;
    }
    rest_.remove_prefix(1);
    return Number(kDigits, ".000000") * (kSecondNs / 1'000'000);
  }

  // Nanoseconds; digits past the ninth are cut.
  int64_t Fraction() {
    if (failed_ || rest_.size() < 2 || (rest_[0] != '.' && rest_[0] != ',')) return 0;
    if (rest_[1] < '0' || rest_[1] > '9') return 0;
    rest_.remove_prefix(1);
    int64_t ns = 0;
    int64_t unit = kSecondNs / 10;
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
      ns += (rest_[0] - '0') * unit;
      unit /= 10;
      rest_.remove_prefix(1);
    }
    return ns;
  }

  int64_t Offset() {
    if (failed_) return 0;
    if (rest_.starts_with('Z')) {
      rest_.remove_prefix(1);
      return 0;
    }
    if (rest_.empty() || (rest_[0] != '+' && rest_[0] != '-')) {
      FailAt("Z07:00");
      return 0;
    }
    const int64_t sign = rest_[0] == '+' ? 1 : -1;
    rest_.remove_prefix(1);
    const int64_t hours = Number(2, "Z07:00");
    Literal(':');
    const int64_t minutes = Number(2, "Z07:00");
    Range(hours, 0, 24, "time zone offset hour");
    Range(minutes, 0, 60, "time zone offset minute");
    return sign * (hours * 3600 + minutes * 60);
  }

  const std::string_view layout_;
  const std::string_view whole_;
  std::string_view rest_;
  bool failed_ = false;
  std::string message_;
};

// A time written "2006-01-02T15:04:05Z", as nearly all are. Nothing when it is written otherwise or
// there is no such time: Reader then says what it is.
std::optional<Instant> ReadPlain(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto two = [&](size_t at) -> int64_t {
    return (text[at] - '0') * 10 + (text[at + 1] - '0');
  };
  const int64_t year = two(0) * 100 + two(2);
  const int64_t month = two(5);
  const int64_t day = two(8);
  const int64_t hour = two(11);
  const int64_t minute = two(14);
  const int64_t second = two(17);
  // Years that an Instant can hold whole.
  if (year < 1678 || year > 2261 || month < 1 || month > 12) return std::nullopt;
  if (day < 1 || day > DaysIn(year, month)) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return Instant::FromSeconds(DaysFromDate(year, month, day) * kDaySeconds + hour * 3600 +
                              minute * 60 + second);
}

void PutDigits(int64_t number, size_t count, char* out) {
  for (size_t i = count; i > 0; --i, number /= 10) {
    out[i - 1] = static_cast<char>('0' + number % 10);
  }
}

std::string PrintSeconds(Instant time) {
  const int64_t seconds = time.seconds();
  const int64_t days =
      seconds >= 0 ? seconds / kDaySeconds : -((-seconds + kDaySeconds - 1) / kDaySeconds);
  const int64_t of_day = seconds - days * kDaySeconds;
  const Date date = DateFromDays(days);
  // Every object carries several of these, so they are not left to the formatter. Years that an
  // Instant can hold, 1677 to 2262, have four digits.
  std::string text = "0000-00-00T00:00:00";
  PutDigits(date.year, 4, text.data());
  PutDigits(date.month, 2, text.data() + 5);
  PutDigits(date.day, 2, text.data() + 8);
  PutDigits(of_day / 3600, 2, text.data() + 11);
  PutDigits(of_day / 60 % 60, 2, text.data() + 14);
  PutDigits(of_day % 60, 2, text.data() + 17);
  return text;
}

}  // namespace

Result<Instant> ParseTimestamp(std::string_view text) {
  if (const auto time = ReadPlain(text)) return *time;
  return Reader(text, kLayout).Run();
}
Result<Instant> ParseMicroTime(std::string_view text) { return Reader(text, kMicroLayout).Run(); }

std::string PrintTimestamp(Instant time) { return PrintSeconds(time) + "Z"; }

std::string PrintMicroTime(Instant time) {
  const int64_t ns = time.ns - time.seconds() * kSecondNs;
  std::string text = PrintSeconds(time) + ".000000Z";
  PutDigits(ns / 1000, 6, text.data() + 20);
  return text;
}

std::string HumanDuration(Duration age) {
  const int64_t seconds = age.seconds();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  const int64_t minutes = seconds / 60;
  const auto two = [](int64_t large, std::string_view large_unit, int64_t small,
                      std::string_view small_unit) {
    return small == 0 ? fmt::format("{}{}", large, large_unit)
                      : fmt::format("{}{}{}{}", large, large_unit, small, small_unit);
  };
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return fmt::format("{}m", minutes);
  const int64_t hours = minutes / 60;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return fmt::format("{}h", hours);
  if (hours < 192) return two(hours / 24, "d", hours % 24, "h");
  const int64_t days = hours / 24;
  if (days < 730) return fmt::format("{}d", days);
  if (days < 8 * 365) return two(days / 365, "y", days % 365, "d");
  return fmt::format("{}y", days / 365);
}

}  // namespace berth::api
