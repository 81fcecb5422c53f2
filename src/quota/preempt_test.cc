#include "quota/preempt.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quota/over_index.h"

namespace berth::quota {
namespace {

using model::AccountId;
using model::Amount;
using model::EvictionPolicy;
using model::kCpu;
using model::kUnlimited;
using model::QueueId;
using model::QueueKind;
using model::QueuePreemption;
using model::QuotaView;

// "name: reason; " in the order chosen; "no" when none would be enough.
std::string TextOf(const std::optional<std::vector<Victim>>& victims) {
  if (!victims) return "no";
  std::string text;
  for (const Victim& victim : *victims) {
    constexpr const char* kReasons[] = {"in queue", "reclaimed", "reclaimed by borrowing"};
    text += victim.workload.uid + ": " + kReasons[static_cast<size_t>(victim.reason)] + "; ";
  }
  return text;
}

// Queues with quota of one flavor, and workloads that hold some of it.
class Cluster {
 public:
  Cluster() : flavor_(state.vocabulary().names.Intern("default")) {}

  void Queue(const std::string& name, const std::string& parent, Amount cpu,
             const QueuePreemption& preemption = {}, Amount lending_limit = kUnlimited) {
    state.Apply(model::QueueUpsert{
        .name = name,
        .uid = "u-" + name,
        .parent = parent,
        .quotas = {{flavor_, kCpu, {.nominal = cpu, .lending_limit = lending_limit}}},
        .preemption = preemption});
  }
  void Cohort(const std::string& name, const std::string& parent, Amount cpu) {
    state.Apply(model::QueueUpsert{.kind = QueueKind::kCohort,
                                   .name = name,
                                   .uid = "u-" + name,
                                   .parent = parent,
                                   .quotas = {{flavor_, kCpu, {.nominal = cpu}}}});
  }
  using ClaimState = model::ClaimState;
  // The state of the next one's claim.
  Cluster& As(ClaimState as) {
    as_ = as;
    return *this;
  }
  void Admit(const std::string& queue, const std::string& name, Amount cpu, int32_t priority,
             int64_t second = 0) {
    const ClaimState as = std::exchange(as_, ClaimState::kHeld);
    names_.push_back(name);
    const Admitted workload{.owner = model::OwnerId{static_cast<uint32_t>(names_.size())},
                            .queue = Find(queue),
                            .uid = name,
                            .priority = priority,
                            .reserved_at = Instant::FromSeconds(second),
                            .queued_at = Instant::FromSeconds(second),
                            .evicted = as == ClaimState::kReleasing};
    model::Transaction t = state.Begin();
    model::Claim claim = ClaimOf(workload, cpu);
    claim.state = as;
    t.Add(claim);
    t.Commit(model::Cause::kObserved);
    admitted_[workload.queue].insert(workload);
    amounts_[workload.owner] = cpu;
  }
  [[nodiscard]] model::Claim ClaimOf(const Admitted& workload, Amount cpu) {
    return {.owner = workload.owner,
            .account = AccountId::OfTree(AccountOf(workload.queue)),
            .bundle =
                state.vocabulary().bundles.Intern(std::vector<model::ResourceAmount>{{kCpu, cpu}}),
            .why = model::ClaimWhy::kAdmitted};
  }

