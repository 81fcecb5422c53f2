// Goal: which nodes are alike, as it is kept up with pods that come and go, is what grouping them
// anew says, and they are not thought alike where a node is told of pods on another. Method: random
// histories of nodes, pods and others' terms, with a likeness that asks again only for nodes that
// were touched or that it tells, beside a copy that begins anew; and told cases.
#include "cycle/node_likeness.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cycle/test_cluster.h"
#include "cycle/test_naive.h"
#include "model/state.h"

namespace berth::cycle {
namespace {

using enum model::AffinityKind;
using model::ClassId;
using model::NodeId;

// Asks for kinds as ClassCache does.
class Kept {
 public:
  explicit Kept(const LikenessLimits& limits) : likeness_(limits) {}

  void CatchUp(const model::State& state, ClassId class_id) {
    std::vector<NodeId> changed;
    if (class_id != class_id_ || position_ < state.touches().begin() ||
        !likeness_.CatchUp(state, changed)) {
      Begin(state, class_id);
      return;
    }
    kinds_.resize(state.nodes().size());
    for (; position_ < state.touches().end(); ++position_)
      Ask(state, state.touches().at(position_).node);
    for (const NodeId n : changed) Ask(state, n);
    ++kept_;
  }
  void Begin(const model::State& state, ClassId class_id) {
    class_id_ = class_id;
    likeness_.Begin(state, class_id);
    kinds_.assign(state.nodes().size(), 0);
    for (uint32_t row = 0; row < kinds_.size(); ++row) Ask(state, NodeId{row});
    likeness_.Settle();
    position_ = state.touches().end();
  }

  [[nodiscard]] ClassId class_id() const { return class_id_; }
  [[nodiscard]] bool works() const { return likeness_.works(); }
  [[nodiscard]] int kept() const { return kept_; }
  // The first node of the kind of each.
  [[nodiscard]] std::vector<size_t> Firsts() const {
    std::map<uint32_t, size_t> first;
    std::vector<size_t> firsts;
    for (size_t row = 0; row < kinds_.size(); ++row)
      firsts.push_back(first.try_emplace(kinds_[row], row).first->second);
    return firsts;
  }

 private:
  void Ask(const model::State& state, NodeId n) {
    if (likeness_.works()) kinds_[n.value] = likeness_.KindOf(state, n);
  }

  NodeLikeness likeness_;
  ClassId class_id_;
  std::vector<uint32_t> kinds_;
  uint64_t position_ = 0;
  int kept_ = 0;
};

int Draw(int end) { return *rc::gen::inRange(0, end); }

// A cluster that changes, with one pod that waits.
class Histories {
 public:
  explicit Histories(TestPod asking) : asking_(std::move(asking)) {
    for (int i = 0; i < 8; ++i) PutNode();
    state_.Apply(FactsOf(state_.vocabulary(), asking_));
  }

  void Step() {
    const int what = Draw(10);
    if (what == 0) PutNode();
    if (what == 1) state_.Apply(model::NodeRemove{.name = NodeName()});
    if (what >= 2 && what < 7) PutPod();
    if (what >= 7) state_.Apply(model::PodRemove{.uid = "uid-p" + std::to_string(Draw(12))});
    if (Draw(8) == 0) state_.TrimTouches(2);
  }

  [[nodiscard]] const model::State& state() const { return state_; }
  [[nodiscard]] ClassId asking() const {
    const ClassId now = state_.pods().at(state_.FindPod("uid-asks")).class_id;
    return state_.vocabulary().classes.plain(now);
  }

 private:
  static std::string NodeName() { return "n" + std::to_string(Draw(10)); }
  static std::string App() { return Draw(2) == 0 ? "a" : "b"; }
  static std::string Key() { return Draw(2) == 0 ? kHostname : "zone"; }

