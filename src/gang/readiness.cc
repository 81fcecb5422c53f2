#include "gang/readiness.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace berth::gang {

using model::Amount;
using model::GroupId;
using model::MemberKind;
using model::NameId;
using model::NodeId;
using model::PodId;
using model::State;

namespace {

// Upstream counts roles only of a group that needs as many in all.
bool CountsRoles(const model::Group& group) {
  int64_t needed = 0;
  for (const model::RoleMinimum& m : group.min_of_roles) needed += m.count;
  return needed <= group.min_member;
}

// What nodes would hold of such pods if they were empty; no more than `enough` is looked for.
Amount PlacesOnAll(const State& state, const Alike& pod, Amount enough, const EmptyPlaces& places) {
  Amount found = 0;
  for (uint32_t row = 0; row < state.nodes().size() && found < enough; ++row) {
    const NodeId n{row};
    if (state.nodes().used(n) && state.nodes().present(n))
      found += std::min(enough, places(pod, n));
  }
  return std::min(found, enough);
}

// Members that ask for the same.
struct Asking {
  Amount amount = 0;
  model::NameId role;
  uint32_t count = 0;
};

// Takes so many of those of the role, or of any, that ask for least. What they ask for.
Amount TakeLeast(std::vector<Asking>& asking, model::NameId role, uint32_t needed) {
  Amount sum = 0;
  for (Asking& one : asking) {
    if (role.valid() && one.role != role) continue;
    const uint32_t taken = std::min(one.count, needed);
    sum += taken * one.amount;
    one.count -= taken;
    needed -= taken;
  }
  return sum;
}

}  // namespace

Need NeedOf(const State& state, GroupId g) {
  const model::GroupTable& groups = state.groups();
  const model::Group& group = groups.at(g);
  const model::MemberCounts counts = groups.CountsOf(group.key);
  Need need{.waiting = counts[MemberKind::kWaiting]};
  if (group.phase == model::GroupPhase::kCompleted && need.waiting == 0) return need;
  const auto needed = static_cast<uint32_t>(group.min_member);
  need.needed = needed > counts.ready() ? needed - counts.ready() : 0;
  if (group.min_of_roles.empty() || !CountsRoles(group)) return need;
  for (const model::RoleMinimum& m : group.min_of_roles)
    need.roles.push_back({.role = m.role, .needed = static_cast<uint32_t>(m.count)});
  groups.ForMembers(group.key, [&](PodId pod) {
    const auto role = std::ranges::find(need.roles, state.pods().at(pod).role, &RoleNeed::role);
    if (role == need.roles.end()) return;
    const MemberKind kind = groups.KindOf(pod);
    if (kind == MemberKind::kWaiting) ++role->waiting;
    if (model::IsReady(kind)) role->needed -= std::min(role->needed, 1u);
  });
  uint32_t of_roles = 0;
  for (const RoleNeed& role : need.roles) of_roles += role.needed;
  need.needed = std::max(need.needed, of_roles);
  return need;
}

std::optional<RoleNeed> Lacks(const Need& need) {
  for (const RoleNeed& role : need.roles) {
    if (role.waiting < role.needed) return role;
  }
  if (need.waiting >= need.needed) return std::nullopt;
  return RoleNeed{.role = {}, .needed = need.needed, .waiting = need.waiting};
}

int32_t PriorityOf(const State& state, GroupId g) {
  const model::Group& group = state.groups().at(g);
  if (group.priority) return *group.priority;
  int32_t highest = std::numeric_limits<int32_t>::min();
  state.groups().ForMembers(group.key, [&](PodId pod) {
    if (state.groups().KindOf(pod) == MemberKind::kWaiting)
      highest = std::max(highest, state.pods().at(pod).priority);
  });
  return highest;
}

