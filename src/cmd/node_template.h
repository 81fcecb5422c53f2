#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "nodes/node_spec.h"

namespace berth::cmd {

// `count` simulated nodes: copies of the Node manifest (YAML or JSON) in the file, or berth's own
// kind of node without one. Of the manifest count labels, annotations, taints, capacity and
// allocatable; its name is the prefix of theirs.
Result<std::vector<nodes::NodeSpec>> MakeNodeSpecs(const std::string& path, int64_t count);

}  // namespace berth::cmd
