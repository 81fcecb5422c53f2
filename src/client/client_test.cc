// Goal: list-watches and calls do what their headers say, whatever the server does. Method: a
// scripted server: the test plays the server's part input by input and looks at every request and
// every event.
#include "client/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "testing/hashes.h"

namespace berth::client {
namespace {

using testing::StateHash;

const WatchOptions kPods{.resource = {.group = "", .version = "v1", .plural = "pods"},
                         .namespace_name = {},
                         .label_selector = {},
                         .field_selector = {}};

std::string Object(std::string_view name, std::string_view uid, int version) {
  return fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"default","uid":"{}","resourceVersion":"{}"}},"spec":{{"x":"}}\"\n"}}}})",
      name, uid, version);
}

std::string Frame(std::string_view type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

std::string Bookmark(int version) {
  return Frame("BOOKMARK",
               fmt::format(R"({{"kind":"Pod","metadata":{{"resourceVersion":"{}"}}}})", version));
}

std::string GoneFrame() {
  return Frame(
      "ERROR",
      R"({"kind":"Status","status":"Failure","reason":"Expired","message":"old","code":410})");
}

std::string List(int version, const std::vector<std::string>& items, std::string_view next = "") {
  std::string body = fmt::format(
      R"({{"kind":"PodList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[)",
      version, next);
  for (size_t i = 0; i < items.size(); ++i) body += (i > 0 ? "," : "") + items[i];
  return body + "]}";
}

// A client and the far end of its requests.
class Rig {
 public:
  explicit Rig(Options options = {}) : client(std::move(options)) {}

  void Step(const env::Input& input) {
    events.clear();
    client.Handle(now, input, out, events);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) requests.push_back(*send);
      if (auto* cancel = std::get_if<env::CancelCall>(&output)) cancelled.push_back(cancel->call);
    }
    out.clear();
    for (const Event& event : events) Print(event);
  }
  // Lets time pass until the client has something to do, and does it.
  void Wake() {
    ASSERT_NE(client.wake_at(), Instant::Never());
    now = std::max(now, client.wake_at());
    Step(env::Tick{});
  }
  env::CallId Call(Request request) {
    const env::CallId call = client.Call(now, std::move(request), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) requests.push_back(*send);
    }
    out.clear();
    return call;
  }
  void Answer(int status, std::string body, std::vector<env::Header> headers = {}) {
    Step(env::Response{
        .call = requests.back().call,
        .response = {
            .status = status, .headers = std::move(headers), .body = Bytes(std::move(body))}});
  }
  void Data(std::string text) {
    Step(env::StreamData{.call = requests.back().call, .data = Bytes(std::move(text))});
  }
  void End() { Step(env::StreamEnded{.call = requests.back().call}); }
  void Fail(env::CallFailure failure, std::string why = "") {
    Step(env::CallFailed{.call = requests.back().call, .failure = failure, .why = std::move(why)});
  }
  const std::string& target() const { return requests.back().request.target; }
  std::string Told() { return std::exchange(told, {}); }

  Client client;
  Instant now{1'000'000'000};
  env::Outbox out;
  std::vector<Event> events;
  std::vector<env::SendRequest> requests;
  std::vector<env::CallId> cancelled;
  std::vector<std::string> troubles;
  std::string told;

 private:
  void Print(const Event& event) {
    if (const auto* object = std::get_if<ObjectEvent>(&event)) {
      constexpr std::string_view kSigns = "+*-";
      told += fmt::format("{}{}:{} ", kSigns[static_cast<size_t>(object->change)], object->name,
                          object->uid);
    }
    if (const auto* synced = std::get_if<Synced>(&event))
      told += synced->first ? "first " : "synced ";
    if (const auto* trouble = std::get_if<WatchTrouble>(&event)) {
      told += fmt::format("trouble{}{} ", trouble->status, trouble->repeated ? "again" : "");
      troubles.push_back(trouble->message);
    }
    if (const auto* done = std::get_if<CallDone>(&event)) {
      told += fmt::format("call{}={}{} ", done->call.value, ToString(done->outcome),
                          done->failure ? "!" : "");
    }
  }
};

// Lists two objects and opens the watch.
void Sync(Rig& rig) {
  rig.client.Watch(kPods);
  rig.Wake();
  ASSERT_EQ(rig.target(), "/api/v1/pods?limit=500");
  rig.Answer(200, List(10, {Object("a", "u1", 3), Object("b", "u2", 4)}));
  ASSERT_EQ(rig.Told(), "+a:u1 +b:u2 first ");
  ASSERT_TRUE(
      rig.target().starts_with("/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds="));
  ASSERT_TRUE(rig.target().ends_with("&resourceVersion=10"));
  ASSERT_TRUE(rig.requests.back().stream);
  rig.Answer(200, "");
}

TEST(Watch, ListsThenWatchesFromTheListsVersion) {
  Rig rig;
  Sync(rig);
  rig.Data(Frame("ADDED", Object("c", "u3", 11)) + Frame("MODIFIED", Object("a", "u1", 12)) +
           Frame("DELETED", Object("b", "u2", 13)));
  EXPECT_EQ(rig.Told(), "+c:u3 *a:u1 -b:u2 ");
  EXPECT_EQ(rig.client.watch({0}).version(), "13");
}