std::vector<PodId> WaitingMembers(const State& state, GroupId g) {
  const model::GroupTable& groups = state.groups();
  std::vector<PodId> members;
  groups.ForMembers(groups.at(g).key, [&](PodId pod) {
    if (groups.KindOf(pod) == MemberKind::kWaiting &&
        state.pods().at(pod).not_before == Instant{}) {
      members.push_back(pod);
    }
  });
  return members;
}

uint32_t PromisedOf(const State& state, GroupId g) {
  const model::GroupTable& groups = state.groups();
  uint32_t count = 0;
  groups.ForMembers(groups.at(g).key, [&](PodId pod) {
    if (groups.KindOf(pod) == MemberKind::kWaiting && state.PromiseOf(pod).valid()) ++count;
  });
  return count;
}

Failing FailingOf(const State& state, GroupId g) {
  const model::GroupTable& groups = state.groups();
  Failing failing;
  groups.ForMembers(groups.at(g).key, [&](PodId pod) {
    if (state.pods().at(pod).errors == 0) return;
    if (groups.KindOf(pod) == MemberKind::kWaiting) ++failing.waiting;
    if (groups.KindOf(pod) == MemberKind::kDecided) ++failing.decided;
  });
  return failing;
}

uint32_t ReleasedOf(const State& state, GroupId g) {
  uint32_t count = 0;
  state.groups().ForMembers(state.groups().at(g).key,
                            [&](PodId pod) { count += state.pods().at(pod).released ? 1 : 0; });
  return count;
}

bool IsPartly(const State& state, GroupId g) {
  const model::Group& group = state.groups().at(g);
  const model::MemberCounts counts = state.groups().CountsOf(group.key);
  const model::GroupPhase phase = PhaseOf(group, counts);
  const bool waits = phase == model::GroupPhase::kPending || phase == model::GroupPhase::kInqueue;
  return counts[MemberKind::kBound] > 0 && waits;
}

bool RanBefore(const State& state, GroupId g) {
  const model::GroupTable& groups = state.groups();
  const model::Group& group = groups.at(g);
  bool ran = false;
  groups.ForMembers(group.key, [&](PodId pod) {
    const Instant start = state.pods().at(pod).start;
    ran = ran || (groups.KindOf(pod) == MemberKind::kBound && start != Instant{} &&
                  start < group.creation);
  });
  return ran;
}

std::vector<model::ResourceAmount> LeastOf(const State& state, GroupId g, const Need& need) {
  const model::GroupTable& groups = state.groups();
  std::map<std::pair<model::NameId, model::BundleId>, uint32_t> kinds;
  groups.ForMembers(groups.at(g).key, [&](PodId pod) {
    const model::Pod& row = state.pods().at(pod);
    if (groups.KindOf(pod) == MemberKind::kWaiting) ++kinds[{row.role, row.charge}];
  });
  std::set<model::ResourceId> resources;
  for (const auto& [kind, count] : kinds) {
    for (const model::ResourceAmount& a : state.vocabulary().bundles.View(kind.second))
      resources.insert(a.resource);
  }
  std::vector<model::ResourceAmount> least;
  for (const model::ResourceId r : resources) {
    std::vector<Asking> asking;
    for (const auto& [kind, count] : kinds) {
      asking.push_back({.amount = state.vocabulary().bundles.AmountOf(kind.second, r),
                        .role = kind.first,
                        .count = count});
    }
    std::ranges::sort(asking, {}, &Asking::amount);
    Amount sum = 0;
    uint32_t rest = need.needed;
    for (const RoleNeed& role : need.roles) {
      sum += TakeLeast(asking, role.role, role.needed);
      rest -= role.needed;
    }
    sum += TakeLeast(asking, {}, rest);
    if (sum > 0) least.push_back({.resource = r, .amount = sum});
  }
  return least;
}

Alike AlikeOf(const model::Pod& pod) {
  return {.class_id = pod.class_id, .pin = pod.pin, .priority = pod.priority};
}

