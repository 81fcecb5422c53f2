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
#include "model/plan.h"
#include "model/state.h"
#include "quota/flavors.h"

namespace berth::cycle {

// The workloads that wait for quota, in one line per ClusterQueue: priority, larger first;
// who waits longer (model::QueuedAt); uid. And who of them gets it: of each line the first is
// looked at, and those that fit are served in the order of quota/order.h.
//
// Who finds no quota is refused, and lets those behind it pass unless its queue is StrictFIFO. It
// is looked at again when quota of its tree is given back or what its queue may use changes; until
// then nothing about it can have changed. O(log workloads) a change of one; waking a tree is
// O(its queues + the smaller of those refused and those not looked at, of each line).
class Admissions {
 public:
  // The workload's row changed, came or went.
  void Sync(const model::State& state, model::WorkloadId workload);
  // Quota of the queue's tree may be to be had that was not.
  void NoteQueue(const model::State& state, const model::QueueName& queue);
  // Reserves quota for who gets it; the plan tells whom, and who waits for another reason than
  // before. It ends when `heads_max` heads were looked at; a round of all lines is not cut, so that
  // their order decides nothing.
  void Serve(model::State& state, Instant now, uint32_t heads_max, model::Plan& plan);
  // When Serve has something to do: at once, or when a workload may be tried.
  [[nodiscard]] Instant wake_at() const;

  // Why it waits, as of the last look; nothing when it does not, or was not looked at.
  [[nodiscard]] std::optional<model::WorkloadRefusal> WhyWaits(model::WorkloadId workload) const;
  // Those that were refused and would get quota now, although nothing is noted that would have them
  // looked at again: a bug each. O(workloads refused x flavors).
  [[nodiscard]] std::vector<model::WorkloadId> Missed(const model::State& state) const;

  void AddTo(Hasher& hasher) const;

 private:
  // A copy of what decides its place: rows change while it stands there.
  struct Place {
    int32_t priority = 0;
    Instant queued_at;
    std::string uid;
    model::WorkloadId workload;
    [[nodiscard]] bool operator<(const Place& other) const;
  };
  struct Line {
    std::set<Place> untried;
    std::set<Place> refused;
  };
  enum class Mode : uint8_t { kAbsent, kLater, kApart, kUntried, kRefused };
  struct Entry {
    Mode mode = Mode::kAbsent;
    model::NameId line;
    Place place;
    Instant from;  // kLater.
    std::optional<model::WorkloadRefusal> refusal;
  };
  // A head that was looked at.
  struct Nomination {
    model::WorkloadId workload;
    quota::FlavorAssignment flavors;
    std::optional<model::WorkloadRefusal> refusal;
  };

  void Leave(model::WorkloadId workload);
  void Enter(const model::State& state, model::WorkloadId workload);
  void Apart(model::WorkloadId workload, model::QueueBar bar);
  void Refuse(model::WorkloadId workload, model::WorkloadRefusal refusal, model::Plan& plan);
  void Tell(model::WorkloadId workload, model::WorkloadRefusal refusal, model::Plan& plan);
  void TellBehind(const model::State& state, const Line& line, model::Plan& plan);
  void WakeLine(model::NameId name);
  void WakeTree(const model::State& state, model::QueueId root);
  void WakeChanged(const model::State& state);
  [[nodiscard]] std::vector<model::WorkloadId> Heads(const model::State& state, model::Plan& plan);
  [[nodiscard]] Nomination Nominate(const model::State& state, model::WorkloadId workload) const;
  uint32_t ServeRound(model::State& state, model::Plan& plan);

  std::vector<Entry> entries_;           // By WorkloadId.
  std::map<model::NameId, Line> lines_;  // By the name of the ClusterQueue, there or not.
  std::set<model::NameId> active_;       // Lines that may have a head to look at.
  std::set<std::pair<Instant, model::WorkloadId>> later_;
  std::set<model::QueueName> changed_;    // Roots, there or not.
  std::vector<model::WorkloadId> apart_;  // Kept out by their LocalQueues, and not told so yet.
};

}  // namespace berth::cycle
