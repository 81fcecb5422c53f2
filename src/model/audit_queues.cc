#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/limits.h"
#include "model/audit.h"
#include "model/naive_quota.h"
#include "model/state.h"

namespace berth::model {
namespace {

constexpr uint32_t kNoAccount = Queue::kNoAccount;

class QueueAuditor {
 public:
  explicit QueueAuditor(const State& state)
      : state_(state),
        queues_(state.queues()),
        in_cycle_(queues_.size()),
        children_(queues_.size()),
        account_children_(queues_.accounts_size()),
        accounts_(queues_.accounts_size()) {}

  std::vector<std::string> Run() {
    FindCycles();
    CountChildren();
    for (uint32_t i = 0; i < queues_.size(); ++i) {
      if (queues_.used(QueueId{i})) CheckQueue(QueueId{i});
    }
    for (uint32_t account = 0; account < accounts_.size(); ++account) CheckAccount(account);
    for (uint32_t i = 0; i < state_.workloads().size(); ++i) {
      if (state_.workloads().used(WorkloadId{i})) CheckWorkload(WorkloadId{i});
    }
    for (uint32_t i = 0; i < state_.pods().size(); ++i) {
      if (state_.pods().used(PodId{i})) CheckShare(PodId{i});
    }
    for (uint32_t i = 0; i < state_.groups().size(); ++i) {
      if (state_.groups().used(GroupId{i})) CheckRest(GroupId{i});
    }
    CheckIndexOfGroups();
    if (!found_.empty()) return std::move(found_);  // Amounts follow from what is wrong already.
    SumClaims();
    for (uint32_t i = 0; i < state_.ledger().quota().resources(); ++i) CheckAmounts(ResourceId{i});
    return std::move(found_);
  }

 private:
  // Pod set, account, count, bundle, state, priority.
  using ClaimText =
      std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, ClaimState, int32_t, uint32_t>;

  [[nodiscard]] std::string NameOf(QueueId q) const {
    return fmt::format("queue {} of kind {}", state_.NameOf(queues_.at(q).name),
                       static_cast<int>(queues_.at(q).kind));
  }
  [[nodiscard]] std::string NameOfAccount(uint32_t account) const {
    const QueueAccount& a = queues_.account(account);
    return fmt::format("{} flavor '{}'", NameOf(a.queue),
                       a.flavor.valid() ? state_.NameOf(a.flavor) : "");
  }
  // By the names that queues give.
  [[nodiscard]] QueueId ParentOf(QueueId q) const {
    return in_cycle_[q.value] != 0 ? QueueId{} : queues_.at(q).parent;
  }
  [[nodiscard]] uint32_t AccountAbove(uint32_t account) const {
    const QueueId parent = ParentOf(queues_.account(account).queue);
    return parent.valid() ? queues_.AccountOf(parent, queues_.account(account).flavor) : kNoAccount;
  }

  // Each queue is walked from once: a walk ends where another was, or in its own track.
  void FindCycles() {
    std::vector<uint32_t> walk_of(queues_.size(), kNoAccount);
    for (uint32_t i = 0; i < queues_.size(); ++i) {
      QueueId q{i};
      if (!queues_.used(q)) continue;
      for (; q.valid() && walk_of[q.value] == kNoAccount; q = queues_.at(q).parent)
        walk_of[q.value] = i;
      if (!q.valid() || walk_of[q.value] != i) continue;
      for (; in_cycle_[q.value] == 0; q = queues_.at(q).parent) in_cycle_[q.value] = 1;
    }
  }

  // Of those linked to it the highest, and one more.
  [[nodiscard]] uint32_t HeightOf(QueueId q) const {
    uint32_t height = 0;
    for (QueueId child = queues_.at(q).first_child; child.valid();
         child = queues_.at(child).next_sibling) {
      if (in_cycle_[child.value] == 0) height = std::max(height, queues_.at(child).height + 1);
    }
    return height;
  }

  void CountChildren() {
    for (uint32_t i = 0; i < queues_.size(); ++i) {
      if (!queues_.used(QueueId{i})) continue;
      const QueueId parent = queues_.at(QueueId{i}).parent;
      if (parent.valid()) ++children_[parent.value];
    }
    for (uint32_t account = 0; account < accounts_.size(); ++account) {
      if (!queues_.account(account).queue.valid()) continue;
      const uint32_t parent = AccountAbove(account);
      if (parent != kNoAccount) ++account_children_[parent];
    }
  }

