#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/limits.h"
#include "base/time.h"
#include "cycle/admissions.h"
#include "cycle/class_cache.h"
#include "cycle/second_pass.h"
#include "cycle/slots.h"
#include "cycle/waiting_groups.h"
#include "cycle/waiting_lines.h"
#include "cycle/why.h"
#include "gang/readiness.h"
#include "model/delta.h"
#include "model/lifecycle.h"
#include "model/plan.h"
#include "model/state.h"
#include "place/evaluate.h"
#include "place/preempt.h"

namespace berth::cycle {

// Why a pod waits, or why it is where it is: data for `berth why`.
struct Explanation {
  model::PodStage stage = model::PodStage::kPending;
  model::ClassId class_id;
  uint32_t class_waiting_count = 0;  // Pods of its line, itself among them.
  uint32_t attempts = 0;
  // Waiting: evaluated for this answer, not remembered.
  model::Refusal refusal;
  bool would_fit = false;  // Some node fits now, or can be made to: it is to be tried.
  // Extenders are being asked about it, or will be when others' answers have come.
  bool asked = false;
  Instant not_before;        // Error backoff; zero for none.
  int32_t refused_code = 0;  // Of the last refused write.
  // Of preemption, of a pod that waits.
  bool promised = false;                   // `node` and `devices` are to be its own.
  std::vector<Leaver> leaving = {};        // From the node that it is promised.
  std::optional<MayEvict> may_evict = {};  // Nothing: it evicts nobody.
  HeldBy held_by = {};                     // Of others, when it is promised nothing itself.
  model::LostPromise lost = {};
  // Who is promised its room, so that it is evicted, or the group that gives it back; invalid for
  // nobody.
  model::KeyId evicted_for = {};
  // Placed, or promised.
  model::NameId node;
  model::DeviceSlots devices;
  bool decided_here = false;  // By this engine since it started; the two below say how.
  int64_t score = 0;
  uint32_t feasible_count = 0;
};

// How much was done; for metrics and tests.
struct Counters {
  uint64_t cycles = 0;
  uint64_t decisions = 0;
  uint64_t attempts = 0;
  uint64_t nodes_evaluated = 0;  // By class caches.
  uint64_t wakes = 0;
  // Pods in lines that were woken, by the first of the node's touches that did it (the bit's
  // number); then those for pods that stand elsewhere, and those for what volumes hang on.
  static constexpr size_t kWokenForPods = model::kTouchKindsCount;
  static constexpr size_t kWokenForVolumes = model::kTouchKindsCount + 1;
  std::array<uint64_t, model::kTouchKindsCount + 2> pods_woken{};
  uint64_t refreshes = 0;            // Refusals that were worked out anew for their age alone.
  uint64_t preemption_attempts = 0;  // Pods that fitted nowhere and asked whose room they may take.
  // Those that found victims, by how many: [i] has at most 2^i and more than [i - 1], the last one
  // more than any; and the victims of all.
  static constexpr size_t kVictimBuckets = 8;
  std::array<uint64_t, kVictimBuckets> preemptions_by_victims{};
  uint64_t victims = 0;
  uint64_t pdb_violations = 0;  // Victims beyond what their budgets allow.
  uint64_t missed_wakes = 0;    // By the watchdog, an attempt or a refresh: a bug each.
};

// The scheduler as a function of a value: facts in, a plan out.
//
// Apply records what is observed; Cycle decides, charges what it decided to the ledger, and returns
// it as data. The caller carries the plan out and applies the outcomes (BindOutcome). Same facts,
// same instants, same seed: same plans. Copying forks; caches are derived data, which a copy
// rebuilds when it needs them. Single-threaded.
class Engine {
 public:
  struct Options {
    place::Evaluator evaluator = place::Evaluator();
    // What the evaluator's tables name: the i-th gets NameId{i}. Distinct.
    std::vector<std::string> names = {};
    std::optional<uint64_t> salt;  // Of ties between nodes; without, the node's name decides.
    uint64_t seed = 0;             // Of Policy::kRandom.
    // A cycle returns after this many attempts, with Plan::more, so that the caller stays
    // responsive: 512 take about 5 ms.
    uint32_t attempts_per_cycle_max = 512;
    // Feasible sets and scores kept per class: about 60 bytes a node each, least recently used
    // dropped.
    size_t cache_bytes_max = size_t{64} << 20;
    LikenessLimits likeness = {};
    // Whether a pod that fits nowhere may take the room of pods of lower priority, where its
    // profile allows it, too.
    bool preemption = false;
    // Whether workloads get quota only together with places for their pods; else those pods alone
    // are placed whose flavor has a topology, and others find nodes by themselves once they come.
    bool joint_placement = false;
    // How long what is due of workloads that hold quota waits for more that comes or fails with it,
    // as upstream's queue of second passes.
    Duration second_pass_delay = Duration::Seconds(1);
    // For tests: the same is decided of workloads, and told, in a simpler way (Admissions).
    bool naive_admissions = false;
    // What the state takes (State::HasRoomFor).
    uint32_t nodes_max = limits::kNodesMax;
    uint32_t pods_max = limits::kPodsMax;
    // Pods about which extenders are asked at once; whoever is next waits for its turn.
    uint32_t queries_max = 32;
    bool compat = false;                               // State::Options::compat
    model::BackoffLimits backoff = {};                 // State::Options::backoff
    std::vector<model::ProfileOptions> profiles = {};  // State::Options::profiles
    model::Faults faults;                              // Planted bugs; none outside tests.
  };
  Engine() : Engine(Options{}) {}
  explicit Engine(const Options& options);

