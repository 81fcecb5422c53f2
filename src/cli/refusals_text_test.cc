// Goal: what the server refuses of a Job and its Workload is told as long as it matters, and no
// longer. Method: objects and Events as an API server gives them; each line when it is there, and
// the change after which it is not.
#include "cli/refusals_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace berth::cli {
namespace {

std::string Job(std::string_view spec, std::string_view status = "") {
  return fmt::format(R"({{"metadata":{{"uid":"u"}},"spec":{{"parallelism":2,"completions":3{}}},)"
                     R"("status":{{{}}}}})",
                     spec, status);
}

std::string Workload(std::string_view condition, std::string_view more = "") {
  return fmt::format(R"({{"metadata":{{"ownerReferences":[{{"kind":"Job","name":"x"}},)"
                     R"({{"kind":"Job","name":"j","controller":true}}]}},)"
                     R"("status":{{"conditions":[{{"type":"{}","status":"True"}}{}]}}}})",
                     condition, more);
}

std::string Event(std::string_view reason, std::string_view message,
                  std::string_view component = "job-controller", int minute = 1, int count = 1) {
  return fmt::format(R"({{"reason":"{}","message":"{}","source":{{"component":"{}"}},"count":{},)"
                     R"("lastTimestamp":"2026-01-01T00:{:02}:00Z"}})",
                     reason, message, component, count, minute);
}

std::string List(std::string_view events) { return fmt::format(R"({{"items":[{}]}})", events); }

constexpr std::string_view kAgain = "; it is tried again, after 17 minutes at most\n";
constexpr std::string_view kSuspended = R"(,"suspend":true)";

TEST(RefusalsText, PodsAreToldOfWhileTheJobLacksSome) {
  const std::string events =
      List(Event("FailedCreate", "Error creating: exceeded quota: q", "job-controller", 5, 7) +
           "," + Event("FailedCreate", "Error creating: older") + "," +
           Event("FailedCreate", "Error creating: no such class", "workload-controller", 9) + "," +
           Event("Unheard", "of"));
  const std::string workload = Workload("Admitted");
  const auto text = [&](const std::string& job) {
    return RefusalsText({.job = job, .workload = workload, .events_of_job = events});
  };
  const std::string told =
      "  creating pods of its Job was refused 7 times, last told at 2026-01-01T00:05:00Z: exceeded "
      "quota: q" +
      std::string(kAgain);
  EXPECT_EQ(text(Job("", R"("active":1)")), told);
  EXPECT_EQ(text(Job("", "")), told);
  EXPECT_EQ(text(Job("", R"("active":2)")), "");
  EXPECT_EQ(text(Job("", R"("active":1,"succeeded":2)")), "");
  EXPECT_EQ(text(Job("", R"("conditions":[{"type":"Failed","status":"True"}])")), "");
  EXPECT_EQ(text(Job(kSuspended)), "");
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(RefusalsText({.job = Job("")}), "");
}

TEST(RefusalsText, AStartIsToldOfWhileTheJobIsHeldThoughAdmitted) {
  const std::string events =
      List(Event("FailedStart", "Error starting: no", "workload-controller"));
  const auto text = [&](const std::string& job, const std::string& workload) {
    return RefusalsText({.job = job, .workload = workload, .events_of_job = events});
  };
  EXPECT_EQ(text(Job(kSuspended), Workload("Admitted")),
            "  starting its Job was refused, last told at 2026-01-01T00:01:00Z: no" +
                std::string(kAgain));
  EXPECT_EQ(text(Job(kSuspended), Workload("QuotaReserved")), "");
  EXPECT_EQ(text(Job(kSuspended), Workload("Admitted", R"(,{"type":"Evicted","status":"True"})")),
            "");
  EXPECT_EQ(text(Job(""), Workload("Admitted")), "");
}

TEST(RefusalsText, AStopIsToldOfWhileTheJobRunsThoughEvicted) {
  const std::string events = List(Event("FailedStop", "Error stopping: no"));
  const auto text = [&](const std::string& job, const std::string& workload) {
    return RefusalsText({.job = job, .workload = workload, .events_of_job = events});
  };
  EXPECT_EQ(text(Job(""), Workload("Admitted", R"(,{"type":"Evicted","status":"True"})")),
            "  suspending its Job was refused, last told at 2026-01-01T00:01:00Z: no" +
                std::string(kAgain));
  EXPECT_EQ(text(Job(""), Workload("Admitted")), "");
  EXPECT_EQ(text(Job(kSuspended), Workload("Evicted")), "");
}

TEST(RefusalsText, PodsThatAreToGoAreToldOf) {
  const std::string events = List(Event("FailedDelete", "Error deleting: no"));
  const std::string workload = Workload("Evicted");
  const auto text = [&](const std::string& job) {
    return RefusalsText({.job = job, .workload = workload, .events_of_job = events});
  };
  EXPECT_TRUE(text(Job(kSuspended, R"("active":1)")).starts_with("  deleting pods of its Job was"));
  EXPECT_EQ(text(Job(kSuspended)), "");
  EXPECT_EQ(text(Job("", R"("active":1)")), "");
}

TEST(RefusalsText, WritesOfAStatusAreToldOfUntilTheyAreDone) {
  const std::string events = List(Event("FailedUpdate", "Error updating its status: no"));
  const std::string done = Job("", R"("conditions":[{"type":"Complete","status":"True"}])");
  const auto text = [&](const std::string& job, const std::string& workload) {
    return RefusalsText(
        {.job = job, .workload = workload, .events_of_job = events, .events_of_workload = events});
  };
  EXPECT_EQ(text(done, Workload("Admitted")),
            "  writing its status was refused, last told at 2026-01-01T00:01:00Z: no" +
                std::string(kAgain));
  EXPECT_EQ(text(done, Workload("Finished")), "");
  EXPECT_EQ(text(Job("", R"("active":2)"), Workload("Finished")),
            "  writing what its Job is to say was refused, last told at 2026-01-01T00:01:00Z: no" +
                std::string(kAgain));
}

TEST(RefusalsText, AJobWithoutAWorkloadSaysWhyItHasNone) {
  const std::string events =
      List(Event("FailedCreate", "Error creating: no such class", "workload-controller"));
  EXPECT_EQ(RefusalsText({.job = Job(kSuspended), .events_of_job = events}),
            "  making a Workload of it was refused, last told at 2026-01-01T00:01:00Z: no such "
            "class" +
                std::string(kAgain));
  EXPECT_EQ(
      RefusalsText(
          {.job = Job(kSuspended), .workload = Workload("QuotaReserved"), .events_of_job = events}),
      "");
}

TEST(RefusalsText, TheJobOfAWorkloadIsWhoControlsIt) {
  EXPECT_EQ(JobOf(Workload("Admitted")), "j");
  EXPECT_EQ(JobOf(R"({"metadata":{}})"), "");
  EXPECT_EQ(JobOf(""), "");
}

// As others write them: no source, a time of their own, a message of their own form.
TEST(RefusalsText, EventsOfOthersAreReadToo) {
  const std::string events =
      List(R"({"reason":"FailedCreate","message":"Error","reportingComponent":"job-controller",)"
           R"("lastTimestamp":null,"eventTime":"2026-01-01T00:01:00.000000Z"})");
  EXPECT_EQ(RefusalsText({.job = Job(""), .events_of_job = events}),
            "  creating pods of its Job was refused, last told at 2026-01-01T00:01:00.000000Z: "
            "Error" +
                std::string(kAgain));
}

}  // namespace
}  // namespace berth::cli
