#include "place/volumes.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace berth::place {
namespace {

using model::NameId;
using model::NodeId;
using model::PodVolume;
using model::ReasonKind;
using model::Verdict;
using model::VolumeKind;

constexpr uint64_t BitOf(ReasonKind kind) {
  return uint64_t{1} << (static_cast<uint32_t>(kind) -
                         static_cast<uint32_t>(ReasonKind::kVolumeNode));
}

Verdict Barred(ReasonKind kind, NameId name, NameId other = {}) {
  return {.kind = kind, .unresolvable = true, .name = name, .other = other};
}

bool IsBoundTo(const model::Volume& volume, const model::VolumeClaim& claim, NameId name) {
  return volume.claim == name && (volume.claim_uid.empty() || volume.claim_uid == claim.uid);
}

// A node without any of them is of every zone, as upstream.
constexpr std::string_view kZoneLabels[] = {
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
// By what a node may say the same as by the first two.
constexpr std::string_view kNewZoneLabels[] = {"topology.kubernetes.io/zone",
                                               "topology.kubernetes.io/region"};

}  // namespace

VolumeQuery::VolumeQuery(const model::State& state, model::VolumeListId volumes,
                         const model::Viewer* viewer, const model::ProfileRules& rules)
    : state_(state),
      table_(state.volumes()),
      viewer_(viewer),
      rules_(rules),
      volumes_(ListOf(volumes)) {
  if (!any()) return;
  bar_ = FindBar();
  if (!rules_.filters(model::OptionalFilter::kNodeVolumeLimits)) return;
  for (const PodVolume& volume : volumes_) {
    if (!model::IsClaim(volume.kind)) continue;
    const auto what = table_.AttachableOf(volume.name);
    if (what && std::ranges::find(attachable_, *what) == attachable_.end())
      attachable_.push_back(*what);
  }
}

std::span<const PodVolume> VolumeQuery::ListOf(model::VolumeListId list) const {
  return list.valid() ? state_.vocabulary().volume_lists.View(list) : std::span<const PodVolume>();
}

// In the order of upstream's plugins: VolumeRestrictions, NodeVolumeLimits, VolumeBinding,
// VolumeZone. Each of them asks for the claims, two for those of ephemeral volumes, too.
Verdict VolumeQuery::FindBar() {
  const bool restricts = rules_.filters(model::OptionalFilter::kVolumeRestrictions);
  const bool limits = rules_.filters(model::OptionalFilter::kNodeVolumeLimits);
  const bool binds = rules_.filters(model::OptionalFilter::kVolumeBinding);
  const bool zones = rules_.filters(model::OptionalFilter::kVolumeZone);
  if (!restricts && !limits && !binds && !zones) return {};
  for (const PodVolume& volume : volumes_) {
    if (volume.kind != VolumeKind::kClaim) continue;
    const VolumeClaim* claim = table_.claim(volume.name);
    if (claim == nullptr) return Barred(ReasonKind::kClaimMissing, volume.name);
    if ((claim->modes & model::kReadWriteOncePod) != 0 && !IsWanted(volume.name) && restricts)
      wanted_.push_back(volume.name);
  }
  if (limits || binds) {
    if (Verdict verdict = FindClaims(binds); !verdict.fits()) return verdict;
  }
  if (Verdict verdict = binds ? Sort() : Verdict(); !verdict.fits()) return verdict;
  return zones ? FindZones() : Verdict();
}

// Whether all claims are there, and those of ephemeral volumes the pod's own; what is to be bound
// mustn't be on its way out either.
Verdict VolumeQuery::FindClaims(bool binds) const {
  for (const PodVolume& volume : volumes_) {
    if (!model::IsClaim(volume.kind)) continue;
    const VolumeClaim* claim = table_.claim(volume.name);
    if (claim == nullptr) return Barred(ReasonKind::kClaimAwaited, volume.name);
    if (binds && claim->lost) return Barred(ReasonKind::kClaimLost, volume.name, claim->volume);
    if (binds && claim->deleted) return Barred(ReasonKind::kClaimDeleted, volume.name);
    const bool own = volume.kind == VolumeKind::kOwnClaim;
    if (own && claim->controller != state_.NameOf(volume.pod))
      return Barred(ReasonKind::kClaimForeign, volume.name, volume.volume);
  }
  return {};
}

// Which claims have their volumes, and which get them where the pod goes.
Verdict VolumeQuery::Sort() {
  for (const PodVolume& volume : volumes_) {
    if (!model::IsClaim(volume.kind)) continue;
    const VolumeClaim* claim = table_.claim(volume.name);
    if (claim->bound) {
      bound_.push_back({.volume = table_.volume(claim->volume)});
      continue;
    }
    if (!WaitsForPods(*claim) || claim->volume.valid())
      return Barred(ReasonKind::kClaimUnbound, volume.name);
    unbound_.push_back({.claim = claim, .name = volume.name});
  }
  for (const Unbound& one : unbound_) {
    if (one.claim->selected_node.valid()) continue;
    FindVolumes(to_match_.emplace_back(Open{.unbound = one, .meant = {}, .free = {}}));
  }
  std::ranges::stable_sort(to_match_, {},
                           [](const Open& one) { return one.unbound.claim->request.value_or(0); });
  if (!to_match_.empty()) decided_ = FindDecided();
  return {};
}

// A claim without a volume passes if it waits for its pod: where VolumeBinding acts no other comes
// here.
Verdict VolumeQuery::FindZones() {
  for (const PodVolume& volume : volumes_) {
    if (volume.kind != VolumeKind::kClaim) continue;
    const VolumeClaim& claim = *table_.claim(volume.name);
    if (!claim.volume.valid()) {
      if (!WaitsForPods(claim)) return Barred(ReasonKind::kClaimUnbound, volume.name);
      continue;
    }
    const model::Volume* row = table_.volume(claim.volume);
    if (row == nullptr) return Barred(ReasonKind::kVolumeMissing, claim.volume);
    if (!row->zones.empty()) zoned_.push_back(row);
  }
  return {};
}

bool VolumeQuery::WaitsForPods(const VolumeClaim& claim) const {
  const model::StorageClass* its_class = table_.storage_class(claim.storage_class);
  return its_class != nullptr && its_class->waits;
}

bool VolumeQuery::IsWanted(NameId claim) const {
  return std::ranges::find(wanted_, claim) != wanted_.end();
}

Verdict VolumeQuery::Filter(NodeId n) const {
  if (Verdict verdict = InUse(n); !verdict.fits()) return verdict;
  return Storage(n);
}

// ---- What others use ---------------------------------------------------------------------------

void VolumeQuery::Attach(Room& room, const model::Attachable& what, int by) const {
  const auto at = std::ranges::find(room.attached, what, &Attached::what);
  if (at != room.attached.end()) {
    at->uses += static_cast<uint32_t>(by);
  } else if (by > 0) {
    room.attached.push_back({.what = what, .uses = static_cast<uint32_t>(by)});
  }
}

void VolumeQuery::ChangeOne(Room& room, const PodVolume& volume, int by) const {
  if (model::IsClaim(volume.kind)) {
    if (volume.kind == VolumeKind::kClaim && IsWanted(volume.name)) room.claims += by;
    if (!room.limited) return;
    if (const auto what = table_.AttachableOf(volume.name)) Attach(room, *what, by);
    return;
  }
  if (!rules_.filters(model::OptionalFilter::kVolumeRestrictions)) return;
  for (const PodVolume& own : volumes_) {
    if (model::DisksConflict(own, volume)) room.disks += by;
  }
}

VolumeQuery::Room VolumeQuery::RoomOf(NodeId n, model::Ledger::PortView view) const {
  const bool future = view == model::Ledger::PortView::kFuture;
  const model::VolumeIndex& index = state_.ledger().volume_uses();
  Room room;
  room.limited = !attachable_.empty() && table_.limits(state_.nodes().name(n)) != nullptr;
  if (room.limited) {
    for (const auto& [name, attachment] : table_.attachments(state_.nodes().name(n))) {
      const auto what = table_.AttachableOf(attachment);
      if (!what) continue;
      Attach(room, *what, +1);
      const auto at = std::ranges::find(room.attached, *what, &Attached::what);
      at->told = true;
      --at->uses;
    }
  }
  for (const model::VolumeIndex::Use& use : index.On(n)) {
    const uint32_t uses = use.held + (future ? 0 : use.releasing);
    if (uses > 0) ChangeOne(room, use.volume, static_cast<int>(uses));
  }
  // Each use counts, wherever it is: none may be left.
  room.claims = 0;
  for (const NameId claim : wanted_) room.claims += UsesAnywhere(claim, future);
  return room;
}

VolumeQuery::Room VolumeQuery::RoomOfUpstream(NodeId n) const {
  Room room = RoomOf(n, model::Ledger::PortView::kNow);
  room.claims = 0;
  for (const NameId claim : wanted_) room.claims += std::min(UsesAnywhere(claim, false), 1);
  if (viewer_ != nullptr) AddPromised(n, room);
  return room;
}

VolumeQuery::Room VolumeQuery::RoomInTheEnd(NodeId n) const {
  Room room = RoomOf(n, model::Ledger::PortView::kFuture);
  if (viewer_ != nullptr) AddPromised(n, room);
  return room;
}

// In the end, too: who leaves one node may be another's.
int32_t VolumeQuery::UsesAnywhere(NameId claim, bool future) const {
  const model::VolumeIndex& index = state_.ledger().volume_uses();
  const PodVolume key{.kind = VolumeKind::kClaim, .name = claim};
  int32_t count = 0;
  for (const auto& entry : index.UsersOf(claim)) {
    const auto uses = index.On(entry.first);
    const auto at = std::ranges::lower_bound(uses, key, {}, &model::VolumeIndex::Use::volume);
    if (at == uses.end() || at->volume != key) continue;
    count += static_cast<int32_t>(at->held + (future ? 0 : at->releasing));
  }
  return count;
}

void VolumeQuery::Change(Room& room, model::VolumeListId volumes, int sign) const {
  for (const PodVolume& volume : ListOf(volumes)) ChangeOne(room, volume, sign);
}

// The pod is tried beside who is promised the node and without, as upstream: what they share is
// attached once.
Verdict VolumeQuery::InUse(NodeId n) const {
  Room room = RoomOf(n, model::Ledger::PortView::kNow);
  if (Verdict verdict = InUse(n, room); !verdict.fits()) return verdict;
  if (viewer_ == nullptr || !state_.ledger().nodes().has_reserved(n.value)) return {};
  AddPromised(n, room);
  return InUse(n, room);
}

void VolumeQuery::AddPromised(NodeId n, Room& room) const {
  const model::Ledger& ledger = state_.ledger();
  const auto in_use = room.claims;
  for (model::ClaimId id = ledger.nodes().first_reserved(n.value); id.valid();
       id = ledger.claim(id).next_in_account) {
    const model::Claim& claim = ledger.claim(id);
    if (claim.owner == viewer_->owner || claim.priority < viewer_->priority) continue;
    Change(room, ledger.volume_uses().VolumesOf(claim.owner), +1);
  }
  // Upstream skips that filter where no disk is asked for and no claim is in use
  // (docs/DEVIATIONS.md).
  const bool disks = std::ranges::any_of(
      volumes_, [](const PodVolume& volume) { return !model::IsClaim(volume.kind); });
  if (state_.compat() && !disks && in_use == 0) room.claims = 0;
}

Verdict VolumeQuery::InUse(NodeId n, const Room& room) const {
  if (room.disks > 0) return {.kind = ReasonKind::kDiskConflict};
  if (room.claims > 0) return {.kind = ReasonKind::kClaimInUse};
  if (ExceedsLimit(n, room)) return {.kind = ReasonKind::kVolumeLimit};
  return {};
}

bool VolumeQuery::ExceedsLimit(NodeId n, const Room& room) const {
  if (attachable_.empty()) return false;
  const model::AttachLimits* limits = table_.limits(state_.nodes().name(n));
  if (limits == nullptr) return false;
  // Upstream takes what is attached and no pod there uses for another, were it the pod's own
  // (docs/DEVIATIONS.md).
  const auto is_there = [&](const model::Attachable& what) {
    const auto at = std::ranges::find(room.attached, what, &Attached::what);
    return at != room.attached.end() && (at->uses > 0 || (at->told && !state_.compat()));
  };
  return std::ranges::any_of(limits->drivers, [&](const model::AttachLimit& limit) {
    const int64_t more = std::ranges::count_if(attachable_, [&](const model::Attachable& what) {
      return what.driver == limit.driver && !is_there(what);
    });
    const int64_t there = std::ranges::count_if(room.attached, [&](const Attached& one) {
      return one.what.driver == limit.driver && (one.uses > 0 || one.told);
    });
    return more > 0 && there + more > limit.count;
  });
}

// ---- Where volumes are, or may be made ---------------------------------------------------------

bool VolumeQuery::Matches(model::SelectorId selector, NodeId n) const {
  const model::Vocabulary& v = state_.vocabulary();
  if (v.selectors.materialised(selector)) return v.selectors.Test(selector, n);
  return v.selectors.Matches(selector, state_.labels().View(state_.nodes().labels(n)),
                             state_.nodes().name(n), v.names);
}

Verdict VolumeQuery::Storage(NodeId n) const {
  if (const uint64_t reasons = Binding(n); reasons != 0) {
    const auto first = static_cast<uint32_t>(std::countr_zero(reasons));
    return {.kind = static_cast<ReasonKind>(static_cast<uint32_t>(ReasonKind::kVolumeNode) + first),
            .unresolvable = true,
            .lacking = reasons};
  }
  if (!OfZone(n)) return {.kind = ReasonKind::kVolumeZone, .unresolvable = true};
  return {};
}

// VolumeBinding's reasons, as bits of a verdict. A claim that was put on a node gets a volume made
// there; one that finds no volume has one made; the first that can't decides.
uint64_t VolumeQuery::Binding(NodeId n) const {
  uint64_t reasons = 0;
  for (const Bound& one : bound_) {
    if (one.volume == nullptr) {
      reasons = BitOf(ReasonKind::kVolumeGone);
      break;
    }
    if (!one.volume->places.valid() || Matches(one.volume->places, n)) continue;
    reasons = BitOf(ReasonKind::kVolumeNode);
    break;
  }
  const std::optional<std::vector<Pair>> pairs = PairsOn(n);
  if (!pairs) return reasons | BitOf(ReasonKind::kNoVolume);
  for (const Pair& pair : *pairs) {
    if (pair.volume.valid()) continue;
    const VolumeClaim& claim = *pair.claim->claim;
    const model::StorageClass& its_class = *table_.storage_class(claim.storage_class);
    if (!its_class.provisions || (its_class.places.valid() && !Matches(its_class.places, n)))
      return reasons | BitOf(ReasonKind::kNoVolume);
    if (!HasStorage(*pair.claim, its_class, n)) return reasons | BitOf(ReasonKind::kNoStorage);
  }
  return reasons;
}

std::vector<VolumeQuery::Decided> VolumeQuery::FindDecided() const {
  std::vector<Decided> decided;
  const model::Ledger& ledger = state_.ledger();
  for (const auto& [pod, given] : ledger.volume_uses().given()) {
    // It is given before the claim is there.
    const model::ClaimId id = ledger.NodeClaimOf(pod);
    if (!id.valid()) continue;
    const NodeId node = ledger.claim(id).account.node();
    for (const Given& one : given) decided.push_back({.given = one, .node = node});
  }
  return decided;
}

// A pod that shares a claim whose volume is decided.
bool VolumeQuery::MayHave(const Decided& decided, NodeId n) const {
  if (!decided.given.volume.valid()) return decided.node == n;
  const model::SelectorId places = table_.volume(decided.given.volume)->places;
  return !places.valid() || Matches(places, n);
}

// Nothing: a claim was put on another node.
std::optional<std::vector<VolumeQuery::Pair>> VolumeQuery::PairsOn(NodeId n) const {
  std::vector<Pair> pairs;
  for (const Unbound& one : unbound_) {
    if (!one.claim->selected_node.valid()) continue;
    if (one.claim->selected_node != state_.nodes().name(n)) return std::nullopt;
    pairs.push_back({.claim = &one, .volume = {}});
  }
  std::vector<NameId> taken;
  for (const Decided& decided : decided_) taken.push_back(decided.given.volume);
  const auto claim_of = [](const Decided& decided) { return decided.given.claim; };
  for (const Open& one : to_match_) {
    const auto at = std::ranges::find(decided_, one.unbound.name, claim_of);
    if (at != decided_.end()) {
      if (!MayHave(*at, n)) return std::nullopt;
      pairs.push_back({.claim = &one.unbound, .volume = at->given.volume});
      continue;
    }
    const std::optional<NameId> volume = Match(one, n, taken);
    if (volume) taken.push_back(*volume);
    pairs.push_back({.claim = &one.unbound, .volume = volume.value_or(NameId{})});
  }
  return pairs;
}

std::optional<std::vector<VolumeQuery::Given>> VolumeQuery::GivenOn(NodeId n) const {
  if (Binding(n) != 0) return std::nullopt;
  std::vector<Given> given;
  const std::optional<std::vector<Pair>> pairs = PairsOn(n);
  for (const Pair& pair : *pairs) {
    // A claim that two of its volumes name gets one.
    if (std::ranges::find(given, pair.claim->name, &Given::claim) != given.end()) continue;
    given.push_back({.claim = pair.claim->name, .volume = pair.volume});
  }
  return given;
}

bool VolumeQuery::Suits(const model::Volume& volume, const VolumeClaim& claim) {
  return volume.capacity >= claim.request.value_or(0) && volume.block == claim.block &&
         volume.attributes_class == claim.attributes_class && !volume.deleted;
}

// Looked for once, not for each node: a class may have thousands, most of which are others'.
void VolumeQuery::FindVolumes(Open& one) const {
  const VolumeClaim& claim = *one.unbound.claim;
  for (const NameId name : table_.volumes_of(claim.storage_class)) {
    const model::Volume& volume = *table_.volume(name);
    if (volume.claim.valid()) {
      if (IsBoundTo(volume, claim, one.unbound.name) && Suits(volume, claim))
        one.meant.push_back(name);
      continue;
    }
    const bool fits = volume.available && Suits(volume, claim) && !claim.selects_nothing &&
                      (claim.modes & volume.modes) == claim.modes &&
                      (claim.modes & model::kOtherMode) == 0 &&
                      (!claim.selector || model::MeetsAll(*claim.selector, volume.labels));
    if (fits) one.free.push_back(name);
  }
  const auto before = [&](NameId a, NameId b) { return state_.NameOf(a) < state_.NameOf(b); };
  std::ranges::sort(one.meant, before);
  std::ranges::sort(one.free, [&](NameId a, NameId b) {
    const model::Amount least = table_.volume(a)->capacity;
    const model::Amount most = table_.volume(b)->capacity;
    return least != most ? least < most : before(a, b);
  });
}

// Where one that names the claim can't be used no other is taken. Upstream takes any of several of
// a size; here it is the first by name.
std::optional<NameId> VolumeQuery::Match(const Open& one, NodeId n,
                                         std::span<const NameId> taken) const {
  const auto is_free = [&](NameId name) { return std::ranges::find(taken, name) == taken.end(); };
  const auto is_there = [&](NameId name) {
    const model::SelectorId places = table_.volume(name)->places;
    return !places.valid() || Matches(places, n);
  };
  if (const auto meant = std::ranges::find_if(one.meant, is_free); meant != one.meant.end())
    return is_there(*meant) ? std::optional(*meant) : std::nullopt;
  const auto free =
      std::ranges::find_if(one.free, [&](NameId name) { return is_free(name) && is_there(name); });
  return free != one.free.end() ? std::optional(*free) : std::nullopt;
}

bool VolumeQuery::HasStorage(const Unbound& one, const model::StorageClass& storage_class,
                             NodeId n) const {
  const model::StorageDriver* driver = table_.driver(storage_class.provisioner);
  if (!one.claim->request || driver == nullptr || !driver->tells_capacity) return true;
  return std::ranges::any_of(table_.capacities(), [&](const auto& entry) {
    const model::StorageCapacity& capacity = entry.second;
    return capacity.storage_class == one.claim->storage_class && capacity.most &&
           *capacity.most >= *one.claim->request && capacity.nodes.valid() &&
           Matches(capacity.nodes, n);
  });
}

bool VolumeQuery::OfZone(NodeId n) const {
  if (zoned_.empty()) return true;
  const auto label_of = [&](std::string_view key) {
    const NameId id = state_.vocabulary().names.Find(key);
    return id.valid() ? state_.LabelOf(n, id) : NameId{};
  };
  if (std::ranges::none_of(kZoneLabels,
                           [&](std::string_view key) { return label_of(key).valid(); }))
    return true;
  return std::ranges::all_of(zoned_, [&](const model::Volume* volume) {
    return std::ranges::all_of(volume->zones, [&](const model::VolumeZone& zone) {
      NameId value = state_.LabelOf(n, zone.key);
      for (size_t i = 0; i < std::size(kNewZoneLabels) && !value.valid(); ++i) {
        if (state_.NameOf(zone.key) == kZoneLabels[i]) value = label_of(kNewZoneLabels[i]);
      }
      return value.valid() && std::ranges::binary_search(zone.values, value);
    });
  });
}

std::optional<std::vector<model::GivenVolume>> VolumesGivenOn(const model::State& state,
                                                              model::PodId pod, NodeId node) {
  const model::Pod& row = state.pods().at(pod);
  const VolumeQuery query(state, row.pin.volumes, nullptr, state.RulesOf(row.class_id));
  if (!query.any()) return std::vector<model::GivenVolume>();
  if (!query.bar().fits()) return std::nullopt;
  return query.GivenOn(node);
}

}  // namespace berth::place
