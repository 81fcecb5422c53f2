#include "cycle/topology.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"

namespace berth::cycle {

using model::Amount;
using model::ClassId;
using model::NameId;
using model::NodeId;
using model::NodesLeftOut;
using model::ReasonKind;
using model::ResourceAmount;
using model::ResourceId;
using model::TopologyRefusal;

namespace {

std::optional<uint32_t> LevelOf(const model::Topology& topology, NameId name) {
  const auto at = std::ranges::find(topology.levels, name);
  if (at == topology.levels.end()) return std::nullopt;
  return static_cast<uint32_t>(at - topology.levels.begin());
}

const model::Label* Find(std::span<const model::Label> sorted, NameId key) {
  const auto at = std::ranges::lower_bound(sorted, key, {}, &model::Label::key);
  return at != sorted.end() && at->key == key ? &*at : nullptr;
}

// The nodes and, of each, its values of the levels.
std::vector<NameId> PathsOf(const model::State& state, const model::Flavor& flavor,
                            const model::Topology& topology, Hostnames hostnames,
                            std::vector<NodeId>& nodes) {
  std::vector<NameId> paths;
  const bool by_name = hostnames == Hostnames::kNames && topology.by_node;
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    const NodeId n{row};
    if (!state.nodes().used(n) || !state.nodes().present(n)) continue;
    if (!state.nodes().ready(n) || state.nodes().unschedulable(n)) continue;
    const std::span<const model::Label> labels = state.labels().View(state.nodes().labels(n));
    const auto lacks = [&](const model::Label& label) {
      const model::Label* own = Find(labels, label.key);
      return own == nullptr || own->value != label.value;
    };
    if (std::ranges::any_of(flavor.labels, lacks)) continue;
    const auto has = [&](NameId level) { return Find(labels, level) != nullptr; };
    if (!std::ranges::all_of(topology.levels, has)) continue;
    if (by_name && Find(labels, topology.levels.back())->value != state.nodes().name(n)) continue;
    nodes.push_back(n);
    for (const NameId level : topology.levels) paths.push_back(Find(labels, level)->value);
  }
  return paths;
}

topo::Tree TreeOf(const model::State& state, const model::Flavor& flavor,
                  const model::Topology& topology, Hostnames hostnames,
                  std::vector<NodeId>& nodes) {
  const std::vector<NameId> paths = PathsOf(state, flavor, topology, hostnames, nodes);
  return topo::Tree(static_cast<uint32_t>(topology.levels.size()), paths,
                    [&](NameId name) { return state.NameOf(name); });
}

template <typename List, typename Same>
void NoteIn(List& list, const typename List::value_type& fresh, Same same) {
  const auto at = std::ranges::find_if(list, same);
  ++(at == list.end() ? list.emplace_back(fresh) : *at).nodes;
}

TopologyRefusal::Kind KindOf(topo::Misfit::Kind kind) {
  switch (kind) {
    case topo::Misfit::Kind::kNoDomains:
      return TopologyRefusal::Kind::kNoDomains;
    case topo::Misfit::Kind::kPods:
      return TopologyRefusal::Kind::kFewPods;
    case topo::Misfit::Kind::kSlices:
      return TopologyRefusal::Kind::kFewSlices;
    case topo::Misfit::Kind::kLayers:
      break;
  }
  return TopologyRefusal::Kind::kFewLayers;
}

uint32_t CountOf(std::span<const TopologyShare> shares) {
  uint32_t count = 0;
  for (const TopologyShare& share : shares) count += share.count;
  return count;
}

// So many of the last pods, which are of one slice.
void TakeOff(std::vector<topo::Share>& pods, uint32_t excess) {
  while (excess > 0) {
    const uint32_t off = std::min(excess, pods.back().count);
    excess -= off;
    pods.back().count -= off;
    if (pods.back().count == 0) pods.pop_back();
  }
}

// The leader is placed beside the workers.
bool IsLeader(const FlavorTopology::PodSet& a, const FlavorTopology::PodSet& b) {
  return a.count <= b.count;
}

}  // namespace