std::vector<std::pair<Alike, Amount>> KindsOf(const State& state, std::span<const PodId> pods) {
  std::vector<std::pair<Alike, Amount>> kinds;
  for (const PodId pod : pods) {
    const Alike key = AlikeOf(state.pods().at(pod));
    const auto at = std::ranges::find(kinds, key, &std::pair<Alike, Amount>::first);
    if (at == kinds.end()) {
      kinds.emplace_back(key, 1);
    } else {
      ++at->second;
    }
  }
  return kinds;
}

bool IsFutile(const State& state, GroupId g, const EmptyPlaces& places) {
  Amount missing = NeedOf(state, g).needed;
  for (const auto& [pod, count] : KindsOf(state, WaitingMembers(state, g)))
    missing -= PlacesOnAll(state, pod, count, places);
  return missing > 0;
}

std::optional<uint32_t> MostOf(const State& state, GroupId g, const EmptyPlaces& places) {
  const std::vector<std::pair<Alike, Amount>> kinds = KindsOf(state, WaitingMembers(state, g));
  if (kinds.size() != 1) return std::nullopt;
  const Amount needed = NeedOf(state, g).needed;
  const Amount most = PlacesOnAll(state, kinds.front().first, needed, places);
  if (most >= needed) return std::nullopt;
  return static_cast<uint32_t>(most);
}

// ---- Queues of groups, and workloads whose pods are to come ----------------------------------

bool IsLetIn(const State& state, GroupId g) {
  const model::Group& group = state.groups().at(g);
  return PhaseOf(group, state.groups().CountsOf(group.key)) != model::GroupPhase::kPending &&
         state.BarOf(g) == model::GroupBar::kNone;
}

model::Refusal RefusalOf(const State& state, GroupId g, const State::QuotaShort& lacks) {
  const model::Group& group = state.groups().at(g);
  return {.reasons = {{.kind = model::ReasonKind::kQuotaShort,
                       .unresolvable = lacks.never,
                       .resource = lacks.resource,
                       .detail = state.queues().at(lacks.queue).name,
                       .deficit = lacks.deficit}},
          .gang = model::GangRefusal{.group = group.key, .queue = group.queue}};
}

bool IsForQuota(const model::Refusal& refusal) {
  return !refusal.reasons.empty() && refusal.reasons.front().kind == model::ReasonKind::kQuotaShort;
}

std::optional<model::Refusal> RefusalOfBarred(const State& state, GroupId g) {
  const model::GroupBar bar = state.BarOf(g);
  if (bar == model::GroupBar::kNone) {
    const std::optional<State::QuotaShort> lacks = state.ShortFor(g);
    return lacks ? std::optional(RefusalOf(state, g, *lacks)) : std::nullopt;
  }
  const model::Group& group = state.groups().at(g);
  return model::Refusal{
      .gang = model::GangRefusal{.group = group.key, .bar = bar, .queue = group.queue}};
}

