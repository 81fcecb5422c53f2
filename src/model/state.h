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
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/limits.h"
#include "model/backoff.h"
#include "model/budgets.h"
#include "model/delta.h"
#include "model/faults.h"
#include "model/flavors.h"
#include "model/groups.h"
#include "model/homeless.h"
#include "model/images.h"
#include "model/ledger.h"
#include "model/nodes.h"
#include "model/pods.h"
#include "model/profile.h"
#include "model/queues.h"
#include "model/slots.h"
#include "model/touch.h"
#include "model/transaction.h"
#include "model/verdicts.h"
#include "model/vocabulary.h"
#include "model/volumes.h"
#include "model/workloads.h"

namespace berth::model {

// The cluster as a value: copying it is forking it (a memcpy per column). Facts come in through
// Apply, decisions and what the cycle notes of them through the methods below; a Transaction
// changes the ledger alone. Names are added to the vocabulary, which only grows, by anyone who has
// a fact to tell. Nothing else changes it. Single-threaded.
class State {
 public:
  struct Options {
    std::optional<uint64_t> salt;  // Of ties between nodes (NodeTable).
    // How many it takes. Amounts are clamped so that sums over so many can't overflow.
    uint32_t nodes_max = limits::kNodesMax;
    uint32_t pods_max = limits::kPodsMax;
    // Where berth does better than kube-scheduler by intent, it does as that (docs/DEVIATIONS.md).
    bool compat = false;
    // Of pods and gangs that were looked at in vain, or whose write failed.
    BackoffLimits backoff = {};
    // Of scheduler names: those that are not as the default one. Distinct; of at most
    // kProfileResourcesMax resources.
    std::vector<ProfileOptions> profiles = {};
    Faults faults;  // Planted bugs; none outside tests.
  };
  State() : State(Options{}) {}
  explicit State(const Options& options);

  // translate/ interns names, bundles, selectors and classes here before it applies facts that use
  // them.
  [[nodiscard]] Vocabulary& vocabulary() { return vocabulary_; }
  [[nodiscard]] bool compat() const { return compat_; }
  // By which the class's pods are placed. O(profiles), which are a few.
  [[nodiscard]] const Profile& ProfileOf(ClassId class_id) const {
    return profiles_.size() == 1 ? profiles_.front() : FindProfile(class_id);
  }
  [[nodiscard]] const ProfileRules& RulesOf(ClassId class_id) const {
    return ProfileOf(class_id).rules;
  }
  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }

  // Takes one fact: rows, claims and the touch log become what they are once it is true. Facts
  // about unknown objects, stale uids and repetitions are ordinary and change nothing. Cost: what
  // the fact touches. REQUIRES: HasRoomFor a node, pod, queue, flavor or topology.
  void Apply(const Delta& delta);
  // Whether the fact is of something that is known, or one more can be taken. Who hands facts in
  // asks before, and says what is turned away.
  [[nodiscard]] bool has_room_for_pods() const { return pods_.live() < pods_max_; }
  [[nodiscard]] bool HasRoomFor(const NodeUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const PodUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const QueueUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const FlavorUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const TopologyUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const GroupUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const LocalQueueUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const WorkloadUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const StorageFact& facts) const;
  // Of any fact: one that needs no room has it.
  [[nodiscard]] bool HasRoomForFact(const Delta& delta) const;
  // Whether its claims, and the accounts that they may need, are within limits.
  [[nodiscard]] bool HasRoomFor(const Reservation& reservation) const {
    return HasRoomFor(reservation, Reservation{});
  }
  // In place of what its owner is charged now.
  [[nodiscard]] bool HasRoomFor(const Reservation& reservation, const Reservation& before) const;
  // The pods whose rows the last Apply changed, added or removed (then not used(): a row is not
  // given again within one Apply); in order of change.
  [[nodiscard]] const std::vector<PodId>& changed_pods() const { return changed_pods_; }
  // The groups that it changed, or whose members it did; likewise. The members of one that came or
  // went are among the pods.
  [[nodiscard]] const std::vector<GroupId>& changed_groups() const { return changed_groups_; }

  // The workloads that it changed, or that come to another queue by it; likewise.
  [[nodiscard]] const std::vector<WorkloadId>& changed_workloads() const {
    return changed_workloads_;
  }
  // The workloads of which it may have changed what they are charged, or as what; likewise. Those
  // of a cycle's decisions come behind them.
  [[nodiscard]] const std::vector<WorkloadId>& changed_holders() const { return changed_holders_; }
  // Queues where quota may be to be had that was not, or who may be evicted for it; some may be
  // gone. What that means reaches all of their tree.
  [[nodiscard]] const std::vector<QueueName>& changed_queues() const { return changed_queues_; }
  // Queues of which it gave back quota, now or once those that leave are gone, and nothing else;
  // likewise.
  [[nodiscard]] const std::vector<QueueName>& relieved_queues() const { return relieved_queues_; }

