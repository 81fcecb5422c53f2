#include "model/state.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "model/backoff.h"

namespace berth::model {
namespace {

template <typename Id>
bool Assign(Id& column, Id value) {
  return std::exchange(column, value) != value;
}

void NoteNomination(Pod& pod, NameId nominated, bool believed) {
  const NameId before = std::exchange(pod.nominated, believed ? nominated : NameId{});
  if (before != nominated && before == pod.void_node) pod.void_node = NameId{};
  if (pod.promised == nominated) pod.promised = NameId{};
}

void NoteJob(Pod& pod, const PodUpsert& facts, StringTable<OwnerId>& uids) {
  const OwnerId job = facts.job.empty() ? OwnerId{} : uids.Acquire(facts.job);
  const OwnerId before = std::exchange(pod.job, job);
  if (before.valid()) uids.Release(before);
  pod.pod_set = facts.pod_set;
}

// Cpu and memory as they are scored by default.
bool AreUsual(const std::vector<ScoredResource>& resources) {
  return resources.size() == 2 && resources[0].weight == resources[1].weight &&
         std::max(resources[0].resource, resources[1].resource) == kMemory &&
         std::min(resources[0].resource, resources[1].resource) == kCpu;
}

ScoredResource InternScored(std::string_view name, int64_t weight, Vocabulary& vocabulary) {
  const Result<ResourceId> id = vocabulary.resources.Intern(name);
  CHECK(id.has_value());
  return {.resource = *id, .weight = weight};
}

// Behind the default one.
std::vector<Profile> InternProfiles(const std::vector<ProfileOptions>& options,
                                    Vocabulary& vocabulary) {
  std::vector<Profile> profiles(1);
  for (const ProfileOptions& of : options) {
    Profile profile{.scheduler_name = vocabulary.names.Intern(of.scheduler_name),
                    .rules = of.rules};
    for (const ProfileOptions::Resource& one : of.fit)
      profile.fit.push_back(InternScored(one.name, one.weight, vocabulary));
    for (const std::string& name : of.balanced)
      profile.balanced.push_back(InternScored(name, 1, vocabulary));
    if (of.rules.strategy == FitStrategy::kLeastAllocated && AreUsual(profile.fit))
      profile.fit.clear();
    if (AreUsual(profile.balanced)) profile.balanced.clear();
    if (of.rules.strategy != FitStrategy::kLeastAllocated && profile.fit.empty())
      profile.fit = {{.resource = kCpu}, {.resource = kMemory}};
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace

State::State(const Options& options)
    : nodes_(options.salt),
      nodes_max_(options.nodes_max),
      compat_(options.compat),
      backoff_(options.backoff),
      profiles_(InternProfiles(options.profiles, vocabulary_)),
      pods_max_(options.pods_max),
      faults_(options.faults) {
  CHECK_LE(nodes_max_, limits::kNodesMax);
  CHECK_LE(pods_max_, limits::kPodsMax);
  CHECK_GT(backoff_.initial, Duration{});
  CHECK_LE(backoff_.initial, backoff_.max);
  FitLedger();
}

const Profile& State::FindProfile(ClassId class_id) const {
  const NameId name = vocabulary_.classes.at(class_id).profile;
  const auto found =
      std::ranges::find(profiles_.begin() + 1, profiles_.end(), name, &Profile::scheduler_name);
  return found != profiles_.end() ? *found : profiles_.front();
}

bool State::HasRoomFor(const NodeUpsert& facts) const {
  if (nodes_.present_count() < nodes_max_) return true;
  const NodeId known = FindNode(facts.name);
  return known.valid() && nodes_.present(known);
}

bool State::HasRoomFor(const PodUpsert& facts) const {
  // One of its name goes when it comes.
  return pods_.live() < pods_max_ || FindPod(facts.uid).valid() || FindPodByKey(facts.key).valid();
}

bool State::HasRoomFor(const StorageFact& facts) const { return volumes_.HasRoomFor(facts); }

bool State::HasRoomForFact(const Delta& delta) const {
  return std::visit(
      [&](const auto& facts) {
        if constexpr (requires { HasRoomFor(facts); }) {
          return HasRoomFor(facts);
        } else {
          return true;
        }
      },
      delta);
}

void State::Apply(const Delta& delta) {
  changed_pods_.clear();
  changed_groups_.clear();
  changed_workloads_.clear();
  changed_holders_.clear();
  changed_queues_.clear();
  relieved_queues_.clear();
  ApplyFact(delta);
  NoteMembers();
  NoteSlots();
  if (unsettled_.empty() && to_come_.empty()) return;
  Transaction t = Begin();
  Commit(t, Cause::kObserved);
}

void State::ApplyFact(const Delta& delta) {
  if (const auto* facts = std::get_if<NodeUpsert>(&delta)) return ApplyNode(*facts);
  if (const auto* facts = std::get_if<NodeRemove>(&delta)) return RemoveNode(*facts);
  if (const auto* facts = std::get_if<PodUpsert>(&delta)) return ApplyPod(*facts);
  if (const auto* facts = std::get_if<PodRemove>(&delta)) return RemovePod(*facts);
  if (const auto* facts = std::get_if<BindOutcome>(&delta)) return ApplyOutcome(*facts);
  if (const auto* facts = std::get_if<BindRead>(&delta)) return ApplyRead(*facts);
  if (const auto* facts = std::get_if<BudgetUpsert>(&delta)) return ApplyBudget(*facts);
  if (const auto* facts = std::get_if<PreemptionRefused>(&delta)) return ApplyRefused(*facts);
  if (const auto* facts = std::get_if<NominationStands>(&delta)) return ApplyStands(*facts);
  if (const auto* facts = std::get_if<EvictionRefused>(&delta)) return ApplyRefused(*facts);
  if (const auto* facts = std::get_if<QueueUpsert>(&delta)) return ApplyQueue(*facts);
  if (const auto* facts = std::get_if<QueueRemove>(&delta)) return RemoveQueue(*facts);
  if (const auto* facts = std::get_if<FlavorUpsert>(&delta)) return ApplyFlavor(*facts);
  if (const auto* facts = std::get_if<FlavorRemove>(&delta)) return RemoveFlavor(*facts);
  if (const auto* facts = std::get_if<TopologyUpsert>(&delta)) return ApplyTopology(*facts);
  if (const auto* facts = std::get_if<TopologyRemove>(&delta)) return RemoveTopology(*facts);
  if (const auto* facts = std::get_if<GroupUpsert>(&delta)) return ApplyGroup(*facts);
  if (const auto* facts = std::get_if<GroupRemove>(&delta)) return RemoveGroup(*facts);
  if (const auto* facts = std::get_if<LocalQueueUpsert>(&delta)) return ApplyLocalQueue(*facts);
  if (const auto* facts = std::get_if<LocalQueueRemove>(&delta)) return RemoveLocalQueue(*facts);
  if (const auto* facts = std::get_if<WorkloadUpsert>(&delta)) return ApplyWorkload(*facts);
  if (const auto* facts = std::get_if<WorkloadRemove>(&delta)) return RemoveWorkload(*facts);
  if (const auto* facts = std::get_if<ReservationOutcome>(&delta)) return ApplyOutcome(*facts);
  if (const auto* facts = std::get_if<ReservationRead>(&delta)) return ApplyRead(*facts);
  if (const auto* facts = std::get_if<NamespaceUpsert>(&delta))
    return SetNamespace(facts->name, PodLabelsText(facts->name, facts->labels));
  if (const auto* facts = std::get_if<NamespaceRemove>(&delta))
    return SetNamespace(facts->name, {});
  if (const auto* facts = std::get_if<StorageFact>(&delta)) return ApplyStorage(*facts);
  if (const auto* facts = std::get_if<ExternalVerdict>(&delta)) return ApplyVerdict(*facts);
  budgets_.Remove(std::get<BudgetRemove>(delta));
}

// ---- Nodes ---------------------------------------------------------------------------------

void State::FitLedger() {
  ledger_.Resize(vocabulary_.resources.size(), nodes_.size(), ledger_.tree().size());
}

NodeId State::RowOfNode(NameId name) {
  const NodeId row = nodes_.FindOrAddRow(name);
  FitLedger();
  vocabulary_.selectors.Resize(nodes_.size());
  return row;
}

void State::ApplyNode(const NodeUpsert& facts) {
  CHECK(HasRoomFor(facts));
  const NodeId n = RowOfNode(vocabulary_.names.Intern(facts.name));
  const uint32_t row = n.value;
  const OwnerId uid = uids_.Acquire(facts.uid);
  TouchKinds kinds = 0;
  const bool other = nodes_.present_[row] != 0 && nodes_.uid_[row] != uid;
  if (other) EndReservations(n);
  if (nodes_.present_[row] == 0 || other) {
    kinds |= kTouchAdded;
    nodes_.present_count_ += other ? 0 : 1;
    nodes_.present_[row] = 1;
  }
  const OwnerId uid_before = std::exchange(nodes_.uid_[row], uid);
  if (uid_before.valid()) uids_.Release(uid_before);

  std::vector<Label> labels = facts.labels;
  std::ranges::sort(labels);
  const LabelListId labels_before = std::exchange(nodes_.labels_[row], labels_.Acquire(labels));
  const bool relabelled = labels_before != nodes_.labels_[row];
  if (labels_before.valid()) labels_.Release(labels_before);
  if (relabelled || (kinds & kTouchAdded) != 0) {
    kinds |= kTouchLabels;
    MatchSelectors(n);
  }
  std::vector<NameId> features = facts.features;
  std::ranges::sort(features);
  if (Assign(nodes_.taints_[row], vocabulary_.taints.Intern(facts.taints))) kinds |= kTouchTaints;
  if ((kinds & (kTouchLabels | kTouchTaints)) != 0) SpreadOver(n);
  if ((kinds & kTouchLabels) != 0) RelabelForAffinities(n);
  if (Assign(nodes_.features_[row], vocabulary_.name_lists.Intern(features)))
    kinds |= kTouchFeatures;
  const bool cordoned =
      facts.unschedulable || (faults_.miss_uncordon && !other && nodes_.unschedulable_[row] != 0);
  if (Assign(nodes_.unschedulable_[row], static_cast<uint8_t>(cordoned ? 1 : 0))) {
    kinds |= kTouchUnschedulable;
  }
  if (Assign(nodes_.ready_[row], static_cast<uint8_t>(facts.ready ? 1 : 0))) kinds |= kTouchReady;
  if (Assign(nodes_.gpu_model_[row], facts.gpu_model)) kinds |= kTouchDevices;
  images_.Set(n, facts.images);
  SetAmounts(n, facts, kinds);
  if (kinds != 0) touches_.Add(n, kinds);
  if ((kinds & kTouchAdded) != 0) {
    for (const PodId pod : homeless_.Take(nodes_.name(n))) SettleClaims(pod);
  }
  if ((kinds & (kTouchAdded | kTouchLabels)) != 0) GiveSlotsOn(n);
}

void State::SetAmounts(NodeId node, const NodeUpsert& facts, TouchKinds& kinds) {
  // Names may have been interned since the last fact, as by a pod that was refused.
  FitLedger();
  const AccountTable& table = ledger_.nodes();
  std::vector<Amount> offered(vocabulary_.resources.size());
  for (const ResourceAmount& a : facts.allocatable) {
    CHECK_LT(a.resource.value, offered.size());
    offered[a.resource.value] = std::clamp(a.amount, Amount{0}, limits::kAmountMax);
  }
  for (uint32_t r = 0; r < offered.size(); ++r) {
    const Amount before = table.capacity(ResourceId{r}, node.value);
    if (before == offered[r]) continue;
    ledger_.SetCapacity(node, ResourceId{r}, offered[r]);
    kinds |= offered[r] > before ? kTouchFreed : kTouchTaken;
  }
  const auto devices = static_cast<uint8_t>(
      std::min<Amount>(offered[kGpuMilli.value] / kDeviceMilli, Amount{kDevicesMax}));
  if (Assign(nodes_.devices_count_[node.value], devices)) {
    ledger_.SetDevices(node, devices);
    kinds |= kTouchDevices;
  }
}

void State::RemoveNode(const NodeRemove& facts) {
  const NodeId n = FindNode(facts.name);
  if (!n.valid() || !nodes_.present(n)) return;
  if (!facts.uid.empty() && uids_.Find(facts.uid) != nodes_.uid(n)) return;
  EndReservations(n);
  const uint32_t row = n.value;
  while (faults_.drop_pods_with_their_node && ledger_.nodes().first_claim(row).valid()) {
    Transaction t = Begin();
    t.End(ledger_.nodes().first_claim(row));
    t.Commit(Cause::kNodeReplaced);
  }
  nodes_.present_[row] = 0;
  --nodes_.present_count_;
  uids_.Release(std::exchange(nodes_.uid_[row], OwnerId{}));
  if (nodes_.labels_[row].valid())
    labels_.Release(std::exchange(nodes_.labels_[row], LabelListId{}));
  nodes_.unschedulable_[row] = 0;
  nodes_.ready_[row] = 0;
  nodes_.taints_[row] = TaintListId{};
  nodes_.features_[row] = NameListId{};
  nodes_.gpu_model_[row] = NameId{};
  images_.Set(n, {});
  TouchKinds kinds = kTouchRemoved;
  SetAmounts(n, NodeUpsert{}, kinds);
  MatchSelectors(n);
  SpreadOver(n);
  RelabelForAffinities(n);
  touches_.Add(n, kTouchRemoved);
  DropGhost(n);
}

void State::DropGhost(NodeId node) {
  if (nodes_.used(node) && !nodes_.present(node) && ledger_.nodes().claims_count(node.value) == 0) {
    nodes_.FreeRow(node);
  }
}

void State::MatchSelectors(NodeId node) {
  const bool present = nodes_.present(node);
  for (const SelectorId id : vocabulary_.selectors.materialised_ids()) {
    vocabulary_.selectors.Set(
        id, node,
        present && vocabulary_.selectors.Matches(id, labels_.View(nodes_.labels(node)),
                                                 nodes_.name(node), vocabulary_.names));
  }
}

void State::MaterialiseSelector(SelectorId id) {
  if (!id.valid() || vocabulary_.selectors.materialised(id)) return;
  vocabulary_.selectors.Materialise(id, nodes_.size());
  for (uint32_t row = 0; row < nodes_.size(); ++row) {
    const NodeId n{row};
    if (!nodes_.used(n) || !nodes_.present(n)) continue;
    const auto labels = labels_.View(nodes_.labels(n));
    if (vocabulary_.selectors.Matches(id, labels, nodes_.name(n), vocabulary_.names)) {
      vocabulary_.selectors.Set(id, n, true);
    }
  }
}

void State::Materialise(ClassId class_id) {
  TrackSpread(class_id);
  if (class_id.value >= materialised_classes_.size())
    materialised_classes_.resize(vocabulary_.classes.size());
  if (std::exchange(materialised_classes_[class_id.value], uint8_t{1}) != 0) return;
  const ClassSpec& spec = vocabulary_.classes.at(class_id);
  MaterialiseSelector(spec.selector);
  MaterialiseSelector(spec.added);
  if (!spec.preferences.valid()) return;
  for (const Preference& p : vocabulary_.preferences.View(spec.preferences))
    MaterialiseSelector(p.term);
}

NameId State::LabelOf(NodeId node, NameId key) const {
  if (!nodes_.labels(node).valid()) return {};
  const std::span<const Label> labels = labels_.View(nodes_.labels(node));
  const auto found = std::ranges::lower_bound(labels, key, {}, &Label::key);
  return found != labels.end() && found->key == key ? found->value : NameId{};
}

// ---- Pods ----------------------------------------------------------------------------------

OwnerId State::OwnerOf(PodId pod) const {
  if (faults_.ledger_by_name) return uids_.Find(keys_.View(pods_.at(pod).key));
  return pods_.at(pod).uid;
}

namespace {

// Whether one that waits for a node waits for the same: its labels count as far as its class says
// (ClassSpec::selected_by). Most changes of such a pod are what the scheduler wrote into its
// status.
bool WaitsAsBefore(const Pod& before, const Pod& pod) {
  const auto asks = [](const Pod& p) {
    return std::tuple(p.class_id, p.charge, p.charge_scoring, p.pin, p.node, p.nominated,
                      p.creation, p.group, p.role, p.job, p.pod_set, p.priority, p.looks,
                      p.asks_about_victims);
  };
  const auto stands = [](const Pod& p) {
    return std::tuple(p.ours, p.gated, p.terminating, p.terminal, p.preempts, p.promised, p.slot,
                      p.void_node, p.released, p.overdue, p.disrupted);
  };
  return !pod.node.valid() && asks(before) == asks(pod) && stands(before) == stands(pod);
}

void NoteEnd(Pod& pod, const PodUpsert& facts) {
  if (facts.terminating) pod.deletion_deadline = facts.deletion_deadline;
  if (facts.terminating && !pod.terminating) pod.overdue = false;
  pod.terminating = pod.terminating || facts.terminating;
  pod.terminal = pod.terminal || facts.terminal;
  pod.succeeded = pod.succeeded || facts.succeeded;
}

// What nothing else hangs on.
void TakeAsTold(const PodUpsert& facts, Pod& pod) {
  pod.creation = facts.creation;
  pod.priority = facts.priority;
  pod.ours = facts.ours;
  pod.gated = facts.gated;
  pod.preempts = facts.preempts;
}

}  // namespace

void State::ApplyPod(const PodUpsert& facts) {
  CHECK(HasRoomFor(facts));
  CHECK_LT(facts.class_id.value, vocabulary_.classes.size());
  FitLedger();
  PodId id = pods_.FindUid(uids_.Find(facts.uid));
  const bool known = id.valid();
  if (!known) {
    const PodId other = FindPodByKey(facts.key);
    // A replay of one that is long gone.
    if (other.valid() && facts.creation < pods_.at(other).creation) return;
    if (faults_.ledger_by_name) uids_.Intern(facts.key);
    // Before the other goes: its ids are not given again within one fact, so that who reads
    // changed_pods sees that it went.
    id = pods_.Add(uids_.Acquire(facts.uid), keys_.Acquire(facts.key));
    if (other.valid() && faults_.ledger_by_name) {
      pods_.Remove(other);
      changed_pods_.push_back(other);
    } else if (other.valid()) {
      DropPod(other, Cause::kOwnerReplaced);
    }
  }
  Pod& pod = pods_.mutable_at(id);
  const Pod before = pod;
  const NameId nominated =
      facts.nominated.empty() ? NameId{} : vocabulary_.names.Intern(facts.nominated);
  NoteNomination(pod, nominated, known || !faults_.forget_nominations);
  SetClass(id, facts);
  const ClassSpec& spec = vocabulary_.classes.at(pod.class_id);
  pod.charge = facts.charge.valid() ? facts.charge : spec.requests;
  pod.charge_scoring = facts.charge_scoring.valid() ? facts.charge_scoring : spec.scoring;
  if (pod.pin.volumes != facts.pin.volumes) {
    ledger_.SetVolumes(pod.uid, facts.pin.volumes,
                       facts.pin.volumes.valid() ? vocabulary_.volume_lists.View(facts.pin.volumes)
                                                 : std::span<const PodVolume>());
  }
  pod.pin = facts.pin;
  pod.pin.asker = facts.asks ? pod.uid : OwnerId{};
  pod.asks_about_victims = facts.asks && facts.asks_about_victims;
  if (Assign(pod.looks, facts.looks) || !facts.asks) verdicts_.Erase(pod.uid);
  TakeAsTold(facts, pod);
  // Whom an eviction on the node takes first depends on it.
  if (Assign(pod.disrupted, facts.disrupted)) TouchNodeOf(id, kTouchTaken);
  const KeyId group = facts.group.empty() ? KeyId{} : keys_.Acquire(facts.group);
  const KeyId group_before = std::exchange(pod.group, group);
  pod.role = facts.role;
  NoteJob(pod, facts, uids_);
  if (group != group_before) pod.released = false;
  // These never go back for one uid: what says otherwise is an older fact (D17).
  const bool waits_on = faults_.unmoved_by_others && known && !ClaimOf(id).valid();
  if (!facts.node.empty() && !waits_on) {
    pod.node = vocabulary_.names.Intern(facts.node);
    pod.devices = facts.devices;
  }
  if (facts.start != Instant{}) {
    // Whom an eviction on the node spares depends on it.
    if (pod.start != facts.start) TouchNodeOf(id, kTouchTaken);
    pod.start = facts.start;
  }
  NoteEnd(pod, facts);
  if (!known || !WaitsAsBefore(before, pod)) changed_pods_.push_back(id);
  SettleClaims(id);
  NoteMember(id);
  if (group != group_before && ClaimOf(id).valid()) {
    Transaction t = Begin();
    Share(t, id);
    Commit(t, Cause::kObserved);
  }
  if (group_before.valid()) keys_.Release(group_before);
}

// Nodes where the volumes of pods may count otherwise are touched.
void State::ApplyStorage(const StorageFact& fact) {
  std::set<NodeId> nodes;
  const auto add = [&] {
    for (const NameId claim : volumes_.ClaimsOf(fact)) {
      for (const auto& [node, users] : ledger_.volume_uses().UsersOf(claim)) nodes.insert(node);
    }
    for (const NameId name : volumes_.NodesOf(fact)) {
      if (const NodeId row = nodes_.Find(name); row.valid()) nodes.insert(row);
    }
  };
  add();
  if (!volumes_.Apply(fact)) return;
  add();
  for (const NodeId node : nodes) touches_.Add(node, kTouchVolumes);
}

bool State::VolumesMoved(VolumeListId list) const {
  if (!list.valid()) return false;
  const std::span<const PodVolume> volumes = vocabulary_.volume_lists.View(list);
  return volumes_.Moved(volumes) || ledger_.volume_uses().Moved(volumes);
}

void State::TakeMovedVolumes() {
  volumes_.TakeMoved();
  ledger_.mutable_volume_uses().TakeMoved();
}

void State::GiveVolumes(PodId pod, std::vector<GivenVolume> given) {
  ledger_.mutable_volume_uses().Give(OwnerOf(pod), std::move(given));
}

void State::TakeBackVolumes(PodId pod) {
  for (const GivenVolume& one : ledger_.mutable_volume_uses().TakeBack(OwnerOf(pod)))
    volumes_.NoteFreed(one.claim);
}

void State::TakeGivenVolumes() {
  for (const auto& [pod, given] : ledger_.mutable_volume_uses().TakeGiven()) {
    for (const GivenVolume& one : given) volumes_.NoteFreed(one.claim);
  }
}

// The claims of a pod as a function of what is known of it.
void State::SettleClaims(PodId id) {
  Pod& pod = pods_.mutable_at(id);
  const ClaimId claim = ClaimOf(id);
  if (pod.terminal || pod.terminating || pod.node.valid()) homeless_.Remove(id);
  if (pod.terminal || (pod.terminating && !pod.node.valid())) {
    EndClaims(id, pod.terminal ? Cause::kOwnerFinished : Cause::kOwnerTerminating);
    pod.write = WriteStage::kNone;
    pod.promised = pod.slot = NameId{};
    EndEviction(id);
    return;
  }
  if (pod.node.valid()) {
    pod.lost = {};
    return SettleBound(id, claim);
  }
  if (claim.valid() && ledger_.claim(claim).state != ClaimState::kReserved) {
    Claim resized = ledger_.claim(claim);
    resized.bundle = pod.charge;
    resized.scoring = pod.charge_scoring;
    resized.priority = pod.priority;
    SetLeaving(resized, id);
    return PutClaim(claim, resized);
  }
  SettleNomination(id, claim);
}

void State::SettleBound(PodId id, ClaimId claim) {
  Pod& pod = pods_.mutable_at(id);
  const NodeId node = RowOfNode(pod.node);
  // Bound elsewhere it leaves no room where it was to be evicted.
  if (claim.valid() && ledger_.claim(claim).account.node() != node) EndEviction(id);
  EndOverdue(id);
  pod.promised = pod.slot = pod.void_node = NameId{};
  const bool evicted = IsToLeave(id);
  const bool leaving = evicted || (pod.terminating && !pod.overdue);
  Claim bound{.owner = OwnerOf(id),
              .account = AccountId::OfNode(node),
              .bundle = pod.charge,
              .scoring = pod.charge_scoring,
              .devices = pod.devices,
              .priority = pod.priority,
              .claimant = ClaimantOf(id),
              .state = leaving ? ClaimState::kReleasing : ClaimState::kHeld,
              .why = pod.terminating ? ClaimWhy::kDeleting
                     : evicted       ? ClaimWhy::kEvicting
                                     : ClaimWhy::kBound};
  NodeId left;
  if (claim.valid()) {
    const Claim& before = ledger_.claim(claim);
    if (before.account != bound.account) left = before.account.node();
    // What we chose stands until the object says it, which an API server without the annotation
    // never does.
    if (bound.devices.none() && !left.valid()) bound.devices = before.devices;
  }
  PutClaim(claim, bound);
  if (left.valid()) DropGhost(left);
  pod.write = WriteStage::kNone;
  pod.attempts = pod.errors = 0;
}

void State::SettleNomination(PodId id, ClaimId claim) {
  Pod& pod = pods_.mutable_at(id);
  const NameId name = PromisedNode(pod);
  const NodeId node = name.valid() ? nodes_.Find(name) : NodeId{};
  const bool there = node.valid() && nodes_.present(node);
  if (name.valid() && !there) {
    homeless_.Put(id, name);
  } else {
    homeless_.Remove(id);
  }
  if (!there) return EndNodeClaim(id, Cause::kNominationCleared);
  pod.lost = {};
  const AccountId account = AccountId::OfNode(node);
  // Pods don't tell which devices were promised.
  const bool kept = claim.valid() && ledger_.claim(claim).account == account;
  const SlotTable::Place* place = slots_.PlaceOf(id);
  const DeviceSlots devices =
      place != nullptr && place->slot.node == name ? place->slot.devices : DeviceSlots{};
  PutClaim(claim,
           Claim{.owner = OwnerOf(id),
                 .account = account,
                 .bundle = pod.charge,
                 .scoring = pod.charge_scoring,
                 .devices = kept ? ledger_.claim(claim).devices : devices,
                 // What its workload was admitted with nobody takes, however important.
                 .priority = name == pod.slot ? std::numeric_limits<int32_t>::max() : pod.priority,
                 .account_uid = nodes_.uid(node),
                 .state = ClaimState::kReserved,
                 .why = ClaimWhy::kNominated});
}

void State::PutClaim(ClaimId existing, const Claim& claim) {
  if (existing.valid() && SameClaim(ledger_.claim(existing), claim)) return;
  Transaction t = Begin();
  if (existing.valid()) {
    ChangeClaim(t, existing, claim);
  } else {
    t.Add(claim);
    ShareOfOwner(t, claim.owner);
  }
  Commit(t, Cause::kObserved);
}

void State::EndNodeClaim(PodId pod, Cause cause) {
  const ClaimId id = ClaimOf(pod);
  if (!id.valid()) return;
  const NodeId left = ledger_.claim(id).account.node();
  Transaction t = Begin();
  EndClaim(t, id);
  Commit(t, cause);
  DropGhost(left);
}

// Its owner holds nothing any more: of the queue tree neither.
void State::EndClaims(PodId pod, Cause cause) {
  const ClaimId first = ledger_.first_of_owner(OwnerOf(pod));
  if (!first.valid()) return;
  std::vector<AccountId> left;
  Transaction t = Begin();
  for (ClaimId id = first; id.valid();) {
    const ClaimId next = ledger_.claim(id).next_of_owner;
    left.push_back(ledger_.claim(id).account);
    SpareVictims(t, ledger_.claim(id));
    t.End(id);
    id = next;
  }
  if (const GroupId group = GroupOf(pod); group.valid()) Unsettle(group);
  Commit(t, cause);
  for (const AccountId account : left) {
    if (account.is_tree()) {
      queues_.DropUnused(account.row(), ledger_);
    } else {
      DropGhost(account.node());
    }
  }
}

void State::EndReservations(NodeId node) {
  EndPromisesOn(node);
  std::vector<PodId> holders;
  // Of those whose binding there is under way the promise does not come back.
  for (ClaimId id = ledger_.nodes().first_claim(node.value); id.valid();
       id = ledger_.claim(id).next_in_account) {
    const PodId pod = pods_.FindUid(ledger_.claim(id).owner);
    if (pod.valid() && !pods_.at(pod).node.valid()) VoidPromise(pod, nodes_.name(node));
  }
  Transaction t = Begin();
  for (ClaimId id = ledger_.nodes().first_reserved(node.value); id.valid();) {
    const ClaimId next = ledger_.claim(id).next_in_account;
    const PodId pod = pods_.FindUid(ledger_.claim(id).owner);
    if (pod.valid()) {
      pods_.mutable_at(pod).promised = pods_.mutable_at(pod).slot = NameId{};
      pods_.mutable_at(pod).void_node = nodes_.name(node);
      NoteLost(pod, ReasonKind::kPromiseNodeGone, nodes_.name(node));
      changed_pods_.push_back(pod);
      holders.push_back(pod);
    }
    EndClaim(t, id);
    id = next;
  }
  Commit(t, Cause::kNodeReplaced);
  for (const PodId pod : holders) SettleClaims(pod);  // As Revoke.
}

void State::RemovePod(const PodRemove& facts) {
  const PodId pod = FindPod(facts.uid);
  if (!pod.valid()) return;
  if (faults_.miss_removal_of_terminating && pods_.at(pod).terminating) return;
  DropPod(pod, Cause::kOwnerDeleted);
}

void State::DropPod(PodId pod, Cause cause) {
  const Pod row = pods_.at(pod);
  const bool kept = faults_.keep_claim_of_deleted_pod ||
                    (faults_.keep_promise_of_deleted && PromiseOf(pod).valid());
  if (!kept) EndClaims(pod, cause);
  homeless_.Remove(pod);
  budgets_.Uncharge(pod);
  CountClass(row.class_id, -1);
  ledger_.SetLabels(row.uid, PodLabelsId{}, {}, AffinityListId{});
  if (row.pin.volumes.valid()) ledger_.SetVolumes(row.uid, VolumeListId{}, {});
  ReleaseAffinity(row.class_id);
  ReleaseLabels(row.labels);
  pods_.mutable_at(pod).group = KeyId{};
  NoteMember(pod);
  pods_.Remove(pod);
  verdicts_.Erase(row.uid);
  verdicts_.ForgetVictim(row.uid);
  doubtful_.erase(row.uid);
  if (!kept) uids_.Release(row.uid);
  keys_.Release(row.key);
  if (row.group.valid()) CleanByName(row.group);
  if (row.group.valid()) keys_.Release(row.group);
  if (row.job.valid()) uids_.Release(row.job);
  changed_pods_.push_back(pod);
}

// ---- Budgets -------------------------------------------------------------------------------

// A status that comes after a victim's end was seen counts it.
void State::ApplyBudget(const BudgetUpsert& facts) {
  budgets_.Put(facts);
  budgets_.EndCharges(
      facts.key, [&](PodId pod) { return pods_.at(pod).terminating || pods_.at(pod).terminal; });
}

// ---- Queues --------------------------------------------------------------------------------

bool State::HasRoomFor(const QueueUpsert& facts) const {
  return queues_.HasRoomFor(facts, FindQueue(facts.kind, facts.name),
                            FindQueue(ParentKindOf(facts.kind), facts.parent));
}

void State::ApplyQueue(const QueueUpsert& facts) {
  CHECK(HasRoomFor(facts));
  FitLedger();
  const NameId name = vocabulary_.names.Intern(facts.name);
  const NameId parent = facts.parent.empty() ? NameId{} : vocabulary_.names.Intern(facts.parent);
  const QueueId known = queues_.Find(facts.kind, name);
  if (facts.kind == QueueKind::kQueue) PinRoot();
  const OwnerId uid = uids_.Acquire(facts.uid);
  if (known.valid() && queues_.IsAs(known, facts, parent, uid, ledger_)) return uids_.Release(uid);
  // Whose quota it lends or borrows, before and after.
  if (known.valid()) ChangeQueue(queues_.RootOf(known));
  const OwnerId before = queues_.Put(facts, name, parent, uid, ledger_);
  if (before.valid()) uids_.Release(before);
  ChangeQueue(queues_.Find(facts.kind, name));
  if (facts.kind == QueueKind::kClusterQueue) EndPromisesIn(name);
  if (facts.kind != QueueKind::kQueue) return;
  queues_.Pin(facts.kind, name, true, ledger_);
  ChangeGroupsOf(name);
}

bool State::HasRoomFor(const FlavorUpsert& facts) const {
  return flavors_.flavors_count() < limits::kFlavorsMax ||
         flavors_.Find(vocabulary_.names.Find(facts.name)) != nullptr;
}

bool State::HasRoomFor(const TopologyUpsert& facts) const {
  return flavors_.topologies_count() < limits::kFlavorsMax ||
         flavors_.FindTopology(vocabulary_.names.Find(facts.name)) != nullptr;
}

void State::ApplyFlavor(const FlavorUpsert& facts) {
  const NameId name = vocabulary_.names.Intern(facts.name);
  const NameId topology =
      facts.topology.empty() ? NameId{} : vocabulary_.names.Intern(facts.topology);
  if (flavors_.Put(facts, name, topology)) ChangeQueues();
}

void State::RemoveFlavor(const FlavorRemove& facts) {
  flavors_.Remove(vocabulary_.names.Find(facts.name), facts.uid);
  ChangeQueues();
}

void State::ApplyTopology(const TopologyUpsert& facts) {
  if (flavors_.Put(facts, vocabulary_.names.Intern(facts.name))) ChangeQueues();
}

void State::RemoveTopology(const TopologyRemove& facts) {
  flavors_.RemoveTopology(vocabulary_.names.Find(facts.name), facts.uid);
  ChangeQueues();
}

// Flavors may be of any queue.
void State::ChangeQueues() {
  for (uint32_t i = 0; i < queues_.size(); ++i) {
    if (queues_.used(QueueId{i})) ChangeQueue(QueueId{i});
  }
  EndPromisesIn(NameId{});
}

AccountId State::AccountFor(QueueId q, NameId flavor) {
  FitLedger();
  return AccountId::OfTree(queues_.EnsureAccount(q, flavor, ledger_));
}

void State::RemoveQueue(const QueueRemove& facts) {
  const QueueId q = FindQueue(facts.kind, facts.name);
  if (!q.valid() || !queues_.at(q).uid.valid()) return;
  if (!facts.uid.empty() && uids_.Find(facts.uid) != queues_.at(q).uid) return;
  ChangeQueue(queues_.RootOf(q));
  ChangeQueue(q);
  const NameId name = queues_.at(q).name;
  uids_.Release(queues_.Remove(q, ledger_));
  if (facts.kind != QueueKind::kQueue) return;
  ChangeGroupsOf(name);
  if (name != root_queue_) queues_.Pin(facts.kind, name, false, ledger_);
}

// ---- Decisions and their outcomes ------------------------------------------------------------

void State::Assume(PodId id, NodeId node, DeviceSlots devices) {
  const ClaimId existing = ClaimOf(id);
  if (existing.valid()) {
    // It fits without those who are not being deleted yet. Others may have counted on their room:
    // their promises are looked at again.
    CHECK_EQ(ledger_.claim(existing).state, ClaimState::kReserved);
    Transaction t = Begin();
    SpareVictims(t, ledger_.claim(existing));
    Commit(t, Cause::kRevoked);
  }
  Transaction t = Begin();
  const Placement placement{.pod = id, .node = node, .devices = devices};
  const NodeId left = AssumeIn(t, placement);
  Commit(t, Cause::kDecided);
  NoteAssumed(placement, left);
}

// The node that it was promised; invalid for none.
NodeId State::AssumeIn(Transaction& t, const Placement& placement) {
  const Pod& pod = pods_.at(placement.pod);
  CHECK(!pod.node.valid());
  CHECK(nodes_.present(placement.node));
  const ClaimId existing = ClaimOf(placement.pod);
  Claim held{.owner = OwnerOf(placement.pod),
             .account = AccountId::OfNode(placement.node),
             .bundle = pod.charge,
             .scoring = pod.charge_scoring,
             .devices = placement.devices,
             .priority = pod.priority};
  SetLeaving(held, placement.pod);
  const NodeId left = existing.valid() ? ledger_.claim(existing).account.node() : NodeId{};
  if (left.valid() && !(left != placement.node && faults_.keep_promise_elsewhere)) {
    t.Change(existing, held);
  } else {
    t.Add(held);
  }
  Share(t, placement.pod);
  return left;
}

// On the node that it was promised it is promised again should its binding fail. Elsewhere the
// promise has ended, and others may have taken the room.
void State::NoteAssumed(const Placement& placement, NodeId left) {
  Pod& pod = pods_.mutable_at(placement.pod);
  if (left.valid() && left != placement.node) {
    pod.void_node = nodes_.name(left);
    pod.promised = pod.slot = NameId{};
  }
  pod.lost = {};
  pod.write = WriteStage::kInFlight;
  pod.attempts = 0;
  pod.backoff_until = Instant{};
  verdicts_.Erase(pod.uid);
  NoteMember(placement.pod);
}

void State::NoteAttempt(PodId id, Instant now) {
  Pod& pod = pods_.mutable_at(id);
  pod.backoff_until = now + Backoff(++pod.attempts, backoff_);
}

void State::NoteError(Pod& pod, Instant at) {
  pod.not_before = at + Backoff(++pod.errors, backoff_);
}

void State::ApplyOutcome(const BindOutcome& facts) {
  const PodId id = FindPod(facts.uid);
  if (!id.valid()) return;
  Pod& pod = pods_.mutable_at(id);
  if (pod.write != WriteStage::kInFlight)
    return;  // Observed already, or an outcome of another life.
  changed_pods_.push_back(id);
  switch (facts.outcome) {
    case WriteOutcome::kDone:
      pod.write = WriteStage::kDone;
      return;
    case WriteOutcome::kConflict:
    case WriteOutcome::kUnknown:
      pod.write = WriteStage::kUnresolved;
      return;
    case WriteOutcome::kGone:
      TakeBack(id, Cause::kWriteGone);
      pod.write = WriteStage::kGone;
      return;
    case WriteOutcome::kNotSent:
      TakeBack(id, Cause::kRevoked);
      return;
    case WriteOutcome::kRefused:
      break;
  }
  pod.refused_code = facts.code;
  NoteError(pod, facts.at);
  TakeBack(id, Cause::kWriteRefused);
}

void State::ApplyRead(const BindRead& facts) {
  const PodId id = FindPod(facts.uid);
  if (!id.valid()) return;
  Pod& pod = pods_.mutable_at(id);
  if (pod.write != WriteStage::kUnresolved && pod.write != WriteStage::kGone) return;
  changed_pods_.push_back(id);
  NoteError(pod, facts.at);
  TakeBack(id, Cause::kReadUnbound);
}

uint64_t State::Ask(PodId pod, std::span<const NodeId> nodes) {
  CHECK(pods_.at(pod).pin.asker.valid());
  std::vector<NameId> names;
  names.reserve(nodes.size());
  for (const NodeId node : nodes) names.push_back(nodes_.name(node));
  return verdicts_.Ask(pods_.at(pod).uid, std::move(names));
}

uint64_t State::AskAboutVictims(PodId pod, const std::vector<NodeVictims>& proposed) {
  CHECK(pods_.at(pod).asks_about_victims);
  return verdicts_.AskAboutVictims(pods_.at(pod).uid, proposed);
}

std::vector<NodeVictims> State::KnownVictims(const ExternalVerdict& facts) const {
  std::vector<NodeVictims> out;
  for (const ExternalVerdict::Victims& one : facts.victims) {
    NodeVictims known{.node = one.node, .pods = {}, .pdb_violations = one.pdb_violations};
    for (const std::string& uid : one.uids) {
      if (const PodId pod = FindPod(uid); pod.valid()) known.pods.push_back(pods_.at(pod).uid);
    }
    if (known.pods.size() == one.uids.size()) out.push_back(std::move(known));
  }
  return out;
}

void State::ApplyVerdict(const ExternalVerdict& facts) {
  const PodId id = FindPod(facts.uid);
  if (!id.valid()) return;
  Pod& pod = pods_.mutable_at(id);
  const bool taken =
      facts.about_victims
          ? verdicts_.AnswerAboutVictims(pod.uid, facts.query, facts.at, KnownVictims(facts))
          : verdicts_.Answer(pod.uid, facts.query, facts.at, facts.nodes);
  if (!taken) return;
  changed_pods_.push_back(id);
  if (facts.end == ExternalVerdict::End::kAnswered) return;
  verdicts_.Erase(pod.uid);
  if (facts.end == ExternalVerdict::End::kFailed) NoteError(pod, facts.at);
}

void State::TakeBack(PodId id, Cause cause) {
  EndNodeClaim(id, cause);
  pods_.mutable_at(id).write = WriteStage::kNone;
  EndEviction(id);
  SettleClaims(id);  // What it was nominated to before is promised to it again.
}

void State::AddTo(Hasher& hasher) const {
  vocabulary_.AddTo(hasher);
  labels_.AddTo(hasher);
  nodes_.AddTo(hasher);
  images_.AddTo(hasher);
  volumes_.AddTo(hasher);
  pods_.AddTo(hasher);
  ledger_.AddTo(hasher);
  queues_.AddTo(hasher);
  flavors_.AddTo(hasher);
  budgets_.AddTo(hasher);
  groups_.AddTo(hasher);
  local_queues_.AddTo(hasher);
  workloads_.AddTo(hasher);
  slots_.AddTo(hasher);
  verdicts_.AddTo(hasher);
  // Who reads the log adds what of it is still to be looked at.
  if (!hasher.merges()) touches_.AddTo(hasher);
  uids_.AddTo(hasher);
  keys_.AddTo(hasher);
  homeless_.AddTo(hasher);
  for (const uint64_t count : promises_lost_) hasher.AddHistory(count);
  hasher.Add(materialised_classes_.size());
  for (const uint8_t there : materialised_classes_) hasher.Add(there);
  // What changed is the last Apply's answer, which the next one clears.
  hasher.Add(faults_.keep_claim_of_deleted_pod).Add(faults_.ledger_by_name);
  hasher.Add(faults_.lose_event_while_evaluated).Add(faults_.wake_index_misses_freed);
  hasher.Add(compat_).Add(backoff_.initial.ns).Add(backoff_.max.ns).Add(faults_.deaf_to_spread);
  hasher.Add(faults_.narrow_from_too_late).Add(faults_.miss_removal_of_terminating);
  hasher.Add(faults_.miss_uncordon).Add(faults_.drop_touched_holder);
  hasher.Add(faults_.drop_promise_when_tried).Add(faults_.promise_when_observed);
  hasher.Add(faults_.keep_promise_of_deleted).Add(faults_.keep_promise_elsewhere);
  hasher.Add(faults_.keep_void_nominations).Add(faults_.wait_for_overdue);
  hasher.Add(faults_.deaf_while_preempting).Add(faults_.forget_nominations);
  hasher.Add(faults_.drop_pods_with_their_node).Add(faults_.bind_victims);
  hasher.Add(faults_.doubt_promises).Add(faults_.unfelt);
  hasher.Add(faults_.clean_groups_by_name).Add(faults_.keep_half_gangs);
  hasher.Add(faults_.forget_woken_gangs).Add(faults_.drop_gang_promises);
  for (const KeyId group : ended_groups_) hasher.Add(group.value);
  hasher.Add(faults_.keep_promise_where_refused).Add(faults_.revoked_evict_no_more);
  hasher.Add(faults_.unmoved_by_others)
      .Add(faults_.reserve_in_full)
      .Add(faults_.reserve_less_who_leaves)
      .Add(faults_.forget_quota_waiters);
}

}  // namespace berth::model
