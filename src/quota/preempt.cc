#include "quota/preempt.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "model/quota_tree.h"

namespace berth::quota {
namespace {

using model::Amount;
using model::ClaimId;
using model::EvictionPolicy;
using model::QueueId;
using model::QuotaTree;
using model::QuotaView;
using model::VictimReason;

constexpr uint32_t kNoAccount = model::Queue::kNoAccount;

// A victim must give way to nobody who only borrows, or may.
enum class Variant : uint8_t { kInQueue, kOwned, kUnlessBorrowing, kEvenBorrowing };

struct Candidate {
  Admitted workload;
  Variant variant = Variant::kInQueue;
  QueueId common;  // The lowest cohort above both queues; invalid in the same one.
};

VictimReason ReasonOf(Variant variant) {
  switch (variant) {
    case Variant::kInQueue:
      return VictimReason::kInQueue;
    case Variant::kEvenBorrowing:
      return VictimReason::kReclaimedByBorrowing;
    case Variant::kOwned:
    case Variant::kUnlessBorrowing:
      break;
  }
  return VictimReason::kReclaimed;
}

// Those that may go: who goes already first; then what is owned, what others use, the queue's own.
// They are sorted as far as they are asked for: most often a few of thousands are.
class Candidates {
 public:
  Candidates(const std::array<std::vector<Candidate>, 3>& groups, QueueId preemptors)
      : goes_after_{preemptors} {
    for (const bool evicted : {true, false}) {
      for (const std::vector<Candidate>& group : groups) {
        std::vector<Candidate>& part = unsorted_.emplace_back();
        std::ranges::copy_if(group, std::back_inserter(part),
                             [&](const Candidate& c) { return c.workload.evicted == evicted; });
        std::ranges::make_heap(part, goes_after_);
        evicted_ += evicted ? part.size() : 0;
        size_ += part.size();
      }
    }
  }
  [[nodiscard]] size_t size() const { return size_; }
  // Those of that many go already.
  [[nodiscard]] size_t evicted() const { return evicted_; }
  // REQUIRES: below size().
  [[nodiscard]] const Candidate& at(size_t index) {
    while (sorted_.size() <= index) {
      while (unsorted_[next_].empty()) ++next_;
      std::vector<Candidate>& part = unsorted_[next_];
      std::ranges::pop_heap(part, goes_after_);
      sorted_.push_back(part.back());
      part.pop_back();
    }
    return sorted_[index];
  }

 private:
  struct GoesAfter {
    QueueId preemptors;
    bool operator()(const Candidate& a, const Candidate& b) const {
      return GoesBefore(b.workload, a.workload, preemptors);
    }
  };
  GoesAfter goes_after_;
  std::vector<std::vector<Candidate>> unsorted_;  // Heaps, the next of each on top.
  size_t next_ = 0;
  std::vector<Candidate> sorted_;
  size_t evicted_ = 0;
  size_t size_ = 0;
};

class Search {
 public:
  Search(const model::State& state, model::Transaction& t, const Preemptor& preemptor,
         const AdmittedOf& admitted)
      : state_(state),
        queues_(state.queues()),
        tree_(state.ledger().quota()),
        preemptor_(preemptor),
        policy_(queues_.at(preemptor.queue).preemption),
        admitted_(admitted),
        t_(t),
        start_(t.checkpoint()) {}

  std::optional<std::vector<Victim>> Run() {
    std::vector<Candidate> in_queue;
    CollectFrom(preemptor_.queue, QueueId{}, /*owned=*/false, in_queue);
    std::vector<Candidate> owned;
    std::vector<Candidate> others;
    CollectOthers(owned, others);
    const std::vector<bool> attempts = Attempts(owned.empty(), others.empty());
    Candidates candidates({std::move(owned), std::move(others), std::move(in_queue)},
                          preemptor_.queue);
    if (candidates.size() == 0) return std::nullopt;
    if (!IsLeftNow() && Fits(/*borrowing=*/true)) return WhoLeavesAlready(candidates);
    for (const bool borrowing : attempts) {
      std::vector<Victim> victims = Try(candidates, borrowing);
      t_.RollbackTo(start_);
      if (!victims.empty()) return victims;
    }
    return std::nullopt;
  }

 private:
  // In which the preemptor's queue may come to use more than it has, or may not.
  [[nodiscard]] std::vector<bool> Attempts(bool none_owned, bool none_of_others) const {
    if ((none_owned && none_of_others) || (!policy_.borrows && !HasLessThanNominal()))
      return {true};
    if (!policy_.borrows && none_owned) return {false, true};
    return {true, false};
  }

