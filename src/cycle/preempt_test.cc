#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/test_examples.h"

// Promises and evictions by example. EngineTest's histories have them, too.
namespace berth::cycle {
namespace {

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

class PreemptingExamples : public Examples {
 protected:
  PreemptingExamples() { engine = Engine({.preemption = true}); }
};

class PreemptingAsUpstream : public Examples {
 protected:
  PreemptingAsUpstream() { engine = Engine({.preemption = true, .compat = true}); }
};

// Goal: a promise that is kept on another device than the one it was of leaves that one to others.
// Method: the holder waits for who leaves the second device, and finds room on the first; who wants
// a whole one may evict what is left on the second then.
TEST_F(PreemptingExamples, APromiseThatIsKeptElsewhereLeavesItsDevice) {
  Node({.name = "n1", .cpu = 9000, .gpus = 2});
  std::vector<TestPod> pods = {
      {.name = "first", .priority = 5, .gpu_milli = 700},
      {.name = "low", .created = 1, .gpu_milli = 400},
      {.name = "leaves", .priority = 5, .created = 2, .gpu_milli = 400},
      {.name = "beside", .priority = 5, .created = 3, .gpu_milli = 250},
  };
  for (TestPod& pod : pods) {
    Pod(pod);
    Cycle();
    pod.node = "n1";
    pod.terminating = pod.name == "leaves";
    Pod(pod);
  }
  Pod({.name = "holder", .priority = 1, .gpu_milli = 300});
  Pod({.name = "whole", .priority = 1, .created = 1, .gpu_milli = 1000});
  EXPECT_EQ(FirstLine(Printed()), "promise default/holder -> n1");
  while (engine.wake_at() == Instant{}) Cycle();
  engine.Apply(model::PodRemove{.uid = "uid-beside"});
  EXPECT_TRUE(Printed(1).starts_with("bind default/holder -> n1 "));
  EXPECT_EQ(engine.CountMissedWakes(), 0u);
  EXPECT_EQ(FirstLine(Printed(20'000)), "promise default/whole -> n1  evicts default/low");
  EXPECT_EQ(engine.counters().missed_wakes, 0u);
}

// Goal: who waits is looked at when what it may evict, with what has left, is enough. Method: what
// leaves n1 is too little by itself; the rest is an eviction of a lower priority away.
TEST_F(PreemptingExamples, RoomThatCameCountsWithWhatCanBeEvicted) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "low", .cpu = 200, .priority = 1, .node = "n1"});
  Pod({.name = "equal", .cpu = 500, .priority = 10, .node = "n1"});
  Pod({.name = "another", .cpu = 300, .priority = 10, .node = "n1"});
  Pod({.name = "waits", .cpu = 500, .priority = 10});
  EXPECT_EQ(Cycle().preemptions.size(), 0u);
  engine.Apply(model::PodRemove{.uid = "uid-another"});
  EXPECT_EQ(Cycle(1).preemptions.size(), 1u);
}

// Goal: of those who wait each is looked at by what it may evict itself. Method: two wait, and only
// the more important may evict what is left on the node when the most important leaves.
TEST_F(PreemptingExamples, WhatTheMostImportantMayEvictCounts) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "most", .cpu = 300, .priority = 200, .node = "n1"});
  Pod({.name = "middle", .cpu = 600, .priority = 50, .node = "n1"});
  Pod({.name = "important", .cpu = 900, .priority = 100});
  Pod({.name = "unimportant", .cpu = 600, .priority = 10});
  EXPECT_EQ(Cycle().preemptions.size(), 0u);
  engine.Apply(model::PodRemove{.uid = "uid-most"});
  const model::Plan plan = Cycle(1);
  ASSERT_EQ(plan.preemptions.size(), 1u);
  EXPECT_EQ(engine.state().NameOf(plan.preemptions[0].node_name), "n1");
}

// Goal: who is being deleted is room that comes, and a victim like any other only for upstream.
// Method: waiting for n1 costs nobody anything, but there the victim is more important than on n2.
TEST_F(PreemptingExamples, WhoIsDeletedIsRoomThatComes) {
  const auto come = [&] {
    Node({.name = "n1", .cpu = 1000});
    Node({.name = "n2", .cpu = 1000});
    Pod({.name = "leaves", .cpu = 900, .priority = 5, .node = "n1", .terminating = true});
    Pod({.name = "low", .cpu = 900, .priority = 1, .node = "n2"});
    Pod({.name = "p", .cpu = 1000, .priority = 10});
    return FirstLine(Printed());
  };
  EXPECT_EQ(come(), "promise default/p -> n1");
  engine = Engine({.preemption = true, .compat = true});
  EXPECT_EQ(come(), "promise default/p -> n2  evicts default/low");
}

