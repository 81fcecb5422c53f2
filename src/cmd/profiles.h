#pragma once

#include <vector>

#include "base/result.h"
#include "config/scheduler_configuration.h"
#include "control/volumes.h"
#include "model/profile.h"
#include "translate/pod_profile.h"

namespace berth::cmd {

// What profiles say, as the engine and the translation of pods take it: of those that are not as
// the default one.
struct Profiles {
  std::vector<model::ProfileOptions> engine = {};
  translate::PodProfiles pods = {};
  control::Volumes::BindWithin bind_within = {};
  bool preempt = false;  // Whether pods of any evict others.
};

// REQUIRES: completed, valid, nothing refused (config/effects.h).
[[nodiscard]] Profiles ProfilesOf(const config::SchedulerConfiguration& configuration,
                                  const config::FeatureGates& gates);

// Whether quota can be given out beside it: workloads are given places before their pods are there,
// by the default profile. The error says what keeps it from that. REQUIRES: as ProfilesOf.
[[nodiscard]] Status CheckBesideQuota(const config::SchedulerConfiguration& configuration,
                                      const config::FeatureGates& gates);

}  // namespace berth::cmd
