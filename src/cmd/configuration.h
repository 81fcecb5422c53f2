#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/berth_configuration.h"
#include "config/scheduler_configuration.h"
#include "control/scheduler.h"

namespace berth::cmd {

// What the file of --config says: a KubeSchedulerConfiguration (config/scheduler_configuration.h),
// a BerthConfiguration (config/berth_configuration.h), or one of each.
struct Configuration {
  // Whether workloads get quota only together with places on nodes for all their pods; else as
  // Kueue does, quota alone.
  bool joint_placement = true;
  // Whether pods are placed as kube-scheduler does where berth does better by intent
  // (docs/DEVIATIONS.md).
  bool compat = false;
  // For how long the pods of an admitted workload may not be ready.
  control::PodsReadyRules pods_ready = {};
  // The documents of the file.
  std::optional<config::SchedulerConfiguration> scheduler = {};
  std::optional<config::BerthConfiguration> berth = {};
  config::FeatureGates gates = {};
  bool operator==(const Configuration&) const = default;
};

// The configuration in the file, YAML or JSON; an empty path: what holds without one. What each
// document is its kind decides. All problems are told, a line each, with line and field.
// `gate_values`: of --feature-gates.
[[nodiscard]] Result<Configuration> ReadConfiguration(
    const std::string& path, const std::vector<std::string>& gate_values = {});

// The same of a file's text. Errors name it by `path`.
[[nodiscard]] Result<Configuration> ParseConfiguration(const std::string& text,
                                                       const std::string& path,
                                                       const std::vector<std::string>& gate_values);

// What berth doesn't do of it: it can't run by it then. An error with a line for each.
[[nodiscard]] Status CheckSupported(const std::string& path, const Configuration& configuration);

// What it says to a scheduler. REQUIRES: CheckSupported.
void Put(const Configuration& configuration, control::SchedulerOptions& options);

// What /configz says: the KubeSchedulerConfiguration that the scheduler runs by, with defaults, as
// JSON. Without a file of that kind there is a default profile for each name. `election` and
// `kubeconfig` are as the command line has them, which goes before the file.
[[nodiscard]] std::string ConfigzText(const Configuration& configuration,
                                      const std::vector<std::string>& scheduler_names,
                                      const config::LeaderElection& election,
                                      const std::string& kubeconfig);

// What becomes of each setting of the file, which plugins act where, and whether berth can run by
// it: for people. `supported`: whether it can. `refused`: why it can't although each setting is
// supported; empty: it can.
struct Explanation {
  std::string text;
  bool supported = false;
};
[[nodiscard]] Explanation ExplainConfiguration(const std::string& path,
                                               const std::vector<std::string>& gate_values,
                                               const std::string& refused = {});

}  // namespace berth::cmd