  [[nodiscard]] const NodeTable& nodes() const { return nodes_; }
  [[nodiscard]] const ImageTable& images() const { return images_; }
  [[nodiscard]] const VolumeTable& volumes() const { return volumes_; }
  // Of nodes; a list without a node is forgotten.
  [[nodiscard]] const LabelTable& labels() const { return labels_; }
  // The value of one of the node's labels; invalid when it has no such one. O(log labels).
  [[nodiscard]] NameId LabelOf(NodeId node, NameId key) const;
  [[nodiscard]] const PodTable& pods() const { return pods_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const QueueTable& queues() const { return queues_; }
  [[nodiscard]] const FlavorTable& flavors() const { return flavors_; }
  [[nodiscard]] const GroupTable& groups() const { return groups_; }
  [[nodiscard]] const LocalQueueTable& local_queues() const { return local_queues_; }
  [[nodiscard]] const WorkloadTable& workloads() const { return workloads_; }
  [[nodiscard]] const SlotTable& slots() const { return slots_; }
  [[nodiscard]] const BudgetTable& budgets() const { return budgets_; }
  [[nodiscard]] const VerdictTable& verdicts() const { return verdicts_; }
  [[nodiscard]] const TouchLog& touches() const { return touches_; }
  [[nodiscard]] const Faults& faults() const { return faults_; }

  [[nodiscard]] std::string_view UidOf(OwnerId id) const { return uids_.View(id); }
  [[nodiscard]] std::string_view KeyOf(KeyId id) const { return keys_.View(id); }
  [[nodiscard]] std::string_view NameOf(NameId id) const { return vocabulary_.names.View(id); }
  [[nodiscard]] PodId FindPod(std::string_view uid) const { return pods_.FindUid(uids_.Find(uid)); }
  [[nodiscard]] PodId FindPodByKey(std::string_view key) const {
    return pods_.FindKey(keys_.Find(key));
  }
  [[nodiscard]] NodeId FindNode(std::string_view name) const {
    return nodes_.Find(vocabulary_.names.Find(name));
  }

  // The group that the pod is a member of; invalid when it names none, or none that is there.
  [[nodiscard]] GroupId GroupOf(PodId pod) const { return groups_.FindKey(pods_.at(pod).group); }
  [[nodiscard]] GroupId FindGroup(std::string_view uid) const {
    return groups_.FindUid(uids_.Find(uid));
  }

  // What keeps the group waiting whatever room there is.
  [[nodiscard]] GroupBar BarOf(GroupId group) const;
  // What a queue has too little of, for one that is to be charged to it.
  struct QuotaShort {
    ResourceId resource;
    Amount deficit = 0;
    QueueId queue;       // Of those on the way up the lowest that leaves, or gives, no more.
    bool never = false;  // Even if nobody used anything.
    bool operator==(const QuotaShort&) const = default;
  };
  // Whether the member can be charged to its group's queue; its group's own reservation and promise
  // do not stand in its way. `to_come`: once all that leave are gone. O(resources x levels).
  [[nodiscard]] std::optional<QuotaShort> ShortFor(PodId member, bool to_come = false) const;
  // Charges the member, as one that has a node, to its group's queue: for a look that is undone.
  void ChargeAsPlaced(Transaction& t, PodId member) const;
  // Whether what the group asks to be kept for it can be. O(members + resources x levels).
  [[nodiscard]] std::optional<QuotaShort> ShortFor(GroupId group) const;
  // What the group's queue has too little of for the pods of the workload that name it, or of
  // one that holds quota for those that have places or are to come to some: beside what is reserved
  // for them and for any of its members, once all that leave are gone. `counts`: with how many pods
  // by pod set it is to start, here and below; empty: with all. O(members + places + resources x
  // levels).
  using Counts = std::span<const uint32_t>;
  [[nodiscard]] std::optional<QuotaShort> ShortFor(WorkloadId workload, GroupId group,
                                                   Counts counts = {}) const;
  // Moves whenever it may be another for whose group nothing is kept once it is evicted, or whose
  // group asks for more than its pods do.
  [[nodiscard]] uint64_t keeping_moves() const { return keeping_moves_; }
  // Whether one that is to start with the group's pods has to find what that asks to be kept for
  // it, too: it was not let in yet, or nothing is kept for it since none of the workloads has quota
  // that start its pods. O(claims of those).
  [[nodiscard]] bool AsksForRest(GroupId group) const;
  // How much is missing of each resource, for that and for what the group asks to be kept for it.
  [[nodiscard]] std::map<ResourceId, Amount> ShortagesFor(WorkloadId workload, GroupId group,
                                                          Counts counts = {}) const;
  // Whether there is room for that now, where others leave it, as well. O(members + places +
  // resources x levels).
  [[nodiscard]] bool HasRoomNow(WorkloadId workload, GroupId group, Counts counts = {}) const;
  // Whether nothing is once those workloads leave, as whom it evicts: with their pods, those to
  // come to them, and what is kept for their groups then. Tried in `t`, a transaction of this, and
  // taken back. O(pods and places of those + their groups' members) more.
  [[nodiscard]] bool HasRoomWithout(Transaction& t, WorkloadId workload, GroupId group,
                                    std::span<const WorkloadId> leave, Counts counts = {});
  // What the group's queue could never have of that, whoever left it. O(members + resources x
  // levels).
  [[nodiscard]] std::optional<QuotaShort> NeverFor(GroupId group,
                                                   std::span<const ResourceAmount> need) const;

  [[nodiscard]] QueueId FindQueue(QueueKind kind, std::string_view name) const {
    return queues_.Find(kind, vocabulary_.names.Find(name));
  }

  // As it is good for rows that refer to keys; invalid when none does.
  [[nodiscard]] KeyId FindKey(std::string_view key) const { return keys_.Find(key); }
  [[nodiscard]] WorkloadId FindWorkload(std::string_view uid) const {
    return workloads_.FindUid(uids_.Find(uid));
  }

  // The queue's account of the flavor, for a claim that is charged to it next; made if it has no
  // quota of it. It goes with the last claim. REQUIRES: HasRoomFor a queue with one more flavor.
  [[nodiscard]] AccountId AccountFor(QueueId q, NameId flavor);

  // What a claim of the pod is filed under: its uid.
  [[nodiscard]] OwnerId OwnerOf(PodId pod) const;
  // The pod's claim on a node in any state; invalid when it has none. What it is charged in the
  // queue tree are other claims.
  [[nodiscard]] ClaimId ClaimOf(PodId pod) const { return ledger_.NodeClaimOf(OwnerOf(pod)); }
  // Whether it is of a job that a workload is of, as Pod::queued is to say. O(log jobs).
  [[nodiscard]] bool IsQueued(PodId pod) const;
  // Its claim, if that is a promise; else invalid.
  [[nodiscard]] ClaimId PromiseOf(PodId pod) const;
  // The node that the pod is promised; invalid: none.
  [[nodiscard]] NodeId PromisedNodeOf(PodId pod) const;
  // Who is evicted for the pod and not gone yet. O(claims of the node it is promised).
  [[nodiscard]] std::vector<PodId> VictimsOf(PodId pod) const;
  // For whom the pod's room is kept once it has left its node: who evicts it, or the workload for
  // which its own is to leave. Invalid: for nobody.
  [[nodiscard]] OwnerId ClaimantOf(PodId pod) const;
  // The workload that it has a place of, or seeks one of; invalid: of none.
  [[nodiscard]] WorkloadId WorkloadOf(PodId pod) const;
  // Whether another goes first of those that leave for the same pod, gang or workload, or for whose
  // gang gives back what it has: one, pod or workload, whose eviction was refused before, for the
  // others may go in vain. Of several who was refused most often, each alone until its object says
  // that it goes. `uid`: a pod's or workload's. O(those whose evictions were refused).
  [[nodiscard]] bool GoesAfterOthers(OwnerId uid) const;
  // Pods and workloads whose eviction was refused before, or failed, by uid.
  [[nodiscard]] const std::set<OwnerId>& doubtful() const { return doubtful_; }
  // Whether it is to leave its node: it is evicted, its gang gives its places back, or its workload
  // gives its quota back.
  [[nodiscard]] bool IsToLeave(PodId pod) const;
  // What status.nominatedNodeName is to become by our write, an invalid name for empty; nothing
  // when it may stay.
  [[nodiscard]] std::optional<NameId> NominationToWrite(PodId pod) const;

  // How many promises were taken back for each ReasonKind.
  [[nodiscard]] const std::array<uint64_t, kReasonKindsCount>& promises_lost() const {
    return promises_lost_;
  }

  // For the cycle.
  void SortNames() { nodes_.SortNames(vocabulary_.names); }
  // Makes the class known to the nodes: REQUIRED of one that no pod has before it is evaluated.
  void Materialise(ClassId class_id);
  // Whoever waits for what moved was looked at (SpreadIndex::Moved, AffinityIndex::Moved).
  void TakeMoved() {
    ledger_.mutable_spreads().TakeMoved();
    ledger_.mutable_affinities().TakeMoved();
  }
  // The same of what volumes hang on.
  [[nodiscard]] bool volumes_moved() const {
    return volumes_.moved() || ledger_.volume_uses().moved();
  }
  // Whether it can help a pod with that list of volumes.
  [[nodiscard]] bool VolumesMoved(VolumeListId list) const;
  void TakeMovedVolumes();
  // What a decision gives the pod's claims (VolumeIndex::Give).
  void GiveVolumes(PodId pod, std::vector<GivenVolume> given);
  // The decision is taken back. Who was refused for it may be helped.
  void TakeBackVolumes(PodId pod);
  // From here on facts say what was given. Who was refused for it may be helped.
  void TakeGivenVolumes();
  // Of each log of nodes.
  void TrimTouches(size_t entries_max) {
    touches_.Trim(entries_max);
    ledger_.TrimRecounted(entries_max);
  }
  // Extenders are being asked whether the pod may go to the nodes: the query's number, which its
  // ExternalVerdict brings back. REQUIRES: it asks (Pin::asker).
  uint64_t Ask(PodId pod, std::span<const NodeId> nodes);
  // The same of whom it is to evict. REQUIRES: it asks about that, and no answer is on its way.
  uint64_t AskAboutVictims(PodId pod, const std::vector<NodeVictims>& proposed);
  // What extenders said of the pod is too old.
  void ForgetVerdict(PodId pod) { verdicts_.Erase(pods_.at(pod).uid); }
  // Charges the pod on the node (held, assumed), ending any reservation of its own, in one commit.
  void Assume(PodId pod, NodeId node, DeviceSlots devices);
  // Where a pod is to go.
  struct Placement {
    PodId pod;
    NodeId node;
    DeviceSlots devices;
  };
  // What of a group was found room for, one by one: each is in the ledger, and touches its node, at
  // once, so that what is evaluated next sees it. Kept whole, as if each had been assumed or
  // promised its node, or undone. The state must outlive it, and nothing else changes it meanwhile;
  // CanPromise may be asked.
  class Trial {
   public:
    explicit Trial(State& state)
        : state_(state),
          taken_back_(state.Begin()),
          transaction_(state.Begin()),
          budgets_(state.budgets_) {}
    ~Trial();
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    // REQUIRES: it fits.
    void Place(const Placement& placement);
    // As Promise, to a pod that is promised nothing.
    void Reserve(const Placement& placement, std::span<const PodId> victims);
    // As if the pod, which is promised a node, were not: who is evicted for it and is not being
    // deleted yet stays, or leaves for the heir. Such a trial is not kept. REQUIRES: nothing was
    // placed or reserved yet.
    void WithoutPromise(PodId pod, PodId heir = {});
    // Whether what is reserved may be kept: as Promise says.
    [[nodiscard]] bool Fits();
    // Who is placed keeps its place when its binding fails: the node is promised to it then. Whom
    // it would have evicted, and who is not being deleted yet, stays. REQUIRES: Fits.
    void Keep();

   private:
    struct Placed {
      Placement placement;
      Claim before;  // What it was promised, if its owner is valid.
    };
    State& state_;
    Transaction taken_back_;  // What the rest is tried on.
    Transaction transaction_;
    std::vector<Placed> placed_;
    std::vector<Placement> reserved_;
    std::vector<NodeId> without_;  // The nodes of promises.
    TrialBudgets budgets_;
  };
  // Places for pods that a workload would have, one by one; as above, and always undone.
  class SlotTrial {
   public:
    explicit SlotTrial(State& state)
        : state_(state), transaction_(state.Begin()), budgets_(state.budgets_) {}
    ~SlotTrial();
    SlotTrial(const SlotTrial&) = delete;
    SlotTrial& operator=(const SlotTrial&) = delete;
    // The workload's pods and places are gone, as far as what follows goes.
    void Without(WorkloadId workload);
    // What the workload is promised on nodes is taken, whatever devices it will have there.
    void TakePromised(WorkloadId workload);
    // What it is promised on nodes is taken back: who was to leave for it and did not begin stays.
    void WithoutPromise(WorkloadId workload);
    // REQUIRES: it fits.
    void Place(WorkloadId workload, ClassId class_id, const Slot& slot);
    // Or will, once the victims and all that leaves are gone.
    void Reserve(WorkloadId workload, ClassId class_id, const Slot& slot,
                 std::span<const PodId> victims);

   private:
    void Touch(NodeId node);
    void TakePlacesAgain(WorkloadId workload);
    void Change(ClaimId claim, const Claim& to);
    void End(ClaimId claim);
    State& state_;
    Transaction transaction_;
    std::vector<NodeId> touched_;
    TrialBudgets budgets_;
  };
  // The pod, which is bound and not being deleted, is to be deleted, since its gang can't be
  // completed: its claim is releasing, for nobody. Until it goes, its eviction fails, or its group
  // is gone or another.
  void Release(PodId pod);
  // Its queue lets the group, which is Pending, in: what it needs is kept for it there from now on.
  // REQUIRES: no bar; ShortFor it nothing.
  void LetIn(GroupId group);
  // Whether the nodes could not hold the group even if they were empty, as of now: nothing is kept
  // for it then. What was kept is again, as far as that is not another's meanwhile.
  void SetFutile(GroupId group, bool futile);
  // The group was tried in vain: others go first until its backoff is over.
  void NoteAttempt(GroupId group, Instant now);
  // Promises the node to a pod that waits, and evicts `victims` for it, in one commit: its claim is
  // reserved there, theirs are releasing for it, and so is who leaves the node for a pod of lower
  // priority. What it was promised before ends, and who was to be evicted for that and is not being
  // deleted yet stays. False, and nothing changed, when that would take what somebody else of no
  // higher priority was promised, or who is charged there counts on. REQUIRES: the victims are
  // charged on the node, are not terminating, and are of lower priority.
  [[nodiscard]] bool Promise(PodId pod, NodeId node, DeviceSlots devices,
                             std::span<const PodId> victims);
  // Whether Promise would. Nothing changes.
  [[nodiscard]] bool CanPromise(PodId pod, NodeId node, DeviceSlots devices,
                                std::span<const PodId> victims);
  // Takes back what it was promised, and with it the evictions that have not begun; those go on for
  // the heir, which is to be promised the node next.
  void Revoke(PodId pod, Cause cause, ReasonKind why, PodId heir = {});
  // The pod was tried in vain: when it is nominated to a node that is not there, the nomination
  // promises nothing any more. Whether it was. A node of that name that comes later promises it
  // nothing either, until it is nominated anew.
  bool VoidAbsentNomination(PodId pod);
  // By when the pod is to leave its node by itself, as objects say: who is being deleted, or whose
  // workload is evicted. Zero: it is not.
  [[nodiscard]] Instant LeavesBy(PodId pod) const;
  // It did not go then: nobody can count on its room. Who is not being deleted is as any pod again,
  // and may be evicted, until its workload does not leave any more.
  void NoteOverdue(PodId pod);
  // A pod whose eviction was refused may be evicted again: its time is over.
  void EndSparing(PodId pod);
  // The same of a workload that holds quota.
  void EndSparing(WorkloadId workload);
  // The pod was tried in vain: others go first until its unschedulable backoff is over, which grows
  // with each attempt.
  void NoteAttempt(PodId pod, Instant now);
  // Its error backoff is over: it may be tried again.
  void EndErrorBackoff(PodId pod) { pods_.mutable_at(pod).not_before = Instant{}; }
  // Charges the workload, which waits and is charged nothing, and notes that this is being written.
  // REQUIRES: HasRoomFor it; that much is left.
  // What it was promised ends.
  void Reserve(WorkloadId workload, Reservation reservation);
  // Notes that it is being written where the pods go of one that has quota, with their places
  // charged besides those that it has; or that it is to give up what it has. REQUIRES: it has
  // quota, nothing is under way; `reservation` is what it has with these places, and they fit.
  void Place(WorkloadId workload, Reservation reservation);
  void GiveUp(WorkloadId workload);
  // The same of several in one transaction; all of them fit beside each other.
  struct Placing {
    WorkloadId workload;
    Reservation reservation;
  };
  void PlaceAll(std::vector<Placing> placings);
  // Whether it passed all admission checks that its queue asks for, with the flavors that it has.
  [[nodiscard]] bool PassedChecks(WorkloadId workload) const;
  // The same, had it that quota.
  [[nodiscard]] bool PassedChecks(WorkloadId workload, const Reservation& reservation) const;
  // Whether places come once all are passed: where one is asked for that may bring nodes, and where
  // a flavor has no topology, for places that are lost while checks last are found anew by topology
  // alone (0013). O(checks x flavors).
  [[nodiscard]] bool PlacesComeLater(const Reservation& reservation) const;
  // Promises the reservation to the workload, which waits and is promised nothing: what others
  // leave is for it, and so are its slots on their nodes. The victims hold quota and are to leave
  // for it, besides those that leave already, and `pods` are to be evicted for it. Returns those of
  // the pods that are to be evicted by themselves: not who leaves with a victim. REQUIRES:
  // HasRoomFor it; that much is left once all that leave are gone; the pods are charged on nodes,
  // and are not being deleted.
  struct QuotaVictim {
    WorkloadId workload;
    VictimReason reason = VictimReason::kInQueue;
  };
  std::vector<PodId> PromiseQuota(WorkloadId workload, Reservation reservation,
                                  std::span<const QuotaVictim> victims, std::vector<PodId> pods);
  // Whoever was not told to leave for it stays.
  void EndQuotaPromise(WorkloadId workload, Cause cause);
  // A transaction on this state's ledger.
  [[nodiscard]] Transaction Begin() {
    return Transaction(ledger_, touches_, vocabulary_.bundles, faults_.unfelt);
  }

  void AddTo(Hasher& hasher) const;

 private:
  void ApplyNode(const NodeUpsert& facts);
  void RemoveNode(const NodeRemove& facts);
  void ApplyPod(const PodUpsert& facts);
  void ApplyStorage(const StorageFact& fact);
  void SetClass(PodId id, const PodUpsert& facts);
  void PutInClass(Pod& pod, ClassId class_id);
  void RemovePod(const PodRemove& facts);
  void ApplyOutcome(const BindOutcome& facts);
  void ApplyRead(const BindRead& facts);
  void ApplyBudget(const BudgetUpsert& facts);
  void ApplyVerdict(const ExternalVerdict& facts);
  [[nodiscard]] std::vector<NodeVictims> KnownVictims(const ExternalVerdict& facts) const;
  void ApplyRefused(const PreemptionRefused& facts);
  void ApplyStands(const NominationStands& facts);
  [[nodiscard]] Claim PromiseFor(const Placement& placement) const;
  void Reserve(Transaction& t, const Claim& promise, ClaimId existing,
               std::span<const PodId> victims);
  void NoteReserved(PodId pod, NodeId node);
  void EndEviction(PodId pod);
  void EndOverdue(PodId pod);
  void ApplyRefused(const EvictionRefused& facts);
  void NoteLost(PodId holder, ReasonKind why, NameId node);
  void TouchNodeOf(PodId pod, TouchKinds kinds);
  void GiveUp(PodId holder, int32_t code, Instant at, ReasonKind why);
  // What was to be written or answered for it failed: it waits for its error backoff.
  void NoteError(Pod& pod, Instant at);
  void ApplyQueue(const QueueUpsert& facts);
  void RemoveQueue(const QueueRemove& facts);
  void ApplyFlavor(const FlavorUpsert& facts);
  void RemoveFlavor(const FlavorRemove& facts);
  void ApplyTopology(const TopologyUpsert& facts);
  void RemoveTopology(const TopologyRemove& facts);
  void ChangeQueues();
  void ChangeQueue(QueueId q) { changed_queues_.push_back(queues_.NameOf(q)); }
  void ApplyLocalQueue(const LocalQueueUpsert& facts);
  void RemoveLocalQueue(const LocalQueueRemove& facts);
  void DropLocalQueue(LocalQueueId local_queue);
  void ChangeWorkloadsOf(KeyId local_queue);
  void ApplyWorkload(const WorkloadUpsert& facts);
  void RemoveWorkload(const WorkloadRemove& facts);
  void DropWorkload(WorkloadId workload, Cause cause);
  void ApplyOutcome(const ReservationOutcome& facts);
  void ApplyRead(const ReservationRead& facts);
  void TakeBack(WorkloadId workload, Cause cause);
  void ChargeAgain(WorkloadId workload);
  void EndPromisesIn(NameId cluster_queue);
  void Spare(std::span<const WorkloadId> victims);
  struct Leaving;
  [[nodiscard]] std::optional<Leaving> ToBeToldToLeaveFor(OwnerId uid) const;
  [[nodiscard]] uint32_t RefusalsOf(OwnerId uid) const;
  void ForgetClaimant(WorkloadId victim);
  std::vector<WorkloadId> TakePromise(WorkloadId workload);
  [[nodiscard]] std::vector<Claim> ClaimsOf(WorkloadId workload);
  void SettleReservations(std::span<const WorkloadId> workloads, Cause cause, OwnerId claimant = {},
                          std::span<const PodId> evicted = {});
  void PutReservation(Transaction& t, OwnerId owner, std::span<const Claim> claims,
                      std::vector<uint32_t>& left);
  void NoteLeft(std::span<const uint32_t> accounts);
  // What members of groups are charged to queues (shares.cc).
  [[nodiscard]] QueueId ChargedQueueOf(GroupId group) const;
  [[nodiscard]] ClaimId ShareOf(OwnerId owner) const;
  [[nodiscard]] std::vector<ResourceAmount> RestOf(GroupId group) const;
  using Amounts = std::map<ResourceId, Amount>;
  [[nodiscard]] std::optional<QuotaShort> ShortIn(QueueId q, std::span<const ResourceAmount> need,
                                                  const Amounts& own, bool to_come) const;
  void AddAmounts(BundleId bundle, Amount count, Amounts& to) const;
  void AddRest(GroupId group, Amounts& to) const;
  void AddPromisedShare(PodId member, Amounts& to) const;
  struct Asked {
    std::vector<ResourceAmount> need;
    Amounts own;  // What of that is reserved for it.
  };
  [[nodiscard]] Asked AskedBy(WorkloadId workload, GroupId group, Counts counts) const;
  void LeaveIn(Transaction& t, WorkloadId workload);
  [[nodiscard]] std::vector<uint32_t> ToComeOf(WorkloadId workload) const;
  [[nodiscard]] std::map<BundleId, uint32_t> ToComeOf(GroupId group, WorkloadId workload) const;
  [[nodiscard]] std::map<BundleId, uint32_t> ToComeOf(GroupId group) const;
  [[nodiscard]] bool HasClaims(GroupId group) const;
  [[nodiscard]] bool HasQuota(WorkloadId workload) const;
  void NoteKeeping();
  [[nodiscard]] std::vector<Claim> KeptFor(GroupId group);
  void Share(Transaction& t, PodId pod);
  void ShareOfOwner(Transaction& t, OwnerId owner);
  void Unsettle(GroupId group);
  bool SettleRest(Transaction& t, GroupId group);
  bool SettleRests(Transaction& t);
  void Commit(Transaction& t, Cause cause);
  void SettleShares(KeyId group);
  void PinRoot();
  [[nodiscard]] std::vector<NameId> QueuesBelow(NameId queue) const;
  void ChangeGroupsOf(NameId queue);
  // Slots (slots.cc).
  [[nodiscard]] std::vector<Slot> SlotsWanted(WorkloadId workload) const;
  [[nodiscard]] Claim ClaimOfSlot(WorkloadId workload, uint32_t place) const;
  [[nodiscard]] uint32_t PodsLeft(WorkloadId workload, uint32_t pod_set) const;
  void MakeRowsOfSlots(WorkloadId workload);
  [[nodiscard]] std::vector<uint32_t> PlacesToCome(WorkloadId workload) const;
  void PutSlots(Transaction& t, WorkloadId workload);
  void SettleSlots(WorkloadId workload);
  void Replace(Transaction& t, WorkloadId workload, std::span<const Slot> wanted);
  [[nodiscard]] bool WillHold(const Claim& claim, int32_t priority) const;
  [[nodiscard]] bool LeavesPlace(PodId pod) const;
  void NoteQueued(PodId pod);
  void NoteToCome(WorkloadId workload);
  void BeginSlot(Transaction& t, WorkloadId workload, uint32_t place);
  void EndSlot(Transaction& t, WorkloadId workload, uint32_t place);
  [[nodiscard]] std::vector<PodId> SeekersInOrder(OwnerId job) const;
  template <typename MayTake>
  [[nodiscard]] std::optional<uint32_t> FindPlace(WorkloadId workload, PodId pod,
                                                  MayTake may_take) const;
  [[nodiscard]] bool MaySelect(PodId pod, NodeId node) const;
  void NoteSlot(PodId pod);
  void NoteSlots();
  bool TakePlace(PodId pod);
  void GiveBack(WorkloadId workload, uint32_t place);
  void GiveSlots(WorkloadId workload);
  void GiveSlotsOn(NodeId node);
  void SetJob(WorkloadId workload, const std::string& job);
  [[nodiscard]] bool IsOlder(WorkloadId a, WorkloadId b) const;
  [[nodiscard]] bool IsLeaving(WorkloadId workload) const;
  [[nodiscard]] OwnerId LeavesFor(WorkloadId workload) const;
  [[nodiscard]] std::vector<PodId> PodsOf(WorkloadId workload) const;
  void SetLeaving(Claim& claim, PodId pod) const;
  void PutPods(Transaction& t, WorkloadId workload);
  void StayIfSpared(std::span<const WorkloadId> workloads);
  void Unseat(WorkloadId workload);
  void SettleSeekers(OwnerId job);
  [[nodiscard]] Claim PromisedClaim(WorkloadId workload, const Slot& slot) const;
  void PutPromised(Transaction& t, WorkloadId workload);
  void PutEvicted(Transaction& t, OwnerId claimant, std::span<const PodId> pods);
  void NoteEvicted(OwnerId claimant, std::span<const PodId> pods);
  void EndPromisedPlaces(WorkloadId workload, Cause cause);
  void EndPromisesOn(NodeId node);
  void DropLeftGhosts();
  NodeId AssumeIn(Transaction& t, const Placement& placement);
  void NoteAssumed(const Placement& placement, NodeId left);
  void ApplyFact(const Delta& delta);
  void ApplyGroup(const GroupUpsert& facts);
  void RemoveGroup(const GroupRemove& facts);
  void ChangeMembers(KeyId group);
  void Keep(PodId pod);
  void DropGroup(GroupId group);
  void CleanByName(KeyId group);
  void NoteMember(PodId pod);
  void NoteMembers();
  void TakeBack(PodId pod, Cause cause);
  void DropPod(PodId pod, Cause cause);
  void SettleClaims(PodId pod);
  void SettleBound(PodId pod, ClaimId claim);
  void SettleNomination(PodId pod, ClaimId claim);
  void EndClaims(PodId pod, Cause cause);
  void EndNodeClaim(PodId pod, Cause cause);
  void EndReservations(NodeId node);
  void PutClaim(ClaimId existing, const Claim& claim);
  void ChangeClaim(Transaction& t, ClaimId id, const Claim& to);
  void EndClaim(Transaction& t, ClaimId id);
  void SpareVictims(Transaction& t, const Claim& promise);
  void HandOver(std::span<const PodId> victims, PodId heir);
  // What the pod is promised on the node ends for good, where no claim says so.
  void VoidPromise(PodId pod, NameId node);
  // The pod has a place on the node that no object tells of yet.
  void NotePromised(PodId pod, NameId node);
  void TakeOver(Transaction& t, const Claim& promise);
  NodeId RowOfNode(NameId name);
  void FitLedger();
  void DropGhost(NodeId node);
  void MatchSelectors(NodeId node);
  void TrackSpread(ClassId imaged);
  void CountClass(ClassId imaged, int by);
  void SpreadOver(NodeId node);
  void SpreadOver(ClassId class_id, NodeId node);
  [[nodiscard]] bool Selects(const ClassSpec& spec, NodeId node) const;
  [[nodiscard]] bool ToleratesAll(const ClassSpec& spec, NodeId node) const;
  void ReleaseLabels(PodLabelsId labels);
  void AcquireAffinity(AffinityListId id, PodLabelsId own_labels);
  void ReleaseAffinity(ClassId class_id);
  void PutInDomain(uint32_t key, NodeId node);
  void RelabelForAffinities(NodeId node);
  ClassId SelectedClass(ClassId class_id, PodLabelsId labels);
  void SelectAgain(const std::function<bool(const Pod&)>& asked);
  void SetNamespace(std::string_view name, std::string text);
  void MaterialiseSelector(SelectorId id);
  [[nodiscard]] const Profile& FindProfile(ClassId class_id) const;
  void SetAmounts(NodeId node, const NodeUpsert& facts, TouchKinds& kinds);

  Vocabulary vocabulary_;
  LabelTable labels_;
  NodeTable nodes_;
  ImageTable images_;
  VolumeTable volumes_;
  PodTable pods_;
  Ledger ledger_;
  QueueTable queues_;
  FlavorTable flavors_;
  BudgetTable budgets_;
  GroupTable groups_;
  LocalQueueTable local_queues_;
  WorkloadTable workloads_;
  SlotTable slots_;
  VerdictTable verdicts_;
  TouchLog touches_;
  StringTable<OwnerId> uids_;
  StringTable<KeyId> keys_;
  std::vector<uint8_t> materialised_classes_;
  std::vector<PodId> changed_pods_;
  std::vector<GroupId> changed_groups_;
  std::vector<WorkloadId> changed_workloads_;
  std::vector<WorkloadId> changed_holders_;
  std::vector<QueueName> changed_queues_;
  std::vector<QueueName> relieved_queues_;
  std::array<uint64_t, kReasonKindsCount> promises_lost_{};
  std::map<ClassId, uint32_t> spread_pods_;  // Of classes with topology spread constraints.
  std::set<OwnerId> doubtful_;               // Whose spared_count is not 0.
  Homeless homeless_;                        // Nominated to a node that is not there.
  uint32_t nodes_max_;                       // Immutable after construction.
  bool compat_;                              // Immutable after construction.
  BackoffLimits backoff_;                    // Immutable after construction.
  std::vector<Profile> profiles_;  // Immutable after construction; the first is of other names.
  uint32_t pods_max_;              // Immutable after construction.
  Faults faults_;
  std::vector<KeyId> ended_groups_;  // With a planted bug alone: names of groups that are gone.
  // Volcano's names of its own, once there is a queue or group of it.
  NameId root_queue_;
  NameId default_queue_;
  std::vector<GroupId> unsettled_;  // What is kept for them may be another; within one commit.
  std::vector<GroupId> to_come_;    // Likewise, for pods that are to come.
  uint64_t keeping_moves_ = 0;
};

}  // namespace berth::model
