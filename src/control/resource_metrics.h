#pragma once

#include <string>

namespace berth::control {

class Scheduler;

// The text of /metrics/resources, in Prometheus' format: what each pod that has not ended asks for,
// whoever schedules it, named and counted as kube-scheduler does
// (pkg/scheduler/metrics/resources/resources.go). That is by its spec alone: a pod that is being
// resized may hold more of its node. Empty while another replica leads. O(pods).
[[nodiscard]] std::string ResourceMetricsText(const Scheduler& scheduler);

}  // namespace berth::control
