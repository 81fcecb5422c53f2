#include "sim/users.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/object.h"
#include "base/check.h"
#include "codec/json.h"

namespace berth::sim {
namespace {

const client::Resource kNodes{.group = "", .version = "v1", .plural = "nodes"};
const client::Resource kNamespaces{.group = "", .version = "v1", .plural = "namespaces"};
const client::Resource kPriorityClasses{
    .group = "scheduling.k8s.io", .version = "v1", .plural = "priorityclasses"};
const client::Resource kDeployments{.group = "apps", .version = "v1", .plural = "deployments"};
const client::Resource kBudgets{
    .group = "policy", .version = "v1", .plural = "poddisruptionbudgets"};
const client::Resource kJobs{.group = "batch", .version = "v1", .plural = "jobs"};

constexpr int64_t kTeams = 3;
constexpr int64_t kGpuPodsMax = 8;
constexpr Duration kRetryDelay = Duration::Seconds(1);
constexpr Duration kRound = Duration::Seconds(20);
// A budget that refuses is asked again, so often and after so long.
constexpr uint32_t kRefusalsMax = 3;
constexpr Duration kEvictAgain = Duration::Seconds(3);
// So many evict from one Deployment at the same time.
constexpr int64_t kEvictors = 3;
constexpr Duration kEvictionsAfter = Duration::Seconds(10);  // In a round.
// Users begin when nodes and controllers have had time to appear; nothing depends on it.
constexpr Duration kSettling = Duration::Seconds(5);

std::string Team(int64_t index) { return fmt::format("team-{}", index); }
std::string KeyOf(std::string_view team, std::string_view name) {
  return fmt::format("{}/{}", team, name);
}

std::string PodSpec(int64_t cpu_milli, std::string_view extra) {
  return fmt::format(
      R"("containers":[{{"name":"main","image":"registry.example/work:1","resources":{{"requests":{{"cpu":"{}m","memory":"64Mi"}}}}}}]{})",
      cpu_milli, extra);
}

// Deployments and Jobs are of four priorities, of which the highest evicts nobody; a Job's pods may
// be too large to find room without. Pods without a controller are above all, because nobody makes
// them again.
constexpr std::string_view kClasses[] = {"low", "middle", "high", "patient", "top"};
constexpr int64_t kPatient = 3;
constexpr std::string_view kTop = R"(,"priorityClassName":"top")";
std::string ClassOf(int64_t index) {
  return fmt::format(R"(,"terminationGracePeriodSeconds":1,"priorityClassName":"{}")",
                     kClasses[index]);
}

std::string Deployment(const std::string& name, int64_t replicas, int64_t cpu_milli,
                       int64_t index) {
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{0}"}},"spec":{{"replicas":{1},"selector":{{"matchLabels":{{"app":"{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"{0}"}}}},"spec":{{{2}}}}}}}}})",
      name, replicas, PodSpec(cpu_milli, ClassOf(index % (kPatient + 1))));
}

std::string Job(const std::string& name, int64_t completions, int64_t cpu_milli,
                int64_t run_seconds, int64_t index) {
  return fmt::format(
      R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{0}"}},"spec":{{"completions":{1},"parallelism":{2},"backoffLimit":1000,"template":{{"metadata":{{"annotations":{{"berth.dev/run-for":"{3}s"}}}},"spec":{{"restartPolicy":"Never",{4}}}}}}}}})",
      name, completions, std::max<int64_t>(1, completions / 2), run_seconds,
      PodSpec(cpu_milli, ClassOf(index % kPatient)));
}

std::string Pod(const std::string& name, int64_t cpu_milli, std::string_view extra) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"}},"spec":{{"terminationGracePeriodSeconds":1,{}}}}})",
      name, PodSpec(cpu_milli, fmt::format("{}{}", extra, kTop)));
}

