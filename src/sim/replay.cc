#include "sim/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "translate/facts.h"
#include "translate/text.h"

namespace berth::sim {
namespace {

constexpr int64_t kLevels[] = {90, 100, 110, 130};
constexpr int64_t kMebibyte = 1024 * 1024;
// The protocol knows no limit of pods; this one never binds.
constexpr int64_t kPodsPerNode = 10'000;
constexpr std::string_view kNamespace = "default";

int64_t GpuCapacityMilli(std::span<const TraceNode> nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), int64_t{0}, [](int64_t sum, const auto& n) {
    return sum + n.gpus_count * model::kDeviceMilli;
  });
}

struct PolicyName {
  model::Policy policy;
  std::string_view name;
};
constexpr PolicyName kPolicyNames[] = {{model::Policy::kSpread, "spread"},
                                       {model::Policy::kBestFit, "best-fit"},
                                       {model::Policy::kFgd, "fgd"},
                                       {model::Policy::kRandom, "random"}};

void AddLevel(const Level& level, api::JsonObject& json) {
  json["arrived"] = level.arrived;
  json["placed"] = level.placed;
  api::JsonObject pending;
  for (const auto& [reason, count] : level.pending) pending[reason] = count;
  json["pending"] = std::move(pending);
  json["gpu_allocated_milli"] = level.gpu_milli.allocated;
  json["gpu_capacity_milli"] = level.gpu_milli.capacity;
  json["cpu_allocated_milli"] = level.cpu_milli.allocated;
  json["cpu_capacity_milli"] = level.cpu_milli.capacity;
  json["memory_allocated_bytes"] = level.memory_bytes.allocated;
  json["memory_capacity_bytes"] = level.memory_bytes.capacity;
}

}  // namespace

// ---- The order of arrivals -------------------------------------------------------------------

Result<std::vector<Arrival>> FillOrder(std::span<const TraceNode> nodes,
                                       std::span<const TracePod> pods,
                                       const ReplayOptions& options) {
  const int64_t capacity = GpuCapacityMilli(nodes);
  if (capacity == 0) return Fail(ErrorCode::kInvalid, "the nodes have no GPUs to fill");
  if (options.arrived.whole == 0) {
    return Fail(ErrorCode::kInvalid, "the share of demand that arrives has a zero denominator");
  }
  std::vector<uint32_t> order(pods.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) -> std::string_view { return pods[i].name; });
  const std::vector<uint32_t> by_name = order;
  Prng prng(options.seed);
  prng.Shuffle(std::span(order));

  std::vector<Arrival> arrivals;
  std::vector<uint32_t> drawn(pods.size());
  int64_t demand = 0;
  const auto reached = [&] {
    return demand * options.arrived.whole >= capacity * options.arrived.part;
  };
  for (size_t i = 0; i < order.size() && !reached(); ++i) {
    arrivals.push_back({.pod = order[i]});
    demand += pods[order[i]].gpu_milli();
  }
  if (demand == 0) return Fail(ErrorCode::kInvalid, "no pod asks for GPUs");
  while (!reached()) {
    if (arrivals.size() == static_cast<size_t>(limits::kPodsMax)) {
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("more than {} pods are needed to ask for {}/{} of the GPUs",
                              limits::kPodsMax, options.arrived.part, options.arrived.whole));
    }
    const uint32_t pod = by_name[static_cast<size_t>(prng.Below(by_name.size()))];
    arrivals.push_back({.pod = pod, .repeat = ++drawn[pod]});
    demand += pods[pod].gpu_milli();
  }
  return arrivals;
}

std::string NameOf(const TracePod& pod, uint32_t repeat) {
  return repeat == 0 ? pod.name : fmt::format("{}-{}", pod.name, repeat);
}

// ---- Rows as objects -------------------------------------------------------------------------

api::Node NodeOf(const TraceNode& node) {
  api::Node out;
  out.meta.name = node.name;
  if (node.gpus_count > 0) {
    out.meta.labels.emplace_back(translate::kGpuModelLabel, node.gpu_model);
    out.allocatable.push_back({std::string(translate::kGpuMilliResource), node.gpus_count * 1000});
  }
  out.meta.labels.emplace_back("kubernetes.io/hostname", node.name);
  out.allocatable.push_back({"cpu", node.cpu_milli});
  out.allocatable.push_back({"memory", node.memory_mib * kMebibyte});
  out.allocatable.push_back({"pods", kPodsPerNode});
  out.capacity = out.allocatable;
  return out;
}

