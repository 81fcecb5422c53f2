#include "controllers/services.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "controllers/service_slices.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr std::string_view kTopologyMode = "service.kubernetes.io/topology-mode";
constexpr std::string_view kTopologyHints = "service.kubernetes.io/topology-aware-hints";

std::pair<std::string_view, std::string_view> NamesOf(std::string_view id) {
  const size_t slash = id.find('/');
  return {id.substr(0, slash), id.substr(slash + 1)};
}

// The number that a container of the pod gives to a port of the Service.
std::optional<int64_t> PortOf(const api::PodSpec& pod, const ServicePort& port) {
  if (port.target_name.empty()) return port.target;
  const auto find = [&](const api::Container& container) -> std::optional<int64_t> {
    for (const api::ContainerPort& own : container.ports) {
      const std::string_view protocol =
          own.protocol.empty() ? std::string_view("TCP") : std::string_view(own.protocol);
      if (own.name == port.target_name && protocol == port.protocol) return own.port;
    }
    return std::nullopt;
  };
  for (const api::Container& container : pod.containers) {
    if (const auto number = find(container)) return number;
  }
  for (const api::Container& container : pod.init_containers) {
    if (!container.restart_always) continue;
    if (const auto number = find(container)) return number;
  }
  return std::nullopt;
}

std::vector<EndpointPort> PortsOf(const ServiceFacts& service, const PodRef& pod) {
  std::vector<EndpointPort> ports;
  for (const ServicePort& port : service.ports) {
    const std::optional<int64_t> number = PortOf(*pod.facts->spec, port);
    if (!number.has_value()) continue;
    ports.push_back({.name = port.name,
                     .port = number,
                     .protocol = port.protocol,
                     .app_protocol = port.app_protocol});
  }
  return Sorted(std::move(ports));
}

ObjectTarget TargetOf(const Head& pod) {
  return {.kind = "Pod", .namespace_name = pod.namespace_name, .name = pod.name, .uid = pod.uid};
}

std::string HostnameFor(const PodRef& pod, const Head& service) {
  return pod.facts->spec->subdomain == service.name ? pod.facts->spec->hostname : std::string();
}

// A Service as its plans see it.
struct View {
  const Objects& objects;
  const Head& head;
  const ServiceFacts& facts;
  std::vector<PodRef> pods;  // That have an address and are not over, by name.
};

View ViewOf(const Objects& objects, Slot slot) {
  View view{objects, objects.head(slot), *objects.service(slot), {}};
  for (const Slot pod : objects.SelectedBy(slot)) {
    const PodRef ref = objects.pod_ref(pod);
    if (!ref.facts->terminal() && !ref.facts->ips.empty()) view.pods.push_back(ref);
  }
  std::ranges::sort(view.pods, {},
                    [](const PodRef& pod) -> const std::string& { return pod.head->name; });
  return view;
}

// As upstream's tracker: nothing of what was seen before is told again. Empty: nothing is new.
std::string TriggerTimeOf(const Objects& objects, Slot service, std::optional<TriggerTimes>& seen) {
  TriggerTimes now{.pods = {}, .service = objects.head(service).creation};
  Instant first = Instant::Never();
  const bool known = seen.has_value();
  const auto note = [&](Instant time, Instant before) {
    if (time > before) first = std::min(first, time);
  };
  for (const Slot slot : objects.SelectedBy(service)) {
    const PodRef pod = objects.pod_ref(slot);
    if (pod.facts->ready_changed.ns == 0) continue;
    now.pods.emplace(pod.head->name, pod.facts->ready_changed);
    if (!known) continue;
    const auto before = seen->pods.find(pod.head->name);
    note(pod.facts->ready_changed, before == seen->pods.end() ? Instant{} : before->second);
  }
  note(now.service, known ? seen->service : Instant{});
  if (!known || *seen != now) seen = std::move(now);
  return first == Instant::Never() || first.ns == 0 ? std::string() : client::SecondsTime(first);
}

// ---- EndpointSlices -----------------------------------------------------------------------------

// What an endpoint is found again by: other members change in place.
std::string KeyOf(const Endpoint& endpoint) {
  std::string key;
  if (endpoint.target.has_value())
    key.append(endpoint.target->namespace_name).append("/").append(endpoint.target->name);
  key.append("\n").append(endpoint.hostname);
  for (const std::string& address : endpoint.addresses) key.append("\n").append(address);
  return key;
}

