#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/scheduler_configuration.h"
#include "control/extenders.h"

namespace berth::cmd {

// The files of their TLS settings. A replay sends nothing and has no need of them.
enum class ExtenderFiles : uint8_t { kRead, kLeft };

// The extenders of a configuration in the order in which they are asked: those that are ignorable
// come last, as in kube-scheduler. An error names field and file. REQUIRES: completed, valid,
// nothing refused (config/effects.h).
[[nodiscard]] Result<std::vector<control::ExtenderOptions>> ExtendersOf(
    const config::SchedulerConfiguration& configuration, ExtenderFiles files);

// Their managed resources that filters leave to them.
[[nodiscard]] std::vector<std::string> IgnoredResourcesOf(
    const config::SchedulerConfiguration& configuration);

}  // namespace berth::cmd
