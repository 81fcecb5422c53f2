#pragma once

#include <string>

namespace berth::control {

class Scheduler;

// The text of /metrics, in Prometheus' format. Those that kube-scheduler has and that can be told
// truthfully are named and divided as there; docs/OPERATIONS.md says which are not. O(pods).
[[nodiscard]] std::string MetricsText(const Scheduler& scheduler);

}  // namespace berth::control
