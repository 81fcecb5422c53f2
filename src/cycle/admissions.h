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
#include "cycle/flavor_scans.h"
#include "cycle/shortfalls.h"
#include "cycle/slots.h"
#include "cycle/workload_lines.h"
#include "gang/readiness.h"
#include "model/plan.h"
#include "model/state.h"
#include "quota/counts.h"
#include "quota/flavors.h"
#include "quota/over_index.h"
#include "quota/preempt.h"

namespace berth::cycle {

// What keeps all workloads of a ClusterQueue waiting. O(its flavors).
[[nodiscard]] model::QueueBar BarOf(const model::State& state, model::QueueId q);

// The workloads that wait for quota, in one line per ClusterQueue (cycle/workload_lines.h). And who
// of them gets it: of each line the first is looked at, and those that fit, or would if others
// left, are served in the order of quota/order.h.
//
// For whom others have to leave is promised its quota, and they are evicted (quota/preempt.h). What
// is left is for others as far as every promise can come true yet, once all that leave are gone. It
// gets its quota once that is there, or is promised anew when that can't come true any more.
//
// Who finds no quota in any flavor is refused with all of its shape, and lets those behind it pass
// unless its queue is StrictFIFO; who is only served too late is looked at again in the next round
// (cycle/flavor_scans.h). Those refused are when what their tree may use changes, or when quota of
// it is given back that may help them (cycle/shortfalls.h). Those behind the first of a shape are
// told why they wait when that is another thing, not when only the amount that is missing is
// another. O(log workloads) a change of one, and O(shapes) of its line; waking a tree is O(its
// queues + their shapes). Behind the first of a StrictFIFO queue those that came since are told
// whom they wait behind; when another is the first, all of them are, O(line x log line), since each
// of their objects names it. A round in which somebody looks for victims to reclaim from is
// O(queues of their cohort) besides, however many wait (quota/over_index.h).
//
// Quota is given together with the places on nodes that the placer decides of (cycle/slots.h), or
// not at all; who has to pass admission checks gets those when it has (cycle/second_pass.h). Who
// finds quota and no places is looked at again, too, when nodes can hold as many of its pods as
// found none: O(shapes that found none) whenever something about nodes was lifted.
class Admissions {
 public:
  Admissions() : Admissions(/*naive=*/false) {}
  // `naive`: all of a tree is looked at again whenever quota of it is given back, and all of a
  // strict queue are told each time whom they are behind. Decides and tells the same; for tests.
  explicit Admissions(bool naive) : naive_(naive) {}

  // The workload's row changed, came or went.
  void Sync(const model::State& state, model::WorkloadId workload);
  // Who holds quota may be another since the last Apply: State::changed_holders, all of them.
  void NoteHolders(const model::State& state);
  // Quota of the queue's tree may be to be had that was not.
  void NoteQueue(const model::State& state, const model::QueueName& queue);
  // Quota of it was given back: State::relieved_queues.
  void NoteRelieved(const model::State& state, const model::QueueName& queue);
  // The group, or a member of it, came, went or changed. O(workloads that wait whose pods name it;
  // when it went, whose pods name any).
  void NoteGroup(const model::State& state, model::GroupId group);
  // What is left to queues of groups may be another. O(those that wait for that).
  void NoteGroupQuota(const model::State& state);
  [[nodiscard]] bool waits_for_group_quota() const { return !short_.empty() || !together_.empty(); }
  // Nodes may hold what they could not.
  void NoteNodes() { nodes_lifted_ = true; }
  // Has it looked at again, and those beside it, if it waits in a line.
  void LookAgain(const model::State& state, model::WorkloadId workload);
  // Reserves quota for who gets it; the plan tells whom, and who waits for another reason than
  // before. It ends when `heads_max` heads were looked at; a round of all lines is not cut, so that
  // their order decides nothing.
  void Serve(model::State& state, Instant now, uint32_t heads_max, SlotPlacer& placer,
             model::Plan& plan);
  // The most important of those that Serve may give something; nothing: there is nobody. O(lines)
  // while somebody is to be looked at.
  [[nodiscard]] std::optional<WorkloadLines::Place> FirstToServe(const model::State& state,
                                                                 Instant now) const;
  // How many heads were looked at, ever.
  [[nodiscard]] uint64_t heads_decided() const { return heads_decided_; }
  // When Serve has something to do: at once, or when a workload may be tried.
  [[nodiscard]] Instant wake_at() const;