using Wanted = std::map<std::string, Endpoint>;

struct Group {
  std::vector<EndpointPort> ports;
  Wanted wanted;
  std::vector<Slice> slices;
};
using Groups = std::map<std::vector<EndpointPort>, Group>;

void AddHints(const ServiceFacts& service, Endpoint& endpoint) {
  const std::string& distribution = service.traffic_distribution;
  const bool node = distribution == "PreferSameNode";
  if (!node && distribution != "PreferClose" && distribution != "PreferSameZone") return;
  // The annotation goes before, and is not acted on.
  for (const std::string_view key : {kTopologyHints, kTopologyMode}) {
    const auto mode = api::Find(service.annotations, key);
    if (mode.has_value() && (mode == "Auto" || mode == "auto")) return;
  }
  if (endpoint.ready != true) return;
  if (!endpoint.zone.empty()) endpoint.for_zones = {endpoint.zone};
  if (node && !endpoint.node.empty()) endpoint.for_nodes = {endpoint.node};
}

// Nothing: it has no address of that family, or a node that is not there.
std::optional<Endpoint> EndpointFor(const View& view, const PodRef& pod, bool ipv6) {
  const Slot node = view.objects.Find(api::KindId::kNode, {}, pod.facts->node);
  if (node == kNoSlot && !view.facts.publishes_unready) return std::nullopt;
  const bool terminating = pod.head->deletion.has_value();
  Endpoint endpoint{.addresses = {},
                    .ready = view.facts.publishes_unready || (pod.facts->ready && !terminating),
                    .serving = pod.facts->ready,
                    .terminating = terminating,
                    .hostname = HostnameFor(pod, view.head),
                    .target = TargetOf(*pod.head),
                    .node = pod.facts->node,
                    .zone = {},
                    .for_zones = {},
                    .for_nodes = {}};
  std::ranges::copy_if(pod.facts->ips, std::back_inserter(endpoint.addresses),
                       [&](const std::string& ip) { return IsIpv6(ip) == ipv6; });
  if (endpoint.addresses.empty()) return std::nullopt;
  std::ranges::sort(endpoint.addresses);
  if (node != kNoSlot)
    endpoint.zone = api::Find(view.objects.head(node).labels, kZoneLabel).value_or("");
  AddHints(view.facts, endpoint);
  return endpoint;
}

// Endpoints that stay where they are, as they are now; what is not wanted is gone.
void KeepWanted(Slice& slice, Wanted& wanted) {
  std::vector<Endpoint> kept;
  for (const Endpoint& endpoint : slice.facts.endpoints) {
    const auto at = wanted.find(KeyOf(endpoint));
    if (at == wanted.end()) continue;
    if (at->second != endpoint) slice.changed = true;
    kept.push_back(std::move(at->second));
    wanted.erase(at);
  }
  if (kept.size() != slice.facts.endpoints.size()) slice.changed = true;
  slice.facts.endpoints = std::move(kept);
}

void Fill(Slice& slice, Wanted& wanted) {
  while (!wanted.empty() && slice.facts.endpoints.size() < kSliceEndpointsMax) {
    slice.facts.endpoints.push_back(std::move(wanted.begin()->second));
    wanted.erase(wanted.begin());
    slice.changed = true;
  }
}

// That will be closest to full with so many more; nullptr: none has room for all.
Slice* SliceFor(std::vector<Slice>& slices, size_t count) {
  Slice* best = nullptr;
  for (Slice& slice : slices) {
    const size_t full = slice.facts.endpoints.size() + count;
    if (slice.changed || full > kSliceEndpointsMax) continue;
    if (best == nullptr || slice.facts.endpoints.size() > best->facts.endpoints.size())
      best = &slice;
  }
  return best;
}

