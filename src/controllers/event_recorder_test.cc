// Goal: Events are raised, combined and held back as client-go's recorder does, none stands in the
// way of another, and what is remembered stays bounded. Method: the recorder alone with a client
// whose calls are answered by hand.
#include "controllers/event_recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/hashes.h"

namespace berth::controllers {
namespace {

const KindNames kSet{.api_version = "apps/v1", .kind = "ReplicaSet"};

class EventRecorderTest : public ::testing::Test {
 protected:
  void Tell(const std::string& message, const std::string& object = "web") {
    Head head;
    head.namespace_name = "d";
    head.name = object;
    head.uid = "uid-" + object;
    recorder_.Tell(now_, head, kSet, "replicaset-controller",
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
  EXPECT_EQ(Settle(), 100 - static_cast<int>(EventRecorder::kInFlightMax));
}

// Goal: two recorders of equal hash write the same from here on. Method: what was told differs in
// one thing each; then two ways to one state.
TEST(EventRecorderHash, HoldsAllOfWhatWasTold) {
  struct Case {
    Head object{.namespace_name = "d", .name = "web", .uid = "u", .resource_version = "1"};
    KindNames kind = kSet;
    std::string component = "replicaset-controller";
    Told told{.reason = "SuccessfulCreate", .message = "m"};
    Instant now = Instant::FromSeconds(1'800'000'000);
    std::string last = "the same";
  };
  testing::HashesApart<Case> apart([](const Case& one) {
    EventRecorder recorder;
    recorder.Tell(one.now, one.object, one.kind, one.component, one.told);
    // Ten that differ stand under one key with the last one's message.
    for (int i = 0; i < 10; ++i) {
      Told similar = one.told;
      similar.message = i < 9 ? std::to_string(i) : one.last;
      recorder.Tell(one.now, one.object, one.kind, one.component, similar);
    }
    return testing::StateHash(recorder);
  });
  apart.With("kind", [](Case& c) { c.kind.kind = "StatefulSet"; });
  apart.With("its version", [](Case& c) { c.kind.api_version = "apps/v2"; });
  apart.With("namespace", [](Case& c) { c.object.namespace_name = "e"; });
  apart.With("name", [](Case& c) { c.object.name = "other"; });
  apart.With("uid", [](Case& c) { c.object.uid = "v"; });
  apart.With("resourceVersion", [](Case& c) { c.object.resource_version = "2"; });
  apart.With("component", [](Case& c) { c.component = "job-controller"; });
  apart.With("warning", [](Case& c) { c.told.warning = true; });
  apart.With("reason", [](Case& c) { c.told.reason = "FailedCreate"; });
  apart.With("message", [](Case& c) { c.told.message = "n"; });
  apart.With("the combined message", [](Case& c) { c.last = "another"; });
  apart.With("time", [](Case& c) { c.now = c.now + Duration::Seconds(1); });
}

TEST_F(EventRecorderTest, TheOrderOfAnswersLeavesNoTraceInTheHash) {
  Tell("x", "a");
  Tell("x", "b");
  const EventRecorder told = recorder_;
  EXPECT_EQ(Send().size(), 2u);
  const EventRecorder sent = recorder_;
  EXPECT_NE(testing::StateHash(sent), testing::StateHash(told));
  const auto answered = [&](bool first) {
    EventRecorder recorder = sent;
    for (const bool which : {first, !first}) {
      EXPECT_TRUE(recorder.OnCallDone({.call = calls_[which ? 0 : 1],
                                       .outcome = client::Outcome::kDone,
                                       .response = {},
                                       .failure = {}}));
    }
    return testing::StateHash(recorder);
  };
  EXPECT_EQ(answered(true), answered(false));
  EXPECT_NE(answered(true), testing::StateHash(sent));
}

TEST_F(EventRecorderTest, WhatIsRememberedIsBounded) {
  for (size_t i = 0; i < 3 * EventRecorder::kObjectsMax; ++i) {
    now_ = now_ + Duration::Milliseconds(1);
    Tell("x", fmt::format("set-{}", i));
    if (i % 7 == 0) Send();
    if (i % 11 == 0) Answer(201);
  }
  EXPECT_LE(recorder_.objects(), EventRecorder::kObjectsMax);
  Settle();
  EXPECT_EQ(recorder_.due(), 0u);
  for (int i = 0; i < 1000; ++i) {
    now_ = now_ + Duration::Minutes(11);
    Tell(fmt::format("message {}", i));
    Settle();
  }
  EXPECT_LE(recorder_.entries(), EventRecorder::kObjectsMax + EventRecorder::kEntriesMax);
}

// Goal: a server that does not answer makes nothing grow. Method: all calls hang while ever new
// objects, and ever new messages of one, are told of.
TEST_F(EventRecorderTest, WhatWaitsIsBoundedWhileNoCallEnds) {
  for (size_t i = 0; i < 3 * EventRecorder::kObjectsMax; ++i) {
    now_ = now_ + Duration::Milliseconds(1);
    Tell("x", fmt::format("set-{}", i));
    Send();
  }
  EXPECT_EQ(calls_.size(), EventRecorder::kInFlightMax);
  EXPECT_EQ(recorder_.due(), EventRecorder::kObjectsMax - EventRecorder::kInFlightMax);
  for (size_t i = 0; i < 3 * EventRecorder::kEntriesMax; ++i) {
    now_ = now_ + Duration::Minutes(11);
    Tell(fmt::format("message {}", i));
    Send();
  }
  EXPECT_LE(recorder_.due(), EventRecorder::kObjectsMax + EventRecorder::kEntriesMax);
  EXPECT_LE(recorder_.entries(), EventRecorder::kObjectsMax + EventRecorder::kEntriesMax);
  // All that was told last, and is still remembered, is written.
  const size_t due = recorder_.due();
  Answer(201);
  EXPECT_EQ(static_cast<size_t>(Settle()), due);
}

}  // namespace
}  // namespace berth::controllers
