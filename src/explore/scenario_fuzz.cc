#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "explore/scenario.h"

// Any bytes are a scenario or an error that names a line of it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenario = berth::explore::ParseScenario(text, "f");
  if (!scenario) {
    CHECK(scenario.error().message.starts_with("f:"));
  } else {
    CHECK(!scenario->users.empty());
    CHECK_EQ(scenario->cases.size(), scenario->quotes.size());
  }
  return 0;
}
