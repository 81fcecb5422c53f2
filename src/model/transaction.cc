#include "model/transaction.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace berth::model {
namespace {

Claim WithoutLinks(Claim claim) {
  claim.next_in_account = claim.previous_in_account = ClaimId{};
  claim.next_of_owner = claim.previous_of_owner = ClaimId{};
  return claim;
}

bool InSameList(const Claim& a, const Claim& b) {
  return a.account == b.account &&
         (a.state == ClaimState::kReserved) == (b.state == ClaimState::kReserved);
}

// What a change of one claim does to its node, for those who wait and for scores.
TouchKinds KindsOf(const Claim& before, const Claim& after) {
  const bool same_amounts = before.bundle == after.bundle && before.devices == after.devices &&
                            before.scoring == after.scoring;
  const bool was_reserved = before.state == ClaimState::kReserved;
  // An assumed claim that is observed to be bound, by far the most common change, is no event.
  if (same_amounts && !was_reserved && before.state == after.state &&
      before.priority == after.priority) {
    return 0;
  }
  // A promise that is kept frees nothing, but where its owner is to leave already, or is given
  // other devices than those that were promised.
  const bool leaves_devices = before.devices != after.devices && !before.devices.none();
  if (before.bundle == after.bundle && before.priority == after.priority && was_reserved &&
      !leaves_devices && after.state == ClaimState::kHeld) {
    return kTouchTaken | kTouchKept;
  }
  return kTouchFreed | kTouchTaken;
}

}  // namespace

bool Transaction::Felt(const Operation& op, Cause cause) const {
  switch (unfelt_) {
    case Unfelt::kNothing:
      break;
    case Unfelt::kRevoked:
      return op.kind != Kind::kEnd || cause != Cause::kRevoked;
    case Unfelt::kBoundElsewhere:
      return op.kind != Kind::kChange || cause != Cause::kObserved ||
             op.after.state == ClaimState::kReserved;
    case Unfelt::kWithdrawn:
      return op.kind != Kind::kEnd || cause != Cause::kNominationCleared;
  }
  return true;
}

void Transaction::Touch(const Operation& op, Cause cause) {
  const Claim& before = op.before;
  const Claim& after = op.after;
  const Claim& any = op.kind == Kind::kAdd ? after : before;
  if (!any.account.is_tree()) ledger_.NoteMoved(any.owner);
  const auto touch = [&](const Claim& claim, TouchKinds kinds) {
    if (!claim.account.is_tree() && kinds != 0) touches_.Add(claim.account.node(), kinds);
  };
  if (op.kind == Kind::kChange && before.account == after.account) {
    return touch(after, KindsOf(before, after));
  }
  if (op.kind != Kind::kAdd && Felt(op, cause)) touch(before, kTouchFreed);
  if (op.kind != Kind::kEnd) touch(after, kTouchTaken);
}

ClaimId Transaction::Add(const Claim& claim) {
  const bool fresh = ledger_.free_claims_.empty();
  const ClaimId id = ledger_.Insert(WithoutLinks(claim), bundles_);
  log_.push_back(
      {.kind = Kind::kAdd, .fresh = fresh, .id = id, .before = {}, .after = ledger_.claim(id)});
  return id;
}

void Transaction::End(ClaimId id) {
  const Claim before = ledger_.claim(id);
  log_.push_back({.kind = Kind::kEnd, .fresh = false, .id = id, .before = before, .after = {}});
  ledger_.Remove(id, bundles_);
  ledger_.free_claims_.push_back(id);
}

void Transaction::Change(ClaimId id, const Claim& to) {
  const Claim before = ledger_.claim(id);
  CHECK(to.owner == before.owner);
  Claim after = to;
  if (InSameList(before, to)) {
    after.next_in_account = before.next_in_account;
    after.previous_in_account = before.previous_in_account;
  } else {
    after.next_in_account = after.previous_in_account = ClaimId{};
  }
  after.next_of_owner = before.next_of_owner;
  after.previous_of_owner = before.previous_of_owner;
  ledger_.Remove(id, bundles_);
  ledger_.InsertAt(id, after, bundles_);
  log_.push_back({.kind = Kind::kChange,
                  .fresh = false,
                  .id = id,
                  .before = before,
                  .after = ledger_.claim(id)});
}

