// Goal: the smallest parts keep their promises: the generator's numbers are fixed for all time,
// times saturate, hashes tell strings apart by their borders. Method: fixed expectations and edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/backoff.h"
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
  EXPECT_EQ(Duration::Seconds(1) * INT64_MIN, Duration{INT64_MIN});
  EXPECT_EQ(Instant{} - Duration{INT64_MIN}, Instant::Never());
  EXPECT_EQ(Instant{-2} - Duration::Max(), Instant{INT64_MIN});
  // Users write seconds without bound.
  EXPECT_EQ(Duration::Seconds(INT64_MAX), Duration::Max());
  EXPECT_EQ(Duration::Seconds(INT64_MIN), Duration{INT64_MIN});
  EXPECT_EQ(Duration::Milliseconds(10'000'000'000'000), Duration::Max());
  EXPECT_EQ(Instant::FromSeconds(1'000'000'000'000), Instant::Never());
  EXPECT_EQ(Instant{-1}.seconds(), -1);
  EXPECT_EQ(Instant{INT64_MIN}.seconds(), -9'223'372'037);
  EXPECT_EQ(Instant{1'999'999'999}.seconds(), 1);
}

TEST(Hash, BordersBetweenStringsCount) {
  EXPECT_NE(Hasher().Add(std::string_view("ab")).Add(std::string_view("c")).value(),
            Hasher().Add(std::string_view("a")).Add(std::string_view("bc")).value());
  EXPECT_EQ(HashOf("berth"), HashOf("berth"));
}

// Versions are alike when as many are newer: of 1..9, all of one object.
class Newer final : public HashNames {
 public:
  explicit Newer(uint64_t newest) : newest_(newest) {}
  uint64_t OfVersion(uint64_t version) const override { return newest_ - version; }
  uint64_t OfPosition(uint64_t version, std::string_view kind) const override {
    return kind == "pods" ? newest_ - version : 0;
  }
  uint64_t OfCall(uint64_t call) const override { return call == call_ ? name_ : 0; }
  void NameCall(uint64_t call, uint64_t name) override { call_ = call, name_ = name; }

 private:
  uint64_t newest_;
  uint64_t call_ = 0;
  uint64_t name_ = 0;
};

TEST(Hash, WithNamesThePastIsLeftOut) {
  const auto hash = [](uint64_t newest, uint64_t call, uint64_t count, std::string_view json) {
    Newer names(newest);
    names.NameCall(call, 77);
    Hasher hasher(&names);
    hasher.AddHistory(count).AddCall(call).AddDocument(json);
    hasher.AddEach(std::vector<uint64_t>{call % 2, 1 - call % 2},
                   [](Hasher& one, uint64_t value) { one.Add(value); });
    return hasher.value();
  };
  constexpr std::string_view kOld = R"({"metadata":{"name":"a","resourceVersion":"3"},"x":1})";
  constexpr std::string_view kNew = R"({"metadata":{"name":"a","resourceVersion":"8"},"x":1})";
  constexpr std::string_view kOther = R"({"metadata":{"name":"a","resourceVersion":"8"},"x":2})";
  EXPECT_EQ(hash(4, 10, 1, kOld), hash(9, 11, 2, kNew));
  EXPECT_NE(hash(4, 10, 1, kOld), hash(5, 10, 1, kOld));
  EXPECT_NE(hash(9, 10, 1, kNew), hash(9, 10, 1, kOther));
  constexpr std::string_view kPods =
      R"({"kind":"PodList","metadata":{"resourceVersion":"3"},"items":[]})";
  constexpr std::string_view kNodes =
      R"({"kind":"NodeList","metadata":{"resourceVersion":"3"},"items":[]})";
  EXPECT_NE(hash(4, 10, 1, kPods), hash(5, 10, 1, kPods));
  EXPECT_EQ(hash(4, 10, 1, kNodes), hash(5, 10, 1, kNodes));
  // A condition of a PodGroup names a version, too.
  constexpr std::string_view kCondition = R"({"conditions":[{"transitionID":"3"}]})";
  EXPECT_NE(hash(4, 10, 1, kCondition), hash(5, 10, 1, kCondition));
  EXPECT_EQ(hash(4, 10, 1, kCondition), hash(9, 10, 1, R"({"conditions":[{"transitionID":"8"}]})"));
}

TEST(Hash, WithoutNamesEverythingCounts) {
  const auto plain = [](uint64_t number) { return Hasher().Add(number).value(); };
  EXPECT_EQ(Hasher().AddHistory(uint64_t{5}).value(), plain(5));
  EXPECT_EQ(Hasher().AddVersion(uint64_t{5}).value(), plain(5));
  EXPECT_EQ(Hasher().AddPosition(uint64_t{5}, "pods").value(), plain(5));
  EXPECT_EQ(Hasher().AddCall(5).value(), plain(5));
  const std::string_view text = "a text";
  EXPECT_EQ(Hasher().AddDocument(text).value(), HashOf(text));
  EXPECT_EQ(Hasher().AddVersion(text).value(), HashOf(text));
  const auto add = [](Hasher& one, uint64_t value) { one.Add(value); };
  EXPECT_NE(Hasher().AddEach(std::vector<uint64_t>{1, 2}, add).value(),
            Hasher().AddEach(std::vector<uint64_t>{2, 1}, add).value());
}

TEST(Backoff, DoublesFromTheFirstAndStaysAtTheLast) {
  const Duration first = Duration::Milliseconds(5);
  const Duration most = Duration::Seconds(1000);
  const auto after = [&](uint32_t count) { return Doubled(first, count, most); };
  EXPECT_EQ(after(0).ns, 0);
  EXPECT_EQ(after(1).ns, first.ns);
  EXPECT_EQ(after(2).ns, 2 * first.ns);
  EXPECT_EQ(after(18).ns, (int64_t{1} << 17) * first.ns);
  for (const uint32_t count : {19U, 63U, 64U, 65U, 1000U, UINT32_MAX}) {
    EXPECT_EQ(after(count).ns, most.ns) << count;
  }
  EXPECT_EQ(Doubled(most, 1, most).ns, most.ns);
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
