#include "quota/preempt.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/quota_tree.h"
#include "quota/over_index.h"

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

// One after the other, those that are tried first first.
class Candidates {
 public:
  virtual ~Candidates() = default;
  // Null: there are no more. Valid until the next call.
  [[nodiscard]] virtual const Candidate* Next() = 0;
  // None of the queue of the last is of use any more.
  virtual void DropQueue() {}

 protected:
  Candidates() = default;
  Candidates(const Candidates&) = default;
  Candidates& operator=(const Candidates&) = default;
};

// What is owned, what others use, and the queue's own; those of whom are looked at in turn.
inline constexpr size_t kGroups = 3;
enum Group : uint8_t { kOwned, kOthers, kInQueue };

// All of them, those that go already first. They are sorted as far as they are asked for: most
// often a few of thousands are.
class AllCandidates final : public Candidates {
 public:
  // `groups` outlives it.
  AllCandidates(const std::array<std::vector<Candidate>, kGroups>& groups, QueueId preemptors)
      : goes_after_{preemptors} {
    for (const bool evicted : {true, false}) {
      for (const std::vector<Candidate>& group : groups) {
        std::vector<const Candidate*>& part = parts_.emplace_back();
        for (const Candidate& candidate : group) {
          if (candidate.workload.evicted == evicted) part.push_back(&candidate);
        }
        std::ranges::make_heap(part, goes_after_);
      }
    }
  }
  [[nodiscard]] const Candidate* Next() override {
    while (part_ < parts_.size() && parts_[part_].empty()) ++part_;
    if (part_ == parts_.size()) return nullptr;
    std::vector<const Candidate*>& part = parts_[part_];
    std::ranges::pop_heap(part, goes_after_);
    const Candidate* next = part.back();
    part.pop_back();
    return next;
  }

 private:
  struct GoesAfter {
    QueueId preemptors;
    bool operator()(const Candidate* a, const Candidate* b) const {
      return GoesBefore(b->workload, a->workload, preemptors);
    }
  };
  GoesAfter goes_after_;
  std::vector<std::vector<const Candidate*>> parts_;  // Heaps, the next of each on top.
  size_t part_ = 0;
};

// Whom a queue's policy lets a preemptor evict, of those that hold some of what it lacks.
struct Asker {
  const model::State& state;
  const HoldersOf& holders;
  const Preemptor& preemptor;
  const model::QueuePreemption policy;
  const std::vector<Lack> lacks;

  [[nodiscard]] EvictionPolicy PolicyFor(QueueId queue) const {
    return queue == preemptor.queue ? policy.within_queue : policy.reclaim;
  }
  [[nodiscard]] bool MayEvictOf(QueueId queue, const Admitted& holder) const {
    return MayEvict(PolicyFor(queue), preemptor, holder) && HoldsSome(state, holder.owner, lacks);
  }
  // Whether none may be evicted that is as important, or more.
  [[nodiscard]] bool IsTooImportant(QueueId queue, const Admitted& holder) const {
    const EvictionPolicy of = PolicyFor(queue);
    if (of == EvictionPolicy::kAny || holder.priority < preemptor.priority) return false;
    return of != EvictionPolicy::kLowerOrNewerEqualPriority || holder.priority > preemptor.priority;
  }
  // Of its queue, from `at` on, as far as they go already, or stay, as that one does.
  [[nodiscard]] Holders::const_iterator FirstOf(QueueId queue, Holders::const_iterator at) const {
    const Holders& all = holders(queue);
    const bool evicted = at != all.end() && at->evicted;
    for (; at != all.end() && at->evicted == evicted && !IsTooImportant(queue, *at); ++at) {
      if (MayEvictOf(queue, *at)) return at;
    }
    return all.end();
  }
  [[nodiscard]] Variant VariantOf(const Admitted& workload, bool owned) const {
    if (workload.queue == preemptor.queue) return Variant::kInQueue;
    if (owned) return Variant::kOwned;
    if (!policy.borrows || workload.priority >= preemptor.priority ||
        workload.priority > policy.borrows_from_priority_max) {
      return Variant::kUnlessBorrowing;
    }
    return Variant::kEvenBorrowing;
  }
  [[nodiscard]] Candidate CandidateOf(const Admitted& holder, QueueId queue, QueueId common,
                                      bool owned) const {
    Candidate candidate{.workload = holder, .common = common};
    candidate.workload.queue = queue;
    candidate.variant = VariantOf(candidate.workload, owned);
    return candidate;
  }
};

