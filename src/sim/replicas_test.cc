// Goal: with two schedulers, of which one leads, and a leader that is paused, stopped and killed
// amid all other faults, no pod is bound twice and none is lost. Method: seeds of the simulator, and
// its planted bugs of replicas (docs/design/0024-leader-election.md).
#include <gtest/gtest.h>

#include "sim/run.h"

namespace berth::sim {
namespace {

TEST(Replicas, LeadInTurnAndNothingIsBoundTwiceOrLost) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    const RunResult result = RunSeed({.seed = seed, .replicas = true, .commits_min = 500});
    EXPECT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations.front();
    EXPECT_GT(result.terms, 1u) << "seed " << seed;
  }
}

TEST(Replicas, TheSameSeedGivesTheSameBytes) {
  const RunOptions options{.seed = 3, .replicas = true, .commits_min = 200};
  EXPECT_EQ(RunSeed(options).hash, RunSeed(options).hash);
}

// A leader that acts until it is told that it is none, and one that decides on what it knows.
TEST(Replicas, ThePlantedBugsAreFound) {
  constexpr uint64_t kSeedsMax = 40;
  for (const NamedBug& bug : AllPlantedBugs()) {
    if (!bug.replicas) continue;
    bool found = false;
    for (uint64_t seed = 1; seed <= kSeedsMax && !found; ++seed)
      found = Found(bug, RunSeed({.seed = seed, .bugs = bug.bugs, .replicas = true}));
    EXPECT_TRUE(found) << bug.name;
  }
}

}  // namespace
}  // namespace berth::sim
