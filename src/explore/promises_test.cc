// Goal: a promise is broken when another is bound into its room, and only then; evictions are
// enough, but for those that something explains.
// Method: what a scheduler could say and hear, by hand, of two pods and a node.
#include "explore/promises.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "base/hash.h"

namespace berth::explore {
namespace {

class PromisesTest : public ::testing::Test {
 protected:
  PromisesTest() {
    Put("nodes//n1", kNode);
    HearAll();
  }

  // The scheduler hears of a node, and of two pods that wait.
  void HearAll() {
    HearObject("ADDED", kNode);
    Hear("high", 9, "");
    Hear("low", 1, "");
  }
  void Put(const std::string& key, const std::string& value) {
    truth_.Apply({.key = key, .revision = ++revision_, .value = Bytes(value)});
  }
  static std::string PodOf(const std::string& name, int priority, const std::string& nominated,
                           const std::string& node = "", int cpu = 2) {
    return fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"{0}","namespace":"default","uid":"u-{0}"}},"spec":{{"nodeName":"{3}","priority":{1},"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{4}"}}}}}}]}},"status":{{{2}}}}})",
        name, priority,
        nominated.empty() ? "" : fmt::format(R"("nominatedNodeName":"{}")", nominated), node, cpu);
  }
  void Send(env::HttpRequest request) {
    promises_.OnSent({.call = {++call_}, .request = std::move(request), .stream = false});
  }
  // The last that was sent.
  void Fail() {
    promises_.OnHeard(env::CallFailed{.call = {call_}, .failure = env::CallFailure::kLost});
  }
  void Nominate(const std::string& name, const std::string& node) {
    Send({.method = env::Method::kPatch,
          .target = "/api/v1/namespaces/default/pods/" + name + "/status",
          .headers = {},
          .body = Bytes(
              fmt::format(R"({{"metadata":{{"uid":"u-{}"}},"status":{{"nominatedNodeName":{}}}}})",
                          name, node.empty() ? "null" : "\"" + node + "\""))});
  }
  std::optional<std::string> Bind(const std::string& name, const std::string& node = "n1") {
    Send(
        {.method = env::Method::kPost,
         .target = "/api/v1/namespaces/default/pods/" + name + "/binding",
         .headers = {},
         .body = Bytes(fmt::format(
             R"({{"metadata":{{"name":"{0}","uid":"u-{0}"}},"target":{{"kind":"Node","name":"{1}"}}}})",
             name, node))});
    return promises_.OnStep();
  }
  void HearObject(const std::string& type, const std::string& object) {
    promises_.OnHeard(env::StreamData{
        .call = {1},
        .data = Bytes(fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n")});
  }
  void Hear(const std::string& name, int priority, const std::string& nominated) {
    HearObject("MODIFIED", PodOf(name, priority, nominated));
  }
  void HearList(const std::string& items) {
    promises_.OnHeard(env::Response{
        .call = {1},
        .response = {
            .status = 200,
            .headers = {},
            .body = Bytes(R"({"kind":"PodList","metadata":{},"items":[)" + items + "]}")}});
  }
  void PutVictims() {
    for (const std::string name : {"v1", "v2"}) {
      Put("pods/default/" + name,
          fmt::format(
              R"({{"kind":"Pod","metadata":{{"name":"{0}","namespace":"default","uid":"u-{0}"}},"spec":{{"nodeName":"n1","priority":1,"containers":[{{"name":"c"}}]}}}})",
              name));
    }
  }
  void SendEviction(const std::string& name) {
    Send({.method = env::Method::kDelete,
          .target = "/api/v1/namespaces/default/pods/" + name,
          .headers = {},
          .body = Bytes(fmt::format(R"({{"preconditions":{{"uid":"u-{}"}}}})", name))});
  }
  std::optional<std::string> Evict(const std::string& name, uint32_t most, bool orphan = false) {
    return promises_.OnEviction(
        truth_,
        {.target = "/api/v1/namespaces/default/pods/" + name,
         .body = fmt::format(R"({{"preconditions":{{"uid":"u-{}"}}}})", name),
         .heard = !orphan,
         .orphan = orphan},
        most);
  }

  static constexpr const char* kNode =
      R"({"kind":"Node","metadata":{"name":"n1","uid":"n"},"status":{"allocatable":{"cpu":"2","pods":"9"}}})";
  sim::Truth truth_;
  Promises promises_;
  uint64_t revision_ = 0;
  uint64_t call_ = 7;
};

constexpr const char* kTaken =
    "pod default/low is to be bound to node n1, whose room is promised to pod default/high";

TEST_F(PromisesTest, RoomThatWasPromisedIsNotGivenToALowerPod) {
  EXPECT_EQ(Bind("low"), std::nullopt);
  Nominate("high", "n1");
  EXPECT_EQ(Bind("low"), kTaken);
  EXPECT_EQ(Bind("high"), std::nullopt);
}

TEST_F(PromisesTest, AHigherPodMayTakeIt) {
  Nominate("low", "n1");
  EXPECT_EQ(Bind("high"), std::nullopt);
}

TEST_F(PromisesTest, AVersionFromBeforeEndsNoPromise) {
  Nominate("high", "n1");
  Hear("high", 9, "");
  EXPECT_EQ(Bind("low"), kTaken);
  Hear("high", 9, "n1");
  EXPECT_EQ(Bind("low"), kTaken);
  Hear("high", 9, "");  // Now somebody has taken it back.
  EXPECT_EQ(Bind("low"), std::nullopt);
}

TEST_F(PromisesTest, WhatIsHeardAfterARestartIsAPromise) {
  Nominate("high", "n1");
  promises_.OnRestart();
  EXPECT_EQ(Bind("low"), std::nullopt);
  HearObject("ADDED", kNode);
  HearList(PodOf("low", 1, "") + "," + PodOf("high", 9, "n1"));
  EXPECT_EQ(Bind("low"), kTaken);
  Hear("high", 9, "");  // Newer than the list.
  EXPECT_EQ(Bind("low"), std::nullopt);
}

TEST_F(PromisesTest, WhatAListDoesNotSayIsNoPromise) {
  promises_.OnRestart();
  HearObject("ADDED", kNode);
  HearList(PodOf("high", 9, "") + "," + PodOf("low", 1, "n1"));
  EXPECT_EQ(Bind("low"), std::nullopt);
}

TEST_F(PromisesTest, ItStaysWhileItsOwnBindingIsOnTheWayAndEndsByOneElsewhere) {
  Nominate("high", "n1");
  EXPECT_EQ(Bind("high"), std::nullopt);
  EXPECT_EQ(Bind("low"), kTaken);
  Nominate("high", "n1");
  EXPECT_EQ(Bind("high", "n2"), std::nullopt);
  EXPECT_EQ(Bind("low"), std::nullopt);
}

TEST_F(PromisesTest, ItEndsByTheSchedulersWordItsNodeOrAFailure) {
  Nominate("high", "n1");
  Nominate("high", "");
  EXPECT_EQ(Bind("low"), std::nullopt);
  Nominate("high", "n1");
  HearObject("MODIFIED", kNode);
  EXPECT_EQ(Bind("low"), std::nullopt);
  Nominate("high", "n1");
  Fail();
  EXPECT_EQ(Bind("low"), std::nullopt);
}

TEST_F(PromisesTest, AFailureEndsOnlyWhatItIsOf) {
  HearObject("ADDED", PodOf("third", 9, ""));
  HearObject("ADDED", PodOf("here", 1, "", "n1"));
  HearObject("ADDED", PodOf("there", 1, "", "n2"));
  Nominate("high", "n1");
  Nominate("third", "n2");
  Fail();
  EXPECT_EQ(Bind("low"), kTaken);
  SendEviction("there");
  Fail();
  EXPECT_EQ(Bind("low"), kTaken);
  SendEviction("here");
  Fail();
  EXPECT_EQ(Bind("low"), std::nullopt);
}

TEST_F(PromisesTest, WhatStandsThereCountsUnlessItLeavesOrMayBeAVictim) {
  const auto begin = [&](int stands, int binds) {
    promises_ = {};
    HearAll();
    HearObject("ADDED", PodOf("high", 9, "", "", 1));
    HearObject("ADDED", PodOf("low", 1, "", "", binds));
    HearObject("ADDED", PodOf("stands", stands, "", "n1", 1));
    Nominate("high", "n1");
  };
  begin(9, 1);  // One that stays, the promise, and one too many.
  EXPECT_EQ(Bind("low"), kTaken);
  begin(1, 1);  // All three fit but for that one; it need not go for the promise.
  EXPECT_EQ(Bind("low"), kTaken);
  begin(9, 1);
  HearObject("DELETED", PodOf("stands", 9, "", "n1", 1));
  EXPECT_EQ(Bind("low"), std::nullopt);
  // A promise that can't come true keeps no room.
  begin(9, 1);
  HearObject("ADDED", PodOf("high", 9, "n1", "", 2));
  EXPECT_EQ(Bind("low"), std::nullopt);
}

TEST_F(PromisesTest, PromisesCountTogether) {
  HearObject("ADDED", PodOf("high", 9, "", "", 1));
  HearObject("ADDED", PodOf("mid", 5, "", "", 1));
  HearObject("ADDED", PodOf("low", 1, "", "", 1));
  Nominate("high", "n1");
  EXPECT_EQ(Bind("low"), std::nullopt);
  Nominate("mid", "n1");
  EXPECT_EQ(Bind("low"),
            "pod default/low is to be bound to node n1, whose room is promised to pod default/mid");
}

TEST_F(PromisesTest, NobodyIsEvictedAgain) {
  PutVictims();
  EXPECT_EQ(Evict("v2", 2), std::nullopt);
  EXPECT_EQ(Evict("v2", 2, true), std::nullopt);  // Sent in an earlier life: not of this decision.
  EXPECT_EQ(Evict("v2", 2), "pod v2 (uid u-v2) is evicted a second time");
}

TEST_F(PromisesTest, ALostNodeOrAMoreImportantOwnerExplainsMoreEvictions) {
  const auto begin = [&] {
    promises_ = {};
    HearAll();
    PutVictims();
  };
  begin();
  EXPECT_EQ(Evict("v1", 1), std::nullopt);
  EXPECT_EQ(Evict("v2", 1), "pod v2 is evicted: 2 evictions, where 1 must be enough");

  begin();
  EXPECT_EQ(Evict("v1", 1), std::nullopt);
  Nominate("low", "n1");
  Nominate("low", "");  // For nobody.
  EXPECT_EQ(promises_.OnStep(), std::nullopt);
  EXPECT_EQ(Evict("v2", 1), "pod v2 is evicted: 2 evictions, where 1 must be enough");

  begin();
  EXPECT_EQ(Evict("v1", 1), std::nullopt);
  Nominate("low", "n1");
  Nominate("low", "");
  Nominate("high", "n1");
  EXPECT_EQ(promises_.OnStep(), std::nullopt);
  EXPECT_EQ(Evict("v2", 1), std::nullopt);

  begin();
  EXPECT_EQ(Evict("v1", 1), std::nullopt);
  Put("pods/default/high", PodOf("high", 9, "n1"));
  promises_.OnNodeLost(truth_, "n1");
  EXPECT_EQ(Evict("v2", 1), std::nullopt);
}

}  // namespace
}  // namespace berth::explore
