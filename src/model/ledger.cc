#include "model/ledger.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace berth::model {
namespace {

// Slots of workloads and what is kept for groups, and members of groups, which are pods.
constexpr int64_t kSlotsChargedMax = limits::kSlotsMax + limits::kPodsMax;
static_assert(INT64_MAX - limits::kAmountMax * kSlotsChargedMax > limits::kQuotaMax * 3,
              "what a queue has left is a sum of three quotas less what all slots use");

std::string_view BytesOf(const auto& column) {
  using T = std::remove_cvref_t<decltype(column[0])>;
  static_assert(std::has_unique_object_representations_v<T>,
                "padding would make equal values hash apart");
  return {reinterpret_cast<const char*>(column.data()), column.size() * sizeof(T)};
}

}  // namespace

bool SameClaim(Claim a, Claim b) {
  for (Claim* c : {&a, &b}) {
    c->next_in_account = c->previous_in_account = ClaimId{};
    c->next_of_owner = c->previous_of_owner = ClaimId{};
  }
  return a == b;
}

void AccountTable::AddTo(Hasher& hasher) const {
  capacity_.AddTo(hasher);
  held_.AddTo(hasher);
  releasing_.AddTo(hasher);
  scored_.AddTo(hasher);
  hasher.Add(BytesOf(device_free_)).Add(BytesOf(device_releasing_));
  hasher.Add(BytesOf(first_claim_)).Add(BytesOf(first_reserved_));
  for (uint32_t row = 0; row < ports_.size(); ++row) {
    if (!ports_[row].empty()) hasher.Add(row).Add(BytesOf(ports_[row]));
  }
}

void Ledger::Resize(uint32_t resources_count, uint32_t nodes_count, uint32_t tree_count) {
  const uint32_t counts[2] = {std::max(nodes_count, tables_[0].size()),
                              std::max(tree_count, tables_[1].size())};
  for (int i = 0; i < 2; ++i) {
    AccountTable& table = tables_[i];
    const uint32_t resources_before = table.capacity_.resources();
    const uint32_t rows_before = table.size();
    const uint32_t resources = std::max(resources_count, resources_before);
    if (counts[i] == rows_before && resources == resources_before) continue;
    for (AmountMatrix* matrix : {&table.capacity_, &table.held_, &table.releasing_, &table.free_}) {
      matrix->Resize(resources, counts[i]);
    }
    table.scored_.Resize(2, counts[i]);
    table.first_claim_.resize(counts[i]);
    table.first_reserved_.resize(counts[i]);
    table.claims_count_.resize(counts[i]);
    if (i == 1) {
      quota_.Resize(resources, counts[i]);
      for (uint32_t r = 0; r < resources; ++r) {
        for (uint32_t row = r < resources_before ? rows_before : 0; row < counts[i]; ++row)
          table.capacity_.at(ResourceId{r}, row) = table.free_.at(ResourceId{r}, row) = kUnlimited;
      }
    } else {
      table.device_free_.resize(size_t{counts[i]} * kDevicesMax);
      table.device_releasing_.resize(size_t{counts[i]} * kDevicesMax);
      devices_count_.resize(counts[i]);
    }
  }
}

void Ledger::SetCapacity(NodeId node, ResourceId r, Amount capacity) {
  AccountTable& table = tables_[0];
  CHECK_LT(r.value, table.capacity_.resources());
  CHECK_LT(node.value, table.size());
  table.capacity_.at(r, node.value) = capacity;
  table.free_.at(r, node.value) =
      capacity == kUnlimited
          ? kUnlimited
          : capacity - table.held_.at(r, node.value) - table.releasing_.at(r, node.value);
}

void Ledger::SetDevices(NodeId node, uint32_t devices_count) {
  CHECK_LE(devices_count, kDevicesMax);
  uint8_t& now = devices_count_[node.value];
  int32_t* free = tables_[0].device_free_.data() + size_t{node.value} * kDevicesMax;
  for (uint32_t d = now; d < devices_count; ++d) free[d] += kDeviceMilli;
  for (uint32_t d = devices_count; d < now; ++d) free[d] -= kDeviceMilli;
  now = static_cast<uint8_t>(devices_count);
}

Amount Ledger::ReservedByOthers(AccountId a, ResourceId r, const Viewer& viewer,
                                const BundleTable& bundles) const {
  Amount sum = 0;
  for (ClaimId id = table(a).first_reserved_[a.row()]; id.valid();
       id = claims_[id.value].next_in_account) {
    const Claim& c = claims_[id.value];
    if (c.owner != viewer.owner && c.priority >= viewer.priority)
      sum += bundles.AmountOf(c.bundle, r);
  }
  return sum;
}

