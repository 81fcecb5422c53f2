#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "config/scheduler_configuration.h"

// Which plugins act where, once defaults, multiPoint and the single points are put together.
//
//   at a point: 1. those that the point enables and that would be there anyway, in its order
//               2. those of multiPoint that it doesn't disable: the defaults that multiPoint
//                  leaves, each in its place with what multiPoint says of it, then its others
//               3. all others that the point enables
//   weight:     the point's, else multiPoint's, else the default's; 0 is 1
//
// `disabled: "*"` takes away all of 2; what is both enabled and disabled is enabled.
// Source: pkg/scheduler/framework/runtime and pkg/scheduler/apis/config/v1 of Kubernetes 1.36.
namespace berth::config {

// Who says that a plugin acts.
enum class Cause : uint8_t { kDefault, kMultiPoint, kPoint };

struct EffectivePlugin {
  std::string name;
  int32_t weight = 0;  // Where plugins score, else 0.
  Cause cause = Cause::kDefault;
  bool operator==(const EffectivePlugin&) const = default;
};

// A default plugin that doesn't act at a point where it could.
struct Absent {
  std::string name;
  Point point = Point::kPreEnqueue;
  std::string field;  // What says so, as `plugins.score.disabled[0]`.
  bool operator==(const Absent&) const = default;
};

struct EffectiveProfile {
  std::string scheduler_name;
  std::array<std::vector<EffectivePlugin>, kPointsCount> at;
  std::vector<Absent> absent;

  [[nodiscard]] const std::vector<EffectivePlugin>& AtPoint(Point point) const {
    return at[static_cast<size_t>(point)];
  }
  bool operator==(const EffectiveProfile&) const = default;
};

// Adds what is wrong with the profile at `path` to `errors`: plugins that there aren't, or not
// there, or twice; more or less than one that sorts the queue; none that binds. What is wrong is
// left out of the result. Cost: plugins times points.
[[nodiscard]] EffectiveProfile Expand(const Profile& profile, const FeatureGates& gates,
                                      std::string_view path, api::FieldErrors& errors);
// Of a profile that has no errors.
[[nodiscard]] EffectiveProfile Expand(const Profile& profile, const FeatureGates& gates);

// Plugins of the profile's multiPoint, the defaults among them: what kube-scheduler writes as
// multiPoint.
[[nodiscard]] PluginSet MergedMultiPoint(const Plugins& plugins, const FeatureGates& gates);

// For people: a line per point, each plugin with its weight and why it is there.
[[nodiscard]] std::string Text(const EffectiveProfile& profile);

}  // namespace berth::config