  // Where translate/ interns what its facts name.
  [[nodiscard]] model::Vocabulary& vocabulary() { return state_.vocabulary(); }
  [[nodiscard]] const model::State& state() const { return state_; }

  // Takes one fact. Cost: what it touches; nothing is evaluated.
  void Apply(const model::Delta& delta);

  // Decides. `now` never goes back. Ids in the plan are good until the next Apply.
  model::Plan Cycle(Instant now);

  // When Cycle has something to do: not after `now` means at once; Never() for nothing.
  [[nodiscard]] Instant wake_at() const;

  // Why it waits, or why it is there. O(nodes).
  [[nodiscard]] Explanation Explain(model::PodId pod) const;

  // Why the members that the group needs have no places; nothing when they have, or were not tried
  // yet.
  [[nodiscard]] std::optional<model::Refusal> WhyGroupWaits(model::GroupId group) const;

  // The groups of that Volcano queue whose members wait for something, in the order in which they
  // are served. O(groups).
  [[nodiscard]] std::vector<model::GroupId> GroupsWaitingIn(model::NameId queue) const;

  // Why a workload has no quota, as of the last look; nothing when it has, wants none, or was not
  // looked at yet.
  [[nodiscard]] const Admissions& admissions() const { return admissions_; }

  // Missed wake-ups: the blocked lines whose head fits some node, the holders behind a head who fit
  // the node they were promised, the blocked groups of equal members that could be placed, and the
  // workloads whose quota is left, although no touch is left to be looked at. Every test asserts
  // that there are none. O(blocked lines x nodes + holders).
  [[nodiscard]] uint32_t CountMissedWakes() const;
  // The watchdog: looks at every touch, wakes the lines and holders that CountMissedWakes then
  // counts, and returns how many there were; of workloads that are alike it asks one. Where many
  // lines wait, it looks at the next of them each time: at so many that 500,000 nodes are asked.
  uint32_t CheckWakes(Instant now);
  // Whether the last CheckWakes left some to the next.
  [[nodiscard]] bool checks_remain() const { return check_from_ != 0; }

  [[nodiscard]] const Counters& counters() const { return counters_; }
  // Nodes whose claims were summed up for preemption, since it was made or copied.
  [[nodiscard]] uint64_t nodes_summed_up() const {
    return preemption_scratch_.index.summed_up_count();
  }
  [[nodiscard]] const WaitingLines& lines() const { return lines_; }
  // Pods that stand in no line because extenders are asked about them, or will be.
  [[nodiscard]] size_t awaiting_verdicts() const {
    return to_ask_.size() + state_.verdicts().asked_count();
  }
  [[nodiscard]] const place::Evaluator& evaluator() const { return options_.evaluator; }

