// Goal: a Job that is queued and a gang at once is one owner: it gets quota and places with which it
// can start, or waits. Method: plans of small worlds, printed.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cycle/test_team.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

TEST(QueuedGangsTest, AnOwnerThatIsGangAndQueuedIsOneOwner) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Put(TestNode{.name = "n2", .cpu = 1000});
  const WorkloadSpec low{.name = "low", .count = 2, .created = 1};
  world.Starts(low);
  for (const auto& [name, node] : {std::pair("low-0", "n1"), std::pair("low-1", "n2")})
    world.Bound({.name = name, .cpu = 1000}, "low", node);
  const WorkloadSpec high{.name = "high", .count = 2, .priority = 5, .created = 2};
  world.Put(high);
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
  world.IsTold(low);
  world.Gone("low-0");
  world.Gone("low-1");
  world.Put(low);
  EXPECT_EQ(world.Cycle(), "default/high: q spot 2000 n1 n2; default/low lacks 2000; ");
  world.ComesTrue(high);
  // Its pods are a gang, and a stranger of higher priority would like their room.
  model::GroupUpsert group =
      FactsOf(world.engine.vocabulary(), TestGroup{.name = "g", .min_member = 2});
  world.engine.Apply(group);
  world.Put(TestPod{.name = "stranger", .cpu = 1000, .priority = 3});
  world.Put(TestPod{.name = "high-0", .cpu = 1000, .group = "g"}, "high");
  EXPECT_EQ(world.Cycle(), "") << "one member waits for the other, both have their places";
  world.Put(TestPod{.name = "high-1", .cpu = 1000, .group = "g"}, "high");
  EXPECT_EQ(world.Cycle(), "default/high-0 on n1; default/high-1 on n2; ");
  uint32_t claims = 0;
  for (model::ClaimId id = world.state().ledger().first_of_owner(world.RowOf("high").uid);
       id.valid(); id = world.state().ledger().claim(id).next_of_owner) {
    ++claims;
  }
  EXPECT_EQ(claims, 1u) << "its quota: the nodes are its pods' now";
}

// Goal: quota and nodes are for who may start: whose pods are of a group that could not start with
// them waits in nobody's way, evicts nobody, is told, and is looked at once the group could. Method:
// change group, its queue and the workload.
TEST(QueuedGangsTest, AGangThatCouldNotStartGetsNoQuota) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 4000});
  const WorkloadSpec low{.name = "low", .count = 1, .created = 1};
  world.Starts(low);
  world.Bound({.name = "low-0", .cpu = 1000}, "low", "n1");
  const auto put = [&](uint32_t count) {
    model::WorkloadUpsert facts =
        world.FactsOf(WorkloadSpec{.name = "high", .count = count, .priority = 5, .created = 2});
    facts.slots[0].gang = world.engine.vocabulary().names.Intern("default/g");
    world.engine.Apply(facts);
  };
  put(2);
  EXPECT_EQ(world.Cycle(), "default/high has no group; ");
  world.Put(WorkloadSpec{.name = "next", .created = 3});
  EXPECT_EQ(world.Cycle(), "default/next: q spot 1000 n1; ") << "it stands in nobody's way";
  world.Remove("next");
  const auto group = [&](int32_t minimum, const std::string& queue = "default") {
    model::GroupUpsert facts =
        FactsOf(world.engine.vocabulary(), TestGroup{.name = "g", .min_member = minimum});
    facts.queue = queue;
    world.engine.Apply(facts);
  };
  group(3);
  EXPECT_EQ(world.Cycle(), "default/high is 2 of a group that needs 3; ");
  group(2, "nowhere");
  EXPECT_EQ(world.Cycle(), "default/high has a group that is kept out; ");
  group(2);
  const std::string evicts =
      "evict default/low for default/high; default/high waits for 1 to leave; ";
  EXPECT_EQ(world.Cycle(), evicts);
  // What it was promised ends when it could not start any more, and the victim stays.
  group(3);
  EXPECT_EQ(world.Cycle(), "default/high is 2 of a group that needs 3; ");
  EXPECT_FALSE(world.RowOf("low").claimant.valid());
  // A member of another owner counts.
  world.Put(TestPod{.name = "leader", .cpu = 1000, .group = "g"}, "other");
  EXPECT_EQ(world.Cycle(), evicts);
  world.Gone("leader");
  EXPECT_EQ(world.Cycle(), "default/high is 2 of a group that needs 3; ");
  group(2);
  EXPECT_EQ(world.Cycle(), evicts);
  world.engine.Apply(model::GroupRemove{.uid = "uid-g"});
  EXPECT_EQ(world.Cycle(), "default/high has no group; ");
}

