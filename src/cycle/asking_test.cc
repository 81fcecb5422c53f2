// Goal: a pod that extenders are asked about goes where they permit and it fits now, by their scores
// and the scheduler's; what they said of another pod, another version of it or another question
// counts for nothing; nobody waits for ever. Method: plans of small clusters, answers by hand;
// random histories with the audit and the naive look.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/why.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Lines = std::vector<std::string>;
using Ends = model::ExternalVerdict::End;

constexpr uint32_t kQueriesMax = 2;

class Asking : public ::testing::Test {
 protected:
  struct Said {
    std::string node;
    int64_t score = 0;  // Permitted.
    std::string why;    // Refused, unless it is empty.
    bool unresolvable = false;
  };
  ~Asking() override {
    EXPECT_EQ(model::Audit(engine_.state()), Lines{});
    EXPECT_EQ(engine_.CountMissedWakes(), 0u);
    EXPECT_EQ(engine_.counters().missed_wakes, 0u);
  }
  void Node(const std::string& name, int64_t cpu = 1000) {
    engine_.Apply(FactsOf(engine_.vocabulary(), TestNode{.name = name, .cpu = cpu}));
  }
  void Put(TestPod pod, const std::string& node = "") {
    pod.node = node;
    engine_.Apply(FactsOf(engine_.vocabulary(), pod));
  }
  void Ask(TestPod pod) {
    pod.asks = true;
    Put(std::move(pod));
  }
  // "pod -> node" of each binding, "pod ? nodes" of each query.
  Lines Cycle(Duration later = Duration::Milliseconds(10)) {
    now_ = now_ + later;
    plan_ = engine_.Cycle(now_);
    Lines out;
    const model::State& state = engine_.state();
    const auto pod = [&](model::PodId id) {
      return std::string(state.KeyOf(state.pods().at(id).key).substr(8));
    };
    for (const model::BindDecision& bind : plan_.binds)
      out.push_back(pod(bind.pod) + " -> " + std::string(state.NameOf(bind.node_name)));
    for (const model::ExternalQuery& query : plan_.queries) {
      std::string line = pod(query.pod) + " ?";
      for (const model::NodeId node : query.nodes)
        line += " " + std::string(state.NameOf(state.nodes().name(node)));
      for (const model::NodeVictims& one : query.victims) {
        line += " " + std::string(state.NameOf(one.node)) + " without";
        for (const model::OwnerId uid : one.pods) line += " " + pod(state.pods().FindUid(uid));
      }
      out.push_back(std::move(line));
      queries_[pod(query.pod)] = query.query;
    }
    return out;
  }
  void Answer(const std::string& pod, const std::vector<Said>& said, Ends end = Ends::kAnswered) {
    model::ExternalVerdict fact{
        .uid = "uid-" + pod, .query = queries_.at(pod), .end = end, .at = now_};
    model::Vocabulary& v = engine_.vocabulary();
    for (const Said& one : said) {
      fact.nodes.push_back({.node = v.names.Intern(one.node),
                            .permitted = one.why.empty(),
                            .unresolvable = one.unresolvable,
                            .score = one.score});
      if (!one.why.empty()) fact.nodes.back().why = v.names.Intern(one.why);
    }
    engine_.Apply(fact);
  }
  using Victims = std::vector<std::pair<std::string, std::vector<std::string>>>;
  // By node, of those that may be evicted.
  void AnswerVictims(const std::string& pod, const Victims& said, Ends end = Ends::kAnswered) {
    model::ExternalVerdict fact{.uid = "uid-" + pod,
                                .query = queries_.at(pod),
                                .end = end,
                                .about_victims = true,
                                .at = now_};
    for (const auto& [node, pods] : said) {
      fact.victims.push_back({.node = engine_.vocabulary().names.Intern(node), .uids = {}});
      for (const std::string& victim : pods) fact.victims.back().uids.push_back("uid-" + victim);
    }
    engine_.Apply(fact);
  }
  // "node: victims" of the last cycle's evictions.
  [[nodiscard]] Lines Evicted() const {
    Lines out;
    const model::State& state = engine_.state();
    for (const model::PreemptDecision& one : plan_.preemptions) {
      out.push_back(std::string(state.NameOf(one.node_name)) + ":");
      for (const auto& victim : one.victims)
        out.back() += " " + std::string(state.KeyOf(state.pods().at(victim.pod).key).substr(8));
    }
    return out;
  }
  [[nodiscard]] std::vector<model::Reason> Why(const std::string& pod) const {
    return WhyNot(engine_.state(), engine_.evaluator(), engine_.state().FindPod("uid-" + pod))
        .refusal.reasons;
  }
  // Whom the last cycle told why they wait.
  [[nodiscard]] Lines Refused() const {
    Lines out;
    for (const model::PodRefused& refused : plan_.refused) {
      for (const model::Reason& reason : plan_.refusals[refused.refusal].reasons)
        out.push_back(model::Print(reason, engine_.state()));
    }
    return out;
  }

