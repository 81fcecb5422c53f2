// Goal: the search leaves nothing out but what it may, and what it finds can be followed.
// Method: small scenarios walked by brute force, with sleep sets, and with states merged or not:
// the same ends and the same violations; planted bugs found, shrunk, told and replayed.
#include "explore/explorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "explore/random.h"
#include "explore/scenario.h"
#include "explore/stage.h"
#include "explore/test_scenario.h"
#include "sim/run.h"

namespace berth::explore {
namespace {

using ::testing::HasSubstr;

sim::PlantedBugs BugsOf(std::string_view name) {
  const sim::NamedBug* bug = sim::FindPlanted(name);
  EXPECT_NE(bug, nullptr) << name;
  return bug == nullptr ? sim::PlantedBugs() : bug->bugs;
}

// One pod, and one that the room is not for; one write may fail.
constexpr std::string_view kTwoPods =
    "scenario two\ncase D01 \"q\"\nnode n1 cpu=2\n"
    "user ann\n  create pod a cpu=2\nuser bob\n  create pod b cpu=2\n"
    "writes unheard\nbound failures=1\n";
// Room comes back while a pod is refused.
constexpr std::string_view kFreed =
    "scenario freed\ncase C14 \"q\"\nnode n1 cpu=2\npod a cpu=2 node=n1\n"
    "user ann\n  create pod b cpu=2\nuser bob\n  delete pod a grace=0\n";
// Events of two kinds.
constexpr std::string_view kCordon =
    "scenario cordon\ncase C14 \"q\"\nnode n1 cpu=2\nuser ann\n  create pod a cpu=2\n"
    "user bob\n  cordon node n1\n  uncordon node n1\n";
// A node goes that a pod is being nominated to.
constexpr std::string_view kNodeGoes =
    "scenario goes\ncase A07 \"q\"\nclass low value=10\nclass high value=1000\n"
    "node n1 cpu=2\npod a cpu=2 priority=low node=n1 grace=0\n"
    "user ann\n  create pod p cpu=2 priority=high\nuser bob\n  delete node n1\n"
    "expect evictions=1\n";
// As little as there can be, for the tree of all paths.
constexpr std::string_view kOnePod =
    "scenario one\ncase D01 \"q\"\nnode n1 cpu=2\nuser ann\n  create pod a cpu=2\n"
    "user bob\n  update node n1 label=x\n";

// Of everything some, for random walks.
constexpr std::string_view kAll =
    "scenario all\ncase D09 \"q\"\nnode n1 cpu=2\nnode n2 cpu=2\npod a cpu=2 node=n1\n"
    "kubelets\ncollector\nunsettled\nowner web replicas=2 cpu=1\n"
    "user ann\n  create pod b cpu=2\n  delete pod a\n  create pod c cpu=1\n"
    "user bob\n  delete node n1\n  create node n1 cpu=4\n"
    "user cat\n  taint node n2\n  nominate pod b node=n2\n  untaint node n2\n"
    "writes unheard conflict error lost\nbound failures=1 crashes=1 timers=1\n";

// Likewise, of preemption: what is nominated to a node that goes, budgets, owners and classes.
constexpr std::string_view kPreempting =
    "scenario preempting\ncase A07 \"q\"\nclass low value=10\nclass high value=1000\n"
    "node n1 cpu=2\nnode n2 cpu=1\npod a cpu=1 priority=low node=n1 label=web\n"
    "budget web label=web min=1\nowner web replicas=1 cpu=1 priority=low label=web\n"
    "kubelets\ncollector\nstarts\ndisruption\n"
    "user ann\n  create pod h cpu=2 priority=high\n  evict pod a\n  update budget web max=1\n"
    "  nominate pod h node=n1\n  create budget late label=web min=0\n  delete budget web\n"
    "user bob\n  delete node n1\n  create node n1 cpu=2\n"
    "user cat\n  delete class high\n  create class high value=5\n  delete owner web\n"
    "  create pod b cpu=1 priority=high\n  bind pod b node=n2\n"
    "writes unheard conflict\nbound failures=1\nexpect evictions=9\n";

// Likewise, of groups.
constexpr std::string_view kGangs =
    "scenario gangs\ncase P01 \"q\"\nclass high value=1000\nnode n1 cpu=2\nnode n2 cpu=1\n"
    "podgroup g min=2 priority=high\nowner gang replicas=2 cpu=1 group=g\nkubelets\nstarts\n"
    "user ann\n  delete podgroup g\n  create podgroup g min=1\n  update podgroup g min=2\n"
    "user bob\n  delete owner gang\n  create pod a cpu=1 group=g\n  finish pod a\n"
    "user cat\n  cordon node n2\n  delete class high\n  uncordon node n2\n"
    "writes unheard conflict\nbound failures=1 crashes=1\n";
// As little of them as there can be.
constexpr std::string_view kOneGang =
    "scenario gang\ncase P01 \"q\"\nnode n1 cpu=1\npodgroup g min=1\n"
    "user ann\n  create pod a cpu=1 group=g\n";

// No other choice stands beside what is asked of what never changes.
void AnswerUnchanging(Stage& stage) {
  while (const std::optional<Choice> next = stage.NextOfUnchanging()) stage.Take(*next);
}

// The state after two choices, the second found by its key.
std::optional<Stage> AfterBoth(const Stage& start, const Choice& first, uint64_t second) {
  Stage stage = start;
  stage.Take(first);
  AnswerUnchanging(stage);
  const std::vector<Choice> choices = stage.Choices();
  const auto at = std::ranges::find(choices, second, &Choice::key);
  if (at == choices.end()) return std::nullopt;
  stage.Take(*at);
  AnswerUnchanging(stage);
  return stage;
}

// How many pairs there are, of choices that touch none of the same.
int CheckPairs(const Stage& stage) {
  int pairs = 0;
  const std::vector<Choice> choices = stage.Choices();
  std::vector<Footprint> touched;
  for (const Choice& choice : choices) touched.push_back(Stage(stage).Take(choice));
  for (size_t i = 0; i < choices.size(); ++i) {
    for (size_t j = i + 1; j < choices.size(); ++j) {
      if ((touched[i] & touched[j]) != 0) continue;
      ++pairs;
      const std::optional<Stage> one = AfterBoth(stage, choices[i], choices[j].key);
      const std::optional<Stage> other = AfterBoth(stage, choices[j], choices[i].key);
      const std::string what = stage.Tell(choices[i]) + "; " + stage.Tell(choices[j]);
      EXPECT_TRUE(one.has_value() && other.has_value()) << what;
      if (one && other) {
        EXPECT_EQ(one->Hash(), other->Hash()) << what;
      }
    }
  }
  return pairs;
}

TEST(ExplorerTest, WhatTouchesNoneOfTheSameCommutes) {
  int pairs = 0;
  for (const std::string_view text : {kTwoPods, kCordon, kAll, kPreempting, kGangs}) {
    const auto scenario = Read(text);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Prng prng(seed);
      Result<Stage> stage = Stage::Make(scenario, {});
      ASSERT_TRUE(stage.has_value());
      for (int step = 0; step < 60; ++step) {
        const std::vector<Choice> choices = stage->Choices();
        if (choices.empty()) break;
        pairs += CheckPairs(*stage);
        stage->Take(choices[prng.Below(choices.size())]);
      }
    }
  }
  EXPECT_GT(pairs, 800);
}

TEST(ExplorerTest, SleepSetsLeaveOutNoEndAndNoState) {
  const std::string failing = std::string(kOnePod) + "writes unheard\nbound failures=1\n";
  for (const std::string_view text :
       {std::string_view(failing), kFreed, kCordon, kNodeGoes, kOneGang}) {
    const auto scenario = Read(text);
    const Result<Report> all = Explore(scenario, {.reduce = false});
    const Result<Report> reduced = Explore(scenario, {});
    ASSERT_TRUE(all.has_value() && reduced.has_value());
    EXPECT_TRUE(all->whole() && reduced->whole());
    EXPECT_EQ(all->violations, std::set<std::string>());
    EXPECT_EQ(all->end_hashes, reduced->end_hashes);
    EXPECT_EQ(all->states, reduced->states);
    EXPECT_LT(reduced->transitions, all->transitions);
  }
}

// What a walk ends in, whatever ids things got on the way: where pods are, and who has quota.
std::set<std::string> OutcomesOf(const Scenario& scenario, uint64_t& states) {
  std::set<std::string> outcomes;
  const auto note = [&](const Stage& stage) {
    std::string outcome = Outcome(scenario, stage.truth(), stage.evictions());
    for (const auto& [key, document] : stage.truth().others()) {
      if (!key.contains("/workloads/") && !key.contains("workloads.kueue")) continue;
      const bool has = document.view().contains(R"("admission":{)");
      outcome += key + (has ? " has quota; " : " waits; ");
    }
    outcomes.insert(outcome);
  };
  const Result<Report> report =
      Explore(std::make_shared<const Scenario>(scenario), {.at_end = note});
  EXPECT_TRUE(report.has_value() && report->whole());
  if (!report) return {};
  EXPECT_EQ(report->violations, std::set<std::string>());
  states = report->states;
  return outcomes;
}

// Each kind that never changes listed at any moment, one after the other: all at once are too many.
TEST(ExplorerTest, ListsOfWhatNeverChangesDecideNothing) {
  for (const std::string_view text :
       {"scenario s\ncase D10 \"q\"\nnode n1 cpu=1\nuser ann\n  create pod a cpu=1\n"
        "user bob\n  cordon node n1\nbound crashes=1\n",
        "scenario s\ncase D10 \"q\"\nqueue q cpu=1\nworkload w queue=q cpu=1\nuser ann\n"
        "  finish workload w\nuser bob\n  stop localqueue q\nbound crashes=1\n"}) {
    const auto scenario = Read(text);
    uint64_t states = 0;
    const std::set<std::string> outcomes = OutcomesOf(*scenario, states);
    EXPECT_FALSE(outcomes.empty());
    for (const std::string& kind : scenario->unchanging) {
      Scenario all = *scenario;
      all.unchanging.erase(kind);
      uint64_t more = 0;
      EXPECT_EQ(OutcomesOf(all, more), outcomes) << kind;
      EXPECT_GE(more, states) << kind;
    }
  }
}

TEST(ExplorerTest, SleepSetsLeaveOutNoViolation) {
  struct Case {
    std::string_view text;
    std::string_view bug;
  };
  for (const auto& [text, bug] :
       {Case{kFreed, "wake-up-index-incomplete"}, Case{kFreed, "claim-not-released-on-deletion"},
        Case{kCordon, "uncordon-missed"}}) {
    const auto scenario = Read(text);
    const ExploreOptions options{.bugs = BugsOf(bug), .reduce = false, .stop = false};
    const Result<Report> all = Explore(scenario, options);
    ExploreOptions with = options;
    with.reduce = true;
    const Result<Report> reduced = Explore(scenario, with);
    ASSERT_TRUE(all.has_value() && reduced.has_value());
    EXPECT_FALSE(all->violations.empty()) << bug;
    EXPECT_EQ(all->violations, reduced->violations) << bug;
  }
}

TEST(ExplorerTest, MergingStatesLosesNoEnd) {
  const auto scenario = Read(kOnePod);
  const Result<Report> tree = Explore(scenario, {.reduce = false, .merge = false});
  const Result<Report> merged = Explore(scenario, {.reduce = false});
  ASSERT_TRUE(tree.has_value() && merged.has_value());
  EXPECT_TRUE(tree->whole() && merged->whole());
  EXPECT_EQ(tree->end_hashes, merged->end_hashes);
  EXPECT_LT(merged->states * 5, tree->states);
}

TEST(ExplorerTest, AViolationIsShrunkToldAndReplayed) {
  const auto scenario = Read(kTwoPods);
  const sim::PlantedBugs bugs = BugsOf("binding-repeated-after-unknown");
  const Result<Report> report = Explore(scenario, {.bugs = bugs});
  ASSERT_TRUE(report.has_value() && report->violation.has_value());
  EXPECT_THAT(report->violation->what, HasSubstr("is repeated before the fate"));
  EXPECT_LE(report->violation->path.size(), 6u);
  const std::string text = PathText(report->violation->path);
  const Result<std::vector<uint32_t>> path = ParsePath(text);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(*path, report->violation->path);
  const Result<std::string> story = TellStory(scenario, bugs, *path);
  ASSERT_TRUE(story.has_value());
  EXPECT_THAT(*story, HasSubstr("   1. ann: create pod a"));
  EXPECT_THAT(*story, HasSubstr("the answer is lost"));
  EXPECT_THAT(*story, HasSubstr(">>  binding of pod default/a"));
  const Result<std::string> drawn = DrawStory(scenario, bugs, *path);
  ASSERT_TRUE(drawn.has_value());
  EXPECT_THAT(*drawn, HasSubstr("digraph \"two\" {"));
  EXPECT_THAT(*drawn, HasSubstr("color=red"));
}

TEST(ExplorerTest, AScenarioIsWalkedTheSameWayAgain) {
  const auto scenario = Read(kOnePod);
  const Result<Report> one = Explore(scenario, {});
  const Result<Report> two = Explore(scenario, {});
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(one->transitions, two->transitions);
  EXPECT_EQ(one->end_hashes, two->end_hashes);
}

TEST(ExplorerTest, AnEvictionTooManyIsFound) {
  const std::string text =
      "scenario high\ncase A01 \"q\"\nclass low value=1\nclass high value=9\nnode n1 cpu=2\n"
      "pod l cpu=2 priority=low grace=0\nuser ann\n  create pod h cpu=2 priority=high\n";
  const Result<Report> enough = Explore(Read(text + "expect evictions=1\n"), {.states_max = 200});
  ASSERT_TRUE(enough.has_value());
  EXPECT_EQ(enough->violations, std::set<std::string>());
  EXPECT_EQ(enough->bindings, 2u);
  const Result<Report> too_many = Explore(Read(text + "expect evictions=0\n"), {});
  ASSERT_TRUE(too_many.has_value() && too_many->violation.has_value());
  EXPECT_EQ(too_many->violation->what, "pod l is evicted: 1 eviction, where 0 must be enough");
}

TEST(ExplorerTest, WhatGoesOnForEverIsFoundAndTold) {
  const auto scenario = Read(
      "scenario high\ncase B07 \"q\"\nclass low value=1\nclass high value=9\nnode n1 cpu=2\n"
      "pod l cpu=2 priority=low\nuser ann\n  create pod h cpu=2 priority=high\n"
      "expect evictions=1\n");
  const sim::PlantedBugs bugs = BugsOf("promise-decided-anew");
  const Result<Report> report = Explore(scenario, {.bugs = bugs});
  ASSERT_TRUE(report.has_value() && report->violation.has_value());
  EXPECT_THAT(report->violation->what, HasSubstr("leads back to where it was"));
  EXPECT_LE(report->violation->path.size(), 12u);
  const Result<std::string> story = TellStory(scenario, bugs, report->violation->path);
  ASSERT_TRUE(story.has_value());
  EXPECT_THAT(*story, HasSubstr(">>  what happens leads back"));
}

TEST(ExplorerTest, WhatAFinalizerKeepsIsEndedOnceByKubeletAndCollector) {
  constexpr std::string_view kHead =
      "scenario kept\ncase D14 \"q\"\nnode n1 cpu=2\npod a cpu=2 node=n1 finalizer=keep\n";
  for (const std::string text : {"kubelets\nuser ann\n  delete pod a grace=5\n  release pod a\n",
                                 "collector\nuser ann\n  delete node n1\n  release pod a\n"}) {
    const Result<Report> report = Explore(Read(std::string(kHead) + text), {});
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->whole());
    EXPECT_EQ(report->violations, std::set<std::string>());
  }
}

