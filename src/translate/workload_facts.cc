#include "translate/workload_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <expected>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "api/groups.h"
#include "api/job_owner.h"
#include "api/requests.h"
#include "api/well_known.h"
#include "base/limits.h"
#include "translate/facts.h"
#include "translate/objections.h"
#include "translate/pod_defaults.h"
#include "translate/quota_facts.h"

namespace berth::translate {
namespace {

using model::NameId;

uint32_t Clamped(int64_t count) {
  return static_cast<uint32_t>(std::clamp(count, int64_t{0}, limits::kSlotsMax));
}

// Of what is asked for, be it more than can be held.
uint32_t CountOf(int64_t count) {
  return static_cast<uint32_t>(std::clamp<int64_t>(count, 0, std::numeric_limits<uint32_t>::max()));
}

// As pods are when they are made: what is limited and not requested is requested.
void RequestLimits(std::vector<api::Container>& containers) {
  for (api::Container& container : containers) AddMissing(container.requests, container.limits);
}

bool LimitsMore(const std::vector<api::Container>& containers) {
  return std::ranges::any_of(containers, [](const api::Container& container) {
    return std::ranges::any_of(container.limits, [&](const api::ResourceAmount& limit) {
      return !api::Find(container.requests, limit.name);
    });
  });
}

// The pod that a template makes.
api::Pod PodOf(const api::WorkloadPodSet& pods) {
  api::Pod pod;
  pod.spec = pods.spec;
  if (LimitsMore(pods.spec->containers) || LimitsMore(pods.spec->init_containers)) {
    RequestLimits(pod.spec.Edit().containers);
    RequestLimits(pod.spec.Edit().init_containers);
  }
  return pod;
}

int64_t ReclaimableOf(const api::Workload& workload, std::string_view pod_set) {
  for (const auto& [name, count] : workload.reclaimable) {
    if (name == pod_set) return count;
  }
  return 0;
}

// Of one pod by flavor. The amounts that an object tells are of `count` pods.
std::map<std::string_view, std::vector<model::ResourceAmount>> AmountsOf(
    const api::PodSetAssignment& assignment, int64_t count, model::Vocabulary& vocabulary) {
  std::map<std::string_view, std::vector<model::ResourceAmount>> amounts;
  for (const auto& [resource, flavor] : assignment.flavors) {
    const int64_t total = api::Find(assignment.usage, resource).value_or(0);
    if (total <= 0) continue;
    const Result<model::ResourceId> id = vocabulary.resources.Intern(resource);
    if (!id) continue;
    const int64_t each = total / count + (total % count > 0 ? 1 : 0);
    amounts[flavor].push_back({.resource = *id, .amount = std::min(each, limits::kAmountMax)});
  }
  return amounts;
}

// Of how many pods the admission of the set is. Where it tells more places than pods it is those
// that count, for pods stand there; but no more than the set has.
int64_t CountGiven(const api::PodSetAssignment& assignment, const api::WorkloadPodSet& pods) {
  int64_t places = 0;
  if (assignment.topology) {
    for (const api::TopologyDomain& domain : assignment.topology->domains)
      places += Clamped(domain.count);
  }
  return std::max(assignment.count.value_or(pods.count), std::min(places, pods.count));
}

model::Reservation ReservationOf(const api::Workload& workload, model::Vocabulary& vocabulary) {
  model::Reservation reservation;
  if (!workload.admission) return reservation;
  reservation.cluster_queue = vocabulary.names.Intern(workload.admission->cluster_queue);
  for (const api::PodSetAssignment& assignment : workload.admission->pod_sets) {
    const auto pods =
        std::ranges::find(workload.pod_sets, assignment.name, &api::WorkloadPodSet::name);
    if (pods == workload.pod_sets.end()) continue;
    const int64_t count = CountGiven(assignment, *pods);
    // It may have been given quota after some of its pods were done.
    const uint32_t left =
        Clamped(std::min(count, pods->count - ReclaimableOf(workload, assignment.name)));
    if (count <= 0 || left == 0) continue;
    for (const auto& [flavor, amounts] : AmountsOf(assignment, count, vocabulary)) {
      reservation.charges.push_back(
          {.pod_set = static_cast<uint32_t>(pods - workload.pod_sets.begin()),
           .flavor = vocabulary.names.Intern(flavor),
           .count = left,
           .amounts = vocabulary.bundles.Intern(amounts)});
    }
  }
  return reservation;
}

bool IsByNode(const api::TopologyAssignment& topology) {
  return !topology.levels.empty() && topology.levels.back() == api::kHostnameLabel;
}

// Where its pod sets stand by a topology, or are to once it is admitted.
std::vector<model::TopologyPlaces> TopologiesOf(const api::Workload& workload,
                                                model::Vocabulary& vocabulary) {
  std::vector<model::TopologyPlaces> topologies;
  for (uint32_t i = 0; i < workload.pod_sets.size(); ++i) {
    const auto given = std::ranges::find(workload.admission->pod_sets, workload.pod_sets[i].name,
                                         &api::PodSetAssignment::name);
    if (given == workload.admission->pod_sets.end()) continue;
    if (!given->topology && !given->topology_delayed) continue;
    model::TopologyPlaces& places = topologies.emplace_back();
    places.pod_set = i;
    if (!given->topology) continue;
    for (const std::string& level : given->topology->levels)
      places.levels.push_back(vocabulary.names.Intern(level));
    for (const api::TopologyDomain& domain : given->topology->domains) {
      model::TopologyShare share{.values = {}, .count = Clamped(domain.count)};
      for (const std::string& value : domain.values)
        share.values.push_back(vocabulary.names.Intern(value));
      if (share.count > 0 && !share.values.empty()) places.shares.push_back(std::move(share));
    }
  }
  return topologies;
}

// "0,1/1000": the devices, and how much of each.
std::string DevicesText(const model::DeviceSlots& devices) {
  std::vector<int> indices;
  for (int d = 0; d < static_cast<int>(model::kDevicesMax); ++d) {
    if (((devices.mask >> d) & 1) != 0) indices.push_back(d);
  }
  return fmt::format("{}/{}", fmt::join(indices, ","), devices.milli_each);
}

model::DeviceSlots DevicesOf(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  uint16_t each = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data() + slash + 1, end, each);
  const uint16_t mask = ParseDevices(text.substr(0, slash)).value_or(0);
  if (error != std::errc() || parsed != end || each > model::kDeviceMilli || mask == 0) return {};
  return {.mask = mask, .milli_each = each};
}

// As many places as are told, on the nodes that the domains are; nothing, if those are wider than
// nodes, or the places more than `most`.
std::vector<model::Slot> SlotsIn(const api::TopologyAssignment& topology, uint32_t pod_set,
                                 int64_t most, model::Vocabulary& vocabulary) {
  std::vector<model::Slot> slots;
  if (!IsByNode(topology)) return slots;
  for (const api::TopologyDomain& domain : topology.domains) {
    if (domain.values.empty()) return {};
    const NameId node = vocabulary.names.Intern(domain.values.back());
    for (int64_t n = 0; n < std::min(domain.count, most); ++n)
      slots.push_back({.pod_set = pod_set, .node = node, .devices = {}});
    if (static_cast<int64_t>(slots.size()) > most) return {};
  }
  return slots;
}

// The devices of each are those that are told of its node, each once. O(slots x log slots).
void TakeDevices(std::vector<model::Slot>& slots, const std::vector<model::Slot>& told) {
  std::map<NameId, std::vector<model::DeviceSlots>> devices;
  for (const model::Slot& slot : std::views::reverse(told))
    devices[slot.node].push_back(slot.devices);
  for (model::Slot& slot : slots) {
    std::vector<model::DeviceSlots>& left = devices[slot.node];
    if (left.empty()) continue;
    slot.devices = left.back();
    left.pop_back();
  }
}

// Where its pods go: what its placement says beside what its assignment to a topology does. The one
// is ours, and of those pod sets for which it has as many places as the admission has pods; the
// other is taken as it is, as upstream takes it, whatever number of pods it is of.
std::vector<model::Slot> PlacesOf(const api::Workload& workload, const api::Placement* placement,
                                  model::Vocabulary& vocabulary) {
  std::vector<model::Slot> slots;
  for (uint32_t i = 0; i < workload.pod_sets.size(); ++i) {
    const std::string& name = workload.pod_sets[i].name;
    const auto given =
        std::ranges::find(workload.admission->pod_sets, name, &api::PodSetAssignment::name);
    const bool is_given = given != workload.admission->pod_sets.end();
    const int64_t count =
        is_given ? given->count.value_or(workload.pod_sets[i].count) : workload.pod_sets[i].count;
    if (count > limits::kSlotsMax) continue;
    std::vector<model::Slot> of_set;
    if (is_given && given->topology)
      of_set = SlotsIn(*given->topology, i, limits::kSlotsMax, vocabulary);
    if (placement != nullptr && !(is_given && given->topology_delayed)) {
      const auto pods = std::ranges::find(placement->pod_sets, name, &api::PodSetPlacement::name);
      if (pods != placement->pod_sets.end()) {
        std::vector<model::Slot> told = SlotsIn(pods->topology, i, count, vocabulary);
        if (static_cast<int64_t>(told.size()) != count) told.clear();
        // Else it is not told which pods these are of.
        for (size_t at = 0; at < told.size() && told.size() == pods->devices.size(); ++at)
          told[at].devices = DevicesOf(pods->devices[at]);
        if (of_set.empty()) {
          of_set = std::move(told);
        } else {
          TakeDevices(of_set, told);
        }
      }
    }
    slots.insert(slots.end(), of_set.begin(), of_set.end());
  }
  return slots;
}

constexpr std::string_view kBeyondLimits = "requests must not exceed its limits";

void AddBeyondLimits(const std::vector<api::Container>& containers, std::string_view path,
                     Objections& objections) {
  for (size_t i = 0; i < containers.size(); ++i) {
    objections.AddBeyond(containers[i].requests, containers[i].limits,
                         fmt::format("{}[{}]", path, i), kBeyondLimits);
  }
}

// What pods ask for as a whole: of cpu and memory what their containers do together, where it is
// said as a whole only what they may use.
api::ResourceList RequestedAsAWhole(const api::WorkloadPodSet& pods) {
  if (pods.spec->pod_limits.empty()) return {};
  api::Pod pod = PodOf(pods);
  pod.spec.Edit().overhead.clear();
  const api::ResourceList own = pod.spec->pod_requests.value_or(api::ResourceList{});
  api::ResourceList requests = own;
  for (const api::ResourceAmount& of : api::RequestsOf(pod, {.without_pod_level = true})) {
    const bool counts = of.name == api::kCpuName || of.name == api::kMemoryName;
    if (counts && !api::Find(own, of.name)) requests.push_back(of);
  }
  std::ranges::sort(requests, {}, &api::ResourceAmount::name);
  return requests;
}

// Of all pod sets, in upstream's words; nothing where all is well.
std::optional<std::string> RequestsBeyondLimits(const std::vector<api::WorkloadPodSet>& pod_sets) {
  Objections objections;
  for (size_t i = 0; i < pod_sets.size(); ++i) {
    const api::PodSpec& spec = *pod_sets[i].spec;
    const std::string path = fmt::format("spec.podSets[{}].template.spec.", i);
    AddBeyondLimits(spec.init_containers, path + "initContainers", objections);
    AddBeyondLimits(spec.containers, path + "containers", objections);
    objections.AddBeyond(RequestedAsAWhole(pod_sets[i]), spec.pod_limits, path + "resources",
                         kBeyondLimits);
  }
  return objections.Text();
}

bool IsOfWorkloadClass(const api::Workload& workload) {
  return !workload.priority_class.empty() && workload.priority_class_group != "scheduling.k8s.io";
}

// What the pods will have. A class of workloads says nothing of theirs; then the template tells.
PriorityClasses::Priority PodPriorityOf(const api::Workload& workload, const api::PodSpec& spec,
                                        const PriorityClasses& classes) {
  PriorityClasses::Priority priority = classes.Of(spec);
  if (!IsOfWorkloadClass(workload)) priority.value = PriorityOf(workload.priority);
  return priority;
}

std::vector<api::WorkloadPodSet> MadeBy(const PodDefaults& defaults,
                                        const api::Workload& workload) {
  std::vector<api::WorkloadPodSet> made = workload.pod_sets;
  for (api::WorkloadPodSet& pods : made) defaults.Complete(workload.meta.namespace_name, pods.spec);
  return made;
}

// `made`: its pod sets, as their pods will be.
Result<std::vector<model::WorkloadSlots>> SlotsOf(const api::Workload& workload,
                                                  const std::vector<api::WorkloadPodSet>& made,
                                                  model::Vocabulary& vocabulary,
                                                  const PriorityClasses& classes) {
  if (made.empty()) return Fail(ErrorCode::kInvalid, "spec.podSets: it has none");
  std::vector<model::WorkloadSlots> slots;
  for (const api::WorkloadPodSet& pods : made) {
    const Result<model::ClassSpec> spec = ClassOf(PodOf(pods), vocabulary);
    if (!spec) {
      return Fail(spec.error().code,
                  fmt::format("spec.podSets: {}: {}", pods.name, spec.error().message));
    }
    const PriorityClasses::Priority priority = PodPriorityOf(workload, *pods.spec, classes);
    const uint32_t count = CountOf(pods.count - ReclaimableOf(workload, pods.name));
    slots.push_back(
        {.name = vocabulary.names.Intern(pods.name),
         .class_id = vocabulary.classes.Intern(*spec),
         .count = count,
         .done = CountOf(pods.count) - count,
         .missing_max = count - std::min(count, CountOf(pods.min_count.value_or(count))),
         .topology =
             pods.topology ? TopologyWishOf(*pods.topology, vocabulary) : model::TopologyWish{},
         .priority = priority.value,
         .preempts = priority.preempts});
  }
  return slots;
}

}  // namespace

