#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

// In which order workloads get quota.
namespace berth::quota {

// Who wants quota.
struct Contender {
  bool promised = false;  // Others leave for it, or have left.
  uint32_t borrow = 0;    // From how far up its quota comes (Reach::height).
  int32_t priority = 0;
  Instant queued_at;     // model::QueuedAt.
  std::string_view uid;  // Ends ties.
};

// Whether `a` is served before `b`: whom a promise was made; who borrows from less far up; who is
// more important; who waits for longer; uid. Of one queue those that wait, nothing of whom is known
// but who they are, stand in the same order.
[[nodiscard]] constexpr bool IsServedBefore(const Contender& a, const Contender& b) {
  if (a.promised != b.promised) return a.promised;
  if (a.borrow != b.borrow) return a.borrow < b.borrow;
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.queued_at != b.queued_at) return a.queued_at < b.queued_at;
  return a.uid < b.uid;
}

}  // namespace berth::quota
