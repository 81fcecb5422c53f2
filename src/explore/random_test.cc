// Goal: random mode plays what the file says, with production controllers and kubelets, and tells
// when that comes to something else than the explorer's models do. Method: small scenarios played
// under some seeds, beside their walk; then with ends that no walk found, with too few evictions
// allowed and with a planted defect of the controllers.
#include "explore/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "explore/explorer.h"
#include "explore/stage.h"
#include "explore/test_scenario.h"

namespace berth::explore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A pod takes the room of an owner's pod, which is made anew and waits.
constexpr std::string_view kPreempts =
    "scenario preempts\ncase A01 \"q\"\nclass low value=1\nclass high value=9\nnode n1 cpu=2\n"
    "owner web replicas=1 cpu=2 priority=low grace=1 at-once\nkubelets\n"
    "user ann\n  create pod pod-a cpu=2 priority=high\nexpect evictions=1\n";
// A node goes, and another of its name comes.
constexpr std::string_view kReborn =
    "scenario reborn\ncase D09 \"q\"\nnode n1 cpu=2\nkubelets\ncollector\npod a cpu=2 node=n1\n"
    "user ann\n  delete node n1\n  create node n1 cpu=2\nuser bob\n  create pod b cpu=2\n";

Known Walk(const std::shared_ptr<const Scenario>& scenario) {
  const auto outcome = [&](const Stage& stage) {
    return Outcome(*scenario, stage.truth(), stage.evictions());
  };
  Known known;
  const Result<Stage> start = Stage::Make(scenario, {});
  EXPECT_TRUE(start.has_value());
  known.start = outcome(*start);
  const Result<Report> report = Explore(scenario, {.bugs = {}, .at_end = [&](const Stage& stage) {
                                                     known.ends.insert(outcome(stage));
                                                   }});
  EXPECT_TRUE(report.has_value());
  known.whole = report->whole() && !report->violation;
  return known;
}

TEST(RandomTest, WhatOnlyTheExplorerCanDoIsNotPlayed) {
  constexpr std::string_view kHead = "scenario s\ncase A08 \"q\"\nnode n1 cpu=2\npod a cpu=2\n";
  constexpr std::string_view kUser = "user ann\n  taint node n1\n";
  for (const std::string_view line :
       {"taint node n1\n", "kubelets n1\n", "user bob\n  nominate pod a node=n1\n"}) {
    EXPECT_FALSE(CanPlay(*Read(std::string(kHead) + std::string(line) + std::string(kUser))));
  }
  EXPECT_TRUE(CanPlay(*Read(std::string(kHead) + "kubelets\n" + std::string(kUser))));
}

TEST(RandomTest, ControllersAndKubeletsComeToWhatTheModelsComeTo) {
  for (const std::string_view text : {kPreempts, kReborn}) {
    const auto scenario = Read(text);
    const Known known = Walk(scenario);
    ASSERT_TRUE(known.whole);
    const Played played = PlayRandom(*scenario, {.seeds = 5}, known);
    EXPECT_THAT(played.failed, IsEmpty()) << scenario->name;
    EXPECT_EQ(played.plays, 5u);
    EXPECT_EQ(played.compared, 5u) << scenario->name;
    EXPECT_EQ(played.known, 5u) << scenario->name;
  }
}

TEST(RandomTest, AnEndIsToldInWordsThatNoNameChanges) {
  const Known known = Walk(Read(kPreempts));
  EXPECT_EQ(known.start, "[cpu 2000: web] waiting: ; 0 evicted");
  EXPECT_THAT(known.ends, ElementsAre("[cpu 2000: pod-a] waiting: web; 1 evicted"));
}

TEST(RandomTest, AnEndThatNoPathComesToIsAViolation) {
  const auto scenario = Read(kPreempts);
  Known known = Walk(scenario);
  known.ends = {"[cpu 2000: web] waiting: pod-a; 0 evicted"};
  const Played played = PlayRandom(*scenario, {.seeds = 1}, known);
  ASSERT_EQ(played.failed.size(), 1u);
  EXPECT_THAT(played.failed.at(1),
              HasSubstr("no walked path comes to: [cpu 2000: pod-a] waiting: web; 1 evicted"));
  // What is not known whole, or begins otherwise, says nothing.
  known.whole = false;
  EXPECT_THAT(PlayRandom(*scenario, {.seeds = 1}, known).failed, IsEmpty());
  known.whole = true;
  known.start = "[cpu 2000: ] waiting: ; 0 evicted";
  EXPECT_THAT(PlayRandom(*scenario, {.seeds = 1}, known).failed, IsEmpty());
}

TEST(RandomTest, OneEvictionTooManyIsAViolation) {
  const auto scenario =
      Read(std::string(kPreempts).replace(kPreempts.find("evictions=1"), 11, "evictions=0"));
  const Played played = PlayRandom(*scenario, {.seeds = 1}, {});
  ASSERT_EQ(played.failed.size(), 1u);
  EXPECT_THAT(played.failed.at(1), HasSubstr("1 eviction, where 0 must be enough"));
}

TEST(RandomTest, ADefectOfTheKubeletsShows) {
  const auto scenario = Read(kPreempts);
  const Known known = Walk(scenario);
  const Played played = PlayRandom(
      *scenario, {.seeds = 1, .bugs = {.tampering = sim::Tampering::kRunningPodDeleted}}, known);
  ASSERT_EQ(played.failed.size(), 1u);
  EXPECT_THAT(played.failed.at(1), HasSubstr("no walked path comes to: [cpu 2000: web]"));
}

TEST(RandomTest, TheSameSeedComesToTheSame) {
  const auto scenario = Read(kReborn);
  const Played once = PlayRandom(*scenario, {.first = 7, .seeds = 2}, {});
  const Played again = PlayRandom(*scenario, {.first = 7, .seeds = 2}, {});
  EXPECT_EQ(once.ends, again.ends);
  EXPECT_EQ(once.faults.fired, again.faults.fired);
}

}  // namespace
}  // namespace berth::explore
