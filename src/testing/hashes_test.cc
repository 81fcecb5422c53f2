// Goal: a hash that misses a thing, or that is not of the case alone, fails its test, and a whole
// one passes. Method: hashes of two numbers, with gtest's own record of failures.
#include "testing/hashes.h"

#include <gtest/gtest-spi.h>

namespace berth::testing {
namespace {

struct Pair {
  int a = 1;
  int b = 2;

  void AddTo(Hasher& hasher) const { hasher.Add(a).Add(b); }
};

TEST(Hashes, AHashOfAllIsFine) {
  HashesApart<Pair> apart(StateHash<Pair>);
  apart.With("a", [](Pair& pair) { pair.a = 7; });
  apart.With("b", [](Pair& pair) { pair.b = 7; });
  HashesApart<Pair> other(StateHash<Pair>, {.a = 5});
  other.With("a", [](Pair& pair) { pair.a = 1; });
}

TEST(Hashes, AThingThatIsMissingIsNamed) {
  static HashesApart<Pair> apart([](const Pair& pair) { return Hasher().Add(pair.a).value(); });
  apart.With("a", [](Pair& pair) { pair.a = 7; });
  EXPECT_NONFATAL_FAILURE(apart.With("second", [](Pair& pair) { pair.b = 7; }), "second");
}

TEST(Hashes, AHashOfMoreThanTheCaseIsNoHash) {
  EXPECT_NONFATAL_FAILURE(
      {
        uint64_t times = 0;
        HashesApart<Pair> apart([&](const Pair&) { return ++times; });
      },
      "two hashes");
}

}  // namespace
}  // namespace berth::testing
