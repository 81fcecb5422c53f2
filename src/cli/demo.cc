#include "cli/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/prng.h"

namespace berth::cli {
namespace {

constexpr char kManaged[] = "app.kubernetes.io/managed-by";
constexpr char kManager[] = "berth-demo";
constexpr Duration kJudgeEvery = Duration::Milliseconds(500);
constexpr Duration kClearFor = Duration::Seconds(30);

const client::Resource kJobs{.group = "batch", .version = "v1", .plural = "jobs"};
const client::Resource kDeployments{.group = "apps", .version = "v1", .plural = "deployments"};

// What one kind of pod asks for and how long it runs (0: for ever) with which end.
struct Shape {
  std::string app;
  std::string priority_class;
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int64_t run_seconds = 0;
  int exit_code = 0;
};

std::string Template(const Shape& shape, bool job) {
  std::string annotations;
  if (shape.run_seconds > 0) {
    annotations =
        fmt::format(R"(,"annotations":{{"berth.dev/run-for":"{}s","berth.dev/exit-code":"{}"}})",
                    shape.run_seconds, shape.exit_code);
  }
  return fmt::format(
      R"({{"metadata":{{"labels":{{"app":"{}","{}":"{}"}}{}}},"spec":{{{}"priorityClassName":"{}","containers":[{{)"
      R"("name":"main","image":"registry.example/{}:1","resources":{{"requests":{{"cpu":"{}m","memory":"{}Mi"}}}}}}]}}}})",
      shape.app, kManaged, kManager, annotations, job ? R"("restartPolicy":"Never",)" : "",
      shape.priority_class, shape.app, shape.cpu_milli, shape.memory_mib);
}

std::string Metadata(const std::string& name) {
  return fmt::format(R"("metadata":{{"name":"{}","labels":{{"{}":"{}"}}}})", name, kManaged,
                     kManager);
}

std::string JobSpec(const Shape& shape, int64_t completions, int64_t parallelism,
                    int64_t backoff_limit) {
  return fmt::format(R"({{"completions":{},"parallelism":{},"backoffLimit":{},"template":{}}})",
                     completions, parallelism, backoff_limit, Template(shape, true));
}

std::string DeploymentDocument(const std::string& name, const Shape& shape, int64_t replicas) {
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"Deployment",{},"spec":{{"replicas":{},"selector":{{"matchLabels":{{"app":"{}"}}}},)"
      R"("template":{}}}}})",
      Metadata(name), replicas, shape.app, Template(shape, false));
}

Duration At(Prng& prng, Duration from, Duration to) {
  return Duration{prng.Between(from.ns, to.ns)};
}

int64_t CpuOf(const api::Pod& pod) {
  int64_t sum = 0;
  for (const api::Container& container : pod.spec->containers) {
    for (const api::ResourceAmount& request : container.requests) {
      if (request.name == "cpu") sum += request.amount;
    }
  }
  return sum;
}

// "0/100 nodes are available: 100 Insufficient cpu. <more>" -> "100 Insufficient cpu".
std::string ShortReason(std::string_view message) {
  constexpr std::string_view kBefore = "nodes are available: ";
  if (const size_t found = message.find(kBefore); found != std::string_view::npos)
    message.remove_prefix(found + kBefore.size());
  return std::string(message.substr(0, message.find('.')));
}

std::string ReasonOf(const api::Pod& pod) {
  for (const api::PodCondition& each : pod.conditions) {
    if (each.type == "PodScheduled" && each.status == "False") return ShortReason(each.message);
  }
  return "no decision yet";
}

}  // namespace

const std::array<const char*, 4> kDemoTeams = {"vision", "language", "search", "platform"};

Demo::Demo(DemoOptions options) : options_(std::move(options)), client_(options_.client) {
  CHECK_GT(options_.nodes, 0);
  const std::string selector = fmt::format("{}={}", kManaged, kManager);
  pods_ = client_.Watch({.resource = client::Pods(), .label_selector = selector});
  jobs_ = client_.Watch({.resource = kJobs, .label_selector = selector});
  PlanAll();
  progress_.nodes = options_.nodes;
  progress_.cpu_milli_total = options_.nodes * options_.node_cpu_milli;
}

void Demo::PlanAll() {
  Prng prng(options_.seed);
  PlanTeams();
  PlanVision(prng);
  PlanLanguage(prng);
  PlanSearch(prng);
  PlanPlatform(prng);
  std::ranges::stable_sort(plan_, {}, [](const Planned& each) { return each.at; });
  for (const Planned& each : plan_) progress_.workloads_planned += each.workload ? 1 : 0;
}

void Demo::PlanTeams() {
  for (const char* team : kDemoTeams) {
    plan_.push_back(
        {.at = {},
         .request = client::Create(
             {.plural = "namespaces"}, "",
             fmt::format(R"({{"apiVersion":"v1","kind":"Namespace",{}}})", Metadata(team)))});
  }
  const std::pair<const char*, int> classes[] = {
      {"demo-serving", 1000}, {"demo-training", 100}, {"demo-batch", 10}};
  for (const auto& [name, value] : classes) {
    plan_.push_back(
        {.at = {},
         .request = client::Create(
             {.group = "scheduling.k8s.io", .plural = "priorityclasses"}, "",
             fmt::format(
                 R"({{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",{},"value":{}}})",
                 Metadata(name), value))});
  }
}

