#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/berth_configuration.h"
#include "config/scheduler_configuration.h"

// What each setting of a configuration becomes in berth. Nothing is ignored in silence: what would
// change decisions and isn't built refuses the configuration.
namespace berth::config {

enum class Effect : uint8_t {
  kHonoured,
  kWithoutEffect,  // It decides nothing here; `why` says why not.
  kRefused,        // berth would decide otherwise than it asks for.
};

struct Setting {
  std::string field;  // `profiles[0].schedulerName`
  std::string value;
  Effect effect = Effect::kHonoured;
  std::string why = {};  // Empty where there is nothing to say.
  bool operator==(const Setting&) const = default;
};

// In the order of the file's fields, arguments of plugins only where they aren't the default ones;
// the gates last. REQUIRES: completed and valid.
[[nodiscard]] std::vector<Setting> Explain(const SchedulerConfiguration& configuration,
                                           const FeatureGates& gates = {});

// Of berth's own: all of it is honoured.
[[nodiscard]] std::vector<Setting> Explain(const BerthConfiguration& configuration);

// For people: a line each.
[[nodiscard]] std::string Text(const std::vector<Setting>& settings);

// What keeps berth from running by it: a line for each setting that is refused.
[[nodiscard]] std::vector<std::string> Refusals(const std::vector<Setting>& settings);

// How many calls `berth run` has under way at most, where kube-scheduler bounds their rate.
inline constexpr int kCallsInFlightMax = 96;
// And beside them of those that hang (client/call_places.h).
inline constexpr int kCallsApartMax = 192;

// Beside cpu, memory, ephemeral-storage and pods, how many different resources all profiles may
// score, and how many topology spread constraints a profile may add: more are refused.
inline constexpr size_t kScoredResourcesMax = 32;
inline constexpr size_t kDefaultConstraintsMax = 16;
// Likewise of extenders.
inline constexpr size_t kExtendersMax = 32;

}  // namespace berth::config
