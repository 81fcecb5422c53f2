#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "api/duration.h"
#include "api/quantity.h"
#include "api/timestamp.h"
#include "base/limits.h"
#include "cli/numbers.h"

namespace berth::cli {
namespace {

// HOST:PORT, [HOST]:PORT or :PORT.
std::string ParseListen(const std::string& text, std::string& host, uint16_t& port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return fmt::format("{}: not HOST:PORT", text);
  std::string name = text.substr(0, colon);
  if (name.size() >= 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, port);
  if (error != std::errc() || rest != end) {
    return fmt::format("{}: {} is no port number from 0 to 65535", text, text.substr(colon + 1));
  }
  host = name.empty() ? "0.0.0.0" : name;
  return "";
}

CLI::Validator Listen(std::string& host, uint16_t& port) {
  return CLI::Validator([&host, &port](std::string& text) { return ParseListen(text, host, port); },
                        "HOST:PORT");
}

// What is wrong with a duration that must be positive; empty: it is in `duration`.
std::string ReadPositive(const std::string& text, Duration& duration) {
  const Result<Duration> parsed = api::ParseDuration(text);
  if (!parsed) return parsed.error().message;
  if (parsed->ns == 0) return "must be more than 0";
  duration = *parsed;
  return "";
}

void AddConnect(CLI::App* app, ConnectOptions& connect) {
  app->add_option(
      "--kubeconfig", connect.kubeconfig,
      "kubeconfig of the API server; otherwise $KUBECONFIG, ~/.kube/config, or the pod's account");
  app->add_option("--context", connect.context,
                  "context of the kubeconfig; otherwise its current one");
}

void AddScheduler(CLI::App* app, SchedulerAddress& scheduler) {
  app->add_option("--why-address", scheduler.where,
                  "HOST:PORT of the scheduler that is asked [the API server]");
  app->add_option("--why-ca", scheduler.authority,
                  "PEM file with the authority of --why-address [the kubeconfig's]");
}

constexpr char kSimulated[] =
    "Simulated nodes run no program. A pod ends by itself only when it is annotated, or by "
    "--job-run-for:\n"
    "  berth.dev/run-for: \"90s\"     how long each run of a container takes (\"1h30m\", "
    "\"250ms\")\n"
    "  berth.dev/exit-code: \"1,0\"   exit codes of the first run, the second and so on [0]\n";

void AddJobRunFor(CLI::App* app, std::string& text, Duration& duration) {
  app->add_option(
         "--job-run-for", text,
         "how long pods of Jobs run that are not annotated, e.g. 1s [until they are stopped]")
      ->check([&duration](const std::string& given) { return ReadPositive(given, duration); })
      ->type_name("DURATION");
}

void AddVerbose(CLI::App* app, bool& verbose) {
  app->add_flag("-v,--verbose", verbose, "log more");
}

void AddConfig(CLI::App* app, std::string& path) {
  app->add_option("--config", path,
                  "KubeSchedulerConfiguration v1 (YAML or JSON), a BerthConfiguration (compat; "
                  "placement, joint or separate; waitForPodsReady, as Kueue's), or one of each");
}

void AddDuration(CLI::App* app, const std::string& name, Duration& duration,
                 const std::string& what) {
  app->add_option_function<std::string>(
         name, [](const std::string&) {}, what)
      ->check([&duration](const std::string& given) { return ReadPositive(given, duration); })
      ->type_name("DURATION");
}

void AddLeaderElect(CLI::App* app, LeaderElectOptions& leader) {
  app->add_flag("--leader-elect")
      ->description("of several replicas the one that holds a Lease decides [true]")
      ->check([&leader](const std::string& given) -> std::string {
        if (given != "true" && given != "false") return given + ": not true or false";
        leader.elect = given == "true";
        return {};
      });
  AddDuration(app, "--leader-elect-lease-duration", leader.lease_duration,
              "how long others leave a lease alone that does not change [15s]");
  AddDuration(app, "--leader-elect-renew-deadline", leader.renew_deadline,
              "how long the leader goes on without renewing it [10s]");
  AddDuration(app, "--leader-elect-retry-period", leader.retry_period,
              "between attempts to renew or acquire it [2s]");
  app->add_option("--leader-elect-resource-name", leader.resource_name,
                  "name of the Lease [kube-scheduler, which keeps a kube-scheduler out]");
  app->add_option("--leader-elect-resource-namespace", leader.resource_namespace,
                  "its namespace [kube-system]");
  app->add_option_function<std::string>(
         "--leader-elect-resource-lock", [](const std::string&) {},
         "leases, the only kind [leases]")
      ->check(CLI::IsMember({"leases"}));
}

// All options of all commands, which the parser writes to.
struct Slots {
  UpOptions up;
  RunOptions run;
  ControllersOptions controllers;
  NodesOptions nodes;
  WhyOptions why;
  QueueOptions queue;
  ReplayOptions replay;
  ReplayRecordOptions replay_record;
  std::string listen;
  std::string durability = "disk";
  std::string event_ttl;
  std::string job_run_for;
  std::string policy = "best-fit";
  std::string arrived = "1.3";
};

CLI::App* AddUp(CLI::App& app, Slots& slots) {
  UpOptions& up = slots.up;
  CLI::App* command = app.add_subcommand(
      "up", "a whole cluster in this process: API server, nodes, controllers, scheduler");
  CLI::Option* data = command->add_option(
      "--data-dir", up.data_dir, "folder of the durable state; made if absent [./berth-data]");
  data->check([](const std::string& text) { return text.empty() ? "the path is empty" : ""; });
  CLI::Option* memory = command->add_flag("--in-memory", up.in_memory, "keep nothing on disk");
  data->excludes(memory);
  command
      ->add_option("--listen", slots.listen,
                   "HOST:PORT of the API server [127.0.0.1:7443]; port 0: any free one")
      ->check(Listen(up.host, up.port));
  command->add_option("--kubeconfig", up.kubeconfig,
                      "where to write the kubeconfig [DATA-DIR/kubeconfig; with --in-memory "
                      "./berth.kubeconfig]");
  command->add_option("--nodes", up.nodes, "simulated nodes [0; with --demo 100]")
      ->transform(WholeNumber(0, limits::kNodesMax));
  command->add_option("--node-template", up.node_template,
                      "Node manifest that the simulated nodes are copies of");
  AddJobRunFor(command, slots.job_run_for, up.job_run_for);
  AddConfig(command, up.config);
  CLI::Option* durability =
      command
          ->add_option(
              "--durability", slots.durability,
              "acknowledge writes when they survive loss of power (disk) or kill -9 (process) "
              "[disk]")
          ->check(CLI::IsMember({"disk", "process"}));
  durability->excludes(memory);
  command
      ->add_flag("--accept-lost-writes", up.accept_lost_writes,
                 "start although DATA-DIR lacks writes that were acknowledged")
      ->excludes(memory);
  command
      ->add_option("--event-ttl", slots.event_ttl,
                   "how long an Event stays after its last write, e.g. 30m or 1h30m [1h]")
      ->check([&up](const std::string& text) { return ReadPositive(text, up.event_ttl); })
      ->type_name("DURATION");
  CLI::Option* demo = command->add_flag("--demo", up.demo, "run a synthetic load of several teams");
  command->add_flag("--once", up.once, "with --demo: end when the load has run")->needs(demo);
  command->add_flag("--no-scheduler", up.no_scheduler,
                    "leave scheduling to a `berth run` of its own");
  command->add_flag("--no-controllers", up.no_controllers,
                    "leave the workloads to a `berth controllers` of its own");
  command
      ->add_option("--seed", up.seed, "seed of generated names, uids and the demo's load [random]")
      ->transform(WholeNumber());
  AddVerbose(command, up.verbose);
  command->footer(kSimulated);
  return command;
}

std::optional<ReplayPolicy> FindPolicy(std::string_view name) {
  if (name == "best-fit") return ReplayPolicy::kBestFit;
  if (name == "fgd") return ReplayPolicy::kFgd;
  if (name == "spread") return ReplayPolicy::kSpread;
  if (name == "random") return ReplayPolicy::kRandom;
  return std::nullopt;
}

// What is wrong with the size of a recording; empty: it is in `bytes`.
std::string ReadRecordSize(const std::string& text, int64_t& bytes) {
  const Result<api::Quantity> size = api::ParseQuantity(text);
  if (!size) return fmt::format("{}: not a size as 256Mi: {}", text, size.error().message);
  bytes = size->whole();
  if (bytes < kRecordBytesLeast) return fmt::format("{}: less than 1Mi", text);
  return "";
}

void AddRecord(CLI::App* run, RecordOptions& record) {
  CLI::Option* file = run->add_option(
      "--record", record.path,
      "record what the scheduler is told and does into this file, for `berth replay "
      "record`; what it had becomes FILE.1");
  file->check([](const std::string& text) { return text.empty() ? "the path is empty" : ""; })
      ->type_name("FILE");
  run->add_option_function<std::string>(
         "--record-size", [](const std::string&) {},
         "how large both files may get together, 1Mi or more [256Mi]")
      ->check([&record](const std::string& text) { return ReadRecordSize(text, record.bytes_max); })
      ->type_name("SIZE")
      ->needs(file);
  run->add_option_function<std::string>(
         "--record-full",
         [&record](const std::string& text) { record.restarts_when_full = text == "restart"; },
         "stop: the recording ends then; restart: the scheduler starts anew, and a new file [stop]")
      ->check(CLI::IsMember({"stop", "restart"}))
      ->needs(file);
}

// The number of an input or a time; what is wrong with it otherwise.
std::string ReadUntil(const std::string& text, ReplayRecordOptions& replay) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end) {
    replay.until_number = number;
    return "";
  }
  const Result<Instant> time = api::ParseTimestamp(text);
  if (!time) {
    return fmt::format("{}: not the number of an input, nor a time as 2026-01-02T03:04:05Z", text);
  }
  replay.until_time = *time;
  return "";
}

