#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/service_facts.h"
#include "controllers/write.h"

// The pods behind Services: EndpointSlices and Endpoints
// (https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/).
namespace berth::controllers {

// What changes of pods become one write: so long a Service's plan waits for more of them.
inline constexpr Duration kServiceBatch = Duration::Milliseconds(100);
// An EndpointSlice holds so many endpoints, the Endpoints of a Service so many addresses.
inline constexpr size_t kSliceEndpointsMax = 100;
inline constexpr size_t kEndpointsAddressesMax = 1000;
// Of an EndpointSlice that mirrors a subset of Endpoints.
inline constexpr size_t kMirroredMax = 1000;
// After a write its Service rests a millisecond for each of its endpoints, at most so long: what a
// rollout writes is bounded by endpoints a second, whatever the size of its Service.
inline constexpr Duration kServiceRestMax = Duration::Seconds(1);

// What the last plan of a Service saw: by the name of each pod that it selects.
struct TriggerTimes {
  std::map<std::string, Instant, std::less<>> pods;
  Instant service;
  bool operator==(const TriggerTimes&) const = default;
};

// A Service, Endpoints or what is of them, by name.
[[nodiscard]] std::string ServiceId(std::string_view namespace_name, std::string_view name);

// The Service of that name whose EndpointSlice it is; empty: of none.
[[nodiscard]] std::string_view ServiceNameOf(const Head& slice);

// The EndpointSlices and the Endpoints of a Service with a selector, where they aren't as they
// should be; of a Service that is gone, the Endpoints that were kept for it. Slices are changed as
// upstream changes them: those that have to change anyway are filled up first, then one that has
// room for all that is left, and only then new ones are made; one without endpoints stays for each
// IP family. Cost: O(pods of the Service, log of the namespace).
// What is written says when it began: the earliest of the times at which pods came to be ready, or
// not, that were not seen at the last plan, `seen`; at the first plan when the Service was made.
[[nodiscard]] Plan PlanService(const Objects& objects, std::string_view id,
                               std::optional<TriggerTimes>& seen);

// A Service has gone: so do Endpoints of its name, whoever made them.
[[nodiscard]] Plan PlanLeftEndpoints(const Objects& objects, std::string_view id);

// The EndpointSlices that mirror Endpoints which somebody made for a Service without a selector,
// one for each subset and IP family; those of other Endpoints go.
[[nodiscard]] Plan PlanMirror(const Objects& objects, std::string_view id);

// ---- Parts, for tests ---------------------------------------------------------------------------

// What offers the same ports together, as upstream packs it: addresses by IP and uid, an address
// that is ready and not is not. In order.
[[nodiscard]] std::vector<EndpointSubset> Repacked(const std::vector<EndpointSubset>& subsets);
// Leaves kEndpointsAddressesMax addresses, ready ones first, of each subset in proportion. True
// when that is less than there were.
bool Truncate(std::vector<EndpointSubset>& subsets);

}  // namespace berth::controllers