// A group that could start when its pods got quota, and can't any more before any of them did: they
// give it back, and wait in nobody's way. Who started keeps it.
TEST(QueuedGangsTest, AGangThatCannotStartAnyMoreGivesItsQuotaBack) {
  for (const bool forgotten : {false, true}) {
    JointWorld world({.joint_placement = true,
                      .second_pass_delay = {},
                      .faults = {.unready_keeps_quota = forgotten}});
    world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
    world.Put(TestNode{.name = "n1", .cpu = 4000});
    const auto group = [&](int32_t minimum) {
      world.engine.Apply(
          FactsOf(world.engine.vocabulary(), TestGroup{.name = "g", .min_member = minimum}));
    };
    const auto facts = [&](bool reserved) {
      model::WorkloadUpsert o =
          world.FactsOf(WorkloadSpec{.name = "train", .count = 2, .created = 1});
      o.slots[0].gang = world.engine.vocabulary().names.Intern("default/g");
      if (reserved) {
        const model::Workload& row = world.RowOf("train");
        o.status.reserved = o.status.admitted = true;
        o.status.reserved_at = world.now;
        o.reserved = row.decided == model::Reservation{} ? row.reserved : row.decided;
      }
      return o;
    };
    group(2);
    world.engine.Apply(facts(/*reserved=*/false));
    EXPECT_EQ(world.Cycle(), "default/train: q spot 2000 n1 n1; ");
    world.engine.Apply(facts(/*reserved=*/true));
    world.engine.Apply(model::ReservationOutcome{
        .uid = "u-train", .outcome = model::WriteOutcome::kDone, .at = world.now});
    world.Put(TestPod{.name = "train-0", .cpu = 1000, .group = "g"}, "train");
    EXPECT_EQ(world.Cycle(), "") << "the other is to come";
    group(3);
    EXPECT_EQ(world.Cycle(), forgotten ? "" : "default/train gives up; ");
  }
}

TEST(QueuedGangsTest, AGangThatStartedKeepsItsQuota) {
  JointWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
  world.Put(TestNode{.name = "n1", .cpu = 4000});
  const auto group = [&](int32_t minimum) {
    world.engine.Apply(
        FactsOf(world.engine.vocabulary(), TestGroup{.name = "g", .min_member = minimum}));
  };
  group(1);
  model::WorkloadUpsert o = world.FactsOf(WorkloadSpec{.name = "train", .count = 2, .created = 1});
  o.slots[0].gang = world.engine.vocabulary().names.Intern("default/g");
  world.engine.Apply(o);
  world.Cycle();
  o.reserved = world.RowOf("train").decided;
  o.status.reserved = o.status.admitted = true;
  world.engine.Apply(o);
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-train", .outcome = model::WriteOutcome::kDone, .at = world.now});
  world.Put(TestPod{.name = "train-0", .cpu = 1000, .group = "g"}, "train");
  EXPECT_EQ(world.Cycle(), "default/train-0 on n1; ");
  group(3);
  EXPECT_EQ(world.Cycle(), "");
}

// What others use of the queue of its group is not there for it: it waits until some is left, and
// gives its quota back where others took it first.
TEST(QueuedGangsTest, AGangWaitsForWhatIsLeftToItsGroupsQueue) {
  TeamWorld world({.joint_placement = true, .second_pass_delay = {}});
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(3000);
  world.PutGroup("h");
  world.Put(TestPod{.name = "other-0", .cpu = 1000, .node = "n1", .group = "h"}, "other");
  world.Put(TestPod{.name = "other-1", .cpu = 1000, .node = "n1", .group = "h"}, "other");
  const WorkloadSpec train = world.Gang({.name = "train", .count = 2, .created = 1});
  EXPECT_EQ(world.Cycle(), "default/train has a group that lacks 1000; ");
  world.Gone("other-0");
  EXPECT_EQ(world.Cycle(), "default/train: q spot 2000 n1 n1; ");
  world.ComesTrue(train);
  EXPECT_EQ(world.Cycle(), "");
  world.Put(TestPod{.name = "other-2", .cpu = 1000, .node = "n1", .group = "h"}, "other");
  EXPECT_EQ(world.Cycle(), "default/train gives up; ");
}