namespace {

GroupId GroupNamed(const State& state, NameId gang) {
  return state.groups().FindKey(state.FindKey(state.NameOf(gang)));
}

// Whose pods are to come, or are on their way: those that are to start together.
struct Starting {
  std::vector<const model::Workload*> workloads;
  std::set<model::OwnerId> jobs;
  void Add(const model::Workload& row) {
    workloads.push_back(&row);
    jobs.insert(row.job);
  }
  // Which pods are of one that names no Job is not known; of one Job one counts.
  void AddMate(const model::Workload& row) {
    if (row.job.valid() && !jobs.contains(row.job)) Add(row);
  }
};

// The workload, others of the group that hold quota, and `with`.
Starting StartingWith(const State& state, const model::Workload& workload, NameId gang,
                      std::span<const model::WorkloadId> with) {
  Starting starting;
  starting.Add(workload);
  for (const model::WorkloadId id : with) starting.AddMate(state.workloads().at(id));
  for (const model::WorkloadId id : state.slots().WorkloadsOf(gang)) {
    if (HoldsQuota(state.workloads().at(id))) starting.AddMate(state.workloads().at(id));
  }
  return starting;
}

// Members that there are, or were and did what they were to do, besides those that the jobs have
// now, which are to come. Of a role, or of any.
uint32_t MembersBeside(const State& state, const Starting& starting, GroupId g, NameId role) {
  uint32_t count = 0;
  const model::GroupTable& groups = state.groups();
  groups.ForMembers(groups.at(g).key, [&](PodId pod) {
    const model::Pod& row = state.pods().at(pod);
    const MemberKind kind = groups.KindOf(pod);
    const bool there =
        kind == MemberKind::kWaiting || kind == MemberKind::kDecided || kind == MemberKind::kBound;
    const bool counts =
        kind == MemberKind::kSucceeded || (there && !starting.jobs.contains(row.job));
    if (counts && (!role.valid() || row.role == role)) ++count;
  });
  return count;
}

// How many pods it has, or is promised, quota for; else all that it asks for.
std::span<const uint32_t> CountsOf(const model::Workload& workload) {
  const model::Reservation& charged = ChargedTo(workload);
  return charged.charges.empty() ? workload.promised.counts : charged.counts;
}
uint32_t CountOf(const model::Workload& workload, size_t pod_set) {
  const std::span<const uint32_t> counts = CountsOf(workload);
  const uint32_t all = workload.slots[pod_set].count;
  return pod_set < counts.size() ? std::min(all, counts[pod_set]) : all;
}

uint32_t PodsToCome(const model::Workload& workload, NameId gang, NameId role) {
  uint32_t count = 0;
  for (size_t i = 0; i < workload.slots.size(); ++i) {
    const model::WorkloadSlots& set = workload.slots[i];
    if (set.gang == gang && (!role.valid() || set.role == role)) count += CountOf(workload, i);
  }
  return count;
}

// What it lacks members of, with all that are to come; nothing: there are enough.
std::optional<RoleNeed> LacksWith(const State& state, const Starting& starting, GroupId g,
                                  NameId gang) {
  const model::Group& group = state.groups().at(g);
  const auto lacks = [&](NameId role, int64_t minimum) -> std::optional<RoleNeed> {
    const uint32_t beside = MembersBeside(state, starting, g, role);
    uint32_t to_come = 0;
    for (const model::Workload* row : starting.workloads) to_come += PodsToCome(*row, gang, role);
    if (int64_t{beside} + to_come >= minimum) return std::nullopt;
    return RoleNeed{
        .role = role, .needed = static_cast<uint32_t>(minimum - beside), .waiting = to_come};
  };
  for (const model::RoleMinimum& m : group.min_of_roles) {
    if (!CountsRoles(group)) break;
    if (auto role = lacks(m.role, m.count)) return role;
  }
  return lacks({}, group.min_member);
}

}  // namespace

bool HoldsQuota(const model::Workload& row) {
  const bool writes = row.write != model::WriteStage::kNone;
  const bool refused = row.errors > 0 && !writes;
  const bool gives_up = row.status.reserved && writes && row.decided.charges.empty();
  return !ChargedTo(row).charges.empty() && row.status.active && !row.claimant.valid() &&
         StageOf(row.status) != model::WorkloadStage::kEvicted && !refused && !gives_up;
}

bool NoneStarted(const State& state, const model::Workload& workload) {
  const model::GroupTable& groups = state.groups();
  std::set<NameId> asked;
  bool started = !workload.job.valid();  // Which pods are its own is not known.
  for (const model::WorkloadSlots& set : workload.slots) {
    if (started || !set.gang.valid() || !asked.insert(set.gang).second) continue;
    groups.ForMembers(state.FindKey(state.NameOf(set.gang)), [&](PodId pod) {
      if (state.pods().at(pod).job != workload.job) return;
      const MemberKind kind = groups.KindOf(pod);
      started = started || model::IsReady(kind) || kind == MemberKind::kLeaving;
    });
  }
  return !started;
}