  // Why it waits, as of the last look; nothing when it does not, or was not looked at.
  [[nodiscard]] std::optional<model::WorkloadRefusal> WhyWaits(model::WorkloadId workload) const;
  // The same, with how much is missing as of now: a line whose first can't have what is given back
  // is not looked at, and what others take since makes more missing. O(levels x reasons).
  [[nodiscard]] std::optional<model::WorkloadRefusal> WhyWaitsNow(const model::State& state,
                                                                  model::WorkloadId workload) const;
  // Whether it stands in a line and a look at it is due: it was not refused since something changed
  // that may matter to it.
  [[nodiscard]] bool IsToBeTried(const model::State& state, model::WorkloadId workload) const;
  // Who waits in the line of the ClusterQueue, in the order in which they are looked at. O(those).
  [[nodiscard]] std::vector<model::WorkloadId> LineOf(model::NameId cluster_queue) const;
  // Those that were refused and would get quota now, although nothing is noted that would have them
  // looked at again: a bug each. Copies the state; O(workloads refused x flavors), or without
  // `each` O(shapes refused x flavors): then the first of those that are alike speaks for them.
  // `evaluator`, `placing`: of the placer. Checks what is noted of who holds quota, too.
  [[nodiscard]] std::vector<model::WorkloadId> Missed(const model::State& state,
                                                      const place::Evaluator& evaluator,
                                                      const SlotPlacer::Options& placing,
                                                      bool each) const;

  void AddTo(Hasher& hasher) const;

 private:
  enum class Mode : uint8_t { kAbsent, kLater, kApart, kInLine };
  struct Entry {
    Mode mode = Mode::kAbsent;
    model::NameId line;
    Instant from;                                   // kLater.
    std::optional<model::WorkloadRefusal> refusal;  // That it was told.
    // kInLine: what the queues of its groups had too little of when it was to be looked at.
    std::vector<gang::Shortage> lacks = {};
    // kInLine: for how few pods it asked for room there (gang::AskedBy); empty: for all.
    std::vector<uint32_t> asked = {};
    // kInLine: others are to leave it the room there that it is promised.
    bool awaits_room = false;
    // kInLine: its group could start only if others that wait got quota with it.
    bool together = false;
    std::vector<model::NameId> gangs = {};  // That its pods name.
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
    Shortfall shortfall;           // kRefused.
    std::vector<uint32_t> counts;  // Of pods by pod set, where fewer than it asks for.
    // It would have places if nobody had been served before it, and may get other flavors.
    bool outrun = false;
    // Where its pods go, if that is decided here: now, or by topology once others are gone.
    SlotPlacer::Found places;
    std::vector<quota::Victim> victims;  // kPreempts: who has to leave, or leaves already.
    std::vector<model::PodId> pods;      // kPreempts: who has to leave its node for it besides.
    model::WorkloadRefusal refusal;      // Unless it fits.
  };
  class Look;
  // Who holds quota, for who looks for victims, while no facts come.
  struct Held {
    Held(const Admissions& admissions, const model::State& state);
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    const quota::HoldersOf of;
    quota::OverIndex over;
  };
  // What those in a strict queue were told that stand behind its first.
  struct Behind {
    model::WorkloadId first;
    model::QueueBar bar = model::QueueBar::kBehind;
    std::vector<model::WorkloadId> fresh;  // Came since; some may have gone again.
  };
  // As what a workload holds quota of that ClusterQueue; or invalid: it holds none.
  struct Holding {
    model::NameId queue;
    quota::Admitted as;
    bool operator==(const Holding&) const = default;
  };

  // Flavors that a workload is not to get, by pod set: their nodes can't hold it.
  using Without = std::vector<std::vector<model::NameId>>;

