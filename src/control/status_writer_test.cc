// Goal: conditions and events say what is so, once, fenced, and never get stuck. Method: the test
// plays engine, API server and watch, and looks at each request. Bodies are what kube-scheduler
// sends.
#include "control/status_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "testing/hashes.h"

namespace berth::control {
namespace {

class Rig {
 public:
  explicit Rig(StatusWriter::Options options = {}) : writer(std::move(options)), client({}) {}

  void Pump() {
    writer.Pump(now, client, out);
    for (env::Output& output : out) requests.push_back(std::get<env::SendRequest>(output));
    out.clear();
  }
  void Done(size_t index, client::Outcome outcome, int status = 200) {
    std::vector<client::Event> events;
    client.Handle(now,
                  env::Response{.call = requests[index].call,
                                .response = {.status = status, .headers = {}, .body = {}}},
                  out, events);
    EXPECT_TRUE(writer.OnCallDone(now, {.call = requests[index].call,
                                        .outcome = outcome,
                                        .response = {.status = status, .headers = {}, .body = {}},
                                        .failure = {}}));
    for (env::Output& output : out) requests.push_back(std::get<env::SendRequest>(output));
    out.clear();
  }
  // The patch that is sent when it is due, and how long that took; of an index of 0 there is none.
  std::pair<size_t, int64_t> NextPatch() {
    const Instant began = now;
    now = std::max(now, writer.wake_at());
    const size_t next = requests.size();
    Pump();
    for (size_t i = next; i < requests.size(); ++i) {
      if (requests[i].request.method == env::Method::kPatch) return {i, (now - began).ns / kSecond};
    }
    return {};
  }
  // Refuses the patch, and each that follows; how long each waited.
  std::vector<int64_t> WaitsOfRefused(size_t patch, size_t count) {
    std::vector<int64_t> waits;
    while (waits.size() < count) {
      Done(patch, client::Outcome::kRefused, 403);
      const auto [next, waited] = NextPatch();
      waits.push_back(waited);
      patch = next;
    }
    last = patch;
    return waits;
  }
  [[nodiscard]] std::string_view body(size_t index) const {
    return requests[index].request.body.view();
  }

