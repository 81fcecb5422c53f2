// Goal: members are charged to their groups' queues, and what a group asked for is kept there, as a
// function of what was observed and decided. Method: small histories; the audit, which computes both
// anew, after each step.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "model/audit.h"
#include "model/state.h"

namespace berth::model {
namespace {

class SharesTest : public testing::Test {
 protected:
  void SetUp() override {
    Apply(NodeUpsert{.name = "n1", .uid = "n1", .allocatable = {{kCpu, 4000}, {kPods, 10}}});
  }
  void TearDown() override { EXPECT_TRUE(Audit(state_).empty()) << Audit(state_).front(); }

  void Apply(const Delta& delta) {
    state_.Apply(delta);
    ASSERT_TRUE(Audit(state_).empty()) << Audit(state_).front();
  }
  BundleId Cpu(Amount milli) {
    const ResourceAmount amount{kCpu, milli};
    return state_.vocabulary().bundles.Intern(std::span(&amount, 1));
  }
  void PutQueue(const std::string& name, Amount cpu, const std::string& parent = "root",
                bool closed = false) {
    Apply(QueueUpsert{.kind = QueueKind::kQueue,
                      .name = name,
                      .uid = name,
                      .parent = parent,
                      .quotas = {{.flavor = {},
                                  .resource = kCpu,
                                  .quota = {.borrowing_limit = cpu, .lending_limit = 0}}},
                      .stopped = closed});
  }
  void PutGroup(const std::string& queue, Amount kept, GroupPhase phase = GroupPhase::kPending,
                const std::string& name = "g") {
    Apply(GroupUpsert{.uid = name,
                      .key = "default/" + name,
                      .min_member = 2,
                      .phase = phase,
                      .queue = queue,
                      .min_resources = kept == 0 ? BundleId{} : Cpu(kept)});
  }
  void PutPod(const std::string& name, const std::string& node, bool terminating = false) {
    ClassSpec spec;
    spec.requests = Cpu(1000);
    Apply(PodUpsert{.uid = name,
                    .key = "default/" + name,
                    .class_id = state_.vocabulary().classes.Intern(spec),
                    .node = node,
                    .group = "default/g",
                    .terminating = terminating});
  }
  // What is charged to the queue itself: in use, and in use or reserved.
  [[nodiscard]] std::pair<Amount, Amount> Used(const std::string& queue) const {
    const QueueId q = state_.FindQueue(QueueKind::kQueue, queue);
    const uint32_t account = state_.queues().AccountOf(q, NameId{});
    const QuotaTree& tree = state_.ledger().quota();
    return {tree.used(QuotaView::kPhysical, kCpu, account),
            tree.used(QuotaView::kNow, kCpu, account)};
  }
  [[nodiscard]] GroupId G() const { return state_.FindGroup("g"); }