  void PutNode() {
    TestNode node{.name = NodeName()};
    if (Draw(6) != 0) node.labels.emplace_back("zone", Draw(2) == 0 ? "x" : "y");
    // Of some hosts there are two.
    if (Draw(6) != 0) node.labels.emplace_back(kHostname, Draw(8) == 0 ? NodeName() : node.name);
    if (Draw(4) == 0) node.taints.push_back({.key = "team"});
    state_.Apply(FactsOf(state_.vocabulary(), node));
  }
  void PutPod() {
    TestPod pod{.name = "p" + std::to_string(Draw(12)), .labels = {{"app", App()}}};
    if (Draw(4) != 0) pod.node = NodeName();
    pod.terminating = Draw(8) == 0;
    if (Draw(3) == 0) {
      const auto kind = *rc::gen::element(kRequired, kRequiredAnti, kPreferred, kPreferredAnti);
      pod.affinity.push_back(
          {.kind = kind, .key = Key(), .app = App(), .weight = static_cast<uint32_t>(1 + Draw(3))});
    }
    state_.Apply(FactsOf(state_.vocabulary(), pod));
  }

  TestPod asking_;
  model::State state_;
};

TestPod DrawAsking() {
  TestPod pod{.name = "asks", .labels = {{"app", "a"}}};
  for (const char* key : {kHostname, "zone"}) {
    if (Draw(2) == 0) continue;
    pod.spread.push_back({.key = key,
                          .app = Draw(2) == 0 ? "a" : "b",
                          .hard = Draw(2) == 0,
                          .honors_taints = Draw(2) == 0,
                          .by_default = false});
  }
  if (Draw(2) == 0) pod.affinity.push_back({.kind = kRequiredAnti, .key = kHostname, .app = "a"});
  if (Draw(2) == 0) pod.affinity.push_back({.kind = kPreferred, .key = kHostname, .app = "b"});
  return pod;
}

RC_GTEST_PROP(NodeLikenessHistories, WhatIsKeptUpIsWhatGroupingAnewSays, ()) {
  Histories history(DrawAsking());
  const uint32_t kinds_max = Draw(2) == 0 ? 256 : 2;
  Kept kept({.kinds_max = kinds_max});
  kept.Begin(history.state(), history.asking());
  for (int i = Draw(80); i > 0; --i) {
    history.Step();
    kept.CatchUp(history.state(), history.asking());
    // It goes by the same keys.
    Kept anew = kept;
    anew.Begin(history.state(), history.asking());
    // Of kinds that came one by one some more are borne.
    if (kinds_max == 256) RC_ASSERT(kept.works() == anew.works());
    if (kept.works() && anew.works()) RC_ASSERT(kept.Firsts() == anew.Firsts());
  }
  RC_CLASSIFY(kept.kept() > 0, "kept up");
}

class NodeLikenessCases : public ::testing::Test {
 protected:
  void Node(const std::string& name, const std::string& host) {
    state.Apply(FactsOf(state.vocabulary(), TestNode{.name = name, .labels = {{kHostname, host}}}));
  }
  void Put(const std::string& name, const std::string& node, const std::string& app = "a") {
    TestPod pod{.name = name, .node = node, .labels = {{"app", app}}};
    if (node.empty()) pod.affinity = {{.kind = kPreferredAnti, .key = kHostname, .app = "a"}};
    state.Apply(FactsOf(state.vocabulary(), pod));
  }
  void PutSpreading() {
    TestPod pod{.name = "asks", .labels = {{"app", "a"}}};
    pod.spread = {{.key = kHostname, .app = "a"}};
    state.Apply(FactsOf(state.vocabulary(), pod));
  }
  [[nodiscard]] ClassId Asking() const {
    return state.pods().at(state.FindPod("uid-asks")).class_id;
  }
  std::vector<size_t> Firsts() {
    kept.CatchUp(state, Asking());
    return kept.works() ? kept.Firsts() : std::vector<size_t>{};
  }
  using Rows = std::vector<size_t>;

  model::State state;
  Kept kept = Kept({});
};

TEST_F(NodeLikenessCases, NodesWithAsManyPodsAreAlike) {
  for (const char* name : {"n0", "n1", "n2", "n3"}) Node(name, name);
  Put("asks", "");
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0, 0}));
  Put("p1", "n1");
  EXPECT_EQ(Firsts(), (Rows{0, 1, 0, 0}));
  Put("p2", "n3");
  EXPECT_EQ(Firsts(), (Rows{0, 1, 0, 1}));
  Put("p3", "n3");
  EXPECT_EQ(Firsts(), (Rows{0, 1, 0, 3}));
  state.Apply(model::PodRemove{.uid = "uid-p1"});
  state.Apply(model::PodRemove{.uid = "uid-p3"});
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0, 3}));
  EXPECT_EQ(kept.kept(), 4);
}

