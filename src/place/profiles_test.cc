#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "place/evaluate.h"
#include "place/resource_scores.h"

// Goal: pods are filtered and scored as their profile says, and all others as by default. Method:
// upstream's tables of the strategies; for each rule a node that is refused, or scored, otherwise
// because of it; random clusters whose scores are worked out from facts alone.
namespace berth::place {
namespace {

using model::FitStrategy;
using model::OptionalFilter;
using model::ReasonKind;

std::vector<WeighedUsage> Of(const std::vector<std::pair<Usage, int64_t>>& usages) {
  std::vector<WeighedUsage> out;
  for (const auto& [usage, weight] : usages) out.push_back({.usage = usage, .weight = weight});
  return out;
}

// Upstream's tables: most_allocated_test.go, least_allocated_test.go,
// requested_to_capacity_ratio_test.go. {capacity, used with the pod}.
TEST(ProfilesTest, StrategiesScoreAsUpstream) {
  struct Row {
    FitStrategy strategy;
    std::vector<model::ShapePoint> shape;
    std::vector<std::pair<Usage, int64_t>> usages;
    int64_t score;
  };
  const std::vector<model::ShapePoint> falling = {{0, 100}, {100, 0}};
  const std::vector<model::ShapePoint> rising = {{0, 0}, {100, 100}};
  const Row rows[] = {
      {FitStrategy::kMostAllocated, {}, {{{4000, 0}, 1}, {{10000, 0}, 1}}, 0},
      {FitStrategy::kMostAllocated, {}, {{{4000, 3000}, 1}, {{10000, 5000}, 1}}, 62},
      {FitStrategy::kMostAllocated, {}, {{{6000, 3000}, 1}, {{10000, 5000}, 1}}, 50},
      // More than there is counts as all of it.
      {FitStrategy::kMostAllocated, {}, {{{4000, 6000}, 1}, {{10000, 5000}, 1}}, 75},
      {FitStrategy::kMostAllocated, {}, {{{4000, 3000}, 1}, {{10000, 5000}, 2}}, 58},
      // What the node doesn't offer is left out.
      {FitStrategy::kMostAllocated, {}, {{{4000, 3000}, 1}, {{0, 5000}, 5}}, 75},
      {FitStrategy::kMostAllocated, {}, {}, 0},
      {FitStrategy::kLeastAllocated, {}, {{{4000, 3000}, 1}, {{10000, 5000}, 1}}, 37},
      {FitStrategy::kLeastAllocated, {}, {{{4000, 3000}, 2}, {{10000, 5000}, 1}}, 33},
      {FitStrategy::kLeastAllocated, {}, {{{4000, 6000}, 1}, {{10000, 5000}, 1}}, 25},
      // Rounded half up, where the other strategies truncate.
      {FitStrategy::kRequestedToCapacityRatio,
       falling,
       {{{4000, 3000}, 1}, {{10000, 5000}, 1}},
       38},
      {FitStrategy::kRequestedToCapacityRatio,
       falling,
       {{{6000, 3000}, 1}, {{10000, 5000}, 1}},
       50},
      // What scores nothing isn't counted.
      {FitStrategy::kRequestedToCapacityRatio, rising, {{{4000, 0}, 3}, {{10000, 5000}, 1}}, 50},
      {FitStrategy::kRequestedToCapacityRatio, falling, {{{4000, 6000}, 1}, {{0, 0}, 1}}, 0},
      // From point to point.
      {FitStrategy::kRequestedToCapacityRatio, {{10, 20}, {50, 100}, {90, 0}}, {{{100, 5}, 1}}, 20},
      {FitStrategy::kRequestedToCapacityRatio,
       {{10, 20}, {50, 100}, {90, 0}},
       {{{100, 30}, 1}},
       60},
      {FitStrategy::kRequestedToCapacityRatio,
       {{10, 20}, {50, 100}, {90, 0}},
       {{{100, 70}, 1}},
       50},
  };
  for (const Row& row : rows) {
    const model::ProfileRules rules{.strategy = row.strategy, .shape = row.shape};
    EXPECT_EQ(FitScore(rules, Of(row.usages)), row.score) << &row - rows;
  }
}

TEST(ProfilesTest, EvennessIsOfAllThatTheNodeOffers) {
  EXPECT_EQ(EvennessOf(std::vector<Usage>{}), 100);
  EXPECT_EQ(EvennessOf(std::vector<Usage>{{100, 90}}), 100);
  EXPECT_EQ(EvennessOf(std::vector<Usage>{{100, 90}, {0, 7}}), 100);
  EXPECT_EQ(EvennessOf(std::vector<Usage>{{100, 75}, {100, 25}}), 75);
  EXPECT_EQ(EvennessOf(std::vector<Usage>{{100, 75}, {100, 25}}), Evenness({100, 75}, {100, 25}));
  // The deviation of 0.2, 0.4 and 0.9 from 0.5 is the root of 0.26 / 3.
  EXPECT_EQ(EvennessOf(std::vector<Usage>{{10, 2}, {10, 4}, {10, 9}}), 70);
  EXPECT_EQ(EvennessOf(std::vector<Usage>{{10, 20}, {10, 10}, {10, 10}}), 100);
}

// A state with a profile "other" beside the default one.
class TwoProfiles {
 public:
  explicit TwoProfiles(model::ProfileOptions options) : state(OptionsWith(std::move(options))) {
    node.name = "n1";
    node.uid = "u1";
    node.allocatable = {{model::kCpu, 4000}, {model::kMemory, 8000}, {model::kPods, 10}};
  }
  static model::State::Options OptionsWith(model::ProfileOptions options) {
    options.scheduler_name = "other";
    return {.profiles = {std::move(options)}};
  }
  model::Vocabulary& v() { return state.vocabulary(); }
  model::NameId Name(std::string_view text) { return v().names.Intern(text); }
  // Of the other profile, or the default one.
  model::ClassId Class(bool other, std::vector<model::ResourceAmount> amounts,
                       model::BundleId asked = {}) {
    amounts.push_back({model::kPods, 1});
    model::ClassSpec its = spec;
    its.requests = v().bundles.Intern(amounts, ports, asked);
    its.scoring = v().bundles.Intern(amounts);
    if (other) its.profile = Name("other");
    return v().classes.Intern(its);
  }
  ReasonKind Refusal(model::ClassId c) {
    state.Apply(node);
    state.Materialise(c);
    Evaluation all;
    evaluator.EvaluateAll(state, c, all);
    const model::NodeId n = state.FindNode("n1");
    const ReasonKind kind = evaluator.FilterAlone(state, c, n, nullptr).kind;
    EXPECT_EQ(all.kinds[n.value], kind);
    return kind;
  }