  State state_;
};
using Usage = std::pair<Amount, Amount>;

TEST_F(SharesTest, MembersAreChargedToTheQueueOfTheirGroup) {
  PutQueue("q", 3000);
  PutPod("a", "n1");
  PutGroup("q", 0);
  EXPECT_EQ(Used("q"), Usage(1000, 1000)) << "who has a node before the group comes";
  PutPod("b", "n1");
  PutPod("c", "");
  EXPECT_EQ(Used("q"), Usage(2000, 2000));
  EXPECT_EQ(Used("root"), Usage(2000, 2000));
  PutPod("b", "n1", /*terminating=*/true);
  EXPECT_EQ(Used("q"), Usage(2000, 2000)) << "until it is gone";
  Apply(PodRemove{.uid = "b"});
  EXPECT_EQ(Used("q"), Usage(1000, 1000));
  Apply(GroupRemove{.uid = "g"});
  EXPECT_EQ(Used("q"), Usage(0, 0));
}

TEST_F(SharesTest, TheRootIsChargedWhileThereIsNoDefaultQueue) {
  PutGroup("default", 0);
  PutPod("a", "n1");
  EXPECT_EQ(Used("root"), Usage(1000, 1000));
  PutQueue("default", 3000);
  EXPECT_EQ(Used("default"), Usage(1000, 1000));
  PutGroup("q", 0);
  EXPECT_EQ(Used("default"), Usage(0, 0));
  EXPECT_EQ(Used("root"), Usage(0, 0)) << "nobody has the queue that it names";
  PutQueue("q", 3000);
  EXPECT_EQ(Used("q"), Usage(1000, 1000));
  Apply(QueueRemove{.kind = QueueKind::kQueue, .name = "q", .uid = "q"});
  EXPECT_EQ(Used("root"), Usage(0, 0));
}

// Q02: what is reserved is what is asked for less what members have, whatever made it so.
TEST_F(SharesTest, WhatIsKeptIsWhatMembersLack) {
  PutQueue("q", 3000);
  PutGroup("q", 2000);
  EXPECT_EQ(Used("q"), Usage(0, 0)) << "it is Pending";
  ASSERT_FALSE(state_.ShortFor(G()).has_value());
  state_.LetIn(G());
  EXPECT_EQ(Used("q"), Usage(0, 2000));
  PutPod("a", "n1");
  EXPECT_EQ(Used("q"), Usage(1000, 2000));
  PutGroup("q", 2000, GroupPhase::kInqueue);
  EXPECT_EQ(Used("q"), Usage(1000, 2000)) << "its object says it now";
  PutPod("a", "n1", /*terminating=*/true);
  EXPECT_EQ(Used("q"), Usage(1000, 2000));
  Apply(PodRemove{.uid = "a"});
  EXPECT_EQ(Used("q"), Usage(0, 2000));
  PutPod("b", "n1");
  PutPod("c", "n1");
  EXPECT_EQ(Used("q"), Usage(2000, 2000)) << "it runs";
  Apply(PodRemove{.uid = "c"});
  EXPECT_EQ(Used("q"), Usage(1000, 2000)) << "its object says Inqueue still";
  PutGroup("q", 2000, GroupPhase::kRunning);
  EXPECT_EQ(Used("q"), Usage(1000, 1000));
}

// A restart rebuilds what is kept from the object alone.
TEST_F(SharesTest, WhatIsKeptFollowsFromTheObject) {
  PutQueue("q", 3000);
  PutGroup("q", 2000, GroupPhase::kInqueue);
  EXPECT_EQ(Used("q"), Usage(0, 2000));
  PutGroup("q", 2000, GroupPhase::kCompleted);
  EXPECT_EQ(Used("q"), Usage(0, 0)) << "P13: a ghost holds nothing";
}

TEST_F(SharesTest, WhatIsShortIsTheLevelThatLeavesLeast) {
  PutQueue("above", 1500);
  PutQueue("q", 3000, "above");
  PutGroup("q", 2000);
  PutPod("a", "");
  using Short = State::QuotaShort;
  const auto queue = [&](const char* name) { return state_.FindQueue(QueueKind::kQueue, name); };
  EXPECT_EQ(state_.ShortFor(G()),
            (Short{.resource = kCpu, .deficit = 500, .queue = queue("above"), .never = true}));
  EXPECT_EQ(state_.ShortFor(state_.FindPod("a")), std::nullopt);
  PutQueue("above", 9000);
  PutGroup("q", 2500, GroupPhase::kInqueue, "other");
  EXPECT_EQ(state_.ShortFor(G()),
            (Short{.resource = kCpu, .deficit = 1500, .queue = queue("q"), .never = false}));
  EXPECT_EQ(state_.ShortFor(state_.FindPod("a")),
            (Short{.resource = kCpu, .deficit = 500, .queue = queue("q"), .never = false}));
  PutQueue("q", 10000, "above");
  state_.LetIn(G());
  EXPECT_EQ(state_.ShortFor(state_.FindPod("a")), std::nullopt) << "what is kept is its own";
}

TEST_F(SharesTest, BarsAreToldApart) {
  PutGroup("q", 0);
  EXPECT_EQ(state_.BarOf(G()), GroupBar::kQueueMissing);
  PutQueue("q", 1000, "above");
  EXPECT_EQ(state_.BarOf(G()), GroupBar::kParentMissing);
  PutQueue("above", 1000, "root", /*closed=*/true);
  EXPECT_EQ(state_.BarOf(G()), GroupBar::kQueueClosed);
  PutQueue("above", 1000);
  EXPECT_EQ(state_.BarOf(G()), GroupBar::kNone);
  PutQueue("above", 1000, "q");
  EXPECT_EQ(state_.BarOf(G()), GroupBar::kQueueCycle);
  PutGroup("default", 0);
  EXPECT_EQ(state_.BarOf(G()), GroupBar::kNone) << "the rest of the cluster goes on";
}

}  // namespace
}  // namespace berth::model