  std::optional<std::vector<Victim>> Find(const std::string& queue, Amount cpu, int32_t priority,
                                          int64_t second = 100) {
    const Demand demand{
        .account = AccountOf(Find(queue)), .resource = kCpu, .amount = cpu, .lacks = true};
    model::Transaction t = state.Begin();
    const HoldersOf holders = [&](QueueId q) -> const Holders& { return admitted_[q]; };
    const Preemptor preemptor{.queue = Find(queue),
                              .priority = priority,
                              .queued_at = Instant::FromSeconds(second),
                              .demands = std::span(&demand, 1)};
    OverIndex index(state, holders);
    return FindVictims(state, t, preemptor, holders, indexed_ ? &index : nullptr);
  }
  std::string Victims(const std::string& queue, Amount cpu, int32_t priority) {
    return TextOf(Find(queue, cpu, priority));
  }
  [[nodiscard]] QueueId Find(const std::string& name) const {
    return state.FindQueue(QueueKind::kClusterQueue, name);
  }
  [[nodiscard]] uint32_t AccountOf(QueueId q) const { return state.queues().AccountOf(q, flavor_); }
  [[nodiscard]] Amount AmountOf(model::OwnerId owner) const { return amounts_.at(owner); }
  // Whether who uses too much is known by an index.
  void SetIndexed(bool indexed) { indexed_ = indexed; }
  [[nodiscard]] uint64_t Hash() const {
    Hasher hasher;
    state.AddTo(hasher);
    return hasher.value();
  }

  model::State state;

