#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "cycle/slots.h"
#include "cycle/workload_lines.h"
#include "model/plan.h"
#include "model/state.h"
#include "quota/flavors.h"
#include "quota/preempt.h"

namespace berth::cycle {

// The workloads that wait for quota, in one line per ClusterQueue (cycle/workload_lines.h). And who
// of them gets it: of each line the first is looked at, and those that fit, or would if others
// left, are served in the order of quota/order.h.
//
// For whom others have to leave is promised its quota, and they are evicted (quota/preempt.h). What
// is left is for others as far as every promise can come true yet, once all that leave are gone. It
// gets its quota once that is there, or is promised anew when that can't come true any more.
//
// Who finds no quota is refused with all of its shape, and lets those behind it pass unless its
// queue is StrictFIFO. They are looked at again when quota of their tree is given back or what
// their queue may use changes; until then nothing about them can have changed. Those behind the
// first of a shape are told why they wait when that is another thing, not when only the amount that
// is missing is another. O(log workloads) a change of one; waking a tree is O(its queues + their
// shapes).
//
// With a placer, quota is given together with places on nodes for all its pods, or not at all. Who
// finds quota and no places is looked at again, too, when nodes can hold as many of its pods as
// found none: O(shapes) whenever something about nodes was lifted.
class Admissions {
 public:
  // The workload's row changed, came or went.
  void Sync(const model::State& state, model::WorkloadId workload);
  // Quota of the queue's tree may be to be had that was not.
  void NoteQueue(const model::State& state, const model::QueueName& queue);
  // Nodes may hold what they could not.
  void NoteNodes() { nodes_lifted_ = true; }
  // Has it looked at again, and those beside it, if it waits in a line.
  void LookAgain(const model::State& state, model::WorkloadId workload);
  // Reserves quota for who gets it; the plan tells whom, and who waits for another reason than
  // before. It ends when `heads_max` heads were looked at; a round of all lines is not cut, so that
  // their order decides nothing. `placer`: null where pods find nodes by themselves afterwards.
  void Serve(model::State& state, Instant now, uint32_t heads_max, SlotPlacer* placer,
             model::Plan& plan);
  // When Serve has something to do: at once, or when a workload may be tried.
  [[nodiscard]] Instant wake_at() const;

  // Why it waits, as of the last look; nothing when it does not, or was not looked at.
  [[nodiscard]] std::optional<model::WorkloadRefusal> WhyWaits(model::WorkloadId workload) const;
  // Who waits in the line of the ClusterQueue, in the order in which they are looked at. O(those).
  [[nodiscard]] std::vector<model::WorkloadId> LineOf(model::NameId cluster_queue) const;
  // Those that were refused and would get quota now, although nothing is noted that would have them
  // looked at again: a bug each. Copies the state; O(workloads refused x flavors).
  // `evaluator`: of the placer; null without one.
  [[nodiscard]] std::vector<model::WorkloadId> Missed(const model::State& state,
                                                      const place::Evaluator* evaluator) const;

  void AddTo(Hasher& hasher) const;

 private:
  enum class Mode : uint8_t { kAbsent, kLater, kApart, kInLine };
  struct Entry {
    Mode mode = Mode::kAbsent;
    model::NameId line;
    Instant from;                                   // kLater.
    std::optional<model::WorkloadRefusal> refusal;  // That it was told.
  };
  // A head that was looked at.
  struct Nomination {
    enum class Verdict : uint8_t {
      kRefused,
      kWaits,     // What it was promised can still come true.
      kPreempts,  // It is to be promised its quota.
      kFits,
    };
    model::WorkloadId workload;
    Verdict verdict = Verdict::kRefused;
    bool as_promised = false;  // kFits: what it was promised, not the flavors below.
    quota::FlavorAssignment flavors;
    std::vector<uint32_t> counts;        // Of pods by pod set, where fewer than it asks for.
    std::vector<model::Slot> slots;      // kFits: where its pods go, if that is decided here.
    std::vector<quota::Victim> victims;  // kPreempts: who has to leave, or leaves already.
    model::WorkloadRefusal refusal;      // Unless it fits.
  };
  class Look;
  // Of a state that does not change meanwhile: who holds quota, by queue, where it was asked.
  using HoldersAsked = std::map<model::QueueId, std::vector<quota::Admitted>>;