  void CheckQueue(QueueId q) {
    const Queue& row = queues_.at(q);
    if (row.in_cycle != (in_cycle_[q.value] != 0))
      found_.push_back(fmt::format("{}: in a cycle: {}", NameOf(q), row.in_cycle));
    if (row.children_count != children_[q.value]) {
      found_.push_back(fmt::format("{}: {} children, recomputed {}", NameOf(q), row.children_count,
                                   children_[q.value]));
    }
    uint32_t listed = 0;
    for (QueueId child = row.first_child; child.valid() && listed <= queues_.size();
         child = queues_.at(child).next_sibling) {
      ++listed;
      if (queues_.at(child).parent != q)
        found_.push_back(fmt::format("{}: lists another's child", NameOf(q)));
    }
    if (row.height != HeightOf(q)) {
      found_.push_back(
          fmt::format("{}: {} levels below it, recomputed {}", NameOf(q), row.height, HeightOf(q)));
    }
    if (listed != row.children_count)
      found_.push_back(fmt::format("{}: lists {} children", NameOf(q), listed));
    if (!row.uid.valid() && row.children_count == 0 && row.first_account == kNoAccount)
      found_.push_back(fmt::format("{}: nobody knows it", NameOf(q)));
    if (queues_.Find(row.kind, row.name) != q)
      found_.push_back(fmt::format("{}: not found by its name", NameOf(q)));
    for (uint32_t a = row.first_account; a != kNoAccount; a = queues_.account(a).next) {
      if (queues_.account(a).queue != q)
        found_.push_back(fmt::format("{}: lists an account of another queue", NameOf(q)));
    }
  }

  void CheckAccount(uint32_t account) {
    const QueueAccount& a = queues_.account(account);
    const QuotaTree& tree = state_.ledger().quota();
    if (!a.queue.valid()) {
      if (state_.ledger().tree().claims_count(account) > 0)
        found_.push_back(fmt::format("account {}: nobody's, with claims", account));
      return;
    }
    uint32_t defined = 0;
    for (uint32_t i = 0; i < tree.resources(); ++i)
      defined += tree.defined(ResourceId{i}, account) ? 1 : 0;
    const uint32_t parent = AccountAbove(account);
    accounts_[account] = {.parent = parent, .whole = queues_.at(a.queue).kind == QueueKind::kQueue};
    if (tree.parent(account) != parent)
      found_.push_back(fmt::format("{}: linked elsewhere than named", NameOfAccount(account)));
    if (queues_.AccountOf(a.queue, a.flavor) != account)
      found_.push_back(fmt::format("{}: not found by its flavor", NameOfAccount(account)));
    if (a.defined_count != defined || a.children_count != account_children_[account]) {
      found_.push_back(fmt::format("{}: {} quotas and {} accounts below, recomputed {} and {}",
                                   NameOfAccount(account), a.defined_count, a.children_count,
                                   defined, account_children_[account]));
    }
    if (a.defined_count + a.children_count == 0 && !a.pinned &&
        state_.ledger().tree().claims_count(account) == 0) {
      found_.push_back(fmt::format("{}: nobody needs it", NameOfAccount(account)));
    }
    if (ParentOf(a.queue).valid() && parent == kNoAccount)
      found_.push_back(fmt::format("{}: there is none above", NameOfAccount(account)));
  }