  model::State state;
  model::NodeUpsert node;
  model::ClassSpec spec;
  std::vector<model::HostPort> ports;
  Evaluator evaluator;
};

struct FilterRow {
  OptionalFilter filter;
  ReasonKind refusal;
  void (*refuse)(TwoProfiles&);
};

TEST(ProfilesTest, AProfileDoesWithoutAFilter) {
  const FilterRow rows[] = {
      {OptionalFilter::kNodeUnschedulable, ReasonKind::kUnschedulable,
       [](TwoProfiles& t) { t.node.unschedulable = true; }},
      {OptionalFilter::kTaintToleration, ReasonKind::kTaint,
       [](TwoProfiles& t) {
         t.node.taints = {{t.Name("team"), t.Name(""), model::TaintEffect::kNoSchedule}};
       }},
      {OptionalFilter::kNodeAffinity, ReasonKind::kAffinity,
       [](TwoProfiles& t) {
         const model::SelectorSpec selector{
             .all = {{.key = t.Name("zone"), .values = {t.Name("a")}}}};
         t.spec.selector = t.v().selectors.Intern(selector);
       }},
      {OptionalFilter::kNodeAffinity, ReasonKind::kNotNamed,
       [](TwoProfiles& t) {
         t.spec.names = t.v().name_lists.Intern(std::vector<model::NameId>{t.Name("elsewhere")});
       }},
  };
  for (const FilterRow& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.refusal));
    model::ProfileOptions options;
    options.rules.Disable(row.filter);
    TwoProfiles t(options);
    row.refuse(t);
    EXPECT_EQ(t.Refusal(t.Class(false, {})), row.refusal);
    EXPECT_EQ(t.Refusal(t.Class(true, {})), ReasonKind::kNone);
    // All others act.
    EXPECT_EQ(t.Refusal(t.Class(true, {{model::kCpu, 5000}})), ReasonKind::kInsufficient);
  }
}

