#pragma once

#include <filesystem>

namespace berth {

// Whether the folder holds vectors of Kueue (its index says so).
[[nodiscard]] bool HoldsKueueVectors(const std::filesystem::path& folder);

// Runs the tables that are built, prints what passed, failed and is not built yet, and returns the
// program's status.
[[nodiscard]] int RunKueueVectors(const std::filesystem::path& folder);

}  // namespace berth
