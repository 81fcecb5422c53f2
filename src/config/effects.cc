#include "config/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/base64.h"
#include "codec/json.h"
#include "config/contains.h"
#include "config/print.h"
#include "config/profile.h"

namespace berth::config {
namespace {

using enum Effect;

constexpr std::string_view kOfQuota = "of quota: berth up, or berth run --quota";

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
  tell.Add("hardPodAffinityWeight", Shown(args.hard_pod_affinity_weight), kHonoured);
  tell.Add("ignorePreferredTermsOfExistingPods",
           Shown(args.ignore_preferred_terms_of_existing_pods), kHonoured);
}

void Tell(const NodeAffinityArgs& args, Teller tell) {
  if (!args.added_affinity.is_null())
    tell.Add("addedAffinity", Shown(args.added_affinity), kHonoured);
}

void Tell(const NodeResourcesBalancedAllocationArgs& args, Teller tell) {
  tell.Add("resources", Shown(args.resources), kHonoured);
}

void Tell(const NodeResourcesFitArgs& args, Teller tell) {
  if (!args.ignored_resources.empty())
    tell.Add("ignoredResources", Shown(args.ignored_resources), kHonoured);
  if (!args.ignored_resource_groups.empty())
    tell.Add("ignoredResourceGroups", Shown(args.ignored_resource_groups), kHonoured);
  Teller strategy = tell.At("scoringStrategy");
  const ScoringStrategy& of = *args.scoring_strategy;
  strategy.Add("type", of.type, kHonoured);
  strategy.Add("resources", Shown(of.resources), kHonoured);
  if (of.requested_to_capacity_ratio) {
    strategy.Add("requestedToCapacityRatio.shape", Shown(of.requested_to_capacity_ratio->shape),
                 kHonoured);
  }
}

void Tell(const PodTopologySpreadArgs& args, Teller tell) {
  if (!args.default_constraints.empty()) {
    tell.Only("defaultConstraints", Shown(args.default_constraints),
              args.default_constraints.size() <= kDefaultConstraintsMax,
              fmt::format("a pod has at most {}", kDefaultConstraintsMax));
  }
  tell.Add("defaultingType", args.defaulting_type, kHonoured);
}

void Tell(const VolumeBindingArgs& args, Teller tell) {
  tell.Add("bindTimeoutSeconds", Shown(args.bind_timeout_seconds), kHonoured);
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
  const std::string window = fmt::format(
      "not the rate but the number of calls under way is bounded: {}, and {} of those that hang",
      kCallsInFlightMax, kCallsApartMax);
  tell.Add("qps", Shown(of.qps), kWithoutEffect, window);
  tell.Add("burst", Shown(of.burst), kWithoutEffect, window);
}

struct Told {
  Effect effect = kHonoured;
  std::string_view why = "";
};

constexpr std::string_view kNoClaims = "pods with resource claims are not placed, and told so";
constexpr std::string_view kNoStorageScores = "nodes are not scored by storage capacity";

bool ActsAt(const EffectiveProfile& profile, Point point, std::string_view plugin) {
  return Contains(profile.AtPoint(point), plugin, &EffectivePlugin::name);
}

// Of a plugin that refuses nodes, and doesn't at one of preFilter and filter.
Told WithoutFilter(const EffectiveProfile& profile, const Absent& absent) {
  constexpr std::array<std::string_view, 4> kRefuseBefore = {"NodeAffinity", "VolumeRestrictions",
                                                             "VolumeBinding", "VolumeZone"};
  if (absent.name == "NodeName")
    return {kWithoutEffect, "a pod that names its node is not scheduled"};
  const bool before = ActsAt(profile, Point::kPreFilter, absent.name);
  const bool filters = ActsAt(profile, Point::kFilter, absent.name);
  if (filters) return {kRefused, "it can't filter without its preFilter: disable it there, too"};
  if (before && Contains(kRefuseBefore, absent.name))
    return {kRefused, "it refuses nodes at preFilter, too: disable it there, or at multiPoint"};
  if (absent.name == "VolumeBinding") {
    for (const Point point : {Point::kReserve, Point::kPreBind}) {
      if (ActsAt(profile, point, absent.name))
        return {kRefused, "what it reserves it finds as it filters: disable reserve, preBind, too"};
    }
    return {kHonoured, "no volumes are chosen for claims, or waited for"};
  }
  return {};
}

Told WithoutScore(const EffectiveProfile& profile, const Absent& absent) {
  if (absent.name == "VolumeBinding") return {kWithoutEffect, kNoStorageScores};
  if (absent.point == Point::kScore) return {};
  if (ActsAt(profile, Point::kScore, absent.name))
    return {kRefused, "it can't score without its preScore: disable it there, too"};
  return {kWithoutEffect, "it doesn't score"};
}

// What it means that a default plugin doesn't act somewhere.
Told Without(const EffectiveProfile& profile, const Absent& absent) {
  if (absent.name == "DynamicResources") return {kWithoutEffect, kNoClaims};
  switch (absent.point) {
    case Point::kPlacementScore:
    case Point::kPlacementGenerate:
      return {kWithoutEffect, "no placements of groups are scored"};
    case Point::kPreFilter:
    case Point::kFilter:
      return WithoutFilter(profile, absent);
    case Point::kPreScore:
    case Point::kScore:
      return WithoutScore(profile, absent);
    case Point::kPostFilter:
      return {};
    case Point::kReserve:
    case Point::kPreBind:
      if (absent.name == "VolumeBinding" && !ActsAt(profile, Point::kFilter, absent.name))
        return {};
      break;
    case Point::kPreEnqueue:
      if (absent.name == "DefaultPreemption")
        return {kWithoutEffect, "it decides nothing before a pod is tried"};
      break;
    default:
      break;
  }
  return {kRefused, "each default plugin acts there, always"};
}

// What is said of plugins, by what they do where by default.
class PluginTeller {
 public:
  explicit PluginTeller(const FeatureGates& gates) : usual_(Expand(Profile{}, gates)) {}