// Puts what is wanted into the group's slices; those that end up empty are surplus.
void Arrange(Group& group, const SliceMeta& meta, const std::string& type,
             std::vector<Slice>& surplus) {
  std::vector<Slice>& slices = group.slices;
  for (Slice& slice : slices) KeepWanted(slice, group.wanted);
  const auto empty = std::ranges::stable_partition(
      slices, [](const Slice& slice) { return !slice.facts.endpoints.empty() || !slice.changed; });
  std::ranges::move(empty, std::back_inserter(surplus));
  slices.erase(empty.begin(), empty.end());
  for (Slice& slice : slices) {
    if (slice.head->labels != meta.labels) slice.changed = true;
  }
  // The fullest first.
  std::vector<Slice*> open;
  for (Slice& slice : slices) {
    if (slice.changed) open.push_back(&slice);
  }
  std::ranges::stable_sort(open, std::ranges::greater(),
                           [](const Slice* slice) { return slice->facts.endpoints.size(); });
  for (Slice* slice : open) Fill(*slice, group.wanted);
  while (!group.wanted.empty()) {
    Slice* slice =
        group.wanted.size() < kSliceEndpointsMax ? SliceFor(slices, group.wanted.size()) : nullptr;
    if (slice == nullptr) {
      slice = &slices.emplace_back();
      slice->facts = {
          .address_type = type, .ports = group.ports, .endpoints = {}, .annotations = {}};
    }
    Fill(*slice, group.wanted);
  }
}

Groups GroupsOf(const View& view, bool ipv6) {
  Groups groups;
  for (const PodRef& pod : view.pods) {
    std::vector<EndpointPort> ports = PortsOf(view.facts, pod);
    Group& group = groups[ports];
    group.ports = std::move(ports);
    std::optional<Endpoint> endpoint = EndpointFor(view, pod, ipv6);
    if (endpoint.has_value()) group.wanted[KeyOf(*endpoint)] = std::move(*endpoint);
  }
  return groups;
}

// One without endpoints, for whoever looks for the Service's slices.
Slice Placeholder(const std::string& type) {
  Slice slice{.head = nullptr, .facts = {}, .changed = true};
  slice.facts.address_type = type;
  return slice;
}

bool IsPlaceholder(const Slice& slice, const SliceMeta& meta) {
  return slice.facts.endpoints.empty() && slice.facts.ports.empty() &&
         slice.head->labels == meta.labels && Controls(*meta.owner, *slice.head);
}

void PlanFamily(const View& view, const SliceMeta& meta, const std::string& type,
                const std::vector<Slice>& known, Plan& plan) {
  Groups groups = GroupsOf(view, type == "IPv6");
  std::vector<Slice> surplus;
  for (const Slice& slice : known) {
    if (slice.facts.address_type != type) continue;
    const auto group = groups.find(Sorted(slice.facts.ports));
    if (group != groups.end() && Controls(view.head, *slice.head)) {
      group->second.slices.push_back(slice);
    } else {
      surplus.push_back(slice);
    }
  }
  std::vector<Slice> slices;
  for (auto& [ports, group] : groups) {
    Arrange(group, meta, type, surplus);
    std::ranges::move(group.slices, std::back_inserter(slices));
  }
  if (slices.empty()) {
    if (surplus.size() == 1 && IsPlaceholder(surplus.front(), meta)) return;
    slices.push_back(Placeholder(type));
  }
  AppendSliceWrites(meta, std::move(slices), std::move(surplus), plan);
}

// The Service's labels, but for those that say whose slice it is.
api::StringMap SliceLabels(const View& view) {
  api::StringMap labels = view.head.labels;
  std::erase_if(labels, [](const auto& label) {
    return label.first == kServiceNameLabel || label.first == kSliceManagedByLabel ||
           label.first == kHeadlessLabel;
  });
  if (view.facts.headless) Put(labels, kHeadlessLabel, "");
  Put(labels, kServiceNameLabel, view.head.name);
  Put(labels, kSliceManagedByLabel, std::string(kSliceController));
  return labels;
}

void PlanSlices(const View& view, const std::string& trigger_time, Plan& plan) {
  const SliceMeta meta{.owner = &view.head,
                       .labels = SliceLabels(view),
                       .annotations = {},
                       .trigger_time = trigger_time,
                       .may_create = MayCreateFor(view.objects, view.head)};
  std::vector<Slice> known =
      SlicesOf(view.objects, view.head.namespace_name, view.head.name, kSliceController);
  for (const std::string& family : view.facts.families) PlanFamily(view, meta, family, known, plan);
  std::erase_if(known, [&](const Slice& slice) {
    return std::ranges::find(view.facts.families, slice.facts.address_type) !=
           view.facts.families.end();
  });
  AppendSliceWrites(meta, {}, std::move(known), plan);
}