void AddReplayRecord(CLI::App* replay, ReplayRecordOptions& options) {
  CLI::App* command = replay->add_subcommand("record",
                                             "what `berth run --record` recorded: do it again and "
                                             "compare; 1: it differs, 2: no recording");
  command->add_option("FILE", options.file, "the recording")->required();
  command
      ->add_option_function<std::string>(
          "--until", [](const std::string&) {}, "end behind this input, or at this time")
      ->check([&options](const std::string& text) { return ReadUntil(text, options); })
      ->type_name("NUMBER|TIME");
  command
      ->add_option("--why", options.why,
                   "say then why this pod waits, or why it is where it is, as `berth why`")
      ->check([](const std::string& text) {
        const size_t slash = text.find('/');
        const bool good = slash != std::string::npos && slash > 0 && slash + 1 < text.size() &&
                          text.find('/', slash + 1) == std::string::npos;
        return good ? std::string() : text + ": not NAMESPACE/NAME";
      })
      ->type_name("NAMESPACE/NAME");
  command->add_flag("--print", options.print, "show each write: input, time, request, body");
}

CLI::App* AddReplay(CLI::App& app, Slots& slots) {
  ReplayOptions& replay = slots.replay;
  CLI::App* command =
      app.add_subcommand("replay", "a trace or a recording, offline, in virtual time");
  command->require_subcommand(1);
  CLI::App* openb =
      command->add_subcommand("openb", "the openb GPU trace: fill a cluster until it is full");
  openb->add_option("NODES.csv", replay.nodes_csv, "nodes of the trace")->required();
  openb->add_option("PODS.csv", replay.pods_csv, "pods of the trace")->required();
  openb->add_option("--policy", slots.policy, "best-fit, fgd, spread or random [best-fit]")
      ->check([](const std::string& text) {
        return FindPolicy(text) ? std::string() : text + ": not best-fit, fgd, spread or random";
      })
      ->type_name("POLICY");
  openb->add_option("--seed", replay.seed, "seed of the order and re-sampling of pods [42]")
      ->transform(WholeNumber());
  openb->add_option("--arrived", slots.arrived,
                    "GPU demand to arrive, as a part of the capacity [1.3]");
  openb->add_option("--report", replay.report, "write the report as JSON to this file");
  openb->add_flag("--engine-only", replay.engine_only,
                  "the engine alone, without API, store and client");
  openb->add_flag("--skip-bad", replay.skip_bad,
                  "report rows that can't be read, and run the rest");
  AddReplayRecord(command, slots.replay_record);
  return command;
}