  // Its claims are those that follow from its row, and there are no others.
  void CheckWorkload(WorkloadId id) {
    const Workload& row = state_.workloads().at(id);
    const Reservation& charged = ChargedTo(row);
    const bool promised = charged.charges.empty();
    const Reservation& wanted = promised ? row.promised : charged;
    const QueueId q = queues_.Find(QueueKind::kClusterQueue, wanted.cluster_queue);
    ClaimState state = promised ? ClaimState::kReserved : ClaimState::kHeld;
    if (!promised && (row.claimant.valid() || StageOf(row.status) == WorkloadStage::kEvicted))
      state = ClaimState::kReleasing;
    const OwnerId claimant =
        row.claimant.valid() ? state_.workloads().at(row.claimant).uid : OwnerId{};
    std::vector<ClaimText> expected;
    for (const QuotaCharge& charge : wanted.charges) {
      const uint32_t account = q.valid() ? queues_.AccountOf(q, charge.flavor) : kNoAccount;
      expected.emplace_back(charge.pod_set, account, charge.count, charge.amounts.value, state,
                            row.priority, claimant.value);
    }
    std::ranges::sort(expected);
    const std::vector<ClaimText> found = ClaimsOn(row.uid, /*of_members=*/false);
    const std::string_view key = state_.KeyOf(row.key);
    if (expected != found) {
      found_.push_back(
          fmt::format("workload {}: {} claims, not as its row says", key, found.size()));
    }
    CheckPromise(id, row, key);
  }

  // The account that members of the group are charged to; kNoAccount: there is no such queue.
  [[nodiscard]] uint32_t AccountOf(const Group& group) const {
    QueueId q = queues_.Find(QueueKind::kQueue, group.queue);
    if (!q.valid() || !queues_.at(q).uid.valid()) {
      if (state_.NameOf(group.queue) != kDefaultQueue) return kNoAccount;
      q = state_.FindQueue(QueueKind::kQueue, kRootQueue);
    }
    return q.valid() ? queues_.AccountOf(q, NameId{}) : kNoAccount;
  }

  // A member is charged to its group's queue what it is charged on a node, and others are nothing.
  void CheckShare(PodId id) {
    const Pod& pod = state_.pods().at(id);
    const ClaimId on_node = state_.ledger().NodeClaimOf(state_.OwnerOf(id));
    const GroupId group = state_.GroupOf(id);
    const bool charged = group.valid() && on_node.valid();
    const uint32_t account = charged ? AccountOf(state_.groups().at(group)) : kNoAccount;
    std::vector<ClaimText> expected;
    if (account != kNoAccount) {
      const Claim& c = state_.ledger().claim(on_node);
      expected.emplace_back(0, account, 1, c.bundle.value, c.state, c.priority, OwnerId{}.value);
    }
    if (ClaimsOn(pod.uid, /*of_members=*/true) != expected)
      found_.push_back(fmt::format("pod {}: charged to its group's queue otherwise than its node",
                                   state_.KeyOf(pod.key)));
  }

  // What pods ask for that are to come to places of workloads is kept for it.
  [[nodiscard]] std::map<BundleId, uint32_t> ToCome(const Group& group) const {
    std::map<BundleId, uint32_t> to_come;
    for (uint32_t i = 0; i < state_.workloads().size(); ++i) {
      const WorkloadId id{i};
      if (!state_.workloads().used(id)) continue;
      const Workload& row = state_.workloads().at(id);
      const auto add = [&](const Slot& slot) {
        const WorkloadSlots& set = row.slots[slot.pod_set];
        if (set.gang.valid() && state_.NameOf(set.gang) == state_.KeyOf(group.key))
          ++to_come[state_.vocabulary().classes.at(set.class_id).requests];
      };
      for (const SlotTable::Place& place : state_.slots().PlacesOf(id)) {
        if (place.claim.valid() &&
            state_.ledger().claim(place.claim).state != ClaimState::kReleasing) {
          add(place.slot);
        }
      }
      const auto promised = state_.slots().PromisedOf(id);
      for (size_t k = 0; k < promised.size(); ++k) {
        if (promised[k].valid()) add(row.promised.slots[k]);
      }
    }
    return to_come;
  }

  // Whether none are to start its pods, or one that has quota or is promised it.
  [[nodiscard]] bool MayKeep(const Group& group) const {
    bool named = false;
    for (uint32_t i = 0; i < state_.workloads().size(); ++i) {
      const WorkloadId id{i};
      if (!state_.workloads().used(id)) continue;
      const Workload& row = state_.workloads().at(id);
      const bool names = std::ranges::any_of(row.slots, [&](const WorkloadSlots& set) {
        return set.gang.valid() && state_.NameOf(set.gang) == state_.KeyOf(group.key);
      });
      if (!names) continue;
      named = true;
      const bool leaves = row.claimant.valid() || StageOf(row.status) == WorkloadStage::kEvicted;
      const bool has = !ChargedTo(row).charges.empty() || !row.promised.charges.empty();
      if (has && !leaves) return true;
    }
    return !named;
  }

