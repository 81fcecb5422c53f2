#include "model/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>

#include "model/lifecycle.h"
#include "model/state.h"

namespace berth::model {
namespace {

// The claim that a pod's facts and decisions call for, without its node when that is ours to know
// only (a decision).
struct Expected {
  ClaimState state = ClaimState::kHeld;
  ClaimWhy why = ClaimWhy::kBound;
  NodeId node;  // Invalid: wherever we decided.
};

std::optional<Expected> ExpectedOf(const State& state, PodId id) {
  const Pod& pod = state.pods().at(id);
  switch (StageOf(pod)) {
    case PodStage::kFinished:
      return std::nullopt;
    case PodStage::kTerminating:
      if (!pod.node.valid()) return std::nullopt;
      return Expected{pod.overdue ? ClaimState::kHeld : ClaimState::kReleasing, ClaimWhy::kDeleting,
                      state.nodes().Find(pod.node)};
    case PodStage::kBound:
      if (state.IsToLeave(id))
        return Expected{ClaimState::kReleasing, ClaimWhy::kEvicting, state.nodes().Find(pod.node)};
      return Expected{ClaimState::kHeld, ClaimWhy::kBound, state.nodes().Find(pod.node)};
    case PodStage::kInFlight:
    case PodStage::kAccepted:
    case PodStage::kUnresolved:
      if (state.IsToLeave(id))
        return Expected{ClaimState::kReleasing, ClaimWhy::kEvicting, NodeId{}};
      return Expected{ClaimState::kHeld, ClaimWhy::kAssumed, NodeId{}};
    case PodStage::kForeign:
    case PodStage::kGated:
    case PodStage::kPending:
    case PodStage::kLost:
      break;
  }
  const NameId promised = PromisedNode(pod);
  const NodeId node = promised.valid() ? state.nodes().Find(promised) : NodeId{};
  if (!node.valid() || !state.nodes().present(node)) return std::nullopt;
  return Expected{ClaimState::kReserved, ClaimWhy::kNominated, node};
}

class Auditor {
 public:
  explicit Auditor(const State& state)
      : state_(state),
        nodes_(SumsFor(state.ledger().nodes())),
        tree_(SumsFor(state.ledger().tree())) {}

  std::vector<std::string> Run() {
    for (uint32_t i = 0; i < state_.pods().size(); ++i) {
      if (state_.pods().used(PodId{i})) CheckPod(PodId{i});
    }
    CheckClaims();
    CheckBudgets();
    CheckDoubtful();
    CheckMembers();
    CheckSlots();
    CheckJobs();
    for (const ClassId class_id : state_.ledger().spreads().Tracked()) CheckSpread(class_id);
    CheckAffinities();
    CheckImages();
    CheckVolumes();
    std::vector<uint32_t> with_reserved;
    for (uint32_t row = 0; row < nodes_.size(); ++row) {
      CheckAccount(AccountId::OfNode(NodeId{row}), nodes_[row]);
      CheckNode(NodeId{row});
      if (state_.ledger().nodes().has_reserved(row)) with_reserved.push_back(row);
    }
    if (Sorted(state_.ledger().nodes().rows_with_reserved()) != with_reserved)
      found_.push_back("reservations are on other nodes");
    for (uint32_t row = 0; row < tree_.size(); ++row)
      CheckAccount(AccountId::OfTree(row), tree_[row]);
    const std::vector<std::string> queues = AuditQueues(state_);
    found_.insert(found_.end(), queues.begin(), queues.end());
    return std::move(found_);
  }

 private:
  struct Sum {
    std::vector<Amount> held;
    std::vector<Amount> releasing;
    Amount scored[2] = {0, 0};
    int32_t device_used[kDevicesMax] = {};
    std::map<HostPort, PortUse> ports;
    uint32_t claims_count = 0;
  };

  static std::vector<Sum> SumsFor(const AccountTable& table) {
    std::vector<Sum> sums(table.size());
    for (Sum& sum : sums) {
      sum.held.resize(table.resources());
      sum.releasing.resize(table.resources());
    }
    return sums;
  }

  static std::string NameOf(AccountId a) {
    return fmt::format("{} row {}", a.is_tree() ? "tree" : "node", a.row());
  }

