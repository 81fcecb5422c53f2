#include "place/resource_scores.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace berth::place {

using model::Amount;
using model::FitStrategy;
using model::ShapePoint;

namespace {

// Of a utilization in percent. REQUIRES: points.
int64_t OnShape(std::span<const ShapePoint> shape, int64_t utilization) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (utilization > shape[i].utilization) continue;
    if (i == 0) return shape[0].score;
    const ShapePoint& from = shape[i - 1];
    const ShapePoint& to = shape[i];
    return from.score + (to.score - from.score) * (utilization - from.utilization) /
                            (to.utilization - from.utilization);
  }
  return shape.back().score;
}

int64_t UsedPercent(Usage u) { return std::min(u.used, u.capacity) * kScoreMax / u.capacity; }

// Of what has a score above 0.
int64_t RatioScore(std::span<const ShapePoint> shape, std::span<const WeighedUsage> usages) {
  CHECK(!shape.empty());
  int64_t sum = 0;
  int64_t weights = 0;
  for (const WeighedUsage& one : usages) {
    if (one.usage.capacity == 0) continue;
    const int64_t score = OnShape(shape, UsedPercent(one.usage));
    if (score <= 0) continue;
    sum += score * one.weight;
    weights += one.weight;
  }
  return weights == 0 ? 0 : Rounded(static_cast<double>(sum) / static_cast<double>(weights));
}

}  // namespace

int64_t FitScore(const model::ProfileRules& rules, std::span<const WeighedUsage> usages) {
  if (rules.strategy == FitStrategy::kRequestedToCapacityRatio)
    return RatioScore(rules.shape, usages);
  const bool least = rules.strategy == FitStrategy::kLeastAllocated;
  int64_t sum = 0;
  int64_t weights = 0;
  for (const WeighedUsage& one : usages) {
    if (one.usage.capacity == 0) continue;
    sum += one.weight * (least ? FreePercent(one.usage) : UsedPercent(one.usage));
    weights += one.weight;
  }
  return weights == 0 ? 0 : sum / weights;
}

int64_t EvennessOf(std::span<const Usage> usages) {
  std::vector<double> fractions;
  double total = 0;
  for (const Usage& usage : usages) {
    if (usage.capacity == 0) continue;
    fractions.push_back(Fraction(usage));
    total += fractions.back();
  }
  double deviation = 0;
  if (fractions.size() == 2) {
    deviation = std::abs((fractions[0] - fractions[1]) / 2);
  } else if (fractions.size() > 2) {
    const auto count = static_cast<double>(fractions.size());
    const double mean = total / count;
    double sum = 0;
    for (const double fraction : fractions) sum = sum + (fraction - mean) * (fraction - mean);
    deviation = std::sqrt(sum / count);
  }
  return static_cast<int64_t>((1 - deviation) * static_cast<double>(kScoreMax));
}

ResourceScores::ResourceScores(const model::State& state, const model::ClassSpec& spec,
                               const model::Profile& profile)
    : state_(state), spec_(spec), profile_(profile) {
  for (const model::ScoredResource& one : profile.fit) {
    fit_.push_back(ColumnOf(one.resource, true));
    fit_.back().weight = one.weight;
  }
  for (const model::ScoredResource& one : profile.balanced) {
    balanced_.push_back(ColumnOf(one.resource, false));
    balanced_counts_ =
        balanced_counts_ || state.vocabulary().bundles.AmountOf(spec.requests, one.resource) != 0;
  }
}

// An extended resource that the class doesn't ask for doesn't count; nor do places for pods, which
// upstream doesn't know as a resource there.
ResourceScores::Column ResourceScores::ColumnOf(model::ResourceId resource, bool as_scored) const {
  const model::AccountTable& accounts = state_.ledger().nodes();
  const model::BundleTable& bundles = state_.vocabulary().bundles;
  const bool by_default = resource == model::kCpu || resource == model::kMemory;
  const bool as_stood_in = as_scored && by_default;
  Column column{.request =
                    bundles.AmountOf(as_stood_in ? spec_.scoring : spec_.requests, resource)};
  const bool extended = !by_default && resource != model::kEphemeralStorage;
  if (resource == model::kPods || (extended && column.request == 0) ||
      resource.value >= accounts.resources()) {
    return column;
  }
  column.capacity = accounts.capacity_column(resource).data();
  column.free = accounts.free_column(resource).data();
  if (as_stood_in) column.scored = accounts.scored_column(resource).data();
  return column;
}

int64_t ResourceScores::Fit(uint32_t row) const {
  std::vector<WeighedUsage> usages;
  usages.reserve(fit_.size());
  for (const Column& column : fit_) {
    if (column.capacity == nullptr) continue;
    const Amount capacity = column.capacity[row];
    const Amount used = column.scored != nullptr ? column.scored[row] : capacity - column.free[row];
    usages.push_back(
        {.usage = {.capacity = capacity, .used = used + column.request}, .weight = column.weight});
  }
  return FitScore(profile_.rules, usages);
}

int64_t ResourceScores::Balanced(uint32_t row) const {
  std::vector<Usage> with;
  std::vector<Usage> without;
  for (const Column& column : balanced_) {
    if (column.capacity == nullptr) continue;
    const Amount capacity = column.capacity[row];
    without.push_back({.capacity = capacity, .used = capacity - column.free[row]});
    with.push_back({.capacity = capacity, .used = without.back().used + column.request});
  }
  return place::Balanced(EvennessOf(with), EvennessOf(without));
}

}  // namespace berth::place