  // What it was let in with stays its own: what its members will have once all that leave are gone,
  // what pods that are to come will, and what is kept for it, are together what it asks for.
  void CheckRest(GroupId id) {
    const Group& group = state_.groups().at(id);
    const uint32_t account = AccountOf(group);
    const std::map<BundleId, uint32_t> to_come = ToCome(group);
    const BundleTable& bundles = state_.vocabulary().bundles;
    std::vector<ResourceAmount> rest;
    if (account != kNoAccount && IsKeptFor(group) && MayKeep(group)) {
      for (ResourceAmount a : bundles.View(group.min_resources)) {
        state_.groups().ForMembers(group.key, [&](PodId pod) {
          const Pod& row = state_.pods().at(pod);
          const ClaimId on_node = state_.ledger().NodeClaimOf(state_.OwnerOf(pod));
          if (on_node.valid() && state_.ledger().claim(on_node).state != ClaimState::kReleasing)
            a.amount -= bundles.AmountOf(row.charge, a.resource);
        });
        for (const auto& [bundle, count] : to_come)
          a.amount -= count * bundles.AmountOf(bundle, a.resource);
        if (a.amount > 0) rest.push_back(a);
      }
    }
    std::vector<ClaimText> expected;
    const auto expect = [&](BundleId bundle, uint32_t count) {
      expected.emplace_back(0, account, count, bundle.value, ClaimState::kReserved,
                            group.priority.value_or(0), OwnerId{}.value);
    };
    if (account != kNoAccount) {
      for (const auto& [bundle, count] : to_come) expect(bundle, count);
    }
    const std::vector<ClaimText> found = ClaimsOn(group.uid, /*of_members=*/true);
    const auto is_rest = [&](const ClaimText& c) {
      return std::ranges::equal(bundles.View(BundleId{std::get<3>(c)}), rest);
    };
    if (!rest.empty()) {
      const auto at = std::ranges::find_if(found, is_rest);
      expect(at == found.end() ? BundleId{} : BundleId{std::get<3>(*at)}, 1);
    }
    std::ranges::sort(expected);
    const bool full = state_.ledger().slots_charged() >= limits::kSlotsMax;
    if (!full && found != expected)
      found_.push_back(fmt::format("group {}: what is kept for it is not what it lacks",
                                   state_.KeyOf(group.key)));
  }

  // Each group is listed once, with the queue that it names.
  void CheckIndexOfGroups() {
    uint32_t listed = 0;
    for (uint32_t i = 0; i < state_.vocabulary().names.size(); ++i) {
      state_.groups().ForQueue(NameId{i}, [&](GroupId id) {
        ++listed;
        if (!state_.groups().used(id) || state_.groups().at(id).queue != NameId{i})
          found_.push_back(fmt::format("group {}: listed in another queue", id.value));
      });
    }
    if (listed != state_.groups().live())
      found_.push_back(fmt::format("{} groups are in queues, and {} listed there",
                                   state_.groups().live(), listed));
  }

  // The owner's on queues of Volcano, or on others.
  [[nodiscard]] std::vector<ClaimText> ClaimsOn(OwnerId owner, bool of_members) const {
    std::vector<ClaimText> found;
    for (ClaimId claim = state_.ledger().first_of_owner(owner); claim.valid();
         claim = state_.ledger().claim(claim).next_of_owner) {
      const Claim& c = state_.ledger().claim(claim);
      if (!c.account.is_tree() || queues_.IsOfMembers(c.account.row()) != of_members) continue;
      found.emplace_back(c.pod_set, c.account.row(), c.count, c.bundle.value, c.state, c.priority,
                         c.claimant.value);
    }
    std::ranges::sort(found);
    return found;
  }