 private:
  model::NameId flavor_;
  std::vector<std::string> names_;  // By owner, from 1.
  ClaimState as_ = ClaimState::kHeld;
  std::map<QueueId, Holders> admitted_;
  bool indexed_ = true;
  std::map<model::OwnerId, Amount> amounts_;
};

// Goal: a queue's own workloads give way as its policy says, the least important and latest first,
// and nobody who need not. Method: one queue, each policy.
TEST(PreemptTest, WithinAQueueTheLeastImportantGiveWay) {
  const auto with = [](EvictionPolicy policy) {
    Cluster c;
    c.Queue("q", "", 10, {.within_queue = policy});
    c.Admit("q", "old-low", 3, 1, 10);
    c.Admit("q", "new-low", 3, 1, 20);
    c.Admit("q", "equal-old", 2, 5, 10);
    c.Admit("q", "equal-new", 2, 5, 200);
    return c.Victims("q", 4, 5);
  };
  EXPECT_EQ(with(EvictionPolicy::kNever), "no");
  EXPECT_EQ(with(EvictionPolicy::kLowerPriority), "new-low: in queue; old-low: in queue; ");
  Cluster c;
  c.Queue("q", "", 4, {.within_queue = EvictionPolicy::kLowerOrNewerEqualPriority});
  c.Admit("q", "equal-old", 2, 5, 10);
  c.Admit("q", "equal-new", 2, 5, 200);
  EXPECT_EQ(c.Victims("q", 2, 5), "equal-new: in queue; ");
  EXPECT_EQ(c.Victims("q", 4, 5), "no");
  EXPECT_EQ(c.Victims("q", 2, 4), "no");
}

// Goal: what others use of a queue's own quota comes back whatever their priority where the policy
// says so; others of the cohort are left alone. Method: a borrower, and one that keeps to its own.
TEST(PreemptTest, WhatIsBorrowedComesBack) {
  const auto with = [](const QueuePreemption& policy, int32_t priority) {
    Cluster c;
    c.Queue("mine", "pool", 5, policy);
    c.Queue("borrower", "pool", 5);
    c.Queue("modest", "pool", 5);
    c.Admit("borrower", "b1", 5, 9, 10);
    c.Admit("borrower", "b2", 5, 9, 20);
    c.Admit("modest", "m1", 5, 0, 30);
    return c.Victims("mine", 3, priority);
  };
  EXPECT_EQ(with({.reclaim = EvictionPolicy::kAny}, 1), "b2: reclaimed; ");
  EXPECT_EQ(with({.reclaim = EvictionPolicy::kLowerPriority}, 1), "no");
  EXPECT_EQ(with({.reclaim = EvictionPolicy::kLowerPriority}, 10), "b2: reclaimed; ");
  EXPECT_EQ(with({}, 10), "no");
}

// Goal: where those are enough that leave already nobody else has to go, and who may evict nobody is
// not waited for. Method: one that leaves, and one that might be evicted.
TEST(PreemptTest, WhoLeavesAlreadyIsEnough) {
  const auto with = [](EvictionPolicy policy, int32_t priority) {
    Cluster c;
    c.Queue("q", "", 10, {.within_queue = policy});
    c.Admit("q", "stays", 3, 1);
    c.As(model::ClaimState::kReleasing).Admit("q", "leaves", 6, 3);
    return c.Victims("q", 5, priority);
  };
  EXPECT_EQ(with(EvictionPolicy::kLowerPriority, 5), "leaves: in queue; ");
  EXPECT_EQ(with(EvictionPolicy::kLowerPriority, 2), "")
      << "it might evict the other, and need not";
  EXPECT_EQ(with(EvictionPolicy::kLowerPriority, 0), "no");
  EXPECT_EQ(with(EvictionPolicy::kNever, 5), "no");
}

// Goal: what leaves a queue for one that is promised it is not held against those that stay. Method:
// a queue within its own once the one has taken the other's place.
TEST(PreemptTest, WhoTakesAPlaceThatIsLeftBorrowsNothing) {
  const auto with = [](Amount nominal) {
    Cluster c;
    c.Queue("a", "all", 2, {.reclaim = EvictionPolicy::kLowerPriority});
    c.Queue("b", "all", nominal);
    c.As(model::ClaimState::kReleasing).Admit("b", "leaves", 2, 9, 10);
    c.As(model::ClaimState::kReserved).Admit("b", "promised", 2, 9, 20);
    c.Admit("b", "stays", 1, 0, 30);
    return c.Victims("a", 2, 5);
  };
  EXPECT_EQ(with(3), "no");
  EXPECT_EQ(with(2), "stays: reclaimed; ");
}

// Goal: to borrow, others are evicted only where the policy says so, and only up to its priority.
// Method: a queue without quota of its own.
TEST(PreemptTest, ToBorrowOthersGiveWayUpToAPriority) {
  const auto with = [](int32_t priority_max) {
    Cluster c;
    c.Queue("mine", "pool", 0,
            {.reclaim = EvictionPolicy::kLowerPriority,
             .borrows = true,
             .borrows_from_priority_max = priority_max});
    c.Queue("other", "pool", 0);
    c.Queue("lender", "pool", 4);
    c.Admit("other", "o1", 4, 3);
    return c.Victims("mine", 2, 8);
  };
  EXPECT_EQ(with(5), "o1: reclaimed by borrowing; ");
  EXPECT_EQ(with(2), "no");
}

// Goal: who was chosen and need not go after all stays. Method: the least important is too small.
TEST(PreemptTest, WhoNeedNotGoStays) {
  Cluster c;
  c.Queue("q", "", 10, {.within_queue = EvictionPolicy::kLowerPriority});
  c.Admit("q", "small", 2, 0);
  c.Admit("q", "large", 8, 1);
  EXPECT_EQ(c.Victims("q", 8, 5), "large: in queue; ");
}

// Goal: a queue that has given back what it used beyond its own loses nothing more. Method: its
// least important workload is what it borrows.
TEST(PreemptTest, NobodyLosesItsOwnQuota) {
  Cluster c;
  c.Queue("mine", "pool", 5, {.reclaim = EvictionPolicy::kLowerPriority, .borrows = true});
  c.Queue("borrower", "pool", 5);
  c.Admit("borrower", "beyond", 1, 0);
  c.Admit("borrower", "own", 5, 1);
  EXPECT_EQ(c.Victims("mine", 5, 5), "beyond: reclaimed; ");
  EXPECT_EQ(c.Victims("mine", 7, 5), "no");
}

// Goal: once what is demanded fits in what a subtree has, what others use of it is taken back, and
// is not borrowed, although the level above is full. Method: a sibling that can't be evicted fills
// the lower cohort, another queue the upper.
TEST(PreemptTest, WhatFitsBelowIsOwnedAbove) {
  Cluster c;
  c.Cohort("top", "", 1);
  c.Cohort("sub", "top", 0);
  c.Queue("mine", "sub", 4, {.reclaim = EvictionPolicy::kLowerPriority, .borrows = true});
  c.Queue("sibling", "sub", 0);
  c.Queue("far", "top", 0);
  c.Admit("sibling", "high", 2, 9);
  c.Admit("far", "low", 3, 0);
  EXPECT_EQ(c.Victims("mine", 3, 5), "low: reclaimed; ");
}

// Goal: victims free what is lacking, each of them is needed, none is of whom the queue may not ask,
// they are the same without an index, and nothing is left of the search. Method: random trees and
// workloads.
RC_GTEST_PROP(PreemptTest, VictimsAreEnoughNeededAndAllowed, ()) {
  Cluster c;
  const std::vector<std::string> queues = {"a", "b", "c", "d"};
  const auto policy = [] {
    return *rc::gen::element(EvictionPolicy::kNever, EvictionPolicy::kLowerPriority,
                             EvictionPolicy::kLowerPriority, EvictionPolicy::kAny,
                             EvictionPolicy::kLowerOrNewerEqualPriority, EvictionPolicy::kAny);
  };
  c.Cohort("top", "", *rc::gen::inRange(0, 6));
  c.Cohort("sub", "top", *rc::gen::inRange(0, 6));
  for (const std::string& queue : queues) {
    c.Queue(queue, *rc::gen::element<std::string>("top", "sub"), *rc::gen::inRange(0, 8),
            {.within_queue = policy(),
             .reclaim = policy(),
             .borrows = *rc::gen::inRange(0, 2) == 0,
             .borrows_from_priority_max = *rc::gen::element(1, 9)},
            *rc::gen::element(kUnlimited, Amount{0}, Amount{2}));
  }
  for (int i = *rc::gen::inRange(4, 20); i > 0; --i) {
    c.As(*rc::gen::element(Cluster::ClaimState::kHeld, Cluster::ClaimState::kHeld,
                           Cluster::ClaimState::kReleasing, Cluster::ClaimState::kReserved));
    c.Admit(queues[*rc::gen::inRange(size_t{0}, queues.size())], "w" + std::to_string(i),
            *rc::gen::inRange(1, 6), *rc::gen::inRange(0, 4), *rc::gen::inRange(0, 3));
  }
  const uint64_t before = c.Hash();
  const std::string queue = queues[*rc::gen::inRange(size_t{0}, queues.size())];
  const Amount cpu = *rc::gen::inRange(1, 10);
  const int32_t priority = *rc::gen::inRange(0, 4);
  const model::QuotaTree& tree = c.state.ledger().quota();
  const uint32_t account = c.AccountOf(c.Find(queue));
  const auto left = [&] { return tree.LeftFor(QuotaView::kFuture, kCpu, account).amount; };
  const bool left_now = tree.LeftFor(QuotaView::kPhysical, kCpu, account).amount >= cpu;
  if (left_now && left() >= cpu) return;
  const bool leaving_enough = left() >= cpu;
  const auto found = c.Find(queue, cpu, priority, 1);
  const auto victims = found.value_or(std::vector<Victim>{});
  RC_ASSERT(c.Hash() == before);

  const QueuePreemption& may = c.state.queues().at(c.Find(queue)).preemption;
  const Preemptor who{
      .queue = c.Find(queue), .priority = priority, .queued_at = Instant::FromSeconds(1)};
  {
    model::Transaction t = c.state.Begin();
    for (const Victim& victim : victims) {
      const bool own = victim.workload.queue == who.queue;
      RC_ASSERT(MayEvict(own ? may.within_queue : may.reclaim, who, victim.workload));
      RC_ASSERT(!leaving_enough || victim.workload.evicted);
      const uint32_t of = c.AccountOf(victim.workload.queue);
      RC_ASSERT(own || leaving_enough || tree.borrowed(QuotaView::kFuture, kCpu, of) > 0);
      t.End(c.state.ledger().first_of_owner(victim.workload.owner));
    }
    RC_ASSERT(victims.empty() || left() >= cpu);
    const auto alone = t.checkpoint();
    for (const Victim& victim : victims) {
      if (leaving_enough) break;
      model::Claim claim = c.ClaimOf(victim.workload, c.AmountOf(victim.workload.owner));
      if (victim.workload.evicted) claim.state = Cluster::ClaimState::kReleasing;
      t.Add(claim);
      const bool borrows =
          tree.used(QuotaView::kFuture, kCpu, account) + cpu > tree.quota(kCpu, account).nominal;
      RC_ASSERT(left() < cpu || borrows);
      t.RollbackTo(alone);
    }
  }
  c.SetIndexed(false);
  RC_ASSERT(TextOf(c.Find(queue, cpu, priority, 1)) == TextOf(found));
}

// A tree of three levels with quota of two resources, workloads that come, go and are told to leave,
// and an index that is told of each.
class Histories {
 public:
  Histories() : flavor_(state_.vocabulary().names.Intern("default")) {
    Put(QueueKind::kCohort, "top", "", {});
    Put(QueueKind::kCohort, "left", "top", {});
    Put(QueueKind::kCohort, "right", "top", {});
    Put(QueueKind::kCohort, "low", "right", {});
    for (const std::string& queue : queues_) {
      const auto policy = [] {
        return *rc::gen::element(EvictionPolicy::kNever, EvictionPolicy::kLowerPriority,
                                 EvictionPolicy::kAny, EvictionPolicy::kAny,
                                 EvictionPolicy::kLowerOrNewerEqualPriority);
      };
      Put(QueueKind::kClusterQueue, queue,
          *rc::gen::element<std::string>("top", "left", "right", "low"),
          {.within_queue = policy(),
           .reclaim = policy(),
           .borrows = *rc::gen::inRange(0, 3) == 0,
           .borrows_from_priority_max = *rc::gen::element(1, 9)});
    }
  }
  // One of those that hold quota is another, or one more.
  void Step() {
    const QueueId q = Find(*rc::gen::elementOf(queues_));
    Holders& holders = holders_[q];
    model::Transaction t = state_.Begin();
    const int what = *rc::gen::inRange(0, 7);
    if (what > 3 && !holders.empty()) {
      Admitted holder = *std::next(
          holders.begin(),
          *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(holders.size())));
      const model::ClaimId id = state_.ledger().first_of_owner(holder.owner);
      model::Claim claim = state_.ledger().claim(id);
      holders.erase(holder);
      if (what == 4) {
        t.End(id);
      } else {
        holder.evicted = claim.state != model::ClaimState::kReleasing;
        claim.state = holder.evicted ? model::ClaimState::kReleasing : model::ClaimState::kHeld;
        t.Change(id, claim);
        holders.insert(holder);
      }
    } else {
      const model::OwnerId owner{next_owner_++};
      std::vector<model::ResourceAmount> amounts;
      for (const model::ResourceId r : {kCpu, model::kMemory}) {
        const Amount amount = *rc::gen::inRange(0, 4);
        if (amount > 0) amounts.push_back({.resource = r, .amount = amount});
      }
      if (amounts.empty()) return;
      holders.insert({.owner = owner,
                      .queue = q,
                      .uid = "w" + std::to_string(owner.value),
                      .priority = *rc::gen::inRange(0, 4),
                      .reserved_at = Instant::FromSeconds(*rc::gen::inRange(0, 3)),
                      .queued_at = Instant::FromSeconds(*rc::gen::inRange(0, 3))});
      t.Add({.owner = owner,
             .account = AccountId::OfTree(AccountOf(q)),
             .bundle = state_.vocabulary().bundles.Intern(amounts),
             .state = *rc::gen::element(model::ClaimState::kHeld, model::ClaimState::kHeld,
                                        model::ClaimState::kReserved),
             .why = model::ClaimWhy::kAdmitted});
    }
    t.Commit(model::Cause::kObserved);
    index_.Note(q);
  }
  // Whether whoever asks is told the same by the index, by all that hold quota, and by an index of
  // its own. How many victims, if any.
  std::optional<std::ptrdiff_t> Ask() {
    const QueueId q = Find(*rc::gen::elementOf(queues_));
    const model::QuotaTree& tree = state_.ledger().quota();
    std::vector<Demand> demands;
    bool lacks = false;
    for (const model::ResourceId r : {kCpu, model::kMemory}) {
      Demand demand{.account = AccountOf(q), .resource = r, .amount = *rc::gen::inRange(0, 4)};
      for (const QuotaView view : {QuotaView::kPhysical, QuotaView::kFuture})
        demand.lacks = demand.lacks || tree.LeftFor(view, r, demand.account).amount < demand.amount;
      demand.lacks = demand.lacks && demand.amount > 0;
      lacks = lacks || demand.lacks;
      demands.push_back(demand);
    }
    if (!lacks) return std::nullopt;
    const Preemptor preemptor{.queue = q,
                              .priority = *rc::gen::inRange(1, 5),
                              .queued_at = Instant::FromSeconds(*rc::gen::inRange(0, 3)),
                              .demands = demands};
    OverIndex fresh(state_, of_);
    const auto found = Find(preemptor, &index_);
    RC_ASSERT(found == Find(preemptor, nullptr));
    RC_ASSERT(found == Find(preemptor, &fresh));
    if (found == "no") return std::nullopt;
    return std::ranges::count(found, ';');
  }