Amount Ledger::ReservedBy(OwnerId owner, AccountId a, ResourceId r,
                          const BundleTable& bundles) const {
  Amount sum = 0;
  for (ClaimId id = table(a).first_reserved(a.row()); id.valid();
       id = claims_[id.value].next_in_account) {
    const Claim& c = claims_[id.value];
    if (c.owner == owner) sum += bundles.AmountOf(c.bundle, r) * c.count;
  }
  return sum;
}

Amount Ledger::Now(AccountId a, ResourceId r, const Viewer& viewer,
                   const BundleTable& bundles) const {
  if (a.is_tree()) {
    const Amount own = ReservedBy(viewer.owner, a, r, bundles);
    return quota_.LeftFor(QuotaView::kNow, r, a.row(), own).amount;
  }
  const Amount free = table(a).free(r, a.row());
  if (free == kUnlimited || !table(a).has_reserved(a.row())) return free;
  return free - ReservedByOthers(a, r, viewer, bundles);
}

Amount Ledger::Future(AccountId a, ResourceId r, const Viewer& viewer,
                      const BundleTable& bundles) const {
  if (a.is_tree()) {
    const Amount own = ReservedBy(viewer.owner, a, r, bundles);
    return quota_.LeftFor(QuotaView::kFuture, r, a.row(), own).amount;
  }
  const Amount now = Now(a, r, viewer, bundles);
  return now == kUnlimited ? now : now + table(a).releasing(r, a.row());
}

int32_t Ledger::DeviceNow(NodeId node, uint32_t d, const Viewer& viewer) const {
  int32_t free = tables_[0].device_free(node.value, d);
  for (ClaimId id = tables_[0].first_reserved_[node.value]; id.valid();
       id = claims_[id.value].next_in_account) {
    const Claim& c = claims_[id.value];
    if (c.owner == viewer.owner || c.priority < viewer.priority) continue;
    if (((c.devices.mask >> d) & 1) != 0) free -= c.devices.milli_each;
  }
  return free;
}

uint32_t Ledger::PortConflicts(PortView view, NodeId node, std::span<const HostPort> ports,
                               const Viewer* viewer, const BundleTable& bundles) const {
  uint32_t count = 0;
  for (const PortUse& use : tables_[0].ports(node.value)) {
    const uint32_t uses = use.held + (view == PortView::kNow ? use.releasing : 0);
    count += uses * CountConflicts(ports, {&use.port, 1});
  }
  if (viewer == nullptr) return count;
  for (ClaimId id = tables_[0].first_reserved_[node.value]; id.valid();
       id = claims_[id.value].next_in_account) {
    const Claim& c = claims_[id.value];
    if (c.owner != viewer->owner && c.priority >= viewer->priority)
      count += CountConflicts(ports, bundles.Ports(c.bundle));
  }
  return count;
}

ClaimId Ledger::ListHead(const Claim& claim) const {
  const AccountTable& of = table(claim.account);
  return claim.state == ClaimState::kReserved ? of.first_reserved_[claim.account.row()]
                                              : of.first_claim_[claim.account.row()];
}

void Ledger::SetListHead(const Claim& claim, ClaimId head) {
  AccountTable& of = tables_[claim.account.is_tree() ? 1 : 0];
  const uint32_t row = claim.account.row();
  if (claim.state != ClaimState::kReserved) {
    of.first_claim_[row] = head;
    return;
  }
  const ClaimId before = std::exchange(of.first_reserved_[row], head);
  if (before.valid() == head.valid()) return;
  if (head.valid()) {
    of.reserved_.Add(row);
  } else {
    of.reserved_.Remove(row);
  }
}

void Ledger::ChargeDevices(const Claim& claim, int sign) {
  if (claim.devices.none() || claim.state == ClaimState::kReserved) return;
  CHECK(!claim.account.is_tree());
  AccountTable& table = tables_[0];
  const size_t base = size_t{claim.account.row()} * kDevicesMax;
  const int32_t milli = sign * int32_t{claim.devices.milli_each};
  for (uint32_t d = 0; d < kDevicesMax; ++d) {
    if (((claim.devices.mask >> d) & 1) == 0) continue;
    table.device_free_[base + d] -= milli;
    if (claim.state == ClaimState::kReleasing) table.device_releasing_[base + d] += milli;
  }
}

