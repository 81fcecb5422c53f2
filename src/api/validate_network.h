#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of Endpoints, EndpointSlices, NetworkPolicies and Ingresses. `old` is
// nullptr for a creation.
namespace berth::api::rules {

void CheckEndpoints(FieldErrors& errors, const Json* old, const Json& object);
void CheckEndpointSlice(FieldErrors& errors, const Json* old, const Json& object);
void CheckNetworkPolicy(FieldErrors& errors, const Json* old, const Json& object);
void CheckIngress(FieldErrors& errors, const Json* old, const Json& object);

}  // namespace berth::api::rules
