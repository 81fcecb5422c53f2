// Goal: a CronJob makes one Job for each time of its schedule, and as many at once as it may.
// Method: the actor against a small API server (sets_fixture.h) whose clock starts at
// 2001-09-09T01:46:40Z.
#include "controllers/cron_job.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kJobs = "/apis/batch/v1/namespaces/d/jobs";
const std::string kCrons = "/apis/batch/v1/namespaces/d/cronjobs";
const std::string kTick = kCrons + "/tick";
// That of 01:47, in minutes.
constexpr int64_t kFirst = 16'666'667;
using Strings = std::vector<std::string>;

class CronJobs : public Sets {
 protected:
  void MakeCron(const std::string& schedule, const std::string& more = "") {
    Make(kCrons, fmt::format(R"({{"metadata":{{"name":"tick","creationTimestamp":"{}"}},"spec":{{
      "schedule":"{}","jobTemplate":{{"metadata":{{"labels":{{"app":"tick"}}}},"spec":{{
      "suspend":true,"selector":{{"matchLabels":{{"app":"tick"}}}},
      "template":{{"metadata":{{"labels":{{"app":"tick"}}}},
      "spec":{{"restartPolicy":"Never","containers":[{{"name":"c"}}]}}}}}}}}{}}}}})",
                             api::PrintTimestamp(api_.now), schedule, more));
  }
  static std::string JobName(int64_t minute) { return fmt::format("tick-{}", kFirst + minute); }
  void Finish(const std::string& job, const std::string& type) {
    Patch(kJobs + "/" + job + "/status",
          fmt::format(R"({{"status":{{"startTime":"{0}","completionTime":"{0}","conditions":
            [{{"type":"{1}","status":"True","lastTransitionTime":"{0}"}}]}}}})",
                      api::PrintTimestamp(api_.now), type));
  }
};

TEST_F(CronJobs, EachTimeHasItsJob) {
  MakeCron("* * * * *");
  Pass(10);
  EXPECT_EQ(Names("/jobs/"), Strings{});
  Pass(11);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  const std::string job = kJobs + "/" + JobName(0);
  EXPECT_EQ(Text(job, "/metadata/labels/app"), "tick");
  EXPECT_EQ(Text(job, "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp"),
            "2001-09-09T01:47:00Z");
  EXPECT_EQ(Text(job, "/metadata/ownerReferences/0/kind"), "CronJob");
  EXPECT_EQ(Text(kTick, "/status/lastScheduleTime"), "2001-09-09T01:47:00Z");
  EXPECT_EQ(Text(kTick, "/status/active/0/name"), JobName(0));
  Pass(60);
  EXPECT_EQ(Names("/jobs/").size(), 2u);
  Finish(JobName(0), "Complete");
  Pass(1);
  EXPECT_EQ(Text(kTick, "/status/active/0/name"), JobName(1));
  EXPECT_NE(Text(kTick, "/status/lastSuccessfulTime"), "none");
  EXPECT_EQ(Told("tick").front(), "Normal SawCompletedJob Saw completed job: " + JobName(0) +
                                      ", condition: Complete cronjob-controller");
}

// Upstream's "Active job went missing"; what the CronJob itself ends does not.
TEST_F(CronJobs, AJobThatWentMissingIsToldOf) {
  MakeCron("* * * * *");
  Pass(21);
  Delete(kJobs + "/" + JobName(0));
  Pass(2);
  const std::string missing =
      "Normal MissingJob Active job went missing: " + JobName(0) + " cronjob-controller";
  const auto told = [&] { return std::ranges::count(Told("tick"), missing); };
  EXPECT_EQ(told(), 1);
  EXPECT_EQ(Text(kTick, "/status/active"), "none");
  Patch(kTick, R"({"spec":{"concurrencyPolicy":"Replace"}})");
  Pass(180);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(3)});
  const Strings all = Told("tick");
  EXPECT_EQ(std::ranges::count_if(
                all, [](const std::string& line) { return line.contains("MissingJob"); }),
            1);
}

