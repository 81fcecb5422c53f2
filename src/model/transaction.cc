#include "model/transaction.h"

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
  const bool is_reserved = after.state == ClaimState::kReserved;
  // An assumed claim that is observed to be bound, by far the most common change, is no event.
  if (same_amounts && !was_reserved && before.state == after.state) return 0;
  // A promise that is kept frees nothing.
  if (before.bundle == after.bundle && before.priority == after.priority && was_reserved &&
      !is_reserved) {
    return kTouchTaken;
  }
  return kTouchFreed | kTouchTaken;
}

}  // namespace

void Transaction::Touched(const Claim& claim, bool taken) {
  if (claim.account.is_tree()) return;
  touches_.Add(claim.account.node(), taken ? kTouchTaken : kTouchFreed);
}

void Transaction::TouchedBoth(const Claim& before, const Claim& after) {
  if (before.account != after.account) {
    Touched(before, false);
    Touched(after, true);
  } else if (const TouchKinds kinds = KindsOf(before, after);
             kinds != 0 && !after.account.is_tree()) {
    touches_.Add(after.account.node(), kinds);
  }
}

ClaimId Transaction::Add(const Claim& claim) {
  const bool fresh = ledger_.free_claims_.empty();
  const ClaimId id = ledger_.Insert(WithoutLinks(claim), bundles_);
  log_.push_back(
      {.kind = Kind::kAdd, .fresh = fresh, .id = id, .before = {}, .after = ledger_.claim(id)});
  Touched(claim, true);
  return id;
}

void Transaction::End(ClaimId id) {
  const Claim before = ledger_.claim(id);
  log_.push_back({.kind = Kind::kEnd, .fresh = false, .id = id, .before = before, .after = {}});
  ledger_.Remove(id, bundles_);
  ledger_.free_claims_.push_back(id);
  Touched(before, false);
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
  TouchedBoth(before, after);
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
        Touched(op.after, false);
        break;
      case Kind::kEnd:
        CHECK(ledger_.free_claims_.back() == op.id);
        ledger_.free_claims_.pop_back();
        ledger_.InsertAt(op.id, op.before, bundles_);
        Touched(op.before, true);
        break;
      case Kind::kChange:
        ledger_.Remove(op.id, bundles_);
        ledger_.InsertAt(op.id, op.before, bundles_);
        TouchedBoth(op.after, op.before);
        break;
    }
    log_.pop_back();
  }
}

Amount Transaction::NetCharge(AccountId a, ResourceId r, const Viewer* future_of) const {
  // Physical: held and releasing. Future: held and what others of at least the viewer's priority
  // have reserved.
  const auto charged = [&](const Claim& c) -> Amount {
    if (!c.owner.valid() || c.account != a) return 0;
    if (future_of == nullptr) {
      return c.state == ClaimState::kReserved ? 0 : bundles_.AmountOf(c.bundle, r);
    }
    if (c.state == ClaimState::kReleasing) return 0;
    if (c.state == ClaimState::kReserved &&
        (c.owner == future_of->owner || c.priority < future_of->priority))
      return 0;
    return bundles_.AmountOf(c.bundle, r);
  };
  Amount net = 0;
  for (const Operation& op : log_) net += charged(op.after) - charged(op.before);
  return net;
}

void Transaction::CheckNothingWorse() const {
  for (const Operation& op : log_) {
    if (op.kind == Kind::kEnd) continue;
    const Claim& c = op.after;
    const AccountTable& table = ledger_.table(c.account);
    // Nobody's view: what the claim itself reserves counts too.
    const Viewer viewer{.owner = OwnerId{}, .priority = c.priority};
    for (const ResourceAmount& a : bundles_.View(c.bundle)) {
      if (table.free(a.resource, c.account.row()) < 0)
        CHECK_LE(NetCharge(c.account, a.resource, nullptr), 0);
      if (ledger_.Future(c.account, a.resource, viewer, bundles_) < 0) {
        CHECK_LE(NetCharge(c.account, a.resource, &viewer), 0);
      }
    }
    if (c.state == ClaimState::kReserved || op.before.devices == c.devices) continue;
    for (uint32_t d = 0; d < kDevicesMax; ++d) {
      if (((c.devices.mask >> d) & 1) != 0) CHECK_GE(table.device_free(c.account.row(), d), 0);
    }
  }
}

void Transaction::Commit(Cause cause) {
  if (cause == Cause::kDecided) CheckNothingWorse();
  for (const Operation& op : log_) {
    if (op.kind == Kind::kEnd) ++ledger_.ended_by_cause_[static_cast<size_t>(cause)];
  }
  log_.clear();
}

}  // namespace berth::model
