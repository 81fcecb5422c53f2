#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/limits.h"
#include "model/state.h"

// What members of groups are charged to the queues of their groups: each that has a claim on a node
// has one of the same amounts and state on its queue, begun, changed and ended in the transaction
// of the other. What a group that was let in needs beyond what its members have is reserved for it
// there (docs/design/0010-gangs.md), and so is what pods ask for that are to come to places of
// workloads (0012).
namespace berth::model {
namespace {

constexpr uint32_t kNoAccount = Queue::kNoAccount;

}  // namespace

// Every queue of Volcano is below the root, and groups without a queue are in the default one:
// neither need have an object.
void State::PinRoot() {
  root_queue_ = vocabulary_.names.Intern(kRootQueue);
  default_queue_ = vocabulary_.names.Intern(kDefaultQueue);
  queues_.Pin(QueueKind::kQueue, root_queue_, true, ledger_);
}

GroupBar State::BarOf(GroupId id) const {
  const NameId name = groups_.at(id).queue;
  QueueId q = queues_.Find(QueueKind::kQueue, name);
  if (!q.valid() || !queues_.at(q).uid.valid())
    return name == default_queue_ ? GroupBar::kNone : GroupBar::kQueueMissing;
  bool closed = false;
  for (; q.valid(); q = queues_.at(q).parent) {
    const Queue& row = queues_.at(q);
    if (row.in_cycle) return GroupBar::kQueueCycle;
    closed = closed || row.stopped;
    if (!row.uid.valid() && row.name != root_queue_) return GroupBar::kParentMissing;
  }
  return closed ? GroupBar::kQueueClosed : GroupBar::kNone;
}

// The queue that its members are charged to: the root where nobody made the default one. Invalid:
// there is none.
QueueId State::ChargedQueueOf(GroupId id) const {
  const NameId name = groups_.at(id).queue;
  const QueueId q = queues_.Find(QueueKind::kQueue, name);
  if (q.valid() && queues_.at(q).uid.valid()) return q;
  return name == default_queue_ ? queues_.Find(QueueKind::kQueue, root_queue_) : QueueId{};
}

ClaimId State::ShareOf(OwnerId owner) const {
  ClaimId id = ledger_.first_of_owner(owner);
  while (id.valid()) {
    const AccountId account = ledger_.claim(id).account;
    if (account.is_tree() && queues_.IsOfMembers(account.row())) return id;
    id = ledger_.claim(id).next_of_owner;
  }
  return id;
}

// What it is charged to its queue follows from its claim on a node.
void State::Share(Transaction& t, PodId pod) {
  const OwnerId owner = OwnerOf(pod);
  const ClaimId share = ShareOf(owner);
  const GroupId group = GroupOf(pod);
  if (!group.valid() && !share.valid()) return;
  const ClaimId on_node = ledger_.NodeClaimOf(owner);
  const QueueId q = group.valid() && on_node.valid() ? ChargedQueueOf(group) : QueueId{};
  if (q.valid()) {
    const Claim& source = ledger_.claim(on_node);
    const Claim wanted{.owner = owner,
                       .account = AccountId::OfTree(queues_.AccountOf(q, NameId{})),
                       .bundle = source.bundle,
                       .priority = source.priority,
                       .state = source.state,
                       .why = ClaimWhy::kAdmitted};
    if (!share.valid()) {
      t.Add(wanted);
    } else if (!SameClaim(ledger_.claim(share), wanted)) {
      t.Change(share, wanted);
    } else {
      return;
    }
  } else if (share.valid()) {
    t.End(share);
  }
  if (group.valid()) Unsettle(group);
}

void State::ShareOfOwner(Transaction& t, OwnerId owner) {
  if (const PodId pod = pods_.FindUid(owner); pod.valid()) Share(t, pod);
}

void State::Unsettle(GroupId group) {
  if (unsettled_.empty() || unsettled_.back() != group) unsettled_.push_back(group);
}

// Pods of each set that are to come to places that it has or is promised: to none that leaves.
// O(places).
std::vector<uint32_t> State::ToComeOf(WorkloadId id) const {
  if (!workloads_.used(id)) return {};
  const Workload& row = workloads_.at(id);
  std::vector<uint32_t> to_come(row.slots.size());
  const auto add = [&](const Slot& slot) {
    if (slot.pod_set < to_come.size()) ++to_come[slot.pod_set];
  };
  const auto stays = [&](ClaimId claim) {
    return claim.valid() && ledger_.claim(claim).state != ClaimState::kReleasing;
  };
  for (const SlotTable::Place& place : slots_.PlacesOf(id)) {
    if (stays(place.claim)) add(place.slot);
  }
  // What is promised no more may be about to end.
  const std::span<const ClaimId> promised = slots_.PromisedOf(id);
  for (size_t i = 0; i < std::min(promised.size(), row.promised.slots.size()); ++i) {
    if (stays(promised[i])) add(row.promised.slots[i]);
  }
  return to_come;
}

// Those that name the group, by what each asks for.
std::map<BundleId, uint32_t> State::ToComeOf(GroupId id, WorkloadId workload) const {
  std::map<BundleId, uint32_t> asked;
  const NameId gang = vocabulary_.names.Find(KeyOf(groups_.at(id).key));
  const std::vector<uint32_t> to_come = ToComeOf(workload);
  for (size_t i = 0; i < to_come.size(); ++i) {
    const WorkloadSlots& set = workloads_.at(workload).slots[i];
    if (to_come[i] > 0 && set.gang == gang)
      asked[vocabulary_.classes.at(set.class_id).requests] += to_come[i];
  }
  return asked;
}

std::map<BundleId, uint32_t> State::ToComeOf(GroupId id) const {
  std::map<BundleId, uint32_t> to_come;
  const NameId gang = vocabulary_.names.Find(KeyOf(groups_.at(id).key));
  for (const WorkloadId workload : slots_.WorkloadsOf(gang)) {
    for (const auto& [bundle, count] : ToComeOf(id, workload)) to_come[bundle] += count;
  }
  return to_come;
}

// What it asked to be kept for it beyond what its members will have once all that leave are gone,
// and pods that are to come. So who begins to leave, or is gone, leaves nothing to others, and what
// was found for the group when it was let in stays found. O(members + places).
std::vector<ResourceAmount> State::RestOf(GroupId id) const {
  const Group& group = groups_.at(id);
  const std::span<const ResourceAmount> all = vocabulary_.bundles.View(group.min_resources);
  std::vector<ResourceAmount> rest(all.begin(), all.end());
  if (rest.empty()) return rest;
  groups_.ForMembers(group.key, [&](PodId pod) {
    const ClaimId share = ShareOf(OwnerOf(pod));
    if (!share.valid() || (faults_.reserve_in_full && pods_.at(pod).node.valid())) return;
    if (ledger_.claim(share).state == ClaimState::kReleasing && !faults_.reserve_less_who_leaves)
      return;
    for (ResourceAmount& a : rest)
      a.amount -= vocabulary_.bundles.AmountOf(ledger_.claim(share).bundle, a.resource);
  });
  for (const auto& [bundle, count] : ToComeOf(id)) {
    for (ResourceAmount& a : rest)
      a.amount -= count * vocabulary_.bundles.AmountOf(bundle, a.resource);
  }
  std::erase_if(rest, [](const ResourceAmount& a) { return a.amount <= 0; });
  return rest;
}

// Whether something is to be kept for it: of whom workloads are to start pods, one has quota, or is
// promised it. Until then they may wait for ever, and what they need is asked for with it.
bool State::HasClaims(GroupId id) const {
  const NameId gang = vocabulary_.names.Find(KeyOf(groups_.at(id).key));
  const std::span<const WorkloadId> workloads = slots_.WorkloadsOf(gang);
  return workloads.empty() ||
         std::ranges::any_of(workloads, [&](WorkloadId workload) { return HasQuota(workload); });
}

// It holds some, or is promised it, and does not leave.
bool State::HasQuota(WorkloadId id) const {
  for (ClaimId claim = ledger_.first_of_owner(workloads_.at(id).uid); claim.valid();
       claim = ledger_.claim(claim).next_of_owner) {
    const Claim& c = ledger_.claim(claim);
    if (c.account.is_tree() && c.state != ClaimState::kReleasing) return true;
  }
  return false;
}

// Who may be evicted for room may be another from now on.
void State::NoteKeeping() {
  ++keeping_moves_;
  ledger_.NoteQuotaMoved();
}

// What is reserved for it on its queue: of pods to come a claim for all that ask for the same, and
// the rest of what it asked for. Beyond what is counted nothing is kept, whatever was let in.
std::vector<Claim> State::KeptFor(GroupId id) {
  const Group& group = groups_.at(id);
  const QueueId q = ChargedQueueOf(id);
  std::vector<Claim> kept;
  if (!q.valid()) return kept;
  Claim claim{.owner = group.uid,
              .account = AccountId::OfTree(queues_.AccountOf(q, NameId{})),
              .priority = group.priority.value_or(0),
              .state = ClaimState::kReserved,
              .why = ClaimWhy::kAdmitted};
  for (const auto& [bundle, count] : ToComeOf(id)) {
    claim.bundle = bundle;
    claim.count = count;
    kept.push_back(claim);
  }
  claim.count = 1;
  claim.why = ClaimWhy::kPipelined;
  const std::vector<ResourceAmount> rest =
      IsKeptFor(group) && HasClaims(id) ? RestOf(id) : std::vector<ResourceAmount>();
  if (rest.empty()) return kept;
  claim.bundle = vocabulary_.bundles.Intern(rest);
  kept.push_back(claim);
  return kept;
}

// Returns whether more is kept of what a workload has kept for it: of its members one leaves, and
// nothing to others, but would if the workload went.
bool State::SettleRest(Transaction& t, GroupId id) {
  Amounts kept;
  AddRest(id, kept);
  std::vector<Claim> wanted = KeptFor(id);
  std::vector<ClaimId> others;
  for (ClaimId claim = ledger_.first_of_owner(groups_.at(id).uid); claim.valid();
       claim = ledger_.claim(claim).next_of_owner) {
    const auto same = std::ranges::find_if(
        wanted, [&](const Claim& c) { return SameClaim(ledger_.claim(claim), c); });
    if (same == wanted.end()) {
      others.push_back(claim);
    } else {
      wanted.erase(same);
    }
  }
  for (const Claim& claim : wanted) {
    const int64_t before = others.empty() ? 0 : ledger_.claim(others.back()).count;
    if (claim.count > before &&
        ledger_.slots_charged() + claim.count - before > limits::kSlotsMax) {
      continue;
    }
    if (others.empty()) {
      t.Add(claim);
    } else {
      t.Change(others.back(), claim);
      others.pop_back();
    }
  }
  for (const ClaimId claim : others) t.End(claim);
  if (slots_.WorkloadsOf(vocabulary_.names.Find(KeyOf(groups_.at(id).key))).empty()) return false;
  Amounts now;
  AddRest(id, now);
  return std::ranges::any_of(now, [&](const auto& rest) { return rest.second > kept[rest.first]; });
}

// What is to come is settled when all that was decided with it stands (Commit).
bool State::SettleRests(Transaction& t) {
  bool more_kept = false;
  for (const GroupId group : std::exchange(unsettled_, {})) {
    const bool later = std::ranges::find(to_come_, group) != to_come_.end();
    if (groups_.used(group) && !later) more_kept = SettleRest(t, group) || more_kept;
  }
  return more_kept;
}

void State::Commit(Transaction& t, Cause cause) {
  if (SettleRests(t)) NoteKeeping();
  t.Commit(cause);
  if (to_come_.empty()) return;
  Transaction then = Begin();
  for (const GroupId group : std::exchange(to_come_, {})) {
    if (groups_.used(group) && SettleRest(then, group)) NoteKeeping();
  }
  then.Commit(Cause::kObserved);
}

// After each change of its claims and of what its pods name: what is kept for its gangs follows
// from them. O(pod sets^2).
void State::NoteToCome(WorkloadId id) {
  const auto names_one = [](const WorkloadSlots& set) { return set.gang.valid(); };
  const bool any = workloads_.used(id) && std::ranges::any_of(workloads_.at(id).slots, names_one);
  if (!any && slots_.of(id).gangs.empty()) return;
  std::vector<NameId> gangs;
  if (any) {
    for (const WorkloadSlots& set : workloads_.at(id).slots) {
      if (set.gang.valid() && std::ranges::find(gangs, set.gang) == gangs.end())
        gangs.push_back(set.gang);
    }
  }
  std::ranges::sort(gangs);
  std::vector<NameId> concerned = slots_.of(id).gangs;
  concerned.insert(concerned.end(), gangs.begin(), gangs.end());
  if (slots_.of(id).gangs != gangs) NoteKeeping();
  slots_.SetGangs(id, std::move(gangs));
  for (const NameId gang : concerned) {
    const GroupId group = groups_.FindKey(keys_.Find(NameOf(gang)));
    if (group.valid() && std::ranges::find(to_come_, group) == to_come_.end())
      to_come_.push_back(group);
  }
}

// Those who name the group.
void State::SettleShares(KeyId group) {
  Transaction t = Begin();
  groups_.ForMembers(group, [&](PodId pod) { Share(t, pod); });
  Commit(t, Cause::kObserved);
}

// It, and those that name it as their parent, or one that does: all that a change of it may bar.
// O(queues below).
std::vector<NameId> State::QueuesBelow(NameId queue) const {
  std::vector<NameId> names = {queue};
  std::vector<QueueId> todo = {queues_.Find(QueueKind::kQueue, queue)};
  std::vector<uint8_t> seen(queues_.size());
  while (!todo.empty()) {
    const QueueId q = todo.back();
    todo.pop_back();
    if (!q.valid() || std::exchange(seen[q.value], uint8_t{1}) != 0) continue;
    if (queues_.at(q).name != queue) names.push_back(queues_.at(q).name);
    for (QueueId child = queues_.at(q).first_child; child.valid();
         child = queues_.at(child).next_sibling) {
      todo.push_back(child);
    }
  }
  // Who is in the default queue is the root's own while that has no object.
  if (queue == root_queue_ && std::ranges::find(names, default_queue_) == names.end())
    names.push_back(default_queue_);
  return names;
}

// A queue came, went or is another: what its groups are charged, and what keeps those of queues
// below it. Others wait for quota at most, and look again when it moved. O(queues below + their
// groups + members of its own).
void State::ChangeGroupsOf(NameId queue) {
  ledger_.NoteQuotaMoved();
  std::vector<GroupId> groups;
  for (const NameId name : QueuesBelow(queue))
    groups_.ForQueue(name, [&](GroupId id) { groups.push_back(id); });
  std::ranges::sort(groups);
  for (const GroupId id : groups) {
    changed_groups_.push_back(id);
    if (groups_.at(id).queue != queue) continue;
    Unsettle(id);
    SettleShares(groups_.at(id).key);
  }
}

// ---- What is left ----------------------------------------------------------------------------

// `own`: what of that is reserved for who asks. What nobody could ever have is told first.
std::optional<State::QuotaShort> State::ShortIn(QueueId q, std::span<const ResourceAmount> need,
                                                const Amounts& own, bool to_come) const {
  const QuotaTree& tree = ledger_.quota();
  const uint32_t account = queues_.AccountOf(q, NameId{});
  CHECK_NE(account, kNoAccount);
  std::optional<QuotaShort> lacks;
  for (const ResourceAmount& a : need) {
    const auto reserved = own.find(a.resource);
    QuotaTree::Left left = tree.LeftFor(QuotaView::kFuture, a.resource, account,
                                        reserved == own.end() ? 0 : reserved->second);
    if (!to_come) {
      const QuotaTree::Left now = tree.LeftFor(QuotaView::kPhysical, a.resource, account);
      if (now.amount < left.amount) left = now;
    }
    if (left.amount >= a.amount) continue;
    const QuotaTree::Left most = tree.MostFor(a.resource, account);
    const bool never = most.amount < a.amount;
    if (lacks && !never) continue;
    lacks = {.resource = a.resource,
             .deficit = a.amount - left.amount,
             .queue = queues_.account(never ? most.row : left.row).queue,
             .never = never};
    if (never) break;
  }
  return lacks;
}

void State::AddAmounts(BundleId bundle, Amount count, Amounts& to) const {
  for (const ResourceAmount& a : vocabulary_.bundles.View(bundle))
    to[a.resource] += count * a.amount;
}

// Of what is reserved for it the part that is for any of its members.
void State::AddRest(GroupId id, Amounts& to) const {
  for (ClaimId claim = ledger_.first_of_owner(groups_.at(id).uid); claim.valid();
       claim = ledger_.claim(claim).next_of_owner) {
    const Claim& c = ledger_.claim(claim);
    if (c.why == ClaimWhy::kPipelined) AddAmounts(c.bundle, c.count, to);
  }
}

void State::AddPromisedShare(PodId member, Amounts& to) const {
  const ClaimId share = ShareOf(OwnerOf(member));
  if (share.valid() && ledger_.claim(share).state == ClaimState::kReserved)
    AddAmounts(ledger_.claim(share).bundle, 1, to);
}

std::optional<State::QuotaShort> State::ShortFor(PodId member, bool to_come) const {
  const GroupId group = GroupOf(member);
  const QueueId q = group.valid() ? ChargedQueueOf(group) : QueueId{};
  if (!q.valid()) return std::nullopt;
  Amounts own;
  AddRest(group, own);
  AddPromisedShare(member, own);
  return ShortIn(q, vocabulary_.bundles.View(pods_.at(member).charge), own, to_come);
}

void State::ChargeAsPlaced(Transaction& t, PodId member) const {
  const GroupId group = GroupOf(member);
  const QueueId q = group.valid() ? ChargedQueueOf(group) : QueueId{};
  if (!q.valid()) return;
  const Claim placed{.owner = OwnerOf(member),
                     .account = AccountId::OfTree(queues_.AccountOf(q, NameId{})),
                     .bundle = pods_.at(member).charge,
                     .why = ClaimWhy::kAdmitted};
  if (const ClaimId share = ShareOf(placed.owner); share.valid()) {
    t.Change(share, placed);
  } else {
    t.Add(placed);
  }
}

std::optional<State::QuotaShort> State::ShortFor(GroupId group) const {
  const QueueId q = ChargedQueueOf(group);
  if (!q.valid()) return std::nullopt;
  return ShortIn(q, RestOf(group), {}, /*to_come=*/true);
}

State::Asked State::AskedBy(WorkloadId workload, GroupId group, Counts counts) const {
  const Workload& row = workloads_.at(workload);
  const NameId gang = vocabulary_.names.Find(KeyOf(groups_.at(group).key));
  Amounts own;
  for (const auto& [bundle, count] : ToComeOf(group, workload)) AddAmounts(bundle, count, own);
  groups_.ForMembers(groups_.at(group).key, [&](PodId pod) {
    if (row.job.valid() && pods_.at(pod).job == row.job) AddPromisedShare(pod, own);
  });
  // Of who was admitted those without a place stand in line, and ask for themselves.
  Amounts asked;
  if (!ChargedTo(row).charges.empty()) {
    asked = own;
  } else {
    for (size_t i = 0; i < row.slots.size(); ++i) {
      const WorkloadSlots& set = row.slots[i];
      const uint32_t count = i < counts.size() ? std::min(set.count, counts[i]) : set.count;
      if (set.gang == gang) AddAmounts(vocabulary_.classes.at(set.class_id).requests, count, asked);
    }
  }
  AddRest(group, own);
  std::vector<ResourceAmount> need;
  for (const auto& [resource, amount] : asked) need.push_back({resource, amount});
  return {.need = std::move(need), .own = std::move(own)};
}

std::optional<State::QuotaShort> State::ShortFor(WorkloadId workload, GroupId group,
                                                 Counts counts) const {
  const QueueId q = ChargedQueueOf(group);
  if (!q.valid()) return std::nullopt;
  const Asked asked = AskedBy(workload, group, counts);
  return ShortIn(q, asked.need, asked.own, /*to_come=*/true);
}

// Who was let in asks for no more, but for whom nothing is kept.
bool State::AsksForRest(GroupId id) const {
  const Group& group = groups_.at(id);
  if (PhaseOf(group, groups_.CountsOf(group.key)) == GroupPhase::kPending) return true;
  return IsKeptFor(group) && !HasClaims(id);
}

std::map<ResourceId, Amount> State::ShortagesFor(WorkloadId workload, GroupId group,
                                                 Counts counts) const {
  const QueueId q = ChargedQueueOf(group);
  std::map<ResourceId, Amount> shortages;
  if (!q.valid()) return shortages;
  const auto ask = [&](std::span<const ResourceAmount> need, const Amounts& own) {
    for (const ResourceAmount& a : need) {
      const auto lacks = ShortIn(q, {&a, 1}, own, /*to_come=*/true);
      if (!lacks) continue;
      Amount& amount = shortages[a.resource];
      amount = std::max(amount, lacks->deficit);
    }
  };
  const Asked asked = AskedBy(workload, group, counts);
  ask(asked.need, asked.own);
  if (AsksForRest(group)) ask(RestOf(group), {});
  return shortages;
}

bool State::HasRoomNow(WorkloadId workload, GroupId group, Counts counts) const {
  const QueueId q = ChargedQueueOf(group);
  if (!q.valid()) return true;
  const Asked asked = AskedBy(workload, group, counts);
  return !ShortIn(q, asked.need, asked.own, /*to_come=*/false);
}

bool State::HasRoomWithout(Transaction& t, WorkloadId workload, GroupId group,
                           std::span<const WorkloadId> leave, Counts counts) {
  const std::vector<GroupId> unsettled = unsettled_;
  const std::vector<GroupId> to_come = to_come_;
  const Transaction::Checkpoint start = t.checkpoint();
  for (const WorkloadId id : leave) LeaveIn(t, id);
  unsettled_.insert(unsettled_.end(), to_come_.begin(), to_come_.end());
  to_come_.clear();
  SettleRests(t);
  const bool room = ShortagesFor(workload, group, counts).empty();
  t.RollbackTo(start);
  unsettled_ = unsettled;
  to_come_ = to_come;
  return room;
}

std::optional<State::QuotaShort> State::NeverFor(GroupId group,
                                                 std::span<const ResourceAmount> need) const {
  const QueueId q = ChargedQueueOf(group);
  if (!q.valid()) return std::nullopt;
  Amounts own;
  AddRest(group, own);
  groups_.ForMembers(groups_.at(group).key, [&](PodId pod) { AddPromisedShare(pod, own); });
  const std::optional<QuotaShort> lacks = ShortIn(q, need, own, /*to_come=*/true);
  return lacks && lacks->never ? lacks : std::nullopt;
}

void State::LetIn(GroupId id) {
  CHECK(BarOf(id) == GroupBar::kNone);
  groups_.mutable_at(id).let_in = true;
  Transaction t = Begin();
  Unsettle(id);
  Commit(t, Cause::kDecided);
}

void State::SetFutile(GroupId id, bool futile) {
  if (groups_.at(id).futile == futile) return;
  if (!futile && ShortFor(id)) return;
  groups_.mutable_at(id).futile = futile;
  NoteKeeping();
  Transaction t = Begin();
  Unsettle(id);
  Commit(t, Cause::kDecided);
}

}  // namespace berth::model
