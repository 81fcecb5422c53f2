#pragma once

#include <map>
#include <string_view>

#include "api/validate_common.h"

// Private to api/: what volumes are made of, and how containers have them.
namespace berth::api::rules {

// A pod's volumes that are fine, by name: whether each is a claim's, which devices want.
using PodVolumes = std::map<std::string_view, bool>;
PodVolumes CheckPodVolumes(FieldErrors& errors, const Path& spec_path, const Json& spec,
                           bool is_template, std::string_view pod_name);
// A container's volumeMounts and volumeDevices.
void CheckMounts(FieldErrors& errors, const Path& container, const Json& body,
                 const PodVolumes& volumes);

// What a PersistentVolume is made of: exactly one of its spec's sources.
void CheckPersistentSource(FieldErrors& errors, const Path& spec_path, const Json& volume);

void CheckDriverName(FieldErrors& errors, const Path& path, std::string_view name);

// Paths that containers are given: without `..`, relative, and with no name that starts with `..`.
void CheckNoBacksteps(FieldErrors& errors, const Path& path, std::string_view where);
void CheckDescending(FieldErrors& errors, const Path& path, std::string_view where);
void CheckLocalPath(FieldErrors& errors, const Path& path, std::string_view where);

}  // namespace berth::api::rules
