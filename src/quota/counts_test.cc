#include "quota/counts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace berth::quota {
namespace {

// Goal: what is missing is shared out in proportion, and nobody starts with less than it may.
// Method: two sets of which one may miss twice as many, and room for ever fewer pods.
TEST(CountsTest, WhatIsMissingIsSharedOut) {
  const std::vector<CountRange> ranges = {{.count = 10, .count_min = 4},
                                          {.count = 5, .count_min = 2}};
  const auto with = [&](uint32_t room) {
    const auto counts = LargestCounts(ranges, [&](std::span<const uint32_t> c) {
      return std::accumulate(c.begin(), c.end(), 0u) <= room;
    });
    return counts ? std::to_string((*counts)[0]) + "+" + std::to_string((*counts)[1]) : "none";
  };
  EXPECT_EQ(with(15), "10+5");
  EXPECT_EQ(with(12), "8+4");
  EXPECT_EQ(with(8), "5+3");
  EXPECT_EQ(with(7), "4+2");
  EXPECT_EQ(with(6), "4+2");
  EXPECT_EQ(with(5), "none");
  EXPECT_FALSE(LargestCounts(std::vector<CountRange>{{.count = 3, .count_min = 3}},
                             [](std::span<const uint32_t>) { return true; })
                   .has_value());
}

// Goal: the least is missing that lets the rest fit. Method: every number that may be missing is
// tried in order, for random ranges and a random limit of each set.
RC_GTEST_PROP(CountsTest, TheLeastIsMissing, ()) {
  std::vector<CountRange> ranges;
  std::vector<uint32_t> most;
  uint32_t missing_max = 0;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    const auto count = *rc::gen::inRange(0u, 20u);
    ranges.push_back({.count = count, .count_min = *rc::gen::inRange(0u, count + 1)});
    most.push_back(*rc::gen::inRange(0u, 20u));
    missing_max += count - ranges.back().count_min;
  }
  const auto fits = [&](std::span<const uint32_t> counts) {
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > most[i]) return false;
    }
    return true;
  };
  std::vector<uint32_t> want;
  for (uint32_t missing = 0; missing_max > 0 && missing <= missing_max && want.empty(); ++missing) {
    std::vector<uint32_t> counts;
    for (const CountRange& range : ranges)
      counts.push_back(range.count - (range.count - range.count_min) * missing / missing_max);
    if (fits(counts)) want = counts;
  }
  const auto got = LargestCounts(ranges, fits);
  RC_ASSERT(got.has_value() == !want.empty());
  if (got.has_value()) RC_ASSERT(*got == want);
}

}  // namespace
}  // namespace berth::quota