  void AddTo(Hasher& hasher) const;

 private:
  struct Choice {
    model::NodeId node;
    int64_t score = 0;
    uint32_t feasible_count = 0;
    uint64_t draw = 0;  // Of the device, with Policy::kRandom.
  };
  // How the last decision about a pod came to be, by PodId.
  struct Trail {
    model::NameId node;  // Invalid: nothing was decided, or not of who has the row now.
    int64_t score = 0;
    uint32_t feasible_count = 0;
  };
  struct Missed {
    std::vector<LineId> lines;
    std::vector<model::PodId> holders;
    std::vector<model::GroupId> groups;
    std::vector<model::WorkloadId> workloads;
    std::vector<model::WorkloadId> passes;
    std::vector<model::GroupId> entries;  // Whose queue would let them in.
    std::vector<model::PodId> for_quota;  // Members whose queue has enough.
    [[nodiscard]] uint32_t count() const {
      return static_cast<uint32_t>(lines.size() + holders.size() + groups.size() +
                                   workloads.size() + passes.size() + entries.size() +
                                   for_quota.size());
    }
  };
  using WhyNoEviction = std::optional<model::PreemptionRefusal>;
  struct Timer {
    Instant at;
    model::PodId pod;
  };

  void Sync(model::PodId pod);
  void DropTrail(model::PodId pod);
  void NoteTouches();
  void SetTimer(model::PodId pod, Instant at);
  void EndBackoffs(Instant now);
  void WakeTouched(Instant now);
  [[nodiscard]] std::vector<LineId> WaitingForMoved(bool domains_changed) const;
  [[nodiscard]] std::vector<model::PodId> HoldersOfMoved(bool domains_changed) const;
  bool WakeForMoved(model::TouchKinds kinds, Instant now);
  void Woke(LineId line, size_t why);
  [[nodiscard]] bool LooksBeyond(model::ClassId class_id) const;
  [[nodiscard]] bool AnyLooksBeyond() const;
  [[nodiscard]] bool AnyMoved() const;
  [[nodiscard]] bool Moved(model::ClassId class_id) const;
  void CollectTouched();
  void WakeOn(model::NodeId node, uint64_t first, Instant now);
  [[nodiscard]] model::Amount CpuMost(model::NodeId node) const;
  [[nodiscard]] SlotPlacer::Options placing() const {
    return {.joint = options_.joint_placement, .evicts = options_.preemption};
  }
  void ServeHolders(Instant now, model::Plan& plan);
  [[nodiscard]] bool GoesBefore(LineId line, model::GroupId group,
                                const WorkloadLines::Place& place) const;
  bool ServeLines(Instant now, const WorkloadLines::Place* before, uint32_t& attempts,
                  model::Plan& plan);
  void ServeWorkloads(Instant now, bool admit, model::Plan& plan);
  void RefreshReports(Instant now);
  void TellWaiting(model::Plan& plan);
  void TellRefused(model::PodId pod, model::Plan& plan) const;
  [[nodiscard]] Choice Choose(model::PodId pod);
  [[nodiscard]] bool Narrow(const Line& line) const;
  [[nodiscard]] Choice ChooseNarrow(const Line& line, model::ReasonMask& reasons) const;
  [[nodiscard]] Choice ChooseAsPromised(model::PodId pod) const;
  [[nodiscard]] Choice ChooseOn(model::PodId pod, model::NodeId node) const;
  [[nodiscard]] Choice ChooseRandom(model::PodId pod, const ClassCache& cache) const;
  void Decide(model::PodId pod, const Choice& choice, model::Plan& plan);
  void Refuse(LineId line, model::ReasonMask known, WhyNoEviction futile, Instant now);
  void ExplainPromise(model::PodId pod, Explanation& e) const;
  [[nodiscard]] WhyNotResult WhyWaits(model::PodId pod, LineKind kind, WhyNoEviction futile) const;
  [[nodiscard]] model::ReasonMask BehindAmounts(LineId line) const;
  void ServeLine(LineId line, Instant now, model::Plan& plan);

