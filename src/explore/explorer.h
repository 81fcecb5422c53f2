#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "explore/scenario.h"
#include "explore/stage.h"

// The exhaustive search over the choices of a scenario (docs/design/0008-explorer.md).
namespace berth::explore {

struct ExploreOptions {
  sim::PlantedBugs bugs;
  // Leaves out orders that lead to what another leads to (sleep sets). Off: brute force.
  bool reduce = true;
  // Goes on from a state once, however it was reached. Off: the tree of all paths.
  bool merge = true;
  // Ends at the first violation. Off: finds all that there are.
  bool stop = true;
  uint64_t states_max = 0;  // Over the scenario's bound when it is not 0.
  // Told each state at rest, if it is there.
  std::function<void(const Stage&)> at_end = {};
};

// A way to a violation: the number of each choice among those that there were.
struct Violation {
  std::string what;
  std::vector<uint32_t> path;
};

struct Report {
  uint64_t choices = 0;      // Things that could happen, over all states that were gone on from.
  uint64_t states = 0;       // Distinct.
  uint64_t transitions = 0;  // Choices that were taken.
  uint64_t pruned = 0;       // Choices left out, because another order leads to the same.
  uint64_t merged = 0;       // Transitions that led to a state that was known.
  uint32_t depth = 0;        // The longest path.
  uint64_t ends = 0;         // States in which nothing is left to happen.
  uint64_t bindings = 0;     // That came true, at most on one path: none would show nothing.
  uint64_t depth_cuts = 0;   // States that were not gone on from: the depth's bound.
  bool states_cut = false;   // The search ended at the bound of states.
  std::set<uint64_t> end_hashes;       // Of the states at rest.
  std::set<std::string> violations;    // Without the times.
  std::optional<Violation> violation;  // The first, shrunk.

  [[nodiscard]] bool whole() const { return depth_cuts == 0 && !states_cut; }
};

// Fails when the scenario can't be set up. Deterministic. Cost: some 50 us a transition, some 50
// bytes a state.
[[nodiscard]] Result<Report> Explore(const std::shared_ptr<const Scenario>& scenario,
                                     const ExploreOptions& options);

// What happens along a path, in words, numbered; what the scheduler sends below each step. Ends
// with the violation, if there is one. An Error: a number is not one of the choices that there are.
[[nodiscard]] Result<std::string> TellStory(const std::shared_ptr<const Scenario>& scenario,
                                            const sim::PlantedBugs& bugs,
                                            const std::vector<uint32_t>& path);

// The same as a graph in the language of graphviz.
[[nodiscard]] Result<std::string> DrawStory(const std::shared_ptr<const Scenario>& scenario,
                                            const sim::PlantedBugs& bugs,
                                            const std::vector<uint32_t>& path);

// "3.0.12", as it is printed and taken by --replay.
[[nodiscard]] std::string PathText(const std::vector<uint32_t>& path);
[[nodiscard]] Result<std::vector<uint32_t>> ParsePath(std::string_view text);

}  // namespace berth::explore
