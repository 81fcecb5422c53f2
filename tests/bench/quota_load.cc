// Kueue's performance suite ("baseline") on an API server over HTTPS: queues in cohorts, workloads
// of three classes that come at intervals, and what would run them mimicked as that suite does. Who
// is admitted is finished once its time is over; who is evicted gives its quota back and begins
// anew. Works on any API server that knows Kueue's kinds and whose scheduler gives out their quota.
//
//   berth_quota_load --kubeconfig F [--share 1.0] [--timeout 600]
//
// Prints one line of JSON: how long it took in all, how much of the quota was in use meanwhile, and
// how long workloads of each class waited for their first admission.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ctime>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "client/client.h"
#include "cmd/connect.h"
#include "codec/decode.h"
#include "control/status_text.h"
#include "control/workload_conditions.h"
#include "env/os/clock.h"
#include "env/os/executor.h"
#include "env/os/log.h"
#include "net/client.h"

namespace {

using namespace berth;

struct WorkloadClass {
  std::string_view name;
  int count = 0;  // In each queue.
  Duration interval;
  Duration runtime;
  int priority = 0;
  int cpus = 0;
};
// https://github.com/kubernetes-sigs/kueue/tree/main/test/performance/scheduler, "baseline".
constexpr std::array<WorkloadClass, 3> kClasses = {{
    {"small", 350, Duration::Milliseconds(100), Duration::Milliseconds(200), 50, 1},
    {"medium", 100, Duration::Milliseconds(500), Duration::Milliseconds(500), 100, 5},
    {"large", 50, Duration::Milliseconds(1'200), Duration::Milliseconds(1'000), 200, 20},
}};
constexpr int kCohorts = 5;
constexpr int kQueuesOfCohort = 6;
constexpr int kQueues = kCohorts * kQueuesOfCohort;
constexpr int kNominalCpus = 20;
constexpr std::string_view kNamespace = "default";

struct Options {
  cli::ConnectOptions connect;
  double share = 1.0;
  int timeout_seconds = 600;
};

double Seconds(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

client::Resource KueueOf(std::string plural) {
  return {.group = "kueue.x-k8s.io", .version = "v1beta2", .plural = std::move(plural)};
}

std::string QueueName(int queue) {
  return fmt::format("queue-{}-{}", queue / kQueuesOfCohort, queue % kQueuesOfCohort);
}

std::string FlavorJson() {
  return R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"rf"}})";
}
std::string ClusterQueueJson(int queue) {
  return fmt::format(
      R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{{"name":"{}"}},"spec":{{)"
      R"("cohortName":"cohort-{}","namespaceSelector":{{}},"preemption":{{"reclaimWithinCohort":"Any",)"
      R"("withinClusterQueue":"LowerPriority"}},"resourceGroups":[{{"coveredResources":["cpu"],"flavors":[)"
      R"({{"name":"rf","resources":[{{"name":"cpu","nominalQuota":"{}","borrowingLimit":"100"}}]}}]}}]}}}})",
      QueueName(queue), queue / kQueuesOfCohort, kNominalCpus);
}
std::string LocalQueueJson(int queue) {
  return fmt::format(
      R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"LocalQueue","metadata":{{"name":"{0}","namespace":"{1}"}},)"
      R"("spec":{{"clusterQueue":"{0}"}}}})",
      QueueName(queue), kNamespace);
}
std::string WorkloadJson(const std::string& name, int queue, const WorkloadClass& of) {
  return fmt::format(
      R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{{"name":"{}","namespace":"{}"}},)"
      R"("spec":{{"queueName":"{}","priority":{},"podSets":[{{"name":"main","count":1,"template":{{"spec":{{)"
      R"("restartPolicy":"Never","containers":[{{"name":"main","image":"registry.example/load:1",)"
      R"("resources":{{"requests":{{"cpu":"{}"}}}}}}]}}}}}}]}}}})",
      name, kNamespace, QueueName(queue), of.priority, of.cpus);
}

