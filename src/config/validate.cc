#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/names.h"
#include "config/complete.h"
#include "config/print.h"
#include "config/profile.h"

namespace berth::config {
namespace {

using api::FieldErrors;

void CheckElection(const LeaderElection& of, FieldErrors& errors) {
  if (!of.leader_elect) return;
  const auto wrong = [&](std::string_view field, std::string_view value, std::string detail) {
    errors.push_back(
        api::InvalidField(fmt::format("leaderElection.{}", field), value, std::move(detail)));
  };
  const auto above_zero = [&](std::string_view field, Duration time) {
    if (time <= Duration{}) wrong(field, GoText(time), "must be greater than zero");
  };
  above_zero("leaseDuration", of.lease_duration);
  above_zero("renewDeadline", of.renew_deadline);
  above_zero("retryPeriod", of.retry_period);
  if (of.lease_duration <= of.renew_deadline) {
    wrong(
        "leaseDuration", GoText(of.lease_duration),
        fmt::format("must be greater than renewDeadline, which is {}", GoText(of.renew_deadline)));
  }
  // client-go's elector asks for this when it starts: 1.2 is the jitter of its retries.
  if (of.renew_deadline * 5 <= of.retry_period * 6) {
    wrong("renewDeadline", GoText(of.renew_deadline),
          fmt::format("must be greater than 1.2 times retryPeriod, which is {}",
                      GoText(of.retry_period)));
  }
  if (of.resource_lock != "leases")
    wrong("resourceLock", of.resource_lock, "resourceLock value must be \"leases\"");
}

void CheckPercentage(const std::string& field, int32_t value, FieldErrors& errors) {
  if (value < 0 || value > 100)
    errors.push_back(api::InvalidField(field, value, "not in valid range [0-100]"));
}

void CheckPluginConfig(const Profile& profile, const std::string& path, const FeatureGates& gates,
                       FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < profile.plugin_config.size(); ++i) {
    const PluginConfig& config = profile.plugin_config[i];
    const std::string at = fmt::format("{}.pluginConfig[{}]", path, i);
    if (!seen.insert(config.name).second) errors.push_back(api::DuplicateField(at, config.name));
    if (const std::string_view instead = InsteadOf(config.name); !instead.empty()) {
      errors.push_back(api::InvalidField(
          at, config.name, fmt::format("there is no such plugin any more: take {}", instead)));
    }
    ValidateArgs(config.args, fmt::format("{}.args", at), gates, errors);
  }
}

void CheckProfile(const Profile& profile, const std::string& path, const FeatureGates& gates,
                  FieldErrors& errors) {
  if (profile.scheduler_name.value_or("").empty()) {
    errors.push_back(api::RequiredField(fmt::format("{}.schedulerName", path),
                                        "it is empty, and each profile has its own"));
  }
  if (profile.percentage_of_nodes_to_score) {
    CheckPercentage(fmt::format("{}.percentageOfNodesToScore", path),
                    *profile.percentage_of_nodes_to_score, errors);
  }
  CheckPluginConfig(profile, path, gates, errors);
  static_cast<void>(Expand(profile, gates, path, errors));
}

// There is one queue, so all profiles sort it alike.
void CheckQueueSort(const std::vector<Profile>& profiles, FieldErrors& errors) {
  constexpr auto kSort = static_cast<size_t>(Point::kQueueSort);
  const PluginSet& first = profiles.front().plugins.at[kSort];
  for (size_t i = 1; i < profiles.size(); ++i) {
    if (profiles[i].plugins.at[kSort] == first) continue;
    errors.push_back(api::ForbiddenField(fmt::format("profiles[{}].plugins.queueSort", i),
                                         "must be the same for all profiles"));
  }
  if (first.enabled.empty()) return;
  const std::string& sorter = first.enabled.front().name;
  const auto args_of = [&](const Profile& profile) -> const PluginArgs* {
    const auto found = std::ranges::find(profile.plugin_config, sorter, &PluginConfig::name);
    return found == profile.plugin_config.end() ? nullptr : &found->args;
  };
  const PluginArgs* common = args_of(profiles.front());
  for (size_t i = 1; i < profiles.size(); ++i) {
    const PluginArgs* own = args_of(profiles[i]);
    if (own == nullptr || (common != nullptr && *own == *common)) continue;
    errors.push_back(api::ForbiddenField(fmt::format("profiles[{}].pluginConfig", i),
                                         "queueSort must be the same for all profiles"));
  }
}

void CheckProfiles(const std::vector<Profile>& profiles, const FeatureGates& gates,
                   FieldErrors& errors) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < profiles.size(); ++i) {
    const std::string path = fmt::format("profiles[{}]", i);
    CheckProfile(profiles[i], path, gates, errors);
    const std::optional<std::string>& name = profiles[i].scheduler_name;
    if (name && !name->empty() && !names.insert(*name).second)
      errors.push_back(api::DuplicateField(fmt::format("{}.schedulerName", path), *name));
  }
  CheckQueueSort(profiles, errors);
}

