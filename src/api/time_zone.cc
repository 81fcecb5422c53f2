#include "api/time_zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "api/timestamp.h"
#include "base/check.h"

namespace berth::api {
namespace {

constexpr int64_t kHour = 3'600;
constexpr int64_t kDay = 24 * kHour;
// RFC 8536, of offsets from UTC.
constexpr int64_t kOffsetMost = 26 * kHour;
constexpr std::string_view kMagic = "TZif";
constexpr size_t kHeaderBytes = 44;

std::chrono::year YearOf(int64_t year) { return std::chrono::year(static_cast<int>(year)); }

int64_t DaysBefore(int64_t year) {
  return std::chrono::sys_days(YearOf(year) / 1 / 1).time_since_epoch().count();
}

// A cursor over big-endian data. Past the end it yields zeros and says so.
class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}

  uint64_t Take(size_t bytes) {
    uint64_t value = 0;
    for (const char c : Bytes(bytes)) value = value << 8U | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view Bytes(size_t count) {
    if (count > data_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = data_.substr(0, count);
    data_.remove_prefix(count);
    return taken;
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::string_view rest() const { return data_; }

 private:
  std::string_view data_;
  bool failed_ = false;
};

struct Header {
  uint64_t utc_marks = 0, standard_marks = 0, leaps = 0, times = 0, types = 0, letters = 0;

  [[nodiscard]] size_t BodyBytes(size_t time_bytes) const {
    return times * (time_bytes + 1) + types * 6 + letters + leaps * (time_bytes + 4) +
           standard_marks + utc_marks;
  }
};

std::optional<Header> TakeHeader(Reader& reader) {
  Reader head(reader.Bytes(kHeaderBytes));
  if (head.Bytes(kMagic.size()) != kMagic) return std::nullopt;
  const uint64_t version = head.Take(1);
  static_cast<void>(head.Bytes(15));
  Header header{.utc_marks = head.Take(4),
                .standard_marks = head.Take(4),
                .leaps = head.Take(4),
                .times = head.Take(4),
                .types = head.Take(4),
                .letters = head.Take(4)};
  if (head.failed() || version < '2' || header.types == 0) return std::nullopt;
  return header;
}

std::unexpected<Error> Malformed(std::string_view what) {
  return Fail(ErrorCode::kInvalid, fmt::format("malformed time zone: {}", what));
}

}  // namespace

Result<TimeZone> TimeZone::Parse(std::string_view tzif) {
  Reader reader(tzif);
  const std::optional<Header> old = TakeHeader(reader);
  if (!old) return Malformed("no header of version 2");
  static_cast<void>(reader.Bytes(old->BodyBytes(4)));
  const std::optional<Header> header = TakeHeader(reader);
  if (reader.failed() || !header) return Malformed("no second header");
  Reader times(reader.Bytes(header->times * 8));
  Reader indexes(reader.Bytes(header->times));
  Reader types(reader.Bytes(header->types * 6));
  static_cast<void>(reader.Bytes(header->BodyBytes(8) - header->times * 9 - header->types * 6));
  if (reader.failed()) return Malformed("it ends early");
  std::vector<int64_t> offsets;
  for (uint64_t i = 0; i < header->types; ++i) {
    offsets.push_back(static_cast<int32_t>(types.Take(4)));
    static_cast<void>(types.Bytes(2));
    if (offsets.back() < -kOffsetMost || offsets.back() > kOffsetMost)
      return Malformed("an offset of over 26 hours");
  }
  TimeZone zone;
  zone.first_offset_ = offsets.front();
  for (uint64_t i = 0; i < header->times; ++i) {
    const auto at = static_cast<int64_t>(times.Take(8));
    const uint64_t index = indexes.Take(1);
    if (index >= offsets.size()) return Malformed("a type that is none");
    if (!zone.transitions_.empty() && zone.transitions_.back().first >= at)
      return Malformed("times that don't ascend");
    zone.transitions_.emplace_back(at, offsets[index]);
  }
  std::string_view footer = reader.rest();
  if (footer.size() < 2 || footer.front() != '\n' || footer.find('\n', 1) == std::string_view::npos)
    return Malformed("no footer");
  footer = footer.substr(1, footer.find('\n', 1) - 1);
  if (footer.empty()) return zone;
  zone.rule_ = ParseRule(footer);
  if (!zone.rule_) return Malformed("a footer that is no rule");
  return zone;
}

Result<TimeZone> TimeZone::OfRule(std::string_view rule) {
  TimeZone zone;
  zone.rule_ = ParseRule(rule);
  if (!zone.rule_) return Malformed("no rule");
  return zone;
}

int64_t TimeZone::OffsetAt(int64_t unix_seconds) const {
  const auto after =
      std::ranges::upper_bound(transitions_, unix_seconds, {}, &std::pair<int64_t, int64_t>::first);
  if (after == transitions_.end() && rule_) return rule_->OffsetAt(unix_seconds);
  return after == transitions_.begin() ? first_offset_ : std::prev(after)->second;
}

int64_t TimeZone::UnixAt(int64_t local_seconds) const {
  // The offset of about then tells when it is, unless it changes in between.
  const int64_t near = local_seconds - OffsetAt(local_seconds);
  return local_seconds - OffsetAt(near);
}

bool TimeZone::is_utc() const {
  return first_offset_ == 0 && transitions_.empty() &&
         (!rule_ || (rule_->offset == 0 && rule_->summer_offset == 0));
}

std::string TimeZone::Print(Instant time) const {
  const int64_t offset = OffsetAt(time.seconds());
  std::string text = PrintTimestamp(time + Duration::Seconds(offset));
  if (offset == 0) return text;
  text.pop_back();
  const int64_t minutes = std::abs(offset) / 60;
  return text + fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

// ---- Rules -----------------------------------------------------------------------------------

int64_t TimeZone::RuleDay::In(int64_t year) const {
  const bool leap = YearOf(year).is_leap();
  int64_t days = day;
  if (form == Form::kNoLeap) {
    // The 60th day is 1 March.
    days = day - (leap && day >= 60 ? 0 : 1);
  } else if (form == Form::kWeek) {
    const std::chrono::weekday wanted(static_cast<unsigned>(day));
    const std::chrono::month in(static_cast<unsigned>(month));
    const std::chrono::sys_days found =
        week == 5 ? std::chrono::sys_days(YearOf(year) / in / wanted[std::chrono::last])
                  : std::chrono::sys_days(YearOf(year) / in / wanted[static_cast<unsigned>(week)]);
    days = found.time_since_epoch().count() - DaysBefore(year);
  }
  return days * kDay + seconds;
}

int64_t TimeZone::Rule::OffsetAt(int64_t unix_seconds) const {
  if (offset == summer_offset) return offset;
  const std::chrono::sys_seconds at{std::chrono::seconds(unix_seconds)};
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(at));
  const auto year = static_cast<int64_t>(static_cast<int>(date.year()));
  const int64_t in_year = unix_seconds - DaysBefore(year) * kDay;
  const int64_t from = begin.In(year) - offset;
  const int64_t until = end.In(year) - summer_offset;
  // South of the equator summer is where the year begins and ends.
  const bool summer =
      from <= until ? in_year >= from && in_year < until : in_year >= from || in_year < until;
  return summer ? summer_offset : offset;
}

bool TimeZone::TakeName(std::string_view& text) {
  const bool quoted = text.starts_with('<');
  const size_t end = quoted ? text.find('>') : text.find_first_of("0123456789,-+");
  if (quoted) {
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
    return true;
  }
  const size_t length = std::min(end, text.size());
  text.remove_prefix(length);
  return length >= 3;
}

bool TimeZone::TakeNumber(std::string_view& text, int64_t least, int64_t most, int64_t& number) {
  size_t digits = 0;
  number = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && number <= most)
    number = number * 10 + (text[digits++] - '0');
  text.remove_prefix(digits);
  return digits > 0 && number >= least && number <= most;
}

// Hours, and minutes and seconds if there are any.
bool TimeZone::TakeOffset(std::string_view& text, int64_t& seconds) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int64_t number = 0;
  if (!TakeNumber(text, 0, 24 * 7, number)) return false;
  seconds = number * kHour;
  for (const int64_t unit : {int64_t{60}, int64_t{1}}) {
    if (!text.starts_with(':')) break;
    text.remove_prefix(1);
    if (!TakeNumber(text, 0, 59, number)) return false;
    seconds += number * unit;
  }
  if (negative) seconds = -seconds;
  return true;
}

