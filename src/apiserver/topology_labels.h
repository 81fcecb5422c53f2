#pragma once

#include <string_view>

#include "api/json.h"
#include "store/store.h"

// Zones and regions, as upstream's admission plugin PodTopologyLabels acts on them: a pod that gets
// its node has the node's.
namespace berth::apiserver {

// Sets the labels topology.kubernetes.io/zone and region of a binding, or of a new pod, to those
// that the node has; others stay, and all where there is no such node. Cost: O(log nodes).
void AddTopologyLabels(const store::Store& store, std::string_view node, api::Json& object);

}  // namespace berth::apiserver