  void TellProfile(const EffectiveProfile& profile, Teller tell) const {
    for (const Absent& absent : profile.absent) {
      const Told told = Without(profile, absent);
      tell.Add(absent.field, fmt::format("no {} at {}", absent.name, NameOf(absent.point)),
               told.effect, told.why);
    }
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
  void TellPlugin(Point point, const EffectivePlugin& plugin, Teller& tell) const {
    const std::vector<EffectivePlugin>& usual = usual_.AtPoint(point);
    const auto same = std::ranges::find(usual, plugin.name, &EffectivePlugin::name);
    const std::string field = fmt::format("plugins.{}", NameOf(point));
    if (same == usual.end())
      return tell.Add(field, plugin.name, kRefused, "the plugin is not built");
    if (plugin.weight == same->weight) return;
    Told told;
    if (point == Point::kPlacementScore)
      told = {kWithoutEffect, "no placements of groups are scored"};
    if (plugin.name == "VolumeBinding") told = {kWithoutEffect, kNoStorageScores};
    if (plugin.name == "DynamicResources") told = {kWithoutEffect, kNoClaims};
    tell.Add(field, fmt::format("{} of weight {}", plugin.name, plugin.weight), told.effect,
             told.why);
  }
  static bool SameOrder(const std::vector<EffectivePlugin>& one,
                        const std::vector<EffectivePlugin>& other) {
    return one.size() != other.size() ||
           std::ranges::equal(one, other, {}, &EffectivePlugin::name, &EffectivePlugin::name);
  }

  EffectiveProfile usual_;
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
    if (gate == "StorageCapacityScoring") return kNoStorageScores;
    if (gate == "TaintTolerationComparisonOperators") return "tolerations compare no numbers";
    if (gate == "VolumeLimitScaling") return "nodes that lack a driver are not refused for it";
    return "";
  }
  if (gate == "NodeDeclaredFeatures") return "what nodes declare is looked at, always";
  if (gate == "MatchLabelKeysInPodTopologySpread") return "matchLabelKeys count, always";
  if (gate == "PodLevelResources" || gate == "InPlacePodLevelResourcesVerticalScaling")
    return "resources of whole pods count, always";
  return "";
}

// What is there to say of a gate that is without effect.
std::string_view WhyWithoutEffect(std::string_view gate, bool usual) {
  if (gate == "ComponentFlagz") return "there is no /flagz";
  if (gate == "ComponentStatusz") return "there is no /statusz";
  return usual ? "that is how it stands anyway" : "it decides nothing in berth";
}

void TellGates(const FeatureGates& gates, Teller tell) {
  for (const auto& [name, on] : gates.switched()) {
    const bool usual = FindGate(name)->on == on;
    const std::string_view why = usual ? "" : WhyNotSwitched(name, on);
    const std::string value = on ? "true" : "false";
    if (!why.empty()) {
      tell.Add(name, value, kRefused, why);
    } else {
      tell.Add(name, value, kWithoutEffect, WhyWithoutEffect(name, usual));
    }
  }
}

// The resources that profiles have scored.
class ScoredResources {
 public:
  // Adds those of the arguments; whether there are too many now.
  bool Exceed(const PluginArgs& args) {
    if (const auto* fit = std::get_if<NodeResourcesFitArgs>(&args)) {
      Add(fit->scoring_strategy->resources);
    } else if (const auto* balanced = std::get_if<NodeResourcesBalancedAllocationArgs>(&args)) {
      Add(balanced->resources);
    } else {
      return false;
    }
    return names_.size() > kScoredResourcesMax;
  }