void Ledger::ChargePorts(const Claim& claim, std::span<const HostPort> ports, int sign) {
  std::vector<std::vector<PortUse>>& rows = tables_[0].ports_;
  if (claim.account.row() >= rows.size()) rows.resize(claim.account.row() + 1);
  std::vector<PortUse>& uses = rows[claim.account.row()];
  for (const HostPort& port : ports) {
    auto use = std::ranges::lower_bound(uses, port, {}, &PortUse::port);
    if (use == uses.end() || use->port != port) use = uses.insert(use, {.port = port});
    uint32_t& count = claim.state == ClaimState::kHeld ? use->held : use->releasing;
    CHECK(sign > 0 || count > 0);
    count += static_cast<uint32_t>(sign);
    if (use->held == 0 && use->releasing == 0) uses.erase(use);
  }
}

void Ledger::ChargeQuota(const Claim& claim, const BundleTable& bundles, int sign) {
  slots_charged_ += sign * int64_t{claim.count};
  CHECK_LE(slots_charged_, kSlotsChargedMax);
  for (const ResourceAmount& a : bundles.View(claim.bundle)) {
    const Amount amount = sign * a.amount * claim.count;
    const Amount physical = claim.state == ClaimState::kReserved ? 0 : amount;
    const Amount future = claim.state == ClaimState::kReleasing ? 0 : amount;
    quota_.Charge(a.resource, claim.account.row(), ViewAmounts{physical, future, amount});
  }
}

void Ledger::SetLabels(OwnerId pod, PodLabelsId labels, std::string_view text,
                       AffinityListId affinity) {
  const auto count = [&](int sign) {
    bool any = false;
    for (ClaimId id = first_of_owner(pod); id.valid(); id = claims_[id.value].next_of_owner) {
      const Claim& claim = claims_[id.value];
      any = any || !claim.account.is_tree();
      CountPod(claim, sign);
    }
    // Who is promised a node counts there, too.
    if (any) NoteMoved(pod);
  };
  count(-1);
  matcher_.SetLabels(pod, labels, text);
  affinities_.SetTerms(pod, affinity);
  count(+1);
}

void Ledger::NoteMoved(OwnerId pod) {
  spreads_.NoteMoved(matcher_, pod);
  affinities_.NoteMoved(matcher_, pod);
  volume_uses_.NoteMoved(pod);
}

void Ledger::CountPod(const Claim& claim, int sign) {
  if (CountsForSpreads(claim)) spreads_.Count(matcher_, claim.owner, claim.account.node(), sign);
  if (CountsForAffinities(claim))
    affinities_.Count(matcher_, claim.owner, claim.account.node(), sign);
}

void Ledger::SetVolumes(OwnerId pod, VolumeListId list, std::span<const PodVolume> volumes) {
  const auto count = [&](int sign) {
    for (ClaimId id = first_of_owner(pod); id.valid(); id = claims_[id.value].next_of_owner)
      ChargeVolumes(claims_[id.value], sign);
  };
  count(-1);
  volume_uses_.NoteMoved(pod);
  volume_uses_.SetVolumes(pod, list, volumes);
  count(+1);
}

void Ledger::ChargeVolumes(const Claim& claim, int sign) {
  if (claim.account.is_tree() || claim.state == ClaimState::kReserved) return;
  volume_uses_.Count(claim.owner, claim.account.node(), claim.state == ClaimState::kReleasing,
                     sign);
}

void Ledger::TrackSpread(ClassId class_id, std::span<const SpreadConstraint> constraints,
                         const StringTable<PodSelectorId>& selectors,
                         const StringTable<PodLabelsId>& labels) {
  const std::vector<uint32_t> added = spreads_.Track(
      class_id, constraints,
      [&](PodSelectorId selector) { return matcher_.Acquire(selector, selectors, labels); });
  if (added.empty()) return;
  for (const Claim& claim : claims_) {
    if (claim.owner.valid() && CountsForSpreads(claim))
      spreads_.CountNew(added, matcher_, claim.owner, claim.account.node());
  }
}

void Ledger::CountAffinities(std::span<const uint32_t> pairs) {
  if (pairs.empty()) return;
  for (const Claim& claim : claims_) {
    if (claim.owner.valid() && CountsForAffinities(claim))
      affinities_.CountNew(pairs, matcher_, claim.owner, claim.account.node());
  }
}

void Ledger::RecountAffinities(NodeId node, const std::function<void()>& change) {
  const auto count = [&](int sign) {
    if (affinities_.empty()) return;
    const auto one = [&](const Claim& claim) {
      if (claim.owner.valid() && CountsForAffinities(claim))
        affinities_.Count(matcher_, claim.owner, claim.account.node(), sign);
    };
    if (!node.valid()) std::ranges::for_each(claims_, one);
    if (!node.valid()) return;
    for (ClaimId id = nodes().first_claim(node.value); id.valid();
         id = claims_[id.value].next_in_account)
      one(claims_[id.value]);
  };
  count(-1);
  change();
  count(+1);
}