  [[nodiscard]] bool HasLessThanNominal() const {
    return std::ranges::all_of(preemptor_.demands, [&](const Demand& d) {
      return !d.lacks || tree_.used(QuotaView::kFuture, d.resource, d.account) <
                             tree_.quota(d.resource, d.account).nominal;
    });
  }

  // Whether the queue and those below it use more than they have of something that is lacking, or
  // will.
  [[nodiscard]] bool IsOver(QueueId q) const {
    return std::ranges::any_of(preemptor_.demands, [&](const Demand& d) {
      if (!d.lacks) return false;
      const uint32_t account = queues_.AccountOf(q, queues_.account(d.account).flavor);
      return account != kNoAccount && tree_.over(d.resource, account);
    });
  }

  // Whether some of its children are.
  [[nodiscard]] bool HasChildrenOver(QueueId q) const {
    return std::ranges::any_of(preemptor_.demands, [&](const Demand& d) {
      if (!d.lacks) return false;
      const uint32_t account = queues_.AccountOf(q, queues_.account(d.account).flavor);
      return account != kNoAccount && tree_.children_over(d.resource, account) > 0;
    });
  }

  // Whether they will use no more than they have of all that is lacking.
  [[nodiscard]] bool WithinItsOwn(QueueId q) const {
    return std::ranges::all_of(preemptor_.demands, [&](const Demand& d) {
      if (!d.lacks) return true;
      const uint32_t account = queues_.AccountOf(q, queues_.account(d.account).flavor);
      return account == kNoAccount || tree_.borrowed(QuotaView::kFuture, d.resource, account) == 0;
    });
  }

  // Up from the preemptor's queue. Once its demands fit in what a subtree has, what others outside
  // use of that is owned by it.
  void CollectOthers(std::vector<Candidate>& owned, std::vector<Candidate>& others) const {
    if (policy_.reclaim == EvictionPolicy::kNever) return;
    std::vector<std::pair<uint32_t, Amount>> rest;  // By demand: account, and what climbs to it.
    for (const Demand& d : preemptor_.demands) rest.emplace_back(d.account, d.amount);
    QueueId below = preemptor_.queue;
    bool fits = FitsAndClimbs(rest);
    for (QueueId top = queues_.at(below).parent; top.valid(); top = queues_.at(top).parent) {
      CollectBelow(top, below, top, fits, fits ? owned : others);
      const bool fits_here = FitsAndClimbs(rest);
      fits = fits || fits_here;
      below = top;
    }
  }

  // Whether what is to be charged at this level fits in what its subtree has; then up one level.
  [[nodiscard]] bool FitsAndClimbs(std::vector<std::pair<uint32_t, Amount>>& rest) const {
    bool fits = true;
    for (size_t i = 0; i < rest.size(); ++i) {
      const model::ResourceId r = preemptor_.demands[i].resource;
      auto& [account, amount] = rest[i];
      const Amount used = tree_.used(QuotaView::kFuture, r, account);
      fits = fits && used + amount <= tree_.subtree(r, account);
      const Amount local = std::max(Amount{0}, tree_.local(r, account) - used);
      amount = std::max(Amount{0}, amount - local);
      if (tree_.parent(account) != kNoAccount) account = tree_.parent(account);
    }
    return fits;
  }

  // Of all below `top` but what is below `skip`. Below those that use no more than they have, and
  // will, nobody uses what is the preemptor's.
  void CollectBelow(QueueId top, QueueId skip, QueueId common, bool owned,
                    std::vector<Candidate>& out) const {
    std::vector<QueueId> left = {top};
    while (!left.empty()) {
      const QueueId n = left.back();
      left.pop_back();
      if (!HasChildrenOver(n)) continue;
      for (QueueId child = queues_.at(n).first_child; child.valid();
           child = queues_.at(child).next_sibling) {
        if (child == skip || !IsOver(child)) continue;
        CollectFrom(child, common, owned, out);
        left.push_back(child);
      }
    }
  }

  void CollectFrom(QueueId q, QueueId common, bool owned, std::vector<Candidate>& out) const {
    const EvictionPolicy policy = q == preemptor_.queue ? policy_.within_queue : policy_.reclaim;
    if (policy == EvictionPolicy::kNever) return;
    for (const Admitted& workload : admitted_(q)) {
      if (!MayEvict(policy, preemptor_, workload) || !HoldsOfIt(workload)) continue;
      out.push_back(
          {.workload = workload, .variant = VariantOf(workload, owned), .common = common});
    }
  }

