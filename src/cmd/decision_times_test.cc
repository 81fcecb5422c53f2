// Goal: each decision counts with its part of the step that it is made in, and a timed scheduler is
// that scheduler. Method: times by hand; a scheduler that places nobody yet, by a clock of its own.
#include "cmd/decision_times.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/hash.h"

namespace berth::cmd {
namespace {

using ::testing::HasSubstr;

constexpr const char* kName = "scheduler_scheduling_algorithm_duration_seconds";

TEST(DecisionTimes, EachDecisionCountsWithItsPartOfTheStep) {
  DecisionTimes times;
  times.Note(Duration::Milliseconds(6), 2);  // 3 ms each.
  times.Note(Duration::Microseconds(100), 1);
  times.Note(Duration::Seconds(9), 0);
  const std::string text = times.MetricsText();
  EXPECT_THAT(text, HasSubstr(fmt::format("# TYPE {} histogram\n", kName)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}_bucket{{le=\"0.001\"}} 1\n", kName)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}_bucket{{le=\"0.002\"}} 1\n", kName)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}_bucket{{le=\"0.004\"}} 3\n", kName)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}_bucket{{le=\"16.384\"}} 3\n", kName)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}_sum 0.0061\n", kName)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}_count 3\n", kName)));
}

TEST(DecisionTimes, ATimedSchedulerIsThatScheduler) {
  const auto make = [] {
    control::SchedulerOptions options;
    options.client.seed = 1;
    return std::make_unique<control::OperatedScheduler>(std::move(options), "{}");
  };
  DecisionTimes times;
  int64_t asked = 0;
  TimedScheduler timed(make(), [&] { return Instant{++asked}; }, times);
  const auto plain = make();
  const auto hash = [](const env::Actor& actor) {
    Hasher hasher;
    actor.AddTo(hasher);
    return hasher.value();
  };
  for (int64_t second = 0; second < 3; ++second) {
    env::Outbox timed_out;
    env::Outbox plain_out;
    timed.Step(Instant::FromSeconds(second), env::Tick{}, timed_out);
    plain->Step(Instant::FromSeconds(second), env::Tick{}, plain_out);
    EXPECT_EQ(timed_out.size(), plain_out.size());
    EXPECT_EQ(timed.wake_at(), plain->wake_at());
    EXPECT_EQ(hash(timed), hash(*plain));
  }
  EXPECT_EQ(asked, 6) << "before and after each step";
  EXPECT_THAT(times.MetricsText(), HasSubstr(fmt::format("{}_count 0\n", kName)));
}

}  // namespace
}  // namespace berth::cmd
