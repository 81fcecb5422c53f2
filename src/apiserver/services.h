#pragma once

#include "api/json.h"
#include "apiserver/problem.h"
#include "base/prng.h"
#include "store/store.h"

// What the server gives a Service: an address within the cluster, and ports of nodes
// (https://kubernetes.io/docs/concepts/services-networking/service/). Nobody listens on them:
// simulated nodes forward nothing, but who reads a Service finds what it expects.
namespace berth::apiserver {

// 10.96.0.0/16, of which the first and the last are nobody's.
inline constexpr uint32_t kServiceNetwork = 10U << 24 | 96U << 16;
inline constexpr uint32_t kServiceAddresses = 1U << 16;
inline constexpr int64_t kNodePortMin = 30'000;
inline constexpr int64_t kNodePortMax = 32'767;

// Takes over what an update leaves out of what the old one was given, and drops what belongs to the
// old type alone. Before validation.
void KeepAllocated(const api::Json& old, api::Json& service);

// Gives the Service what it lacks: spec.clusterIP and clusterIPs, IP families (there is IPv4
// alone), node ports. What it names itself must be of the range and nobody else's: 422. After
// validation. Cost: O(Services), those with node ports are parsed.
[[nodiscard]] Outcome<void> AllocateService(const store::Store& store, Prng& prng, Subject subject,
                                            api::Json& service);

}  // namespace berth::apiserver