// A share of a GPU device. All of them fit the devices of one node, however they are spread.
std::string GpuPod(const std::string& name, int64_t cpu_milli, int64_t gpu_milli) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{0}"}},"spec":{{"terminationGracePeriodSeconds":1{3},"containers":[{{"name":"main","image":"registry.example/work:1","resources":{{"requests":{{"cpu":"{1}m","berth.dev/gpu-milli":"{2}"}},"limits":{{"berth.dev/gpu-milli":"{2}"}}}}}}]}}}})",
      name, cpu_milli, gpu_milli, kTop);
}

// Runs first, alone, and asks for more than what runs then.
std::string InitContainer(int64_t cpu_milli) {
  return fmt::format(
      R"(,"initContainers":[{{"name":"first","image":"registry.example/work:1","resources":{{"requests":{{"cpu":"{}m"}}}}}}])",
      cpu_milli);
}

std::string Replicas(int64_t replicas) {
  return fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas);
}

client::Request RequestOf(const Operation& operation) {
  const client::ObjectPath path{
      .namespace_name = operation.namespace_name, .name = operation.name, .subresource = {}};
  const client::ObjectRef object{.namespace_name = operation.namespace_name,
                                 .name = operation.name,
                                 .uid = "",
                                 .resource_version = ""};
  switch (operation.verb) {
    case Operation::Verb::kCreate:
      return client::Create(operation.resource, operation.namespace_name, operation.body);
    case Operation::Verb::kPatch:
      return client::Patch(operation.resource, path, client::PatchType::kMerge, operation.body);
    case Operation::Verb::kBind:
      return client::Bind(object, operation.body, {});
    case Operation::Verb::kEvict: {
      client::Request list =
          client::Get(operation.resource, {.namespace_name = operation.namespace_name});
      list.target += "?labelSelector=" + client::PercentEncode(operation.body);
      return list;
    }
    case Operation::Verb::kDelete:
      break;
  }
  return client::Delete(
      operation.resource, object,
      operation.grace_seconds < 0 ? std::nullopt : std::optional<int64_t>(operation.grace_seconds));
}

}  // namespace

std::string Users::NodeName(int64_t index) { return fmt::format("node-{}", index); }

Users::Users(uint64_t seed, const LoadOptions& options)
    : prng_(seed),
      client_(client::Options{
          .user_agent = "users", .seed = seed, .backoff_max = Duration::Seconds(2)}) {
  Plan(options);
}

Users::Users(uint64_t seed, Script script)
    : scripted_(true),
      prng_(seed),
      client_(client::Options{
          .user_agent = "users", .seed = seed, .backoff_max = Duration::Seconds(2)}) {
  for (std::vector<Operation>& operations : script) {
    if (operations.empty()) continue;
    chains_.emplace_back().operations = std::move(operations);
  }
}

Instant Users::Somewhen(const LoadOptions& options) {
  return Instant{prng_.Between(kSettling.ns, (kSettling + options.length).ns)};
}

Users::Chain& Users::ChainOf(const client::Resource& resource, const std::string& namespace_name,
                             const std::string& name) {
  const auto [at, fresh] =
      chain_index_.emplace(resource.plural + "/" + namespace_name + "/" + name, chains_.size());
  if (fresh) chains_.emplace_back();
  return chains_[at->second];
}

void Users::Plan(const LoadOptions& options) {
  for (int64_t i = 0; i < kTeams; ++i) {
    ChainOf(kNamespaces, "", Team(i))
        .operations.push_back(
            {.at = {},
             .verb = Operation::Verb::kCreate,
             .resource = kNamespaces,
             .namespace_name = "",
             .name = Team(i),
             .body = fmt::format(
                 R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})",
                 Team(i))});
  }
  for (const std::string_view name : kClasses) {
    const int64_t index = std::ranges::find(kClasses, name) - std::begin(kClasses);
    ChainOf(kPriorityClasses, "", std::string(name))
        .operations.push_back(
            {.at = {},
             .verb = Operation::Verb::kCreate,
             .resource = kPriorityClasses,
             .namespace_name = "",
             .name = std::string(name),
             .body = fmt::format(
                 R"({{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{{"name":"{}"}},"value":{}{}}})",
                 name, 100 * index, index == kPatient ? R"(,"preemptionPolicy":"Never")" : "")});
  }
  PlanDeployments(options);
  PlanJobs(options);
  PlanPods(options);
  PlanNodes(options);
  for (Chain& chain : chains_) {
    std::ranges::stable_sort(chain.operations, {}, &Operation::at);
    if (chain.operations.empty()) ++finished_chains_;
  }
}

