// Goal: the whole simulated system is a value under one seed. Method: fork at random steps and run
// both on to equal hashes; run seeds twice; run with and without faults to the same end. That each
// planted bug is found is shown by `dev sim --planted`, a tier of its own.
#include "sim/world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

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

// Goal: processes die right after a message, too, and not only at the instants at which all mishaps
// are drawn. Method: only crashes; instants that are no multiple of theirs.
TEST(World, ProcessesDieBetweenAnyTwoMessages) {
  WorldOptions options{.seed = 3, .trace = true};
  options.faults.chance[static_cast<size_t>(Fault::kSchedulerCrashed)] = {.part = 60,
                                                                          .whole = 1000};
  options.faults.chance[static_cast<size_t>(Fault::kServerCrashed)] = {.part = 40, .whole = 1000};
  World world(options);
  StepTimes(world, 8000);
  std::istringstream trace(world.trace());
  uint64_t schedulers = 0;
  uint64_t servers = 0;
  for (std::string line; std::getline(trace, line);) {
    const int64_t ns = std::strtoll(line.c_str(), nullptr, 10);
    if (ns % Duration::Milliseconds(100).ns == 0) continue;
    schedulers += line.ends_with("scheduler crash") ? 1 : 0;
    servers += line.ends_with("server crashes") ? 1 : 0;
  }
  EXPECT_GT(schedulers, 0u);
  EXPECT_GT(servers, 0u);
  EXPECT_EQ(world.checkers().violations(), std::vector<std::string>{});
}

}  // namespace
}  // namespace berth::sim