TEST(Watch, ReadsAListInPages) {
  Rig rig({.page_limit = 2});
  rig.client.Watch(kPods);
  rig.Wake();
  EXPECT_EQ(rig.target(), "/api/v1/pods?limit=2");
  rig.Answer(200, List(10, {Object("a", "u1", 3), Object("b", "u2", 4)}, "t/1=="));
  EXPECT_EQ(rig.target(), "/api/v1/pods?limit=2&continue=t%2F1%3D%3D");
  EXPECT_EQ(rig.Told(), "+a:u1 +b:u2 ");
  EXPECT_FALSE(rig.client.synced());
  rig.Answer(200, List(10, {Object("c", "u3", 5)}));
  EXPECT_EQ(rig.Told(), "+c:u3 first ");
  EXPECT_TRUE(rig.client.synced());
}

TEST(Watch, AContinuationThatIsGoneMakesItListAllAtOnce) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3), Object("b", "u2", 4)}, "t1"));
  rig.Answer(410, "");
  rig.Wake();
  EXPECT_EQ(rig.target(), "/api/v1/pods");
  rig.Told();
  rig.Answer(200, List(20, {Object("b", "u2", 15)}));
  EXPECT_EQ(rig.Told(), "-a:u1 *b:u2 first ");
}

// Where all at once is more than the server or its clients can take, pages are tried again.
TEST(Watch, AListOfAllThatFailsIsReadInPagesAgain) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3)}, "t1"));
  rig.Answer(410, "");
  rig.Wake();
  ASSERT_EQ(rig.target(), "/api/v1/pods");
  rig.Fail(env::CallFailure::kTimeout);
  rig.Wake();
  EXPECT_EQ(rig.target(), "/api/v1/pods?limit=500");
}

// Nobody listens, a name that is none, a certificate that is not trusted: an operator is told which.
// What goes on as it was is told once.
TEST(Watch, TellsWhichCheckFailedAndOnce) {
  Rig rig;
  rig.client.Watch(kPods);
  const std::string untrusted = "tls: failed to verify certificate: x509: unknown authority";
  for (const std::string& why : {untrusted, untrusted, std::string("connection refused")}) {
    rig.Wake();
    rig.Fail(env::CallFailure::kNotSent, why);
  }
  EXPECT_EQ(rig.Told(), "trouble0 trouble0again trouble0 ");
  EXPECT_EQ(rig.troubles.front(), "list of pods: no connection to the server: " + untrusted);
  // It went well in between.
  rig.Wake();
  rig.Answer(200, List(10, {}));
  rig.Answer(200, "");
  rig.End();
  rig.Told();
  for (int i = 0; i < 2; ++i) {
    rig.Wake();
    rig.Fail(env::CallFailure::kLost);
    EXPECT_EQ(rig.Told(), i == 0 ? "trouble0 " : "trouble0again ");
  }
  rig.Wake();
  rig.Answer(200, "");
  rig.End();
  rig.Wake();
  rig.Fail(env::CallFailure::kLost);
  EXPECT_EQ(rig.Told(), "trouble0 ");
}

// A role that has `list` and not `watch`: what changes is listed, and it is known for how long.
TEST(Watch, WhereItIsRefusedItIsListedAgainAndAgain) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3)}));
  const Instant first = rig.now;
  Duration longest;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(rig.requests.back().stream);
    rig.Answer(403, R"({"kind":"Status","code":403,"message":"pods is forbidden"})");
    EXPECT_EQ(rig.client.watch({0}).refused_for(), rig.now - first);
    const Instant refused = rig.now;
    rig.Wake();
    longest = std::max(longest, rig.now - refused);
    ASSERT_EQ(rig.target(), "/api/v1/pods?limit=500");
    rig.Told();
    rig.Answer(200, List(20 + i, {Object("b", "u2", 11)}));
    EXPECT_EQ(rig.Told(), i == 0 ? "-a:u1 +b:u2 synced " : "synced ");
  }
  EXPECT_LE(longest, Duration::Seconds(30));
  rig.Answer(200, "");
  EXPECT_EQ(rig.client.watch({0}).refused_for(), Duration{});
}

TEST(Watch, FramesMayBeTornAtEveryByte) {
  const std::string text = Frame("ADDED", Object("c", "u3", 11)) +
                           Frame("MODIFIED", Object("a", "u1", 12)) + Bookmark(15) +
                           Frame("DELETED", Object("b", "u2", 16));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Rig rig;
    Sync(rig);
    rig.Data(text.substr(0, cut));
    rig.Data(text.substr(cut));
    ASSERT_EQ(rig.Told(), "+c:u3 *a:u1 -b:u2 ") << cut;
    ASSERT_EQ(rig.client.watch({0}).version(), "16");
  }
  Rig rig;
  Sync(rig);
  for (const char c : text) rig.Data(std::string(1, c));
  EXPECT_EQ(rig.Told(), "+c:u3 *a:u1 -b:u2 ");
}

TEST(Watch, ResumesAfterACloseFromTheLastVersionIncludingBookmarks) {
  Rig rig;
  Sync(rig);
  rig.Data(Frame("ADDED", Object("c", "u3", 11)) + Bookmark(40));
  rig.End();
  rig.Wake();
  EXPECT_TRUE(rig.target().ends_with("&resourceVersion=40")) << rig.target();
  EXPECT_EQ(rig.client.watch({0}).counters().lists, 1u);
}

// Its deletion may be of an object that was made and went between two reads.
TEST(Watch, ResumesAfterTheDeletionOfWhatItDidNotKnow) {
  Rig rig;
  Sync(rig);
  rig.Data(Frame("DELETED", Object("z", "u9", 20)));
  EXPECT_EQ(rig.Told(), "");
  rig.End();
  rig.Wake();
  EXPECT_TRUE(rig.target().ends_with("&resourceVersion=20")) << rig.target();
}