api::Pod PodOf(const TracePod& pod, uint32_t repeat) {
  api::Pod out;
  out.meta.name = NameOf(pod, repeat);
  out.meta.namespace_name = kNamespace;
  api::Container container;
  container.name = "main";
  container.image = "trace";
  if (pod.gpus_count > 0) {
    container.requests.push_back({std::string(translate::kGpuMilliResource), pod.gpu_milli()});
    container.limits = container.requests;
  }
  container.requests.push_back({"cpu", pod.cpu_milli});
  container.requests.push_back({"memory", pod.memory_mib * kMebibyte});
  api::PodSpec& spec = out.spec.Edit();
  spec.containers.push_back(std::move(container));
  if (!pod.gpu_models.empty()) {
    spec.required_node_affinity = {
        {.match_expressions = {{.key = std::string(translate::kGpuModelLabel),
                                .op = "In",
                                .values = pod.gpu_models}}}};
  }
  return out;
}

api::Json NodeDocument(const TraceNode& node) {
  api::JsonObject labels;
  api::JsonObject amounts;
  if (node.gpus_count > 0) {
    labels[translate::kGpuModelLabel] = node.gpu_model;
    amounts[translate::kGpuMilliResource] = fmt::format("{}", node.gpus_count * 1000);
  }
  labels["kubernetes.io/hostname"] = node.name;
  amounts["cpu"] = fmt::format("{}m", node.cpu_milli);
  amounts["memory"] = fmt::format("{}Mi", node.memory_mib);
  amounts["pods"] = fmt::format("{}", kPodsPerNode);
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", node.name}, {"labels", labels}}},
          {"status", {{"capacity", amounts}, {"allocatable", amounts}}}};
}

api::Json PodDocument(const TracePod& pod, uint32_t repeat) {
  api::JsonObject limits;
  if (pod.gpus_count > 0) {
    limits[translate::kGpuMilliResource] = fmt::format("{}", pod.gpu_milli());
  }
  api::JsonObject requests = limits;
  requests["cpu"] = fmt::format("{}m", pod.cpu_milli);
  requests["memory"] = fmt::format("{}Mi", pod.memory_mib);
  api::JsonObject container = {
      {"name", "main"},
      {"image", "trace"},
      {"resources", {{"requests", std::move(requests)}, {"limits", std::move(limits)}}}};
  api::JsonObject spec = {{"containers", api::JsonArray{std::move(container)}}};
  if (!pod.gpu_models.empty()) {
    const api::JsonObject requirement = {
        {"key", translate::kGpuModelLabel},
        {"operator", "In"},
        {"values", api::JsonArray(pod.gpu_models.begin(), pod.gpu_models.end())}};
    const api::JsonObject term = {{"matchExpressions", api::JsonArray{requirement}}};
    spec["affinity"] = {{"nodeAffinity",
                         {{"requiredDuringSchedulingIgnoredDuringExecution",
                           {{"nodeSelectorTerms", api::JsonArray{term}}}}}}};
  }
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", NameOf(pod, repeat)}, {"namespace", kNamespace}}},
          {"spec", std::move(spec)}};
}

cycle::Engine::Options EngineOptions(const ReplayOptions& options, std::span<const TracePod> pods) {
  cycle::Engine::Options engine{.evaluator = place::Evaluator(options.policy),
                                .seed = options.seed};
  if (options.policy != model::Policy::kFgd) return engine;
  std::vector<const TracePod*> by_name;
  std::set<std::string> models;
  for (const TracePod& pod : pods) {
    by_name.push_back(&pod);
    models.insert(pod.gpu_models.begin(), pod.gpu_models.end());
  }
  engine.names.assign(models.begin(), models.end());
  std::ranges::sort(by_name, {}, [](const TracePod* pod) -> std::string_view { return pod->name; });
  std::vector<place::TypicalPod> typical;
  for (const TracePod* pod : by_name) {
    place::TypicalPod kind{.cpu_milli = pod->cpu_milli, .count = 1};
    if (pod->gpu_milli_each == model::kDeviceMilli) {
      kind.gpu.devices_count = static_cast<uint32_t>(pod->gpus_count);
    } else {
      kind.gpu.share_milli = static_cast<uint32_t>(pod->gpu_milli_each);
    }
    for (const std::string& name : pod->gpu_models) {
      const auto at = std::ranges::lower_bound(engine.names, name) - engine.names.begin();
      kind.models.push_back(model::NameId{static_cast<uint32_t>(at)});
    }
    typical.push_back(std::move(kind));
  }
  engine.evaluator =
      place::Evaluator(options.policy, place::FragmentTable(place::MostPopular(typical)));
  return engine;
}