std::vector<std::vector<size_t>> TogetherOf(std::span<const model::TopologyWish* const> wishes) {
  std::vector<std::vector<size_t>> together;
  for (size_t i = 0; i < wishes.size(); ++i) {
    const NameId group = wishes[i]->group;
    const auto at = std::ranges::find_if(together, [&](const std::vector<size_t>& sets) {
      return group.valid() && wishes[sets.front()]->group == group;
    });
    (at == together.end() ? together.emplace_back() : *at).push_back(i);
  }
  return together;
}

FlavorTopology::FlavorTopology(const model::State& state, const place::Evaluator& evaluator,
                               const model::Flavor& flavor, Hostnames hostnames)
    : state_(state),
      evaluator_(evaluator),
      topology_(*state.flavors().FindTopology(flavor.topology)),
      tree_(TreeOf(state, flavor, topology_, hostnames, nodes_)),
      taken_(tree_.size(tree_.lowest())) {}

void FlavorTopology::Forget(View view) {
  view_ = view;
  for (std::vector<Amount>& taken : taken_) taken.clear();
}

// Only that level is told then: a node's name says the others.
bool FlavorTopology::by_node() const { return topology_.by_node; }

std::vector<NameId> FlavorTopology::levels() const {
  return by_node() ? std::vector{topology_.levels.back()} : topology_.levels;
}

std::span<const NodeId> FlavorTopology::NodesOf(const TopologyShare& share) {
  if (nodes_of_.empty()) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const topo::DomainId leaf{tree_.lowest(), tree_.leaf_of(i)};
      nodes_of_[by_node() ? std::vector{tree_.value(leaf)} : tree_.PathOf(leaf)].push_back(
          nodes_[i]);
    }
    for (auto& [values, nodes] : nodes_of_) {
      std::ranges::sort(nodes, {}, [&](NodeId n) { return state_.NameOf(state_.nodes().name(n)); });
    }
  }
  const auto at = nodes_of_.find(share.values);
  if (at == nodes_of_.end()) return {};
  return at->second;
}

// ---- What is asked for -------------------------------------------------------------------------

std::expected<topo::Request, TopologyRefusal> FlavorTopology::RequestOf(
    const PodSet& set, std::vector<topo::Slice>& slices) const {
  using Kind = TopologyRefusal::Kind;
  const auto refused = [&](Kind kind, NameId level, NameId within = {}) {
    TopologyRefusal refusal;
    refusal.kind = kind;
    refusal.topology = topology_.name;
    refusal.level = level;
    refusal.within = within;
    return std::unexpected(refusal);
  };
  const model::TopologyWish& wish = *set.wish;
  topo::Request request{.reach = topo::Reach::kUnconstrained,
                        .level = tree_.lowest(),
                        .count = set.count,
                        .slices = {}};
  if (wish.required.valid() || wish.preferred.valid()) {
    const NameId name = wish.required.valid() ? wish.required : wish.preferred;
    const std::optional<uint32_t> level = LevelOf(topology_, name);
    if (!level) return refused(Kind::kNoLevel, name);
    request.reach = wish.required.valid() ? topo::Reach::kRequired : topo::Reach::kPreferred;
    request.level = *level;
  } else if (!wish.unconstrained && !wish.slices.empty()) {
    request.level = 0;
  }
  for (const model::SliceWish& slice : wish.slices) {
    const std::optional<uint32_t> level = LevelOf(topology_, slice.level);
    if (!level) return refused(Kind::kNoSliceLevel, slice.level);
    const uint32_t above = slices.empty() ? request.level : slices.back().level + 1;
    if (*level < above) {
      // Nothing is below slices of the lowest level.
      const uint32_t named = std::min(above, tree_.lowest());
      return refused(Kind::kSliceAbove, slice.level, topology_.levels[named]);
    }
    slices.push_back({.level = *level, .size = slice.size});
  }
  request.slices = slices;
  return request;
}

// Each layer divides the slices of the one before.
std::optional<TopologyRefusal> FlavorTopology::UnevenSlices(const topo::Request& request) const {
  uint32_t whole = request.count;
  for (const topo::Slice& slice : request.slices) {
    if (whole % slice.size != 0) {
      TopologyRefusal refusal;
      refusal.kind = TopologyRefusal::Kind::kUneven;
      refusal.topology = topology_.name;
      refusal.level = topology_.levels[slice.level];
      refusal.fills = {{.level = refusal.level, .fits = slice.size, .wanted = whole}};
      return refusal;
    }
    whole = slice.size;
  }
  return std::nullopt;
}

