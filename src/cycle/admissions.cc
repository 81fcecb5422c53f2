#include "cycle/admissions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "cycle/wanted_places.h"
#include "quota/counts.h"
#include "quota/order.h"
#include "quota/reach.h"

namespace berth::cycle {

using model::NameId;
using model::Plan;
using model::QueueBar;
using model::QueueId;
using model::QueueKind;
using model::Workload;
using model::WorkloadId;
using model::WorkloadRefusal;
using quota::FlavorMode;

namespace {

// Since when it waits. Who was evicted because its pods were not ready in time goes behind others.
Instant QueuedAt(const Workload& workload) { return model::QueuedAt(workload.status, true); }

// As its row says, but for planted bugs.
Instant WaitsFrom(const model::Faults& faults, const Workload& row) {
  if (!faults.stand_on_hold && !faults.readmit_at_once) return model::WaitsFrom(row);
  Workload planted = row;
  planted.status.on_hold = row.status.on_hold && !faults.stand_on_hold;
  planted.status.held_back = row.status.held_back && !faults.readmit_at_once;
  return model::WaitsFrom(planted);
}

// Whether a flavor that it names is not there, or a topology that one of them names.
bool LacksFlavors(const model::State& state, QueueId q) {
  const model::ResourceGroupsTable& groups = state.vocabulary().resource_groups;
  const model::ResourceGroupsId id = state.queues().at(q).groups;
  for (uint32_t i = 0; i < groups.count(id); ++i) {
    for (const NameId name : groups.at(id, i).flavors) {
      const model::Flavor* flavor = state.flavors().Find(name);
      if (flavor == nullptr) return true;
      if (flavor->topology.valid() && state.flavors().FindTopology(flavor->topology) == nullptr)
        return true;
    }
  }
  return false;
}

// What a pod set asks for, as lists that a quota::PodSet refers to.
struct Asked {
  std::vector<model::ResourceAmount> requests;
  std::vector<NameId> levels;
};

// What flavors are asked for; spans of the vocabulary and of `asked`.
std::vector<quota::PodSet> PodSetsOf(const model::State& state, const Workload& workload,
                                     std::vector<Asked>& asked) {
  const model::Vocabulary& vocabulary = state.vocabulary();
  std::vector<quota::PodSet> pod_sets;
  asked.resize(workload.slots.size());
  for (size_t i = 0; i < workload.slots.size(); ++i) {
    const model::ClassSpec& spec = vocabulary.classes.at(workload.slots[i].class_id);
    for (const model::ResourceAmount& a : vocabulary.bundles.View(spec.requests)) {
      if (a.resource != model::kPods) asked[i].requests.push_back(a);
    }
    const model::TopologyWish& wish = workload.slots[i].topology;
    for (const NameId level : {wish.required, wish.preferred}) {
      if (level.valid()) asked[i].levels.push_back(level);
    }
    for (const model::SliceWish& slice : wish.slices) asked[i].levels.push_back(slice.level);
    pod_sets.push_back({.count = workload.slots[i].count,
                        .requests = asked[i].requests,
                        .selector = spec.selector,
                        .tolerations = spec.tolerations,
                        .group = wish.group,
                        .asks_topology = wish.asked,
                        .levels = asked[i].levels});
  }
  return pod_sets;
}

// What the reservation charges of an account and resource, all pod sets together.
std::map<std::pair<uint32_t, model::ResourceId>, model::Amount> ChargesOf(
    const model::State& state, const model::Reservation& reservation) {
  std::map<std::pair<uint32_t, model::ResourceId>, model::Amount> charges;
  const QueueId q = state.queues().Find(QueueKind::kClusterQueue, reservation.cluster_queue);
  for (const model::QuotaCharge& charge : reservation.charges) {
    const uint32_t account = state.queues().AccountOf(q, charge.flavor);
    for (const model::ResourceAmount& a : state.vocabulary().bundles.View(charge.amounts))
      charges[{account, a.resource}] += a.amount * charge.count;
  }
  return charges;
}

// Whether there is so much as the workload is promised: now, or once all that leave are gone.
bool IsLeft(const model::State& state, model::QuotaView view, const Workload& workload) {
  const model::QuotaTree& tree = state.ledger().quota();
  return std::ranges::all_of(ChargesOf(state, workload.promised), [&](const auto& charge) {
    const auto& [of, amount] = charge;
    const model::Amount own = view == model::QuotaView::kFuture ? amount : 0;
    return amount == 0 || tree.LeftFor(view, of.second, of.first, own).amount >= amount;
  });
}

// The first pod set that gets nothing, or not now, and why.
WorkloadRefusal RefusalOf(const quota::FlavorAssignment& flavors) {
  WorkloadRefusal refusal{.unfit = flavors.unfit};
  for (uint32_t i = 0; i < flavors.pod_sets.size(); ++i) {
    if (flavors.pod_sets[i].fault != model::TopologyFault::kNone) {
      refusal.pod_set = i;
      refusal.fault = flavors.pod_sets[i].fault;
      refusal.fault_flavors = flavors.pod_sets[i].topology_flavors;
      break;
    }
    const uint32_t group = flavors.pod_sets[i].group;
    if (group == quota::PodSetFlavors::kNotTried || flavors.groups[group].reasons.empty()) continue;
    refusal.pod_set = i;
    refusal.reasons = flavors.groups[group].reasons;
    break;
  }
  if (refusal.unfit == model::Unfit::kNone) refusal.unfit = model::Unfit::kWaiting;
  return refusal;
}

}  // namespace

QueueBar BarOf(const model::State& state, QueueId q) {
  if (!q.valid() || !state.queues().at(q).uid.valid()) return QueueBar::kNoClusterQueue;
  if (state.queues().at(q).stopped) return QueueBar::kClusterQueueStopped;
  if (!state.queues().active(q)) return QueueBar::kCohortCycle;
  if (state.queues().at(q).lacks_checks || LacksFlavors(state, q)) return QueueBar::kInactive;
  return QueueBar::kNone;
}

// ---- Lines -----------------------------------------------------------------------------------

void Admissions::Leave(WorkloadId workload) {
  Entry& entry = entries_[workload.value];
  if (entry.mode == Mode::kLater) later_.erase({entry.from, workload});
  unready_.erase(workload);
  short_.erase(workload);
  together_.erase(workload);
  if (entry.mode == Mode::kInLine) {
    lines_.Remove(workload);
    // Who stood behind it may be the first now.
    if (const auto at = behind_.find(entry.line);
        at != behind_.end() && at->second.first == workload) {
      behind_.erase(at);
    }
    shortfalls_.Remove(entry.line);
    active_.insert(entry.line);
  }
  entry.mode = Mode::kAbsent;
}

void Admissions::Sync(const model::State& state, WorkloadId workload) {
  if (workload.value >= entries_.size()) entries_.resize(workload.value + 1);
  NoteMates(workload);
  SyncRow(state, workload);
  entries_[workload.value].gangs = GangsOf(state, workload);
  NoteMates(workload);
}

void Admissions::SyncRow(const model::State& state, WorkloadId workload) {
  Leave(workload);
  entries_[workload.value] = Entry{};
  spared_.erase(workload);
  if (!state.workloads().used(workload)) return scans_.Forget(workload);
  const Workload& row = state.workloads().at(workload);
  if (row.spared_until != Instant{}) spared_[workload] = row.spared_until;
  if (row.promised != model::Reservation{} && row.write == model::WriteStage::kNone)
    moved_.push_back(workload);
  const Instant from = WaitsFrom(state.faults(), row);
  if (from == Instant{}) return Enter(state, workload);
  scans_.Forget(workload);
  if (from == Instant::Never()) return;
  entries_[workload.value].mode = Mode::kLater;
  entries_[workload.value].from = from;
  later_.emplace(from, workload);
}

void Admissions::Enter(const model::State& state, WorkloadId workload) {
  const Workload& row = state.workloads().at(workload);
  const model::LocalQueueId local = state.local_queues().FindKey(row.local_queue);
  if (!local.valid()) return Apart(workload, QueueBar::kNoLocalQueue);
  const model::LocalQueue& queue = state.local_queues().at(local);
  if (queue.bar == model::LocalQueueBar::kStopped)
    return Apart(workload, QueueBar::kLocalQueueStopped);
  if (queue.bar == model::LocalQueueBar::kNamespace) return Apart(workload, QueueBar::kNamespace);
  // Amounts of so many are not summed.
  uint64_t pods = 0;
  for (const model::WorkloadSlots& slots : row.slots) pods += slots.count;
  if (pods > limits::kSlotsMax) return Apart(workload, QueueBar::kTooMany);
  const auto is_unsupported = [](const model::WorkloadSlots& s) { return s.unsupported.valid(); };
  if (std::ranges::any_of(row.slots, is_unsupported))
    return Apart(workload, QueueBar::kUnsupported);
  for (const model::WorkloadSlots& slots : row.slots) {
    if (slots.gang.valid()) of_gang_[slots.gang].insert(workload);
  }
  std::vector<NameId> gangs = GangsOf(state, workload);
  std::vector<gang::Shortage> lacks;
  std::optional<gang::Unready> unready = WhyUnready(state, workload);
  const bool together = NeedsMates(state, workload);
  if (IsPromised(state, workload) && (unready || together)) unready_.insert(workload);
  if (unready) {
    if (unready->why && gang::IsForQuota(*unready->why)) short_.insert(workload);
    if (!MayAskForRoom(state, queue.cluster_queue, *unready)) {
      Apart(workload, QueueBar::kGang);
      entries_[workload.value].refusal->gang = std::move(unready->why);
      entries_[workload.value].gangs = std::move(gangs);
      return;
    }
    lacks = gang::ShortagesOf(state, workload);
  }
  if (together) together_.insert(workload);
  const bool awaits_room = AwaitsRoom(state, workload);
  if (awaits_room) short_.insert(workload);
  std::vector<uint32_t> asked;
  if (NamesGroups(state, workload)) asked = gang::AskedBy(state, workload);
  entries_[workload.value] = {.mode = Mode::kInLine,
                              .line = queue.cluster_queue,
                              .from = {},
                              .refusal = {},
                              .lacks = std::move(lacks),
                              .asked = std::move(asked),
                              .awaits_room = awaits_room,
                              .together = together,
                              .gangs = std::move(gangs)};
  Stand(state, workload, queue.cluster_queue);
}

// In the line, with its equals.
void Admissions::Stand(const model::State& state, WorkloadId workload, NameId line) {
  const Workload& row = state.workloads().at(workload);
  if (lines_.Find(line) == nullptr) NoteByAge(state, line);
  WorkloadLines::Key key{.priority = row.priority};
  if (by_age_.contains(line)) key.queued_at = QueuedAt(row);
  // How few of a group would do is another thing for each.
  const Entry& entry_of = entries_[workload.value];
  const bool alone = !entry_of.lacks.empty() || !entry_of.asked.empty() || entry_of.together;
  if (row.promised != model::Reservation{} || alone) key.alone = workload;
  for (const model::WorkloadSlots& slots : row.slots) {
    key.slots.push_back({.class_id = slots.class_id,
                         .count = slots.count,
                         .done = slots.done,
                         .missing_max = slots.missing_max,
                         .topology = slots.topology,
                         .ours = slots.ours,
                         .priority = slots.priority,
                         .preempts = slots.preempts});
  }
  lines_.Put(line,
             {.priority = row.priority,
              .queued_at = QueuedAt(row),
              .uid = std::string(state.UidOf(row.uid)),
              .workload = workload},
             std::move(key));
  active_.insert(line);
  if (const auto at = behind_.find(line); at != behind_.end()) at->second.fresh.push_back(workload);
  const WorkloadLines::Shape& shape = lines_.shape_of(workload);
  Entry& entry = entries_[workload.value];
  if (!shape.refused || entry.refusal || IsStrict(state, line)) return;
  entry.refusal = shape.refusal;
  untold_.push_back(workload);
}

// It stands in nobody's way.
void Admissions::Apart(WorkloadId workload, QueueBar bar) {
  scans_.Forget(workload);
  Entry& entry = entries_[workload.value];
  entry = Entry{};
  entry.mode = Mode::kApart;
  entry.refusal.emplace().bar = bar;
  untold_.push_back(workload);
}

// ---- Serving ---------------------------------------------------------------------------------

void Admissions::Serve(model::State& state, Instant now, uint32_t heads_max, SlotPlacer& placer,
                       Plan& plan) {
  while (!later_.empty() && later_.begin()->first <= now) {
    const WorkloadId workload = later_.begin()->second;
    later_.erase(later_.begin());
    Enter(state, workload);
    NoteMates(workload);
  }
  FollowMates(state);
  std::set<WorkloadId> apart;
  for (const WorkloadId id : std::exchange(untold_, {})) {
    if (entries_[id.value].refusal && apart.insert(id).second) plan.workloads.push_back(id);
  }
  placer.Heed(promised_places_);
  Noted noted = AllOf(state);
  for (const WorkloadId workload : std::exchange(unready_, {}))
    state.EndQuotaPromise(workload, model::Cause::kRevoked);
  EndSparing(state, now);
  EndStrayPromises(state);
  for (uint32_t heads = 0; heads < heads_max;) {
    std::set<QueueId> relieved;
    std::vector<WorkloadId> first;
    // Promises to those behind a strict queue's first end here: what that leaves is had by whose
    // turn it is, not by who happens to be looked at.
    do {
      NoteChanges(state, noted);
      noted = AllOf(state);
      FollowMates(state);
      relieved.merge(WakeChanged(state));
      NoteDecided(state, nullptr);
      WakePlaceless(placer);
      first = Heads(state, plan);
    } while (noted != AllOf(state) || SetApart(state, first));
    const uint32_t looked_at = ServeRound(state, first, relieved, placer, plan);
    if (looked_at == 0) break;
    heads += looked_at;
    heads_decided_ += looked_at;
  }
  NoteChanges(state, noted);
  NoteDecided(state, nullptr);
  for (const NameId name : std::exchange(borrowed_, {})) {
    const QueueId q = state.queues().Find(QueueKind::kClusterQueue, name);
    WakeTree(state, state.queues().RootOf(q), Whom::kReclaiming);
  }
  WakeOutrun(state);
  // Decided for a promise that ended in a later round, or for another then.
  std::set<WorkloadId> told;
  std::erase_if(plan.evictions, [&](const model::EvictDecision& e) {
    return !state.workloads().at(e.workload).claimant.valid() || !told.insert(e.workload).second;
  });
  std::set<model::PodId> leave;
  std::erase_if(plan.evicted, [&](model::PodId pod) {
    return !state.pods().at(pod).evicted_for.valid() || !leave.insert(pod).second;
  });
}

// Of each line that may have one to look at, the first. A line whose first was refused has none if
// it is strict.
std::vector<WorkloadId> Admissions::Heads(model::State& state, Plan& plan) {
  std::vector<WorkloadId> heads;
  for (auto at = active_.begin(); at != active_.end();) {
    const WorkloadLines::Line* line = lines_.Find(*at);
    const bool tried = line != nullptr && !line->refused.empty();
    const bool barred =
        tried && IsStrict(state, *at) &&
        (line->untried.empty() || line->refused.begin()->first < line->untried.begin()->first);
    if (line != nullptr && !line->untried.empty() && !barred) {
      heads.push_back(line->untried.begin()->first.workload);
      ++at;
      continue;
    }
    if (barred) TellBehind(state, *at, plan);
    Rest(state, *at);
    at = active_.erase(at);
  }
  return heads;
}

// With how many pods of each set it may start. `counts`: the most; empty: all.
std::vector<quota::CountRange> Admissions::RangesOf(const model::State& state, const Workload& row,
                                                    std::span<const uint32_t> counts) {
  std::vector<quota::CountRange> ranges;
  for (uint32_t i = 0; i < row.slots.size(); ++i) {
    const model::WorkloadSlots& slots = row.slots[i];
    ranges.push_back(
        {.count = counts.empty() ? slots.count : counts[i],
         .count_min = std::max(slots.count - slots.missing_max, gang::FewestOf(state, row, i))});
  }
  return ranges;
}

// One look at a workload, as if nothing were promised to it.
class Admissions::Look {
 public:
  // `held`: null where what it is promised can come true, so that it evicts nobody else. `t`: a
  // transaction in which it holds nothing. All outlive it.
  Look(const model::State& state, model::Transaction& t, const Workload& row, QueueId queue,
       Held* held)
      : state_(state),
        t_(t),
        held_(held),
        preemptor_{
            .queue = queue, .priority = row.priority, .queued_at = QueuedAt(row), .demands = {}},
        pod_sets_(PodSetsOf(state, row, lists_)) {}
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  // `without`: by pod set, the flavors that it is not to get; outlives this.
  void LeaveOut(const Without& without) {
    for (size_t i = 0; i < without.size() && i < pod_sets_.size(); ++i)
      pod_sets_[i].without = without[i];
  }