void AddClients(CLI::App& app, Slots& slots) {
  CLI::App* run = app.add_subcommand("run", "the scheduler, for any Kubernetes API server");
  AddConnect(run, slots.run.connect);
  run->add_option("--scheduler-name", slots.run.scheduler_names,
                  "schedulerName of the pods to place; may be repeated [default-scheduler, berth]");
  run->add_flag(
      "--quota", slots.run.quota,
      "give out the quota of Kueue's ClusterQueues, too: where no Kueue does, and with `berth "
      "controllers` for the Jobs");
  AddConfig(run, slots.run.config);
  AddSchedulerFlags(run, slots.run.flags);
  run->add_option("--secure-port", slots.run.secure_port,
                  "serve probes, /metrics, /configz and /debug/ on this port [none; 10259 with "
                  "--authentication-kubeconfig, --bind-address or another flag of its serving]")
      ->transform(WholeNumber(0, UINT16_MAX));
  run->add_option("--bind-address", slots.run.secure_host, "address of --secure-port [127.0.0.1]");
  run->add_option("--secure-ca", slots.run.secure_ca,
                  "file that gets the authority of --secure-port, for `berth why --why-ca`");
  run->add_option("--authorization-always-allow-paths", slots.run.open_paths,
                  "paths of --secure-port that everybody may get [/healthz,/readyz,/livez]")
      ->delimiter(',');
  AddLeaderElect(run, slots.run.leader);
  AddRecord(run, slots.run.record);
  AddVerbosity(run, slots.run.verbose);

  CLI::App* controllers =
      app.add_subcommand("controllers", "the workload controllers, as a process of their own");
  AddConnect(controllers, slots.controllers.connect);
  AddVerbose(controllers, slots.controllers.verbose);

  CLI::App* nodes = app.add_subcommand("nodes", "simulated nodes, as a process of their own");
  AddConnect(nodes, slots.nodes.connect);
  nodes->add_option("--count", slots.nodes.count, "how many")
      ->required()
      ->transform(WholeNumber(1, limits::kNodesMax));
  nodes->add_option("--template", slots.nodes.node_template,
                    "Node manifest that they are copies of");
  AddJobRunFor(nodes, slots.job_run_for, slots.nodes.job_run_for);
  AddVerbose(nodes, slots.nodes.verbose);
  nodes->footer(kSimulated);

  CLI::App* why = app.add_subcommand(
      "why",
      "why a pod waits, or why it is where it is; why a workload or its Job waits for quota");
  AddConnect(why, slots.why.connect);
  why->add_option("NAME", slots.why.name,
                  "pod/NAME or NAME, podgroup/NAME, workload/NAME, job/NAME")
      ->required();
  why->add_option("-n,--namespace", slots.why.namespace_name, "its namespace");
  AddScheduler(why, slots.why.scheduler);
  why->add_flag("--json", slots.why.json, "the answer as it came");

  CLI::App* queue =
      app.add_subcommand("queue", "the tree of queues: their quota, who uses it, who waits for it");
  AddConnect(queue, slots.queue.connect);
  queue->add_option("NAME", slots.queue.name,
                    "a ClusterQueue or Cohort, and what is below it [all]");
  AddScheduler(queue, slots.queue.scheduler);
  queue
      ->add_option_function<std::string>(
          "-o,--output", [&slots](const std::string& form) { slots.queue.json = form == "json"; },
          "text or json [text]")
      ->check(CLI::IsMember({"text", "json"}));
}