  // Whose eviction was refused.
  void CheckDoubtful() {
    std::set<OwnerId> expected;
    const auto look = [&](const auto& table, auto id) {
      if (table.used(id) && table.at(id).spared_count > 0) expected.insert(table.at(id).uid);
    };
    for (uint32_t i = 0; i < state_.pods().size(); ++i) look(state_.pods(), PodId{i});
    for (uint32_t i = 0; i < state_.workloads().size(); ++i)
      look(state_.workloads(), WorkloadId{i});
    if (expected != state_.doubtful())
      found_.push_back("those whose evictions were refused are others");
  }

  // Which volumes the pods of each node use.
  void CheckVolumes() {
    std::vector<std::map<PodVolume, VolumeIndex::Use>> wanted(state_.nodes().size());
    std::map<NameId, std::map<NodeId, uint32_t>> users;
    for (uint32_t i = 0; i < state_.ledger().claims_size(); ++i) {
      const Claim& claim = state_.ledger().claim(ClaimId{i});
      const bool there =
          claim.owner.valid() && !claim.account.is_tree() && claim.state != ClaimState::kReserved;
      const PodId pod = there ? state_.pods().FindUid(claim.owner) : PodId{};
      if (!pod.valid() || !state_.pods().at(pod).pin.volumes.valid()) continue;
      const NodeId n = claim.account.node();
      for (const PodVolume& volume :
           state_.vocabulary().volume_lists.View(state_.pods().at(pod).pin.volumes)) {
        const PodVolume key = VolumeIndex::KeyOf(volume);
        VolumeIndex::Use& use = wanted[n.value][key];
        use.volume = key;
        ++(claim.state == ClaimState::kReleasing ? use.releasing : use.held);
        if (IsClaim(volume.kind)) ++users[volume.name][n];
      }
    }
    for (uint32_t row = 0; row < wanted.size(); ++row) {
      const auto uses = state_.ledger().volume_uses().On(NodeId{row});
      if (!std::ranges::equal(uses, std::views::values(wanted[row])))
        found_.push_back(fmt::format("node row {}: other volumes are in use", row));
    }
    for (const auto& [claim, nodes] : users) {
      if (state_.ledger().volume_uses().UsersOf(claim) != nodes)
        found_.push_back(fmt::format("claim {} is used elsewhere", state_.NameOf(claim)));
    }
  }

  // Of each constraint of the class: of what domain nodes are, and how many pods each domain has.
  void CheckSpread(ClassId class_id) {
    const Vocabulary& v = state_.vocabulary();
    const ClassSpec& spec = v.classes.at(class_id);
    const std::span<const SpreadConstraint> constraints = v.spreads.View(spec.spread);
    for (size_t i = 0; i < constraints.size(); ++i) {
      const SpreadConstraint& c = constraints[i];
      const SpreadIndex::Domains& domains = state_.ledger().spreads().Of(class_id)[i];
      std::map<NameId, int32_t> counts;
      std::map<NameId, uint32_t> nodes;
      std::vector<uint32_t> with_pods;
      for (uint32_t row = 0; row < state_.nodes().size(); ++row) {
        const NodeId n{row};
        const NameId value =
            CountsForSpread(spec, constraints, c, n) ? state_.LabelOf(n, c.key) : NameId{};
        const int32_t pods = c.selector.valid() ? PodsCounted(c.selector, n) : 0;
        if (pods > 0) with_pods.push_back(row);
        if (value.valid()) {
          counts[value] += pods;
          ++nodes[value];
        }
        const uint32_t wanted = value.valid() ? domains.Find(value) : SpreadIndex::kNone;
        if (domains.OfNode(n) != wanted || (value.valid() && wanted == SpreadIndex::kNone))
          found_.push_back(fmt::format("node row {}: of another domain", row));
      }
      int32_t least = counts.empty() ? 0 : std::numeric_limits<int32_t>::max();
      for (const auto& [value, count] : counts) {
        least = std::min(least, count);
        const uint32_t domain = domains.Find(value);
        if (domain != SpreadIndex::kNone && domains.count(domain) != count)
          found_.push_back(fmt::format("domain {}: {} pods, not {}", state_.NameOf(value), count,
                                       domains.count(domain)));
        if (domain != SpreadIndex::kNone && domains.nodes_count(domain) != nodes[value])
          found_.push_back(fmt::format("domain {}: of {} nodes, not {}", state_.NameOf(value),
                                       domains.nodes_count(domain), nodes[value]));
      }
      if (domains.has_shared() != AnyShared(nodes))
        found_.push_back("domains with several nodes are others");
      if (Sorted(state_.ledger().spreads().NodesWithPods(domains)) != with_pods)
        found_.push_back("pods that count stand on other nodes");
      if (domains.Least(0, SpreadIndex::kNone, 0) != least)
        found_.push_back("the least of all domains is another");
    }
  }

