#include "place/packing.h"

#include <algorithm>
#include <bit>
#include <span>

namespace berth::place {
namespace {

using model::Amount;
using model::NodeId;

// Above every leftover: 2^40 milli are a billion cores.
constexpr Amount kLeftMax = Amount{1} << 40;
// The largest machines of the openb trace have 128 cores and 8 devices, and published best fit
// weighs both alike (the simulator of Weng et al., ATC 2023).
constexpr Amount kCpuMilliPerGpuMilli = 16;

Leftover LeftoverOf(const model::State& state, NodeId node) {
  Leftover left{.cpu_milli = state.ledger().nodes().free(model::kCpu, node.value),
                .gpu_model = state.nodes().gpu_model(node)};
  std::ranges::copy(state.ledger().nodes().devices_free(node.value), left.devices_milli.begin());
  return left;
}

}  // namespace

int32_t DeviceNow(const model::State& state, NodeId node, uint32_t d, const model::Viewer* viewer) {
  if (viewer == nullptr) return state.ledger().nodes().device_free(node.value, d);
  return state.ledger().DeviceNow(node, d, *viewer);
}

int64_t BestFitScore(const model::State& state, model::ClassId c, NodeId node) {
  const model::AccountTable& accounts = state.ledger().nodes();
  const model::ClassSpec& spec = state.vocabulary().classes.at(c);
  const Amount cpu = accounts.free(model::kCpu, node.value) -
                     state.vocabulary().bundles.AmountOf(spec.requests, model::kCpu);
  const Amount gpu = accounts.free(model::kGpuMilli, node.value) - spec.gpu.total_milli();
  const Amount left = std::max<Amount>(cpu, 0) + kCpuMilliPerGpuMilli * std::max<Amount>(gpu, 0);
  return kLeftMax - 1 - std::min(left, kLeftMax - 1);
}

uint16_t LowestIdleDevices(const model::State& state, NodeId node, uint32_t count,
                           const model::Viewer* viewer) {
  uint16_t mask = 0;
  for (uint32_t d = 0; d < state.nodes().devices_count(node); ++d) {
    if (std::popcount(mask) >= static_cast<int>(count)) break;
    if (DeviceNow(state, node, d, viewer) < model::kDeviceMilli) continue;
    mask = static_cast<uint16_t>(mask | (1u << d));
  }
  return mask;
}

uint16_t FullestDevice(const model::State& state, NodeId node, int32_t share,
                       const model::Viewer* viewer) {
  uint16_t best = 0;
  int32_t best_milli = model::kDeviceMilli + 1;
  for (uint32_t d = 0; d < state.nodes().devices_count(node); ++d) {
    const int32_t milli = DeviceNow(state, node, d, viewer);
    if (milli < share || milli >= best_milli) continue;
    best = static_cast<uint16_t>(1u << d);
    best_milli = milli;
  }
  return best;
}

uint16_t AnyDevice(const model::State& state, NodeId node, int32_t share,
                   const model::Viewer* viewer, uint64_t draw) {
  uint16_t roomy = 0;
  for (uint32_t d = 0; d < state.nodes().devices_count(node); ++d) {
    if (DeviceNow(state, node, d, viewer) >= share) roomy = static_cast<uint16_t>(roomy | 1u << d);
  }
  if (roomy == 0) return 0;
  for (uint64_t skip = draw % static_cast<uint64_t>(std::popcount(roomy)); skip > 0; --skip) {
    roomy = static_cast<uint16_t>(roomy & (roomy - 1));
  }
  return static_cast<uint16_t>(roomy & -roomy);
}

FragmentChoice LeastFragmenting(const model::State& state, model::ClassId c, NodeId node,
                                const FragmentTable& fragments, const model::Viewer* viewer) {
  const model::ClassSpec& spec = state.vocabulary().classes.at(c);
  Leftover left = LeftoverOf(state, node);
  const int64_t before = fragments.Fragment(left);
  left.cpu_milli -= state.vocabulary().bundles.AmountOf(spec.requests, model::kCpu);
  if (spec.gpu.share_milli == 0) {
    const uint16_t mask = LowestIdleDevices(state, node, spec.gpu.devices_count, viewer);
    for (uint32_t d = 0; d < model::kDevicesMax; ++d) {
      if ((mask >> d & 1) != 0) left.devices_milli[d] = 0;
    }
    return {fragments.Score(before - fragments.Fragment(left)), mask};
  }
  const auto share = static_cast<int32_t>(spec.gpu.share_milli);
  FragmentChoice best{.score = -1};
  for (uint32_t d = 0; d < state.nodes().devices_count(node); ++d) {
    if (DeviceNow(state, node, d, viewer) < share) continue;
    const int32_t milli = left.devices_milli[d];
    // Devices with as much left give equal fragments: the lowest one stands for all.
    const auto tried = std::span(left.devices_milli).first(d);
    if (viewer == nullptr && std::ranges::find(tried, milli) != tried.end()) continue;
    left.devices_milli[d] = std::max(milli - share, 0);
    const int64_t score = fragments.Score(before - fragments.Fragment(left));
    left.devices_milli[d] = milli;
    if (score > best.score) best = {score, static_cast<uint16_t>(1u << d)};
  }
  return best;
}

}  // namespace berth::place
