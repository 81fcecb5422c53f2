#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/result.h"

namespace berth::controllers {

// What is read of a ClusterRole beside its head.
struct RoleFacts {
  bool aggregates = false;  // Its rules are those of the roles that its selectors choose.
  std::vector<api::LabelSelector> selectors;
  std::vector<std::string> rules;  // As compact JSON, its members in the order of the document.
};

// Errors: it is no JSON.
[[nodiscard]] Result<RoleFacts> ReadRole(std::string_view json);

}  // namespace berth::controllers