  static bool AnyShared(const std::map<NameId, uint32_t>& nodes) {
    return std::ranges::any_of(nodes, [](const auto& of_value) { return of_value.second > 1; });
  }

  static std::vector<uint32_t> Sorted(std::span<const uint32_t> rows) {
    std::vector<uint32_t> sorted(rows.begin(), rows.end());
    std::ranges::sort(sorted);
    return sorted;
  }

  [[nodiscard]] bool CountsForSpread(const ClassSpec& spec,
                                     std::span<const SpreadConstraint> constraints,
                                     const SpreadConstraint& c, NodeId n) const {
    const Vocabulary& v = state_.vocabulary();
    if (!state_.nodes().used(n) || !state_.nodes().present(n)) return false;
    const bool keys = std::ranges::all_of(constraints, [&](const SpreadConstraint& other) {
      const bool asks = other.hard == c.hard && (c.by_default == 0 || other.key == c.key);
      return !asks || state_.LabelOf(n, other.key).valid();
    });
    const auto refuses = [&](const Taint& taint) {
      if (taint.effect == TaintEffect::kPreferNoSchedule) return false;
      const auto tolerations = spec.tolerations.valid() ? v.tolerations.View(spec.tolerations)
                                                        : std::span<const Toleration>();
      return std::ranges::none_of(tolerations,
                                  [&](const Toleration& t) { return Tolerates(t, taint); });
    };
    if (!keys) return false;
    if (c.honors_affinity != 0) {
      const auto names =
          spec.names.valid() ? v.name_lists.View(spec.names) : std::span<const NameId>();
      if (spec.names.valid() && std::ranges::find(names, state_.nodes().name(n)) == names.end())
        return false;
      if (spec.selector.valid() &&
          !v.selectors.Matches(spec.selector, state_.labels().View(state_.nodes().labels(n)),
                               state_.nodes().name(n), v.names))
        return false;
    }
    if (c.honors_taints == 0 || !state_.nodes().taints(n).valid()) return true;
    return std::ranges::none_of(v.taints.View(state_.nodes().taints(n)), refuses);
  }

  // Pods that have the node, and are not being deleted.
  [[nodiscard]] int32_t PodsCounted(PodSelectorId id, NodeId n) const {
    const PodSelector selector = ParsePodSelector(state_.vocabulary().pod_selectors.View(id));
    if (selector.requirements.empty()) return 0;
    int32_t count = 0;
    for (ClaimId at = state_.ledger().nodes().first_claim(n.value); at.valid();) {
      const Claim& claim = state_.ledger().claim(at);
      at = claim.next_in_account;
      const PodId pod = state_.pods().FindUid(claim.owner);
      if (!pod.valid() || claim.why == ClaimWhy::kDeleting) continue;
      count += selector.Selects(state_.budgets().LabelsText(state_.pods().at(pod).labels)) ? 1 : 0;
    }
    return count;
  }

  // All of them, or as many as can be within a bound, in turns.
  void CheckAffinities() {
    constexpr uint64_t kClaimsMax = 2'000'000;
    const AffinityIndex& index = state_.ledger().affinities();
    if (index.empty()) return;
    const uint64_t claims = uint64_t{index.pairs_size()} * state_.ledger().claims_size();
    const auto stride = static_cast<uint32_t>(1 + claims / kClaimsMax);
    for (auto i = static_cast<uint32_t>(state_.touches().end() % stride); i < index.pairs_size();
         i += stride)
      CheckAffinity(i);
    for (uint32_t i = 0; i < state_.pods().size(); ++i) {
      const PodId pod{i};
      if (!state_.pods().used(pod)) continue;
      const Pod& row = state_.pods().at(pod);
      if (row.node.valid() || row.terminal) continue;
      const PodSelectorListId list = state_.vocabulary().classes.at(row.class_id).selected_by;
      const auto told = list.valid() ? state_.vocabulary().pod_selector_lists.View(list)
                                     : std::span<const PodSelectorId>();
      for (const uint32_t selector : state_.ledger().matcher().RowsOf(row.labels)) {
        if (!index.PairsOfRow(selector).empty() &&
            !std::ranges::binary_search(told, state_.ledger().matcher().SelectorOf(selector)))
          found_.push_back(
              fmt::format("pod {}: selected by another's affinity, which its class "
                          "does not say",
                          state_.KeyOf(row.key)));
      }
    }
  }