struct Figures {
  bool done = false;
  Duration wall;
  std::array<double, kQueues> cpu_seconds_used{};  // Times that they held, of each queue.
  std::array<Duration, kClasses.size()> waited{};  // For the first admission, all together.
  std::array<int, kClasses.size()> admitted{};
  double cpu_seconds_wanted = 0;  // Of all workloads, each run once.
  int workloads = 0;
  int finished = 0;
  int evictions = 0;
  int conflicts = 0;
  int failures = 0;
};

// The suite as one actor. Ends when all workloads are finished.
class Suite final : public env::Actor {
 public:
  Suite(const Options& options, client::Options of_client, std::promise<Figures> done)
      : share_(options.share),
        deadline_(Duration::Seconds(options.timeout_seconds)),
        client_(std::move(of_client)),
        watch_(client_.Watch({.resource = KueueOf("workloads")})),
        done_(std::move(done)) {}

  void Step(Instant now, env::Input input, env::Outbox& out) override {
    client_.Handle(now, input, out, events_);
    for (const client::Event& event : std::exchange(events_, {})) {
      if (const auto* object = std::get_if<client::ObjectEvent>(&event)) Observe(now, *object, out);
      if (const auto* call = std::get_if<client::CallDone>(&event)) OnCallDone(now, *call, out);
    }
    if (stage_ == Stage::kBegin && client_.synced()) PutQueues(now, out);
    if (stage_ == Stage::kRunning) Run(now, out);
  }
  [[nodiscard]] Instant wake_at() const override {
    Instant at = client_.wake_at();
    if (stage_ != Stage::kRunning) return at;
    if (!due_.empty()) at = std::min(at, due_.begin()->first);
    return std::min(at, start_ + deadline_);
  }
  void AddTo(Hasher& /*hasher*/) const override {}

 private:
  enum class Stage : uint8_t { kBegin, kPuttingQueues, kRunning, kOver };
  enum class Call : uint8_t { kNone, kCreate, kFinish, kRelease };
  struct Job {
    int queue = 0;
    uint32_t of_class = 0;
    std::string name = {};
    Instant created = {};
    bool was_admitted = false;
    Instant admitted = Instant::Never();  // Since when it holds quota.
    Instant ends = Instant::Never();
    api::Workload seen = {};         // The latest version.
    std::string spent_version = {};  // That a write of ours has replaced.
    Call call = Call::kNone;         // Under way.
    bool finished = false;
  };

  void PutQueues(Instant now, env::Outbox& out) {
    stage_ = Stage::kPuttingQueues;
    const auto create = [&](const char* plural, std::string_view namespace_name, std::string body) {
      client_.Call(now, client::Create(KueueOf(plural), namespace_name, std::move(body)), out);
      ++queues_to_put_;
    };
    create("resourceflavors", "", FlavorJson());
    for (int queue = 0; queue < kQueues; ++queue) {
      create("clusterqueues", "", ClusterQueueJson(queue));
      create("localqueues", kNamespace, LocalQueueJson(queue));
    }
  }

  void Begin(Instant now) {
    stage_ = Stage::kRunning;
    start_ = now;
    for (int queue = 0; queue < kQueues; ++queue) {
      for (uint32_t of = 0; of < kClasses.size(); ++of) {
        const int count = std::max(1, static_cast<int>(kClasses[of].count * share_));
        for (int i = 0; i < count; ++i) {
          const Instant at = now + Duration{kClasses[of].interval.ns * i};
          due_.emplace(at, static_cast<uint32_t>(jobs_.size()));
          jobs_.push_back({.queue = queue,
                           .of_class = of,
                           .name = fmt::format("{}-{}-{}", kClasses[of].name, queue, i)});
          index_of_.emplace(jobs_.back().name, static_cast<uint32_t>(jobs_.size() - 1));
          figures_.cpu_seconds_wanted += kClasses[of].cpus * Seconds(kClasses[of].runtime);
        }
      }
    }
    figures_.workloads = static_cast<int>(jobs_.size());
  }

  void Run(Instant now, env::Outbox& out) {
    while (!due_.empty() && due_.begin()->first <= now) {
      const uint32_t index = due_.begin()->second;
      due_.erase(due_.begin());
      Job& job = jobs_[index];
      if (job.seen.meta.uid.empty() && job.call == Call::kNone) {
        job.created = now;
        const WorkloadClass& of = kClasses[job.of_class];
        Send(
            now, index, Call::kCreate,
            client::Create(KueueOf("workloads"), kNamespace, WorkloadJson(job.name, job.queue, of)),
            out);
      } else {
        Reconsider(now, index, out);
      }
    }
    const bool all = figures_.finished == figures_.workloads;
    if (!all && now < start_ + deadline_) return;
    stage_ = Stage::kOver;
    figures_.done = all;
    figures_.wall = now - start_;
    done_.set_value(figures_);
  }

