#include "model/state.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

// Goal: the smallest life of a pod: fact, decision, observation, removal. Method: one node, one
// pod, free cpu after each step.
TEST(StateTest, APodIsChargedFromTheDecisionToItsRemoval) {
  State state;
  const BundleId requests =
      state.vocabulary.bundles.Intern(std::vector<ResourceAmount>{{kCpu, 500}, {kPods, 1}});
  const ClassId c =
      state.vocabulary.classes.Intern(ClassSpec{.requests = requests, .scoring = requests});
  state.Apply(NodeUpsert{.name = "n1", .uid = "u-n1", .allocatable = {{kCpu, 2000}, {kPods, 10}}});
  const NodeId n = state.FindNode("n1");
  PodUpsert pod{.uid = "u1", .key = "default/a", .class_id = c};
  state.Apply(pod);
  EXPECT_EQ(state.ledger().nodes().free(kCpu, n.value), 2000);
  state.Assume(state.FindPod("u1"), n, {});
  EXPECT_EQ(state.ledger().nodes().free(kCpu, n.value), 1500);
  state.Apply(BindOutcome{.uid = "u1"});
  pod.node = "n1";
  state.Apply(pod);
  EXPECT_EQ(state.ledger().nodes().free(kCpu, n.value), 1500);
  EXPECT_EQ(state.ledger().nodes().claims_count(n.value), 1u);
  state.Apply(PodRemove{.uid = "u1"});
  EXPECT_EQ(state.ledger().nodes().free(kCpu, n.value), 2000);
  EXPECT_EQ(state.ledger().claims_live(), 0u);
}

}  // namespace
}  // namespace berth::model