// A resource that is nobody's but the extender's: with a domain, and not one of Kubernetes' own.
bool IsExtendedResource(std::string_view name) {
  if (!name.contains('/') || name.contains("kubernetes.io/") || name.starts_with("requests."))
    return false;
  return api::IsQualifiedName(fmt::format("requests.{}", name));
}

void CheckManaged(const Extender& extender, const std::string& path,
                  std::set<std::string_view>& managed, FieldErrors& errors) {
  for (size_t i = 0; i < extender.managed_resources.size(); ++i) {
    const std::string& name = extender.managed_resources[i].name;
    const std::string field = fmt::format("{}.managedResources[{}].name", path, i);
    const api::Messages messages = api::CheckQualifiedName(name);
    for (const std::string& message : messages)
      errors.push_back(api::InvalidField(field, name, message));
    if (messages.empty() && !IsExtendedResource(name))
      errors.push_back(api::InvalidField(field, name, "is an invalid extended resource name"));
    if (!managed.insert(name).second)
      errors.push_back(api::InvalidField(field, name, "duplicate extender managed resource name"));
  }
}

void CheckExtenders(const std::vector<Extender>& extenders, FieldErrors& errors) {
  int64_t binders = 0;
  std::set<std::string_view> managed;
  for (size_t i = 0; i < extenders.size(); ++i) {
    const Extender& extender = extenders[i];
    const std::string path = fmt::format("extenders[{}]", i);
    if (!extender.prioritize_verb.empty() && extender.weight <= 0) {
      errors.push_back(api::InvalidField(fmt::format("{}.weight", path), extender.weight,
                                         "must have a positive weight applied to it"));
    }
    if (!extender.bind_verb.empty()) ++binders;
    CheckManaged(extender, path, managed, errors);
  }
  if (binders > 1) {
    errors.push_back(api::InvalidField("extenders",
                                       fmt::format("found {} extenders implementing bind", binders),
                                       "only one extender can implement bind"));
  }
}

}  // namespace

FieldErrors Validate(const SchedulerConfiguration& configuration, const FeatureGates& gates) {
  FieldErrors errors;
  if (configuration.client_connection.burst < 0) {
    errors.push_back(api::InvalidField(
        "clientConnection.burst", configuration.client_connection.burst, "must be non-negative"));
  }
  CheckElection(configuration.leader_election, errors);
  if (configuration.parallelism <= 0) {
    errors.push_back(api::InvalidField("parallelism", configuration.parallelism,
                                       "should be an integer value greater than zero"));
  }
  CheckProfiles(configuration.profiles, gates, errors);
  CheckPercentage("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score, errors);
  const int64_t initial = configuration.pod_initial_backoff_seconds;
  if (initial <= 0) {
    errors.push_back(
        api::InvalidField("podInitialBackoffSeconds", initial, "must be greater than 0"));
  }
  if (configuration.pod_max_backoff_seconds < initial) {
    errors.push_back(
        api::InvalidField("podMaxBackoffSeconds", configuration.pod_max_backoff_seconds,
                          "must be greater than or equal to podInitialBackoffSeconds"));
  }
  CheckExtenders(configuration.extenders, errors);
  return errors;
}

}  // namespace berth::config