TEST_F(PreemptingAsUpstream, WhoIsDeletedIsNotEvictedAgain) {
  Node({.name = "n1", .cpu = 1000});
  Node({.name = "n2", .cpu = 1000});
  Pod({.name = "leaves", .cpu = 900, .priority = 1, .node = "n1", .terminating = true});
  Pod({.name = "low", .cpu = 900, .priority = 5, .node = "n2"});
  Pod({.name = "p", .cpu = 1000, .priority = 10});
  EXPECT_EQ(FirstLine(Printed()), "promise default/p -> n1");
  EXPECT_EQ(Cycle(1).preemptions.size(), 0u);
  engine.Apply(model::PodRemove{.uid = "uid-leaves"});
  EXPECT_TRUE(Printed(2).starts_with("bind default/p -> n1 "));
}

// Goal: who waits for victims of an earlier life is told so. Method: a nomination, a victim that was
// marked and leaves, and no row that says for whom.
TEST_F(PreemptingExamples, WhoWaitsForVictimsThatLeaveIsToldSo) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "leaves",
       .cpu = 900,
       .priority = 1,
       .node = "n1",
       .terminating = true,
       .marked = true});
  Pod({.name = "p", .cpu = 1000, .priority = 10, .nominated = "n1"});
  const model::Plan plan = Cycle();
  EXPECT_EQ(plan.preemptions.size(), 0u);
  ASSERT_EQ(plan.refusals.size(), 1u);
  EXPECT_EQ(plan.refusals[0].preemption->bar, model::PreemptionBar::kVictimsTerminating);
  EXPECT_FALSE(Cycle(1).more);
}

// Goal: evictions that an earlier life began, and that are not enough, go on, but for upstream, which
// waits until those that it marked are gone. Method: "leaves" alone makes too little room.
TEST_F(PreemptingExamples, EvictionsThatBeganAndAreNotEnoughGoOnButForUpstream) {
  const auto come = [&] {
    Node({.name = "n1", .cpu = 1000});
    Pod({.name = "leaves",
         .cpu = 400,
         .priority = 1,
         .node = "n1",
         .terminating = true,
         .marked = true});
    Pod({.name = "low", .cpu = 500, .priority = 1, .node = "n1"});
    Pod({.name = "p", .cpu = 1000, .priority = 10, .nominated = "n1"});
    return Cycle();
  };
  EXPECT_EQ(come().preemptions.size(), 1u);
  engine = Engine({.preemption = true, .compat = true});
  const model::Plan plan = come();
  EXPECT_EQ(plan.preemptions.size(), 0u);
  ASSERT_EQ(plan.refusals.size(), 1u);
  EXPECT_EQ(plan.refusals[0].preemption->bar, model::PreemptionBar::kVictimsTerminating);
  EXPECT_FALSE(Cycle(1).more);
  engine.Apply(model::PodRemove{.uid = "uid-leaves"});
  EXPECT_EQ(FirstLine(Printed(2)), "promise default/p -> n1  evicts default/low");
}

// Goal: A09 for the same: nobody waits for whom who does not go. Method: it is overdue.
TEST_F(PreemptingAsUpstream, WhoDoesNotGoIsWaitedForNoLonger) {
  Node({.name = "n1", .cpu = 1000});
  Node({.name = "n2", .cpu = 1000});
  Pod({.name = "stays",
       .cpu = 400,
       .priority = 1,
       .node = "n1",
       .terminating = true,
       .marked = true,
       .deadline = 70});
  Pod({.name = "low", .cpu = 500, .priority = 1, .node = "n2"});
  Pod({.name = "p", .cpu = 1000, .priority = 10, .nominated = "n1"});
  for (const int64_t at_ms : {0, 90'000, 129'000}) EXPECT_TRUE(Cycle(at_ms).preemptions.empty());
  EXPECT_EQ(FirstLine(Printed(130'000)), "promise default/p -> n2  evicts default/low");
}

// Goal: room of one who is no less important counts when it comes, as ever. Method: upstream finds
// nobody to evict.
TEST_F(PreemptingAsUpstream, RoomThatComesIsPromisedWhoeverLeaves) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "leaves", .cpu = 900, .priority = 10, .node = "n1", .terminating = true});
  Pod({.name = "p", .cpu = 1000, .priority = 10});
  EXPECT_EQ(FirstLine(Printed()), "promise default/p -> n1");
  EXPECT_FALSE(Cycle(1).more);
}

