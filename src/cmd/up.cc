// `berth up`: a whole cluster in one process.
//
//                                                      scheduler, controllers, nodes, demo
//                                                              │ in-process
//                                                              v
//   kubectl <─> net::HttpsServer <─> DebugRouter ─┬─> API server actor ─┬─> journal thread
//                                                 └─> scheduler actor   │        │
//                                           net::HttpsClient <──────────┘        v
//                                                 └─> webhooks         DATA-DIR/journal.db
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/time_zone.h"
#include "apiserver/apiserver.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/prng.h"
#include "cmd/commands.h"
#include "cmd/configuration.h"
#include "cmd/debug_router.h"
#include "cmd/decision_times.h"
#include "cmd/demo_shell.h"
#include "cmd/node_template.h"
#include "cmd/profiles.h"
#include "cmd/signals.h"
#include "cmd/stop_gate.h"
#include "config/effects.h"
#include "control/operated_scheduler.h"
#include "controllers/controllers.h"
#include "env/os/clock.h"
#include "env/os/entropy.h"
#include "env/os/executor.h"
#include "env/os/log.h"
#include "env/os/sqlite_journal.h"
#include "env/os/time_zones.h"
#include "net/certificates.h"
#include "net/client.h"
#include "net/kubeconfig.h"
#include "net/server.h"
#include "net/token_key.h"
#include "nodes/nodes.h"

namespace berth::cmd {
namespace {

constexpr int kTokenBytes = 32;
// Descriptors for all but connections: files, threads' events, what libraries open.
constexpr int64_t kOwnDescriptors = 128;

env::Peer Master(std::string user) {
  return {.user = std::move(user), .groups = {"system:masters"}};
}

// How many connections there may be: each takes a descriptor, of which the process has from here on
// as many as it may.
int64_t ConnectionsMax() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return limits::kConnectionsMax;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  const bool raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
  const auto descriptors =
      static_cast<int64_t>(std::min<rlim_t>(raised ? limit.rlim_cur : before, INT32_MAX));
  return std::clamp<int64_t>(descriptors - kOwnDescriptors, 1, limits::kConnectionsMax);
}

// The demo's display tells what goes on; lines in between would break it.
env::LogLevel LeastLevel(const cli::UpOptions& options) {
  if (options.verbose) return env::LogLevel::kDebug;
  return options.demo ? env::LogLevel::kWarning : env::LogLevel::kInfo;
}

std::string Address(const std::string& host, uint16_t port) {
  // What stands for all addresses is reached at one of them.
  const std::string reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host;
  const bool v6 = reachable.find(':') != std::string::npos;
  return fmt::format("https://{}{}{}:{}", v6 ? "[" : "", reachable, v6 ? "]" : "", port);
}

// The cluster, in the order in which its parts are made; they end in the reverse one.
class Cluster {
 public:
  explicit Cluster(const cli::UpOptions& options)
      : options_(options),
        logger_(LeastLevel(options)),
        prng_(options.seed.value_or(env::os::Seed())),
        executor_(clock_, logger_) {}
  ~Cluster() { Stop(); }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  Status Start();
  void Stop();
  // What the scheduler knows, into the log.
  void Dump() {
    if (scheduler_) AskToDump(executor_.inbox(*scheduler_));
  }
  [[nodiscard]] std::string address() const { return Address(options_.host, server_->port()); }
  [[nodiscard]] const std::string& kubeconfig() const { return kubeconfig_; }
  [[nodiscard]] const DemoBoard& board() const { return *board_; }

 private:
  Status MakeFolder() const;
  Status OpenJournal(env::os::Recovered& recovered);
  Status ReadSecrets();
  Status ReadTokenKey();
  Status CloseToOthers();
  Status AddApiServer(const env::os::Recovered& recovered);
  Status AddClients();
  client::Options ClientOptions(const char* user_agent);
  env::os::ActorId AddClient(std::string name, std::string user, std::unique_ptr<env::Actor> actor);
  Status Listen();
  Status WriteKubeconfig();
  [[nodiscard]] std::filesystem::path InFolder(const char* name) const {
    return std::filesystem::path(options_.data_dir) / name;
  }

