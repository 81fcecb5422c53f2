// Goal: a scenario file says what it means or is refused with the line that is wrong.
// Method: a table of files, each wrong in one way; one that uses everything, read back.
#include "explore/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::explore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHead = "scenario s\ncase D01 \"said\"\nnode n1 cpu=2\n";
constexpr std::string_view kUser = "user ann\n  create pod a cpu=1\n";

std::string ErrorOf(std::string_view text) {
  const Result<Scenario> scenario = ParseScenario(text, "f");
  return scenario ? "none" : scenario.error().message;
}

TEST(ScenarioTest, WhatIsWrongIsRefusedWithItsLine) {
  struct Case {
    std::string text;  // After kHead, which has three lines.
    std::string error;
  };
  const std::vector<Case> cases = {
      {"robot r\n", "f:4: unknown actor or directive \"robot\""},
      {"user ann\n  explode pod a\n", "f:5: no line above makes pod \"a\""},
      {"pod a cpu=1\nuser ann\n  explode pod a\n", "f:6: unknown event \"explode pod a\""},
      {"pod a cpu=1\nuser ann\n  cordon pod a\n", "f:6: unknown event \"cordon pod a\""},
      {"user ann\n  create job a\n", "f:5: unknown event \"create job a\""},
      {"user ann\n  create pod\n", "f:5: an event takes a verb, a kind and a name"},
      {"user ann\n  delete node n2\n", "f:5: no line above makes node \"n2\""},
      {"user ann\nuser ann\n", "f:5: the user is there already"},
      {"user\n", "f:4: user takes one name"},
      {"  create pod a cpu=1\n", "f:4: an indented line that follows no user"},
      {"pod a cpu=much\n", "f:4: cpu must be a quantity from 0 to 1M, not \"much\""},
      {"pod a cpu=-1\n", "f:4: cpu must be a quantity from 0 to 1M, not \"-1\""},
      {"pod a cpu=-1m\n", "f:4: cpu must be a quantity from 0 to 1M, not \"-1m\""},
      {"pod a cpu=1000001\n", "f:4: cpu must be a quantity from 0 to 1M, not \"1000001\""},
      {"pod a cpu=1 memory=2Ei\n", "f:4: memory must be a quantity from 0 to 1Ti, not \"2Ei\""},
      {"pod a cpu=1e999\n", "f:4: cpu must be a quantity from 0 to 1M, not \"1e999\""},
      {"node n2 cpu=-2\n", "f:4: cpu must be a quantity from 0 to 1M, not \"-2\""},
      {"node n2 cpu=1 pods=1001\n", "f:4: pods must be a quantity from 0 to 1k, not \"1001\""},
      {"owner o replicas=1 cpu=-1\n", "f:4: cpu must be a quantity from 0 to 1M, not \"-1\""},
      {"pod a cpus=1\n", "f:4: unknown key \"cpus\""},
      {"pod a cpu=1 cpu=2\n", "f:4: cpu is said twice"},
      {"pod a cpu\n", "f:4: \"cpu\" is not of the form key=value"},
      {"pod A cpu=1\n", "f:4: \"A\" is no name of an object"},
      {"pod a cpu=1 node=n9\n", "f:4: unknown node \"n9\""},
      {"pod a cpu=1 priority=high\n", "f:4: unknown class \"high\""},
      {"pod a cpu=1 grace=-1\n", "f:4: grace must be a number from 0 to 3600, not \"-1\""},
      {"class c value=1\nclass c value=2\n", "f:5: the class is there already"},
      {"class c value=2000000000\n", "f:4: value must be a number from 0 to 1000000000"},
      {"owner o replicas=9\n", "f:4: replicas must be a number from 0 to 8, not \"9\""},
      {"writes done\n", "f:4: unknown outcome \"done\" of a write"},
      {"writes lost lost\n", "f:4: lost is said twice"},
      {"writes\n", "f:4: writes takes outcomes"},
      {"bound crashes=2\n", "f:4: crashes must be a number from 0 to 1, not \"2\""},
      {"bound hope=1\n", "f:4: unknown key \"hope\""},
      {"expect\n",
       "f:4: expect takes evictions=NUMBER, preemptions=NUMBER, displaced=NUMBER or "
       "states=NUMBER"},
      {"expect states=1\nexpect states=1\n", "f:5: states is said twice"},
      {"expect states=-1\n", "f:4: states must be a number from 0 to 100000000, not \"-1\""},
      {"expect evictions=1\nexpect evictions=1\n", "f:5: evictions is said twice"},
      {"plant x\n", "f:4: plant takes a name and states=NUMBER"},
      {"kubelets\nkubelets\n", "f:5: kubelets is said twice"},
      {"kubelets n1 n9\n", "f:4: unknown node \"n9\""},
      {"collector fast\n", "f:4: collector takes nothing"},
      {"taint node n9\n", "f:4: no line above makes node \"n9\""},
      {"pod a cpu=1\ncordon pod a\n", "f:5: unknown event \"cordon pod a\""},
      {"taint node n1 label=x\n", "f:4: unknown event \"taint node n1 label=x\""},
      {"taint node n1 effect=x\n", "f:4: unknown key \"effect\""},
      {"user ann\n  nominate node n1 node=n1\n", "f:5: unknown event \"nominate node n1 node=n1\""},
      {"pod a cpu=1\nuser ann\n  nominate pod a\n", "f:6: unknown event \"nominate pod a\""},
      {"pod a cpu=1\nuser ann\n  nominate pod a node=n9\n", "f:6: unknown node \"n9\""},
      {"pod a cpu=1\nuser ann\n  withdraw pod a node=n1\n",
       "f:6: unknown event \"withdraw pod a node=n1\""},
      {"pod a cpu=1\nuser ann\n  delete pod a grace=-1\n",
       "f:6: grace must be a number from 0 to 3600, not \"-1\""},
      {"plant x states=1\n", "f:4: unknown defect \"x\""},
      {"plant uncordon-missed states=-1\n",
       "f:4: states must be a number from 0 to 100000000, not \"-1\""},
      {"budget b min=1\n", "f:4: a budget takes label=VALUE"},
      {"budget b label=x\n", "f:4: a budget takes min=NUMBER or max=NUMBER"},
      {"budget b label=x min=1 max=1\n", "f:4: a budget takes min=NUMBER or max=NUMBER"},
      {"budget b label=x min=many\n", "f:4: min must be a number from 0 to 20, not \"many\""},
      {"user ann\n  evict pod a\n", "f:5: no line above makes pod \"a\""},
      {"user ann\n  evict node n1\n", "f:5: unknown event \"evict node n1\""},
      {"user ann\n  delete class c\n", "f:5: no line above makes class \"c\""},
      {"user ann\n  create class c value=1\n", "f:5: no line above makes class \"c\""},
      {"user ann\n  delete owner o\n", "f:5: no line above makes owner \"o\""},
      {"user ann\n  create owner o\n", "f:5: unknown event \"create owner o\""},
      {"owner o replicas=1\nuser ann\n  scale owner o replicas=9\n",
       "f:6: replicas must be a number from 0 to 8, not \"9\""},
      {"owner o replicas=1\nuser ann\n  scale owner o\n", "f:6: unknown event \"scale owner o\""},
      {"podgroup g\n", "f:4: a podgroup takes min=NUMBER"},
      {"podgroup g min=21\n", "f:4: min must be a number from 0 to 20, not \"21\""},
      {"podgroup g min=1 priority=high\n", "f:4: unknown class \"high\""},
      {"podgroup g min=1 group=g\n", "f:4: unknown key \"group\""},
      {"pod a cpu=1 group=G\n", "f:4: \"G\" is no name of an object"},
      {"owner o replicas=1 group=G\n", "f:4: \"G\" is no name of an object"},
      {"user ann\n  delete podgroup g\n", "f:5: no line above makes podgroup \"g\""},
      {"podgroup g min=1\nuser ann\n  update podgroup g max=1\n",
       "f:6: unknown event \"update podgroup g max=1\""},
      {"podgroup g min=1\nuser ann\n  finish podgroup g\n",
       "f:6: unknown event \"finish podgroup g\""},
      {"queue q\n", "f:4: a queue takes cpu=AMOUNT"},
      {"queue q cpu=-1\n", "f:4: cpu must be a quantity from 0 to 1M"},
      {"queue q cpu=1 within=any\n", "f:4: within takes lower or newer, not \"any\""},
      {"queue q cpu=1 reclaim=newer\n", "f:4: reclaim takes lower or any, not \"newer\""},
      {"queue q cpu=1 pods=1\n", "f:4: unknown key \"pods\""},
      {"queue q cpu=1 spot.cpu=1\n", "f:4: unknown key \"spot.cpu\""},
      {"queue q cpu=1 memory=2Ti\n", "f:4: memory must be a quantity from 0 to 1Ti, not \"2Ti\""},
      {"flavor f\n", "f:4: a flavor comes before nodes and queues"},
      {"queue q cpu=1\nworkload w queue=q disk=ssd\n", "f:5: unknown key \"disk\""},
      {"queue q cpu=1\nworkload w queue=q count=2 min=3\n",
       "f:5: min must be a number from 0 to 2, not \"3\""},
      {"queue q cpu=1\nworkload w queue=q count=2 min=0\n", "f:5: min must be at least 1"},
      {"queue q cpu=1\nworkload w queue=q slice=rack:2\n", "f:5: unknown level \"rack\""},
      {"queue q cpu=1\nworkload w queue=q +\n", "f:5: + takes the name of a pod set"},
      {"queue q cpu=1\nworkload w queue=q + main\n", "f:5: pod set main is there already"},
      {"queue q cpu=1\nworkload w queue=q + a + a\n", "f:5: pod set a is there already"},
      {"queue q cpu=1\nworkload w queue=q + a queue=q\n", "f:5: unknown key \"queue\""},
      {"queue q cpu=1\nworkload w queue=q + A\n", "f:5: \"A\" is no name of an object"},
      {"queue q cpu=1 cohort=C\n", "f:4: \"C\" is no name of an object"},
      {"workload w cpu=1\n", "f:4: a workload takes queue=NAME"},
      {"workload w queue=q cpu=1\n", "f:4: unknown queue \"q\""},
      {"queue q cpu=1\nworkload w queue=q count=101\n",
       "f:5: count must be a number from 0 to 100, not \"101\""},
      {"user ann\n  create localqueue q\n", "f:5: no line above makes localqueue \"q\""},
      {"queue q cpu=1\nuser ann\n  create localqueue q cpu=1\n", "f:6: unknown key \"cpu\""},
      {"queue q cpu=1\nuser ann\n  finish queue q\n", "f:6: unknown event \"finish queue q\""},
      {"queue q cpu=1\nworkload w queue=q\nuser ann\n  stop workload w\n",
       "f:7: unknown event \"stop workload w\""},
      {"queue q cpu=1\nworkload w queue=q\nuser ann\n  evict workload w grace=1\n",
       "f:7: unknown event \"evict workload w grace=1\""},
      {"cohort c cpu=1\n", "f:4: unknown key \"cpu\""},
      {"user ann\n  create flavor f\n", "f:5: unknown event \"create flavor f\""},
      {"topology t host\n", "f:4: a topology comes before nodes and queues"},
      {"check c cpu=1\n", "f:4: unknown key \"cpu\""},
      {"check c nodes=some\n", "f:4: nodes is none, or isn't said"},
      {"queue q cpu=1 checks=c\n", "f:4: unknown check \"c\""},
      {"queue q cpu=1\nworkload w queue=q required=rack\n", "f:5: unknown level \"rack\""},
      {"queue q cpu=1\nworkload w queue=q finalizer=F\n", "f:5: \"F\" is no name of an object"},
      {"queue q cpu=1\nworkload w queue=q\nuser ann\n  answer workload w check=c state=ready\n",
       "f:7: unknown check \"c\""},
      {"check c\nqueue q cpu=1\nworkload w queue=q\nuser ann\n  answer workload w check=c\n",
       "f:8: unknown event \"answer workload w check=c\""},
      {"check c\nqueue q cpu=1\nworkload w queue=q\nuser ann\n"
       "  answer workload w check=c state=good\n",
       "f:8: state takes pending, ready, retry or rejected, not \"good\""},
      {"queue q cpu=1\nworkload w queue=q\nuser ann\n  mark workload w node=n9\n",
       "f:7: unknown node \"n9\""},
      {"queue q cpu=1\nworkload w queue=q\nuser ann\n  mark workload w\n",
       "f:7: unknown event \"mark workload w\""},
      {"queue q cpu=1\nworkload w queue=q\nuser ann\n  unmark workload w node=n1\n",
       "f:7: unknown event \"unmark workload w node=n1\""},
      {"queue q cpu=1\nworkload w queue=q\nuser ann\n  reclaim workload w count=101\n",
       "f:7: count must be a number from 0 to 100, not \"101\""},
      {"queue q cpu=1\nuser ann\n  drain cohort q\n", "f:6: no line above makes cohort \"q\""},
      {"queue q cpu=1\nuser ann\n  cordon flavor spot\n",
       "f:6: unknown event \"cordon flavor spot\""},
      {"user ann\n  fail node n1 label=x\n", "f:5: unknown event \"fail node n1 label=x\""},
      {std::string(kUser) + "starts\n", "f:6: kubelets start pods, and there are none"},
      {"group-controller\ngroup-controller\n", "f:5: group-controller is said twice"},
      {"owner web replicas=1 cpu=1\ngroup-controller\n",
       "f:5: group-controller comes before owners"},
      {"owner web replicas=1 cpu=1 node=n1\n",
       "f:4: the pods of an owner are placed by the scheduler"},
      {"owner web replicas=1 cpu=1\nuser ann\n  create owner web\n",
       "f:6: unknown event \"create owner web\""},
      {"group-controller\njob web cpu=1\nuser ann\n  delete job web cascade=up\n",
       "f:7: cascade takes background, foreground or orphan"},
      {"group-controller\njob web cpu=1\nuser ann\n  forge job web in=here\n",
       "f:7: in takes default or elsewhere"},
      {"group-controller\njob web cpu=1\nuser ann\n  drop job web count=1\n",
       "f:7: unknown event \"drop job web count=1\""},
      {"group-controller\nuser ann\n  create owner web\n",
       "f:6: no line above makes owner \"web\""},
      {"group-controller\nowner web replicas=1 cpu=1\nuser ann\n  delete pod web2-0\n",
       "f:7: no line above makes pod \"web2-0\""},
      {std::string(kUser) + "indexed\n", "f:6: jobs make pods where the scenario is joint"},
      {std::string(kUser) + "slow-jobs\n", "f:6: jobs make pods where the scenario is joint"},
      {"scenario t\n", "f:4: the scenario has a name already"},
      {"case X \"q\"\n", "f:4: \"X\" is no id of a case"},
      {"case D02\n", "f:4: case takes an id and what is said of it, quoted"},
      {"case D02 \"q\n", "f:4: a quotation without an end"},
      {"pod a cpu=1\x01\n", "f:4: a control character"},
      {std::string(1001, 'x') + "\n", "f:4: the line is too long"},
      {"node n2 cpu=1\nnode n3 cpu=1\nnode n4 cpu=1\nnode n5 cpu=1\nnode n6 cpu=1\n",
       "f:8: too many nodes"},
      {"", "f:3: no user acts"},
      {"again crashes=1\nagain crashes=1\n", "f:5: again is said twice"},
      {"again\n", "f:4: again takes crashes=1 and states=NUMBER"},
      {"again crashes=1 depth=3\n", "f:4: unknown key \"depth\""},
      {std::string(kUser) + "bound crashes=1\nagain crashes=1\n",
       "f:7: again adds a crash, and there is one"},
      {std::string(kUser) + "bound failures=1\n",
       "f:6: failures of writes are allowed and no line says which"},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(ErrorOf(std::string(kHead) + each.text), HasSubstr(each.error)) << each.text;
  }
  EXPECT_EQ(ErrorOf(""), "f:1: no line names the scenario");
  EXPECT_EQ(ErrorOf("scenario s\n"), "f:1: no line names a case");
}