void Users::PlanDeployments(const LoadOptions& options) {
  // In the end the Deployments ask for at most half of the cluster.
  const int64_t share =
      options.nodes * options.node_cpu_milli / 2 / std::max<int64_t>(1, options.deployments);
  for (int64_t i = 0; i < options.deployments; ++i) {
    const std::string team = Team(i % kTeams);
    const std::string name = fmt::format("service-{}", i);
    const int64_t cpu = 100 * prng_.Between(1, 10);
    const int64_t most = std::max<int64_t>(1, std::min<int64_t>(share / cpu, 20));
    Chain& chain = ChainOf(kDeployments, team, name);
    std::vector<Instant> times;
    const int64_t scalings = prng_.Between(1, 2 + options.operations / options.deployments);
    for (int64_t n = 0; n <= scalings; ++n) times.push_back(Somewhen(options));
    std::ranges::sort(times);
    int64_t replicas = prng_.Between(0, most);
    chain.operations.push_back({.at = times.front(),
                                .verb = Operation::Verb::kCreate,
                                .resource = kDeployments,
                                .namespace_name = team,
                                .name = name,
                                .body = Deployment(name, replicas, cpu, i)});
    for (size_t n = 1; n < times.size(); ++n) {
      // Toggling 1 -> 0 -> 1 is what broke Volcano's PodGroups (N02); four times the share
      // overfills the cluster, and the less important are evicted.
      const bool last = n + 1 == times.size();
      replicas =
          last ? prng_.Between(1, most) : (prng_.Chance({1, 3}) ? 0 : prng_.Between(1, 4 * most));
      Operation scaling{.at = times[n],
                        .verb = Operation::Verb::kPatch,
                        .resource = kDeployments,
                        .namespace_name = team,
                        .name = name,
                        .body = Replicas(replicas)};
      if (prng_.Chance(options.faults[Fault::kOwnerRecreated])) {
        // What the first one owned goes while the second one, of its name, makes its own.
        counts_.Add(Fault::kOwnerRecreated);
        scaling.verb = Operation::Verb::kDelete;
        chain.operations.push_back(scaling);
        scaling.verb = Operation::Verb::kCreate;
        scaling.body = Deployment(name, replicas, cpu, i);
      }
      chain.operations.push_back(std::move(scaling));
    }
    wanted_.deployments[KeyOf(team, name)] = replicas;
    if (i % 2 == 0) PlanBudget(options, i, replicas);
  }
}

// A budget of one of the forms there are, and some who evict at the same time what it guards.
void Users::PlanBudget(const LoadOptions& options, int64_t deployment, int64_t replicas) {
  const std::string team = Team(deployment % kTeams);
  const std::string app = fmt::format("service-{}", deployment);
  const std::string name = "guard-" + app;
  const int64_t many = prng_.Between(0, replicas);
  std::string bound = fmt::format(R"("minAvailable":{})", many);
  int64_t wanted = many;
  if (prng_.Chance({1, 3})) {
    bound = fmt::format(R"("maxUnavailable":{})", many);
    wanted = replicas - many;
  } else if (prng_.Chance({1, 2})) {
    bound = R"("minAvailable":"50%")";
    wanted = (replicas + 1) / 2;
  }
  ChainOf(kBudgets, team, name)
      .operations.push_back(
          {.at = Somewhen(options),
           .resource = kBudgets,
           .namespace_name = team,
           .name = name,
           .body = fmt::format(
               R"({{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"{}"}},"spec":{{{},"selector":{{"matchLabels":{{"app":"{}"}}}}}}}})",
               name, bound, app)});
  wanted_.budgets[KeyOf(team, name)] = wanted;
  for (int64_t round = prng_.Between(1, 4); round > 0; --round) {
    const Instant at = Somewhen(options);
    for (int64_t i = 0; i < kEvictors; ++i) {
      const std::string evictor = fmt::format("{}-evictor-{}", name, i);
      ChainOf(client::Pods(), team, evictor)
          .operations.push_back({.at = at,
                                 .verb = Operation::Verb::kEvict,
                                 .resource = client::Pods(),
                                 .namespace_name = team,
                                 .body = "app=" + app});
    }
  }
}