  // Where it begins: at the first flavors, if that is empty.
  void BeginAt(FlavorScans::Positions positions) {
    positions_ = std::move(positions);
    for (size_t i = 0; i < pod_sets_.size(); ++i) {
      pod_sets_[i].position = {};
      if (i < positions_.size()) pod_sets_[i].position = positions_[i];
    }
  }

  // Its pods are to have places, too; outlives this.
  void AskFor(WantedPlaces* wanted) { wanted_ = wanted; }
  // Whether the queues of its groups have room for it once those left: others are to leave until
  // they have. Counts of pods by pod set, empty for all.
  using HasRoom =
      std::function<bool(std::span<const quota::Victim>, std::span<const uint32_t> counts)>;
  void AskForRoom(HasRoom has_room) { has_room_ = std::move(has_room); }

  [[nodiscard]] quota::FlavorAssignment Assign() {
    quota::MisplacedOf misplaced;
    if (wanted_ != nullptr) {
      misplaced = [&](const quota::FlavorAssignment& flavors, quota::Room room) {
        return wanted_->Misplaced(flavors, room);
      };
    }
    return quota::AssignFlavors(
        state_, {.queue = preemptor_.queue, .pod_sets = pod_sets_},
        [&](const quota::Demand& demand) { return OutlookFor(demand); }, misplaced);
  }

