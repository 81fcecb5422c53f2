// Goal: a process waits for its scheduler to stop, and for nothing else; other answers pass.
// Method: sinks that record.
#include "cmd/stop_gate.h"

#include <gtest/gtest.h>

#include "cmd/leader_options.h"
#include "control/scheduler.h"

namespace berth::cmd {
namespace {

struct Network final : env::OutputSink {
  void Take(std::vector<env::Output> batch) override { taken += batch.size(); }
  size_t taken = 0;
};

env::Respond AnswerTo(env::ExchangeId exchange, int status = 200) {
  return {.exchange = exchange, .response = {.status = status, .headers = {}, .body = {}}};
}

// Answers as the scheduler does, if it is to.
struct Scheduler final : env::InputSink {
  void Post(std::vector<env::Input> batch) override {
    EXPECT_EQ(std::get<env::RequestArrived>(batch.at(0)).exchange, control::kStopExchange);
    ++asked;
    if (asked <= refuses) return gate->Take({AnswerTo(control::kStopExchange, 429)});
    if (answers) gate->Take({AnswerTo({7}), AnswerTo(control::kStopExchange), AnswerTo({8})});
  }
  StopGate* gate = nullptr;
  int asked = 0;
  int refuses = 0;
  bool answers = true;
};

TEST(StopGate, HearsThatTheSchedulerHasStoppedAndPassesAllElse) {
  StopGate gate;
  Network network;
  gate.PassTo(network);
  Scheduler scheduler;
  scheduler.gate = &gate;
  EXPECT_TRUE(gate.AskToStop(scheduler));
  EXPECT_EQ(network.taken, 2u);
}

// The lease would be kept, and others would wait for it.
TEST(StopGate, AFullInboxIsNoStopAndIsAskedAgain) {
  StopGate gate;
  Scheduler scheduler;
  scheduler.gate = &gate;
  scheduler.refuses = 2;
  EXPECT_TRUE(gate.AskToStop(scheduler, Duration::Minutes(1)));
  EXPECT_EQ(scheduler.asked, 3);
}

TEST(StopGate, ASchedulerThatDoesNotStopIsNotWaitedForLonger) {
  StopGate gate;
  Scheduler scheduler;
  scheduler.gate = &gate;
  scheduler.answers = false;
  EXPECT_FALSE(gate.AskToStop(scheduler, Duration::Milliseconds(1)));
}

TEST(LeaderOptions, EachProcessHasAnIdentityOfItsOwn) {
  const auto one = LeaderOptions({}, {});
  const auto other = LeaderOptions({}, {});
  ASSERT_TRUE(one.has_value());
  EXPECT_NE(one->identity, other->identity);
  EXPECT_EQ(one->name, "kube-scheduler");
  config::LeaderElection wrong;
  wrong.renew_deadline = Duration::Seconds(20);
  EXPECT_FALSE(LeaderOptions(wrong, {}).has_value());
}

TEST(LeaderOptions, WhatTheCommandLineSaysGoesBeforeTheConfiguration) {
  const config::LeaderElection configured{.leader_elect = false, .resource_name = "mine"};
  EXPECT_EQ(Combined(configured, {}), configured);
  cli::LeaderElectOptions given;
  given.elect = true;
  given.retry_period = Duration::Seconds(1);
  const config::LeaderElection combined = Combined(configured, given);
  EXPECT_TRUE(combined.leader_elect);
  EXPECT_EQ(combined.retry_period, Duration::Seconds(1));
  EXPECT_EQ(combined.lease_duration, Duration::Seconds(15));
  EXPECT_EQ(combined.resource_name, "mine");
}

}  // namespace
}  // namespace berth::cmd
