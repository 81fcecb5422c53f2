#pragma once

#include <string>

#include "control/extenders.h"
#include "env/http.h"

// A simulated scheduler extender, which is interested in all pods.
namespace berth::sim {

[[nodiscard]] control::ExtenderOptions SimulatedExtender();

// What it answers: it permits all nodes, or none if it refuses, and scores them by pod and node.
// REQUIRES: a request of control/extenders.
[[nodiscard]] std::string ExtenderAnswer(const env::HttpRequest& request, bool refuses);

}  // namespace berth::sim