// ---- The report ------------------------------------------------------------------------------

std::string_view ToString(model::Policy policy) {
  const auto found = std::ranges::find(kPolicyNames, policy, &PolicyName::policy);
  CHECK(found != std::end(kPolicyNames));
  return found->name;
}

Result<model::Policy> ParsePolicy(std::string_view text) {
  const auto found = std::ranges::find(kPolicyNames, text, &PolicyName::name);
  if (found != std::end(kPolicyNames)) return found->policy;
  return Fail(ErrorCode::kInvalid,
              fmt::format("unknown policy {}: want spread, best-fit, fgd or random", text));
}

api::Json ToJson(const ReplayReport& report) {
  api::JsonObject json;
  json["policy"] = report.policy;
  json["seed"] = report.seed;
  json["nodes"] = report.nodes_count;
  json["rows_skipped"] = report.rows_skipped;
  json["decisions"] = report.decisions;
  json["decisions_per_second"] = report.decisions_per_second;
  json["decision_hash"] = fmt::format("{:016x}", report.decision_hash);
  if (!report.levels.empty()) AddLevel(report.levels.back(), json);
  api::JsonArray levels;
  for (const Level& level : report.levels) {
    api::JsonObject entry;
    entry["arrived_percent"] = level.arrived_percent;
    AddLevel(level, entry);
    levels.push_back(std::move(entry));
  }
  json["levels"] = std::move(levels);
  return json;
}

std::string MainReason(std::string_view message) {
  const size_t colon = message.find(": ");
  if (!message.starts_with("0/") || colon == std::string_view::npos) return std::string(message);
  std::map<std::string, int64_t> counts;
  std::string_view rest = message.substr(colon + 2);
  if (rest.ends_with('.')) rest.remove_suffix(1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(", "), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 2, rest.size()));
    int64_t nodes = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), nodes);
    const auto digits = static_cast<size_t>(stop - part.data());
    if (error != std::errc() || digits + 1 >= part.size()) return std::string(part);
    counts[std::string(part.substr(digits + 1))] += nodes;
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
  return most == counts.end() ? std::string(message) : most->first;
}

ReplayRecorder::ReplayRecorder(const ReplayOptions& options, std::span<const TraceNode> nodes,
                               std::span<const TracePod> pods, std::span<const Arrival> arrivals)
    : options_(options),
      pods_(pods),
      arrivals_(arrivals),
      nodes_count_(static_cast<int64_t>(nodes.size())) {
  level_.gpu_milli.capacity = GpuCapacityMilli(nodes);
  for (const TraceNode& node : nodes) {
    level_.cpu_milli.capacity += node.cpu_milli;
    level_.memory_bytes.capacity += node.memory_mib * kMebibyte;
  }
}

Level ReplayRecorder::Now(int64_t percent) const {
  Level level = level_;
  level.arrived_percent = percent;
  return level;
}

void ReplayRecorder::Decided(const Decision& decision) {
  CHECK_LT(next_, arrivals_.size());
  const TracePod& pod = pods_[arrivals_[next_].pod];
  ++level_.arrived;
  arrived_gpu_milli_ += pod.gpu_milli();
  hasher_.Add(next_).Add(decision.node).Add(decision.devices_mask);
  if (decision.node.empty()) {
    ++level_.pending[std::string(decision.reason)];
  } else {
    ++level_.placed;
    level_.gpu_milli.allocated += pod.gpu_milli();
    level_.cpu_milli.allocated += pod.cpu_milli;
    level_.memory_bytes.allocated += pod.memory_mib * kMebibyte;
  }
  ++next_;
  for (const int64_t percent : kLevels) {
    if (!reached_.empty() && reached_.back().arrived_percent >= percent) continue;
    if (arrived_gpu_milli_ * 100 < percent * level_.gpu_milli.capacity) break;
    reached_.push_back(Now(percent));
  }
}