  // Whether it gets that quota, now or once others are gone; if so that is the nomination.
  bool Gets(quota::FlavorAssignment& flavors, Nomination& nomination) {
    const bool lacks_room = has_room_ && !has_room_({}, counts_);
    if (flavors.mode == FlavorMode::kFit && !lacks_room) {
      nomination.verdict = Nomination::Verdict::kFits;
      nomination.flavors = std::move(flavors);
      return true;
    }
    if (flavors.mode < FlavorMode::kPreempt || held_ == nullptr) return false;
    std::optional<std::vector<quota::Victim>> victims = VictimsFor(flavors, lacks_room);
    if (!victims) return false;
    nomination.verdict = Nomination::Verdict::kPreempts;
    nomination.victims = *std::move(victims);
    nomination.refusal = RefusalOf(flavors);
    nomination.refusal.promised = true;
    nomination.refusal.victims_count = static_cast<uint32_t>(nomination.victims.size());
    nomination.refusal.shared =
        std::ranges::all_of(nomination.victims, [&](const quota::Victim& victim) {
          const WorkloadId leaves = state_.workloads().FindUid(victim.workload.owner);
          return state_.workloads().at(leaves).claimant.valid();
        });
    nomination.flavors = std::move(flavors);
    return true;
  }

  // Whether it gets quota of the flavors that it settles on, or of some behind them, up to the
  // last; if so that is the nomination, else it says why not.
  bool GetsSome(const Workload& row, Nomination& nomination) {
    std::set<Scanned> ended;
    for (bool first = true;; first = false) {
      quota::FlavorAssignment flavors = Assign();
      if (Gets(flavors, nomination)) return true;
      if (first) {
        nomination.refusal = RefusalOf(flavors);
        nomination.shortfall = ShortfallOf(state_, row, preemptor_.queue, flavors);
        nomination.flavors = flavors;
      } else {
        AddReasons(RefusalOf(flavors), nomination.refusal);
      }
      if (GetsLess(row, nomination)) return true;
      if (!GoOn(flavors, ended)) return false;
    }
  }