TEST(Watch, DropsABegunLineWhenTheStreamEnds) {
  Rig rig;
  Sync(rig);
  const std::string frame = Frame("ADDED", Object("c", "u3", 11));
  rig.Data(frame.substr(0, 20));
  rig.End();
  rig.Wake();
  rig.Answer(200, "");
  rig.Data(frame);
  EXPECT_EQ(rig.Told(), "+c:u3 ");
}

// D08, D17: what went during a gap is told, with the uid it had; a name's second life
// is a deletion and an addition.
TEST(Watch, RelistsAfter410AndTellsWhatHappenedInTheGap) {
  for (const bool as_frame : {true, false}) {
    Rig rig;
    Sync(rig);
    if (as_frame) {
      rig.Data(GoneFrame());
      EXPECT_EQ(rig.cancelled.size(), 1u);
    } else {
      rig.End();
      rig.Wake();
      rig.Answer(410, "");
    }
    rig.Wake();
    ASSERT_EQ(rig.target(), "/api/v1/pods?limit=500");
    rig.Told();
    rig.Answer(200, List(30, {Object("a", "u9", 25), Object("c", "u3", 26)}));
    EXPECT_EQ(rig.Told(), "-a:u1 -b:u2 +a:u9 +c:u3 synced ");
    EXPECT_TRUE(rig.target().ends_with("&resourceVersion=30"));
  }
}

// Goal: nobody who hears of a relist meets what is new beside what it replaced: a kubelet would
// refuse the pod that stands where the deleted one did. Method: a relist in pages, with all kinds
// of change, and what is read between the pages.
TEST(Watch, ARelistIsToldAtItsEndDeletionsFirst) {
  Rig rig;
  Sync(rig);
  rig.Data(GoneFrame());
  rig.Wake();
  rig.Answer(200, List(30, {Object("A", "u7", 21), Object("a", "u1", 22)}, "t1"));
  EXPECT_EQ(rig.Told(), "");
  std::vector<Event> events;
  rig.client.Learn(rig.now, {0}, Object("a", "u1", 20), events);  // Answered before the list.
  rig.client.Learn(rig.now, {0}, Object("c", "u3", 31), events);  // After it.
  EXPECT_EQ(events.size(), 2u);
  // A page that does not come, and comes again.
  rig.Fail(env::CallFailure::kLost);
  rig.Wake();
  rig.Told();
  rig.Answer(200, List(30, {Object("c", "u3", 24), Object("d", "u4", 25)}));
  EXPECT_EQ(rig.Told(), "-b:u2 +A:u7 *a:u1 +d:u4 synced ");
}

// What a relist showed before it was given up does not count: the next one tells.
TEST(Watch, ARelistThatIsGivenUpTellsNothing) {
  Rig rig;
  Sync(rig);
  rig.Data(GoneFrame());
  rig.Wake();
  rig.Answer(200, List(30, {Object("A", "u7", 21), Object("a", "u1", 3)}, "t1"));
  rig.Answer(410, "");
  EXPECT_EQ(rig.Told(), "");
  rig.Wake();
  ASSERT_EQ(rig.target(), "/api/v1/pods");
  rig.Answer(200, List(40, {Object("b", "u2", 35)}));
  EXPECT_EQ(rig.Told(), "-a:u1 *b:u2 synced ");
}

TEST(Watch, ThePlantedResumeAfter410LosesADeletion) {
  Rig rig({.planted_resume_after_gone = true});
  Sync(rig);
  rig.Data(GoneFrame());
  rig.Wake();
  EXPECT_NE(rig.target().find("watch=true"), std::string::npos);
  EXPECT_EQ(rig.target().find("resourceVersion="), std::string::npos);
}

// D17, C21: replays of old events and equal versions tell nothing.
TEST(Watch, DropsReplays) {
  Rig rig;
  Sync(rig);
  rig.Data(Frame("MODIFIED", Object("a", "u1", 12)) + Frame("MODIFIED", Object("a", "u1", 12)) +
           Frame("MODIFIED", Object("a", "u1", 11)) + Frame("DELETED", Object("b", "u2", 13)));
  EXPECT_EQ(rig.Told(), "*a:u1 -b:u2 ");
  rig.Data(Frame("ADDED", Object("b", "u2", 4)) + Frame("DELETED", Object("b", "u2", 13)));
  EXPECT_EQ(rig.Told(), "");
  EXPECT_EQ(rig.client.watch({0}).counters().replays, 4u);
  EXPECT_EQ(rig.client.watch({0}).version(), "13");
}

TEST(Watch, ADeletionOfAnotherUidIsNotThisOnes) {
  Rig rig;
  Sync(rig);
  rig.Data(Frame("ADDED", Object("a", "u7", 20)) + Frame("DELETED", Object("a", "u1", 21)));
  EXPECT_EQ(rig.Told(), "-a:u1 +a:u7 ");
}

// A binding that was read must not be forgotten because older events of the pod are still on their
// way.
TEST(Watch, WhatWasReadIsNotTakenBackByOlderEvents) {
  Rig rig;
  Sync(rig);
  std::vector<Event> events;
  rig.client.Learn(rig.now, {0}, Object("a", "u1", 20), events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<ObjectEvent>(events[0]).change, Change::kModified);
  rig.Data(Frame("MODIFIED", Object("a", "u1", 15)) + Frame("MODIFIED", Object("b", "u2", 16)) +
           Frame("MODIFIED", Object("a", "u1", 20)) + Frame("MODIFIED", Object("a", "u1", 21)));
  EXPECT_EQ(rig.Told(), "*b:u2 *a:u1 ");
  events.clear();
  rig.client.Learn(rig.now, {0}, Object("a", "u1", 19), events);
  EXPECT_TRUE(events.empty());
}