Result<model::WorkloadUpsert> WorkloadFacts(const api::Workload& workload,
                                            model::Vocabulary& vocabulary,
                                            const api::Placement* placement,
                                            const PodRules& rules) {
  const std::string& place = workload.meta.namespace_name;
  model::WorkloadUpsert facts{.uid = workload.meta.uid,
                              .key = place + '/' + workload.meta.name,
                              .local_queue = place + '/' + workload.queue,
                              .job = JobOf(workload.meta),
                              .generation = workload.meta.generation,
                              .status = WorkloadStatusOf(workload)};
  facts.priority = PriorityOf(workload.priority);
  if (IsOfWorkloadClass(workload))
    facts.priority_class = vocabulary.names.Intern(workload.priority_class);
  // One that is being deleted wants no quota, and what it has is given back once nothing of it runs
  // any more, as by one that is evicted.
  if (workload.meta.deletion_time) {
    facts.status.active = false;
    if (facts.status.reserved && facts.status.evicted_for == model::EvictedFor::kNothing) {
      facts.status.evicted_for = model::EvictedFor::kOther;
      facts.status.evicted_at = *workload.meta.deletion_time;
    }
  }
  const std::vector<api::WorkloadPodSet> made = MadeBy(rules.defaults, workload);
  // What runs already stands.
  const bool waits = !facts.status.reserved && !facts.status.finished;
  if (waits) {
    if (const auto objections = RequestsBeyondLimits(made))
      return Fail(ErrorCode::kInvalid, "resources validation failed: " + *objections);
    if (const auto objections = rules.defaults.WhyOutside(place, made)) {
      return Fail(ErrorCode::kInvalid,
                  "resources didn't satisfy LimitRange constraints: " + *objections);
    }
  }
  Result<std::vector<model::WorkloadSlots>> slots =
      SlotsOf(workload, made, vocabulary, rules.classes);
  if (slots) {
    facts.slots = *std::move(slots);
  } else if (waits) {
    return std::unexpected(slots.error());
  }
  if (facts.status.reserved) facts.reserved = ReservationOf(workload, vocabulary);
  if (facts.status.reserved && workload.admission) {
    const bool of_this =
        placement != nullptr && placement->cluster_queue == workload.admission->cluster_queue;
    facts.reserved.topologies = TopologiesOf(workload, vocabulary);
    facts.reserved.slots = PlacesOf(workload, of_this ? placement : nullptr, vocabulary);
  }
  for (const std::string& node : workload.unhealthy_nodes)
    facts.unhealthy.push_back(vocabulary.names.Intern(node));
  for (const api::CheckState& check : workload.checks) {
    if (check.state == "Ready") {
      facts.checks.push_back(vocabulary.names.Intern(check.name));
    } else {
      facts.checks_pending = true;
    }
  }
  return facts;
}