// Goal: no promise is made that is taken back at once. Method: "p" is to be with "web" of whom one
// leaves, who is no less important, and one could be evicted: upstream evicts "large" beside them.
// Without all of them nobody is left to be with.
TEST_F(PreemptingAsUpstream, AChoiceThatCannotBeKeptIsNotMade) {
  Node({.name = "a1", .cpu = 1000, .labels = {{"zone", "a"}}});
  const std::vector<std::pair<std::string, std::string>> web = {{"app", "web"}};
  Pod({.name = "leaves", .priority = 10, .node = "a1", .terminating = true, .labels = web});
  Pod({.name = "low", .node = "a1", .labels = web});
  Pod({.name = "large", .cpu = 700, .node = "a1"});
  Pod({.name = "p", .cpu = 500, .priority = 10, .affinity = {{.key = "zone", .app = "web"}}});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Cycle(i).preemptions.size(), 0u);
  EXPECT_FALSE(Cycle(5).more);
}

// Goal: evictions are not left undone because upstream miscounts. Method: of zone a "leaves" does
// not count for the constraint any more, yet upstream takes it away from who does, and would wait
// for it alone, after which "stays" still keeps the pod away.
TEST_F(PreemptingAsUpstream, WhatMiscountsForSpreadIsFoundAsEver) {
  Node({.name = "a1", .cpu = 1000, .labels = {{"zone", "a"}}});
  Node({.name = "b1", .cpu = 100, .labels = {{"zone", "b"}}});
  TestPod pod{.name = "leaves", .cpu = 500, .node = "a1", .labels = {{"app", "web"}}};
  pod.terminating = true;
  Pod(pod);
  pod.name = "stays";
  pod.terminating = false;
  Pod(pod);
  Pod({.name = "p",
       .cpu = 500,
       .priority = 10,
       .labels = {{"app", "web"}},
       .spread = {{.key = "zone", .app = "web"}}});
  EXPECT_EQ(FirstLine(Printed()), "promise default/p -> a1  evicts default/stays");
}

