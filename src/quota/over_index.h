#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/queues.h"
#include "model/state.h"
#include "quota/preempt.h"

namespace berth::quota {

// What of somebody lacks.
struct Lack {
  model::NameId flavor;
  model::ResourceId resource;
  auto operator<=>(const Lack&) const = default;
};
// Of the demands, each once, in order.
[[nodiscard]] std::vector<Lack> LacksOf(const model::State& state, std::span<const Demand> demands);

// Whether the owner is charged any of that. O(its claims x lacks).
[[nodiscard]] bool HoldsSome(const model::State& state, model::OwnerId owner,
                             std::span<const Lack> lacks);

// Whether a queue, with those below it, uses more than it has of any of that.
struct Over {
  bool ever = false;    // Now, or once all that leave are gone.
  bool future = false;  // Once they are.
  bool operator==(const Over&) const = default;
};
[[nodiscard]] Over OverOf(const model::State& state, model::QueueId queue,
                          std::span<const Lack> lacks);

// Whom queues that reclaim may evict: of each queue below a cohort that uses too much, as all
// between it and the cohort do, who would go first, in order. So who looks for victims need not
// look at each queue that has some.
//
// Derived from a state and from who holds quota in it, which outlive it; good as long as no facts
// come and whoever changes claims notes their queues. O(queues below cohorts that have one which
// uses too much) when it is first asked for a cohort and what lacks, or when a cohort between that
// and a queue that is noted begins or ceases to use too much; else O(levels x log queues) a note,
// and those of the queue that hold nothing of what lacks. Single-threaded.
class OverIndex {
 public:
  OverIndex(const model::State& state, const HoldersOf& holders)
      : state_(state), holders_(holders) {}

  // Who would go first of a queue.
  struct First {
    Admitted holder;
    model::QueueId queue;
    model::QueueId branch;  // Child of the cohort, that the queue is or is below.
  };
  struct Order {
    [[nodiscard]] bool operator()(const First& a, const First& b) const {
      return GoesFirst()(a.holder, b.holder);
    }
  };
  using Firsts = std::set<First, Order>;
  enum Kind : uint8_t {
    kLeaves,    // Of those that go already, where too much is used now or later.
    kStays,     // Of those that stay, there.
    kGivesWay,  // Of those that stay, where too much is used even once all that leave are gone.
    kKindsCount,
  };
  struct Below {
    std::array<Firsts, kKindsCount> firsts;
    std::map<model::QueueId, std::array<Firsts::iterator, kKindsCount>> places;  // end(): none.
    std::map<model::QueueId, Over> cohorts;  // Others don't use too much.
  };

  // Valid until the next note. `lacks`: of LacksOf.
  [[nodiscard]] const Below& Of(model::QueueId cohort, std::span<const Lack> lacks);
  // What the queue is charged, or who holds that, is another now.
  void Note(model::QueueId queue);

 private:
  struct Key {
    model::QueueId cohort;
    std::vector<Lack> lacks;
    auto operator<=>(const Key&) const = default;
  };
  void Build(const Key& key, Below& below) const;
  void Place(const First& place, Over path, std::span<const Lack> lacks, Below& below) const;
  // `path`: from below the cohort down to the queue. False: it is to be built anew.
  [[nodiscard]] bool Update(const Key& key, std::span<const model::QueueId> path,
                            Below& below) const;

  const model::State& state_;
  const HoldersOf& holders_;
  std::map<Key, Below> below_;
};

}  // namespace berth::quota
