#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/world.h"

namespace berth::sim {

struct RunOptions {
  uint64_t seed = 1;
  PlantedBugs bugs;
  // Without, the users' re-creations of pods and nodes remain: they are what is wanted.
  bool faults = true;
  bool trace = false;
  bool replicas = false;         // Two schedulers, of which one leads.
  bool extenders = false;        // An extender is asked about every pod.
  uint64_t commits_min = 2'000;  // The load is repeated until so many writes were accepted.
};

struct RunResult {
  uint64_t seed = 0;
  std::vector<std::string> violations;  // Empty: all checks hold.
  FaultCounts counts;
  uint64_t commits = 0;
  uint64_t bindings = 0;
  uint64_t evictions = 0;  // Of the scheduler.
  uint64_t charged = 0;    // Evictions by users that a budget paid for.
  uint64_t steps = 0;
  uint64_t terms = 0;  // How often a replica began to lead.
  Duration length;     // Simulated.
  uint64_t hash = 0;   // Of everything that was delivered and of the last state.
  std::string trace;
};

// The options that a seed stands for: sizes, load and faults are drawn from it (swarm testing).
[[nodiscard]] WorldOptions OptionsOf(const RunOptions& options);

// What of `wanted` is not so, in sentences. Of a pod of `lost_pods` only a place is expected, and
// that not when it is gone.
[[nodiscard]] std::vector<std::string> MissingAtRest(const Users::Wanted& wanted,
                                                     const Truth& truth,
                                                     const std::set<std::string>& lost_pods);

// Pods of the scheduler that wait although a node has room for them, in sentences: a plain count
// over the objects. Nodes with a taint or a cordon are left out.
[[nodiscard]] std::vector<std::string> UnplacedThatFit(const Truth& truth);

// Lets faults end and waits until nothing has changed for longer than any timer takes, or a check
// has failed.
void RunToRest(World& world);

// Reports to the world's checkers what must hold at rest and does not.
void CheckAtRest(World& world);

// One seed: load under faults, then calm until nothing changes any more, then the final checks:
// everything that can be placed is placed and what users wanted is so, as it would be without
// faults. Ends at the first violation.
[[nodiscard]] RunResult RunSeed(const RunOptions& options);

// The planted bugs by name, for tests and the command line.
struct NamedBug {
  std::string_view name;
  PlantedBugs bugs;
  std::string_view sign;  // What the violation that it is found by says.
  bool replicas = false;  // It is a defect of replicas: RunOptions.
};
[[nodiscard]] std::span<const NamedBug> AllPlantedBugs();
// Those that take an order of events which chance seldom brings: the explorer finds them
// (docs/RACES.md).
[[nodiscard]] std::span<const NamedBug> PlantedRaces();
// Of both; nothing when none has that name.
[[nodiscard]] const NamedBug* FindPlanted(std::string_view name);

// Whether the run found the bug, and not something else.
[[nodiscard]] bool Found(const NamedBug& bug, const RunResult& result);

}  // namespace berth::sim