// Goal: A09, who does not go is waited for until it is overdue and no longer. Method: its row was
// another's whose own grace ends first.
TEST_F(PreemptingExamples, AGraceOfWhoHadTheRowBeforeEndsNoOthers) {
  Node({.name = "n1", .cpu = 1000});
  Node({.name = "n2", .cpu = 1000});
  Pod({.name = "low", .cpu = 1000, .node = "n2"});
  Pod({.name = "first", .node = "n1", .terminating = true, .deadline = 30});
  Cycle();
  engine.Apply(model::PodRemove{.uid = "uid-first"});
  Pod({.name = "stuck", .cpu = 1000, .node = "n1", .terminating = true, .deadline = 70});
  Pod({.name = "p", .cpu = 1000, .priority = 10});
  EXPECT_EQ(FirstLine(Printed(31'000)), "promise default/p -> n1");
  for (const int64_t at_ms : {90'000, 129'000}) EXPECT_TRUE(Cycle(at_ms).preemptions.empty());
  EXPECT_EQ(FirstLine(Printed(130'000)), "promise default/p -> n2  evicts default/low");
}

// Goal: nobody is overdue for a clock that is ahead of the API server's: for each victim another
// would be evicted at once, on node after node. Method: it was to be gone hours ago when it is first
// seen to leave.
TEST_F(PreemptingExamples, AClockThatIsAheadEndsNoGraceAtOnce) {
  Node({.name = "n1", .cpu = 1000});
  Node({.name = "n2", .cpu = 1000});
  Pod({.name = "low", .cpu = 1000, .node = "n2"});
  constexpr int64_t kAhead = 10'000'000;
  Cycle(kAhead);
  Pod({.name = "leaves", .cpu = 1000, .node = "n1", .terminating = true, .deadline = 70});
  Pod({.name = "p", .cpu = 1000, .priority = 10});
  EXPECT_EQ(FirstLine(Printed(kAhead + 5'000)), "promise default/p -> n1");
  EXPECT_EQ(Cycle(kAhead + 64'000).wake_at, Instant::FromSeconds(kAhead / 1000 + 65));
  EXPECT_EQ(FirstLine(Printed(kAhead + 65'000)), "promise default/p -> n2  evicts default/low");
}

// Goal: who is promised a node and has room there is placed, whatever a gang would have. Method:
// "a" may evict the holder and "b" may not: as long as the holder is not bound the gang takes its
// binding back, in vain.
TEST_F(PreemptingExamples, AGangTakesNobodysBindingBackInVain) {
  Node({.name = "n1", .cpu = 1300});
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  Pod({.name = "a", .cpu = 500, .priority = 3, .group = "g"});
  Pod({.name = "b", .cpu = 600, .priority = 2, .group = "g"});
  Pod({.name = "holder", .cpu = 900, .priority = 2, .nominated = "n1"});
  EXPECT_TRUE(Printed().starts_with("bind default/holder -> n1 "));
}

// Goal: a more important member of a gang may take what a pod is promised, whom the less important
// ones heeded. Method: "mid" waits for its error backoff, so its promise stands; "low" is placed
// by its own, "high" over mid's.
TEST_F(PreemptingExamples, InAGangEachHeedsThePromisesOfItsOwnPriority) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "mid", .cpu = 700, .priority = 2, .nominated = "n1"});
  Cycle();
  engine.Apply(model::BindOutcome{
      .uid = "uid-mid", .outcome = model::WriteOutcome::kRefused, .code = 500, .at = Instant{}});
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  Pod({.name = "low", .cpu = 100, .nominated = "n1", .group = "g"});
  Pod({.name = "high", .cpu = 600, .priority = 3, .group = "g"});
  const model::Plan plan = Cycle(1);
  EXPECT_EQ(plan.binds.size(), 2u) << Print(plan, engine.state());
}

// Goal: nobody of a gang is promised the room of another. Method: "small" has a role, and so its
// turn, first; "big" need not heed what is promised to "small".
TEST_F(PreemptingExamples, AGangIsNotPromisedTheSameRoomTwice) {
  Node({.name = "n1", .cpu = 500});
  Pod({.name = "leaver", .cpu = 500, .node = "n1", .terminating = true});
  Pod({.name = "small", .cpu = 500, .priority = 2, .group = "g", .role = "r"});
  Pod({.name = "big", .cpu = 500, .priority = 3, .group = "g"});
  engine.Apply(
      FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2, .roles = {{"r", 1}}}));
  const model::Plan plan = Cycle();
  EXPECT_TRUE(plan.nominations.empty());
  EXPECT_FALSE(plan.more);
}

// Goal: a gang is not promised what its least important member would lose again. Method: "small" has
// its turn first, and heeds "mid"; "big" need not, and there is no room for all three.
TEST_F(PreemptingExamples, AGangIsNotPromisedWhatItCannotKeep) {
  Node({.name = "n1", .cpu = 500});
  Pod({.name = "leaver", .cpu = 500, .node = "n1", .terminating = true});
  Pod({.name = "mid", .cpu = 400, .priority = 3, .nominated = "n1"});
  Cycle();
  Pod({.name = "small", .cpu = 100, .priority = 2, .group = "g", .role = "r"});
  Pod({.name = "big", .cpu = 100, .priority = 4, .group = "g"});
  engine.Apply(
      FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2, .roles = {{"r", 1}}}));
  const model::Plan plan = Cycle();
  EXPECT_TRUE(plan.nominations.empty());
  EXPECT_FALSE(plan.more);
}

// Goal: what is taken back for a gang counts as it is, not as the gang's doing. Method: without what
// "h1" is promised on n1 its victim stays, on whose room "h2" counts; the member goes to n2 then.
TEST_F(PreemptingExamples, WhatIsTakenBackForAGangIsNoChargeOfIts) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "victim", .cpu = 1000, .node = "n1"});
  Pod({.name = "h1", .cpu = 500, .priority = 1, .created = 2});
  Cycle();
  Pod({.name = "h2", .cpu = 500, .priority = 1, .created = 1});
  Cycle();
  Node({.name = "n2", .cpu = 1000});
  Pod({.name = "cheap", .cpu = 1000, .priority = -5, .node = "n2"});
  Cycle();
  Pod({.name = "member", .cpu = 1000, .priority = 5, .group = "g"});
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 1}));
  EXPECT_EQ(FirstLine(Printed()), "promise default/member -> n2  evicts default/cheap");
}

// Goal: what a queue keeps for a group is settled before who preempts a pod of it is judged. Method:
// with what "loose" is promised taken back more is kept for its group, of a queue that shrank.
TEST_F(PreemptingExamples, WhatIsKeptForAGroupIsNoChargeOfAnother) {
  Node({.name = "n1", .cpu = 1000});
  Node({.name = "n2", .cpu = 100});
  engine.Apply(QueueOfGroups("q", 1000));
  model::GroupUpsert group = FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 1});
  group.queue = "q";
  group.phase = model::GroupPhase::kInqueue;
  const model::ResourceAmount asked{.resource = model::kCpu, .amount = 1000};
  group.min_resources = engine.vocabulary().bundles.Intern({&asked, 1});
  engine.Apply(group);
  Pod({.name = "runs", .cpu = 100, .priority = 9, .node = "n2", .group = "g"});
  Pod({.name = "victim", .cpu = 1000, .node = "n1"});
  Pod({.name = "loose", .cpu = 900, .priority = 1, .group = "g"});
  EXPECT_EQ(FirstLine(Printed()), "promise default/loose -> n1  evicts default/victim");
  engine.Apply(QueueOfGroups("q", 500));
  Cycle();
  Pod({.name = "p", .cpu = 1000, .priority = 5});
  EXPECT_EQ(FirstLine(Printed()), "promise default/p -> n1  evicts default/victim");
  EXPECT_EQ(engine.CountMissedWakes(), 0u);
}

