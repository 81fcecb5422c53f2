#pragma once

#include <string>

#include "base/result.h"
#include "control/scheduler.h"

namespace berth::cmd {

// What a BerthConfiguration says:
//
//   apiVersion: config.berth.dev/v1alpha1
//   kind: BerthConfiguration
//   placement: joint      # or separate
//   waitForPodsReady:     # as Kueue's; what is left out stands at Kueue's defaults, as here
//     timeout: 30m
//     recoveryTimeout: 30m            # that of timeout
//     requeuingStrategy:
//       timestamp: Eviction           # or Creation
//       backoffBaseSeconds: 60
//       backoffMaxSeconds: 3600
//       backoffLimitCount: 3          # none
struct Configuration {
  // Whether workloads get quota only together with places on nodes for all their pods; else as
  // Kueue does, quota alone.
  bool joint_placement = true;
  // For how long the pods of an admitted workload may not be ready.
  control::PodsReadyRules pods_ready = {};
  bool operator==(const Configuration&) const = default;
};

// The configuration in the file, YAML or JSON; an empty path: what holds without one. What is not
// known, or not of its type, is an error that names the field.
[[nodiscard]] Result<Configuration> ReadConfiguration(const std::string& path);

// What it says to a scheduler.
void Put(const Configuration& configuration, control::SchedulerOptions& options);

}  // namespace berth::cmd
