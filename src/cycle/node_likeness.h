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
  uint32_t kinds_max = 256;
  // A quarter of the nodes, and so many more, may stand apart: one of these costs up to four in a
  // row.
  uint32_t apart_least = 16;
  // Nodes of a choice that can't have a pod's volumes.
  uint32_t volume_tries_max = 64;
  // Choices among all nodes before these are grouped, which costs as much as that.
  uint32_t scans_min = 4;
};

// Which nodes answer a class alike in what hangs on pods of other nodes (place/spread.h,
// place/affinity.h), as far as labels and taints say: those of one kind are equal in the values of
// the keys that its constraints, its terms and others' terms about it go by. Whether constraints
// count them follows, but for nodes that are like no other.
//
// A key of many values, as kubernetes.io/hostname always is, would make a kind of each node. Of
// such a key it counts only whether a node has it, and a node stands apart from its kind while pods
// that count are in its domain. That holds where such a domain has one node
// (docs/design/0030-nodes-alike.md).
class NodeLikeness {
 public:
  // Of a node that is like no other.
  static constexpr uint32_t kAlone = 0xffffffff;

  explicit NodeLikeness(const LikenessLimits& limits) : limits_(limits) {}

  // From now on it is about the class, as the state is, by the keys that it went by before, too, if
  // it is the same. What was told before means nothing.
  void Begin(const model::State& state, model::ClassId class_id);
  // Whether kinds go by all keys that the class goes by now. If not, it has to begin again. O(terms
  // of the class and about it).
  [[nodiscard]] bool IsCurrent(const model::State& state) const;
  // False: nothing is known of who is alike.
  [[nodiscard]] bool works() const { return works_; }

  // The kind of a node, which changes with its labels and taints alone. O(keys x log labels + log
  // kinds).
  uint32_t KindOf(const model::State& state, model::NodeId n);

  // Adds the nodes that stand apart now, some of them more than once. False: they are more than
  // `most`, or there is a domain with pods that has several nodes, so who is alike is not known.
  // O(domains of keys of many values that have pods, up to most).
  [[nodiscard]] bool FindApart(const model::State& state, size_t most,
                               std::vector<model::NodeId>& out) const;

 private:
  struct Key {
    model::NameId name;
    bool many = false;
  };
  [[nodiscard]] std::vector<model::NameId> KeysNow(const model::State& state) const;
  [[nodiscard]] bool HasMany(const model::State& state, model::NameId key) const;
  [[nodiscard]] bool IsMany(model::NameId key) const;

  LikenessLimits limits_;
  model::ClassId class_id_;
  std::vector<Key> keys_;  // Ascending.
  bool works_ = false;
  std::map<std::vector<uint32_t>, uint32_t> kinds_;
  std::vector<uint32_t> kind_;  // The one that is looked up.
};

}  // namespace berth::cycle
