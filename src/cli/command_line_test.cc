// Goal: every command line is understood as documented or refused with what is wrong in it. Method:
// tables of arguments.
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

template <typename Options>
Options Get(std::vector<std::string> arguments) {
  const auto parsed = Parse(arguments, "1.2.3");
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().text);
  if (!parsed || !std::holds_alternative<Options>(*parsed)) {
    ADD_FAILURE() << "another command";
    return {};
  }
  return std::get<Options>(*parsed);
}

Exit Ends(std::vector<std::string> arguments) {
  const auto parsed = Parse(arguments, "1.2.3");
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Exit{.status = -1, .text = ""} : parsed.error();
}

TEST(CommandLine, UpHasDefaultsThatServeALaptop) {
  const auto up = Get<UpOptions>({"up"});
  EXPECT_EQ(up.data_dir, "berth-data");
  EXPECT_EQ(up.host, "127.0.0.1");
  EXPECT_EQ(up.port, 7443);
  EXPECT_TRUE(up.durable);
  EXPECT_FALSE(up.accept_lost_writes);
  EXPECT_EQ(up.event_ttl, Duration::Minutes(60));
  EXPECT_EQ(up.job_run_for, Duration{});
  EXPECT_EQ(up.nodes, 0);
  EXPECT_FALSE(up.seed.has_value());
}

TEST(CommandLine, UpTakesAllItsOptions) {
  const auto up =
      Get<UpOptions>({"up", "--data-dir", "/d", "--listen", "[::1]:0", "--kubeconfig", "k",
                      "--nodes", "7", "--durability", "process", "--demo", "--once", "--seed", "9",
                      "--accept-lost-writes", "--event-ttl", "1h30m"});
  EXPECT_EQ(up.data_dir, "/d");
  EXPECT_EQ(up.host, "::1");
  EXPECT_EQ(up.port, 0);
  EXPECT_EQ(up.kubeconfig, "k");
  EXPECT_EQ(up.nodes, 7);
  EXPECT_FALSE(up.durable);
  EXPECT_TRUE(up.accept_lost_writes);
  EXPECT_EQ(up.event_ttl, Duration::Minutes(90));
  EXPECT_TRUE(up.demo);
  EXPECT_TRUE(up.once);
  EXPECT_EQ(up.seed, 9U);
}

TEST(CommandLine, PodsOfJobsRunForSoLong) {
  EXPECT_EQ(Get<UpOptions>({"up", "--job-run-for", "2s"}).job_run_for, Duration::Seconds(2));
  EXPECT_EQ(Get<NodesOptions>({"nodes", "--count", "1", "--job-run-for", "3s"}).job_run_for,
            Duration::Seconds(3));
}

TEST(CommandLine, NumbersAreDecimalAndOf64Bits) {
  EXPECT_EQ(Get<UpOptions>({"up", "--seed", "18446744073709551615"}).seed, UINT64_MAX);
  EXPECT_EQ(Get<UpOptions>({"up", "--seed", "010"}).seed, 10U);
  EXPECT_EQ(Get<UpOptions>({"up", "--seed", "00"}).seed, 0U);
}

TEST(CommandLine, TheDemoHasNodes) { EXPECT_EQ(Get<UpOptions>({"up", "--demo"}).nodes, 100); }

TEST(CommandLine, InMemoryHasNoFolder) {
  EXPECT_EQ(Get<UpOptions>({"up", "--in-memory"}).data_dir, "");
}

TEST(CommandLine, WhyTakesAPodInEveryUsualSpelling) {
  for (const char* spelling : {"pod/web-0", "pods/web-0", "po/web-0", "web-0"}) {
    const auto why = Get<WhyOptions>(
        {"why", spelling, "-n", "team-a", "--why-address", "h:1", "--why-ca", "run.crt"});
    EXPECT_EQ(why.name, "web-0");
    EXPECT_EQ(why.scheduler.authority, "run.crt");
    EXPECT_EQ(why.namespace_name, "team-a");
    EXPECT_EQ(why.scheduler.where, "h:1");
  }
}