// The first in the queue's order that stays.
Holders::const_iterator FirstStaying(const Holders& holders) {
  Admitted least;
  least.priority = std::numeric_limits<int32_t>::min();
  least.reserved_at = Instant::Never();
  return holders.lower_bound(least);
}

// What others below a cohort use, but those of one branch.
struct Level {
  const OverIndex::Below& below;
  QueueId common;
  QueueId skip;
  bool owned = false;  // By the preemptor.
};

// Those that stay and may be of use, merged of the queues that use too much.
class IndexedCandidates final : public Candidates {
 public:
  // All outlive it.
  IndexedCandidates(const Asker& asker, std::span<const Level> levels)
      : asker_(asker), levels_(levels) {
    Open(kOwned);
  }
  [[nodiscard]] const Candidate* Next() override {
    if (next_) Push(*std::exchange(next_, std::nullopt));
    while (true) {
      if (heap_.empty()) {
        if (group_ == kInQueue) return nullptr;
        Open(static_cast<Group>(group_ + 1));
        continue;
      }
      std::ranges::pop_heap(heap_, GoesAfter());
      Source source = heap_.back();
      heap_.pop_back();
      if (source.of_level) {
        // The others that it stands for come behind it.
        Source rest = source;
        if (Skip(++rest.first, rest)) Push(rest);
        source.of_level = false;
        source.at = asker_.holders(source.queue).find(source.first->holder);
        if (Seek(source)) Push(source);
        continue;
      }
      last_ = asker_.CandidateOf(*source.at, source.queue, source.common, group_ == kOwned);
      ++source.at;
      if (Seek(source)) next_ = source;
      return &last_;
    }
  }
  void DropQueue() override { next_.reset(); }

 private:
  using Firsts = OverIndex::Firsts;
  // The rest of a level's queues, or of a queue.
  struct Source {
    bool of_level = false;
    Firsts::const_iterator first;
    Firsts::const_iterator end;
    QueueId skip;
    QueueId common;
    QueueId queue;
    Holders::const_iterator at;
    [[nodiscard]] const Admitted& holder() const { return of_level ? first->holder : *at; }
  };
  struct GoesAfter {
    bool operator()(const Source& a, const Source& b) const {
      return GoesFirst()(b.holder(), a.holder());
    }
  };
  void Push(const Source& source) {
    heap_.push_back(source);
    std::ranges::push_heap(heap_, GoesAfter());
  }
  // Whether the level has more, from `at` on.
  bool Skip(Firsts::const_iterator at, Source& source) const {
    while (at != source.end && at->branch == source.skip) ++at;
    source.first = at;
    if (at == source.end || asker_.IsTooImportant(at->queue, at->holder)) return false;
    source.queue = at->queue;
    return true;
  }
  // Whether the queue has more, from where it is.
  bool Seek(Source& source) const {
    source.at = asker_.FirstOf(source.queue, source.at);
    return source.at != asker_.holders(source.queue).end();
  }
  void Open(Group group) {
    group_ = group;
    if (group == kInQueue) {
      const QueueId own = asker_.preemptor.queue;
      if (asker_.PolicyFor(own) == EvictionPolicy::kNever) return;
      Source source;
      source.queue = own;
      source.at = FirstStaying(asker_.holders(own));
      if (Seek(source)) Push(source);
      return;
    }
    for (const Level& level : levels_) {
      if (level.owned != (group == kOwned)) continue;
      const Firsts& firsts = level.below.firsts[OverIndex::kGivesWay];
      Source source;
      source.of_level = true;
      source.end = firsts.end();
      source.skip = level.skip;
      source.common = level.common;
      if (Skip(firsts.begin(), source)) Push(source);
    }
  }

  const Asker& asker_;
  const std::span<const Level> levels_;
  Group group_ = kOwned;
  std::vector<Source> heap_;
  std::optional<Source> next_;  // Behind the last one, in its queue.
  Candidate last_;
};

class Search {
 public:
  Search(const model::State& state, model::Transaction& t, const Preemptor& preemptor,
         const HoldersOf& holders, OverIndex* index)
      : state_(state),
        queues_(state.queues()),
        tree_(state.ledger().quota()),
        preemptor_(preemptor),
        asker_{.state = state,
               .holders = holders,
               .preemptor = preemptor,
               .policy = queues_.at(preemptor.queue).preemption,
               .lacks = LacksOf(state, preemptor.demands)},
        index_(index),
        t_(t),
        start_(t.checkpoint()) {}