  // Of one selector with one key: how many pods of each domain it selects, and what those that have
  // it in their terms count for.
  void CheckAffinity(uint32_t id) {
    const AffinityIndex& index = state_.ledger().affinities();
    const AffinityIndex::Pair& pair = index.pair(id);
    if (pair.uses == 0) return;
    std::map<NameId, AffinityIndex::Counts> expected;
    std::map<NameId, NodeId> any_of;  // A node of each domain.
    std::map<NameId, uint32_t> nodes;
    for (uint32_t row = 0; row < state_.nodes().size(); ++row) {
      const NodeId n{row};
      const bool there = state_.nodes().used(n) && state_.nodes().present(n);
      const NameId value = there ? state_.LabelOf(n, index.KeyOf(pair)) : NameId{};
      const uint32_t domain = index.DomainOf(pair, n);
      if (value.valid() != (domain != AffinityIndex::kNone)) {
        found_.push_back(fmt::format("node row {}: of another domain for affinity", row));
        continue;
      }
      if (!value.valid()) continue;
      AddAffinities(pair, n, expected[value]);
      ++nodes[value];
      if (index.DomainOf(pair, any_of.try_emplace(value, n).first->second) != domain)
        found_.push_back(fmt::format("node row {}: of another domain for affinity", row));
    }
    for (const auto& [value, n] : any_of) {
      if (index.On(pair, n) != expected[value])
        found_.push_back(fmt::format("domain {}: of {} pods, for affinity, {} against",
                                     state_.NameOf(value), index.On(pair, n).selected,
                                     index.On(pair, n).against));
      if (index.OnlyNodeOf(pair, index.DomainOf(pair, n)) != (nodes[value] == 1 ? n : NodeId{}))
        found_.push_back(fmt::format("domain {}: of {} nodes, for affinity", state_.NameOf(value),
                                     nodes[value]));
    }
    if (index.HasShared(pair) != AnyShared(nodes))
      found_.push_back("affinity: domains with several nodes are others");
    AffinityIndex::Counts total;
    size_t domains = 0;
    for (const auto& [value, counts] : expected) {
      domains += counts == AffinityIndex::Counts{} ? 0 : 1;
      total.selected += counts.selected;
      total.against += counts.against;
      total.wanting += counts.wanting;
      total.weight += counts.weight;
    }
    if (total != pair.total || domains != pair.at.size())
      found_.push_back(fmt::format("affinity: {} domains with {} pods, not {} with {}",
                                   pair.at.size(), pair.total.selected, domains, total.selected));
  }

  void AddAffinities(const AffinityIndex::Pair& pair, NodeId n, AffinityIndex::Counts& out) const {
    const Vocabulary& v = state_.vocabulary();
    const PodSelectorId id = state_.ledger().matcher().SelectorOf(pair.row);
    const PodSelector selector = ParsePodSelector(v.pod_selectors.View(id));
    for (ClaimId at = state_.ledger().nodes().first_claim(n.value); at.valid();) {
      const Claim& claim = state_.ledger().claim(at);
      at = claim.next_in_account;
      const PodId pod = state_.pods().FindUid(claim.owner);
      if (!pod.valid()) continue;
      const std::string_view labels = state_.budgets().LabelsText(state_.pods().at(pod).labels);
      const std::string_view of_namespace =
          state_.ledger().matcher().NamespaceText(NamespaceOfPodLabels(labels));
      out.selected += selector.Selects(labels, of_namespace) ? 1 : 0;
      const AffinityListId terms = v.classes.at(state_.pods().at(pod).class_id).affinity;
      if (!terms.valid()) continue;
      for (const AffinityTerm& term : v.affinities.View(terms)) {
        if (term.selector != id || term.key != state_.ledger().affinities().KeyOf(pair)) continue;
        const auto weight = static_cast<int64_t>(term.weight);
        out.against += term.kind == AffinityKind::kRequiredAnti ? 1 : 0;
        out.wanting += term.kind == AffinityKind::kRequired ? 1 : 0;
        out.weight += term.kind == AffinityKind::kPreferred       ? weight
                      : term.kind == AffinityKind::kPreferredAnti ? -weight
                                                                  : 0;
      }
    }
  }