  // Of who finds no quota: who would have to leave, and is spared.
  void NameSpared(Nomination& nomination) {
    if (held_ == nullptr || nomination.flavors.mode == FlavorMode::kNone) return;
    quota::Preemptor despite = preemptor_;
    despite.demands = nomination.flavors.demands;
    despite.spares_nobody = true;
    const auto victims = quota::FindVictims(state_, t_, despite, held_->of, &held_->over);
    if (!victims) return;
    WorkloadRefusal& refusal = nomination.refusal;
    for (const quota::Victim& victim : *victims) {
      if (!victim.workload.spared) continue;
      if (refusal.spared_count++ > 0) continue;
      const WorkloadId id = state_.workloads().FindUid(victim.workload.owner);
      refusal.spared = state_.workloads().at(id).key;
    }
  }

 private:
  using Scanned = std::pair<uint32_t, model::ResourceId>;  // By pod set.

  // Of all flavors that were tried it is told.
  static void AddReasons(const WorkloadRefusal& of, WorkloadRefusal& refusal) {
    if (of.pod_set != refusal.pod_set) return;
    for (const model::FlavorReason& reason : of.reasons) {
      if (std::ranges::find(refusal.reasons, reason) == refusal.reasons.end())
        refusal.reasons.push_back(reason);
    }
  }

  // Whether there are flavors behind those that it settled on to which no look came: then the next
  // begins there. `ended`: where the last was tried. Each comes further where it was not.
  bool GoOn(const quota::FlavorAssignment& flavors, std::set<Scanned>& ended) {
    bool more = false;
    for (uint32_t i = 0; i < flavors.pod_sets.size(); ++i) {
      for (const quota::FlavorChoice& choice : flavors.pod_sets[i].choices) {
        if (choice.next == 0) ended.emplace(i, choice.resource);
        more = more || !ended.contains({i, choice.resource});
      }
    }
    if (more) BeginAt(flavors.positions());
    return more;
  }

  // With fewer pods, where it may start with those; as many as get it quota.
  bool GetsLess(const Workload& row, Nomination& nomination) {
    const std::vector<quota::CountRange> ranges = RangesOf(state_, row, {});
    const auto counts = quota::LargestCounts(ranges, [&](std::span<const uint32_t> fewer) {
      SetCounts(fewer);
      quota::FlavorAssignment flavors = Assign();
      return Gets(flavors, nomination);
    });
    // The last that got it quota were the most.
    if (counts) nomination.counts = *counts;
    if (counts) return true;
    for (size_t i = 0; i < pod_sets_.size(); ++i) pod_sets_[i].count = row.slots[i].count;
    if (wanted_ != nullptr) wanted_->SetCounts({});
    counts_.clear();
    return false;
  }