namespace {

// The groups that its pods name, each once; invalid: it is not there.
std::vector<std::pair<NameId, GroupId>> GroupsOf(const State& state,
                                                 const model::Workload& workload) {
  std::vector<std::pair<NameId, GroupId>> groups;
  std::set<NameId> asked;
  for (const model::WorkloadSlots& set : workload.slots) {
    if (set.gang.valid() && asked.insert(set.gang).second)
      groups.emplace_back(set.gang, GroupNamed(state, set.gang));
  }
  return groups;
}

// What as few of its pods as the group could start with ask for at once.
std::vector<model::ResourceAmount> LeastOf(const State& state, const model::Workload& workload,
                                           NameId gang) {
  std::map<model::ResourceId, Amount> sums;
  for (uint32_t i = 0; i < workload.slots.size(); ++i) {
    const model::WorkloadSlots& set = workload.slots[i];
    if (set.gang != gang) continue;
    const uint32_t count = FewestOf(state, workload, i);
    const model::BundleId requests = state.vocabulary().classes.at(set.class_id).requests;
    for (const model::ResourceAmount& a : state.vocabulary().bundles.View(requests))
      sums[a.resource] += count * a.amount;
  }
  std::vector<model::ResourceAmount> least;
  for (const auto& [resource, amount] : sums)
    least.push_back({.resource = resource, .amount = amount});
  return least;
}

}  // namespace

std::vector<uint32_t> AskedBy(const State& state, model::WorkloadId id) {
  const model::Workload& workload = state.workloads().at(id);
  const std::span<const uint32_t> counts = CountsOf(workload);
  if (!counts.empty()) return {counts.begin(), counts.end()};
  const bool promised = workload.promised != model::Reservation{};
  if (promised || !ChargedTo(workload).charges.empty() || !MayStartWithFewer(workload)) return {};
  std::vector<uint32_t> fewest;
  for (uint32_t i = 0; i < workload.slots.size(); ++i) {
    const model::WorkloadSlots& set = workload.slots[i];
    fewest.push_back(std::max(set.count - set.missing_max, FewestOf(state, workload, i)));
  }
  return fewest;
}

std::optional<Unready> WhyUnready(const State& state, model::WorkloadId id,
                                  std::span<const model::WorkloadId> with) {
  const model::Workload& workload = state.workloads().at(id);
  const auto groups = GroupsOf(state, workload);
  for (const auto& [name, g] : groups) {
    if (!g.valid()) return Unready{};
    const model::Group& group = state.groups().at(g);
    const Starting starting = StartingWith(state, workload, name, with);
    if (const auto lacks = LacksWith(state, starting, g, name)) {
      return Unready{model::Refusal{
          .reasons = {{.kind = model::ReasonKind::kGangIncomplete, .detail = lacks->role}},
          .gang = model::GangRefusal{
              .group = group.key, .needed = lacks->needed, .found = lacks->waiting}}};
    }
    if (!IsLetIn(state, g)) {
      auto barred = RefusalOfBarred(state, g);
      if (barred && !IsForQuota(*barred)) return Unready{std::move(barred)};
    }
  }
  if (auto lacks = WhyNoRoom(state, id, AskedBy(state, id))) {
    return Unready{std::move(lacks)};
  }
  return std::nullopt;
}

std::set<model::WorkloadId> StartableWith(const State& state, model::WorkloadId workload,
                                          const std::function<bool(model::WorkloadId)>& is_ready) {
  std::set<model::WorkloadId> all = {workload};
  std::map<NameId, GroupId> groups;
  for (std::vector<model::WorkloadId> open = {workload}; !open.empty();) {
    const auto named = GroupsOf(state, state.workloads().at(open.back()));
    open.pop_back();
    for (const auto& [name, g] : named) {
      if (!groups.emplace(name, g).second) continue;
      for (const model::WorkloadId mate : state.slots().WorkloadsOf(name)) {
        if (is_ready(mate) && all.insert(mate).second) open.push_back(mate);
      }
    }
  }
  // Who drops out of one group may leave another without enough.
  for (bool dropped = true; dropped;) {
    Starting starting;
    for (const model::WorkloadId id : all) starting.AddMate(state.workloads().at(id));
    std::set<NameId> lacking;
    for (const auto& [name, g] : groups) {
      if (!g.valid() || LacksWith(state, starting, g, name)) lacking.insert(name);
    }
    dropped = std::erase_if(all, [&](model::WorkloadId id) {
                return std::ranges::any_of(state.workloads().at(id).slots, [&](const auto& set) {
                  return lacking.contains(set.gang);
                });
              }) > 0;
  }
  return all;
}