  // How many nodes have an image, and how large it is at most.
  void CheckImages() {
    std::vector<ImageTable::Image> expected(state_.vocabulary().names.size());
    for (uint32_t row = 0; row < state_.nodes().size(); ++row) {
      const std::vector<NodeImage> images = state_.images().Of(NodeId{row});
      if (!images.empty() && !state_.nodes().present(NodeId{row}))
        found_.push_back(fmt::format("node row {}: has images and is none", row));
      for (const NodeImage& told : images) {
        ImageTable::Image& image = expected[told.name.value];
        image.size = image.nodes_count++ == 0 ? told.size : std::max(image.size, told.size);
      }
    }
    for (uint32_t i = 0; i < expected.size(); ++i) {
      if (state_.images().At(NameId{i}) == expected[i]) continue;
      found_.push_back(fmt::format("image {}: of other than {} bytes on {} nodes",
                                   state_.NameOf(NameId{i}), expected[i].size,
                                   expected[i].nodes_count));
    }
  }

  // Who is a member of which group follows from the pods' rows.
  void CheckMembers() {
    std::map<KeyId, MemberCounts> counts;
    const GroupTable& groups = state_.groups();
    for (uint32_t i = 0; i < state_.pods().size(); ++i) {
      const PodId id{i};
      if (!state_.pods().used(id)) continue;
      const Pod& pod = state_.pods().at(id);
      if (groups.GroupOf(id) != pod.group ||
          (pod.group.valid() && groups.KindOf(id) != MemberKindOf(pod)))
        found_.push_back(fmt::format("pod {}: filed with another group", state_.KeyOf(pod.key)));
      if (pod.group.valid()) ++counts[pod.group].of[static_cast<size_t>(MemberKindOf(pod))];
    }
    for (const auto& [key, expected] : counts) {
      size_t listed = 0;
      groups.ForMembers(key, [&](PodId) { ++listed; });
      size_t all = 0;
      for (const uint32_t count : expected.of) all += count;
      if (groups.CountsOf(key) != expected || listed != all)
        found_.push_back(fmt::format("group {}: its members are miscounted", state_.KeyOf(key)));
    }
  }

  // Whose place was taken has no claim of it, and who took it is of its job, and there.
  void CheckSlots() {
    uint32_t free = 0;
    for (uint32_t i = 0; i < state_.workloads().size(); ++i) {
      const WorkloadId id{i};
      const std::span<const SlotTable::Place> places = state_.slots().PlacesOf(id);
      std::vector<ClaimId> claims;
      for (const SlotTable::Place& place : places) {
        const std::string_view name = state_.NameOf(place.slot.node);
        if (place.pod.valid() && place.claim.valid() && !state_.pods().at(place.pod).terminating)
          found_.push_back(fmt::format("slot on {}: taken, and claimed", name));
        if (place.pod.valid() &&
            (!state_.pods().used(place.pod) ||
             state_.pods().at(place.pod).job != state_.workloads().at(id).job ||
             state_.slots().PlaceOf(place.pod) != &place)) {
          found_.push_back(fmt::format("slot on {}: taken by a pod of another", name));
        }
        if (!place.claim.valid()) continue;
        claims.push_back(place.claim);
        const Claim& claim = state_.ledger().claim(place.claim);
        const Workload& row = state_.workloads().at(id);
        const ClaimState state = row.claimant.valid() ? ClaimState::kReleasing : ClaimState::kHeld;
        if (claim.account != AccountId::OfNode(state_.nodes().Find(place.slot.node)) ||
            claim.state != state || claim.owner != state_.workloads().at(id).uid ||
            claim.devices != place.slot.devices || !IsForSlot(claim, place.slot, id)) {
          found_.push_back(fmt::format("slot on {}: its claim is another", name));
          continue;
        }
        ++free;
        Count(claim, claim.bundle, claim.scoring, nodes_[claim.account.row()]);
      }
      free += CheckPromised(id, claims);
      if (state_.workloads().used(id)) CheckNoOtherClaims(id, claims);
    }
    if (free != state_.slots().free_count()) found_.push_back("free slots are miscounted");
  }

  // What is kept on nodes is what it is promised there. How many there are, which are added.
  uint32_t CheckPromised(WorkloadId id, std::vector<ClaimId>& claims) {
    const std::span<const ClaimId> promised = state_.slots().PromisedOf(id);
    std::span<const Slot> wanted;
    if (state_.workloads().used(id) && ChargedTo(state_.workloads().at(id)).charges.empty())
      wanted = state_.workloads().at(id).promised.slots;
    if (promised.size() != wanted.size()) {
      found_.push_back(fmt::format("workload {}: promised {} places, and {} are kept", id.value,
                                   wanted.size(), promised.size()));
      return 0;
    }
    uint32_t count = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const NodeId node = state_.nodes().Find(wanted[i].node);
      if (!promised[i].valid()) continue;
      const Claim& claim = state_.ledger().claim(promised[i]);
      ++count;
      claims.push_back(promised[i]);
      Count(claim, claim.bundle, claim.scoring, nodes_[claim.account.row()]);
      if (claim.state != ClaimState::kReserved || claim.account != AccountId::OfNode(node) ||
          claim.account_uid != state_.nodes().uid(node) ||
          claim.owner != state_.workloads().at(id).uid || claim.devices != wanted[i].devices)
        found_.push_back(fmt::format("a place promised on {}: its claim is another",
                                     state_.NameOf(wanted[i].node)));
    }
    return count;
  }

