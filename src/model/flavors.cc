#include "model/flavors.h"

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

namespace berth::model {
namespace {

template <typename Row>
const Row* FindIn(const std::vector<Row>& rows, NameId name) {
  const auto found = std::ranges::lower_bound(rows, name, {}, &Row::name);
  return found != rows.end() && found->name == name ? &*found : nullptr;
}

template <typename Row>
bool PutIn(std::vector<Row>& rows, Row row, int64_t rows_max) {
  const auto at = std::ranges::lower_bound(rows, row.name, {}, &Row::name);
  if (at != rows.end() && at->name == row.name) {
    if (*at == row) return false;
    *at = std::move(row);
    return true;
  }
  CHECK_LT(static_cast<int64_t>(rows.size()), rows_max);
  rows.insert(at, std::move(row));
  return true;
}

template <typename Row>
void RemoveFrom(std::vector<Row>& rows, NameId name, const std::string& uid) {
  const Row* found = FindIn(rows, name);
  if (found == nullptr || (!uid.empty() && found->uid != uid)) return;
  rows.erase(rows.begin() + (found - rows.data()));
}

}  // namespace

const Flavor* FlavorTable::Find(NameId name) const { return FindIn(flavors_, name); }

const Topology* FlavorTable::FindTopology(NameId name) const { return FindIn(topologies_, name); }

bool FlavorTable::Put(const FlavorUpsert& facts, NameId name, NameId topology) {
  Flavor row{.name = name,
             .uid = facts.uid,
             .labels = facts.labels,
             .taints = facts.taints,
             .tolerations = facts.tolerations,
             .topology = topology};
  std::ranges::sort(row.labels);
  return PutIn(flavors_, std::move(row), limits::kFlavorsMax);
}

bool FlavorTable::Put(const TopologyUpsert& facts, NameId name) {
  return PutIn(
      topologies_,
      Topology{.name = name, .uid = facts.uid, .levels = facts.levels, .by_node = facts.by_node},
      limits::kFlavorsMax);
}

void FlavorTable::Remove(NameId flavor, const std::string& uid) {
  RemoveFrom(flavors_, flavor, uid);
}

void FlavorTable::RemoveTopology(NameId name, const std::string& uid) {
  RemoveFrom(topologies_, name, uid);
}

void FlavorTable::AddTo(Hasher& hasher) const {
  hasher.Add(flavors_.size());
  for (const Flavor& row : flavors_) {
    hasher.Add(row.name.value).Add(row.uid).Add(row.taints.value).Add(row.tolerations.value);
    hasher.Add(row.topology.value).Add(row.labels.size());
    for (const Label& label : row.labels) hasher.Add(label.key.value).Add(label.value.value);
  }
  hasher.Add(topologies_.size());
  for (const Topology& row : topologies_) {
    hasher.Add(row.name.value).Add(row.uid).Add(row.levels.size());
    for (const NameId level : row.levels) hasher.Add(level.value);
    hasher.Add(row.by_node);
  }
}

}  // namespace berth::model
