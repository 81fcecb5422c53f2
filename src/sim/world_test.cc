// Goal: the whole simulated system is a value under one seed. Method: fork at random steps and run
// both on to equal hashes; run seeds twice; run with and without faults to the same end; switch
// each planted bug on and see it found.
#include "sim/world.h"

#include <gtest/gtest.h>

#include "sim/run.h"

namespace berth::sim {
namespace {

constexpr Instant kLate = Instant::Never();

void StepTimes(World& world, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) world.Step(kLate);
}

TEST(World, AForkRunsOnToTheSameBytes) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    World world(OptionsOf({.seed = seed}));
    StepTimes(world, 500 + Prng(seed).Below(3000));
    World fork = world;
    EXPECT_EQ(fork.Hash(), world.Hash());
    StepTimes(world, 1500);
    EXPECT_NE(fork.Hash(), world.Hash());
    StepTimes(fork, 1500);
    EXPECT_EQ(fork.Hash(), world.Hash()) << "seed " << seed;
    EXPECT_EQ(fork.trace_hash(), world.trace_hash()) << "seed " << seed;
  }
}

TEST(Run, TheSameSeedGivesTheSameBytes) {
  const RunResult once = RunSeed({.seed = 11, .commits_min = 300});
  const RunResult again = RunSeed({.seed = 11, .commits_min = 300});
  EXPECT_EQ(once.hash, again.hash);
  EXPECT_EQ(once.steps, again.steps);
}

TEST(Run, WithoutFaultsEverythingWantedComesTrue) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const RunResult result = RunSeed({.seed = seed, .faults = false, .commits_min = 300});
    EXPECT_EQ(result.violations, std::vector<std::string>{}) << "seed " << seed;
    EXPECT_GT(result.bindings, 0u);
  }
}

TEST(Run, WithFaultsItEndsAsGood) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const RunResult result = RunSeed({.seed = seed, .commits_min = 300});
    EXPECT_EQ(result.violations, std::vector<std::string>{}) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::sim