  // Of a pod of its set, of the workload's priority.
  [[nodiscard]] bool IsForSlot(const Claim& claim, const Slot& slot, WorkloadId id) const {
    const Workload& row = state_.workloads().at(id);
    if (slot.pod_set >= row.slots.size() || claim.pod_set != slot.pod_set) return false;
    const ClassSpec& spec = state_.vocabulary().classes.at(row.slots[slot.pod_set].class_id);
    return claim.bundle == spec.requests && claim.scoring == spec.scoring &&
           claim.priority == row.priority;
  }

  // A job knows its workloads, by age, and who has a place seeks none.
  void CheckJobs() {
    std::map<OwnerId, std::pair<Instant, std::string_view>> oldest;
    const auto age = [&](WorkloadId id) {
      const Workload& row = state_.workloads().at(id);
      return std::pair(row.status.created, state_.UidOf(row.uid));
    };
    for (uint32_t i = 0; i < state_.workloads().size(); ++i) {
      const WorkloadId id{i};
      if (!state_.workloads().used(id) || !state_.workloads().at(id).job.valid()) continue;
      const auto [at, fresh] = oldest.try_emplace(state_.workloads().at(id).job, age(id));
      if (!fresh) at->second = std::min(at->second, age(id));
    }
    for (const auto& [job, first] : oldest) {
      const auto all = state_.slots().WorkloadsOf(job);
      if (all.empty() || age(all.front()) != first || !std::ranges::is_sorted(all, {}, age))
        found_.push_back(fmt::format("job {}: not its workloads by age", state_.UidOf(job)));
      for (const PodId pod : state_.slots().SeekersOf(job)) {
        if (state_.slots().PlaceOf(pod) != nullptr)
          found_.push_back(fmt::format("pod {}: has a place, and seeks one",
                                       state_.KeyOf(state_.pods().at(pod).key)));
      }
    }
  }

  void CheckNoOtherClaims(WorkloadId id, const std::vector<ClaimId>& claims) {
    for (ClaimId claim = state_.ledger().first_of_owner(state_.workloads().at(id).uid);
         claim.valid(); claim = state_.ledger().claim(claim).next_of_owner) {
      if (state_.ledger().claim(claim).account.is_tree()) continue;
      if (std::ranges::find(claims, claim) == claims.end()) {
        found_.push_back(fmt::format("workload {}: a claim on a node that is no slot",
                                     state_.KeyOf(state_.workloads().at(id).key)));
      }
    }
  }

  void CheckPod(PodId id) {
    const Pod& pod = state_.pods().at(id);
    const std::string_view key = state_.KeyOf(pod.key);
    const std::optional<Expected> expected = ExpectedOf(state_, id);
    const ClaimId claim_id = state_.ledger().NodeClaimOf(pod.uid);
    if (expected.has_value() != claim_id.valid()) {
      found_.push_back(fmt::format("pod {} ({}): {} a claim, stage {}", key, state_.UidOf(pod.uid),
                                   claim_id.valid() ? "should not have" : "lacks",
                                   ToString(StageOf(pod))));
    }
    if (pod.queued != state_.IsQueued(id))
      found_.push_back(fmt::format("pod {}: queued is {}", key, pod.queued));
    if (!claim_id.valid()) return;
    const Claim& claim = state_.ledger().claim(claim_id);
    for (ClaimId other = claim.next_of_owner; other.valid();
         other = state_.ledger().claim(other).next_of_owner) {
      if (!state_.ledger().claim(other).account.is_tree())
        found_.push_back(fmt::format("pod {}: more than one claim", key));
    }
    if (!expected.has_value()) return;
    CheckClaim(key, id, claim, *expected);
    Count(claim, pod.charge, pod.charge_scoring, nodes_[claim.account.row()]);
  }

