#include "config/complete.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "config/contains.h"
#include "config/profile.h"

namespace berth::config {
namespace {

void CompleteResources(std::vector<ResourceSpec>& resources) {
  if (resources.empty()) resources = {{.name = "cpu"}, {.name = "memory"}};
  for (ResourceSpec& resource : resources) {
    if (resource.weight == 0) resource.weight = 1;
  }
}

void CompleteArgs(NodeResourcesBalancedAllocationArgs& args, const FeatureGates& /*gates*/) {
  CompleteResources(args.resources);
}

void CompleteArgs(NodeResourcesFitArgs& args, const FeatureGates& /*gates*/) {
  if (!args.scoring_strategy) args.scoring_strategy = {.type = "LeastAllocated"};
  CompleteResources(args.scoring_strategy->resources);
}

void CompleteArgs(PodTopologySpreadArgs& args, const FeatureGates& /*gates*/) {
  if (args.defaulting_type.empty()) args.defaulting_type = "System";
}

void CompleteArgs(VolumeBindingArgs& args, const FeatureGates& gates) {
  if (!gates.on("StorageCapacityScoring") || (args.shape && !args.shape->empty())) return;
  args.shape = {{.utilization = 0, .score = 10}, {.utilization = 100, .score = 0}};
}

void CompleteArgs(DynamicResourcesArgs& args, const FeatureGates& gates) {
  if (!args.filter_timeout && gates.on("DRASchedulerFilterTimeout"))
    args.filter_timeout = Duration::Seconds(10);
  if (!args.binding_timeout && gates.on("DRADeviceBindingConditions") &&
      gates.on("DRAResourceClaimDeviceStatus")) {
    args.binding_timeout = Duration::Minutes(10);
  }
}

// Those whose defaults are their members'.
template <class T>
void CompleteArgs(T& /*args*/, const FeatureGates& /*gates*/) {}

// Arguments of the plugin, if it has any.
PluginArgs NewArgs(std::string_view plugin) {
  if (plugin == "DefaultPreemption") return DefaultPreemptionArgs{};
  if (plugin == "DynamicResources") return DynamicResourcesArgs{};
  if (plugin == "InterPodAffinity") return InterPodAffinityArgs{};
  if (plugin == "NodeAffinity") return NodeAffinityArgs{};
  if (plugin == "NodeResourcesBalancedAllocation") return NodeResourcesBalancedAllocationArgs{};
  if (plugin == "NodeResourcesFit") return NodeResourcesFitArgs{};
  if (plugin == "PodTopologySpread") return PodTopologySpreadArgs{};
  if (plugin == "VolumeBinding") return VolumeBindingArgs{};
  return std::monostate();
}

void CompleteProfile(Profile& profile, const FeatureGates& gates) {
  std::set<std::string> needed;
  for (const Plugin& plugin : MergedMultiPoint(profile.plugins, gates).enabled)
    needed.insert(plugin.name);
  for (const PluginSet& set : profile.plugins.at) {
    for (const Plugin& plugin : set.enabled) needed.insert(plugin.name);
  }
  for (const std::string& name : needed) {
    if (Contains(profile.plugin_config, name, &PluginConfig::name)) continue;
    PluginConfig made = {.name = name, .args = NewArgs(name)};
    if (!std::holds_alternative<std::monostate>(made.args))
      profile.plugin_config.push_back(std::move(made));
  }
  for (PluginConfig& config : profile.plugin_config)
    std::visit([&](auto& args) { CompleteArgs(args, gates); }, config.args);
}

// A time of zero is none.
void CompleteTime(Duration& time, Duration otherwise) {
  if (time == Duration{}) time = otherwise;
}

void CompleteText(std::string& text, std::string_view otherwise) {
  if (text.empty()) text = otherwise;
}

}  // namespace

void Complete(SchedulerConfiguration& configuration, const FeatureGates& gates) {
  if (configuration.profiles.empty()) configuration.profiles.emplace_back();
  if (configuration.profiles.size() == 1 && !configuration.profiles[0].scheduler_name)
    configuration.profiles[0].scheduler_name = "default-scheduler";
  for (Profile& profile : configuration.profiles) CompleteProfile(profile, gates);
  const LeaderElection otherwise;
  LeaderElection& election = configuration.leader_election;
  CompleteTime(election.lease_duration, otherwise.lease_duration);
  CompleteTime(election.renew_deadline, otherwise.renew_deadline);
  CompleteTime(election.retry_period, otherwise.retry_period);
  CompleteText(election.resource_lock, otherwise.resource_lock);
  CompleteText(election.resource_name, otherwise.resource_name);
  CompleteText(election.resource_namespace, otherwise.resource_namespace);
  const ClientConnection unsaid;
  ClientConnection& client = configuration.client_connection;
  CompleteText(client.content_type, unsaid.content_type);
  if (client.qps == 0) client.qps = unsaid.qps;
  if (client.burst == 0) client.burst = unsaid.burst;
  if (!configuration.enable_contention_profiling)
    configuration.enable_contention_profiling = configuration.enable_profiling;
}

SchedulerConfiguration DefaultSchedulerConfiguration(const FeatureGates& gates) {
  SchedulerConfiguration out;
  Complete(out, gates);
  return out;
}

}  // namespace berth::config
