#include "model/resource_groups.h"

#include "base/check.h"

namespace berth::model {
namespace {

template <typename IdT>
void Encode(std::span<const IdT> ids, std::vector<uint32_t>& words) {
  words.push_back(static_cast<uint32_t>(ids.size()));
  for (const IdT id : ids) words.push_back(id.value);
}

}  // namespace

ResourceGroupsId ResourceGroupsTable::Intern(std::span<const ResourceGroup> groups) {
  std::vector<uint32_t> words;
  for (const ResourceGroup& group : groups) {
    Encode(group.resources, words);
    Encode(group.flavors, words);
  }
  const ResourceGroupsId id = table_.Intern(words);
  if (id.value + 1 < offsets_.size()) return id;
  CHECK_EQ(id.value + 1, offsets_.size());
  for (const ResourceGroup& group : groups) {
    groups_.push_back({.resources = {.first = static_cast<uint32_t>(resources_.size()),
                                     .count = static_cast<uint32_t>(group.resources.size())},
                       .flavors = {.first = static_cast<uint32_t>(flavors_.size()),
                                   .count = static_cast<uint32_t>(group.flavors.size())}});
    resources_.insert(resources_.end(), group.resources.begin(), group.resources.end());
    flavors_.insert(flavors_.end(), group.flavors.begin(), group.flavors.end());
  }
  offsets_.push_back(static_cast<uint32_t>(groups_.size()));
  return id;
}

ResourceGroup ResourceGroupsTable::at(ResourceGroupsId id, uint32_t index) const {
  CHECK_LT(index, count(id));
  const Ranges& group = groups_[offsets_[id.value] + index];
  return {.resources = std::span(resources_).subspan(group.resources.first, group.resources.count),
          .flavors = std::span(flavors_).subspan(group.flavors.first, group.flavors.count)};
}

}  // namespace berth::model