// ---- What there is -----------------------------------------------------------------------------

// By what does not change as pods are placed.
bool FlavorTopology::MayHold(const PodSet& set, NodeId node, const model::Viewer& viewer,
                             NodesLeftOut& left_out) const {
  const model::Verdict verdict = evaluator_.FilterAlone(state_, set.class_id, node, &viewer);
  switch (verdict.kind) {
    case ReasonKind::kNone:
    case ReasonKind::kPorts:
    case ReasonKind::kInsufficient:
      return true;
    case ReasonKind::kTaint: {
      const model::Taint& taint =
          state_.vocabulary().taints.View(state_.nodes().taints(node))[verdict.detail];
      NoteIn(left_out.by_taint, {.taint = taint},
             [&](const NodesLeftOut::ByTaint& by) { return by.taint == taint; });
      return false;
    }
    case ReasonKind::kAddedAffinity:
    case ReasonKind::kAffinity:
    case ReasonKind::kAffinityConflict:
    case ReasonKind::kNotNamed:
      ++left_out.by_selector;
      return false;
    default:
      ++left_out.by_others;
      return false;
  }
}

Amount FlavorTopology::RoomOn(NodeId node, ResourceId resource, const model::Viewer& viewer) const {
  const model::AccountId account = model::AccountId::OfNode(node);
  const model::BundleTable& bundles = state_.vocabulary().bundles;
  switch (view_) {
    case View::kNow:
      return state_.ledger().Now(account, resource, viewer, bundles);
    case View::kFuture:
      return state_.ledger().Future(account, resource, viewer, bundles);
    case View::kEmpty:
      break;
  }
  return state_.ledger().nodes().free(resource, node.value);
}

bool FlavorTopology::IsOfWorkload(model::OwnerId owner) const {
  if (state_.workloads().FindUid(owner).valid()) return true;
  const model::PodId pod = state_.pods().FindUid(owner);
  return pod.valid() && state_.WorkloadOf(pod).valid();
}

void FlavorTopology::AddWorkloads(NodeId node, const model::Viewer& viewer,
                                  std::vector<Amount>& room) const {
  const model::AccountTable& nodes = state_.ledger().nodes();
  const auto add = [&](const model::Claim& claim, Amount sign) {
    for (const ResourceAmount& a : state_.vocabulary().bundles.View(claim.bundle)) {
      if (a.resource.value < room.size()) room[a.resource.value] += sign * a.amount;
    }
  };
  for (model::ClaimId id = nodes.first_claim(node.value); id.valid();) {
    const model::Claim& claim = state_.ledger().claim(id);
    if (IsOfWorkload(claim.owner)) add(claim, 1);
    id = claim.next_in_account;
  }
  // Room that others are promised.
  for (model::ClaimId id = nodes.first_reserved(node.value); id.valid();) {
    const model::Claim& claim = state_.ledger().claim(id);
    if (claim.priority >= viewer.priority && !IsOfWorkload(claim.owner)) add(claim, -1);
    id = claim.next_in_account;
  }
}

std::span<const model::HostPort> FlavorTopology::PortsOf(const PodSet& set) const {
  return state_.vocabulary().bundles.Ports(state_.vocabulary().classes.at(set.class_id).requests);
}

// Whether they are nobody else's there, in the view.
bool FlavorTopology::PortsOn(NodeId node, std::span<const model::HostPort> ports,
                             const model::Viewer& viewer) const {
  using enum model::Ledger::PortView;
  if (ports.empty()) return true;
  const model::BundleTable& bundles = state_.vocabulary().bundles;
  if (view_ != View::kEmpty) {
    return state_.ledger().PortConflicts(view_ == View::kNow ? kNow : kFuture, node, ports, &viewer,
                                         bundles) == 0;
  }
  const model::AccountTable& nodes = state_.ledger().nodes();
  const auto free = [&](model::ClaimId first, int32_t least) {
    for (model::ClaimId id = first; id.valid(); id = state_.ledger().claim(id).next_in_account) {
      const model::Claim& claim = state_.ledger().claim(id);
      if (claim.priority < least || IsOfWorkload(claim.owner)) continue;
      if (model::CountConflicts(ports, bundles.Ports(claim.bundle)) != 0) return false;
    }
    return true;
  };
  return free(nodes.first_claim(node.value), std::numeric_limits<int32_t>::min()) &&
         free(nodes.first_reserved(node.value), viewer.priority);
}

