#include "cmd/profiles.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
#include "cmd/extenders.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "config/effects.h"
#include "config/profile.h"

namespace berth::cmd {
namespace {

using config::EffectiveProfile;
using config::Point;
using model::OptionalFilter;

static_assert(config::kScoredResourcesMax == model::kProfileResourcesMax);

constexpr int64_t kBindSecondsMax = int64_t{10} * 365 * 24 * 3600;  // For ever.
constexpr int64_t kShapeScale = 10;  // From 0 to 10 in the file to 0 to 100.

const config::EffectivePlugin* Find(const EffectiveProfile& profile, Point point,
                                    std::string_view plugin) {
  const std::vector<config::EffectivePlugin>& there = profile.AtPoint(point);
  const auto at = std::ranges::find(there, plugin, &config::EffectivePlugin::name);
  return at != there.end() ? &*at : nullptr;
}

bool Filters(const EffectiveProfile& profile, std::string_view plugin) {
  return Find(profile, Point::kFilter, plugin) != nullptr;
}

int64_t WeightOf(const EffectiveProfile& profile, std::string_view plugin) {
  const config::EffectivePlugin* found = Find(profile, Point::kScore, plugin);
  return found != nullptr ? found->weight : 0;
}

// Of a plugin that acts nowhere nothing need be said.
template <class Args>
Args ArgsOf(const config::Profile& profile) {
  for (const config::PluginConfig& config : profile.plugin_config) {
    if (const auto* args = std::get_if<Args>(&config.args)) return *args;
  }
  return {};
}

// Cpu and memory alike.
bool AreUsual(const std::vector<config::ResourceSpec>& resources) {
  const auto among = [&](std::string_view name) {
    return std::ranges::find(resources, name, &config::ResourceSpec::name) != resources.end();
  };
  return resources.size() == 2 && among("cpu") && among("memory") &&
         resources[0].weight == resources[1].weight;
}

void PutStrategy(const config::ScoringStrategy& from, model::ProfileOptions& out) {
  if (from.type == "LeastAllocated" && AreUsual(from.resources)) return;
  if (from.type == "MostAllocated") {
    out.rules.strategy = model::FitStrategy::kMostAllocated;
  } else if (from.type == "RequestedToCapacityRatio") {
    out.rules.strategy = model::FitStrategy::kRequestedToCapacityRatio;
    for (const config::ShapePoint& point : from.requested_to_capacity_ratio->shape)
      out.rules.shape.push_back(
          {.utilization = point.utilization, .score = int64_t{point.score} * kShapeScale});
  }
  for (const config::ResourceSpec& one : from.resources)
    out.fit.push_back({.name = one.name, .weight = one.weight});
}

void PutFilters(const EffectiveProfile& effective, model::ProfileRules& rules) {
  constexpr std::pair<std::string_view, OptionalFilter> kFilters[] = {
      {"NodeUnschedulable", OptionalFilter::kNodeUnschedulable},
      {"TaintToleration", OptionalFilter::kTaintToleration},
      {"NodeAffinity", OptionalFilter::kNodeAffinity},
      {"VolumeRestrictions", OptionalFilter::kVolumeRestrictions},
      {"NodeVolumeLimits", OptionalFilter::kNodeVolumeLimits},
      {"VolumeBinding", OptionalFilter::kVolumeBinding},
      {"VolumeZone", OptionalFilter::kVolumeZone},
      {"InterPodAffinity", OptionalFilter::kInterPodAffinity},
  };
  for (const auto& [name, filter] : kFilters) {
    if (!Filters(effective, name)) rules.Disable(filter);
  }
}

model::ProfileOptions EngineProfile(const config::Profile& profile,
                                    const EffectiveProfile& effective) {
  model::ProfileOptions out{.scheduler_name = *profile.scheduler_name};
  out.rules.weights = {.taints = WeightOf(effective, "TaintToleration"),
                       .affinity = WeightOf(effective, "NodeAffinity"),
                       .fit = WeightOf(effective, "NodeResourcesFit"),
                       .balanced = WeightOf(effective, "NodeResourcesBalancedAllocation"),
                       .spread = WeightOf(effective, "PodTopologySpread"),
                       .pod_affinity = WeightOf(effective, "InterPodAffinity"),
                       .images = WeightOf(effective, "ImageLocality")};
  const auto strategy = ArgsOf<config::NodeResourcesFitArgs>(profile).scoring_strategy;
  if (strategy) PutStrategy(*strategy, out);
  const auto balanced = ArgsOf<config::NodeResourcesBalancedAllocationArgs>(profile).resources;
  for (const config::ResourceSpec& one : balanced) out.balanced.push_back(one.name);
  if (AreUsual(balanced)) out.balanced.clear();
  const auto affinity = ArgsOf<config::InterPodAffinityArgs>(profile);
  out.rules.hard_affinity_weight = affinity.hard_pod_affinity_weight;
  out.rules.ignores_others_preferences = affinity.ignore_preferred_terms_of_existing_pods;
  out.rules.preempts = Find(effective, Point::kPostFilter, "DefaultPreemption") != nullptr;
  out.rules.deallocates = Find(effective, Point::kPostFilter, "DynamicResources") != nullptr;
  PutFilters(effective, out.rules);
  return out;
}

// As of a pod that has it, which is how the file was checked.
void PutAddedAffinity(const api::Json& affinity, translate::PodProfile& out) {
  if (affinity.is_null()) return;
  const api::Json pod = {{"spec", {{"affinity", {{"nodeAffinity", affinity}}}}}};
  codec::Decoder decoder;
  const Result<api::Pod> read = decoder.Pod(codec::PrintJson(pod));
  CHECK(read.has_value());
  out.added_terms = read->spec->required_node_affinity;
  out.added_preferences = read->spec->preferred_node_affinity;
}

api::TopologySpreadConstraint ConstraintOf(const config::SpreadConstraint& from) {
  return {.max_skew = from.max_skew,
          .topology_key = from.topology_key,
          .when_unsatisfiable = from.when_unsatisfiable,
          .label_selector = {},
          .match_label_keys = {},
          .min_domains = from.min_domains,
          .node_affinity_policy = from.node_affinity_policy.value_or(""),
          .node_taints_policy = from.node_taints_policy.value_or("")};
}

translate::PodProfile PodProfileOf(const config::Profile& profile,
                                   const EffectiveProfile& effective) {
  translate::PodProfile out;
  PutAddedAffinity(ArgsOf<config::NodeAffinityArgs>(profile).added_affinity, out);
  const auto spread = ArgsOf<config::PodTopologySpreadArgs>(profile);
  if (spread.defaulting_type == "List") {
    out.default_constraints.emplace();
    for (const config::SpreadConstraint& one : spread.default_constraints)
      out.default_constraints->push_back(ConstraintOf(one));
  }
  const auto fit = ArgsOf<config::NodeResourcesFitArgs>(profile);
  out.ignored_resources = fit.ignored_resources;
  out.ignored_groups = fit.ignored_resource_groups;
  out.asks_amounts = Filters(effective, "NodeResourcesFit");
  out.asks_ports = Filters(effective, "NodePorts");
  out.asks_features = Filters(effective, "NodeDeclaredFeatures");
  out.asks_affinity = Filters(effective, "NodeAffinity");
  out.asks_spread = Filters(effective, "PodTopologySpread");
  out.scores_spread = WeightOf(effective, "PodTopologySpread") != 0;
  return out;
}

}  // namespace

Profiles ProfilesOf(const config::SchedulerConfiguration& configuration,
                    const config::FeatureGates& gates) {
  Profiles out;
  const std::vector<std::string> ignored = IgnoredResourcesOf(configuration);
  for (const config::Profile& profile : configuration.profiles) {
    const EffectiveProfile effective = config::Expand(profile, gates);
    const std::string& name = *profile.scheduler_name;
    model::ProfileOptions engine = EngineProfile(profile, effective);
    translate::PodProfile pods = PodProfileOf(profile, effective);
    if (!ignored.empty()) pods.ignored_resources = ignored;
    out.preempt = out.preempt || engine.rules.preempts;
    if (engine != model::ProfileOptions{.scheduler_name = name})
      out.engine.push_back(std::move(engine));
    const auto volumes = ArgsOf<config::VolumeBindingArgs>(profile);
    if (volumes.bind_timeout_seconds != config::VolumeBindingArgs{}.bind_timeout_seconds)
      out.bind_within.emplace(
          name, Duration::Seconds(std::min(volumes.bind_timeout_seconds, kBindSecondsMax)));
    if (pods != translate::PodProfile{}) out.pods.emplace(name, std::move(pods));
  }
  return out;
}

Status CheckBesideQuota(const config::SchedulerConfiguration& configuration,
                        const config::FeatureGates& gates) {
  if (!configuration.extenders.empty()) {
    return Fail(ErrorCode::kInvalid,
                "extenders of --config are not asked about places of workloads, whose pods are yet "
                "to come: leave one of the two out");
  }
  const Profiles profiles = ProfilesOf(configuration, gates);
  const bool all_bind_volumes =
      std::ranges::all_of(profiles.engine, [](const model::ProfileOptions& profile) {
        return profile.rules.filters(OptionalFilter::kVolumeBinding);
      });
  if (!profiles.pods.empty() || !all_bind_volumes) {
    return Fail(
        ErrorCode::kInvalid,
        "workloads are given places as by the default profile: those of --config may have other "
        "scores, not other requests, affinity or topology spread constraints of pods, nor be "
        "without PodTopologySpread or VolumeBinding");
  }
  return {};
}

}  // namespace berth::cmd
