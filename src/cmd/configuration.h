#pragma once

#include <string>

#include "base/result.h"

namespace berth::cmd {

// What a BerthConfiguration says:
//
//   apiVersion: config.berth.dev/v1alpha1
//   kind: BerthConfiguration
//   placement: joint      # or separate
struct Configuration {
  // Whether workloads get quota only together with places on nodes for all their pods; else as
  // Kueue does, quota alone.
  bool joint_placement = true;
  bool operator==(const Configuration&) const = default;
};

// The configuration in the file, YAML or JSON; an empty path: what holds without one. What is not
// known, or not of its type, is an error that names the field.
[[nodiscard]] Result<Configuration> ReadConfiguration(const std::string& path);

}  // namespace berth::cmd