void Transaction::RollbackTo(Checkpoint checkpoint) {
  CHECK_LE(checkpoint.operations, log_.size());
  while (log_.size() > checkpoint.operations) {
    const Operation& op = log_.back();
    switch (op.kind) {
      case Kind::kAdd:
        ledger_.Remove(op.id, bundles_);
        if (op.fresh) {
          CHECK_EQ(op.id.value + 1, ledger_.claims_.size());
          ledger_.claims_.pop_back();
        } else {
          ledger_.free_claims_.push_back(op.id);
        }
        break;
      case Kind::kEnd:
        CHECK(ledger_.free_claims_.back() == op.id);
        ledger_.free_claims_.pop_back();
        ledger_.InsertAt(op.id, op.before, bundles_);
        break;
      case Kind::kChange:
        ledger_.Remove(op.id, bundles_);
        ledger_.InsertAt(op.id, op.before, bundles_);
        break;
    }
    log_.pop_back();
  }
}

// What is charged of a resource and not asked for: nobody is held to it, and who was let in before
// it came is not either.
Amount Transaction::Unasked(AccountId account, ResourceId resource) const {
  Amount sum = 0;
  for (const Operation& op : log_) {
    if (op.kind == Kind::kEnd || op.after.account != account) continue;
    const BundleId asked = bundles_.Asked(op.after.bundle);
    if (asked == op.after.bundle) continue;
    sum += bundles_.AmountOf(op.after.bundle, resource) - bundles_.AmountOf(asked, resource);
  }
  return sum;
}

bool Transaction::Takes(const Operation& op) {
  return op.after.owner.valid() && op.after.state != ClaimState::kReleasing;
}

std::vector<Transaction::Negative> Transaction::Negatives() const {
  std::vector<Negative> negatives;
  for (const Operation& op : log_) {
    if (op.kind == Kind::kEnd || op.after.account.is_tree()) continue;
    const Claim& c = op.after;
    const AccountTable& table = ledger_.table(c.account);
    // Nobody's view: what the claim itself reserves counts too.
    const Viewer viewer{.owner = OwnerId{}, .priority = c.priority};
    for (const ResourceAmount& a : bundles_.View(bundles_.Asked(c.bundle))) {
      const Amount free = table.free(a.resource, c.account.row());
      const Amount future = ledger_.Future(c.account, a.resource, viewer, bundles_);
      if (free >= 0 && future >= 0) continue;
      const Amount unasked = Unasked(c.account, a.resource);
      Negative negative{.account = c.account,
                        .resource = a.resource,
                        .priority = c.priority,
                        .amount = free + unasked,
                        .takes = Takes(op)};
      if (negative.amount < 0) negatives.push_back(negative);
      negative.future = true;
      negative.amount = future + unasked;
      if (negative.amount < 0) negatives.push_back(negative);
    }
  }
  return negatives;
}

// Each owner once an account, as its last operation there has it.
std::vector<Transaction::Taker> Transaction::Takers() const {
  std::vector<Taker> takers;
  for (const Operation& op : log_ | std::views::reverse) {
    if (Takes(op) && !op.after.account.is_tree())
      takers.push_back({op.after.account, op.after.owner, op.after.priority});
  }
  const auto who = [](const Taker& taker) { return std::pair(taker.account, taker.owner); };
  std::ranges::stable_sort(takers, {}, who);
  const auto again = std::ranges::unique(takers, {}, who);
  takers.erase(again.begin(), again.end());
  return takers;
}

// Physical: held and releasing. Future: held, and what is reserved, for viewers of no higher
// priority.
void Transaction::AddCharges(const Claim& claim, int sign, std::span<const Taker> takers,
                             std::vector<Charge>& charges) const {
  if (!claim.owner.valid() || claim.account.is_tree()) return;
  const bool reserved = claim.state == ClaimState::kReserved;
  const int64_t seen_to = reserved ? claim.priority : std::numeric_limits<int64_t>::max();
  const auto who = std::pair(claim.account, claim.owner);
  const auto taker = std::ranges::lower_bound(
      takers, who, {}, [](const Taker& t) { return std::pair(t.account, t.owner); });
  const bool takes = taker != takers.end() && std::pair(taker->account, taker->owner) == who;
  for (const ResourceAmount& a : bundles_.View(claim.bundle)) {
    const Amount amount = sign * a.amount;
    Charge charge{.account = claim.account,
                  .resource = a.resource,
                  .priority = seen_to,
                  .physical = reserved ? 0 : amount,
                  .future = claim.state == ClaimState::kReleasing ? 0 : amount};
    charges.push_back(charge);
    if (!takes) continue;
    charge.priority = std::min(seen_to, taker->priority - 1);
    charge.by_more_important = charge.future;
    charge.physical = charge.future = 0;
    charges.push_back(charge);
  }
}

