// Goal: Events are raised, combined and held back as client-go's recorder does, none stands in the
// way of another, and what is remembered stays bounded. Method: the recorder alone with a client
// whose calls are answered by hand.
#include "controllers/event_recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::controllers {
namespace {

class EventRecorderTest : public ::testing::Test {
 protected:
  void Tell(const std::string& message, const std::string& object = "web") {
    Head head;
    head.kind = api::KindId::kReplicaSet;
    head.namespace_name = "d";
    head.name = object;
    head.uid = "uid-" + object;
    recorder_.Tell(now_, head, "replicaset-controller",
                   {.reason = "SuccessfulCreate", .message = message});
  }
  // Sends what is due; the requests as "METHOD target".
  std::vector<std::string> Send() {
    env::Outbox out;
    recorder_.Send(now_, client_, out);
    std::vector<std::string> sent;
    for (const env::Output& output : out) {
      const auto* request = std::get_if<env::SendRequest>(&output);
      if (request == nullptr) continue;
      calls_.push_back(request->call);
      sent.push_back(std::string(ToString(request->request.method)) + " " +
                     request->request.target.substr(0, request->request.target.rfind('.')));
      bodies_.emplace_back(request->request.body.view());
    }
    return sent;
  }
  void Answer(int status) {
    for (const env::CallId call : std::exchange(calls_, {})) {
      env::Outbox out;
      std::vector<client::Event> events;
      client_.Handle(now_, env::Response{call, {.status = status, .headers = {}, .body = {}}}, out,
                     events);
      for (const client::Event& event : events) {
        const auto* done = std::get_if<client::CallDone>(&event);
        ASSERT_NE(done, nullptr);
        EXPECT_TRUE(recorder_.OnCallDone(*done));
      }
    }
  }
  // Until nothing is due any more; how many writes it took.
  int Settle() {
    int writes = 0;
    while (true) {
      const size_t sent = Send().size();
      if (sent == 0) return writes;
      writes += static_cast<int>(sent);
      Answer(200);
    }
  }

  Instant now_ = Instant::FromSeconds(1'800'000'000);
  client::Client client_{client::Options{}};
  EventRecorder recorder_;
  std::vector<env::CallId> calls_;
  std::vector<std::string> bodies_;
};

using Lines = std::vector<std::string>;

TEST_F(EventRecorderTest, ARepeatedEventIsCountedOnTheFirst) {
  Tell("Created pod: a");
  EXPECT_EQ(Send(), Lines{"POST /api/v1/namespaces/d/events"});
  EXPECT_NE(bodies_[0].find(R"("count":1)"), std::string::npos) << bodies_[0];
  // While it is on its way nothing is known to patch.
  Tell("Created pod: a");
  Tell("Created pod: a");
  EXPECT_EQ(Send(), Lines{});
  Answer(201);
  EXPECT_EQ(Send(), Lines{"PATCH /api/v1/namespaces/d/events/web"});
  EXPECT_NE(bodies_[1].find(R"("count":3)"), std::string::npos) << bodies_[1];
  // It has expired: the next time it is made anew.
  Answer(404);
  Tell("Created pod: a");
  EXPECT_EQ(Send(), Lines{"POST /api/v1/namespaces/d/events"});
}

TEST_F(EventRecorderTest, ManyThatDifferByTheirMessageBecomeOne) {
  for (int i = 0; i < 500; ++i) Tell(fmt::format("Created pod: {}", i));
  EXPECT_EQ(Settle(), static_cast<int>(EventRecorder::kSimilarMax));
  EXPECT_NE(bodies_.back().find("(combined from similar events): Created pod: 499"),
            std::string::npos)
      << bodies_.back();
  EXPECT_NE(bodies_.back().find(R"("count":491)"), std::string::npos) << bodies_.back();
}

TEST_F(EventRecorderTest, AfterABurstOneIsWrittenEachFiveMinutes) {
  int writes = 0;
  for (int i = 0; i < 100; ++i) {
    Tell("the same");
    writes += Settle();
  }
  EXPECT_EQ(writes, EventRecorder::kBurst);
  for (int minute = 1; minute <= 20; ++minute) {
    now_ = now_ + Duration::Minutes(1);
    Tell("the same");
    const int more = Settle();
    EXPECT_EQ(more, minute % 5 == 0 ? 1 : 0) << minute;
  }
  EXPECT_NE(bodies_.back().find(R"("count":120)"), std::string::npos) << bodies_.back();
  // Others have a burst of their own.
  Tell("the same", "other");
  EXPECT_EQ(Settle(), 1);
}

TEST_F(EventRecorderTest, FewAreOnTheirWayAtOnceAndNoneIsForgotten) {
  for (int i = 0; i < 100; ++i) Tell("x", fmt::format("set-{}", i));
  EXPECT_EQ(Send().size(), EventRecorder::kInFlightMax);
  EXPECT_EQ(Send().size(), 0u);
  Answer(500);
  EXPECT_GT(Settle(), 0);
}

TEST_F(EventRecorderTest, WhatIsRememberedIsBounded) {
  for (size_t i = 0; i < 3 * EventRecorder::kObjectsMax; ++i) {
    now_ = now_ + Duration::Milliseconds(1);
    Tell("x", fmt::format("set-{}", i));
    if (i % 7 == 0) Send();
    if (i % 11 == 0) Answer(201);
  }
  EXPECT_LE(recorder_.objects(), EventRecorder::kObjectsMax);
  for (int i = 0; i < 1000; ++i) {
    now_ = now_ + Duration::Minutes(11);
    Tell(fmt::format("message {}", i));
    Settle();
  }
  EXPECT_LE(recorder_.entries(), EventRecorder::kObjectsMax + EventRecorder::kEntriesMax);
}

}  // namespace
}  // namespace berth::controllers