// Goal: a workload's pods are charged to the queue of their group from when it is admitted on: no two
// are promised the same room, and nobody takes what is kept for pods to come (F07). Method: two
// wait for a queue that has room for one of them, and a third is of a group without a workload.
TEST(QueuedGangsTest, TheRoomOfAGroupsQueueIsGivenOutOnce) {
  TeamWorld world({.joint_placement = true, .second_pass_delay = {}});
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
  world.Put(QueueSpec{.name = "r", .flavors = {{"spot", 9000}}});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(3000);
  const WorkloadSpec a = world.Gang({.name = "a", .count = 2, .created = 1});
  world.Gang({.name = "b", .queue = "r", .count = 2, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n1; ");
  EXPECT_LE(world.engine.wake_at(), world.now);
  EXPECT_EQ(world.Cycle(), "default/b has a group that lacks 1000; ");
  world.ComesTrue(a);
  EXPECT_EQ(world.Cycle(), "");
  world.PutGroup("c");
  world.Put(TestPod{.name = "c-0", .cpu = 1000, .created = 1, .group = "c"});
  world.Put(TestPod{.name = "c-1", .cpu = 1000, .created = 1, .group = "c"});
  EXPECT_EQ(world.Cycle(), "");
  world.Put(TestPod{.name = "a-0", .cpu = 1000, .created = 3, .group = "a"}, "a");
  world.Put(TestPod{.name = "a-1", .cpu = 1000, .created = 3, .group = "a"}, "a");
  EXPECT_EQ(world.Cycle(), "default/a-0 on n1; default/a-1 on n1; ");
  EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>{});
  world.Gone("c-0");
  world.Gone("c-1");
  world.Gone("a-0");
  world.Gone("a-1");
  world.Remove("a");
  EXPECT_EQ(world.Cycle(), "default/b: r spot 2000 n1 n1; ");
  EXPECT_EQ(model::Audit(world.state()), std::vector<std::string>{});
}

// All pods of a workload are admitted, so the queue of their group has to hold all of them.
TEST(QueuedGangsTest, MorePodsThanTheGroupNeedsAskForRoomToo) {
  TeamWorld world({.joint_placement = true, .second_pass_delay = {}});
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(4000);
  world.Gang({.name = "a", .count = 6, .created = 1});
  EXPECT_EQ(world.Cycle(), "default/a has a group that lacks 2000; ");
  world.Team(6000);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 6000 n1 n1 n1 n1 n1 n1; ");
}

// Goal: who may start with fewer pods asks the queue of its group for room for those that it gets,
// and for its quota again when as few as would do could have it. Method: a queue that has room for
// some of its pods; one round in which two ask; a group that needs fewer than before.
TEST(QueuedGangsTest, FewerPodsAskForLessRoom) {
  TeamWorld world(/*preemption=*/true);
  const auto put = [&](const WorkloadSpec& spec, uint32_t missing_max) {
    model::WorkloadUpsert facts = world.FactsOf(spec);
    facts.slots[0].missing_max = missing_max;
    world.engine.Apply(facts);
  };
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
  world.Put(QueueSpec{.name = "r", .flavors = {{"spot", 9000}}});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(1000);
  world.PutGroup("a", /*minimum=*/2);
  WorkloadSpec a{.name = "a", .count = 4, .created = 1, .gang = "a"};
  put(a, 3);
  EXPECT_EQ(world.Cycle(), "default/a has a group that lacks 1000; ") << "its group needs two";
  world.Team(3000);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 3000 n1 n1 n1; ");
  world.Remove("a");
  world.Team(5000);
  world.PutGroup("b", /*minimum=*/1);
  put(a, 3);
  put({.name = "b", .queue = "r", .count = 4, .created = 2, .gang = "b"}, 3);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 4000 n1 n1 n1 n1; default/b: r spot 1000 n1; ");
  world.Remove("a");
  world.Remove("b");
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
  world.PutGroup("a", /*minimum=*/3);
  put(a, 3);
  EXPECT_EQ(world.Cycle(), "default/a wants 4000 of 2000; ");
  world.PutGroup("a", /*minimum=*/2);
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000 n1 n1; ");
}

// Goal: what fewer pods are promised is room for so many. Method: one that may have some at once and
// evicts for them.
TEST(QueuedGangsTest, FewerPodsArePromisedTheRoomThatTheyAskFor) {
  TeamWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(2000);
  const WorkloadSpec low = world.Gang({.name = "low", .count = 2, .created = 1});
  EXPECT_EQ(world.Cycle(), "default/low: q spot 2000 n1 n1; ");
  world.ComesTrue(low);
  for (const std::string pod : {"low-0", "low-1"})
    world.Put(TestPod{.name = pod, .cpu = 1000, .node = "n1", .group = "low"}, "low");
  world.PutGroup("high", /*minimum=*/2);
  model::WorkloadUpsert facts =
      world.FactsOf({.name = "high", .count = 4, .priority = 5, .created = 2, .gang = "high"});
  facts.slots[0].missing_max = 2;
  world.engine.Apply(facts);
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
  EXPECT_EQ(world.Cycle(), "");
  world.IsTold(low);
  EXPECT_EQ(world.Cycle(), "");
  world.Gone("low-0");
  world.Gone("low-1");
  world.Put(low);
  EXPECT_EQ(world.Cycle(), "default/high: q spot 2000 n1 n1; default/low lacks 2000; ");
}

// Goal: who can't come back does not keep its quota. Method: a gang that ran, and none of whose pods
// runs any more; its queue is given less than it needs, or is used by others meanwhile.
TEST(QueuedGangsTest, AGangThatCanNeverComeBackGivesItsQuotaBack) {
  for (const bool never : {false, true}) {
    TeamWorld world({.joint_placement = true, .second_pass_delay = {}});
    world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
    for (const std::string node : {"n1", "n2"}) world.Put(TestNode{.name = node, .cpu = 1000});
    world.Team(3000);
    const WorkloadSpec low = world.Gang({.name = "low", .count = 2, .created = 1});
    EXPECT_EQ(world.Cycle(), "default/low: q spot 2000 n1 n2; ");
    world.ComesTrue(low);
    world.Put(TestPod{.name = "low-0", .cpu = 1000, .node = "n1", .group = "low"}, "low");
    world.Put(TestPod{.name = "low-1", .cpu = 1000, .node = "n2", .group = "low"}, "low");
    // More important pods take their nodes.
    for (const std::string n : {"1", "2"}) {
      world.Put(TestPod{.name = "high-" + n, .cpu = 1000, .priority = 9, .node = "n" + n});
      world.Gone(n == "1" ? "low-0" : "low-1");
    }
    EXPECT_EQ(world.Cycle(), "");
    if (!never) {
      // Others have their room, for now.
      world.Put(TestNode{.name = "n3", .cpu = 3000});
      world.PutGroup("other", /*minimum=*/1);
      world.Put(TestPod{.name = "other-0", .cpu = 3000, .node = "n3", .group = "other"}, "other");
    }
    world.Team(never ? 1000 : 3000);
    EXPECT_EQ(world.Cycle(), never ? "default/low gives up; " : "");
  }
}

// Goal: who may evict for its quota gets with it the room in the queue of its group that those have
// whom it evicts, and only for that. Method: a gang fills the queue of its group and the quota, or
// the queue alone; strangers fill it, who may not be evicted.
TEST(QueuedGangsTest, WhoseVictimsFillTheQueueOfItsGroupEvictsThem) {
  for (const int64_t quota : {2000, 9000}) {
    TeamWorld world(/*preemption=*/true);
    world.Put(QueueSpec{.name = "q", .flavors = {{"spot", quota}}, .preemption = kEvicts});
    world.Put(TestNode{.name = "n1", .cpu = 9000});
    world.Team(2000);
    const WorkloadSpec low = world.Gang({.name = "low", .count = 2, .created = 1});
    EXPECT_EQ(world.Cycle(), "default/low: q spot 2000 n1 n1; ");
    world.ComesTrue(low);
    for (const std::string pod : {"low-0", "low-1"})
      world.Put(TestPod{.name = pod, .cpu = 1000, .node = "n1", .group = "low"}, "low");
    const WorkloadSpec high = world.Gang({.name = "high", .count = 2, .priority = 5, .created = 2});
    EXPECT_EQ(world.Cycle(),
              "evict default/low for default/high; default/high waits for 1 to leave; ");
    EXPECT_EQ(world.Cycle(), "") << "the room is promised to it";
    world.IsTold(low);
    EXPECT_EQ(world.Cycle(), "");
    world.Gone("low-0");
    world.Gone("low-1");
    world.Put(low);
    const std::string lacks = quota == 2000 ? "lacks 2000" : "has a group that lacks 2000";
    EXPECT_EQ(world.Cycle(), "default/high: q spot 2000 n1 n1; default/low " + lacks + "; ");
    world.ComesTrue(high);
    EXPECT_EQ(world.Cycle(), "");
  }
}

TEST(QueuedGangsTest, NobodyIsEvictedWhoDoesNotFillTheQueueOfItsGroup) {
  TeamWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(2000);
  const WorkloadSpec low{.name = "low", .count = 2, .created = 1};
  world.Starts(low);
  world.PutGroup("others", /*minimum=*/1);
  TestPod other{.name = "other", .cpu = 1000, .node = "n1", .group = "others"};
  world.Put(other);
  world.Gang({.name = "high", .count = 2, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/high lacks 2000; ");
  EXPECT_FALSE(world.RowOf("low").claimant.valid());
  other.finished = true;
  world.Put(other);
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
}

// Goal: what a group asks to be kept for it is kept only with the quota of who starts its pods: it
// bars nobody before, nor once that is evicted. Method: its object says that it was let in; who is
// to start it waits for quota that it can't have, or is evicted.
TEST(QueuedGangsTest, NothingIsKeptForAGangThatHasNoQuota) {
  TeamWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(2000);
  world.Gang({.name = "never", .queue = "nowhere", .count = 2, .priority = 9});
  world.LetIn("never", /*minimum=*/2, 2000);
  const WorkloadSpec low = world.Gang({.name = "low", .count = 2, .created = 1});
  world.LetIn("low", /*minimum=*/2, 2000);
  EXPECT_EQ(world.Cycle(), "default/low: q spot 2000 n1 n1; default/never has no local queue; ");
  world.ComesTrue(low);
  EXPECT_EQ(world.Cycle(), "");
  world.Gang({.name = "high", .count = 2, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
}

// Goal: whom a gang may evict for the room of its group is asked again when a pod of theirs goes for
// which the same is kept, as long as they have quota. Method: beside the pod of a workload one of
// nobody's is in their group, and ends.
TEST(QueuedGangsTest, WhoWouldLeaveMoreThanBeforeIsAskedAgain) {
  TeamWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(2000);
  const WorkloadSpec low = world.Gang({.name = "low", .created = 1}, /*minimum=*/1);
  world.LetIn("low", /*minimum=*/1, 2000);
  EXPECT_EQ(world.Cycle(), "default/low: q spot 1000 n1; ");
  world.ComesTrue(low);
  world.Put(TestPod{.name = "low-0", .cpu = 1000, .node = "n1", .group = "low"}, "low");
  world.Put(TestPod{.name = "beside", .cpu = 1000, .node = "n1", .group = "low"});
  world.Gang({.name = "high", .count = 2, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/high lacks 1000; ") << "the pod beside it would stay";
  world.Gone("beside");
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
}

// Goal: in a StrictFIFO queue nobody passes who waits for room in the queue of its group, or smaller
// ones would for ever. Method: a big one waits, and small ones come.
TEST(QueuedGangsTest, NobodyOfAStrictQueuePassesWhoWaitsForRoom) {
  TeamWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}, .strict = true});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(3000);
  world.PutGroup("others", /*minimum=*/1);
  world.Put(TestPod{.name = "other", .cpu = 2000, .node = "n1", .group = "others"});
  world.Gang({.name = "big", .count = 3, .priority = 1, .created = 1});
  EXPECT_EQ(world.Cycle(), "default/big has a group that lacks 2000; ");
  world.Gang({.name = "small", .created = 2}, /*minimum=*/1);
  EXPECT_EQ(world.Cycle(), "default/small behind default/big; ");
  world.Gone("other");
  EXPECT_EQ(world.Cycle(),
            "default/big: q spot 3000 n1 n1 n1; default/small has a group that lacks 1000; ");
}

// A member that did what it was to do counts for the group, and the next pod asks for room.
TEST(QueuedGangsTest, WhoIsDoneLeavesTheNextPodToAsk) {
  TeamWorld world({.joint_placement = true, .second_pass_delay = {}});
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 9000}}});
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(500);
  world.Put(TestPod{.name = "a-0", .cpu = 1000, .node = "n1", .finished = true, .group = "a"}, "a");
  world.Gang({.name = "a", .created = 1}, /*minimum=*/1);
  EXPECT_EQ(world.Cycle(), "default/a has a group that lacks 500; ");
}