void Demo::PlanJob(Duration at, const std::string& team, const std::string& name,
                   const std::string& spec) {
  const std::string document =
      fmt::format(R"({{"apiVersion":"batch/v1","kind":"Job",{},"spec":{}}})", Metadata(name), spec);
  plan_.push_back({.at = at, .request = client::Create(kJobs, team, document), .workload = true});
  ++progress_.jobs;
}

// One and a half times the cluster, spread over time, in jobs of 8 to 64 pods of 2 or 4 CPUs that
// run 5 to 15 s.
void Demo::PlanVision(Prng& prng) {
  int64_t left = options_.nodes * options_.node_cpu_milli * 3 / 2;
  for (int i = 0; left > 0; ++i) {
    const int64_t pods = prng.Between(8, 64);
    const Shape shape{.app = fmt::format("train-{}", i),
                      .priority_class = "demo-training",
                      .cpu_milli = prng.Chance({1, 2}) ? 2000 : 4000,
                      .memory_mib = 4096,
                      .run_seconds = prng.Between(5, 15)};
    PlanJob(At(prng, Duration::Seconds(1), options_.length), "vision", shape.app,
            JobSpec(shape, pods, pods, 2));
    left -= pods * shape.cpu_milli;
  }
}

// Half of the cluster, in jobs of 2 to 8 pods that take half a node or a whole one for 10 to 20 s.
void Demo::PlanLanguage(Prng& prng) {
  int64_t left = options_.nodes * options_.node_cpu_milli / 2;
  for (int i = 0; left > 0; ++i) {
    const int64_t pods = prng.Between(2, 8);
    const Shape shape{.app = fmt::format("llm-{}", i),
                      .priority_class = "demo-training",
                      .cpu_milli = options_.node_cpu_milli / prng.Between(1, 2) * 9 / 10,
                      .memory_mib = 32 * 1024,
                      .run_seconds = prng.Between(10, 20)};
    PlanJob(At(prng, Duration::Seconds(1), options_.length), "language", shape.app,
            JobSpec(shape, pods, pods, 2));
    left -= pods * shape.cpu_milli;
  }
}

// A fifth of the cluster, in services whose scale changes twice.
void Demo::PlanSearch(Prng& prng) {
  const int64_t services = std::clamp<int64_t>(options_.nodes / 10, 1, 20);
  const int64_t share = options_.nodes * options_.node_cpu_milli / 5 / services;
  for (int64_t i = 0; i < services; ++i) {
    const Shape shape{.app = fmt::format("search-{}", i),
                      .priority_class = "demo-serving",
                      .cpu_milli = prng.Between(1, 4) * 500,
                      .memory_mib = 1024};
    const int64_t most = std::max<int64_t>(1, share / shape.cpu_milli);
    const Duration half{options_.length.ns / 2};
    plan_.push_back({.at = At(prng, {}, Duration::Seconds(5)),
                     .request = client::Create(
                         kDeployments, "search",
                         DeploymentDocument(shape.app, shape, std::max<int64_t>(1, most / 2))),
                     .workload = true});
    const auto scale = [&](Duration at, int64_t replicas) {
      plan_.push_back(
          {.at = at,
           .request = client::Patch(kDeployments, {.namespace_name = "search", .name = shape.app},
                                    client::PatchType::kMerge,
                                    fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas))});
    };
    scale(At(prng, Duration::Seconds(8), half), most);
    const int64_t last = prng.Between(1, most);
    scale(At(prng, half + Duration::Seconds(1), options_.length), last);
    services_wanted_ += last;
  }
}