bool TimeZone::TakeDay(std::string_view& text, RuleDay& day) {
  const auto take = [&](char before, int64_t least, int64_t most, int64_t& number) {
    if (!text.starts_with(before)) return false;
    text.remove_prefix(1);
    return TakeNumber(text, least, most, number);
  };
  bool read = false;
  if (text.starts_with('J')) {
    day.form = RuleDay::Form::kNoLeap;
    read = take('J', 1, 365, day.day);
  } else if (text.starts_with('M')) {
    day.form = RuleDay::Form::kWeek;
    read = take('M', 1, 12, day.month) && take('.', 1, 5, day.week) && take('.', 0, 6, day.day);
  } else {
    day.form = RuleDay::Form::kOfYear;
    read = TakeNumber(text, 0, 365, day.day);
  }
  day.seconds = 2 * kHour;
  if (!read || !text.starts_with('/')) return read;
  text.remove_prefix(1);
  return TakeOffset(text, day.seconds);
}

std::optional<TimeZone::Rule> TimeZone::ParseRule(std::string_view text) {
  Rule rule;
  if (!TakeName(text) || !TakeOffset(text, rule.offset)) return std::nullopt;
  // It says what is added to the local time.
  rule.offset = -rule.offset;
  rule.summer_offset = rule.offset;
  if (text.empty())
    return std::abs(rule.offset) <= kOffsetMost ? std::optional(rule) : std::nullopt;
  if (!TakeName(text)) return std::nullopt;
  rule.summer_offset = rule.offset + kHour;
  if (!text.empty() && text.front() != ',') {
    if (!TakeOffset(text, rule.summer_offset)) return std::nullopt;
    rule.summer_offset = -rule.summer_offset;
  }
  if (text.empty()) text = ",M3.2.0,M11.1.0";
  for (RuleDay* day : {&rule.begin, &rule.end}) {
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
    if (!TakeDay(text, *day)) return std::nullopt;
  }
  const bool fits =
      std::abs(rule.offset) <= kOffsetMost && std::abs(rule.summer_offset) <= kOffsetMost;
  return text.empty() && fits ? std::optional(rule) : std::nullopt;
}

// ---- All of them -----------------------------------------------------------------------------

TimeZones::TimeZones(const std::map<std::string, std::string>& files) {
  Table zones;
  for (const auto& [name, content] : files) {
    Result<TimeZone> zone = TimeZone::Parse(content);
    if (zone) zones.emplace(name, std::move(*zone));
  }
  zones_ = std::make_shared<const Table>(std::move(zones));
}

TimeZones TimeZones::OfRules(std::span<const std::pair<std::string_view, std::string_view>> rules) {
  Table zones;
  for (const auto& [name, text] : rules) {
    Result<TimeZone> zone = TimeZone::OfRule(text);
    CHECK(zone.has_value());
    zones.emplace(name, std::move(*zone));
  }
  TimeZones made;
  made.zones_ = std::make_shared<const Table>(std::move(zones));
  return made;
}

const TimeZone* TimeZones::Find(std::string_view name) const {
  static const TimeZone kUtc;
  if (name == "UTC" || name == "Etc/UTC") return &kUtc;
  if (zones_ == nullptr) return nullptr;
  const auto at = zones_->find(name);
  return at == zones_->end() ? nullptr : &at->second;
}

}  // namespace berth::api