  // Whom others leave for waits, is promised something, and they know it as it knows them.
  void CheckPromise(WorkloadId id, const Workload& row, std::string_view key) {
    const bool promised = row.promised != Reservation{};
    const bool under_way = row.write != WriteStage::kNone;
    if (promised && StageOf(row.status) != WorkloadStage::kPending)
      found_.push_back(fmt::format("workload {}: promised quota, and does not wait", key));
    const Reservation decided = WithoutPlaces(row.decided);
    if (promised && under_way && row.promised != decided)
      found_.push_back(fmt::format("workload {}: promised what was not decided", key));
    if (under_way && !row.victims.empty())
      found_.push_back(fmt::format("workload {}: others leave for it, and it has its quota", key));
    for (const WorkloadId victim : row.victims) {
      if (!promised || !state_.workloads().used(victim) ||
          state_.workloads().at(victim).claimant != id)
        found_.push_back(fmt::format("workload {}: waits for one that does not leave for it", key));
    }
    if (!row.claimant.valid()) return;
    if (!state_.workloads().used(row.claimant) ||
        std::ranges::count(state_.workloads().at(row.claimant).victims, id) != 1)
      found_.push_back(fmt::format("workload {}: evicted for nobody", key));
    if (ChargedTo(row).charges.empty())
      found_.push_back(fmt::format("workload {}: evicted, and holds nothing", key));
  }

  void SumClaims() {
    const uint32_t resources = state_.ledger().quota().resources();
    claims_.assign(size_t{resources} * accounts_.size(), {});
    for (uint32_t i = 0; i < state_.ledger().claims_size(); ++i) {
      const Claim& claim = state_.ledger().claim(ClaimId{i});
      if (!claim.owner.valid() || !claim.account.is_tree()) continue;
      for (const ResourceAmount& a : state_.vocabulary().bundles.View(claim.bundle)) {
        ViewAmounts& sums =
            claims_[size_t{a.resource.value} * accounts_.size() + claim.account.row()];
        const Amount amount = a.amount * claim.count;
        if (claim.state != ClaimState::kReserved) sums[0] += amount;
        if (claim.state != ClaimState::kReleasing) sums[1] += amount;
        sums[2] += amount;
      }
    }
  }

  void CheckAmounts(ResourceId r) {
    const QuotaTree& tree = state_.ledger().quota();
    std::vector<NaiveQuota::Row> rows = accounts_;
    for (uint32_t account = 0; account < rows.size(); ++account) {
      rows[account].quota = tree.quota(r, account);
      rows[account].defined = tree.defined(r, account);
      rows[account].claims = claims_[size_t{r.value} * rows.size() + account];
    }
    const NaiveQuota naive(std::move(rows));
    std::vector<Amount> over(accounts_.size());  // Children that use more than they have.
    for (uint32_t account = 0; account < accounts_.size(); ++account) {
      const Amount used = std::max(naive.Used(QuotaView::kPhysical, account),
                                   naive.Used(QuotaView::kFuture, account));
      const uint32_t above = accounts_[account].parent;
      if (above != QuotaTree::kNoRow && used > naive.Subtree(account)) ++over[above];
    }
    for (uint32_t account = 0; account < accounts_.size(); ++account) {
      if (!queues_.account(account).queue.valid()) continue;
      CheckAmount(account, r, "subtree", tree.subtree(r, account), naive.Subtree(account));
      for (const auto view : {QuotaView::kPhysical, QuotaView::kFuture, QuotaView::kNow})
        CheckAmount(account, r, "used", tree.used(view, r, account), naive.Used(view, account));
      CheckAmount(account, r, "children over", tree.children_over(r, account), over[account]);
    }
  }

  void CheckAmount(uint32_t account, ResourceId r, const char* what, Amount kept,
                   Amount recomputed) {
    if (kept == recomputed) return;
    found_.push_back(fmt::format("{}: {} {} is {}, recomputed {}", NameOfAccount(account), what,
                                 state_.vocabulary().resources.Name(r), kept, recomputed));
  }

  const State& state_;
  const QueueTable& queues_;
  std::vector<uint8_t> in_cycle_;           // By queue.
  std::vector<uint32_t> children_;          // By queue.
  std::vector<uint32_t> account_children_;  // By account.
  std::vector<NaiveQuota::Row> accounts_;   // Linked as named.
  std::vector<ViewAmounts> claims_;         // By resource, then account.
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> AuditQueues(const State& state) { return QueueAuditor(state).Run(); }

}  // namespace berth::model