// Short jobs, every tenth of which fails at first sight, and one pod that is larger than any node.
void Demo::PlanPlatform(Prng& prng) {
  const int64_t jobs = std::clamp<int64_t>(options_.nodes / 2, 5, 200);
  for (int64_t i = 0; i < jobs; ++i) {
    const Shape shape{.app = fmt::format("nightly-{}", i),
                      .priority_class = "demo-batch",
                      .cpu_milli = prng.Between(1, 10) * 100,
                      .memory_mib = 256,
                      .run_seconds = prng.Between(1, 6),
                      .exit_code = i % 10 == 9 ? 1 : 0};
    const int64_t completions = prng.Between(1, 10);
    PlanJob(At(prng, Duration::Seconds(1), options_.length), "platform", shape.app,
            JobSpec(shape, completions, std::min<int64_t>(completions, 4), 0));
  }
  const Shape giant{.app = "too-large",
                    .priority_class = "demo-batch",
                    .cpu_milli = options_.node_cpu_milli * 2,
                    .memory_mib = 1024,
                    .run_seconds = 1};
  PlanJob(Duration::Seconds(3), "platform", giant.app, JobSpec(giant, 1, 1, 0));
  stuck_wanted_ = 1;
}

Instant Demo::wake_at() const {
  Instant next = std::min(client_.wake_at(), judge_at_);
  if (started_ && !plan_.empty()) next = std::min(next, start_ + plan_.front().at);
  return next;
}

void Demo::Step(Instant now, env::Input input, env::Outbox& out) {
  std::vector<client::Event> events;
  client_.Handle(now, input, out, events);
  for (const client::Event& event : events) {
    if (const auto* object = std::get_if<client::ObjectEvent>(&event)) {
      if (object->watch == pods_) OnPod(now, *object);
      if (object->watch == jobs_) OnJob(*object);
      last_change_ = now;
    } else if (const auto* done = std::get_if<client::CallDone>(&event)) {
      --calls_pending_;
      // A second run against the same data finds its namespaces and classes there.
      const bool fine =
          done->outcome == client::Outcome::kDone || done->outcome == client::Outcome::kConflict;
      if (fine) continue;
      ++progress_.requests_failed;
      const client::ApiStatus status = client::StatusOf(done->response);
      out.emplace_back(env::Log{
          env::LogLevel::kWarning,
          fmt::format("a request failed ({}): {}", done->response.status, status.message)});
    }
  }
  if (!std::holds_alternative<env::Tick>(input)) return;
  if (!started_ && client_.synced()) {
    if (!cleared_) Clear(now, out);
    const bool empty = rows_.empty() && job_rows_.empty() && calls_pending_ == 0;
    // What can't be deleted shall not keep the demo from running.
    if (empty || now - start_ > kClearFor) Begin(now);
  }
  SubmitDue(now, out);
  Judge(now);
}

// Asks for the deletion of an earlier demo's load, if there is any.
void Demo::Clear(Instant now, env::Outbox& out) {
  cleared_ = true;
  start_ = now;
  if (rows_.empty() && job_rows_.empty()) return;
  progress_.clearing = true;
  for (const char* team : kDemoTeams) {
    for (const client::Resource& resource : {kDeployments, kJobs}) {
      client::Request request;
      request.method = env::Method::kDelete;
      request.target = client::PathOf(resource, {.namespace_name = team}) + "?labelSelector=" +
                       client::PercentEncode(fmt::format("{}={}", kManaged, kManager));
      request.content_type = "application/json";
      request.body = Bytes(std::string(
          R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})"));
      ++calls_pending_;
      client_.Call(now, std::move(request), out);
    }
  }
}

void Demo::Begin(Instant now) {
  started_ = true;
  start_ = now;
  last_change_ = now;
  progress_ = {.nodes = progress_.nodes,
               .workloads_planned = progress_.workloads_planned,
               .jobs = progress_.jobs,
               .cpu_milli_total = progress_.cpu_milli_total};
  rows_.clear();
  job_rows_.clear();
  bind_times_ns_.clear();
}

void Demo::SubmitDue(Instant now, env::Outbox& out) {
  while (started_ && !plan_.empty() && start_ + plan_.front().at <= now) {
    // Namespaces and classes are there before what refers to them is sent.
    const bool basics = plan_.front().at == Duration();
    if (!basics && calls_pending_ > 0 && progress_.workloads_submitted == 0) return;
    Planned next = std::move(plan_.front());
    plan_.pop_front();
    progress_.workloads_submitted += next.workload ? 1 : 0;
    ++calls_pending_;
    client_.Call(now, std::move(next.request), out);
  }
}

