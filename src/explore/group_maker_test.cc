// Goal: who makes groups goes by what it was told, and each check finds what breaks it and nothing
// else. Method: objects as they become durable, by hand; what is due and what is found is printed.
#include "explore/group_maker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace berth::explore {
namespace {

constexpr std::string_view kWeb =
    R"("ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"r","controller":true}])";
constexpr std::string_view kMember =
    R"(,"annotations":{"scheduling.k8s.io/group-name":"podgroup-r"})";
constexpr std::string_view kGroup = "/podgroups/podgroup-r";

class GroupMakerTest : public ::testing::Test {
 protected:
  void Commit(const std::string& key, const std::string& value) {
    const env::JournalRecord record{.key = key, .revision = ++revision_, .value = Bytes(value)};
    truth_.Apply(record);
    maker_.OnCommitted(record);
  }
  void Set(int replicas) {
    Commit(
        "replicasets.apps/default/web",
        fmt::format(
            R"({{"metadata":{{"name":"web","namespace":"default","uid":"r","resourceVersion":"{}"}},"spec":{{"replicas":{}}}}})",
            revision_ + 1, replicas));
  }
  void Pod(std::string_view annotations) {
    Commit(
        "pods/default/web-0",
        fmt::format(
            R"({{"metadata":{{"name":"web-0","namespace":"default","uid":"p","resourceVersion":"{}",{}{}}},"spec":{{"schedulerName":"volcano","containers":[]}}}})",
            revision_ + 1, kWeb, annotations));
  }
  void Group() {
    Commit(
        "podgroups.scheduling.volcano.sh/default/podgroup-r",
        fmt::format(
            R"({{"metadata":{{"name":"podgroup-r","namespace":"default","uid":"g","resourceVersion":"{}",{}}},"spec":{{"minMember":1}}}})",
            revision_ + 1, kWeb));
  }
  void HearAll(size_t list) {
    while (maker_.HasToHear(list)) maker_.Hear(list);
  }
  std::string Due() { return fmt::format("{}", fmt::join(maker_.Due(), "; ")); }
  std::string AtRest() { return fmt::format("{}", fmt::join(GroupsAtRest(truth_), "; ")); }
  std::string Ends() { return fmt::format("{}", fmt::join(maker_.JudgeEnd(kGroup), "; ")); }

  sim::Truth truth_;
  GroupMaker maker_{sim::Tampering::kNone, Instant()};
  uint64_t revision_ = 0;
};

TEST_F(GroupMakerTest, EachListIsHeardByItself) {
  Set(1);
  Pod("");
  HearAll(1);
  EXPECT_EQ(Due(), "object p") << "its owner is not known, and is read before anything is done";
  HearAll(0);
  EXPECT_EQ(Due(), "group default/r");
  maker_.Decide("group default/r");
  ASSERT_EQ(maker_.pending().size(), 2u) << "the group, and the pod that is to name it";
  EXPECT_EQ(Due(), "") << "that is under way";
}

TEST_F(GroupMakerTest, ABuriedObjectIsNotSeenAgain) {
  Set(0);
  Group();
  Commit("podgroups.scheduling.volcano.sh/default/podgroup-r", "");
  maker_.Hear(0);
  maker_.Hear(2);
  EXPECT_EQ(Due(), "group default/r") << "its owner is to be read";
  maker_.Decide("group default/r");
  env::HttpResponse gone{.status = 404, .headers = {}, .body = {}};
  maker_.OnAnswer(0, gone, nullptr);
  EXPECT_EQ(Due(), "object g") << "the owner is gone by the answer";
  maker_.Hear(2);
  EXPECT_EQ(Due(), "");
}

TEST_F(GroupMakerTest, AGroupEndsOnceItsOwnerWantedNoPods) {
  Set(1);
  Group();
  EXPECT_EQ(Ends(), "group podgroup-r is deleted, and its owner has wanted pods all the time");
  Set(0);
  EXPECT_EQ(Ends(), "");
  Set(1);
  EXPECT_EQ(Ends(), "") << "it may have been read in between";
  Commit("podgroups.scheduling.volcano.sh/default/podgroup-r", "");
  EXPECT_EQ(Ends(), "") << "it is gone";
  Group();
  EXPECT_NE(Ends(), "");
}

TEST_F(GroupMakerTest, AtRestPodsHaveTheGroupOfTheirOwner) {
  Set(1);
  Pod("");
  EXPECT_EQ(AtRest(),
            "at rest, pod default/web-0 is in no group of its owner; "
            "at rest, pod default/web-0 waits for a group that is not there");
  Pod(kMember);
  EXPECT_EQ(AtRest(), "at rest, pod default/web-0 waits for a group that is not there");
  Group();
  EXPECT_EQ(AtRest(), "");
  Set(0);
  EXPECT_EQ(AtRest(), "") << "a pod is in it";
  Commit("pods/default/web-0", "");
  EXPECT_EQ(AtRest(), "at rest, group podgroup-r is there for nobody");
  Set(2);
  EXPECT_EQ(AtRest(), "") << "pods are to come";
}

}  // namespace
}  // namespace berth::explore