  [[nodiscard]] Variant VariantOf(const Admitted& workload, bool owned) const {
    if (workload.queue == preemptor_.queue) return Variant::kInQueue;
    if (owned) return Variant::kOwned;
    if (!policy_.borrows || workload.priority >= preemptor_.priority ||
        workload.priority > policy_.borrows_from_priority_max) {
      return Variant::kUnlessBorrowing;
    }
    return Variant::kEvenBorrowing;
  }

  // Whether it is charged any of what is lacking.
  [[nodiscard]] bool HoldsOfIt(const Admitted& workload) const {
    const model::BundleTable& bundles = state_.vocabulary().bundles;
    for (ClaimId id = state_.ledger().first_of_owner(workload.owner); id.valid();
         id = state_.ledger().claim(id).next_of_owner) {
      const model::Claim& claim = state_.ledger().claim(id);
      if (!claim.account.is_tree()) continue;
      const model::NameId flavor = queues_.account(claim.account.row()).flavor;
      for (const Demand& d : preemptor_.demands) {
        if (d.lacks && queues_.account(d.account).flavor == flavor &&
            bundles.AmountOf(claim.bundle, d.resource) > 0) {
          return true;
        }
      }
    }
    return false;
  }

  // As long as the evictions before it left its queue, and those up to the common cohort, with more
  // than they have.
  [[nodiscard]] bool StillUsesTooMuch(const Candidate& candidate) const {
    if (candidate.variant == Variant::kInQueue) return true;
    for (QueueId q = candidate.workload.queue; q != candidate.common; q = queues_.at(q).parent) {
      if (WithinItsOwn(q)) return false;
    }
    return true;
  }

  [[nodiscard]] bool IsLeftNow() const {
    return std::ranges::all_of(preemptor_.demands, [&](const Demand& d) {
      const Amount left = tree_.LeftFor(QuotaView::kPhysical, d.resource, d.account).amount;
      return d.amount <= std::max(Amount{0}, left);
    });
  }

  // Once all that leave are gone.
  [[nodiscard]] bool Fits(bool borrowing) const {
    return std::ranges::all_of(preemptor_.demands, [&](const Demand& d) {
      if (!borrowing && tree_.used(QuotaView::kFuture, d.resource, d.account) + d.amount >
                            tree_.quota(d.resource, d.account).nominal) {
        return false;
      }
      const Amount left = tree_.LeftFor(QuotaView::kFuture, d.resource, d.account).amount;
      return d.amount <= std::max(Amount{0}, left);
    });
  }

  static std::vector<Victim> WhoLeavesAlready(Candidates& candidates) {
    std::vector<Victim> victims;
    for (size_t i = 0; i < candidates.evicted(); ++i) {
      const Candidate& candidate = candidates.at(i);
      victims.push_back({.workload = candidate.workload, .reason = ReasonOf(candidate.variant)});
    }
    return victims;
  }

  std::vector<Victim> Try(Candidates& candidates, bool borrowing) {
    std::vector<Victim> victims;
    std::vector<std::vector<model::Claim>> taken;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& candidate = candidates.at(i);
      if (borrowing && candidate.variant == Variant::kUnlessBorrowing) continue;
      if (!StillUsesTooMuch(candidate)) continue;
      victims.push_back({.workload = candidate.workload, .reason = ReasonOf(candidate.variant)});
      taken.push_back(TakeAway(state_, t_, candidate.workload.owner));
      if (!Fits(borrowing)) continue;
      if (std::ranges::any_of(victims, [&](const Victim& v) { return IsWaitedFor(v); })) {
        GiveBackByOne(victims, borrowing);
      } else {
        GiveBack(victims, taken, borrowing);
      }
      return victims;
    }
    return {};
  }

  // Whoever need not go, the last chosen first. The very last made it fit.
  void GiveBack(std::vector<Victim>& victims, std::vector<std::vector<model::Claim>>& taken,
                bool borrowing) {
    for (size_t i = victims.size() - 1; i-- > 0;) {
      const auto before = t_.checkpoint();
      for (const model::Claim& claim : taken[i]) t_.Add(claim);
      if (Fits(borrowing)) {
        victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        t_.RollbackTo(before);
      }
    }
  }