TEST(CommandLine, WhyTakesWorkloadsAndJobs) {
  using enum WhyOptions::Kind;
  EXPECT_EQ(Get<WhyOptions>({"why", "web-0"}).kind, kPod);
  for (const char* spelling : {"workload/w", "workloads/w", "wl/w"})
    EXPECT_EQ(Get<WhyOptions>({"why", spelling}).kind, kWorkload);
  EXPECT_EQ(Get<WhyOptions>({"why", "job/w"}).kind, kJob);
  EXPECT_EQ(Get<WhyOptions>({"why", "jobs/w"}).name, "w");
  for (const char* spelling : {"podgroup/g", "podgroups/g", "pg/g"})
    EXPECT_EQ(Get<WhyOptions>({"why", spelling}).kind, kGroup);
  // As `kubectl get -o name` prints them.
  EXPECT_EQ(Get<WhyOptions>({"why", "workload.kueue.x-k8s.io/w"}).kind, kWorkload);
  EXPECT_EQ(Get<WhyOptions>({"why", "job.batch/w"}).kind, kJob);
  EXPECT_EQ(Get<WhyOptions>({"why", "podgroup.scheduling.volcano.sh/g"}).name, "g");
}

TEST(CommandLine, QueuesAreAskedForByNameOrAll) {
  EXPECT_EQ(Get<QueueOptions>({"queue"}).name, "");
  const auto queue = Get<QueueOptions>(
      {"queue", "all", "-o", "json", "--why-address", "h:1", "--why-ca", "run.crt"});
  EXPECT_EQ(queue.name, "all");
  EXPECT_EQ(queue.scheduler.where, "h:1");
  EXPECT_EQ(queue.scheduler.authority, "run.crt");
  EXPECT_TRUE(queue.json);
  EXPECT_FALSE(Get<QueueOptions>({"queue", "-o", "text"}).json);
}

TEST(CommandLine, TheClientsFindTheirServer) {
  const auto run =
      Get<RunOptions>({"run", "--kubeconfig", "f", "--context", "c", "--secure-port", "10259",
                       "--secure-ca", "run.crt", "--scheduler-name", "a", "--scheduler-name", "b"});
  EXPECT_EQ(run.connect.kubeconfig, "f");
  EXPECT_EQ(run.connect.context, "c");
  EXPECT_EQ(run.secure_port, 10259);
  EXPECT_EQ(run.secure_ca, "run.crt");
  EXPECT_THAT(run.scheduler_names, ElementsAre("a", "b"));
  EXPECT_FALSE(Get<RunOptions>({"run"}).secure_port.has_value());
  EXPECT_FALSE(Get<RunOptions>({"run", "--leader-elect=false"}).secure_port.has_value());
  for (const char* flag : {"--authentication-kubeconfig=f", "--authorization-kubeconfig=f",
                           "--authentication-skip-lookup", "--tls-min-version=VersionTLS12",
                           "--authentication-tolerate-lookup-failure=false",
                           "--authentication-token-webhook-cache-ttl=1s",
                           "--authorization-webhook-cache-authorized-ttl=1s",
                           "--authorization-webhook-cache-unauthorized-ttl=1s",
                           "--client-ca-file=f", "--authorization-always-allow-paths=/healthz",
                           "--bind-address=127.0.0.1", "--secure-ca=f"}) {
    EXPECT_EQ(Get<RunOptions>({"run", flag}).secure_port, 10259) << flag;
    EXPECT_EQ(Get<RunOptions>({"run", flag, "--secure-port=1"}).secure_port, 1) << flag;
  }
  EXPECT_EQ(Get<RunOptions>({"run", "--tls-cert-file=f", "--tls-private-key-file=g"}).secure_port,
            10259);
  EXPECT_FALSE(Get<RunOptions>({"run"}).quota);
  EXPECT_TRUE(Get<RunOptions>({"run", "--quota"}).quota);
  EXPECT_EQ(Get<RunOptions>({"run", "--quota", "--config", "c.yaml"}).config, "c.yaml");
  EXPECT_EQ(Get<NodesOptions>({"nodes", "--count", "5000", "--template", "t.yaml"}).count, 5000);
  EXPECT_EQ(Get<ControllersOptions>({"controllers", "--kubeconfig", "f"}).connect.kubeconfig, "f");
}

