#pragma once

#include <string_view>

#include "api/json.h"

// Private to api/: the defaults of pods and pod templates.
namespace berth::api {

// A pod's spec, or a template's (whose requests and links are not filled in).
void DefaultPodSpec(JsonObject& spec, bool is_pod);

// Makes what a new pod's affinity and spread ask of its own labels parts of their selectors
// (matchLabelKeys, mismatchLabelKeys).
void MergeLabelKeys(Json& pod);

// What is a default of the sources of a pod's volume, and of a PersistentVolume.
void DefaultSources(JsonObject& owner);

// Whether an image without a tag or digest, or with the tag "latest".
[[nodiscard]] bool IsLatestImage(std::string_view image);

// Rounds a resource list's quantities up to thousandths, as upstream does wherever it decodes one.
void RoundResources(JsonObject& list);

}  // namespace berth::api
