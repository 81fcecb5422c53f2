#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "config/scheduler_configuration.h"

// What berth is told beside kube-scheduler's configuration.
namespace berth::config {

inline constexpr const char* kBerthVersion = "config.berth.dev/v1alpha1";
inline constexpr const char* kBerthKind = "BerthConfiguration";

// As Kueue's of the same names, and its defaults.
struct RequeuingStrategy {
  std::string timestamp = "Eviction";  // Or Creation.
  int32_t backoff_base_seconds = 60;
  int32_t backoff_max_seconds = 3600;
  std::optional<int32_t> backoff_limit_count = {};  // None: no limit.
  bool operator==(const RequeuingStrategy&) const = default;
};

struct WaitForPodsReady {
  Duration timeout = Duration::Minutes(30);
  std::optional<Duration> recovery_timeout = {};  // That of `timeout`.
  RequeuingStrategy requeuing_strategy = {};
  bool operator==(const WaitForPodsReady&) const = default;
};

//   apiVersion: config.berth.dev/v1alpha1
//   kind: BerthConfiguration
//   compat: false         # or true: as kube-scheduler also where berth does better by intent
//   placement: joint      # or separate
//   waitForPodsReady:     # as Kueue's; what is left out stands at Kueue's defaults, as here
//     timeout: 30m
//     recoveryTimeout: 30m            # that of timeout
//     requeuingStrategy:
//       timestamp: Eviction           # or Creation
//       backoffBaseSeconds: 60
//       backoffMaxSeconds: 3600
//       backoffLimitCount: 3          # none
struct BerthConfiguration {
  bool compat = false;
  // These two are of quota.
  std::optional<std::string> placement = {};  // None: joint.
  std::optional<WaitForPodsReady> wait_for_pods_ready = {};
  bool operator==(const BerthConfiguration&) const = default;
};

// What a configuration's file says: one of kube-scheduler's, one of berth's, or one of each.
struct ConfigurationFile {
  std::optional<SchedulerConfiguration> scheduler = {};
  std::optional<BerthConfiguration> berth = {};
  bool operator==(const ConfigurationFile&) const = default;
};

// Of a file in YAML or JSON, as ReadSchedulerConfiguration does. One of the two is there.
[[nodiscard]] std::expected<ConfigurationFile, Problems> ReadConfigurationFile(
    std::string_view text, const FeatureGates& gates = {});

// As YAML, defaults spelled out.
[[nodiscard]] std::string PrintBerthConfiguration(const BerthConfiguration& configuration);

}  // namespace berth::config
