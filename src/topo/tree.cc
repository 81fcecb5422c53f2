#include "topo/tree.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace berth::topo {

using model::NameId;

Tree::Tree(uint32_t levels, std::span<const NameId> paths, const TextOf& text) : levels_(levels) {
  CHECK_GT(levels, 0U);
  CHECK_EQ(paths.size() % levels, 0U);
  const size_t nodes = paths.size() / levels;
  const auto path = [&](size_t node) { return paths.subspan(node * levels, levels); };
  std::vector<size_t> order(nodes);
  std::iota(order.begin(), order.end(), size_t{0});
  // Equal paths are one domain, so that which of them comes first decides nothing.
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::ranges::lexicographical_compare(path(a), path(b), {}, text, text);
  });
  leaf_of_.resize(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    // From where on its values are others than those of the one before.
    uint32_t level = 0;
    if (i > 0) {
      const auto differs = std::ranges::mismatch(path(order[i - 1]), path(order[i]));
      level = static_cast<uint32_t>(differs.in1 - path(order[i - 1]).begin());
    }
    for (; level < levels; ++level) {
      const uint32_t children = level + 1 < levels ? size(level + 1) : 0;
      const uint32_t parent = level > 0 ? size(level - 1) - 1 : 0;
      levels_[level].push_back({.value = path(order[i])[level],
                                .parent = parent,
                                .first_child = children,
                                .end_child = children});
      if (level > 0) levels_[level - 1][parent].end_child = size(level);
    }
    leaf_of_[order[i]] = size(lowest()) - 1;
  }
}

std::vector<NameId> Tree::PathOf(DomainId d) const {
  std::vector<NameId> values(d.level + 1);
  for (uint32_t level = d.level + 1; level-- > 0; d = {level - 1, at(d).parent}) {
    values[level] = value(d);
    if (level == 0) break;
  }
  return values;
}

DomainId Tree::Above(DomainId d, uint32_t level) const {
  CHECK_LE(level, d.level);
  while (d.level > level) d = {d.level - 1, at(d).parent};
  return d;
}

}  // namespace berth::topo
