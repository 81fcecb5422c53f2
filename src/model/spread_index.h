#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"
#include "model/pod_matcher.h"
#include "model/row_set.h"
#include "model/spread.h"
#include "model/touch.h"

namespace berth::model {

// How many pods each domain of each topology spread constraint has: what the filter and the score
// of PodTopologySpread read instead of all pods.
//
// It is kept for the classes that are tracked, without their images (ClassTable::plain), from
// claims as the ledger charges them: a pod counts where it has a claim, held or releasing, until it
// is being deleted. What is tried in a transaction counts while it is tried. Promises don't count.
//
// Derived: the audit works it out anew from claims and nodes. Cost: of a claim that comes or goes
// O(constraints that select its pod x log of the different counts), nothing where none does; of a
// node whose labels, taints or existence changed O(constraints); of a new class O(nodes + claims).
class SpreadIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // One constraint of one class, with its domains: the values of the key on the nodes that count
  // for it.
  class Domains {
   public:
    // Bounds their numbers: there may be less of them.
    [[nodiscard]] uint32_t rows() const { return static_cast<uint32_t>(rows_.size()); }
    // The domain of a value; kNone when no node that counts has it.
    [[nodiscard]] uint32_t Find(NameId value) const;
    // That of a node; kNone when the node doesn't count.
    [[nodiscard]] uint32_t OfNode(NodeId n) const {
      return n.value < of_node_.size() ? of_node_[n.value] : kNone;
    }
    [[nodiscard]] int32_t count(uint32_t domain) const { return rows_[domain].count; }
    // How many nodes it has, and whether any of them has several.
    [[nodiscard]] uint32_t nodes_count(uint32_t domain) const { return rows_[domain].nodes; }
    [[nodiscard]] bool has_shared() const { return shared_count_ > 0; }
    // The least count of all domains, where that of `domain` (or of none) is `count` instead. 0
    // when there are fewer than `domains_min`.
    [[nodiscard]] int32_t Least(uint32_t domains_min, uint32_t domain, int32_t count) const;

   private:
    friend class SpreadIndex;
    struct Row {
      uint32_t nodes = 0;  // 0: there is no such domain now.
      int32_t count = 0;
    };
    void Put(NodeId n, NameId value, int32_t pods_there);
    void Count(NodeId n, int32_t by);
    void Change(Row& row, uint32_t nodes, int32_t count);

    uint32_t selector_ = kNone;  // The matcher's row.
    std::vector<uint32_t> of_node_;
    std::map<NameId, uint32_t> by_value_;
    std::vector<Row> rows_;
    std::map<int32_t, uint32_t> by_count_;  // How many domains have so many pods.
    uint32_t live_count_ = 0;
    uint32_t shared_count_ = 0;
  };

  [[nodiscard]] bool empty() const { return classes_.empty(); }
  [[nodiscard]] bool tracks(ClassId class_id) const { return classes_.contains(class_id); }
  // By constraint, in the class's order. REQUIRES: tracks(class_id).
  [[nodiscard]] const std::vector<Domains>& Of(ClassId class_id) const {
    return classes_.at(class_id);
  }
  // How many pods on the node the constraint's selector counts.
  [[nodiscard]] int32_t PodsOn(const Domains& domains, NodeId n) const;
  // The rows of nodes where that is more than none, in no order.
  [[nodiscard]] std::span<const uint32_t> NodesWithPods(const Domains& domains) const;
  // Whether the constraint's selector selects the pod. Unlike in counts, an empty one does.
  [[nodiscard]] static bool Selects(const PodMatcher& matcher, const Domains& domains,
                                    OwnerId pod) {
    return matcher.Selects(domains.selector_, pod);
  }

  // Who was told apart by it moved since TakeMoved: whether it can help one of the class.
  [[nodiscard]] bool moved() const { return !moved_.empty(); }
  [[nodiscard]] bool Moved(ClassId class_id) const;
  void TakeMoved() { moved_.clear(); }
  // Of a pod whose claims changed for good.
  void NoteMoved(const PodMatcher& matcher, OwnerId pod);

  // Pods on nodes, as the ledger charges them.
  void Count(const PodMatcher& matcher, OwnerId pod, NodeId n, int32_t by);

  // The constraints of a class; `acquire` gives the matcher's row of a selector. Returns the rows
  // that are new here: their pods are to be counted by CountNew, and then nodes be told by Put.
  std::vector<uint32_t> Track(ClassId class_id, std::span<const SpreadConstraint> constraints,
                              const std::function<uint32_t(PodSelectorId)>& acquire);
  void CountNew(std::span<const uint32_t> rows, const PodMatcher& matcher, OwnerId pod, NodeId n);
  // Nobody asks for the class any more.
  void Untrack(ClassId class_id, PodMatcher& matcher);
  // What the node is to a constraint: its domain is of that value, or (invalid) it doesn't count.
  void Put(ClassId class_id, size_t constraint, NodeId n, NameId value);
  [[nodiscard]] std::vector<ClassId> Tracked() const;

  // The nodes to which pods came that count, or which they left, kinds aside: also as a class did.
  // Other nodes of their domains are not in it, nor those that are of another domain now.
  [[nodiscard]] const TouchLog& recounted() const { return recounted_; }
  void TrimRecounted(size_t entries_max) { recounted_.Trim(entries_max); }

  void AddTo(Hasher& hasher) const;

 private:
  struct Selector {
    std::vector<int32_t> on_node;
    RowSet with_pods;                                // Nodes.
    std::vector<std::pair<ClassId, uint32_t>> uses;  // Constraints; without any nothing is counted.
  };
  // Whether a constraint counts by the row.
  bool Add(const PodMatcher& matcher, uint32_t row, NodeId n, int32_t by);

  std::map<ClassId, std::vector<Domains>> classes_;
  std::vector<Selector> selectors_;  // By the matcher's row, up to the last that is asked about.
  std::vector<uint32_t> moved_;      // Rows, ascending.
  TouchLog recounted_;
};

}  // namespace berth::model
