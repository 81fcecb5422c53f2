#pragma once

#include <cstdint>
#include <span>

#include "model/ids.h"
#include "model/intern.h"

// The small facts of nodes and classes that come as lists; equal lists get equal ids, so that what
// depends on a pair of lists (these taints, those tolerations) is worked out once per pair.
namespace berth::model {

struct Label {
  NameId key;
  NameId value;
  auto operator<=>(const Label&) const = default;
};
using LabelTable = InternTable<Label, LabelListId>;  // Sorted by key id, keys unique.

enum class TaintEffect : uint32_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

// In the node's order: the first one that is not tolerated is the one a user is told of.
struct Taint {
  NameId key;
  NameId value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  auto operator<=>(const Taint&) const = default;
};
using TaintTable = InternTable<Taint, TaintListId>;

enum class TolerationOp : uint32_t { kEqual, kExists, kLt, kGt };
inline constexpr uint32_t kAnyEffect = 3;

struct Toleration {
  NameId key;  // Invalid: any key (only with kExists).
  NameId value;
  TolerationOp op = TolerationOp::kEqual;
  uint32_t effect = kAnyEffect;  // A TaintEffect, or kAnyEffect.
  auto operator<=>(const Toleration&) const = default;
};
using TolerationTable = InternTable<Toleration, TolerationListId>;  // In the pod's order.

[[nodiscard]] inline bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect != kAnyEffect && toleration.effect != static_cast<uint32_t>(taint.effect)) {
    return false;
  }
  if (toleration.key.valid() && toleration.key != taint.key) return false;
  switch (toleration.op) {
    case TolerationOp::kEqual:
      return toleration.value == taint.value;
    case TolerationOp::kExists:
      return true;
    case TolerationOp::kLt:
    case TolerationOp::kGt:
      break;  // Alpha in 1.36, and off.
  }
  return false;
}

// Declared features, allowed models: sorted, unique.
using NameListTable = InternTable<NameId, NameListId>;

// Preferred node affinity: nodes that match the term get the weight.
struct Preference {
  SelectorId term;
  uint32_t weight = 0;  // 1..100
  auto operator<=>(const Preference&) const = default;
};
using PreferenceTable = InternTable<Preference, PreferenceListId>;

}  // namespace berth::model