// ---- Endpoints ----------------------------------------------------------------------------------

constexpr std::string_view kEndpointsManagedByLabel = "endpoints.kubernetes.io/managed-by";
constexpr std::string_view kEndpointsController = "endpoint-controller";
constexpr std::string_view kOverCapacity = "endpoints.kubernetes.io/over-capacity";

// A subset for each pod and port, to be packed.
std::vector<EndpointSubset> SubsetsOf(const View& view) {
  const bool ipv6 = view.facts.families.front() == "IPv6";
  std::vector<EndpointSubset> subsets;
  for (const PodRef& pod : view.pods) {
    if (pod.head->deletion.has_value() && !view.facts.publishes_unready) continue;
    const auto ip = std::ranges::find_if(
        pod.facts->ips, [&](const std::string& address) { return IsIpv6(address) == ipv6; });
    if (ip == pod.facts->ips.end()) continue;
    const EndpointAddress address{.ip = *ip,
                                  .hostname = HostnameFor(pod, view.head),
                                  .node = pod.facts->node,
                                  .target = TargetOf(*pod.head)};
    EndpointSubset subset;
    (view.facts.publishes_unready || pod.facts->ready ? subset.ready : subset.unready) = {address};
    subset.ports = PortsOf(view.facts, pod);
    if (!subset.ports.empty() || (view.facts.ports.empty() && view.facts.portless))
      subsets.push_back(std::move(subset));
  }
  return Repacked(subsets);
}

void PlanEndpoints(const View& view, const std::string& trigger_time, Plan& plan) {
  std::vector<EndpointSubset> subsets = SubsetsOf(view);
  const bool truncated = Truncate(subsets);
  api::StringMap labels = view.head.labels;
  std::erase_if(labels, [](const auto& label) { return label.first == kHeadlessLabel; });
  if (view.facts.headless) Put(labels, kHeadlessLabel, "");
  Put(labels, kEndpointsManagedByLabel, std::string(kEndpointsController));
  const Slot slot =
      view.objects.Find(api::KindId::kEndpoints, view.head.namespace_name, view.head.name);
  const api::StringMap annotations = {{std::string(kTriggerTime), trigger_time},
                                      {std::string(kOverCapacity), truncated ? "truncated" : ""}};
  if (slot == kNoSlot) {
    if (!MayCreateFor(view.objects, view.head)) return;
    Write create = CreateOf(api::KindId::kEndpoints, view.head.namespace_name, view.head.name);
    create.metadata = R"("labels":)" + MapText(labels);
    AddMembers(create.metadata, AnnotationsPatch({}, annotations));
    create.body = R"("subsets":)" + SubsetsText(subsets);
    plan.writes.push_back(std::move(create));
    return;
  }
  const Head& head = view.objects.head(slot);
  if (head.deletion.has_value()) return;
  const EndpointsFacts& known = *view.objects.endpoints(slot);
  const bool marked = api::Find(known.annotations, kOverCapacity).has_value();
  if (head.labels == labels && marked == truncated && Repacked(known.subsets) == subsets) return;
  Write patch = PatchOf(head);
  patch.metadata = MapPatch("labels", head.labels, labels);
  AddMembers(patch.metadata, AnnotationsPatch(known.annotations, annotations));
  patch.body = R"("subsets":)" + SubsetsText(subsets);
  plan.writes.push_back(std::move(patch));
}

// Of the addresses of one readiness, so many of `count` as the subset's part of `total` is, rounded
// up.
void Cut(std::vector<EndpointAddress>& addresses, size_t total, size_t count, size_t& left) {
  const size_t part = std::min((addresses.size() * count + total - 1) / total, left);
  addresses.resize(std::min(addresses.size(), part));
  left -= addresses.size();
}

}  // namespace

std::string ServiceId(std::string_view namespace_name, std::string_view name) {
  return std::string(namespace_name).append("/").append(name);
}

std::string_view ServiceNameOf(const Head& slice) {
  return api::Find(slice.labels, kServiceNameLabel).value_or("");
}

