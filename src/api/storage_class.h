#pragma once

#include <optional>
#include <string_view>

#include "api/json.h"

// What PersistentVolumes, PersistentVolumeClaims and StorageClasses say of classes. Pure functions;
// safe on any document; what they return is a view of it.
// Source: k8s.io/component-helpers storage/volume, k8s.io/kubernetes pkg/volume/util.
namespace berth::api {

// The StorageClass that a claim or a volume names; nothing: it names none, and a claim gets the
// default one. Empty: it is to have none. The annotation of old counts before the field, also when
// it is empty.
[[nodiscard]] std::optional<std::string_view> StorageClassNameOf(const Json& object);

// Whether claims of the StorageClass wait for their first pod.
[[nodiscard]] bool WaitsForFirstConsumer(const Json& storage_class);

// Whether the StorageClass is marked as the one for claims that name none.
[[nodiscard]] bool IsDefaultStorageClass(const Json& storage_class);

}  // namespace berth::api