  // By the root of a tree: what others are kept from until the round is over.
  using Kept = std::map<model::QueueId, std::vector<quota::Demand>>;

  // One look at the first of each line.
  struct Round {
    model::State& state;
    SlotPlacer& placer;
    model::Plan& plan;
    // Roots of trees whose lines that rest may get something.
    const std::set<model::QueueId>& relieved;
    Held held;
    Shortfalls::Free free;  // Of those trees, when it began.
    // Roots of trees where something was decided; invalid: of none.
    std::set<model::QueueId> served = {};
    Kept kept = {};
    // Who got quota, and places with it.
    std::vector<model::WorkloadId> got = {};
  };

  // Who gets quota and places at once, so that their groups can start; or whom it fails for.
  struct Mates {
    std::vector<Nomination> all = {};  // With the one that is asked for.
    std::optional<gang::Unready> why = {};
    model::WorkloadId lacking = {};  // The first that gets nothing; invalid: there are too few.
  };

  void SyncRow(const model::State& state, model::WorkloadId workload);
  void Leave(model::WorkloadId workload);
  void Enter(const model::State& state, model::WorkloadId workload);
  void Apart(model::WorkloadId workload, model::QueueBar bar);
  bool NoteGang(const model::State& state, std::set<model::WorkloadId>& of);
  [[nodiscard]] static bool NamesGroups(const model::State& state, model::WorkloadId workload);
  // Others that wait whose pods name a group of its, too, in the order of their importance.
  [[nodiscard]] std::vector<model::WorkloadId> MatesOf(const model::State& state,
                                                       model::WorkloadId workload) const;
  // Why its groups could not start with it and all of those.
  [[nodiscard]] std::optional<gang::Unready> WhyUnready(const model::State& state,
                                                        model::WorkloadId workload) const;
  // Whether they could not without them.
  [[nodiscard]] static bool NeedsMates(const model::State& state, model::WorkloadId workload);
  [[nodiscard]] static std::vector<model::NameId> GangsOf(const model::State& state,
                                                          model::WorkloadId workload);
  void NoteMates(model::WorkloadId workload);
  void FollowMates(const model::State& state);
  void WakeTogether(const model::State& state);
  void WakeShape(model::WorkloadId workload);
  [[nodiscard]] Mates FindAble(model::State& state, Held& held, model::WorkloadId workload) const;
  [[nodiscard]] Mates FindMates(const model::State& state, SlotPlacer& placer, const Kept& kept,
                                const Nomination& nomination) const;
  [[nodiscard]] std::vector<model::WorkloadId> MissedByGroups(const model::State& state) const;
  bool FollowGangs(const model::State& state, model::WorkloadId workload);
  // Whether it is promised its quota, and others are yet to leave the queues of its groups.
  [[nodiscard]] static bool AwaitsRoom(const model::State& state, model::WorkloadId workload);
  // `unready`: why its groups could not start with it, if they could not.
  [[nodiscard]] static bool StandsInLine(const model::State& state, model::WorkloadId workload,
                                         const std::optional<gang::Unready>& unready);
  void StandAnew(const model::State& state, model::WorkloadId workload);
  [[nodiscard]] static bool MayAskForRoom(const model::State& state, model::NameId line,
                                          const gang::Unready& unready);
  bool SetApart(const model::State& state, const std::vector<model::WorkloadId>& heads);
  [[nodiscard]] bool WaitsInGang(const model::State& state, model::WorkloadId workload) const;
  [[nodiscard]] bool IsAsItsGangs(const model::State& state, model::WorkloadId workload) const;
  void Stand(const model::State& state, model::WorkloadId workload, model::NameId line);
  // `shortfall`: what would help it.
  void Refuse(const model::State& state, model::WorkloadId workload, model::WorkloadRefusal refusal,
              const Shortfall& shortfall, model::Plan& plan);
  void Tell(model::WorkloadId workload, model::WorkloadRefusal refusal, model::Plan& plan);
  void TellAlike(model::WorkloadId first, model::Plan& plan);
  void TellBehind(model::State& state, model::NameId line, model::Plan& plan);
  void WakeLine(const model::State& state, model::NameId name);
  bool NoteByAge(const model::State& state, model::NameId line);
  // Of a tree: all, those that may reclaim quota of others, those that may evict anybody.
  enum class Whom : uint8_t { kAll, kReclaiming, kEvicting };
  void WakeTree(const model::State& state, model::QueueId root, Whom whom);
  [[nodiscard]] bool IsTreeNoted(const model::State& state, model::NameId line) const;
  std::set<model::QueueId> WakeChanged(const model::State& state);
  void Rest(const model::State& state, model::NameId line);
  [[nodiscard]] bool MayEvictSome(const model::State& state, model::QueueId queue, int32_t priority,
                                  const std::map<Shortfalls::Want, model::Amount>& needs) const;
  // Null: it is not there.
  [[nodiscard]] static const model::Queue* RowOf(const model::State& state,
                                                 model::NameId cluster_queue);
  [[nodiscard]] static bool IsStrict(const model::State& state, model::NameId cluster_queue);
  [[nodiscard]] static bool MayEvictAny(const model::Queue& queue);
  [[nodiscard]] static model::QueueName TopOf(const model::State& state,
                                              const model::QueueName& queue);
  [[nodiscard]] std::vector<model::WorkloadId> Heads(model::State& state, model::Plan& plan);
  // What it is charged, or promised.
  [[nodiscard]] static const model::Reservation& HeldBy(const model::Workload& workload);
  [[nodiscard]] static Holding HoldingOf(const model::State& state, model::WorkloadId workload);
  void NoteDecided(const model::State& state, quota::OverIndex* over);
  [[nodiscard]] Nomination Nominate(model::State& state, model::WorkloadId workload, Held& held,
                                    const Without& without = {},
                                    SlotPlacer* placer = nullptr) const;
  [[nodiscard]] model::Reservation ReservationOfNomination(model::State& state,
                                                           const Nomination& nomination) const;
  // What a round has besides, for who looks for places.
  struct Beside {
    const Kept& kept;
    Held& held;
    std::span<const model::WorkloadId> served;  // Before it.
  };
  bool FindPlaces(model::State& state, SlotPlacer& placer, Beside beside,
                  Nomination& nomination) const;
  bool FindPlacesNow(model::State& state, SlotPlacer& placer, Beside beside, Nomination& nomination,
                     std::vector<Nomination>& asked) const;
  bool FindPlacesToCome(model::State& state, SlotPlacer& placer, std::span<const Nomination> asked,
                        Nomination& nomination) const;
  [[nodiscard]] static std::vector<quota::CountRange> RangesOf(const model::State& state,
                                                               const model::Workload& row,
                                                               std::span<const uint32_t> counts);
  bool FindFewerPlaces(model::State& state, SlotPlacer& placer, std::span<const Nomination> asked,
                       Nomination& nomination) const;
  std::optional<Nomination> LookAhead(model::State& state, SlotPlacer& placer,
                                      const Nomination& asked,
                                      std::optional<model::PreemptionRefusal>& why) const;
  bool TakeVictims(const model::State& state, std::span<const model::PodId> pods,
                   Nomination& nomination) const;
  bool FindPlacesOtherwise(model::State& state, SlotPlacer& placer, Beside beside,
                           Nomination& nomination) const;
  void DropPlaces(const model::State& state, model::WorkloadId workload);
  void RefusePlaceless(Round& round, const Nomination& nomination);
  [[nodiscard]] bool IsOutrun(Round& round, model::WorkloadId workload);
  void KeepPlacesFor(model::State& state, SlotPlacer& placer, const Nomination& nomination);
  void EndKeptPlaces();
  [[nodiscard]] static bool IsPromised(const model::State& state, model::WorkloadId workload);
  bool HelpsPlaces(model::State& state, SlotPlacer& placer, Nomination& nomination) const;
  void WakePlaceless(SlotPlacer& placer);
  void WakeOutrun(const model::State& state);
  // Of the tree that it waits in; invalid: its queue is not there.
  [[nodiscard]] model::QueueId RootOf(const model::State& state, model::WorkloadId workload) const;
  [[nodiscard]] bool StillFits(model::State& state, const Nomination& nomination,
                               const Kept& kept) const;
  [[nodiscard]] bool StillHelps(model::State& state, const Nomination& nomination,
                                const Kept& kept) const;
  void KeepFor(const model::State& state, const Nomination& nomination, Kept& kept) const;
  uint32_t ServeRound(model::State& state, std::span<const model::WorkloadId> heads,
                      const std::set<model::QueueId>& relieved, SlotPlacer& placer,
                      model::Plan& plan);
  uint32_t ServeResting(Round& round, const Shortfalls::Turn* before,
                        std::optional<Shortfalls::Turn>& from);
  [[nodiscard]] bool HadEnough(const Round& round, const Nomination& nomination) const;
  bool TurnDown(Round& round, const Nomination& nomination);
  void ServeInTurn(Round& round, Nomination& nomination);
  void ServeWithMates(Round& round, const Nomination& nomination);
  void PutOffPlaces(Round& round, std::span<Nomination> all) const;
  bool ServeOne(model::State& state, const Nomination& nomination, model::Plan& plan);
  void EndStrayPromises(model::State& state);
  void EndSparing(model::State& state, Instant now);
  struct Noted {
    size_t workloads = 0;
    size_t queues = 0;
    size_t relieved = 0;
    bool operator==(const Noted&) const = default;
  };
  [[nodiscard]] static Noted AllOf(const model::State& state);
  void NoteChanges(const model::State& state, const Noted& before);