Plan PlanService(const Objects& objects, std::string_view id, std::optional<TriggerTimes>& seen) {
  Plan plan;
  const auto [space, name] = NamesOf(id);
  const Slot slot = objects.Find(api::KindId::kService, space, name);
  if (slot == kNoSlot) {
    seen.reset();
    const Slot left = objects.Find(api::KindId::kEndpoints, space, name);
    const bool ours =
        left != kNoSlot &&
        api::Find(objects.head(left).labels, kEndpointsManagedByLabel) == kEndpointsController;
    return ours ? PlanLeftEndpoints(objects, id) : plan;
  }
  const ServiceFacts& service = *objects.service(slot);
  if (service.external || !service.selects) return plan;
  const View view = ViewOf(objects, slot);
  const std::string trigger_time = TriggerTimeOf(objects, slot, seen);
  PlanSlices(view, trigger_time, plan);
  PlanEndpoints(view, trigger_time, plan);
  plan.rest =
      std::min(kServiceRestMax, Duration::Milliseconds(static_cast<int64_t>(view.pods.size())));
  return plan;
}

Plan PlanLeftEndpoints(const Objects& objects, std::string_view id) {
  Plan plan;
  const auto [space, name] = NamesOf(id);
  if (objects.Find(api::KindId::kService, space, name) != kNoSlot) return plan;
  const Slot left = objects.Find(api::KindId::kEndpoints, space, name);
  if (left == kNoSlot || objects.head(left).deletion.has_value()) return plan;
  plan.writes.push_back(DeleteOf(objects.head(left)));
  return plan;
}

std::vector<EndpointSubset> Repacked(const std::vector<EndpointSubset>& subsets) {
  using AddressKey = std::pair<std::string, std::string>;  // IP and uid.
  std::map<AddressKey, EndpointAddress> addresses;         // As they were said first.
  std::map<std::optional<EndpointPort>, std::map<AddressKey, bool>> by_port;
  for (const EndpointSubset& subset : subsets) {
    std::vector<std::optional<EndpointPort>> ports(subset.ports.begin(), subset.ports.end());
    if (ports.empty()) ports.emplace_back(std::nullopt);
    const auto add = [&](const std::vector<EndpointAddress>& list, bool ready) {
      for (const EndpointAddress& address : list) {
        const AddressKey key{address.ip, address.target ? address.target->uid : std::string()};
        addresses.emplace(key, address);
        for (const std::optional<EndpointPort>& port : ports) {
          const auto [at, fresh] = by_port[port].emplace(key, ready);
          if (!fresh) at->second = at->second && ready;
        }
      }
    };
    add(subset.ready, true);
    add(subset.unready, false);
  }
  std::map<std::map<AddressKey, bool>, std::vector<EndpointPort>> by_addresses;
  for (const auto& [port, hosts] : by_port) {
    std::vector<EndpointPort>& ports = by_addresses[hosts];
    if (port.has_value()) ports.push_back(*port);
  }
  std::vector<EndpointSubset> packed;
  for (auto& [hosts, ports] : by_addresses) {
    EndpointSubset& subset = packed.emplace_back();
    subset.ports = std::move(ports);
    for (const auto& [key, ready] : hosts)
      (ready ? subset.ready : subset.unready).push_back(addresses.at(key));
  }
  std::ranges::sort(packed, {}, &EndpointSubset::ports);
  return packed;
}

bool Truncate(std::vector<EndpointSubset>& subsets) {
  size_t ready = 0;
  size_t unready = 0;
  for (const EndpointSubset& subset : subsets) {
    ready += subset.ready.size();
    unready += subset.unready.size();
  }
  if (ready + unready <= kEndpointsAddressesMax) return false;
  const bool cut_ready = ready > kEndpointsAddressesMax;
  const size_t room = cut_ready ? kEndpointsAddressesMax : kEndpointsAddressesMax - ready;
  size_t left = room;
  for (EndpointSubset& subset : subsets) {
    if (cut_ready) {
      Cut(subset.ready, ready, room, left);
      subset.unready.clear();
    } else {
      Cut(subset.unready, unready, room, left);
    }
  }
  return true;
}

}  // namespace berth::controllers