// What was found for a gang and is forgotten is found again, cycle after cycle: time passes, so no
// state comes back.
TEST(ExplorerTest, WhatIsNotAtRestInAThousandChoicesIsAViolation) {
  const auto scenario = Read(
      "scenario gang\ncase R05 \"q\"\nclass low value=10\nclass high value=1000\n"
      "node n1 cpu=1\nnode n2 cpu=1\npodgroup g min=2\npod y cpu=1 priority=low node=n1\n"
      "pod z cpu=1 priority=low node=n2\npod a cpu=1 priority=high group=g\nkubelets\n"
      "user ann\n  create pod b cpu=1 priority=high group=g\nexpect evictions=2\n");
  const Result<Report> good = Explore(scenario, {.states_max = 5'000});
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->violations, std::set<std::string>());
  const Result<Report> endless = Explore(
      scenario, {.bugs = BugsOf("gang-reservation-dropped-between-cycles"), .states_max = 20'000});
  ASSERT_TRUE(endless.has_value());
  ASSERT_TRUE(endless->violation.has_value());
  EXPECT_NE(endless->violation->what.find("it is not at rest"), std::string::npos)
      << endless->violation->what;
}

TEST(ExplorerTest, BoundsThatCutAreTold) {
  const auto deep = Read(std::string(kOnePod) + "bound depth=3\n");
  const Result<Report> cut = Explore(deep, {});
  ASSERT_TRUE(cut.has_value());
  EXPECT_GT(cut->depth_cuts, 0u);
  EXPECT_FALSE(cut->whole());
  const Result<Report> few = Explore(Read(kOnePod), {.states_max = 10});
  ASSERT_TRUE(few.has_value());
  EXPECT_TRUE(few->states_cut);
  EXPECT_EQ(few->states, 10u);
}

TEST(ExplorerTest, ASetUpThatTheServerRefusesNamesItsLine) {
  const auto scenario = Read(
      "scenario s\ncase D01 \"q\"\nnode n1 cpu=2\nnode n1 cpu=2\nuser ann\n  create pod a cpu=1\n");
  const Result<Report> report = Explore(scenario, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().message, HasSubstr("test:4: the API server refuses it"));
}

TEST(ExplorerTest, APathIsNumbersWithDots) {
  for (const std::string_view bad : {"", ".", "1.", "a", "1..2", "1 2", "-1", "99999999999"}) {
    EXPECT_FALSE(ParsePath(bad).has_value()) << bad;
  }
  const auto scenario = Read(kOnePod);
  const Result<std::string> story = TellStory(scenario, {}, {0, 77});
  ASSERT_FALSE(story.has_value());
  EXPECT_THAT(story.error().message, HasSubstr("step 2 is choice 77 of"));
}

}  // namespace
}  // namespace berth::explore