  void SetCounts(std::span<const uint32_t> fewer) {
    for (size_t i = 0; i < fewer.size(); ++i) pod_sets_[i].count = fewer[i];
    if (wanted_ != nullptr) wanted_->SetCounts(fewer);
    counts_.assign(fewer.begin(), fewer.end());
  }

  quota::EvictionOutlook OutlookFor(const quota::Demand& demand) {
    if (held_ == nullptr) return {.mode = FlavorMode::kNoVictims};
    preemptor_.demands = std::span(&demand, 1);
    asked_ = demand;
    found_ = quota::FindVictims(state_, t_, preemptor_, held_->of, &held_->over);
    return quota::OutlookOf(state_, t_, preemptor_.queue, demand, found_);
  }
  // For all demands; most often that is the one that was asked for last.
  std::optional<std::vector<quota::Victim>> VictimsFor(const quota::FlavorAssignment& flavors,
                                                       bool lacks_room) {
    preemptor_.demands = flavors.demands;
    if (wanted_ != nullptr || lacks_room) {
      quota::Preemptor for_rest = preemptor_;
      std::vector<quota::Demand> demands = flavors.demands;
      // Whoever has some of what it asks for may have that room, too.
      for (quota::Demand& demand : demands) demand.lacks = demand.lacks || lacks_room;
      for_rest.demands = demands;
      for_rest.has_rest = [&](std::span<const quota::Victim> victims) {
        return (!lacks_room || has_room_(victims, counts_)) &&
               (wanted_ == nullptr || wanted_->AreThereWithout(flavors, victims));
      };
      return quota::FindVictims(state_, t_, for_rest, held_->of, &held_->over);
    }
    if (asked_ && preemptor_.demands.size() == 1 && preemptor_.demands.front() == *asked_)
      return std::move(found_);
    return quota::FindVictims(state_, t_, preemptor_, held_->of, &held_->over);
  }

  const model::State& state_;
  model::Transaction& t_;
  Held* held_;
  quota::Preemptor preemptor_;
  std::vector<Asked> lists_;
  std::vector<quota::PodSet> pod_sets_;
  FlavorScans::Positions positions_;
  WantedPlaces* wanted_ = nullptr;
  HasRoom has_room_;
  std::vector<uint32_t> counts_;        // That are tried; empty: all.
  std::optional<quota::Demand> asked_;  // Whom was looked for last.
  std::optional<std::vector<quota::Victim>> found_;
};

Admissions::Nomination Admissions::Nominate(model::State& state, WorkloadId workload, Held& held,
                                            const Without& without, SlotPlacer* placer) const {
  using Verdict = Nomination::Verdict;
  Nomination nomination{.workload = workload};
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[workload.value].line);
  if (const QueueBar bar = BarOf(state, queue); bar != QueueBar::kNone) {
    nomination.refusal = WorkloadRefusal{.bar = bar};
    return nomination;
  }
  const Workload& row = state.workloads().at(workload);
  const std::optional<gang::Unready> unready = WhyUnready(state, workload);
  const bool together = entries_[workload.value].together;
  const bool stands = !unready && !together && IsPromised(state, workload) &&
                      IsLeft(state, model::QuotaView::kFuture, row);
  model::Transaction t = state.Begin();
  quota::TakeAway(state, t, row.uid);
  // Nobody is evicted for a part of a gang.
  Look look(state, t, row, queue, stands || together ? nullptr : &held);
  look.LeaveOut(without);
  if (NamesGroups(state, workload)) {
    look.AskForRoom([&](std::span<const quota::Victim> victims, std::span<const uint32_t> counts) {
      if (victims.empty()) return !gang::WhyNoRoom(state, workload, counts);
      return gang::HasRoomWithout(state, t, workload, RowsOf(state, victims), counts);
    });
  }
  std::optional<WantedPlaces> wanted;
  if (placer != nullptr) {
    wanted.emplace(state, *placer, workload, entries_[workload.value].line);
    look.AskFor(&*wanted);
  }
  if (!stands) {
    const bool anew = !without.empty() || placer != nullptr;
    if (const FlavorScans::Positions* ended = anew ? nullptr : scans_.Find(workload, row)) {
      look.BeginAt(*ended);
      if (look.GetsSome(row, nomination)) return nomination;
      nomination = {.workload = workload};
      look.BeginAt({});
    }
    if (look.GetsSome(row, nomination)) return nomination;
    if (!spared_.empty()) look.NameSpared(nomination);
    // Of quota that it lacks as well the reasons tell.
    if (unready && nomination.refusal.reasons.empty())
      nomination.refusal = WorkloadRefusal{.bar = QueueBar::kGang, .gang = unready->why};
    return nomination;
  }
  quota::FlavorAssignment flavors = look.Assign();
  const bool awaits_room = entries_[workload.value].awaits_room;
  if (flavors.mode == FlavorMode::kFit && !awaits_room && look.Gets(flavors, nomination))
    return nomination;
  nomination.refusal = RefusalOf(flavors);
  nomination.flavors = std::move(flavors);
  nomination.as_promised = !awaits_room && IsLeft(state, model::QuotaView::kPhysical, row);
  nomination.verdict = nomination.as_promised ? Verdict::kFits : Verdict::kWaits;
  // What it is told stays as it was promised.
  const std::optional<WorkloadRefusal>& told = entries_[workload.value].refusal;
  if (told && told->promised) nomination.refusal = *told;
  nomination.refusal.promised = true;
  return nomination;
}

