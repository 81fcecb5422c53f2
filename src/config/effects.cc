#include "config/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "codec/json.h"
#include "config/contains.h"
#include "config/print.h"
#include "config/profile.h"

namespace berth::config {
namespace {

using enum Effect;

// Collects settings below a field.
class Teller {
 public:
  Teller(std::string path, std::vector<Setting>& out) : path_(std::move(path)), out_(out) {}

  void Add(std::string_view name, std::string value, Effect effect, std::string_view why = "") {
    const std::string_view dot = path_.empty() || name.empty() ? "" : ".";
    out_.push_back({.field = fmt::format("{}{}{}", path_, dot, name),
                    .value = std::move(value),
                    .effect = effect,
                    .why = std::string(why)});
  }
  // What only is as it is by default.
  void Only(std::string_view name, std::string value, bool is_default, std::string_view why) {
    if (is_default) {
      Add(name, std::move(value), kHonoured);
    } else {
      Add(name, std::move(value), kRefused, why);
    }
  }
  [[nodiscard]] Teller At(std::string_view name) const {
    return {path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name), out_};
  }

 private:
  std::string path_;
  std::vector<Setting>& out_;
};

std::string Shown(const auto& value) {
  auto copy = value;
  return codec::PrintJson(ToJson(copy));
}

void Tell(const std::monostate& /*args*/, Teller tell) {
  tell.Add("", "given", kWithoutEffect,
           "the plugin has no arguments, or there is none of its name");
}

void Tell(const DefaultPreemptionArgs& args, Teller tell) {
  constexpr std::string_view kWhy = "all nodes are candidates, always";
  tell.Add("minCandidateNodesPercentage", Shown(args.min_candidate_nodes_percentage),
           kWithoutEffect, kWhy);
  tell.Add("minCandidateNodesAbsolute", Shown(args.min_candidate_nodes_absolute), kWithoutEffect,
           kWhy);
}

void Tell(const DynamicResourcesArgs& args, Teller tell) {
  constexpr std::string_view kWhy = "pods with resource claims are not placed, and told so";
  if (args.filter_timeout)
    tell.Add("filterTimeout", GoText(*args.filter_timeout), kWithoutEffect, kWhy);
  if (args.binding_timeout)
    tell.Add("bindingTimeout", GoText(*args.binding_timeout), kWithoutEffect, kWhy);
}

void Tell(const InterPodAffinityArgs& args, Teller tell) {
  tell.Only("hardPodAffinityWeight", Shown(args.hard_pod_affinity_weight),
            args.hard_pod_affinity_weight == 1, "only 1 is built");
  tell.Only("ignorePreferredTermsOfExistingPods",
            Shown(args.ignore_preferred_terms_of_existing_pods),
            !args.ignore_preferred_terms_of_existing_pods, "only false is built");
}

void Tell(const NodeAffinityArgs& args, Teller tell) {
  if (!args.added_affinity.is_null())
    tell.Add("addedAffinity", Shown(args.added_affinity), kRefused,
             "no affinity is added to pods: write it into their templates");
}

bool AreCpuAndMemory(const std::vector<ResourceSpec>& resources) {
  return resources.size() == 2 && Contains(resources, ResourceSpec{.name = "cpu", .weight = 1}) &&
         Contains(resources, ResourceSpec{.name = "memory", .weight = 1});
}

void Tell(const NodeResourcesBalancedAllocationArgs& args, Teller tell) {
  tell.Only("resources", Shown(args.resources), AreCpuAndMemory(args.resources),
            "only cpu and memory are balanced");
}

void Tell(const NodeResourcesFitArgs& args, Teller tell) {
  constexpr std::string_view kWhy = "every resource that a pod requests is counted";
  if (!args.ignored_resources.empty())
    tell.Add("ignoredResources", Shown(args.ignored_resources), kRefused, kWhy);
  if (!args.ignored_resource_groups.empty())
    tell.Add("ignoredResourceGroups", Shown(args.ignored_resource_groups), kRefused, kWhy);
  const Teller strategy = tell.At("scoringStrategy");
  const ScoringStrategy& of = *args.scoring_strategy;
  Teller(strategy).Only("type", of.type, of.type == "LeastAllocated",
                        "only LeastAllocated is built");
  Teller(strategy).Only("resources", Shown(of.resources), AreCpuAndMemory(of.resources),
                        "only cpu and memory of weight 1 are scored");
}

void Tell(const PodTopologySpreadArgs& args, Teller tell) {
  if (!args.default_constraints.empty()) {
    tell.Add("defaultConstraints", Shown(args.default_constraints), kRefused,
             "pods without constraints have Kubernetes' own");
  }
  tell.Only("defaultingType", args.defaulting_type, args.defaulting_type == "System",
            "pods without constraints have Kubernetes' own");
}

void Tell(const VolumeBindingArgs& args, Teller tell) {
  tell.Add("bindTimeoutSeconds", Shown(args.bind_timeout_seconds), kWithoutEffect,
           "a binding waits 600 s for its volumes");
  if (args.shape) {
    tell.Add("shape", Shown(*args.shape), kRefused, "nodes are not scored by storage capacity");
  }
}

void TellElection(const LeaderElection& of, Teller tell) {
  tell.Add("leaderElect", Shown(of.leader_elect), kHonoured);
  tell.Only("leaseDuration", GoText(of.lease_duration), of.lease_duration >= Duration::Seconds(1),
            "a Lease counts in seconds");
  tell.Add("renewDeadline", GoText(of.renew_deadline), kHonoured);
  tell.Add("retryPeriod", GoText(of.retry_period), kHonoured);
  tell.Add("resourceNamespace", of.resource_namespace, kHonoured);
  tell.Add("resourceName", of.resource_name, kHonoured);
}

void TellClient(const ClientConnection& of, Teller tell) {
  if (!of.kubeconfig.empty()) tell.Add("kubeconfig", of.kubeconfig, kHonoured);
  constexpr std::string_view kJson = "berth speaks JSON";
  if (!of.accept_content_types.empty())
    tell.Add("acceptContentTypes", of.accept_content_types, kWithoutEffect, kJson);
  tell.Add("contentType", of.content_type, kWithoutEffect, kJson);
  constexpr std::string_view kWindow =
      "not the rate but the number of calls under way is bounded: 32";
  tell.Add("qps", Shown(of.qps), kWithoutEffect, kWindow);
  tell.Add("burst", Shown(of.burst), kWithoutEffect, kWindow);
}

bool DisablesPreemption(const EffectiveProfile& profile) {
  return !Contains(profile.AtPoint(Point::kPostFilter), "DefaultPreemption",
                   &EffectivePlugin::name);
}

// Profiles that are to be placed by one engine.
class PluginTeller {
 public:
  PluginTeller(const SchedulerConfiguration& configuration, const FeatureGates& gates)
      : usual_(Expand(Profile{}, gates)) {
    for (const Profile& profile : configuration.profiles)
      profiles_.push_back(Expand(profile, gates));
    without_preemption_ = static_cast<size_t>(std::ranges::count_if(profiles_, DisablesPreemption));
  }

