#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/affinity.h"
#include "model/ids.h"
#include "model/pod_matcher.h"
#include "model/touch.h"

namespace berth::model {

// How many pods of each domain the terms of pod affinity select, and how many have them: what the
// filter and the scores of InterPodAffinity read instead of all pods.
//
// It is kept for the terms of all pods that are known, from claims as the ledger charges them: a
// pod counts where it has a claim, held or releasing, so also while it is being deleted, as
// upstream. What is tried in a transaction counts while it is tried. Promises don't count.
//
// Derived: the audit works it out anew from claims and nodes. Cost: of a claim that comes or goes
// O((terms that select its pod + its own terms) x domains where they count), nothing where there
// are none; of a node whose labels changed or that came or went O(claims there + keys); of a
// selector that is asked about first O(lists of labels + claims), and nodes for a key that is new.
class AffinityIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // Of one domain.
  struct Counts {
    int32_t selected = 0;  // Pods that the selector selects.
    int32_t against = 0;   // How often pods there have it in a required term of anti-affinity.
    int32_t wanting = 0;   // The same of required terms of affinity.
    int64_t weight = 0;    // What pods that prefer by it give to whom it selects, or take.
    bool operator==(const Counts&) const = default;
  };
  struct InDomain {
    uint32_t domain = 0;
    Counts counts;
  };
  // One selector with one key.
  struct Pair {
    uint32_t row = kNone;  // The matcher's.
    uint32_t key = kNone;
    uint32_t uses = 0;
    Counts total;              // Of all domains.
    std::vector<InDomain> at;  // By domain; without those where nothing counts.
  };
  // A term, resolved.
  struct Term {
    AffinityKind kind = AffinityKind::kRequired;
    int32_t weight = 0;
    uint32_t pair = kNone;     // kNone: it selects nobody.
    uint32_t counted = kNone;  // The pair of AffinityTerm::counted.
    NameId key;
  };
  struct Terms {
    std::vector<Term> terms;          // But for kAllRequired.
    uint32_t all = kNone;             // The row of kAllRequired.
    std::vector<uint32_t> all_pairs;  // Its pairs, one per key of a required term.
    uint32_t pods = 0;                // That have them.
  };

  [[nodiscard]] bool empty() const { return terms_.empty(); }
  // Null: no pod that is known has it.
  [[nodiscard]] const Terms* Find(AffinityListId id) const {
    const auto at = terms_.find(id);
    return at == terms_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] const Pair& pair(uint32_t id) const { return pairs_[id]; }
  [[nodiscard]] std::span<const uint32_t> PairsOfRow(uint32_t row) const {
    return row < pairs_of_row_.size() ? std::span<const uint32_t>(pairs_of_row_[row])
                                      : std::span<const uint32_t>();
  }
  [[nodiscard]] uint32_t pairs_size() const { return static_cast<uint32_t>(pairs_.size()); }
  [[nodiscard]] NameId KeyOf(const Pair& pair) const { return keys_[pair.key].name; }
  // The domain of the node for the pair's key; kNone when it has no such label.
  [[nodiscard]] uint32_t DomainOf(const Pair& pair, NodeId n) const {
    const std::vector<uint32_t>& of_node = keys_[pair.key].of_node;
    return n.value < of_node.size() ? of_node[n.value] : kNone;
  }
  // Bounds the pair's domains.
  [[nodiscard]] uint32_t domains_size(const Pair& pair) const {
    return static_cast<uint32_t>(keys_[pair.key].by_value.size());
  }
  // The node of a domain that has no other; invalid: it has several, or none.
  [[nodiscard]] NodeId OnlyNodeOf(const Pair& pair, uint32_t domain) const {
    const NodesOf& nodes = keys_[pair.key].nodes[domain];
    return nodes.count == 1 ? NodeId{nodes.all} : NodeId{};
  }
  // Whether any of its domains has several.
  [[nodiscard]] bool HasShared(const Pair& pair) const { return keys_[pair.key].shared_count > 0; }
  // What counts in the node's domain; nothing without one.
  [[nodiscard]] Counts On(const Pair& pair, NodeId n) const;