 private:
  std::string Find(const Preemptor& preemptor, OverIndex* index) {
    model::Transaction t = state_.Begin();
    return TextOf(FindVictims(state_, t, preemptor, of_, index));
  }
  void Put(QueueKind kind, const std::string& name, const std::string& parent,
           const QueuePreemption& preemption) {
    const auto quota = [&] {
      return model::Quota{
          .nominal = *rc::gen::inRange(0, 6),
          .lending_limit = *rc::gen::element(kUnlimited, kUnlimited, kUnlimited, Amount{2})};
    };
    state_.Apply(
        model::QueueUpsert{.kind = kind,
                           .name = name,
                           .uid = "u-" + name,
                           .parent = parent,
                           .quotas = {{flavor_, kCpu, quota()}, {flavor_, model::kMemory, quota()}},
                           .preemption = preemption});
  }
  [[nodiscard]] QueueId Find(const std::string& name) const {
    return state_.FindQueue(QueueKind::kClusterQueue, name);
  }
  [[nodiscard]] uint32_t AccountOf(QueueId q) const {
    return state_.queues().AccountOf(q, flavor_);
  }

  const std::vector<std::string> queues_ = {"a", "b", "c", "d", "e", "f"};
  model::State state_;
  model::NameId flavor_;
  uint32_t next_owner_ = 1;
  std::map<QueueId, Holders> holders_;
  const HoldersOf of_ = [this](QueueId q) -> const Holders& { return holders_[q]; };
  OverIndex index_{state_, of_};
};

// Goal: an index that was told of every change finds whom a look at all that hold quota finds, in
// the same order. Method: random trees and histories, and questions in between.
RC_GTEST_PROP(PreemptTest, AnIndexFindsTheSameVictims, ()) {
  Histories histories;
  for (int i = *rc::gen::inRange(5, 60); i > 0; --i) {
    histories.Step();
    for (int asked = 0; asked < 30; ++asked) histories.Ask();
  }
  const std::optional<std::ptrdiff_t> victims = histories.Ask();
  RC_CLASSIFY(victims.has_value(), "found");
  RC_CLASSIFY(victims.value_or(0) > 1, "several");
}

}  // namespace
}  // namespace berth::quota