  const cli::UpOptions& options_;
  env::os::Clock clock_;
  env::os::Logger logger_;
  std::shared_ptr<const api::TimeZones> zones_;
  Prng prng_;
  net::Pki pki_;
  std::string token_;
  std::shared_future<Result<net::TokenKey>> token_key_;
  std::string kubeconfig_;
  std::unique_ptr<env::os::SqliteJournal> journal_;
  DecisionTimes times_;
  std::unique_ptr<DebugRouter> router_;
  std::unique_ptr<net::HttpsServer> server_;
  std::unique_ptr<net::HttpsClient> webhooks_;  // What the API server calls.
  env::os::Executor executor_;
  env::os::ActorId api_;
  std::optional<env::os::ActorId> scheduler_;
  std::shared_ptr<DemoBoard> board_ = std::make_shared<DemoBoard>();
};

Status Cluster::Start() {
  Status status = MakeFolder();
  // The journal first: whatever stops the first start, certificates never stand alone.
  env::os::Recovered recovered;
  if (status) status = OpenJournal(recovered);
  if (status && !options_.in_memory) status = CloseToOthers();
  if (status) status = ReadSecrets();
  if (status) status = ReadTokenKey();
  if (status) status = Listen();
  if (status) status = AddApiServer(recovered);
  if (!status) return status;
  status = AddClients();
  if (!status) return status;
  const DebugRouter::Targets targets{.api = &executor_.inbox(api_),
                                     .debug = scheduler_ ? &executor_.inbox(*scheduler_) : nullptr,
                                     .network = server_.get(),
                                     .times = &times_};
  router_ = std::make_unique<DebugRouter>(targets, std::make_shared<net::BearerToken>(token_));
  executor_.SetNetwork(*router_);
  status = WriteKubeconfig();
  if (!status) return status;
  executor_.Start();
  webhooks_->Start(executor_.inbox(api_));
  server_->Start(*router_);
  return {};
}

void Cluster::Stop() {
  if (server_) server_->Stop();
  executor_.Stop();
  if (webhooks_) webhooks_->Stop();
}

Status Cluster::MakeFolder() const {
  if (options_.in_memory) return {};
  std::error_code error;
  std::filesystem::create_directories(options_.data_dir, error);
  if (error) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: can't be made: {}", options_.data_dir, error.message()));
  }
  // It holds keys, and Secrets in the journal.
  std::filesystem::permissions(options_.data_dir, std::filesystem::perms::owner_all, error);
  return {};
}

// A folder with certificates has been a cluster's: to start it empty would hide that all is lost.
Status Cluster::OpenJournal(env::os::Recovered& recovered) {
  if (options_.in_memory) return {};
  const std::filesystem::path path = InFolder("journal.db");
  struct stat certificate{};
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found &&
      stat(InFolder("ca.crt").c_str(), &certificate) == 0) {
    const bool has_log = std::filesystem::exists(InFolder("journal.db-wal"), error);
    return Fail(ErrorCode::kDamaged,
                fmt::format("{} is missing beside certificates made at {:%Y-%m-%dT%H:%M:%SZ}: "
                            "restore it{}, or {} {} to start an empty cluster",
                            path.string(), fmt::gmtime(certificate.st_mtime),
                            has_log ? " to its log, journal.db-wal, which has the last writes" : "",
                            has_log ? "move away" : "remove", options_.data_dir));
  }
  const auto durability =
      options_.durable ? env::os::Durability::kDisk : env::os::Durability::kProcess;
  const auto lost_writes =
      options_.accept_lost_writes ? env::os::LostWrites::kAccept : env::os::LostWrites::kRefuse;
  auto journal = env::os::SqliteJournal::Open(
      path, {.durability = durability, .lost_writes = lost_writes}, recovered);
  if (!journal) return std::unexpected(journal.error());
  if (!recovered.warning.empty()) {
    logger_.Write(env::LogLevel::kWarning, "journal", recovered.warning);
  }
  journal_ = std::move(*journal);
  return {};
}

