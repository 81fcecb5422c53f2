#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of Endpoints, EndpointSlices, NetworkPolicies, Ingresses and their
// classes. `old` is nullptr for a creation.
namespace berth::api::rules {

// Addresses that traffic can't be sent to. REQUIRES: `ip` is one.
void CheckReachable(FieldErrors& errors, const Path& path, std::string_view ip);
void CheckEndpoints(FieldErrors& errors, const Json* old, const Json& object);
void CheckEndpointSlice(FieldErrors& errors, const Json* old, const Json& object);
void CheckNetworkPolicy(FieldErrors& errors, const Json* old, const Json& object);
void CheckIngress(FieldErrors& errors, const Json* old, const Json& object);
// The status of an Ingress that replaces `old`.
void CheckIngressStatus(FieldErrors& errors, const Json& old, const Json& object);
// Where a balancer hands traffic in, by an address or a host. Addresses of `before` stay.
void CheckBalancerIp(FieldErrors& errors, const Path& path, const JsonArray& before,
                     const Json& place);
void CheckBalancerHost(FieldErrors& errors, const Path& path, const Json& place);
void CheckIngressClass(FieldErrors& errors, const Json* old, const Json& object);

}  // namespace berth::api::rules