// Goal: what a queue can't hold any more is kept from nobody. Method: gangs are promised what another
// leaves, and their queue shrinks: whoever it could hold stays promised, the last give it back.
TEST(QueuedGangsTest, AGangGivesBackWhatItsQueueCanNotHoldAnyMore) {
  for (const int64_t left : {20'000, 30'000}) {
    TeamWorld world(/*preemption=*/true);
    world.Put(TestNode{.name = "n1", .cpu = 32'000});
    world.Put(TestNode{.name = "n2", .cpu = 32'000});
    world.Team(60'000);
    for (const std::string node : {"n1", "n2"})
      world.Put(TestPod{.name = "fill-" + node, .cpu = 32'000, .node = node});
    for (const std::string name : {"g", "h"}) {
      world.PutGroup(name);
      for (const std::string i : {"-0", "-1"})
        world.Put(TestPod{.name = name + i, .cpu = 14'000, .group = name});
    }
    world.Cycle();
    for (const std::string node : {"n1", "n2"}) {
      world.Put(TestPod{.name = "fill-" + node, .cpu = 32'000, .node = node, .terminating = true});
    }
    for (int i = 0; i < 3; ++i) world.Cycle();
    EXPECT_EQ(world.PromisedCount(), 4u);
    world.Team(left);
    world.Cycle();
    EXPECT_EQ(world.PromisedCount(), left == 30'000 ? 2u : 0u);
    world.Gone("fill-n1");
    world.Gone("fill-n2");
    EXPECT_EQ(world.Cycle(), left == 30'000 ? "default/g-0 on n1; default/g-1 on n1; " : "");
  }
}

// Goal: whoever leaves with its workload leaves its room to whom that is evicted for, also who gives
// back its node for its gang. Method: of a gang one binding is refused until the other's pod is to
// go, and then its workload is evicted; the audit tells.
TEST(QueuedGangsTest, WhoGaveItsNodeBackLeavesWithItsWorkload) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Put(TestNode{.name = "n2", .cpu = 1000});
  world.engine.Apply(FactsOf(world.engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  const WorkloadSpec low{.name = "low", .count = 2, .created = 1, .gang = "g"};
  world.Starts(low);
  const TestPod first{.name = "low-0", .cpu = 1000, .group = "g"};
  world.Put(first, "low");
  world.Put(TestPod{.name = "low-1", .cpu = 1000, .group = "g"}, "low");
  EXPECT_EQ(world.Cycle(), "default/low-0 on n1; default/low-1 on n2; ");
  world.Bound(first, "low", "n1");
  const auto is_released = [&] {
    return world.state().pods().at(world.state().FindPod("uid-low-0")).released;
  };
  for (int i = 0; i < 20 && !is_released(); ++i) {
    world.engine.Apply(model::BindOutcome{.uid = "uid-low-1",
                                          .outcome = model::WriteOutcome::kRefused,
                                          .code = 500,
                                          .at = world.now});
    world.now = world.now + Duration::Seconds(20);
    world.Cycle();
  }
  ASSERT_TRUE(is_released());
  world.Put(WorkloadSpec{.name = "high", .count = 2, .priority = 5, .created = 2});
  EXPECT_EQ(world.Cycle(),
            "evict default/low for default/high; default/high waits for 1 to leave; ");
}

// Goal: what a gang is told that it lacks is what its queue is to be given more. Method: one of two
// members would fit, and is in no way of the other.
TEST(QueuedGangsTest, AGangIsToldWhatItLacksAltogether) {
  TeamWorld world;
  world.Put(TestNode{.name = "n1", .cpu = 9000});
  world.Team(7000);
  world.PutGroup("g");
  for (const std::string pod : {"g-0", "g-1"})
    world.Put(TestPod{.name = pod, .cpu = 4000, .group = "g"});
  world.Cycle();
  const auto why = world.engine.WhyGroupWaits(world.state().FindGroup("uid-g"));
  ASSERT_TRUE(why && !why->reasons.empty());
  EXPECT_EQ(why->reasons.front().deficit, 1000);
}

// A member may not evict another of its group, and others may: they don't wait as one.
TEST(QueuedGangsTest, WhoIsOfNoGroupEvictsWhomAMemberMayNot) {
  TeamWorld world(/*preemption=*/true);
  world.Put(TestNode{.name = "n1", .cpu = 1000});
  world.Team(9000);
  world.PutGroup("g", /*minimum=*/1);
  world.Put(TestPod{.name = "g-0", .cpu = 1000, .node = "n1", .group = "g"});
  world.Put(TestPod{.name = "g-1", .cpu = 1000, .priority = 1, .created = 1, .group = "g"});
  world.Cycle();
  const auto is_promised = [&](const std::string& pod) {
    return world.state().PromiseOf(world.state().FindPod("uid-" + pod)).valid();
  };
  EXPECT_FALSE(is_promised("g-1"));
  world.Put(TestPod{.name = "alone", .cpu = 1000, .priority = 1, .created = 2});
  world.Cycle();
  EXPECT_TRUE(is_promised("alone"));
  EXPECT_EQ(world.engine.CountMissedWakes(), 0u);
}

// The same owner evicts pods from nodes: what it is promised, its quota and its nodes, is its own
// once, and so is what its members have then.
TEST(QueuedGangsTest, AGangThatIsQueuedAndEvictsPodsIsOneOwner) {
  JointWorld world(/*preemption=*/true);
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}});
  for (const std::string n : {"1", "2"}) {
    world.Put(TestNode{.name = "n" + n, .cpu = 1000});
    world.Put(TestPod{.name = "low-" + n, .cpu = 1000, .node = "n" + n});
  }
  const auto claims_of = [&](model::ClaimState state) {
    uint32_t claims = 0;
    for (model::ClaimId id = world.state().ledger().first_of_owner(world.RowOf("high").uid);
         id.valid(); id = world.state().ledger().claim(id).next_of_owner) {
      claims += world.state().ledger().claim(id).state == state ? 1 : 0;
    }
    return claims;
  };
  const WorkloadSpec high{
      .name = "high", .count = 2, .priority = 5, .created = 2, .preempts = true};
  world.Put(high);
  EXPECT_EQ(world.Cycle(),
            "evict pod default/low-1 for default/high; evict pod default/low-2 for default/high; "
            "default/high finds nodes for 0 of 2, promised; ");
  EXPECT_EQ(claims_of(model::ClaimState::kReserved), 3u) << "its quota and a node each";
  world.Put(TestPod{.name = "stranger", .cpu = 1000, .priority = 9});
  world.Gone("low-1");
  EXPECT_EQ(world.Cycle(), "") << "all or nothing, and nobody takes a part";
  world.Gone("low-2");
  EXPECT_EQ(world.Cycle(), "default/high: q spot 2000 n1 n2; ");
  world.ComesTrue(high);
  EXPECT_EQ(claims_of(model::ClaimState::kReserved), 0u);
  EXPECT_EQ(claims_of(model::ClaimState::kHeld), 3u) << "the same, in use";
  world.engine.Apply(FactsOf(world.engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  world.Put(TestPod{.name = "high-0", .cpu = 1000, .priority = 5, .group = "g"}, "high");
  EXPECT_EQ(world.Cycle(), "") << "one member waits for the other";
  world.Put(TestPod{.name = "high-1", .cpu = 1000, .priority = 5, .group = "g"}, "high");
  EXPECT_EQ(world.Cycle(), "default/high-0 on n1; default/high-1 on n2; ");
  EXPECT_EQ(claims_of(model::ClaimState::kHeld), 1u) << "its quota: the nodes are its pods' now";
}

}  // namespace
}  // namespace berth::cycle
