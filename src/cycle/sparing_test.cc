// Goal: who can't be evicted costs nobody else anything for long: others are evicted where that
// helps, who waits is told, and it is tried again less and less often. Method: plans of small worlds.
#include <gtest/gtest.h>

#include <string>

#include "cycle/test_quota.h"

namespace berth::cycle {
namespace {

class SparingTest : public ::testing::Test {
 protected:
  SparingTest() {
    world_.Put(QueueSpec{.name = "q", .preemption = kEvicts});
    world_.Starts(stubborn_);
    world_.now = world_.now + Duration::Seconds(1);
  }
  void Refuse() {
    world_.engine.Apply(model::EvictionRefused{.uid = "u-stubborn", .code = 403, .at = world_.now});
  }
  std::string After(int64_t seconds) {
    world_.now = world_.now + Duration::Seconds(seconds);
    return world_.Cycle();
  }
  // Who is told to be in its way.
  std::string InTheWayOf(const std::string& name) {
    const auto why = world_.engine.admissions().WhyWaits(world_.state().FindWorkload("u-" + name));
    if (!why || why->spared_count == 0) return "nobody";
    return fmt::format("{} of {}", world_.state().KeyOf(why->spared), why->spared_count);
  }

  QuotaWorld world_;
  const WorkloadSpec stubborn_ = {.name = "stubborn", .count = 2};
};

TEST_F(SparingTest, AnotherIsEvictedInItsPlace) {
  const WorkloadSpec willing = {.name = "willing", .count = 2, .priority = 1};
  world_.Starts(willing);
  world_.Put(WorkloadSpec{.name = "high", .count = 2, .priority = 5});
  EXPECT_TRUE(world_.Cycle().starts_with("evict default/stubborn for default/high; "));
  Refuse();
  EXPECT_EQ(world_.RowOf("high").promised, model::Reservation{});
  EXPECT_FALSE(world_.RowOf("stubborn").claimant.valid());
  EXPECT_TRUE(world_.Cycle().starts_with("evict default/willing for default/high; "));
  world_.IsTold(willing);
  world_.Remove("willing");
  EXPECT_EQ(world_.Cycle(), "default/high: q spot 2000; ");
  EXPECT_EQ(After(3600), "") << "nobody has to leave any more";
}

TEST_F(SparingTest, WhoCantDoWithoutItIsToldAndTriesAgainLater) {
  world_.Put(WorkloadSpec{.name = "high", .count = 4, .priority = 5});
  const std::string evicts = "evict default/stubborn for default/high; ";
  EXPECT_TRUE(world_.Cycle().starts_with(evicts));
  EXPECT_EQ(InTheWayOf("high"), "nobody");
  Refuse();
  EXPECT_EQ(world_.Cycle(), "default/high lacks 2000; ");
  EXPECT_EQ(InTheWayOf("high"), "default/stubborn of 1");
  EXPECT_EQ(world_.Cycle(), "") << "and nothing is tried before its time is over";
  int64_t seconds = 10;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(world_.engine.wake_at(), world_.now + Duration::Seconds(seconds)) << i;
    EXPECT_EQ(After(seconds - 1), "") << i;
    EXPECT_TRUE(After(1).starts_with(evicts)) << i;
    Refuse();
    EXPECT_EQ(world_.Cycle(), "default/high lacks 2000; ") << i;
    seconds = std::min<int64_t>(300, seconds * 2);
  }
  // It goes in the end.
  EXPECT_TRUE(After(300).starts_with(evicts));
  world_.IsTold(stubborn_);
  Refuse();
  EXPECT_NE(world_.RowOf("high").promised, model::Reservation{}) << "it leaves all the same";
  EXPECT_EQ(world_.RowOf("stubborn").spared_count, 0u);
  world_.Remove("stubborn");
  EXPECT_EQ(world_.Cycle(), "default/high: q spot 4000; ");
}

// Of nobody who holds quota is it remembered.
TEST_F(SparingTest, WhoLetsGoIsSparedNoMore) {
  world_.Put(WorkloadSpec{.name = "high", .count = 4, .priority = 5});
  world_.Cycle();
  Refuse();
  world_.Cycle();
  world_.Put(stubborn_);
  EXPECT_EQ(world_.RowOf("stubborn").spared_until, Instant{});
  EXPECT_TRUE(world_.Cycle().starts_with("default/high: q spot 4000; "));
}

}  // namespace
}  // namespace berth::cycle
