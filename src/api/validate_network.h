#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of Endpoints, EndpointSlices, NetworkPolicies, Ingresses and their
// classes. `old` is
// nullptr for a creation.
namespace berth::api::rules {

// Addresses that traffic can't be sent to. REQUIRES: `ip` is one.
void CheckReachable(FieldErrors& errors, const Path& path, std::string_view ip);
void CheckEndpoints(FieldErrors& errors, const Json* old, const Json& object);
void CheckEndpointSlice(FieldErrors& errors, const Json* old, const Json& object);
void CheckNetworkPolicy(FieldErrors& errors, const Json* old, const Json& object);
void CheckIngress(FieldErrors& errors, const Json* old, const Json& object);
void CheckIngressClass(FieldErrors& errors, const Json* old, const Json& object);

}  // namespace berth::api::rules
