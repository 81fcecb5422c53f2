#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/kinds.h"
#include "api/quantity.h"

// What objects take of a ResourceQuota, as upstream's evaluators count it
// (https://kubernetes.io/docs/concepts/policy/resource-quotas/).
//
// Pure. Documents are in their storage kind and valid. Cost: linear in the document.
namespace berth::api {

// Amounts by the name of the resource.
using Amounts = std::map<std::string, Quantity, std::less<>>;

// A list of resources as a document has it; what is no amount is left out.
[[nodiscard]] Amounts AmountsOf(const JsonObject& list);
[[nodiscard]] JsonObject PrintAmounts(const Amounts& amounts);
// Adds to what is there; a sum that no Quantity holds stays as it was.
void AddAmounts(Amounts& sum, const Amounts& added);
void SubtractAmounts(Amounts& sum, const Amounts& taken);
void DropZeros(Amounts& amounts);
[[nodiscard]] bool SameAmounts(const Amounts& a, const Amounts& b);
// `cpu=1,memory=1Gi`.
[[nodiscard]] std::string JoinAmounts(const Amounts& amounts);

// What a pod's containers request, or are limited to (`list`: "requests" or "limits"): together, or
// the most that its init containers need before them; pod-level amounts replace that.
[[nodiscard]] Amounts ContainerAmounts(const Json& pod, std::string_view list);

// "count/deployments.apps": what one object of the resource takes one of.
[[nodiscard]] std::string CountName(std::string_view group_resource);

// All that an object takes.
[[nodiscard]] Amounts UsageOf(const Kind& kind, const Json& object);
// Whether objects of the kind may take of a resource. A quota counts those kinds only.
[[nodiscard]] bool TakesOf(const Kind& kind, std::string_view resource);

// Whether the usage of objects of the kind depends on what is in them: of others it is one each.
[[nodiscard]] bool HasUsageOfItsOwn(KindId kind);

// Whether the quota's scopes and scopeSelector take in the object.
[[nodiscard]] bool InScope(const Json& quota, KindId kind, const Json& object);

// A pod that has a deadline is of the scope Terminating.
[[nodiscard]] bool HasDeadline(const Json& pod);

// Why a pod can't be counted: "must specify cpu for: a,b; memory for: a", or "". A quota on cpu or
// memory wants each container to name its own.
[[nodiscard]] std::string WhyUncounted(const Json& pod, const JsonObject& hard);

}  // namespace berth::api
