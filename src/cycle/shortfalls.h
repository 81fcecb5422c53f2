#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/state.h"
#include "model/workloads.h"
#include "quota/flavors.h"
#include "quota/order.h"

namespace berth::cycle {

// What has to change for one that was refused to get quota, as long as the facts of its queue stay.
struct Shortfall {
  enum class Kind : uint8_t {
    kAnything,  // Whatever is given back in its tree may help, or its being looked at matters.
    kFacts,     // Nothing: it asks for what there never is.
    kAmount,    // That so much is left to its queue; or evictions, if `evicts`.
  };
  Kind kind = Kind::kAnything;
  model::NameId flavor;
  model::ResourceId resource;
  model::Amount amount = 0;
  uint32_t borrow = 0;  // From how far up it would come.
  bool evicts = false;  // It would evict others, if it may evict somebody.
};

// Of one that was refused for those flavors. More than kAnything is known where its queue is right
// below the root and has one flavor of each resource, it lacks one resource, and it can't have
// fewer pods. Whoever keeps what is its own from others while it is looked at (quota::KeptFor)
// waits for anything. O(flavors + resources).
[[nodiscard]] Shortfall ShortfallOf(const model::State& state, const model::Workload& workload,
                                    model::QueueId queue, const quota::FlavorAssignment& flavors);

// Lines of ClusterQueues all of whose workloads that are looked at were refused, by what they wait
// for, so that nobody is looked at when quota is given back that can't have it.
//
// Of a line that waits for amounts the tree's root is what is asked: what is given back to its own
// queue is another thing, and who notes that looks at the line. So each amount is kept, less what
// is left of what nobody but its queue may use, by flavor and resource; of those that may have what
// is left now, the one whose turn is first is found in O(amounts x log lines). A line is looked at
// too often, never too seldom: good as long as the facts of its queue stay and whoever changes who
// holds quota of it says so (Doubt). Single-threaded.
class Shortfalls {
 public:
  // As quota::Contender, of the first of a line.
  struct Turn {
    uint32_t borrow = 0;
    int32_t priority = 0;
    Instant queued_at;
    std::string uid;
    model::NameId line;
    [[nodiscard]] quota::Contender contender() const;
    [[nodiscard]] bool operator<(const Turn& other) const;
  };
  struct Want {
    model::NameId flavor;
    model::ResourceId resource;
    auto operator<=>(const Want&) const = default;
  };
  struct Line {
    model::QueueId root;
    bool anything = false;  // Whatever is given back in its tree may help.
    bool reclaims = false;  // Or evictions, of whoever uses more than there is.
    Turn turn;
    std::map<Want, model::Amount> needs;  // The least of each, of the root.
  };

  void Put(model::NameId line, Line waits);
  void Remove(model::NameId line);
  // Who holds quota of its queue is another: whatever is given back next may help. In a round that
  // has begun it keeps its turn.
  void Doubt(model::NameId line);

  // The lines of the tree that are to be looked at whatever was given back. O(those + flavors).
  [[nodiscard]] std::vector<model::NameId> LookedAtAnyway(const model::State& state,
                                                          model::QueueId root) const;
  // What those roots have that nobody uses, or is promised, of all that is waited for.
  using Free = std::map<std::pair<model::QueueId, Want>, model::Amount>;
  [[nodiscard]] Free FreeOf(const model::State& state, const std::set<model::QueueId>& roots) const;

  // Of those of the tree that may have what is left now and was left when `free` was asked for, the
  // first whose turn comes after that of `from`, if there is one. Null: none. Valid until the next
  // change.
  [[nodiscard]] const Turn* Next(const model::State& state, model::QueueId root, const Free& free,
                                 const Turn* from) const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Waiting {
    std::map<model::Amount, std::set<Turn>> by_need;
    std::set<model::NameId> reclaiming;
  };
  struct Tree {
    std::set<model::NameId> anything;
    std::map<Want, Waiting> wants;
  };

  std::map<model::NameId, Line> lines_;
  std::map<model::QueueId, Tree> trees_;
};

// What the line's shape needs of the root, as its queue is used now; nothing where its own limits
// are what keeps it waiting.
[[nodiscard]] std::optional<model::Amount> NeedOfRoot(const model::State& state,
                                                      model::QueueId queue,
                                                      const Shortfall& shortfall);

// Whether somebody below the root uses more than there is of that, now or once all that leave are
// gone.
[[nodiscard]] bool IsOverused(const model::State& state, model::QueueId root,
                              const Shortfalls::Want& want);

}  // namespace berth::cycle
