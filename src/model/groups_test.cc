// Goal: groups are their uids, members are who names them, and the phase is a function of both.
// Method: facts by hand; the table of phases over all counts of up to three.
#include "model/groups.h"

#include <gtest/gtest.h>

#include "model/audit.h"
#include "model/test_cluster.h"

namespace berth::model {
namespace {

GroupUpsert MakeGroup(const std::string& uid, int32_t min, int64_t created = 0) {
  return {
      .uid = uid, .key = "default/g", .min_member = min, .creation = Instant::FromSeconds(created)};
}

uint32_t Count(const Cluster& c, MemberKind kind) {
  const GroupId g = c.state.FindGroup("g1");
  return c.state.groups().CountsOf(c.state.groups().at(g).key)[kind];
}

TEST(GroupTable, MembersAreCountedAsTheyAreObserved) {
  Cluster c;
  c.Node("n1", "un1");
  PodUpsert pod = c.Pod("u1");
  pod.group = "default/g";
  c.state.Apply(pod);
  c.state.Apply(MakeGroup("g1", 2));
  EXPECT_EQ(Count(c, MemberKind::kWaiting), 1u);
  pod.gated = true;
  c.state.Apply(pod);
  EXPECT_EQ(Count(c, MemberKind::kApart), 1u);
  pod.gated = false;
  c.state.Apply(pod);
  c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
  EXPECT_EQ(Count(c, MemberKind::kDecided), 1u);
  pod.node = "n1";
  c.state.Apply(pod);
  EXPECT_EQ(Count(c, MemberKind::kBound), 1u);
  pod.terminating = true;
  c.state.Apply(pod);
  EXPECT_EQ(Count(c, MemberKind::kLeaving), 1u);
  pod.terminal = pod.succeeded = true;
  c.state.Apply(pod);
  EXPECT_EQ(Count(c, MemberKind::kSucceeded), 1u);
  EXPECT_TRUE(Audit(c.state).empty());
  c.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_EQ(Count(c, MemberKind::kSucceeded), 0u);
  EXPECT_TRUE(Audit(c.state).empty());
}

TEST(GroupTable, APodMayChangeItsGroup) {
  Cluster c;
  c.state.Apply(MakeGroup("g1", 2));
  for (const char* uid : {"u1", "u2", "u3"}) {
    PodUpsert pod = c.Pod(uid, std::string("default/") + uid);
    pod.group = "default/g";
    c.state.Apply(pod);
  }
  PodUpsert moved = c.Pod("u2", "default/u2");
  moved.group = "default/other";
  c.state.Apply(moved);
  EXPECT_EQ(Count(c, MemberKind::kWaiting), 2u);
  EXPECT_TRUE(Audit(c.state).empty());
  moved.group.clear();
  c.state.Apply(moved);
  EXPECT_TRUE(Audit(c.state).empty());
}

// P01: removal of the old object of a name does not touch the one that bears it now; P02, P03: what
// is known is by uid.
TEST(GroupTable, AGroupIsItsUid) {
  Cluster c;
  PodUpsert pod = c.Pod("u1");
  pod.group = "default/g";
  c.state.Apply(pod);
  c.state.Apply(MakeGroup("old", 3, 1));
  c.state.Apply(MakeGroup("g1", 2, 5));
  EXPECT_FALSE(c.state.FindGroup("old").valid());
  c.state.Apply(GroupRemove{.uid = "old"});
  EXPECT_TRUE(c.state.FindGroup("g1").valid());
  EXPECT_EQ(Count(c, MemberKind::kWaiting), 1u);
  // A replay of what is long gone.
  c.state.Apply(MakeGroup("old", 3, 1));
  EXPECT_FALSE(c.state.FindGroup("old").valid());
  EXPECT_EQ(c.state.GroupOf(c.state.FindPod("u1")), c.state.FindGroup("g1"));
  c.state.Apply(GroupRemove{.uid = "g1"});
  EXPECT_FALSE(c.state.GroupOf(c.state.FindPod("u1")).valid());
  EXPECT_TRUE(Audit(c.state).empty());
}

// What a missed fact of a group would show as.
TEST(AuditTest, ComparesGroupsWithTheirObjects) {
  const auto with = [](int32_t min, GroupPhase phase, std::optional<int32_t> priority) {
    Cluster c;
    GroupUpsert group = MakeGroup("g1", min, 1);
    group.phase = phase;
    group.priority = priority;
    c.state.Apply(group);
    return c;
  };
  const Cluster live = with(2, GroupPhase::kInqueue, 7);
  EXPECT_TRUE(AuditAgainst(live.state, with(2, GroupPhase::kInqueue, 7).state).empty());
  for (const Cluster& other : {with(3, GroupPhase::kInqueue, 7), with(2, GroupPhase::kRunning, 7),
                               with(2, GroupPhase::kInqueue, std::nullopt), Cluster()}) {
    EXPECT_EQ(AuditAgainst(live.state, other.state).size(), 1u);
    EXPECT_EQ(AuditAgainst(other.state, live.state).size(), 1u);
  }
}

TEST(Trial, IsKeptWholeOrUndone) {
  Cluster c;
  c.Node("n1", "un1");
  for (const char* uid : {"u1", "u2"}) c.state.Apply(c.Pod(uid, std::string("default/") + uid));
  const NodeId n1 = c.state.FindNode("n1");
  const auto place = [&](State::Trial& trial) {
    for (const char* uid : {"u1", "u2"})
      trial.Place({.pod = c.state.FindPod(uid), .node = n1, .devices = {}});
  };
  {
    State::Trial trial(c.state);
    place(trial);
    EXPECT_EQ(c.Free("n1"), 1000);
  }
  EXPECT_EQ(c.Free("n1"), 2000);
  EXPECT_EQ(c.state.pods().at(c.state.FindPod("u1")).write, WriteStage::kNone);
  EXPECT_TRUE(Audit(c.state).empty());
  // What was derived meanwhile is derived anew, and nobody is woken by it.
  EXPECT_EQ(c.state.touches().at(c.state.touches().end() - 1),
            (Touch{.node = n1, .kinds = kTouchTried}));
  State::Trial trial(c.state);
  place(trial);
  trial.Keep();
  EXPECT_EQ(c.Free("n1"), 1000);
  EXPECT_EQ(c.state.pods().at(c.state.FindPod("u2")).write, WriteStage::kInFlight);
  EXPECT_TRUE(Audit(c.state).empty());
}

// P12, P13, P14, P16, P24.
TEST(GroupPhase, IsAFunctionOfWhatItSaysAndItsMembers) {
  const auto phase = [](GroupPhase before, int32_t min, MemberCounts counts, bool let_in = false) {
    Group group;
    group.phase = before;
    group.let_in = let_in;
    group.min_member = min;
    return PhaseOf(group, counts);
  };
  using enum MemberKind;
  const auto of = [](std::initializer_list<std::pair<MemberKind, uint32_t>> members) {
    MemberCounts counts;
    for (const auto& [kind, count] : members) counts.of[static_cast<size_t>(kind)] = count;
    return counts;
  };
  EXPECT_EQ(phase(GroupPhase::kPending, 2, of({{kWaiting, 2}})), GroupPhase::kPending);
  EXPECT_EQ(phase(GroupPhase::kPending, 2, of({{kWaiting, 2}}), true), GroupPhase::kInqueue);
  EXPECT_EQ(phase(GroupPhase::kInqueue, 2, of({{kWaiting, 2}})), GroupPhase::kInqueue);
  // Decided is not observed (P16).
  EXPECT_EQ(phase(GroupPhase::kInqueue, 2, of({{kDecided, 2}})), GroupPhase::kInqueue);
  EXPECT_EQ(phase(GroupPhase::kInqueue, 2, of({{kBound, 2}})), GroupPhase::kRunning);
  // Members that leave still count (P12).
  EXPECT_EQ(phase(GroupPhase::kRunning, 2, of({{kLeaving, 2}})), GroupPhase::kRunning);
  EXPECT_EQ(phase(GroupPhase::kRunning, 2, of({{kBound, 1}})), GroupPhase::kUnknown);
  EXPECT_EQ(phase(GroupPhase::kUnknown, 2, of({})), GroupPhase::kUnknown);
  EXPECT_EQ(phase(GroupPhase::kUnknown, 2, of({{kBound, 2}})), GroupPhase::kRunning);
  EXPECT_EQ(phase(GroupPhase::kRunning, 2, of({{kSucceeded, 2}})), GroupPhase::kCompleted);
  // A member that waits is not done (P14).
  EXPECT_EQ(phase(GroupPhase::kRunning, 2, of({{kSucceeded, 2}, {kWaiting, 1}})),
            GroupPhase::kRunning);
  // Completed is final, though its members go (P13), until one comes.
  EXPECT_EQ(phase(GroupPhase::kCompleted, 2, of({})), GroupPhase::kCompleted);
  EXPECT_EQ(phase(GroupPhase::kCompleted, 2, of({{kWaiting, 1}})), GroupPhase::kPending);
  EXPECT_EQ(phase(GroupPhase::kCompleted, 2, of({{kWaiting, 1}}), true), GroupPhase::kInqueue);
  EXPECT_EQ(phase(GroupPhase::kPending, 0, of({}), true), GroupPhase::kInqueue);
  // Who has as many on nodes as it needs runs, whether its queue let it in or not.
  EXPECT_EQ(phase(GroupPhase::kPending, 2, of({{kBound, 2}})), GroupPhase::kRunning);
}

}  // namespace
}  // namespace berth::model
