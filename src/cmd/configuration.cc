#include "cmd/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cmd/profiles.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "config/effects.h"
#include "config/profile.h"
#include "net/certificates.h"

namespace berth::cmd {
namespace {

std::unexpected<Error> FailAll(std::string_view path, const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", path, problem);
  return Fail(ErrorCode::kInvalid, std::move(text));
}

control::PodsReadyRules RulesOf(const config::WaitForPodsReady& said) {
  const config::RequeuingStrategy& requeuing = said.requeuing_strategy;
  control::PodsReadyRules out{
      .timeout = said.timeout,
      .recovery_timeout = said.recovery_timeout.value_or(said.timeout),
      .requeues_by_eviction = requeuing.timestamp == "Eviction",
      .backoff_base = Duration::Seconds(requeuing.backoff_base_seconds),
      .backoff_most = Duration::Seconds(requeuing.backoff_max_seconds),
  };
  if (requeuing.backoff_limit_count) out.backoffs_max = *requeuing.backoff_limit_count;
  return out;
}

void Take(const config::BerthConfiguration& said, Configuration& out) {
  out.compat = said.compat;
  out.joint_placement = said.placement.value_or("joint") == "joint";
  if (said.wait_for_pods_ready) out.pods_ready = RulesOf(*said.wait_for_pods_ready);
}

// Longer ones are as good as for ever, and their sums with a time would overflow.
constexpr int64_t kBackoffSecondsMax = int64_t{10} * 365 * 24 * 60 * 60;

model::BackoffLimits BackoffOf(const config::SchedulerConfiguration& said) {
  const auto seconds = [](int64_t count) {
    return Duration::Seconds(std::min(count, kBackoffSecondsMax));
  };
  return {.initial = seconds(said.pod_initial_backoff_seconds),
          .max = seconds(said.pod_max_backoff_seconds)};
}

}  // namespace

void Put(const Configuration& configuration, control::SchedulerOptions& options) {
  options.engine.joint_placement = configuration.joint_placement;
  options.engine.compat = configuration.compat;
  options.quota_options.workloads.pods_ready = configuration.pods_ready;
  options.quota_options.taking.keeps_turn = !configuration.pods_ready.requeues_by_eviction;
  if (!configuration.scheduler) return;
  options.scheduler_names.clear();
  for (const config::Profile& profile : configuration.scheduler->profiles)
    options.scheduler_names.push_back(*profile.scheduler_name);
  Profiles profiles = ProfilesOf(*configuration.scheduler, configuration.gates);
  options.engine.backoff = BackoffOf(*configuration.scheduler);
  options.engine.preemption = profiles.preempt;
  options.engine.profiles = std::move(profiles.engine);
  options.pod_profiles = std::move(profiles.pods);
  options.bind_within = std::move(profiles.bind_within);
}

Result<Configuration> ReadConfiguration(const std::string& path,
                                        const std::vector<std::string>& gate_values) {
  const Result<std::string> text =
      path.empty() ? Result<std::string>() : net::ReadFile(path, config::kConfigurationBytesMax);
  if (!text) return std::unexpected(text.error());
  return ParseConfiguration(*text, path, gate_values);
}

Result<Configuration> ParseConfiguration(const std::string& text, const std::string& path,
                                         const std::vector<std::string>& gate_values) {
  Configuration out;
  auto gates = config::FeatureGates::Parse(gate_values);
  if (!gates) return FailAll("--feature-gates", gates.error());
  out.gates = *std::move(gates);
  if (path.empty()) return out;
  auto read = config::ReadConfigurationFile(text, out.gates);
  if (!read) return FailAll(path, read.error());
  out.scheduler = std::move(read->scheduler);
  if (read->berth) Take(*read->berth, out);
  out.berth = std::move(read->berth);
  return out;
}

Status CheckSupported(const std::string& path, const Configuration& configuration) {
  // Gates are asked for without a file of kube-scheduler's, too.
  const config::SchedulerConfiguration completed =
      configuration.scheduler.value_or(config::DefaultSchedulerConfiguration(configuration.gates));
  const std::vector<std::string> refusals =
      config::Refusals(config::Explain(completed, configuration.gates));
  if (refusals.empty()) return {};
  return FailAll(path.empty() ? "--feature-gates" : path, refusals);
}

std::string ConfigzText(const Configuration& configuration,
                        const std::vector<std::string>& scheduler_names,
                        const config::LeaderElection& election, const std::string& kubeconfig) {
  config::SchedulerConfiguration completed =
      configuration.scheduler.value_or(config::DefaultSchedulerConfiguration(configuration.gates));
  completed.leader_election = election;
  completed.client_connection.kubeconfig = kubeconfig;
  // Whoever may read it must not come as berth.
  for (config::Extender& extender : completed.extenders) {
    if (extender.tls_config) extender.tls_config->key_data.clear();
  }
  if (!configuration.scheduler) {
    const config::Profile profile = completed.profiles.front();
    completed.profiles.assign(scheduler_names.size(), profile);
    for (size_t i = 0; i < scheduler_names.size(); ++i)
      completed.profiles[i].scheduler_name = scheduler_names[i];
  }
  const Result<std::vector<api::Json>> documents =
      codec::ParseYaml(config::PrintSchedulerConfiguration(completed, configuration.gates));
  CHECK(documents.has_value());  // It was printed here.
  return codec::PrintJson(documents->front());
}

Explanation ExplainConfiguration(const std::string& path,
                                 const std::vector<std::string>& gate_values,
                                 const std::string& refused) {
  const Result<Configuration> read = ReadConfiguration(path, gate_values);
  if (!read) return {.text = fmt::format("{}\n", read.error().message)};
  std::string text;
  if (read->berth) text += config::Text(config::Explain(*read->berth));
  const std::vector<config::Setting> settings = config::Explain(
      read->scheduler.value_or(config::DefaultSchedulerConfiguration(read->gates)), read->gates);
  const std::vector<std::string> refusals = config::Refusals(settings);
  if (read->scheduler) {
    text += config::Text(settings);
    for (const config::Profile& profile : read->scheduler->profiles) {
      text += fmt::format("\nplugins of {}\n{}", *profile.scheduler_name,
                          config::Text(config::Expand(profile, read->gates)));
    }
  } else {
    for (const std::string& refusal : refusals) text += fmt::format("{}\n", refusal);
  }
  const std::string why =
      refusals.empty() ? refused : fmt::format("{} not supported", refusals.size());
  text += why.empty() ? fmt::format("\n{}: berth can run by it\n", path)
                      : fmt::format("\n{}: berth does not run by it: {}\n", path, why);
  return {.text = std::move(text), .supported = why.empty()};
}

}  // namespace berth::cmd
