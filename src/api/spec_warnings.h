#pragma once

#include <string>
#include <vector>

#include "api/json.h"
#include "api/kinds.h"

namespace berth::api {

// What a user is told of an object that is valid and may not do what he thinks: amounts of a part
// of a byte, variables and ports that hide each other, selectors that match nothing, labels and
// volumes whose time is over. In upstream's words and order (kube-apiserver 1.36, asked). `old`:
// what a change is of, null for a new object; a change of what does not count as its spec says
// nothing.
//
// REQUIRES: the object is valid. Cost: a walk of the fields that warnings are about.
[[nodiscard]] std::vector<std::string> SpecWarnings(const Kind& kind, const Json* old,
                                                    const Json& object);

}  // namespace berth::api