TEST(ProfilesTest, WhatAProfileRequiresOfNodesComesBeforeWhatThePodDoes) {
  TwoProfiles t({});
  const auto pool = [&](std::string_view name) {
    const model::SelectorSpec selector{.all = {{.key = t.Name("pool"), .values = {t.Name(name)}}}};
    return t.v().selectors.Intern(selector);
  };
  t.node.labels = {{t.Name("pool"), t.Name("a")}};
  t.spec.added = pool("a");
  EXPECT_EQ(t.Refusal(t.Class(false, {})), ReasonKind::kNone);
  t.spec.selector = pool("b");
  EXPECT_EQ(t.Refusal(t.Class(false, {})), ReasonKind::kAffinity);
  t.spec.added = pool("b");
  EXPECT_EQ(t.Refusal(t.Class(false, {})), ReasonKind::kAddedAffinity);
  t.spec.selector = pool("a");
  EXPECT_EQ(t.Refusal(t.Class(false, {})), ReasonKind::kAddedAffinity);
}

TEST(ProfilesTest, WhatIsChargedAndNotAskedForIsNotCompared) {
  TwoProfiles t({});
  const model::BundleId little =
      t.v().bundles.Intern(std::vector<model::ResourceAmount>{{model::kMemory, 100}});
  const std::vector<model::ResourceAmount> much = {{model::kCpu, 9000}, {model::kMemory, 100}};
  EXPECT_EQ(t.Refusal(t.Class(false, much)), ReasonKind::kInsufficient);
  const model::ClassId c = t.Class(false, much, little);
  EXPECT_EQ(t.Refusal(c), ReasonKind::kNone);
  // It is charged, and what is asked for is compared still.
  t.state.Apply(model::PodUpsert{.uid = "p", .key = "d/p", .class_id = c});
  t.state.Assume(t.state.FindPod("p"), t.state.FindNode("n1"), {});
  EXPECT_EQ(t.state.ledger().nodes().free(model::kCpu, t.state.FindNode("n1").value), -5000);
  EXPECT_EQ(t.Refusal(t.Class(false, {{model::kCpu, 1}})), ReasonKind::kInsufficient);
  EXPECT_EQ(t.Refusal(c), ReasonKind::kNone);
  t.node.allocatable[1].amount = 150;
  EXPECT_EQ(t.Refusal(c), ReasonKind::kInsufficient);
}

TEST(ProfilesTest, PortsThatAreNotAskedForAreGivenTwice) {
  TwoProfiles t({});
  t.ports = {{.port = 80, .protocol = t.Name("TCP")}};
  const model::BundleId one =
      t.v().bundles.Intern(std::vector<model::ResourceAmount>{{model::kPods, 1}});
  const model::ClassId careless = t.Class(false, {}, one);
  const model::ClassId careful = t.Class(false, {});
  t.state.Apply(t.node);
  for (const std::string uid : {"p", "q"}) {
    EXPECT_EQ(t.Refusal(careless), ReasonKind::kNone);
    t.state.Apply(model::PodUpsert{.uid = uid, .key = "d/" + uid, .class_id = careless});
    t.state.Assume(t.state.FindPod(uid), t.state.FindNode("n1"), {});
    EXPECT_EQ(t.Refusal(careful), ReasonKind::kPorts);
  }
}