  void Send(Instant now, uint32_t index, Call what, client::Request request, env::Outbox& out) {
    jobs_[index].call = what;
    calls_.emplace(client_.Call(now, std::move(request), out).value, index);
  }

  void Observe(Instant now, const client::ObjectEvent& event, env::Outbox& out) {
    const auto at = index_of_.find(event.name);
    if (event.change == client::Change::kDeleted || at == index_of_.end()) return;
    auto workload = decoder_.Workload(event.object.view());
    if (!workload) {
      ++figures_.failures;
      fmt::print(stderr, "{}: {}\n", event.name, workload.error().message);
      return;
    }
    Job& job = jobs_[at->second];
    job.seen = *std::move(workload);
    if (Says(job, "Admitted") && !Says(job, "Evicted") && job.admitted == Instant::Never()) {
      job.admitted = now;
      job.ends = now + kClasses[job.of_class].runtime;
      due_.emplace(job.ends, at->second);
      if (!std::exchange(job.was_admitted, true)) {
        figures_.waited[job.of_class] = figures_.waited[job.of_class] + (now - job.created);
        ++figures_.admitted[job.of_class];
      }
    }
    Reconsider(now, at->second, out);
  }

  [[nodiscard]] static bool Says(const Job& job, std::string_view type) {
    const api::Condition* condition = api::Find(job.seen.conditions, type);
    return condition != nullptr && condition->status == "True";
  }

  // What is due of it, if anything.
  void Reconsider(Instant now, uint32_t index, env::Outbox& out) {
    Job& job = jobs_[index];
    const api::ObjectMeta& meta = job.seen.meta;
    if (job.finished || job.call != Call::kNone || job.spent_version == meta.resource_version)
      return;
    std::vector<api::Condition> conditions = job.seen.conditions;
    std::string rest;
    Call what = Call::kNone;
    if (Says(job, "Evicted") && Says(job, "QuotaReserved")) {
      what = Call::kRelease;
      Put(conditions, "QuotaReserved", "False", "Pending", now);
      Put(conditions, "Admitted", "False", "NoReservation", now);
      rest = R"(,"admission":null)";
    } else if (Says(job, "Admitted") && job.ends <= now) {
      what = Call::kFinish;
      Put(conditions, "Finished", "True", "JobFinished", now);
    } else {
      return;
    }
    client::Request request =
        client::Patch(KueueOf("workloads"),
                      {.namespace_name = kNamespace, .name = job.name, .subresource = "status"},
                      client::PatchType::kMerge,
                      control::StatusPatchStart(meta) + R"("conditions":)" +
                          control::ConditionsText(conditions) + rest + "}}");
    job.spent_version = meta.resource_version;
    Send(now, index, what, std::move(request), out);
  }
  static void Put(std::vector<api::Condition>& conditions, const char* type, const char* status,
                  const char* reason, Instant now) {
    control::Put(conditions,
                 {.type = type, .status = status, .reason = reason, .message = "As told"},
                 {.now = now});
  }

  void OnCallDone(Instant now, const client::CallDone& done, env::Outbox& out) {
    const bool good = done.outcome == client::Outcome::kDone;
    if (!good && done.outcome != client::Outcome::kConflict) {
      ++figures_.failures;
      fmt::print(stderr, "{} {}\n", done.response.status, done.response.body.view());
    }
    const auto call = calls_.find(done.call.value);
    if (call == calls_.end()) {
      if (--queues_to_put_ == 0) Begin(now);
      return;
    }
    const uint32_t index = call->second;
    calls_.erase(call);
    Job& job = jobs_[index];
    const Call what = std::exchange(job.call, Call::kNone);
    if (!good) {
      // The next version says what is due, or what is due is tried again.
      ++figures_.conflicts;
      if (done.outcome != client::Outcome::kConflict) job.spent_version.clear();
    } else if (what == Call::kFinish || what == Call::kRelease) {
      if (job.admitted != Instant::Never()) {
        figures_.cpu_seconds_used[static_cast<size_t>(job.queue)] +=
            kClasses[job.of_class].cpus * Seconds(now - job.admitted);
      }
      job.admitted = job.ends = Instant::Never();
      job.finished = what == Call::kFinish;
      (job.finished ? figures_.finished : figures_.evictions) += 1;
    }
    Reconsider(now, index, out);
  }