  Instant now = Instant::FromSeconds(1'000);
  StatusWriter writer;
  client::Client client;
  env::Outbox out;
  std::vector<env::SendRequest> requests;
  size_t last = 0;  // The patch that WaitsOfRefused left unanswered.

 private:
  static constexpr int64_t kSecond = Duration::Seconds(1).ns;
};

api::Pod MakePod(const std::string& version) {
  api::Pod pod;
  pod.meta.namespace_name = "ns";
  pod.meta.name = "p";
  pod.meta.uid = "u1";
  pod.meta.resource_version = version;
  pod.spec.Edit().scheduler_name = "default-scheduler";
  return pod;
}

api::Pod MakeTold(const std::string& version, const std::string& reason,
                  const std::string& message) {
  api::Pod pod = MakePod(version);
  pod.conditions.push_back({.type = "PodScheduled",
                            .status = "False",
                            .reason = reason,
                            .message = message,
                            .transition = Instant::FromSeconds(500)});
  return pod;
}

Waiting Unschedulable(const std::string& message) {
  return {.reason = kUnschedulable, .message = Bytes(message)};
}

TEST(StatusWriter, TellsWhyAPodWaitsOnce) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("0/1 nodes are available: 1 Insufficient cpu."));
  rig.Pump();
  ASSERT_EQ(rig.requests.size(), 2u);
  EXPECT_EQ(rig.requests[0].request.target, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(
      rig.body(0),
      R"({"metadata":{"uid":"u1","resourceVersion":"5"},"status":{"conditions":[{"type":"PodScheduled",)"
      R"("status":"False","reason":"Unschedulable","message":"0/1 nodes are available: 1 Insufficient cpu.",)"
      R"("lastProbeTime":null,"lastTransitionTime":"1970-01-01T00:16:40Z"}]}})");
  EXPECT_EQ(rig.requests[1].request.target, "/apis/events.k8s.io/v1/namespaces/ns/events");
  EXPECT_NE(rig.body(1).find(R"("reason":"FailedScheduling",)"), std::string::npos);
  EXPECT_NE(rig.body(1).find(R"("action":"Scheduling",)"), std::string::npos);
  EXPECT_NE(rig.body(1).find(R"("reportingInstance":"default-scheduler-berth","type":"Warning"})"),
            std::string::npos);
  rig.Done(0, client::Outcome::kDone);
  rig.Done(1, client::Outcome::kDone, 201);
  rig.Pump();
  rig.writer.Observe(
      MakeTold("6", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."));
  rig.writer.Want("u1", Unschedulable("0/1 nodes are available: 1 Insufficient cpu."));
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 2u);
  EXPECT_EQ(rig.writer.wake_at(), Instant::Never());
}

// Of a pod that waits for longer than events are kept there is one all the same, also when it was
// told by an earlier life of the scheduler.
TEST(StatusWriter, TellsAgainNowAndThenOfWhoWaits) {
  for (const bool restarted : {false, true}) {
    Rig rig({.tell_again = Duration::Minutes(30)});
    rig.writer.Observe(restarted ? MakeTold("5", "Unschedulable", "a") : MakePod("5"));
    rig.writer.Want("u1", Unschedulable("a"));
    rig.Pump();
    const size_t written = restarted ? 0 : 2;
    ASSERT_EQ(rig.requests.size(), written);
    for (size_t i = 0; i < written; ++i) rig.Done(i, client::Outcome::kDone);
    rig.writer.Observe(MakeTold("6", "Unschedulable", "a"));
    for (size_t times = 1; times <= 2; ++times) {
      EXPECT_EQ(rig.writer.wake_at(), rig.now + Duration::Minutes(30));
      rig.now = rig.writer.wake_at();
      rig.Pump();
      ASSERT_EQ(rig.requests.size(), written + times);
      EXPECT_TRUE(rig.body(written + times - 1).contains(R"("reason":"FailedScheduling",)"));
      rig.Done(written + times - 1, client::Outcome::kDone);
    }
    rig.writer.Forget("u1");
    EXPECT_EQ(rig.writer.wake_at(), Instant::Never());
  }
}

TEST(StatusWriter, TellsOfGatedPodsByTheirConditionAlone) {
  Rig rig({.tell_again = Duration::Minutes(30)});
  rig.writer.Observe(MakeTold("5", std::string(kSchedulingGated), "a"));
  rig.writer.Want("u1", {.reason = kSchedulingGated, .message = Bytes(std::string("a"))});
  while (rig.writer.wake_at() != Instant::Never()) {
    rig.now = std::max(rig.now, rig.writer.wake_at());
    rig.Pump();
  }
  EXPECT_TRUE(rig.requests.empty());
}

TEST(StatusWriter, TellsWhoLeads) {
  const client::ObjectRef lease{.namespace_name = "kube-system",
                                .name = "kube-scheduler",
                                .uid = "l1",
                                .resource_version = {}};
  Rig quiet;
  quiet.writer.BecameLeader(quiet.now, lease, "a");
  quiet.Pump();
  EXPECT_TRUE(quiet.requests.empty());
  Rig rig({.tell_leader = true});
  rig.writer.BecameLeader(rig.now, lease, "a");
  rig.Pump();
  ASSERT_EQ(rig.requests.size(), 1u);
  EXPECT_EQ(rig.requests[0].request.target, "/apis/events.k8s.io/v1/namespaces/kube-system/events");
  for (const std::string_view text :
       {R"("note":"a became leader")", R"("reason":"LeaderElection")", R"("kind":"Lease")",
        R"("apiVersion":"coordination.k8s.io/v1")", R"("uid":"l1")"}) {
    EXPECT_TRUE(rig.body(0).contains(text)) << rig.body(0);
  }
}

TEST(StatusWriter, TellsWhichSpecItIsAbout) {
  Rig rig;
  api::Pod pod = MakePod("5");
  pod.meta.generation = 3;
  rig.writer.Observe(pod);
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  EXPECT_TRUE(rig.body(0).contains(
      R"({"type":"PodScheduled","status":"False","observedGeneration":3,"reason":"Unschedulable")"))
      << rig.body(0);
}

// C19: the time of the condition's change is kept while it stays False.
TEST(StatusWriter, ANewReasonKeepsTheTransitionTime) {
  Rig rig;
  rig.writer.Observe(MakeTold("5", "SchedulingGated", "x"));
  rig.writer.Want("u1", Unschedulable("m"));
  rig.Pump();
  EXPECT_NE(rig.body(0).find(R"("lastTransitionTime":"1970-01-01T00:08:20Z")"), std::string::npos);
}

TEST(StatusWriter, AfterARestartNothingIsWrittenAgain) {
  Rig rig;
  rig.writer.Observe(MakeTold("5", "Unschedulable", "m"));
  rig.writer.Want("u1", Unschedulable("m"));
  rig.Pump();
  EXPECT_TRUE(rig.requests.empty());
}

TEST(StatusWriter, LaterChangesWaitForTheInterval) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  rig.Done(0, client::Outcome::kDone);
  rig.Done(1, client::Outcome::kDone);
  rig.writer.Observe(MakeTold("6", "Unschedulable", "a"));
  rig.writer.Want("u1", Unschedulable("b"));
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 2u);
  EXPECT_EQ(rig.writer.wake_at(), rig.now + Duration::Seconds(10));
  rig.now = rig.writer.wake_at();
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 4u);
}