// ---- Scores ------------------------------------------------------------------------------------

int64_t LocalOn(TwoProfiles& t, model::ClassId c) {
  t.state.Apply(t.node);
  Evaluation all;
  t.evaluator.EvaluateAll(t.state, c, all);
  const model::NodeId n = t.state.FindNode("n1");
  EXPECT_EQ(all.scores[n.value], t.evaluator.Score(t.state, c, n));
  return all.scores[n.value].local;
}

TEST(ProfilesTest, WeightsAreOfTheProfile) {
  TwoProfiles t({.rules = {.weights = {.taints = 0, .affinity = 10, .fit = 100, .balanced = 0}}});
  const std::vector<model::ResourceAmount> half = {{model::kCpu, 2000}, {model::kMemory, 4000}};
  // 50 of NodeResourcesFit, 75 of an even node that stays even.
  EXPECT_EQ(LocalOn(t, t.Class(false, half)), 50 + 75);
  EXPECT_EQ(LocalOn(t, t.Class(true, half)), 100 * 50);
  const model::NodeScore score{.local = 1, .taints_raw = 1, .affinity_raw = 3};
  const Extremes extremes{.taints_max = 2, .affinity_max = 6};
  const auto total = [&](bool other) {
    return t.evaluator.Total(t.state.RulesOf(t.Class(other, half)).weights, score, extremes);
  };
  EXPECT_EQ(total(false), 1 + 3 * 50 + 2 * 50);
  EXPECT_EQ(total(true), 1 + 10 * 50);
}

TEST(ProfilesTest, OtherResourcesAreScored) {
  TwoProfiles t(
      {.rules = {.weights = {.fit = 1, .balanced = 0}, .strategy = FitStrategy::kMostAllocated},
       .fit = {{.name = "cpu", .weight = 1}, {.name = "gpu", .weight = 3}}});
  const model::ResourceId gpu = t.v().resources.Find("gpu");
  // Nobody offers it: it is left out.
  EXPECT_EQ(LocalOn(t, t.Class(true, {{model::kCpu, 2000}})), 50);
  t.node.allocatable.push_back({gpu, 8});
  // Who doesn't ask for it isn't scored by it.
  EXPECT_EQ(LocalOn(t, t.Class(true, {{model::kCpu, 2000}})), 50);
  EXPECT_EQ(LocalOn(t, t.Class(true, {{model::kCpu, 2000}, {gpu, 2}})), (50 + 3 * 25) / 4);
  EXPECT_EQ(LocalOn(t, t.Class(false, {{model::kCpu, 2000}, {gpu, 2}})), (50 + 100) / 2 + 62);
}

TEST(ProfilesTest, OtherResourcesAreBalanced) {
  TwoProfiles t({.rules = {.weights = {.fit = 0}}, .balanced = {"cpu", "memory", "gpu"}});
  const model::ResourceId gpu = t.v().resources.Find("gpu");
  t.node.allocatable.push_back({gpu, 10});
  const auto fractions = std::vector<Usage>{{10, 2}, {10, 4}, {10, 9}};
  EXPECT_EQ(LocalOn(t, t.Class(true, {{model::kCpu, 800}, {model::kMemory, 3200}, {gpu, 9}})),
            Balanced(EvennessOf(fractions), 100));
  // Who asks for none of them isn't scored by that.
  EXPECT_EQ(LocalOn(t, t.Class(true, {})), 0);
}

TEST(ProfilesTest, ImagesOfAProfileThatIgnoresThemMakeNoOtherClass) {
  TwoProfiles t({.rules = {.weights = {.images = 0}}});
  t.node.images = {{.name = t.Name("big"), .size = int64_t{900} << 20}};
  t.spec.images = t.v().name_lists.Intern(std::vector<model::NameId>{t.Name("big")});
  t.spec.containers_count = 1;
  const model::ClassId usual = t.Class(false, {});
  const model::ClassId other = t.Class(true, {});
  EXPECT_GT(LocalOn(t, usual), LocalOn(t, other));
  EXPECT_EQ(t.evaluator.ScoredAs(t.state, usual), usual);
  EXPECT_EQ(t.evaluator.ScoredAs(t.state, other), t.v().classes.plain(other));
  EXPECT_EQ(t.evaluator.SeenImages(t.state, other), ImagesSeen{});
}