  const double share_;
  const Duration deadline_;
  client::Client client_;
  client::WatchId watch_;
  std::promise<Figures> done_;
  codec::Decoder decoder_;
  std::vector<client::Event> events_;
  Stage stage_ = Stage::kBegin;
  int queues_to_put_ = 0;
  Instant start_;
  std::vector<Job> jobs_;
  std::map<std::string, uint32_t, std::less<>> index_of_;  // By name.
  std::set<std::pair<Instant, uint32_t>> due_;             // To be created, or to end.
  std::map<uint64_t, uint32_t> calls_;
  Figures figures_;
};

// Of the time that it took, the share of their nominal quota that workloads held.
double UsedPercent(const Figures& figures, double cpu_seconds, int queues) {
  return 100 * cpu_seconds / (Seconds(figures.wall) * kNominalCpus * queues);
}

void Print(const Figures& figures) {
  double used = 0;
  for (const double of_queue : figures.cpu_seconds_used) used += of_queue;
  const double least = *std::ranges::min_element(figures.cpu_seconds_used);
  std::string waited;
  for (size_t i = 0; i < kClasses.size(); ++i) {
    const double mean =
        figures.admitted[i] == 0 ? 0 : Seconds(figures.waited[i]) / figures.admitted[i];
    waited += fmt::format(R"("{}":{:.4f},)", kClasses[i].name, mean);
  }
  waited.pop_back();
  fmt::print(
      R"({{"workloads":{},"finished":{},"wall_seconds":{:.2f},"bound_seconds":{:.2f},)"
      R"("used_percent":{:.1f},"used_percent_least":{:.1f},"wait_seconds":{{{}}},"evictions":{},)"
      R"("conflicts":{},"failures":{},"own_cpu_seconds":{:.2f}}})"
      "\n",
      figures.workloads, figures.finished, Seconds(figures.wall),
      figures.cpu_seconds_wanted / (kNominalCpus * kQueues), UsedPercent(figures, used, kQueues),
      UsedPercent(figures, least, 1), waited, figures.evictions, figures.conflicts,
      figures.failures, static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
}

int Run(const Options& options) {
  Result<cmd::Endpoint> endpoint = cmd::FindEndpoint(options.connect);
  if (!endpoint) {
    fmt::print(stderr, "quota_load: {}\n", endpoint.error().message);
    return 1;
  }
  auto transport = net::HttpsClient::Make(endpoint->transport);
  if (!transport) {
    fmt::print(stderr, "quota_load: {}\n", transport.error().message);
    return 1;
  }
  client::Options of_client{.user_agent = "berth-quota-load"};
  of_client.base_path = endpoint->base_path;
  std::promise<Figures> done;
  std::future<Figures> figures = done.get_future();
  const env::os::Clock clock;
  env::os::Logger logger(env::LogLevel::kInfo);
  env::os::Executor executor(clock, logger);
  const env::os::ActorId actor = executor.Add(
      "quota-load", {}, std::make_unique<Suite>(options, std::move(of_client), std::move(done)));
  executor.Connect(actor, **transport);
  executor.Start();
  (*transport)->Start(executor.inbox(actor));
  const Figures told = figures.get();
  executor.Stop();
  (*transport)->Stop();
  if (!told.done) fmt::print(stderr, "quota_load: not all workloads were finished in time\n");
  Print(told);
  return told.done && told.failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Kueue's performance suite: creates workloads and mimics what would run them");
  app.add_option("--kubeconfig", options.connect.kubeconfig);
  app.add_option("--share", options.share, "of the workloads of each class")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--timeout", options.timeout_seconds, "seconds")->check(CLI::Range(1, 3'600));
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}