std::vector<Transaction::Charge> Transaction::Charges(std::span<const Taker> takers) const {
  std::vector<Charge> charges;
  for (const Operation& op : log_) {
    // Who takes room is held to what it asks, as it was let in by that; who leaves gives back all.
    for (auto [claim, sign] : {std::pair(op.before, -1), std::pair(op.after, +1)}) {
      if (Takes(op) && claim.owner.valid()) claim.bundle = bundles_.Asked(claim.bundle);
      AddCharges(claim, sign, takers, charges);
    }
  }
  return charges;
}

// Of all who take room there, if they don't fit: beside what is held, and what is promised to
// others that the most important of them heeds.
std::optional<Amount> Transaction::ChargeOfAll(std::span<const Taker> takers,
                                               const Negative& at) const {
  const auto there = std::ranges::equal_range(takers, at.account, {}, &Taker::account);
  const int64_t most = std::ranges::max(there, {}, &Taker::priority).priority;
  // What they have there as promises that it does not heed.
  const auto unheeded = [&](const Claim& claim) {
    return claim.account == at.account && claim.state == ClaimState::kReserved &&
           claim.priority < most;
  };
  const Viewer viewer{.owner = OwnerId{}, .priority = static_cast<int32_t>(most)};
  Amount left =
      ledger_.Future(at.account, at.resource, viewer, bundles_) + Unasked(at.account, at.resource);
  for (const Taker& taker : there) {
    for (ClaimId id = ledger_.first_of_owner(taker.owner); id.valid();
         id = ledger_.claim(id).next_of_owner) {
      if (unheeded(ledger_.claim(id)))
        left -= bundles_.AmountOf(ledger_.claim(id).bundle, at.resource);
    }
  }
  if (left >= 0) return std::nullopt;
  Amount charged = 0;
  for (const Operation& op : log_) {
    for (auto [claim, sign] : {std::pair(op.before, -1), std::pair(op.after, +1)}) {
      if (!claim.owner.valid() || claim.account != at.account ||
          claim.state == ClaimState::kReleasing)
        continue;
      if (unheeded(claim) && !std::ranges::binary_search(there, claim.owner, {}, &Taker::owner))
        continue;
      if (Takes(op)) claim.bundle = bundles_.Asked(claim.bundle);
      charged += sign * bundles_.AmountOf(claim.bundle, at.resource);
    }
  }
  return charged;
}

Amount Transaction::NetCharge() const {
  const std::optional<Amount> nodes = NetNodeCharge();
  const std::optional<Amount> quota = NetQuotaCharge();
  if (nodes && quota) return std::max(*nodes, *quota);
  return nodes.value_or(quota.value_or(0));
}

std::optional<Amount> Transaction::NetNodeCharge() const {
  std::vector<Negative> negatives = Negatives();
  if (negatives.empty()) return std::nullopt;
  const std::vector<Taker> takers = Takers();
  std::vector<Charge> charges = Charges(takers);
  // By account and resource, what more viewers see first: one pass sums up for each viewer.
  const auto place = [](const auto& x) {
    return std::tuple(x.account, x.resource.value, -x.priority);
  };
  std::ranges::sort(negatives, {}, place);
  std::ranges::sort(charges, {}, place);
  std::optional<Amount> most;
  Amount physical = 0;
  Amount future = 0;
  Amount by_more_important = 0;
  const Negative* before = nullptr;
  auto charge = charges.begin();
  for (const Negative& n : negatives) {
    if (before == nullptr || before->account != n.account || before->resource != n.resource) {
      physical = future = by_more_important = 0;
      const auto first = std::tuple(n.account, n.resource.value);
      while (charge != charges.end() &&
             std::tuple(charge->account, charge->resource.value) < first) {
        ++charge;
      }
    }
    for (; charge != charges.end() && place(*charge) <= place(n); ++charge) {
      physical += charge->physical;
      future += charge->future;
      by_more_important += charge->by_more_important;
    }
    before = &n;
    const Amount without = n.future && n.takes ? by_more_important : 0;
    std::optional<Amount> charged = (n.future ? future : physical) - without;
    if (n.amount + without >= 0) charged = ChargeOfAll(takers, n);
    if (charged) most = std::max(most.value_or(*charged), *charged);
  }
  return most;
}

