#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/faults.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/resources.h"
#include "model/touch.h"

namespace berth::model {

// Tries changes of claims and undoes them. Every change is in the ledger at once, so that what is
// evaluated inside a transaction sees it; RollbackTo undoes in reverse order, exactly: the ledger
// is bit for bit what it was. A transaction that is not committed rolls back when it ends; only one
// that is touches nodes. One at a time per ledger, or one within another that ends before that goes
// on; the three must outlive it.
//
//   Transaction t = state.Begin();
//   auto before = t.checkpoint();
//   t.Add(claim);                       // try
//   if (!good) t.RollbackTo(before);    // undo
//   t.Commit(Cause::kDecided);          // or keep, with a cause
class Transaction {
 public:
  struct Checkpoint {
    size_t operations = 0;
  };

  // `unfelt`: test code only.
  Transaction(Ledger& ledger, TouchLog& touches, const BundleTable& bundles, Unfelt unfelt)
      : ledger_(ledger),
        touches_(touches),
        bundles_(bundles),
        unfelt_(unfelt),
        log_(std::exchange(ledger.spare_log_, {})) {}
  ~Transaction() {
    RollbackTo(Checkpoint{});
    ledger_.spare_log_ = std::move(log_);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // O(resources of the claim).
  ClaimId Add(const Claim& claim);
  void End(ClaimId id);
  // Changes anything but the owner: state, why, amounts, account. The id stays.
  void Change(ClaimId id, const Claim& to);

  [[nodiscard]] Checkpoint checkpoint() const { return Checkpoint{log_.size()}; }
  void RollbackTo(Checkpoint checkpoint);

  // Keeps everything, and touches the nodes of what changed. With Cause::kDecided, checks that
  // NetCharge() is not above 0, and no device or host port was given away twice, by claims that ask
  // for it (BundleTable::Asked).
  void Commit(Cause cause);

  // What of all this charges, on balance, an amount that is negative: the physical free, or the
  // `future` for the priority of a claim that was added or changed, of its account and resources.
  // For one that takes room the `future` is that without what more important ones take there by
  // this: they need not heed whom it heeded. But all together must fit beside what the most
  // important of them heeds. The most of these; not above 0 when nothing got worse. O(operations x
  // log operations), and nearly always, when nothing is negative, O(operations x resources x claims
  // reserved there).
  // Of a queue: how much less is left to it, physically or in the future, than before all this;
  // O(operations x resources x levels).
  [[nodiscard]] Amount NetCharge() const;

 private:
  using Operation = ClaimOperation;
  using Kind = Operation::Kind;
  void Touch(const Operation& op, Cause cause);
  // Of what a node gives up: whether those who wait for it are to be told.
  [[nodiscard]] bool Felt(const Operation& op, Cause cause) const;
  // A negative amount that a claim of a priority is charged to.
  struct Negative {
    AccountId account;
    ResourceId resource;
    int64_t priority = 0;
    Amount amount = 0;
    bool future = false;
    bool takes = false;
  };
  // What one claim charges an account: physically, and in the `future` of viewers of at most a
  // priority; and what of that more important ones take.
  struct Charge {
    AccountId account;
    ResourceId resource;
    int64_t priority = 0;
    Amount physical = 0;
    Amount future = 0;
    Amount by_more_important = 0;
  };
  // Who takes room of an account.
  struct Taker {
    AccountId account;
    OwnerId owner;
    int64_t priority = 0;
  };
  // A queue that uses more than it may.
  struct Debt {
    uint32_t row = 0;
    ResourceId resource;
    QuotaView view = QuotaView::kPhysical;
    Amount left = 0;
  };
  [[nodiscard]] Amount Unasked(AccountId account, ResourceId resource) const;
  [[nodiscard]] std::vector<Negative> Negatives() const;
  [[nodiscard]] std::optional<Amount> NetNodeCharge() const;
  [[nodiscard]] std::optional<Amount> NetQuotaCharge() const;
  [[nodiscard]] std::vector<Debt> Debts() const;
  void ChargeQuota(const Claim& claim, int sign) const;
  [[nodiscard]] static bool Takes(const Operation& op);
  [[nodiscard]] std::vector<Taker> Takers() const;
  void AddCharges(const Claim& claim, int sign, std::span<const Taker> takers,
                  std::vector<Charge>& charges) const;
  [[nodiscard]] std::vector<Charge> Charges(std::span<const Taker> takers) const;
  [[nodiscard]] std::optional<Amount> ChargeOfAll(std::span<const Taker> takers,
                                                  const Negative& at) const;
  void CheckDevices() const;
  void CheckPorts() const;

  Ledger& ledger_;
  TouchLog& touches_;
  const BundleTable& bundles_;
  Unfelt unfelt_;
  std::vector<Operation> log_;
};

}  // namespace berth::model