Exit UsageError(const std::string& text) {
  return Exit{.status = kUsage, .text = fmt::format("berth: {}\nsee `berth --help`\n", text)};
}

// "pod/NAME", "pods/NAME", "po/NAME" or "NAME"; likewise of PodGroups, Workloads and Jobs, whose
// kinds may have their group behind them, as in "job.batch/NAME".
std::expected<std::string, Exit> WhyName(const std::string& text, WhyOptions::Kind& kind) {
  using enum WhyOptions::Kind;
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return text;
  struct Word {
    std::string_view name;
    WhyOptions::Kind kind;
    std::string_view group;
  };
  constexpr std::string_view kVolcano = "scheduling.volcano.sh";
  constexpr std::string_view kKueue = "kueue.x-k8s.io";
  constexpr Word kWords[] = {{"pod", kPod, ""},         {"pods", kPod, ""},
                             {"po", kPod, ""},          {"podgroup", kGroup, kVolcano},
                             {"pg", kGroup, kVolcano},  {"podgroups", kGroup, kVolcano},
                             {"wl", kWorkload, kKueue}, {"workload", kWorkload, kKueue},
                             {"job", kJob, "batch"},    {"workloads", kWorkload, kKueue},
                             {"jobs", kJob, "batch"}};
  const std::string_view word = std::string_view(text).substr(0, slash);
  const size_t dot = word.find('.');
  const auto known = std::ranges::find_if(kWords, [&](const Word& of) {
    return of.name == word.substr(0, dot) &&
           (dot == std::string_view::npos || of.group == word.substr(dot + 1));
  });
  std::string name = text.substr(slash + 1);
  if (known == std::end(kWords)) {
    return std::unexpected(UsageError(
        fmt::format("why: {}: only pods, podgroups, workloads and jobs can be asked about", text)));
  }
  if (name.empty() || name.find('/') != std::string::npos)
    return std::unexpected(UsageError(fmt::format("why: {} is not KIND/NAME", text)));
  kind = known->kind;
  return name;
}

