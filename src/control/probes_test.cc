// Goal: probes and metrics answer as kube-scheduler's do. Method: a scheduler with a scripted API
// server is asked in each of its states.
#include "control/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "control/scheduler.h"
#include "control/test_rig.h"

namespace berth::control {
namespace {

SchedulerOptions WithElection() {
  SchedulerOptions options;
  options.leader_election = LeaderElectionOptions{.identity = "a"};
  return options;
}

TEST(Probes, SayOkAndWithVerboseWhatWasLookedAt) {
  Rig rig(WithElection());
  rig.Start({}, {});
  EXPECT_EQ(rig.Get("/healthz"), "ok");
  EXPECT_EQ(rig.Get("/livez"), "ok");
  EXPECT_EQ(rig.Get("/readyz"), "ok");
  EXPECT_EQ(rig.response.status, 200);
  EXPECT_EQ(rig.Get("/healthz?verbose"), "[+]leaderElection ok\nhealthz check passed\n");
  EXPECT_EQ(rig.Get("/livez?verbose=1"), "[+]ping ok\nlivez check passed\n");
  EXPECT_EQ(
      rig.Get("/readyz?verbose"),
      "[+]leaderElection ok\n[+]sched-handler-sync ok\n[+]shutdown ok\nreadyz check passed\n");
  EXPECT_EQ(rig.Get("/readyz/sched-handler-sync"), "ok");
  rig.Get("/readyz/nosuch");
  EXPECT_EQ(rig.response.status, 404);
  rig.Get("/readyzz");
  EXPECT_EQ(rig.response.status, 404);
  Rig alone;
  alone.Start({}, {});
  EXPECT_EQ(alone.Get("/healthz?verbose"), "[+]ping ok\nhealthz check passed\n");
}

// As load balancers ask.
TEST(Probes, AnswerHeadAsGet) {
  Rig rig;
  rig.Start({}, {});
  for (const auto& [method, status] :
       {std::pair{env::Method::kHead, 200}, {env::Method::kPost, 405}}) {
    rig.Step(env::RequestArrived{
        .exchange = {1},
        .peer = {},
        .request = {.method = method, .target = "/readyz", .headers = {}, .body = {}}});
    EXPECT_EQ(rig.response.status, status);
  }
}

TEST(Probes, NameWhatFailsAndWithholdTheReason) {
  Rig rig(WithElection());
  rig.Tick();
  const std::string_view failed =
      "[+]leaderElection ok\n[-]sched-handler-sync failed: reason withheld\n[+]shutdown ok\n"
      "readyz check failed\n";
  EXPECT_EQ(rig.Get("/readyz"), failed);
  EXPECT_EQ(rig.response.status, 500);
  EXPECT_EQ(rig.Get("/readyz/sched-handler-sync"),
            "internal server error: the cluster is still being listed\n");
  EXPECT_EQ(rig.response.status, 500);
  EXPECT_EQ(rig.Get("/livez"), "ok");
  EXPECT_EQ(rig.Get("/readyz?exclude=sched-handler-sync"), "ok");
  EXPECT_EQ(rig.Get("/readyz?exclude=sched-handler-sync&verbose"),
            "[+]leaderElection ok\n[+]sched-handler-sync excluded: ok\n[+]shutdown ok\n"
            "readyz check passed\n");
  EXPECT_EQ(rig.Get("/livez?exclude=x&exclude=y&verbose"),
            "[+]ping ok\nwarn: some health checks cannot be excluded: no matches for \"x\",\"y\"\n"
            "livez check passed\n");
}

// What is known is as old as the last list.
TEST(Probes, WhoseWatchIsRefusedForLongIsNotReady) {
  Rig rig;
  rig.Start({}, {});
  rig.Step(env::StreamEnded{rig.streams["pods"]});
  env::SendRequest watch;
  for (int seconds = 0; seconds < 120; ++seconds) {
    rig.Pass(Duration::Seconds(1));
    const env::SendRequest list = rig.TakeOf("/pods?fieldSelector");
    if (list.call.value != 0) rig.Answer(list, 200, ListJson({}));
    watch = rig.TakeOf("/pods?watch");
    if (watch.call.value != 0) rig.Answer(watch, 403, "{}");
    const std::string ready = rig.Get("/readyz");
    EXPECT_TRUE(seconds >= 50 || ready == "ok") << seconds << " s: " << ready;
  }
  EXPECT_TRUE(rig.Get("/readyz/sched-handler-sync")
                  .starts_with("internal server error: the API server has refused to watch pods "
                               "for "))
      << rig.response.body.view();
  EXPECT_EQ(std::ranges::count_if(
                rig.logs, [](const std::string& line) { return line.contains("watch of pods"); }),
            1);
  while ((watch = rig.TakeOf("/pods?watch")).call.value == 0) {
    rig.Pass(Duration::Seconds(1));
    const env::SendRequest list = rig.TakeOf("/pods?fieldSelector");
    if (list.call.value != 0) rig.Answer(list, 200, ListJson({}));
  }
  rig.Answer(watch, 200, "");
  EXPECT_EQ(rig.Get("/readyz"), "ok");
}

TEST(Probes, WhoIsToStopIsNotReady) {
  Rig rig;
  rig.Start({}, {});
  rig.Step(env::RequestArrived{.exchange = kStopExchange, .peer = {}, .request = {}});
  EXPECT_EQ(rig.Get("/readyz"),
            "[+]sched-handler-sync ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n");
  EXPECT_EQ(rig.Get("/livez"), "ok");
}

TEST(Metrics, AreNamedAndDividedAsKubeSchedulers) {
  SchedulerOptions options;
  // Whatever the lease is called.
  options.leader_election = LeaderElectionOptions{.identity = "a", .name = "berth"};
  Rig standby(options);
  standby.Start({}, {NodeJson("n1", 1)});
  EXPECT_NE(
      standby.Get("/metrics").find("leader_election_master_status{name=\"kube-scheduler\"} 0\n"),
      std::string::npos);
  Rig rig;
  rig.Start(
      {PodJson({}), PodJson({.name = "big", .uid = "u-big", .cpu_milli = 9'000}),
       PodJson({.name = "g", .uid = "u-g", .extra_spec = R"(,"schedulingGates":[{"name":"x"}])"}),
       PodJson({.name = "q", .uid = "u-q", .node = "n1", .cpu_milli = 100})},
      {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.now = rig.now + Duration::Milliseconds(3);
  const std::string before = rig.Get("/metrics");
  EXPECT_NE(before.find("scheduler_cache_size{type=\"assumed_pods\"} 1\n"), std::string::npos);
  rig.Answer(bind, 201, "");
  const std::string metrics = rig.Get("/metrics");
  for (const std::string_view line :
       {"scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 1\n",
        "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"unschedulable\"} "
        "1\n",
        "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"error\"} 0\n",
        "scheduler_pending_pods{queue=\"active\"} 0\n",
        "scheduler_pending_pods{queue=\"backoff\"} 0\n",
        "scheduler_pending_pods{queue=\"gated\"} 1\n",
        "scheduler_pending_pods{queue=\"unschedulable\"} 1\n",
        "scheduler_queue_incoming_pods_total{event=\"UnschedulablePodAdd\",queue=\"active\"} 2\n",
        "scheduler_queue_incoming_pods_total{event=\"storage.k8s.io/CSINodeUpdate\","
        "queue=\"active\"} 0\n",
        "scheduler_cache_size{type=\"nodes\"} 1\n",
        "scheduler_cache_size{type=\"pods\"} 2\n",
        "scheduler_scheduling_attempt_duration_seconds_bucket{profile=\"default-scheduler\","
        "result=\"scheduled\",le=\"0.002\"} 0\n",
        "scheduler_scheduling_attempt_duration_seconds_bucket{profile=\"default-scheduler\","
        "result=\"scheduled\",le=\"0.004\"} 1\n",
        "scheduler_scheduling_attempt_duration_seconds_sum{profile=\"default-scheduler\","
        "result=\"scheduled\"} 0.003\n",
        "scheduler_framework_extension_point_duration_seconds_sum{extension_point=\"PreBind\","
        "profile=\"default-scheduler\",status=\"Success\"} 0\n",
        "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Bind\","
        "profile=\"default-scheduler\",status=\"Error\"} 0\n",
        "scheduler_framework_extension_point_duration_seconds_bucket{extension_point=\"Bind\","
        "profile=\"default-scheduler\",status=\"Success\",le=\"0.0016\"} 0\n",
        "scheduler_framework_extension_point_duration_seconds_bucket{extension_point=\"Bind\","
        "profile=\"default-scheduler\",status=\"Success\",le=\"0.0032\"} 1\n",
        "scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts=\"1\",le=\"0.01\"} 1\n",
        "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"1\"} 1\n",
        "scheduler_pod_scheduling_attempts_bucket{le=\"1\"} 1\n",
        "scheduler_pod_scheduling_attempts_sum 1\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
  }
}

TEST(Metrics, ABindingThatIsRefusedTookItsTimeToo) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.now = rig.now + Duration::Milliseconds(3);
  rig.Answer(bind, 422, R"({"kind":"Status","status":"Failure","message":"no","code":422})");
  const std::string metrics = rig.Get("/metrics");
  EXPECT_NE(metrics.find("scheduler_framework_extension_point_duration_seconds_sum{"
                         "extension_point=\"Bind\",profile=\"default-scheduler\",status=\"Error\"} "
                         "0.003\n"),
            std::string::npos)
      << metrics;
  // It is tried again when its backoff is over.
  EXPECT_NE(metrics.find("scheduler_queue_incoming_pods_total{event=\"ScheduleAttemptFailure\","
                         "queue=\"backoff\"} 1\n"),
            std::string::npos)
      << metrics;
  const std::string backoff = "scheduler_pending_pods{queue=\"backoff\"} ";
  EXPECT_NE(metrics.find(backoff + "1\n"), std::string::npos) << metrics;
  rig.Pass(Duration::Minutes(1));
  EXPECT_NE(rig.Get("/metrics").find(backoff + "0\n"), std::string::npos);
}

// Goal: from 15 on attempts are told together, as kube-scheduler's getAttemptsLabel has it. Method:
// all of a pod's bindings but the last are refused.
TEST(Metrics, TellAttemptsUpToFourteen) {
  for (const auto& [attempts, label] : {std::pair{14, "14"}, {15, "15+"}, {16, "15+"}}) {
    Rig rig;
    rig.Start({PodJson({})}, {NodeJson("n1", 1)});
    for (int i = 1; i < attempts; ++i) {
      rig.Answer(rig.TakeBinding(), 422, R"({"kind":"Status","status":"Failure","code":422})");
      rig.Pass(Duration::Minutes(1));
    }
    rig.Answer(rig.TakeBinding(), 201, "");
    const std::string metrics = rig.Get("/metrics");
    EXPECT_NE(
        metrics.find(fmt::format(
            "scheduler_pod_scheduling_sli_duration_seconds_count{{attempts=\"{}\"}} 1\n", label)),
        std::string::npos)
        << attempts << metrics;
  }
}

// Goal: who has gates is refused by their plugin, as long as it has them and is there.
TEST(Metrics, GatesRefuseAsLongAsTheyAreThere) {
  const auto gated = [](int version) {
    return PodJson({.name = "g",
                    .uid = "u-g",
                    .version = version,
                    .cpu_milli = 9'000,
                    .extra_spec = R"(,"schedulingGates":[{"name":"x"}])"});
  };
  const std::string series =
      "scheduler_unschedulable_pods{plugin=\"SchedulingGates\",profile=\"default-scheduler\"} ";
  Rig rig;
  rig.Start({gated(10), PodJson({.name = "h",
                                 .uid = "u-h",
                                 .scheduler = "another",
                                 .extra_spec = R"(,"schedulingGates":[{"name":"x"}])"})},
            {NodeJson("n1", 1)});
  EXPECT_NE(rig.Get("/metrics").find(series + "1\n"), std::string::npos) << rig.Get("/metrics");
  EXPECT_EQ(rig.Get("/metrics").find("profile=\"another\""), std::string::npos);
  rig.Event("pods", "MODIFIED",
            PodJson({.name = "g", .uid = "u-g", .version = 101, .cpu_milli = 9'000}));
  EXPECT_EQ(rig.Get("/metrics").find(series), std::string::npos) << rig.Get("/metrics");
  Rig again;
  again.Start({gated(10)}, {NodeJson("n1", 1)});
  EXPECT_NE(again.Get("/metrics").find(series + "1\n"), std::string::npos);
  again.Event("pods", "DELETED", gated(101));
  EXPECT_EQ(again.Get("/metrics").find(series), std::string::npos) << again.Get("/metrics");
}

// Goal: members of a gang that lacks others stand in no line, and wait all the same; who fits
// nowhere beside them counts once.
TEST(Metrics, CountWhoWaitsForItsGangAsUnschedulable) {
  const auto member = [](const std::string& name) {
    return PodJson({.name = name,
                    .uid = "u-" + name,
                    .extra_meta = R"(,"annotations":{"scheduling.k8s.io/group-name":"g"})"});
  };
  SchedulerOptions options;
  options.groups = true;
  Rig rig(options);
  rig.Start(
      {member("a"), member("b"), PodJson({.name = "big", .uid = "u-big", .cpu_milli = 9'000})},
      {NodeJson("n1", 1)});
  rig.Event("groups", "ADDED",
            R"({"kind":"PodGroup","apiVersion":"scheduling.volcano.sh/v1beta1","metadata":{)"
            R"("name":"g","namespace":"ns","uid":"g1","resourceVersion":"112"},)"
            R"("spec":{"minMember":3},"status":{"phase":"Pending"}})");
  const std::string metrics = rig.Get("/metrics");
  EXPECT_NE(metrics.find("scheduler_pending_pods{queue=\"unschedulable\"} 3\n"), std::string::npos)
      << metrics;
}

// Goal: a pod of ours that asks for what berth does not do waits like one that fits nowhere.
TEST(Metrics, CountWhoCannotBeHonouredAsUnschedulable) {
  const std::string claims = R"(,"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}])";
  const std::string gates = R"(,"schedulingGates":[{"name":"x"}])";
  Rig rig;
  rig.Start({PodJson({.extra_spec = claims}),
             PodJson({.name = "g", .uid = "u-g", .extra_spec = claims + gates}),
             PodJson({.name = "h", .uid = "u-h", .scheduler = "another", .extra_spec = claims})},
            {NodeJson("n1", 1)});
  const std::string metrics = rig.Get("/metrics");
  for (const std::string_view line : {"scheduler_pending_pods{queue=\"active\"} 0\n",
                                      "scheduler_pending_pods{queue=\"gated\"} 1\n",
                                      "scheduler_pending_pods{queue=\"unschedulable\"} 1\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
  }
  rig.Event("pods", "DELETED", PodJson({.version = 101, .extra_spec = claims}));
  EXPECT_NE(rig.Get("/metrics").find("scheduler_pending_pods{queue=\"unschedulable\"} 0\n"),
            std::string::npos);
}

// Goal: a binding whose answer is lost is counted as any other once it is known what became of it,
// though the pod is learned by the same read.
TEST(Metrics, ABindingThatWasReadIsCounted) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.now = rig.now + Duration::Milliseconds(3);
  rig.Step(env::CallFailed{.call = bind.call, .failure = env::CallFailure::kLost});
  rig.Answer(rig.TakeOf("/pods/"), 200, PodJson({.version = 120, .node = "n1"}));
  const std::string metrics = rig.Get("/metrics");
  for (const std::string_view line :
       {"scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Bind\","
        "profile=\"default-scheduler\",status=\"Error\"} 1\n",
        "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Bind\","
        "profile=\"default-scheduler\",status=\"Success\"} 0\n",
        "scheduler_scheduling_attempt_duration_seconds_count{profile=\"default-scheduler\","
        "result=\"scheduled\"} 1\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
  }
}

}  // namespace
}  // namespace berth::control