namespace {

// The nodes of the pod set's places, as runs, and the devices of each pod if any has some.
api::PodSetPlacement PlacementOf(const model::Reservation& decided, uint32_t pod_set,
                                 std::string name, const model::Vocabulary& vocabulary) {
  api::PodSetPlacement pods{
      .name = std::move(name),
      .topology = {.levels = {std::string(api::kHostnameLabel)}, .domains = {}},
      .devices = {}};
  bool any = false;
  for (const model::Slot& slot : decided.slots) {
    if (slot.pod_set != pod_set) continue;
    std::vector<api::TopologyDomain>& domains = pods.topology.domains;
    const std::string node(vocabulary.names.View(slot.node));
    if (domains.empty() || domains.back().values.front() != node) {
      domains.push_back({.values = {node}, .count = 1});
    } else {
      ++domains.back().count;
    }
    any = any || !slot.devices.none();
    pods.devices.push_back(slot.devices.none() ? "" : DevicesText(slot.devices));
  }
  if (!any) pods.devices.clear();
  return pods;
}

api::TopologyAssignment AssignmentOf(const model::TopologyPlaces& places,
                                     const model::Vocabulary& vocabulary) {
  api::TopologyAssignment topology;
  for (const NameId level : places.levels)
    topology.levels.emplace_back(vocabulary.names.View(level));
  for (const model::TopologyShare& share : places.shares) {
    api::TopologyDomain& domain = topology.domains.emplace_back();
    domain.count = share.count;
    for (const NameId value : share.values)
      domain.values.emplace_back(vocabulary.names.View(value));
  }
  return topology;
}

}  // namespace

