#include <gtest/gtest.h>

#include <functional>

#include "model/audit.h"
#include "model/backoff.h"
#include "model/test_cluster.h"

// Promises of preemptions and the evictions for them.
namespace berth::model {
namespace {

// A node of 1000m that two pods of priority 0 fill, and a third of priority 5 that is promised the
// room of the first.
class PromisesTest : public ::testing::Test {
 protected:
  PromisesTest() {
    c.Node("n1", "u-n1", 1000);
    for (PodUpsert* victim : {&first, &second}) {
      victim->node = "n1";
      c.state.Apply(*victim);
    }
    high.priority = 5;
    c.state.Apply(high);
    Promise();
  }
  void Promise() {
    const PodId victims[] = {c.state.FindPod("v1")};
    EXPECT_TRUE(c.state.Promise(c.state.FindPod("high"), c.state.FindNode("n1"), {}, victims));
  }
  const Claim& ClaimOf(std::string_view uid) const {
    return c.state.ledger().claim(c.state.ClaimOf(c.state.FindPod(uid)));
  }
  bool Promised() const { return c.state.PromiseOf(c.state.FindPod("high")).valid(); }
  // "v1 v2": who is evicted for it.
  std::string Victims() const {
    std::string text;
    for (const PodId pod : c.state.VictimsOf(c.state.FindPod("high"))) {
      text += (text.empty() ? "" : " ") + std::string(c.state.UidOf(c.state.pods().at(pod).uid));
    }
    return text;
  }
  // What is to be written to status.nominatedNodeName.
  std::string Write() const {
    const auto name = c.state.NominationToWrite(c.state.FindPod("high"));
    if (!name) return "nothing";
    return name->valid() ? std::string(c.state.NameOf(*name)) : "empty";
  }
  // What a pod of the priority may take once all that is releasing there is gone.
  Amount Future(int32_t priority) const {
    return c.state.ledger().Future(AccountId::OfNode(c.state.FindNode("n1")), kCpu,
                                   {.owner = OwnerId{}, .priority = priority},
                                   c.state.vocabulary().bundles);
  }
  void TearDown() override { EXPECT_EQ(Audit(c.state), std::vector<std::string>()); }