TEST(ScenarioTest, WhatIsWrongWithATopologyIsRefusedWithItsLine) {
  const std::string head = "scenario s\ncase D01 \"said\"\n";
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"topology t\n", "f:3: a topology takes 1 to 3 levels"},
           {"topology t a b c d\n", "f:3: a topology takes 1 to 3 levels"},
           {"topology t host rack\n", "f:3: host is the lowest level of a topology"},
           {"topology t rack rack\n", "f:3: rack is said twice"},
           {"topology t Rack\n", "f:3: \"Rack\" is no name of an object"},
           {"topology t host\ntopology u host\n", "f:4: there is a topology already"},
           {"topology t rack host\nnode n cpu=1\n", "f:4: a node takes rack=NAME"},
           {"topology t rack host\nnode n cpu=1 rack=R\n", "f:4: \"R\" is no name of an object"},
           {"topology t rack host\nnode n cpu=1 host=n\n", "f:4: unknown key \"host\""},
           {"topology t rack host\nqueue q cpu=1\nworkload w queue=q required=rack "
            "preferred=host\n",
            "f:5: a workload takes required=LEVEL or preferred=LEVEL"}}) {
    EXPECT_EQ(ErrorOf(head + text), error) << text;
  }
}

TEST(ScenarioTest, WhatIsWrongWithFlavorsIsRefusedWithItsLine) {
  const std::string head = "scenario s\ncase D01 \"said\"\n";
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"flavor f disk\n", "f:3: \"disk\" is not of the form key=value"},
           {"flavor f cpu=1\n", "f:3: cpu means something else already"},
           {"flavor f Disk=a\n", "f:3: \"Disk\" is no name of an object"},
           {"flavor f disk=A\n", "f:3: \"A\" is no name of an object"},
           {"flavor f topology=t\n", "f:3: unknown topology \"t\""},
           {"flavor f\nflavor f\n", "f:4: the flavor is there already"},
           {"flavor f\ntopology t host\n", "f:4: a topology comes before flavors"},
           {"topology t rack\nflavor f topology=t\n",
            "f:4: a flavor of a topology takes KEY=VALUE of its nodes"},
           {"topology t rack\nflavor f rack=a\n", "f:4: rack means something else already"},
           {"flavor f\nqueue q cpu=1\n", "f:4: unknown key \"cpu\""},
           {"flavor f\nqueue q\n", "f:4: a queue takes f.cpu=AMOUNT"},
           {"flavor f\nqueue q f.cpu=-1\n",
            "f:4: f.cpu must be a quantity from 0 to 1M, not \"-1\""},
           {"flavor f\nflavor g\nqueue q f.cpu=1 g.cpu=1 g.memory=1\n",
            "f:5: g has some of the resources of another flavor, and not all"},
           {"flavor f\ncheck c\nqueue q f.cpu=1 checks=c:g\n", "f:5: unknown flavor \"g\""},
           {"flavor f disk=a\nnode n cpu=1 disk=A\n", "f:4: \"A\" is no name of an object"},
           {"flavor f disk=a\nqueue q f.cpu=1\nworkload w queue=q disk=A\n",
            "f:5: \"A\" is no name of an object"},
           {"topology t rack\nqueue q cpu=1\nworkload w queue=q slice=rack\n",
            "f:5: slice must be a number from 0 to 100, not \"\""},
           {"topology t rack\nqueue q cpu=1\nworkload w queue=q slice=rack:0\n",
            "f:5: slice takes LEVEL:COUNT of at least 1"},
           {"flavor f\nqueue q f.cpu=1\nuser ann\n  update queue q cpu=1\n",
            "f:6: unknown event \"update queue q cpu=1\""},
           {"flavor f\nqueue q f.cpu=1\nuser ann\n  create flavor g\n",
            "f:6: unknown event \"create flavor g\""}}) {
    EXPECT_EQ(ErrorOf(head + text), error) << text;
  }
}