// Why a promise was taken back is told at once, though something else was told just now; what comes
// after that waits for the interval again.
TEST(StatusWriter, WhatFollowsAWithdrawalIsWrittenAtOnce) {
  Rig rig;
  api::Pod pod = MakePod("5");
  pod.nominated_node_name = "n1";
  rig.writer.Observe(pod);
  rig.writer.Want("u1", Unschedulable("a"));
  rig.writer.WantNomination("u1", "");
  rig.Pump();
  rig.Done(0, client::Outcome::kDone);
  rig.Done(1, client::Outcome::kDone);
  rig.writer.Observe(MakeTold("6", "Unschedulable", "a"));
  rig.now = rig.now + Duration::Seconds(1);
  rig.writer.Want("u1", Unschedulable("b"));
  rig.Pump();
  ASSERT_EQ(rig.requests.size(), 4u);
  EXPECT_NE(rig.body(2).find(R"("message":"b")"), std::string::npos);
  rig.Done(2, client::Outcome::kDone);
  rig.Done(3, client::Outcome::kDone);
  rig.writer.Observe(MakeTold("7", "Unschedulable", "b"));
  rig.writer.Want("u1", Unschedulable("c"));
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 4u);
  EXPECT_EQ(rig.writer.wake_at(), rig.now + Duration::Seconds(10));
}

// What was wanted while a write was on its way is not lost, whichever comes first: the answer or
// the watch.
TEST(StatusWriter, WantsDuringAWriteAreWrittenAfterIt) {
  for (const bool watch_first : {true, false}) {
    Rig rig;
    rig.writer.Observe(MakePod("5"));
    rig.writer.Want("u1", Unschedulable("a"));
    rig.Pump();
    rig.writer.Want("u1", Unschedulable("b"));
    if (watch_first) rig.writer.Observe(MakeTold("6", "Unschedulable", "a"));
    rig.Done(0, client::Outcome::kDone);
    if (!watch_first) {
      rig.now = rig.now + Duration::Seconds(60);
      rig.Pump();
      EXPECT_EQ(rig.requests.size(), 2u) << "written on a version that is known to be old";
      rig.writer.Observe(MakeTold("6", "Unschedulable", "a"));
    }
    rig.now = std::max(rig.now, rig.writer.wake_at());
    rig.Pump();
    EXPECT_EQ(rig.requests.size(), 4u);
    EXPECT_NE(rig.body(2).find(R"("resourceVersion":"6")"), std::string::npos);
  }
}

TEST(StatusWriter, AConflictWaitsForTheNextVersionAndDecidesAnew) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  rig.Done(0, client::Outcome::kConflict, 409);
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 2u);
  rig.writer.Observe(MakePod("7"));
  rig.Pump();
  ASSERT_EQ(rig.requests.size(), 3u) << "the event is not told twice";
  EXPECT_NE(rig.body(2).find(R"("resourceVersion":"7")"), std::string::npos);
}

// A02: a conflict with nothing must not keep a nomination that is wanted later.
TEST(StatusWriter, AConflictWithNothingIsReadAndHoldsNoNominationUp) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  rig.Done(0, client::Outcome::kConflict, 409);
  const auto reads = rig.writer.TakeReads(rig.now);
  ASSERT_EQ(reads.size(), 1u);
  rig.writer.Observe(MakePod("5"));
  rig.writer.OnRead(rig.now, reads[0], client::Outcome::kDone);
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 2u) << "the condition is not repeated as fast as reads return";
  rig.writer.WantNomination("u1", "n1");
  rig.Pump();
  ASSERT_EQ(rig.requests.size(), 3u);
  EXPECT_NE(rig.body(2).find(R"("nominatedNodeName":"n1")"), std::string::npos);
}

