#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "api/workloads.h"
#include "client/request.h"

namespace berth::control {

// What the patches of statuses that the scheduler writes are made of. All functions: pure, linear
// in what they return.

// The resource of a kind of Kueue's.
[[nodiscard]] client::Resource KueueResource(std::string plural);

// The beginning of a merge patch of a part of an object, up to its first field. It names the object
// by uid and the version that it was decided on, so that an API server refuses it for any other.
[[nodiscard]] std::string PatchStart(const api::ObjectMeta& meta, std::string_view part);
[[nodiscard]] std::string StatusPatchStart(const api::ObjectMeta& meta);

// The condition as it stands in a list of conditions.
[[nodiscard]] std::string ConditionText(const api::Condition& condition);
[[nodiscard]] std::string ConditionsText(const std::vector<api::Condition>& conditions);

}  // namespace berth::control