namespace {

// What others are kept from in the tree is charged to the workload, which holds nothing in `t`.
void ChargeKept(model::State& state, model::Transaction& t, const Workload& row,
                const std::map<QueueId, std::vector<quota::Demand>>& kept, QueueId root) {
  const auto found = kept.find(root);
  if (found == kept.end()) return;
  constexpr int64_t kClaimsMax = 64;  // Of a demand.
  for (const quota::Demand& d : found->second) {
    // Beyond what is counted nothing is kept.
    if (state.ledger().slots_charged() > limits::kSlotsMax * 2 - kClaimsMax) return;
    quota::Charge(state.vocabulary(), t, row.uid, d);
  }
}

}  // namespace

bool Admissions::StillFits(model::State& state, const Nomination& nomination,
                           const Kept& kept) const {
  const Workload& row = state.workloads().at(nomination.workload);
  if (nomination.as_promised) {
    return IsPromised(state, nomination.workload) &&
           IsLeft(state, model::QuotaView::kPhysical, row) &&
           IsLeft(state, model::QuotaView::kFuture, row);
  }
  model::Transaction t = state.Begin();
  quota::TakeAway(state, t, row.uid);
  const model::QuotaTree& tree = state.ledger().quota();
  const auto fits = [&] {
    return std::ranges::all_of(nomination.flavors.demands, [&](const quota::Demand& demand) {
      return demand.amount == 0 ||
             quota::LeftFromNowOn(tree, demand.resource, demand.account) >= demand.amount;
    });
  };
  // What is kept takes time to charge, and leaves only less.
  if (!fits()) return false;
  ChargeKept(state, t, row, kept, RootOf(state, nomination.workload));
  return fits();
}

// Whether it fits once those are gone that were found when the round began, and only then. None of
// them leaves for another that was served since.
bool Admissions::StillHelps(model::State& state, const Nomination& nomination,
                            const Kept& kept) const {
  const Workload& row = state.workloads().at(nomination.workload);
  for (const quota::Victim& victim : nomination.victims) {
    const WorkloadId id = state.workloads().FindUid(victim.workload.owner);
    const Workload& leaves = state.workloads().at(id);
    if (victim.workload.evicted) continue;
    if (leaves.claimant.valid() || HeldBy(leaves).charges.empty()) return false;
  }
  model::Transaction t = state.Begin();
  quota::TakeAway(state, t, row.uid);
  ChargeKept(state, t, row, kept, RootOf(state, nomination.workload));
  const model::QuotaTree& tree = state.ledger().quota();
  const auto fits = [&] {
    return std::ranges::all_of(nomination.flavors.demands, [&](const quota::Demand& demand) {
      return demand.amount == 0 ||
             tree.LeftFor(model::QuotaView::kFuture, demand.resource, demand.account).amount >=
                 demand.amount;
    });
  };
  if (fits() && !nomination.victims.empty()) return false;
  for (const quota::Victim& victim : nomination.victims)
    quota::TakeAway(state, t, victim.workload.owner);
  return fits();
}

QueueId Admissions::RootOf(const model::State& state, WorkloadId workload) const {
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[workload.value].line);
  return queue.valid() ? state.queues().RootOf(queue) : queue;
}

// What it gets if it is served.
model::Reservation Admissions::ReservationOfNomination(model::State& state,
                                                       const Nomination& n) const {
  const Workload& row = state.workloads().at(n.workload);
  if (n.as_promised) return row.promised;
  return ReservationOf(state, entries_[n.workload.value].line, row, n.flavors, n.counts);
}

// How many heads were looked at. The first of those that fit, or would if others left, is served,
// and so is who fits still beside those before it; the others are looked at again.
uint32_t Admissions::ServeRound(model::State& state, std::span<const WorkloadId> heads,
                                const std::set<QueueId>& relieved, SlotPlacer& placer, Plan& plan) {
  NoteDecided(state, nullptr);
  if (!heads.empty()) scans_.BeginRound();
  Round round{.state = state,
              .placer = placer,
              .plan = plan,
              .relieved = relieved,
              .held = Held(*this, state),
              .free = shortfalls_.FreeOf(state, relieved)};
  std::vector<Nomination> nominations;
  nominations.reserve(heads.size());
  for (const WorkloadId head : heads) nominations.push_back(Nominate(state, head, round.held));
  std::erase_if(nominations, [&](const Nomination& n) { return TurnDown(round, n); });
  const auto contender = [&](const Nomination& n) {
    const WorkloadLines::Place& place = lines_.place_of(n.workload);
    return quota::Contender{.promised = IsPromised(state, n.workload),
                            .borrow = n.flavors.borrow,
                            .priority = place.priority,
                            .queued_at = place.queued_at,
                            .uid = place.uid};
  };
  std::vector<Nomination*> turns;
  turns.reserve(nominations.size());
  for (Nomination& n : nominations) turns.push_back(&n);
  std::ranges::sort(turns, [&](const Nomination* a, const Nomination* b) {
    return quota::IsServedBefore(contender(*a), contender(*b));
  });
  uint32_t woken = 0;
  std::optional<Shortfalls::Turn> from;
  for (Nomination* const next : turns) {
    Nomination& n = *next;
    if (!relieved.empty() && !IsPromised(state, n.workload)) {
      const quota::Contender of = contender(n);
      const Shortfalls::Turn turn{.borrow = of.borrow,
                                  .priority = of.priority,
                                  .queued_at = of.queued_at,
                                  .uid = std::string(of.uid),
                                  .line = {}};
      woken += ServeResting(round, &turn, from);
    }
    ServeInTurn(round, n);
  }
  woken += ServeResting(round, nullptr, from);
  EndKeptPlaces();
  return static_cast<uint32_t>(heads.size()) + woken;
}

