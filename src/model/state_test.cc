#include "model/state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "model/audit.h"
#include "model/lifecycle.h"
#include "model/test_cluster.h"

namespace berth::model {
namespace {

// Goal: resources named since the last fact, as by a pod that was refused, are no trouble when a
// node goes. Method: name one between a node's arrival and its removal; what stays is that nothing
// is offered.
TEST(StateTest, ANodeGoesAfterAResourceWasNamedThatNoFactUsed) {
  Cluster c;
  c.Node("n1", "u-n1");
  for (int i = 0; i < 100; ++i) {
    c.state.vocabulary().resources.Intern("example.com/r" + std::to_string(i));
  }
  c.state.Apply(NodeRemove{.name = "n1", .uid = "u-n1"});
  EXPECT_EQ(c.Free("n1"), -1);
  EXPECT_TRUE(Audit(c.state).empty());
}

// Goal: the life of a pod: fact, decision, outcome, observation, removal. Method: free cpu after
// each step.
TEST(StateTest, APodIsChargedFromTheDecisionToItsRemoval) {
  Cluster c;
  c.Node("n1", "u-n1");
  PodUpsert pod = c.Pod("u1");
  c.state.Apply(pod);
  EXPECT_EQ(c.Free("n1"), 2000);
  c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
  EXPECT_EQ(c.Free("n1"), 1500);
  c.state.Apply(BindOutcome{.uid = "u1"});
  pod.node = "n1";
  c.state.Apply(pod);
  EXPECT_EQ(c.Free("n1"), 1500);
  EXPECT_EQ(c.state.ledger().claim(c.state.ClaimOf(c.state.FindPod("u1"))).why, ClaimWhy::kBound);
  c.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_EQ(c.Free("n1"), 2000);
  EXPECT_EQ(c.state.ledger().claims_live(), 0u);
  EXPECT_EQ(c.Ended(Cause::kOwnerDeleted), 1u);
}

// Goal: D09, "node DELETE arrives before its pods' DELETEs; node recreated with same name: pods
// lost or counted twice". Method: bound pods follow the name through removal and re-creation.
TEST(StateTest, BoundPodsFollowTheNameOfTheirNode) {
  Cluster c;
  c.Node("n1", "u-n1");
  PodUpsert pod = c.Pod("u1");
  pod.node = "n1";
  c.state.Apply(pod);
  c.state.Apply(NodeRemove{.name = "n1", .uid = "u-n1"});
  EXPECT_EQ(c.Free("n1"), -500);  // A ghost offers nothing.
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  c.Node("n1", "u-n1-again");
  EXPECT_EQ(c.Free("n1"), 1500);
  c.state.Apply(NodeRemove{.name = "n1", .uid = "u-n1"});  // The old one's removal, late.
  EXPECT_EQ(c.Free("n1"), 1500);
  c.state.Apply(NodeRemove{.name = "n1", .uid = "u-n1-again"});
  c.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_FALSE(c.state.FindNode("n1").valid());
}

// Goal: a pod bound to a node that is not known yet (kinds are independent streams) is charged once
// it is.
TEST(StateTest, APodMayBeSeenBeforeItsNode) {
  Cluster c;
  PodUpsert pod = c.Pod("u1");
  pod.node = "n1";
  c.state.Apply(pod);
  EXPECT_FALSE(c.state.nodes().present(c.state.FindNode("n1")));
  c.Node("n1", "u-n1");
  EXPECT_EQ(c.Free("n1"), 1500);
}

// Goal: A17, a pod that we assumed on one node and another scheduler bound to another: the claim
// moves, the first is free.
TEST(StateTest, AForeignBindMovesTheClaim) {
  Cluster c;
  c.Node("n1", "u-n1");
  c.Node("n2", "u-n2");
  PodUpsert pod = c.Pod("u1");
  c.state.Apply(pod);
  c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
  pod.node = "n2";
  c.state.Apply(pod);
  EXPECT_EQ(c.Free("n1"), 2000);
  EXPECT_EQ(c.Free("n2"), 1500);
  c.state.Apply(
      BindOutcome{.uid = "u1", .outcome = WriteOutcome::kConflict});  // Late: changes nothing.
  EXPECT_EQ(StageOf(c.state.pods().at(c.state.FindPod("u1"))), PodStage::kBound);
}

// Goal: every outcome of a write, by what the claim becomes. D01: a conflict or an unknown fate
// frees nothing until it was read.
TEST(StateTest, OutcomesOfABindEndTheClaimOnlyWhenTheFateIsKnown) {
  struct Row {
    WriteOutcome outcome;
    PodStage stage;
    Amount free;
    PodStage stage_after_read;
  };
  for (const Row& row :
       {Row{WriteOutcome::kDone, PodStage::kAccepted, 1500, PodStage::kAccepted},
        Row{WriteOutcome::kConflict, PodStage::kUnresolved, 1500, PodStage::kPending},
        Row{WriteOutcome::kUnknown, PodStage::kUnresolved, 1500, PodStage::kPending},
        Row{WriteOutcome::kGone, PodStage::kLost, 2000, PodStage::kPending},
        Row{WriteOutcome::kRefused, PodStage::kPending, 2000, PodStage::kPending},
        Row{WriteOutcome::kNotSent, PodStage::kPending, 2000, PodStage::kPending}}) {
    Cluster c;
    c.Node("n1", "u-n1");
    c.state.Apply(c.Pod("u1"));
    const PodId pod = c.state.FindPod("u1");
    c.state.Assume(pod, c.state.FindNode("n1"), {});
    c.state.Apply(BindOutcome{.uid = "u1", .outcome = row.outcome, .at = Instant::FromSeconds(10)});
    EXPECT_EQ(StageOf(c.state.pods().at(pod)), row.stage);
    EXPECT_EQ(c.Free("n1"), row.free);
    c.state.Apply(BindRead{.uid = "u1", .at = Instant::FromSeconds(11)});
    EXPECT_EQ(StageOf(c.state.pods().at(pod)), row.stage_after_read);
    EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  }
}

// Goal: only what somebody refused is a failure. Method: the instant before which it is not tried
// again.
TEST(StateTest, ABindThatWasNeverSentCostsNoErrorBackoff) {
  for (const WriteOutcome outcome : {WriteOutcome::kRefused, WriteOutcome::kNotSent}) {
    Cluster c;
    c.Node("n1", "u-n1");
    c.state.Apply(c.Pod("u1"));
    const PodId pod = c.state.FindPod("u1");
    c.state.Assume(pod, c.state.FindNode("n1"), {});
    c.state.Apply(BindOutcome{.uid = "u1", .outcome = outcome, .at = Instant::FromSeconds(10)});
    const bool refused = outcome == WriteOutcome::kRefused;
    EXPECT_EQ(c.state.pods().at(pod).not_before, refused ? Instant::FromSeconds(11) : Instant{});
    EXPECT_EQ(c.state.pods().at(pod).errors, refused ? 1u : 0u);
  }
}

// Goal: C02 and N02: a pod of the same name is another pod. Method: the first is never
// seen deleted.
TEST(StateTest, ASecondPodOfTheSameNameSharesNothingWithTheFirst) {
  Cluster c;
  c.Node("n1", "u-n1");
  c.state.Apply(c.Pod("u1"));
  c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
  c.state.Apply(c.Pod("u2"));
  EXPECT_FALSE(c.state.FindPod("u1").valid());
  EXPECT_EQ(c.Free("n1"), 2000);
  EXPECT_EQ(c.Ended(Cause::kOwnerReplaced), 1u);
  c.state.Apply(PodRemove{.uid = "u1"});  // Late.
  EXPECT_EQ(StageOf(c.state.pods().at(c.state.FindPod("u2"))), PodStage::kPending);
}

// Goal: a row of a pod that went is seen to be gone by who reads what a fact changed. Method: one
// is replaced by another of its name in one fact; a later pod may have its ids.
TEST(StateTest, NoRowIsGivenAgainWithinOneFact) {
  Cluster c;
  c.state.Apply(c.Pod("u1"));
  const PodId first = c.state.FindPod("u1");
  c.state.Apply(c.Pod("u2"));
  const PodId second = c.state.FindPod("u2");
  EXPECT_NE(first, second);
  EXPECT_FALSE(c.state.pods().used(first));
  EXPECT_EQ(c.state.changed_pods(), (std::vector<PodId>{first, second}));
  EXPECT_EQ(c.state.FindPodByKey("default/a"), second);
  c.state.Apply(c.Pod("u3", "default/b"));
  EXPECT_EQ(c.state.FindPod("u3"), first);
}

// Goal: at the bound, a pod that was created again under its name is taken, since the one before
// goes. Method: a state of one pod, which another can't enter.
TEST(StateTest, APodCreatedAgainNeedsNoFurtherRoom) {
  Cluster c({}, 1);
  c.state.Apply(c.Pod("u1"));
  EXPECT_FALSE(c.state.HasRoomFor(c.Pod("u2", "default/b")));
  ASSERT_TRUE(c.state.HasRoomFor(c.Pod("u2")));
  c.state.Apply(c.Pod("u2"));
  EXPECT_TRUE(c.state.FindPod("u2").valid());
  EXPECT_EQ(c.state.pods().live(), 1u);
}

// Goal: D14 and terminal is final: what ends the claim of a pod that is assumed. D17: facts of one
// uid never go back.
TEST(StateTest, DeletionOfAnAssumedPodFreesAtOnceAndFinishedIsFinal) {
  Cluster c;
  c.Node("n1", "u-n1");
  PodUpsert pod = c.Pod("u1");
  c.state.Apply(pod);
  c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
  pod.terminating = true;
  c.state.Apply(pod);
  EXPECT_EQ(c.Free("n1"), 2000);
  PodUpsert other = c.Pod("u2", "default/b");
  other.node = "n1";
  c.state.Apply(other);
  other.terminating = true;
  c.state.Apply(other);
  const NodeId n1 = c.state.FindNode("n1");
  EXPECT_EQ(c.state.ledger().nodes().releasing(kCpu, n1.value), 500);
  other.terminal = true;
  c.state.Apply(other);
  EXPECT_EQ(c.Free("n1"), 2000);
  other.terminal = other.terminating = false;
  other.node = "";
  c.state.Apply(other);
  EXPECT_EQ(StageOf(c.state.pods().at(c.state.FindPod("u2"))), PodStage::kFinished);
  EXPECT_EQ(c.Free("n1"), 2000);
}

// Goal: D20, in-place resize: the claim of a bound pod follows its charge, up and down.
TEST(StateTest, ResizedPodsResizeTheirClaim) {
  Cluster c;
  c.Node("n1", "u-n1");
  PodUpsert pod = c.Pod("u1");
  pod.node = "n1";
  c.state.Apply(pod);
  for (const Amount cpu : {700, 2500, 100}) {
    pod.charge =
        c.state.vocabulary().bundles.Intern(std::vector<ResourceAmount>{{kCpu, cpu}, {kPods, 1}});
    c.state.Apply(pod);
    EXPECT_EQ(c.Free("n1"), 2000 - cpu);
    EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  }
}

// Goal: nominations are reserved claims that follow the node's uid (A05, A07, A17). Method: reserve
// before the node is known, see it come, be replaced, be cleared.
TEST(StateTest, NominationsReserveOnTheNodeThatWasNamed) {
  Cluster c;
  PodUpsert pod = c.Pod("u1");
  pod.nominated = "n1";
  c.state.Apply(pod);
  c.Node("n1", "u-n1");
  const Viewer other{.owner = OwnerId{}};
  const auto now = [&] {
    return c.state.ledger().Now(AccountId::OfNode(c.state.FindNode("n1")), kCpu, other,
                                c.state.vocabulary().bundles);
  };
  EXPECT_EQ(now(), 1500);
  EXPECT_EQ(c.Free("n1"), 2000);
  c.Node("n1", "u-n1-again");
  EXPECT_EQ(now(), 2000);
  EXPECT_EQ(c.Ended(Cause::kNodeReplaced), 1u);
  c.state.Apply(pod);  // The same nomination, seen again, is not a new promise.
  EXPECT_EQ(now(), 2000);
  pod.nominated = "";
  c.state.Apply(pod);
  pod.nominated = "n1";
  c.state.Apply(pod);
  EXPECT_EQ(now(), 1500);
  c.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_EQ(now(), 2000);
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
}

// Goal: a scheduler that saw the nominated node go, and one that started since, differ in what is
// promised and in nothing that is given away. Method: who sees room where, that the holder gets it
// either way, and that they agree again once the nomination is withdrawn or kept.
TEST(StateTest, ANominationToANodeThatWasReplacedIsVoidOnlyForWhoSawIt) {
  Cluster live;
  live.Node("n1", "u-n1");
  PodUpsert pod = live.Pod("u1");
  pod.nominated = "n1";
  pod.priority = 5;
  live.state.Apply(pod);
  live.Node("n1", "u-again");
  Cluster restarted;
  restarted.Node("n1", "u-again");
  restarted.state.Apply(pod);
  EXPECT_EQ(AuditAgainst(live.state, restarted.state), std::vector<std::string>());
  const auto now = [](const Cluster& c, int32_t priority) {
    return c.state.ledger().Now(AccountId::OfNode(c.state.FindNode("n1")), kCpu,
                                {.owner = OwnerId{}, .priority = priority},
                                c.state.vocabulary().bundles);
  };
  EXPECT_EQ(now(live, 5), 2000);
  EXPECT_EQ(now(restarted, 5), 1500);
  EXPECT_EQ(now(restarted, 6), 2000);
  for (const bool withdrawn : {false, true}) {
    Cluster a = live;
    Cluster b = restarted;
    for (Cluster* c : {&a, &b}) {
      PodUpsert last = pod;
      if (withdrawn) {
        last.nominated = "";
      } else {
        c->state.Assume(c->state.FindPod("u1"), c->state.FindNode("n1"), {});
        last.node = "n1";
      }
      c->state.Apply(last);
      EXPECT_EQ(Audit(c->state), std::vector<std::string>());
      EXPECT_EQ(now(*c, 5), withdrawn ? 2000 : 1500);
    }
  }
}

// Goal: what a pod is charged in the queue tree is no claim of its on a node, and ends with it.
// Method: a charge made as quota will be, with the pod's whole life around it.
TEST(StateTest, AClaimInTheTreeIsNotThePodsClaimOnANode) {
  Cluster c;
  c.Node("n1", "u-n1");
  for (const char* name : {"a", "b"}) {
    c.state.Apply(QueueUpsert{.name = name, .uid = name, .quotas = {{.resource = kCpu}}});
  }
  PodUpsert pod = c.Pod("u1");
  c.state.Apply(pod);
  const PodId id = c.state.FindPod("u1");
  const auto charge = [&](uint32_t row) {
    Transaction t = c.state.Begin();
    t.Add({.owner = c.state.OwnerOf(id),
           .account = AccountId::OfTree(row),
           .bundle = c.state.pods().at(id).charge,
           .why = ClaimWhy::kAdmitted});
    t.Commit(Cause::kObserved);
  };
  charge(0);
  EXPECT_FALSE(c.state.ClaimOf(id).valid());
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  c.state.Assume(id, c.state.FindNode("n1"), {});
  charge(1);  // Listed first.
  ASSERT_TRUE(c.state.ClaimOf(id).valid());
  EXPECT_EQ(c.state.ledger().claim(c.state.ClaimOf(id)).account,
            AccountId::OfNode(c.state.FindNode("n1")));
  pod.node = "n1";
  c.state.Apply(pod);
  EXPECT_EQ(c.Free("n1"), 1500);
  EXPECT_EQ(c.state.ledger().tree().held(kCpu, 1), 500);
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  c.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_EQ(c.state.ledger().claims_live(), 0u);
  EXPECT_EQ(c.state.ledger().tree().held(kCpu, 1), 0);
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
}

// Goal: applying a fact twice changes nothing that anyone waits for (C21: relists, duplicates).
// Method: the touch log stays.
TEST(StateTest, RepeatedFactsTouchNothing) {
  Cluster c;
  c.Node("n1", "u-n1");
  PodUpsert pod = c.Pod("u1");
  pod.node = "n1";
  c.state.Apply(pod);
  const uint64_t end = c.state.touches().end();
  c.Node("n1", "u-n1");
  c.state.Apply(pod);
  EXPECT_EQ(c.state.touches().end(), end);
}

// Goal: observing what was decided wakes nobody: nothing was freed. Nor does keeping a promise,
// but those who may evict who is there now.
TEST(StateTest, ObservingADecisionIsNoEventForTheNode) {
  Cluster c;
  c.Node("n1", "u-n1");
  PodUpsert pod = c.Pod("u1");
  pod.nominated = "n1";
  c.state.Apply(pod);
  const uint64_t before = c.state.touches().end();
  c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
  ASSERT_EQ(c.state.touches().end(), before + 1);
  EXPECT_EQ(c.state.touches().at(before).kinds, kTouchTaken | kTouchKept);
  pod.node = "n1";
  c.state.Apply(pod);
  EXPECT_EQ(c.state.touches().end(), before + 1);
}

// ---- Histories -------------------------------------------------------------------------------

struct Draw {
  static bool OneIn(int n) { return *rc::gen::inRange(0, n) == 0; }
  static std::string NodeName() { return "n" + std::to_string(*rc::gen::inRange(0, 4)); }
  static int Pod() { return *rc::gen::inRange(0, 4); }
};

// The pod takes all that is held by pods of lower priority on the node, if that makes room for it.
void Preempt(Cluster& c, PodId pod, NodeId node) {
  const Pod& row = c.state.pods().at(pod);
  Amounts left(c, node, {.owner = c.state.OwnerOf(pod), .priority = row.priority});
  std::vector<PodId> victims;
  for (ClaimId id = c.state.ledger().nodes().first_claim(node.value); id.valid();
       id = c.state.ledger().claim(id).next_in_account) {
    const Claim& claim = c.state.ledger().claim(id);
    if (claim.state != ClaimState::kHeld || claim.priority >= row.priority) continue;
    const PodId victim = c.state.FindPod(c.state.UidOf(claim.owner));
    if (c.state.pods().at(victim).terminating) continue;
    victims.push_back(victim);
    left.Add(claim.bundle);
  }
  if (left.Hold(row.charge)) static_cast<void>(c.state.Promise(pod, node, {}, victims));
}

// Pod i of a generation, anywhere and of any kind.
PodUpsert DrawPod(Cluster& c, int i, int generation) {
  PodUpsert pod =
      c.Pod(std::to_string(i) + "-" + std::to_string(generation), "default/" + std::to_string(i));
  pod.creation = Instant::FromSeconds(generation);
  pod.priority = *rc::gen::inRange(0, 3);
  if (Draw::OneIn(3)) pod.node = Draw::NodeName();
  if (Draw::OneIn(3)) pod.nominated = Draw::NodeName();
  pod.gated = Draw::OneIn(6);
  pod.terminating = Draw::OneIn(8);
  pod.terminal = Draw::OneIn(10);
  pod.ours = !Draw::OneIn(6);
  if (Draw::OneIn(4)) {
    pod.charge = c.state.vocabulary().bundles.Intern(
        std::vector<ResourceAmount>{{kCpu, Amount{100} * *rc::gen::inRange(1, 9)}, {kPods, 1}});
  }
  return pod;
}

// One random fact, decision or outcome. Pod i of generation g has uid "i-g" and key "default/i".
void Step(Cluster& c, std::map<int, int>& generation, int64_t time) {
  const int i = Draw::Pod();
  const std::string uid = std::to_string(i) + "-" + std::to_string(generation[i]);
  switch (*rc::gen::inRange(0, 14)) {
    case 0:
      return c.Node(Draw::NodeName(), "u" + std::to_string(*rc::gen::inRange(0, 2)),
                    *rc::gen::inRange(0, 4) * 700);
    case 1:
      return c.state.Apply(NodeRemove{.name = Draw::NodeName(), .uid = Draw::OneIn(2) ? "u0" : ""});
    case 2:
      ++generation[i];
      [[fallthrough]];
    case 3:
    case 4:
      return c.state.Apply(DrawPod(c, i, generation[i]));
    case 5:
      return c.state.Apply(PodRemove{.uid = uid});
    case 6: {
      const PodId pod = c.state.FindPod(uid);
      const NodeId n = c.state.FindNode(Draw::NodeName());
      if (!pod.valid() || !n.valid() || !c.state.nodes().present(n)) return;
      if (StageOf(c.state.pods().at(pod)) != PodStage::kPending) return;
      const Viewer viewer{.owner = c.state.OwnerOf(pod),
                          .priority = c.state.pods().at(pod).priority};
      for (const ResourceAmount& a :
           c.state.vocabulary().bundles.View(c.state.pods().at(pod).charge)) {
        if (c.state.ledger().Now(AccountId::OfNode(n), a.resource, viewer,
                                 c.state.vocabulary().bundles) < a.amount)
          return;
      }
      return c.state.Assume(pod, n, {});
    }
    case 7:
      return c.state.Apply(
          BindOutcome{.uid = uid,
                      .outcome = static_cast<WriteOutcome>(*rc::gen::inRange(0, 5)),
                      .at = Instant::FromSeconds(time)});
    case 8:
    case 9: {
      const PodId pod = c.state.FindPod(uid);
      const NodeId n = c.state.FindNode(Draw::NodeName());
      if (!pod.valid() || !n.valid() || !c.state.nodes().present(n)) return;
      if (StageOf(c.state.pods().at(pod)) == PodStage::kPending) Preempt(c, pod, n);
      return;
    }
    case 10:
      if (const PodId pod = c.state.FindPod(uid); pod.valid())
        c.state.Revoke(pod, Cause::kRevoked, ReasonKind::kPromiseRoomTaken);
      return;
    case 11:
      return c.state.Apply(PreemptionRefused{.uid = uid, .at = Instant::FromSeconds(time)});
    case 12: {
      const PodId pod = c.state.FindPod(uid);
      if (pod.valid() && c.state.pods().at(pod).terminating) c.state.NoteOverdue(pod);
      return;
    }
    default:
      return c.state.Apply(BindRead{.uid = uid, .at = Instant::FromSeconds(time)});
  }
}

std::map<std::string, PodStage> Stages(const State& state) {
  std::map<std::string, PodStage> stages;
  for (uint32_t i = 0; i < state.pods().size(); ++i) {
    if (state.pods().used(PodId{i})) {
      stages[std::string(state.UidOf(state.pods().at(PodId{i}).uid))] =
          StageOf(state.pods().at(PodId{i}));
    }
  }
  return stages;
}

// Goal: whatever the order of facts, decisions and outcomes, the ledger is what the rows call for,
// and no pod jumps where its lifecycle has no arrow. Method: random histories (nodes come, go and
// return under other uids; pods are re-created under the same name; facts repeat, skip and go
// back), with the audit and the table of jumps after every step.
RC_GTEST_PROP(StateTest, TheAuditAgreesAfterEveryStepOfAnyHistory, ()) {
  Cluster c;
  std::map<int, int> generation;
  const int steps = *rc::gen::inRange(0, 600);
  for (int i = 0; i < steps; ++i) {
    const auto before = Stages(c.state);
    Step(c, generation, i);
    const auto found = Audit(c.state);
    if (!found.empty()) RC_FAIL(found.front());
    for (const auto& [uid, stage] : Stages(c.state)) {
      const auto earlier = before.find(uid);
      if (earlier != before.end()) RC_ASSERT(MayJump(earlier->second, stage));
    }
  }
}

// Goal: a copy is a fork. Method: two copies take the same further steps and end in equal hashes;
// the original stays.
RC_GTEST_PROP(StateTest, CopiesGoOnEquallyAndApart, ()) {
  Cluster c;
  std::map<int, int> generation;
  for (int i = 0; i < 40; ++i) Step(c, generation, i);
  const auto hash = [](const State& state) {
    Hasher hasher;
    state.AddTo(hasher);
    return hasher.value();
  };
  const uint64_t before = hash(c.state);
  Cluster a = c;
  Cluster b = c;
  const PodUpsert more = c.Pod("late", "default/late");
  a.state.Apply(more);
  b.state.Apply(more);
  RC_ASSERT(hash(a.state) == hash(b.state));
  RC_ASSERT(hash(c.state) == before);
  RC_ASSERT(hash(a.state) != before);
}

// Goal: what readers of the touch log have yet to see is in the hash. Method: the same node touched
// by other kinds.
TEST(TouchLogTest, ItsHashHoldsWhatItTells) {
  const auto hash = [](NodeId node, TouchKinds kinds) {
    TouchLog log;
    log.Add(node, kinds);
    Hasher hasher;
    log.AddTo(hasher);
    return hasher.value();
  };
  EXPECT_NE(hash(NodeId{0}, kTouchFreed), hash(NodeId{0}, kTouchTaken));
  EXPECT_NE(hash(NodeId{0}, kTouchFreed), hash(NodeId{1}, kTouchFreed));
  EXPECT_EQ(hash(NodeId{1}, kTouchFreed), hash(NodeId{1}, kTouchFreed));
}

// Goal: the audit can fail. Method: each planted bug, the shortest history that shows it.
TEST(AuditTest, FindsAClaimThatOutlivesItsPod) {
  Cluster c({.keep_claim_of_deleted_pod = true});
  c.Node("n1", "u-n1");
  PodUpsert pod = c.Pod("u1");
  pod.node = "n1";
  c.state.Apply(pod);
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  c.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_FALSE(Audit(c.state).empty());
}

TEST(AuditTest, FindsALedgerKeyedByName) {
  Cluster c({.ledger_by_name = true});
  c.Node("n1", "u-n1");
  c.state.Apply(c.Pod("u1"));
  c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
  c.state.Apply(c.Pod("u2"));
  EXPECT_FALSE(Audit(c.state).empty());
}

// Goal: a promise is on the machine that it was made on. Method: one of another uid, which nothing
// but a commit past the facts can make.
TEST(AuditTest, FindsAPromiseOnAnotherNodeOfThatName) {
  Cluster c;
  c.Node("n1", "u-n1");
  c.Node("n2", "u-n2");
  PodUpsert pod = c.Pod("u1");
  pod.nominated = "n1";
  c.state.Apply(pod);
  EXPECT_EQ(Audit(c.state), std::vector<std::string>());
  const ClaimId claim = c.state.ClaimOf(c.state.FindPod("u1"));
  Claim other = c.state.ledger().claim(claim);
  other.account_uid = c.state.nodes().uid(c.state.FindNode("n2"));
  Transaction t = c.state.Begin();
  t.Change(claim, other);
  t.Commit(Cause::kObserved);
  EXPECT_EQ(Audit(c.state),
            std::vector<std::string>{"pod default/a: promised on another node than the one there"});
}

// Goal: the comparison with a state rebuilt from objects sees what the rows can't: a missed fact.
// Method: drop one.
TEST(AuditTest, FindsWhatAFreshListWouldShow) {
  Cluster live;
  live.Node("n1", "u-n1");
  PodUpsert pod = live.Pod("u1");
  live.state.Apply(pod);
  Cluster rebuilt;
  rebuilt.Node("n1", "u-n1");
  rebuilt.state.Apply(pod);
  EXPECT_EQ(AuditAgainst(live.state, rebuilt.state), std::vector<std::string>());
  live.state.Assume(live.state.FindPod("u1"), live.state.FindNode("n1"), {});
  EXPECT_EQ(AuditAgainst(live.state, rebuilt.state),
            std::vector<std::string>());  // A decision on its way.
  rebuilt.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_EQ(AuditAgainst(live.state, rebuilt.state).size(), 1u);
}

// Pod u1 of a class that differs from its own in one respect.
void ChangeClass(Cluster& c, void (*change)(Vocabulary&, ClassSpec&)) {
  ClassSpec spec = c.state.vocabulary().classes.at(c.class_id);
  change(c.state.vocabulary(), spec);
  PodUpsert pod = c.Pod("u1");
  pod.class_id = c.state.vocabulary().classes.Intern(spec);
  c.state.Apply(pod);
}

void ChangePod(Cluster& c, void (*change)(Vocabulary&, PodUpsert&)) {
  PodUpsert pod = c.Pod("u1");
  change(c.state.vocabulary(), pod);
  c.state.Apply(pod);
}

NameListId ListOf(Vocabulary& v, const std::string& name) {
  return v.name_lists.Intern(std::vector<NameId>{v.names.Intern(name)});
}

SelectorSpec PoolIn(Vocabulary& v, const std::vector<std::string>& pools) {
  Requirement r{.key = v.names.Intern("pool")};
  for (const std::string& pool : pools) r.values.push_back(v.names.Intern(pool));
  return {.all = {r}, .has_terms = true, .terms = {{.requirements = {r}}, {.never = true}}};
}

// Goal: each kind of fact counts. Method: one state misses one fact of a node or a pod; Audit sees
// nothing wrong with it.
TEST(AuditTest, FindsEachKindOfFactThatWasMissed) {
  using Change = void (*)(Cluster&);
  const std::pair<const char*, Change> rows[] = {
      {"node n2: an object that is not known", [](Cluster& c) { c.Node("n2", "u-n2"); }},
      {"cpu=1000", [](Cluster& c) { c.Node("n1", "u-n1", 1000); }},
      {"known, but there is no such object",
       [](Cluster& c) { c.state.Apply(NodeRemove{.name = "n1", .uid = "u-n1"}); }},
      {"unschedulable true",
       [](Cluster& c) {
         c.state.Apply(NodeUpsert{.name = "n1",
                                  .uid = "u-n1",
                                  .allocatable = {{kCpu, 2000}, {kPods, 10}},
                                  .unschedulable = true});
       }},
      {"label pool=a",
       [](Cluster& c) {
         const NameId key = c.state.vocabulary().names.Intern("pool");
         const NameId value = c.state.vocabulary().names.Intern("a");
         c.state.Apply(NodeUpsert{.name = "n1",
                                  .uid = "u-n1",
                                  .allocatable = {{kCpu, 2000}, {kPods, 10}},
                                  .labels = {{key, value}}});
       }},
      {"gated true",
       [](Cluster& c) {
         PodUpsert pod = c.Pod("u1");
         pod.gated = true;
         c.state.Apply(pod);
       }},
      {"on 'n1'",
       [](Cluster& c) {
         PodUpsert pod = c.Pod("u1");
         pod.node = "n1";
         c.state.Apply(pod);
       }},
      {"model 't4'",
       [](Cluster& c) {
         c.state.Apply(NodeUpsert{.name = "n1",
                                  .uid = "u-n1",
                                  .allocatable = {{kCpu, 2000}, {kPods, 10}},
                                  .gpu_model = c.state.vocabulary().names.Intern("t4")});
       }},
      {"created 7",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary&, PodUpsert& pod) { pod.creation = Instant{7}; });
       }},
      {"nominated to 'n9'",
       [](Cluster& c) { ChangePod(c, [](Vocabulary&, PodUpsert& pod) { pod.nominated = "n9"; }); }},
      {"pinned 2 to 'n1'",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary& v, PodUpsert& pod) {
           pod.pin = {PinKind::kAffinity, v.names.Intern("n1")};
         });
       }},
      {"terminal true",
       [](Cluster& c) { ChangePod(c, [](Vocabulary&, PodUpsert& pod) { pod.terminal = true; }); }},
      {"of group 'ns/g' as 'worker'",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary& v, PodUpsert& pod) {
           pod.group = "ns/g";
           pod.role = v.names.Intern("worker");
         });
       }},
      {"succeeded true",
       [](Cluster& c) { ChangePod(c, [](Vocabulary&, PodUpsert& pod) { pod.succeeded = true; }); }},
      {"preempts false",
       [](Cluster& c) { ChangePod(c, [](Vocabulary&, PodUpsert& pod) { pod.preempts = false; }); }},
      {"disrupted true",
       [](Cluster& c) { ChangePod(c, [](Vocabulary&, PodUpsert& pod) { pod.disrupted = true; }); }},
      {"started 7",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary&, PodUpsert& pod) { pod.start = Instant{7}; });
       }},
      {"terminating true until 7",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary&, PodUpsert& pod) {
           pod.terminating = true;
           pod.deletion_deadline = Instant{7};
         });
       }},
      {"labels (ns k v )",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary&, PodUpsert& pod) {
           pod.labels =
               PodLabelsText("ns", std::vector<std::pair<std::string, std::string>>{{"k", "v"}});
         });
       }},
      {"budget a/b: an object that is not known",
       [](Cluster& c) { c.state.Apply(BudgetUpsert{.key = "a/b"}); }},
      {"charges cpu=7",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary& v, PodUpsert& pod) {
           pod.charge = v.bundles.Intern(std::vector<ResourceAmount>{{kCpu, 7}});
         });
       }},
      {"scored as cpu=7",
       [](Cluster& c) {
         ChangePod(c, [](Vocabulary& v, PodUpsert& pod) {
           pod.charge_scoring = v.bundles.Intern(std::vector<ResourceAmount>{{kCpu, 7}});
         });
       }},
      {"on [pool 0 (a b)] and one of [pool 0 (a b) or never ]",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary& v, ClassSpec& spec) {
           spec.selector = v.selectors.Intern(PoolIn(v, {"b", "a"}));
         });
       }},
      {"prefers (3 for [pool 0 (a)]",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary& v, ClassSpec& spec) {
           const SelectorId term = v.selectors.Intern(PoolIn(v, {"a"}));
           spec.preferences = v.preferences.Intern(std::vector<Preference>{{term, 3}});
         });
       }},
      {"tolerates ('team' 1 '':3)",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary& v, ClassSpec& spec) {
           const Toleration t{.key = v.names.Intern("team"), .op = TolerationOp::kExists};
           spec.tolerations = v.tolerations.Intern(std::vector<Toleration>{t});
         });
       }},
      {"features [f]",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary& v, ClassSpec& spec) { spec.features = ListOf(v, "f"); });
       }},
      {"models [t4]",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary& v, ClassSpec& spec) { spec.models = ListOf(v, "t4"); });
       }},
      {"names []",
       [](Cluster& c) {
         ChangeClass(c,
                     [](Vocabulary& v, ClassSpec& spec) { spec.names = v.name_lists.Intern({}); });
       }},
      {"for 'other'",
       [](Cluster& c) {
         ChangeClass(
             c, [](Vocabulary& v, ClassSpec& spec) { spec.profile = v.names.Intern("other"); });
       }},
      {"for '' on [pool 0 (a)]",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary& v, ClassSpec& spec) {
           spec.added = v.selectors.Intern(PoolIn(v, {"a"}));
         });
       }},
      {"at least memory=7",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary& v, ClassSpec& spec) {
           const std::vector<ResourceAmount> all(v.bundles.View(spec.requests).begin(),
                                                 v.bundles.View(spec.requests).end());
           const BundleId asked = v.bundles.Intern(std::vector<ResourceAmount>{{kMemory, 7}});
           spec.requests = v.bundles.Intern(all, {}, asked);
         });
       }},
      {"2 devices and 0 milli",
       [](Cluster& c) {
         ChangeClass(c, [](Vocabulary&, ClassSpec& spec) { spec.gpu.devices_count = 2; });
       }},
  };
  for (const auto& [word, change] : rows) {
    Cluster live;
    live.Node("n1", "u-n1");
    live.state.Apply(live.Pod("u1"));
    Cluster rebuilt = live;
    change(rebuilt);
    EXPECT_EQ(Audit(live.state), std::vector<std::string>());
    const std::vector<std::string> found = AuditAgainst(live.state, rebuilt.state);
    ASSERT_FALSE(found.empty()) << word;
    std::string all;
    for (const std::string& line : found) all += line + "\n";
    EXPECT_NE(all.find(word), std::string::npos) << all;
  }
}