  // Whether others leave for it.
  [[nodiscard]] bool IsWaitedFor(const Victim& victim) const {
    const model::WorkloadId row = state_.workloads().FindUid(victim.workload.owner);
    return row.valid() && !state_.workloads().at(row).victims.empty();
  }

  // Likewise, where what one holds depends on whether another is taken away.
  void GiveBackByOne(std::vector<Victim>& victims, bool borrowing) {
    for (size_t i = victims.size() - 1; i-- > 0;) {
      t_.RollbackTo(start_);
      for (size_t j = 0; j < victims.size(); ++j) {
        if (j != i) TakeAway(state_, t_, victims[j].workload.owner);
      }
      if (Fits(borrowing)) victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  const model::State& state_;
  const model::QueueTable& queues_;
  const QuotaTree& tree_;
  const Preemptor& preemptor_;
  const model::QueuePreemption policy_;
  const AdmittedOf& admitted_;
  model::Transaction& t_;
  const model::Transaction::Checkpoint start_;
};

}  // namespace

std::vector<model::Claim> TakeAway(const model::State& state, model::Transaction& t,
                                   model::OwnerId owner) {
  std::vector<model::Claim> taken;
  for (ClaimId id = state.ledger().first_of_owner(owner); id.valid();) {
    const ClaimId next = state.ledger().claim(id).next_of_owner;
    if (state.ledger().claim(id).account.is_tree()) {
      taken.push_back(state.ledger().claim(id));
      t.End(id);
    }
    id = next;
  }
  const model::WorkloadId row = state.workloads().FindUid(owner);
  if (!row.valid()) return taken;
  for (const model::WorkloadId victim : state.workloads().at(row).victims) {
    const model::Workload& leaves = state.workloads().at(victim);
    if (StageOf(leaves.status) == model::WorkloadStage::kEvicted) continue;
    for (ClaimId id = state.ledger().first_of_owner(leaves.uid); id.valid();
         id = state.ledger().claim(id).next_of_owner) {
      model::Claim claim = state.ledger().claim(id);
      claim.state = model::ClaimState::kHeld;
      claim.claimant = {};
      if (claim.account.is_tree()) t.Change(id, claim);
    }
  }
  return taken;
}

void Charge(model::Vocabulary& vocabulary, model::Transaction& t, model::OwnerId owner,
            const Demand& demand) {
  // In two digits, so that few bundles are made for however many amounts.
  constexpr Amount kDigit = Amount{1} << 24;
  for (const Amount each : {Amount{1}, kDigit}) {
    const Amount count = each == kDigit ? demand.amount / kDigit : demand.amount % kDigit;
    if (count == 0) continue;
    const model::ResourceAmount bundle{.resource = demand.resource, .amount = each};
    t.Add({.owner = owner,
           .count = static_cast<uint32_t>(count),
           .account = model::AccountId::OfTree(demand.account),
           .bundle = vocabulary.bundles.Intern({&bundle, 1}),
           .why = model::ClaimWhy::kAdmitted});
  }
}

bool MayEvict(EvictionPolicy policy, const Preemptor& preemptor, const Admitted& workload) {
  switch (policy) {
    case EvictionPolicy::kNever:
      return false;
    case EvictionPolicy::kAny:
      return true;
    case EvictionPolicy::kLowerPriority:
      return workload.priority < preemptor.priority;
    case EvictionPolicy::kLowerOrNewerEqualPriority:
      break;
  }
  return workload.priority < preemptor.priority ||
         (workload.priority == preemptor.priority && preemptor.queued_at < workload.queued_at);
}

bool GoesBefore(const Admitted& a, const Admitted& b, QueueId preemptors) {
  if (a.evicted != b.evicted) return a.evicted;
  const bool a_is_other = a.queue != preemptors;
  const bool b_is_other = b.queue != preemptors;
  if (a_is_other != b_is_other) return a_is_other;
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.reserved_at != b.reserved_at) return a.reserved_at > b.reserved_at;
  return a.uid < b.uid;
}

std::optional<std::vector<Victim>> FindVictims(const model::State& state, model::Transaction& t,
                                               const Preemptor& preemptor,
                                               const AdmittedOf& admitted) {
  CHECK(state.queues().active(preemptor.queue));
  for (const Demand& d : preemptor.demands) {
    CHECK_LT(d.account, state.queues().accounts_size());
    CHECK_LT(d.resource.value, state.ledger().quota().resources());
  }
  return Search(state, t, preemptor, admitted).Run();
}

}  // namespace berth::quota