void Users::PlanJobs(const LoadOptions& options) {
  for (int64_t i = 0; i < options.jobs; ++i) {
    const std::string team = Team(prng_.Between(0, kTeams - 1));
    const std::string name = fmt::format("batch-{}", i);
    // Drawn one by one: in which order the arguments of a call are evaluated each compiler decides.
    const int64_t seconds = prng_.Between(1, 40);
    const int64_t cpu = 100 * prng_.Between(1, 20);
    const int64_t pods = prng_.Between(1, 12);
    ChainOf(kJobs, team, name)
        .operations.push_back({.at = Somewhen(options),
                               .verb = Operation::Verb::kCreate,
                               .resource = kJobs,
                               .namespace_name = team,
                               .name = name,
                               .body = Job(name, pods, cpu, seconds, i)});
    wanted_.jobs.push_back(KeyOf(team, name));
  }
}

void Users::PlanPods(const LoadOptions& options) {
  // In the end the pods ask for at most a quarter of the cluster.
  const int64_t share =
      options.nodes * options.node_cpu_milli / 4 / std::max<int64_t>(1, options.pods);
  for (int64_t i = 0; i < options.pods; ++i) {
    const std::string team = Team(prng_.Between(0, kTeams - 1));
    const std::string name = fmt::format("pod-{}", i);
    const bool hopeless = prng_.Chance({1, 8});
    const int64_t cpu = hopeless ? options.node_cpu_milli * 2
                                 : std::max<int64_t>(10, prng_.Between(share / 4, share));
    std::string body = Pod(name, cpu, "");
    if (!hopeless && i < kGpuPodsMax) {
      body = GpuPod(name, 10, prng_.Chance({1, 2}) ? 250 : 500);
    } else if (!hopeless && prng_.Chance({1, 4})) {
      body = Pod(name, cpu / 2, InitContainer(cpu));
    }
    Chain& chain = ChainOf(client::Pods(), team, name);
    const Operation create{.at = Somewhen(options),
                           .verb = Operation::Verb::kCreate,
                           .resource = client::Pods(),
                           .namespace_name = team,
                           .name = name,
                           .body = std::move(body)};
    chain.operations.push_back(create);
    // The same name with another uid, at once or later: what a name stands for must never be
    // mistaken for identity.
    while (prng_.Chance(options.faults[Fault::kPodRecreated])) {
      counts_.Add(Fault::kPodRecreated);
      Operation removal = create;
      removal.at = std::max(Somewhen(options), chain.operations.back().at);
      removal.verb = Operation::Verb::kDelete;
      removal.grace_seconds = prng_.Chance({1, 2}) ? 0 : -1;
      Operation again = create;
      again.at = removal.at;
      chain.operations.push_back(removal);
      chain.operations.push_back(again);
    }
    (hopeless ? wanted_.hopeless : wanted_.pods).push_back(KeyOf(team, name));
  }
}

