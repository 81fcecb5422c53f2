#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/ids.h"

namespace berth::model {

// What extenders say of a node for a pod.
struct NodeVerdict {
  NameId node;
  bool permitted = false;
  bool unresolvable = false;  // Refused: no eviction changes that.
  NameId why;                 // Refused: in the extender's words; invalid: it said nothing.
  int64_t score = 0;          // Permitted: what is added to its total.
  bool operator==(const NodeVerdict&) const = default;
};

// What extenders were asked about pods, and said (docs/design/0028-extenders.md): of each pod the
// last query alone. A pod is its uid. A copyable value.
class VerdictTable {
 public:
  struct Row {
    uint64_t query = 0;
    bool answered = false;
    Instant at;                      // Answered: when.
    std::vector<NodeVerdict> nodes;  // That were asked about, by NameId.
  };

  // The pod's; null: nothing was asked. O(log pods that were).
  [[nodiscard]] const Row* Find(OwnerId pod) const;
  // Whether an answer is on its way.
  [[nodiscard]] bool IsAsked(OwnerId pod) const;
  // What was said of the node; null: nothing. O(log nodes) more.
  [[nodiscard]] const NodeVerdict* Of(OwnerId pod, NameId node) const;
  // Of how many pods an answer is on its way.
  [[nodiscard]] uint32_t asked_count() const { return asked_count_; }

  // Begins a query in place of what is known of the pod, and numbers it. Distinct nodes.
  uint64_t Ask(OwnerId pod, std::vector<NameId> nodes);
  // Takes what was said; nodes that were not asked about are left out. False, and nothing changed:
  // it is no answer that is waited for.
  bool Answer(OwnerId pod, uint64_t query, Instant at, const std::vector<NodeVerdict>& said);
  void Erase(OwnerId pod);

  void AddTo(Hasher& hasher) const;

 private:
  std::map<OwnerId, Row> rows_;
  uint32_t asked_count_ = 0;
  uint64_t queries_ = 0;  // So many were begun.
};

}  // namespace berth::model
