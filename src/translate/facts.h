#pragma once

#include <string>
#include <string_view>

#include "api/types.h"
#include "base/result.h"
#include "model/delta.h"
#include "model/vocabulary.h"

// Kubernetes objects to the model's facts. Names, amounts and selectors are interned in
// `vocabulary`; the facts are good for the State that owns it. Cost: O(size of the object), a few
// microseconds.
namespace berth::translate {

// GPUs as berth counts them: under 1000 a share of one device, multiples of 1000 whole devices.
inline constexpr std::string_view kGpuMilliResource = "berth.dev/gpu-milli";
// On a node: what kind its devices are. In node selectors and required node affinity: which are
// allowed.
inline constexpr std::string_view kGpuModelLabel = "berth.dev/gpu-model";
// On a Binding, and on the pod from then on: the devices it has, as "0,3".
inline constexpr std::string_view kGpuIndexAnnotation = "berth.dev/gpu-index";

// `ours` is left true: which scheduler a pod belongs to is the caller's to say.
//
// A single node name in required node affinity becomes a pin and leaves the class, so that the pods
// of a DaemonSet share one. Fails with kInvalid on GPU amounts that are neither a share nor whole
// devices, and with kTooLarge when the cluster has more kinds of resource than the model holds.
[[nodiscard]] Result<model::PodUpsert> PodFacts(const api::Pod& pod, model::Vocabulary& vocabulary);

// Taints of unknown effect are left out, as upstream ignores them.
[[nodiscard]] Result<model::NodeUpsert> NodeFacts(const api::Node& node,
                                                  model::Vocabulary& vocabulary);

// The class alone, for what-if questions and tests.
[[nodiscard]] Result<model::ClassSpec> ClassOf(const api::Pod& pod, model::Vocabulary& vocabulary);

}  // namespace berth::translate