// Goal: a gang takes a pod's promise for a more important member alone. Method: "big" would take
// that of "alone" at first; with it taken back that one finds room elsewhere, and "small", less
// important than "alone", would have it: which would take it back, for ever.
TEST_F(PreemptingExamples, AGangDoesNotTakeFromWhoIsMoreImportant) {
  Node({.name = "n1", .cpu = 900});
  Node({.name = "n2", .cpu = 800});
  Pod({.name = "victim", .cpu = 900, .node = "n1"});
  Pod({.name = "leaver", .cpu = 800, .node = "n2", .terminating = true});
  engine.Apply(FactsOf(engine.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
  Pod({.name = "big", .cpu = 800, .priority = 4, .group = "g"});
  Pod({.name = "small", .cpu = 400, .priority = 2, .group = "g"});
  Cycle();
  Pod({.name = "alone", .cpu = 900, .priority = 3});
  for (int i = 0; i < 10 && Cycle().more; ++i) {
    for (const char* name : {"big", "small", "alone"})
      engine.Apply(model::NominationStands{.uid = std::string("uid-") + name});
  }
  EXPECT_FALSE(Cycle().more);
  EXPECT_EQ(engine.state().VictimsOf(engine.state().FindPod("uid-alone")).size(), 1u);
}

// Goal: who is to be beside others is not kept waiting by a more important one of its kind, which
// would have to evict these, too. Method: "less" may evict "large" and be beside "web"; "more" may
// evict both, in vain; and when that one goes.
TEST_F(PreemptingExamples, WhoNeedsOthersWaitsBehindNobodyWhoWouldEvictThem) {
  Node({.name = "n1", .cpu = 1000, .labels = {{"host", "n1"}}});
  Pod({.name = "web", .cpu = 200, .priority = 2, .node = "n1", .labels = {{"app", "web"}}});
  Pod({.name = "large", .cpu = 800, .node = "n1"});
  Pod({.name = "more", .cpu = 500, .priority = 3, .affinity = {{.key = "host", .app = "web"}}});
  Pod({.name = "less", .cpu = 500, .priority = 2, .affinity = {{.key = "host", .app = "web"}}});
  EXPECT_EQ(FirstLine(Printed()), "promise default/less -> n1  evicts default/large");
}

// Goal: nobody is bound and evicted by one decision. Method: "high" goes to n2 at first, which
// "mid" is promised; with that promise taken back n1 costs less, where "low" was bound just now.
TEST_F(PreemptingExamples, WhoIsBoundJustNowIsNotEvictedAfterAPromiseIsTakenBack) {
  for (const char* name : {"n1", "n2"}) Node({.name = name, .cpu = 700});
  Pod({.name = "blocker", .cpu = 700, .priority = 9, .node = "n1"});
  Pod({.name = "victim", .cpu = 600, .priority = 2, .node = "n2"});
  TestPod mid{.name = "mid", .cpu = 650, .priority = 3};
  Pod(mid);
  Cycle();
  mid.nominated = "n2";
  Pod(mid);
  engine.Apply(model::PodRemove{.uid = "uid-blocker"});
  Pod({.name = "low", .cpu = 100, .priority = 1, .nominated = "n1"});
  Pod({.name = "high", .cpu = 650, .priority = 4});
  EXPECT_EQ(FirstLine(Printed(2000)), "bind default/high -> n1  score 403 of 1 nodes");
  EXPECT_EQ(engine.state().VictimsOf(engine.state().FindPod("uid-mid")).size(), 1u);
}

// Goal: whom evictions can help is woken. Method: "p" is to be beside "web", who may be evicted like
// "large": without both there is nobody to be with. When the eviction of "web" is refused that of
// "large" is enough.
TEST_F(PreemptingExamples, WhoIsSparedIsSomebodyToBeWith) {
  Node({.name = "n1", .cpu = 1000, .labels = {{"host", "n1"}}});
  Pod({.name = "web", .node = "n1", .labels = {{"app", "web"}}});
  Pod({.name = "large", .cpu = 700, .node = "n1"});
  Pod({.name = "p", .cpu = 500, .priority = 10, .affinity = {{.key = "host", .app = "web"}}});
  EXPECT_TRUE(Cycle().preemptions.empty());
  engine.Apply(model::EvictionRefused{.uid = "uid-web", .code = 429, .at = Instant{}});
  EXPECT_EQ(engine.CountMissedWakes(), 0u);
  EXPECT_EQ(FirstLine(Printed(1)), "promise default/p -> n1  evicts default/large");
}

// Goal: A22: evictions that a budget's status can't know of yet are charged to it, so a burst of
// preemptors does not spend the same again. Method: two of three that may go are in a budget which
// allows one; the status says so again and again, until it can have counted the first.
TEST_F(PreemptingExamples, ABurstSpendsABudgetOnceThoughItsStatusLags) {
  const model::BudgetUpsert budget{.key = "default/b",
                                   .uid = "b",
                                   .selector = {{.key = "app", .values = {"web"}}},
                                   .allowed = 1};
  engine.Apply(budget);
  for (const char* name : {"n1", "n2", "n3"}) Node({.name = name, .cpu = 1000});
  const std::vector<std::pair<std::string, std::string>> web = {{"app", "web"}};
  TestPod first{.name = "first", .cpu = 900, .priority = 1, .node = "n1", .labels = web};
  Pod(first);
  Pod({.name = "second", .cpu = 900, .priority = 2, .node = "n2", .labels = web});
  Pod({.name = "other", .cpu = 900, .priority = 5, .node = "n3"});
  Pod({.name = "p", .cpu = 900, .priority = 10});
  EXPECT_EQ(FirstLine(Printed()), "promise default/p -> n1  evicts default/first");
  engine.Apply(budget);
  Pod({.name = "q", .cpu = 900, .priority = 10, .created = 1});
  EXPECT_EQ(FirstLine(Printed(1)), "promise default/q -> n3  evicts default/other");
  first.terminating = true;
  Pod(first);
  engine.Apply(budget);
  Pod({.name = "r", .cpu = 900, .priority = 10, .created = 2});
  EXPECT_EQ(FirstLine(Printed(2)), "promise default/r -> n2  evicts default/second");
  EXPECT_EQ(engine.counters().pdb_violations, 0u);
}

// Goal: B02: who waits for its victims is not tried over and over. Method: a minute in which the
// victim leaves, is told of again and does nothing else: nobody is tried, and no cycle is asked for
// but when the victim is overdue.
TEST_F(PreemptingExamples, NobodyIsTriedWhileItsVictimsLeave) {
  Node({.name = "n1", .cpu = 1000});
  TestPod victim{.name = "victim", .cpu = 900, .node = "n1"};
  Pod(victim);
  Pod({.name = "p", .cpu = 900, .priority = 10});
  EXPECT_EQ(Cycle().preemptions.size(), 1u);
  while (engine.wake_at() <= Instant{}) Cycle();
  engine.Apply(model::NominationStands{.uid = "uid-p"});
  victim.terminating = true;
  victim.deadline = 60;
  Pod(victim);
  while (engine.wake_at() <= Instant{}) Cycle();
  const uint64_t attempts = engine.counters().attempts;
  for (int second = 1; second <= 60; ++second) {
    EXPECT_GT(engine.wake_at(), Instant::FromSeconds(second));
    Pod(victim);
    EXPECT_TRUE(Cycle(second * 1000).preemptions.empty());
  }
  EXPECT_EQ(engine.counters().attempts, attempts);
  EXPECT_EQ(engine.counters().victims, 1u);
  engine.Apply(model::PodRemove{.uid = "uid-victim"});
  EXPECT_TRUE(Printed(61'000).starts_with("bind default/p -> n1"));
}

// Goal: with compat upstream chooses the node; there nobody is evicted for whose room what leaves
// is enough, and budgets count of the victims alone. Method: upstream would spare who leaves, who
// is more important; then evict one who is in no budget beside one who is and leaves.
TEST_F(PreemptingAsUpstream, OnTheNodeNobodyIsEvictedInVain) {
  Node({.name = "n1", .cpu = 1000});
  engine.Apply(model::BudgetUpsert{.key = "default/b",
                                   .uid = "b",
                                   .selector = {{.key = "app", .values = {"web"}}},
                                   .allowed = 0});
  Pod({.name = "leaves",
       .cpu = 500,
       .priority = 5,
       .node = "n1",
       .terminating = true,
       .labels = {{"app", "web"}}});
  Pod({.name = "low", .cpu = 500, .priority = 1, .node = "n1"});
  const Engine before = engine;
  Pod({.name = "p", .cpu = 500, .priority = 10});
  EXPECT_EQ(FirstLine(Printed()), "promise default/p -> n1");
  engine = before;
  Pod({.name = "p", .cpu = 1000, .priority = 10});
  const model::Plan plan = Cycle();
  ASSERT_EQ(plan.preemptions.size(), 1u);
  EXPECT_EQ(plan.preemptions[0].victims.size(), 1u);
  EXPECT_EQ(plan.preemptions[0].pdb_violations, 0u);
}

// Goal: who does not go is no victim of upstream's choice either. Method: it would be the cheapest.
TEST_F(PreemptingAsUpstream, WhoIsOverdueIsNoVictim) {
  for (const char* name : {"n1", "n2", "n3"}) Node({.name = name, .cpu = 1000});
  Pod({.name = "stuck", .cpu = 900, .node = "n1", .terminating = true, .deadline = 30});
  Cycle();
  Cycle(90'000);
  Pod({.name = "leaves", .cpu = 900, .priority = 5, .node = "n2", .terminating = true});
  Pod({.name = "low", .cpu = 900, .priority = 1, .node = "n3"});
  Pod({.name = "p", .cpu = 1000, .priority = 10});
  EXPECT_EQ(FirstLine(Printed(91'000)), "promise default/p -> n3  evicts default/low");
}

// Goal: who could be evicted is summed up before anyone asks, at most once a second, and not for a
// question again. Method: how often a node was looked at; pods that come to n1 leave it behind.
TEST_F(PreemptingExamples, WhatCouldBeEvictedIsSummedUpBeforeAnyoneAsks) {
  Node({.name = "n1", .cpu = 2000});
  Node({.name = "n2", .cpu = 1000});
  Pod({.name = "a", .cpu = 600, .node = "n1"});
  Pod({.name = "b", .cpu = 600, .node = "n2"});
  Cycle();
  EXPECT_EQ(engine.nodes_summed_up(), 2u);
  Pod({.name = "c", .cpu = 1400, .priority = 5, .node = "n1"});
  Cycle(999);
  EXPECT_EQ(engine.nodes_summed_up(), 2u);
  Cycle(1000);
  EXPECT_EQ(engine.nodes_summed_up(), 3u);
  Pod({.name = "asks", .cpu = 1000, .priority = 10});
  const model::Plan plan = Cycle(1001);
  ASSERT_EQ(plan.preemptions.size(), 1u);
  EXPECT_EQ(engine.state().NameOf(plan.preemptions[0].node_name), "n2");
  EXPECT_EQ(engine.nodes_summed_up(), 3u);
}

}  // namespace
}  // namespace berth::cycle
