#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types.h"

namespace berth::translate {

// What a profile of kube-scheduler's configuration says of the pods of its scheduler name, as far
// as it is part of what they ask for (docs/design/0027-profiles.md); the rest is
// model::ProfileRules. As it stands here by default it is the default profile.
struct PodProfile {
  // Of NodeAffinity's addedAffinity.
  std::optional<std::vector<api::NodeSelectorTerm>> added_terms = {};
  std::vector<api::PreferredTerm> added_preferences = {};
  // Of pods that have none, with the selector that they get; nothing: Kubernetes' own.
  std::optional<std::vector<api::TopologySpreadConstraint>> default_constraints = {};
  // Extended resources that are charged, and not asked for; and what stands before their '/'.
  std::vector<std::string> ignored_resources = {};
  std::vector<std::string> ignored_groups = {};
  // Whether the filters act.
  bool asks_amounts = true;
  bool asks_ports = true;
  bool asks_features = true;
  bool asks_affinity = true;  // Of nodes.
  bool asks_spread = true;
  // Whether PodTopologySpread scores.
  bool scores_spread = true;
  bool operator==(const PodProfile&) const = default;
};

// By scheduler name; of others the default ones hold.
using PodProfiles = std::map<std::string, PodProfile, std::less<>>;

}  // namespace berth::translate
