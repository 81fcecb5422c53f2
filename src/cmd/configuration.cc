#include "cmd/configuration.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "api/duration.h"
#include "base/check.h"
#include "cmd/manifest.h"
#include "cmd/profiles.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "config/effects.h"
#include "config/profile.h"
#include "net/certificates.h"

namespace berth::cmd {
namespace {

constexpr std::string_view kVersion = "config.berth.dev/v1alpha1";
constexpr std::string_view kKind = "BerthConfiguration";

std::unexpected<Error> Wrong(std::string_view field, std::string_view wanted,
                             const api::Json& value) {
  return Fail(ErrorCode::kInvalid,
              fmt::format("{} must be {}, not {}", field, wanted, codec::PrintJson(value)));
}

std::unexpected<Error> Unknown(std::string_view field, std::string_view known) {
  return Fail(ErrorCode::kInvalid, fmt::format("unknown field \"{}\"; there are {}", field, known));
}

// Above 0.
Status ReadTime(std::string_view field, const api::Json& value, Duration& out) {
  const std::string_view text = value.is_string() ? std::string_view(value.get_string()) : "";
  const Result<Duration> read = api::ParseDuration(text);
  if (!read || *read <= Duration{}) return Wrong(field, "a time above 0, as 30m or 1h30m", value);
  out = *read;
  return {};
}

constexpr int64_t kCountMax = std::numeric_limits<int32_t>::max();

Status ReadCount(std::string_view field, int64_t least, const api::Json& value, int64_t& out) {
  if (!value.is_int64() || value.get_int64() < least || value.get_int64() > kCountMax)
    return Wrong(field, fmt::format("an integer from {} to {}", least, kCountMax), value);
  out = value.get_int64();
  return {};
}

Status ReadRequeuing(const api::Json& value, control::PodsReadyRules& out) {
  constexpr std::string_view kField = "waitForPodsReady.requeuingStrategy";
  if (!value.is_object()) return Wrong(kField, "an object", value);
  int64_t base = out.backoff_base.seconds();
  int64_t most = out.backoff_most.seconds();
  for (const auto& member : value.get_object()) {
    const std::string field = fmt::format("{}.{}", kField, std::string_view(member.key()));
    const api::Json& given = member.value();
    Status read;
    if (member.key() == "timestamp") {
      const std::string_view text = given.is_string() ? std::string_view(given.get_string()) : "";
      if (text != "Eviction" && text != "Creation")
        return Wrong(field, "Eviction or Creation", given);
      out.requeues_by_eviction = text == "Eviction";
    } else if (member.key() == "backoffBaseSeconds") {
      read = ReadCount(field, 1, given, base);
    } else if (member.key() == "backoffMaxSeconds") {
      read = ReadCount(field, 1, given, most);
    } else if (member.key() == "backoffLimitCount") {
      read = ReadCount(field, 0, given, out.backoffs_max.emplace());
    } else {
      return Unknown(field, "timestamp, backoffBaseSeconds, backoffMaxSeconds, backoffLimitCount");
    }
    if (!read) return read;
  }
  out.backoff_base = Duration::Seconds(base);
  out.backoff_most = Duration::Seconds(most);
  return {};
}

Status ReadPodsReady(const api::Json& value, control::PodsReadyRules& out) {
  constexpr std::string_view kField = "waitForPodsReady";
  if (!value.is_object()) return Wrong(kField, "an object", value);
  bool recovers = false;
  for (const auto& member : value.get_object()) {
    const std::string field = fmt::format("{}.{}", kField, std::string_view(member.key()));
    Status read;
    if (member.key() == "timeout") {
      read = ReadTime(field, member.value(), out.timeout);
    } else if (member.key() == "recoveryTimeout") {
      recovers = true;
      read = ReadTime(field, member.value(), out.recovery_timeout);
    } else if (member.key() == "requeuingStrategy") {
      read = ReadRequeuing(member.value(), out);
    } else {
      return Unknown(field, "timeout, recoveryTimeout, requeuingStrategy");
    }
    if (!read) return read;
  }
  if (!recovers) out.recovery_timeout = out.timeout;
  return {};
}

Status ReadField(std::string_view key, const api::Json& value, Configuration& out) {
  const auto wrong = [&](std::string_view wanted) { return Wrong(key, wanted, value); };
  const std::string_view text = value.is_string() ? std::string_view(value.get_string()) : "";
  if (key == "apiVersion") {
    if (text != kVersion) return wrong(kVersion);
  } else if (key == "kind") {
    if (text != kKind) return wrong(kKind);
  } else if (key == "placement") {
    if (text != "joint" && text != "separate") return wrong("joint or separate");
    out.joint_placement = text == "joint";
  } else if (key == "compat") {
    if (!value.is_bool()) return wrong("true or false");
    out.compat = value.get_bool();
  } else if (key == "waitForPodsReady") {
    return ReadPodsReady(value, out.pods_ready);
  } else {
    return Unknown(key, "apiVersion, kind, placement, compat, waitForPodsReady");
  }
  return {};
}

// Whether the text says that it is kube-scheduler's. What can't be read says nothing.
bool IsOfScheduler(std::string_view text) {
  const auto parsed = codec::ParseYamlReporting(text);
  if (!parsed || parsed->documents.empty() || !parsed->documents.front().is_object()) return false;
  const api::JsonObject& object = parsed->documents.front().get_object();
  const auto said = [&](std::string_view name) -> std::string_view {
    const api::Json* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : "";
  };
  return said("kind") == config::kSchedulerKind ||
         said("apiVersion").starts_with("kubescheduler.config.k8s.io/");
}

std::unexpected<Error> FailAll(std::string_view path, const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", path, problem);
  return Fail(ErrorCode::kInvalid, std::move(text));
}

Result<Configuration> ReadBerthConfiguration(const std::string& text, const std::string& path,
                                             Configuration out) {
  const auto fail = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, why));
  };
  const Result<api::Json> manifest = ParseManifest(
      text, path,
      fmt::format("KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) or {} ({})", kKind,
                  kVersion));
  if (!manifest) return std::unexpected(manifest.error());
  const api::JsonObject& object = manifest->get_object();
  for (const std::string_view needed : {"apiVersion", "kind"}) {
    if (!object.contains(needed)) return fail(fmt::format("{} is missing", needed));
  }
  for (const auto& member : object) {
    if (const Status good = ReadField(member.key(), member.value(), out); !good)
      return fail(good.error().message);
  }
  return out;
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
  if (!IsOfScheduler(text)) return ReadBerthConfiguration(text, path, std::move(out));
  auto read = config::ReadSchedulerConfiguration(text, out.gates);
  if (!read) return FailAll(path, read.error());
  out.scheduler = *std::move(read);
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
                                 const std::vector<std::string>& gate_values) {
  const Result<Configuration> read = ReadConfiguration(path, gate_values);
  if (!read) return {.text = fmt::format("{}\n", read.error().message)};
  if (!read->scheduler) {
    return {.text = fmt::format("{}: a {}: honoured\n", path, kKind), .supported = true};
  }
  const std::vector<config::Setting> settings = config::Explain(*read->scheduler, read->gates);
  std::string text = config::Text(settings);
  for (const config::Profile& profile : read->scheduler->profiles) {
    text += fmt::format("\nplugins of {}\n{}", *profile.scheduler_name,
                        config::Text(config::Expand(profile, read->gates)));
  }
  const size_t refused = config::Refusals(settings).size();
  if (refused == 0) {
    text += fmt::format("\n{}: berth can run by it\n", path);
  } else {
    text += fmt::format("\n{}: berth does not run by it: {} not supported\n", path, refused);
  }
  return {.text = std::move(text), .supported = refused == 0};
}

}  // namespace berth::cmd