// A relist's answer may have been on its way while an object was read: a binding that was seen
// would seem undone, and be tried a second time.
TEST(Watch, WhatWasReadIsNotTakenBackByAnOlderList) {
  Rig rig;
  Sync(rig);
  rig.Data(GoneFrame());
  rig.Wake();
  std::vector<Event> events;
  rig.client.Learn(rig.now, {0}, Object("a", "u1", 20), events);
  rig.client.Learn(rig.now, {0}, Object("c", "u3", 21), events);
  ASSERT_EQ(events.size(), 2u);
  rig.Answer(200, List(18, {Object("a", "u1", 3), Object("b", "u2", 4)}));
  EXPECT_EQ(rig.Told(), "synced ");
  rig.Answer(200, "");
  rig.Data(Frame("MODIFIED", Object("a", "u1", 20)) + Frame("ADDED", Object("c", "u3", 21)) +
           Frame("MODIFIED", Object("a", "u1", 22)));
  EXPECT_EQ(rig.Told(), "*a:u1 ");
}

// A read that was answered before a deletion, and comes while the list that knows of the deletion
// is on its way, brings nobody back: the watch starts after it.
TEST(Watch, WhatWasReadBeforeAListThatLacksItIsGone) {
  for (const int version : {3, 16, 18}) {  // As known before; newer; as new as the list.
    Rig rig;
    Sync(rig);
    rig.Data(GoneFrame());
    rig.Wake();
    std::vector<Event> events;
    rig.client.Learn(rig.now, {0}, Object("a", "u1", version), events);
    rig.Answer(200, List(18, {Object("b", "u2", 4)}));
    EXPECT_EQ(rig.Told(), "-a:u1 synced ") << version;
  }
}

// A server that has just begun lists at version 0, and a watch from there tells what exists by now
// in the order of names: none of it is a replay. From then on versions ascend.
TEST(Watch, WhatAWatchFromZeroTellsComesInAnyOrder) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(200, List(0, {}));
  EXPECT_EQ(rig.Told(), "first ");
  ASSERT_TRUE(rig.target().ends_with("&resourceVersion=0"));
  rig.Answer(200, "");
  rig.Data(Frame("ADDED", Object("a", "u1", 9)) + Frame("ADDED", Object("b", "u2", 4)) +
           Frame("MODIFIED", Object("b", "u2", 3)) + Frame("DELETED", Object("c", "u3", 5)));
  EXPECT_EQ(rig.Told(), "+a:u1 +b:u2 ");
  rig.End();
  rig.Wake();
  EXPECT_TRUE(rig.target().ends_with("&resourceVersion=9")) << rig.target();
  rig.Answer(200, "");
  rig.Data(Frame("ADDED", Object("d", "u4", 8)) + Frame("ADDED", Object("e", "u5", 10)));
  EXPECT_EQ(rig.Told(), "+e:u5 ");
}

// What left the selector is gone, though a read showed it after that: nothing else will be told.
TEST(Watch, ADeletionThatIsOlderThanWhatWasReadCounts) {
  Rig rig;
  Sync(rig);
  std::vector<Event> events;
  rig.client.Learn(rig.now, {0}, Object("a", "u1", 20), events);
  rig.Data(Frame("DELETED", Object("a", "u1", 15)));
  EXPECT_EQ(rig.Told(), "-a:u1 ");
}

// A backup was restored: the server does not know the version yet, and says so in one of two ways.
// What it lists then is the truth, though it is older.
TEST(Watch, AVersionThatIsTooLargeLeadsToARelist) {
  const std::string status = R"({"kind":"Status","status":"Failure","reason":"Timeout","code":504,)"
                             R"("message":"Too large resource version: 10, current: 7"})";
  for (const bool as_frame : {true, false}) {
    Rig rig;
    Sync(rig);
    if (as_frame) {
      rig.Data(Frame("ERROR", status));
    } else {
      rig.End();
      rig.Wake();
      rig.Answer(504, status);
    }
    EXPECT_EQ(rig.Told(), "trouble504 ");
    rig.Wake();
    ASSERT_EQ(rig.target(), "/api/v1/pods?limit=500");
    rig.Answer(200, List(7, {Object("a", "u1", 2)}));
    EXPECT_EQ(rig.Told(), "-b:u2 *a:u1 synced ");
    EXPECT_TRUE(rig.target().ends_with("&resourceVersion=7"));
  }
}

TEST(Watch, BacksOffWithJitterWhileTheServerIsAway) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  Duration before{0};
  for (int i = 0; i < 12; ++i) {
    rig.Fail(env::CallFailure::kNotSent);
    const Duration wait = rig.client.wake_at() - rig.now;
    EXPECT_GE(wait,
              std::min(Duration::Milliseconds(100) * (int64_t{1} << i), Duration::Seconds(15)));
    EXPECT_LE(wait, Duration::Seconds(30));
    before = wait;
    rig.Wake();
    EXPECT_EQ(rig.target(), "/api/v1/pods?limit=500");
  }
  EXPECT_GE(before, Duration::Seconds(15));
}