// Whoever reads them can act as the administrator. berth makes them for the owner alone.
Status Cluster::CloseToOthers() {
  constexpr mode_t kOthers = 077;
  for (const char* name : {"token", "ca.key", "server.key", "admin.key", "service-accounts.key",
                           "journal.db", "journal.db-wal", "journal.db-end"}) {
    const std::filesystem::path path = InFolder(name);
    struct stat status{};
    if (stat(path.c_str(), &status) != 0 || (status.st_mode & kOthers) == 0) continue;
    const mode_t mode = status.st_mode & 07777;
    if (chmod(path.c_str(), mode & ~kOthers) != 0) {
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("{}: others can read it (mode {:o}), and that can't be changed: {}",
                              path.string(), mode, std::strerror(errno)));
    }
    logger_.Write(env::LogLevel::kWarning, "files",
                  fmt::format("{} may have been read by others (mode {:o}): its mode is now {:o}",
                              path.string(), mode, mode & ~kOthers));
  }
  return {};
}

Status Cluster::ReadSecrets() {
  if (options_.in_memory) {
    token_ = env::os::RandomHex(kTokenBytes);
    Result<net::Pki> pki = net::MakePki(options_.host, clock_.now());
    if (!pki) return std::unexpected(pki.error());
    pki_ = std::move(*pki);
    return {};
  }
  Result<net::Pki> pki = net::LoadOrMakePki(options_.data_dir, options_.host, clock_.now());
  if (!pki) return std::unexpected(pki.error());
  pki_ = std::move(*pki);
  Result<std::string> token = net::ReadFile(InFolder("token"));
  if (token && token->size() == 2 * kTokenBytes) {
    token_ = std::move(*token);
    return {};
  }
  if (token) return Fail(ErrorCode::kDamaged, InFolder("token").string() + " is no token of berth");
  if (token.error().code != ErrorCode::kNotFound) return std::unexpected(token.error());
  token_ = env::os::RandomHex(kTokenBytes);
  return net::WritePrivateFile(InFolder("token"), token_);
}

// A key is made beside the start, which would take twice as long for it; whoever needs it first
// waits.
Status Cluster::ReadTokenKey() {
  const std::filesystem::path path = InFolder("service-accounts.key");
  const Result<std::string> pem =
      options_.in_memory ? Fail(ErrorCode::kNotFound, "") : net::ReadFile(path);
  if (pem) {
    Result<net::TokenKey> key = net::TokenKey::Parse(*pem);
    if (!key) {
      return Fail(ErrorCode::kDamaged, fmt::format("{}: {}", path.string(), key.error().message));
    }
    std::promise<Result<net::TokenKey>> ready;
    ready.set_value(std::move(key));
    token_key_ = ready.get_future().share();
    return {};
  }
  if (pem.error().code != ErrorCode::kNotFound) return std::unexpected(pem.error());
  const auto make = [this, path]() -> Result<net::TokenKey> {
    Result<net::TokenKey> key = net::TokenKey::Make();
    Status kept;
    if (key && !options_.in_memory) kept = net::WritePrivateFile(path, key->pem());
    if (key && kept) return key;
    const Error& error = key ? kept.error() : key.error();
    logger_.Write(env::LogLevel::kError, "tokens",
                  fmt::format("ServiceAccounts get no tokens: {}", error.message));
    return std::unexpected(error);
  };
  token_key_ = std::async(std::launch::async, make).share();
  return {};
}

apiserver::TokenKey KeyFunctions(const std::shared_future<Result<net::TokenKey>>& key) {
  return {.public_half =
              [key] {
                const Result<net::TokenKey>& made = key.get();
                if (!made) return apiserver::TokenKey::Public{};
                net::TokenKey::Public half = made->public_half();
                return apiserver::TokenKey::Public{.id = std::move(half.id),
                                                   .modulus = std::move(half.modulus),
                                                   .exponent = std::move(half.exponent)};
              },
          .sign =
              [key](std::string_view text) {
                const Result<net::TokenKey>& made = key.get();
                return made ? made->Sign(text) : std::string();
              },
          .verify =
              [key](std::string_view text, std::string_view signature) {
                const Result<net::TokenKey>& made = key.get();
                return made && made->Verify(text, signature);
              }};
}