void Demo::Count(const PodRow& row, int64_t sign) {
  auto& [running, waiting] = progress_.teams[row.team];
  switch (row.stage) {
    case Stage::kWaiting: {
      progress_.waiting += sign;
      waiting += sign;
      const auto reason = progress_.reasons.try_emplace(row.reason).first;
      reason->second += sign;
      if (reason->second == 0) progress_.reasons.erase(reason);
      return;
    }
    case Stage::kStarting:
      progress_.starting += sign;
      break;
    case Stage::kRunning:
      progress_.running += sign;
      running += sign;
      break;
    case Stage::kSucceeded:
      progress_.succeeded += sign;
      return;
    case Stage::kFailed:
      progress_.failed += sign;
      return;
  }
  progress_.cpu_milli_placed += sign * row.cpu_milli;
}

void Demo::OnPod(Instant now, const client::ObjectEvent& event) {
  if (event.change == client::Change::kDeleted) {
    const auto found = rows_.find(event.uid);
    if (found == rows_.end()) return;
    const bool ended =
        found->second.stage == Stage::kSucceeded || found->second.stage == Stage::kFailed;
    // What has ended stays counted when its object is cleaned up.
    if (!ended) {
      Count(found->second, -1);
      ++progress_.gone;
    }
    rows_.erase(found);
    return;
  }
  const Result<api::Pod> pod = decoder_.Pod(event.object.view());
  if (!pod) return;
  const auto [found, fresh] = rows_.try_emplace(event.uid);
  PodRow& row = found->second;
  const bool had_node = !fresh && row.stage != Stage::kWaiting;
  if (fresh) {
    row = {.stage = Stage::kWaiting,
           .team = event.namespace_name,
           .cpu_milli = CpuOf(*pod),
           .seen = now};
    ++progress_.pods_seen;
  } else {
    Count(row, -1);
  }
  row.stage = pod->phase == "Succeeded" ? Stage::kSucceeded
              : pod->phase == "Failed"  ? Stage::kFailed
              : pod->phase == "Running" ? Stage::kRunning
              : !pod->node_name.empty() ? Stage::kStarting
                                        : Stage::kWaiting;
  row.reason = row.stage == Stage::kWaiting ? ReasonOf(*pod) : std::string();
  if (!had_node && row.stage != Stage::kWaiting) bind_times_ns_.push_back((now - row.seen).ns);
  Count(row, 1);
}

void Demo::OnJob(const client::ObjectEvent& event) {
  if (event.change == client::Change::kDeleted) {
    job_rows_.erase(event.uid);
    return;
  }
  const Result<api::Job> job = decoder_.Job(event.object.view());
  if (!job) return;
  JobRow& row = job_rows_[event.uid];
  const bool finished = IsTrue(job->conditions, "Complete") || IsTrue(job->conditions, "Failed");
  if (finished && !row.finished) ++progress_.jobs_finished;
  row.finished = row.finished || finished;
}

// Whether the load has run.
void Demo::Judge(Instant now) {
  judge_at_ = now + kJudgeEvery;
  if (!started_ || progress_.finished) return;
  progress_.elapsed = now - start_;
  if (!plan_.empty() || calls_pending_ > 0) return;
  const bool jobs_over = progress_.jobs_finished >= progress_.jobs - stuck_wanted_;
  const bool services_up = progress_.starting == 0 && progress_.running == services_wanted_;
  progress_.complete = jobs_over && services_up && progress_.waiting <= stuck_wanted_;
  progress_.finished = progress_.complete || now - last_change_ > options_.patience;
}

DemoProgress Demo::progress() const {
  DemoProgress progress = progress_;
  if (bind_times_ns_.empty()) return progress;
  std::vector<int64_t> times = bind_times_ns_;
  const auto at = [&](size_t percent) {
    const auto place = times.begin() + static_cast<ptrdiff_t>((times.size() - 1) * percent / 100);
    std::ranges::nth_element(times, place);
    return Duration{*place};
  };
  progress.bind_p50 = at(50);
  progress.bind_p99 = at(99);
  return progress;
}

void Demo::AddTo(Hasher& hasher) const {
  client_.AddTo(hasher);
  hasher.Add(options_.seed)
      .Add(cleared_)
      .Add(started_)
      .Add(start_.ns)
      .Add(plan_.size())
      .Add(calls_pending_);
  hasher.Add(last_change_.ns).Add(judge_at_.ns).Add(progress_.pods_seen).Add(progress_.finished);
  for (const auto& [uid, row] : rows_) hasher.Add(uid).Add(row.stage).Add(row.seen.ns);
  for (const auto& [uid, row] : job_rows_) hasher.Add(uid).Add(row.finished);
  for (const int64_t time : bind_times_ns_) hasher.Add(time);
}

}  // namespace berth::cli
