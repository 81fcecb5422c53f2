// Goal: list-watches do what their header says, whatever the server does. Method: a scripted server;
// the test looks at every request and every event.
#include "client/watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "client/test_rig.h"

namespace berth::client {
namespace {

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

// What a list-watch asks for, of the last request: "250" or "250 t1" with its continuation.
std::string PageOf(const Rig& rig) {
  const std::string& target = rig.target();
  const size_t limit = target.find("limit=");
  if (limit == std::string::npos) return target;
  const size_t end = target.find("&continue=");
  if (end == std::string::npos) return target.substr(limit + 6);
  return fmt::format("{} {}", target.substr(limit + 6, end - limit - 6), target.substr(end + 10));
}

// Goal: a page that is too large or too slow is not asked for alike for ever. Method: each way in
// which a page may not come, until it can't be smaller; where its size is no matter it stays.
TEST(Watch, APageThatDoesNotComeIsAskedForByHalfAsMany) {
  struct Row {
    int status;  // 0: no answer.
    env::CallFailure failure;
    bool halved;
  };
  const std::vector<Row> table = {{0, env::CallFailure::kLost, true},
                                  {0, env::CallFailure::kTimeout, true},
                                  {0, env::CallFailure::kNotSent, false},
                                  {504, {}, true},
                                  {500, {}, false}};
  for (const Row& row : table) {
    SCOPED_TRACE(fmt::format("{} {}", row.status, static_cast<int>(row.failure)));
    Rig rig;
    rig.client.Watch(kPods);
    rig.Wake();
    std::string asked = PageOf(rig);
    for (int i = 0; i < 10; ++i) {
      if (row.status == 0) {
        rig.Fail(row.failure);
      } else {
        rig.Answer(row.status, "");
      }
      rig.Wake();
      asked += " " + PageOf(rig);
    }
    EXPECT_EQ(asked, row.halved ? "500 250 125 62 31 15 7 3 1 1 1"
                                : "500 500 500 500 500 500 500 500 500 500 500");
    rig.Answer(200, List(10, {}, "t"));
    EXPECT_EQ(PageOf(rig), row.halved ? "3 t" : "500 t");
  }
}

// Goal: the list goes on where it was, and what ailed the server for a while makes no small pages
// for ever. Method: two pages that don't come amid a list, and all that follow do.
TEST(Watch, PagesThatComeGiveTheirSizeBack) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3)}, "t1"));
  ASSERT_EQ(PageOf(rig), "500 t1");
  for (const std::string_view asked : {"250 t1", "125 t1"}) {
    rig.Fail(env::CallFailure::kTimeout);
    rig.Wake();
    EXPECT_EQ(PageOf(rig), asked);
  }
  for (const std::string_view asked : {"250 t2", "500 t3", "500 t4"}) {
    rig.Answer(200, List(10, {Object("b", "u2", 3)}, asked.substr(4)));
    EXPECT_EQ(PageOf(rig), asked);
  }
  EXPECT_EQ(rig.client.watch({0}).counters().lists, 1u);
}

// Goal: where it is the size that fails a list does not stumble at every other page, each time for
// as long as an answer is waited for. Method: pages of over 250 never come.
TEST(Watch, ASizeThatFailsOftenIsNotTriedAgainInOneList) {
  Rig rig({.page_limit = 1'000});
  rig.client.Watch(kPods);
  rig.Wake();
  for (int list = 0; list < 3; ++list) {
    std::string asked;
    for (int pages = 0, tries = 0; pages < 4 && tries < 20; ++tries) {
      const std::string page = PageOf(rig);
      asked += page.substr(0, page.find(' ')) + " ";
      const bool comes = page.starts_with("250");
      if (comes) {
        ++pages;
        rig.Answer(200, List(10 + list, {}, pages < 4 ? "t" : ""));
      } else {
        rig.Fail(env::CallFailure::kLost);
        rig.Wake();
      }
    }
    // The first page of a later list may be as the last one of that before; then it tries more.
    EXPECT_EQ(asked, list == 0 ? "1000 500 250 500 250 250 250 " : "250 500 250 250 250 ");
    ASSERT_TRUE(rig.client.synced());
    rig.Answer(410, "");
    rig.Wake();
  }
}

// All at once may be more than can be given, and says nothing of pages.
TEST(Watch, AListOfAllThatFailsMakesNoSmallerPages) {
  Rig rig;
  rig.client.Watch(kPods);
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3)}, "t1"));
  for (const auto failure : {env::CallFailure::kLost, env::CallFailure::kTimeout}) {
    rig.Answer(410, "");
    rig.Wake();
    ASSERT_EQ(PageOf(rig), "/api/v1/pods");
    rig.Fail(failure);
    rig.Wake();
    EXPECT_EQ(PageOf(rig), "500");
    rig.Answer(200, List(10, {Object("a", "u1", 3)}, "t1"));
  }
}

