#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/ledger.h"
#include "model/pods.h"

// The lifecycle of a pod as the scheduler sees it: a total function of its row and its claim, so a
// relist that skips steps can't hurt.
//
//                    ┌─────── outcome Refused or NotSent, or read unbound ───────┐
//                    v                                                           │
//  Foreign <──> Pending <──> Gated          ┌── Done ──> Accepted ──┐            │
//                    │                      │                       v            │
//                    └── decision ──> InFlight ── observed ──────> Bound      (BindRead)
//                                           ├── Conflict, Unknown ──> Unresolved─┤
//                                           └── Gone ──> Lost ───────────────────┘
//
//  Any of them jumps to Bound, Terminating or Finished when that is observed; Bound to Terminating
//  or Finished; Terminating to Finished. Nothing leaves Finished: terminal is final.
namespace berth::model {

enum class PodStage : uint8_t {
  kForeign,      // Another scheduler's.
  kGated,        // Has scheduling gates: neither tried nor charged.
  kPending,      // Ours to place; it waits in a line.
  kInFlight,     // Decided; the write is on its way.
  kAccepted,     // The write was accepted; the binding is not observed yet.
  kUnresolved,   // The write's fate is to be read.
  kLost,         // The write found no pod.
  kBound,        // Has a node.
  kTerminating,  // Being deleted.
  kFinished,     // Succeeded or Failed.
};
inline constexpr size_t kPodStagesCount = 10;

[[nodiscard]] constexpr PodStage StageOf(const Pod& pod) {
  if (pod.terminal) return PodStage::kFinished;
  if (pod.terminating) return PodStage::kTerminating;
  if (pod.node.valid()) return PodStage::kBound;
  switch (pod.write) {
    case WriteStage::kInFlight:
      return PodStage::kInFlight;
    case WriteStage::kDone:
      return PodStage::kAccepted;
    case WriteStage::kUnresolved:
      return PodStage::kUnresolved;
    case WriteStage::kGone:
      return PodStage::kLost;
    case WriteStage::kNone:
      break;
  }
  if (!pod.ours) return PodStage::kForeign;
  return pod.gated ? PodStage::kGated : PodStage::kPending;
}

// kAllowedJumps[from] has bit `to` set when the jump is legal. Staying is.
inline constexpr std::array<uint16_t, kPodStagesCount> kAllowedJumps = [] {
  using enum PodStage;
  const auto bits = [](auto... stages) {
    return static_cast<uint16_t>(((1u << static_cast<unsigned>(stages)) | ... | 0u));
  };
  const uint16_t ends = bits(kBound, kTerminating, kFinished);
  std::array<uint16_t, kPodStagesCount> table{};
  table[static_cast<size_t>(kForeign)] = bits(kForeign, kGated, kPending) | ends;
  table[static_cast<size_t>(kGated)] = bits(kForeign, kGated, kPending) | ends;
  table[static_cast<size_t>(kPending)] = bits(kForeign, kGated, kPending, kInFlight) | ends;
  table[static_cast<size_t>(kInFlight)] =
      bits(kInFlight, kAccepted, kUnresolved, kLost, kPending, kGated, kForeign) | ends;
  table[static_cast<size_t>(kAccepted)] = bits(kAccepted) | ends;
  table[static_cast<size_t>(kUnresolved)] = bits(kUnresolved, kPending, kGated, kForeign) | ends;
  table[static_cast<size_t>(kLost)] = bits(kLost, kPending, kGated, kForeign) | ends;
  table[static_cast<size_t>(kBound)] = ends;
  table[static_cast<size_t>(kTerminating)] = bits(kTerminating, kFinished);
  table[static_cast<size_t>(kFinished)] = bits(kFinished);
  return table;
}();

[[nodiscard]] constexpr bool MayJump(PodStage from, PodStage to) {
  return ((kAllowedJumps[static_cast<size_t>(from)] >> static_cast<unsigned>(to)) & 1) != 0;
}

[[nodiscard]] constexpr std::string_view ToString(PodStage stage) {
  constexpr std::array<std::string_view, kPodStagesCount> kNames = {
      "foreign",    "gated", "pending", "in flight",   "accepted",
      "unresolved", "lost",  "bound",   "terminating", "finished"};
  return kNames[static_cast<size_t>(stage)];
}

}  // namespace berth::model
