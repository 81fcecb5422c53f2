// Goal: each check of budgets can fail, says which rule was broken, and is silent about what is
// allowed. Method: durable changes one after another, with the sentence that is expected of the
// last.
#include "sim/budget_checks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

env::JournalRecord Pod(const std::string& name, bool ready, bool evicted = false) {
  return {
      .key = "pods/ns/" + name,
      .revision = 1,
      .value = Bytes(fmt::format(
          R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"u-{0}","labels":{{"app":"web"}}{1}}},)"
          R"("spec":{{"containers":[{{"name":"c","image":"i"}}]}},"status":{{"phase":"Running",)"
          R"("conditions":[{{"type":"Ready","status":"{2}"}}{3}]}}}})",
          name, evicted ? R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")" : "",
          ready ? "True" : "False",
          evicted ? R"(,{"type":"DisruptionTarget","status":"True",)"
                    R"("reason":"EvictionByEvictionAPI"})"
                  : ""))};
}

// Must keep `desired`, and says that so many may go; `evicted` are the pods on their way.
env::JournalRecord Budget(int64_t desired, int64_t allowed, int64_t healthy,
                          const std::string& evicted = "") {
  return {.key = "poddisruptionbudgets.policy/ns/guard",
          .revision = 1,
          .value = Bytes(fmt::format(
              R"({{"metadata":{{"name":"guard","namespace":"ns","uid":"b"}},)"
              R"("spec":{{"minAvailable":{0},"selector":{{"matchLabels":{{"app":"web"}}}}}},)"
              R"("status":{{"desiredHealthy":{0},"disruptionsAllowed":{1},"currentHealthy":{2},)"
              R"("disruptedPods":{{{3}}}}}}})",
              desired, allowed, healthy,
              evicted.empty() ? "" : fmt::format(R"("{}":"2026-01-01T00:00:00Z")", evicted)))};
}

class BudgetChecksTest : public ::testing::Test {
 protected:
  std::vector<std::string> Commit(const env::JournalRecord& record, int64_t second = 0) {
    const Truth::Change change = truth_.Apply(record);
    return checks_.OnCommit(Instant::FromSeconds(second), record, change, truth_);
  }
  void Start() {
    for (const char* name : {"a", "b", "c"}) EXPECT_THAT(Commit(Pod(name, true)), IsEmpty());
    EXPECT_THAT(Commit(Budget(2, 1, 3)), IsEmpty());
  }

  Truth truth_;
  BudgetChecks checks_;
};

TEST_F(BudgetChecksTest, AnEvictionIsChargedOnce) {
  Start();
  EXPECT_THAT(Commit(Budget(2, 0, 3, "a")), IsEmpty());
  EXPECT_THAT(Commit(Pod("a", true, /*evicted=*/true)), IsEmpty());
  EXPECT_EQ(checks_.charged(), 1u);
  EXPECT_THAT(Commit(Budget(2, 0, 2)), IsEmpty());
}

TEST_F(BudgetChecksTest, NotToBeChargedIsAViolation) {
  Start();
  EXPECT_THAT(Commit(Budget(2, 1, 3, "a")),
              ElementsAre("budget ns/guard had 1 disruptions left and is charged 0 for 1"));
}

TEST_F(BudgetChecksTest, ToBeChargedTwiceIsAViolation) {
  Start();
  EXPECT_THAT(Commit(Budget(2, -1, 3, "a")),
              ElementsAre("budget ns/guard had 1 disruptions left and is charged 2 for 1"));
}

TEST_F(BudgetChecksTest, ToSpendWhatThereIsNotIsAViolation) {
  Start();
  EXPECT_THAT(Commit(Budget(2, 0, 2)), IsEmpty());
  EXPECT_THAT(Commit(Budget(2, -1, 2, "a")),
              ElementsAre("budget ns/guard had 0 disruptions left and is charged 1 for 1"));
}

TEST_F(BudgetChecksTest, AnEvictionThatNoBudgetPaysForIsAViolation) {
  Start();
  EXPECT_THAT(Commit(Pod("a", true, /*evicted=*/true)),
              ElementsAre("pod ns/a is evicted, and its budget ns/guard is not charged"));
}

TEST_F(BudgetChecksTest, AnUnreadyPodCostsNothing) {
  Start();
  EXPECT_THAT(Commit(Pod("a", false)), IsEmpty());
  EXPECT_THAT(Commit(Pod("a", false, /*evicted=*/true)), IsEmpty());
}

TEST_F(BudgetChecksTest, ToAllowMoreThanThePodsBearOutIsAViolation) {
  Start();
  EXPECT_THAT(Commit(Budget(2, 2, 4)), ElementsAre(HasSubstr("allows 2 disruptions")));
}

TEST_F(BudgetChecksTest, AControllerMayNotHaveHeardOfALossYet) {
  Start();
  EXPECT_THAT(Commit(Pod("a", false), 10), IsEmpty());
  EXPECT_THAT(Commit(Budget(2, 0, 3), 11), IsEmpty());
  EXPECT_THAT(Commit(Budget(2, 1, 3), 12), IsEmpty());
  // Later it has.
  EXPECT_THAT(Commit(Budget(2, 0, 3), 13), IsEmpty());
  EXPECT_THAT(Commit(Budget(2, 1, 3), 200), ElementsAre(HasSubstr("2 are ready, 0 were")));
}

TEST_F(BudgetChecksTest, NorOfAnEvictionFromBeforeTheBudget) {
  for (const char* name : {"a", "b", "c"}) EXPECT_THAT(Commit(Pod(name, true)), IsEmpty());
  EXPECT_THAT(Commit(Pod("a", true, /*evicted=*/true)), IsEmpty());
  EXPECT_THAT(Commit(Budget(2, 1, 3), 10), IsEmpty());
  EXPECT_THAT(Commit(Budget(2, 2, 4), 20), ElementsAre(HasSubstr("allows 2 disruptions")));
}

TEST_F(BudgetChecksTest, AtRestABudgetSaysWhatIsSo) {
  Start();
  EXPECT_THAT(checks_.AtRest({{"ns/guard", 2}}, truth_), IsEmpty());
  EXPECT_THAT(checks_.AtRest({{"ns/other", 2}}, truth_),
              ElementsAre("at rest, budget ns/other is gone"));
  EXPECT_THAT(checks_.AtRest({{"ns/guard", 1}}, truth_), ElementsAre(HasSubstr("1 must be")));
  EXPECT_THAT(Commit(Budget(2, 0, 3, "a")), IsEmpty());
  EXPECT_THAT(checks_.AtRest({{"ns/guard", 2}}, truth_),
              ElementsAre(HasSubstr("1 on their way: 2 are ready")));
}

}  // namespace
}  // namespace berth::sim