void ChangeWorkload(Cluster& c, void (*change)(Vocabulary&, WorkloadUpsert&)) {
  Vocabulary& v = c.state.vocabulary();
  WorkloadUpsert workload{.uid = "w1", .key = "ns/w", .local_queue = "ns/q", .priority = 3};
  workload.slots = {{.name = v.names.Intern("main"), .class_id = c.class_id, .count = 2}};
  change(v, workload);
  c.state.Apply(workload);
}

// Goal: as above, of what quota is of and who asks for it.
TEST(AuditTest, FindsEachKindOfFactOfQuotaThatWasMissed) {
  using Change = void (*)(Cluster&);
  const std::pair<const char*, Change> rows[] = {
      {"flavor spot: an object that is not known",
       [](Cluster& c) { c.state.Apply(FlavorUpsert{.name = "spot", .uid = "f2"}); }},
      {"topology 'racks'",
       [](Cluster& c) {
         c.state.Apply(FlavorUpsert{.name = "default", .uid = "f1", .topology = "racks"});
       }},
      {"flavor topology racks: an object",
       [](Cluster& c) { c.state.Apply(TopologyUpsert{.name = "racks", .uid = "t1"}); }},
      {"of team-b, barred 0",
       [](Cluster& c) {
         c.state.Apply(LocalQueueUpsert{.uid = "lq", .key = "ns/q", .cluster_queue = "team-b"});
       }},
      {"known, but there is no such object",
       [](Cluster& c) { c.state.Apply(WorkloadRemove{.uid = "w1"}); }},
      {"priority 4",
       [](Cluster& c) {
         ChangeWorkload(c, [](Vocabulary&, WorkloadUpsert& w) { w.priority = 4; });
       }},
      {"main: 3 less 0",
       [](Cluster& c) {
         ChangeWorkload(c, [](Vocabulary&, WorkloadUpsert& w) { w.slots[0].count = 3; });
       }},
      {"unhealthy [n1]",
       [](Cluster& c) {
         ChangeWorkload(
             c, [](Vocabulary& v, WorkloadUpsert& w) { w.unhealthy = {v.names.Intern("n1")}; });
       }},
      {"reserved true at 5",
       [](Cluster& c) {
         ChangeWorkload(c, [](Vocabulary&, WorkloadUpsert& w) {
           w.status.reserved = true;
           w.status.reserved_at = Instant{5};
         });
       }},
      {"0: 2 of default by cpu=500",
       [](Cluster& c) {
         ChangeWorkload(c, [](Vocabulary& v, WorkloadUpsert& w) {
           const ResourceAmount amount{.resource = kCpu, .amount = 500};
           w.status.reserved = true;
           w.reserved = {.cluster_queue = v.names.Intern("team-a"),
                         .charges = {{.flavor = v.names.Intern("default"),
                                      .count = 2,
                                      .amounts = v.bundles.Intern({&amount, 1})}}};
         });
       }},
  };
  for (const auto& [word, change] : rows) {
    Cluster live;
    live.state.Apply(FlavorUpsert{.name = "default", .uid = "f1"});
    live.state.Apply(LocalQueueUpsert{.uid = "lq", .key = "ns/q", .cluster_queue = "team-a"});
    ChangeWorkload(live, [](Vocabulary&, WorkloadUpsert&) {});
    Cluster rebuilt = live;
    EXPECT_EQ(AuditAgainst(live.state, rebuilt.state), std::vector<std::string>());
    change(rebuilt);
    const std::vector<std::string> found = AuditAgainst(live.state, rebuilt.state);
    ASSERT_EQ(found.size(), 1u) << word;
    EXPECT_NE(found.front().find(word), std::string::npos) << found.front();
  }
}