  Cluster c;
  PodUpsert first = c.Pod("v1", "default/v1");
  PodUpsert second = c.Pod("v2", "default/v2");
  PodUpsert high = c.Pod("high", "default/high");
};

// Goal: from the decision on, every view of no higher priority sees the demand exactly once, and an
// object that does not know of it ends nothing (N01, A01, A02). Method: each fact that an unrelated
// change of the preemptor or of a victim brings.
TEST_F(PromisesTest, StandFromTheDecisionOnWhateverObjectsSay) {
  EXPECT_EQ(Future(5), 0);
  EXPECT_EQ(Future(6), 500);
  EXPECT_EQ(c.Free("n1"), 0);
  EXPECT_EQ(Write(), "n1");
  c.state.Apply(high);   // As it was: somebody labelled it.
  c.state.Apply(first);  // The victim reports its readiness.
  EXPECT_EQ(Victims(), "v1");
  EXPECT_EQ(ClaimOf("v1").state, ClaimState::kReleasing);
  EXPECT_EQ(Future(5), 0);
  high.nominated = "n1";  // Our write is seen.
  c.state.Apply(high);
  EXPECT_EQ(Write(), "nothing");
  EXPECT_EQ(Future(5), 0);
  first.terminating = true;
  c.state.Apply(first);
  EXPECT_EQ(ClaimOf("v1").why, ClaimWhy::kDeleting);
  EXPECT_EQ(Victims(), "v1");
  c.state.Apply(PodRemove{.uid = "v1"});
  EXPECT_EQ(c.Free("n1"), 500);
  EXPECT_EQ(Future(5), 0);
  c.state.Assume(c.state.FindPod("high"), c.state.FindNode("n1"), {});
  EXPECT_EQ(c.Free("n1"), 0);
  EXPECT_EQ(Future(5), 0);
}

// Goal: a promise ends with a cause, and with it the evictions that have not begun: nobody is
// evicted for nobody. Method: each end, with one victim that is being deleted and one that is not.
TEST_F(PromisesTest, EndWithACauseAndSpareWhoIsNotBeingDeletedYet) {
  const Cluster before = c;
  struct End {
    Cause cause;
    std::function<void(State&)> apply;
  };
  PodUpsert elsewhere = high;
  elsewhere.node = "n2";
  PodUpsert cleared = high;
  PodUpsert nominated = high;
  nominated.nominated = "n1";
  PodUpsert terminating = high;
  terminating.terminating = true;
  const std::vector<End> ends = {
      {Cause::kOwnerDeleted, [](State& s) { s.Apply(PodRemove{.uid = "high"}); }},
      {Cause::kOwnerTerminating, [&](State& s) { s.Apply(terminating); }},
      {Cause::kNodeReplaced, [](State& s) { s.Apply(NodeRemove{.name = "n1", .uid = "u-n1"}); }},
      {Cause::kRevoked,
       [](State& s) {
         s.Revoke(s.FindPod("high"), Cause::kRevoked, ReasonKind::kPromiseRoomTaken);
       }},
      {Cause::kObserved, [&](State& s) { s.Apply(elsewhere); }},
      {Cause::kNominationCleared,
       [&](State& s) {
         s.Apply(nominated);
         s.Apply(cleared);
       }},
  };
  for (const bool deleting : {false, true}) {
    for (const End& end : ends) {
      c = before;
      first.terminating = deleting;
      c.state.Apply(first);
      end.apply(c.state);
      EXPECT_EQ(c.Ended(end.cause), end.cause == Cause::kObserved ? 0u : 1u);
      EXPECT_EQ(ClaimOf("v1").state, deleting ? ClaimState::kReleasing : ClaimState::kHeld);
      EXPECT_FALSE(ClaimOf("v1").claimant.valid());
      EXPECT_EQ(Audit(c.state), std::vector<std::string>());
    }
  }
}

// Goal: a promise that was taken back is taken back in the object too, even when the write of it
// comes true afterwards, and promises nothing meanwhile (A05, A07). Method: revoke before and after
// the write was seen.
TEST_F(PromisesTest, TakenBackAreWithdrawnFromTheObject) {
  c.state.Revoke(c.state.FindPod("high"), Cause::kRevoked, ReasonKind::kPromiseOutranked);
  EXPECT_EQ(Write(), "nothing");
  EXPECT_EQ(Future(5), 0);  // Of what the victims hold again.
  high.nominated = "n1";    // It was on its way.
  c.state.Apply(high);
  EXPECT_EQ(Write(), "empty");
  EXPECT_FALSE(Promised());
  high.nominated = "";
  c.state.Apply(high);
  EXPECT_EQ(Write(), "nothing");
  // Nominated there again, by whomever, it is a promise.
  high.nominated = "n1";
  c.state.Apply(high);
  EXPECT_EQ(Write(), "nothing");
  EXPECT_TRUE(Promised());
}

// Goal: a second decision moves the promise (re-decided), and spares whom the first would have
// evicted. Method: promise another node.
TEST_F(PromisesTest, MoveWithASecondDecision) {
  c.Node("n2", "u-n2", 500);
  PodUpsert third = c.Pod("v3", "default/v3");
  third.node = "n2";
  c.state.Apply(third);
  const PodId victims[] = {c.state.FindPod("v3")};
  EXPECT_TRUE(c.state.Promise(c.state.FindPod("high"), c.state.FindNode("n2"), {}, victims));
  EXPECT_EQ(Victims(), "v3");
  EXPECT_EQ(Write(), "n2");
  EXPECT_EQ(ClaimOf("v1").state, ClaimState::kHeld);
  high.nominated = "n1";  // The first write is seen late.
  c.state.Apply(high);
  EXPECT_EQ(Victims(), "v3");
  EXPECT_EQ(Write(), "n2");
}

// Goal: a second decision that fails changes nothing. Method: promise a node whose room another of
// the same priority was promised.
TEST_F(PromisesTest, StayWhereTheyAreWhenASecondDecisionFails) {
  c.Node("n2", "u-n2", 500);
  PodUpsert rival = c.Pod("rival", "default/rival");
  rival.priority = 5;
  rival.nominated = "n2";
  c.state.Apply(rival);
  EXPECT_FALSE(c.state.Promise(c.state.FindPod("high"), c.state.FindNode("n2"), {}, {}));
  EXPECT_TRUE(Promised());
  EXPECT_EQ(Victims(), "v1");
  EXPECT_EQ(Write(), "n1");
}

// Goal: who is placed where it was promised room is promised it again when its binding fails, be the
// nomination written or not; who was placed elsewhere is not, since others may have taken the room
// (A02, A06). Method: fail a binding to either node, with the nomination seen before, or after.
TEST_F(PromisesTest, ComeBackWhenABindingToTheirNodeFails) {
  c.Node("n2", "u-n2", 500);
  first.terminating = true;
  c.state.Apply(first);
  c.state.Apply(PodRemove{.uid = "v1"});
  const Cluster before = c;
  for (const bool seen : {false, true}) {
    for (const char* node : {"n1", "n2"}) {
      c = before;
      high.nominated = seen ? "n1" : "";
      c.state.Apply(high);
      c.state.Assume(c.state.FindPod("high"), c.state.FindNode(node), {});
      EXPECT_EQ(Write(), "nothing");
      c.state.Apply(BindOutcome{.uid = "high", .outcome = WriteOutcome::kRefused, .code = 403});
      const bool there = std::string_view(node) == "n1";
      EXPECT_EQ(Promised(), there);
      EXPECT_EQ(Write(), there && !seen ? "n1" : !there && seen ? "empty" : "nothing");
      high.nominated = "n1";  // Seen at last.
      c.state.Apply(high);
      EXPECT_EQ(Promised(), there);
      EXPECT_EQ(Write(), there ? "nothing" : "empty");
      EXPECT_EQ(Audit(c.state), std::vector<std::string>());
    }
  }
  // The node is gone by then, or another.
  for (const bool seen : {false, true}) {
    for (const bool again : {false, true}) {
      c = before;
      high.nominated = seen ? "n1" : "";
      c.state.Apply(high);
      c.state.Assume(c.state.FindPod("high"), c.state.FindNode("n1"), {});
      c.state.Apply(NodeRemove{.name = "n1", .uid = "u-n1"});
      if (again) c.Node("n1", "u-n1-again", 1000);
      c.state.Apply(BindOutcome{.uid = "high", .outcome = WriteOutcome::kRefused, .code = 403});
      EXPECT_FALSE(Promised());
      EXPECT_EQ(Write(), seen ? "empty" : "nothing");
      EXPECT_EQ(Audit(c.state), std::vector<std::string>());
    }
  }
}

// Goal: a promise whose room was taken while its binding was under way does not come back with its
// failure (A11, A12). Method: assume a holder on its node, evict it for a more important pod, and
// refuse its binding; with its nomination seen and unseen.
TEST_F(PromisesTest, DoNotComeBackToWhoIsEvicted) {
  first.terminating = true;
  c.state.Apply(first);
  c.state.Apply(PodRemove{.uid = "v1"});
  PodUpsert highest = c.Pod("highest", "default/highest");
  highest.priority = 1000000;
  c.state.Apply(highest);
  const Cluster before = c;
  for (const bool seen : {false, true}) {
    c = before;
    high.nominated = seen ? "n1" : "";
    c.state.Apply(high);
    c.state.Assume(c.state.FindPod("high"), c.state.FindNode("n1"), {});
    const PodId victims[] = {c.state.FindPod("high")};
    ASSERT_TRUE(c.state.Promise(c.state.FindPod("highest"), c.state.FindNode("n1"), {}, victims));
    c.state.Apply(BindOutcome{.uid = "high", .outcome = WriteOutcome::kRefused, .code = 403});
    EXPECT_FALSE(Promised());
    EXPECT_EQ(Write(), seen ? "empty" : "nothing");
    EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  }
}

// Goal: who is evicted before its binding came true holds nothing when it does not, and is releasing
// when it does. Method: assume a victim, promise its room, and bring each outcome.
TEST_F(PromisesTest, EvictWhoIsNotBoundYet) {
  c.Node("n2", "u-n2", 500);
  c.state.Apply(c.Pod("late", "default/late"));
  c.state.Assume(c.state.FindPod("late"), c.state.FindNode("n2"), {});
  const PodId victims[] = {c.state.FindPod("late")};
  EXPECT_TRUE(c.state.Promise(c.state.FindPod("high"), c.state.FindNode("n2"), {}, victims));
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  Cluster refused = c;
  refused.state.Apply(BindOutcome{.uid = "late", .outcome = WriteOutcome::kNotSent});
  EXPECT_FALSE(refused.state.ClaimOf(refused.state.FindPod("late")).valid());
  EXPECT_TRUE(refused.state.VictimsOf(refused.state.FindPod("high")).empty());
  EXPECT_EQ(Audit(refused.state), std::vector<std::string>());
  PodUpsert late = c.Pod("late", "default/late");
  late.node = "n2";
  c.state.Apply(late);
  EXPECT_EQ(Victims(), "late");
  EXPECT_EQ(ClaimOf("late").state, ClaimState::kReleasing);
}

// Goal: a victim that does not go when its grace is over leaves no room to wait for (A09), and
// refused writes end the promise they were for (A10). Method: let the only victim be overdue; refuse
// an eviction.
TEST_F(PromisesTest, DoNotWaitForWhoDoesNotGo) {
  first.terminating = true;
  c.state.Apply(first);
  Cluster refused = c;
  c.state.NoteOverdue(c.state.FindPod("v1"));
  EXPECT_EQ(Future(6), 0);
  EXPECT_EQ(Victims(), "");
  EXPECT_EQ(ClaimOf("v1").state, ClaimState::kHeld);
  refused.state.Apply(PreemptionRefused{.uid = "high", .code = 403, .at = Instant::FromSeconds(9)});
  EXPECT_EQ(refused.Ended(Cause::kWriteRefused), 1u);
  const Pod& pod = refused.state.pods().at(refused.state.FindPod("high"));
  EXPECT_EQ(pod.refused_code, 403);
  EXPECT_GT(pod.not_before, Instant::FromSeconds(9));
}

// Goal: whose eviction is refused is spared, longer each time, and the promise it was to leave for
// ends with its own reason (A10); who leaves all the same is not. Method: refuse evictions.
TEST_F(PromisesTest, SpareWhoCannotBeEvicted) {
  const auto refuse = [&](int64_t seconds, bool failed) {
    c.state.Apply(EvictionRefused{
        .uid = "v1", .code = 500, .failed = failed, .at = Instant::FromSeconds(seconds)});
  };
  const auto row = [&](std::string_view uid) { return c.state.pods().at(c.state.FindPod(uid)); };
  const Cluster leaving = c;
  refuse(100, false);
  EXPECT_EQ(row("v1").spared_until, Instant::FromSeconds(110));
  EXPECT_FALSE(MayBeEvicted(row("v1")));
  EXPECT_EQ(row("high").lost.why, ReasonKind::kPromiseEvictionRefused);
  EXPECT_EQ(row("high").refused_code, 500);
  EXPECT_EQ(c.state.promises_lost()[static_cast<size_t>(ReasonKind::kPromiseEvictionRefused)], 1u);
  EXPECT_EQ(c.Ended(Cause::kWriteRefused), 1u);
  const uint64_t touches = c.state.touches().end();
  c.state.EndSparing(c.state.FindPod("v1"));
  EXPECT_GT(c.state.touches().end(), touches);
  EXPECT_TRUE(MayBeEvicted(row("v1")));
  // Of no promise any more: it is spared all the same.
  refuse(200, true);
  EXPECT_EQ(row("v1").spared_until, Instant::FromSeconds(220));
  for (int i = 0; i < 40; ++i) refuse(300, true);
  EXPECT_EQ(row("v1").spared_until, Instant::FromSeconds(300) + kSparedMax);
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  c = leaving;
  first.terminating = true;
  c.state.Apply(first);
  refuse(100, false);
  EXPECT_EQ(row("v1").spared_count, 0u);
  EXPECT_TRUE(c.state.PromiseOf(c.state.FindPod("high")).valid());
}

// Goal: of all that leave for a gang who refused it most often goes first, and of no others (A10).
// Method: promise two of its members rooms on two nodes.
TEST_F(PromisesTest, WhoRefusedItGoesBeforeAllOthersOfTheGang) {
  const auto refuse = [&](std::string uid) {
    c.state.Apply(
        EvictionRefused{.uid = std::move(uid), .code = 403, .at = Instant::FromSeconds(100)});
  };
  const auto after = [&](std::string_view uid) {
    return c.state.GoesAfterOthers(c.state.OwnerOf(c.state.FindPod(uid)));
  };
  PodUpsert other = c.Pod("other", "default/other");
  PodUpsert elsewhere = c.Pod("w1", "default/w1");
  elsewhere.node = "n2";
  other.priority = 5;
  other.group = high.group = "default/gang";
  c.Node("n2", "u-n2", 1000);
  for (const PodUpsert& pod : {other, elsewhere, high}) c.state.Apply(pod);
  const PodId victims[] = {c.state.FindPod("w1")};
  EXPECT_TRUE(c.state.Promise(c.state.FindPod("other"), c.state.FindNode("n2"), {}, victims));
  EXPECT_FALSE(after("v1") || after("w1"));
  refuse("v1");
  EXPECT_FALSE(after("w1")) << "v1 leaves for nobody now";
  c.state.EndSparing(c.state.FindPod("v1"));
  Promise();
  EXPECT_TRUE(after("w1"));
  EXPECT_FALSE(after("v1"));
  // Both refused it: who did so more often, or is older.
  refuse("w1");
  c.state.EndSparing(c.state.FindPod("w1"));
  EXPECT_TRUE(c.state.Promise(c.state.FindPod("other"), c.state.FindNode("n2"), {}, victims));
  EXPECT_NE(after("v1"), after("w1"));
  refuse("w1");
  c.state.EndSparing(c.state.FindPod("w1"));
  EXPECT_TRUE(c.state.Promise(c.state.FindPod("other"), c.state.FindNode("n2"), {}, victims));
  EXPECT_TRUE(after("v1"));
  EXPECT_FALSE(after("w1"));
  elsewhere.terminating = true;
  c.state.Apply(elsewhere);
  EXPECT_FALSE(after("v1")) << "w1 goes";
}

// Goal: no promise takes what another was promised, if that is as important, or what is charged
// (A12, A13). Method: ask for room that is neither free nor the victims'.
TEST_F(PromisesTest, TakeNothingThatIsPromised) {
  PodUpsert rival = c.Pod("rival", "default/rival");
  rival.priority = 5;
  c.state.Apply(rival);
  const uint64_t touches = c.state.touches().end();
  EXPECT_FALSE(c.state.Promise(c.state.FindPod("rival"), c.state.FindNode("n1"), {}, {}));
  EXPECT_EQ(c.state.touches().end(), touches);
  const PodId victims[] = {c.state.FindPod("v2")};
  EXPECT_TRUE(c.state.Promise(c.state.FindPod("rival"), c.state.FindNode("n1"), {}, victims));
}

}  // namespace
}  // namespace berth::model
