#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/lists.h"

// What is known of the flavors that quota is of: which nodes they stand for.
namespace berth::model {

// Kueue's ResourceFlavor as it is.
struct FlavorUpsert {
  std::string name;
  std::string uid;
  std::vector<Label> labels;     // That its nodes have. Any order; keys unique.
  TaintListId taints;            // That its nodes have.
  TolerationListId tolerations;  // That its pods get.
  std::string topology;          // Of its nodes; empty: none.
};

// The object is gone. With a uid, only if it is still that one.
struct FlavorRemove {
  std::string name;
  std::string uid;
};

// Kueue's Topology as it is: the labels of nodes that tell where they are.
struct TopologyUpsert {
  std::string name;
  std::string uid;
  std::vector<NameId> levels;  // The widest first.
  bool by_node = false;        // The lowest level's values are meant to be names of nodes.
};

// The object is gone. With a uid, only if it is still that one.
struct TopologyRemove {
  std::string name;
  std::string uid;
};

struct Flavor {
  NameId name;
  std::string uid;
  std::vector<Label> labels;  // Sorted by key id.
  TaintListId taints;
  TolerationListId tolerations;
  NameId topology;
  bool operator==(const Flavor&) const = default;
};

struct Topology {
  NameId name;
  std::string uid;
  std::vector<NameId> levels;
  bool by_node = false;
  bool operator==(const Topology&) const = default;
};

// Flavors and topologies by name: a row is there as long as its object is. Queues and flavors that
// name one which is not there are told so by who reads them.
//
// O(log rows) by name. Single-threaded.
class FlavorTable {
 public:
  // Null when there is none. Valid until the next change.
  [[nodiscard]] const Flavor* Find(NameId name) const;
  [[nodiscard]] const Topology* FindTopology(NameId name) const;
  [[nodiscard]] std::span<const Flavor> flavors() const { return flavors_; }
  [[nodiscard]] std::span<const Topology> topologies() const { return topologies_; }
  [[nodiscard]] uint32_t flavors_count() const { return static_cast<uint32_t>(flavors_.size()); }
  [[nodiscard]] uint32_t topologies_count() const {
    return static_cast<uint32_t>(topologies_.size());
  }

  // For State: names are interned. REQUIRES: room for a new one.
  // Whether that is news.
  bool Put(const FlavorUpsert& facts, NameId name, NameId topology);
  bool Put(const TopologyUpsert& facts, NameId name);
  void Remove(NameId flavor, const std::string& uid);
  void RemoveTopology(NameId name, const std::string& uid);

  void AddTo(Hasher& hasher) const;

 private:
  std::vector<Flavor> flavors_;       // Sorted by name id, which decides nothing.
  std::vector<Topology> topologies_;  // Likewise.
};

}  // namespace berth::model