 private:
  void Add(const std::vector<ResourceSpec>& resources) {
    constexpr std::array<std::string_view, 4> kAnyway = {"cpu", "memory", "ephemeral-storage",
                                                         "pods"};
    for (const ResourceSpec& one : resources) {
      if (!Contains(kAnyway, one.name)) names_.insert(one.name);
    }
  }
  std::set<std::string> names_;
};

void TellProfiles(const SchedulerConfiguration& configuration, const FeatureGates& gates,
                  std::vector<Setting>& out) {
  const PluginTeller plugins(gates);
  ScoredResources scored;
  const bool extenders_ignore =
      std::ranges::any_of(configuration.extenders, [](const Extender& extender) {
        return std::ranges::any_of(extender.managed_resources,
                                   &ManagedResource::ignored_by_scheduler);
      });
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
    plugins.TellProfile(Expand(profile, gates), tell);
    for (const PluginConfig& config : profile.plugin_config) {
      if (Contains(unsaid, config)) continue;
      const std::string field = fmt::format("pluginConfig[{}]", config.name);
      PluginArgs told = config.args;
      if (auto* fit = std::get_if<NodeResourcesFitArgs>(&told);
          fit != nullptr && extenders_ignore) {
        if (!fit->ignored_resources.empty()) {
          tell.Add(fmt::format("{}.ignoredResources", field), Shown(fit->ignored_resources),
                   kWithoutEffect,
                   "those that extenders' managedResources ignore take their place");
        }
        fit->ignored_resources.clear();
      }
      std::visit([&](const auto& args) { Tell(args, tell.At(field)); }, told);
      if (scored.Exceed(config.args)) {
        tell.Add(field, "resources", kRefused,
                 fmt::format("all profiles together score at most {}", kScoredResourcesMax));
      }
    }
  }
}

// Whether it is a URL that a request can go to.
bool IsHttpUrl(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    const std::string_view rest = url.substr(scheme.size());
    const std::string_view host = rest.substr(0, rest.find('/'));
    return !host.empty() && rest.find_first_of("?#@ ") == std::string_view::npos;
  }
  return false;
}

// What is wrong with it; empty: nothing.
std::string_view WhyNotTls(const ExtenderTls& tls) {
  const bool has_authority = !tls.ca_file.empty() || !tls.ca_data.empty();
  const bool has_certificate = !tls.cert_file.empty() || !tls.cert_data.empty();
  const bool has_key = !tls.key_file.empty() || !tls.key_data.empty();
  if (tls.insecure && has_authority)
    return "specifying a root certificates file with the insecure flag is not allowed";
  if (has_certificate != has_key) return "a client certificate and its key go together";
  for (const std::string& data : {tls.ca_data, tls.cert_data, tls.key_data}) {
    if (!api::DecodeBase64(data)) return "caData, certData and keyData must be base64";
  }
  return "";
}

