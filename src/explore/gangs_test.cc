// Goal: what leaves of a gang without the rest is found, and nothing else.
// Method: what a scheduler could send and hear, by hand, of a group of two.
#include "explore/gangs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace berth::explore {
namespace {

class GangsTest : public ::testing::Test {
 protected:
  void Group(int min) {
    heard_.Apply(
        {.key = "podgroups.scheduling.volcano.sh/default/g",
         .revision = ++revision_,
         .value = Bytes(fmt::format(
             R"({{"metadata":{{"name":"g","namespace":"default","uid":"g1"}},"spec":{{"minMember":{}}}}})",
             min))});
  }
  void GroupIn(const std::string& queue) {
    heard_.Apply(
        {.key = "podgroups.scheduling.volcano.sh/default/g",
         .revision = ++revision_,
         .value = Bytes(fmt::format(
             R"({{"metadata":{{"name":"g","namespace":"default","uid":"g1"}},"spec":{{"minMember":1,"queue":"{}"}}}})",
             queue))});
  }
  void Queue(int pods, const std::string& state = "Open") {
    heard_.Apply(
        {.key = "queues.scheduling.volcano.sh//q",
         .revision = ++revision_,
         .value = Bytes(fmt::format(
             R"({{"metadata":{{"name":"q","uid":"q1"}},"spec":{{"capability":{{"pods":"{}"}}}},"status":{{"state":"{}"}}}})",
             pods, state))});
  }
  static std::string PodOf(const std::string& name, const std::string& node) {
    return fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"{0}","namespace":"default","uid":"u-{0}","annotations":{{"scheduling.k8s.io/group-name":"g"}}}},"spec":{{{1}"schedulerName":"berth","containers":[{{"name":"c"}}]}}}})",
        name, node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", node));
  }
  void Pod(const std::string& name, const std::string& node = "") {
    heard_.Apply({.key = "pods/default/" + name,
                  .revision = ++revision_,
                  .value = Bytes(PodOf(name, node))});
  }
  void Bind(const std::string& name) {
    gangs_.OnSent(
        {.call = {++call_},
         .request = {.method = env::Method::kPost,
                     .target = "/api/v1/namespaces/default/pods/" + name + "/binding",
                     .headers = {},
                     .body = Bytes(fmt::format(R"({{"metadata":{{"uid":"u-{}"}}}})", name))},
         .stream = false});
  }
  // In a step of its own.
  void Send(const std::string& name) {
    Bind(name);
    Step();
  }
  void Answer(int status, const std::string& body = "{}") {
    gangs_.OnHeard(env::Response{
        .call = {call_}, .response = {.status = status, .headers = {}, .body = Bytes(body)}});
  }
  std::string Step() { return gangs_.OnStep(heard_).value_or(""); }

  sim::Truth heard_;
  Gangs gangs_;
  uint64_t revision_ = 0;
  uint64_t call_ = 0;
};

constexpr std::string_view kHalf =
    "pod default/a is to be bound with 1 of the 2 members that group default/g needs";

TEST_F(GangsTest, AllLeaveInOneStepOrNone) {
  Group(2);
  Pod("a");
  Pod("b");
  Pod("c");
  Bind("a");
  EXPECT_EQ(Step(), kHalf);
  Bind("b");
  EXPECT_EQ(Step(), "");
  // The others follow by themselves.
  Bind("c");
  EXPECT_EQ(Step(), "");
}

TEST_F(GangsTest, AQueueIsNotUsedBeyondWhatItMayBe) {
  GroupIn("q");
  Pod("a");
  Pod("b");
  Bind("a");
  EXPECT_EQ(Step(), "pod default/a is to be bound, and queue q lets nobody start");
  Queue(2);
  Bind("a");
  EXPECT_EQ(Step(), "");
  Queue(1);
  Bind("b");
  EXPECT_EQ(Step(), "pod default/b is to be bound, with which queue q has more than it may");
  Queue(2, "Closed");
  Bind("b");
  EXPECT_EQ(Step(), "pod default/b is to be bound, and queue q lets nobody start");
}

TEST_F(GangsTest, WhatSurelyCameToNothingCountsNoMore) {
  Group(2);
  Pod("a");
  Pod("b");
  Bind("a");
  Bind("b");
  EXPECT_EQ(Step(), "");
  Answer(500);
  Bind("a");
  EXPECT_EQ(Step(), "");  // It may have been done.
  Send("b");
  Answer(409);
  Bind("a");
  EXPECT_EQ(Step(), kHalf);
  // What was read tells.
  Send("b");
  Answer(500);
  Answer(200, PodOf("b", ""));
  Bind("a");
  EXPECT_EQ(Step(), kHalf);
  Send("b");
  gangs_.OnHeard(env::CallFailed{.call = {call_}, .failure = env::CallFailure::kNotSent});
  Bind("a");
  EXPECT_EQ(Step(), kHalf);
  Send("b");
  gangs_.OnHeard(env::CallFailed{.call = {call_}, .failure = env::CallFailure::kLost});
  Answer(200, PodOf("b", "n1"));
  Bind("a");
  EXPECT_EQ(Step(), "");
}

TEST_F(GangsTest, WhatHasANodeCountsAndAGroupMustBeThere) {
  Pod("a");
  Bind("a");
  EXPECT_EQ(Step(), "pod default/a is to be bound, whose group default/g is not there");
  Group(2);
  Pod("b", "n1");
  Bind("a");
  EXPECT_EQ(Step(), "");
}

}  // namespace
}  // namespace berth::explore