  // Groups (gang.cc).
  // What keeps the members of a group from standing in lines of pods.
  enum class GroupMode : uint8_t {
    kNone,
    kBarred,  // Its queue does not let it in, or nobody any more.
    kShort,   // It lacks members.
    kWaits,   // For places for as many as it needs.
    kLoose,   // Nothing: it has what it needs.
  };
  struct Placed {
    model::PodId pod;
    Choice choice;
    model::DeviceSlots devices;
  };
  struct Reserved {
    model::PodId pod;
    place::Preemption found;
  };
  // Of places for a gang: those there are, or with those to come, once all that leaves is gone and
  // what may be evicted.
  struct Trial {
    model::State::Trial claims;
    bool to_come = false;
    // Why the last one found none, when that is its queue.
    std::optional<model::State::QuotaShort> lacks = {};
    std::vector<Placed> placed = {};
    std::vector<Reserved> reserved = {};
    std::vector<model::PodId> kept = {};   // To come: who is promised a place already.
    model::PreemptionRefusal futile = {};  // To come: why the last one found none.
  };
  // What came of looking for places to come.
  struct Ahead {
    bool found = false;
    std::vector<Reserved> reserved = {};
    std::vector<model::PodId> kept = {};     // Who is promised its place already.
    model::PodId outranks = {};              // Whose promise is in the way.
    std::vector<model::PodId> unbinds = {};  // Victims, some of which are bound by this plan.
  };
  // How many places there are for pods of a class and pin.
  using Places =
      std::map<std::tuple<uint32_t, model::PinKind, uint32_t, uint32_t, uint32_t, int64_t>,
               model::Amount>;
  void NoteVolumes();
  void GiveVolumes(model::PodId pod, model::NodeId node);
  bool WakeVolumes(Instant now);
  [[nodiscard]] std::vector<LineId> WaitingForVolumes() const;
  [[nodiscard]] std::vector<model::PodId> HoldersForVolumes() const;
  [[nodiscard]] bool WaitsInGang(model::PodId pod) const;
  [[nodiscard]] bool StandsAlone(model::PodId pod) const;
  void SyncGroup(model::GroupId group);
  void SyncMembers(model::GroupId group);
  void SyncGroupOf(model::PodId pod);
  [[nodiscard]] std::vector<model::PodId> MembersOf(model::GroupId group,
                                                    model::MemberKind kind) const;
  [[nodiscard]] std::vector<model::PodId> MembersToPlace(model::GroupId group) const;
  bool PlaceOne(model::PodId pod, bool anywhere, Trial& trial);
  bool ReserveOne(model::PodId pod, bool anywhere, Trial& trial);
  std::optional<model::Refusal> PlaceSome(std::vector<model::PodId>& members, model::NameId role,
                                          uint32_t count, Trial& trial);
  std::optional<model::Refusal> PlaceGang(model::GroupId group, const gang::Need& need,
                                          Trial& trial);
  [[nodiscard]] Instant DeadlineOf(model::GroupId group, Instant since) const;
  void ReleasePartly(Instant now, model::Plan& plan);
  void ReleaseGang(model::GroupId group, Instant now, model::Plan& plan);
  [[nodiscard]] bool GroupIsNext(model::GroupId group, LineId line) const;
  void ServeGroup(model::GroupId group, Instant now, model::Plan& plan);
  std::optional<model::Refusal> TryGang(model::GroupId group, model::Plan& plan);
  std::vector<model::PodId> ReserveGang(model::GroupId group, model::Refusal& why,
                                        model::Plan& plan);
  void DecideAgain(std::span<const model::PodId> pods, model::Plan& plan);
  Ahead LookAhead(model::GroupId group, std::span<const model::PodId> outranked,
                  model::Refusal& why, const model::Plan& plan);
  [[nodiscard]] bool CanAllBeKept(const Trial& trial) const;
  [[nodiscard]] bool TakesFromMoreImportant(std::span<const Reserved> reserved,
                                            std::span<const model::PodId> outranked) const;
  bool KeepAhead(model::GroupId group, const Ahead& ahead, std::span<const model::PodId> outranked,
                 model::Refusal& why, model::Plan& plan);
  // Whether pods are evicted for those of its profile, and for it.
  [[nodiscard]] bool Preempts(model::PodId pod) const;
  [[nodiscard]] bool MayEvict(model::PodId pod) const;
  [[nodiscard]] std::optional<model::PreemptionRefusal> WhoLeavesFor(model::GroupId group) const;
  [[nodiscard]] bool CouldDo(model::GroupId group);
  [[nodiscard]] model::PodId LeastHolder(const Trial& trial) const;
  bool EndPlaces(model::GroupId group, model::Plan& plan);
  void EndSpare(model::GroupId group, const Ahead& ahead, model::Plan& plan);
  [[nodiscard]] bool KeepsPlaces(model::GroupId group) const;
  [[nodiscard]] bool IsOverPromised(model::GroupId group) const;
  void JudgeGangs(model::Plan& plan);
  // Quota of their queues (gang_quota.cc).
  [[nodiscard]] bool quota_moved() const {
    return quota_seen_ != state_.ledger().quota_moves() &&
           (!quota_waiting_.empty() || !to_let_in_.empty() || !groups_for_quota_.empty() ||
            admissions_.waits_for_group_quota());
  }
  // Whether who waits for quota is to be looked at.
  [[nodiscard]] bool quota_due() const {
    return quota_untold_ || quota_moved() || quota_held_back_;
  }
  [[nodiscard]] bool FitsQuota(model::PodId pod, Trial& trial) const;
  bool WaitForQuota(model::PodId pod);
  void NoteForQuota(model::GroupId group, const model::Refusal& refusal);
  void TakeQuota(model::Plan& plan);
  // In the order of priority, age and uid.
  void SortGroups(std::vector<model::GroupId>& groups) const;
  void LetGroupsIn(model::Plan& plan);
  void TellShort(model::Plan& plan);
  [[nodiscard]] static bool RefusedForever(const model::Refusal& refusal);
  [[nodiscard]] bool LacksQuota(model::GroupId group) const;
  [[nodiscard]] std::vector<model::GroupId> MissedEntries() const;
  [[nodiscard]] std::vector<model::PodId> MissedQuota() const;
  [[nodiscard]] gang::EmptyPlaces empty_places() const;
  void NotePromiseIn(model::PodId pod);
  void TellMembers(model::GroupId group, const model::Refusal& refusal, model::Plan& plan);
  void TellIncomplete(model::Plan& plan);
  [[nodiscard]] bool IsOrphan(model::PodId pod) const;
  [[nodiscard]] model::Refusal RefusalOfOrphan(model::PodId pod) const;
  [[nodiscard]] model::Refusal RefusalOfShort(model::GroupId group) const;
  [[nodiscard]] std::optional<model::Refusal> RefusalOfFailing(model::GroupId group) const;
  [[nodiscard]] bool CouldHold(model::GroupId group, Places& known, bool& equal) const;
  void WakeGroups(model::TouchKinds kinds);
  void WakeMembersForQuota();
  void WakeGroupsForQuota();
  [[nodiscard]] std::vector<model::GroupId> MissedGroups() const;
  void Record(model::PodId pod, const Choice& choice, model::DeviceSlots devices,
              model::Plan& plan);

