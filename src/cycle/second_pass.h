#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "cycle/slots.h"
#include "model/plan.h"
#include "model/state.h"

namespace berth::cycle {

// What is due of a workload that has quota, as far as was observed: pods on nodes that failed are
// to get other places; who passed its admission checks gets places for its pods, with which it is
// admitted, and so is who has them by a topology already, once its nodes are found to be there;
// whose pods are of a group that could not start with them any more, and did not, gives
// up its quota. Nobody is admitted before its groups could start with those that are, or of whom
// that is due as well: its mates. The one function that says so, asked at the moment of use:
// nothing is due because it was once (https://github.com/kubernetes-sigs/kueue/issues/5561).
// `joint`: pods that no topology places are placed here, too.
[[nodiscard]] model::Pass PassOf(const model::State& state, model::WorkloadId workload, bool joint);

// Whether pods that are to have places have none, of those that a workload with that quota runs.
[[nodiscard]] bool LacksPlaces(std::span<const model::WorkloadSlots> slots,
                               const model::Reservation& reservation, bool joint);

// Whether it has places by a topology, or is of a group, and is not admitted: it is by a pass,
// which finds its nodes there or others, since nobody watches them until then, and its mates ready.
[[nodiscard]] bool AwaitsAdmission(const model::WorkloadStatus& status,
                                   std::span<const model::WorkloadSlots> slots,
                                   const model::Reservation& reservation);

// Of one whose quota is decided: whether it is admitted by a pass, not with that. Whoever is of a
// group and has checks to pass is, whatever becomes of those until its quota is written.
[[nodiscard]] bool IsAdmittedLater(const model::State& state, model::WorkloadId workload,
                                   bool joint);

// Decides it for those of whom it is due: each gets all the places that it lacks, in the ledger at
// once and to be written on what was observed; or gives up its quota, when there are none.
//
//          row, checks of its queue                Place ──written──> observed, so not due
//   PassOf ───────────────> due ─ delay ─ places? ─┤
//                           ^                      GiveUp ──written──> evicted, so not due
//                           └── waits: its write was refused, or places will be there, or what
//                               its pods are to be placed by is not there
//
// Mates get places in one transaction, or none of them; who finds none gives up its quota alone,
// and the others with it where they can't start without.
//
// Which rows to ask about is an index of the rows, kept with each change of one, and of the queues'
// names. What is under way (WriteStage) is not decided again. O(log workloads) a change; a look is
// that of SlotPlacer.
class SecondPass {
 public:
  // `delay`: from when it is seen that something is due until it is decided, so that what comes or
  // fails together is decided on together.
  SecondPass(bool joint, Duration delay) : joint_(joint), delay_(delay) {}

  // The workload's row changed, came or went.
  void Sync(const model::State& state, model::WorkloadId workload);
  // What the queue asks for, or who leaves in it, may be another. O(those that are kept of it).
  void NoteQueue(const model::QueueName& queue);
  // The group, or a member of it, came, went or changed; it is there or not.
  void NoteGroup(const model::State& state, model::GroupId group);
  // A pod changed or is gone, of whose group there is perhaps nothing: those are asked whose groups
  // are not there.
  void NoteMember() { members_moved_ = !gangs_of_.empty(); }
  // What is left to queues of groups may be another: of those whose groups have not started all are
  // asked.
  void NoteQuota() { groups_moved_ = !to_start_.empty(); }
  // Nodes may hold what they could not.
  void NoteNodes() { nodes_lifted_ = true; }
  void Serve(model::State& state, Instant now, SlotPlacer& placer, model::Plan& plan);
  // When Serve has something to do.
  [[nodiscard]] Instant wake_at() const;
  // Of whom something is due, and that is neither under way nor to be looked at; of those that
  // wait, who would not any more. Copies the state, once more for each that it finds so.
  [[nodiscard]] std::vector<model::WorkloadId> Missed(const model::State& state,
                                                      const place::Evaluator& evaluator) const;
  void LookAgain(model::WorkloadId workload) { to_ask_.insert(workload); }

  void AddTo(Hasher& hasher) const;

 private:
  void Forget(model::WorkloadId workload);
  void AskWithoutGroups(const model::State& state);
  [[nodiscard]] model::Pass PassNow(const model::State& state, model::WorkloadId workload) const;
  void Index(const model::Workload& row, model::WorkloadId workload);
  void Plant(const model::State& state, model::WorkloadId workload);
  [[nodiscard]] std::vector<model::WorkloadId> InOrder(const model::State& state);
  [[nodiscard]] Instant DueFrom(const model::Workload& row, model::WorkloadId workload) const;
  void Decide(model::State& state, model::WorkloadId workload, model::Pass pass, SlotPlacer& placer,
              model::Plan& plan);
  // What comes of a look at one.
  struct Outcome {
    enum class Kind : uint8_t { kPlaces, kGivesUp, kWaits };
    Kind kind = Kind::kPlaces;
    model::PassDecision decision = {};
    model::Reservation reservation = {};               // kPlaces.
    std::optional<model::PlacesRefusal> refusal = {};  // kWaits: for what, if that is told.
  };
  [[nodiscard]] static Outcome LookAt(model::State& state, model::WorkloadId workload,
                                      model::Pass pass, SlotPlacer& placer, bool joint);
  [[nodiscard]] std::vector<Outcome> LookAtAll(model::State& state,
                                               std::span<const model::WorkloadId> mates,
                                               SlotPlacer& placer) const;
  void CarryOut(model::State& state, std::vector<Outcome> outcomes, model::Plan& plan);
  [[nodiscard]] std::vector<model::WorkloadId> MatesToPlace(
      const model::State& state, model::WorkloadId workload,
      const std::set<model::WorkloadId>& without) const;
  void PlaceWithMates(model::State& state, model::WorkloadId workload, SlotPlacer& placer,
                      model::Plan& plan);
  void TellAwaited(const model::State& state, model::WorkloadId workload, model::Plan& plan) const;
  static void LetGo(model::State& state, model::PassDecision decision, model::Plan& plan);
  [[nodiscard]] bool WouldDecide(model::State& state, const place::Evaluator& evaluator,
                                 model::WorkloadId workload) const;

  // Immutable after construction.
  bool joint_;
  Duration delay_;

  bool nodes_lifted_ = false;
  bool groups_moved_ = false;
  bool members_moved_ = false;
  // Whose rows are such that something may be due, by the name of their ClusterQueue.
  std::map<model::NameId, std::set<model::WorkloadId>> of_queue_;
  std::map<model::WorkloadId, model::NameId> queue_of_;
  // Likewise, by each group that its pods name.
  std::map<model::NameId, std::set<model::WorkloadId>> of_gang_;
  std::map<model::WorkloadId, std::set<model::NameId>> gangs_of_;
  std::set<model::WorkloadId> to_start_;  // Of those, whose groups had not when it was last asked.
  std::set<model::WorkloadId> to_ask_;
  std::set<model::WorkloadId> waits_;  // For nodes, or what its queue's flavors are.
  std::set<std::pair<Instant, model::WorkloadId>> later_;
  std::map<model::WorkloadId, Instant> seen_;  // Since when something is due, until it is decided.
  std::map<model::WorkloadId, model::Pass> planted_;  // With a planted bug alone: what was due.
};

}  // namespace berth::cycle