TEST(ScenarioTest, FlavorsAndPodSetsAreReadWhole) {
  const Result<Scenario> scenario = ParseScenario(
      "scenario s\ncase D01 \"said\"\ntopology t rack host\nflavor fast topology=t disk=ssd\n"
      "flavor slow topology=t disk=hdd\nflavor ram\nnode n cpu=1 rack=r disk=ssd\ncheck c\n"
      "queue q fast.cpu=1 slow.cpu=2 ram.memory=1Gi checks=c:slow\n"
      "workload w queue=q cpu=1 count=4 min=2 slice=rack:2 + more memory=1Gi disk=ssd\n"
      "user ann\n  update queue q fast.cpu=3\n  delete flavor slow\n  create flavor slow\n",
      "f");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const std::vector<Action>& made = scenario->set_up;
  ASSERT_EQ(made.size(), 9u);
  EXPECT_THAT(made[1].body, HasSubstr(R"({"nodeLabels":{"disk":"ssd"},"topologyName":"t"})"));
  EXPECT_THAT(made[3].body, HasSubstr(R"({"nodeLabels":{}})"));
  EXPECT_THAT(made[4].body, HasSubstr(R"({"disk":"ssd","kubernetes.io/hostname":"n","rack":"r"})"));
  EXPECT_THAT(
      made[6].body,
      HasSubstr(
          R"([{"coveredResources":["cpu"],"flavors":[{"name":"fast","resources":[{"name":"cpu","nominalQuota":"1"}]},{"name":"slow","resources":[{"name":"cpu","nominalQuota":"2"}]}]},{"coveredResources":["memory"],)"));
  EXPECT_THAT(made[6].body, HasSubstr(R"({"name":"c","onFlavors":["slow"]})"));
  EXPECT_THAT(
      made[8].body,
      HasSubstr(
          R"("count":4,"minCount":2,"topologyRequest":{"podSetSliceRequiredTopology":"rack","podSetSliceSize":2},)"));
  EXPECT_THAT(
      made[8].body,
      HasSubstr(R"({"name":"more","count":1,"template":{"spec":{"nodeSelector":{"disk":"ssd"},)"));
  const std::vector<Action>& acts = scenario->users.front().actions;
  EXPECT_THAT(acts[0].body, HasSubstr(R"("nominalQuota":"3")"));
  EXPECT_EQ(acts[2].body, made[2].body);
}