TEST(StatusWriter, AnUnknownFateIsResolvedByReading) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  rig.Done(0, client::Outcome::kUnknown, 500);
  EXPECT_EQ(rig.writer.wake_at(), rig.now);
  auto reads = rig.writer.TakeReads(rig.now);
  ASSERT_EQ(reads.size(), 1u);
  // A read that fails tells nothing: no write, and another read later, and later.
  for (const auto& [outcome, seconds] :
       {std::pair(client::Outcome::kUnknown, 1), std::pair(client::Outcome::kRefused, 2),
        std::pair(client::Outcome::kUnknown, 4)}) {
    rig.writer.OnRead(rig.now, reads[0], outcome);
    rig.now = rig.now + Duration::Seconds(seconds - 1);
    EXPECT_TRUE(rig.writer.TakeReads(rig.now).empty());
    EXPECT_EQ(rig.writer.wake_at(), rig.now + Duration::Seconds(1));
    rig.now = rig.writer.wake_at();
    reads = rig.writer.TakeReads(rig.now);
    ASSERT_EQ(reads.size(), 1u);
    rig.now = rig.now + Duration::Seconds(60);
    rig.Pump();
    EXPECT_EQ(rig.requests.size(), 2u);
  }
  rig.writer.Observe(MakePod("5"));
  rig.writer.OnRead(rig.now, reads[0], client::Outcome::kDone);
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 3u);
  // It is about the first write: of the second it tells nothing, whenever it comes.
  rig.Done(2, client::Outcome::kUnknown, 500);
  rig.writer.OnRead(rig.now, reads[0], client::Outcome::kDone);
  rig.now = rig.now + Duration::Seconds(60);
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 3u);
  EXPECT_EQ(rig.writer.TakeReads(rig.now).size(), 1u);
}

// A server that fails every write and read of thousands of pods shall not fill the client's queue,
// where bindings wait too.
TEST(StatusWriter, ReadsOnTheirWayAreBounded) {
  Rig rig({.calls_max = 2});
  for (int i = 0; i < 6; ++i) {
    api::Pod pod = MakePod("5");
    pod.meta.uid = "u" + std::to_string(i);
    rig.writer.Observe(pod);
    rig.writer.Want(pod.meta.uid, Unschedulable("a"));
  }
  for (size_t i = 0; rig.writer.counters().failures < 6; ++i) {
    rig.Pump();
    ASSERT_LT(i, rig.requests.size());
    if (rig.requests[i].request.method == env::Method::kPatch) {
      rig.Done(i, client::Outcome::kUnknown, 503);
    } else {
      rig.Done(i, client::Outcome::kDone, 201);
    }
  }
  std::vector<StatusWriter::Read> reads = rig.writer.TakeReads(rig.now);
  ASSERT_EQ(reads.size(), 2u);
  for (int left = 4; left > 0; --left) {
    EXPECT_TRUE(rig.writer.TakeReads(rig.now).empty());
    EXPECT_GT(rig.writer.wake_at(), rig.now);
    rig.writer.OnRead(rig.now, reads.back(), client::Outcome::kUnknown);
    reads.pop_back();
    EXPECT_EQ(rig.writer.wake_at(), rig.now);
    for (StatusWriter::Read& next : rig.writer.TakeReads(rig.now)) reads.push_back(next);
    ASSERT_EQ(reads.size(), 2u);
  }
  EXPECT_EQ(rig.writer.counters().reads_failed, 4u);
  rig.writer.OnRead(rig.now, reads.back(), client::Outcome::kGone);
  EXPECT_EQ(rig.writer.counters().reads_failed, 4u);
}

// Every write is fenced by the version it was decided on: one newer than that tells its fate.
TEST(StatusWriter, ANewerVersionSettlesAnUnknownFateToo) {
  for (const bool before : {true, false}) {
    Rig rig;
    rig.writer.Observe(MakePod("5"));
    rig.writer.Want("u1", Unschedulable("a"));
    rig.Pump();
    if (before) rig.writer.Observe(MakePod("6"));
    rig.Done(0, client::Outcome::kUnknown, 500);
    if (!before) rig.writer.Observe(MakePod("6"));
    EXPECT_TRUE(rig.writer.TakeReads(rig.now).empty());
    rig.now = rig.now + Duration::Seconds(60);
    rig.Pump();
    ASSERT_EQ(rig.requests.size(), 3u);
    EXPECT_NE(rig.body(2).find(R"("resourceVersion":"6")"), std::string::npos);
  }
}