  std::optional<std::vector<Victim>> Run() {
    // The index tells who lacks quota alone.
    if (index_ != nullptr && !preemptor_.has_rest && start_.operations == 0) {
      std::optional<std::vector<Victim>> found = RunIndexed();
      t_.RollbackTo(start_);
      if (!gave_up_) return found;
    }
    return RunOverAll();
  }

 private:
  std::optional<std::vector<Victim>> RunOverAll() {
    Groups groups;
    CollectFrom(preemptor_.queue, QueueId{}, /*owned=*/false, groups[kInQueue]);
    ForEachLevel([&](QueueId top, QueueId skip, bool owned) {
      CollectBelow(top, skip, owned, groups[owned ? kOwned : kOthers]);
    });
    if (std::ranges::all_of(groups, &std::vector<Candidate>::empty)) return std::nullopt;
    if (!preemptor_.has_rest && !IsLeftNow() && Fits(/*borrowing=*/true))
      return WhoLeavesAlready(groups);
    for (const bool borrowing : Attempts(groups[kOwned].empty(), groups[kOthers].empty())) {
      AllCandidates candidates(groups, preemptor_.queue);
      std::vector<Victim> victims = Try(candidates, borrowing, /*indexed=*/false);
      t_.RollbackTo(start_);
      if (!victims.empty()) return victims;
    }
    return std::nullopt;
  }

  // What comes of the same where nothing was changed before. Those that go already are tried in
  // vain then: they are of no use for what will be left. Once none of those that are evicted has
  // others that leave for it, less and less is used, so that a queue that uses no more than it has
  // is done with. Else gives up.
  std::optional<std::vector<Victim>> RunIndexed() {
    std::vector<Level> levels;
    ForEachLevel([&](QueueId top, QueueId skip, bool owned) {
      levels.push_back(
          {.below = index_->Of(top, asker_.lacks), .common = top, .skip = skip, .owned = owned});
    });
    const auto none = [&](bool owned) {
      return std::ranges::none_of(
          levels, [&](const Level& level) { return level.owned == owned && HasAny(level); });
    };
    const bool none_owned = none(true);
    const bool none_of_others = none(false);
    if (none_owned && none_of_others && !HasAnyInQueue()) return std::nullopt;
    if (!IsLeftNow() && Fits(/*borrowing=*/true)) return WhoLeavesAlready(Leaving(levels));
    for (const bool borrowing : Attempts(none_owned, none_of_others)) {
      if (Fits(borrowing)) gave_up_ = true;
      if (gave_up_) return std::nullopt;
      IndexedCandidates candidates(asker_, levels);
      std::vector<Victim> victims = Try(candidates, borrowing, /*indexed=*/true);
      t_.RollbackTo(start_);
      if (!victims.empty()) return victims;
    }
    return std::nullopt;
  }

  // ---- Whom there is --------------------------------------------------------------------------

  using Groups = std::array<std::vector<Candidate>, kGroups>;