TEST(ScenarioTest, TheLeastAndTheMostAreTaken) {
  for (const std::string text : {"pod a cpu=0 memory=0", "pod a cpu=1M memory=1Ti",
                                 "node n2 cpu=1000000 memory=1Ti pods=1k"}) {
    EXPECT_EQ(ErrorOf(std::string(kHead) + std::string(kUser) + text), "none") << text;
  }
}

TEST(ScenarioTest, AFileThatUsesEverythingIsReadWhole) {
  const Result<Scenario> scenario = ParseScenario(
      "# A comment.\n"
      "scenario all-of-it\n"
      "case D01 \"what is said # of it\"  # A comment.\n"
      "class high value=1000 preempts=never\n"
      "node n1 cpu=2 memory=1Gi pods=10\n"
      "pod a cpu=500m memory=64Mi priority=high grace=5 node=n1 finalizer=keep\n"
      "owner web replicas=2 cpu=1 label=web at-once\n"
      "kubelets n1\ncollector\nunsettled\n"
      "user ann\n"
      "  update pod a label=x\n"
      "  bind pod a node=n1\n"
      "\n"
      "  delete pod a grace=0\n"
      "  release pod a\n"
      "  nominate pod a node=n1\n"
      "  withdraw pod a\n"
      "user bob\n"
      "\tcordon node n1\n"
      "\tuncordon node n1\n"
      "\tdelete node n1\n"
      "\tcreate node n1 cpu=1\n"
      "\ttaint node n1\n"
      "\tuntaint node n1\n"
      "starts\ndisruption\n"
      "budget few label=web min=1\n"
      "user cat\n"
      "  evict pod a\n"
      "  update budget few max=2\n"
      "  delete budget few\n"
      "  create budget few label=web max=0\n"
      "  delete class high\n"
      "  create class high value=5\n"
      "  delete owner web\n"
      "podgroup g min=2 priority=high\n"
      "pod m group=g\n"
      "owner gang replicas=2 group=g\n"
      "user dan\n"
      "  update podgroup g min=1\n"
      "  delete podgroup g\n"
      "  create podgroup g min=3\n"
      "  finish pod m\n"
      "  scale owner gang replicas=0\n"
      "writes unheard conflict error refused lost\n"
      "bound depth=50 failures=2 crashes=1 timers=1 states=1000\n"
      "expect evictions=2 states=900\n"
      "plant ledger-keyed-by-name states=100",
      "f");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->name, "all-of-it");
  EXPECT_THAT(scenario->cases, ElementsAre("D01"));
  EXPECT_THAT(scenario->quotes, ElementsAre("what is said # of it"));
  EXPECT_EQ(scenario->classes.size(), 1u);
  EXPECT_EQ(scenario->set_up.size(), 5u);
  EXPECT_EQ(scenario->set_up[2].kind, Action::Kind::kBudget);
  ASSERT_EQ(scenario->users.size(), 4u);
  EXPECT_EQ(scenario->users[0].actions.size(), 6u);
  EXPECT_EQ(scenario->users[0].actions[2].line, 15u);
  EXPECT_EQ(scenario->users[1].actions[3].text, "create node n1 cpu=1");
  ASSERT_EQ(scenario->users[2].actions.size(), 7u);
  EXPECT_EQ(scenario->users[2].actions[0].verb, Action::Verb::kEvict);
  EXPECT_EQ(scenario->users[2].actions[1].body,
            R"({"spec":{"minAvailable":null,"maxUnavailable":2}})");
  EXPECT_EQ(scenario->users[2].actions[4].kind, Action::Kind::kClass);
  EXPECT_EQ(scenario->users[2].actions[6].kind, Action::Kind::kOwner);
  EXPECT_TRUE(scenario->groups);
  EXPECT_EQ(scenario->set_up[3].kind, Action::Kind::kGroup);
  EXPECT_THAT(scenario->set_up[3].body,
              HasSubstr(R"("spec":{"minMember":2,"priorityClassName":"high"})"));
  EXPECT_THAT(scenario->set_up[4].body,
              HasSubstr(R"("annotations":{"scheduling.k8s.io/group-name":"g"})"));
  EXPECT_EQ(scenario->users[3].actions[0].body, R"({"spec":{"minMember":1}})");
  EXPECT_EQ(scenario->users[3].actions[3].body, R"({"status":{"phase":"Succeeded"}})");
  EXPECT_EQ(scenario->users[3].actions[4].replicas, 0u);
  EXPECT_EQ(scenario->users[3].actions[4].body, R"({"spec":{"replicas":0}})");
  ASSERT_EQ(scenario->owners.size(), 2u);
  EXPECT_EQ(scenario->owners[1].group, "g");
  EXPECT_EQ(scenario->owners[0].label, "web");
  EXPECT_TRUE(scenario->owners[0].at_once);
  EXPECT_THAT(scenario->kubelet_nodes, ElementsAre("n1"));
  EXPECT_TRUE(scenario->kubelets && scenario->collector && !scenario->settled);
  EXPECT_TRUE(scenario->starts && scenario->disruption);
  EXPECT_THAT(scenario->fates, ElementsAre(Fate::kDoneUnheard, Fate::kConflict, Fate::kError,
                                           Fate::kRefused, Fate::kLost));
  EXPECT_EQ(scenario->bounds.depth, 50u);
  EXPECT_EQ(scenario->bounds.failures, 2u);
  EXPECT_EQ(scenario->bounds.timers, 1u);
  EXPECT_EQ(scenario->bounds.states, 1000u);
  EXPECT_EQ(scenario->evictions, 2u);
  EXPECT_EQ(scenario->whole_states, 900u);
  ASSERT_EQ(scenario->plants.size(), 1u);
  EXPECT_EQ(scenario->plants[0].states, 100u);
}

