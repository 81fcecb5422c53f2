#pragma once

#include <cstdint>

#include "model/ids.h"
#include "model/ledger.h"
#include "model/state.h"
#include "place/fragments.h"

// The policies that fill nodes instead of spreading over them, and the choice of devices. For
// Evaluator.
namespace berth::place {

// Milli of device d that the viewer may take now; without a viewer, what is physically free.
[[nodiscard]] int32_t DeviceNow(const model::State& state, model::NodeId node, uint32_t d,
                                const model::Viewer* viewer);

// How full the node is with the class on it, as a score: cpu and GPUs alone, a device weighing as
// much as 16 cores. At least 0, below 2^40.
[[nodiscard]] int64_t BestFitScore(const model::State& state, model::ClassId c, model::NodeId node);

// How much less fragmented the node is with the class on it (0..99), and which device that takes.
// O(distinct device amounts x FragmentTable::Fragment).
struct FragmentChoice {
  int64_t score = 0;
  uint16_t mask = 0;
};
[[nodiscard]] FragmentChoice LeastFragmenting(const model::State& state, model::ClassId c,
                                              model::NodeId node, const FragmentTable& fragments,
                                              const model::Viewer* viewer);

// The lowest idle devices, as many as asked for or as there are.
[[nodiscard]] uint16_t LowestIdleDevices(const model::State& state, model::NodeId node,
                                         uint32_t count, const model::Viewer* viewer);
// The device with the least room that has `share` milli, ties to the lowest; 0 when none has.
[[nodiscard]] uint16_t FullestDevice(const model::State& state, model::NodeId node, int32_t share,
                                     const model::Viewer* viewer);
// One of the devices that have `share` milli: the one that `draw` falls on; 0 when none has.
[[nodiscard]] uint16_t AnyDevice(const model::State& state, model::NodeId node, int32_t share,
                                 const model::Viewer* viewer, uint64_t draw);

}  // namespace berth::place
