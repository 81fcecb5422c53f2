#include "place/formulas.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>

#include "base/limits.h"

// Goal: scores are upstream's to the last unit. Method: values worked out by hand at the edges, and
// integer arithmetic as the twin of the division in doubles.
namespace berth::place {
namespace {

TEST(FormulasTest, FreePercentIsIntegerDivision) {
  EXPECT_EQ(FreePercent({1000, 0}), 100);
  EXPECT_EQ(FreePercent({1000, 1000}), 0);
  EXPECT_EQ(FreePercent({1000, 1001}), 0) << "overcommitted";
  EXPECT_EQ(FreePercent({1000, 991}), 0);
  EXPECT_EQ(FreePercent({1000, 990}), 1);
  EXPECT_EQ(FreePercent({limits::kAmountMax, 1}), 99) << "just below the whole";
  EXPECT_TRUE(rc::check([] {
    const int64_t capacity = *rc::gen::inRange<int64_t>(1, limits::kAmountMax);
    // Near multiples of a hundredth, where rounding would show.
    const int64_t percent = *rc::gen::inRange<int64_t>(0, 101);
    const int64_t near = capacity / 100 * percent + capacity % 100 * percent / 100;
    const int64_t used = std::clamp<int64_t>(near + *rc::gen::inRange<int64_t>(-2, 3), 0, capacity);
    RC_ASSERT(FreePercent({capacity, used}) == (capacity - used) * 100 / capacity);
  }));
}

TEST(FormulasTest, LeastAllocatedLeavesOutWhatTheNodeDoesNotOffer) {
  EXPECT_EQ(LeastAllocated({1000, 500}, {1000, 251}), (50 + 74) / 2);
  EXPECT_EQ(LeastAllocated({1000, 500}, {0, 251}), 50);
  EXPECT_EQ(LeastAllocated({0, 0}, {0, 0}), 0);
}

TEST(FormulasTest, EvennessIsOneMinusTheDeviationOfTheFractions) {
  EXPECT_EQ(Evenness({1000, 500}, {1000, 500}), 100);
  EXPECT_EQ(Evenness({1000, 0}, {1000, 1000}), 50);
  EXPECT_EQ(Evenness({1000, 0}, {1000, 2000}), 50) << "a fraction is at most 1";
  EXPECT_EQ(Evenness({1000, 1000}, {0, 0}), 100) << "one resource alone is even";
  EXPECT_EQ(Evenness({1000, 300}, {1000, 310}), 99) << "0.995 truncates";
}

TEST(FormulasTest, BalancedRewardsImprovement) {
  EXPECT_EQ(Balanced(100, 100), 75);
  EXPECT_EQ(Balanced(100, 50), 100);
  EXPECT_EQ(Balanced(50, 100), 50);
  EXPECT_EQ(Balanced(99, 100), 74) << "49 / 2 truncates";
}

TEST(FormulasTest, NormalFormsAreRelativeToTheLargest) {
  EXPECT_EQ(NormalAffinity(0, 0), 0);
  EXPECT_EQ(NormalAffinity(1, 3), 33);
  EXPECT_EQ(NormalAffinity(3, 3), 100);
  EXPECT_EQ(NormalTaints(0, 0), 100);
  EXPECT_EQ(NormalTaints(1, 3), 67);
  EXPECT_EQ(NormalTaints(3, 3), 0);
}

// What Go's math.Log gives, to the bit.
TEST(FormulasTest, TheLogarithmIsGos) {
  EXPECT_EQ(std::bit_cast<uint64_t>(Log(1)), 0u);
  EXPECT_EQ(std::bit_cast<uint64_t>(Log(3)), 0x3ff193ea7aad030au);
  EXPECT_EQ(std::bit_cast<uint64_t>(Log(5002)), 0x40210901f6dc84b9u);
  EXPECT_EQ(std::bit_cast<uint64_t>(Log(100002)), 0x402706a0c9b7a3abu);
}

TEST(FormulasTest, FewerPodsOfADomainAreBetter) {
  EXPECT_EQ(NormalSpread(0, 0, 0), 100);
  EXPECT_EQ(NormalSpread(2, 2, 6), 100);
  EXPECT_EQ(NormalSpread(6, 2, 6), 33);
  EXPECT_EQ(SpreadScore(3, 2.0, 5), 10.0);
}

}  // namespace
}  // namespace berth::place
