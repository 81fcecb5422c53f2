#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace berth::env::os {

// The real clock: the wall time at its making plus what the steady clock has counted since, so that
// it never goes back and all that share it agree. A later correction of the wall clock is not
// followed. Any thread may read it.
class Clock {
 public:
  Clock()
      : wall_ns_(std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()),
        steady_(std::chrono::steady_clock::now()) {}

  [[nodiscard]] Instant now() const {
    const auto passed = std::chrono::steady_clock::now() - steady_;
    return Instant{wall_ns_} +
           Duration::Nanoseconds(
               std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count());
  }

 private:
  // Immutable after construction.
  int64_t wall_ns_;
  std::chrono::steady_clock::time_point steady_;
};

}  // namespace berth::env::os