void Users::PlanNodes(const LoadOptions& options) {
  for (int64_t i = 0; i < options.nodes; ++i) {
    Chain& chain = ChainOf(kNodes, "", NodeName(i));
    const Operation base{.at = {},
                         .verb = Operation::Verb::kPatch,
                         .resource = kNodes,
                         .namespace_name = "",
                         .name = NodeName(i),
                         .body = ""};
    if (prng_.Chance({1, 2})) {
      Operation cordon = base;
      cordon.at = Somewhen(options);
      cordon.body = R"({"spec":{"unschedulable":true}})";
      Operation uncordon = base;
      uncordon.at = cordon.at + Duration::Seconds(prng_.Between(1, 60));
      uncordon.body = R"({"spec":{"unschedulable":null}})";
      chain.operations.push_back(cordon);
      chain.operations.push_back(uncordon);
    }
    if (prng_.Chance({1, 2})) {
      Operation label = base;
      label.at = Somewhen(options);
      label.body = fmt::format(R"({{"metadata":{{"labels":{{"pool":"{}"}}}}}})", prng_.Below(3));
      chain.operations.push_back(label);
    }
    if (prng_.Chance(options.faults[Fault::kNodeRecreated])) {
      // The kubelet registers it again.
      counts_.Add(Fault::kNodeRecreated);
      Operation removal = base;
      removal.at = Somewhen(options);
      removal.verb = Operation::Verb::kDelete;
      chain.operations.push_back(removal);
    }
  }
}

void Users::Step(Instant now, env::Input input, env::Outbox& out) {
  if (!running_) {
    running_ = true;
    started_ = now;
  }
  events_.clear();
  client_.Handle(now, input, out, events_);
  for (const client::Event& event : events_) {
    if (const auto* done = std::get_if<client::CallDone>(&event)) OnDone(now, *done, out);
  }
  for (Chain& chain : chains_) {
    if (chain.call.value == 0 && chain.next < chain.operations.size()) Start(now, chain, out);
  }
}

void Users::Start(Instant now, Chain& chain, env::Outbox& out) {
  const Operation& operation = chain.operations[chain.next];
  const Instant due = std::max(started_ + Duration{operation.at.ns}, chain.not_before);
  if (due > now) return;
  const client::ObjectPath path{
      .namespace_name = operation.namespace_name, .name = operation.name, .subresource = {}};
  client::Request request = chain.reading               ? client::Get(operation.resource, path)
                            : chain.victim.name.empty() ? RequestOf(operation)
                                                        : client::Evict(chain.victim);
  chain.call = client_.Call(now, std::move(request), out);
  chain_by_call_[chain.call.value] = static_cast<size_t>(&chain - chains_.data());
}

void Users::OnDone(Instant now, const client::CallDone& done, env::Outbox& out) {
  static_cast<void>(out);
  const auto at = chain_by_call_.find(done.call.value);
  if (at == chain_by_call_.end()) return;
  Chain& chain = chains_[at->second];
  chain_by_call_.erase(at);
  chain.call = {};
  if (scripted_) return OnScripted(now, done, chain);
  const Operation& operation = chain.operations[chain.next];
  if (operation.verb == Operation::Verb::kEvict) return OnEviction(now, done, chain);
  if (chain.reading) {
    chain.reading = false;
    const bool alive =
        done.outcome == client::Outcome::kDone &&
        done.response.body.view().find("\"deletionTimestamp\"") == std::string_view::npos;
    if (alive) return Advance(now, chain);
    chain.not_before = now + kRetryDelay;
    return;
  }
  if (done.outcome == client::Outcome::kDone) return Advance(now, chain);
  if (operation.verb == Operation::Verb::kDelete && done.outcome == client::Outcome::kGone) {
    return Advance(now, chain);
  }
  // What a create that was answered badly has become is read; a patch and a delete can simply be
  // said again.
  chain.reading =
      operation.verb == Operation::Verb::kCreate &&
      (done.outcome == client::Outcome::kConflict || done.outcome == client::Outcome::kUnknown);
  chain.not_before = now + kRetryDelay;
}

// Nobody evicts the same pod twice: where it is not known what became of it, it may be going.
void Users::OnEviction(Instant now, const client::CallDone& done, Chain& chain) {
  if (chain.victim.name.empty()) {
    chain.not_before = now + kRetryDelay;
    if (done.outcome != client::Outcome::kDone) return;
    chain.victim = ChooseVictim(done.response.body.view());
    if (chain.victim.name.empty()) return Advance(now, chain);
    chain.not_before = now;
    return;
  }
  chain.victim = {};
  const bool refused = done.response.status == 429;
  if (!refused || ++chain.refusals == kRefusalsMax) {
    chain.refusals = 0;
    return Advance(now, chain);
  }
  chain.not_before = now + kEvictAgain;
}

