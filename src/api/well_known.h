#pragma once

#include <string_view>

// Labels, annotations and finalizers of objects of several kinds that more than one folder reads.
namespace berth::api {

// Of a node: its name, and the lowest level of a topology.
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";
// Of a pod: the uid of the Job that made it, which orphaning leaves there.
inline constexpr std::string_view kControllerUidLabel = "batch.kubernetes.io/controller-uid";
// Of a Job in a queue: with how few pods it may be started.
inline constexpr std::string_view kMinParallelismAnnotation = "kueue.x-k8s.io/job-min-parallelism";

// Likewise: for how many seconds it may run before it is deactivated.
inline constexpr std::string_view kMaxExecutionLabel = "kueue.x-k8s.io/max-exec-time-seconds";

// Keep a claim, and a volume, while they are in use.
inline constexpr std::string_view kClaimProtectionFinalizer = "kubernetes.io/pvc-protection";
inline constexpr std::string_view kVolumeProtectionFinalizer = "kubernetes.io/pv-protection";

// The old form of a volume's or claim's spec.storageClassName, which goes before it.
inline constexpr std::string_view kStorageClassAnnotation =
    "volume.beta.kubernetes.io/storage-class";

}  // namespace berth::api