// Goal: ids, given in the order in which things are met, make no difference. Method: two states are
// told the same in another order.
TEST(AuditTest, ComparesNamesAndNotIds) {
  const auto told = [](bool otherwise) {
    Cluster c;
    Vocabulary& v = c.state.vocabulary();
    if (otherwise) {
      for (const char* name : {"team", "zone", "b", "a", "pool", "n1"}) v.names.Intern(name);
      c.state.Apply(c.Pod("u0", "default/first"));
      c.state.Apply(PodRemove{.uid = "u0"});
    }
    ClassSpec spec = v.classes.at(c.class_id);
    const SelectorSpec pools = PoolIn(v, {"a", "b"});
    spec.selector = v.selectors.Intern(pools);
    spec.preferences =
        v.preferences.Intern(std::vector<Preference>{{v.selectors.Intern(PoolIn(v, {"a"})), 3}});
    spec.models = ListOf(v, "t4");
    NodeUpsert node{.name = "n1", .uid = "u-n1", .allocatable = {{kCpu, 2000}}};
    for (const char* key : {"zone", "pool"})
      node.labels.push_back({v.names.Intern(key), v.names.Intern("a")});
    c.state.Apply(node);
    PodUpsert pod = c.Pod("u1");
    pod.class_id = v.classes.Intern(spec);
    pod.node = "n1";
    c.state.Apply(pod);
    return c;
  };
  EXPECT_EQ(AuditAgainst(told(false).state, told(true).state), std::vector<std::string>());
}

}  // namespace
}  // namespace berth::model
