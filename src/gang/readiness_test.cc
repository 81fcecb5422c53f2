// Goal: what a group needs and whether it is there follows from facts alone.
// Method: facts by hand; nodes are asked through a function of the test.
#include "gang/readiness.h"

#include <gtest/gtest.h>

#include "model/test_cluster.h"

namespace berth::gang {
namespace {

using model::GroupId;
using model::PodUpsert;

class Readiness : public ::testing::Test {
 protected:
  model::NameId Role(const char* name) { return c_.state.vocabulary().names.Intern(name); }
  GroupId Group(int32_t min, std::vector<model::RoleMinimum> roles = {}) {
    c_.state.Apply(model::GroupUpsert{.uid = "g1",
                                      .key = "default/g",
                                      .min_of_roles = std::move(roles),
                                      .min_member = min,
                                      .creation = Instant::FromSeconds(100),
                                      .phase = phase_});
    return c_.state.FindGroup("g1");
  }
  PodUpsert Member(int i, const char* role = "") {
    PodUpsert pod = c_.Pod("u" + std::to_string(i), "default/p" + std::to_string(i));
    pod.group = "default/g";
    if (*role != 0) pod.role = Role(role);
    return pod;
  }
  void Bound(PodUpsert pod) {
    pod.node = "n1";
    c_.state.Apply(pod);
  }

  model::Cluster c_;
  model::GroupPhase phase_ = model::GroupPhase::kInqueue;
};

TEST_F(Readiness, WhoIsThereIsNeededNoMore) {
  c_.Node("n1", "un1");
  const GroupId g = Group(3);
  Bound(Member(1));
  c_.state.Apply(Member(2));
  EXPECT_EQ(NeedOf(c_.state, g).needed, 2u);
  EXPECT_EQ(NeedOf(c_.state, g).waiting, 1u);
  const auto lacks = Lacks(NeedOf(c_.state, g));
  ASSERT_TRUE(lacks.has_value());
  EXPECT_FALSE(lacks->role.valid());
  EXPECT_EQ(lacks->needed, 2u);
  c_.state.Apply(Member(3));
  EXPECT_FALSE(Lacks(NeedOf(c_.state, g)).has_value());
  EXPECT_TRUE(IsPartly(c_.state, g));
}

TEST_F(Readiness, RolesAreCountedWhereTheGroupNeedsAsMany) {
  const model::RoleMinimum master{.role = Role("master"), .count = 1};
  const model::RoleMinimum worker{.role = Role("worker"), .count = 2};
  GroupId g = Group(3, {master, worker});
  for (int i = 1; i <= 3; ++i) c_.state.Apply(Member(i, "worker"));
  const auto lacks = Lacks(NeedOf(c_.state, g));
  ASSERT_TRUE(lacks.has_value());
  EXPECT_EQ(lacks->role, master.role);
  // Fewer in all than its roles together: they say nothing.
  g = Group(2, {master, worker});
  EXPECT_FALSE(Lacks(NeedOf(c_.state, g)).has_value());
}

// P13 of docs/REGRESSIONS.md.
TEST_F(Readiness, WhoIsCompletedNeedsNobodyUntilSomebodyComes) {
  phase_ = model::GroupPhase::kCompleted;
  const GroupId g = Group(2);
  EXPECT_EQ(NeedOf(c_.state, g).needed, 0u);
  c_.state.Apply(Member(1));
  EXPECT_EQ(NeedOf(c_.state, g).needed, 2u);
}

TEST_F(Readiness, MembersThatRanBeforeItCameAreAnOlderOnes) {
  c_.Node("n1", "un1");
  const GroupId g = Group(2);
  PodUpsert pod = Member(1);
  pod.start = Instant::FromSeconds(101);
  Bound(pod);
  EXPECT_FALSE(RanBefore(c_.state, g));
  pod = Member(2);
  pod.start = Instant::FromSeconds(99);
  Bound(pod);
  EXPECT_TRUE(RanBefore(c_.state, g));
}

// What could not be had at once is never said of what could: of unlike members the least counts.
TEST_F(Readiness, SaysTheLeastThatItsMembersAskForAtOnce) {
  const auto asks = [&](int i, int64_t cpu, const char* role) {
    PodUpsert pod = Member(i, role);
    const std::vector<model::ResourceAmount> amounts = {{model::kCpu, cpu}, {model::kPods, 1}};
    pod.charge = c_.state.vocabulary().bundles.Intern(amounts);
    c_.state.Apply(pod);
  };
  const auto least = [&](GroupId g) { return LeastOf(c_.state, g, NeedOf(c_.state, g)); };
  using Amounts = std::vector<model::ResourceAmount>;
  GroupId g = Group(3);
  asks(1, 5000, "master");
  for (int i = 2; i <= 4; ++i) asks(i, i * 1000, "worker");
  EXPECT_EQ(least(g), (Amounts{{model::kCpu, 9000}, {model::kPods, 3}}));
  g = Group(3, {{.role = Role("master"), .count = 1}});
  EXPECT_EQ(least(g), (Amounts{{model::kCpu, 10000}, {model::kPods, 3}}));
}

TEST_F(Readiness, SaysHowManyWouldFitOnNodesThatAreEmpty) {
  c_.Node("n1", "un1");
  c_.Node("n2", "un2");
  const GroupId g = Group(4);
  for (int i = 1; i <= 4; ++i) c_.state.Apply(Member(i));
  model::Amount on_each = 1;
  const EmptyPlaces places = [&](const Alike&, model::NodeId) { return on_each; };
  EXPECT_TRUE(IsFutile(c_.state, g, places));
  EXPECT_EQ(MostOf(c_.state, g, places), 2u);
  on_each = 2;
  EXPECT_FALSE(IsFutile(c_.state, g, places));
  EXPECT_FALSE(MostOf(c_.state, g, places).has_value());
  // Of unlike members it is not said.
  on_each = 1;
  PodUpsert other = Member(4);
  other.priority = 7;
  c_.state.Apply(other);
  EXPECT_FALSE(MostOf(c_.state, g, places).has_value());
  EXPECT_TRUE(IsFutile(c_.state, g, [](const Alike& of, model::NodeId) { return of.priority; }));
}

}  // namespace
}  // namespace berth::gang