  // Extenders (asking.cc).
  struct Asking {
    Choice choice;                       // Of the nodes that they permitted and that fit.
    std::vector<model::NodeId> unasked;  // That fit as far as is known, by NodeTable::rank.
  };
  struct Recheck {
    Instant at;
    Instant soonest;  // When anything happened.
    uint64_t query = 0;
  };
  [[nodiscard]] bool Asks(model::PodId pod) const;
  [[nodiscard]] bool AwaitsVerdict(model::PodId pod) const;
  [[nodiscard]] Asking LookAsking(model::PodId pod) const;
  [[nodiscard]] bool HasOldVerdict(model::PodId pod, Instant now) const;
  void ForgetOldVerdict(model::PodId pod, Instant now);
  bool TryAsking(model::PodId pod, model::Plan& plan);
  void ServeAsking(LineId line, Instant now, model::Plan& plan);
  [[nodiscard]] bool MustAskAbout(model::PodId pod, model::NodeId node) const;
  void Ask(model::PodId pod, std::vector<model::NodeId> nodes, model::Plan& plan);
  bool AskAboutVictims(model::PodId pod, model::Plan& plan);
  [[nodiscard]] const std::vector<model::NodeVictims>* PermittedVictims(model::PodId pod) const;
  [[nodiscard]] std::optional<place::PricedPreemption> PriceOf(
      model::PodId pod, const model::NodeVictims& permitted) const;
  [[nodiscard]] place::Preemption FindPermittedPreemption(
      model::PodId pod, const std::vector<model::NodeVictims>& permitted) const;
  void SetRecheck(model::PodId pod, uint32_t attempts, Instant now);
  void DropRecheck(model::PodId pod);
  void HastenRechecks();
  void EndRechecks(Instant now);
  [[nodiscard]] bool MayAskMore() const {
    return state_.verdicts().asked_count() < options_.queries_max;
  }
  void ServeNextToAsk(model::Plan& plan);
  bool AskMembers(model::GroupId group, bool all, Instant now, model::Plan& plan);
  [[nodiscard]] bool AwaitsVerdictOfAny(model::GroupId group) const;
  void SetRechecks(model::GroupId group, Instant now);
  void SyncGroupsThatAsk();