  // Up from the preemptor's queue: visit(cohort, what below it was visited, owned). Once its
  // demands fit in what a subtree has, what others outside use of that is owned by it.
  template <typename Visit>
  void ForEachLevel(Visit visit) const {
    if (asker_.policy.reclaim == EvictionPolicy::kNever) return;
    std::vector<std::pair<uint32_t, Amount>> rest;  // By demand: account, and what climbs to it.
    for (const Demand& d : preemptor_.demands) rest.emplace_back(d.account, d.amount);
    QueueId below = preemptor_.queue;
    bool fits = FitsAndClimbs(rest);
    for (QueueId top = queues_.at(below).parent; top.valid(); top = queues_.at(top).parent) {
      visit(top, below, fits);
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
  void CollectBelow(QueueId top, QueueId skip, bool owned, std::vector<Candidate>& out) const {
    std::vector<QueueId> left = {top};
    while (!left.empty()) {
      const QueueId n = left.back();
      left.pop_back();
      if (!HasChildrenOver(n)) continue;
      for (QueueId child = queues_.at(n).first_child; child.valid();
           child = queues_.at(child).next_sibling) {
        if (child == skip || !OverOf(state_, child, asker_.lacks).ever) continue;
        CollectFrom(child, top, owned, out);
        left.push_back(child);
      }
    }
  }

  // Whether some of its children use more than they have of something that is lacking.
  [[nodiscard]] bool HasChildrenOver(QueueId q) const {
    return std::ranges::any_of(asker_.lacks, [&](const Lack& lack) {
      const uint32_t account = queues_.AccountOf(q, lack.flavor);
      return account != kNoAccount && tree_.children_over(lack.resource, account) > 0;
    });
  }

  void CollectFrom(QueueId q, QueueId common, bool owned, std::vector<Candidate>& out) const {
    if (asker_.PolicyFor(q) == EvictionPolicy::kNever) return;
    for (const Admitted& holder : asker_.holders(q)) {
      if (asker_.MayEvictOf(q, holder)) out.push_back(asker_.CandidateOf(holder, q, common, owned));
    }
  }

  // Whether CollectBelow would find anybody.
  [[nodiscard]] bool HasAny(const Level& level) const {
    for (const OverIndex::Kind kind : {OverIndex::kStays, OverIndex::kLeaves}) {
      for (const OverIndex::First& first : level.below.firsts[kind]) {
        if (first.branch == level.skip) continue;
        if (asker_.IsTooImportant(first.queue, first.holder)) break;
        if (HasFrom(first.queue, first.holder)) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool HasFrom(QueueId queue, const Admitted& first) const {
    const Holders& all = asker_.holders(queue);
    return asker_.FirstOf(queue, all.find(first)) != all.end();
  }
  [[nodiscard]] bool HasAnyInQueue() const {
    const QueueId own = preemptor_.queue;
    if (asker_.PolicyFor(own) == EvictionPolicy::kNever) return false;
    const Holders& all = asker_.holders(own);
    return asker_.FirstOf(own, all.begin()) != all.end() ||
           asker_.FirstOf(own, FirstStaying(all)) != all.end();
  }

  // Those that go already.
  [[nodiscard]] Groups Leaving(std::span<const Level> levels) const {
    Groups groups;
    const auto collect = [&](QueueId queue, QueueId common, bool owned, Group group) {
      for (const Admitted& holder : asker_.holders(queue)) {
        if (!holder.evicted) break;
        if (asker_.MayEvictOf(queue, holder))
          groups[group].push_back(asker_.CandidateOf(holder, queue, common, owned));
      }
    };
    for (const Level& level : levels) {
      for (const OverIndex::First& first : level.below.firsts[OverIndex::kLeaves]) {
        if (first.branch != level.skip)
          collect(first.queue, level.common, level.owned, level.owned ? kOwned : kOthers);
      }
    }
    collect(preemptor_.queue, QueueId{}, /*owned=*/false, kInQueue);
    return groups;
  }

  // ---- What is tried --------------------------------------------------------------------------

  // In which the preemptor's queue may come to use more than it has, or may not.
  [[nodiscard]] std::vector<bool> Attempts(bool none_owned, bool none_of_others) const {
    const bool borrows = asker_.policy.borrows;
    if ((none_owned && none_of_others) || (!borrows && !HasLessThanNominal())) return {true};
    if (!borrows && none_owned) return {false, true};
    return {true, false};
  }

  [[nodiscard]] bool HasLessThanNominal() const {
    return std::ranges::all_of(preemptor_.demands, [&](const Demand& d) {
      return !d.lacks || tree_.used(QuotaView::kFuture, d.resource, d.account) <
                             tree_.quota(d.resource, d.account).nominal;
    });
  }

  // As long as the evictions before it left its queue, and those up to the common cohort, with more
  // than they have.
  [[nodiscard]] bool StillUsesTooMuch(const Candidate& candidate) const {
    if (candidate.variant == Variant::kInQueue) return true;
    for (QueueId q = candidate.workload.queue; q != candidate.common; q = queues_.at(q).parent) {
      if (!OverOf(state_, q, asker_.lacks).future) return false;
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

  [[nodiscard]] bool FitsWithout(std::span<const Victim> victims, bool borrowing) const {
    return Fits(borrowing) && (!preemptor_.has_rest || preemptor_.has_rest(victims));
  }
  // All but one of them.
  [[nodiscard]] bool FitsWithoutOthers(std::span<const Victim> victims, size_t but,
                                       bool borrowing) const {
    if (!preemptor_.has_rest) return Fits(borrowing);
    std::vector<Victim> others(victims.begin(), victims.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(but));
    return FitsWithout(others, borrowing);
  }

  [[nodiscard]] std::vector<Victim> WhoLeavesAlready(const Groups& groups) const {
    std::vector<Victim> victims;
    AllCandidates candidates(groups, preemptor_.queue);
    for (const Candidate* next = candidates.Next(); next != nullptr && next->workload.evicted;
         next = candidates.Next()) {
      victims.push_back({.workload = next->workload, .reason = ReasonOf(next->variant)});
    }
    return victims;
  }

  std::vector<Victim> Try(Candidates& candidates, bool borrowing, bool indexed) {
    std::vector<Victim> victims;
    std::vector<model::Claim> taken;
    std::vector<size_t> taken_from;  // By victim: its first.
    while (const Candidate* next = candidates.Next()) {
      if (borrowing && next->variant == Variant::kUnlessBorrowing) continue;
      if (!StillUsesTooMuch(*next)) {
        candidates.DropQueue();
        continue;
      }
      victims.push_back({.workload = next->workload, .reason = ReasonOf(next->variant)});
      if (indexed && IsWaitedFor(victims.back())) {
        gave_up_ = true;
        return {};
      }
      taken_from.push_back(taken.size());
      TakeAway(state_, t_, next->workload.owner, &taken);
      if (!FitsWithout(victims, borrowing)) continue;
      if (std::ranges::any_of(victims, [&](const Victim& v) { return IsWaitedFor(v); })) {
        GiveBackByOne(victims, borrowing);
      } else {
        GiveBack(victims, taken, taken_from, borrowing);
      }
      return victims;
    }
    return {};
  }

  // Whoever need not go, the last chosen first. The very last made it fit.
  void GiveBack(std::vector<Victim>& victims, std::span<const model::Claim> taken,
                std::span<const size_t> taken_from, bool borrowing) {
    for (size_t i = victims.size() - 1; i-- > 0;) {
      const auto before = t_.checkpoint();
      const auto of_it = taken.subspan(taken_from[i], taken_from[i + 1] - taken_from[i]);
      for (const model::Claim& claim : of_it) t_.Add(claim);
      if (FitsWithoutOthers(victims, i, borrowing)) {
        victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
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
      if (FitsWithoutOthers(victims, i, borrowing))
        victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  const model::State& state_;
  const model::QueueTable& queues_;
  const QuotaTree& tree_;
  const Preemptor& preemptor_;
  const Asker asker_;
  OverIndex* const index_;  // Null: none.
  bool gave_up_ = false;    // On the index.
  model::Transaction& t_;
  const model::Transaction::Checkpoint start_;
};

}  // namespace

void TakeAway(const model::State& state, model::Transaction& t, model::OwnerId owner,
              std::vector<model::Claim>* taken) {
  for (ClaimId id = state.ledger().first_of_owner(owner); id.valid();) {
    const ClaimId next = state.ledger().claim(id).next_of_owner;
    if (state.ledger().claim(id).account.is_tree()) {
      if (taken != nullptr) taken->push_back(state.ledger().claim(id));
      t.End(id);
    }
    id = next;
  }
  const model::WorkloadId row = state.workloads().FindUid(owner);
  if (!row.valid()) return;
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
}

void Charge(model::Vocabulary& vocabulary, model::Transaction& t, model::OwnerId owner,
            const Demand& demand) {
  // In powers of two, so that few bundles are made for however many amounts, and no claim counts as
  // many slots.
  for (auto rest = static_cast<uint64_t>(demand.amount); rest != 0; rest &= rest - 1) {
    const auto power = static_cast<Amount>(rest & (~rest + 1));
    const model::ResourceAmount bundle{.resource = demand.resource, .amount = power};
    t.Add({.owner = owner,
           .account = model::AccountId::OfTree(demand.account),
           .bundle = vocabulary.bundles.Intern({&bundle, 1}),
           .why = model::ClaimWhy::kAdmitted});
  }
}

bool MayEvict(EvictionPolicy policy, const Preemptor& preemptor, const Admitted& workload) {
  if (workload.spared && !preemptor.spares_nobody) return false;
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
  return GoesFirst()(a, b);
}

bool GoesFirst::operator()(const Admitted& a, const Admitted& b) const {
  if (a.evicted != b.evicted) return a.evicted;
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.reserved_at != b.reserved_at) return a.reserved_at > b.reserved_at;
  return a.uid < b.uid;
}

std::optional<std::vector<Victim>> FindVictims(const model::State& state, model::Transaction& t,
                                               const Preemptor& preemptor, const HoldersOf& holders,
                                               OverIndex* index) {
  CHECK(state.queues().active(preemptor.queue));
  for (const Demand& d : preemptor.demands) {
    CHECK_LT(d.account, state.queues().accounts_size());
    CHECK_LT(d.resource.value, state.ledger().quota().resources());
  }
  return Search(state, t, preemptor, holders, index).Run();
}

}  // namespace berth::quota