// `least`: the resource that allows the fewest.
uint32_t FlavorTopology::CountIn(const std::vector<Amount>& left, ClassId class_id,
                                 ResourceId* least) const {
  Amount count = limits::kPodsMax;
  const model::BundleId requests = state_.vocabulary().classes.at(class_id).requests;
  for (const ResourceAmount& a : state_.vocabulary().bundles.View(requests)) {
    if (a.amount <= 0) continue;
    const Amount has = a.resource.value < left.size() ? left[a.resource.value] : 0;
    const Amount fits = std::max<Amount>(has, 0) / a.amount;
    const bool fewer = fits < count || (fits == count && least != nullptr && least->valid() &&
                                        state_.vocabulary().resources.Name(a.resource) <
                                            state_.vocabulary().resources.Name(*least));
    if (fewer && least != nullptr) *least = a.resource;
    count = std::min(count, fits);
  }
  return static_cast<uint32_t>(count);
}

FlavorTopology::Look FlavorTopology::LookAt(const PodSet& set, const PodSet* leader,
                                            const model::Viewer& viewer,
                                            std::optional<topo::DomainId> within,
                                            std::span<const NameId> without) const {
  const model::BundleTable& bundles = state_.vocabulary().bundles;
  const uint32_t leaves = tree_.size(tree_.lowest());
  const uint32_t resources = state_.ledger().nodes().resources();
  Look look{.rooms = std::vector<topo::Room>(leaves), .left_out = {}};
  look.left_out.all = leaves;
  std::vector<std::vector<Amount>> left(leaves);
  // Pods that take ports of their nodes stand on one each.
  const std::span<const model::HostPort> ports = PortsOf(set);
  const bool leader_in_way =
      leader != nullptr && model::CountConflicts(ports, PortsOf(*leader)) != 0;
  std::vector<uint32_t> hosts(leaves);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const topo::DomainId leaf{tree_.lowest(), tree_.leaf_of(i)};
    if (within && tree_.Above(leaf, within->level) != *within) {
      ++look.left_out.by_domain;
      continue;
    }
    if (std::ranges::find(without, tree_.value(leaf)) != without.end()) {
      ++look.left_out.by_others;
      continue;
    }
    if (!MayHold(set, nodes_[i], viewer, look.left_out)) continue;
    if (!PortsOn(nodes_[i], ports, viewer)) {
      ++look.left_out.by_others;
      continue;
    }
    ++hosts[leaf.index];
    std::vector<Amount>& sum = left[leaf.index];
    sum.resize(resources);
    for (uint32_t r = 0; r < resources; ++r) sum[r] += RoomOn(nodes_[i], ResourceId{r}, viewer);
    if (view_ == View::kEmpty) AddWorkloads(nodes_[i], viewer, sum);
  }
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    if (left[leaf].empty()) continue;
    for (uint32_t r = 0; r < taken_[leaf].size(); ++r) left[leaf][r] -= taken_[leaf][r];
    ResourceId least;
    topo::Room& room = look.rooms[leaf];
    const uint32_t most = ports.empty() ? limits::kPodsMax : hosts[leaf];
    room.pods = std::min(CountIn(left[leaf], set.class_id, &least), most);
    if (room.pods == 0) {
      NoteIn(look.left_out.by_resource, {.resource = least},
             [&](const NodesLeftOut::ByResource& by) { return by.resource == least; });
    }
    if (leader == nullptr || CountIn(left[leaf], leader->class_id, nullptr) == 0) continue;
    room.leader = true;
    const model::BundleId requests = state_.vocabulary().classes.at(leader->class_id).requests;
    for (const ResourceAmount& a : bundles.View(requests)) left[leaf][a.resource.value] -= a.amount;
    room.beside_leader =
        std::min(CountIn(left[leaf], set.class_id, nullptr), most - (leader_in_way ? 1 : 0));
  }
  return look;
}

