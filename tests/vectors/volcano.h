#pragma once

#include <filesystem>

namespace berth {

// Whether the folder holds vectors of Volcano (its index says so).
[[nodiscard]] bool HoldsVolcanoVectors(const std::filesystem::path& folder);

// Runs the sessions that need only what is built, prints what passed, failed and is not built yet,
// and returns the program's status.
[[nodiscard]] int RunVolcanoVectors(const std::filesystem::path& folder);

}  // namespace berth