void Ledger::Charge(const Claim& claim, const BundleTable& bundles, int sign) {
  ChargeDevices(claim, sign);
  if (claim.account.is_tree()) ChargeQuota(claim, bundles, sign);
  if (claim.state == ClaimState::kReserved) return;
  CountPod(claim, sign);
  ChargeVolumes(claim, sign);
  if (const auto ports = bundles.Ports(claim.bundle); !ports.empty() && !claim.account.is_tree())
    ChargePorts(claim, ports, sign);
  AccountTable& table = tables_[claim.account.is_tree() ? 1 : 0];
  const uint32_t row = claim.account.row();
  for (const ResourceAmount& a : bundles.View(claim.bundle)) {
    const Amount amount = sign * a.amount * claim.count;
    (claim.state == ClaimState::kHeld ? table.held_ : table.releasing_).at(a.resource, row) +=
        amount;
    if (Amount& free = table.free_.at(a.resource, row); free != kUnlimited) free -= amount;
  }
  for (const ResourceAmount& a : bundles.View(claim.scoring)) {
    if (a.resource.value < table.scored_.resources())
      table.scored_.at(a.resource, row) += sign * a.amount * claim.count;
  }
}

void Ledger::Link(ClaimId id) {
  Claim& c = claims_[id.value];
  // Next to the neighbours it names (none for a new one: at the head), so that undoing restores the
  // very list.
  if (!c.previous_in_account.valid()) {
    c.next_in_account = ListHead(c);
    SetListHead(c, id);
  } else {
    claims_[c.previous_in_account.value].next_in_account = id;
  }
  if (c.next_in_account.valid()) claims_[c.next_in_account.value].previous_in_account = id;
  if (c.owner.value >= first_of_owner_.size()) first_of_owner_.resize(c.owner.value + 1);
  if (!c.previous_of_owner.valid()) {
    c.next_of_owner = first_of_owner_[c.owner.value];
    first_of_owner_[c.owner.value] = id;
  } else {
    claims_[c.previous_of_owner.value].next_of_owner = id;
  }
  if (c.next_of_owner.valid()) claims_[c.next_of_owner.value].previous_of_owner = id;
  ++tables_[c.account.is_tree() ? 1 : 0].claims_count_[c.account.row()];
}

void Ledger::Unlink(ClaimId id) {
  const Claim& c = claims_[id.value];
  if (c.previous_in_account.valid()) {
    claims_[c.previous_in_account.value].next_in_account = c.next_in_account;
  } else {
    SetListHead(c, c.next_in_account);
  }
  if (c.next_in_account.valid())
    claims_[c.next_in_account.value].previous_in_account = c.previous_in_account;
  if (c.previous_of_owner.valid()) {
    claims_[c.previous_of_owner.value].next_of_owner = c.next_of_owner;
  } else {
    first_of_owner_[c.owner.value] = c.next_of_owner;
  }
  if (c.next_of_owner.valid())
    claims_[c.next_of_owner.value].previous_of_owner = c.previous_of_owner;
  --tables_[c.account.is_tree() ? 1 : 0].claims_count_[c.account.row()];
}

ClaimId Ledger::Insert(const Claim& claim, const BundleTable& bundles) {
  ClaimId id{static_cast<uint32_t>(claims_.size())};
  if (free_claims_.empty()) {
    claims_.emplace_back();
  } else {
    id = free_claims_.back();
    free_claims_.pop_back();
  }
  InsertAt(id, claim, bundles);
  return id;
}

void Ledger::InsertAt(ClaimId id, const Claim& claim, const BundleTable& bundles) {
  CHECK(claim.owner.valid());
  CHECK_LT(claim.account.row(), table(claim.account).size());
  CHECK(claim.count == 1 || claim.account.is_tree());
  claims_[id.value] = claim;
  Link(id);
  Charge(claim, bundles, +1);
}

void Ledger::Remove(ClaimId id, const BundleTable& bundles) {
  CHECK(claims_[id.value].owner.valid());
  Charge(claims_[id.value], bundles, -1);
  Unlink(id);
  claims_[id.value] = Claim{};
}

void Ledger::AddTo(Hasher& hasher) const {
  for (const AccountTable& table : tables_) table.AddTo(hasher);
  quota_.AddTo(hasher);
  matcher_.AddTo(hasher);
  spreads_.AddTo(hasher);
  affinities_.AddTo(hasher);
  volume_uses_.AddTo(hasher);
  hasher.Add(BytesOf(devices_count_)).Add(BytesOf(claims_)).Add(BytesOf(free_claims_));
  for (const uint64_t count : ended_by_cause_) hasher.AddHistory(count);
  for (const uint64_t count : promises_ended_) hasher.AddHistory(count);
}

}  // namespace berth::model
