// Goal: the loop from watch to binding and back: each outcome, race and restart leads to where it
// must. Method: a scripted API server: the test answers each request by hand and reads what the
// scheduler sends. Ids are those of the upstream regression corpus.
#include "control/scheduler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "control/test_rig.h"
#include "testing/hashes.h"

namespace berth::control {
namespace {

TEST(Scheduler, BindsAPodAndTellsOfIt) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  ASSERT_NE(bind.call.value, 0u);
  EXPECT_EQ(bind.request.target, "/api/v1/namespaces/ns/pods/p/binding");
  EXPECT_EQ(TargetOf(bind), "n1");
  EXPECT_EQ(rig.Held("n1"), 500);
  rig.Answer(bind, 201, "");
  const env::SendRequest event = rig.TakeOf("/events");  // It waits for no tick.
  EXPECT_NE(event.request.body.view().find("Successfully assigned ns/p to n1"),
            std::string_view::npos);
  EXPECT_EQ(rig.StageOf("u-p"), model::PodStage::kAccepted);
  rig.Event("pods", "MODIFIED", PodJson({.version = 101, .node = "n1"}));
  EXPECT_EQ(rig.StageOf("u-p"), model::PodStage::kBound);
  EXPECT_EQ(rig.Held("n1"), 500);
  EXPECT_TRUE(rig.inbox.empty());
  rig.Event("pods", "DELETED", PodJson({.version = 102, .node = "n1"}));
  EXPECT_EQ(rig.Held("n1"), 0);
}

// D10: nothing is decided before pods and nodes have both been listed.
TEST(Scheduler, DecidesNothingBeforeEverythingIsListed) {
  Rig rig;
  rig.Tick();
  const env::SendRequest pods = rig.TakeOf("/pods");
  const env::SendRequest nodes = rig.TakeOf("/nodes");
  rig.Answer(nodes, 200, ListJson({NodeJson("n1", 1)}));
  rig.Settle();
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  rig.Answer(pods, 200, ListJson({PodJson({})}, "more"));
  rig.Settle();
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  // The pod of the last page is bound already: charged before anything is decided.
  rig.Answer(rig.TakeOf("continue=more"), 200,
             ListJson({PodJson({.name = "q", .uid = "u-q", .node = "n1", .cpu_milli = 800})}));
  rig.Settle();
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 800);
}

