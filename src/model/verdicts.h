#pragma once

#include <cstdint>
#include <map>
#include <set>
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

// Whom extenders would have evicted from a node for a pod.
struct NodeVictims {
  NameId node;
  std::vector<OwnerId> pods = {};
  uint32_t pdb_violations = 0;
  void AddTo(Hasher& hasher) const;
  bool operator==(const NodeVictims&) const = default;
};

// What extenders were asked about pods, and said (docs/design/0028-extenders.md): of each pod the
// last query alone, about where it may go, and the one about victims that followed. A pod is its
// uid. A copyable value.
class VerdictTable {
 public:
  struct Row {
    uint64_t query = 0;
    bool answered = false;
    Instant at;                      // Answered: when last.
    std::vector<NodeVerdict> nodes;  // That were asked about, by NameId.
    uint64_t victims_query = 0;      // 0: who is to be evicted was not asked.
    bool victims_answered = false;
    // Likewise, of whom nobody yet; answered: those that are permitted.
    std::vector<NodeVictims> victims;
  };

  // The pod's; null: nothing was asked. O(log pods that were).
  [[nodiscard]] const Row* Find(OwnerId pod) const;
  // Whether an answer is on its way.
  [[nodiscard]] bool IsAsked(OwnerId pod) const;
  // What was said of the node; null: nothing. O(log nodes) more.
  [[nodiscard]] const NodeVerdict* Of(OwnerId pod, NameId node) const;
  // Whom the pod may evict, and where; null: that is not known. By NameId.
  [[nodiscard]] const std::vector<NodeVictims>* VictimsFor(OwnerId pod) const;
  // Of how many pods an answer is on its way.
  [[nodiscard]] uint32_t asked_count() const { return asked_count_; }

  // Begins a query in place of what is known of the pod, and numbers it. Distinct nodes.
  uint64_t Ask(OwnerId pod, std::vector<NameId> nodes);
  // Takes what was said; nodes that were not asked about are left out. False, and nothing changed:
  // it is no answer that is waited for.
  bool Answer(OwnerId pod, uint64_t query, Instant at, const std::vector<NodeVerdict>& said);
  // The same of who is to be evicted, from distinct nodes. What is known of the nodes stays.
  // REQUIRES: no answer is on its way.
  uint64_t AskAboutVictims(OwnerId pod, const std::vector<NodeVictims>& proposed);
  bool AnswerAboutVictims(OwnerId pod, uint64_t query, Instant at, std::vector<NodeVictims> said);
  // The pod is gone, and its id may be another's: nodes that were permitted with it are none any
  // more. O(pods whose victims are known).
  void ForgetVictim(OwnerId pod);
  void Erase(OwnerId pod);

  void AddTo(Hasher& hasher) const;

 private:
  std::map<OwnerId, Row> rows_;
  std::set<OwnerId> with_victims_;  // Whose victims are known: follows from rows_.
  uint32_t asked_count_ = 0;
  uint64_t queries_ = 0;  // So many were begun.
};

}  // namespace berth::model
