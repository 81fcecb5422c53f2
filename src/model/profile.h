#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ids.h"

// What a profile of kube-scheduler's configuration says to filters and scores
// (docs/design/0027-profiles.md). As it stands here by default it is the default profile of 1.36.
namespace berth::model {

// Of the normalised scores, 0 to 100. 0: the plugin doesn't score.
struct ScoreWeights {
  int64_t taints = 3;
  int64_t affinity = 2;  // NodeAffinity
  int64_t fit = 1;
  int64_t balanced = 1;
  int64_t spread = 2;
  int64_t pod_affinity = 2;
  int64_t images = 1;
  bool operator==(const ScoreWeights&) const = default;
};

enum class FitStrategy : uint8_t { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };

// Of a function of utilization, straight from point to point.
struct ShapePoint {
  int64_t utilization = 0;  // Percent.
  int64_t score = 0;        // 0 to 100.
  bool operator==(const ShapePoint&) const = default;
};

// The filters that a profile may do without. What other filters look at is said by the pod's class
// alone: a profile without them has classes that ask for nothing there.
enum class OptionalFilter : uint8_t {
  kNodeUnschedulable,
  kTaintToleration,
  kNodeAffinity,
  kVolumeRestrictions,
  kNodeVolumeLimits,
  kVolumeBinding,
  kVolumeZone,
  kInterPodAffinity,
};

struct ProfileRules {
  ScoreWeights weights = {};
  FitStrategy strategy = FitStrategy::kLeastAllocated;
  std::vector<ShapePoint> shape = {};  // Of kRequestedToCapacityRatio; by utilization.
  // What a pod's required terms of affinity give to whom they select.
  int64_t hard_affinity_weight = 1;
  // Whether pods that prefer nobody are not scored by what others prefer.
  bool ignores_others_preferences = false;
  bool preempts = true;
  bool deallocates = true;   // Who finds no node is told that no resource claim can be freed.
  uint32_t filters_off = 0;  // Bits of OptionalFilter.

  [[nodiscard]] bool filters(OptionalFilter filter) const {
    return ((filters_off >> static_cast<uint32_t>(filter)) & 1) == 0;
  }
  void Disable(OptionalFilter filter) { filters_off |= 1u << static_cast<uint32_t>(filter); }
  bool operator==(const ProfileRules&) const = default;
};

// With names, before there is a vocabulary.
struct ProfileOptions {
  struct Resource {
    std::string name;
    int64_t weight = 1;
    bool operator==(const Resource&) const = default;
  };
  std::string scheduler_name;
  ProfileRules rules = {};
  std::vector<Resource> fit = {};          // Empty: cpu and memory.
  std::vector<std::string> balanced = {};  // Likewise.
  bool operator==(const ProfileOptions&) const = default;
};

// A resource that is scored.
struct ScoredResource {
  ResourceId resource;
  int64_t weight = 1;
};

struct Profile {
  NameId scheduler_name;
  ProfileRules rules = {};
  // Empty: cpu and memory, of one weight, in any order; of `fit` with kLeastAllocated alone.
  std::vector<ScoredResource> fit = {};
  std::vector<ScoredResource> balanced = {};
};

// How many resources profiles may name beside those that there are anyway.
inline constexpr uint32_t kProfileResourcesMax = 32;

}  // namespace berth::model