TEST(Watch, AServerThatAnswersEveryWatchWith410IsNotAskedInALoop) {
  Rig rig;
  Sync(rig);
  for (int i = 0; i < 5; ++i) {
    rig.Data(GoneFrame());
    rig.Wake();
    rig.Answer(200, List(30 + i, {}));
    rig.Answer(200, "");
  }
  EXPECT_GE(rig.now, Instant{1'000'000'000} + Duration::Milliseconds(800));
}

TEST(Watch, WhatTheServerDoesNotKnowIsEmptyAndLookedForAgain) {
  Rig rig;
  WatchOptions options = kPods;
  options.may_be_absent = true;
  const WatchId watch = rig.client.Watch(options);
  EXPECT_FALSE(rig.client.absent(watch));
  rig.Wake();
  rig.Answer(404, "404 page not found");
  EXPECT_EQ(rig.Told(), "first ");
  EXPECT_TRUE(rig.client.synced());
  EXPECT_TRUE(rig.client.absent(watch));
  // Soon, and then ever later.
  for (const int64_t milliseconds : {200, 400, 800, 1'600, 3'200, 6'400, 12'800, 25'600, 30'000}) {
    const Instant before = rig.now;
    rig.Wake();
    EXPECT_EQ((rig.now - before).milliseconds(), milliseconds);
    rig.Answer(404, "404 page not found");
    EXPECT_EQ(rig.Told(), "");
  }
  // It is there, and goes again.
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3)}));
  EXPECT_EQ(rig.Told(), "+a:u1 synced ");
  EXPECT_FALSE(rig.client.absent(watch));
  rig.Answer(410, "");
  rig.Wake();
  rig.Answer(404, "404 page not found");
  EXPECT_EQ(rig.Told(), "-a:u1 ");
  EXPECT_TRUE(rig.client.absent(watch));
}

// Its calls are over, its objects forgotten without a word, and its id is free.
TEST(Watch, OneThatIsStoppedTellsNothingMore) {
  Rig rig;
  const WatchId watch{0};
  Sync(rig);
  env::Outbox out;
  rig.client.StopWatch(rig.now, watch, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<env::CancelCall>(out.front()));
  EXPECT_EQ(rig.client.watch(watch).known().size(), 0u);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  EXPECT_TRUE(rig.client.synced());
  WatchOptions options = kPods;
  options.metadata_only = true;
  EXPECT_EQ(rig.client.Watch(options), watch);
  EXPECT_FALSE(rig.client.synced());
  rig.Wake();
  EXPECT_EQ(env::FindHeader(rig.requests.back().request.headers, "accept"),
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
  rig.Answer(200, List(10, {Object("a", "u1", 3)}));
  EXPECT_EQ(rig.Told(), "+a:u1 first ");
  EXPECT_EQ(env::FindHeader(rig.requests.back().request.headers, "accept"),
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
}

// Whatever it was doing: its call ends, and the list that follows is newer than Relist().
TEST(Watch, ARelistThatIsAskedForBeginsAtOnceAndTellsWhatDiffers) {
  Rig rig;
  const WatchId pods = rig.client.Watch(kPods);
  rig.Step(env::Tick{});
  rig.Answer(200, List(10, {Object("a", "u1", 5), Object("b", "u2", 6)}));
  rig.Answer(200, "");
  rig.Told();
  EXPECT_FALSE(rig.client.watch(pods).relisting());
  const env::CallId stream = rig.requests.back().call;
  rig.client.Relist(rig.now, pods, rig.out);
  EXPECT_TRUE(rig.client.watch(pods).relisting());
  rig.Step(env::StreamData{.call = stream, .data = Bytes(Frame("ADDED", Object("c", "u3", 11)))});
  EXPECT_EQ(rig.Told(), "");
  ASSERT_EQ(rig.cancelled.size(), 1u);
  EXPECT_EQ(rig.cancelled[0], stream);
  // Asked for again amid its pages, it begins anew.
  rig.Answer(200, List(12, {Object("a", "u1", 5)}, "more"));
  rig.client.Relist(rig.now, pods, rig.out);
  rig.Step(env::StreamData{.call = stream, .data = {}});
  EXPECT_EQ(rig.target().find("continue="), std::string::npos);
  rig.Answer(200, List(13, {Object("a", "u1", 5), Object("c", "u3", 11)}));
  EXPECT_FALSE(rig.client.watch(pods).relisting());
  EXPECT_EQ(rig.Told(), "-b:u2 +c:u3 synced ");
  EXPECT_NE(rig.target().find("resourceVersion=13"), std::string::npos);
}

TEST(Watch, ASilentStreamIsGivenUp) {
  Rig rig;
  Sync(rig);
  const env::CallId stream = rig.requests.back().call;
  rig.Wake();
  EXPECT_GE(rig.now, Instant::FromSeconds(301 + 30));
  EXPECT_EQ(rig.cancelled, std::vector<env::CallId>{stream});
  rig.Wake();
  EXPECT_TRUE(rig.target().ends_with("&resourceVersion=10"));
}

TEST(Watch, DamagedAnswersMakeItAskAgain) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(200, "no list");
  EXPECT_EQ(rig.Told(), "trouble200 ");
  rig.Wake();
  rig.Answer(200, R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"x"},])");
  EXPECT_EQ(rig.Told(), "trouble200again ");
  rig.Wake();
  rig.Answer(200, List(10, {R"({"metadata":{"name":"x"}})", Object("a", "u1", 1)}));
  EXPECT_EQ(rig.Told(), "trouble0 +a:u1 first ");
  rig.Answer(200, "");
  rig.Data("garbage\n");
  EXPECT_EQ(rig.Told(), "trouble0 ");
  rig.Wake();
  EXPECT_EQ(rig.target(), "/api/v1/pods?limit=500");
}

TEST(Watch, RefusedAnswersAreToldAndTriedAgain) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(403, R"({"kind":"Status","message":"no","reason":"Forbidden","code":403})");
  EXPECT_EQ(rig.Told(), "trouble403 ");
  rig.Wake();
  rig.Answer(429, "", {{"retry-after", "7"}});
  EXPECT_EQ(rig.client.wake_at() - rig.now, Duration::Seconds(7));
}

// ---- Calls -----------------------------------------------------------------------------------