  void TellProfile(size_t index, Teller tell) const {
    const EffectiveProfile& profile = profiles_[index];
    for (const Absent& absent : profile.absent) TellAbsent(absent, tell);
    for (const Point point : AllPoints()) {
      for (const EffectivePlugin& plugin : profile.AtPoint(point)) TellPlugin(point, plugin, tell);
    }
    for (const Point point : {Point::kFilter, Point::kPreFilter}) {
      if (SameOrder(profile.AtPoint(point), usual_.AtPoint(point))) continue;
      tell.Add(fmt::format("plugins.{}", NameOf(point)), "another order", kWithoutEffect,
               "a node that several refuse is told of in the default order");
    }
  }

 private:
  void TellAbsent(const Absent& absent, Teller& tell) const {
    const std::string value = fmt::format("no {} at {}", absent.name, NameOf(absent.point));
    if (absent.point == Point::kPlacementScore || absent.point == Point::kPlacementGenerate) {
      tell.Add(absent.field, value, kWithoutEffect, "no placements of groups are scored");
      return;
    }
    if (absent.name == "DynamicResources") {
      tell.Add(absent.field, value, kWithoutEffect,
               "pods with resource claims are not placed, and told so");
      return;
    }
    if (absent.name == "DefaultPreemption") {
      if (without_preemption_ == profiles_.size()) {
        tell.Add(absent.field, value, kHonoured);
      } else {
        tell.Add(absent.field, value, kRefused, "either all profiles evict, or none");
      }
      return;
    }
    tell.Add(absent.field, value, kRefused, "each default plugin acts, always");
  }
  void TellPlugin(Point point, const EffectivePlugin& plugin, Teller& tell) const {
    const std::vector<EffectivePlugin>& usual = usual_.AtPoint(point);
    const auto same = std::ranges::find(usual, plugin.name, &EffectivePlugin::name);
    const std::string field = fmt::format("plugins.{}", NameOf(point));
    if (same == usual.end()) {
      tell.Add(field, plugin.name, kRefused, "the plugin is not built");
    } else if (plugin.weight != same->weight) {
      tell.Add(field, fmt::format("{} of weight {}", plugin.name, plugin.weight), kRefused,
               fmt::format("only its default weight is built: {}", same->weight));
    }
  }
  static bool SameOrder(const std::vector<EffectivePlugin>& one,
                        const std::vector<EffectivePlugin>& other) {
    return one.size() != other.size() ||
           std::ranges::equal(one, other, {}, &EffectivePlugin::name, &EffectivePlugin::name);
  }

