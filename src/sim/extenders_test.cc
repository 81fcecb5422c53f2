// Goal: with an extender that is asked about every pod, and is slow, silent, wrong and of another
// mind amid all other faults, no pod is bound twice, none is lost, and all that can be placed is.
// Method: seeds of the simulator (docs/design/0028-extenders.md).
#include <gtest/gtest.h>

#include "sim/run.h"

namespace berth::sim {
namespace {

TEST(SimulatedExtenders, LoseNobodyAndBindNobodyTwice) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    const RunResult result = RunSeed({.seed = seed, .extenders = true, .commits_min = 500});
    EXPECT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations.front();
    EXPECT_GT(result.bindings, 10u) << "seed " << seed;
  }
}

TEST(SimulatedExtenders, AlsoWhereReplicasLeadInTurn) {
  const RunResult result =
      RunSeed({.seed = 1, .replicas = true, .extenders = true, .commits_min = 500});
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  EXPECT_GT(result.terms, 1u);
}

TEST(SimulatedExtenders, TheSameSeedGivesTheSameBytes) {
  const RunOptions options{.seed = 4, .extenders = true, .commits_min = 200};
  EXPECT_EQ(RunSeed(options).hash, RunSeed(options).hash);
}

}  // namespace
}  // namespace berth::sim
