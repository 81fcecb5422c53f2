#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/ids.h"

namespace berth::topo {

// A place in a tree, by its level (0: the widest) and number among those of its level.
struct DomainId {
  uint32_t level = 0;
  uint32_t index = 0;
  auto operator<=>(const DomainId&) const = default;
};

// The domains of a topology: what nodes' values of its levels, the widest first, make of them. They
// are numbered by level, in the order of their values, those of the levels above before their
// own, so that numbers may decide. A value. Single-threaded.
class Tree {
 public:
  using TextOf = std::function<std::string_view(model::NameId)>;

  // `paths`: of each node its values, one a level, node by node. REQUIRES: a level at least.
  // O(nodes x levels x log nodes).
  Tree(uint32_t levels, std::span<const model::NameId> paths, const TextOf& text);

  [[nodiscard]] uint32_t levels() const { return static_cast<uint32_t>(levels_.size()); }
  [[nodiscard]] uint32_t lowest() const { return levels() - 1; }
  [[nodiscard]] uint32_t size(uint32_t level) const {
    return static_cast<uint32_t>(levels_[level].size());
  }
  // Of the lowest level, by the node's place in `paths`.
  [[nodiscard]] uint32_t leaf_of(size_t node) const { return leaf_of_[node]; }
  [[nodiscard]] model::NameId value(DomainId d) const { return at(d).value; }
  // Its own and those of the levels above, the widest first.
  [[nodiscard]] std::vector<model::NameId> PathOf(DomainId d) const;
  // Of the next level; empty at the lowest.
  [[nodiscard]] uint32_t first_child(DomainId d) const { return at(d).first_child; }
  [[nodiscard]] uint32_t end_child(DomainId d) const { return at(d).end_child; }
  // The domain of that level, or above, that it is in.
  [[nodiscard]] DomainId Above(DomainId d, uint32_t level) const;

 private:
  struct Domain {
    model::NameId value;
    uint32_t parent = 0;  // Of the level above.
    uint32_t first_child = 0;
    uint32_t end_child = 0;
  };
  [[nodiscard]] const Domain& at(DomainId d) const { return levels_[d.level][d.index]; }

  std::vector<std::vector<Domain>> levels_;
  std::vector<uint32_t> leaf_of_;
};

}  // namespace berth::topo
