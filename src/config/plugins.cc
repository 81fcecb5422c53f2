#include "config/plugins.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace berth::config {
namespace {

using enum Point;

constexpr uint16_t At(std::initializer_list<Point> points) {
  uint16_t bits = 0;
  for (const Point point : points)
    bits = static_cast<uint16_t>(bits | 1U << static_cast<unsigned>(point));
  return bits;
}

constexpr std::array<std::string_view, kPointsCount> kPointNames = {
    "preEnqueue", "queueSort", "preFilter",         "filter",        "postFilter",
    "preScore",   "score",     "reserve",           "permit",        "preBind",
    "bind",       "postBind",  "placementGenerate", "placementScore"};

constexpr std::array<Point, kPointsCount> kPoints = {
    kPreEnqueue, kQueueSort, kPreFilter, kFilter, kPostFilter, kPreScore,          kScore,
    kReserve,    kPermit,    kPreBind,   kBind,   kPostBind,   kPlacementGenerate, kPlacementScore};

constexpr PluginRow kPlugins[] = {
    {"DefaultBinder", At({kBind})},
    {"DefaultPreemption", At({kPreEnqueue, kPostFilter})},
    {"DynamicResources",
     At({kPreEnqueue, kPreFilter, kFilter, kPostFilter, kScore, kReserve, kPreBind})},
    {"GangScheduling", At({kPreEnqueue, kPermit})},
    {"ImageLocality", At({kScore})},
    {"InterPodAffinity", At({kPreFilter, kFilter, kPreScore, kScore})},
    {"NodeAffinity", At({kPreFilter, kFilter, kPreScore, kScore})},
    {"NodeDeclaredFeatures", At({kPreFilter, kFilter})},
    {"NodeName", At({kFilter})},
    {"NodePorts", At({kPreFilter, kFilter})},
    {"NodeResourcesBalancedAllocation", At({kPreScore, kScore})},
    {"NodeResourcesFit", At({kPreFilter, kFilter, kPreScore, kScore, kPlacementScore})},
    {"NodeUnschedulable", At({kFilter})},
    {"NodeVolumeLimits", At({kPreFilter, kFilter})},
    {"PodGroupPodsCount", At({kPlacementScore})},
    {"PodTopologySpread", At({kPreFilter, kFilter, kPreScore, kScore})},
    {"PrioritySort", At({kQueueSort})},
    {"SchedulingGates", At({kPreEnqueue})},
    {"TaintToleration", At({kFilter, kPreScore, kScore})},
    {"TopologyPlacementGenerator", At({kPlacementGenerate})},
    {"VolumeBinding", At({kPreFilter, kFilter, kPreScore, kScore, kReserve, kPreBind})},
    {"VolumeRestrictions", At({kPreFilter, kFilter})},
    {"VolumeZone", At({kPreFilter, kFilter})},
};
static_assert(std::ranges::is_sorted(kPlugins, {}, &PluginRow::name));

}  // namespace

std::string_view NameOf(Point point) { return kPointNames[static_cast<size_t>(point)]; }

std::span<const Point> AllPoints() { return kPoints; }

const PluginRow* FindPlugin(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kPlugins, name, {}, &PluginRow::name);
  return found != std::end(kPlugins) && found->name == name ? found : nullptr;
}

std::vector<DefaultPlugin> DefaultPlugins(const FeatureGates& gates) {
  std::vector<DefaultPlugin> out = {
      {"SchedulingGates", 0},   {"PrioritySort", 0},     {"NodeUnschedulable", 0},
      {"NodeName", 0},          {"TaintToleration", 3},  {"NodeAffinity", 2},
      {"NodePorts", 0},         {"NodeResourcesFit", 1}, {"VolumeRestrictions", 0},
      {"NodeVolumeLimits", 0},  {"VolumeBinding", 0},    {"VolumeZone", 0},
      {"PodTopologySpread", 2}, {"InterPodAffinity", 2}};
  // A claim that is given back is better than an eviction.
  if (gates.on("DynamicResourceAllocation")) out.push_back({"DynamicResources", 2});
  out.push_back({"DefaultPreemption", 0});
  out.push_back({"NodeResourcesBalancedAllocation", 1});
  out.push_back({"ImageLocality", 1});
  out.push_back({"DefaultBinder", 0});
  if (gates.on("NodeDeclaredFeatures")) out.push_back({"NodeDeclaredFeatures", 0});
  if (gates.on("GangScheduling")) out.push_back({"GangScheduling", 0});
  if (gates.on("TopologyAwareWorkloadScheduling")) {
    out.push_back({"TopologyPlacementGenerator", 0});
    out.push_back({"PodGroupPodsCount", 1});
  }
  return out;
}

std::string_view InsteadOf(std::string_view removed) {
  for (const std::string_view limits :
       {"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}) {
    if (removed == limits) return "NodeVolumeLimits";
  }
  if (removed == "SelectorSpread") return "PodTopologySpread";
  if (removed == "NodePreferAvoidPods") return "TaintToleration";
  if (removed == "NodeResourcesLeastAllocated" || removed == "NodeResourcesMostAllocated" ||
      removed == "RequestedToCapacityRatio") {
    return "NodeResourcesFit, with scoringStrategy in its arguments";
  }
  return "";
}

}  // namespace berth::config