void FlavorTopology::Charge(ClassId class_id, uint32_t leaf, uint32_t count) {
  std::vector<Amount>& taken = taken_[leaf];
  taken.resize(state_.ledger().nodes().resources());
  const model::BundleId requests = state_.vocabulary().classes.at(class_id).requests;
  for (const ResourceAmount& a : state_.vocabulary().bundles.View(requests)) {
    if (a.resource.value < taken.size()) taken[a.resource.value] += a.amount * count;
  }
}

std::vector<TopologyShare> FlavorTopology::SharesOf(std::span<const topo::Share> pods) const {
  std::vector<TopologyShare> shares;
  for (const topo::Share& share : pods) {
    const topo::DomainId leaf{tree_.lowest(), share.leaf};
    shares.push_back({.values = by_node() ? std::vector{tree_.value(leaf)} : tree_.PathOf(leaf),
                      .count = share.count});
  }
  return shares;
}

TopologyRefusal FlavorTopology::RefusalOf(const topo::Misfit& misfit, Look look,
                                          NameId level) const {
  TopologyRefusal refusal{.kind = KindOf(misfit.kind),
                          .topology = topology_.name,
                          .level = level,
                          .within = {},
                          .fills = {},
                          .left_out = std::move(look.left_out)};
  for (const topo::Fill& fill : misfit.fills) {
    refusal.fills.push_back(
        {.level = topology_.levels[fill.level], .fits = fill.fits, .wanted = fill.wanted});
  }
  return refusal;
}

// ---- Placing -----------------------------------------------------------------------------------

FlavorTopology::Places FlavorTopology::Place(std::span<const PodSet> sets,
                                             const model::Viewer& viewer) {
  CHECK(sets.size() == 1 || sets.size() == 2);
  const size_t lead = sets.size() == 2 && !IsLeader(sets[0], sets[1]) ? 1 : 0;
  const PodSet* leader = sets.size() == 2 ? &sets[lead] : nullptr;
  const PodSet& workers = leader == nullptr ? sets[0] : sets[1 - lead];
  std::vector<topo::Slice> slices;
  std::expected<topo::Request, TopologyRefusal> request = RequestOf(workers, slices);
  if (!request) return std::unexpected(request.error());
  request->leader = leader != nullptr;
  // Pods that make no whole slice are one of their own, for which there has to be as much room.
  const uint32_t size = slices.empty() ? 1 : static_cast<uint32_t>(slices.front().size);
  const uint32_t excess = (size - workers.count % size) % size;
  request->count += excess;
  if (const auto uneven = UnevenSlices(*request)) return std::unexpected(*uneven);
  Look look = LookAt(workers, leader, viewer, std::nullopt);
  std::expected<topo::Placement, topo::Misfit> placement = topo::Place(tree_, look.rooms, *request);
  if (!placement) {
    return std::unexpected(
        RefusalOf(placement.error(), std::move(look), topology_.levels[request->level]));
  }
  TakeOff(placement->pods, excess);
  std::vector<std::vector<TopologyShare>> places(sets.size());
  for (const topo::Share& share : placement->pods)
    Charge(workers.class_id, share.leaf, share.count);
  places[leader == nullptr ? 0 : 1 - lead] = SharesOf(placement->pods);
  if (leader == nullptr) return places;
  Charge(leader->class_id, *placement->leader, 1);
  places[lead] = SharesOf(std::vector<topo::Share>{{.leaf = *placement->leader, .count = 1}});
  return places;
}

std::optional<uint32_t> FlavorTopology::LeafOf(std::span<const NameId> values) const {
  for (uint32_t leaf = 0; leaf < tree_.size(tree_.lowest()); ++leaf) {
    const topo::DomainId d{tree_.lowest(), leaf};
    if (values.size() == 1 ? tree_.value(d) == values[0]
                           : std::ranges::equal(tree_.PathOf(d), values)) {
      return leaf;
    }
  }
  return std::nullopt;
}

