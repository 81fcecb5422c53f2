#pragma once

#include <cstdint>

namespace berth::testing {

// How often the program's `operator new` was called since it began: what a test compares to bound
// work where a time would be no measure. Who calls this has the operators of its program replaced
// by ones that count. Of programs with one thread.
[[nodiscard]] int64_t AllocationsCount();

}  // namespace berth::testing