const Resource kPodResource{.group = "", .version = "v1", .plural = "pods"};
const ObjectRef kPod{.namespace_name = "ns", .name = "p", .uid = "u-1", .resource_version = "5"};

TEST(Calls, SayWhyTheyFailed) {
  Rig rig;
  const auto why_of_last = [&rig] { return WhyOf(std::get<CallDone>(rig.events.back())); };
  Request request = Bind(kPod, "n1", {});
  request.patience = Duration{};
  rig.Call(request);
  rig.Fail(env::CallFailure::kTimeout, "context deadline exceeded");
  EXPECT_EQ(why_of_last(), "no answer in time: context deadline exceeded");
  rig.Call(request);
  rig.Answer(403, R"({"kind":"Status","message":"pods is forbidden","code":403})");
  EXPECT_EQ(why_of_last(), "pods is forbidden");
  rig.Call(request);
  rig.Answer(502, "<html>");
  EXPECT_EQ(why_of_last(), "the API server answers 502");
}

TEST(Calls, EveryStatusHasAnOutcome) {
  const std::vector<std::pair<int, std::string>> table = {
      {200, "Done"},    {201, "Done"},    {400, "Refused"},  {401, "Refused"},
      {403, "Refused"}, {404, "Gone"},    {409, "Conflict"}, {410, "Gone"},
      {422, "Refused"}, {500, "Unknown"}, {503, "Unknown"},  {504, "Unknown"}};
  for (const auto& [status, outcome] : table) {
    Rig rig;
    rig.Call(Bind(kPod, "n1", {}));
    rig.Answer(status, "");
    EXPECT_EQ(rig.Told(), "call1=" + outcome + " ") << status;
  }
}

TEST(Calls, AWriteOfUnknownFateIsNotRepeated) {
  for (const env::CallFailure failure : {env::CallFailure::kLost, env::CallFailure::kTimeout}) {
    Rig rig;
    rig.Call(Bind(kPod, "n1", {}));
    rig.Fail(failure);
    EXPECT_EQ(rig.Told(), "call1=Unknown! ");
    EXPECT_EQ(rig.requests.size(), 1u);
    EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  }
}

TEST(Calls, AReadIsRepeatedUntilItsPatienceEnds) {
  Rig rig;
  rig.Call(Get(kPodResource, {.namespace_name = "ns", .name = "p", .subresource = {}}));
  rig.Fail(env::CallFailure::kTimeout);
  rig.Wake();
  rig.Answer(500, "");
  rig.Wake();
  EXPECT_EQ(rig.requests.size(), 3u);
  while (rig.Told().empty()) {
    rig.Answer(503, "");
    if (rig.client.calls_queued() > 0) rig.Wake();
    ASSERT_LT(rig.requests.size(), 100u);
  }
  EXPECT_LE(rig.now, Instant{1'000'000'000} + Duration::Seconds(60));
}

// D06: a throttled binding is neither lost nor sent twice.
TEST(Calls, ThrottlingHoldsEverythingForAsLongAsTheServerAsks) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  rig.Answer(429, "", {{"retry-after", "3"}});
  EXPECT_EQ(rig.Told(), "");
  rig.Call(Bind(kPod, "n2", {}));
  EXPECT_EQ(rig.requests.size(), 1u);
  EXPECT_EQ(rig.client.wake_at(), rig.now + Duration::Seconds(3));
  rig.Wake();
  ASSERT_EQ(rig.requests.size(), 3u);
  EXPECT_EQ(rig.requests[1].call.value, 1u);
}

TEST(Calls, AnEvictionsRefusalByABudgetIsAnAnswer) {
  Rig rig;
  rig.Call(Evict(kPod));
  rig.Answer(429, "");
  EXPECT_EQ(rig.Told(), "call1=Refused ");
}

TEST(Calls, WithoutAConnectionOneCallProbesAndAllGoOnWhenItIsBack) {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.Call(Bind(kPod, "n1", {}));
  for (uint64_t i = 1; i <= 5; ++i) {
    rig.Step(env::CallFailed{.call = {i}, .failure = env::CallFailure::kNotSent});
  }
  rig.Wake();
  while (rig.requests.size() == 5) rig.Wake();
  EXPECT_EQ(rig.requests.size(), 6u);
  rig.Answer(201, "");
  while (rig.requests.size() < 10) rig.Wake();
  EXPECT_EQ(rig.client.calls_queued(), 0u);
}

TEST(Calls, AWriteThatFoundNoConnectionInItsPatienceIsRefused) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  for (int i = 0; i < 100 && rig.told.empty(); ++i) {
    rig.Fail(env::CallFailure::kNotSent);
    const size_t sent = rig.requests.size();
    while (rig.told.empty() && rig.requests.size() == sent) rig.Wake();
  }
  EXPECT_EQ(rig.Told(), "call1=Refused! ");
}

TEST(Calls, BindingsGoBeforeEventsAndEventsLeaveThemRoom) {
  Rig rig({.calls_in_flight_max = 4});
  Request event = Get(kPodResource, {.namespace_name = "ns", .name = "low", .subresource = {}});
  event.priority = Priority::kLow;
  for (int i = 0; i < 10; ++i) rig.Call(event);
  EXPECT_EQ(rig.requests.size(), 2u);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  for (int i = 0; i < 3; ++i) rig.Call(Bind(kPod, "n1", {}));
  EXPECT_EQ(rig.requests.size(), 4u);
  rig.Answer(201, "");
  ASSERT_EQ(rig.requests.size(), 5u);
  EXPECT_TRUE(rig.target().ends_with("/binding"));
}

