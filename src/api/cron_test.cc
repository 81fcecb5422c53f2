// Goal: schedules mean what crontabs mean, and mistakes are told as Kubernetes tells them. Method:
// tables, the messages taken from github.com/robfig/cron/v3; a walk of all minutes as the twin.
#include "api/cron.h"

#include <gtest/gtest.h>

#include "api/timestamp.h"

namespace berth::api {
namespace {

Instant At(std::string_view text) { return ParseTimestamp(text).value(); }

std::string NextOf(std::string_view schedule, std::string_view after) {
  const Instant next = CronSchedule::Parse(schedule).value().Next(At(after));
  return next == Instant::Never() ? "never" : PrintTimestamp(next);
}

TEST(Cron, NextTimes) {
  struct Case {
    const char* schedule;
    const char* after;
    const char* next;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
           {"* * * * *", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z"},
           {"*/15 * * * *", "2026-01-01T00:46:00Z", "2026-01-01T01:00:00Z"},
           {"5/20 * * * *", "2026-01-01T00:26:00Z", "2026-01-01T00:45:00Z"},
           {"30 6-16/4 * * 1-5", "2026-01-02T14:31:00Z", "2026-01-05T06:30:00Z"},
           {"0 0 13 * FRI", "2026-02-07T00:00:00Z", "2026-02-13T00:00:00Z"},
           {"0 0 13 * FRI", "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z"},
           {"0 0 */2 * 1", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"},
           {"0 0 ? jan,Mar *", "2026-01-31T00:00:00Z", "2026-03-01T00:00:00Z"},
           {"0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
           {"59 23 31 2 *", "2026-01-01T00:00:00Z", "never"},
           {"@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
           {"@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
           {"@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
           {"@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
           {"@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
           {"@every 90s", "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"},
       }) {
    EXPECT_EQ(NextOf(one.schedule, one.after), one.next) << one.schedule;
  }
}

TEST(Cron, TheLastTimeIsThatOfAWalk) {
  for (const char* text : {"*/7 */5 * * *", "13 3 1,15 * 2", "0 0 * * 0", "@every 100s"}) {
    const CronSchedule schedule = CronSchedule::Parse(text).value();
    const Instant start = At("2026-02-27T10:11:12Z");
    Instant walked = start;
    for (int hours = 0; hours < 24 * 9; ++hours) {
      const Instant until = start + Duration::Minutes(60 * hours);
      while (schedule.Next(walked) <= until) walked = schedule.Next(walked);
      const auto last = schedule.Last(start, until);
      EXPECT_EQ(last.value_or(start), walked) << text << " " << hours;
    }
  }
}

TEST(Cron, MistakesAreNamed) {
  struct Case {
    const char* schedule;
    const char* message;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"error", "expected exactly 5 fields, found 1: [error]"},
           {"* * * *", "expected exactly 5 fields, found 4: [* * * *]"},
           {"60 * * * *", "end of range (60) above maximum (59): 60"},
           {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
           {"* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"},
           {"x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"},
           {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
           {"1/2/3 * * * *", "too many slashes: 1/2/3"},
           {"*/0 * * * *", "step of range should be a positive number: */0"},
           {"* * * * 7", "end of range (7) above maximum (6): 7"},
           {"@often", "unrecognized descriptor: @often"},
           {"", "empty spec string"},
       }) {
    const auto schedule = CronSchedule::Parse(one.schedule);
    ASSERT_FALSE(schedule.has_value()) << one.schedule;
    EXPECT_EQ(schedule.error().message, one.message);
  }
}

}  // namespace
}  // namespace berth::api
