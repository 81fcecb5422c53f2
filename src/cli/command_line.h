#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "cli/scheduler_flags.h"

// The command line as plain values. Nothing here reads files or the environment.
namespace berth::cli {

// What a finished command tells its caller.
enum ExitStatus : int {
  kOk = 0,
  kFailed = 1,  // The world: a server that can't be reached, a file that can't be read.
  kUsage = 2,   // The command line itself.
};

// How all commands that are clients of an API server find it.
struct ConnectOptions {
  std::string
      kubeconfig;  // Empty: $KUBECONFIG, ~/.kube/config, or the pod's own account, in this order.
  std::string context;  // Empty: the file's current one.
};

struct UpOptions {
  std::string data_dir;  // Empty with in_memory.
  bool in_memory = false;
  std::string host = "127.0.0.1";
  uint16_t port = 7443;
  std::string kubeconfig;  // Empty: data_dir/kubeconfig, or berth.kubeconfig here with in_memory.
  int64_t nodes = 0;
  std::string node_template;
  Duration job_run_for;             // Of Jobs' pods that don't say; 0: until they are stopped.
  std::string config;               // As of RunOptions; empty: none.
  bool durable = true;              // Against loss of power, not only of the process.
  bool accept_lost_writes = false;  // Start although the journal lacks acknowledged writes.
  Duration event_ttl = Duration::Minutes(60);  // How long an Event stays after its last write.
  bool demo = false;
  bool once = false;
  bool no_scheduler = false;
  bool no_controllers = false;
  std::optional<uint64_t> seed;
  bool verbose = false;
};

// Leader election, where it is to be other than the configuration says (config::LeaderElection).
struct LeaderElectOptions {
  std::optional<bool> elect;
  Duration lease_duration;  // 0: not given, as of the two below.
  Duration renew_deadline;
  Duration retry_period;
  std::string resource_name;       // Empty: not given, ...
  std::string resource_namespace;  // ... as here.
};

// What the scheduler does is recorded, to be done again by ReplayRecordOptions.
struct RecordOptions {
  std::string path;                        // Empty: nothing is.
  int64_t bytes_max = int64_t{256} << 20;  // Of the file and its predecessor together.
  bool restarts_when_full = false;         // Else the recording ends.
};
inline constexpr int64_t kRecordBytesLeast = int64_t{1} << 20;

struct RunOptions {
  ConnectOptions connect;
  std::vector<std::string> scheduler_names;  // Empty: the default ones.
  bool quota = false;                        // Give out the quota of Kueue's queues.
  // Of a KubeSchedulerConfiguration, a BerthConfiguration, or one of each; empty: the default.
  std::string config;
  SchedulerFlags flags;
  std::string secure_host = "127.0.0.1";
  std::optional<uint16_t> secure_port;  // Serves probes, metrics and /debug/ there.
  std::string secure_ca;                // Where the authority of that port is written, for clients.
  // Answered at that port to everybody; one that ends in * stands for all that begin so.
  std::vector<std::string> open_paths = {"/healthz", "/readyz", "/livez"};
  LeaderElectOptions leader;
  RecordOptions record;
  bool verbose = false;
};

struct ControllersOptions {
  ConnectOptions connect;
  bool verbose = false;
};

struct NodesOptions {
  ConnectOptions connect;
  int64_t count = 0;
  std::string node_template;
  Duration job_run_for;  // As of UpOptions.
  bool verbose = false;
};

// The scheduler that is asked.
struct SchedulerAddress {
  std::string where;      // HOST:PORT or https://HOST:PORT; empty: the API server's.
  std::string authority;  // PEM file of who signed that server; empty: the kubeconfig's.
};

struct WhyOptions {
  enum class Kind : uint8_t { kPod, kGroup, kWorkload, kJob };
  ConnectOptions connect;
  Kind kind = Kind::kPod;
  std::string name;            // Without its kind.
  std::string namespace_name;  // Empty: the context's, else "default".
  SchedulerAddress scheduler;
  bool json = false;
};

struct QueueOptions {
  ConnectOptions connect;
  std::string name;  // Of a queue or cohort; empty: all.
  SchedulerAddress scheduler;
  bool json = false;
};

enum class ReplayPolicy : uint8_t { kBestFit, kFgd, kSpread, kRandom };

struct ReplayOptions {
  std::string nodes_csv;
  std::string pods_csv;
  ReplayPolicy policy = ReplayPolicy::kBestFit;
  uint64_t seed = 42;
  int64_t arrived_permille =
      1300;            // Arrived GPU demand at the end, in thousandths of the capacity.
  std::string report;  // Empty: none but the summary on stdout.
  bool engine_only = false;
  bool skip_bad = false;
};

struct ReplayRecordOptions {
  std::string file;
  // Inputs up to this one, or up to this time.
  std::optional<uint64_t> until_number;
  std::optional<Instant> until_time;
  std::string why;  // NAMESPACE/NAME of a pod that is asked about then; empty: none.
  bool print = false;
};

using Command = std::variant<UpOptions, RunOptions, ControllersOptions, NodesOptions, WhyOptions,
                             QueueOptions, ReplayOptions, ReplayRecordOptions>;

// The program ends at once: help, version, or a command line that makes no sense.
struct Exit {
  int status = kOk;
  std::string text;  // For stdout when the status is kOk, else for stderr. Ends with a line break.
};

// `arguments` without the program's name. `version` is what --version prints after "berth ".
std::expected<Command, Exit> Parse(std::span<const std::string> arguments,
                                   const std::string& version);

}  // namespace berth::cli