  // Preemption (preempt.cc).
  [[nodiscard]] LineKind KindOf(model::PodId pod) const;
  [[nodiscard]] bool CanBeKept(model::PodId pod) const;
  [[nodiscard]] bool AwaitsVictimsAsUpstream(model::PodId pod, model::NodeId promised) const;
  [[nodiscard]] bool EvictionsHelp(model::PodId pod, model::NodeId node) const;
  [[nodiscard]] place::NodePreemption AskAboutEvictions(model::PodId pod, model::NodeId node) const;
  [[nodiscard]] bool EvictionsGoOn(model::PodId pod) const;
  [[nodiscard]] bool VictimsLeave(model::PodId pod) const;
  [[nodiscard]] bool BacksOff(model::PodId pod) const;
  [[nodiscard]] bool IsJudged(model::PodId pod) const;
  void JudgePromise(model::PodId pod, Instant now, model::Plan& plan);
  [[nodiscard]] bool EvictionsKeepPromise(model::PodId pod) const;
  void RevokePromise(model::PodId pod, model::ReasonKind why, model::Plan& plan);
  void TellRevoked(model::PodId pod, model::Plan& plan);
  bool TakeOver(model::PodId pod, const place::Preemption& found, model::Plan& plan);
  bool Outrank(std::span<const model::PodId> pods, std::span<const model::NodeId> taken,
               const std::function<bool()>& keep, model::Plan& plan);
  void NotePreemption(model::PodId pod, const place::Preemption& found, model::Plan& plan);
  [[nodiscard]] model::ReasonKind WhyNotKept(model::PodId pod) const;
  [[nodiscard]] bool EvictionsBegan(model::PodId pod, model::NodeId node) const;
  [[nodiscard]] bool AnyLessImportant(model::PodId pod, model::NodeId node,
                                      bool (*such)(const model::Pod& other)) const;
  [[nodiscard]] bool OverdueWouldDo(model::PodId pod, model::NodeId n) const;
  [[nodiscard]] place::Preemption FindPreemption(model::PodId pod) const;
  [[nodiscard]] place::Preemption FindPreemption(model::PodId pod,
                                                 std::span<const model::PodId> outranked,
                                                 model::PodId& in_the_way);
  [[nodiscard]] std::optional<place::Preemption> FindPreemptionAsUpstream(model::PodId pod) const;
  void SumUpAhead(Instant now);
  [[nodiscard]] bool EvictionsHelpNarrowly(const Line& line) const;
  [[nodiscard]] bool BindsAny(std::span<const model::PodId> victims, const model::Plan& plan) const;
  std::vector<model::PodId> TakeBackBinds(std::span<const model::PodId> victims, model::Plan& plan);
  WhyNoEviction Preempt(model::PodId pod, model::Plan& plan);
  [[nodiscard]] model::PodId LeastHolder(model::NodeId node, model::PodId below,
                                         std::span<const model::PodId> but) const;
  void NoteGrace(model::PodId pod);
  void StartGraces(Instant now);
  void EndGraces(Instant now);
  [[nodiscard]] model::Viewer ViewerOf(model::PodId pod) const;
  [[nodiscard]] Missed MissedWakes(std::span<const LineId> lines, bool each) const;
  [[nodiscard]] uint64_t NodesAskedByLine() const;
  std::vector<LineId> TakeLinesToCheck();