TEST(Scheduler, TellsWhyAPodWaitsAndPlacesItWhenItCan) {
  Rig rig;
  rig.Start({PodJson({.cpu_milli = 2'000})}, {NodeJson("n1", 1)});
  const env::SendRequest patch = rig.TakeOf("/status");
  ASSERT_NE(patch.call.value, 0u);
  EXPECT_NE(patch.request.body.view().find("0/1 nodes are available: 1 Insufficient cpu."),
            std::string_view::npos)
      << patch.request.body.view();
  EXPECT_NE(rig.TakeOf("/events").request.body.view().find("FailedScheduling"),
            std::string_view::npos);
  rig.Answer(patch, 200, "");
  rig.Event("nodes", "ADDED", NodeJson("n2", 101, 4'000));
  rig.Pass(Duration::Seconds(11));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n2");
}

// What a pod was told stays true: a node that came and refuses, too, is told of, though it wakes
// nobody.
TEST(Scheduler, TellsAgainWhenTheReasonsChange) {
  Rig rig;
  rig.Start({PodJson({.cpu_milli = 2'000})}, {NodeJson("n1", 1)});
  const env::SendRequest first = rig.TakeOf("/status");
  rig.TakeOf("/events");
  rig.Answer(first, 200, "");
  const std::string told =
      R"(,"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",)"
      R"("message":"0/1 nodes are available: 1 Insufficient cpu."}])";
  rig.Event("pods", "MODIFIED",
            PodJson({.version = 101, .cpu_milli = 2'000, .extra_status = told}));
  rig.Event("nodes", "ADDED", NodeJson("n2", 102));
  rig.Pass(Duration::Seconds(11));
  const env::SendRequest second = rig.TakeOf("/status");
  EXPECT_NE(second.request.body.view().find("0/2 nodes are available: 2 Insufficient cpu."),
            std::string_view::npos);
  EXPECT_NE(rig.TakeOf("/events").request.body.view().find("0/2 nodes"), std::string_view::npos);
  rig.Answer(second, 200, "");
  rig.Pass(Duration::Minutes(5));
  EXPECT_EQ(rig.TakeOf("/status").call.value, 0u);
}

TEST(Scheduler, LeavesPodsOfOtherSchedulersAlone) {
  Rig rig;
  rig.Start({PodJson({.scheduler = "volcano"}),
             PodJson({.name = "q", .uid = "u-q", .node = "n1", .scheduler = "volcano"})},
            {NodeJson("n1", 1)});
  EXPECT_TRUE(rig.inbox.empty());
  EXPECT_EQ(rig.Held("n1"), 500);
}

TEST(Scheduler, SaysWhatItCanNotHonour) {
  Rig rig;
  rig.Start(
      {PodJson({.extra_spec = R"(,"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}])"})},
      {NodeJson("n1", 1)});
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  const std::string body(rig.TakeOf("/status").request.body.view());
  EXPECT_NE(body.find(R"("reason":"SchedulerError")"), std::string::npos) << body;
  EXPECT_NE(body.find("spec.resourceClaims"), std::string::npos) << body;
}

// C09: a gated pod is told so, not tried and not charged; ungating leads to an
// attempt.
TEST(Scheduler, GatesHoldAPodBack) {
  Rig rig;
  rig.Start({PodJson({.extra_spec = R"(,"schedulingGates":[{"name":"g"}])"})}, {NodeJson("n1", 1)});
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_NE(rig.TakeOf("/status").request.body.view().find(R"("reason":"SchedulingGated")"),
            std::string_view::npos);
  EXPECT_EQ(rig.Held("n1"), 0);
  rig.Event("pods", "MODIFIED", PodJson({.version = 101}));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
}

// D01: the binding timed out and was applied: it is read, not repeated, and the claim is never
// doubled.
TEST(Scheduler, AnUnknownBindingThatWasAppliedIsFoundByReading) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1), NodeJson("n2", 2)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.Step(env::CallFailed{.call = bind.call, .failure = env::CallFailure::kTimeout});
  rig.Settle();
  EXPECT_EQ(rig.StageOf("u-p"), model::PodStage::kUnresolved);
  const env::SendRequest read = rig.TakeOf("/api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(read.request.method, env::Method::kGet);
  EXPECT_TRUE(rig.inbox.empty());
  rig.Answer(read, 200, PodJson({.version = 120, .node = TargetOf(bind)}));
  rig.Settle();
  EXPECT_EQ(rig.StageOf("u-p"), model::PodStage::kBound);
  EXPECT_EQ(rig.Held("n1") + rig.Held("n2"), 500);
  // An older event that is still on its way does not take the binding back.
  rig.Event("pods", "MODIFIED", PodJson({.version = 110}));
  rig.Pass(Duration::Seconds(60));
  EXPECT_EQ(rig.StageOf("u-p"), model::PodStage::kBound);
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
}

TEST(Scheduler, AnUnknownBindingThatWasNotAppliedIsDecidedAnew) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.Answer(bind, 500, "");
  const env::SendRequest read = rig.TakeOf("/pods/p");
  rig.Answer(read, 200, PodJson({}));
  rig.Pass(Duration::Seconds(20));
  EXPECT_NE(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 500);
}

// A webhook that is down fails each binding so, for as long as it is.
TEST(Scheduler, ABindingThatCameToNothingIsTold) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  rig.Answer(rig.TakeBinding(), 500,
             R"({"kind":"Status","message":"failed calling webhook","code":500})");
  EXPECT_EQ(rig.scheduler.counters().errors, 0u) << "it may have come true";
  rig.Answer(rig.TakeOf("/pods/p"), 200, PodJson({}));
  rig.Settle();
  EXPECT_EQ(rig.scheduler.counters().errors, 1u);
  const env::SendRequest told = rig.TakeOf("/status");
  for (const std::string_view text :
       {R"(running Bind plugin \"DefaultBinder\": failed calling webhook)", "SchedulerError"}) {
    EXPECT_TRUE(told.request.body.view().contains(text)) << told.request.body.view();
  }
}

// D18, C02: the pod was deleted and made again with its name while its binding was on its way.
TEST(Scheduler, ARecreatedPodIsAnotherPod) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  EXPECT_NE(bind.request.body.view().find(R"("uid":"u-p")"), std::string_view::npos);
  rig.Answer(bind, 409, "");
  const env::SendRequest read = rig.TakeOf("/pods/p");
  rig.Answer(read, 200, PodJson({.uid = "u-2", .version = 130}));
  rig.Settle();
  EXPECT_FALSE(rig.scheduler.engine().state().FindPod("u-p").valid());
  const env::SendRequest second = rig.TakeBinding();
  EXPECT_NE(second.request.body.view().find(R"("uid":"u-2")"), std::string_view::npos);
  EXPECT_EQ(rig.Held("n1"), 500);
  rig.Event("pods", "DELETED", PodJson({.version = 125}));
  rig.Event("pods", "ADDED", PodJson({.uid = "u-2", .version = 130}));
  EXPECT_EQ(rig.StageOf("u-2"), model::PodStage::kInFlight);
  EXPECT_EQ(rig.Held("n1"), 500);
}

// D14: a pod that is deleted while its binding is on its way gives its claim back, once.
TEST(Scheduler, APodDeletedDuringItsBindingGivesItsClaimBack) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.Event("pods", "DELETED", PodJson({.version = 101}));
  EXPECT_EQ(rig.Held("n1"), 0);
  rig.Answer(bind, 404, "");
  rig.Settle();
  EXPECT_EQ(rig.Held("n1"), 0);
}

TEST(Scheduler, ARefusedBindingIsToldAndTriedAgainLater) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  rig.Answer(rig.TakeBinding(), 403,
             R"({"kind":"Status","message":"bindings are forbidden","code":403})");
  rig.Settle();
  EXPECT_EQ(rig.Held("n1"), 0);
  EXPECT_NE(rig.TakeOf("/status").request.body.view().find(
                R"(running Bind plugin \"DefaultBinder\": bindings are forbidden)"),
            std::string_view::npos);
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  rig.Pass(Duration::Seconds(20));
  EXPECT_NE(rig.TakeBinding().call.value, 0u);
}

TEST(Scheduler, ForHowLongARefusedPodIsSparedIsConfigured) {
  SchedulerOptions options;
  options.engine.backoff = {.initial = Duration::Seconds(60), .max = Duration::Seconds(90)};
  Rig rig(options);
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  for (const int64_t spared : {60, 90, 90}) {
    rig.Answer(rig.TakeBinding(), 403, "{}");
    rig.Settle();
    rig.Pass(Duration::Seconds(spared - 1));
    EXPECT_EQ(rig.TakeBinding().call.value, 0u) << spared;
    rig.Pass(Duration::Seconds(1));
  }
  EXPECT_NE(rig.TakeBinding().call.value, 0u);
}

// Nobody refused it: the pod is placed elsewhere as soon as it can be.
TEST(Scheduler, ABindingThatIsTakenBackUnsentCostsNoBackoff) {
  Rig rig({.client = {.calls_in_flight_max = 1}});
  rig.Start({PodJson({.cpu_milli = 800}), PodJson({.name = "q", .uid = "u-q", .cpu_milli = 800})},
            {NodeJson("n1", 1), NodeJson("n2", 2)});
  const env::SendRequest first = rig.TakeBinding();
  const std::string kept = TargetOf(first);
  const std::string lost = kept == "n1" ? "n2" : "n1";
  EXPECT_EQ(rig.Held(lost), 800);
  rig.Event("nodes", "MODIFIED", NodeJson(kept, 101, 4'000));
  rig.Event("nodes", "DELETED", NodeJson(lost, 102));
  EXPECT_EQ(rig.scheduler.binder().counters().withdrawn, 1u);
  rig.Answer(first, 201, "");
  const env::SendRequest second = rig.TakeBinding();
  EXPECT_EQ(TargetOf(second), kept);
  EXPECT_EQ(rig.Held(kept), 1'600);
}

TEST(Scheduler, ABindingThatFindsNoConnectionIsNoRefusal) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const Binder::Counters& counters = rig.scheduler.binder().counters();
  for (int i = 0; i < 200 && counters.not_sent == 0; ++i) {
    const env::SendRequest bind = rig.TakeBinding();
    if (bind.call.value == 0) {
      rig.Pass(Duration::Seconds(1));
      continue;
    }
    rig.Step(env::CallFailed{.call = bind.call, .failure = env::CallFailure::kNotSent});
    rig.Settle();
  }
  EXPECT_EQ(counters.not_sent, 1u);
  EXPECT_EQ(counters.refused, 0u);
  EXPECT_EQ(counters.sent, 2u);
  EXPECT_EQ(rig.StageOf("u-p"), model::PodStage::kInFlight);
  EXPECT_EQ(rig.scheduler.counters().errors, 0u);
  rig.Pass(Duration::Seconds(60));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
}

// The fate of a condition's write is read until it is known, and not written over before.
TEST(Scheduler, AConditionOfUnknownFateIsNotRepeatedUnread) {
  Rig rig;
  rig.Start({PodJson({.cpu_milli = 2'000})}, {NodeJson("n1", 1)});
  const env::SendRequest patch = rig.TakeOf("/status");
  rig.Step(env::CallFailed{.call = patch.call, .failure = env::CallFailure::kTimeout});
  rig.Settle();
  for (int i = 0; i < 3; ++i) {
    const env::SendRequest read = rig.TakeOf("/pods/p");
    ASSERT_EQ(read.request.method, env::Method::kGet);
    rig.Answer(read, 403, "");
    rig.Pass(Duration::Seconds(20));
    EXPECT_EQ(rig.TakeOf("/status").call.value, 0u);
  }
  rig.Answer(rig.TakeOf("/pods/p"), 200, PodJson({.cpu_milli = 2'000}));
  rig.Settle();
  EXPECT_NE(rig.TakeOf("/status").call.value, 0u);
}

// C18: what is told and what is decided on are one: no pod is looked for where it is not yet, and
// dropped. Method: a pod that comes and changes in one piece of the stream; and one that is read
// while the watch has told more than the answer says.
TEST(Scheduler, APodThatIsToldBeforeItIsReadIsNotDropped) {
  Rig rig;
  rig.Start({}, {NodeJson("n1", 1)});
  std::string data;
  for (const auto& [type, pod] :
       {std::pair("ADDED", PodJson({.version = 101})),
        std::pair("MODIFIED", PodJson({.version = 102, .cpu_milli = 700}))})
    data += fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, pod);
  rig.Step(env::StreamData{.call = rig.streams["pods"], .data = Bytes(data)});
  rig.Settle();
  const env::SendRequest bind = rig.TakeBinding();
  EXPECT_EQ(TargetOf(bind), "n1");
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 700);
  rig.Step(env::CallFailed{.call = bind.call, .failure = env::CallFailure::kTimeout});
  rig.Settle();
  const env::SendRequest read = rig.TakeOf("/pods/p");
  rig.Event("pods", "MODIFIED", PodJson({.version = 104, .cpu_milli = 800}));
  rig.Answer(read, 200, PodJson({.version = 103, .cpu_milli = 700}));
  rig.Pass(Duration::Seconds(20));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  EXPECT_EQ(rig.Held("n1"), 800);
}

// D02: changes of a pod whose binding is on its way do not put it in the queue a second time.
TEST(Scheduler, ChangesOfAPodInFlightDoNotScheduleItTwice) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1), NodeJson("n2", 2)});
  ASSERT_NE(rig.TakeBinding().call.value, 0u);
  rig.Event("pods", "MODIFIED", PodJson({.version = 101, .extra_meta = R"(,"labels":{"a":"b"})"}));
  rig.Event("nodes", "MODIFIED", NodeJson("n2", 102, 8'000));
  rig.Pass(Duration::Seconds(5));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
}

// A17: a pod that another scheduler binds elsewhere frees what we assumed, and who waits for that
// is woken.
TEST(Scheduler, AForeignBindingEndsOurClaimAndWakesWhoWaits) {
  Rig rig;
  rig.Start({PodJson({.cpu_milli = 800})}, {NodeJson("n1", 1), NodeJson("n2", 2, 900)});
  const env::SendRequest bind = rig.TakeBinding();
  const std::string ours = TargetOf(bind);
  const std::string other = ours == "n1" ? "n2" : "n1";
  rig.Event("pods", "MODIFIED", PodJson({.version = 101, .node = other, .cpu_milli = 800}));
  EXPECT_EQ(rig.Held(ours), 0);
  EXPECT_EQ(rig.Held(other), 800);
  rig.Event("pods", "ADDED",
            PodJson({.name = "q", .uid = "u-q", .version = 102, .cpu_milli = 800}));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), ours);
}

// The state is rebuilt from API objects alone.
TEST(Scheduler, ARestartFindsTheSameState) {
  const std::vector<std::string> pods = {PodJson({.node = "n1"}),
                                         PodJson({.name = "q", .uid = "u-q", .cpu_milli = 900})};
  const std::vector<std::string> nodes = {NodeJson("n1", 1)};
  Rig first;
  first.Start(pods, nodes);
  Rig second;
  second.Start(pods, nodes);
  EXPECT_EQ(testing::StateHash(first.scheduler), testing::StateHash(second.scheduler));
  EXPECT_EQ(second.Held("n1"), 500);
}

// A binding of unknown fate is read, and before the answer comes the watch tells that the pod has
// finished or was deleted: it will not tell again, so what was read must not bring the pod back.
TEST(Scheduler, APodThatIsGoneWhenItsReadComesIsNotKept) {
  struct Row {
    int version = 0;  // Of what was read; the watch tells of 103.
    bool finished = false;
  };
  for (const Row row : {Row{102, false}, Row{103, true}, Row{104, true}}) {
    Rig rig;
    rig.Start({PodJson({.name = "p", .uid = "u-p"})}, {NodeJson("n1", 1)});
    const env::SendRequest bind = rig.TakeBinding();
    rig.Step(env::CallFailed{.call = bind.call, .failure = env::CallFailure::kTimeout});
    rig.Settle();
    const env::SendRequest read = rig.TakeOf("/pods/p");
    ASSERT_NE(read.call.value, 0u);
    const auto pod = [](int version, bool finished) {
      std::string json = PodJson({.name = "p", .uid = "u-p", .version = version, .node = "n1"});
      const std::string_view pending = R"("phase":"Pending")";
      if (finished) json.replace(json.find(pending), pending.size(), R"("phase":"Succeeded")");
      return json;
    };
    rig.Event("pods", "DELETED", pod(103, true));
    rig.Answer(read, 200, pod(row.version, row.finished));
    rig.Settle();
    EXPECT_FALSE(rig.scheduler.engine().state().FindPod("u-p").valid());
    EXPECT_EQ(rig.Held("n1"), 0);
    EXPECT_EQ(rig.scheduler.counters().scheduled, 1u);
  }
}

// C20: what a defective wake-up index misses is healed when reasons are told anew, counted once, and
// told by the watchdog; without the defect there is nothing to find. That there is nothing is asked
// at each step of a simulation (sim/world.cc) and in each state of a walk (explore/stage.cc).
TEST(Scheduler, MissedWakesAreHealedAndTold) {
  for (const bool planted : {false, true}) {
    SchedulerOptions options;
    options.engine.faults.wake_index_misses_freed = planted;
    Rig rig(options);
    rig.Start({PodJson({.name = "q", .uid = "u-q", .node = "n1", .cpu_milli = 800}), PodJson({})},
              {NodeJson("n1", 1)});
    rig.Event("pods", "DELETED",
              PodJson({.name = "q", .uid = "u-q", .version = 101, .node = "n1"}));
    EXPECT_EQ(rig.TakeBinding().call.value != 0, !planted);
    rig.Pass(Duration::Seconds(52));
    EXPECT_EQ(rig.scheduler.engine().counters().missed_wakes, planted ? 1u : 0u);
    if (planted) {
      EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
      EXPECT_NE(rig.logs.back().find("watchdog: 1 waiting lines"), std::string::npos);
    }
    for (const std::string_view name :
         {"berth_missed_wakes_total", "scheduler_pod_scheduled_after_flush_total"}) {
      const std::string told = fmt::format("\n{} {}\n", name, planted ? 1 : 0);
      EXPECT_TRUE(rig.Get("/metrics").contains(told)) << told;
    }
    EXPECT_EQ(rig.scheduler.counters().audit_findings, 0u);
  }
}

// The outcome of a binding may free room, too: the watchdog looks after one, and the metric counts
// what it and what the engine by itself found.
TEST(Scheduler, TheWatchdogLooksAfterOutcomesToo) {
  SchedulerOptions options;
  options.engine.faults.wake_index_misses_freed = true;
  Rig rig(options);
  rig.Start({PodJson({.name = "q", .uid = "u-q", .cpu_milli = 800}),
             PodJson({.name = "r", .uid = "u-r", .cpu_milli = 800})},
            {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.Pass(Duration::Seconds(60));
  ASSERT_EQ(rig.scheduler.engine().counters().missed_wakes, 0u);
  rig.Answer(bind, 404, "");
  rig.Pass(Duration::Seconds(60));
  EXPECT_EQ(rig.scheduler.engine().counters().missed_wakes, 1u);
  EXPECT_NE(rig.logs.back().find("watchdog: 1 waiting lines"), std::string::npos);
}

TEST(Scheduler, TheAuditFindsAClaimThatWasKept) {
  SchedulerOptions options;
  options.engine.faults.keep_claim_of_deleted_pod = true;
  Rig rig(options);
  rig.Start({PodJson({.node = "n1"})}, {NodeJson("n1", 1)});
  rig.Event("pods", "DELETED", PodJson({.version = 101, .node = "n1"}));
  rig.Pass(Duration::Seconds(40));
  EXPECT_GT(rig.scheduler.counters().audit_findings, 0u);
}

TEST(Scheduler, AForkGoesItsOwnWay) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  Rig fork = rig;
  rig.Answer(bind, 201, "");
  fork.Answer(bind, 403, "");
  rig.Settle();
  fork.Settle();
  EXPECT_EQ(rig.Held("n1"), 500);
  EXPECT_EQ(fork.Held("n1"), 0);
}

TEST(Scheduler, AnswersWhy) {
  Rig rig;
  rig.Start({PodJson({.cpu_milli = 2'000}), PodJson({.name = "q", .uid = "u-q"})},
            {NodeJson("n1", 1)});
  const std::string why = rig.Get("/debug/why?pod=ns%2Fp");
  EXPECT_NE(why.find(R"("stage":"pending")"), std::string::npos) << why;
  EXPECT_NE(why.find("0/1 nodes are available: 1 Insufficient cpu."), std::string::npos) << why;
  const std::string placed = rig.Get("/debug/why?pod=ns/q");
  EXPECT_NE(placed.find(R"("stage":"in flight")"), std::string::npos) << placed;
  EXPECT_NE(placed.find(R"("node":"n1")"), std::string::npos) << placed;
  EXPECT_NE(rig.Get("/debug/why?pod=ns/none").find("404"), std::string::npos);
  EXPECT_NE(rig.Get("/debug/why?pod=none").find("400"), std::string::npos);
  EXPECT_NE(rig.Get("/debug/ledger").find(R"("held":500)"), std::string::npos);
  EXPECT_NE(rig.Get("/debug/ledger?node=n1").find(R"("pod":"ns/q")"), std::string::npos);
  EXPECT_NE(rig.Get("/metrics").find("berth_nodes 1\n"), std::string::npos);
  EXPECT_NE(rig.Get("/metrics").find("berth_vocabulary_entries{table=\"classes\"} 4\n"),
            std::string::npos);
  EXPECT_EQ(rig.Get("/readyz"), "ok");
}

// Goal: who asks about a pod that is not placed learns whose it is, or which of its fields is not
// honoured, until that is no longer so. What no node is large enough for names the resource.
TEST(Scheduler, AnswersWhyOfPodsThatItLeavesAlone) {
  Rig rig;
  const std::string claim =
      R"(,"hostNetwork":false,"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}])";
  rig.Start({PodJson({.name = "a", .uid = "u-a", .scheduler = "zzz"}),
             PodJson({.name = "b", .uid = "u-b", .extra_spec = claim}),
             PodJson({.name = "big", .uid = "u-big", .cpu_milli = 2'000})},
            {NodeJson("n1", 1)});
  const std::string other = rig.Get("/debug/why?pod=ns/a");
  EXPECT_NE(other.find(R"(spec.schedulerName names, \"zzz\")"), std::string::npos) << other;
  const std::string field = rig.Get("/debug/why?pod=ns/b");
  EXPECT_NE(field.find("spec.resourceClaims"), std::string::npos) << field;
  EXPECT_NE(field.find("can't be honoured by this scheduler yet"), std::string::npos) << field;
  const std::string big = rig.Get("/debug/why?pod=ns/big");
  EXPECT_NE(big.find("a node with more cpu: even empty, these have too little"), std::string::npos)
      << big;
  rig.Event("pods", "MODIFIED",
            PodJson({.name = "a", .uid = "u-a", .version = 101, .node = "n1", .scheduler = "zzz"}));
  rig.Event("pods", "DELETED", PodJson({.name = "b", .uid = "u-b", .version = 102}));
  EXPECT_EQ(rig.Get("/debug/why?pod=ns/a").find("nodeMissing"), std::string::npos);
  rig.Event("nodes", "DELETED", NodeJson("n1", 103));
  const std::string lost = rig.Get("/debug/why?pod=ns/a");
  EXPECT_NE(lost.find(R"("node":"n1","nodeMissing":true)"), std::string::npos) << lost;
  EXPECT_EQ(rig.scheduler.left_alone("u-a"), nullptr);
  EXPECT_EQ(rig.scheduler.left_alone("u-b"), nullptr);
}

// Goal: invented resources of pods don't keep a node with a new one out, and who was refused for
// them is told and taken once a node offers it. Method: 30 pods of 4 invented kinds each, a pod
// that asks for nvidia.com/gpu, then the node with it.
TEST(Scheduler, InventedResourcesDoNotKeepNodesOut) {
  const auto asks = [](const std::string& requests) {
    return fmt::format(R"(,"overhead":{{{}}})", requests);
  };
  Rig rig;
  rig.Start({}, {NodeJson("n1", 1)});
  for (int i = 0; i < 100; ++i) {
    const std::string requests = fmt::format(R"("made.up/r{}":"1")", i);
    const std::string name = fmt::format("made-up-{}", i);
    const std::string pod = PodJson({.name = name,
                                     .uid = "u-" + name,
                                     .version = 101 + i,
                                     .scheduler = "other",
                                     .extra_spec = asks(requests)});
    rig.Event("pods", "ADDED", pod);
    rig.Event("pods", "DELETED", pod);
  }
  rig.inbox.clear();
  const PodSpec wanted{
      .name = "gpu", .uid = "u-gpu", .version = 201, .extra_spec = asks(R"("nvidia.com/gpu":"1")")};
  rig.Event("pods", "ADDED", PodJson(wanted));
  const std::string why = rig.Get("/debug/why?pod=ns/gpu");
  EXPECT_NE(why.find("requests nvidia.com/gpu, which no node offers"), std::string::npos) << why;
  EXPECT_NE(rig.TakeOf("/pods/gpu/status").request.body.view().find("requests nvidia.com/gpu"),
            std::string_view::npos);
  std::string node = NodeJson("n2", 202);
  const std::string memory = R"("memory":"64Gi")";
  for (size_t at = node.find(memory); at != std::string::npos; at = node.find(memory, at + 30)) {
    node.insert(at, R"("nvidia.com/gpu":"8",)");
  }
  rig.Event("nodes", "ADDED", node);
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n2");
  EXPECT_EQ(rig.scheduler.unread("ns/gpu"), nullptr);
}

// A node is taken as far as it can be, and what is left out is told once.
TEST(Scheduler, ANodeWithTooManyResourcesIsTaken) {
  std::string resources;
  for (int i = 100; i < 300; ++i) resources += fmt::format(R"("a.b/r{}":"1",)", i);
  const auto node_of = [&](int version) {
    std::string node = NodeJson("n1", version);
    return node.insert(node.find(R"("cpu":)"), resources);
  };
  Rig rig;
  rig.Start({PodJson({})}, {node_of(1)});
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  ASSERT_EQ(rig.scheduler.left_out().size(), 1u);
  const auto told = [&] {
    return std::ranges::count_if(rig.logs, [](const std::string& line) {
      return line.find("node n1: its a.b/r223, ") == 0;
    });
  };
  EXPECT_EQ(told(), 1);
  rig.Event("nodes", "MODIFIED", node_of(101));
  EXPECT_EQ(told(), 1);
  EXPECT_NE(rig.Get("/debug/ledger?node=n1").find(R"("leftOut":"a.b/r223, )"), std::string::npos);
  rig.Event("nodes", "MODIFIED", NodeJson("n1", 102));
  EXPECT_TRUE(rig.scheduler.left_out().empty());
}

// Goal: more pods than the ledger can sum are turned away with a reason, and taken once there is
// room; nothing that is known is lost. Method: room for two pods.
TEST(Scheduler, PodsBeyondTheLimitAreToldAndTakenLater) {
  SchedulerOptions options;
  options.engine.pods_max = 2;
  Rig rig(options);
  rig.Start({PodJson({.name = "a", .uid = "u-a", .node = "n1"}),
             PodJson({.name = "b", .uid = "u-b", .node = "n1"})},
            {NodeJson("n1", 1, 4'000)});
  rig.Event("pods", "ADDED", PodJson({.name = "c", .uid = "u-c", .version = 101}));
  EXPECT_NE(
      rig.TakeOf("/pods/c/status").request.body.view().find("holds 2 pods, as many as it can"),
      std::string_view::npos);
  EXPECT_NE(rig.Get("/debug/why?pod=ns/c").find("holds 2 pods"), std::string::npos);
  rig.Event("pods", "MODIFIED", PodJson({.name = "b", .uid = "u-b", .version = 102, .node = "n1"}));
  EXPECT_EQ(rig.Held("n1"), 1'000);
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  rig.Event("pods", "DELETED", PodJson({.name = "a", .uid = "u-a", .version = 103, .node = "n1"}));
  rig.Pass(Duration::Seconds(40));
  EXPECT_EQ(rig.TakeBinding().request.target, "/api/v1/namespaces/ns/pods/c/binding");
  EXPECT_EQ(rig.scheduler.unread("ns/c"), nullptr);
}

TEST(Scheduler, NodesBeyondTheLimitAreNotUsed) {
  SchedulerOptions options;
  options.engine.nodes_max = 1;
  Rig rig(options);
  rig.Start({PodJson({.cpu_milli = 2'000})}, {NodeJson("n1", 1), NodeJson("n2", 1, 4'000)});
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.scheduler.left_out().at("n2"), "node");
  EXPECT_EQ(std::ranges::count(
                rig.logs, "node n2 is not used: the scheduler holds 1 nodes, as many as it can"),
            1);
  rig.Event("nodes", "DELETED", NodeJson("n1", 101));
  rig.Event("nodes", "MODIFIED", NodeJson("n2", 102, 4'000));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n2");
  EXPECT_TRUE(rig.scheduler.left_out().empty());
}

// What the role lacks is told by verb and resource, and counted; nothing waits for it.
TEST(Scheduler, AMissingRightToWriteIsToldAndCounted) {
  Rig rig;
  rig.Start({PodJson({}), PodJson({.name = "big", .uid = "u-big", .cpu_milli = 9'000})},
            {NodeJson("n1", 1)});
  const env::SendRequest status = rig.TakeOf("/pods/big/status");
  ASSERT_NE(status.call.value, 0u);
  rig.Answer(status, 403,
             R"({"kind":"Status","code":403,"message":"pods \"big\" is forbidden: no right"})");
  EXPECT_NE(std::ranges::find(
                rig.logs, "patch pods/status: refused (403): pods \"big\" is forbidden: no right"),
            rig.logs.end());
  EXPECT_TRUE(
      rig.Get("/metrics")
          .contains(
              R"(berth_writes_failed_total{outcome="refused",resource="pods/status",verb="patch"} 1)"));
  EXPECT_TRUE(rig.Get("/metrics").contains("berth_conditions_total 0\n"));
  EXPECT_TRUE(rig.Get("/metrics")
                  .contains(R"(rest_client_requests_total{code="403",host="",method="PATCH"} 1)"));
  EXPECT_TRUE(
      rig.Get("/metrics")
          .contains(
              R"(rest_client_request_duration_seconds_bucket{host="",verb="PATCH",le="0.005"} 1)"));
  rig.Answer(rig.TakeBinding(), 201, "");
  EXPECT_EQ(rig.scheduler.counters().scheduled, 1u);
}

// An object that can't be read is told of; the rest goes on.
TEST(Scheduler, AnUnreadableObjectIsToldOf) {
  Rig rig;
  rig.Start({}, {NodeJson("n1", 1)});
  rig.Event(
      "pods", "ADDED",
      R"({"metadata":{"name":"x","namespace":"ns","uid":"u-x","resourceVersion":"101"},"spec":[]})");
  ASSERT_FALSE(rig.logs.empty());
  EXPECT_NE(rig.logs.back().find("pod ns/x: "), std::string::npos);
  EXPECT_EQ(rig.scheduler.counters().undecodable, 1u);
  rig.Event("pods", "ADDED", PodJson({.version = 102}));
  EXPECT_NE(rig.TakeBinding().call.value, 0u);
}

// Goal: a pod that can't be read is told so where its owner looks, if it waits for us. Method: the
// same mistake in pods that do and don't.
TEST(Scheduler, AWaitingPodThatCannotBeReadIsTold) {
  const std::string wrong = fmt::format(R"(,"overhead":{{"cpu":"{}"}})", std::string(5'000, 'x'));
  Rig rig;
  rig.Start({}, {NodeJson("n1", 1)});
  rig.Event("pods", "ADDED", PodJson({.version = 101, .extra_spec = wrong}));
  const env::SendRequest write = rig.TakeOf("/pods/p/status");
  const std::string_view body = write.request.body.view();
  EXPECT_TRUE(body.contains(R"("uid":"u-p","resourceVersion":"101")")) << body;
  EXPECT_TRUE(body.contains(
      R"("reason":"SchedulerError","message":"spec.overhead[cpu] must be a quantity, and xxx)"))
      << body;
  EXPECT_LT(body.size(), 1'500u);
  EXPECT_TRUE(rig.Get("/debug/why?pod=ns/p").contains("must be a quantity"));
  rig.Answer(write, 200, "{}");
  const std::string leaving = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";
  int version = 101;
  for (PodSpec pod : {PodSpec{.scheduler = "other"}, PodSpec{.scheduler = ""},
                      PodSpec{.node = "n1"}, PodSpec{.extra_meta = leaving}}) {
    pod.name = pod.uid = "q";
    pod.version = ++version;
    pod.extra_spec = wrong;
    rig.Event("pods", "ADDED", PodJson(pod));
    EXPECT_NE(rig.scheduler.unread("ns/q"), nullptr);
    EXPECT_EQ(rig.TakeOf("/pods/q/status").call.value, 0u) << PodJson(pod);
    pod.version = ++version;
    rig.Event("pods", "DELETED", PodJson(pod));
  }
  // It can be read now: what was wrong is over.
  rig.Event("pods", "MODIFIED", PodJson({.version = ++version}));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  EXPECT_EQ(rig.scheduler.unread("ns/p"), nullptr);
}

// One that another scheduler bound meanwhile waits for nothing: nothing is written of it any more.
TEST(Scheduler, AnUnreadablePodThatIsBoundMeanwhileIsToldNothing) {
  const std::string wrong = R"(,"overhead":{"cpu":"x"})";
  Rig rig;
  rig.Start({}, {NodeJson("n1", 1)});
  rig.Event("pods", "ADDED", PodJson({.version = 101, .extra_spec = wrong}));
  rig.Answer(rig.TakeOf("/pods/p/status"), 403, "{}");
  rig.Event("pods", "MODIFIED", PodJson({.version = 102, .node = "n1", .extra_spec = wrong}));
  rig.Pass(Duration::Minutes(10));
  EXPECT_EQ(rig.TakeOf("/pods/p/status").call.value, 0u);
  EXPECT_EQ(rig.scheduler.status().pods(), 0u);
}

// The API server takes amounts of any length. No node has that much.
TEST(Scheduler, APodThatAsksForAMoreThanLargeAmountIsToldThatNoNodeHasIt) {
  Rig rig;
  std::string pod = PodJson({.version = 101});
  const std::string cpu = R"("cpu":"500m")";
  pod.replace(pod.find(cpu), cpu.size(),
              R"("memory":"100000000000000000000000000000000000000001")");
  rig.Start({}, {NodeJson("n1", 1)});
  rig.Event("pods", "ADDED", pod);
  EXPECT_EQ(rig.scheduler.counters().undecodable, 0u);
  const env::SendRequest write = rig.TakeOf("/pods/p/status");
  EXPECT_TRUE(write.request.body.view().contains("1 Insufficient memory"))
      << write.request.body.view();
}

// No API server takes a node that gives less than nothing: such a node is not used, and told of.
// What one has too much of counts as the most there is.
TEST(Scheduler, NodesOfAbsurdAmountsHarmNobody) {
  struct Case {
    std::string_view amounts;
    std::string_view told;  // Empty: the pod is placed there.
  };
  const std::string huge =
      fmt::format(R"("cpu":"{0}","memory":"{0}","pods":"{0}")", std::string(400, '9'));
  for (const auto& [amounts, told] : std::initializer_list<Case>{
           {R"("cpu":"-4","memory":"64Gi","pods":"110")", "[cpu] must be at least 0, and is -4"},
           {R"("cpu":"-9E30","pods":"110")", "[cpu] must be at least 0, and is -9E30"},
           {R"("cpu":"4","pods":"-1")", "[pods] must be at least 0, and is -1"},
           {R"("cpu":"4","memory":"-1","pods":"1")", "[memory] must be at least 0, and is -1"},
           {R"("cpu":"4","pods":"1","x.io/y":"-9E18")",
            "[x.io/y] must be at least 0, and is -9E18"},
           {R"("cpu":"much","pods":"110")", "[cpu] must be a quantity"},
           {R"("cpu":"1n","memory":"64Gi","pods":"110")", "Insufficient cpu"},
           {R"("cpu":"4","memory":"64Gi")", "Too many pods"},
           {R"("cpu":"9223372036854775807","memory":"9E18","pods":"9223372036854775807")", ""},
           {R"("cpu":"9E18","memory":"16Ei","pods":"1E18","x.io/y":"9E99","":"1")", ""},
           {huge, ""}}) {
    SCOPED_TRACE(amounts.substr(0, 80));
    Rig rig;
    rig.Start({PodJson({})},
              {fmt::format(R"({{"metadata":{{"name":"odd","uid":"u-odd","resourceVersion":"1"}},)"
                           R"("status":{{"allocatable":{{{}}}}}}})",
                           amounts)});
    if (told.empty()) {
      EXPECT_EQ(TargetOf(rig.TakeBinding()), "odd");
      continue;
    }
    EXPECT_EQ(rig.TakeBinding().call.value, 0u);
    const std::string all =
        fmt::format("{}\n{}", fmt::join(rig.logs, "\n"), rig.Get("/debug/why?pod=ns/p"));
    EXPECT_TRUE(all.contains(told)) << all;
    rig.Event("nodes", "ADDED", NodeJson("n1", 101));
    EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  }
}

// What it was before it changed says nothing of what it is: it may have been cordoned.
TEST(Scheduler, ANodeThatCannotBeReadAnyMoreIsNotUsed) {
  Rig rig;
  rig.Start({PodJson({.name = "q", .uid = "u-q", .node = "n1", .cpu_milli = 300})},
            {NodeJson("n1", 1)});
  rig.Event("nodes", "MODIFIED",
            R"({"metadata":{"name":"n1","uid":"u-n1","resourceVersion":"101"},"spec":[]})");
  EXPECT_TRUE(rig.logs.back().starts_with("node n1 is not used: ")) << rig.logs.back();
  rig.Event("pods", "ADDED", PodJson({.version = 102}));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 300);
  rig.Event("nodes", "MODIFIED", NodeJson("n1", 103));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  EXPECT_EQ(rig.Held("n1"), 800);
}

}  // namespace
}  // namespace berth::control
