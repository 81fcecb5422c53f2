// Goal: extenders are told and understood as kube-scheduler does it. Method: documents.
#include "control/extender_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace berth::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ExtenderMessagesTest, ArgumentsAreAsGoPrintsThem) {
  const std::vector<std::string> names = {"n1", "n\"2"};
  EXPECT_EQ(ExtenderArgs(R"({"a":1})", names),
            R"({"Pod":{"a":1},"Nodes":null,"NodeNames":["n1","n\"2"]})");
  const std::vector<Bytes> documents = {Bytes(R"({"b":1})"), Bytes("{}")};
  EXPECT_EQ(ExtenderArgs("{}", documents),
            R"({"Pod":{},"Nodes":{"metadata":{},"items":[{"b":1},{}]},"NodeNames":null})");
  EXPECT_EQ(ExtenderBindingArgs({.namespace_name = "ns", .name = "p", .uid = "u"}, "n"),
            R"({"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"})");
}

TEST(ExtenderMessagesTest, VictimsGoByUidOrAsDocuments) {
  const std::vector<ShownVictims> nodes = {
      {.node = "a", .uids = {"u1", "u\"2"}, .pdb_violations = 1}, {.node = "b", .uids = {"u3"}}};
  EXPECT_EQ(
      ExtenderPreemptionArgs("{}", nodes),
      R"({"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"u1"},)"
      R"({"UID":"u\"2"}],"NumPDBViolations":1},"b":{"Pods":[{"UID":"u3"}],"NumPDBViolations":0}}})");
  const std::vector<std::vector<Bytes>> documents = {{Bytes("{}"), Bytes("[]")}, {Bytes("3")}};
  EXPECT_EQ(ExtenderPreemptionArgs("{}", nodes, documents),
            R"({"Pod":{},"NodeNameToVictims":{"a":{"Pods":[{},[]],"NumPDBViolations":1},"b":)"
            R"({"Pods":[3],"NumPDBViolations":0}},"NodeNameToMetaVictims":null})");
}

TEST(ExtenderMessagesTest, VictimsAreReadByNode) {
  const auto read = ReadPreemptionAnswer(
      R"({"nodeNameToMetaVictims":{"a":{"pods":[{"uid":"u1"},{}],"NumPDBViolations":-3},"b":null,)"
      R"("c":{"Pods":null,"NumPDBViolations":2}}})");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_THAT(*read, ElementsAre(ShownVictims{.node = "a", .uids = {"u1", ""}},
                                 ShownVictims{.node = "c", .uids = {}, .pdb_violations = 2}));
  EXPECT_THAT(*ReadPreemptionAnswer("{}"), IsEmpty());
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"[]", "the answer is not an object"},
      {R"({"NodeNameToMetaVictims":[]})", "NodeNameToMetaVictims is not an object"},
      {R"({"NodeNameToMetaVictims":{"a":1}})", "NodeNameToMetaVictims.a is not an object"},
      {R"({"NodeNameToMetaVictims":{"a":{"Pods":{}}}})", "Pods is not an array"},
      {R"({"NodeNameToMetaVictims":{"a":{"Pods":["u"]}}})", "an element of Pods is not an object"},
      {R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":1}]}}})", "UID is not a string"},
      {R"({"NodeNameToMetaVictims":{"a":{"NumPDBViolations":"1"}}})",
       "NumPDBViolations is not a whole number"}};
  for (const auto& [text, message] : wrong)
    EXPECT_EQ(ReadPreemptionAnswer(text).error().message, message);
}

TEST(ExtenderMessagesTest, MembersAreFoundAsGoFindsThem) {
  const auto read = ReadFilterAnswer(
      R"({"nodenames":["x"],"NODENAMES":["a","b"],"Nodes":null,"failedNodes":{"c":"why","d":null},)"
      R"("FailedAndUnresolvableNodes":{"e":"never"},"error":"","more":[1]})",
      true);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_THAT(read->nodes, ElementsAre("a", "b"));
  EXPECT_THAT(read->failed, ElementsAre(Pair("c", "why"), Pair("d", "")));
  EXPECT_THAT(read->unresolvable, ElementsAre(Pair("e", "never")));
  EXPECT_EQ(read->error, "");
  EXPECT_THAT(ReadFilterAnswer("{}", true)->nodes, IsEmpty());
}