// Of many list-watches one tells that there is no answer, and that there is one again.
TEST(Watch, WhatAllMeetIsToldByOne) {
  Rig rig;
  Resource nodes = kPods.resource;
  nodes.plural = "nodes";
  rig.client.Watch(kPods);
  rig.client.Watch({.resource = nodes});
  const auto fail = [&](const std::string& why) {
    while (rig.requests.size() < 2) rig.Wake();
    for (const env::SendRequest& request : std::exchange(rig.requests, {})) {
      rig.Step(
          env::CallFailed{.call = request.call, .failure = env::CallFailure::kNotSent, .why = why});
    }
  };
  fail("connection refused");
  EXPECT_EQ(rig.Told(), "trouble0 trouble0again ");
  fail("connection refused");
  EXPECT_EQ(rig.Told(), "trouble0again trouble0again ");
  fail("no route to host");
  EXPECT_EQ(rig.Told(), "trouble0 trouble0again ");
  EXPECT_EQ(rig.answers_again, 0);
  // One is answered, the other not yet.
  std::map<std::string, env::SendRequest> asked;
  const auto take = [&](const std::string& key) {
    while (!asked.contains(key)) {
      if (rig.requests.empty()) rig.Wake();
      for (env::SendRequest& request : std::exchange(rig.requests, {})) {
        const bool of_pods = request.request.target.starts_with("/api/v1/pods");
        asked[fmt::format("{} {}", request.stream ? "watch" : "list", of_pods ? "pods" : "nodes")] =
            std::move(request);
      }
    }
    return std::exchange(asked.at(key), {});
  };
  const auto answer = [&](const env::SendRequest& request) {
    rig.Step(
        env::Response{.call = request.call,
                      .response = {.status = 200, .headers = {}, .body = Bytes(List(10, {}))}});
  };
  const auto fail_one = [&](const env::SendRequest& request) {
    rig.Step(env::CallFailed{
        .call = request.call, .failure = env::CallFailure::kNotSent, .why = "no route to host"});
  };
  answer(take("list pods"));
  EXPECT_EQ(rig.Told(), "first ");
  fail_one(take("list nodes"));
  EXPECT_EQ(rig.Told(), "trouble0again ");
  EXPECT_EQ(rig.answers_again, 0);
  asked.erase("list nodes");
  answer(take("list nodes"));
  EXPECT_EQ(rig.answers_again, 1);
  rig.Told();
  // From then on it is told anew.
  fail_one(take("watch pods"));
  EXPECT_EQ(rig.Told(), "trouble0 ");
  EXPECT_EQ(rig.answers_again, 1);
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

// Of the one watch there is, whose lists are answered so: soon, and then ever later.
void ExpectLookedForLaterAndLater(Rig& rig, int status, std::string_view body,
                                  std::string_view told) {
  for (const int64_t milliseconds : {200, 400, 800, 1'600, 3'200, 6'400, 12'800, 25'600, 30'000}) {
    const Instant before = rig.now;
    rig.Wake();
    EXPECT_EQ((rig.now - before).milliseconds(), milliseconds);
    rig.Answer(status, std::string(body));
    EXPECT_EQ(rig.Told(), told);
    EXPECT_EQ(rig.client.watch(WatchId{0}).refused_for(), Duration{});
  }
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
  ExpectLookedForLaterAndLater(rig, 404, "404 page not found", "");
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

constexpr std::string_view kForbidden =
    R"({"kind":"Status","code":403,"message":"pods is forbidden: no cannot list"})";

WatchOptions Forgoable() {
  WatchOptions options = kPods;
  options.resource.group = "x.io";
  options.may_be_absent = true;
  options.if_forbidden = "nobody is gone";
  return options;
}

TEST(Watch, WhatMayNotBeListedIsEmptyAndLookedForAgain) {
  Rig rig;
  const WatchId watch = rig.client.Watch(Forgoable());
  rig.Wake();
  rig.Answer(403, std::string(kForbidden));
  EXPECT_EQ(rig.Told(), "trouble403 first ");
  EXPECT_EQ(rig.troubles.back(),
            "no right to list and watch pods.x.io: without it nobody is gone: pods is forbidden: "
            "no cannot list");
  EXPECT_TRUE(rig.client.synced());
  EXPECT_TRUE(rig.client.absent(watch));
  // Told once.
  ExpectLookedForLaterAndLater(rig, 403, kForbidden, "trouble403again ");
  // The right is given, first to what the server doesn't know.
  rig.Wake();
  rig.Answer(404, "404 page not found");
  EXPECT_EQ(rig.Told(), "");
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3)}));
  EXPECT_EQ(rig.Told(), "+a:u1 synced ");
  EXPECT_FALSE(rig.client.absent(watch));
  rig.Answer(200, "");
  rig.Data(Frame("ADDED", Object("b", "u2", 12)));
  EXPECT_EQ(rig.Told(), "+b:u2 ");
}

