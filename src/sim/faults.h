#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/prng.h"

namespace berth::sim {

// The menu of what can go wrong (docs/design/0004-simulator.md). A run draws a subset of it with
// strengths of its own (swarm testing, Groce et al. 2012: a run with few kinds of faults goes
// deeper than one with all), and counts how often each fired.
enum class Fault : uint8_t {
  kWatchDropped,       // A watch's connection breaks; frames on the way are lost.
  kWatchDelayed,       // One watch falls behind the others, for a while.
  kWatchDuplicated,    // A frame arrives twice.
  kWatchGone,          // A watch is answered with 410: its version is compacted.
  kConflict,           // A write is answered 409 and not applied.
  kThrottled,          // 429 with Retry-After, not applied.
  kServerError,        // 500, not applied.
  kTimeoutApplied,     // The write is applied, its answer is lost.
  kTimeoutNotApplied,  // The request is lost.
  kSchedulerCrashed,   // The scheduler starts again from nothing.
  kClientCrashed,      // Controllers or nodes start again from nothing.
  kServerCrashed,      // The API server starts again from its journal.
  kNodeLost,           // A kubelet stops, and returns later.
  kPodRecreated,       // A pod is deleted and made again with its name.
  kNodeRecreated,      // A node object is deleted and made again with its name.
  kOwnerRecreated,     // A Deployment is deleted and made again with its name.
  kDiskFull,           // The journal has no room, for a while: what waits for it is answered 507.
};
inline constexpr size_t kFaultsCount = 17;

[[nodiscard]] std::string_view ToString(Fault fault);

// How likely each fault is, each time it could happen.
struct FaultPlan {
  std::array<Ratio, kFaultsCount> chance{};

  [[nodiscard]] Ratio operator[](Fault fault) const { return chance[static_cast<size_t>(fault)]; }
  // No faults at all: the run that faulty ones are compared with.
  static FaultPlan None() { return {}; }
  // Each fault is in with a chance of one half, at a strength of its own.
  static FaultPlan Draw(Prng& prng);
};

// How often each fault fired.
struct FaultCounts {
  std::array<uint64_t, kFaultsCount> fired{};

  void Add(Fault fault) { ++fired[static_cast<size_t>(fault)]; }
  FaultCounts& operator+=(const FaultCounts& other);
};

}  // namespace berth::sim