  Options options_;
  model::State state_;
  WaitingLines lines_;
  WaitingGroups groups_;
  Admissions admissions_;
  SecondPass second_pass_;
  std::vector<GroupMode> group_modes_;           // By GroupId.
  std::vector<model::GroupId> groups_to_tell_;   // Members of which may not know what it lacks.
  std::vector<model::GroupId> groups_to_judge_;  // What they were promised may not be whole.
  std::vector<model::PodId> orphans_;            // Whose group may not be there.
  // Those that never ran and hold nodes for fewer than they need, and since when; zero: as of the
  // next cycle.
  std::map<model::GroupId, Instant> partly_;
  // Groups that nothing but their queue's quota keeps out, and what they were told that it lacks.
  std::map<model::GroupId, std::optional<model::State::QuotaShort>> to_let_in_;
  // Members that are placed by themselves, for whom their queue has too little.
  std::map<model::PodId, std::optional<model::State::QuotaShort>> quota_waiting_;
  std::set<model::GroupId> groups_for_quota_;  // Blocked ones that may wait for some.
  bool quota_untold_ = false;  // One of the two came or was woken, and is to be looked at.
  // For some of quota_waiting_ there is quota, which those before them, who were woken, may take.
  bool quota_held_back_ = false;
  uint64_t quota_seen_ = 0;    // Of Ledger::quota_moves.
  uint64_t charges_seen_ = 0;  // Of Ledger::quota_charges.
  ClassCaches caches_;
  ClassPlaces places_;
  std::vector<Trail> trails_;
  std::vector<Timer> timers_;      // Of error backoffs and sparings: min-heap by `at`.
  std::vector<Instant> timer_of_;  // By PodId: the last of its timers; zero for none.
  size_t check_from_ = 0;          // Of the blocked lines: where the watchdog goes on.
  std::vector<Timer> graces_;      // When a pod that is deleted is overdue: min-heap by `at`.
  struct Grace {
    Instant by;            // When the pod is to be gone; zero: it stays.
    Instant at;            // Of its timer; zero for none.
    bool untimed = false;  // It is among untimed_.
  };
  std::vector<Grace> grace_of_;        // By PodId.
  std::vector<model::PodId> untimed_;  // Whose timers the next cycle sets.
  std::vector<model::PodId> holders_;  // Reservation holders to try on their node.
  std::set<model::PodId> to_ask_;      // About whom extenders are asked when they have time.
  // Whom extenders refused: when they are asked anew; by pod, and those that are not hastened.
  std::map<model::PodId, Recheck> rechecks_;
  std::set<model::PodId> unhastened_;
  std::set<std::pair<Instant, model::PodId>> recheck_timers_;
  uint64_t noted_position_ = 0;  // In the touch log: what NoteTouches has seen.
  bool lift_pending_ = false;    // A touch since wake_position_ may lift a reason.
  uint64_t wake_position_ = 0;   // In the touch log: what was looked at for wake-ups.
  static constexpr uint64_t kUnsettled = ~uint64_t{0};
  // In the touch log: all that waits was told of this. kUnsettled: not all was told the latest.
  uint64_t refresh_position_ = 0;
  Instant next_refresh_;  // If anything was touched since: when to tell of it.
  Counters counters_;
  // Memory of WakeTouched that lasts from cycle to cycle; empty outside it.
  struct Scratch {
    std::vector<uint32_t> kinds_of;  // By NodeId; zero.
    std::vector<model::NodeId> touched;
    std::vector<LineId> lifted;
  };
  Scratch scratch_;
  // What place::FindPreemption derives from the state and catches up with: changes no decision.
  mutable place::PreemptionScratch preemption_scratch_;
  mutable place::PreemptionScratch upstreams_scratch_;  // Of who leaves, too.
  Instant next_sum_up_;  // When to catch up before anyone asks; no decision hangs on it.
};

}  // namespace berth::cycle