TEST(Calls, AFullQueueRefuses) {
  Rig rig({.calls_in_flight_max = 1, .calls_queued_max = 1});
  for (int i = 0; i < 3; ++i) rig.Call(Bind(kPod, "n1", {}));
  EXPECT_EQ(rig.client.wake_at(), Instant{0});
  rig.Step(env::Tick{});
  EXPECT_EQ(rig.Told(), "call3=Refused! ");
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
}

TEST(Calls, AQueuedCallCanBeForgotten) {
  Rig rig({.calls_in_flight_max = 1});
  rig.Call(Bind(kPod, "n1", {}));
  const env::CallId second = rig.Call(Bind(kPod, "n2", {}));
  EXPECT_FALSE(rig.client.CancelQueued({1}));
  EXPECT_TRUE(rig.client.CancelQueued(second));
  EXPECT_FALSE(rig.client.CancelQueued(second));
  rig.Answer(201, "");
  EXPECT_EQ(rig.requests.size(), 1u);
}

// Nothing came of a write that is repeated: it may as well not be.
TEST(Calls, ACallThatIsToBeRepeatedCanBeForgotten) {
  Rig rig;
  const env::CallId call = rig.Call(Bind(kPod, "n1", {}));
  rig.Step(env::CallFailed{.call = call, .failure = env::CallFailure::kNotSent});
  EXPECT_EQ(rig.client.calls_queued(), 1u);
  EXPECT_TRUE(rig.client.CancelQueued(call));
  EXPECT_EQ(rig.client.calls_queued(), 0u);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  EXPECT_FALSE(rig.client.CancelQueued(call));
}

// What the owner hears together with the room for a call may end what the call is for.
TEST(Calls, ACallThatWaitsForATickCanBeForgottenWhenThereIsRoom) {
  for (const bool waits : {true, false}) {
    Rig rig({.calls_in_flight_max = 1});
    Request request = Bind(kPod, "n1", {});
    rig.Call(request);
    request.waits_for_tick = waits;
    const env::CallId second = rig.Call(request);
    const env::CallId third = rig.Call(Bind(kPod, "n2", {}));
    rig.Answer(201, "");
    EXPECT_EQ(rig.client.CancelQueued(second), waits);
    EXPECT_EQ(rig.client.wake_at() <= rig.now, waits);
    EXPECT_EQ(rig.requests.size(), waits ? 1u : 2u);
    if (waits) rig.Wake();
    ASSERT_EQ(rig.requests.size(), 2u);
    EXPECT_EQ(rig.requests[1].call, waits ? third : second);
  }
}

TEST(Calls, ACallThatWaitsForATickLeavesAtOnceWhereNothingWaits) {
  Rig rig;
  Request request = Bind(kPod, "n1", {});
  request.waits_for_tick = true;
  rig.Call(request);
  EXPECT_EQ(rig.requests.size(), 1u);
}

// The server asks everybody to slow down, whoever repeats what.
TEST(Calls, ThrottlingHoldsEverythingThoughTheCallIsNotRepeated) {
  Rig rig;
  Request request = Bind(kPod, "n1", {});
  request.patience = Duration{};
  rig.Call(request);
  rig.Answer(429, "", {{"retry-after", "3"}});
  EXPECT_EQ(rig.Told(), "call1=Refused ");
  rig.Call(Bind(kPod, "n2", {}));
  EXPECT_EQ(rig.requests.size(), 1u);
  EXPECT_EQ(rig.client.wake_at(), rig.now + Duration::Seconds(3));
}

TEST(Calls, ACallUnderWayCanBeTheLastAttempt) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  Client copy = rig.client;
  rig.client.DontRepeat({1});
  EXPECT_NE(StateHash(copy), StateHash(rig.client));
  rig.Answer(429, "");
  EXPECT_EQ(rig.Told(), "call1=Refused ");
  EXPECT_EQ(rig.client.calls_queued(), 0u);
}

// D12: who may not write any more withdraws what waits, repeats nothing, and hears of what has left.
TEST(Calls, StoppedWritesEndUnsentAndReadsGoOn) {
  Rig rig({.calls_in_flight_max = 2});
  rig.Call(Bind(kPod, "n1", {}));
  rig.Call(Bind(kPod, "n2", {}));
  rig.Call(Bind(kPod, "n3", {}));
  // The second waits to be repeated.
  rig.Step(env::Response{.call = {2}, .response = {.status = 429, .headers = {}, .body = {}}});
  Request read = Get(kPodResource, {.namespace_name = "ns", .name = "p"});
  read.priority = Priority::kHigh;
  EXPECT_EQ(rig.client.StopWrites(), 1u);
  EXPECT_EQ(rig.client.writes_in_flight(), 1u);
  EXPECT_EQ(rig.client.calls_queued(), 0u);
  rig.Call(Bind(kPod, "n4", {}));
  rig.Call(read);
  rig.Wake();
  EXPECT_EQ(rig.Told(), "call2=Refused! call3=Refused! call4=Refused! ");
  while (rig.requests.size() == 2) rig.Wake();
  EXPECT_EQ(rig.requests.back().request.method, env::Method::kGet);
  // What is under way is the last attempt, whatever comes of it.
  rig.Step(env::CallFailed{.call = {1}, .failure = env::CallFailure::kNotSent});
  EXPECT_EQ(rig.Told(), "call1=Refused! ");
  EXPECT_EQ(rig.client.writes_in_flight(), 0u);
  rig.client.AllowWrites();
  rig.Answer(200, "{}");
  rig.Call(Bind(kPod, "n5", {}));
  while (rig.requests.back().request.method == env::Method::kGet) rig.Wake();
  EXPECT_EQ(rig.requests.size(), 4u);
}