ReplayReport ReplayRecorder::Report() const {
  ReplayReport report{.policy = std::string(ToString(options_.policy)),
                      .seed = options_.seed,
                      .nodes_count = nodes_count_,
                      .levels = reached_,
                      .decision_hash = hasher_.value(),
                      .decisions = static_cast<int64_t>(next_)};
  if (reached_.empty() || reached_.back().arrived != level_.arrived) {
    const int64_t capacity = std::max<int64_t>(level_.gpu_milli.capacity, 1);
    report.levels.push_back(Now(arrived_gpu_milli_ * 100 / capacity));
  }
  return report;
}

// ---- The engine alone ------------------------------------------------------------------------

EngineReplay::EngineReplay(std::unique_ptr<const FillInputs> inputs, const ReplayOptions& options,
                           cycle::Engine engine)
    : inputs_(std::move(inputs)),
      recorder_(options, inputs_->nodes, inputs_->pods, inputs_->arrivals),
      engine_(std::move(engine)) {}

Result<EngineReplay> EngineReplay::Make(std::vector<TraceNode> nodes, std::vector<TracePod> pods,
                                        const ReplayOptions& options) {
  Result<std::vector<Arrival>> arrivals = FillOrder(nodes, pods, options);
  if (!arrivals) return std::unexpected(arrivals.error());
  cycle::Engine engine(EngineOptions(options, pods));
  for (const TraceNode& node : nodes) {
    api::Node object = NodeOf(node);
    object.meta.uid = node.name;
    engine.Apply(translate::NodeFacts(object, engine.vocabulary()));
  }
  std::vector<model::PodUpsert> facts;
  facts.reserve(pods.size());
  for (const TracePod& pod : pods) {
    auto translated = translate::PodFacts(PodOf(pod, 0), engine.vocabulary());
    if (!translated) return std::unexpected(translated.error());
    facts.push_back(std::move(*translated));
  }
  EngineReplay replay(std::make_unique<const FillInputs>(
                          FillInputs{std::move(nodes), std::move(pods), std::move(*arrivals)}),
                      options, std::move(engine));
  replay.facts_ = std::move(facts);
  return replay;
}

bool EngineReplay::Step(size_t count) {
  const std::span<const Arrival> arrivals = inputs_->arrivals;
  for (; count > 0 && decided() < arrivals.size(); --count) Decide(arrivals[decided()]);
  return decided() < arrivals.size();
}

void EngineReplay::Decide(const Arrival& arrival) {
  now_ = now_ + kArrivalEvery;
  model::PodUpsert facts = facts_[arrival.pod];
  const std::string name = NameOf(inputs_->pods[arrival.pod], arrival.repeat);
  facts.uid = name;
  facts.key = fmt::format("{}/{}", kNamespace, name);
  facts.creation = now_;
  engine_.Apply(facts);
  const model::Plan plan = engine_.Cycle(now_);
  const model::State& state = engine_.state();
  if (plan.binds.empty()) {
    // It stays in the engine: nothing ever ends, so it waits for good, and others of its class need
    // no new look. Pods that waited before may be told of anew beside it.
    const auto told = std::ranges::find_if(plan.refused, [&](const model::PodRefused& refused) {
      return state.UidOf(refused.pod_uid) == name;
    });
    CHECK(told != plan.refused.end());
    const model::Refusal& refusal = plan.refusals[told->refusal];
    const std::string reason = MainReason(translate::FailedSchedulingText(refusal, state));
    recorder_.Decided({.reason = reason});
    return Rest();
  }
  CHECK_EQ(plan.binds.size(), 1u);
  const model::BindDecision& bind = plan.binds[0];
  const std::string_view node = state.NameOf(bind.node_name);
  recorder_.Decided({.node = node, .devices_mask = bind.devices.mask});
  facts.node = node;
  facts.devices = bind.devices;
  engine_.Apply(facts);
  Rest();
}

// As the scheduler's loop does: until nothing is due. Reports of those that wait are renewed.
void EngineReplay::Rest() {
  while (engine_.wake_at() <= now_) CHECK(engine_.Cycle(now_).binds.empty());
}

}  // namespace berth::sim