void TellExtender(const Extender& of, Teller tell) {
  tell.Only("urlPrefix", of.url_prefix, IsHttpUrl(of.url_prefix),
            "must be http://HOST[:PORT][/PATH], or https://");
  if (!of.filter_verb.empty()) tell.Add("filterVerb", of.filter_verb, kHonoured);
  if (!of.preempt_verb.empty()) {
    tell.Add("preemptVerb", of.preempt_verb, kHonoured,
             "but for members of a group, which are given room together");
  }
  if (!of.prioritize_verb.empty()) {
    tell.Add("prioritizeVerb", of.prioritize_verb, kHonoured);
    tell.Add("weight", Shown(of.weight), kHonoured);
  }
  if (!of.bind_verb.empty()) {
    tell.Add("bindVerb", of.bind_verb, kHonoured,
             "but for pods that berth gives devices, which the binding says");
  }
  tell.Add("enableHTTPS", Shown(of.enable_https), kHonoured,
           of.enable_https && (!of.tls_config ||
                               (of.tls_config->ca_file.empty() && of.tls_config->ca_data.empty()))
               ? "any certificate is taken: no authority is given"
               : "");
  if (of.tls_config) {
    const std::string_view why = WhyNotTls(*of.tls_config);
    ExtenderTls shown = *of.tls_config;
    if (!shown.key_data.empty()) shown.key_data = "(not shown)";
    tell.Only("tlsConfig", Shown(shown), why.empty(), why);
  }
  const bool is_time = of.http_timeout >= Duration{};
  tell.Add("httpTimeout", GoText(of.http_timeout), is_time ? kHonoured : kRefused,
           !is_time                        ? "must not be below 0"
           : of.http_timeout == Duration{} ? "that is 5 s"
                                           : "");
  tell.Add("nodeCacheCapable", Shown(of.node_cache_capable), kHonoured);
  if (!of.managed_resources.empty())
    tell.Add("managedResources", Shown(of.managed_resources), kHonoured);
  tell.Add("ignorable", Shown(of.ignorable), kHonoured);
}

void TellExtenders(const std::vector<Extender>& extenders, Teller tell) {
  for (size_t i = 0; i < extenders.size(); ++i)
    TellExtender(extenders[i], tell.At(fmt::format("extenders[{}]", i)));
  if (extenders.size() > kExtendersMax) {
    tell.Add("extenders", Shown(static_cast<int64_t>(extenders.size())), kRefused,
             fmt::format("there may be {}", kExtendersMax));
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
      "after a write that failed; else a pod is tried again when what it waits for changes, and "
      "others go first until then";
  tell.Add("podInitialBackoffSeconds", Shown(configuration.pod_initial_backoff_seconds), kHonoured,
           kBackoff);
  tell.Add("podMaxBackoffSeconds", Shown(configuration.pod_max_backoff_seconds), kHonoured,
           kBackoff);
  TellProfiles(configuration, gates, out);
  TellExtenders(configuration.extenders, tell);
  tell.Add("delayCacheUntilActive", Shown(configuration.delay_cache_until_active), kWithoutEffect,
           "a replica that waits knows the cluster, so that it can go on at once");
  TellGates(gates, tell.At("featureGates"));
  return out;
}

std::vector<Setting> Explain(const BerthConfiguration& configuration) {
  std::vector<Setting> out;
  Teller tell("", out);
  tell.Add("compat", Shown(configuration.compat), kHonoured);
  tell.Add("placement", Shown(configuration.placement.value_or("joint")), kHonoured, kOfQuota);
  const WaitForPodsReady ready = configuration.wait_for_pods_ready.value_or(WaitForPodsReady{});
  Teller pods_ready = tell.At("waitForPodsReady");
  pods_ready.Add("timeout", Shown(ready.timeout), kHonoured, kOfQuota);
  pods_ready.Add("recoveryTimeout", Shown(ready.recovery_timeout.value_or(ready.timeout)),
                 kHonoured, kOfQuota);
  Teller requeuing = pods_ready.At("requeuingStrategy");
  const RequeuingStrategy& strategy = ready.requeuing_strategy;
  requeuing.Add("timestamp", Shown(strategy.timestamp), kHonoured, kOfQuota);
  requeuing.Add("backoffBaseSeconds", Shown(strategy.backoff_base_seconds), kHonoured, kOfQuota);
  requeuing.Add("backoffMaxSeconds", Shown(strategy.backoff_max_seconds), kHonoured, kOfQuota);
  if (strategy.backoff_limit_count) {
    requeuing.Add("backoffLimitCount", Shown(*strategy.backoff_limit_count), kHonoured, kOfQuota);
  }
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

}  // namespace berth::config
