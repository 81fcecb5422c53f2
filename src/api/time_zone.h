#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth::api {

// How far the clocks of a place are ahead of UTC, and when that changes. A default one is UTC.
class TimeZone {
 public:
  // Of TZif data (RFC 8536) of version 2 or later, as /usr/share/zoneinfo has it. Errors: what is
  // wrong with it; nothing that it says makes a TimeZone that is unsafe to ask.
  static Result<TimeZone> Parse(std::string_view tzif);
  // Of a rule alone, as POSIX has it for TZ: "CET-1CEST,M3.5.0,M10.5.0/3".
  static Result<TimeZone> OfRule(std::string_view rule);

  // In seconds, those of UTC added to it are those of the place. O(log transitions).
  [[nodiscard]] int64_t OffsetAt(int64_t unix_seconds) const;
  // When clocks show so many seconds since 1970-01-01T00:00:00. Of a time that there is twice the
  // one, of one that is left out a neighbour, as Go's time.Date chooses them.
  [[nodiscard]] int64_t UnixAt(int64_t local_seconds) const;
  // Whether it has but one offset, that of UTC.
  [[nodiscard]] bool is_utc() const;
  // RFC 3339 as clocks there show it: "2026-03-29T03:30:00+02:00"; with Z at the offset 0.
  [[nodiscard]] std::string Print(Instant time) const;

 private:
  // The day of a year on which clocks change, and when on it.
  struct RuleDay {
    enum class Form : uint8_t { kNoLeap, kOfYear, kWeek } form = Form::kNoLeap;
    int64_t day = 0;   // Of the year from 1 without 29 February; from 0; or of the week.
    int64_t week = 0;  // Of kWeek, 5 being the last, and the month.
    int64_t month = 0;
    int64_t seconds = 0;

    // Since the year's start by the clocks that still go.
    [[nodiscard]] int64_t In(int64_t year) const;
  };
  struct Rule {
    int64_t offset = 0;
    int64_t summer_offset = 0;
    RuleDay begin, end;  // Of summer; only where the offsets differ.

    [[nodiscard]] int64_t OffsetAt(int64_t unix_seconds) const;
  };
  // What stands at the front of a rule; true when it could be read.
  static bool TakeName(std::string_view& text);
  static bool TakeNumber(std::string_view& text, int64_t least, int64_t most, int64_t& number);
  static bool TakeOffset(std::string_view& text, int64_t& seconds);
  static bool TakeDay(std::string_view& text, RuleDay& day);
  static std::optional<Rule> ParseRule(std::string_view text);

  int64_t first_offset_ = 0;
  std::vector<std::pair<int64_t, int64_t>> transitions_;  // When, and the offset from then on.
  std::optional<Rule> rule_;                              // After the last transition.
};

// The zones that are known, by their names ("Europe/Berlin"); UTC always is. Immutable, copies
// share it.
class TimeZones {
 public:
  TimeZones() = default;
  // Of files of TZif by their names. What is none is left out.
  explicit TimeZones(const std::map<std::string, std::string>& files);
  // Of rules by names, for tests and the simulator. REQUIRES: rules that are some.
  static TimeZones OfRules(std::span<const std::pair<std::string_view, std::string_view>> rules);

  // nullptr: there is none of that name.
  [[nodiscard]] const TimeZone* Find(std::string_view name) const;
  [[nodiscard]] size_t size() const { return zones_ == nullptr ? 0 : zones_->size(); }

 private:
  using Table = std::map<std::string, TimeZone, std::less<>>;
  std::shared_ptr<const Table> zones_;
};

}  // namespace berth::api