// A status may name what was never there, or is no Job of its own any more.
TEST_F(CronJobs, AnActiveJobThatIsNotItsOwnStaysActiveAndOneThatNeverWasGoes) {
  MakeCron("* * * * *", R"(,"concurrencyPolicy":"Forbid")");
  Pass(21);
  Patch(kJobs + "/" + JobName(0), R"({"metadata":{"ownerReferences":null}})");
  Pass(60);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  EXPECT_EQ(Text(kTick, "/status/active/0/name"), JobName(0));
  Patch(kTick + "/status", R"({"status":{"active":[{"name":"never","uid":"u"},{"name":"x"}]}})");
  Pass(2);
  EXPECT_EQ(Names("/jobs/"), (Strings{JobName(0), JobName(1)}));
  EXPECT_EQ(Text(kTick, "/status/active/0/name"), JobName(1));
  EXPECT_EQ(Text(kTick, "/status/active/1"), "none");
}

TEST_F(CronJobs, WhatRunsMayForbidOrBeReplaced) {
  MakeCron("* * * * *", R"(,"concurrencyPolicy":"Forbid")");
  Pass(100);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  Finish(JobName(0), "Complete");
  // The time that was held back is made up for.
  Pass(5);
  EXPECT_EQ(Names("/jobs/"), (Strings{JobName(0), JobName(1)}));
  Patch(kTick, R"({"spec":{"concurrencyPolicy":"Replace"}})");
  Pass(60);
  EXPECT_EQ(Names("/jobs/"), (Strings{JobName(0), JobName(2)}));
}

TEST_F(CronJobs, OnlyTheLastMissedTimeIsMadeUpFor) {
  MakeCron("* * * * *", R"(,"suspend":true)");
  Pass(200);
  EXPECT_EQ(Names("/jobs/"), Strings{});
  Patch(kTick, R"({"spec":{"suspend":false}})");
  Pass(1);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(3)});
}

TEST_F(CronJobs, AfterItsDeadlineAStartIsNotMadeUpFor) {
  MakeCron("0 * * * *", R"(,"suspend":true,"startingDeadlineSeconds":30)");
  Pass(14 * 60);
  Patch(kTick, R"({"spec":{"suspend":false}})");
  Pass(2);
  EXPECT_EQ(Names("/jobs/"), Strings{});
}

TEST_F(CronJobs, HistoryIsKeptUpToItsLimits) {
  MakeCron("* * * * *", R"(,"successfulJobsHistoryLimit":1,"failedJobsHistoryLimit":0)");
  Pass(20);
  Finish(JobName(0), "Failed");
  Pass(60);
  Finish(JobName(1), "Complete");
  Pass(60);
  Finish(JobName(2), "Complete");
  Pass(1);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(2)});
}

TEST_F(CronJobs, ALostStatusMakesNoSecondJob) {
  api_.fault = [&](const env::HttpRequest& request) {
    const bool status = request.target == kTick + "/status";
    return status ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  MakeCron("* * * * *");
  Pass(50);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  Finish(JobName(0), "Complete");
  Pass(5);
  controllers_ = Controllers({.root_ca = "PEM"});
  Pass(5);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
}

TEST_F(CronJobs, AJobOfAnotherNamespaceIsNotIts) {
  MakeCron("* * * * *", R"(,"concurrencyPolicy":"Forbid")");
  Make("/apis/batch/v1/namespaces/e/jobs",
       fmt::format(R"({{"metadata":{{"name":"stray","finalizers":["test/stay"],"annotations":
         {{"batch.kubernetes.io/cronjob-scheduled-timestamp":"2001-09-09T01:50:00Z"}},
         "ownerReferences":[{{"apiVersion":"batch/v1","kind":"CronJob","name":"tick","uid":"{}",
         "controller":true}}]}},"spec":{{"suspend":true}}}})",
                   Text(kTick, "/metadata/uid")));
  Pass(21);
  EXPECT_EQ(Names("/namespaces/d/jobs/"), Strings{JobName(0)});
}

TEST_F(CronJobs, AJobThatLostItsTimeIsNotMadeTwice) {
  MakeCron("* * * * *");
  Pass(21);
  Patch(kJobs + "/" + JobName(0), R"({"metadata":{"annotations":null}})");
  Patch(kTick + "/status", R"({"status":null})");
  api_.log.clear();
  Pass(5);
  EXPECT_EQ(std::ranges::count(api_.log, "POST " + kJobs + " -> 409"), 0);
}