// 20,000 pods whose conditions nobody may write shall not cost 2,000 requests a second for ever.
TEST(StatusWriter, WhatIsRefusedIsWrittenAgainLessAndLessOften) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  EXPECT_EQ(rig.WaitsOfRefused(0, 7), (std::vector<int64_t>{10, 20, 40, 80, 160, 300, 300}));
  rig.Done(rig.last, client::Outcome::kDone);
  rig.writer.Observe(MakeTold("6", "Unschedulable", "a"));
  // One that is done begins anew.
  rig.writer.Want("u1", Unschedulable("b"));
  const size_t next = rig.NextPatch().first;
  ASSERT_NE(next, 0u);
  EXPECT_EQ(rig.WaitsOfRefused(next, 3), (std::vector<int64_t>{10, 20, 40}));
}

TEST(StatusWriter, WhatWasNotSentIsNoRefusal) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  size_t patch = 0;
  for (int i = 0; i < 5; ++i) {
    rig.Done(patch, client::Outcome::kRefused, 0);
    const auto [next, waited] = rig.NextPatch();
    EXPECT_EQ(waited, 10);
    patch = next;
  }
}

// A message counts nodes, and another one is refused as well: it is told when its time comes.
TEST(StatusWriter, AnotherMessageDoesNotHastenWhatIsRefused) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("0"));
  rig.Pump();
  rig.WaitsOfRefused(0, 6);
  rig.Done(rig.last, client::Outcome::kRefused, 403);
  for (int i = 1; i < 299; ++i) {
    rig.now = rig.now + Duration::Seconds(1);
    rig.writer.Want("u1", Unschedulable(std::to_string(i)));
    rig.Pump();
  }
  const auto [next, waited] = rig.NextPatch();
  EXPECT_EQ(waited, 2);
  EXPECT_NE(rig.body(next).find(R"("message":"298")"), std::string::npos);
}

// What autoscalers key on is worth an attempt; reasons that come and go are not worth one each.
TEST(StatusWriter, AnotherReasonHastensWhatIsRefusedOnceTheWaitIsAtItsLongest) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  EXPECT_EQ(rig.WaitsOfRefused(0, 4).back(), 80);
  rig.Done(rig.last, client::Outcome::kRefused, 403);
  rig.writer.Want("u1", {.reason = kSchedulerError, .message = Bytes("b")});
  size_t next = 0;
  int64_t waited = 0;
  std::tie(next, waited) = rig.NextPatch();
  EXPECT_EQ(waited, 160);
  rig.Done(next, client::Outcome::kRefused, 403);
  // Nothing is wanted while it is decided on, and then what was refused.
  rig.writer.Want("u1", {.reason = {}, .message = {}});
  rig.writer.Want("u1", {.reason = kSchedulerError, .message = Bytes("b")});
  rig.now = rig.now + Duration::Seconds(10);
  EXPECT_EQ(rig.writer.wake_at(), rig.now + Duration::Seconds(290));
  rig.writer.Want("u1", Unschedulable("a"));
  std::tie(next, waited) = rig.NextPatch();
  EXPECT_EQ(waited, 0);
  EXPECT_EQ(rig.WaitsOfRefused(next, 2), (std::vector<int64_t>{10, 20}));
}

// One that is not ended misleads others; a promise keeps room from them until it is refused.
TEST(StatusWriter, TheEndOfANominationWaitsAfterRefusalsAndAPromiseDoesNot) {
  Rig rig;
  api::Pod pod = MakePod("5");
  pod.nominated_node_name = "n1";
  rig.writer.Observe(pod);
  rig.writer.WantNomination("u1", "");
  rig.Pump();
  EXPECT_EQ(rig.WaitsOfRefused(0, 11),
            (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}));
  rig.Done(rig.last, client::Outcome::kRefused, 403);
  rig.writer.WantNomination("u1", "n2");
  const auto [next, waited] = rig.NextPatch();
  EXPECT_EQ(waited, 1);
  EXPECT_NE(rig.body(next).find(R"("nominatedNodeName":"n2")"), std::string::npos);
}