  // Flavors that a workload is not to get, by pod set: their nodes can't hold it.
  using Without = std::vector<std::vector<model::NameId>>;

  // By the root of a tree: what others are kept from until the round is over.
  using Kept = std::map<model::QueueId, std::vector<quota::Demand>>;

  void Leave(model::WorkloadId workload);
  void Enter(const model::State& state, model::WorkloadId workload);
  void Apart(model::WorkloadId workload, model::QueueBar bar);
  void Stand(const model::State& state, model::WorkloadId workload, model::NameId line);
  void Refuse(const model::State& state, model::WorkloadId workload, model::WorkloadRefusal refusal,
              model::Plan& plan);
  void Tell(model::WorkloadId workload, model::WorkloadRefusal refusal, model::Plan& plan);
  void TellAlike(model::WorkloadId first, model::Plan& plan);
  void TellBehind(model::State& state, model::NameId line, model::Plan& plan);
  void WakeLine(const model::State& state, model::NameId name);
  bool NoteByAge(const model::State& state, model::NameId line);
  void WakeTree(const model::State& state, model::QueueId root, bool reclaiming);
  void WakeChanged(const model::State& state);
  [[nodiscard]] std::vector<model::WorkloadId> Heads(model::State& state, model::Plan& plan);
  void NoteHolder(const model::State& state, model::WorkloadId workload);
  [[nodiscard]] std::span<const quota::Admitted> HoldersOf(const model::State& state,
                                                           model::QueueId queue,
                                                           HoldersAsked& asked) const;
  [[nodiscard]] Nomination Nominate(model::State& state, model::WorkloadId workload,
                                    HoldersAsked& asked, const Without& without = {}) const;
  [[nodiscard]] model::Reservation ReservationOfNomination(model::State& state,
                                                           const Nomination& nomination) const;
  bool FindPlaces(model::State& state, SlotPlacer& placer, const Kept& kept, HoldersAsked& asked,
                  Nomination& nomination) const;
  bool HelpsPlaces(model::State& state, SlotPlacer& placer, Nomination& nomination) const;
  void WakePlaceless(SlotPlacer& placer);
  // Of the tree that it waits in; invalid: its queue is not there.
  [[nodiscard]] model::QueueId RootOf(const model::State& state, model::WorkloadId workload) const;
  [[nodiscard]] bool StillFits(model::State& state, const Nomination& nomination,
                               const Kept& kept) const;
  [[nodiscard]] bool StillHelps(model::State& state, const Nomination& nomination,
                                const Kept& kept) const;
  void KeepFor(const model::State& state, const Nomination& nomination, Kept& kept) const;
  uint32_t ServeRound(model::State& state, SlotPlacer* placer, model::Plan& plan);
  bool ServeOne(model::State& state, const Nomination& nomination, model::Plan& plan);
  void EndStrayPromises(model::State& state);
  void NoteChanges(const model::State& state, size_t workloads, size_t queues);

  std::vector<Entry> entries_;  // By WorkloadId.
  WorkloadLines lines_;
  bool nodes_lifted_ = false;       // Since who found no nodes was looked at.
  std::set<model::NameId> active_;  // Lines that may have a head to look at.
  // Whose evictions go by age.
  std::set<model::NameId> by_age_;
  std::set<std::pair<Instant, model::WorkloadId>> later_;
  std::set<model::QueueName> changed_;  // Roots, there or not.
  // Why they wait was known when they came: kept out by their LocalQueues, or as their equals.
  std::vector<model::WorkloadId> untold_;
  // Who holds quota, by the name of the ClusterQueue; and of whom, by WorkloadId.
  std::map<model::NameId, std::set<model::WorkloadId>> holders_;
  std::vector<model::NameId> holds_;
  std::set<model::NameId> borrowed_;      // Lines that were served what is others', in this cycle.
  std::vector<model::WorkloadId> moved_;  // Whose rows changed while they were promised something.
};

}  // namespace berth::cycle
