#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/time_zone.h"
#include "base/result.h"
#include "base/time.h"

namespace berth::api {

// When something recurs, as a crontab says it: five fields (minute, hour, day of the month, month,
// day of the week) of numbers, names, ranges, lists and steps; @hourly and the like; `@every 90s`.
// Where both kinds of days are restricted, either will do.
//
// Fields are of what clocks show in a zone, UTC without one. A time that clocks leave out is left
// out with it, one that they show twice counts twice.
class CronSchedule {
 public:
  // Errors: what is wrong, in the words of the parser that Kubernetes uses
  // (github.com/robfig/cron/v3).
  [[nodiscard]] static Result<CronSchedule> Parse(std::string_view text);

  // The first time after `after`; Never(): there is none within five years.
  [[nodiscard]] Instant Next(Instant after) const;
  [[nodiscard]] Instant Next(Instant after, const TimeZone& zone) const;
  // The last time in (after, until]; nothing: there is none.
  [[nodiscard]] std::optional<Instant> Last(Instant after, Instant until) const;
  [[nodiscard]] std::optional<Instant> Last(Instant after, Instant until,
                                            const TimeZone& zone) const;

  // What stands before the fields as TZ= or CRON_TZ=; empty: nothing.
  [[nodiscard]] const std::string& zone() const { return zone_; }

 private:
  [[nodiscard]] bool MatchesDay(int64_t day) const;

  uint64_t minutes_ = 0;  // Bits.
  uint64_t hours_ = 0;
  uint64_t days_ = 0;
  uint64_t months_ = 0;
  uint64_t weekdays_ = 0;
  bool any_day_ = false;      // The field is a star.
  bool any_weekday_ = false;  // Likewise.
  Duration every_;            // Of @every; then nothing else counts.
  std::string zone_;
};

}  // namespace berth::api