TEST(ScenarioTest, WhatIsWalkedAgainHasACrash) {
  const Result<Scenario> scenario =
      ParseScenario(std::string(kHead) + std::string(kUser) +
                        "bound timers=1\nagain crashes=1 states=70\nexpect states=9\n"
                        "plant ledger-keyed-by-name states=100",
                    "f");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ASSERT_TRUE(scenario->again.has_value());
  const Scenario again = WithCrash(*scenario);
  EXPECT_EQ(again.name, scenario->name + ", with a crash");
  EXPECT_EQ(again.bounds.crashes, 1u);
  EXPECT_EQ(again.bounds.timers, 1u);
  EXPECT_EQ(again.whole_states, 70u);
  EXPECT_FALSE(again.again.has_value());
  EXPECT_TRUE(again.plants.empty());
  EXPECT_EQ(scenario->bounds.crashes, 0u);
}

TEST(ScenarioTest, WhatNobodyWritesNeverChanges) {
  using Kinds = std::set<std::string, std::less<>>;
  const auto unchanging = [](std::string_view lines) {
    const Result<Scenario> scenario = ParseScenario(std::string(kHead) + std::string(lines), "f");
    EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
    return scenario ? scenario->unchanging : Kinds();
  };
  const Kinds all = {
      "admissionchecks", "clusterqueues",   "cohorts",    "limitranges", "localqueues",
      "namespaces",      "nodes",           "podgroups",  "pods",        "priorityclasses",
      "queues",          "resourceflavors", "topologies", "workloads",   "poddisruptionbudgets",
      "runtimeclasses"};
  struct Case {
    std::string_view lines;
    Kinds change;
  };
  for (const Case& each : {
           Case{"user ann\n  create pod a cpu=1\n", {"pods"}},
           Case{"user ann\n  cordon node n1\n", {"nodes"}},
           Case{"pod a cpu=1\nuser ann\n  cordon node n1\n", {"nodes", "pods"}},
           Case{"owner o replicas=1 cpu=1\nuser ann\n  cordon node n1\n", {"nodes", "pods"}},
           Case{"podgroup g min=1\nuser ann\n  cordon node n1\n", {"nodes", "podgroups"}},
           Case{"queue q cpu=1\nworkload w queue=q cpu=1\nuser ann\n  stop localqueue q\n",
                {"localqueues", "workloads"}},
           Case{"queue q cpu=1\njoint\nuser ann\n  delete queue q\n",
                {"clusterqueues", "localqueues", "pods"}},
           Case{"queue q cpu=1\nin-use\nuser ann\n  create workload w queue=q cpu=1\n",
                {"admissionchecks", "clusterqueues", "resourceflavors", "topologies", "workloads"}},
       }) {
    Kinds expected = all;
    for (const std::string& kind : each.change) expected.erase(kind);
    EXPECT_EQ(unchanging(each.lines), expected) << each.lines;
  }
}