// Goal: the two paths score alike by any strategy, and as from facts alone.
RC_GTEST_PROP(ProfilesTest, ScoresFollowFromFacts, ()) {
  const auto draw = [](int low, int high) {
    return *rc::gen::resize(100, rc::gen::inRange(low, high));
  };
  const std::vector<std::string> names = {"cpu", "memory", "gpu", "ephemeral-storage"};
  model::ProfileOptions options;
  options.rules.weights = {.fit = draw(0, 4), .balanced = draw(0, 4)};
  options.rules.strategy = static_cast<FitStrategy>(draw(0, 3));
  options.rules.shape = {{0, draw(0, 101)}, {40, draw(0, 101)}, {100, draw(0, 101)}};
  for (const std::string& name : names) {
    if (draw(0, 2) == 0) options.fit.push_back({.name = name, .weight = draw(1, 5)});
    if (draw(0, 2) == 0) options.balanced.push_back(name);
  }
  if (options.fit.empty()) options.fit = {{.name = "cpu"}, {.name = "memory"}};
  if (options.balanced.empty()) options.balanced = {"cpu", "memory"};
  TwoProfiles t(options);
  std::map<std::string, Usage> usage;
  std::map<std::string, int64_t> asked;
  std::vector<model::ResourceAmount> amounts;
  std::vector<model::ResourceAmount> used;
  t.node.allocatable = {{model::kPods, 10}};
  for (const std::string& name : names) {
    const model::ResourceId id = *t.v().resources.Intern(name);
    usage[name] = {.capacity = draw(0, 5) == 0 ? 0 : draw(1, 100), .used = draw(0, 60)};
    asked[name] = draw(0, 3) == 0 ? 0 : draw(1, 50);
    t.node.allocatable.push_back({id, usage[name].capacity});
    used.push_back({id, usage[name].used});
    amounts.push_back({id, asked[name]});
  }
  t.state.Apply(t.node);
  t.state.Apply(
      model::PodUpsert{.uid = "p", .key = "d/p", .class_id = t.Class(false, used), .node = "n1"});
  const model::ClassId c = t.Class(true, amounts);
  std::vector<WeighedUsage> fit;
  for (const auto& one : options.fit) {
    if (one.name == "gpu" && asked[one.name] == 0) continue;
    fit.push_back({.usage = {.capacity = usage[one.name].capacity,
                             .used = usage[one.name].used + asked[one.name]},
                   .weight = one.weight});
  }
  std::vector<Usage> with;
  std::vector<Usage> without;
  bool counts = false;
  for (const std::string& name : options.balanced) {
    counts = counts || asked[name] != 0;
    if (name == "gpu" && asked[name] == 0) continue;
    without.push_back(usage[name]);
    with.push_back({.capacity = usage[name].capacity, .used = usage[name].used + asked[name]});
  }
  const int64_t balanced = counts ? Balanced(EvennessOf(with), EvennessOf(without)) : 0;
  const model::NodeId n = t.state.FindNode("n1");
  const SpreadParts parts = t.evaluator.Parts(t.state, c, n);
  RC_ASSERT(parts.fit == FitScore(options.rules, fit));
  RC_ASSERT(parts.balanced == balanced);
  Evaluation all;
  t.evaluator.EvaluateAll(t.state, c, all);
  if (all.kinds[n.value] != ReasonKind::kNone) return;
  RC_ASSERT(all.scores[n.value] == t.evaluator.Score(t.state, c, n));
  RC_ASSERT(all.scores[n.value].local ==
            options.rules.weights.fit * parts.fit + options.rules.weights.balanced * balanced);
}

}  // namespace
}  // namespace berth::place
