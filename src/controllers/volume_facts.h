#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/selector.h"
#include "api/types.h"

// What the controllers read of PersistentVolumes, PersistentVolumeClaims and StorageClasses. Pure.
// Cost: linear in the object. What is malformed is read as far as it goes: the server checked it.
namespace berth::controllers {

// Who a volume is for: the claim by name and, once it is bound, by uid.
struct ClaimTarget {
  std::string namespace_name;
  std::string name;
  std::string uid;
  bool operator==(const ClaimTarget&) const = default;
};

struct VolumeFacts {
  std::string phase;
  int64_t capacity = 0;            // Bytes.
  std::string capacity_text = {};  // spec.capacity, as JSON.
  std::vector<std::string> modes = {};
  std::string volume_mode = {};
  std::string class_name = {};
  std::string policy = {};
  std::optional<ClaimTarget> claim = {};
  bool bound_by_controller = false;
  std::string provisioner = {};                    // That made it; empty: a person did.
  std::vector<api::NodeSelectorTerm> places = {};  // Of nodes; empty: anywhere.
};

struct ClaimFacts {
  std::string phase;
  std::string volume = {};                     // spec.volumeName
  std::optional<std::string> class_name = {};  // Nothing: the default one. Empty: none.
  std::vector<std::string> modes = {};
  std::string volume_mode = {};
  int64_t request = 0;
  std::string request_text = {};
  std::optional<api::LabelQuery> selector = {};
  bool bind_completed = false;
  std::string provisioner = {};    // That was asked for a volume.
  std::string selected_node = {};  // By the scheduler.
  std::string status_text = {};    // status, as JSON, to compare with.
};

// A claim that a pod's ephemeral volume is to have, as its template says.
struct EphemeralClaim {
  std::string volume;
  std::string metadata = {};  // Members of metadata: labels and annotations, if any.
  std::string spec = {};      // As JSON.
};

// "<pod>-<volume>"
[[nodiscard]] inline std::string EphemeralClaimName(std::string_view pod, std::string_view volume) {
  return std::string(pod).append("-").append(volume);
}

struct StorageClassFacts {
  std::string provisioner;
  bool waits = false;  // For the first pod (WaitForFirstConsumer).
  bool is_default = false;
  std::string policy = {};
  std::string mount_options = {};  // As JSON; empty: none.
};

// Of a claim that is to be bound to a volume: what status.accessModes and capacity become.
[[nodiscard]] std::string BoundStatusOf(const VolumeFacts& volume);

[[nodiscard]] VolumeFacts ReadVolume(const api::Json& volume);
[[nodiscard]] ClaimFacts ReadClaim(const api::Json& claim);
[[nodiscard]] std::vector<EphemeralClaim> ReadEphemeralClaims(const api::Json& pod);
[[nodiscard]] StorageClassFacts ReadStorageClass(const api::Json& storage_class);

}  // namespace berth::controllers