TEST(ScenarioTest, AQueueIsWhatWorkloadsNeedOfIt) {
  const Result<Scenario> scenario = ParseScenario(
      std::string(kHead) +
          "cohort all\nqueue a cpu=1 cohort=all within=newer strict\nqueue b cpu=2 reclaim=any\n"
          "workload w queue=a cpu=500m count=2 priority=7\njobs\nexpect preemptions=3\n"
          "user ann\n  stop queue a\n  resume localqueue b\n  deactivate workload w\n"
          "  evict workload w\n  hold workload w\n  resume workload w\n"
          "  replace workload w\n  requeue workload w\nexpect displaced=1\n",
      "f");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_TRUE(scenario->quota && scenario->jobs);
  EXPECT_EQ(scenario->preemptions, 3u);
  std::vector<std::string> made;
  for (const Action& action : scenario->set_up)
    made.push_back(std::to_string(static_cast<int>(action.kind)) + " " + action.name);
  EXPECT_THAT(made, ElementsAre("1 n1", "8 all", "9 spot", "6 a", "7 a", "6 b", "7 b", "10 w"));
  EXPECT_THAT(scenario->set_up[3].body, HasSubstr("StrictFIFO"));
  EXPECT_THAT(scenario->set_up[3].body, HasSubstr("LowerOrNewerEqualPriority"));
  EXPECT_THAT(scenario->set_up[7].body, HasSubstr(R"("count":2)"));
  const std::vector<Action>& acts = scenario->users.front().actions;
  EXPECT_THAT(acts[0].body, HasSubstr("Hold"));
  EXPECT_THAT(acts[1].body, HasSubstr("None"));
  EXPECT_EQ(acts[2].body, R"({"spec":{"active":false}})");
  EXPECT_EQ(acts[3].verb, Action::Verb::kTell);
  EXPECT_THAT(acts[4].body, HasSubstr(R"("status":"False","reason":"OnHold")"));
  EXPECT_THAT(acts[5].body, HasSubstr(R"("status":"False","reason":"Pending")"));
  EXPECT_THAT(acts[6].body, HasSubstr(R"("type":"Evicted")"));
  EXPECT_THAT(acts[7].body, HasSubstr(R"("type":"Requeued")"));
  EXPECT_EQ(scenario->displaced, 1u);
}