// Lines that rest and may get something of what was given back, whose turn is before that one, from
// the one on that was come to. All of them would have been looked at when the round began; but
// those who can't have what is left when it is their turn get nothing. How many were looked at.
uint32_t Admissions::ServeResting(Round& round, const Shortfalls::Turn* before,
                                  std::optional<Shortfalls::Turn>& from) {
  for (uint32_t looked_at = 0;; ++looked_at) {
    const Shortfalls::Turn* next = nullptr;
    for (const QueueId root : round.relieved) {
      const Shortfalls::Turn* of =
          shortfalls_.Next(round.state, root, round.free, from ? &*from : nullptr);
      if (of != nullptr && (next == nullptr || *of < *next)) next = of;
    }
    if (next == nullptr || (before != nullptr && !(*next < *before))) {
      if (before != nullptr) from = *before;
      return looked_at;
    }
    from = *next;
    const NameId line = from->line;
    WakeLine(round.state, line);
    const WorkloadId first = lines_.Find(line)->untried.begin()->first.workload;
    NoteDecided(round.state, &round.held.over);
    Nomination n = Nominate(round.state, first, round.held);
    // Who could have had it when the round began is looked at again, as any that comes too late.
    if (n.verdict == Nomination::Verdict::kRefused && HadEnough(round, n)) continue;
    if (!TurnDown(round, n)) ServeInTurn(round, n);
  }
}

bool Admissions::HadEnough(const Round& round, const Nomination& n) const {
  const Shortfall& of = n.shortfall;
  if (of.kind != Shortfall::Kind::kAmount) return false;
  const QueueId queue =
      round.state.queues().Find(QueueKind::kClusterQueue, entries_[n.workload.value].line);
  const auto need = NeedOfRoot(round.state, queue, of);
  const auto free = round.free.find(
      {RootOf(round.state, n.workload), {.flavor = of.flavor, .resource = of.resource}});
  return need && free != round.free.end() && *need <= free->second;
}

// Whoever gets nothing is told. Whether it is done with.
bool Admissions::TurnDown(Round& round, const Nomination& n) {
  using Verdict = Nomination::Verdict;
  model::State& state = round.state;
  if (n.verdict == Verdict::kFits || n.verdict == Verdict::kPreempts) return false;
  const bool ends = n.verdict == Verdict::kRefused || state.faults().drop_quota_promise_when_tried;
  if (ends && IsPromised(state, n.workload)) {
    round.served.insert(RootOf(state, n.workload));
    state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
  }
  Refuse(state, n.workload, n.refusal, n.shortfall, round.plan);
  return n.verdict != Verdict::kRefused;
}

void Admissions::ServeInTurn(Round& round, Nomination& n) {
  using Verdict = Nomination::Verdict;
  model::State& state = round.state;
  // Another of its gang was served, and it with that.
  if (entries_[n.workload.value].mode != Mode::kInLine) return;
  NoteDecided(state, &round.held.over);
  // Others of this round got what was left to its group's queue: it is set apart in the next.
  if (WaitsInGang(state, n.workload) && !IsAsItsGangs(state, n.workload)) return;
  // It is looked at for fewer in the next.
  const bool fits = n.verdict == Verdict::kFits && !n.as_promised;
  if (fits && NamesGroups(state, n.workload) && gang::WhyNoRoom(state, n.workload, n.counts) &&
      entries_[n.workload.value].lacks.empty()) {
    return;
  }
  const QueueId root = RootOf(state, n.workload);
  if (IsPromised(state, n.workload) && !round.placer.StandsAsPromised(n.workload)) {
    state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
    round.served.insert(root);
    NoteDecided(state, &round.held.over);
    n = Nominate(state, n.workload, round.held);
    if (n.verdict == Verdict::kRefused) TurnDown(round, n);
  }
  if (n.verdict == Verdict::kRefused) KeepFor(state, n, round.kept);
  const bool others = round.served.contains(root) || round.kept.contains(root);
  // Queues of groups are of all trees.
  const bool lacks_room = !entries_[n.workload.value].lacks.empty();
  const auto holds = [&] {
    if (lacks_room) return round.served.empty() && !others;
    return !others || StillHelps(state, n, round.kept);
  };
  if (n.verdict == Verdict::kPreempts && !holds()) n = Nominate(state, n.workload, round.held);
  const bool is_next = n.verdict == Verdict::kPreempts ||
                       (n.verdict == Verdict::kFits && StillFits(state, n, round.kept));
  if (!is_next) {
    if (n.verdict == Verdict::kFits)
      scans_.Outrun(n.workload, state.workloads().at(n.workload), n.flavors);
    return;
  }
  if (!FindPlaces(state, round.placer, {round.kept, round.held, round.got}, n)) {
    if (n.outrun) {
      scans_.Outrun(n.workload, state.workloads().at(n.workload), n.flavors);
      return Tell(n.workload, n.refusal, round.plan);
    }
    if (state.faults().drop_promised_places) n.refusal.promised = false;
    return RefusePlaceless(round, n);
  }
  if (entries_[n.workload.value].together) return ServeWithMates(round, n);
  PutOffPlaces(round, {&n, 1});
  if (!ServeOne(state, n, round.plan)) return;
  round.served.insert(root);
  if (n.verdict == Verdict::kFits && !n.places.slots.empty()) round.got.push_back(n.workload);
}

