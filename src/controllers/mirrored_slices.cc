#include <algorithm>
#include <map>
#include <utility>

#include "controllers/service_slices.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kSkipLabel = "endpointslice.kubernetes.io/skip-mirror";
constexpr std::string_view kLeaderAnnotation = "control-plane.alpha.kubernetes.io/leader";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// Whether somebody else keeps these Endpoints, for a Service.
bool IsMirrored(const Objects& objects, const Head& head, const EndpointsFacts& endpoints) {
  if (head.deletion.has_value() || api::Find(head.labels, kSkipLabel) == "true" ||
      api::Find(endpoints.annotations, kLeaderAnnotation).has_value()) {
    return false;
  }
  const Slot service = objects.Find(api::KindId::kService, head.namespace_name, head.name);
  return service != kNoSlot && !objects.service(service)->selects;
}

Endpoint EndpointOf(const EndpointAddress& address, bool ready) {
  Endpoint endpoint;
  endpoint.addresses = {address.ip};
  endpoint.ready = ready;
  endpoint.hostname = address.hostname;
  endpoint.target = address.target;
  endpoint.node = address.node;
  return endpoint;
}

// Family and ports of a slice.
using Part = std::pair<std::string, std::vector<EndpointPort>>;

std::map<Part, std::vector<Endpoint>> PartsOf(const EndpointsFacts& endpoints) {
  std::map<Part, std::vector<Endpoint>> parts;
  for (const EndpointSubset& subset : Repacked(endpoints.subsets)) {
    size_t count = 0;
    const auto add = [&](const std::vector<EndpointAddress>& addresses, bool ready) {
      for (const EndpointAddress& address : addresses) {
        if (count++ >= kMirroredMax) return;
        const Part part{IsIpv6(address.ip) ? "IPv6" : "IPv4", subset.ports};
        parts[part].push_back(EndpointOf(address, ready));
      }
    };
    add(subset.ready, true);
    add(subset.unready, false);
  }
  return parts;
}

SliceMeta MetaOf(const Objects& objects, const Head& head, const EndpointsFacts& endpoints) {
  SliceMeta meta{.owner = &head,
                 .labels = head.labels,
                 .annotations = endpoints.annotations,
                 .annotated = true,
                 .may_create = MayCreateFor(objects, head)};
  Put(meta.labels, kServiceNameLabel, head.name);
  Put(meta.labels, kSliceManagedByLabel, std::string(kMirrorController));
  std::erase_if(meta.annotations, [](const auto& annotation) {
    return annotation.first == kTriggerTime || annotation.first == kLastApplied;
  });
  return meta;
}

}  // namespace

Plan PlanMirror(const Objects& objects, std::string_view id) {
  Plan plan;
  const std::string_view space = id.substr(0, id.find('/'));
  const std::string_view name = id.substr(id.find('/') + 1);
  std::vector<Slice> surplus = SlicesOf(objects, space, name, kMirrorController);
  const Slot slot = objects.Find(api::KindId::kEndpoints, space, name);
  if (slot == kNoSlot || !IsMirrored(objects, objects.head(slot), *objects.endpoints(slot))) {
    for (const Slice& slice : surplus) plan.writes.push_back(DeleteSeen(*slice.head, {}));
    return plan;
  }
  const Head& head = objects.head(slot);
  const EndpointsFacts& endpoints = *objects.endpoints(slot);
  const SliceMeta meta = MetaOf(objects, head, endpoints);
  std::vector<Slice> slices;
  for (auto& [part, wanted] : PartsOf(endpoints)) {
    const auto known = std::ranges::find_if(surplus, [&](const Slice& slice) {
      return Part(slice.facts.address_type, Sorted(slice.facts.ports)) == part;
    });
    Slice& slice = slices.emplace_back();
    if (known == surplus.end()) {
      slice.facts.address_type = part.first;
      slice.facts.ports = part.second;
      slice.changed = true;
    } else {
      slice = std::move(*known);
      surplus.erase(known);
      slice.changed = slice.facts.endpoints != wanted || slice.head->labels != meta.labels ||
                      slice.facts.annotations != meta.annotations || !Controls(head, *slice.head);
    }
    slice.facts.endpoints = std::move(wanted);
  }
  AppendSliceWrites(meta, std::move(slices), std::move(surplus), plan);
  return plan;
}

}  // namespace berth::controllers
