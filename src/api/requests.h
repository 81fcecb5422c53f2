#pragma once

#include <string_view>

#include "api/types.h"

// What a pod asks of a node, counted as Kubernetes 1.36 counts it
// (https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers,
// https://kubernetes.io/docs/concepts/workloads/pods/init-containers/, KEP-1287, KEP-2837).
//
// Pure. Units as in ResourceAmount; sums are clamped to limits::kAmountMax. Cost: O(containers
// x resources).
namespace berth::api {

inline constexpr std::string_view kCpuName = "cpu";
inline constexpr std::string_view kMemoryName = "memory";
inline constexpr std::string_view kHugePagesPrefix = "hugepages-";

// What scores count for a container that names no request of its own; an explicit 0 stays 0.
inline constexpr int64_t kDefaultCpuMilli = 100;
inline constexpr int64_t kDefaultMemoryBytes = 200 * 1024 * 1024;

struct RequestOptions {
  // The pod runs: a container or sidecar that is being resized counts for the most of what is
  // asked, allocated and actual; once the kubelet called the resize infeasible, what is asked no
  // longer counts.
  bool running = false;
  // Puts the stand-ins of scores in place of missing requests.
  bool stand_in_cpu = false;
  bool stand_in_memory = false;
  // Leaves spec.resources out.
  bool without_pod_level = false;
};

// The larger of what all containers and sidecars use together and what the largest init container
// uses beside the sidecars started before it; pod-level cpu, memory and huge pages replace that;
// overhead is added.
[[nodiscard]] ResourceList RequestsOf(const Pod& pod, const RequestOptions& options);

// What filters check for a pod that waits.
[[nodiscard]] ResourceList PendingRequests(const Pod& pod);
// What scores count for a pod that waits: without pod-level resources, as upstream.
[[nodiscard]] ResourceList PendingScoring(const Pod& pod);
// What a pod takes of its node, for filters and, with stand-ins, for scores. A pod with pod-level
// resources gets stand-ins only for what it requests nowhere at all, as upstream.
[[nodiscard]] ResourceList BoundRequests(const Pod& pod);
[[nodiscard]] ResourceList BoundScoring(const Pod& pod);

}  // namespace berth::api
