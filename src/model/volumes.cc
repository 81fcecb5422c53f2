#include "model/volumes.h"

#include <algorithm>

#include "base/limits.h"

namespace berth::model {
namespace {

template <typename Key, typename Members>
void SetMember(std::map<Key, Members>& sets, Key key, NameId member, bool is_one) {
  if (!key.valid()) return;
  if (is_one) {
    sets[key].insert(member);
    return;
  }
  const auto at = sets.find(key);
  if (at == sets.end()) return;
  at->second.erase(member);
  if (at->second.empty()) sets.erase(at);
}

template <typename Members>
const Members& MembersOf(const std::map<NameId, Members>& sets, NameId key, const Members& none) {
  const auto at = sets.find(key);
  return at == sets.end() ? none : at->second;
}

}  // namespace

template <typename Table, typename Use>
auto VolumeTable::WithRowsOf(Table& table, const StorageFact& fact, Use use) {
  if (std::holds_alternative<VolumeClaim>(fact.row)) return use(table.claims_);
  if (std::holds_alternative<Volume>(fact.row)) return use(table.volumes_);
  if (std::holds_alternative<StorageClass>(fact.row)) return use(table.classes_);
  if (std::holds_alternative<StorageDriver>(fact.row)) return use(table.drivers_);
  if (std::holds_alternative<AttachLimits>(fact.row)) return use(table.limits_);
  if (std::holds_alternative<StorageCapacity>(fact.row)) return use(table.capacities_);
  return use(table.attachments_);
}

bool VolumeTable::HasRoomFor(const StorageFact& fact) const {
  return fact.gone || WithRowsOf(*this, fact, [&](const auto& rows) {
           return rows.size() < size_t{limits::kStorageRowsMax} || rows.contains(fact.name);
         });
}

// Keeps what is found by other names than its own.
void VolumeTable::Link(const StorageFact& fact, bool linked) {
  if (std::holds_alternative<VolumeClaim>(fact.row)) {
    if (const VolumeClaim* row = claim(fact.name))
      SetMember(by_volume_, row->volume, fact.name, linked);
  } else if (std::holds_alternative<Volume>(fact.row)) {
    if (const Volume* row = volume(fact.name))
      SetMember(by_class_, row->storage_class, fact.name, linked);
  } else if (std::holds_alternative<Attachment>(fact.row)) {
    const Attachment* row = Find(attachments_, fact.name);
    if (row == nullptr) return;
    SetMember(attachments_of_, row->volume, fact.name, linked);
    if (linked) {
      attached_[row->node][fact.name] = *row;
    } else if (const auto at = attached_.find(row->node); at != attached_.end()) {
      at->second.erase(fact.name);
      if (at->second.empty()) attached_.erase(at);
    }
  }
}

// Whoever's claim, volume or class has that name may be helped.
void VolumeTable::NoteMoved(const StorageFact& fact) {
  if (std::holds_alternative<VolumeClaim>(fact.row) ||
      std::holds_alternative<StorageClass>(fact.row)) {
    moved_.insert(fact.name);
  } else if (std::holds_alternative<Volume>(fact.row)) {
    moved_.insert(fact.name);
    const Volume* row = volume(fact.name);
    if (row == nullptr) return;
    if (row->storage_class.valid()) moved_.insert(row->storage_class);
    if (row->claim.valid()) moved_.insert(row->claim);
  } else if (std::holds_alternative<StorageCapacity>(fact.row)) {
    if (const StorageCapacity* row = Find(capacities_, fact.name))
      moved_.insert(row->storage_class);
  } else if (std::holds_alternative<StorageDriver>(fact.row)) {
    for (const auto& [name, row] : classes_) {
      if (row.provisioner == fact.name) moved_.insert(name);
    }
  }
}

bool VolumeTable::Apply(const StorageFact& fact) {
  // What it was counts, and what it is: of what had moved before it knows nothing meanwhile.
  std::set<NameId> moved_before;
  moved_before.swap(moved_);
  NoteMoved(fact);
  Link(fact, /*linked=*/false);
  const bool changed = WithRowsOf(*this, fact, [&](auto& rows) { return Put(rows, fact); });
  Link(fact, /*linked=*/true);
  if (changed) {
    NoteMoved(fact);
    moved_before.merge(moved_);
  }
  moved_.swap(moved_before);
  return changed;
}

const std::set<NameId>& VolumeTable::volumes_of(NameId storage_class) const {
  static const std::set<NameId> kNone;
  return MembersOf(by_class_, storage_class, kNone);
}

const std::map<NameId, Attachment>& VolumeTable::attachments(NameId node) const {
  static const std::map<NameId, Attachment> kNone;
  return MembersOf(attached_, node, kNone);
}

// As upstream: a claim without a volume that is there counts for the provisioner of its class, as a
// volume of its own.
std::optional<Attachable> VolumeTable::AttachableOf(NameId name) const {
  const VolumeClaim* row = claim(name);
  if (row == nullptr) return std::nullopt;
  if (const Volume* its = volume(row->volume); its != nullptr) {
    if (!its->driver.valid() || its->handle.empty()) return std::nullopt;
    return Attachable{.driver = its->driver, .handle = its->handle};
  }
  const StorageClass* its_class = storage_class(row->storage_class);
  if (its_class == nullptr || !its_class->provisioner.valid()) return std::nullopt;
  return Attachable{.driver = its_class->provisioner, .claim = name};
}

std::optional<Attachable> VolumeTable::AttachableOf(const Attachment& attachment) const {
  const Volume* its = volume(attachment.volume);
  if (its == nullptr || !its->driver.valid() || !attachment.driver.valid()) return std::nullopt;
  return Attachable{.driver = attachment.driver, .handle = its->handle};
}

std::vector<NameId> VolumeTable::ClaimsOf(const StorageFact& fact) const {
  if (std::holds_alternative<VolumeClaim>(fact.row)) return {fact.name};
  std::vector<NameId> names;
  if (std::holds_alternative<Volume>(fact.row)) {
    const auto at = by_volume_.find(fact.name);
    if (at != by_volume_.end()) names.assign(at->second.begin(), at->second.end());
  } else if (std::holds_alternative<StorageClass>(fact.row)) {
    for (const auto& [name, row] : claims_) {
      if (row.storage_class == fact.name) names.push_back(name);
    }
  }
  return names;
}

std::vector<NameId> VolumeTable::NodesOf(const StorageFact& fact) const {
  if (std::holds_alternative<AttachLimits>(fact.row)) return {fact.name};
  std::vector<NameId> nodes;
  const auto add = [&](NameId attachment) {
    if (const Attachment* row = Find(attachments_, attachment)) nodes.push_back(row->node);
  };
  if (std::holds_alternative<Attachment>(fact.row)) add(fact.name);
  if (std::holds_alternative<Volume>(fact.row)) {
    const auto at = attachments_of_.find(fact.name);
    if (at != attachments_of_.end()) std::ranges::for_each(at->second, add);
  }
  return nodes;
}

bool VolumeTable::Moved(std::span<const PodVolume> volumes) const {
  if (moved_.empty()) return false;
  return std::ranges::any_of(volumes, [&](const PodVolume& one) {
    if (!IsClaim(one.kind)) return false;
    if (moved_.contains(one.name)) return true;
    const VolumeClaim* row = claim(one.name);
    return row != nullptr && (moved_.contains(row->volume) || moved_.contains(row->storage_class));
  });
}

void VolumeTable::NoteFreed(NameId name) {
  if (const VolumeClaim* row = claim(name); row != nullptr) moved_.insert(row->storage_class);
}

// The indexes follow from the rows.
void VolumeTable::AddTo(Hasher& hasher) const {
  const auto add_name = [&](NameId name) { hasher.Add(name.value); };
  hasher.Add(claims_.size());
  for (const auto& [name, row] : claims_) {
    for (const NameId id :
         {name, row.volume, row.storage_class, row.selected_node, row.attributes_class}) {
      add_name(id);
    }
    hasher.Add(row.uid).Add(row.controller).Add(row.request.value_or(-1)).Add(row.modes);
    hasher.Add(row.block).Add(row.bound).Add(row.lost).Add(row.deleted);
    hasher.Add(row.selector.has_value()).Add(row.selects_nothing);
  }
  hasher.Add(volumes_.size());
  for (const auto& [name, row] : volumes_) {
    for (const NameId id : {name, row.driver, row.claim, row.storage_class, row.attributes_class}) {
      add_name(id);
    }
    hasher.Add(row.handle).Add(row.places.value).Add(row.zones.size()).Add(row.labels);
    hasher.Add(row.claim_uid).Add(row.capacity).Add(row.modes).Add(row.block);
    hasher.Add(row.available).Add(row.deleted);
  }
  hasher.Add(classes_.size());
  for (const auto& [name, row] : classes_) {
    add_name(name);
    hasher.Add(row.provisioner.value).Add(row.provisions).Add(row.waits).Add(row.places.value);
  }
  hasher.Add(drivers_.size());
  for (const auto& [name, row] : drivers_) hasher.Add(name.value).Add(row.tells_capacity);
  hasher.Add(limits_.size());
  for (const auto& [name, row] : limits_) {
    hasher.Add(name.value).Add(row.drivers.size());
    for (const AttachLimit& limit : row.drivers) hasher.Add(limit.driver.value).Add(limit.count);
  }
  hasher.Add(capacities_.size());
  for (const auto& [name, row] : capacities_) {
    hasher.Add(name.value).Add(row.storage_class.value).Add(row.nodes.value);
    hasher.Add(row.most.value_or(-1));
  }
  hasher.Add(attachments_.size());
  for (const auto& [name, row] : attachments_) {
    hasher.Add(name.value).Add(row.node.value).Add(row.driver.value).Add(row.volume.value);
  }
  hasher.Add(moved_.size());
  for (const NameId name : moved_) add_name(name);
}

}  // namespace berth::model
