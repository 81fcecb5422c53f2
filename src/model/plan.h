#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/reason.h"

namespace berth::model {

class State;

// Bind the pod to the node. The fence is the pod's uid; the claim is already in the ledger.
struct BindDecision {
  PodId pod;
  OwnerId pod_uid;
  NodeId node;
  NameId node_name;
  OwnerId node_uid;
  DeviceSlots devices;
  int64_t score = 0;            // Total, as it was compared.
  uint32_t feasible_count = 0;  // Nodes that fitted.
  bool operator==(const BindDecision&) const = default;
};

// Why a class (with its pin) has no node: one per attempt, shared by the pods it refuses.
struct Refusal {
  ClassId class_id;
  NameId pinned_to;             // Invalid: not pinned.
  uint32_t nodes_count = 0;     // Nodes looked at.
  std::vector<Reason> reasons;  // In a fixed order: kind, resource, detail.
  bool operator==(const Refusal&) const = default;
};

struct PodRefused {
  PodId pod;
  OwnerId pod_uid;
  uint32_t refusal = 0;  // Index in Plan::refusals.
  bool operator==(const PodRefused&) const = default;
};

// What one cycle decided, as data. Ids are good until the next Apply.
struct Plan {
  std::vector<BindDecision> binds;  // In the order decided.
  std::vector<Refusal> refusals;
  std::vector<PodRefused> refused;
  bool more = false;                   // The bound per cycle was met: call again at once.
  Instant wake_at = Instant::Never();  // When a timer of a reason is due next.

  [[nodiscard]] bool empty() const { return binds.empty() && refused.empty(); }
  void AddTo(Hasher& hasher) const;
};

// One line per decision and refusal, with names: what golden tests compare.
[[nodiscard]] std::string Print(const Plan& plan, const State& state);

}  // namespace berth::model
