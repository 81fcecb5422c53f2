#pragma once

#include <string_view>
#include <vector>

#include "api/types.h"

// Whether a node is one that a pod may be put on by its spec, or a volume used on. Pure functions,
// for few nodes: cycle/ has its own, by columns.
namespace berth::api {

// nodeSelector and required node affinity, of terms one; a term without requirements matches none.
[[nodiscard]] bool MatchesNode(const PodSpec& spec, const Node& node);

// Whether the node is one of those that the terms mean.
[[nodiscard]] bool MatchesAny(const std::vector<NodeSelectorTerm>& terms, const Node& node);

// Whether each taint of the effect is tolerated.
[[nodiscard]] bool ToleratesAll(const std::vector<Toleration>& tolerations, const Node& node,
                                std::string_view effect);

}  // namespace berth::api