  EffectiveProfile usual_;
  std::vector<EffectiveProfile> profiles_;
  size_t without_preemption_ = 0;
};

// Empty: switching it decides nothing in berth.
std::string_view WhyNotSwitched(std::string_view gate, bool on) {
  constexpr std::string_view kGroups = "Kubernetes' own groups of pods are not placed together";
  if (on) {
    for (const std::string_view group :
         {"GangScheduling", "GenericWorkload", "TopologyAwareWorkloadScheduling",
          "WorkloadAwarePreemption"}) {
      if (gate == group) return kGroups;
    }
    if (gate == "StorageCapacityScoring") return "nodes are not scored by storage capacity";
    if (gate == "TaintTolerationComparisonOperators") return "tolerations compare no numbers";
    return "";
  }
  if (gate == "NodeDeclaredFeatures") return "what nodes declare is looked at, always";
  if (gate == "MatchLabelKeysInPodTopologySpread") return "matchLabelKeys count, always";
  return "";
}

void TellGates(const FeatureGates& gates, Teller tell) {
  for (const auto& [name, on] : gates.switched()) {
    const bool usual = FindGate(name)->on == on;
    const std::string_view why = usual ? "" : WhyNotSwitched(name, on);
    const std::string value = on ? "true" : "false";
    if (!why.empty()) {
      tell.Add(name, value, kRefused, why);
    } else {
      tell.Add(name, value, kWithoutEffect,
               usual ? "that is how it stands anyway" : "it decides nothing in berth");
    }
  }
}

void TellProfiles(const SchedulerConfiguration& configuration, const FeatureGates& gates,
                  std::vector<Setting>& out) {
  const PluginTeller plugins(configuration, gates);
  const std::vector<PluginConfig> unsaid =
      DefaultSchedulerConfiguration(gates).profiles.front().plugin_config;
  for (size_t i = 0; i < configuration.profiles.size(); ++i) {
    const Profile& profile = configuration.profiles[i];
    Teller tell(fmt::format("profiles[{}]", i), out);
    tell.Add("schedulerName", *profile.scheduler_name, kHonoured);
    if (profile.percentage_of_nodes_to_score) {
      tell.Add("percentageOfNodesToScore", Shown(*profile.percentage_of_nodes_to_score),
               kWithoutEffect, "all nodes are looked at, always");
    }
    plugins.TellProfile(i, tell);
    for (const PluginConfig& config : profile.plugin_config) {
      if (Contains(unsaid, config)) continue;
      std::visit(
          [&](const auto& args) {
            Tell(args, tell.At(fmt::format("pluginConfig[{}]", config.name)));
          },
          config.args);
    }
  }
}

}  // namespace

std::vector<Setting> Explain(const SchedulerConfiguration& configuration,
                             const FeatureGates& gates) {
  std::vector<Setting> out;
  Teller tell("", out);
  tell.Add("parallelism", Shown(configuration.parallelism), kWithoutEffect,
           "a cycle runs on one thread");
  TellElection(configuration.leader_election, tell.At("leaderElection"));
  TellClient(configuration.client_connection, tell.At("clientConnection"));
  constexpr std::string_view kProfiling = "there is no /debug/pprof";
  tell.Add("enableProfiling", Shown(configuration.enable_profiling), kWithoutEffect, kProfiling);
  tell.Add("enableContentionProfiling", Shown(*configuration.enable_contention_profiling),
           kWithoutEffect, kProfiling);
  tell.Add("percentageOfNodesToScore", Shown(configuration.percentage_of_nodes_to_score),
           kWithoutEffect, "all nodes are looked at, always");
  constexpr std::string_view kBackoff =
      "a pod is tried again when what it waits for changes; after a write that failed, in 1 s to "
      "10 s";
  tell.Add("podInitialBackoffSeconds", Shown(configuration.pod_initial_backoff_seconds),
           kWithoutEffect, kBackoff);
  tell.Add("podMaxBackoffSeconds", Shown(configuration.pod_max_backoff_seconds), kWithoutEffect,
           kBackoff);
  TellProfiles(configuration, gates, out);
  for (size_t i = 0; i < configuration.extenders.size(); ++i) {
    tell.Add(fmt::format("extenders[{}]", i), configuration.extenders[i].url_prefix, kRefused,
             "no extender is asked");
  }
  tell.Add("delayCacheUntilActive", Shown(configuration.delay_cache_until_active), kWithoutEffect,
           "a replica that waits knows the cluster, so that it can go on at once");
  TellGates(gates, tell.At("featureGates"));
  return out;
}

std::string Text(const std::vector<Setting>& settings) {
  std::string out;
  for (const Setting& setting : settings) {
    const std::string_view word = setting.effect == kHonoured        ? "honoured"
                                  : setting.effect == kWithoutEffect ? "without effect"
                                                                     : "not supported";
    out += fmt::format("{:<15} {}: {}", word, setting.field, setting.value);
    if (!setting.why.empty()) out += fmt::format("  ({})", setting.why);
    out += '\n';
  }
  return out;
}

std::vector<std::string> Refusals(const std::vector<Setting>& settings) {
  std::vector<std::string> out;
  for (const Setting& setting : settings) {
    if (setting.effect != kRefused) continue;
    out.push_back(
        fmt::format("{}: {}: not supported: {}", setting.field, setting.value, setting.why));
  }
  return out;
}

bool Preempts(const SchedulerConfiguration& configuration, const FeatureGates& gates) {
  return !DisablesPreemption(Expand(configuration.profiles.front(), gates));
}

}  // namespace berth::config