Status Cluster::AddApiServer(const env::os::Recovered& recovered) {
  zones_ = std::make_shared<const api::TimeZones>(env::os::ReadTimeZones());
  if (zones_->size() == 0) {
    logger_.Write(env::LogLevel::kWarning, "zones",
                  fmt::format("{} has no time zones: CronJobs may name none but UTC",
                              env::os::kTimeZonesFolder));
  }
  apiserver::Options options;
  // A start on what another of this seed left makes other uids and names.
  options.seed = Hasher().Add(prng_.Next()).Add(recovered.last_revision).value();
  options.event_ttl = options_.event_ttl;
  options.own_service = true;
  options.zones = zones_;
  options.bootstrap_roles = true;
  options.token_key = std::make_shared<const apiserver::TokenKey>(KeyFunctions(token_key_));
  options.host = address().substr(std::string_view("https://").size());
  // The controllers make its volumes.
  options.own_storage_class = !options_.no_controllers;
  // Of what quotas say controllers are the ones who know, as upstream.
  if (options_.no_controllers) options.quota_counter = apiserver::QuotaCounter::kNobody;
  options.tokens.push_back(
      {.token = token_, .identity = {.user = "berth-admin", .groups = {"system:masters"}}});
  Result<apiserver::ApiServer> server = apiserver::ApiServer::Make(std::move(options), recovered);
  if (!server) return std::unexpected(server.error());
  api_ = executor_.Add("apiserver", {}, std::make_unique<apiserver::ApiServer>(std::move(*server)));
  if (journal_) executor_.SetJournal(api_, *journal_);
  net::ClientOptions outside;
  outside.connections_max = 64;
  outside.body_bytes_max = static_cast<uint64_t>(limits::kReviewBytesMax);
  auto webhooks = net::HttpsClient::Make(std::move(outside));
  if (!webhooks) return std::unexpected(webhooks.error());
  webhooks_ = std::move(*webhooks);
  executor_.Connect(api_, *webhooks_);
  return {};
}

client::Options Cluster::ClientOptions(const char* user_agent) {
  client::Options options;
  options.seed = prng_.Next();
  options.user_agent = user_agent;
  return options;
}

env::os::ActorId Cluster::AddClient(std::string name, std::string user,
                                    std::unique_ptr<env::Actor> actor) {
  const env::os::ActorId id =
      executor_.Add(std::move(name), Master(std::move(user)), std::move(actor));
  executor_.Connect(id, api_);
  // These follow what the server does; everybody waits for the server.
  executor_.GiveWay(id);
  return id;
}