  void CheckClaim(std::string_view key, PodId id, const Claim& claim, const Expected& expected) {
    const Pod& pod = state_.pods().at(id);
    if (claim.state != expected.state || claim.why != expected.why) {
      found_.push_back(fmt::format("pod {}: claim in state {} because {}, expected {} because {}",
                                   key, static_cast<int>(claim.state), static_cast<int>(claim.why),
                                   static_cast<int>(expected.state),
                                   static_cast<int>(expected.why)));
    }
    if (expected.node.valid() && claim.account != AccountId::OfNode(expected.node)) {
      found_.push_back(fmt::format("pod {}: claim on row {}, expected {}", key, claim.account.row(),
                                   expected.node.value));
    }
    if (claim.state == ClaimState::kReserved &&
        claim.account_uid != state_.nodes().uid(claim.account.node())) {
      found_.push_back(fmt::format("pod {}: promised on another node than the one there", key));
    }
    const bool promise = claim.state == ClaimState::kReserved;
    if (claim.claimant != (promise ? OwnerId{} : state_.ClaimantOf(id)))
      found_.push_back(fmt::format("pod {}: claimed by another than it is evicted for", key));
    if (claim.claimant.valid()) CheckClaimant(key, claim);
    if (claim.bundle != pod.charge)
      found_.push_back(fmt::format("pod {}: claim of other amounts than the pod's", key));
  }

  // Who is evicted is evicted for a promise that stands, on the same node; or for that of a
  // workload, whose places are decided together.
  void CheckClaimant(std::string_view key, const Claim& claim) {
    const WorkloadId workload = state_.workloads().FindUid(claim.claimant);
    if (workload.valid() && !state_.workloads().at(workload).promised.slots.empty()) return;
    const PodId pod = state_.pods().FindUid(claim.claimant);
    const ClaimId promise = pod.valid() ? state_.PromiseOf(pod) : ClaimId{};
    if (promise.valid() && state_.ledger().claim(promise).account == claim.account) return;
    found_.push_back(fmt::format("pod {}: evicted for nobody", key));
  }

  void Count(const Claim& claim, BundleId charge, BundleId scoring, Sum& sum) {
    ++sum.claims_count;
    if (claim.state == ClaimState::kReserved) return;
    auto& amounts = claim.state == ClaimState::kHeld ? sum.held : sum.releasing;
    for (const ResourceAmount& a : state_.vocabulary().bundles.View(charge))
      amounts[a.resource.value] += a.amount * claim.count;
    for (const ResourceAmount& a : state_.vocabulary().bundles.View(scoring)) {
      if (a.resource.value < 2) sum.scored[a.resource.value] += a.amount * claim.count;
    }
    for (uint32_t d = 0; d < kDevicesMax; ++d) {
      if (((claim.devices.mask >> d) & 1) != 0) sum.device_used[d] += claim.devices.milli_each;
    }
    for (const HostPort& port : state_.vocabulary().bundles.Ports(charge)) {
      PortUse& use = sum.ports[port];
      use.port = port;
      ++(claim.state == ClaimState::kHeld ? use.held : use.releasing);
    }
  }

  // What a pod is charged on nodes follows from its row, and what it, its group or a workload is of
  // the tree likewise (AuditQueues).
  void CheckClaims() {
    uint32_t live = 0;
    for (uint32_t i = 0; i < state_.ledger().claims_size(); ++i) {
      const Claim& claim = state_.ledger().claim(ClaimId{i});
      if (!claim.owner.valid()) continue;
      ++live;
      if (claim.account.is_tree())
        Count(claim, claim.bundle, claim.scoring, tree_[claim.account.row()]);
      if (!state_.pods().FindUid(claim.owner).valid() &&
          !state_.groups().FindUid(claim.owner).valid() &&
          !state_.workloads().FindUid(claim.owner).valid()) {
        found_.push_back(fmt::format("claim {} on {}: its owner {} is gone", i,
                                     NameOf(claim.account), state_.UidOf(claim.owner)));
      }
    }
    if (live != state_.ledger().claims_live())
      found_.push_back("claims: free rows and live ones don't add up");
  }