  // The terms that the pod has; invalid: none.
  [[nodiscard]] AffinityListId TermsOf(OwnerId pod) const {
    return pod.value < terms_of_.size() ? terms_of_[pod.value] : AffinityListId{};
  }
  void SetTerms(OwnerId pod, AffinityListId terms);

  // Pods on nodes, as the ledger charges them.
  void Count(const PodMatcher& matcher, OwnerId pod, NodeId n, int32_t by);
  // The same of what is new, by selection alone.
  void CountNew(std::span<const uint32_t> pairs, const PodMatcher& matcher, OwnerId pod, NodeId n);

  // Whether somebody was told apart by it moved since TakeMoved, and whether it can help whom: by
  // its own terms, or those that have any of the selectors.
  [[nodiscard]] bool moved() const {
    return all_moved_ || !moved_selected_.empty() || !moved_against_.empty();
  }
  [[nodiscard]] bool Moved(AffinityListId own, std::span<const PodSelectorId> matched,
                           const PodMatcher& matcher) const;
  void TakeMoved();
  // Of a pod whose claims changed for good.
  void NoteMoved(const PodMatcher& matcher, OwnerId pod);
  void NoteAllMoved() { all_moved_ = !terms_.empty(); }

  // A pod more that has the terms. `acquire` gives the matcher's row of a selector. What is new:
  // nodes are to be told by Put for the keys, then pods counted by CountNew for the pairs.
  struct New {
    std::vector<uint32_t> keys;
    std::vector<uint32_t> pairs;
    std::vector<uint32_t> rows;  // That no terms had.
  };
  New Acquire(AffinityListId id, std::span<const AffinityTerm> terms,
              const std::function<uint32_t(PodSelectorId)>& acquire);
  // One less. Its claims don't count any more.
  void Release(AffinityListId id, PodMatcher& matcher);
  // The node's value of a key; invalid: it has none. Nobody on the node is counted meanwhile.
  void Put(uint32_t key, NodeId n, NameId value);
  // Keys that somebody asks for.
  [[nodiscard]] std::vector<uint32_t> KeysInUse() const;
  [[nodiscard]] NameId NameOfKey(uint32_t key) const { return keys_[key].name; }

  // Where what counts changed, kinds aside: the node to which a pod came, or which it left, also as
  // its terms or selectors did. Other nodes of its domain are not in it, nor those that are of
  // another domain now.
  [[nodiscard]] const TouchLog& recounted() const { return recounted_; }
  void TrimRecounted(size_t entries_max) { recounted_.Trim(entries_max); }

  void AddTo(Hasher& hasher) const;

 private:
  // The nodes of a domain; their rows xored, so that of one alone it is that one.
  struct NodesOf {
    uint32_t count = 0;
    uint32_t all = 0;
  };
  struct Key {
    NameId name;
    uint32_t uses = 0;  // Pairs.
    std::vector<uint32_t> of_node;
    std::map<NameId, uint32_t> by_value;
    std::vector<NodesOf> nodes;  // By domain.
    uint32_t shared_count = 0;   // Domains of several nodes.
  };
  uint32_t PairOf(uint32_t row, NameId key, New& fresh);
  void ReleasePair(uint32_t pair);
  // Whether the node is of a domain of the key.
  bool Add(uint32_t pair, NodeId n, const Counts& by);

  std::vector<Key> keys_;
  std::map<NameId, uint32_t> key_of_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<uint32_t>> pairs_of_row_;  // Those in use.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> pair_of_;
  std::map<AffinityListId, Terms> terms_;
  std::vector<AffinityListId> terms_of_;  // By owner.
  std::vector<uint32_t> moved_selected_;  // Rows, ascending, whose pods moved.
  std::vector<uint32_t> moved_against_;   // Rows, ascending, of terms whose pods moved.
  bool all_moved_ = false;
  TouchLog recounted_;
};

}  // namespace berth::model