Status Cluster::AddClients() {
  if (!options_.no_scheduler) {
    control::SchedulerOptions options;
    const Result<Configuration> configuration = ReadConfiguration(options_.config);
    if (!configuration) return std::unexpected(configuration.error());
    const Status supported = CheckSupported(options_.config, *configuration);
    if (!supported) return supported;
    if (configuration->scheduler) {
      const Status good = CheckBesideQuota(*configuration->scheduler, configuration->gates);
      if (!good) {
        return Fail(ErrorCode::kInvalid,
                    fmt::format("berth up gives out quota, too: {}", good.error().message));
      }
    }
    options.engine.preemption = true;
    Put(*configuration, options);
    options.groups = true;
    options.volumes = true;
    options.namespaces = true;
    options.spread_defaults = true;
    options.quota = true;
    // Volcano does not run here, and who names it gets what it does.
    options.scheduler_names.emplace_back("volcano");
    options.client = ClientOptions("berth-scheduler");
    options.client.calls_apart_max = config::kCallsApartMax;
    config::LeaderElection alone;
    alone.leader_elect = false;
    std::string configz = ConfigzText(*configuration, options.scheduler_names, alone, "");
    scheduler_ = AddClient(
        "scheduler", "system:kube-scheduler",
        Timed(std::make_unique<control::OperatedScheduler>(std::move(options), std::move(configz)),
              times_));
  }
  if (!options_.no_controllers) {
    controllers::Options options;
    options.client = ClientOptions("berth-controllers");
    options.root_ca = pki_.authority.certificate_pem;
    options.zones = *zones_;
    options.seed = prng_.Next();
    AddClient("controllers", "system:kube-controller-manager",
              std::make_unique<controllers::Controllers>(std::move(options)));
  }
  if (options_.nodes > 0) {
    Result<std::vector<nodes::NodeSpec>> specs =
        MakeNodeSpecs(options_.node_template, options_.nodes);
    if (!specs) return std::unexpected(specs.error());
    nodes::Options options;
    options.client = ClientOptions("berth-nodes");
    options.nodes = std::move(*specs);
    options.timing.job_run_for = options_.job_run_for;
    AddClient("nodes", "berth-nodes", std::make_unique<nodes::Nodes>(std::move(options)));
  }
  if (options_.demo) {
    cli::DemoOptions options;
    options.client = ClientOptions("berth-demo");
    options.seed = prng_.Next();
    options.nodes = options_.nodes;
    AddClient("demo", "berth-demo", std::make_unique<DemoShell>(std::move(options), board_));
  }
  return {};
}

Status Cluster::Listen() {
  net::ServerOptions options;
  options.host = options_.host;
  options.port = options_.port;
  options.identity = pki_.server;
  options.client_authority_pem = pki_.authority.certificate_pem;
  options.connections_max = ConnectionsMax();
  options.log = [this](env::LogLevel level, const std::string& text) {
    logger_.Write(level, "https", text);
  };
  auto server = net::HttpsServer::Listen(std::move(options));
  if (!server) return std::unexpected(server.error());
  server_ = std::move(*server);
  return {};
}

Status Cluster::WriteKubeconfig() {
  kubeconfig_ = options_.kubeconfig;
  if (kubeconfig_.empty()) {
    kubeconfig_ =
        options_.in_memory ? std::string("berth.kubeconfig") : InFolder("kubeconfig").string();
  }
  const std::string text = net::KubeconfigText({.server = address(),
                                                .authority_pem = pki_.authority.certificate_pem,
                                                .token = token_,
                                                .certificate_pem = pki_.admin.certificate_pem,
                                                .key_pem = pki_.admin.key_pem});
  const Status written = net::WritePrivateFile(kubeconfig_, text);
  if (written) return {};
  // On a disk that is full the one of the last start will do.
  const Result<std::string> had = net::ReadFile(kubeconfig_);
  return had && *had == text ? Status() : written;
}

void PrintWelcome(const Cluster& cluster) {
  const std::string kubeconfig = std::filesystem::absolute(cluster.kubeconfig()).string();
  fmt::print("try, from another terminal:\n");
  fmt::print("  export KUBECONFIG={}\n", kubeconfig);
  for (const char* line :
       {"get pods -A -w", "get jobs,deployments -A", "describe pod -n platform -l app=too-large"}) {
    fmt::print("  kubectl {}\n", line);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int Up(const cli::UpOptions& options) {
  Cluster cluster(options);
  const Status started = cluster.Start();
  if (!started) {
    fmt::print(stderr, "berth up: {}\n", started.error().message);
    return cli::kFailed;
  }
  // On stdout there is only one line that programs wait for.
  fmt::print(options.demo ? stdout : stderr, "kubeconfig {}\n",
             std::filesystem::absolute(cluster.kubeconfig()).string());
  std::fflush(stdout);
  fmt::print("ready {}\n", cluster.address());
  std::fflush(stdout);
  if (!options.demo) {
    WaitForSignal(Duration::Max(), [&cluster] { cluster.Dump(); });
    cluster.Stop();
    return cli::kOk;
  }
  PrintWelcome(cluster);
  const bool complete = ShowDemo(cluster.board(), options.once);
  cluster.Stop();
  return complete || !options.once ? cli::kOk : cli::kFailed;
}

}  // namespace berth::cmd