TEST_F(NodeLikenessCases, ItIsNotKnownWhileANodeIsToldOfPodsOnAnother) {
  Node("n0", "h");
  Node("n1", "h");
  Node("n2", "n2");
  Put("asks", "");
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0}));
  Put("p1", "n1");
  EXPECT_EQ(Firsts(), Rows{});
  Node("n0", "n0");
  EXPECT_EQ(Firsts(), (Rows{0, 1, 0}));
  Node("n0", "h");
  EXPECT_EQ(Firsts(), Rows{});
  state.Apply(model::PodRemove{.uid = "uid-p1"});
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0}));
}

// Nobody touches a node for it.
TEST_F(NodeLikenessCases, LabelsOfPodsThatChangeCount) {
  for (const char* name : {"n0", "n1", "n2"}) Node(name, name);
  PutSpreading();
  Put("p1", "n1", "b");
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0}));
  const uint64_t touches = state.touches().end();
  Put("p1", "n1", "a");
  EXPECT_EQ(state.touches().end(), touches);
  EXPECT_EQ(Firsts(), (Rows{0, 1, 0}));
  Put("p1", "n1", "b");
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0}));
  // While nobody counts them, too.
  Put("p1", "n1", "a");
  EXPECT_EQ(Firsts(), (Rows{0, 1, 0}));
  state.Apply(model::PodRemove{.uid = "uid-asks"});
  Put("p1", "n1", "b");
  PutSpreading();
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0}));
  EXPECT_EQ(kept.kept(), 4);
}

// A class may be asked for before a pod of it has come, as of a workload's template.
TEST_F(NodeLikenessCases, APairThatOthersHaveCountsOnceItIsTheClasssToo) {
  for (const char* name : {"n0", "n1", "n2"}) Node(name, name);
  Put("asks", "", "b");
  const ClassId asking = Asking();
  TestPod other{.name = "other", .labels = {{"app", "b"}}};
  other.affinity = {{.kind = kPreferredAnti, .key = kHostname, .app = "a"},
                    {.kind = kPreferredAnti, .key = "disk", .app = "a"}};
  state.Apply(FactsOf(state.vocabulary(), other));
  state.Apply(model::PodRemove{.uid = "uid-asks"});
  Put("p1", "n1");
  kept.CatchUp(state, asking);
  EXPECT_EQ(kept.Firsts(), (Rows{0, 0, 0}));
  Put("asks", "", "b");
  ASSERT_EQ(Asking(), asking);
  EXPECT_EQ(Firsts(), (Rows{0, 1, 0}));
}

TEST_F(NodeLikenessCases, WhatIsForgottenWhileADomainIsSharedIsAskedForAgain) {
  for (const char* name : {"n0", "n1", "n2"}) Node(name, name);
  Put("asks", "", "b");
  Put("p0", "n0");
  EXPECT_EQ(Firsts(), (Rows{0, 1, 1}));
  Node("n1", "n0");
  state.Apply(model::PodRemove{.uid = "uid-asks"});
  Node("n1", "n1");
  Put("p0", "n0", "b");
  Put("asks", "", "b");
  EXPECT_EQ(Firsts(), (Rows{0, 0, 0}));
}

// Pods come and go, so that there are ever other numbers of them: there never are many kinds.
TEST_F(NodeLikenessCases, KindsThatNoNodeIsOfAreForgotten) {
  kept = Kept({.kinds_max = 2});
  for (const char* name : {"n0", "n1", "n2"}) Node(name, name);
  Put("asks", "");
  for (int i = 0; i < 20; ++i) {
    Put("p" + std::to_string(i), "n1");
    // Once it is not known, as there seem to be too many.
    if (Firsts().empty()) {
      EXPECT_EQ(Firsts(), (Rows{0, 1, 0})) << i;
    }
  }
  for (const char* name : {"n0", "n2"}) Put(name, name);
  Put("another", "n2");
  kept.Begin(state, Asking());
  EXPECT_EQ(Firsts(), Rows{}) << "three are too many";
}

}  // namespace
}  // namespace berth::cycle