std::optional<api::Placement> PlacementOf(const model::Workload& workload,
                                          const model::Vocabulary& vocabulary) {
  const model::Reservation& decided = workload.decided;
  api::Placement placement{
      .cluster_queue = std::string(vocabulary.names.View(decided.cluster_queue)), .pod_sets = {}};
  for (uint32_t i = 0; i < workload.slots.size(); ++i) {
    api::PodSetPlacement pods = PlacementOf(
        decided, i, std::string(vocabulary.names.View(workload.slots[i].name)), vocabulary);
    if (pods.topology.domains.empty()) continue;
    // A topology down to nodes tells them itself.
    const model::TopologyPlaces* by_topology = FindTopology(decided, i);
    const bool told = by_topology != nullptr && pods.devices.empty() &&
                      IsByNode(AssignmentOf(*by_topology, vocabulary));
    if (!told) placement.pod_sets.push_back(std::move(pods));
  }
  if (placement.pod_sets.empty()) return std::nullopt;
  return placement;
}

void PutTopologies(const model::Reservation& reservation, const model::Workload& workload,
                   const model::Vocabulary& vocabulary, api::Admission& admission) {
  for (const model::TopologyPlaces& places : reservation.topologies) {
    const auto pods = std::ranges::find(admission.pod_sets,
                                        vocabulary.names.View(workload.slots[places.pod_set].name),
                                        &api::PodSetAssignment::name);
    if (pods == admission.pod_sets.end()) continue;
    const bool delayed = places.shares.empty();
    pods->topology_came = !delayed && (pods->topology_came || pods->topology_delayed);
    pods->topology_delayed = delayed;
    if (!delayed) pods->topology = AssignmentOf(places, vocabulary);
  }
}

