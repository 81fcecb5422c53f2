// Goal: members are charged to their groups' queues, and what a group asked for is kept there, as a
// function of what was observed and decided, and no more is promised than there is. Method: small
// histories, and random ones of groups that are let in and placed as far as the queue has room, and
// of members that come and go; the audit, which computes both anew, after each step.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "model/audit.h"
#include "model/state.h"

namespace berth::model {
namespace {

class SharesTest : public ::testing::Test {
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
  // What is charged to the queue itself: in use, and once all that leave are gone.
  [[nodiscard]] std::pair<Amount, Amount> Used(const std::string& queue) const {
    const QueueId q = state_.FindQueue(QueueKind::kQueue, queue);
    const uint32_t account = state_.queues().AccountOf(q, NameId{});
    const QuotaTree& tree = state_.ledger().quota();
    return {tree.used(QuotaView::kPhysical, kCpu, account),
            tree.used(QuotaView::kFuture, kCpu, account)};
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
  EXPECT_EQ(Used("q"), Usage(2000, 1000)) << "until it is gone";
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
  EXPECT_EQ(Used("q"), Usage(1000, 2000)) << "who leaves it has no more";
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

// Whoever has what now, what could never be is told of the level that gives too little.
TEST_F(SharesTest, WhatCouldNeverBeIsOfTheLevelThatGivesLeast) {
  PutQueue("above", 5000);
  PutQueue("q", 4000, "above");
  PutQueue("other", 5000, "above");
  PutGroup("other", 4000, GroupPhase::kInqueue, "another");
  PutGroup("q", 0);
  using Short = State::QuotaShort;
  const auto never = [&](Amount cpu) {
    const ResourceAmount need{kCpu, cpu};
    return state_.NeverFor(G(), std::span(&need, 1));
  };
  EXPECT_EQ(never(4000), std::nullopt) << "the other may end";
  EXPECT_EQ(never(6000), (Short{.resource = kCpu,
                                .deficit = 5000,
                                .queue = state_.FindQueue(QueueKind::kQueue, "q"),
                                .never = true}));
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

// ---- Whom a change of a queue concerns -------------------------------------------------------

// Queues that name each other as parents in every way, with a group in each.
class QueuesWorld {
 public:
  QueuesWorld() {
    for (const char* name : kNames)
      state_.Apply(GroupUpsert{.uid = name, .key = name, .min_member = 1, .queue = name});
  }
  void Step() {
    const std::string name = kNames[static_cast<size_t>(Draw(0, std::ssize(kNames)))];
    const std::vector<GroupBar> bars = Bars();
    const std::map<std::string, std::string> before = parents_;
    const bool there = parents_.contains(name);
    if (Draw(0, 4) == 0) {
      parents_.erase(name);
      state_.Apply(QueueRemove{.kind = QueueKind::kQueue, .name = name, .uid = name});
    } else {
      QueueUpsert facts{.kind = QueueKind::kQueue, .name = name, .uid = name};
      facts.parent = name == "root" ? "" : kNames[static_cast<size_t>(Draw(0, std::ssize(kNames)))];
      facts.stopped = Draw(0, 3) == 0;
      facts.weight = ++changes_;
      parents_[name] = facts.parent;
      state_.Apply(facts);
    }
    RC_ASSERT(Audit(state_) == std::vector<std::string>());
    const std::vector<GroupBar> bars_after = Bars();
    for (size_t i = 0; i < std::size(kNames); ++i) {
      const GroupId group = state_.FindGroup(kNames[i]);
      const auto told = std::ranges::count(state_.changed_groups(), group);
      const bool below = IsBelow(before, kNames[i], name) || IsBelow(parents_, kNames[i], name) ||
                         (name == "root" && kNames[i] == std::string("default"));
      RC_ASSERT(told == (below && (there || parents_.contains(name)) ? 1 : 0));
      RC_ASSERT(told == 1 || bars[i] == bars_after[i]);
    }
  }

 private:
  static constexpr const char* kNames[] = {"root", "default", "a", "b", "c", "d"};
  static int Draw(int64_t low, int64_t high) {
    return static_cast<int>(*rc::gen::resize(100, rc::gen::inRange<int64_t>(low, high)));
  }
  [[nodiscard]] std::vector<GroupBar> Bars() const {
    std::vector<GroupBar> bars;
    for (const char* name : kNames) bars.push_back(state_.BarOf(state_.FindGroup(name)));
    return bars;
  }
  // It is the other, or names it as a parent, or one that does.
  static bool IsBelow(const std::map<std::string, std::string>& parents, std::string name,
                      const std::string& other) {
    for (size_t i = 0; i <= std::size(kNames); ++i) {
      if (name == other) return true;
      const auto at = parents.find(name);
      if (at == parents.end()) return false;
      name = at->second;
    }
    return false;
  }

  State state_;
  std::map<std::string, std::string> parents_;  // Of those that are there.
  int32_t changes_ = 0;
};

RC_GTEST_PROP(Shares, AChangeOfAQueueIsToldToThoseInItAndBelowIt, ()) {
  QueuesWorld world;
  for (int i = 0; i < 30; ++i) world.Step();
}

// ---- Nothing is promised twice ---------------------------------------------------------------

constexpr Amount kQueueCpu = 8000;

// A queue that stays as it is, on a node that is large enough, and what becomes of its groups.
class PromisesWorld {
 public:
  PromisesWorld() {
    state_.Apply(NodeUpsert{.name = "n", .uid = "n", .allocatable = {{kCpu, 100'000}}});
    state_.Apply(
        QueueUpsert{.kind = QueueKind::kQueue,
                    .name = "q",
                    .uid = "q",
                    .parent = "root",
                    .quotas = {{.flavor = {},
                                .resource = kCpu,
                                .quota = {.borrowing_limit = kQueueCpu, .lending_limit = 0}}}});
    for (const char* name : {"g0", "g1", "g2"}) {
      groups_[name] = {.min_member = Draw(1, 4), .kept = Amount{Draw(0, 9)} * 1000};
      Tell(name);
    }
  }

  void Step() {
    const std::string group = fmt::format("g{}", Draw(0, 3));
    switch (Draw(0, 12)) {
      case 0:
      case 1:
        return LetIn(group);
      case 2:
        return Write(group);
      case 3:
      case 4:
        return AddMember(group);
      case 5:
      case 6:
      case 7:
        return Place();
      case 8:
        return BeginDeletion();
      case 9:
        return Release();
      case 10:
        return End();
      default:
        return Remove();
    }
  }

  void Check() const {
    RC_ASSERT(Audit(state_) == std::vector<std::string>());
    const uint32_t account =
        state_.queues().AccountOf(state_.FindQueue(QueueKind::kQueue, "q"), NameId{});
    const QuotaTree& tree = state_.ledger().quota();
    RC_ASSERT(tree.LeftFor(QuotaView::kPhysical, kCpu, account).amount >= 0);
    RC_ASSERT(tree.LeftFor(QuotaView::kFuture, kCpu, account).amount >= 0);
  }

 private:
  struct MadeGroup {
    int32_t min_member = 0;
    Amount kept = 0;
    GroupPhase phase = GroupPhase::kPending;  // That its object says.
  };
  struct Member {
    std::string group;
    Amount cpu = 0;
    bool bound = false;
    bool terminating = false;
    bool ended = false;
  };

  // Whatever size the case is to have.
  static int Draw(int64_t low, int64_t high) {
    return static_cast<int>(*rc::gen::resize(100, rc::gen::inRange<int64_t>(low, high)));
  }
  [[nodiscard]] BundleId Cpu(Amount milli) {
    const ResourceAmount amount{kCpu, milli};
    return milli == 0 ? BundleId{} : state_.vocabulary().bundles.Intern(std::span(&amount, 1));
  }
  void Tell(const std::string& name) {
    const MadeGroup& group = groups_.at(name);
    state_.Apply(GroupUpsert{.uid = name,
                             .key = name,
                             .min_member = group.min_member,
                             .phase = group.phase,
                             .queue = "q",
                             .min_resources = Cpu(group.kept)});
  }
  [[nodiscard]] GroupPhase PhaseNow(GroupId id) const {
    const Group& row = state_.groups().at(id);
    return PhaseOf(row, state_.groups().CountsOf(row.key));
  }
  void LetIn(const std::string& name) {
    const GroupId id = state_.FindGroup(name);
    if (PhaseNow(id) == GroupPhase::kPending && !state_.ShortFor(id)) state_.LetIn(id);
  }
  // Its object says what it was known to be at that moment.
  void Write(const std::string& name) {
    groups_.at(name).phase = PhaseNow(state_.FindGroup(name));
    Tell(name);
  }
  void AddMember(const std::string& group) {
    const std::string name = fmt::format("p{}", ++made_);
    members_[name] = {.group = group, .cpu = Amount{1000} << Draw(0, 3)};
    TellMember(name);
  }
  void TellMember(const std::string& name) {
    const Member& member = members_.at(name);
    ClassSpec spec;
    spec.requests = Cpu(member.cpu);
    state_.Apply(PodUpsert{.uid = name,
                           .key = name,
                           .class_id = state_.vocabulary().classes.Intern(spec),
                           .node = member.bound ? "n" : "",
                           .group = member.group,
                           .terminating = member.terminating,
                           .terminal = member.ended,
                           .succeeded = member.ended});
  }
  // Some member that is waiting, or running: null when there is none.
  [[nodiscard]] const std::string* Some(bool bound) const {
    std::vector<const std::string*> names;
    for (const auto& [name, member] : members_) {
      if (member.bound == bound && !member.terminating && !member.ended) names.push_back(&name);
    }
    return names.empty() ? nullptr : names[static_cast<size_t>(Draw(0, std::ssize(names)))];
  }
  void Place() {
    const std::string* name = Some(false);
    if (name == nullptr) return;
    const PodId pod = state_.FindPod(*name);
    const GroupPhase phase = PhaseNow(state_.GroupOf(pod));
    if (phase == GroupPhase::kPending || state_.ShortFor(pod)) return;
    state_.Assume(pod, state_.FindNode("n"), {});
    if (Draw(0, 5) == 0) {
      state_.Apply(BindOutcome{.uid = *name, .outcome = WriteOutcome::kGone});
      state_.Apply(PodRemove{.uid = *name});
      members_.erase(*name);
      return;
    }
    state_.Apply(BindOutcome{.uid = *name, .outcome = WriteOutcome::kDone});
    members_.at(*name).bound = true;
    TellMember(*name);
  }
  void BeginDeletion() {
    const std::string* name = Some(true);
    if (name == nullptr) return;
    members_.at(*name).terminating = true;
    TellMember(*name);
  }
  void Release() {
    const std::string* name = Some(true);
    if (name == nullptr || state_.pods().at(state_.FindPod(*name)).released) return;
    state_.Release(state_.FindPod(*name));
  }
  void End() {
    const std::string* name = Some(true);
    if (name == nullptr) return;
    members_.at(*name).ended = true;
    TellMember(*name);
  }
  void Remove() {
    if (members_.empty()) return;
    const auto at = std::next(members_.begin(), Draw(0, std::ssize(members_)));
    state_.Apply(PodRemove{.uid = at->first});
    members_.erase(at);
  }

  State state_;
  std::map<std::string, MadeGroup> groups_;
  std::map<std::string, Member> members_;
  int made_ = 0;
};

RC_GTEST_PROP(Shares, NothingIsPromisedTwice, ()) {
  PromisesWorld world;
  for (int i = 0; i < 100; ++i) {
    world.Step();
    world.Check();
  }
}

}  // namespace
}  // namespace berth::model