std::vector<Transaction::Debt> Transaction::Debts() const {
  std::vector<Debt> debts;
  for (const Operation& op : log_) {
    if (op.kind == Kind::kEnd || !op.after.account.is_tree()) continue;
    const uint32_t row = op.after.account.row();
    for (const ResourceAmount& a : bundles_.View(op.after.bundle)) {
      for (const QuotaView view : {QuotaView::kPhysical, QuotaView::kFuture}) {
        const Amount left = ledger_.quota_.LeftFor(view, a.resource, row).amount;
        if (left < 0)
          debts.push_back({.row = row, .resource = a.resource, .view = view, .left = left});
      }
    }
  }
  return debts;
}

void Transaction::ChargeQuota(const Claim& claim, int sign) const {
  if (claim.owner.valid() && claim.account.is_tree()) ledger_.ChargeQuota(claim, bundles_, sign);
}

// What queues use of each other's is not linear in claims, so what was left before is not a sum: it
// is looked at with the charges of all this taken back for that long.
std::optional<Amount> Transaction::NetQuotaCharge() const {
  const std::vector<Debt> debts = Debts();
  if (debts.empty()) return std::nullopt;
  for (auto op = log_.rbegin(); op != log_.rend(); ++op) {
    ChargeQuota(op->after, -1);
    ChargeQuota(op->before, +1);
  }
  Amount most = std::numeric_limits<Amount>::min();
  for (const Debt& debt : debts) {
    const Amount before = ledger_.quota_.LeftFor(debt.view, debt.resource, debt.row).amount;
    most = std::max(most, before - debt.left);
  }
  for (const Operation& op : log_) {
    ChargeQuota(op.before, -1);
    ChargeQuota(op.after, +1);
  }
  return most;
}

void Transaction::CheckDevices() const {
  for (const Operation& op : log_) {
    const Claim& c = op.after;
    if (op.kind == Kind::kEnd || c.state == ClaimState::kReserved ||
        op.before.devices == c.devices) {
      continue;
    }
    for (uint32_t d = 0; d < kDevicesMax; ++d) {
      if (((c.devices.mask >> d) & 1) != 0)
        CHECK_GE(ledger_.table(c.account).device_free(c.account.row(), d), 0);
    }
  }
}

void Transaction::CheckPorts() const {
  for (const Operation& op : log_) {
    const Claim& c = op.after;
    if (op.kind == Kind::kEnd || c.account.is_tree() || c.state == ClaimState::kReserved) continue;
    const std::span<const HostPort> ports = bundles_.Ports(bundles_.Asked(c.bundle));
    const bool had_them = op.kind == Kind::kChange && op.before.account == c.account &&
                          op.before.bundle == c.bundle && op.before.state != ClaimState::kReserved;
    if (ports.empty() || had_them) continue;
    // Its own are in use, too, and those that others take here and don't ask for.
    uint32_t expected = CountConflicts(ports, ports);
    for (const Operation& other : log_) {
      const bool there = other.kind != Kind::kEnd && other.id != op.id &&
                         other.after.account == c.account &&
                         other.after.state != ClaimState::kReserved;
      if (there && bundles_.Ports(bundles_.Asked(other.after.bundle)).empty())
        expected += CountConflicts(ports, bundles_.Ports(other.after.bundle));
    }
    CHECK_EQ(
        ledger_.PortConflicts(Ledger::PortView::kNow, c.account.node(), ports, nullptr, bundles_),
        expected);
  }
}

void Transaction::Commit(Cause cause) {
  if (cause == Cause::kDecided) {
    CHECK_LE(NetCharge(), 0);
    CheckDevices();
    CheckPorts();
  }
  for (const Operation& op : log_) {
    Touch(op, cause);
    if (op.kind != Kind::kAdd && op.before.account.is_tree()) ledger_.NoteQuotaMoved();
    if (op.before.account.is_tree() || op.after.account.is_tree()) ledger_.NoteQuotaCharged();
    if (op.kind == Kind::kEnd) ++ledger_.ended_by_cause_[static_cast<size_t>(cause)];
    const bool promised = op.kind != Kind::kAdd && !op.before.account.is_tree() &&
                          op.before.state == ClaimState::kReserved;
    if (promised &&
        (op.after.state != ClaimState::kReserved || op.after.account != op.before.account))
      ++ledger_.promises_ended_[static_cast<size_t>(cause)];
  }
  log_.clear();
}

}  // namespace berth::model
