// Goal: clocks of a zone show what they show there, and a schedule's times are those that Kubernetes
// finds. Method: rules and TZif data made here; the system's own files against the C library, the
// naive twin; the schedules of github.com/robfig/cron/v3's own tests of daylight saving.
#include "api/time_zone.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "api/cron.h"
#include "api/timestamp.h"

namespace berth::api {
namespace {

TimeZone Rule(std::string_view rule) { return TimeZone::OfRule(rule).value(); }
int64_t At(std::string_view text) { return ParseTimestamp(text).value().seconds(); }

constexpr std::string_view kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";
constexpr std::string_view kNewYork = "EST5EDT,M3.2.0,M11.1.0";

void AppendNumber(std::string& data, int64_t number, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    data += static_cast<char>(static_cast<uint64_t>(number) >> static_cast<unsigned>(shift));
}

struct Change {
  int64_t at = 0;
  int64_t type = 0;
};

// TZif of version 2 with an empty first part.
std::string TzifOf(const std::vector<int64_t>& offsets, const std::vector<Change>& changes,
                   const std::string& footer) {
  const auto header = [](size_t times, size_t types) {
    std::string text = "TZif2" + std::string(15, '\0');
    for (const size_t count : {size_t{0}, size_t{0}, size_t{0}, times, types, size_t{4}})
      AppendNumber(text, static_cast<int64_t>(count), 4);
    return text;
  };
  std::string data = header(0, 1) + std::string(6, '\0') + std::string(4, '\0');
  data += header(changes.size(), offsets.size());
  for (const Change& change : changes) AppendNumber(data, change.at, 8);
  for (const Change& change : changes) AppendNumber(data, change.type, 1);
  for (const int64_t offset : offsets) {
    AppendNumber(data, offset, 4);
    data += std::string(2, '\0');
  }
  return data + std::string(4, '\0') + "\n" + footer + "\n";
}

TEST(TimeZone, ADefaultOneIsUtc) {
  EXPECT_TRUE(TimeZone().is_utc());
  EXPECT_TRUE(Rule("UTC0").is_utc());
  EXPECT_FALSE(Rule(kBerlin).is_utc());
  EXPECT_EQ(TimeZone().Print(Instant::FromSeconds(0)), "1970-01-01T00:00:00Z");
}

TEST(TimeZone, RulesSayWhenClocksChange) {
  struct Case {
    std::string_view rule, time;
    int64_t offset;
  };
  for (const Case& one : std::initializer_list<Case>{
           {kBerlin, "2026-03-29T00:59:59Z", 3'600},
           {kBerlin, "2026-03-29T01:00:00Z", 7'200},
           {kBerlin, "2026-10-25T00:59:59Z", 7'200},
           {kBerlin, "2026-10-25T01:00:00Z", 3'600},
           {kNewYork, "2026-03-08T06:59:59Z", -18'000},
           {kNewYork, "2026-03-08T07:00:00Z", -14'400},
           {kNewYork, "2026-11-01T06:00:00Z", -18'000},
           {"EST5EDT", "2026-07-01T00:00:00Z", -14'400},
           {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-01-01T00:00:00Z", 39'600},
           {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-07-01T00:00:00Z", 36'000},
           {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-07-01T00:00:00Z", 37'800},
           {"JST-9", "2026-07-01T00:00:00Z", 32'400},
           {"AAA0BBB,J60/0,J61/0", "2028-03-01T00:00:00Z", 3'600},
           {"AAA0BBB,J60/0,J61/0", "2026-03-01T00:00:00Z", 3'600},
           {"AAA0BBB,59/0,60/0", "2028-02-29T00:00:00Z", 3'600},
           {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -7'200},
           {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00Z", -3'600},
       }) {
    EXPECT_EQ(Rule(one.rule).OffsetAt(At(one.time)), one.offset) << one.rule << " " << one.time;
  }
}

TEST(TimeZone, WhatIsNoRuleIsRefused) {
  for (const std::string_view text :
       {"", "CE-1", "CET", "CET-1x", "CET-1CEST,", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0,",
        "<CET-1", "CET-200", "CET-1:60", "CET-30", "CET-1CEST,J0,J1", "CET-1CEST,366,J1"}) {
    EXPECT_FALSE(TimeZone::OfRule(text).has_value()) << text;
  }
}

// Of a time that is left out and of one that there is twice, what Go's time.Date gives.
TEST(TimeZone, LocalTimesAreThoseOfGo) {
  const TimeZone berlin = Rule(kBerlin);
  EXPECT_EQ(berlin.UnixAt(At("2026-03-29T01:30:00Z")), At("2026-03-29T00:30:00Z"));
  EXPECT_EQ(berlin.UnixAt(At("2026-03-29T02:30:00Z")), At("2026-03-29T01:30:00Z"));
  EXPECT_EQ(berlin.UnixAt(At("2026-03-29T03:30:00Z")), At("2026-03-29T01:30:00Z"));
  EXPECT_EQ(berlin.UnixAt(At("2026-10-25T02:30:00Z")), At("2026-10-25T01:30:00Z"));
  const TimeZone york = Rule(kNewYork);
  EXPECT_EQ(york.UnixAt(At("2026-03-08T02:30:00Z")), At("2026-03-08T06:30:00Z"));
  EXPECT_EQ(york.UnixAt(At("2026-11-01T01:30:00Z")), At("2026-11-01T05:30:00Z"));
}

TEST(TimeZone, DataSaysWhatWasBeforeTheRule) {
  const std::string data =
      TzifOf({-600, 3'600}, {{.at = -1'000, .type = 1}, {.at = 1'000, .type = 0}}, "<+02>-2");
  const TimeZone zone = TimeZone::Parse(data).value();
  EXPECT_EQ(zone.OffsetAt(-2'000), -600);
  EXPECT_EQ(zone.OffsetAt(-1'000), 3'600);
  EXPECT_EQ(zone.OffsetAt(999), 3'600);
  EXPECT_EQ(zone.OffsetAt(1'000), 7'200);
  const TimeZone bare = TimeZone::Parse(TzifOf({60}, {{.at = 5, .type = 0}}, "")).value();
  EXPECT_EQ(bare.OffsetAt(1'000'000), 60);
}

TEST(TimeZone, DamagedDataIsRefused) {
  const std::string data = TzifOf({0, 3'600}, {{.at = 1, .type = 1}}, "CET-1");
  ASSERT_TRUE(TimeZone::Parse(data).has_value());
  for (size_t length = 0; length < data.size(); ++length)
    EXPECT_FALSE(TimeZone::Parse(data.substr(0, length)).has_value()) << length;
  EXPECT_FALSE(TimeZone::Parse(TzifOf({0}, {{.at = 1, .type = 1}}, "")).has_value());
  EXPECT_FALSE(TimeZone::Parse(TzifOf({200'000}, {}, "")).has_value());
  EXPECT_FALSE(TimeZone::Parse(TzifOf({0}, {{.at = 2}, {.at = 2}}, "")).has_value());
  EXPECT_FALSE(TimeZone::Parse(TzifOf({0}, {}, "nonsense")).has_value());
  EXPECT_FALSE(TimeZone::Parse("TZif1" + data.substr(5)).has_value());
}

// ---- Schedules -------------------------------------------------------------------------------

std::string NextIn(const TimeZone& zone, std::string_view schedule, std::string_view after) {
  const Instant next =
      CronSchedule::Parse(schedule).value().Next(ParseTimestamp(after).value(), zone);
  return next == Instant::Never() ? "never" : zone.Print(next);
}

TEST(TimeZone, SchedulesFollowItsClocks) {
  struct Case {
    std::string_view rule, schedule, after, next;
  };
  constexpr std::string_view kSaoPaulo = "<-03>3<-02>,M11.1.0/0,M2.3.0/0";
  for (const Case& one : std::initializer_list<Case>{
           // An hour is left out.
           {kNewYork, "0 * * * *", "2026-03-08T00:00:00-05:00", "2026-03-08T01:00:00-05:00"},
           {kNewYork, "0 * * * *", "2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00"},
           {kNewYork, "0 * * * *", "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"},
           {kNewYork, "30 2 8 3 ?", "2026-03-07T00:00:00-05:00", "2027-03-08T02:30:00-05:00"},
           {kNewYork, "30 2 * * *", "2026-03-07T03:00:00-05:00", "2026-03-09T02:30:00-04:00"},
           {kBerlin, "30 2 * * *", "2026-03-28T03:00:00+01:00", "2026-03-30T02:30:00+02:00"},
           // An hour is there twice.
           {kNewYork, "0 * * * *", "2026-11-01T00:00:00-04:00", "2026-11-01T01:00:00-04:00"},
           {kNewYork, "0 * * * *", "2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00"},
           {kNewYork, "0 * * * *", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
           {kNewYork, "0 1 * * ?", "2026-11-01T00:00:00-04:00", "2026-11-01T01:00:00-04:00"},
           {kNewYork, "0 1 * * ?", "2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00"},
           {kNewYork, "0 1 * * ?", "2026-11-01T01:00:00-05:00", "2026-11-02T01:00:00-05:00"},
           {kNewYork, "0 3 * * ?", "2026-11-01T00:00:00-04:00", "2026-11-01T03:00:00-05:00"},
           {kBerlin, "30 2 * * *", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"},
           // A midnight is left out.
           {kSaoPaulo, "0 0 * * *", "2018-11-03T00:00:00-03:00", "2018-11-05T00:00:00-02:00"},
           {kSaoPaulo, "0 9 4 11 *", "2018-11-01T00:00:00-03:00", "2018-11-04T09:00:00-02:00"},
           {kSaoPaulo, "0 7 5 11 *", "2018-10-09T00:00:00-03:00", "2018-11-05T07:00:00-02:00"},
           {kSaoPaulo, "0 5 3 11 *", "2018-11-03T05:00:00-03:00", "2019-11-03T05:00:00-02:00"},
           // Whole days and months are the zone's.
           {"JST-9", "0 0 1 * *", "2026-01-31T14:00:00Z", "2026-02-01T00:00:00+09:00"},
           {"JST-9", "0 0 1 * *", "2026-01-31T15:00:00Z", "2026-03-01T00:00:00+09:00"},
           {"JST-9", "0 8 * * MON", "2026-02-01T22:30:00Z", "2026-02-02T08:00:00+09:00"},
           {kBerlin, "59 23 31 2 *", "2026-01-01T00:00:00Z", "never"},
           {kBerlin, "@every 90s", "2026-01-01T00:00:00Z", "2026-01-01T01:01:30+01:00"},
       }) {
    EXPECT_EQ(NextIn(Rule(one.rule), one.schedule, one.after), one.next)
        << one.rule << " " << one.schedule << " " << one.after;
  }
}

// A zone that is UTC by its clocks takes the other way through.
TEST(TimeZone, TheWalkOfUtcIsThatOfItsTwin) {
  const TimeZone slow = Rule("AAA0BBB0:00:01,J1,J2/2:00:01");
  ASSERT_FALSE(slow.is_utc());
  for (const char* text :
       {"* * * * *", "*/7 */5 * * *", "13 3 1,15 * 2", "0 0 * * 0", "5 4 29 2 *"}) {
    const CronSchedule schedule = CronSchedule::Parse(text).value();
    Instant at = Instant::FromSeconds(At("2026-02-27T10:11:12Z"));
    for (int i = 0; i < 60 && at < Instant::FromSeconds(At("2026-12-31T00:00:00Z")); ++i) {
      EXPECT_EQ(schedule.Next(at, slow), schedule.Next(at)) << text;
      at = schedule.Next(at);
    }
  }
}

TEST(TimeZone, TheLastTimeIsThatOfAWalk) {
  const TimeZone berlin = Rule(kBerlin);
  for (const char* text : {"*/7 */5 * * *", "30 2 * * *", "0 0 * * 0", "15 2,3 25 10 *"}) {
    const CronSchedule schedule = CronSchedule::Parse(text).value();
    for (const char* begin : {"2026-03-27T10:11:12Z", "2026-10-23T10:11:12Z"}) {
      const Instant start = ParseTimestamp(begin).value();
      Instant walked = start;
      for (int hours = 0; hours < 24 * 4; ++hours) {
        const Instant until = start + Duration::Minutes(60 * hours);
        while (schedule.Next(walked, berlin) <= until) walked = schedule.Next(walked, berlin);
        EXPECT_EQ(schedule.Last(start, until, berlin).value_or(start), walked) << text << hours;
      }
    }
  }
}

// ---- The system's ----------------------------------------------------------------------------

TEST(TimeZone, TheSystemsZonesAreReadAsTheCLibraryReadsThem) {
  const std::filesystem::path folder = "/usr/share/zoneinfo";
  if (!std::filesystem::exists(folder / "Europe/Berlin")) GTEST_SKIP() << "no time zones here";
  for (const char* name : {"Europe/Berlin", "America/New_York", "America/Santiago", "Asia/Kolkata",
                           "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
                           "Europe/Dublin", "Asia/Gaza", "America/Nuuk", "Etc/GMT+5"}) {
    std::ifstream file(folder / name, std::ios::binary);
    const std::string data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const Result<TimeZone> zone = TimeZone::Parse(data);
    ASSERT_TRUE(zone.has_value()) << name << ": " << zone.error().message;
    ASSERT_EQ(setenv("TZ", name, 1), 0);
    tzset();
    // Every 11 hours and a bit, from 1971 to 2069.
    for (std::time_t at = 31'536'000; at < 3'124'224'000; at += 40'009) {
      std::tm local{};
      localtime_r(&at, &local);
      ASSERT_EQ(zone->OffsetAt(at), local.tm_gmtoff) << name << " " << at;
    }
  }
  unsetenv("TZ");
  tzset();
}

TEST(TimeZones, AreFoundByTheirNames) {
  const TimeZones none;
  EXPECT_NE(none.Find("UTC"), nullptr);
  EXPECT_EQ(none.Find("Europe/Berlin"), nullptr);
  const TimeZones zones(
      {{"Europe/Berlin", TzifOf({3'600}, {}, std::string(kBerlin))}, {"Bad", "TZif2"}});
  EXPECT_EQ(zones.size(), 1u);
  ASSERT_NE(zones.Find("Europe/Berlin"), nullptr);
  EXPECT_EQ(zones.Find("Europe/Berlin")->OffsetAt(At("2026-07-01T00:00:00Z")), 7'200);
  EXPECT_EQ(zones.Find("europe/berlin"), nullptr);
  EXPECT_EQ(zones.Find("Bad"), nullptr);
}

}  // namespace
}  // namespace berth::api