std::optional<model::Refusal> WhyNoRoom(const State& state, model::WorkloadId id,
                                        std::span<const uint32_t> counts) {
  const model::Workload& workload = state.workloads().at(id);
  const bool holds = !ChargedTo(workload).charges.empty();
  for (const auto& [name, g] : GroupsOf(state, workload)) {
    if (!g.valid()) continue;
    if (state.AsksForRest(g)) {
      if (const auto lacks = state.ShortFor(g)) return RefusalOf(state, g, *lacks);
    }
    if (const auto lacks = state.ShortFor(id, g, counts)) return RefusalOf(state, g, *lacks);
    if (!holds) continue;
    // Those without places stand in line, and may never have any.
    if (const auto lacks = state.NeverFor(g, LeastOf(state, workload, name)))
      return RefusalOf(state, g, *lacks);
  }
  return std::nullopt;
}

std::vector<Shortage> ShortagesOf(const State& state, model::WorkloadId id) {
  std::vector<Shortage> shortages;
  const std::vector<uint32_t> counts = AskedBy(state, id);
  for (const auto& [name, g] : GroupsOf(state, state.workloads().at(id))) {
    if (!g.valid()) continue;
    for (const auto& [resource, amount] : state.ShortagesFor(id, g, counts))
      shortages.push_back({.group = g, .resource = resource, .amount = amount});
  }
  return shortages;
}

bool IsNoneLess(std::span<const Shortage> before, std::span<const Shortage> now) {
  return std::ranges::all_of(before, [&](const Shortage& b) {
    return std::ranges::any_of(now, [&](const Shortage& n) {
      return n.group == b.group && n.resource == b.resource && n.amount >= b.amount;
    });
  });
}

bool HasRoomNow(const State& state, model::WorkloadId id) {
  const std::vector<uint32_t> counts = AskedBy(state, id);
  return std::ranges::all_of(GroupsOf(state, state.workloads().at(id)), [&](const auto& named) {
    return !named.second.valid() || state.HasRoomNow(id, named.second, counts);
  });
}

bool HasRoomWithout(State& state, model::Transaction& t, model::WorkloadId id,
                    std::span<const model::WorkloadId> leave, std::span<const uint32_t> counts) {
  return std::ranges::all_of(GroupsOf(state, state.workloads().at(id)), [&](const auto& named) {
    return named.second.valid() && state.HasRoomWithout(t, id, named.second, leave, counts);
  });
}

bool MayStartWithFewer(const model::Workload& workload) {
  return std::ranges::any_of(workload.slots,
                             [](const model::WorkloadSlots& set) { return set.missing_max > 0; });
}

uint32_t FewestOf(const State& state, const model::Workload& workload, uint32_t pod_set) {
  const model::WorkloadSlots& set = workload.slots[pod_set];
  const GroupId g = set.gang.valid() ? GroupNamed(state, set.gang) : GroupId{};
  if (!g.valid()) return 0;
  const Starting starting = StartingWith(state, workload, set.gang, {});
  int64_t others = MembersBeside(state, starting, g, {});
  for (const model::Workload* row : starting.workloads) others += PodsToCome(*row, set.gang, {});
  others -= CountOf(workload, pod_set);
  const int64_t needed = int64_t{state.groups().at(g).min_member} - others;
  return static_cast<uint32_t>(std::clamp(needed, int64_t{0}, int64_t{set.count}));
}

}  // namespace berth::gang