// D12: what has been handed over may wait for a connection for as long as its time-out; past the
// lease it must not leave any more. Reads may.
TEST(Calls, WritesSayUntilWhenTheyMayLeave) {
  Rig rig;
  const Instant until = rig.now + Duration::Seconds(10);
  rig.Call(Bind(kPod, "n1", {}));
  EXPECT_EQ(rig.requests.back().not_after, Instant::Never());
  rig.client.LetWritesLeaveUntil(until);
  rig.Call(Bind(kPod, "n2", {}));
  EXPECT_EQ(rig.requests.back().not_after, until);
  rig.Call(Get(kPodResource, {.namespace_name = "ns", .name = "p"}));
  EXPECT_EQ(rig.requests.back().not_after, Instant::Never());
  // One that was too late is sent again by the new lease.
  rig.client.LetWritesLeaveUntil(until + Duration::Seconds(2));
  rig.Step(env::CallFailed{.call = {2}, .failure = env::CallFailure::kNotSent});
  while (rig.requests.size() == 3) rig.Wake();
  EXPECT_EQ(rig.requests.back().call.value, 2u);
  EXPECT_EQ(rig.requests.back().not_after, until + Duration::Seconds(2));
}

TEST(Client, ACopyBehavesAsTheOriginal) {
  Rig rig;
  Sync(rig);
  rig.Call(Bind(kPod, "n1", {}));
  Client copy = rig.client;
  EXPECT_EQ(StateHash(copy), StateHash(rig.client));
  env::Outbox out;
  std::vector<Event> events;
  const env::Input input = env::CallFailed{.call = {3}, .failure = env::CallFailure::kLost};
  copy.Handle(rig.now, input, out, events);
  EXPECT_NE(StateHash(copy), StateHash(rig.client));
  rig.Step(input);
  EXPECT_EQ(StateHash(copy), StateHash(rig.client));
}

// Goal: two clients of equal hash do the same from here on. Method: a call that waits differs in
// one member each; a list-watch is told one thing more.
TEST(Client, ItsHashHoldsTheWholeRequest) {
  testing::HashesApart<Request> apart(
      [](const Request& request) {
        Rig rig({.calls_in_flight_max = 1});
        rig.Call(Get(kPods.resource, {.namespace_name = "ns", .name = "first"}));
        rig.Call(request);
        return StateHash(rig.client);
      },
      {.method = env::Method::kPatch, .target = "/a", .content_type = "x", .body = Bytes("{}")});
  apart.With("method", [](Request& r) { r.method = env::Method::kPost; });
  apart.With("target", [](Request& r) { r.target = "/b"; });
  apart.With("content type", [](Request& r) { r.content_type = "y"; });
  apart.With("body", [](Request& r) { r.body = Bytes("[]"); });
  apart.With("priority", [](Request& r) { r.priority = Priority::kLow; });
  apart.With("timeout", [](Request& r) { r.timeout = Duration::Seconds(1); });
  apart.With("patience", [](Request& r) { r.patience = Duration::Seconds(1); });
  apart.With("throttling", [](Request& r) { r.retry_throttled = false; });
  apart.With("waiting", [](Request& r) { r.waits_for_tick = true; });
}

TEST(Client, ItsHashHoldsWhatItsWatchesKnow) {
  Rig rig;
  std::set<uint64_t> hashes;
  const auto expect_new = [&](std::string_view what) {
    EXPECT_TRUE(hashes.insert(StateHash(rig.client)).second) << what;
  };
  expect_new("nothing");
  rig.client.Watch(kPods);
  expect_new("a watch");
  rig.Wake();
  expect_new("its list is sent");
  rig.Answer(200, List(10, {Object("a", "u1", 5)}));
  expect_new("a list");
  rig.Answer(200, "");
  expect_new("its stream is open");
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(0, 20));
  expect_new("a begun line");
  const Client begun = rig.client;
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(20));
  expect_new("an event");
  // However it was torn, it is told by now.
  const uint64_t told = StateHash(rig.client);
  rig.client = begun;
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(20, 10));
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(30));
  EXPECT_EQ(StateHash(rig.client), told);
  rig.Data(Frame("MODIFIED", Object("a", "u2", 12)));
  expect_new("another uid");
  rig.Data(Bookmark(20));
  expect_new("a bookmark");
  rig.End();
  expect_new("the end");
  rig.Wake();
  rig.Answer(410, "");
  rig.Wake();
  expect_new("a relist is sent");
  const Client sent = rig.client;
  rig.Answer(200, List(30, {Object("b", "u3", 25)}, "t1"));
  expect_new("its first page");
  rig.client = sent;
  rig.requests.pop_back();
  rig.Answer(200, List(30, {Object("b", "u4", 25)}, "t1"));
  expect_new("another first page");
}

TEST(Client, EveryRequestSaysWhoAsks) {
  Rig rig({.user_agent = "berth-test", .base_path = "/k8s"});
  rig.Call(Bind(kPod, "n1", {{"berth.dev/gpu-index", "0,1"}}));
  const env::HttpRequest& request = rig.requests.back().request;
  EXPECT_EQ(request.target, "/k8s/api/v1/namespaces/ns/pods/p/binding");
  EXPECT_EQ(env::FindHeader(request.headers, "user-agent"), "berth-test");
  EXPECT_EQ(env::FindHeader(request.headers, "content-type"), "application/json");
  EXPECT_EQ(
      request.body.view(),
      R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"p","namespace":"ns","uid":"u-1",)"
      R"("annotations":{"berth.dev/gpu-index":"0,1"}},"target":{"apiVersion":"v1","kind":"Node","name":"n1"}})");
}

}  // namespace
}  // namespace berth::client