TEST(StatusWriter, APodThatIsForgottenIsNotWrittenAgain) {
  Rig rig;
  rig.writer.Observe(MakePod("5"));
  rig.writer.Want("u1", Unschedulable("a"));
  rig.Pump();
  rig.writer.Forget("u1");
  rig.Done(0, client::Outcome::kConflict, 409);
  rig.writer.Want("u1", Unschedulable("b"));
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 2u);
  EXPECT_EQ(rig.writer.pods(), 0u);
}

TEST(StatusWriter, EventsOfBindingsAreBoundedAndCounted) {
  Rig rig({.calls_max = 1, .events_max = 2});
  for (int i = 0; i < 4; ++i) {
    rig.writer.Scheduled(rig.now, {.pod = {.namespace_name = "ns", .name = "p", .uid = "u1"},
                                   .scheduler_name = "default-scheduler",
                                   .node = "n1"});
  }
  rig.Pump();
  ASSERT_EQ(rig.requests.size(), 1u);
  EXPECT_NE(rig.body(0).find(R"("note":"Successfully assigned ns/p to n1")"), std::string::npos);
  EXPECT_NE(rig.body(0).find(R"("action":"Binding",)"), std::string::npos);
  EXPECT_NE(rig.body(0).find(R"("reason":"Scheduled",)"), std::string::npos);
  EXPECT_EQ(rig.writer.counters().events_dropped, 2u);
  EXPECT_EQ(rig.writer.wake_at(), Instant::Never());
  rig.Done(0, client::Outcome::kRefused, 403);
  rig.Pump();
  EXPECT_EQ(rig.requests.size(), 2u);
}

// Goal: two writers of equal hash write the same from here on. Method: one moment until which is
// waited, after refusals of different numbers; one wish, after different reasons were refused.
TEST(StatusWriter, ItsHashHoldsWhatWasRefused) {
  testing::HashesApart<int64_t> counts(
      [](const int64_t& count) {
        Rig rig({.interval = StatusWriter::kRefusedWaitMax});
        rig.now = rig.now - StatusWriter::kRefusedWaitMax * count;
        rig.writer.Observe(MakePod("5"));
        rig.writer.Want("u1", Unschedulable("a"));
        rig.Pump();
        rig.WaitsOfRefused(0, static_cast<size_t>(count) - 1);
        rig.Done(rig.last, client::Outcome::kRefused, 403);
        return testing::StateHash(rig.writer);
      },
      1);
  counts.With("count", [](int64_t& count) { count = 2; });
  testing::HashesApart<std::string_view> reasons(
      [](const std::string_view& reason) {
        Rig rig;
        rig.writer.Observe(MakePod("5"));
        rig.writer.Want("u1", {.reason = reason, .message = Bytes("a")});
        rig.Pump();
        rig.Done(0, client::Outcome::kRefused, 403);
        rig.writer.Want("u1", {.reason = kSchedulingGated, .message = Bytes("b")});
        return testing::StateHash(rig.writer);
      },
      kUnschedulable);
  reasons.With("reason", [](std::string_view& reason) { reason = kSchedulerError; });
}

// Goal: two writers of equal hash write the same from here on. Method: events that wait and differ
// in one member each.
TEST(StatusWriter, ItsHashHoldsTheWholeEvent) {
  struct Case {
    Instant now;
    StatusWriter::Placed placed{
        .pod = {.namespace_name = "ns", .name = "p", .uid = "u", .resource_version = "1"},
        .scheduler_name = "berth",
        .node = "n1"};
  };
  testing::HashesApart<Case> apart([](const Case& one) {
    StatusWriter writer(StatusWriter::Options{});
    writer.Scheduled(one.now, one.placed);
    return testing::StateHash(writer);
  });
  apart.With("time", [](Case& c) { c.now = Instant::FromSeconds(1); });
  apart.With("namespace", [](Case& c) { c.placed.pod.namespace_name = "ns2"; });
  apart.With("name", [](Case& c) { c.placed.pod.name = "q"; });
  apart.With("uid", [](Case& c) { c.placed.pod.uid = "v"; });
  apart.With("scheduler", [](Case& c) { c.placed.scheduler_name = "other"; });
  apart.With("node", [](Case& c) { c.placed.node = "n2"; });
}

}  // namespace
}  // namespace berth::control
