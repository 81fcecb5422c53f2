#include "net/gathering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace berth::net {
namespace {

using testing::ElementsAre;

// What it waits, in ms, at a server that answers so many of 96 calls in a ms, each followed by
// another.
std::vector<int64_t> Waits(int answers_in_a_ms, int times) {
  Gathering gathering(8, Duration::Milliseconds(16));
  constexpr int kCalls = 96;
  uint64_t ended = 1000;
  std::vector<int64_t> waits;
  int64_t last = 0;
  for (int i = 0; i < times; ++i) {
    const auto came = std::min<int64_t>(kCalls, last * answers_in_a_ms);
    ended += static_cast<uint64_t>(came);
    last = gathering.Next(kCalls - static_cast<int>(came), ended).ns / 1'000'000;
    waits.push_back(last);
  }
  return waits;
}

TEST(Gathering, ItTakesAsLongAsTheServerTakesForAShareOfTheCalls) {
  EXPECT_THAT(Waits(0, 7), ElementsAre(1, 2, 4, 8, 16, 16, 16));
  EXPECT_THAT(Waits(1, 7), ElementsAre(1, 2, 4, 8, 16, 16, 16));
  EXPECT_THAT(Waits(4, 7), ElementsAre(1, 2, 4, 4, 4, 4, 4));
  // Never so long that a fast server stands idle.
  EXPECT_THAT(Waits(24, 7), ElementsAre(1, 1, 1, 1, 1, 1, 1));
}

TEST(Gathering, AServerThatGetsFasterIsFollowed) {
  Gathering gathering(8, Duration::Milliseconds(16));
  for (int i = 0; i < 5; ++i) EXPECT_GT(gathering.Next(96, 0), Duration{});
  EXPECT_EQ(gathering.Next(48, 48), Duration::Milliseconds(8));
  EXPECT_EQ(gathering.Next(48, 96), Duration::Milliseconds(4));
}

TEST(Gathering, FewCallsAreAnsweredAtOnce) {
  Gathering gathering(8, Duration::Milliseconds(16));
  EXPECT_EQ(gathering.Next(7, 0), Duration{});
  EXPECT_EQ(gathering.Next(8, 0), Duration::Milliseconds(1));
  EXPECT_EQ(gathering.Next(8, 0), Duration::Milliseconds(2));
  EXPECT_EQ(gathering.Next(7, 1), Duration{});
  EXPECT_EQ(gathering.Next(8, 1), Duration::Milliseconds(1));
  EXPECT_EQ(Gathering(0, Duration::Milliseconds(16)).Next(96, 0), Duration{});
  EXPECT_EQ(Gathering(8, {}).Next(96, 0), Duration{});
}

}  // namespace
}  // namespace berth::net
