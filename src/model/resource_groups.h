#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"

namespace berth::model {

// Resources of a queue that come from the same flavor, and which flavors those may be, in the order
// in which they are tried.
struct ResourceGroup {
  std::span<const ResourceId> resources;
  std::span<const NameId> flavors;
};

// Distinct lists of the resource groups of a queue.
class ResourceGroupsTable {
 public:
  // O(resources + flavors).
  ResourceGroupsId Intern(std::span<const ResourceGroup> groups);
  // Of an invalid id none.
  [[nodiscard]] uint32_t count(ResourceGroupsId id) const {
    return id.valid() ? offsets_[id.value + 1] - offsets_[id.value] : 0;
  }
  // Valid until the next Intern.
  [[nodiscard]] ResourceGroup at(ResourceGroupsId id, uint32_t index) const;
  [[nodiscard]] uint32_t size() const { return table_.size(); }
  void AddTo(Hasher& hasher) const { table_.AddTo(hasher); }

 private:
  struct Range {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct Ranges {
    Range resources;
    Range flavors;
  };

  InternTable<uint32_t, ResourceGroupsId> table_;  // Encoded lists; the rest is what they say.
  std::vector<uint32_t> offsets_ = {0};            // By id: its first group.
  std::vector<Ranges> groups_;
  std::vector<ResourceId> resources_;
  std::vector<NameId> flavors_;
};

}  // namespace berth::model
