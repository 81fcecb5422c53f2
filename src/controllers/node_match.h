#pragma once

#include <string_view>
#include <vector>

#include "api/types.h"

// Whether a node is one that a pod may be put on by its spec. Pure functions, for controllers that
// choose nodes themselves; the scheduler has its own, by columns.
namespace berth::controllers {

// nodeSelector and required node affinity, of terms one; a term without requirements matches none.
[[nodiscard]] bool MatchesNode(const api::PodSpec& spec, const api::Node& node);

// Whether the node is one of those that the terms mean.
[[nodiscard]] bool MatchesAny(const std::vector<api::NodeSelectorTerm>& terms,
                              const api::Node& node);

// Whether each taint of the effect is tolerated.
[[nodiscard]] bool ToleratesAll(const std::vector<api::Toleration>& tolerations,
                                const api::Node& node, std::string_view effect);

}  // namespace berth::controllers
