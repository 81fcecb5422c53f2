#pragma once

#include <cstddef>
#include <string_view>

#include "api/json.h"
#include "api/kinds.h"

// Private to api/: the defaults of kinds, by what they are for. Each does nothing for the kinds of
// the others.
namespace berth::api {

// What makes pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, Jobs
// and CronJobs.
void DefaultWorkload(KindId kind, JsonObject& object);
// Services, their endpoints, NetworkPolicies.
void DefaultService(KindId kind, JsonObject& object);
// Volumes, claims, their classes and drivers.
void DefaultStorage(KindId kind, JsonObject& object);
// Bindings of roles, limits, webhooks, definitions of custom kinds.
void DefaultPolicy(KindId kind, JsonObject& object);

// A claim as it stands in a StatefulSet's templates too.
void DefaultClaim(JsonObject& claim);

// The text of a member, or "".
[[nodiscard]] std::string_view TextIn(const JsonObject& object, std::string_view key);
// Sets a text where there is none, or an empty one.
void SetText(JsonObject& object, std::string_view key, std::string_view text);
// Does something with each object of a list.
template <typename Change>
void ForEachIn(JsonObject& object, std::string_view list, const Change& change) {
  Json* items = object.if_contains(list);
  JsonArray* array = items == nullptr ? nullptr : items->if_array();
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if ((*array)[i].is_object()) change((*array)[i].get_object());
  }
}

}  // namespace berth::api
