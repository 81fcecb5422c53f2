#pragma once

#include <cstdint>

#include "base/time.h"

namespace berth::net {

// How long a busy client lets answers gather before it handles them together: an answer costs less
// than waking the threads that it goes through, and a busy server on the same cores lacks what that
// takes. The time is what the server takes to answer an eighth to a quarter of the calls under
// way, so that it never runs out of them: 1 ms at least, and doubled or halved at a time.
class Gathering {
 public:
  // Not while less than `calls_min` are under way. 0: never.
  Gathering(int calls_min, Duration at_most) : calls_min_(calls_min), at_most_(at_most) {}

  // Before each time: how many calls are under way, and how many have ended in all.
  [[nodiscard]] Duration Next(int under_way, uint64_t ended);

 private:
  static constexpr Duration kFirst = Duration::Milliseconds(1);

  int calls_min_;
  Duration at_most_;
  Duration last_;  // 0: it did not gather.
  uint64_t ended_ = 0;
};

}  // namespace berth::net