// Domains of the slice's level that pods are missing in, by those that stay: all but the one that
// has the pods of `count` that make no whole slice.
std::vector<topo::DomainId> FlavorTopology::BrokenBy(const topo::Slice& slice, uint32_t count,
                                                     std::span<const topo::Share> rest) const {
  std::map<topo::DomainId, uint32_t> pods;
  for (const topo::Share& share : rest)
    pods[tree_.Above({tree_.lowest(), share.leaf}, slice.level)] += share.count;
  std::vector<topo::DomainId> broken;
  bool has_last = count % slice.size == 0;
  for (const auto& [domain, stay] : pods) {
    const bool is_last = !has_last && stay % slice.size == count % slice.size;
    has_last = has_last || is_last;
    if (!is_last && stay % slice.size != 0) broken.push_back(domain);
  }
  return broken;
}

// Where the pods that stay ask the others to be; nothing: anywhere.
std::expected<std::optional<topo::DomainId>, topo::Misfit> FlavorTopology::DomainForRest(
    const topo::Request& request, uint32_t count, std::span<const topo::Share> rest) const {
  for (size_t layer = request.slices.size(); layer-- > 0;) {
    const topo::Slice& slice = request.slices[layer];
    const std::vector<topo::DomainId> broken = BrokenBy(slice, count, rest);
    if (broken.size() == 1) return broken.front();
    if (broken.empty()) continue;
    // All go to one domain, which would leave the other slices in pieces.
    return std::unexpected(topo::Misfit{
        .kind = topo::Misfit::Kind::kSlices,
        .fills = {
            {.level = slice.level, .fits = 1, .wanted = static_cast<int64_t>(broken.size())}}});
  }
  if (request.reach != topo::Reach::kRequired || rest.empty()) return std::nullopt;
  return tree_.Above({tree_.lowest(), rest.front().leaf}, request.level);
}

FlavorTopology::Places FlavorTopology::Replace(const PodSet& set,
                                               std::span<const TopologyShare> stands,
                                               std::span<const NameId> failed,
                                               const model::Viewer& viewer) {
  std::vector<topo::Slice> slices;
  std::expected<topo::Request, TopologyRefusal> request = RequestOf(set, slices);
  if (!request) return std::unexpected(request.error());
  std::vector<topo::Share> pods;
  request->count = 0;
  for (const TopologyShare& share : stands) {
    if (std::ranges::find(failed, share.values.back()) != failed.end()) {
      request->count += share.count;
    } else if (const std::optional<uint32_t> leaf = LeafOf(share.values)) {
      pods.push_back({.leaf = *leaf, .count = share.count});
    } else {
      return std::unexpected(TopologyRefusal{.kind = TopologyRefusal::Kind::kStale,
                                             .topology = topology_.name,
                                             .level = share.values.back(),
                                             .within = {},
                                             .fills = {},
                                             .left_out = {}});
    }
  }
  const std::expected<std::optional<topo::DomainId>, topo::Misfit> domain =
      DomainForRest(*request, CountOf(stands), pods);
  if (!domain)
    return std::unexpected(RefusalOf(domain.error(), {}, topology_.levels[request->level]));
  const std::optional<topo::DomainId>& within = *domain;
  if (within) {
    request->reach = topo::Reach::kRequired;
    request->level = within->level;
  }
  // Of slices that stand elsewhere nothing is missing.
  while (!request->slices.empty() && (request->slices.front().level < request->level ||
                                      request->count % request->slices.front().size != 0)) {
    request->slices = request->slices.subspan(1);
  }
  Look look = LookAt(set, nullptr, viewer, within, failed);
  std::expected<topo::Placement, topo::Misfit> placement = topo::Place(tree_, look.rooms, *request);
  if (!placement) {
    return std::unexpected(
        RefusalOf(placement.error(), std::move(look), topology_.levels[request->level]));
  }
  for (const topo::Share& share : placement->pods) {
    Charge(set.class_id, share.leaf, share.count);
    const auto at = std::ranges::find(pods, share.leaf, &topo::Share::leaf);
    if (at == pods.end()) {
      pods.push_back(share);
    } else {
      at->count += share.count;
    }
  }
  std::ranges::sort(pods, {}, &topo::Share::leaf);
  return std::vector<std::vector<TopologyShare>>{SharesOf(pods)};
}

}  // namespace berth::cycle