api::Admission AdmissionOf(const model::Workload& workload, const model::Vocabulary& vocabulary) {
  api::Admission admission{.cluster_queue =
                               std::string(vocabulary.names.View(workload.decided.cluster_queue))};
  for (uint32_t i = 0; i < workload.slots.size(); ++i) {
    api::PodSetAssignment& assignment = admission.pod_sets.emplace_back();
    assignment.name = vocabulary.names.View(workload.slots[i].name);
    assignment.count =
        workload.decided.counts.empty() ? workload.slots[i].count : workload.decided.counts[i];
    for (const model::QuotaCharge& charge : workload.decided.charges) {
      if (charge.pod_set != i) continue;
      for (const model::ResourceAmount& a : vocabulary.bundles.View(charge.amounts)) {
        const std::string name(vocabulary.resources.Name(a.resource));
        assignment.flavors.emplace_back(name, vocabulary.names.View(charge.flavor));
        assignment.usage.push_back({.name = name, .amount = a.amount * charge.count});
      }
    }
    std::ranges::sort(assignment.flavors);
    std::ranges::sort(assignment.usage, {}, &api::ResourceAmount::name);
  }
  PutTopologies(workload.decided, workload, vocabulary, admission);
  return admission;
}

void PutGang(const api::Workload& workload, const api::WorkloadPodSet& pods,
             model::Vocabulary& vocabulary, model::WorkloadSlots& slots) {
  std::string group(api::NamedGroup(pods.annotations));
  if (group.empty() && pods.spec->scheduler_name == api::kVolcanoScheduler) {
    const std::string_view job = api::JobUidOf(workload.meta.owners, workload.meta.labels);
    if (!job.empty()) group = std::string(api::kMadeGroupPrefix).append(job);
  }
  if (group.empty()) return;
  slots.gang = vocabulary.names.Intern(fmt::format("{}/{}", workload.meta.namespace_name, group));
  slots.role = RoleOf(pods.annotations, pods.labels, vocabulary);
}

}  // namespace berth::translate
