// `berth run`, `berth controllers`, `berth nodes`: one actor as a client of any Kubernetes API
// server.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/commands.h"
#include "cmd/configuration.h"
#include "cmd/connect.h"
#include "cmd/debug_router.h"
#include "cmd/decision_times.h"
#include "cmd/delegation.h"
#include "cmd/extenders.h"
#include "cmd/leader_options.h"
#include "cmd/node_template.h"
#include "cmd/pem.h"
#include "cmd/profiles.h"
#include "cmd/recording.h"
#include "cmd/signals.h"
#include "cmd/stop_gate.h"
#include "cmd/version.h"
#include "config/effects.h"
#include "config/scheduler_configuration.h"
#include "control/operated_scheduler.h"
#include "controllers/controllers.h"
#include "env/os/clock.h"
#include "env/os/entropy.h"
#include "env/os/executor.h"
#include "env/os/log.h"
#include "env/os/recorder.h"
#include "env/os/time_zones.h"
#include "env/recorded_actor.h"
#include "net/certificates.h"
#include "net/server.h"
#include "nodes/nodes.h"

namespace berth::cmd {
namespace {

constexpr int kConnectionsSpare = 4;
// Answers of an API server that is so busy with ours take longer than it takes to gather some.
constexpr int kGatherCallsMin = 8;
// One call of a lease is under way at a time, and a connection that hangs is in nobody's way.
constexpr int kLeaseConnectionsMax = 2;
constexpr uint64_t kLeaseBytesMax = 2 * 1024 * 1024;
constexpr Duration kLookUpEvery = Duration::Seconds(30);

env::LogLevel Level(bool verbose) { return verbose ? env::LogLevel::kDebug : env::LogLevel::kInfo; }

client::Options ClientOptions(const Endpoint& endpoint, std::string user_agent) {
  client::Options options;
  options.user_agent = std::move(user_agent);
  options.base_path = endpoint.base_path;
  options.host = endpoint.where.substr(endpoint.where.rfind('/') + 1);
  options.seed = env::os::Seed();
  return options;
}

// The files that the server's certificate is taken from.
Status TakeFiles(const cli::SchedulerFlags& flags, net::ServerOptions& server) {
  const auto take = [](std::string_view flag, const std::string& path, std::string& out) -> Status {
    if (path.empty()) return {};
    Result<std::string> text = ReadPem(flag, path);
    if (!text) return std::unexpected(text.error());
    out = *std::move(text);
    return {};
  };
  if (Status taken = take("--tls-cert-file", flags.tls_cert_file, server.identity.certificate_pem);
      !taken)
    return taken;
  return take("--tls-private-key-file", flags.tls_private_key_file, server.identity.key_pem);
}

// For another life in the same process.
SchedulerSetup Refreshed(SchedulerSetup setup) {
  setup.client.seed = env::os::Seed();
  if (setup.leader) {
    setup.leader->identity = NewIdentity();
    setup.leader->client.seed = env::os::Seed();
  }
  return setup;
}

// Runs one actor until a signal comes.
class Process {
 public:
  Process(const char* command, bool verbose, env::os::LogFormat format = env::os::LogFormat::kText)
      : command_(command), logger_(Level(verbose), format), executor_(clock_, logger_) {}
  ~Process() { Stop(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The actor's requests go to `endpoint`, those of its lease over connections of their own: lists
  // and writes that hang never stand before a renewal.
  Status Connect(std::unique_ptr<env::Actor> actor, Endpoint& endpoint) {
    net::ClientOptions connections = endpoint.transport;
    connections.clock = [this] { return clock_.now(); };
    auto transport = net::HttpsClient::Make(connections);
    if (!transport) return std::unexpected(transport.error());
    transport_ = std::move(*transport);
    actor_ = executor_.Add(command_, {}, std::move(actor));
    if (!has_lease_) {
      executor_.Connect(actor_, *transport_);
      return {};
    }
    connections.connections_max = kLeaseConnectionsMax;
    connections.body_bytes_max = kLeaseBytesMax;
    auto of_lease = net::HttpsClient::Make(std::move(connections));
    if (!of_lease) return std::unexpected(of_lease.error());
    of_lease_ = std::move(*of_lease);
    splitter_ =
        std::make_unique<CallSplitter>(CallSplitter::Range{.first = control::kElectionFirstCall,
                                                           .end = control::kElectionCallsEnd},
                                       *of_lease_, *transport_);
    executor_.Connect(actor_, *splitter_);
    return {};
  }
  // Serves probes (or what is open) to everybody, all else to who has the endpoint's token, to
  // system:masters, and to whom the API server lets get it.
  Status Serve(const cli::RunOptions& options, const Endpoint& endpoint) {
    Result<net::Pki> pki = net::MakePki(options.secure_host, clock_.now());
    if (!pki) return std::unexpected(pki.error());
    net::ServerOptions server;
    server.host = options.secure_host;
    server.port = *options.secure_port;
    server.identity = pki->server;
    if (const Status given = TakeFiles(options.flags, server); !given) return given;
    Result<ClientAuthority> authority = FindClientAuthority(options.flags, endpoint);
    if (!authority) return std::unexpected(authority.error());
    if (!authority->trouble.empty()) {
      logger_.Write(env::LogLevel::kWarning, "access", authority->trouble);
      look_up_ = [this, flags = options.flags, endpoint] { return LookUpAgain(flags, endpoint); };
    }
    server.client_authority_pem = std::move(authority->pem);
    Result<std::unique_ptr<Delegation>> delegation = Delegation::Make(options.flags, endpoint);
    if (!delegation) return std::unexpected(delegation.error());
    delegation_ = *std::move(delegation);
    delegation_->Join(executor_);
    server.log = [this](env::LogLevel level, const std::string& text) {
      logger_.Write(level, "https", text);
    };
    auto listening = net::HttpsServer::Listen(std::move(server));
    if (!listening) return std::unexpected(listening.error());
    server_ = std::move(*listening);
    const DebugRouter::Targets targets{.api = nullptr,
                                       .gate = &delegation_->inbox(),
                                       .debug = &executor_.inbox(actor_),
                                       .network = server_.get(),
                                       .times = &times_};
    router_ =
        std::make_unique<DebugRouter>(targets, endpoint.transport.bearer_token, options.open_paths);
    if (!options.secure_ca.empty()) {
      const Status written =
          net::WritePrivateFile(options.secure_ca, pki->authority.certificate_pem);
      if (!written) return written;
    }
    gate_.PassTo(*router_);
    return {};
  }
  [[nodiscard]] std::unique_ptr<env::Actor> Scheduler(const SchedulerSetup& setup) {
    return Timed(MakeScheduler(setup), times_);
  }
  // The actor that does the same as this one and records it.
  Result<std::unique_ptr<env::Actor>> Record(std::unique_ptr<env::Actor> actor,
                                             const SchedulerSetup& setup,
                                             const cli::RunOptions& options) {
    Result<ConfigurationSource> source =
        SourceOf(options.config, options.flags.feature_gates, setup.configuration);
    if (!source) return std::unexpected(source.error());
    auto recorder = env::os::Recorder::Open(
        {.path = options.record.path, .bytes_max = options.record.bytes_max},
        PrintHeader(setup, *source, clock_.now()), logger_);
    if (!recorder) return std::unexpected(recorder.error());
    recorder_ = *std::move(recorder);
    Tell(fmt::format("records into {}, {} bytes at most with the file before it",
                     options.record.path, options.record.bytes_max));
    env::RecordedActor::Restarts restarts;
    if (options.record.restarts_when_full) {
      restarts.stop = control::kStopExchange;
      restarts.make = [this, setup, source = *source]() -> env::RecordedActor::Life {
        Tell("the recording is full: the scheduler starts anew");
        const SchedulerSetup fresh = Refreshed(setup);
        return {.actor = Scheduler(fresh), .header = PrintHeader(fresh, source, clock_.now())};
      };
    }
    return std::make_unique<env::RecordedActor>(std::move(actor), *recorder_, std::move(restarts));
  }
  // Before Connect: the actor elects a leader. It is asked to stop at the end, and answers
  // kStopExchange.
  void HasLease() { has_lease_ = true; }
  // The actor is asked for a dump on SIGUSR2.
  void DumpOnSignal() { dumps_ = true; }
  int Run() {
    executor_.SetNetwork(gate_);
    executor_.Start();
    if (transport_) transport_->Start(executor_.inbox(actor_));
    if (of_lease_) of_lease_->Start(executor_.inbox(actor_));
    if (delegation_) delegation_->Start();
    if (server_) server_->Start(*router_);
    const auto dump = [this] {
      if (dumps_) AskToDump(executor_.inbox(actor_));
    };
    while (!WaitForSignal(look_up_ ? kLookUpEvery : Duration::Max(), dump)) {
      if (look_up_()) look_up_ = {};
    }
    if (has_lease_ && !gate_.AskToStop(executor_.inbox(actor_)))
      logger_.Write(env::LogLevel::kWarning, command_,
                    "ends without having given the lease back: others wait until it is over");
    Stop();
    return cli::kOk;
  }
  void Stop() {
    if (server_) server_->Stop();
    executor_.Stop();
    if (delegation_) delegation_->Stop();
    if (transport_) transport_->Stop();
    if (of_lease_) of_lease_->Stop();
    if (recorder_) recorder_->Stop();
  }
  int Failed(const Error& error) const {
    fmt::print(stderr, "berth {}: {}\n", command_, error.message);
    return cli::kFailed;
  }
  void Tell(const std::string& text) { logger_.Write(env::LogLevel::kInfo, command_, text); }

 private:
  // Whose certificates count at the port could not be found out so far. True: now it is.
  bool LookUpAgain(const cli::SchedulerFlags& flags, const Endpoint& endpoint) {
    const Result<ClientAuthority> authority = FindClientAuthority(flags, endpoint);
    if (!authority || !authority->trouble.empty()) return false;
    if (const Status taken = server_->TrustClients(authority->pem); !taken) {
      logger_.Write(env::LogLevel::kError, "access", taken.error().message);
    } else {
      logger_.Write(env::LogLevel::kInfo, "access",
                    "certificates of clients count from here on: their authority was looked up");
    }
    return true;
  }

  const char* command_;
  env::os::Clock clock_;
  env::os::Logger logger_;
  std::unique_ptr<net::HttpsClient> transport_;
  std::unique_ptr<net::HttpsClient> of_lease_;
  std::unique_ptr<CallSplitter> splitter_;
  std::unique_ptr<Delegation> delegation_;
  std::unique_ptr<DebugRouter> router_;
  std::unique_ptr<net::HttpsServer> server_;
  StopGate gate_;
  DecisionTimes times_;
  std::unique_ptr<env::os::Recorder> recorder_;
  env::os::Executor executor_;
  env::os::ActorId actor_;
  bool has_lease_ = false;
  bool dumps_ = false;
  std::function<bool()> look_up_;  // True: it was found. Null: nothing is to be looked up.
};

// What --config says, which fits the other options.
Result<Configuration> ConfigurationOf(const cli::RunOptions& options) {
  const auto fail = [](std::string_view text) {
    return Fail(ErrorCode::kInvalid, std::string(text));
  };
  Result<Configuration> out = ReadConfiguration(options.config, options.flags.feature_gates);
  if (!out) return out;
  if (!options.quota) {
    // The defaults may be spelled out.
    if (!out->joint_placement) return fail("--config: placement is of quota: it needs --quota");
    if (out->pods_ready != control::PodsReadyRules{})
      return fail("--config: waitForPodsReady is of quota: it needs --quota");
  }
  if (out->scheduler && !options.config.empty() && !options.scheduler_names.empty())
    return fail("--scheduler-name: the profiles of --config have names");
  if (const Status good = CheckSupported(options.config, *out); !good)
    return std::unexpected(good.error());
  if (options.quota && out->scheduler) {
    if (const Status good = CheckBesideQuota(*out->scheduler, out->gates); !good)
      return fail(fmt::format("--quota: {}", good.error().message));
  }
  return out;
}

// What --check-config says: as a start with the same options would find it.
int CheckConfiguration(cli::RunOptions options) {
  options.config = options.flags.check_config;
  const Result<Configuration> read = ConfigurationOf(options);
  std::string refused = read ? "" : read.error().message;
  if (read && read->scheduler) {
    if (const auto extenders = ExtendersOf(*read->scheduler, ExtenderFiles::kRead); !extenders)
      refused = extenders.error().message;
  }
  const Explanation explanation =
      ExplainConfiguration(options.config, options.flags.feature_gates, refused);
  fmt::print("{}", explanation.text);
  return explanation.supported ? cli::kOk : cli::kFailed;
}

// Writes what it becomes with its defaults.
int WriteConfiguration(const std::string& path, const Configuration& configuration) {
  const config::SchedulerConfiguration completed =
      configuration.scheduler.value_or(config::DefaultSchedulerConfiguration(configuration.gates));
  std::string text = config::PrintSchedulerConfiguration(completed, configuration.gates);
  if (configuration.berth)
    text += fmt::format("---\n{}", config::PrintBerthConfiguration(*configuration.berth));
  if (const Status written = net::WritePrivateFile(path, text); !written) {
    fmt::print(stderr, "berth run: {}\n", written.error().message);
    return cli::kFailed;
  }
  fmt::print("wrote {}\n", path);
  return cli::kOk;
}

// The kubeconfig that the file names goes before the option, as for kube-scheduler.
cli::ConnectOptions ConnectBy(const cli::RunOptions& options, const Configuration& configuration) {
  cli::ConnectOptions out = options.connect;
  if (configuration.scheduler && !configuration.scheduler->client_connection.kubeconfig.empty())
    out.kubeconfig = configuration.scheduler->client_connection.kubeconfig;
  return out;
}

std::string StartText(const SchedulerSetup& setup, const Endpoint& endpoint) {
  std::string out = fmt::format("berth {} schedules pods of {} at {}", Version(),
                                fmt::join(OptionsOf(setup).scheduler_names, ", "), endpoint.where);
  if (setup.leader) {
    out += fmt::format(" while it holds the lease {}/{}, as {}", setup.leader->namespace_name,
                       setup.leader->name, setup.leader->identity);
  }
  return out;
}

}  // namespace

int Run(const cli::RunOptions& options) {
  if (!options.flags.check_config.empty()) return CheckConfiguration(options);
  Process process("run", options.verbose,
                  options.flags.json_log ? env::os::LogFormat::kJson : env::os::LogFormat::kText);
  process.DumpOnSignal();
  const Result<Configuration> configuration = ConfigurationOf(options);
  if (!configuration) return process.Failed(configuration.error());
  if (!options.flags.write_config_to.empty())
    return WriteConfiguration(options.flags.write_config_to, *configuration);
  Result<Endpoint> endpoint = FindEndpoint(ConnectBy(options, *configuration));
  if (!endpoint) {
    const bool by_file =
        configuration->scheduler && !configuration->scheduler->client_connection.kubeconfig.empty();
    const std::string field =
        by_file ? fmt::format("{}: clientConnection.kubeconfig: ", options.config) : "";
    return process.Failed({endpoint.error().code, field + endpoint.error().message});
  }
  for (const std::string& text : options.flags.without_effect) process.Tell(text);
  for (const auto& [gate, on] : configuration->gates.switched())
    process.Tell(fmt::format("--feature-gates: {}={} has no effect", gate, on));
  SchedulerSetup setup{.configuration = *configuration,
                       .scheduler_names = options.scheduler_names,
                       .quota = options.quota,
                       .client = ClientOptions(*endpoint, "berth-scheduler")};
  if (configuration->scheduler) {
    auto extenders = ExtendersOf(*configuration->scheduler, ExtenderFiles::kRead);
    if (!extenders) {
      return process.Failed({extenders.error().code,
                             fmt::format("{}: {}", options.config, extenders.error().message)});
    }
    setup.extenders = *std::move(extenders);
  }
  // As many calls as there are connections: what waits, waits where it can be taken back when the
  // lease is lost.
  setup.client.calls_in_flight_max = config::kCallsInFlightMax;
  setup.client.calls_apart_max = config::kCallsApartMax;
  endpoint->transport.connections_max =
      config::kCallsInFlightMax + config::kCallsApartMax + kConnectionsSpare;
  endpoint->transport.gather_calls_min = kGatherCallsMin;
  const config::LeaderElection election =
      Combined(configuration->scheduler ? configuration->scheduler->leader_election
                                        : config::LeaderElection(),
               options.leader);
  setup.configz = ConfigzText(*configuration, OptionsOf(setup).scheduler_names, election,
                              ConnectBy(options, *configuration).kubeconfig);
  if (election.leader_elect) {
    Result<control::LeaderElectionOptions> leader = LeaderOptions(election, setup.client);
    if (!leader) return process.Failed(leader.error());
    setup.leader = *std::move(leader);
    process.HasLease();
  }
  process.Tell(StartText(setup, *endpoint));
  std::unique_ptr<env::Actor> scheduler = process.Scheduler(setup);
  if (!options.record.path.empty()) {
    auto recorded = process.Record(std::move(scheduler), setup, options);
    if (!recorded) return process.Failed(recorded.error());
    scheduler = *std::move(recorded);
  }
  Status status = process.Connect(std::move(scheduler), *endpoint);
  if (status && options.secure_port) status = process.Serve(options, *endpoint);
  if (!status) return process.Failed(status.error());
  return process.Run();
}

int Controllers(const cli::ControllersOptions& options) {
  Process process("controllers", options.verbose);
  Result<Endpoint> endpoint = FindEndpoint(options.connect);
  if (!endpoint) return process.Failed(endpoint.error());
  controllers::Options wanted;
  wanted.client = ClientOptions(*endpoint, "berth-controllers");
  wanted.root_ca = endpoint->transport.authority_pem;
  wanted.zones = api::TimeZones(env::os::ReadTimeZones());
  wanted.seed = env::os::Seed();
  const Status status =
      process.Connect(std::make_unique<controllers::Controllers>(std::move(wanted)), *endpoint);
  if (!status) return process.Failed(status.error());
  return process.Run();
}

int Nodes(const cli::NodesOptions& options) {
  Process process("nodes", options.verbose);
  Result<Endpoint> endpoint = FindEndpoint(options.connect);
  if (!endpoint) return process.Failed(endpoint.error());
  Result<std::vector<nodes::NodeSpec>> specs = MakeNodeSpecs(options.node_template, options.count);
  if (!specs) return process.Failed(specs.error());
  nodes::Options wanted;
  wanted.client = ClientOptions(*endpoint, "berth-nodes");
  wanted.nodes = std::move(*specs);
  wanted.timing.job_run_for = options.job_run_for;
  const Status status =
      process.Connect(std::make_unique<nodes::Nodes>(std::move(wanted)), *endpoint);
  if (!status) return process.Failed(status.error());
  return process.Run();
}

}  // namespace berth::cmd