// Goal: nothing is taken as absent that is needed. Method: what a list-watch may do without, what
// its first list is answered, and whether it is synced then.
TEST(Watch, ListsThatAreRefusedAreWaitedForWhereTheyAreNeeded) {
  struct Row {
    bool may_be_absent;
    std::string if_forbidden;
    int status;
    bool synced;
  };
  for (const auto& [may_be_absent, if_forbidden, status, synced] :
       {Row{true, "", 403, false}, Row{false, "x", 403, false}, Row{false, "x", 404, false},
        Row{true, "x", 401, false}, Row{true, "x", 500, false}, Row{true, "x", 403, true},
        Row{true, "", 404, true}}) {
    SCOPED_TRACE(fmt::format("{} \"{}\" {}", may_be_absent, if_forbidden, status));
    Rig rig;
    WatchOptions options = kPods;
    options.may_be_absent = may_be_absent;
    options.if_forbidden = if_forbidden;
    rig.client.Watch(options);
    for (int i = 0; i < 3; ++i) {
      rig.Wake();
      rig.Answer(status, "");
      EXPECT_EQ(rig.client.synced(), synced);
    }
  }
}

// A server that starts refuses what it lets a moment later.
TEST(Watch, WhatWasListedIsKeptForAMinuteWithoutTheRight) {
  Rig rig;
  const WatchId watch = rig.client.Watch(Forgoable());
  rig.Wake();
  rig.Answer(200, List(10, {Object("a", "u1", 3)}));
  rig.Answer(200, "");
  EXPECT_EQ(rig.Told(), "+a:u1 first ");
  rig.Data(GoneFrame());
  rig.Wake();
  const Instant refused = rig.now;
  rig.Answer(403, std::string(kForbidden));
  EXPECT_EQ(rig.Told(), "trouble403 ");
  rig.Wake();
  rig.Answer(200, List(20, {Object("a", "u1", 3)}));
  EXPECT_EQ(rig.Told(), "synced ");
  rig.Answer(200, "");
  rig.Data(GoneFrame());
  rig.Wake();
  const Instant again = rig.now;
  EXPECT_LT(again - refused, Duration::Minutes(1));
  while (rig.now < again + Duration::Minutes(1)) {
    EXPECT_EQ(rig.client.watch(watch).known().size(), 1u);
    EXPECT_FALSE(rig.client.absent(watch));
    rig.Answer(403, std::string(kForbidden));
    rig.Wake();
  }
  rig.Told();
  rig.Answer(403, std::string(kForbidden));
  EXPECT_EQ(rig.Told(), "trouble403again -a:u1 ");
  EXPECT_TRUE(rig.client.absent(watch));
  rig.Wake();
  rig.Answer(200, List(30, {Object("a", "u1", 3)}));
  EXPECT_EQ(rig.Told(), "+a:u1 synced ");
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
// C17: a pod of which the stream never told is found by the next list; a new leader asks for one
// when it can't know that its watch is up to date (control/freshness.h).
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

}  // namespace
}  // namespace berth::client
