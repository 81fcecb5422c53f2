#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/classes.h"
#include "model/profile.h"
#include "model/state.h"
#include "place/formulas.h"

// NodeResourcesFit's and NodeResourcesBalancedAllocation's scores by what a profile says: other
// resources, weights and strategies than those of the default profile, for which columns.h has
// loops.
namespace berth::place {

// Upstream's three strategies over resources that the node offers and the pod, if they are
// extended, asks for. O(resources x points of the shape).
struct WeighedUsage {
  Usage usage;  // With the pod. A capacity of 0: it is left out.
  int64_t weight = 1;
};
[[nodiscard]] int64_t FitScore(const model::ProfileRules& rules,
                               std::span<const WeighedUsage> usages);

// (1 - standard deviation of the fractions in use) x 100, truncated; a capacity of 0 is left out.
// Upstream's operations on doubles, in its order.
[[nodiscard]] int64_t EvennessOf(std::span<const Usage> usages);

// What one class is scored by, resolved once. Good until the state changes.
class ResourceScores {
 public:
  ResourceScores(const model::State& state, const model::ClassSpec& spec,
                 const model::Profile& profile);

  // Whether the profile scores them as the default one.
  [[nodiscard]] bool usual_fit() const { return profile_.fit.empty(); }
  [[nodiscard]] bool usual_balanced() const { return profile_.balanced.empty(); }
  // Whether the class asks for any of what is balanced: else it is not scored by that.
  // REQUIRES: not usual, here and below.
  [[nodiscard]] bool balanced_counts() const { return balanced_counts_; }

  [[nodiscard]] int64_t Fit(uint32_t row) const;
  [[nodiscard]] int64_t Balanced(uint32_t row) const;

 private:
  // One resource of all nodes, and what the class adds to it.
  struct Column {
    const model::Amount* capacity = nullptr;  // None: no node offers it, or it doesn't count.
    const model::Amount* free = nullptr;
    const model::Amount* scored = nullptr;  // In use, where scores count that otherwise.
    model::Amount request = 0;
    int64_t weight = 1;
  };
  [[nodiscard]] Column ColumnOf(model::ResourceId resource, bool as_scored) const;

  const model::State& state_;
  const model::ClassSpec& spec_;
  const model::Profile& profile_;
  std::vector<Column> fit_;
  std::vector<Column> balanced_;
  bool balanced_counts_ = false;
};

}  // namespace berth::place