TEST(CommandLine, RunTakesThePathsThatAreOpen) {
  EXPECT_EQ(Get<RunOptions>({"run"}).open_paths,
            (std::vector<std::string>{"/healthz", "/readyz", "/livez"}));
  EXPECT_EQ(
      Get<RunOptions>({"run", "--authorization-always-allow-paths=/metrics,/debug/*"}).open_paths,
      (std::vector<std::string>{"/metrics", "/debug/*"}));
}

TEST(CommandLine, LeaderElectionHasTheFlagsOfKubeScheduler) {
  const LeaderElectOptions usual = Get<RunOptions>({"run"}).leader;
  // What is not given, the configuration says.
  EXPECT_FALSE(usual.elect.has_value());
  EXPECT_EQ(usual.lease_duration, Duration());
  EXPECT_EQ(usual.resource_name, "");
  EXPECT_EQ(Get<RunOptions>({"run", "--leader-elect=false"}).leader.elect, false);
  EXPECT_EQ(Get<RunOptions>({"run", "--leader-elect=true"}).leader.elect, true);
  EXPECT_EQ(Get<RunOptions>({"run"}).leader.elect, std::nullopt);
  EXPECT_EQ(Get<RunOptions>({"run", "--leader-elect"}).leader.elect, true);
  const LeaderElectOptions given =
      Get<RunOptions>({"run", "--leader-elect-lease-duration=30s",
                       "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period", "1m5s",
                       "--leader-elect-resource-name=x", "--leader-elect-resource-namespace=y",
                       "--leader-elect-resource-lock=leases"})
          .leader;
  EXPECT_EQ(given.lease_duration, Duration::Seconds(30));
  EXPECT_EQ(given.renew_deadline, Duration::Seconds(20));
  EXPECT_EQ(given.retry_period, Duration::Seconds(65));
  EXPECT_EQ(given.resource_name, "x");
  EXPECT_EQ(given.resource_namespace, "y");
}

// A static pod of kubeadm starts kube-scheduler so.
TEST(CommandLine, RunTakesTheFlagsOfKubeScheduler) {
  const auto run = Get<RunOptions>(
      {"run", "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
       "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf", "--bind-address=127.0.0.1",
       "--kubeconfig=/etc/kubernetes/scheduler.conf", "--feature-gates=A=true,B=false",
       "--feature-gates", "C=true", "--profiling=false", "--contention-profiling",
       "--tls-cert-file=c.crt", "--tls-private-key-file=c.key", "--client-ca-file", "ca.crt",
       "--tls-min-version=VersionTLS12", "--logging-format=text", "--config", "c.yaml", "--v=2"});
  EXPECT_EQ(run.connect.kubeconfig, "/etc/kubernetes/scheduler.conf");
  EXPECT_EQ(run.secure_host, "127.0.0.1");
  EXPECT_EQ(run.config, "c.yaml");
  EXPECT_FALSE(run.verbose);
  EXPECT_THAT(run.flags.feature_gates, ElementsAre("A=true,B=false", "C=true"));
  EXPECT_EQ(run.flags.tls_cert_file, "c.crt");
  EXPECT_EQ(run.flags.tls_private_key_file, "c.key");
  EXPECT_EQ(run.flags.client_ca_file, "ca.crt");
  EXPECT_EQ(run.flags.authentication_kubeconfig, "/etc/kubernetes/scheduler.conf");
  EXPECT_EQ(run.flags.authorization_kubeconfig, "/etc/kubernetes/scheduler.conf");
  EXPECT_THAT(
      run.flags.without_effect,
      UnorderedElementsAre("--profiling has no effect: there is no /debug/pprof",
                           "--contention-profiling has no effect: there is no /debug/pprof"));
  EXPECT_EQ(Get<RunOptions>({"run", "--check-config", "c.yaml"}).flags.check_config, "c.yaml");
  EXPECT_EQ(Get<RunOptions>({"run", "--write-config-to=w.yaml"}).flags.write_config_to, "w.yaml");
}

