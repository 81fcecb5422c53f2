// Goal: what is recorded of an actor is what it was stepped with and did; outside it is that actor;
// and made anew when the sink is full, it begins as a fresh one whose calls nobody takes for the
// earlier one's. Method: an actor that says what it hears, and a sink in memory.
#include "env/recorded_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace berth::env {
namespace {

constexpr ExchangeId kStop{99};
constexpr Instant kNow = Instant::FromSeconds(1'000);

// Its first Tick begins a watch (call 1) and a write (call 2), each later one a write.
class Echo final : public Actor {
 public:
  explicit Echo(std::vector<std::string>& heard) : heard_(heard) {}
  void Step(Instant /*now*/, Input input, Outbox& out) override {
    heard_.push_back(Describe(input));
    if (std::holds_alternative<Tick>(input)) {
      if (next_ == 1)
        out.emplace_back(SendRequest{.call = {next_++}, .request = {}, .stream = true});
      out.emplace_back(SendRequest{.call = {next_++}, .request = {}});
    }
    if (const auto* arrived = std::get_if<RequestArrived>(&input)) {
      if (arrived->exchange == kStop && hangs_) return;
      out.emplace_back(
          Respond{.exchange = arrived->exchange,
                  .response = {.status = 200, .headers = {}, .body = Bytes(std::string("own\n"))}});
    }
  }
  [[nodiscard]] Instant wake_at() const override { return Instant::Never(); }
  void AddTo(Hasher& hasher) const override { hasher.Add(next_); }
  bool hangs_ = false;

 private:
  std::vector<std::string>& heard_;
  uint64_t next_ = 1;
};

class Sink final : public StepSink {
 public:
  [[nodiscard]] State state() const override { return now; }
  void Take(RecordedStep step) override { AppendStep(step, items); }
  void BeginAnew(std::string header) override {
    EXPECT_EQ(now, State::kFull);
    headers.push_back(std::move(header));
    now = State::kOpen;
    items.clear();
  }
  [[nodiscard]] std::string MetricsText() const override { return "recording\n"; }

  State now = State::kOpen;
  std::string items;
  std::vector<std::string> headers;
};

class RecordedActorTest : public ::testing::Test {
 protected:
  RecordedActor Make(bool restarts, bool hangs = false) {
    auto first = std::make_unique<Echo>(heard_);
    first->hangs_ = hangs;
    RecordedActor::Restarts wanted;
    if (restarts) {
      wanted.stop = kStop;
      wanted.make = [this] {
        return RecordedActor::Life{.actor = std::make_unique<Echo>(heard_), .header = "next"};
      };
    }
    return {std::move(first), sink_, std::move(wanted)};
  }
  std::vector<std::string> Step(RecordedActor& actor, Input input, Instant now = kNow) {
    Outbox out;
    actor.Step(now, std::move(input), out);
    std::vector<std::string> texts;
    for (const Output& output : out) texts.push_back(TextOf(output));
    return texts;
  }
  static Input Asks(ExchangeId exchange, std::string target) {
    return RequestArrived{
        .exchange = exchange,
        .peer = {},
        .request = {
            .method = Method::kGet, .target = std::move(target), .headers = {}, .body = {}}};
  }
  [[nodiscard]] size_t Recorded() const {
    std::string_view rest = sink_.items;
    size_t steps = 0;
    for (; !rest.empty(); ++steps) EXPECT_TRUE(TakeItem(rest).has_value());
    return steps;
  }

  std::vector<std::string> heard_;
  Sink sink_;
};

TEST_F(RecordedActorTest, RecordsEachStepWhileTheSinkIsOpen) {
  RecordedActor actor = Make(false);
  EXPECT_EQ(Step(actor, Tick{}).size(), 2u);
  Step(actor, StreamEnded{{1}});
  EXPECT_EQ(Recorded(), 2u);
  sink_.now = StepSink::State::kEnded;
  EXPECT_EQ(Step(actor, Tick{}).size(), 1u);
  EXPECT_EQ(Recorded(), 2u);
  EXPECT_EQ(heard_.size(), 3u);
  sink_.now = StepSink::State::kFull;
  Step(actor, Tick{});
  EXPECT_TRUE(sink_.headers.empty());
}

// What is said of the recording is not the actor's: it is not in the recording.
TEST_F(RecordedActorTest, TellsOfTheRecordingInItsMetricsAlone) {
  RecordedActor actor = Make(false);
  Outbox out;
  actor.Step(kNow, Asks({5}, "/metrics?x=1"), out);
  EXPECT_EQ(std::get<Respond>(out.front()).response.body.view(), "own\nrecording\n");
  std::string_view rest = sink_.items;
  const auto item = TakeItem(rest);
  const Respond own{
      .exchange = {5},
      .response = {.status = 200, .headers = {}, .body = Bytes(std::string("own\n"))}};
  EXPECT_EQ(std::get<StepRead>(*item).outputs, std::vector{TextOf(own)});
  out.clear();
  actor.Step(kNow, Asks({6}, "/healthz"), out);
  EXPECT_EQ(std::get<Respond>(out.front()).response.body.view(), "own\n");
}

TEST_F(RecordedActorTest, BeginsAnewWhenTheSinkIsFullAndTheActorHasStopped) {
  RecordedActor actor = Make(true);
  Step(actor, Tick{});
  sink_.now = StepSink::State::kFull;
  const std::vector<std::string> out = Step(actor, Tick{});
  // Its third call, and then the end of all that is under way; that it stopped is told to nobody.
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[1], "cancel call 1");
  EXPECT_EQ(out[3], "cancel call 3");
  EXPECT_EQ(sink_.headers, std::vector<std::string>{"next"});
  const uint64_t next = uint64_t{1} << 50;
  EXPECT_THAT(Step(actor, Tick{}),
              ::testing::ElementsAre(::testing::HasSubstr("call " + std::to_string(next + 1)),
                                     ::testing::HasSubstr("call " + std::to_string(next + 2))));
  // The recording has the names of a life.
  std::string_view rest = sink_.items;
  const auto item = TakeItem(rest);
  EXPECT_THAT(std::get<StepRead>(*item).outputs.front(), ::testing::StartsWith("call 1 "));
  // Of the life before nothing is heard, of this one all.
  heard_.clear();
  Step(actor, StreamEnded{{1}});
  EXPECT_TRUE(heard_.empty());
  Step(actor, StreamEnded{{next + 1}});
  EXPECT_EQ(heard_, std::vector<std::string>{"watch 1 ended"});
}

// Lists that fill the file at once make no scheduler that does nothing but begin.
TEST_F(RecordedActorTest, BeginsAnewOnceInTenMinutesAtMost) {
  RecordedActor actor = Make(true);
  const auto fill = [&](Duration after) {
    sink_.now = StepSink::State::kFull;
    Step(actor, Tick{}, kNow + after);
    return sink_.headers.size();
  };
  EXPECT_EQ(fill({}), 1u);
  EXPECT_EQ(fill(Duration::Seconds(1)), 1u);
  EXPECT_EQ(fill(Duration::Seconds(599)), 1u);
  EXPECT_EQ(fill(Duration::Minutes(10)), 2u);
  EXPECT_EQ(fill(Duration::Minutes(19)), 2u);
  EXPECT_EQ(fill(Duration::Minutes(20)), 3u);
}

TEST_F(RecordedActorTest, WhatHasEndedIsNotCancelled) {
  RecordedActor actor = Make(true);
  Step(actor, Tick{});
  Step(actor, Response{.call = {1}, .response = {.status = 200, .headers = {}, .body = {}}});
  Step(actor, Response{.call = {2}, .response = {.status = 200, .headers = {}, .body = {}}});
  sink_.now = StepSink::State::kFull;
  EXPECT_THAT(Step(actor, StreamDrained{.exchange = {1}, .bytes = 1}),
              ::testing::ElementsAre("cancel call 1"));  // A watch goes on after its 200.
}

TEST_F(RecordedActorTest, WaitsNoLongerForItsStopThanPatienceLasts) {
  RecordedActor actor = Make(true, /*hangs=*/true);
  Step(actor, Tick{});
  sink_.now = StepSink::State::kFull;
  Step(actor, Tick{});
  EXPECT_TRUE(sink_.headers.empty());
  EXPECT_EQ(actor.wake_at(), kNow + Duration::Seconds(10));
  Step(actor, Tick{}, kNow + Duration::Seconds(9));
  EXPECT_TRUE(sink_.headers.empty());
  Step(actor, Tick{}, kNow + Duration::Seconds(10));
  EXPECT_EQ(sink_.headers.size(), 1u);
  EXPECT_EQ(actor.wake_at(), Instant::Never());
}

// The process ends: it is told that the actor has stopped, and no other begins.
TEST_F(RecordedActorTest, AStopFromOutsideIsAnsweredAndFinal) {
  RecordedActor stopped = Make(true);
  EXPECT_EQ(Step(stopped, Asks(kStop, "/stop")).size(), 1u);
  sink_.now = StepSink::State::kFull;
  Step(stopped, Tick{});
  EXPECT_TRUE(sink_.headers.empty());
  // Also while it stops for the next life.
  RecordedActor between = Make(true, /*hangs=*/true);
  Step(between, Tick{});
  Step(between, Asks(kStop, "/stop"));
  Step(between, Tick{}, kNow + Duration::Minutes(1));
  EXPECT_TRUE(sink_.headers.empty());
}

}  // namespace
}  // namespace berth::env