TEST_F(CronJobs, AnothersJobOfTheNameIsNotReplaced) {
  Make(kJobs,
       fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"suspend":true}}}})", JobName(0)));
  MakeCron("* * * * *");
  api_.log.clear();
  Pass(21);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  EXPECT_EQ(std::ranges::count(api_.log, "POST " + kJobs + " -> 409"), 0);
  Pass(60);
  EXPECT_EQ(Names("/jobs/"), (Strings{JobName(0), JobName(1)}));
}

TEST_F(CronJobs, AJobThatAUserMadeOfItsTemplateRunsBeside) {
  MakeCron("* * * * *", R"(,"concurrencyPolicy":"Forbid")");
  Make(kJobs, fmt::format(R"({{"metadata":{{"name":"by-hand","annotations":
         {{"cronjob.kubernetes.io/instantiate":"manual"}},"ownerReferences":[{{
         "apiVersion":"batch/v1","kind":"CronJob","name":"tick","uid":"{}","controller":true}}]}},
         "spec":{{"suspend":true}}}})",
                          Text(kTick, "/metadata/uid")));
  Pass(21);
  EXPECT_EQ(Names("/jobs/"), (Strings{"by-hand", JobName(0)}));
  EXPECT_EQ(Text(kTick, "/status/active/0/name"), JobName(0));
  EXPECT_EQ(Text(kTick, "/status/active/1"), "none");
  const Strings told = Told("tick");
  EXPECT_TRUE(std::ranges::any_of(told, [](const std::string& line) {
    return line.starts_with(
        "Warning UnexpectedJob Saw a job that the controller did not create or "
        "forgot: by-hand");
  }));
}

TEST_F(CronJobs, WhatItCanNotFollowIsTold) {
  MakeCron("* * * * *", R"(,"timeZone":"Europe/Atlantis")");
  Pass(70);
  EXPECT_EQ(Names("/jobs/"), Strings{});
  EXPECT_TRUE(Told("tick").at(0).starts_with(
      R"(Warning UnknownTimeZone invalid timeZone: "Europe/Atlantis": unknown time zone Europe/A)"));
}

// 01:47 UTC, which summer in Berlin calls 03:47.
TEST_F(CronJobs, ASchedulesTimesAreThoseOfItsZone) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kZones = {
      {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}}};
  controllers_ = Controllers({.root_ca = "PEM", .zones = api::TimeZones::OfRules(kZones)});
  MakeCron("47 3 * * *", R"(,"timeZone":"Europe/Berlin")");
  Pass(24 * 3'600);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  const std::string job = kJobs + "/" + JobName(0);
  EXPECT_EQ(Text(job, "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp"),
            "2001-09-09T03:47:00+02:00");
  EXPECT_EQ(Text(kTick, "/status/lastScheduleTime"), "2001-09-09T01:47:00Z");
  // The Job tells its time, whatever clock it is told by.
  Patch(kTick + "/status", R"({"status":null})");
  Pass(5);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  EXPECT_EQ(Text(kTick, "/status/lastScheduleTime"), "2001-09-09T01:47:00Z");
}

// What came before validation forbade it is followed, as upstream does.
TEST_F(CronJobs, AZoneInTheScheduleItselfCounts) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kZones = {
      {{"Asia/Tokyo", "JST-9"}}};
  controllers_ = Controllers({.root_ca = "PEM", .zones = api::TimeZones::OfRules(kZones)});
  MakeCron("TZ=Asia/Tokyo 47 10 * * *");
  Pass(70);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  Patch(kTick, R"({"spec":{"schedule":"TZ=Asia/Nowhere 48 10 * * *"}})");
  Pass(70);
  EXPECT_EQ(Names("/jobs/"), Strings{JobName(0)});
  EXPECT_TRUE(std::ranges::any_of(Told("tick"), [](const std::string& told) {
    return told.starts_with(
        "Warning UnparseableSchedule unparseable schedule: \"TZ=Asia/Nowhere 48 "
        "10 * * *\" : provided bad location Asia/Nowhere: unknown time zone "
        "Asia/Nowhere");
  }));
}

}  // namespace
}  // namespace berth::controllers