  Engine engine_{{.preemption = true, .queries_max = kQueriesMax}};
  model::Plan plan_;
  Instant now_ = Instant::FromSeconds(1000);
  std::map<std::string, uint64_t> queries_;
};

TEST_F(Asking, ThePodWaitsForTheVerdictAndGoesWhereTheScoresAddUpToMost) {
  Node("n1");
  Node("n2", 2000);  // Emptier: the scheduler's own choice.
  Node("n3", 50);    // Too small, and not asked about.
  Ask({.name = "p"});
  Put({.name = "q"});
  EXPECT_THAT(Cycle(), ElementsAre("q -> n2", "p ? n1 n2"));
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_TRUE(engine_.Explain(engine_.state().FindPod("uid-p")).asked);
  Answer("p", {{.node = "n1", .score = 100}, {.node = "n2", .score = 10}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n1"));
  EXPECT_EQ(plan_.binds[0].feasible_count, 2u);
  Ask({.name = "r"});
  EXPECT_THAT(Cycle(), ElementsAre("r ? n1 n2"));
  Answer("r", {{.node = "n1"}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), ElementsAre("r -> n2"));
}

TEST_F(Asking, ARefusedNodeTellsTheExtendersWordsAndAPassedOverOneTheCommonOnes) {
  for (const char* name : {"n1", "n2", "n3"}) Node(name);
  Ask({.name = "p"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1 n2 n3"));
  Answer("p", {{.node = "n1", .why = "no card"}, {.node = "n2", .why = "no card"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Refused(),
              ElementsAre("1 refused by an extender ()!", "2 refused by an extender (no card)"));
}

// Nothing overcommits by an answer about a past: the room went to another meanwhile.
TEST_F(Asking, APermittedNodeThatIsFullByNowIsNone) {
  Node("n1", 100);
  Node("n2", 100);
  Ask({.name = "p"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1 n2"));
  Put({.name = "q"});
  EXPECT_THAT(Cycle(), ElementsAre("q -> n1"));
  Answer("p", {{.node = "n1", .score = 100}, {.node = "n2", .why = "no"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Refused(), ElementsAre("1 insufficient cpu (at least 100 short)",
                                     "1 refused by an extender (no)"));
  // Another that fits is asked about, with those that were refused.
  Node("n3", 100);
  EXPECT_THAT(Cycle(), ElementsAre("p ? n2 n3"));
}

TEST_F(Asking, OfAPodThatLooksOtherwiseByNowNothingIsTaken) {
  Node("n1");
  Ask({.name = "p"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Ask({.name = "p", .looks = 2});
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n1"));
  // The same again changes nothing.
  Answer("p", {{.node = "n1", .why = "late"}});
  EXPECT_THAT(Cycle(), IsEmpty());
}

TEST_F(Asking, WhatWasPermittedLongAgoIsAskedAnew) {
  Node("n1");
  Ask({.name = "p"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(Duration::Seconds(11)), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(Duration::Seconds(9)), ElementsAre("p -> n1"));
}

TEST_F(Asking, ADeletedPodsQueryIsOverAndMakesRoomForOthers) {
  Node("n1");
  for (const char* name : {"p1", "p2", "p3"}) Ask({.name = name});
  EXPECT_THAT(Cycle(), ElementsAre("p1 ? n1", "p2 ? n1"));
  EXPECT_EQ(engine_.wake_at(), Instant::Never());
  engine_.Apply(model::PodRemove{.uid = "uid-p1"});
  EXPECT_EQ(engine_.wake_at(), Instant{});
  EXPECT_THAT(Cycle(), ElementsAre("p3 ? n1"));
  Answer("p1", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), IsEmpty());
}

TEST_F(Asking, WhoIsRefusedAgainAndAgainTakesNobodysTurn) {
  Node("n1");
  Ask({.name = "old1", .created = 1});
  Ask({.name = "old2", .created = 1});
  EXPECT_THAT(Cycle(), ElementsAre("old1 ? n1", "old2 ? n1"));
  Answer("old1", {});
  Answer("old2", {});
  EXPECT_THAT(Cycle(), IsEmpty());
  for (const char* name : {"old3", "old4"}) Ask({.name = name, .created = 2});
  EXPECT_THAT(Cycle(), ElementsAre("old3 ? n1", "old4 ? n1"));
  Ask({.name = "new", .created = 9});
  // Those that were refused are due, too, and wait for their turn.
  EXPECT_THAT(Cycle(Duration::Seconds(6)), IsEmpty());
  Answer("old3", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("old3 -> n1", "new ? n1"));
  Ask({.name = "important", .priority = 5, .created = 10});
  EXPECT_THAT(Cycle(), IsEmpty());
  Answer("old4", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("old4 -> n1", "important ? n1"));
}

// One extender of several is away: pods of the others get their turn.
TEST_F(Asking, WhoseExtenderFailsTakeNobodysTurn) {
  Node("n1");
  for (const char* name : {"old1", "old2", "old3", "old4"}) Ask({.name = name, .created = 1});
  EXPECT_THAT(Cycle(), ElementsAre("old1 ? n1", "old2 ? n1"));
  Ask({.name = "new", .created = 9});
  for (const char* name : {"old1", "old2"}) Answer(name, {}, Ends::kFailed);
  EXPECT_THAT(Cycle(), ElementsAre("old3 ? n1", "old4 ? n1"));
  for (const char* name : {"old3", "old4"}) Answer(name, {}, Ends::kFailed);
  // The first two are due again, and older.
  EXPECT_THAT(Cycle(Duration::Seconds(2)), ElementsAre("new ? n1", "old1 ? n1"));
  Ask({.name = "newer", .created = 10});
  EXPECT_THAT(Cycle(), IsEmpty());
  Answer("old1", {}, Ends::kFailed);
  EXPECT_THAT(Cycle(), ElementsAre("newer ? n1"));
}

TEST_F(Asking, AfterAFailureThePodBacksOffAndIsAskedAboutAgain) {
  Node("n1");
  Ask({.name = "p"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {}, Ends::kFailed);
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_EQ(engine_.wake_at(), now_ + Duration::Seconds(1) - Duration::Milliseconds(10));
  EXPECT_THAT(Cycle(Duration::Seconds(1)), ElementsAre("p ? n1"));
  Answer("p", {}, Ends::kFailed);
  EXPECT_THAT(Cycle(Duration::Seconds(1)), IsEmpty());
  EXPECT_THAT(Cycle(Duration::Seconds(1)), ElementsAre("p ? n1"));
  Answer("p", {}, Ends::kWithdrawn);
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
}

// kube-scheduler looks again at every event; here, too, and at times without any.
TEST_F(Asking, WhoWasRefusedIsAskedAboutAgainAtEventsAndInTime) {
  Node("n1");
  Put({.name = "q"}, "n1");
  Ask({.name = "p"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1", .why = "no"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Cycle(Duration::Seconds(4)), IsEmpty());
  EXPECT_THAT(Cycle(Duration::Seconds(1)), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1", .why = "no"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  engine_.Apply(model::PodRemove{.uid = "uid-q"});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Cycle(Duration::Seconds(2)), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n1"));
}

// A06: a pod whose binding is under way is no pod that waits, whatever happens to it meanwhile:
// upstream's retry of it failed at an extender and evicted for nothing.
TEST_F(Asking, APodWhoseBindingIsUnderWayIsAskedAboutNothing) {
  Node("n1");
  Node("n3", 100);
  Put({.name = "victim"}, "n3");
  Ask({.name = "p", .priority = 10});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n1"));
  Ask({.name = "p", .priority = 10, .looks = 2});
  EXPECT_THAT(Cycle(Duration::Seconds(100)), IsEmpty());
  EXPECT_THAT(plan_.preemptions, IsEmpty());
}

// What was decided and failed is asked about anew: the answer was about then.
TEST_F(Asking, AfterARefusedBindingItIsAskedAboutAnew) {
  Node("n1");
  Ask({.name = "p"});
  Cycle();
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n1"));
  engine_.Apply(model::BindOutcome{
      .uid = "uid-p", .outcome = model::WriteOutcome::kNotSent, .code = 0, .at = now_});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
}

TEST_F(Asking, EvictionsDontHelpWhereAnExtenderRefuses) {
  Node("n1", 200);
  Put({.name = "victim"}, "n1");
  Ask({.name = "p", .priority = 10});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1", .why = "no"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(plan_.preemptions, IsEmpty());
  ASSERT_EQ(plan_.refusals.size(), 1u);
  EXPECT_EQ(plan_.refusals[0].preemption->not_helpful, 0u);
  EXPECT_EQ(plan_.refusals[0].preemption->reasons.size(), 1u);
}

// A node that lacks room was not asked about, so others are evicted there; then extenders are asked
// about that node alone, and if they refuse it, the promise ends and the others are asked about.
TEST_F(Asking, APromiseIsKeptOnlyIfExtendersPermitItsNode) {
  Node("n1", 100);
  Put({.name = "victim"}, "n1");
  Ask({.name = "p", .priority = 10});
  EXPECT_THAT(Cycle(), IsEmpty());
  ASSERT_EQ(plan_.preemptions.size(), 1u);
  Ask({.name = "p", .priority = 10, .nominated = "n1"});
  engine_.Apply(model::PodRemove{.uid = "uid-victim"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Node("n2", 100);
  EXPECT_THAT(Cycle(), IsEmpty());
  Answer("p", {{.node = "n1", .why = "no"}});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1 n2"));
  EXPECT_FALSE(engine_.state().PromiseOf(engine_.state().FindPod("uid-p")).valid());
  Answer("p", {{.node = "n1", .why = "no"}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n2"));
}

TEST_F(Asking, APromiseThatExtendersPermitIsTaken) {
  Node("n1", 100);
  Put({.name = "victim"}, "n1");
  Ask({.name = "p", .priority = 10});
  EXPECT_THAT(Cycle(), IsEmpty());
  Ask({.name = "p", .priority = 10, .nominated = "n1"});
  engine_.Apply(model::PodRemove{.uid = "uid-victim"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n1"));
}

// ---- Victims -----------------------------------------------------------------------------------

class AskingAboutVictims : public Asking {
 protected:
  // v1 alone on n1, v2 and v3 on n2.
  AskingAboutVictims() {
    Node("n1", 200);
    Node("n2", 200);
    Put({.name = "v1", .cpu = 200, .priority = 3}, "n1");
    Put({.name = "v2", .priority = 1}, "n2");
    Put({.name = "v3", .priority = 2}, "n2");
  }
  void AskIt(TestPod pod = {.name = "p", .cpu = 200, .priority = 10}) {
    pod.asks_about_victims = true;
    Ask(std::move(pod));
  }
  static constexpr const char* kQuestion = "p ? n2 without v3 v2 n1 without v1";
};

TEST_F(AskingAboutVictims, NobodyIsEvictedBeforeExtendersPermitIt) {
  AskIt();
  EXPECT_THAT(Cycle(), ElementsAre(kQuestion));
  EXPECT_THAT(plan_.preemptions, IsEmpty());
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(plan_.preemptions, IsEmpty());
  // What the scheduler alone would have chosen is not permitted.
  AnswerVictims("p", {{"n1", {"v1"}}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Evicted(), ElementsAre("n1: v1"));
  // Evictions that began go on unasked.
  Put({.name = "v1", .cpu = 200, .priority = 3, .terminating = true}, "n1");
  AskIt({.name = "p", .cpu = 200, .priority = 10, .nominated = "n1"});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_TRUE(engine_.state().PromiseOf(engine_.state().FindPod("uid-p")).valid());
  engine_.Apply(model::PodRemove{.uid = "uid-v1"});
  EXPECT_THAT(Cycle(), ElementsAre("p ? n1"));
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("p -> n1"));
}

// Goal: nor by upstream's rule, which takes who is being deleted for a victim like any other.
// Method: waiting for n1 evicts nobody, so nobody is asked; upstream's rule would evict "low".
TEST_F(Asking, NobodyIsEvictedUnaskedAsUpstreamEither) {
  engine_ = Engine({.preemption = true, .queries_max = kQueriesMax, .compat = true});
  Node("n1");
  Node("n2");
  Put({.name = "leaves", .cpu = 900, .priority = 5, .terminating = true}, "n1");
  Put({.name = "low", .cpu = 900, .priority = 1}, "n2");
  Ask({.name = "p", .cpu = 1000, .priority = 10, .asks_about_victims = true});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Evicted(), ElementsAre("n1:"));
}

TEST_F(AskingAboutVictims, OfNodesThatArePermittedTheCheapestIsTaken) {
  AskIt();
  EXPECT_THAT(Cycle(), ElementsAre(kQuestion));
  AnswerVictims("p", {{"n1", {"v1"}}, {"n2", {"v3", "v2"}}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Evicted(), ElementsAre("n2: v3 v2"));
}

TEST_F(AskingAboutVictims, ExtendersMayWantMoreEvictedAndNotFewer) {
  Node("n2", 300);
  Put({.name = "v4"}, "n2");
  AskIt();
  EXPECT_THAT(Cycle(), ElementsAre("p ? n2 without v2 v4 n1 without v1"));
  // One alone doesn't make enough room.
  AnswerVictims("p", {{"n2", {"v4"}}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(plan_.preemptions, IsEmpty());
  EXPECT_THAT(Cycle(Duration::Seconds(6)), ElementsAre("p ? n2 without v2 v4 n1 without v1"));
  AnswerVictims("p", {{"n2", {"v2", "v3", "v4"}}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Evicted(), ElementsAre("n2: v3 v2 v4"));
}

TEST_F(AskingAboutVictims, WhoAreNotThereAreOthersOrMayNotBeEvictedMakeNoRoom) {
  Put({.name = "high", .priority = 20}, "n1");
  Node("n1", 300);
  AskIt();
  EXPECT_THAT(Cycle(), ElementsAre(kQuestion));
  AnswerVictims("p", {{"n1", {"v1", "high"}}, {"n2", {"v2", "v3", "nobody"}}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(plan_.preemptions, IsEmpty());
  ASSERT_EQ(plan_.refusals.size(), 1u);
  EXPECT_EQ(plan_.refusals[0].preemption->bar, model::PreemptionBar::kExtenders);
  EXPECT_THAT(Cycle(Duration::Seconds(6)), ElementsAre(kQuestion));
  // Another that was made meanwhile is not who was meant.
  AnswerVictims("p", {{"n1", {"v1"}}});
  engine_.Apply(model::PodRemove{.uid = "uid-v1"});
  Put({.name = "w1", .cpu = 200, .priority = 3}, "n1");
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(plan_.preemptions, IsEmpty());
}

TEST_F(AskingAboutVictims, AfterAFailureOrALostLeaseTheyAreAskedAnew) {
  AskIt();
  EXPECT_THAT(Cycle(), ElementsAre(kQuestion));
  AnswerVictims("p", {}, Ends::kWithdrawn);
  EXPECT_THAT(Cycle(), ElementsAre(kQuestion));
  AnswerVictims("p", {}, Ends::kFailed);
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Cycle(Duration::Seconds(1)), ElementsAre(kQuestion));
  // An answer about nodes is none to it.
  Answer("p", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  AskIt({.name = "p", .cpu = 200, .priority = 10, .looks = 2});
  EXPECT_THAT(Cycle(), ElementsAre(kQuestion));
}

TEST_F(AskingAboutVictims, WhereWhatLeavesMakesRoomNobodyIsAsked) {
  Put({.name = "v1", .cpu = 200, .priority = 3, .terminating = true}, "n1");
  AskIt();
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Evicted(), ElementsAre("n1:"));
}

// ---- Members of groups -------------------------------------------------------------------------

class AskingGangs : public Asking {
 protected:
  AskingGangs() {
    Node("n1", 100);
    Node("n2", 100);
    engine_.Apply(FactsOf(engine_.vocabulary(), TestGroup{.name = "g", .min_member = 2}));
    Ask({.name = "a", .created = 1, .group = "g"});
    Ask({.name = "b", .created = 2, .group = "g"});
  }
};

TEST_F(AskingGangs, EachIsAskedAboutAndAllArePlacedTogetherAmongWhatIsPermitted) {
  EXPECT_THAT(Cycle(), ElementsAre("a ? n1 n2", "b ? n1 n2"));
  Answer("b", {{.node = "n1", .score = 100}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  Answer("a", {{.node = "n1"}});
  EXPECT_THAT(Cycle(), ElementsAre("a -> n1", "b -> n2"));
}

TEST_F(AskingGangs, OneWhoIsRefusedHoldsTheOthersBackAndIsAskedAboutAnew) {
  EXPECT_THAT(Cycle(), ElementsAre("a ? n1 n2", "b ? n1 n2"));
  Answer("a", {{.node = "n1", .why = "no"}, {.node = "n2", .why = "no"}});
  Answer("b", {{.node = "n1"}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Refused(), ::testing::Contains("2 refused by an extender (no)"));
  EXPECT_THAT(Cycle(Duration::Seconds(6)), ElementsAre("a ? n1 n2", "b ? n1 n2"));
  Answer("a", {{.node = "n2"}});
  Answer("b", {{.node = "n1"}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), ElementsAre("a -> n2", "b -> n1"));
}

TEST_F(AskingGangs, OneThatFailsIsTriedAgainWithTheOthers) {
  EXPECT_THAT(Cycle(), ElementsAre("a ? n1 n2", "b ? n1 n2"));
  Answer("a", {}, Ends::kFailed);
  Answer("b", {{.node = "n1"}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), IsEmpty());
  EXPECT_THAT(Cycle(Duration::Seconds(1)), ElementsAre("a ? n1 n2"));
  Answer("a", {{.node = "n1"}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), ElementsAre("a -> n1", "b -> n2"));
}

TEST_F(AskingGangs, OneThatChangesIsAskedAboutAnew) {
  EXPECT_THAT(Cycle(), ElementsAre("a ? n1 n2", "b ? n1 n2"));
  Answer("b", {{.node = "n1"}, {.node = "n2"}});
  Ask({.name = "a", .created = 1, .group = "g", .looks = 2});
  EXPECT_THAT(Cycle(), ElementsAre("a ? n1 n2"));
  Answer("a", {{.node = "n1"}, {.node = "n2"}});
  EXPECT_THAT(Cycle(), ElementsAre("a -> n1", "b -> n2"));
}

TEST_F(AskingGangs, MoreThanAreAskedAboutAtOnceTakeTurns) {
  Node("n3", 100);
  engine_.Apply(FactsOf(engine_.vocabulary(), TestGroup{.name = "g", .min_member = 3}));
  Ask({.name = "c", .created = 3, .group = "g"});
  EXPECT_THAT(Cycle(), ElementsAre("a ? n1 n2 n3", "b ? n1 n2 n3"));
  for (const char* pod : {"a", "b"}) {
    Answer(pod, {{.node = "n1"}, {.node = "n2"}, {.node = "n3"}});
  }
  EXPECT_THAT(Cycle(), ElementsAre("c ? n1 n2 n3"));
  Answer("c", {{.node = "n1"}, {.node = "n2"}, {.node = "n3"}});
  EXPECT_THAT(Cycle(), ElementsAre("a -> n1", "b -> n2", "c -> n3"));
}

// With few who are asked about at once the first are answered long before the last.
TEST_F(AskingGangs, WhatWasPermittedHoldsUntilTheLastOfThemIsAnswered) {
  Node("n3", 100);
  engine_.Apply(FactsOf(engine_.vocabulary(), TestGroup{.name = "g", .min_member = 3}));
  Ask({.name = "c", .created = 3, .group = "g"});
  EXPECT_THAT(Cycle(), ElementsAre("a ? n1 n2 n3", "b ? n1 n2 n3"));
  for (const char* pod : {"a", "b"}) Answer(pod, {{.node = "n1"}, {.node = "n2"}, {.node = "n3"}});
  EXPECT_THAT(Cycle(), ElementsAre("c ? n1 n2 n3"));
  EXPECT_THAT(Cycle(Duration::Seconds(11)), IsEmpty());
  Answer("c", {{.node = "n1"}, {.node = "n2"}, {.node = "n3"}});
  EXPECT_THAT(Cycle(), ElementsAre("a -> n1", "b -> n2", "c -> n3"));
}

// ---- Histories ---------------------------------------------------------------------------------

// Random facts and answers, right, late and wrong; after each cycle the audit, and no missed
// wake-up; at the end answers come for all, and nobody who fits a permitted node waits.
class History {
 public:
  void Step() {
    switch (Draw(0, 10)) {
      case 9:
        Group();
        break;
      case 0:
        Node(Draw(0, 4));
        break;
      case 1:
        engine_.Apply(model::NodeRemove{.name = Name(Draw(0, 4)), .uid = {}});
        break;
      case 2:
      case 3:
        Pod(Draw(0, 8));
        break;
      case 4:
        engine_.Apply(model::PodRemove{.uid = "uid-" + Key(Draw(0, 8))});
        break;
      case 5:
        if (!open_.empty()) Settle(static_cast<size_t>(Draw(0, static_cast<int>(open_.size()))));
        break;
      default:
        if (!asked_.empty()) Say(static_cast<size_t>(Draw(0, static_cast<int>(asked_.size()))));
    }
    Cycle();
  }
  void End() {
    well_ = true;
    for (int i = 0; i < 40; ++i) {
      while (!asked_.empty()) Say(0);
      while (!open_.empty()) Settle(0);
      now_ = now_ + Duration::Seconds(5);
      Cycle();
    }
    const model::State& state = engine_.state();
    for (uint32_t i = 0; i < state.pods().size(); ++i) {
      if (!state.pods().used(model::PodId{i})) continue;
      if (model::StageOf(state.pods().at(model::PodId{i})) != model::PodStage::kPending) continue;
      // Whether its group can be placed others decide.
      if (state.pods().at(model::PodId{i}).group.valid()) continue;
      // Node n0 is permitted always.
      const model::Pod& row = state.pods().at(model::PodId{i});
      const model::NodeId n0 = state.FindNode("n0");
      if (!n0.valid() || !state.nodes().present(n0)) continue;
      const model::Viewer viewer{.owner = row.uid, .priority = row.priority};
      RC_ASSERT(!engine_.evaluator().Filter(state, row.class_id, n0, &viewer, row.pin).fits());
    }
  }

 private:
  static int Draw(int low, int high) { return *rc::gen::resize(100, rc::gen::inRange(low, high)); }
  static std::string Name(int i) { return "n" + std::to_string(i); }
  static std::string Key(int i) { return "p" + std::to_string(i); }
  void Node(int i) {
    engine_.Apply(FactsOf(
        engine_.vocabulary(),
        TestNode{.name = Name(i), .cpu = Draw(1, 4) * 100, .unschedulable = Draw(0, 5) == 0}));
  }
  void Group() {
    if (Draw(0, 4) == 0) return engine_.Apply(model::GroupRemove{.uid = "uid-g"});
    engine_.Apply(FactsOf(engine_.vocabulary(), TestGroup{.name = "g", .min_member = Draw(1, 4)}));
  }
  void Pod(int i) {
    const model::PodId known = engine_.state().FindPod("uid-" + Key(i));
    // A pod keeps its node, and its spec.
    if (known.valid() &&
        model::StageOf(engine_.state().pods().at(known)) != model::PodStage::kPending) {
      return;
    }
    engine_.Apply(
        FactsOf(engine_.vocabulary(), TestPod{.name = Key(i),
                                              .cpu = 100,
                                              .priority = i % 3,
                                              .group = i > 4 ? "g" : "",
                                              .asks = i % 4 != 0,
                                              .asks_about_victims = i % 4 == 1,
                                              .looks = static_cast<uint64_t>(Draw(1, 3))}));
  }
  void Settle(size_t at) {
    const std::string uid = open_[at];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(at));
    const bool refused = !well_ && Draw(0, 3) == 0;
    engine_.Apply(model::BindOutcome{
        .uid = uid,
        .outcome = refused ? model::WriteOutcome::kRefused : model::WriteOutcome::kDone,
        .code = 0,
        .at = now_});
  }
  void Say(size_t at) {
    const auto [uid, query, nodes, victims] = asked_[at];
    // Some answers come twice.
    if (well_ || Draw(0, 4) != 0) asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(at));
    model::ExternalVerdict fact{.uid = uid, .query = query, .at = now_};
    if (!well_ && Draw(0, 6) == 0) fact.end = Ends::kFailed;
    if (!well_ && Draw(0, 9) == 0) fact.end = Ends::kWithdrawn;
    for (const model::NameId node : nodes) {
      if (Draw(0, 4) == 0 && engine_.state().NameOf(node) != "n0") continue;
      const bool permitted = Draw(0, 2) == 0 || engine_.state().NameOf(node) == "n0";
      fact.nodes.push_back({.node = node,
                            .permitted = permitted,
                            .unresolvable = Draw(0, 2) == 0,
                            .score = Draw(0, 100)});
    }
    fact.about_victims = nodes.empty();
    for (const auto& [node, uids] : victims) {
      if (Draw(0, 3) == 0) continue;
      model::ExternalVerdict::Victims said{.node = node, .uids = uids};
      // More than it takes, perhaps one that is nowhere.
      const std::string more = "uid-" + Key(Draw(0, 8));
      if (Draw(0, 3) == 0 && std::ranges::find(uids, more) == uids.end()) said.uids.push_back(more);
      if (fact.end == Ends::kAnswered)
        permitted_[uid].insert(std::set<std::string>(said.uids.begin(), said.uids.end()));
      fact.victims.push_back(std::move(said));
    }
    engine_.Apply(fact);
  }
  // Whom extenders don't permit to be evicted nobody evicts who asks them.
  void CheckVictims(const model::Plan& plan) {
    const model::State& state = engine_.state();
    for (const model::PreemptDecision& one : plan.preemptions) {
      const model::Pod& row = state.pods().at(one.pod);
      if (!row.asks_about_victims || row.group.valid() || one.victims.empty()) continue;
      std::set<std::string> victims;
      for (const auto& victim : one.victims) victims.emplace(state.UidOf(victim.uid));
      RC_ASSERT(permitted_[std::string(state.UidOf(row.uid))].contains(victims));
    }
  }
  void Cycle() {
    now_ = now_ + Duration::Milliseconds(Draw(0, 3000));
    const model::Plan plan = engine_.Cycle(now_);
    const model::State& state = engine_.state();
    for (const model::BindDecision& bind : plan.binds)
      open_.emplace_back(state.UidOf(bind.pod_uid));
    for (const model::ExternalQuery& query : plan.queries) {
      RC_ASSERT(query.nodes.empty() != query.victims.empty());
      std::vector<model::NameId> nodes;
      for (const model::NodeId node : query.nodes) nodes.push_back(state.nodes().name(node));
      Victims victims;
      for (const model::NodeVictims& one : query.victims) {
        for (const model::OwnerId victim : one.pods)
          victims[one.node].emplace_back(state.UidOf(victim));
      }
      asked_.push_back({std::string(state.UidOf(query.pod_uid)), query.query, std::move(nodes),
                        std::move(victims)});
    }
    CheckVictims(plan);
    RC_ASSERT(state.verdicts().asked_count() <= kQueriesMax);
    const Lines findings = model::Audit(state);
    if (!findings.empty()) RC_FAIL(findings.front());
    RC_ASSERT(engine_.CountMissedWakes() == 0u);
    RC_ASSERT(engine_.counters().missed_wakes == 0u);
  }

  using Victims = std::map<model::NameId, std::vector<std::string>>;
  struct Open {
    std::string uid;
    uint64_t query;
    std::vector<model::NameId> nodes;
    Victims victims;
  };
  Engine engine_{{.preemption = true, .queries_max = kQueriesMax}};
  Instant now_ = Instant::FromSeconds(1000);
  bool well_ = false;  // Whatever is asked is answered, and what is decided comes true.
  std::vector<Open> asked_;
  std::map<std::string, std::set<std::set<std::string>>> permitted_;  // By uid of who asks.
  std::vector<std::string> open_;  // Uids of pods whose bindings are under way.
};

RC_GTEST_PROP(AskingTest, HistoriesLoseNobodyAndOvercommitNothing, ()) {
  History history;
  const int steps = *rc::gen::inRange(0, 150);
  for (int i = 0; i < steps; ++i) history.Step();
  history.End();
}

}  // namespace
}  // namespace berth::cycle
