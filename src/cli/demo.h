#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "codec/decode.h"
#include "env/actor.h"

// The demo's load: four teams that share a cluster, as an actor and client of the API like any
// other.
//
//   vision    training jobs of many equal pods
//   language  a few wide jobs of large pods
//   search    services that are scaled up and down
//   platform  many short jobs, some of which fail, and one that fits nowhere
//
// What is submitted when is a function of the seed and of the number of nodes: at its height it
// asks for more than the cluster has, so that some of it has to wait. What an earlier demo left in
// the same cluster is deleted first; it is known by its label.
namespace berth::cli {

struct DemoOptions {
  client::Options client;
  uint64_t seed = 1;
  int64_t nodes = 100;
  // What one node offers; the load is measured by it.
  int64_t node_cpu_milli = 32'000;
  Duration length = Duration::Seconds(40);  // From the first to the last submission.
  // The load counts as run when nothing has changed for this long although work is left (a pod that
  // fits nowhere waits for ever).
  Duration patience = Duration::Seconds(60);
};

// Where the load stands. Of pods each counts in one place.
struct DemoProgress {
  bool clearing = false;  // The load of an earlier demo is being deleted.
  int64_t nodes = 0;
  Duration elapsed;
  int64_t workloads_planned = 0;
  int64_t workloads_submitted = 0;
  int64_t requests_failed = 0;
  int64_t pods_seen = 0;  // Ever.
  int64_t waiting = 0;    // No node yet.
  int64_t starting = 0;   // A node, and not running yet.
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t gone = 0;  // Deleted before they ended.
  int64_t jobs = 0;
  int64_t jobs_finished = 0;
  int64_t cpu_milli_placed = 0;  // Requests of pods that have a node and have not ended.
  int64_t cpu_milli_total = 0;
  Duration bind_p50;  // From a pod's first sight to its node, of all pods bound so far.
  Duration bind_p99;
  std::map<std::string, std::pair<int64_t, int64_t>> teams;  // Namespace -> running, waiting.
  std::map<std::string, int64_t> reasons;  // What the scheduler says of those that wait -> pods.
  bool finished = false;
  bool complete = false;  // Finished with all that can be done: jobs ended, services running.
};

// The namespaces of the teams.
extern const std::array<const char*, 4> kDemoTeams;

class Demo final : public env::Actor {
 public:
  explicit Demo(DemoOptions options);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;

  // Cost: O(pods) when pods were bound since the last call.
  [[nodiscard]] DemoProgress progress() const;

 private:
  struct Planned {
    Duration at;
    client::Request request;
    bool workload = false;  // Not a namespace, a class or a change of scale.
  };
  enum class Stage : uint8_t { kWaiting, kStarting, kRunning, kSucceeded, kFailed };
  struct PodRow {
    Stage stage = Stage::kWaiting;
    std::string team;
    std::string reason;  // Why it waits, as the scheduler says.
    int64_t cpu_milli = 0;
    Instant seen;
  };
  struct JobRow {
    bool finished = false;
  };

  void PlanAll();
  void PlanTeams();
  void PlanJob(Duration at, const std::string& team, const std::string& name,
               const std::string& spec);
  void PlanVision(Prng& prng);
  void PlanLanguage(Prng& prng);
  void PlanSearch(Prng& prng);
  void PlanPlatform(Prng& prng);
  void OnPod(Instant now, const client::ObjectEvent& event);
  void OnJob(const client::ObjectEvent& event);
  void Count(const PodRow& row, int64_t sign);
  void SubmitDue(Instant now, env::Outbox& out);
  void Clear(Instant now, env::Outbox& out);
  void Begin(Instant now);
  void Judge(Instant now);

  DemoOptions options_;  // Immutable after construction.

  client::Client client_;
  client::WatchId pods_;
  client::WatchId jobs_;
  codec::Decoder decoder_;
  std::deque<Planned> plan_;  // What is left, by time.
  int64_t calls_pending_ = 0;
  Instant start_;
  bool cleared_ = false;  // Nothing of an earlier demo is left, or its deletion was asked for.
  bool started_ = false;
  std::map<std::string, PodRow> rows_;      // By uid.
  std::map<std::string, JobRow> job_rows_;  // By uid.
  std::vector<int64_t> bind_times_ns_;
  int64_t services_wanted_ = 0;  // Replicas at the end.
  int64_t stuck_wanted_ = 0;     // Pods that fit nowhere.
  Instant last_change_;
  Instant judge_at_;
  DemoProgress progress_;
};

// One line for a log or a pipe; the same number of lines every time for a terminal of `columns`,
// none of them longer; what is to be said at the end.
std::string DemoLine(const DemoProgress& progress);
std::string DemoBlock(const DemoProgress& progress, size_t columns);
std::string DemoSummary(const DemoProgress& progress);

}  // namespace berth::cli
