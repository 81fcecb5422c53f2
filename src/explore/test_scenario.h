#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "explore/scenario.h"

namespace berth::explore {

// The scenario that a test writes out; nothing, and a failure, when it is not one.
inline std::shared_ptr<const Scenario> Read(std::string_view text) {
  Result<Scenario> scenario = ParseScenario(text, "test");
  if (!scenario) {
    ADD_FAILURE() << scenario.error().message;
    return nullptr;
  }
  return std::make_shared<const Scenario>(std::move(*scenario));
}

}  // namespace berth::explore