TEST(CommandLine, WhoIsAskedAboutCallersHasTheFlagsOfKubeScheduler) {
  const SchedulerFlags usual = Get<RunOptions>({"run"}).flags;
  EXPECT_FALSE(usual.skip_lookup);
  EXPECT_TRUE(usual.tolerate_lookup_failure);
  for (const Duration holds : {usual.token_holds, usual.allowed_holds, usual.refused_holds})
    EXPECT_EQ(holds, Duration::Seconds(10));
  const SchedulerFlags given =
      Get<RunOptions>({"run", "--authentication-skip-lookup",
                       "--authentication-tolerate-lookup-failure=false",
                       "--authentication-token-webhook-cache-ttl=1m30s",
                       "--authorization-webhook-cache-authorized-ttl", "5m",
                       "--authorization-webhook-cache-unauthorized-ttl=0"})
          .flags;
  EXPECT_TRUE(given.skip_lookup);
  EXPECT_FALSE(given.tolerate_lookup_failure);
  EXPECT_EQ(given.token_holds, Duration::Seconds(90));
  EXPECT_EQ(given.allowed_holds, Duration::Minutes(5));
  EXPECT_EQ(given.refused_holds, Duration{});
  EXPECT_FALSE(Get<RunOptions>({"run", "--authentication-skip-lookup=false"}).flags.skip_lookup);
}

TEST(CommandLine, TheLogIsTextOrJson) {
  EXPECT_FALSE(Get<RunOptions>({"run"}).flags.json_log);
  EXPECT_FALSE(Get<RunOptions>({"run", "--logging-format=text"}).flags.json_log);
  EXPECT_TRUE(Get<RunOptions>({"run", "--logging-format", "json"}).flags.json_log);
}

TEST(CommandLine, RunIsVerboseFromLevelFourOn) {
  const auto verbose = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "run");
    return Get<RunOptions>(arguments).verbose;
  };
  EXPECT_FALSE(verbose({}));
  for (const char* low : {"-v=2", "--v=3", "-v0", "--verbose=false"}) EXPECT_FALSE(verbose({low}));
  EXPECT_FALSE(verbose({"-v", "2", "--quota"}));
  EXPECT_FALSE(verbose({"--v", "2"}));
  for (const char* high : {"-v", "--verbose", "-v=4", "--v=10", "-v5"})
    EXPECT_TRUE(verbose({high}));
  EXPECT_TRUE(verbose({"-v", "--quota"}));
}

TEST(CommandLine, ReplayTakesTheTraceAndItsPolicy) {
  const auto replay = Get<ReplayOptions>({"replay", "openb", "n.csv", "p.csv", "--policy", "fgd",
                                          "--seed", "51", "--arrived", "1.25", "--report",
                                          "out.json", "--engine-only", "--skip-bad"});
  EXPECT_EQ(replay.nodes_csv, "n.csv");
  EXPECT_EQ(replay.pods_csv, "p.csv");
  EXPECT_EQ(replay.policy, ReplayPolicy::kFgd);
  EXPECT_EQ(replay.seed, 51U);
  EXPECT_EQ(replay.arrived_permille, 1250);
  EXPECT_TRUE(replay.engine_only);
  EXPECT_TRUE(replay.skip_bad);
}

