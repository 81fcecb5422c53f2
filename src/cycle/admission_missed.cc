// Of cycle/admissions.h: the watchdog, which looks for who was not looked at again and should be.
#include <set>
#include <vector>

#include "base/check.h"
#include "cycle/admissions.h"

namespace berth::cycle {

using model::QueueBar;
using model::QueueId;
using model::QueueKind;
using model::WorkloadId;
using model::WorkloadRefusal;

std::vector<WorkloadId> Admissions::Missed(const model::State& of,
                                           const place::Evaluator& evaluator,
                                           const SlotPlacer::Options& placing, bool each) const {
  for (uint32_t i = 0; i < of.workloads().size(); ++i)
    CHECK(HoldingOf(of, WorkloadId{i}) == (i < holds_.size() ? holds_[i] : Holding{}));
  std::vector<WorkloadId> missed = MissedByGroups(of);
  model::State state = of;  // What is asked tries changes of claims.
  Held held(*this, state);
  ClassCaches caches(/*bytes_max=*/0);
  ClassPlaces counted;
  place::PreemptionScratch scratch;
  const Kept nothing_kept;
  // Whether nodes are what still keeps it waiting.
  const auto is_placeless = [&](Nomination& n, const WorkloadRefusal& told) {
    if (told.places.empty()) return false;
    SlotPlacer placer(state, evaluator, caches, counted, scratch, placing);
    placer.Heed(promised_places_);
    return !FindPlaces(state, placer, {nothing_kept, held, {}}, n);
  };
  // Trees where somebody leaves: who waits there is looked at once that one is gone.
  std::set<QueueId> leaving;
  for (const auto& [queue, holders] : holders_) {
    const QueueId q = state.queues().Find(QueueKind::kClusterQueue, queue);
    if (q.valid() && holders.begin()->evicted) leaving.insert(state.queues().RootOf(q));
  }
  for (const auto& [name, line] : lines_.lines()) {
    for (const WorkloadId workload : lines_.MembersOf(name)) {
      if (IsToBeTried(state, workload)) continue;
      const WorkloadLines::Shape& shape = lines_.shape_of(workload);
      if (!each && shape.first().workload != workload) continue;
      // Others took the room of its groups since: it is set apart when it is to be looked at.
      if (entries_[workload.value].lacks.empty() && WhyUnready(state, workload)) continue;
      // Who waits for room for its claims is looked at with the next change in its tree.
      const bool is_full = shape.refusal->bar == QueueBar::kFull;
      Nomination n = Nominate(state, workload, held);
      // It may come to be another, with places.
      const bool nominated =
          n.verdict == Nomination::Verdict::kFits || n.verdict == Nomination::Verdict::kPreempts;
      const bool placeless = nominated && is_placeless(n, *shape.refusal);
      // Beside those that leave already it may evict whom it could not when it was looked at: who
      // got what was left since.
      const bool preempts =
          n.verdict == Nomination::Verdict::kPreempts && !leaving.contains(RootOf(state, workload));
      bool gets = n.verdict == Nomination::Verdict::kFits || preempts;
      if (gets && !placeless && entries_[workload.value].together) {
        SlotPlacer placer(state, evaluator, caches, counted, scratch, placing);
        placer.Heed(promised_places_);
        gets = FindPlaces(state, placer, {nothing_kept, held, {}}, n) &&
               !FindMates(state, placer, nothing_kept, n).why;
      }
      if (!is_full && gets && !placeless) missed.push_back(workload);
      if (IsStrict(state, name)) break;
    }
  }
  return missed;
}

}  // namespace berth::cycle
