#include "translate/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

// Goal: messages read as kube-scheduler writes them. Method: refusals put together by hand,
// compared whole.
namespace berth::translate {
namespace {

using model::Reason;
using model::ReasonKind;

TEST(TextTest, ReasonsOfOneTextAreAddedUpAndSortedWithTheirCounts) {
  model::State state;
  const model::ResourceId gpu = state.vocabulary().resources.Intern("example.com/gpu").value();
  model::Refusal refusal{.nodes_count = 30};
  refusal.reasons = {
      {.kind = ReasonKind::kTaint,
       .detail = state.vocabulary().names.Intern("a"),
       .nodes_count = 3},
      {.kind = ReasonKind::kTaint,
       .detail = state.vocabulary().names.Intern("b"),
       .nodes_count = 2},
      {.kind = ReasonKind::kInsufficient, .resource = model::kPods, .nodes_count = 10},
      {.kind = ReasonKind::kInsufficient,
       .unresolvable = true,
       .resource = model::kCpu,
       .nodes_count = 15},
      {.kind = ReasonKind::kInsufficient, .resource = gpu, .nodes_count = 1},
  };
  EXPECT_EQ(FailedSchedulingText(refusal, state),
            "0/30 nodes are available: 1 Insufficient example.com/gpu, 10 Too many pods, 15 "
            "Insufficient cpu, "
            "5 node(s) had untolerated taint(s).");
}

TEST(TextTest, WhatIsSaidOfAllNodesAtOnceStandsAlone) {
  const model::State state;
  EXPECT_EQ(FailedSchedulingText({}, state), "no nodes available to schedule pods");
  EXPECT_EQ(
      FailedSchedulingText({.nodes_count = 5,
                            .reasons = {{.kind = ReasonKind::kAffinityConflict, .nodes_count = 5}}},
                           state),
      "0/5 nodes are available: pod affinity terms conflict.");
  EXPECT_EQ(FailedSchedulingText({.nodes_count = 4,
                                  .reasons = {{.kind = ReasonKind::kNodeMissing},
                                              {.kind = ReasonKind::kNotNamed, .nodes_count = 4}}},
                                 state),
            "0/4 nodes are available: 4 node(s) didn't satisfy plugin(s) [NodeAffinity].");
}

TEST(TextTest, WhoLooksForRoomIsSaidByTheProfile) {
  model::State state({.profiles = {{.scheduler_name = "a", .rules = {.preempts = false}},
                                   {.scheduler_name = "b", .rules = {.deallocates = false}}}});
  const auto text = [&](const std::string& profile,
                        std::optional<model::PreemptionRefusal> preemption) {
    const model::ClassId class_id =
        state.vocabulary().classes.Intern({.profile = state.vocabulary().names.Intern(profile)});
    return FailedSchedulingText(
        {.class_id = class_id,
         .nodes_count = 1,
         .reasons = {{.kind = ReasonKind::kUnschedulable, .nodes_count = 1}},
         .preemption = std::move(preemption)},
        state);
  };
  const std::string why = "0/1 nodes are available: 1 node(s) were unschedulable.";
  const model::PreemptionRefusal never{.bar = model::PreemptionBar::kPolicy};
  const std::string told = "preemption: not eligible due to preemptionPolicy=Never.";
  EXPECT_EQ(text("usual", never), why + " no new claims to deallocate, " + told);
  EXPECT_EQ(text("a", {}), why + " no new claims to deallocate");
  EXPECT_EQ(text("b", never), why + " " + told);
}

TEST(TextTest, WhyNoEvictionHelpsFollowsUpstreamsWords) {
  const model::State state;
  EXPECT_EQ(
      PreemptionText({.nodes_count = 9,
                      .not_helpful = 3,
                      .no_victims = 2,
                      .reasons = {{.kind = ReasonKind::kInsufficient,
                                   .resource = model::kCpu,
                                   .nodes_count = 4}}},
                     state),
      "preemption: 0/9 nodes are available: 2 No preemption victims "
      "found for incoming pod, 3 Preemption is not helpful for scheduling, 4 Insufficient cpu.");
  EXPECT_EQ(PreemptionText({.bar = model::PreemptionBar::kPolicy}, state),
            "preemption: not eligible due to preemptionPolicy=Never.");
  EXPECT_EQ(PreemptionText({.bar = model::PreemptionBar::kVictimsTerminating}, state),
            "preemption: not eligible due to a terminating pod on the "
            "nominated node.");
  EXPECT_EQ(FailedSchedulingText({.nodes_count = 1,
                                  .reasons = {{.kind = ReasonKind::kInsufficient,
                                               .resource = model::kCpu,
                                               .nodes_count = 1}},
                                  .preemption = {{.bar = model::PreemptionBar::kVictimsToLeave}}},
                                 state),
            "0/1 nodes are available: 1 Insufficient cpu.");
  EXPECT_EQ(
      FailedSchedulingText(
          {.nodes_count = 1,
           .reasons =
               {{.kind = ReasonKind::kInsufficient, .resource = model::kCpu, .nodes_count = 1}},
           .preemption = model::PreemptionRefusal{.nodes_count = 1, .no_victims = 1}},
          state),
      "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 "
      "nodes are available: 1 No preemption victims found for incoming pod.");
}

TEST(TextTest, APromiseThatWasTakenBackSaysWhose) {
  model::State state;
  EXPECT_EQ(LostPromiseText({.why = ReasonKind::kPromiseNodeGone,
                             .node = state.vocabulary().names.Intern("n1")},
                            state),
            "Its promise of node n1 was taken back: the node is gone.");
}

TEST(TextTest, AmountsOfOneNodeComeInUpstreamsOrder) {
  model::State state;
  const model::ResourceId b = state.vocabulary().resources.Intern("example.com/b").value();
  const model::ResourceId a = state.vocabulary().resources.Intern("example.com/a").value();
  const std::vector<model::ResourceAmount> amounts = {{model::kCpu, 1},
                                                      {model::kMemory, 1},
                                                      {model::kEphemeralStorage, 1},
                                                      {model::kPods, 1},
                                                      {b, 1},
                                                      {a, 1}};
  const model::ClassId c =
      state.vocabulary().classes.Intern({.requests = state.vocabulary().bundles.Intern(amounts)});
  const model::Verdict verdict{.kind = ReasonKind::kInsufficient, .lacking = 0b111111};
  EXPECT_EQ(VerdictTexts(state, c, verdict),
            (std::vector<std::string>{"Too many pods", "Insufficient cpu", "Insufficient memory",
                                      "Insufficient ephemeral-storage",
                                      "Insufficient example.com/a", "Insufficient example.com/b"}));
}

TEST(TextTest, EveryKindHasAName) {
  for (uint32_t kind = 0; kind < model::kReasonKindsCount; ++kind) {
    EXPECT_FALSE(ToString(static_cast<ReasonKind>(kind)).empty()) << kind;
  }
}

}  // namespace
}  // namespace berth::translate
