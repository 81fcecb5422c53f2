#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "explore/scenario.h"
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/world.h"

// Random mode: a scenario played by the production controllers and kubelets in sim::World, in place
// of the explorer's atomic models, so that the models can be compared with what they stand for
// (docs/design/0008-explorer.md).
namespace berth::explore {

// What it comes to, in words that are the same whoever made the pods and however they are called:
// what stands on which node, what waits, what is over, and how many pods the scheduler evicted. A
// pod of an owner is called by the first owner whose pods ask for the same; a node by what it has,
// unless a line of the scenario means it by name.
[[nodiscard]] std::string Outcome(const Scenario& scenario, const sim::Truth& truth,
                                  uint64_t evictions);

// What a walk found: how it begins, and all that it comes to.
struct Known {
  std::string start;
  std::set<std::string> ends;
  bool whole = false;
};

struct PlayOptions {
  uint64_t first = 1;
  uint64_t seeds = 1;
  sim::PlantedBugs bugs;
};

struct Played {
  uint64_t plays = 0;
  uint64_t compared = 0;                   // Began as the walk did: ends are looked up there.
  uint64_t known = 0;                      // Of these, ended in one of its ends.
  std::map<std::string, uint64_t> ends;    // How many plays came to each.
  std::map<uint64_t, std::string> failed;  // By seed: what was wrong first.
  sim::FaultCounts faults;
};

// Whether the file has nothing that only the explorer can do: kubelets on some nodes alone, writes
// to a pod's status, nodes that are changed before anybody acts.
[[nodiscard]] bool CanPlay(const Scenario& scenario);

// Plays the scenario under each seed: machines, ReplicaSets and users' requests are those of the
// file, in the order that seed and network make. Messages fail as watches do, and as the file lets
// writes fail. All checkers of the simulator hold, at rest too; there are no more evictions than
// the file expects; and it comes to one of the walk's ends, when that walk was whole and began as
// this play did. REQUIRES: CanPlay. Deterministic. Cost: a tenth of a second a seed.
[[nodiscard]] Played PlayRandom(const Scenario& scenario, const PlayOptions& options,
                                const Known& known);

}  // namespace berth::explore
