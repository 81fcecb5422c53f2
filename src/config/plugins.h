#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "config/feature_gates.h"

// The plugins that kube-scheduler brings along (Kubernetes 1.36), where they act, and those that
// act where nobody says otherwise. Source: the interfaces that pkg/scheduler/framework/plugins
// implement, and pkg/scheduler/apis/config/v1/default_plugins.go.
namespace berth::config {

// Where a plugin can act, in the order in which the fields stand.
enum class Point : uint8_t {
  kPreEnqueue,
  kQueueSort,
  kPreFilter,
  kFilter,
  kPostFilter,
  kPreScore,
  kScore,
  kReserve,
  kPermit,
  kPreBind,
  kBind,
  kPostBind,
  kPlacementGenerate,
  kPlacementScore,
};
inline constexpr size_t kPointsCount = 14;

// "preEnqueue".
[[nodiscard]] std::string_view NameOf(Point point);
[[nodiscard]] std::span<const Point> AllPoints();

struct PluginRow {
  std::string_view name;
  uint16_t points;  // A bit of each Point where it acts.

  [[nodiscard]] bool acts_at(Point point) const {
    return ((points >> static_cast<unsigned>(point)) & 1U) != 0;
  }
};

// Null: kube-scheduler has none of that name.
[[nodiscard]] const PluginRow* FindPlugin(std::string_view name);

struct DefaultPlugin {
  std::string_view name;
  int32_t weight;  // 0 where it doesn't score.
};

// Those that act where nobody says otherwise, in their order.
[[nodiscard]] std::vector<DefaultPlugin> DefaultPlugins(const FeatureGates& gates);

// What to take instead of a plugin that older versions had; empty: there was none of that name.
[[nodiscard]] std::string_view InsteadOf(std::string_view removed);

}  // namespace berth::config
