#pragma once

#include "api/field_error.h"
#include "config/berth_configuration.h"
#include "config/scheduler_configuration.h"

// Private to config/.
namespace berth::config {

// Sets what the file leaves out. Twice is as once.
void Complete(SchedulerConfiguration& configuration, const FeatureGates& gates);

// What is wrong with it, as upstream's validation and the start of its plugins have it. REQUIRES:
// completed.
[[nodiscard]] api::FieldErrors Validate(const SchedulerConfiguration& configuration,
                                        const FeatureGates& gates);

// Of berth's own (validate_berth.cc).
[[nodiscard]] api::FieldErrors Validate(const BerthConfiguration& configuration);

// Of one profile's arguments, at `path` (validate_args.cc).
void ValidateArgs(const PluginArgs& args, const std::string& path, const FeatureGates& gates,
                  api::FieldErrors& errors);

}  // namespace berth::config
