// Goal: the smallest parts keep their promises: the generator's numbers are fixed for all time,
// times saturate, hashes tell strings apart by their borders. Method: fixed expectations and edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"

namespace berth {
namespace {

TEST(Prng, SameSeedGivesTheSameNumbersAndSplitIsIndependent) {
  Prng a(7);
  Prng b(7);
  Prng child = a.Split();
  static_cast<void>(b.Split());
  const uint64_t next = b.Next();
  for (int i = 0; i < 100; ++i) child.Next();
  EXPECT_EQ(a.Next(), next);
}

TEST(Prng, BelowReachesEveryValueAndBetweenTakesTheWholeRange) {
  Prng prng(1);
  std::vector<int> seen(7);
  for (int i = 0; i < 1000; ++i) ++seen[prng.Below(7)];
  EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n > 90; }));
  static_cast<void>(prng.Between(INT64_MIN, INT64_MAX));
  EXPECT_EQ(prng.Between(-3, -3), -3);
}

TEST(Prng, ShufflePermutes) {
  std::vector<int> items(50);
  std::iota(items.begin(), items.end(), 0);
  const std::vector<int> before = items;
  Prng(3).Shuffle(std::span(items));
  EXPECT_NE(items, before);
  std::ranges::sort(items);
  EXPECT_EQ(items, before);
}

TEST(Time, ArithmeticSaturatesSoNeverStaysNever) {
  EXPECT_EQ(Instant::Never() + Duration::Seconds(1), Instant::Never());
  EXPECT_EQ(Duration::Seconds(1) * INT64_MAX, Duration::Max());
  EXPECT_EQ(Instant{-1}.seconds(), -1);
  EXPECT_EQ(Instant{1'999'999'999}.seconds(), 1);
}

TEST(Hash, BordersBetweenStringsCount) {
  EXPECT_NE(Hasher().Add(std::string_view("ab")).Add(std::string_view("c")).value(),
            Hasher().Add(std::string_view("a")).Add(std::string_view("bc")).value());
  EXPECT_EQ(HashOf("berth"), HashOf("berth"));
}

TEST(Check, AFailurePrintsBothValues) {
  EXPECT_DEATH(CHECK_EQ(1 + 1, 3), "CHECK\\(1 \\+ 1 == 3\\) failed: 2 against 3");
}

TEST(Result, CarriesTheErrorOrTheValue) {
  const Result<int> bad = Fail(ErrorCode::kInvalid, "pod a: cpu is negative");
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().message, "pod a: cpu is negative");
}

TEST(Bytes, SharesAndComparesByContent) {
  const Bytes a(std::string("x"));
  EXPECT_EQ(a, Bytes(std::string("x")));
  EXPECT_TRUE(Bytes().empty());
}

}  // namespace
}  // namespace berth