TEST(ScenarioTest, ATopologyIsOfTheFlavorAndItsNodes) {
  const Result<Scenario> scenario = ParseScenario(
      "scenario s\ncase D01 \"said\"\ntopology t rack host\nnode n1 cpu=2 rack=r1\n"
      "check c\nqueue a cpu=1 checks=c\n"
      "workload w queue=a cpu=1 required=rack finalizer=keep\nunhealthy\n"
      "user ann\n  answer workload w check=c state=retry\n  mark workload w node=n1\n"
      "  unmark workload w\n  reclaim workload w count=1\n  release workload w\n"
      "  fail node n1\n  recover node n1\n  delete topology t\n  create topology t\n"
      "  delete flavor spot\n  create flavor spot\n  taint flavor spot\n  drain queue a\n",
      "f");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_TRUE(scenario->unhealthy);
  const std::vector<Action>& made = scenario->set_up;
  ASSERT_EQ(made.size(), 7u);
  EXPECT_THAT(made[0].body, HasSubstr(R"({"nodeLabel":"kubernetes.io/hostname"}])"));
  EXPECT_THAT(made[1].body, HasSubstr(R"("kubernetes.io/hostname":"n1")"));
  EXPECT_THAT(made[1].body, HasSubstr(R"("rack":"r1")"));
  EXPECT_EQ(made[2].kind, Action::Kind::kCheck);
  EXPECT_THAT(made[3].body, HasSubstr(R"("topologyName":"t")"));
  EXPECT_THAT(made[4].body, HasSubstr(R"("admissionChecks":[{"name":"c"}])"));
  EXPECT_THAT(made[6].body, HasSubstr(R"("topologyRequest":{"required":"rack"})"));
  EXPECT_THAT(made[6].body, HasSubstr(R"("finalizers":["example.com/keep"])"));
  const std::vector<Action>& acts = scenario->users.front().actions;
  EXPECT_EQ(acts[0].verb, Action::Verb::kAnswer);
  EXPECT_EQ(acts[0].body, R"({"name":"c","state":"Retry"})");
  EXPECT_EQ(acts[1].body, R"({"status":{"unhealthyNodes":[{"name":"n1"}]}})");
  EXPECT_EQ(acts[2].body, R"({"status":{"unhealthyNodes":null}})");
  EXPECT_EQ(acts[3].body, R"({"status":{"reclaimablePods":[{"name":"main","count":1}]}})");
  EXPECT_EQ(acts[4].body, R"({"metadata":{"finalizers":null}})");
  EXPECT_THAT(acts[5].body, HasSubstr("False"));
  EXPECT_EQ(acts[8].body, made[0].body);
  EXPECT_EQ(acts[10].body, made[3].body);
  EXPECT_THAT(acts[12].body, HasSubstr("HoldAndDrain"));
}

}  // namespace
}  // namespace berth::explore