  void CheckBudgets() {
    const BudgetTable& budgets = state_.budgets();
    for (uint32_t i = 0; i < state_.pods().size(); ++i) {
      if (!state_.pods().used(PodId{i})) continue;
      const Pod& pod = state_.pods().at(PodId{i});
      std::vector<BudgetId> covering;
      for (const BudgetId id : budgets.by_key()) {
        if (budgets.Covers(id, budgets.LabelsText(pod.labels))) covering.push_back(id);
      }
      std::ranges::sort(covering);
      if (!std::ranges::equal(covering, budgets.Covering(pod.labels))) {
        found_.push_back(fmt::format("pod {}: covered by {} budgets, recomputed {}",
                                     state_.KeyOf(pod.key), budgets.Covering(pod.labels).size(),
                                     covering.size()));
      }
    }
    for (const BudgetId id : budgets.by_key()) {
      for (const PodId pod : budgets.at(id).charged) {
        const std::string_view key = budgets.at(id).facts.key;
        if (!state_.pods().used(pod)) {
          found_.push_back(fmt::format("budget {}: a pod that is gone is charged to it", key));
          continue;
        }
        const Pod& row = state_.pods().at(pod);
        if (row.evicted_for.valid() || row.terminating || row.terminal) continue;
        found_.push_back(fmt::format("budget {}: {} is charged to it and not evicted", key,
                                     state_.KeyOf(row.key)));
      }
    }
  }

  void CheckAmount(AccountId a, const char* what, ResourceId r, Amount kept, Amount recomputed) {
    if (kept == recomputed) return;
    found_.push_back(fmt::format("{}: {} {} is {}, recomputed {}", NameOf(a), what,
                                 state_.vocabulary().resources.Name(r), kept, recomputed));
  }

  void CheckAccount(AccountId a, const Sum& sum) {
    const AccountTable& table = state_.ledger().table(a);
    const uint32_t row = a.row();
    for (uint32_t i = 0; i < sum.held.size(); ++i) {
      const ResourceId r{i};
      const Amount capacity = table.capacity(r, row);
      CheckAmount(a, "held", r, table.held(r, row), sum.held[i]);
      CheckAmount(a, "releasing", r, table.releasing(r, row), sum.releasing[i]);
      CheckAmount(a, "free", r, table.free(r, row),
                  capacity == kUnlimited ? kUnlimited : capacity - sum.held[i] - sum.releasing[i]);
    }
    CheckAmount(a, "scored", kCpu, table.scored(kCpu, row), sum.scored[0]);
    CheckAmount(a, "scored", kMemory, table.scored(kMemory, row), sum.scored[1]);
    if (table.claims_count(row) != sum.claims_count) {
      found_.push_back(fmt::format("{}: {} claims, recomputed {}", NameOf(a),
                                   table.claims_count(row), sum.claims_count));
    }
    CheckLists(a);
  }

  void CheckNode(NodeId n) {
    const Sum& sum = nodes_[n.value];
    for (uint32_t d = 0; d < kDevicesMax; ++d) {
      const int32_t offered = d < state_.nodes().devices_count(n) ? kDeviceMilli : 0;
      const int32_t free = state_.ledger().nodes().device_free(n.value, d);
      if (free != offered - sum.device_used[d]) {
        found_.push_back(fmt::format("node row {}: device {} has {} free, recomputed {}", n.value,
                                     d, free, offered - sum.device_used[d]));
      }
    }
    if (!std::ranges::equal(state_.ledger().nodes().ports(n.value), sum.ports | std::views::values))
      found_.push_back(fmt::format("node row {}: its ports in use are others", n.value));
    if (state_.nodes().used(n) && !state_.nodes().present(n) && sum.claims_count == 0) {
      found_.push_back(fmt::format("node row {}: a ghost without claims", n.value));
    }
  }

  void CheckLists(AccountId a) {
    const AccountTable& table = state_.ledger().table(a);
    uint32_t count = 0;
    for (const bool reserved : {false, true}) {
      ClaimId previous;
      for (ClaimId id = reserved ? table.first_reserved(a.row()) : table.first_claim(a.row());
           id.valid();) {
        const Claim& claim = state_.ledger().claim(id);
        if (claim.account != a || (claim.state == ClaimState::kReserved) != reserved ||
            claim.previous_in_account != previous || ++count > state_.ledger().claims_size()) {
          found_.push_back(
              fmt::format("{}: its list of claims is damaged at {}", NameOf(a), id.value));
          return;
        }
        previous = id;
        id = claim.next_in_account;
      }
    }
    if (count != table.claims_count(a.row())) {
      found_.push_back(
          fmt::format("{}: {} claims listed of {}", NameOf(a), count, table.claims_count(a.row())));
    }
  }

  const State& state_;
  std::vector<Sum> nodes_;
  std::vector<Sum> tree_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> Audit(const State& state) { return Auditor(state).Run(); }

}  // namespace berth::model
