#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model/ids.h"
#include "model/state.h"

namespace berth::cycle {

// When it is worth knowing which nodes are alike. What is decided hangs on none of it.
struct LikenessLimits {
  // A key of more values is one of many. A choice asks one of each kind, and of all nodes each that
  // may be asked in a row costs a tenth of it.
  uint32_t values_max = 256;
  // Beside a quarter of the nodes: one that is asked alone costs up to four in a row.
  uint32_t kinds_max = 256;
  // Nodes of a choice that can't have a pod's volumes.
  uint32_t volume_tries_max = 64;
  // Choices among all nodes before these are grouped, which costs as much as that.
  uint32_t scans_min = 4;
  // Such choices before they are grouped anew, as they may be alike by now; at least 1.
  uint32_t scans_max = 256;
};

// Which nodes answer a class alike in what hangs on pods of other nodes (place/spread.h,
// place/affinity.h), as far as labels, taints and pods say: those of one kind are equal in the
// values of the keys that its constraints, its terms and others' terms about it go by. Whether
// constraints count them follows; one that a constraint doesn't count though it has the keys is
// told of a domain that others make, and is of a kind of its own.
//
// A key of many values, as kubernetes.io/hostname always is, would make a kind of each node. Of
// such a key it counts only whether a node has it, and how many pods that count are in its domain:
// in most there are none, in the others few different numbers. That is known where such a domain
// with pods has one node (docs/design/0030-nodes-alike.md).
//
// Kinds are those of the state as it was at the last Begin or CatchUp; a node that was touched
// since Begin, or that CatchUp told, is to be asked for again.
class NodeLikeness {
 public:
  explicit NodeLikeness(const LikenessLimits& limits) : limits_(limits) {}

  // From now on it is about the class, as the state is, by the keys that it went by before, too, if
  // it is the same. What was told before means nothing. O(nodes).
  void Begin(const model::State& state, model::ClassId class_id);
  // All nodes were asked for since Begin. If they are of too many kinds, it doesn't work.
  void Settle();
  // Adds the nodes that may be of another kind than before, though nobody touched them, some more
  // than once. False: it has to begin again, for kinds don't go by all keys that the class goes by
  // now, or too much changed. O(terms of the class and about it + pods that came or went).
  [[nodiscard]] bool CatchUp(const model::State& state, std::vector<model::NodeId>& changed);
  // False: nothing is known of who is alike.
  [[nodiscard]] bool works() const { return works_ && !shared_; }

  // The kind of a node. REQUIRES: works. O(keys x log labels + terms x log domains + log kinds).
  uint32_t KindOf(const model::State& state, model::NodeId n);

 private:
  struct Key {
    model::NameId name;
    bool many = false;
  };
  [[nodiscard]] std::vector<model::NameId> KeysNow(const model::State& state) const;
  [[nodiscard]] bool HasMany(const model::State& state, model::NameId key) const;
  [[nodiscard]] bool IsMany(model::NameId key) const;
  [[nodiscard]] std::vector<uint32_t> PairsNow(const model::State& state) const;
  [[nodiscard]] bool IsShared(const model::State& state) const;
  [[nodiscard]] bool AddConstraints(const model::State& state, model::NodeId n);

  LikenessLimits limits_;
  model::ClassId class_id_;
  std::vector<Key> keys_;        // Ascending.
  std::vector<uint32_t> pairs_;  // AffinityIndex's, ascending, of keys of many values.
  size_t kinds_max_ = 0;         // Of the nodes that there are.
  bool works_ = false;
  bool shared_ = false;            // A domain of many values with pods may have several nodes.
  uint64_t spreads_position_ = 0;  // In the indexes' logs.
  uint64_t affinities_position_ = 0;
  std::map<std::vector<int64_t>, uint32_t> kinds_;  // Also those that no node is of any more.
  std::vector<int64_t> kind_;                       // The one that is looked up.
};

}  // namespace berth::cycle