TEST(CommandLine, RunRecordsWhereItIsTold) {
  EXPECT_EQ(Get<RunOptions>({"run"}).record.path, "");
  const auto plain = Get<RunOptions>({"run", "--record", "f"}).record;
  EXPECT_EQ(plain.path, "f");
  EXPECT_EQ(plain.bytes_max, 256 << 20);
  EXPECT_FALSE(plain.restarts_when_full);
  const auto record =
      Get<RunOptions>({"run", "--record=f", "--record-size=1Gi", "--record-full=restart"}).record;
  EXPECT_EQ(record.bytes_max, 1 << 30);
  EXPECT_TRUE(record.restarts_when_full);
}

TEST(CommandLine, ReplayTakesARecordingAndWhereToEnd) {
  const auto whole = Get<ReplayRecordOptions>({"replay", "record", "f"});
  EXPECT_EQ(whole.file, "f");
  EXPECT_FALSE(whole.until_number.has_value());
  EXPECT_FALSE(whole.until_time.has_value());
  EXPECT_FALSE(whole.print);
  const auto part = Get<ReplayRecordOptions>(
      {"replay", "record", "f", "--until", "12", "--why", "a/b", "--print"});
  EXPECT_EQ(part.until_number, 12U);
  EXPECT_EQ(part.why, "a/b");
  EXPECT_TRUE(part.print);
  EXPECT_EQ(Get<ReplayRecordOptions>({"replay", "record", "f", "--until=2026-01-01T00:00:00.5Z"})
                .until_time,
            Instant::FromSeconds(1'767'225'600) + Duration::Milliseconds(500));
}

TEST(CommandLine, HelpAndVersionAreAnswersNotErrors) {
  const Exit help = Ends({"--help"});
  EXPECT_EQ(help.status, kOk);
  EXPECT_THAT(help.text, AllOf(HasSubstr("up"), HasSubstr("why"), HasSubstr("replay")));
  const Exit up = Ends({"up", "--help"});
  EXPECT_EQ(up.status, kOk);
  EXPECT_THAT(up.text, AllOf(HasSubstr("--data-dir"), HasSubstr("--durability")));
  for (const char* part : {"Usage: berth up [OPTIONS]", "[0; with --demo 100]",
                           "./berth.kubeconfig", "berth.dev/run-for", "berth.dev/exit-code"}) {
    EXPECT_THAT(up.text, HasSubstr(part));
  }
  EXPECT_THAT(Ends({"nodes", "--help"}).text, HasSubstr("berth.dev/run-for"));
  EXPECT_THAT(Ends({"replay", "openb", "--help"}).text, HasSubstr("Usage: berth replay openb ["));
  EXPECT_EQ(Ends({"--version"}).text, "berth 1.2.3\n");
}

TEST(CommandLine, WhatMakesNoSenseIsNamed) {
  const struct {
    std::vector<std::string> arguments;
    const char* part;
  } rows[] = {
      {{}, "subcommand"},
      {{"fly"}, "fly: no such command"},
      {{"up", "--nodes", "-1"}, "-1"},
      {{"up", "--nodes", "100001"}, "100001"},
      {{"up", "--listen", "here"}, "here: not HOST:PORT"},
      {{"up", "--listen", "h:99999"}, "99999 is no port number"},
      {{"up", "--durability", "perhaps"}, "perhaps"},
      {{"up", "--event-ttl", "soon"}, "invalid duration \"soon\""},
      {{"up", "--event-ttl", "0s"}, "must be more than 0"},
      {{"nodes", "--count", "1", "--job-run-for", "long"}, "invalid duration \"long\""},
      {{"up", "--in-memory", "--data-dir", "d"}, "--in-memory"},
      {{"up", "--once"}, "--demo"},
      {{"up", "--demo", "--no-scheduler"}, "needs the scheduler"},
      {{"nodes"}, "--count"},
      {{"why"}, "NAME"},
      {{"queue", "-o", "yaml"}, "yaml"},
      {{"why", "node/n1"}, "node/n1: only pods, podgroups, workloads and jobs"},
      {{"why", "job.example.com/j"}, "job.example.com/j: only pods, podgroups"},
      {{"why", "pod/"}, "pod/ is not KIND/NAME"},
      {{"replay"}, "subcommand"},
      {{"replay", "openb", "n.csv"}, "PODS.csv"},
      {{"replay", "openb", "n", "p", "--policy", "luck"},
       "luck: not best-fit, fgd, spread or random"},
      {{"up", "--data-dir", ""}, "--data-dir: the path is empty"},
      {{"up", "--data-dir="}, "--data-dir"},
      {{"replay", "openb", "n", "p", "--arrived", "nan"}, "--arrived nan"},
      {{"replay", "openb", "n", "p", "--seed", "x"}, "--seed"},
      {{"replay", "openb", "n", "p", "--seed=-1"}, "--seed: -1 is not in range"},
      {{"replay", "record"}, "FILE"},
      {{"replay", "record", "f", "--until", "noon"},
       "noon: not the number of an input, nor a time"},
      {{"replay", "record", "f", "--why", "pod"}, "pod: not NAMESPACE/NAME"},
      {{"replay", "record", "f", "--why", "a/b/c"}, "a/b/c: not NAMESPACE/NAME"},
      {{"run", "--record="}, "--record"},
      {{"run", "--record", "f", "--record-size", "1000"}, "1000: less than 1Mi"},
      {{"run", "--record", "f", "--record-size", "much"}, "much: not a size as 256Mi"},
      {{"run", "--record", "f", "--record-full", "wrap"}, "wrap"},
      {{"run", "--record-size", "1Gi"}, "--record"},
      {{"run", "--leader-elect=maybe"}, "--leader-elect"},
      {{"run", "--leader-elect=99999999999999999999"}, "--leader-elect"},
      {{"run", "--logging-format=xml"}, "--logging-format: xml"},
      {{"run", "--authentication-token-webhook-cache-ttl=soon"}, "invalid duration \"soon\""},
      {{"run", "--authorization-webhook-cache-authorized-ttl=-1s"},
       "--authorization-webhook-cache-authorized-ttl"},
      {{"up", "--seed=-1"}, "--seed: -1 is not in range 0 to 18446744073709551615"},
      {{"up", "--seed=18446744073709551616"}, "--seed: 18446744073709551616 is not in range"},
      {{"up", "--seed=0x10"}, "--seed: 0x10 is no whole number"},
      {{"up", "--seed", "1e3"}, "--seed: 1e3 is no whole number"},
      {{"up", "--seed="}, "--seed"},
      {{"up", "--nodes", "99999999999999999999"}, "--nodes: 99999999999999999999 is not in range"},
      {{"nodes", "--count", "0"}, "--count: 0 is not in range 1 to 100000"},
      {{"run", "--secure-port", "65536"}, "--secure-port: 65536 is not in range 0 to 65535"},
      {{"run", "--secure-port=-1"}, "--secure-port: -1 is not in range"},
      {{"run", "-v", "high"}, "high: no level"},
      {{"run", "--tls-min-version=VersionTLS13"}, "VersionTLS13: TLS 1.2 and 1.3 are served"},
      {{"run", "--tls-cipher-suites=A"}, "A: not supported: "},
      {{"run", "--master=https://a"}, "not supported: the kubeconfig names the server"},
      {{"run", "--tls-cert-file=a"}, "--tls-cert-file requires --tls-private-key-file"},
  };
  for (const auto& row : rows) {
    const Exit exit = Ends(row.arguments);
    EXPECT_EQ(exit.status, kUsage) << row.part;
    EXPECT_THAT(exit.text, HasSubstr(row.part));
  }
}

}  // namespace
}  // namespace berth::cli
