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

// Of a volume or claim: who wrote down that they are each other's; of a claim: that both are.
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
// Of a volume: who made it; of a claim: who is to make one, and for a pod on which node.
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kStorageProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kStorageProvisionerBeta =
    "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
// Of a StorageClass: for claims that name none.
inline constexpr std::string_view kDefaultClass = "storageclass.kubernetes.io/is-default-class";
inline constexpr std::string_view kDefaultClassBeta =
    "storageclass.beta.kubernetes.io/is-default-class";
// On a Binding, and on the pod from then on: the devices it has, as "0,3".
inline constexpr std::string_view kGpuIndexAnnotation = "berth.dev/gpu-index";
// The provisioner of simulated clusters: its volumes are there at once and hold nothing.
inline constexpr std::string_view kSimulatedProvisioner = "berth.dev/simulated";

}  // namespace berth::api
