#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/scheduler_configuration.h"
#include "control/extenders.h"

namespace berth::cmd {

// The extenders of a configuration in the order in which they are asked: those that are ignorable
// come last, as in kube-scheduler. Reads the files of their TLS settings; an error names field and
// file. REQUIRES: completed, valid, nothing refused (config/effects.h).
[[nodiscard]] Result<std::vector<control::ExtenderOptions>> ExtendersOf(
    const config::SchedulerConfiguration& configuration);

// Their managed resources that filters leave to them.
[[nodiscard]] std::vector<std::string> IgnoredResourcesOf(
    const config::SchedulerConfiguration& configuration);

}  // namespace berth::cmd