  bool naive_ = false;
  std::vector<Entry> entries_;  // By WorkloadId.
  WorkloadLines lines_;
  Shortfalls shortfalls_;  // Lines that rest, and some of those active.
  FlavorScans scans_;
  std::map<model::NameId, Behind> behind_;  // By line: of those whose first bars the others.
  bool nodes_lifted_ = false;               // Since who found no nodes was looked at.
  bool yielding_ = false;                   // Since then, too: somebody may be evicted from nodes.
  std::set<model::NameId> active_;          // Lines that may have a head to look at.
  // Whose evictions go by age.
  std::set<model::NameId> by_age_;
  std::set<std::pair<Instant, model::WorkloadId>> later_;
  // By the group that their pods name: who waits, and others that did.
  std::map<model::NameId, std::set<model::WorkloadId>> of_gang_;
  std::set<model::WorkloadId> short_;     // Whose group waits for what is left to its queue.
  std::set<model::WorkloadId> together_;  // Entry::together.
  std::set<model::NameId> mates_moved_;  // Groups of which others wait, or hold quota, than before.
  uint64_t keeping_seen_ = 0;            // Of State::keeping_moves.
  std::set<model::WorkloadId> unready_;  // Whose promise ends, since its group could not start.
  // Whose evictions were refused, and until when they are spared.
  std::map<model::WorkloadId, Instant> spared_;
  std::set<model::QueueName> changed_;  // Roots, there or not.
  std::set<model::QueueName> lowered_;  // Likewise: some there are less important than they were.
  std::map<model::QueueName, std::set<model::NameId>> relieved_;  // By root: its queues.
  // Why they wait was known when they came: kept out by their LocalQueues, or as their equals.
  std::vector<model::WorkloadId> untold_;
  // Who holds quota, by the name of the ClusterQueue; and how, by WorkloadId.
  std::map<model::NameId, quota::Holders> holders_;
  std::vector<Holding> holds_;
  size_t holders_noted_ = 0;          // Of State::changed_holders.
  std::set<model::QueueId> taken_;    // Roots of trees where somebody got quota, in this cycle.
  std::set<model::NameId> borrowed_;  // Lines that were served what is others', in this cycle.
  // Where those are to stand that wait for others to leave their topology.
  SlotPlacer::Promised promised_places_;
  // Those of them for whom nobody leaves, in this round, and who found no places beside them.
  std::vector<model::WorkloadId> keeps_places_;
  std::vector<model::WorkloadId> outrun_;
  uint64_t heads_decided_ = 0;            // Decides nothing.
  std::vector<model::WorkloadId> moved_;  // Whose rows changed while they were promised something.
};

}  // namespace berth::cycle