std::expected<Command, Exit> FinishUp(Slots& slots) {
  UpOptions& up = slots.up;
  up.durable = slots.durability == "disk";
  if (!up.in_memory && up.data_dir.empty()) up.data_dir = "berth-data";
  if (up.demo && up.nodes == 0) up.nodes = 100;
  if (up.demo && (up.no_scheduler || up.no_controllers)) {
    return std::unexpected(UsageError("up: --demo needs the scheduler and the controllers"));
  }
  return up;
}

// Who starts it with a flag about its port, as kube-scheduler is, expects that to be open.
RunOptions FinishRun(const CLI::App& run, Slots& slots) {
  constexpr uint16_t kSchedulerPort = 10'259;  // kube-scheduler's.
  RunOptions& out = slots.run;
  const auto given = [&](const char* flag) { return run.get_option(flag)->count() > 0; };
  const bool serves = std::ranges::any_of(
      std::array{"--authentication-kubeconfig", "--authentication-skip-lookup",
                 "--authentication-tolerate-lookup-failure",
                 "--authentication-token-webhook-cache-ttl", "--authorization-kubeconfig",
                 "--authorization-webhook-cache-authorized-ttl",
                 "--authorization-webhook-cache-unauthorized-ttl", "--tls-min-version",
                 "--authorization-always-allow-paths", "--bind-address", "--client-ca-file",
                 "--secure-ca", "--tls-cert-file"},
      given);
  if (serves && !out.secure_port) out.secure_port = kSchedulerPort;
  return out;
}

std::expected<Command, Exit> FinishReplay(Slots& slots) {
  double arrived = 0;
  const char* end = slots.arrived.data() + slots.arrived.size();
  const auto [rest, error] = std::from_chars(slots.arrived.data(), end, arrived);
  if (error != std::errc() || rest != end || !(arrived > 0) || arrived > 100) {
    return std::unexpected(UsageError(
        fmt::format("replay: --arrived {}: not a number above 0 and up to 100", slots.arrived)));
  }
  slots.replay.arrived_permille = std::lround(arrived * 1000);
  slots.replay.policy = *FindPolicy(slots.policy);
  return slots.replay;
}

}  // namespace

std::expected<Command, Exit> Parse(std::span<const std::string> arguments,
                                   const std::string& version) {
  Slots slots;
  CLI::App app("berth: a batch scheduler for Kubernetes", "berth");
  app.set_version_flag("--version", "berth " + version);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  CLI::App* up = AddUp(app, slots);
  AddClients(app, slots);
  CLI::App* replay = AddReplay(app, slots);
  // The parser would only say that a command is missing.
  const auto known = [&app](const std::string& name) {
    return !app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; })
                .empty();
  };
  if (!arguments.empty() && !arguments.front().starts_with('-') && !known(arguments.front())) {
    return std::unexpected(UsageError(fmt::format("{}: no such command", arguments.front())));
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    // Of the command that was named last.
    CLI::App* named = &app;
    std::string parents;
    for (auto chosen = named->get_subcommands(); !chosen.empty();
         chosen = named->get_subcommands()) {
      parents += (parents.empty() ? "" : " ") + named->get_name();
      named = chosen.back();
    }
    return std::unexpected(Exit{.status = kOk, .text = named->help(parents)});
  } catch (const CLI::CallForVersion&) {
    return std::unexpected(Exit{.status = kOk, .text = "berth " + version + "\n"});
  } catch (const CLI::Error& error) {
    return std::unexpected(UsageError(error.what()));
  }
  if (up->parsed()) return FinishUp(slots);
  if (const CLI::App* run = app.get_subcommand("run"); run->parsed()) return FinishRun(*run, slots);
  if (app.got_subcommand("controllers")) return slots.controllers;
  if (app.got_subcommand("nodes")) return slots.nodes;
  if (app.got_subcommand("queue")) return slots.queue;
  if (app.got_subcommand("why")) {
    std::expected<std::string, Exit> name = WhyName(slots.why.name, slots.why.kind);
    if (!name) return std::unexpected(name.error());
    slots.why.name = *name;
    return slots.why;
  }
  if (replay->got_subcommand("record")) return slots.replay_record;
  return FinishReplay(slots);
}

}  // namespace berth::cli
