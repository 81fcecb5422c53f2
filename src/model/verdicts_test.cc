// Goal: what extenders say counts for the pod, the query and the nodes that it was asked of, and for
// nothing else. Method: the table alone.
#include "model/verdicts.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::model {
namespace {

constexpr OwnerId kPod{3};
constexpr NameId kA{7};
constexpr NameId kB{5};
constexpr NameId kOther{9};
constexpr Instant kNow = Instant::FromSeconds(100);

TEST(VerdictTableTest, SaysOfEachNodeWhatWasSaid) {
  VerdictTable table;
  const uint64_t query = table.Ask(kPod, {kA, kB});
  EXPECT_TRUE(table.IsAsked(kPod));
  EXPECT_EQ(table.asked_count(), 1u);
  EXPECT_EQ(table.Of(kPod, kA), nullptr);
  EXPECT_TRUE(table.Answer(
      kPod, query, kNow,
      {{.node = kA, .permitted = true, .score = 70}, {.node = kOther, .permitted = true}}));
  EXPECT_FALSE(table.IsAsked(kPod));
  EXPECT_EQ(table.asked_count(), 0u);
  EXPECT_EQ(*table.Of(kPod, kA), (NodeVerdict{.node = kA, .permitted = true, .score = 70}));
  // Asked about, and passed over.
  EXPECT_EQ(*table.Of(kPod, kB), (NodeVerdict{.node = kB, .unresolvable = true}));
  EXPECT_EQ(table.Of(kPod, kOther), nullptr);
  EXPECT_EQ(table.Of(OwnerId{4}, kA), nullptr);
}

TEST(VerdictTableTest, AnAnswerToAnOlderQueryOrASecondOneCountsForNothing) {
  VerdictTable table;
  const uint64_t first = table.Ask(kPod, {kA});
  const uint64_t second = table.Ask(kPod, {kA});
  EXPECT_EQ(table.asked_count(), 1u);
  EXPECT_FALSE(table.Answer(kPod, first, kNow, {{.node = kA, .permitted = true}}));
  EXPECT_TRUE(table.IsAsked(kPod));
  EXPECT_TRUE(table.Answer(kPod, second, kNow, {{.node = kA}}));
  EXPECT_FALSE(table.Answer(kPod, second, kNow, {{.node = kA, .permitted = true}}));
  EXPECT_FALSE(table.Of(kPod, kA)->permitted);
}

TEST(VerdictTableTest, ForgetsAPodAndCountsTheRest) {
  VerdictTable table;
  const uint64_t query = table.Ask(kPod, {kA});
  table.Ask(OwnerId{4}, {kA});
  table.Erase(kPod);
  table.Erase(kPod);
  EXPECT_EQ(table.asked_count(), 1u);
  EXPECT_FALSE(table.Answer(kPod, query, kNow, {}));
  EXPECT_EQ(table.Find(kPod), nullptr);
}

constexpr OwnerId kVictim{11};
constexpr OwnerId kOtherVictim{12};

TEST(VerdictTableTest, WhoIsToBeEvictedIsAskedBesideWhatIsKnownOfNodes) {
  VerdictTable table;
  EXPECT_TRUE(table.Answer(kPod, table.Ask(kPod, {kA}), kNow, {{.node = kA, .permitted = true}}));
  EXPECT_EQ(table.VictimsFor(kPod), nullptr);
  const uint64_t query = table.AskAboutVictims(
      kPod, {{.node = kA, .pods = {kVictim}}, {.node = kB, .pods = {kVictim}}});
  EXPECT_TRUE(table.IsAsked(kPod));
  EXPECT_EQ(table.asked_count(), 1u);
  EXPECT_EQ(table.VictimsFor(kPod), nullptr);
  EXPECT_TRUE(table.Of(kPod, kA)->permitted);
  EXPECT_FALSE(table.AnswerAboutVictims(kPod, query + 1, kNow, {}));
  EXPECT_FALSE(table.Answer(kPod, query, kNow, {}));
  // Of a node that was not asked about, and of one without victims, nothing is taken.
  const std::vector<NodeVictims> said = {
      {.node = kB, .pods = {kVictim, kOtherVictim}, .pdb_violations = 1},
      {.node = kOther, .pods = {kVictim}},
      {.node = kA, .pods = {}}};
  EXPECT_TRUE(table.AnswerAboutVictims(kPod, query, kNow, said));
  EXPECT_FALSE(table.AnswerAboutVictims(kPod, query, kNow, said));
  EXPECT_EQ(*table.VictimsFor(kPod), std::vector<NodeVictims>{said.front()});
  EXPECT_EQ(table.asked_count(), 0u);
  EXPECT_EQ(table.Find(kPod)->at, kNow);
  // Its id may be another's by now.
  table.ForgetVictim(kOtherVictim);
  EXPECT_TRUE(table.VictimsFor(kPod)->empty());
  table.Ask(kPod, {kA});
  EXPECT_EQ(table.VictimsFor(kPod), nullptr);
}

TEST(VerdictTableTest, OfAPodThatFitsNowhereVictimsAreAllThatIsAsked) {
  VerdictTable table;
  table.AskAboutVictims(kPod, {{.node = kA, .pods = {kVictim}}});
  EXPECT_TRUE(table.IsAsked(kPod));
  EXPECT_EQ(table.Of(kPod, kA), nullptr);
  table.Erase(kPod);
  EXPECT_EQ(table.asked_count(), 0u);
}

}  // namespace
}  // namespace berth::model