// One of those that run; nothing when none does.
client::ObjectRef Users::ChooseVictim(std::string_view list) {
  const Result<api::Json> parsed = codec::ParseJson(list);
  CHECK(parsed.has_value());
  std::vector<client::ObjectRef> running;
  for (const api::Json& pod : api::ArrayAt(*parsed, "items")) {
    if (api::TextAt(pod, "status.phase") != "Running") continue;
    running.push_back({.namespace_name = std::string(api::TextAt(pod, "metadata.namespace")),
                       .name = std::string(api::TextAt(pod, "metadata.name")),
                       .uid = std::string(api::TextAt(pod, "metadata.uid")),
                       .resource_version = {}});
  }
  if (running.empty()) return {};
  return running[prng_.Below(running.size())];
}

void Users::OnScripted(Instant now, const client::CallDone& done, Chain& chain) {
  if (done.outcome != client::Outcome::kUnknown) return Advance(now, chain);
  chain.not_before = now + kRetryDelay;
}

void Users::Repeat(Instant now) {
  CHECK(finished());
  CHECK(!scripted_);
  for (Chain& chain : chains_) {
    if (chain.operations.empty()) continue;
    const Operation made = chain.operations.back();
    if (made.verb == Operation::Verb::kEvict) {
      // At the same time as the others who do.
      Operation again = made;
      again.at = Instant{} + (now - started_) + kEvictionsAfter;
      chain.operations.push_back(std::move(again));
      --finished_chains_;
      continue;
    }
    const bool scales = made.resource == kDeployments;
    const bool again = made.resource == client::Pods() && prng_.Chance({1, 2});
    if (!scales && !again) continue;
    Operation first = made;
    first.at = Instant{} + (now - started_) + Duration{prng_.Between(0, kRound.ns)};
    Operation last = made;
    last.at = first.at + Duration{prng_.Between(0, kRound.ns)};
    if (scales) {
      const int64_t wanted = wanted_.deployments.at(KeyOf(made.namespace_name, made.name));
      first.verb = last.verb = Operation::Verb::kPatch;
      first.body = Replicas(prng_.Between(0, 5 * wanted));
      last.body = Replicas(wanted);
    } else {
      first.verb = Operation::Verb::kDelete;
    }
    chain.operations.push_back(std::move(first));
    chain.operations.push_back(std::move(last));
    --finished_chains_;
  }
}

void Users::Advance(Instant now, Chain& chain) {
  chain.not_before = now;
  if (++chain.next == chain.operations.size()) ++finished_chains_;
}

Instant Users::wake_at() const {
  if (!running_) return Instant{0};
  Instant wake = client_.wake_at();
  for (const Chain& chain : chains_) {
    if (chain.call.value != 0 || chain.next >= chain.operations.size()) continue;
    wake = std::min(
        wake, std::max(started_ + Duration{chain.operations[chain.next].at.ns}, chain.not_before));
  }
  return wake;
}

// What is wanted and planned is left out: it follows from the seed and the options.
void Users::AddTo(Hasher& hasher) const {
  client_.AddTo(hasher);
  hasher.Add(prng_.fingerprint()).Add(running_).Add(finished_chains_).Add(started_.ns);
  for (const Chain& chain : chains_) {
    hasher.Add(chain.next).Add(chain.call.value).Add(chain.reading).Add(chain.not_before.ns);
    hasher.Add(std::string_view(chain.victim.uid)).Add(chain.refusals);
  }
  hasher.Add(chain_by_call_.size());
  for (const auto& [call, chain] : chain_by_call_) hasher.Add(call).Add(chain);
}

}  // namespace berth::sim