TEST(ExtenderMessagesTest, WhoIsSentNamesMayAnswerWithObjectsAndNobodyElseWithNames) {
  constexpr std::string_view kBoth =
      R"({"NodeNames":["a"],"Nodes":{"items":[{"metadata":{"name":"b"}}]}})";
  constexpr std::string_view kObjects = R"({"Nodes":{"items":[{"metadata":{"name":"b"}}]}})";
  EXPECT_THAT(ReadFilterAnswer(kBoth, true)->nodes, ElementsAre("a"));
  EXPECT_THAT(ReadFilterAnswer(kObjects, true)->nodes, ElementsAre("b"));
  EXPECT_THAT(ReadFilterAnswer(kBoth, false)->nodes, ElementsAre("b"));
  EXPECT_THAT(ReadFilterAnswer(R"({"NodeNames":["a"]})", false)->nodes, IsEmpty());
}

TEST(ExtenderMessagesTest, WhatIsWrongIsNamed) {
  const auto wrong = [](std::string_view text) {
    const auto read = ReadFilterAnswer(text, true);
    return read ? "nothing" : read.error().message;
  };
  EXPECT_EQ(wrong("[]"), "the answer is not an object");
  EXPECT_EQ(wrong(R"({"NodeNames":"a"})"), "NodeNames is not an array");
  EXPECT_EQ(wrong(R"({"NodeNames":[1]})"), "an element of NodeNames is not a string");
  EXPECT_EQ(wrong(R"({"Nodes":[]})"), "Nodes is not an object");
  EXPECT_EQ(wrong(R"({"Nodes":{"items":{}}})"), "Nodes.items is not an array");
  EXPECT_EQ(wrong(R"({"Nodes":{"items":[{}]}})"), "metadata of Nodes.items is not an object");
  EXPECT_EQ(wrong(R"({"FailedNodes":{"a":1}})"), "FailedNodes.a is not a string");
  EXPECT_EQ(wrong(R"({"Error":1})"), "Error is not a string");
  EXPECT_NE(wrong("{"), "nothing");
  EXPECT_NE(wrong(""), "nothing");
}

TEST(ExtenderMessagesTest, ScoresAreWholeNumbers) {
  const auto read =
      ReadPriorities(R"([{"host":"a","score":7},{"Host":"b"},{"Host":"a","Score":-1}])");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_THAT(*read,
              ElementsAre(HostPriority{"a", 7}, HostPriority{"b", 0}, HostPriority{"a", -1}));
  EXPECT_THAT(*ReadPriorities("null"), IsEmpty());
  EXPECT_EQ(ReadPriorities(R"([{"Host":"a","Score":7.5}])").error().message,
            "Score is not a whole number");
  EXPECT_EQ(ReadPriorities("{}").error().message, "the answer is not an array");
  EXPECT_EQ(*ReadBindingAnswer(R"({"error":"no"})"), "no");
  EXPECT_EQ(*ReadBindingAnswer("{}"), "");
}

TEST(ExtenderMessagesTest, APodLooksAsBeforeWhereOnlyItsStatusIsAnother) {
  const auto looks = [](std::string_view version, std::string_view annotation,
                        std::string_view phase) {
    return LooksOf(std::string(R"({"metadata":{"resourceVersion":")") + std::string(version) +
                   R"(","managedFields":[{"a":")" + std::string(version) +
                   R"("}],"annotations":{"a":")" + std::string(annotation) +
                   R"("}},"status":{"phase":")" + std::string(phase) + R"("}})");
  };
  EXPECT_EQ(looks("1", "x", "Pending"), looks("2", "x", "Other"));
  EXPECT_NE(looks("1", "x", "Pending"), looks("1", "y", "Pending"));
}

}  // namespace
}  // namespace berth::control