// False: there is no room for its claims.
bool Admissions::ServeOne(model::State& state, const Nomination& n, Plan& plan) {
  const NameId line = entries_[n.workload.value].line;
  scans_.Forget(n.workload);
  model::Reservation reservation = ReservationOfNomination(state, n);
  reservation.slots = n.places.slots;
  reservation.topologies = n.places.topologies;
  if (!state.HasRoomFor(reservation)) {
    state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
    const bool never = std::cmp_greater(reservation.slots.size(), limits::kFreeSlotsMax);
    const QueueBar bar = never ? QueueBar::kTooMany : QueueBar::kFull;
    Refuse(state, n.workload, WorkloadRefusal{.bar = bar}, Shortfall{}, plan);
    return false;
  }
  // Who uses more than it has may be reclaimed from.
  if (n.flavors.borrow > 0) borrowed_.insert(line);
  if (n.verdict == Nomination::Verdict::kFits) {
    state.Reserve(n.workload, std::move(reservation));
    if (promised_places_.erase(n.workload) > 0) nodes_lifted_ = true;
    taken_.insert(RootOf(state, n.workload));
    Leave(n.workload);
    entries_[n.workload.value].refusal.reset();
    plan.reservations.push_back(
        {.workload = n.workload, .uid = state.workloads().at(n.workload).uid});
    return true;
  }
  // What less important ones are promised is revoked before it is known who leaves for nobody then.
  state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
  for (const quota::Victim& victim : n.victims) {
    state.EndQuotaPromise(state.workloads().FindUid(victim.workload.owner), model::Cause::kRevoked);
  }
  std::vector<model::State::QuotaVictim> victims;
  for (const quota::Victim& victim : n.victims) {
    const WorkloadId id = state.workloads().FindUid(victim.workload.owner);
    const Workload& leaves = state.workloads().at(id);
    if (ChargedTo(leaves).charges.empty() || leaves.claimant.valid() ||
        StageOf(leaves.status) == model::WorkloadStage::kEvicted) {
      continue;
    }
    victims.push_back({.workload = id, .reason = victim.reason});
    plan.evictions.push_back({.workload = id, .uid = victim.workload.owner});
  }
  model::Reservation promised = reservation;
  promised.topologies.clear();
  const std::vector<model::PodId> pods =
      state.PromiseQuota(n.workload, std::move(promised), victims, n.pods);
  plan.evicted.insert(plan.evicted.end(), pods.begin(), pods.end());
  promised_places_.erase(n.workload);
  if (!reservation.topologies.empty()) promised_places_.emplace(n.workload, std::move(reservation));
  lines_.SetAlone(n.workload);
  Tell(n.workload, n.refusal, plan);
  // It stays where it stands: it may be served at once, before those that others leave for, too.
  return true;
}

void Admissions::Refuse(const model::State& state, WorkloadId workload, WorkloadRefusal refusal,
                        const Shortfall& shortfall, Plan& plan) {
  scans_.Forget(workload);
  lines_.Refuse(workload, refusal, shortfall);
  Tell(workload, std::move(refusal), plan);
  // Of a strict queue those behind it wait for another reason.
  const NameId line = entries_[workload.value].line;
  if (IsStrict(state, line)) return;
  behind_.erase(line);
  TellAlike(workload, plan);
}

bool Admissions::IsToBeTried(const model::State& state, WorkloadId workload) const {
  if (workload.value >= entries_.size()) return false;
  const Entry& entry = entries_[workload.value];
  if (entry.mode != Mode::kInLine) return false;
  return !lines_.shape_of(workload).refused || IsTreeNoted(state, entry.line);
}

std::vector<WorkloadId> Admissions::LineOf(NameId cluster_queue) const {
  return lines_.MembersOf(cluster_queue);
}

void Admissions::AddTo(Hasher& hasher) const {
  hasher.Add(entries_.size());
  for (const Entry& entry : entries_) {
    hasher.Add(entry.mode).Add(entry.from.ns).Add(entry.line.value);
    hasher.Add(entry.refusal.has_value()).Add(entry.awaits_room).Add(entry.lacks.size());
    for (const gang::Shortage& of : entry.lacks)
      hasher.Add(of.group.value).Add(of.resource.value).Add(of.amount);
    hasher.Add(entry.together).Add(entry.asked.size());
    for (const uint32_t count : entry.asked) hasher.Add(count);
    if (entry.refusal) entry.refusal->AddTo(hasher);
  }
  lines_.AddTo(hasher);
  hasher.Add(behind_.size());
  for (const auto& [line, behind] : behind_)
    hasher.Add(line.value).Add(behind.first.value).Add(behind.bar).Add(behind.fresh.size());
  hasher.Add(nodes_lifted_).Add(yielding_).Add(promised_places_.size());
  for (const auto& [workload, places] : promised_places_) {
    hasher.Add(workload.value).Add(places.slots.size());
    for (const model::Slot& slot : places.slots) hasher.Add(slot.pod_set).Add(slot.node.value);
  }
  // Who waits for a time follows from the entries, who holds what from the state.
  hasher.Add(by_age_.size());
  for (const NameId name : by_age_) hasher.Add(name.value);
  hasher.Add(active_.size());
  for (const NameId name : active_) hasher.Add(name.value);
  for (const auto* tops : {&changed_, &lowered_}) {
    hasher.Add(tops->size());
    for (const auto& [kind, name] : *tops) hasher.Add(kind).Add(name.value);
  }
  hasher.Add(relieved_.size());
  for (const auto& [top, queues] : relieved_) {
    hasher.Add(top.kind).Add(top.name.value).Add(queues.size());
    for (const NameId name : queues) hasher.Add(name.value);
  }
  hasher.Add(mates_moved_.size());
  for (const NameId gang : mates_moved_) hasher.Add(gang.value);
  shortfalls_.AddTo(hasher);
  scans_.AddTo(hasher);
  hasher.Add(moved_.size());
  for (const WorkloadId workload : moved_) hasher.Add(workload.value);
  hasher.Add(untold_.size());
  for (const WorkloadId workload : untold_) hasher.Add(workload.value);
}

}  // namespace berth::cycle
